/* A device that computes on the host, in memory that the host may touch only inside the device's own functions and inside
 * kernels: anything else that reads or writes a value dies of SIGSEGV. So code that runs here runs where the host cannot
 * read.
 */
#ifndef TTN_GUARDED_H
#define TTN_GUARDED_H

#include "autograd/graph_impl.h"
#include "core/device.h"

/* NULL when there is no memory. Destroy with ttn_device_destroy, after the graphs' last use. */
ttn_device *guarded_device(void);

/* Before planning: the kernels of g's nodes open the device's memory while they run. */
void guarded_graph(ttn_device *d, ttn_graph *g);

/* Transfers to the host and from it since the device was made. */
typedef struct {
    int64_t puts, gets;
} guarded_transfers;
guarded_transfers guarded_count(const ttn_device *d);

#endif
