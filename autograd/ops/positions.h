/* What the kernels of positions share. */
#ifndef TTN_POSITIONS_H
#define TTN_POSITIONS_H

#include "autograd/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int64_t offset;
} ttn_positions_attributes;

/* Every sequence of the feed finds its rows in the table; TTN_EINVAL names the first that does not. */
TTN_MUST_USE ttn_status ttn_positions_check(const ttn_call *c, ttn_error *err);

#ifdef __cplusplus
}
#endif
#endif
