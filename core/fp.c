#include <omp.h>
#include "core/fp.h"

#if defined(__x86_64__)

/* MXCSR: flush to zero (bit 15), denormals are zero (bit 6). */
static const uint64_t zero_bits = 1u << 15 | 1u << 6;

static uint64_t control(void)
{
    uint32_t word;
    __asm__ volatile("stmxcsr %0" : "=m"(word));
    return word;
}

static void set_control(uint64_t word)
{
    uint32_t low = (uint32_t)word;
    __asm__ volatile("ldmxcsr %0" : : "m"(low));
}

#elif defined(__aarch64__)

/* FPCR: FZ (bit 24) is both, for float and double. */
static const uint64_t zero_bits = 1u << 24;

static uint64_t control(void)
{
    uint64_t word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    return word;
}

static void set_control(uint64_t word)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(word));
}

#else

/* Another family: results are the same to rounding, and slower where denormals appear. */
static const uint64_t zero_bits = 0;

static uint64_t control(void)
{
    return 0;
}

static void set_control(uint64_t word)
{
    (void)word;
}

#endif

uint64_t ttn_fp_begin(void)
{
    uint64_t before = control();
    set_control(before | zero_bits);
    return before;
}

void ttn_fp_end(uint64_t saved)
{
    set_control((control() & ~zero_bits) | (saved & zero_bits));
}

/* The calling thread's word is set outside of the regions: libomp puts back, at the end of a region, what the calling
 * thread had at its start (and gives it to the workers of every region, so that there the loops have nothing to do;
 * libgomp does neither). */
void ttn_fp_begin_threads(int n_thread, uint64_t *saved)
{
    /* a region may get fewer threads than it asked for: the words nobody owns must hold something */
    for (int i = 0; i < n_thread; i++)
        saved[i] = control();
    (void)ttn_fp_begin();
#pragma omp parallel num_threads(n_thread)
    if (omp_get_thread_num() > 0) saved[omp_get_thread_num()] = ttn_fp_begin();
}

void ttn_fp_end_threads(int n_thread, const uint64_t *saved)
{
#pragma omp parallel num_threads(n_thread)
    if (omp_get_thread_num() > 0) ttn_fp_end(saved[omp_get_thread_num()]);
    ttn_fp_end(saved[0]);
}
