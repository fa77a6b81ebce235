/* Facts as text and as JSON, and files that are told by what they look like. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "tests/harness/shim.h"
#include "tests/harness/test.h"
#include "train/cli/show.h"
#include "train/files/json.h"
#include "train/info.h"
#include "train/info_foreign.h"

static ttn_facts *some_facts(void)
{
    ttn_facts *f;
    ttn_error err = {0};
    assert_ok(ttn_facts_create(&f, &err), &err);
    ttn_facts_text(f, "looks_like", "a \"%s\"", "model");
    ttn_facts_integer(f, "steps", -1234567);
    ttn_facts_bytes(f, "size", 1288490189);
    ttn_facts_seconds(f, "took", 0.0032);
    ttn_facts_real(f, "loss", 2.5);
    ttn_facts_real(f, "nan", (double)NAN);
    ttn_facts_flag(f, "verified", 3);
    ttn_facts_open(f, "cursor");
    ttn_facts_integer(f, "epoch", 2);
    ttn_facts_none(f, "batch");
    ttn_facts_close(f);
    ttn_facts_open_list(f, "tensors");
    for (int i = 0; i < 2; i++) {
        ttn_facts_open(f, NULL);
        ttn_facts_text(f, "name", "%s", i ? "layer.0.attn.q.weight" : "bias");
        ttn_facts_integer(f, "rows", i ? 1000 : 8);
        ttn_facts_close(f);
    }
    ttn_facts_close(f);
    ttn_facts_open_list(f, "shape");
    ttn_facts_integer(f, NULL, 480);
    ttn_facts_integer(f, NULL, 512);
    ttn_facts_close(f);
    ttn_facts_open_list(f, "nothing");
    ttn_facts_close(f);
    ttn_facts_warn(f, "made %d days ago", 900);
    return f;
}

static char *printed_text(const ttn_facts *f)
{
    char *text = NULL;
    size_t size;
    ttn_terminal t = {.out = open_memstream(&text, &size)};
    assert_non_null(t.out);
    /* A memory stream has no descriptor to ask: the width is that of COLUMNS. */
    setenv("COLUMNS", "80", 1);
    ttn_show_text(&t, f);
    fclose(t.out);
    return text;
}

static char *printed_json(const ttn_facts *f)
{
    char *text = NULL;
    size_t size;
    ttn_error err = {0};
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_ok(ttn_show_json(out, f, &err), &err);
    fclose(out);
    return text;
}

static void facts_are_laid_out_for_people(void **state)
{
    (void)state;
    ttn_facts *f = some_facts();
    char *text = printed_text(f);
    assert_string_equal(text, "looks like  a \"model\"\n"
                              "steps       -1,234,567\n"
                              "size        1.2 GiB\n"
                              "took        3.2 ms\n"
                              "loss        2.5\n"
                              "nan         none\n"
                              "verified    yes\n"
                              "cursor\n"
                              "  epoch  2\n"
                              "  batch  none\n"
                              "tensors\n"
                              "  name                    rows\n"
                              "  bias                       8\n"
                              "  layer.0.attn.q.weight  1,000\n"
                              "shape       480, 512\n"
                              "nothing     none\n"
                              "warning: made 900 days ago\n");
    free(text);
    ttn_facts_destroy(f);
}

static void facts_are_json_for_programs(void **state)
{
    (void)state;
    ttn_facts *f = some_facts();
    char *text = printed_json(f);
    assert_string_equal(text, "{\n"
                              "  \"looks_like\": \"a \\\"model\\\"\",\n"
                              "  \"steps\": -1234567,\n"
                              "  \"size\": 1288490189,\n"
                              "  \"took\": 0.0032000000000000002,\n"
                              "  \"loss\": 2.5,\n"
                              "  \"nan\": null,\n"
                              "  \"verified\": true,\n"
                              "  \"cursor\": {\n"
                              "    \"epoch\": 2,\n"
                              "    \"batch\": null\n"
                              "  },\n"
                              "  \"tensors\": [\n"
                              "    {\n"
                              "      \"name\": \"bias\",\n"
                              "      \"rows\": 8\n"
                              "    },\n"
                              "    {\n"
                              "      \"name\": \"layer.0.attn.q.weight\",\n"
                              "      \"rows\": 1000\n"
                              "    }\n"
                              "  ],\n"
                              "  \"shape\": [\n"
                              "    480,\n"
                              "    512\n"
                              "  ],\n"
                              "  \"nothing\": [],\n"
                              "  \"warnings\": [\n"
                              "    \"made 900 days ago\"\n"
                              "  ]\n"
                              "}\n");
    free(text);
    ttn_facts_destroy(f);
}

/* A file's name may hold anything. */
static void hostile_bytes_harm_neither_terminal_nor_json(void **state)
{
    (void)state;
    static const char *const texts[] = {"\033[2J\n",        "\xff\xfe", "\xc2\x9b", "\xed\xa0\x80",
                                        "\xf4\x90\x80\x80", "\xc3",     "\u6f22",   "\xc0\xaf"};
    ttn_facts *f;
    ttn_error err = {0};
    assert_ok(ttn_facts_create(&f, &err), &err);
    ttn_facts_open_list(f, "texts");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ttn_facts_text(f, NULL, "%s", texts[i]);
    ttn_facts_close(f);
    char *text = printed_json(f);
    ttn_json *read;
    assert_ok(ttn_json_parse("facts", text, strlen(text), NULL, &read, &err), &err);
    assert_contains(text, "\"?[2J?\"");
    assert_contains(text, "\"\uFFFD\uFFFD\"");
    assert_contains(text, "\"\u6f22\"");
    for (const char *c = text; *c; c++)
        assert_true((unsigned char)*c >= ' ' || *c == '\n');
    ttn_json_close(read);
    free(text);
    ttn_facts_destroy(f);
}

static void a_long_text_is_kept_whole(void **state)
{
    (void)state;
    enum { N = 100000 };
    char *long_text = malloc(N + 1);
    assert_non_null(long_text);
    memset(long_text, 'x', N);
    long_text[N] = 0;
    ttn_facts *f;
    ttn_error err = {0};
    assert_ok(ttn_facts_create(&f, &err), &err);
    ttn_facts_text(f, "text", "%s", long_text);
    assert_ok(ttn_facts_status(f, &err), &err);
    assert_string_equal(ttn_facts_at(f)[0].text, long_text);
    ttn_facts_destroy(f);
    free(long_text);
}

static void bytes_counts_and_seconds_are_for_people(void **state)
{
    (void)state;
    char text[TTN_SHOW_NUMBER];
    assert_string_equal(ttn_show_bytes(0, text), "0 bytes");
    assert_string_equal(ttn_show_bytes(1, text), "1 byte");
    assert_string_equal(ttn_show_bytes(1023, text), "1023 bytes");
    assert_string_equal(ttn_show_bytes(1024, text), "1.0 KiB");
    assert_string_equal(ttn_show_bytes((1 << 20) - 1, text), "1.0 MiB");
    assert_string_equal(ttn_show_bytes((int64_t)150 << 30, text), "150 GiB");
    assert_string_equal(ttn_show_bytes(INT64_MAX, text), "8.0 EiB");
    assert_string_equal(ttn_show_count(0, text), "0");
    assert_string_equal(ttn_show_count(999, text), "999");
    assert_string_equal(ttn_show_count(1000, text), "1,000");
    assert_string_equal(ttn_show_count(INT64_MIN, text), "-9,223,372,036,854,775,808");
    assert_string_equal(ttn_show_seconds(0.0000041, text), "4 us");
    assert_string_equal(ttn_show_seconds(0.25, text), "250 ms");
    assert_string_equal(ttn_show_seconds(119, text), "119.0 s");
    assert_string_equal(ttn_show_seconds(3 * 3600 + 725, text), "3 h 12 min");
    assert_string_equal(ttn_show_seconds(5 * 86400, text), "5.0 days");
}

/* Whichever call to malloc fails: a message and no crash. */
static void no_memory_is_a_message(void **state)
{
    (void)state;
    int64_t calls = 1;
    for (int64_t nth = 1; nth <= calls; nth++) {
        ttn_facts *f = NULL;
        ttn_error err = {0};
        shim_arm(SHIM_ALLOC, nth, SHIM_FAIL, ENOMEM, 0);
        ttn_status status = ttn_facts_create(&f, &err);
        if (status == TTN_OK) {
            for (int i = 0; i < 100; i++)
                ttn_facts_text(f, "key", "%s", "a text");
            ttn_facts_warn(f, "%s", "a warning");
            status = ttn_facts_status(f, &err);
        }
        int64_t made = shim_disarm();
        if (shim_was_hit()) assert_fails(status, TTN_ENOMEM, &err, "no memory for");
        if (nth == 1) calls = 100;
        if (made < nth) calls = nth;
        ttn_facts_destroy(f);
    }
    assert_in_range(calls, 5, 99); /* all of them were tried */
}

/* ---- kinds of files ---- */

static const char *path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", ttn_test_folder(), name);
    return path;
}

static const char *make_file(const char *name, const void *bytes, size_t n)
{
    const char *path = path_of(name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
    return path;
}

/* The fact called key of the file: "" when there is none. */
static const char *fact_of(const ttn_facts *f, const char *key)
{
    for (int64_t i = 0; i < ttn_facts_count(f); i++) {
        const ttn_fact *fact = &ttn_facts_at(f)[i];
        if (fact->key && strcmp(fact->key, key) == 0) return fact->text ? fact->text : "";
    }
    return "";
}

static void foreign_files_are_told_by_their_first_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *name, *bytes;
        size_t n;
        const char *looks, *advice;
    } files[] = {
#define BYTES(text) (text), sizeof(text) - 1
        {"a.fa.gz", BYTES("\x1F\x8B\x08\x00"), "a gzip file", "zcat FILE"},
        {"a.h5", BYTES("\x89HDF\r\n\x1A\n\x00"), "an HDF5 file", "h5ls -r"},
        {"a.pt", BYTES("PK\x03\x04......"), "a zip archive (PyTorch's", "save safetensors"},
        {"old.pt", BYTES("\x80\x02\x8A\x0A"), "a Python pickle (as older PyTorch", "save safetensors"},
        {"a.png", BYTES("\x89PNG\r\n\x1A\n...."), "a PNG picture", "viewer"},
        {"a.npy", BYTES("\x93NUMPY\x01\x00"), "a NumPy array", "numpy.load"},
        {"a.fa", BYTES(">sp|P12345\nMKV\n"), "a FASTA file", "grep -c"},
        {"b.fa", BYTES("\n\n >x\nMKV\n"), "a FASTA file", "grep -c"},
        {"a.fq", BYTES("@read1\nACGT\n+\n!!!!\n"), "a FASTQ file", "FASTA"},
        {"config.json", BYTES("{\"vocab_size\": 33}"), "a JSON file", "name the model's folder"},
        {"404.bin", BYTES("<html><body>404"), "an XML or HTML file", "error message"},
        {"notes.txt", BYTES("hello\n"), "a text", ".yaml"},
        {"a.tsv", BYTES("a\tb\n1\t2\n"), "a table", "column -t"},
        {"binary", BYTES("\x00\x01\x02\x03"), "bytes of no format known here", "`file FILE`"},
        {"short", BYTES("\x1F"), "bytes of no format known here", "`file FILE`"},
        {"empty", BYTES(""), "an empty file", "has failed, or has not begun"},
#undef BYTES
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        ttn_facts *f;
        ttn_error err = {0};
        assert_ok(ttn_facts_create(&f, &err), &err);
        const char *path = make_file(files[i].name, files[i].bytes, files[i].n);
        assert_fails(ttn_info_describe(path, 0, f, &err), TTN_ECHECKPOINT, &err, files[i].advice);
        assert_contains(err.text, path);
        assert_contains(fact_of(f, "looks_like"), files[i].looks);
        assert_string_equal(fact_of(f, "kind"), "unknown");
        assert_string_equal(fact_of(f, "path"), path);
        ttn_facts_destroy(f);
    }
}

static void a_tar_archive_is_told_by_bytes_further_in(void **state)
{
    (void)state;
    static char bytes[512];
    snprintf(bytes, sizeof bytes, "model.bin");
    snprintf(bytes + 257, sizeof bytes - 257, "ustar");
    ttn_facts *f;
    ttn_error err = {0};
    assert_ok(ttn_facts_create(&f, &err), &err);
    assert_fails(ttn_info_describe(make_file("a.tar", bytes, sizeof bytes), 0, f, &err), TTN_ECHECKPOINT, &err,
                 "tar xf");
    ttn_facts_destroy(f);
}

static void what_is_no_file_is_a_sentence(void **state)
{
    (void)state;
    ttn_facts *f;
    ttn_error err = {0};
    assert_ok(ttn_facts_create(&f, &err), &err);
    assert_fails(ttn_info_describe(path_of("missing"), 0, f, &err), TTN_EINVAL, &err, "no such file or folder");
    err = (ttn_error){0};
    assert_int_equal(mkfifo(path_of("pipe"), 0600), 0); /* opening it would wait for a writer */
    assert_fails(ttn_info_describe(path_of("pipe"), 0, f, &err), TTN_EINVAL, &err, "neither a file nor a folder");
    err = (ttn_error){0};
    assert_fails(ttn_info_describe("/dev/zero", 0, f, &err), TTN_EINVAL, &err, "neither a file nor a folder");
    assert_int_equal(ttn_facts_count(f), 0);
    err = (ttn_error){0};
    assert_fails(ttn_info_describe(ttn_test_folder(), 0, f, &err), TTN_ECHECKPOINT, &err, "is a folder");
    ttn_facts_destroy(f);
}

static int begins_with_x(const ttn_info_subject *s)
{
    return s->n_head > 0 && s->head[0] == 'x';
}

static int always(const ttn_info_subject *s)
{
    (void)s;
    return 1;
}

/* Leaves an object open, as one does that fails half-way. */
static ttn_status describe_half(const ttn_info_subject *s, int verify, ttn_facts *f, ttn_error *err)
{
    ttn_facts_open(f, "half");
    ttn_facts_integer(f, "head", (int64_t)s->n_head);
    return verify ? TTN_FAIL(err, TTN_ECHECKPOINT, "%s: damaged", s->path) : TTN_OK;
}

static void the_first_kind_that_recognises_a_file_has_it(void **state)
{
    (void)state;
    static const ttn_info_kind x = {.name = "x", .recognise = begins_with_x, .describe = describe_half};
    static const ttn_info_kind any = {.name = "any", .recognise = always, .describe = describe_half};
    const ttn_info_kind *const kinds[] = {&x, &any, NULL};
    static char bytes[TTN_INFO_HEAD + 100];
    bytes[0] = 'x';
    for (int is_x = 1; is_x >= 0; is_x--)
        for (int verify = 0; verify <= 1; verify++) {
            bytes[0] = is_x ? 'x' : 'y';
            ttn_facts *f;
            ttn_error err = {0};
            assert_ok(ttn_facts_create(&f, &err), &err);
            ttn_status status = ttn_info_describe_by(kinds, make_file("kind", bytes, sizeof bytes), verify, f, &err);
            assert_int_equal(status, verify ? TTN_ECHECKPOINT : TTN_OK);
            assert_string_equal(fact_of(f, "kind"), is_x ? "x" : "any");
            assert_ok(ttn_facts_status(f, &err), &err); /* closed behind it */
            char *text = printed_text(f);
            assert_contains(text, "half\n  head  4,096\n"); /* no more than the head was read */
            free(text);
            ttn_facts_destroy(f);
        }
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_are_laid_out_for_people),
        cmocka_unit_test(facts_are_json_for_programs),
        cmocka_unit_test(hostile_bytes_harm_neither_terminal_nor_json),
        cmocka_unit_test(a_long_text_is_kept_whole),
        cmocka_unit_test(bytes_counts_and_seconds_are_for_people),
        cmocka_unit_test(no_memory_is_a_message),
        cmocka_unit_test(foreign_files_are_told_by_their_first_bytes),
        cmocka_unit_test(a_tar_archive_is_told_by_bytes_further_in),
        cmocka_unit_test(what_is_no_file_is_a_sentence),
        cmocka_unit_test(the_first_kind_that_recognises_a_file_has_it),
    };
    return ttn_test_run(tests);
}
