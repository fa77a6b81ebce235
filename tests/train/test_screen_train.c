/* What `titin train` shows. The screens in tests/train/screens were looked at; SCREENS=write writes them anew. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/harness/test.h"
#include "train/cli/layout.h"
#include "train/cli/screen_train.h"
#include "train/cli/screens_of_run.h"

static const ttn_findings found = {
    .is_known = 1,
    .records = 20012,
    .left_out = 12,
    .duplicates = 37,
    .left_out_for = "no residues: 9 (FA027), digits: 3 (FA049)",
    .repaired = "blanks inside sequences taken off: 2 (FA017), lower-case residues: 1,204 (FA040)",
    .unusual = "headers with a blank behind '>': 20,000 (FA023)",
};

static const ttn_run_start start = {
    .run = "runs/proteins-20k",
    .device = "CPU",
    .threads = 2,
    .blas = "OpenBLAS 0.3.21, kernel Zen",
    .real = "f32",
    .data = {.source = "uniref50.fasta.gz",
             .files = 1,
             .sequences = 20000,
             .residues = 7058412,
             .shortest = 30,
             .median = 290,
             .longest = 5038,
             .train = 18991,
             .valid = 1009,
             .split = "cluster",
             .cropped = 120,
             .max_len = 2048,
             .found = &found,
             .info = "titin data info runs/data/uniref50-0123456789abcdef.h5",
             .check = "titin data check uniref50.fasta.gz",
             .overlap = {.held_out = 1009, .is_counted = 1}},
    .model = {.layers = 6, .width = 128, .heads = 8, .vocabulary = 33, .parameters = 1234567, .attention = "favor"},
    .memory = {.values = 1288490189,
               .budget = (int64_t)6 << 30,
               .held = 42000000,
               .blocks = 6,
               .recomputed = 4,
               .more = 0.21},
    .batch = {.rows = 16384, .seqs = 70, .shards = 4, .fill = 0.978},
    .steps = 50000,
    .eval_every = 500,
    .save_every = 1000,
    .epochs = 12.34,
};

static const ttn_progress progress = {.step = 1200,
                                      .steps = 50000,
                                      .loss = 2.7134,
                                      .ema = 2.7180,
                                      .accuracy = 0.182,
                                      .grad_norm = 0.84,
                                      .lr = 3e-4,
                                      .residues_per_s = 41234,
                                      .peak = 0.61,
                                      .memory = 6.1 * (1 << 30),
                                      .left = 3 * 3600 + 12 * 60};

/* As ttn_best_of and ttn_advise make them. */
static ttn_history made_up_history(int rises)
{
    ttn_history h = {0};
    ttn_error err = {0};
    for (int64_t step = 500; step <= 50000; step += 500) {
        ttn_metrics r = {.step = step};
        const double loss = 2.65 + 0.3 * exp(-(double)step / 8000) + (rises ? (double)step / 100000 : 0);
        ttn_metrics_add(&r, ttn_metric_val_loss, loss);
        ttn_metrics_add(&r, ttn_metric_val_loss_error, 0.0087);
        ttn_metrics_add(&r, ttn_metric_val_accuracy, 0.187);
        ttn_metrics_add(&r, ttn_metric_val_targets, 53120);
        ttn_metrics_add(&r, ttn_metric_val_sequences, 1009);
        ttn_metrics_add(&r, ttn_metric_val_loss_frequency, 2.892);
        ttn_metrics_add(&r, ttn_metric_val_gain_frequency, 2.892 - loss);
        ttn_metrics_add(&r, ttn_metric_val_gain_frequency_error, 0.007);
        ttn_metrics_add(&r, ttn_metric_val_loss_composition, 2.861);
        ttn_metrics_add(&r, ttn_metric_val_gain_composition, 2.861 - loss);
        ttn_metrics_add(&r, ttn_metric_val_gain_composition_error, 0.006);
        assert_ok(ttn_history_add(&h, &r, &err), &err);
        ttn_metrics_drop(&r);
    }
    return h;
}

/* ---- screens ---- */

typedef void (*screen)(const ttn_terminal *t);

static void first_screen(const ttn_terminal *t)
{
    ttn_screen_start(t, &start);
    ttn_screen_first_loss(t, 3.4912, 33);
}

static void resumed_screen(const ttn_terminal *t)
{
    const ttn_run_start s = {.run = "r",
                             .resumed = 12000,
                             .device = "NVIDIA H200",
                             .real = "f64",
                             .steps = 100,
                             .data = {.sequences = 10,
                                      .residues = 1000,
                                      .train = 6,
                                      .valid = 4,
                                      .split = "file",
                                      .overlap = {4, 1, 1, 1, {4, 4, 3, 3}}},
                             .memory = {.values = 1 << 20, .blocks = 2}};
    ttn_screen_start(t, &s);
}

static void last_screen(const ttn_terminal *t)
{
    ttn_history h = made_up_history(0);
    const ttn_best best = ttn_best_of(&h);
    ttn_advice advice;
    ttn_advise(&h, &(ttn_course){.sequences = 18991, .cropped = 1200, .max_len = 2048, .fill = 0.978, .wait = 0.02},
               &advice);
    const ttn_run_end end = {.run = "runs/proteins-20k",
                             .step = 50000,
                             .steps = 50000,
                             .seconds = 3 * 3600 + 725,
                             .residues = 3205000000,
                             .best = &best,
                             .advice = &advice,
                             .fill = "titin fill runs/proteins-20k MKT_YIAKQ"};
    ttn_screen_end(t, &end);
    ttn_history_drop(&h);
}

static void stopped_screen(const ttn_terminal *t)
{
    ttn_history h = {0};
    const ttn_best best = ttn_best_of(&h);
    ttn_advice advice;
    ttn_advise(&h, &(ttn_course){.skipped = 2}, &advice);
    const ttn_run_end end = {.run = "runs/\033[2Jx\ny",
                             .step = 120,
                             .steps = 50000,
                             .seconds = 31.4,
                             .residues = 81000,
                             .best = &best,
                             .advice = &advice,
                             .resume = "titin train run.yaml --resume"};
    ttn_screen_end(t, &end);
}

/* What it prints in a window of so many columns; the caller's. */
static char *printed(screen show, int width, int has_colours)
{
    char columns[16], *text = NULL;
    size_t size;
    snprintf(columns, sizeof columns, "%d", width);
    setenv("COLUMNS", columns, 1);
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    const ttn_terminal t = {.out = out, .has_colours = has_colours};
    show(&t);
    fclose(out);
    return text;
}

static void assert_is_screen(const char *name, const char *text)
{
    char path[PATH_MAX], *expected = calloc(1 << 16, 1);
    snprintf(path, sizeof path, "tests/train/screens/%s.txt", name);
    const char *mode = getenv("SCREENS");
    if (mode && strcmp(mode, "write") == 0) {
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(text, f);
        fclose(f);
    }
    FILE *f = fopen(path, "r");
    if (!f) fail_msg("%s is not there", path);
    assert_true(fread(expected, 1, (1 << 16) - 1, f) > 0);
    fclose(f);
    assert_string_equal(text, expected);
    free(expected);
}

static const struct {
    const char *name;
    screen show;
    int width;
} screens[] = {
    {"train_first_80", first_screen, 80},  {"train_first_60", first_screen, 60}, {"train_first_200", first_screen, 200},
    {"train_resumed", resumed_screen, 80}, {"train_last_80", last_screen, 80},   {"train_last_60", last_screen, 60},
    {"train_stopped", stopped_screen, 80},
};

static void screens_are_those_that_were_looked_at(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof screens / sizeof *screens; i++) {
        char *text = printed(screens[i].show, screens[i].width, 0);
        assert_is_screen(screens[i].name, text);
        free(text);
    }
}

static void no_line_is_wider_than_the_window(void **state)
{
    (void)state;
    for (int width = 60; width <= 200; width++)
        for (size_t i = 0; i < sizeof screens / sizeof *screens; i++) {
            char *text = printed(screens[i].show, width, 0), *rest = NULL;
            for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
                if (ttn_columns(line) > width) fail_msg("%s, %d columns: %s", screens[i].name, width, line);
            free(text);
        }
}

static void colours_go_around_terms_and_change_no_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof screens / sizeof *screens; i++) {
        char *plain = printed(screens[i].show, 80, 0), *coloured = printed(screens[i].show, 80, 1), *to = coloured;
        assert_null(strchr(plain, '\033'));
        assert_non_null(strstr(coloured, "\033[1m"));
        for (const char *from = coloured; *from;) {
            if (*from == '\033') {
                from += strcspn(from, "m") + 1;
                continue;
            }
            *to = *from;
            to++;
            from++;
        }
        *to = 0;
        assert_string_equal(coloured, plain);
        free(plain);
        free(coloured);
    }
}

static void nothing_known_is_nothing_shown(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    const ttn_terminal t = {.out = out};
    ttn_screen_start(&t, &(ttn_run_start){.run = "r"});
    fclose(out);
    assert_string_equal(text, "titin trains r\n"
                              "  files       r: report.html, loss.svg, metrics.jsonl, tb/, ckpt/\n");
    free(text);
}

/* ---- progress ---- */

static void the_line_has_its_fields_in_fixed_columns(void **state)
{
    (void)state;
    char text[TTN_PROGRESS_TEXT], model[TTN_PROGRESS_TEXT];
    ttn_progress_text(&progress, 0, model);
    assert_string_equal(
        model, "step  1200/50000    2.4%  loss 2.7134 (ema 2.7180)  ppl  15.1  acc 0.182  gnorm  0.84  lr  3.0e-4  "
               "41.2k res/s   61 % peak  mem  6.1G  eta  3h12m");
    static const ttn_progress others[] = {
        {.step = 1,
         .steps = 50000,
         .loss = 3.5,
         .ema = 3.5,
         .accuracy = 0,
         .grad_norm = 12.345,
         .lr = 1e-10,
         .residues_per_s = 950,
         .peak = (double)NAN,
         .memory = 1 << 20,
         .left = (double)NAN},
        {.step = 50000,
         .steps = 50000,
         .loss = (double)NAN,
         .ema = 9.9999,
         .accuracy = 1,
         .grad_norm = 99.99,
         .lr = 0,
         .residues_per_s = 1.234e9,
         .peak = 1,
         .memory = 999.0 * (1 << 30),
         .left = 0},
        {.step = 99, .steps = 50000, .loss = 0.0001, .ema = 0, .grad_norm = 0, .residues_per_s = 999499, .left = 4e6},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        ttn_progress_text(&others[i], 0, text);
        assert_int_equal(strlen(text), strlen(model));
        assert_int_equal(strstr(text, " eta ") - text, strstr(model, " eta ") - model);
        assert_int_equal(strstr(text, " res/s") - text, strstr(model, " res/s") - model);
    }
}

static void a_number_out_of_all_bounds_leaves_the_fields_in_order(void **state)
{
    (void)state;
    char text[TTN_PROGRESS_TEXT];
    const ttn_progress wild = {.step = INT64_MAX,
                               .steps = INT64_MAX,
                               .loss = 1e308,
                               .ema = -1e308,
                               .accuracy = -INFINITY,
                               .grad_norm = 1e300,
                               .lr = 1e300,
                               .residues_per_s = 1e300,
                               .peak = 1e300,
                               .memory = 1e300,
                               .left = 1e300};
    ttn_progress_text(&wild, 0, text);
    assert_true(strlen(text) < TTN_PROGRESS_TEXT - 1);
    assert_contains(text, "loss 1.0e+308 (ema -1.0e+308)  ppl   inf  acc  -inf  gnorm 1.0e+300");
    assert_contains(text, "mem     ?  eta      ?");
}

static void what_does_not_fit_is_left_out_the_least_important_first(void **state)
{
    (void)state;
    char text[TTN_PROGRESS_TEXT];
    static const struct {
        int width;
        const char *text;
    } cases[] = {
        {200,
         "step  1200/50000    2.4%  loss 2.7134 (ema 2.7180)  ppl  15.1  acc 0.182  gnorm  0.84  lr  3.0e-4  41.2k "
         "res/s   61 % peak  mem  6.1G  eta  3h12m"},
        {100, "step  1200/50000    2.4%  loss 2.7134  ppl  15.1  acc 0.182  gnorm  0.84  41.2k res/s  eta  3h12m"},
        {79, "step  1200/50000    2.4%  loss 2.7134  ppl  15.1  41.2k res/s  eta  3h12m"},
        {60, "step  1200/50000  loss 2.7134  ppl  15.1  eta  3h12m"},
        {20, "step  1200/50000  loss 2.7134"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(ttn_progress_text(&progress, cases[i].width, text), cases[i].text);
    for (int width = 60; width <= 200; width++)
        assert_true((int)strlen(ttn_progress_text(&progress, width, text)) <= width);
}

/* ---- what to try next ---- */

static int says(const ttn_advice *a, const char *words)
{
    int n = 0;
    for (int i = 0; i < a->n; i++)
        n += strstr(a->text[i], words) != NULL;
    return n;
}

static void the_best_validation_is_the_lowest(void **state)
{
    (void)state;
    ttn_history h = made_up_history(1);
    const ttn_best best = ttn_best_of(&h);
    const ttn_series *loss = ttn_history_find(&h, ttn_metric_val_loss);
    assert_int_equal(best.is_there, 1);
    for (int64_t i = 0; i < loss->n; i++) {
        assert_true(loss->value[i] >= best.loss);
        if (loss->step[i] == best.step) assert_true(loss->value[i] == best.loss);
    }
    assert_true(best.step > 500 && best.step < 50000);
    assert_true(best.frequency.gain == 2.892 - best.loss);
    assert_int_equal(ttn_best_beats(&best.composition), 1);
    assert_int_equal(ttn_best_beats(&(ttn_beside){.gain = 0.01, .error = 0.006}), 0);
    assert_int_equal(ttn_best_beats(&(ttn_beside){.gain = (double)NAN, .error = 0}), 0);
    ttn_history_drop(&h);
}

static void advice_follows_from_what_happened(void **state)
{
    (void)state;
    ttn_advice a;
    ttn_history good = made_up_history(0), bad = made_up_history(1), none = {0}, poor = {0};
    ttn_error err = {0};
    for (int step = 1; step < 6; step++) {
        ttn_metrics r = {.step = step};
        ttn_metrics_add(&r, ttn_metric_val_loss, 2.88 - 0.01 * step);
        ttn_metrics_add(&r, ttn_metric_val_gain_frequency, 0.05);
        ttn_metrics_add(&r, ttn_metric_val_gain_frequency_error, 0.01);
        ttn_metrics_add(&r, ttn_metric_val_gain_composition, 0.005);
        ttn_metrics_add(&r, ttn_metric_val_gain_composition_error, 0.004);
        assert_ok(ttn_history_add(&poor, &r, &err), &err);
        ttn_metrics_drop(&r);
    }
    ttn_advise(&good, &(ttn_course){.fill = 0.98}, &a);
    assert_int_equal(a.n, 1);
    assert_int_equal(says(&a, "more width"), 1);
    ttn_advise(&bad, &(ttn_course){.fill = 0.98}, &a);
    assert_int_equal(says(&a, "by heart"), 1);
    ttn_advise(&none, &(ttn_course){0}, &a);
    assert_int_equal(says(&a, "nothing was validated"), 1);
    ttn_advise(&poor, &(ttn_course){0}, &a);
    assert_int_equal(says(&a, "own composition"), 1);
    assert_int_equal(says(&a, "still falling"), 1);
    ttn_advise(&good,
               &(ttn_course){.fill = 0.5, .wait = 0.5, .skipped = 1, .sequences = 10, .cropped = 5, .max_len = 9}, &a);
    assert_int_equal(a.n, 4);
    assert_int_equal(says(&a, "more batch.rows"), 1);
    /* More rows cannot help who has no more proteins. */
    ttn_advise(&good, &(ttn_course){.fill = 0.2, .batches = 1}, &a);
    assert_int_equal(a.n, 1);
    assert_int_equal(says(&a, "fewer batch.rows"), 1);
    ttn_advise(&good,
               &(ttn_course){.fill = 0.5, .wait = 0.5, .skipped = 1, .sequences = 10, .cropped = 5, .max_len = 9}, &a);
    assert_int_equal(says(&a, "not finite") + says(&a, "data.cache") + says(&a, "batch.rows") + says(&a, "max_len"), 4);
    for (int i = 0; i < a.n; i++)
        assert_true(strlen(a.text[i]) < TTN_ADVICE_TEXT - 1); /* none is cut */
    ttn_history_drop(&good);
    ttn_history_drop(&bad);
    ttn_history_drop(&poor);
}

/* Of one protein there is no standard error. */
static void a_validation_shows_the_error_that_it_has(void **state)
{
    (void)state;
    char text[TTN_SCREENS_LINE];
    ttn_validation_result v = {.hidden = {.loss = {2.5, 0.0125}}};
    const ttn_training_event e = {.what = TTN_TRAINING_EVALUATED, .done = 7, .validation = &v};
    assert_contains(ttn_screens_evaluated(&e, text),
                    "step 7: held out, ppl 12.182 (loss 2.5000 \u00b1 0.0125, accuracy");
    v.hidden.loss.error = (double)NAN;
    assert_contains(ttn_screens_evaluated(&e, text), "(loss 2.5000, accuracy");
    static const struct {
        double loss;
        const char *words;
    } wild[] = {
        {55.6, "ppl 1.4e+24 (loss 55.6000, accuracy"},
        {2180.9, "ppl over 1e300 (loss 2180.9000, accuracy"},
        {3e38, "ppl over 1e300 (loss 3.000e+38, accuracy"},
        {INFINITY, "ppl not finite (loss inf, accuracy"},
    };
    for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
        v.hidden.loss.mean = wild[i].loss;
        assert_contains(ttn_screens_evaluated(&e, text), wild[i].words);
    }
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(screens_are_those_that_were_looked_at),
        cmocka_unit_test(no_line_is_wider_than_the_window),
        cmocka_unit_test(colours_go_around_terms_and_change_no_text),
        cmocka_unit_test(nothing_known_is_nothing_shown),
        cmocka_unit_test(a_validation_shows_the_error_that_it_has),
        cmocka_unit_test(the_line_has_its_fields_in_fixed_columns),
        cmocka_unit_test(a_number_out_of_all_bounds_leaves_the_fields_in_order),
        cmocka_unit_test(what_does_not_fit_is_left_out_the_least_important_first),
        cmocka_unit_test(the_best_validation_is_the_lowest),
        cmocka_unit_test(advice_follows_from_what_happened),
    };
    return ttn_test_run(tests);
}
