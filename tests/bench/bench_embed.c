/* Embedding, positions, rotary and dropout at 4,800 rows of 512, beside memcpy: bytes moved to and from memory, with
 * nothing left in a cache. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/op.h"
#include "autograd/ops.h"
#include "core/memory.h"
#include "tests/bench/bench.h"

enum {
    ROWS = 4800,
    WIDTH = 512,
    VOCABULARY = 33,
    PLACES = 1026,
    N_SEQ = 12,
    MOST_THREADS = 2,
    SEQ_ROWS = ROWS / N_SEQ
};

typedef struct {
    const ttn_op *op;
    ttn_sig sig;
    ttn_feed feed;
    ttn_stream on;
    ttn_call forward, backward;
} job;

static ttn_span spans[N_SEQ]; /* 400 residues each; set once */

static void *memory(size_t bytes)
{
    void *p = ttn_alloc(bytes);
    if (p) return memset(p, 0, bytes);
    fprintf(stderr, "out of memory\n");
    exit(1);
}

/* Reals in [-1, 1); tokens 4 to 23, the residues. */
static void *some_values(const ttn_desc *d)
{
    const int64_t n = ttn_desc_numel(d);
    void *x = memory(ttn_desc_bytes(d));
    uint64_t state = 1;
    for (int64_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        if (d->type == TTN_U8)
            ((uint8_t *)x)[i] = (uint8_t)(4 + (state >> 40) % 20);
        else
            ((real *)x)[i] = (real)((double)(state >> 11) * 0x1p-52 - 1);
    }
    return x;
}

/* The whole call, set up once; gradients of the inputs in `wanted`. Lives until the program ends. */
static job *prepare(const char *name, const void *attr, const ttn_desc *in, uint32_t wanted)
{
    job *j = memory(sizeof *j);
    j->op = ttn_op_find(name);
    if (!j->op) exit(1);
    j->sig = (ttn_sig){.attr = attr, .cap = {.rows = ROWS, .seqs = N_SEQ}, .n_in = j->op->n_in};
    memcpy(j->sig.in, in, (size_t)j->op->n_in * sizeof *in);
    ttn_error err = {0};
    if (j->op->shape(&j->sig, &err) != TTN_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    j->feed = (ttn_feed){.used = {.rows = ROWS, .seqs = N_SEQ}, .span = spans, .training = 1};
    ttn_call c = {.sig = &j->sig, .feed = &j->feed, .on = &j->on, .key = 1};
    size_t bytes[2];
    for (int pass = 0; pass < 2; pass++)
        bytes[pass] = ttn_work_align(j->sig.work[pass]) + MOST_THREADS * ttn_work_align(j->sig.work_thread[pass]);
    c.work = memory(bytes[0] > bytes[1] ? bytes[0] : bytes[1]);
    for (int i = 0; i < j->op->n_in; i++)
        if (in[i].ndim >= 0) c.in[i] = some_values(&in[i]);
    c.out[0] = memory(ttn_desc_bytes(&j->sig.out[0]));
    j->forward = c;
    c.dout[0] = some_values(&j->sig.out[0]);
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

typedef struct {
    real *to, *from;
    int n_thread;
} plain;

static void copy(void *arg)
{
    const plain *p = arg;
#pragma omp parallel for num_threads(p->n_thread)
    for (int64_t t = 0; t < ROWS; t++)
        memcpy(p->to + t * WIDTH, p->from + t * WIDTH, WIDTH * sizeof(real));
}

int main(int argc, char **argv)
{
    bench_start(argc, argv, "embed");
    for (int64_t s = 0; s < N_SEQ; s++)
        spans[s] = (ttn_span){.first = s * SEQ_ROWS, .n = SEQ_ROWS};
    const ttn_desc x = ttn_desc_of(TTN_REAL, TTN_ROWS, 2, ROWS, WIDTH, 0);
    const ttn_desc tokens = ttn_desc_of(TTN_U8, TTN_ROWS, 1, ROWS, 0, 0);
    const ttn_desc table = ttn_desc_of(TTN_REAL, TTN_FIXED, 2, VOCABULARY, WIDTH, 0);
    const ttn_desc places = ttn_desc_of(TTN_REAL, TTN_FIXED, 2, PLACES, WIDTH, 0);
    const ttn_desc none = {.ndim = -1};
    const ttn_token_dropout esm = {.mask = 32, .share = 0.12};
    const int64_t offset = 0;
    const double p = 0.1;
    const struct {
        int64_t heads;
        double base;
        int64_t form;
    } turns[] = {{8, 10000, TTN_ROTARY_HALVES}, {8, 10000, TTN_ROTARY_INTERLEAVED}};
    const struct {
        int64_t offset, form;
    } waves = {0, TTN_SINUSOID_INTERLEAVED};

    const double value = (double)ROWS * WIDTH * sizeof(real) / 1e9; /* GB of one (N, C) */
    plain reference = {.to = some_values(&x), .from = some_values(&x)};
    /* Goals: 1 / 1.5 is asked of dropout. */
    const struct {
        const char *name;
        job *j;
        int backward;
        double values, goal;
    } table_of[] = {
        {"embedding forward", prepare("embedding", &esm, (const ttn_desc[]){tokens, table}, 2), 0, 1, 0.6},
        {"embedding backward", prepare("embedding", &esm, (const ttn_desc[]){tokens, table}, 2), 1, 1, 0.4},
        {"positions forward", prepare("positions", &offset, (const ttn_desc[]){x, places}, 3), 0, 2, 0.7},
        {"positions backward, both", prepare("positions", &offset, (const ttn_desc[]){x, places}, 3), 1, 3, 0.5},
        {"sinusoid forward", prepare("sinusoid", &waves, (const ttn_desc[]){x}, 1), 0, 2, 0.4},
        {"rotary forward, halves", prepare("rotary", &turns[0], (const ttn_desc[]){x, none}, 1), 0, 2, 0.6},
        {"rotary backward, halves", prepare("rotary", &turns[0], (const ttn_desc[]){x, none}, 1), 1, 2, 0.6},
        {"rotary forward, interleaved", prepare("rotary", &turns[1], (const ttn_desc[]){x, none}, 1), 0, 2, 0.5},
        {"dropout forward", prepare("dropout", &p, (const ttn_desc[]){x}, 1), 0, 2, 0.66},
        {"dropout backward", prepare("dropout", &p, (const ttn_desc[]){x}, 1), 1, 2, 0.66},
        {"residual forward", prepare("residual", &p, (const ttn_desc[]){x, x}, 3), 0, 3, 0.66},
        {"residual backward, both", prepare("residual", &p, (const ttn_desc[]){x, x}, 3), 1, 3, 0.5},
    };
    enum { N_ROW = 1 + sizeof table_of / sizeof *table_of };
    for (int n_thread = 1; n_thread <= MOST_THREADS; n_thread++) {
        reference.n_thread = n_thread;
        bench_row rows[N_ROW] = {{.name = "memcpy", .run = copy, .arg = &reference, .work = 2 * value, .unit = "GB/s"}};
        for (int i = 1; i < N_ROW; i++) {
            table_of[i - 1].j->on.n_thread = n_thread;
            rows[i] = (bench_row){.name = table_of[i - 1].name,
                                  .run = table_of[i - 1].backward ? run_backward : run_forward,
                                  .arg = table_of[i - 1].j,
                                  .work = table_of[i - 1].values * value,
                                  .unit = "GB/s",
                                  /* with all cores at work on a shared machine the slowest share decides */
                                  .goal = n_thread == 1 ? table_of[i - 1].goal : 0};
        }
        char what[64];
        snprintf(what, sizeof what, "%d x %d, %d thread%s", ROWS, WIDTH, n_thread, n_thread > 1 ? "s" : "");
        bench_compare(what, rows, N_ROW);
    }
    return bench_end();
}
