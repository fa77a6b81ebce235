/* Some of the numbers 0 … n - 1, in one bit each: one side of a split of 10^8 sequences takes 14 MB, and not the 800 MB of a
 * list.
 *
 *     ttn_subset *train;
 *     ttn_subset_create(n, &train, err);
 *     for (i = 0; i < n; i++)
 *         if (…) ttn_subset_add(train, i);
 *     ttn_subset_close(train);                    from now on it can be asked
 */
#ifndef TTN_SUBSET_H
#define TTN_SUBSET_H

#include <stdint.h>
#include "core/status.h"

typedef struct ttn_subset ttn_subset;

/* None of n >= 0 numbers. *ret is the caller's. TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_subset_create(int64_t n, ttn_subset **ret, ttn_error *err);
void ttn_subset_destroy(ttn_subset *s); /* NULL is fine */

void ttn_subset_add(ttn_subset *s, int64_t i); /* twice is once; not after ttn_subset_close */
void ttn_subset_close(ttn_subset *s);

int64_t ttn_subset_of(const ttn_subset *s);               /* n */
int64_t ttn_subset_count(const ttn_subset *s);            /* members */
int ttn_subset_has(const ttn_subset *s, int64_t i);       /* 0 <= i < n */
int64_t ttn_subset_below(const ttn_subset *s, int64_t i); /* members less than i, 0 <= i <= n */
int64_t ttn_subset_at(const ttn_subset *s,
                      int64_t k); /* member k in ascending order, 0 <= k < count; 50 ns in a large set */

/* The first member that is i or more; -1: none is. For loops over all members. */
int64_t ttn_subset_next(const ttn_subset *s, int64_t i);

#endif
