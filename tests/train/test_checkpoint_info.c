#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/harness/saved.h"
#include "tests/harness/test.h"
#include "train/info.h"

enum { WIDTH = 8 };

static char run[PATH_MAX / 2];

static void new_run(void)
{
    static int n;
    snprintf(run, sizeof run, "%s/%d", ttn_test_folder(), n++);
    char inside[PATH_MAX];
    assert_int_equal(mkdir(run, 0777), 0);
    snprintf(inside, sizeof inside, "%s/ckpt", run);
    assert_int_equal(mkdir(inside, 0777), 0);
}

/* run/ckpt/NAME; good for the next 8 calls. */
static const char *at(const char *name)
{
    static char paths[8][PATH_MAX];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, PATH_MAX, "%s/ckpt/%s", run, name);
    return path;
}

static void save(int64_t step)
{
    saved_model m;
    ttn_error err = {0};
    char name[TTN_STEP_NAME];
    saved_create(&m, WIDTH);
    assert_ok(saved_write(&m, at(ttn_step_name(step, name)), step, NULL, &err), &err);
    saved_destroy(&m);
}

/* "key=value;" for every fact, "key{" and "}" around objects; warnings behind. */
static const char *facts_of(const char *path, int verify, ttn_status *ret, ttn_error *err)
{
    static char text[1 << 14];
    ttn_facts *f;
    *err = (ttn_error){0};
    assert_ok(ttn_facts_create(&f, err), err);
    *ret = ttn_info_describe(path, verify, f, err);
    size_t n = 0;
    const ttn_fact *fact = ttn_facts_at(f);
    for (int64_t i = 0; i < ttn_facts_count(f); i++, fact++) {
        const char *key = fact->key ? fact->key : "";
        char *to = text + n;
        size_t room = sizeof text - n;
        switch (fact->kind) {
        case TTN_FACT_OPEN:
        case TTN_FACT_OPEN_LIST:
            snprintf(to, room, "%s{", key);
            break;
        case TTN_FACT_CLOSE:
            snprintf(to, room, "}");
            break;
        case TTN_FACT_TEXT:
            snprintf(to, room, "%s=%s;", key, fact->text);
            break;
        default:
            snprintf(to, room, "%s=%lld;", key, (long long)fact->integer);
        }
        n += strlen(to);
    }
    for (int64_t i = 0; i < ttn_facts_warning_count(f); i++) {
        snprintf(text + n, sizeof text - n, "warning: %s;", ttn_facts_warning(f, i));
        n += strlen(text + n);
    }
    assert_true(n < sizeof text - 1);
    ttn_facts_destroy(f);
    return text;
}

static void cut(const char *path, long n)
{
    assert_int_equal(truncate(path, n), 0);
}

static void flip_last_byte(const char *path)
{
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    fseek(f, -1, SEEK_END);
    int byte = fgetc(f);
    fseek(f, -1, SEEK_END);
    fputc(byte ^ 1, f);
    assert_int_equal(fclose(f), 0);
}

static void checkpoint_is_described(void **state)
{
    (void)state;
    new_run();
    save(1234);
    ttn_error err;
    ttn_status status;
    const char *text = facts_of(at("step-00001234"), 0, &status, &err);
    assert_ok(status, &err);
    assert_contains(text, "kind=checkpoint;");
    assert_contains(text, "titin_version=0.1.0;");
    assert_contains(text, "files{{name=model.safetensors;bytes=");
    assert_contains(text, "tensors=7;}{name=optim-r0000-of-0001.safetensors;");
    assert_contains(text, "step=1234;saved=20");
    assert_contains(text, "next_batch{epoch=12;window=34;batch=3;}");
    assert_contains(text, "seeds{init=18446744073709551615;data=7;}draws{layer.0.favor.draws=123;}");
    assert_contains(text, "precision=" TTN_REAL_NAME ";device=cpu;blas_kernel=Zen;");
    assert_null(strstr(text, "verified"));
    text = facts_of(at("step-00001234/"), 1, &status, &err);
    assert_ok(status, &err);
    assert_contains(text, "verified=1;");
}

static void damage_is_found_by_verify_and_lengths_without_it(void **state)
{
    (void)state;
    new_run();
    save(1);
    ttn_error err;
    ttn_status status;
    flip_last_byte(at("step-00000001/model.safetensors"));
    (void)facts_of(at("step-00000001"), 0, &status, &err);
    assert_ok(status, &err);
    const char *text = facts_of(at("step-00000001"), 1, &status, &err);
    assert_fails(status, TTN_ECHECKPOINT, &err, "model.safetensors: is damaged");
    assert_contains(text, "verified=0;");
    assert_contains(text, "step=1;"); /* what could be read is shown */
    assert_contains(text, "warning: ");
    assert_contains(text, "model.safetensors: is damaged");
    cut(at("step-00000001/model.safetensors"), 100);
    (void)facts_of(at("step-00000001"), 0, &status, &err);
    assert_fails(status, TTN_ECHECKPOINT, &err, "it is cut short");
    assert_int_equal(remove(at("step-00000001/MANIFEST.json")), 0);
    text = facts_of(at("step-00000001"), 0, &status, &err); /* by its name */
    assert_fails(status, TTN_ECHECKPOINT, &err, "MANIFEST.json: is missing");
    assert_contains(text, "kind=checkpoint;");
}

/* Its manifest and checksums are right: whoever made it lied about the run. */
static void number_that_cannot_be_is_found(void **state)
{
    (void)state;
    new_run();
    saved_model m;
    ttn_error err = {0};
    ttn_snapshot *s;
    const double skipped[] = {6, 0};
    const ttn_named_series series = {TTN_SERIES_SKIPPED, skipped, 2};
    ttn_run_state forged = saved_state(5);
    forged.series = &series;
    forged.n_series = 1;
    saved_create(&m, WIDTH);
    saved_fill(&m, 5);
    assert_ok(ttn_snapshot_create(m.w, NULL, m.more, SAVED_N_MORE, &s, &err), &err);
    assert_ok(ttn_snapshot_take(s, m.w, m.more, &forged, &err), &err);
    assert_ok(ttn_checkpoint_write(s, at("step-00000005"), NULL, &err), &err);
    ttn_snapshot_destroy(s);
    saved_destroy(&m);
    ttn_status status;
    (void)facts_of(at("step-00000005"), 1, &status, &err);
    assert_fails(status, TTN_ECHECKPOINT, &err, "state.json:");
    assert_contains(err.text, "number 1 of 'skipped' is 6, and should be a whole number from 0 to 5");
    const char *text = facts_of(run, 1, &status, &err);
    assert_fails(status, TTN_ECHECKPOINT, &err, "number 1 of 'skipped' is 6");
    assert_contains(text, "state=cannot be used;");
}

static void run_lists_its_checkpoints_and_says_which_are_good(void **state)
{
    (void)state;
    new_run();
    ttn_error err;
    ttn_status status;
    const char *text = facts_of(run, 0, &status, &err);
    assert_ok(status, &err);
    assert_contains(text, "kind=run;checkpoint_count=0;checkpoints{}");
    text = facts_of(run, 1, &status, &err);
    assert_fails(status, TTN_ECHECKPOINT, &err, "has no checkpoint, so there is nothing to verify");
    assert_contains(text, "verified=0;warning: ");
    for (int64_t step = 10; step <= 30; step += 10)
        save(step);
    text = facts_of(run, 1, &status, &err);
    assert_ok(status, &err);
    assert_contains(text, "checkpoint_count=3;checkpoints{{name=step-00000030;step=30;saved=20");
    assert_contains(text, "state=verified;}{name=step-00000020;");
    assert_contains(text, "verified=1;");
    flip_last_byte(at("step-00000020/optim-r0000-of-0001.safetensors"));
    text = facts_of(run, 0, &status, &err);
    assert_ok(status, &err);
    assert_null(strstr(text, "cannot be used"));
    assert_contains(text, "state=complete;");
    text = facts_of(run, 1, &status, &err);
    assert_fails(status, TTN_ECHECKPOINT, &err, "step-00000020/optim-r0000-of-0001.safetensors: is damaged");
    assert_contains(text, "state=cannot be used;}{name=step-00000010;");
    assert_contains(text, "verified=0;");
    cut(at("step-00000020/state.json"), 10);
    text = facts_of(run, 0, &status, &err);
    assert_ok(status, &err);
    assert_contains(text, "state=cannot be used;");
    assert_contains(text, "warning: ");
    assert_contains(text, "step-00000020/state.json: has 10 bytes");
}

static void what_made_way_and_what_is_unfinished_is_listed(void **state)
{
    (void)state;
    new_run();
    save(10);
    static const char *const names[] = {"step-00000010.kept-2",
                                        ".step-00000010.tmp-12-0",
                                        "step-00000010.kept-1",
                                        ".step-00000005.trash-12-0",
                                        "best.kept-1",
                                        "latest.kept-12",
                                        "other.kept-1",
                                        "step-00000010.kept-",
                                        "step-10.kept-1",
                                        "step-00000010.kept-1.old",
                                        "notes"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(mkdir(at(names[i]), 0777), 0);
    ttn_error err;
    ttn_status status;
    const char *text = facts_of(run, 1, &status, &err);
    assert_ok(status, &err);
    assert_contains(text, "checkpoint_count=1;");
    assert_contains(text, "others{{name=.step-00000005.trash-12-0;state=unfinished;}"
                          "{name=.step-00000010.tmp-12-0;state=unfinished;}"
                          "{name=best.kept-1;state=moved aside;}{name=latest.kept-12;state=moved aside;}"
                          "{name=step-00000010.kept-1;state=moved aside;}"
                          "{name=step-00000010.kept-2;state=moved aside;}}");
    assert_contains(text, "verified=1;");
}

static void name_of_another_step_is_told(void **state)
{
    (void)state;
    new_run();
    save(50);
    assert_int_equal(rename(at("step-00000050"), at("step-00000099")), 0);
    ttn_error err;
    ttn_status status;
    (void)facts_of(at("step-00000099"), 1, &status, &err);
    assert_fails(status, TTN_ECHECKPOINT, &err, "is called after step 99 and holds step 50");
    const char *text = facts_of(run, 1, &status, &err);
    assert_fails(status, TTN_ECHECKPOINT, &err, "is called after step 99 and holds step 50");
    assert_contains(text, "name=step-00000099;");
    assert_contains(text, "state=cannot be used;");
    assert_contains(text, "verified=0;");
}

static void other_folders_are_neither(void **state)
{
    (void)state;
    new_run();
    ttn_error err;
    ttn_status status;
    assert_int_equal(mkdir(at("step-1"), 0777), 0);
    const char *text = facts_of(at("step-1"), 0, &status, &err);
    assert_int_equal(status, TTN_ECHECKPOINT);
    assert_null(strstr(text, "kind=checkpoint"));
    assert_null(strstr(text, "kind=run"));
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    if (!ttn_test_long() && access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1); /* fsync is not what counts */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoint_is_described),
        cmocka_unit_test(damage_is_found_by_verify_and_lengths_without_it),
        cmocka_unit_test(number_that_cannot_be_is_found),
        cmocka_unit_test(run_lists_its_checkpoints_and_says_which_are_good),
        cmocka_unit_test(what_made_way_and_what_is_unfinished_is_listed),
        cmocka_unit_test(name_of_another_step_is_told),
        cmocka_unit_test(other_folders_are_neither),
    };
    return ttn_test_run(tests);
}
