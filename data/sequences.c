#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/memory.h"
#include "data/sequences.h"

/* Where a sequence's tokens begin, and its name, among those of all. */
typedef struct {
    int64_t first, n;
    int64_t name;
} entry;

/* An array that grows by half. */
typedef struct {
    uint8_t *byte;
    int64_t n, room;
} bytes;

struct ttn_sequence_list {
    const ttn_alphabet *alphabet;
    entry *entry;
    int64_t n, room;
    bytes token;
    bytes excluded; /* empty as long as nothing is excluded; else as long as `token` */
    bytes name;
};

ttn_status ttn_sequence_list_create(const ttn_alphabet *alphabet, ttn_sequence_list **ret, ttn_error *err)
{
    *ret = ttn_alloc_or_say(1, sizeof **ret, "a list of sequences", err);
    if (!*ret) return TTN_ENOMEM;
    (*ret)->alphabet = alphabet;
    return TTN_OK;
}

void ttn_sequence_list_destroy(ttn_sequence_list *l)
{
    if (!l) return;
    free(l->entry);
    free(l->token.byte);
    free(l->excluded.byte);
    free(l->name.byte);
    ttn_free(l);
}

/* Room for n more elements of `size` bytes; 0: there is no memory. */
static int reserve(void **array, int64_t used, int64_t more, int64_t *room, size_t size)
{
    if (more <= *room - used) return 1;
    const int64_t wanted = used + more + (used + more) / 2 + 16;
    void *larger = realloc(*array, (size_t)wanted * size);
    if (!larger) return 0;
    *array = larger;
    *room = wanted;
    return 1;
}

static int reserve_bytes(bytes *b, int64_t more)
{
    void *byte = b->byte;
    const int done = reserve(&byte, b->n, more, &b->room, 1);
    b->byte = byte;
    return done;
}

static void append(bytes *b, const void *from, int64_t n)
{
    memcpy(b->byte + b->n, from, (size_t)n);
    b->n += n;
}

/* From now on there is a byte of `excluded` for each token, and room for n more. */
static int begin_excluding(ttn_sequence_list *l, int64_t n)
{
    if (!reserve_bytes(&l->excluded, l->token.n - l->excluded.n + n)) return 0;
    memset(l->excluded.byte + l->excluded.n, 0, (size_t)(l->token.n - l->excluded.n));
    l->excluded.n = l->token.n;
    return 1;
}

ttn_status ttn_sequence_list_add(ttn_sequence_list *l, const char *name, const uint8_t *token, const uint8_t *excluded,
                                 int64_t n, ttn_error *err)
{
    assert(n >= 1);
    const int64_t n_name = (int64_t)strlen(name) + 1;
    const int has_excluded = l->excluded.n > 0 || (excluded && memchr(excluded, 1, (size_t)n));
    void *grown = l->entry;
    int fits = reserve(&grown, l->n, 1, &l->room, sizeof *l->entry);
    l->entry = grown;
    fits = fits && reserve_bytes(&l->token, n) && reserve_bytes(&l->name, n_name);
    fits = fits && (!has_excluded || begin_excluding(l, n));
    if (!fits)
        return TTN_FAIL(err, TTN_ENOMEM, "there is no memory for sequence '%s' beside the %" PRId64 " before it", name,
                        l->n);
    l->entry[l->n++] = (entry){.first = l->token.n, .n = n, .name = l->name.n};
    append(&l->token, token, n);
    append(&l->name, name, n_name);
    if (has_excluded && excluded) append(&l->excluded, excluded, n);
    if (has_excluded && !excluded) {
        memset(l->excluded.byte + l->excluded.n, 0, (size_t)n);
        l->excluded.n += n;
    }
    return TTN_OK;
}

/* ---- seen as ttn_sequences ---- */

static int64_t length_of(const void *self, int64_t i)
{
    const ttn_sequence_list *l = self;
    assert(i >= 0 && i < l->n);
    return l->entry[i].n;
}

static void copy_range(const ttn_sequence_list *l, const bytes *from, int64_t i, int64_t first, int64_t n,
                       uint8_t *into)
{
    assert(i >= 0 && i < l->n);
    assert(first >= 0 && n >= 0 && n <= l->entry[i].n - first);
    memcpy(into, from->byte + l->entry[i].first + first, (size_t)n);
}

static ttn_status copy_tokens(void *self, int64_t i, int64_t first, int64_t n, uint8_t *into, ttn_error *err)
{
    (void)err;
    const ttn_sequence_list *l = self;
    copy_range(l, &l->token, i, first, n, into);
    return TTN_OK;
}

static ttn_status copy_excluded(void *self, int64_t i, int64_t first, int64_t n, uint8_t *into, ttn_error *err)
{
    (void)err;
    const ttn_sequence_list *l = self;
    copy_range(l, &l->excluded, i, first, n, into);
    return TTN_OK;
}

static void copy_name(void *self, int64_t i, char *into, size_t room)
{
    const ttn_sequence_list *l = self;
    assert(i >= 0 && i < l->n);
    snprintf(into, room, "%s", (const char *)l->name.byte + l->entry[i].name);
}

ttn_sequences ttn_sequence_list_view(ttn_sequence_list *l)
{
    return (ttn_sequences){
        .self = l,
        .alphabet = l->alphabet,
        .n = l->n,
        .length = length_of,
        .tokens = copy_tokens,
        .excluded = l->excluded.n > 0 ? copy_excluded : NULL,
        .name = copy_name,
    };
}
