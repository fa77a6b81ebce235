#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/builder.h"
#include "core/rng.h"
#include "data/card.h"
#include "data/seen.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"

/* A file of this text into the card. */
static void add_file(ttn_card *c, const char *name, const char *text, const ttn_fasta_rules *rules)
{
    ttn_source *s;
    ttn_fasta *f;
    const ttn_fasta_record *r;
    ttn_error err = {0};
    assert_ok(ttn_source_open_memory(name, text, strlen(text), 0, NULL, &s, &err), &err);
    assert_ok(ttn_fasta_open(s, rules, &f, &err), &err);
    ttn_status status;
    ttn_error failure = {0};
    while ((status = ttn_fasta_next(f, &r, &failure)) == TTN_OK)
        assert_ok(ttn_card_add(c, r, &err), &err);
    assert_ok(ttn_card_end_file(c, name, f, status, &failure, &err), &err);
    ttn_fasta_close(f);
}

static ttn_card *new_card(void)
{
    ttn_card *c;
    ttn_error err = {0};
    assert_ok(ttn_card_create(ttn_alphabet_find("esm"), &c, &err), &err);
    return c;
}

static void records_lengths_and_residues_are_counted(void **state)
{
    (void)state;
    ttn_card *c = new_card();
    add_file(c, "one.fa", ">a\nMKVLA\n>b\nM\n>c\nMMXJ\n", NULL);
    add_file(c, "two.fa", ">d\nWW\n>e\nwwkvlam\n", NULL);
    const ttn_card_totals *t = ttn_card_total(c);
    const ttn_alphabet *a = ttn_card_alphabet(c);
    assert_int_equal(t->records, 5);
    assert_int_equal(t->residues, 19);
    assert_int_equal(t->shortest, 1);
    assert_int_equal(t->longest, 7);
    assert_int_equal(t->length[0], 1);
    assert_int_equal(t->length[1], 1);
    assert_int_equal(t->length[2], 3);
    assert_int_equal(t->token[a->map['M']], 5);
    assert_int_equal(t->token[a->map['X']], 2);
    assert_int_equal(t->token[a->map['W']], 4);
    int64_t all = 0;
    for (int v = 0; v < TTN_MAX_TOKENS; v++)
        all += t->token[v];
    assert_int_equal(all, 19);
    assert_int_equal(ttn_card_n_files(c), 2);
    assert_string_equal(ttn_card_files(c)[1].name, "two.fa");
    assert_int_equal(ttn_card_files(c)[1].found.note[40].n, 7);
    assert_int_equal(ttn_card_files(c)[0].found.note[39].n, 1);
    assert_int_equal(ttn_card_errors(c), 0);
    ttn_card_destroy(c);
}

/* However many residues a record has, and wherever they lie in it. */
static void each_residue_is_counted_once(void **state)
{
    (void)state;
    ttn_card *c = new_card();
    const ttn_alphabet *a = ttn_card_alphabet(c);
    int64_t wanted[TTN_MAX_TOKENS] = {0};
    uint8_t token[64];
    ttn_error err = {0};
    for (int64_t n = 1; n <= 64; n++) {
        for (int64_t i = 0; i < n; i++) {
            token[i] = (uint8_t)ttn_rng_below(ttn_test_seed(), (uint64_t)n, (uint64_t)i, (uint64_t)a->n);
            wanted[token[i]]++;
        }
        const ttn_fasta_record r = {.id = "a", .header = "a", .token = token, .n = n, .line = n};
        assert_ok(ttn_card_add(c, &r, &err), &err);
    }
    assert_ok(ttn_card_end_file(c, "it.fa", NULL, TTN_EOF, NULL, &err), &err);
    assert_same_bits(ttn_card_total(c)->token, wanted, sizeof wanted);
    ttn_card_destroy(c);
}

static void quantiles_are_those_of_the_sorted_lengths(void **state)
{
    (void)state;
    ttn_card *c = new_card();
    assert_int_equal(ttn_card_quantile(c, 0.5), 0);
    add_file(c, "one.fa", ">a\nMKVLA\n>b\nM\n>c\nMMMM\n>d\nMK\n", NULL);
    static const struct {
        double part;
        int64_t length;
    } known[] = {{0, 1}, {0.25, 1}, {0.26, 2}, {0.5, 2}, {0.75, 4}, {0.76, 5}, {1, 5}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_int_equal(ttn_card_quantile(c, known[i].part), known[i].length);
    uint8_t *token = calloc(200000, 1);
    assert_non_null(token);
    ttn_error err = {0};
    for (int i = 0; i < 6; i++)
        assert_ok(ttn_card_add(c, &(ttn_fasta_record){.id = "x", .token = token, .n = i < 3 ? 100000 : 200000}, &err),
                  &err);
    assert_int_equal(ttn_card_quantile(c, 0.5), (1 << 17) - 1);
    assert_int_equal(ttn_card_quantile(c, 1), 200000);
    free(token);
    ttn_card_destroy(c);
}

static void what_stands_twice_is_found_over_all_files(void **state)
{
    (void)state;
    ttn_card *c = new_card();
    add_file(c, "one.fa", ">a\nMKVLA\n>b\nMKV\n>a\nMK\n", NULL);
    add_file(c, "two.fa", ">a x\nMKV\nLA\n>c\nM\n", NULL);
    const ttn_card_totals *t = ttn_card_total(c);
    assert_int_equal(t->id.n, 2);
    assert_int_equal(t->id.place[0].file, 0);
    assert_int_equal(t->id.place[0].line, 5);
    assert_int_equal(t->id.place[0].first_line, 1);
    assert_int_equal(t->id.place[1].file, 1);
    assert_int_equal(t->id.place[1].first_file, 0);
    assert_int_equal(t->sequence.n, 1);
    assert_int_equal(t->sequence.place[0].file, 1);
    assert_int_equal(t->sequence.place[0].line, 1);
    assert_int_equal(t->sequence.place[0].first_line, 1);
    ttn_card_destroy(c);
}

static void failures_and_records_left_out_are_kept(void **state)
{
    (void)state;
    ttn_card *c = new_card();
    ttn_error err = {0}, failure = {0};
    add_file(c, "bad.fa", ">a\nMKV\n>b\nM1\n", NULL);
    add_file(c, "half.fa", ">a\nMKV\n>b\nM1\n>c\nW\n", &(ttn_fasta_rules){.skip_records = 1, .max_skipped = 0.5});
    (void)TTN_FAIL(&failure, TTN_EINVAL, "gone.fa: cannot be opened");
    assert_ok(ttn_card_end_file(c, "gone.fa", NULL, TTN_EINVAL, &failure, &err), &err);
    const ttn_card_file *file = ttn_card_files(c);
    assert_int_equal(file[0].rule, 49);
    assert_contains(file[0].failure, "bad.fa:4:2: ");
    assert_int_equal(file[1].status, TTN_EOF);
    assert_int_equal(file[1].n_skipped, 1);
    assert_contains(file[1].skipped[0], "half.fa:4:2: ");
    assert_string_equal(file[2].name, "gone.fa");
    assert_int_equal(ttn_card_errors(c), 3);
    ttn_card_destroy(c);
}

/* Against a plain list, and with hashes that collide in their low bits; the hash of zeros is one as well. */
static void a_table_of_hashes_finds_what_was_added(void **state)
{
    (void)state;
    ttn_seen *s;
    ttn_error err = {0};
    assert_ok(ttn_seen_create("numbers", &s, &err), &err);
    const int64_t n = ttn_scaled(20000, 3000);
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < n; i++) {
            const ttn_hash128 h = {(uint64_t)i, i % 2 ? 0 : (uint64_t)i << 40};
            int64_t *value;
            int is_new;
            assert_ok(ttn_seen_add(s, h, i, &value, &is_new, &err), &err);
            assert_int_equal(is_new, pass == 0);
            assert_int_equal(*value, i);
        }
    assert_int_equal(ttn_seen_count(s), n);
    ttn_seen_destroy(s);
}

static void no_memory_is_said(void **state)
{
    (void)state;
    for (int64_t nth = 1;; nth++) {
        ttn_card *c;
        ttn_error err = {0};
        shim_arm(SHIM_ALLOC, nth, SHIM_FAIL, ENOMEM, 0);
        ttn_status status = ttn_card_create(ttn_alphabet_find("esm"), &c, &err);
        if (status == TTN_OK) status = ttn_card_end_file(c, "it", NULL, TTN_EINVAL, &(ttn_error){.text = "x"}, &err);
        ttn_card_destroy(c);
        shim_disarm();
        if (!shim_was_hit()) break;
        assert_fails(status, TTN_ENOMEM, &err, "memory");
    }
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_lengths_and_residues_are_counted),
        cmocka_unit_test(each_residue_is_counted_once),
        cmocka_unit_test(quantiles_are_those_of_the_sorted_lengths),
        cmocka_unit_test(what_stands_twice_is_found_over_all_files),
        cmocka_unit_test(failures_and_records_left_out_are_kept),
        cmocka_unit_test(a_table_of_hashes_finds_what_was_added),
        cmocka_unit_test(no_memory_is_said),
    };
    return ttn_test_run(tests);
}
