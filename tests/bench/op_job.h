/* One op's kernels, set up to be measured: values, aux, scratch and gradients of their own, which live until the program
 * ends. For one benchmark program each, so everything is static. */
#ifndef TTN_OP_JOB_H
#define TTN_OP_JOB_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/op.h"
#include "core/memory.h"
#include "tests/bench/bench.h"

typedef struct {
    const ttn_op *op;
    ttn_sig sig;
    ttn_feed feed;
    ttn_stream on;
    ttn_call forward, backward;
} job;

static size_t scratch_of(const ttn_sig *s, ttn_pass pass, int n_thread)
{
    return ttn_work_align(s->work[pass]) + (size_t)n_thread * ttn_work_align(s->work_thread[pass]);
}

/* For a batch of so many rows, all of them used, on up to n_thread threads; gradients of the inputs in `wanted`. */
static job *prepare(const char *name, const void *attr, const ttn_desc *in, uint32_t wanted, int64_t rows, int n_thread)
{
    job *j = bench_memory(sizeof *j);
    j->op = ttn_op_find(name);
    if (!j->op) exit(1);
    j->sig = (ttn_sig){.attr = attr, .cap = {.rows = rows}, .n_in = j->op->n_in};
    memcpy(j->sig.in, in, (size_t)j->op->n_in * sizeof *in);
    ttn_error err = {0};
    if (j->op->shape(&j->sig, &err) != TTN_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    j->feed = (ttn_feed){.used = {.rows = rows}};
    ttn_call c = {.sig = &j->sig, .feed = &j->feed, .on = &j->on};
    const size_t work[2] = {scratch_of(&j->sig, TTN_FORWARD, n_thread), scratch_of(&j->sig, TTN_BACKWARD, n_thread)};
    c.work = bench_memory(work[0] > work[1] ? work[0] : work[1]);
    for (int i = 0; i < j->op->n_in; i++)
        if (in[i].ndim >= 0) c.in[i] = bench_values(ttn_desc_numel(&in[i]), 1);
    for (int a = 0; a < j->sig.n_aux; a++)
        c.aux[a] = bench_memory(ttn_desc_bytes(&j->sig.aux[a]));
    c.out[0] = bench_memory(ttn_desc_bytes(&j->sig.out[0]));
    c.stat = bench_memory((size_t)(j->sig.n_stat + 1) * sizeof *c.stat);
    j->forward = c;
    c.dout[0] = bench_values(ttn_desc_numel(&j->sig.out[0]), 1);
    for (int i = 0; i < j->op->n_in; i++)
        if (wanted & TTN_BIT(i) && in[i].ndim >= 0) c.din[i] = bench_memory(ttn_desc_bytes(&in[i]));
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

#endif
