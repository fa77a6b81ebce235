#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/atomic.h"
#include "core/builder.h"
#include "core/disk.h"
#include "core/memory.h"
#include "core/number.h"
#include "core/text.h"
#include "train/files/json_scan.h"
#include "train/files/metrics_log.h"
#include "train/files/reader.h"

static const char STEP[] = "step", DATE[] = "date";

/* ---- a line as a record ---- */

static int is_key(const ttn_json_scan *s, const char *name)
{
    const size_t n = strlen(name);
    return s->end - s->first == n && memcmp(s->bytes + s->first, name, n) == 0;
}

/* The number that the last token is; null is a number that is not finite. 0: it is none. */
static int number_of(const ttn_json_scan *s, double *ret)
{
    char digits[64];
    const size_t n = s->end - s->first;
    if (s->token == TTN_JSON_NULL) {
        *ret = (double)NAN;
        return 1;
    }
    if (s->token != TTN_JSON_INTEGER && s->token != TTN_JSON_REAL) return 0;
    if (n >= sizeof digits) return 0;
    memcpy(digits, s->bytes + s->first, n);
    digits[n] = 0;
    return ttn_number_real(digits, TTN_UNIT_COUNT, ret, NULL) == TTN_OK;
}

/* The key that was read, and its value. 0: the line is no record. */
static int take_member(ttn_json_scan *s, ttn_metrics *r, int *has_step)
{
    char name[TTN_METRIC_TEXT];
    double value;
    const int is_step = is_key(s, STEP), is_date = is_key(s, DATE);
    const size_t n = s->end - s->first;
    snprintf(name, sizeof name, "%.*s", n < sizeof name ? (int)n : 0, s->bytes + s->first);
    if (ttn_json_next(s, NULL) != TTN_OK) return 0;
    if (is_step || is_date) {
        if (s->token != TTN_JSON_INTEGER || s->integer < 0 || (is_step && *has_step)) return 0;
        *has_step |= is_step;
        *(is_step ? &r->step : &r->date) = s->integer;
        return 1;
    }
    if (!ttn_metric_name_is_good(name) || !number_of(s, &value)) return ttn_json_skip(s, NULL) == TTN_OK;
    if (r->n == TTN_MOST_METRICS || ttn_metrics_find(r, name, &(double){0})) return 0;
    ttn_metrics_add(r, name, value);
    return 1;
}

/* 0: the line is no record. */
static int parse(const char *line, size_t n, ttn_metrics *r)
{
    ttn_json_scan s = {.file = "", .bytes = line, .n = n, .most_depth = 8, .failure = TTN_EFORMAT};
    int has_step = 0;
    ttn_metrics_clear(r);
    r->step = 0;
    r->date = 0;
    if (ttn_json_next(&s, NULL) != TTN_OK || s.token != TTN_JSON_OBJECT) return 0;
    for (;;) {
        if (ttn_json_next(&s, NULL) != TTN_OK) return 0;
        if (s.token == TTN_JSON_OBJECT_END) break;
        assert(s.token == TTN_JSON_KEY);
        if (!take_member(&s, r, &has_step)) return 0;
    }
    return has_step && ttn_json_next(&s, NULL) == TTN_OK && s.token == TTN_JSON_END;
}

/* ---- all lines ---- */

enum { LEAST_ROOM = 1 << 16, MOST_ROOM = 1 << 20 /* a longer line is no record */ };

/* One line with its end, if it has one; r NULL: it is no record. */
typedef ttn_status (*line_taker)(void *ctx, const ttn_metrics *r, const char *line, size_t n, ttn_error *err);

typedef struct {
    const ttn_reader *reader;
    char *buffer; /* (room) */
    size_t room;
    size_t first, end; /* bytes of the buffer that nobody has taken yet */
    int64_t at;        /* of the file, behind them */
    int is_tail;       /* what comes up to the next line end belongs to a line that was too long */
} lines;

/* What is left goes to the front of the buffer, which is made larger when that fills it. */
static ttn_status make_room(lines *l, ttn_error *err)
{
    const size_t n = l->end - l->first;
    char *to = l->buffer;
    if (n == l->room || !l->buffer) {
        l->room = l->buffer ? 2 * l->room : LEAST_ROOM;
        to = ttn_alloc_or_say((int64_t)l->room, 1, "the lines of metrics", err);
        if (!to) return TTN_ENOMEM;
    }
    if (n > 0) memmove(to, l->buffer + l->first, n);
    if (to != l->buffer) ttn_free(l->buffer);
    l->buffer = to;
    l->first = 0;
    l->end = n;
    return TTN_OK;
}

static ttn_status fill(lines *l, ttn_error *err)
{
    ttn_status status = make_room(l, err);
    if (status != TTN_OK) return status;
    const int64_t left = ttn_reader_size(l->reader) - l->at;
    const size_t room = l->room - l->end, n = left < (int64_t)room ? (size_t)left : room;
    status = ttn_reader_read(l->reader, l->at, l->buffer + l->end, n, err);
    if (status != TTN_OK) return status;
    l->end += n;
    l->at += (int64_t)n;
    return TTN_OK;
}

/* The next n bytes, which end a line, or the file, or are as much of a line as there is room for. */
static ttn_status take_line(lines *l, size_t n, ttn_metrics *r, line_taker take, void *ctx, ttn_error *err)
{
    const char *line = l->buffer + l->first;
    const int ends = line[n - 1] == '\n', was_counted = l->is_tail;
    const int is_record = ends && !l->is_tail && parse(line, n - 1, r);
    l->first += n;
    l->is_tail = !ends;
    if (r->failed) return TTN_FAIL(err, TTN_ENOMEM, "no memory for a line of metrics");
    return was_counted ? TTN_OK : take(ctx, is_record ? r : NULL, line, n, err);
}

static ttn_status take_lines(lines *l, ttn_metrics *r, line_taker take, void *ctx, ttn_error *err)
{
    for (;;) {
        const size_t n = l->end - l->first;
        const char *line = l->buffer + l->first, *end = n > 0 ? memchr(line, '\n', n) : NULL;
        const int is_last = l->at == ttn_reader_size(l->reader);
        ttn_status status = TTN_OK;
        if (n == 0 && is_last) return TTN_OK;
        if (end)
            status = take_line(l, (size_t)(end - line) + 1, r, take, ctx, err);
        else if (is_last || n == MOST_ROOM)
            status = take_line(l, n, r, take, ctx, err);
        else
            status = fill(l, err);
        if (status != TTN_OK) return status;
    }
}

static ttn_status read_lines(const char *path, line_taker take, void *ctx, ttn_error *err)
{
    ttn_reader *reader;
    ttn_metrics r = {0};
    ttn_status status = ttn_reader_open(path, &reader, err);
    if (status != TTN_OK) return status;
    lines l = {.reader = reader};
    status = fill(&l, err);
    if (status == TTN_OK) status = take_lines(&l, &r, take, ctx, err);
    ttn_metrics_drop(&r);
    ttn_free(l.buffer);
    ttn_reader_close(reader);
    return status;
}

typedef struct {
    ttn_metrics_taker take;
    void *ctx;
    int64_t damaged;
} plain_reading;

static ttn_status take_plain(void *ctx, const ttn_metrics *r, const char *line, size_t n, ttn_error *err)
{
    plain_reading *p = ctx;
    (void)line;
    (void)n;
    if (r) return p->take(p->ctx, r, err);
    p->damaged++;
    return TTN_OK;
}

ttn_status ttn_metrics_log_read(const char *path, ttn_metrics_taker take, void *ctx, int64_t *ret_damaged,
                                ttn_error *err)
{
    plain_reading p = {.take = take, .ctx = ctx};
    ttn_status status = read_lines(path, take_plain, &p, err);
    if (ret_damaged) *ret_damaged = p.damaged;
    return status;
}

/* ---- what a resumed run cuts ---- */

typedef struct {
    int64_t step; /* the last one that stays */
    ttn_metrics_taker kept;
    void *ctx;
    int64_t line, n_later, n_damaged, first_damaged;
    int64_t from, to; /* the steps of later lines */
} survey;

static ttn_status look_at_line(void *ctx, const ttn_metrics *r, const char *line, size_t n, ttn_error *err)
{
    survey *s = ctx;
    (void)line;
    (void)n;
    s->line++;
    if (!r) {
        if (s->n_damaged == 0) s->first_damaged = s->line;
        s->n_damaged++;
        return TTN_OK;
    }
    if (r->step <= s->step) return s->kept ? s->kept(s->ctx, r, err) : TTN_OK;
    if (s->n_later == 0 || r->step < s->from) s->from = r->step;
    if (s->n_later == 0 || r->step > s->to) s->to = r->step;
    s->n_later++;
    return TTN_OK;
}

typedef struct {
    int64_t step;
    ttn_atomic *to;
} copying;

static ttn_status copy_line(void *ctx, const ttn_metrics *r, const char *line, size_t n, ttn_error *err)
{
    const copying *c = ctx;
    return r && r->step <= c->step ? ttn_atomic_write(c->to, line, n, err) : TTN_OK;
}

/* The file with only those lines that stay; step -1: an empty one, whether there was a file or not. */
static ttn_status rewrite(const char *path, int64_t step, ttn_error *err)
{
    copying c = {.step = step};
    ttn_status status = ttn_atomic_file_create_own(path, &c.to, err);
    if (status == TTN_OK && step >= 0) status = read_lines(path, copy_line, &c, err);
    if (status == TTN_OK) status = ttn_atomic_commit(c.to, err);
    ttn_atomic_destroy(c.to);
    return status;
}

static void tell(const survey *s, const char *name, const ttn_log *log)
{
    if (s->n_later > 0)
        ttn_log_say(log, TTN_LOG_INFO,
                    "%s: %" PRId64 " line%s of steps %" PRId64 " to %" PRId64
                    " cut: the run goes on after step %" PRId64,
                    name, s->n_later, ttn_text_plural(s->n_later), s->from, s->to, s->step);
    if (s->n_damaged > 0)
        ttn_log_say(log, TTN_LOG_WARNING,
                    "%s: %" PRId64 " line%s cut that %s no record (the first was line %" PRId64
                    "): a crash may have left %s so",
                    name, s->n_damaged, ttn_text_plural(s->n_damaged), s->n_damaged == 1 ? "was" : "were",
                    s->first_damaged, s->n_damaged == 1 ? "it" : "them");
}

/* has_names: the file has other names, too, and under those it is to stay as it is (cp -al makes such a copy of a run). */
static ttn_status cut(const char *path, int has_names, int64_t step, ttn_metrics_taker kept, void *ctx,
                      const ttn_log *log, ttn_error *err)
{
    char name[TTN_TAIL_ROOM];
    survey s = {.step = step, .kept = kept, .ctx = ctx};
    ttn_status status = read_lines(path, look_at_line, &s, err);
    if (status == TTN_OK && (has_names || s.n_later + s.n_damaged > 0)) status = rewrite(path, step, err);
    if (status == TTN_OK) tell(&s, ttn_text_tail(path, name), log);
    return status;
}

/* ---- writing ---- */

struct ttn_metrics_log {
    int fd;
    int64_t size;        /* of the lines that are whole */
    int is_torn;         /* a part of one stands behind them */
    int is_unsynced;     /* something was added since the last fsync */
    double synced;       /* when that was */
    ttn_builder waiting; /* lines that the disk has not taken yet */
    const ttn_clock *clock;
    char name[TTN_TAIL_ROOM];
};

static ttn_status open_to_append(ttn_metrics_log *l, const char *path, ttn_error *err)
{
    struct stat about;
    l->fd = ttn_disk_open(path, O_WRONLY | O_APPEND | O_NOFOLLOW, 0);
    if (l->fd < 0 || fstat(l->fd, &about) != 0) {
        const int error = errno;
        return TTN_FAIL(err, ttn_disk_fault(error), "%s: cannot be opened for writing: %s%s", l->name, strerror(error),
                        ttn_disk_advice(error));
    }
    l->size = about.st_size;
    return TTN_OK;
}

ttn_status ttn_metrics_log_open(const char *path, int64_t step, ttn_metrics_taker kept, void *ctx,
                                const ttn_clock *clock, const ttn_log *log, ttn_metrics_log **ret, ttn_error *err)
{
    struct stat about;
    *ret = NULL;
    ttn_metrics_log *l = ttn_alloc_or_say(1, sizeof *l, "the log of metrics", err);
    if (!l) return TTN_ENOMEM;
    l->fd = -1;
    l->clock = clock;
    l->synced = ttn_clock_now(clock);
    ttn_text_tail(path, l->name);
    /* Also a new file appears by a rename, so that its name is on the disk before any line is. */
    const int is_there = lstat(path, &about) == 0, is_new = !is_there && errno == ENOENT;
    const int has_names = is_there && (about.st_nlink > 1 || S_ISLNK(about.st_mode));
    ttn_status status = is_new ? rewrite(path, -1, err) : cut(path, has_names, step, kept, ctx, log, err);
    if (status == TTN_OK) status = open_to_append(l, path, err);
    if (status == TTN_OK)
        *ret = l;
    else
        ttn_metrics_log_close(l);
    return status;
}

static void build_line(ttn_builder *b, const ttn_metrics *r)
{
    char digits[TTN_NUMBER_TEXT];
    ttn_build(b, "{\"%s\":%" PRId64 ",\"%s\":%" PRId64, STEP, r->step, DATE, r->date);
    for (int64_t i = 0; i < r->n; i++) {
        const double value = r->metric[i].value;
        ttn_build(b, ",\"%s\":%s", r->metric[i].name,
                  isfinite(value) ? ttn_number_real_text(value, TTN_UNIT_COUNT, digits) : "null");
    }
    ttn_build(b, "}\n");
}

/* A part of a line is taken away. */
static int mend(ttn_metrics_log *l)
{
    if (l->is_torn) l->is_torn = TEMP_FAILURE_RETRY(ftruncate(l->fd, l->size)) != 0;
    return !l->is_torn;
}

static ttn_status fail(const ttn_metrics_log *l, const char *what, ttn_error *err)
{
    const int error = errno;
    return TTN_FAIL(err, TTN_EIO, "%s: %s: %s%s", l->name, what, strerror(error), ttn_disk_advice(error));
}

/* All lines that wait, or none of them, which then go on waiting. */
static ttn_status append_waiting(ttn_metrics_log *l, ttn_error *err)
{
    if (l->waiting.n == 0) return TTN_OK;
    if (!mend(l)) return fail(l, "a line that is there in part cannot be cut off", err);
    if (ttn_disk_write(l->fd, l->waiting.text, l->waiting.n) != 0) {
        ttn_status status = fail(l, "a line cannot be added", err);
        l->is_torn = 1;
        mend(l);
        return status;
    }
    l->size += (int64_t)l->waiting.n;
    l->is_unsynced = 1;
    ttn_builder_drop(&l->waiting);
    return TTN_OK;
}

ttn_status ttn_metrics_log_add(ttn_metrics_log *l, const ttn_metrics *r, ttn_error *err)
{
    char *line;
    ttn_builder b = {0};
    if (r->failed) return TTN_FAIL(err, TTN_ENOMEM, "no memory for a record of metrics");
    build_line(&b, r);
    const size_t n = b.n;
    ttn_status status = ttn_builder_finish(&b, "a line of metrics", &line, err);
    if (status != TTN_OK) return status;
    if (n > MOST_ROOM)
        status =
            TTN_FAIL(err, TTN_EINTERNAL, "%s: a record of %" PRId64 " numbers is too long for a line", l->name, r->n);
    else
        ttn_build_bytes(&l->waiting, line, n);
    free(line);
    if (status == TTN_OK && l->waiting.failed) {
        ttn_builder_drop(&l->waiting);
        status = TTN_FAIL(err, TTN_ENOMEM, "%s: no memory for lines that the disk does not take", l->name);
    }
    if (status == TTN_OK) status = append_waiting(l, err);
    if (status == TTN_OK && ttn_clock_now(l->clock) - l->synced >= TTN_METRICS_SYNC)
        status = ttn_metrics_log_sync(l, err);
    return status;
}

ttn_status ttn_metrics_log_sync(ttn_metrics_log *l, ttn_error *err)
{
    l->synced = ttn_clock_now(l->clock);
    ttn_status status = append_waiting(l, err);
    if (status != TTN_OK || !l->is_unsynced) return status;
    if (ttn_disk_fsync(l->fd) != 0) return fail(l, "it is not certain that the last lines are on the disk", err);
    l->is_unsynced = 0;
    return TTN_OK;
}

void ttn_metrics_log_close(ttn_metrics_log *l)
{
    if (!l) return;
    if (l->fd >= 0) {
        (void)!ttn_metrics_log_sync(l, NULL);
        ttn_disk_close(l->fd);
    }
    ttn_builder_drop(&l->waiting);
    ttn_free(l);
}
