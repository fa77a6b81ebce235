/* TensorBoard's event file: the bytes that the tensorboard package reads (tests/reference/event_file.py). */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/harness/shim.h"
#include "tests/harness/test.h"
#include "train/files/event_file.h"

static int64_t a_date(void *ctx)
{
    return ctx ? *(int64_t *)ctx : 1767225600;
}

static const ttn_clock stopped = {.date = a_date};

static void checksums_are_castagnoli_s(void **state)
{
    (void)state;
    unsigned char bytes[32];
    assert_int_equal(ttn_crc32c("123456789", 9), 0xE3069283);
    assert_int_equal(ttn_crc32c("", 0), 0);
    /* RFC 3720, B.4 */
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(ttn_crc32c(bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(ttn_crc32c(bytes, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        bytes[i] = (unsigned char)i;
    assert_int_equal(ttn_crc32c(bytes, 32), 0x46dd794e);
}

/* A run of three records, resumed after step 200 and one record more: two files. */
static void write_sample(const char *folder)
{
    ttn_error err = {0};
    ttn_event_file *f;
    char name[PATH_MAX];
    assert_ok(ttn_event_file_create(folder, "host/1", 0, &stopped, &f, &err), &err);
    for (int64_t step = 100; step <= 300; step += 100) {
        ttn_metrics r = {.step = step, .date = 1767225600 + step};
        ttn_metrics_add(&r, ttn_metric_train_loss, 3 - (double)step / 1000);
        ttn_metrics_add(&r, ttn_metric_train_lr, 3e-4);
        if (step == 300) ttn_metrics_add(&r, ttn_metric_val_ppl, (double)NAN);
        assert_ok(ttn_event_file_add(f, &r, &err), &err);
        ttn_metrics_drop(&r);
    }
    snprintf(name, sizeof name, "%s/first", folder);
    assert_int_equal(link(ttn_event_file_path(f), name), 0);
    ttn_event_file_close(f);
    int64_t later = 1767229200;
    const ttn_clock clock = {.date = a_date, .ctx = &later};
    assert_ok(ttn_event_file_create(folder, "host/1", 201, &clock, &f, &err), &err);
    ttn_metrics r = {.step = 300, .date = later + 1};
    ttn_metrics_add(&r, ttn_metric_train_loss, 2.5);
    assert_ok(ttn_event_file_add(f, &r, &err), &err);
    ttn_metrics_drop(&r);
    snprintf(name, sizeof name, "%s/second", folder);
    assert_int_equal(link(ttn_event_file_path(f), name), 0);
    ttn_event_file_close(f);
}

/* With tests/reference/event_file.py. */
static int write_sample_for_others(int argc, char **argv)
{
    if (argc != 1) return 2;
    write_sample(argv[0]);
    return 0;
}

static size_t get(const char *folder, const char *name, unsigned char *bytes, size_t room)
{
    char path[PATH_MAX];
    assert_true(snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path);
    FILE *f = fopen(path, "r");
    if (!f) fail_msg("%s: %s", path, strerror(errno));
    const size_t n = fread(bytes, 1, room, f);
    fclose(f);
    return n;
}

static void the_bytes_are_those_that_tensorboard_read(void **state)
{
    (void)state;
    static const char *const names[] = {"first", "second"};
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s/tb", ttn_test_folder());
    assert_int_equal(mkdir(folder, 0700), 0);
    write_sample(folder);
    for (int i = 0; i < 2; i++) {
        unsigned char ours[4096], golden[4096];
        char name[64];
        snprintf(name, sizeof name, "events-%s.tfevents", names[i]);
        const size_t n = get(folder, names[i], ours, sizeof ours);
        assert_int_equal(get("tests/reference/golden", name, golden, sizeof golden), n);
        assert_true(n > 100);
        assert_same_bits(ours, golden, n);
    }
}

static void names_are_tensorboard_s_and_never_twice_the_same(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_event_file *a, *b;
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s/names", ttn_test_folder());
    assert_ok(ttn_event_file_create(folder, "host/1", 0, &stopped, &a, &err), &err);
    assert_ok(ttn_event_file_create(folder, "host/1", 0, &stopped, &b, &err), &err);
    assert_contains(ttn_event_file_path(a), "/names/events.out.tfevents.1767225600.host.");
    assert_string_not_equal(ttn_event_file_path(a), ttn_event_file_path(b));
    ttn_event_file_close(a);
    ttn_event_file_close(b);
}

/* A full disk: the record is not there, and the next one follows a whole record. */
static void a_record_is_whole_or_not_there(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_event_file *f;
    char folder[PATH_MAX];
    struct stat before, after;
    snprintf(folder, sizeof folder, "%s/full", ttn_test_folder());
    assert_ok(ttn_event_file_create(folder, "h", 0, &stopped, &f, &err), &err);
    assert_int_equal(stat(ttn_event_file_path(f), &before), 0);
    ttn_metrics r = {.step = 1};
    ttn_metrics_add(&r, ttn_metric_train_loss, 1);
    shim_arm(SHIM_WRITE, 1, SHIM_FAIL, ENOSPC, 1);
    assert_fails(ttn_event_file_add(f, &r, &err), TTN_EIO, &err, "a record cannot be added: No space left");
    shim_disarm();
    assert_int_equal(stat(ttn_event_file_path(f), &after), 0);
    assert_int_equal(before.st_size, after.st_size);
    err = (ttn_error){0};
    assert_ok(ttn_event_file_add(f, &r, &err), &err);
    ttn_metrics_drop(&r);
    ttn_event_file_close(f);
}

static void a_folder_that_cannot_be_is_a_sentence(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_event_file *f;
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s/no/where", ttn_test_folder());
    assert_fails(ttn_event_file_create(folder, "h", 0, NULL, &f, &err), TTN_EINVAL, &err, "/no/where: cannot be made");
    assert_null(f);
}

static void no_memory_is_a_status(void **state)
{
    (void)state;
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s/memory", ttn_test_folder());
    int hit = 1, nth = 1;
    for (; hit; nth++) {
        ttn_error err = {0};
        ttn_event_file *f;
        ttn_metrics r = {.step = 1};
        shim_arm(SHIM_ALLOC, nth, SHIM_FAIL, ENOMEM, 0);
        ttn_metrics_add(&r, ttn_metric_train_loss, 1);
        ttn_status status = ttn_event_file_create(folder, "h", 7, &stopped, &f, &err);
        if (status == TTN_OK) status = ttn_event_file_add(f, &r, &err);
        shim_disarm();
        hit = shim_was_hit();
        assert_int_equal(status, hit ? TTN_ENOMEM : TTN_OK);
        ttn_metrics_drop(&r);
        ttn_event_file_close(f);
    }
    assert_true(nth > 8);
}

int main(int argc, char **argv)
{
    ttn_test_child("sample", write_sample_for_others);
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums_are_castagnoli_s),
        cmocka_unit_test(the_bytes_are_those_that_tensorboard_read),
        cmocka_unit_test(names_are_tensorboard_s_and_never_twice_the_same),
        cmocka_unit_test(a_record_is_whole_or_not_there),
        cmocka_unit_test(a_folder_that_cannot_be_is_a_sentence),
        cmocka_unit_test(no_memory_is_a_status),
    };
    return ttn_test_run(tests);
}
