/* The maps of random-feature attention on tiles of rows: what keeps each family in range, features, and the way back.
 *
 * Notation as on top of attn_favor.c. In every pass a row of features is in the first cache; the passes of a tile cost a
 * tenth of its products. */
#include <math.h>
#include <string.h>
#include "autograd/ops/favor.h"
#include "core/blas.h"

/* ---- sums ---- */

/* Partial sums of a row, whatever the processor has; the usual numbers of features are multiples of it. */
enum { WIDTH = 16 };

static real total(const real *part)
{
    real sum[WIDTH];
    memcpy(sum, part, sizeof sum);
    for (int apart = WIDTH / 2; apart > 0; apart /= 2)
        for (int w = 0; w < apart; w++)
            sum[w] += sum[w + apart];
    return sum[0];
}

real ttn_favor_dot(const real *x, const real *y, int64_t n)
{
    real part[WIDTH] = {0};
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) {
#pragma omp simd
        for (int w = 0; w < WIDTH; w++)
            part[w] += x[i + w] * y[i + w];
    }
    for (int w = 0; i + w < n; w++)
        part[w] += x[i + w] * y[i + w];
    return total(part);
}

real ttn_favor_sum_of(const real *x, int64_t n)
{
    real part[WIDTH] = {0};
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) {
#pragma omp simd
        for (int w = 0; w < WIDTH; w++)
            part[w] += x[i + w];
    }
    for (int w = 0; i + w < n; w++)
        part[w] += x[i + w];
    return total(part);
}

real ttn_favor_largest(const real *x, int64_t n)
{
    real part[WIDTH];
    for (int w = 0; w < WIDTH; w++)
        part[w] = x[0];
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) {
#pragma omp simd
        for (int w = 0; w < WIDTH; w++)
            part[w] = x[i + w] > part[w] ? x[i + w] : part[w];
    }
    for (int w = 0; i + w < n; w++)
        part[w] = x[i + w] > part[w] ? x[i + w] : part[w];
    real most = part[0];
    for (int w = 1; w < WIDTH; w++)
        most = part[w] > most ? part[w] : most;
    return most;
}

void ttn_favor_clear_rest(const ttn_favor_tile *t, int64_t width, real *x)
{
    memset(x + t->live * width, 0, (size_t)((t->height - t->live) * width) * sizeof *x);
}

/* In f32 a sum of one row after the other gets worse with every row, and all in one direction where the rows are equal, as half of
 * relu's features are: 4,032 rows were off by 1.7e-5. So eight rows at a time, then a tile, are summed up by themselves. (Eight
 * rows are read at once, so that it costs no more than one sum did.) */
void ttn_favor_add_rows(const ttn_favor_tile *t, int64_t width, const real *x, const real *factor, real *room, real *to)
{
    enum { ROWS = 8 };
    static const real ones[ROWS] = {1, 1, 1, 1, 1, 1, 1, 1};
    real *const tile = room;
    memset(tile, 0, (size_t)width * sizeof *tile);
    int64_t row = 0;
    for (; row + ROWS <= t->live; row += ROWS) {
        const real *f = factor ? factor + row : ones;
        const real *a = x + row * width;
        const real *b = a + 4 * width;
#pragma omp simd
        for (int64_t i = 0; i < width; i++)
            tile[i] += ((f[0] * a[i] + f[1] * a[i + width]) + (f[2] * a[i + 2 * width] + f[3] * a[i + 3 * width])) +
                       ((f[4] * b[i] + f[5] * b[i + width]) + (f[6] * b[i + 2 * width] + f[7] * b[i + 3 * width]));
    }
    for (; row < t->live; row++) {
        const real by = factor ? factor[row] : 1;
#pragma omp simd
        for (int64_t i = 0; i < width; i++)
            tile[i] += by * x[row * width + i];
    }
#pragma omp simd
    for (int64_t i = 0; i < width; i++)
        to[i] += tile[i];
}

/* ---- states ---- */

void ttn_favor_rescale(const ttn_favor_job *j, const ttn_favor_state *s, const real *factor)
{
    for (int64_t f = 0; f < j->M; f++) {
        if (factor[f] == 1) continue;
        real *row = s->S + f * j->D;
        s->z[f] *= factor[f];
#pragma omp simd
        for (int64_t d = 0; d < j->D; d++)
            row[d] *= factor[f];
    }
}

void ttn_favor_add(const ttn_favor_job *j, const ttn_favor_state *s, const ttn_favor_state *more)
{
#pragma omp simd
    for (int64_t f = 0; f < j->M; f++)
        s->z[f] += more->z[f];
#pragma omp simd
    for (int64_t e = 0; e < j->M * j->D; e++)
        s->S[e] += more->S[e];
}

void ttn_favor_join(const ttn_favor_job *j, const ttn_favor_state *s, const ttn_favor_state *more, real *room)
{
    if (j->n_c > 0) {
        real *next = room; /* c' = max of both; one number for all features where n_c is 1 */
        for (int64_t i = 0; i < j->n_c; i++)
            next[i] = s->c[i] > more->c[i] ? s->c[i] : more->c[i];
        real *factor = room + j->n_c;
        const ttn_favor_state *const both[] = {s, more};
        for (int b = 0; b < 2; b++) {
            for (int64_t f = 0; f < j->M; f++) {
                const int64_t i = j->n_c == 1 ? 0 : f;
                factor[f] = ttn_exp(both[b]->c[i] - next[i]);
            }
            ttn_favor_rescale(j, both[b], factor);
        }
        memcpy(s->c, next, (size_t)j->n_c * sizeof *next);
    }
    ttn_favor_add(j, s, more);
}

/* A reference of one number for all features becomes `next`. */
void ttn_favor_grow_scalar(const ttn_favor_job *j, const ttn_favor_state *s, int first, real next, real *room)
{
    if (!first && next <= s->c[0]) return;
    if (!first) {
        const real factor = ttn_exp(s->c[0] - next);
        for (int64_t f = 0; f < j->M; f++)
            room[f] = factor;
        ttn_favor_rescale(j, s, room);
    }
    s->c[0] = next;
}

/* ---- the exponential family ----
 *
 * a_tj = l_j(y_t) - h(y_t), l = u or -u.   c_j = max_t a_tj,   K' = exp(a - c) <= 1, and 1 at the maximum: so z_j >= 1, and
 * with r_ij = l_j(x_i) + c_j, mu_i = max_j r_ij, Q' = exp(r - mu) also Dn_i >= 1. L = mu + log Dn.
 *
 * Backward: Q^ = exp(r - L), E = Q^ (g S^T - delta z) for queries, E = K' (v R^T + rho) for keys. dx = E W, without the term
 * of h, since sum_j E_ij = 0; dy = E W - (sum_j E_tj) y. With the second side, E_+ - E_- takes the place of E. */

/* l of the second side, of rows whose first side is there. */
static void mirror(const ttn_favor_job *j, real *row)
{
    if (j->M == j->m) return;
#pragma omp simd
    for (int64_t f = 0; f < j->m; f++)
        row[j->m + f] = -row[f];
}

/* (E_+ - E_-) in the place of E_+. */
static void fold(const ttn_favor_job *j, real *row)
{
    if (j->M == j->m) return;
#pragma omp simd
    for (int64_t f = 0; f < j->m; f++)
        row[f] -= row[j->m + f];
}

/* h(y) of a row: `exp` has none. */
static real norm_of_key(const ttn_favor_job *j, const ttn_favor_tile *t, int64_t row)
{
    return j->a->kernel == TTN_FAVOR_EXP ? 0 : t->half[row];
}

static void exponential_grow(const ttn_favor_job *j, const ttn_favor_tile *t, const ttn_favor_state *s, int first,
                             real *room)
{
    const int64_t M = j->M;
    real *next = room;
    for (int64_t row = 0; row < t->live; row++) {
        real *u = t->u + row * M;
        const real h = norm_of_key(j, t, row);
        mirror(j, u);
        if (first && row == 0) {
            for (int64_t f = 0; f < M; f++)
                next[f] = u[f] - h;
            continue;
        }
        const real *most = row == 0 ? s->c : next;
#pragma omp simd
        for (int64_t f = 0; f < M; f++)
            next[f] = u[f] - h > most[f] ? u[f] - h : most[f];
    }
    if (!first) {
        real *factor = room + M;
#pragma omp simd
        for (int64_t f = 0; f < M; f++)
            factor[f] = ttn_exp(s->c[f] - next[f]);
        ttn_favor_rescale(j, s, factor);
    }
    memcpy(s->c, next, (size_t)M * sizeof *next);
}

static void exponential_keys(const ttn_favor_job *j, const ttn_favor_tile *t, const real *c)
{
    for (int64_t row = 0; row < t->live; row++) {
        real *u = t->u + row * j->M;
        const real h = norm_of_key(j, t, row);
        mirror(j, u);
#pragma omp simd
        for (int64_t f = 0; f < j->M; f++)
            u[f] = ttn_exp((u[f] - h) - c[f]);
    }
    ttn_favor_clear_rest(t, j->M, t->u);
}

static void exponential_queries(const ttn_favor_job *j, const ttn_favor_tile *t, const real *c)
{
    for (int64_t row = 0; row < t->live; row++) {
        real *u = t->u + row * j->M;
        mirror(j, u);
#pragma omp simd
        for (int64_t f = 0; f < j->M; f++)
            u[f] += c[f];
        const real most = ttn_favor_largest(u, j->M);
#pragma omp simd
        for (int64_t f = 0; f < j->M; f++)
            u[f] = ttn_exp(u[f] - most);
        t->shift[row] = most;
    }
    ttn_favor_clear_rest(t, j->M, t->u);
}

static real exponential_factor(const ttn_favor_job *j, const ttn_favor_tile *t, int64_t row, const ttn_favor_sum *sum,
                               real *ret_kept)
{
    if (j->a->renormalize == TTN_FAVOR_PLAIN) {
        *ret_kept = t->half[row] - ttn_log(j->kappa);
        return ttn_exp(t->shift[row] - *ret_kept);
    }
    *ret_kept = t->shift[row] + ttn_log(sum->denominator);
    return 1 / sum->denominator;
}

static double exponential_query_slopes(const ttn_favor_job *j, const ttn_favor_tile *t, const real *c, const real *z)
{
    for (int64_t row = 0; row < t->live; row++) {
        real *u = t->u + row * j->M;
        const real L = t->shift[row];
        mirror(j, u);
        if (t->b) {
            real *b = t->b + row * j->M;
            const real gamma = j->divides ? -t->delta[row] : 0;
#pragma omp simd
            for (int64_t f = 0; f < j->M; f++) {
                const real weight = ttn_exp((u[f] + c[f]) - L);
                u[f] = weight;
                b[f] = weight * (b[f] + gamma * z[f]);
            }
            fold(j, b);
            t->own[row] = j->divides ? 0 : -t->delta[row]; /* out has e^-h */
        } else {
#pragma omp simd
            for (int64_t f = 0; f < j->M; f++)
                u[f] = ttn_exp((u[f] + c[f]) - L);
        }
    }
    ttn_favor_clear_rest(t, j->M, t->u);
    return 0;
}

static double exponential_key_slopes(const ttn_favor_job *j, const ttn_favor_tile *t, const real *c, const real *rho)
{
    exponential_keys(j, t, c);
    if (!t->b) return 0;
    for (int64_t row = 0; row < t->live; row++) {
        const real *u = t->u + row * j->M;
        real *b = t->b + row * j->M;
#pragma omp simd
        for (int64_t f = 0; f < j->M; f++)
            b[f] = u[f] * (b[f] + rho[f]);
        t->own[row] = j->a->kernel == TTN_FAVOR_EXP ? 0 : -ttn_favor_sum_of(b, j->M);
        fold(j, b);
    }
    return 0;
}

const ttn_favor_map ttn_favor_exponential = {
    .grow = exponential_grow,
    .keys = exponential_keys,
    .queries = exponential_queries,
    .factor = exponential_factor,
    .query_slopes = exponential_query_slopes,
    .key_slopes = exponential_key_slopes,
};

/* ---- the trigonometric map ----
 *
 * Q' = [cos u, sin u]: the factor e^h(x) of queries leaves the quotient.   K' = e^(h(y_t) - c) [cos, sin], c = max_t h(y_t).
 * Backward, with G = dQ' or dK': du = -G_cos K'_sin + G_sin K'_cos, and dy gains (sum_j G_tj K'_tj) y. */

/* A row's denominator is a sum of numbers of both signs: where it is rounding, the row is given up. */
static int is_rounding(const ttn_favor_job *j, const ttn_favor_tile *t, int64_t row, const ttn_favor_sum *sum)
{
    const real *u = t->u + row * j->M;
    const real norm = (real)sqrt((double)ttn_favor_dot(u, u, j->M));
    return !(fabs(sum->denominator) > (real)1e-6 * norm * sum->norm_z);
}

void ttn_favor_turn_row(const ttn_favor_job *j, real *u, real factor)
{
    real *sine = u + j->m;
#pragma omp simd
    for (int64_t f = 0; f < j->m; f++) {
        real c;
        real s;
        ttn_favor_turn(u[f], &c, &s);
        u[f] = factor * c;
        sine[f] = factor * s;
    }
}

void ttn_favor_unturn_row(const ttn_favor_job *j, const real *u, real *b)
{
#pragma omp simd
    for (int64_t f = 0; f < j->m; f++)
        b[f] = b[j->m + f] * u[f] - b[f] * u[j->m + f];
}

void ttn_favor_trig_grow(const ttn_favor_job *j, const ttn_favor_tile *t, const ttn_favor_state *s, int first,
                         real *room)
{
    ttn_favor_grow_scalar(j, s, first, ttn_favor_largest(t->half, t->live), room);
}

void ttn_favor_trig_keys(const ttn_favor_job *j, const ttn_favor_tile *t, const real *c)
{
    for (int64_t row = 0; row < t->live; row++)
        ttn_favor_turn_row(j, t->u + row * j->M, j->ratio * ttn_exp(t->half[row] - c[0]));
    ttn_favor_clear_rest(t, j->M, t->u);
}

void ttn_favor_trig_queries(const ttn_favor_job *j, const ttn_favor_tile *t, const real *c)
{
    (void)c;
    for (int64_t row = 0; row < t->live; row++)
        ttn_favor_turn_row(j, t->u + row * j->M, 1);
    ttn_favor_clear_rest(t, j->M, t->u);
}

static real trigonometric_factor(const ttn_favor_job *j, const ttn_favor_tile *t, int64_t row, const ttn_favor_sum *sum,
                                 real *ret_kept)
{
    if (j->a->renormalize == TTN_FAVOR_PLAIN)
        *ret_kept = j->kappa * ttn_exp(t->half[row] + sum->c[0]);
    else
        *ret_kept = is_rounding(j, t, row, sum) ? 0 : 1 / sum->denominator;
    return *ret_kept;
}

static double trigonometric_query_slopes(const ttn_favor_job *j, const ttn_favor_tile *t, const real *c, const real *z)
{
    (void)c;
    for (int64_t row = 0; row < t->live; row++) {
        real *u = t->u + row * j->M;
        ttn_favor_turn_row(j, u, t->shift[row]);
        if (!t->b) continue;
        real *b = t->b + row * j->M;
        const real gamma = j->divides ? -t->delta[row] : 0;
#pragma omp simd
        for (int64_t f = 0; f < j->M; f++)
            b[f] += gamma * z[f];
        ttn_favor_unturn_row(j, u, b);
        t->own[row] = j->divides ? 0 : t->delta[row]; /* out has e^h */
    }
    ttn_favor_clear_rest(t, j->M, t->u);
    return 0;
}

double ttn_favor_trig_key_slopes(const ttn_favor_job *j, const ttn_favor_tile *t, const real *c, const real *rho)
{
    ttn_favor_trig_keys(j, t, c);
    if (!t->b) return 0;
    double reference = 0; /* goes nowhere where c leaves the quotient */
    for (int64_t row = 0; row < t->live; row++) {
        const real *u = t->u + row * j->M;
        real *b = t->b + row * j->M;
#pragma omp simd
        for (int64_t f = 0; f < j->M; f++)
            b[f] += rho[f];
        t->own[row] = ttn_favor_dot(b, u, j->M);
        reference += (double)t->own[row];
        ttn_favor_unturn_row(j, u, b);
    }
    return reference;
}

const ttn_favor_map ttn_favor_trigonometric = {
    .grow = ttn_favor_trig_grow,
    .keys = ttn_favor_trig_keys,
    .queries = ttn_favor_trig_queries,
    .factor = trigonometric_factor,
    .query_slopes = trigonometric_query_slopes,
    .key_slopes = ttn_favor_trig_key_slopes,
};

/* ---- generalized maps ----
 *
 * Q', K' = f(u) + epsilon, no reference.   Backward: du = G f'(u). */

/* Both are for constant `f` only, so that a loop has the formula and no call. */
__attribute__((always_inline)) static inline void values_by(ttn_favor_point (*f)(real), int64_t n, real epsilon,
                                                            real *u)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        u[i] = f(u[i]).value + epsilon;
}

__attribute__((always_inline)) static inline void slopes_by(ttn_favor_point (*f)(real), int64_t n, real epsilon,
                                                            real factor, real gamma, const real *z, real *u, real *b)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const ttn_favor_point p = f(u[i]);
        u[i] = factor * (p.value + epsilon);
        b[i] = factor * (b[i] + gamma * z[i]) * p.slope;
    }
}

/* u becomes f(u) + epsilon */
static void values_of(const ttn_favor_job *j, real *u)
{
    const int64_t n = j->M;
    const real e = j->epsilon;
    switch (j->a->kernel) {
    case TTN_FAVOR_RELU:
        values_by(ttn_favor_relu, n, e, u);
        return;
    case TTN_FAVOR_ELU1:
        values_by(ttn_favor_elu1, n, e, u);
        return;
    case TTN_FAVOR_GELU:
        values_by(ttn_favor_gelu, n, e, u);
        return;
    case TTN_FAVOR_SQUARE:
        values_by(ttn_favor_square, n, e, u);
        return;
    case TTN_FAVOR_SIGMOID:
        values_by(ttn_favor_sigmoid, n, e, u);
        return;
    case TTN_FAVOR_TANH:
        values_by(ttn_favor_tanh, n, e, u);
        return;
    case TTN_FAVOR_SOFTPLUS:
        values_by(ttn_favor_softplus, n, e, u);
        return;
    default:
        values_by(ttn_favor_identity, n, e, u);
        return;
    }
}

/* u becomes factor (f(u) + epsilon), b becomes factor (b + gamma z) f'(u) */
static void slopes_of(const ttn_favor_job *j, real factor, real gamma, const real *z, real *u, real *b)
{
    const int64_t n = j->M;
    const real e = j->epsilon;
    switch (j->a->kernel) {
    case TTN_FAVOR_RELU:
        slopes_by(ttn_favor_relu, n, e, factor, gamma, z, u, b);
        return;
    case TTN_FAVOR_ELU1:
        slopes_by(ttn_favor_elu1, n, e, factor, gamma, z, u, b);
        return;
    case TTN_FAVOR_GELU:
        slopes_by(ttn_favor_gelu, n, e, factor, gamma, z, u, b);
        return;
    case TTN_FAVOR_SQUARE:
        slopes_by(ttn_favor_square, n, e, factor, gamma, z, u, b);
        return;
    case TTN_FAVOR_SIGMOID:
        slopes_by(ttn_favor_sigmoid, n, e, factor, gamma, z, u, b);
        return;
    case TTN_FAVOR_TANH:
        slopes_by(ttn_favor_tanh, n, e, factor, gamma, z, u, b);
        return;
    case TTN_FAVOR_SOFTPLUS:
        slopes_by(ttn_favor_softplus, n, e, factor, gamma, z, u, b);
        return;
    default:
        slopes_by(ttn_favor_identity, n, e, factor, gamma, z, u, b);
        return;
    }
}

static void generalized_features(const ttn_favor_job *j, const ttn_favor_tile *t, const real *c)
{
    (void)c;
    for (int64_t row = 0; row < t->live; row++)
        values_of(j, t->u + row * j->M);
    ttn_favor_clear_rest(t, j->M, t->u);
}

static real generalized_factor(const ttn_favor_job *j, const ttn_favor_tile *t, int64_t row, const ttn_favor_sum *sum,
                               real *ret_kept)
{
    if (!j->divides)
        *ret_kept = 1 / (real)((double)j->M * (double)sum->n);
    else if (j->a->compat != TTN_FAVOR_OURS)
        *ret_kept = 1 / sum->denominator;
    else
        *ret_kept = is_rounding(j, t, row, sum) ? 0 : 1 / sum->denominator;
    return *ret_kept;
}

static double generalized_query_slopes(const ttn_favor_job *j, const ttn_favor_tile *t, const real *c, const real *z)
{
    (void)c;
    for (int64_t row = 0; row < t->live; row++) {
        real *u = t->u + row * j->M;
        const real factor = t->shift[row];
        if (t->b) {
            slopes_of(j, factor, j->divides ? -t->delta[row] : 0, z, u, t->b + row * j->M);
            t->own[row] = 0;
            continue;
        }
        values_of(j, u);
#pragma omp simd
        for (int64_t f = 0; f < j->M; f++)
            u[f] *= factor;
    }
    ttn_favor_clear_rest(t, j->M, t->u);
    return 0;
}

static double generalized_key_slopes(const ttn_favor_job *j, const ttn_favor_tile *t, const real *c, const real *rho)
{
    (void)c;
    for (int64_t row = 0; row < t->live; row++) {
        real *u = t->u + row * j->M;
        if (t->b) {
            slopes_of(j, 1, 1, rho, u, t->b + row * j->M);
            t->own[row] = 0;
        } else {
            values_of(j, u);
        }
    }
    ttn_favor_clear_rest(t, j->M, t->u);
    return 0;
}

const ttn_favor_map ttn_favor_generalized = {
    .keys = generalized_features,
    .queries = generalized_features,
    .factor = generalized_factor,
    .query_slopes = generalized_query_slopes,
    .key_slopes = generalized_key_slopes,
};
