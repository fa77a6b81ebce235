/* What attention by random features says about itself. */
#include <float.h>
#include <string.h>
#include "autograd/ops/favor.h"

/* Told are means: of |x|^2, and errors as shares of |out|^2. `error` is the kernel's (a lower bound where |x|^2 is above 1),
 * `error_of_mean` that of paying no attention at all, of out = mean v: a map whose error comes near it has nothing to say. */
const ttn_stat ttn_favor_stats[TTN_FAVOR_N_STAT] = {
    [TTN_FAVOR_NORM_SUM] = {.name = "norm_sum", .fold = TTN_SUM, .over = "norm_rows", .mean = "norm_mean"},
    [TTN_FAVOR_NORM_MOST] = {.name = "norm_most", .fold = TTN_MAX},
    [TTN_FAVOR_NORM_ROWS] = {.name = "norm_rows", .fold = TTN_SUM},
    [TTN_FAVOR_DENOMINATOR_LEAST] = {.name = "denominator_least", .fold = TTN_MIN},
    [TTN_FAVOR_DENOMINATOR_NEGATIVE] = {.name = "denominator_not_positive", .fold = TTN_SUM},
    [TTN_FAVOR_ROWS_GIVEN_UP] = {.name = "rows_given_up", .fold = TTN_SUM},
    [TTN_FAVOR_ERROR_HALVES] = {.name = "error_halves", .fold = TTN_SUM, .over = "error_size", .mean = "error"},
    [TTN_FAVOR_ERROR_UNIFORM] = {.name = "error_uniform",
                                 .fold = TTN_SUM,
                                 .over = "error_size",
                                 .mean = "error_of_mean"},
    [TTN_FAVOR_ERROR_SIZE] = {.name = "error_size", .fold = TTN_SUM},
};

void ttn_favor_no_statistics(double *stat)
{
    memset(stat, 0, TTN_FAVOR_N_STAT * sizeof *stat);
    stat[TTN_FAVOR_DENOMINATOR_LEAST] = DBL_MAX;
}

void ttn_favor_fold_statistics(double *to, const double *from)
{
    for (int i = 0; i < TTN_FAVOR_N_STAT; i++)
        to[i] = ttn_folded(ttn_favor_stats[i].fold, to[i], from[i]);
}

void ttn_favor_count_norms(const ttn_favor_tile *t, double *stat)
{
    for (int64_t row = 0; row < t->live; row++) {
        const double norm = 2 * (double)t->half[row];
        stat[TTN_FAVOR_NORM_SUM] += norm;
        stat[TTN_FAVOR_NORM_MOST] = ttn_folded(TTN_MAX, stat[TTN_FAVOR_NORM_MOST], norm);
    }
    stat[TTN_FAVOR_NORM_ROWS] += (double)t->live;
}
