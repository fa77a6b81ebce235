/* In the place of device_cuda.c where the library is built without CUDA. */
#include "core/device.h"

ttn_status ttn_device_cuda(int index, ttn_device **ret, ttn_error *err)
{
    *ret = NULL;
    return TTN_FAIL(
        err, TTN_EDEVICE,
        "GPU %d was asked for, but this titin was built without CUDA; run on the processor or build with CUDA=1",
        index);
}
