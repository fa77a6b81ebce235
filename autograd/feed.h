/* What a run is fed with, beside its inputs. */
#ifndef TTN_FEED_H
#define TTN_FEED_H

#include <stdint.h>
#include "core/tensor.h"

TTN_API_BEGIN

/* Positions in a sequence are below this: 30,000 times the longest protein, and what sines and 32-bit counters hold. */
#define TTN_MAX_POSITION ((int64_t)1 << 30)

/* What changes from run to run while shapes stay. */
typedef struct {
    ttn_extent used;        /* each at most the capacity */
    const ttn_span *span;   /* (used.seqs) ascending, disjoint */
    const int64_t *start;   /* (used.seqs) position of a span's first row in its sequence; NULL: 0 */
    const uint64_t *sample; /* (used.seqs) number of the sequence in the data set: keys dropout; NULL: 0, 1, 2, … */
    uint64_t seed, step;    /* step counts optimizer steps */
    int training;
} ttn_feed;

TTN_API_END
#endif
