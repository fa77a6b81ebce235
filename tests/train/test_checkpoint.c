#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/hash.h"
#include "core/memory.h"
#include "tests/harness/saved.h"
#include "tests/harness/test.h"
#include "train/files/checkpoint.h"
#include "train/files/run_folder.h"

enum { WIDTH = sizeof(real) == 4 ? 20 : 14 }; /* a checkpoint of some 20 kB */

static const char *const files[] = {"model.safetensors", "optim-r0000-of-0001.safetensors", "state.json",
                                    "MANIFEST.json"};
enum { N_FILES = sizeof files / sizeof *files };

/* ---- a run of its own for each test ---- */

static char run[PATH_MAX / 2];

static void new_run(void)
{
    static int n;
    snprintf(run, sizeof run, "%s/%d", ttn_test_folder(), n++);
    assert_int_equal(mkdir(run, 0777), 0);
    char inside[PATH_MAX];
    snprintf(inside, sizeof inside, "%s/ckpt", run);
    assert_int_equal(mkdir(inside, 0777), 0);
}

/* run/ckpt/step-…[/FILE]; good for the next 8 calls. */
static const char *at(int64_t step, const char *file)
{
    static char paths[8][PATH_MAX];
    static int next;
    char name[TTN_STEP_NAME];
    char *path = paths[next++ % 8];
    snprintf(path, PATH_MAX, "%s/ckpt/%s%s%s", run, ttn_step_name(step, name), file ? "/" : "", file ? file : "");
    return path;
}

static void save(int64_t step)
{
    saved_model m;
    ttn_error err = {0};
    saved_create(&m, WIDTH);
    assert_ok(saved_write(&m, at(step, NULL), step, NULL, &err), &err);
    saved_destroy(&m);
}

/* Opens what the run offers: the step, or -1 with the reason in *err. */
static int64_t newest(ttn_error *err)
{
    ttn_checkpoint *c;
    *err = (ttn_error){0};
    saved_forget();
    if (ttn_run_newest(run, &saved_log, &c, err) != TTN_OK || !c) return -1;
    saved_model m;
    saved_create(&m, WIDTH);
    assert_ok(saved_load(&m, c, err), err);
    int64_t step = ttn_checkpoint_state(c)->step;
    saved_check(&m, step);
    saved_check_state(ttn_checkpoint_state(c), step);
    saved_destroy(&m);
    ttn_checkpoint_close(c);
    return step;
}

static ttn_status try_open(int64_t step, ttn_error *err)
{
    ttn_checkpoint *c;
    *err = (ttn_error){0};
    ttn_status status = ttn_checkpoint_open(at(step, NULL), &c, NULL, err);
    assert_int_equal(status == TTN_OK, c != NULL);
    ttn_checkpoint_close(c);
    return status;
}

/* A file as bytes, to be changed and put back. */
typedef struct {
    unsigned char *bytes;
    size_t n;
} content;

static content read_file(const char *path)
{
    content c = {.bytes = calloc(1, 1 << 20)};
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(c.bytes);
    c.n = fread(c.bytes, 1, 1 << 20, f);
    assert_true(c.n < 1 << 20);
    fclose(f);
    return c;
}

static void write_file(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* ---- the way there and back ---- */

static void what_is_saved_is_loaded_to_the_bit(void **state)
{
    (void)state;
    new_run();
    ttn_error err;
    assert_int_equal(newest(&err), -1); /* no checkpoint is no error */
    assert_int_equal(err.status, TTN_OK);
    save(0);
    assert_int_equal(newest(&err), 0);
    save(123456789012);
    save(20);
    assert_int_equal(newest(&err), 123456789012);
    assert_string_equal(saved_said, "");
    save(123456789012); /* over itself */
    assert_int_equal(newest(&err), 123456789012);
}

static void what_a_checkpoint_holds_is_what_other_programs_expect(void **state)
{
    (void)state;
    new_run();
    save(5);
    int n = 0;
    DIR *d = opendir(at(5, NULL));
    assert_non_null(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    assert_int_equal(n, N_FILES);
    content c = read_file(at(5, files[0]));
    assert_contains((char *)c.bytes + 8, "\"format\":\"pt\"");
    assert_contains((char *)c.bytes + 8, "\"layer.0.q.weight\":{\"dtype\":\"");
    free(c.bytes);
    c = read_file(at(5, "state.json"));
    assert_contains((char *)c.bytes, "\"step\": 5");
    assert_contains((char *)c.bytes, "train.steps: 100");
    free(c.bytes);
    c = read_file(at(5, "MANIFEST.json"));
    char hash[TTN_HASH_TEXT];
    content model = read_file(at(5, files[0]));
    assert_contains((char *)c.bytes, ttn_hash_print(ttn_hash128_of(model.bytes, model.n), hash));
    free(model.bytes);
    free(c.bytes);
}

static void names_of_the_model_file_are_the_callers(void **state)
{
    (void)state;
    new_run();
    saved_model m;
    ttn_error err = {0};
    saved_create(&m, WIDTH);
    const int n = ttn_weights_count(m.w);
    char name[16][64];
    const char *model_name[16];
    assert_true(n <= 16);
    for (int i = 0; i < n; i++) {
        snprintf(name[i], sizeof name[i], "esm.%s", ttn_weights_at(m.w, i)->name);
        model_name[i] = name[i];
    }
    ttn_snapshot *s;
    const ttn_run_state then = saved_state(3);
    saved_fill(&m, 3);
    assert_ok(ttn_snapshot_create(m.w, model_name, m.more, SAVED_N_MORE, &s, &err), &err);
    assert_ok(ttn_snapshot_take(s, m.w, m.more, &then, &err), &err);
    assert_ok(ttn_checkpoint_write(s, at(3, NULL), NULL, &err), &err);
    ttn_snapshot_destroy(s);
    ttn_checkpoint *c;
    assert_ok(ttn_checkpoint_open(at(3, NULL), &c, NULL, &err), &err);
    saved_fill(&m, 4);
    assert_fails(ttn_checkpoint_load(c, m.w, NULL, 1, &err), TTN_ECHECKPOINT, &err, "has no tensor '");
    saved_fill(&m, 3);
    for (int i = 0; i < SAVED_N_MORE; i++)
        assert_true(m.more[i].data != NULL);
    err = (ttn_error){0};
    assert_ok(ttn_checkpoint_load(c, m.w, model_name, 1, &err), &err);
    saved_check(&m, 3);
    ttn_checkpoint_close(c);

    model_name[1] = model_name[0];
    assert_fails(ttn_snapshot_create(m.w, model_name, NULL, 0, &s, &err), TTN_EINVAL, &err, "are called 'esm.");
    assert_null(s);
    saved_destroy(&m);
}

static void weights_can_be_loaded_without_the_optimizer(void **state)
{
    (void)state;
    new_run();
    save(9);
    ttn_error err = {0};
    ttn_checkpoint *c;
    saved_model m;
    saved_create(&m, WIDTH);
    saved_fill(&m, 9);
    ttn_weights_destroy(m.w);
    saved_model fresh;
    saved_create(&fresh, WIDTH);
    assert_ok(ttn_checkpoint_open(at(9, NULL), &c, NULL, &err), &err);
    assert_ok(ttn_checkpoint_load(c, fresh.w, NULL, 0, &err), &err);
    real moment;
    int q = ttn_weights_find(fresh.w, "layer.0.scale");
    assert_ok(ttn_weights_read(fresh.w, q, TTN_SLAB_M, &moment, &err), &err);
    assert_true(moment == 0);
    assert_ok(ttn_checkpoint_load(c, fresh.w, NULL, 1, &err), &err);
    assert_ok(saved_load(&fresh, c, &err), &err);
    saved_check(&fresh, 9);
    ttn_checkpoint_close(c);
    saved_destroy(&fresh);
}

/* ---- damage ---- */

static void every_flipped_byte_is_found_before_use(void **state)
{
    (void)state;
    new_run();
    save(1);
    ttn_error err;
    int64_t n_flipped = 0;
    uint64_t random = ttn_test_seed();
    const int64_t stride = ttn_test_sanitized() ? 7 : 1;
    for (int f = 0; f < N_FILES; f++) {
        const char *path = at(1, files[f]);
        char kept[PATH_MAX];
        snprintf(kept, sizeof kept, "%s", path);
        content c = read_file(kept);
        FILE *file = fopen(kept, "r+");
        assert_non_null(file);
        for (size_t i = 0; i < c.n; i += (size_t)stride) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            int flipped = c.bytes[i] ^ (i % 3 ? 1 << (random >> 61) : 1 + (int)((random >> 32) % 255));
            fseek(file, (long)i, SEEK_SET);
            fputc(flipped, file);
            assert_int_equal(fflush(file), 0);
            ttn_status status = try_open(1, &err);
            if (status != TTN_ECHECKPOINT)
                fail_msg("%s, byte %zu: %02x for %02x: %s", files[f], i, flipped, c.bytes[i], ttn_status_name(status));
            assert_contains(err.text, files[f]);
            fseek(file, (long)i, SEEK_SET);
            fputc(c.bytes[i], file);
            n_flipped++;
        }
        fclose(file);
        free(c.bytes);
    }
    assert_int_equal(try_open(1, &err), TTN_OK);
    assert_true(n_flipped * stride > 15000 && n_flipped * stride < 40000);
}

static void cut_file_makes_way_for_the_older_checkpoint_and_the_message_says_so(void **state)
{
    (void)state;
    new_run();
    save(1);
    save(2);
    ttn_error err;
    for (int f = 0; f < N_FILES; f++) {
        content c = read_file(at(2, files[f]));
        for (size_t n = 0; n < c.n; n += 1000) {
            write_file(at(2, files[f]), c.bytes, n);
            assert_int_equal(newest(&err), 1);
            assert_contains(saved_said, "warning: checkpoint 2 is passed over: ");
            assert_contains(saved_said, files[f]);
        }
        unsigned char longer[1 << 16] = {0};
        memcpy(longer, c.bytes, c.n);
        write_file(at(2, files[f]), longer, c.n + 1);
        assert_int_equal(newest(&err), 1);
        assert_int_equal(remove(at(2, files[f])), 0);
        assert_int_equal(newest(&err), 1);
        assert_contains(saved_said, "is missing");
        assert_int_equal(symlink("/dev/null", at(2, files[f])), 0);
        assert_int_equal(newest(&err), 1);
        assert_contains(saved_said, "is not a regular file");
        assert_int_equal(remove(at(2, files[f])), 0);
        assert_int_equal(mkdir(at(2, files[f]), 0777), 0);
        assert_int_equal(newest(&err), 1);
        assert_int_equal(rmdir(at(2, files[f])), 0);
        write_file(at(2, files[f]), c.bytes, c.n);
        free(c.bytes);
    }
    assert_int_equal(newest(&err), 2);
    assert_string_equal(saved_said, "");
}

static void files_of_another_checkpoint_are_noticed(void **state)
{
    (void)state;
    new_run();
    save(1);
    save(2);
    ttn_error err;
    for (int f = 0; f < 3; f++) {
        content old = read_file(at(1, files[f])), new = read_file(at(2, files[f]));
        write_file(at(2, files[f]), old.bytes, old.n);
        assert_int_equal(try_open(2, &err), TTN_ECHECKPOINT);
        write_file(at(2, files[f]), new.bytes, new.n);
        free(old.bytes);
        free(new.bytes);
    }
    assert_int_equal(try_open(2, &err), TTN_OK);
}

static void when_none_can_be_used_the_newest_says_why(void **state)
{
    (void)state;
    new_run();
    save(1);
    save(2);
    ttn_error err;
    assert_int_equal(remove(at(1, files[0])), 0);
    assert_int_equal(remove(at(2, files[2])), 0);
    assert_int_equal(newest(&err), -1);
    assert_int_equal(err.status, TTN_ECHECKPOINT);
    assert_contains(err.text, "of 2 checkpoints none can be used; of the newest:");
    assert_contains(err.text, "state.json: is missing");
    assert_contains(saved_said, "checkpoint 1 is passed over");
}

/* Change a text in a manifest and let its own checksum be right again: what a later titin would have written. */
static void edit_manifest(int64_t step, const char *from, const char *to)
{
    char text[1 << 16], digits[TTN_HASH_TEXT];
    content c = read_file(at(step, "MANIFEST.json"));
    char *found = strstr((char *)c.bytes, from);
    assert_non_null(found);
    int n = snprintf(text, sizeof text, "%.*s%s%s", (int)(found - (char *)c.bytes), (char *)c.bytes, to,
                     found + strlen(from));
    size_t end = (size_t)n - strlen("\n  \"xxh3_128\": \"") - 32 - strlen("\"\n}\n");
    ttn_hash_print(ttn_hash128_of(text, end), digits);
    memcpy(text + end + strlen("\n  \"xxh3_128\": \""), digits, 32);
    write_file(at(step, "MANIFEST.json"), text, (size_t)n);
    free(c.bytes);
}

static void another_version_is_refused_and_not_passed_over(void **state)
{
    (void)state;
    new_run();
    save(1);
    save(2);
    edit_manifest(2, "\"format_version\": 1", "\"format_version\": 2");
    edit_manifest(2, "\"titin_version\": \"0.1.0\"", "\"titin_version\": \"7.3\"");
    ttn_error err;
    assert_int_equal(newest(&err), -1);
    assert_int_equal(err.status, TTN_ECHECKPOINT);
    assert_contains(err.text, "is 2, written by titin 7.3; this titin");
    assert_string_equal(saved_said, "");
    /* The same words without their checksum are damage. */
    content c = read_file(at(2, "MANIFEST.json"));
    c.bytes[c.n - 10] ^= 1;
    write_file(at(2, "MANIFEST.json"), c.bytes, c.n);
    free(c.bytes);
    assert_int_equal(newest(&err), 1);
}

static void what_no_manifest_says_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *words;
    } edits[] = {
        {"\"titin checkpoint\"", "\"titin store\"", "is 'titin store', and 'titin checkpoint' is expected"},
        {"\"format_version\": 1", "\"format_version\": 0", "format_version"},
        {"\"titin_version\"", "\"titin\"", "titin"},
        {"\"files\": {", "\"more\": 1,\n  \"files\": {", "more"},
        {"\"model.safetensors\"", "\"model\"", "is missing"},
        {"\"model.safetensors\"", "\"../state.json\"", "has a name that no file of this folder can have"},
        {"\"state.json\"", "\".state\"", "has a name that no file of this folder can have"},
        {"\"embed.weight\": \"", "\"embed\": \"", "which the manifest does not list"},
        {"\"embed.weight\": \"", "\"more\": \"00000000000000000000000000000000\", \"embed.weight\": \"",
         "the manifest lists"},
        {"\"embed.weight\": \"", "\"embed.weight\": \"x", "is no checksum"},
        {"\"bytes\": ", "\"bytes\": -", "bytes"},
        {"\"bytes\": ", "\"byte\": ", "byte"},
    };
    new_run();
    save(1);
    content c = read_file(at(1, "MANIFEST.json"));
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        ttn_error err;
        edit_manifest(1, edits[i].from, edits[i].to);
        if (try_open(1, &err) != TTN_ECHECKPOINT) fail_msg("%s: %s", edits[i].to, err.text);
        assert_contains(err.text, edits[i].words);
        write_file(at(1, "MANIFEST.json"), c.bytes, c.n);
    }
    free(c.bytes);
}

/* ---- another model ---- */

static ttn_weights *weights_of(void (*record)(ttn_graph *g))
{
    ttn_error err = {0};
    ttn_weights *w;
    ttn_graph *g = ttn_graph_create((ttn_extent){0});
    record(g);
    assert_ok(ttn_weights_create(g, NULL, &w, &err), &err);
    ttn_graph_destroy(g);
    return w;
}

static void small(ttn_graph *g)
{
    ttn_param(g, "a.weight", ttn_matrix(2, 3), (ttn_init){0}, 0);
    ttn_param(g, "b.weight", ttn_vector(4), (ttn_init){0}, 0);
}

static void misshapen(ttn_graph *g)
{
    ttn_param(g, "a.weight", ttn_matrix(3, 2), (ttn_init){0}, 0);
    ttn_param(g, "b.weight", ttn_vector(4), (ttn_init){0}, 0);
}

static void retyped(ttn_graph *g)
{
    ttn_param(g, "a.weight", ttn_matrix(2, 3), (ttn_init){0}, 0);
    ttn_state(g, "b.weight", ttn_typed(ttn_vector(4), TTN_I64));
}

static void larger(ttn_graph *g)
{
    small(g);
    ttn_param(g, "c.weight", ttn_vector(4), (ttn_init){0}, 0);
}

static void smaller(ttn_graph *g)
{
    ttn_param(g, "a.weight", ttn_matrix(2, 3), (ttn_init){0}, 0);
}

static void another_model_is_refused_and_left_as_it_was(void **state)
{
    (void)state;
    static const struct {
        void (*record)(ttn_graph *g);
        int with_moments;
        const char *words[3];
    } cases[] = {
        {misshapen, 0, {"'a.weight' is ", "[2, 3], and in this model ", "[3, 2]"}},
        {retyped, 0, {"'b.weight' is ", "and in this model I64 [4]", "[4]"}},
        {larger, 0, {"has no tensor 'c.weight', and this model has one", "[4]", "model.safetensors"}},
        {smaller, 0, {"holds 'b.weight', ", "[4], which this model does not have", "model.safetensors"}},
        {small, 1, {"has no optim-r0000-of-0001.safetensors: it was saved without an optimizer", "step", "step"}},
    };
    new_run();
    ttn_error err = {0};
    ttn_snapshot *s;
    ttn_checkpoint *c;
    const ttn_run_state then = saved_state(1);
    ttn_weights *w = weights_of(small);
    real numbers[6] = {1, 2, 3, 4, 5, 6};
    assert_ok(ttn_weights_write(w, ttn_weights_find(w, "a.weight"), TTN_SLAB_VALUE, numbers, &err), &err);
    assert_ok(ttn_snapshot_create(w, NULL, NULL, 0, &s, &err), &err);
    assert_ok(ttn_snapshot_take(s, w, NULL, &then, &err), &err);
    assert_ok(ttn_checkpoint_write(s, at(1, NULL), NULL, &err), &err);
    ttn_snapshot_destroy(s);
    ttn_weights_destroy(w);
    assert_ok(ttn_checkpoint_open(at(1, NULL), &c, NULL, &err), &err);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        w = weights_of(cases[i].record);
        assert_ok(ttn_weights_require(w, TTN_SLAB_V, &err), &err);
        err = (ttn_error){0};
        assert_fails(ttn_checkpoint_load(c, w, NULL, cases[i].with_moments, &err), TTN_ECHECKPOINT, &err,
                     cases[i].words[0]);
        assert_contains(err.text, cases[i].words[1]);
        assert_contains(err.text, cases[i].words[2]);
        real got[6], zeros[6] = {0};
        assert_ok(ttn_weights_read(w, ttn_weights_find(w, "a.weight"), TTN_SLAB_VALUE, got, &err), &err);
        assert_same_bits(got, zeros, sizeof got);
        ttn_weights_destroy(w);
        err = (ttn_error){0};
    }
    /* The same model, and a titin of the other precision: no configuration mends that. */
    double unused[6];
    const ttn_desc other = ttn_desc_of(sizeof(real) == 4 ? TTN_F64 : TTN_F32, TTN_FIXED, 2, 2, 3, 0);
    assert_fails(ttn_checkpoint_read(c, TTN_PART_MODEL, "a.weight", &other, unused, &err), TTN_ECHECKPOINT, &err,
                 "use a titin of its precision (make REAL=" TTN_REAL_NAME ")");
    err = (ttn_error){0};
    w = weights_of(small);
    assert_ok(ttn_checkpoint_load(c, w, NULL, 1, &err), &err); /* it has no moments, so none are asked for */
    ttn_weights_destroy(w);
    ttn_checkpoint_close(c);
}

/* It was whole when it was opened. */
static void change_after_opening_is_noticed(void **state)
{
    (void)state;
    new_run();
    save(1);
    ttn_error err = {0};
    ttn_checkpoint *c;
    saved_model m;
    saved_create(&m, WIDTH);
    assert_ok(ttn_checkpoint_open(at(1, NULL), &c, NULL, &err), &err);
    content bytes = read_file(at(1, files[0]));
    FILE *f = fopen(at(1, files[0]), "r+");
    assert_non_null(f);
    fseek(f, (long)bytes.n - 1, SEEK_SET);
    fputc(bytes.bytes[bytes.n - 1] ^ 1, f);
    fclose(f);
    assert_fails(saved_load(&m, c, &err), TTN_ECHECKPOINT, &err, "has changed since the checkpoint was opened");
    write_file(at(1, files[0]), bytes.bytes, bytes.n / 2);
    err = (ttn_error){0};
    assert_fails(saved_load(&m, c, &err), TTN_EIO, &err, "shorten");
    free(bytes.bytes);
    ttn_checkpoint_close(c);
    saved_destroy(&m);
}

/* ---- numbers that are not finite ---- */

static void weights_that_are_not_finite_are_not_saved_over_good_ones(void **state)
{
    (void)state;
    new_run();
    save(1);
    saved_model m;
    ttn_error err = {0};
    ttn_snapshot *s;
    const ttn_run_state then = saved_state(1);
    saved_create(&m, WIDTH);
    const real bad[] = {(real)NAN, (real)INFINITY, -(real)INFINITY};
    const ttn_slab slabs[] = {TTN_SLAB_VALUE, TTN_SLAB_M, TTN_SLAB_V};
    for (int i = 0; i < 3; i++) {
        saved_fill(&m, 2);
        int q = ttn_weights_find(m.w, "layer.0.q.bias");
        real bias[WIDTH];
        assert_ok(ttn_weights_read(m.w, q, slabs[i], bias, &err), &err);
        bias[WIDTH - 1] = bad[i];
        assert_ok(ttn_weights_write(m.w, q, slabs[i], bias, &err), &err);
        assert_ok(ttn_snapshot_create(m.w, NULL, m.more, SAVED_N_MORE, &s, &err), &err);
        assert_ok(ttn_snapshot_take(s, m.w, m.more, &then, &err), &err);
        err = (ttn_error){0};
        assert_fails(ttn_checkpoint_write(s, at(1, NULL), NULL, &err), TTN_ENUMERIC, &err, "layer.0.q.bias");
        char words[80];
        snprintf(words, sizeof words, "1 are NaN or infinite (the first: number %d)", WIDTH - 1);
        assert_contains(err.text, words);
        ttn_snapshot_destroy(s);
        err = (ttn_error){0};
    }
    saved_fill(&m, 2);
    m.average[3] = NAN;
    assert_ok(ttn_snapshot_create(m.w, NULL, m.more, SAVED_N_MORE, &s, &err), &err);
    assert_ok(ttn_snapshot_take(s, m.w, m.more, &then, &err), &err);
    assert_fails(ttn_checkpoint_write(s, at(1, NULL), NULL, &err), TTN_ENUMERIC, &err, "average");
    ttn_snapshot_destroy(s);
    saved_destroy(&m);
    assert_int_equal(newest(&err), 1);
}

/* ---- the state ---- */

static ttn_status drop(void *ctx, const char *bytes, size_t n, ttn_error *err)
{
    (void)ctx;
    (void)bytes;
    (void)n;
    (void)err;
    return TTN_OK;
}

static void state_that_would_not_read_back_is_not_written(void **state)
{
    (void)state;
    ttn_error err = {0};
    double window[2] = {1, NAN};
    const ttn_named_series series = {"loss", window, 2};
    ttn_run_state s = saved_state(1);
    s.series = &series;
    s.n_series = 1;
    assert_fails(ttn_run_state_write(&s, drop, NULL, &err), TTN_EINVAL, &err, "loss[1] is not finite");
    const ttn_named_number twice[] = {{"data", 1}, {"data", 2}};
    s = saved_state(1);
    s.seed = twice;
    err = (ttn_error){0};
    assert_fails(ttn_run_state_write(&s, drop, NULL, &err), TTN_EINVAL, &err, "stands twice");
    s = saved_state(1);
    s.config = "\xFF";
    err = (ttn_error){0};
    assert_fails(ttn_run_state_write(&s, drop, NULL, &err), TTN_EINVAL, &err, "no UTF-8");
}

/* The text of a state as it is written, to the file `path`. */
static ttn_status add_bytes(void *ctx, const char *bytes, size_t n, ttn_error *err)
{
    (void)err;
    assert_int_equal(fwrite(bytes, 1, n, ctx), n);
    return TTN_OK;
}

static void write_state(const char *path, const ttn_run_state *s)
{
    ttn_error err = {0};
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_ok(ttn_run_state_write(s, add_bytes, f, &err), &err);
    assert_int_equal(fclose(f), 0);
}

/* A run at step 6, of 4 batches each, with one number of it changed. */
static void number_that_cannot_be_is_refused(void **state)
{
    (void)state;
    enum { STEP = 6 };
    const int64_t huge = INT64_C(1) << 53;
    const struct {
        int64_t step, epoch, window, batch, shards;
        double skipped[2], residues, best[2], longest;
        const char *why; /* NULL: it can be */
    } cases[] = {
        {STEP, 3, 2, 19, 4, {2, 1}, 900, {6, 2.5}, 102, NULL},
        {STEP, 24, 0, 0, 4, {6, 6}, 0x1p53, {-1, 0}, 0, NULL},
        {huge, huge, huge, huge, 4, {2, 1}, 900, {6, 2.5}, 102, NULL},
        {huge + 1, 3, 2, 19, 4, {2, 1}, 900, {6, 2.5}, 102, "'step' is 9007199254740993"},
        {STEP, huge + 1, 0, 0, 4, {2, 1}, 900, {6, 2.5}, 102, "'epoch' is 9007199254740993"},
        {STEP, INT64_MAX, 0, 0, 4, {2, 1}, 900, {6, 2.5}, 102, "'epoch' is 9223372036854775807"},
        {STEP, 0, -1, 0, 4, {2, 1}, 900, {6, 2.5}, 102, "'window' is -1"},
        {STEP, 3, 2, 20, 4, {2, 1}, 900, {6, 2.5}, 102, "epoch 3, window 2, batch 20, and 6 steps of 4 batches cannot"},
        {STEP, 25, 0, 0, 4, {2, 1}, 900, {6, 2.5}, 102, "epoch 25, window 0, batch 0, and 6 steps of 4 batches cannot"},
        {STEP, 3, 2, 19, huge + 1, {2, 1}, 900, {6, 2.5}, 102, "'shards' is 9007199254740993"},
        {STEP,
         3,
         2,
         19,
         4,
         {7, 1},
         900,
         {6, 2.5},
         102,
         "number 1 of 'skipped' is 7, and should be a whole number from 0 to 6"},
        {STEP, 3, 2, 19, 4, {-1, 0}, 900, {6, 2.5}, 102, "number 1 of 'skipped' is -1"},
        {STEP, 3, 2, 19, 4, {1.5, 0}, 900, {6, 2.5}, 102, "number 1 of 'skipped' is 1.5"},
        {STEP, 3, 2, 19, 4, {1e300, 0}, 900, {6, 2.5}, 102, "number 1 of 'skipped' is 1"},
        {STEP,
         3,
         2,
         19,
         4,
         {2, 3},
         900,
         {6, 2.5},
         102,
         "number 2 of 'skipped' is 3, and should be a whole number from 0 to 2"},
        {STEP, 3, 2, 19, 4, {2, 1}, -1, {6, 2.5}, 102, "number 1 of 'residues' is -1"},
        {STEP, 3, 2, 19, 4, {2, 1}, 0.5, {6, 2.5}, 102, "number 1 of 'residues' is 0.5"},
        {STEP, 3, 2, 19, 4, {2, 1}, 1e16, {6, 2.5}, 102, "number 1 of 'residues' is 1"},
        {STEP, 3, 2, 19, 4, {2, 1}, 900, {7, 2.5}, 102, "number 1 of 'best' is 7"},
        {STEP, 3, 2, 19, 4, {2, 1}, 900, {-2, 2.5}, 102, "number 1 of 'best' is -2"},
        {STEP, 3, 2, 19, 4, {2, 1}, 900, {5.5, 2.5}, 102, "number 1 of 'best' is 5.5"},
        {STEP,
         3,
         2,
         19,
         4,
         {2, 1},
         900,
         {6, -0.5},
         102,
         "number 2 of 'best' is -0.5, and should be a number from 0 to"},
        {STEP, 3, 2, 19, 4, {2, 1}, 900, {6, 2.5}, -1, "number 1 of 'longest' is -1"},
        {STEP, 3, 2, 19, 4, {2, 1}, 900, {6, 2.5}, 1e300, "number 1 of 'longest' is 1"},
    };
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/state.json", ttn_test_folder());
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ttn_run_state s = saved_state(cases[i].step);
        const ttn_named_series series[] = {
            {"skipped", cases[i].skipped, 2},
            {"residues", &cases[i].residues, 1},
            {"best", cases[i].best, 2},
            {"longest", &cases[i].longest, 1},
        };
        s.cursor.epoch = cases[i].epoch;
        s.cursor.window = cases[i].window;
        s.cursor.batch = cases[i].batch;
        s.shards = cases[i].shards;
        s.series = series;
        s.n_series = sizeof series / sizeof *series;
        write_state(path, &s);
        ttn_error err = {0};
        ttn_run_state_file *f;
        ttn_status status = ttn_run_state_read(path, &f, &err);
        ttn_run_state_close(f);
        if (!cases[i].why) {
            assert_ok(status, &err);
            continue;
        }
        assert_fails(status, TTN_ECHECKPOINT, &err, cases[i].why);
        assert_contains(err.text, "/state.json:"); /* and where */
    }
}

static void series_of_another_length_is_refused(void **state)
{
    (void)state;
    char path[PATH_MAX];
    const double zeros[3] = {0};
    static const struct {
        const char *name;
        int64_t n;
    } wrong[] = {{"skipped", 1}, {"residues", 2}, {"best", 3}, {"longest", 0}};
    snprintf(path, sizeof path, "%s/state.json", ttn_test_folder());
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ttn_run_state s = saved_state(6);
        const ttn_named_series series = {wrong[i].name, zeros, wrong[i].n};
        s.series = &series;
        s.n_series = 1;
        write_state(path, &s);
        ttn_error err = {0};
        ttn_run_state_file *f;
        assert_fails(ttn_run_state_read(path, &f, &err), TTN_ECHECKPOINT, &err, "numbers, and should have");
    }
}

static void every_difference_that_reaches_the_bits_is_told(void **state)
{
    (void)state;
    const ttn_run_state then = saved_state(1);
    ttn_run_state now = saved_state(1);
    ttn_run_state recorded = then;
    recorded.real = TTN_REAL_NAME;
    saved_forget();
    now.ranks = 4;
    assert_int_equal(ttn_run_state_is_exact(&recorded, &now, &saved_log), 1);
    assert_string_equal(saved_said, "");
    now.kernel = "SkylakeX";
    now.row_tile = 240;
    now.batch_align = 1;
    now.shards = 2;
    now.device = "cuda";
    now.real = "bf16";
    assert_int_equal(ttn_run_state_is_exact(&recorded, &now, &saved_log), 0);
    assert_contains(saved_said, "resume is exact only up to rounding: the kernel of the BLAS was Zen, is now SkylakeX");
    assert_contains(saved_said, "the row tile was 480, is now 240");
    assert_contains(saved_said, "the alignment of sequences in a batch was 12, is now 1");
    assert_contains(saved_said, "the number of shards was 4, is now 2");
    assert_contains(saved_said, "the device was cpu, is now cuda");
    assert_contains(saved_said, "the precision was " TTN_REAL_NAME ", is now bf16");
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    if (!ttn_test_long() && access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1); /* fsync is not what counts */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_saved_is_loaded_to_the_bit),
        cmocka_unit_test(what_a_checkpoint_holds_is_what_other_programs_expect),
        cmocka_unit_test(names_of_the_model_file_are_the_callers),
        cmocka_unit_test(weights_can_be_loaded_without_the_optimizer),
        cmocka_unit_test(every_flipped_byte_is_found_before_use),
        cmocka_unit_test(cut_file_makes_way_for_the_older_checkpoint_and_the_message_says_so),
        cmocka_unit_test(files_of_another_checkpoint_are_noticed),
        cmocka_unit_test(when_none_can_be_used_the_newest_says_why),
        cmocka_unit_test(another_version_is_refused_and_not_passed_over),
        cmocka_unit_test(what_no_manifest_says_is_refused),
        cmocka_unit_test(another_model_is_refused_and_left_as_it_was),
        cmocka_unit_test(change_after_opening_is_noticed),
        cmocka_unit_test(weights_that_are_not_finite_are_not_saved_over_good_ones),
        cmocka_unit_test(state_that_would_not_read_back_is_not_written),
        cmocka_unit_test(number_that_cannot_be_is_refused),
        cmocka_unit_test(series_of_another_length_is_refused),
        cmocka_unit_test(every_difference_that_reaches_the_bits_is_told),
    };
    return ttn_test_run(tests);
}
