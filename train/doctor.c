#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/memory.h"
#include "core/start.h"
#include "core/text.h"
#include "train/doctor.h"

/* ---- threads ---- */

static const char *binding_name(omp_proc_bind_t binding)
{
    switch ((int)binding) {
    case omp_proc_bind_false:
        return "no";
    case omp_proc_bind_true:
        return "yes";
    case omp_proc_bind_master:
        return "master";
    case omp_proc_bind_close:
        return "close";
    case omp_proc_bind_spread:
        return "spread";
    default:
        return "?";
    }
}

static int is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

static void look_at_threads(int cores, ttn_doctor_threads *ret)
{
    const char *asked = getenv("OMP_NUM_THREADS");
    *ret = (ttn_doctor_threads){
        .n = ttn_start_threads(cores),
        .binding = binding_name(omp_get_proc_bind()),
        .places = omp_get_num_places(),
        .started_by = "",
    };
    snprintf(ret->asked, sizeof ret->asked, "%s", asked ? asked : "");
    ttn_text_disarm(ret->asked);
    /* mpirun inside of a Slurm job: it is mpirun that binds. */
    if (is_set("SLURM_JOB_ID")) ret->started_by = "Slurm";
    if (is_set("OMPI_COMM_WORLD_SIZE") || is_set("PMI_SIZE")) ret->started_by = "mpirun";
}

/* ---- how fast are products? ---- */

enum { SIDE = 512 };

double ttn_doctor_rate(int n_thread, double seconds)
{
    const int64_t n = (int64_t)SIDE * SIDE;
    float *in = ttn_alloc_array(2 * n, sizeof *in);
    float *out = ttn_alloc_array(n_thread * n, sizeof *out);
    int64_t products = 0;
    double elapsed = 0;
    if (in && out) {
        for (int64_t e = 0; e < 2 * n; e++)
            in[e] = (float)(e % 97) / 97;
        double begin = ttn_clock_now(NULL);
#pragma omp parallel num_threads(n_thread) reduction(+ : products)
        {
            ttn_mat_in a = ttn_in_of(TTN_F32, in, SIDE), b = ttn_in_of(TTN_F32, in + n, SIDE);
            ttn_mat_out c = ttn_out_of(TTN_F32, out + omp_get_thread_num() * n, SIDE);
            do {
                ttn_gemm(TTN_N, TTN_N, SIDE, SIDE, SIDE, 1, a, b, 0, c);
                products++;
            } while (ttn_clock_now(NULL) - begin < seconds);
        }
        elapsed = ttn_clock_now(NULL) - begin;
    }
    ttn_free(in);
    ttn_free(out);
    return elapsed > 0 ? (double)products * 2 * SIDE * SIDE * SIDE / elapsed : 0;
}

static ttn_status measure_rates(double seconds, ttn_doctor_report *ret, ttn_error *err)
{
    const int n = ret->threads.n;
    if (seconds <= 0 || ret->blas_status != TTN_OK) return TTN_OK;
    ttn_doctor_rate(n, 0); /* OpenMP's threads are there, and the clock of the processor has gone up */
    ret->rate_one = ttn_doctor_rate(1, seconds);
    ret->rate_all = n > 1 ? ttn_doctor_rate(n, seconds) : ret->rate_one;
    if (ret->rate_one > 0 && ret->rate_all > 0) return TTN_OK;
    return TTN_FAIL(err, TTN_ENOMEM, "no memory to measure the speed of products with %d threads", n);
}

/* ---- disk ---- */

static const char *file_system_name(int64_t magic)
{
    static const struct {
        int64_t magic;
        const char *name;
    } known[] = {
        {0xEF53, "ext4"},      {0x58465342, "xfs"},     {0x9123683E, "btrfs"}, {0x2FC12FC1, "zfs"},
        {0x01021994, "tmpfs"}, {0x794C7630, "overlay"}, {0x6969, "nfs"},       {0x0BD00BD0, "lustre"},
        {0x47504653, "gpfs"},  {0x19830326, "beegfs"},  {0xFF534D42, "cifs"},  {0xFE534D42, "smb2"},
        {0x65735546, "fuse"},  {0x00C36400, "ceph"},    {0xF2F52010, "f2fs"},  {0x4D44, "vfat"},
        {0x2011BAB0, "exfat"}, {0x01021997, "9p"},      {0x858458F6, "ramfs"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].magic == (magic & 0xFFFFFFFF)) return known[i].name;
    return "";
}

/* A file without a name, or on file systems that have none such (NFS), one that loses it at once. */
static int open_scratch(const char *folder)
{
    char path[4096];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return fd;
    int length = snprintf(path, sizeof path, "%s/.titin-doctor-%ld", folder, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) unlink(path);
    return fd;
}

static int later(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* < 0 and errno: it failed. */
static double measure_sync(int fd)
{
    enum { TIMES = 5 };
    static const char page[4096] = "titin";
    double seconds[TIMES];
    for (int i = 0; i < TIMES; i++) {
        double begin = ttn_clock_now(NULL);
        errno = ENOSPC; /* of a write that is cut short */
        if (write(fd, page, sizeof page) != (ssize_t)sizeof page || fsync(fd) != 0) return -1;
        seconds[i] = ttn_clock_now(NULL) - begin;
    }
    qsort(seconds, TIMES, sizeof *seconds, later);
    return seconds[TIMES / 2];
}

static void cannot_write(ttn_doctor_disk *d, int error)
{
    snprintf(d->why_not, sizeof d->why_not, "%s", strerror(error));
}

static void look_at_disk(const char *folder, ttn_doctor_disk *ret)
{
    struct statvfs space;
    struct statfs kind;
    *ret = (ttn_doctor_disk){.folder = folder, .file_system = "", .sync_seconds = -1};
    if (statvfs(folder, &space) != 0) {
        cannot_write(ret, errno);
        return;
    }
    ret->present = (int64_t)space.f_blocks * (int64_t)space.f_frsize;
    ret->available = (int64_t)space.f_bavail * (int64_t)space.f_frsize;
    if (statfs(folder, &kind) == 0) ret->file_system = file_system_name((int64_t)kind.f_type);
    int fd = open_scratch(folder);
    if (fd >= 0) ret->sync_seconds = measure_sync(fd);
    if (ret->sync_seconds < 0) cannot_write(ret, errno);
    ret->is_writable = ret->sync_seconds >= 0;
    if (fd >= 0) close(fd);
}

/* ---- GPU ---- */

static void look_at_gpu(ttn_doctor_report *ret)
{
    ttn_device *gpu = NULL;
    ret->gpu_status = ttn_device_cuda(0, &gpu, &ret->gpu_error);
    if (ret->gpu_status == TTN_OK) ret->gpu_status = gpu->ops->report(gpu, &ret->gpu, &ret->gpu_error);
    ttn_device_destroy(gpu);
}

/* ---- all of it ---- */

ttn_status ttn_doctor_examine(const ttn_doctor_request *request, ttn_doctor_report *ret, ttn_error *err)
{
    *ret = (ttn_doctor_report){.cpu_present = ttn_cpu_present(), .cpu_built = ttn_cpu_built};
    ttn_machine_look(request->root, &ret->machine);
    look_at_threads(ret->machine.cores.usable, &ret->threads);
    ret->blas_status = ttn_blas_start(ret->threads.n, &ret->blas, &ret->blas_error);
    ttn_status status = measure_rates(request->seconds, ret, err);
    look_at_disk(request->folder, &ret->disk);
    look_at_gpu(ret);
    ttn_doctor_judge(ret);
    return status;
}
