/* Numbers as people write them, and back. The corpus of configurations (tests/train/make_configs.sh) has what is refused,
 * sentence by sentence; here is what is exact. */
#include <float.h>
#include <locale.h>
#include <string.h>
#include "core/number.h"
#include "core/rng.h"
#include "tests/harness/test.h"

static int64_t integer(const char *text, ttn_number_unit unit)
{
    ttn_error err = {0};
    int64_t value = 0;
    assert_ok(ttn_number_integer(text, unit, &value, &err), &err);
    return value;
}

static double real_of(const char *text, ttn_number_unit unit)
{
    ttn_error err = {0};
    double value = 0;
    assert_ok(ttn_number_real(text, unit, &value, &err), &err);
    return value;
}

static void units_are_what_they_are_called(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t count, bytes; /* 0: refused */
    } rows[] = {
        {"3k", 3000, 3000},
        {"3M", 3000000, 3000000},
        {"3G", 3000000000, 3000000000},
        {"3T", 3000000000000, 3000000000000},
        {"3B", 0, 3},
        {"3kB", 0, 3000},
        {"3MB", 0, 3000000},
        {"3GB", 0, 3000000000},
        {"3TB", 0, 3000000000000},
        {"3Ki", 0, 3072},
        {"3KiB", 0, 3072},
        {"3Mi", 0, 3145728},
        {"3MiB", 0, 3145728},
        {"3Gi", 0, 3221225472},
        {"3GiB", 0, 3221225472},
        {"3Ti", 0, 3298534883328},
        {"3TiB", 0, 3298534883328},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t value = 0;
        double number = 0;
        assert_int_equal(ttn_number_integer(rows[i].text, TTN_UNIT_COUNT, &value, NULL) == TTN_OK, rows[i].count != 0);
        assert_int_equal(value, rows[i].count);
        assert_int_equal(ttn_number_real(rows[i].text, TTN_UNIT_COUNT, &number, NULL) == TTN_OK, rows[i].count != 0);
        assert_true(number == (double)rows[i].count);
        assert_int_equal(integer(rows[i].text, TTN_UNIT_BYTES), rows[i].bytes);
    }
    static const struct {
        const char *text;
        double seconds;
    } times[] = {{"2d", 172800}, {"2h", 7200}, {"2min", 120},  {"2m", 120},
                 {"2s", 2},      {"2", 2},     {"2ms", 0.002}, {"1d1h1m1s1ms", 90061.001}};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        assert_true(real_of(times[i].text, TTN_UNIT_SECONDS) == times[i].seconds);
}

static void integers_are_exact_to_their_limits(void **state)
{
    (void)state;
    assert_int_equal(integer("9223372036854775807", TTN_UNIT_COUNT), INT64_MAX);
    assert_int_equal(integer("-9223372036854775808", TTN_UNIT_COUNT), INT64_MIN);
    assert_int_equal(integer("9223372036854775.807k", TTN_UNIT_COUNT), INT64_MAX);
    assert_int_equal(integer("9007199254740993", TTN_UNIT_COUNT), 9007199254740993); /* 2^53 + 1: no double */
    assert_int_equal(integer("8388607TiB", TTN_UNIT_BYTES), INT64_C(8388607) << 40);
    assert_int_equal(integer("0.0009765625MiB", TTN_UNIT_BYTES), 1024);
    assert_int_equal(integer("0e99999", TTN_UNIT_COUNT), 0);
    ttn_error err = {0};
    int64_t value = 5;
    assert_fails(ttn_number_integer("8388608TiB", TTN_UNIT_BYTES, &value, &err), TTN_EINVAL, &err, "does not fit");
    assert_int_equal(value, 5);
    for (const char *const *text =
             (const char *const[]){"1e99999999999999999999", "1e-99999999999999999999", "-1e19", NULL};
         *text; text++)
        assert_int_equal(ttn_number_integer(*text, TTN_UNIT_COUNT, &value, NULL), TTN_EINVAL);
}

static void reals_are_those_of_the_language(void **state)
{
    (void)state;
    /* the compiler reads the same literals */
    assert_true(real_of("0.1", TTN_UNIT_COUNT) == 0.1);
    assert_true(real_of("2.2250738585072011e-308", TTN_UNIT_COUNT) == 2.2250738585072011e-308);
    assert_true(real_of("123456789012345678901234567890", TTN_UNIT_COUNT) == 123456789012345678901234567890.0);
    assert_true(real_of("0.3k", TTN_UNIT_COUNT) == 300.0);
    assert_true(real_of("1.1h", TTN_UNIT_SECONDS) == 3960.0); /* 1.1 * 3600 in double is more */
    assert_true(real_of("1.7976931348623157e308", TTN_UNIT_COUNT) == DBL_MAX);
    double value = 5;
    assert_int_equal(ttn_number_real("1.8e308", TTN_UNIT_COUNT, &value, NULL), TTN_EINVAL);
    assert_int_equal(ttn_number_real("1e308T", TTN_UNIT_COUNT, &value, NULL), TTN_EINVAL);
    assert_true(value == 5);
}

static void texts_read_back_to_the_bit(void **state)
{
    (void)state;
    char text[TTN_NUMBER_TEXT];
    ttn_rng rng = {.key = ttn_test_seed()};
    const int64_t n = ttn_scaled(20000, 500);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t bits = ttn_rng_next(&rng);
        double x, back;
        memcpy(&x, &bits, sizeof x);
        const int64_t whole = (int64_t)(bits >> (bits & 63));
        if (x - x == 0) { /* finite */
            back = real_of(ttn_number_real_text(x, TTN_UNIT_COUNT, text), TTN_UNIT_COUNT);
            assert_same_bits(&back, &x, sizeof x);
            const double positive = x < 0 ? -x : x;
            back = real_of(ttn_number_real_text(positive, TTN_UNIT_SECONDS, text), TTN_UNIT_SECONDS);
            assert_same_bits(&back, &positive, sizeof x);
        }
        assert_int_equal(integer(ttn_number_integer_text(whole, TTN_UNIT_COUNT, text), TTN_UNIT_COUNT), whole);
        const int64_t size = whole < 0 ? -(whole + 1) : whole;
        assert_int_equal(integer(ttn_number_integer_text(size, TTN_UNIT_BYTES, text), TTN_UNIT_BYTES), size);
        const double seconds = (double)(bits % 10000000);
        assert_true(real_of(ttn_number_real_text(seconds, TTN_UNIT_SECONDS, text), TTN_UNIT_SECONDS) == seconds);
    }
}

static void texts_are_short(void **state)
{
    (void)state;
    char text[TTN_NUMBER_TEXT];
    assert_string_equal(ttn_number_real_text(3e-4, TTN_UNIT_COUNT, text), "0.0003");
    assert_string_equal(ttn_number_real_text(1e-5, TTN_UNIT_COUNT, text), "1e-5");
    assert_string_equal(ttn_number_real_text(-1000, TTN_UNIT_COUNT, text), "-1000");
    assert_string_equal(ttn_number_real_text(1e22, TTN_UNIT_COUNT, text), "1e22");
    assert_string_equal(ttn_number_real_text(0.1 + 0.2, TTN_UNIT_COUNT, text), "0.30000000000000004");
    assert_string_equal(ttn_number_real_text(-DBL_MAX, TTN_UNIT_COUNT, text), "-1.7976931348623157e308");
    assert_string_equal(ttn_number_real_text(5400, TTN_UNIT_SECONDS, text), "90m");
    assert_string_equal(ttn_number_real_text(0, TTN_UNIT_SECONDS, text), "0s");
    assert_string_equal(ttn_number_integer_text(INT64_C(3) << 30, TTN_UNIT_BYTES, text), "3GiB");
    assert_string_equal(ttn_number_integer_text(64000, TTN_UNIT_BYTES, text), "64kB");
    assert_string_equal(ttn_number_integer_text(0, TTN_UNIT_BYTES, text), "0");
}

/* A point of several bytes exists in no locale of Debian's, a comma in many. */
static void the_locale_does_not_matter(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "pt_BR.UTF-8"};
    const char *set = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !set; i++)
        set = setlocale(LC_NUMERIC, names[i]);
    if (!set) skip_because("no locale with a decimal comma is installed");
    char text[TTN_NUMBER_TEXT];
    const double value = real_of("0.5", TTN_UNIT_COUNT);
    ttn_number_real_text(0.25, TTN_UNIT_COUNT, text);
    setlocale(LC_NUMERIC, "C");
    assert_true(value == 0.5);
    assert_string_equal(text, "0.25");
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_are_what_they_are_called),
        cmocka_unit_test(integers_are_exact_to_their_limits),
        cmocka_unit_test(reals_are_those_of_the_language),
        cmocka_unit_test(texts_read_back_to_the_bit),
        cmocka_unit_test(texts_are_short),
        cmocka_unit_test(the_locale_does_not_matter),
    };
    return ttn_test_run(tests);
}
