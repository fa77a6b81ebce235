/* Random-feature attention as published implementations compute it, eps included:
 *
 *     google       K. Choromanski et al., github.com/google-research/google-research/tree/master/performer/fast_attention/jax
 *     google-tf    the same authors' fast_attention/tensorflow
 *     lucidrains   P. Wang, github.com/lucidrains/performer-pytorch 1.1.4
 *
 * Maximum first, eps added to every feature: Q' = m^(-1/2) (exp(u - h - max_j u) + eps), K' = m^(-1/2) (exp(u - h - max u) +
 * eps) with one maximum over all projections of all keys of a sequence and head. google: eps 1e-6, and a denominator within
 * 1e-6 of 0 gets 2e-6 more. google-tf: eps 1e-6. lucidrains: eps 1e-4. With eps in them features depend on the maxima: google
 * and google-tf differentiate these, and gradients go to the first element that holds one. lucidrains detaches them, so that
 * dq and dk are those of training with it and not the derivative of out.
 *
 * google's trig: Q' = m^(-1/2) e^(h(x_i) - max_t h(x_t)) [cos u, sin u], and K' likewise with the keys' maximum. Both maxima
 * leave the quotient, but for rows whose denominators are raised as above: short queries beside long ones.
 *
 * Generalized maps are f + 1e-3 for every f; google's have s = 1, and google-tf's is relu(W x / sqrt(m)).
 *
 * For their numbers and for weights trained with them: at a head width of 64 and entries of variance 1, eps 1e-4 is 98 % of a
 * denominator, and attention is the mean. */
#include <string.h>
#include "autograd/ops/favor.h"

void ttn_favor_compat_job(ttn_favor_job *j)
{
    const ttn_favor_compatible compat = j->a->compat;
    const real by_features = (real)(1 / sqrt((double)j->m));
    switch (ttn_favor_family_of(j->a->kernel)) {
    case TTN_FAVOR_EXPONENTIAL:
        j->map = &ttn_favor_compat_softmax;
        j->epsilon = compat == TTN_FAVOR_LUCIDRAINS ? (real)1e-4 : (real)1e-6;
        j->ratio = by_features;
        j->n_c = 1;
        return;
    case TTN_FAVOR_TRIGONOMETRIC:
        j->map = &ttn_favor_compat_trig;
        j->ratio = by_features;
        return;
    case TTN_FAVOR_GENERALIZED:
        j->epsilon = (real)1e-3;
        if (compat != TTN_FAVOR_LUCIDRAINS) j->scale = 1;
        if (compat == TTN_FAVOR_GOOGLE_TF && j->has_W) j->scale = by_features;
        return;
    }
}

/* The denominator that is divided by. */
static real raised(const ttn_favor_job *j, real Dn)
{
    return j->a->compat == TTN_FAVOR_GOOGLE && fabs(Dn) <= (real)1e-6 ? Dn + (real)2e-6 : Dn;
}

/* ---- softmax ---- */

static int differentiates_maxima(const ttn_favor_job *j)
{
    return j->a->compat != TTN_FAVOR_LUCIDRAINS;
}

static void grow(const ttn_favor_job *j, const ttn_favor_tile *t, const ttn_favor_state *s, int first, real *room)
{
    ttn_favor_grow_scalar(j, s, first, ttn_favor_largest(t->u, t->live * j->M), room);
}

/* Without ratio and eps, which finish adds: while the reference grows, only this part is rescaled. */
static void keys(const ttn_favor_job *j, const ttn_favor_tile *t, const real *c)
{
    for (int64_t row = 0; row < t->live; row++) {
        real *u = t->u + row * j->M;
        const real h = t->half[row];
#pragma omp simd
        for (int64_t f = 0; f < j->M; f++)
            u[f] = ttn_exp((u[f] - h) - c[0]);
    }
    ttn_favor_clear_rest(t, j->M, t->u);
}

static void finish(const ttn_favor_job *j, ttn_favor_tile *t, const ttn_favor_state *s, int64_t seq, int64_t head)
{
    (void)t;
    (void)head;
    const int64_t n = j->c->feed->span[seq].n;
    for (int64_t f = 0; f < j->M; f++) {
        real *row = s->S + f * j->D;
        s->z[f] = j->ratio * (s->z[f] + j->epsilon * (real)n);
#pragma omp simd
        for (int64_t d = 0; d < j->D; d++)
            row[d] = j->ratio * (row[d] + j->epsilon * s->sum_v[d]);
    }
}

static void queries(const ttn_favor_job *j, const ttn_favor_tile *t, const real *c)
{
    (void)c;
    for (int64_t row = 0; row < t->live; row++) {
        real *u = t->u + row * j->M;
        const real most = ttn_favor_largest(u, j->M);
        const real h = t->half[row];
#pragma omp simd
        for (int64_t f = 0; f < j->M; f++)
            u[f] = j->ratio * (ttn_exp((u[f] - h) - most) + j->epsilon);
    }
    ttn_favor_clear_rest(t, j->M, t->u);
}

static real factor(const ttn_favor_job *j, const ttn_favor_tile *t, int64_t row, const ttn_favor_sum *sum,
                   real *ret_kept)
{
    (void)t;
    (void)row;
    *ret_kept = 1 / raised(j, sum->denominator);
    return *ret_kept;
}

/* The first element that holds the maximum. */
static int64_t first_of(const real *x, int64_t n, real most)
{
    int64_t i = 0;
    while (i < n - 1 && x[i] != most)
        i++;
    return i;
}

/* b becomes factor e (b + gamma z), e = ratio exp(…); u becomes factor (e + ratio eps). Returns the sum of the row of b. */
static real slopes_of_row(const ttn_favor_job *j, real h, real most, real factor, real gamma, const real *z, real *u,
                          real *b)
{
    const real eps = j->ratio * j->epsilon;
    if (!b) {
#pragma omp simd
        for (int64_t f = 0; f < j->M; f++)
            u[f] = factor * (j->ratio * ttn_exp((u[f] - h) - most) + eps);
        return 0;
    }
#pragma omp simd
    for (int64_t f = 0; f < j->M; f++) {
        const real e = j->ratio * ttn_exp((u[f] - h) - most);
        u[f] = factor * (e + eps);
        b[f] = factor * e * (b[f] + gamma * z[f]);
    }
    return ttn_favor_sum_of(b, j->M);
}

static double query_slopes(const ttn_favor_job *j, const ttn_favor_tile *t, const real *c, const real *z)
{
    (void)c;
    for (int64_t row = 0; row < t->live; row++) {
        real *u = t->u + row * j->M;
        real *b = t->b ? t->b + row * j->M : NULL;
        const real most = ttn_favor_largest(u, j->M);
        const int64_t at = first_of(u, j->M, most);
        const real gamma = b ? -t->delta[row] : 0;
        const real sum = slopes_of_row(j, t->half[row], most, t->shift[row], gamma, z, u, b);
        if (!b) continue;
        if (differentiates_maxima(j)) b[at] -= sum;
        t->own[row] = -sum;
    }
    ttn_favor_clear_rest(t, j->M, t->u);
    return 0;
}

static double key_slopes(const ttn_favor_job *j, const ttn_favor_tile *t, const real *c, const real *rho)
{
    double reference = 0;
    for (int64_t row = 0; row < t->live; row++) {
        real *u = t->u + row * j->M;
        real *b = t->b ? t->b + row * j->M : NULL;
        const real sum = slopes_of_row(j, t->half[row], c[0], 1, 1, rho, u, b);
        if (!b) continue;
        t->own[row] = -sum;
        reference += (double)sum;
    }
    ttn_favor_clear_rest(t, j->M, t->u);
    return differentiates_maxima(j) ? reference : 0;
}

/* Of keys alone: the gradient to a row's own maximum stays in the row. dk of the row that holds the maximum of all keys -=
 * reference s w of the projection that it is of. */
static void settle(const ttn_favor_job *j, ttn_favor_tile *t, int input, int64_t seq, int64_t head, double reference)
{
    const real *weight = ttn_favor_head_of_W(j, head);
    const real most = ttn_favor_kept_state(j, seq, head).c[0];
    const int64_t T = ttn_favor_tiles(j->c->feed->span[seq].n);
    for (int64_t tile = 0; tile < T; tile++) {
        ttn_favor_project(j, t, ttn_favor_tile_at(j, t, j->c->in[input], seq, head, tile), weight);
        const int64_t at = first_of(t->u, t->live * j->M, most);
        if (t->u[at] != most) continue;
        const real *w = weight + at % j->M * j->D;
        real *dk = (real *)ttn_favor_tile_at(j, t, j->c->din[input], seq, head, tile) + at / j->M * j->C;
        for (int64_t d = 0; d < j->D; d++)
            dk[d] -= (real)reference * j->scale * w[d];
        return;
    }
}

const ttn_favor_map ttn_favor_compat_softmax = {
    .grow = grow,
    .finish = finish,
    .keys = keys,
    .queries = queries,
    .factor = factor,
    .query_slopes = query_slopes,
    .key_slopes = key_slopes,
    .settle = settle,
};

/* ---- trig ---- */

/* The first row with the largest h of an input of one sequence and head. *ret_h: that h. */
static int64_t longest(const ttn_favor_job *j, ttn_favor_tile *t, int input, int64_t seq, int64_t head, real *ret_h)
{
    int64_t at = 0;
    *ret_h = -1;
    for (int64_t tile = 0; tile < ttn_favor_tiles(j->c->feed->span[seq].n); tile++) {
        ttn_favor_take(j, t, ttn_favor_tile_at(j, t, j->c->in[input], seq, head, tile));
        for (int64_t row = 0; row < t->live; row++) {
            if (t->half[row] <= *ret_h) continue;
            *ret_h = t->half[row];
            at = tile * t->height + row;
        }
    }
    return at;
}

static void trig_finish(const ttn_favor_job *j, ttn_favor_tile *t, const ttn_favor_state *s, int64_t seq, int64_t head)
{
    longest(j, t, TTN_FAVOR_Q, seq, head, s->most);
}

/* Features of queries come without what their norms make of them: that is in the factor. */
static real trig_factor(const ttn_favor_job *j, const ttn_favor_tile *t, int64_t row, const ttn_favor_sum *sum,
                        real *ret_kept)
{
    const real weight = j->ratio * ttn_exp(t->half[row] - sum->most[0]);
    *ret_kept = weight / raised(j, weight * sum->denominator);
    return *ret_kept;
}

static double trig_query_slopes(const ttn_favor_job *j, const ttn_favor_tile *t, const real *c, const real *z)
{
    (void)c;
    double reference = 0;
    for (int64_t row = 0; row < t->live; row++) {
        real *u = t->u + row * j->M;
        ttn_favor_turn_row(j, u, t->shift[row]);
        if (!t->b) continue;
        real *b = t->b + row * j->M;
        const real delta = t->delta[row];
#pragma omp simd
        for (int64_t f = 0; f < j->M; f++)
            b[f] -= delta * z[f];
        t->own[row] = ttn_favor_dot(b, u, j->M); /* 0 but for rounding, unless the denominator was raised */
        reference += (double)t->own[row];
        ttn_favor_unturn_row(j, u, b);
    }
    ttn_favor_clear_rest(t, j->M, t->u);
    return reference;
}

/* dq or dk of the row with the largest h -= reference s x. */
static void trig_settle(const ttn_favor_job *j, ttn_favor_tile *t, int input, int64_t seq, int64_t head,
                        double reference)
{
    real h;
    const int64_t row = j->c->feed->span[seq].first + longest(j, t, input, seq, head, &h);
    const real *x = (const real *)j->c->in[input] + row * j->C + head * j->D;
    real *dx = (real *)j->c->din[input] + row * j->C + head * j->D;
    for (int64_t d = 0; d < j->D; d++)
        dx[d] -= (real)reference * j->scale * j->scale * x[d];
}

const ttn_favor_map ttn_favor_compat_trig = {
    .grow = ttn_favor_trig_grow,
    .finish = trig_finish,
    .keys = ttn_favor_trig_keys,
    .queries = ttn_favor_trig_queries,
    .factor = trig_factor,
    .query_slopes = trig_query_slopes,
    .key_slopes = ttn_favor_trig_key_slopes,
    .settle = trig_settle,
};
