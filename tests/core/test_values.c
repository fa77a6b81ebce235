/* Values of a table: defaults, what was set, what modules get by name, and whether somebody reads every row. */
#include <string.h>
#include "core/values.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"

static const char *const kinds[] = {"exact", "favor", NULL};

enum { STEPS, RATE, RESUME, KIND, BETAS, DATA, EVERY, N_ROW };
static const ttn_option rows[N_ROW] = {
    [STEPS] = {.name = "train.steps",
               .type = TTN_OPTION_INTEGER,
               .fallback = "1k",
               .least = 1,
               .most = 1e9,
               .help = "x",
               .since = "0.1"},
    [RATE] = {.name = "train.lr", .type = TTN_OPTION_REAL, .fallback = "3e-4", .help = "x", .since = "0.1"},
    [RESUME] = {.name = "train.resume", .type = TTN_OPTION_BOOL, .fallback = "yes", .help = "x", .since = "0.1"},
    [KIND] = {.name = "a.kind",
              .type = TTN_OPTION_CHOICE,
              .is_list = 1,
              .choices = kinds,
              .fallback = "exact",
              .help = "x",
              .since = "0.1"},
    [BETAS] = {.name = "train.betas",
               .type = TTN_OPTION_REAL,
               .is_list = 1,
               .fallback = "0.9, 0.95",
               .help = "x",
               .since = "0.1"},
    [DATA] = {.name = "data.train", .type = TTN_OPTION_PATH, .help = "what to train on", .since = "0.1"},
    [EVERY] = {.name = "train.every", .type = TTN_OPTION_DURATION, .fallback = "90s", .help = "x", .since = "0.1"},
};

static ttn_values *create(void)
{
    ttn_values *v = NULL;
    ttn_error err = {0};
    assert_ok(ttn_values_create(rows, N_ROW, &v, &err), &err);
    return v;
}

static void a_new_object_has_the_defaults(void **state)
{
    (void)state;
    ttn_values *v = create();
    assert_int_equal(ttn_values_count(v), N_ROW);
    assert_ptr_equal(ttn_values_row(v, DATA), &rows[DATA]);
    assert_int_equal(ttn_values_at(v, STEPS)->item[0].integer, 1000);
    assert_int_equal(ttn_values_at(v, BETAS)->n, 2);
    assert_true(ttn_values_at(v, BETAS)->item[1].real == 0.95);
    assert_int_equal(ttn_values_at(v, DATA)->given, 0);
    assert_int_equal(ttn_values_at(v, RATE)->origin.kind, TTN_FROM_DEFAULT);
    assert_string_equal(ttn_values_at(v, RATE)->origin.text, "default");
    ttn_values_destroy(v);
    ttn_values_destroy(NULL);
}

static void what_is_set_is_copied(void **state)
{
    (void)state;
    ttn_values *v = create();
    ttn_error err = {0};
    char path[] = "a.fa", origin[] = "run.yaml:3";
    ttn_scalar item = {.text = path};
    assert_ok(ttn_values_set(v, DATA, &item, 1, (ttn_origin){TTN_FROM_FILE, origin}, &err), &err);
    path[0] = origin[0] = 'X';
    item.text = NULL;
    assert_string_equal(ttn_values_at(v, DATA)->item[0].text, "a.fa");
    assert_string_equal(ttn_values_at(v, DATA)->origin.text, "run.yaml:3");
    assert_ok(ttn_values_set(v, BETAS, NULL, 0, (ttn_origin){TTN_FROM_FILE, "x"}, &err), &err);
    assert_int_equal(ttn_values_at(v, BETAS)->n, 0);
    ttn_values_destroy(v);
}

static void a_reader_gets_them_by_name_and_layer(void **state)
{
    (void)state;
    ttn_values *v = create();
    ttn_option_reader r = ttn_values_reader(v);
    ttn_error err = {0};
    int yes = 0;
    int64_t steps = 0;
    double real_value = 0;
    const char *text = NULL;
    assert_ok(r.get_bool(r.self, "train.resume", 0, &yes, &err), &err);
    assert_ok(r.get_integer(r.self, "train.steps", 7, &steps, &err), &err);
    assert_ok(r.get_real(r.self, "train.every", 0, &real_value, &err), &err);
    assert_ok(r.get_text(r.self, "a.kind", 11, &text, &err), &err); /* one for all layers */
    assert_true(yes == 1 && steps == 1000 && real_value == 90);
    assert_string_equal(text, "exact");
    assert_ok(r.get_real(r.self, "train.betas", 1, &real_value, &err), &err);
    assert_true(real_value == 0.95);
    assert_fails(r.get_real(r.self, "train.betas", 2, &real_value, &err), TTN_EINVAL, &err,
                 "train.betas has 2 values, and layer 2");
    err = (ttn_error){0};
    assert_fails(r.get_real(r.self, "train.betas", -1, &real_value, &err), TTN_EINVAL, &err, "layer -1");
    err = (ttn_error){0};
    assert_fails(r.get_text(r.self, "data.train", 0, &text, &err), TTN_EINVAL, &err,
                 "data.train has no value, and there is no default: give it one (what to train on)");
    assert_true(real_value == 0.95);
    ttn_values_destroy(v);
}

static void a_read_without_a_row_or_of_another_type_is_our_mistake(void **state)
{
    (void)state;
    ttn_values *v = create();
    ttn_option_reader r = ttn_values_reader(v);
    ttn_error err = {0};
    int64_t n = 5;
    int yes = 5;
    assert_fails(r.get_integer(r.self, "train.step", 0, &n, &err), TTN_EINTERNAL, &err,
                 "train.step: somebody reads it");
    err = (ttn_error){0};
    assert_fails(r.get_integer(r.self, "train.lr", 0, &n, &err), TTN_EINTERNAL, &err,
                 "something else than its row says, number");
    err = (ttn_error){0};
    assert_fails(r.get_bool(r.self, "train.steps", 0, &yes, &err), TTN_EINTERNAL, &err, "train.steps");
    assert_true(n == 5 && yes == 5);
    ttn_values_destroy(v);
}

typedef struct {
    double lr;
    int64_t steps;
    int resume;
    ttn_list kinds, betas;
    const char *data;
} wanted;

static void a_struct_is_filled(void **state)
{
    (void)state;
    static const ttn_option_field fields[] = {
        TTN_FIELD(wanted, lr, "train.lr"),         TTN_FIELD(wanted, steps, "train.steps"),
        TTN_FIELD(wanted, resume, "train.resume"), TTN_FIELD(wanted, kinds, "a.kind"),
        TTN_FIELD(wanted, betas, "train.betas"),   TTN_FIELD(wanted, data, "data.train"),
    };
    enum { N_FIELD = sizeof fields / sizeof *fields };
    ttn_values *v = create();
    ttn_error err = {0};
    wanted w = {0};
    assert_fails(ttn_values_fill(v, fields, N_FIELD, &w, &err), TTN_EINVAL, &err, "data.train has no value");
    err = (ttn_error){0};
    assert_ok(ttn_values_set(v, DATA, &(ttn_scalar){.text = "a.fa"}, 1, (ttn_origin){TTN_FROM_FILE, "x"}, &err), &err);
    assert_ok(ttn_values_fill(v, fields, N_FIELD, &w, &err), &err);
    assert_true(w.lr == 3e-4 && w.steps == 1000 && w.resume == 1 && w.kinds.n == 1 && w.betas.n == 2);
    assert_string_equal(w.kinds.item[0].text, "exact");
    assert_string_equal(w.data, "a.fa");
    const ttn_option_field wrong[] = {TTN_FIELD(wanted, lr, "train.betas"), TTN_FIELD(wanted, betas, "train.lr"),
                                      TTN_FIELD(wanted, lr, "train.steps"), TTN_FIELD(wanted, lr, "train.rate"),
                                      TTN_FIELD(wanted, betas, "no.row")};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        err = (ttn_error){0};
        assert_fails(ttn_values_fill(v, &wrong[i], 1, &w, &err), TTN_EINTERNAL, &err, wrong[i].name);
    }
    ttn_values_destroy(v);
}

static void an_audit_counts_reads_and_stops_at_nothing(void **state)
{
    (void)state;
    ttn_values *v = create();
    int read[N_ROW] = {0};
    ttn_error err = {0};
    assert_ok(ttn_values_audit(v, read, &err), &err);
    ttn_option_reader r = ttn_values_reader(v);
    const char *text = NULL;
    assert_ok(r.get_text(r.self, "data.train", 0, &text, &err), &err);
    assert_ok(r.get_text(r.self, "a.kind", 0, &text, &err), &err);
    assert_ok(r.get_text(r.self, "a.kind", 1, &text, &err), &err);
    for (int i = 0; i < N_ROW; i++)
        assert_int_equal(read[i], i == DATA ? 1 : i == KIND ? 2 : 0);
    ttn_values_destroy(v);
}

static void no_memory_is_a_message(void **state)
{
    (void)state;
    for (int nth = 1;; nth++) {
        ttn_values *v = NULL;
        ttn_error err = {0};
        shim_arm(SHIM_ALLOC, nth, SHIM_FAIL, 0, 0);
        ttn_status status = ttn_values_create(rows, N_ROW, &v, &err);
        const int was_hit = shim_was_hit();
        shim_disarm();
        if (!was_hit) {
            assert_ok(status, &err);
            ttn_values_destroy(v);
            assert_true(nth > 2);
            return;
        }
        assert_int_equal(status, TTN_ENOMEM);
        assert_null(v);
        assert_contains(err.text, "memory");
    }
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_object_has_the_defaults),
        cmocka_unit_test(what_is_set_is_copied),
        cmocka_unit_test(a_reader_gets_them_by_name_and_layer),
        cmocka_unit_test(a_read_without_a_row_or_of_another_type_is_our_mistake),
        cmocka_unit_test(a_struct_is_filled),
        cmocka_unit_test(an_audit_counts_reads_and_stops_at_nothing),
        cmocka_unit_test(no_memory_is_a_message),
    };
    return ttn_test_run(tests);
}
