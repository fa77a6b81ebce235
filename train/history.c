#include <stdio.h>
#include <string.h>
#include "core/memory.h"
#include "train/history.h"

/* A larger piece with what the old one holds, which is freed; NULL: no memory, and the old one stays. */
static void *grow(void *old, int64_t n, int64_t room, size_t size)
{
    void *larger = ttn_alloc_array(room, size);
    if (!larger) return NULL;
    if (n > 0) memcpy(larger, old, (size_t)n * size);
    ttn_free(old);
    return larger;
}

static ttn_status no_memory(ttn_error *err)
{
    return TTN_FAIL(err, TTN_ENOMEM, "no memory for the history of what was measured");
}

static ttn_series *find(const ttn_history *h, const char *name)
{
    for (int64_t i = 0; i < h->n; i++)
        if (strcmp(h->series[i].name, name) == 0) return &h->series[i];
    return NULL;
}

const ttn_series *ttn_history_find(const ttn_history *h, const char *name)
{
    return find(h, name);
}

int ttn_history_at(const ttn_history *h, const char *name, double step, double *ret)
{
    const ttn_series *s = ttn_history_find(h, name);
    for (int64_t i = s ? s->n - 1 : -1; i >= 0; i--)
        if (s->step[i] == step) {
            *ret = s->value[i];
            return 1;
        }
    return 0;
}

/* titin's own metrics have a series in any case: the curves are drawn from them. */
static int is_left_out(const ttn_history *h, const char *name)
{
    return h->n >= TTN_MOST_METRICS && !ttn_metric_what(name);
}

/* A new series of that name; NULL: no memory. */
static ttn_series *begin_series(ttn_history *h, const char *name)
{
    if (h->n == h->room) {
        const int64_t room = 2 * h->room + 32;
        ttn_series *larger = grow(h->series, h->n, room, sizeof *larger);
        if (!larger) return NULL;
        h->series = larger;
        h->room = room;
    }
    ttn_series *s = &h->series[h->n];
    *s = (ttn_series){0};
    snprintf(s->name, sizeof s->name, "%s", name);
    h->n++;
    return s;
}

static int append(ttn_series *s, double step, double value)
{
    if (s->n == s->room) {
        const int64_t room = 2 * s->room + 64;
        double *larger = grow(s->step, s->n, room, sizeof *larger);
        if (!larger) return 0;
        s->step = larger;
        larger = grow(s->value, s->n, room, sizeof *larger);
        if (!larger) return 0; /* s->step has more room than is said: no harm */
        s->value = larger;
        s->room = room;
    }
    s->step[s->n] = step;
    s->value[s->n] = value;
    s->n++;
    return 1;
}

ttn_status ttn_history_add(ttn_history *h, const ttn_metrics *r, ttn_error *err)
{
    if (r->failed) return no_memory(err);
    for (int64_t i = 0; i < r->n; i++) {
        ttn_series *s = find(h, r->metric[i].name);
        if (!s && is_left_out(h, r->metric[i].name)) continue;
        if (!s) s = begin_series(h, r->metric[i].name);
        if (!s || !append(s, (double)r->step, r->metric[i].value)) return no_memory(err);
    }
    h->n_record++;
    return TTN_OK;
}

void ttn_history_drop(ttn_history *h)
{
    for (int64_t i = 0; i < h->n; i++) {
        ttn_free(h->series[i].step);
        ttn_free(h->series[i].value);
    }
    ttn_free(h->series);
    *h = (ttn_history){0};
}
