/* Configurations that make_configs.sh writes, good and bad: of a bad one every place and every sentence is known, of a good
 * one a value. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/builder.h"
#include "tests/harness/test.h"
#include "tests/train/config_rows.h"
#include "train/config_text.h"

enum { MOST_MARKS = 8, MOST_KINDS = 200, MOST_OF_A_KIND = 6, LEAST_BAD = 150, LEAST_GOOD = 100 };

static const char mark[] = "\xC2\xAB"; /* « */

/* One line of the script's output; texts are the line's own, decoded in place. */
typedef struct {
    int is_good;
    const char *kind, *source;
    char *expected;
    char *text; /* without marks */
    size_t n;
    int n_mark;
    size_t at[MOST_MARKS]; /* in text */
} example;

static ttn_config_table *table;

/* ---- reading the script's lines ---- */

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* \n \t \r \\ \xNN, in place; returns how many bytes are left. */
static size_t decode(char *text)
{
    char *to = text;
    for (const char *c = text; *c; c++) {
        if (*c != '\\') {
            *to++ = *c;
            continue;
        }
        c++;
        if (*c == 'x') {
            const int high = digit_of(c[1]);
            const int low = digit_of(c[2]);
            assert_true(high >= 0 && low >= 0);
            *to++ = (char)(high * 16 + low);
            c += 2;
        } else {
            const char *known = strchr("nn\ntt\trr\r\\\\\\", *c);
            assert_non_null(known);
            *to++ = *c == 'n' ? '\n' : *c == 't' ? '\t' : *c == 'r' ? '\r' : '\\';
        }
    }
    *to = 0;
    return (size_t)(to - text);
}

static void take_marks(example *e)
{
    size_t to = 0;
    for (size_t i = 0; i < e->n; i++) {
        if (i + 1 < e->n && memcmp(e->text + i, mark, 2) == 0) {
            assert_true(e->n_mark < MOST_MARKS);
            e->at[e->n_mark] = to;
            e->n_mark++;
            i++;
        } else {
            e->text[to] = e->text[i];
            to++;
        }
    }
    e->n = to;
    e->text[to] = 0;
}

static example example_of(char *line)
{
    char *field[5] = {line};
    for (int i = 1; i < 5; i++) {
        char *tab = strchr(field[i - 1], '\t');
        assert_non_null(tab);
        *tab = 0;
        field[i] = tab + 1;
    }
    field[4][strcspn(field[4], "\n")] = 0;
    example e = {.is_good = strcmp(field[0], "good") == 0,
                 .kind = field[1],
                 .source = field[2],
                 .expected = field[3],
                 .text = field[4]};
    decode(e.expected);
    e.n = decode(e.text);
    if (!e.is_good) take_marks(&e);
    return e;
}

/* ---- loading ---- */

static ttn_status load(const example *e, ttn_config **ret, ttn_error *err)
{
    const ttn_config_file file = {.path = "run.yaml", .text = e->text, .n = e->n};
    const char *const texts[] = {e->text, NULL};
    ttn_config_request r = {.presets = test_presets};
    if (strcmp(e->source, "file") == 0) {
        r.file = &file;
        r.n_file = 1;
    } else if (strcmp(e->source, "environment") == 0) {
        r.environment = texts;
    } else {
        r.argument = texts;
        r.n_argument = 1;
    }
    return ttn_config_load(table, &r, ret, err);
}

static int differs(const example *e, const char *what, const char *got, const char *wanted)
{
    print_message("# %s, %s: %s\n#   got      %s\n#   expected %s\n", e->kind, e->text, what, got, wanted);
    return 1;
}

/* Where the nth mark is, in the words of the report: "run.yaml:2:7", or how many characters stand before it. */
static void place_of_mark(const example *e, int n, char *place, size_t room)
{
    size_t line = 1, begin = 0;
    for (size_t i = 0; i < e->at[n]; i++)
        if (e->text[i] == '\n') {
            line++;
            begin = i + 1;
        }
    if (strcmp(e->source, "file") == 0)
        snprintf(place, room, "run.yaml:%zu:%zu", line, e->at[n] - begin + 1);
    else
        snprintf(place, room, "%zu", e->at[n]);
}

static int check_problem(const example *e, int n, const ttn_config_problem *p, const char *sentence)
{
    char got[128], wanted[128];
    place_of_mark(e, n, wanted, sizeof wanted);
    if (strcmp(e->source, "file") == 0)
        snprintf(got, sizeof got, "%s:%d:%d", p->source, (int)p->line, (int)p->column);
    else
        snprintf(got, sizeof got, "%d", p->caret);
    int wrong = 0;
    if (strcmp(got, wanted) != 0) wrong = differs(e, "place", got, wanted);
    if (strcmp(p->sentence, sentence) != 0) wrong = differs(e, "sentence", p->sentence, sentence);
    return wrong;
}

static int check_bad(const example *e)
{
    ttn_config *c = NULL;
    ttn_error err = {0};
    int wrong = 0, n = 0;
    int64_t more = 0;
    if (load(e, &c, &err) != TTN_EINVAL) wrong = differs(e, "status", ttn_status_name(err.status), "EINVAL");
    const ttn_config_problem *p = c ? ttn_config_problems(c, &n, &more) : NULL;
    if (n != e->n_mark || more != 0)
        wrong = differs(e, "problems", c ? ttn_config_report(c) : err.text, "as many as marks");
    char *rest = e->expected;
    for (int i = 0; i < n && i < e->n_mark; i++) {
        const char *sentence = rest ? strsep(&rest, "|") : "(no more)";
        wrong |= check_problem(e, i, &p[i], sentence);
    }
    ttn_config_destroy(c);
    return wrong;
}

static void build(ttn_builder *b, const ttn_config *c, const char *key)
{
    const ttn_values *v = ttn_config_values(c);
    for (int i = 0; i < ttn_values_count(v); i++) {
        const ttn_option *o = ttn_values_row(v, i);
        if (strcmp(o->name, key) == 0) ttn_config_build_value(b, o, ttn_values_at(v, i), o->is_list);
    }
    int n = 0;
    const ttn_config_note *note = ttn_config_notes(c, &n);
    for (int i = 0; i < n; i++)
        if (strcmp(note[i].name, key) == 0) ttn_config_build_value(b, NULL, &note[i].value, note[i].is_list);
}

/* What is written reads back, and writes the same. */
static int check_round_trip(const example *e, const ttn_config *c)
{
    char *first = NULL, *second = NULL;
    ttn_config *back = NULL;
    ttn_error err = {0};
    assert_ok(ttn_config_resolved(c, &first, &err), &err);
    const ttn_config_file file = {.path = "config.resolved.yaml", .text = first, .n = strlen(first)};
    ttn_status status = ttn_config_load(table, &(ttn_config_request){.file = &file, .n_file = 1}, &back, &err);
    int wrong = status != TTN_OK && differs(e, "what was written does not read back", err.text, first);
    if (!wrong) {
        assert_ok(ttn_config_resolved(back, &second, &err), &err);
        wrong = strcmp(first, second) != 0 && differs(e, "writing it again", second, first);
    }
    ttn_config_destroy(back);
    free(first);
    free(second);
    return wrong;
}

static int check_good(const example *e)
{
    ttn_config *c = NULL;
    ttn_error err = {0};
    char *value = strchr(e->expected, '=');
    assert_non_null(value);
    *value = 0;
    value++;
    int wrong = 0;
    if (load(e, &c, &err) != TTN_OK) {
        wrong = differs(e, "refused", err.text, value);
    } else {
        ttn_builder b = {0};
        build(&b, c, e->expected);
        if (!b.text || strcmp(b.text, value) != 0) wrong = differs(e, e->expected, b.text ? b.text : "nothing", value);
        ttn_builder_drop(&b);
        wrong |= check_round_trip(e, c);
    }
    ttn_config_destroy(c);
    return wrong;
}

/* ---- all of them ---- */

typedef struct {
    int n_good, n_bad, n_wrong;
    int n_kind;
    struct {
        char name[40];
        int n;
    } kind[MOST_KINDS];
} tally;

static void count_kind(tally *t, const char *kind)
{
    int i = 0;
    while (i < t->n_kind && strcmp(t->kind[i].name, kind) != 0)
        i++;
    assert_true(i < MOST_KINDS);
    if (i == t->n_kind) {
        snprintf(t->kind[i].name, sizeof t->kind[i].name, "%s", kind);
        t->n_kind++;
    }
    t->kind[i].n++;
}

static tally run_all(int is_good)
{
    tally t = {0};
    FILE *script = popen("bash tests/train/make_configs.sh", "r");
    assert_non_null(script);
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, script) > 0) {
        example e = example_of(line);
        if (e.is_good != is_good) continue;
        if (is_good) {
            t.n_good++;
            t.n_wrong += check_good(&e);
        } else {
            t.n_bad++;
            count_kind(&t, e.kind);
            t.n_wrong += check_bad(&e);
        }
    }
    free(line);
    assert_int_equal(pclose(script), 0);
    return t;
}

static void every_bad_one_is_told_with_its_places_and_sentences(void **state)
{
    (void)state;
    assert_int_equal(run_all(0).n_wrong, 0);
}

static void every_good_one_has_its_value_and_is_written_the_same_twice(void **state)
{
    (void)state;
    assert_int_equal(run_all(1).n_wrong, 0);
}

static void there_are_enough_and_no_more_than_six_of_a_kind(void **state)
{
    (void)state;
    tally t = run_all(0);
    assert_true(t.n_bad >= LEAST_BAD);
    for (int i = 0; i < t.n_kind; i++) {
        if (t.kind[i].n > MOST_OF_A_KIND) print_message("# %s: %d\n", t.kind[i].name, t.kind[i].n);
        assert_true(t.kind[i].n <= MOST_OF_A_KIND);
    }
    assert_true(run_all(1).n_good >= LEAST_GOOD);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    ttn_error err = {0};
    if (ttn_config_table_create(test_modules, TEST_N_MODULE, &table, &err) != TTN_OK) {
        printf("1..1\nnot ok 1 - the table of the tests: %s\n", err.text);
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bad_one_is_told_with_its_places_and_sentences),
        cmocka_unit_test(every_good_one_has_its_value_and_is_written_the_same_twice),
        cmocka_unit_test(there_are_enough_and_no_more_than_six_of_a_kind),
    };
    int failed = ttn_test_run(tests);
    ttn_config_table_destroy(table);
    return failed;
}
