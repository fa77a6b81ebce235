/* The driver of autograd/gradcheck.h from the inside.
 *
 *   gradcheck_case.c        a case set up: values, buffers with guards, memory of the device
 *   gradcheck_call.c        forward and backward, and what must hold after each
 *   gradcheck_compare.c     two results: the same bits, or near; a case in numbers
 *   gradcheck_descriptor.c  properties of what an op says of itself: shapes it refuses, data it refuses, costs
 *   gradcheck_gradients.c   properties of gradients: differences, subsets, accumulation, reads
 *   gradcheck_bits.c        what must not change a bit: threads, capacity, other rows, shared buffers
 *   gradcheck.c             the table of properties
 */
#ifndef TTN_GRADCHECK_IMPL_H
#define TTN_GRADCHECK_IMPL_H

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "autograd/gradcheck.h"
#include "autograd/graph.h"
#include "autograd/kernel.h"
#include "autograd/on_device.h"
#include "core/memory.h"

/* What is wrong with an op. */
#define FAULT(err, ...) TTN_FAIL((err), TTN_EINTERNAL, __VA_ARGS__)

/* Every byte of what was not written: a NaN in f32 and f64, so that reading it shows, too. */
enum {
    UNTOUCHED = 0xFF,
    MOST_THREADS = 8,
    DOUT = TTN_MAX_IN /* number of dout[0] among the streams of random values */
};

/* Sums in another order: 2^-53 or 2^-24 times a few hundred terms. */
#define ORDER_BOUND ((double)TTN_REAL_EPS * 512)

/* ---- gradcheck_case.c ---- */

/* The checks look at `data`, on the host. Where kernels run on a device, a call is made on a copy of all buffers there. */
typedef struct {
    unsigned char *raw; /* a guard, the data, a guard; NULL: no such buffer */
    void *data;
    size_t bytes;
    void *saved;  /* the data as it should be */
    size_t there; /* where raw's copy begins in the device's memory */
} buffer;

typedef struct {
    const ttn_gradcheck_options *o;
    const ttn_op *op;
    const ttn_case *k;
    const ttn_kernels *kernels;
    ttn_sig sig;
    ttn_feed feed;
    ttn_stream on;
    buffer in[TTN_MAX_IN], out[TTN_MAX_OUT], aux[TTN_MAX_AUX], stat, work;
    buffer dout[TTN_MAX_OUT], din[TTN_MAX_IN];
    /* for kernels of a device */
    ttn_device *device; /* NULL: the host's processor */
    ttn_memory *there;
    ttn_feed_layout layout;
    buffer arrays; /* the feed's, of this layout */
    buffer fault;  /* one number (autograd/fault.h) */
} instance;

typedef struct {
    const ttn_gradcheck_options *o;
    int more;      /* a capacity larger than needed */
    int as_floats; /* real inputs rounded to what a float holds */
} setup;

/* Whatever happens, destroy may be called afterwards. */
ttn_status ttn_gradcheck_create(instance *t, const ttn_op *op, const ttn_case *k, const setup *with, ttn_error *err);
void ttn_gradcheck_destroy(instance *t);

/* What shape() gets for this case. */
ttn_sig ttn_gradcheck_signature(const ttn_op *op, const ttn_case *k, int more);

/* Random values of stream number `stream` in the used rows, zeros past them (rule 3); saved. */
void ttn_gradcheck_fill(const instance *t, const setup *with, int stream, double lo, double hi, const ttn_desc *d,
                        buffer *b);

/* Element e of a value on the host. */
double ttn_gradcheck_get(const ttn_desc *d, const void *x, int64_t e);
void ttn_gradcheck_set(const ttn_desc *d, void *x, int64_t e, double value);

/* -1: written in front of it, 1: behind it, 0: neither. */
int ttn_gradcheck_guard(const buffer *b);

/* All buffers of an instance, those that it has not too: number i. The fault is the last one. */
enum { N_BUFFERS = 2 * TTN_MAX_IN + 2 * TTN_MAX_OUT + TTN_MAX_AUX + 4 };
buffer *ttn_gradcheck_buffer(instance *t, int i);

/* Bytes of a buffer with its guards. */
size_t ttn_gradcheck_raw_bytes(const buffer *b);

static inline void save(buffer *b)
{
    if (b->raw) memcpy(b->saved, b->data, b->bytes);
}

static inline void restore(buffer *b)
{
    if (b->raw) memcpy(b->data, b->saved, b->bytes);
}

static inline int is_saved(const buffer *b)
{
    return !b->raw || memcmp(b->data, b->saved, b->bytes) == 0;
}

static inline void clear(buffer *b)
{
    if (b->raw) memset(b->data, UNTOUCHED, b->bytes);
}

static inline int is_real(const ttn_desc *d)
{
    const ttn_dtype type = ttn_dtype_stored(d->type);
    return type == TTN_F32 || type == TTN_F64;
}

/* Inputs of this case that can have a gradient. */
static inline uint32_t all_wanted(const instance *t)
{
    uint32_t wanted = 0;
    for (int i = 0; i < t->op->n_in; i++)
        if (t->din[i].raw) wanted |= TTN_BIT(i);
    return wanted;
}

static inline uint32_t all_outputs(const instance *t)
{
    return TTN_BIT(t->op->n_out) - 1;
}

/* ---- gradcheck_call.c ---- */

typedef struct {
    int n_thread;          /* 0: 1 */
    uint32_t aux_left_out; /* spare aux that both passes get as NULL */
    int takes;             /* TTN_SHARES(j): out[j] is written over the input it takes */
    int passes;            /* TTN_SHARES(i): din[i] is written over the dout it takes */
    int acc;
    uint32_t no_dout; /* outputs that reach no loss */
} variation;

/* The calls that the engine would make, by addresses on the host. */
ttn_call ttn_gradcheck_forward_call(instance *t, const variation *v);
ttn_call ttn_gradcheck_backward_call(instance *t, uint32_t wanted, const variation *v);

/* The kernel's answer; wherever it runs, the buffers on the host hold what it left. A fault that a device's kernel raises
 * is the op's sentence. */
ttn_status ttn_gradcheck_call(instance *t, const ttn_call *c, ttn_pass pass, ttn_error *err);

/* A call with everything that must hold after it. Backward comes after forward. */
ttn_status ttn_gradcheck_forward(instance *t, variation v, ttn_error *err);
ttn_status ttn_gradcheck_backward(instance *t, uint32_t wanted, variation v, ttn_error *err);

/* The first run of a property: forward, then all gradients; din is saved. */
ttn_status ttn_gradcheck_first_run(instance *t, ttn_error *err);

/* din[i] before backward: anything when acc is 0. */
void ttn_gradcheck_prepare(instance *t, int acc);

/* Nothing was written outside a buffer. */
ttn_status ttn_gradcheck_guards(const instance *t, const char *pass, ttn_error *err);

/* ---- gradcheck_compare.c ---- */

/* The same bits, but for the sign of a zero. `rows` (may be NULL): those rows only. */
ttn_status ttn_gradcheck_same(const instance *t, const char *kind, int number, const ttn_desc *d, const void *a,
                              const void *b, int64_t n, const unsigned char *rows, const char *between, ttn_error *err);

/* b is within bound * (1 + the largest |a|) of a + shift. */
ttn_status ttn_gradcheck_near(const instance *t, const char *kind, int number, const ttn_desc *d, const void *a,
                              double shift, const void *b, int64_t n, double bound, const char *between,
                              ttn_error *err);

/* Outputs, aux that were kept, and statistics are those of the saved run. */
ttn_status ttn_gradcheck_same_forward(const instance *t, const instance *was, uint32_t no_aux, const char *between,
                                      ttn_error *err);

/* The gradients in `wanted` are those of the saved run. */
ttn_status ttn_gradcheck_same_backward(const instance *t, uint32_t wanted, const char *between, ttn_error *err);

/* Of statistics. */
static const ttn_desc doubles = {.type = TTN_F64, .ndim = 1};

/* ---- the properties: name, where it applies, check, does it call kernels as a device would ---- */

enum { HOST_ONLY, ON_DEVICES };

#define TTN_PROPERTIES(X)                                                                                       \
    X("refused shapes", ttn_case_is_refused, ttn_check_refused_shapes, HOST_ONLY)                               \
    X("refused data", ttn_case_is_failing, ttn_check_refused_data, ON_DEVICES)                                  \
    X("shape rule", ttn_case_is_good, ttn_check_shape, HOST_ONLY)                                               \
    X("cost", ttn_case_is_good, ttn_check_cost, HOST_ONLY)                                                      \
    X("gradients", ttn_case_is_differentiated, ttn_check_gradients, HOST_ONLY) /* slow; else against the CPU */ \
    X("every subset of gradients", ttn_case_is_good, ttn_check_subsets, ON_DEVICES)                             \
    X("accumulation", ttn_case_is_good, ttn_check_accumulation, ON_DEVICES)                                     \
    X("outputs without a loss", ttn_case_has_several_outputs, ttn_check_dead_outputs, ON_DEVICES)               \
    X("threads", ttn_case_is_good, ttn_check_threads, HOST_ONLY)                                                \
    X("a second run", ttn_case_is_good, ttn_check_repeated, ON_DEVICES)                                         \
    X("a larger capacity", ttn_case_is_good, ttn_check_capacity, ON_DEVICES)                                    \
    X("rows of no sequence", ttn_case_has_free_rows, ttn_check_free_rows, ON_DEVICES)                           \
    X("shared buffers", ttn_case_takes_or_passes, ttn_check_in_place, ON_DEVICES)                               \
    X("one value in two inputs", ttn_case_has_twins, ttn_check_twins, ON_DEVICES)                               \
    X("spare aux left out", ttn_case_has_spare, ttn_check_spare, ON_DEVICES)

#define TTN_PROPERTY(name, applies, check, where)     \
    int applies(const ttn_op *op, const ttn_case *k); \
    ttn_status check(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err);
TTN_PROPERTIES(TTN_PROPERTY)
#undef TTN_PROPERTY

#endif
