#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cairo/cairo-svg.h>
#include <cairo/cairo.h>
#include "core/atomic.h"
#include "core/builder.h"
#include "core/memory.h"
#include "core/text.h"
#include "train/look/chart.h"
#include "train/look/scale.h"

/* ---- where things are, in pixels of TTN_CHART_WIDTH by TTN_CHART_HEIGHT ---- */

enum {
    TITLE = 26,  /* its baseline */
    LEGEND = 46, /* the baseline of its first row */
    LEGEND_ROW = 17,
    FONT = 12,
    TITLE_FONT = 14,
    SWATCH = 20, /* the piece of a line in the legend */
    TEXT = 256,  /* bytes of a text, more than fit into the width */
};

typedef struct {
    double red, green, blue;
} colour;

static const colour ink = {0.13, 0.13, 0.13}, pale = {0.87, 0.87, 0.87}, alarm = {0.80, 0.10, 0.10};

/* Okabe and Ito's, the grey aside. */
static const colour palette[] = {
    [TTN_BLUE] = {0.00, 0.45, 0.70},
    [TTN_ORANGE] = {0.84, 0.37, 0.00},
    [TTN_GREEN] = {0.00, 0.55, 0.40},
    [TTN_GREY] = {0.42, 0.42, 0.42},
};

/* What is being drawn. */
typedef struct {
    const ttn_chart *chart;
    cairo_t *cr;
    double top;                          /* of the plot, below the legend */
    double x_low, x_high, y_low, y_high; /* the values at its edges */
    double *smooth;                      /* (most points of a noisy line) of the line that is drawn */
    int64_t n_bad;                       /* values that are not finite */
} drawing;

static const double plot_left = TTN_CHART_LEFT, plot_right = TTN_CHART_WIDTH - TTN_CHART_RIGHT,
                    plot_bottom = TTN_CHART_HEIGHT - TTN_CHART_BOTTOM;

static double place_x(const drawing *d, double x)
{
    return plot_left + (x - d->x_low) / (d->x_high - d->x_low) * (plot_right - plot_left);
}

static double place_y(const drawing *d, double y)
{
    return plot_bottom - (y - d->y_low) / (d->y_high - d->y_low) * (plot_bottom - d->top);
}

static void set_colour(cairo_t *cr, colour c, double opacity)
{
    cairo_set_source_rgba(cr, c.red, c.green, c.blue, opacity);
}

/* ---- text ---- */

/* What cairo takes: UTF-8 without control characters; it refuses to draw anything after other bytes. */
static void clean(const char *text, char *ret)
{
    const size_t length = strlen(text);
    size_t n = 0;
    for (size_t at = 0; at < length && n + 4 < TEXT;) {
        const int bytes = ttn_text_character(text + at, length - at, NULL);
        if (bytes == 0)
            ret[n] = '?';
        else
            memcpy(ret + n, text + at, (size_t)bytes);
        n += bytes ? (size_t)bytes : 1;
        at += bytes ? (size_t)bytes : 1;
    }
    ret[n] = 0;
    ttn_text_disarm(ret);
}

static double width_of(cairo_t *cr, const char *text)
{
    cairo_text_extents_t extents;
    cairo_text_extents(cr, text, &extents);
    return extents.x_advance;
}

/* Characters go from the end until it fits. */
static void cut_to(cairo_t *cr, char *text, double width)
{
    static const char dots[] = "\u2026";
    size_t n = strlen(text);
    if (width_of(cr, text) <= width) return;
    do {
        while (n > 0 && ttn_text_is_continuation(text[n - 1]))
            n--;
        if (n > 0) n--;
        memcpy(text + n, dots, sizeof dots); /* at most 3 bytes more than were there: TEXT leaves room */
    } while (n > 0 && width_of(cr, text) > width);
}

/* at: the part of its width that lies left of x. */
static void put_text(cairo_t *cr, double x, double y, double at, const char *text)
{
    cairo_move_to(cr, x - at * width_of(cr, text), y);
    cairo_show_text(cr, text);
}

static void put_upright(cairo_t *cr, double x, double y, double angle, const char *text)
{
    cairo_save(cr);
    cairo_translate(cr, x, y);
    cairo_rotate(cr, angle);
    put_text(cr, 0, 0, 0.5, text);
    cairo_restore(cr);
}

/* ---- how much is shown ---- */

static void take_in(double *low, double *high, double value)
{
    if (!isfinite(value)) return;
    if (!(value >= *low)) *low = value;
    if (!(value <= *high)) *high = value;
}

static int64_t reach_of(const ttn_chart_line *l)
{
    return l->n / 80;
}

/* A noisy line is shown as far as its mean goes: one wild step does not flatten all others. */
static void take_in_line(drawing *d, const ttn_chart_line *l)
{
    const double *y = l->y;
    if (l->kind == TTN_LINE_NOISY) {
        ttn_smooth(l->y, l->n, reach_of(l), d->smooth);
        y = d->smooth;
    }
    for (int64_t i = 0; i < l->n; i++) {
        const double error = l->error && isfinite(l->error[i]) ? l->error[i] : 0;
        take_in(&d->y_low, &d->y_high, y[i] - error);
        take_in(&d->y_low, &d->y_high, y[i] + error);
        if (l->kind == TTN_LINE_LEVEL) continue;
        take_in(&d->x_low, &d->x_high, l->x[i]);
        d->n_bad += !isfinite(l->y[i]);
    }
}

static void find_ranges(drawing *d)
{
    d->x_low = 0; /* steps begin there */
    d->x_high = d->y_low = d->y_high = (double)NAN;
    for (int i = 0; i < d->chart->n_line; i++)
        take_in_line(d, &d->chart->line[i]);
    if (!(d->x_high > d->x_low)) d->x_high = d->x_low + 1;
    d->x_high += 0.015 * (d->x_high - d->x_low); /* the last point does not lie on the frame */
    if (isnan(d->y_low)) {
        d->y_low = 0;
        d->y_high = 1;
    }
    if (d->chart->from_zero && d->y_low > 0) d->y_low = 0;
    double margin = 0.05 * (d->y_high - d->y_low);
    if (!(margin > 1e-9 * fabs(d->y_high))) margin = d->y_high == 0 ? 1 : 0.05 * fabs(d->y_high);
    d->y_high += margin;
    if (!d->chart->from_zero || d->y_low < 0) d->y_low -= margin;
}

/* ---- frame, ticks, legend ---- */

/* Half pixels: a line of one pixel then covers one row and is not smeared over two. */
static void hair(cairo_t *cr, double x0, double y0, double x1, double y1)
{
    cairo_move_to(cr, floor(x0) + 0.5, floor(y0) + 0.5);
    cairo_line_to(cr, floor(x1) + 0.5, floor(y1) + 0.5);
    cairo_stroke(cr);
}

static void draw_x_axis(drawing *d)
{
    char text[TTN_TICK_TEXT];
    const int wanted = d->x_high - d->x_low < 6 ? (int)(d->x_high - d->x_low) + 1 : 6; /* whole steps */
    const ttn_ticks t = ttn_ticks_of(d->x_low, d->x_high, wanted);
    for (int i = 0; i < t.n; i++) {
        const double x = place_x(d, t.first + i * t.step);
        set_colour(d->cr, ink, 1);
        hair(d->cr, x, plot_bottom, x, plot_bottom + 4);
        put_text(d->cr, x, plot_bottom + 18, 0.5, ttn_tick_text(&t, i, text));
    }
    put_text(d->cr, (plot_left + plot_right) / 2, TTN_CHART_HEIGHT - 8, 0.5, d->chart->x_label);
}

static void draw_y_axis(drawing *d)
{
    char text[TTN_TICK_TEXT];
    const ttn_ticks t = ttn_ticks_of(d->y_low, d->y_high, 6);
    for (int i = 0; i < t.n; i++) {
        const double y = place_y(d, t.first + i * t.step);
        set_colour(d->cr, pale, 1);
        hair(d->cr, plot_left, y, plot_right, y);
        set_colour(d->cr, ink, 1);
        put_text(d->cr, plot_left - 8, y + 4, 1, ttn_tick_text(&t, i, text));
    }
    put_upright(d->cr, 16, (d->top + plot_bottom) / 2, -M_PI / 2, d->chart->y_label);
}

static void draw_right_axis(drawing *d)
{
    const double highest = 300; /* exp of more is no number */
    char text[TTN_TICK_TEXT];
    if (!d->chart->right_label || d->y_high > highest) return;
    const ttn_ticks t = ttn_ticks_of(exp(d->y_low), exp(d->y_high), 6);
    set_colour(d->cr, ink, 1);
    for (int i = 0; i < t.n; i++) {
        const double y = place_y(d, log(t.first + i * t.step));
        hair(d->cr, plot_right, y, plot_right + 4, y);
        put_text(d->cr, plot_right + 8, y + 4, 0, ttn_tick_text(&t, i, text));
    }
    put_upright(d->cr, TTN_CHART_WIDTH - 12, (d->top + plot_bottom) / 2, M_PI / 2, d->chart->right_label);
}

static void draw_frame(drawing *d)
{
    set_colour(d->cr, ink, 1);
    cairo_set_line_width(d->cr, 1);
    cairo_rectangle(d->cr, plot_left + 0.5, floor(d->top) + 0.5, plot_right - plot_left, plot_bottom - floor(d->top));
    cairo_stroke(d->cr);
}

static void set_stroke(cairo_t *cr, const ttn_chart_line *l)
{
    static const double dashes[] = {6, 4};
    set_colour(cr, palette[l->colour], 1);
    cairo_set_line_width(cr, l->kind == TTN_LINE_LEVEL ? 1.3 : 1.8);
    cairo_set_dash(cr, dashes, l->kind == TTN_LINE_LEVEL ? 2 : 0, 0);
}

static void dot(cairo_t *cr, double x, double y)
{
    cairo_new_sub_path(cr);
    cairo_arc(cr, x, y, 2.8, 0, 2 * M_PI);
    cairo_fill(cr);
}

/* An entry of the legend at *x, *y, in a new row when this one is full; both move on. draws 0: only that. */
static void legend_entry(drawing *d, const ttn_chart_line *l, const char *name, int draws, double *x, double *y)
{
    const double gap = 18;
    char text[TEXT];
    clean(name, text);
    cut_to(d->cr, text, plot_right - plot_left - SWATCH);
    const double width = (l ? SWATCH + 5 : 0) + width_of(d->cr, text);
    if (*x > plot_left && *x + width > TTN_CHART_WIDTH - 8) {
        *x = plot_left;
        *y += LEGEND_ROW;
    }
    if (draws && l) {
        set_stroke(d->cr, l);
        cairo_move_to(d->cr, *x, *y - 4);
        cairo_line_to(d->cr, *x + SWATCH, *y - 4);
        cairo_stroke(d->cr);
        if (l->kind == TTN_LINE_POINTS) dot(d->cr, *x + SWATCH / 2.0, *y - 4);
        cairo_set_dash(d->cr, NULL, 0, 0);
    }
    if (draws) {
        set_colour(d->cr, l ? ink : alarm, 1);
        put_text(d->cr, *x + (l ? SWATCH + 5 : 0), *y, 0, text);
    }
    *x += width + gap;
}

/* Returns where it ends. */
static double legend(drawing *d, int draws)
{
    double x = plot_left, y = LEGEND;
    for (int i = 0; i < d->chart->n_line; i++)
        legend_entry(d, &d->chart->line[i], d->chart->line[i].name, draws, &x, &y);
    if (d->n_bad > 0) {
        char text[64];
        snprintf(text, sizeof text, "not finite: %lld", (long long)d->n_bad);
        legend_entry(d, NULL, text, draws, &x, &y);
    }
    return y;
}

static void draw_title(drawing *d)
{
    char text[TEXT];
    cairo_select_font_face(d->cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_BOLD);
    cairo_set_font_size(d->cr, TITLE_FONT);
    clean(d->chart->title, text);
    cut_to(d->cr, text, TTN_CHART_WIDTH - TTN_CHART_LEFT - 16);
    set_colour(d->cr, ink, 1);
    put_text(d->cr, plot_left, TITLE, 0, text);
    cairo_select_font_face(d->cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(d->cr, FONT);
}

/* ---- lines ---- */

enum { BINS = TTN_CHART_WIDTH - TTN_CHART_LEFT - TTN_CHART_RIGHT }; /* one a pixel */

/* Coordinates far outside would overflow cairo's fixed point numbers; what is clipped may be anywhere near. */
static double near_y(const drawing *d, double y)
{
    const double place = place_y(d, y);
    return fmin(fmax(place, d->top - 50), plot_bottom + 50);
}

/* A path through the points, broken where one is not finite. */
static void trace(drawing *d, const double *x, const double *y, int64_t n)
{
    int is_broken = 1;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(y[i])) {
            is_broken = 1;
            continue;
        }
        const double px = place_x(d, x[i]), py = near_y(d, y[i]);
        if (is_broken) cairo_move_to(d->cr, px, py); /* a point alone: the round cap makes it a small dot */
        cairo_line_to(d->cr, px, py);
        is_broken = 0;
    }
    cairo_stroke(d->cr);
}

/* The same for more points than pixels: up and down between the extremes of each pixel, or along its means. */
static void trace_bins(drawing *d, const double *x, const double *y, int64_t n, int extremes)
{
    ttn_bin bin[BINS];
    int is_first = 1;
    ttn_bins_of(x, y, n, d->x_low, d->x_high, BINS, bin);
    for (int b = 0; b < BINS; b++) {
        if (bin[b].n == 0) {
            is_first |= bin[b].n_bad > 0;
            continue;
        }
        const double px = place_x(d, bin[b].x);
        if (is_first) cairo_move_to(d->cr, px, near_y(d, extremes ? bin[b].low : bin[b].mean));
        if (extremes) {
            cairo_line_to(d->cr, px, near_y(d, b % 2 ? bin[b].high : bin[b].low));
            cairo_line_to(d->cr, px, near_y(d, b % 2 ? bin[b].low : bin[b].high));
        } else {
            cairo_line_to(d->cr, px, near_y(d, bin[b].mean));
        }
        is_first = 0;
    }
    cairo_stroke(d->cr);
}

static void trace_any(drawing *d, const ttn_chart_line *l, const double *y, int extremes)
{
    if (l->n > 2 * (int64_t)BINS)
        trace_bins(d, l->x, y, l->n, extremes);
    else
        trace(d, l->x, y, l->n);
    if (l->n == 1 && isfinite(y[0])) dot(d->cr, place_x(d, l->x[0]), near_y(d, y[0]));
}

static void draw_noisy(drawing *d, const ttn_chart_line *l)
{
    set_colour(d->cr, palette[l->colour], 0.3);
    cairo_set_line_width(d->cr, 0.8);
    trace_any(d, l, l->y, 1);
    ttn_smooth(l->y, l->n, reach_of(l), d->smooth);
    set_stroke(d->cr, l);
    trace_any(d, l, d->smooth, 0);
}

static void draw_points(drawing *d, const ttn_chart_line *l)
{
    const int64_t most_dots = 100; /* beyond, they would cover the line */
    set_stroke(d->cr, l);
    trace_any(d, l, l->y, 1);
    cairo_set_line_width(d->cr, 1);
    for (int64_t i = 0; i < l->n && l->n <= most_dots; i++) {
        if (!isfinite(l->y[i])) continue;
        const double x = place_x(d, l->x[i]);
        dot(d->cr, x, near_y(d, l->y[i]));
        if (!l->error || !isfinite(l->error[i])) continue;
        cairo_move_to(d->cr, x, near_y(d, l->y[i] - l->error[i]));
        cairo_line_to(d->cr, x, near_y(d, l->y[i] + l->error[i]));
        cairo_stroke(d->cr);
    }
}

/* Red marks on the axis, one a pixel at most. */
static void mark_bad(drawing *d, const ttn_chart_line *l)
{
    ttn_bin bin[BINS];
    if (l->kind == TTN_LINE_LEVEL) return;
    ttn_bins_of(l->x, l->y, l->n, d->x_low, d->x_high, BINS, bin);
    set_colour(d->cr, alarm, 1);
    cairo_set_line_width(d->cr, 1.5);
    for (int b = 0; b < BINS; b++) {
        if (bin[b].n_bad == 0) continue;
        const double x = plot_left + (b + 0.5) / BINS * (plot_right - plot_left);
        cairo_move_to(d->cr, x, plot_bottom - 8);
        cairo_line_to(d->cr, x, plot_bottom);
    }
    cairo_stroke(d->cr);
}

static void draw_line(drawing *d, const ttn_chart_line *l)
{
    switch (l->kind) {
    case TTN_LINE_PLAIN:
        set_stroke(d->cr, l);
        trace_any(d, l, l->y, 1);
        break;
    case TTN_LINE_NOISY:
        draw_noisy(d, l);
        break;
    case TTN_LINE_POINTS:
        draw_points(d, l);
        break;
    case TTN_LINE_LEVEL:
        if (l->n == 0 || !isfinite(l->y[0])) break;
        set_stroke(d->cr, l);
        cairo_move_to(d->cr, plot_left, place_y(d, l->y[0]));
        cairo_line_to(d->cr, plot_right, place_y(d, l->y[0]));
        cairo_stroke(d->cr);
        cairo_set_dash(d->cr, NULL, 0, 0);
        break;
    }
}

static void draw_lines(drawing *d)
{
    cairo_save(d->cr);
    cairo_rectangle(d->cr, plot_left, d->top, plot_right - plot_left, plot_bottom - d->top);
    cairo_clip(d->cr);
    cairo_set_line_join(d->cr, CAIRO_LINE_JOIN_ROUND);
    cairo_set_line_cap(d->cr, CAIRO_LINE_CAP_ROUND);
    for (int i = 0; i < d->chart->n_line; i++) {
        draw_line(d, &d->chart->line[i]);
        mark_bad(d, &d->chart->line[i]);
    }
    cairo_restore(d->cr);
}

static void draw_nothing(drawing *d)
{
    for (int i = 0; i < d->chart->n_line; i++)
        if (d->chart->line[i].kind != TTN_LINE_LEVEL && d->chart->line[i].n > 0) return;
    set_colour(d->cr, palette[TTN_GREY], 1);
    put_text(d->cr, (plot_left + plot_right) / 2, (d->top + plot_bottom) / 2, 0.5, "nothing has been measured yet");
}

/* ---- the whole ---- */

static ttn_status fail(cairo_status_t status, ttn_error *err)
{
    return TTN_FAIL(err, status == CAIRO_STATUS_NO_MEMORY ? TTN_ENOMEM : TTN_EINTERNAL, "a chart cannot be drawn: %s",
                    cairo_status_to_string(status));
}

static ttn_status draw(const ttn_chart *c, cairo_t *cr, ttn_error *err)
{
    int64_t most = 0;
    for (int i = 0; i < c->n_line; i++)
        if (c->line[i].kind == TTN_LINE_NOISY && c->line[i].n > most) most = c->line[i].n;
    drawing d = {.chart = c, .cr = cr, .smooth = ttn_alloc_or_say(most, sizeof(double), "the points of a chart", err)};
    if (!d.smooth) return TTN_ENOMEM;
    cairo_set_source_rgb(cr, 1, 1, 1);
    cairo_paint(cr);
    find_ranges(&d);
    draw_title(&d);
    d.top = legend(&d, 0) + 12;
    legend(&d, 1);
    cairo_set_line_width(cr, 1);
    draw_y_axis(&d);
    draw_x_axis(&d);
    draw_right_axis(&d);
    draw_lines(&d);
    draw_nothing(&d);
    draw_frame(&d);
    ttn_free(d.smooth);
    const cairo_status_t status = cairo_status(cr);
    return status == CAIRO_STATUS_SUCCESS ? TTN_OK : fail(status, err);
}

/* Draws, and lets everything reach the surface. */
static ttn_status draw_on(const ttn_chart *c, cairo_surface_t *surface, double scale, ttn_error *err)
{
    cairo_t *cr = cairo_create(surface);
    cairo_scale(cr, scale, scale);
    ttn_status status = draw(c, cr, err);
    cairo_destroy(cr);
    if (cairo_surface_get_type(surface) == CAIRO_SURFACE_TYPE_SVG) cairo_surface_finish(surface);
    const cairo_status_t end = cairo_surface_status(surface);
    return status == TTN_OK && end != CAIRO_STATUS_SUCCESS ? fail(end, err) : status;
}

static cairo_status_t take(void *to, const unsigned char *bytes, unsigned n)
{
    ttn_builder *b = to;
    ttn_build_bytes(b, bytes, n);
    return b->failed ? CAIRO_STATUS_NO_MEMORY : CAIRO_STATUS_SUCCESS;
}

/* `text` with what cairo 1.16 writes made fit to stand in another document and to be the same each time: no <?xml …?>, ids
 * with a prefix (everything it numbers is "glyph0-1", "clip1", "surface7"), and a surface without its number, which counts
 * those of the whole process. */
static void build_embedded(ttn_builder *b, const char *text, const char *prefix)
{
    static const struct {
        const char *before;
        size_t n;
    } marks[] = {{"id=\"", 4}, {"href=\"#", 7}, {"url(#", 5}};
    const char *at = strstr(text, "<svg");
    assert(at);
    while (*at) {
        const char *next = NULL;
        size_t n = 0;
        for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
            const char *found = strstr(at, marks[i].before);
            if (!found || (next && found > next)) continue;
            next = found;
            n = marks[i].n;
        }
        if (!next) break;
        next += n;
        ttn_build_bytes(b, at, (size_t)(next - at));
        ttn_build(b, "%s", prefix);
        at = next;
        if (strncmp(at, "surface", 7) == 0) {
            ttn_build(b, "surface");
            at += 7 + strspn(at + 7, "0123456789");
        }
    }
    ttn_build(b, "%s", at);
}

ttn_status ttn_chart_svg(const ttn_chart *c, const char *prefix, char **ret, ttn_error *err)
{
    ttn_builder drawn = {0}, embedded = {0};
    cairo_surface_t *surface = cairo_svg_surface_create_for_stream(take, &drawn, TTN_CHART_WIDTH, TTN_CHART_HEIGHT);
    cairo_svg_surface_set_document_unit(surface, CAIRO_SVG_UNIT_PX);
    ttn_status status = draw_on(c, surface, 1, err);
    cairo_surface_destroy(surface);
    *ret = NULL;
    if (status == TTN_OK) {
        build_embedded(&embedded, drawn.text, prefix);
        status = ttn_builder_finish(&embedded, "a chart", ret, err);
    }
    ttn_builder_drop(&drawn);
    return status;
}

static ttn_status build_png(const ttn_chart *c, ttn_builder *b, ttn_error *err)
{
    const int scale = 2;
    cairo_surface_t *surface =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, scale * TTN_CHART_WIDTH, scale * TTN_CHART_HEIGHT);
    ttn_status status = draw_on(c, surface, scale, err);
    if (status == TTN_OK) {
        const cairo_status_t end = cairo_surface_write_to_png_stream(surface, take, b);
        if (end != CAIRO_STATUS_SUCCESS) status = fail(end, err);
    }
    cairo_surface_destroy(surface);
    return status;
}

static int ends_in(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

ttn_status ttn_chart_save(const ttn_chart *c, const char *path, ttn_error *err)
{
    ttn_status status;
    if (ends_in(path, ".png")) {
        ttn_builder png = {0};
        status = build_png(c, &png, err);
        if (status == TTN_OK) status = ttn_atomic_save(path, png.text, png.n, err);
        ttn_builder_drop(&png);
        return status;
    }
    char *svg;
    status = ttn_chart_svg(c, "c", &svg, err);
    if (status != TTN_OK) return status;
    status = ttn_atomic_save(path, svg, strlen(svg), err);
    free(svg);
    return status;
}
