/* Batches that are made while others are computed with: one thread asks the sampler, and keeps a few of them ready.
 *
 *     const ttn_batch *b;
 *     while ((status = ttn_loader_next(l, &b, err)) == TTN_OK) … b …
 */
#ifndef TTN_LOADER_H
#define TTN_LOADER_H

#include "data/sampler.h"

typedef struct ttn_loader ttn_loader;

/* Begins at once. `ready` batches, at least 1, may wait; the one that is being used and the one that is being made come on top.
 * The sampler is the loader's until it is destroyed, and outlives it. *ret is the caller's. TTN_ENOMEM; TTN_EDEVICE: the
 * system gives no thread. */
TTN_MUST_USE ttn_status ttn_loader_create(ttn_sampler *s, int ready, ttn_loader **ret, ttn_error *err);

/* Stops, also while batches wait or are waited for: as soon as the sampler has made the one it is at. The sampler is then ahead
 * of what was used: go on from the `next` of the last batch (ttn_sampler_seek). NULL is fine. */
void ttn_loader_destroy(ttn_loader *l);

/* The next one, borrowed until the next call. What the sampler returned comes after all batches before it, TTN_EOF too, and
 * from then on always. One thread. */
TTN_MUST_USE ttn_status ttn_loader_next(ttn_loader *l, const ttn_batch **ret, ttn_error *err);

/* Seconds that ttn_loader_next has waited for batches in all: time that computing lost. */
double ttn_loader_waited(const ttn_loader *l);

#endif
