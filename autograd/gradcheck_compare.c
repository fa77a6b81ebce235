/* Two results of one case: the same bits, or near. And a case in numbers, to compare precisions and devices. */
#include "autograd/gradcheck_impl.h"

ttn_status ttn_gradcheck_same(const instance *t, const char *kind, int number, const ttn_desc *d, const void *a,
                              const void *b, int64_t n, const unsigned char *rows, const char *between, ttn_error *err)
{
    const size_t size = ttn_dtype_size(d->type);
    for (int64_t e = 0; e < n; e++) {
        if (rows && !rows[e / ttn_row_width(d)]) continue;
        if (memcmp((const char *)a + (size_t)e * size, (const char *)b + (size_t)e * size, size) == 0) continue;
        const double x = ttn_gradcheck_get(d, a, e);
        const double y = ttn_gradcheck_get(d, b, e);
        if (x == 0 && y == 0) continue;
        return FAULT(err, "%s: element %" PRId64 " of %s %d is not the same %s: %.17g and %.17g", t->op->name, e, kind,
                     number, between, x, y);
    }
    return TTN_OK;
}

ttn_status ttn_gradcheck_near(const instance *t, const char *kind, int number, const ttn_desc *d, const void *a,
                              double shift, const void *b, int64_t n, double bound, const char *between, ttn_error *err)
{
    double scale = 1;
    for (int64_t e = 0; e < n; e++)
        if (fabs(ttn_gradcheck_get(d, a, e)) + 1 > scale) scale = fabs(ttn_gradcheck_get(d, a, e)) + 1;
    for (int64_t e = 0; e < n; e++) {
        const double x = ttn_gradcheck_get(d, a, e) + shift;
        const double y = ttn_gradcheck_get(d, b, e);
        if (!(fabs(x - y) <= bound * scale))
            return FAULT(err, "%s: element %" PRId64 " of %s %d is not the same %s: %.9g and %.9g (values up to %.1e)",
                         t->op->name, e, kind, number, between, x, y, scale - 1);
    }
    return TTN_OK;
}

ttn_status ttn_gradcheck_same_forward(const instance *t, const instance *was, uint32_t no_aux, const char *between,
                                      ttn_error *err)
{
    ttn_status status = TTN_OK;
    for (int j = 0; j < t->op->n_out && status == TTN_OK; j++)
        status = ttn_gradcheck_same(t, "out", j, &t->sig.out[j], was->out[j].saved, t->out[j].data,
                                    ttn_used_numel(&t->feed, &t->sig.out[j]), NULL, between, err);
    for (int a = 0; a < t->sig.n_aux && status == TTN_OK; a++)
        if (!(no_aux & TTN_BIT(a)) && is_real(&t->sig.aux[a]))
            status = ttn_gradcheck_same(t, "aux", a, &t->sig.aux[a], was->aux[a].saved, t->aux[a].data,
                                        ttn_used_numel(&t->feed, &t->sig.aux[a]), NULL, between, err);
    if (status == TTN_OK)
        status = ttn_gradcheck_same(t, "stat", 0, &doubles, was->stat.saved, t->stat.data, t->sig.n_stat, NULL, between,
                                    err);
    return status;
}

ttn_status ttn_gradcheck_same_backward(const instance *t, uint32_t wanted, const char *between, ttn_error *err)
{
    ttn_status status = TTN_OK;
    for (int i = 0; i < t->op->n_in && status == TTN_OK; i++)
        if (wanted & TTN_BIT(i))
            status = ttn_gradcheck_same(t, "din", i, &t->sig.in[i], t->din[i].saved, t->din[i].data,
                                        ttn_desc_numel(&t->sig.in[i]), NULL, between, err);
    return status;
}

/* ---- a case in numbers ---- */

static void append(ttn_gradcheck_values *v, const char *kind, int number, const ttn_desc *d, const void *x, int64_t n)
{
    snprintf(v->part[v->n_part].name, sizeof v->part[v->n_part].name, "%s %d", kind, number);
    v->part[v->n_part].first = v->n;
    v->part[v->n_part].n = n;
    v->part[v->n_part].exact = !is_real(d);
    v->n_part++;
    for (int64_t e = 0; e < n; e++)
        v->value[v->n++] = ttn_gradcheck_get(d, x, e);
}

static int64_t elements(const instance *t, const ttn_desc *d, const buffer *b)
{
    return b->raw ? ttn_used_numel(&t->feed, d) : 0;
}

static ttn_status collect(const instance *t, ttn_gradcheck_values *v, ttn_error *err)
{
    const ttn_sig *s = &t->sig;
    const int n_aux = t->o->without_aux ? 0 : s->n_aux;
    int64_t n = s->n_stat;
    for (int j = 0; j < t->op->n_out; j++)
        n += 2 * elements(t, &s->out[j], &t->out[j]);
    for (int a = 0; a < n_aux; a++)
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
    for (int a = 0; a < n_aux; a++)
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
    return ttn_gradcheck_compute_case(op, &op->cases[k], o, ret, err);
}

ttn_status ttn_gradcheck_compute_case(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o,
                                      ttn_gradcheck_values *ret, ttn_error *err)
{
    *ret = (ttn_gradcheck_values){0};
    instance t;
    ttn_status status = ttn_gradcheck_create(&t, op, k, &(setup){.o = o, .as_floats = 1}, err);
    if (status == TTN_OK) status = ttn_gradcheck_first_run(&t, err);
    if (status == TTN_OK) status = collect(&t, ret, err);
    ttn_gradcheck_destroy(&t);
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
            const double x = a->value[e];
            const double y = b->value[e];
            if (a->part[p].exact && x != y)
                return FAULT(err, "element %" PRId64 " of %s is %.17g and %.17g, and these are integers",
                             e - a->part[p].first, a->part[p].name, x, y);
            const double error = fabs(x - y) / scale;
            if (!(error <= *ret_worst)) *ret_worst = error;
            if (!(error <= bound))
                return FAULT(err, "element %" PRId64 " of %s is %.9g and %.9g: off by %.1e of its scale, at most %.1e",
                             e - a->part[p].first, a->part[p].name, x, y, error, bound);
        }
    }
    return TTN_OK;
}
