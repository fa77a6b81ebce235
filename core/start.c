#include <omp.h>
#include <stdlib.h>
#include "core/blas.h"
#include "core/cpu.h"
#include "core/start.h"
#include "core/titin.h"

ttn_status ttn_start(int n_thread, ttn_error *err)
{
    if (n_thread < 1) return TTN_FAIL(err, TTN_EINVAL, "start with %d threads: at least 1 is needed", n_thread);
    ttn_status status = ttn_cpu_check(err);
    if (status == TTN_OK) status = ttn_blas_start(n_thread, NULL, err);
    return status;
}

int ttn_start_threads(int cores)
{
    const char *asked = getenv("OMP_NUM_THREADS");
    if (asked && *asked) return omp_get_max_threads();
    int n = cores;
    if (n > TTN_BLAS_MAX_THREADS) n = TTN_BLAS_MAX_THREADS;
    if (n > omp_get_thread_limit()) n = omp_get_thread_limit();
    return n > 1 ? n : 1;
}

const char *ttn_version(void)
{
    return TTN_VERSION;
}
