#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/cache.h"
#include "core/memory.h"
#include "train/fill.h"

/* Plans of so many lengths are kept. */
enum { PLANS = 8 };

struct ttn_filler {
    ttn_filler_options options;
    ttn_plan_cache *cache;
    ttn_model value; /* values of the graphs: the same numbers in each */
    int keep[1];

    /* of the last sequence */
    int64_t rows, masks;
    int64_t room;     /* rows and masks that the lists have room for */
    uint8_t *token;   /* (rows) */
    int64_t *index;   /* (masks) */
    int64_t before;   /* rows before its first residue */
    real *logits;     /* (R, V) of the plan */
    int64_t n_logits; /* numbers that it has room for */
};

/* ---- creation ---- */

/* A ttn_record. */
static ttn_status record(void *ctx, ttn_extent capacity, int mode, ttn_graph **g, ttn_plan_options *o, ttn_error *err)
{
    (void)mode;
    (void)err;
    ttn_filler *f = ctx;
    *g = ttn_graph_create(capacity);
    ttn_model_build(*g, f->options.model->model, TTN_MODEL_LOGITS, &f->value);
    f->keep[0] = f->value.logits;
    o->keep = f->keep;
    o->n_keep = 1;
    o->budget = f->options.memory;
    o->n_thread = f->options.n_thread;
    return TTN_OK;
}

ttn_status ttn_filler_create(const ttn_filler_options *o, ttn_filler **ret, ttn_error *err)
{
    *ret = NULL;
    const ttn_loaded *m = o->model;
    if (m->rules.objective == TTN_OBJECTIVE_CLM)
        return TTN_FAIL(err, TTN_EINVAL,
                        "%s: this model predicts the next residue from those before it (train.objective: clm), and can "
                        "fill in none",
                        m->path);
    if (m->alphabet->mask == TTN_NO_TOKEN)
        return TTN_FAIL(err, TTN_EINVAL, "%s: the vocabulary '%s' has no mask", m->path, m->alphabet->name);
    ttn_filler *f = ttn_alloc_or_say(1, sizeof *f, "filling in", err);
    if (!f) return TTN_ENOMEM;
    f->options = *o;
    ttn_status status = ttn_plan_cache_create(record, f, m->weights, o->device, PLANS, o->memory, &f->cache, err);
    if (status == TTN_OK)
        *ret = f;
    else
        ttn_filler_destroy(f);
    return status;
}

static void drop_lists(ttn_filler *f)
{
    ttn_free(f->token);
    ttn_free(f->index);
    f->token = NULL;
    f->index = NULL;
    f->room = 0;
}

void ttn_filler_destroy(ttn_filler *f)
{
    if (!f) return;
    ttn_plan_cache_destroy(f->cache);
    drop_lists(f);
    ttn_free(f->logits);
    ttn_free(f);
}

/* ---- a sequence ---- */

static ttn_status make_room(ttn_filler *f, int64_t rows, ttn_error *err)
{
    if (rows <= f->room) return TTN_OK;
    drop_lists(f);
    f->token = ttn_alloc_or_say(rows, sizeof *f->token, "a sequence", err);
    f->index = ttn_alloc_or_say(rows, sizeof *f->index, "the masks of a sequence", err);
    if (!f->token || !f->index) {
        drop_lists(f);
        return TTN_ENOMEM;
    }
    f->room = rows;
    return TTN_OK;
}

/* Rows as the model was trained on them: specials around the residues. Position of the first row in *ret_start. */
static ttn_status lay_out(ttn_filler *f, const ttn_masked *s, int64_t *ret_start, ttn_error *err)
{
    const ttn_loaded *m = f->options.model;
    ttn_batch_rules rules = m->rules;
    rules.max_len = 0;
    const ttn_piece piece = ttn_piece_of(&rules, m->alphabet, 0, 0, s->n);
    const int64_t rows = ttn_piece_rows(&piece);
    *ret_start = ttn_piece_start(&rules, m->alphabet, &piece);
    if (*ret_start + rows > TTN_MAX_POSITION)
        return TTN_FAIL(err, TTN_EINVAL, "a sequence of %" PRId64 " residues; positions end at %" PRId64, s->n,
                        TTN_MAX_POSITION);
    ttn_status status = ttn_model_check_positions(m->model, *ret_start + rows, err);
    if (status == TTN_OK) status = make_room(f, rows, err);
    if (status != TTN_OK) return status;
    f->rows = rows;
    f->before = piece.has_cls;
    f->masks = 0;
    if (piece.has_cls) f->token[0] = m->alphabet->cls;
    if (piece.has_eos) f->token[rows - 1] = m->alphabet->eos;
    memcpy(f->token + f->before, s->token, (size_t)s->n);
    for (int64_t i = 0; i < s->n; i++)
        if (s->token[i] == m->alphabet->mask) f->index[f->masks++] = f->before + i;
    return TTN_OK;
}

static ttn_status read_logits(ttn_filler *f, const ttn_plan *p, int64_t picks, ttn_error *err)
{
    const int64_t V = f->options.model->model->vocabulary, n = ttn_ladder(picks) * V;
    if (n > f->n_logits) {
        ttn_free(f->logits);
        f->n_logits = 0;
        f->logits = ttn_alloc_or_say(n, sizeof *f->logits, "the answers of a model", err);
        if (!f->logits) return TTN_ENOMEM;
        f->n_logits = n;
    }
    ttn_status status = ttn_plan_read(p, f->value.logits, f->logits, err);
    for (int64_t i = 0; status == TTN_OK && i < picks * V; i++)
        if (!isfinite(f->logits[i]))
            status = TTN_FAIL(err, TTN_ENUMERIC, "%s: what this model predicts is not a finite number",
                              f->options.model->path);
    return status;
}

ttn_status ttn_filler_run(ttn_filler *f, const ttn_masked *s, ttn_error *err)
{
    int64_t start;
    ttn_plan *p;
    if (s->n_mask == 0)
        return TTN_FAIL(err, TTN_EINVAL, "there is nothing to fill in: write _ or <mask> in the places of residues");
    ttn_status status = lay_out(f, s, &start, err);
    if (status != TTN_OK) return status;
    const ttn_span span = {.first = 0, .n = f->rows};
    const uint64_t sample = 0;
    const ttn_feed feed = {
        .used = {.rows = f->rows, .seqs = 1, .picks = f->masks},
        .span = &span,
        .start = &start,
        .sample = &sample,
    };
    ttn_error why = {0};
    status = ttn_plan_cache_get(f->cache, feed.used, 0, &p, &why);
    if (status == TTN_ENOMEM)
        return TTN_FAIL(err, status, "a sequence of %" PRId64 " residues does not fit into memory: %s", s->n, why.text);
    if (status != TTN_OK) return TTN_FAIL(err, status, "%s", why.text);
    status = ttn_plan_bind(p, "tokens", f->token, err);
    if (status == TTN_OK) status = ttn_plan_bind(p, "index", f->index, err);
    if (status == TTN_OK) status = ttn_plan_run(p, &feed, NULL, err);
    return status == TTN_OK ? read_logits(f, p, f->masks, err) : status;
}

/* ---- answers ---- */

static int by_probability(const void *a, const void *b)
{
    const ttn_guess *x = a, *y = b;
    if (x->p != y->p) return x->p < y->p ? 1 : -1;
    return x->letter - y->letter;
}

int ttn_filler_guesses(const ttn_filler *f, int64_t k, int most, ttn_guess *ret, int64_t *ret_position)
{
    assert(k >= 0 && k < f->masks);
    const ttn_alphabet *a = f->options.model->alphabet;
    const real *logit = f->logits + k * a->n;
    ttn_guess guess[TTN_MAX_TOKENS];
    double largest = (double)logit[0], sum = 0;
    int n = 0;
    for (int t = 1; t < a->n; t++)
        largest = fmax(largest, (double)logit[t]);
    for (int t = 0; t < a->n; t++) {
        const double p = exp((double)logit[t] - largest);
        sum += p;
        if (ttn_alphabet_letter(a, t)) guess[n++] = (ttn_guess){ttn_alphabet_letter(a, t), p};
    }
    for (int i = 0; i < n; i++)
        guess[i].p /= sum;
    qsort(guess, (size_t)n, sizeof *guess, by_probability);
    if (n > most) n = most;
    memcpy(ret, guess, (size_t)n * sizeof *guess);
    *ret_position = f->index[k] - f->before + 1;
    return n;
}
