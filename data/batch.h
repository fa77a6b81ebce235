/* One packed batch: N rows that hold whole sequences, or crops of them, one behind the other; spans say whose rows are whose.
 *
 * Where it lies: a sequence's rows begin at a multiple of TTN_BATCH_ALIGN, and so do its picks. Rows and picks between
 * and behind them belong to no sequence. Every array is filled to its capacity, so it can be bound as it is.
 */
#ifndef TTN_BATCH_H
#define TTN_BATCH_H

#include <stdint.h>
#include "core/gemm.h"
#include "core/status.h"
#include "core/tensor.h"

/* What gives a row of a product the same bits wherever its sequence stands (core/gemm.h); then a sequence's numbers do not
 * depend on its batch mates. Constants, so that batches do not depend on the processor either. */
enum { TTN_BATCH_ALIGN = TTN_ROW_ALIGN, TTN_BATCH_TILE = TTN_ROW_TILE };

/* The target of a pick without a loss: what cross-entropy is told to ignore. It is no token. */
enum { TTN_BATCH_NO_TARGET = 255 };

/* Where in the endless series of batches: batch `batch` of window `window` of epoch `epoch`. */
typedef struct {
    int64_t epoch, window, batch;
    uint64_t order; /* a hash of all that the series depends on; 0: not known (the start of a run) */
} ttn_cursor;

typedef struct {
    ttn_extent capacity;
    ttn_extent used;  /* where what they hold ends; all 0: an empty batch, which is not to be run */
    uint8_t *token;   /* (N) what the model sees; pads in rows of no sequence */
    ttn_span *span;   /* (S) ascending */
    int64_t *start;   /* (S) position of its first row in the protein, see ttn_frame in data/batch_rules.h */
    uint64_t *sample; /* (S) number of the sequence in the data set */
    int64_t *index;   /* (R) the row of each pick, ascending; -1: of none */
    uint8_t *target;  /* (R) the token that is to be predicted; TTN_BATCH_NO_TARGET where index is -1 */
    uint8_t *shown;   /* (R) 1: the model sees <mask> there; 0: it sees a residue, right or wrong (or index is -1) */

    int64_t targets;  /* picks with a loss */
    int64_t masked;   /* of them those with `shown` */
    int64_t residues; /* rows of residues */
    int64_t cropped;  /* sequences that are longer than what is here of them */
    int64_t unpicked; /* sequences without a target: all of their residues are excluded */
    int64_t shard;    /* of its step, from 0 */
    ttn_cursor at;    /* of this batch */
    ttn_cursor next;  /* where to go on when this one is done: behind a step's last batch all ranks have the same */
} ttn_batch;

/* Memory for these capacities; an empty batch. Rows and picks are multiples of TTN_BATCH_TILE. TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_batch_create(ttn_extent capacity, ttn_batch **ret, ttn_error *err);
void ttn_batch_destroy(ttn_batch *b); /* NULL is fine */

/* As just created: no rows, no picks, `pad` in every row. */
void ttn_batch_clear(ttn_batch *b, uint8_t pad);

#endif
