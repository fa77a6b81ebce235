/* positions for CUDA devices: autograd/ops/positions.c says what it computes. */
#include "autograd/ops/pass_cuda.h"
#include "autograd/ops/positions.h"

enum { TABLE = 1 };

static int64_t offset_of(const ttn_call *c)
{
    return static_cast<const ttn_positions_attributes *>(c->sig->attr)->offset;
}

/* ---- forward ---- */

static __global__ void forward_kernel(ttn_quads q, int64_t capacity, ttn_on_device on, int64_t offset, const real *x,
                                      const real *table, real *y)
{
    for (int64_t t = ttn_warp_first(); t < capacity; t += ttn_warp_stride()) {
        const ttn_place place = ttn_place_of(on, t);
        real *to = y + t * q.width; /* may be x */
        if (place.seq < 0) {
            ttn_quad_zero_row(q, to);
            continue;
        }
        for (int64_t i = ttn_lane(); i < q.count; i += TTN_WARP) {
            ttn_quad v = ttn_quad_load(q, x + t * q.width, i);
            const ttn_quad p = ttn_quad_load(q, table + (place.position + offset) * q.width, i);
            for (int k = 0; k < 4; k++)
                v.at[k] += p.at[k];
            ttn_quad_store(q, to, i, v);
        }
    }
}

extern "C" ttn_status ttn_cuda_positions_forward(const ttn_call *c, ttn_error *err)
{
    ttn_status status = ttn_positions_check(c, err);
    if (status != TTN_OK) return status;
    const int64_t capacity = c->sig->in[0].dim[0];
    const real *x = static_cast<const real *>(c->in[0]);
    const real *table = static_cast<const real *>(c->in[TABLE]);
    real *y = static_cast<real *>(c->out[0]);
    return TTN_LAUNCH(forward_kernel, ttn_row_blocks(capacity), TTN_ROW_THREADS, 0, c->on, err,
                      ttn_quads_of(c->sig->in[0].dim[1], x, table, y), capacity, c->on_device, offset_of(c), x, table,
                      y);
}

/* ---- backward ----
 *
 * A thread owns a quad of a row of the table and looks through the sequences for those that reach it: the CPU's order, and
 * its bits. 278 sequences, a table of (1,024, 512): 36 M looks, less than the reading of dy takes. */
static __global__ void table_kernel(ttn_quads q, int64_t L, int64_t seqs, ttn_on_device on, int64_t offset,
                                    const real *dy, real *dtable, real acc)
{
    for (int64_t e = ttn_cuda_first(); e < L * q.count; e += ttn_cuda_stride()) {
        const int64_t p = e / q.count;
        const int64_t i = e % q.count;
        double sum[4] = {0, 0, 0, 0};
        for (int64_t s = 0; s < seqs; s++) {
            const ttn_span span = on.span[s];
            const int64_t row = p - offset - on.start[s]; /* in the sequence */
            if (row < 0 || row >= span.n) continue;
            const ttn_quad v = ttn_quad_load(q, dy + (span.first + row) * q.width, i);
            for (int k = 0; k < 4; k++)
                sum[k] += static_cast<double>(v.at[k]);
        }
        ttn_quad g;
        for (int k = 0; k < 4; k++)
            g.at[k] = static_cast<real>(sum[k]);
        ttn_quad_give(q, dtable + p * q.width, i, g, acc);
    }
}

extern "C" ttn_status ttn_cuda_positions_backward(const ttn_call *c, ttn_error *err)
{
    ttn_status status = TTN_OK;
    if (c->din[TABLE]) { /* before dx, which may be dy */
        const int64_t L = c->sig->in[TABLE].dim[0];
        const int64_t seqs = c->feed->used.seqs > 0 ? c->feed->used.seqs : 1;
        const real *dy = static_cast<const real *>(c->dout[0]);
        real *dtable = static_cast<real *>(c->din[TABLE]);
        const ttn_quads q = ttn_quads_of(c->sig->in[0].dim[1], dy, dtable);
        status = TTN_LAUNCH(table_kernel, ttn_cuda_blocks(L * q.count, TTN_ROW_THREADS), TTN_ROW_THREADS, 0, c->on, err,
                            q, L, seqs, c->on_device, offset_of(c), dy, dtable, c->acc[TABLE]);
    }
    if (status != TTN_OK || !c->din[0]) return status;
    return ttn_cuda_pass(c, err);
}
