#include <string.h>
#include "core/memory.h"
#include "core/text.h"
#include "data/source_impl.h"

/* ---- memory ---- */

typedef struct {
    ttn_source source; /* first: a ttn_source * of ours is one of these */
    const unsigned char *bytes;
    size_t n, at, most;
    char name[TTN_TAIL_ROOM];
} memory_source;

static ttn_status read_memory(ttn_source *s, void *bytes, size_t room, size_t *ret_n, ttn_error *err)
{
    (void)err;
    memory_source *m = (memory_source *)s;
    size_t n = m->n - m->at;
    if (n > room) n = room;
    if (n > m->most && m->most > 0) n = m->most;
    if (n > 0) memcpy(bytes, m->bytes + m->at, n);
    m->at += n;
    s->facts.bytes = (int64_t)m->at;
    *ret_n = n;
    return TTN_OK;
}

static void close_memory(ttn_source *s)
{
    ttn_free(s);
}

ttn_status ttn_source_of_memory(const char *name, const void *bytes, size_t n, size_t most, ttn_source **ret,
                                ttn_error *err)
{
    *ret = NULL;
    memory_source *m = ttn_alloc_or_say(1, sizeof *m, "a source in memory", err);
    if (!m) return TTN_ENOMEM;
    m->source = (ttn_source){.name = ttn_text_tail(name, m->name), .read = read_memory, .close = close_memory};
    m->bytes = bytes;
    m->n = n;
    m->most = most;
    *ret = &m->source;
    return TTN_OK;
}

/* ---- what readers open ---- */

ttn_status ttn_source_open(const char *path, const ttn_source_rules *rules, ttn_source **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_source *file;
    ttn_status status = ttn_source_of_file(path, &file, err);
    return status == TTN_OK ? ttn_source_unpack(file, rules, ret, err) : status;
}

ttn_status ttn_source_open_memory(const char *name, const void *bytes, size_t n, size_t most,
                                  const ttn_source_rules *rules, ttn_source **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_source *memory;
    ttn_status status = ttn_source_of_memory(name, bytes, n, most, &memory, err);
    return status == TTN_OK ? ttn_source_unpack(memory, rules, ret, err) : status;
}

void ttn_source_close(ttn_source *s)
{
    if (s) s->close(s);
}
