/* What the kernels of embedding share. */
#ifndef TTN_EMBEDDING_H
#define TTN_EMBEDDING_H

#include <stdint.h>
#include "core/real.h"

/* Faults in its data, and what `at` counts (autograd/fault.h). */
enum {
    TTN_EMBEDDING_TOKEN, /* row: its token is outside the vocabulary */
    TTN_EMBEDDING_MASKS, /* sequence: it is nothing but masks */
};

/* Token dropout's factor of a sequence of n rows, of which so many, fewer than n, are masks. */
TTN_HD double ttn_embedding_factor(double share, int64_t masks, int64_t n)
{
    return (1 - share) / (1 - (double)masks / (double)n);
}

#endif
