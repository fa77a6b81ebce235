/* metrics.jsonl: lines that are whole or not there, and what a resumed run cuts. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/harness/shim.h"
#include "tests/harness/test.h"
#include "train/files/metrics_log.h"

static char path[PATH_MAX];

static int set_path(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "%s/metrics.jsonl", ttn_test_folder());
    unlink(path);
    return 0;
}

/* With a 0 behind it; good until the next call. */
static const char *contents(void)
{
    static char text[1 << 16];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

static void put(const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fputs(text, f) < 0, 0);
    fclose(f);
}

static ttn_status add_step(ttn_metrics_log *l, int64_t step, double loss, ttn_error *err)
{
    ttn_metrics r = {.step = step, .date = 1767225600 + step};
    ttn_metrics_add(&r, ttn_metric_train_loss, loss);
    ttn_status status = ttn_metrics_log_add(l, &r, err);
    ttn_metrics_drop(&r);
    return status;
}

static ttn_metrics_log *open_log(int64_t step)
{
    ttn_metrics_log *l;
    ttn_error err = {0};
    assert_ok(ttn_metrics_log_open(path, step, NULL, NULL, NULL, NULL, &l, &err), &err);
    return l;
}

/* What was said. */
static char said[4096];

static void say(void *ctx, ttn_log_level level, const char *text)
{
    (void)ctx;
    (void)level;
    const size_t n = strlen(said);
    snprintf(said + n, sizeof said - n, "%s\n", text);
}

static const ttn_log to_said = {.say = say};

/* ---- writing ---- */

static void a_line_is_a_record(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_metrics_log *l = open_log(0);
    ttn_metrics r = {.step = 1200, .date = 1767225600};
    ttn_metrics_add(&r, "train/loss", 2.7134);
    ttn_metrics_add(&r, "train/lr", 3e-4);
    ttn_metrics_add(&r, "train/third", 1.0 / 3);
    ttn_metrics_add(&r, "train/targets", 123456789);
    ttn_metrics_add(&r, "val/ppl", (double)NAN);
    ttn_metrics_add(&r, "train/grad_norm", (double)INFINITY);
    assert_ok(ttn_metrics_log_add(l, &r, &err), &err);
    ttn_metrics_drop(&r);
    ttn_metrics_log_close(l);
    assert_string_equal(contents(),
                        "{\"step\":1200,\"date\":1767225600,\"train/loss\":2.7134,\"train/lr\":0.0003,\"train/third\":"
                        "0.3333333333333333,\"train/targets\":123456789,\"val/ppl\":null,\"train/grad_norm\":null}\n");
}

static ttn_status compare(void *ctx, const ttn_metrics *r, ttn_error *err)
{
    (void)err;
    const ttn_metrics *wrote = ctx;
    assert_int_equal(r->step, wrote->step);
    assert_int_equal(r->date, wrote->date);
    assert_int_equal(r->n, wrote->n);
    for (int64_t i = 0; i < r->n; i++) {
        assert_string_equal(r->metric[i].name, wrote->metric[i].name);
        assert_same_bits(&r->metric[i].value, &wrote->metric[i].value, sizeof(double));
    }
    return TTN_OK;
}

static void numbers_read_back_to_the_bit(void **state)
{
    (void)state;
    static const double values[] = {0.1,
                                    -0.1,
                                    1e300,
                                    4.9e-324,
                                    2.2250738585072014e-308,
                                    1.7976931348623157e308,
                                    1e15,
                                    1e16,
                                    1e21,
                                    123456.7,
                                    0,
                                    9007199254740993.0,
                                    -5e5,
                                    1234567};
    ttn_error err = {0};
    ttn_metrics r = {.step = INT64_MAX, .date = 5};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char name[8];
        snprintf(name, sizeof name, "v%zu", i);
        ttn_metrics_add(&r, name, values[i]);
    }
    ttn_metrics_log *l = open_log(0);
    assert_ok(ttn_metrics_log_add(l, &r, &err), &err);
    ttn_metrics_log_close(l);
    int64_t damaged;
    assert_ok(ttn_metrics_log_read(path, compare, &r, &damaged, &err), &err);
    assert_int_equal(damaged, 0);
    ttn_metrics_drop(&r);
}

static ttn_status count(void *ctx, const ttn_metrics *r, ttn_error *err)
{
    (void)r;
    (void)err;
    ++*(int64_t *)ctx;
    return TTN_OK;
}

static ttn_status expect_next_step(void *ctx, const ttn_metrics *r, ttn_error *err)
{
    (void)err;
    int64_t *seen = ctx;
    ++*seen;
    assert_int_equal(r->step, *seen);
    return TTN_OK;
}

/* ---- what a resumed run cuts ---- */

static void later_lines_are_cut_and_that_is_told(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_metrics_log *l = open_log(0);
    for (int64_t step = 10; step <= 100; step += 10)
        assert_ok(add_step(l, step, 1, &err), &err);
    ttn_metrics_log_close(l);
    int64_t kept = 0;
    said[0] = 0;
    assert_ok(ttn_metrics_log_open(path, 70, count, &kept, NULL, &to_said, &l, &err), &err);
    assert_int_equal(kept, 7);
    assert_contains(said, "/metrics.jsonl: 3 lines of steps 80 to 100 cut: the run goes on after step 70\n");
    assert_ok(add_step(l, 80, 2, &err), &err);
    ttn_metrics_log_close(l);
    const char *text = contents();
    assert_contains(text,
                    "{\"step\":70,\"date\":1767225670,\"train/loss\":1}\n{\"step\":80,\"date\":1767225680,\"train/"
                    "loss\":2}\n");
    assert_null(strstr(text, "\"step\":90"));
    assert_non_null(strstr(text, "{\"step\":10,"));
}

static void a_log_that_needs_no_cut_is_not_touched(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_metrics_log *l = open_log(0);
    assert_ok(add_step(l, 10, 1, &err), &err);
    ttn_metrics_log_close(l);
    struct stat before, after;
    assert_int_equal(stat(path, &before), 0);
    said[0] = 0;
    assert_ok(ttn_metrics_log_open(path, 10, NULL, NULL, NULL, &to_said, &l, &err), &err);
    ttn_metrics_log_close(l);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_string_equal(said, "");
}

/* cp -al makes a copy of a run whose files have two names; somebody may plant a link. Neither gets what is measured here. */
static void another_name_of_the_file_keeps_what_it_has(void **state)
{
    (void)state;
    for (int is_symbolic = 0; is_symbolic < 2; is_symbolic++) {
        ttn_error err = {0};
        char other[PATH_MAX + 8];
        ttn_metrics_log *l = open_log(0);
        assert_ok(add_step(l, 10, 1, &err), &err);
        ttn_metrics_log_close(l);
        struct stat before, after;
        snprintf(other, sizeof other, "%s.other", path);
        (void)unlink(other);
        if (is_symbolic) {
            assert_int_equal(rename(path, other), 0);
            assert_int_equal(symlink(other, path), 0);
        } else {
            assert_int_equal(link(path, other), 0);
        }
        assert_int_equal(stat(other, &before), 0);
        assert_ok(ttn_metrics_log_open(path, 10, NULL, NULL, NULL, &to_said, &l, &err), &err);
        assert_ok(add_step(l, 20, 1, &err), &err);
        ttn_metrics_log_close(l);
        assert_int_equal(stat(other, &after), 0);
        assert_int_equal(before.st_size, after.st_size);
        assert_int_equal(lstat(path, &after), 0);
        assert_true(S_ISREG(after.st_mode) && after.st_size > before.st_size);
        assert_non_null(strstr(contents(), "{\"step\":10,"));
        assert_int_equal(unlink(other), 0);
    }
}

static void lines_that_are_no_records_are_cut(void **state)
{
    (void)state;
    static const char *const damaged[] = {
        "",
        " ",
        "{}",
        "{\"step\":1",
        "{\"date\":1}",
        "[1]",
        "{\"step\":1.5}",
        "{\"step\":-1}",
        "{\"step\":1,\"step\":1}",
        "{\"step\":1,\"a\":1,\"a\":2}",
        "{\"step\":1} x",
        "{\"step\":1,\"a\":nan}",
        "{\"step\":\"1\"}",
        "\x01\x02",
        "null",
    };
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        char text[256];
        ttn_error err = {0};
        ttn_metrics_log *l;
        snprintf(text, sizeof text, "{\"step\":1,\"a\":1}\n%s\n{\"step\":2,\"a\":2}\n", damaged[i]);
        put(text);
        said[0] = 0;
        assert_ok(ttn_metrics_log_open(path, 5, NULL, NULL, NULL, &to_said, &l, &err), &err);
        ttn_metrics_log_close(l);
        assert_string_equal(contents(), "{\"step\":1,\"a\":1}\n{\"step\":2,\"a\":2}\n");
        assert_contains(said, "1 line cut that was no record (the first was line 2)");
    }
}

/* A crash of the machine can leave any part of a line, also one that is a whole record but for its end. */
static void a_torn_last_line_is_cut_wherever_it_is_torn(void **state)
{
    (void)state;
    static const char whole[] = "{\"step\":1,\"a\":1}\n{\"step\":2,\"date\":3,\"a\":0.25}\n";
    const size_t first = strcspn(whole, "\n") + 1;
    for (size_t n = first + 1; n < sizeof whole - 1; n++) {
        char text[sizeof whole] = "";
        memcpy(text, whole, n);
        put(text);
        ttn_metrics_log_close(open_log(5));
        assert_int_equal(strlen(contents()), first);
    }
    put(whole);
    ttn_metrics_log_close(open_log(5));
    assert_string_equal(contents(), whole);
}

static void keys_of_later_versions_are_kept_and_passed_over(void **state)
{
    (void)state;
    static const char line[] = "{\"a\":1,\"more\":{\"x\":[1,\"y\"]},\"note\":\"hi\",\"step\":4,\"b c\":7}\n";
    ttn_error err = {0};
    int64_t n = 0, damaged = 0;
    put(line);
    ttn_metrics_log_close(open_log(4));
    assert_string_equal(contents(), line);
    assert_ok(ttn_metrics_log_read(path, count, &n, &damaged, &err), &err);
    assert_int_equal(n, 1);
    assert_int_equal(damaged, 0);
}

static void lines_of_any_length_are_read(void **state)
{
    (void)state;
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < 3; i++) {
        fprintf(f, "{\"step\":%d,\"text\":\"", i);
        for (int k = 0; k < (i == 1 ? 3 << 20 : 300000); k++) /* the second is longer than anything that is a record */
            putc('x', f);
        fputs("\"}\n", f);
    }
    fclose(f);
    ttn_error err = {0};
    int64_t n = 0, damaged = 0;
    assert_ok(ttn_metrics_log_read(path, count, &n, &damaged, &err), &err);
    assert_int_equal(n, 2);
    assert_int_equal(damaged, 1);
}

/* Each name is compared with those before it: a line of any number of them would take as long as its length squared. */
static void a_line_of_too_many_metrics_is_no_record(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        ttn_error err = {0};
        int64_t n = 0, damaged = 0;
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs("{\"step\":1", f);
        for (int i = 0; i < TTN_MOST_METRICS + more; i++)
            fprintf(f, ",\"x/%d\":1", i);
        fputs("}\n", f);
        fclose(f);
        assert_ok(ttn_metrics_log_read(path, count, &n, &damaged, &err), &err);
        assert_int_equal(n, 1 - more);
        assert_int_equal(damaged, more);
    }
}

/* A million lines are a matter of seconds: each byte is moved a few times, not once for every line before it. Written here
 * without the log, which calls write for each. */
static void a_long_log_is_read_in_order(void **state)
{
    (void)state;
    const int64_t n = ttn_scaled(200000, 20000);
    ttn_error err = {0};
    int64_t seen = 0, damaged = 0;
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int64_t i = 1; i <= n; i++)
        fprintf(f, "{\"step\":%lld,\"date\":1767225600,\"train/loss\":2.7134,\"train/lr\":0.0003}\n", (long long)i);
    fclose(f);
    assert_ok(ttn_metrics_log_read(path, expect_next_step, &seen, &damaged, &err), &err);
    assert_int_equal(seen, n);
    assert_int_equal(damaged, 0);
}

static void a_record_too_long_to_be_read_is_not_written(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_metrics_log *l = open_log(0);
    ttn_metrics r = {.step = 1};
    for (int i = 0; i < 2000; i++) { /* 70 KiB: longer than what is read at first */
        char name[TTN_METRIC_TEXT];
        snprintf(name, sizeof name, "layer.%d/head.%d/of_a_name_that_is_long", i / 8, i % 8);
        ttn_metrics_add(&r, name, i);
    }
    assert_ok(ttn_metrics_log_add(l, &r, &err), &err);
    assert_ok(ttn_metrics_log_read(path, compare, &r, NULL, &err), &err);
    ttn_metrics_drop(&r);
    r = (ttn_metrics){.n = 20000, .metric = calloc(20000, sizeof *r.metric)};
    assert_non_null(r.metric);
    for (int i = 0; i < 20000; i++)
        snprintf(r.metric[i].name, TTN_METRIC_TEXT, "layer.%05d/of_a_name_that_is_long_enough_for_a_line_of_a_megabyte",
                 i);
    assert_fails(ttn_metrics_log_add(l, &r, &err), TTN_EINTERNAL, &err, "20000 numbers is too long for a line");
    free(r.metric);
    ttn_metrics_log_close(l);
}

/* ---- faults ---- */

/* Every call of opening with a cut fails once: the log is as it was or as it should be. */
static void a_cut_is_made_whole_or_not_at_all(void **state)
{
    (void)state;
    static const char whole[] = "{\"step\":1,\"a\":1}\n{\"step\":2,\"a\":2}\n{\"step\":3}\n{\"st";
    static const char after[] = "{\"step\":1,\"a\":1}\n{\"step\":2,\"a\":2}\n";
    int hit = 1, n_failed = 0;
    for (int nth = 1; hit; nth++) {
        ttn_metrics_log *l;
        ttn_error err = {0};
        put(whole);
        shim_arm(SHIM_FILES | SHIM_READ | SHIM_ALLOC, nth, SHIM_FAIL, ENOSPC, 0);
        ttn_status status = ttn_metrics_log_open(path, 2, NULL, NULL, NULL, NULL, &l, &err);
        shim_disarm();
        hit = shim_was_hit();
        ttn_metrics_log_close(l);
        assert_int_equal(status == TTN_OK, l != NULL);
        if (status != TTN_OK) n_failed++;
        if (strcmp(contents(), whole) != 0 || status == TTN_OK) assert_string_equal(contents(), after);
    }
    assert_true(n_failed > 8);
}

static void lines_that_the_disk_refuses_are_errors_and_come_before_the_next_that_it_takes(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_metrics_log *l = open_log(0);
    assert_ok(add_step(l, 1, 0.5, &err), &err);
    static const char before[] = "{\"step\":1,\"date\":1767225601,\"train/loss\":0.5}\n";
    assert_string_equal(contents(), before);
    for (int step = 2; step <= 3; step++) {
        shim_arm(SHIM_WRITE, 1, SHIM_FAIL, ENOSPC, 1);
        err = (ttn_error){0};
        assert_fails(add_step(l, step, 0.5, &err), TTN_EIO, &err,
                     "metrics.jsonl: a line cannot be added: No space left");
        shim_disarm();
        assert_string_equal(contents(), before);
    }
    err = (ttn_error){0};
    assert_ok(add_step(l, 4, 0.5, &err), &err);
    assert_string_equal(contents(), "{\"step\":1,\"date\":1767225601,\"train/loss\":0.5}\n"
                                    "{\"step\":2,\"date\":1767225602,\"train/loss\":0.5}\n"
                                    "{\"step\":3,\"date\":1767225603,\"train/loss\":0.5}\n"
                                    "{\"step\":4,\"date\":1767225604,\"train/loss\":0.5}\n");
    ttn_metrics_log_close(l);
}

/* Where no line comes any more, a sync or the end of the run brings what waited. */
static void lines_that_waited_are_written_at_a_sync_and_at_the_end(void **state)
{
    (void)state;
    for (int asks = 0; asks < 2; asks++) {
        ttn_error err = {0};
        ttn_metrics_log *l = open_log(0);
        shim_arm(SHIM_WRITE, 1, SHIM_FAIL, ENOSPC, 1);
        assert_fails(add_step(l, 1, 0.5, &err), TTN_EIO, &err, "No space left");
        err = (ttn_error){0};
        assert_fails(ttn_metrics_log_sync(l, &err), TTN_EIO, &err, "No space left");
        shim_disarm();
        assert_string_equal(contents(), "");
        err = (ttn_error){0};
        if (asks) assert_ok(ttn_metrics_log_sync(l, &err), &err);
        if (asks) assert_contains(contents(), "{\"step\":1,");
        ttn_metrics_log_close(l);
        assert_contains(contents(), "{\"step\":1,");
    }
}

/* A limit on the file's size lets a part of a line through, as a full disk does. */
static int fill_the_disk(void *arg)
{
    ttn_error err = {0};
    (void)arg;
    ttn_metrics_log *l = open_log(0);
    int64_t step = 1;
    while (add_step(l, step, 0.123456789, &err) == TTN_OK)
        step++;
    ttn_metrics_log_close(l);
    const char *text = contents();
    const size_t n = strlen(text);
    printf("%s\n%d\n", err.text, n > 900 && n < 1000 && text[n - 1] == '\n');
    return 0;
}

static void a_full_disk_leaves_whole_lines(void **state)
{
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    const ttn_child child = run_in_child((ttn_child_limit){.file_size = 1000}, fill_the_disk, NULL);
    assert_int_equal(child.exit_code, 0);
    assert_contains(child.output, "a line cannot be added: File too large");
    assert_contains(child.output, "\n1\n");
}

static double hand(void *ctx)
{
    return *(double *)ctx;
}

static int n_fsync;

static int count_fsync(void *ctx, const shim_call *call)
{
    (void)ctx;
    n_fsync += strcmp(call->name, "fsync") == 0;
    return 0;
}

static void lines_reach_the_disk_every_30_seconds_and_when_asked(void **state)
{
    (void)state;
    double now = 1000;
    const ttn_clock clock = {.now = hand, .ctx = &now};
    ttn_metrics_log *l;
    ttn_error err = {0};
    assert_ok(ttn_metrics_log_open(path, 0, NULL, NULL, &clock, NULL, &l, &err), &err);
    n_fsync = 0;
    shim_watch(count_fsync, NULL);
    for (int i = 0; i < 29; i++, now++)
        assert_ok(add_step(l, i, 1, &err), &err);
    assert_int_equal(n_fsync, 0);
    now++;
    assert_ok(add_step(l, 30, 1, &err), &err);
    assert_int_equal(n_fsync, 1);
    assert_ok(ttn_metrics_log_sync(l, &err), &err); /* nothing new */
    assert_int_equal(n_fsync, 1);
    assert_ok(add_step(l, 31, 1, &err), &err);
    assert_ok(ttn_metrics_log_sync(l, &err), &err);
    assert_int_equal(n_fsync, 2);
    shim_watch(NULL, NULL);
    ttn_metrics_log_close(l);
}

static void what_is_no_file_is_a_sentence(void **state)
{
    (void)state;
    ttn_metrics_log *l;
    ttn_error err = {0};
    assert_int_equal(mkdir(path, 0700), 0);
    assert_fails(ttn_metrics_log_open(path, 0, NULL, NULL, NULL, NULL, &l, &err), TTN_EINVAL, &err, "is a folder");
    assert_null(l);
    rmdir(path);
    snprintf(path, sizeof path, "%s/nowhere/metrics.jsonl", ttn_test_folder());
    err = (ttn_error){0};
    assert_fails(ttn_metrics_log_open(path, 0, NULL, NULL, NULL, NULL, &l, &err), TTN_EINVAL, &err, "nowhere");
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_line_is_a_record, set_path),
        cmocka_unit_test_setup(numbers_read_back_to_the_bit, set_path),
        cmocka_unit_test_setup(later_lines_are_cut_and_that_is_told, set_path),
        cmocka_unit_test_setup(a_log_that_needs_no_cut_is_not_touched, set_path),
        cmocka_unit_test_setup(another_name_of_the_file_keeps_what_it_has, set_path),
        cmocka_unit_test_setup(lines_that_are_no_records_are_cut, set_path),
        cmocka_unit_test_setup(a_torn_last_line_is_cut_wherever_it_is_torn, set_path),
        cmocka_unit_test_setup(keys_of_later_versions_are_kept_and_passed_over, set_path),
        cmocka_unit_test_setup(lines_of_any_length_are_read, set_path),
        cmocka_unit_test_setup(a_line_of_too_many_metrics_is_no_record, set_path),
        cmocka_unit_test_setup(a_long_log_is_read_in_order, set_path),
        cmocka_unit_test_setup(a_record_too_long_to_be_read_is_not_written, set_path),
        cmocka_unit_test_setup(a_cut_is_made_whole_or_not_at_all, set_path),
        cmocka_unit_test_setup(lines_that_waited_are_written_at_a_sync_and_at_the_end, set_path),
        cmocka_unit_test_setup(lines_that_the_disk_refuses_are_errors_and_come_before_the_next_that_it_takes, set_path),
        cmocka_unit_test_setup(a_full_disk_leaves_whole_lines, set_path),
        cmocka_unit_test_setup(lines_reach_the_disk_every_30_seconds_and_when_asked, set_path),
        cmocka_unit_test_setup(what_is_no_file_is_a_sentence, set_path),
    };
    return ttn_test_run(tests);
}
