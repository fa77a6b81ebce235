/* f32 against f64 where sums over the rows of a sequence or a batch are long: at 4,032, 9,001 and 100,000 rows the relative
 * error (Frobenius) of every output is at most 1e-6, that of every gradient at most 3e-6, for each kind of attention, each map
 * of random features, and each other op that adds up rows. A sum that adds one row after the other in f32 fails: its error
 * grows with the number of rows (relu's normaliser in attn_favor: 1e-5 at 4,032). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "autograd/gradcheck.h"
#include "autograd/ops.h"
#include "autograd/ops/ffn.h"
#include "autograd/ops/headnorm.h"
#include "autograd/ops/pool.h"
#include "autograd/ops/xent.h"
#include "autograd/rownorm.h"
#include "core/blas.h"
#include "core/memory.h"
#include "tests/harness/test.h"

/* The f64 library is linked into this f32 program, its symbols renamed (Makefile). */
const ttn_op *f64_ttn_op_find(const char *name);
ttn_status f64_ttn_gradcheck_compute_case(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o,
                                          ttn_gradcheck_values *ret, ttn_error *err);
ttn_status f64_ttn_blas_start(int n_thread, ttn_blas_info *ret, ttn_error *err);

enum { MOST_THREADS = 8 };

#define OUT_BOUND      1e-6
#define GRADIENT_BOUND 3e-6

static const int64_t lengths[] = {4032, 9001, 100000};

enum { N_LENGTHS = sizeof lengths / sizeof *lengths };

/* ---- f32 beside f64 ---- */

/* |a - b| / |b|, or |a| where b is 0. */
static double off_by(const double *a, const double *b, int64_t n)
{
    double off = 0;
    double size = 0;
    for (int64_t i = 0; i < n; i++) {
        off += (a[i] - b[i]) * (a[i] - b[i]);
        size += b[i] * b[i];
    }
    return size > 0 ? sqrt(off / size) : sqrt(off);
}

/* What the part is held to: 0: nothing. */
static double bound_of(const char *part)
{
    if (strncmp(part, "out", 3) == 0) return OUT_BOUND;
    return strncmp(part, "din", 3) == 0 ? GRADIENT_BOUND : 0;
}

static void check(const char *op, const ttn_case *k, double (*value)(int i, int64_t e, double random))
{
    const ttn_gradcheck_options o = {.seed = ttn_test_seed(), .value = value};
    ttn_gradcheck_values f32 = {0};
    ttn_gradcheck_values f64 = {0};
    ttn_error err = {0};
    assert_non_null(ttn_op_find(op));
    assert_ok(ttn_gradcheck_compute_case(ttn_op_find(op), k, &o, &f32, &err), &err);
    assert_ok(f64_ttn_gradcheck_compute_case(f64_ttn_op_find(op), k, &o, &f64, &err), &err);
    assert_int_equal(f32.n_part, f64.n_part);
    for (int part = 0; part < f64.n_part; part++) {
        const double bound = bound_of(f64.part[part].name);
        if (bound == 0) continue;
        char what[160];
        snprintf(what, sizeof what, "%s, %s, %" PRId64 " rows: %s", op, k->about, k->used.rows, f64.part[part].name);
        const int64_t first = f64.part[part].first;
        assert_at_most(off_by(f32.value + first, f64.value + first, f64.part[part].n), bound, what);
    }
    ttn_free(f32.value);
    ttn_free(f64.value);
}

/* The case with one sequence of each length. */
static void check_lengths(const char *op, const ttn_case *form, double (*value)(int i, int64_t e, double random))
{
    for (int i = 0; i < N_LENGTHS; i++) {
        ttn_case k = *form;
        k.used = (ttn_extent){.rows = lengths[i], .seqs = 1};
        k.span[0] = (ttn_span){0, lengths[i]};
        check(op, &k, value);
    }
}

/* ---- attention ---- */

enum { D = 16, M = 64, LANDMARKS = 16 };

#define ROWS TTN_ROWS_OF(D)
#define PROJECTION                    \
    {                                 \
        .ndim = 3, .dim = { 1, M, D } \
    }

typedef struct {
    const char *about;
    ttn_attn_favor_options o;
} favor_form;

static const favor_form favor_forms[] = {
    {"positive", {.kernel = TTN_FAVOR_POSITIVE}},
    {"hyperbolic", {.kernel = TTN_FAVOR_HYPERBOLIC}},
    {"trig", {.kernel = TTN_FAVOR_TRIG}},
    {"exp", {.kernel = TTN_FAVOR_EXP}},
    {"relu", {.kernel = TTN_FAVOR_RELU}},
    {"elu1", {.kernel = TTN_FAVOR_ELU1}},
    {"gelu", {.kernel = TTN_FAVOR_GELU}},
    {"square", {.kernel = TTN_FAVOR_SQUARE}},
    {"sigmoid", {.kernel = TTN_FAVOR_SIGMOID}},
    {"softplus", {.kernel = TTN_FAVOR_SOFTPLUS}},
    {"gelu, rms", {.kernel = TTN_FAVOR_GELU, .renormalize = TTN_FAVOR_RMS}},
    {"tanh, rms", {.kernel = TTN_FAVOR_TANH, .renormalize = TTN_FAVOR_RMS}},
    {"identity, rms", {.kernel = TTN_FAVOR_IDENTITY, .renormalize = TTN_FAVOR_RMS}},
    {"relu, rms", {.kernel = TTN_FAVOR_RELU, .renormalize = TTN_FAVOR_RMS}},
    {"positive, rms", {.kernel = TTN_FAVOR_POSITIVE, .renormalize = TTN_FAVOR_RMS}},
    {"positive, undivided", {.kernel = TTN_FAVOR_POSITIVE, .renormalize = TTN_FAVOR_PLAIN}},
    {"hyperbolic, undivided", {.kernel = TTN_FAVOR_HYPERBOLIC, .renormalize = TTN_FAVOR_PLAIN}},
    {"trig, undivided", {.kernel = TTN_FAVOR_TRIG, .renormalize = TTN_FAVOR_PLAIN}},
    {"google's positive", {.kernel = TTN_FAVOR_POSITIVE, .compat = TTN_FAVOR_GOOGLE}},
    {"google's relu", {.kernel = TTN_FAVOR_RELU, .compat = TTN_FAVOR_GOOGLE}},
    {"google's trig", {.kernel = TTN_FAVOR_TRIG, .compat = TTN_FAVOR_GOOGLE}},
    {"google-tf's positive", {.kernel = TTN_FAVOR_POSITIVE, .compat = TTN_FAVOR_GOOGLE_TF}},
    {"google-tf's relu", {.kernel = TTN_FAVOR_RELU, .compat = TTN_FAVOR_GOOGLE_TF}},
    {"lucidrains' positive", {.kernel = TTN_FAVOR_POSITIVE, .compat = TTN_FAVOR_LUCIDRAINS}},
    {"lucidrains' relu", {.kernel = TTN_FAVOR_RELU, .compat = TTN_FAVOR_LUCIDRAINS}},
};

static void every_map_of_random_features(void **state)
{
    (void)state;
    for (size_t f = 0; f < sizeof favor_forms / sizeof *favor_forms; f++) {
        ttn_attn_favor_options o = favor_forms[f].o;
        o.heads = 1;
        const ttn_case k = {.about = favor_forms[f].about,
                            .in = {ROWS, ROWS, ROWS, PROJECTION},
                            .range = {[3] = {-1.73, 1.73}}, /* variance 1 */
                            .attr = &o};
        check_lengths("attn_favor", &k, NULL);
    }
}

/* Uniform in [-1, 1), of a number. */
static double unit_of(uint64_t number)
{
    uint64_t z = (number + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (double)(z >> 11) * 0x1p-52 - 1;
}

static int64_t rows_now;

/* Segments of queries and of keys have means of their own, which resemble each other: else all landmarks of a long sequence
 * are nearly one, and the inverse multiplies whatever is rounded. */
static double set_apart(int i, int64_t e, double random)
{
    if (i > 1) return random;
    const int64_t segment = e / D * LANDMARKS / rows_now;
    return random / 2 + 2 * unit_of((uint64_t)(segment * D + e % D));
}

static void every_inverse_of_landmarks(void **state)
{
    (void)state;
    static const ttn_attn_nystrom_options form[] = {
        {.heads = 1, .landmarks = LANDMARKS, .pinv = TTN_PINV_CHEB},
        {.heads = 1, .landmarks = LANDMARKS, .pinv = TTN_PINV_RAZAVI},
        {.heads = 1, .landmarks = LANDMARKS, .pinv = TTN_PINV_RAZAVI, .shared = 1},
        {.heads = 1, .landmarks = LANDMARKS, .pinv = TTN_PINV_EXACT, .lambda = 1e-6},
    };
    static const char *const about[] = {"cheb", "razavi", "razavi, shared", "exact inverse"};
    for (size_t f = 0; f < sizeof form / sizeof *form; f++)
        for (int i = 0; i < N_LENGTHS; i++) {
            rows_now = lengths[i];
            const ttn_case k = {.about = about[f],
                                .used = {.rows = rows_now, .seqs = 1},
                                .span = {{0, rows_now}},
                                .in = {ROWS, ROWS, ROWS, TTN_LEFT_OUT},
                                .attr = &form[f]};
            check("attn_nystrom", &k, set_apart);
        }
}

/* Its work grows with the square of the length: 100,000 rows are another test's. */
static void exact_attention(void **state)
{
    (void)state;
    for (int causal = 0; causal < 2; causal++)
        for (int i = 0; i < 2; i++) {
            const ttn_attn_exact_options o = {.heads = 1, .causal = causal};
            const ttn_case k = {.about = causal ? "causal" : "full",
                                .used = {.rows = lengths[i], .seqs = 1},
                                .span = {{0, lengths[i]}},
                                .in = {ROWS, ROWS, ROWS},
                                .attr = &o};
            check("attn_exact", &k, NULL);
        }
}

static void attention_of_the_kind_none(void **state)
{
    (void)state;
    check_lengths("attn_none", &(ttn_case){.about = "v", .in = {ROWS, ROWS, ROWS}}, NULL);
}

/* ---- exact attention of 100,000 rows, beside its formula on some of them ----
 *
 * In double all of it would take an hour. So queries are of CLASSES kinds: then the sum of a row's weights and out are known of every row
 * after CLASSES passes over the keys, and each row of dq, dk and dv after one more. */

enum { CLASSES = 61, SAMPLES = 40 };

static double few_queries(int i, int64_t e, double random)
{
    return i == 0 ? unit_of((uint64_t)(e / D % CLASSES * D + e % D)) : random;
}

typedef struct {
    int64_t n;
    const double *q, *k, *v, *g, *out, *din[3]; /* (n, D), of the op; q, k, v and g = dout are what floats hold */
    double lse[CLASSES], of_class[CLASSES][D];  /* L, out */
    double *delta;                              /* (n): g.out */
} sampled;

static const double *part_of(const ttn_gradcheck_values *v, const char *name)
{
    for (int p = 0; p < v->n_part; p++)
        if (strcmp(v->part[p].name, name) == 0) return v->value + v->part[p].first;
    fail_msg("there is no part %s", name);
    return NULL;
}

static double dot(const double *a, const double *b)
{
    double sum = 0;
    for (int d = 0; d < D; d++)
        sum += a[d] * b[d];
    return sum;
}

static double logit(const sampled *s, int64_t query, int64_t key)
{
    return dot(s->q + query * D, s->k + key * D) / sqrt((double)D);
}

static void make_classes(sampled *s)
{
    for (int c = 0; c < CLASSES; c++) {
        double sum = 0;
        for (int64_t t = 0; t < s->n; t++) {
            const double weight = exp(logit(s, c, t));
            sum += weight;
            for (int d = 0; d < D; d++)
                s->of_class[c][d] += weight * s->v[t * D + d];
        }
        s->lse[c] = log(sum);
        for (int d = 0; d < D; d++)
            s->of_class[c][d] /= sum;
    }
    for (int64_t i = 0; i < s->n; i++)
        s->delta[i] = dot(s->g + i * D, s->of_class[i % CLASSES]);
}

/* What query i and key t add to dq_i (0), dk_t (1) and dv_t (2); the others are not wanted. */
static void add_pair(const sampled *s, int64_t i, int64_t t, int which, double *to)
{
    const double p = exp(logit(s, i, t) - s->lse[i % CLASSES]);
    const double e = p * (dot(s->g + i * D, s->v + t * D) - s->delta[i]) / sqrt((double)D);
    const double factor = which == 2 ? p : e;
    const double *const row[] = {s->k + t * D, s->q + i * D, s->g + i * D};
    for (int d = 0; d < D; d++)
        to[d] += factor * row[which][d];
}

static void check_sampled(int64_t n)
{
    const ttn_attn_exact_options attr = {.heads = 1};
    const ttn_case k = {.about = "few queries",
                        .used = {.rows = n, .seqs = 1},
                        .span = {{0, n}},
                        .in = {ROWS, ROWS, ROWS},
                        .attr = &attr};
    const ttn_gradcheck_options o = {.seed = ttn_test_seed(), .value = few_queries};
    ttn_gradcheck_values v = {0};
    ttn_error err = {0};
    assert_ok(ttn_gradcheck_compute_case(&ttn_op_attn_exact, &k, &o, &v, &err), &err);
    sampled s = {.n = n,
                 .q = part_of(&v, "in 0"),
                 .k = part_of(&v, "in 1"),
                 .v = part_of(&v, "in 2"),
                 .g = part_of(&v, "dout 0"),
                 .out = part_of(&v, "out 0"),
                 .din = {part_of(&v, "din 0"), part_of(&v, "din 1"), part_of(&v, "din 2")},
                 .delta = ttn_alloc_array(n, sizeof *s.delta)};
    assert_non_null(s.delta);
    make_classes(&s);
    double got[4][SAMPLES][D];
    double want[4][SAMPLES][D] = {0};
    for (int64_t r = 0; r < SAMPLES; r++) {
        const int64_t row = (2 * r + 1) * n / (2 * SAMPLES);
        for (int64_t other = 0; other < n; other++) {
            add_pair(&s, row, other, 0, want[0][r]);
            add_pair(&s, other, row, 1, want[1][r]);
            add_pair(&s, other, row, 2, want[2][r]);
        }
        for (int i = 0; i < 3; i++)
            memcpy(got[i][r], s.din[i] + row * D, sizeof got[i][r]);
        memcpy(want[3][r], s.of_class[row % CLASSES], sizeof want[3][r]);
        memcpy(got[3][r], s.out + row * D, sizeof got[3][r]);
    }
    static const char *const name[] = {"dq", "dk", "dv", "out"};
    for (int i = 0; i < 4; i++)
        assert_at_most(off_by(got[i][0], want[i][0], (int64_t)SAMPLES * D), i == 3 ? OUT_BOUND : GRADIENT_BOUND,
                       name[i]);
    ttn_free(s.delta);
    ttn_free(v.value);
}

/* 35 s of a processor at 100,000: in make test-long. */
static void sampled_rows_of_long_exact_attention(void **state)
{
    (void)state;
    check_sampled(ttn_test_long() ? 100000 : 9001);
}

/* ---- other sums over rows ---- */

#define TOKENS                                       \
    {                                                \
        .type = TTN_I64, .axis = TTN_ROWS, .ndim = 1 \
    }
#define POSITIVE \
    {            \
        0.5, 1.5 \
    }

/* Gradients of one sign, so that sums grow all the way. */
static double positive_gradients(int i, int64_t e, double random)
{
    (void)e;
    return i == TTN_MAX_IN ? 1 + random / 2 : random;
}

static const ttn_ffn_attributes gated = {.act = TTN_ACT_SILU};
static const ttn_rownorm_attributes norm = {.eps = 1e-5};
static const ttn_headnorm_attributes heads = {.heads = 4, .eps = 1e-6};
static const ttn_token_dropout no_dropout = {.mask = -1};
static const ttn_token_dropout token_dropout = {.mask = 3, .share = 0.12};
static const ttn_pool_attributes mean = {.form = TTN_POOL_MEAN, .skip_first = 1, .skip_last = 1};
static const ttn_xent_attributes xent = {.ignore = -100};
static const ttn_xent_attributes smoothed = {.ignore = -100, .smoothing = 0.1};

static const struct {
    const char *op;
    ttn_case form;
} sums[] = {
    {"linear",
     {.about = "weight and bias", .in = {ROWS, TTN_MATRIX(8, D), TTN_VECTOR(8)}, .range = {POSITIVE, POSITIVE}}},
    {"ffn",
     {.about = "SwiGLU",
      .in = {ROWS, TTN_MATRIX(24, D), TTN_VECTOR(24), TTN_MATRIX(D, 24), TTN_VECTOR(D), TTN_MATRIX(24, D),
             TTN_VECTOR(24)},
      .range = {POSITIVE},
      .attr = &gated}},
    {"layernorm",
     {.about = "gain and bias", .in = {ROWS, TTN_VECTOR(D), TTN_VECTOR(D)}, .range = {[1] = POSITIVE}, .attr = &norm}},
    {"rmsnorm", {.about = "gain", .in = {ROWS, TTN_VECTOR(D)}, .range = {POSITIVE, POSITIVE}, .attr = &norm}},
    {"headnorm", {.about = "gains", .in = {ROWS, TTN_VECTOR(4)}, .range = {POSITIVE, POSITIVE}, .attr = &heads}},
    {"embedding", {.about = "five tokens", .in = {TOKENS, TTN_MATRIX(5, D)}, .range = {{0, 4}}, .attr = &no_dropout}},
    {"embedding",
     {.about = "token dropout", .in = {TOKENS, TTN_MATRIX(5, D)}, .range = {{0, 4}}, .attr = &token_dropout}},
    {"pool", {.about = "mean", .in = {ROWS}, .range = {POSITIVE}, .attr = &mean}},
    {"dwconv", {.about = "kernel", .in = {ROWS, TTN_MATRIX(2, 5)}, .range = {POSITIVE, POSITIVE}}},
    {"mse", {.about = "squares", .in = {ROWS, ROWS}}},
    {"xent", {.about = "loss", .in = {TTN_ROWS_OF(33), TOKENS, TTN_LEFT_OUT}, .range = {[1] = {0, 32}}, .attr = &xent}},
    {"xent",
     {.about = "smoothed", .in = {TTN_ROWS_OF(33), TOKENS, TTN_LEFT_OUT}, .range = {[1] = {0, 32}}, .attr = &smoothed}},
};

static void every_other_sum_over_rows(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof sums / sizeof *sums; s++)
        check_lengths(sums[s].op, &sums[s].form, positive_gradients);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    ttn_error err = {0};
    if (ttn_blas_start(MOST_THREADS, NULL, &err) != TTN_OK || f64_ttn_blas_start(MOST_THREADS, NULL, &err) != TTN_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_map_of_random_features),
        cmocka_unit_test(every_inverse_of_landmarks),
        cmocka_unit_test(exact_attention),
        cmocka_unit_test(attention_of_the_kind_none),
        cmocka_unit_test(sampled_rows_of_long_exact_attention),
        cmocka_unit_test(every_other_sum_over_rows),
    };
    return ttn_test_run(tests);
}
