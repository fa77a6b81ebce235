/* Numbers below the smallest normal one are zero while we compute.
 *
 * They take a slow path in many processors: on a Xeon of 2023 one of a hundred elements of A makes a matrix product 5
 * times slower, one of ten 40 times (Zen 3 loses nothing), and the tails of exp are full of them. "Flush to zero" is about results, "denormals are zero" about
 * operands; both belong to a thread, which has them from the thread that started it.
 */
#ifndef TTN_FP_H
#define TTN_FP_H

#include <stdint.h>

/* Both on for the calling thread (x86-64, aarch64; elsewhere nothing happens). Returns the former control word;
 * ttn_fp_end puts those two bits back as they were in it and leaves the others (rounding, exception flags) alone. */
uint64_t ttn_fp_begin(void);
void ttn_fp_end(uint64_t saved);

/* The same for every thread of an OpenMP region of n_thread, the calling one included: workers that were started before
 * ttn_fp_begin do not get it from there. saved (n_thread) is the caller's; nothing else may change the number of threads
 * or the order of workers between the two calls (regions of other sizes in between are harmless). */
void ttn_fp_begin_threads(int n_thread, uint64_t *saved);
void ttn_fp_end_threads(int n_thread, const uint64_t *saved);

#endif
