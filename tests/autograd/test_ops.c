/* Every property of autograd/gradcheck.h on every case of every op; in f32 also against the same case in f64.
 *
 * An op that reads what it did not declare crashes. So the checks of one op run together in a child process, which notes
 * its results in shared memory; the check during which it died is the one that failed, and the rest go on in another
 * child. The parent runs no parallel region: the threads of libgomp do not survive a fork. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "autograd/gradcheck.h"
#include "core/blas.h"
#include "core/memory.h"
#include "tests/harness/test.h"

#ifndef TTN_REAL64
/* The f64 library is linked into the f32 program as well, its symbols renamed (Makefile). */
ttn_status f64_ttn_gradcheck_compute(const char *op, int k, const ttn_gradcheck_options *o, ttn_gradcheck_values *ret,
                                     ttn_error *err);
ttn_status f64_ttn_blas_start(int n_thread, ttn_blas_info *ret, ttn_error *err);
#endif

/* f32 against f64, in units of 1 + the value's largest element: 32 roundings of 2^-24. */
#define F32_BOUND 2e-6

enum { MOST_THREADS = 8, MOST_TESTS = 4000, NAME_ROOM = 160 };

typedef struct {
    char name[NAME_ROOM];
    const ttn_op *op;
    int k;                                                 /* the case; -1: the op as a whole */
    ttn_status (*whole)(const ttn_op *op, ttn_error *err); /* k < 0 */
    const ttn_property *property;                          /* NULL with k >= 0: f32 against f64 */
} item;

typedef struct {
    int begun, done;
    ttn_status status;
    double worst;
    char text[TTN_ERROR_TEXT + 64];
} result;

static item items[MOST_TESTS];
static int n_item;
static result *results; /* (n_item), shared with the children */

static ttn_gradcheck_options options(void)
{
    return (ttn_gradcheck_options){.seed = ttn_test_seed(),
                                   .most_elements = ttn_test_long() ? 20000 : ttn_scaled(100, 20)};
}

static ttn_status idle_reads(const ttn_op *op, ttn_error *err)
{
    const ttn_gradcheck_options o = options();
    return ttn_gradcheck_idle_reads(op, &o, err);
}

#ifndef TTN_REAL64
static ttn_status check_precision(const item *it, double *ret_worst, ttn_error *err)
{
    const ttn_gradcheck_options o = options();
    ttn_gradcheck_values here = {0};
    ttn_gradcheck_values reference = {0};
    ttn_status status = ttn_gradcheck_compute(it->op->name, it->k, &o, &here, err);
    if (status == TTN_OK) status = f64_ttn_gradcheck_compute(it->op->name, it->k, &o, &reference, err);
    if (status == TTN_OK) status = ttn_gradcheck_compare(&reference, &here, F32_BOUND, ret_worst, err);
    ttn_free(here.value);
    ttn_free(reference.value);
    return status;
}
#endif

/* ---- in the child ---- */

static void run_item(const item *it, result *r)
{
    const ttn_gradcheck_options o = options();
    ttn_error err = {0};
    if (it->k < 0) {
        r->status = it->whole(it->op, &err);
    } else if (it->property) {
        r->status = it->property->check(it->op, &it->op->cases[it->k], &o, &err);
    } else {
#ifndef TTN_REAL64
        r->status = check_precision(it, &r->worst, &err);
#endif
    }
    snprintf(r->text, sizeof r->text, "%s", err.text);
}

static int run_op(void *arg)
{
    const int from = *(const int *)arg;
    ttn_error err = {0};
    ttn_status status = ttn_blas_start(MOST_THREADS, NULL, &err);
#ifndef TTN_REAL64
    if (status == TTN_OK) status = f64_ttn_blas_start(MOST_THREADS, NULL, &err);
#endif
    for (int i = from; i < n_item && items[i].op == items[from].op; i++) {
        results[i].begun = 1;
        results[i].status = status;
        snprintf(results[i].text, sizeof results[i].text, "%s", err.text);
        if (status == TTN_OK) run_item(&items[i], &results[i]);
        results[i].done = 1;
    }
    return 0;
}

/* ---- in the parent ---- */

/* All checks of this op, from this one on, until it is done or has killed its child. */
static void run_until(int i)
{
    for (int from = i; !results[i].done;) {
        const ttn_child child = run_in_child((ttn_child_limit){.seconds = 300}, run_op, &from);
        while (from < n_item && items[from].op == items[i].op && results[from].done)
            from++;
        if (from == n_item || items[from].op != items[i].op) return;
        result *r = &results[from];
        r->done = 1;
        r->status = TTN_EINTERNAL;
        const char *output = child.output;
        const size_t length = strlen(output);
        snprintf(r->text, sizeof r->text,
                 "%s: the check %s (signal %d, exit code %d)%s: does it read what it has not declared? %.300s",
                 items[from].op->name, r->begun ? "died" : "did not begin", child.exited ? 0 : child.signal,
                 child.exited ? child.exit_code : 0, child.timed_out ? ", out of time" : "",
                 length > 300 ? output + length - 300 : output);
    }
}

static void report(void **state)
{
    const item *it = *state;
    const int i = (int)(it - items);
    if (!results[i].done) run_until(i);
    if (results[i].status != TTN_OK) fail_msg("%s: %s", ttn_status_name(results[i].status), results[i].text);
}

/* ---- the list ---- */

static item *add(const ttn_op *op, int k, const char *what)
{
    if (n_item == MOST_TESTS) {
        fprintf(stderr, "more than %d tests: raise MOST_TESTS\n", MOST_TESTS);
        abort();
    }
    item *it = &items[n_item++];
    *it = (item){.op = op, .k = k};
    if (k < 0)
        snprintf(it->name, sizeof it->name, "%s: %s", op->name, what);
    else
        snprintf(it->name, sizeof it->name, "%s case %d (%s): %s", op->name, k, op->cases[k].about, what);
    return it;
}

static void list_op(const ttn_op *op)
{
    add(op, -1, "descriptor")->whole = ttn_gradcheck_descriptor;
    for (int k = 0; k < op->n_cases; k++) {
        const ttn_case *c = &op->cases[k];
        for (const ttn_property *p = ttn_properties; p->name; p++)
            if (p->applies(op, c)) add(op, k, p->name)->property = p;
        if (sizeof(real) == 4 && !c->refused && !c->fails) add(op, k, "f32 against f64");
    }
    add(op, -1, "every declared read is read")->whole = idle_reads;
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    for (int o = 0; ttn_ops[o]; o++)
        list_op(ttn_ops[o]);
    const size_t bytes = (size_t)n_item * sizeof *results;
    results = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (results == MAP_FAILED) return 1;
    static struct CMUnitTest tests[MOST_TESTS];
    for (int i = 0; i < n_item; i++)
        tests[i] = (struct CMUnitTest){.name = items[i].name, .test_func = report, .initial_state = &items[i]};
    const int failed = _cmocka_run_group_tests(__FILE__, tests, (size_t)n_item, NULL, NULL);
    double worst = 0;
    for (int i = 0; i < n_item; i++)
        worst = results[i].worst > worst ? results[i].worst : worst;
    if (sizeof(real) == 4)
        printf("# f32 against f64: at most %.1e of a value's scale, allowed %.1e\n", worst, F32_BOUND);
    return failed;
}
