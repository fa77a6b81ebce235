#include "tests/harness/call.h"
#include <string.h>
#include "core/memory.h"
#include "tests/harness/test.h"

static void *zeros(size_t bytes)
{
    void *p = ttn_alloc(bytes + 1);
    assert_non_null(p);
    memset(p, 0, bytes + 1);
    return p;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

void test_call_create(test_call *t, const char *op, const void *attr, ttn_extent capacity, const ttn_desc *in)
{
    *t = (test_call){.op = ttn_op_find(op), .on = {.n_thread = 1}};
    assert_non_null(t->op);
    t->sig = (ttn_sig){.attr = attr, .cap = capacity, .n_in = t->op->n_in};
    const int64_t size[] = {[TTN_ROWS] = capacity.rows, [TTN_SEQS] = capacity.seqs, [TTN_PICKS] = capacity.picks};
    for (int i = 0; i < t->op->n_in; i++) {
        t->sig.in[i] = in[i];
        if (in[i].ndim > 0 && in[i].axis != TTN_FIXED) t->sig.in[i].dim[0] = size[in[i].axis];
    }
    ttn_error err = {0};
    assert_ok(t->op->shape(&t->sig, &err), &err);
    for (int i = 0; i < t->op->n_in; i++) {
        if (in[i].ndim < 0) continue;
        t->in[i] = zeros(ttn_desc_bytes(&t->sig.in[i]));
        t->din[i] = zeros(ttn_desc_bytes(&t->sig.in[i]));
    }
    t->out[0] = zeros(ttn_desc_bytes(&t->sig.out[0]));
    t->dout[0] = zeros(ttn_desc_bytes(&t->sig.out[0]));
    const size_t shared = larger(t->sig.work[0], t->sig.work[1]);
    const size_t own = larger(t->sig.work_thread[0], t->sig.work_thread[1]);
    t->work = zeros(ttn_work_align(shared) + TEST_CALL_THREADS * ttn_work_align(own));
}

void test_call_destroy(test_call *t)
{
    for (int i = 0; i < TTN_MAX_IN; i++) {
        ttn_free(t->in[i]);
        ttn_free(t->din[i]);
    }
    ttn_free(t->out[0]);
    ttn_free(t->dout[0]);
    ttn_free(t->work);
}

static ttn_call call_of(test_call *t)
{
    ttn_call c = {.sig = &t->sig, .feed = &t->feed, .on = &t->on, .key = t->key, .work = t->work};
    for (int i = 0; i < t->op->n_in; i++)
        c.in[i] = t->in[i];
    c.out[0] = t->out[0];
    return c;
}

ttn_status test_call_try(test_call *t, ttn_error *err)
{
    const ttn_call c = call_of(t);
    return t->op->cpu.forward(&c, err);
}

void test_call_forward(test_call *t)
{
    ttn_error err = {0};
    assert_ok(test_call_try(t, &err), &err);
}

void test_call_backward(test_call *t, uint32_t wanted)
{
    ttn_call c = call_of(t);
    c.out[0] = NULL;
    c.dout[0] = t->dout[0];
    for (int i = 0; i < t->op->n_in; i++)
        if (wanted & TTN_BIT(i)) c.din[i] = t->din[i];
    ttn_error err = {0};
    assert_ok(t->op->cpu.backward(&c, &err), &err);
}

void test_call_fill(real *x, int64_t n, uint64_t seed)
{
    uint64_t state = seed;
    for (int64_t e = 0; e < n; e++) {
        state += 0x9E3779B97F4A7C15u; /* splitmix64 */
        uint64_t z = state;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        x[e] = (real)((double)((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1);
    }
}
