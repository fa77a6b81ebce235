/* Cross-entropy at 33 and 1,024 classes and pooling, in bytes moved to and from memory beside memcpy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/op.h"
#include "core/memory.h"
#include "tests/bench/bench.h"

enum { NUMBERS = 1 << 22, MOST_THREADS = 2, MOST_SEQS = 64 };

typedef struct {
    const ttn_op *op;
    ttn_sig sig;
    ttn_feed feed;
    ttn_span span[MOST_SEQS];
    ttn_stream on;
    ttn_call forward, backward;
} job;

/* Reals in [-4, 4), integers below `most`. */
static void *random_values(const ttn_desc *d, int64_t most)
{
    const int64_t n = ttn_desc_numel(d);
    void *x = bench_memory(ttn_desc_bytes(d));
    uint64_t state = 1;
    for (int64_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        if (d->type == TTN_I64)
            ((int64_t *)x)[i] = (int64_t)((state >> 33) % (uint64_t)most);
        else
            ((real *)x)[i] = (real)((double)(state >> 11) * 0x1p-50 - 4);
    }
    return x;
}

/* The whole call, set up once, the gradient of in 0; outputs after the first reach no loss. Sequences of equal length. Lives
 * until the program ends. */
static job *prepare(const char *name, const void *attr, const ttn_desc *in, int64_t most, int64_t n_seq)
{
    job *j = bench_memory(sizeof *j);
    const int64_t rows = in[0].dim[0];
    j->op = ttn_op_find(name);
    if (!j->op) exit(1);
    j->sig = (ttn_sig){.attr = attr, .cap = {.rows = rows, .seqs = n_seq}, .n_in = j->op->n_in};
    memcpy(j->sig.in, in, (size_t)j->op->n_in * sizeof *in);
    ttn_error err = {0};
    if (j->op->shape(&j->sig, &err) != TTN_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    j->feed = (ttn_feed){.used = {.rows = rows, .seqs = n_seq}, .span = j->span};
    for (int64_t s = 0; s < n_seq; s++)
        j->span[s] = (ttn_span){.first = s * (rows / n_seq), .n = rows / n_seq};
    ttn_call c = {.sig = &j->sig, .feed = &j->feed, .on = &j->on};
    c.work = bench_memory(j->sig.work[0] > j->sig.work[1] ? j->sig.work[0] : j->sig.work[1]);
    for (int i = 0; i < j->op->n_in; i++)
        if (in[i].ndim >= 0) c.in[i] = random_values(&in[i], most);
    for (int a = 0; a < j->sig.n_aux; a++)
        c.aux[a] = bench_memory(ttn_desc_bytes(&j->sig.aux[a]));
    for (int o = 0; o < j->op->n_out; o++)
        c.out[o] = bench_memory(ttn_desc_bytes(&j->sig.out[o]));
    c.stat = bench_memory((size_t)(j->sig.n_stat + 1) * sizeof *c.stat);
    j->forward = c;
    c.dout[0] = random_values(&j->sig.out[0], most);
    c.din[0] = bench_memory(ttn_desc_bytes(&in[0]));
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

typedef struct {
    real *to, *from;
    int n_thread;
} plain;

static void copy(void *arg)
{
    const plain *p = arg;
    enum { PARTS = 64 };
#pragma omp parallel for num_threads(p->n_thread)
    for (int64_t t = 0; t < PARTS; t++)
        memcpy(p->to + t * (NUMBERS / PARTS), p->from + t * (NUMBERS / PARTS), NUMBERS / PARTS * sizeof(real));
}

static job *prepare_xent(int64_t classes, const void *attr)
{
    const int64_t rows = NUMBERS / classes;
    const ttn_desc in[] = {ttn_desc_of(TTN_REAL, TTN_PICKS, 2, rows, classes, 0),
                           ttn_desc_of(TTN_I64, TTN_PICKS, 1, rows, 0, 0),
                           {.ndim = -1}};
    job *j = prepare("xent", attr, in, classes, 0);
    j->feed.used.picks = rows;
    return j;
}

static job *prepare_pool(int64_t n_seq, const void *attr)
{
    const ttn_desc in[] = {ttn_desc_of(TTN_REAL, TTN_ROWS, 2, NUMBERS / 512, 512, 0)};
    return prepare("pool", attr, in, 0, n_seq);
}

int main(int argc, char **argv)
{
    bench_start(argc, argv, "loss");
    /* the ops' attributes, as autograd/ops/xent.c and pool.c declare them */
    const struct {
        int64_t ignore;
        double smoothing;
    } hard = {.ignore = -100}, smooth = {.ignore = -100, .smoothing = 0.1};
    const struct {
        int form;
        int64_t skip_first, skip_last;
    } inner = {.skip_first = 1, .skip_last = 1};

    job *letters = prepare_xent(33, &hard);
    job *smoothed = prepare_xent(33, &smooth);
    job *words = prepare_xent(1024, &hard);
    job *pool_many = prepare_pool(MOST_SEQS, &inner);
    job *pool_one = prepare_pool(1, &inner);
    enum { N_JOB = 5 };
    job *const jobs[N_JOB] = {letters, smoothed, words, pool_many, pool_one};
    plain reference = {.to = bench_memory(NUMBERS * sizeof(real)), .from = bench_memory(NUMBERS * sizeof(real))};
    memset(reference.from, 1, NUMBERS * sizeof(real)); /* pages that were never written are all one */

    /* forward writes what backward reads */
    for (int i = 0; i < N_JOB; i++) {
        jobs[i]->on.n_thread = 1;
        run_forward(jobs[i]);
    }
    const double value = (double)NUMBERS * sizeof(real) / 1e9; /* GB of all logits, of all rows */
    for (int n_thread = 1; n_thread <= MOST_THREADS; n_thread++) {
        for (int i = 0; i < N_JOB; i++)
            jobs[i]->on.n_thread = n_thread;
        reference.n_thread = n_thread;
        const bench_row rows[] = {
            {.name = "memcpy", .run = copy, .arg = &reference, .work = 2 * value, .unit = "GB/s"},
            {.name = "xent 33 forward", .run = run_forward, .arg = letters, .work = value, .unit = "GB/s"},
            {.name = "xent 33 backward", .run = run_backward, .arg = letters, .work = 2 * value, .unit = "GB/s"},
            {.name = "xent 33 forward, smoothed", .run = run_forward, .arg = smoothed, .work = value, .unit = "GB/s"},
            {.name = "xent 1,024 forward", .run = run_forward, .arg = words, .work = value, .unit = "GB/s"},
            {.name = "xent 1,024 backward", .run = run_backward, .arg = words, .work = 2 * value, .unit = "GB/s"},
            {.name = "pool 64 forward", .run = run_forward, .arg = pool_many, .work = value, .unit = "GB/s"},
            {.name = "pool 64 backward", .run = run_backward, .arg = pool_many, .work = value, .unit = "GB/s"},
            {.name = "pool 1 forward", .run = run_forward, .arg = pool_one, .work = value, .unit = "GB/s"},
            {.name = "pool 1 backward", .run = run_backward, .arg = pool_one, .work = value, .unit = "GB/s"},
        };
        char what[64];
        snprintf(what, sizeof what, "%d numbers, %d thread%s", NUMBERS, n_thread, n_thread > 1 ? "s" : "");
        bench_compare(what, rows, sizeof rows / sizeof *rows);
    }
    return bench_end();
}
