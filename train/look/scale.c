#include <math.h>
#include <stdio.h>
#include <string.h>
#include "train/look/scale.h"

/* ---- ticks ---- */

ttn_ticks ttn_ticks_of(double low, double high, int wanted)
{
    static const double factor[] = {1, 2, 5, 10};
    const double slack = 1e-9; /* of a step: a border that is a tick but for rounding is one */
    if (!(high > low)) return (ttn_ticks){.first = low, .step = 1, .n = 1};
    const double power = pow(10, floor(log10((high - low) / wanted)));
    ttn_ticks t = {0};
    /* The largest step that still gives about as many; a smaller one when there would be fewer than two. */
    for (int i = 3; i >= 0; i--) {
        t.step = factor[i] * power;
        const double from = ceil(low / t.step - slack), to = floor(high / t.step + slack);
        t.first = from * t.step;
        t.n = (int)(to - from) + 1;
        if (t.n >= 2 && t.n >= wanted - 1) break;
    }
    return t;
}

char *ttn_tick_text(const ttn_ticks *t, int i, char *text)
{
    static const struct {
        double factor;
        const char *letter;
    } units[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e4, "k"}};
    const double value = t->first + i * t->step;
    const double largest = fmax(fabs(t->first), fabs(t->first + (t->n - 1) * t->step));
    double factor = 1;
    char unit[16] = "";
    for (size_t u = 0; u < sizeof units / sizeof *units; u++)
        if (largest >= units[u].factor) {
            factor = units[u].factor > 1e4 ? units[u].factor : 1e3; /* 1,500 but 15k */
            snprintf(unit, sizeof unit, "%s", units[u].letter);
            break;
        }
    if (largest > 0 && largest < 1e-2) { /* all ticks with one exponent */
        const int power = (int)floor(log10(largest) + 1e-9);
        factor = pow(10, power);
        snprintf(unit, sizeof unit, "e%d", power);
    }
    const double step = t->step / factor;
    const int digits = step >= 1 ? 0 : (int)ceil(-log10(step) - 1e-9);
    if (fabs(value) < t->step / 2)
        snprintf(text, TTN_TICK_TEXT, "0");
    else
        snprintf(text, TTN_TICK_TEXT, "%.*f%s", digits, value / factor, unit);
    return text;
}

/* ---- points ---- */

/* Sum and number of the finite values of y[first, end). */
typedef struct {
    int64_t first, end, n;
    double sum;
} window;

static void widen(window *w, const double *y, int64_t end)
{
    for (; w->end < end; w->end++) {
        if (!isfinite(y[w->end])) continue;
        w->sum += y[w->end];
        w->n++;
    }
}

static void narrow(window *w, const double *y, int64_t first)
{
    const double large = 1e6; /* times the rest: taking such a value away would leave its rounding error behind */
    int is_spoiled = 0;
    for (; w->first < first; w->first++) {
        if (!isfinite(y[w->first])) continue;
        w->sum -= y[w->first];
        w->n--;
        is_spoiled |= fabs(y[w->first]) > large * fabs(w->sum);
    }
    if (!is_spoiled) return;
    *w = (window){.first = first, .end = first};
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void ttn_smooth(const double *y, int64_t n, int64_t reach, double *ret)
{
    window w = {0};
    for (int64_t i = 0; i < n; i++) {
        const int64_t before = i, after = n - 1 - i;
        int64_t r = least(reach, least(before, after));
        if (r < reach / 2) r = reach / 2;
        narrow(&w, y, i - least(r, before));
        widen(&w, y, i + least(r, after) + 1);
        ret[i] = w.n > 0 ? w.sum / (double)w.n : (double)NAN;
    }
}

void ttn_bins_of(const double *x, const double *y, int64_t n, double low, double high, int n_bin, ttn_bin *ret)
{
    memset(ret, 0, (size_t)n_bin * sizeof *ret);
    for (int64_t i = 0; i < n; i++) {
        if (!(x[i] >= low && x[i] <= high)) continue;
        int b = (int)((x[i] - low) / (high - low) * n_bin);
        if (b > n_bin - 1) b = n_bin - 1;
        ttn_bin *bin = &ret[b];
        if (!isfinite(y[i])) {
            bin->n_bad++;
            continue;
        }
        if (bin->n == 0 || y[i] < bin->low) bin->low = y[i];
        if (bin->n == 0 || y[i] > bin->high) bin->high = y[i];
        bin->x += x[i];
        bin->mean += y[i];
        bin->n++;
    }
    for (int b = 0; b < n_bin; b++) {
        if (ret[b].n == 0) {
            ret[b].x = ret[b].low = ret[b].high = ret[b].mean = (double)NAN;
            continue;
        }
        ret[b].x /= (double)ret[b].n;
        ret[b].mean /= (double)ret[b].n;
    }
}
