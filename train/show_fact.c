#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "train/show_fact.h"

/* ---- numbers ---- */

char *ttn_show_bytes(int64_t bytes, char *text)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    int u = 0;
    while (value >= 1023.95 && u < 6) { /* what would be printed as 1024.0 */
        value /= 1024;
        u++;
    }
    snprintf(text, TTN_SHOW_NUMBER, u == 0 || value >= 99.95 ? "%.0f %s" : "%.1f %s", value, units[u]);
    if (bytes == 1) snprintf(text, TTN_SHOW_NUMBER, "1 byte");
    return text;
}

char *ttn_show_count(int64_t n, char *text)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, n);
    char *to = text;
    const char *from = digits;
    if (*from == '-') *to++ = *from++;
    for (size_t left = strlen(from); left > 0; left--) {
        *to++ = *from++;
        if (left > 1 && left % 3 == 1) *to++ = ',';
    }
    *to = 0;
    return text;
}

char *ttn_show_perplexity(double loss, int digits, char *text)
{
    const double plain = 1e5, most = 1e300, ppl = exp(loss);
    if (!isfinite(loss))
        snprintf(text, TTN_SHOW_NUMBER, "not finite");
    else if (ppl > most)
        snprintf(text, TTN_SHOW_NUMBER, "over 1e300");
    else if (ppl < plain)
        snprintf(text, TTN_SHOW_NUMBER, "%.*f", digits, ppl);
    else
        snprintf(text, TTN_SHOW_NUMBER, "%.1e", ppl);
    return text;
}

char *ttn_show_seconds(double seconds, char *text)
{
    if (seconds < 1e-3)
        snprintf(text, TTN_SHOW_NUMBER, "%.0f us", seconds * 1e6);
    else if (seconds < 1)
        snprintf(text, TTN_SHOW_NUMBER, seconds < 0.01 ? "%.1f ms" : "%.0f ms", seconds * 1e3);
    else if (seconds < 120)
        snprintf(text, TTN_SHOW_NUMBER, "%.1f s", seconds);
    else if (seconds < 48 * 3600)
        snprintf(text, TTN_SHOW_NUMBER, "%d h %02d min", (int)(seconds / 3600), (int)(seconds / 60) % 60);
    else
        snprintf(text, TTN_SHOW_NUMBER, "%.1f days", seconds / 86400);
    return text;
}

/* ---- values and keys ---- */

const char *ttn_show_value(const ttn_fact *f, char *text)
{
    switch (f->kind) {
    case TTN_FACT_TEXT:
        return f->text;
    case TTN_FACT_INTEGER:
        return ttn_show_count(f->integer, text);
    case TTN_FACT_REAL:
        snprintf(text, TTN_SHOW_NUMBER, "%.6g", f->real);
        return text;
    case TTN_FACT_BYTES:
        return ttn_show_bytes(f->integer, text);
    case TTN_FACT_SECONDS:
        return ttn_show_seconds(f->real, text);
    case TTN_FACT_FLAG:
        return f->integer ? "yes" : "no";
    case TTN_FACT_NONE:
        return "none";
    case TTN_FACT_OPEN:
    case TTN_FACT_OPEN_LIST:
    case TTN_FACT_CLOSE:
        break;
    }
    return "";
}

int ttn_show_is_number(const ttn_fact *f)
{
    return f->kind == TTN_FACT_INTEGER || f->kind == TTN_FACT_REAL || f->kind == TTN_FACT_BYTES ||
           f->kind == TTN_FACT_SECONDS;
}

const char *ttn_show_key(const char *key, char *text)
{
    snprintf(text, TTN_SHOW_KEY, "%s", key ? key : "-");
    for (char *c = text; *c; c++)
        if (*c == '_') *c = ' ';
    return text;
}

/* ---- what is in what ---- */

int ttn_show_opens(const ttn_fact *f)
{
    return f->kind == TTN_FACT_OPEN || f->kind == TTN_FACT_OPEN_LIST;
}

int64_t ttn_show_skip(const ttn_fact *f, int64_t at)
{
    int depth = 0;
    do {
        depth += ttn_show_opens(&f[at]) - (f[at].kind == TTN_FACT_CLOSE);
        at++;
    } while (depth > 0);
    return at;
}

int ttn_show_is_plain_list(const ttn_fact *f, int64_t at)
{
    if (f[at].kind != TTN_FACT_OPEN_LIST) return 0;
    for (at++; f[at].kind != TTN_FACT_CLOSE; at++)
        if (ttn_show_opens(&f[at])) return 0;
    return 1;
}

int ttn_show_table_columns(const ttn_fact *f, int64_t at)
{
    const int64_t first = at + 1;
    int n = 0;
    if (f[at].kind != TTN_FACT_OPEN_LIST || f[first].kind != TTN_FACT_OPEN) return 0;
    for (int64_t i = first + 1; f[i].kind != TTN_FACT_CLOSE; i++)
        n += ttn_show_opens(&f[i]) ? TTN_SHOW_COLUMNS + 1 : 1;
    if (n == 0 || n > TTN_SHOW_COLUMNS) return 0;
    for (int64_t entry = first; f[entry].kind == TTN_FACT_OPEN; entry += n + 2)
        for (int c = 0; c < n; c++) {
            const ttn_fact *now = &f[entry + 1 + c], *model = &f[first + 1 + c];
            if (now->kind == TTN_FACT_CLOSE || ttn_show_opens(now) || !now->key || strcmp(now->key, model->key) != 0)
                return 0;
            if (c == n - 1 && f[entry + n + 1].kind != TTN_FACT_CLOSE) return 0;
        }
    return n;
}
