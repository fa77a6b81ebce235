/* The host's processor: memory is a block that grows without moving, work is done when the call returns. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include "core/device.h"
#include "core/memory.h"
#include "core/real.h"

struct ttn_memory {
    ttn_block *block;
    size_t bytes;
    size_t touched; /* the first so many of them, in whole pages */
    const void *user;
};

enum { PAGE = 4096 };

/* Everything is done in order and at once, so an event has nothing to remember. */
struct ttn_event {
    int recorded;
};

static void destroy(ttn_device *d)
{
    free(d);
}

static void memory_destroy(ttn_memory *m)
{
    if (!m) return;
    ttn_block_destroy(m->block);
    free(m);
}

static ttn_status memory_grow(ttn_memory *m, size_t bytes, ttn_error *err)
{
    if (bytes <= m->bytes) return TTN_OK;
    ttn_status status = ttn_block_grow(m->block, bytes, err);
    if (status == TTN_OK) m->bytes = bytes;
    return status;
}

static ttn_status memory_create(ttn_device *d, size_t bytes, size_t most, ttn_memory **ret, ttn_error *err)
{
    (void)d;
    *ret = NULL;
    ttn_memory *m = calloc(1, sizeof *m);
    if (!m) return TTN_FAIL(err, TTN_ENOMEM, "out of memory for a memory region");
    if (most < bytes) most = bytes;
    if (most == 0) most = 1; /* a region of nothing still has an address */
    ttn_status status = ttn_block_create(most, "values", &m->block, err);
    if (status == TTN_OK) status = memory_grow(m, bytes, err);
    if (status != TTN_OK) {
        memory_destroy(m);
        return status;
    }
    *ret = m;
    return TTN_OK;
}

static void memory_touch(ttn_memory *m, const ttn_stream *s)
{
    if (m->bytes <= m->touched) return;
    int64_t pages = (int64_t)((m->bytes - m->touched + PAGE - 1) / PAGE);
    char *from = (char *)ttn_block_start(m->block) + m->touched;
    ttn_touch_rows(from, pages, PAGE, s->n_thread);
    m->touched += (size_t)pages * PAGE;
}

static void *memory_base(const ttn_memory *m)
{
    return ttn_block_start(m->block);
}

static size_t memory_bytes(const ttn_memory *m)
{
    return m->bytes;
}

static const void **memory_user(ttn_memory *m)
{
    return &m->user;
}

static ttn_status copy(const ttn_stream *s, void *to, const void *from, size_t bytes, ttn_error *err)
{
    (void)s;
    (void)err;
    if (bytes > 0) memmove(to, from, bytes);
    return TTN_OK;
}

static ttn_status fill(const ttn_stream *s, void *to, int byte, size_t bytes, ttn_error *err)
{
    (void)s;
    (void)err;
    if (bytes > 0) memset(to, byte, bytes);
    return TTN_OK;
}

static ttn_status add(const ttn_stream *s, void *to, const void *from, int64_t n, ttn_error *err)
{
    (void)err;
    real *sum = to;
    const real *term = from;
#pragma omp parallel for simd num_threads(s->n_thread)
    for (int64_t i = 0; i < n; i++)
        sum[i] += term[i];
    return TTN_OK;
}

static ttn_status gemm(const ttn_stream *s, ttn_trans ta, ttn_trans tb, int64_t m, int64_t n, int64_t k, double alpha,
                       ttn_mat_in a, ttn_mat_in b, double beta, ttn_mat_out c, ttn_error *err)
{
    (void)s;
    const ttn_status status = ttn_device_check_product(m, n, k, a.ld, b.ld, c.ld, err);
    if (status != TTN_OK) return status;
    ttn_gemm(ta, tb, m, n, k, alpha, a, b, beta, c);
    return TTN_OK;
}

static int is_nonfinite(ttn_dtype type, const void *x, int64_t i)
{
    switch (ttn_dtype_stored(type)) {
    case TTN_F32:
        return !isfinite(((const float *)x)[i]);
    case TTN_F64:
        return !isfinite(((const double *)x)[i]);
    case TTN_BF16:
        return (((const uint16_t *)x)[i] & 0x7F80) == 0x7F80;
    case TTN_F16:
        return (((const uint16_t *)x)[i] & 0x7C00) == 0x7C00;
    default:
        return 0;
    }
}

static ttn_status find_nonfinite(const ttn_stream *s, ttn_dtype type, const void *x, int64_t n, int64_t *count,
                                 int64_t *first, ttn_error *err)
{
    (void)err;
    int64_t found = 0;
    int64_t least = n;
#pragma omp parallel for num_threads(s->n_thread) reduction(+ : found) reduction(min : least)
    for (int64_t i = 0; i < n; i++) {
        if (!is_nonfinite(type, x, i)) continue;
        found++;
        if (i < least) least = i;
    }
    *count = found;
    *first = found > 0 ? least : -1;
    return TTN_OK;
}

static ttn_status wait_for_all(const ttn_stream *s, ttn_error *err)
{
    (void)s;
    (void)err;
    return TTN_OK;
}

static ttn_status event_create(ttn_device *d, ttn_event **ret, ttn_error *err)
{
    (void)d;
    *ret = calloc(1, sizeof **ret);
    if (!*ret) return TTN_FAIL(err, TTN_ENOMEM, "out of memory for an event");
    return TTN_OK;
}

static ttn_status event_record(ttn_event *e, const ttn_stream *s, ttn_error *err)
{
    (void)s;
    (void)err;
    e->recorded = 1;
    return TTN_OK;
}

static ttn_status event_wait(ttn_event *e, const ttn_stream *s, ttn_error *err)
{
    (void)s;
    if (!e->recorded) return TTN_FAIL(err, TTN_EINVAL, "waiting for an event that was never recorded");
    return TTN_OK;
}

static void event_destroy(ttn_event *e)
{
    free(e);
}

/* "AMD EPYC 7B13 64-Core Processor": what it calls itself; without a name, its family. */
static void print_processor(char *text, size_t room)
{
#if defined(__x86_64__)
    enum { FIRST = 0x80000002, LEAVES = 3 };
    unsigned words[4 * LEAVES + 1] = {0};
    int known = 1;
    for (unsigned i = 0; i < LEAVES && known; i++)
        known = __get_cpuid(FIRST + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]);
    const char *name = (const char *)words;
    while (*name == ' ')
        name++;
    snprintf(text, room, "%s", known && *name ? name : "x86-64");
#else
    snprintf(text, room, "aarch64");
#endif
}

static size_t bytes_of_pages(int which)
{
    const long pages = sysconf(which);
    return pages > 0 ? (size_t)pages * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

static ttn_status report(ttn_device *d, ttn_device_report *ret, ttn_error *err)
{
    (void)err;
    *ret = (ttn_device_report){.kind = d->ops->name,
                               .memory = bytes_of_pages(_SC_PHYS_PAGES),
                               .memory_free = bytes_of_pages(_SC_AVPHYS_PAGES),
                               .multiprocessors = (int)sysconf(_SC_NPROCESSORS_ONLN)};
    print_processor(ret->name, sizeof ret->name);
    return TTN_OK;
}

static const ttn_device_ops cpu_ops = {
    .name = "cpu",
    .kernels = TTN_KERNELS_CPU,
    .destroy = destroy,
    .memory_create = memory_create,
    .memory_grow = memory_grow,
    .memory_touch = memory_touch,
    .memory_base = memory_base,
    .memory_bytes = memory_bytes,
    .memory_user = memory_user,
    .memory_destroy = memory_destroy,
    .put = copy,
    .get = copy,
    .copy = copy,
    .fill = fill,
    .add = add,
    .gemm = gemm,
    .find_nonfinite = find_nonfinite,
    .sync = wait_for_all,
    .event_create = event_create,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_destroy = event_destroy,
    .report = report,
};

ttn_status ttn_device_cpu(ttn_device **ret, ttn_error *err)
{
    *ret = calloc(1, sizeof **ret);
    if (!*ret) return TTN_FAIL(err, TTN_ENOMEM, "out of memory for a device");
    (*ret)->ops = &cpu_ops;
    return TTN_OK;
}
