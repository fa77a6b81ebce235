#include <inttypes.h>
#include <string.h>
#include "autograd/attention.h"

const ttn_op *ttn_attention_find(const char *kind)
{
    static const char prefix[] = "attn_";
    const size_t length = sizeof prefix - 1;
    for (int i = 0; ttn_ops[i]; i++) {
        const ttn_op *op = ttn_ops[i];
        if (op->attention && strncmp(op->name, prefix, length) == 0 && strcmp(op->name + length, kind) == 0) return op;
    }
    return NULL;
}

ttn_status ttn_map_span(const ttn_call *c, const char *op, int64_t seq, int64_t head, int64_t heads, int64_t n_row,
                        const int64_t *row, int64_t P, ttn_span *ret, ttn_error *err)
{
    const ttn_device *d = c->on->device;
    if (d && d->ops->kernels != TTN_KERNELS_CPU)
        return TTN_FAIL(err, TTN_EINTERNAL, "%s: a map of values on the device '%s', which ttn_tap_open has not copied",
                        op, d->ops->name);
    if (seq < 0 || seq >= c->feed->used.seqs)
        return TTN_FAIL(err, TTN_EINVAL, "%s: there is no sequence %" PRId64 " in a batch of %" PRId64, op, seq,
                        c->feed->used.seqs);
    if (head < 0 || head >= heads)
        return TTN_FAIL(err, TTN_EINVAL, "%s: there is no head %" PRId64 " of %" PRId64, op, head, heads);
    *ret = c->feed->span[seq];
    for (int64_t r = 0; r < n_row; r++)
        if (row[r] < 0 || row[r] >= ret->n)
            return TTN_FAIL(err, TTN_EINVAL, "%s: there is no row %" PRId64 " in a sequence of %" PRId64, op, row[r],
                            ret->n);
    if (P < 0 || P > ret->n)
        return TTN_FAIL(err, TTN_EINVAL, "%s: a sequence of %" PRId64 " rows has no %" PRId64 " blocks", op, ret->n, P);
    return TTN_OK;
}
