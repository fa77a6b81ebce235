/* What is a character of UTF-8. How texts are cut and shown is in test_status. */
#include <string.h>
#include "core/text.h"
#include "tests/harness/test.h"

/* The bytes of a character, written from the table of RFC 3629, section 3; returns how many. */
static size_t write_character(uint32_t code, char *to)
{
    static const struct {
        uint32_t last, lead;
        size_t n;
    } forms[] = {{0x7F, 0x00, 1}, {0x7FF, 0xC0, 2}, {0xFFFF, 0xE0, 3}, {0x10FFFF, 0xF0, 4}};
    size_t form = 0;
    while (code > forms[form].last)
        form++;
    const size_t n = forms[form].n;
    for (size_t i = n - 1; i > 0; i--) {
        to[i] = (char)(0x80 + code % 64);
        code /= 64;
    }
    to[0] = (char)(forms[form].lead + code);
    return n;
}

static int is_surrogate(uint32_t code)
{
    return code >= 0xD800 && code <= 0xDFFF;
}

static void every_character_is_read_as_itself_and_none_of_it_without_its_last_byte(void **state)
{
    (void)state;
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        char text[5] = "";
        const size_t n = write_character(code, text);
        uint32_t got = 0xBAD;
        const int length = ttn_text_character(text, n, &got);
        if (is_surrogate(code) ? length != 0 || got != 0xBAD : length != (int)n || got != code)
            fail_msg("U+%04X: length %d, code U+%04X", (unsigned)code, length, (unsigned)got);
        /* Cut by its end, and by something else in the place of its last byte; with more behind it. */
        if (n > 1 && (ttn_text_character(text, n - 1, NULL) != 0 || !ttn_text_is_continuation(text[n - 1])))
            fail_msg("U+%04X: taken without its last byte", (unsigned)code);
        text[n] = 'x';
        if (ttn_text_character(text, n + 1, NULL) != length) fail_msg("U+%04X: with more behind it", (unsigned)code);
        text[n - 1] = 'x';
        if (n > 1 && ttn_text_character(text, n, NULL) != 0) fail_msg("U+%04X: its last byte is x", (unsigned)code);
    }
}

/* Together with the above: what is accepted is exactly Unicode. */
static void as_many_texts_are_characters_as_unicode_has(void **state)
{
    (void)state;
    int64_t count[5] = {0};
    for (uint32_t bytes = 0; bytes < 1u << 24; bytes++) {
        const char text[3] = {(char)(bytes >> 16), (char)(bytes >> 8), (char)bytes};
        count[ttn_text_character(text, 3, NULL)]++;
    }
    assert_int_equal(count[1], 128 << 16);
    assert_int_equal(count[2], (0x800 - 0x80) << 8);
    assert_int_equal(count[3], 0x10000 - 0x800 - 0x800);
    assert_int_equal(count[4], 0);

    /* Of four bytes, the first two and some of the others: the borders of what continues a character. */
    static const unsigned char rest[] = {0x00, 0x7F, 0x80, 0x9A, 0xBF, 0xC0, 0xFF};
    int64_t whole = 0;
    for (int first = 0; first < 256; first++)
        for (int second = 0; second < 256; second++)
            for (size_t i = 0; i < sizeof rest; i++)
                for (size_t k = 0; k < sizeof rest; k++) {
                    const char text[4] = {(char)first, (char)second, (char)rest[i], (char)rest[k]};
                    whole += ttn_text_character(text, 4, NULL) == 4;
                }
    assert_int_equal(whole, (0x10FFFF - 0xFFFF) / 4096 * 3 * 3);
}

static void what_is_no_character_is_told_by_its_first_bytes(void **state)
{
    (void)state;
    static const char *const none[] = {
        "\x80",
        "\xBF",
        "\xC0\x80",
        "\xC1\xBF",
        "\xE0\x80\x80",
        "\xE0\x9F\xBF",
        "\xED\xA0\x80",
        "\xED\xBF\xBF",
        "\xF0\x80\x80\x80",
        "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80",
        "\xF8\x88\x80\x80",
        "\xFE",
        "\xFF",
        "\xC3",
        "\xC3(",
        "\xE2\x82",
        "\xE2(\xA1",
        "\xF0\x9F\xA7",
    };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        uint32_t code = 7;
        if (ttn_text_character(none[i], strlen(none[i]), &code) != 0) fail_msg("number %zu is taken for one", i);
        assert_int_equal(code, 7);
    }
    assert_int_equal(ttn_text_character("\0x", 2, NULL), 1);
}

/* What goes to tables and screens: every byte that is no UTF-8 and every control character is replaced and counted. */
static void texts_are_cleaned_of_what_a_terminal_obeys(void **state)
{
    (void)state;
#define R "\xef\xbf\xbd"
    static const struct {
        const char *raw, *clean;
        int invalid, controls, first_invalid, first_control;
    } cases[] = {
        {"", "", 0, 0, 0, 0},
        {"plain ~ text", "plain ~ text", 0, 0, 0, 0},
        {"a\tb\001c", "a\tb\001c", 0, 0, 0, 0},
        {"\xc3\xa9\xe2\x88\x9e \xc2\xa0", "\xc3\xa9\xe2\x88\x9e \xc2\xa0", 0, 0, 0, 0},
        {"a\x1b[31m\x7f\n", "a" R "[31m" R R, 0, 3, 0, 1},
        {"ab\xc2\x9b"
         "1m\xc2\x80",
         "ab" R "1m" R, 0, 2, 0, 2},
        {"ab\x9b"
         "1m\xff\x1f",
         "ab" R "1m" R R, 2, 1, 2, 6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char got[64];
        const ttn_text_replaced r = ttn_text_clean(cases[i].raw, strlen(cases[i].raw), got);
        assert_string_equal(got, cases[i].clean);
        assert_int_equal(r.invalid, cases[i].invalid);
        assert_int_equal(r.controls, cases[i].controls);
        assert_int_equal(r.first_invalid, cases[i].first_invalid);
        assert_int_equal(r.first_control, cases[i].first_control);
    }
    char got[8];
    assert_int_equal(ttn_text_clean("a\0b", 3, got).controls, 1);
    assert_string_equal(got, "a" R "b");
}

static void cells_that_a_spreadsheet_computes_are_known(void **state)
{
    (void)state;
    static const char *const formulas[] = {"=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"}, *const texts[] = {"", "a=1",
                                                                                                              "1-1",
                                                                                                              "sp|P1"};
    for (size_t i = 0; i < sizeof formulas / sizeof *formulas; i++)
        assert_true(ttn_text_is_formula(formulas[i]));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_false(ttn_text_is_formula(texts[i]));
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_character_is_read_as_itself_and_none_of_it_without_its_last_byte),
        cmocka_unit_test(as_many_texts_are_characters_as_unicode_has),
        cmocka_unit_test(what_is_no_character_is_told_by_its_first_bytes),
        cmocka_unit_test(texts_are_cleaned_of_what_a_terminal_obeys),
        cmocka_unit_test(cells_that_a_spreadsheet_computes_are_known),
    };
    return ttn_test_run(tests);
}
