/* Any bytes behind the two that begin gzip: what is accepted is what zlib's own gzip mode makes of the members. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "data/source.h"
#include "tests/fuzz/fuzz.h"

enum { ROOM = 1 << 18, PART = 4096 };

typedef struct {
    uint8_t *bytes;
    size_t n;
    int whole;
} output;

static output ours(const uint8_t *data, size_t bytes)
{
    static uint8_t room[ROOM];
    output o = {.bytes = room};
    ttn_source *s;
    ttn_error err = {0};
    ttn_status status =
        ttn_source_open_memory("it", data, bytes, 5, &(ttn_source_rules){.allow_no_bgzf_eof = 1}, &s, &err);
    check(status == TTN_OK);
    size_t got = 1;
    while (status == TTN_OK && got > 0 && o.n < ROOM - PART) {
        status = s->read(s, o.bytes + o.n, PART, &got, &err);
        if (status == TTN_OK) o.n += got;
    }
    o.whole = status == TTN_OK;
    check(o.whole || (status == TTN_EFORMAT && err.text[0]));
    ttn_source_close(s);
    return o;
}

/* zlib's, member by member; 1 when it accepts all of the bytes as members (and zeros behind them). */
static int theirs(const uint8_t *data, size_t bytes, output *o)
{
    size_t at = 0;
    while (at < bytes && data[at] != 0) {
        z_stream z = {0};
        check(inflateInit2(&z, 31) == Z_OK);
        z.next_in = (uint8_t *)(uintptr_t)(data + at);
        z.avail_in = (uInt)(bytes - at);
        z.next_out = o->bytes + o->n;
        z.avail_out = (uInt)(ROOM - o->n);
        const int code = inflate(&z, Z_FINISH);
        at = bytes - z.avail_in;
        o->n = ROOM - z.avail_out;
        inflateEnd(&z);
        if (code != Z_STREAM_END) return 0;
    }
    while (at < bytes && data[at] == 0)
        at++;
    return at == bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static uint8_t room[ROOM];
    uint8_t *file = malloc(bytes + 2);
    check(file != NULL);
    file[0] = 0x1f;
    file[1] = 0x8b;
    if (bytes > 0) memcpy(file + 2, data, bytes);
    output a = ours(file, bytes + 2), b = {.bytes = room};
    const int accepted = theirs(file, bytes + 2, &b);
    /* We also look at what BGZF says of itself, so we may refuse more. */
    if (a.whole && a.n < ROOM - PART) check(accepted && a.n == b.n && memcmp(a.bytes, b.bytes, a.n) == 0);
    free(file);
    return 0;
}
