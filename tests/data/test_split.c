/* Clusters, splits and what they are worth: against counts made here in another way, and with relatives that were planted. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include "core/memory.h"
#include "core/rng.h"
#include "data/cluster.h"
#include "data/overlap.h"
#include "data/split.h"
#include "data/store_write.h"
#include "tests/harness/files.h"
#include "tests/harness/test.h"

/* ---- sets of sequences in memory ---- */

typedef struct {
    const ttn_alphabet *alphabet;
    int64_t n, n_token, room, token_room;
    int64_t *offset; /* (n + 1) */
    uint8_t *token;
} set;

static set new_set(const char *alphabet)
{
    set s = {.alphabet = ttn_alphabet_find(alphabet), .offset = calloc(1, sizeof(int64_t))};
    assert_non_null(s.offset);
    return s;
}

static void free_set(set *s)
{
    free(s->offset);
    free(s->token);
}

static void add(set *s, const uint8_t *token, int64_t n)
{
    s->offset = realloc(s->offset, (size_t)(s->n + 2) * sizeof *s->offset);
    while (s->n_token + n > s->token_room) {
        s->token_room = 2 * s->token_room + 1000;
        s->token = realloc(s->token, (size_t)s->token_room);
    }
    assert_true(s->offset && s->token);
    memcpy(s->token + s->n_token, token, (size_t)n);
    s->n_token += n;
    s->n++;
    s->offset[s->n] = s->n_token;
}

static void add_letters(set *s, const char *letters)
{
    uint8_t token[1000];
    const size_t n = strlen(letters);
    for (size_t i = 0; i < n; i++)
        token[i] = s->alphabet->map[(unsigned char)letters[i]];
    add(s, token, (int64_t)n);
}

static int64_t length_of(const set *s, int64_t i)
{
    return s->offset[i + 1] - s->offset[i];
}

static ttn_status set_offsets(void *self, int64_t first, int64_t n, int64_t *into, ttn_error *err)
{
    (void)err;
    memcpy(into, ((set *)self)->offset + first, (size_t)n * sizeof *into);
    return TTN_OK;
}

static ttn_status set_tokens(void *self, int64_t first, int64_t n, uint8_t *into, ttn_error *err)
{
    (void)err;
    memcpy(into, ((set *)self)->token + first, (size_t)n);
    return TTN_OK;
}

static int64_t hash_of(const set *s, int64_t i)
{
    char letter[TTN_MAX_TOKENS], *letters = malloc((size_t)length_of(s, i));
    assert_non_null(letters);
    ttn_alphabet_letters(s->alphabet, letter);
    for (int64_t k = 0; k < length_of(s, i); k++)
        letters[k] = letter[s->token[s->offset[i] + k]];
    const int64_t hash = (int64_t)ttn_hash64(letters, (size_t)length_of(s, i), 0);
    free(letters);
    return hash;
}

static ttn_status set_hashes(void *self, int64_t first, int64_t n, int64_t *into, ttn_error *err)
{
    (void)err;
    for (int64_t i = 0; i < n; i++)
        into[i] = hash_of(self, first + i);
    return TTN_OK;
}

static ttn_sweep_source source_of(set *s)
{
    return (ttn_sweep_source){s, s->alphabet, s->n, set_offsets, set_tokens, set_hashes};
}

static set sample(const char *path)
{
    ttn_fasta *f;
    const ttn_fasta_record *r;
    ttn_error err = {0};
    set s = new_set("esm");
    assert_ok(ttn_fasta_open_path(path, NULL, &f, &err), &err);
    ttn_status status;
    while ((status = ttn_fasta_next(f, &r, &err)) == TTN_OK)
        add(&s, r->token, r->n);
    assert_int_equal(status, TTN_EOF);
    ttn_fasta_close(f);
    return s;
}

/* The sample, and of every other protein three relatives, far behind it: with one residue in eight another, and cut at both
 * ends. family[i]: the number of the protein that i comes from. */
static set with_relatives(int64_t *family)
{
    const set from = sample("data/sample/proteins-500.fasta.gz");
    set s = new_set("esm");
    for (int64_t copy = 0; copy < 4; copy++)
        for (int64_t i = 0; i < from.n; i += copy == 0 ? 1 : 2) {
            const int64_t n = length_of(&from, i), cut = copy == 0 || n < 60 ? 0 : n / 20;
            uint8_t *token = malloc((size_t)n);
            assert_non_null(token);
            memcpy(token, from.token + from.offset[i], (size_t)n);
            for (int64_t k = 0; copy > 0 && k < n; k++)
                if (ttn_rng_below(5, (uint64_t)copy, (uint64_t)(from.offset[i] + k), 8) == 0)
                    token[k] =
                        s.alphabet->residue[ttn_rng_below(6, (uint64_t)copy, (uint64_t)(from.offset[i] + k), 20)];
            family[s.n] = i;
            add(&s, token + cut, n - 2 * cut);
            free(token);
        }
    set done = from;
    free_set(&done);
    return s;
}

enum { MOST_RELATIVES = 500 + 3 * 250 };

static const ttn_cluster_rules usual = {.kmers = 20, .memory = 256 << 20};

static int64_t *clusters_of(set *s, const ttn_cluster_rules *rules, ttn_cluster_facts *facts)
{
    int64_t *key;
    ttn_error err = {0};
    const ttn_sweep_source source = source_of(s);
    assert_ok(ttn_cluster(&source, rules, NULL, NULL, &key, facts, &err), &err);
    return key;
}

static void check_same_keys(const int64_t *a, const int64_t *b, int64_t n)
{
    assert_same_bits(a, b, (size_t)n * sizeof *a);
}

/* ---- clusters, made in the plainest way ---- */

/* The same mix and the same code, written once more: it is what stores hold. */
static uint64_t plain_number(const char *word, int k, int64_t seed)
{
    static const char residues[] = "ACDEFGHIKLMNPQRSTVWY";
    uint64_t x[2] = {(uint64_t)seed + 0x9E3779B97F4A7C15u, 0};
    for (int i = 0; i < k; i++) {
        const char *place = strchr(residues, word[i]);
        if (!place) return 0;
        x[1] = x[1] * 32 + (uint64_t)(place - residues);
    }
    for (int i = 0; i < 2; i++) {
        if (i == 1) x[1] ^= x[0];
        x[i] = (x[i] ^ x[i] >> 30) * 0xBF58476D1CE4E5B9u;
        x[i] = (x[i] ^ x[i] >> 27) * 0x94D049BB133111EBu;
        x[i] ^= x[i] >> 31;
    }
    return x[1];
}

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* All words sorted, each once, the first 20. */
static int64_t plain_smallest(const set *s, int64_t i, int k, int64_t seed, int64_t most, uint64_t *into)
{
    char letter[TTN_MAX_TOKENS], word[32];
    uint64_t *all = calloc((size_t)length_of(s, i) + 1, sizeof *all);
    int64_t n = 0, kept = 0;
    assert_non_null(all);
    ttn_alphabet_letters(s->alphabet, letter);
    for (int64_t at = 0; at + k <= length_of(s, i); at++) {
        for (int j = 0; j < k; j++)
            word[j] = letter[s->token[s->offset[i] + at + j]];
        all[n] = plain_number(word, k, seed);
        n += all[n] != 0;
    }
    qsort(all, (size_t)n, sizeof *all, compare_numbers);
    for (int64_t j = 0; j < n && kept < most; j++)
        if (j == 0 || all[j] != all[j - 1]) into[kept++] = all[j];
    free(all);
    return kept;
}

static int share_one(const uint64_t *a, int64_t n_a, const uint64_t *b, int64_t n_b)
{
    for (int64_t i = 0; i < n_a; i++)
        for (int64_t j = 0; j < n_b; j++)
            if (a[i] == b[j]) return 1;
    return 0;
}

static void clusters_are_what_shared_words_join(void **state)
{
    (void)state;
    int64_t family[MOST_RELATIVES];
    set all = with_relatives(family), s = new_set("esm");
    for (int64_t i = 0; i < all.n; i++) /* every pair is compared */
        if (family[i] % 10 == 0) add(&s, all.token + all.offset[i], length_of(&all, i));
    for (int way = 0; way < 3; way++) {
        ttn_cluster_rules rules = {.k = way == 1 ? 5 : 8, .kmers = way == 2 ? 3 : 20, .seed = way, .memory = 1 << 20};
        uint64_t(*smallest)[20] = calloc((size_t)s.n, sizeof *smallest);
        int64_t *n_smallest = calloc((size_t)s.n, sizeof *n_smallest), *first = calloc((size_t)s.n, sizeof *first);
        assert_true(smallest && n_smallest && first);
        for (int64_t i = 0; i < s.n; i++) {
            n_smallest[i] = plain_smallest(&s, i, (int)rules.k, rules.seed, rules.kmers, smallest[i]);
            first[i] = i;
        }
        int changed = 1;
        while (changed) { /* the smallest number of what is joined, until nothing changes */
            changed = 0;
            for (int64_t i = 0; i < s.n; i++)
                for (int64_t j = 0; j < i; j++) {
                    if (first[i] == first[j] || !share_one(smallest[i], n_smallest[i], smallest[j], n_smallest[j]))
                        continue;
                    if (first[i] > first[j])
                        first[i] = first[j];
                    else
                        first[j] = first[i];
                    changed = 1;
                }
        }
        ttn_cluster_facts facts;
        int64_t *key = clusters_of(&s, &rules, &facts), n_cluster = 0;
        for (int64_t i = 0; i < s.n; i++) {
            assert_int_equal(key[i], hash_of(&s, first[i]));
            n_cluster += first[i] == i;
        }
        assert_int_equal(facts.n, n_cluster);
        assert_true(n_cluster > 1 && n_cluster < s.n);
        ttn_free(key);
        free(smallest);
        free(n_smallest);
        free(first);
    }
    free_set(&all);
    free_set(&s);
}

static void planted_relatives_are_in_one_cluster(void **state)
{
    (void)state;
    int64_t family[MOST_RELATIVES];
    set s = with_relatives(family);
    ttn_cluster_facts facts;
    int64_t *key = clusters_of(&s, &usual, &facts), n_apart = 0;
    assert_int_equal(facts.k, 8);
    for (int64_t i = 500; i < s.n; i++)
        n_apart += key[i] != key[family[i]];
    /* Words of 8 residues survive one change in 8 with probability (7/8)^8 = 1/3; short proteins have few of them. */
    assert_true(n_apart <= (s.n - 500) / 20);
    assert_true(facts.n > 400 && facts.n < 600 && facts.largest < 40);
    ttn_free(key);
    free_set(&s);
}

/* 1,250 proteins of 100 words in tables of 64 and of 16 thousand places. */
static void clusters_depend_neither_on_memory_nor_on_threads(void **state)
{
    (void)state;
    int64_t family[MOST_RELATIVES];
    set s = with_relatives(family);
    ttn_cluster_facts facts, first_facts;
    ttn_cluster_rules rules = usual;
    rules.kmers = 100;
    int64_t *expected = clusters_of(&s, &rules, &first_facts);
    assert_int_equal(first_facts.passes, 1);
    static const int64_t memories[] = {1 << 20, 1 << 18};
    for (size_t i = 0; i < sizeof memories / sizeof *memories; i++) {
        rules.memory = memories[i];
        int64_t *key = clusters_of(&s, &rules, &facts);
        assert_true(facts.passes > 1);
        check_same_keys(key, expected, s.n);
        assert_true(facts.n == first_facts.n && facts.largest == first_facts.largest);
        ttn_free(key);
    }
    rules = usual;
    rules.kmers = 100;
    const int threads = omp_get_max_threads();
    for (int n = 1; n <= 3; n += 2) {
        omp_set_num_threads(n);
        int64_t *key = clusters_of(&s, &rules, &facts);
        check_same_keys(key, expected, s.n);
        ttn_free(key);
    }
    omp_set_num_threads(threads);
    ttn_free(expected);
    free_set(&s);
}

/* Words are dealt to passes by chance: now and then one gets more than its table holds, and all begins again in more passes. */
static void a_table_that_is_full_is_no_harm(void **state)
{
    (void)state;
    set all = sample("data/sample/proteins-500.fasta.gz"), s = new_set("esm");
    for (int64_t i = 0; i < all.n; i += 5)
        if (length_of(&all, i) > 250) add(&s, all.token + all.offset[i], length_of(&all, i));
    ttn_cluster_rules rules = {.k = 7, .kmers = 200};
    int n_full = 0;
    for (rules.seed = 0; rules.seed < 20; rules.seed++) {
        ttn_cluster_facts facts;
        rules.memory = 1 << 20;
        int64_t *expected = clusters_of(&s, &rules, &facts);
        assert_true(facts.n > 1);
        rules.memory = 1 << 14; /* 1,024 places */
        int64_t *key = clusters_of(&s, &rules, &facts);
        check_same_keys(key, expected, s.n);
        n_full += facts.passes > 1 + s.n * rules.kmers / 768;
        ttn_free(key);
        ttn_free(expected);
    }
    print_message("# full in %d of 20\n", n_full);
    assert_true(n_full > 0);
    free_set(&all);
    free_set(&s);
}

static void clusters_do_not_depend_on_the_vocabulary(void **state)
{
    (void)state;
    int64_t family[MOST_RELATIVES];
    set s = with_relatives(family), other = new_set("bert");
    char letter[TTN_MAX_TOKENS];
    ttn_alphabet_letters(s.alphabet, letter);
    for (int64_t i = 0; i < s.n; i++) {
        uint8_t *token = malloc((size_t)length_of(&s, i));
        assert_non_null(token);
        for (int64_t k = 0; k < length_of(&s, i); k++)
            token[k] = other.alphabet->map[(unsigned char)letter[s.token[s.offset[i] + k]]];
        add(&other, token, length_of(&s, i));
        free(token);
    }
    ttn_cluster_facts facts;
    int64_t *key = clusters_of(&s, &usual, &facts), *other_key = clusters_of(&other, &usual, &facts);
    check_same_keys(key, other_key, s.n);
    ttn_free(key);
    ttn_free(other_key);
    free_set(&s);
    free_set(&other);
}

static void sequences_without_a_word_are_joined_only_to_equal_ones(void **state)
{
    (void)state;
    static const char *const letters[] = {
        "MKV",
        "MKV",
        "MKVL",
        "XXXXXXXXXXXXXXXXXXXX",
        "XXXXXXXXXXXXXXXXXXXX",
        "XXXXXXXXXXXXXXXXXXXXX",
        "MKVLAGGXMKVLAGGXMKVLAGG", /* seven between every two X */
        "WMKVLAGGXMKVLAGGXMKVLAGG",
        "WWMKVLAGX", /* shares "WMKVLAGG" with none */
    };
    static const int first[] = {0, 0, 2, 3, 3, 5, 6, 7, 8};
    set s = new_set("esm");
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        add_letters(&s, letters[i]);
    ttn_cluster_facts facts;
    int64_t *key = clusters_of(&s, &usual, &facts);
    for (int64_t i = 0; i < s.n; i++)
        assert_int_equal(key[i], hash_of(&s, first[i]));
    assert_int_equal(facts.n, 7);
    assert_int_equal(facts.largest, 2);
    ttn_free(key);
    free_set(&s);
}

/* k grows so that unrelated proteins stay apart: shown with random ones at the upper end of k = 8. */
static void unrelated_proteins_are_hardly_ever_joined(void **state)
{
    (void)state;
    assert_int_equal(ttn_cluster_usual_k(1), 8);
    assert_int_equal(ttn_cluster_usual_k(25000), 8);
    assert_int_equal(ttn_cluster_usual_k(25001), 9);
    assert_int_equal(ttn_cluster_usual_k(400001), 10);
    assert_int_equal(ttn_cluster_usual_k(100000000), 11);
    assert_int_equal(ttn_cluster_usual_k(INT64_C(1) << 40), 12);
    const set from = sample("data/sample/proteins-500.fasta.gz"); /* for its composition */
    set s = new_set("esm");
    const int64_t n = ttn_scaled(10000, 2000);
    for (int64_t i = 0; i < n; i++) {
        uint8_t token[350];
        for (int k = 0; k < 350; k++)
            token[k] = from.token[ttn_rng_below(8, (uint64_t)i, (uint64_t)k, (uint64_t)from.n_token)];
        add(&s, token, 350);
    }
    ttn_cluster_facts facts;
    int64_t *key = clusters_of(&s, &(ttn_cluster_rules){.k = 8, .kmers = 20, .memory = 256 << 20}, &facts);
    print_message("# %d of %d random proteins joined to another, the largest cluster has %d\n", (int)(n - facts.n),
                  (int)n, (int)facts.largest);
    assert_true(n - facts.n <= n / 50);
    ttn_free(key);
    set done = from;
    free_set(&done);
    free_set(&s);
}

static int stop_at_once(void *ctx, double part)
{
    *(double *)ctx = part;
    return 1;
}

static void clustering_can_be_stopped(void **state)
{
    (void)state;
    set s = sample("data/sample/proteins-500.fasta.gz");
    const ttn_sweep_source source = source_of(&s);
    int64_t *key;
    ttn_cluster_facts facts;
    ttn_error err = {0};
    double part = 0;
    assert_fails(ttn_cluster(&source, &usual, stop_at_once, &part, &key, &facts, &err), TTN_ESTOPPED, &err, "stopped");
    assert_true(part > 0 && part <= 1);
    assert_null(key);
    free_set(&s);
}

/* ---- splits ---- */

static void the_part_that_is_held_out_is_what_was_asked_for(void **state)
{
    (void)state;
    const int64_t n = 50000;
    static const double parts[] = {0, 0.01, 0.05, 0.5, 0.9};
    int64_t before = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const ttn_split_rules r = {.valid = parts[i]}, other = {.valid = parts[i], .seed = 1};
        int64_t held_out = 0, also = 0, lost = 0;
        for (int64_t k = 0; k < n; k++) {
            const int is = ttn_split_holds_out(&r, k * 1234577);
            held_out += is;
            also += is && ttn_split_holds_out(&other, k * 1234577);
            if (i > 0 && ttn_split_holds_out(&(ttn_split_rules){.valid = parts[i - 1]}, k * 1234577)) lost += !is;
        }
        /* five standard deviations of a binomial count */
        const double expected = (double)n * parts[i], bound = 5 * sqrt((double)n * parts[i] * (1 - parts[i]));
        assert_at_most(fabs((double)held_out - expected), bound, "count held out");
        assert_at_most(fabs((double)also - expected * parts[i]), 5 * sqrt(expected * parts[i]),
                       "held out by two seeds");
        assert_int_equal(lost, 0); /* more are held out, and none less */
        assert_true(held_out >= before);
        before = held_out;
    }
}

/* A store of a set, in two files. */
static ttn_store *store_of(const set *s, const int64_t *key)
{
    ttn_store_writer *w;
    ttn_store *store;
    ttn_error err = {0};
    const ttn_store_kind kind = {.alphabet = s->alphabet, .titin_version = "0"};
    assert_ok(ttn_store_create(in_folder("split.h5"), &kind, &w, &err), &err);
    for (int64_t i = 0; i < s->n; i++) {
        const ttn_fasta_record r = {.id = "x", .header = "x", .token = s->token + s->offset[i], .n = length_of(s, i)};
        assert_ok(ttn_store_add(w, &r, NULL, &err), &err);
        if (i + 1 == s->n / 3 || i + 1 == s->n / 2 || i + 1 == s->n) {
            const ttn_store_source source = {.name = i + 1 == s->n       ? "b/y.fa"
                                                     : i + 1 == s->n / 3 ? "a/x.fa"
                                                                         : "b/x.fa",
                                             .link = "",
                                             .hash = ""};
            assert_ok(ttn_store_end_source(w, &source, &err), &err);
        }
    }
    if (key) assert_ok(ttn_store_set_clusters(w, &(ttn_store_clustering){.k = 8, .kmers = 20}, key, &err), &err);
    assert_ok(ttn_store_commit(w, &err), &err);
    ttn_store_destroy(w);
    assert_ok(ttn_store_open(in_folder("split.h5"), 0, &store, &err), &err);
    return store;
}

/* Of the held-out sequences with a word of 10 residues, those with more than a part of these in training: words sorted, then
 * looked up one by one. */
typedef struct {
    int64_t looked_at, over_10, over_50;
} plain_counts;

static plain_counts plain_overlap(const set *s, const ttn_subset *held_out)
{
    enum { K = 10 };
    char letter[TTN_MAX_TOKENS];
    ttn_alphabet_letters(s->alphabet, letter);
    uint64_t *word = calloc((size_t)s->n_token, sizeof *word);
    assert_non_null(word);
    plain_counts counts = {0};
    int64_t n = 0;
    for (int training = 1; training >= 0; training--) {
        for (int64_t i = 0; i < s->n; i++) {
            if (ttn_subset_has(held_out, i) == training) continue;
            int64_t n_word = 0, n_found = 0;
            for (int64_t at = s->offset[i]; at + K <= s->offset[i + 1]; at++) {
                uint64_t number = 0;
                int is_word = 1;
                for (int64_t k = at; k < at + K; k++) {
                    is_word = is_word && ttn_alphabet_is_residue(s->alphabet, s->token[k]);
                    number = number * 26 + (uint64_t)(letter[s->token[k]] - 'A');
                }
                if (!is_word) continue;
                n_word++;
                if (training)
                    word[n++] = number;
                else
                    n_found += bsearch(&number, word, (size_t)n, sizeof *word, compare_numbers) != NULL;
            }
            if (training || n_word == 0) continue;
            counts.looked_at++;
            counts.over_10 += (double)n_found > 0.1 * (double)n_word;
            counts.over_50 += (double)n_found > 0.5 * (double)n_word;
        }
        if (training) qsort(word, (size_t)n, sizeof *word, compare_numbers);
    }
    free(word);
    return counts;
}

static ttn_subset *split(ttn_store *store, const ttn_split_rules *r)
{
    ttn_subset *held_out;
    ttn_error err = {0};
    assert_ok(ttn_split_store(store, r, &held_out, &err), &err);
    return held_out;
}

static void check_overlap(set *s, const ttn_subset *held_out, int64_t *ret_over_50)
{
    ttn_overlap o;
    ttn_error err = {0};
    const ttn_sweep_source source = source_of(s);
    const plain_counts expected = plain_overlap(s, held_out);
    assert_ok(ttn_overlap_count(&source, held_out, NULL, NULL, &o, &err), &err);
    assert_int_equal(o.held_out, ttn_subset_count(held_out));
    assert_int_equal(o.looked_at, expected.looked_at);
    assert_int_equal(o.over_10, expected.over_10);
    assert_int_equal(o.over_50, expected.over_50);
    *ret_over_50 = o.over_50;
}

/* Relatives as near as two of three residues out of 8 are: words of 10 stay in a quarter of the places. */
static void a_split_by_clusters_keeps_relatives_together_and_one_by_sequence_does_not(void **state)
{
    (void)state;
    int64_t family[MOST_RELATIVES], seen = 0, seen_by_sequence = 0;
    set s = with_relatives(family);
    /* and copies that are nearly the same */
    for (int64_t i = 0; i < 500; i += 5)
        if (length_of(&s, i) > 50) add(&s, s.token + s.offset[i], length_of(&s, i) - 1);
    ttn_cluster_facts facts;
    int64_t *key = clusters_of(&s, &usual, &facts);
    ttn_store *store = store_of(&s, key);
    int64_t n_held_out = 0;
    for (int64_t seed = 0; seed < 3; seed++) {
        int64_t over_50;
        ttn_subset *held_out = split(store, &(ttn_split_rules){.kind = TTN_SPLIT_CLUSTER, .valid = 0.2, .seed = seed});
        for (int64_t i = 500; i < MOST_RELATIVES; i++)
            if (key[i] == key[family[i]])
                assert_int_equal(ttn_subset_has(held_out, i), ttn_subset_has(held_out, family[i]));
        check_overlap(&s, held_out, &over_50);
        n_held_out += ttn_subset_count(held_out);
        seen += over_50;
        ttn_subset_destroy(held_out);
        held_out = split(store, &(ttn_split_rules){.kind = TTN_SPLIT_SEQUENCE, .valid = 0.2, .seed = seed});
        check_overlap(&s, held_out, &over_50);
        seen_by_sequence += over_50;
        ttn_subset_destroy(held_out);
    }
    assert_true(100 * seen <= n_held_out);
    assert_true(seen_by_sequence > 10 * seen && seen_by_sequence > 30);
    ttn_store_close(store);
    ttn_free(key);
    free_set(&s);
}

static void a_sequence_stays_on_its_side_when_others_are_added(void **state)
{
    (void)state;
    set s = sample("data/sample/proteins-500.fasta.gz"), half = new_set("esm");
    for (int64_t i = 0; i < s.n; i += 2)
        add(&half, s.token + s.offset[i], length_of(&s, i));
    const ttn_split_rules r = {.kind = TTN_SPLIT_SEQUENCE, .valid = 0.3};
    ttn_store *store = store_of(&s, NULL);
    ttn_subset *all = split(store, &r);
    ttn_store_close(store);
    store = store_of(&half, NULL);
    ttn_subset *some = split(store, &r);
    ttn_store_close(store);
    assert_true(ttn_subset_count(some) > 40);
    for (int64_t i = 0; i < half.n; i++)
        assert_int_equal(ttn_subset_has(some, i), ttn_subset_has(all, 2 * i));
    ttn_subset_destroy(all);
    ttn_subset_destroy(some);
    free_set(&s);
    free_set(&half);
}

static void a_file_is_held_out_by_its_name(void **state)
{
    (void)state;
    set s = sample("data/sample/proteins-500.fasta.gz");
    ttn_store *store = store_of(&s, NULL);
    static const struct {
        const char *name;
        int first, end;
    } files[] = {{"a/x.fa", 0, 166}, {"b/x.fa", 166, 250}, {"y.fa", 250, 500}, {"b/y.fa", 250, 500}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        ttn_subset *held_out = split(store, &(ttn_split_rules){.kind = TTN_SPLIT_FILE, .file = files[i].name});
        for (int64_t k = 0; k < s.n; k++)
            assert_int_equal(ttn_subset_has(held_out, k), k >= files[i].first && k < files[i].end);
        ttn_subset_destroy(held_out);
    }
    static const struct {
        const char *name, *told;
    } refused[] = {
        {"", "data.valid_file does not say which one; it may be 'b/y.fa'"},
        {"x.fa", "2 of its files are called 'x.fa'"},
        {"z.fa", "none of its files is 'z.fa' (data.valid_file); the first is 'a/x.fa'"},
    };
    ttn_subset *held_out;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        ttn_error err = {0};
        const ttn_split_rules r = {.kind = TTN_SPLIT_FILE, .file = refused[i].name};
        assert_fails(ttn_split_store(store, &r, &held_out, &err), TTN_EINVAL, &err, refused[i].told);
        assert_null(held_out);
    }
    ttn_error err = {0};
    assert_fails(ttn_split_store(store, &(ttn_split_rules){.kind = TTN_SPLIT_CLUSTER, .valid = 0.1}, &held_out, &err),
                 TTN_EINVAL, &err, "was packed without clusters");
    ttn_store_close(store);
    free_set(&s);
}

static void nothing_to_train_on_is_refused(void **state)
{
    (void)state;
    set s = new_set("esm");
    add_letters(&s, "MKV");
    add_letters(&s, "MKW");
    ttn_store *store = store_of(&s, NULL);
    int n_refused = 0;
    for (int64_t seed = 0; seed < 20; seed++) {
        ttn_subset *held_out;
        ttn_error err = {0};
        const ttn_split_rules r = {.kind = TTN_SPLIT_SEQUENCE, .valid = 0.9, .seed = seed};
        if (ttn_split_store(store, &r, &held_out, &err) == TTN_OK) {
            assert_true(ttn_subset_count(held_out) < 2);
            ttn_subset_destroy(held_out);
            continue;
        }
        assert_contains(err.text, "nothing is left to train on");
        n_refused++;
    }
    assert_true(n_refused > 8);
    ttn_store_close(store);
    free_set(&s);
}

/* More proteins than are looked at: those that are, are spread over all. */
static void of_many_held_out_proteins_some_everywhere_are_looked_at(void **state)
{
    (void)state;
    enum { N = 40000, SHARED = 10000 };
    set s = new_set("esm");
    uint8_t token[14], common[14];
    for (int64_t i = 0; i < N; i++) {
        for (int k = 0; k < 14; k++) {
            token[k] = s.alphabet->residue[ttn_rng_below(9, (uint64_t)i, (uint64_t)k, 20)];
            common[k] = s.alphabet->residue[k];
        }
        add(&s, i % 4 == 0 ? common : token, 14); /* a quarter are the same, and one of them is for training */
    }
    ttn_subset *held_out;
    ttn_error err = {0};
    ttn_overlap o;
    assert_ok(ttn_subset_create(N, &held_out, &err), &err);
    for (int64_t i = 1; i < N; i++)
        ttn_subset_add(held_out, i);
    ttn_subset_close(held_out);
    const ttn_sweep_source source = source_of(&s);
    assert_ok(ttn_overlap_count(&source, held_out, NULL, NULL, &o, &err), &err);
    assert_int_equal(o.held_out, N - 1);
    assert_true(o.looked_at > 10000 && o.looked_at <= 16384);
    assert_at_most(fabs((double)o.over_50 / (double)o.looked_at - 0.25), 0.02, "part of them that is seen");
    ttn_subset_destroy(held_out);
    free_set(&s);
}

typedef struct {
    int calls, stops_at; /* 0: never */
    double part;         /* that was told last */
} overlap_listener;

static int hear_overlap(void *ctx, double part)
{
    overlap_listener *l = ctx;
    assert_true(part > l->part && part <= 1);
    l->part = part;
    l->calls++;
    return l->calls == l->stops_at;
}

/* Two pieces, each of which is gone through twice. */
static void the_overlap_says_how_far_it_is_and_stops_in_each_pass(void **state)
{
    (void)state;
    enum { N = TTN_SWEEP_SEQUENCES + 10, CALLS = 4 };
    set s = new_set("esm");
    uint8_t token[12];
    memset(token, s.alphabet->residue[0], sizeof token);
    for (int64_t i = 0; i < N; i++)
        add(&s, token, sizeof token);
    ttn_subset *held_out;
    ttn_error err = {0};
    ttn_overlap o;
    assert_ok(ttn_subset_create(N, &held_out, &err), &err);
    ttn_subset_add(held_out, 3);
    ttn_subset_close(held_out);
    const ttn_sweep_source source = source_of(&s);
    overlap_listener all = {0};
    assert_ok(ttn_overlap_count(&source, held_out, hear_overlap, &all, &o, &err), &err);
    assert_int_equal(all.calls, CALLS);
    assert_true(all.part == 1);
    assert_int_equal(o.over_50, 1);
    for (int k = 1; k <= CALLS; k++) {
        overlap_listener l = {.stops_at = k};
        ttn_error why = {0};
        assert_fails(ttn_overlap_count(&source, held_out, hear_overlap, &l, &o, &why), TTN_ESTOPPED, &why, "stopped");
        assert_int_equal(l.calls, k);
    }
    ttn_subset_destroy(held_out);
    free_set(&s);
}

/* Of what is asked for, what stands on the training side is counted, each as often as it was asked. */
static void equal_sequences_are_counted_on_the_training_side_alone(void **state)
{
    (void)state;
    enum { N = TTN_SWEEP_SEQUENCES + 10 };
    set s = new_set("esm");
    uint8_t token[4];
    for (int64_t i = 0; i < N; i++) { /* number i and i + N / 2 are equal */
        const int64_t number = i % (N / 2);
        for (int k = 0; k < 4; k++)
            token[k] = s.alphabet->residue[(number >> (4 * k)) & 15];
        add(&s, token, 4);
    }
    ttn_subset *held_out;
    ttn_error err = {0};
    assert_ok(ttn_subset_create(N, &held_out, &err), &err);
    for (int64_t i = 0; i < 5; i++)
        ttn_subset_add(held_out, i); /* their equals are trained on */
    for (int64_t i = 10; i < 17; i++) {
        ttn_subset_add(held_out, i); /* both are held out */
        ttn_subset_add(held_out, i + N / 2);
    }
    ttn_subset_close(held_out);
    const ttn_sweep_source source = source_of(&s);
    int64_t *hash, n;
    assert_ok(ttn_overlap_hashes(&source, held_out, &hash, &err), &err);
    assert_ok(ttn_overlap_equal(&source, held_out, hash, ttn_subset_count(held_out), &n, &err), &err);
    assert_int_equal(n, 5);
    const int64_t asked[] = {hash[0], hash[0], hash[5], hash[4], 0, hash[0] + 1};
    assert_ok(ttn_overlap_equal(&source, held_out, asked, 6, &n, &err), &err);
    assert_int_equal(n, 3);
    assert_ok(ttn_overlap_equal(&source, held_out, NULL, 0, &n, &err), &err);
    assert_int_equal(n, 0);
    ttn_free(hash);
    ttn_subset_destroy(held_out);
    free_set(&s);
}

/* The set of `make data`, in test-long: at most 1 % of what is held out has more than half of its 10-mers in training. */
static void of_twenty_thousand_proteins_hardly_one_held_out_is_seen(void **state)
{
    (void)state;
    static const char path[] = "data/downloaded/proteins-20000.fasta.gz";
    if (!ttn_test_long()) skip_because("only in `make test-long`");
    if (!is_there(path)) skip_because("%s is not there: make data", path);
    set s = sample(path);
    ttn_cluster_facts facts;
    int64_t *key = clusters_of(&s, &usual, &facts), over_50;
    ttn_store *store = store_of(&s, key);
    for (int64_t seed = 0; seed < 5; seed++) {
        ttn_subset *held_out = split(store, &(ttn_split_rules){.kind = TTN_SPLIT_CLUSTER, .valid = 0.05, .seed = seed});
        check_overlap(&s, held_out, &over_50);
        const int64_t looked_at = ttn_subset_count(held_out);
        print_message("# seed %d: %d of %d that are held out have more than half of their 10-mers in training\n",
                      (int)seed, (int)over_50, (int)looked_at);
        assert_true(looked_at > 300);
        assert_true(100 * over_50 <= looked_at);
        ttn_subset_destroy(held_out);
    }
    ttn_store_close(store);
    ttn_free(key);
    free_set(&s);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clusters_are_what_shared_words_join),
        cmocka_unit_test(planted_relatives_are_in_one_cluster),
        cmocka_unit_test(clusters_depend_neither_on_memory_nor_on_threads),
        cmocka_unit_test(a_table_that_is_full_is_no_harm),
        cmocka_unit_test(clusters_do_not_depend_on_the_vocabulary),
        cmocka_unit_test(sequences_without_a_word_are_joined_only_to_equal_ones),
        cmocka_unit_test(unrelated_proteins_are_hardly_ever_joined),
        cmocka_unit_test(clustering_can_be_stopped),
        cmocka_unit_test(the_part_that_is_held_out_is_what_was_asked_for),
        cmocka_unit_test(a_split_by_clusters_keeps_relatives_together_and_one_by_sequence_does_not),
        cmocka_unit_test(a_sequence_stays_on_its_side_when_others_are_added),
        cmocka_unit_test(a_file_is_held_out_by_its_name),
        cmocka_unit_test(nothing_to_train_on_is_refused),
        cmocka_unit_test(of_many_held_out_proteins_some_everywhere_are_looked_at),
        cmocka_unit_test(the_overlap_says_how_far_it_is_and_stops_in_each_pass),
        cmocka_unit_test(equal_sequences_are_counted_on_the_training_side_alone),
        cmocka_unit_test(of_twenty_thousand_proteins_hardly_one_held_out_is_seen),
    };
    return ttn_test_run(tests);
}
