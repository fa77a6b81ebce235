/* Tokens of a store: all at once where the cache has room for them, else block by block when they are asked for. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include "core/memory.h"
#include "data/store_impl.h"

/* Bytes of tokens that are read together when not all are kept: a sixteenth of the cache, between these. */
enum { SMALLEST_BLOCK = 64 << 10, LARGEST_BLOCK = 4 << 20, BLOCKS_OF_CACHE = 16 };

/* ---- blocks ---- */

ttn_status ttn_store_blocks(const int64_t *offset, int64_t n, int64_t bytes, int64_t **ret_first, int64_t *ret_n,
                            ttn_error *err)
{
    /* Two neighbours together are more than `bytes`, so that there are so many at most. */
    int64_t most = offset[n] / bytes * 2 + 2;
    if (most > n + 1) most = n + 1;
    int64_t *first = ttn_alloc_or_say(most + 1, sizeof *first, "the blocks of a store", err);
    *ret_first = NULL;
    *ret_n = 0;
    if (!first) return TTN_ENOMEM;
    int64_t n_block = 0, begin = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i > begin && offset[i + 1] - offset[begin] > bytes) begin = i;
        if (i != begin) continue;
        first[n_block] = i;
        n_block++;
    }
    first[n_block] = n;
    *ret_first = first;
    *ret_n = n_block;
    return TTN_OK;
}

int64_t ttn_store_bytes_a_token(const ttn_store *s)
{
    return s->excluded ? 2 : 1;
}

ttn_status ttn_store_check_tokens(const ttn_store *s, const uint8_t *token, int64_t n, ttn_error *err)
{
    uint8_t most = 0;
    for (int64_t i = 0; i < n; i++)
        most = token[i] > most ? token[i] : most;
    return most < s->facts.alphabet->n ? TTN_OK : ttn_store_damaged(s, "a token is beyond the alphabet", err);
}

/* Tokens [first, first + n) to `token`, what is excluded of them to `excluded`. */
static ttn_status read_range(ttn_store *s, int64_t first, int64_t n, uint8_t *token, uint8_t *excluded, ttn_error *err)
{
    ttn_status status = ttn_hdf5_array_read(s->tokens, first, n, token, err);
    if (status == TTN_OK) status = ttn_store_check_tokens(s, token, n, err);
    if (status == TTN_OK && s->excluded) status = ttn_hdf5_array_read(s->excluded, first, n, excluded, err);
    for (int64_t i = 0; status == TTN_OK && s->excluded && i < n; i++)
        excluded[i] = excluded[i] != 0;
    return status;
}

ttn_status ttn_store_keep_all(ttn_store *s, ttn_error *err)
{
    const int64_t n = s->facts.residues;
    s->all = ttn_alloc_or_say(n, (size_t)ttn_store_bytes_a_token(s), "the tokens of a store", err);
    if (!s->all) return TTN_ENOMEM;
    ttn_status status = TTN_OK;
    for (int64_t at = 0; at < n && status == TTN_OK; at += TTN_STORE_PIECE)
        status =
            read_range(s, at, n - at < TTN_STORE_PIECE ? n - at : TTN_STORE_PIECE, s->all + at, s->all + n + at, err);
    return status;
}

ttn_status ttn_store_plan_blocks(ttn_store *s, ttn_error *err)
{
    const int64_t cached = s->cache / ttn_store_bytes_a_token(s);
    int64_t bytes = cached / BLOCKS_OF_CACHE;
    if (bytes > LARGEST_BLOCK) bytes = LARGEST_BLOCK;
    if (bytes < SMALLEST_BLOCK) bytes = SMALLEST_BLOCK;
    ttn_status status = ttn_store_blocks(s->offset, s->facts.sequences, bytes, &s->block_first, &s->n_block, err);
    if (status != TTN_OK) return status;
    s->block = ttn_alloc_or_say(s->n_block, sizeof *s->block, "the blocks of a store", err);
    if (!s->block) return TTN_ENOMEM;
    s->blocks_at_once = cached > bytes ? cached / bytes : 1;
    return TTN_OK;
}

static int64_t block_bytes(const ttn_store *s, int64_t b)
{
    return (s->offset[s->block_first[b + 1]] - s->offset[s->block_first[b]]) * ttn_store_bytes_a_token(s);
}

/* Make room for `bytes` more: what was not used for the longest time goes. */
static void make_room(ttn_store *s, int64_t bytes)
{
    while (s->cached > 0 && s->cached + bytes > s->cache) {
        int64_t oldest = -1;
        for (int64_t b = 0; b < s->n_block; b++)
            if (s->block[b].token && (oldest < 0 || s->block[b].used < s->block[oldest].used)) oldest = b;
        ttn_free(s->block[oldest].token);
        s->block[oldest].token = NULL;
        s->cached -= block_bytes(s, oldest);
    }
}

/* Block b is in memory. */
static ttn_status have_block(ttn_store *s, int64_t b, ttn_error *err)
{
    s->clock++;
    s->block[b].used = s->clock;
    if (s->block[b].token) return TTN_OK;
    const int64_t first = s->offset[s->block_first[b]], n = s->offset[s->block_first[b + 1]] - first;
    make_room(s, block_bytes(s, b));
    uint8_t *token = ttn_alloc_or_say(n, (size_t)ttn_store_bytes_a_token(s), "a block of a store", err);
    if (!token) return TTN_ENOMEM;
    ttn_status status = read_range(s, first, n, token, token + n, err);
    if (status != TTN_OK) {
        ttn_free(token);
        return status;
    }
    s->block[b].token = token;
    s->cached += block_bytes(s, b);
    return TTN_OK;
}

/* The block that sequence i is in: the last that begins with it or before. */
static int64_t block_of(const ttn_store *s, int64_t i)
{
    int64_t low = 0, high = s->n_block;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (s->block_first[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* ---- sequences by number ---- */

static int64_t length(const void *self, int64_t i)
{
    const ttn_store *s = self;
    assert(i >= 0 && i < s->facts.sequences);
    return s->offset[i + 1] - s->offset[i];
}

/* Residues first to first + n of sequence i: tokens, or what is excluded. */
static ttn_status copy_range(ttn_store *s, int64_t i, int64_t first, int64_t n, int is_excluded, uint8_t *into,
                             ttn_error *err)
{
    assert(first >= 0 && n >= 0 && first + n <= length(s, i));
    if (n == 0) return TTN_OK;
    if (s->all) {
        memcpy(into, s->all + (is_excluded ? s->facts.residues : 0) + s->offset[i] + first, (size_t)n);
        return TTN_OK;
    }
    const int64_t b = block_of(s, i), begin = s->offset[s->block_first[b]];
    const int64_t n_block = s->offset[s->block_first[b + 1]] - begin;
    ttn_error why = {0};
    pthread_mutex_lock(&s->lock);
    ttn_status status = have_block(s, b, &why);
    if (status == TTN_OK)
        memcpy(into, s->block[b].token + (is_excluded ? n_block : 0) + (s->offset[i] - begin) + first, (size_t)n);
    pthread_mutex_unlock(&s->lock);
    return status == TTN_OK ? TTN_OK : ttn_store_fail(s, status, &why, err);
}

static ttn_status copy_tokens(void *self, int64_t i, int64_t first, int64_t n, uint8_t *into, ttn_error *err)
{
    return copy_range(self, i, first, n, 0, into, err);
}

static ttn_status copy_excluded(void *self, int64_t i, int64_t first, int64_t n, uint8_t *into, ttn_error *err)
{
    return copy_range(self, i, first, n, 1, into, err);
}

static int64_t block_first(const void *self, int64_t b)
{
    const ttn_store *s = self;
    assert(b >= 0 && b <= s->n_block);
    return s->block_first[b];
}

static ttn_status find_text(ttn_store *s, ttn_store_texts *l, int64_t i, const char **ret, int64_t *ret_n,
                            ttn_error *err);

static void name_of(void *self, int64_t i, char *into, size_t room)
{
    ttn_store *s = self;
    const char *text = "?";
    int64_t n = 1;
    pthread_mutex_lock(&s->lock);
    if (find_text(s, &s->id, i, &text, &n, NULL) != TTN_OK) {
        text = "?";
        n = 1;
    }
    snprintf(into, room, "%.*s", n > INT16_MAX ? INT16_MAX : (int)n, text);
    ttn_text_disarm(into); /* it goes to a screen, and somebody else may have made the store */
    pthread_mutex_unlock(&s->lock);
}

ttn_sequences ttn_store_sequences(ttn_store *s)
{
    return (ttn_sequences){
        .self = s,
        .alphabet = s->facts.alphabet,
        .n = s->facts.sequences,
        .length = length,
        .tokens = copy_tokens,
        .excluded = s->excluded ? copy_excluded : NULL,
        .name = name_of,
        .n_block = s->all ? 0 : s->n_block,
        .blocks_at_once = s->all ? 0 : s->blocks_at_once,
        .block_first = block_first,
    };
}

int64_t ttn_store_offset(const ttn_store *s, int64_t i)
{
    assert(i >= 0 && i <= s->facts.sequences);
    return s->offset[i];
}

/* One call into the file at a time. */
static ttn_status read_locked(ttn_store *s, ttn_hdf5_array *a, int64_t first, int64_t n, void *into, ttn_error *err)
{
    ttn_error why = {0};
    pthread_mutex_lock(&s->lock);
    ttn_status status = ttn_hdf5_array_read(a, first, n, into, &why);
    pthread_mutex_unlock(&s->lock);
    return status == TTN_OK ? TTN_OK : ttn_store_fail(s, status, &why, err);
}

ttn_status ttn_store_read(ttn_store *s, int64_t first, int64_t n, uint8_t *into, ttn_error *err)
{
    assert(first >= 0 && n >= 0 && first + n <= s->facts.residues);
    if (s->all) {
        memcpy(into, s->all + first, (size_t)n);
        return TTN_OK;
    }
    ttn_status status = read_locked(s, s->tokens, first, n, into, err);
    if (status != TTN_OK) return status;
    ttn_error why = {0};
    status = ttn_store_check_tokens(s, into, n, &why);
    return status == TTN_OK ? TTN_OK : ttn_store_fail(s, status, &why, err);
}

ttn_status ttn_store_hashes(ttn_store *s, int64_t first, int64_t n, int64_t *into, ttn_error *err)
{
    return read_locked(s, s->hash, first, n, into, err);
}

ttn_status ttn_store_clusters(ttn_store *s, int64_t first, int64_t n, int64_t *into, ttn_error *err)
{
    assert(s->cluster);
    return read_locked(s, s->cluster, first, n, into, err);
}

/* ---- ids and headers ---- */

/* Let texts from i on be in memory. */
static ttn_status read_texts(ttn_store *s, ttn_store_texts *l, int64_t i, ttn_error *err)
{
    const int64_t rest = s->facts.sequences - i;
    const int64_t n = rest < TTN_STORE_TEXTS ? rest : TTN_STORE_TEXTS;
    l->n = 0;
    ttn_status status = ttn_hdf5_array_read(l->offset, i, n + 1, l->from, err);
    if (status != TTN_OK) return status;
    if (l->from[0] < 0) return ttn_store_damaged(s, "an offset of texts is negative", err);
    for (int64_t k = 0; k < n; k++)
        if (l->from[k] > l->from[k + 1]) return ttn_store_damaged(s, "the offsets of texts do not ascend", err);
    if (l->from[n] > ttn_hdf5_array_count(l->bytes)) return ttn_store_damaged(s, "texts are missing", err);
    ttn_free(l->text);
    l->text = ttn_alloc_or_say(l->from[n] - l->from[0], 1, l->name, err);
    if (!l->text) return TTN_ENOMEM;
    status = ttn_hdf5_array_read(l->bytes, l->from[0], l->from[n] - l->from[0], l->text, err);
    if (status != TTN_OK) return status;
    l->first = i;
    l->n = n;
    return TTN_OK;
}

static ttn_status find_text(ttn_store *s, ttn_store_texts *l, int64_t i, const char **ret, int64_t *ret_n,
                            ttn_error *err)
{
    assert(i >= 0 && i < s->facts.sequences);
    if (i < l->first || i >= l->first + l->n) {
        ttn_status status = read_texts(s, l, i, err);
        if (status != TTN_OK) return status;
    }
    const int64_t k = i - l->first;
    *ret = l->text + (l->from[k] - l->from[0]);
    *ret_n = l->from[k + 1] - l->from[k];
    return TTN_OK;
}

static ttn_status get_text(ttn_store *s, ttn_store_texts *l, int64_t i, const char **ret, int64_t *ret_n,
                           ttn_error *err)
{
    ttn_error why = {0};
    const ttn_status status = find_text(s, l, i, ret, ret_n, &why);
    return status == TTN_OK ? TTN_OK : ttn_store_fail(s, status, &why, err);
}

ttn_status ttn_store_check_texts(ttn_store *s, ttn_error *err)
{
    const char *text;
    int64_t n;
    ttn_status status = TTN_OK;
    for (int64_t i = 0; i < s->facts.sequences && status == TTN_OK; i += TTN_STORE_TEXTS) {
        status = find_text(s, &s->id, i, &text, &n, err);
        if (status == TTN_OK) status = find_text(s, &s->header, i, &text, &n, err);
    }
    return status;
}

ttn_status ttn_store_id(ttn_store *s, int64_t i, const char **ret, int64_t *ret_n, ttn_error *err)
{
    return get_text(s, &s->id, i, ret, ret_n, err);
}

ttn_status ttn_store_header(ttn_store *s, int64_t i, const char **ret, int64_t *ret_n, ttn_error *err)
{
    return get_text(s, &s->header, i, ret, ret_n, err);
}

const ttn_store_facts *ttn_store_describe(const ttn_store *s)
{
    return &s->facts;
}

const char *ttn_store_name(const ttn_store *s)
{
    return s->name;
}
