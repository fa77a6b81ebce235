#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "core/tensor.h"
#include "tests/harness/test.h"

enum { N_TYPE = TTN_U8 + 1 };

static void every_type_has_its_size_and_name(void **state)
{
    (void)state;
    static const struct {
        ttn_dtype type;
        size_t size;
        const char *name;
    } types[] = {
        {TTN_F32, 4, "f32"}, {TTN_BF16, 2, "bf16"}, {TTN_F16, 2, "f16"}, {TTN_F64, 8, "f64"},
        {TTN_I64, 8, "i64"}, {TTN_I32, 4, "i32"},   {TTN_U8, 1, "u8"},   {TTN_REAL, sizeof(real), TTN_REAL_NAME},
    };
    assert_int_equal(sizeof types / sizeof *types, N_TYPE);
    for (size_t i = 0; i < N_TYPE; i++) {
        assert_int_equal(ttn_dtype_size(types[i].type), types[i].size);
        assert_string_equal(ttn_dtype_name(types[i].type), types[i].name);
        assert_int_equal(ttn_dtype_size(ttn_dtype_stored(types[i].type)), types[i].size);
        assert_string_equal(ttn_dtype_name(ttn_dtype_stored(types[i].type)), types[i].name);
        if (types[i].type == TTN_REAL)
            assert_int_not_equal(ttn_dtype_stored(TTN_REAL), TTN_REAL);
        else
            assert_int_equal(ttn_dtype_stored(types[i].type), types[i].type);
    }
    static const int none[] = {-1, N_TYPE, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(ttn_dtype_size((ttn_dtype)none[i]), 0);
        assert_string_equal(ttn_dtype_name((ttn_dtype)none[i]), "?");
    }
}

/* What ttn_desc_check must find, in arithmetic that does not overflow: dimensions up to 2^63 - 1, so a product stops as
 * soon as it is above 2^63. A dimension of 0 makes the product 0, but only from there on. */
static int fits(const ttn_desc *d)
{
    __int128 bytes = (__int128)ttn_dtype_size(d->type);
    for (int i = 0; i < d->ndim; i++) {
        bytes *= d->dim[i];
        if (bytes > INT64_MAX) return 0;
    }
    return 1;
}

static void bytes_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const int64_t dims[] = {
        0,
        1,
        2,
        3,
        7,
        8,
        127,
        512,
        1 << 16,
        (1 << 16) + 1,
        3037000499,
        1L << 31,
        1L << 32,
        1L << 59,
        1L << 60,
        1L << 61,
        1L << 62,
        (1L << 60) - 1,
        INT64_MAX / 8,
        INT64_MAX / 8 + 1,
        INT64_MAX / 2,
        INT64_MAX,
    };
    enum { N = sizeof dims / sizeof *dims };
    int64_t refused = 0, taken = 0;
    for (int type = 0; type < N_TYPE; type++)
        for (int ndim = 0; ndim <= 3; ndim++)
            for (int a = 0; a < (ndim > 0 ? N : 1); a++)
                for (int b = 0; b < (ndim > 1 ? N : 1); b++)
                    for (int c = 0; c < (ndim > 2 ? N : 1); c++) {
                        ttn_desc d = ttn_desc_of((ttn_dtype)type, TTN_FIXED, ndim, dims[a], dims[b], dims[c]);
                        ttn_status status = ttn_desc_check(&d, "x", NULL);
                        if (!fits(&d)) {
                            assert_int_equal(status, TTN_EINVAL);
                            refused++;
                            continue;
                        }
                        taken++;
                        assert_int_equal(status, TTN_OK);
                        __int128 numel = 1;
                        for (int i = 0; i < ndim; i++)
                            numel *= d.dim[i];
                        assert_true(ttn_desc_numel(&d) == (int64_t)numel);
                        assert_true(ttn_desc_bytes(&d) == (size_t)numel * ttn_dtype_size((ttn_dtype)type));
                    }
    assert_true(refused > 1000);
    assert_true(taken > 1000);
}

static void four_dimensions_are_checked_and_counted(void **state)
{
    (void)state;
    ttn_desc d = {.type = TTN_U8, .ndim = 4, .dim = {1 << 20, 1 << 20, 1 << 20, 4}};
    ttn_error err = {0};
    assert_ok(ttn_desc_check(&d, "x", &err), &err);
    assert_true(ttn_desc_bytes(&d) == (size_t)1 << 62);
    d.dim[3] = 8; /* 2^63 */
    assert_fails(ttn_desc_check(&d, "x", &err), TTN_EINVAL, &err,
                 "x: its bytes do not fit in 63 bits (dimension 3 is 8)");
}

static void four_dimensions_of_which_three_are_given_are_refused(void **state)
{
    (void)state;
    for (int ndim = 3; ndim <= 6; ndim++) {
        ttn_desc d = ttn_desc_of(TTN_F32, TTN_FIXED, ndim, 2, 3, 4);
        ttn_error err = {0};
        if (ndim == 3)
            assert_ok(ttn_desc_check(&d, "x", &err), &err);
        else
            assert_fails(ttn_desc_check(&d, "x", &err), TTN_EINVAL, &err,
                         ndim == 4 ? "x: dimension 3 is -1, at least 0 is possible" : "at most 4 are possible");
    }
}

static void descriptors_that_are_none_are_refused(void **state)
{
    (void)state;
    static const struct {
        ttn_desc d;
        const char *words;
    } cases[] = {
        {{.type = (ttn_dtype)N_TYPE}, "w: type number 8 is none"},
        {{.type = (ttn_dtype)-1}, "w: type number -1 is none"},
        {{.axis = (ttn_axis)4, .ndim = 1}, "w: axis number 4 is none"},
        {{.axis = (ttn_axis)-1, .ndim = 1}, "w: axis number -1 is none"},
        {{.ndim = TTN_MAX_DIM + 1}, "w: 5 dimensions, at most 4 are possible"},
        {{.ndim = INT32_MAX}, "w: 2147483647 dimensions"},
        {{.axis = TTN_ROWS, .ndim = 0}, "w: a scalar has no rows to count"},
        {{.ndim = 2, .dim = {3, -1}}, "w: dimension 1 is -1, at least 0 is possible"},
        {{.ndim = 2, .dim = {INT64_MIN, 0}}, "w: dimension 0 is -9223372036854775808"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ttn_error err = {0};
        assert_fails(ttn_desc_check(&cases[i].d, "w", &err), TTN_EINVAL, &err, cases[i].words);
    }
}

static void scalar_is_one_element_and_left_out_is_none(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_desc scalar = ttn_desc_of(TTN_F64, TTN_FIXED, 0, 0, 0, 0);
    assert_ok(ttn_desc_check(&scalar, "x", &err), &err);
    assert_int_equal(ttn_desc_numel(&scalar), 1);
    assert_int_equal(ttn_desc_bytes(&scalar), 8);
    ttn_desc none = ttn_desc_of(TTN_F64, TTN_ROWS, -1, 5, 5, 5);
    assert_ok(ttn_desc_check(&none, "x", &err), &err);
    assert_int_equal(ttn_desc_numel(&none), 0);
    assert_int_equal(ttn_desc_bytes(&none), 0);
    ttn_desc empty = ttn_desc_of(TTN_F64, TTN_ROWS, 2, 0, 512, 0);
    assert_ok(ttn_desc_check(&empty, "x", &err), &err);
    assert_int_equal(ttn_desc_numel(&empty), 0);
}

static void same_looks_at_type_axis_and_dimensions(void **state)
{
    (void)state;
    ttn_desc a = ttn_desc_of(TTN_REAL, TTN_ROWS, 2, 480, 512, 0);
    ttn_desc b = a;
    assert_true(ttn_desc_same(&a, &b));
    b.type = ttn_dtype_stored(TTN_REAL);
    assert_true(ttn_desc_same(&a, &b));
    assert_true(ttn_desc_same(&b, &a));
    b.type = sizeof(real) == 8 ? TTN_F32 : TTN_F64;
    assert_false(ttn_desc_same(&a, &b));
    b = a;
    b.axis = TTN_SEQS;
    assert_false(ttn_desc_same(&a, &b));
    b = a;
    b.ndim = 3;
    assert_false(ttn_desc_same(&a, &b));
    b = a;
    b.dim[1] = 513;
    assert_false(ttn_desc_same(&a, &b));
    b = a;
    b.dim[0] = 481;
    assert_false(ttn_desc_same(&a, &b));
    b = a;
    b.dim[2] = 9; /* beyond ndim: nobody's */
    assert_true(ttn_desc_same(&a, &b));
}

static void descriptor_prints_as_people_write_it(void **state)
{
    (void)state;
    static const struct {
        ttn_desc d;
        const char *text;
    } cases[] = {
        {{.type = TTN_F32, .axis = TTN_ROWS, .ndim = 2, .dim = {480, 512}}, "f32 (N 480, 512)"},
        {{.type = TTN_BF16, .axis = TTN_SEQS, .ndim = 1, .dim = {3}}, "bf16 (S 3)"},
        {{.type = TTN_I32, .axis = TTN_PICKS, .ndim = 1, .dim = {0}}, "i32 (R 0)"},
        {{.type = TTN_U8, .ndim = 3, .dim = {1, 2, 3}}, "u8 (1, 2, 3)"},
        {{.type = TTN_I64, .ndim = 0}, "i64 ()"},
        {{.type = TTN_F16, .ndim = -1}, "nothing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[TTN_DESC_TEXT];
        assert_ptr_equal(ttn_desc_print(&cases[i].d, text), text);
        assert_string_equal(text, cases[i].text);
    }
}

/* Also what ttn_desc_check refuses: it is printed in messages about it. */
static void print_stays_in_its_room(void **state)
{
    (void)state;
    static const int64_t dims[] = {0, -1, INT64_MAX, INT64_MIN};
    static const int ndims[] = {INT32_MIN, -1, 0, 1, 4, 5, 1000, INT32_MAX};
    static const int axes[] = {-1, TTN_FIXED, TTN_ROWS, TTN_PICKS, TTN_PICKS + 1, INT32_MAX, INT32_MIN};
    for (int type = -2; type < N_TYPE + 2; type++)
        for (size_t x = 0; x < sizeof axes / sizeof *axes; x++)
            for (size_t n = 0; n < sizeof ndims / sizeof *ndims; n++)
                for (size_t v = 0; v < sizeof dims / sizeof *dims; v++) {
                    ttn_desc d = {.type = (ttn_dtype)type, .axis = (ttn_axis)axes[x], .ndim = ndims[n]};
                    for (int i = 0; i < TTN_MAX_DIM; i++)
                        d.dim[i] = dims[v];
                    char room[TTN_DESC_TEXT + 64];
                    memset(room, 0x5A, sizeof room);
                    ttn_desc_print(&d, room);
                    assert_non_null(memchr(room, 0, TTN_DESC_TEXT));
                    for (size_t i = TTN_DESC_TEXT; i < sizeof room; i++)
                        assert_int_equal(room[i], 0x5A);
                    if (d.ndim >= 0) assert_int_equal(room[strlen(room) - 1], ')'); /* nothing was cut */
                }
}

static void sizes_multiply_and_add_or_say_that_they_do_not_fit(void **state)
{
    (void)state;
    static const size_t sizes[] = {
        0, 1, 2, 3, 0xFFFFFFFF, 0x100000000, 0x100000001, SIZE_MAX / 2, SIZE_MAX / 2 + 1, SIZE_MAX};
    enum { N = sizeof sizes / sizeof *sizes };
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            unsigned __int128 product = (unsigned __int128)sizes[i] * sizes[j];
            unsigned __int128 sum = (unsigned __int128)sizes[i] + sizes[j];
            size_t got;
            assert_int_equal(ttn_size_mul(sizes[i], sizes[j], &got), product <= SIZE_MAX);
            if (product <= SIZE_MAX) assert_true(got == (size_t)product);
            assert_int_equal(ttn_size_add(sizes[i], sizes[j], &got), sum <= SIZE_MAX);
            if (sum <= SIZE_MAX) assert_true(got == (size_t)sum);
        }
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_has_its_size_and_name),
        cmocka_unit_test(bytes_that_do_not_fit_are_refused),
        cmocka_unit_test(four_dimensions_are_checked_and_counted),
        cmocka_unit_test(four_dimensions_of_which_three_are_given_are_refused),
        cmocka_unit_test(descriptors_that_are_none_are_refused),
        cmocka_unit_test(scalar_is_one_element_and_left_out_is_none),
        cmocka_unit_test(same_looks_at_type_axis_and_dimensions),
        cmocka_unit_test(descriptor_prints_as_people_write_it),
        cmocka_unit_test(print_stays_in_its_room),
        cmocka_unit_test(sizes_multiply_and_add_or_say_that_they_do_not_fit),
    };
    return ttn_test_run(tests);
}
