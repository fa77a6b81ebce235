/* sinusoid for CUDA devices: autograd/ops/sinusoid.c says what it computes. A warp makes a row, a lane its pairs. */
#include "autograd/ops/pass_cuda.h"
#include "autograd/ops/sinusoid.h"
#include "autograd/ops/turn.h"

/* Once for all rows: a power is more work than a sine and a cosine. */
static __global__ void frequencies_kernel(int64_t n, double steps, double *frequency)
{
    for (int64_t j = ttn_cuda_first(); j < n; j += ttn_cuda_stride())
        frequency[j] = ttn_sinusoid_frequency(j, steps);
}

static __global__ void forward_kernel(int64_t capacity, int64_t C, int64_t pairs, ttn_sinusoid_attributes a,
                                      ttn_on_device on, const double *frequency, const real *x, real *y)
{
    const bool interleaved = a.form == TTN_SINUSOID_INTERLEAVED;
    for (int64_t t = ttn_warp_first(); t < capacity; t += ttn_warp_stride()) {
        const ttn_place place = ttn_place_of(on, t);
        const real *from = x + t * C;
        real *to = y + t * C; /* may be x */
        if (place.seq < 0) {
            for (int64_t i = ttn_lane(); i < C; i += TTN_WARP)
                to[i] = 0;
            continue;
        }
        for (int64_t j = ttn_lane(); j < pairs; j += TTN_WARP) {
            double sine;
            double cosine;
            ttn_turn(static_cast<double>(place.position + a.offset) * frequency[j], &sine, &cosine);
            const int64_t first = interleaved ? 2 * j : j;
            const int64_t second = interleaved ? 2 * j + 1 : j + pairs;
            to[first] = from[first] + static_cast<real>(sine);
            if (second < C) to[second] = from[second] + static_cast<real>(cosine);
        }
        if (!interleaved && C % 2 != 0 && ttn_lane() == 0) to[C - 1] = from[C - 1];
    }
}

extern "C" ttn_status ttn_cuda_sinusoid_forward(const ttn_call *c, ttn_error *err)
{
    const ttn_sinusoid_attributes *a = static_cast<const ttn_sinusoid_attributes *>(c->sig->attr);
    const int64_t capacity = c->sig->in[0].dim[0];
    const int64_t C = c->sig->in[0].dim[1];
    const int64_t pairs = ttn_sinusoid_pairs(a, C);
    double *frequency = static_cast<double *>(c->work);
    ttn_status status = TTN_LAUNCH(frequencies_kernel, ttn_cuda_blocks(pairs, TTN_ROW_THREADS), TTN_ROW_THREADS, 0,
                                   c->on, err, pairs, ttn_sinusoid_steps(a, C), frequency);
    if (status != TTN_OK) return status;
    return TTN_LAUNCH(forward_kernel, ttn_row_blocks(capacity), TTN_ROW_THREADS, 0, c->on, err, capacity, C, pairs, *a,
                      c->on_device, frequency, static_cast<const real *>(c->in[0]), static_cast<real *>(c->out[0]));
}

extern "C" ttn_status ttn_cuda_sinusoid_backward(const ttn_call *c, ttn_error *err)
{
    if (!c->din[0]) return TTN_OK;
    return ttn_cuda_pass(c, err);
}
