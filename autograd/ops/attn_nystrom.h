/* Nystrom attention: formulas for kernels of every device. The letters are those on top of autograd/ops/attn_nystrom.c. */
#ifndef TTN_ATTN_NYSTROM_H
#define TTN_ATTN_NYSTROM_H

#include <stdint.h>
#include "core/real.h"

/* Beyond it A alone would be 64 MiB a head (f32), and exact attention is cheaper up to long sequences. */
enum { TTN_NYSTROM_MOST_LANDMARKS = 4096 };

/* The first row of segment j of M: that of segment j + 1 is its end. n > M, so none is empty, and lengths differ by one at
 * most. (Segments of one fixed length, the last one short or made of padding, are what published code has: with 200 residues
 * in 512 places most landmarks are then means of nothing.) */
TTN_HD int64_t ttn_nystrom_segment(int64_t j, int64_t n, int64_t landmarks)
{
    return j * n / landmarks;
}

/* The segment of row t. */
TTN_HD int64_t ttn_nystrom_segment_of(int64_t t, int64_t n, int64_t landmarks)
{
    return ((t + 1) * landmarks - 1) / n;
}

/* The gradient of a logit before the scale, from a softmax's weight p, the gradient g of that weight, and the sum of p g over
 * its softmax. */
TTN_HD real ttn_nystrom_slope(real p, real g, real sum, real scale)
{
    return scale * (p * (g - sum));
}

#endif
