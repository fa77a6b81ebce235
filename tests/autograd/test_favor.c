/* Attention by random features beyond what the driver of all ops sees: against its formulas in double without tiles or
 * references, at every edge of a tile and a chunk, for keys far beyond the range of exp, against published implementations;
 * where a sequence may stand; maps and statistics. */
#include "core/blas.h"
#include "tests/autograd/favor_run.h"
#include "tests/harness/golden.h"

/* ---- the formulas, in double: features of all rows, no tile, no reference ---- */

/* One sequence and head. */
typedef struct {
    const run *r;
    int64_t seq, head, n;
    double scale;
    double *x[2];         /* (n, D): s q, s k */
    double *phi[2];       /* (n, M) */
    double *S, *z;        /* (M, D), (M) */
    double *Dn, *o, *out; /* (n), (n, D), (n, D) */
    double *din[3];       /* (n, D) */
} plain;

static double input(const plain *p, const real *x, int64_t i, int64_t d)
{
    return (double)x[(p->r->feed.span[p->seq].first + i) * p->r->C + p->head * p->r->D + d];
}

static double weight(const plain *p, int64_t f, int64_t d)
{
    return (double)p->r->in[3][(p->head * p->r->m + f) * p->r->D + d];
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* u = w_f.x, or x_f. */
static double projection(const plain *p, const double *x, int64_t f)
{
    if (p->r->sig.in[3].ndim < 0) return x[f];
    double u = 0;
    for (int64_t d = 0; d < p->r->D; d++)
        u += weight(p, f, d) * x[d];
    return u;
}

/* f(u) and f'(u) of the generalized maps, from libm. */
static void generalized(ttn_favor_kernel kernel, double u, double *ret, double *ret_slope)
{
    const double e = exp(u);
    const double sigmoid = 1 / (1 + exp(-u));
    switch (kernel) {
    case TTN_FAVOR_RELU:
        *ret = fmax(u, 0) + 1e-3;
        *ret_slope = u > 0;
        return;
    case TTN_FAVOR_ELU1:
        *ret = (u > 0 ? u + 1 : e) + 1e-3;
        *ret_slope = u > 0 ? 1 : e;
        return;
    case TTN_FAVOR_GELU:
        *ret = u * 0.5 * erfc(-u / sqrt(2));
        *ret_slope = 0.5 * erfc(-u / sqrt(2)) + u * exp(-u * u / 2) / sqrt(2 * acos(-1.0));
        return;
    case TTN_FAVOR_SQUARE:
        *ret = u * u + 1e-3;
        *ret_slope = 2 * u;
        return;
    case TTN_FAVOR_SIGMOID:
        *ret = sigmoid + 1e-3;
        *ret_slope = sigmoid * (1 - sigmoid);
        return;
    case TTN_FAVOR_TANH:
        *ret = tanh(u);
        *ret_slope = 1 - tanh(u) * tanh(u);
        return;
    case TTN_FAVOR_SOFTPLUS:
        *ret = log1p(e) + 1e-3;
        *ret_slope = sigmoid;
        return;
    case TTN_FAVOR_EXP:
        *ret = e;
        *ret_slope = e;
        return;
    default:
        *ret = u;
        *ret_slope = 1;
        return;
    }
}

/* phi(x) (M), or with dphi the gradient of x: += sum_f dphi_f d phi_f / dx. */
static void features(const plain *p, const double *x, double *phi, const double *dphi, double *dx)
{
    const int64_t D = p->r->D;
    const int64_t m = p->r->m;
    const double h = dot(x, x, D) / 2;
    for (int64_t f = 0; f < p->r->M; f++) {
        const double u = projection(p, x, f % m);
        double value;
        double by_u;     /* d phi / d u */
        double by_h = 0; /* d phi / d h */
        switch (p->r->a.kernel) {
        case TTN_FAVOR_POSITIVE:
        case TTN_FAVOR_HYPERBOLIC:
            value = exp(f < m ? u - h : -u - h);
            by_u = f < m ? value : -value;
            by_h = -value;
            break;
        case TTN_FAVOR_TRIG:
            value = exp(h) * (f < m ? cos(u) : sin(u));
            by_u = exp(h) * (f < m ? -sin(u) : cos(u));
            by_h = value;
            break;
        default:
            generalized(p->r->a.kernel, u, &value, &by_u);
            break;
        }
        if (phi) phi[f] = value;
        for (int64_t d = 0; d < D && dphi; d++) {
            const double slope = p->r->sig.in[3].ndim < 0 ? (double)(d == f) : weight(p, f % m, d);
            dx[d] += dphi[f] * (by_u * slope + by_h * x[d]);
        }
    }
}

/* Products of features that the estimate is the mean of; cos and sin of one projection are one of them. */
static double terms_of_estimate(const plain *p)
{
    return (double)p->r->m * (p->r->a.kernel == TTN_FAVOR_HYPERBOLIC ? 2 : 1);
}

static void plain_forward(plain *p)
{
    const int64_t D = p->r->D;
    const int64_t M = p->r->M;
    const ttn_favor_renormalize how = p->r->a.renormalize;
    for (int64_t t = 0; t < p->n; t++)
        for (int64_t f = 0; f < M; f++) {
            p->z[f] += p->phi[1][t * M + f];
            for (int64_t d = 0; d < D; d++)
                p->S[f * D + d] += p->phi[1][t * M + f] * input(p, p->r->in[2], t, d);
        }
    for (int64_t i = 0; i < p->n; i++) {
        const double *phi = p->phi[0] + i * M;
        p->Dn[i] = dot(phi, p->z, M);
        double divisor = p->Dn[i];
        if (how == TTN_FAVOR_PLAIN) divisor = terms_of_estimate(p);
        if (how == TTN_FAVOR_RMS && ttn_favor_has_signs(p->r->a.kernel)) divisor = (double)M * (double)p->n;
        for (int64_t d = 0; d < D; d++) {
            double sum = 0;
            for (int64_t f = 0; f < M; f++)
                sum += phi[f] * p->S[f * D + d];
            p->o[i * D + d] = sum / divisor;
        }
        const double *o = p->o + i * D;
        const double rms = how == TTN_FAVOR_RMS ? sqrt(dot(o, o, D) / (double)D + 1e-6) : 1;
        for (int64_t d = 0; d < D; d++)
            p->out[i * D + d] = o[d] / rms;
    }
}

static void plain_backward(plain *p)
{
    const int64_t D = p->r->D;
    const int64_t M = p->r->M;
    const ttn_favor_renormalize how = p->r->a.renormalize;
    double *dS = piece(M * D, sizeof *dS);
    double *dz = piece(M, sizeof *dz);
    double *dphi = piece(M, sizeof *dphi);
    double *g = piece(D, sizeof *g);
    for (int64_t i = 0; i < p->n; i++) {
        const double *phi = p->phi[0] + i * M;
        const double *o = p->o + i * D;
        const double rms = how == TTN_FAVOR_RMS ? sqrt(dot(o, o, D) / (double)D + 1e-6) : 1;
        double along = 0;
        for (int64_t d = 0; d < D; d++) {
            g[d] = input(p, p->r->dout, i, d) / rms;
            along += g[d] * p->out[i * D + d];
        }
        for (int64_t d = 0; d < D && how == TTN_FAVOR_RMS; d++)
            g[d] -= along * p->out[i * D + d] / (double)D;
        double divisor = p->Dn[i];
        int divides = 1;
        if (how == TTN_FAVOR_PLAIN) {
            divisor = terms_of_estimate(p);
            divides = 0;
        } else if (how == TTN_FAVOR_RMS && ttn_favor_has_signs(p->r->a.kernel)) {
            divisor = (double)M * (double)p->n;
            divides = 0;
        }
        const double delta = divides ? dot(g, o, D) : 0;
        for (int64_t f = 0; f < M; f++) {
            dphi[f] = (dot(g, p->S + f * D, D) - delta * p->z[f]) / divisor;
            dz[f] -= delta * phi[f] / divisor;
            for (int64_t d = 0; d < D; d++)
                dS[f * D + d] += phi[f] * g[d] / divisor;
        }
        features(p, p->x[0] + i * D, NULL, dphi, p->din[0] + i * D);
    }
    for (int64_t t = 0; t < p->n; t++) {
        for (int64_t f = 0; f < M; f++) {
            dphi[f] = dz[f];
            for (int64_t d = 0; d < D; d++) {
                dphi[f] += dS[f * D + d] * input(p, p->r->in[2], t, d);
                p->din[2][t * D + d] += p->phi[1][t * M + f] * dS[f * D + d];
            }
        }
        features(p, p->x[1] + t * D, NULL, dphi, p->din[1] + t * D);
    }
    for (int64_t e = 0; e < p->n * D; e++) {
        p->din[0][e] *= p->scale;
        p->din[1][e] *= p->scale;
    }
    ttn_free(dS);
    ttn_free(dz);
    ttn_free(dphi);
    ttn_free(g);
}

static plain plain_of(const run *r, int64_t seq, int64_t head)
{
    plain p = {.r = r, .seq = seq, .head = head, .n = r->feed.span[seq].n, .scale = pow((double)r->D, -0.25)};
    for (int i = 0; i < 2; i++) {
        p.x[i] = piece(p.n * r->D, sizeof(double));
        p.phi[i] = piece(p.n * r->M, sizeof(double));
        for (int64_t row = 0; row < p.n; row++) {
            for (int64_t d = 0; d < r->D; d++)
                p.x[i][row * r->D + d] = p.scale * input(&p, r->in[i], row, d);
            features(&p, p.x[i] + row * r->D, p.phi[i] + row * r->M, NULL, NULL);
        }
    }
    for (int i = 0; i < 3; i++)
        p.din[i] = piece(p.n * r->D, sizeof(double));
    p.S = piece(r->M * r->D, sizeof(double));
    p.z = piece(r->M, sizeof(double));
    p.Dn = piece(p.n, sizeof(double));
    p.o = piece(p.n * r->D, sizeof(double));
    p.out = piece(p.n * r->D, sizeof(double));
    plain_forward(&p);
    return p;
}

static void plain_release(plain *p)
{
    for (int i = 0; i < 2; i++) {
        ttn_free(p->x[i]);
        ttn_free(p->phi[i]);
    }
    for (int i = 0; i < 3; i++)
        ttn_free(p->din[i]);
    ttn_free(p->S);
    ttn_free(p->z);
    ttn_free(p->Dn);
    ttn_free(p->o);
    ttn_free(p->out);
}

/* Largest difference of one head's rows from (n, D), as a part of 1 + the largest value there. */
static double off_by(const plain *p, const real *got, const double *wanted)
{
    double worst = 0;
    double most = 0;
    for (int64_t i = 0; i < p->n; i++)
        for (int64_t d = 0; d < p->r->D; d++) {
            const double value = wanted[i * p->r->D + d];
            const double error = fabs(input(p, got, i, d) - value);
            if (!(error <= worst)) worst = error; /* NaN stays */
            most = fmax(most, fabs(value));
        }
    return worst / (1 + most);
}

/* Outputs and gradients of one sequence and head. */
static void compare(const run *r, int64_t seq, int64_t head, double bound)
{
    plain p = plain_of(r, seq, head);
    plain_backward(&p);
    assert_at_most(off_by(&p, r->out, p.out), bound, "out");
    assert_at_most(off_by(&p, r->din[0], p.din[0]), bound, "dq");
    assert_at_most(off_by(&p, r->din[1], p.din[1]), bound, "dk");
    assert_at_most(off_by(&p, r->din[2], p.din[2]), bound, "dv");
    plain_release(&p);
}

/* Of 1 + a value's largest element; sums of up to 400 rows, divided by sums of both signs (trig). Measured with seven seeds: at
 * most 1.1e-5 (a gradient through the root mean square of outputs near 0; else 5e-6) and 5e-14. */
static const double bound = sizeof(real) == 4 ? 2e-5 : 1e-13;

static const ttn_favor_kernel all_kernels[] = {TTN_FAVOR_POSITIVE, TTN_FAVOR_HYPERBOLIC, TTN_FAVOR_TRIG,
                                               TTN_FAVOR_EXP,      TTN_FAVOR_RELU,       TTN_FAVOR_ELU1,
                                               TTN_FAVOR_GELU,     TTN_FAVOR_SQUARE,     TTN_FAVOR_SIGMOID,
                                               TTN_FAVOR_TANH,     TTN_FAVOR_SOFTPLUS,   TTN_FAVOR_IDENTITY};
enum { N_KERNEL = sizeof all_kernels / sizeof *all_kernels };

/* tanh, identity and gelu are divided by sums that can be 0 when they are not normalized by root mean squares. */
static ttn_favor_renormalize usual(ttn_favor_kernel kernel)
{
    const int signs = ttn_favor_has_signs(kernel) && kernel != TTN_FAVOR_TRIG;
    return signs ? TTN_FAVOR_RMS : TTN_FAVOR_DIVIDED;
}

/* trig divides by sums of both signs, which lose digits as norms grow. */
static double norm_for(ttn_favor_kernel kernel, double norm)
{
    return kernel == TTN_FAVOR_TRIG ? 0.1 * norm : norm;
}

static void every_map_is_its_formula_in_double(void **state)
{
    (void)state;
    static const ttn_span span[] = {{0, 1}, {12, 30}, {42, 2 * TILE + 3}};
    for (int k = 0; k < N_KERNEL; k++) {
        run r;
        make(&r, (ttn_attn_favor_options){.heads = 2, .kernel = all_kernels[k], .renormalize = usual(all_kernels[k])},
             6, 20, span, 3);
        fill_all(&r, norm_for(all_kernels[k], 0.7), ttn_test_seed(), (uint64_t)k);
        forward(&r);
        backward(&r);
        for (int64_t s = 0; s < 3; s++)
            compare(&r, s, s % 2, bound);
        release(&r);
    }
}

static void every_way_to_normalize_and_no_projection_are_their_formulas(void **state)
{
    (void)state;
    static const ttn_span span[] = {{0, 1}, {12, TILE + 30}};
    static const struct {
        ttn_favor_kernel kernel;
        ttn_favor_renormalize how;
        int64_t m;
    } what[] = {
        {TTN_FAVOR_POSITIVE, TTN_FAVOR_PLAIN, 33}, {TTN_FAVOR_HYPERBOLIC, TTN_FAVOR_PLAIN, 33},
        {TTN_FAVOR_TRIG, TTN_FAVOR_PLAIN, 33},     {TTN_FAVOR_POSITIVE, TTN_FAVOR_RMS, 33},
        {TTN_FAVOR_SOFTPLUS, TTN_FAVOR_RMS, 33},   {TTN_FAVOR_SIGMOID, TTN_FAVOR_DIVIDED, 0},
        {TTN_FAVOR_EXP, TTN_FAVOR_DIVIDED, 0},     {TTN_FAVOR_TANH, TTN_FAVOR_RMS, 0},
    };
    for (size_t w = 0; w < sizeof what / sizeof *what; w++) {
        run r;
        make(&r, (ttn_attn_favor_options){.heads = 2, .kernel = what[w].kernel, .renormalize = what[w].how}, 5,
             what[w].m, span, 2);
        fill_all(&r, 0.5, ttn_test_seed(), 100 + w);
        /* undivided sums of 174 terms: of a size that the bound of sums of weights holds for */
        for (int64_t e = 0; e < r.used * r.C && what[w].how == TTN_FAVOR_PLAIN; e++)
            r.in[2][e] /= TILE + 30;
        forward(&r);
        backward(&r);
        for (int64_t s = 0; s < 2; s++)
            compare(&r, s, 1 - s, bound);
        release(&r);
    }
}

/* One map of each family, at every edge of a tile and of a chunk; five chunks make a tree with a gap. */
static void tiles_and_chunks_have_no_seams(void **state)
{
    (void)state;
    static const int64_t lengths[] = {
        1, 2, 23, 24, 25, TILE - 1, TILE, TILE + 1, 2 * TILE, CHUNK_ROWS, CHUNK_ROWS + 1, 4 * CHUNK_ROWS + 5};
    static const ttn_favor_kernel kernels[] = {TTN_FAVOR_HYPERBOLIC, TTN_FAVOR_TRIG, TTN_FAVOR_SIGMOID};
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
            const ttn_span span = {5, lengths[l]};
            run r;
            make(&r, (ttn_attn_favor_options){.heads = 1, .kernel = kernels[k]}, 4, 8, &span, 1);
            fill_all(&r, norm_for(kernels[k], 1), ttn_test_seed(), 200 + l);
            /* references of later chunks are larger, then smaller: joins go both ways */
            for (int64_t i = 0; i < r.used; i++)
                for (int64_t d = 0; d < r.C; d++)
                    r.in[1][i * r.C + d] *= (real)(0.3 + 2 * fabs(sin((double)i / 3000)));
            forward(&r);
            backward(&r);
            compare(&r, 0, 0, bound);
            release(&r);
        }
}

static void a_hundred_thousand_rows(void **state)
{
    (void)state;
    const ttn_span span = {0, ttn_scaled(100000, 20000)};
    run r;
    make(&r, (ttn_attn_favor_options){.heads = 1}, 4, 16, &span, 1);
    fill_all(&r, 1, ttn_test_seed(), 300);
    forward(&r);
    backward(&r);
    compare(&r, 0, 0, sizeof(real) == 4 ? 1e-5 : 1e-12); /* sums of 10^5 terms */
    release(&r);
}

/* ---- keys far beyond the range of exp ---- */

/* The exponential maps with weights in logarithms: P_itf = exp(l_f(x_i) + a_tf - L_i), in double. */
static void compare_in_logarithms(const run *r, double out_bound, double din_bound)
{
    plain p = plain_of(r, 0, 0);
    const int64_t n = p.n;
    const int64_t D = r->D;
    const int64_t M = r->M;
    double *a[2]; /* (n, M): l, and l - h of keys */
    for (int i = 0; i < 2; i++) {
        a[i] = piece(n * M, sizeof(double));
        for (int64_t row = 0; row < n; row++)
            for (int64_t f = 0; f < M; f++) {
                const double *x = p.x[i] + row * D;
                const double u = projection(&p, x, f % r->m);
                a[i][row * M + f] = (f < r->m ? u : -u) - (i == 1 ? dot(x, x, D) / 2 : 0);
            }
    }
    double *out = piece(n * D, sizeof *out);
    double *din[3];
    double *E[2]; /* gradients of l and a */
    for (int i = 0; i < 3; i++)
        din[i] = piece(n * D, sizeof(double));
    for (int i = 0; i < 2; i++)
        E[i] = piece(n * M, sizeof(double));
    for (int64_t i = 0; i < n; i++) {
        double most = -1e300;
        for (int64_t t = 0; t < n; t++)
            for (int64_t f = 0; f < M; f++)
                most = fmax(most, a[0][i * M + f] + a[1][t * M + f]);
        double sum = 0;
        for (int64_t t = 0; t < n; t++)
            for (int64_t f = 0; f < M; f++)
                sum += exp(a[0][i * M + f] + a[1][t * M + f] - most);
        const double L = most + log(sum);
        for (int pass = 0; pass < 2; pass++) {
            double delta = 0;
            for (int64_t d = 0; d < D; d++)
                delta += input(&p, r->dout, i, d) * out[i * D + d];
            for (int64_t t = 0; t < n; t++) {
                double w = 0;
                double gv = -delta;
                for (int64_t d = 0; d < D; d++)
                    gv += input(&p, r->dout, i, d) * input(&p, r->in[2], t, d);
                for (int64_t f = 0; f < M; f++) {
                    const double P = exp(a[0][i * M + f] + a[1][t * M + f] - L);
                    w += P;
                    if (pass == 0) continue;
                    E[0][i * M + f] += P * gv;
                    E[1][t * M + f] += P * gv;
                }
                for (int64_t d = 0; d < D; d++) {
                    if (pass == 0)
                        out[i * D + d] += w * input(&p, r->in[2], t, d);
                    else
                        din[2][t * D + d] += w * input(&p, r->dout, i, d);
                }
            }
        }
    }
    for (int i = 0; i < 2; i++)
        for (int64_t row = 0; row < n; row++)
            for (int64_t f = 0; f < M; f++)
                for (int64_t d = 0; d < D; d++) {
                    const double sign = f < r->m ? 1 : -1;
                    const double norm = i == 1 ? p.x[1][row * D + d] : 0;
                    din[i][row * D + d] += p.scale * E[i][row * M + f] * (sign * weight(&p, f % r->m, d) - norm);
                }
    assert_at_most(off_by(&p, r->out, out), out_bound, "out");
    for (int i = 0; i < 3; i++)
        assert_at_most(off_by(&p, r->din[i], din[i]), din_bound, "a gradient");
    for (int i = 0; i < 2; i++) {
        ttn_free(a[i]);
        ttn_free(E[i]);
    }
    for (int i = 0; i < 3; i++)
        ttn_free(din[i]);
    ttn_free(out);
    plain_release(&p);
}

/* exp(x.y) itself overflows f32 from |x|^2 = 88 on, and a feature underflows from 100 on. */
static void rows_of_norm_400_are_exact_to_rounding(void **state)
{
    (void)state;
    static const ttn_favor_kernel kernels[] = {TTN_FAVOR_POSITIVE, TTN_FAVOR_HYPERBOLIC};
    static const ttn_span span[] = {{0, TILE + 7}};
    for (int k = 0; k < 2; k++) {
        run r;
        make(&r, (ttn_attn_favor_options){.heads = 1, .kernel = kernels[k]}, 16, 32, span, 1);
        fill_all(&r, 1, ttn_test_seed(), 310);
        for (int64_t i = 0; i < r.used; i++)
            for (int which = 0; which < 2; which++) { /* |x|^2 from 0 to 400 */
                double norm = 0;
                for (int64_t d = 0; d < r.D; d++)
                    norm += pow((double)r.in[which][i * r.D + d], 2) / sqrt((double)r.D);
                const double wanted = 400.0 * (double)(i + 1) / (double)r.used;
                for (int64_t d = 0; d < r.D; d++)
                    r.in[which][i * r.D + d] *= (real)sqrt(wanted / norm);
            }
        forward(&r);
        backward(&r);
        assert_true(r.stat[NORM_MOST] > 399 && r.stat[NORM_MOST] < 401);
        assert_true(r.stat[DENOMINATOR_LEAST] >= 1);
        /* projections of size 200 are rounded by 1e-5 in f32, and the largest weights by as much */
        compare_in_logarithms(&r, sizeof(real) == 4 ? 3e-6 : 1e-13, sizeof(real) == 4 ? 1e-5 : 1e-13);
        release(&r);
    }
}

/* ---- what holds without a reference ---- */

/* Where h is one number for all keys, as attention.qk_norm makes it, exp(u - h) and exp(u) have the same quotients; gradients of
 * keys differ only in the direction in which h grows, along the key. */
static void with_keys_of_one_norm_positive_is_exp(void **state)
{
    (void)state;
    enum { N = TILE + 30, D = 6, HEADS = 2 };
    static const ttn_span span = {0, N};
    static const ttn_favor_kernel kernels[] = {TTN_FAVOR_POSITIVE, TTN_FAVOR_EXP};
    run r[2];
    for (int k = 0; k < 2; k++) {
        make(&r[k], (ttn_attn_favor_options){.heads = HEADS, .kernel = kernels[k]}, D, 24, &span, 1);
        fill_all(&r[k], 1, ttn_test_seed(), 900);
        for (int64_t i = 0; i < N * HEADS; i++) {
            real *key = r[k].in[1] + i * D;
            double square = 0;
            for (int64_t d = 0; d < D; d++)
                square += (double)key[d] * (double)key[d];
            for (int64_t d = 0; d < D; d++)
                key[d] *= (real)sqrt(sqrt((double)D) / square);
        }
        forward(&r[k]);
        backward(&r[k]);
        for (int64_t i = 0; i < N * HEADS; i++) {
            const real *key = r[k].in[1] + i * D;
            real *dk = r[k].din[1] + i * D;
            double along = 0;
            for (int64_t d = 0; d < D; d++)
                along += (double)key[d] * (double)dk[d] / sqrt((double)D);
            for (int64_t d = 0; d < D; d++)
                dk[d] -= (real)(along * (double)key[d]);
        }
    }
    const real *const a[] = {r[0].out, r[0].din[0], r[0].din[1], r[0].din[2]};
    const real *const b[] = {r[1].out, r[1].din[0], r[1].din[1], r[1].din[2]};
    for (int x = 0; x < 4; x++) {
        double apart = 0;
        double most = 0;
        for (int64_t e = 0; e < N * r[0].C; e++) {
            apart = fmax(apart, fabs((double)a[x][e] - (double)b[x][e]));
            most = fmax(most, fabs((double)b[x][e]));
        }
        assert_at_most(apart / most, sizeof(real) == 4 ? 1e-5 : 1e-13, "positive beside exp");
    }
    for (int k = 0; k < 2; k++)
        release(&r[k]);
}

static void constant_values_give_a_constant_output(void **state)
{
    (void)state;
    static const ttn_span span[] = {{0, 387}, {396, 1}, {408, 50}};
    static const ttn_favor_kernel kernels[] = {TTN_FAVOR_POSITIVE, TTN_FAVOR_TRIG, TTN_FAVOR_RELU};
    for (int k = 0; k < 3; k++) {
        run r;
        make(&r, (ttn_attn_favor_options){.heads = 3, .kernel = kernels[k]}, 5, 16, span, 3);
        fill_all(&r, 0.3, ttn_test_seed(), 320);
        for (int64_t i = 0; i < r.used; i++)
            for (int64_t c = 0; c < r.C; c++)
                r.in[2][i * r.C + c] = (real)(c + 1) / 3;
        forward(&r);
        for (int s = 0; s < 3; s++)
            for (int64_t i = span[s].first; i < span[s].first + span[s].n; i++)
                for (int64_t c = 0; c < r.C; c++)
                    assert_at_most(fabs((double)(r.out[i * r.C + c] - (real)(c + 1) / 3)), bound, "from constant v");
        release(&r);
    }
}

enum { N_PERMUTED = 2 * TILE + 7 }; /* prime to 7 */

/* Row i of a is row 7 i mod N of b, to rounding. */
static void assert_permuted(const run *r, const real *a, const real *b, const char *what)
{
    double worst = 0;
    double most = 0;
    for (int64_t i = 0; i < N_PERMUTED; i++)
        for (int64_t c = 0; c < r->C; c++) {
            const double value = (double)a[i * r->C + c];
            worst = fmax(worst, fabs((double)b[7 * i % N_PERMUTED * r->C + c] - value));
            most = fmax(most, fabs(value));
        }
    assert_at_most(worst / (1 + most), 2 * bound, what);
}

static void permuting_rows_permutes_outputs_and_gradients(void **state)
{
    (void)state;
    enum { N = N_PERMUTED };
    const ttn_span span = {0, N};
    static const ttn_favor_kernel kernels[] = {TTN_FAVOR_HYPERBOLIC, TTN_FAVOR_TRIG, TTN_FAVOR_ELU1};
    for (int k = 0; k < 3; k++) {
        run a;
        run b;
        make(&a, (ttn_attn_favor_options){.heads = 2, .kernel = kernels[k]}, 6, 16, &span, 1);
        make(&b, (ttn_attn_favor_options){.heads = 2, .kernel = kernels[k]}, 6, 16, &span, 1);
        fill_all(&a, norm_for(kernels[k], 1), ttn_test_seed(), 330);
        memcpy(b.in[3], a.in[3], (size_t)(2 * a.m * a.D) * sizeof(real));
        for (int64_t i = 0; i < N; i++) {
            const int64_t to = 7 * i % N;
            for (int in = 0; in < 3; in++)
                memcpy(b.in[in] + to * a.C, a.in[in] + i * a.C, (size_t)a.C * sizeof(real));
            memcpy(b.dout + to * a.C, a.dout + i * a.C, (size_t)a.C * sizeof(real));
        }
        forward(&a);
        forward(&b);
        backward(&a);
        backward(&b);
        assert_permuted(&a, a.out, b.out, "out");
        for (int in = 0; in < 3; in++)
            assert_permuted(&a, a.din[in], b.din[in], "a gradient");
        release(&a);
        release(&b);
    }
}

/* ---- the same bits ---- */

static void assert_same_sequence(const run *a, const run *b, int64_t seq)
{
    const ttn_span from = a->feed.span[0];
    const ttn_span to = b->feed.span[seq];
    assert_int_equal(from.n, to.n);
    const size_t bytes = (size_t)(from.n * a->C) * sizeof(real);
    assert_same_bits(a->out + from.first * a->C, b->out + to.first * a->C, bytes);
    assert_same_bits(a->aux[TTN_FAVOR_AUX_ROW] + from.first * a->a.heads,
                     b->aux[TTN_FAVOR_AUX_ROW] + to.first * a->a.heads, (size_t)(from.n * a->a.heads) * sizeof(real));
    for (int i = 0; i < 3; i++)
        assert_same_bits(a->din[i] + from.first * a->C, b->din[i] + to.first * a->C, bytes);
}

static void a_sequence_has_the_same_bits_alone_first_in_the_middle_and_last(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 37, 353, CHUNK_ROWS + 3};
    static const ttn_favor_kernel kernels[] = {TTN_FAVOR_POSITIVE, TTN_FAVOR_TRIG, TTN_FAVOR_RELU};
    for (int k = 0; k < 3; k++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
            const int64_t n = lengths[l];
            const ttn_attn_favor_options attr = {.heads = 2, .kernel = kernels[k]};
            const ttn_span alone = {0, n};
            const int64_t step = (n + 11) / 12 * 12;
            const ttn_span first[] = {{0, n}, {step, 100}, {step + 108, 7}};
            const ttn_span middle[] = {{0, 29}, {36, n}, {36 + step, 350}};
            const ttn_span last[] = {{0, 500}, {504, 1}, {516, n}};
            const ttn_span *const place[] = {first, middle, last};
            run a;
            make(&a, attr, 16, 24, &alone, 1);
            fill_all(&a, 1, ttn_test_seed(), 340);
            forward(&a);
            backward(&a);
            for (int p = 0; p < 3; p++) {
                run b;
                make(&b, attr, 16, 24, place[p], 3);
                fill_all(&b, 2, ttn_test_seed(), 350 + (uint64_t)p);
                memcpy(b.in[3], a.in[3], (size_t)(attr.heads * a.m * a.D) * sizeof(real));
                const int64_t to = place[p][p].first * b.C;
                for (int i = 0; i < 3; i++)
                    memcpy(b.in[i] + to, a.in[i], (size_t)(n * a.C) * sizeof(real));
                memcpy(b.dout + to, a.dout, (size_t)(n * a.C) * sizeof(real));
                b.on.n_thread = 1 + p;
                forward(&b);
                backward(&b);
                assert_same_sequence(&a, &b, p);
                release(&b);
            }
            release(&a);
        }
}

static void bits_do_not_depend_on_threads(void **state)
{
    (void)state;
    static const ttn_span span[] = {{0, 2 * CHUNK_ROWS + 100}, {8400, 353}, {8760, 1}, {8772, 900}};
    static const int threads[] = {2, 3, 5, MOST_THREADS};
    run a;
    make(&a, (ttn_attn_favor_options){.heads = 2}, 4, 24, span, 4);
    fill_all(&a, 1, ttn_test_seed(), 360);
    a.on.n_thread = 1;
    forward(&a);
    backward(&a);
    for (int t = 0; t < 4; t++) {
        run b;
        make(&b, (ttn_attn_favor_options){.heads = 2}, 4, 24, span, 4);
        fill_all(&b, 1, ttn_test_seed(), 360);
        b.on.n_thread = threads[t];
        forward(&b);
        backward(&b);
        const size_t bytes = (size_t)(a.rows * a.C) * sizeof(real);
        assert_same_bits(a.out, b.out, bytes);
        assert_same_bits(a.stat, b.stat, sizeof a.stat);
        for (int i = 0; i < 3; i++)
            assert_same_bits(a.din[i], b.din[i], bytes);
        release(&b);
    }
    release(&a);
}

/* ---- published implementations ---- */

static const struct {
    const char *name;
    ttn_favor_kernel kernel;
} golden_kernels[] = {{"positive", TTN_FAVOR_POSITIVE},
                      {"relu", TTN_FAVOR_RELU},
                      {"elu1", TTN_FAVOR_ELU1},
                      {"sigmoid", TTN_FAVOR_SIGMOID}};

/* Rows of the sequences, which stand one after the other at multiples of 12, of a tensor of the set. */
static void put_rows(const run *r, const golden_tensor *t, real *x)
{
    int64_t from = 0;
    for (int64_t s = 0; s < r->feed.used.seqs; s++) {
        golden_rows(t, from, r->feed.span[s].n, x + r->feed.span[s].first * r->C);
        from += r->feed.span[s].n;
    }
}

static void assert_rows(const run *r, const golden_tensor *t, const real *x)
{
    int64_t from = 0;
    for (int64_t s = 0; s < r->feed.used.seqs; s++) {
        const double off =
            golden_difference(t, from, r->feed.span[s].n, x + r->feed.span[s].first * r->C, golden_range(t));
        assert_at_most(off, sizeof(real) == 4 ? 1e-5 : 1e-10, t->name);
        from += r->feed.span[s].n;
    }
}

static void compare_with_golden(const golden *g, int set, const char *implementation, int k)
{
    const golden_tensor *lengths = golden_find(g, "%d.lengths", set);
    const golden_tensor *W = golden_find(g, "%d.projection", set);
    ttn_span span[8];
    int64_t next = 0;
    for (int64_t s = 0; s < lengths->n; s++) {
        span[s] = (ttn_span){next, (int64_t)lengths->value[s]};
        next += (span[s].n + 11) / 12 * 12;
    }
    const int google = strcmp(implementation, "google") == 0;
    const ttn_attn_favor_options a = {.heads = (int)golden_number(g, "%d.heads", set),
                                      .kernel = golden_kernels[k].kernel,
                                      .compat = google ? TTN_FAVOR_GOOGLE : TTN_FAVOR_LUCIDRAINS};
    const int no_projection = google && k > 0;
    run r;
    make(&r, a, W->dim[2], no_projection ? 0 : W->dim[1], span, lengths->n);
    if (!no_projection) golden_rows(W, 0, W->dim[0], r.in[3]);
    static const char *const name[] = {"q", "k", "v"};
    for (int i = 0; i < 3; i++)
        put_rows(&r, golden_find(g, "%d.%s", set, name[i]), r.in[i]);
    put_rows(&r, golden_find(g, "%d.dout", set), r.dout);
    forward(&r);
    assert_rows(&r, golden_find(g, "%d.%s.%s.out", set, implementation, golden_kernels[k].name), r.out);
    backward(&r);
    for (int i = 0; i < 3; i++)
        assert_rows(&r, golden_find(g, "%d.%s.%s.d%s", set, implementation, golden_kernels[k].name, name[i]), r.din[i]);
    release(&r);
}

static void compat_google_has_the_outputs_and_gradients_of_googles(void **state)
{
    (void)state;
    golden *g = golden_open("attn_favor");
    for (int set = 0; set < 4; set++)
        for (int k = 0; k < 4; k++)
            compare_with_golden(g, set, "google", k);
    golden_close(g);
}

/* With the sequences, heads and projection of the set, the names of whose tensors begin with `of`. */
static void compare_with_google(const golden *g, ttn_favor_kernel kernel, ttn_favor_compatible compat, const char *of)
{
    static const char *const name[] = {"q", "k", "v"};
    const golden_tensor *lengths = golden_find(g, "lengths");
    const golden_tensor *W = golden_find(g, "projection");
    ttn_span span[8];
    int64_t next = 0;
    for (int64_t s = 0; s < lengths->n; s++) {
        span[s] = (ttn_span){next, (int64_t)lengths->value[s]};
        next += (span[s].n + 11) / 12 * 12;
    }
    const ttn_attn_favor_options a = {.heads = (int)golden_number(g, "heads"), .kernel = kernel, .compat = compat};
    run r;
    make(&r, a, W->dim[2], W->dim[1], span, lengths->n);
    golden_rows(W, 0, W->dim[0], r.in[3]);
    for (int i = 0; i < 3; i++)
        put_rows(&r, golden_find(g, "%s", name[i]), r.in[i]);
    put_rows(&r, golden_find(g, "dout"), r.dout);
    forward(&r);
    backward(&r);
    assert_rows(&r, golden_find(g, "%s.out", of), r.out);
    for (int i = 0; i < 3; i++)
        assert_rows(&r, golden_find(g, "%s.d%s", of, name[i]), r.din[i]);
    release(&r);
}

/* Of half of the queries the denominators are raised: only there is a gradient to the maxima of norms. */
static void compat_google_has_the_trig_of_googles(void **state)
{
    (void)state;
    golden *g = golden_open("attn_favor_google");
    compare_with_google(g, TTN_FAVOR_TRIG, TTN_FAVOR_GOOGLE, "google.trig");
    golden_close(g);
}

static void compat_google_tf_has_the_relu_of_its_own(void **state)
{
    (void)state;
    golden *g = golden_open("attn_favor_google");
    compare_with_google(g, TTN_FAVOR_RELU, TTN_FAVOR_GOOGLE_TF, "google-tf.relu");
    golden_close(g);
}

static void compat_lucidrains_has_the_outputs_and_gradients_of_performer_pytorch(void **state)
{
    (void)state;
    golden *g = golden_open("attn_favor");
    for (int set = 0; set < 4; set++)
        for (int k = 0; k < 2; k++)
            compare_with_golden(g, set, "lucidrains", k);
    golden_close(g);
}

/* The largest key is there twice, in the first chunk and in the last: moving both moves the maximum once. */
static void the_maximum_of_keys_has_a_gradient_from_all_chunks_once(void **state)
{
    (void)state;
    if (sizeof(real) == 4) return; /* central differences are taken in double only */
    enum { LAST = TTN_FAVOR_CHUNK * TTN_FAVOR_TILE + 40, FIRST = 5 };
    const ttn_span span = {0, LAST + 10};
    const ttn_attn_favor_options o = {
        .heads = 1, .kernel = TTN_FAVOR_POSITIVE, .compat = TTN_FAVOR_GOOGLE}; /* eps is 1e-6 */
    run r;
    make(&r, o, 2, 3, &span, 1);
    fill_all(&r, 1, ttn_test_seed(), 392);
    /* all others' features are a few eps, so that much depends on the maximum */
    real *const key[] = {r.in[1] + FIRST * r.C, r.in[1] + LAST * r.C};
    for (int i = 0; i < 2; i++) {
        key[i][0] = (real)2.5;
        key[i][1] = (real)-1.5;
    }
    const real weights[] = {4, -3, (real)-0.5, 1, (real)0.3, (real)0.7};
    memcpy(r.in[3], weights, sizeof weights);
    forward(&r);
    backward(&r);
    const double h = 1e-5;
    for (int64_t d = 0; d < r.C; d++) {
        double loss[2] = {0};
        for (int side = 0; side < 2; side++) {
            const real before = key[0][d];
            key[0][d] = key[1][d] = (real)((double)before + (side ? h : -h));
            forward(&r);
            for (int64_t e = 0; e < r.used * r.C; e++)
                loss[side] += (double)r.out[e] * (double)r.dout[e];
            key[0][d] = key[1][d] = before;
        }
        const double got = (double)(r.din[1][FIRST * r.C + d] + r.din[1][LAST * r.C + d]);
        assert_at_most(fabs((loss[1] - loss[0]) / (2 * h) - got) / (1 + fabs(got)), 1e-6,
                       "gradient of the largest key");
    }
    release(&r);
}

/* Of long rows nothing but eps is left: google's denominator gets 2e-6 more, so outputs nearly vanish; all others' are means. */
static void googles_denominators_near_0_are_raised(void **state)
{
    (void)state;
    const ttn_span span = {0, CHUNK_ROWS + 10};
    static const ttn_favor_compatible all[] = {TTN_FAVOR_GOOGLE, TTN_FAVOR_GOOGLE_TF, TTN_FAVOR_LUCIDRAINS};
    for (int i = 0; i < 3; i++) {
        const int google = all[i] == TTN_FAVOR_GOOGLE;
        run r;
        make(&r, (ttn_attn_favor_options){.heads = 1, .kernel = TTN_FAVOR_POSITIVE, .compat = all[i]}, 4, 6, &span, 1);
        fill_all(&r, 1, ttn_test_seed(), 393);
        for (int64_t e = 0; e < span.n * r.C; e++) {
            r.in[0][e] = r.in[1][e] = 20; /* h is 400 */
            r.in[2][e] = 1;
        }
        forward(&r);
        for (int64_t e = 0; e < span.n * r.C; e++) {
            const double expected = google ? (double)span.n * 1e-12 / ((double)span.n * 1e-12 + 2e-6) : 1;
            assert_at_most(fabs((double)r.out[e] / expected - 1), 1e-4, "what eps makes of a mean");
        }
        release(&r);
    }
}

/* ---- statistics ---- */

/* A row that is no number is not passed over by the smallest and the largest, wherever it stands. */
static void statistics_show_rows_that_are_no_numbers(void **state)
{
    (void)state;
    static const ttn_span span[] = {{3, 40}, {48, TILE + 1}};
    static const int64_t rows[] = {3, 20, 48, 48 + TILE};
    for (int k = 0; k < 4; k++) {
        run r;
        make(&r, (ttn_attn_favor_options){.heads = 2, .kernel = TTN_FAVOR_SQUARE}, 4, 6, span, 2);
        fill_all(&r, 1, ttn_test_seed(), 371);
        r.in[0][rows[k] * r.C] = (real)NAN;
        forward(&r);
        assert_true(isnan(r.stat[NORM_MOST]));
        assert_true(isnan(r.stat[DENOMINATOR_LEAST]));
        release(&r);
    }
}

static void statistics_are_norms_and_denominators(void **state)
{
    (void)state;
    static const ttn_span span[] = {{3, 40}, {48, TILE + 1}};
    static const ttn_favor_kernel kernels[] = {TTN_FAVOR_SQUARE, TTN_FAVOR_IDENTITY};
    for (int k = 0; k < 2; k++) {
        run r;
        make(&r, (ttn_attn_favor_options){.heads = 2, .kernel = kernels[k]}, 4, 6, span, 2);
        fill_all(&r, 1, ttn_test_seed(), 370);
        forward(&r);
        double sum = 0;
        double most = 0;
        double least = 1e300;
        double negative = 0;
        for (int64_t s = 0; s < 2; s++)
            for (int64_t h = 0; h < 2; h++) {
                plain p = plain_of(&r, s, h);
                for (int64_t i = 0; i < p.n; i++) {
                    for (int which = 0; which < 2; which++) {
                        const double norm = dot(p.x[which] + i * r.D, p.x[which] + i * r.D, r.D);
                        sum += norm;
                        most = fmax(most, norm);
                    }
                    least = fmin(least, p.Dn[i]);
                    negative += p.Dn[i] <= 0;
                }
                plain_release(&p);
            }
        const double rounding = sizeof(real) == 4 ? 1e-5 : 1e-12;
        assert_at_most(fabs(r.stat[NORM_SUM] / sum - 1), rounding, "sum of |x|^2");
        assert_at_most(fabs(r.stat[NORM_MOST] / most - 1), rounding, "largest |x|^2");
        assert_true(r.stat[NORM_ROWS] == (double)(2 * 2 * (40 + TILE + 1)));
        assert_at_most(fabs(r.stat[DENOMINATOR_LEAST] / least - 1), 10 * rounding, "smallest denominator");
        assert_true(r.stat[DENOMINATOR_NEGATIVE] == negative);
        assert_true((negative > 50) == (kernels[k] == TTN_FAVOR_IDENTITY));
        assert_true(r.stat[ERROR_SIZE] == 0); /* a kernel of its own has no truth to be off from */
        release(&r);
    }
}

/* The size and the distance from mean v that errors are told beside, of the middle row of each tile. */
static void errors_are_told_beside_sampled_rows_of_out(void **state)
{
    (void)state;
    static const ttn_span span = {3, 2 * TILE + 5};
    static const ttn_favor_kernel kernels[] = {TTN_FAVOR_POSITIVE, TTN_FAVOR_HYPERBOLIC, TTN_FAVOR_TRIG};
    for (int k = 0; k < 3; k++) {
        run r;
        make(&r, (ttn_attn_favor_options){.heads = 2, .kernel = kernels[k]}, 4, 8, &span, 1);
        fill_all(&r, norm_for(kernels[k], 4), ttn_test_seed(), 375);
        forward(&r);
        double size = 0;
        double uniform = 0;
        const int64_t height = ttn_favor_height(span.n);
        for (int64_t c = 0; c < r.C; c++) {
            double mean = 0;
            for (int64_t i = 0; i < span.n; i++)
                mean += (double)r.in[2][(span.first + i) * r.C + c] / (double)span.n;
            for (int64_t first = 0; first < span.n; first += height) {
                const int64_t live = span.n - first < height ? span.n - first : height;
                const double out = (double)r.out[(span.first + first + live / 2) * r.C + c];
                size += out * out;
                uniform += (out - mean) * (out - mean);
            }
        }
        const double rounding = sizeof(real) == 4 ? 1e-4 : 1e-11;
        assert_at_most(fabs(r.stat[ERROR_SIZE] / size - 1), rounding, "|out|^2");
        assert_at_most(fabs(r.stat[ERROR_UNIFORM] / uniform - 1), rounding, "|out - mean v|^2");
        release(&r);
    }
}

/* Else errors of both halves depend on each other. */
static void halves_of_features_have_no_block_of_orthogonal_rows_in_common(void **state)
{
    (void)state;
    static const struct {
        int64_t m, D;
        int independent;
        int64_t split;
    } what[] = {{64, 16, 0, 32}, {272, 64, 0, 128}, {24, 16, 0, 16}, {40, 16, 0, 16},
                {16, 16, 0, 0},  {9, 16, 0, 0},     {40, 16, 1, 20}};
    for (size_t w = 0; w < sizeof what / sizeof *what; w++) {
        const ttn_attn_favor_options o = {.independent = what[w].independent};
        const ttn_favor_job j = {.a = &o, .m = what[w].m, .D = what[w].D};
        assert_int_equal(ttn_favor_split(&j), what[w].split);
    }
}

/* In [1, M n], whatever the keys: no eps is needed. */
static void denominators_of_the_exponential_family_are_at_least_one(void **state)
{
    (void)state;
    static const ttn_favor_kernel kernels[] = {TTN_FAVOR_POSITIVE, TTN_FAVOR_HYPERBOLIC, TTN_FAVOR_EXP};
    static const double norms[] = {1e-3, 1, 30, 400, 4000};
    static const ttn_span span[] = {{0, 1}, {12, 2 * TILE + 3}};
    for (int k = 0; k < 3; k++)
        for (int n = 0; n < 5; n++) {
            run r;
            make(&r, (ttn_attn_favor_options){.heads = 2, .kernel = kernels[k]}, 8, 16, span, 2);
            fill_all(&r, norms[n], ttn_test_seed(), 380);
            forward(&r);
            assert_true(r.stat[DENOMINATOR_LEAST] >= 1);
            assert_true(r.stat[DENOMINATOR_LEAST] <= (double)(r.M * span[1].n));
            for (int64_t e = 0; e < r.used * r.C; e++)
                assert_true(isfinite(r.out[e]));
            release(&r);
        }
}

/* References of one chunk are lower by 150 or more than those of the other: states meet at the higher ones, in either order. */
static void chunks_of_long_and_of_short_keys_meet_in_range(void **state)
{
    (void)state;
    const ttn_span span = {0, CHUNK_ROWS + 24};
    for (int long_first = 0; long_first < 2; long_first++) {
        run r;
        make(&r, (ttn_attn_favor_options){.heads = 1}, 8, 16, &span, 1);
        fill_all(&r, 1, ttn_test_seed(), 385);
        for (int64_t i = 0; i < span.n; i++)
            for (int64_t d = 0; d < r.C; d++) {
                const int is_long = (i < CHUNK_ROWS) == long_first;
                r.in[1][i * r.C + d] = is_long && d == 0 ? 40 : (real)0.01 * r.in[1][i * r.C + d]; /* |y|^2 is 566 */
                r.in[2][i * r.C + d] = is_long ? 5 : 1;
            }
        forward(&r);
        backward(&r);
        assert_true(r.stat[DENOMINATOR_LEAST] >= 1);
        for (int64_t e = 0; e < span.n * r.C; e++) {
            assert_at_most(fabs((double)r.out[e] - 1), bound, "values of short keys");
            for (int i = 0; i < 3; i++)
                assert_true(isfinite(r.din[i][e]));
        }
        release(&r);
    }
}

/* A row of zeros under `identity`: its sum of weights is 0. Its output is 0, no gradient comes from it, and it is counted. */
static void a_row_whose_denominator_is_rounding_is_given_up(void **state)
{
    (void)state;
    const ttn_span span = {0, 30};
    run r;
    make(&r, (ttn_attn_favor_options){.heads = 1, .kernel = TTN_FAVOR_IDENTITY}, 4, 6, &span, 1);
    run without;
    make(&without, (ttn_attn_favor_options){.heads = 1, .kernel = TTN_FAVOR_IDENTITY}, 4, 6, &span, 1);
    fill_all(&r, 1, ttn_test_seed(), 390);
    memset(r.in[0] + 7 * r.C, 0, (size_t)r.C * sizeof(real));
    fill_all(&without, 1, ttn_test_seed(), 390);
    memset(without.in[0] + 7 * r.C, 0, (size_t)r.C * sizeof(real));
    memset(without.dout + 7 * r.C, 0, (size_t)r.C * sizeof(real));
    forward(&r);
    forward(&without);
    backward(&r);
    backward(&without);
    assert_true(r.stat[ROWS_GIVEN_UP] == 1);
    for (int64_t d = 0; d < r.C; d++) {
        assert_true(r.out[7 * r.C + d] == 0);
        assert_true(r.din[0][7 * r.C + d] == 0);
    }
    for (int i = 1; i < 3; i++)
        for (int64_t e = 0; e < r.used * r.C; e++)
            assert_true(r.din[i][e] == without.din[i][e]);
    release(&r);
    release(&without);
}

/* Keys all alike, features of q and k themselves: Dn is |Q'| |z| times what q has of the keys' direction. */
static void a_row_is_given_up_below_a_millionth_of_what_its_denominator_could_be(void **state)
{
    (void)state;
    const ttn_span span = {0, 30};
    const double part[] = {0.9e-6, 1.1e-6, -0.9e-6, -1.1e-6, 0};
    run r;
    make(&r, (ttn_attn_favor_options){.heads = 1, .kernel = TTN_FAVOR_IDENTITY}, 4, 0, &span, 1);
    fill_all(&r, 1, ttn_test_seed(), 391);
    for (int64_t row = 0; row < span.n; row++)
        for (int64_t d = 0; d < r.C; d++) {
            r.in[0][row * r.C + d] = d == 0; /* 1: no row to give up */
            r.in[1][row * r.C + d] = d == 0;
        }
    for (int i = 0; i < 5; i++) {
        r.in[0][i * r.C] = (real)part[i];
        r.in[0][i * r.C + 1] = 1;
    }
    forward(&r);
    assert_true(r.stat[ROWS_GIVEN_UP] == 3);
    assert_true(r.stat[DENOMINATOR_NEGATIVE] == 3); /* 0 is not positive */
    for (int i = 0; i < 5; i++)
        assert_int_equal(r.out[i * r.C] == 0, i % 2 == 0);
    release(&r);
}

/* ---- maps ---- */

static const struct {
    ttn_favor_kernel kernel;
    ttn_favor_renormalize how;
    ttn_favor_compatible compat;
    int64_t m;
} mapped[] = {{TTN_FAVOR_HYPERBOLIC, TTN_FAVOR_DIVIDED, TTN_FAVOR_OURS, 9},
              {TTN_FAVOR_POSITIVE, TTN_FAVOR_PLAIN, TTN_FAVOR_OURS, 9},
              {TTN_FAVOR_TRIG, TTN_FAVOR_DIVIDED, TTN_FAVOR_OURS, 9},
              {TTN_FAVOR_SIGMOID, TTN_FAVOR_RMS, TTN_FAVOR_OURS, 9},
              {TTN_FAVOR_SOFTPLUS, TTN_FAVOR_DIVIDED, TTN_FAVOR_OURS, 0},
              {TTN_FAVOR_POSITIVE, TTN_FAVOR_DIVIDED, TTN_FAVOR_GOOGLE, 9},
              {TTN_FAVOR_TRIG, TTN_FAVOR_DIVIDED, TTN_FAVOR_GOOGLE, 9}};

/* A row of the map times v is the row of out, and the map's blocks are means of its rows. */
static void map_rows_times_v_are_out_and_map_pool_is_their_mean(void **state)
{
    (void)state;
    static const ttn_span span[] = {{0, 10}, {12, 2 * TILE + 3}};
    static const int64_t blocks[] = {1, 7, 10};
    const ttn_attention *a = ttn_op_attn_favor.attention;
    for (size_t w = 0; w < sizeof mapped / sizeof *mapped; w++) {
        run r;
        make(&r,
             (ttn_attn_favor_options){
                 .heads = 2, .kernel = mapped[w].kernel, .renormalize = mapped[w].how, .compat = mapped[w].compat},
             6, mapped[w].m, span, 2);
        fill_all(&r, 0.5, ttn_test_seed(), 400 + w);
        forward(&r);
        const ttn_call c = call_of(&r);
        ttn_error err = {0};
        for (int64_t seq = 0; seq < 2; seq++) {
            const int64_t n = span[seq].n;
            real *map = piece(n * n, sizeof *map);
            int64_t *row = piece(n, sizeof *row);
            for (int64_t i = 0; i < n; i++)
                row[i] = n - 1 - i;
            assert_ok(a->map_rows(&c, seq, 1, n, row, map, &err), &err);
            for (int64_t i = 0; i < n; i++)
                for (int64_t d = 0; d < r.D; d++) {
                    double sum = 0;
                    for (int64_t t = 0; t < n; t++)
                        sum += (double)map[i * n + t] * (double)r.in[2][(span[seq].first + t) * r.C + r.D + d];
                    const double out = (double)r.out[(span[seq].first + row[i]) * r.C + r.D + d];
                    assert_at_most(fabs(sum - out) / (1 + fabs(out)), 10 * bound, "a row of the map times v");
                }
            for (int b = 0; b < 3; b++) {
                const int64_t P = blocks[b];
                double pooled[100];
                assert_ok(a->map_pool(&c, seq, 1, P, pooled, &err), &err);
                for (int64_t p = 0; p < P; p++)
                    for (int64_t q = 0; q < P; q++) {
                        double sum = 0;
                        int64_t cells = 0;
                        for (int64_t i = 0; i < n; i++)
                            for (int64_t t = q * n / P; t < (q + 1) * n / P; t++) {
                                if (row[i] < p * n / P || row[i] >= (p + 1) * n / P) continue;
                                sum += (double)map[i * n + t];
                                cells++;
                            }
                        const double mean = sum / (double)cells;
                        assert_at_most(fabs(pooled[p * P + q] - mean) / (1e-3 + fabs(mean)), 100 * bound, "a block");
                    }
            }
            ttn_free(map);
            ttn_free(row);
        }
        const int64_t no_row = 10;
        real one[1];
        assert_fails(a->map_rows(&c, 0, 0, 1, &no_row, one, &err), TTN_EINVAL, &err,
                     "there is no row 10 in a sequence of 10");
        ttn_error other = {0};
        assert_fails(a->map_pool(&c, 2, 0, 1, (double[1]){0}, &other), TTN_EINVAL, &other, "there is no sequence 2");
        release(&r);
    }
}

static void a_step_costs_twelve_products_of_which_ten_are_useful(void **state)
{
    (void)state;
    static const ttn_span span[] = {{0, 480}};
    run r;
    make(&r, (ttn_attn_favor_options){.heads = 2}, 64, 256, span, 1);
    const double product = 2.0 * 480 * 2 * 256 * 64;
    const ttn_cost f = ttn_op_attn_favor.cost(&r.sig, TTN_FORWARD, 0);
    const ttn_cost b = ttn_op_attn_favor.cost(&r.sig, TTN_BACKWARD, 0);
    assert_true(f.done >= 4 * product && f.done <= 4.2 * product && f.useful == f.done);
    assert_true(b.done >= 8 * product && b.done <= 8.4 * product);
    assert_true(b.useful >= 6 * product && b.useful <= 6.2 * product);
    /* memory: a state for each sequence, and what 4,032 rows add to scratch; nothing that grows with rows times features */
    assert_true(ttn_desc_bytes(&r.sig.aux[TTN_FAVOR_AUX_S]) == (size_t)(2 * 256 * 64) * sizeof(real));
    assert_true(r.sig.work[TTN_BACKWARD] < (size_t)(2 * 256 * 66) * sizeof(real));
    release(&r);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    ttn_test_threads(MOST_THREADS);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_map_is_its_formula_in_double),
        cmocka_unit_test(every_way_to_normalize_and_no_projection_are_their_formulas),
        cmocka_unit_test(tiles_and_chunks_have_no_seams),
        cmocka_unit_test(a_hundred_thousand_rows),
        cmocka_unit_test(rows_of_norm_400_are_exact_to_rounding),
        cmocka_unit_test(with_keys_of_one_norm_positive_is_exp),
        cmocka_unit_test(constant_values_give_a_constant_output),
        cmocka_unit_test(permuting_rows_permutes_outputs_and_gradients),
        cmocka_unit_test(a_sequence_has_the_same_bits_alone_first_in_the_middle_and_last),
        cmocka_unit_test(bits_do_not_depend_on_threads),
        cmocka_unit_test(compat_google_has_the_outputs_and_gradients_of_googles),
        cmocka_unit_test(compat_google_has_the_trig_of_googles),
        cmocka_unit_test(compat_google_tf_has_the_relu_of_its_own),
        cmocka_unit_test(compat_lucidrains_has_the_outputs_and_gradients_of_performer_pytorch),
        cmocka_unit_test(the_maximum_of_keys_has_a_gradient_from_all_chunks_once),
        cmocka_unit_test(googles_denominators_near_0_are_raised),
        cmocka_unit_test(statistics_are_norms_and_denominators),
        cmocka_unit_test(statistics_show_rows_that_are_no_numbers),
        cmocka_unit_test(errors_are_told_beside_sampled_rows_of_out),
        cmocka_unit_test(halves_of_features_have_no_block_of_orthogonal_rows_in_common),
        cmocka_unit_test(denominators_of_the_exponential_family_are_at_least_one),
        cmocka_unit_test(chunks_of_long_and_of_short_keys_meet_in_range),
        cmocka_unit_test(a_row_whose_denominator_is_rounding_is_given_up),
        cmocka_unit_test(a_row_is_given_up_below_a_millionth_of_what_its_denominator_could_be),
        cmocka_unit_test(map_rows_times_v_are_out_and_map_pool_is_their_mean),
        cmocka_unit_test(a_step_costs_twelve_products_of_which_ten_are_useful),
    };
    return ttn_test_run(tests);
}
