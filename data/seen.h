/* What has been seen before? A table from 128-bit hashes to a number that the caller gives, 24 bytes an entry and up to
 * twice that while it grows: ids and sequences of a file whose doubles are to be found. */
#ifndef TTN_SEEN_H
#define TTN_SEEN_H

#include <stdint.h>
#include "core/hash.h"
#include "core/status.h"

typedef struct ttn_seen ttn_seen;

/* `what` ("ids") is the subject of messages, borrowed. *ret is the caller's. TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_seen_create(const char *what, ttn_seen **ret, ttn_error *err);
void ttn_seen_destroy(ttn_seen *s); /* NULL is fine */

/* ttn_seen_add of this hash comes soon: the memory that it will look at is fetched meanwhile. */
void ttn_seen_expect(const ttn_seen *s, ttn_hash128 hash);

/* *ret points to the hash's number, good until the next call; it is `value` where the hash is new (*ret_new, which may be
 * NULL, is then 1, else 0). TTN_ENOMEM: nothing was added. */
TTN_MUST_USE ttn_status ttn_seen_add(ttn_seen *s, ttn_hash128 hash, int64_t value, int64_t **ret, int *ret_new,
                                     ttn_error *err);

/* The number of a hash that was added, as above; NULL: it was not. */
int64_t *ttn_seen_find(ttn_seen *s, ttn_hash128 hash);

int64_t ttn_seen_count(const ttn_seen *s); /* different hashes */

#endif
