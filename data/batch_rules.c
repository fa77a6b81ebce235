#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/hash.h"
#include "core/rng.h"
#include "data/batch.h"
#include "data/batch_rules.h"

/* ---- configuration ---- */

static const char *const frame_choices[] = {"ends", "always", "none", NULL};

enum { MAX_LEN, FRAME, MAX_SEQS, ROWS, N_OPTIONS };

const ttn_option ttn_batch_options[] = {
    [MAX_LEN] = {.name = "data.max_len",
                 .type = TTN_OPTION_INTEGER,
                 .fallback = "0",
                 .least = 0,
                 .most = 1 << 30,
                 .unit = "residues",
                 .help = "of longer proteins each epoch sees a piece of so many, at a random place; 0: always all",
                 .since = "0.1"},
    [FRAME] = {.name = "data.frame",
               .type = TTN_OPTION_CHOICE,
               .fallback = "ends",
               .choices = frame_choices,
               .help = "<cls> and <eos>: at the real ends of proteins, around every piece of them, or nowhere",
               .since = "0.1"},
    [MAX_SEQS] = {.name = "data.max_seqs",
                  .type = TTN_OPTION_INTEGER,
                  .fallback = "0",
                  .least = 0,
                  .most = 1 << 30,
                  .unit = "sequences",
                  .help = "the most in one batch; 0: half more than there are on average",
                  .since = "0.1"},
    [ROWS] = {.name = "batch.rows",
              .type = TTN_OPTION_INTEGER,
              .fallback = "16320",
              .least = 1,
              .most = 1 << 30,
              .unit = "rows",
              .help = "residues and specials that one batch has room for, rounded up to a multiple of 480",
              .since = "0.1"},
};
const int ttn_batch_n_options = N_OPTIONS;

ttn_status ttn_batch_rules_of(const ttn_option_reader *o, ttn_batch_rules *ret, ttn_error *err)
{
    ttn_batch_rules r = {0};
    const char *frame = NULL;
    ttn_status status = o->get_integer(o->self, ttn_batch_options[MAX_LEN].name, 0, &r.max_len, err);
    if (status == TTN_OK) status = o->get_text(o->self, ttn_batch_options[FRAME].name, 0, &frame, err);
    if (status == TTN_OK) status = o->get_integer(o->self, ttn_batch_options[MAX_SEQS].name, 0, &r.max_seqs, err);
    if (status == TTN_OK) status = o->get_integer(o->self, ttn_batch_options[ROWS].name, 0, &r.rows, err);
    if (status == TTN_OK) status = ttn_mlm_rules_of(o, &r.mlm, err);
    if (status != TTN_OK) return status;
    while (strcmp(frame_choices[r.frame], frame) != 0)
        r.frame++;
    *ret = r;
    return TTN_OK;
}

/* ---- pieces ---- */

uint64_t ttn_crop_key(uint64_t seed, int64_t epoch)
{
    return ttn_rng_key(seed, ttn_hash_text("crops of an epoch"), (uint64_t)epoch);
}

uint64_t ttn_crop_fixed_key(uint64_t seed)
{
    return ttn_rng_key(seed, ttn_hash_text("fixed crops"), 0);
}

static int is_cropped(const ttn_batch_rules *r, int64_t length)
{
    return r->max_len > 0 && length > r->max_len;
}

ttn_piece ttn_piece_of(const ttn_batch_rules *r, const ttn_alphabet *a, uint64_t key, uint64_t sample, int64_t length)
{
    ttn_piece p = {.n = length};
    if (is_cropped(r, length)) {
        p.n = r->max_len;
        p.first = (int64_t)ttn_rng_below(key, sample, 0, (uint64_t)(length - r->max_len + 1));
    }
    const int always = r->frame == TTN_FRAME_ALWAYS;
    const int ends = r->frame == TTN_FRAME_ENDS;
    p.has_cls = a->cls != TTN_NO_TOKEN && (always || (ends && p.first == 0));
    p.has_eos = a->eos != TTN_NO_TOKEN && (always || (ends && p.first + p.n == length));
    return p;
}

int64_t ttn_piece_rows(const ttn_piece *p)
{
    return p->n + p->has_cls + p->has_eos;
}

int64_t ttn_piece_start(const ttn_batch_rules *r, const ttn_alphabet *a, const ttn_piece *p)
{
    if (r->frame == TTN_FRAME_ALWAYS || p->has_cls) return 0;
    const int has_place_of_cls = r->frame == TTN_FRAME_ENDS && a->cls != TTN_NO_TOKEN;
    return p->first + has_place_of_cls;
}

static int64_t round_up(int64_t n, int64_t step)
{
    return (n + step - 1) / step * step;
}

int64_t ttn_batch_align(int64_t n)
{
    return round_up(n, TTN_BATCH_ALIGN);
}

/* ---- capacities ---- */

enum { WINDOW = 1024, MOST_WINDOWS = 1024, BATCHES_OF_A_WINDOW = 32 };

/* Specials about a whole protein. */
static int64_t specials(const ttn_batch_rules *r, const ttn_alphabet *a)
{
    return r->frame == TTN_FRAME_NONE ? 0 : (a->cls != TTN_NO_TOKEN) + (a->eos != TTN_NO_TOKEN);
}

/* The rows that a sequence may take. A crop with one real end has one special, which end it is may differ. */
static int64_t most_rows(const ttn_batch_rules *r, const ttn_alphabet *a, int64_t length)
{
    if (!is_cropped(r, length)) return length + specials(r, a);
    if (r->frame == TTN_FRAME_ALWAYS) return r->max_len + specials(r, a);
    return r->max_len + (specials(r, a) > 0);
}

static ttn_status too_long(const ttn_batch_rules *r, const ttn_sequences *s, int64_t i, int64_t n_rows, ttn_error *err)
{
    char name[128] = "";
    if (s->name) s->name(s->self, i, name, sizeof name);
    const int64_t length = s->length(s->self, i);
    const int64_t needed = most_rows(r, s->alphabet, length);
    const int64_t fits = n_rows - specials(r, s->alphabet);
    char what[256];
    if (is_cropped(r, length))
        snprintf(what, sizeof what, "a piece of %" PRId64 " residues (data.max_len) of sequence %" PRId64 " '%s'",
                 r->max_len, i + 1, name);
    else
        snprintf(what, sizeof what, "sequence %" PRId64 " '%s' of %" PRId64 " residues", i + 1, name, length);
    return TTN_FAIL(err, TTN_EINVAL,
                    "%s needs %" PRId64 " rows, and a batch has %" PRId64 ". Set batch.rows to %" PRId64
                    " or more, or data.max_len to %" PRId64 " or less, so that pieces of the longer ones are taken",
                    what, needed, n_rows, round_up(needed, TTN_BATCH_TILE), fits);
}

ttn_status ttn_batch_capacity_of(const ttn_batch_rules *r, const ttn_sequences *s, const ttn_subset *side,
                                 ttn_capacity *ret, ttn_error *err)
{
    assert(!side || ttn_subset_of(side) == s->n);
    assert(r->rows > 0 && r->max_seqs >= 0 && r->max_len >= 0);
    ttn_capacity c = {.sequences = side ? ttn_subset_count(side) : s->n};
    if (c.sequences == 0)
        return TTN_FAIL(err, TTN_EINVAL,
                        "there is no sequence to make batches of: %" PRId64 " in all, none on this side of "
                        "the split",
                        s->n);
    const int64_t n_rows = round_up(r->rows, TTN_BATCH_TILE);
    int64_t all_rows = 0;
    for (int64_t i = side ? ttn_subset_next(side, 0) : 0; i >= 0 && i < s->n;
         i = side ? ttn_subset_next(side, i + 1) : i + 1) {
        const int64_t length = s->length(s->self, i);
        const int64_t rows = most_rows(r, s->alphabet, length);
        if (rows > n_rows) return too_long(r, s, i, n_rows, err);
        const int64_t position = r->frame == TTN_FRAME_ALWAYS ? rows : length + specials(r, s->alphabet);
        if (position > c.positions) c.positions = position;
        if (length > c.longest) c.longest = length;
        c.residues += length;
        const int64_t known[] = {i, length};
        c.lengths = ttn_hash64(known, sizeof known, c.lengths);
        all_rows += ttn_batch_align(rows);
        if (!is_cropped(r, length)) continue;
        c.cropped++;
        c.left_out += length - r->max_len;
    }
    const double mean = (double)all_rows / (double)c.sequences;
    c.extent.rows = n_rows;
    c.extent.seqs = r->max_seqs;
    if (c.extent.seqs == 0) c.extent.seqs = (int64_t)ceil(1.5 * (double)n_rows / mean);
    if (c.extent.seqs > n_rows / TTN_BATCH_ALIGN) c.extent.seqs = n_rows / TTN_BATCH_ALIGN;
    c.extent.picks = n_rows;
    if (r->objective == TTN_OBJECTIVE_MLM) {
        const int64_t bound = (int64_t)ceil(r->mlm.rate * (double)n_rows) + c.extent.seqs * TTN_BATCH_ALIGN;
        if (bound < n_rows) c.extent.picks = round_up(bound, TTN_BATCH_TILE);
    }
    /* What S leaves of a batch does not come into it: such batches hold S sequences, fewer than counted here. */
    const double wanted = BATCHES_OF_A_WINDOW * (double)n_rows / mean;
    c.window = WINDOW * (int64_t)fmin(ceil(wanted / WINDOW), MOST_WINDOWS);
    *ret = c;
    return TTN_OK;
}
