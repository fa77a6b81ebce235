/* Are counts those of equally likely cells? As a normal deviate: 5 is 3 in 10^7 by chance, for a few cells as well as for
 * many. */
#ifndef TTN_TEST_CHI_SQUARE_H
#define TTN_TEST_CHI_SQUARE_H

#include <math.h>

#define Z_BOUND 5.0

/* E. B. Wilson, M. M. Hilferty: The distribution of chi-square. PNAS 17 (1931): its cube root is nearly normal. */
static inline double chi_square_z(const double *count, int n_cell, double n_draw)
{
    const double expected = n_draw / n_cell;
    double sum = 0;
    for (int i = 0; i < n_cell; i++)
        sum += (count[i] - expected) * (count[i] - expected) / expected;
    const double freedom = n_cell - 1;
    const double variance = 2 / (9 * freedom);
    return (cbrt(sum / freedom) - (1 - variance)) / sqrt(variance);
}

#endif
