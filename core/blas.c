#include <stddef.h>
#include "core/blas.h"

const char *ttn_blas_wanted_kernel(void)
{
    return NULL;
}
