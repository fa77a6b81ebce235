#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/bits.h"
#include "core/builder.h"
#include "core/disk.h"
#include "core/memory.h"
#include "core/text.h"
#include "train/files/event_file.h"

/* ---- crc32c ---- */

uint32_t ttn_crc32c(const void *bytes, size_t n)
{
    /* what four bits do: the reflected polynomial 0x82F63B78 applied to 0 … 15 */
    static const uint32_t nibble[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
        0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    const unsigned char *byte = bytes;
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < n; i++) {
        crc ^= byte[i];
        crc = crc >> 4 ^ nibble[crc & 15];
        crc = crc >> 4 ^ nibble[crc & 15];
    }
    return ~crc;
}

/* A checksum of data that hold checksums of the same kind would be no good one. */
static uint32_t masked_crc(const void *bytes, size_t n)
{
    const uint32_t crc = ttn_crc32c(bytes, n);
    return (crc >> 15 | crc << 17) + 0xa282ead8;
}

/* ---- bytes ---- */

static void put_fixed(ttn_builder *b, uint64_t value, int n)
{
    unsigned char bytes[8];
    for (int i = 0; i < n; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
    ttn_build_bytes(b, bytes, (size_t)n);
}

static void put_varint(ttn_builder *b, uint64_t value)
{
    while (value > 0x7f) {
        put_fixed(b, (value & 0x7f) | 0x80, 1);
        value >>= 7;
    }
    put_fixed(b, value, 1);
}

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5 }; /* what follows a key */

static void put_key(ttn_builder *b, int field, int kind)
{
    put_varint(b, (uint64_t)(field << 3 | kind));
}

static void put_part(ttn_builder *b, int field, const void *bytes, size_t n)
{
    put_key(b, field, LENGTH);
    put_varint(b, n);
    ttn_build_bytes(b, bytes, n);
}

/* ---- events ---- */

static void begin_event(ttn_builder *b, double date, int64_t step)
{
    put_key(b, 1, FIXED64);
    put_fixed(b, ttn_f64_bits(date), 8);
    if (step == 0) return;
    put_key(b, 2, VARINT);
    put_varint(b, (uint64_t)step);
}

static void put_value(ttn_builder *summary, const ttn_metric *m)
{
    ttn_builder value = {0};
    put_part(&value, 1, m->name, strlen(m->name));
    put_key(&value, 2, FIXED32);
    put_fixed(&value, ttn_f32_bits((float)m->value), 4);
    if (value.failed) summary->failed = 1;
    put_part(summary, 1, value.text, value.n);
    ttn_builder_drop(&value);
}

static void build_summary(ttn_builder *b, const ttn_metrics *r)
{
    ttn_builder summary = {0};
    for (int64_t i = 0; i < r->n; i++)
        put_value(&summary, &r->metric[i]);
    if (summary.failed) b->failed = 1;
    begin_event(b, (double)r->date, r->step);
    put_part(b, 5, summary.text, summary.n);
    ttn_builder_drop(&summary);
}

/* ---- the file ---- */

struct ttn_event_file {
    int fd;
    int64_t size; /* of the records that are whole */
    int is_torn;  /* a part of one stands behind them */
    char path[PATH_MAX];
};

static ttn_status fail(const ttn_event_file *f, const char *what, int error, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    return TTN_FAIL(err, ttn_disk_fault(error), "%s: %s: %s%s", ttn_text_tail(f->path, shown), what, strerror(error),
                    ttn_disk_advice(error));
}

static int mend(ttn_event_file *f)
{
    if (f->is_torn) f->is_torn = TEMP_FAILURE_RETRY(ftruncate(f->fd, f->size)) != 0;
    return !f->is_torn;
}

/* The event's bytes, which are dropped, as a record. */
static ttn_status add(ttn_event_file *f, ttn_builder *event, ttn_error *err)
{
    char *bytes = NULL;
    ttn_builder b = {0};
    put_fixed(&b, event->n, 8);
    put_fixed(&b, b.text ? masked_crc(b.text, 8) : 0, 4);
    if (event->n > 0) ttn_build_bytes(&b, event->text, event->n);
    put_fixed(&b, masked_crc(event->text, event->n), 4);
    b.failed |= event->failed;
    ttn_builder_drop(event);
    const size_t n = b.n;
    ttn_status status = ttn_builder_finish(&b, "an event for TensorBoard", &bytes, err);
    if (status != TTN_OK) return status;
    if (!mend(f)) {
        status = fail(f, "a record that is there in part cannot be cut off", errno, err);
    } else if (ttn_disk_write(f->fd, bytes, n) != 0) {
        status = fail(f, "a record cannot be added", errno, err);
        f->is_torn = 1;
        mend(f);
    } else {
        f->size += (int64_t)n;
    }
    free(bytes);
    return status;
}

static ttn_status add_start(ttn_event_file *f, double date, int64_t step, ttn_error *err)
{
    static const char version[] = "brain.Event:2";
    static const unsigned char start[] = {1 << 3 | VARINT, 1};
    ttn_builder event = {0};
    begin_event(&event, date, 0);
    put_part(&event, 3, version, sizeof version - 1);
    ttn_status status = add(f, &event, err);
    if (status != TTN_OK || step == 0) return status;
    begin_event(&event, date, step);
    put_part(&event, 7, start, sizeof start);
    return add(f, &event, err);
}

enum { MOST_STARTS = 1000 /* of one process within a second */ };

static ttn_status open_new(ttn_event_file *f, const char *folder, const char *host, int64_t date, ttn_error *err)
{
    if (ttn_disk_mkdir(folder, 0777) != 0 && errno != EEXIST) {
        const int error = errno;
        snprintf(f->path, sizeof f->path, "%s", folder);
        return fail(f, "cannot be made", error, err);
    }
    for (int i = 0; i < MOST_STARTS && f->fd < 0; i++) {
        const int n = snprintf(f->path, sizeof f->path, "%s/events.out.tfevents.%010" PRId64 ".%.*s.%d.%d", folder,
                               date, (int)strcspn(host, "/"), host, (int)getpid(), i);
        if (n >= (int)sizeof f->path) return fail(f, "the path is too long", ENAMETOOLONG, err);
        f->fd = ttn_disk_open(f->path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL, 0666);
        if (f->fd < 0 && errno != EEXIST) break;
    }
    return f->fd < 0 ? fail(f, "cannot be made", errno, err) : TTN_OK;
}

ttn_status ttn_event_file_create(const char *folder, const char *host, int64_t step, const ttn_clock *clock,
                                 ttn_event_file **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_event_file *f = ttn_alloc_or_say(1, sizeof *f, "the file for TensorBoard", err);
    if (!f) return TTN_ENOMEM;
    f->fd = -1;
    const int64_t date = ttn_clock_date(clock);
    ttn_status status = open_new(f, folder, host, date, err);
    if (status == TTN_OK) status = add_start(f, (double)date, step, err);
    if (status == TTN_OK)
        *ret = f;
    else
        ttn_event_file_close(f);
    return status;
}

ttn_status ttn_event_file_add(ttn_event_file *f, const ttn_metrics *r, ttn_error *err)
{
    ttn_builder event = {0};
    if (r->failed) return TTN_FAIL(err, TTN_ENOMEM, "no memory for a record of metrics");
    build_summary(&event, r);
    return add(f, &event, err);
}

const char *ttn_event_file_path(const ttn_event_file *f)
{
    return f->path;
}

void ttn_event_file_close(ttn_event_file *f)
{
    if (!f) return;
    if (f->fd >= 0) ttn_disk_close(f->fd);
    ttn_free(f);
}
