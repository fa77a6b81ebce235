#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/hash.h"
#include "core/memory.h"
#include "core/rng.h"
#include "data/mlm.h"

/* ---- configuration ---- */

static const char *const replace_choices[] = {"residues", "vocabulary", NULL};

enum { RATE, MASK, RANDOM, REPLACE, N_OPTIONS };

static const ttn_option_condition when_masked[] = {{"train.objective", .is = "mlm"}, {0}};
static const ttn_option_condition when_replaced[] = {
    {"train.objective", .is = "mlm"}, {"mlm.random", .is_not = "0"}, {0}};

const ttn_option ttn_mlm_options[] = {
    [RATE] = {.name = "mlm.rate",
              .type = TTN_OPTION_REAL,
              .fallback = "0.15",
              .least = 0.001,
              .most = 1,
              .help = "the part of a sequence's residues that are to be predicted (at least one)",
              .since = "0.1",
              .when = when_masked},
    [MASK] = {.name = "mlm.mask",
              .type = TTN_OPTION_REAL,
              .fallback = "0.8",
              .least = 0,
              .most = 1,
              .help = "of these, the part that is shown as <mask>",
              .since = "0.1",
              .when = when_masked},
    [RANDOM] = {.name = "mlm.random",
                .type = TTN_OPTION_REAL,
                .fallback = "0.1",
                .least = 0,
                .most = 1,
                .help = "of these, the part that is shown as a random residue; what is left is shown as it is",
                .since = "0.1",
                .when = when_masked},
    [REPLACE] = {.name = "mlm.replace",
                 .type = TTN_OPTION_CHOICE,
                 .fallback = "residues",
                 .choices = replace_choices,
                 .help = "random residues are drawn from the 20 standard ones, or from all letters of the vocabulary",
                 .since = "0.1",
                 .when = when_replaced},
};
const int ttn_mlm_n_options = N_OPTIONS;

ttn_status ttn_mlm_rules_of(const ttn_option_reader *o, ttn_mlm_rules *ret, ttn_error *err)
{
    ttn_mlm_rules r = {0};
    const char *replace = NULL;
    ttn_status status = o->get_real(o->self, ttn_mlm_options[RATE].name, 0, &r.rate, err);
    if (status == TTN_OK) status = o->get_real(o->self, ttn_mlm_options[MASK].name, 0, &r.mask, err);
    if (status == TTN_OK) status = o->get_real(o->self, ttn_mlm_options[RANDOM].name, 0, &r.random, err);
    if (status == TTN_OK) status = o->get_text(o->self, ttn_mlm_options[REPLACE].name, 0, &replace, err);
    if (status != TTN_OK) return status;
    /* A sum of two decimal fractions that is meant to be 1 may be 1 + 2^-52. */
    if (r.mask + r.random > 1 + 1e-12)
        return TTN_FAIL(err, TTN_EINVAL,
                        "mlm.mask is %g and mlm.random is %g: parts of the same whole, together at most 1", r.mask,
                        r.random);
    r.replace =
        strcmp(replace, replace_choices[TTN_REPLACE_VOCABULARY]) == 0 ? TTN_REPLACE_VOCABULARY : TTN_REPLACE_RESIDUES;
    *ret = r;
    return TTN_OK;
}

/* ---- how many, and by which numbers ---- */

int64_t ttn_mlm_picks(double rate, int64_t n)
{
    if (n == 0) return 0;
    const int64_t rounded = (int64_t)floor(rate * (double)n + 0.5);
    if (rounded < 1) return 1;
    return rounded < n ? rounded : n;
}

uint64_t ttn_mlm_key(uint64_t seed, int64_t epoch)
{
    return ttn_rng_key(seed, ttn_hash_text("masks of an epoch"), (uint64_t)epoch);
}

uint64_t ttn_mlm_fixed_key(uint64_t seed, int64_t k)
{
    return ttn_rng_key(seed, ttn_hash_text("fixed masks"), (uint64_t)k);
}

/* Residue `position` of a sample has one Philox block, at the counter (sample, position): words 0 and 1 are the number that
 * decides whether it is picked, 2 how it is shown, 3 what stands in for it. */
enum { NUMBER_HIGH, NUMBER_LOW, SHOW, STAND_IN, WORDS };

enum { BUCKETS = 256, BLOCKS_AT_ONCE = 64 };

struct ttn_mlm {
    ttn_mlm_rules rules;
    uint8_t mask;
    int n_stand_in;
    uint8_t stand_in[TTN_MAX_TOKENS];
    int64_t most;
    uint64_t *number; /* (most) of each residue */
    uint64_t *sorted; /* (most) those of one bucket */
};

ttn_status ttn_mlm_create(const ttn_alphabet *alphabet, const ttn_mlm_rules *rules, int64_t most, ttn_mlm **ret,
                          ttn_error *err)
{
    *ret = NULL;
    if (alphabet->mask == TTN_NO_TOKEN)
        return TTN_FAIL(err, TTN_EINVAL,
                        "the vocabulary '%s' has no <mask>, which masked language modelling needs; predict the next "
                        "residue (clm), or take a vocabulary that has one",
                        alphabet->name);
    ttn_mlm *m = ttn_alloc_or_say(1, sizeof *m, "masking", err);
    if (!m) return TTN_ENOMEM;
    m->rules = *rules;
    m->mask = alphabet->mask;
    for (int t = 0; t < alphabet->n; t++) {
        const int is_letter = ttn_alphabet_letter(alphabet, t) != 0 && t != alphabet->unk;
        if (rules->replace == TTN_REPLACE_VOCABULARY ? is_letter : ttn_alphabet_is_residue(alphabet, t))
            m->stand_in[m->n_stand_in++] = (uint8_t)t;
    }
    m->most = most;
    m->number = ttn_alloc_or_say(most, sizeof *m->number, "masking", err);
    m->sorted = m->number ? ttn_alloc_or_say(most, sizeof *m->sorted, "masking", err) : NULL;
    if (!m->sorted) {
        ttn_mlm_destroy(m);
        return TTN_ENOMEM;
    }
    *ret = m;
    return TTN_OK;
}

void ttn_mlm_destroy(ttn_mlm *m)
{
    if (!m) return;
    ttn_free(m->number);
    ttn_free(m->sorted);
    ttn_free(m);
}

static void draw_numbers(ttn_mlm *m, uint64_t key, uint64_t sample, int64_t position, int64_t n)
{
    uint32_t word[BLOCKS_AT_ONCE * WORDS];
    for (int64_t i = 0; i < n; i += BLOCKS_AT_ONCE) {
        const int64_t n_block = n - i < BLOCKS_AT_ONCE ? n - i : BLOCKS_AT_ONCE;
        ttn_rng_words(key, sample, (uint64_t)(position + i), n_block, word);
        for (int64_t b = 0; b < n_block; b++)
            m->number[i + b] = (uint64_t)word[b * WORDS + NUMBER_HIGH] << 32 | word[b * WORDS + NUMBER_LOW];
    }
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Residues whose number is below `below` are picked, and the first n_equal of those that have it. */
typedef struct {
    uint64_t below;
    int64_t n_equal;
} threshold;

static int is_out(const uint8_t *excluded, int64_t j)
{
    return excluded && excluded[j];
}

/* The numbers are uniform, so the one in question is found in two passes: the bucket of its top byte, and in it, where one
 * number in 256 is, by sorting. */
static threshold smallest(ttn_mlm *m, int64_t n, const uint8_t *excluded, int64_t n_pick)
{
    int64_t count[BUCKETS] = {0};
    for (int64_t j = 0; j < n; j++)
        if (!is_out(excluded, j)) count[m->number[j] >> 56]++;
    int64_t before = 0;
    uint64_t bucket = 0;
    while (before + count[bucket] < n_pick) {
        before += count[bucket];
        bucket++;
    }
    int64_t n_sorted = 0;
    for (int64_t j = 0; j < n; j++)
        if (!is_out(excluded, j) && m->number[j] >> 56 == bucket) m->sorted[n_sorted++] = m->number[j];
    qsort(m->sorted, (size_t)n_sorted, sizeof *m->sorted, by_value);
    const int64_t last = n_pick - before - 1;
    threshold t = {.below = m->sorted[last], .n_equal = 1};
    for (int64_t k = last; k > 0 && m->sorted[k - 1] == t.below; k--)
        t.n_equal++;
    return t;
}

/* What the model sees in place of this residue. */
static uint8_t show(const ttn_mlm *m, const uint32_t word[4], uint8_t residue)
{
    const double draw = word[SHOW] * 0x1p-32; /* in [0, 1), exact */
    if (draw < m->rules.mask) return m->mask;
    if (draw < m->rules.mask + m->rules.random) /* Off from uniform by less than n_stand_in / 2^32. */
        return m->stand_in[(uint64_t)word[STAND_IN] * (uint64_t)m->n_stand_in >> 32];
    return residue;
}

int64_t ttn_mlm_mask(ttn_mlm *m, uint64_t key, uint64_t sample, int64_t position, int64_t n, const uint8_t *excluded,
                     int is_bare, uint8_t *token, int64_t *pick, uint8_t *target, uint8_t *shown)
{
    assert(n >= 0 && n <= m->most);
    int64_t n_can = n;
    if (excluded)
        for (int64_t j = 0; j < n; j++)
            n_can -= excluded[j] != 0;
    const int64_t n_pick = ttn_mlm_picks(m->rules.rate, n_can);
    if (n_pick == 0) return 0;
    draw_numbers(m, key, sample, position, n);
    threshold t = smallest(m, n, excluded, n_pick);
    int64_t p = 0, masks = 0;
    for (int64_t j = 0; j < n; j++) {
        if (m->number[j] > t.below || is_out(excluded, j)) continue;
        if (m->number[j] == t.below && t.n_equal-- <= 0) continue;
        uint32_t word[WORDS];
        ttn_philox_at(key, sample, (uint64_t)(position + j), word);
        pick[p] = j;
        target[p] = token[j];
        token[j] = show(m, word, target[p]);
        shown[p] = token[j] == m->mask;
        masks += shown[p];
        p++;
    }
    assert(p == n_pick);
    if (is_bare && masks == n) {
        token[pick[p - 1]] = target[p - 1];
        shown[p - 1] = 0;
    }
    return p;
}
