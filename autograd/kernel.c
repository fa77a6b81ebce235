#include <inttypes.h>
#include <string.h>
#include "autograd/kernel.h"

int64_t ttn_row_width(const ttn_desc *d)
{
    int64_t width = 1;
    for (int i = 1; i < d->ndim; i++)
        width *= d->dim[i];
    return width;
}

void ttn_zero_rest(const ttn_call *c, const ttn_desc *d, void *x)
{
    const int64_t width = ttn_row_width(d);
    const int64_t used = ttn_used(c->feed, d);
    const int64_t capacity = ttn_capacity_of(d);
    if (used == capacity) return;
    const size_t row_bytes = (size_t)width * ttn_dtype_size(d->type);
#pragma omp parallel for num_threads(c->on->n_thread)
    for (int64_t r = used; r < capacity; r++)
        memset((char *)x + (size_t)r * row_bytes, 0, row_bytes);
}

void ttn_zero_no_sequence(const ttn_call *c, const ttn_desc *d, void *x)
{
    const size_t row_bytes = (size_t)ttn_row_width(d) * ttn_dtype_size(d->type);
    int64_t from = 0;
    for (int64_t s = 0; s < c->feed->used.seqs; s++) {
        const ttn_span span = c->feed->span[s];
        memset((char *)x + (size_t)from * row_bytes, 0, (size_t)(span.first - from) * row_bytes);
        from = span.first + span.n;
    }
    memset((char *)x + (size_t)from * row_bytes, 0, (size_t)(c->feed->used.rows - from) * row_bytes);
    ttn_zero_rest(c, d, x);
}

ttn_status ttn_want_real(const ttn_sig *s, int i, const char *op, const char *name, ttn_error *err)
{
    const ttn_desc *d = &s->in[i];
    if (d->ndim >= 0 && ttn_dtype_stored(d->type) == ttn_dtype_stored(TTN_REAL)) return TTN_OK;
    char text[TTN_DESC_TEXT];
    return TTN_FAIL(err, TTN_EINVAL, "%s: %s is %s, expected %s numbers", op, name, ttn_desc_print(d, text),
                    ttn_dtype_name(TTN_REAL));
}

ttn_status ttn_want_shape(const ttn_sig *s, int i, const char *op, const char *name, const char *letters,
                          ttn_error *err)
{
    ttn_status status = ttn_want_real(s, i, op, name, err);
    if (status != TTN_OK) return status;
    int wanted = letters[1] != ')';
    for (const char *c = letters; *c; c++)
        wanted += *c == ',';
    const ttn_desc *d = &s->in[i];
    if (d->ndim == wanted) return TTN_OK;
    char text[TTN_DESC_TEXT];
    return TTN_FAIL(err, TTN_EINVAL, "%s: %s is %s, which has %d dimensions; expected %d, %s", op, name,
                    ttn_desc_print(d, text), d->ndim, wanted, letters);
}

ttn_status ttn_want_rows(const ttn_sig *s, int n, const char *op, const char *const *name, const char *letters,
                         ttn_error *err)
{
    char text[TTN_DESC_TEXT];
    char other[TTN_DESC_TEXT];
    for (int i = 0; i < n; i++) {
        ttn_status status = ttn_want_shape(s, i, op, name[i], letters, err);
        if (status != TTN_OK) return status;
        if (s->in[i].axis != TTN_ROWS)
            return TTN_FAIL(err, TTN_EINVAL, "%s: %s is %s, expected rows of a batch, %s", op, name[i],
                            ttn_desc_print(&s->in[i], text), letters);
        if (!ttn_desc_same(&s->in[i], &s->in[0]))
            return TTN_FAIL(err, TTN_EINVAL, "%s: %s is %s, but %s is %s; expected one shape", op, name[i],
                            ttn_desc_print(&s->in[i], text), name[0], ttn_desc_print(&s->in[0], other));
    }
    return TTN_OK;
}

ttn_status ttn_want_heads(const ttn_sig *s, const char *op, int heads, ttn_error *err)
{
    const int64_t C = s->in[0].dim[1];
    if (heads >= 1 && C >= 1 && C % heads == 0) return TTN_OK;
    return TTN_FAIL(err, TTN_EINVAL, "%s: a width of %" PRId64 " cannot be divided among %d heads", op, C, heads);
}

const unsigned char *ttn_mark_rows(const ttn_call *c, const ttn_desc *d, unsigned char *mark)
{
    if (d->axis != TTN_ROWS || c->feed->used.seqs == 0) return NULL;
    memset(mark, 0, (size_t)ttn_capacity_of(d));
    for (int64_t s = 0; s < c->feed->used.seqs; s++)
        memset(mark + c->feed->span[s].first, 1, (size_t)c->feed->span[s].n);
    return mark;
}

void ttn_add_chunks(int64_t n_chunk, int n, double *part, double *to)
{
    for (int64_t apart = 1; apart < n_chunk; apart *= 2)
        for (int64_t k = 0; k + apart < n_chunk; k += 2 * apart)
            for (int i = 0; i < n; i++)
                part[k * n + i] += part[(k + apart) * n + i];
    for (int i = 0; i < n; i++)
        to[i] = n_chunk > 0 ? part[i] : 0;
}
