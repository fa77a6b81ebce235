#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>
#include "core/disk.h"
#include "core/hash.h"
#include "core/hdf5.h"
#include "core/hdf5_read.h"
#include "core/memory.h"
#include "core/text.h"

struct ttn_hdf5_file {
    hid_t file;
    int64_t bytes; /* of the file */
    ttn_arena *texts;
    const char *name, *what; /* for messages */
};

/* A list: a dataset of one dimension. Its chunks are read as they lie in the file and unpacked here, one at a time, so that
 * none takes more memory than it should, whatever it says, and none is unpacked twice in a row. */
struct ttn_hdf5_array {
    ttn_hdf5_file *of;
    const char *name;
    hid_t dataset;
    ttn_desc desc;
    size_t size;            /* of an entry */
    int64_t chunk, n_chunk; /* entries of a chunk; chunks */
    int is_compressed;
    int64_t *sum;                /* (n_chunk) XXH3 of each; NULL: Fletcher-32 alone, as HDF5 has it */
    unsigned char *bytes, *work; /* (chunk_room) the chunk in memory; for unpacking */
    int64_t have;                /* which chunk is in memory; NO_CHUNK */
};

enum { NO_CHUNK = -1, CHECKSUM = 4 /* bytes of Fletcher-32 */ };

/* Chunks of more bytes are none of ours, nor are several of fewer: a file of some KB could say that it has billions. */
enum { LARGEST_CHUNK = 1 << 20, SMALLEST_CHUNK = 128 << 10 };

/* Deflate makes no more of a byte. */
enum { MOST_OF_DEFLATE = 1032 };

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
    return TTN_FAIL(err, TTN_ENOMEM, "%s: no memory for '%.100s'; end other programs", f->name, what);
}

/* ---- open ---- */

void ttn_hdf5_be_quiet_at_exit(void)
{
    (void)H5dont_atexit();
}

/* The first bytes: HDF5's signature at the very start, and a superblock of the format that has checksums (2 and 3). */
static ttn_status check_head(ttn_hdf5_file *f, const char *path, ttn_error *err)
{
    static const unsigned char signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    enum { OLDEST = 2 };
    unsigned char head[sizeof signature + 1];
    int fd = ttn_disk_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0) return TTN_FAIL(err, ttn_disk_fault(errno), "%s: cannot be opened: %s", f->name, strerror(errno));
    ssize_t n = ttn_disk_read_at(fd, head, sizeof head, 0);
    struct stat about;
    if (n >= 0 && fstat(fd, &about) != 0) n = -1;
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
    f->bytes = (int64_t)about.st_size;
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
    ttn_hdf5_file *f = ttn_alloc(sizeof *f);
    if (!f)
        return TTN_FAIL(err, TTN_ENOMEM, "%s: no memory to read it; end other programs", ttn_text_tail(path, shown));
    *f = (ttn_hdf5_file){.file = TTN_HDF5_NONE, .what = what};
    ttn_status status = ttn_arena_create(0, &f->texts, NULL);
    if (status == TTN_OK) f->name = ttn_arena_text(f->texts, "%s", ttn_text_tail(path, shown));
    if (!f->name)
        status = TTN_FAIL(err, TTN_ENOMEM, "%s: no memory to read it; end other programs", ttn_text_tail(path, shown));
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

/* Through the filters of ours, in our order, and in chunks of a size that ours have. */
static int is_laid_out_as_ours(ttn_hdf5_array *a)
{
    static const H5Z_filter_t ours[] = {H5Z_FILTER_SHUFFLE, H5Z_FILTER_DEFLATE, H5Z_FILTER_FLETCHER32};
    enum { PLAIN = 1, COMPRESSED = 3 };
    hid_t layout = H5Dget_create_plist(a->dataset);
    hsize_t chunk = 0;
    int is = layout >= 0 && H5Pget_layout(layout) == H5D_CHUNKED && H5Pget_chunk(layout, 1, &chunk) == 1;
    const int n = is ? H5Pget_nfilters(layout) : 0;
    is = is && (n == PLAIN || n == COMPRESSED);
    for (int i = 0; is && i < n; i++) {
        unsigned flags;
        size_t n_value = 0;
        is = H5Pget_filter2(layout, (unsigned)i, &flags, &n_value, NULL, 0, NULL, NULL) == ours[COMPRESSED - n + i];
    }
    if (layout >= 0) (void)H5Pclose(layout);
    is = is && chunk > 0 && a->size > 0 && chunk <= LARGEST_CHUNK / a->size;
    if (!is) return 0;
    a->is_compressed = n == COMPRESSED;
    a->chunk = (int64_t)chunk;
    return a->chunk >= a->desc.dim[0] || a->chunk * (int64_t)a->size >= SMALLEST_CHUNK;
}

/* Are there as many bytes as the list says, and is every chunk in the file? Nothing takes memory before. HDF5 reads a chunk
 * that is not there as zeros, without a checksum. */
static ttn_status check_claim(ttn_hdf5_array *a, hid_t space, ttn_error *err)
{
    assert(a->chunk > 0 && a->size > 0); /* is_laid_out_as_ours has looked */
    const ttn_hdf5_file *f = a->of;
    const int64_t n = a->desc.dim[0], bytes = a->chunk * (int64_t)a->size;
    const int64_t most_of_a_byte = a->is_compressed ? MOST_OF_DEFLATE : 1;
    const int64_t most = f->bytes > INT64_MAX / most_of_a_byte ? INT64_MAX : f->bytes * most_of_a_byte;
    a->n_chunk = n / a->chunk + (n % a->chunk != 0);
    if (a->n_chunk > most / bytes)
        return TTN_FAIL(err, TTN_EFORMAT,
                        "%s: '%.100s' says that it has %" PRId64 " entries, more than a file of %" PRId64
                        " bytes can hold; the file is damaged, or is not %s",
                        f->name, a->name, n, f->bytes, f->what);
    hsize_t there = 0;
    if (H5Dget_num_chunks(a->dataset, space, &there) < 0) return fail(f, "find the chunks of", a->name, err);
    if (there == (hsize_t)a->n_chunk) return TTN_OK;
    return TTN_FAIL(err, TTN_EFORMAT,
                    "%s: '%.100s' has %" PRId64 " of its %" PRId64
                    " chunks in the file; the file is damaged, or is not %s",
                    f->name, a->name, (int64_t)there, a->n_chunk, f->what);
}

/* What `a` is of, and what it is called, is set; the rest is found out. */
static ttn_status open_list(ttn_hdf5_array *a, ttn_error *err)
{
    ttn_hdf5_file *f = a->of;
    H5L_info_t link;
    a->dataset = TTN_HDF5_NONE;
    a->have = NO_CHUNK;
    if (H5Lget_info(f->file, a->name, &link, H5P_DEFAULT) < 0) return fail(f, "find", a->name, err);
    if (link.type != H5L_TYPE_HARD) return is_not(f, a->name, "lies in another place", err);
    a->dataset = H5Dopen2(f->file, a->name, H5P_DEFAULT);
    hid_t space = a->dataset < 0 ? TTN_HDF5_NONE : H5Dget_space(a->dataset);
    hid_t type = a->dataset < 0 ? TTN_HDF5_NONE : H5Dget_type(a->dataset);
    hsize_t n = 0;
    ttn_status status = TTN_OK;
    a->size = type < 0 ? 0 : H5Tget_size(type);
    if (space < 0 || type < 0) {
        status = fail(f, "open", a->name, err);
    } else if (H5Sget_simple_extent_ndims(space) != 1 || H5Sget_simple_extent_dims(space, &n, NULL) != 1 ||
               n > INT64_MAX) {
        status = is_not(f, a->name, "is no list", err);
    } else {
        a->desc.dim[0] = (int64_t)n;
        if (!is_laid_out_as_ours(a))
            status = is_not(f, a->name, "is not stored in chunks with checksums, as titin does", err);
    }
    if (status == TTN_OK) status = check_claim(a, space, err);
    if (type >= 0) (void)H5Tclose(type);
    if (space >= 0) (void)H5Sclose(space);
    return status;
}

static void close_list(ttn_hdf5_array *a)
{
    if (a->dataset >= 0) (void)H5Dclose(a->dataset);
    ttn_free(a->sum);
    ttn_free(a->bytes);
    ttn_free(a->work);
}

/* ---- chunks ---- */

/* As HDF5 computes it: of pairs of bytes, the first of which counts 256 times. */
static uint32_t fletcher32(const unsigned char *bytes, size_t n)
{
    enum { AT_ONCE = 360 }; /* sums of so many pairs do not overflow */
    uint32_t sum = 0, sum_of_sums = 0;
    for (size_t i = 0; i < n;) {
        const size_t end = n - i > 2 * AT_ONCE ? i + 2 * AT_ONCE : n;
        for (; i < end; i += 2) {
            sum += (uint32_t)bytes[i] << 8 | (i + 1 < n ? bytes[i + 1] : 0);
            sum_of_sums += sum;
        }
        sum = (sum & 0xFFFF) + (sum >> 16);
        sum_of_sums = (sum_of_sums & 0xFFFF) + (sum_of_sums >> 16);
    }
    sum = (sum & 0xFFFF) + (sum >> 16);
    sum_of_sums = (sum_of_sums & 0xFFFF) + (sum_of_sums >> 16);
    return sum_of_sums << 16 | sum;
}

static void swap(ttn_hdf5_array *a)
{
    unsigned char *bytes = a->bytes;
    a->bytes = a->work;
    a->work = bytes;
}

/* First all first bytes of n entries, then all second ones, and so on: back to entries. */
static void unshuffle(const unsigned char *from, size_t n, size_t size, unsigned char *to)
{
    for (size_t b = 0; b < size; b++)
        for (size_t i = 0; i < n; i++)
            to[i * size + b] = from[b * n + i];
}

/* The filters of a chunk of n bytes backwards; `skipped` has a bit for each that it did not go through, as deflate where it
 * gains nothing. NULL, or what is wrong. */
static const char *unpack(ttn_hdf5_array *a, size_t n, unsigned skipped)
{
    enum { SHUFFLE = 1, DEFLATE = 2, FLETCHER_OF_COMPRESSED = 4, FLETCHER = 1 };
    const size_t whole = (size_t)a->chunk * a->size;
    if (skipped & (a->is_compressed ? FLETCHER_OF_COMPRESSED : FLETCHER)) return "has a chunk without a checksum";
    n -= CHECKSUM;
    const unsigned char *end = a->bytes + n;
    const uint32_t stored = (uint32_t)end[0] | (uint32_t)end[1] << 8 | (uint32_t)end[2] << 16 | (uint32_t)end[3] << 24;
    if (!a->sum && fletcher32(a->bytes, n) != stored) return "has a chunk whose checksum is wrong";
    if (a->is_compressed && !(skipped & DEFLATE)) {
        uLongf unpacked = whole;
        if (uncompress(a->work, &unpacked, a->bytes, n) != Z_OK) return "has a chunk that cannot be unpacked";
        n = unpacked;
        swap(a);
    }
    if (n != whole) return "has a chunk of another length";
    if (a->is_compressed && !(skipped & SHUFFLE)) {
        unshuffle(a->bytes, (size_t)a->chunk, a->size, a->work);
        swap(a);
    }
    return NULL;
}

/* Bytes of a chunk in the file at most: HDF5 keeps what deflate makes of it up to 0.1 % and 12 bytes more. */
static size_t chunk_room(const ttn_hdf5_array *a)
{
    const size_t bytes = (size_t)a->chunk * a->size;
    return bytes + bytes / 1000 + 13 + CHECKSUM;
}

static ttn_status have_room(ttn_hdf5_array *a, ttn_error *err)
{
    const size_t room = chunk_room(a);
    if (!a->bytes) a->bytes = ttn_alloc(room);
    if (a->is_compressed && !a->work) a->work = ttn_alloc(room);
    return a->bytes && (a->work || !a->is_compressed) ? TTN_OK : no_memory(a->of, a->name, err);
}

/* Chunk c is in memory, and is what was written. */
static ttn_status have_chunk(ttn_hdf5_array *a, int64_t c, ttn_error *err)
{
    if (a->have == c) return TTN_OK;
    ttn_status status = have_room(a, err);
    if (status != TTN_OK) return status;
    a->have = NO_CHUNK;
    const int64_t first = c * a->chunk, rest = a->desc.dim[0] - first, n = rest < a->chunk ? rest : a->chunk;
    const hsize_t at = (hsize_t)first;
    hsize_t stored = 0;
    uint32_t skipped = 0;
    if (H5Dget_chunk_storage_size(a->dataset, &at, &stored) < 0) return fail(a->of, "find a chunk of", a->name, err);
    if (stored < CHECKSUM || stored > chunk_room(a))
        return is_not(a->of, a->name, "has a chunk of another length", err);
    if (H5Dread_chunk(a->dataset, H5P_DEFAULT, &at, &skipped, a->bytes) < 0) return fail(a->of, "read", a->name, err);
    const char *wrong = unpack(a, (size_t)stored, skipped);
    if (wrong) return is_not(a->of, a->name, wrong, err);
    if (a->sum && (int64_t)ttn_hash64(a->bytes, (size_t)n * a->size, 0) != a->sum[c])
        return TTN_FAIL(err, TTN_EFORMAT,
                        "%s: '%.100s' is not what was written: the checksum of entries %" PRId64 " to %" PRId64
                        " differs; the file is damaged, or was changed",
                        a->of->name, a->name, first, first + n - 1);
    a->have = c;
    return TTN_OK;
}

static ttn_status read_entries(ttn_hdf5_array *a, int64_t first, int64_t n, void *into, ttn_error *err)
{
    unsigned char *to = into;
    while (n > 0) {
        const int64_t c = first / a->chunk, from = first % a->chunk;
        const int64_t part = n < a->chunk - from ? n : a->chunk - from;
        ttn_status status = have_chunk(a, c, err);
        if (status != TTN_OK) return status;
        memcpy(to, a->bytes + (size_t)from * a->size, (size_t)part * a->size);
        to += (size_t)part * a->size;
        first += part;
        n -= part;
    }
    return TTN_OK;
}

static ttn_status check_type(const ttn_hdf5_array *a, ttn_dtype type, ttn_error *err)
{
    hid_t stored = H5Dget_type(a->dataset);
    const int is = is_of_type(stored, type);
    if (stored >= 0) (void)H5Tclose(stored);
    return is ? TTN_OK : is_not(a->of, a->name, "holds other numbers than it should", err);
}

/* The list NAME_xxh64 of the checksums of its chunks. */
static ttn_status get_sums(ttn_hdf5_array *a, ttn_error *err)
{
    ttn_hdf5_array sums = {.of = a->of, .name = ttn_arena_text(a->of->texts, "%s" TTN_HDF5_SUMS, a->name)};
    if (!sums.name) return no_memory(a->of, a->name, err);
    ttn_status status = open_list(&sums, err);
    if (status == TTN_OK) status = check_type(&sums, TTN_I64, err);
    if (status == TTN_OK && sums.desc.dim[0] != a->n_chunk)
        status = is_not(a->of, sums.name, "has not one checksum for every chunk", err);
    int64_t *sum = status == TTN_OK ? ttn_alloc_array(a->n_chunk, sizeof *sum) : NULL;
    if (status == TTN_OK && !sum) status = no_memory(a->of, sums.name, err);
    if (status == TTN_OK) status = read_entries(&sums, 0, a->n_chunk, sum, err);
    close_list(&sums);
    if (status == TTN_OK)
        a->sum = sum;
    else
        ttn_free(sum);
    return status;
}

/* ---- texts ---- */

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

static ttn_status check_texts(const ttn_hdf5_array *a, int64_t most, ttn_error *err)
{
    hid_t type = H5Dget_type(a->dataset);
    const size_t n = text_bytes(type, TTN_HDF5_LONGEST_NOTE);
    if (type >= 0) (void)H5Tclose(type);
    if (n == 0) return is_not(a->of, a->name, "holds no texts", err);
    if (a->desc.dim[0] > most) return is_not(a->of, a->name, "holds more texts than is possible", err);
    return TTN_OK;
}

ttn_status ttn_hdf5_get_texts(ttn_hdf5_file *f, const char *name, int64_t most, const char *const **ret, int64_t *ret_n,
                              ttn_error *err)
{
    *ret = NULL;
    *ret_n = 0;
    ttn_hdf5_quiet before = ttn_hdf5_be_quiet();
    ttn_hdf5_array a = {.of = f, .name = name};
    char *all = NULL;
    ttn_status status = open_list(&a, err);
    if (status == TTN_OK) status = check_texts(&a, most, err);
    if (status == TTN_OK) status = get_sums(&a, err);
    if (status == TTN_OK) {
        all = ttn_alloc_array(a.desc.dim[0], a.size);
        if (!all) status = no_memory(f, name, err);
    }
    if (status == TTN_OK) status = read_entries(&a, 0, a.desc.dim[0], all, err);
    close_list(&a);
    ttn_hdf5_end_quiet(before);
    if (status == TTN_OK) {
        *ret = list_texts(f, all, a.desc.dim[0], a.size);
        *ret_n = a.desc.dim[0];
        if (!*ret) status = no_memory(f, name, err);
    }
    ttn_free(all);
    return status;
}

/* ---- lists of numbers ---- */

ttn_status ttn_hdf5_array_open(ttn_hdf5_file *f, const char *name, ttn_dtype type, ttn_hdf5_array **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_hdf5_array *a = ttn_alloc(sizeof *a);
    if (!a) return no_memory(f, name, err);
    *a = (ttn_hdf5_array){.of = f, .name = ttn_arena_text(f->texts, "%s", name), .dataset = TTN_HDF5_NONE};
    a->desc = (ttn_desc){.type = type, .ndim = 1};
    ttn_hdf5_quiet before = ttn_hdf5_be_quiet();
    ttn_status status = a->name ? TTN_OK : no_memory(f, name, err);
    if (status == TTN_OK) status = open_list(a, err);
    if (status == TTN_OK) status = check_type(a, type, err);
    if (status == TTN_OK) status = get_sums(a, err);
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
    close_list(a);
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
    ttn_hdf5_quiet before = ttn_hdf5_be_quiet();
    const ttn_status status = read_entries(a, first, n, into, err);
    ttn_hdf5_end_quiet(before);
    return status;
}
