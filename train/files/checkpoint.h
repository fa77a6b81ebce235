/* A checkpoint: a folder that appears whole, and that is believed only when every byte of it is what it was.
 *
 *     step-00012000/
 *       model.safetensors                  the weights, under names that other programs know
 *       optim-r0000-of-0001.safetensors    the moments ("m.NAME", "v.NAME"), what the optimizer adds; of rank 0 of 1
 *       state.json                         step, cursor, seeds, configuration (train/files/run_state.h)
 *       MANIFEST.json                      bytes and checksums, written last (train/files/manifest.h)
 *
 * Which checkpoints a run has, and which of them is taken: train/files/run_folder.h. Saving beside the training:
 * train/files/saver.h.
 */
#ifndef TTN_CHECKPOINT_H
#define TTN_CHECKPOINT_H

#include <stdint.h>
#include "autograd/weights.h"
#include "core/status.h"
#include "train/files/manifest.h"
#include "train/files/run_state.h"
#include "train/files/snapshot.h"

/* In MANIFEST.json. A later version is refused, naming the titin that wrote it. */
#define TTN_CHECKPOINT_FORMAT "titin checkpoint"
enum { TTN_CHECKPOINT_VERSION = 1 };

/* ---- writing ---- */

/* Write the snapshot as the folder `path`. First every number is checked to be finite (TTN_ENUMERIC), then the disk to
 * have room; the space of the tensors is taken before the first byte is written. TTN_EIO: nothing has appeared and what
 * was at path stays, with the exception of ttn_atomic_in_place, which *in_place (NULL: nobody asks) repeats: 1 when the
 * folder at path is the new one. TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_checkpoint_write(const ttn_snapshot *s, const char *path, int *in_place, ttn_error *err);

/* The same, but what is at path is kept under another name (ttn_atomic_folder_create_beside): kept (PATH_MAX) gets it, ""
 * when there was nothing, or it is still in place. */
TTN_MUST_USE ttn_status ttn_checkpoint_write_beside(const ttn_snapshot *s, const char *path, char *kept, int *in_place,
                                                    ttn_error *err);

/* Could it be written as the folder `path` now? The disk has room, a folder can be made there, and the space of the tensors
 * is taken as for writing, and given back. Nothing appears, and what is at path stays. *ret_bytes: about what the checkpoint
 * takes. TTN_EINVAL, TTN_EIO, TTN_ENOMEM, as writing says them. */
TTN_MUST_USE ttn_status ttn_checkpoint_try(const ttn_snapshot *s, const char *path, size_t *ret_bytes, ttn_error *err);

/* ---- reading ---- */

typedef struct ttn_checkpoint ttn_checkpoint;

/* Open the folder `path` after reading every byte of it: what this returns is whole. TTN_ECHECKPOINT: it is not, or of
 * another version, when *opt_other (unless NULL) is 1. TTN_EIO, TTN_ENOMEM. *ret is the caller's. */
TTN_MUST_USE ttn_status ttn_checkpoint_open(const char *path, ttn_checkpoint **ret, int *opt_other, ttn_error *err);
void ttn_checkpoint_close(ttn_checkpoint *c); /* NULL is fine */

/* Borrowed until close. */
const char *ttn_checkpoint_path(const ttn_checkpoint *c);
const ttn_run_state *ttn_checkpoint_state(const ttn_checkpoint *c);

/* One tensor as it was saved, of exactly this type and shape (TTN_REAL: the build's own). `data` has
 * ttn_desc_bytes(desc). Its checksum is compared again. TTN_ECHECKPOINT when there is none of that name, it has another
 * shape or type (the message has both), or the file has changed since it was opened. */
TTN_MUST_USE ttn_status ttn_checkpoint_read(const ttn_checkpoint *c, ttn_part part, const char *name,
                                            const ttn_desc *desc, void *data, ttn_error *err);

/* Does it have what w has, by name, type and shape? Both ways: a missing tensor, one of another shape, one that w does not have
 * in model.safetensors is TTN_ECHECKPOINT. w may have no memory yet (ttn_weights_layout). */
TTN_MUST_USE ttn_status ttn_checkpoint_compare(const ttn_checkpoint *c, const ttn_weights *w,
                                               const char *const *model_name, ttn_error *err);

/* All weights, and with_moments the slabs of moments that w has. First everything is compared with what is there, both
 * ways: a missing tensor, one of another shape, one that w does not have in model.safetensors is TTN_ECHECKPOINT, and w
 * is as it was. After a failure that comes later (TTN_EIO; a file that changes while it is read) w holds a mix and must
 * not be used. model_name: as it was saved. */
TTN_MUST_USE ttn_status ttn_checkpoint_load(const ttn_checkpoint *c, ttn_weights *w, const char *const *model_name,
                                            int with_moments, ttn_error *err);

#endif
