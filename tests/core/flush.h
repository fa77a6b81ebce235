/* A body run in a thread of its own that flushes denormal results to zero and takes denormal operands as zero. */
#ifndef TTN_TESTS_FLUSH_H
#define TTN_TESTS_FLUSH_H

#include <float.h>
#include <pthread.h>
#include "core/fp.h"
#include "tests/harness/test.h"

typedef struct {
    void (*body)(void *arg);
    void *arg;
    int flushes; /* the mode was in force */
} flushing;

/* Results (of half of the smallest normal number) and operands (its double) are flushed. */
static int flush_is_on(void)
{
    volatile float least = FLT_MIN, half = 0.5f, denormal = 0x1p-127f, twice = 2.0f;
    return least * half == 0.0f && denormal * twice == 0.0f;
}

static void *flush_start(void *arg)
{
    flushing *f = arg;
    uint64_t before = ttn_fp_begin();
    f->flushes = flush_is_on();
    f->body(f->arg);
    f->flushes = f->flushes && flush_is_on();
    ttn_fp_end(before);
    return NULL;
}

static inline void run_flushing(void (*body)(void *arg), void *arg)
{
    flushing f = {.body = body, .arg = arg};
    pthread_t thread;
    assert_false(flush_is_on());
    assert_int_equal(pthread_create(&thread, NULL, flush_start, &f), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(f.flushes);
}

#endif
