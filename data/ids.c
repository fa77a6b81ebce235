#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/memory.h"
#include "data/ids.h"
#include "data/seen.h"

enum { SUFFIX_ROOM = 24 }; /* "_", a number of 64 bits, and the closing 0 */

struct ttn_ids {
    ttn_seen *seen; /* where an id stood first; or the last number that was given behind it */
    char *made;     /* (room) id_2 */
    size_t room;
};

ttn_status ttn_ids_create(ttn_ids **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_ids *s = ttn_alloc_or_say(1, sizeof *s, "the ids", err);
    if (!s) return TTN_ENOMEM;
    ttn_status status = ttn_seen_create("the ids", &s->seen, err);
    if (status == TTN_OK)
        *ret = s;
    else
        ttn_ids_destroy(s);
    return status;
}

void ttn_ids_destroy(ttn_ids *s)
{
    if (!s) return;
    ttn_seen_destroy(s->seen);
    free(s->made);
    ttn_free(s);
}

ttn_status ttn_ids_see(ttn_ids *s, const char *id, int64_t place, int64_t *ret_first, ttn_error *err)
{
    int64_t *first;
    int is_new;
    ttn_status status = ttn_seen_add(s->seen, ttn_hash128_of(id, strlen(id)), place, &first, &is_new, err);
    if (status == TTN_OK) *ret_first = is_new ? -1 : *first;
    return status;
}

static ttn_status make_room(ttn_ids *s, size_t n, ttn_error *err)
{
    if (n <= s->room) return TTN_OK;
    char *longer = realloc(s->made, 2 * n);
    if (!longer) return TTN_FAIL(err, TTN_ENOMEM, "out of memory for an id");
    s->made = longer;
    s->room = 2 * n;
    return TTN_OK;
}

ttn_status ttn_ids_make_differ(ttn_ids *s, const char *id, const char **ret, ttn_error *err)
{
    const size_t n = strlen(id);
    const ttn_hash128 hash = ttn_hash128_of(id, n);
    int64_t *number;
    int is_new;
    *ret = id;
    ttn_status status = ttn_seen_add(s->seen, hash, 1, &number, &is_new, err);
    if (status != TTN_OK || is_new) return status;
    int64_t k = *number; /* the last one that was given, or a little less */
    status = make_room(s, n + SUFFIX_ROOM, err);
    while (status == TTN_OK && !is_new) {
        k++;
        snprintf(s->made, s->room, "%s_%" PRId64, id, k);
        status = ttn_seen_add(s->seen, ttn_hash128_of(s->made, strlen(s->made)), 1, &number, &is_new, err);
    }
    if (status == TTN_OK) status = ttn_seen_add(s->seen, hash, 1, &number, NULL, err); /* it may have moved */
    if (status != TTN_OK) return status;
    *number = k;
    *ret = s->made;
    return TTN_OK;
}
