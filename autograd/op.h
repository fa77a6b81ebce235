/* What an operator is.
 *
 * One op lives in one file, autograd/ops/NAME.c: its maths, shape rule, cost, forward, backward and cases; it defines
 * one constant ttn_op_NAME of the type below and is listed once, in autograd/ops.def. Recording, planning, recomputing,
 * checking gradients and counting flops read the descriptor; nothing else is edited when an op is added.
 *
 * The rules of an op
 *   1. Backward sees only what `reads` lists for the gradients asked for; every other pointer is NULL.
 *   2. Every subset of gradients may be asked for. A gradient wanted outside `differentiable` is refused when recorded.
 *   3. Kernels allocate nothing, write every row of the capacity of `out` and `din` (rows past `used`: zeros; rows of no
 *      sequence: zeros in ops that look at sequences; finite always), and never write an input except through `takes`.
 *      One value given to two inputs has one din buffer: gradients are written in the order of the inputs.
 *   4. `stat` is written by forward, and the same when it runs again.
 *   5. Random numbers are Philox with the call's key and counter (sample number, position in its sequence, channel / 4):
 *      not the row, not a count of calls; so a recomputed block, another packing and another rank see the same mask.
 *   6. Integer inputs are ordinary inputs, and leaves.
 *   7. No strides, no transposes: q stays (N, H D). What an op keeps for backward is declared in `aux`, by capacity.
 *   8. Extents, counts and offsets are int64_t.
 *   9. What is computed on a device (NAME.cu beside NAME.c, listed in autograd/ops_cuda.def) follows the same rules, and the
 *      host reads no value there: the feed's arrays are in `on_device`, data faults are raised in on_device.fault.
 *
 * Axis letters: core/tensor.h.
 */
#ifndef TTN_OP_H
#define TTN_OP_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include "autograd/fault.h"
#include "autograd/feed.h"
#include "core/device.h"
#include "core/real.h"
#include "core/status.h"
#include "core/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rotary and qk-norm FAVOR take q, k, v, W, two gains and frequencies; fused qkv gives three outputs. */
enum { TTN_MAX_IN = 12, TTN_MAX_OUT = 4, TTN_MAX_AUX = 6 };

typedef enum { TTN_FORWARD, TTN_BACKWARD } ttn_pass;

#define TTN_BIT(i) (1u << (i))

/* One application of an op. The recorder fills the first part; shape() checks it and fills the second. */
typedef struct {
    const void *attr; /* the graph's own copy, op->attr_bytes long */
    ttn_extent cap;   /* rows, sequences and picks that the graph was created for */
    int n_in;
    ttn_desc in[TTN_MAX_IN]; /* ndim < 0: an optional input left out */

    int n_out; /* op->n_out, there already */
    ttn_desc out[TTN_MAX_OUT];
    int n_aux;
    ttn_desc aux[TTN_MAX_AUX]; /* kept for backward; sized by capacities, never by the batch at hand */
    int n_stat;                /* doubles that forward reports, all of the op's statistics together */
    size_t work[2];            /* scratch bytes of each ttn_pass, shared by its threads */
    size_t work_thread[2];     /* scratch bytes of each ttn_pass for every thread */
} ttn_sig;

/* Bit sets of values. */
typedef struct {
    uint32_t in, out, aux;
} ttn_reads;

/* How tiles, shards and ranks combine a statistic: never a mean. */
typedef enum { TTN_SUM, TTN_MIN, TTN_MAX } ttn_fold;

/* NaN stays to be seen. */
static inline double ttn_folded(ttn_fold how, double a, double b)
{
    if (how == TTN_SUM) return a + b;
    if (isnan(a)) return a;
    if (isnan(b)) return b;
    return (how == TTN_MAX) == (a > b) ? a : b;
}

typedef struct {
    const char *name;
    ttn_fold fold;
    int per_head; /* one number a head instead of one */
    /* A sum that is told as a mean (autograd/statistics.h): over which sum of this table, and the mean's name. NULL: as it is. */
    const char *over, *mean;
} ttn_stat;

/* What kernels of a device need of the feed, where they can read it, filled in once a run. All NULL for CPU kernels, which
 * have the feed itself. A run without sequences is plain data: its used rows are sequence 0, as in autograd/ops/places.h. */
typedef struct {
    const ttn_span *span;      /* (S) the used ones; without sequences one: the used rows */
    const int64_t *start;      /* (S) zeros where the feed has none */
    const uint64_t *sample;    /* (S) 0, 1, 2, … where the feed has none */
    const int64_t *seq_of_row; /* (N), the capacity; -1 in rows of no sequence and past the used ones */
    ttn_fault_sink fault;
} ttn_on_device;

/* One call of a kernel. Backward writes din[i] when it is not NULL: din[i] = acc[i] din[i] + gradient, acc[i] 0 or 1
 * (0: whatever stands there, NaN too, is not read), so that acc goes straight into BLAS as beta. */
typedef struct ttn_call {
    const ttn_sig *sig;
    const ttn_feed *feed;
    const ttn_stream *on;
    ttn_on_device on_device;
    uint64_t key; /* hash of (seed, node's name, step): this op's random stream */
    const void *in[TTN_MAX_IN];
    void *out[TTN_MAX_OUT]; /* NULL: an output that nobody reads is still written, so never NULL in forward */
    void *aux[TTN_MAX_AUX]; /* NULL: a spare one that the plan leaves out */
    void *work;             /* sig->work bytes, then one part for each thread: ttn_thread_work */
    double *stat;
    const void *dout[TTN_MAX_OUT]; /* NULL: this output does not reach a loss */
    void *din[TTN_MAX_IN];         /* NULL: not wanted */
    real acc[TTN_MAX_IN];
} ttn_call;

/* done counts recomputed work, useful does not; bytes are moved to and from memory when nothing stays in a cache. */
typedef struct {
    double done, useful, bytes;
} ttn_cost;

/* Fails on data (an id outside the vocabulary) or on the device; the message names what was wrong, the engine adds the
 * node. */
typedef ttn_status ttn_kernel_function(const ttn_call *c, ttn_error *err);
typedef ttn_kernel_function *ttn_kernel;

typedef struct {
    ttn_kernel forward, backward;
    size_t (*work)(const ttn_sig *s, ttn_pass pass); /* bytes of scratch; NULL: what shape() asked for */
} ttn_kernels;

/* Bytes at c->work when these kernels run, the threads' own parts included. kernels may be NULL: what shape() asked for. */
size_t ttn_work_bytes(const ttn_kernels *kernels, const ttn_sig *s, ttn_pass pass, int n_thread);

/* A small instance that the test driver runs for every op, build and backend. Axes other than TTN_FIXED: dim[0] is left 0
 * and filled with the capacity. */
typedef struct {
    const char *about;       /* what this case is there for */
    ttn_extent cap, used;    /* cap 0: the smallest that fits `used` */
    ttn_span span[8];        /* (used.seqs) */
    ttn_desc in[TTN_MAX_IN]; /* ndim < 0 (TTN_LEFT_OUT): an optional input left out */
    const void *attr;
    struct {
        double lo, hi; /* how input i is filled: integers in [lo, hi]; reals uniform in it; {0, 0}: reals in [-1, 1] */
    } range[TTN_MAX_IN];
    const char *refused; /* NULL: a good case. Else shape() must refuse it, in a sentence that contains this */
    const char *fails;   /* NULL, or what the sentence contains with which forward must refuse the data */
    const char
        *detached; /* NULL, or what backward holds constant by definition: central differences say nothing then */
} ttn_case;

/* `training` and the like for reading an op's case tables at a glance. */
#define TTN_LEFT_OUT \
    {                \
        .ndim = -1   \
    }
#define TTN_ROWS_OF(c)                                 \
    {                                                  \
        .axis = TTN_ROWS, .ndim = 2, .dim = { 0, (c) } \
    }
#define TTN_PICKS_OF(c)                                 \
    {                                                   \
        .axis = TTN_PICKS, .ndim = 2, .dim = { 0, (c) } \
    }
#define TTN_MATRIX(a, b)              \
    {                                 \
        .ndim = 2, .dim = {(a), (b) } \
    }
#define TTN_VECTOR(a)            \
    {                            \
        .ndim = 1, .dim = {(a) } \
    }

typedef struct {
    const char *name;
    int n_in, n_out;
    uint32_t optional;           /* inputs that may be left out */
    uint32_t differentiable;     /* inputs that can have a gradient */
    ttn_reads reads[TTN_MAX_IN]; /* reads[i]: what backward looks at when din[i] is asked for */
    int8_t takes[TTN_MAX_OUT];   /* TTN_SHARES(i): out[j] may be written over in[i]; 0: over none */
    int8_t passes[TTN_MAX_IN];   /* TTN_SHARES(j): din[i] may be written over dout[j]; 0: over none */
    uint32_t spare;              /* aux the plan may leave out: NULL in both passes, backward remakes it, same bits */
    size_t attr_bytes;
    const ttn_stat *stats;
    int n_stats;
    ttn_status (*shape)(ttn_sig *s, ttn_error *err); /* every check; runs once, when recorded */
    ttn_cost (*cost)(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept);
    ttn_kernels cpu; /* the reference */
    /* The sentence for a fault in the data (autograd/fault.h); NULL: its kernels raise none. */
    ttn_status (*fault)(const ttn_call *c, int kind, int64_t at, ttn_error *err);
    const struct ttn_attention *attention; /* NULL, or what makes it an attention kind: autograd/attention.h */
    const ttn_case *cases;
    int n_cases;
} ttn_op;

/* In takes and passes 0 is "none", so that an op which shares nothing need not say so. */
#define TTN_SHARES(i) ((int8_t)((i) + 1))

#define TTN_OP(name) extern const ttn_op ttn_op_##name;
#include "autograd/ops.def"
#undef TTN_OP

/* All ops of this build, NULL after the last. */
extern const ttn_op *const ttn_ops[];

/* NULL when there is none of that name. */
const ttn_op *ttn_op_find(const char *name);

/* The kernels of this op that run on such a device; NULL: it has none. */
const ttn_kernels *ttn_op_kernels(const ttn_op *op, ttn_kernel_kind kind);

/* The table of autograd/ops_cuda.def (registry_cuda.c; registry_nocuda.c: empty). NULL when the op is not in it. */
const ttn_kernels *ttn_cuda_kernels(const char *op);

/* What backward may look at when the gradients in `wanted` (bit i: din[i]) are asked for. */
ttn_reads ttn_op_reads(const ttn_op *op, uint32_t wanted);

/* acc old + gradient, where acc is 0 or 1 and old may be anything, NaN too, when acc is 0. */
TTN_HD real ttn_accumulate(real acc, real old, real gradient)
{
    return acc != 0 ? old + gradient : gradient;
}

/* Thread `thread`'s own part of the scratch of this call, sig->work_thread bytes; 64-byte aligned. */
static inline size_t ttn_work_align(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}
static inline void *ttn_thread_work(const ttn_call *c, ttn_pass pass, int thread)
{
    size_t first = ttn_work_align(c->sig->work[pass]);
    return (char *)c->work + first + (size_t)thread * ttn_work_align(c->sig->work_thread[pass]);
}

/* How many of dim[0] hold data in this run: the used rows, sequences or picks; all of a fixed axis. */
static inline int64_t ttn_used(const ttn_feed *f, const ttn_desc *d)
{
    switch (d->axis) {
    case TTN_ROWS:
        return f->used.rows;
    case TTN_SEQS:
        return f->used.seqs;
    case TTN_PICKS:
        return f->used.picks;
    case TTN_FIXED:
        break;
    }
    return d->ndim > 0 ? d->dim[0] : 1;
}

#ifdef __cplusplus
}
#endif
#endif
