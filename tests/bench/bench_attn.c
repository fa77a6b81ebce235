/* Exact attention, forward and backward, beside its own products issued as bare calls (the same M, N and K, the same
 * number of them, operands as compact, as many threads) and beside one plain product a thread: what is lost to exp, to
 * copies and to waiting, and what to products with an inner dimension of 64. The kernel's name is in the heading. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/op.h"
#include "autograd/ops.h"
#include "core/blas.h"
#include "core/memory.h"
#include "tests/bench/bench.h"

enum { HEADS = 8, D = 64, WIDTH = HEADS * D, MOST_THREADS = 2, MOST_SEQS = 64, PLAIN = 1024, PLAIN_INNER = 512 };

typedef struct {
    int64_t n, n_seq; /* n_seq sequences of n rows */
    int n_thread;
    ttn_attn_exact_options attr;
    ttn_sig sig;
    ttn_span span[MOST_SEQS];
    ttn_feed feed;
    ttn_stream on;
    ttn_call forward, backward;
    real *tile[MOST_THREADS][2]; /* two tiles of weights a thread */
    real *operand[4];            /* (rows, D) compact: as if of one head */
    real *sum[MOST_THREADS][3];  /* the same, for each thread */
} job;

static void prepare(job *j, int64_t n, int64_t n_seq, int n_thread)
{
    *j = (job){.n = n, .n_seq = n_seq, .n_thread = n_thread, .attr = {.heads = HEADS}, .on = {.n_thread = n_thread}};
    const int64_t step = (n + 11) / 12 * 12;
    const int64_t rows = (step * n_seq + 479) / 480 * 480;
    for (int64_t s = 0; s < n_seq; s++)
        j->span[s] = (ttn_span){s * step, n};
    j->feed = (ttn_feed){.used = {.rows = rows, .seqs = n_seq}, .span = j->span};
    j->sig = (ttn_sig){.attr = &j->attr, .cap = {.rows = rows, .seqs = n_seq}, .n_in = 3};
    for (int i = 0; i < 3; i++)
        j->sig.in[i] = ttn_desc_of(TTN_REAL, TTN_ROWS, 2, rows, WIDTH, 0);
    ttn_error err = {0};
    if (ttn_op_attn_exact.shape(&j->sig, &err) != TTN_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    size_t work = 0;
    for (int pass = 0; pass < 2; pass++) {
        const size_t bytes = ttn_work_align(j->sig.work[pass]) + n_thread * ttn_work_align(j->sig.work_thread[pass]);
        work = bytes > work ? bytes : work;
    }
    ttn_call c = {.sig = &j->sig, .feed = &j->feed, .on = &j->on, .work = bench_memory(work)};
    for (int i = 0; i < 3; i++)
        c.in[i] = bench_values(rows * WIDTH, 1);
    c.out[0] = bench_memory((size_t)(rows * WIDTH) * sizeof(real));
    c.aux[0] = bench_memory((size_t)(rows * HEADS) * sizeof(real));
    j->forward = c;
    c.dout[0] = bench_values(rows * WIDTH, 1);
    for (int i = 0; i < 3; i++)
        c.din[i] = bench_memory((size_t)(rows * WIDTH) * sizeof(real));
    j->backward = c;
    for (int t = 0; t < n_thread; t++)
        for (int i = 0; i < 2; i++)
            j->tile[t][i] = bench_values(192 * 192, 1);
    for (int i = 0; i < 4; i++)
        j->operand[i] = bench_values((n + n / 8 + 24) * D, 1);
    for (int t = 0; t < n_thread; t++)
        for (int i = 0; i < 3; i++)
            j->sum[t][i] = bench_memory((size_t)((n + n / 8 + 24) * D) * sizeof(real));
}

static void release(job *j)
{
    for (int i = 0; i < 3; i++) {
        ttn_free((void *)j->forward.in[i]);
        ttn_free(j->backward.din[i]);
    }
    for (int i = 0; i < 4; i++)
        ttn_free(j->operand[i]);
    for (int t = 0; t < j->n_thread; t++) {
        for (int i = 0; i < 2; i++)
            ttn_free(j->tile[t][i]);
        for (int i = 0; i < 3; i++)
            ttn_free(j->sum[t][i]);
    }
    ttn_free(j->forward.work);
    ttn_free(j->forward.out[0]);
    ttn_free(j->forward.aux[0]);
    ttn_free((void *)j->backward.dout[0]);
}

static void forward(void *arg)
{
    job *j = arg;
    if (ttn_op_attn_exact.cpu.forward(&j->forward, NULL) != TTN_OK) exit(1);
}

static void backward(void *arg)
{
    job *j = arg;
    if (ttn_op_attn_exact.cpu.backward(&j->backward, NULL) != TTN_OK) exit(1);
}

static void both(void *arg)
{
    forward(arg);
    backward(arg);
}

/* The products that the op makes, tile by tile: for every pair of tiles of every sequence and head. */
static void bare(const job *j, int passes)
{
    const int64_t T = (j->n + 191) / 192;
    const int64_t h = ((j->n + T - 1) / T + 23) / 24 * 24;
    /* sums of so many products of random numbers stay finite */
    for (int t = 0; t < j->n_thread; t++)
        for (int i = 0; i < 3; i++)
            memset(j->sum[t][i], 0, (size_t)(T * h * D) * sizeof(real));
#pragma omp parallel for num_threads(j->n_thread) schedule(dynamic)
    for (int64_t task = 0; task < j->n_seq * HEADS * T; task++) {
        const int64_t q = task % T * h * D;
        real *const *tile = j->tile[omp_get_thread_num()];
        real *const *sum = j->sum[omp_get_thread_num()];
        for (int64_t key = 0; key < T; key++) {
            const int64_t k = key * h * D;
            if (passes & TTN_BIT(TTN_FORWARD)) {
                ttn_gemm(TTN_N, TTN_T, h, h, D, 0.125, ttn_in(j->operand[0] + q, D), ttn_in(j->operand[1] + k, D), 0,
                         ttn_out(tile[0], h));
                ttn_gemm(TTN_N, TTN_N, h, D, h, 1, ttn_in(tile[0], h), ttn_in(j->operand[2] + k, D), 1,
                         ttn_out(sum[0] + q, D));
            }
            if (!(passes & TTN_BIT(TTN_BACKWARD))) continue;
            ttn_gemm(TTN_N, TTN_T, h, h, D, 0.125, ttn_in(j->operand[0] + q, D), ttn_in(j->operand[1] + k, D), 0,
                     ttn_out(tile[0], h));
            ttn_gemm(TTN_N, TTN_T, h, h, D, 1, ttn_in(j->operand[3] + q, D), ttn_in(j->operand[2] + k, D), 0,
                     ttn_out(tile[1], h));
            ttn_gemm(TTN_T, TTN_N, h, D, h, 1, ttn_in(tile[0], h), ttn_in(j->operand[3] + q, D), 1,
                     ttn_out(sum[0] + k, D));
            ttn_gemm(TTN_T, TTN_N, h, D, h, 1, ttn_in(tile[1], h), ttn_in(j->operand[0] + q, D), 1,
                     ttn_out(sum[1] + k, D));
            ttn_gemm(TTN_N, TTN_N, h, D, h, 1, ttn_in(tile[1], h), ttn_in(j->operand[1] + k, D), 1,
                     ttn_out(sum[2] + q, D));
        }
    }
}

static void bare_forward(void *arg)
{
    bare(arg, TTN_BIT(TTN_FORWARD));
}

static void bare_backward(void *arg)
{
    bare(arg, TTN_BIT(TTN_BACKWARD));
}

static void bare_both(void *arg)
{
    bare(arg, TTN_BIT(TTN_FORWARD) | TTN_BIT(TTN_BACKWARD));
}

static real *plain_a, *plain_b, *plain_c[MOST_THREADS];

static void plain(void *arg)
{
    const job *j = arg;
#pragma omp parallel for num_threads(j->n_thread)
    for (int t = 0; t < j->n_thread; t++)
        ttn_gemm(TTN_N, TTN_T, PLAIN, PLAIN, PLAIN_INNER, 1, ttn_in(plain_a, PLAIN_INNER), ttn_in(plain_b, PLAIN_INNER),
                 0, ttn_out(plain_c[t], PLAIN));
}

static void compare(int64_t n, int64_t n_seq, int n_thread, double goal)
{
    static job j;
    prepare(&j, n, n_seq, n_thread);
    forward(&j);
    const double product = 2e-9 * (double)n_seq * (double)n * (double)n * WIDTH;
    const double plain_work = 2e-9 * n_thread * PLAIN * PLAIN * PLAIN_INNER;
    char what[96];
    snprintf(what, sizeof what, "%d x %d rows, H %d, D %d, %d thread%s", (int)n_seq, (int)n, HEADS, D, n_thread,
             n_thread > 1 ? "s" : "");
    const bench_row rows[] = {
        {.name = "its products, bare", .run = bare_both, .arg = &j, .work = 7 * product, .unit = "GF/s"},
        {.name = "forward + backward", .run = both, .arg = &j, .work = 7 * product, .unit = "GF/s", .goal = goal},
        {.name = "one plain product", .run = plain, .arg = &j, .work = plain_work, .unit = "GF/s"},
    };
    bench_compare(what, rows, 3);
    if (n <= 2048) {
        const bench_row parts[] = {
            {.name = "forward's products", .run = bare_forward, .arg = &j, .work = 2 * product, .unit = "GF/s"},
            {.name = "forward", .run = forward, .arg = &j, .work = 2 * product, .unit = "GF/s"},
            {.name = "backward's products", .run = bare_backward, .arg = &j, .work = 5 * product, .unit = "GF/s"},
            {.name = "backward", .run = backward, .arg = &j, .work = 5 * product, .unit = "GF/s"},
        };
        bench_compare(what, parts, 4);
    }
    release(&j);
}

int main(int argc, char **argv)
{
    bench_start(argc, argv, "attn");
    ttn_error err = {0};
    if (ttn_blas_start(MOST_THREADS, NULL, &err) != TTN_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    plain_a = bench_values(PLAIN * PLAIN_INNER, 1);
    plain_b = bench_values(PLAIN * PLAIN_INNER, 1);
    for (int t = 0; t < MOST_THREADS; t++)
        plain_c[t] = bench_memory(PLAIN * PLAIN * sizeof(real));
    /* with all cores at work on a shared machine the slowest share decides: no goals on two threads */
    compare(512, 1, 1, 0);
    compare(353, 8, 1, 0); /* a batch of proteins of usual length; what fills up tiles counts as lost */
    compare(2048, 1, 1, 0.7);
    compare(2048, 1, 2, 0.7);
    compare(4096, 1, 2, 0.7);
    compare(8192, 1, 2, 0.7); /* a sample takes 4 s and more */
    return bench_end();
}
