#include <inttypes.h>
#include <string.h>
#include "core/atomic.h"
#include "core/memory.h"
#include "data/export.h"

enum { ROOM = 1 << 20 };

/* Bytes on their way. */
typedef struct {
    ttn_export_write write;
    void *ctx;
    char *bytes; /* (ROOM) */
    size_t n;
} stream;

static ttn_status flush(stream *s, ttn_error *err)
{
    ttn_status status = s->n > 0 ? s->write(s->ctx, s->bytes, s->n, err) : TTN_OK;
    s->n = 0;
    return status;
}

static ttn_status put(stream *s, const char *bytes, int64_t n, ttn_error *err)
{
    while (n > 0) {
        const int64_t room = ROOM - (int64_t)s->n, part = n < room ? n : room;
        memcpy(s->bytes + s->n, bytes, (size_t)part);
        s->n += (size_t)part;
        bytes += part;
        n -= part;
        if (s->n < ROOM) break;
        ttn_status status = flush(s, err);
        if (status != TTN_OK) return status;
    }
    return TTN_OK;
}

/* What a line of FASTA cannot hold, or a terminal obeys: titin packs no such id or header, so somebody else wrote this one.
 * A tab and Ctrl-A are between words. */
static ttn_status check_line(const ttn_store *s, int64_t i, const char *what, const char *text, int64_t n,
                             ttn_error *err)
{
    for (int64_t k = 0; k < n; k++) {
        const unsigned char c = (unsigned char)text[k];
        const int is_c1 = c == 0xc2 && k + 1 < n && (unsigned char)text[k + 1] < 0xa0;
        if (c == '\t' || c == 1 || (c >= ' ' && c != 0x7f && !is_c1)) continue;
        return TTN_FAIL(err, TTN_EFORMAT,
                        "%s: the %s of sequence %" PRId64 " holds byte 0x%02x, which no %s that titin packs does, and "
                        "FASTA cannot hold; pack the sequences again",
                        ttn_store_name(s), what, i + 1, is_c1 ? (unsigned char)text[k + 1] : c, what);
    }
    return TTN_OK;
}

/* Is the id the first word of the header? A reader takes the word up to a blank or one of these. */
static int begins_with_id(const char *header, int64_t n_header, const char *id, int64_t n_id)
{
    if (n_header < n_id || memcmp(header, id, (size_t)n_id) != 0) return 0;
    return n_header == n_id || header[n_id] == ' ' || header[n_id] == '\t' || header[n_id] == 1;
}

static ttn_status put_header(ttn_store *s, stream *out, int64_t i, ttn_error *err)
{
    const char *header, *id;
    int64_t n_header, n_id;
    ttn_status status = ttn_store_header(s, i, &header, &n_header, err);
    if (status != TTN_OK) return status;
    status = ttn_store_id(s, i, &id, &n_id, err);
    if (status != TTN_OK) return status;
    status = check_line(s, i, "header", header, n_header, err);
    if (status == TTN_OK) status = check_line(s, i, "id", id, n_id, err);
    if (status == TTN_OK) status = put(out, ">", 1, err);
    if (status == TTN_OK && !begins_with_id(header, n_header, id, n_id)) {
        status = put(out, id, n_id, err);
        if (status == TTN_OK && n_header > 0) status = put(out, " ", 1, err);
    }
    if (status == TTN_OK) status = put(out, header, n_header, err);
    return status == TTN_OK ? put(out, "\n", 1, err) : status;
}

/* Residues of sequence i, some at a time. */
static ttn_status put_residues(ttn_store *s, stream *out, int64_t i, const char *letter, uint8_t *room, ttn_error *err)
{
    const ttn_sequences q = ttn_store_sequences(s);
    const int64_t n = q.length(q.self, i);
    uint8_t *excluded = room + ROOM;
    ttn_status status = TTN_OK;
    for (int64_t at = 0; at < n && status == TTN_OK; at += ROOM) {
        const int64_t now = n - at < ROOM ? n - at : ROOM;
        status = q.tokens(q.self, i, at, now, room, err);
        if (status == TTN_OK && q.excluded) status = q.excluded(q.self, i, at, now, excluded, err);
        if (status != TTN_OK) return status;
        for (int64_t k = 0; k < now; k++) {
            const char c = letter[room[k]];
            room[k] = (uint8_t)(q.excluded && excluded[k] ? c - 'A' + 'a' : c);
        }
        status = put(out, (const char *)room, now, err);
    }
    return status == TTN_OK ? put(out, "\n", 1, err) : status;
}

ttn_status ttn_export_fasta(ttn_store *s, ttn_export_write write, void *ctx, ttn_error *err)
{
    const ttn_store_facts *f = ttn_store_describe(s);
    char letter[TTN_MAX_TOKENS];
    ttn_alphabet_letters(f->alphabet, letter);
    stream out = {.write = write, .ctx = ctx, .bytes = ttn_alloc_or_say(ROOM, 1, "an export", err)};
    uint8_t *room = out.bytes ? ttn_alloc_or_say(2 * ROOM, 1, "an export", err) : NULL;
    ttn_status status = room ? TTN_OK : TTN_ENOMEM;
    for (int64_t i = 0; i < f->sequences && status == TTN_OK; i++) {
        status = put_header(s, &out, i, err);
        if (status == TTN_OK) status = put_residues(s, &out, i, letter, room, err);
    }
    if (status == TTN_OK) status = flush(&out, err);
    ttn_free(room);
    ttn_free(out.bytes);
    return status;
}

/* A file on its way. */
typedef struct {
    ttn_atomic *atomic;
    int (*stops)(void);
} target;

static ttn_status write_atomic(void *ctx, const void *bytes, size_t n, ttn_error *err)
{
    target *t = ctx;
    if (t->stops && t->stops()) return TTN_FAIL(err, TTN_ESTOPPED, "stopped; nothing was written");
    return ttn_atomic_write(t->atomic, bytes, n, err);
}

ttn_status ttn_export_fasta_file(ttn_store *s, const char *path, int (*stops)(void), ttn_error *err)
{
    target t = {.stops = stops};
    ttn_atomic_sweep_dead_of(path, NULL);
    ttn_status status = ttn_atomic_file_create(path, &t.atomic, err);
    if (status != TTN_OK) return status;
    status = ttn_export_fasta(s, write_atomic, &t, err);
    if (status == TTN_OK) status = ttn_atomic_commit(t.atomic, err);
    ttn_atomic_destroy(t.atomic);
    return status;
}
