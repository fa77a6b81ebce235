/* One op called by hand, without a graph: for tests of what no case of the driver can say (a feed with positions and
 * samples, other packings of the same sequences, other keys). */
#ifndef TTN_TEST_CALL_H
#define TTN_TEST_CALL_H

#include "autograd/op.h"

typedef struct {
    const ttn_op *op;
    ttn_sig sig;
    ttn_feed feed; /* set by the test, like key and what in[] hold */
    ttn_stream on; /* 1 thread */
    uint64_t key;
    void *in[TTN_MAX_IN], *din[TTN_MAX_IN]; /* whole values, zeros at first; NULL: left out */
    void *out[TTN_MAX_OUT], *dout[TTN_MAX_OUT];
    void *work;
} test_call;

enum { TEST_CALL_THREADS = 8 };

/* Shapes are checked and everything is allocated, for one output. in[i].dim[0] of rows and the like: filled in here. */
void test_call_create(test_call *t, const char *op, const void *attr, ttn_extent capacity, const ttn_desc *in);
void test_call_destroy(test_call *t);

/* The kernel's own answer. */
ttn_status test_call_try(test_call *t, ttn_error *err);

/* Both must succeed. wanted: bit i for din[i], which is written (acc 0). */
void test_call_forward(test_call *t);
void test_call_backward(test_call *t, uint32_t wanted);

/* x[e] uniform in [-1, 1), all 53 bits. */
void test_call_fill(real *x, int64_t n, uint64_t seed);

#endif
