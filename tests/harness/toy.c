#include <string.h>
#include "core/philox.h"
#include "tests/harness/toy.h"

static ttn_status same_shape(ttn_sig *s, ttn_error *err)
{
    (void)err;
    for (int j = 0; j < s->n_out; j++)
        s->out[j] = s->in[0];
    return TTN_OK;
}

static ttn_cost one_flop_each(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)pass;
    (void)aux_kept;
    double n = (double)ttn_desc_numel(&s->in[0]);
    return (ttn_cost){.done = n, .useful = n, .bytes = 2 * n * sizeof(real)};
}

/* Elements that hold data, and all of them. */
static int64_t used_elements(const ttn_call *c, const ttn_desc *d)
{
    int64_t row = d->ndim > 0 && d->dim[0] > 0 ? ttn_desc_numel(d) / d->dim[0] : ttn_desc_numel(d);
    return d->axis == TTN_FIXED ? ttn_desc_numel(d) : row * ttn_used(c->feed, d);
}

static int64_t all_elements(const ttn_call *c)
{
    return ttn_desc_numel(&c->sig->in[0]);
}

/* ---- pair ---- */

static ttn_status pair_forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const real *x = c->in[0];
    real *y0 = c->out[0];
    real *y1 = c->out[1];
    for (int64_t i = 0; i < all_elements(c); i++) {
        y0[i] = 2 * x[i];
        y1[i] = 3 * x[i];
    }
    return TTN_OK;
}

static ttn_status pair_backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const real *dy0 = c->dout[0];
    const real *dy1 = c->dout[1];
    real *dx = c->din[0];
    for (int64_t i = 0; i < all_elements(c); i++) {
        real gradient = (dy0 ? 2 * dy0[i] : 0) + (dy1 ? 3 * dy1[i] : 0);
        dx[i] = ttn_accumulate(c->acc[0], dx[i], gradient);
    }
    return TTN_OK;
}

const ttn_op toy_pair = {
    .name = "pair",
    .n_in = 1,
    .n_out = 2,
    .differentiable = TTN_BIT(0),
    .shape = same_shape,
    .cost = one_flop_each,
    .cpu = {.forward = pair_forward, .backward = pair_backward},
};

int toy_pair_of(ttn_graph *g, const char *name, int x)
{
    return ttn_apply_op(g, &toy_pair, name, NULL, (int[]){x});
}

/* ---- maybe ---- */

static ttn_status maybe_forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const real *x = c->in[0];
    const real *b = c->in[1];
    real *y = c->out[0];
    for (int64_t i = 0; i < all_elements(c); i++)
        y[i] = x[i] + (b ? b[i] : 0);
    return TTN_OK;
}

static ttn_status maybe_backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const real *dy = c->dout[0];
    for (int k = 0; k < 2; k++) {
        real *d = c->din[k];
        for (int64_t i = 0; d && i < all_elements(c); i++)
            d[i] = ttn_accumulate(c->acc[k], d[i], dy[i]);
    }
    return TTN_OK;
}

const ttn_op toy_maybe = {
    .name = "maybe",
    .n_in = 2,
    .n_out = 1,
    .optional = TTN_BIT(1),
    .differentiable = TTN_BIT(0) | TTN_BIT(1),
    .shape = same_shape,
    .cost = one_flop_each,
    .cpu = {.forward = maybe_forward, .backward = maybe_backward},
};

int toy_maybe_of(ttn_graph *g, const char *name, int x, int b)
{
    return ttn_apply_op(g, &toy_maybe, name, NULL, (int[]){x, b});
}

/* ---- blend ---- */

static ttn_status blend_forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const real *a = c->in[0];
    const real *b = c->in[1];
    real *y = c->out[0];
    for (int64_t i = 0; i < all_elements(c); i++)
        y[i] = 2 * a[i] + 3 * b[i];
    return TTN_OK;
}

static ttn_status blend_backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const real *dy = c->dout[0];
    for (int k = 0; k < 2; k++) {
        real *d = c->din[k]; /* may be dy */
        for (int64_t i = 0; d && i < all_elements(c); i++)
            d[i] = ttn_accumulate(c->acc[k], d[i], (real)(2 + k) * dy[i]);
    }
    return TTN_OK;
}

const ttn_op toy_blend = {
    .name = "blend",
    .n_in = 2,
    .n_out = 1,
    .differentiable = TTN_BIT(0) | TTN_BIT(1),
    .passes = {TTN_SHARES(0), TTN_SHARES(0)},
    .shape = same_shape,
    .cost = one_flop_each,
    .cpu = {.forward = blend_forward, .backward = blend_backward},
};

int toy_blend_of(ttn_graph *g, const char *name, int a, int b)
{
    return ttn_apply_op(g, &toy_blend, name, NULL, (int[]){a, b});
}

/* ---- mask ---- */

static int is_kept(const ttn_call *c, int64_t sequence, int64_t position)
{
    uint32_t word[4];
    uint64_t sample = c->feed->sample ? c->feed->sample[sequence] : (uint64_t)sequence;
    ttn_philox_at(c->key, sample, ttn_philox_place((uint32_t)position, 0), word);
    return word[0] % 2 == 0;
}

/* to = acc to + mask from, rows of sequences only. */
static void masked(const ttn_call *c, const real *from, real acc, real *to)
{
    const ttn_desc *d = &c->sig->in[0];
    const int64_t width = ttn_desc_numel(d) / d->dim[0];
    for (int64_t i = 0; acc == 0 && i < ttn_desc_numel(d); i++)
        to[i] = 0;
    for (int64_t s = 0; s < c->feed->used.seqs; s++)
        for (int64_t p = 0; p < c->feed->span[s].n; p++)
            for (int64_t i = 0; i < width && is_kept(c, s, p); i++)
                to[(c->feed->span[s].first + p) * width + i] += from[(c->feed->span[s].first + p) * width + i];
}

static ttn_status mask_forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    masked(c, c->in[0], 0, c->out[0]);
    return TTN_OK;
}

static ttn_status mask_backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    masked(c, c->dout[0], c->acc[0], c->din[0]);
    return TTN_OK;
}

const ttn_op toy_mask = {
    .name = "mask",
    .n_in = 1,
    .n_out = 1,
    .differentiable = TTN_BIT(0),
    .shape = same_shape,
    .cost = one_flop_each,
    .cpu = {.forward = mask_forward, .backward = mask_backward},
};

int toy_mask_of(ttn_graph *g, const char *name, int x)
{
    return ttn_apply_op(g, &toy_mask, name, NULL, (int[]){x});
}

/* ---- square ---- */

static ttn_status square_shape(ttn_sig *s, ttn_error *err)
{
    (void)err;
    s->out[0] = s->in[0];
    s->n_aux = 1;
    s->aux[0] = s->in[0];
    s->n_stat = 3;
    return TTN_OK;
}

static ttn_cost square_cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    double n = (double)ttn_desc_numel(&s->in[0]);
    double again = pass == TTN_BACKWARD && !(aux_kept & TTN_BIT(0)) ? n : 0;
    return (ttn_cost){.done = 2 * n + again, .useful = 2 * n, .bytes = 3 * n * sizeof(real)};
}

static ttn_status square_forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const real *x = c->in[0];
    real *y = c->out[0];
    real *h = c->aux[0];
    const int64_t used = used_elements(c, &c->sig->in[0]);
    c->stat[0] = 0;
    c->stat[1] = 1e300;
    c->stat[2] = -1e300;
    for (int64_t i = 0; i < all_elements(c); i++) {
        y[i] = i < used ? (x[i] + 1) * (x[i] + 1) : 0;
        if (h) h[i] = x[i] + 1;
        if (i >= used) continue;
        c->stat[0] += (double)y[i];
        if ((double)y[i] < c->stat[1]) c->stat[1] = (double)y[i];
        if ((double)y[i] > c->stat[2]) c->stat[2] = (double)y[i];
    }
    return TTN_OK;
}

static ttn_status square_backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const real *x = c->in[0];
    const real *h = c->aux[0];
    const real *dy = c->dout[0];
    real *dx = c->din[0];
    for (int64_t i = 0; i < all_elements(c); i++)
        dx[i] = ttn_accumulate(c->acc[0], dx[i], 2 * (h ? h[i] : x[i] + 1) * dy[i]);
    return TTN_OK;
}

static const ttn_stat square_stats[] = {
    {.name = "sum", .fold = TTN_SUM}, {.name = "least", .fold = TTN_MIN}, {.name = "largest", .fold = TTN_MAX}};

const ttn_op toy_square = {
    .name = "square",
    .n_in = 1,
    .n_out = 1,
    .differentiable = TTN_BIT(0),
    .reads = {{.in = TTN_BIT(0), .aux = TTN_BIT(0)}},
    .spare = TTN_BIT(0),
    .stats = square_stats,
    .n_stats = 3,
    .shape = square_shape,
    .cost = square_cost,
    .cpu = {.forward = square_forward, .backward = square_backward},
};

int toy_square_of(ttn_graph *g, const char *name, int x)
{
    return ttn_apply_op(g, &toy_square, name, NULL, (int[]){x});
}

/* ---- failing ---- */

static ttn_status fail_if(const ttn_call *c, ttn_pass pass, ttn_error *err)
{
    const toy_failing_attr *a = c->sig->attr;
    if (a->pass == pass && c->feed->step == (uint64_t)a->step) return TTN_FAIL(err, TTN_EFORMAT, "toy: row 3 is odd");
    return TTN_OK;
}

static ttn_status failing_forward(const ttn_call *c, ttn_error *err)
{
    memcpy(c->out[0], c->in[0], ttn_desc_bytes(&c->sig->in[0]));
    return fail_if(c, TTN_FORWARD, err);
}

static ttn_status failing_backward(const ttn_call *c, ttn_error *err)
{
    const real *dy = c->dout[0];
    real *dx = c->din[0];
    for (int64_t i = 0; i < all_elements(c); i++)
        dx[i] = ttn_accumulate(c->acc[0], dx[i], dy[i]);
    return fail_if(c, TTN_BACKWARD, err);
}

const ttn_op toy_failing = {
    .name = "failing",
    .n_in = 1,
    .n_out = 1,
    .differentiable = TTN_BIT(0),
    .attr_bytes = sizeof(toy_failing_attr),
    .shape = same_shape,
    .cost = one_flop_each,
    .cpu = {.forward = failing_forward, .backward = failing_backward},
};

int toy_failing_of(ttn_graph *g, const char *name, int x, toy_failing_attr attr)
{
    return ttn_apply_op(g, &toy_failing, name, &attr, (int[]){x});
}

/* ---- sum ---- */

static ttn_status sum_shape(ttn_sig *s, ttn_error *err)
{
    (void)err;
    s->out[0] = (ttn_desc){.type = TTN_REAL};
    return TTN_OK;
}

static ttn_status sum_forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const real *x = c->in[0];
    real *y = c->out[0];
    double sum = 0;
    for (int64_t i = 0; i < used_elements(c, &c->sig->in[0]); i++)
        sum += (double)x[i];
    y[0] = (real)sum;
    return TTN_OK;
}

static ttn_status sum_backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const real *dy = c->dout[0];
    real *dx = c->din[0];
    const int64_t used = used_elements(c, &c->sig->in[0]);
    for (int64_t i = 0; i < all_elements(c); i++)
        dx[i] = ttn_accumulate(c->acc[0], dx[i], i < used ? dy[0] : 0);
    return TTN_OK;
}

const ttn_op toy_sum = {
    .name = "sum",
    .n_in = 1,
    .n_out = 1,
    .differentiable = TTN_BIT(0),
    .shape = sum_shape,
    .cost = one_flop_each,
    .cpu = {.forward = sum_forward, .backward = sum_backward},
};

int toy_sum_of(ttn_graph *g, const char *name, int x)
{
    return ttn_apply_op(g, &toy_sum, name, NULL, (int[]){x});
}

/* ---- dot ---- */

static ttn_status dot_shape(ttn_sig *s, ttn_error *err)
{
    if (!ttn_desc_same(&s->in[0], &s->in[1])) return TTN_FAIL(err, TTN_EINVAL, "dot: two shapes");
    s->out[0] = (ttn_desc){.type = TTN_REAL};
    return TTN_OK;
}

static ttn_status dot_forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const real *x = c->in[0];
    const real *w = c->in[1];
    double sum = 0;
    for (int64_t i = 0; i < used_elements(c, &c->sig->in[0]); i++)
        sum += (double)x[i] * (double)w[i];
    *(real *)c->out[0] = (real)sum;
    return TTN_OK;
}

static ttn_status dot_backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const real *dy = c->dout[0];
    const real *w = c->in[1];
    real *dx = c->din[0];
    const int64_t used = used_elements(c, &c->sig->in[0]);
    for (int64_t i = 0; i < ttn_desc_numel(&c->sig->in[0]); i++)
        dx[i] = ttn_accumulate(c->acc[0], dx[i], i < used ? dy[0] * w[i] : 0);
    return TTN_OK;
}

const ttn_op toy_dot = {
    .name = "dot",
    .n_in = 2,
    .n_out = 1,
    .differentiable = TTN_BIT(0),
    .reads = {{.in = TTN_BIT(1)}},
    .shape = dot_shape,
    .cost = one_flop_each,
    .cpu = {.forward = dot_forward, .backward = dot_backward},
};

int toy_dot_of(ttn_graph *g, const char *name, int x, int w)
{
    return ttn_apply_op(g, &toy_dot, name, NULL, (int[]){x, w});
}

/* ---- rows ---- */

static ttn_status rows_shape(ttn_sig *s, ttn_error *err)
{
    if (s->in[0].dim[0] != s->cap.rows) return TTN_FAIL(err, TTN_EINVAL, "rows: not as many as the capacity");
    s->out[0] = s->in[0];
    s->out[0].axis = TTN_ROWS;
    return TTN_OK;
}

static ttn_status rows_forward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const size_t bytes = ttn_desc_bytes(&c->sig->out[0]);
    const size_t used = (size_t)used_elements(c, &c->sig->out[0]) * sizeof(real);
    memcpy(c->out[0], c->in[0], used);
    memset((char *)c->out[0] + used, 0, bytes - used);
    return TTN_OK;
}

static ttn_status rows_backward(const ttn_call *c, ttn_error *err)
{
    (void)err;
    const real *dy = c->dout[0];
    real *dx = c->din[0];
    for (int64_t i = 0; i < ttn_desc_numel(&c->sig->out[0]); i++)
        dx[i] = ttn_accumulate(c->acc[0], dx[i], dy[i]);
    return TTN_OK;
}

const ttn_op toy_rows = {
    .name = "rows",
    .n_in = 1,
    .n_out = 1,
    .differentiable = TTN_BIT(0),
    .shape = rows_shape,
    .cost = one_flop_each,
    .cpu = {.forward = rows_forward, .backward = rows_backward},
};

int toy_rows_of(ttn_graph *g, const char *name, int x)
{
    return ttn_apply_op(g, &toy_rows, name, NULL, (int[]){x});
}
