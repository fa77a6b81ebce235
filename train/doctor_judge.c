/* What of a machine somebody should change, and how. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "core/text.h"
#include "train/doctor.h"

/* Text and advice are one format: "text | advice". */
static void warn(ttn_doctor_report *r, const char *id, const char *format, ...) TTN_PRINTF(3, 4);
static void warn(ttn_doctor_report *r, const char *id, const char *format, ...)
{
    char both[sizeof r->warning[0].text + sizeof r->warning[0].advice];
    if (r->n_warning == TTN_DOCTOR_WARNINGS) return;
    ttn_doctor_warning *w = &r->warning[r->n_warning++];
    va_list args;
    va_start(args, format);
    vsnprintf(both, sizeof both, format, args);
    va_end(args);
    const char *bar = strstr(both, " | ");
    int n = bar ? (int)(bar - both) : (int)strlen(both);
    w->id = id;
    snprintf(w->text, sizeof w->text, "%.*s", n, both);
    snprintf(w->advice, sizeof w->advice, "%s", bar ? bar + 3 : "");
}

/* ---- cores and threads ---- */

static void judge_cores(ttn_doctor_report *r)
{
    const ttn_cores *c = &r->machine.cores;
    if (c->allowed > 1 || c->present <= 1) return;
    const char *how = "something has bound it (taskset, a container's cpuset): `taskset -cp $$` shows what the shell "
                      "may use, and `docker --cpuset-cpus` or the like what a container may";
    if (strcmp(r->threads.started_by, "mpirun") == 0)
        how = "mpirun binds each rank to one core: start it with `mpirun --bind-to none`, or with "
              "`--map-by slot:PE=N` for N cores a rank";
    if (strcmp(r->threads.started_by, "Slurm") == 0)
        how = "ask Slurm for cores: `--cpus-per-task=N`, for sbatch and again for srun";
    warn(r, "one_core", "only 1 of the %d cores may be used by this process | %s", c->present, how);
}

static void judge_thread_count(ttn_doctor_report *r)
{
    const ttn_cores *c = &r->machine.cores;
    const ttn_doctor_threads *t = &r->threads;
    if (t->n > c->usable && c->quota > 0 && c->usable < c->allowed)
        warn(r, "quota",
             "a control group gives this process the time of %.3g cores: %d threads would be stopped in the middle of "
             "their work | set OMP_NUM_THREADS=%d, or unset it, or give the container more (`docker --cpus`, "
             "`limits.cpu` of a pod)",
             c->quota, t->n, c->usable);
    else if (t->n > c->usable)
        warn(r, "threads_above",
             "%d threads on %d core%s would wait for each other | set OMP_NUM_THREADS=%d, or unset it", t->n, c->usable,
             ttn_text_plural(c->usable), c->usable);
    else if (t->n < c->usable)
        warn(r, "threads_below", "%d thread%s on %d cores: the others stay idle | %s", t->n, ttn_text_plural(t->n),
             c->usable,
             *t->asked                      ? "unset OMP_NUM_THREADS, unless another program is to have them"
             : t->n == TTN_BLAS_MAX_THREADS ? "OpenBLAS serves no more at once; another run can have them"
                                            : "unset OMP_THREAD_LIMIT");
    if (t->places > 0 && t->places < t->n)
        warn(r, "bound_together",
             "%d threads are bound to %d place%s: several compute on one core while others are free | unset "
             "OMP_PLACES and OMP_PROC_BIND",
             t->n, t->places, ttn_text_plural(t->places));
}

static void judge_speed(ttn_doctor_report *r)
{
    const ttn_cores *c = &r->machine.cores;
    const double busy = 1.25; /* by more than a passing command */
    if (r->machine.load > busy * c->present)
        warn(r, "load", "other programs keep the cores busy: a load of %.1f on %d core%s | `top` shows which they are",
             r->machine.load, c->present, ttn_text_plural(c->present));
    /* Two hyperthreads of one core reach about 1. */
    if (r->threads.n > 1 && r->threads.n <= c->usable && r->rate_all > 0 && r->rate_all < 1.3 * r->rate_one)
        warn(
            r, "no_gain",
            "%d threads together multiply only %.1f times as fast as one | see with `top` who else computes; where the "
            "cores are hyperthreads of one, half as many threads do",
            r->threads.n, r->rate_all / r->rate_one);
}

/* ---- BLAS and build ---- */

static void judge_blas(ttn_doctor_report *r)
{
    if (r->blas.warning[0])
        warn(r, "kernel", "%.200s | unset OPENBLAS_CORETYPE: titin chooses the kernel that fits", r->blas.warning);
}

static void judge_build(ttn_doctor_report *r)
{
#if defined(__x86_64__)
    const ttn_cpu_set wide = TTN_CPU(AVX2) | TTN_CPU(FMA) | TTN_CPU(AVX512F);
    char names[64];
    ttn_cpu_set unused = r->cpu_present & ~r->cpu_built & wide;
    if (unused)
        warn(r, "build",
             "this titin was built for older processors, without %s | build it on this machine: `make` makes what "
             "fits it",
             ttn_cpu_names(unused, names, sizeof names));
#else
    (void)r;
#endif
}

/* ---- memory and disk ---- */

#define GIB ((int64_t)1 << 30)
#define MIB ((double)(1 << 20))

static void judge_memory(ttn_doctor_report *r)
{
    const ttn_ram *m = &r->machine.ram;
    if (m->present > 0 && m->usable < GIB)
        warn(r, "memory", "only %.0f MiB of memory can be had%s | %s", (double)m->usable / MIB,
             m->limit > 0 ? ": a control group limits it" : "",
             m->limit > 0 ? "give the container or the job more (`docker --memory`, `sbatch --mem`)"
                          : "end programs that hold memory: `top -o %MEM` shows them");
    if (m->address_space > 0)
        warn(r, "address_space",
             "addresses are limited to %.0f MiB (ulimit -v), and titin reserves them for the most that a plan may need "
             "| `ulimit -v unlimited`; limit memory by a control group instead",
             (double)m->address_space / MIB);
    if (m->overcommit == 2)
        warn(r, "overcommit",
             "the system counts memory that is reserved as used (vm.overcommit_memory = 2) | as root: `sysctl "
             "vm.overcommit_memory=0`");
    if (strcmp(r->machine.huge_pages, "never") == 0)
        warn(r, "huge_pages",
             "huge pages are off: large arrays cost time in address translation | as root: `echo madvise > "
             "/sys/kernel/mm/transparent_hugepage/enabled`");
}

static void judge_disk(ttn_doctor_report *r)
{
    const ttn_doctor_disk *d = &r->disk;
    char folder[TTN_TAIL_ROOM], name[128];
    snprintf(name, sizeof name, "%.100s", ttn_text_tail(d->folder, folder));
    ttn_text_disarm(name);
    if (!d->is_writable) {
        warn(r, "disk", "nothing can be written to %s: %s | name a folder for runs: `titin doctor FOLDER`", name,
             d->why_not);
        return;
    }
    if (d->available < GIB)
        warn(r, "disk_space",
             "only %.0f MiB are free in %s | a checkpoint needs three times the size of its model: make room, or "
             "write elsewhere",
             (double)d->available / MIB, name);
    if (d->sync_seconds > 0.1)
        warn(r, "disk_slow",
             "%s takes %.2f s to bring 4 KiB to the disk | checkpoints are written beside training, but each will take "
             "long: a local disk is better",
             name, d->sync_seconds);
    if (strcmp(d->file_system, "tmpfs") == 0 || strcmp(d->file_system, "ramfs") == 0)
        warn(r, "disk_memory",
             "%s lies in memory: what is written there takes memory, and is gone after a restart | write runs to a "
             "disk",
             name);
}

void ttn_doctor_judge(ttn_doctor_report *r)
{
    r->n_warning = 0;
    judge_cores(r);
    judge_thread_count(r);
    judge_speed(r);
    judge_blas(r);
    judge_build(r);
    judge_memory(r);
    judge_disk(r);
    for (int i = 0; i < r->n_warning; i++) {
        ttn_text_disarm(r->warning[i].text);
        ttn_text_disarm(r->warning[i].advice);
    }
}
