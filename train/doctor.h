/* What a run would find here: processor, cores, threads, BLAS, memory, disk, GPU; and what of it somebody should change.
 *
 * Looking (ttn_doctor_examine) and judging (ttn_doctor_judge) are apart, so that a test can hand in any machine. Nothing is
 * printed: `titin doctor` does that.
 */
#ifndef TTN_DOCTOR_H
#define TTN_DOCTOR_H

#include <stdint.h>
#include "core/blas.h"
#include "core/cpu.h"
#include "core/device.h"
#include "core/machine.h"
#include "core/status.h"

typedef struct {
    int n;                  /* that a run would start */
    char asked[32];         /* OMP_NUM_THREADS, when it is set; "" */
    const char *binding;    /* OMP_PROC_BIND in effect: "no", "close", … */
    int places;             /* that threads are bound to; 0: none are named */
    const char *started_by; /* "mpirun", "Slurm", when the environment tells; "" */
} ttn_doctor_threads;

typedef struct {
    const char *folder;
    int is_writable;
    char why_not[160]; /* it is not writable; "" */
    int64_t present, available;
    const char *file_system; /* "ext4"; "" unknown */
    double sync_seconds;     /* until 4 KiB are on the disk, the median of a few; < 0: unknown */
} ttn_doctor_disk;

/* One thing to change. */
typedef struct {
    const char *id;   /* "one_core": for programs, stays as it is */
    char text[320];   /* what is wrong: a sentence without a dot at its end */
    char advice[320]; /* what to do: the same */
} ttn_doctor_warning;

enum { TTN_DOCTOR_WARNINGS = 24 };

typedef struct {
    ttn_machine machine;
    ttn_cpu_set cpu_present, cpu_built;
    ttn_doctor_threads threads;
    ttn_blas_info blas;
    ttn_status blas_status; /* of ttn_blas_start: not TTN_OK when this BLAS cannot be used, or is wrong */
    ttn_error blas_error;
    double rate_one, rate_all; /* sgemm: flop a second by one thread, and by all of them together; 0: not measured */
    ttn_doctor_disk disk;
    ttn_status gpu_status; /* of ttn_device_cuda(0), and of asking it what it is */
    ttn_error gpu_error;
    ttn_device_report gpu; /* when that is TTN_OK */
    ttn_doctor_warning warning[TTN_DOCTOR_WARNINGS];
    int n_warning;
} ttn_doctor_report;

typedef struct {
    const char *folder; /* where runs would be written; kept in the report */
    const char *root;   /* of ttn_machine_look */
    double seconds;     /* to measure each rate; 0: not at all */
} ttn_doctor_request;

/* Starts the BLAS (core/blas.h: once in a process). Fills the whole report, warnings included. TTN_ENOMEM; what is wrong
 * with the machine is in the report and is no failure. */
TTN_MUST_USE ttn_status ttn_doctor_examine(const ttn_doctor_request *request, ttn_doctor_report *ret, ttn_error *err);

/* sgemm on this machine: flop a second by n_thread threads, each with products of its own, for about `seconds`; after
 * ttn_start. 0: no memory. */
double ttn_doctor_rate(int n_thread, double seconds);

/* From everything else in the report: its warnings. */
void ttn_doctor_judge(ttn_doctor_report *r);

#endif
