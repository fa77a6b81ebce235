/* rotary for CUDA devices: autograd/ops/rotary.c says what it computes.
 *
 * A warp takes a row and a lane the pairs j, j + 32, … of every head: a sine and a cosine serve all heads. With heads of
 * fewer than 64 channels some lanes have nothing to do. */
#include "autograd/kernel_cuda.h"
#include "autograd/ops.h"
#include "autograd/ops/rotary.h"
#include "autograd/ops/turn.h"

enum { FREQUENCIES = 1 };

/* Once for all rows: a power is more work than a sine and a cosine. */
static __global__ void frequencies_kernel(int64_t half, double base, const real *given, double *frequency)
{
    for (int64_t j = ttn_cuda_first(); j < half; j += ttn_cuda_stride())
        frequency[j] = given ? static_cast<double>(given[j]) : ttn_rotary_frequency(base, j, half);
}

/* to = acc to + x turned, by -angle where sign is -1; `to` may be x. */
static __global__ void turn_kernel(int64_t capacity, int64_t heads, int64_t half, int halves, ttn_on_device on,
                                   const double *frequency, double sign, const real *x, real *to, real acc)
{
    const int64_t D = 2 * half;
    for (int64_t t = ttn_warp_first(); t < capacity; t += ttn_warp_stride()) {
        const ttn_place place = ttn_place_of(on, t);
        const int64_t row = t * heads * D;
        if (place.seq < 0) {
            for (int64_t i = ttn_lane(); i < heads * D && acc == 0; i += TTN_WARP)
                to[row + i] = 0;
            continue;
        }
        for (int64_t j = ttn_lane(); j < half; j += TTN_WARP) {
            double s;
            double k;
            ttn_turn(static_cast<double>(place.position) * frequency[j], &s, &k);
            const real sine = static_cast<real>(sign * s);
            const real cosine = static_cast<real>(k);
            for (int64_t h = 0; h < heads; h++) {
                const int64_t first = row + h * D + (halves ? j : 2 * j);
                const int64_t second = first + (halves ? half : 1);
                const real a = x[first];
                const real b = x[second];
                ttn_give(&to[first], ttn_rotary_a(a, b, cosine, sine), acc);
                ttn_give(&to[second], ttn_rotary_b(a, b, cosine, sine), acc);
            }
        }
    }
}

static ttn_status turn(const ttn_call *c, const void *x, void *to, double sign, real acc, ttn_error *err)
{
    const ttn_rotary_attributes *a = static_cast<const ttn_rotary_attributes *>(c->sig->attr);
    const int64_t capacity = c->sig->in[0].dim[0];
    const int64_t half = c->sig->in[0].dim[1] / a->heads / 2;
    double *frequency = static_cast<double *>(c->work);
    ttn_status status = TTN_LAUNCH(frequencies_kernel, ttn_cuda_blocks(half, TTN_ROW_THREADS), TTN_ROW_THREADS, 0,
                                   c->on, err, half, a->base, static_cast<const real *>(c->in[FREQUENCIES]), frequency);
    if (status != TTN_OK) return status;
    return TTN_LAUNCH(turn_kernel, ttn_row_blocks(capacity), TTN_ROW_THREADS, 0, c->on, err, capacity, a->heads, half,
                      a->form == TTN_ROTARY_HALVES, c->on_device, frequency, sign, static_cast<const real *>(x),
                      static_cast<real *>(to), acc);
}

extern "C" ttn_status ttn_cuda_rotary_forward(const ttn_call *c, ttn_error *err)
{
    return turn(c, c->in[0], c->out[0], 1, 0, err);
}

extern "C" ttn_status ttn_cuda_rotary_backward(const ttn_call *c, ttn_error *err)
{
    if (!c->din[0]) return TTN_OK;
    return turn(c, c->dout[0], c->din[0], -1, c->acc[0], err);
}
