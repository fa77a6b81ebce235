/* gzip (RFC 1952) over zlib's raw inflate: one member or many, and BGZF, whose members are blocks of at most 64 KiB that
 * say how long they are (SAM specification, section 4.1).
 *
 * What is checked: the header and its flags, its own checksum where there is one, the end of the deflate stream, CRC and
 * length in the trailer, the length that a BGZF block says it has, that a BGZF file ends in its empty block, and what
 * stands behind the last member. A member that unpacks to at most HOLD bytes is given on only when all of that was seen
 * to be right. A longer one has to be given on while it comes, since its checksum is its last word: then the end of
 * the stream is never reported, but the damage, and who has read it gives up what he has made of it.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "core/memory.h"
#include "data/source_impl.h"

enum {
    IN = 128 << 10,   /* compressed bytes at hand: an extra field of 64 KiB fits */
    HOLD = 256 << 10, /* unpacked bytes that wait for their checksum */
};

enum { FLAG_CRC = 2, FLAG_EXTRA = 4, FLAG_NAME = 8, FLAG_COMMENT = 16, FLAG_RESERVED = 0xe0 };

typedef struct {
    ttn_source source; /* first: a ttn_source * of ours is one of these */
    ttn_source *below;
    ttn_source_rules rules;
    ttn_error failure; /* the first one, which stays */

    unsigned char *in; /* (IN): bytes [first, end) are at hand, `at` is the offset of the first in the file */
    size_t first, end;
    int64_t at;
    int below_ended;

    z_stream z;
    int z_ready;
    int in_member;
    int64_t member_at;  /* offset of its header */
    int64_t block_size; /* that its header says (BGZF); 0: it does not say */
    uint32_t crc, header_crc;
    uint64_t unpacked; /* of this member */
    int is_first_read; /* nothing of this member was given on */
    int ends_in_block; /* the last member was the empty block that ends a BGZF file */
    int ended;

    unsigned char *out; /* (HOLD): bytes [out_first, out_end) may be given on */
    size_t out_first, out_end;
    int last_byte; /* that was given on; -1: none */
} unpacker;

/* ---- compressed bytes ---- */

/* Let at least n bytes be at hand, fewer only at the end of the file. */
static ttn_status fetch(unpacker *u, size_t n, ttn_error *err)
{
    if (u->end - u->first >= n) return TTN_OK;
    if (u->first > 0) memmove(u->in, u->in + u->first, u->end - u->first);
    u->end -= u->first;
    u->first = 0;
    while (u->end < n && !u->below_ended) {
        size_t got;
        ttn_status status = u->below->read(u->below, u->in + u->end, IN - u->end, &got, err);
        if (status != TTN_OK) return status;
        u->end += got;
        if (got == 0) u->below_ended = 1;
    }
    u->source.facts.bytes = u->below->facts.bytes;
    return TTN_OK;
}

static size_t at_hand(const unpacker *u)
{
    return u->end - u->first;
}

static void skip(unpacker *u, size_t n)
{
    u->first += n;
    u->at += (int64_t)n;
}

static ttn_status cut_off(const unpacker *u, const char *where, ttn_error *err)
{
    return TTN_FAIL_AT(err, TTN_EFORMAT, u->source.name, 0, 0,
                       "the file ends at compressed byte %" PRId64 ", inside %s of the gzip member at byte %" PRId64
                       ": it was cut off; get it again (FA064)",
                       u->at + (int64_t)at_hand(u), where, u->member_at);
}

/* n bytes of the header of a member, which must be there; they stay at hand until the next call. */
static ttn_status take_header(unpacker *u, size_t n, const unsigned char **ret, ttn_error *err)
{
    ttn_status status = fetch(u, n, err);
    if (status != TTN_OK) return status;
    if (at_hand(u) < n) return cut_off(u, "the header", err);
    *ret = u->in + u->first;
    u->header_crc = (uint32_t)crc32(u->header_crc, *ret, (uInt)n);
    skip(u, n);
    return TTN_OK;
}

static uint32_t little16(const unsigned char *b)
{
    return (uint32_t)b[0] | (uint32_t)b[1] << 8;
}

static uint32_t little32(const unsigned char *b)
{
    return little16(b) | little16(b + 2) << 16;
}

/* ---- the header of a member ---- */

/* The length of the block that a BGZF header's extra field says, or 0. */
static int64_t block_size_of(const unsigned char *extra, size_t n)
{
    size_t at = 0;
    while (n - at >= 4) {
        const size_t length = little16(extra + at + 2);
        if (length > n - at - 4) return 0;
        if (extra[at] == 'B' && extra[at + 1] == 'C' && length == 2) return (int64_t)little16(extra + at + 4) + 1;
        at += 4 + length;
    }
    return 0;
}

static ttn_status skip_text(unpacker *u, ttn_error *err)
{
    const unsigned char *byte = NULL;
    do {
        ttn_status status = take_header(u, 1, &byte, err);
        if (status != TTN_OK) return status;
    } while (*byte != 0);
    return TTN_OK;
}

static ttn_status read_extra(unpacker *u, ttn_error *err)
{
    const unsigned char *b;
    ttn_status status = take_header(u, 2, &b, err);
    if (status != TTN_OK) return status;
    const size_t n = little16(b);
    status = take_header(u, n, &b, err);
    if (status == TTN_OK) u->block_size = block_size_of(b, n);
    return status;
}

static ttn_status check_header_crc(unpacker *u, ttn_error *err)
{
    const uint32_t wanted = u->header_crc & 0xffff;
    const unsigned char *b;
    ttn_status status = take_header(u, 2, &b, err);
    if (status == TTN_OK && little16(b) != wanted)
        return TTN_FAIL_AT(err, TTN_EFORMAT, u->source.name, 0, 0,
                           "the header of the gzip member at compressed byte %" PRId64
                           " is not what its checksum says: the file is damaged; get it again (FA064)",
                           u->member_at);
    return status;
}

static ttn_status begin_member(unpacker *u, ttn_error *err)
{
    u->member_at = u->at;
    u->block_size = 0;
    u->header_crc = 0;
    const unsigned char *b = NULL;
    ttn_status status = take_header(u, 10, &b, err);
    if (status != TTN_OK) return status;
    assert(b);
    const int flags = b[3];
    if (b[2] != 8 || flags & FLAG_RESERVED)
        return TTN_FAIL_AT(
            err, TTN_EFORMAT, u->source.name, 0, 0,
            "the gzip member at compressed byte %" PRId64
            " has a header of a kind that does not exist (method %d, flags 0x%02x): the file is damaged; "
            "get it again (FA064)",
            u->member_at, b[2], (unsigned)flags);
    if (flags & FLAG_EXTRA) status = read_extra(u, err);
    if (status == TTN_OK && flags & FLAG_NAME) status = skip_text(u, err);
    if (status == TTN_OK && flags & FLAG_COMMENT) status = skip_text(u, err);
    if (status == TTN_OK && flags & FLAG_CRC) status = check_header_crc(u, err);
    if (status != TTN_OK) return status;

    if (inflateReset(&u->z) != Z_OK)
        return TTN_FAIL(err, TTN_EINTERNAL, "%s: zlib does not start again", u->source.name);
    if (u->source.facts.members == 0) u->source.facts.is_bgzf = u->block_size > 0;
    u->in_member = 1;
    u->is_first_read = 1;
    u->crc = 0;
    u->unpacked = 0;
    return TTN_OK;
}

/* ---- the end of a member, and what follows it ---- */

static ttn_status end_member(unpacker *u, ttn_error *err)
{
    ttn_status status = fetch(u, 8, err);
    if (status != TTN_OK) return status;
    if (at_hand(u) < 8) return cut_off(u, "the checksum", err);
    const unsigned char *b = u->in + u->first;
    const uint32_t crc = little32(b), length = little32(b + 4);
    if (crc != u->crc || length != (uint32_t)u->unpacked)
        return TTN_FAIL_AT(err, TTN_EFORMAT, u->source.name, 0, 0,
                           "the gzip member at compressed byte %" PRId64 " unpacks to %" PRIu64
                           " bytes with checksum %08" PRIx32 ", and its end (byte %" PRId64 ") says %" PRIu32
                           " (modulo 2^32) and %08" PRIx32 ": the file is damaged; get it again (FA064)",
                           u->member_at, u->unpacked, u->crc, u->at, length, crc);
    skip(u, 8);
    if (u->block_size > 0 && u->at - u->member_at != u->block_size)
        return TTN_FAIL_AT(err, TTN_EFORMAT, u->source.name, 0, 0,
                           "the BGZF block at compressed byte %" PRId64 " has %" PRId64
                           " bytes and says it has %" PRId64 ": the file is damaged; get it again (FA064)",
                           u->member_at, u->at - u->member_at, u->block_size);
    u->ends_in_block = u->block_size > 0 && u->unpacked == 0;
    u->in_member = 0;
    u->source.facts.members++;
    u->source.facts.unpacked += (int64_t)u->unpacked;
    return TTN_OK;
}

/* Zeros up to the end of the file, as tapes and some tools add them. */
static ttn_status skip_zeros(unpacker *u, ttn_error *err)
{
    for (;;) {
        ttn_status status = fetch(u, 1, err);
        if (status != TTN_OK || at_hand(u) == 0) return status;
        size_t n = 0;
        while (n < at_hand(u) && u->in[u->first + n] == 0)
            n++;
        if (n == 0) return TTN_OK;
        u->source.facts.zeros += (int64_t)n;
        skip(u, n);
    }
}

/* Between members: begin the next one, or find that there is none. */
static ttn_status go_on(unpacker *u, ttn_error *err)
{
    ttn_status status = fetch(u, 2, err);
    if (status == TTN_OK && at_hand(u) > 0 && u->in[u->first] == 0) status = skip_zeros(u, err);
    if (status != TTN_OK) return status;
    const unsigned char *b = u->in + u->first;
    if (at_hand(u) > 0) {
        const int is_gzip = u->source.facts.zeros == 0 && b[0] == 0x1f && (at_hand(u) == 1 || b[1] == 0x8b);
        if (is_gzip) return begin_member(u, err);
        u->source.failed_rule = 65;
        return TTN_FAIL_AT(
            err, TTN_EFORMAT, u->source.name, 0, 0,
            "behind the last gzip member, at compressed byte %" PRId64
            ", there is something that is no gzip (0x%02x): the file is damaged, or something was appended "
            "to it (FA065)",
            u->at, b[0]);
    }
    if (u->source.facts.is_bgzf && !u->ends_in_block && !u->rules.allow_no_bgzf_eof)
        return TTN_FAIL_AT(
            err, TTN_EFORMAT, u->source.name, 0, 0,
            "the file ends at compressed byte %" PRId64
            " without the empty block that ends a BGZF file: it was probably cut off between two blocks; "
            "get it again, or set data.allow_no_bgzf_eof=yes (FA064)",
            u->at);
    u->ended = 1;
    return TTN_OK;
}

/* ---- unpacking ---- */

/* Unpack until the room is full or the member has ended, and was right. */
static ttn_status unpack(unpacker *u, ttn_error *err)
{
    u->out_first = 0;
    u->out_end = 0;
    while (u->out_end < HOLD) {
        ttn_status status = fetch(u, 1, err);
        if (status != TTN_OK) return status;
        if (at_hand(u) == 0) return cut_off(u, "the data", err);
        u->z.next_in = u->in + u->first;
        u->z.avail_in = (uInt)at_hand(u);
        u->z.next_out = u->out + u->out_end;
        u->z.avail_out = (uInt)(HOLD - u->out_end);
        const int code = inflate(&u->z, Z_NO_FLUSH);
        const size_t made = HOLD - u->out_end - u->z.avail_out;
        skip(u, at_hand(u) - u->z.avail_in);
        u->crc = (uint32_t)crc32(u->crc, u->out + u->out_end, (uInt)made);
        u->unpacked += made;
        u->out_end += made;
        if (code == Z_STREAM_END) return end_member(u, err);
        if (code == Z_MEM_ERROR) return TTN_FAIL(err, TTN_ENOMEM, "out of memory to unpack %s", u->source.name);
        if (code != Z_OK && code != Z_BUF_ERROR) /* the latter: it wants more of what it is then given */
            return TTN_FAIL_AT(err, TTN_EFORMAT, u->source.name, 0, 0,
                               "what is compressed is damaged at compressed byte %" PRId64
                               " (%s), in the gzip member at byte %" PRId64 "; get the file again (FA064)",
                               u->at, u->z.msg ? u->z.msg : "no deflate stream", u->member_at);
    }
    return TTN_OK;
}

static ttn_status read_unpacked(unpacker *u, void *bytes, size_t room, size_t *ret_n, ttn_error *err)
{
    u->source.is_fused = 0;
    while (u->out_first == u->out_end && !u->ended) {
        ttn_status status = u->in_member ? unpack(u, err) : go_on(u, err);
        if (status != TTN_OK) return status;
    }
    size_t n = u->out_end - u->out_first;
    if (n > room) n = room;
    *ret_n = n;
    if (n == 0) return TTN_OK;
    memcpy(bytes, u->out + u->out_first, n);
    if (u->is_first_read)
        u->source.is_fused =
            u->out[u->out_first] == '>' && u->last_byte != '\n' && u->last_byte != '\r' && u->last_byte != -1;
    u->is_first_read = 0;
    u->out_first += n;
    u->last_byte = u->out[u->out_first - 1];
    return TTN_OK;
}

/* What is not compressed: first the bytes that were looked at, then straight from below. */
static ttn_status read_plain(unpacker *u, void *bytes, size_t room, size_t *ret_n, ttn_error *err)
{
    size_t n = at_hand(u);
    if (n == 0) {
        ttn_status status = u->below->read(u->below, bytes, room, ret_n, err);
        u->source.facts.bytes = u->below->facts.bytes;
        return status;
    }
    if (n > room) n = room;
    memcpy(bytes, u->in + u->first, n);
    skip(u, n);
    *ret_n = n;
    return TTN_OK;
}

static ttn_status read_either(ttn_source *s, void *bytes, size_t room, size_t *ret_n, ttn_error *err)
{
    unpacker *u = (unpacker *)s;
    *ret_n = 0;
    if (u->failure.status == TTN_OK) {
        if (s->facts.is_gzip)
            (void)read_unpacked(u, bytes, room, ret_n, &u->failure);
        else
            (void)read_plain(u, bytes, room, ret_n, &u->failure);
        if (u->failure.status == TTN_OK) return TTN_OK;
        *ret_n = 0;
        if (u->failure.status == TTN_EFORMAT && s->failed_rule == 0) s->failed_rule = 64;
        if (u->failure.status == TTN_EIO) s->failed_rule = 66;
    }
    if (err && err->status == TTN_OK) *err = u->failure;
    return u->failure.status;
}

static void close_either(ttn_source *s)
{
    unpacker *u = (unpacker *)s;
    if (u->z_ready) inflateEnd(&u->z);
    ttn_source_close(u->below);
    free(u->in);
    free(u->out);
    ttn_free(u);
}

static ttn_status start(unpacker *u, ttn_error *err)
{
    u->in = malloc(IN); /* not zeroed, which would cost as much as reading a small file */
    if (!u->in) return TTN_FAIL(err, TTN_ENOMEM, "out of memory for the bytes of %s", u->source.name);
    memset(u->in, 0, 2);
    ttn_status status = fetch(u, 2, err);
    if (status != TTN_OK) return status;
    u->source.facts.is_gzip = at_hand(u) >= 2 && u->in[0] == 0x1f && u->in[1] == 0x8b;
    if (!u->source.facts.is_gzip) return TTN_OK;
    u->out = malloc(HOLD);
    if (!u->out) return TTN_FAIL(err, TTN_ENOMEM, "out of memory to unpack %s", u->source.name);
    if (inflateInit2(&u->z, -15) != Z_OK) /* raw deflate, whatever window */
        return TTN_FAIL(err, TTN_ENOMEM, "out of memory to unpack %s", u->source.name);
    u->z_ready = 1;
    return TTN_OK;
}

ttn_status ttn_source_unpack(ttn_source *s, const ttn_source_rules *rules, ttn_source **ret, ttn_error *err)
{
    *ret = NULL;
    unpacker *u = ttn_alloc_or_say(1, sizeof *u, "what unpacks a file", err);
    if (!u) {
        ttn_source_close(s);
        return TTN_ENOMEM;
    }
    u->source = (ttn_source){.name = s->name, .read = read_either, .close = close_either};
    u->source.facts.link = s->facts.link;
    u->below = s;
    u->last_byte = -1;
    if (rules) u->rules = *rules;
    ttn_status status = start(u, err);
    if (status == TTN_OK)
        *ret = &u->source;
    else
        close_either(&u->source);
    return status;
}
