/* Once in a process, before anything is computed. */
#ifndef TTN_START_H
#define TTN_START_H

#include "core/status.h"

TTN_API_BEGIN

/* The processor has what this build needs, and OpenBLAS is the right flavour, runs the kernel that fits, keeps no threads of
 * its own and multiplies correctly also when n_thread threads call it at once (10 to 40 ms). From then on OpenBLAS has one
 * thread in this process; titin's own are OpenMP's.
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
