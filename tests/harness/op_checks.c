#include "tests/harness/op_checks.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "tests/harness/test.h"

enum { MOST_CHECKS = 4000 };

typedef struct {
    int begun, done;
    ttn_status status;
    double worst;
    char text[TTN_ERROR_TEXT + 64];
} result;

static op_check checks[MOST_CHECKS];
static int n_check;
static result *results; /* (n_check), shared with the children */
static ttn_status (*begin_child)(ttn_error *err);

void op_check_add(const ttn_op *op, int k, const char *what, op_check_run run, const ttn_property *property)
{
    if (n_check == MOST_CHECKS) {
        fprintf(stderr, "more than %d checks: raise MOST_CHECKS\n", MOST_CHECKS);
        abort();
    }
    op_check *c = &checks[n_check++];
    *c = (op_check){.op = op, .k = k, .run = run, .property = property};
    if (k < 0)
        snprintf(c->name, sizeof c->name, "%s: %s", op->name, what);
    else
        snprintf(c->name, sizeof c->name, "%s case %d (%s): %s", op->name, k, op->cases[k].about, what);
}

/* ---- in the child ---- */

static int run_op(void *arg)
{
    const int from = *(const int *)arg;
    ttn_error why = {0};
    const ttn_status ready = begin_child(&why);
    for (int i = from; i < n_check && checks[i].op == checks[from].op; i++) {
        result *r = &results[i];
        ttn_error err = why;
        r->begun = 1;
        r->status = ready == TTN_OK ? checks[i].run(&checks[i], &r->worst, &err) : ready;
        snprintf(r->text, sizeof r->text, "%s", err.text);
        r->done = 1;
    }
    return 0;
}

/* ---- in the parent ---- */

/* All checks of this op, from this one on, until it is done or has killed its child. */
static void run_until(int i)
{
    for (int from = i; !results[i].done;) {
        const ttn_child child = run_in_child((ttn_child_limit){.seconds = ttn_test_long() ? 1500 : 300}, run_op, &from);
        while (from < n_check && checks[from].op == checks[i].op && results[from].done)
            from++;
        if (from == n_check || checks[from].op != checks[i].op) return;
        result *r = &results[from];
        r->done = 1;
        r->status = TTN_EINTERNAL;
        const char *output = child.output;
        const size_t length = strlen(output);
        snprintf(r->text, sizeof r->text,
                 "%s: the check %s (signal %d, exit code %d)%s: does it read what it has not declared? %.300s",
                 checks[from].op->name, r->begun ? "died" : "did not begin", child.exited ? 0 : child.signal,
                 child.exited ? child.exit_code : 0, child.timed_out ? ", out of time" : "",
                 length > 300 ? output + length - 300 : output);
    }
}

static void report(void **state)
{
    const int i = (int)((const op_check *)*state - checks);
    if (!results[i].done) run_until(i);
    if (results[i].status != TTN_OK) fail_msg("%s: %s", ttn_status_name(results[i].status), results[i].text);
}

int op_checks_run(const char *file, ttn_status (*begin)(ttn_error *err), double *ret_worst)
{
    static struct CMUnitTest tests[MOST_CHECKS];
    *ret_worst = 0;
    begin_child = begin;
    results = mmap(NULL, MOST_CHECKS * sizeof *results, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (results == MAP_FAILED) return 1;
    for (int i = 0; i < n_check; i++)
        tests[i] = (struct CMUnitTest){.name = checks[i].name, .test_func = report, .initial_state = &checks[i]};
    const int failed = _cmocka_run_group_tests(file, tests, (size_t)n_check, NULL, NULL);
    for (int i = 0; i < n_check; i++)
        *ret_worst = results[i].worst > *ret_worst ? results[i].worst : *ret_worst;
    return failed;
}
