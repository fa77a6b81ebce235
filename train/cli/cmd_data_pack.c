/* titin data pack IN... -o STORE: sequence files into one store. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "core/atomic.h"
#include "core/clock.h"
#include "core/text.h"
#include "core/titin.h"
#include "data/pack.h"
#include "data/split.h"
#include "train/card_facts.h"
#include "train/cli/command.h"
#include "train/cli/configured.h"
#include "train/cli/inputs.h"
#include "train/cli/show.h"
#include "train/cli/signals.h"
#include "train/cli/status_line.h"
#include "train/store_facts.h"

#define QUIET_FOR 1.0 /* seconds: a small set needs no progress */

/* ---- progress ---- */

typedef struct {
    ttn_status_line line;
    const char *const *file;
    double begin;
    int64_t bytes; /* of all files; 0: nobody knows (a pipe) */
} progress;

static void show_reading(progress *p, const ttn_pack_progress *now)
{
    char text[TTN_STATUS_TEXT], count[TTN_SHOW_NUMBER], left[TTN_SHOW_NUMBER], name[TTN_TAIL_ROOM];
    const double seconds = ttn_clock_now(NULL) - p->begin;
    ttn_text_tail(p->file[now->file], name);
    ttn_show_count(now->sequences, count);
    if (p->bytes > 0 && now->bytes > 0) {
        const double part = (double)now->bytes / (double)p->bytes;
        snprintf(text, sizeof text, "reading %s  %.1f %%  %s sequences  eta %s", name, 100 * part, count,
                 ttn_show_seconds(part < 1 ? seconds * (1 - part) / part : 0, left));
    } else {
        snprintf(text, sizeof text, "reading %s  %s  %s sequences", name, ttn_show_bytes(now->bytes, left), count);
    }
    ttn_status_line_show(&p->line, text);
}

static int is_long(const progress *p)
{
    return ttn_clock_now(NULL) - p->begin >= QUIET_FOR;
}

static void show_part(progress *p, const char *what, double part)
{
    char text[TTN_STATUS_TEXT];
    snprintf(text, sizeof text, "%s  %.1f %%", what, 100 * part);
    ttn_status_line_show(&p->line, text);
}

static int tell(void *ctx, const ttn_pack_progress *now)
{
    progress *p = ctx;
    if (ttn_signals_wants_stop()) return 1;
    if (!is_long(p)) return 0;
    switch (now->phase) {
    case TTN_PACK_READS:
        show_reading(p, now);
        break;
    case TTN_PACK_CLUSTERS:
        show_part(p, "clustering", now->part);
        break;
    case TTN_PACK_CHECKS:
        ttn_status_line_show(&p->line, "reading the store again, and bringing it to the disk");
        break;
    }
    return 0;
}

static int tell_overlap(void *ctx, double part)
{
    progress *p = ctx;
    if (is_long(p)) show_part(p, "comparing what is held out with the training set", part);
    return ttn_signals_wants_stop();
}

/* Bytes of all files; 0: one of them is no file with a size. */
static int64_t count_bytes(const char *const *file, int n)
{
    int64_t all = 0;
    for (int i = 0; i < n; i++) {
        struct stat about;
        if (strcmp(file[i], "-") == 0 || stat(file[i], &about) != 0 || !S_ISREG(about.st_mode)) return 0;
        all += about.st_size;
    }
    return all;
}

/* From here to the end what stops it is a flag, so that no temporary file stays and what is there is said. */
static void begin_progress(progress *p, const char *const *file, int n, FILE *out)
{
    *p = (progress){.file = file, .begin = ttn_clock_now(NULL), .bytes = count_bytes(file, n)};
    ttn_signals_take_to_stop();
    ttn_status_line_begin(&p->line, out, NULL);
}

static void end_progress(progress *p)
{
    ttn_status_line_end(&p->line);
    ttn_signals_give_back();
}

static const char *const sections[] = {"data", "pack", NULL};

/* ---- what is asked for ---- */

/* The store is not one of the files, and replaces nothing without --force. */
static ttn_status check_output(const ttn_cli_call *call, const char *store, const char *const *file, int n,
                               ttn_error *err)
{
    struct stat out, in;
    char shown[TTN_TAIL_ROOM];
    if (strcmp(store, "-") == 0)
        return TTN_FAIL(err, TTN_EINVAL, "a store cannot go to standard output; name a file: -o NAME.h5");
    if (stat(store, &out) != 0) return TTN_OK; /* what is wrong with the path is said when it is made */
    ttn_text_tail(store, shown);
    for (int i = 0; i < n; i++)
        if (strcmp(file[i], "-") != 0 && stat(file[i], &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
            return TTN_FAIL(err, TTN_EINVAL, "%s: is to be read and written; give the store another name", shown);
    if (S_ISDIR(out.st_mode))
        return TTN_FAIL(err, TTN_EINVAL, "%s: is a folder; name a file in it: -o %s/NAME.h5", shown, shown);
    if (!ttn_cli_given(call, "force"))
        return TTN_FAIL(err, TTN_EINVAL, "%s: is there already; give another name, or --force to replace it", shown);
    return TTN_OK;
}

static ttn_status choose_ids(const ttn_cli_call *call, ttn_fasta_ids *ret, ttn_error *err)
{
    static const char *const policies[] = {"any", "error", "suffix"}; /* in the order of ttn_fasta_ids */
    const char *wanted = ttn_cli_value(call, "dup-ids");
    *ret = TTN_IDS_ANY;
    if (!wanted) return TTN_OK;
    for (int i = 0; i < 3; i++)
        if (strcmp(policies[i], wanted) == 0) {
            *ret = (ttn_fasta_ids)i;
            return TTN_OK;
        }
    return TTN_FAIL(err, TTN_EINVAL, "--dup-ids is any, error or suffix, not '%s'", wanted);
}

/* ---- the work ---- */

/* The store as it is read from now on, and what was found on the way. */
static ttn_status tell_store(const char *store, const ttn_pack_facts *packed, const ttn_card *card,
                             const ttn_split_rules *split, progress *p, ttn_facts *f, ttn_error *err)
{
    const ttn_overlap_listener overlap = {.tell = tell_overlap, .ctx = p};
    ttn_store *s;
    struct stat about;
    ttn_status status = ttn_store_open(store, 1, &s, err); /* what is only described is not kept in memory */
    if (status != TTN_OK) return status;
    ttn_facts_text(f, "store", "%s", store);
    ttn_facts_bytes(f, "size", stat(store, &about) == 0 ? about.st_size : 0);
    status = ttn_store_tell(s, f, err);
    ttn_facts_integer(f, "dropped", packed->dropped);
    if (packed->cluster.n > 0) {
        ttn_facts_integer(f, "largest_cluster", packed->cluster.largest);
        ttn_facts_integer(f, "cluster_passes", packed->cluster.passes);
    }
    ttn_error why = {0};
    if (status == TTN_OK && (split->kind != TTN_SPLIT_FILE || split->file[0]))
        status = ttn_split_tell(s, split, &overlap, f, &why);
    if (status == TTN_EINVAL) { /* the store is good; how it is to be split can be said later */
        ttn_facts_warn(f, "%s", why.text);
        status = TTN_OK;
    }
    if (status == TTN_ESTOPPED)
        status = TTN_FAIL(err, TTN_ESTOPPED, "%s; the store %s is whole, and titin data info --overlap makes up for it",
                          why.text, ttn_store_name(s));
    if (status != TTN_OK && err->status == TTN_OK) *err = why;
    ttn_card_tell_notes(card, f);
    ttn_store_close(s);
    return status;
}

static ttn_status pack_and_tell(const ttn_cli_call *call, const ttn_files *in, const ttn_pack_rules *rules,
                                const ttn_split_rules *split, ttn_error *err)
{
    const char *store = ttn_cli_value(call, "output");
    ttn_pack_facts packed;
    progress p;
    ttn_card *card = NULL;
    ttn_facts *f = NULL;
    ttn_status status = check_output(call, store, in->file, in->n, err);
    if (status == TTN_OK) status = ttn_card_create(rules->fasta.alphabet, &card, err);
    if (status == TTN_OK) status = ttn_facts_create(&f, err);
    if (status == TTN_OK) {
        begin_progress(&p, in->file, in->n, call->err.out);
        const ttn_pack_listener listener = {.tell = tell, .ctx = &p};
        const ttn_log log = {.say = ttn_status_line_say, .ctx = &p.line, .from = TTN_LOG_INFO};
        ttn_atomic_sweep_dead_of(store, &log);
        status = ttn_pack(in->file, in->n, store, rules, &listener, card, &packed, err);
        if (status == TTN_OK) status = tell_store(store, &packed, card, split, &p, f, err);
        end_progress(&p);
    }
    if (status == TTN_OK) ttn_inputs_tell(in, f);
    if (status == TTN_OK) status = ttn_facts_status(f, err);
    if (status == TTN_OK && ttn_cli_given(call, "json"))
        status = ttn_show_json(call->out.out, f, err);
    else if (status == TTN_OK)
        ttn_show_text(&call->out, f);
    ttn_facts_destroy(f);
    ttn_card_destroy(card);
    return status;
}

static ttn_status run(const ttn_cli_call *call, ttn_error *err)
{
    ttn_config_table *table = NULL;
    ttn_config *config = NULL;
    ttn_own_alphabet own;
    ttn_pack_rules rules = {0};
    ttn_split_rules split = {0};
    ttn_files in = {0};
    ttn_status status = TTN_OK;
    if (!ttn_cli_given(call, "output"))
        status = TTN_FAIL(err, TTN_EINVAL, "no store is named; titin data pack IN... -o STORE");
    if (status == TTN_OK) status = ttn_inputs_find(call, &in, err);
    const ttn_unread_about about = {.section = sections};
    if (status == TTN_OK) status = ttn_configured_by_settings(call, &table, &config, err);
    if (status == TTN_OK) status = ttn_configured_check_unread(call, config, &about, err);
    if (status == TTN_OK) {
        const ttn_option_reader reader = ttn_values_reader(ttn_config_values(config));
        status = ttn_pack_rules_of(&reader, &own, &rules, err);
        if (status == TTN_OK) status = ttn_split_rules_of(&reader, &split, err);
    }
    if (status == TTN_OK) status = choose_ids(call, &rules.ids, err);
    if (status == TTN_OK) {
        rules.makes_clusters = split.kind == TTN_SPLIT_CLUSTER;
        rules.titin_version = TTN_VERSION;
        status = pack_and_tell(call, &in, &rules, &split, err);
    }
    ttn_files_drop(&in);
    ttn_config_destroy(config);
    ttn_config_table_destroy(table);
    return status;
}

static const ttn_cli_argument arguments[] = {
    {.name = "IN|KEY=VALUE",
     .least = 1,
     .most = TTN_ANY_NUMBER,
     .word = TTN_WORD_FILE,
     .help = "files in FASTA, packed by gzip or not, \"-\" for standard input; and single values of data.* and pack.*"},
    {0},
};

static const ttn_cli_option options[] = {
    {.name = "output", .letter = 'o', .value = "STORE", .word = TTN_WORD_FILE, .help = "the store to be made"},
    {.name = "force", .letter = 'f', .help = "replace a file that is there already"},
    TTN_RECURSIVE_OPTION,
    {.name = "dup-ids",
     .value = "any|error|suffix",
     .help = "ids that stand twice: kept (the default), refused, or made to differ: id_2"},
    {.name = "json", .help = "what was packed as JSON"},
    TTN_PRESET_OPTION,
    {0},
};

static const ttn_cli_example examples[] = {
    {"titin data pack uniref50.fasta.gz -o uniref50.h5", "made ready for training"},
    {"titin data pack *.fa -o all.h5 data.dedup=exact", "several files, of equal sequences the first"},
    {"titin data pack a.fa b.fa -o ab.h5 data.split=file", "a file for validation: data.valid_file=b.fa"},
    {"zstd -dc big.fa.zst | titin data pack - -o big.h5", "other ways to compress"},
    {0},
};

static const ttn_exit exits[] = {TTN_EXIT_DATA, TTN_EXIT_STOPPED, TTN_EXIT_OK};

const ttn_command ttn_cmd_data_pack = {
    .name = "data pack",
    .group = "data",
    .purpose = "make a store, which training reads, of sequence files",
    .description =
        "Reads files in FASTA and writes one store (HDF5): residues as tokens, ids, headers, checksums, and clusters "
        "of "
        "related proteins, so that what is held out for validation has no relatives in training. A file with a fault "
        "in it, also one at its very end, is told with its place, and no store is made. The store has its name only "
        "when all of it is on the disk and was read again.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .exits = exits,
    .sections = sections,
    .run = run,
};
