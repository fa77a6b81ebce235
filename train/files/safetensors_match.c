#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "core/memory.h"
#include "core/nearest.h"
#include "train/files/safetensors.h"

enum { SHAPE_TEXT = 22 * TTN_STORED_MAX_DIM, MOST_TOLD = 20, SUGGESTION = 256 };

/* Shared by all steps of one matching. */
typedef struct {
    const ttn_safetensors *s;
    const ttn_wanted_tensor *wanted;
    int64_t n;
    const ttn_stored_tensor **found;
    unsigned char *is_used; /* of the file's tensors */
    const char **name;      /* candidates for a suggestion: room for all of the file's or all that are wanted */
} matching;

static const char *print_dims(int ndim, const int64_t *dim, char *text)
{
    size_t used = (size_t)snprintf(text, SHAPE_TEXT, "[");
    for (int i = 0; i < ndim && used < SHAPE_TEXT; i++)
        used += (size_t)snprintf(text + used, SHAPE_TEXT - used, "%s%" PRId64, i > 0 ? ", " : "", dim[i]);
    if (used < SHAPE_TEXT) snprintf(text + used, SHAPE_TEXT - used, "]");
    return text;
}

static int can_be_read(ttn_stored_type type)
{
    return type == TTN_STORED_F32 || type == TTN_STORED_F16 || type == TTN_STORED_BF16 || type == TTN_STORED_F64;
}

/* Integers and BOOL beside the weights are counters and tables of other programs. */
static int is_passed_over(ttn_stored_type type)
{
    switch (type) {
    case TTN_STORED_BOOL:
    case TTN_STORED_U8:
    case TTN_STORED_I8:
    case TTN_STORED_I16:
    case TTN_STORED_U16:
    case TTN_STORED_I32:
    case TTN_STORED_U32:
    case TTN_STORED_I64:
    case TTN_STORED_U64:
        return 1;
    default:
        return 0;
    }
}

static int same_shape(const ttn_wanted_tensor *w, const ttn_stored_tensor *t)
{
    if (w->ndim != t->ndim) return 0;
    for (int i = 0; i < w->ndim; i++)
        if (w->dim[i] != t->dim[i]) return 0;
    return 1;
}

/* ---- did you mean ---- */

/* "encoder.layer.0.w" of "esm.encoder.layer.0.w": one is the other behind a prefix of a whole scope. */
static int is_scoped(const char *longer, const char *shorter)
{
    size_t n = strlen(longer), m = strlen(shorter);
    return n > m + 1 && longer[n - m - 1] == '.' && strcmp(longer + n - m, shorter) == 0;
}

/* Of the candidates (n, NULL ones passed over) what may have been meant by name; "" or "; did you mean 'x'?". */
static const char *suggest(const char *word, const char *const *candidate, int64_t n, char *text)
{
    const char *best = NULL;
    for (int64_t i = 0; i < n && !best; i++)
        if (candidate[i] && (is_scoped(candidate[i], word) || is_scoped(word, candidate[i]))) best = candidate[i];
    if (!best) best = ttn_nearest(word, candidate, (int)n);
    *text = 0;
    if (best) snprintf(text, SUGGESTION, "; did you mean '%.200s'?", best);
    return text;
}

/* ---- what is wanted ---- */

static const ttn_stored_tensor *find(const matching *m, const ttn_wanted_tensor *w, int *is_replaced)
{
    const ttn_stored_tensor *t = ttn_safetensors_find(m->s, w->name);
    *is_replaced = !t && w->instead;
    return *is_replaced ? ttn_safetensors_find(m->s, w->instead) : t;
}

static int64_t index_of(const matching *m, const ttn_stored_tensor *t)
{
    return t - ttn_safetensors_at(m->s, 0);
}

static void find_all(matching *m, ttn_match *ret)
{
    for (int64_t i = 0; i < m->n; i++) {
        int is_replaced;
        const ttn_stored_tensor *t = find(m, &m->wanted[i], &is_replaced);
        m->found[i] = t;
        if (!t) {
            ret->missing++;
            continue;
        }
        ret->replaced += is_replaced;
        ret->misshapen += !same_shape(&m->wanted[i], t);
        m->is_used[index_of(m, t)] = 1;
    }
}

static void tell_unused(matching *m, ttn_match *ret, const ttn_log *log)
{
    char suggestion[SUGGESTION], text[TTN_STORED_TEXT];
    for (int64_t i = 0; i < m->n; i++)
        m->name[i] = m->found[i] ? NULL : m->wanted[i].name;
    for (int64_t i = 0; i < ttn_safetensors_count(m->s); i++) {
        const ttn_stored_tensor *t = ttn_safetensors_at(m->s, i);
        if (m->is_used[i] || is_passed_over(t->type)) continue;
        ret->unused++;
        if (ret->unused <= MOST_TOLD)
            ttn_log_say(log, TTN_LOG_WARNING, "%s: tensor '%.200s' (%s) is not used%s",
                        ttn_safetensors_file(m->s, t->file), t->name, ttn_stored_print(t, text),
                        suggest(t->name, m->name, m->n, suggestion));
    }
    if (ret->unused > MOST_TOLD)
        ttn_log_say(log, TTN_LOG_WARNING, "%s: %" PRId64 " more tensors are not used", ttn_safetensors_file(m->s, 0),
                    ret->unused - MOST_TOLD);
}

static ttn_status fail_missing(matching *m, int64_t i, const char *more, ttn_error *err)
{
    char shape[SHAPE_TEXT], suggestion[SUGGESTION];
    const ttn_wanted_tensor *w = &m->wanted[i];
    int64_t n = ttn_safetensors_count(m->s);
    for (int64_t k = 0; k < n; k++)
        m->name[k] = m->is_used[k] ? NULL : ttn_safetensors_at(m->s, k)->name;
    return TTN_FAIL(err, TTN_ECHECKPOINT, "%s: tensor '%.200s' of shape %s is missing%s%s",
                    ttn_safetensors_file(m->s, 0), w->name, print_dims(w->ndim, w->dim, shape),
                    suggest(w->name, m->name, n, suggestion), more);
}

/* The first fault, in the order of what is wanted. */
static ttn_status judge(matching *m, const ttn_match *r, ttn_error *err)
{
    char shape[SHAPE_TEXT], text[TTN_STORED_TEXT], more[128];
    *more = 0;
    if (r->missing + r->misshapen > 1)
        snprintf(more, sizeof more, " (the first of %" PRId64 " that are missing and %" PRId64 " of another shape)",
                 r->missing, r->misshapen);
    for (int64_t i = 0; i < m->n; i++) {
        const ttn_wanted_tensor *w = &m->wanted[i];
        const ttn_stored_tensor *t = m->found[i];
        if (!t) return fail_missing(m, i, more, err);
        const char *file = ttn_safetensors_file(m->s, t->file);
        if (!same_shape(w, t))
            return TTN_FAIL(err, TTN_ECHECKPOINT, "%s: tensor '%.200s' is %s, and the model has %s there%s", file,
                            t->name, ttn_stored_print(t, text), print_dims(w->ndim, w->dim, shape), more);
        if (!can_be_read(t->type))
            return TTN_FAIL(err, TTN_ECHECKPOINT, "%s: tensor '%.200s' is %s, and titin reads F32, F16, BF16 and F64",
                            file, t->name, ttn_stored_print(t, text));
    }
    return TTN_OK;
}

ttn_status ttn_safetensors_match(const ttn_safetensors *s, const ttn_wanted_tensor *wanted, int64_t n,
                                 const ttn_stored_tensor **found, ttn_match *ret, ttn_error *err)
{
    int64_t n_stored = ttn_safetensors_count(s);
    matching m = {.s = s, .wanted = wanted, .n = n, .found = found};
    *ret = (ttn_match){0};
    m.is_used = ttn_alloc_or_say(n_stored, sizeof *m.is_used, "the matching of tensors", err);
    m.name = ttn_alloc_or_say(n_stored > n ? n_stored : n, sizeof *m.name, "the matching of tensors", err);
    ttn_status status = TTN_ENOMEM;
    if (m.is_used && m.name) {
        find_all(&m, ret);
        tell_unused(&m, ret, ttn_safetensors_log(s));
        status = judge(&m, ret, err);
    }
    ttn_free(m.is_used);
    ttn_free(m.name);
    return status;
}
