#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include "core/memory.h"
#include "train/files/safetensors.h"
#include "train/files/safetensors_info.h"

static int ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

static int holds(const char *folder, const char *name)
{
    struct stat about;
    ttn_arena *a;
    if (ttn_arena_create(8192, &a, NULL) != TTN_OK) return 0;
    const char *path = ttn_arena_text(a, "%s/%s", folder, name);
    int there = path && stat(path, &about) == 0;
    ttn_arena_destroy(a);
    return there;
}

/* By name, so that a damaged one is said to be damaged; by its first bytes (the length of a header, and a brace) under
 * another name. */
static int recognise(const ttn_info_subject *s)
{
    if (s->is_folder) return holds(s->path, "model.safetensors") || holds(s->path, "model.safetensors.index.json");
    if (ends_in(s->path, ".safetensors") || ends_in(s->path, ".safetensors.index.json")) return 1;
    return s->n_head > 9 && s->head[8] == '{' && s->head[5] == 0 && s->head[6] == 0 && s->head[7] == 0;
}

static void warn(void *ctx, ttn_log_level level, const char *text)
{
    (void)level;
    ttn_facts_warn(ctx, "%s", text);
}

static int is_real_type(ttn_stored_type type)
{
    return type == TTN_STORED_F32 || type == TTN_STORED_F16 || type == TTN_STORED_BF16 || type == TTN_STORED_F64;
}

/* All its numbers are read, and those that are not finite counted. */
static ttn_status count_nonfinite(const ttn_safetensors *s, const ttn_stored_tensor *t, double *piece, int64_t room,
                                  ttn_converted *sum, ttn_error *err)
{
    ttn_status status = TTN_OK;
    for (int64_t at = 0; at < t->n && status == TTN_OK && is_real_type(t->type); at += room) {
        int64_t n = t->n - at < room ? t->n - at : room;
        status = ttn_safetensors_read(s, t, at, n, TTN_F64, piece, sum, err);
    }
    return status;
}

static ttn_status verify_numbers(const ttn_safetensors *s, ttn_facts *f, ttn_error *err)
{
    enum { ROOM = 1 << 16 };
    double *piece = ttn_alloc_or_say(ROOM, sizeof *piece, "the numbers of a tensor", err);
    if (!piece) return TTN_ENOMEM;
    ttn_converted all = {0};
    ttn_status status = TTN_OK;
    for (int64_t i = 0; i < ttn_safetensors_count(s) && status == TTN_OK; i++) {
        const ttn_stored_tensor *t = ttn_safetensors_at(s, i);
        ttn_converted sum = {0};
        status = count_nonfinite(s, t, piece, ROOM, &sum, err);
        if (sum.nonfinite > 0)
            ttn_facts_warn(f, "tensor '%s' holds %" PRId64 " numbers that are NaN or infinite, first number %" PRId64,
                           t->name, sum.nonfinite, sum.first_nonfinite);
        all.nonfinite += sum.nonfinite;
        all.n += sum.n;
    }
    ttn_free(piece);
    if (status != TTN_OK) return status;
    ttn_facts_integer(f, "numbers_read", all.n);
    ttn_facts_integer(f, "not_finite", all.nonfinite);
    ttn_facts_flag(f, "verified", all.nonfinite == 0);
    if (all.nonfinite == 0) return TTN_OK;
    return TTN_FAIL(err, TTN_ENUMERIC, "%s: %" PRId64 " of its numbers are NaN or infinite", ttn_safetensors_file(s, 0),
                    all.nonfinite);
}

static void list_tensors(const ttn_safetensors *s, ttn_facts *f)
{
    ttn_facts_open_list(f, "tensor");
    for (int64_t i = 0; i < ttn_safetensors_count(s); i++) {
        const ttn_stored_tensor *t = ttn_safetensors_at(s, i);
        char text[TTN_STORED_TEXT];
        ttn_facts_open(f, NULL);
        ttn_facts_text(f, "name", "%s", t->name);
        ttn_facts_text(f, "type", "%s", ttn_stored_name(t->type));
        ttn_facts_text(f, "shape", "%s", strchr(ttn_stored_print(t, text), '['));
        ttn_facts_bytes(f, "bytes", t->bytes);
        ttn_facts_close(f);
    }
    ttn_facts_close(f);
}

static void add_facts(const ttn_safetensors *s, ttn_facts *f)
{
    int64_t numbers = 0, bytes = 0;
    for (int64_t i = 0; i < ttn_safetensors_count(s); i++) {
        numbers += ttn_safetensors_at(s, i)->n;
        bytes += ttn_safetensors_at(s, i)->bytes;
    }
    ttn_facts_integer(f, "files", ttn_safetensors_file_count(s));
    ttn_facts_integer(f, "tensors", ttn_safetensors_count(s));
    ttn_facts_integer(f, "numbers", numbers);
    ttn_facts_bytes(f, "bytes", bytes);
    if (ttn_safetensors_note_count(s) > 0) {
        ttn_facts_open_list(f, "metadata");
        for (int64_t i = 0; i < ttn_safetensors_note_count(s); i++) {
            ttn_facts_open(f, NULL);
            ttn_facts_text(f, "key", "%s", ttn_safetensors_note(s, i)->key);
            ttn_facts_text(f, "value", "%s", ttn_safetensors_note(s, i)->value);
            ttn_facts_close(f);
        }
        ttn_facts_close(f);
    }
    list_tensors(s, f);
}

static ttn_status describe(const ttn_info_subject *subject, int verify, ttn_facts *f, ttn_error *err)
{
    ttn_log log = {.say = warn, .ctx = f};
    ttn_safetensors *s;
    ttn_safetensors_options options = {.allow_nonfinite = 1, .log = &log};
    ttn_status status = ttn_safetensors_open(subject->path, &options, &s, err);
    if (status != TTN_OK) return status;
    add_facts(s, f);
    if (verify) status = verify_numbers(s, f, err);
    ttn_safetensors_close(s);
    return status;
}

const ttn_info_kind ttn_info_safetensors = {
    .name = "safetensors",
    .what = "a safetensors file, or a set of them",
    .recognise = recognise,
    .describe = describe,
};
