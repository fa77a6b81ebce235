/* gzip and BGZF: what is whole comes out as it went in, and nothing that is damaged passes for whole. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/rng.h"
#include "data/fasta.h"
#include "data/source.h"
#include "tests/data/make_gzip.h"
#include "tests/harness/test.h"

/* ---- reading ---- */

typedef struct {
    made_bytes got;
    ttn_status status; /* TTN_OK: to the end */
    ttn_error err;
    int failed_rule;
    ttn_source_facts facts;
} unpacked;

static unpacked unpack(const void *bytes, size_t n, size_t most, int allow_no_bgzf_eof)
{
    unpacked u = {0};
    ttn_source *s;
    u.status = ttn_source_open_memory("in.gz", bytes, n, most,
                                      &(ttn_source_rules){.allow_no_bgzf_eof = allow_no_bgzf_eof}, &s, &u.err);
    size_t got = 1;
    unsigned char part[4096];
    while (u.status == TTN_OK && got > 0) {
        u.status = s->read(s, part, sizeof part, &got, &u.err);
        if (u.status == TTN_OK && got > 0) made_append(&u.got, part, got);
    }
    if (s) {
        u.facts = s->facts;
        u.facts.link = NULL;
        u.failed_rule = s->failed_rule;
    }
    ttn_source_close(s);
    return u;
}

/* A file in FASTA of about `n` bytes, of random residues. */
static made_bytes random_fasta(size_t n)
{
    static const char residues[] = "ACDEFGHIKLMNPQRSTVWY";
    made_bytes m = {0};
    uint64_t i = 0;
    for (int record = 0; m.n < n; record++) {
        char line[80];
        made_append(&m, line, (size_t)snprintf(line, sizeof line, ">sp|P%05d|TEST protein\n", record));
        for (int l = 0; l < 5; l++) {
            for (int k = 0; k < 60; k++)
                line[k] = residues[ttn_rng_below(ttn_test_seed(), 1, i++, 20)];
            line[60] = '\n';
            made_append(&m, line, 61);
        }
    }
    return m;
}

static void assert_unpacks(const made_bytes *packed, const made_bytes *wanted, size_t most)
{
    unpacked u = unpack(packed->bytes, packed->n, most, 0);
    assert_ok(u.status, &u.err);
    assert_int_equal(u.got.n, wanted->n);
    assert_same_bits(u.got.bytes, wanted->bytes, wanted->n);
    assert_int_equal(u.facts.bytes, packed->n);
    assert_int_equal(u.facts.unpacked, wanted->n);
    assert_true(u.facts.is_gzip);
    free(u.got.bytes);
}

static void assert_refused(const made_bytes *packed, int rule, const char *words)
{
    for (size_t most = 0; most < 2; most++) {
        unpacked u = unpack(packed->bytes, packed->n, most, 0);
        assert_fails(u.status, TTN_EFORMAT, &u.err, words);
        char code[16];
        snprintf(code, sizeof code, "(FA%03d)", rule);
        assert_contains(u.err.text, code);
        assert_int_equal(u.failed_rule, rule);
        free(u.got.bytes);
    }
}

/* ---- what is whole ---- */

static void what_was_packed_comes_out(void **state)
{
    (void)state;
    const made_bytes text = random_fasta(700000); /* more than is held back at once */
    static const size_t most[] = {0, 1, 1000};
    for (size_t i = 0; i < 3; i++) {
        made_bytes packed[] = {made_members(text.bytes, text.n, text.n), made_members(text.bytes, text.n, 997),
                               made_bgzf(text.bytes, text.n, 65280, 1), made_bgzf(text.bytes, text.n, 100000, 1)};
        for (size_t k = 0; k < 3; k++)
            assert_unpacks(&packed[k], &text, most[i]);
        for (size_t k = 0; k < 4; k++)
            free(packed[k].bytes);
    }
    free(text.bytes);
}

static void members_blocks_and_bytes_are_counted(void **state)
{
    (void)state;
    const made_bytes members = made_members("MKVLAMKVLA", 10, 3), blocks = made_bgzf("MKVLAMKVLA", 10, 3, 1);
    unpacked u = unpack(members.bytes, members.n, 0, 0);
    assert_int_equal(u.facts.members, 4);
    assert_false(u.facts.is_bgzf);
    free(u.got.bytes);
    u = unpack(blocks.bytes, blocks.n, 0, 0);
    assert_int_equal(u.facts.members, 5);
    assert_true(u.facts.is_bgzf);
    free(u.got.bytes);
    free(members.bytes);
    free(blocks.bytes);
    u = unpack("plain", 5, 1, 0);
    assert_false(u.facts.is_gzip);
    assert_int_equal(u.got.n, 5);
    free(u.got.bytes);
}

/* Every optional part of a header, alone and together; the header's own checksum is checked. */
static void headers_may_hold_what_the_format_allows(void **state)
{
    (void)state;
    for (int flags = 0; flags < 32; flags++) {
        made_bytes header = {0};
        unsigned char fixed[10] = {0x1f, 0x8b, 8, (unsigned char)flags, 1, 2, 3, 4, 2, 3};
        made_append(&header, fixed, sizeof fixed);
        if (flags & 4) made_append(&header, "\5\0abcde", 7);
        if (flags & 8) made_append(&header, "name.fa", 8);
        if (flags & 16) made_append(&header, "a comment", 10);
        if (flags & 2) {
            unsigned char crc[2];
            made_little(crc, (uint32_t)crc32(0, header.bytes, (uInt)header.n), 2);
            made_append(&header, crc, 2);
        }
        made_bytes packed = {0}, text = {0};
        made_member_with(&packed, header.bytes, header.n, "MKV", 3);
        made_append(&text, "MKV", 3);
        assert_unpacks(&packed, &text, 1);
        if (flags & 2) {
            packed.bytes[4] ^= 1; /* the time */
            assert_refused(&packed, 64, "header of the gzip member at compressed byte 0");
        }
        free(packed.bytes);
        free(text.bytes);
        free(header.bytes);
    }
}

static void zeros_behind_are_counted_and_junk_is_refused_row_65(void **state)
{
    (void)state;
    made_bytes m = made_members("MKV", 3, 3);
    made_append(&m, "\0\0\0\0\0", 5);
    unpacked u = unpack(m.bytes, m.n, 0, 0);
    assert_ok(u.status, &u.err);
    assert_int_equal(u.facts.zeros, 5);
    free(u.got.bytes);
    made_append(&m, "x", 1);
    assert_refused(&m, 65, "no gzip (0x78)");
    free(m.bytes);
    m = made_members("MKV", 3, 3);
    made_append(&m, "junk", 4);
    assert_refused(&m, 65, "behind the last gzip member");
    free(m.bytes);
}

/* ---- what is damaged (row 64) ---- */

static void each_field_of_the_trailer_is_checked(void **state)
{
    (void)state;
    made_bytes m = made_members("MKVLA", 5, 5);
    for (size_t back = 1; back <= 8; back++) {
        m.bytes[m.n - back] ^= 4;
        assert_refused(&m, 64, "says");
        m.bytes[m.n - back] ^= 4;
    }
    m.n -= 8;
    assert_refused(&m, 64, "inside the checksum of the gzip member at byte 0");
    m.n = 10;
    assert_refused(&m, 64, "inside the data");
    m.n = 5;
    assert_refused(&m, 64, "inside the header");
    free(m.bytes);
    m = made_members("MKVLA", 5, 5);
    m.bytes[3] = 0x20;
    assert_refused(&m, 64, "flags 0x20");
    m.bytes[3] = 0;
    m.bytes[2] = 7;
    assert_refused(&m, 64, "method 7");
    m.bytes[2] = 8;
    m.bytes[10] = 0x07; /* a block of a type that does not exist */
    assert_refused(&m, 64, "is damaged at compressed byte");
    free(m.bytes);
}

/* A member that fits is handed on only when its checksum was seen to be right: here not one byte is. */
static void nothing_of_a_small_damaged_member_is_handed_on(void **state)
{
    (void)state;
    const made_bytes text = random_fasta(200000);
    made_bytes m = made_members(text.bytes, text.n, 50000);
    m.bytes[m.n - 8] ^= 1;
    unpacked u = unpack(m.bytes, m.n, 0, 0);
    assert_int_equal(u.status, TTN_EFORMAT);
    assert_int_equal(u.got.n, text.n / 50000 * 50000);
    assert_same_bits(u.got.bytes, text.bytes, u.got.n);
    free(u.got.bytes);
    free(m.bytes);
    free(text.bytes);
}

static void bgzf_must_end_in_its_empty_block(void **state)
{
    (void)state;
    made_bytes m = made_bgzf(">a\nMKV\n", 7, 4, 0);
    assert_refused(&m, 64, "without the empty block that ends a BGZF file");
    unpacked u = unpack(m.bytes, m.n, 0, 1);
    assert_ok(u.status, &u.err);
    assert_int_equal(u.got.n, 7);
    free(u.got.bytes);
    const size_t second = m.n / 2;
    for (size_t at = 0; at + 1 < m.n; at++) /* the length that the second block says it has */
        if (at > second - 10 && m.bytes[at] == 'B' && m.bytes[at + 1] == 'C') m.bytes[at + 4] ^= 1;
    assert_refused(&m, 64, "BGZF block at compressed byte");
    free(m.bytes);
}

/* Rows 60 and 63. */
static void joined_and_nested_files_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second;
        int rule; /* 0: accepted */
        int is_bgzf;
    } known[] = {
        {">a\nMKV", ">b\nMKK\n", 63, 0},  {">a\nMKV", ">b\nMKK\n", 63, 1},  {">a\nMKV\n", ">b\nMKK\n", 0, 0},
        {">a\rMKV\r", ">b\rMKK\r", 0, 0}, {">a\nMK", "V\n>b\nMKK\n", 0, 0}, {">a x", ">y\nMKV\n", 63, 0},
        {">a x", ">y\nMKV\n", 0, 1},      {";c", ">y\nMKV\n", 63, 0},       {">a\nMKV\n  ", ">b\nMKK\n", 0, 0},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        made_bytes m = {0};
        void (*add)(made_bytes *, const void *, size_t) = known[i].is_bgzf ? made_block : made_member;
        add(&m, known[i].first, strlen(known[i].first));
        add(&m, known[i].second, strlen(known[i].second));
        if (known[i].is_bgzf) add(&m, "", 0);
        for (size_t most = 0; most < 3; most++) {
            ttn_source *s;
            ttn_fasta *f;
            const ttn_fasta_record *r;
            ttn_error err = {0};
            assert_ok(ttn_source_open_memory("in.gz", m.bytes, m.n, most, NULL, &s, &err), &err);
            assert_ok(ttn_fasta_open(s, NULL, &f, &err), &err);
            ttn_status status;
            do
                status = ttn_fasta_next(f, &r, &err);
            while (status == TTN_OK);
            if (ttn_fasta_failed_rule(f) != known[i].rule || (status == TTN_EOF) != (known[i].rule == 0))
                fail_msg("'%s' + '%s': %s", known[i].first, known[i].second, err.text);
            ttn_fasta_close(f);
        }
        free(m.bytes);
    }

    made_bytes inner = made_members(">a\nM\n", 5, 5), outer = made_members(inner.bytes, inner.n, inner.n);
    ttn_source *s;
    ttn_fasta *f;
    const ttn_fasta_record *r;
    ttn_error err = {0};
    assert_ok(ttn_source_open_memory("in.gz", outer.bytes, outer.n, 0, NULL, &s, &err), &err);
    assert_ok(ttn_fasta_open(s, NULL, &f, &err), &err);
    assert_fails(ttn_fasta_next(f, &r, &err), TTN_EFORMAT, &err, "gzip inside gzip");
    assert_int_equal(ttn_fasta_failed_rule(f), 60);
    ttn_fasta_close(f);
    free(inner.bytes);
    free(outer.bytes);
}

/* The hash and number of what the reader of FASTA gives; 1 when it gave all of it. */
static int read_fasta(const void *bytes, size_t n, ttn_hash128 *ret_hash)
{
    ttn_source *s;
    ttn_fasta *f;
    const ttn_fasta_record *r;
    ttn_error err = {0};
    if (ttn_source_open_memory("in.gz", bytes, n, 0, NULL, &s, &err) != TTN_OK) return 0;
    assert_ok(ttn_fasta_open(s, NULL, &f, &err), &err);
    ttn_status status;
    do
        status = ttn_fasta_next(f, &r, &err);
    while (status == TTN_OK);
    if (status != TTN_EOF && (status != TTN_EFORMAT || !err.text[0])) fail_msg("status %d: %s", status, err.text);
    *ret_hash = ttn_fasta_found(f)->hash;
    ttn_fasta_close(f);
    return status == TTN_EOF;
}

/* One member, of which the first part is stored, and the rest compressed: a cut costs as much as it takes to unpack what is
 * left, and bytes that are stored cost a tenth of others. */
static made_bytes mostly_stored(const made_bytes *text, size_t stored)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 0, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    made_bytes m = {.bytes = malloc(text->n + 10000)};
    assert_non_null(m.bytes);
    z.next_out = m.bytes;
    z.avail_out = (uInt)text->n + 10000;
    z.next_in = text->bytes;
    z.avail_in = (uInt)stored;
    assert_int_equal(deflate(&z, Z_FULL_FLUSH), Z_OK);
    assert_int_equal(deflateParams(&z, 6, Z_DEFAULT_STRATEGY), Z_OK);
    z.avail_in = (uInt)(text->n - stored);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    m.n = z.total_out;
    deflateEnd(&z);
    return m;
}

static void a_cut_file_is_never_accepted(void **state)
{
    (void)state;
    const made_bytes text = random_fasta(280000), less = random_fasta(80000);
    made_bytes packed[] = {mostly_stored(&text, 180000), made_bgzf(less.bytes, less.n, 20000, 1)};
    assert_true(packed[0].n > 200000 && packed[0].n < 260000);
    for (int kind = 0; kind < 2; kind++) {
        const size_t n = packed[kind].n;
        ttn_hash128 hash;
        assert_true(read_fasta(packed[kind].bytes, n, &hash));
        const size_t step = ttn_test_long() ? 1 : n / (size_t)ttn_scaled((int64_t)(n / 16), 200);
        for (size_t cut = 0; cut < n; cut += cut < 40 || cut + 40 > n ? 1 : step)
            if (read_fasta(packed[kind].bytes, cut, &hash))
                fail_msg("kind %d, cut to %zu of %zu: accepted", kind, cut, n);
        free(packed[kind].bytes);
    }
    free(text.bytes);
    free(less.bytes);
}

static void a_flipped_bit_is_an_error_or_changes_nothing(void **state)
{
    (void)state;
    const made_bytes text = random_fasta(6000);
    made_bytes packed[] = {made_members(text.bytes, text.n, text.n), made_bgzf(text.bytes, text.n, 2500, 1),
                           made_members(text.bytes, text.n, 1500)};
    const int64_t flips = ttn_test_long() ? 100000 : ttn_scaled(20000, 500);
    int64_t harmless = 0;
    for (int64_t i = 0; i < flips; i++) {
        const made_bytes *p = &packed[i % 3];
        const uint64_t bit = ttn_rng_below(ttn_test_seed(), 2, (uint64_t)i, p->n * 8);
        p->bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        ttn_hash128 hash;
        if (read_fasta(p->bytes, p->n, &hash)) {
            harmless++;
            if (!ttn_hash_same(hash, ttn_hash128_of(text.bytes, text.n)))
                fail_msg("bit %" PRIu64 " of kind %" PRId64 ": accepted with another content", bit, i % 3);
        }
        p->bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    assert_true(harmless * 20 < flips); /* time, system: what the content does not hang on is little */
    for (int k = 0; k < 3; k++)
        free(packed[k].bytes);
    free(text.bytes);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_packed_comes_out),
        cmocka_unit_test(members_blocks_and_bytes_are_counted),
        cmocka_unit_test(headers_may_hold_what_the_format_allows),
        cmocka_unit_test(zeros_behind_are_counted_and_junk_is_refused_row_65),
        cmocka_unit_test(each_field_of_the_trailer_is_checked),
        cmocka_unit_test(nothing_of_a_small_damaged_member_is_handed_on),
        cmocka_unit_test(bgzf_must_end_in_its_empty_block),
        cmocka_unit_test(joined_and_nested_files_are_told),
        cmocka_unit_test(a_cut_file_is_never_accepted),
        cmocka_unit_test(a_flipped_bit_is_an_error_or_changes_nothing),
    };
    return ttn_test_run(tests);
}
