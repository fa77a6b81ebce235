#include <inttypes.h>
#include <string.h>
#include "core/values.h"
#include "data/batch.h"
#include "data/batch_rules.h"
#include "tests/data/chi_square.h"
#include "tests/data/proteins.h"
#include "tests/harness/test.h"

static const ttn_mlm_rules usual_mlm = {.rate = 0.15, .mask = 0.8, .random = 0.1};

static const char *const alphabets[] = {"esm", "none"};

/* The vocabulary of ESM, or one without specials. */
static const ttn_alphabet *alphabet_of(const char *name)
{
    static const char *const token[] = {"A", "C", "D", "E", "F", "G", "H", "I", "K", "L",     "M",
                                        "N", "P", "Q", "R", "S", "T", "V", "W", "Y", "<unk>", "<mask>"};
    static ttn_alphabet bare;
    ttn_error err = {0};
    if (strcmp(name, "none") != 0) return ttn_alphabet_find(name);
    assert_ok(ttn_alphabet_make("bare", token, (int)(sizeof token / sizeof *token), &bare, &err), &err);
    return &bare;
}

/* ---- pieces ---- */

static void a_crop_begins_anywhere_equally_often_both_ends_included(void **state)
{
    (void)state;
    static const struct {
        int64_t length, max_len;
    } cases[] = {{2, 1}, {21, 20}, {50, 20}, {100, 1}, {64, 2}};
    const ttn_alphabet *a = ttn_alphabet_find("esm");
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        for (int by_epoch = 0; by_epoch < 2; by_epoch++) {
            const ttn_batch_rules r = {.max_len = cases[c].max_len};
            const int64_t n_offset = cases[c].length - cases[c].max_len + 1;
            const int64_t n_draw = ttn_scaled(100000, 10000);
            double count[100] = {0};
            for (int64_t d = 0; d < n_draw; d++) {
                const uint64_t key = ttn_crop_key(ttn_test_seed(), by_epoch ? d : 3);
                const ttn_piece p = ttn_piece_of(&r, a, key, by_epoch ? 3 : (uint64_t)d, cases[c].length);
                assert_int_equal(p.n, cases[c].max_len);
                assert_true(p.first >= 0 && p.first < n_offset);
                count[p.first]++;
            }
            assert_true(count[0] > 0 && count[n_offset - 1] > 0);
            assert_at_most(fabs(chi_square_z(count, (int)n_offset, (double)n_draw)), Z_BOUND, "offsets of crops, z");
        }
    }
}

static void what_is_not_longer_than_max_len_is_whole(void **state)
{
    (void)state;
    const ttn_alphabet *a = ttn_alphabet_find("esm");
    for (int64_t length = 1; length <= 20; length++) {
        for (int64_t max_len = 0; max_len <= 40; max_len += 20) {
            const ttn_batch_rules r = {.max_len = max_len};
            const ttn_piece p = ttn_piece_of(&r, a, 1, 2, length);
            assert_int_equal(p.first, 0);
            assert_int_equal(p.n, length);
            assert_int_equal(ttn_piece_rows(&p), length + 2);
        }
    }
}

/* Every crop of 12 residues to 5, and the whole, under each frame: specials, rows, and where positions start. */
static void specials_stand_where_the_frame_has_them(void **state)
{
    (void)state;
    for (int v = 0; v < 2; v++) {
        const ttn_alphabet *a = alphabet_of(alphabets[v]);
        const int has = v == 0;
        int seen[9] = {0};
        for (uint64_t sample = 0; sample < 200; sample++) {
            for (int is_cropped = 0; is_cropped < 2; is_cropped++) {
                ttn_batch_rules r = {.max_len = is_cropped ? 5 : 0, .frame = TTN_FRAME_ENDS};
                const ttn_piece ends = ttn_piece_of(&r, a, 9, sample, 12);
                const int is_first = ends.first == 0, is_last = ends.first + ends.n == 12;
                assert_int_equal(ends.has_cls, has && is_first);
                assert_int_equal(ends.has_eos, has && is_last);
                assert_int_equal(ttn_piece_start(&r, a, &ends), has ? (is_first ? 0 : ends.first + 1) : ends.first);
                r.frame = TTN_FRAME_ALWAYS;
                const ttn_piece always = ttn_piece_of(&r, a, 9, sample, 12);
                assert_int_equal(always.first, ends.first);
                assert_int_equal(ttn_piece_rows(&always), ends.n + 2 * has);
                assert_int_equal(ttn_piece_start(&r, a, &always), 0);
                r.frame = TTN_FRAME_NONE;
                const ttn_piece none = ttn_piece_of(&r, a, 9, sample, 12);
                assert_int_equal(ttn_piece_rows(&none), ends.n);
                assert_int_equal(ttn_piece_start(&r, a, &none), ends.first);
                if (is_cropped) seen[ends.first]++;
            }
        }
        for (int first = 0; first < 8; first++)
            assert_true(seen[first] > 0);
    }
}

/* ---- capacities ---- */

static ttn_capacity capacity_of(const ttn_batch_rules *r, proteins *p, const ttn_subset *side)
{
    ttn_error err = {0};
    ttn_capacity c;
    const ttn_sequences s = proteins_view(p);
    assert_ok(ttn_batch_capacity_of(r, &s, side, &c, &err), &err);
    return c;
}

static void capacities_and_counts_are_those_of_the_lengths(void **state)
{
    (void)state;
    static int64_t length[] = {10, 20, 200, 300, 1000};
    proteins p = {.alphabet = ttn_alphabet_find("esm"), .n = 5, .length = length};
    ttn_batch_rules r = {.rows = 4000, .mlm = usual_mlm};
    ttn_capacity c = capacity_of(&r, &p, NULL);
    assert_int_equal(c.sequences, 5);
    assert_int_equal(c.residues, 1530);
    assert_int_equal(c.longest, 1000);
    assert_int_equal(c.positions, 1002);
    assert_int_equal(c.cropped, 0);
    assert_int_equal(c.left_out, 0);
    assert_int_equal(c.extent.rows, 4320);
    /* 12 + 24 + 204 + 312 + 1008 rows: 312 on average; 1.5 4320 / 312 = 20.8 */
    assert_int_equal(c.extent.seqs, 21);
    /* 648 + 12 21 = 900 */
    assert_int_equal(c.extent.picks, 960);
    assert_int_equal(c.window, 1024);

    r.max_len = 200;
    c = capacity_of(&r, &p, NULL);
    assert_int_equal(c.cropped, 2);
    assert_int_equal(c.left_out, 900);
    assert_int_equal(c.positions, 1002); /* pieces keep their places */
    r.frame = TTN_FRAME_ALWAYS;
    assert_int_equal(capacity_of(&r, &p, NULL).positions, 202);
    r.frame = TTN_FRAME_NONE;
    assert_int_equal(capacity_of(&r, &p, NULL).positions, 1000);

    r.objective = TTN_OBJECTIVE_CLM;
    r.max_seqs = 7;
    c = capacity_of(&r, &p, NULL);
    assert_int_equal(c.extent.seqs, 7);
    assert_int_equal(c.extent.picks, 4320);

    ttn_error err = {0};
    ttn_subset *side;
    assert_ok(ttn_subset_create(5, &side, &err), &err);
    ttn_subset_add(side, 1);
    ttn_subset_add(side, 3);
    ttn_subset_close(side);
    const ttn_capacity some = capacity_of(&r, &p, side);
    assert_int_equal(some.sequences, 2);
    assert_int_equal(some.residues, 320);
    assert_int_equal(some.longest, 300);
    assert_int_equal(some.cropped, 1);
    assert_true(some.lengths != c.lengths);
    ttn_subset_destroy(side);
}

/* 10^8 sequences are more than 32 bits of residues; half as many lengths would not be. */
static void residues_are_counted_beyond_32_bits(void **state)
{
    (void)state;
    proteins p = {.alphabet = ttn_alphabet_find("esm"), .n = ttn_scaled(200000, 20000), .every = 1 << 20};
    const ttn_batch_rules r = {.rows = 16320, .max_len = 1000, .mlm = usual_mlm};
    const ttn_capacity c = capacity_of(&r, &p, NULL);
    assert_int_equal(c.residues, p.n << 20);
    assert_true(c.residues > UINT32_MAX);
    assert_int_equal(c.left_out, c.residues - 1000 * p.n);
}

static void windows_are_long_enough_for_32_batches(void **state)
{
    (void)state;
    static const struct {
        int64_t every, rows, window;
    } cases[] = {{350, 480, 1024},          {350, 9600, 1024},      {350, 16320, 2048},
                 {350, 1 << 20, 92 * 1024}, {22, 16320, 22 * 1024}, {1, 1 << 29, 1 << 20}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        proteins p = {.alphabet = ttn_alphabet_find("esm"), .n = 100, .every = cases[i].every};
        const ttn_batch_rules r = {.rows = cases[i].rows, .mlm = usual_mlm};
        assert_int_equal(capacity_of(&r, &p, NULL).window, cases[i].window);
    }
}

/* The sequence that is named for these rules; NULL: all fit. */
static const char *who_is_too_long(const ttn_batch_rules *r, ttn_error *err)
{
    static int64_t length[] = {10, 958, 959, 1500};
    static const char *const name[] = {"'P00000'", "'P00001'", "'P00002'", "'P00003'"};
    proteins p = {.alphabet = ttn_alphabet_find("esm"), .n = 4, .length = length};
    const ttn_sequences s = proteins_view(&p);
    ttn_capacity c;
    *err = (ttn_error){0};
    const ttn_status status = ttn_batch_capacity_of(r, &s, NULL, &c, err);
    if (status == TTN_OK) return NULL;
    assert_int_equal(status, TTN_EINVAL);
    for (int i = 0; i < 4; i++)
        if (strstr(err->text, name[i])) return name[i];
    fail_msg("nobody is named: %s", err->text);
    return NULL;
}

/* And following either advice helps, while one less does not. */
static void what_does_not_fit_is_named_with_both_ways_out(void **state)
{
    (void)state;
    ttn_error err;
    ttn_batch_rules r = {.rows = 500, .mlm = usual_mlm}; /* rounded up to 960: 958 residues and two specials fit */
    assert_string_equal(who_is_too_long(&r, &err), "'P00002'");
    assert_contains(err.text, "of 959 residues needs 961 rows, and a batch has 960");
    assert_contains(err.text, "batch.rows to 1440 or more");
    assert_contains(err.text, "data.max_len to 958 or less");

    r.rows = 1440;
    assert_string_equal(who_is_too_long(&r, &err), "'P00003'");
    assert_contains(err.text, "batch.rows to 1920 or more");
    r.rows = 1920;
    assert_null(who_is_too_long(&r, &err));

    r.rows = 960;
    r.max_len = 958;
    assert_null(who_is_too_long(&r, &err));
    r.max_len = 959; /* 959 residues are whole, and have two specials */
    assert_string_equal(who_is_too_long(&r, &err), "'P00002'");
    r.frame = TTN_FRAME_NONE;
    assert_null(who_is_too_long(&r, &err));
    r.frame = TTN_FRAME_ENDS;
    r.max_len = 1200;
    r.rows = 1200; /* 1,440 */
    assert_null(who_is_too_long(&r, &err));
    r.max_len = 1440; /* a crop with one end has 1,441 rows */
    assert_string_equal(who_is_too_long(&r, &err), "'P00003'");
    assert_contains(err.text, "a piece of 1440 residues");
    assert_contains(err.text, "needs 1441 rows, and a batch has 1440");
}

static void without_a_sequence_there_are_no_batches(void **state)
{
    (void)state;
    proteins p = {.alphabet = ttn_alphabet_find("esm"), .n = 5, .every = 10};
    const ttn_sequences s = proteins_view(&p);
    const ttn_batch_rules r = {.rows = 480, .mlm = usual_mlm};
    ttn_error err = {0};
    ttn_subset *none;
    ttn_capacity c;
    assert_ok(ttn_subset_create(5, &none, &err), &err);
    ttn_subset_close(none);
    assert_fails(ttn_batch_capacity_of(&r, &s, none, &c, &err), TTN_EINVAL, &err, "5 in all, none on this side");
    ttn_subset_destroy(none);
}

/* ---- options ---- */

static void the_options_are_the_rules(void **state)
{
    (void)state;
    enum { N = 8 };
    ttn_error err = {0};
    ttn_option row[N];
    assert_int_equal(ttn_batch_n_options + ttn_mlm_n_options, N);
    memcpy(row, ttn_batch_options, (size_t)ttn_batch_n_options * sizeof *row);
    memcpy(row + ttn_batch_n_options, ttn_mlm_options, (size_t)ttn_mlm_n_options * sizeof *row);
    ttn_values *v;
    ttn_batch_rules r;
    assert_ok(ttn_options_check(row, N, &err), &err);
    assert_ok(ttn_values_create(row, N, &v, &err), &err);
    const ttn_option_reader reader = ttn_values_reader(v);
    assert_ok(ttn_batch_rules_of(&reader, &r, &err), &err);
    assert_int_equal(r.rows, 16320);
    assert_int_equal(r.max_seqs, 0);
    assert_int_equal(r.max_len, 0);
    assert_int_equal(r.frame, TTN_FRAME_ENDS);
    assert_true(r.mlm.rate == 0.15);
    static const struct {
        const char *name, *text;
    } given[] = {{"data.max_len", "1022"}, {"data.frame", "none"}, {"data.max_seqs", "60"}, {"batch.rows", "64k"}};
    for (size_t g = 0; g < sizeof given / sizeof *given; g++) {
        const int i = (int)(ttn_option_find(row, N, given[g].name) - row);
        ttn_scalar s;
        assert_ok(ttn_option_read(&row[i], given[g].text, &s, &err), &err);
        assert_ok(ttn_values_set(v, i, &s, 1, (ttn_origin){.text = "test"}, &err), &err);
    }
    assert_ok(ttn_batch_rules_of(&reader, &r, &err), &err);
    assert_int_equal(r.rows, 64000);
    assert_int_equal(r.max_seqs, 60);
    assert_int_equal(r.max_len, 1022);
    assert_int_equal(r.frame, TTN_FRAME_NONE);
    ttn_values_destroy(v);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_crop_begins_anywhere_equally_often_both_ends_included),
        cmocka_unit_test(what_is_not_longer_than_max_len_is_whole),
        cmocka_unit_test(specials_stand_where_the_frame_has_them),
        cmocka_unit_test(capacities_and_counts_are_those_of_the_lengths),
        cmocka_unit_test(residues_are_counted_beyond_32_bits),
        cmocka_unit_test(windows_are_long_enough_for_32_batches),
        cmocka_unit_test(what_does_not_fit_is_named_with_both_ways_out),
        cmocka_unit_test(without_a_sequence_there_are_no_batches),
        cmocka_unit_test(the_options_are_the_rules),
    };
    return ttn_test_run(tests);
}
