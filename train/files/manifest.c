#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "core/atomic.h"
#include "core/disk.h"
#include "core/memory.h"
#include "core/text.h"
#include "core/titin.h"
#include "train/files/json.h"
#include "train/files/manifest.h"

/* How the text ends: the digits stand for the hash of all bytes before CLOSING_KEY. */
static const char CLOSING_KEY[] = "\n  \"xxh3_128\": \"";
static const char CLOSING[] = "\"\n}\n";
enum {
    DIGITS = TTN_HASH_TEXT - 1,
    N_CLOSING_KEY = sizeof CLOSING_KEY - 1,
    N_CLOSING = sizeof CLOSING - 1,
    N_END = N_CLOSING_KEY + DIGITS + N_CLOSING,
    MOST_BYTES = 64 << 20,
    MOST_NAME = 255,
    MOST_DEPTH = 4, /* root, files, a file, tensors */
};

int ttn_manifest_is_name(const char *name)
{
    size_t n = strlen(name);
    if (n == 0 || n > MOST_NAME || name[0] == '.' || strcmp(name, TTN_MANIFEST_NAME) == 0) return 0;
    for (const char *c = name; *c; c++)
        if (*c == '/' || (unsigned char)*c < ' ' || *c == 0x7F) return 0;
    return 1;
}

/* ---- writing ---- */

struct ttn_manifest_draft {
    json_t *root;
    json_t *files; /* in root */
};

static ttn_status no_memory(ttn_error *err)
{
    return TTN_FAIL(err, TTN_ENOMEM, "no memory for a manifest; end other programs");
}

static json_t *hash_value(ttn_hash128 hash)
{
    char text[TTN_HASH_TEXT];
    return json_string(ttn_hash_print(hash, text));
}

ttn_status ttn_manifest_draft_create(const char *format, int64_t version, ttn_manifest_draft **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_manifest_draft *d = ttn_alloc_or_say(1, sizeof *d, "a manifest", err);
    if (!d) return TTN_ENOMEM;
    d->root = json_object();
    d->files = json_object();
    int failed = json_object_set_new(d->root, "format", json_string(format));
    failed |= json_object_set_new(d->root, "format_version", json_integer(version));
    failed |= json_object_set_new(d->root, "titin_version", json_string(TTN_VERSION));
    failed |= json_object_set_new(d->root, "files", d->files);
    failed |= json_object_set_new(d->root, "xxh3_128", hash_value((ttn_hash128){0}));
    if (failed) {
        ttn_manifest_draft_destroy(d);
        return no_memory(err);
    }
    *ret = d;
    return TTN_OK;
}

ttn_status ttn_manifest_draft_file(ttn_manifest_draft *d, const char *name, int64_t bytes, ttn_hash128 hash,
                                   ttn_error *err)
{
    assert(ttn_manifest_is_name(name) && bytes >= 0 && !json_object_get(d->files, name));
    json_t *file = json_object();
    int failed = json_object_set_new(file, "bytes", json_integer(bytes));
    failed |= json_object_set_new(file, "xxh3_128", hash_value(hash));
    failed |= json_object_set_new(d->files, name, file);
    return failed ? no_memory(err) : TTN_OK;
}

ttn_status ttn_manifest_draft_tensor(ttn_manifest_draft *d, const char *file, const char *name, ttn_hash128 hash,
                                     ttn_error *err)
{
    json_t *of_file = json_object_get(d->files, file);
    assert(of_file);
    json_t *tensors = json_object_get(of_file, "tensors");
    if (!tensors) {
        tensors = json_object();
        if (json_object_set_new(of_file, "tensors", tensors) != 0) return no_memory(err);
    }
    assert(!json_object_get(tensors, name));
    return json_object_set_new(tensors, name, hash_value(hash)) == 0 ? TTN_OK : no_memory(err);
}

/* The whole text, so that its end can be filled in. */
typedef struct {
    char *bytes; /* NULL: only counted */
    size_t n;
} text;

static ttn_status take_text(void *ctx, const char *bytes, size_t n, ttn_error *err)
{
    (void)err;
    text *t = ctx;
    if (t->bytes) memcpy(t->bytes + t->n, bytes, n);
    t->n += n;
    return TTN_OK;
}

static void fill_in_hash(text *t)
{
    char digits[TTN_HASH_TEXT];
    size_t before = t->n - N_END;
    assert(memcmp(t->bytes + before, CLOSING_KEY, N_CLOSING_KEY) == 0);
    assert(memcmp(t->bytes + t->n - N_CLOSING, CLOSING, N_CLOSING) == 0);
    ttn_hash_print(ttn_hash128_of(t->bytes, before), digits);
    memcpy(t->bytes + before + N_CLOSING_KEY, digits, DIGITS);
}

static ttn_status write_text(const text *t, const char *path, ttn_error *err)
{
    ttn_atomic *a;
    ttn_status status = ttn_atomic_file_create(path, &a, err);
    if (status != TTN_OK) return status;
    status = ttn_atomic_write(a, t->bytes, t->n, err);
    if (status == TTN_OK) status = ttn_atomic_commit(a, err);
    ttn_atomic_destroy(a);
    return status;
}

static ttn_status path_of(const char *folder, const char *name, char *path, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    int n = snprintf(path, PATH_MAX, "%s/%s", folder, name);
    if (n < PATH_MAX) return TTN_OK;
    return TTN_FAIL(err, TTN_EINVAL, "%s: the path is too long; choose a shorter one", ttn_text_tail(folder, shown));
}

ttn_status ttn_manifest_draft_write(const ttn_manifest_draft *d, const char *folder, ttn_error *err)
{
    char path[PATH_MAX];
    text t = {0};
    ttn_status status = path_of(folder, TTN_MANIFEST_NAME, path, err);
    if (status == TTN_OK) status = ttn_json_dump(d->root, take_text, &t, err);
    if (status != TTN_OK) return status;
    t.bytes = ttn_alloc_or_say((int64_t)t.n, 1, "the text of a manifest", err);
    if (!t.bytes) return TTN_ENOMEM;
    t.n = 0;
    status = ttn_json_dump(d->root, take_text, &t, err);
    if (status == TTN_OK) {
        fill_in_hash(&t);
        status = write_text(&t, path, err);
    }
    ttn_free(t.bytes);
    return status;
}

void ttn_manifest_draft_destroy(ttn_manifest_draft *d)
{
    if (!d) return;
    json_decref(d->root);
    ttn_free(d);
}

/* ---- reading ---- */

struct ttn_manifest {
    ttn_json *json;
    const char *titin;
    ttn_manifest_file *file; /* (n_file) */
    const json_t **tensors;  /* (n_file); NULL: it has none */
    int n_file;
};

static ttn_status parse_hash(const ttn_json *j, const json_t *in, const char *key, ttn_hash128 *ret, ttn_error *err)
{
    const char *digits;
    char again[TTN_HASH_TEXT];
    ttn_status status = ttn_json_text(j, in, key, &digits, err);
    if (status != TTN_OK) return status;
    /* One hash has one text: capital digits would be a change that nobody sees. */
    if (!ttn_hash_parse(digits, ret) || strcmp(ttn_hash_print(*ret, again), digits) != 0)
        return ttn_json_fail(j, in, key, err, "is no checksum: 32 digits 0-9, a-f are expected");
    return TTN_OK;
}

static ttn_status parse_tensors(ttn_manifest *m, const json_t *file, int i, ttn_error *err)
{
    const json_t *tensors;
    const char *name;
    json_t *unused;
    if (!json_object_get(file, "tensors")) return TTN_OK;
    ttn_status status = ttn_json_object(m->json, file, "tensors", &tensors, err);
    if (status != TTN_OK) return status;
    m->tensors[i] = tensors;
    m->file[i].n_tensor = (int64_t)json_object_size(tensors);
    json_object_foreach((json_t *)tensors, name, unused)
    {
        ttn_hash128 hash;
        status = parse_hash(m->json, tensors, name, &hash, err);
        if (status != TTN_OK) return status;
    }
    return TTN_OK;
}

static ttn_status parse_file(ttn_manifest *m, const json_t *files, const char *name, int i, ttn_error *err)
{
    static const char *const keys[] = {"bytes", "xxh3_128", "tensors"};
    ttn_manifest_file *f = &m->file[i];
    const json_t *file;
    f->name = name;
    ttn_status status = ttn_json_object(m->json, files, name, &file, err);
    if (status == TTN_OK && !ttn_manifest_is_name(name))
        status = ttn_json_fail(m->json, files, name, err, "has a name that no file of this folder can have");
    if (status == TTN_OK) status = ttn_json_only(m->json, file, keys, sizeof keys / sizeof *keys, err);
    if (status == TTN_OK) status = ttn_json_integer(m->json, file, "bytes", 0, INT64_MAX, &f->bytes, err);
    if (status == TTN_OK) status = parse_hash(m->json, file, "xxh3_128", &f->hash, err);
    if (status == TTN_OK) status = parse_tensors(m, file, i, err);
    return status;
}

static ttn_status parse_files(ttn_manifest *m, const json_t *root, ttn_error *err)
{
    static const char *const keys[] = {"format", "format_version", "titin_version", "files", "xxh3_128"};
    const json_t *files;
    const char *name;
    json_t *unused;
    ttn_hash128 own;
    ttn_status status = ttn_json_only(m->json, root, keys, sizeof keys / sizeof *keys, err);
    if (status == TTN_OK) status = ttn_json_object(m->json, root, "files", &files, err);
    if (status == TTN_OK) status = parse_hash(m->json, root, "xxh3_128", &own, err);
    if (status != TTN_OK) return status;
    const int64_t n = (int64_t)json_object_size(files);
    m->file = ttn_alloc_or_say(n, sizeof *m->file, "the files of a manifest", err);
    m->tensors = ttn_alloc_or_say(n, sizeof *m->tensors, "the files of a manifest", err);
    if (!m->file || !m->tensors) return TTN_ENOMEM;
    json_object_foreach((json_t *)files, name, unused)
    {
        status = parse_file(m, files, name, m->n_file, err);
        if (status != TTN_OK) return status;
        m->n_file++;
    }
    return TTN_OK;
}

/* Does the text end in the hash of what stands before? */
static int is_whole(const char *bytes, size_t n)
{
    char digits[TTN_HASH_TEXT];
    if (!bytes || n < N_END || memcmp(bytes + n - N_CLOSING, CLOSING, N_CLOSING) != 0) return 0;
    const char *end = bytes + n - N_END;
    ttn_hash_print(ttn_hash128_of(bytes, n - N_END), digits);
    return memcmp(end, CLOSING_KEY, N_CLOSING_KEY) == 0 && memcmp(end + N_CLOSING_KEY, digits, DIGITS) == 0;
}

/* What it is, before anything else is understood. */
static ttn_status check_version(ttn_manifest *m, const char *format, int64_t version, int *other, ttn_error *err)
{
    const json_t *root = ttn_json_root(m->json);
    const char *found = "";
    int64_t found_version = 0;
    ttn_status status = ttn_json_text(m->json, root, "format", &found, err);
    if (status == TTN_OK && strcmp(found, format) != 0)
        status = ttn_json_fail(m->json, root, "format", err, "is '%.100s', and '%s' is expected", found, format);
    if (status == TTN_OK) status = ttn_json_text(m->json, root, "titin_version", &m->titin, err);
    if (status == TTN_OK) status = ttn_json_integer(m->json, root, "format_version", 1, INT64_MAX, &found_version, err);
    if (status != TTN_OK || found_version == version) return status;
    *other = 1;
    return ttn_json_fail(m->json, root, "format_version", err,
                         "is %" PRId64 ", written by titin %.100s; this titin (" TTN_VERSION ") reads version %" PRId64
                         ": use titin %.100s, or one that is newer",
                         found_version, m->titin, version, m->titin);
}

ttn_status ttn_manifest_parse(const char *name, const void *bytes, size_t n, const char *format, int64_t version,
                              ttn_manifest **ret, int *opt_other, ttn_error *err)
{
    const ttn_json_rules rules = {
        .most_bytes = MOST_BYTES,
        .most_depth = MOST_DEPTH,
        .failure = TTN_ECHECKPOINT,
    };
    int other = 0;
    *ret = NULL;
    if (opt_other) *opt_other = 0;
    ttn_manifest *m = ttn_alloc_or_say(1, sizeof *m, "a manifest", err);
    if (!m) return TTN_ENOMEM;
    ttn_status status = ttn_json_parse(name, bytes, n, &rules, &m->json, err);
    if (status == TTN_OK) status = check_version(m, format, version, &other, err);
    if (status == TTN_OK && !is_whole(bytes, n)) {
        char shown[TTN_TAIL_ROOM];
        status = TTN_FAIL(err, TTN_ECHECKPOINT, "%s: is damaged: it does not end in the checksum of its own text",
                          ttn_text_tail(name, shown));
    }
    if (status == TTN_OK) status = parse_files(m, ttn_json_root(m->json), err);
    if (status == TTN_OK) {
        *ret = m;
        return TTN_OK;
    }
    /* A damaged version is damage. */
    if (opt_other) *opt_other = other && is_whole(bytes, n);
    ttn_manifest_close(m);
    return status;
}

/* ---- files ---- */

/* *fd: open for reading, regular, `about` known. TTN_ECHECKPOINT when there is none such. */
static ttn_status open_file(const char *path, int *fd, struct stat *about, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    ttn_text_tail(path, shown);
    *about = (struct stat){0};
    *fd = ttn_disk_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    int error = *fd < 0 || fstat(*fd, about) != 0 ? errno : 0;
    if (!error && S_ISREG(about->st_mode)) return TTN_OK;
    if (*fd >= 0) (void)ttn_disk_close(*fd);
    *fd = -1;
    if (error == ENOENT) return TTN_FAIL(err, TTN_ECHECKPOINT, "%s: is missing", shown);
    if (!error || error == ELOOP) return TTN_FAIL(err, TTN_ECHECKPOINT, "%s: is not a regular file", shown);
    return TTN_FAIL(err, error == ENOTDIR ? TTN_ECHECKPOINT : TTN_EIO, "%s: cannot be opened: %s%s", shown,
                    strerror(error), ttn_disk_advice(error));
}

static ttn_status read_all(int fd, const char *path, int64_t n, char **ret, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    *ret = ttn_alloc_or_say(n, 1, "the text of a manifest", err);
    if (!*ret) return TTN_ENOMEM;
    ssize_t got = ttn_disk_read_at(fd, *ret, (size_t)n, 0);
    if (got == n) return TTN_OK;
    int error = got < 0 ? errno : EIO;
    ttn_free(*ret);
    *ret = NULL;
    return TTN_FAIL(err, TTN_EIO, "%s: cannot be read: %s%s", ttn_text_tail(path, shown), strerror(error),
                    ttn_disk_advice(error));
}

ttn_status ttn_manifest_read(const char *folder, const char *format, int64_t version, ttn_manifest **ret,
                             int *opt_other, ttn_error *err)
{
    char path[PATH_MAX], shown[TTN_TAIL_ROOM];
    int fd = -1;
    struct stat about;
    char *bytes = NULL;
    *ret = NULL;
    if (opt_other) *opt_other = 0;
    ttn_status status = path_of(folder, TTN_MANIFEST_NAME, path, err);
    if (status == TTN_OK) status = open_file(path, &fd, &about, err);
    if (status != TTN_OK) return status;
    if (about.st_size > MOST_BYTES)
        status = TTN_FAIL(err, TTN_ECHECKPOINT, "%s: has %" PRId64 " bytes; a manifest has at most %d",
                          ttn_text_tail(path, shown), (int64_t)about.st_size, MOST_BYTES);
    if (status == TTN_OK) status = read_all(fd, path, about.st_size, &bytes, err);
    (void)ttn_disk_close(fd);
    if (status == TTN_OK)
        status = ttn_manifest_parse(path, bytes, (size_t)about.st_size, format, version, ret, opt_other, err);
    ttn_free(bytes);
    return status;
}

void ttn_manifest_close(ttn_manifest *m)
{
    if (!m) return;
    ttn_json_close(m->json);
    ttn_free(m->file);
    ttn_free(m->tensors);
    ttn_free(m);
}

const char *ttn_manifest_titin(const ttn_manifest *m)
{
    return m->titin;
}

int ttn_manifest_file_count(const ttn_manifest *m)
{
    return m->n_file;
}

const ttn_manifest_file *ttn_manifest_file_at(const ttn_manifest *m, int i)
{
    return i >= 0 && i < m->n_file ? &m->file[i] : NULL;
}

int ttn_manifest_find(const ttn_manifest *m, const char *name)
{
    for (int i = 0; i < m->n_file; i++)
        if (strcmp(m->file[i].name, name) == 0) return i;
    return -1;
}

int ttn_manifest_tensor(const ttn_manifest *m, int i, const char *name, ttn_hash128 *ret)
{
    if (i < 0 || i >= m->n_file || !m->tensors[i]) return 0;
    const char *digits = json_string_value(json_object_get(m->tensors[i], name));
    return digits && ttn_hash_parse(digits, ret);
}

/* ---- do the files hold what they should? ---- */

enum { PIECE = 1 << 20 };

static ttn_status hash_file(int fd, const char *path, ttn_hash *h, char *piece, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    ttn_hash_reset(h);
    for (int64_t at = 0;;) {
        ssize_t n = ttn_disk_read_at(fd, piece, PIECE, at);
        if (n < 0)
            return TTN_FAIL(err, TTN_EIO, "%s: cannot be read: %s%s", ttn_text_tail(path, shown), strerror(errno),
                            ttn_disk_advice(errno));
        if (n == 0) return TTN_OK;
        ttn_hash_update(h, piece, (size_t)n);
        at += n;
    }
}

/* h NULL: its length only. */
static ttn_status check_file(const ttn_manifest_file *f, const char *folder, ttn_hash *h, char *piece, ttn_error *err)
{
    char path[PATH_MAX], shown[TTN_TAIL_ROOM];
    int fd = -1;
    struct stat about;
    ttn_status status = path_of(folder, f->name, path, err);
    if (status == TTN_OK) status = open_file(path, &fd, &about, err);
    if (status != TTN_OK) return status;
    ttn_text_tail(path, shown);
    if (about.st_size != f->bytes)
        status = TTN_FAIL(
            err, TTN_ECHECKPOINT, "%s: has %" PRId64 " bytes, and its manifest says %" PRId64 ": it is %s", shown,
            (int64_t)about.st_size, f->bytes, about.st_size < f->bytes ? "cut short" : "not the file that was saved");
    if (status == TTN_OK && h) status = hash_file(fd, path, h, piece, err);
    if (status == TTN_OK && h && !ttn_hash_same(ttn_hash_final(h), f->hash))
        status = TTN_FAIL(err, TTN_ECHECKPOINT,
                          "%s: is damaged: its length is right, but not its checksum (a bit has flipped, or somebody "
                          "changed it)",
                          shown);
    (void)ttn_disk_close(fd);
    return status;
}

ttn_status ttn_manifest_check(const ttn_manifest *m, const char *folder, int verify, ttn_error *err)
{
    ttn_hash *h = NULL;
    char *piece = NULL;
    ttn_status status = TTN_OK;
    if (verify) {
        status = ttn_hash_create(&h, err);
        piece = ttn_alloc_or_say(PIECE, 1, "reading a checkpoint", err);
        if (!piece) status = TTN_ENOMEM;
    }
    for (int i = 0; i < m->n_file && status == TTN_OK; i++) /* lengths first: they cost nothing */
        status = check_file(&m->file[i], folder, NULL, NULL, err);
    for (int i = 0; verify && i < m->n_file && status == TTN_OK; i++)
        status = check_file(&m->file[i], folder, h, piece, err);
    ttn_hash_destroy(h);
    ttn_free(piece);
    return status;
}
