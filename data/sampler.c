#include <assert.h>
#include <inttypes.h>
#include "core/bits.h"
#include "core/hash.h"
#include "core/memory.h"
#include "data/order.h"
#include "data/packing.h"
#include "data/sampler.h"

/* A sequence of the window at hand. */
typedef struct {
    int64_t number; /* in `from` */
    int64_t length;
    ttn_piece piece;
} visit;

struct ttn_sampler {
    ttn_sampler_options options;
    ttn_sequences from;
    ttn_order *order;
    ttn_mlm *mlm;      /* NULL: clm */
    uint8_t *excluded; /* (N) of one sequence; NULL: there is none in the data */
    int64_t n_window;  /* of an epoch */
    uint64_t series;   /* hash of all that the series depends on */

    /* Where it stands: the next batch of the series, shard `shard` of its step. With `is_packed` the window's plan is there. */
    ttn_cursor at;
    int64_t shard;
    int is_packed;
    uint64_t crop_key, mask_key; /* of at.epoch, as soon as a window is packed */
    visit *visit;                /* (window) */
    int64_t *rows, *picks;       /* (window) what each takes */
    ttn_packing *packing;
};

/* ---- the series ---- */

/* Structs are hashed as arrays of numbers, since padding has no value. */
static uint64_t hash_of_series(const ttn_sampler *s)
{
    const ttn_sampler_options *o = &s->options;
    const ttn_capacity *c = &o->capacity;
    const int is_mlm = o->rules.objective == TTN_OBJECTIVE_MLM;
    const int64_t number[] = {
        (int64_t)s->from.first_sample,
        (int64_t)c->lengths,
        c->extent.rows,
        c->extent.seqs,
        c->extent.picks,
        c->window,
        (int64_t)o->seed,
        o->is_fixed,
        o->rules.max_len,
        o->rules.frame,
        s->from.alphabet->cls != TTN_NO_TOKEN,
        s->from.alphabet->eos != TTN_NO_TOKEN,
        o->rules.objective,
        is_mlm ? (int64_t)ttn_f64_bits(o->rules.mlm.rate) : 0,
        ttn_order_n_group(s->order),
    };
    const uint64_t hash = ttn_hash64(number, sizeof number, 0);
    return hash ? hash : 1; /* 0 is "not known" */
}

static void begin_epoch(ttn_sampler *s, int64_t epoch)
{
    const ttn_sampler_options *o = &s->options;
    ttn_order_begin(s->order, o->is_fixed ? 0 : epoch);
    s->crop_key = o->is_fixed ? ttn_crop_fixed_key(o->seed) : ttn_crop_key(o->seed, epoch);
    s->mask_key = o->is_fixed ? ttn_mlm_fixed_key(o->seed, o->masking) : ttn_mlm_key(o->seed, epoch);
}

static uint64_t sample_of(const ttn_sampler *s, int64_t number)
{
    return s->from.first_sample + (uint64_t)number;
}

/* The window's plan: which sequences, what of them, in which batches. Only lengths are looked at. */
static void pack_window(ttn_sampler *s, int64_t window)
{
    const ttn_batch_rules *r = &s->options.rules;
    const int64_t first = window * s->options.capacity.window;
    const int64_t left = ttn_order_count(s->order) - first;
    const int64_t n = left < s->options.capacity.window ? left : s->options.capacity.window;
    for (int64_t i = 0; i < n; i++) {
        visit *v = &s->visit[i];
        v->number = ttn_order_at(s->order, first + i);
        v->length = s->from.length(s->from.self, v->number);
        v->piece = ttn_piece_of(r, s->from.alphabet, s->crop_key, sample_of(s, v->number), v->length);
        s->rows[i] = ttn_batch_align(ttn_piece_rows(&v->piece));
        /* As if no residue were excluded, so that the packing depends on lengths alone. */
        s->picks[i] = s->mlm ? ttn_batch_align(ttn_mlm_picks(r->mlm.rate, v->piece.n)) : s->rows[i];
    }
    ttn_packing_fill(s->packing, n, s->rows, s->picks);
}

static void ensure_packed(ttn_sampler *s)
{
    if (s->is_packed) return;
    begin_epoch(s, s->at.epoch);
    pack_window(s, s->at.window);
    s->is_packed = 1;
}

static int has_ended(const ttn_sampler *s)
{
    return s->options.epochs > 0 && s->at.epoch >= s->options.epochs;
}

/* To the next batch of the series. Where the series has ended only the step goes on. */
static void advance(ttn_sampler *s)
{
    s->shard = (s->shard + 1) % s->options.shards;
    if (has_ended(s)) return;
    ensure_packed(s);
    s->at.batch++;
    if (s->at.batch < ttn_packing_n_bin(s->packing)) return;
    s->at.batch = 0;
    s->at.window++;
    s->is_packed = 0;
    if (s->at.window < s->n_window) return;
    s->at.window = 0;
    s->at.epoch++;
}

static int is_mine(const ttn_sampler *s)
{
    return s->shard >= s->options.first_shard && s->shard < s->options.first_shard + s->options.n_shard;
}

int64_t ttn_sampler_count(ttn_sampler *s, int64_t epoch)
{
    begin_epoch(s, epoch);
    int64_t n = 0;
    for (int64_t w = 0; w < s->n_window; w++) {
        pack_window(s, w);
        n += ttn_packing_n_bin(s->packing);
    }
    s->is_packed = 0;
    return n;
}

/* ---- one batch ---- */

static void predict_next(const ttn_sampler *s, ttn_batch *b, ttn_span span, const ttn_piece *piece)
{
    for (int64_t i = 0; i + 1 < span.n; i++) {
        const int64_t row = span.first + i;
        const int64_t residue = i + 1 - piece->has_cls; /* of the piece; n is <eos> */
        if (s->excluded && residue < piece->n && s->excluded[residue]) continue;
        b->index[row] = row;
        b->target[row] = b->token[row + 1];
        b->targets++;
    }
    b->used.picks = span.first + span.n;
}

static void predict_masked(ttn_sampler *s, ttn_batch *b, uint64_t sample, ttn_span span, const ttn_piece *piece)
{
    const int64_t at = ttn_batch_align(b->used.picks);
    const int64_t first_residue = span.first + piece->has_cls;
    const int is_bare = !piece->has_cls && !piece->has_eos;
    const int64_t n = ttn_mlm_mask(s->mlm, s->mask_key, sample, piece->first, piece->n, s->excluded, is_bare,
                                   b->token + first_residue, b->index + at, b->target + at, b->shown + at);
    for (int64_t k = at; k < at + n; k++) {
        b->index[k] += first_residue;
        b->masked += b->shown[k];
    }
    b->targets += n;
    if (n > 0) b->used.picks = at + n;
}

static ttn_status add_piece(ttn_sampler *s, ttn_batch *b, const visit *v, ttn_error *err)
{
    const ttn_alphabet *a = s->from.alphabet;
    const ttn_piece *piece = &v->piece;
    const uint64_t sample = sample_of(s, v->number);
    const ttn_span span = {.first = ttn_batch_align(b->used.rows), .n = ttn_piece_rows(piece)};
    uint8_t *residue = b->token + span.first + piece->has_cls;
    ttn_status status = s->from.tokens(s->from.self, v->number, piece->first, piece->n, residue, err);
    if (status == TTN_OK && s->excluded)
        status = s->from.excluded(s->from.self, v->number, piece->first, piece->n, s->excluded, err);
    if (status != TTN_OK) return status;
    if (piece->has_cls) residue[-1] = a->cls;
    if (piece->has_eos) residue[piece->n] = a->eos;
    const int64_t q = b->used.seqs++;
    b->span[q] = span;
    b->start[q] = ttn_piece_start(&s->options.rules, a, piece);
    b->sample[q] = sample;
    b->used.rows = span.first + span.n;
    b->residues += piece->n;
    b->cropped += piece->n < v->length;
    const int64_t before = b->targets;
    if (s->mlm)
        predict_masked(s, b, sample, span, piece);
    else
        predict_next(s, b, span, piece);
    b->unpicked += b->targets == before;
    return TTN_OK;
}

static uint8_t pad_of(const ttn_alphabet *a)
{
    return a->pad != TTN_NO_TOKEN ? a->pad : a->unk;
}

/* A series that has ended leaves it empty. */
static ttn_status fill(ttn_sampler *s, ttn_batch *b, ttn_error *err)
{
    ttn_batch_clear(b, pad_of(s->from.alphabet));
    b->at = s->at;
    b->shard = s->shard;
    if (has_ended(s)) return TTN_OK;
    ensure_packed(s);
    int64_t n = 0;
    const int64_t *i = ttn_packing_bin(s->packing, s->at.batch, &n);
    ttn_status status = TTN_OK;
    for (int64_t k = 0; k < n && status == TTN_OK; k++)
        status = add_piece(s, b, &s->visit[i[k]], err);
    return status;
}

ttn_status ttn_sampler_next(ttn_sampler *s, ttn_batch *b, ttn_error *err)
{
    const ttn_extent *c = &s->options.capacity.extent;
    assert(b->capacity.rows == c->rows && b->capacity.seqs == c->seqs && b->capacity.picks == c->picks);
    if (s->shard == 0 && has_ended(s)) {
        ttn_batch_clear(b, pad_of(s->from.alphabet));
        return TTN_EOF;
    }
    while (!is_mine(s))
        advance(s);
    const ttn_status status = fill(s, b, err);
    if (status != TTN_OK) return status;
    advance(s);
    /* Behind the rank's last shard the others' are passed by, so that all ranks save the same cursor. */
    while (s->shard != 0 && !is_mine(s))
        advance(s);
    b->next = s->at;
    return TTN_OK;
}

/* ---- life ---- */

static ttn_status prepare(ttn_sampler *s, ttn_error *err)
{
    const ttn_sampler_options *o = &s->options;
    const char *what = "the sampler";
    ttn_status status = ttn_order_create(&s->from, o->side, !o->is_fixed, o->seed, &s->order, err);
    if (status != TTN_OK) return status;
    const int64_t count = ttn_order_count(s->order);
    assert(count == o->capacity.sequences && count > 0);
    s->n_window = (count + o->capacity.window - 1) / o->capacity.window;
    const int64_t most = count < o->capacity.window ? count : o->capacity.window;
    s->visit = ttn_alloc_or_say(most, sizeof *s->visit, what, err);
    s->rows = s->visit ? ttn_alloc_or_say(most, sizeof *s->rows, what, err) : NULL;
    s->picks = s->rows ? ttn_alloc_or_say(most, sizeof *s->picks, what, err) : NULL;
    if (!s->picks) return TTN_ENOMEM;
    if (s->from.excluded) {
        s->excluded = ttn_alloc_or_say(o->capacity.extent.rows, sizeof *s->excluded, what, err);
        if (!s->excluded) return TTN_ENOMEM;
    }
    status = ttn_packing_create(most, o->capacity.extent, &s->packing, err);
    if (status == TTN_OK && o->rules.objective == TTN_OBJECTIVE_MLM)
        status = ttn_mlm_create(s->from.alphabet, &o->rules.mlm, o->capacity.extent.rows, &s->mlm, err);
    if (status == TTN_OK) s->series = hash_of_series(s);
    return status;
}

ttn_status ttn_sampler_create(const ttn_sampler_options *o, ttn_sampler **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_sampler *s = ttn_alloc_or_say(1, sizeof *s, "the sampler", err);
    if (!s) return TTN_ENOMEM;
    s->options = *o;
    s->from = *o->from;
    s->options.from = &s->from;
    if (o->shards == 0) s->options.shards = s->options.n_shard = 1;
    assert(s->options.first_shard >= 0 && s->options.n_shard > 0);
    assert(s->options.first_shard + s->options.n_shard <= s->options.shards);
    const ttn_status status = prepare(s, err);
    if (status != TTN_OK) {
        ttn_sampler_destroy(s);
        return status;
    }
    s->at.order = s->series;
    *ret = s;
    return TTN_OK;
}

void ttn_sampler_destroy(ttn_sampler *s)
{
    if (!s) return;
    ttn_order_destroy(s->order);
    ttn_mlm_destroy(s->mlm);
    ttn_packing_destroy(s->packing);
    ttn_free(s->excluded);
    ttn_free(s->visit);
    ttn_free(s->rows);
    ttn_free(s->picks);
    ttn_free(s);
}

ttn_extent ttn_sampler_capacity(const ttn_sampler *s)
{
    return s->options.capacity.extent;
}

/* Is there such a batch in the series? Leaves its window packed. */
static int is_there(ttn_sampler *s, ttn_cursor at)
{
    if (at.epoch < 0 || at.epoch == INT64_MAX /* another must follow */ || at.window < 0 || at.window >= s->n_window ||
        at.batch < 0)
        return 0;
    if (at.batch == 0) return 1;
    begin_epoch(s, at.epoch);
    pack_window(s, at.window);
    return at.batch < ttn_packing_n_bin(s->packing);
}

ttn_status ttn_sampler_seek(ttn_sampler *s, ttn_cursor at, ttn_error *err)
{
    s->is_packed = 0;
    const int is_start = at.window == 0 && at.batch == 0; /* whatever the order was, it begins there */
    if (!is_start && at.order != s->series)
        return TTN_FAIL(
            err, TTN_EINVAL,
            "the place in the data (epoch %" PRId64 ", window %" PRId64 ", batch %" PRId64
            ") is one of other batches: sequences, split, seed, batch.rows, data.max_len, data.max_seqs, "
            "data.frame, mlm.rate and cache have to be as they were; without them only the start of an epoch "
            "is a place to go on from",
            at.epoch, at.window, at.batch);
    if (!is_there(s, at))
        return TTN_FAIL(err, TTN_EINVAL,
                        "the place in the data (epoch %" PRId64 ", window %" PRId64 ", batch %" PRId64
                        ") does not exist: an epoch has %" PRId64 " windows, and this one not so many batches",
                        at.epoch, at.window, at.batch, s->n_window);
    s->at = at;
    s->at.order = s->series;
    s->shard = 0;
    return TTN_OK;
}
