/* TensorBoard's event file: tb/events.out.tfevents.DATE.HOST.PID.N, which `tensorboard --logdir` reads while it grows.
 *
 * A file is records; a record is
 *
 *     u64 n    u32 masked crc32c of those 8 bytes    n bytes    u32 masked crc32c of those n bytes     all little-endian
 *     masked(c) = rotate_right(c, 15) + 0xa282ead8
 *
 * and its n bytes are an Event of protocol buffers: field 1 the time (double), 2 the step (varint), and one of 3 the text
 * "brain.Event:2" (the first record), 5 a Summary, 7 a SessionLog. A Summary is, in field 1, its values: each field 1 the
 * tag (text) and 2 the number (float). A SessionLog with its field 1 at START (1) tells TensorBoard that the run goes on
 * from there: what earlier files say of this step and later ones is void.
 *
 * Every start of a run has a file of its own. It is a by-product, made anew from metrics.jsonl if need be: nothing waits
 * for the disk.
 */
#ifndef TTN_EVENT_FILE_H
#define TTN_EVENT_FILE_H

#include <stddef.h>
#include <stdint.h>
#include "core/clock.h"
#include "core/status.h"
#include "train/metrics.h"

typedef struct ttn_event_file ttn_event_file;

/* A new file in the folder, which is made when it is not there (its parent must be). step: the first of which this start of
 * the run can have a record; 0: nothing in earlier files is void. host: the machine's name. clock NULL: the system's. *ret is
 * the caller's. TTN_EINVAL, TTN_EIO, TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_event_file_create(const char *folder, const char *host, int64_t step,
                                              const ttn_clock *clock, ttn_event_file **ret, ttn_error *err);

/* Append a record's numbers, as floats; TensorBoard shows those that are not finite as gaps. TTN_EIO (a full disk): the
 * file is as before, and the next one may succeed. TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_event_file_add(ttn_event_file *f, const ttn_metrics *r, ttn_error *err);

const char *ttn_event_file_path(const ttn_event_file *f); /* borrowed */
void ttn_event_file_close(ttn_event_file *f);             /* NULL is fine */

/* Castagnoli's CRC of 32 bits: of "123456789" it is 0xE3069283. */
uint32_t ttn_crc32c(const void *bytes, size_t n);

#endif
