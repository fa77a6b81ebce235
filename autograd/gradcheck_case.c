/* A case of an op, set up: values from a seed, a guard around every buffer, NaN in what is to be written. */
#include "autograd/gradcheck_impl.h"

enum {
    GUARD = 64, /* bytes on either side of a buffer: one cache line, so that data stays aligned */
    CAP_MORE_SEQS = 3,
};

/* ---- buffers ---- */

static ttn_status buffer_create(buffer *b, size_t bytes, ttn_error *err)
{
    b->bytes = bytes;
    b->raw = ttn_alloc_or_say((int64_t)(bytes + 2 * GUARD), 1, "a value of a checked op", err);
    b->saved = ttn_alloc_or_say((int64_t)bytes, 1, "a copy of a value of a checked op", err);
    if (!b->raw || !b->saved) return TTN_ENOMEM;
    memset(b->raw, UNTOUCHED, bytes + 2 * GUARD);
    b->data = b->raw + GUARD;
    return TTN_OK;
}

static void buffer_destroy(buffer *b)
{
    ttn_free(b->raw);
    ttn_free(b->saved);
}

size_t ttn_gradcheck_raw_bytes(const buffer *b)
{
    return b->raw ? b->bytes + (size_t)2 * GUARD : 0;
}

int ttn_gradcheck_guard(const buffer *b)
{
    if (!b->raw) return 0;
    for (int i = 0; i < GUARD; i++)
        if (b->raw[i] != UNTOUCHED) return -1;
    for (int i = 0; i < GUARD; i++)
        if (b->raw[GUARD + b->bytes + (size_t)i] != UNTOUCHED) return 1;
    return 0;
}

buffer *ttn_gradcheck_buffer(instance *t, int i)
{
    const struct {
        buffer *first;
        int n;
    } group[] = {
        {t->in, TTN_MAX_IN},    {t->out, TTN_MAX_OUT}, {t->aux, TTN_MAX_AUX}, {&t->stat, 1},
        {t->dout, TTN_MAX_OUT}, {t->din, TTN_MAX_IN},  {&t->work, 1},         {&t->arrays, 1},
    };
    for (size_t g = 0; g < sizeof group / sizeof *group; g++) {
        if (i < group[g].n) return &group[g].first[i];
        i -= group[g].n;
    }
    return &t->fault;
}

/* ---- elements ---- */

double ttn_gradcheck_get(const ttn_desc *d, const void *x, int64_t e)
{
    switch (ttn_dtype_stored(d->type)) {
    case TTN_F32:
        return (double)((const float *)x)[e];
    case TTN_F64:
        return ((const double *)x)[e];
    case TTN_I64:
        return (double)((const int64_t *)x)[e];
    case TTN_I32:
        return ((const int32_t *)x)[e];
    case TTN_U8:
        return ((const uint8_t *)x)[e];
    default:
        return (double)NAN; /* 16-bit types: no op has them yet */
    }
}

void ttn_gradcheck_set(const ttn_desc *d, void *x, int64_t e, double value)
{
    switch (ttn_dtype_stored(d->type)) {
    case TTN_F32:
        ((float *)x)[e] = (float)value;
        break;
    case TTN_F64:
        ((double *)x)[e] = value;
        break;
    case TTN_I64:
        ((int64_t *)x)[e] = (int64_t)value;
        break;
    case TTN_I32:
        ((int32_t *)x)[e] = (int32_t)value;
        break;
    case TTN_U8:
        ((uint8_t *)x)[e] = (uint8_t)value;
        break;
    default:
        break;
    }
}

/* All 53 bits: products of short numbers are exact, and hide the order of sums. */
static double random_unit(uint64_t seed, uint64_t stream, uint64_t e)
{
    uint64_t z = seed + (stream + 1) * 0x9E3779B97F4A7C15u + e * 0xD1B54A32D192ED03u; /* splitmix64's finish */
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-53;
}

/* ---- one case, set up ---- */

static int64_t whole_tiles(int64_t n)
{
    return (n + TTN_GRAPH_TILE - 1) / TTN_GRAPH_TILE * TTN_GRAPH_TILE;
}

static ttn_extent capacity_of(const ttn_case *k, int more)
{
    ttn_extent cap = k->cap;
    if (cap.rows == 0) cap.rows = whole_tiles(k->used.rows);
    if (cap.seqs == 0) cap.seqs = k->used.seqs;
    if (cap.picks == 0) cap.picks = whole_tiles(k->used.picks);
    if (more) {
        cap.rows += TTN_GRAPH_TILE;
        cap.seqs += CAP_MORE_SEQS;
        cap.picks += TTN_GRAPH_TILE;
    }
    return cap;
}

static void place(ttn_desc *d, ttn_extent cap)
{
    if (d->ndim < 1) return;
    if (d->axis == TTN_ROWS) d->dim[0] = cap.rows;
    if (d->axis == TTN_SEQS) d->dim[0] = cap.seqs;
    if (d->axis == TTN_PICKS) d->dim[0] = cap.picks;
}

ttn_sig ttn_gradcheck_signature(const ttn_op *op, const ttn_case *k, int more)
{
    ttn_sig s = {.attr = k->attr, .cap = capacity_of(k, more), .n_in = op->n_in, .n_out = op->n_out};
    memcpy(s.in, k->in, sizeof s.in);
    for (int i = 0; i < op->n_in; i++)
        place(&s.in[i], s.cap);
    return s;
}

void ttn_gradcheck_fill(const instance *t, const setup *with, int stream, double lo, double hi, const ttn_desc *d,
                        buffer *b)
{
    memset(b->data, 0, b->bytes);
    const int64_t n = ttn_used_numel(&t->feed, d);
    for (int64_t e = 0; e < n; e++) {
        const double u = random_unit(with->o->seed, (uint64_t)stream, (uint64_t)e);
        double value = lo + (hi - lo) * u;
        if (!is_real(d)) value = lo + floor((hi - lo + 1) * u);
        if (with->o->value) value = with->o->value(stream, e, value);
        if (is_real(d) && with->as_floats) value = (double)(float)value;
        ttn_gradcheck_set(d, b->data, e, value);
    }
    save(b);
}

static void fill_input(instance *t, const setup *with, int i)
{
    double lo = t->k->range[i].lo;
    double hi = t->k->range[i].hi;
    if (is_real(&t->sig.in[i]) && lo == 0 && hi == 0) {
        lo = -1;
        hi = 1;
    }
    ttn_gradcheck_fill(t, with, i, lo, hi, &t->sig.in[i], &t->in[i]);
}

void ttn_gradcheck_destroy(instance *t)
{
    for (int i = 0; i < N_BUFFERS; i++)
        buffer_destroy(ttn_gradcheck_buffer(t, i));
    if (t->there) t->device->ops->memory_destroy(t->there);
}

/* Memory of the device for a copy of every buffer, and what kernels there get beside them. */
static ttn_status create_there(instance *t, ttn_error *err)
{
    t->layout = ttn_feed_lay_out(t->sig.cap);
    ttn_status status = buffer_create(&t->arrays, t->layout.bytes, err);
    if (status == TTN_OK) status = buffer_create(&t->fault, sizeof(uint64_t), err);
    if (status != TTN_OK) return status;
    ttn_feed_write(&t->layout, &t->feed, t->arrays.data);
    size_t bytes = 0;
    for (int i = 0; i < N_BUFFERS; i++) {
        buffer *b = ttn_gradcheck_buffer(t, i);
        b->there = bytes;
        bytes += (ttn_gradcheck_raw_bytes(b) + GUARD - 1) / GUARD * GUARD;
    }
    return t->device->ops->memory_create(t->device, bytes, bytes, &t->there, err);
}

ttn_status ttn_gradcheck_create(instance *t, const ttn_op *op, const ttn_case *k, const setup *with, ttn_error *err)
{
    ttn_device *device = with->o->device;
    const ttn_kernel_kind kind = device ? device->ops->kernels : TTN_KERNELS_CPU;
    *t = (instance){
        .o = with->o,
        .op = op,
        .k = k,
        .kernels = ttn_op_kernels(op, kind),
        .sig = ttn_gradcheck_signature(op, k, with->more),
        .feed = {.used = k->used, .span = k->span, .seed = with->o->seed, .training = 1},
        .on = {.device = device, .n_thread = 1},
        .device = kind == TTN_KERNELS_CPU ? NULL : device,
    };
    if (!t->kernels)
        return FAULT(err, "%s: it has no kernels for the device '%s'", op->name, device ? device->ops->name : "cpu");
    ttn_status status = op->shape(&t->sig, err);
    if (status != TTN_OK) return status;
    for (int i = 0; i < op->n_in && status == TTN_OK; i++) {
        if (t->sig.in[i].ndim < 0) continue;
        status = buffer_create(&t->in[i], ttn_desc_bytes(&t->sig.in[i]), err);
        if (status == TTN_OK && op->differentiable & TTN_BIT(i))
            status = buffer_create(&t->din[i], ttn_desc_bytes(&t->sig.in[i]), err);
    }
    for (int j = 0; j < op->n_out && status == TTN_OK; j++) {
        status = buffer_create(&t->out[j], ttn_desc_bytes(&t->sig.out[j]), err);
        if (status == TTN_OK) status = buffer_create(&t->dout[j], ttn_desc_bytes(&t->sig.out[j]), err);
    }
    for (int a = 0; a < t->sig.n_aux && status == TTN_OK; a++)
        status = buffer_create(&t->aux[a], ttn_desc_bytes(&t->sig.aux[a]), err);
    if (status == TTN_OK) status = buffer_create(&t->stat, (size_t)t->sig.n_stat * sizeof(double), err);
    const size_t forward = ttn_work_bytes(t->kernels, &t->sig, TTN_FORWARD, MOST_THREADS);
    const size_t backward = ttn_work_bytes(t->kernels, &t->sig, TTN_BACKWARD, MOST_THREADS);
    if (status == TTN_OK) status = buffer_create(&t->work, forward > backward ? forward : backward, err);
    if (status == TTN_OK && t->device) status = create_there(t, err);
    if (status != TTN_OK) return status;
    for (int i = 0; i < op->n_in; i++)
        if (t->in[i].raw) fill_input(t, with, i);
    for (int j = 0; j < op->n_out; j++)
        ttn_gradcheck_fill(t, with, DOUT + j, -1, 1, &t->sig.out[j], &t->dout[j]);
    return TTN_OK;
}
