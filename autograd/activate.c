#include "autograd/activate.h"
#include "autograd/ops/activation.h"

ttn_status ttn_activate_shape(ttn_sig *s, const char *op, ttn_error *err)
{
    ttn_status status = ttn_want_real(s, 0, op, "x", err);
    if (status != TTN_OK) return status;
    s->n_out = 1;
    s->out[0] = s->in[0];
    return TTN_OK;
}

ttn_cost ttn_activate_cost(const ttn_sig *s, ttn_pass pass, double flops)
{
    const double n = (double)ttn_desc_numel(&s->out[0]);
    const double values = pass == TTN_FORWARD ? 2 : 3;
    return (ttn_cost){.done = flops * n, .useful = flops * n, .bytes = values * n * (double)sizeof(real)};
}

/* Elements at a time: the choice between the activations is made once for them, outside the loop, which would else stay
 * scalar. An element's bits do not depend on where it stands (core/vecmath.h). */
enum { PIECE = 4096 };

static int64_t pieces_of(int64_t n)
{
    return (n + PIECE - 1) / PIECE;
}

static int64_t piece_size(int64_t n, int64_t first)
{
    return n - first < PIECE ? n - first : PIECE;
}

/* ---- forward ---- */

/* `act` is a constant in each of the loops that this becomes. */
TTN_ALWAYS_INLINE void value_loop(ttn_activation act, int64_t n, const real *x, real *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = ttn_act_value(act, x[i]);
}

static void values(ttn_activation act, int64_t n, const real *x, real *y)
{
    switch (act) {
    case TTN_ACT_GELU_ERF:
        value_loop(TTN_ACT_GELU_ERF, n, x, y);
        return;
    case TTN_ACT_GELU_TANH:
        value_loop(TTN_ACT_GELU_TANH, n, x, y);
        return;
    case TTN_ACT_RELU:
        value_loop(TTN_ACT_RELU, n, x, y);
        return;
    case TTN_ACT_SILU:
        value_loop(TTN_ACT_SILU, n, x, y);
        return;
    }
}

void ttn_activate_forward(const ttn_call *c, ttn_activation act)
{
    const int64_t n = ttn_used_numel(c->feed, &c->sig->out[0]);
    const real *x = c->in[0];
    real *y = c->out[0];
#pragma omp parallel for num_threads(c->on->n_thread)
    for (int64_t k = 0; k < pieces_of(n); k++) {
        const int64_t first = k * PIECE;
        values(act, piece_size(n, first), x + first, y + first);
    }
    ttn_zero_rest(c, &c->sig->out[0], y);
}

/* ---- backward ---- */

TTN_ALWAYS_INLINE void gradient_loop(ttn_activation act, int64_t n, const real *at, const real *dy, real *dx, real acc)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        dx[i] = ttn_accumulate(acc, dx[i], ttn_act_chain(act, at[i], dy[i]));
}

static void gradients(ttn_activation act, int64_t n, const real *at, const real *dy, real *dx, real acc)
{
    switch (act) {
    case TTN_ACT_GELU_ERF:
        gradient_loop(TTN_ACT_GELU_ERF, n, at, dy, dx, acc);
        return;
    case TTN_ACT_GELU_TANH:
        gradient_loop(TTN_ACT_GELU_TANH, n, at, dy, dx, acc);
        return;
    case TTN_ACT_RELU:
        gradient_loop(TTN_ACT_RELU, n, at, dy, dx, acc);
        return;
    case TTN_ACT_SILU:
        gradient_loop(TTN_ACT_SILU, n, at, dy, dx, acc);
        return;
    }
}

void ttn_activate_backward(const ttn_call *c, ttn_activation act, const real *at)
{
    const int64_t n = ttn_used_numel(c->feed, &c->sig->out[0]);
    const real acc = c->acc[0];
    const real *dy = c->dout[0];
    real *dx = c->din[0];
#pragma omp parallel for num_threads(c->on->n_thread)
    for (int64_t k = 0; k < pieces_of(n); k++) {
        const int64_t first = k * PIECE;
        gradients(act, piece_size(n, first), at + first, dy + first, dx + first, acc);
    }
    if (acc == 0) ttn_zero_rest(c, &c->sig->in[0], dx);
}
