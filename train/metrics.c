#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/memory.h"
#include "train/metrics.h"

/* ---- names ---- */

#define TTN_METRIC_NAME(id, name, what) const char ttn_metric_##id[] = name;
TTN_METRICS(TTN_METRIC_NAME)
#undef TTN_METRIC_NAME

static const struct {
    const char *name, *what;
} kinds[] = {
#define TTN_METRIC_KIND(id, name, what) {name, what},
    TTN_METRICS(TTN_METRIC_KIND)
#undef TTN_METRIC_KIND
};

const char *ttn_metric_what(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0) return kinds[i].what;
    return NULL;
}

int ttn_metric_is_perf(const char *name)
{
    return strncmp(name, "perf/", 5) == 0;
}

int ttn_metric_name_is_good(const char *name)
{
    size_t n = 0;
    for (; name[n]; n++)
        if (name[n] <= ' ' || name[n] > '~' || name[n] == '"' || name[n] == '\\') return 0;
    return n > 0 && n < TTN_METRIC_TEXT;
}

/* ---- a record ---- */

static int make_room(ttn_metrics *r)
{
    if (r->n < r->room) return 1;
    const int64_t room = 2 * r->room + 32;
    ttn_metric *larger = ttn_alloc_array(room, sizeof *larger);
    if (!larger) return 0;
    if (r->n > 0) memcpy(larger, r->metric, (size_t)r->n * sizeof *larger);
    ttn_free(r->metric);
    r->metric = larger;
    r->room = room;
    return 1;
}

/* -1: there is none of that name. */
static int64_t place_of(const ttn_metrics *r, const char *name)
{
    for (int64_t i = 0; i < r->n; i++)
        if (strcmp(r->metric[i].name, name) == 0) return i;
    return -1;
}

void ttn_metrics_add(ttn_metrics *r, const char *name, double value)
{
    assert(ttn_metric_name_is_good(name) && place_of(r, name) < 0);
    if (!make_room(r)) {
        r->failed = 1;
        return;
    }
    snprintf(r->metric[r->n].name, TTN_METRIC_TEXT, "%s", name);
    r->metric[r->n].value = value;
    r->n++;
}

int ttn_metrics_find(const ttn_metrics *r, const char *name, double *ret)
{
    const int64_t i = place_of(r, name);
    if (i >= 0) *ret = r->metric[i].value;
    return i >= 0;
}

void ttn_metrics_clear(ttn_metrics *r)
{
    r->n = 0;
    r->failed = 0;
}

void ttn_metrics_drop(ttn_metrics *r)
{
    ttn_free(r->metric);
    *r = (ttn_metrics){0};
}

/* ---- a mean that forgets ---- */

void ttn_ema_add(ttn_ema *e, double value, double keep)
{
    if (!isfinite(value)) return;
    e->sum = keep * e->sum + (1 - keep) * value;
    e->weight = keep * e->weight + (1 - keep);
}

double ttn_ema_value(const ttn_ema *e)
{
    return e->weight > 0 ? e->sum / e->weight : (double)NAN;
}
