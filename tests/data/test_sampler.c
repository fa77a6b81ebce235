#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/hash.h"
#include "data/fasta.h"
#include "data/sampler.h"
#include "tests/data/proteins.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"

static const ttn_mlm_rules usual_mlm = {.rate = 0.15, .mask = 0.8, .random = 0.1};

/* ---- a sampler over made-up proteins, and its batches ---- */

static ttn_sampler_options options_of(const ttn_sequences *s, ttn_batch_rules rules)
{
    ttn_error err = {0};
    ttn_sampler_options o = {.from = s, .rules = rules, .seed = 5};
    if (o.rules.mlm.rate == 0) o.rules.mlm = usual_mlm;
    assert_ok(ttn_batch_capacity_of(&o.rules, s, NULL, &o.capacity, &err), &err);
    return o;
}

static ttn_sampler *sampler_of(const ttn_sampler_options *o)
{
    ttn_error err = {0};
    ttn_sampler *s;
    assert_ok(ttn_sampler_create(o, &s, &err), &err);
    return s;
}

static ttn_batch *batch_of(const ttn_sampler_options *o)
{
    ttn_error err = {0};
    ttn_batch *b;
    assert_ok(ttn_batch_create(o->capacity.extent, &b, &err), &err);
    return b;
}

static void next(ttn_sampler *s, ttn_batch *b)
{
    ttn_error err = {0};
    assert_ok(ttn_sampler_next(s, b, &err), &err);
}

/* All that a plan is fed with. */
static uint64_t hash_of(const ttn_batch *b)
{
    uint64_t h = ttn_hash64(&b->used, sizeof b->used, 0);
    h = ttn_hash64(b->token, (size_t)b->capacity.rows, h);
    h = ttn_hash64(b->span, (size_t)b->capacity.seqs * sizeof *b->span, h);
    h = ttn_hash64(b->start, (size_t)b->capacity.seqs * sizeof *b->start, h);
    h = ttn_hash64(b->sample, (size_t)b->capacity.seqs * sizeof *b->sample, h);
    h = ttn_hash64(b->index, (size_t)b->capacity.picks * sizeof *b->index, h);
    h = ttn_hash64(b->target, (size_t)b->capacity.picks, h);
    return ttn_hash64(b->shown, (size_t)b->capacity.picks, h);
}

/* Sequence q of the batch: where its residues are, which they are, and where its picks are. */
typedef struct {
    int64_t number, first_row, first, n; /* residues first, … first + n - 1 of the protein, from first_row on */
    int64_t pick, n_pick;
} found;

static found find(const proteins *p, const ttn_sampler_options *o, const ttn_batch *b, int64_t q, int64_t *pick)
{
    const ttn_span span = b->span[q];
    found f = {.number = (int64_t)(b->sample[q] - o->from->first_sample), .pick = *pick};
    const int64_t length = proteins_length(p, f.number);
    const int has_cls = b->token[span.first] == p->alphabet->cls;
    const int has_eos = b->token[span.first + span.n - 1] == p->alphabet->eos;
    f.first_row = span.first + has_cls;
    f.n = span.n - has_cls - has_eos;
    f.first = b->start[q] - (o->rules.frame == TTN_FRAME_ENDS && !has_cls);
    assert_int_equal(f.n, o->rules.max_len && length > o->rules.max_len ? o->rules.max_len : length);
    if (o->rules.frame == TTN_FRAME_ENDS) {
        assert_int_equal(has_cls, f.first == 0);
        assert_int_equal(has_eos, f.first + f.n == length);
    }
    assert_true(f.first >= 0 && f.first + f.n <= length);
    while (*pick < b->capacity.picks && (b->index[*pick] < 0 || b->index[*pick] < span.first + span.n)) {
        if (b->index[*pick] >= 0) {
            if (f.n_pick == 0) f.pick = *pick;
            f.n_pick++;
        } else if (f.n_pick > 0) {
            break;
        }
        (*pick)++;
    }
    return f;
}

/* Is the batch what it says it is? Visits (NULL: not wanted) counts how often each protein is in it. */
static void check(proteins *p, const ttn_sampler_options *o, const ttn_batch *b, int *visits)
{
    const ttn_extent *used = &b->used;
    const uint8_t mask = p->alphabet->mask;
    assert_int_equal(b->capacity.rows % TTN_BATCH_TILE, 0);
    assert_int_equal(b->capacity.picks % TTN_BATCH_TILE, 0);
    assert_true(used->rows <= b->capacity.rows && used->seqs <= b->capacity.seqs && used->picks <= b->capacity.picks);
    assert_true(used->seqs >= 1);
    int64_t end = 0, pick = 0, targets = 0, masked = 0, residues = 0, cropped = 0, unpicked = 0;
    for (int64_t q = 0; q < used->seqs; q++) {
        const ttn_span span = b->span[q];
        assert_int_equal(span.first % TTN_BATCH_ALIGN, 0);
        assert_true(span.first >= end && span.first < end + TTN_BATCH_ALIGN);
        for (int64_t row = end; row < span.first; row++)
            assert_int_equal(b->token[row], p->alphabet->pad);
        end = span.first + span.n;
        const found f = find(p, o, b, q, &pick);
        if (visits) visits[f.number]++;
        residues += f.n;
        cropped += f.n < proteins_length(p, f.number);
        int64_t n_can = 0;
        for (int64_t j = 0; j < f.n; j++)
            n_can += !proteins_excludes(p, f.number, f.first + j);
        assert_int_equal(f.n_pick, ttn_mlm_picks(o->rules.mlm.rate, n_can));
        assert_int_equal(f.pick % TTN_BATCH_ALIGN, 0);
        unpicked += f.n_pick == 0;
        int64_t k = 0;
        for (int64_t j = 0; j < f.n; j++) {
            const uint8_t is = proteins_residue(p, f.number, f.first + j), seen = b->token[f.first_row + j];
            if (k < f.n_pick && b->index[f.pick + k] == f.first_row + j) {
                assert_int_equal(b->target[f.pick + k], is);
                assert_int_equal(b->shown[f.pick + k], seen == mask);
                assert_false(proteins_excludes(p, f.number, f.first + j));
                masked += seen == mask;
                k++;
            } else {
                assert_int_equal(seen, is);
            }
        }
        assert_int_equal(k, f.n_pick);
        targets += k;
    }
    assert_int_equal(used->rows, end);
    for (int64_t row = end; row < b->capacity.rows; row++)
        assert_int_equal(b->token[row], p->alphabet->pad);
    int64_t last_pick = 0;
    for (int64_t r = 0; r < b->capacity.picks; r++) {
        if (b->index[r] >= 0) last_pick = r + 1;
        if (b->index[r] >= 0) continue;
        assert_int_equal(b->target[r], TTN_BATCH_NO_TARGET);
        assert_int_equal(b->shown[r], 0);
    }
    assert_int_equal(used->picks, last_pick);
    assert_int_equal(b->targets, targets);
    assert_int_equal(b->masked, masked);
    assert_int_equal(b->residues, residues);
    assert_int_equal(b->cropped, cropped);
    assert_int_equal(b->unpicked, unpicked);
}

/* ---- properties ---- */

static void a_batch_is_what_it_says_under_every_frame_crop_and_exclusion(void **state)
{
    (void)state;
    for (int frame = TTN_FRAME_ENDS; frame <= TTN_FRAME_NONE; frame++) {
        for (int64_t max_len = 0; max_len <= 300; max_len += 100) {
            for (int excludes = 0; excludes < 2; excludes++) {
                if (frame == TTN_FRAME_ALWAYS && max_len) continue; /* pieces without a place: the next test */
                proteins p = proteins_between(300, 1, 450);
                p.excludes = excludes;
                const ttn_sequences s = proteins_view(&p);
                const ttn_sampler_options o =
                    options_of(&s, (ttn_batch_rules){.rows = 1920, .max_len = max_len, .frame = (ttn_frame)frame});
                ttn_sampler *sampler = sampler_of(&o);
                ttn_batch *b = batch_of(&o);
                int visits[300] = {0};
                for (next(sampler, b); b->at.epoch == 0; next(sampler, b))
                    check(&p, &o, b, visits);
                for (int i = 0; i < 300; i++)
                    assert_int_equal(visits[i], 1);
                ttn_batch_destroy(b);
                ttn_sampler_destroy(sampler);
                proteins_free(&p);
            }
        }
    }
}

static void with_both_specials_always_every_piece_begins_at_0(void **state)
{
    (void)state;
    proteins p = {.alphabet = ttn_alphabet_find("esm"), .n = 50, .every = 100};
    const ttn_sequences s = proteins_view(&p);
    const ttn_sampler_options o =
        options_of(&s, (ttn_batch_rules){.rows = 480, .max_len = 30, .frame = TTN_FRAME_ALWAYS});
    ttn_sampler *sampler = sampler_of(&o);
    ttn_batch *b = batch_of(&o);
    for (next(sampler, b); b->at.epoch == 0; next(sampler, b)) {
        assert_int_equal(b->cropped, b->used.seqs);
        for (int64_t q = 0; q < b->used.seqs; q++) {
            assert_int_equal(b->span[q].n, 32);
            assert_int_equal(b->start[q], 0);
            assert_int_equal(b->token[b->span[q].first], p.alphabet->cls);
            assert_int_equal(b->token[b->span[q].first + 31], p.alphabet->eos);
        }
    }
    ttn_batch_destroy(b);
    ttn_sampler_destroy(sampler);
}

/* Numbers of sequences around those of a window; both sides of a split; blocks. */
static void every_sequence_of_a_side_comes_exactly_once_an_epoch(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 1023, 1024, 1025, 2048, 2500};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        for (int variant = 0; variant < 3; variant++) {
            const int64_t n = sizes[k];
            proteins p = proteins_between(n, 1, 60);
            if (variant == 2) p.block = 100;
            ttn_sequences s = proteins_view(&p);
            s.blocks_at_once = 4;
            s.first_sample = 1000;
            ttn_error err = {0};
            ttn_subset *side = NULL;
            if (variant == 1) {
                assert_ok(ttn_subset_create(n, &side, &err), &err);
                for (int64_t i = 0; i < n; i++)
                    if (i % 3 != 1) ttn_subset_add(side, i);
                ttn_subset_close(side);
            }
            ttn_sampler_options o = options_of(&s, (ttn_batch_rules){.rows = 480});
            o.side = side;
            assert_ok(ttn_batch_capacity_of(&o.rules, &s, side, &o.capacity, &err), &err);
            assert_int_equal(o.capacity.window, 1024);
            ttn_sampler *sampler = sampler_of(&o);
            ttn_batch *b = batch_of(&o);
            int *visits = calloc((size_t)n, sizeof *visits);
            assert_non_null(visits);
            const int64_t n_batch = ttn_sampler_count(sampler, 1);
            int64_t seen = 0;
            for (next(sampler, b); b->at.epoch < 3; next(sampler, b)) {
                check(&p, &o, b, visits);
                seen += b->at.epoch == 1;
            }
            assert_int_equal(seen, n_batch);
            for (int64_t i = 0; i < n; i++)
                if (visits[i] != (side && i % 3 == 1 ? 0 : 3))
                    fail_msg("n %" PRId64 ": sequence %" PRId64 " came %d times in 3 epochs", n, i, visits[i]);
            free(visits);
            ttn_batch_destroy(b);
            ttn_sampler_destroy(sampler);
            ttn_subset_destroy(side);
            proteins_free(&p);
        }
    }
}

static void an_epoch_has_another_order_than_the_one_before(void **state)
{
    (void)state;
    proteins p = proteins_between(400, 20, 60);
    const ttn_sequences s = proteins_view(&p);
    const ttn_sampler_options o = options_of(&s, (ttn_batch_rules){.rows = 1920});
    ttn_sampler *sampler = sampler_of(&o);
    ttn_batch *b = batch_of(&o);
    uint64_t first[3][8];
    ttn_error err = {0};
    for (int64_t e = 0; e < 3; e++) {
        assert_ok(ttn_sampler_seek(sampler, (ttn_cursor){.epoch = e}, &err), &err);
        next(sampler, b);
        memcpy(first[e], b->sample, sizeof first[e]);
    }
    assert_memory_not_equal(first[0], first[1], sizeof *first);
    assert_memory_not_equal(first[1], first[2], sizeof *first);
    ttn_batch_destroy(b);
    ttn_sampler_destroy(sampler);
    proteins_free(&p);
}

/* What sequence `number` looked like: its piece, what was seen of it, and its picks. */
static void note(proteins *p, const ttn_sampler_options *o, const ttn_batch *b, uint64_t *of_sequence)
{
    int64_t pick = 0;
    for (int64_t q = 0; q < b->used.seqs; q++) {
        const found f = find(p, o, b, q, &pick);
        uint64_t h = ttn_hash64(b->token + b->span[q].first, (size_t)b->span[q].n, (uint64_t)f.first);
        for (int64_t k = f.pick; k < f.pick + f.n_pick; k++) {
            const int64_t one[] = {b->index[k] - b->span[q].first, b->target[k], b->shown[k]};
            h = ttn_hash64(one, sizeof one, h);
        }
        of_sequence[f.number] = h;
    }
}

/* Every sequence of an epoch as this sampler shows it. */
static void note_epoch(proteins *p, const ttn_sampler_options *o, int64_t epoch, uint64_t *of_sequence)
{
    ttn_sampler *s = sampler_of(o);
    ttn_batch *b = batch_of(o);
    ttn_error err = {0};
    memset(of_sequence, 0, (size_t)p->n * sizeof *of_sequence);
    assert_ok(ttn_sampler_seek(s, (ttn_cursor){.epoch = epoch}, &err), &err);
    for (next(s, b); b->at.epoch == epoch; next(s, b))
        note(p, o, b, of_sequence);
    for (int64_t i = 0; i < p->n; i++)
        assert_true(of_sequence[i] != 0);
    ttn_batch_destroy(b);
    ttn_sampler_destroy(s);
}

static void crops_and_masks_do_not_depend_on_the_packing(void **state)
{
    (void)state;
    enum { N = 500 };
    proteins p = proteins_between(N, 1, 300);
    p.excludes = 1;
    const ttn_sequences s = proteins_view(&p);
    static uint64_t a[N], b[N];
    for (int is_fixed = 0; is_fixed < 2; is_fixed++) {
        ttn_sampler_options o = options_of(&s, (ttn_batch_rules){.rows = 960, .max_len = 200});
        o.is_fixed = is_fixed;
        note_epoch(&p, &o, 2, a);
        static const ttn_batch_rules others[] = {{.rows = 480, .max_len = 200},
                                                 {.rows = 9600, .max_len = 200},
                                                 {.rows = 960, .max_len = 200, .max_seqs = 2}};
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            ttn_sampler_options other = options_of(&s, others[i]);
            other.is_fixed = is_fixed;
            note_epoch(&p, &other, 2, b);
            assert_same_bits(a, b, sizeof a);
            other.capacity.window = 17;
            note_epoch(&p, &other, 2, b);
            assert_same_bits(a, b, sizeof a);
        }
        note_epoch(&p, &o, 3, b);
        int64_t same = 0;
        for (int64_t i = 0; i < N; i++)
            same += a[i] == b[i];
        /* Very short ones may be masked alike in two epochs. */
        if (is_fixed)
            assert_int_equal(same, N);
        else
            assert_true(same < N / 20);
    }
    proteins_free(&p);
}

/* Alone, and among others, of which some are gone: the same validation. */
static void fixed_masks_do_not_depend_on_epochs_or_batch_mates(void **state)
{
    (void)state;
    enum { N = 200 };
    proteins p = proteins_between(N, 1, 300);
    const ttn_sequences s = proteins_view(&p);
    ttn_sampler_options o = options_of(&s, (ttn_batch_rules){.rows = 1920, .max_len = 200});
    o.is_fixed = 1;
    uint64_t all[N], later[N], other[N], some[N] = {0};
    note_epoch(&p, &o, 0, all);
    note_epoch(&p, &o, 9, later);
    assert_same_bits(all, later, sizeof all);
    o.masking = 1;
    note_epoch(&p, &o, 0, other);
    int64_t same = 0;
    for (int64_t i = 0; i < N; i++)
        same += all[i] == other[i];
    assert_true(same < N / 20);
    o.masking = 0;

    ttn_error err = {0};
    ttn_subset *side;
    assert_ok(ttn_subset_create(N, &side, &err), &err);
    for (int64_t i = 3; i < N; i += 7)
        ttn_subset_add(side, i);
    ttn_subset_close(side);
    o.side = side;
    o.rules.max_seqs = o.capacity.extent.seqs;
    const ttn_extent before = o.capacity.extent;
    assert_ok(ttn_batch_capacity_of(&o.rules, &s, side, &o.capacity, &err), &err);
    assert_same_bits(&before, &o.capacity.extent, sizeof before);
    o.epochs = 1;
    ttn_sampler *sampler = sampler_of(&o);
    ttn_batch *b = batch_of(&o);
    ttn_status status;
    uint64_t last = 0;
    int64_t seen = 0;
    while ((status = ttn_sampler_next(sampler, b, &err)) == TTN_OK) {
        note(&p, &o, b, some);
        for (int64_t q = 0; q < b->used.seqs; q++)
            last = b->sample[q] > last ? b->sample[q] : last;
        seen += b->used.seqs;
    }
    assert_int_equal(status, TTN_EOF);
    assert_int_equal(seen, ttn_subset_count(side));
    for (int64_t i = 3; i < N; i += 7)
        assert_true(some[i] == all[i]);
    ttn_batch_destroy(b);
    ttn_sampler_destroy(sampler);
    ttn_subset_destroy(side);
    proteins_free(&p);
}

/* ---- shards, ranks, and going on from anywhere ---- */

typedef struct {
    uint64_t hash;
    ttn_cursor at, next;
} noted;

enum { MOST = 4000 };

/* The batches of a rank in turn, up to n_most of them or to the end; returns how many. */
static int64_t run(const ttn_sampler_options *o, const ttn_cursor *from, int64_t n_most, noted *ret)
{
    ttn_sampler *s = sampler_of(o);
    ttn_batch *b = batch_of(o);
    ttn_error err = {0};
    if (from) assert_ok(ttn_sampler_seek(s, *from, &err), &err);
    int64_t n = 0;
    ttn_status status = TTN_OK;
    while (n < n_most && (status = ttn_sampler_next(s, b, &err)) == TTN_OK) {
        const int64_t shards = o->shards ? o->shards : 1, mine = o->n_shard ? o->n_shard : 1;
        assert_int_equal(b->shard, o->first_shard + n % mine);
        assert_true(b->shard < shards);
        ret[n++] = (noted){hash_of(b), b->at, b->next};
    }
    if (n < n_most) {
        assert_int_equal(status, TTN_EOF);
        assert_int_equal(ttn_sampler_next(s, b, &err), TTN_EOF); /* and it stays so */
        assert_int_equal(b->used.rows, 0);
    }
    ttn_batch_destroy(b);
    ttn_sampler_destroy(s);
    return n;
}

static void ranks_share_the_series_whatever_their_number(void **state)
{
    (void)state;
    static noted whole[MOST], part[MOST];
    proteins p = proteins_between(150, 1, 120);
    const ttn_sequences s = proteins_view(&p);
    ttn_sampler_options o = options_of(&s, (ttn_batch_rules){.rows = 480});
    o.capacity.window = 64; /* windows and epochs end within steps */
    const int64_t n_whole = run(&o, NULL, 240, whole);
    assert_int_equal(n_whole, 240);
    assert_true(whole[239].at.epoch >= 3);
    for (int64_t shards = 1; shards <= 8; shards *= 2) {
        for (int64_t ranks = 1; ranks <= shards; ranks *= 2) {
            for (int64_t rank = 0; rank < ranks; rank++) {
                ttn_sampler_options r = o;
                r.shards = shards;
                r.n_shard = shards / ranks;
                r.first_shard = rank * r.n_shard;
                const int64_t n = run(&r, NULL, 240 / ranks, part);
                assert_int_equal(n, 240 / ranks);
                for (int64_t i = 0; i < n; i++) {
                    const int64_t at = i / r.n_shard * shards + r.first_shard + i % r.n_shard;
                    assert_true(part[i].hash == whole[at].hash);
                    assert_same_bits(&part[i].at, &whole[at].at, sizeof part[i].at);
                    if ((i + 1) % r.n_shard != 0) continue;
                    /* All ranks would save the place where the next step begins. */
                    const int64_t step_end = (i / r.n_shard + 1) * shards - 1;
                    assert_same_bits(&part[i].next, &whole[step_end].next, sizeof part[i].next);
                }
            }
        }
    }
    proteins_free(&p);
}

/* Runs 4 ranks over a series that ends: each has its batches of `whole`, and empty ones up to the end of the last step.
 * Returns how many empty ones there were. */
static int64_t count_empty(ttn_sampler_options o, int64_t shards, const noted *whole, int64_t n_whole)
{
    static noted part[MOST];
    const int64_t ranks = 4, steps = (n_whole + shards - 1) / shards;
    int64_t n_empty = 0;
    uint64_t empty = 0;
    for (int64_t rank = 0; rank < ranks; rank++) {
        o.shards = shards;
        o.n_shard = shards / ranks;
        o.first_shard = rank * o.n_shard;
        const int64_t n = run(&o, NULL, MOST, part);
        assert_int_equal(n, steps * o.n_shard);
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = i / o.n_shard * shards + o.first_shard + i % o.n_shard;
            if (at < n_whole) {
                assert_true(part[i].hash == whole[at].hash);
                continue;
            }
            if (empty == 0) empty = part[i].hash;
            assert_true(part[i].hash == empty);
            assert_int_equal(part[i].at.epoch, o.epochs);
            n_empty++;
        }
    }
    assert_int_equal(n_empty, steps * shards - n_whole);
    return n_empty;
}

/* With a limit on epochs the last step may have fewer batches than shards: ranks get as many all the same. */
static void a_last_step_is_filled_up_with_empty_batches(void **state)
{
    (void)state;
    static noted whole[MOST];
    proteins p = proteins_between(150, 1, 120);
    const ttn_sequences s = proteins_view(&p);
    int64_t filled_up = 0;
    for (int64_t epochs = 1; epochs <= 3; epochs++) {
        ttn_sampler_options o = options_of(&s, (ttn_batch_rules){.rows = 480});
        o.capacity.window = 64;
        o.epochs = epochs;
        const int64_t n_whole = run(&o, NULL, MOST, whole);
        ttn_sampler *sampler = sampler_of(&o);
        int64_t counted = 0;
        for (int64_t e = 0; e < epochs; e++)
            counted += ttn_sampler_count(sampler, e);
        assert_int_equal(n_whole, counted);
        ttn_sampler_destroy(sampler);
        static const int64_t shards[] = {4, 8, 32};
        for (size_t v = 0; v < sizeof shards / sizeof *shards; v++)
            filled_up += count_empty(o, shards[v], whole, n_whole);
    }
    assert_true(filled_up > 0);
    proteins_free(&p);
}

static void a_run_goes_on_from_any_place_as_if_it_had_not_stopped(void **state)
{
    (void)state;
    static noted whole[MOST], rest[MOST];
    proteins p = proteins_between(200, 1, 160);
    p.block = 16;
    ttn_sequences s = proteins_view(&p);
    s.blocks_at_once = 4;
    ttn_sampler_options o = options_of(&s, (ttn_batch_rules){.rows = 960, .max_len = 120});
    o.capacity.window = 50;
    o.epochs = 3;
    const int64_t n = run(&o, NULL, MOST, whole);
    for (int64_t i = 0; i < n; i++) {
        const int64_t n_rest = run(&o, &whole[i].next, i % 10 == 0 ? MOST : 5, rest);
        assert_true(n_rest == 5 || n_rest == n - i - 1);
        assert_same_bits(rest, whole + i + 1, (size_t)n_rest * sizeof *rest);
    }
    /* Also with another number of shards, at a place between steps. */
    ttn_sampler_options four = o;
    four.shards = four.n_shard = 4;
    const int64_t n_rest = run(&four, &whole[11].next, 8, rest);
    assert_int_equal(n_rest, 8);
    for (int64_t i = 0; i < n_rest; i++)
        assert_true(rest[i].hash == whole[12 + i].hash);
    proteins_free(&p);
}

/* A sampler that has done something else before: in the middle of a step, of a window, or counting another epoch. */
static void a_sampler_that_was_elsewhere_goes_on_as_a_new_one_does(void **state)
{
    (void)state;
    static noted whole[MOST];
    proteins p = proteins_between(200, 1, 160);
    const ttn_sequences s = proteins_view(&p);
    ttn_sampler_options o = options_of(&s, (ttn_batch_rules){.rows = 960});
    o.capacity.window = 50;
    o.shards = o.n_shard = 4;
    run(&o, NULL, 40, whole);
    ttn_sampler *sampler = sampler_of(&o);
    ttn_batch *b = batch_of(&o);
    ttn_error err = {0};
    for (int64_t step = 0; step < 8; step++) {
        for (int64_t k = 0; k < step % 4; k++)
            next(sampler, b);
        if (step > 0) assert_ok(ttn_sampler_seek(sampler, whole[4 * step - 1].next, &err), &err);
        for (int64_t i = 4 * step; i < 4 * step + 8; i++) {
            assert_true(ttn_sampler_count(sampler, 3) > 0);
            next(sampler, b);
            assert_true(hash_of(b) == whole[i].hash);
            assert_int_equal(b->shard, i % 4);
        }
        if (step == 0) assert_ok(ttn_sampler_seek(sampler, whole[3].next, &err), &err);
    }
    ttn_batch_destroy(b);
    ttn_sampler_destroy(sampler);
    proteins_free(&p);
}

static void a_place_in_another_series_is_refused(void **state)
{
    (void)state;
    static noted whole[MOST];
    proteins p = proteins_between(200, 1, 160), q = proteins_between(200, 2, 160);
    const ttn_sequences s = proteins_view(&p), changed = proteins_view(&q);
    const ttn_batch_rules rules = {.rows = 960, .max_len = 120};
    ttn_sampler_options o = options_of(&s, rules);
    run(&o, NULL, 7, whole);
    for (int i = 0; i < 8; i++) {
        ttn_batch_rules r = rules;
        if (i == 0) r.rows = 1440;
        if (i == 1) r.max_len = 121;
        if (i == 2) r.frame = TTN_FRAME_NONE;
        if (i == 3) r.max_seqs = 9;
        if (i == 4) r.objective = TTN_OBJECTIVE_CLM;
        if (i == 5) r.mlm = (ttn_mlm_rules){.rate = 0.16, .mask = 0.8, .random = 0.1};
        ttn_sampler_options other = options_of(i == 6 ? &changed : &s, r);
        if (i == 7) other.seed++;
        ttn_sampler *sampler = sampler_of(&other);
        ttn_batch *b = batch_of(&other);
        ttn_error err = {0};
        next(sampler, b);
        next(sampler, b);
        const ttn_cursor wanted = b->next;
        assert_fails(ttn_sampler_seek(sampler, whole[6].next, &err), TTN_EINVAL, &err, "one of other batches");
        next(sampler, b);
        assert_same_bits(&b->at, &wanted, sizeof wanted);
        err = (ttn_error){0};
        assert_ok(ttn_sampler_seek(sampler, (ttn_cursor){.epoch = 4}, &err), &err);
        assert_ok(ttn_sampler_seek(sampler, (ttn_cursor){.epoch = 4, .order = whole[0].at.order}, &err), &err);
        ttn_batch_destroy(b);
        ttn_sampler_destroy(sampler);
    }
    /* And places that are none. */
    ttn_sampler *sampler = sampler_of(&o);
    const uint64_t order = whole[0].at.order;
    const ttn_cursor none[] = {{-1, 0, 0, order},   {0, -1, 0, order}, {0, 0, -1, order},       {0, 1, 0, order},
                               {0, 0, 1000, order}, {-1, 0, 0, 0},     {INT64_MIN, 0, 0, order}};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        ttn_error err = {0};
        assert_fails(ttn_sampler_seek(sampler, none[i], &err), TTN_EINVAL, &err, "does not exist");
    }
    ttn_sampler_destroy(sampler);
    proteins_free(&p);
    proteins_free(&q);
}

static void a_failure_to_read_is_told_and_the_batch_can_be_tried_again(void **state)
{
    (void)state;
    static noted whole[MOST];
    proteins p = proteins_between(100, 1, 160);
    const ttn_sequences s = proteins_view(&p);
    const ttn_sampler_options o = options_of(&s, (ttn_batch_rules){.rows = 960});
    run(&o, NULL, 12, whole);
    ttn_sampler *sampler = sampler_of(&o);
    ttn_batch *b = batch_of(&o);
    int failures = 0;
    atomic_store(&p.reads, 0);
    for (int i = 0; i < 12; i++) {
        atomic_store(&p.fails, atomic_load(&p.reads) + 1 + i % 4);
        ttn_error err = {0};
        const ttn_status status = ttn_sampler_next(sampler, b, &err);
        atomic_store(&p.fails, 0);
        if (status != TTN_OK) {
            assert_int_equal(status, TTN_EIO);
            assert_contains(err.text, "cannot be read");
            failures++;
            next(sampler, b);
        }
        assert_true(hash_of(b) == whole[i].hash);
        assert_same_bits(&b->next, &whole[i].next, sizeof b->next);
    }
    assert_true(failures > 6);
    ttn_batch_destroy(b);
    ttn_sampler_destroy(sampler);
    proteins_free(&p);
}

/* ---- next-residue prediction ---- */

static void clm_predicts_the_next_token_of_the_same_sequence(void **state)
{
    (void)state;
    for (int frame = TTN_FRAME_ENDS; frame <= TTN_FRAME_NONE; frame++) {
        proteins p = proteins_between(100, 1, 300);
        p.excludes = 1;
        const ttn_sequences s = proteins_view(&p);
        const ttn_sampler_options o = options_of(
            &s,
            (ttn_batch_rules){.rows = 960, .max_len = 250, .objective = TTN_OBJECTIVE_CLM, .frame = (ttn_frame)frame});
        ttn_sampler *sampler = sampler_of(&o);
        ttn_batch *b = batch_of(&o);
        assert_int_equal(b->capacity.picks, b->capacity.rows);
        for (next(sampler, b); b->at.epoch == 0; next(sampler, b)) {
            int64_t targets = 0, q = 0, unpicked = 0;
            assert_int_equal(b->used.picks, b->used.rows);
            for (int64_t row = 0; row < b->capacity.rows; row++) {
                while (q < b->used.seqs && row >= b->span[q].first + b->span[q].n)
                    q++;
                const int is_inside = q < b->used.seqs && row >= b->span[q].first;
                int has_target = is_inside && row + 1 < b->span[q].first + b->span[q].n;
                if (has_target && frame != TTN_FRAME_ALWAYS) {
                    const int64_t number = (int64_t)b->sample[q];
                    const int64_t residue = row + 1 - b->span[q].first + b->start[q] - (frame == TTN_FRAME_ENDS);
                    if (residue < p.length[number] && proteins_excludes(&p, number, residue)) has_target = 0;
                    assert_int_equal(b->token[row + 1], residue < p.length[number]
                                                            ? proteins_residue(&p, number, residue)
                                                            : p.alphabet->eos);
                }
                if (has_target && frame == TTN_FRAME_ALWAYS) has_target = b->index[row] >= 0;
                assert_int_equal(b->index[row], has_target ? row : -1);
                assert_int_equal(b->target[row], has_target ? b->token[row + 1] : TTN_BATCH_NO_TARGET);
                targets += has_target;
            }
            assert_int_equal(b->targets, targets);
            assert_int_equal(b->masked, 0);
            for (q = 0; q < b->used.seqs; q++) {
                int64_t of_this = 0;
                for (int64_t i = 0; i < b->span[q].n; i++)
                    of_this += b->index[b->span[q].first + i] >= 0;
                unpicked += of_this == 0;
            }
            assert_int_equal(b->unpicked, unpicked);
        }
        ttn_batch_destroy(b);
        ttn_sampler_destroy(sampler);
        proteins_free(&p);
    }
}

/* ---- how full ---- */

/* The lengths of data/sample's 500 proteins. */
static int64_t *sample_lengths(int64_t *ret_n)
{
    ttn_error err = {0};
    ttn_fasta *f;
    const ttn_fasta_record *r;
    int64_t *length = calloc(500, sizeof *length);
    assert_non_null(length);
    assert_ok(ttn_fasta_open_path("data/sample/proteins-500.fasta.gz", NULL, &f, &err), &err);
    int64_t n = 0;
    ttn_status status;
    while ((status = ttn_fasta_next(f, &r, &err)) == TTN_OK)
        length[n++] = r->n;
    assert_int_equal(status, TTN_EOF);
    assert_int_equal(n, 500);
    ttn_fasta_close(f);
    *ret_n = n;
    return length;
}

/* Proteins of UniProt's lengths: 20,000 drawn from the sample. Only S is chosen by the default; of the batches that are not the
 * last ones of a window it closes none before its rows are used up, or it would cost more. */
static void batches_of_uniprot_are_97_in_100_full(void **state)
{
    (void)state;
    int64_t n_sample;
    int64_t *sample = sample_lengths(&n_sample);
    proteins p = {.alphabet = ttn_alphabet_find("esm"), .n = 20000};
    p.length = malloc((size_t)p.n * sizeof *p.length);
    assert_non_null(p.length);
    for (int64_t i = 0; i < p.n; i++)
        p.length[i] = sample[ttn_rng_below(ttn_test_seed(), 0, (uint64_t)i, (uint64_t)n_sample)];
    const ttn_sequences s = proteins_view(&p);
    static const struct {
        int64_t rows;
        double least;
    } cases[] = {{16384, 0.97}, {65536, 0.97}, {8192, 0.96}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const ttn_sampler_options o = options_of(&s, (ttn_batch_rules){.rows = cases[c].rows});
        ttn_sampler *sampler = sampler_of(&o);
        ttn_batch *b = batch_of(&o);
        double filled = 0, rows = 0;
        const int64_t n_epoch = ttn_test_long() ? 10 : 1;
        for (next(sampler, b); b->at.epoch < n_epoch; next(sampler, b)) {
            for (int64_t q = 0; q < b->used.seqs; q++)
                filled += (double)b->span[q].n;
            rows += (double)b->capacity.rows;
        }
        print_message("# N %" PRId64 ", S %" PRId64 ", R %" PRId64 ", window %" PRId64 ": %.2f %% full\n",
                      o.capacity.extent.rows, o.capacity.extent.seqs, o.capacity.extent.picks, o.capacity.window,
                      100 * filled / rows);
        assert_at_most(cases[c].least, filled / rows, "what is to be full");
        ttn_batch_destroy(b);
        ttn_sampler_destroy(sampler);
    }
    proteins_free(&p);
    free(sample);
}

/* R is a bound: even of the shortest sequences, and of lengths whose picks are just more than a multiple of 12. */
static void picks_never_close_a_batch(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 2, 9, 10, 81, 83, 84, 90, 163, 170, 500};
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        for (int64_t max_seqs = 0; max_seqs <= 100; max_seqs += 20) {
            proteins p = {.alphabet = ttn_alphabet_find("esm"), .n = 300, .every = lengths[l]};
            const ttn_sequences s = proteins_view(&p);
            const ttn_sampler_options o = options_of(&s, (ttn_batch_rules){.rows = 1920, .max_seqs = max_seqs});
            ttn_sampler *sampler = sampler_of(&o);
            ttn_batch *b = batch_of(&o);
            next(sampler, b); /* of 300 equal ones the first batch is full */
            const int64_t by_rows = 1920 / ttn_batch_align(lengths[l] + 2);
            int64_t wanted = by_rows < o.capacity.extent.seqs ? by_rows : o.capacity.extent.seqs;
            if (wanted > p.n) wanted = p.n;
            assert_int_equal(b->used.seqs, wanted);
            ttn_batch_destroy(b);
            ttn_sampler_destroy(sampler);
        }
    }
}

/* Of whoever gives less of them: then they close a batch, and nothing is written beyond. */
static void fewer_picks_close_batches_before_their_rows_do(void **state)
{
    (void)state;
    proteins p = proteins_between(200, 60, 130);
    const ttn_sequences s = proteins_view(&p);
    ttn_sampler_options o = options_of(&s, (ttn_batch_rules){.rows = 4800});
    o.capacity.extent.picks = 480; /* 15 in 100 of 4,800 are 720 */
    ttn_sampler *sampler = sampler_of(&o);
    ttn_batch *b = batch_of(&o);
    int visits[200] = {0};
    for (next(sampler, b); b->at.epoch == 0; next(sampler, b)) {
        check(&p, &o, b, visits);
        assert_true(b->used.rows < 4000);
    }
    for (int i = 0; i < 200; i++)
        assert_int_equal(visits[i], 1);
    ttn_batch_destroy(b);
    ttn_sampler_destroy(sampler);
    proteins_free(&p);
}

/* ---- size ---- */

/* 3 million sequences of 2,000 residues: 6 10^9. Memory is what the window takes. */
static void many_sequences_cost_nothing_but_a_window(void **state)
{
    (void)state;
    proteins p = {.alphabet = ttn_alphabet_find("esm"), .n = 3000000, .every = 2000};
    const ttn_sequences s = proteins_view(&p);
    const ttn_sampler_options o = options_of(&s, (ttn_batch_rules){.rows = 16320});
    assert_int_equal(o.capacity.residues, (int64_t)6000000000);
    ttn_sampler *sampler = sampler_of(&o);
    ttn_batch *b = batch_of(&o);
    next(sampler, b);
    check(&p, &o, b, NULL);
    ttn_error err = {0};
    const int64_t last = (p.n - 1) / o.capacity.window;
    assert_ok(ttn_sampler_seek(sampler, (ttn_cursor){.epoch = 1, .window = last, .order = b->at.order}, &err), &err);
    for (next(sampler, b); b->at.epoch == 1; next(sampler, b)) {
        assert_int_equal(b->at.window, last);
        check(&p, &o, b, NULL);
    }
    assert_int_equal(b->at.epoch, 2);
    ttn_batch_destroy(b);
    ttn_sampler_destroy(sampler);
}

/* A resumed run must see the batches that it would have seen: these are promises to files. */
static void batches_are_those_of_all_earlier_versions(void **state)
{
    (void)state;
    proteins p = proteins_between(300, 1, 450);
    p.excludes = 1;
    const ttn_sequences s = proteins_view(&p);
    ttn_sampler_options o = options_of(&s, (ttn_batch_rules){.rows = 1920, .max_len = 300});
    static noted whole[MOST];
    run(&o, NULL, 100, whole);
    assert_int_equal(ttn_hash64(whole, 100 * sizeof *whole, 0), 0xa8971299eb47f70a);
    proteins_free(&p);
}

static void without_memory_there_is_no_sampler(void **state)
{
    (void)state;
    proteins p = {.alphabet = ttn_alphabet_find("esm"), .n = 100, .every = 9, .excludes = 1};
    const ttn_sequences s = proteins_view(&p);
    const ttn_sampler_options o = options_of(&s, (ttn_batch_rules){.rows = 960});
    int64_t nth = 1;
    for (int hit = 1; hit; nth++) {
        ttn_error err = {0};
        ttn_sampler *sampler = NULL;
        ttn_batch *b = NULL;
        shim_arm(SHIM_ALLOC, nth, SHIM_FAIL, ENOMEM, 0);
        ttn_status status = ttn_sampler_create(&o, &sampler, &err);
        if (status == TTN_OK) status = ttn_batch_create(o.capacity.extent, &b, &err);
        if (status == TTN_OK) status = ttn_sampler_next(sampler, b, &err);
        hit = shim_was_hit();
        shim_disarm();
        assert_int_equal(status, hit ? TTN_ENOMEM : TTN_OK);
        ttn_batch_destroy(b);
        ttn_sampler_destroy(sampler);
    }
    assert_true(nth > 15);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_is_what_it_says_under_every_frame_crop_and_exclusion),
        cmocka_unit_test(with_both_specials_always_every_piece_begins_at_0),
        cmocka_unit_test(every_sequence_of_a_side_comes_exactly_once_an_epoch),
        cmocka_unit_test(an_epoch_has_another_order_than_the_one_before),
        cmocka_unit_test(crops_and_masks_do_not_depend_on_the_packing),
        cmocka_unit_test(fixed_masks_do_not_depend_on_epochs_or_batch_mates),
        cmocka_unit_test(ranks_share_the_series_whatever_their_number),
        cmocka_unit_test(a_last_step_is_filled_up_with_empty_batches),
        cmocka_unit_test(a_run_goes_on_from_any_place_as_if_it_had_not_stopped),
        cmocka_unit_test(a_sampler_that_was_elsewhere_goes_on_as_a_new_one_does),
        cmocka_unit_test(a_place_in_another_series_is_refused),
        cmocka_unit_test(a_failure_to_read_is_told_and_the_batch_can_be_tried_again),
        cmocka_unit_test(clm_predicts_the_next_token_of_the_same_sequence),
        cmocka_unit_test(batches_of_uniprot_are_97_in_100_full),
        cmocka_unit_test(picks_never_close_a_batch),
        cmocka_unit_test(fewer_picks_close_batches_before_their_rows_do),
        cmocka_unit_test(many_sequences_cost_nothing_but_a_window),
        cmocka_unit_test(batches_are_those_of_all_earlier_versions),
        cmocka_unit_test(without_memory_there_is_no_sampler),
    };
    return ttn_test_run(tests);
}
