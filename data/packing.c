#include <assert.h>
#include "core/memory.h"
#include "data/packing.h"

struct ttn_packing {
    int64_t most;
    ttn_extent capacity;
    int64_t n_bin;
    ttn_extent *used; /* (most) of each bin */
    int64_t *bin_of;  /* (most) of each thing */
    int64_t *first;   /* (most + 1) of each bin in `thing` */
    int64_t *thing;   /* (most) by bins */
};

ttn_status ttn_packing_create(int64_t most, ttn_extent capacity, ttn_packing **ret, ttn_error *err)
{
    *ret = NULL;
    const char *what = "the packing of batches";
    ttn_packing *p = ttn_alloc_or_say(1, sizeof *p, what, err);
    if (!p) return TTN_ENOMEM;
    p->most = most;
    p->capacity = capacity;
    p->used = ttn_alloc_or_say(most, sizeof *p->used, what, err);
    p->bin_of = ttn_alloc_or_say(most, sizeof *p->bin_of, what, err);
    p->first = ttn_alloc_or_say(most + 1, sizeof *p->first, what, err);
    p->thing = ttn_alloc_or_say(most, sizeof *p->thing, what, err);
    if (!p->used || !p->bin_of || !p->first || !p->thing) {
        ttn_packing_destroy(p);
        return TTN_ENOMEM;
    }
    *ret = p;
    return TTN_OK;
}

void ttn_packing_destroy(ttn_packing *p)
{
    if (!p) return;
    ttn_free(p->used);
    ttn_free(p->bin_of);
    ttn_free(p->first);
    ttn_free(p->thing);
    ttn_free(p);
}

static int fits(const ttn_packing *p, int64_t bin, int64_t rows, int64_t picks)
{
    const ttn_extent *used = &p->used[bin];
    return used->rows + rows <= p->capacity.rows && used->seqs < p->capacity.seqs &&
           used->picks + picks <= p->capacity.picks;
}

void ttn_packing_fill(ttn_packing *p, int64_t n, const int64_t *rows, const int64_t *picks)
{
    assert(n <= p->most);
    p->n_bin = 0;
    int64_t open = 0; /* bins before it have no room for anything */
    for (int64_t i = 0; i < n; i++) {
        assert(rows[i] <= p->capacity.rows && picks[i] <= p->capacity.picks);
        while (open < p->n_bin && !fits(p, open, 1, 0))
            open++;
        int64_t bin = open;
        while (bin < p->n_bin && !fits(p, bin, rows[i], picks[i]))
            bin++;
        if (bin == p->n_bin) p->used[p->n_bin++] = (ttn_extent){0};
        p->used[bin].rows += rows[i];
        p->used[bin].seqs++;
        p->used[bin].picks += picks[i];
        p->bin_of[i] = bin;
    }
    int64_t first = 0;
    for (int64_t bin = 0; bin < p->n_bin; bin++) {
        p->first[bin] = first;
        first += p->used[bin].seqs;
    }
    p->first[p->n_bin] = n;
    /* Here used[].seqs counts anew how many of a bin's things have found their place. */
    for (int64_t bin = 0; bin < p->n_bin; bin++)
        p->used[bin].seqs = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t bin = p->bin_of[i];
        p->thing[p->first[bin] + p->used[bin].seqs++] = i;
    }
}

int64_t ttn_packing_n_bin(const ttn_packing *p)
{
    return p->n_bin;
}

const int64_t *ttn_packing_bin(const ttn_packing *p, int64_t bin, int64_t *ret_n)
{
    assert(bin >= 0 && bin < p->n_bin);
    *ret_n = p->first[bin + 1] - p->first[bin];
    return p->thing + p->first[bin];
}
