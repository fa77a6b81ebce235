/* The emulated device, for the tests that run on it.
 *
 * What goes wrong on the device is a failure of the device, as it would be on a GPU: the kernel ends where it is, every
 * later call of the runtime returns cudaErrorLaunchFailure, and cudaGetErrorString gives the sentence that says what
 * happened, in which kernel, block and thread. Through ttn_cuda_status it becomes the test's failure.
 *
 * One thread of the host uses the device at a time.
 */
#ifndef TTN_TEST_EMULATION_H
#define TTN_TEST_EMULATION_H

#include <stddef.h>
#include <stdint.h>
#include "core/api.h"

TTN_EXTERN_C_BEGIN

/* In which order blocks, warps and the lanes of a warp get their turn. At first what TTN_CUDA_ORDER (forward, reverse,
 * random) and TTN_CUDA_SEED say; else forward. A warp runs as far as it can before the next one starts: that, and not
 * turns thread by thread, is what shows a missing barrier in the results. */
typedef enum { EMULATION_FORWARD, EMULATION_REVERSE, EMULATION_RANDOM } emulation_order;
void emulation_set_order(emulation_order order, uint64_t seed);
void emulation_get_order(emulation_order *order, uint64_t *seed);

/* The most blocks that ttn_cuda_blocks (core/cuda.h) asks for; at first 65,535, as on a GPU. With few of them a short case
 * goes through the loops in which a kernel strides over what a large grid does not cover, as a million rows do. */
void emulation_set_most_blocks(int blocks);

/* 1: every access of a kernel to memory is looked at (below); 0: a build under AddressSanitizer, which looks itself. */
int emulation_checks(void);

/* "", or the sentence of the failure. */
const char *emulation_failure(void);

/* Forget it, and an armed call: the device is as good as new. What was queued is dropped; memory stays allocated. */
void emulation_reset(void);

/* The nth call of the runtime or of cuBLAS from now on (1: the next one; launches count) fails with this error, a number
 * of cudaError_t; cuBLAS says CUBLAS_STATUS_EXECUTION_FAILED. 0: none does. */
void emulation_fail_call(int64_t nth, int error);

/* Calls since then; whether one was hit. */
int64_t emulation_calls(void);
int emulation_was_hit(void);

/* Bytes that cudaMalloc has given and not got back; the most that it gives (at first 2 GiB). */
size_t emulation_allocated(void);
void emulation_set_memory(size_t bytes);

/* Blocks and threads that have run, for tests of the emulation. */
int64_t emulation_blocks_run(void);

TTN_EXTERN_C_END
#endif
