#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <omp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/memory.h"
#include "core/tensor.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TTN_ASAN
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define TTN_ASAN
#endif
#if defined(TTN_ASAN)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, n)   ((void)(at), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(at, n) ((void)(at), (void)(n))
#endif

/* *ret = n rounded up to a multiple of step, a power of two; 0 when that does not fit. */
static int round_up(size_t n, size_t step, size_t *ret)
{
    if (!ttn_size_add(n, step - 1, ret)) return 0;
    *ret &= ~(step - 1);
    return 1;
}

/* ---- pieces ---- */

void *ttn_alloc(size_t bytes)
{
    size_t rounded;
    if (!round_up(bytes > 0 ? bytes : 1, TTN_ALIGN, &rounded)) return NULL;
    void *piece = aligned_alloc(TTN_ALIGN, rounded);
    if (piece) memset(piece, 0, rounded);
    return piece;
}

void *ttn_alloc_array(int64_t n, size_t size)
{
    size_t bytes;
    if (n < 0 || !ttn_size_mul((size_t)n, size, &bytes)) return NULL;
    return ttn_alloc(bytes);
}

void *ttn_alloc_or_say(int64_t n, size_t size, const char *what, ttn_error *err)
{
    void *piece = ttn_alloc_array(n, size);
    if (!piece)
        (void)TTN_FAIL(err, TTN_ENOMEM,
                       "no memory for %s (%lld times %zu bytes); end other programs, or ask for something smaller",
                       what, (long long)n, size);
    return piece;
}

void ttn_free(void *piece)
{
    free(piece);
}

/* ---- arena ---- */

typedef struct chunk chunk;
struct chunk {
    chunk *next;
    size_t room, used; /* of the bytes that follow the head */
};

/* Under AddressSanitizer what is not given out is poisoned, so that the arena does not hide overruns and uses after
 * a reset. */
struct ttn_arena {
    chunk *open;  /* of block_bytes; requests are cut from the first */
    chunk *spare; /* of block_bytes, empty: kept by a reset */
    chunk *large; /* one request each */
    size_t block_bytes;
    size_t held;
};

enum { ARENA_BLOCK = 64 << 10, CHUNK_HEAD = TTN_ALIGN };
_Static_assert(sizeof(chunk) <= CHUNK_HEAD, "the bytes of a chunk start at a multiple of TTN_ALIGN");

static char *chunk_bytes(chunk *c)
{
    return (char *)c + CHUNK_HEAD;
}

ttn_status ttn_arena_create(size_t block_bytes, ttn_arena **ret, ttn_error *err)
{
    *ret = ttn_alloc_or_say(1, sizeof **ret, "an arena", err);
    if (!*ret) return TTN_ENOMEM;
    (*ret)->block_bytes = block_bytes > 0 ? block_bytes : ARENA_BLOCK;
    return TTN_OK;
}

static chunk *chunk_create(ttn_arena *a, size_t room)
{
    size_t bytes;
    if (!ttn_size_add(room, CHUNK_HEAD, &bytes) || !round_up(bytes, TTN_ALIGN, &bytes)) return NULL;
    chunk *c = aligned_alloc(TTN_ALIGN, bytes);
    if (!c) return NULL;
    *c = (chunk){.room = bytes - CHUNK_HEAD};
    ASAN_POISON_MEMORY_REGION(chunk_bytes(c), c->room);
    a->held += bytes;
    return c;
}

static void chunks_free(ttn_arena *a, chunk **list)
{
    while (*list) {
        chunk *c = *list;
        *list = c->next;
        a->held -= CHUNK_HEAD + c->room;
        ASAN_UNPOISON_MEMORY_REGION(chunk_bytes(c), c->room);
        free(c);
    }
}

/* n bytes from offset `used` on, aligned; NULL when they do not fit. */
static void *chunk_cut(chunk *c, size_t n, size_t align)
{
    size_t at, end;
    if (!round_up(c->used, align, &at) || !ttn_size_add(at, n, &end) || end > c->room) return NULL;
    c->used = end;
    void *piece = chunk_bytes(c) + at;
    ASAN_UNPOISON_MEMORY_REGION(piece, n);
    memset(piece, 0, n);
    return piece;
}

static void push(chunk **list, chunk *c)
{
    c->next = *list;
    *list = c;
}

static chunk *pop(chunk **list)
{
    chunk *c = *list;
    if (c) *list = c->next;
    return c;
}

void *ttn_arena_alloc_aligned(ttn_arena *a, size_t bytes, size_t align)
{
    assert(align > 0 && align <= TTN_ALIGN && (align & (align - 1)) == 0);
    size_t n = bytes > 0 ? bytes : 1; /* an address of its own */
    if (n > a->block_bytes / 4) {
        chunk *c = chunk_create(a, n);
        if (!c) return NULL;
        push(&a->large, c);
        return chunk_cut(c, n, align);
    }
    void *piece = a->open ? chunk_cut(a->open, n, align) : NULL;
    if (piece) return piece;
    chunk *c = pop(&a->spare);
    if (!c) c = chunk_create(a, a->block_bytes);
    if (!c) return NULL;
    push(&a->open, c);
    return chunk_cut(c, n, align);
}

void *ttn_arena_alloc(ttn_arena *a, size_t bytes)
{
    return ttn_arena_alloc_aligned(a, bytes, alignof(max_align_t));
}

void *ttn_arena_array(ttn_arena *a, int64_t n, size_t size)
{
    size_t bytes;
    if (n < 0 || !ttn_size_mul((size_t)n, size, &bytes)) return NULL;
    return ttn_arena_alloc(a, bytes);
}

void *ttn_arena_copy(ttn_arena *a, const void *from, size_t n)
{
    void *piece = ttn_arena_alloc(a, n);
    if (piece && n > 0) memcpy(piece, from, n);
    return piece;
}

char *ttn_arena_text(ttn_arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0) return NULL;
    char *text = ttn_arena_alloc_aligned(a, (size_t)length + 1, 1);
    if (!text) return NULL;
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

void ttn_arena_reset(ttn_arena *a)
{
    chunks_free(a, &a->large);
    for (chunk *c = pop(&a->open); c; c = pop(&a->open)) {
        c->used = 0;
        ASAN_POISON_MEMORY_REGION(chunk_bytes(c), c->room);
        push(&a->spare, c);
    }
}

size_t ttn_arena_bytes(const ttn_arena *a)
{
    return a->held;
}

void ttn_arena_destroy(ttn_arena *a)
{
    if (!a) return;
    chunks_free(a, &a->large);
    chunks_free(a, &a->open);
    chunks_free(a, &a->spare);
    ttn_free(a);
}

/* ---- block ---- */

struct ttn_block {
    char *map; /* what mmap gave: start lies up to TTN_BLOCK_STEP further */
    size_t map_bytes;
    char *start;
    size_t reserved, committed;
    char what[128];
};

ttn_status ttn_block_create(size_t most, const char *what, ttn_block **ret, ttn_error *err)
{
    *ret = NULL;
    size_t reserved, map_bytes;
    if (most == 0) return TTN_FAIL(err, TTN_EINVAL, "%s: a block of at most 0 bytes; at least 1 is needed", what);
    if (!round_up(most, TTN_BLOCK_STEP, &reserved) || !ttn_size_add(reserved, TTN_BLOCK_STEP, &map_bytes))
        return TTN_FAIL(err, TTN_ENOMEM, "%s: no address space has %zu bytes; ask for something smaller", what, most);

    ttn_block *b = ttn_alloc_or_say(1, sizeof *b, what, err);
    if (!b) return TTN_ENOMEM;
    /* No MAP_NORESERVE: pages that cannot be written are not counted anyway, and with it a growth beyond what the
     * machine has would succeed and end in the kernel's out-of-memory killer. */
    b->map = mmap(NULL, map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b->map == MAP_FAILED) {
        (void)TTN_FAIL(err, TTN_ENOMEM,
                       "%s: cannot reserve %zu bytes of addresses: %s; raise the limit on address space (ulimit -v), "
                       "or ask for something smaller",
                       what, most, strerror(errno));
        ttn_free(b);
        return TTN_ENOMEM;
    }
    b->map_bytes = map_bytes;
    b->reserved = reserved;
    b->start = b->map + (-(uintptr_t)b->map & (TTN_BLOCK_STEP - 1));
    snprintf(b->what, sizeof b->what, "%s", what);
    /* A wish: kernels without huge pages refuse it, and then pages are small. */
    (void)madvise(b->start, reserved, MADV_HUGEPAGE);
    *ret = b;
    return TTN_OK;
}

ttn_status ttn_block_grow(ttn_block *b, size_t bytes, ttn_error *err)
{
    if (bytes <= b->committed) return TTN_OK;
    if (bytes > b->reserved)
        return TTN_FAIL(err, TTN_EINVAL, "%s: %zu bytes are wanted, %zu were reserved", b->what, bytes, b->reserved);
    size_t wanted = (bytes + TTN_BLOCK_STEP - 1) & ~(size_t)(TTN_BLOCK_STEP - 1);
    if (mprotect(b->start + b->committed, wanted - b->committed, PROT_READ | PROT_WRITE) != 0)
        return TTN_FAIL(err, TTN_ENOMEM,
                        "%s: no memory for %zu bytes more (it has %zu): %s; end other programs, or ask for something "
                        "smaller",
                        b->what, wanted - b->committed, b->committed, strerror(errno));
    b->committed = wanted;
    return TTN_OK;
}

void ttn_block_shrink(ttn_block *b, size_t bytes)
{
    if (bytes >= b->committed) return;
    size_t kept = (bytes + TTN_BLOCK_STEP - 1) & ~(size_t)(TTN_BLOCK_STEP - 1);
    size_t rest = b->committed - kept;
    if (rest == 0) return;
    if (madvise(b->start + kept, rest, MADV_DONTNEED) != 0) return; /* locked pages (mlockall) */
    if (mprotect(b->start + kept, rest, PROT_NONE) != 0) return;
    b->committed = kept;
}

void *ttn_block_start(const ttn_block *b)
{
    return b->start;
}

size_t ttn_block_committed(const ttn_block *b)
{
    return b->committed;
}

size_t ttn_block_reserved(const ttn_block *b)
{
    return b->reserved;
}

void ttn_block_destroy(ttn_block *b)
{
    if (!b) return;
    munmap(b->map, b->map_bytes); /* fails for addresses that are not a mapping: these are */
    ttn_free(b);
}

/* ---- first touch ---- */

void ttn_share(int64_t n, int t, int n_thread, int64_t *ret_first, int64_t *ret_end)
{
    int64_t each = n / n_thread;
    int64_t longer = n % n_thread;
    *ret_first = t * each + (t < longer ? t : longer);
    *ret_end = *ret_first + each + (t < longer);
}

void ttn_touch_rows(void *start, int64_t n_row, size_t row_bytes, int n_thread)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = (uintptr_t)start;
#pragma omp parallel num_threads(n_thread)
    {
        int64_t row, row_end;
        ttn_share(n_row, omp_get_thread_num(), omp_get_num_threads(), &row, &row_end);
        uintptr_t at = first + (uintptr_t)row * row_bytes;
        const uintptr_t stop = first + (uintptr_t)row_end * row_bytes;
        if (row > 0) at = (at + page - 1) & ~(page - 1); /* a page that was begun is the thread's before */
        for (; at < stop; at = (at & ~(page - 1)) + page) {
            volatile char *byte = (volatile char *)at;
            char same = *byte;
            *byte = same;
        }
    }
}
