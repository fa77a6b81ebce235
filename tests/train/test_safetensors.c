/* safetensors: what the reference writes is read to the bit, what we write is what it writes, and what is malformed is
 * refused with its own sentence. tests/reference/files.py makes the golden files, and shows the malformed ones and what
 * is written here to the reference. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/half.h"
#include "core/memory.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"
#include "tests/train/stored.h"
#include "train/facts.h"
#include "train/info.h"

/* ---- files ---- */

/* Good for the next 8 calls. */
static const char *path_in(const char *folder, const char *name)
{
    static char paths[8][5000];
    static int next;
    char *path = paths[next++ % 8];
    assert_true(snprintf(path, sizeof paths[0], "%s/%s", folder, name) < (int)sizeof paths[0]);
    return path;
}

static const char *in_folder(const char *name)
{
    return path_in(ttn_test_folder(), name);
}

static const char *golden_path(const char *name)
{
    return path_in("tests/reference/golden", name);
}

static void put_file(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "w");
    if (!f) fail_msg("%s: %s", path, strerror(errno));
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* The caller's to free. */
static unsigned char *get_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "r");
    if (!f) fail_msg("%s: %s", path, strerror(errno));
    unsigned char *bytes = malloc(1 << 20);
    assert_non_null(bytes);
    *n = fread(bytes, 1, 1 << 20, f);
    fclose(f);
    return bytes;
}

/* A file of that header and so many bytes of data. */
static void put_safetensors(const char *path, const char *header, int64_t n_data)
{
    size_t n = strlen(header), size = 8 + n + (size_t)n_data;
    unsigned char *bytes = calloc(size, 1);
    assert_non_null(bytes);
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(n >> (8 * i));
    memcpy(bytes + 8, header, n); /* NOLINT(bugprone-not-null-terminated-result): no text */
    put_file(path, bytes, size);
    free(bytes);
}

/* ---- the malformed corpus ---- */

enum { ANY_LENGTH = 1 };

typedef struct {
    const char *name;   /* of the file; those that begin with "ok_" are taken */
    const char *header; /* NULL: `make` makes it */
    void (*make)(char *header);
    int64_t n_data;
    uint64_t length;   /* with ANY_LENGTH: stands at the start in place of the true one */
    const char *words; /* of the sentence */
    int flags;
    int n_file; /* cut the file after so many bytes; -1: after none; 0: whole */
} malformed;

#define A(fields)               "{\"a\":{" fields "}}"
#define F32_2(from, to)         "\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[" #from "," #to "]"
#define TWO(a, b)               "{\"a\":{" a "},\"b\":{" b "}}"
#define SHAPED(type, dims, end) A("\"dtype\":\"" type "\",\"shape\":" dims ",\"data_offsets\":[0," #end "]")

static void make_rank_1000(char *header)
{
    strcpy(header, "{\"a\":{\"dtype\":\"F32\",\"shape\":[1");
    for (int i = 1; i < 1000; i++)
        strcat(header, ",1");
    strcat(header, "],\"data_offsets\":[0,4]}}");
}

static void make_named(char *header, size_t n_name)
{
    strcpy(header, "{\"");
    memset(header + 2, 'n', n_name);
    strcpy(header + 2 + n_name, "\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}");
}
static void make_name_of_a_megabyte(char *header)
{
    make_named(header, 1 << 20);
}
static void make_name_of_513(char *header)
{
    make_named(header, 513);
}
static void make_name_of_512(char *header)
{
    make_named(header, 512);
}

static void make_ten_on_one_range(char *header)
{
    strcpy(header, "{");
    for (int i = 0; i < 10; i++) {
        char one[100];
        snprintf(one, sizeof one, "%s\"t%d\":{" F32_2(0, 8) "}", i > 0 ? "," : "", i);
        strcat(header, one);
    }
    strcat(header, "}");
}

static void make_deep(char *header)
{
    strcpy(header, "{\"a\":{\"dtype\":[[[[[[[[[[]]]]]]]]]]}}");
}

static const malformed corpus[] = {
    {"empty", "", .n_file = -1, .words = "is empty, and no safetensors file"},
    {"seven_bytes", "{}", .n_file = 7, .words = "has 7 bytes, and a safetensors file begins with the 8"},
    {"length_0", "", .words = "says that its header has no byte"},
    {"length_max", "{}", .flags = ANY_LENGTH, .length = UINT64_MAX, .words = "header has 18446744073709551615 bytes"},
    {"length_2_63", "{}", .flags = ANY_LENGTH, .length = (uint64_t)1 << 63, .words = "has 9223372036854775808 bytes"},
    {"length_beyond_file", "{}", .flags = ANY_LENGTH, .length = 3,
     .words = "header has 3 bytes, and the file ends after 2"},
    {"length_too_short", "{}", .flags = ANY_LENGTH, .length = 1, .words = "or } is expected, and the text ends here"},
    {"not_utf8", "{\"\xff\":{" F32_2(0, 8) "}}", .n_data = 8, .words = "byte 2 of the header: the byte 0xff is not"},
    {"brace_only", "{", .words = "byte 1 of the header: a key in quotes, or } is expected, and the text ends here"},
    {"array_at_top", "[]", .words = "the header should be an object, not an array"},
    {"text_at_top", "\"a\"", .words = "the header should be an object, not a text"},
    {"trailing_garbage", "{}x", .words = "byte 2 of the header: nothing more is expected, and this stands here: x"},
    {"second_object", "{}{}", .words = "nothing more is expected, and this stands here: {}"},
    {"comma_at_end", A(F32_2(0, 8) ","), .n_data = 8, .words = "'a': a key in quotes is expected"},
    {"byte_order_mark", "\xEF\xBB\xBF{}", .words = "begins with a byte order mark"},
    {"name_twice", "{\"a\":{" F32_2(0, 8) "},\"a\":{" F32_2(8, 16) "}}", .n_data = 16,
     .words = "tensor 'a' stands twice, with data_offsets [0, 8) and [8, 16)"},
    {"name_twice_by_escape", "{\"a\":{" F32_2(0, 8) "},\"\\u0061\":{" F32_2(8, 16) "}}", .n_data = 16,
     .words = "tensor 'a' stands twice"},
    {"offsets_twice", A(F32_2(0, 8) ",\"data_offsets\":[0,8]"), .n_data = 8,
     .words = "'a': 'data_offsets' stands twice"},
    {"metadata_twice", "{\"__metadata__\":{},\"__metadata__\":{}}", .words = "__metadata__ stands twice"},
    {"note_twice", "{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", .words = "the key 'k' stands twice in __metadata__"},
    {"overlap", TWO(F32_2(0, 8), F32_2(4, 12)), .n_data = 12,
     .words = "tensor 'a' with data_offsets [0, 8) and 'b' with [4, 12) overlap"},
    {"ten_on_one_range", .make = make_ten_on_one_range, .n_data = 8,
     .words = "tensor 't0' with data_offsets [0, 8) and 't1' with [0, 8) overlap"},
    {"hole", TWO(F32_2(0, 8), F32_2(12, 20)), .n_data = 20,
     .words = "tensor 'a' with data_offsets [0, 8) and 'b' with [12, 20) leave bytes between them that are nobody's"},
    {"first_not_at_0", A(F32_2(4, 12)), .n_data = 12, .words = "the first tensor, 'a', has data_offsets [4, 12)"},
    {"reversed", A(F32_2(8, 0)), .n_data = 8, .words = "'a': data_offsets [8, 0) end before they begin"},
    {"beyond_file", A(F32_2(0, 8)), .n_data = 4,
     .words = "'a': data_offsets [0, 8) reach beyond the file, which has 4"},
    {"one_byte_short", A(F32_2(0, 8)), .n_data = 7, .words = "'a': data_offsets [0, 8) reach beyond the file"},
    {"extra_bytes", A(F32_2(0, 8)), .n_data = 12,
     .words = "its tensors (the last is 'a') end at byte 8 behind the "
              "header, and 12 bytes lie behind it"},
    {"no_tensor_but_bytes", "{}", .n_data = 3, .words = "its tensors end at byte 0 behind the header, and 3 bytes"},
    {"end_not_of_shape", A(F32_2(0, 12)), .n_data = 12,
     .words = "'a': F32 [2] takes 8 bytes, and data_offsets [0, 12) hold 12"},
    {"end_before_shape", A(F32_2(0, 4)), .n_data = 4, .words = "F32 [2] takes 8 bytes, and data_offsets [0, 4) hold 4"},
    {"shape_overflows_1", SHAPED("F32", "[2,18446744073709551614]", 8), .n_data = 8,
     .words = "'a': an integer beyond 64"},
    {"shape_overflows_2", SHAPED("F32", "[2,9223372036854775807]", 8), .n_data = 8,
     .words = "'a': F32 [2, 9223372036854775807] has more numbers than 64 bits count"},
    {"shape_overflows_3", SHAPED("F32", "[4294967296,4294967296]", 0), .words = "has more numbers than 64 bits count"},
    {"size_overflows", SHAPED("F64", "[2305843009213693952]", 0), .words = "has more numbers than 64 bits count"},
    {"negative_dim", SHAPED("F32", "[-2]", 8), .n_data = 8,
     .words = "'a': shape holds -2, and nothing in it may be negative"},
    {"negative_offset", A(F32_2(-8, 0)), .n_data = 8, .words = "'a': data_offsets holds -8"},
    {"float_dim", SHAPED("F32", "[2.0]", 8), .n_data = 8,
     .words = "shape holds a number with a fraction or an exponent"},
    {"exponent_dim", SHAPED("F32", "[2e0]", 8), .n_data = 8, .words = "shape holds a number with a fraction or an exp"},
    {"text_dim", SHAPED("F32", "[\"2\"]", 8), .n_data = 8, .words = "shape holds a text, and should hold integers"},
    {"null_dim", SHAPED("F32", "[null]", 8), .n_data = 8, .words = "shape holds null, and should hold integers"},
    {"true_dim", SHAPED("F32", "[true]", 4), .n_data = 4, .words = "shape holds true, and should hold integers"},
    {"nan_dim", SHAPED("F32", "[NaN]", 4), .n_data = 4, .words = "NaN and Infinity are no numbers of JSON"},
    {"null_shape", SHAPED("F32", "null", 4), .n_data = 4, .words = "'a': shape should be an array, not null"},
    {"rank_1000", .make = make_rank_1000, .n_data = 4, .words = "'a': shape has more than 16 numbers"},
    {"rank_17", SHAPED("F32", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", 4), .n_data = 4,
     .words = "shape has more than 16"},
    {"unknown_type", SHAPED("Q8", "[4]", 4), .n_data = 4, .words = "'a': dtype 'Q8' is none that safetensors has"},
    {"small_letters", SHAPED("f32", "[1]", 4), .n_data = 4, .words = "they are written in capitals"},
    {"type_is_no_text", A("\"dtype\":4,\"shape\":[1],\"data_offsets\":[0,4]"), .n_data = 4,
     .words = "'a': dtype should be a text, not an integer"},
    {"odd_f4", SHAPED("F4", "[3]", 1), .n_data = 1, .words = "'a': F4 [3] takes 12 bits, which are no whole bytes"},
    {"one_offset", A("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4]"), .n_data = 4,
     .words = "'a': data_offsets has 1 of the two numbers"},
    {"three_offsets", A("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]"), .n_data = 4,
     .words = "data_offsets has more than 2 numbers"},
    {"offset_2_63", A("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,9223372036854775808]"), .n_data = 4,
     .words = "'a': an integer beyond 64 bits"},
    {"no_dtype", A("\"shape\":[1],\"data_offsets\":[0,4]"), .n_data = 4, .words = "'a': has no dtype"},
    {"no_shape", A("\"dtype\":\"F32\",\"data_offsets\":[0,4]"), .n_data = 4, .words = "'a': has no shape"},
    {"no_offsets", A("\"dtype\":\"F32\",\"shape\":[1]"), .n_data = 4, .words = "'a': has no data_offsets"},
    {"unknown_field", A(F32_2(0, 8) ",\"strides\":[1]"), .n_data = 8,
     .words = "'a': 'strides' is no field of a tensor"},
    {"tensor_is_no_object", "{\"a\":3}", .words = "'a': what stands under a tensor's name should be an object"},
    {"number_in_metadata", "{\"__metadata__\":{\"k\":1}}",
     .words = "'__metadata__': a value should be a text, not an int"},
    {"metadata_is_a_tensor", "{\"__metadata__\":{" F32_2(0, 8) "}}", .n_data = 8,
     .words = "'__metadata__': a value should be a text, not an array"},
    {"metadata_is_null", "{\"__metadata__\":null}", .words = "__metadata__ should be an object, not null"},
    {"name_is_empty", "{\"\":{" F32_2(0, 8) "}}", .n_data = 8, .words = "the name '' is empty"},
    {"name_leaves", "{\"../../x\":{" F32_2(0, 8) "}}", .n_data = 8, .words = "the name '../../x' holds '..'"},
    {"name_leaves_at_its_end", "{\"x/..\":{" F32_2(0, 8) "}}", .n_data = 8, .words = "the name 'x/..' holds '..'"},
    {"name_with_newline", "{\"a\\nb\":{" F32_2(0, 8) "}}", .n_data = 8, .words = "holds a control character"},
    {"name_of_513", .make = make_name_of_513, .n_data = 4, .words = "has more than 512 bytes"},
    {"name_of_a_megabyte", .make = make_name_of_a_megabyte, .n_data = 4, .words = "has more than 512 bytes"},
    {"deep", .make = make_deep, .words = "'a': dtype should be a text, not an array"},
    {"pickle", "{}", .flags = ANY_LENGTH, .length = 0x0000000804034b50, .words = "it is a zip archive, as torch.save"},
    {"ok_nothing", "{}", .words = NULL},
    {"ok_scalar", SHAPED("F32", "[]", 4), .n_data = 4},
    {"ok_no_numbers", SHAPED("F32", "[0]", 0), .words = NULL},
    {"ok_no_numbers_between",
     "{\"a\":{" F32_2(0, 8) "},\"z\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[8,8]},"
                            "\"b\":{" F32_2(8, 16) "}}",
     .n_data = 16},
    {"ok_unsorted", TWO(F32_2(8, 16), F32_2(0, 8)), .n_data = 16},
    {"ok_leading_space", " \t\n\r" A(F32_2(0, 8)), .n_data = 8},
    {"ok_trailing_space", A(F32_2(0, 8)) "   ", .n_data = 8},
    {"ok_name_of_512", .make = make_name_of_512, .n_data = 4},
    {"ok_even_f4", SHAPED("F4", "[4]", 2), .n_data = 2},
    {"ok_dots_in_name", "{\"a..b\":{" F32_2(0, 8) "}}", .n_data = 8},
};
enum { N_CORPUS = sizeof corpus / sizeof *corpus, MOST_MADE = (1 << 20) + 1000 };

/* bytes (8 + MOST_MADE): the file. Returns its size. */
static size_t make_malformed(const malformed *m, unsigned char *bytes)
{
    char *header = (char *)bytes + 8;
    if (m->make)
        m->make(header);
    else
        strcpy(header, m->header);
    size_t n = strlen(header);
    uint64_t length = m->flags & ANY_LENGTH ? m->length : n;
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(length >> (8 * i));
    memset(header + n, 0, (size_t)m->n_data);
    if (m->n_file < 0) return 0;
    return m->n_file > 0 ? (size_t)m->n_file : 8 + n + (size_t)m->n_data;
}

static void each_malformed_file_is_refused_with_its_own_sentence(void **state)
{
    (void)state;
    unsigned char *bytes = malloc(8 + MOST_MADE);
    assert_non_null(bytes);
    for (int i = 0; i < N_CORPUS; i++) {
        const malformed *m = &corpus[i];
        const char *path = in_folder("malformed.safetensors");
        put_file(path, bytes, make_malformed(m, bytes));
        ttn_safetensors *s;
        ttn_error err = {0};
        ttn_status status = ttn_safetensors_open(path, NULL, &s, &err);
        if (!m->words) {
            if (status != TTN_OK) print_error("of %s\n", m->name);
            assert_ok(status, &err);
            ttn_safetensors_close(s);
            continue;
        }
        if (status != TTN_ECHECKPOINT || !strstr(err.text, m->words)) print_error("of %s\n", m->name);
        assert_fails(status, TTN_ECHECKPOINT, &err, m->words);
        assert_contains(err.text, "malformed.safetensors: ");
        assert_null(s);
    }
    free(bytes);
}

/* Padded with NUL bytes, as one published model is: their place is in the header, and the sentence says what they are. */
static void padding_with_nul_is_named(void **state)
{
    (void)state;
    unsigned char bytes[24] = {10, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
    put_file(in_folder("nul.safetensors"), bytes, 18);
    ttn_safetensors *s;
    ttn_error err = {0};
    assert_fails(ttn_safetensors_open(in_folder("nul.safetensors"), NULL, &s, &err), TTN_ECHECKPOINT, &err,
                 "byte 2 of the header: nothing more is expected, and a NUL byte stands here");
}

/* A file with a hole is as large as it says, and costs nothing. */
static void headers_are_capped_and_the_cap_can_be_raised(void **state)
{
    (void)state;
    const char *path = in_folder("large.safetensors");
    static const struct {
        uint64_t length;
        int64_t most;
        const char *words;
    } cases[] = {
        {25000001, 0, "has a header of 25000001 bytes, and at most 25000000 are read"},
        {100000001, INT64_MAX, "at most 100000000 are read"},
        {1001, 1000, "has a header of 1001 bytes, and at most 1000 are read"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file(path, &cases[i].length, 8);
        assert_int_equal(truncate(path, (off_t)cases[i].length + 100), 0);
        ttn_safetensors *s;
        ttn_error err = {0};
        ttn_safetensors_options options = {.most_header = cases[i].most};
        assert_fails(ttn_safetensors_open(path, &options, &s, &err), TTN_ECHECKPOINT, &err, cases[i].words);
    }
    static char spaces[1 << 12];
    memset(spaces, ' ', sizeof spaces - 1);
    spaces[0] = '{';
    spaces[1] = '}';
    put_safetensors(path, spaces, 0);
    ttn_safetensors *s;
    ttn_error err = {0};
    assert_ok(ttn_safetensors_open(path, &(ttn_safetensors_options){.most_header = 1 << 12}, &s, &err), &err);
    ttn_safetensors_close(s);
}

/* ---- reading ---- */

static void what_the_reference_wrote_is_read_to_the_bit(void **state)
{
    (void)state;
    ttn_safetensors *s;
    ttn_error err = {0};
    assert_ok(ttn_safetensors_open(golden_path("kinds.safetensors"), NULL, &s, &err), &err);
    assert_int_equal(ttn_safetensors_count(s), N_STORED_KIND);
    for (int k = 0; k < N_STORED_KIND; k++) {
        unsigned char expected[MOST_STORED_BYTES], got[MOST_STORED_BYTES];
        const ttn_stored_tensor *t = ttn_safetensors_find(s, stored_kinds[k].name);
        assert_non_null(t);
        assert_int_equal(t->type, stored_kinds[k].type);
        assert_int_equal(t->ndim, stored_kinds[k].ndim);
        for (int d = 0; d < t->ndim; d++)
            assert_int_equal(t->dim[d], stored_kinds[k].dim[d]);
        int64_t n = stored_bytes(k, expected);
        assert_int_equal(t->bytes, n);
        assert_int_equal(t->n, stored_n(k));
        assert_ok(ttn_safetensors_read_bytes(s, t, 0, n, got, &err), &err);
        assert_same_bits(got, expected, (size_t)n);
        for (int64_t i = 0; i < n; i++) { /* and byte by byte */
            assert_ok(ttn_safetensors_read_bytes(s, t, i, 1, got, &err), &err);
            assert_int_equal(got[0], expected[i]);
        }
    }
    assert_null(ttn_safetensors_find(s, "f"));
    assert_null(ttn_safetensors_find(s, "zzz"));
    ttn_safetensors_close(s);
}

static void notes_are_read(void **state)
{
    (void)state;
    ttn_safetensors *s;
    ttn_error err = {0};
    assert_ok(ttn_safetensors_open(golden_path("notes.safetensors"), NULL, &s, &err), &err);
    static const ttn_stored_note expected[] = {{"a", "\xC3\xA9\n\"x\""}, {"format", "pt"}, {"z", ""}};
    assert_int_equal(ttn_safetensors_note_count(s), 3);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(ttn_safetensors_note(s, i)->key, expected[i].key);
        assert_string_equal(ttn_safetensors_note(s, i)->value, expected[i].value);
    }
    ttn_safetensors_close(s);
    assert_ok(ttn_safetensors_open(golden_path("nothing.safetensors"), NULL, &s, &err), &err);
    assert_int_equal(ttn_safetensors_count(s) + ttn_safetensors_note_count(s), 0);
    ttn_safetensors_close(s);
}

/* Every kind of real number, as every kind; any part of it. */
static void numbers_are_converted_as_they_are_read(void **state)
{
    (void)state;
    static const ttn_dtype as[] = {TTN_F32, TTN_F64, TTN_F16, TTN_BF16, TTN_REAL};
    ttn_safetensors *s;
    ttn_error err = {0};
    ttn_safetensors_options options = {.allow_nonfinite = 1};
    assert_ok(ttn_safetensors_open(golden_path("kinds.safetensors"), &options, &s, &err), &err);
    for (int k = 0; k < 4; k++) {
        ttn_dtype from;
        unsigned char bytes[MOST_STORED_BYTES], expected[8 * 15], got[8 * 15];
        const ttn_stored_tensor *t = ttn_safetensors_find(s, stored_kinds[k].name);
        stored_bytes(k, bytes);
        assert_true(ttn_stored_dtype(t->type, &from));
        for (int a = 0; a < 5; a++) {
            ttn_converted sum = {0}, expected_sum = {0};
            size_t size = ttn_dtype_size(as[a]);
            ttn_convert(t->n, from, bytes, as[a], expected, &expected_sum);
            if (from == ttn_dtype_stored(as[a])) memcpy(expected, bytes, (size_t)t->bytes); /* to the bit: also NaN */
            assert_ok(ttn_safetensors_read(s, t, 0, t->n, as[a], got, &sum, &err), &err);
            assert_same_bits(got, expected, (size_t)t->n * size);
            assert_same_bits(&sum, &expected_sum, sizeof sum);
            assert_ok(ttn_safetensors_read(s, t, 1, t->n - 2, as[a], got, NULL, &err), &err);
            assert_same_bits(got, expected + size, (size_t)(t->n - 2) * size);
        }
    }
    const ttn_stored_tensor *whole = ttn_safetensors_find(s, "i64");
    double number[3];
    assert_fails(ttn_safetensors_read(s, whole, 0, 3, TTN_F64, number, NULL, &err), TTN_ECHECKPOINT, &err,
                 "tensor 'i64' is I64 [3], and titin reads F32, F16, BF16 and F64");
    ttn_safetensors_close(s);
}

static void numbers_that_are_not_finite_are_refused_unless_asked_for(void **state)
{
    (void)state;
    const char *path = in_folder("nan.safetensors");
    static const char header[] = "{\"w\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[0,20]}}";
    float value[5] = {1, 2, 3, NAN, INFINITY}, got[5];
    double wide[5];
    put_safetensors(path, header, 20);
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    fseek(f, 8 + (long)strlen(header), SEEK_SET);
    fwrite(value, sizeof value, 1, f);
    fclose(f);
    for (int allow = 0; allow < 2; allow++) {
        ttn_safetensors *s;
        ttn_error err = {0};
        ttn_safetensors_options options = {.allow_nonfinite = allow};
        assert_ok(ttn_safetensors_open(path, &options, &s, &err), &err);
        const ttn_stored_tensor *t = ttn_safetensors_at(s, 0);
        ttn_converted sum = {0};
        assert_ok(ttn_safetensors_read(s, t, 0, 3, TTN_F32, got, &sum, &err), &err);
        ttn_status status = ttn_safetensors_read(s, t, 1, 4, TTN_F32, got, &sum, &err);
        if (allow) {
            assert_ok(status, &err);
            assert_int_equal(sum.nonfinite, 2);
            assert_int_equal(sum.first_nonfinite, 5);
            assert_int_equal(sum.n, 7);
        } else {
            assert_fails(status, TTN_ENUMERIC, &err, "tensor 'w' holds NaN or infinity, first as number 3");
            err = (ttn_error){0};
            assert_fails(ttn_safetensors_read(s, t, 2, 3, TTN_F64, wide, NULL, &err), TTN_ENUMERIC, &err, "number 3");
        }
        ttn_safetensors_close(s);
    }
}

/* 10 GiB, of which the disk holds a header: only that is read. */
static void a_large_file_is_opened_by_its_header(void **state)
{
    (void)state;
    const char *path = in_folder("sparse.safetensors");
    static const char header[] = "{\"w\":{\"dtype\":\"F32\",\"shape\":[2684354560],\"data_offsets\":[0,10737418240]}}";
    put_safetensors(path, header, 0);
    if (truncate(path, 8 + (off_t)strlen(header) + 10737418240) != 0)
        skip_because("no sparse file: %s", strerror(errno));
    ttn_safetensors *s;
    ttn_error err = {0};
    shim_arm(SHIM_READ, 1000, SHIM_FAIL, EIO, 0);
    assert_ok(ttn_safetensors_open(path, NULL, &s, &err), &err);
    float last[2] = {1, 1};
    const ttn_stored_tensor *t = ttn_safetensors_at(s, 0);
    assert_ok(ttn_safetensors_read(s, t, t->n - 2, 2, TTN_F32, last, NULL, &err), &err);
    assert_int_equal(shim_disarm(), 3); /* length, header, two numbers */
    assert_true(last[0] == 0 && last[1] == 0);
    ttn_safetensors_close(s);
}

static void a_file_that_shrinks_is_an_error(void **state)
{
    (void)state;
    const char *path = in_folder("shrinks.safetensors");
    put_safetensors(path, A(F32_2(0, 8)), 8);
    ttn_safetensors *s;
    ttn_error err = {0};
    float got[2];
    assert_ok(ttn_safetensors_open(path, NULL, &s, &err), &err);
    assert_int_equal(truncate(path, 8 + (off_t)strlen(A(F32_2(0, 8))) + 5), 0);
    assert_fails(ttn_safetensors_read(s, ttn_safetensors_at(s, 0), 0, 2, TTN_F32, got, NULL, &err), TTN_EIO, &err,
                 "something shortens it while it is read");
    ttn_safetensors_close(s);
}

/* Every read is cut short, or fails, in turn. */
static void short_reads_go_on_and_failing_ones_are_told(void **state)
{
    (void)state;
    ttn_safetensors *s = NULL;
    ttn_error err = {0};
    unsigned char expected[MOST_STORED_BYTES], got[MOST_STORED_BYTES];
    shim_arm(SHIM_READ, 1, SHIM_SHORT, 0, 1);
    assert_ok(ttn_safetensors_open(golden_path("kinds.safetensors"), NULL, &s, &err), &err);
    int64_t n = stored_bytes(0, expected);
    assert_ok(ttn_safetensors_read_bytes(s, ttn_safetensors_find(s, "f32"), 0, n, got, &err), &err);
    assert_true(shim_disarm() > 10);
    assert_same_bits(got, expected, (size_t)n);
    for (int i = 1; i <= 2; i++) {
        ttn_safetensors *other;
        shim_arm(SHIM_READ, i, SHIM_FAIL, EIO, 0);
        err = (ttn_error){0};
        assert_fails(ttn_safetensors_open(golden_path("kinds.safetensors"), NULL, &other, &err), TTN_EIO, &err,
                     "kinds.safetensors: cannot be read: Input/output error");
        shim_disarm();
    }
    shim_arm(SHIM_READ, 1, SHIM_FAIL, EINTR, 0);
    assert_ok(ttn_safetensors_read_bytes(s, ttn_safetensors_find(s, "f32"), 0, n, got, &err), &err);
    assert_int_equal(shim_disarm(), 2);
    ttn_safetensors_close(s);
}

static void without_memory_it_says_so(void **state)
{
    (void)state;
    static const char *const files[] = {"kinds.safetensors", "set.safetensors.index.json"};
    put_safetensors(in_folder("only.safetensors"), A(F32_2(0, 8)), 8);
    static const char index[] = "{\"metadata\":{\"total_size\":8},\"weight_map\":{\"a\":\"only.safetensors\"}}";
    put_file(in_folder(files[1]), index, strlen(index));
    for (int f = 0; f < 2; f++) {
        const char *path = f == 0 ? golden_path(files[0]) : in_folder(files[1]);
        int64_t n = 1;
        for (;; n++) {
            ttn_safetensors *s;
            ttn_error err = {0};
            shim_arm(SHIM_ALLOC, n, SHIM_FAIL, ENOMEM, 0);
            ttn_status status = ttn_safetensors_open(path, NULL, &s, &err);
            int hit = shim_was_hit();
            shim_disarm();
            ttn_safetensors_close(s);
            if (!hit) {
                assert_ok(status, &err);
                break;
            }
            assert_int_equal(status, TTN_ENOMEM);
            assert_int_equal(err.status, TTN_ENOMEM);
            assert_true(strlen(err.text) > 10);
        }
        assert_true(n > 5);
    }
}

/* ---- sets ---- */

/* What was said, one line after the other. */
typedef struct {
    char text[4000];
} said;

static void listen(void *ctx, ttn_log_level level, const char *text)
{
    (void)level;
    said *s = ctx;
    size_t used = strlen(s->text);
    snprintf(s->text + used, sizeof s->text - used, "%s\n", text);
}

static ttn_status open_set(const char *index, said *s, ttn_safetensors **ret, ttn_error *err)
{
    *err = (ttn_error){0};
    *s = (said){{0}};
    ttn_log log = {.say = listen, .ctx = s};
    put_file(in_folder("model.safetensors.index.json"), index, strlen(index));
    return ttn_safetensors_open(in_folder("model.safetensors.index.json"), &(ttn_safetensors_options){.log = &log}, ret,
                                err);
}

static void a_set_is_read_as_one_and_checked_against_its_index(void **state)
{
    (void)state;
    put_safetensors(in_folder("one.safetensors"), TWO(F32_2(0, 8), F32_2(8, 16)), 16);
    put_safetensors(in_folder("two.safetensors"), "{\"c\":{" F32_2(0, 8) "}}", 8);
    put_safetensors(in_folder("again.safetensors"), "{\"a\":{" F32_2(0, 8) "}}", 8);
    ttn_safetensors *s;
    ttn_error err;
    said what;
#define ONE "\"a\":\"one.safetensors\",\"b\":\"one.safetensors\""
    assert_ok(open_set("{\"metadata\":{\"total_size\":24},\"weight_map\":{" ONE ",\"c\":\"two.safetensors\"}}", &what,
                       &s, &err),
              &err);
    assert_string_equal(what.text, "");
    assert_int_equal(ttn_safetensors_count(s), 3);
    assert_int_equal(ttn_safetensors_file_count(s), 2);
    assert_contains(ttn_safetensors_file(s, ttn_safetensors_find(s, "c")->file), "two.safetensors");
    ttn_safetensors_close(s);
    /* the same by the folder's name */
    assert_ok(ttn_safetensors_open(ttn_test_folder(), NULL, &s, &err), &err);
    assert_int_equal(ttn_safetensors_count(s), 3);
    ttn_safetensors_close(s);

    assert_ok(
        open_set("{\"metadata\":{\"total_size\":99},\"weight_map\":{\"a\":\"one.safetensors\"}}", &what, &s, &err),
        &err);
    ttn_safetensors_close(s);
    assert_contains(what.text, "tensor 'b' is not in the index, and taken all the same");
    assert_contains(what.text, "says that all tensors have 99 bytes, and they have 16");

    static const struct {
        const char *index, *words;
    } wrong[] = {
        {"{\"weight_map\":{" ONE ",\"x\":\"two.safetensors\"}}",
         "tensor 'x' should be in two.safetensors, and is in no shard"},
        {"{\"weight_map\":{\"a\":\"two.safetensors\",\"b\":\"one.safetensors\"}}",
         ":1:20: tensor 'a' should be in two.safetensors, and is in one.safetensors"},
        {"{\"weight_map\":{" ONE ",\"d\":\"again.safetensors\"}}", "tensor 'a' stands in it and in "},
        {"{\"weight_map\":{\"a\":\"three.safetensors\"}}",
         "three.safetensors: cannot be opened: No such file or directory"},
        {"{\"weight_map\":{\"a\":\"../one.safetensors\"}}", "the shard '../one.safetensors' leads to another folder"},
        {"{\"weight_map\":{\"a\":\"/etc/passwd\"}}", "the shard '/etc/passwd' leads to another folder"},
        {"{\"weight_map\":{\"a\":\"..\"}}", "the shard '..' leads to another folder"},
        {"{\"weight_map\":{\"a\":\"\"}}", "the shard '' is no file name"},
        {"{\"weight_map\":{\"a\":\"x\\u0000y\"}}", "of a character other than U+0000"},
        {"{\"weight_map\":{\"a\":{\"dtype\":\"F32\"}}}",
         "has something else; is this the header of a safetensors file?"},
        {"{\"weight_map\":{\"a\":3}}", ":1:20: 'a' should have the name of a file, and has something else"},
        {"{\"weight_map\":{}}", "names no tensor"},
        {"{\"weight_map\":[]}", "'weight_map' should be an object, not an array"},
        {"{}", "the key 'weight_map' is missing"},
        {"[]", "'weight_map' is looked for here, and this is an array, not an object"},
        {"{\"weight_map\":{\"a\":\"one.safetensors\",\"a\":\"two.safetensors\"}}",
         "the key 'a' stands twice in one object"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ttn_status status = open_set(wrong[i].index, &what, &s, &err);
        if (status != TTN_ECHECKPOINT) print_error("of %s\n", wrong[i].index);
        assert_fails(status, TTN_ECHECKPOINT, &err, wrong[i].words);
    }
}

static void a_folder_is_asked_for_its_model(void **state)
{
    (void)state;
    char folder[5000];
    snprintf(folder, sizeof folder, "%s", in_folder("folder"));
    assert_int_equal(mkdir(folder, 0777), 0);
    ttn_safetensors *s;
    ttn_error err = {0};
    assert_fails(ttn_safetensors_open(folder, NULL, &s, &err), TTN_EINVAL, &err, "holds neither model.safetensors nor");
    put_file(path_in(folder, "pytorch_model.bin"), "PK", 2);
    err = (ttn_error){0};
    assert_fails(ttn_safetensors_open(folder, NULL, &s, &err), TTN_ECHECKPOINT, &err,
                 "a pickle, which can run any program");
    put_safetensors(path_in(folder, "model.safetensors"), A(F32_2(0, 8)), 8);
    put_file(path_in(folder, "model.safetensors.index.json"), "broken", 6);
    assert_ok(ttn_safetensors_open(folder, NULL, &s, &err), &err); /* preferred */
    assert_int_equal(ttn_safetensors_count(s), 1);
    ttn_safetensors_close(s);
}

/* ---- matching ---- */

static void matching_names_what_is_missing_unused_and_misshapen(void **state)
{
    (void)state;
    static const char header[] = "{\"esm.layer.0.w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                                 "\"layer.1.wieght\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[8,16]},"
                                 "\"embed\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[16,28]},"
                                 "\"position_ids\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[28,36]},"
                                 "\"f8\":{\"dtype\":\"F8_E4M3\",\"shape\":[1],\"data_offsets\":[36,37]}}";
    const char *path = in_folder("match.safetensors");
    put_safetensors(path, header, 37);
    said what = {{0}};
    ttn_log log = {.say = listen, .ctx = &what};
    ttn_safetensors *s;
    ttn_error err = {0};
    assert_ok(ttn_safetensors_open(path, &(ttn_safetensors_options){.log = &log}, &s, &err), &err);
    const ttn_stored_tensor *found[4];
    ttn_match m;

    const ttn_wanted_tensor good[] = {
        {.name = "embed", .ndim = 1, .dim = {3}},
        {.name = "decoder", .ndim = 1, .dim = {3}, .instead = "embed"},
        {.name = "esm.layer.0.w", .ndim = 1, .dim = {2}},
        {.name = "layer.1.wieght", .ndim = 2, .dim = {1, 2}},
    };
    assert_ok(ttn_safetensors_match(s, good, 4, found, &m, &err), &err);
    assert_int_equal(m.missing + m.misshapen, 0);
    assert_int_equal(m.replaced, 1);
    assert_int_equal(m.unused, 1); /* f8; the integers are passed over */
    assert_ptr_equal(found[1], found[0]);
    assert_string_equal(found[2]->name, "esm.layer.0.w");
    assert_contains(what.text, "tensor 'f8' (F8_E4M3 [1]) is not used");

    what = (said){{0}};
    const ttn_wanted_tensor scoped[] = {{.name = "layer.0.w", .ndim = 1, .dim = {2}}};
    assert_fails(ttn_safetensors_match(s, scoped, 1, found, &m, &err), TTN_ECHECKPOINT, &err,
                 "tensor 'layer.0.w' of shape [2] is missing; did you mean 'esm.layer.0.w'?");
    assert_int_equal(m.missing, 1);
    assert_contains(what.text, "tensor 'esm.layer.0.w' (F32 [2]) is not used; did you mean 'layer.0.w'?");
    assert_null(found[0]);

    const ttn_wanted_tensor several[] = {
        {.name = "layer.1.weight", .ndim = 2, .dim = {1, 2}},
        {.name = "embed", .ndim = 2, .dim = {3, 1}},
        {.name = "nothing.like.it", .ndim = 0},
    };
    err = (ttn_error){0};
    assert_fails(
        ttn_safetensors_match(s, several, 3, found, &m, &err), TTN_ECHECKPOINT, &err,
        "tensor 'layer.1.weight' of shape [1, 2] is missing; did you mean 'layer.1.wieght'? (the first of 2 that "
        "are missing and 1 of another shape)");
    err = (ttn_error){0};
    assert_fails(ttn_safetensors_match(s, several + 1, 1, found, &m, &err), TTN_ECHECKPOINT, &err,
                 "tensor 'embed' is F32 [3], and the model has [3, 1] there");
    const ttn_wanted_tensor small[] = {{.name = "f8", .ndim = 1, .dim = {1}}};
    err = (ttn_error){0};
    assert_fails(ttn_safetensors_match(s, small, 1, found, &m, &err), TTN_ECHECKPOINT, &err,
                 "tensor 'f8' is F8_E4M3 [1], and titin reads F32, F16, BF16 and F64");
    ttn_safetensors_close(s);
}

/* ---- writing ---- */

enum { N_WRITTEN = N_STORED_KIND - 1 };

static ttn_status give_kind(void *ctx, int64_t i, int64_t at, int64_t n, void *to, ttn_error *err)
{
    (void)err;
    (void)ctx;
    unsigned char bytes[MOST_STORED_BYTES];
    stored_bytes((int)i, bytes);
    memcpy(to, bytes + at, (size_t)n);
    return TTN_OK;
}

/* list (N_WRITTEN): the tensors that titin writes. */
static ttn_safetensors_content content_of(ttn_tensor_to_write *list)
{
    for (int k = 0; k < N_WRITTEN; k++) {
        list[k] = (ttn_tensor_to_write){.name = stored_kinds[k].name, .desc.ndim = stored_kinds[k].ndim};
        assert_true(ttn_stored_dtype(stored_kinds[k].type, &list[k].desc.type));
        for (int d = 0; d < stored_kinds[k].ndim; d++)
            list[k].desc.dim[d] = stored_kinds[k].dim[d];
    }
    return (ttn_safetensors_content){.tensor = list, .n_tensor = N_WRITTEN, .give = give_kind};
}

static ttn_status count_bytes(void *ctx, const void *bytes, size_t n, ttn_error *err)
{
    (void)bytes;
    (void)err;
    *(int64_t *)ctx += (int64_t)n;
    return TTN_OK;
}

static void what_is_written_is_what_the_reference_writes(void **state)
{
    (void)state;
    ttn_tensor_to_write list[N_WRITTEN];
    ttn_safetensors_content c = content_of(list);
    ttn_error err = {0};
    const char *path = in_folder("written.safetensors");
    assert_ok(ttn_safetensors_write(path, &c, &err), &err);
    size_t n, n_expected;
    unsigned char *got = get_file(path, &n), *expected = get_file(golden_path("written.safetensors"), &n_expected);
    assert_int_equal(n, n_expected);
    assert_same_bits(got, expected, n);
    free(got);
    free(expected);
    int64_t size = 0, counted = 0;
    assert_ok(ttn_safetensors_size(&c, &size, &err), &err);
    assert_ok(ttn_safetensors_emit(&c, count_bytes, &counted, &err), &err);
    assert_int_equal(size, (int64_t)n);
    assert_int_equal(counted, size);
}

/* In one file and in shards of every size. */
static void what_is_written_is_read_back(void **state)
{
    (void)state;
    ttn_tensor_to_write list[N_WRITTEN];
    ttn_safetensors_content c = content_of(list);
    const ttn_stored_note notes[] = {{"format", "other"}, {"why", "tab\t quote\" control\x01 \xC3\xA9"}};
    c.note = notes;
    c.n_note = 2;
    for (int64_t most = 0; most < 200; most = most < 40 ? most + 13 : most * 2) {
        char name[40];
        snprintf(name, sizeof name, "back-%d.safetensors", (int)most);
        c.most_shard = most;
        ttn_error err = {0};
        ttn_safetensors *s;
        said what = {{0}};
        ttn_log log = {.say = listen, .ctx = &what};
        const char *path = in_folder(name);
        assert_ok(ttn_safetensors_write(path, &c, &err), &err);
        if (most > 0 && most < 160) {
            struct stat about;
            assert_int_equal(stat(path, &about), -1);
            strcat(name, ".index.json");
            path = in_folder(name);
        }
        assert_ok(ttn_safetensors_open(path, &(ttn_safetensors_options){.log = &log}, &s, &err), &err);
        assert_string_equal(what.text, ""); /* the index's total is right */
        assert_int_equal(ttn_safetensors_count(s), N_WRITTEN);
        for (int k = 0; k < N_WRITTEN; k++) {
            unsigned char expected[MOST_STORED_BYTES], got[MOST_STORED_BYTES];
            int64_t n = stored_bytes(k, expected);
            const ttn_stored_tensor *t = ttn_safetensors_find(s, stored_kinds[k].name);
            assert_ok(ttn_safetensors_read_bytes(s, t, 0, n, got, &err), &err);
            assert_same_bits(got, expected, (size_t)n);
        }
        assert_string_equal(ttn_safetensors_note(s, 0)->value, "pt");
        assert_string_equal(ttn_safetensors_note(s, 1)->value, notes[1].value);
        if (most > 0 && most < 60) assert_true(ttn_safetensors_file_count(s) > 2);
        ttn_safetensors_close(s);
    }
}

static void what_a_reader_would_refuse_is_not_written(void **state)
{
    (void)state;
    static const struct {
        const char *name, *words;
    } wrong[] = {
        {"", "the name is empty"},
        {"a\nb", "holds a control character"},
        {"../x", "holds '..'"},
        {"__metadata__", "the name is kept for notes"},
        {"f32", "two tensors to be written are called 'f32'"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ttn_tensor_to_write list[N_WRITTEN];
        ttn_safetensors_content c = content_of(list);
        list[3].name = wrong[i].name; /* f64: the one of the same name is of another type */
        ttn_error err = {0};
        assert_fails(ttn_safetensors_write(in_folder("no.safetensors"), &c, &err), TTN_EINVAL, &err, wrong[i].words);
        struct stat about;
        assert_int_equal(stat(in_folder("no.safetensors"), &about), -1);
    }
}

static void shards_do_not_hide_behind_a_file(void **state)
{
    (void)state;
    ttn_tensor_to_write list[N_WRITTEN];
    ttn_safetensors_content c = content_of(list);
    c.most_shard = 50;
    put_file(in_folder("there.safetensors"), "x", 1);
    ttn_error err = {0};
    assert_fails(ttn_safetensors_write(in_folder("there.safetensors"), &c, &err), TTN_EINVAL, &err,
                 "is there, and would be read in place of shards; remove it first");
    err = (ttn_error){0};
    assert_fails(ttn_safetensors_write(in_folder("shards"), &c, &err), TTN_EINVAL, &err, "name ends in .safetensors");
}

/* Shard after shard would be replaced under the index of the old ones. */
static void set_that_is_there_is_not_written_over(void **state)
{
    (void)state;
    ttn_tensor_to_write list[N_WRITTEN];
    ttn_safetensors_content c = content_of(list);
    c.most_shard = 50;
    ttn_error err = {0};
    ttn_safetensors *s;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", in_folder("twice.safetensors"));
    assert_ok(ttn_safetensors_write(path, &c, &err), &err);
    list[0].desc.dim[0]++; /* a set of another content */
    assert_fails(ttn_safetensors_write(path, &c, &err), TTN_EINVAL, &err,
                 "twice.safetensors.index.json: is the index of a set that is there");
    list[0].desc.dim[0]--;
    err = (ttn_error){0};
    assert_ok(ttn_safetensors_open(in_folder("twice.safetensors.index.json"), NULL, &s, &err), &err);
    assert_int_equal(ttn_safetensors_count(s), N_WRITTEN);
    ttn_safetensors_close(s);
    assert_int_equal(remove(in_folder("twice.safetensors.index.json")), 0); /* as a killed writer leaves them */
    assert_ok(ttn_safetensors_write(path, &c, &err), &err);
}

/* A failure at every call of a save, one after the other: the previous file stays whole. */
static void a_save_that_fails_leaves_the_previous_file(void **state)
{
    (void)state;
    ttn_tensor_to_write list[N_WRITTEN];
    ttn_safetensors_content c = content_of(list);
    const char *path = in_folder("kept.safetensors");
    put_safetensors(path, A(F32_2(0, 8)), 8);
    static const struct {
        unsigned calls;
        int error;
    } faults[] = {{SHIM_FILES, ENOSPC}, {SHIM_ALLOC, ENOMEM}};
    for (int f = 0; f < 2; f++) {
        for (int64_t n = 1;; n++) {
            ttn_error err = {0};
            shim_arm(faults[f].calls, n, SHIM_FAIL, faults[f].error, 0);
            ttn_status status = ttn_safetensors_write(path, &c, &err);
            int hit = shim_was_hit();
            shim_disarm();
            if (!hit) {
                assert_ok(status, &err);
                assert_true(n > 5);
                break;
            }
            ttn_safetensors *s;
            ttn_error why = {0};
            assert_ok(ttn_safetensors_open(path, NULL, &s, &why), &why);
            int64_t count = ttn_safetensors_count(s);
            ttn_safetensors_close(s);
            assert_true(count == 1 || count == N_WRITTEN);
            if (status != TTN_OK) assert_true(strlen(err.text) > 10);
            if (status == TTN_OK) assert_int_equal(count, N_WRITTEN);
            put_safetensors(path, A(F32_2(0, 8)), 8);
        }
    }
}

static ttn_status give_nothing(void *ctx, int64_t i, int64_t at, int64_t n, void *to, ttn_error *err)
{
    (void)ctx;
    (void)at;
    (void)n;
    (void)to;
    return TTN_FAIL(err, TTN_EDEVICE, "the device does not give tensor %d", (int)i);
}

static void a_failure_of_the_giver_is_the_writers(void **state)
{
    (void)state;
    ttn_tensor_to_write list[N_WRITTEN];
    ttn_safetensors_content c = content_of(list);
    c.give = give_nothing;
    ttn_error err = {0};
    struct stat about;
    assert_fails(ttn_safetensors_write(in_folder("none.safetensors"), &c, &err), TTN_EDEVICE, &err,
                 "the device does not give tensor 4"); /* I64: the first of the file */
    assert_int_equal(stat(in_folder("none.safetensors"), &about), -1);
}

/* ---- titin info ---- */

static ttn_status give_zeros(void *ctx, int64_t i, int64_t at, int64_t n, void *to, ttn_error *err)
{
    (void)ctx;
    (void)i;
    (void)at;
    (void)err;
    memset(to, 0, (size_t)n);
    return TTN_OK;
}

/* All facts as lines "key=value", and the warnings. */
static void print_facts(const ttn_facts *f, char *text, size_t room)
{
    size_t used = 0;
    *text = 0;
    for (int64_t i = 0; i < ttn_facts_count(f) && used < room; i++) {
        const ttn_fact *fact = &ttn_facts_at(f)[i];
        if (fact->kind == TTN_FACT_TEXT)
            used += (size_t)snprintf(text + used, room - used, "%s=%s\n", fact->key, fact->text);
        else if (fact->key)
            used += (size_t)snprintf(text + used, room - used, "%s=%" PRId64 "\n", fact->key, fact->integer);
    }
    for (int64_t i = 0; i < ttn_facts_warning_count(f) && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "warning=%s\n", ttn_facts_warning(f, i));
}

static ttn_status describe_file(const char *path, int verify, char *text, size_t room, ttn_error *err)
{
    ttn_facts *f;
    *err = (ttn_error){0};
    assert_ok(ttn_facts_create(&f, err), err);
    ttn_status status = ttn_info_describe(path, verify, f, err);
    print_facts(f, text, room);
    ttn_facts_destroy(f);
    return status;
}

static void info_lists_tensors_and_verify_counts_what_is_not_finite(void **state)
{
    (void)state;
    char text[4000];
    ttn_error err;
    assert_ok(describe_file(golden_path("kinds.safetensors"), 0, text, sizeof text, &err), &err);
    assert_contains(text, "kind=safetensors\n");
    assert_contains(text, "tensors=11\n");
    assert_contains(text, "key=format\nvalue=pt\n");
    assert_contains(text, "name=f32\ntype=F32\nshape=[3, 5]\nbytes=60\n");
    assert_contains(text, "name=scalar\ntype=F32\nshape=[]\nbytes=4\n");

    ttn_tensor_to_write list[N_WRITTEN];
    ttn_safetensors_content c = content_of(list);
    c.n_tensor = 1; /* f32 */
    c.give = give_zeros;
    assert_ok(ttn_safetensors_write(in_folder("finite"), &c, &err), &err); /* recognised without its name */
    assert_ok(describe_file(in_folder("finite"), 1, text, sizeof text, &err), &err);
    assert_contains(text, "kind=safetensors\n");
    assert_contains(text, "numbers_read=15\nnot_finite=0\nverified=1\n");

    put_safetensors(in_folder("nan.safetensors"), "{\"w\":{\"dtype\":\"F16\",\"shape\":[4],\"data_offsets\":[0,8]}}",
                    8);
    FILE *file = fopen(in_folder("nan.safetensors"), "r+");
    assert_non_null(file);
    fseek(file, -2, SEEK_END);
    fwrite("\x00\x7c", 1, 2, file);
    fclose(file);
    assert_ok(describe_file(in_folder("nan.safetensors"), 0, text, sizeof text, &err), &err);
    assert_fails(describe_file(in_folder("nan.safetensors"), 1, text, sizeof text, &err), TTN_ENUMERIC, &err,
                 "1 of its numbers are NaN or infinite");
    assert_contains(text, "verified=0\nwarning=tensor 'w' holds 1 numbers that are NaN or infinite, first number 3\n");

    put_file(in_folder("damaged.safetensors"), "short", 5);
    assert_fails(describe_file(in_folder("damaged.safetensors"), 0, text, sizeof text, &err), TTN_ECHECKPOINT, &err,
                 "has 5 bytes, and a safetensors file begins with the 8");
    assert_contains(text, "kind=safetensors\n");
}

/* ---- for tests/reference/files.py ---- */

static int write_samples(int argc, char **argv)
{
    if (argc != 1) return 2;
    ttn_tensor_to_write list[N_WRITTEN];
    ttn_safetensors_content c = content_of(list);
    const ttn_stored_note note = {"made by", "titin"};
    c.note = &note;
    c.n_note = 1;
    ttn_error err = {0};
    assert_ok(ttn_safetensors_write(path_in(argv[0], "whole.safetensors"), &c, &err), &err);
    c.most_shard = 50;
    assert_ok(ttn_safetensors_write(path_in(argv[0], "shards.safetensors"), &c, &err), &err);
    return 0;
}

static int write_corpus(int argc, char **argv)
{
    if (argc != 1) return 2;
    unsigned char *bytes = malloc(8 + MOST_MADE);
    assert_non_null(bytes);
    for (int i = 0; i < N_CORPUS; i++) {
        char name[100];
        snprintf(name, sizeof name, "%s.bin", corpus[i].name);
        put_file(path_in(argv[0], name), bytes, make_malformed(&corpus[i], bytes));
    }
    free(bytes);
    return 0;
}

/* One line a file named: "ok" or the sentence. */
static int judge_files(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        ttn_safetensors *s;
        ttn_error err = {0};
        ttn_status status = ttn_safetensors_open(argv[i], NULL, &s, &err);
        puts(status == TTN_OK ? "ok" : err.text);
        ttn_safetensors_close(s);
    }
    return 0;
}

int main(int argc, char **argv)
{
    ttn_test_child("write", write_samples);
    ttn_test_child("corpus", write_corpus);
    ttn_test_child("judge", judge_files);
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_malformed_file_is_refused_with_its_own_sentence),
        cmocka_unit_test(padding_with_nul_is_named),
        cmocka_unit_test(headers_are_capped_and_the_cap_can_be_raised),
        cmocka_unit_test(what_the_reference_wrote_is_read_to_the_bit),
        cmocka_unit_test(notes_are_read),
        cmocka_unit_test(numbers_are_converted_as_they_are_read),
        cmocka_unit_test(numbers_that_are_not_finite_are_refused_unless_asked_for),
        cmocka_unit_test(a_large_file_is_opened_by_its_header),
        cmocka_unit_test(a_file_that_shrinks_is_an_error),
        cmocka_unit_test(short_reads_go_on_and_failing_ones_are_told),
        cmocka_unit_test(without_memory_it_says_so),
        cmocka_unit_test(a_set_is_read_as_one_and_checked_against_its_index),
        cmocka_unit_test(a_folder_is_asked_for_its_model),
        cmocka_unit_test(matching_names_what_is_missing_unused_and_misshapen),
        cmocka_unit_test(what_is_written_is_what_the_reference_writes),
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(what_a_reader_would_refuse_is_not_written),
        cmocka_unit_test(shards_do_not_hide_behind_a_file),
        cmocka_unit_test(set_that_is_there_is_not_written_over),
        cmocka_unit_test(a_save_that_fails_leaves_the_previous_file),
        cmocka_unit_test(a_failure_of_the_giver_is_the_writers),
        cmocka_unit_test(info_lists_tensors_and_verify_counts_what_is_not_finite),
    };
    return ttn_test_run(tests);
}
