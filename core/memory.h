/* Memory: aligned pieces, many small things freed together (arena), and one large block that grows without moving.
 *
 * What is large, parameter slabs and a plan's values, lives in blocks. Everything else is small.
 */
#ifndef TTN_MEMORY_H
#define TTN_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include "core/status.h"

/* ---- pieces ---- */

/* A cache line, and a vector register of AVX-512. */
enum { TTN_ALIGN = 64 };

/* Zeroed bytes that start at a multiple of TTN_ALIGN; free them with ttn_free. Zero bytes are a piece as well, with
 * an address of its own. NULL when there is no memory, or when n is negative or n * size does not fit. */
void *ttn_alloc(size_t bytes);
void *ttn_alloc_array(int64_t n, size_t size);

/* The same, and NULL comes with TTN_ENOMEM and a sentence in err: `what` ("the hash table of 8-mers") is its subject.
 *     m->row = ttn_alloc_or_say(n_row, sizeof *m->row, "the rows of a batch", err);
 *     if (!m->row) return TTN_ENOMEM; */
void *ttn_alloc_or_say(int64_t n, size_t size, const char *what, ttn_error *err);

/* NULL is fine. */
void ttn_free(void *piece);

/* ---- arena: many small things freed together ---- */

typedef struct ttn_arena ttn_arena;

/* Memory comes in blocks of block_bytes (0: 64 KiB); the first one with the first request, so an arena that nobody
 * uses costs a few bytes. *ret is the caller's. TTN_ENOMEM. Not for several threads at once. */
TTN_MUST_USE ttn_status ttn_arena_create(size_t block_bytes, ttn_arena **ret, ttn_error *err);

/* Zeroed bytes, aligned as malloc does (_aligned: at a multiple of align, a power of two up to TTN_ALIGN), good until
 * reset or destroy. What is larger than a quarter of a block gets one of its own. NULL when there is no memory or the
 * size does not fit: the arena and what it gave before stay as they are. */
void *ttn_arena_alloc(ttn_arena *a, size_t bytes);
void *ttn_arena_alloc_aligned(ttn_arena *a, size_t bytes, size_t align);
void *ttn_arena_array(ttn_arena *a, int64_t n, size_t size);

/* A copy of n bytes (from NULL: n is 0), and of a text with its end; NULL as above. */
void *ttn_arena_copy(ttn_arena *a, const void *from, size_t n);
char *ttn_arena_text(ttn_arena *a, const char *format, ...) TTN_PRINTF(2, 3);

/* Everything it gave is void. Blocks of block_bytes are kept for what comes next, larger ones are freed. */
void ttn_arena_reset(ttn_arena *a);

/* Bytes it holds from the system. */
size_t ttn_arena_bytes(const ttn_arena *a);

void ttn_arena_destroy(ttn_arena *a); /* NULL is fine */

/* ---- block: address space for the most it may ever be, memory for what it is ---- */

typedef struct ttn_block ttn_block;

/* Sizes are rounded up to this: the huge page of x86-64 and of aarch64 with 4 KiB pages. */
enum { TTN_BLOCK_STEP = 2 << 20 };

/* Reserve addresses for `most` bytes; no memory yet. They never move. `what` ("the values of the plan") is the subject
 * of messages, and copied. *ret is the caller's. TTN_ENOMEM when the process may not have so much address space
 * (ulimit -v), TTN_EINVAL when most is 0. Growing and shrinking: one thread at a time. */
TTN_MUST_USE ttn_status ttn_block_create(size_t most, const char *what, ttn_block **ret, ttn_error *err);

/* The first `bytes` bytes can be used from now on; what is new is zero, what was there stays. Never makes it smaller.
 * TTN_ENOMEM: the system has not that much; TTN_EINVAL: more than was reserved. The block is then as it was. */
TTN_MUST_USE ttn_status ttn_block_grow(ttn_block *b, size_t bytes, ttn_error *err);

/* Keep the first `bytes` bytes (rounded up to TTN_BLOCK_STEP), give the rest back to the system. Never makes it
 * larger. Where the system refuses (pages locked by mlockall) the rest stays committed, with any contents. Under
 * overcommit_memory = 2 the system goes on counting the rest as this process's until the block is destroyed. */
void ttn_block_shrink(ttn_block *b, size_t bytes);

void *ttn_block_start(const ttn_block *b);      /* a multiple of TTN_BLOCK_STEP */
size_t ttn_block_committed(const ttn_block *b); /* bytes that can be used; beyond them an access is a SIGSEGV */
size_t ttn_block_reserved(const ttn_block *b);

void ttn_block_destroy(ttn_block *b); /* NULL is fine */

/* Let the threads that will compute these rows be the first to touch them: a page lies on the memory node of the
 * thread that first writes to it. Rows are dealt out as OpenMP's static schedule does, so that a loop over rows under
 * `omp for schedule(static)` with as many threads finds its rows near; a page belongs to the row that it begins in.
 * Contents stay. Also worth it on one node: pages come in parallel. */
void ttn_touch_rows(void *start, int64_t n_row, size_t row_bytes, int n_thread);

/* The share of thread t of n_thread of [0, n): the first n % n_thread threads have one more. */
void ttn_share(int64_t n, int t, int n_thread, int64_t *ret_first, int64_t *ret_end);

#endif
