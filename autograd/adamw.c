#include "autograd/adamw.h"

/* Partial sums of a block, added up at its end: eight doubles are a vector of the widest processor. */
enum { SUMS = 8 };

static double squares_of(int64_t n, const real *g)
{
    double s[SUMS] = {0};
    int64_t i = 0;
    for (; i + SUMS <= n; i += SUMS) {
#pragma omp simd
        for (int j = 0; j < SUMS; j++)
            s[j] += (double)g[i + j] * (double)g[i + j];
    }
    for (int j = 0; i + j < n; j++)
        s[j] += (double)g[i + j] * (double)g[i + j];
    for (int apart = SUMS / 2; apart > 0; apart /= 2)
        for (int j = 0; j < apart; j++)
            s[j] += s[j + apart];
    return s[0];
}

static ttn_status squares(const ttn_stream *on, const ttn_adamw_slabs *s, double *sum, ttn_error *err)
{
    (void)err;
#pragma omp parallel for num_threads(on->n_thread)
    for (int64_t b = 0; b < s->n_block; b++)
        sum[b] = squares_of(s->block[b].n, s->gradient + s->block[b].first);
    return TTN_OK;
}

static void update_block(const ttn_adamw_slabs *s, const ttn_adamw_block *b, const ttn_adamw_rule *rule)
{
    const ttn_adamw_rule r = *rule; /* no store below can be thought to change it */
    const real keep = b->decays ? r.keep : 1;
    const real *restrict gradient = s->gradient + b->first;
    real *restrict value = s->value + b->first;
    real *restrict m = s->m + b->first;
    real *restrict v = s->v + b->first;
#pragma omp simd
    for (int64_t i = 0; i < b->n; i++) {
        const real g = r.scale * gradient[i];
        m[i] = ttn_adamw_m(&r, m[i], g);
        v[i] = ttn_adamw_v(&r, v[i], g);
        value[i] = ttn_adamw_value(&r, keep, value[i], m[i], v[i]);
    }
}

static ttn_status update(const ttn_stream *on, const ttn_adamw_slabs *s, const ttn_adamw_rule *r, ttn_error *err)
{
    (void)err;
#pragma omp parallel for num_threads(on->n_thread)
    for (int64_t b = 0; b < s->n_block; b++)
        update_block(s, &s->block[b], r);
    return TTN_OK;
}

const ttn_adamw_kernels *ttn_adamw_kernels_of(ttn_kernel_kind kind)
{
    static const ttn_adamw_kernels cpu = {.squares = squares, .update = update};
    switch (kind) {
    case TTN_KERNELS_CPU:
        return &cpu;
    case TTN_KERNELS_CUDA:
        return ttn_cuda_adamw();
    }
    return NULL;
}
