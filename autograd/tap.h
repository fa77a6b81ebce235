/* What a tap needs that looks at values: a forward call whose values the host can read, wherever the plan runs. */
#ifndef TTN_TAP_H
#define TTN_TAP_H

#include "autograd/op.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    ttn_call call; /* for map functions and the like (autograd/attention.h) */
    ttn_stream on;
    void *piece; /* the copies; NULL: there are none */
} ttn_tap_view;

/* *ret is good as long as c is, and to be freed with ttn_tap_close. CPU kernels: c itself. A device: inputs, outputs, aux and
 * statistics of c are copied to the host, which waits for them; so only calls that are looked at are worth it. */
TTN_MUST_USE ttn_status ttn_tap_open(const ttn_call *c, ttn_tap_view *ret, ttn_error *err);
void ttn_tap_close(ttn_tap_view *v);

#ifdef __cplusplus
}
#endif
#endif
