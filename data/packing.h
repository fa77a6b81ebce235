/* First fit: things come one after the other, and each goes into the first bin that has room for it.
 *
 * In the order given, not by size: what is sorted by length first gathers the short ones in bins that the limit on
 * sequences closes (90 % of the rows filled instead of 97).
 */
#ifndef TTN_PACKING_H
#define TTN_PACKING_H

#include <stdint.h>
#include "core/status.h"
#include "core/tensor.h"

typedef struct ttn_packing ttn_packing;

/* For up to `most` things in bins of this capacity. *ret is the caller's. TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_packing_create(int64_t most, ttn_extent capacity, ttn_packing **ret, ttn_error *err);
void ttn_packing_destroy(ttn_packing *p); /* NULL is fine */

/* Thing i takes rows[i] rows, one sequence and picks[i] picks; each fits into an empty bin. */
void ttn_packing_fill(ttn_packing *p, int64_t n, const int64_t *rows, const int64_t *picks);

int64_t ttn_packing_n_bin(const ttn_packing *p);

/* The things in a bin in the order they came, borrowed until the next fill; *ret_n is at least 1. */
const int64_t *ttn_packing_bin(const ttn_packing *p, int64_t bin, int64_t *ret_n);

#endif
