/* What other programs read: NPY (the same bytes as numpy's), tables, HDF5. tests/reference/files.py reads the same samples
 * with numpy, csv and h5py. */
#include <dlfcn.h>
#include <errno.h>
#include <hdf5.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/half.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"
#include "train/files/hdf5_export.h"
#include "train/files/npy.h"
#include "train/files/table.h"

/* Good for the next 8 calls. */
static const char *path_in(const char *folder, const char *name)
{
    static char paths[8][5000];
    static int next;
    char *path = paths[next++ % 8];
    assert_true(snprintf(path, sizeof paths[0], "%s/%s", folder, name) < (int)sizeof paths[0]);
    return path;
}

static const char *in_folder(const char *name)
{
    return path_in(ttn_test_folder(), name);
}

static int is_there(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0;
}

/* With a 0 behind it; the caller's to free. */
static char *get_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "r");
    if (!f) fail_msg("%s: %s", path, strerror(errno));
    char *bytes = calloc(1 << 20, 1);
    assert_non_null(bytes);
    *n = fread(bytes, 1, (1 << 20) - 1, f);
    fclose(f);
    return bytes;
}

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
    } rows[] = {{"a,\"b\"", -3, 0.1}, {"two\nlines", INT64_MAX, 1e-300}, {"", 0, -0.0}, {"tab\tand \\", 1, NAN}};
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
                        ",0,-0\r\ntab\tand \\,1,nan\r\n"},
        {TTN_TABLE_TSV, "name\tn\tx\na,\"b\"\t-3\t0.1\ntwo\\nlines\t9223372036854775807\t1e-300\n"
                        "\t0\t-0\ntab\\tand \\\\\t1\tnan\n"},
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

/* ---- HDF5 ---- */

/* In place of HDF5's own, also for the files that are linked with this test: the value of the nth attribute from now on is
 * written with one bit changed, as by failing memory. 0: none. */
static int64_t spoil_nth;

herr_t H5Awrite(hid_t note, hid_t type, const void *value)
{
    herr_t (*real_write)(hid_t, hid_t, const void *) =
        (herr_t(*)(hid_t, hid_t, const void *))dlsym(RTLD_NEXT, "H5Awrite");
    assert_non_null(real_write);
    char spoilt[64];
    size_t size = H5Tget_size(type);
    if (spoil_nth == 0 || --spoil_nth > 0 || size > sizeof spoilt) return real_write(note, type, value);
    memcpy(spoilt, value, size);
    spoilt[size - 1] ^= 0x40;
    return real_write(note, type, spoilt);
}

enum { N_LAYER = 2, N_ROW = 300, N_COLUMN = 7 };

static float map_value(int64_t i)
{
    return (float)i / 8;
}

/* Everything but the commit; rows of the maps in pieces. */
static void fill_sample(ttn_hdf5 *h)
{
    static float map[N_LAYER * N_ROW * N_COLUMN];
    for (int64_t i = 0; i < N_LAYER * N_ROW * N_COLUMN; i++)
        map[i] = map_value(i);
    static const int64_t layer[] = {3, 11};
    static const char *const name[] = {"Q8WZ42", "\xC3\xA9", ""};
    const uint16_t half[] = {ttn_f32_to_f16(0.5f), ttn_f32_to_f16(1), ttn_f32_to_f16(1.5f)};
    ttn_hdf5_note_text(h, "/", "format", "titin-sample");
    ttn_hdf5_note_integer(h, "/", "format_version", 1);
    ttn_hdf5_note_real(h, "/", "rate", 0.5);
    ttn_hdf5_note_text(h, "/", "empty", "");
    ttn_hdf5_group(h, "maps");
    ttn_hdf5_dataset(h, "maps/attention",
                     &(ttn_hdf5_shape){.desc = {.type = TTN_F32, .ndim = 3, .dim = {N_LAYER, N_ROW, N_COLUMN}}});
    ttn_hdf5_append(h, 1, map);
    ttn_hdf5_append(h, 1, map + N_ROW * N_COLUMN);
    ttn_hdf5_dataset(h, "layer", &(ttn_hdf5_shape){.desc = {.type = TTN_I64, .ndim = 1, .dim = {2}}});
    ttn_hdf5_append(h, 2, layer);
    ttn_hdf5_dataset(h, "half", &(ttn_hdf5_shape){.desc = {.type = TTN_F16, .ndim = 1, .dim = {3}}, .compressed = 1});
    ttn_hdf5_append(h, 3, half);
    ttn_hdf5_dataset(h, "one", &(ttn_hdf5_shape){.desc = {.type = TTN_F64, .ndim = 0}});
    ttn_hdf5_append(h, 1, &(double){2.5});
    ttn_hdf5_dataset(h, "none", &(ttn_hdf5_shape){.desc = {.type = TTN_U8, .ndim = 2, .dim = {0, 4}}});
    ttn_hdf5_texts(h, "name", name, 3);
    ttn_hdf5_scale(h, "maps/attention", 0, "layer", "layer");
}

static void write_sample(const char *path)
{
    ttn_hdf5 *h;
    ttn_error err = {0};
    assert_ok(ttn_hdf5_create(path, &h, &err), &err);
    fill_sample(h);
    assert_ok(ttn_hdf5_commit(h, &err), &err);
    ttn_hdf5_destroy(h);
}

/* Does the file open and its maps read as they were written? */
static int reads_well(const char *path)
{
    static float map[N_LAYER * N_ROW * N_COLUMN];
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file < 0) return 0;
    hid_t dataset = H5Dopen2(file, "maps/attention", H5P_DEFAULT);
    int good = dataset >= 0 && H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, map) >= 0;
    for (int64_t i = 0; good && i < N_LAYER * N_ROW * N_COLUMN; i++)
        good = map[i] == map_value(i);
    if (dataset >= 0) H5Dclose(dataset);
    H5Fclose(file);
    return good;
}

static void what_is_written_to_hdf5_is_read_back(void **state)
{
    (void)state;
    const char *path = in_folder("sample.h5");
    write_sample(path);
    assert_true(reads_well(path));
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), dataset = H5Dopen2(file, "maps/attention", H5P_DEFAULT);
    hid_t layout = H5Dget_create_plist(dataset);
    hsize_t chunk[3] = {0};
    assert_int_equal(H5Pget_chunk(layout, 3, chunk), 3);
    assert_int_equal(chunk[0] * chunk[1] * chunk[2], N_LAYER * N_ROW * N_COLUMN);
    unsigned flags;
    size_t n_value = 0;
    assert_int_equal(H5Pget_nfilters(layout), 1);
    assert_int_equal(H5Pget_filter2(layout, 0, &flags, &n_value, NULL, 0, NULL, NULL), H5Z_FILTER_FLETCHER32);
    H5Pclose(layout);
    H5Dclose(dataset);
    hid_t note = H5Aopen(file, "format", H5P_DEFAULT), type = H5Aget_type(note);
    assert_int_equal(H5Tis_variable_str(type), 0);
    assert_int_equal(H5Tget_size(type), strlen("titin-sample"));
    H5Tclose(type);
    H5Aclose(note);
    H5Fclose(file);
}

/* The nth call of one of these from now on does what it should and says that it failed (a close), or the other way round (a
 * write). 0: none. */
static int64_t lose_nth_write, fail_nth_close_dataset, fail_nth_close_file;

static int is_nth(int64_t *n)
{
    if (*n == 0) return 0;
    --*n;
    return *n == 0;
}

herr_t H5Dwrite(hid_t dataset, hid_t type, hid_t memory, hid_t file, hid_t how, const void *numbers)
{
    herr_t (*real_write)(hid_t, hid_t, hid_t, hid_t, hid_t, const void *) =
        (herr_t(*)(hid_t, hid_t, hid_t, hid_t, hid_t, const void *))dlsym(RTLD_NEXT, "H5Dwrite");
    assert_non_null(real_write);
    return is_nth(&lose_nth_write) ? 0 : real_write(dataset, type, memory, file, how, numbers);
}

herr_t H5Dclose(hid_t dataset)
{
    herr_t (*real_close)(hid_t) = (herr_t(*)(hid_t))dlsym(RTLD_NEXT, "H5Dclose");
    assert_non_null(real_close);
    herr_t result = real_close(dataset);
    return is_nth(&fail_nth_close_dataset) ? -1 : result;
}

herr_t H5Fclose(hid_t file)
{
    herr_t (*real_close)(hid_t) = (herr_t(*)(hid_t))dlsym(RTLD_NEXT, "H5Fclose");
    assert_non_null(real_close);
    herr_t result = real_close(file);
    return is_nth(&fail_nth_close_file) ? -1 : result;
}

static void failure_of_any_write_or_close_is_no_file(void **state)
{
    (void)state;
    static const struct {
        int64_t *nth;
        const char *told;
        int least; /* times that it happens in one file */
    } cases[] = {
        {&lose_nth_write, "is read back other than it was written", 6},
        {&fail_nth_close_dataset, "HDF5 cannot ", 6},
        {&fail_nth_close_file, "HDF5 cannot ", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int n_hit = 0;
        for (int64_t n = 1; n == n_hit + 1; n++) {
            ttn_hdf5 *h;
            ttn_error err = {0};
            assert_ok(ttn_hdf5_create(in_folder("failed.h5"), &h, &err), &err);
            *cases[i].nth = n;
            fill_sample(h);
            ttn_status status = ttn_hdf5_commit(h, &err);
            int hit = *cases[i].nth == 0;
            *cases[i].nth = 0;
            ttn_hdf5_destroy(h);
            if (!hit) assert_ok(status, &err);
            if (!hit) break;
            assert_fails(status, TTN_EIO, &err, cases[i].told);
            assert_false(is_there(in_folder("failed.h5")));
            n_hit++;
        }
        assert_true(n_hit >= cases[i].least);
        assert_int_equal(remove(in_folder("failed.h5")), 0);
    }
}

static void attribute_that_is_read_back_differently_is_no_file(void **state)
{
    (void)state;
    static const char *const told[] = {"'format' is read back", "'format_version' is read back", "'rate' is read back",
                                       "'empty' is read back"};
    for (int i = 0; i < 4; i++) {
        ttn_hdf5 *h;
        ttn_error err = {0};
        assert_ok(ttn_hdf5_create(in_folder("spoilt.h5"), &h, &err), &err);
        spoil_nth = i + 1;
        fill_sample(h);
        ttn_status status = ttn_hdf5_commit(h, &err);
        assert_int_equal(spoil_nth, 0);
        assert_fails(status, TTN_EIO, &err, told[i]);
        ttn_hdf5_destroy(h);
        assert_false(is_there(in_folder("spoilt.h5")));
    }
}

/* How many ids of the kind of `newest` are open. They are numbered as they are made, below bits that tell the kind. */
static int64_t n_open_before(hid_t newest)
{
    const hid_t number = 0xFFFFFFFF;
    int64_t n = 0;
    assert_true(newest >= 0);
    for (hid_t id = newest & ~number; id < newest; id++)
        n += H5Iis_valid(id) > 0;
    return n;
}

/* What HDF5 has open: files and what lies in them, shapes, types, properties. At the end of the process it closes them all,
 * so that no tool that looks for leaks finds one. */
static int64_t n_open(void)
{
    hid_t space = H5Screate(H5S_SCALAR), type = H5Tcopy(H5T_C_S1), property = H5Pcreate(H5P_FILE_ACCESS);
    int64_t n = n_open_before(space) + n_open_before(type) + n_open_before(property);
    H5Pclose(property);
    H5Tclose(type);
    H5Sclose(space);
    return n + H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL);
}

static void nothing_stays_open(void **state)
{
    (void)state;
    write_sample(in_folder("sample.h5")); /* the library's own */
    const int64_t before = n_open();
    for (int i = 0; i < 3; i++) {
        ttn_hdf5 *h;
        ttn_error err = {0};
        assert_ok(ttn_hdf5_create(in_folder("open.h5"), &h, &err), &err);
        fill_sample(h);
        if (i == 1) ttn_hdf5_group(h, "missing/inner");
        if (i == 1) assert_fails(ttn_hdf5_commit(h, &err), TTN_EIO, &err, "missing/inner");
        if (i == 2) assert_ok(ttn_hdf5_commit(h, &err), &err);
        ttn_hdf5_destroy(h);
        assert_int_equal(n_open(), before);
    }
}

/* Every byte that was flipped is noticed by the reader, or was padding: the maps are never wrong without a word. In a child:
 * HDF5 loses memory over some of these files, and AddressSanitizer would hold that against us. */
static int read_flipped_files(void *arg)
{
    size_t n;
    char *bytes = get_file(arg, &n);
    int64_t step = ttn_test_long() ? 1 : (int64_t)n / ttn_scaled(150, 20) | 1;
    int64_t n_noticed = 0, n_tried = 0;
    static float map[N_LAYER * N_ROW * N_COLUMN];
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    for (int64_t i = 0; i < (int64_t)n; i += step) {
        bytes[i] ^= 0x10;
        FILE *f = fopen(in_folder("flipped.h5"), "w");
        assert_non_null(f);
        fwrite(bytes, 1, n, f);
        fclose(f);
        bytes[i] ^= 0x10;
        n_tried++;
        hid_t file = H5Fopen(in_folder("flipped.h5"), H5F_ACC_RDONLY, H5P_DEFAULT);
        hid_t dataset = file < 0 ? -1 : H5Dopen2(file, "maps/attention", H5P_DEFAULT);
        int good = dataset >= 0 && H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, map) >= 0;
        n_noticed += !good;
        for (int64_t k = 0; good && k < N_LAYER * N_ROW * N_COLUMN; k++)
            if (map[k] != map_value(k)) fail_msg("byte %d of %d: number %d is wrong", (int)i, (int)n, (int)k);
        if (dataset >= 0) H5Dclose(dataset);
        if (file >= 0) H5Fclose(file);
    }
    free(bytes);
    assert_true(n_noticed > n_tried / 2);
    return 0;
}

static void a_flipped_byte_is_never_read_as_another_number(void **state)
{
    (void)state;
    char path[5000];
    snprintf(path, sizeof path, "%s", in_folder("flip.h5")); /* the child's folder is another */
    write_sample(path);
    ttn_child child = run_in_child((ttn_child_limit){.seconds = ttn_test_long() ? 1000 : 0}, read_flipped_files, path);
    if (!child.exited || child.exit_code != 0) fail_msg("%s", child.output);
}

/* A limit on the file's size is a full disk that HDF5's own writes meet. In a child: nothing may crash, also not at exit. */
static int write_into_a_limit(void *arg)
{
    (void)arg;
    signal(SIGXFSZ, SIG_IGN);
    ttn_hdf5 *h;
    ttn_error err = {0};
    assert_ok(ttn_hdf5_create(in_folder("limit.h5"), &h, &err), &err);
    fill_sample(h);
    ttn_status status = ttn_hdf5_commit(h, &err);
    ttn_hdf5_destroy(h);
    if (status == TTN_OK || is_there(in_folder("limit.h5"))) return 1;
    printf("%s\n", err.text);
    return 0;
}

static void a_full_disk_is_a_sentence_and_no_file(void **state)
{
    (void)state;
    for (int64_t limit = 1000; limit < 20000; limit += 3000) {
        ttn_child child = run_in_child((ttn_child_limit){.file_size = limit}, write_into_a_limit, NULL);
        if (!child.exited || child.exit_code != 0) print_error("%s\n", child.output);
        assert_true(child.exited && child.exit_code == 0);
        assert_contains(child.output, "limit.h5: HDF5 cannot ");
        assert_contains(child.output, "nothing was put in its place");
        if (strstr(child.output, "HDF5-DIAG")) fail_msg("it prints: %s", child.output);
    }
}

static void the_first_failure_is_kept_and_told(void **state)
{
    (void)state;
    ttn_hdf5 *h;
    ttn_error err = {0};
    assert_ok(ttn_hdf5_create(in_folder("wrong.h5"), &h, &err), &err);
    ttn_hdf5_group(h, "missing/inner");
    ttn_hdf5_group(h, "other");
    assert_fails(ttn_hdf5_commit(h, &err), TTN_EIO, &err, "HDF5 cannot create the group 'missing/inner': ");
    ttn_hdf5_destroy(h);
    assert_false(is_there(in_folder("wrong.h5")));
    err = (ttn_error){0};
    assert_ok(ttn_hdf5_create(in_folder("wrong.h5"), &h, &err), &err);
    ttn_hdf5_dataset(h, "x", &(ttn_hdf5_shape){.desc = {.type = TTN_BF16, .ndim = 1, .dim = {1}}});
    assert_fails(ttn_hdf5_commit(h, &err), TTN_EINVAL, &err, "'x' would be bf16");
    ttn_hdf5_destroy(h);
    err = (ttn_error){0};
    assert_ok(ttn_hdf5_create(in_folder("wrong.h5"), &h, &err), &err);
    ttn_hdf5_destroy(h); /* given up */
    assert_false(is_there(in_folder("wrong.h5")));
}

static int fail_nth(int64_t n, unsigned calls, int error)
{
    const char *path = in_folder("sample.h5");
    ttn_hdf5 *h = NULL;
    ttn_error err = {0};
    shim_arm(calls, n, SHIM_FAIL, error, 0);
    ttn_status status = ttn_hdf5_create(path, &h, &err);
    if (status == TTN_OK) {
        fill_sample(h);
        status = ttn_hdf5_commit(h, &err);
    }
    ttn_hdf5_destroy(h);
    int hit = shim_was_hit();
    shim_disarm();
    if (status != TTN_OK) assert_true(strlen(err.text) > 10);
    return hit;
}

/* HDF5's own calls do not come by the shim; ours around it do. */
static void a_save_that_fails_leaves_the_previous_file(void **state)
{
    (void)state;
    write_sample(in_folder("sample.h5"));
    int64_t n_files = 1, n_alloc = 1;
    while (fail_nth(n_files, SHIM_FILES, EIO)) {
        assert_true(reads_well(in_folder("sample.h5")));
        n_files++;
    }
    while (fail_nth(n_alloc, SHIM_ALLOC, ENOMEM)) {
        assert_true(reads_well(in_folder("sample.h5")));
        n_alloc++;
    }
    assert_true(n_files > 5 && n_alloc > 5);
}

/* ---- for tests/reference/files.py ---- */

static int write_samples(int argc, char **argv)
{
    if (argc != 1) return 2;
    write_arrays(argv[0]);
    write_table(path_in(argv[0], "table.csv"), TTN_TABLE_CSV);
    write_table(path_in(argv[0], "table.tsv"), TTN_TABLE_TSV);
    write_sample(path_in(argv[0], "sample.h5"));
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
        cmocka_unit_test(what_is_written_to_hdf5_is_read_back),
        cmocka_unit_test(failure_of_any_write_or_close_is_no_file),
        cmocka_unit_test(attribute_that_is_read_back_differently_is_no_file),
        cmocka_unit_test(nothing_stays_open),
        cmocka_unit_test(a_flipped_byte_is_never_read_as_another_number),
        cmocka_unit_test(a_full_disk_is_a_sentence_and_no_file),
        cmocka_unit_test(the_first_failure_is_kept_and_told),
        cmocka_unit_test(a_save_that_fails_leaves_the_previous_file),
    };
    return ttn_test_run(tests);
}
