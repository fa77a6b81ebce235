/* All sequences from front to end, piece by piece: for what looks at every residue of a set that may not fit in memory.
 *
 *     ttn_sweep *p;
 *     ttn_sweep_create(&source, &p, err);
 *     while ((status = ttn_sweep_next(p, &piece, err)) == TTN_OK)
 *         sequence piece.first + i is piece.token[piece.offset[i]] … for piece.offset[i + 1] - piece.offset[i] residues
 *     ttn_sweep_destroy(p);                            TTN_EOF: that was all
 */
#ifndef TTN_SWEEP_H
#define TTN_SWEEP_H

#include "data/alphabet.h"
#include "data/store.h"
#include "data/store_write.h"

/* Lists as a store has them, read in ranges. */
typedef struct {
    void *self; /* the first argument of every function */
    const ttn_alphabet *alphabet;
    int64_t n;                                                                                  /* sequences */
    ttn_status (*offsets)(void *self, int64_t first, int64_t n, int64_t *into, ttn_error *err); /* of n + 1 there are */
    ttn_status (*tokens)(void *self, int64_t first, int64_t n, uint8_t *into, ttn_error *err);
    ttn_status (*hashes)(void *self, int64_t first, int64_t n, int64_t *into, ttn_error *err);
} ttn_sweep_source;

/* A store, and one that is being written. */
ttn_sweep_source ttn_sweep_of_store(ttn_store *s);
ttn_sweep_source ttn_sweep_of_writer(ttn_store_writer *w, const ttn_alphabet *alphabet);

enum {
    TTN_SWEEP_SEQUENCES = 1 << 14,
    TTN_SWEEP_TOKENS = 4 << 20
}; /* in a piece at most, but one sequence of any length */

typedef struct {
    int64_t first, n;
    const int64_t *offset; /* (n + 1) from 0 */
    const uint8_t *token;
} ttn_stretch;

typedef struct ttn_sweep ttn_sweep;

/* *ret is the caller's. TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_sweep_create(const ttn_sweep_source *source, ttn_sweep **ret, ttn_error *err);
void ttn_sweep_destroy(ttn_sweep *p); /* NULL is fine */

/* Begin again. */
void ttn_sweep_rewind(ttn_sweep *p);

/* How far something is that sweeps, 0 to 1, now and then; anything but 0 stops it with TTN_ESTOPPED. NULL: nobody asks. */
typedef int (*ttn_sweep_tell)(void *ctx, double part);

/* Borrowed until the next call. TTN_EOF behind the last; what the source may say; TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_sweep_next(ttn_sweep *p, ttn_stretch *ret, ttn_error *err);

#endif
