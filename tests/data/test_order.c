#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "core/permute.h"
#include "data/order.h"
#include "data/packing.h"
#include "tests/data/proteins.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"

static ttn_subset *odd_ones(int64_t n)
{
    ttn_error err = {0};
    ttn_subset *s;
    assert_ok(ttn_subset_create(n, &s, &err), &err);
    for (int64_t i = 1; i < n; i++)
        if (i % 2 == 1 && (i < 100 || i > 300)) ttn_subset_add(s, i); /* blocks without a member, too */
    ttn_subset_close(s);
    return s;
}

/* The epoch's order, which must hold each member once. */
static void visit_all(ttn_order *o, int64_t epoch, int64_t n, const ttn_subset *side, int64_t *visited)
{
    char *seen = calloc((size_t)n + 1, 1);
    assert_non_null(seen);
    ttn_order_begin(o, epoch);
    const int64_t count = ttn_order_count(o);
    assert_int_equal(count, side ? ttn_subset_count(side) : n);
    for (int64_t i = 0; i < count; i++) {
        visited[i] = ttn_order_at(o, i);
        if (visited[i] < 0 || visited[i] >= n) fail_msg("place %" PRId64 " is %" PRId64, i, visited[i]);
        if (seen[visited[i]]++) fail_msg("%" PRId64 " comes twice", visited[i]);
        if (side && !ttn_subset_has(side, visited[i])) fail_msg("%" PRId64 " is of the other side", visited[i]);
    }
    free(seen);
}

static void an_epoch_visits_every_sequence_of_its_side_once(void **state)
{
    (void)state;
    static const int64_t blocks[] = {0, 1, 7, 64, 500, 5000};
    static const int64_t at_once[] = {1, 2, 3, 10};
    int64_t visited[2][1500];
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
        for (size_t a = 0; a < sizeof at_once / sizeof *at_once; a++) {
            for (int some = 0; some < 2; some++) {
                proteins p = {.alphabet = ttn_alphabet_find("esm"), .n = 1500, .every = 1, .block = blocks[b]};
                ttn_sequences s = proteins_view(&p);
                s.blocks_at_once = at_once[a];
                ttn_subset *side = some ? odd_ones(p.n) : NULL;
                ttn_error err = {0};
                ttn_order *o;
                assert_ok(ttn_order_create(&s, side, 1, ttn_test_seed(), &o, &err), &err);
                visit_all(o, 0, p.n, side, visited[0]);
                visit_all(o, 1, p.n, side, visited[1]);
                assert_memory_not_equal(visited[0], visited[1], (size_t)ttn_order_count(o) * sizeof **visited);
                visit_all(o, 0, p.n, side, visited[1]);
                assert_same_bits(visited[0], visited[1], (size_t)ttn_order_count(o) * sizeof **visited);
                ttn_order_destroy(o);
                ttn_subset_destroy(side);
            }
        }
    }
}

static void without_blocks_it_is_the_permutation(void **state)
{
    (void)state;
    proteins p = {.alphabet = ttn_alphabet_find("esm"), .n = 1000, .every = 1, .block = 100};
    ttn_sequences s = proteins_view(&p);
    s.blocks_at_once = 10; /* all of them */
    ttn_error err = {0};
    ttn_order *o;
    assert_ok(ttn_order_create(&s, NULL, 1, 5, &o, &err), &err);
    assert_int_equal(ttn_order_n_group(o), 1);
    ttn_order_begin(o, 3);
    ttn_permute permute;
    ttn_permute_init(&permute, 1000, 5, 3);
    for (int64_t i = 0; i < 1000; i++)
        assert_int_equal(ttn_order_at(o, i), ttn_permute_at(&permute, i));
    ttn_order_destroy(o);

    assert_ok(ttn_order_create(&s, NULL, 0, 5, &o, &err), &err);
    ttn_order_begin(o, 3);
    for (int64_t i = 0; i < 1000; i++)
        assert_int_equal(ttn_order_at(o, i), i);
    ttn_order_destroy(o);
}

/* A cache of the blocks used last, as long as a store's. */
typedef struct {
    int64_t block[8];
    int64_t last[8];
    int64_t now, loads;
} cache;

static void look_up(cache *c, int n_slot, int64_t block)
{
    int oldest = 0;
    c->now++;
    for (int i = 0; i < n_slot; i++) {
        if (c->block[i] == block) {
            c->last[i] = c->now;
            return;
        }
        if (c->last[i] < c->last[oldest]) oldest = i;
    }
    c->block[oldest] = block;
    c->last[oldest] = c->now;
    c->loads++;
}

/* Whatever the order within a window of `near` places: the two groups at a border fit into the cache. */
static void each_block_is_read_once_an_epoch(void **state)
{
    (void)state;
    enum { AT_ONCE = 8, BLOCK = 50, N = 10000, NEAR = 100 };
    proteins p = {.alphabet = ttn_alphabet_find("esm"), .n = N, .every = 1, .block = BLOCK};
    ttn_sequences s = proteins_view(&p);
    s.blocks_at_once = AT_ONCE;
    ttn_error err = {0};
    ttn_order *o;
    assert_ok(ttn_order_create(&s, NULL, 1, ttn_test_seed(), &o, &err), &err);
    assert_int_equal(ttn_order_n_group(o), N / BLOCK / (AT_ONCE / 2));
    cache c = {.loads = 0};
    memset(c.block, -1, sizeof c.block);
    int64_t neighbours = 0;
    for (int64_t w = 0; w < N; w += NEAR) {
        for (int64_t i = 0; i < NEAR; i++)
            look_up(&c, AT_ONCE, ttn_order_at(o, w + i * 37 % NEAR) / BLOCK);
        for (int64_t i = 1; i < NEAR; i++)
            neighbours += ttn_order_at(o, w + i) / BLOCK == ttn_order_at(o, w + i - 1) / BLOCK;
    }
    assert_int_equal(c.loads, N / BLOCK);
    /* A group is shuffled as a whole: of four blocks the next sequence is from the same one in a quarter of the places. */
    assert_true(neighbours > N / 5 && neighbours < N * 3 / 10);
    ttn_order_destroy(o);
}

/* By the book: the first bin with room, for every thing in turn. */
static void packing_is_first_fit(void **state)
{
    (void)state;
    enum { MOST = 600 };
    static const ttn_extent capacity = {.rows = 480, .seqs = 5, .picks = 100};
    ttn_error err = {0};
    ttn_packing *p;
    assert_ok(ttn_packing_create(MOST, capacity, &p, &err), &err);
    for (uint64_t round = 0; round < 40; round++) {
        const int64_t n = round == 0 ? 1 : (int64_t)ttn_rng_below(4, round, 0, MOST) + 1;
        int64_t rows[MOST], picks[MOST], bin_of[MOST];
        ttn_extent used[MOST] = {{0}};
        int64_t n_bin = 0;
        for (int64_t i = 0; i < n; i++) {
            /* in some rounds the rows fill a bin, in others the sequences, in others the picks */
            rows[i] = 1 + (int64_t)ttn_rng_below(1, round, (uint64_t)i, round % 3 == 0 ? 480 : 60);
            picks[i] = (int64_t)ttn_rng_below(2, round, (uint64_t)i, round % 3 == 1 ? 101 : 20);
            int64_t b = 0;
            while (used[b].rows + rows[i] > capacity.rows || used[b].seqs + 1 > capacity.seqs ||
                   used[b].picks + picks[i] > capacity.picks)
                b++;
            used[b].rows += rows[i];
            used[b].seqs++;
            used[b].picks += picks[i];
            bin_of[i] = b;
            if (b + 1 > n_bin) n_bin = b + 1;
        }
        ttn_packing_fill(p, n, rows, picks);
        assert_int_equal(ttn_packing_n_bin(p), n_bin);
        int64_t seen = 0;
        for (int64_t b = 0; b < n_bin; b++) {
            int64_t n_thing;
            const int64_t *thing = ttn_packing_bin(p, b, &n_thing);
            assert_int_equal(n_thing, used[b].seqs);
            for (int64_t k = 0; k < n_thing; k++) {
                assert_int_equal(bin_of[thing[k]], b);
                if (k > 0) assert_true(thing[k] > thing[k - 1]);
            }
            seen += n_thing;
        }
        assert_int_equal(seen, n);
    }
    ttn_packing_destroy(p);
}

static void without_memory_there_is_no_order_and_no_packing(void **state)
{
    (void)state;
    proteins p = {.alphabet = ttn_alphabet_find("esm"), .n = 100, .every = 1, .block = 5};
    ttn_sequences s = proteins_view(&p);
    s.blocks_at_once = 3;
    int64_t nth = 1;
    for (int hit = 1; hit; nth++) {
        ttn_error err = {0};
        ttn_order *o = NULL;
        ttn_packing *packing = NULL;
        shim_arm(SHIM_ALLOC, nth, SHIM_FAIL, ENOMEM, 0);
        ttn_status status = ttn_order_create(&s, NULL, 1, 1, &o, &err);
        if (status == TTN_OK) status = ttn_packing_create(100, (ttn_extent){480, 10, 480}, &packing, &err);
        hit = shim_was_hit();
        shim_disarm();
        assert_int_equal(status, hit ? TTN_ENOMEM : TTN_OK);
        ttn_order_destroy(o);
        ttn_packing_destroy(packing);
    }
    assert_true(nth > 8);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_epoch_visits_every_sequence_of_its_side_once),
        cmocka_unit_test(without_blocks_it_is_the_permutation),
        cmocka_unit_test(each_block_is_read_once_an_epoch),
        cmocka_unit_test(packing_is_first_fit),
        cmocka_unit_test(without_memory_there_is_no_order_and_no_packing),
    };
    return ttn_test_run(tests);
}
