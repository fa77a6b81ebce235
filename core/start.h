/* Once in a process, before anything is computed. */
#ifndef TTN_START_H
#define TTN_START_H

#include "core/status.h"

TTN_API_BEGIN

/* What ttn_reexec has changed. */
enum {
    TTN_REEXEC_KERNEL = 1, /* OPENBLAS_CORETYPE: the kernel of OpenBLAS that fits this processor */
    TTN_REEXEC_SPIN = 2,   /* GOMP_SPINCOUNT: waiting threads go to sleep early, so that others can compute */
};

/* First line of main, for a program that wants titin's speed without its user setting anything: OpenBLAS and libgomp read the
 * environment once, when they are loaded, so a process that needs it different executes itself again, at most once; it then
 * takes back the name that ps shows. What the user has set stays (GOMP_SPINCOUNT also where OMP_WAIT_POLICY is set). Returns what
 * was changed (0: nothing, or execv failed; ttn_start then says what is wrong). Nothing may be open and no thread running. argv
 * is main's, NULL at its end.
 *
 * It binds no threads (OMP_PROC_BIND, OMP_PLACES): whether a run wants every core is known only after its configuration
 * has been read, and a bound process that does not want them all is bound to the first core, as is the one beside it. */
int ttn_reexec(char **argv);

/* Call it once, before the first plan; a plan that is created or run without it is refused. The processor has what this
 * build needs, and OpenBLAS is the right flavour, runs the kernel that fits, keeps no threads of its own and multiplies
 * correctly also when n_thread threads call it at once (10 to 40 ms). From then on OpenBLAS has one thread in this process;
 * titin's own are OpenMP's. Calling it again is allowed; plans may use as many threads as the largest
 * n_thread that succeeded. Not from two threads at once.
 * TTN_EINVAL: n_thread is below 1. TTN_EDEVICE: a sentence that says what to install, to set or to build again; also for
 * more than 128 threads, for which OpenBLAS has no room. TTN_ENUMERIC: wrong products. TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_start(int n_thread, ttn_error *err);

/* How many threads to start with where nobody chose: OMP_NUM_THREADS, where it is set, even if that is too many for ttn_start;
 * else one for each of the `cores` that this process may use, at most 128 and OMP_THREAD_LIMIT. At least 1. */
int ttn_start_threads(int cores);

/* The library's own TTN_VERSION, which may not be the header's. */
const char *ttn_version(void);

TTN_API_END
#endif
