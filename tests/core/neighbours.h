/* Does a sequence get the same bits from a row-wise product wherever it stands, and whatever stands beside it? */
#ifndef TTN_NEIGHBOURS_H
#define TTN_NEIGHBOURS_H

#include "tests/core/blas_world.h"

/* What the product multiplies rows with: layers of 64 to 2,048, and heads of 16, 24 and 64. */
static const struct {
    int64_t n, k;
    int forward, backward; /* x W^T; dy W */
} layers[] = {
    {512, 512, 1, 1}, {2048, 128, 1, 1}, {128, 2048, 1, 1}, {64, 64, 1, 1},  {128, 128, 1, 1},
    {256, 256, 1, 1}, {320, 320, 1, 1},  {1280, 240, 1, 0}, {24, 320, 1, 1}, {33, 64, 1, 1},
    {16, 24, 1, 1},   {24, 16, 1, 1},    {64, 24, 1, 1},    {272, 64, 1, 1}, {1, 64, 1, 1},
};

enum { LENGTH = 50, CAPACITY = 2 * TTN_ROW_TILE };

/* a start at 0, others of every residue modulo what kernels unroll, one across the border of two tiles, one at the end of
 * the used rows, which are no multiple of anything */
static const int64_t starts[] = {0, 60, 132, 204, 276, 348, 444, 516, 600, 684, 744, 816, 888};
enum { N_START = sizeof starts / sizeof *starts, USED = 888 + LENGTH };

static inline int rows_that_differ(ttn_trans tb, int64_t n, int64_t k)
{
    real *sequence = numbers(LENGTH * k, 1), *weight = numbers(n * k, 2);
    real *a = room(CAPACITY * k, sizeof *a), *alone = room(CAPACITY * n, sizeof *a),
         *packed = room(CAPACITY * n, sizeof *a);
    ttn_mat_in b = ttn_in(weight, tb == TTN_T ? k : n);

    memcpy(a, sequence, (size_t)(LENGTH * k) * sizeof *a);
    ttn_gemm_rows(2, tb, CAPACITY, LENGTH, n, k, ttn_in(a, k), b, 0, ttn_out(alone, n));
    fill(a, CAPACITY * k, 3);
    for (int s = 0; s < N_START; s++)
        memcpy(a + starts[s] * k, sequence, (size_t)(LENGTH * k) * sizeof *a);
    ttn_gemm_rows(2, tb, CAPACITY, USED, n, k, ttn_in(a, k), b, 0, ttn_out(packed, n));

    int differ = 0;
    for (int s = 0; s < N_START; s++)
        for (int64_t r = 0; r < LENGTH; r++)
            differ += memcmp(alone + r * n, packed + (starts[s] + r) * n, (size_t)n * sizeof *a) != 0;
    free(sequence);
    free(weight);
    free(a);
    free(alone);
    free(packed);
    return differ;
}

static inline int layers_that_differ(void)
{
    int differ = 0;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        for (int t = 0; t < 2; t++) {
            if (!(t ? layers[i].forward : layers[i].backward)) continue;
            int rows = rows_that_differ(t ? TTN_T : TTN_N, layers[i].n, layers[i].k);
            if (rows > 0)
                print_error("%d columns, inner %d, N%s: %d of %d rows differ\n", (int)layers[i].n, (int)layers[i].k,
                            t ? "T" : "N", rows, N_START * LENGTH);
            differ += rows;
        }
    return differ;
}

#endif
