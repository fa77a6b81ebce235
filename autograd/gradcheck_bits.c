/* What must not change a bit of an op's results: threads, another run, a larger capacity, what rows of no sequence hold,
 * buffers that are shared, aux that are left out. */
#include "autograd/gradcheck_impl.h"

/* ---- runs ---- */

ttn_status ttn_check_threads(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err)
{
    static const int counts[] = {1, 2, 3, 5, MOST_THREADS};
    instance t;
    instance one;
    ttn_status status = ttn_gradcheck_create(&t, op, k, &(setup){.o = o}, err);
    const ttn_status other = ttn_gradcheck_create(&one, op, k, &(setup){.o = o}, err);
    if (status == TTN_OK) status = other;
    if (status == TTN_OK) status = ttn_gradcheck_first_run(&t, err);
    if (status == TTN_OK) status = ttn_gradcheck_first_run(&one, err);
    for (size_t n = 0; n < sizeof counts / sizeof *counts && status == TTN_OK; n++) {
        char between[64];
        snprintf(between, sizeof between, "with 1 thread and with %d", counts[n]);
        const variation v = {.n_thread = counts[n]};
        status = ttn_gradcheck_forward(&t, v, err);
        if (status == TTN_OK) status = ttn_gradcheck_same_forward(&t, &one, 0, between, err);
        if (status == TTN_OK) status = ttn_gradcheck_backward(&t, all_wanted(&t), v, err);
        if (status == TTN_OK) status = ttn_gradcheck_same_backward(&t, all_wanted(&t), between, err);
    }
    ttn_gradcheck_destroy(&one);
    ttn_gradcheck_destroy(&t);
    return status;
}

ttn_status ttn_check_repeated(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err)
{
    instance t;
    instance first;
    ttn_status status = ttn_gradcheck_create(&t, op, k, &(setup){.o = o}, err);
    const ttn_status other = ttn_gradcheck_create(&first, op, k, &(setup){.o = o}, err);
    if (status == TTN_OK) status = other;
    if (status == TTN_OK) status = ttn_gradcheck_first_run(&first, err);
    if (status == TTN_OK) status = ttn_gradcheck_first_run(&t, err);
    for (int again = 0; again < 2 && status == TTN_OK; again++) {
        if (again) status = ttn_gradcheck_forward(&t, (variation){0}, err);
        if (status == TTN_OK)
            status = ttn_gradcheck_same_forward(&t, &first, 0, "in the first run and when it runs again", err);
        if (status == TTN_OK) status = ttn_gradcheck_backward(&t, all_wanted(&t), (variation){0}, err);
        if (status == TTN_OK)
            status = ttn_gradcheck_same_backward(&t, all_wanted(&t), "in the first run and when it runs again", err);
    }
    ttn_gradcheck_destroy(&first);
    ttn_gradcheck_destroy(&t);
    return status;
}

/* Values with an axis: the same bits in the used rows. Fixed ones are sums over rows, in lanes that the capacity
 * decides. A device's library may choose another kernel for a product of another extent. */
static ttn_status same_or_near(const instance *t, const char *kind, int number, const ttn_desc *d, const void *a,
                               const void *b, const char *between, ttn_error *err)
{
    const int64_t n = ttn_used_numel(&t->feed, d);
    if (d->axis != TTN_FIXED && !t->device) return ttn_gradcheck_same(t, kind, number, d, a, b, n, NULL, between, err);
    return ttn_gradcheck_near(t, kind, number, d, a, 0, b, n, ORDER_BOUND, between, err);
}

ttn_status ttn_check_capacity(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err)
{
    static const char between[] = "when the capacity is larger";
    instance t;
    instance large;
    ttn_status status = ttn_gradcheck_create(&t, op, k, &(setup){.o = o}, err);
    const ttn_status other = ttn_gradcheck_create(&large, op, k, &(setup){.o = o, .more = 1}, err);
    if (status == TTN_OK) status = other;
    if (status == TTN_OK) status = ttn_gradcheck_first_run(&t, err);
    if (status == TTN_OK) status = ttn_gradcheck_first_run(&large, err);
    for (int j = 0; j < op->n_out && status == TTN_OK; j++)
        status = same_or_near(&t, "out", j, &t.sig.out[j], t.out[j].data, large.out[j].data, between, err);
    for (int i = 0; i < op->n_in && status == TTN_OK; i++)
        if (t.din[i].raw)
            status = same_or_near(&t, "din", i, &t.sig.in[i], t.din[i].data, large.din[i].data, between, err);
    if (status == TTN_OK)
        status = ttn_gradcheck_near(&t, "stat", 0, &doubles, t.stat.data, 0, large.stat.data, t.sig.n_stat, ORDER_BOUND,
                                    between, err);
    ttn_gradcheck_destroy(&large);
    ttn_gradcheck_destroy(&t);
    return status;
}

/* ---- rows of no sequence ---- */

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

int ttn_case_has_free_rows(const ttn_op *op, const ttn_case *k)
{
    if (!ttn_case_is_good(op, k) || k->used.seqs == 0 || mark_rows(k, NULL) == 0) return 0;
    for (int i = 0; i < op->n_in; i++)
        if (k->in[i].ndim > 0 && k->in[i].axis == TTN_ROWS) return 1;
    return 0;
}

/* Other finite values in the rows of no sequence. */
static void disturb(instance *t, int i, const unsigned char *rows, double factor)
{
    const ttn_desc *d = &t->sig.in[i];
    const int64_t width = ttn_row_width(d);
    const int64_t n = ttn_used_numel(&t->feed, d);
    for (int64_t e = 0; e < n; e++) {
        if (rows[e / width]) continue;
        if (is_real(d))
            ttn_gradcheck_set(d, t->in[i].data, e, factor * ttn_gradcheck_get(d, t->in[i].data, e) + 0.5);
        else
            ttn_gradcheck_set(d, t->in[i].data, e, t->k->range[i].lo);
    }
    save(&t->in[i]);
}

ttn_status ttn_check_free_rows(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err)
{
    static const char between[] = "when rows of no sequence hold something else";
    instance t;
    instance other;
    unsigned char *rows = ttn_alloc_or_say(k->used.rows, 1, "marks of rows", err);
    ttn_status status = ttn_gradcheck_create(&t, op, k, &(setup){.o = o}, err);
    const ttn_status second = ttn_gradcheck_create(&other, op, k, &(setup){.o = o}, err);
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
            for (int64_t e = 0; e < ttn_used_numel(&t.feed, d); e++) {
                if (rows[e / ttn_row_width(d)]) continue;
                ttn_gradcheck_set(d, t.dout[j].data, e, 0);
                ttn_gradcheck_set(d, other.dout[j].data, e, 0);
            }
            save(&t.dout[j]);
            save(&other.dout[j]);
        }
        status = ttn_gradcheck_first_run(&t, err);
    }
    if (status == TTN_OK) status = ttn_gradcheck_first_run(&other, err);
    for (int j = 0; j < op->n_out && status == TTN_OK; j++) {
        const ttn_desc *d = &t.sig.out[j];
        status = ttn_gradcheck_same(&t, "out", j, d, t.out[j].data, other.out[j].data, ttn_used_numel(&t.feed, d),
                                    d->axis == TTN_ROWS ? rows : NULL, between, err);
    }
    if (status == TTN_OK)
        status =
            ttn_gradcheck_same(&t, "stat", 0, &doubles, t.stat.data, other.stat.data, t.sig.n_stat, NULL, between, err);
    for (int i = 0; i < op->n_in && status == TTN_OK; i++) {
        const ttn_desc *d = &t.sig.in[i];
        if (t.din[i].raw)
            status = ttn_gradcheck_same(&t, "din", i, d, t.din[i].data, other.din[i].data, ttn_used_numel(&t.feed, d),
                                        d->axis == TTN_ROWS ? rows : NULL, between, err);
    }
    ttn_gradcheck_destroy(&other);
    ttn_gradcheck_destroy(&t);
    ttn_free(rows);
    return status;
}

/* ---- shared buffers ---- */

int ttn_case_takes_or_passes(const ttn_op *op, const ttn_case *k)
{
    if (!ttn_case_is_good(op, k)) return 0;
    for (int j = 0; j < op->n_out; j++)
        if (op->takes[j]) return 1;
    for (int i = 0; i < op->n_in; i++)
        if (op->passes[i]) return 1;
    return 0;
}

ttn_status ttn_check_in_place(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err)
{
    instance t;
    instance apart;
    ttn_status status = ttn_gradcheck_create(&t, op, k, &(setup){.o = o}, err);
    const ttn_status other = ttn_gradcheck_create(&apart, op, k, &(setup){.o = o}, err);
    if (status == TTN_OK) status = other;
    if (status == TTN_OK) status = ttn_gradcheck_first_run(&t, err);
    if (status == TTN_OK) status = ttn_gradcheck_first_run(&apart, err);
    for (int i = 0; i < op->n_in && status == TTN_OK; i++) {
        if (!op->passes[i] || !t.din[i].raw) continue;
        char between[64];
        snprintf(between, sizeof between, "when din %d is written over dout %d", i, op->passes[i] - 1);
        const variation v = {.passes = TTN_SHARES(i)};
        status = ttn_gradcheck_backward(&t, TTN_BIT(i), v, err);
        if (status == TTN_OK) status = ttn_gradcheck_same_backward(&t, TTN_BIT(i), between, err);
        if (status == TTN_OK) status = ttn_gradcheck_backward(&t, all_wanted(&t), v, err);
        if (status == TTN_OK) status = ttn_gradcheck_same_backward(&t, all_wanted(&t), between, err);
    }
    for (int j = 0; j < op->n_out && status == TTN_OK; j++) {
        if (!op->takes[j] || t.sig.in[op->takes[j] - 1].ndim < 0) continue;
        char between[64];
        snprintf(between, sizeof between, "when out %d is written over in %d", j, op->takes[j] - 1);
        status = ttn_gradcheck_forward(&t, (variation){.takes = TTN_SHARES(j)}, err);
        if (status == TTN_OK) status = ttn_gradcheck_same_forward(&t, &apart, 0, between, err);
    }
    ttn_gradcheck_destroy(&apart);
    ttn_gradcheck_destroy(&t);
    return status;
}

/* Two inputs that could be one value: both differentiable, one shape. Searched from (*i, *k) on; 0: no more. */
static int next_twins(const ttn_op *op, const ttn_case *c, int *i, int *k)
{
    ttn_sig s = ttn_gradcheck_signature(op, c, 0);
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

int ttn_case_has_twins(const ttn_op *op, const ttn_case *k)
{
    int i = 0;
    int second = 1;
    return ttn_case_is_good(op, k) && next_twins(op, k, &i, &second);
}

static ttn_status try_twins(instance *t, int i, int k, ttn_error *err)
{
    const ttn_desc *d = &t->sig.in[i];
    memcpy(t->in[k].data, t->in[i].data, t->in[i].bytes);
    save(&t->in[k]);
    ttn_status status = ttn_gradcheck_first_run(t, err);
    if (status != TTN_OK) return status;
    /* one value, one buffer for its gradient, written in the order of the inputs */
    ttn_gradcheck_prepare(t, 0);
    clear(&t->work);
    const variation v = {0};
    ttn_call c = ttn_gradcheck_backward_call(t, all_wanted(t), &v);
    if (c.in[k]) c.in[k] = t->in[i].data;
    c.din[k] = c.din[i];
    c.acc[k] = 1;
    status = ttn_gradcheck_call(t, &c, TTN_BACKWARD, err);
    if (status == TTN_OK) status = ttn_gradcheck_guards(t, "backward", err);
    if (status != TTN_OK) return status;
    for (int64_t e = 0; e < ttn_desc_numel(d); e++)
        ttn_gradcheck_set(d, t->din[k].data, e,
                          ttn_gradcheck_get(d, t->din[i].saved, e) + ttn_gradcheck_get(d, t->din[k].saved, e));
    return ttn_gradcheck_near(t, "din", i, d, t->din[k].data, 0, t->din[i].data, ttn_desc_numel(d), ORDER_BOUND,
                              "as a sum of two gradients, and in one buffer for a value given twice", err);
}

ttn_status ttn_check_twins(const ttn_op *op, const ttn_case *c, const ttn_gradcheck_options *o, ttn_error *err)
{
    int k = 1;
    for (int i = 0; next_twins(op, c, &i, &k); k++) {
        instance t;
        ttn_status status = ttn_gradcheck_create(&t, op, c, &(setup){.o = o}, err);
        if (status == TTN_OK) status = try_twins(&t, i, k, err);
        ttn_gradcheck_destroy(&t);
        if (status != TTN_OK) return status;
    }
    return TTN_OK;
}

int ttn_case_has_spare(const ttn_op *op, const ttn_case *k)
{
    return op->spare != 0 && ttn_case_is_good(op, k);
}

ttn_status ttn_check_spare(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err)
{
    instance t;
    instance kept;
    ttn_status status = ttn_gradcheck_create(&t, op, k, &(setup){.o = o}, err);
    const ttn_status other = ttn_gradcheck_create(&kept, op, k, &(setup){.o = o}, err);
    if (status == TTN_OK) status = other;
    if (status == TTN_OK) status = ttn_gradcheck_first_run(&t, err);
    if (status == TTN_OK) status = ttn_gradcheck_first_run(&kept, err);
    for (uint32_t out = 1; status == TTN_OK && out <= op->spare; out++) {
        if (out & ~op->spare) continue;
        char between[64];
        snprintf(between, sizeof between, "when aux 0x%x is kept and when it is left out", out);
        const variation v = {.aux_left_out = out};
        status = ttn_gradcheck_forward(&t, v, err);
        if (status == TTN_OK) status = ttn_gradcheck_same_forward(&t, &kept, out, between, err);
        if (status == TTN_OK) status = ttn_gradcheck_backward(&t, all_wanted(&t), v, err);
        if (status == TTN_OK) status = ttn_gradcheck_same_backward(&t, all_wanted(&t), between, err);
    }
    ttn_gradcheck_destroy(&kept);
    ttn_gradcheck_destroy(&t);
    return status;
}
