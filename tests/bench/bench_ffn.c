/* The fused feed-forward op in its two forms beside the products that it consists of, issued as bare calls, and, without
 * a gate, beside the three ops that it replaces. */
#include "autograd/ops.h"
#include "core/blas.h"
#include "tests/bench/bench.h"
#include "tests/bench/op_job.h"

enum { ROWS = 1920, C = 512, F = 2048, MOST_THREADS = 2 };

/* ---- bare products ---- */

typedef struct {
    real *x, *z, *y, *up, *down, *dup, *ddown;
    int n_thread, gated;
} plain;

/* to = a op(b), the rows in one call for each thread. */
static void by_rows(const plain *p, ttn_trans tb, int64_t n, int64_t k, const real *a, const real *b, real *to)
{
#pragma omp parallel for num_threads(p->n_thread)
    for (int part = 0; part < p->n_thread; part++) {
        int64_t first;
        int64_t end;
        ttn_share(ROWS, part, p->n_thread, &first, &end);
        ttn_gemm(TTN_N, tb, end - first, n, k, 1, ttn_in(a + first * k, k), ttn_in(b, tb == TTN_T ? k : n), 0,
                 ttn_out(to + first * n, n));
    }
}

/* to (o, i) = dy^T x, the outputs in one call for each thread. */
static void by_outputs(const plain *p, int64_t o, int64_t i, const real *dy, const real *x, real *to)
{
#pragma omp parallel for num_threads(p->n_thread)
    for (int part = 0; part < p->n_thread; part++) {
        int64_t first;
        int64_t end;
        ttn_share(o, part, p->n_thread, &first, &end);
        ttn_gemm(TTN_T, TTN_N, end - first, i, ROWS, 1, ttn_in(dy + first, o), ttn_in(x, i), 0,
                 ttn_out(to + first * i, i));
    }
}

static void products_forward(void *arg)
{
    const plain *p = arg;
    for (int k = 0; k <= p->gated; k++)
        by_rows(p, TTN_T, F, C, p->x, p->up, p->z);
    by_rows(p, TTN_T, C, F, p->z, p->down, p->y);
}

static void products_backward(void *arg)
{
    const plain *p = arg;
    by_rows(p, TTN_N, F, C, p->y, p->down, p->z);
    by_outputs(p, C, F, p->y, p->z, p->ddown);
    for (int k = 0; k <= p->gated; k++) {
        by_rows(p, TTN_N, C, F, p->z, p->up, p->y);
        by_outputs(p, F, C, p->z, p->x, p->dup);
    }
}

/* ---- the ops that the fused one replaces ---- */

typedef struct {
    job *up, *act, *down;
} composed;

static void composed_forward(void *arg)
{
    const composed *m = arg;
    run_forward(m->up);
    run_forward(m->act);
    run_forward(m->down);
}

static void composed_backward(void *arg)
{
    const composed *m = arg;
    run_backward(m->down);
    run_backward(m->act);
    run_backward(m->up);
}

/* down reads what act writes, and so on. */
static void connect(composed *m)
{
    m->act->forward.in[0] = m->act->backward.in[0] = m->up->forward.out[0];
    m->down->forward.in[0] = m->down->backward.in[0] = m->act->forward.out[0];
    m->act->backward.dout[0] = m->down->backward.din[0];
    m->up->backward.dout[0] = m->act->backward.din[0];
}

/* The same call with aux 0 left out, for both passes. */
static job *lean_of(const job *kept)
{
    job *j = bench_memory(sizeof *j);
    *j = *kept;
    j->forward.sig = j->backward.sig = &j->sig;
    j->forward.feed = j->backward.feed = &j->feed;
    j->forward.on = j->backward.on = &j->on;
    j->forward.aux[0] = j->backward.aux[0] = NULL;
    return j;
}

int main(int argc, char **argv)
{
    bench_start(argc, argv, "ffn");
    ttn_error err = {0};
    if (ttn_blas_start(MOST_THREADS, NULL, &err) != TTN_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    const ttn_desc x = ttn_desc_of(TTN_REAL, TTN_ROWS, 2, ROWS, C, 0);
    const ttn_desc h = ttn_desc_of(TTN_REAL, TTN_ROWS, 2, ROWS, F, 0);
    const ttn_desc up = ttn_desc_of(TTN_REAL, TTN_FIXED, 2, F, C, 0);
    const ttn_desc down = ttn_desc_of(TTN_REAL, TTN_FIXED, 2, C, F, 0);
    const ttn_desc b1 = ttn_desc_of(TTN_REAL, TTN_FIXED, 1, F, 0, 0);
    const ttn_desc b2 = ttn_desc_of(TTN_REAL, TTN_FIXED, 1, C, 0, 0);
    const ttn_desc none = {.ndim = -1};
    const ttn_activation form = TTN_ACT_GELU_ERF;

    composed m = {.up = prepare("linear", NULL, (const ttn_desc[]){x, up, b1}, 7, ROWS, MOST_THREADS),
                  .act = prepare("gelu", &form, (const ttn_desc[]){h}, 1, ROWS, MOST_THREADS),
                  .down = prepare("linear", NULL, (const ttn_desc[]){h, down, b2}, 7, ROWS, MOST_THREADS)};
    connect(&m);

    for (int gated = 0; gated <= 1; gated++) {
        /* ffn's attributes */
        const ttn_activation act = gated ? TTN_ACT_SILU : TTN_ACT_GELU_ERF;
        job *kept = prepare("ffn", &act, (const ttn_desc[]){x, up, b1, down, b2, gated ? up : none, gated ? b1 : none},
                            127, ROWS, MOST_THREADS);
        job *lean = lean_of(kept);
        plain p = {.x = bench_values(ttn_desc_numel(&x), 1),
                   .z = bench_values(ttn_desc_numel(&h), 1),
                   .y = bench_values(ttn_desc_numel(&x), 1),
                   .up = bench_values(ttn_desc_numel(&up), 1),
                   .down = bench_values(ttn_desc_numel(&down), 1),
                   .dup = bench_values(ttn_desc_numel(&up), 1),
                   .ddown = bench_values(ttn_desc_numel(&down), 1),
                   .gated = gated};
        const double product = 2.0 * ROWS * C * F / 1e9;
        const double f = (gated ? 3 : 2) * product;
        const double b = (gated ? 6 : 4) * product;
        for (int n_thread = 1; n_thread <= MOST_THREADS; n_thread++) {
            p.n_thread = n_thread;
            enum { N_JOB = 5 };
            job *const jobs[N_JOB] = {kept, lean, m.up, m.act, m.down};
            for (int i = 0; i < N_JOB; i++)
                jobs[i]->on.n_thread = n_thread;
            run_forward(kept); /* forward writes what backward reads */
            composed_forward(&m);
            /* with all cores at work on a shared machine the slowest share decides: no goals there */
            const double goal = n_thread == 1;
            const bench_row forward[] = {
                {.name = "its products", .run = products_forward, .arg = &p, .work = f, .unit = "GF/s"},
                {.name = "kept", .run = run_forward, .arg = kept, .work = f, .unit = "GF/s", .goal = goal * 0.8},
                {.name = "lean", .run = run_forward, .arg = lean, .work = f, .unit = "GF/s", .goal = goal * 0.8},
            };
            const bench_row backward[] = {
                {.name = "its products", .run = products_backward, .arg = &p, .work = b, .unit = "GF/s"},
                {.name = "kept", .run = run_backward, .arg = kept, .work = b, .unit = "GF/s", .goal = goal * 0.8},
                {.name = "lean", .run = run_backward, .arg = lean, .work = b, .unit = "GF/s", .goal = goal * 0.6},
            };
            const bench_row against_ops[] = {
                {.name = "three ops", .run = composed_forward, .arg = &m, .work = f, .unit = "GF/s"},
                {.name = "kept", .run = run_forward, .arg = kept, .work = f, .unit = "GF/s", .goal = goal * 0.85},
                {.name = "lean", .run = run_forward, .arg = lean, .work = f, .unit = "GF/s", .goal = goal * 0.85},
            };
            const bench_row against_ops_backward[] = {
                {.name = "three ops", .run = composed_backward, .arg = &m, .work = b, .unit = "GF/s"},
                {.name = "kept", .run = run_backward, .arg = kept, .work = b, .unit = "GF/s", .goal = goal * 0.85},
            };
            const bench_row forms[] = {
                {.name = "kept", .run = run_forward, .arg = kept, .work = f, .unit = "GF/s"},
                {.name = "lean", .run = run_forward, .arg = lean, .work = f, .unit = "GF/s", .goal = goal * 0.97},
            };
            char what[64];
            snprintf(what, sizeof what, "%s forward, %d thread%s", gated ? "SwiGLU" : "gelu", n_thread,
                     n_thread > 1 ? "s" : "");
            bench_compare(what, forward, sizeof forward / sizeof *forward);
            if (!gated) bench_compare(what, against_ops, sizeof against_ops / sizeof *against_ops);
            bench_compare(what, forms, sizeof forms / sizeof *forms);
            snprintf(what, sizeof what, "%s backward, %d thread%s", gated ? "SwiGLU" : "gelu", n_thread,
                     n_thread > 1 ? "s" : "");
            bench_compare(what, backward, sizeof backward / sizeof *backward);
            if (!gated)
                bench_compare(what, against_ops_backward, sizeof against_ops_backward / sizeof *against_ops_backward);
        }
    }
    return bench_end();
}
