#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "autograd/gradcheck.h"
#include "autograd/graph.h"
#include "core/memory.h"

enum {
    MOST_THREADS = 8,
    GUARD = 64,        /* bytes on either side of a buffer: one cache line, so that data stays aligned */
    UNTOUCHED = 0xFF,  /* every byte: a NaN in f32 and f64, so that reading it shows, too */
    DOUT = TTN_MAX_IN, /* number of dout[0] among the streams of random values */
    CAP_MORE_SEQS = 3,
};

/* Of central differences in f64: truncation h^2 f''' / 6 and rounding 1e-16 / h are both about 1e-11. */
#define STEP           1e-5
#define GRADIENT_BOUND 1e-7

/* Sums in another order: 2^-53 or 2^-24 times a few hundred terms. */
#define ORDER_BOUND ((double)TTN_REAL_EPS * 512)

/* ---- buffers ---- */

typedef struct {
    unsigned char *raw; /* GUARD bytes, the data, GUARD bytes; NULL: no such buffer */
    void *data;
    size_t bytes;
    void *saved; /* the data as it should be */
} buffer;

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

static void save(buffer *b)
{
    if (b->raw) memcpy(b->saved, b->data, b->bytes);
}

static void restore(buffer *b)
{
    if (b->raw) memcpy(b->data, b->saved, b->bytes);
}

static int is_saved(const buffer *b)
{
    return !b->raw || memcmp(b->data, b->saved, b->bytes) == 0;
}

static void clear(buffer *b)
{
    if (b->raw) memset(b->data, UNTOUCHED, b->bytes);
}

/* -1: written in front of it, 1: behind it, 0: neither. */
static int guard_broken(const buffer *b)
{
    if (!b->raw) return 0;
    for (int i = 0; i < GUARD; i++)
        if (b->raw[i] != UNTOUCHED) return -1;
    for (int i = 0; i < GUARD; i++)
        if (b->raw[GUARD + b->bytes + (size_t)i] != UNTOUCHED) return 1;
    return 0;
}

/* ---- elements ---- */

static int is_real(const ttn_desc *d)
{
    const ttn_dtype type = ttn_dtype_stored(d->type);
    return type == TTN_F32 || type == TTN_F64;
}

static double get(const ttn_desc *d, const void *x, int64_t e)
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

static void set(const ttn_desc *d, void *x, int64_t e, double value)
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

static int64_t row_width(const ttn_desc *d)
{
    int64_t width = 1;
    for (int i = 1; i < d->ndim; i++)
        width *= d->dim[i];
    return width;
}

static int64_t used_elements(const ttn_feed *f, const ttn_desc *d)
{
    return ttn_used(f, d) * row_width(d);
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

typedef struct {
    const ttn_op *op;
    const ttn_case *k;
    ttn_sig sig;
    ttn_feed feed;
    ttn_stream on;
    buffer in[TTN_MAX_IN], out[TTN_MAX_OUT], aux[TTN_MAX_AUX], stat, work;
    buffer dout[TTN_MAX_OUT], din[TTN_MAX_IN];
} instance;

typedef struct {
    uint64_t seed;
    int more;      /* a capacity larger than needed */
    int as_floats; /* real inputs rounded to what a float holds */
} setup;

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

static ttn_sig signature(const ttn_op *op, const ttn_case *k, int more)
{
    ttn_sig s = {.attr = k->attr, .cap = capacity_of(k, more), .n_in = op->n_in, .n_out = op->n_out};
    memcpy(s.in, k->in, sizeof s.in);
    for (int i = 0; i < op->n_in; i++)
        place(&s.in[i], s.cap);
    return s;
}

/* The used rows; past them zeros (rule 3). */
static void fill(const instance *t, const setup *with, int stream, double lo, double hi, const ttn_desc *d, buffer *b)
{
    memset(b->data, 0, b->bytes);
    const int64_t n = used_elements(&t->feed, d);
    for (int64_t e = 0; e < n; e++) {
        const double u = random_unit(with->seed, (uint64_t)stream, (uint64_t)e);
        double value = lo + (hi - lo) * u;
        if (!is_real(d)) value = lo + floor((hi - lo + 1) * u);
        if (is_real(d) && with->as_floats) value = (double)(float)value;
        set(d, b->data, e, value);
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
    fill(t, with, i, lo, hi, &t->sig.in[i], &t->in[i]);
}

static void destroy(instance *t)
{
    for (int i = 0; i < TTN_MAX_IN; i++) {
        buffer_destroy(&t->in[i]);
        buffer_destroy(&t->din[i]);
    }
    for (int j = 0; j < TTN_MAX_OUT; j++) {
        buffer_destroy(&t->out[j]);
        buffer_destroy(&t->dout[j]);
    }
    for (int a = 0; a < TTN_MAX_AUX; a++)
        buffer_destroy(&t->aux[a]);
    buffer_destroy(&t->stat);
    buffer_destroy(&t->work);
}

static size_t work_bytes(const ttn_sig *s, ttn_pass pass)
{
    return ttn_work_align(s->work[pass]) + MOST_THREADS * ttn_work_align(s->work_thread[pass]);
}

/* Whatever happens, `destroy` may be called afterwards. */
static ttn_status create(instance *t, const ttn_op *op, const ttn_case *k, const setup *with, ttn_error *err)
{
    *t = (instance){
        .op = op,
        .k = k,
        .sig = signature(op, k, with->more),
        .feed = {.used = k->used, .span = k->span, .seed = with->seed, .training = 1},
        .on = {.n_thread = 1},
    };
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
    const size_t forward = work_bytes(&t->sig, TTN_FORWARD);
    const size_t backward = work_bytes(&t->sig, TTN_BACKWARD);
    if (status == TTN_OK) status = buffer_create(&t->work, forward > backward ? forward : backward, err);
    if (status != TTN_OK) return status;
    for (int i = 0; i < op->n_in; i++)
        if (t->in[i].raw) fill_input(t, with, i);
    for (int j = 0; j < op->n_out; j++)
        fill(t, with, DOUT + j, -1, 1, &t->sig.out[j], &t->dout[j]);
    return TTN_OK;
}

/* Inputs of this case that can have a gradient. */
static uint32_t all_wanted(const instance *t)
{
    uint32_t wanted = 0;
    for (int i = 0; i < t->op->n_in; i++)
        if (t->din[i].raw) wanted |= TTN_BIT(i);
    return wanted;
}

static uint32_t all_outputs(const instance *t)
{
    return TTN_BIT(t->op->n_out) - 1;
}

/* ---- what is wrong with a buffer ---- */

#define FAULT(err, ...) TTN_FAIL((err), TTN_EINTERNAL, __VA_ARGS__)

static ttn_status check_guard(const instance *t, const char *pass, const char *kind, int number, const buffer *b,
                              ttn_error *err)
{
    const int side = guard_broken(b);
    if (side == 0) return TTN_OK;
    return FAULT(err, "%s: %s writes %s %s %d, outside the buffer", t->op->name, pass,
                 side < 0 ? "in front of" : "behind", kind, number);
}

static ttn_status check_kept(const instance *t, const char *pass, const char *kind, int number, const buffer *b,
                             ttn_error *err)
{
    if (is_saved(b)) return TTN_OK;
    return FAULT(err, "%s: %s writes to %s %d, which it may only read", t->op->name, pass, kind, number);
}

static ttn_status check_all_guards(const instance *t, const char *pass, ttn_error *err)
{
    ttn_status status = TTN_OK;
    for (int i = 0; i < t->op->n_in && status == TTN_OK; i++) {
        status = check_guard(t, pass, "in", i, &t->in[i], err);
        if (status == TTN_OK) status = check_guard(t, pass, "din", i, &t->din[i], err);
    }
    for (int j = 0; j < t->op->n_out && status == TTN_OK; j++) {
        status = check_guard(t, pass, "out", j, &t->out[j], err);
        if (status == TTN_OK) status = check_guard(t, pass, "dout", j, &t->dout[j], err);
    }
    for (int a = 0; a < t->sig.n_aux && status == TTN_OK; a++)
        status = check_guard(t, pass, "aux", a, &t->aux[a], err);
    if (status == TTN_OK) status = check_guard(t, pass, "stat", 0, &t->stat, err);
    if (status == TTN_OK) status = check_guard(t, pass, "work", 0, &t->work, err);
    return status;
}

/* No NaN where something must have been written: the first n elements. */
static ttn_status check_written(const instance *t, const char *pass, const char *kind, int number, const ttn_desc *d,
                                const void *x, int64_t n, ttn_error *err)
{
    if (!is_real(d)) return TTN_OK;
    for (int64_t e = 0; e < n; e++)
        if (!isfinite(get(d, x, e)))
            return FAULT(err,
                         "%s: after %s, element %" PRId64 " of %s %d (row %" PRId64 " of %" PRId64
                         " in use) is %g: not written, or made from what is not defined",
                         t->op->name, pass, e, kind, number, e / row_width(d), ttn_used(&t->feed, d), get(d, x, e));
    return TTN_OK;
}

/* Rows past `used` hold `rest`. */
static ttn_status check_rest(const instance *t, const char *pass, const char *kind, int number, const ttn_desc *d,
                             const void *x, double rest, ttn_error *err)
{
    const int64_t n = ttn_desc_numel(d);
    for (int64_t e = used_elements(&t->feed, d); e < n; e++)
        if (get(d, x, e) != rest)
            return FAULT(err,
                         "%s: after %s, row %" PRId64 " of %s %d is past the %" PRId64 " in use and holds %g, not %g",
                         t->op->name, pass, e / row_width(d), kind, number, ttn_used(&t->feed, d), get(d, x, e), rest);
    return TTN_OK;
}

/* ---- forward and backward, with what must hold after every run ---- */

typedef struct {
    int n_thread;          /* 0: 1 */
    uint32_t aux_left_out; /* spare aux that both passes get as NULL */
    int takes;             /* TTN_SHARES(j): out[j] is written over the input it takes */
    int passes;            /* TTN_SHARES(i): din[i] is written over the dout it takes */
    int acc;
    uint32_t no_dout; /* outputs that reach no loss */
} variation;

static ttn_call call_of(instance *t, const variation *v)
{
    t->on.n_thread = v->n_thread > 0 ? v->n_thread : 1;
    return (ttn_call){.sig = &t->sig, .feed = &t->feed, .on = &t->on, .key = t->feed.seed, .work = t->work.data};
}

static ttn_call forward_call(instance *t, const variation *v)
{
    ttn_call c = call_of(t, v);
    for (int i = 0; i < t->op->n_in; i++)
        c.in[i] = t->in[i].data;
    for (int j = 0; j < t->op->n_out; j++)
        c.out[j] = t->out[j].data;
    for (int a = 0; a < t->sig.n_aux; a++)
        c.aux[a] = v->aux_left_out & TTN_BIT(a) ? NULL : t->aux[a].data;
    c.stat = t->sig.n_stat > 0 ? t->stat.data : NULL;
    return c;
}

static ttn_status forward(instance *t, variation v, ttn_error *err)
{
    const ttn_op *op = t->op;
    for (int j = 0; j < op->n_out; j++)
        clear(&t->out[j]);
    for (int a = 0; a < t->sig.n_aux; a++)
        clear(&t->aux[a]);
    clear(&t->stat);
    clear(&t->work);
    ttn_call c = forward_call(t, &v);
    if (v.takes) {
        const int j = v.takes - 1;
        const int i = op->takes[j] - 1;
        memcpy(t->out[j].data, t->in[i].data, t->in[i].bytes);
        c.in[i] = t->out[j].data;
    }
    ttn_status status = op->cpu.forward(&c, err);
    if (status == TTN_OK) status = check_all_guards(t, "forward", err);
    for (int i = 0; i < op->n_in && status == TTN_OK; i++)
        status = check_kept(t, "forward", "in", i, &t->in[i], err);
    for (int j = 0; j < op->n_out && status == TTN_OK; j++) {
        const ttn_desc *d = &t->sig.out[j];
        status = check_written(t, "forward", "out", j, d, t->out[j].data, used_elements(&t->feed, d), err);
        if (status == TTN_OK) status = check_rest(t, "forward", "out", j, d, t->out[j].data, 0, err);
        save(&t->out[j]);
    }
    for (int a = 0; a < t->sig.n_aux && status == TTN_OK; a++) {
        const ttn_desc *d = &t->sig.aux[a];
        if (c.aux[a])
            status = check_written(t, "forward", "aux", a, d, t->aux[a].data, used_elements(&t->feed, d), err);
        save(&t->aux[a]);
    }
    for (int s = 0; s < t->sig.n_stat && status == TTN_OK; s++)
        if (isnan(((const double *)t->stat.data)[s]))
            status = FAULT(err, "%s: forward does not write stat %d", op->name, s);
    save(&t->stat);
    return status;
}

static ttn_call backward_call(instance *t, uint32_t wanted, const variation *v)
{
    const ttn_op *op = t->op;
    const ttn_reads reads = ttn_op_reads(op, wanted);
    ttn_call c = call_of(t, v);
    for (int i = 0; i < op->n_in; i++) {
        if (reads.in & TTN_BIT(i)) c.in[i] = t->in[i].data;
        if (!(wanted & TTN_BIT(i))) continue;
        c.din[i] = t->din[i].data;
        c.acc[i] = (real)v->acc;
    }
    for (int j = 0; j < op->n_out; j++) {
        if (reads.out & TTN_BIT(j)) c.out[j] = t->out[j].data;
        if (!(v->no_dout & TTN_BIT(j))) c.dout[j] = t->dout[j].data;
    }
    for (int a = 0; a < t->sig.n_aux; a++)
        if (reads.aux & TTN_BIT(a) && !(v->aux_left_out & TTN_BIT(a))) c.aux[a] = t->aux[a].data;
    return c;
}

/* din[i] before backward: anything when acc is 0. */
static void prepare_gradients(instance *t, int acc)
{
    for (int i = 0; i < t->op->n_in; i++) {
        clear(&t->din[i]);
        if (!acc || !t->din[i].raw) continue;
        for (int64_t e = 0; e < ttn_desc_numel(&t->sig.in[i]); e++)
            set(&t->sig.in[i], t->din[i].data, e, 1);
    }
}

/* After `forward`. */
static ttn_status backward(instance *t, uint32_t wanted, variation v, ttn_error *err)
{
    const ttn_op *op = t->op;
    prepare_gradients(t, v.acc);
    clear(&t->work);
    ttn_call c = backward_call(t, wanted, &v);
    if (v.passes) {
        const int i = v.passes - 1;
        const int j = op->passes[i] - 1;
        memcpy(t->din[i].data, t->dout[j].data, t->dout[j].bytes);
        c.dout[j] = t->din[i].data;
    }
    ttn_status status = op->cpu.backward(&c, err);
    if (status == TTN_OK) status = check_all_guards(t, "backward", err);
    for (int i = 0; i < op->n_in && status == TTN_OK; i++) {
        const ttn_desc *d = &t->sig.in[i];
        status = check_kept(t, "backward", "in", i, &t->in[i], err);
        if (status != TTN_OK || !(wanted & TTN_BIT(i))) continue;
        status = check_written(t, "backward", "din", i, d, t->din[i].data, used_elements(&t->feed, d), err);
        if (status == TTN_OK) status = check_rest(t, "backward", "din", i, d, t->din[i].data, v.acc, err);
    }
    for (int j = 0; j < op->n_out && status == TTN_OK; j++) {
        status = check_kept(t, "backward", "out", j, &t->out[j], err);
        if (status == TTN_OK) status = check_kept(t, "backward", "dout", j, &t->dout[j], err);
    }
    for (int a = 0; a < t->sig.n_aux && status == TTN_OK; a++)
        status = check_kept(t, "backward", "aux", a, &t->aux[a], err);
    return status;
}

/* The first run of a property: forward, then all gradients; din is saved. */
static ttn_status first_run(instance *t, ttn_error *err)
{
    ttn_status status = forward(t, (variation){0}, err);
    if (status == TTN_OK) status = backward(t, all_wanted(t), (variation){0}, err);
    for (int i = 0; i < t->op->n_in; i++)
        save(&t->din[i]);
    return status;
}

/* ---- comparing ---- */

/* The same bits, but for the sign of a zero. `rows` (may be NULL): those rows only. */
static ttn_status same(const instance *t, const char *kind, int number, const ttn_desc *d, const void *a, const void *b,
                       int64_t n, const unsigned char *rows, const char *between, ttn_error *err)
{
    const size_t size = ttn_dtype_size(d->type);
    for (int64_t e = 0; e < n; e++) {
        if (rows && !rows[e / row_width(d)]) continue;
        if (memcmp((const char *)a + (size_t)e * size, (const char *)b + (size_t)e * size, size) == 0) continue;
        const double x = get(d, a, e);
        const double y = get(d, b, e);
        if (x == 0 && y == 0) continue;
        return FAULT(err, "%s: element %" PRId64 " of %s %d is not the same %s: %.17g and %.17g", t->op->name, e, kind,
                     number, between, x, y);
    }
    return TTN_OK;
}

/* b is within bound * (1 + the largest |a|) of a + shift. */
static ttn_status near(const instance *t, const char *kind, int number, const ttn_desc *d, const void *a, double shift,
                       const void *b, int64_t n, double bound, const char *between, ttn_error *err)
{
    double scale = 1;
    for (int64_t e = 0; e < n; e++)
        if (fabs(get(d, a, e)) + 1 > scale) scale = fabs(get(d, a, e)) + 1;
    for (int64_t e = 0; e < n; e++) {
        const double x = get(d, a, e) + shift;
        const double y = get(d, b, e);
        if (!(fabs(x - y) <= bound * scale))
            return FAULT(err, "%s: element %" PRId64 " of %s %d is not the same %s: %.9g and %.9g (values up to %.1e)",
                         t->op->name, e, kind, number, between, x, y, scale - 1);
    }
    return TTN_OK;
}

static const ttn_desc doubles = {.type = TTN_F64, .ndim = 1};

/* Outputs, aux that were kept, and statistics are those of the saved run. */
static ttn_status same_forward(const instance *t, const instance *was, uint32_t no_aux, const char *between,
                               ttn_error *err)
{
    ttn_status status = TTN_OK;
    for (int j = 0; j < t->op->n_out && status == TTN_OK; j++)
        status = same(t, "out", j, &t->sig.out[j], was->out[j].saved, t->out[j].data,
                      used_elements(&t->feed, &t->sig.out[j]), NULL, between, err);
    for (int a = 0; a < t->sig.n_aux && status == TTN_OK; a++)
        if (!(no_aux & TTN_BIT(a)) && is_real(&t->sig.aux[a]))
            status = same(t, "aux", a, &t->sig.aux[a], was->aux[a].saved, t->aux[a].data,
                          used_elements(&t->feed, &t->sig.aux[a]), NULL, between, err);
    if (status == TTN_OK)
        status = same(t, "stat", 0, &doubles, was->stat.saved, t->stat.data, t->sig.n_stat, NULL, between, err);
    return status;
}

/* The gradients in `wanted` are those of the saved run. */
static ttn_status same_backward(const instance *t, uint32_t wanted, const char *between, ttn_error *err)
{
    ttn_status status = TTN_OK;
    for (int i = 0; i < t->op->n_in && status == TTN_OK; i++)
        if (wanted & TTN_BIT(i))
            status = same(t, "din", i, &t->sig.in[i], t->din[i].saved, t->din[i].data, ttn_desc_numel(&t->sig.in[i]),
                          NULL, between, err);
    return status;
}

/* ---- properties: shapes ---- */

static int is_good(const ttn_op *op, const ttn_case *k)
{
    (void)op;
    return !k->refused && !k->fails;
}

static int is_refused(const ttn_op *op, const ttn_case *k)
{
    (void)op;
    return k->refused != NULL;
}

static int is_failing(const ttn_op *op, const ttn_case *k)
{
    (void)op;
    return k->fails != NULL;
}

/* A sentence that begins with the op's name and contains `words`. */
static ttn_status check_sentence(const ttn_op *op, const char *what, ttn_status got, const ttn_error *why,
                                 const char *words, ttn_error *err)
{
    if (got == TTN_OK) return FAULT(err, "%s: %s accepts this; expected a refusal with '%s'", op->name, what, words);
    const size_t name = strlen(op->name);
    if (strncmp(why->text, op->name, name) != 0 || why->text[name] != ':')
        return FAULT(err, "%s: %s refuses this with '%s', which does not begin with the op's name", op->name, what,
                     why->text);
    if (!strstr(why->text, words))
        return FAULT(err, "%s: %s refuses this with '%s', expected '%s' in it", op->name, what, why->text, words);
    return TTN_OK;
}

static ttn_status check_refused(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err)
{
    (void)o;
    ttn_sig s = signature(op, k, 0);
    ttn_error why = {0};
    const ttn_status status = op->shape(&s, &why);
    return check_sentence(op, "shape", status, &why, k->refused, err);
}

static ttn_status check_failing(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err)
{
    instance t;
    ttn_status status = create(&t, op, k, &(setup){.seed = o->seed}, err);
    if (status == TTN_OK) {
        ttn_error why = {0};
        const variation v = {0};
        ttn_call c = forward_call(&t, &v);
        const ttn_status failed = op->cpu.forward(&c, &why);
        status = check_sentence(op, "forward", failed, &why, k->fails, err);
    }
    if (status == TTN_OK) status = check_all_guards(&t, "forward", err);
    destroy(&t);
    return status;
}

static ttn_status check_shape(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err)
{
    (void)o;
    ttn_sig s = signature(op, k, 0);
    const ttn_sig given = s;
    ttn_status status = op->shape(&s, err);
    if (status != TTN_OK) return status;
    int changed = s.attr != given.attr || s.n_in != given.n_in;
    for (int i = 0; i < op->n_in; i++)
        changed |= !ttn_desc_same(&s.in[i], &given.in[i]);
    if (changed) return FAULT(err, "%s: shape changes what it was given", op->name);
    if (s.n_out != op->n_out) return FAULT(err, "%s: shape makes %d outputs of %d", op->name, s.n_out, op->n_out);
    if (s.n_aux < 0 || s.n_aux > TTN_MAX_AUX) return FAULT(err, "%s: shape declares %d aux", op->name, s.n_aux);
    if (s.n_stat < op->n_stats) return FAULT(err, "%s: %d statistics, %d numbers", op->name, op->n_stats, s.n_stat);
    for (int j = 0; j < s.n_out; j++) {
        status = ttn_desc_check(&s.out[j], op->name, err);
        if (status != TTN_OK) return status;
        const int i = op->takes[j] - 1;
        if (i >= 0 && s.in[i].ndim >= 0 && !ttn_desc_same(&s.out[j], &s.in[i]))
            return FAULT(err, "%s: takes: out %d has not the shape of in %d", op->name, j, i);
    }
    for (int a = 0; a < s.n_aux; a++) {
        status = ttn_desc_check(&s.aux[a], op->name, err);
        if (status != TTN_OK) return status;
    }
    for (int i = 0; i < op->n_in; i++) {
        if (op->reads[i].aux >= TTN_BIT(s.n_aux))
            return FAULT(err, "%s: reads[%d] lists more than %d aux", op->name, i, s.n_aux);
        const int j = op->passes[i] - 1;
        if (j >= 0 && s.in[i].ndim >= 0 && !ttn_desc_same(&s.out[j], &s.in[i]))
            return FAULT(err, "%s: passes: din %d has not the shape of dout %d", op->name, i, j);
    }
    return TTN_OK;
}

static ttn_status check_cost(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err)
{
    (void)o;
    ttn_sig s = signature(op, k, 0);
    ttn_status status = op->shape(&s, err);
    if (status != TTN_OK) return status;
    for (int pass = TTN_FORWARD; pass <= TTN_BACKWARD; pass++) {
        const ttn_cost c = op->cost(&s, (ttn_pass)pass, TTN_BIT(s.n_aux) - 1);
        const char *name = pass == TTN_FORWARD ? "forward" : "backward";
        if (!(c.done >= 0 && c.useful >= 0 && c.bytes >= 0 && isfinite(c.done) && isfinite(c.bytes)))
            return FAULT(err, "%s: cost of %s is %g done, %g useful, %g bytes", op->name, name, c.done, c.useful,
                         c.bytes);
        if (c.useful > c.done)
            return FAULT(err, "%s: cost of %s: %g useful flops of %g done", op->name, name, c.useful, c.done);
        if (ttn_desc_numel(&s.in[0]) > 0 && !(c.bytes > 0))
            return FAULT(err, "%s: cost of %s moves no bytes", op->name, name);
    }
    return TTN_OK;
}

/* ---- properties: gradients ---- */

static int is_good_in_double(const ttn_op *op, const ttn_case *k)
{
    return sizeof(real) == sizeof(double) && is_good(op, k);
}

/* (loss(x + h) - loss(x - h)) / 2h for element e of input i, loss = sum out dout. The outputs are subtracted before they
 * are summed, so that those which do not change cancel exactly. up: (elements of all outputs). */
static ttn_status difference(instance *t, int i, int64_t e, double *up, double *ret, ttn_error *err)
{
    const variation v = {0};
    ttn_call c = forward_call(t, &v);
    const ttn_desc *d = &t->sig.in[i];
    const double keep = get(d, t->in[i].data, e);
    set(d, t->in[i].data, e, keep + STEP);
    const double above = get(d, t->in[i].data, e);
    ttn_status status = t->op->cpu.forward(&c, err);
    if (status != TTN_OK) return status;
    int64_t at = 0;
    for (int j = 0; j < t->op->n_out; j++) {
        const int64_t n = used_elements(&t->feed, &t->sig.out[j]);
        for (int64_t y = 0; y < n; y++)
            up[at + y] = get(&t->sig.out[j], t->out[j].data, y);
        at += n;
    }
    set(d, t->in[i].data, e, keep - STEP);
    const double below = get(d, t->in[i].data, e);
    status = t->op->cpu.forward(&c, err);
    if (status != TTN_OK) return status;
    double sum = 0;
    at = 0;
    for (int j = 0; j < t->op->n_out; j++) {
        const int64_t n = used_elements(&t->feed, &t->sig.out[j]);
        for (int64_t y = 0; y < n; y++)
            sum += (up[at + y] - get(&t->sig.out[j], t->out[j].data, y)) * get(&t->sig.out[j], t->dout[j].data, y);
        at += n;
    }
    set(d, t->in[i].data, e, keep);
    *ret = sum / (above - below);
    return TTN_OK;
}

static ttn_status compare_with_differences(instance *t, int i, const ttn_gradcheck_options *o, double *up,
                                           ttn_error *err)
{
    const ttn_desc *d = &t->sig.in[i];
    const int64_t n = used_elements(&t->feed, d);
    const int64_t most = o->most_elements > 0 ? o->most_elements : 300;
    const int64_t stride = 1 + n / most;
    double worst = 0;
    int64_t worst_at = 0;
    double worst_numeric = 0;
    for (int64_t e = 0; e < n; e += stride) {
        double numeric = 0;
        ttn_status status = difference(t, i, e, up, &numeric, err);
        if (status != TTN_OK) return status;
        const double error = fabs(numeric - get(d, t->din[i].saved, e)) / (1 + fabs(numeric));
        if (error <= worst) continue;
        worst = error;
        worst_at = e;
        worst_numeric = numeric;
        if (isnan(error)) break;
    }
    if (worst <= GRADIENT_BOUND) return TTN_OK;
    return FAULT(err,
                 "%s: din %d is not the gradient: element %" PRId64 " (row %" PRId64
                 ") is %.9g, central differences give %.9g; off by %.1e, at most %.1e is rounding",
                 t->op->name, i, worst_at, worst_at / row_width(d), get(d, t->din[i].saved, worst_at), worst_numeric,
                 worst, GRADIENT_BOUND);
}

static ttn_status check_gradients(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err)
{
    instance t;
    double *up = NULL;
    ttn_status status = create(&t, op, k, &(setup){.seed = o->seed}, err);
    if (status == TTN_OK) status = first_run(&t, err);
    if (status == TTN_OK) {
        int64_t n = 0;
        for (int j = 0; j < op->n_out; j++)
            n += used_elements(&t.feed, &t.sig.out[j]);
        up = ttn_alloc_or_say(n, sizeof *up, "outputs of a checked op", err);
        if (!up) status = TTN_ENOMEM;
    }
    for (int i = 0; i < op->n_in && status == TTN_OK; i++)
        if (t.din[i].raw) status = compare_with_differences(&t, i, o, up, err);
    ttn_free(up);
    destroy(&t);
    return status;
}

/* Calls fn for every subset of `all`; with more than six members: each alone, all but one, all, none. */
static ttn_status each_subset(uint32_t all, ttn_status (*fn)(instance *t, uint32_t wanted, ttn_error *err), instance *t,
                              ttn_error *err)
{
    const int members = __builtin_popcount(all);
    for (uint32_t wanted = 0; wanted <= all; wanted++) {
        if (wanted & ~all) continue;
        const int n = __builtin_popcount(wanted);
        if (members > 6 && n > 1 && n < members - 1) continue;
        ttn_status status = fn(t, wanted, err);
        if (status != TTN_OK) return status;
    }
    return TTN_OK;
}

static ttn_status try_subset(instance *t, uint32_t wanted, ttn_error *err)
{
    char between[64];
    snprintf(between, sizeof between, "when all gradients or only those in 0x%x are asked for", wanted);
    ttn_status status = backward(t, wanted, (variation){0}, err);
    if (status == TTN_OK) status = same_backward(t, wanted, between, err);
    for (int i = 0; i < t->op->n_in && status == TTN_OK; i++) {
        if (wanted & TTN_BIT(i) || !t->din[i].raw) continue;
        for (size_t b = 0; b < t->din[i].bytes; b++)
            if (((const unsigned char *)t->din[i].data)[b] != UNTOUCHED)
                return FAULT(err, "%s: backward writes din %d, which was not asked for", t->op->name, i);
    }
    return status;
}

static ttn_status check_subsets(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err)
{
    instance t;
    ttn_status status = create(&t, op, k, &(setup){.seed = o->seed}, err);
    if (status == TTN_OK) status = first_run(&t, err);
    if (status == TTN_OK) status = each_subset(all_wanted(&t), try_subset, &t, err);
    destroy(&t);
    return status;
}

static ttn_status try_accumulating(instance *t, uint32_t wanted, ttn_error *err)
{
    ttn_status status = backward(t, wanted, (variation){.acc = 1}, err);
    for (int i = 0; i < t->op->n_in && status == TTN_OK; i++) {
        if (!(wanted & TTN_BIT(i))) continue;
        const ttn_desc *d = &t->sig.in[i];
        status = near(t, "din", i, d, t->din[i].saved, 1, t->din[i].data, ttn_desc_numel(d), ORDER_BOUND,
                      "with acc 0 and 1 added to it, and with acc 1 over ones", err);
    }
    return status;
}

static ttn_status check_accumulation(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o,
                                     ttn_error *err)
{
    instance t;
    ttn_status status = create(&t, op, k, &(setup){.seed = o->seed}, err);
    if (status == TTN_OK) status = first_run(&t, err);
    if (status == TTN_OK) status = each_subset(all_wanted(&t), try_accumulating, &t, err);
    destroy(&t);
    return status;
}

static int has_several_outputs(const ttn_op *op, const ttn_case *k)
{
    return op->n_out > 1 && is_good(op, k);
}

/* A dout that is NULL gives the gradients of one that is zero. */
static ttn_status check_dead_outputs(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o,
                                     ttn_error *err)
{
    instance t;
    ttn_status status = create(&t, op, k, &(setup){.seed = o->seed}, err);
    if (status == TTN_OK) status = forward(&t, (variation){0}, err);
    for (uint32_t dead = 1; status == TTN_OK && dead < all_outputs(&t); dead++) {
        for (int j = 0; j < op->n_out; j++) {
            fill(&t, &(setup){.seed = o->seed}, DOUT + j, -1, 1, &t.sig.out[j], &t.dout[j]);
            if (dead & TTN_BIT(j)) memset(t.dout[j].data, 0, t.dout[j].bytes);
            save(&t.dout[j]);
        }
        status = backward(&t, all_wanted(&t), (variation){0}, err);
        for (int i = 0; i < op->n_in; i++)
            save(&t.din[i]);
        if (status == TTN_OK) status = backward(&t, all_wanted(&t), (variation){.no_dout = dead}, err);
        for (int i = 0; i < op->n_in && status == TTN_OK; i++)
            if (t.din[i].raw)
                status = near(&t, "din", i, &t.sig.in[i], t.din[i].saved, 0, t.din[i].data,
                              ttn_desc_numel(&t.sig.in[i]), ORDER_BOUND, "with a dout of zeros and with none", err);
    }
    destroy(&t);
    return status;
}

/* ---- properties: the same bits ---- */

static ttn_status check_threads(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err)
{
    static const int counts[] = {1, 2, 3, 5, MOST_THREADS};
    instance t;
    instance one;
    ttn_status status = create(&t, op, k, &(setup){.seed = o->seed}, err);
    const ttn_status other = create(&one, op, k, &(setup){.seed = o->seed}, err);
    if (status == TTN_OK) status = other;
    if (status == TTN_OK) status = first_run(&t, err);
    if (status == TTN_OK) status = first_run(&one, err);
    for (size_t n = 0; n < sizeof counts / sizeof *counts && status == TTN_OK; n++) {
        char between[64];
        snprintf(between, sizeof between, "with 1 thread and with %d", counts[n]);
        const variation v = {.n_thread = counts[n]};
        status = forward(&t, v, err);
        if (status == TTN_OK) status = same_forward(&t, &one, 0, between, err);
        if (status == TTN_OK) status = backward(&t, all_wanted(&t), v, err);
        if (status == TTN_OK) status = same_backward(&t, all_wanted(&t), between, err);
    }
    destroy(&one);
    destroy(&t);
    return status;
}

static ttn_status check_repeated(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err)
{
    instance t;
    instance first;
    ttn_status status = create(&t, op, k, &(setup){.seed = o->seed}, err);
    const ttn_status other = create(&first, op, k, &(setup){.seed = o->seed}, err);
    if (status == TTN_OK) status = other;
    if (status == TTN_OK) status = first_run(&first, err);
    if (status == TTN_OK) status = first_run(&t, err);
    for (int again = 0; again < 2 && status == TTN_OK; again++) {
        if (again) status = forward(&t, (variation){0}, err);
        if (status == TTN_OK) status = same_forward(&t, &first, 0, "in the first run and when it runs again", err);
        if (status == TTN_OK) status = backward(&t, all_wanted(&t), (variation){0}, err);
        if (status == TTN_OK)
            status = same_backward(&t, all_wanted(&t), "in the first run and when it runs again", err);
    }
    destroy(&first);
    destroy(&t);
    return status;
}

/* Values with an axis: the same bits in the used rows. Fixed ones are sums over rows, in lanes that the capacity
 * decides. */
static ttn_status same_or_near(const instance *t, const char *kind, int number, const ttn_desc *d, const void *a,
                               const void *b, const char *between, ttn_error *err)
{
    const int64_t n = used_elements(&t->feed, d);
    if (d->axis != TTN_FIXED) return same(t, kind, number, d, a, b, n, NULL, between, err);
    return near(t, kind, number, d, a, 0, b, n, ORDER_BOUND, between, err);
}

static ttn_status check_capacity(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err)
{
    static const char between[] = "when the capacity is larger";
    instance t;
    instance large;
    ttn_status status = create(&t, op, k, &(setup){.seed = o->seed}, err);
    const ttn_status other = create(&large, op, k, &(setup){.seed = o->seed, .more = 1}, err);
    if (status == TTN_OK) status = other;
    if (status == TTN_OK) status = first_run(&t, err);
    if (status == TTN_OK) status = first_run(&large, err);
    for (int j = 0; j < op->n_out && status == TTN_OK; j++)
        status = same_or_near(&t, "out", j, &t.sig.out[j], t.out[j].data, large.out[j].data, between, err);
    for (int i = 0; i < op->n_in && status == TTN_OK; i++)
        if (t.din[i].raw)
            status = same_or_near(&t, "din", i, &t.sig.in[i], t.din[i].data, large.din[i].data, between, err);
    if (status == TTN_OK)
        status =
            near(&t, "stat", 0, &doubles, t.stat.data, 0, large.stat.data, t.sig.n_stat, ORDER_BOUND, between, err);
    destroy(&large);
    destroy(&t);
    return status;
}

/* ---- properties: rows of no sequence ---- */

/* rows[t] = 1 for the rows of sequences, 0 for those of none. Returns how many used rows are of none. */
static int64_t mark_rows(const ttn_case *k, unsigned char *rows)
{
    int64_t none = k->used.rows;
    for (int64_t s = 0; s < k->used.seqs; s++)
        for (int64_t r = k->span[s].first; r < k->span[s].first + k->span[s].n; r++) {
            if (rows) rows[r] = 1;
            none--;
        }
    return none;
}

static int has_free_rows(const ttn_op *op, const ttn_case *k)
{
    if (!is_good(op, k) || k->used.seqs == 0 || mark_rows(k, NULL) == 0) return 0;
    for (int i = 0; i < op->n_in; i++)
        if (k->in[i].ndim > 0 && k->in[i].axis == TTN_ROWS) return 1;
    return 0;
}

/* Other finite values in the rows of no sequence. */
static void disturb(instance *t, int i, const unsigned char *rows, double factor)
{
    const ttn_desc *d = &t->sig.in[i];
    const int64_t width = row_width(d);
    const int64_t n = used_elements(&t->feed, d);
    for (int64_t e = 0; e < n; e++) {
        if (rows[e / width]) continue;
        if (is_real(d))
            set(d, t->in[i].data, e, factor * get(d, t->in[i].data, e) + 0.5);
        else
            set(d, t->in[i].data, e, t->k->range[i].lo);
    }
    save(&t->in[i]);
}

static ttn_status check_free_rows(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err)
{
    static const char between[] = "when rows of no sequence hold something else";
    instance t;
    instance other;
    unsigned char *rows = ttn_alloc_or_say(k->used.rows, 1, "marks of rows", err);
    ttn_status status = create(&t, op, k, &(setup){.seed = o->seed}, err);
    const ttn_status second = create(&other, op, k, &(setup){.seed = o->seed}, err);
    if (status == TTN_OK) status = second;
    if (!rows) status = TTN_ENOMEM;
    if (status == TTN_OK) {
        mark_rows(k, rows);
        for (int i = 0; i < op->n_in; i++)
            if (t.in[i].raw && t.sig.in[i].axis == TTN_ROWS) disturb(&other, i, rows, 1000);
        /* no loss looks at those rows */
        for (int j = 0; j < op->n_out; j++) {
            const ttn_desc *d = &t.sig.out[j];
            if (d->axis != TTN_ROWS) continue;
            for (int64_t e = 0; e < used_elements(&t.feed, d); e++) {
                if (rows[e / row_width(d)]) continue;
                set(d, t.dout[j].data, e, 0);
                set(d, other.dout[j].data, e, 0);
            }
            save(&t.dout[j]);
            save(&other.dout[j]);
        }
        status = first_run(&t, err);
    }
    if (status == TTN_OK) status = first_run(&other, err);
    for (int j = 0; j < op->n_out && status == TTN_OK; j++) {
        const ttn_desc *d = &t.sig.out[j];
        status = same(&t, "out", j, d, t.out[j].data, other.out[j].data, used_elements(&t.feed, d),
                      d->axis == TTN_ROWS ? rows : NULL, between, err);
    }
    if (status == TTN_OK)
        status = same(&t, "stat", 0, &doubles, t.stat.data, other.stat.data, t.sig.n_stat, NULL, between, err);
    for (int i = 0; i < op->n_in && status == TTN_OK; i++) {
        const ttn_desc *d = &t.sig.in[i];
        if (t.din[i].raw)
            status = same(&t, "din", i, d, t.din[i].data, other.din[i].data, used_elements(&t.feed, d),
                          d->axis == TTN_ROWS ? rows : NULL, between, err);
    }
    destroy(&other);
    destroy(&t);
    ttn_free(rows);
    return status;
}

/* ---- properties: shared buffers ---- */

static int takes_or_passes(const ttn_op *op, const ttn_case *k)
{
    if (!is_good(op, k)) return 0;
    for (int j = 0; j < op->n_out; j++)
        if (op->takes[j]) return 1;
    for (int i = 0; i < op->n_in; i++)
        if (op->passes[i]) return 1;
    return 0;
}

static ttn_status check_in_place(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err)
{
    instance t;
    instance apart;
    ttn_status status = create(&t, op, k, &(setup){.seed = o->seed}, err);
    const ttn_status other = create(&apart, op, k, &(setup){.seed = o->seed}, err);
    if (status == TTN_OK) status = other;
    if (status == TTN_OK) status = first_run(&t, err);
    if (status == TTN_OK) status = first_run(&apart, err);
    for (int i = 0; i < op->n_in && status == TTN_OK; i++) {
        if (!op->passes[i] || !t.din[i].raw) continue;
        char between[64];
        snprintf(between, sizeof between, "when din %d is written over dout %d", i, op->passes[i] - 1);
        const variation v = {.passes = TTN_SHARES(i)};
        status = backward(&t, TTN_BIT(i), v, err);
        if (status == TTN_OK) status = same_backward(&t, TTN_BIT(i), between, err);
        if (status == TTN_OK) status = backward(&t, all_wanted(&t), v, err);
        if (status == TTN_OK) status = same_backward(&t, all_wanted(&t), between, err);
    }
    for (int j = 0; j < op->n_out && status == TTN_OK; j++) {
        if (!op->takes[j] || t.sig.in[op->takes[j] - 1].ndim < 0) continue;
        char between[64];
        snprintf(between, sizeof between, "when out %d is written over in %d", j, op->takes[j] - 1);
        status = forward(&t, (variation){.takes = TTN_SHARES(j)}, err);
        if (status == TTN_OK) status = same_forward(&t, &apart, 0, between, err);
    }
    destroy(&apart);
    destroy(&t);
    return status;
}

/* Two inputs that could be one value: both differentiable, one shape. Searched from (*i, *k) on; 0: no more. */
static int next_twins(const ttn_op *op, const ttn_case *c, int *i, int *k)
{
    ttn_sig s = signature(op, c, 0);
    for (; *i < op->n_in; (*i)++) {
        for (; *k < op->n_in; (*k)++) {
            const uint32_t both = TTN_BIT(*i) | TTN_BIT(*k);
            if ((op->differentiable & both) != both || s.in[*i].ndim < 0) continue;
            if (ttn_desc_same(&s.in[*i], &s.in[*k])) return 1;
        }
        *k = *i + 2;
    }
    return 0;
}

static int has_twins(const ttn_op *op, const ttn_case *k)
{
    int i = 0;
    int second = 1;
    return is_good(op, k) && next_twins(op, k, &i, &second);
}

static ttn_status try_twins(instance *t, int i, int k, ttn_error *err)
{
    const ttn_desc *d = &t->sig.in[i];
    memcpy(t->in[k].data, t->in[i].data, t->in[i].bytes);
    save(&t->in[k]);
    ttn_status status = first_run(t, err);
    if (status != TTN_OK) return status;
    /* one value, one buffer for its gradient, written in the order of the inputs */
    prepare_gradients(t, 0);
    clear(&t->work);
    const variation v = {0};
    ttn_call c = backward_call(t, all_wanted(t), &v);
    if (c.in[k]) c.in[k] = t->in[i].data;
    c.din[k] = c.din[i];
    c.acc[k] = 1;
    status = t->op->cpu.backward(&c, err);
    if (status == TTN_OK) status = check_all_guards(t, "backward", err);
    if (status != TTN_OK) return status;
    for (int64_t e = 0; e < ttn_desc_numel(d); e++)
        set(d, t->din[k].data, e, get(d, t->din[i].saved, e) + get(d, t->din[k].saved, e));
    return near(t, "din", i, d, t->din[k].data, 0, t->din[i].data, ttn_desc_numel(d), ORDER_BOUND,
                "as a sum of two gradients, and in one buffer for a value given twice", err);
}

static ttn_status check_twins(const ttn_op *op, const ttn_case *c, const ttn_gradcheck_options *o, ttn_error *err)
{
    int k = 1;
    for (int i = 0; next_twins(op, c, &i, &k); k++) {
        instance t;
        ttn_status status = create(&t, op, c, &(setup){.seed = o->seed}, err);
        if (status == TTN_OK) status = try_twins(&t, i, k, err);
        destroy(&t);
        if (status != TTN_OK) return status;
    }
    return TTN_OK;
}

static int has_spare(const ttn_op *op, const ttn_case *k)
{
    return op->spare != 0 && is_good(op, k);
}

static ttn_status check_spare(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err)
{
    instance t;
    instance kept;
    ttn_status status = create(&t, op, k, &(setup){.seed = o->seed}, err);
    const ttn_status other = create(&kept, op, k, &(setup){.seed = o->seed}, err);
    if (status == TTN_OK) status = other;
    if (status == TTN_OK) status = first_run(&t, err);
    if (status == TTN_OK) status = first_run(&kept, err);
    for (uint32_t out = 1; status == TTN_OK && out <= op->spare; out++) {
        if (out & ~op->spare) continue;
        char between[64];
        snprintf(between, sizeof between, "when aux 0x%x is kept and when it is left out", out);
        const variation v = {.aux_left_out = out};
        status = forward(&t, v, err);
        if (status == TTN_OK) status = same_forward(&t, &kept, out, between, err);
        if (status == TTN_OK) status = backward(&t, all_wanted(&t), v, err);
        if (status == TTN_OK) status = same_backward(&t, all_wanted(&t), between, err);
    }
    destroy(&kept);
    destroy(&t);
    return status;
}

/* ---- the table ---- */

const ttn_property ttn_properties[] = {
    {"refused shapes", is_refused, check_refused},
    {"refused data", is_failing, check_failing},
    {"shape rule", is_good, check_shape},
    {"cost", is_good, check_cost},
    {"gradients", is_good_in_double, check_gradients},
    {"every subset of gradients", is_good, check_subsets},
    {"accumulation", is_good, check_accumulation},
    {"outputs without a loss", has_several_outputs, check_dead_outputs},
    {"threads", is_good, check_threads},
    {"a second run", is_good, check_repeated},
    {"a larger capacity", is_good, check_capacity},
    {"rows of no sequence", has_free_rows, check_free_rows},
    {"shared buffers", takes_or_passes, check_in_place},
    {"one value in two inputs", has_twins, check_twins},
    {"spare aux left out", has_spare, check_spare},
    {NULL, NULL, NULL},
};

const ttn_property *ttn_property_find(const char *name)
{
    for (const ttn_property *p = ttn_properties; p->name; p++)
        if (strcmp(p->name, name) == 0) return p;
    return NULL;
}

/* ---- of an op as a whole ---- */

static ttn_status check_coverage(const ttn_op *op, ttn_error *err)
{
    int good = 0;
    int refused = 0;
    uint32_t present = 0;
    uint32_t left_out = 0;
    for (int k = 0; k < op->n_cases; k++) {
        const ttn_case *c = &op->cases[k];
        if (!c->about) return FAULT(err, "%s: case %d does not say what it is about", op->name, k);
        if (op->attr_bytes > 0 && !c->attr)
            return FAULT(err, "%s: case %d (%s) has no attributes", op->name, k, c->about);
        refused += c->refused != NULL;
        if (!is_good(op, c)) continue;
        good++;
        for (int i = 0; i < op->n_in; i++) {
            if (c->in[i].ndim < 0)
                left_out |= TTN_BIT(i);
            else
                present |= TTN_BIT(i);
        }
    }
    if (good == 0 || refused == 0)
        return FAULT(err, "%s: %d good cases and %d refused ones, expected some of each", op->name, good, refused);
    for (int i = 0; i < op->n_in; i++) {
        if (!(present & TTN_BIT(i))) return FAULT(err, "%s: no case has input %d", op->name, i);
        if (op->optional & TTN_BIT(i) && !(left_out & TTN_BIT(i)))
            return FAULT(err, "%s: no case leaves out input %d, which is optional", op->name, i);
        if (!(op->optional & TTN_BIT(i)) && left_out & TTN_BIT(i))
            return FAULT(err, "%s: a case leaves out input %d, which is not optional", op->name, i);
    }
    return TTN_OK;
}

ttn_status ttn_gradcheck_descriptor(const ttn_op *op, ttn_error *err)
{
    if (!op->name || !op->name[0]) return FAULT(err, "an op has no name");
    if (!op->shape || !op->cost || !op->cpu.forward || !op->cpu.backward)
        return FAULT(err, "%s: a function is missing", op->name);
    if (op->n_in < 0 || op->n_in > TTN_MAX_IN || op->n_out < 1 || op->n_out > TTN_MAX_OUT)
        return FAULT(err, "%s: %d inputs and %d outputs, at most %d and %d are possible", op->name, op->n_in, op->n_out,
                     TTN_MAX_IN, TTN_MAX_OUT);
    const uint32_t ins = TTN_BIT(op->n_in) - 1;
    const uint32_t outs = TTN_BIT(op->n_out) - 1;
    if (op->optional & ~ins || op->differentiable & ~ins)
        return FAULT(err, "%s: optional or differentiable names an input that does not exist", op->name);
    if (op->spare >= TTN_BIT(TTN_MAX_AUX)) return FAULT(err, "%s: spare names an aux that does not exist", op->name);
    for (int j = 0; j < TTN_MAX_OUT; j++)
        if (op->takes[j] < 0 || op->takes[j] > op->n_in || (j >= op->n_out && op->takes[j]))
            return FAULT(err, "%s: takes[%d] is %d; see TTN_SHARES", op->name, j, op->takes[j]);
    for (int i = 0; i < TTN_MAX_IN; i++) {
        const ttn_reads r = op->reads[i];
        const int can = i < op->n_in && op->differentiable & TTN_BIT(i);
        if (op->passes[i] < 0 || op->passes[i] > op->n_out || (!can && op->passes[i]))
            return FAULT(err, "%s: passes[%d] is %d; see TTN_SHARES", op->name, i, op->passes[i]);
        if (r.in & ~ins || r.out & ~outs)
            return FAULT(err, "%s: reads[%d] names a value that does not exist", op->name, i);
        if (!can && (r.in || r.out || r.aux))
            return FAULT(err, "%s: reads[%d] of an input without a gradient", op->name, i);
    }
    for (int s = 0; s < op->n_stats; s++)
        if (!op->stats[s].name) return FAULT(err, "%s: statistic %d has no name", op->name, s);
    return check_coverage(op, err);
}

/* Does din[i] change when the value is filled with something else: NaN, or its smallest and largest integers? */
static ttn_status is_read(instance *t, int i, buffer *value, const ttn_desc *d, double lo, double hi, variation v,
                          int *ret, ttn_error *err)
{
    const double other[2] = {is_real(d) ? (double)NAN : lo, is_real(d) ? (double)NAN : hi};
    const int64_t n = ttn_desc_numel(d);
    *ret = 0;
    for (int way = 0; way < 2 && !*ret; way++) {
        for (int64_t e = 0; e < n; e++)
            set(d, value->data, e, other[way]);
        prepare_gradients(t, 0);
        ttn_call c = backward_call(t, TTN_BIT(i), &v);
        ttn_status status = t->op->cpu.backward(&c, err);
        restore(value);
        if (status != TTN_OK) return status;
        *ret = !is_saved(&t->din[i]);
    }
    return TTN_OK;
}

typedef struct {
    ttn_reads seen[TTN_MAX_IN];
} sightings;

/* What each gradient is seen to depend on. */
static ttn_status look_for_reads(instance *t, variation v, sightings *s, ttn_error *err)
{
    const ttn_op *op = t->op;
    ttn_status status = forward(t, v, err);
    for (int i = 0; i < op->n_in && status == TTN_OK; i++) {
        if (!t->din[i].raw) continue;
        status = backward(t, TTN_BIT(i), v, err);
        save(&t->din[i]);
        int read = 0;
        for (int k = 0; k < op->n_in && status == TTN_OK; k++) {
            if (!(op->reads[i].in & TTN_BIT(k)) || !t->in[k].raw) continue;
            status = is_read(t, i, &t->in[k], &t->sig.in[k], t->k->range[k].lo, t->k->range[k].hi, v, &read, err);
            if (read) s->seen[i].in |= TTN_BIT(k);
        }
        for (int j = 0; j < op->n_out && status == TTN_OK; j++) {
            if (!(op->reads[i].out & TTN_BIT(j))) continue;
            status = is_read(t, i, &t->out[j], &t->sig.out[j], 0, 1, v, &read, err);
            if (read) s->seen[i].out |= TTN_BIT(j);
        }
        for (int a = 0; a < t->sig.n_aux && status == TTN_OK; a++) {
            if (!(op->reads[i].aux & ~v.aux_left_out & TTN_BIT(a))) continue;
            status = is_read(t, i, &t->aux[a], &t->sig.aux[a], 0, 1, v, &read, err);
            if (read) s->seen[i].aux |= TTN_BIT(a);
        }
    }
    return status;
}

static ttn_status report_idle(const ttn_op *op, int i, const char *kind, uint32_t listed, uint32_t seen, ttn_error *err)
{
    const uint32_t idle = listed & ~seen;
    if (!idle) return TTN_OK;
    return FAULT(err, "%s: reads[%d] lists %s %d, but din %d does not change when it does, in any case", op->name, i,
                 kind, __builtin_ctz(idle), i);
}

ttn_status ttn_gradcheck_idle_reads(const ttn_op *op, const ttn_gradcheck_options *o, ttn_error *err)
{
    sightings s = {0};
    for (int k = 0; k < op->n_cases; k++) {
        if (!is_good(op, &op->cases[k])) continue;
        instance t;
        ttn_status status = create(&t, op, &op->cases[k], &(setup){.seed = o->seed}, err);
        if (status == TTN_OK) status = look_for_reads(&t, (variation){0}, &s, err);
        /* an input that is only read to make a spare aux again */
        if (status == TTN_OK && op->spare) status = look_for_reads(&t, (variation){.aux_left_out = op->spare}, &s, err);
        destroy(&t);
        if (status != TTN_OK) return status;
    }
    for (int i = 0; i < op->n_in; i++) {
        ttn_status status = report_idle(op, i, "in", op->reads[i].in, s.seen[i].in, err);
        if (status == TTN_OK) status = report_idle(op, i, "out", op->reads[i].out, s.seen[i].out, err);
        if (status == TTN_OK) status = report_idle(op, i, "aux", op->reads[i].aux, s.seen[i].aux, err);
        if (status != TTN_OK) return status;
    }
    return TTN_OK;
}

ttn_status ttn_gradcheck_op(const ttn_op *op, const ttn_gradcheck_options *o, int *ret_checks, ttn_error *err)
{
    int checks = 2;
    ttn_status status = ttn_gradcheck_descriptor(op, err);
    for (int k = 0; k < op->n_cases && status == TTN_OK; k++)
        for (const ttn_property *p = ttn_properties; p->name && status == TTN_OK; p++) {
            if (!p->applies(op, &op->cases[k])) continue;
            status = p->check(op, &op->cases[k], o, err);
            checks++;
        }
    if (status == TTN_OK) status = ttn_gradcheck_idle_reads(op, o, err);
    if (ret_checks) *ret_checks = checks;
    return status;
}

/* ---- two precisions ---- */

static void append(ttn_gradcheck_values *v, const char *kind, int number, const ttn_desc *d, const void *x, int64_t n)
{
    snprintf(v->part[v->n_part].name, sizeof v->part[v->n_part].name, "%s %d", kind, number);
    v->part[v->n_part].first = v->n;
    v->part[v->n_part].n = n;
    v->n_part++;
    for (int64_t e = 0; e < n; e++)
        v->value[v->n++] = get(d, x, e);
}

static int64_t elements(const instance *t, const ttn_desc *d, const buffer *b)
{
    return b->raw ? used_elements(&t->feed, d) : 0;
}

static ttn_status collect(const instance *t, ttn_gradcheck_values *v, ttn_error *err)
{
    const ttn_sig *s = &t->sig;
    int64_t n = s->n_stat;
    for (int j = 0; j < t->op->n_out; j++)
        n += 2 * elements(t, &s->out[j], &t->out[j]);
    for (int a = 0; a < s->n_aux; a++)
        n += elements(t, &s->aux[a], &t->aux[a]);
    for (int i = 0; i < t->op->n_in; i++)
        n += elements(t, &s->in[i], &t->in[i]) + elements(t, &s->in[i], &t->din[i]);
    v->value = ttn_alloc_or_say(n, sizeof *v->value, "the results of a checked op", err);
    if (!v->value) return TTN_ENOMEM;
    for (int i = 0; i < t->op->n_in; i++)
        append(v, "in", i, &s->in[i], t->in[i].data, elements(t, &s->in[i], &t->in[i]));
    for (int j = 0; j < t->op->n_out; j++) {
        append(v, "out", j, &s->out[j], t->out[j].data, elements(t, &s->out[j], &t->out[j]));
        append(v, "dout", j, &s->out[j], t->dout[j].data, elements(t, &s->out[j], &t->dout[j]));
    }
    for (int a = 0; a < s->n_aux; a++)
        append(v, "aux", a, &s->aux[a], t->aux[a].data, elements(t, &s->aux[a], &t->aux[a]));
    append(v, "stat", 0, &doubles, t->stat.data, s->n_stat);
    for (int i = 0; i < t->op->n_in; i++)
        append(v, "din", i, &s->in[i], t->din[i].data, elements(t, &s->in[i], &t->din[i]));
    return TTN_OK;
}

ttn_status ttn_gradcheck_compute(const char *name, int k, const ttn_gradcheck_options *o, ttn_gradcheck_values *ret,
                                 ttn_error *err)
{
    *ret = (ttn_gradcheck_values){0};
    const ttn_op *op = ttn_op_find(name);
    if (!op || k < 0 || k >= op->n_cases)
        return TTN_FAIL(err, TTN_EINVAL, "there is no case %d of an op '%s'", k, name);
    instance t;
    ttn_status status = create(&t, op, &op->cases[k], &(setup){.seed = o->seed, .as_floats = 1}, err);
    if (status == TTN_OK) status = first_run(&t, err);
    if (status == TTN_OK) status = collect(&t, ret, err);
    destroy(&t);
    return status;
}

ttn_status ttn_gradcheck_compare(const ttn_gradcheck_values *a, const ttn_gradcheck_values *b, double bound,
                                 double *ret_worst, ttn_error *err)
{
    *ret_worst = 0;
    if (a->n != b->n || a->n_part != b->n_part)
        return FAULT(err, "%" PRId64 " values in %d parts, and %" PRId64 " in %d", a->n, a->n_part, b->n, b->n_part);
    for (int p = 0; p < a->n_part; p++) {
        const int64_t end = a->part[p].first + a->part[p].n;
        double scale = 1;
        for (int64_t e = a->part[p].first; e < end; e++)
            if (fabs(a->value[e]) + 1 > scale) scale = fabs(a->value[e]) + 1;
        for (int64_t e = a->part[p].first; e < end; e++) {
            const double error = fabs(a->value[e] - b->value[e]) / scale;
            if (!(error <= *ret_worst)) *ret_worst = error;
            if (!(error <= bound))
                return FAULT(err, "element %" PRId64 " of %s is %.9g and %.9g: off by %.1e of its scale, at most %.1e",
                             e - a->part[p].first, a->part[p].name, a->value[e], b->value[e], error, bound);
        }
    }
    return TTN_OK;
}
