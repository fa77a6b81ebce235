/* A feed's arrays as one piece of memory, for kernels of a device: made on the host, sent as it is (ttn_on_device). */
#ifndef TTN_ON_DEVICE_H
#define TTN_ON_DEVICE_H

#include <stddef.h>
#include "autograd/op.h"

/* Offsets from the piece's start, in bytes. */
typedef struct {
    int64_t rows; /* capacity */
    size_t span, start, sample, seq_of_row;
    size_t bytes;
} ttn_feed_layout;

ttn_feed_layout ttn_feed_lay_out(ttn_extent capacity);

/* host: bytes that begin at a multiple of 16. The feed fits the capacity. */
void ttn_feed_write(const ttn_feed_layout *l, const ttn_feed *f, void *host);

/* What calls get when the piece lies at `base` in the device's memory; no fault sink yet. */
ttn_on_device ttn_feed_at(const ttn_feed_layout *l, void *base);

#endif
