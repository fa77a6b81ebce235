/* What devices of every kind do alike. */
#include <inttypes.h>
#include <limits.h>
#include "core/device.h"

ttn_status ttn_device_check_product(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc,
                                    ttn_error *err)
{
    const struct {
        const char *name;
        int64_t size;
    } sizes[] = {{"m", m}, {"n", n}, {"k", k}, {"the ld of A", lda}, {"the ld of B", ldb}, {"the ld of C", ldc}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].size < 0 || sizes[i].size > INT_MAX)
            return TTN_FAIL(err, TTN_EINVAL, "a product whose %s is %" PRId64 ": 0 to %d is possible in one call",
                            sizes[i].name, sizes[i].size, INT_MAX);
    return TTN_OK;
}
