/* CUDA kernels where they come in several tiles or pieces: cases that are larger than those that an op's CPU kernels need,
 * each against the CPU and with every property of autograd/gradcheck.h that is about a device. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "autograd/ops.h"
#include "autograd/ops/ffn.h"
#include "core/blas.h"
#include "core/memory.h"
#include "tests/cuda/emulation.h"
#include "tests/harness/op_checks.h"
#include "tests/harness/test.h"

/* As in test_ops_cuda.c. */
#define BOUND (sizeof(real) == 4 ? 1e-5 : 1e-12)

#define THREE(...)                            \
    {                                         \
        __VA_ARGS__, __VA_ARGS__, __VA_ARGS__ \
    }

static const ttn_attn_exact_options two_dropped = {.heads = 2, .dropout = 0.3};
static const ttn_attn_exact_options one_causal = {.heads = 1, .causal = 1};
static const ttn_attn_exact_options one_causal_dropped = {.heads = 1, .causal = 1, .dropout = 0.2};
static const ttn_ffn_attributes silu = {.act = TTN_ACT_SILU};

/* Heads are cut into pieces of 128 columns; kernels are made for 32, 64 and 128. Vectors are read where D is a multiple of
 * 4 (f32) or 2 (f64). Tiles have 64 or 32 rows. */
static const ttn_case wide_heads[] = {
    {.about = "two heads of 40, two tiles, dropout",
     .used = {.rows = 67, .seqs = 1},
     .span = {{1, 66}},
     .in = THREE(TTN_ROWS_OF(80)),
     .attr = &two_dropped},
    {.about = "a head of 101, causal, two tiles",
     .used = {.rows = 69, .seqs = 2},
     .span = {{0, 2}, {3, 65}},
     .in = THREE(TTN_ROWS_OF(101)),
     .attr = &one_causal},
    {.about = "a head of 131, in two pieces",
     .used = {.rows = 24, .seqs = 1},
     .span = {{3, 20}},
     .in = THREE(TTN_ROWS_OF(131)),
     .attr = &one_causal_dropped},
};

/* All weights are equal, and so are the rows of v: where f32 sums up one row after the other, rounding goes one way. */
static const ttn_case equal_rows[] = {
    {.about = "700 equal rows",
     .used = {.rows = 700, .seqs = 1},
     .span = {{0, 700}},
     .in = THREE(TTN_ROWS_OF(2)),
     .range = {{1e-30, 1e-30}, {1e-30, 1e-30}, {0.7, 0.7}},
     .attr = &(const ttn_attn_exact_options){.heads = 1}},
};

static const ttn_case long_ffn[] = {
    {.about = "two tiles of 2,400 rows, the second in part",
     .used = {.rows = 2403},
     .cap = {.rows = 4800},
     .in = {TTN_ROWS_OF(2), TTN_MATRIX(3, 2), TTN_VECTOR(3), TTN_MATRIX(2, 3), TTN_VECTOR(2), TTN_MATRIX(3, 2),
            TTN_VECTOR(3)},
     .attr = &silu},
};

/* With two blocks for the bias's gradient, 32 columns each at a time. */
static const ttn_case wide_linear[] = {
    {.about = "70 columns of a bias", .used = {.rows = 9}, .in = {TTN_ROWS_OF(1), TTN_MATRIX(70, 1), TTN_VECTOR(70)}},
};

static ttn_device *device; /* of this child */

static ttn_gradcheck_options options(void)
{
    return (ttn_gradcheck_options){.seed = ttn_test_seed(), .device = device, .without_aux = 1};
}

static ttn_status begin(ttn_error *err)
{
    enum { FEW_BLOCKS = 2 };
    emulation_set_most_blocks(FEW_BLOCKS);
    ttn_status status = ttn_blas_start(1, NULL, err);
    return status == TTN_OK ? ttn_device_cuda(0, &device, err) : status;
}

static ttn_status check_against_the_cpu(const op_check *c, double *ret_worst, ttn_error *err)
{
    ttn_gradcheck_options o = options();
    ttn_gradcheck_values there = {0};
    ttn_gradcheck_values here = {0};
    ttn_status status = ttn_gradcheck_compute_case(c->op, &c->op->cases[c->k], &o, &there, err);
    o.device = NULL;
    if (status == TTN_OK) status = ttn_gradcheck_compute_case(c->op, &c->op->cases[c->k], &o, &here, err);
    if (status == TTN_OK) status = ttn_gradcheck_compare(&here, &there, BOUND, ret_worst, err);
    ttn_free(there.value);
    ttn_free(here.value);
    return status;
}

static ttn_status check_property(const op_check *c, double *ret_worst, ttn_error *err)
{
    *ret_worst = 0; /* nothing is compared */
    const ttn_gradcheck_options o = options();
    const ttn_status status = c->property->check(c->op, &c->op->cases[c->k], &o, err);
    emulation_reset();
    return status;
}

/* out is v, to 2e-6 in f32: 64 rows at a time are 5e-7 off, all rows one after the other 7e-6. */
static ttn_status check_equal_rows(const op_check *c, double *ret_worst, ttn_error *err)
{
    *ret_worst = 0; /* not beside the CPU */
    const ttn_gradcheck_options o = options();
    const double bound = sizeof(real) == 4 ? 2e-6 : 1e-14;
    const double value = (double)(float)c->op->cases[c->k].range[2].lo;
    ttn_gradcheck_values there = {0};
    ttn_status status = ttn_gradcheck_compute_case(c->op, &c->op->cases[c->k], &o, &there, err);
    for (int part = 0; part < there.n_part; part++)
        for (int64_t e = 0; e < there.part[part].n && status == TTN_OK; e++) {
            const double out = there.value[there.part[part].first + e];
            if (strcmp(there.part[part].name, "out 0") != 0 || fabs(out / value - 1) <= bound) continue;
            status =
                TTN_FAIL(err, TTN_EINTERNAL, "element %lld of out is %.9g, expected %.9g", (long long)e, out, value);
        }
    ttn_free(there.value);
    return status;
}

/* The op, with these cases in the place of its own. */
static ttn_op with_cases(const char *name, const ttn_case *cases, int n_case)
{
    ttn_op op = *ttn_op_find(name);
    op.cases = cases;
    op.n_cases = n_case;
    return op;
}

/* The properties that depend on how tiles and pieces are cut, each on the last case; TTN_LONG=1: all, on all cases. */
static int is_tried(const ttn_property *p, const ttn_op *op, int k)
{
    if (!p->on_devices || !p->applies(op, &op->cases[k])) return 0;
    if (ttn_test_long()) return 1;
    return k == op->n_cases - 1 &&
           (strcmp(p->name, "shared buffers") == 0 || strcmp(p->name, "spare aux left out") == 0);
}

static void list(const ttn_op *op)
{
    for (int k = 0; k < op->n_cases; k++)
        op_check_add(op, k, "against the CPU", check_against_the_cpu, NULL);
    for (const ttn_property *p = ttn_properties; p->name; p++)
        for (int k = 0; k < op->n_cases; k++)
            if (is_tried(p, op, k)) op_check_add(op, k, p->name, check_property, p);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const ttn_op attn_exact = with_cases("attn_exact", wide_heads, sizeof wide_heads / sizeof *wide_heads);
    const ttn_op ffn = with_cases("ffn", long_ffn, sizeof long_ffn / sizeof *long_ffn);
    const ttn_op linear = with_cases("linear", wide_linear, sizeof wide_linear / sizeof *wide_linear);
    const ttn_op equal = with_cases("attn_exact", equal_rows, 1);
    list(&attn_exact);
    op_check_add(&equal, 0, "out is v", check_equal_rows, NULL);
    list(&ffn);
    list(&linear);
    double worst;
    const int failed = op_checks_run(__FILE__, begin, &worst);
    printf("# against the CPU: at most %.1e of a value's scale, allowed %.1e\n", worst, BOUND);
    return failed;
}
