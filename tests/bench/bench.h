/* Benchmarks: every figure is a ratio to something measured in the same run, because the machines are shared and
 * absolute times mean little.
 *
 *     int main(int argc, char **argv)
 *     {
 *         bench_start(argc, argv, "gemm");       // re-exec under the right BLAS kernel, or refuse to run; prints what runs
 *         bench_row rows[] = {
 *             {.name = "sgemm", .run = plain, .arg = &shape, .work = 0.25, .unit = "GF/s"}, // the reference
 *             {.name = "ttn_gemm_rows", .run = ours, .arg = &shape, .work = 0.25, .unit = "GF/s", .goal = 0.9},
 *         };
 *         bench_compare("512x512, 1 thread", rows, 2);
 *         return bench_end();
 *     }
 *
 * Rows of one bench_compare are sampled interleaved: warm-up, then at least 10 rounds of each row in turn, so that a
 * neighbour's load falls on all of them; every second round goes backwards, so that nobody always follows the same row.
 * Reported: the median, its spread (median absolute deviation), and the ratio of the rates to row 0, taken round by
 * round (the median of the ratios). A comparison that misses a goal is measured once more, and that counts.
 *
 * The program's first argument, if any: only comparisons whose `what` contains it. One line of JSON a row goes to
 * PROGRAM.jsonl beside the program: {bench, case, value, unit, spread, against, ratio, goal?}; value and spread in unit.
 */
#ifndef TTN_BENCH_H
#define TTN_BENCH_H

#include <stddef.h>
#include <stdint.h>
#include "core/real.h"

typedef struct {
    const char *name;
    void (*run)(void *arg); /* one sample; takes between 1 ms and 1 s (repeated inside a sample while shorter) */
    void *arg;
    double work;      /* what one run does, in units of `unit` times a second: 2e9 flops with "GF/s" is 2 */
    const char *unit; /* "GF/s", "GB/s", "G/s"; NULL: the time itself, in ms */
    double goal;      /* wanted: ratio to row 0 >= goal; 0: none. A miss is marked and counted */
} bench_row;

/* Starts the BLAS too (core/blas.h: once in a process, so a benchmark does not). Refuses to run, with exit code 6, when it
 * does not start or runs on a kernel below the processor. */
void bench_start(int argc, char **argv, const char *name);
void bench_compare(const char *what, const bench_row *row, int n_row);

/* Prints the closing line and returns main's exit code: 0, or 1 when a goal was missed or no comparison contains the argument. */
int bench_end(void);

/* Memory that lives until the program ends, which it does when there is none. */
void *bench_memory(size_t bytes);

/* n numbers, uniform in [-size, size), the same in every run, in such memory. */
real *bench_values(int64_t n, double size);

/* A line that is no comparison (a kernel's name, a size). */
void bench_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
