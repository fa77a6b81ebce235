/* Properties of gradients: they are those of the forward pass, whichever of them are asked for and whatever stands where they
 * are written, and depend on what `reads` lists. */
#include "autograd/gradcheck_impl.h"

/* Of central differences in f64: truncation h^2 f''' / 6 and rounding 1e-16 / h are both about 1e-11. */
#define STEP           1e-5
#define GRADIENT_BOUND 1e-7

/* ---- central differences ---- */

int ttn_case_is_differentiated(const ttn_op *op, const ttn_case *k)
{
    return sizeof(real) == sizeof(double) && ttn_case_is_good(op, k) && !k->detached;
}

/* (loss(x + h) - loss(x - h)) / 2h for element e of input i, loss = sum out dout. The outputs are subtracted before they
 * are summed, so that those which do not change cancel exactly. up: (elements of all outputs). */
static ttn_status difference(instance *t, int i, int64_t e, double *up, double *ret, ttn_error *err)
{
    const variation v = {0};
    ttn_call c = ttn_gradcheck_forward_call(t, &v);
    const ttn_desc *d = &t->sig.in[i];
    const double keep = ttn_gradcheck_get(d, t->in[i].data, e);
    ttn_gradcheck_set(d, t->in[i].data, e, keep + STEP);
    const double above = ttn_gradcheck_get(d, t->in[i].data, e);
    ttn_status status = ttn_gradcheck_call(t, &c, TTN_FORWARD, err);
    if (status != TTN_OK) return status;
    int64_t at = 0;
    for (int j = 0; j < t->op->n_out; j++) {
        const int64_t n = ttn_used_numel(&t->feed, &t->sig.out[j]);
        for (int64_t y = 0; y < n; y++)
            up[at + y] = ttn_gradcheck_get(&t->sig.out[j], t->out[j].data, y);
        at += n;
    }
    ttn_gradcheck_set(d, t->in[i].data, e, keep - STEP);
    const double below = ttn_gradcheck_get(d, t->in[i].data, e);
    status = ttn_gradcheck_call(t, &c, TTN_FORWARD, err);
    if (status != TTN_OK) return status;
    double sum = 0;
    at = 0;
    for (int j = 0; j < t->op->n_out; j++) {
        const int64_t n = ttn_used_numel(&t->feed, &t->sig.out[j]);
        for (int64_t y = 0; y < n; y++)
            sum += (up[at + y] - ttn_gradcheck_get(&t->sig.out[j], t->out[j].data, y)) *
                   ttn_gradcheck_get(&t->sig.out[j], t->dout[j].data, y);
        at += n;
    }
    ttn_gradcheck_set(d, t->in[i].data, e, keep);
    *ret = sum / (above - below);
    return TTN_OK;
}

static ttn_status compare_with_differences(instance *t, int i, const ttn_gradcheck_options *o, double *up,
                                           ttn_error *err)
{
    const ttn_desc *d = &t->sig.in[i];
    const int64_t n = ttn_used_numel(&t->feed, d);
    const int64_t most = o->most_elements > 0 ? o->most_elements : 300;
    const int64_t stride = 1 + n / most;
    double worst = 0;
    int64_t worst_at = 0;
    double worst_numeric = 0;
    for (int64_t e = 0; e < n; e += stride) {
        double numeric = 0;
        ttn_status status = difference(t, i, e, up, &numeric, err);
        if (status != TTN_OK) return status;
        const double error = fabs(numeric - ttn_gradcheck_get(d, t->din[i].saved, e)) / (1 + fabs(numeric));
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
                 t->op->name, i, worst_at, worst_at / ttn_row_width(d), ttn_gradcheck_get(d, t->din[i].saved, worst_at),
                 worst_numeric, worst, GRADIENT_BOUND);
}

ttn_status ttn_check_gradients(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err)
{
    instance t;
    double *up = NULL;
    ttn_status status = ttn_gradcheck_create(&t, op, k, &(setup){.o = o}, err);
    if (status == TTN_OK) status = ttn_gradcheck_first_run(&t, err);
    if (status == TTN_OK) {
        int64_t n = 0;
        for (int j = 0; j < op->n_out; j++)
            n += ttn_used_numel(&t.feed, &t.sig.out[j]);
        up = ttn_alloc_or_say(n, sizeof *up, "outputs of a checked op", err);
        if (!up) status = TTN_ENOMEM;
    }
    for (int i = 0; i < op->n_in && status == TTN_OK; i++)
        if (t.din[i].raw) status = compare_with_differences(&t, i, o, up, err);
    ttn_free(up);
    ttn_gradcheck_destroy(&t);
    return status;
}

/* ---- which gradients are asked for, and what stands there ---- */

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
    ttn_status status = ttn_gradcheck_backward(t, wanted, (variation){0}, err);
    if (status == TTN_OK) status = ttn_gradcheck_same_backward(t, wanted, between, err);
    for (int i = 0; i < t->op->n_in && status == TTN_OK; i++) {
        if (wanted & TTN_BIT(i) || !t->din[i].raw) continue;
        for (size_t b = 0; b < t->din[i].bytes; b++)
            if (((const unsigned char *)t->din[i].data)[b] != UNTOUCHED)
                return FAULT(err, "%s: backward writes din %d, which was not asked for", t->op->name, i);
    }
    return status;
}

ttn_status ttn_check_subsets(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err)
{
    instance t;
    ttn_status status = ttn_gradcheck_create(&t, op, k, &(setup){.o = o}, err);
    if (status == TTN_OK) status = ttn_gradcheck_first_run(&t, err);
    if (status == TTN_OK) status = each_subset(all_wanted(&t), try_subset, &t, err);
    ttn_gradcheck_destroy(&t);
    return status;
}

static ttn_status try_accumulating(instance *t, uint32_t wanted, ttn_error *err)
{
    ttn_status status = ttn_gradcheck_backward(t, wanted, (variation){.acc = 1}, err);
    for (int i = 0; i < t->op->n_in && status == TTN_OK; i++) {
        if (!(wanted & TTN_BIT(i))) continue;
        const ttn_desc *d = &t->sig.in[i];
        status = ttn_gradcheck_near(t, "din", i, d, t->din[i].saved, 1, t->din[i].data, ttn_desc_numel(d), ORDER_BOUND,
                                    "with acc 0 and 1 added to it, and with acc 1 over ones", err);
    }
    return status;
}

ttn_status ttn_check_accumulation(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err)
{
    instance t;
    ttn_status status = ttn_gradcheck_create(&t, op, k, &(setup){.o = o}, err);
    if (status == TTN_OK) status = ttn_gradcheck_first_run(&t, err);
    if (status == TTN_OK) status = each_subset(all_wanted(&t), try_accumulating, &t, err);
    ttn_gradcheck_destroy(&t);
    return status;
}

int ttn_case_has_several_outputs(const ttn_op *op, const ttn_case *k)
{
    return op->n_out > 1 && ttn_case_is_good(op, k);
}

/* A dout that is NULL gives the gradients of one that is zero. */
ttn_status ttn_check_dead_outputs(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err)
{
    instance t;
    ttn_status status = ttn_gradcheck_create(&t, op, k, &(setup){.o = o}, err);
    if (status == TTN_OK) status = ttn_gradcheck_forward(&t, (variation){0}, err);
    for (uint32_t dead = 1; status == TTN_OK && dead < all_outputs(&t); dead++) {
        for (int j = 0; j < op->n_out; j++) {
            ttn_gradcheck_fill(&t, &(setup){.o = o}, DOUT + j, -1, 1, &t.sig.out[j], &t.dout[j]);
            if (dead & TTN_BIT(j)) memset(t.dout[j].data, 0, t.dout[j].bytes);
            save(&t.dout[j]);
        }
        status = ttn_gradcheck_backward(&t, all_wanted(&t), (variation){0}, err);
        for (int i = 0; i < op->n_in; i++)
            save(&t.din[i]);
        if (status == TTN_OK) status = ttn_gradcheck_backward(&t, all_wanted(&t), (variation){.no_dout = dead}, err);
        for (int i = 0; i < op->n_in && status == TTN_OK; i++)
            if (t.din[i].raw)
                status = ttn_gradcheck_near(&t, "din", i, &t.sig.in[i], t.din[i].saved, 0, t.din[i].data,
                                            ttn_desc_numel(&t.sig.in[i]), ORDER_BOUND,
                                            "with a dout of zeros and with none", err);
    }
    ttn_gradcheck_destroy(&t);
    return status;
}

/* ---- reads ---- */

/* Does din[i] change when the value is filled with something else: NaN, or its smallest and largest integers? */
static ttn_status is_read(instance *t, int i, buffer *value, const ttn_desc *d, double lo, double hi, variation v,
                          int *ret, ttn_error *err)
{
    const double other[2] = {is_real(d) ? (double)NAN : lo, is_real(d) ? (double)NAN : hi};
    const int64_t n = ttn_desc_numel(d);
    *ret = 0;
    for (int way = 0; way < 2 && !*ret; way++) {
        for (int64_t e = 0; e < n; e++)
            ttn_gradcheck_set(d, value->data, e, other[way]);
        ttn_gradcheck_prepare(t, 0);
        ttn_call c = ttn_gradcheck_backward_call(t, TTN_BIT(i), &v);
        ttn_status status = ttn_gradcheck_call(t, &c, TTN_BACKWARD, err);
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
    ttn_status status = ttn_gradcheck_forward(t, v, err);
    for (int i = 0; i < op->n_in && status == TTN_OK; i++) {
        if (!t->din[i].raw) continue;
        status = ttn_gradcheck_backward(t, TTN_BIT(i), v, err);
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
        if (!ttn_case_is_good(op, &op->cases[k])) continue;
        instance t;
        ttn_status status = ttn_gradcheck_create(&t, op, &op->cases[k], &(setup){.o = o}, err);
        if (status == TTN_OK) status = look_for_reads(&t, (variation){0}, &s, err);
        /* an input that is only read to make a spare aux again */
        if (status == TTN_OK && op->spare) status = look_for_reads(&t, (variation){.aux_left_out = op->spare}, &s, err);
        ttn_gradcheck_destroy(&t);
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
