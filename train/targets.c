#include <assert.h>
#include "train/targets.h"

ttn_status ttn_targets_exist(const ttn_sampler_options *o, int is_hidden, int *ret, ttn_error *err)
{
    ttn_sampler *sampler = NULL;
    ttn_batch *batch = NULL;
    assert(o->epochs > 0);
    *ret = 0;
    ttn_status status = ttn_sampler_create(o, &sampler, err);
    if (status == TTN_OK) status = ttn_batch_create(o->capacity.extent, &batch, err);
    while (status == TTN_OK && !*ret) {
        status = ttn_sampler_next(sampler, batch, err);
        if (status == TTN_OK) *ret = (is_hidden ? batch->masked : batch->targets) > 0;
    }
    ttn_batch_destroy(batch);
    ttn_sampler_destroy(sampler);
    return status == TTN_EOF ? TTN_OK : status;
}
