/* The tensors and the state of a run at one moment, copied to the host: what a checkpoint is written from while training
 * goes on.
 *
 * Names in the files: of the model, those that the caller gives (a published family's, so that other programs can load
 * model.safetensors) or the weights' own; of the optimizer, "m." and "v." before the weights' own name, and whatever
 * tensors the caller adds.
 */
#ifndef TTN_SNAPSHOT_H
#define TTN_SNAPSHOT_H

#include <stdint.h>
#include "autograd/weights.h"
#include "core/status.h"
#include "core/tensor.h"
#include "train/files/run_state.h"

/* Which file of a checkpoint a tensor lies in. */
typedef enum { TTN_PART_MODEL, TTN_PART_OPTIMIZER, TTN_N_PARTS } ttn_part;

/* A tensor on the host that is not one of the weights: the optimizer's own. */
typedef struct {
    const char *name;
    ttn_desc desc;
    const void *data;
} ttn_named_tensor;

/* One tensor of a snapshot, borrowed from it. */
typedef struct {
    const char *name;
    ttn_desc desc;
    ttn_part part;
    const void *data; /* 64-byte aligned */
    size_t bytes;
} ttn_snapshot_tensor;

typedef struct ttn_snapshot ttn_snapshot;

/* Memory on the host for all values of w, the moments that w has by now, and `more` (n_more; their data is not looked at
 * yet); touched, so that no copy waits for pages. model_name: the name in model.safetensors of each weight
 * (ttn_weights_count(w) of them, unique); NULL: the weights' own. Names are copied. *ret is the caller's.
 * TTN_EINVAL: a name stands twice in a part; TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_snapshot_create(const ttn_weights *w, const char *const *model_name,
                                            const ttn_named_tensor *more, int n_more, ttn_snapshot **ret,
                                            ttn_error *err);

/* Copy everything as it is now: from the weights that it was created for, `more` in the same order, and the state. */
TTN_MUST_USE ttn_status ttn_snapshot_take(ttn_snapshot *s, const ttn_weights *w, const ttn_named_tensor *more,
                                          const ttn_run_state *state, ttn_error *err);

/* Its two halves, for who copies the tensors (the long one) from another thread. */
TTN_MUST_USE ttn_status ttn_snapshot_take_state(ttn_snapshot *s, const ttn_run_state *state, ttn_error *err);
TTN_MUST_USE ttn_status ttn_snapshot_take_tensors(ttn_snapshot *s, const ttn_weights *w, const ttn_named_tensor *more,
                                                  ttn_error *err);

/* Every number is finite? TTN_ENUMERIC names the first that is not. Reads all of it. */
TTN_MUST_USE ttn_status ttn_snapshot_check_finite(const ttn_snapshot *s, ttn_error *err);

int ttn_snapshot_count(const ttn_snapshot *s);
const ttn_snapshot_tensor *ttn_snapshot_at(const ttn_snapshot *s, int i);
const ttn_run_state *ttn_snapshot_state(const ttn_snapshot *s); /* of the last take */
size_t ttn_snapshot_bytes(const ttn_snapshot *s);               /* of all tensors */
void ttn_snapshot_destroy(ttn_snapshot *s);                     /* NULL is fine */

/* "m.NAME" and "v.NAME" of a weight; text has room bytes (TTN_MOMENT_NAME is enough for any). Returns text. */
enum { TTN_MOMENT_NAME = 1024 };
char *ttn_moment_name(ttn_slab slab, const char *weight, char *text);

#endif
