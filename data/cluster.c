/* Each pass goes over all sequences and looks at the words whose hash lies in its own part of all hashes: a table leads from a
 * word to the first sequence that had it, and the next one that has it is joined to that one. */
#include <inttypes.h>
#include "core/memory.h"
#include "data/cluster.h"
#include "data/kmer.h"

enum {
    USUAL_K = 8,
    USUAL_K_SEQUENCES = 25000, /* see ttn_cluster_usual_k */
    GROWTH = 16,
    MOST_KMERS = 1000,
    LEAST_PLACES = 1024, /* a power of two, as all numbers of places */
};

/* A word and the first sequence that had it; number 0: a free place (the hash that is 0 takes 1, for the hash of another word
 * to be that is as likely as anything of 64 bits). */
typedef struct {
    uint64_t number;
    int64_t sequence;
} place;

typedef struct {
    const ttn_sweep_source *source;
    ttn_cluster_rules rules;
    ttn_kmers kmers;
    ttn_sweep *sweep;
    int64_t *parent;     /* (n) towards the first sequence of the cluster; at the end the cluster's number */
    uint64_t *smallest;  /* (TTN_SWEEP_SEQUENCES, kmers) of the sequences of a piece */
    int32_t *n_smallest; /* (TTN_SWEEP_SEQUENCES) */
    int64_t *hash;       /* (TTN_SWEEP_SEQUENCES) */
    place *table;        /* (n_place) */
    int64_t n_place, n_taken;
    ttn_sweep_tell tell;
    void *ctx;
} clustering;

/* ---- options ---- */

enum { K, KMERS, SEED, MEMORY, N_OPTIONS };

static const ttn_option_condition clusters[] = {TTN_WHEN_PACKED, {"data.split", .is = "cluster"}, {0}};

const ttn_option ttn_cluster_options[] = {
    [K] = {.name = "pack.k",
           .type = TTN_OPTION_INTEGER,
           .fallback = "0",
           .least = 0,
           .most = TTN_KMER_LONGEST,
           .unit = "residues",
           .help = "proteins that share a word of so many residues are related; 0: 8 to 12, by the number of sequences",
           .since = "0.1",
           .when = clusters},
    [KMERS] = {.name = "pack.kmers",
               .type = TTN_OPTION_INTEGER,
               .fallback = "20",
               .least = 1,
               .most = MOST_KMERS,
               .unit = "words",
               .help = "how many words of a protein are looked at",
               .since = "0.1",
               .when = clusters},
    [SEED] = {.name = "pack.seed",
              .type = TTN_OPTION_INTEGER,
              .fallback = "0",
              .help = "which words of a protein are looked at",
              .since = "0.1",
              .when = clusters},
    [MEMORY] = {.name = "pack.memory",
                .type = TTN_OPTION_SIZE,
                .fallback = "256MiB",
                .least = 1 << 20,
                .most = 0x1p50,
                .help = "memory for the table of words; a larger set takes more passes",
                .since = "0.1",
                .when = clusters},
};
const int ttn_cluster_n_options = N_OPTIONS;

ttn_status ttn_cluster_rules_of(const ttn_option_reader *o, ttn_cluster_rules *ret, ttn_error *err)
{
    ttn_cluster_rules r = {0};
    ttn_status status = o->get_integer(o->self, ttn_cluster_options[K].name, 0, &r.k, err);
    if (status == TTN_OK) status = o->get_integer(o->self, ttn_cluster_options[KMERS].name, 0, &r.kmers, err);
    if (status == TTN_OK) status = o->get_integer(o->self, ttn_cluster_options[SEED].name, 0, &r.seed, err);
    if (status == TTN_OK) status = o->get_integer(o->self, ttn_cluster_options[MEMORY].name, 0, &r.memory, err);
    if (status == TTN_OK) *ret = r;
    return status;
}

/* Two proteins of which each shows the 20 smallest of some 350 words share one by chance about 400 / (0.06 16^k) times (the
 * 20 residues are as good as 16 equally frequent ones, and what is looked at are 6 % of all words): with this k a protein is
 * joined to 0.03 unrelated ones at most, far below the 1 at which chains begin to reach everything. */
int64_t ttn_cluster_usual_k(int64_t n)
{
    int64_t k = USUAL_K;
    for (int64_t most = USUAL_K_SEQUENCES; n > most && k < TTN_KMER_LONGEST; most *= GROWTH)
        k++;
    return k;
}

/* ---- words ---- */

/* The `most` smallest hashes of the words of a sequence, each once, ascending; returns how many. */
static int32_t find_smallest(const ttn_kmers *m, uint64_t seed, const uint8_t *token, int64_t n, int32_t most,
                             uint64_t *smallest)
{
    ttn_kmer_reader r = {0};
    int32_t found = 0;
    uint64_t bound = UINT64_MAX; /* what is not below it is not among them */
    for (int64_t i = 0; i < n; i++) {
        if (!ttn_kmer_next(m, &r, token[i])) continue;
        const uint64_t number = ttn_kmer_mix(r.word ^ seed);
        if (number >= bound) continue;
        int32_t at = found;
        while (at > 0 && smallest[at - 1] > number)
            at--;
        if (at > 0 && smallest[at - 1] == number) continue;
        const int32_t last = found < most ? found : most - 1;
        for (int32_t k = last; k > at; k--)
            smallest[k] = smallest[k - 1];
        smallest[at] = number;
        if (found < most) found++;
        if (found == most) bound = smallest[most - 1];
    }
    return found;
}

/* The words of the sequences of a piece. One that has none (it is short, or all X) is related to what is equal to it: its own
 * hash stands for a word. */
static ttn_status find_words(clustering *c, const ttn_stretch *piece, ttn_error *err)
{
    const int32_t most = (int32_t)c->rules.kmers;
    const uint64_t seed = ttn_kmer_mix((uint64_t)c->rules.seed + 0x9E3779B97F4A7C15u); /* the golden ratio: not 0 */
    ttn_status status = c->source->hashes(c->source->self, piece->first, piece->n, c->hash, err);
    if (status != TTN_OK) return status;
#pragma omp parallel for schedule(dynamic, 64)
    for (int64_t i = 0; i < piece->n; i++) {
        uint64_t *smallest = c->smallest + i * most;
        const int64_t begin = piece->offset[i];
        c->n_smallest[i] =
            find_smallest(&c->kmers, seed, piece->token + begin, piece->offset[i + 1] - begin, most, smallest);
        if (c->n_smallest[i] > 0) continue;
        smallest[0] = ttn_kmer_mix((uint64_t)c->hash[i]);
        c->n_smallest[i] = 1;
    }
    return TTN_OK;
}

/* ---- joining ---- */

/* The first sequence of i's cluster; the way there is halved for the next time. */
static int64_t root_of(int64_t *parent, int64_t i)
{
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

static void join(int64_t *parent, int64_t a, int64_t b)
{
    a = root_of(parent, a);
    b = root_of(parent, b);
    if (a < b)
        parent[b] = a;
    else
        parent[a] = b;
}

/* Which of so many passes a word belongs to: by other bits than the order of words, whose small ones are what is kept. */
static int64_t pass_of(uint64_t number, int64_t passes)
{
    const uint64_t mixed = ttn_kmer_mix(number ^ 0xD1B54A32D192ED03u);
    return (int64_t)((unsigned __int128)mixed * (uint64_t)passes >> 64);
}

/* Sequence i has this word. 0: the table is full. */
static int meet(clustering *c, uint64_t number, int64_t i)
{
    if (number == 0) number = 1;
    uint64_t at = ttn_kmer_mix(number) & (uint64_t)(c->n_place - 1);
    while (c->table[at].number != 0 && c->table[at].number != number)
        at = (at + 1) & (uint64_t)(c->n_place - 1);
    if (c->table[at].number == number) {
        join(c->parent, c->table[at].sequence, i);
        return 1;
    }
    if (c->n_taken + c->n_taken / 4 >= c->n_place) return 0; /* four of five places are taken */
    c->table[at] = (place){number, i};
    c->n_taken++;
    return 1;
}

enum { PASS_DONE, PASS_FULL };

/* One of so many passes. *ret: PASS_FULL when the table was too small, and all is to be done again in more. */
static ttn_status run_pass(clustering *c, int64_t which, int64_t passes, int *ret, ttn_error *err)
{
    ttn_stretch piece;
    ttn_status status;
    *ret = PASS_DONE;
    for (int64_t k = 0; k < c->n_place; k++)
        c->table[k].number = 0;
    c->n_taken = 0;
    ttn_sweep_rewind(c->sweep);
    while ((status = ttn_sweep_next(c->sweep, &piece, err)) == TTN_OK) {
        status = find_words(c, &piece, err);
        if (status != TTN_OK) return status;
        for (int64_t i = 0; i < piece.n; i++)
            for (int32_t k = 0; k < c->n_smallest[i]; k++) {
                const uint64_t number = c->smallest[i * c->rules.kmers + k];
                if (pass_of(number, passes) != which) continue;
                if (meet(c, number, piece.first + i)) continue;
                *ret = PASS_FULL;
                return TTN_OK;
            }
        const double done = (double)(piece.first + piece.n) / (double)c->source->n;
        if (c->tell && c->tell(c->ctx, ((double)which + done) / (double)passes) != 0)
            return TTN_FAIL(err, TTN_ESTOPPED, "stopped while clusters were made; nothing was written");
    }
    return status == TTN_EOF ? TTN_OK : status;
}

/* ---- the whole ---- */

/* Places for all words, if they fit the memory. *ret_passes: about how many passes they take. */
static ttn_status plan_table(clustering *c, int64_t *ret_passes, ttn_error *err)
{
    const double words = (double)c->source->n * (double)c->rules.kmers;
    int64_t most = LEAST_PLACES;
    while (most * 2 <= c->rules.memory / (int64_t)sizeof *c->table)
        most *= 2;
    c->n_place = LEAST_PLACES;
    while (c->n_place < most && (double)c->n_place * 0.75 < words)
        c->n_place *= 2;
    c->table = ttn_alloc_or_say(c->n_place, sizeof *c->table, "the table of words", err);
    if (!c->table) return TTN_ENOMEM;
    *ret_passes = 1 + (int64_t)(words / (0.75 * (double)c->n_place));
    return TTN_OK;
}

static ttn_status prepare(clustering *c, ttn_error *err)
{
    const int64_t n = c->source->n;
    ttn_kmers_init(&c->kmers, c->source->alphabet, (int)c->rules.k);
    c->parent = ttn_alloc_or_say(n, sizeof *c->parent, "the clusters", err);
    c->smallest = ttn_alloc_or_say(TTN_SWEEP_SEQUENCES * c->rules.kmers, sizeof *c->smallest, "words", err);
    c->n_smallest = ttn_alloc_or_say(TTN_SWEEP_SEQUENCES, sizeof *c->n_smallest, "words", err);
    c->hash = ttn_alloc_or_say(TTN_SWEEP_SEQUENCES, sizeof *c->hash, "words", err);
    if (!c->parent || !c->smallest || !c->n_smallest || !c->hash) return TTN_ENOMEM;
    for (int64_t i = 0; i < n; i++)
        c->parent[i] = i;
    return ttn_sweep_create(c->source, &c->sweep, err);
}

/* Parents become clusters' numbers, in place: a parent comes before its children, so it has its number already. */
static ttn_status number_clusters(clustering *c, ttn_cluster_facts *facts, ttn_error *err)
{
    const int64_t n = c->source->n;
    int64_t *size = ttn_alloc_or_say(n, sizeof *size, "the sizes of clusters", err);
    if (!size) return TTN_ENOMEM;
    for (int64_t i = 0; i < n; i++) {
        const int64_t root = root_of(c->parent, i);
        c->parent[i] = root;
        facts->n += root == i;
        size[root]++;
        if (size[root] > facts->largest) facts->largest = size[root];
    }
    ttn_free(size);
    ttn_status status = TTN_OK;
    for (int64_t first = 0; first < n && status == TTN_OK; first += TTN_SWEEP_SEQUENCES) {
        const int64_t rest = n - first, now = rest < TTN_SWEEP_SEQUENCES ? rest : TTN_SWEEP_SEQUENCES;
        status = c->source->hashes(c->source->self, first, now, c->hash, err);
        for (int64_t i = first; status == TTN_OK && i < first + now; i++)
            c->parent[i] = c->parent[i] == i ? c->hash[i - first] : c->parent[c->parent[i]];
    }
    return status;
}

static void finish(clustering *c)
{
    ttn_sweep_destroy(c->sweep);
    ttn_free(c->parent);
    ttn_free(c->smallest);
    ttn_free(c->n_smallest);
    ttn_free(c->hash);
    ttn_free(c->table);
}

ttn_status ttn_cluster(const ttn_sweep_source *source, const ttn_cluster_rules *rules, ttn_sweep_tell tell, void *ctx,
                       int64_t **ret_key, ttn_cluster_facts *ret_facts, ttn_error *err)
{
    clustering c = {.source = source, .rules = *rules, .tell = tell, .ctx = ctx};
    ttn_cluster_facts facts = {0};
    int64_t passes = 0;
    *ret_key = NULL;
    if (c.rules.k == 0) c.rules.k = ttn_cluster_usual_k(source->n);
    ttn_status status = prepare(&c, err);
    if (status == TTN_OK) status = plan_table(&c, &passes, err);
    for (int64_t which = 0; which < passes && status == TTN_OK; which++) {
        int how = PASS_DONE;
        status = run_pass(&c, which, passes, &how, err);
        if (how == PASS_DONE) continue;
        passes *= 2; /* what was joined stays joined */
        which = -1;
    }
    if (status == TTN_OK) status = number_clusters(&c, &facts, err);
    if (status == TTN_OK) {
        facts.k = c.rules.k;
        facts.passes = passes;
        *ret_facts = facts;
        *ret_key = c.parent;
        c.parent = NULL;
    }
    finish(&c);
    return status;
}
