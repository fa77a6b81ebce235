#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/hash.h"
#include "core/rng.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"

static void assert_hash(ttn_hash128 got, ttn_hash128 wanted)
{
    char got_text[TTN_HASH_TEXT];
    char wanted_text[TTN_HASH_TEXT];
    assert_string_equal(ttn_hash_print(got, got_text), ttn_hash_print(wanted, wanted_text));
}

/* The bytes that xxHash's own checks use. */
static void fill_as_published(uint8_t *byte, size_t n)
{
    uint64_t generator = 2654435761u;
    for (size_t i = 0; i < n; i++) {
        byte[i] = (uint8_t)(generator >> 56);
        generator *= 11400714785074694797u;
    }
}

/* A length for each of the ways XXH3 goes: 0, 1-3, 4-8, 9-16, 17-128, 129-240, more, more than one block. */
static void hashes_of_64_bits_are_the_published_ones(void **state)
{
    (void)state;
    static const struct {
        size_t bytes;
        uint64_t hash;
    } known[] = {
        {0, 0x2D06800538D394C2},   {1, 0xC44BDFF4074EECDB},   {6, 0x27B56A84CD2D7325},    {12, 0xA713DAF0DFBB77E7},
        {24, 0xA3FE70BF9D3510EB},  {48, 0x397DA259ECBA1F11},  {80, 0xBCDEFBBB2C47C90A},   {195, 0xCD94217EE362EC3A},
        {403, 0xCDEB804D65C6DEA4}, {512, 0x617E49599013CB6B}, {2048, 0xDD59E2C3A5F038E0}, {2240, 0x6E73A90539CF2948},
    };
    static uint8_t byte[2240];
    fill_as_published(byte, sizeof byte);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (ttn_hash64(byte, known[i].bytes, 0) != known[i].hash)
            fail_msg("%zu bytes: %016" PRIX64 ", published is %016" PRIX64, known[i].bytes,
                     ttn_hash64(byte, known[i].bytes, 0), known[i].hash);
    assert_true(ttn_hash64(NULL, 0, 0) == known[0].hash);
    assert_true(ttn_hash_text("") == known[0].hash);
    assert_true(ttn_hash_text("abc") == 0x78AF5F94892F3950);
    assert_true(ttn_hash64("abc", 3, 0) == ttn_hash_text("abc"));
}

static void hashes_of_128_bits_are_the_published_ones(void **state)
{
    (void)state;
    char text[TTN_HASH_TEXT];
    assert_string_equal(ttn_hash_print(ttn_hash128_of(NULL, 0), text), "99aa06d3014798d86001c324468d497f");
    assert_string_equal(ttn_hash_print(ttn_hash128_of("", 0), text), "99aa06d3014798d86001c324468d497f");
    assert_string_equal(ttn_hash_print(ttn_hash128_of("abc", 3), text), "06b05ab6733a618578af5f94892f3950");
}

/* Each of the seed's bits makes another hash, of short and of long data. */
static void every_bit_of_the_seed_counts(void **state)
{
    (void)state;
    static uint8_t byte[1000];
    fill_as_published(byte, sizeof byte);
    static const size_t length[] = {0, 3, 8, 16, 100, 200, 1000};
    for (size_t l = 0; l < sizeof length / sizeof *length; l++) {
        uint64_t seen[65];
        seen[64] = ttn_hash64(byte, length[l], 0);
        for (int bit = 0; bit < 64; bit++)
            seen[bit] = ttn_hash64(byte, length[l], (uint64_t)1 << bit);
        for (int i = 0; i < 65; i++)
            for (int j = 0; j < i; j++)
                assert_true(seen[i] != seen[j]);
    }
}

/* A flipped bit anywhere in the data is seen: what a checkpoint relies on. */
static void every_bit_of_the_data_counts(void **state)
{
    (void)state;
    static uint8_t byte[1500];
    fill_as_published(byte, sizeof byte);
    ttn_hash128 whole = ttn_hash128_of(byte, sizeof byte);
    uint64_t whole64 = ttn_hash64(byte, sizeof byte, 0);
    for (size_t bit = 0; bit < 8 * sizeof byte; bit++) {
        byte[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(ttn_hash_same(ttn_hash128_of(byte, sizeof byte), whole));
        assert_true(ttn_hash64(byte, sizeof byte, 0) != whole64);
        byte[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_hash(ttn_hash128_of(byte, sizeof byte), whole);
}

static void pieces_hash_as_the_whole_wherever_a_short_text_is_cut(void **state)
{
    (void)state;
    enum { MOST = 300 }; /* past 240, where the long form begins, and past its buffer of 256 */
    uint8_t byte[MOST];
    fill_as_published(byte, MOST);
    ttn_error err = {0};
    ttn_hash *h;
    assert_ok(ttn_hash_create(&h, &err), &err);
    for (size_t n = 0; n <= MOST; n += n < 20 ? 1 : 7) {
        ttn_hash128 whole = ttn_hash128_of(byte, n);
        for (size_t cut = 0; cut <= n; cut++) {
            ttn_hash_reset(h);
            ttn_hash_update(h, byte, cut);
            ttn_hash_update(h, NULL, 0);
            ttn_hash_update(h, byte + cut, n - cut);
            assert_hash(ttn_hash_final(h), whole);
        }
    }
    ttn_hash_destroy(h);
}

static void pieces_hash_as_the_whole_wherever_a_long_text_is_cut(void **state)
{
    (void)state;
    enum { BYTES = 100000, MOST_PIECE = 3000 };
    static uint8_t byte[BYTES];
    fill_as_published(byte, BYTES);
    ttn_hash128 whole = ttn_hash128_of(byte, BYTES);
    ttn_error err = {0};
    ttn_rng r = {.key = ttn_test_seed()};
    for (int64_t round = 0; round < ttn_scaled(200, 20); round++) {
        ttn_hash *h;
        assert_ok(ttn_hash_create(&h, &err), &err);
        for (size_t at = 0; at < BYTES;) {
            size_t piece = (size_t)ttn_rng_next_below(&r, MOST_PIECE);
            if (piece > BYTES - at) piece = BYTES - at;
            ttn_hash_update(h, byte + at, piece);
            at += piece;
        }
        assert_hash(ttn_hash_final(h), whole);
        ttn_hash_destroy(h);
    }
}

/* final is a look, not an end: a writer may ask after each tensor and go on. */
static void more_may_follow_a_final(void **state)
{
    (void)state;
    uint8_t byte[1000];
    fill_as_published(byte, sizeof byte);
    ttn_error err = {0};
    ttn_hash *h;
    assert_ok(ttn_hash_create(&h, &err), &err);
    assert_hash(ttn_hash_final(h), ttn_hash128_of("", 0));
    for (size_t n = 0; n < sizeof byte; n++) {
        ttn_hash_update(h, byte + n, 1);
        assert_hash(ttn_hash_final(h), ttn_hash128_of(byte, n + 1));
    }
    ttn_hash_reset(h);
    assert_hash(ttn_hash_final(h), ttn_hash128_of("", 0));
    ttn_hash_destroy(h);
    ttn_hash_destroy(NULL);
}

static void the_hash_does_not_depend_on_alignment(void **state)
{
    (void)state;
    enum { BYTES = 2000 };
    uint8_t byte[BYTES];
    fill_as_published(byte, BYTES);
    _Alignas(64) uint8_t moved[BYTES + 64];
    static const size_t length[] = {1, 5, 16, 100, 200, 300, BYTES};
    for (size_t l = 0; l < sizeof length / sizeof *length; l++)
        for (size_t shift = 0; shift < 64; shift++) {
            memcpy(moved + shift, byte, length[l]);
            assert_true(ttn_hash64(moved + shift, length[l], 7) == ttn_hash64(byte, length[l], 7));
            assert_hash(ttn_hash128_of(moved + shift, length[l]), ttn_hash128_of(byte, length[l]));
        }
}

static void a_hash_is_read_as_it_was_printed(void **state)
{
    (void)state;
    ttn_hash128 hash = {.high = 0x0123456789ABCDEF, .low = 0x00000000000000F0};
    char text[TTN_HASH_TEXT];
    assert_string_equal(ttn_hash_print(hash, text), "0123456789abcdef00000000000000f0");
    ttn_hash128 again;
    assert_true(ttn_hash_parse(text, &again));
    assert_hash(again, hash);
    assert_true(ttn_hash_parse("0123456789ABCDEF00000000000000F0", &again));
    assert_hash(again, hash);

    static const char *const wrong[] = {
        "",
        "0123456789abcdef00000000000000f",
        "0123456789abcdef00000000000000f00",
        "0123456789abcdef0000000000000 f0",
        "0x23456789abcdef00000000000000f0",
        "0123456789abcdeg00000000000000f0",
        "-123456789abcdef00000000000000f0",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ttn_hash128 untouched = hash;
        assert_false(ttn_hash_parse(wrong[i], &untouched));
        assert_hash(untouched, hash);
    }
}

static void without_memory_there_is_a_status_and_no_state(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_hash *h = (ttn_hash *)&err;
    shim_arm(SHIM_ALLOC, 1, SHIM_FAIL, ENOMEM, 0);
    ttn_status status = ttn_hash_create(&h, &err);
    assert_int_equal(shim_disarm(), 1);
    assert_fails(status, TTN_ENOMEM, &err, "no memory");
    assert_null(h);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_of_64_bits_are_the_published_ones),
        cmocka_unit_test(hashes_of_128_bits_are_the_published_ones),
        cmocka_unit_test(every_bit_of_the_seed_counts),
        cmocka_unit_test(every_bit_of_the_data_counts),
        cmocka_unit_test(pieces_hash_as_the_whole_wherever_a_short_text_is_cut),
        cmocka_unit_test(pieces_hash_as_the_whole_wherever_a_long_text_is_cut),
        cmocka_unit_test(more_may_follow_a_final),
        cmocka_unit_test(the_hash_does_not_depend_on_alignment),
        cmocka_unit_test(a_hash_is_read_as_it_was_printed),
        cmocka_unit_test(without_memory_there_is_a_status_and_no_state),
    };
    return ttn_test_run(tests);
}
