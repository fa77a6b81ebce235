/* Checks of ops at the level of kernels, in this build's precision: what autograd/op.h demands, one property at a time.
 *
 * A check sets up one case of one op (values from its seed, memory filled with NaN, a guard around every buffer), runs
 * forward and backward on the host's processor or a device and says in one sentence what was wrong, where it was worst, and with
 * which numbers. tests/autograd/test_ops.c runs every property on every case of every op.
 *
 * Of what backward may not see, it gets NULL: an op that reads more than it declares crashes. Run checks where a crash
 * can be reported (a child process).
 */
#ifndef TTN_GRADCHECK_H
#define TTN_GRADCHECK_H

#include "autograd/op.h"

typedef struct {
    uint64_t seed;
    int64_t most_elements; /* of an input that central differences try, spread over it; 0: 300 */
    ttn_device *device;    /* whose kernels are checked; NULL: the host's processor */
    int without_aux;       /* ttn_gradcheck_compute leaves aux out: kernels of a device may keep other numbers */
    /* Element e of input i, or of dout j where i is TTN_MAX_IN + j, made from the random one; NULL: the random one itself. */
    double (*value)(int i, int64_t e, double random);
} ttn_gradcheck_options;

/* One property of one case. TTN_OK, or TTN_EINTERNAL with the sentence (TTN_ENOMEM when memory ran out). */
typedef ttn_status (*ttn_property_check)(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o,
                                         ttn_error *err);

typedef struct {
    const char *name;
    /* Is there anything to check in this case (op->takes is empty, the case has no sequences, …)? */
    int (*applies)(const ttn_op *op, const ttn_case *k);
    ttn_property_check check;
    int on_devices; /* 0: says nothing about a device's kernels, or takes too long there (central differences) */
} ttn_property;

/* All of them; name NULL after the last. */
extern const ttn_property ttn_properties[];

/* NULL when there is none of that name. */
const ttn_property *ttn_property_find(const char *name);

/* The descriptor: numbers in range, every bit about something that exists, cases that cover it (one that is refused at
 * least; each optional input both there and left out). */
TTN_MUST_USE ttn_status ttn_gradcheck_descriptor(const ttn_op *op, ttn_error *err);

/* Each value that `reads` lists changes the gradient it is listed for, in one of the cases at least: else the engine
 * would keep a value for nothing. */
TTN_MUST_USE ttn_status ttn_gradcheck_idle_reads(const ttn_op *op, const ttn_gradcheck_options *o, ttn_error *err);

/* The descriptor, every property that applies to every case, and the reads. *ret_checks (may be NULL): how many. */
TTN_MUST_USE ttn_status ttn_gradcheck_op(const ttn_op *op, const ttn_gradcheck_options *o, int *ret_checks,
                                         ttn_error *err);

/* ---- one case in numbers: to compare the two precisions, a device with the CPU, and with another way to compute it ---- */

enum { TTN_MOST_PARTS = 2 * TTN_MAX_IN + 2 * TTN_MAX_OUT + TTN_MAX_AUX + 1 };

typedef struct {
    int n_part;
    struct {
        char name[16]; /* "in 0", "out 0", "aux 1", "stat 0", "din 2", "dout 0": the used rows */
        int64_t first, n;
        int exact; /* integers: compared without a bound */
    } part[TTN_MOST_PARTS];
    int64_t n;
    double *value; /* (n) */
} ttn_gradcheck_values;

/* Case number k of the op called `op`. Inputs are what a float holds in either build. Release *ret with ttn_free(value). */
TTN_MUST_USE ttn_status ttn_gradcheck_compute(const char *op, int k, const ttn_gradcheck_options *o,
                                              ttn_gradcheck_values *ret, ttn_error *err);

/* A case that is not among the op's own. */
TTN_MUST_USE ttn_status ttn_gradcheck_compute_case(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o,
                                                   ttn_gradcheck_values *ret, ttn_error *err);

/* Every part of b is within bound * (1 + the part's largest absolute value in a) of a; integers are equal. *ret_worst: the largest
 * difference in those units. */
TTN_MUST_USE ttn_status ttn_gradcheck_compare(const ttn_gradcheck_values *a, const ttn_gradcheck_values *b,
                                              double bound, double *ret_worst, ttn_error *err);

#endif
