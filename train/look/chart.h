/* A chart of numbers over steps: SVG for documents and the report, PNG for whatever shows no SVG, of one drawing (cairo).
 *
 * The same chart gives the same bytes, on one machine: letters are outlines of the font that fontconfig finds for
 * "sans-serif". A million points cost what 600 cost: of those that fall on one pixel the least and the largest are drawn.
 * Values that are not finite are marked on the axis and counted in the legend, and bend no line.
 */
#ifndef TTN_CHART_H
#define TTN_CHART_H

#include <stddef.h>
#include <stdint.h>
#include "core/status.h"

typedef enum {
    TTN_LINE_PLAIN,
    TTN_LINE_NOISY,  /* faint as it is, and smoothed over a fortieth of it */
    TTN_LINE_POINTS, /* dots with error bars, joined */
    TTN_LINE_LEVEL,  /* dashed, from edge to edge, at y[0] */
} ttn_line_kind;

typedef enum { TTN_BLUE, TTN_ORANGE, TTN_GREEN, TTN_GREY } ttn_line_colour; /* told apart also by the colour-blind */

/* Everything is borrowed. */
typedef struct {
    const char *name; /* in the legend */
    ttn_line_kind kind;
    ttn_line_colour colour;
    const double *x, *y; /* (n) x finite and ascending; of a level no x */
    const double *error; /* (n) of points: half the length of their bars, which NaN lacks; NULL: none */
    int64_t n;
} ttn_chart_line;

typedef struct {
    const char *title; /* any bytes; what is too long is cut */
    const char *x_label, *y_label;
    const char *right_label;    /* of an axis on the right with exp of y; NULL: there is none */
    const ttn_chart_line *line; /* those that come later lie above */
    int n_line;
    int from_zero; /* y begins at 0 */
} ttn_chart;

/* In pixels; and what lies between the plot and the edges. */
enum {
    TTN_CHART_WIDTH = 700,
    TTN_CHART_HEIGHT = 400,
    TTN_CHART_LEFT = 74,
    TTN_CHART_RIGHT = 56,
    TTN_CHART_BOTTOM = 46,
};

/* An <svg> element with everything it needs. Its ids begin with `prefix` (letters), so that several may stand in one
 * document. *ret is the caller's, to be freed with free. TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_chart_svg(const ttn_chart *c, const char *prefix, char **ret, ttn_error *err);

/* To a file that appears whole: PNG, at twice the size in pixels, where the path ends in .png, else SVG. Failures of
 * core/atomic.h. */
TTN_MUST_USE ttn_status ttn_chart_save(const ttn_chart *c, const char *path, ttn_error *err);

#endif
