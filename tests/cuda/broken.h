/* Kernels for test_emulation.c: right ones, and wrong ones that the emulation must notice (broken.cu). */
#ifndef TTN_TEST_BROKEN_H
#define TTN_TEST_BROKEN_H

#include "core/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    BROKEN_NOTHING,
    BROKEN_NO_BARRIER,          /* a missing __syncthreads */
    BROKEN_LAST_BARRIER,        /* shared memory is written again while others may still read */
    BROKEN_SHARED_END,          /* an index one past the end of a shared array */
    BROKEN_SHARED_START,        /* and one before it */
    BROKEN_SHARED_UNWRITTEN,    /* shared memory is read and nobody has written it */
    BROKEN_HALF_WARP,           /* a shuffle with a full mask by half a warp */
    BROKEN_NOT_IN_MASK,         /* a shuffle by a lane that its mask does not name */
    BROKEN_RETURNED_LANE,       /* a shuffle from a lane that has returned */
    BROKEN_LANE_OUTSIDE,        /* from a lane outside of the mask */
    BROKEN_SOME_AT_BARRIER,     /* __syncthreads in a branch that some threads take */
    BROKEN_TWO_BARRIERS,        /* one __syncthreads in each branch */
    BROKEN_SHUFFLE_NO_SYNC,     /* lanes of a warp exchange through shared memory without __syncwarp */
    BROKEN_TWO_BLOCKS_WRITE,    /* two blocks write one address of the device */
    BROKEN_BLOCK_READS_OTHERS,  /* a block reads what another one writes */
    BROKEN_BLOCK_WRITES_OTHERS, /* and the other way round */
    BROKEN_DEVICE_END,          /* an index past the end of an allocation */
    BROKEN_HOST_MEMORY,         /* a kernel reads the host's memory */
    BROKEN_MISALIGNED,          /* float4 from the wrong place */
    BROKEN_LDG,                 /* __ldg of what the kernel writes */
    BROKEN_NO_DYNAMIC,          /* dynamic shared memory that the launch did not ask for */
    BROKEN_MUCH_SHARED,         /* more fixed shared memory than there is */
    BROKEN_DEEP,                /* more stack than a thread has */
    BROKEN_N,
} broken;

/* y[b] = the sum of x[128 b … 128 b + 127], for 2 blocks; x (256), y (4 and more): of the device, real. host: an address of
 * the host's. The status of the launch. */
ttn_status broken_run(broken which, const ttn_stream *s, const real *x, real *y, const real *host, ttn_error *err);

/* Everything a kernel may use, right: out[i], 64 words of the device, each 1 when all is well. */
enum { RIGHT_WORDS = 40 };
ttn_status right_run(const ttn_stream *s, int *out, ttn_error *err);

/* A launch of so many blocks and threads, and so many bytes of dynamic shared memory, of a kernel that does nothing. */
ttn_status empty_run(const ttn_stream *s, unsigned blocks, unsigned threads, size_t dynamic_bytes, int allow,
                     ttn_error *err);

/* order[block * 64 + thread] = when it came, for 3 blocks of 64 threads; *clock is a number of the device, 0 at first. */
ttn_status order_run(const ttn_stream *s, int *order, int *clock, ttn_error *err);

#ifdef __cplusplus
}
#endif
#endif
