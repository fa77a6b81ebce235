#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "core/rng.h"
#include "data/sequences.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"

enum { LONGEST = 40 };

/* What sequence i is: known without the list. */
static int64_t make(int64_t i, uint8_t *token, uint8_t *excluded)
{
    const int64_t n = 1 + (int64_t)ttn_rng_below(1, 0, (uint64_t)i, LONGEST);
    for (int64_t j = 0; j < n; j++) {
        token[j] = (uint8_t)(4 + ttn_rng_below(1, 1 + (uint64_t)i, (uint64_t)j, 20));
        excluded[j] = (uint8_t)ttn_rng_below(2, 1 + (uint64_t)i, (uint64_t)j, 2);
    }
    return n;
}

/* Sequences from first_excluded on come with what is excluded of them, but for each third. */
static int has_excluded(int64_t i, int64_t first_excluded)
{
    return i >= first_excluded && i % 3 != 1;
}

static ttn_status add(ttn_sequence_list *l, int64_t i, int64_t first_excluded, ttn_error *err)
{
    uint8_t token[LONGEST], excluded[LONGEST];
    const int64_t n = make(i, token, excluded);
    char name[32];
    snprintf(name, sizeof name, "protein %d", (int)i);
    return ttn_sequence_list_add(l, name, token, has_excluded(i, first_excluded) ? excluded : NULL, n, err);
}

static void check(ttn_sequence_list *l, int64_t n, int64_t first_excluded)
{
    const ttn_sequences s = ttn_sequence_list_view(l);
    ttn_error err = {0};
    assert_int_equal(s.n, n);
    for (int64_t i = 0; i < n; i++) {
        uint8_t token[LONGEST], excluded[LONGEST], got[LONGEST];
        const int64_t length = make(i, token, excluded);
        if (!has_excluded(i, first_excluded)) memset(excluded, 0, sizeof excluded);
        assert_int_equal(s.length(s.self, i), length);
        assert_ok(s.tokens(s.self, i, 0, length, got, &err), &err);
        assert_same_bits(got, token, (size_t)length);
        const int64_t first = length / 3, some = length - first;
        assert_ok(s.tokens(s.self, i, first, some, got, &err), &err);
        assert_same_bits(got, token + first, (size_t)some);
        if (s.excluded) {
            assert_ok(s.excluded(s.self, i, first, some, got, &err), &err);
            assert_same_bits(got, excluded + first, (size_t)some);
        }
        char name[32], wanted[32];
        snprintf(wanted, sizeof wanted, "protein %d", (int)i);
        s.name(s.self, i, name, sizeof name);
        assert_string_equal(name, wanted);
        s.name(s.self, i, name, 5);
        assert_string_equal(name, "prot");
    }
    int any = 0;
    for (int64_t i = 0; i < n; i++) {
        uint8_t token[LONGEST], excluded[LONGEST];
        const int64_t length = make(i, token, excluded);
        if (has_excluded(i, first_excluded) && memchr(excluded, 1, (size_t)length)) any = 1;
    }
    assert_int_equal(s.excluded != NULL, any);
}

static void a_list_gives_what_was_added(void **state)
{
    (void)state;
    const int64_t n = 300;
    static const int64_t first_excluded[] = {0, 1, 170, 299, 1000};
    for (size_t k = 0; k < sizeof first_excluded / sizeof *first_excluded; k++) {
        ttn_error err = {0};
        ttn_sequence_list *l;
        assert_ok(ttn_sequence_list_create(ttn_alphabet_find("esm"), &l, &err), &err);
        check(l, 0, 0);
        for (int64_t i = 0; i < n; i++)
            assert_ok(add(l, i, first_excluded[k], &err), &err);
        check(l, n, first_excluded[k]);
        ttn_sequence_list_destroy(l);
    }
}

static void what_does_not_fit_into_memory_changes_nothing(void **state)
{
    (void)state;
    int hits = 0;
    int64_t nth = 1;
    for (int hit = 1; hit; nth++) {
        ttn_error err = {0};
        ttn_sequence_list *l = NULL;
        int64_t n = 0;
        shim_arm(SHIM_ALLOC, nth, SHIM_FAIL, ENOMEM, 0);
        ttn_status status = ttn_sequence_list_create(ttn_alphabet_find("esm"), &l, &err);
        while (status == TTN_OK && n < 20) {
            status = add(l, n, 5, &err);
            if (status == TTN_OK) n++;
        }
        hit = shim_was_hit();
        shim_disarm();
        hits += hit;
        assert_int_equal(status, hit ? TTN_ENOMEM : TTN_OK);
        if (l) check(l, n, 5);
        for (; l && n < 20; n++)
            assert_ok(add(l, n, 5, &err), &err);
        if (l) check(l, 20, 5);
        ttn_sequence_list_destroy(l);
    }
    assert_true(hits >= 5);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_gives_what_was_added),
        cmocka_unit_test(what_does_not_fit_into_memory_changes_nothing),
    };
    return ttn_test_run(tests);
}
