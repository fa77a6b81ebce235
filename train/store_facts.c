#include <inttypes.h>
#include <string.h>
#include "core/memory.h"
#include "data/overlap.h"
#include "train/findings.h"
#include "train/store_facts.h"

enum { BUCKETS = 40, EXACT = 1 << 20 }; /* lengths from 2^i to 2^(i+1) - 1; lengths below are counted one by one */

/* ---- a store ---- */

static void tell_sources(const ttn_store_facts *s, ttn_facts *f)
{
    ttn_facts_open_list(f, "source");
    for (int64_t i = 0; i < s->n_source; i++) {
        const ttn_store_source *source = &s->source[i];
        ttn_facts_open(f, NULL);
        ttn_facts_text(f, "name", "%s", source->name);
        ttn_facts_text(f, "link_to", "%s", source->link);
        ttn_facts_bytes(f, "bytes", source->bytes);
        ttn_facts_bytes(f, "unpacked", source->unpacked);
        ttn_facts_integer(f, "records", source->records);
        ttn_facts_integer(f, "sequences", source->n);
        ttn_facts_integer(f, "skipped", source->skipped);
        ttn_facts_integer(f, "dropped", source->dropped);
        ttn_facts_text(f, "xxh128", "%s", source->hash);
        ttn_facts_close(f);
    }
    ttn_facts_close(f);
}

static int bucket_of(int64_t n)
{
    int bucket = 0;
    while (n > 1 && bucket < BUCKETS - 1) {
        n /= 2;
        bucket++;
    }
    return bucket;
}

static void tell_lengths(const int64_t *bucket, ttn_facts *f)
{
    ttn_facts_open_list(f, "length");
    for (int i = 0; i < BUCKETS; i++) {
        if (bucket[i] == 0) continue;
        ttn_facts_open(f, NULL);
        ttn_facts_integer(f, "from", (int64_t)1 << i);
        ttn_facts_integer(f, "to", ((int64_t)2 << i) - 1);
        ttn_facts_integer(f, "sequences", bucket[i]);
        ttn_facts_close(f);
    }
    ttn_facts_close(f);
}

/* The length that half of the sequences reach at most; 0: it is EXACT or more. */
static int64_t median_of(const int64_t *count, int64_t n)
{
    int64_t below = 0;
    for (int64_t length = 1; length < EXACT; length++) {
        below += count[length];
        if (2 * below >= n) return length;
    }
    return 0;
}

static void tell_clusters(const ttn_store_facts *s, ttn_facts *f)
{
    if (!s->has_clusters) {
        ttn_facts_none(f, "clusters");
        return;
    }
    ttn_facts_open(f, "clusters");
    ttn_facts_integer(f, "n", s->clusters);
    ttn_facts_integer(f, "k", s->cluster_k);
    ttn_facts_integer(f, "kmers", s->cluster_kmers);
    ttn_facts_integer(f, "seed", s->cluster_seed);
    ttn_facts_close(f);
}

ttn_status ttn_store_tell(const ttn_store *store, ttn_facts *f, ttn_error *err)
{
    const ttn_store_facts *s = ttn_store_describe(store);
    int64_t bucket[BUCKETS] = {0};
    char hash[TTN_HASH_TEXT];
    int64_t *count = ttn_alloc_or_say(EXACT, sizeof *count, "the lengths of sequences", err);
    if (!count) return TTN_ENOMEM;
    for (int64_t i = 0; i < s->sequences; i++) {
        const int64_t n = ttn_store_offset(store, i + 1) - ttn_store_offset(store, i);
        bucket[bucket_of(n)]++;
        if (n < EXACT) count[n]++;
    }
    ttn_facts_integer(f, "sequences", s->sequences);
    ttn_facts_integer(f, "residues", s->residues);
    ttn_facts_integer(f, "shortest", s->shortest);
    const int64_t median = median_of(count, s->sequences);
    if (median > 0)
        ttn_facts_integer(f, "median", median);
    else
        ttn_facts_none(f, "median");
    ttn_facts_real(f, "mean", (double)s->residues / (double)s->sequences);
    ttn_facts_integer(f, "longest", s->longest);
    ttn_facts_text(f, "alphabet", "%s", s->alphabet->name);
    ttn_facts_flag(f, "excluded", s->has_excluded);
    ttn_facts_text(f, "packed_by", "titin %s", s->titin_version);
    ttn_facts_text(f, "identity", "%s", ttn_hash_print(s->identity, hash));
    tell_clusters(s, f);
    tell_sources(s, f);
    tell_lengths(bucket, f);
    ttn_free(count);
    return TTN_OK;
}

/* ---- its split ---- */

static void tell_part(ttn_facts *f, const char *key, int64_t n, int64_t of)
{
    ttn_facts_real(f, key, of > 0 ? 100.0 * (double)n / (double)of : 0);
}

static ttn_status tell_overlap(ttn_store *s, const ttn_subset *held_out, const ttn_overlap_listener *listener,
                               ttn_facts *f, ttn_error *err)
{
    ttn_overlap o;
    const ttn_sweep_source source = ttn_sweep_of_store(s);
    ttn_status status = ttn_overlap_count(&source, held_out, listener->tell, listener->ctx, &o, err);
    if (status != TTN_OK) return status;
    ttn_facts_integer(f, "compared_with_training", o.looked_at);
    if (o.looked_at == 0) return TTN_OK;
    tell_part(f, "percent_over_a_tenth_seen", o.over_10, o.looked_at);
    tell_part(f, "percent_over_half_seen", o.over_50, o.looked_at);
    return TTN_OK;
}

ttn_status ttn_split_tell(ttn_store *s, const ttn_split_rules *r, const ttn_overlap_listener *overlap, ttn_facts *f,
                          ttn_error *err)
{
    static const char *const kinds[] = {"cluster", "sequence", "file"};
    const ttn_store_facts *facts = ttn_store_describe(s);
    ttn_subset *held_out;
    ttn_status status = ttn_split_store(s, r, &held_out, err);
    if (status != TTN_OK) return status;
    int64_t residues = 0;
    for (int64_t i = ttn_subset_next(held_out, 0); i >= 0; i = ttn_subset_next(held_out, i + 1))
        residues += ttn_store_offset(s, i + 1) - ttn_store_offset(s, i);
    ttn_facts_open(f, "split");
    ttn_facts_text(f, "by", "%s", kinds[r->kind]);
    if (r->kind == TTN_SPLIT_FILE)
        ttn_facts_text(f, "file", "%s", r->file);
    else
        ttn_facts_integer(f, "seed", r->seed);
    ttn_facts_integer(f, "held_out", ttn_subset_count(held_out));
    ttn_facts_integer(f, "held_out_residues", residues);
    tell_part(f, "percent_of_sequences", ttn_subset_count(held_out), facts->sequences);
    tell_part(f, "percent_of_residues", residues, facts->residues);
    if (overlap) status = tell_overlap(s, held_out, overlap, f, err);
    ttn_facts_close(f);
    ttn_subset_destroy(held_out);
    return status;
}

/* ---- a kind of file ---- */

static int recognise(const ttn_info_subject *s)
{
    static const char signature[] = "\x89HDF\r\n\x1A\n";
    if (s->n_head < sizeof signature - 1 || memcmp(s->head, signature, sizeof signature - 1) != 0) return 0;
    /* Other HDF5 files are somebody else's; a store's attribute `format` is the first that was written. */
    return memmem(s->head, s->n_head, TTN_STORE_FORMAT, sizeof TTN_STORE_FORMAT - 1) != NULL;
}

static ttn_status describe(const ttn_info_subject *subject, int verify, ttn_facts *f, ttn_error *err)
{
    ttn_store *s;
    ttn_status status = ttn_store_open(subject->path, 1, &s, err); /* what is only described is not read */
    if (status != TTN_OK) return status;
    status = ttn_store_tell(s, f, err);
    if (status == TTN_OK) ttn_findings_tell(ttn_store_describe(s), f);
    if (status == TTN_OK && verify) {
        status = ttn_store_verify(s, err);
        ttn_facts_flag(f, "verified", status == TTN_OK);
    }
    ttn_store_close(s);
    return status;
}

const ttn_info_kind ttn_info_store = {
    .name = "store",
    .what = "a store of sequences",
    .recognise = recognise,
    .describe = describe,
};
