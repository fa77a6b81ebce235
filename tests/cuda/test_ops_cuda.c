/* Every op that has kernels for CUDA, on the emulated device: each case's outputs, statistics and gradients are the CPU's,
 * faults in data give the same sentence, and the properties of autograd/gradcheck.h hold (guards, poison, rows past used,
 * acc, subsets, shared buffers). The host reads nothing there: the emulation's memory is closed to it.
 *
 * In f32 there are two blocks where a kernel may have as many as it likes: each comes several times around its loop, as it
 * does over a million rows on a GPU.
 *
 * An emulated thread costs a thousand times what it costs on a GPU. So every case is compared with the CPU (in f64 the short
 * ones), and each property is tried on the smallest case that it applies to; TTN_LONG=1 tries them on all short cases, and
 * compares in every order of warps. */
#include <stdio.h>
#include <string.h>
#include "core/blas.h"
#include "core/memory.h"
#include "tests/cuda/emulation.h"
#include "tests/harness/op_checks.h"
#include "tests/harness/test.h"

/* Against the CPU, in units of 1 + the value's largest element. f32: 160 roundings of 2^-24, for sums in another order and
 * exp and erf of another library; f64: the same number of 2^-53, and those functions are fits to 1e-15 on both sides. */
#define BOUND (sizeof(real) == 4 ? 1e-5 : 1e-12)

static ttn_device *device; /* of this child */

static ttn_gradcheck_options options(void)
{
    return (ttn_gradcheck_options){.seed = ttn_test_seed(), .device = device, .without_aux = 1};
}

static ttn_status begin(ttn_error *err)
{
    enum { FEW_BLOCKS = 2 };
    if (sizeof(real) == 4) emulation_set_most_blocks(FEW_BLOCKS);
    ttn_status status = ttn_blas_start(1, NULL, err);
    return status == TTN_OK ? ttn_device_cuda(0, &device, err) : status;
}

/* In this order of warps and lanes; what a failed check has queued or broken is gone afterwards. */
static ttn_status in_order(emulation_order order, uint64_t seed, const op_check *c, double *ret_worst, ttn_error *err,
                           ttn_status (*check)(const op_check *c, double *ret_worst, ttn_error *err))
{
    emulation_order before;
    uint64_t seed_before;
    emulation_get_order(&before, &seed_before);
    emulation_set_order(order, seed);
    const ttn_status status = check(c, ret_worst, err);
    emulation_reset();
    emulation_set_order(before, seed_before);
    return status;
}

static ttn_status in_orders(const op_check *c, double *ret_worst, ttn_error *err,
                            ttn_status (*check)(const op_check *c, double *ret_worst, ttn_error *err))
{
    emulation_order order;
    uint64_t seed;
    emulation_get_order(&order, &seed);
    if (!ttn_test_long()) return in_order(order, seed, c, ret_worst, err, check);
    ttn_status status = in_order(EMULATION_FORWARD, 1, c, ret_worst, err, check);
    if (status == TTN_OK) status = in_order(EMULATION_REVERSE, 1, c, ret_worst, err, check);
    for (uint64_t s = 1; s <= 3 && status == TTN_OK; s++)
        status = in_order(EMULATION_RANDOM, s, c, ret_worst, err, check);
    return status;
}

/* ---- checks ---- */

static ttn_status compare(const op_check *c, double *ret_worst, ttn_error *err)
{
    ttn_gradcheck_options o = options();
    ttn_gradcheck_values there = {0};
    ttn_gradcheck_values here = {0};
    double worst = 0;
    ttn_status status = ttn_gradcheck_compute(c->op->name, c->k, &o, &there, err);
    o.device = NULL;
    if (status == TTN_OK) status = ttn_gradcheck_compute(c->op->name, c->k, &o, &here, err);
    if (status == TTN_OK) status = ttn_gradcheck_compare(&here, &there, BOUND, &worst, err);
    if (worst > *ret_worst) *ret_worst = worst;
    ttn_free(there.value);
    ttn_free(here.value);
    return status;
}

static ttn_status try_property(const op_check *c, double *ret_worst, ttn_error *err)
{
    *ret_worst = 0;
    const ttn_gradcheck_options o = options();
    return c->property->check(c->op, &c->op->cases[c->k], &o, err);
}

static ttn_status check_against_the_cpu(const op_check *c, double *ret_worst, ttn_error *err)
{
    return in_orders(c, ret_worst, err, compare);
}

static ttn_status check_property(const op_check *c, double *ret_worst, ttn_error *err)
{
    return in_order(EMULATION_RANDOM, ttn_test_seed(), c, ret_worst, err, try_property);
}

/* ---- the list ---- */

/* How much there is to do, roughly: elements of the inputs, and pairs of rows. */
static int64_t size_of(const ttn_op *op, const ttn_case *k)
{
    int64_t n = k->used.rows * k->used.rows + k->used.picks + k->cap.rows + k->cap.picks;
    for (int i = 0; i < op->n_in; i++) {
        int64_t width = 1;
        for (int d = k->in[i].axis == TTN_FIXED ? 0 : 1; d < k->in[i].ndim; d++)
            width *= k->in[i].dim[d];
        n += width * (k->in[i].axis == TTN_ROWS ? 480 + k->used.rows : 1);
    }
    return n;
}

/* The smallest case that has something to check and a row to check it in; -1: none. */
static int smallest(const ttn_op *op, const ttn_property *p)
{
    int best = -1;
    for (int k = 0; k < op->n_cases; k++) {
        const ttn_case *c = &op->cases[k];
        if (!p->applies(op, c) || (c->used.rows == 0 && c->used.picks == 0 && c->used.seqs == 0)) continue;
        if (best < 0 || size_of(op, c) < size_of(op, &op->cases[best])) best = k;
    }
    return best;
}

static int is_long(const ttn_case *c)
{
    enum { LONG = 200 };
    return c->used.rows > LONG;
}

/* The long cases are there for the borders of tiles and lanes, which are the same ones in both precisions. */
static int is_compared(const ttn_case *c)
{
    return !c->refused && !c->fails && (sizeof(real) == 4 || !is_long(c) || ttn_test_long());
}

static void list_op(const ttn_op *op)
{
    for (int k = 0; k < op->n_cases; k++)
        if (is_compared(&op->cases[k])) op_check_add(op, k, "against the CPU", check_against_the_cpu, NULL);
    for (const ttn_property *p = ttn_properties; p->name; p++) {
        if (!p->on_devices) continue;
        const int only = smallest(op, p);
        for (int k = 0; k < op->n_cases; k++)
            if (p->applies(op, &op->cases[k]) &&
                ((ttn_test_long() && !is_long(&op->cases[k])) || k == only || op->cases[k].fails))
                op_check_add(op, k, p->name, check_property, p);
    }
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    for (int o = 0; ttn_ops[o]; o++)
        if (ttn_cuda_kernels(ttn_ops[o]->name)) list_op(ttn_ops[o]); /* the others: test_encoder_cuda says which */
    double worst;
    const int failed = op_checks_run(__FILE__, begin, &worst);
    printf("# against the CPU: at most %.1e of a value's scale, allowed %.1e\n", worst, BOUND);
    return failed;
}
