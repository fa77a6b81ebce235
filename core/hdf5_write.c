#include <assert.h>
#include <hdf5_hl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "core/atomic.h"
#include "core/disk.h"
#include "core/hash.h"
#include "core/hdf5.h"
#include "core/hdf5_disk.h"
#include "core/hdf5_write.h"
#include "core/memory.h"
#include "core/text.h"

/* What a dataset or an attribute was given, to be compared with what is read back. */
typedef struct written {
    const char *name;
    const char *of; /* of an attribute: what it belongs to; NULL: a dataset */
    ttn_hash128 hash;
    struct written *next;
} written;

struct ttn_hdf5 {
    ttn_atomic *atomic;
    ttn_arena *texts;
    const char *name; /* for messages */
    hid_t file;       /* negative: closed */
    ttn_hdf5_disk disk;
    ttn_status status;
    ttn_error err;
    written *written;

    /* the dataset that is being written */
    hid_t dataset;
    const char *dataset_name;
    ttn_desc desc;
    int64_t n_row; /* so far */
    ttn_hash *hash;

    ttn_hdf5_column *column; /* the last one; each leads to the one before it */
};

/* A dataset is made when its first chunk is full, or at the end: then its length is known, and a short one takes no room for
 * what never came. */
struct ttn_hdf5_column {
    ttn_hdf5 *of;
    const char *name;
    ttn_dtype type;
    size_t size; /* of a number */
    int compressed;
    char *waiting; /* (COLUMN_BYTES) n_waiting numbers that are not written yet */
    int64_t n_waiting, n_written;
    hid_t dataset; /* negative: not made yet, or closed */
    ttn_hash *hash;
    int64_t *sum; /* (n_sum, of room_sum) of each chunk that was written */
    int64_t n_sum, room_sum;
    ttn_hdf5_column *before;
};

enum { CHUNK_BYTES = 256 << 10, COLUMN_BYTES = 1 << 20, GZIP_LEVEL = 4, COLUMN_GZIP_LEVEL = 1, PIECE = 1 << 20 };

/* Did the disk take all that HDF5 gave it so far? */
static void look_at_disk(ttn_hdf5 *h)
{
    const int error = h->disk.error;
    if (h->status != TTN_OK || error == 0) return;
    h->status = TTN_FAIL(&h->err, TTN_EIO, "%s: cannot be written: %s%s; nothing was put in its place", h->name,
                         strerror(error), ttn_disk_advice(error));
}

static void fail(ttn_hdf5 *h, const char *doing, const char *what)
{
    look_at_disk(h); /* then it is the reason */
    if (h->status != TTN_OK) return;
    char reason[TTN_HDF5_REASON];
    h->status = TTN_FAIL(&h->err, TTN_EIO, "%s: HDF5 cannot %s '%.100s': %s; nothing was put in its place", h->name,
                         doing, what, ttn_hdf5_reason(reason));
}

/* The end of what began with ttn_hdf5_be_quiet. */
static void end_step(ttn_hdf5 *h, ttn_hdf5_quiet before)
{
    look_at_disk(h);
    ttn_hdf5_end_quiet(before);
}

static void fail_memory(ttn_hdf5 *h)
{
    if (h->status == TTN_OK)
        h->status = TTN_FAIL(&h->err, TTN_ENOMEM, "%s: no memory to write it; end other programs", h->name);
}

/* Keep what its bytes add up to. */
static void remember(ttn_hdf5 *h, const char *name, const char *of, ttn_hash128 hash)
{
    written *w = ttn_arena_alloc(h->texts, sizeof *w);
    const char *copy = ttn_arena_text(h->texts, "%s", name);
    const char *copy_of = of ? ttn_arena_text(h->texts, "%s", of) : NULL;
    if (!w || !copy || (of && !copy_of)) {
        fail_memory(h);
        return;
    }
    *w = (written){.name = copy, .of = copy_of, .hash = hash, .next = h->written};
    h->written = w;
}

/* ---- create ---- */

/* Properties of something that is made without the time when it was, so that the same data are the same bytes. */
static hid_t without_times(hid_t kind)
{
    hid_t properties = H5Pcreate(kind);
    if (properties < 0 || H5Pset_obj_track_times(properties, 0) >= 0) return properties;
    (void)H5Pclose(properties);
    return TTN_HDF5_NONE;
}

/* The attributes of the root stay in its header, near the beginning of the file: there a file is known by its first bytes. */
static hid_t root_properties(void)
{
    enum { MOST = 64, LEAST = 32 };
    hid_t root = without_times(H5P_FILE_CREATE);
    if (root < 0 || H5Pset_attr_phase_change(root, MOST, LEAST) >= 0) return root;
    (void)H5Pclose(root);
    return TTN_HDF5_NONE;
}

static void create_file(ttn_hdf5 *h)
{
    h->status = ttn_hdf5_check_version(h->name, &h->err);
    if (h->status != TTN_OK) return;
    hid_t access = ttn_hdf5_access(), root = root_properties();
    if (access >= 0 && root >= 0 && ttn_hdf5_disk_use(&h->disk, access) >= 0)
        h->file = H5Fcreate(ttn_atomic_path(h->atomic), H5F_ACC_TRUNC, root, access);
    if (h->file < 0) fail(h, "create", "the file");
    if (access >= 0 && H5Pclose(access) < 0) fail(h, "create", "the file");
    if (root >= 0 && H5Pclose(root) < 0) fail(h, "create", "the file");
}

ttn_status ttn_hdf5_create(const char *path, ttn_hdf5 **ret, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    *ret = NULL;
    ttn_hdf5 *h = ttn_alloc_or_say(1, sizeof *h, "an HDF5 file to be written", err);
    if (!h) return TTN_ENOMEM;
    *h = (ttn_hdf5){.file = TTN_HDF5_NONE, .disk = {.driver = TTN_HDF5_NONE}, .dataset = TTN_HDF5_NONE};
    ttn_status status = ttn_arena_create(0, &h->texts, err);
    if (status == TTN_OK) status = ttn_hash_create(&h->hash, err);
    if (status == TTN_OK) {
        h->name = ttn_arena_text(h->texts, "%s", ttn_text_tail(path, shown));
        if (!h->name) status = TTN_FAIL(err, TTN_ENOMEM, "%s: no memory to write it; end other programs", shown);
    }
    if (status == TTN_OK) status = ttn_atomic_file_create(path, &h->atomic, err);
    if (status == TTN_OK) {
        ttn_hdf5_quiet before = ttn_hdf5_be_quiet();
        create_file(h);
        end_step(h, before);
        status = h->status;
        if (status != TTN_OK && err && err->status == TTN_OK) *err = h->err;
    }
    if (status == TTN_OK)
        *ret = h;
    else
        ttn_hdf5_destroy(h);
    return status;
}

/* ---- groups and notes ---- */

void ttn_hdf5_group(ttn_hdf5 *h, const char *name)
{
    if (h->status != TTN_OK) return;
    ttn_hdf5_quiet before = ttn_hdf5_be_quiet();
    hid_t how = without_times(H5P_GROUP_CREATE);
    hid_t group = how < 0 ? TTN_HDF5_NONE : H5Gcreate2(h->file, name, H5P_DEFAULT, how, H5P_DEFAULT);
    if (group < 0 || H5Gclose(group) < 0) fail(h, "create the group", name);
    if (how >= 0 && H5Pclose(how) < 0) fail(h, "create the group", name);
    end_step(h, before);
}

/* An attribute of one value; what is given has the bytes that are stored. */
static void put_note(ttn_hdf5 *h, const char *of, const char *key, hid_t stored, hid_t given, const void *value)
{
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t note = space < 0 ? TTN_HDF5_NONE
                           : H5Acreate_by_name(h->file, of, key, stored, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (note < 0 || H5Awrite(note, given, value) < 0) fail(h, "write the attribute", key);
    if (note >= 0 && H5Aclose(note) < 0) fail(h, "close the attribute", key);
    if (space >= 0 && H5Sclose(space) < 0) fail(h, "close the attribute", key);
    if (h->status == TTN_OK) remember(h, key, of, ttn_hash128_of(value, H5Tget_size(given)));
}

void ttn_hdf5_note_text(ttn_hdf5 *h, const char *of, const char *key, const char *text)
{
    if (h->status != TTN_OK) return;
    ttn_hdf5_quiet before = ttn_hdf5_be_quiet();
    hid_t type = ttn_hdf5_text_type(strlen(text));
    if (type < 0)
        fail(h, "write the attribute", key);
    else
        put_note(h, of, key, type, type, text);
    if (type >= 0 && H5Tclose(type) < 0) fail(h, "close the attribute", key);
    end_step(h, before);
}

void ttn_hdf5_note_integer(ttn_hdf5 *h, const char *of, const char *key, int64_t value)
{
    if (h->status != TTN_OK) return;
    ttn_hdf5_quiet before = ttn_hdf5_be_quiet();
    put_note(h, of, key, H5T_STD_I64LE, H5T_NATIVE_INT64, &value);
    end_step(h, before);
}

void ttn_hdf5_note_real(ttn_hdf5 *h, const char *of, const char *key, double value)
{
    if (h->status != TTN_OK) return;
    ttn_hdf5_quiet before = ttn_hdf5_be_quiet();
    put_note(h, of, key, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value);
    end_step(h, before);
}

/* ---- datasets ---- */

/* From the last dimension backwards as much as fits, so that a chunk is a piece of contiguous rows. */
static void choose_chunk(const ttn_hdf5_shape *shape, hsize_t *chunk)
{
    int64_t room = CHUNK_BYTES / (int64_t)ttn_dtype_size(shape->desc.type);
    for (int d = shape->desc.ndim - 1; d >= 0; d--) {
        int64_t most = shape->desc.dim[d] > 0 ? shape->desc.dim[d] : 1;
        int64_t n = shape->chunk[d] > 0 ? shape->chunk[d] : room;
        if (n > most) n = most;
        if (n < 1) n = 1;
        chunk[d] = (hsize_t)n;
        room /= n;
    }
}

/* How it is laid out: chunks with a checksum, if it has dimensions. gzip_level 0: not compressed. */
static hid_t layout_of(int ndim, const hsize_t *chunk, unsigned gzip_level)
{
    hid_t layout = without_times(H5P_DATASET_CREATE);
    if (layout < 0 || ndim == 0) return layout;
    int failed = H5Pset_chunk(layout, ndim, chunk) < 0;
    if (gzip_level > 0) failed = failed || H5Pset_shuffle(layout) < 0 || H5Pset_deflate(layout, gzip_level) < 0;
    failed = failed || H5Pset_fletcher32(layout) < 0;
    if (!failed) return layout;
    (void)H5Pclose(layout);
    return TTN_HDF5_NONE;
}

/* An open dataset, or TTN_HDF5_NONE with h's failure; the caller closes type. grows: its first dimension will. */
static hid_t create_dataset(ttn_hdf5 *h, const char *name, hid_t type, int ndim, const int64_t *dim,
                            const hsize_t *chunk, unsigned gzip_level, int grows)
{
    hsize_t extent[TTN_MAX_DIM] = {0}, most[TTN_MAX_DIM] = {0};
    for (int d = 0; d < ndim; d++) {
        extent[d] = (hsize_t)dim[d];
        most[d] = d == 0 && grows ? H5S_UNLIMITED : extent[d];
    }
    hid_t space = ndim == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(ndim, extent, most);
    hid_t layout = layout_of(ndim, chunk, gzip_level), dataset = TTN_HDF5_NONE;
    if (space >= 0 && layout >= 0 && type >= 0)
        dataset = H5Dcreate2(h->file, name, type, space, H5P_DEFAULT, layout, H5P_DEFAULT);
    if (dataset < 0) fail(h, "create the dataset", name);
    if (layout >= 0 && H5Pclose(layout) < 0) fail(h, "create the dataset", name);
    if (space >= 0 && H5Sclose(space) < 0) fail(h, "create the dataset", name);
    return dataset;
}

/* The last dataset has all its rows; a chunk that the disk does not take shows here. */
static void end_dataset(ttn_hdf5 *h)
{
    if (h->dataset < 0) return;
    hid_t dataset = h->dataset;
    h->dataset = TTN_HDF5_NONE;
    assert(h->status != TTN_OK || h->desc.ndim == 0 || h->n_row == h->desc.dim[0]);
    if (H5Dclose(dataset) < 0) fail(h, "write", h->dataset_name);
    if (h->status == TTN_OK) remember(h, h->dataset_name, NULL, ttn_hash_final(h->hash));
}

void ttn_hdf5_dataset(ttn_hdf5 *h, const char *name, const ttn_hdf5_shape *shape)
{
    if (h->status != TTN_OK) return;
    ttn_status status = ttn_desc_check(&shape->desc, name, &h->err);
    if (status == TTN_OK && ttn_dtype_stored(shape->desc.type) == TTN_BF16)
        status =
            TTN_FAIL(&h->err, TTN_EINVAL, "%s: '%s' would be bf16, which HDF5's readers do not know", h->name, name);
    if (status != TTN_OK) {
        h->status = status;
        return;
    }
    ttn_hdf5_quiet before = ttn_hdf5_be_quiet();
    end_dataset(h);
    hsize_t chunk[TTN_MAX_DIM];
    choose_chunk(shape, chunk);
    hid_t type = ttn_hdf5_number_type(shape->desc.type);
    if (h->status == TTN_OK)
        h->dataset = create_dataset(h, name, type, shape->desc.ndim, shape->desc.dim, chunk,
                                    shape->compressed ? GZIP_LEVEL : 0, 0);
    if (type >= 0 && H5Tclose(type) < 0) fail(h, "create the dataset", name);
    h->desc = shape->desc;
    h->n_row = 0;
    ttn_hash_reset(h->hash);
    h->dataset_name = ttn_arena_text(h->texts, "%s", name);
    if (!h->dataset_name) fail_memory(h);
    end_step(h, before);
}

static size_t row_bytes(const ttn_desc *desc)
{
    size_t bytes = ttn_dtype_size(desc->type);
    for (int d = 1; d < desc->ndim; d++)
        bytes *= (size_t)desc->dim[d];
    return bytes;
}

void ttn_hdf5_append(ttn_hdf5 *h, int64_t n_row, const void *numbers)
{
    if (h->status != TTN_OK) return;
    assert(h->dataset >= 0 && n_row >= 0 && (h->desc.ndim == 0 ? n_row == 1 : n_row <= h->desc.dim[0] - h->n_row));
    if (n_row == 0 || ttn_desc_numel(&h->desc) == 0) {
        h->n_row += n_row;
        return;
    }
    ttn_hdf5_quiet before = ttn_hdf5_be_quiet();
    if (!ttn_hdf5_move_rows(h->dataset, &h->desc, h->n_row, n_row, numbers, NULL)) fail(h, "write", h->dataset_name);
    ttn_hash_update(h->hash, numbers, (size_t)n_row * row_bytes(&h->desc));
    h->n_row += n_row;
    end_step(h, before);
}

/* The checksums of the chunks of `name`. */
static void write_sums(ttn_hdf5 *h, const char *name, const int64_t *sum, int64_t n)
{
    const char *key = ttn_arena_text(h->texts, "%s" TTN_HDF5_SUMS, name);
    if (!key) {
        fail_memory(h);
        return;
    }
    ttn_hdf5_dataset(h, key, &(ttn_hdf5_shape){.desc = {.type = TTN_I64, .ndim = 1, .dim = {n}}});
    ttn_hdf5_append(h, n, sum);
    end_dataset(h);
}

/* The same of n entries of `size` bytes that are in memory. */
static void write_sums_of(ttn_hdf5 *h, const char *name, const char *all, int64_t n, size_t size, int64_t chunk)
{
    const int64_t n_sum = n / chunk + (n % chunk != 0);
    int64_t *sum = ttn_alloc_array(n_sum, sizeof *sum);
    if (!sum) {
        fail_memory(h);
        return;
    }
    for (int64_t c = 0; c < n_sum; c++) {
        const int64_t rest = n - c * chunk, now = rest < chunk ? rest : chunk;
        sum[c] = (int64_t)ttn_hash64(all + (size_t)(c * chunk) * size, (size_t)now * size, 0);
    }
    write_sums(h, name, sum, n_sum);
    ttn_free(sum);
}

void ttn_hdf5_texts(ttn_hdf5 *h, const char *name, const char *const *text, int64_t n)
{
    if (h->status != TTN_OK) return;
    size_t longest = 1;
    for (int64_t i = 0; i < n; i++)
        if (strlen(text[i]) > longest) longest = strlen(text[i]);
    char *all = ttn_alloc_array(n, longest);
    if (!all) {
        fail_memory(h);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(all + (size_t)i * longest, text[i], strlen(text[i]));
    ttn_hdf5_quiet before = ttn_hdf5_be_quiet();
    end_dataset(h);
    hsize_t chunk = (hsize_t)(CHUNK_BYTES / longest);
    if (chunk > (hsize_t)n) chunk = (hsize_t)n;
    if (chunk == 0) chunk = 1;
    hid_t type = ttn_hdf5_text_type(longest), dataset = TTN_HDF5_NONE;
    if (h->status == TTN_OK) dataset = create_dataset(h, name, type, 1, &n, &chunk, 0, 0);
    if (dataset >= 0 && n > 0 && H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, all) < 0)
        fail(h, "write", name);
    if (dataset >= 0 && H5Dclose(dataset) < 0) fail(h, "write", name);
    if (type >= 0 && H5Tclose(type) < 0) fail(h, "write", name);
    if (h->status == TTN_OK) remember(h, name, NULL, ttn_hash128_of(all, (size_t)n * longest));
    if (h->status == TTN_OK) write_sums_of(h, name, all, n, longest, (int64_t)chunk);
    end_step(h, before);
    ttn_free(all);
}

void ttn_hdf5_scale(ttn_hdf5 *h, const char *name, int d, const char *scale, const char *label)
{
    if (h->status != TTN_OK) return;
    ttn_hdf5_quiet before = ttn_hdf5_be_quiet();
    end_dataset(h);
    hid_t dataset = h->status == TTN_OK ? H5Dopen2(h->file, name, H5P_DEFAULT) : TTN_HDF5_NONE;
    hid_t places = dataset < 0 ? TTN_HDF5_NONE : H5Dopen2(h->file, scale, H5P_DEFAULT);
    int done = places >= 0;
    if (done && H5DSis_scale(places) <= 0) done = H5DSset_scale(places, label) >= 0;
    done =
        done && H5DSattach_scale(dataset, places, (unsigned)d) >= 0 && H5DSset_label(dataset, (unsigned)d, label) >= 0;
    if (!done) fail(h, "give a scale to", name);
    if (places >= 0 && H5Dclose(places) < 0) fail(h, "give a scale to", name);
    if (dataset >= 0 && H5Dclose(dataset) < 0) fail(h, "give a scale to", name);
    end_step(h, before);
}

/* ---- columns ---- */

ttn_hdf5_column *ttn_hdf5_column_create(ttn_hdf5 *h, const char *name, ttn_dtype type, int compressed)
{
    if (h->status != TTN_OK) return NULL;
    ttn_hdf5_column *c = ttn_arena_alloc(h->texts, sizeof *c);
    if (!c) {
        fail_memory(h);
        return NULL;
    }
    *c = (ttn_hdf5_column){.of = h,
                           .name = ttn_arena_text(h->texts, "%s", name),
                           .type = type,
                           .size = ttn_dtype_size(type),
                           .compressed = compressed,
                           .waiting = ttn_alloc(COLUMN_BYTES),
                           .dataset = TTN_HDF5_NONE,
                           .before = h->column};
    h->column = c; /* which frees what there is of it */
    if (!c->name || !c->waiting) fail_memory(h);
    if (h->status == TTN_OK) h->status = ttn_hash_create(&c->hash, &h->err);
    return h->status == TTN_OK ? c : NULL;
}

/* What waits is a chunk of the file: its checksum is kept. */
static void keep_sum(ttn_hdf5_column *c)
{
    if (c->n_sum == c->room_sum) {
        const int64_t room = c->room_sum > 0 ? 2 * c->room_sum : 64;
        int64_t *sum = ttn_alloc_array(room, sizeof *sum);
        if (!sum) {
            fail_memory(c->of);
            return;
        }
        if (c->n_sum > 0) memcpy(sum, c->sum, (size_t)c->n_sum * sizeof *sum);
        ttn_free(c->sum);
        c->sum = sum;
        c->room_sum = room;
    }
    c->sum[c->n_sum] = (int64_t)ttn_hash64(c->waiting, (size_t)c->n_waiting * c->size, 0);
    c->n_sum++;
}

/* What waits becomes the next numbers of the dataset, which is made before if it was not. grows: more may come. */
static void write_waiting(ttn_hdf5_column *c, int grows)
{
    ttn_hdf5 *h = c->of;
    const int64_t n = c->n_waiting, none = 0;
    if (c->dataset < 0) {
        const hsize_t chunk = grows ? COLUMN_BYTES / c->size : n > 0 ? (hsize_t)n : 1;
        hid_t type = ttn_hdf5_number_type(c->type);
        c->dataset = create_dataset(h, c->name, type, 1, grows ? &none : &n, &chunk,
                                    c->compressed ? COLUMN_GZIP_LEVEL : 0, grows);
        if (type >= 0 && H5Tclose(type) < 0) fail(h, "create the dataset", c->name);
        if (h->status != TTN_OK) return;
    }
    const int64_t all = c->n_written + n;
    if (n == 0) return;
    if ((grows || c->n_written > 0) && H5Dset_extent(c->dataset, &(hsize_t){(hsize_t)all}) < 0)
        fail(h, "make longer", c->name);
    const ttn_desc desc = {.type = c->type, .ndim = 1, .dim = {all}};
    if (h->status == TTN_OK && !ttn_hdf5_move_rows(c->dataset, &desc, c->n_written, n, c->waiting, NULL))
        fail(h, "write", c->name);
    keep_sum(c);
    c->n_written = all;
    c->n_waiting = 0;
}

void ttn_hdf5_column_add(ttn_hdf5_column *c, int64_t n, const void *numbers)
{
    if (!c || c->of->status != TTN_OK) return;
    const char *from = numbers;
    ttn_hash_update(c->hash, numbers, (size_t)n * c->size);
    while (n > 0 && c->of->status == TTN_OK) {
        const int64_t room = (int64_t)(COLUMN_BYTES / c->size) - c->n_waiting, part = n < room ? n : room;
        memcpy(c->waiting + (size_t)c->n_waiting * c->size, from, (size_t)part * c->size);
        c->n_waiting += part;
        from += (size_t)part * c->size;
        n -= part;
        if (part < room) return;
        ttn_hdf5_quiet before = ttn_hdf5_be_quiet();
        write_waiting(c, 1);
        end_step(c->of, before);
    }
}

int64_t ttn_hdf5_column_count(const ttn_hdf5_column *c)
{
    return c ? c->n_written + c->n_waiting : 0;
}

ttn_hash128 ttn_hdf5_column_hash(const ttn_hdf5_column *c)
{
    return c ? ttn_hash_final(c->hash) : (ttn_hash128){0};
}

void ttn_hdf5_column_read(ttn_hdf5_column *c, int64_t first, int64_t n, void *into)
{
    if (!c || c->of->status != TTN_OK) return;
    assert(first >= 0 && n >= 0 && first + n <= ttn_hdf5_column_count(c));
    char *to = into;
    const int64_t in_file = first < c->n_written ? (n < c->n_written - first ? n : c->n_written - first) : 0;
    if (in_file > 0) {
        ttn_hdf5_quiet before = ttn_hdf5_be_quiet();
        const ttn_desc desc = {.type = c->type, .ndim = 1, .dim = {c->n_written}};
        if (!ttn_hdf5_move_rows(c->dataset, &desc, first, in_file, NULL, to)) fail(c->of, "read again", c->name);
        end_step(c->of, before);
    }
    if (n > in_file)
        memcpy(to + (size_t)in_file * c->size, c->waiting + (size_t)(first + in_file - c->n_written) * c->size,
               (size_t)(n - in_file) * c->size);
}

/* All have what they were given; what the disk does not take shows here. */
static void end_columns(ttn_hdf5 *h)
{
    for (ttn_hdf5_column *c = h->column; c && h->status == TTN_OK; c = c->before) {
        if (c->n_waiting > 0 || c->dataset < 0) write_waiting(c, 0);
        hid_t dataset = c->dataset;
        c->dataset = TTN_HDF5_NONE;
        if (dataset >= 0 && H5Dclose(dataset) < 0) fail(h, "write", c->name);
        if (h->status == TTN_OK) remember(h, c->name, NULL, ttn_hash_final(c->hash));
        if (h->status == TTN_OK) write_sums(h, c->name, c->sum, c->n_sum);
    }
}

static void destroy_columns(ttn_hdf5 *h)
{
    for (ttn_hdf5_column *c = h->column; c; c = c->before) {
        if (c->dataset >= 0) (void)H5Dclose(c->dataset);
        ttn_hash_destroy(c->hash);
        ttn_free(c->waiting);
        ttn_free(c->sum);
    }
}

ttn_status ttn_hdf5_status(const ttn_hdf5 *h, ttn_error *err)
{
    if (h->status != TTN_OK && err && err->status == TTN_OK) *err = h->err;
    return h->status;
}

/* ---- the end ---- */

static void close_file(ttn_hdf5 *h)
{
    if (h->file < 0) return;
    hid_t file = h->file;
    h->file = TTN_HDF5_NONE;
    if (H5Fclose(file) < 0) fail(h, "close", "the file");
    ttn_hdf5_disk_end(&h->disk);
    look_at_disk(h);
}

/* Everything in a dataset, in the type it is stored in. */
static int hash_dataset(hid_t dataset, ttn_hash *hash)
{
    hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset);
    hssize_t n = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
    int ndim = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
    size_t size = type < 0 ? 0 : H5Tget_size(type);
    hsize_t dim[TTN_MAX_DIM] = {0};
    int done = n >= 0 && ndim >= 0 && ndim <= TTN_MAX_DIM && size > 0;
    if (done && ndim > 0) done = H5Sget_simple_extent_dims(space, dim, NULL) == ndim;
    hsize_t n_row = ndim > 0 ? dim[0] : 1;
    size_t row = done && n_row > 0 ? (size_t)n / n_row * size : 0;
    hsize_t part = row > 0 && row < PIECE ? PIECE / row : 1;
    char *piece = done && row > 0 ? ttn_alloc_array((int64_t)part, row) : NULL;
    if (row > 0 && !piece) done = 0;
    ttn_hash_reset(hash);
    for (hsize_t first = 0; done && row > 0 && first < n_row; first += part) {
        hsize_t start[TTN_MAX_DIM] = {first}, count[TTN_MAX_DIM] = {n_row - first < part ? n_row - first : part};
        for (int d = 1; d < ndim; d++)
            count[d] = dim[d];
        hid_t memory = ndim > 0 ? H5Screate_simple(ndim, count, NULL) : H5S_ALL;
        if (ndim > 0) done = memory >= 0 && H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0;
        done = done && H5Dread(dataset, type, memory, ndim > 0 ? space : H5S_ALL, H5P_DEFAULT, piece) >= 0;
        if (done) ttn_hash_update(hash, piece, (ndim > 0 ? count[0] : 1) * row);
        if (ndim > 0 && memory >= 0 && H5Sclose(memory) < 0) done = 0;
    }
    ttn_free(piece);
    if (type >= 0 && H5Tclose(type) < 0) done = 0;
    if (space >= 0 && H5Sclose(space) < 0) done = 0;
    return done;
}

/* The one value of an attribute, in the type it is stored in. */
static int hash_note(hid_t note, ttn_hash *hash)
{
    hid_t type = H5Aget_type(note);
    size_t size = type < 0 ? 0 : H5Tget_size(type);
    char *value = size > 0 ? ttn_alloc(size) : NULL;
    int done = value && H5Aget_storage_size(note) == size && H5Aread(note, type, value) >= 0;
    ttn_hash_reset(hash);
    if (done) ttn_hash_update(hash, value, size);
    ttn_free(value);
    if (type >= 0 && H5Tclose(type) < 0) done = 0;
    return done;
}

/* Everything in a dataset or an attribute; 0: it cannot be read. */
static int hash_written(hid_t file, const written *w, ttn_hash *hash)
{
    if (w->of) {
        hid_t note = H5Aopen_by_name(file, w->of, w->name, H5P_DEFAULT, H5P_DEFAULT);
        int done = note >= 0 && hash_note(note, hash);
        return note >= 0 && H5Aclose(note) < 0 ? 0 : done;
    }
    hid_t dataset = H5Dopen2(file, w->name, H5P_DEFAULT);
    int done = dataset >= 0 && hash_dataset(dataset, hash);
    return dataset >= 0 && H5Dclose(dataset) < 0 ? 0 : done;
}

/* The closed file, as another program would see it, holds what it was given. */
static void verify(ttn_hdf5 *h)
{
    hid_t access = ttn_hdf5_access();
    hid_t file = access < 0 ? TTN_HDF5_NONE : H5Fopen(ttn_atomic_path(h->atomic), H5F_ACC_RDONLY, access);
    if (file < 0) fail(h, "read again", "the file");
    for (const written *w = h->written; w && h->status == TTN_OK; w = w->next) {
        int done = hash_written(file, w, h->hash);
        if (!done) fail(h, "read again", w->name);
        if (done && !ttn_hash_same(ttn_hash_final(h->hash), w->hash))
            h->status = TTN_FAIL(&h->err, TTN_EIO,
                                 "%s: '%.100s' is read back other than it was written; the disk or "
                                 "memory may be failing; nothing was put in its place",
                                 h->name, w->name);
    }
    if (file >= 0 && H5Fclose(file) < 0) fail(h, "read again", "the file");
    if (access >= 0 && H5Pclose(access) < 0) fail(h, "read again", "the file");
}

ttn_status ttn_hdf5_commit(ttn_hdf5 *h, ttn_error *err)
{
    ttn_hdf5_quiet before = ttn_hdf5_be_quiet();
    end_dataset(h);
    end_columns(h);
    close_file(h);
    if (h->status == TTN_OK) verify(h);
    end_step(h, before);
    if (h->status == TTN_OK) return h->status = ttn_atomic_commit(h->atomic, err);
    if (err && err->status == TTN_OK) *err = h->err;
    return h->status;
}

void ttn_hdf5_destroy(ttn_hdf5 *h)
{
    if (!h) return;
    ttn_hdf5_quiet before = ttn_hdf5_be_quiet();
    h->status = TTN_EINTERNAL; /* whatever the closes say, nothing appears */
    if (h->dataset >= 0) (void)H5Dclose(h->dataset);
    destroy_columns(h);
    close_file(h);
    ttn_hdf5_disk_end(&h->disk); /* of a file that was not made, too */
    end_step(h, before);
    ttn_atomic_destroy(h->atomic);
    ttn_hash_destroy(h->hash);
    ttn_arena_destroy(h->texts);
    ttn_free(h);
}
