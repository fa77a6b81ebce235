/* The maths: autograd/nystrom_inverse.h. Backward, G = dZ', X = X_1 etc. as they stand there:
 *
 *     cheb     X = 3I - P, T = 3I - P X, Z' = Z T:
 *              dT = Z^T G     dP = P^T dT - dT X^T     dA += dP Z^T     dZ = G T^T + A^T dP
 *     razavi   X_1 = 7I - P, X_2 = 15I - P X_1, T = 13I - P X_2, Z' = Z T / 4:
 *              dT = Z^T G / 4     dX_2 = -P^T dT     dP = P^T dX_2 - dX_2 X_1^T - dT X_2^T
 *              dA += dP Z^T     dZ = G T^T / 4 + A^T dP
 *     start    Z_0 = A^T / c:   dA += dZ_0^T / c
 *     exact    Y = H^-1 G, H = A^T A + lambda I:   dA = (I - A Z) Y^T - Z^T G Z^T
 *
 * Iterations are unrolled: the implicit form, which takes Z for the inverse itself, is 15 % off at a residual of 1e-3. */
#include <assert.h>
#include <math.h>
#include <string.h>
#include "autograd/carve.h"
#include "autograd/nystrom_inverse.h"
#include "core/blas.h"

int64_t ttn_inverse_kept(const ttn_inverse *v)
{
    return v->kind == TTN_PINV_EXACT ? 1 : v->iterations + 1;
}

ttn_inverse_flops ttn_inverse_cost(const ttn_inverse *v)
{
    const double product = 2 * (double)v->m * (double)v->m * (double)v->m;
    switch (v->kind) {
    case TTN_PINV_CHEB:
        return (ttn_inverse_flops){3 * v->iterations * product, 5 * v->iterations * product,
                                   6 * v->iterations * product};
    case TTN_PINV_RAZAVI:
        return (ttn_inverse_flops){4 * v->iterations * product, 7 * v->iterations * product,
                                   8 * v->iterations * product};
    case TTN_PINV_EXACT:
        break;
    }
    /* A^T A, Cholesky (a sixth of a product), two triangular solves; backward solves once more, and has four products */
    const double solve = (1 + 1.0 / 6 + 1) * product;
    return (ttn_inverse_flops){solve, 2 * solve, 5 * product};
}

/* ---- (ld, ld) matrices ---- */

/* C = alpha op(A) op(B) + beta C. */
static void multiply(const ttn_inverse *v, ttn_trans ta, ttn_trans tb, double alpha, const real *a, const real *b,
                     double beta, real *c)
{
    const int64_t n = v->ld;
    ttn_gemm(ta, tb, n, n, n, alpha, ttn_in(a, n), ttn_in(b, n), beta, ttn_out(c, n));
}

/* C = d I. */
static void diagonal(const ttn_inverse *v, real d, real *c)
{
    memset(c, 0, (size_t)(v->ld * v->ld) * sizeof *c);
    for (int64_t i = 0; i < v->ld; i++)
        c[i * v->ld + i] = d;
}

/* C = d I - P. */
static void diagonal_minus(const ttn_inverse *v, real d, const real *p, real *c)
{
    const int64_t n = v->ld * v->ld;
#pragma omp simd
    for (int64_t e = 0; e < n; e++)
        c[e] = -p[e];
    for (int64_t i = 0; i < v->ld; i++)
        c[i * v->ld + i] = d - p[i * v->ld + i];
}

/* C = d I - P X. */
static void diagonal_minus_product(const ttn_inverse *v, real d, const real *p, const real *x, real *c)
{
    diagonal(v, d, c);
    multiply(v, TTN_N, TTN_N, -1, p, x, 1, c);
}

/* ---- the start ---- */

ttn_inverse_start ttn_inverse_start_of(const ttn_inverse *v, const real *a)
{
    ttn_inverse_start start = {.sum = -1};
    for (int64_t j = 0; j < v->m; j++) {
        real sum = 0;
        for (int64_t i = 0; i < v->m; i++)
            sum += a[i * v->ld + j];
        if (sum > start.sum) start = (ttn_inverse_start){.sum = sum, .column = j};
    }
    return start;
}

/* Z_0. */
static void begin(const ttn_inverse *v, const real *a, real c, real *z)
{
    const int64_t n = v->ld;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            z[i * n + j] = a[j * n + i] / c;
}

/* ---- cheb and razavi ---- */

typedef struct {
    real *p, *x1, *x2, *t; /* of one step; cheb's X is x1 */
    real *z;               /* forward: every second iterate */
    real *dt, *dx2, *dp, *dz;
} steps;

static size_t lay_out_steps(const ttn_inverse *v, ttn_pass pass, void *work, steps *ret)
{
    *ret = (steps){0};
    ttn_carving c = {.base = work};
    real **const each[] = {&ret->p, &ret->x1, &ret->x2, &ret->t};
    real **const back[] = {&ret->dt, &ret->dx2, &ret->dp, &ret->dz};
    for (int i = 0; i < 4; i++)
        *each[i] = ttn_carve(&c, v->ld * v->ld, sizeof(real));
    if (pass == TTN_FORWARD) {
        ret->z = ttn_carve(&c, v->ld * v->ld, sizeof(real));
        return c.at;
    }
    for (int i = 0; i < 4; i++)
        *back[i] = ttn_carve(&c, v->ld * v->ld, sizeof(real));
    return c.at;
}

/* P, X_1, X_2 and T. */
static void expand(const ttn_inverse *v, const real *a, const real *z, const steps *s)
{
    multiply(v, TTN_N, TTN_N, 1, a, z, 0, s->p);
    if (v->kind == TTN_PINV_CHEB) {
        diagonal_minus(v, 3, s->p, s->x1);
        diagonal_minus_product(v, 3, s->p, s->x1, s->t);
        return;
    }
    diagonal_minus(v, 7, s->p, s->x1);
    diagonal_minus_product(v, 15, s->p, s->x1, s->x2);
    diagonal_minus_product(v, 13, s->p, s->x2, s->t);
}

static double factor_of(const ttn_inverse *v)
{
    return v->kind == TTN_PINV_CHEB ? 1 : 0.25;
}

static void iterate(const ttn_inverse *v, const real *a, real c, int keep, real *z, void *work)
{
    steps s;
    lay_out_steps(v, TTN_FORWARD, work, &s);
    const int64_t each = keep ? v->ld * v->ld : 0;
    /* not kept: every second iterate lies in s.z, so that the last one lies in z */
    real *at = !keep && v->iterations % 2 == 1 ? s.z : z;
    begin(v, a, c, at);
    for (int k = 0; k < v->iterations; k++) {
        real *next = z + (k + 1) * each;
        if (!keep && at == z) next = s.z;
        expand(v, a, at, &s);
        multiply(v, TTN_N, TTN_N, factor_of(v), at, s.t, 0, next);
        at = next;
    }
}

/* dz: of Z'; becomes that of Z. */
static void step_back(const ttn_inverse *v, const real *a, const real *z, const steps *s, const real *g, real *dz,
                      double da_beta, real *da)
{
    const double factor = factor_of(v);
    expand(v, a, z, s);
    multiply(v, TTN_T, TTN_N, factor, z, g, 0, s->dt);
    if (v->kind == TTN_PINV_CHEB) {
        multiply(v, TTN_T, TTN_N, 1, s->p, s->dt, 0, s->dp);
        multiply(v, TTN_N, TTN_T, -1, s->dt, s->x1, 1, s->dp);
    } else {
        multiply(v, TTN_T, TTN_N, -1, s->p, s->dt, 0, s->dx2);
        multiply(v, TTN_T, TTN_N, 1, s->p, s->dx2, 0, s->dp);
        multiply(v, TTN_N, TTN_T, -1, s->dx2, s->x1, 1, s->dp);
        multiply(v, TTN_N, TTN_T, -1, s->dt, s->x2, 1, s->dp);
    }
    multiply(v, TTN_N, TTN_T, 1, s->dp, z, da_beta, da);
    multiply(v, TTN_N, TTN_T, factor, g, s->t, 0, dz);
    multiply(v, TTN_T, TTN_N, 1, a, s->dp, 1, dz);
}

static void iterate_back(const ttn_inverse *v, const real *a, real c, const real *z, real *dz, real *da,
                         double *ret_start, void *work)
{
    steps s;
    lay_out_steps(v, TTN_BACKWARD, work, &s);
    const int64_t n = v->ld;
    real *g = dz;
    real *next = s.dz;
    for (int k = v->iterations - 1; k >= 0; k--) {
        step_back(v, a, z + k * n * n, &s, g, next, k == v->iterations - 1 ? 0 : 1, da);
        real *const swapped = g;
        g = next;
        next = swapped;
    }
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            sum += (double)(g[i * n + j] * a[j * n + i]);
            da[j * n + i] += g[i * n + j] / c;
        }
    *ret_start = sum;
}

/* ---- exact: compact (M, M) matrices of doubles ---- */

typedef struct {
    double *a, *h, *zt, *yt, *g, *da; /* zt and yt: Z and Y transposed; backward has all of them */
} solving;

static size_t lay_out_solving(const ttn_inverse *v, ttn_pass pass, void *work, solving *ret)
{
    *ret = (solving){0};
    ttn_carving c = {.base = work};
    double **const each[] = {&ret->a, &ret->h, &ret->zt, &ret->yt, &ret->g, &ret->da};
    const int n = pass == TTN_FORWARD ? 3 : 6;
    for (int i = 0; i < n; i++)
        *each[i] = ttn_carve(&c, v->m * v->m, sizeof(double));
    return c.at;
}

static void multiply_doubles(const ttn_inverse *v, ttn_trans ta, ttn_trans tb, double alpha, const double *a,
                             const double *b, double beta, double *c)
{
    const int64_t n = v->m;
    ttn_gemm(ta, tb, n, n, n, alpha, ttn_in_of(TTN_F64, a, n), ttn_in_of(TTN_F64, b, n), beta,
             ttn_out_of(TTN_F64, c, n));
}

/* a and zt = Z transposed, h factored. LAPACK's matrices are column-major: what it takes for a matrix is its transpose here,
 * so A stands for A^T on the right-hand side, and Z^T comes back. H is its own transpose. */
static int solve(const ttn_inverse *v, const real *a, const solving *s)
{
    const int n = (int)v->m;
    for (int64_t i = 0; i < v->m; i++)
        for (int64_t j = 0; j < v->m; j++)
            s->a[i * v->m + j] = (double)a[i * v->ld + j];
    multiply_doubles(v, TTN_T, TTN_N, 1, s->a, s->a, 0, s->h);
    for (int64_t i = 0; i < v->m; i++)
        s->h[i * v->m + i] += v->lambda;
    memcpy(s->zt, s->a, (size_t)(v->m * v->m) * sizeof *s->zt);
    int info = 0;
    const int saved = ttn_blas_alone_begin();
    dpotrf_("L", &n, s->h, &n, &info, 1);
    if (info == 0) {
        dpotrs_("L", &n, &n, s->h, &n, s->zt, &n, &info, 1);
        assert(info == 0);
    }
    ttn_blas_alone_end(saved);
    assert(info >= 0);
    return info;
}

static int is_finite(const ttn_inverse *v, const real *a)
{
    int bad = 0;
    for (int64_t e = 0; e < v->ld * v->ld; e++)
        bad |= !isfinite(a[e]);
    return !bad;
}

static int solve_forward(const ttn_inverse *v, const real *a, real *z, void *work)
{
    solving s;
    lay_out_solving(v, TTN_FORWARD, work, &s);
    memset(z, 0, (size_t)(v->ld * v->ld) * sizeof *z);
    const int finite = is_finite(v, a);
    const int pivot = finite ? solve(v, a, &s) : 0;
    if (pivot != 0) return pivot;
    for (int64_t i = 0; i < v->m; i++)
        for (int64_t j = 0; j < v->m; j++)
            z[i * v->ld + j] = finite ? (real)s.zt[j * v->m + i] : (real)NAN;
    return 0;
}

static void solve_back(const ttn_inverse *v, const real *a, const real *dz, real *da, void *work)
{
    solving s;
    lay_out_solving(v, TTN_BACKWARD, work, &s);
    const int64_t m = v->m;
    const int n = (int)m;
    memset(da, 0, (size_t)(v->ld * v->ld) * sizeof *da);
    const int finite = is_finite(v, a) && is_finite(v, dz);
    if (!finite || solve(v, a, &s) != 0) { /* forward has found the same A good: so it is not finite */
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < m; j++)
                da[i * v->ld + j] = (real)NAN;
        return;
    }
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++) {
            s.g[i * m + j] = (double)dz[i * v->ld + j];
            s.yt[j * m + i] = s.g[i * m + j];
        }
    int info = 0;
    const int saved = ttn_blas_alone_begin();
    dpotrs_("L", &n, &n, s.h, &n, s.yt, &n, &info, 1);
    ttn_blas_alone_end(saved);
    assert(info == 0);
    memset(s.h, 0, (size_t)(m * m) * sizeof *s.h); /* I - A Z in its place */
    for (int64_t i = 0; i < m; i++)
        s.h[i * m + i] = 1;
    multiply_doubles(v, TTN_N, TTN_T, -1, s.a, s.zt, 1, s.h);
    multiply_doubles(v, TTN_N, TTN_N, 1, s.h, s.yt, 0, s.da);
    multiply_doubles(v, TTN_N, TTN_N, 1, s.zt, s.g, 0, s.yt); /* Z^T G in Y's */
    multiply_doubles(v, TTN_N, TTN_N, -1, s.yt, s.zt, 1, s.da);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++)
            da[i * v->ld + j] = (real)s.da[i * m + j];
}

/* ---- both ---- */

size_t ttn_inverse_work(const ttn_inverse *v, ttn_pass pass)
{
    steps t;
    solving s;
    const size_t measured = ttn_work_align((size_t)(2 * v->ld * v->ld) * sizeof(real)); /* ttn_inverse_measure */
    const size_t bytes =
        v->kind == TTN_PINV_EXACT ? lay_out_solving(v, pass, NULL, &s) : lay_out_steps(v, pass, NULL, &t);
    return bytes > measured ? bytes : measured;
}

int ttn_inverse_forward(const ttn_inverse *v, const real *a, real c, int keep, real *z, void *work)
{
    if (v->kind == TTN_PINV_EXACT) return solve_forward(v, a, z, work);
    iterate(v, a, c, keep, z, work);
    return 0;
}

void ttn_inverse_backward(const ttn_inverse *v, const real *a, real c, const real *z, real *dz, real *da,
                          double *ret_start, void *work)
{
    *ret_start = 0;
    if (v->kind == TTN_PINV_EXACT)
        solve_back(v, a, dz, da, work);
    else
        iterate_back(v, a, c, z, dz, da, ret_start, work);
}

void ttn_inverse_measure(const ttn_inverse *v, const real *a, const real *z, double *ret_residual, double *ret_norm,
                         void *work)
{
    real *p = work;
    real *r = p + v->ld * v->ld;
    multiply(v, TTN_N, TTN_N, 1, a, z, 0, p);
    memcpy(r, a, (size_t)(v->ld * v->ld) * sizeof *r);
    multiply(v, TTN_N, TTN_N, -1, p, a, 1, r);
    double of_r = 0;
    double of_a = 0;
    *ret_norm = 0;
    for (int64_t i = 0; i < v->m; i++) {
        double sum = 0;
        for (int64_t j = 0; j < v->m; j++) {
            const int64_t e = i * v->ld + j;
            of_r += (double)r[e] * (double)r[e];
            of_a += (double)a[e] * (double)a[e];
            sum += fabs((double)z[e]);
        }
        *ret_norm = sum <= *ret_norm ? *ret_norm : sum; /* NaN shows, as in the residual */
    }
    *ret_residual = sqrt(of_r / of_a);
}
