/* ffn on CUDA: by tiles of rows, as on the CPU, but tiles large enough for a whole GPU, one after the other. The products
 * are the device's gemm; what stands between them is one pass over the tile.
 *
 * z and u are made by the same calls into memory of the same stride whether the plan keeps them (aux 0) or not (scratch),
 * and everything after reads them by that stride: so both give the same bits. Gradients of weights add up over the tiles in
 * their order, each product onto the sum of those before.
 *
 * Tiles begin at the same rows whatever a batch uses of the capacity, and have all their rows in the products: the bits of
 * a sequence stay (autograd/rows_cuda.h), but for tiles of another height at the end of the capacity. */
#include "core/cuda.h"

#include "autograd/kernel_cuda.h"
#include "autograd/rows_cuda.h"
#include "autograd/ops/ffn.h"

enum {
    W1 = TTN_FFN_W1,
    B1 = TTN_FFN_B1,
    W2 = TTN_FFN_W2,
    B2 = TTN_FFN_B2,
    W3 = TTN_FFN_W3,
    B3 = TTN_FFN_B3,
    /* Rows of a tile at most. With F 2,048 a product is 304 tiles of 128 x 128, twice the cores of the largest GPU of today,
     * and an array of scratch is 20 MB in f32. */
    MOST_ROWS = 2400,
};

/* ---- tiles ---- */

/* Equal heights, but for the last. */
static int64_t tile_height(const ttn_ffn_dims *d)
{
    const int64_t n_tile = (d->N + MOST_ROWS - 1) / MOST_ROWS;
    return n_tile > 0 ? (d->N + n_tile - 1) / n_tile : 0;
}

/* All that a pass works with. Arrays of a tile: */
typedef struct {
    ttn_ffn_dims d;
    ttn_activation act;
    int64_t used, height;
    real *z;             /* (height, ld): z, gated z and u; where aux 0 is left out */
    real *h;             /* (height, F) */
    real *dz, *du;       /* (height, F), backward; dz: dh at first */
    void *sums1, *sums3; /* of dz, of du, over all tiles */
    void *sums2;         /* of dy */
    size_t bytes;
} job;

static void *carve(char *work, size_t *at, size_t bytes)
{
    void *p = work ? work + *at : NULL;
    *at += ttn_work_align(bytes);
    return p;
}

static job lay_out(const ttn_sig *s, ttn_pass pass, void *work)
{
    job j = {};
    j.d = ttn_ffn_dims_of(s);
    j.act = static_cast<const ttn_ffn_attributes *>(s->attr)->act;
    j.height = tile_height(&j.d);
    const size_t hidden = (size_t)(j.height * j.d.F) * sizeof(real);
    char *base = static_cast<char *>(work);
    j.z = static_cast<real *>(carve(base, &j.bytes, j.d.gated ? 2 * hidden : hidden));
    j.h = static_cast<real *>(carve(base, &j.bytes, hidden));
    if (pass == TTN_FORWARD) return j;
    j.dz = static_cast<real *>(carve(base, &j.bytes, hidden));
    if (j.d.gated) j.du = static_cast<real *>(carve(base, &j.bytes, hidden));
    j.sums1 = carve(base, &j.bytes, ttn_cuda_sums_work(j.height, j.d.F));
    j.sums3 = carve(base, &j.bytes, ttn_cuda_sums_work(j.height, j.d.F));
    j.sums2 = carve(base, &j.bytes, ttn_cuda_sums_work(j.d.N, j.d.C));
    return j;
}

extern "C" size_t ttn_cuda_ffn_work(const ttn_sig *s, ttn_pass pass)
{
    return lay_out(s, pass, NULL).bytes;
}

static job start(const ttn_call *c, ttn_pass pass)
{
    job j = lay_out(c->sig, pass, c->work);
    j.used = ttn_used(c->feed, &c->sig->in[0]);
    return j;
}

/* One tile. */
typedef struct {
    int64_t first, rows;
    int64_t used; /* rows of it */
    real *z, *u;  /* with stride ld; u: gated */
} tile;

static tile tile_at(const ttn_call *c, const job *j, int64_t first)
{
    const int64_t rows = j->d.N - first < j->height ? j->d.N - first : j->height;
    tile t = {};
    t.first = first;
    t.rows = rows;
    t.used = j->used - first < rows ? j->used - first : rows;
    t.z = c->aux[0] ? static_cast<real *>(c->aux[0]) + first * j->d.ld : j->z;
    t.u = j->d.gated ? t.z + j->d.F : NULL;
    return t;
}

static const real *input(const ttn_call *c, int i)
{
    return static_cast<const real *>(c->in[i]);
}

/* z and u of a tile, as asked for. One shape of call in forward and backward, kept or not. */
static ttn_status make_hidden(const ttn_call *c, const job *j, const tile *t, int with_u, ttn_error *err)
{
    const ttn_ffn_dims *d = &j->d;
    const ttn_mat_in x = ttn_in(input(c, 0) + t->first * d->C, d->C);
    ttn_status status = ttn_cuda_gemm(c->on, TTN_N, TTN_T, t->rows, d->F, d->C, x, ttn_in(input(c, W1), d->C), 0,
                                      ttn_out(t->z, d->ld), err);
    if (with_u && status == TTN_OK)
        status = ttn_cuda_gemm(c->on, TTN_N, TTN_T, t->rows, d->F, d->C, x, ttn_in(input(c, W3), d->C), 0,
                               ttn_out(t->u, d->ld), err);
    return status;
}

/* ---- passes over a tile: a warp for each row ---- */

/* What a pass reads and writes; rows past the used ones become zeros (act(0 + b1) is not 0). */
typedef struct {
    ttn_activation act;
    int64_t rows, used, F, ld;
    const real *z, *u;   /* u: NULL: not gated, or not asked for */
    const real *b1, *b3; /* may be NULL */
    int gated;
} pass_shape;

static pass_shape pass_of(const ttn_call *c, const job *j, const tile *t, int with_u)
{
    const pass_shape p = {j->act,       t->rows,      t->used,   j->d.F, j->d.ld, t->z, with_u ? t->u : NULL,
                          input(c, B1), input(c, B3), j->d.gated};
    return p;
}

static __device__ real biased(const real *x, int64_t at, const real *b, int64_t i)
{
    if (!x) return 0;
    return b ? x[at] + b[i] : x[at];
}

static __global__ void hidden_kernel(pass_shape p, real *h)
{
    for (int64_t r = ttn_warp_first(); r < p.rows; r += ttn_warp_stride()) {
        for (int64_t i = ttn_lane(); i < p.F; i += TTN_WARP) {
            real value = 0;
            if (r < p.used) {
                value = ttn_act_value(p.act, biased(p.z, r * p.ld + i, p.b1, i));
                if (p.gated) value *= biased(p.u, r * p.ld + i, p.b3, i);
            }
            h[r * p.F + i] = value;
        }
    }
}

/* dz: dh at first. */
static __global__ void gradient_kernel(pass_shape p, real *h, real *dz, real *du)
{
    for (int64_t r = ttn_warp_first(); r < p.rows; r += ttn_warp_stride()) {
        for (int64_t i = ttn_lane(); i < p.F; i += TTN_WARP) {
            const int64_t at = r * p.F + i;
            ttn_ffn_element e = {0, 0, 0};
            if (r < p.used) {
                const real z = biased(p.z, r * p.ld + i, p.b1, i);
                /* where only du is wanted u is not there: h and dz are not looked at */
                e = p.gated ? ttn_ffn_gated(p.act, z, biased(p.u, r * p.ld + i, p.b3, i), dz[at])
                            : ttn_ffn_plain(p.act, z, dz[at]);
            }
            h[at] = e.h;
            dz[at] = e.dz;
            if (p.gated) du[at] = e.du;
        }
    }
}

/* ---- forward ---- */

static ttn_status forward_tile(const ttn_call *c, const job *j, const tile *t, ttn_error *err)
{
    const ttn_ffn_dims *d = &j->d;
    real *y = static_cast<real *>(c->out[0]) + t->first * d->C; /* may be x, which is not needed any more by then */
    ttn_status status = make_hidden(c, j, t, d->gated, err);
    if (status == TTN_OK)
        status = TTN_LAUNCH(hidden_kernel, ttn_row_blocks(t->rows), TTN_ROW_THREADS, 0, c->on, err,
                            pass_of(c, j, t, d->gated), j->h);
    if (c->in[B2] && status == TTN_OK)
        status = ttn_cuda_repeat_row(c->on, t->rows, t->used, d->C, input(c, B2), y, err);
    if (status != TTN_OK) return status;
    return ttn_cuda_gemm(c->on, TTN_N, TTN_T, t->rows, d->C, d->F, ttn_in(j->h, d->F), ttn_in(input(c, W2), d->F),
                         c->in[B2] ? 1 : 0, ttn_out(y, d->C), err);
}

extern "C" ttn_status ttn_cuda_ffn_forward(const ttn_call *c, ttn_error *err)
{
    const job j = start(c, TTN_FORWARD);
    ttn_status status = TTN_OK;
    for (int64_t first = 0; first < j.used && status == TTN_OK; first += j.height) {
        const tile t = tile_at(c, &j, first);
        status = forward_tile(c, &j, &t, err);
    }
    if (status == TTN_OK) status = ttn_cuda_zero_rest(c, &c->sig->out[0], c->out[0], err);
    return status;
}

/* ---- backward ---- */

/* dw = (acc, and 1 after the first tile) dw + a^T b over the rows of a tile; a (rows, m), b (rows, n). */
static ttn_status add_weight(const ttn_call *c, const tile *t, int i, int64_t m, int64_t n, const real *a,
                             const real *b, ttn_error *err)
{
    if (!c->din[i]) return TTN_OK;
    const double beta = t->first == 0 ? (double)c->acc[i] : 1;
    return ttn_cuda_gemm(c->on, TTN_T, TTN_N, m, n, t->rows, ttn_in(a, m), ttn_in(b, n), beta,
                         ttn_out(static_cast<real *>(c->din[i]), n), err);
}

/* What all of backward adds up. */
typedef struct {
    ttn_cuda_sums b1, b3;
} sums;

static ttn_status backward_tile(const ttn_call *c, const job *j, const tile *t, const ttn_ffn_needs *needs, sums *s,
                                ttn_error *err)
{
    const ttn_ffn_dims *d = &j->d;
    const real *x = input(c, 0) ? input(c, 0) + t->first * d->C : NULL;
    const real *dy = static_cast<const real *>(c->dout[0]) + t->first * d->C;
    const pass_shape p = pass_of(c, j, t, needs->u);
    const unsigned blocks = ttn_row_blocks(t->rows);
    ttn_status status = TTN_OK;
    if (!c->aux[0]) status = make_hidden(c, j, t, needs->u, err);
    if (needs->d_hidden && status == TTN_OK)
        status = ttn_cuda_gemm(c->on, TTN_N, TTN_N, t->rows, d->F, d->C, ttn_in(dy, d->C), ttn_in(input(c, W2), d->F),
                               0, ttn_out(j->dz, d->F), err);
    if (needs->d_hidden && status == TTN_OK)
        status = TTN_LAUNCH(gradient_kernel, blocks, TTN_ROW_THREADS, 0, c->on, err, p, j->h, j->dz, j->du);
    else if (status == TTN_OK)
        status = TTN_LAUNCH(hidden_kernel, blocks, TTN_ROW_THREADS, 0, c->on, err, p, j->h);

    if (c->din[0] && status == TTN_OK) {
        const ttn_mat_out dx = ttn_out(static_cast<real *>(c->din[0]) + t->first * d->C, d->C);
        status = ttn_cuda_gemm(c->on, TTN_N, TTN_N, t->rows, d->C, d->F, ttn_in(j->dz, d->F),
                               ttn_in(input(c, W1), d->C), (double)c->acc[0], dx, err);
        if (d->gated && status == TTN_OK)
            status = ttn_cuda_gemm(c->on, TTN_N, TTN_N, t->rows, d->C, d->F, ttn_in(j->du, d->F),
                                   ttn_in(input(c, W3), d->C), 1, dx, err);
    }
    if (status == TTN_OK) status = add_weight(c, t, W1, d->F, d->C, j->dz, x, err);
    if (status == TTN_OK) status = add_weight(c, t, W2, d->C, d->F, dy, j->h, err);
    if (status == TTN_OK) status = add_weight(c, t, W3, d->F, d->C, j->du, x, err);
    if (c->din[B1] && status == TTN_OK) status = ttn_cuda_sums_add(&s->b1, c->on, t->used, j->dz, d->F, err);
    if (c->din[B3] && status == TTN_OK) status = ttn_cuda_sums_add(&s->b3, c->on, t->used, j->du, d->F, err);
    return status;
}

/* In a run without rows no tile has written the weights' gradients. */
static ttn_status clear_weights(const ttn_call *c, ttn_error *err)
{
    ttn_status status = TTN_OK;
    for (int i = W1; i <= W3 && status == TTN_OK; i += W2 - W1)
        if (c->din[i] && c->acc[i] == 0)
            status = c->on->device->ops->fill(c->on, c->din[i], 0, ttn_desc_bytes(&c->sig->in[i]), err);
    return status;
}

static ttn_status backward_tiles(const ttn_call *c, const job *j, ttn_error *err)
{
    sums s = {ttn_cuda_sums_begin(j->height, j->d.F, j->sums1), ttn_cuda_sums_begin(j->height, j->d.F, j->sums3)};
    const ttn_ffn_needs needs = ttn_ffn_needs_of(c, j->d.gated);
    const int64_t end = needs.d_hidden || c->din[W2] ? j->used : 0;
    ttn_status status = end == 0 ? clear_weights(c, err) : TTN_OK;
    for (int64_t first = 0; first < end && status == TTN_OK; first += j->height) {
        const tile t = tile_at(c, j, first);
        status = backward_tile(c, j, &t, &needs, &s, err);
    }
    if (c->din[0] && c->acc[0] == 0 && status == TTN_OK) status = ttn_cuda_zero_rest(c, &c->sig->in[0], c->din[0], err);
    if (c->din[B1] && status == TTN_OK)
        status = ttn_cuda_sums_end(&s.b1, c->on, c->acc[B1], static_cast<real *>(c->din[B1]), err);
    if (c->din[B2] && status == TTN_OK) {
        ttn_cuda_sums b2 = ttn_cuda_sums_begin(j->d.N, j->d.C, j->sums2);
        status = ttn_cuda_sums_add(&b2, c->on, j->used, static_cast<const real *>(c->dout[0]), j->d.C, err);
        if (status == TTN_OK) status = ttn_cuda_sums_end(&b2, c->on, c->acc[B2], static_cast<real *>(c->din[B2]), err);
    }
    if (c->din[B3] && status == TTN_OK)
        status = ttn_cuda_sums_end(&s.b3, c->on, c->acc[B3], static_cast<real *>(c->din[B3]), err);
    return status;
}

/* dx of a tile is written beside what weights have added up so far: where x is itself one of the weights, with one buffer
 * for both gradients, dx of all tiles has to be there first. */
static int shares_dx(const ttn_call *c)
{
    return c->din[0] && (c->din[0] == c->din[W1] || c->din[0] == c->din[W2] || c->din[0] == c->din[W3]);
}

extern "C" ttn_status ttn_cuda_ffn_backward(const ttn_call *c, ttn_error *err)
{
    const job j = start(c, TTN_BACKWARD);
    if (!shares_dx(c)) return backward_tiles(c, &j, err);
    ttn_call only_x = *c;
    for (int i = W1; i < TTN_FFN_N_IN; i++)
        only_x.din[i] = NULL;
    ttn_call others = *c;
    others.din[0] = NULL;
    ttn_status status = backward_tiles(&only_x, &j, err);
    if (status == TTN_OK) status = backward_tiles(&others, &j, err);
    return status;
}
