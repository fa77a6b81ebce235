/* Every property of autograd/gradcheck.h on every case of every op; in f32 also against the same case in f64. */
#include <stdio.h>
#include "core/blas.h"
#include "core/memory.h"
#include "tests/harness/op_checks.h"
#include "tests/harness/test.h"

#ifndef TTN_REAL64
/* The f64 library is linked into the f32 program as well, its symbols renamed (Makefile). */
ttn_status f64_ttn_gradcheck_compute(const char *op, int k, const ttn_gradcheck_options *o, ttn_gradcheck_values *ret,
                                     ttn_error *err);
ttn_status f64_ttn_blas_start(int n_thread, ttn_blas_info *ret, ttn_error *err);
#endif

/* f32 against f64, in units of 1 + the value's largest element: 32 roundings of 2^-24. */
#define F32_BOUND 2e-6

enum { MOST_THREADS = 8 };

static ttn_gradcheck_options options(void)
{
    return (ttn_gradcheck_options){.seed = ttn_test_seed(),
                                   .most_elements = ttn_test_long() ? 20000 : ttn_scaled(100, 20)};
}

static ttn_status check_descriptor(const op_check *c, double *ret_worst, ttn_error *err)
{
    *ret_worst = 0;
    return ttn_gradcheck_descriptor(c->op, err);
}

static ttn_status check_idle_reads(const op_check *c, double *ret_worst, ttn_error *err)
{
    *ret_worst = 0;
    const ttn_gradcheck_options o = options();
    return ttn_gradcheck_idle_reads(c->op, &o, err);
}

static ttn_status check_property(const op_check *c, double *ret_worst, ttn_error *err)
{
    *ret_worst = 0;
    const ttn_gradcheck_options o = options();
    return c->property->check(c->op, &c->op->cases[c->k], &o, err);
}

#ifndef TTN_REAL64
static ttn_status check_precision(const op_check *c, double *ret_worst, ttn_error *err)
{
    const ttn_gradcheck_options o = options();
    ttn_gradcheck_values here = {0};
    ttn_gradcheck_values reference = {0};
    ttn_status status = ttn_gradcheck_compute(c->op->name, c->k, &o, &here, err);
    if (status == TTN_OK) status = f64_ttn_gradcheck_compute(c->op->name, c->k, &o, &reference, err);
    if (status == TTN_OK) status = ttn_gradcheck_compare(&reference, &here, F32_BOUND, ret_worst, err);
    ttn_free(here.value);
    ttn_free(reference.value);
    return status;
}
#endif

static ttn_status begin(ttn_error *err)
{
    ttn_status status = ttn_blas_start(MOST_THREADS, NULL, err);
#ifndef TTN_REAL64
    if (status == TTN_OK) status = f64_ttn_blas_start(MOST_THREADS, NULL, err);
#endif
    return status;
}

static void list_op(const ttn_op *op)
{
    op_check_add(op, -1, "descriptor", check_descriptor, NULL);
    for (int k = 0; k < op->n_cases; k++) {
        const ttn_case *c = &op->cases[k];
        for (const ttn_property *p = ttn_properties; p->name; p++)
            if (p->applies(op, c)) op_check_add(op, k, p->name, check_property, p);
#ifndef TTN_REAL64
        if (!c->refused && !c->fails) op_check_add(op, k, "f32 against f64", check_precision, NULL);
#endif
    }
    op_check_add(op, -1, "every declared read is read", check_idle_reads, NULL);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    for (int o = 0; ttn_ops[o]; o++)
        list_op(ttn_ops[o]);
    double worst;
    const int failed = op_checks_run(__FILE__, begin, &worst);
    if (sizeof(real) == 4)
        printf("# f32 against f64: at most %.1e of a value's scale, allowed %.1e\n", worst, F32_BOUND);
    return failed;
}
