#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include "core/atomic.h"
#include "core/memory.h"
#include "core/text.h"
#include "train/files/json.h"
#include "train/files/json_scan.h"
#include "train/files/reader.h"

struct ttn_json {
    json_t *root;
    ttn_json_rules rules; /* with no field 0 */
    char *bytes;          /* (n), and a 0 that is not counted */
    size_t n;
    char name[TTN_TAIL_ROOM];
};

/* ---- places ---- */

static ttn_json_scan scan_of(const ttn_json *j)
{
    return (ttn_json_scan){
        .file = j->name,
        .bytes = j->bytes,
        .n = j->n,
        .most_depth = j->rules.most_depth,
        .failure = j->rules.failure,
    };
}

/* How many values (not keys) come before the wanted one, in the order of the document, which jansson keeps. */
typedef struct {
    const json_t *in;
    const char *key; /* NULL: `in` itself is wanted */
    size_t n_before;
    int found;
} search;

static void look_for(search *s, const json_t *value)
{
    if (!s->key && value == s->in) s->found = 1;
    if (s->found) return;
    s->n_before++;
    if (json_is_object(value)) {
        const char *key;
        json_t *inside;
        json_object_foreach((json_t *)value, key, inside)
        {
            if (s->key && value == s->in && strcmp(key, s->key) == 0) s->found = 1;
            if (!s->found) look_for(s, inside);
            if (s->found) return;
        }
    }
    for (size_t i = 0; i < json_array_size(value) && !s->found; i++)
        look_for(s, json_array_get(value, i));
}

/* Where in j->bytes the value under key of `in` begins. Read again from the start: only messages ask for it. */
static size_t place_of(const ttn_json *j, const json_t *in, const char *key)
{
    search s = {.in = in, .key = key};
    look_for(&s, j->root);
    assert(s.found);
    ttn_json_scan scan = scan_of(j);
    size_t n_seen = 0;
    for (;;) {
        ttn_status status = ttn_json_next(&scan, NULL);
        assert(status == TTN_OK && scan.token != TTN_JSON_END);
        if (status != TTN_OK) return 0;
        if (scan.token == TTN_JSON_KEY || scan.token == TTN_JSON_OBJECT_END || scan.token == TTN_JSON_ARRAY_END)
            continue;
        if (n_seen == s.n_before) break;
        n_seen++;
    }
    return scan.token == TTN_JSON_TEXT ? scan.first - 1 : scan.first;
}

ttn_status ttn_json_fail(const ttn_json *j, const json_t *in, const char *key, ttn_error *err, const char *format, ...)
{
    char sentence[TTN_ERROR_TEXT] = "";
    va_list args;
    va_start(args, format);
    ttn_text_append(sentence, sizeof sentence, format, args);
    va_end(args);
    ttn_json_scan scan = scan_of(j);
    return ttn_json_fail_at(&scan, place_of(j, in, key), err, "%s", sentence);
}

/* ---- reading ---- */

/* jansson's place is behind the key that stands twice: the last key that ends before it. */
static ttn_status fail_twice(const ttn_json *j, size_t behind, ttn_error *err)
{
    ttn_json_scan scan = scan_of(j), key = scan;
    while (ttn_json_next(&scan, NULL) == TTN_OK && scan.token != TTN_JSON_END && scan.end < behind)
        if (scan.token == TTN_JSON_KEY) key = scan;
    int n = (int)(key.end - key.first < 200 ? key.end - key.first : 200);
    return ttn_json_fail_at(&key, key.first > 0 ? key.first - 1 : 0, err, "the key '%.*s' stands twice in one object",
                            n, key.bytes + key.first);
}

static ttn_status make_tree(ttn_json *j, ttn_error *err)
{
    ttn_json_scan scan = scan_of(j);
    do {
        ttn_status status = ttn_json_next(&scan, err);
        if (status != TTN_OK) return status;
    } while (scan.token != TTN_JSON_END);

    json_error_t error;
    j->root = json_loadb(j->bytes, j->n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (j->root) return TTN_OK;
    size_t behind = error.position > 0 ? (size_t)error.position : 0;
    switch (json_error_code(&error)) {
    case json_error_out_of_memory:
        return TTN_FAIL(err, TTN_ENOMEM, "%s: no memory to take it in; end other programs", j->name);
    case json_error_duplicate_key:
        return fail_twice(j, behind, err);
    default:
        return ttn_json_fail_at(&scan, behind < j->n ? behind : j->n, err, "%s", error.text);
    }
}

static ttn_status check_size(const char *name, size_t n, const ttn_json_rules *rules, ttn_error *err)
{
    if (n <= rules->most_bytes) return TTN_OK;
    return TTN_FAIL_AT(err, rules->failure, name, 0, 0, "has %zu bytes, and a document of this kind has at most %zu", n,
                       rules->most_bytes);
}

static ttn_json_rules filled(const ttn_json_rules *rules)
{
    ttn_json_rules all = rules ? *rules : (ttn_json_rules){0};
    if (all.most_bytes == 0) all.most_bytes = 16 << 20;
    if (all.most_depth == 0) all.most_depth = 16;
    if (all.failure == TTN_OK) all.failure = TTN_EFORMAT;
    assert(all.most_depth <= TTN_JSON_MAX_DEPTH);
    return all;
}

/* Room for n bytes. */
static ttn_status create(const char *name, size_t n, const ttn_json_rules *rules, ttn_json **ret, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    ttn_status status = check_size(ttn_text_tail(name, shown), n, rules, err);
    if (status != TTN_OK) return status;
    ttn_json *j = ttn_alloc_or_say(1, sizeof *j, shown, err);
    if (!j) return TTN_ENOMEM;
    *j = (ttn_json){.rules = *rules, .n = n};
    memcpy(j->name, shown, sizeof shown);
    j->bytes = ttn_alloc_or_say((int64_t)n + 1, 1, shown, err);
    if (!j->bytes) {
        ttn_json_close(j);
        return TTN_ENOMEM;
    }
    *ret = j;
    return TTN_OK;
}

ttn_status ttn_json_parse(const char *name, const void *bytes, size_t n, const ttn_json_rules *rules, ttn_json **ret,
                          ttn_error *err)
{
    *ret = NULL;
    ttn_json *j = NULL;
    ttn_json_rules all = filled(rules);
    ttn_status status = create(name, n, &all, &j, err);
    if (status == TTN_OK && n > 0) memcpy(j->bytes, bytes, n);
    if (status == TTN_OK) status = make_tree(j, err);
    if (status == TTN_OK)
        *ret = j;
    else
        ttn_json_close(j);
    return status;
}

ttn_status ttn_json_read(const char *path, const ttn_json_rules *rules, ttn_json **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_json *j = NULL;
    ttn_json_rules all = filled(rules);
    ttn_reader *r;
    ttn_status status = ttn_reader_open(path, &r, err);
    if (status == TTN_OK) status = create(path, (size_t)ttn_reader_size(r), &all, &j, err);
    if (status == TTN_OK) status = ttn_reader_read(r, 0, j->bytes, j->n, err);
    ttn_reader_close(r);
    if (status == TTN_OK) status = make_tree(j, err);
    if (status == TTN_OK)
        *ret = j;
    else
        ttn_json_close(j);
    return status;
}

void ttn_json_close(ttn_json *j)
{
    if (!j) return;
    json_decref(j->root);
    ttn_free(j->bytes);
    ttn_free(j);
}

const json_t *ttn_json_root(const ttn_json *j)
{
    return j->root;
}

/* ---- values ---- */

static const char *kind_name(json_type type)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object",
        [JSON_ARRAY] = "an array",
        [JSON_STRING] = "a text",
        [JSON_INTEGER] = "an integer",
        [JSON_REAL] = "a number with a fraction or an exponent",
        [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",
        [JSON_NULL] = "null",
    };
    return names[type];
}

/* The value under key, whatever it is; NULL, and the document's failure in err: there is none. */
static const json_t *find(const ttn_json *j, const json_t *in, const char *key, ttn_error *err)
{
    if (!json_is_object(in)) {
        (void)ttn_json_fail(j, in, NULL, err, "'%s' is looked for here, and this is %s, not an object", key,
                            kind_name(json_typeof(in)));
        return NULL;
    }
    const json_t *value = json_object_get(in, key);
    if (!value) (void)ttn_json_fail(j, in, NULL, err, "the key '%s' is missing in the object that begins here", key);
    return value;
}

static const json_t *find_kind(const ttn_json *j, const json_t *in, const char *key, json_type type, ttn_error *err)
{
    const json_t *value = find(j, in, key, err);
    if (!value || json_typeof(value) == type) return value;
    (void)ttn_json_fail(j, in, key, err, "'%s' should be %s, not %s", key, kind_name(type),
                        kind_name(json_typeof(value)));
    return NULL;
}

ttn_status ttn_json_object(const ttn_json *j, const json_t *in, const char *key, const json_t **ret, ttn_error *err)
{
    *ret = find_kind(j, in, key, JSON_OBJECT, err);
    return *ret ? TTN_OK : j->rules.failure;
}

ttn_status ttn_json_array(const ttn_json *j, const json_t *in, const char *key, const json_t **ret, ttn_error *err)
{
    *ret = find_kind(j, in, key, JSON_ARRAY, err);
    return *ret ? TTN_OK : j->rules.failure;
}

ttn_status ttn_json_text(const ttn_json *j, const json_t *in, const char *key, const char **ret, ttn_error *err)
{
    const json_t *value = find_kind(j, in, key, JSON_STRING, err);
    if (!value) return j->rules.failure;
    *ret = json_string_value(value);
    return TTN_OK;
}

ttn_status ttn_json_bool(const ttn_json *j, const json_t *in, const char *key, int *ret, ttn_error *err)
{
    const json_t *value = find(j, in, key, err);
    if (!value) return j->rules.failure;
    json_type type = json_typeof(value);
    if (type != JSON_TRUE && type != JSON_FALSE)
        return ttn_json_fail(j, in, key, err, "'%s' should be true or false, not %s", key, kind_name(type));
    *ret = type == JSON_TRUE;
    return TTN_OK;
}

ttn_status ttn_json_integer(const ttn_json *j, const json_t *in, const char *key, int64_t least, int64_t most,
                            int64_t *ret, ttn_error *err)
{
    const json_t *value = find_kind(j, in, key, JSON_INTEGER, err);
    if (!value) return j->rules.failure;
    *ret = json_integer_value(value);
    if (*ret >= least && *ret <= most) return TTN_OK;
    return ttn_json_fail(j, in, key, err, "'%s' is %" PRId64 ", and should be from %" PRId64 " to %" PRId64, key, *ret,
                         least, most);
}

ttn_status ttn_json_real(const ttn_json *j, const json_t *in, const char *key, double *ret, ttn_error *err)
{
    const json_t *value = find(j, in, key, err);
    if (!value) return j->rules.failure;
    json_type type = json_typeof(value);
    if (type != JSON_REAL && type != JSON_INTEGER)
        return ttn_json_fail(j, in, key, err, "'%s' should be a number, not %s", key, kind_name(type));
    *ret = json_number_value(value);
    return TTN_OK;
}

ttn_status ttn_json_item(const ttn_json *j, const json_t *array, size_t i, json_type type, const json_t **ret,
                         ttn_error *err)
{
    *ret = json_array_get(array, i);
    if (!*ret)
        return ttn_json_fail(j, array, NULL, err, "the array that begins here has %zu items, at least %zu are expected",
                             json_array_size(array), i + 1);
    if (json_typeof(*ret) == type) return TTN_OK;
    return ttn_json_fail(j, array, NULL, err, "item %zu of the array that begins here should be %s, not %s", i + 1,
                         kind_name(type), kind_name(json_typeof(*ret)));
}

ttn_status ttn_json_only(const ttn_json *j, const json_t *in, const char *const *keys, size_t n, ttn_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)in, key, value)
    {
        size_t i = 0;
        while (i < n && strcmp(key, keys[i]) != 0)
            i++;
        if (i == n) return ttn_json_fail(j, in, key, err, "the key '%.200s' is none that is known in this place", key);
    }
    return TTN_OK;
}

/* ---- writing ---- */

typedef struct {
    ttn_json_taker take;
    void *ctx;
    ttn_error *err;
    ttn_status status;
} dump;

static int take_piece(const char *bytes, size_t n, void *data)
{
    dump *d = data;
    d->status = d->take(d->ctx, bytes, n, d->err);
    return d->status == TTN_OK ? 0 : -1;
}

ttn_status ttn_json_dump(const json_t *root, ttn_json_taker take, void *ctx, ttn_error *err)
{
    assert(json_is_object(root) || json_is_array(root));
    dump d = {.take = take, .ctx = ctx, .err = err};
    int code = json_dump_callback(root, take_piece, &d, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    if (d.status != TTN_OK) return d.status;
    if (code != 0) return TTN_FAIL(err, TTN_ENOMEM, "no memory to write JSON; end other programs");
    return take(ctx, "\n", 1, err);
}

static ttn_status take_to_file(void *ctx, const char *bytes, size_t n, ttn_error *err)
{
    return ttn_atomic_write(ctx, bytes, n, err);
}

ttn_status ttn_json_write(const char *path, const json_t *root, ttn_error *err)
{
    ttn_atomic *a;
    ttn_status status = ttn_atomic_file_create(path, &a, err);
    if (status != TTN_OK) return status;
    status = ttn_json_dump(root, take_to_file, a, err);
    if (status == TTN_OK) status = ttn_atomic_commit(a, err);
    ttn_atomic_destroy(a);
    return status;
}
