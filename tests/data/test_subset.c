#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include "core/rng.h"
#include "data/subset.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"

/* Members by a plain list: number i is one when is_member says so. */
static void compare(int64_t n, int (*is_member)(int64_t i))
{
    ttn_error err = {0};
    ttn_subset *s;
    assert_ok(ttn_subset_create(n, &s, &err), &err);
    int64_t *list = malloc((size_t)(n + 1) * sizeof *list);
    assert_non_null(list);
    int64_t count = 0;
    for (int64_t i = n - 1; i >= 0; i--) /* in no particular order, and twice */
        if (is_member(i)) {
            ttn_subset_add(s, i);
            ttn_subset_add(s, i);
        }
    ttn_subset_close(s);
    for (int64_t i = 0; i < n; i++) {
        if (ttn_subset_has(s, i) != is_member(i)) fail_msg("n %" PRId64 ": has(%" PRId64 ")", n, i);
        if (ttn_subset_below(s, i) != count) fail_msg("n %" PRId64 ": below(%" PRId64 ")", n, i);
        if (is_member(i)) list[count++] = i;
    }
    assert_int_equal(ttn_subset_of(s), n);
    assert_int_equal(ttn_subset_count(s), count);
    assert_int_equal(ttn_subset_below(s, n), count);
    for (int64_t k = 0; k < count; k++)
        if (ttn_subset_at(s, k) != list[k])
            fail_msg("n %" PRId64 ": member %" PRId64 " is %" PRId64 ", not %" PRId64, n, k, ttn_subset_at(s, k),
                     list[k]);
    int64_t k = 0;
    for (int64_t i = ttn_subset_next(s, 0); i >= 0; i = ttn_subset_next(s, i + 1)) {
        if (k == count || list[k] != i) fail_msg("n %" PRId64 ": next comes to %" PRId64, n, i);
        k++;
    }
    assert_int_equal(k, count);
    free(list);
    ttn_subset_destroy(s);
}

static int all(int64_t i)
{
    (void)i;
    return 1;
}

static int none(int64_t i)
{
    return i < 0;
}

static int most(int64_t i)
{
    return ttn_rng_below(1, 2, (uint64_t)i, 20) != 0;
}

static int few(int64_t i)
{
    return ttn_rng_below(1, 3, (uint64_t)i, 700) == 0;
}

static int in_stretches(int64_t i)
{
    return i / 3000 % 2 == 1;
}

static void it_is_the_list_of_its_members(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 2, 63, 64, 65, 127, 511, 512, 513, 1024, 5000, 20011};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        compare(sizes[i], all);
        compare(sizes[i], none);
        compare(sizes[i], most);
        compare(sizes[i], few);
        compare(sizes[i], in_stretches);
    }
}

static void without_memory_there_is_none(void **state)
{
    (void)state;
    int64_t nth = 1;
    for (int hit = 1; hit; nth++) {
        ttn_error err = {0};
        ttn_subset *s = NULL;
        shim_arm(SHIM_ALLOC, nth, SHIM_FAIL, ENOMEM, 0);
        const ttn_status status = ttn_subset_create(1000, &s, &err);
        hit = shim_was_hit();
        shim_disarm();
        assert_int_equal(status, hit ? TTN_ENOMEM : TTN_OK);
        assert_int_equal(s == NULL, hit);
        ttn_subset_destroy(s);
    }
    assert_true(nth > 3);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_list_of_its_members),
        cmocka_unit_test(without_memory_there_is_none),
    };
    return ttn_test_run(tests);
}
