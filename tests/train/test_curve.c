/* Curves: ticks, what is left of many points, and the drawing itself, looked at pixel by pixel. */
#include <cairo/cairo.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/rng.h"
#include "tests/harness/test.h"
#include "train/look/chart.h"
#include "train/look/curve.h"
#include "train/look/scale.h"

/* ---- ticks ---- */

static void ticks_are_round_numbers_inside(void **state)
{
    (void)state;
    ttn_rng rng = {.key = ttn_test_seed()};
    for (int64_t i = 0; i < ttn_scaled(20000, 2000); i++) {
        const double size = pow(10, (double)ttn_rng_next_below(&rng, 24) - 12);
        const double low = ((double)ttn_rng_next_below(&rng, 2000) - 1000) / 100 * size;
        const double high = low + (double)(1 + ttn_rng_next_below(&rng, 1000)) / 100 * size;
        const int wanted = 2 + (int)ttn_rng_next_below(&rng, 9);
        const ttn_ticks t = ttn_ticks_of(low, high, wanted);
        const double lead = t.step / pow(10, floor(log10(t.step) + 1e-9)), off = fabs(t.first / t.step);
        assert_true(fabs(lead - 1) < 1e-6 || fabs(lead - 2) < 1e-6 || fabs(lead - 5) < 1e-6);
        assert_true(fabs(off - rint(off)) < 1e-6 * (1 + off));
        assert_true(t.n >= 2 && t.n <= 3 * wanted + 1);
        assert_true(t.first >= low - 1e-6 * t.step && t.first + (t.n - 1) * t.step <= high + 1e-6 * t.step);
    }
}

static void tick_texts_tell_ticks_apart(void **state)
{
    (void)state;
    static const struct {
        double low, high;
        const char *first, *last;
    } cases[] = {{0, 1, "0", "1.0"},       {2.2, 3.1, "2.2", "3.0"},
                 {0, 1200, "0", "1200"},   {0, 50000, "0", "50k"},
                 {0, 1.6e6, "0", "1.6M"},  {0, 3e-4, "0", "3.0e-4"},
                 {-1, 1, "-1.0", "1.0"},   {2.71, 2.72, "2.710", "2.720"},
                 {0, 3e-9, "0", "3.0e-9"}, {0, 40000, "0", "40k"},
                 {0, 7, "0", "7"},         {1e5, 1.001e5, "100.00k", "100.10k"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[TTN_TICK_TEXT], before[TTN_TICK_TEXT] = "";
        const ttn_ticks t = ttn_ticks_of(cases[i].low, cases[i].high, 6);
        assert_string_equal(ttn_tick_text(&t, 0, text), cases[i].first);
        for (int k = 0; k < t.n; k++) {
            ttn_tick_text(&t, k, text);
            assert_string_not_equal(text, before);
            memcpy(before, text, sizeof text);
        }
        assert_string_equal(text, cases[i].last);
    }
    char text[TTN_TICK_TEXT];
    const ttn_ticks one = ttn_ticks_of(3, 3, 6);
    assert_int_equal(one.n, 1);
    assert_string_equal(ttn_tick_text(&one, 0, text), "3");
}

/* ---- points ---- */

static void smoothing_shifts_nothing_and_passes_over_what_is_not_finite(void **state)
{
    (void)state;
    enum { N = 100 };
    double y[N], smooth[N];
    for (int i = 0; i < N; i++)
        y[i] = 5 - 0.01 * i; /* a straight line stays one, but for the ends, where it is by a few points behind */
    ttn_smooth(y, N, 7, smooth);
    for (int i = 0; i < N; i++)
        assert_at_most(fabs(smooth[i] - y[i]), i < 3 || i > N - 4 ? 0.0151 : 1e-12, "a straight line");
    y[N - 1] = 100; /* the last value is no trend */
    ttn_smooth(y, N, 7, smooth);
    assert_at_most(smooth[N - 1], 30, "the end");
    for (int i = 0; i < N; i++)
        y[i] = 2;
    y[40] = (double)NAN;
    y[41] = (double)INFINITY;
    y[60] = 1e200; /* what it leaves behind when it is taken away again */
    ttn_smooth(y, N, 3, smooth);
    for (int i = 0; i < N; i++)
        if (i < 57 || i > 63) assert_true(smooth[i] == 2);
    assert_true(smooth[60] > 1e198);
    for (int i = 0; i < N; i++)
        y[i] = (double)NAN;
    ttn_smooth(y, N, 3, smooth);
    assert_true(isnan(smooth[0]) && isnan(smooth[50]));
    y[5] = 1;
    ttn_smooth(y + 5, 1, 3, smooth);
    assert_true(smooth[0] == 1);
}

static void bins_hold_the_extremes(void **state)
{
    (void)state;
    enum { N = 1000, BINS = 10 };
    double x[N], y[N];
    ttn_bin bin[BINS];
    for (int i = 0; i < N; i++) {
        x[i] = i;
        y[i] = i % 100 == 37 ? -5 : i % 100 == 70 ? 9 : 1;
    }
    y[250] = (double)NAN;
    ttn_bins_of(x, y, N, 0, N, BINS, bin);
    for (int b = 0; b < BINS; b++) {
        assert_true(bin[b].low == -5 && bin[b].high == 9);
        assert_int_equal(bin[b].n, b == 2 ? 99 : 100);
        assert_int_equal(bin[b].n_bad, b == 2);
        assert_at_most(fabs(bin[b].x - (100 * b + 49.5)), 0.1, "mean x");
    }
    ttn_bins_of(x, y, N, 0, 999, BINS, bin); /* the last point lies on the border */
    assert_int_equal(bin[BINS - 1].n, 100);
    ttn_bins_of(x, y, N, 2000, 3000, BINS, bin);
    assert_true(bin[0].n == 0 && isnan(bin[0].low));
}

/* ---- the drawing ---- */

static const char *in_folder(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", ttn_test_folder(), name);
    return path;
}

/* The chart's pixels: the red, green and blue of one are asked for in its own coordinates. */
typedef struct {
    cairo_surface_t *surface;
} picture;

static picture take_picture(const ttn_chart *c)
{
    ttn_error err = {0};
    assert_ok(ttn_chart_save(c, in_folder("chart.png"), &err), &err);
    picture p = {cairo_image_surface_create_from_png(in_folder("chart.png"))};
    assert_int_equal(cairo_surface_status(p.surface), CAIRO_STATUS_SUCCESS);
    assert_int_equal(cairo_image_surface_get_width(p.surface), 2 * TTN_CHART_WIDTH);
    assert_int_equal(cairo_image_surface_get_height(p.surface), 2 * TTN_CHART_HEIGHT);
    return p;
}

static uint32_t pixel(const picture *p, int x, int y)
{
    uint32_t value;
    memcpy(&value, cairo_image_surface_get_data(p->surface) + y * cairo_image_surface_get_stride(p->surface) + 4 * x,
           4);
    return value & 0xffffff;
}

/* Rows and columns of pixels (at twice the size) that hold one that is_like it. */
typedef struct {
    int n, left, right, top, bottom;
} extent;

static extent extent_of(const picture *p, int (*is_like)(int red, int green, int blue), int top)
{
    extent e = {.left = INT_MAX, .top = INT_MAX};
    for (int y = top; y < 2 * TTN_CHART_HEIGHT; y++)
        for (int x = 0; x < 2 * TTN_CHART_WIDTH; x++) {
            const uint32_t v = pixel(p, x, y);
            if (!is_like((int)(v >> 16), (int)(v >> 8 & 255), (int)(v & 255))) continue;
            e.n++;
            e.left = x < e.left ? x : e.left;
            e.right = x > e.right ? x : e.right;
            e.top = y < e.top ? y : e.top;
            e.bottom = y > e.bottom ? y : e.bottom;
        }
    return e;
}

static int is_blue(int red, int green, int blue)
{
    return blue > 150 && red < 60 && green < 150;
}

static int is_red(int red, int green, int blue)
{
    return red > 180 && green < 80 && blue < 80;
}

enum { BELOW_LEGEND = 2 * 70 };

/* The pixel of a step that is this part of the last one: the plot is by 1.5 % wider than the steps. */
static double place_of(double part)
{
    return 2 * (TTN_CHART_LEFT + part / 1.015 * (TTN_CHART_WIDTH - TTN_CHART_LEFT - TTN_CHART_RIGHT));
}

/* Where the lines are drawn says what their values are. */
static void lines_are_where_their_values_are(void **state)
{
    (void)state;
    double x[101], y[101], level = 4;
    for (int i = 0; i <= 100; i++) {
        x[i] = i;
        y[i] = i < 50 ? 3 : 1;
    }
    const ttn_chart_line line[] = {{.name = "a", .kind = TTN_LINE_PLAIN, .colour = TTN_BLUE, .x = x, .y = y, .n = 101},
                                   {.name = "b", .kind = TTN_LINE_LEVEL, .colour = TTN_ORANGE, .y = &level, .n = 1}};
    const ttn_chart c = {.title = "t", .x_label = "step", .y_label = "y", .line = line, .n_line = 2, .from_zero = 1};
    const picture p = take_picture(&c);
    const extent e = extent_of(&p, is_blue, BELOW_LEGEND);
    /* y from 0 to 4.2 over the plot, which begins 58 pixels from the top: below one row of the legend */
    const double bottom = 2 * (TTN_CHART_HEIGHT - TTN_CHART_BOTTOM), unit = (bottom - 2 * 58) / 4.2;
    assert_at_most(fabs(e.bottom - (bottom - 1 * unit)), 4, "the lower part of the line");
    assert_at_most(fabs(e.top - (bottom - 3 * unit)), 4, "the upper part of the line");
    assert_at_most(abs(e.left - 2 * TTN_CHART_LEFT), 4, "its left end");
    assert_at_most(fabs(e.right - place_of(1)), 4, "its right end");
    cairo_surface_destroy(p.surface);
}

/* One spike of a step among a million is still seen, and does not flatten the rest. */
static void a_million_points_are_drawn_with_their_extremes(void **state)
{
    (void)state;
    const int64_t n = ttn_scaled(1000000, 100000);
    double *x = calloc((size_t)n, sizeof *x), *y = calloc((size_t)n, sizeof *y);
    assert_true(x && y);
    for (int64_t i = 0; i < n; i++) {
        x[i] = (double)i;
        y[i] = 3 - 2.0 * (double)i / (double)n;
    }
    y[n / 2] = 50;
    const ttn_chart_line line = {.name = "a", .kind = TTN_LINE_NOISY, .colour = TTN_BLUE, .x = x, .y = y, .n = n};
    const ttn_chart c = {.title = "t", .x_label = "step", .y_label = "y", .line = &line, .n_line = 1};
    const picture p = take_picture(&c);
    const extent e = extent_of(&p, is_blue, BELOW_LEGEND);
    assert_true(e.bottom - e.top > 500); /* of 592: from 3 to 1 fills the plot, whatever the spike is */
    int n_spike = 0;
    for (int px = (int)place_of(0.49); px < (int)place_of(0.51);
         px++) /* in the middle, above the line: faint blue up to the top */
        n_spike += pixel(&p, px, 2 * 80) != 0xffffff;
    assert_true(n_spike >= 1 && n_spike < 8);
    cairo_surface_destroy(p.surface);
    free(x);
    free(y);
}

static void what_is_not_finite_is_marked(void **state)
{
    (void)state;
    double x[30], y[30];
    for (int i = 0; i < 30; i++) {
        x[i] = i;
        y[i] = i == 12 ? (double)NAN : i == 20 ? (double)INFINITY : 2;
    }
    ttn_chart_line line = {.name = "a", .kind = TTN_LINE_NOISY, .colour = TTN_BLUE, .x = x, .y = y, .n = 30};
    const ttn_chart c = {.title = "t", .x_label = "step", .y_label = "y", .line = &line, .n_line = 1};
    picture p = take_picture(&c);
    extent e = extent_of(&p, is_red, BELOW_LEGEND);
    assert_true(e.n > 10);
    assert_at_most(fabs(e.left - place_of(12 / 29.0)), 6, "the mark of step 12");
    assert_at_most(fabs(e.right - place_of(20 / 29.0)), 6, "the mark of step 20");
    assert_true(extent_of(&p, is_red, 0).top < BELOW_LEGEND); /* the legend counts them */
    cairo_surface_destroy(p.surface);
    line.n = 12;
    p = take_picture(&c);
    assert_int_equal(extent_of(&p, is_red, 0).n, 0);
    cairo_surface_destroy(p.surface);
}

static void any_numbers_and_texts_can_be_drawn(void **state)
{
    (void)state;
    static const double steps[] = {0, 1, 2, 3};
    static const double values[][4] = {{1, 1, 1, 1},
                                       {0, 0, 0, 0},
                                       {1e300, -1e300, 1e300, 0},
                                       {5e-324, 0, 0, 0},
                                       {(double)NAN, (double)NAN, (double)NAN, (double)NAN},
                                       {(double)INFINITY, 1, (double)-INFINITY, 1e-30}};
    char bytes[600];
    for (size_t i = 0; i < sizeof bytes - 1; i++)
        bytes[i] = (char)(1 + i % 255);
    bytes[sizeof bytes - 1] = 0;
    for (size_t v = 0; v < sizeof values / sizeof *values; v++)
        for (int n = 0; n <= 4; n += n == 1 ? 3 : 1)
            for (int kind = TTN_LINE_PLAIN; kind <= TTN_LINE_LEVEL; kind++) {
                ttn_error err = {0};
                char *svg;
                const ttn_chart_line line = {.name = bytes,
                                             .kind = (ttn_line_kind)kind,
                                             .colour = TTN_BLUE,
                                             .x = steps,
                                             .y = values[v],
                                             .error = values[v],
                                             .n = n};
                const ttn_chart c = {.title = bytes,
                                     .x_label = "step",
                                     .y_label = "y",
                                     .right_label = "exp",
                                     .line = &line,
                                     .n_line = 1,
                                     .from_zero = n % 2};
                assert_ok(ttn_chart_svg(&c, "c", &svg, &err), &err);
                assert_null(strstr(svg, "nan"));
                assert_null(strstr(svg, "inf"));
                assert_true(strlen(svg) > 1000);
                free(svg);
            }
}

static ttn_history made_up(int64_t n)
{
    ttn_history h = {0};
    ttn_error err = {0};
    ttn_rng rng = {.key = 7};
    for (int64_t i = 1; i <= n; i++) {
        ttn_metrics r = {.step = 10 * i};
        const double loss = 2.55 + 0.8 * exp(-4.0 * (double)i / (double)n);
        ttn_metrics_add(&r, ttn_metric_train_loss, loss + 0.02 * (double)ttn_rng_next_normal(&rng));
        ttn_metrics_add(&r, ttn_metric_train_lr, 1e-3 * (double)(n - i) / (double)n);
        if (i % (n / 20) == 0) {
            ttn_metrics_add(&r, ttn_metric_val_loss, loss + 0.05);
            ttn_metrics_add(&r, ttn_metric_val_loss_error, 0.03);
            ttn_metrics_add(&r, ttn_metric_val_loss_frequency, 2.892);
            ttn_metrics_add(&r, ttn_metric_val_loss_composition, 2.861);
        }
        assert_ok(ttn_history_add(&h, &r, &err), &err);
        ttn_metrics_drop(&r);
    }
    return h;
}

static int count_of(const char *text, const char *word)
{
    int n = 0;
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        n++;
    return n;
}

static void the_same_chart_is_the_same_bytes_and_fits_into_a_document(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_history h = made_up(400);
    char *a, *b;
    assert_ok(ttn_curve_svg(&h, TTN_CURVE_LOSS, "runs/x", "a-", &a, &err), &err);
    assert_ok(ttn_curve_svg(&h, TTN_CURVE_LOSS, "runs/x", "a-", &b, &err), &err);
    assert_string_equal(a, b);
    assert_int_equal(strncmp(a, "<svg ", 5), 0);
    const int n_id = count_of(a, "id=\"");
    assert_true(n_id > 20);
    assert_int_equal(count_of(a, "id=\"a-"), n_id);
    assert_int_equal(count_of(a, "href=\"#a-"), count_of(a, "href=\"#"));
    assert_int_equal(count_of(a, "url(#a-"), count_of(a, "url(#"));
    assert_true(count_of(a, "url(#a-") >= 1);
    free(a);
    free(b);
    assert_int_equal(ttn_curve_is_there(&h, TTN_CURVE_LR), 1);
    assert_int_equal(ttn_curve_is_there(&h, TTN_CURVE_SPEED), 0);
    ttn_history_drop(&h);
}

/* To look at: --child curves FOLDER. */
static int draw_all(int argc, char **argv)
{
    static const int64_t sizes[] = {0, 1, 20, 400, 100000};
    if (argc != 1) return 2;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int png = 0; png < 2; png++) {
            char path[PATH_MAX];
            ttn_error err = {0};
            ttn_history h = {0};
            if (sizes[i] >= 20) h = made_up(sizes[i]);
            if (sizes[i] == 1) {
                ttn_metrics r = {.step = 10};
                ttn_metrics_add(&r, ttn_metric_train_loss, 3.4);
                assert_ok(ttn_history_add(&h, &r, &err), &err);
                ttn_metrics_drop(&r);
            }
            snprintf(path, sizeof path, "%s/loss-%d.%s", argv[0], (int)sizes[i], png ? "png" : "svg");
            assert_ok(ttn_curve_save(&h, TTN_CURVE_LOSS, "runs/proteins-20k", path, &err), &err);
            ttn_history_drop(&h);
        }
    return 0;
}

int main(int argc, char **argv)
{
    ttn_test_child("curves", draw_all);
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_are_round_numbers_inside),
        cmocka_unit_test(tick_texts_tell_ticks_apart),
        cmocka_unit_test(smoothing_shifts_nothing_and_passes_over_what_is_not_finite),
        cmocka_unit_test(bins_hold_the_extremes),
        cmocka_unit_test(lines_are_where_their_values_are),
        cmocka_unit_test(a_million_points_are_drawn_with_their_extremes),
        cmocka_unit_test(what_is_not_finite_is_marked),
        cmocka_unit_test(any_numbers_and_texts_can_be_drawn),
        cmocka_unit_test(the_same_chart_is_the_same_bytes_and_fits_into_a_document),
    };
    return ttn_test_run(tests);
}
