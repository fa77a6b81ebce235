/* What the ops gelu, relu and silu share:  y = act(x), elementwise.   dx = act'(x) dy
 *
 * The formulas: autograd/ops/activation.h. y may be x, dx may be dy. */
#ifndef TTN_ACTIVATE_H
#define TTN_ACTIVATE_H

#include "autograd/kernel.h"
#include "autograd/ops.h"

/* x is of reals, and y of its shape. */
TTN_MUST_USE ttn_status ttn_activate_shape(ttn_sig *s, const char *op, ttn_error *err);

/* So many arithmetic operations an element, the functions' polynomials included. */
ttn_cost ttn_activate_cost(const ttn_sig *s, ttn_pass pass, double flops);

void ttn_activate_forward(const ttn_call *c, ttn_activation act);

/* at: x, or y of an activation whose gradient can be told from it (relu). */
void ttn_activate_backward(const ttn_call *c, ttn_activation act, const real *at);

#endif
