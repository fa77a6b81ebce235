/* What the kernels of pool share. */
#ifndef TTN_POOL_H
#define TTN_POOL_H

#include "autograd/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { TTN_POOL_MEAN, TTN_POOL_FIRST } ttn_pool_form;

typedef struct {
    ttn_pool_form form;
    int64_t skip_first, skip_last;
} ttn_pool_attributes;

/* K(s): the rows that are kept of a sequence; n below 1: none. */
TTN_HD ttn_span ttn_pool_kept(const ttn_pool_attributes *a, ttn_span all)
{
    ttn_span kept = all;
    if (a->form == TTN_POOL_FIRST) {
        kept.n = all.n > 0;
    } else {
        kept.first += a->skip_first;
        kept.n -= a->skip_first + a->skip_last;
    }
    return kept;
}

/* Something is kept of every sequence of the feed; TTN_EINVAL names the first that has nothing left. */
TTN_MUST_USE ttn_status ttn_pool_check(const ttn_call *c, ttn_error *err);

#ifdef __cplusplus
}
#endif
#endif
