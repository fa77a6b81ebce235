#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "core/text.h"
#include "train/files/json.h"
#include "train/files/safetensors_file.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are read as they lie in the file");

/* One file of the set. */
typedef struct {
    ttn_reader *reader; /* NULL: a header alone */
    char *header;       /* names and notes point into it */
    char *name;         /* in the arena */
} part;

struct ttn_safetensors {
    part *part;
    int n_part;
    ttn_stored_list list;
    const ttn_stored_tensor **by_name; /* (n_tensor) */
    ttn_arena *texts;
    int64_t most_header;
    int allow_nonfinite;
    const ttn_log *log;
};

/* ---- types ---- */

int ttn_stored_dtype(ttn_stored_type type, ttn_dtype *ret)
{
    static const struct {
        ttn_stored_type stored;
        ttn_dtype dtype;
    } same[] = {
        {TTN_STORED_F32, TTN_F32}, {TTN_STORED_F16, TTN_F16}, {TTN_STORED_BF16, TTN_BF16}, {TTN_STORED_F64, TTN_F64},
        {TTN_STORED_I64, TTN_I64}, {TTN_STORED_I32, TTN_I32}, {TTN_STORED_U8, TTN_U8},
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        if (same[i].stored != type) continue;
        *ret = same[i].dtype;
        return 1;
    }
    return 0;
}

ttn_stored_type ttn_stored_of(ttn_dtype type)
{
    ttn_dtype stored = ttn_dtype_stored(type), same;
    for (int i = 0; i < TTN_STORED_COUNT; i++)
        if (ttn_stored_dtype((ttn_stored_type)i, &same) && same == stored) return (ttn_stored_type)i;
    assert(0 && "every type of core/tensor.h can be stored");
    return TTN_STORED_COUNT;
}

static int is_real_type(ttn_stored_type type)
{
    return type == TTN_STORED_F32 || type == TTN_STORED_F16 || type == TTN_STORED_BF16 || type == TTN_STORED_F64;
}

/* "[2, 3]" behind what is there. */
static void print_shape(int ndim, const int64_t *dim, char *text, size_t room)
{
    size_t used = strlen(text);
    for (int i = 0; i <= ndim && used < room; i++) {
        if (i < ndim)
            used += (size_t)snprintf(text + used, room - used, "%s%" PRId64, i == 0 ? "[" : ", ", dim[i]);
        else
            used += (size_t)snprintf(text + used, room - used, "%s", ndim == 0 ? "[]" : "]");
    }
}

char *ttn_stored_print(const ttn_stored_tensor *t, char *text)
{
    snprintf(text, TTN_STORED_TEXT, "%s ", ttn_stored_name(t->type));
    print_shape(t->ndim, t->dim, text, TTN_STORED_TEXT);
    return text;
}

/* ---- a set ---- */

/* Room for so many parts; NULL: no memory. */
static ttn_safetensors *create(const ttn_safetensors_options *options, int most_part, ttn_error *err)
{
    static const ttn_safetensors_options none = {0};
    if (!options) options = &none;
    ttn_safetensors *s = ttn_alloc_or_say(1, sizeof *s, "a set of safetensors files", err);
    if (!s) return NULL;
    *s = (ttn_safetensors){
        .most_header = options->most_header > 0 ? options->most_header : TTN_HEADER_CAP,
        .allow_nonfinite = options->allow_nonfinite,
        .log = options->log,
    };
    if (s->most_header > TTN_HEADER_HARD_CAP) s->most_header = TTN_HEADER_HARD_CAP;
    s->part = ttn_alloc_or_say(most_part, sizeof *s->part, "a set of safetensors files", err);
    if (s->part && ttn_arena_create(0, &s->texts, err) == TTN_OK && ttn_arena_create(0, &s->list.dims, err) == TTN_OK)
        return s;
    ttn_safetensors_close(s);
    return NULL;
}

void ttn_safetensors_close(ttn_safetensors *s)
{
    if (!s) return;
    for (int i = 0; i < s->n_part; i++) {
        ttn_reader_close(s->part[i].reader);
        ttn_free(s->part[i].header);
    }
    ttn_free(s->part);
    ttn_free(s->list.tensor);
    ttn_free(s->list.note);
    ttn_free(s->by_name);
    ttn_arena_destroy(s->list.dims);
    ttn_arena_destroy(s->texts);
    ttn_free(s);
}

/* The header of part n_part, which owns what it has from here on. */
static ttn_status take_part(ttn_safetensors *s, part p, int64_t n, int64_t size, ttn_error *err)
{
    int file = s->n_part;
    s->part[file] = p;
    s->n_part++;
    return ttn_header_take(&s->list, p.name, file, p.header, n, size, err);
}

static ttn_status open_part(ttn_safetensors *s, const char *path, ttn_error *err)
{
    part p = {0};
    int64_t n = 0;
    ttn_status status = ttn_reader_open(path, &p.reader, err);
    if (status == TTN_OK) status = ttn_header_read(p.reader, s->most_header, &p.header, &n, err);
    if (status == TTN_OK) {
        p.name = ttn_arena_text(s->texts, "%s", ttn_reader_name(p.reader));
        if (!p.name) status = TTN_FAIL(err, TTN_ENOMEM, "no memory for the name of a file; end other programs");
    }
    if (status == TTN_OK) return take_part(s, p, n, ttn_reader_size(p.reader), err);
    ttn_reader_close(p.reader);
    ttn_free(p.header);
    return status;
}

static int name_order(const void *a, const void *b)
{
    const ttn_stored_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* When all parts are there. */
static ttn_status sort_names(ttn_safetensors *s, ttn_error *err)
{
    int64_t n = s->list.n_tensor;
    s->by_name = ttn_alloc_or_say(n, sizeof *s->by_name, "the names of tensors", err);
    if (!s->by_name) return TTN_ENOMEM;
    for (int64_t i = 0; i < n; i++)
        s->by_name[i] = &s->list.tensor[i];
    if (n > 0) qsort(s->by_name, (size_t)n, sizeof *s->by_name, name_order);
    for (int64_t i = 1; i < n; i++) {
        const ttn_stored_tensor *a = s->by_name[i - 1], *b = s->by_name[i];
        if (strcmp(a->name, b->name) != 0) continue;
        const char *file = s->part[a->file].name;
        if (a->file != b->file)
            return TTN_FAIL(err, TTN_ECHECKPOINT, "%s: tensor '%.200s' stands in it and in %s", file, a->name,
                            s->part[b->file].name);
        int64_t begin = TTN_HEADER_LENGTH;
        for (int64_t k = 0; k < n; k++) /* the first tensor of a file is where its data begin */
            if (s->list.tensor[k].file == a->file) {
                begin = s->list.tensor[k].begin;
                break;
            }
        return TTN_FAIL(err, TTN_ECHECKPOINT,
                        "%s: tensor '%.200s' stands twice, with data_offsets [%" PRId64 ", %" PRId64 ") and [%" PRId64
                        ", %" PRId64 "): readers differ in which they take",
                        file, a->name, a->begin - begin, a->begin - begin + a->bytes, b->begin - begin,
                        b->begin - begin + b->bytes);
    }
    return TTN_OK;
}

ttn_status ttn_safetensors_parse(const char *name, const void *bytes, int64_t n, int64_t size,
                                 const ttn_safetensors_options *options, ttn_safetensors **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_safetensors *s = create(options, 1, err);
    if (!s) return TTN_ENOMEM;
    part p = {.name = ttn_arena_text(s->texts, "%s", name)};
    p.header = ttn_alloc_or_say(n + 1, 1, name, err);
    if (!p.header || !p.name) {
        ttn_free(p.header);
        ttn_safetensors_close(s);
        return TTN_FAIL(err, TTN_ENOMEM, "no memory for a header; end other programs");
    }
    if (n > 0) memcpy(p.header, bytes, (size_t)n);
    ttn_status status = take_part(s, p, n, size, err);
    if (status == TTN_OK) status = sort_names(s, err);
    if (status == TTN_OK)
        *ret = s;
    else
        ttn_safetensors_close(s);
    return status;
}

static ttn_status open_one(const char *path, const ttn_safetensors_options *options, ttn_safetensors **ret,
                           ttn_error *err)
{
    ttn_safetensors *s = create(options, 1, err);
    if (!s) return TTN_ENOMEM;
    ttn_status status = open_part(s, path, err);
    if (status == TTN_OK) status = sort_names(s, err);
    if (status == TTN_OK)
        *ret = s;
    else
        ttn_safetensors_close(s);
    return status;
}

/* ---- an index ---- */

enum { MOST_INDEX_BYTES = TTN_HEADER_CAP, MOST_SHARDS = 100000 };

/* A shard's name is that of a file beside the index. */
static ttn_status check_shard_name(const ttn_json *j, const json_t *map, const char *key, const char *file,
                                   ttn_error *err)
{
    size_t n = strlen(file);
    const char *fault = n == 0 || n > NAME_MAX ? "is no file name" : NULL;
    if (!fault && (strchr(file, '/') || strcmp(file, ".") == 0 || strcmp(file, "..") == 0))
        fault = "leads to another folder, and shards lie beside their index";
    if (!fault) return TTN_OK;
    return ttn_json_fail(j, map, key, err, "the shard '%.100s' %s", file, fault);
}

static int text_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The different files of the map, sorted: *ret (*n), in the arena. */
static ttn_status list_shards(const ttn_json *j, const json_t *map, ttn_arena *arena, const char ***ret, int *n,
                              ttn_error *err)
{
    int64_t n_all = (int64_t)json_object_size(map), n_seen = 0;
    const char **file = ttn_arena_array(arena, n_all, sizeof *file);
    if (!file) return TTN_FAIL(err, TTN_ENOMEM, "no memory for the names of shards; end other programs");
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)map, key, value)
    {
        if (json_typeof(value) != JSON_STRING)
            return ttn_json_fail(
                j, map, key, err, "'%.100s' should have the name of a file, and has something else%s", key,
                json_typeof(value) == JSON_OBJECT ? "; is this the header of a safetensors file?" : "");
        file[n_seen] = json_string_value(value);
        ttn_status status = check_shard_name(j, map, key, file[n_seen], err);
        if (status != TTN_OK) return status;
        n_seen++;
    }
    if (n_all == 0) return ttn_json_fail(j, map, NULL, err, "the weight_map that begins here names no tensor");
    qsort(file, (size_t)n_all, sizeof *file, text_order);
    int64_t kept = 0;
    for (int64_t i = 0; i < n_all; i++)
        if (i == 0 || strcmp(file[i], file[kept - 1]) != 0) {
            file[kept] = file[i];
            kept++;
        }
    if (kept > MOST_SHARDS)
        return ttn_json_fail(j, map, NULL, err, "the weight_map names %" PRId64 " files, at most %d are taken", kept,
                             MOST_SHARDS);
    *ret = file;
    *n = (int)kept;
    return TTN_OK;
}

/* Every tensor of the map is where the map says; others are told to the log. */
static ttn_status check_map(ttn_safetensors *s, const ttn_json *j, const json_t *map, const char *const *shard,
                            ttn_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)map, key, value)
    {
        const ttn_stored_tensor *t = ttn_safetensors_find(s, key);
        const char *file = json_string_value(value);
        if (!t)
            return ttn_json_fail(j, map, key, err, "tensor '%.200s' should be in %.200s, and is in no shard", key,
                                 file);
        if (strcmp(shard[t->file], file) != 0)
            return ttn_json_fail(j, map, key, err, "tensor '%.200s' should be in %.200s, and is in %.200s", key, file,
                                 shard[t->file]);
    }
    for (int64_t i = 0; i < s->list.n_tensor; i++)
        if (!json_object_get(map, s->list.tensor[i].name))
            ttn_log_say(s->log, TTN_LOG_WARNING, "%s: tensor '%.200s' is not in the index, and taken all the same",
                        s->part[s->list.tensor[i].file].name, s->list.tensor[i].name);
    return TTN_OK;
}

static void check_total(const ttn_safetensors *s, const char *name, const json_t *root)
{
    const json_t *total = json_object_get(json_object_get(root, "metadata"), "total_size");
    if (!total) return;
    int64_t bytes = 0;
    for (int64_t i = 0; i < s->list.n_tensor; i++)
        bytes += s->list.tensor[i].bytes;
    if (json_number_value(total) != (double)bytes)
        ttn_log_say(s->log, TTN_LOG_WARNING,
                    "%s: says that all tensors have %.0f bytes, and they have %" PRId64 "; read all the same", name,
                    json_number_value(total), bytes);
}

static ttn_status open_shards(ttn_safetensors *s, const char *index, const char *const *shard, int n, ttn_error *err)
{
    assert(shard);
    const char *slash = strrchr(index, '/');
    int n_folder = slash ? (int)(slash - index) + 1 : 0;
    for (int i = 0; i < n; i++) {
        const char *path = ttn_arena_text(s->texts, "%.*s%s", n_folder, index, shard[i]);
        if (!path) return TTN_FAIL(err, TTN_ENOMEM, "no memory for the names of shards; end other programs");
        ttn_status status = open_part(s, path, err);
        if (status == TTN_EINVAL && err && err->status == TTN_EINVAL) {
            ttn_error why = *err;
            char shown[TTN_TAIL_ROOM];
            *err = (ttn_error){0};
            status =
                TTN_FAIL(err, TTN_ECHECKPOINT, "%s (the shard is named in %s)", why.text, ttn_text_tail(index, shown));
        }
        if (status != TTN_OK) return status;
    }
    return TTN_OK;
}

static ttn_status open_index(const char *path, const ttn_safetensors_options *options, ttn_safetensors **ret,
                             ttn_error *err)
{
    ttn_json_rules rules = {.most_bytes = MOST_INDEX_BYTES, .most_depth = 8, .failure = TTN_ECHECKPOINT};
    ttn_json *j;
    ttn_safetensors *s = NULL;
    ttn_arena *names = NULL;
    const json_t *map = NULL;
    const char **shard = NULL;
    int n = 0;
    ttn_status status = ttn_json_read(path, &rules, &j, err);
    if (status == TTN_OK) status = ttn_arena_create(0, &names, err);
    if (status == TTN_OK) status = ttn_json_object(j, ttn_json_root(j), "weight_map", &map, err);
    if (status == TTN_OK) status = list_shards(j, map, names, &shard, &n, err);
    if (status == TTN_OK) {
        s = create(options, n, err);
        if (!s) status = TTN_ENOMEM;
    }
    if (status == TTN_OK) status = open_shards(s, path, shard, n, err);
    if (status == TTN_OK) status = sort_names(s, err);
    if (status == TTN_OK) status = check_map(s, j, map, shard, err);
    if (status == TTN_OK) {
        check_total(s, path, ttn_json_root(j));
        *ret = s;
    } else {
        ttn_safetensors_close(s);
    }
    ttn_arena_destroy(names);
    ttn_json_close(j);
    return status;
}

/* ---- what a path leads to ---- */

static int is_there(ttn_arena *texts, const char *folder, const char *name, const char **ret)
{
    struct stat about;
    *ret = ttn_arena_text(texts, "%s/%s", folder, name);
    return *ret && stat(*ret, &about) == 0;
}

static ttn_status open_folder(const char *folder, const ttn_safetensors_options *options, ttn_safetensors **ret,
                              ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    ttn_arena *texts;
    const char *path;
    ttn_status status = ttn_arena_create(8192, &texts, err);
    if (status != TTN_OK) return status;
    if (is_there(texts, folder, "model.safetensors", &path))
        status = open_one(path, options, ret, err);
    else if (is_there(texts, folder, "model.safetensors.index.json", &path))
        status = open_index(path, options, ret, err);
    else if (is_there(texts, folder, "pytorch_model.bin", &path))
        status =
            TTN_FAIL(err, TTN_ECHECKPOINT,
                     "%s: holds pytorch_model.bin, a pickle, which can run any program when it is read; convert it: "
                     "python -c \"import torch, safetensors.torch as s; "
                     "s.save_file({k: v.contiguous().clone() for k, v in torch.load('pytorch_model.bin', "
                     "weights_only=True).items()}, 'model.safetensors', {'format': 'pt'})\"",
                     ttn_text_tail(folder, shown));
    else
        status = TTN_FAIL(err, path ? TTN_EINVAL : TTN_ENOMEM,
                          "%s: holds neither model.safetensors nor model.safetensors.index.json",
                          ttn_text_tail(folder, shown));
    ttn_arena_destroy(texts);
    return status;
}

static int ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

ttn_status ttn_safetensors_open(const char *path, const ttn_safetensors_options *options, ttn_safetensors **ret,
                                ttn_error *err)
{
    *ret = NULL;
    struct stat about;
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) return open_folder(path, options, ret, err);
    if (ends_in(path, ".json")) return open_index(path, options, ret, err);
    return open_one(path, options, ret, err);
}

/* ---- what is in it ---- */

int64_t ttn_safetensors_count(const ttn_safetensors *s)
{
    return s->list.n_tensor;
}

const ttn_stored_tensor *ttn_safetensors_at(const ttn_safetensors *s, int64_t i)
{
    assert(i >= 0 && i < s->list.n_tensor);
    return &s->list.tensor[i];
}

const ttn_stored_tensor *ttn_safetensors_find(const ttn_safetensors *s, const char *name)
{
    int64_t low = 0, high = s->list.n_tensor;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        int order = strcmp(s->by_name[middle]->name, name);
        if (order == 0) return s->by_name[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

int64_t ttn_safetensors_note_count(const ttn_safetensors *s)
{
    return s->list.n_note;
}

const ttn_stored_note *ttn_safetensors_note(const ttn_safetensors *s, int64_t i)
{
    assert(i >= 0 && i < s->list.n_note);
    return &s->list.note[i];
}

int ttn_safetensors_file_count(const ttn_safetensors *s)
{
    return s->n_part;
}

const char *ttn_safetensors_file(const ttn_safetensors *s, int i)
{
    assert(i >= 0 && i < s->n_part);
    return s->part[i].name;
}

const ttn_log *ttn_safetensors_log(const ttn_safetensors *s)
{
    return s->log;
}

/* ---- numbers ---- */

ttn_status ttn_safetensors_read_bytes(const ttn_safetensors *s, const ttn_stored_tensor *t, int64_t at, int64_t n,
                                      void *to, ttn_error *err)
{
    const part *p = &s->part[t->file];
    assert(p->reader && at >= 0 && n >= 0 && at <= t->bytes && n <= t->bytes - at);
    return ttn_reader_read(p->reader, t->begin + at, to, (size_t)n, err);
}

static ttn_status check_finite(const ttn_safetensors *s, const ttn_stored_tensor *t, int64_t first,
                               const ttn_converted *sum, ttn_error *err)
{
    if (sum->nonfinite == 0 || s->allow_nonfinite) return TTN_OK;
    return TTN_FAIL(err, TTN_ENUMERIC,
                    "%s: tensor '%.200s' holds NaN or infinity, first as number %" PRId64
                    "; such weights spoil every result; take an earlier checkpoint",
                    s->part[t->file].name, t->name, first + sum->first_nonfinite);
}

ttn_status ttn_safetensors_read(const ttn_safetensors *s, const ttn_stored_tensor *t, int64_t first, int64_t n,
                                ttn_dtype as, void *to, ttn_converted *sum, ttn_error *err)
{
    assert(first >= 0 && n >= 0 && first <= t->n && n <= t->n - first);
    ttn_dtype from;
    if (!is_real_type(t->type) || !ttn_stored_dtype(t->type, &from)) {
        char text[TTN_STORED_TEXT];
        return TTN_FAIL(err, TTN_ECHECKPOINT, "%s: tensor '%.200s' is %s, and titin reads F32, F16, BF16 and F64",
                        s->part[t->file].name, t->name, ttn_stored_print(t, text));
    }
    ttn_converted mine = {0};
    const int64_t size = (int64_t)ttn_dtype_size(from), size_to = (int64_t)ttn_dtype_size(as);
    unsigned char piece[32 << 10];
    const int64_t most = (int64_t)sizeof piece / size;
    ttn_status status = TTN_OK;
    if (from == ttn_dtype_stored(as)) {
        status = ttn_safetensors_read_bytes(s, t, first * size, n * size, to, err);
        if (status == TTN_OK) ttn_convert_check(n, from, to, &mine);
    } else {
        for (int64_t done = 0; done < n && status == TTN_OK; done += most) {
            int64_t part_n = n - done < most ? n - done : most;
            status = ttn_safetensors_read_bytes(s, t, (first + done) * size, part_n * size, piece, err);
            if (status == TTN_OK) ttn_convert(part_n, from, piece, as, (char *)to + done * size_to, &mine);
        }
    }
    if (status == TTN_OK) status = check_finite(s, t, first, &mine, err);
    if (status == TTN_OK && sum) {
        if (sum->nonfinite == 0 && mine.nonfinite > 0) sum->first_nonfinite = sum->n + mine.first_nonfinite;
        sum->nonfinite += mine.nonfinite;
        sum->overflowed += mine.overflowed;
        sum->rounded += mine.rounded;
        sum->n += mine.n;
    }
    return status;
}
