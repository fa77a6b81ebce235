#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "train/files/json_scan.h"
#include "train/files/safetensors_file.h"

/* The rules that a header is held to, in the order in which they are looked at: its length, JSON, the three fields of each
 * tensor, and, of all of them together, that no name stands twice and that they tile the data. */

enum { MOST_DEPTH = 8 };

static const struct {
    const char *name;
    int bits;
} types[] = {
#define TTN_STORED(name, bits) {#name, bits},
    TTN_STORED_TYPES(TTN_STORED)
#undef TTN_STORED
};

const char *ttn_stored_name(ttn_stored_type type)
{
    return (int)type >= 0 && type < TTN_STORED_COUNT ? types[type].name : "?";
}

/* ---- length ---- */

/* Files that are often given in place of one of these: by their first bytes. */
static const char *what_else(const char *head, size_t n)
{
    static const struct {
        const char *magic, *advice;
    } known[] = {
        {"PK\003\004", " (it is a zip archive, as torch.save writes it: convert it with\n"
                       "python -c \"import sys, torch, safetensors.torch as s; s.save_file(torch.load(sys.argv[1], "
                       "weights_only=True), 'model.safetensors')\" FILE)"},
        {"\200\002", " (it is a Python pickle, as old versions of torch.save wrote it: convert it to safetensors)"},
        {"version ", " (it is a pointer of Git LFS, not the file itself: fetch it with git lfs pull)"},
        {"\037\213", " (it is compressed by gzip: unpack it first)"},
        {"\211HDF", " (it is an HDF5 file)"},
        {"GGUF", " (it is a GGUF file)"},
        {"{", " (it begins with JSON: is it an index? Its name should end in .json)"},
        {"<", " (it looks like HTML: was a web page downloaded in place of the file?)"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t length = strlen(known[i].magic);
        if (n >= length && memcmp(head, known[i].magic, length) == 0) return known[i].advice;
    }
    return "";
}

ttn_status ttn_header_read(const ttn_reader *r, int64_t most, char **text, int64_t *n, ttn_error *err)
{
    *text = NULL;
    const char *name = ttn_reader_name(r);
    int64_t size = ttn_reader_size(r);
    unsigned char head[TTN_HEADER_LENGTH];
    size_t n_head = size < (int64_t)sizeof head ? (size_t)size : sizeof head;
    ttn_status status = ttn_reader_read(r, 0, head, n_head, err);
    if (status != TTN_OK) return status;
    const char *else_it_is = what_else((const char *)head, n_head);
    if (size == 0) return TTN_FAIL(err, TTN_ECHECKPOINT, "%s: is empty, and no safetensors file", name);
    if (size < TTN_HEADER_LENGTH)
        return TTN_FAIL(err, TTN_ECHECKPOINT,
                        "%s: has %" PRId64 " bytes, and a safetensors file begins with the 8 of its header's length%s",
                        name, size, else_it_is);
    uint64_t length = 0;
    for (int i = TTN_HEADER_LENGTH - 1; i >= 0; i--)
        length = length << 8 | head[i];
    if (length == 0)
        return TTN_FAIL(err, TTN_ECHECKPOINT, "%s: says that its header has no byte, and it has at least the two of {}",
                        name);
    if (length > (uint64_t)(size - TTN_HEADER_LENGTH))
        return TTN_FAIL(err, TTN_ECHECKPOINT,
                        "%s: says that its header has %" PRIu64 " bytes, and the file ends after %" PRId64 " of them%s",
                        name, length, size - TTN_HEADER_LENGTH,
                        *else_it_is ? else_it_is : "; it was cut short, or is no safetensors file");
    if (length > (uint64_t)most)
        return TTN_FAIL(err, TTN_ECHECKPOINT,
                        "%s: has a header of %" PRIu64 " bytes, and at most %" PRId64
                        " are read; the file is damaged, or no safetensors file",
                        name, length, most);
    *n = (int64_t)length;
    *text = ttn_alloc_or_say(*n + 1, 1, "the header of a safetensors file", err);
    if (!*text) return TTN_ENOMEM;
    status = ttn_reader_read(r, TTN_HEADER_LENGTH, *text, (size_t)length, err);
    if (status == TTN_OK) return TTN_OK;
    ttn_free(*text);
    *text = NULL;
    return status;
}

/* ---- lists ---- */

/* Room for one more of `size` bytes; the old ones move along. */
static int grow(void **list, int64_t n, int64_t *room, size_t size)
{
    if (n < *room) return 1;
    int64_t more = *room ? 2 * *room : 64;
    void *larger = ttn_alloc_array(more, size);
    if (!larger) return 0;
    if (n > 0) memcpy(larger, *list, (size_t)n * size);
    ttn_free(*list);
    *list = larger;
    *room = more;
    return 1;
}

static ttn_status no_memory(const ttn_json_scan *s, ttn_error *err)
{
    return TTN_FAIL(err, TTN_ENOMEM, "%s: no memory for the list of its tensors; end other programs", s->file);
}

/* ---- texts ---- */

/* The last text or key, decoded in place: its closing quote, which has been read, gives way to the 0. */
static char *text_here(const ttn_json_scan *s, char *bytes, size_t *n)
{
    char *text = bytes + s->first;
    size_t length = ttn_json_decode(s, text);
    if (n) *n = length;
    return text;
}

static int has_dots(const char *name)
{
    for (const char *part = name; part; part = strchr(part, '/')) {
        if (*part == '/') part++;
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == 0)) return 1;
    }
    return 0;
}

const char *ttn_header_name_fault(const char *name, size_t n)
{
    if (n == 0) return "is empty";
    if (n > TTN_STORED_MAX_NAME) return "has more than 512 bytes";
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == 0x7F) return "holds a control character";
    if (has_dots(name)) return "holds '..', by which tools that make files of names leave their folder";
    return NULL;
}

static ttn_status expect(ttn_json_scan *s, ttn_json_token token, const char *what, ttn_error *err)
{
    ttn_status status = ttn_json_next(s, err);
    if (status != TTN_OK || s->token == token) return status;
    return ttn_json_fail_at(s, s->first, err, "%s should be %s, not %s", what, ttn_json_token_name(token),
                            ttn_json_token_name(s->token));
}

/* ---- a tensor ---- */

/* What stood in its object so far. */
typedef struct {
    ttn_stored_tensor tensor;
    int64_t dim[TTN_STORED_MAX_DIM];
    int64_t offset[2];
    size_t at; /* of its name, for messages about all of it */
    int has_type, has_shape, has_offsets;
} entry;

static ttn_status take_type(ttn_json_scan *s, char *bytes, entry *e, ttn_error *err)
{
    ttn_status status = expect(s, TTN_JSON_TEXT, "dtype", err);
    if (status != TTN_OK) return status;
    size_t at = s->first;
    const char *text = text_here(s, bytes, NULL);
    for (int i = 0; i < TTN_STORED_COUNT; i++) {
        if (strcmp(text, types[i].name) != 0) continue;
        e->tensor.type = (ttn_stored_type)i;
        return TTN_OK;
    }
    int is_small = 0;
    for (int i = 0; i < TTN_STORED_COUNT; i++)
        is_small = is_small || strcasecmp(text, types[i].name) == 0;
    return ttn_json_fail_at(s, at, err, "dtype '%.100s' is none that safetensors has%s", text,
                            is_small ? "; they are written in capitals" : " (F32, F16, BF16, F64, I64, …)");
}

/* An array of integers from 0 on, at most `most`; *n of them. */
static ttn_status take_integers(ttn_json_scan *s, const char *what, int most, int64_t *value, int *n, ttn_error *err)
{
    ttn_status status = expect(s, TTN_JSON_ARRAY, what, err);
    size_t begin = s->first;
    *n = 0;
    while (status == TTN_OK) {
        status = ttn_json_next(s, err);
        if (status != TTN_OK || s->token == TTN_JSON_ARRAY_END) return status;
        if (s->token != TTN_JSON_INTEGER)
            return ttn_json_fail_at(s, s->first, err, "%s holds %s, and should hold integers", what,
                                    ttn_json_token_name(s->token));
        if (s->integer < 0)
            return ttn_json_fail_at(s, s->first, err, "%s holds %" PRId64 ", and nothing in it may be negative", what,
                                    s->integer);
        if (*n == most) return ttn_json_fail_at(s, begin, err, "%s has more than %d numbers", what, most);
        value[*n] = s->integer;
        *n += 1;
    }
    return status;
}

static ttn_status take_shape(ttn_json_scan *s, entry *e, ttn_error *err)
{
    return take_integers(s, "shape", TTN_STORED_MAX_DIM, e->dim, &e->tensor.ndim, err);
}

static ttn_status take_offsets(ttn_json_scan *s, entry *e, ttn_error *err)
{
    int n;
    ttn_status status = take_integers(s, "data_offsets", 2, e->offset, &n, err);
    if (status == TTN_OK && n != 2)
        status = ttn_json_fail_at(s, s->first, err, "data_offsets has %d of the two numbers begin and end", n);
    return status;
}

static ttn_status take_fields(ttn_json_scan *s, char *bytes, entry *e, ttn_error *err)
{
    ttn_status status = expect(s, TTN_JSON_OBJECT, "what stands under a tensor's name", err);
    while (status == TTN_OK) {
        status = ttn_json_next(s, err);
        if (status != TTN_OK || s->token == TTN_JSON_OBJECT_END) break;
        size_t at = s->first;
        const char *key = text_here(s, bytes, NULL);
        int *has = strcmp(key, "dtype") == 0          ? &e->has_type
                   : strcmp(key, "shape") == 0        ? &e->has_shape
                   : strcmp(key, "data_offsets") == 0 ? &e->has_offsets
                                                      : NULL;
        if (!has)
            return ttn_json_fail_at(s, at, err, "'%.100s' is no field of a tensor (dtype, shape, data_offsets)", key);
        if (*has) return ttn_json_fail_at(s, at, err, "'%s' stands twice", key);
        *has = 1;
        if (has == &e->has_type)
            status = take_type(s, bytes, e, err);
        else
            status = has == &e->has_shape ? take_shape(s, e, err) : take_offsets(s, e, err);
    }
    return status;
}

/* The bytes that dtype and shape make, against the offsets. */
static ttn_status check_extent(ttn_json_scan *s, entry *e, int64_t data_bytes, ttn_error *err)
{
    const char *missing = !e->has_type ? "dtype" : !e->has_shape ? "shape" : !e->has_offsets ? "data_offsets" : NULL;
    if (missing) return ttn_json_fail_at(s, e->at, err, "has no %s", missing);
    ttn_stored_tensor *t = &e->tensor;
    char text[TTN_STORED_TEXT];
    t->dim = e->dim;
    int64_t bits;
    int fits = 1;
    t->n = 1;
    for (int i = 0; i < t->ndim; i++)
        fits = fits && !__builtin_mul_overflow(t->n, e->dim[i], &t->n);
    fits = fits && !__builtin_mul_overflow(t->n, (int64_t)types[t->type].bits, &bits);
    if (!fits)
        return ttn_json_fail_at(s, e->at, err, "%s has more numbers than 64 bits count", ttn_stored_print(t, text));
    if (bits % 8 != 0)
        return ttn_json_fail_at(s, e->at, err, "%s takes %" PRId64 " bits, which are no whole bytes",
                                ttn_stored_print(t, text), bits);
    t->bytes = bits / 8;
    int64_t begin = e->offset[0], end = e->offset[1];
    if (begin > end)
        return ttn_json_fail_at(s, e->at, err, "data_offsets [%" PRId64 ", %" PRId64 ") end before they begin", begin,
                                end);
    if (end - begin != t->bytes)
        return ttn_json_fail_at(s, e->at, err,
                                "%s takes %" PRId64 " bytes, and data_offsets [%" PRId64 ", %" PRId64 ") hold %" PRId64,
                                ttn_stored_print(t, text), t->bytes, begin, end, end - begin);
    if (end > data_bytes)
        return ttn_json_fail_at(s, e->at, err,
                                "data_offsets [%" PRId64 ", %" PRId64 ") reach beyond the file, which has %" PRId64
                                " bytes behind its header; was it cut short?",
                                begin, end, data_bytes);
    t->begin = begin; /* of the data, until all are there */
    return TTN_OK;
}

/* The last token is its name. */
static ttn_status take_tensor(ttn_json_scan *s, ttn_stored_list *list, char *bytes, entry e, int64_t data_bytes,
                              ttn_error *err)
{
    s->inside = e.tensor.name;
    ttn_status status = take_fields(s, bytes, &e, err);
    if (status == TTN_OK) status = check_extent(s, &e, data_bytes, err);
    if (status != TTN_OK) return status;
    s->inside = NULL;
    e.tensor.dim = ttn_arena_copy(list->dims, e.dim, (size_t)e.tensor.ndim * sizeof *e.dim);
    if (!e.tensor.dim || !grow((void **)&list->tensor, list->n_tensor, &list->room_tensor, sizeof *list->tensor))
        return no_memory(s, err);
    list->tensor[list->n_tensor] = e.tensor;
    list->n_tensor++;
    return TTN_OK;
}

/* ---- notes ---- */

static int by_key(const void *a, const void *b)
{
    return strcmp(((const ttn_stored_note *)a)->key, ((const ttn_stored_note *)b)->key);
}

static ttn_status take_notes(ttn_json_scan *s, ttn_stored_list *list, char *bytes, ttn_error *err)
{
    int64_t first = list->n_note;
    s->inside = "__metadata__";
    ttn_status status = expect(s, TTN_JSON_OBJECT, "what stands under __metadata__", err);
    while (status == TTN_OK) {
        status = ttn_json_next(s, err);
        if (status != TTN_OK || s->token == TTN_JSON_OBJECT_END) break;
        ttn_stored_note note = {.key = text_here(s, bytes, NULL)};
        status = expect(s, TTN_JSON_TEXT, "a value", err);
        if (status != TTN_OK) return status;
        note.value = text_here(s, bytes, NULL);
        if (!grow((void **)&list->note, list->n_note, &list->room_note, sizeof *list->note)) return no_memory(s, err);
        list->note[list->n_note] = note;
        list->n_note++;
    }
    if (status != TTN_OK) return status;
    s->inside = NULL;
    int64_t n = list->n_note - first;
    ttn_stored_note *note = n > 0 ? list->note + first : NULL;
    if (n > 1) qsort(note, (size_t)n, sizeof *note, by_key);
    for (int64_t i = 1; i < n; i++)
        if (strcmp(note[i - 1].key, note[i].key) == 0)
            return TTN_FAIL(err, TTN_ECHECKPOINT, "%s: the key '%.100s' stands twice in __metadata__", s->file,
                            note[i].key);
    return TTN_OK;
}

/* ---- all together ---- */

static int by_place(const void *a, const void *b)
{
    const ttn_stored_tensor *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* "'b' with data_offsets [8, 16)", of what lies before and behind a place. */
static ttn_status fail_tiling(const char *name, const ttn_stored_tensor *before, const ttn_stored_tensor *t,
                              ttn_error *err)
{
    int64_t begin = t->begin, end = t->begin + t->bytes;
    if (!before)
        return TTN_FAIL(err, TTN_ECHECKPOINT,
                        "%s: the first tensor, '%.200s', has data_offsets [%" PRId64 ", %" PRId64
                        ") and should begin at 0: the bytes before it are nobody's",
                        name, t->name, begin, end);
    int64_t before_end = before->begin + before->bytes;
    return TTN_FAIL(err, TTN_ECHECKPOINT,
                    "%s: tensor '%.200s' with data_offsets [%" PRId64 ", %" PRId64 ") and '%.200s' with [%" PRId64
                    ", %" PRId64 ") %s",
                    name, before->name, before->begin, before_end, t->name, begin, end,
                    begin < before_end ? "overlap" : "leave bytes between them that are nobody's");
}

/* Also: begin becomes the place in the file. */
static ttn_status check_tiling(const char *name, ttn_stored_tensor *tensor, int64_t n, int64_t data_begin,
                               int64_t data_bytes, ttn_error *err)
{
    if (n > 0) qsort(tensor, (size_t)n, sizeof *tensor, by_place);
    int64_t end = 0;
    for (int64_t i = 0; i < n; i++) {
        if (tensor[i].begin != end) return fail_tiling(name, i > 0 ? &tensor[i - 1] : NULL, &tensor[i], err);
        end += tensor[i].bytes;
    }
    if (end != data_bytes)
        return TTN_FAIL(err, TTN_ECHECKPOINT,
                        "%s: its tensors%s%.200s%s end at byte %" PRId64 " behind the header, and %" PRId64
                        " bytes lie behind it: the last ones are nobody's",
                        name, n > 0 ? " (the last is '" : "", n > 0 ? tensor[n - 1].name : "", n > 0 ? "')" : "", end,
                        data_bytes);
    for (int64_t i = 0; i < n; i++)
        tensor[i].begin += data_begin;
    return TTN_OK;
}

ttn_status ttn_header_take(ttn_stored_list *list, const char *name, int file, char *text, int64_t n, int64_t size,
                           ttn_error *err)
{
    ttn_json_scan s = {
        .file = name,
        .bytes = text,
        .n = (size_t)n,
        .most_depth = MOST_DEPTH,
        .failure = TTN_ECHECKPOINT,
        .section = "the header",
    };
    int64_t first = list->n_tensor, data_begin = TTN_HEADER_LENGTH + n, data_bytes = size - data_begin;
    int has_notes = 0;
    ttn_status status = expect(&s, TTN_JSON_OBJECT, "the header", err);
    while (status == TTN_OK) {
        status = ttn_json_next(&s, err);
        if (status != TTN_OK || s.token == TTN_JSON_OBJECT_END) break;
        size_t length;
        const char *key = text_here(&s, text, &length);
        entry e = {.at = s.first, .tensor.name = key, .tensor.file = file};
        int is_notes = strcmp(key, "__metadata__") == 0;
        const char *fault = ttn_header_name_fault(key, length);
        if (fault)
            return ttn_json_fail_at(&s, s.first, err, "the name '%.80s%s' %s", key, length > 80 ? "…" : "", fault);
        if (is_notes && has_notes) return ttn_json_fail_at(&s, s.first, err, "__metadata__ stands twice");
        has_notes = has_notes || is_notes;
        status = is_notes ? take_notes(&s, list, text, err) : take_tensor(&s, list, text, e, data_bytes, err);
    }
    if (status == TTN_OK) status = ttn_json_next(&s, err); /* nothing may follow */
    if (status != TTN_OK) return status;
    int64_t n_tensor = list->n_tensor - first;
    return check_tiling(name, n_tensor > 0 ? list->tensor + first : NULL, n_tensor, data_begin, data_bytes, err);
}
