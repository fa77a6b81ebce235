#include <assert.h>
#include <stddef.h>
#include "core/memory.h"
#include "data/subset.h"

/* Words of 64 bits; a page of 8 of them (a cache line) has one count of the members before it. */
enum { WORD = 64, PAGE = 8 };

struct ttn_subset {
    int64_t n, n_word, n_page;
    int64_t count;
    uint64_t *word;  /* (n_word); bits from n on are 0 */
    int64_t *before; /* (n_page + 1) members before the page */
};

ttn_status ttn_subset_create(int64_t n, ttn_subset **ret, ttn_error *err)
{
    assert(n >= 0);
    *ret = NULL;
    ttn_subset *s = ttn_alloc_or_say(1, sizeof *s, "one side of the split", err);
    if (!s) return TTN_ENOMEM;
    s->n = n;
    s->n_page = n / (WORD * PAGE) + 1;
    s->n_word = s->n_page * PAGE;
    s->word = ttn_alloc_or_say(s->n_word, sizeof *s->word, "one side of the split", err);
    s->before = s->word ? ttn_alloc_or_say(s->n_page + 1, sizeof *s->before, "one side of the split", err) : NULL;
    if (!s->before) {
        ttn_subset_destroy(s);
        return TTN_ENOMEM;
    }
    *ret = s;
    return TTN_OK;
}

void ttn_subset_destroy(ttn_subset *s)
{
    if (!s) return;
    ttn_free(s->word);
    ttn_free(s->before);
    ttn_free(s);
}

void ttn_subset_add(ttn_subset *s, int64_t i)
{
    assert(i >= 0 && i < s->n);
    s->word[i / WORD] |= (uint64_t)1 << i % WORD;
}

static int64_t ones(uint64_t word)
{
    return __builtin_popcountll(word);
}

void ttn_subset_close(ttn_subset *s)
{
    int64_t count = 0;
    for (int64_t p = 0; p < s->n_page; p++) {
        s->before[p] = count;
        for (int64_t w = p * PAGE; w < (p + 1) * PAGE; w++)
            count += ones(s->word[w]);
    }
    s->before[s->n_page] = count;
    s->count = count;
}

int64_t ttn_subset_of(const ttn_subset *s)
{
    return s->n;
}

int64_t ttn_subset_count(const ttn_subset *s)
{
    return s->count;
}

int ttn_subset_has(const ttn_subset *s, int64_t i)
{
    assert(i >= 0 && i < s->n);
    return (int)(s->word[i / WORD] >> i % WORD & 1);
}

int64_t ttn_subset_below(const ttn_subset *s, int64_t i)
{
    assert(i >= 0 && i <= s->n);
    const int64_t word = i / WORD;
    int64_t below = s->before[word / PAGE];
    for (int64_t w = word / PAGE * PAGE; w < word; w++)
        below += ones(s->word[w]);
    return below + ones(s->word[word] & (((uint64_t)1 << i % WORD) - 1));
}

int64_t ttn_subset_at(const ttn_subset *s, int64_t k)
{
    assert(k >= 0 && k < s->count);
    /* The last page with at most k members before it; pages without members are stepped over so. */
    int64_t page = 0, end = s->n_page;
    while (end - page > 1) {
        const int64_t middle = page + (end - page) / 2;
        if (s->before[middle] <= k)
            page = middle;
        else
            end = middle;
    }
    int64_t rest = k - s->before[page];
    int64_t w = page * PAGE;
    while (rest >= ones(s->word[w])) {
        rest -= ones(s->word[w]);
        w++;
    }
    uint64_t bits = s->word[w];
    for (; rest > 0; rest--)
        bits &= bits - 1; /* without its lowest one */
    return w * WORD + __builtin_ctzll(bits);
}

int64_t ttn_subset_next(const ttn_subset *s, int64_t i)
{
    assert(i >= 0);
    if (i >= s->n) return -1;
    int64_t w = i / WORD;
    uint64_t bits = s->word[w] & ~(((uint64_t)1 << i % WORD) - 1);
    while (bits == 0) {
        w++;
        if (w == s->n_word) return -1;
        bits = s->word[w];
    }
    return w * WORD + __builtin_ctzll(bits);
}
