/* titin data check FILE...: the data card. */
#include "train/card_facts.h"
#include "train/cli/command.h"
#include "train/cli/configured.h"
#include "train/cli/inputs.h"
#include "train/cli/show.h"
#include "train/cli/signals.h"

static const char *const sections[] = {"data", NULL};

/* One file into the card; its own failure goes there, and to *first when that holds none yet. */
static ttn_status check_file(ttn_card *c, const char *path, const ttn_fasta_rules *rules, ttn_error *first,
                             ttn_error *err)
{
    ttn_fasta *f;
    const ttn_fasta_record *r;
    ttn_error failure = {0};
    ttn_status status = TTN_OK, read = ttn_fasta_open_path(path, rules, &f, &failure);
    while (read == TTN_OK && status == TTN_OK) {
        read = ttn_fasta_next(f, &r, &failure);
        if (read == TTN_OK) status = ttn_card_add(c, r, err);
        if (ttn_signals_wants_stop()) status = TTN_FAIL(err, TTN_ESTOPPED, "stopped; %s was not read to its end", path);
    }
    if (status == TTN_OK) status = ttn_card_end_file(c, path, f, read, &failure, err);
    if (read != TTN_EOF && first->status == TTN_OK) *first = failure;
    ttn_fasta_close(f);
    return status;
}

static ttn_status check_files(const ttn_files *in, const ttn_fasta_rules *rules, ttn_facts *f, ttn_error *first,
                              ttn_error *err)
{
    ttn_card *c;
    ttn_status status = ttn_card_create(rules->alphabet, &c, err);
    for (int i = 0; i < in->n && status == TTN_OK; i++)
        status = check_file(c, in->file[i], rules, first, err);
    if (status == TTN_OK) {
        ttn_card_tell(c, f);
        ttn_inputs_tell(in, f);
        status = ttn_facts_status(f, err);
        /* What titin data pack says of the same files: a store of nothing is none. */
        if (status == TTN_OK && first->status == TTN_OK && ttn_card_total(c)->records == 0)
            (void)TTN_FAIL(first, TTN_EFORMAT, "there is no sequence in it: all records were left out");
    }
    ttn_card_destroy(c);
    return status;
}

/* The settings among the arguments, over the environment and the preset; *ret_rules borrows from *ret. */
static ttn_status configure(const ttn_cli_call *call, ttn_config_table **ret_table, ttn_config **ret,
                            ttn_own_alphabet *own, ttn_fasta_rules *ret_rules, ttn_error *err)
{
    *ret_rules = (ttn_fasta_rules){0};
    const ttn_unread_about about = {.section = sections};
    ttn_status status = ttn_configured_by_settings(call, ret_table, ret, err);
    if (status == TTN_OK) status = ttn_configured_check_unread(call, *ret, &about, err);
    if (status != TTN_OK) return status;
    const ttn_option_reader reader = ttn_values_reader(ttn_config_values(*ret));
    return ttn_fasta_rules_of(&reader, own, ret_rules, err);
}

static ttn_status run(const ttn_cli_call *call, ttn_error *err)
{
    ttn_config_table *table;
    ttn_config *config;
    ttn_own_alphabet own;
    ttn_fasta_rules rules;
    ttn_files in = {0};
    ttn_facts *f = NULL;
    ttn_error first = {0};
    ttn_status status = configure(call, &table, &config, &own, &rules, err);
    if (status == TTN_OK) status = ttn_facts_create(&f, err);
    if (status == TTN_OK) status = ttn_inputs_find(call, &in, err);
    ttn_signals_take_to_stop();
    if (status == TTN_OK) status = check_files(&in, &rules, f, &first, err);
    ttn_signals_give_back();
    if (status == TTN_OK && ttn_cli_given(call, "json"))
        status = ttn_show_json(call->out.out, f, err);
    else if (status == TTN_OK)
        ttn_show_text(&call->out, f);
    ttn_facts_destroy(f);
    ttn_files_drop(&in);
    ttn_config_destroy(config);
    ttn_config_table_destroy(table);
    if (status != TTN_OK || first.status == TTN_OK) return status;
    *err = first;
    return first.status;
}

static const ttn_cli_argument arguments[] = {
    {.name = "FILE|KEY=VALUE",
     .least = 1,
     .most = TTN_ANY_NUMBER,
     .word = TTN_WORD_FILE,
     .help = "files in FASTA, packed by gzip or not, \"-\" for standard input; and single values of data.*"},
    {0},
};

static const ttn_cli_option options[] = {
    TTN_RECURSIVE_OPTION,
    {.name = "json", .help = "the card as JSON"},
    TTN_PRESET_OPTION,
    {0},
};

static const ttn_cli_example examples[] = {
    {"titin data check uniref50.fasta.gz", "is it whole, what is in it, and what is unusual about it?"},
    {"zstd -dc big.fa.zst | titin data check -", "other ways to compress"},
    {"titin data check --recursive proteomes/", "all files of a folder"},
    {"titin data check a.fa data.stop=x", "with another answer to '*' inside a sequence"},
    {0},
};

static const ttn_exit exits[] = {TTN_EXIT_DATA, TTN_EXIT_STOPPED, TTN_EXIT_OK};

const ttn_command ttn_cmd_data_check = {
    .name = "data check",
    .group = "data",
    .purpose = "what sequence files hold, and what is wrong with them",
    .description =
        "Reads files in FASTA to their ends and prints the data card: records, residues, lengths, composition, what "
        "was put right and where first, ids and sequences that stand twice, checksums. Writes nothing. A file that "
        "is damaged or no FASTA is told with file, line and column, and the others are read all the same.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .exits = exits,
    .sections = sections,
    .run = run,
};
