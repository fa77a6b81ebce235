/* Any bytes as a configuration file, as arguments and as an environment variable, for a table that has everything that an option
 * can be and for titin's own: no crash, no hang, and
 *   - what is refused has a report, and its places lie in the text;
 *   - what is taken is written, read back and written again to the same bytes. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "tests/fuzz/fuzz.h"
#include "tests/train/config_rows.h"
#include "train/model.h"
#include "train/train_spec.h"

typedef struct {
    ttn_config_table *table;
    const ttn_config_preset *presets;
    int is_own; /* titin's */
} kind;

/* The first bytes of an input say which; both are made once. */
static const kind *kind_of(int is_own)
{
    static kind kinds[2] = {{.presets = test_presets}, {.presets = ttn_config_presets, .is_own = 1}};
    ttn_error err = {0};
    if (!kinds[0].table) {
        assert(ttn_config_table_create(test_modules, TEST_N_MODULE, &kinds[0].table, &err) == TTN_OK);
        assert(ttn_config_table_of_titin(&kinds[1].table, &err) == TTN_OK);
    }
    return &kinds[is_own];
}

static void check_problems(const ttn_config *c, const ttn_error *err)
{
    int n = 0;
    int64_t more = 0;
    const ttn_config_problem *p = ttn_config_problems(c, &n, &more);
    assert(n > 0 && err->text[0] && *ttn_config_report(c));
    for (int i = 0; i < n; i++) {
        assert(*p[i].sentence && *p[i].source);
        if (!p[i].text) continue;
        assert(p[i].caret >= 0 && p[i].n_caret > 0);
        assert((size_t)p[i].caret <= strlen(p[i].text));
    }
    const char *report = ttn_config_report(c);
    for (const char *b = report; *b; b++)
        assert((unsigned char)*b >= ' ' || *b == '\n');
}

static void check_round_trip(const kind *k, const ttn_config *c)
{
    char *first = NULL, *second = NULL, *difference = NULL;
    ttn_config *back = NULL;
    ttn_error err = {0};
    assert(ttn_config_resolved(c, &first, &err) == TTN_OK);
    const ttn_config_file file = {.path = "config.resolved.yaml", .text = first, .n = strlen(first)};
    assert(ttn_config_load(k->table, &(ttn_config_request){.file = &file, .n_file = 1}, &back, &err) == TTN_OK);
    assert(ttn_config_resolved(back, &second, &err) == TTN_OK);
    assert(strcmp(first, second) == 0);
    assert(ttn_config_diff(c, back, &difference, &err) == TTN_OK);
    assert(*difference == 0);
    free(difference);
    free(second);
    free(first);
    ttn_config_destroy(back);
}

/* What is made of the values: a model and the rules of a training, or a refusal. */
static void check_specs(const ttn_config *c)
{
    const ttn_values *v = ttn_config_values(c);
    const ttn_model_use use = {.alphabet = ttn_alphabet_find("esm")};
    ttn_model_spec *model;
    ttn_train_spec train;
    ttn_error err = {0};
    ttn_status status = ttn_model_spec_of(v, &use, &model, &err);
    assert(status == TTN_OK || (status == TTN_EINVAL && err.text[0] && !model));
    ttn_model_spec_destroy(model);
    err = (ttn_error){0};
    status = ttn_train_spec_read(v, &train, &err);
    assert(status == TTN_OK || (status == TTN_EINVAL && err.text[0]));
}

static void try_request(const kind *k, ttn_config_request r)
{
    ttn_config *c = NULL;
    ttn_error err = {0};
    r.presets = k->presets;
    ttn_status status = ttn_config_load(k->table, &r, &c, &err);
    assert(status == TTN_OK || status == TTN_EINVAL);
    assert(c);
    if (status == TTN_OK)
        check_round_trip(k, c);
    else
        check_problems(c, &err);
    if (status == TTN_OK && k->is_own) check_specs(c);
    ttn_config_destroy(c);
}

/* An argument a line. */
static void try_arguments(const kind *k, char *text)
{
    enum { MOST = 16 };
    const char *argument[MOST];
    int n = 0;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line && n < MOST; line = strtok_r(NULL, "\n", &rest)) {
        argument[n] = line;
        n++;
    }
    try_request(k, (ttn_config_request){.argument = argument, .n_argument = n});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    const uint8_t mode = data[0];
    const kind *k = kind_of(mode >> 3 & 1);
    if (mode % 4 != 0) {
        const ttn_config_file file = {.path = "run.yaml", .text = (const char *)data + 1, .n = size - 1};
        try_request(k, (ttn_config_request){.file = &file, .n_file = 1});
        return 0;
    }
    char *text = fuzz_text(data + 1, size - 1);
    if (mode & 4) {
        const char *const one[] = {text, NULL};
        try_request(k, (ttn_config_request){.environment = one});
    } else {
        try_arguments(k, text);
    }
    free(text);
    return 0;
}
