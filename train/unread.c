#include <stdio.h>
#include <string.h>
#include "data/fasta.h"
#include "train/unread.h"

enum { N_FACT = 3 };

typedef struct {
    char kinds[TTN_OPTION_EXPECTED], asked[TTN_OPTION_EXPECTED + 8], words[TTN_OPTION_EXPECTED + 64];
    ttn_config_fact fact[N_FACT];
} facts;

/* Which kinds of attention layers have, and "auto" where that was asked for. `kind` and n_layer are what the configuration
 * says: attention.kind, and how many elements attention.layers has. */
static ttn_config_fact attention_of(const ttn_model_spec *model, const char *kind, int n_layer, facts *room)
{
    ttn_config_fact fact = {.key = "attention.kind"};
    const int is_plain = n_layer == 0 && strcmp(kind, "auto") != 0; /* else the data and the list decide */
    if (is_plain) fact.value = kind;
    if (is_plain || !model) return fact;
    snprintf(room->asked, sizeof room->asked, "%s%s", model->asks_auto ? "auto, " : "",
             ttn_model_kinds(model, room->kinds));
    snprintf(room->words, sizeof room->words, "the attention of this model is %s", room->kinds);
    fact.value = room->asked;
    fact.words = room->words;
    return fact;
}

static ttn_config_fact data_of(int is_store)
{
    static const char words[] = "it is a store, which stays as it was packed (titin data pack makes another)";
    if (is_store < 0) return (ttn_config_fact){.key = "data.train"};
    return (ttn_config_fact){"data.train", is_store ? TTN_DATA_IS_STORE : TTN_DATA_IS_FASTA, words};
}

typedef struct {
    const char *kind, *split;
    ttn_list layers;
    double valid;
} settings;

static const ttn_option_field fields[] = {
    TTN_FIELD(settings, kind, "attention.kind"),
    TTN_FIELD(settings, layers, "attention.layers"),
    TTN_FIELD(settings, split, "data.split"),
    TTN_FIELD(settings, valid, "data.valid"),
};

ttn_status ttn_unread_check(const ttn_config *c, const ttn_unread_about *about, const ttn_log *log, ttn_error *err)
{
    facts f;
    settings s;
    ttn_status status = ttn_values_fill(ttn_config_values(c), fields, sizeof fields / sizeof *fields, &s, err);
    if (status != TTN_OK) return status;
    f.fact[0] = attention_of(about->model, s.kind, s.layers.n, &f);
    f.fact[1] = data_of(about->is_store);
    f.fact[2] = (ttn_config_fact){
        .key = "data.valid",
        .value = strcmp(s.split, "file") == 0 || s.valid > 0 ? "some" : "0",
    };
    return ttn_config_check_unread(c, f.fact, N_FACT, about->section, log, err);
}
