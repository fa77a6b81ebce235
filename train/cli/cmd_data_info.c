/* titin data info STORE: what is in a store, and how it would be split. */
#include "train/cli/command.h"
#include "train/cli/configured.h"
#include "train/cli/show.h"
#include "train/findings.h"
#include "train/store_facts.h"

static const char *const sections[] = {"data", NULL};

/* The one file among the arguments. */
static ttn_status find_store(const ttn_cli_call *call, const char **ret, ttn_error *err)
{
    *ret = NULL;
    for (int i = 0; i < call->n_argument; i++) {
        if (ttn_is_setting(call->argument[i])) continue;
        if (*ret) return TTN_FAIL(err, TTN_EINVAL, "one store at a time; titin data info STORE");
        *ret = call->argument[i];
    }
    return *ret ? TTN_OK : TTN_FAIL(err, TTN_EINVAL, "no store is named; titin data info STORE");
}

static ttn_status describe(const ttn_cli_call *call, const char *path, const ttn_split_rules *split, ttn_facts *f,
                           ttn_error *err)
{
    ttn_store *s;
    ttn_error why = {0};
    const ttn_overlap_listener nobody = {0};
    const ttn_overlap_listener *overlap = ttn_cli_given(call, "overlap") ? &nobody : NULL;
    ttn_status status = ttn_store_open(path, 1, &s, err); /* what is only described is not kept in memory */
    if (status != TTN_OK) return status;
    ttn_facts_text(f, "store", "%s", path);
    status = ttn_store_tell(s, f, err);
    if (status == TTN_OK) ttn_findings_tell(ttn_store_describe(s), f);
    if (status == TTN_OK && (split->kind != TTN_SPLIT_FILE || split->file[0])) {
        status = ttn_split_tell(s, split, overlap, f, &why);
        if (status == TTN_EINVAL) { /* it is good, and can be split in another way */
            ttn_facts_warn(f, "%s", why.text);
            status = TTN_OK;
        } else if (status != TTN_OK) {
            *err = why;
        }
    }
    if (status == TTN_OK && ttn_cli_given(call, "verify")) {
        status = ttn_store_verify(s, err);
        if (status == TTN_OK) ttn_facts_flag(f, "verified", 1);
    }
    ttn_store_close(s);
    return status;
}

static ttn_status run(const ttn_cli_call *call, ttn_error *err)
{
    ttn_config_table *table = NULL;
    ttn_config *config = NULL;
    ttn_split_rules split;
    ttn_facts *f = NULL;
    const char *path;
    ttn_status status = find_store(call, &path, err);
    const ttn_unread_about about = {.is_store = 1, .section = sections};
    if (status == TTN_OK) status = ttn_configured_by_settings(call, &table, &config, err);
    if (status == TTN_OK) status = ttn_configured_check_unread(call, config, &about, err);
    if (status == TTN_OK) {
        const ttn_option_reader reader = ttn_values_reader(ttn_config_values(config));
        status = ttn_split_rules_of(&reader, &split, err);
    }
    if (status == TTN_OK) status = ttn_facts_create(&f, err);
    if (status == TTN_OK) status = describe(call, path, &split, f, err);
    if (status == TTN_OK) status = ttn_facts_status(f, err);
    if (status == TTN_OK && ttn_cli_given(call, "json"))
        status = ttn_show_json(call->out.out, f, err);
    else if (status == TTN_OK)
        ttn_show_text(&call->out, f);
    ttn_facts_destroy(f);
    ttn_config_destroy(config);
    ttn_config_table_destroy(table);
    return status;
}

static const ttn_cli_argument arguments[] = {
    {.name = "STORE|KEY=VALUE",
     .least = 1,
     .most = TTN_ANY_NUMBER,
     .word = TTN_WORD_FILE,
     .help = "what titin data pack made; and single values of data.*: how it is to be split"},
    {0},
};

static const ttn_cli_option options[] = {
    {.name = "json", .help = "the facts as JSON"},
    {.name = "overlap", .help = "how much of what is held out stands in training, too; reads all of it"},
    {.name = "verify", .help = "read all of it, and compare with its checksums"},
    TTN_PRESET_OPTION,
    {0},
};

static const ttn_cli_example examples[] = {
    {"titin data info uniref50.h5", "how many sequences, from which files, how many are held out"},
    {"titin data info store.h5 --overlap data.split=sequence", "would a split without clusters do?"},
    {"titin data info --verify uniref50.h5", "is it still whole?"},
    {0},
};

static const ttn_exit exits[] = {TTN_EXIT_DATA, TTN_EXIT_OK};

const ttn_command ttn_cmd_data_info = {
    .name = "data info",
    .group = "data",
    .purpose = "what is in a store, and what of it is held out",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .exits = exits,
    .sections = sections,
    .run = run,
};
