#include <math.h>
#include <stdio.h>
#include <string.h>
#include "train/look/chart.h"
#include "train/look/curve.h"

enum { MOST_LINES = 4, NAME = 96, TITLE = 512 };

/* A line of a chart, and where it comes from. */
typedef struct {
    const char *metric;
    const char *error; /* the metric of its standard error; NULL: none */
    const char *name;  /* in the legend */
    ttn_line_kind kind;
    ttn_line_colour colour;
} source;

typedef struct {
    const char *title, *y_label, *right_label;
    int from_zero;
    source line[MOST_LINES + 1]; /* metric NULL at the end */
} recipe;

static const recipe recipes[TTN_N_CURVES] = {
    [TTN_CURVE_LOSS] = {"loss",
                        "nats a residue",
                        "perplexity",
                        0,
                        {{ttn_metric_val_loss_frequency, NULL, "residue frequencies", TTN_LINE_LEVEL, TTN_GREY},
                         {ttn_metric_val_loss_composition, NULL, "own composition", TTN_LINE_LEVEL, TTN_GREEN},
                         {ttn_metric_train_loss, NULL, "training, all targets", TTN_LINE_NOISY, TTN_BLUE},
                         {ttn_metric_val_loss, ttn_metric_val_loss_error, "validation, hidden residues",
                          TTN_LINE_POINTS, TTN_ORANGE}}},
    [TTN_CURVE_ACCURACY] = {"accuracy",
                            "share that is right",
                            NULL,
                            1,
                            {{ttn_metric_train_accuracy, NULL, "training, all targets", TTN_LINE_NOISY, TTN_BLUE},
                             {ttn_metric_val_accuracy, NULL, "validation, hidden residues", TTN_LINE_POINTS,
                              TTN_ORANGE}}},
    [TTN_CURVE_LR] = {"learning rate",
                      "learning rate",
                      NULL,
                      1,
                      {{ttn_metric_train_lr, NULL, "learning rate", TTN_LINE_PLAIN, TTN_BLUE}}},
    [TTN_CURVE_GRAD_NORM] = {"gradient norm",
                             "norm before clipping",
                             NULL,
                             1,
                             {{ttn_metric_train_grad_norm, NULL, "gradient norm", TTN_LINE_NOISY, TTN_BLUE}}},
    [TTN_CURVE_SPEED] = {"speed",
                         "residues a second",
                         NULL,
                         1,
                         {{ttn_metric_perf_residues_per_s, NULL, "residues a second", TTN_LINE_NOISY, TTN_BLUE}}},
};

/* A level stands where it was measured last; its legend says where that is. */
static void set_level(ttn_chart_line *l, const ttn_series *s, char *name)
{
    const double value = s->value[s->n - 1];
    l->y = &s->value[s->n - 1];
    l->x = NULL;
    l->n = 1;
    snprintf(name, NAME, "%s: %.3f (perplexity %.2f)", l->name, value, exp(value));
    l->name = name;
}

/* What is there of the recipe's lines; name: room for texts of the legend. */
static int gather(const ttn_history *h, const recipe *r, ttn_chart_line *line, char (*name)[NAME])
{
    int n = 0;
    for (const source *from = r->line; from->metric; from++) {
        const ttn_series *s = ttn_history_find(h, from->metric);
        if (!s || s->n == 0) continue;
        line[n] = (ttn_chart_line){
            .name = from->name, .kind = from->kind, .colour = from->colour, .x = s->step, .y = s->value, .n = s->n};
        /* A record has a value and its error, or neither. */
        const ttn_series *error = from->error ? ttn_history_find(h, from->error) : NULL;
        if (error && error->n == s->n) line[n].error = error->value;
        if (from->kind == TTN_LINE_LEVEL) set_level(&line[n], s, name[n]);
        n++;
    }
    return n;
}

int ttn_curve_is_there(const ttn_history *h, ttn_curve curve)
{
    for (const source *from = recipes[curve].line; from->metric; from++) {
        const ttn_series *s = ttn_history_find(h, from->metric);
        if (s && s->n > 0) return 1;
    }
    return 0;
}

/* The chart of a curve, with the texts that it borrows. */
typedef struct {
    ttn_chart chart;
    ttn_chart_line line[MOST_LINES];
    char name[MOST_LINES][NAME];
    char title[TITLE];
} curve_chart;

static void make_chart(const ttn_history *h, ttn_curve curve, const char *run, curve_chart *c)
{
    const recipe *r = &recipes[curve];
    snprintf(c->title, sizeof c->title, "%s%s%s", run, *run ? ": " : "", r->title);
    c->chart = (ttn_chart){.title = c->title,
                           .x_label = "step",
                           .y_label = r->y_label,
                           .right_label = r->right_label,
                           .line = c->line,
                           .n_line = gather(h, r, c->line, c->name),
                           .from_zero = r->from_zero};
}

ttn_status ttn_curve_svg(const ttn_history *h, ttn_curve curve, const char *run, const char *prefix, char **ret,
                         ttn_error *err)
{
    curve_chart c = {.title = ""};
    make_chart(h, curve, run, &c);
    return ttn_chart_svg(&c.chart, prefix, ret, err);
}

ttn_status ttn_curve_save(const ttn_history *h, ttn_curve curve, const char *run, const char *path, ttn_error *err)
{
    curve_chart c = {.title = ""};
    make_chart(h, curve, run, &c);
    return ttn_chart_save(&c.chart, path, err);
}
