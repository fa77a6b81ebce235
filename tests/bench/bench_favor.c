/* Attention by random features beside its own products issued as bare calls (the same shapes, the same number of them,
 * operands as compact), beside one plain product, beside exact attention and attention of the kind none, and a long sequence
 * beside a short one. Work is counted as 24 M D a row and head: 4 products forward, 6 backward and 2 for features that are
 * made again, so that useful GF/s of all lengths compare. One thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/op.h"
#include "autograd/ops.h"
#include "autograd/ops/favor.h"
#include "core/blas.h"
#include "core/memory.h"
#include "tests/bench/bench.h"

enum { HEADS = 8, D = 64, WIDTH = HEADS * D, FEATURES = 256, PLAIN = 1024, PLAIN_INNER = 512 };

/* One sequence of n rows for one op; n = 0: there is none. */
typedef struct {
    const ttn_op *op;
    int64_t n, rows;
    ttn_sig sig;
    ttn_span span;
    ttn_feed feed;
    ttn_stream on;
    ttn_call forward, backward;
} job;

static void prepare(job *j, const char *op, const void *attr, int64_t n)
{
    const int64_t rows = (n + 479) / 480 * 480;
    *j = (job){.op = ttn_op_find(op), .n = n, .rows = rows, .span = {0, n}, .on = {.n_thread = 1}};
    j->feed = (ttn_feed){.used = {.rows = rows, .seqs = 1}, .span = &j->span};
    j->sig = (ttn_sig){.attr = attr, .cap = {.rows = rows, .seqs = 1}, .n_in = j->op->n_in};
    for (int i = 0; i < 3; i++)
        j->sig.in[i] = ttn_desc_of(TTN_REAL, TTN_ROWS, 2, rows, WIDTH, 0);
    if (j->op->n_in > 3) j->sig.in[3] = ttn_desc_of(TTN_REAL, TTN_FIXED, 3, HEADS, FEATURES, D);
    ttn_error err = {0};
    if (j->op->shape(&j->sig, &err) != TTN_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    size_t work = 0;
    for (int pass = 0; pass < 2; pass++) {
        const size_t bytes = ttn_work_align(j->sig.work[pass]) + ttn_work_align(j->sig.work_thread[pass]);
        work = bytes > work ? bytes : work;
    }
    ttn_call c = {.sig = &j->sig, .feed = &j->feed, .on = &j->on, .work = bench_memory(work)};
    for (int i = 0; i < j->op->n_in; i++) /* |x|^2 of about 1 */
        c.in[i] = bench_values(ttn_desc_numel(&j->sig.in[i]), i < 2 ? 0.6 : 1);
    for (int a = 0; a < j->sig.n_aux; a++)
        c.aux[a] = bench_memory(ttn_desc_bytes(&j->sig.aux[a]));
    c.stat = bench_memory((size_t)(j->sig.n_stat + 1) * sizeof *c.stat);
    c.out[0] = bench_memory((size_t)(rows * WIDTH) * sizeof(real));
    j->forward = c;
    c.dout[0] = bench_values(rows * WIDTH, 1);
    for (int i = 0; i < 3; i++)
        c.din[i] = bench_memory((size_t)(rows * WIDTH) * sizeof(real));
    j->backward = c;
}

static void release(job *j)
{
    for (int i = 0; i < j->op->n_in; i++)
        ttn_free((void *)j->forward.in[i]);
    for (int i = 0; i < 3; i++)
        ttn_free(j->backward.din[i]);
    for (int a = 0; a < j->sig.n_aux; a++)
        ttn_free(j->forward.aux[a]);
    ttn_free(j->forward.stat);
    ttn_free(j->forward.work);
    ttn_free(j->forward.out[0]);
    ttn_free((void *)j->backward.dout[0]);
}

static void forward(void *arg)
{
    job *j = arg;
    if (j->op->cpu.forward(&j->forward, NULL) != TTN_OK) exit(1);
}

static void backward(void *arg)
{
    job *j = arg;
    if (j->op->cpu.backward(&j->backward, NULL) != TTN_OK) exit(1);
}

static void both(void *arg)
{
    forward(arg);
    backward(arg);
}

/* ---- its products, bare ---- */

static real *rows_a, *rows_b, *features_a, *features_b, *weights, *state;

static void make_operands(void)
{
    rows_a = bench_values(TTN_FAVOR_TILE * D, 1);
    rows_b = bench_values(TTN_FAVOR_TILE * D, 1);
    features_a = bench_values(TTN_FAVOR_TILE * FEATURES, 1);
    features_b = bench_values(TTN_FAVOR_TILE * FEATURES, 1);
    weights = bench_values(FEATURES * D, 1);
    state = bench_values(FEATURES * D, 1);
}

/* (h, M) = (h, D) (M, D)^T: projections, g S^T, v R^T */
static void to_features(int64_t h, const real *x, const real *w, real *u)
{
    ttn_gemm(TTN_N, TTN_T, h, FEATURES, D, 1, ttn_in(x, D), ttn_in(w, D), 0, ttn_out(u, FEATURES));
}

/* (M, D) += (h, M)^T (h, D): S, R */
static void to_state(int64_t h, const real *u, const real *x)
{
    ttn_gemm(TTN_T, TTN_N, FEATURES, D, h, 1e-3, ttn_in(u, FEATURES), ttn_in(x, D), 1, ttn_out(state, D));
}

/* (h, D) = (h, M) (M, D): N, dv, dx */
static void to_rows(int64_t h, const real *u, const real *w, real *x)
{
    ttn_gemm(TTN_N, TTN_N, h, D, FEATURES, 1, ttn_in(u, FEATURES), ttn_in(w, D), 0, ttn_out(x, D));
}

static void bare(void *arg)
{
    const job *j = arg;
    const int64_t h = ttn_favor_height(j->n);
    memset(state, 0, FEATURES * D * sizeof *state);
    for (int64_t tile = 0; tile < ttn_favor_tiles(j->n) * HEADS; tile++) {
        to_features(h, rows_a, weights, features_a); /* forward */
        to_state(h, features_a, rows_a);
        to_features(h, rows_a, weights, features_a);
        to_rows(h, features_a, weights, rows_b);
        to_features(h, rows_a, weights, features_a); /* backward: queries */
        to_features(h, rows_a, weights, features_b);
        to_state(h, features_a, rows_a);
        to_rows(h, features_b, weights, rows_b);
        to_features(h, rows_a, weights, features_a); /* keys and values */
        to_features(h, rows_a, weights, features_b);
        to_rows(h, features_a, weights, rows_b);
        to_rows(h, features_b, weights, rows_b);
    }
}

static real *plain_a, *plain_b, *plain_c;

static void plain(void *arg)
{
    (void)arg;
    ttn_gemm(TTN_N, TTN_T, PLAIN, PLAIN, PLAIN_INNER, 1, ttn_in(plain_a, PLAIN_INNER), ttn_in(plain_b, PLAIN_INNER), 0,
             ttn_out(plain_c, PLAIN));
}

/* ---- comparisons ---- */

static double work_of(int64_t n)
{
    return 24e-9 * (double)n * HEADS * FEATURES * D;
}

static const ttn_attn_favor_options positive = {.heads = HEADS};
static const ttn_attn_favor_options relu = {.heads = HEADS, .kernel = TTN_FAVOR_RELU};
static const ttn_attn_exact_options exact = {.heads = HEADS};

static void beside_products(int64_t n, double goal)
{
    static job j;
    static job r;
    prepare(&j, "attn_favor", &positive, n);
    prepare(&r, "attn_favor", &relu, n);
    forward(&j);
    forward(&r);
    char what[96];
    snprintf(what, sizeof what, "favor, %d rows, H %d, D %d, m %d", (int)n, HEADS, D, FEATURES);
    const bench_row rows[] = {
        {.name = "its products, bare", .run = bare, .arg = &j, .work = work_of(n), .unit = "GF/s"},
        {.name = "positive", .run = both, .arg = &j, .work = work_of(n), .unit = "GF/s", .goal = goal},
        {.name = "positive, forward", .run = forward, .arg = &j, .work = work_of(n) / 3, .unit = "GF/s"},
        {.name = "relu", .run = both, .arg = &r, .work = work_of(n), .unit = "GF/s", .goal = goal},
        {.name = "one plain product",
         .run = plain,
         .arg = &j,
         .work = 2e-9 * PLAIN * PLAIN * PLAIN_INNER,
         .unit = "GF/s"},
    };
    bench_compare(what, rows, 5);
    release(&j);
    release(&r);
}

/* Rows a second of the whole layer. */
static void beside_other_kinds(int64_t n, double goal)
{
    static job e;
    static job f;
    static job none;
    prepare(&e, "attn_exact", &exact, n);
    prepare(&f, "attn_favor", &positive, n);
    prepare(&none, "attn_none", NULL, n);
    forward(&e);
    forward(&f);
    char what[96];
    snprintf(what, sizeof what, "kinds of attention, %d rows, H %d, D %d, m %d", (int)n, HEADS, D, FEATURES);
    const double rows_of = 1e-6 * (double)n;
    const bench_row rows[] = {
        {.name = "exact", .run = both, .arg = &e, .work = rows_of, .unit = "M rows/s"},
        {.name = "favor", .run = both, .arg = &f, .work = rows_of, .unit = "M rows/s", .goal = goal},
        {.name = "none", .run = both, .arg = &none, .work = rows_of, .unit = "M rows/s"},
    };
    bench_compare(what, rows, 3);
    release(&e);
    release(&f);
    release(&none);
}

/* A row costs the same in a sequence 16 times as long. */
static void beside_a_shorter_one(int64_t shorter, int64_t longer, double goal)
{
    static job a;
    static job b;
    static job none;
    prepare(&a, "attn_favor", &positive, shorter);
    prepare(&b, "attn_favor", &positive, longer);
    prepare(&none, "attn_none", NULL, longer);
    forward(&a);
    forward(&b);
    char what[96];
    snprintf(what, sizeof what, "favor, %d rows beside %d", (int)longer, (int)shorter);
    char short_name[32];
    char long_name[32];
    snprintf(short_name, sizeof short_name, "%d rows", (int)shorter);
    snprintf(long_name, sizeof long_name, "%d rows", (int)longer);
    const bench_row rows[] = {
        {.name = short_name, .run = both, .arg = &a, .work = 1e-6 * (double)shorter, .unit = "M rows/s"},
        {.name = long_name, .run = both, .arg = &b, .work = 1e-6 * (double)longer, .unit = "M rows/s", .goal = goal},
        {.name = "none", .run = both, .arg = &none, .work = 1e-6 * (double)longer, .unit = "M rows/s"},
    };
    bench_compare(what, rows, 3);
    release(&a);
    release(&b);
    release(&none);
}

int main(int argc, char **argv)
{
    bench_start(argc, argv, "favor");
    make_operands();
    plain_a = bench_values(PLAIN * PLAIN_INNER, 1);
    plain_b = bench_values(PLAIN * PLAIN_INNER, 1);
    plain_c = bench_memory(PLAIN * PLAIN * sizeof(real));
    beside_products(353, 0);
    beside_products(512, 0);
    beside_products(2048, 0);
    beside_products(8192, 0.7);
    beside_other_kinds(512, 0);
    beside_other_kinds(2048, 0);
    beside_other_kinds(8192, 12); /* a sample of exact takes 4 s */
    beside_a_shorter_one(4096, 65536, 1 / 1.1);
    return bench_end();
}
