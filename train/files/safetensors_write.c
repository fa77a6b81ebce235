#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "core/atomic.h"
#include "core/memory.h"
#include "core/text.h"
#include "train/files/json.h"
#include "train/files/safetensors_file.h"

enum { PIECE = 1 << 20, HEADER_STEP = 8 };

/* A text that grows; `failed` sticks. */
typedef struct {
    char *bytes;
    size_t n, room;
    int failed;
} text;

static void add(text *t, const char *bytes, size_t n)
{
    if (t->failed) return;
    if (n > t->room - t->n) {
        size_t room = 2 * (t->n + n) + 1024;
        char *larger = ttn_alloc(room);
        if (!larger) {
            t->failed = 1;
            return;
        }
        if (t->n > 0) memcpy(larger, t->bytes, t->n);
        ttn_free(t->bytes);
        t->bytes = larger;
        t->room = room;
    }
    memcpy(t->bytes + t->n, bytes, n);
    t->n += n;
}

static void add_text(text *t, const char *word)
{
    add(t, word, strlen(word));
}

static void add_number(text *t, int64_t number)
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%" PRId64, number);
    add(t, digits, (size_t)n);
}

/* In quotes, escaped as the reference does it. */
static void add_quoted(text *t, const char *word)
{
    static const char special[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    add_text(t, "\"");
    for (const char *c = word; *c; c++) {
        const char *found = strchr(special, *c);
        char escape[8];
        if (found)
            snprintf(escape, sizeof escape, "\\%c", letters[found - special]);
        else if ((unsigned char)*c < ' ')
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned char)*c);
        else
            snprintf(escape, sizeof escape, "%c", *c);
        add_text(t, escape);
    }
    add_text(t, "\"");
}

/* ---- order ---- */

/* What qsort sees: it takes no context. */
typedef struct {
    const ttn_tensor_to_write *tensor;
    int64_t i; /* in the caller's list */
} place;

static int file_order(const void *a, const void *b)
{
    const ttn_tensor_to_write *x = ((const place *)a)->tensor, *y = ((const place *)b)->tensor;
    ttn_stored_type type_x = ttn_stored_of(x->desc.type), type_y = ttn_stored_of(y->desc.type);
    if (type_x != type_y) return type_x > type_y ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int name_order(const void *a, const void *b)
{
    return strcmp(((const place *)a)->tensor->name, ((const place *)b)->tensor->name);
}

/* Would a reader take it? */
static ttn_status check_tensor(const ttn_tensor_to_write *t, ttn_error *err)
{
    const char *fault = ttn_header_name_fault(t->name, strlen(t->name));
    if (!fault && strcmp(t->name, "__metadata__") == 0) fault = "is kept for notes";
    if (fault) return TTN_FAIL(err, TTN_EINVAL, "a tensor cannot be written as '%.200s': the name %s", t->name, fault);
    return ttn_desc_check(&t->desc, t->name, err);
}

/* All are such that a reader takes them; *ret (n_tensor) in the file's order, the caller's to free. */
static ttn_status sort_tensors(const ttn_safetensors_content *c, place **ret, ttn_error *err)
{
    const int64_t n = c->n_tensor;
    place *order = ttn_alloc_or_say(n, sizeof *order, "the order of tensors", err);
    if (!order) return TTN_ENOMEM;
    ttn_status status = TTN_OK;
    for (int64_t i = 0; i < n && status == TTN_OK; i++) {
        order[i] = (place){.tensor = &c->tensor[i], .i = i};
        status = check_tensor(&c->tensor[i], err);
    }
    if (status == TTN_OK && n > 0) qsort(order, (size_t)n, sizeof *order, name_order);
    for (int64_t i = 1; i < n && status == TTN_OK; i++)
        if (name_order(&order[i - 1], &order[i]) == 0)
            status = TTN_FAIL(err, TTN_EINVAL, "two tensors to be written are called '%.200s'", order[i].tensor->name);
    if (status != TTN_OK) {
        ttn_free(order);
        return status;
    }
    if (n > 0) qsort(order, (size_t)n, sizeof *order, file_order);
    *ret = order;
    return TTN_OK;
}

/* ---- one file ---- */

static void add_tensor(text *t, const ttn_tensor_to_write *tensor, int64_t begin)
{
    add_quoted(t, tensor->name);
    add_text(t, ":{\"dtype\":");
    add_quoted(t, ttn_stored_name(ttn_stored_of(tensor->desc.type)));
    add_text(t, ",\"shape\":[");
    for (int d = 0; d < tensor->desc.ndim; d++) {
        if (d > 0) add_text(t, ",");
        add_number(t, tensor->desc.dim[d]);
    }
    add_text(t, "],\"data_offsets\":[");
    add_number(t, begin);
    add_text(t, ",");
    add_number(t, begin + (int64_t)ttn_desc_bytes(&tensor->desc));
    add_text(t, "]}");
}

/* Length, JSON and padding of these n tensors. The caller frees ret->bytes. */
static ttn_status make_header(const ttn_safetensors_content *c, const place *order, int64_t n, text *ret,
                              ttn_error *err)
{
    text t = {0};
    add(&t, "\0\0\0\0\0\0\0\0", TTN_HEADER_LENGTH);
    add_text(&t, "{\"__metadata__\":{\"format\":\"pt\"");
    for (int64_t i = 0; i < c->n_note; i++) {
        if (strcmp(c->note[i].key, "format") == 0) continue;
        add_text(&t, ",");
        add_quoted(&t, c->note[i].key);
        add_text(&t, ":");
        add_quoted(&t, c->note[i].value);
    }
    add_text(&t, "}");
    int64_t begin = 0;
    for (int64_t i = 0; i < n; i++) {
        add_text(&t, ",");
        add_tensor(&t, order[i].tensor, begin);
        begin += (int64_t)ttn_desc_bytes(&order[i].tensor->desc);
    }
    add_text(&t, "}");
    while (t.n % HEADER_STEP != 0 && !t.failed)
        add_text(&t, " ");
    if (t.failed) {
        ttn_free(t.bytes);
        return TTN_FAIL(err, TTN_ENOMEM, "no memory for the header of a safetensors file; end other programs");
    }
    uint64_t length = t.n - TTN_HEADER_LENGTH;
    for (int i = 0; i < TTN_HEADER_LENGTH; i++)
        t.bytes[i] = (char)(length >> (8 * i) & 0xff);
    *ret = t;
    return TTN_OK;
}

static ttn_status emit_numbers(const ttn_safetensors_content *c, const place *p, char *piece,
                               ttn_safetensors_taker take, void *ctx, ttn_error *err)
{
    int64_t bytes = (int64_t)ttn_desc_bytes(&p->tensor->desc);
    ttn_status status = TTN_OK;
    for (int64_t at = 0; at < bytes && status == TTN_OK; at += PIECE) {
        int64_t n = bytes - at < PIECE ? bytes - at : PIECE;
        status = c->give(c->ctx, p->i, at, n, piece, err);
        if (status == TTN_OK) status = take(ctx, piece, (size_t)n, err);
    }
    return status;
}

static ttn_status emit_file(const ttn_safetensors_content *c, const place *order, int64_t n, ttn_safetensors_taker take,
                            void *ctx, ttn_error *err)
{
    text header = {0};
    ttn_status status = make_header(c, order, n, &header, err);
    if (status != TTN_OK) return status;
    status = take(ctx, header.bytes, header.n, err);
    ttn_free(header.bytes);
    if (status != TTN_OK) return status;
    char *piece = ttn_alloc_or_say(PIECE, 1, "a piece of a safetensors file", err);
    if (!piece) return TTN_ENOMEM;
    for (int64_t i = 0; i < n && status == TTN_OK; i++)
        status = emit_numbers(c, &order[i], piece, take, ctx, err);
    ttn_free(piece);
    return status;
}

ttn_status ttn_safetensors_emit(const ttn_safetensors_content *c, ttn_safetensors_taker take, void *ctx, ttn_error *err)
{
    place *order = NULL;
    ttn_status status = sort_tensors(c, &order, err);
    if (status != TTN_OK) return status;
    status = emit_file(c, order, c->n_tensor, take, ctx, err);
    ttn_free(order);
    return status;
}

static int64_t numbers_of(const place *order, int64_t n)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < n; i++)
        bytes += (int64_t)ttn_desc_bytes(&order[i].tensor->desc);
    return bytes;
}

ttn_status ttn_safetensors_size(const ttn_safetensors_content *c, int64_t *ret, ttn_error *err)
{
    place *order = NULL;
    text header = {0};
    ttn_status status = sort_tensors(c, &order, err);
    if (status == TTN_OK) status = make_header(c, order, c->n_tensor, &header, err);
    if (status == TTN_OK) *ret = (int64_t)header.n + numbers_of(order, c->n_tensor);
    ttn_free(header.bytes);
    ttn_free(order);
    return status;
}

/* ---- to files ---- */

static ttn_status take_to_file(void *ctx, const void *bytes, size_t n, ttn_error *err)
{
    return ttn_atomic_write(ctx, bytes, n, err);
}

static ttn_status write_file(const char *path, const ttn_safetensors_content *c, const place *order, int64_t n,
                             ttn_error *err)
{
    ttn_atomic *a;
    ttn_status status = ttn_atomic_file_create(path, &a, err);
    if (status != TTN_OK) return status;
    status = emit_file(c, order, n, take_to_file, a, err);
    if (status == TTN_OK) status = ttn_atomic_commit(a, err);
    ttn_atomic_destroy(a);
    return status;
}

/* How many tensors from order[0] on make the next shard: as many as fit, at least one. */
static int64_t shard_length(const place *order, int64_t n, int64_t most)
{
    int64_t bytes = 0, i = 0;
    while (i < n) {
        bytes += (int64_t)ttn_desc_bytes(&order[i].tensor->desc);
        if (i > 0 && bytes > most) break;
        i++;
    }
    return i;
}

static int count_shards(const place *order, int64_t n, int64_t most)
{
    int count = 0;
    for (int64_t i = 0; i < n; i += shard_length(order + i, n - i, most))
        count++;
    return count;
}

static ttn_status no_memory(ttn_error *err)
{
    return TTN_FAIL(err, TTN_ENOMEM, "no memory for the index of a set of safetensors files; end other programs");
}

/* The shards, and what the index says of them. */
static ttn_status write_shards(const char *path, const ttn_safetensors_content *c, const place *order, ttn_arena *texts,
                               json_t *map, ttn_error *err)
{
    static const char extension[] = ".safetensors";
    int n_stem = (int)(strlen(path) - strlen(extension));
    int n_shard = count_shards(order, c->n_tensor, c->most_shard), shard = 0;
    int64_t i = 0;
    while (i < c->n_tensor) {
        int64_t n = shard_length(order + i, c->n_tensor - i, c->most_shard);
        shard++;
        const char *file = ttn_arena_text(texts, "%.*s-%05d-of-%05d%s", n_stem, path, shard, n_shard, extension);
        if (!file) return no_memory(err);
        const char *slash = strrchr(file, '/');
        for (int64_t k = i; k < i + n; k++)
            if (json_object_set_new(map, order[k].tensor->name, json_string(slash ? slash + 1 : file)) != 0)
                return no_memory(err);
        ttn_status status = write_file(file, c, order + i, n, err);
        if (status != TTN_OK) return status;
        i += n;
    }
    return TTN_OK;
}

static ttn_status write_set(const char *path, const ttn_safetensors_content *c, const place *order, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    struct stat about;
    size_t n = strlen(path), n_end = strlen(".safetensors");
    if (n <= n_end || strcmp(path + n - n_end, ".safetensors") != 0)
        return TTN_FAIL(err, TTN_EINVAL, "%s: shards are named after a file whose name ends in .safetensors",
                        ttn_text_tail(path, shown));
    if (lstat(path, &about) == 0)
        return TTN_FAIL(err, TTN_EINVAL, "%s: is there, and would be read in place of shards; remove it first",
                        ttn_text_tail(path, shown));
    ttn_arena *texts;
    ttn_status status = ttn_arena_create(0, &texts, err);
    if (status != TTN_OK) return status;
    json_t *map = json_object();
    const char *index = ttn_arena_text(texts, "%s.index.json", path);
    if (!index) status = no_memory(err);
    if (index && lstat(index, &about) == 0)
        status =
            TTN_FAIL(err, TTN_EINVAL,
                     "%s: is the index of a set that is there, and would lead to old and new shards while they are "
                     "replaced; remove that set first, the index before the shards, or choose another name",
                     ttn_text_tail(index, shown));
    if (status == TTN_OK) status = write_shards(path, c, order, texts, map, err);
    if (status == TTN_OK) {
        json_t *root = json_pack("{s:{s:I},s:O}", "metadata", "total_size", (json_int_t)numbers_of(order, c->n_tensor),
                                 "weight_map", map);
        status = root ? ttn_json_write(index, root, err) : no_memory(err);
        json_decref(root);
    }
    json_decref(map);
    ttn_arena_destroy(texts);
    return status;
}

ttn_status ttn_safetensors_write(const char *path, const ttn_safetensors_content *c, ttn_error *err)
{
    place *order = NULL;
    ttn_status status = sort_tensors(c, &order, err);
    if (status != TTN_OK) return status;
    if (c->most_shard > 0 && numbers_of(order, c->n_tensor) > c->most_shard && c->n_tensor > 1)
        status = write_set(path, c, order, err);
    else
        status = write_file(path, c, order, c->n_tensor, err);
    ttn_free(order);
    return status;
}
