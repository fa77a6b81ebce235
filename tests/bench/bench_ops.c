/* Kernels of the first ops at 4,800 rows of 512, beside memcpy (bytes moved to and from memory, with nothing left in a
 * cache) and beside one plain product of the same shape. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/op.h"
#include "autograd/ops.h"
#include "core/blas.h"
#include "core/memory.h"
#include "tests/bench/bench.h"

enum { ROWS = 4800, WIDTH = 512, MOST_THREADS = 2 };

typedef struct {
    const ttn_op *op;
    ttn_sig sig;
    ttn_feed feed;
    ttn_stream on;
    ttn_call forward, backward;
} job;

static void *memory(size_t bytes)
{
    void *p = ttn_alloc(bytes);
    if (p) return p;
    fprintf(stderr, "out of memory\n");
    exit(1);
}

static void *random_values(const ttn_desc *d)
{
    const int64_t n = ttn_desc_numel(d);
    real *x = memory(ttn_desc_bytes(d));
    uint64_t state = 1;
    for (int64_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        x[i] = (real)((double)(state >> 11) * 0x1p-52 - 1);
    }
    return x;
}

/* The whole call, set up once; gradients of the inputs in `wanted`. Lives until the program ends. */
static job *prepare(const char *name, const void *attr, const ttn_desc *in, uint32_t wanted)
{
    job *j = memory(sizeof *j);
    j->op = ttn_op_find(name);
    if (!j->op) exit(1);
    j->sig = (ttn_sig){.attr = attr, .cap = {.rows = ROWS}, .n_in = j->op->n_in};
    memcpy(j->sig.in, in, (size_t)j->op->n_in * sizeof *in);
    ttn_error err = {0};
    if (j->op->shape(&j->sig, &err) != TTN_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    j->feed = (ttn_feed){.used = {.rows = ROWS}};
    ttn_call c = {.sig = &j->sig, .feed = &j->feed, .on = &j->on};
    const size_t work = j->sig.work[0] > j->sig.work[1] ? j->sig.work[0] : j->sig.work[1];
    c.work = memory(work);
    for (int i = 0; i < j->op->n_in; i++)
        c.in[i] = random_values(&in[i]);
    for (int a = 0; a < j->sig.n_aux; a++)
        c.aux[a] = memory(ttn_desc_bytes(&j->sig.aux[a]));
    c.out[0] = memory(ttn_desc_bytes(&j->sig.out[0]));
    c.stat = memory((size_t)(j->sig.n_stat + 1) * sizeof *c.stat);
    j->forward = c;
    c.dout[0] = random_values(&j->sig.out[0]);
    for (int i = 0; i < j->op->n_in; i++)
        if (wanted & TTN_BIT(i)) c.din[i] = memory(ttn_desc_bytes(&in[i]));
    j->backward = c;
    return j;
}

static void run_forward(void *arg)
{
    job *j = arg;
    if (j->op->cpu.forward(&j->forward, NULL) != TTN_OK) exit(1);
}

static void run_backward(void *arg)
{
    job *j = arg;
    if (j->op->cpu.backward(&j->backward, NULL) != TTN_OK) exit(1);
}

/* ---- references: on as many threads ---- */

typedef struct {
    real *to, *from, *weight;
    int n_thread;
} plain;

static void copy(void *arg)
{
    const plain *p = arg;
#pragma omp parallel for num_threads(p->n_thread)
    for (int64_t t = 0; t < ROWS; t++)
        memcpy(p->to + t * WIDTH, p->from + t * WIDTH, WIDTH * sizeof(real));
}

/* One call for each thread. */
static void product(void *arg)
{
    const plain *p = arg;
#pragma omp parallel for num_threads(p->n_thread)
    for (int part = 0; part < p->n_thread; part++) {
        int64_t first;
        int64_t end;
        ttn_share(ROWS, part, p->n_thread, &first, &end);
        ttn_gemm(TTN_N, TTN_T, end - first, WIDTH, WIDTH, 1, ttn_in(p->from + first * WIDTH, WIDTH),
                 ttn_in(p->weight, WIDTH), 0, ttn_out(p->to + first * WIDTH, WIDTH));
    }
}

int main(int argc, char **argv)
{
    bench_start(argc, argv, "ops");
    ttn_error err = {0};
    if (ttn_blas_start(MOST_THREADS, NULL, &err) != TTN_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    const ttn_desc x = ttn_desc_of(TTN_REAL, TTN_ROWS, 2, ROWS, WIDTH, 0);
    const ttn_desc vector = ttn_desc_of(TTN_REAL, TTN_FIXED, 1, WIDTH, 0, 0);
    const ttn_desc matrix = ttn_desc_of(TTN_REAL, TTN_FIXED, 2, WIDTH, WIDTH, 0);
    const double eps = 1e-5;                                     /* layernorm's attributes */
    const ttn_gelu_form forms[] = {TTN_GELU_ERF, TTN_GELU_TANH}; /* gelu's */

    job *add = prepare("add", NULL, (const ttn_desc[]){x, x}, 3);
    job *norm = prepare("layernorm", &eps, (const ttn_desc[]){x, vector, vector}, 7);
    job *frozen_norm = prepare("layernorm", &eps, (const ttn_desc[]){x, vector, vector}, 1);
    job *erf_gelu = prepare("gelu", &forms[0], (const ttn_desc[]){x}, 1);
    job *tanh_gelu = prepare("gelu", &forms[1], (const ttn_desc[]){x}, 1);
    job *linear = prepare("linear", NULL, (const ttn_desc[]){x, matrix, vector}, 7);
    enum { N_JOB = 6 };
    job *const jobs[N_JOB] = {add, norm, frozen_norm, erf_gelu, tanh_gelu, linear};
    plain reference = {.to = random_values(&x), .from = random_values(&x), .weight = random_values(&matrix)};

    /* forward writes what backward reads */
    for (int i = 0; i < N_JOB; i++) {
        jobs[i]->on.n_thread = 1;
        run_forward(jobs[i]);
    }
    const double value = (double)ROWS * WIDTH * sizeof(real) / 1e9; /* GB of one (N, C) */
    const double flops = 2.0 * ROWS * WIDTH * WIDTH / 1e9;
    for (int n_thread = 1; n_thread <= MOST_THREADS; n_thread++) {
        for (int i = 0; i < N_JOB; i++)
            jobs[i]->on.n_thread = n_thread;
        reference.n_thread = n_thread;
        /* with all cores at work on a shared machine the slowest share decides: no goals there */
        const double goal = n_thread == 1;
        const bench_row moved[] = {
            {.name = "memcpy", .run = copy, .arg = &reference, .work = 2 * value, .unit = "GB/s"},
            {.name = "add forward",
             .run = run_forward,
             .arg = add,
             .work = 3 * value,
             .unit = "GB/s",
             .goal = goal * 0.9},
            {.name = "add backward, both",
             .run = run_backward,
             .arg = add,
             .work = 4 * value,
             .unit = "GB/s",
             .goal = goal * 0.9},
            {.name = "layernorm forward",
             .run = run_forward,
             .arg = norm,
             .work = 2 * value,
             .unit = "GB/s",
             .goal = goal * 0.6},
            {.name = "layernorm backward",
             .run = run_backward,
             .arg = norm,
             .work = 3 * value,
             .unit = "GB/s",
             .goal = goal * 0.5},
            {.name = "layernorm backward, dx",
             .run = run_backward,
             .arg = frozen_norm,
             .work = 3 * value,
             .unit = "GB/s",
             .goal = goal * 0.7},
            {.name = "gelu erf forward",
             .run = run_forward,
             .arg = erf_gelu,
             .work = 2 * value,
             .unit = "GB/s",
             .goal = goal * 0.5},
            {.name = "gelu erf backward",
             .run = run_backward,
             .arg = erf_gelu,
             .work = 3 * value,
             .unit = "GB/s",
             .goal = goal * 0.5},
            {.name = "gelu tanh forward",
             .run = run_forward,
             .arg = tanh_gelu,
             .work = 2 * value,
             .unit = "GB/s",
             .goal = goal * 0.6},
            {.name = "gelu tanh backward",
             .run = run_backward,
             .arg = tanh_gelu,
             .work = 3 * value,
             .unit = "GB/s",
             .goal = goal * 0.5},
        };
        const bench_row multiplied[] = {
            {.name = "plain product", .run = product, .arg = &reference, .work = flops, .unit = "GF/s"},
            {.name = "linear forward",
             .run = run_forward,
             .arg = linear,
             .work = flops,
             .unit = "GF/s",
             .goal = goal * 0.9},
            {.name = "linear backward",
             .run = run_backward,
             .arg = linear,
             .work = 2 * flops,
             .unit = "GF/s",
             .goal = goal * 0.85},
        };
        char what[64];
        snprintf(what, sizeof what, "%d x %d, %d thread%s", ROWS, WIDTH, n_thread, n_thread > 1 ? "s" : "");
        bench_compare(what, moved, sizeof moved / sizeof *moved);
        bench_compare(what, multiplied, sizeof multiplied / sizeof *multiplied);
    }
    return bench_end();
}
