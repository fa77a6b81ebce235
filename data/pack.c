#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "core/memory.h"
#include "data/ids.h"
#include "data/pack.h"
#include "data/seen.h"
#include "data/store_write.h"

typedef struct {
    const char *const *file;
    const ttn_pack_rules *rules;
    const ttn_pack_listener *listener;
    ttn_store_writer *writer;
    ttn_ids *ids;   /* NULL: any will do */
    ttn_seen *seen; /* sequences; NULL: doubles are kept */
    ttn_card *card; /* NULL: nobody asks */
    ttn_pack_facts facts;
    ttn_pack_progress progress;
    int64_t told; /* bytes of the progress that was told last */
} packing;

enum { TELL_EVERY = 1 << 20 };

/* ---- options ---- */

static const char *const compress_choices[] = {"none", "gzip", NULL};
static const char *const dedup_choices[] = {"none", "exact", NULL};

enum { COMPRESS, DEDUP, N_OPTIONS };

const ttn_option ttn_pack_options[] = {
    [COMPRESS] = {.name = "pack.compress",
                  .type = TTN_OPTION_CHOICE,
                  .fallback = "none",
                  .choices = compress_choices,
                  .help = "gzip makes a store smaller by two fifths, and packing and reading it several times slower",
                  .since = "0.1",
                  .when = ttn_when_packed},
    [DEDUP] = {.name = "data.dedup",
               .type = TTN_OPTION_CHOICE,
               .fallback = "none",
               .choices = dedup_choices,
               .help = "exact: of several equal sequences the first is packed, the others are counted",
               .since = "0.1",
               .when = ttn_when_packed,
               .unread_is_error = 1},
};
const int ttn_pack_n_options = N_OPTIONS;

static ttn_status is_second_choice(const ttn_option_reader *o, const ttn_option *row, int *ret, ttn_error *err)
{
    const char *text;
    ttn_status status = o->get_text(o->self, row->name, 0, &text, err);
    if (status == TTN_OK) *ret = strcmp(text, row->choices[1]) == 0;
    return status;
}

ttn_status ttn_pack_rules_of(const ttn_option_reader *o, ttn_own_alphabet *own, ttn_pack_rules *ret, ttn_error *err)
{
    ttn_pack_rules r = {0};
    ttn_status status = ttn_fasta_rules_of(o, own, &r.fasta, err);
    if (status == TTN_OK) status = ttn_cluster_rules_of(o, &r.cluster, err);
    if (status == TTN_OK) status = is_second_choice(o, &ttn_pack_options[COMPRESS], &r.is_compressed, err);
    if (status == TTN_OK) status = is_second_choice(o, &ttn_pack_options[DEDUP], &r.drops_doubles, err);
    if (status == TTN_OK) *ret = r;
    return status;
}

/* ---- progress ---- */

static ttn_status tell(packing *p, ttn_error *err)
{
    p->progress.sequences = ttn_store_added(p->writer);
    p->told = p->progress.bytes;
    if (!p->listener || p->listener->tell(p->listener->ctx, &p->progress) == 0) return TTN_OK;
    return TTN_FAIL(err, TTN_ESTOPPED, "stopped; nothing was written");
}

static int tell_clusters(void *ctx, double part)
{
    packing *p = ctx;
    p->progress.part = part;
    return p->listener ? p->listener->tell(p->listener->ctx, &p->progress) : 0;
}

/* ---- files ---- */

static ttn_status is_double(packing *p, const ttn_fasta_record *r, int *ret, ttn_error *err)
{
    int64_t *number;
    int is_new = 1;
    ttn_status status = TTN_OK;
    if (p->seen) status = ttn_seen_add(p->seen, ttn_hash128_of(r->token, (size_t)r->n), 0, &number, &is_new, err);
    *ret = !is_new;
    return status;
}

/* *ret: the id that the record is to have. */
static ttn_status choose_id(packing *p, const ttn_fasta_record *r, int file, const char **ret, ttn_error *err)
{
    enum { LINE_BITS = 43 }; /* files below 2^20, lines below 2^43 in one number */
    *ret = r->id;
    if (!p->ids) return TTN_OK;
    if (p->rules->ids == TTN_IDS_SUFFIX) return ttn_ids_make_differ(p->ids, r->id, ret, err);
    int64_t first;
    ttn_status status = ttn_ids_see(p->ids, r->id, (int64_t)file << LINE_BITS | r->line, &first, err);
    if (status != TTN_OK || first < 0) return status;
    return TTN_FAIL_AT(err, TTN_EFORMAT, p->file[file], r->line, 1,
                       "the id '%.80s' is that of a record of %.300s, line %" PRId64
                       ", too; make them differ, or use --dup-ids suffix (FA029)",
                       r->id, p->file[first >> LINE_BITS], first & (((int64_t)1 << LINE_BITS) - 1));
}

static ttn_status add_record(packing *p, const ttn_fasta_record *r, int file, int64_t *dropped, ttn_error *err)
{
    int drop;
    const char *id;
    ttn_status status = is_double(p, r, &drop, err);
    if (status != TTN_OK) return status;
    if (drop) {
        (*dropped)++;
        return TTN_OK;
    }
    status = choose_id(p, r, file, &id, err);
    return status == TTN_OK ? ttn_store_add(p->writer, r, id, err) : status;
}

static ttn_status add_finding(packing *p, int code, int is_fault, const ttn_fasta_note *note, ttn_error *err)
{
    if (note->n == 0) return TTN_OK;
    const ttn_store_finding finding = {
        .rule = code,
        .is_fault = is_fault,
        .n = note->n,
        .line = note->n_place > 0 ? note->place[0].line : 0,
        .column = note->n_place > 0 ? note->place[0].column : 0,
    };
    return ttn_store_add_finding(p->writer, &finding, err);
}

/* The file was read to its end, and is good. */
static ttn_status end_file(packing *p, ttn_fasta *f, int file, int64_t dropped, ttn_error *err)
{
    char hash[TTN_HASH_TEXT];
    const ttn_fasta_counts *found = ttn_fasta_found(f);
    const ttn_source_facts *facts = ttn_fasta_source(f);
    const ttn_store_source source = {
        .name = p->file[file],
        .link = facts->link ? facts->link : "",
        .hash = ttn_hash_print(found->hash, hash),
        .bytes = facts->bytes,
        .unpacked = found->bytes,
        .records = found->records,
        .skipped = found->skipped,
        .dropped = dropped,
    };
    p->facts.dropped += dropped;
    if (p->card) {
        ttn_status status = ttn_card_end_file(p->card, p->file[file], f, TTN_EOF, NULL, err);
        if (status != TTN_OK) return status;
    }
    ttn_status status = ttn_store_end_source(p->writer, &source, err);
    for (int code = 1; code < TTN_FASTA_CODES && status == TTN_OK; code++) {
        status = add_finding(p, code, 0, &found->note[code], err);
        if (status == TTN_OK) status = add_finding(p, code, 1, &found->fault[code], err);
    }
    return status;
}

static ttn_status read_file(packing *p, int file, ttn_error *err)
{
    ttn_fasta *f;
    const ttn_fasta_record *r;
    ttn_fasta_rules rules = p->rules->fasta;
    rules.ids = TTN_IDS_ANY;
    ttn_status status = ttn_fasta_open_path(p->file[file], &rules, &f, err);
    if (status != TTN_OK) return status;
    const int64_t before = p->progress.bytes;
    int64_t dropped = 0;
    p->progress.file = file;
    while (status == TTN_OK && (status = ttn_fasta_next(f, &r, err)) == TTN_OK) {
        p->progress.bytes = before + ttn_fasta_source(f)->bytes;
        status = add_record(p, r, file, &dropped, err);
        if (status == TTN_OK && p->progress.bytes - p->told >= TELL_EVERY) status = tell(p, err);
    }
    p->progress.bytes = before + ttn_fasta_source(f)->bytes;
    if (status == TTN_EOF) status = end_file(p, f, file, dropped, err);
    ttn_fasta_close(f);
    return status;
}

/* ---- the whole ---- */

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Sequences that an earlier one equals, by their hashes. */
static ttn_status count_duplicates(packing *p, ttn_error *err)
{
    const int64_t n = ttn_store_added(p->writer);
    if (p->rules->drops_doubles) return TTN_OK; /* there is none */
    int64_t *hash = ttn_alloc_or_say(n, sizeof *hash, "the hashes of all sequences", err), equal = 0;
    if (!hash) return TTN_ENOMEM;
    ttn_status status = ttn_store_added_hashes(p->writer, 0, n, hash, err);
    if (status == TTN_OK) {
        qsort(hash, (size_t)n, sizeof *hash, compare);
        for (int64_t i = 1; i < n; i++)
            equal += hash[i] == hash[i - 1];
        ttn_store_set_duplicates(p->writer, equal);
    }
    ttn_free(hash);
    return status;
}

static ttn_status make_clusters(packing *p, ttn_error *err)
{
    if (!p->rules->makes_clusters) return TTN_OK;
    int64_t *key = NULL;
    p->progress.phase = TTN_PACK_CLUSTERS;
    p->progress.sequences = ttn_store_added(p->writer);
    const ttn_sweep_source source = ttn_sweep_of_writer(p->writer, p->rules->fasta.alphabet);
    ttn_status status = ttn_cluster(&source, &p->rules->cluster, tell_clusters, p, &key, &p->facts.cluster, err);
    if (status == TTN_OK) {
        const ttn_store_clustering how = {
            .k = p->facts.cluster.k,
            .kmers = p->rules->cluster.kmers,
            .seed = p->rules->cluster.seed,
            .n = p->facts.cluster.n,
        };
        status = ttn_store_set_clusters(p->writer, &how, key, err);
    }
    ttn_free(key);
    return status;
}

ttn_status ttn_pack(const char *const *file, int n, const char *store, const ttn_pack_rules *rules,
                    const ttn_pack_listener *listener, ttn_card *card, ttn_pack_facts *ret, ttn_error *err)
{
    packing p = {.file = file, .rules = rules, .listener = listener, .card = card};
    const ttn_store_kind kind = {
        .alphabet = rules->fasta.alphabet,
        .titin_version = rules->titin_version,
        .packed_for = rules->packed_for,
        .has_excluded = rules->fasta.lowercase == TTN_LOWERCASE_EXCLUDE,
        .compressed = rules->is_compressed,
    };
    ttn_status status = ttn_store_create(store, &kind, &p.writer, err);
    if (status == TTN_OK && rules->ids != TTN_IDS_ANY) status = ttn_ids_create(&p.ids, err);
    if (status == TTN_OK && rules->drops_doubles) status = ttn_seen_create("the sequences of all files", &p.seen, err);
    for (int i = 0; i < n && status == TTN_OK; i++)
        status = read_file(&p, i, err);
    ttn_seen_destroy(p.seen);
    ttn_ids_destroy(p.ids);
    if (status == TTN_OK && ttn_store_added(p.writer) > 0) status = count_duplicates(&p, err);
    if (status == TTN_OK && ttn_store_added(p.writer) > 0) status = make_clusters(&p, err);
    if (status == TTN_OK) {
        p.progress.phase = TTN_PACK_CHECKS;
        status = tell(&p, err);
    }
    if (status == TTN_OK) status = ttn_store_commit(p.writer, err);
    ttn_store_destroy(p.writer);
    if (status == TTN_OK) *ret = p.facts;
    return status;
}
