/* Ids that stand twice: who had it first, and another one in its place. 24 to 60 bytes an id. */
#ifndef TTN_IDS_H
#define TTN_IDS_H

#include <stdint.h>
#include "core/status.h"

typedef struct ttn_ids ttn_ids;

/* *ret is the caller's. TTN_ENOMEM, as of the others. One object is asked by one of the two functions, not by both. */
TTN_MUST_USE ttn_status ttn_ids_create(ttn_ids **ret, ttn_error *err);
void ttn_ids_destroy(ttn_ids *s); /* NULL is fine */

/* Somebody at `place` (0 or more) has this id. *ret_first: the place of whom had it first; -1: nobody had. */
TTN_MUST_USE ttn_status ttn_ids_see(ttn_ids *s, const char *id, int64_t place, int64_t *ret_first, ttn_error *err);

/* *ret: `id` itself where nobody had it, else the first of id_2, id_3, … that nobody has, good until the next call. */
TTN_MUST_USE ttn_status ttn_ids_make_differ(ttn_ids *s, const char *id, const char **ret, ttn_error *err);

#endif
