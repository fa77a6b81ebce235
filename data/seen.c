#include <inttypes.h>
#include "core/memory.h"
#include "data/seen.h"

typedef struct {
    ttn_hash128 hash;
    int64_t value;
} entry;

/* Open addressing, linear probing. The hash of zeros marks a free place; the real one has a place of its own. */
struct ttn_seen {
    const char *what;
    entry *place; /* (n_place) */
    int64_t n_place, n;
    int has_zero;
    int64_t zero_value;
};

enum { FIRST_PLACES = 1024 }; /* a power of two, as all later ones */

static int is_zero(ttn_hash128 h)
{
    return h.high == 0 && h.low == 0;
}

static entry *find(entry *place, int64_t n_place, ttn_hash128 hash)
{
    uint64_t at = hash.low & (uint64_t)(n_place - 1);
    while (!is_zero(place[at].hash) && !ttn_hash_same(place[at].hash, hash))
        at = (at + 1) & (uint64_t)(n_place - 1);
    return &place[at];
}

void ttn_seen_expect(const ttn_seen *s, ttn_hash128 hash)
{
    __builtin_prefetch(&s->place[hash.low & (uint64_t)(s->n_place - 1)], 1);
}

ttn_status ttn_seen_create(const char *what, ttn_seen **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_seen *s = ttn_alloc_or_say(1, sizeof *s, what, err);
    if (!s) return TTN_ENOMEM;
    s->what = what;
    s->place = ttn_alloc_or_say(FIRST_PLACES, sizeof *s->place, what, err);
    if (!s->place) {
        ttn_free(s);
        return TTN_ENOMEM;
    }
    s->n_place = FIRST_PLACES;
    *ret = s;
    return TTN_OK;
}

void ttn_seen_destroy(ttn_seen *s)
{
    if (!s) return;
    ttn_free(s->place);
    ttn_free(s);
}

static ttn_status grow(ttn_seen *s, ttn_error *err)
{
    entry *place = ttn_alloc_or_say(s->n_place * 2, sizeof *place, s->what, err);
    if (!place) return TTN_ENOMEM;
    for (int64_t i = 0; i < s->n_place; i++)
        if (!is_zero(s->place[i].hash)) *find(place, s->n_place * 2, s->place[i].hash) = s->place[i];
    ttn_free(s->place);
    s->place = place;
    s->n_place *= 2;
    return TTN_OK;
}

ttn_status ttn_seen_add(ttn_seen *s, ttn_hash128 hash, int64_t value, int64_t **ret, int *ret_new, ttn_error *err)
{
    int is_new;
    if (is_zero(hash)) {
        is_new = !s->has_zero;
        if (is_new) s->zero_value = value;
        s->has_zero = 1;
        *ret = &s->zero_value;
    } else {
        if (s->n + s->n / 4 >= s->n_place) { /* four of five places are taken */
            ttn_status status = grow(s, err);
            if (status != TTN_OK) return status;
        }
        entry *e = find(s->place, s->n_place, hash);
        is_new = is_zero(e->hash);
        if (is_new) *e = (entry){hash, value};
        s->n += is_new;
        *ret = &e->value;
    }
    if (ret_new) *ret_new = is_new;
    return TTN_OK;
}

int64_t *ttn_seen_find(ttn_seen *s, ttn_hash128 hash)
{
    if (is_zero(hash)) return s->has_zero ? &s->zero_value : NULL;
    entry *e = find(s->place, s->n_place, hash);
    return is_zero(e->hash) ? NULL : &e->value;
}

int64_t ttn_seen_count(const ttn_seen *s)
{
    return s->n + s->has_zero;
}
