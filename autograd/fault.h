/* Faults in the data that a kernel of a device finds: an id outside the vocabulary, a target that is no class.
 *
 * A CPU kernel fails at once, with a sentence. On a device the host reads nothing until the run has ended, so a kernel
 * notes where the fault is in one number of the device's memory, goes on (it must not read or write out of bounds, and
 * writes anything finite in that row), and the number comes back with the run's results. The smallest number counts: the
 * first step, of that the first kind, of that the first place, as on the CPU, whatever order threads come in.
 *
 * The sentence is the op's, the same for both: ttn_op.fault(c, kind, at), which finds the values it names among c->in,
 * where integer inputs are in the host's memory.
 */
#ifndef TTN_FAULT_H
#define TTN_FAULT_H

#include <stdint.h>
#include "core/real.h"

/* step (20 bits), kind (4), at (40): from the most significant on. */
enum { TTN_FAULT_AT_BITS = 40, TTN_FAULT_KIND_BITS = 4, TTN_FAULT_STEP_BITS = 20 };

#define TTN_NO_FAULT UINT64_MAX

/* Where a kernel raises faults: first = min(first, step | kind | at), atomically. Kernels get it by value:
 * ttn_fault_raise (autograd/fault_cuda.h). */
typedef struct {
    uint64_t *first; /* of the device */
    uint64_t step;   /* the step's number, in its place already */
} ttn_fault_sink;

static inline uint64_t ttn_fault_of_step(int64_t step)
{
    return (uint64_t)step << (TTN_FAULT_KIND_BITS + TTN_FAULT_AT_BITS);
}

/* What ttn_fault_raise takes the minimum with. */
TTN_HD uint64_t ttn_fault_number(ttn_fault_sink f, int kind, int64_t at)
{
    return f.step | (uint64_t)kind << TTN_FAULT_AT_BITS | (uint64_t)at;
}

typedef struct {
    int64_t step;
    int kind; /* the op's own: 0, 1, … in the order in which its CPU kernel looks for them */
    int64_t at;
} ttn_fault;

static inline ttn_fault ttn_fault_of(uint64_t first)
{
    ttn_fault f;
    f.step = (int64_t)(first >> (TTN_FAULT_KIND_BITS + TTN_FAULT_AT_BITS));
    f.kind = (int)(first >> TTN_FAULT_AT_BITS & (((uint64_t)1 << TTN_FAULT_KIND_BITS) - 1));
    f.at = (int64_t)(first & (((uint64_t)1 << TTN_FAULT_AT_BITS) - 1));
    return f;
}

#endif
