/* attention that sees only itself, on CUDA: v is moved forward, three gradients are written backward. */
#include "core/cuda.h"

#include "autograd/kernel_cuda.h"
#include "autograd/rows_cuda.h"

enum { Q, K, V };

/* to = acc to + from in the rows of sequences, acc to in all others; from may be `to`, or NULL for zeros. */
static __global__ void put_kernel(int64_t rows, int64_t C, const int64_t *seq_of_row, const real *from, real acc,
                                  real *to)
{
    for (int64_t r = ttn_warp_first(); r < rows; r += ttn_warp_stride()) {
        const int there = from && seq_of_row && seq_of_row[r] >= 0;
        for (int64_t i = r * C + ttn_lane(); i < (r + 1) * C; i += TTN_WARP)
            to[i] = ttn_accumulate(acc, to[i], there ? from[i] : 0);
    }
}

static ttn_status put(const ttn_call *c, const void *from, real acc, void *to, ttn_error *err)
{
    const ttn_desc *d = &c->sig->out[0];
    const int64_t rows = ttn_capacity_of(d);
    if (rows == 0 || (acc != 0 && !from)) return TTN_OK;
    /* a run without sequences has no rows of any */
    const int64_t *seq_of_row = c->feed->used.seqs > 0 ? c->on_device.seq_of_row : NULL;
    return TTN_LAUNCH(put_kernel, ttn_row_blocks(rows), TTN_ROW_THREADS, 0, c->on, err, rows, ttn_row_width(d),
                      seq_of_row, static_cast<const real *>(from), acc, static_cast<real *>(to));
}

extern "C" ttn_status ttn_cuda_attn_none_forward(const ttn_call *c, ttn_error *err)
{
    return put(c, c->in[V], 0, c->out[0], err); /* may be v */
}

extern "C" ttn_status ttn_cuda_attn_none_backward(const ttn_call *c, ttn_error *err)
{
    ttn_status status = TTN_OK;
    for (int i = Q; i <= V && status == TTN_OK; i++)
        if (c->din[i]) status = put(c, i == V ? c->dout[0] : NULL, c->acc[i], c->din[i], err); /* dv may be dout */
    return status;
}
