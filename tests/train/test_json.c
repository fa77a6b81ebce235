/* JSON: what is refused, with which sentence and place; what is read; what is written reads back to the bit. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/bits.h"
#include "core/philox.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"
#include "train/files/json.h"
#include "train/files/json_scan.h"

static ttn_status parse(const char *text, ttn_json **ret, ttn_error *err)
{
    *err = (ttn_error){0};
    return ttn_json_parse("it.json", text, strlen(text), NULL, ret, err);
}

static const char *put_file(const char *name, const char *bytes, size_t n)
{
    static char path[4200];
    snprintf(path, sizeof path, "%s/%s", ttn_test_folder(), name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    return path;
}

/* ---- what is refused ---- */

static void what_is_not_json_is_refused_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "it.json:1:1: a value is expected, and the text ends here"},
        {" \n ", "it.json:2:2: a value is expected, and the text ends here"},
        {"{", "it.json:1:2: a key in quotes, or } is expected, and the text ends here"},
        {"{\"a\" 1}", "it.json:1:6: a colon is expected, and this stands here: 1}"},
        {"{\"a\": 1,}", "it.json:1:9: a key in quotes is expected, and this stands here: }"},
        {"[1,]", "it.json:1:4: a value is expected, and this stands here: ]"},
        {"[1 2]", "it.json:1:4: a comma or ] is expected, and this stands here: 2]"},
        {"{\"a\":1 \"b\":2}", "it.json:1:8: a comma or } is expected, and this stands here: \"b\":2}"},
        {"[1}", "it.json:1:3: a comma or ] is expected"},
        {"{'a':1}", "it.json:1:2: a key in quotes, or } is expected, and this stands here: 'a':1}"},
        {"{a:1}", "a key in quotes, or } is expected, and this stands here: a:1}"},
        {"[] []", "it.json:1:4: nothing more is expected, and this stands here: []"},
        {"[]x", "it.json:1:3: nothing more is expected"},
        {"\xEF\xBB\xBF{}", "it.json:1:1: begins with a byte order mark"},
        {"[NaN]", "it.json:1:2: a value is expected, and NaN and Infinity are no numbers of JSON"},
        {"[Infinity]", "NaN and Infinity are no numbers of JSON"},
        {"[-Infinity]", "NaN and Infinity are no numbers of JSON"},
        {"[nul]", "it.json:1:2: a value is expected, and this stands here: nul]"},
        {"[True]", "a value is expected, and this stands here: True]"},
        {"[01]", "it.json:1:2: a number begins with 0 and goes on"},
        {"[-01]", "a number begins with 0 and goes on"},
        {"[+1]", "a value is expected, and this stands here: +1]"},
        {"[.5]", "a value is expected"},
        {"[1.]", "a number has a point and no digit behind it"},
        {"[1e]", "a number has an e and no digit behind it"},
        {"[1e+]", "a number has an e and no digit behind it"},
        {"[-]", "a number is expected"},
        {"[0x10]", "a comma or ] is expected, and this stands here: x10]"},
        {"[9223372036854775808]", "it.json:1:2: an integer beyond 64 bits"},
        {"[-9223372036854775809]", "it.json:1:2: an integer beyond 64 bits"},
        {"[18446744073709551616]", "an integer beyond 64 bits"},
        {"[\n  1e400]", "real number overflow"},
        {"[\"a]", "it.json:1:2: the text that begins here has no closing quote"},
        {"[\"a\nb\"]", "it.json:1:4: a text holds the control character 0x0a; write it as \\u000a"},
        {"[\"\\x\"]", "it.json:1:3: a backslash must begin one of"},
        {"[\"\\u12g4\"]", "a backslash must begin one of"},
        {"[\"\\u0000\"]", "of a character other than U+0000"},
        {"[\"\\ud800\"]", "a backslash must begin one of"},
        {"[\"\\ud800\\u0041\"]", "a backslash must begin one of"},
        {"[\"\\udc00\"]", "a backslash must begin one of"},
        {"[\"\\", "a backslash must begin one of"},
        {"[\"\xff\"]", "it.json:1:3: the byte 0xff is not part of UTF-8"},
        {"[\"\xC0\x80\"]", "the byte 0xc0 is not part of UTF-8"},
        {"[\"\xC3\"]", "the byte 0xc3 is not part of UTF-8"},
        {"[\"\xE0\x80\x80\"]", "the byte 0xe0 is not part of UTF-8"},
        {"[\"\xED\xA0\x80\"]", "the byte 0xed is not part of UTF-8"},
        {"[\"\xF4\x90\x80\x80\"]", "the byte 0xf4 is not part of UTF-8"},
        {"[\"\xF5\x80\x80\x80\"]", "the byte 0xf5 is not part of UTF-8"},
        {"[\"\xE2\x82\"]", "the byte 0xe2 is not part of UTF-8"},
        {"[1] // why", "nothing more is expected"},
        {"{\n  \"a\": 1,\n  \"b\": 2,\n  \"a\": 3}", "it.json:4:3: the key 'a' stands twice in one object"},
        {"{\"x\":{\"a\":1,\"\\u0061\":2}}", "the key '\\u0061' stands twice in one object"},
        {"[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", "it.json:1:17: objects and arrays lie more than 16 deep"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ttn_json *j;
        ttn_error err;
        ttn_status status = parse(cases[i].text, &j, &err);
        if (status != TTN_EFORMAT) print_error("of %s\n", cases[i].text);
        assert_fails(status, TTN_EFORMAT, &err, cases[i].words);
        assert_null(j);
    }
}

static void a_key_may_stand_once_in_each_object(void **state)
{
    (void)state;
    ttn_json *j;
    ttn_error err;
    assert_fails(parse("{\"a\": 1, \"b\": {}, \"a\": 1}", &j, &err), TTN_EFORMAT, &err,
                 "it.json:1:19: the key 'a' stands twice in one object");
    assert_ok(parse("{\"a\": {\"a\": 1}, \"b\": [{\"a\": 1}, {\"a\": 2}]}", &j, &err), &err);
    ttn_json_close(j);
}

static void a_nul_byte_is_named(void **state)
{
    (void)state;
    ttn_json *j;
    ttn_error err = {0};
    assert_fails(ttn_json_parse("it.json", "{}\0\0", 4, NULL, &j, &err), TTN_EFORMAT, &err,
                 "nothing more is expected, and a NUL byte stands here; JSON may be padded with spaces only");
}

static void caps_on_size_and_depth_are_the_callers(void **state)
{
    (void)state;
    ttn_json *j;
    ttn_json_rules rules = {.most_bytes = 9, .most_depth = 2, .failure = TTN_ECHECKPOINT};
    ttn_error err = {0};
    assert_ok(ttn_json_parse("it", "[[1],[2]]", 9, &rules, &j, &err), &err);
    ttn_json_close(j);
    assert_fails(ttn_json_parse("it", "[[1],[2]] ", 10, &rules, &j, &err), TTN_ECHECKPOINT, &err,
                 "it: has 10 bytes, and a document of this kind has at most 9");
    err = (ttn_error){0};
    assert_fails(ttn_json_parse("it", "[[[1]]]", 7, &rules, &j, &err), TTN_ECHECKPOINT, &err,
                 "it:1:3: objects and arrays lie more than 2 deep");
    char deep[2 * TTN_JSON_MAX_DEPTH];
    memset(deep, '[', TTN_JSON_MAX_DEPTH);
    memset(deep + TTN_JSON_MAX_DEPTH, ']', TTN_JSON_MAX_DEPTH);
    rules = (ttn_json_rules){.most_depth = TTN_JSON_MAX_DEPTH};
    err = (ttn_error){0};
    assert_ok(ttn_json_parse("it", deep, sizeof deep, &rules, &j, &err), &err);
    ttn_json_close(j);
}

/* ---- what is read ---- */

static const char document[] = "{\n"
                               "  \"whole\": -9223372036854775808,\n"
                               "  \"real\": 0.1, \"big\": 9007199254740993,\n"
                               "  \"text\": \"a\\u00e9\\ud83d\\ude00\\n\\/\", \"yes\": true, \"no\": false,\n"
                               "  \"none\": null,\n"
                               "  \"inner\": {\"list\": [1, \"x\", {\"k\": 2.0}]}\n"
                               "}\n";

static void values_are_what_was_written(void **state)
{
    (void)state;
    ttn_json *j;
    ttn_error err;
    assert_ok(parse(document, &j, &err), &err);
    const json_t *root = ttn_json_root(j), *inner, *list, *item;
    int64_t whole;
    double real_value;
    const char *text;
    int flag;
    assert_ok(ttn_json_integer(j, root, "whole", INT64_MIN, INT64_MAX, &whole, &err), &err);
    assert_true(whole == INT64_MIN);
    assert_ok(ttn_json_real(j, root, "real", &real_value, &err), &err);
    assert_true(real_value == 0.1);
    assert_ok(ttn_json_real(j, root, "big", &real_value, &err), &err);
    assert_true(real_value == 9007199254740992.0);
    assert_ok(ttn_json_text(j, root, "text", &text, &err), &err);
    assert_string_equal(text, "a\xC3\xA9\xF0\x9F\x98\x80\n/");
    assert_ok(ttn_json_bool(j, root, "yes", &flag, &err), &err);
    assert_int_equal(flag, 1);
    assert_ok(ttn_json_bool(j, root, "no", &flag, &err), &err);
    assert_int_equal(flag, 0);
    assert_ok(ttn_json_object(j, root, "inner", &inner, &err), &err);
    assert_ok(ttn_json_array(j, inner, "list", &list, &err), &err);
    assert_ok(ttn_json_item(j, list, 1, JSON_STRING, &item, &err), &err);
    assert_string_equal(json_string_value(item), "x");
    ttn_json_close(j);
}

/* One failure of each kind, at the place of the value and not of something else. */
static void a_wrong_value_is_named_with_its_line_and_column(void **state)
{
    (void)state;
    ttn_json *j;
    ttn_error err;
    assert_ok(parse(document, &j, &err), &err);
    const json_t *root = ttn_json_root(j), *inner = json_object_get(root, "inner");
    const json_t *list = json_object_get(inner, "list"), *in_list = json_array_get(list, 2), *item;
    int64_t whole;
    int flag;
    const char *text;
    double number;
#define WRONG(call, words)                            \
    do {                                              \
        err = (ttn_error){0};                         \
        assert_fails(call, TTN_EFORMAT, &err, words); \
    } while (0)
    WRONG(ttn_json_integer(j, root, "missing", 0, 9, &whole, &err),
          "it.json:1:1: the key 'missing' is missing in the object that begins here");
    WRONG(ttn_json_integer(j, in_list, "missing", 0, 9, &whole, &err), "it.json:6:30: the key 'missing'");
    WRONG(ttn_json_integer(j, in_list, "k", 0, 9, &whole, &err),
          "it.json:6:36: 'k' should be an integer, not a number with a fraction or an exponent");
    WRONG(ttn_json_integer(j, root, "whole", 0, 9, &whole, &err),
          "it.json:2:12: 'whole' is -9223372036854775808, and should be from 0 to 9");
    WRONG(ttn_json_bool(j, root, "none", &flag, &err), "it.json:5:11: 'none' should be true or false, not null");
    WRONG(ttn_json_text(j, root, "no", &text, &err), "it.json:4:57: 'no' should be a text, not false");
    WRONG(ttn_json_real(j, root, "text", &number, &err), "it.json:4:11: 'text' should be a number, not a text");
    WRONG(ttn_json_object(j, inner, "list", &item, &err), "it.json:6:21: 'list' should be an object, not an array");
    WRONG(ttn_json_item(j, list, 0, JSON_STRING, &item, &err),
          "it.json:6:21: item 1 of the array that begins here should be a text, not an integer");
    WRONG(ttn_json_item(j, list, 3, JSON_STRING, &item, &err), "has 3 items, at least 4 are expected");
    static const char *const known[] = {"list", "other"};
    err = (ttn_error){0};
    assert_ok(ttn_json_only(j, inner, known, 2, &err), &err);
    WRONG(ttn_json_only(j, root, known, 2, &err), "it.json:2:12: the key 'whole' is none that is known");
    WRONG(ttn_json_text(j, list, "x", &text, &err), "it.json:6:21: 'x' is looked for here, and this is an array");
#undef WRONG
    ttn_json_close(j);
}

/* ---- what is written ---- */

static uint64_t random_bits(uint64_t i)
{
    uint32_t word[4];
    ttn_philox_at(ttn_test_seed(), 0, i, word);
    return (uint64_t)word[0] << 32 | word[1];
}

static void numbers_and_texts_read_back_to_the_bit(void **state)
{
    (void)state;
    int64_t n = ttn_scaled(4000, 100);
    json_t *root = json_object(), *reals = json_array(), *whole = json_array();
    double edges[] = {0.0, -0.0, 0.1, 1.0 / 3, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 1e22, 1e23, -1};
    const int64_t n_edge = sizeof edges / sizeof *edges;
    double *value = malloc((size_t)n * sizeof *value);
    assert_non_null(value);
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = random_bits((uint64_t)i);
        value[i] = i < n_edge ? edges[i] : ttn_f64_of_bits(bits);
        if (!isfinite(value[i])) value[i] = (double)bits;
        json_array_append_new(reals, json_real(value[i]));
        json_array_append_new(whole, json_integer((json_int_t)bits));
    }
    json_object_set_new(root, "reals", reals);
    json_object_set_new(root, "whole", whole);
    json_object_set_new(root, "text", json_string("quote \" back \\ tab \t \xC3\xA9 \xF0\x9F\x98\x80"));

    char path[4200];
    snprintf(path, sizeof path, "%s/out.json", ttn_test_folder());
    ttn_error err = {0};
    assert_ok(ttn_json_write(path, root, &err), &err);
    ttn_json *j;
    assert_ok(ttn_json_read(path, NULL, &j, &err), &err);
    const json_t *again = ttn_json_root(j);
    for (int64_t i = 0; i < n; i++) {
        const json_t *r = json_array_get(json_object_get(again, "reals"), (size_t)i);
        const json_t *w = json_array_get(json_object_get(again, "whole"), (size_t)i);
        assert_true(json_is_real(r) && json_is_integer(w));
        assert_true(ttn_f64_bits(json_real_value(r)) == ttn_f64_bits(value[i]));
        assert_true((uint64_t)json_integer_value(w) == random_bits((uint64_t)i));
    }
    assert_string_equal(json_string_value(json_object_get(again, "text")),
                        "quote \" back \\ tab \t \xC3\xA9 \xF0\x9F\x98\x80");
    ttn_json_close(j);
    json_decref(root);
    free(value);
}

static ttn_status refuse(void *ctx, const char *bytes, size_t n, ttn_error *err)
{
    (void)bytes;
    int64_t *left = ctx;
    *left -= (int64_t)n;
    return *left < 0 ? TTN_FAIL(err, TTN_EIO, "enough") : TTN_OK;
}

static void a_failure_of_the_taker_is_the_writers(void **state)
{
    (void)state;
    json_t *root = json_pack("{s:[i,i,i]}", "a", 1, 2, 3);
    for (int64_t room = 0; room < 20; room++) {
        int64_t left = room;
        ttn_error err = {0};
        assert_fails(ttn_json_dump(root, refuse, &left, &err), TTN_EIO, &err, "enough");
    }
    json_decref(root);
}

/* ---- the scanner ---- */

/* jansson alone is the judge of syntax: 1, 0, or -1 for a real beyond double, which the scanner leaves to it. */
static int jansson_takes(const char *bytes, size_t n)
{
    json_error_t error;
    json_t *root = json_loadb(bytes, n, JSON_DECODE_ANY, &error);
    json_decref(root);
    if (root) return 1;
    return json_error_code(&error) == json_error_numeric_overflow && strstr(error.text, "real") ? -1 : 0;
}

static int scanner_takes(const char *bytes, size_t n)
{
    ttn_json_scan s = {.file = "it", .bytes = bytes, .n = n, .most_depth = TTN_JSON_MAX_DEPTH, .failure = TTN_EFORMAT};
    do {
        if (ttn_json_next(&s, NULL) != TTN_OK) return 0;
    } while (s.token != TTN_JSON_END);
    return 1;
}

static void scanner_and_jansson_take_the_same_documents(void **state)
{
    (void)state;
    static const char alphabet[] = "{}[]:,\"\\ 0123456789-+.eEtrufalsn\xC3\xA9\xED\xA0\x80\x01/";
    char bytes[sizeof document];
    int64_t n_taken = 0, n_tried = ttn_scaled(60000, 6000);
    for (int64_t i = 0; i < n_tried; i++) {
        memcpy(bytes, document, sizeof document);
        size_t n = sizeof document - 1;
        for (uint64_t edit = 0; edit <= random_bits((uint64_t)i) % 3; edit++) {
            uint64_t r = random_bits((uint64_t)i * 8 + edit + 1);
            bytes[r % n] = alphabet[(r >> 32) % (sizeof alphabet - 1)];
        }
        int taken = scanner_takes(bytes, n);
        n_taken += taken;
        int expected = jansson_takes(bytes, n);
        if (expected >= 0 && taken != expected) fail_msg("scanner: %d, of %.*s", taken, (int)n, bytes);
    }
    assert_true(n_taken > n_tried / 20 && n_taken < n_tried);
}

static void a_value_is_passed_over_with_all_that_is_in_it(void **state)
{
    (void)state;
    static const char text[] = "{\"a\": {\"b\": [1, {\"c\": []}]}, \"d\": 5}";
    ttn_json_scan s = {.file = "it", .bytes = text, .n = sizeof text - 1, .most_depth = 8, .failure = TTN_EFORMAT};
    ttn_error err = {0};
    for (int i = 0; i < 3; i++) /* { "a" { */
        assert_ok(ttn_json_next(&s, &err), &err);
    assert_ok(ttn_json_skip(&s, &err), &err);
    assert_int_equal(s.token, TTN_JSON_OBJECT_END);
    assert_int_equal(s.depth, 1);
    assert_ok(ttn_json_next(&s, &err), &err);
    char key[8];
    assert_int_equal(ttn_json_decode(&s, key), 1);
    assert_string_equal(key, "d");
}

/* ---- what the system does ---- */

static void without_memory_it_says_so(void **state)
{
    (void)state;
    const char *path = put_file("memory.json", document, sizeof document - 1);
    int64_t n = 1;
    for (;; n++) {
        ttn_json *j;
        ttn_error err = {0};
        shim_arm(SHIM_ALLOC, n, SHIM_FAIL, ENOMEM, 0);
        ttn_status status = ttn_json_read(path, NULL, &j, &err);
        int hit = shim_was_hit();
        shim_disarm();
        ttn_json_close(j);
        if (!hit) break;
        assert_int_equal(status, TTN_ENOMEM);
        assert_int_equal(err.status, TTN_ENOMEM);
    }
    assert_true(n > 3);
}

static void a_file_that_is_none_is_refused(void **state)
{
    (void)state;
    ttn_json *j;
    ttn_error err = {0};
    assert_fails(ttn_json_read("/nowhere/x.json", NULL, &j, &err), TTN_EINVAL, &err, "No such file");
    err = (ttn_error){0};
    assert_fails(ttn_json_read("/", NULL, &j, &err), TTN_EINVAL, &err, "is a folder");
    err = (ttn_error){0};
    assert_fails(ttn_json_read("/dev/null", NULL, &j, &err), TTN_EINVAL, &err, "pipe, socket or device");
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_json_is_refused_with_its_place),
        cmocka_unit_test(a_key_may_stand_once_in_each_object),
        cmocka_unit_test(a_nul_byte_is_named),
        cmocka_unit_test(caps_on_size_and_depth_are_the_callers),
        cmocka_unit_test(values_are_what_was_written),
        cmocka_unit_test(a_wrong_value_is_named_with_its_line_and_column),
        cmocka_unit_test(numbers_and_texts_read_back_to_the_bit),
        cmocka_unit_test(a_failure_of_the_taker_is_the_writers),
        cmocka_unit_test(scanner_and_jansson_take_the_same_documents),
        cmocka_unit_test(a_value_is_passed_over_with_all_that_is_in_it),
        cmocka_unit_test(without_memory_it_says_so),
        cmocka_unit_test(a_file_that_is_none_is_refused),
    };
    return ttn_test_run(tests);
}
