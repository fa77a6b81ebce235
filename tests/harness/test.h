/* What every test program shares. A test program is one main:
 *
 *     int main(int argc, char **argv)
 *     {
 *         ttn_test_start(argc, argv);
 *         const struct CMUnitTest tests[] = {cmocka_unit_test(the_property_it_holds), …};
 *         return ttn_test_run(tests);
 *     }
 *
 * The names of the functions are what the runner prints: they say the property.
 */
#ifndef TTN_TEST_H
#define TTN_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/real.h"
#include "core/status.h"

/* ttn_start for plans of up to n_thread threads; or print why not, and exit with 2. */
void ttn_test_threads(int n_thread);

/* First line of main, the way the program goes: start again in the environment that OpenBLAS and OpenMP need, and
 * ttn_test_threads(1) (a test of plans with more threads asks for them next). Then TAP output. When argv is
 * "--child NAME …", hand over to the function registered for NAME, not started, and exit with what it returns. */
void ttn_test_start(int argc, char **argv);

#define ttn_test_run(tests) cmocka_run_group_tests_name(__FILE__, (tests), NULL, NULL)

/* The seed of this run (TTN_SEED, default fixed); printed so that a failure can be run again. */
uint64_t ttn_test_seed(void);

/* n loops or elements, times TTN_SCALE (when unset: 0.1 under sanitizers, else 1), at least `least`. */
int64_t ttn_scaled(int64_t n, int64_t least);

/* TTN_LONG=1: full sweeps (make test-long). */
int ttn_test_long(void);

/* Built with AddressSanitizer. Its shadow takes terabytes of addresses, so a limit on them cannot be tested there. */
int ttn_test_sanitized(void);

/* Where the test may write: an empty folder of its own, removed at exit. */
const char *ttn_test_folder(void);

/* ---- cases that must exit, be killed or run out of memory ---- */

typedef struct {
    double seconds;                 /* wall clock; then it is killed. 0: 60 */
    int64_t address_space;          /* RLIMIT_AS in bytes; 0: none. Under AddressSanitizer the test is skipped */
    int64_t file_size;              /* RLIMIT_FSIZE in bytes; 0: none */
    const char *const *environment; /* "NAME=value" sets, "NAME" removes; NULL at the end; NULL: as here */
} ttn_child_limit;

typedef struct {
    int exited; /* 1: exit_code holds; 0: killed by `signal` */
    int exit_code;
    int signal;
    int timed_out;
    char output[16384]; /* stdout and stderr together, cut at this size, with a 0 at the end */
} ttn_child;

/* Run body(arg) in a forked child and wait; the child's exit code is what body returns. Assertions work in it: one that
 * fails prints and aborts. skip_because does not. A parallel region in the child hangs once the parent has had one (the
 * threads of libgomp do not survive a fork): then use ttn_run_program. */
ttn_child run_in_child(ttn_child_limit limit, int (*body)(void *arg), void *arg);

/* Run a program (argv[0] is its path; NULL at the end) the same way. To run this test program again under another
 * environment (another BLAS kernel): argv = {ttn_test_self(), "--child", NAME, …}. */
ttn_child ttn_run_program(ttn_child_limit limit, const char *const *argv);
const char *ttn_test_self(void);

/* Register what "--child NAME" runs: call before ttn_test_start. argc, argv: what stands after NAME. */
void ttn_test_child(const char *name, int (*body)(int argc, char **argv));

/* ---- assertions ---- */

/* The call succeeded; else the test fails with err's text. */
#define assert_ok(call, err) ttn_assert_ok((call), (err), #call, __FILE__, __LINE__)
void ttn_assert_ok(ttn_status status, const ttn_error *err, const char *call, const char *file, int line);

/* The call failed with this status, and err's text contains `words`. */
#define assert_fails(call, status, err, words) \
    ttn_assert_fails((call), (status), (err), (words), #call, __FILE__, __LINE__)
void ttn_assert_fails(ttn_status got, ttn_status wanted, const ttn_error *err, const char *words, const char *call,
                      const char *file, int line);

/* words stand somewhere in text; else both are printed. */
#define assert_contains(text, words) ttn_assert_contains((text), (words), __FILE__, __LINE__)
void ttn_assert_contains(const char *text, const char *words, const char *file, int line);

/* n bytes are the same; else the first place where they differ is named. */
#define assert_same_bits(a, b, n) ttn_assert_same_bits((a), (b), (n), __FILE__, __LINE__)
void ttn_assert_same_bits(const void *a, const void *b, size_t n, const char *file, int line);

/* value <= bound (NaN fails), printed with both numbers and `what`. */
#define assert_at_most(value, bound, what) ttn_assert_at_most((value), (bound), (what), __FILE__, __LINE__)
void ttn_assert_at_most(double value, double bound, const char *what, const char *file, int line);

/* A test that cannot run here: counted apart, never as passed, with the reason. */
#define skip_because(...) ttn_skip_because(__VA_ARGS__)
void ttn_skip_because(const char *format, ...) TTN_PRINTF(1, 2);

#endif
