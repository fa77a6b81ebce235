#include "train/run_batch.h"

ttn_status ttn_run_batch(ttn_plan *p, const ttn_batch *b, const ttn_run_batch_when *when, ttn_error *err)
{
    ttn_status status = ttn_plan_bind(p, "tokens", b->token, err);
    if (status == TTN_OK) status = ttn_plan_bind(p, "index", b->index, err);
    if (status == TTN_OK) status = ttn_plan_bind(p, "target", b->target, err);
    if (status != TTN_OK) return status;
    const ttn_feed feed = {
        .used = b->used,
        .span = b->span,
        .start = b->start,
        .sample = b->sample,
        .seed = when->seed,
        .step = (uint64_t)when->step,
        .training = when->is_training,
    };
    return ttn_plan_run(p, &feed, NULL, err);
}
