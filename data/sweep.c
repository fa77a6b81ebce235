#include "core/memory.h"
#include "data/sweep.h"

struct ttn_sweep {
    ttn_sweep_source source;
    int64_t next;    /* sequence */
    int64_t *offset; /* (TTN_SWEEP_SEQUENCES + 1) */
    uint8_t *token;  /* (room) */
    int64_t room;
};

/* ---- sources ---- */

static ttn_status offsets_of_store(void *self, int64_t first, int64_t n, int64_t *into, ttn_error *err)
{
    (void)err;
    for (int64_t i = 0; i < n; i++)
        into[i] = ttn_store_offset(self, first + i);
    return TTN_OK;
}

static ttn_status tokens_of_store(void *self, int64_t first, int64_t n, uint8_t *into, ttn_error *err)
{
    return ttn_store_read(self, first, n, into, err);
}

static ttn_status hashes_of_store(void *self, int64_t first, int64_t n, int64_t *into, ttn_error *err)
{
    return ttn_store_hashes(self, first, n, into, err);
}

ttn_sweep_source ttn_sweep_of_store(ttn_store *s)
{
    const ttn_store_facts *f = ttn_store_describe(s);
    return (ttn_sweep_source){s, f->alphabet, f->sequences, offsets_of_store, tokens_of_store, hashes_of_store};
}

static ttn_status offsets_of_writer(void *self, int64_t first, int64_t n, int64_t *into, ttn_error *err)
{
    return ttn_store_added_offsets(self, first, n, into, err);
}

static ttn_status tokens_of_writer(void *self, int64_t first, int64_t n, uint8_t *into, ttn_error *err)
{
    return ttn_store_added_tokens(self, first, n, into, err);
}

static ttn_status hashes_of_writer(void *self, int64_t first, int64_t n, int64_t *into, ttn_error *err)
{
    return ttn_store_added_hashes(self, first, n, into, err);
}

ttn_sweep_source ttn_sweep_of_writer(ttn_store_writer *w, const ttn_alphabet *alphabet)
{
    return (ttn_sweep_source){w, alphabet, ttn_store_added(w), offsets_of_writer, tokens_of_writer, hashes_of_writer};
}

/* ---- the pass ---- */

ttn_status ttn_sweep_create(const ttn_sweep_source *source, ttn_sweep **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_sweep *p = ttn_alloc_or_say(1, sizeof *p, "a sweep over sequences", err);
    if (!p) return TTN_ENOMEM;
    p->source = *source;
    p->offset = ttn_alloc_or_say(TTN_SWEEP_SEQUENCES + 1, sizeof *p->offset, "a sweep over sequences", err);
    if (!p->offset) {
        ttn_free(p);
        return TTN_ENOMEM;
    }
    *ret = p;
    return TTN_OK;
}

void ttn_sweep_destroy(ttn_sweep *p)
{
    if (!p) return;
    ttn_free(p->offset);
    ttn_free(p->token);
    ttn_free(p);
}

void ttn_sweep_rewind(ttn_sweep *p)
{
    p->next = 0;
}

ttn_status ttn_sweep_next(ttn_sweep *p, ttn_stretch *ret, ttn_error *err)
{
    int64_t n = p->source.n - p->next;
    if (n == 0) return TTN_EOF;
    if (n > TTN_SWEEP_SEQUENCES) n = TTN_SWEEP_SEQUENCES;
    ttn_status status = p->source.offsets(p->source.self, p->next, n + 1, p->offset, err);
    if (status != TTN_OK) return status;
    const int64_t begin = p->offset[0];
    while (n > 1 && p->offset[n] - begin > TTN_SWEEP_TOKENS)
        n--;
    const int64_t n_token = p->offset[n] - begin;
    if (n_token > p->room) {
        ttn_free(p->token);
        p->room = 0;
        const int64_t room = n_token > TTN_SWEEP_TOKENS ? n_token : TTN_SWEEP_TOKENS;
        p->token = ttn_alloc_or_say(room, 1, "a sweep over sequences", err);
        if (!p->token) return TTN_ENOMEM;
        p->room = room;
    }
    status = p->source.tokens(p->source.self, begin, n_token, p->token, err);
    if (status != TTN_OK) return status;
    for (int64_t i = 0; i <= n; i++)
        p->offset[i] -= begin;
    *ret = (ttn_stretch){.first = p->next, .n = n, .offset = p->offset, .token = p->token};
    p->next += n;
    return TTN_OK;
}
