/* What other programs read: NPY (the same bytes as numpy's), tables. tests/reference/files.py reads the same samples
 * with numpy and csv. */
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/half.h"
#include "tests/harness/files.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"
#include "train/files/npy.h"
#include "train/files/table.h"

/* ---- NPY ---- */

static void make_cube(uint16_t *half)
{
    for (int i = 0; i < 8; i++)
        half[i] = ttn_f32_to_f16((float)i / 8);
}

/* The arrays of tests/reference/files.py. */
static void write_arrays(const char *folder)
{
    float matrix[6];
    double vector[4];
    int64_t scalar = -5;
    uint16_t cube[8];
    int32_t whole[300];
    for (int i = 0; i < 6; i++)
        matrix[i] = (float)i / 4;
    for (int i = 0; i < 4; i++)
        vector[i] = (double)i / 3;
    for (int i = 0; i < 300; i++)
        whole[i] = i;
    make_cube(cube);
    const struct {
        const char *name;
        ttn_desc desc;
        const void *numbers;
    } arrays[] = {
        {"matrix_f32.npy", {.type = TTN_F32, .ndim = 2, .dim = {2, 3}}, matrix},
        {"vector_f64.npy", {.type = TTN_F64, .ndim = 1, .dim = {4}}, vector},
        {"scalar_i64.npy", {.type = TTN_I64, .ndim = 0}, &scalar},
        {"cube_f16.npy", {.type = TTN_F16, .ndim = 3, .dim = {2, 2, 2}}, cube},
        {"none_u8.npy", {.type = TTN_U8, .ndim = 2, .dim = {0, 3}}, ""},
        {"vector_i32.npy", {.type = TTN_I32, .ndim = 1, .dim = {300}}, whole},
    };
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        ttn_npy *w;
        ttn_error err = {0};
        size_t n = ttn_desc_bytes(&arrays[i].desc), half = n / 2;
        assert_ok(ttn_npy_create(path_in(folder, arrays[i].name), &arrays[i].desc, &w, &err), &err);
        assert_ok(ttn_npy_append(w, arrays[i].numbers, half, &err), &err);
        assert_ok(ttn_npy_append(w, (const char *)arrays[i].numbers + half, n - half, &err), &err);
        assert_ok(ttn_npy_commit(w, &err), &err);
        ttn_npy_destroy(w);
        if (strcmp(folder, ttn_test_folder()) != 0) continue;
        size_t n_got, n_expected;
        char *got = get_file(path_in(folder, arrays[i].name), &n_got);
        char *expected = get_file(path_in("tests/reference/golden", arrays[i].name), &n_expected);
        assert_int_equal(n_got, n_expected);
        assert_same_bits(got, expected, n_got);
        free(got);
        free(expected);
    }
}

static void arrays_are_the_bytes_that_numpy_writes(void **state)
{
    (void)state;
    write_arrays(ttn_test_folder());
}

static void every_shape_makes_a_header_of_whole_steps(void **state)
{
    (void)state;
    for (int ndim = 0; ndim <= 4; ndim++) {
        ttn_desc desc = {.type = TTN_U8, .ndim = ndim, .dim = {0, INT64_MAX / 16, 1, 1}};
        if (ndim == 4) desc.dim[2] = desc.dim[3] = 2;
        ttn_npy *w;
        ttn_error err = {0};
        if (ndim == 0) assert_true(ttn_desc_bytes(&desc) == 1);
        assert_ok(ttn_npy_create(in_folder("shape.npy"), &desc, &w, &err), &err);
        if (ndim == 0) assert_ok(ttn_npy_append(w, "x", 1, &err), &err);
        assert_ok(ttn_npy_commit(w, &err), &err);
        ttn_npy_destroy(w);
        size_t n;
        char *bytes = get_file(in_folder("shape.npy"), &n);
        assert_int_equal((n - (ndim == 0)) % 64, 0);
        assert_int_equal(bytes[n - 1 - (ndim == 0)], '\n');
        free(bytes);
    }
}

static void bf16_has_no_name_in_numpy(void **state)
{
    (void)state;
    ttn_npy *w;
    ttn_error err = {0};
    ttn_desc desc = {.type = TTN_BF16, .ndim = 1, .dim = {3}};
    assert_fails(ttn_npy_create(in_folder("no.npy"), &desc, &w, &err), TTN_EINVAL, &err,
                 "numpy has no bf16; write f32");
    assert_false(is_there(in_folder("no.npy")));
}

/* ---- tables ---- */

static void write_table(const char *path, ttn_table_kind kind)
{
    ttn_table *t;
    ttn_error err = {0};
    assert_ok(ttn_table_create(path, kind, &t, &err), &err);
    static const struct {
        const char *text;
        int64_t n;
        double x;
    } rows[] = {{"a,\"b\"", -3, 0.1}, {"two\nlines", INT64_MAX, 1e-300},
                {"", 0, -0.0},        {"tab\tand \\", 1, NAN},
                {"=1+1", 1, 1},       {"-a,b", 1, 1}};
    ttn_table_text(t, "name");
    ttn_table_text(t, "n");
    ttn_table_text(t, "x");
    assert_ok(ttn_table_end_row(t, &err), &err);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ttn_table_text(t, rows[i].text);
        ttn_table_integer(t, rows[i].n);
        ttn_table_real(t, rows[i].x);
        assert_ok(ttn_table_end_row(t, &err), &err);
    }
    assert_ok(ttn_table_commit(t, &err), &err);
    ttn_table_destroy(t);
}

static void cells_are_quoted_and_escaped(void **state)
{
    (void)state;
    static const struct {
        ttn_table_kind kind;
        const char *expected;
    } cases[] = {
        {TTN_TABLE_CSV, "name,n,x\r\n\"a,\"\"b\"\"\",-3,0.1\r\n\"two\nlines\",9223372036854775807,1e-300\r\n"
                        ",0,-0\r\ntab\tand \\,1,nan\r\n'=1+1,1,1\r\n\"'-a,b\",1,1\r\n"},
        {TTN_TABLE_TSV, "name\tn\tx\na,\"b\"\t-3\t0.1\ntwo\\nlines\t9223372036854775807\t1e-300\n"
                        "\t0\t-0\ntab\\tand \\\\\t1\tnan\n'=1+1\t1\t1\n'-a,b\t1\t1\n"},
    };
    for (int i = 0; i < 2; i++) {
        write_table(in_folder("table"), cases[i].kind);
        size_t n;
        char *got = get_file(in_folder("table"), &n);
        assert_string_equal(got, cases[i].expected);
        free(got);
    }
}

static void one_empty_cell_is_a_row(void **state)
{
    (void)state;
    static const char *const expected[] = {"name\r\n\"\"\r\n7\r\n", "name\n\n7\n"};
    static const ttn_table_kind kinds[] = {TTN_TABLE_CSV, TTN_TABLE_TSV};
    for (int i = 0; i < 2; i++) {
        ttn_table *t;
        ttn_error err = {0};
        size_t n;
        assert_ok(ttn_table_create(in_folder("one"), kinds[i], &t, &err), &err);
        ttn_table_text(t, "name");
        assert_ok(ttn_table_end_row(t, &err), &err);
        ttn_table_text(t, "");
        assert_ok(ttn_table_end_row(t, &err), &err);
        ttn_table_integer(t, 7);
        assert_ok(ttn_table_end_row(t, &err), &err);
        assert_ok(ttn_table_commit(t, &err), &err);
        ttn_table_destroy(t);
        char *got = get_file(in_folder("one"), &n);
        assert_string_equal(got, expected[i]);
        free(got);
    }
}

static void write_reals(const char *path)
{
    ttn_table *t;
    ttn_error err = {0};
    assert_ok(ttn_table_create(path, TTN_TABLE_TSV, &t, &err), &err);
    static const double x[] = {1.0 / 3,  0.30000000000000004, 5e-324, 1.7976931348623157e308, 1e23,
                               INFINITY, -INFINITY,           1.5};
    for (int i = 0; i < 8; i++)
        ttn_table_real(t, x[i]);
    ttn_table_single(t, 0.1f);
    ttn_table_single(t, 1.0f / 3);
    ttn_table_single(t, 16777217.0f);
    assert_ok(ttn_table_end_row(t, &err), &err);
    assert_ok(ttn_table_commit(t, &err), &err);
    ttn_table_destroy(t);
}

static void reals_have_the_fewest_digits_in_every_locale(void **state)
{
    (void)state;
    static const char expected[] =
        "0.3333333333333333\t0.30000000000000004\t4.94065645841247e-324\t1.7976931348623157e+308"
        "\t1e+23\tinf\t-inf\t1.5\t0.1\t0.33333334\t16777216\n";
    static const char *const locales[] = {"C", "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "ps_AF"};
    for (size_t i = 0; i < sizeof locales / sizeof *locales; i++) {
        if (!setlocale(LC_NUMERIC, locales[i])) continue;
        write_reals(in_folder("reals.tsv"));
        setlocale(LC_NUMERIC, "C");
        size_t n;
        char *got = get_file(in_folder("reals.tsv"), &n);
        assert_string_equal(got, expected);
        free(got);
    }
}

static void a_full_disk_is_told_at_the_end_of_a_row_or_the_table(void **state)
{
    (void)state;
    for (int64_t at = 1; at <= 3; at++) {
        ttn_table *t;
        ttn_error err = {0};
        assert_ok(ttn_table_create(in_folder("full.tsv"), TTN_TABLE_TSV, &t, &err), &err);
        shim_arm(SHIM_WRITE, at, SHIM_FAIL, ENOSPC, 1);
        ttn_status status = TTN_OK;
        for (int i = 0; i < 40000 && status == TTN_OK; i++) {
            ttn_table_integer(t, i);
            status = ttn_table_end_row(t, &err);
        }
        if (status == TTN_OK) status = ttn_table_commit(t, &err);
        shim_disarm();
        assert_fails(status, TTN_EIO, &err, "full.tsv: cannot be written: No space left on device");
        ttn_table_destroy(t);
        assert_false(is_there(in_folder("full.tsv")));
    }
}

/* ---- for tests/reference/files.py ---- */

static int write_samples(int argc, char **argv)
{
    if (argc != 1) return 2;
    write_arrays(argv[0]);
    write_table(path_in(argv[0], "table.csv"), TTN_TABLE_CSV);
    write_table(path_in(argv[0], "table.tsv"), TTN_TABLE_TSV);
    return 0;
}

int main(int argc, char **argv)
{
    ttn_test_child("write", write_samples);
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_are_the_bytes_that_numpy_writes),
        cmocka_unit_test(every_shape_makes_a_header_of_whole_steps),
        cmocka_unit_test(bf16_has_no_name_in_numpy),
        cmocka_unit_test(cells_are_quoted_and_escaped),
        cmocka_unit_test(one_empty_cell_is_a_row),
        cmocka_unit_test(reals_have_the_fewest_digits_in_every_locale),
        cmocka_unit_test(a_full_disk_is_told_at_the_end_of_a_row_or_the_table),
    };
    return ttn_test_run(tests);
}
