#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include "core/disk.h"
#include "core/hdf5.h"
#include "core/hdf5_read.h"
#include "core/memory.h"
#include "core/text.h"

struct ttn_hdf5_file {
    hid_t file;
    ttn_arena *texts;
    const char *name, *what; /* for messages */
};

struct ttn_hdf5_array {
    ttn_hdf5_file *of;
    const char *name;
    hid_t dataset;
    ttn_desc desc;
};

static ttn_status fail(const ttn_hdf5_file *f, const char *doing, const char *what, ttn_error *err)
{
    char reason[TTN_HDF5_REASON];
    return TTN_FAIL(err, TTN_EFORMAT, "%s: HDF5 cannot %s '%.100s': %s; the file is damaged, or is not %s", f->name,
                    doing, what, ttn_hdf5_reason(reason), f->what);
}

static ttn_status is_not(const ttn_hdf5_file *f, const char *name, const char *why, ttn_error *err)
{
    return TTN_FAIL(err, TTN_EFORMAT, "%s: '%.100s' %s; the file is damaged, or is not %s", f->name, name, why,
                    f->what);
}

static ttn_status no_memory(const ttn_hdf5_file *f, const char *what, ttn_error *err)
{
    return TTN_FAIL(err, TTN_ENOMEM, "%s: no memory for '%.100s'", f->name, what);
}

/* ---- open ---- */

/* The first bytes: HDF5's signature at the very start, and a superblock of the format that has checksums (2 and 3). */
static ttn_status check_head(const ttn_hdf5_file *f, const char *path, ttn_error *err)
{
    static const unsigned char signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    enum { OLDEST = 2 };
    unsigned char head[sizeof signature + 1];
    int fd = ttn_disk_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0) return TTN_FAIL(err, ttn_disk_fault(errno), "%s: cannot be opened: %s", f->name, strerror(errno));
    ssize_t n = ttn_disk_read_at(fd, head, sizeof head, 0);
    const int error = errno;
    ttn_disk_close(fd);
    if (n < 0 && error == ESPIPE)
        return TTN_FAIL(err, TTN_EINVAL, "%s: is a pipe; %s is read here and there, and must be a file", f->name,
                        f->what);
    if (n < 0)
        return TTN_FAIL(err, error == EISDIR ? TTN_EINVAL : TTN_EIO, "%s: cannot be read: %s", f->name,
                        strerror(error));
    if (n < (ssize_t)sizeof head || memcmp(head, signature, sizeof signature) != 0)
        return TTN_FAIL(err, TTN_EFORMAT, "%s: is not %s: it does not begin as HDF5 does", f->name, f->what);
    if (head[sizeof signature] < OLDEST)
        return TTN_FAIL(err, TTN_EFORMAT,
                        "%s: is HDF5, but of a format from before 2016 that has no checksums, and so not %s", f->name,
                        f->what);
    return TTN_OK;
}

static ttn_status open_file(ttn_hdf5_file *f, const char *path, ttn_error *err)
{
    hid_t access = ttn_hdf5_access();
    /* Where a file system has no locks, it is opened without one: it is only read. */
    if (access >= 0 && H5Pset_file_locking(access, 1, 1) >= 0) f->file = H5Fopen(path, H5F_ACC_RDONLY, access);
    ttn_status status = f->file < 0 ? fail(f, "open", "the file", err) : TTN_OK;
    if (access >= 0) (void)H5Pclose(access);
    return status;
}

ttn_status ttn_hdf5_open(const char *path, const char *what, ttn_hdf5_file **ret, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    *ret = NULL;
    ttn_hdf5_file *f = ttn_alloc_or_say(1, sizeof *f, "an HDF5 file to be read", err);
    if (!f) return TTN_ENOMEM;
    *f = (ttn_hdf5_file){.file = TTN_HDF5_NONE, .what = what};
    ttn_status status = ttn_arena_create(0, &f->texts, err);
    if (status == TTN_OK) {
        f->name = ttn_arena_text(f->texts, "%s", ttn_text_tail(path, shown));
        if (!f->name) status = TTN_FAIL(err, TTN_ENOMEM, "%s: no memory to read it", shown);
    }
    if (status == TTN_OK) status = check_head(f, path, err);
    if (status == TTN_OK) {
        ttn_hdf5_quiet before = ttn_hdf5_be_quiet();
        status = ttn_hdf5_check_version(f->name, err);
        if (status == TTN_OK) status = open_file(f, path, err);
        ttn_hdf5_end_quiet(before);
    }
    if (status == TTN_OK)
        *ret = f;
    else
        ttn_hdf5_close(f);
    return status;
}

void ttn_hdf5_close(ttn_hdf5_file *f)
{
    if (!f) return;
    ttn_hdf5_quiet before = ttn_hdf5_be_quiet();
    if (f->file >= 0) (void)H5Fclose(f->file);
    ttn_hdf5_end_quiet(before);
    ttn_arena_destroy(f->texts);
    ttn_free(f);
}

/* ---- attributes ---- */

int ttn_hdf5_has_note(ttn_hdf5_file *f, const char *key)
{
    ttn_hdf5_quiet before = ttn_hdf5_be_quiet();
    const int has = H5Aexists(f->file, key) > 0;
    ttn_hdf5_end_quiet(before);
    return has;
}

/* Is it one value? HDF5 would write all there are. */
static int is_scalar(hid_t note)
{
    hid_t space = H5Aget_space(note);
    const int is = space >= 0 && H5Sget_simple_extent_type(space) == H5S_SCALAR;
    if (space >= 0) (void)H5Sclose(space);
    return is;
}

/* A text of fixed length: its bytes; 0: it is none, or longer than `most`. */
static size_t text_bytes(hid_t type, size_t most)
{
    if (type < 0 || H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0) return 0;
    const size_t n = H5Tget_size(type);
    return n <= most ? n : 0;
}

ttn_status ttn_hdf5_get_text(ttn_hdf5_file *f, const char *key, const char **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_hdf5_quiet before = ttn_hdf5_be_quiet();
    ttn_status status = TTN_OK;
    hid_t note = H5Aopen(f->file, key, H5P_DEFAULT), type = note < 0 ? TTN_HDF5_NONE : H5Aget_type(note);
    const size_t n = text_bytes(type, TTN_HDF5_LONGEST_NOTE);
    if (note < 0)
        status = fail(f, "find the attribute", key, err);
    else if (n == 0 || !is_scalar(note))
        status = is_not(f, key, "is no text", err);
    char *text = status == TTN_OK ? ttn_arena_alloc(f->texts, n + 1) : NULL;
    if (status == TTN_OK && !text) status = no_memory(f, key, err);
    if (status == TTN_OK && H5Aread(note, type, text) < 0) status = fail(f, "read the attribute", key, err);
    if (type >= 0) (void)H5Tclose(type);
    if (note >= 0) (void)H5Aclose(note);
    ttn_hdf5_end_quiet(before);
    if (status == TTN_OK) *ret = text;
    return status;
}

static int is_of_type(hid_t type, ttn_dtype wanted)
{
    hid_t same = ttn_hdf5_number_type(wanted);
    const int is = type >= 0 && same >= 0 && H5Tequal(type, same) > 0;
    if (same >= 0) (void)H5Tclose(same);
    return is;
}

ttn_status ttn_hdf5_get_integer(ttn_hdf5_file *f, const char *key, int64_t *ret, ttn_error *err)
{
    ttn_hdf5_quiet before = ttn_hdf5_be_quiet();
    ttn_status status = TTN_OK;
    hid_t note = H5Aopen(f->file, key, H5P_DEFAULT), type = note < 0 ? TTN_HDF5_NONE : H5Aget_type(note);
    if (note < 0)
        status = fail(f, "find the attribute", key, err);
    else if (!is_of_type(type, TTN_I64) || !is_scalar(note))
        status = is_not(f, key, "is no integer of 64 bits", err);
    else if (H5Aread(note, type, ret) < 0)
        status = fail(f, "read the attribute", key, err);
    if (type >= 0) (void)H5Tclose(type);
    if (note >= 0) (void)H5Aclose(note);
    ttn_hdf5_end_quiet(before);
    return status;
}

/* ---- datasets ---- */

int ttn_hdf5_has_array(ttn_hdf5_file *f, const char *name)
{
    ttn_hdf5_quiet before = ttn_hdf5_be_quiet();
    const int has = H5Lexists(f->file, name, H5P_DEFAULT) > 0;
    ttn_hdf5_end_quiet(before);
    return has;
}

/* In chunks with a checksum, and through no filter but ours. */
static int is_laid_out_as_ours(hid_t dataset)
{
    hid_t layout = H5Dget_create_plist(dataset);
    int is = layout >= 0 && H5Pget_layout(layout) == H5D_CHUNKED, has_checksum = 0;
    const int n = is ? H5Pget_nfilters(layout) : 0;
    for (int i = 0; is && i < n; i++) {
        unsigned flags;
        size_t n_value = 0;
        const H5Z_filter_t filter = H5Pget_filter2(layout, (unsigned)i, &flags, &n_value, NULL, 0, NULL, NULL);
        has_checksum = has_checksum || filter == H5Z_FILTER_FLETCHER32;
        is = filter == H5Z_FILTER_FLETCHER32 || filter == H5Z_FILTER_DEFLATE || filter == H5Z_FILTER_SHUFFLE;
    }
    if (layout >= 0) (void)H5Pclose(layout);
    return is && has_checksum;
}

/* *ret: the open dataset, of one dimension with *ret_n entries. */
static ttn_status open_dataset(ttn_hdf5_file *f, const char *name, hid_t *ret, int64_t *ret_n, ttn_error *err)
{
    *ret = TTN_HDF5_NONE;
    H5L_info_t link;
    if (H5Lget_info(f->file, name, &link, H5P_DEFAULT) < 0) return fail(f, "find", name, err);
    if (link.type != H5L_TYPE_HARD) return is_not(f, name, "lies in another place", err);
    hid_t dataset = H5Dopen2(f->file, name, H5P_DEFAULT), space = dataset < 0 ? TTN_HDF5_NONE : H5Dget_space(dataset);
    hsize_t n = 0;
    ttn_status status = TTN_OK;
    if (dataset < 0 || space < 0)
        status = fail(f, "open", name, err);
    else if (H5Sget_simple_extent_ndims(space) != 1 || H5Sget_simple_extent_dims(space, &n, NULL) != 1 || n > INT64_MAX)
        status = is_not(f, name, "is no list", err);
    else if (!is_laid_out_as_ours(dataset))
        status = is_not(f, name, "is not stored in chunks with checksums, as titin does", err);
    if (space >= 0) (void)H5Sclose(space);
    if (status != TTN_OK && dataset >= 0) (void)H5Dclose(dataset);
    if (status != TTN_OK) return status;
    *ret = dataset;
    *ret_n = (int64_t)n;
    return TTN_OK;
}

/* Texts of n bytes, padded with 0, as a list of texts in f's arena. */
static const char *const *list_texts(ttn_hdf5_file *f, const char *all, int64_t n_text, size_t n)
{
    const char **list = ttn_arena_array(f->texts, n_text + 1, sizeof *list);
    for (int64_t i = 0; list && i < n_text; i++) {
        list[i] = ttn_arena_text(f->texts, "%.*s", (int)n, all + (size_t)i * n);
        if (!list[i]) return NULL;
    }
    return list;
}

ttn_status ttn_hdf5_get_texts(ttn_hdf5_file *f, const char *name, int64_t most, const char *const **ret, int64_t *ret_n,
                              ttn_error *err)
{
    *ret = NULL;
    *ret_n = 0;
    ttn_hdf5_quiet before = ttn_hdf5_be_quiet();
    hid_t dataset = TTN_HDF5_NONE, type = TTN_HDF5_NONE;
    int64_t n_text = 0;
    char *all = NULL;
    ttn_status status = open_dataset(f, name, &dataset, &n_text, err);
    if (status == TTN_OK) type = H5Dget_type(dataset);
    const size_t n = status == TTN_OK ? text_bytes(type, TTN_HDF5_LONGEST_NOTE) : 0;
    if (status == TTN_OK && n == 0) status = is_not(f, name, "holds no texts", err);
    if (status == TTN_OK && n_text > most) status = is_not(f, name, "holds more texts than is possible", err);
    if (status == TTN_OK) {
        all = ttn_alloc_array(n_text, n);
        if (!all) status = no_memory(f, name, err);
    }
    if (status == TTN_OK && n_text > 0 && H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, all) < 0)
        status = fail(f, "read", name, err);
    if (type >= 0) (void)H5Tclose(type);
    if (dataset >= 0) (void)H5Dclose(dataset);
    ttn_hdf5_end_quiet(before);
    if (status == TTN_OK) {
        *ret = list_texts(f, all, n_text, n);
        *ret_n = n_text;
        if (!*ret) status = no_memory(f, name, err);
    }
    ttn_free(all);
    return status;
}

ttn_status ttn_hdf5_array_open(ttn_hdf5_file *f, const char *name, ttn_dtype type, ttn_hdf5_array **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_hdf5_array *a = ttn_alloc_or_say(1, sizeof *a, "an array of an HDF5 file", err);
    if (!a) return TTN_ENOMEM;
    *a = (ttn_hdf5_array){.of = f, .name = ttn_arena_text(f->texts, "%s", name), .dataset = TTN_HDF5_NONE};
    a->desc = (ttn_desc){.type = type, .ndim = 1};
    ttn_hdf5_quiet before = ttn_hdf5_be_quiet();
    ttn_status status = a->name ? TTN_OK : no_memory(f, name, err);
    if (status == TTN_OK) status = open_dataset(f, name, &a->dataset, &a->desc.dim[0], err);
    if (status == TTN_OK) {
        hid_t stored = H5Dget_type(a->dataset);
        if (!is_of_type(stored, type)) status = is_not(f, name, "holds other numbers than it should", err);
        if (stored >= 0) (void)H5Tclose(stored);
    }
    ttn_hdf5_end_quiet(before);
    if (status == TTN_OK)
        *ret = a;
    else
        ttn_hdf5_array_close(a);
    return status;
}

void ttn_hdf5_array_close(ttn_hdf5_array *a)
{
    if (!a) return;
    ttn_hdf5_quiet before = ttn_hdf5_be_quiet();
    if (a->dataset >= 0) (void)H5Dclose(a->dataset);
    ttn_hdf5_end_quiet(before);
    ttn_free(a);
}

int64_t ttn_hdf5_array_count(const ttn_hdf5_array *a)
{
    return a->desc.dim[0];
}

ttn_status ttn_hdf5_array_read(ttn_hdf5_array *a, int64_t first, int64_t n, void *into, ttn_error *err)
{
    assert(first >= 0 && n >= 0 && n <= a->desc.dim[0] - first);
    if (n == 0) return TTN_OK;
    ttn_hdf5_quiet before = ttn_hdf5_be_quiet();
    ttn_status status = TTN_OK;
    if (!ttn_hdf5_move_rows(a->dataset, &a->desc, first, n, NULL, into)) status = fail(a->of, "read", a->name, err);
    ttn_hdf5_end_quiet(before);
    return status;
}
