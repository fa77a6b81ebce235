/* Kernels of the first ops at 4,800 rows of 512, beside memcpy (bytes moved to and from memory, with nothing left in a
 * cache) and beside one plain product of the same shape. */
#include "autograd/ops.h"
#include "core/blas.h"
#include "tests/bench/bench.h"
#include "tests/bench/op_job.h"

enum { ROWS = 4800, WIDTH = 512, MOST_THREADS = 2 };

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

static void run_both(void *arg)
{
    run_forward(arg);
    run_backward(arg);
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
    const double eps = 1e-5;                                              /* layernorm's attributes */
    const ttn_activation forms[] = {TTN_ACT_GELU_ERF, TTN_ACT_GELU_TANH}; /* gelu's */

    job *add = prepare("add", NULL, (const ttn_desc[]){x, x}, 3, ROWS, MOST_THREADS);
    job *norm = prepare("layernorm", &eps, (const ttn_desc[]){x, vector, vector}, 7, ROWS, MOST_THREADS);
    job *frozen_norm = prepare("layernorm", &eps, (const ttn_desc[]){x, vector, vector}, 1, ROWS, MOST_THREADS);
    job *erf_gelu = prepare("gelu", &forms[0], (const ttn_desc[]){x}, 1, ROWS, MOST_THREADS);
    job *tanh_gelu = prepare("gelu", &forms[1], (const ttn_desc[]){x}, 1, ROWS, MOST_THREADS);
    job *linear = prepare("linear", NULL, (const ttn_desc[]){x, matrix, vector}, 7, ROWS, MOST_THREADS);
    job *rms = prepare("rmsnorm", &eps, (const ttn_desc[]){x, vector}, 3, ROWS, MOST_THREADS);
    job *relu = prepare("relu", NULL, (const ttn_desc[]){x}, 1, ROWS, MOST_THREADS);
    job *silu = prepare("silu", NULL, (const ttn_desc[]){x}, 1, ROWS, MOST_THREADS);
    enum { N_JOB = 9 };
    job *const jobs[N_JOB] = {add, norm, frozen_norm, erf_gelu, tanh_gelu, linear, rms, relu, silu};
    plain reference = {.to = bench_values(ttn_desc_numel(&x), 1),
                       .from = bench_values(ttn_desc_numel(&x), 1),
                       .weight = bench_values(ttn_desc_numel(&matrix), 1)};

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
            {.name = "layernorm, both",
             .run = run_both,
             .arg = norm,
             .work = 5 * value,
             .unit = "GB/s",
             .goal = goal * 0.667}, /* within 1.5 times of what its bytes need */
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
            {.name = "rmsnorm forward",
             .run = run_forward,
             .arg = rms,
             .work = 2 * value,
             .unit = "GB/s",
             .goal = goal * 0.7},
            {.name = "rmsnorm backward",
             .run = run_backward,
             .arg = rms,
             .work = 3 * value,
             .unit = "GB/s",
             .goal = goal * 0.5},
            {.name = "relu forward",
             .run = run_forward,
             .arg = relu,
             .work = 2 * value,
             .unit = "GB/s",
             .goal = goal * 0.9},
            {.name = "relu backward",
             .run = run_backward,
             .arg = relu,
             .work = 3 * value,
             .unit = "GB/s",
             .goal = goal * 0.9},
            {.name = "silu forward",
             .run = run_forward,
             .arg = silu,
             .work = 2 * value,
             .unit = "GB/s",
             .goal = goal * 0.6},
            {.name = "silu backward",
             .run = run_backward,
             .arg = silu,
             .work = 3 * value,
             .unit = "GB/s",
             .goal = goal * 0.6},
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
