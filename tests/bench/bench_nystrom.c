/* Nystrom attention, forward and backward, beside exact attention and none (attention that looks at itself: what is left is
 * reading and writing), and beside its own products issued as bare calls (the same M, N and K, as many of them, operands as
 * compact, as many threads): what is lost to exp, to copies and to waiting. Then what a token costs as sequences grow, how
 * much memory there is beyond inputs and outputs, from which length it pays, and the attention that the papers compared
 * with: all n x n weights in memory. f32, one sequence, H 8, D 64. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/attn_tiles.h"
#include "autograd/op.h"
#include "autograd/ops.h"
#include "core/blas.h"
#include "core/memory.h"
#include "core/vec.h"
#include "tests/bench/bench.h"

enum { HEADS = 8, D = 64, WIDTH = HEADS * D, MOST_THREADS = 2, STEPS = 8 };

/* ---- an attention op on one sequence ---- */

typedef struct {
    const ttn_op *op;
    union {
        ttn_attn_exact_options exact;
        ttn_attn_nystrom_options nystrom;
    } attr;
    int64_t n, m;
    int n_thread;
    ttn_sig sig;
    ttn_span span;
    ttn_feed feed;
    ttn_stream on;
    ttn_call forward, backward;
} job;

static size_t scratch_of(const job *j, ttn_pass pass)
{
    return ttn_work_align(j->sig.work[pass]) + (size_t)j->n_thread * ttn_work_align(j->sig.work_thread[pass]);
}

/* m: landmarks; 0: exact; -1: none. */
static void prepare(job *j, int64_t n, int64_t m, int n_thread)
{
    const int64_t rows = (n + 479) / 480 * 480;
    *j = (job){.op = ttn_op_find(m > 0    ? "attn_nystrom"
                                 : m == 0 ? "attn_exact"
                                          : "attn_none"),
               .n = n,
               .m = m,
               .n_thread = n_thread,
               .span = {0, n},
               .on = {.n_thread = n_thread}};
    if (m > 0)
        j->attr.nystrom = (ttn_attn_nystrom_options){.heads = HEADS, .landmarks = m, .iterations = STEPS};
    else
        j->attr.exact = (ttn_attn_exact_options){.heads = HEADS};
    j->feed = (ttn_feed){.used = {.rows = n, .seqs = 1}, .span = &j->span};
    j->sig = (ttn_sig){.attr = &j->attr, .cap = {.rows = rows, .seqs = 1}, .n_in = 3};
    for (int i = 0; i < 3; i++)
        j->sig.in[i] = ttn_desc_of(TTN_REAL, TTN_ROWS, 2, rows, WIDTH, 0);
    j->sig.in[3].ndim = -1;
    ttn_error err = {0};
    if (j->op->shape(&j->sig, &err) != TTN_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    const size_t work[2] = {scratch_of(j, TTN_FORWARD), scratch_of(j, TTN_BACKWARD)};
    ttn_call c = {
        .sig = &j->sig, .feed = &j->feed, .on = &j->on, .work = bench_memory(work[0] > work[1] ? work[0] : work[1])};
    for (int i = 0; i < 3; i++)
        c.in[i] = bench_values(rows * WIDTH, 1);
    c.out[0] = bench_memory((size_t)(rows * WIDTH) * sizeof(real));
    for (int a = 0; a < j->sig.n_aux; a++)
        c.aux[a] = bench_memory(ttn_desc_bytes(&j->sig.aux[a]));
    c.stat = bench_memory((size_t)(j->sig.n_stat + 1) * sizeof *c.stat);
    j->forward = c;
    c.dout[0] = bench_values(rows * WIDTH, 1);
    for (int i = 0; i < 3; i++)
        c.din[i] = bench_memory((size_t)(rows * WIDTH) * sizeof(real));
    j->backward = c;
}

static void release(job *j)
{
    for (int i = 0; i < 3; i++) {
        ttn_free((void *)j->forward.in[i]);
        ttn_free(j->backward.din[i]);
    }
    ttn_free((void *)j->backward.dout[0]);
    ttn_free(j->forward.out[0]);
    for (int a = 0; a < j->sig.n_aux; a++)
        ttn_free(j->forward.aux[a]);
    ttn_free(j->forward.stat);
    ttn_free(j->forward.work);
}

static void both(void *arg)
{
    job *j = arg;
    if (j->op->cpu.forward(&j->forward, NULL) != TTN_OK) exit(1);
    if (j->op->cpu.backward(&j->backward, NULL) != TTN_OK) exit(1);
}

/* ---- the products of Nystrom attention, bare ---- */

typedef struct {
    job *j;
    real *rows, *of_landmarks;                    /* (n, D), (m, D) */
    real *weights[MOST_THREADS][2];               /* (tile, m) */
    real *tile[MOST_THREADS], *sum[MOST_THREADS]; /* (tile, D), (m, D) */
    real *square[MOST_THREADS][3];                /* (m, m) */
} bare;

static void prepare_bare(bare *b, job *j)
{
    *b = (bare){
        .j = j, .rows = bench_values((j->n + TTN_ATTN_MOST_TILE) * D, 1), .of_landmarks = bench_values(j->m * D, 1)};
    for (int t = 0; t < j->n_thread; t++) {
        b->tile[t] = bench_values(TTN_ATTN_MOST_TILE * D, 1);
        b->sum[t] = bench_values(j->m * D, 1);
        for (int i = 0; i < 2; i++)
            b->weights[t][i] = bench_values(TTN_ATTN_MOST_TILE * j->m, 1);
        for (int i = 0; i < 3; i++)
            b->square[t][i] = bench_values(j->m * j->m, 1);
    }
}

static void release_bare(bare *b)
{
    ttn_free(b->rows);
    ttn_free(b->of_landmarks);
    for (int t = 0; t < b->j->n_thread; t++) {
        ttn_free(b->tile[t]);
        ttn_free(b->sum[t]);
        for (int i = 0; i < 2; i++)
            ttn_free(b->weights[t][i]);
        for (int i = 0; i < 3; i++)
            ttn_free(b->square[t][i]);
    }
}

/* Of one tile, both passes: six give weights or their gradients, four rows, four sums over rows. */
static void bare_tile(const bare *b, int64_t k, int64_t h)
{
    const int64_t m = b->j->m;
    const int t = omp_get_thread_num();
    const real *rows = b->rows + k * h * D;
    for (int i = 0; i < 6; i++)
        ttn_gemm(TTN_N, TTN_T, h, m, D, 0.125, ttn_in(rows, D), ttn_in(b->of_landmarks, D), 0,
                 ttn_out(b->weights[t][i % 2], m));
    for (int i = 0; i < 4; i++)
        ttn_gemm(TTN_N, TTN_N, h, D, m, 1, ttn_in(b->weights[t][i % 2], m), ttn_in(b->of_landmarks, D), 0,
                 ttn_out(b->tile[t], D));
    for (int i = 0; i < 4; i++)
        ttn_gemm(TTN_T, TTN_N, m, D, h, 1, ttn_in(b->weights[t][i % 2], m), ttn_in(rows, D), i == 0 ? 0 : 1,
                 ttn_out(b->sum[t], D));
}

/* Of one inverse: 3 products a step forward, 5 to make it again, 6 back, and two for the residual. */
static void bare_inverse(const bare *b)
{
    const int64_t m = b->j->m;
    real *const *square = b->square[omp_get_thread_num()];
    for (int i = 0; i < 14 * STEPS + 2; i++)
        ttn_gemm(i % 3 == 1 ? TTN_T : TTN_N, i % 3 == 2 ? TTN_T : TTN_N, m, m, m, 1, ttn_in(square[0], m),
                 ttn_in(square[1], m), 0, ttn_out(square[2], m));
}

static double products(const job *j)
{
    const double rows = 14 * 2.0 * (double)j->n * (double)j->m * D;
    const double inverse = (14 * STEPS + 2) * 2.0 * (double)j->m * (double)j->m * (double)j->m;
    return 1e-9 * HEADS * (rows + inverse);
}

static void all_bare(void *arg)
{
    const bare *b = arg;
    const int64_t T = ttn_attn_tiles_of(b->j->n);
    const int64_t h = ttn_attn_height_of(b->j->n);
#pragma omp parallel for num_threads(b->j->n_thread) schedule(dynamic)
    for (int64_t task = 0; task < HEADS * (T + 1); task++) {
        if (task < HEADS)
            bare_inverse(b);
        else
            bare_tile(b, (task - HEADS) % T, h);
    }
}

enum { PLAIN = 1024, PLAIN_INNER = 512 };
static real *plain_a, *plain_b, *plain_c[MOST_THREADS];

static void plain(void *arg)
{
    const job *j = arg;
#pragma omp parallel for num_threads(j->n_thread)
    for (int t = 0; t < j->n_thread; t++)
        ttn_gemm(TTN_N, TTN_T, PLAIN, PLAIN, PLAIN_INNER, 1, ttn_in(plain_a, PLAIN_INNER), ttn_in(plain_b, PLAIN_INNER),
                 0, ttn_out(plain_c[t], PLAIN));
}

static void beside_products(int64_t n, int64_t m, int n_thread, double goal)
{
    static job j;
    static bare b;
    prepare(&j, n, m, n_thread);
    prepare_bare(&b, &j);
    const bench_row rows[] = {
        {.name = "its products, bare", .run = all_bare, .arg = &b, .work = products(&j), .unit = "GF/s"},
        {.name = "forward + backward", .run = both, .arg = &j, .work = products(&j), .unit = "GF/s", .goal = goal},
        {.name = "one plain product",
         .run = plain,
         .arg = &j,
         .work = 2e-9 * n_thread * PLAIN * PLAIN * PLAIN_INNER,
         .unit = "GF/s"},
    };
    char what[96];
    snprintf(what, sizeof what, "products, n %d, m %d, %d thread%s", (int)n, (int)m, n_thread, n_thread > 1 ? "s" : "");
    bench_compare(what, rows, 3);
    release_bare(&b);
    release(&j);
}

/* ---- beside other kinds ---- */

static void beside_exact(int64_t n, int n_thread, double goal_64, double goal_256)
{
    static job j[4];
    prepare(&j[0], n, 0, n_thread);
    prepare(&j[1], n, 64, n_thread);
    prepare(&j[2], n, 256, n_thread);
    prepare(&j[3], n, -1, n_thread);
    const double tokens = 1e-3 * (double)n;
    const bench_row rows[] = {
        {.name = "exact", .run = both, .arg = &j[0], .work = tokens, .unit = "k/s"},
        {.name = "nystrom, m 64", .run = both, .arg = &j[1], .work = tokens, .unit = "k/s", .goal = goal_64},
        {.name = "nystrom, m 256", .run = both, .arg = &j[2], .work = tokens, .unit = "k/s", .goal = goal_256},
        {.name = "none", .run = both, .arg = &j[3], .work = tokens, .unit = "k/s"},
    };
    char what[96];
    snprintf(what, sizeof what, "kinds, n %d, %d thread%s", (int)n, n_thread, n_thread > 1 ? "s" : "");
    bench_compare(what, rows, 4);
    for (int i = 0; i < 4; i++)
        release(&j[i]);
}

/* The rate at the longest is to be at least 1 / 1.1 of that at 4,096. */
static void as_it_grows(int64_t m, int n_thread)
{
    static const int64_t n[] = {4096, 512, 2048, 16384, 65536};
    enum { N = sizeof n / sizeof *n };
    static job j[N];
    bench_row rows[N];
    char name[N][24];
    for (int i = 0; i < N; i++) {
        prepare(&j[i], n[i], m, n_thread);
        snprintf(name[i], sizeof name[i], "n %d", (int)n[i]);
        rows[i] = (bench_row){.name = name[i],
                              .run = both,
                              .arg = &j[i],
                              .work = 1e-3 * (double)n[i],
                              .unit = "k/s",
                              .goal = n[i] > 4096 ? 1 / 1.1 : 0};
    }
    char what[96];
    snprintf(what, sizeof what, "tokens, m %d, %d thread%s", (int)m, n_thread, n_thread > 1 ? "s" : "");
    bench_compare(what, rows, N);
    for (int i = 0; i < N; i++) {
        size_t more = scratch_of(&j[i], TTN_BACKWARD);
        for (int a = 0; a < j[i].sig.n_aux; a++)
            more += ttn_desc_bytes(&j[i].sig.aux[a]);
        const double of = 8.0 * (double)ttn_desc_bytes(&j[i].sig.out[0]); /* q, k, v, out, dout, dq, dk, dv */
        bench_note("  n %d: %.1f MB beyond inputs and outputs, %.1f %% of theirs", (int)n[i], (double)more / 1e6,
                   100 * (double)more / of);
        release(&j[i]);
    }
}

/* ---- what the papers compared with ---- */

typedef struct {
    job *exact;
    real *p, *e; /* (n, n) */
} stored;

/* One head after the other, products straight from (N, H D), on one thread. */
static void stored_both(void *arg)
{
    const stored *s = arg;
    const ttn_call *c = &s->exact->backward;
    const int64_t n = s->exact->n;
    for (int64_t h = 0; h < HEADS; h++) {
        const real *q = (const real *)c->in[0] + h * D;
        const real *k = (const real *)c->in[1] + h * D;
        const real *v = (const real *)c->in[2] + h * D;
        const real *g = (const real *)c->dout[0] + h * D;
        ttn_gemm(TTN_N, TTN_T, n, n, D, 0.125, ttn_in(q, WIDTH), ttn_in(k, WIDTH), 0, ttn_out(s->p, n));
        ttn_vec_exp(n * n, s->p, s->p);
        for (int64_t i = 0; i < n; i++) {
            real *row = s->p + i * n;
            real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int64_t t = 0; t < n; t++)
                sum += row[t];
            for (int64_t t = 0; t < n; t++)
                row[t] /= sum;
        }
        ttn_gemm(TTN_N, TTN_N, n, D, n, 1, ttn_in(s->p, n), ttn_in(v, WIDTH), 0,
                 ttn_out((real *)c->out[0] + h * D, WIDTH));
        ttn_gemm(TTN_N, TTN_T, n, n, D, 1, ttn_in(g, WIDTH), ttn_in(v, WIDTH), 0, ttn_out(s->e, n));
        ttn_gemm(TTN_T, TTN_N, n, D, n, 1, ttn_in(s->p, n), ttn_in(g, WIDTH), 0,
                 ttn_out((real *)c->din[2] + h * D, WIDTH));
        for (int64_t i = 0; i < n; i++) {
            const real *p = s->p + i * n;
            real *e = s->e + i * n;
            real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int64_t t = 0; t < n; t++)
                sum += p[t] * e[t];
            for (int64_t t = 0; t < n; t++)
                e[t] = p[t] * (e[t] - sum);
        }
        ttn_gemm(TTN_N, TTN_N, n, D, n, 0.125, ttn_in(s->e, n), ttn_in(k, WIDTH), 0,
                 ttn_out((real *)c->din[0] + h * D, WIDTH));
        ttn_gemm(TTN_T, TTN_N, n, D, n, 0.125, ttn_in(s->e, n), ttn_in(q, WIDTH), 0,
                 ttn_out((real *)c->din[1] + h * D, WIDTH));
    }
}

static void beside_stored(int64_t n)
{
    static job exact;
    static job nystrom;
    prepare(&exact, n, 0, 1);
    prepare(&nystrom, n, 64, 1);
    stored s = {.exact = &exact,
                .p = bench_memory((size_t)(n * n) * sizeof(real)),
                .e = bench_memory((size_t)(n * n) * sizeof(real))};
    const double tokens = 1e-3 * (double)n;
    const bench_row rows[] = {
        {.name = "exact, n x n stored", .run = stored_both, .arg = &s, .work = tokens, .unit = "k/s"},
        {.name = "exact by tiles", .run = both, .arg = &exact, .work = tokens, .unit = "k/s"},
        {.name = "nystrom, m 64", .run = both, .arg = &nystrom, .work = tokens, .unit = "k/s"},
    };
    char what[96];
    snprintf(what, sizeof what, "stored, n %d, 1 thread", (int)n);
    bench_compare(what, rows, 3);
    ttn_free(s.p);
    ttn_free(s.e);
    release(&exact);
    release(&nystrom);
}

int main(int argc, char **argv)
{
    bench_start(argc, argv, "nystrom");
    plain_a = bench_values(PLAIN * PLAIN_INNER, 1);
    plain_b = bench_values(PLAIN * PLAIN_INNER, 1);
    for (int t = 0; t < MOST_THREADS; t++)
        plain_c[t] = bench_memory(PLAIN * PLAIN * sizeof(real));
    beside_products(8192, 256, 1, 0.7);
    beside_products(32768, 256, 1, 0.7);
    beside_products(8192, 64, 1, 0);
    beside_products(8192, 256, 2,
                    0); /* with all cores at work on a shared machine the slowest share decides: no goal */
    beside_exact(512, 1, 0, 0);
    beside_exact(1024, 1, 0, 0);
    beside_exact(2048, 1, 0, 0);
    beside_exact(8192, 1, 25, 8); /* a sample takes 4 s and more */
    as_it_grows(64, 1);
    as_it_grows(256, 1);
    beside_stored(4096);
    return bench_end();
}
