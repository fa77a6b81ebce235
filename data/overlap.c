/* The words of held-out proteins go into a table; all training proteins are read, and what they have of these is
 * marked; the held-out proteins' words are looked up again. A filter of one bit a word in front of the table spares nearly all
 * of the training set's words the way to memory. Both are larger than a core's caches: the words of training go through in
 * groups, whose bits, and then whose places, are all asked for before the first is looked at. */
#include "core/memory.h"
#include "data/kmer.h"
#include "data/overlap.h"
#include "data/seen.h"

#define PART_OF_COLLECTING 0.25 /* of the time, for a bar that moves evenly: from one profile */

enum { MOST_PROTEINS = 1 << 14, PLACES_A_WORD = 2, BITS_A_WORD = 16, LEAST_WORDS = 64, AT_ONCE = 64 };

/* One held-out protein that is looked at: its words are word[first] to word[first + n - 1]. */
typedef struct {
    int64_t first, n;
} protein;

typedef struct {
    ttn_kmers kmers;
    ttn_sweep *sweep;
    int64_t n; /* sequences */
    const ttn_subset *held_out;
    int64_t stride;    /* every so many of them are looked at */
    int64_t most;      /* words; a power of two, as the numbers of places and bits */
    uint64_t *place;   /* (PLACES_A_WORD most) words plus 1; 0: a free place */
    uint8_t *is_found; /* (PLACES_A_WORD most) in training */
    uint64_t *filter;  /* (BITS_A_WORD most) bits */
    uint32_t *at;      /* (most) the places of the words of the proteins, one behind the other */
    int64_t n_word;
    protein *protein; /* (MOST_PROTEINS) */
    int64_t n_protein;
    ttn_sweep_tell tell;
    void *ctx;
} overlap;

/* ---- the table ---- */

/* Where the search for a word begins. */
static uint64_t first_place(const overlap *o, uint64_t mixed)
{
    return mixed & (uint64_t)(PLACES_A_WORD * o->most - 1);
}

/* The place of a word, or the free one where it would be. */
static uint64_t place_of(const overlap *o, uint64_t word, uint64_t mixed)
{
    const uint64_t last = (uint64_t)(PLACES_A_WORD * o->most - 1);
    uint64_t at = first_place(o, mixed);
    while (o->place[at] != 0 && o->place[at] != word + 1)
        at = (at + 1) & last;
    return at;
}

/* The bit of a word: by other bits of the mix than its place. */
static uint64_t bit_of(const overlap *o, uint64_t mixed)
{
    return mixed >> 32 & (uint64_t)(BITS_A_WORD * o->most - 1);
}

static void add_protein(overlap *o, const uint8_t *token, int64_t n)
{
    if (o->n_protein == MOST_PROTEINS || o->n_word + n > o->most) return;
    ttn_kmer_reader r = {0};
    protein p = {.first = o->n_word};
    for (int64_t i = 0; i < n; i++) {
        if (!ttn_kmer_next(&o->kmers, &r, token[i])) continue;
        const uint64_t mixed = ttn_kmer_mix(r.word), at = place_of(o, r.word, mixed);
        o->place[at] = r.word + 1;
        const uint64_t bit = bit_of(o, mixed);
        o->filter[bit / 64] |= (uint64_t)1 << bit % 64;
        o->at[o->n_word] = (uint32_t)at;
        o->n_word++;
    }
    p.n = o->n_word - p.first;
    if (p.n == 0) return;
    o->protein[o->n_protein] = p;
    o->n_protein++;
}

/* ---- the passes ---- */

/* The piece is done, in a pass that takes so much of the time after what was before. */
static ttn_status tell_piece(const overlap *o, const ttn_stretch *piece, double before, double pass, ttn_error *err)
{
    const double done = (double)(piece->first + piece->n) / (double)o->n;
    if (!o->tell || o->tell(o->ctx, before + pass * done) == 0) return TTN_OK;
    return TTN_FAIL(err, TTN_ESTOPPED, "stopped while what is held out was compared with the training set");
}

static ttn_status collect(overlap *o, ttn_error *err)
{
    ttn_stretch piece;
    ttn_status status;
    while ((status = ttn_sweep_next(o->sweep, &piece, err)) == TTN_OK) {
        for (int64_t i = ttn_subset_next(o->held_out, piece.first); i >= 0 && i < piece.first + piece.n;
             i = ttn_subset_next(o->held_out, i + 1)) {
            if (ttn_subset_below(o->held_out, i) % o->stride != 0) continue;
            const int64_t begin = piece.offset[i - piece.first];
            add_protein(o, piece.token + begin, piece.offset[i - piece.first + 1] - begin);
        }
        status = tell_piece(o, &piece, 0, PART_OF_COLLECTING, err);
        if (status != TTN_OK) break;
    }
    return status == TTN_EOF ? TTN_OK : status;
}

typedef struct {
    uint64_t word, mixed;
} mixed_word;

/* Those of the n words, n <= AT_ONCE, whose bit is set come to the front; returns how many. */
static int filter_words(const overlap *o, mixed_word *w, int n)
{
    int n_set = 0;
    for (int k = 0; k < n; k++) {
        const uint64_t bit = bit_of(o, w[k].mixed);
        if (!(o->filter[bit / 64] >> bit % 64 & 1)) continue;
        __builtin_prefetch(&o->place[first_place(o, w[k].mixed)]);
        w[n_set] = w[k];
        n_set++;
    }
    return n_set;
}

static void mark_group(const overlap *o, mixed_word *w, int n)
{
    const int n_set = filter_words(o, w, n);
    for (int k = 0; k < n_set; k++) {
        const uint64_t at = place_of(o, w[k].word, w[k].mixed);
        if (o->place[at] == 0) continue;
#pragma omp atomic write
        o->is_found[at] = 1;
    }
}

static void mark_words(const overlap *o, const uint8_t *token, int64_t n)
{
    ttn_kmer_reader r = {0};
    mixed_word group[AT_ONCE];
    int n_group = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!ttn_kmer_next(&o->kmers, &r, token[i])) continue;
        const uint64_t mixed = ttn_kmer_mix(r.word);
        __builtin_prefetch(&o->filter[bit_of(o, mixed) / 64]);
        group[n_group] = (mixed_word){.word = r.word, .mixed = mixed};
        n_group++;
        if (n_group < AT_ONCE) continue;
        mark_group(o, group, n_group);
        n_group = 0;
    }
    mark_group(o, group, n_group);
}

static ttn_status mark(const overlap *o, ttn_error *err)
{
    ttn_stretch piece;
    ttn_status status;
    ttn_sweep_rewind(o->sweep);
    while ((status = ttn_sweep_next(o->sweep, &piece, err)) == TTN_OK) {
#pragma omp parallel for schedule(dynamic, 64)
        for (int64_t i = 0; i < piece.n; i++)
            if (!ttn_subset_has(o->held_out, piece.first + i))
                mark_words(o, piece.token + piece.offset[i], piece.offset[i + 1] - piece.offset[i]);
        status = tell_piece(o, &piece, PART_OF_COLLECTING, 1 - PART_OF_COLLECTING, err);
        if (status != TTN_OK) break;
    }
    return status == TTN_EOF ? TTN_OK : status;
}

static void count(const overlap *o, ttn_overlap *ret)
{
    for (int64_t p = 0; p < o->n_protein; p++) {
        int64_t n_found = 0;
        for (int64_t k = o->protein[p].first; k < o->protein[p].first + o->protein[p].n; k++)
            n_found += o->is_found[o->at[k]];
        ret->over_10 += 10 * n_found > o->protein[p].n;
        ret->over_50 += 2 * n_found > o->protein[p].n;
    }
    ret->looked_at = o->n_protein;
}

/* ---- the whole ---- */

static ttn_status prepare(overlap *o, const ttn_sweep_source *source, int64_t residues, ttn_error *err)
{
    static const char what[] = "the words of held-out proteins";
    ttn_kmers_init(&o->kmers, source->alphabet, TTN_OVERLAP_K);
    o->most = LEAST_WORDS; /* no larger than is needed: what fits the caches is faster */
    while (o->most < TTN_OVERLAP_WORDS && o->most < residues)
        o->most *= 2;
    o->place = ttn_alloc_or_say(PLACES_A_WORD * o->most, sizeof *o->place, what, err);
    o->is_found = ttn_alloc_or_say(PLACES_A_WORD * o->most, sizeof *o->is_found, what, err);
    o->filter = ttn_alloc_or_say(BITS_A_WORD * o->most / 64, sizeof *o->filter, what, err);
    o->at = ttn_alloc_or_say(o->most, sizeof *o->at, what, err);
    o->protein = ttn_alloc_or_say(MOST_PROTEINS, sizeof *o->protein, what, err);
    if (!o->place || !o->is_found || !o->filter || !o->at || !o->protein) return TTN_ENOMEM;
    return ttn_sweep_create(source, &o->sweep, err);
}

static void finish(overlap *o)
{
    ttn_sweep_destroy(o->sweep);
    ttn_free(o->place);
    ttn_free(o->is_found);
    ttn_free(o->filter);
    ttn_free(o->at);
    ttn_free(o->protein);
}

/* Residues of the held-out proteins. */
static ttn_status count_residues(const ttn_sweep_source *source, const ttn_subset *held_out, int64_t *ret,
                                 ttn_error *err)
{
    *ret = 0;
    int64_t *offset = ttn_alloc_or_say(TTN_SWEEP_SEQUENCES + 1, sizeof *offset, "the offsets of proteins", err);
    ttn_status status = offset ? TTN_OK : TTN_ENOMEM;
    for (int64_t first = 0; first < source->n && status == TTN_OK; first += TTN_SWEEP_SEQUENCES) {
        const int64_t rest = source->n - first, n = rest < TTN_SWEEP_SEQUENCES ? rest : TTN_SWEEP_SEQUENCES;
        status = source->offsets(source->self, first, n + 1, offset, err);
        for (int64_t i = 0; status == TTN_OK && i < n; i++)
            if (ttn_subset_has(held_out, first + i)) *ret += offset[i + 1] - offset[i];
    }
    ttn_free(offset);
    return status;
}

/* Every how many held-out proteins are looked at, so that those are spread over all and have few enough words. */
static int64_t stride_of(int64_t held_out, int64_t residues)
{
    const double words = 1.1 * (double)residues; /* those that are looked at may be longer than the others */
    int64_t stride = 1;
    while (held_out / stride > MOST_PROTEINS || words / (double)stride > TTN_OVERLAP_WORDS)
        stride++;
    return stride;
}

ttn_status ttn_overlap_count(const ttn_sweep_source *source, const ttn_subset *held_out, ttn_sweep_tell tell, void *ctx,
                             ttn_overlap *ret, ttn_error *err)
{
    overlap o = {.n = source->n, .held_out = held_out, .tell = tell, .ctx = ctx};
    *ret = (ttn_overlap){.held_out = ttn_subset_count(held_out)};
    if (ret->held_out == 0) return TTN_OK;
    int64_t residues;
    ttn_status status = count_residues(source, held_out, &residues, err);
    if (status == TTN_OK) status = prepare(&o, source, residues, err);
    if (status == TTN_OK) o.stride = stride_of(ret->held_out, residues);
    if (status == TTN_OK) status = collect(&o, err);
    if (status == TTN_OK) status = mark(&o, err);
    if (status == TTN_OK) count(&o, ret);
    finish(&o);
    return status;
}

/* ---- equal sequences ---- */

typedef void (*on_hash)(void *ctx, int64_t hash);

/* Of each sequence of one side. */
static ttn_status for_each_hash(const ttn_sweep_source *source, const ttn_subset *held_out, int is_held_out,
                                on_hash take, void *ctx, ttn_error *err)
{
    int64_t *hash = ttn_alloc_or_say(TTN_SWEEP_SEQUENCES, sizeof *hash, "the hashes of sequences", err);
    ttn_status status = hash ? TTN_OK : TTN_ENOMEM;
    for (int64_t first = 0; first < source->n && status == TTN_OK; first += TTN_SWEEP_SEQUENCES) {
        const int64_t rest = source->n - first, n = rest < TTN_SWEEP_SEQUENCES ? rest : TTN_SWEEP_SEQUENCES;
        status = source->hashes(source->self, first, n, hash, err);
        for (int64_t i = 0; i < n && status == TTN_OK; i++)
            if (ttn_subset_has(held_out, first + i) == is_held_out) take(ctx, hash[i]);
    }
    ttn_free(hash);
    return status;
}

typedef struct {
    int64_t *hash;
    int64_t n;
} hash_list;

static void list_hash(void *ctx, int64_t hash)
{
    hash_list *l = ctx;
    l->hash[l->n] = hash;
    l->n++;
}

ttn_status ttn_overlap_hashes(const ttn_sweep_source *source, const ttn_subset *held_out, int64_t **ret, ttn_error *err)
{
    hash_list l = {.hash =
                       ttn_alloc_or_say(ttn_subset_count(held_out), sizeof *l.hash, "the hashes of sequences", err)};
    *ret = NULL;
    if (!l.hash) return TTN_ENOMEM;
    ttn_status status = for_each_hash(source, held_out, 1, list_hash, &l, err);
    if (status == TTN_OK)
        *ret = l.hash;
    else
        ttn_free(l.hash);
    return status;
}

static ttn_hash128 key_of(int64_t hash)
{
    return (ttn_hash128){.low = (uint64_t)hash};
}

typedef struct {
    ttn_seen *wanted; /* the number of a hash: how many asked for it and were not found yet */
    int64_t n;
} equal_search;

static void find_equal(void *ctx, int64_t hash)
{
    equal_search *s = ctx;
    int64_t *n = ttn_seen_find(s->wanted, key_of(hash));
    if (!n) return;
    s->n += *n;
    *n = 0;
}

ttn_status ttn_overlap_equal(const ttn_sweep_source *source, const ttn_subset *held_out, const int64_t *hash, int64_t n,
                             int64_t *ret, ttn_error *err)
{
    equal_search s = {0};
    ttn_status status = ttn_seen_create("the hashes of sequences", &s.wanted, err);
    for (int64_t i = 0; i < n && status == TTN_OK; i++) {
        int64_t *asked;
        status = ttn_seen_add(s.wanted, key_of(hash[i]), 0, &asked, NULL, err);
        if (status == TTN_OK) (*asked)++;
    }
    if (status == TTN_OK) status = for_each_hash(source, held_out, 0, find_equal, &s, err);
    ttn_seen_destroy(s.wanted);
    *ret = s.n;
    return status;
}
