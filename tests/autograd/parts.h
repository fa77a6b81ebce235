/* A case computed by the driver (ttn_gradcheck_compute), to be compared with another way to compute it. */
#ifndef TTN_PARTS_H
#define TTN_PARTS_H

#include <math.h>
#include <string.h>
#include "autograd/gradcheck.h"
#include "tests/harness/test.h"

/* Part `name` ("in 0", "din 0"): (*ret_n) numbers. */
static inline const double *part_of(const ttn_gradcheck_values *v, const char *name, int64_t *ret_n)
{
    for (int p = 0; p < v->n_part; p++)
        if (strcmp(v->part[p].name, name) == 0) {
            *ret_n = v->part[p].n;
            return v->value + v->part[p].first;
        }
    fail_msg("there is no %s", name);
    return NULL;
}

/* Every element of the part is within bound * (1 + the largest of wanted) of wanted. */
static inline void assert_part_near(const ttn_gradcheck_values *v, const char *name, const double *wanted, double bound,
                                    const char *about)
{
    int64_t n = 0;
    const double *got = part_of(v, name, &n);
    double scale = 1;
    for (int64_t e = 0; e < n; e++)
        scale = 1 + fabs(wanted[e]) > scale ? 1 + fabs(wanted[e]) : scale;
    for (int64_t e = 0; e < n; e++)
        if (!(fabs(got[e] - wanted[e]) <= bound * scale))
            fail_msg("%s: element %lld of %s is %.17g, expected %.17g", about, (long long)e, name, got[e], wanted[e]);
}

#endif
