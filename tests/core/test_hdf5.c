/* HDF5: what is written is what was given and is read again, and whatever fails leaves no file. tests/reference/files.py reads
 * the same sample with h5py. */
#include <dlfcn.h>
#include <hdf5.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include "core/half.h"
#include "core/hash.h"
#include "core/hdf5_read.h"
#include "core/hdf5_write.h"
#include "tests/harness/files.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"

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
    exit(0); /* HDF5 closes what it thinks is open */
}

static void a_full_disk_is_a_sentence_and_no_file(void **state)
{
    (void)state;
    for (int64_t limit = 1000; limit < 20000; limit += 3000) {
        ttn_child child = run_in_child((ttn_child_limit){.file_size = limit}, write_into_a_limit, NULL);
        if (!child.exited || child.exit_code != 0) print_error("%s\n", child.output);
        assert_true(child.exited && child.exit_code == 0);
        assert_contains(child.output, "limit.h5: cannot be written: File too large; ");
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

/* ---- columns, and the reader ---- */

/* Lengths around a chunk of 1 MiB. */
static void columns_hold_what_was_added_however_it_came(void **state)
{
    (void)state;
    enum { BYTES = 1 << 20, NUMBERS = BYTES / 8 };
    static const int64_t lengths[] = {0, 1, NUMBERS - 1, NUMBERS, NUMBERS + 1, 2 * NUMBERS + 7};
    int64_t *number = calloc(2 * NUMBERS + 7, sizeof *number);
    int64_t *again = calloc(2 * NUMBERS + 7, sizeof *again);
    assert_true(number && again);
    for (int64_t i = 0; i < 2 * NUMBERS + 7; i++)
        number[i] = i * i - 5;
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++)
        for (int compressed = 0; compressed < 2; compressed++) {
            ttn_hdf5 *h;
            ttn_hdf5_file *f;
            ttn_hdf5_array *a;
            ttn_error err = {0};
            const char *path = in_folder("columns.h5");
            assert_ok(ttn_hdf5_create(path, &h, &err), &err);
            ttn_hdf5_column *c = ttn_hdf5_column_create(h, "number", TTN_I64, compressed);
            ttn_hdf5_column *other = ttn_hdf5_column_create(h, "byte", TTN_U8, 0);
            for (int64_t at = 0, part = 1; at < lengths[k]; at += part, part = part * 3 + 1) {
                if (part > lengths[k] - at) part = lengths[k] - at;
                ttn_hdf5_column_add(c, part, number + at);
                ttn_hdf5_column_add(other, 1, &(uint8_t){7});
            }
            assert_int_equal(ttn_hdf5_column_count(c), lengths[k]);
            ttn_hdf5_column_read(c, 0, lengths[k], again);
            assert_same_bits(again, number, (size_t)lengths[k] * 8);
            if (lengths[k] > 2) {
                ttn_hdf5_column_read(c, lengths[k] - 3, 2, again);
                assert_same_bits(again, number + lengths[k] - 3, 16);
            }
            const ttn_hash128 expected = ttn_hash128_of(number, (size_t)lengths[k] * 8);
            assert_true(ttn_hash_same(ttn_hdf5_column_hash(c), expected));
            assert_ok(ttn_hdf5_commit(h, &err), &err);
            ttn_hdf5_destroy(h);
            assert_ok(ttn_hdf5_open(path, "a sample", &f, &err), &err);
            assert_ok(ttn_hdf5_array_open(f, "number", TTN_I64, &a, &err), &err);
            assert_int_equal(ttn_hdf5_array_count(a), lengths[k]);
            memset(again, 0, (size_t)lengths[k] * 8);
            assert_ok(ttn_hdf5_array_read(a, 0, lengths[k], again, &err), &err);
            assert_same_bits(again, number, (size_t)lengths[k] * 8);
            ttn_hdf5_array_close(a);
            ttn_hdf5_close(f);
        }
    free(number);
    free(again);
}

static void short_columns_take_little_room(void **state)
{
    (void)state;
    ttn_hdf5 *h;
    ttn_error err = {0};
    assert_ok(ttn_hdf5_create(in_folder("short.h5"), &h, &err), &err);
    for (int i = 0; i < 8; i++) {
        const char name[] = {(char)('a' + i), 0};
        ttn_hdf5_column_add(ttn_hdf5_column_create(h, name, TTN_I64, 0), 1, &(int64_t){i});
    }
    assert_ok(ttn_hdf5_commit(h, &err), &err);
    ttn_hdf5_destroy(h);
    struct stat about;
    assert_int_equal(stat(in_folder("short.h5"), &about), 0);
    assert_true(about.st_size < 10000);
}

static void same_contents_are_the_same_bytes(void **state)
{
    (void)state;
    size_t n[2];
    char *bytes[2];
    for (int i = 0; i < 2; i++) {
        write_sample(in_folder("same.h5"));
        bytes[i] = get_file(in_folder("same.h5"), &n[i]);
        if (i == 0) usleep(1100000); /* HDF5's times count seconds */
    }
    assert_int_equal(n[0], n[1]);
    assert_same_bits(bytes[0], bytes[1], n[0]);
    free(bytes[0]);
    free(bytes[1]);
}

static void attributes_and_texts_are_read_as_they_were_written(void **state)
{
    (void)state;
    ttn_hdf5_file *f;
    const char *text;
    const char *const *list;
    int64_t value, n;
    ttn_error err = {0};
    write_sample(in_folder("sample.h5"));
    assert_ok(ttn_hdf5_open(in_folder("sample.h5"), "a sample", &f, &err), &err);
    assert_ok(ttn_hdf5_get_text(f, "format", &text, &err), &err);
    assert_string_equal(text, "titin-sample");
    assert_ok(ttn_hdf5_get_text(f, "empty", &text, &err), &err);
    assert_string_equal(text, "");
    assert_ok(ttn_hdf5_get_integer(f, "format_version", &value, &err), &err);
    assert_int_equal(value, 1);
    assert_ok(ttn_hdf5_get_texts(f, "name", 3, &list, &n, &err), &err);
    assert_int_equal(n, 3);
    assert_string_equal(list[0], "Q8WZ42");
    assert_string_equal(list[1], "\xC3\xA9");
    assert_string_equal(list[2], "");
    assert_true(ttn_hdf5_has_note(f, "format") && !ttn_hdf5_has_note(f, "fromat"));
    assert_true(ttn_hdf5_has_array(f, "layer") && !ttn_hdf5_has_array(f, "lawyer"));
    ttn_hdf5_close(f);
}

static void what_is_other_than_expected_is_refused_with_a_sentence(void **state)
{
    (void)state;
    ttn_hdf5_file *f;
    ttn_hdf5_array *a;
    const char *text;
    const char *const *list;
    int64_t value, n;
    ttn_error err = {0};
    write_sample(in_folder("sample.h5"));
    assert_ok(ttn_hdf5_open(in_folder("sample.h5"), "a sample", &f, &err), &err);
#define REFUSED(call, words)                            \
    do {                                                \
        err = (ttn_error){0};                           \
        assert_fails((call), TTN_EFORMAT, &err, words); \
        assert_contains(err.text, "is not a sample");   \
    } while (0)
    REFUSED(ttn_hdf5_get_text(f, "nothing", &text, &err), "cannot find the attribute 'nothing'");
    REFUSED(ttn_hdf5_get_text(f, "format_version", &text, &err), "'format_version' is no text");
    REFUSED(ttn_hdf5_get_integer(f, "format", &value, &err), "'format' is no integer");
    REFUSED(ttn_hdf5_get_integer(f, "rate", &value, &err), "'rate' is no integer");
    REFUSED(ttn_hdf5_get_texts(f, "layer", 10, &list, &n, &err), "'layer' holds no texts");
    REFUSED(ttn_hdf5_get_texts(f, "name", 2, &list, &n, &err), "'name' holds more texts");
    REFUSED(ttn_hdf5_array_open(f, "nothing", TTN_I64, &a, &err), "cannot find 'nothing'");
    REFUSED(ttn_hdf5_array_open(f, "layer", TTN_U8, &a, &err), "'layer' holds other numbers");
    REFUSED(ttn_hdf5_array_open(f, "none", TTN_U8, &a, &err), "'none' is no list");
    REFUSED(ttn_hdf5_array_open(f, "one", TTN_F64, &a, &err), "'one' is no list");
    REFUSED(ttn_hdf5_array_open(f, "maps", TTN_U8, &a, &err), "cannot open 'maps'");
    ttn_hdf5_close(f);
}

/* A file of one column "x", made by HDF5 itself in other ways than ours. */
typedef enum {
    OLD_FORMAT,
    NO_CHECKSUM,
    CONTIGUOUS,
    SOFT_LINK,
    EXTERNAL_LINK,
    OTHER_FILTER,
    OTHER_ORDER,
    SMALL_CHUNKS,
    LARGE_CHUNK,
    A_CHUNK_MISSING,
    NO_SUMS,
    TWO_SUMS,
    SUMS_OF_OTHER_TYPE,
    SUM_SPOILT,
    UNPACKS_TO_MORE,
    UNPACKS_TO_LESS,
    DOES_NOT_UNPACK,
    STORED_IN_MORE,
    STORED_IN_NOTHING,
    CHUNK_WITHOUT_CHECKSUM,
    GOOD_BUT_NOT_SMALLER,
    GOOD_WITH_MANY_SUMS,
    N_FOREIGN,
} foreign_way;

enum { FOREIGN = 100, FOREIGN_CHUNK = 1 << 20, MANY = 100, SMALL_CHUNK = 128 << 10 };

static hid_t foreign_list(hid_t file, const char *name, hid_t type, hsize_t n, hid_t layout, const void *numbers)
{
    hid_t space = H5Screate_simple(1, &n, NULL);
    hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, layout, H5P_DEFAULT);
    assert_true(dataset >= 0);
    if (numbers) assert_true(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
    H5Sclose(space);
    return dataset;
}

/* The only chunk of x as it lies in the file: what is 100 bytes packed, or other than that. HDF5 writes what it is given. */
static void write_foreign_chunk(hid_t dataset, foreign_way way, const uint8_t *bytes)
{
    static uint8_t much[1 << 16];
    uint8_t packed[1000] = {0};
    uLongf n = sizeof packed;
    const uLong of = way == UNPACKS_TO_MORE ? sizeof much : way == UNPACKS_TO_LESS ? FOREIGN / 2 : FOREIGN;
    assert_int_equal(compress(packed, &n, way == UNPACKS_TO_MORE ? much : bytes, of), Z_OK);
    if (way == DOES_NOT_UNPACK) packed[0] ^= 0xFF;
    if (way == GOOD_BUT_NOT_SMALLER) memcpy(packed, bytes, n = FOREIGN);
    if (way == STORED_IN_MORE) n = sizeof packed - 4;
    if (way == STORED_IN_NOTHING) n = 0;
    const uint32_t skipped = way == CHUNK_WITHOUT_CHECKSUM ? 4 : way == GOOD_BUT_NOT_SMALLER ? 2 : 0;
    const hsize_t at = 0;
    /* Fletcher-32 behind it is not looked at where there is an XXH3. */
    const size_t stored = way == STORED_IN_NOTHING ? 2 : n + 4;
    assert_true(H5Dwrite_chunk(dataset, H5P_DEFAULT, skipped, &at, stored, packed) >= 0);
}

static void spoil(const char *path, hid_t dataset)
{
    haddr_t at = HADDR_UNDEF;
    hsize_t bytes = 0;
    unsigned skipped;
    hid_t space = H5Dget_space(dataset);
    assert_true(H5Dget_chunk_info(dataset, space, 0, NULL, &skipped, &at, &bytes) >= 0 && bytes > 4);
    H5Sclose(space);
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
    fputc(0x5A, f);
    fclose(f);
}

static void write_foreign(const char *path, foreign_way way)
{
    const int is_large = way == LARGE_CHUNK || way == A_CHUNK_MISSING;
    const int is_many = way == GOOD_WITH_MANY_SUMS;
    const hsize_t n = is_large ? 3 * FOREIGN_CHUNK : is_many ? MANY * SMALL_CHUNK : FOREIGN;
    const hsize_t chunk = way == LARGE_CHUNK       ? FOREIGN_CHUNK + 1
                          : way == A_CHUNK_MISSING ? FOREIGN_CHUNK
                          : is_many                ? SMALL_CHUNK
                          : way == SMALL_CHUNKS    ? 1
                                                   : n;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), layout = H5Pcreate(H5P_DATASET_CREATE);
    if (way != OLD_FORMAT) H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_LATEST);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (way != CONTIGUOUS) H5Pset_chunk(layout, 1, &chunk);
    if (way == OTHER_ORDER) H5Pset_fletcher32(layout);
    if ((way >= UNPACKS_TO_MORE && !is_many) || way == OTHER_ORDER) {
        H5Pset_shuffle(layout);
        H5Pset_deflate(layout, 1);
    }
    if (way != CONTIGUOUS && way != NO_CHECKSUM && way != OTHER_ORDER) H5Pset_fletcher32(layout);
    if (way == OTHER_FILTER) H5Pset_nbit(layout);
    const int is_link = way == SOFT_LINK || way == EXTERNAL_LINK;
    uint8_t *bytes = calloc(n, 1);
    assert_non_null(bytes);
    bytes[0] = 1;
    const int is_raw = way >= UNPACKS_TO_MORE && !is_many;
    hid_t dataset = foreign_list(file, is_link ? "y" : "x", H5T_STD_U8LE, n, layout,
                                 is_raw || way == A_CHUNK_MISSING ? NULL : bytes);
    if (is_raw) write_foreign_chunk(dataset, way, bytes);
    /* As large a file as the list would need. */
    if (way == A_CHUNK_MISSING) H5Dclose(foreign_list(file, "other", H5T_STD_U8LE, n, H5P_DEFAULT, bytes));
    for (hsize_t c = 0; way == A_CHUNK_MISSING && c < 3; c += 2)
        assert_true(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, &(hsize_t){c * chunk}, FOREIGN_CHUNK, bytes) >= 0);
    if (way == SOFT_LINK) H5Lcreate_soft("/y", file, "x", H5P_DEFAULT, H5P_DEFAULT);
    if (way == EXTERNAL_LINK) H5Lcreate_external(path, "/y", file, "x", H5P_DEFAULT, H5P_DEFAULT);
    H5Dclose(dataset);
    int64_t sum[MANY] = {0};
    for (int c = 0; c < (is_many ? MANY : 1); c++)
        sum[c] = (int64_t)ttn_hash64(bytes + c * SMALL_CHUNK, is_many ? SMALL_CHUNK : FOREIGN, 0);
    const hsize_t n_sum = way == TWO_SUMS ? 2 : is_many ? MANY : 1;
    hid_t sums = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(sums, 1, &n_sum);
    H5Pset_fletcher32(sums);
    dataset = way == NO_SUMS ? -1
                             : foreign_list(file, "x_xxh64", way == SUMS_OF_OTHER_TYPE ? H5T_STD_U64LE : H5T_STD_I64LE,
                                            n_sum, sums, sum);
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    if (way == SUM_SPOILT) spoil(path, dataset);
    if (dataset >= 0) H5Dclose(dataset);
    free(bytes);
    H5Pclose(sums);
    H5Pclose(layout);
    H5Pclose(access);
    assert_true(H5Fclose(file) >= 0);
}

static void datasets_of_other_ways_are_not_believed(void **state)
{
    (void)state;
    static const char *const not_ours = "'x' is not stored in chunks with checksums";
    const char *const told[N_FOREIGN] = {
        [NO_CHECKSUM] = not_ours,
        [CONTIGUOUS] = not_ours,
        [SOFT_LINK] = "'x' lies in another place",
        [EXTERNAL_LINK] = "'x' lies in another place",
        [OTHER_FILTER] = not_ours,
        [OTHER_ORDER] = not_ours,
        [SMALL_CHUNKS] = not_ours,
        [LARGE_CHUNK] = not_ours,
        [A_CHUNK_MISSING] = "'x' has 2 of its 3 chunks in the file",
        [NO_SUMS] = "cannot find 'x_xxh64'",
        [TWO_SUMS] = "'x_xxh64' has not one checksum for every chunk",
        [SUMS_OF_OTHER_TYPE] = "'x_xxh64' holds other numbers than it should",
        [SUM_SPOILT] = "'x_xxh64' has a chunk whose checksum is wrong",
        [UNPACKS_TO_MORE] = "'x' has a chunk that cannot be unpacked",
        [UNPACKS_TO_LESS] = "'x' has a chunk of another length",
        [DOES_NOT_UNPACK] = "'x' has a chunk that cannot be unpacked",
        [STORED_IN_MORE] = "'x' has a chunk of another length",
        [STORED_IN_NOTHING] = "'x' has a chunk of another length",
        [CHUNK_WITHOUT_CHECKSUM] = "'x' has a chunk without a checksum",
    };
    ttn_hdf5_file *f;
    ttn_hdf5_array *a;
    ttn_error err = {0};
    for (int way = OLD_FORMAT + 1; way < N_FOREIGN; way++) {
        uint8_t bytes[FOREIGN];
        write_foreign(in_folder("foreign.h5"), way);
        err = (ttn_error){0};
        assert_ok(ttn_hdf5_open(in_folder("foreign.h5"), "a sample", &f, &err), &err);
        ttn_status status = ttn_hdf5_array_open(f, "x", TTN_U8, &a, &err);
        if (status == TTN_OK) status = ttn_hdf5_array_read(a, 0, FOREIGN, bytes, &err);
        if (way >= GOOD_BUT_NOT_SMALLER) {
            assert_ok(status, &err);
            assert_true(bytes[0] == 1 && bytes[1] == 0);
        } else {
            assert_fails(status, TTN_EFORMAT, &err, told[way]);
            assert_contains(err.text, "foreign.h5: ");
        }
        ttn_hdf5_array_close(a);
        ttn_hdf5_close(f);
    }
    write_foreign(in_folder("foreign.h5"), OLD_FORMAT);
    err = (ttn_error){0};
    assert_fails(ttn_hdf5_open(in_folder("foreign.h5"), "a sample", &f, &err), TTN_EFORMAT, &err,
                 "of a format from before 2016");
}

static void what_is_no_file_or_no_hdf5_is_refused(void **state)
{
    (void)state;
    ttn_hdf5_file *f;
    ttn_error err = {0};
    assert_fails(ttn_hdf5_open(in_folder("missing.h5"), "a sample", &f, &err), TTN_EINVAL, &err, "No such file");
    err = (ttn_error){0};
    assert_fails(ttn_hdf5_open(ttn_test_folder(), "a sample", &f, &err), TTN_EINVAL, &err, "Is a directory");
    assert_int_equal(mkfifo(in_folder("pipe.h5"), 0600), 0);
    err = (ttn_error){0};
    assert_fails(ttn_hdf5_open(in_folder("pipe.h5"), "a sample", &f, &err), TTN_EINVAL, &err, "is a pipe");
    static const char *const contents[] = {"", "\x89HDF\r\n\x1a", "\x89HDF\r\n\x1a\n", ">a\nMKV\n"};
    for (size_t i = 0; i < sizeof contents / sizeof *contents; i++) {
        FILE *file = fopen(in_folder("no.h5"), "w");
        assert_non_null(file);
        fputs(contents[i], file);
        fclose(file);
        err = (ttn_error){0};
        assert_fails(ttn_hdf5_open(in_folder("no.h5"), "a sample", &f, &err), TTN_EFORMAT, &err,
                     "does not begin as HDF5 does");
    }
}

/* ---- for tests/reference/files.py ---- */

static int write_samples(int argc, char **argv)
{
    if (argc != 1) return 2;
    write_sample(path_in(argv[0], "sample.h5"));
    return 0;
}

int main(int argc, char **argv)
{
    ttn_test_child("write", write_samples);
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_to_hdf5_is_read_back),
        cmocka_unit_test(failure_of_any_write_or_close_is_no_file),
        cmocka_unit_test(attribute_that_is_read_back_differently_is_no_file),
        cmocka_unit_test(nothing_stays_open),
        cmocka_unit_test(a_flipped_byte_is_never_read_as_another_number),
        cmocka_unit_test(a_full_disk_is_a_sentence_and_no_file),
        cmocka_unit_test(the_first_failure_is_kept_and_told),
        cmocka_unit_test(a_save_that_fails_leaves_the_previous_file),
        cmocka_unit_test(columns_hold_what_was_added_however_it_came),
        cmocka_unit_test(short_columns_take_little_room),
        cmocka_unit_test(same_contents_are_the_same_bytes),
        cmocka_unit_test(attributes_and_texts_are_read_as_they_were_written),
        cmocka_unit_test(what_is_other_than_expected_is_refused_with_a_sentence),
        cmocka_unit_test(datasets_of_other_ways_are_not_believed),
        cmocka_unit_test(what_is_no_file_or_no_hdf5_is_refused),
    };
    return ttn_test_run(tests);
}
