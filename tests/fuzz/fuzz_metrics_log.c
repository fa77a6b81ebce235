/* Any bytes as metrics.jsonl: what a resumed run cuts leaves records up to its step alone, in their order; cutting again
 * changes nothing; and a record that was read and written reads back the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/fuzz/fuzz.h"
#include "train/files/metrics_log.h"

enum { STEP = 100 };

static char path[FUZZ_PATH];

static int64_t size_of_file(void)
{
    FILE *f = fopen(path, "r");
    check(f && fseek(f, 0, SEEK_END) == 0);
    const int64_t n = ftell(f);
    fclose(f);
    return n;
}

/* What was kept the first time, number by number. */
typedef struct {
    uint64_t sum;
    int64_t n;
} digest;

static ttn_status take(void *ctx, const ttn_metrics *r, ttn_error *err)
{
    digest *d = ctx;
    (void)err;
    check(r->step >= 0 && r->step <= STEP && r->date >= 0);
    d->n++;
    d->sum = d->sum * 31 + (uint64_t)r->step;
    for (int64_t i = 0; i < r->n; i++) {
        uint64_t bits;
        check(ttn_metric_name_is_good(r->metric[i].name));
        memcpy(&bits, &r->metric[i].value, sizeof bits);
        d->sum = d->sum * 31 + bits;
    }
    return TTN_OK;
}

static ttn_metrics_log *open_log(digest *d)
{
    ttn_metrics_log *l;
    ttn_error err = {0};
    check(ttn_metrics_log_open(path, STEP, take, d, NULL, NULL, &l, &err) == TTN_OK);
    return l;
}

static ttn_status copy(void *ctx, const ttn_metrics *r, ttn_error *err)
{
    return ttn_metrics_log_add(ctx, r, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    digest first = {0}, again = {0}, written = {0};
    fuzz_path("metrics.jsonl", path);
    fuzz_write("metrics.jsonl", data, bytes);
    ttn_metrics_log_close(open_log(&first));
    const int64_t size = size_of_file();
    ttn_metrics_log *l = open_log(&again);
    check(size_of_file() == size && again.n == first.n && again.sum == first.sum);
    /* All of it once more behind itself. */
    char from[FUZZ_PATH];
    fuzz_path("copy.jsonl", from);
    check(rename(path, from) == 0);
    ttn_metrics_log_close(l);
    l = open_log(&written);
    check(ttn_metrics_log_read(from, copy, l, NULL, NULL) == TTN_OK);
    ttn_metrics_log_close(l);
    written = (digest){0};
    ttn_metrics_log_close(open_log(&written));
    check(written.n == first.n && written.sum == first.sum);
    unlink(path);
    unlink(from);
    return 0;
}
