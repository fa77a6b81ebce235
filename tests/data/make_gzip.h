/* gzip files for tests, written by zlib: members of any length, blocks as bgzip makes them. */
#ifndef TTN_TESTS_MAKE_GZIP_H
#define TTN_TESTS_MAKE_GZIP_H

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

typedef struct {
    unsigned char *bytes; /* (n) to be freed */
    size_t n;
} made_bytes;

static inline void made_append(made_bytes *m, const void *bytes, size_t n)
{
    unsigned char *longer = realloc(m->bytes, m->n + n + 1);
    assert(longer);
    if (n > 0) memcpy(longer + m->n, bytes, n);
    m->bytes = longer;
    m->n += n;
}

static inline void made_little(unsigned char *to, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> 8 * i);
}

/* One member behind a header; returns its length. */
static inline size_t made_member_with(made_bytes *m, const unsigned char *header, size_t n_header, const void *bytes,
                                      size_t n)
{
    z_stream z = {0};
    int code = deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
    assert(code == Z_OK);
    const size_t room = deflateBound(&z, n) + 16;
    unsigned char *packed = malloc(room);
    assert(packed);
    z.next_in = (unsigned char *)(uintptr_t)bytes;
    z.avail_in = (uInt)n;
    z.next_out = packed;
    z.avail_out = (uInt)room;
    code = deflate(&z, Z_FINISH);
    assert(code == Z_STREAM_END);
    (void)code;
    const size_t n_packed = room - z.avail_out;
    deflateEnd(&z);
    unsigned char trailer[8];
    made_little(trailer, (uint32_t)crc32(0, bytes, (uInt)n), 4);
    made_little(trailer + 4, (uint32_t)n, 4);
    const size_t from = m->n;
    made_append(m, header, n_header);
    made_append(m, packed, n_packed);
    made_append(m, trailer, sizeof trailer);
    free(packed);
    return m->n - from;
}

static inline void made_member(made_bytes *m, const void *bytes, size_t n)
{
    static const unsigned char header[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
    made_member_with(m, header, sizeof header, bytes, n);
}

/* Members of `each` bytes. */
static inline made_bytes made_members(const void *bytes, size_t n, size_t each)
{
    made_bytes m = {0};
    size_t at = 0;
    do {
        made_member(&m, (const unsigned char *)bytes + at, n - at < each ? n - at : each);
        at += each;
    } while (at < n);
    return m;
}

static inline void made_block(made_bytes *m, const void *bytes, size_t n)
{
    static const unsigned char header[] = {0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 6, 0, 'B', 'C', 2, 0, 0, 0};
    const size_t at = m->n;
    const size_t length = made_member_with(m, header, sizeof header, bytes, n);
    made_little(m->bytes + at + 16, (uint32_t)length - 1, 2);
}

/* BGZF: blocks of `each` bytes, and the empty one (without it: has_end 0). */
static inline made_bytes made_bgzf(const void *bytes, size_t n, size_t each, int has_end)
{
    made_bytes m = {0};
    for (size_t at = 0; at < n; at += each)
        made_block(&m, (const unsigned char *)bytes + at, n - at < each ? n - at : each);
    if (has_end) made_block(&m, "", 0);
    return m;
}

#endif
