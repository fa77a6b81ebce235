#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/atomic.h"
#include "core/builder.h"
#include "core/clock.h"
#include "core/text.h"
#include "core/titin.h"
#include "train/look/curve.h"
#include "train/look/report.h"
#include "train/show_fact.h"

/* ---- text into HTML ---- */

/* What HTML gives a meaning becomes a name for it; bytes that are no UTF-8, and control characters that are no line ends
 * or tabs, become U+FFFD. */
static void escape(ttn_builder *b, const char *text)
{
    const size_t length = strlen(text);
    for (size_t at = 0; at < length;) {
        const unsigned char c = (unsigned char)text[at];
        const int n = ttn_text_character(text + at, length - at, NULL);
        if (c == '&')
            ttn_build(b, "&amp;");
        else if (c == '<')
            ttn_build(b, "&lt;");
        else if (c == '>')
            ttn_build(b, "&gt;");
        else if (c == '"')
            ttn_build(b, "&quot;");
        else if (n == 0 || c == 0x7f || (c < ' ' && c != '\n' && c != '\t'))
            ttn_build(b, "\uFFFD");
        else
            ttn_build_bytes(b, text + at, (size_t)n);
        at += n ? (size_t)n : 1;
    }
}

static void element(ttn_builder *b, const char *name, const char *text)
{
    ttn_build(b, "<%s>", name);
    escape(b, text);
    ttn_build(b, "</%s>", name);
}

static void heading(ttn_builder *b, const char *text)
{
    element(b, "h2", text);
    ttn_build(b, "\n");
}

/* ---- the page around it ---- */

/* Nothing is loaded and nothing runs, whatever stands in the texts. */
static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n";

/* Charts are drawn on white: in the dark their lightness is turned round, their hues stay. */
static const char style[] =
    "<style>\n"
    ":root { color-scheme: light dark; --ink: #222; --soft: #666; --line: #ddd; --paper: #fff; --box: #f6f6f4;\n"
    "        --good: #00704f; --bad: #b03020; }\n"
    "@media (prefers-color-scheme: dark) {\n"
    "  :root { --ink: #ddd; --soft: #999; --line: #3a3a3a; --paper: #161616; --box: #202020;\n"
    "          --good: #4cc79a; --bad: #ff8a7a; }\n"
    "  figure svg { filter: invert(0.91) hue-rotate(180deg); }\n"
    "}\n"
    "body { margin: 0 auto; padding: 1rem; max-width: 60rem; color: var(--ink); background: var(--paper);\n"
    "       font: 16px/1.45 system-ui, sans-serif; overflow-wrap: break-word; }\n"
    "h1 { font-size: 1.5rem; margin: 0.5rem 0 0; }\n"
    "h2 { font-size: 1.15rem; margin: 2rem 0 0.5rem; border-bottom: 1px solid var(--line); }\n"
    ".soft { color: var(--soft); margin: 0.2rem 0; }\n"
    ".wide { overflow-x: auto; }\n"
    "table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 0.3rem 0; }\n"
    "th, td { text-align: left; vertical-align: top; padding: 0.15rem 0.9rem 0.15rem 0; }\n"
    "th { font-weight: 600; white-space: nowrap; }\n"
    "td.number, th.number { text-align: right; white-space: nowrap; }\n"
    "tr.line > * { border-bottom: 1px solid var(--line); }\n"
    "td table { margin: 0; }\n"
    "figure { margin: 1rem 0; }\n"
    "figure svg { display: block; width: 100%; height: auto; max-width: 52rem; }\n"
    "pre { background: var(--box); padding: 0.7rem; overflow-x: auto; font-size: 0.85rem; }\n"
    "details > summary { cursor: pointer; }\n"
    ".good { color: var(--good); } .bad { color: var(--bad); }\n"
    "</style>\n";

static void begin_page(ttn_builder *b, const ttn_report *r)
{
    char date[TTN_DATE_TEXT];
    ttn_build_bytes(b, head, sizeof head - 1);
    ttn_build(b, "<title>");
    escape(b, r->run ? r->run : "titin");
    ttn_build(b, "</title>\n");
    ttn_build_bytes(b, style, sizeof style - 1);
    ttn_build(b, "</head>\n<body>\n");
    element(b, "h1", r->run ? r->run : "titin");
    if (r->state) {
        ttn_build(b, "\n<p class=\"soft\">");
        escape(b, r->state);
        ttn_build(b, "</p>");
    }
    ttn_build(b, "\n<p class=\"soft\">titin " TTN_VERSION ", %s</p>\n", ttn_date_print(r->date, date));
}

/* ---- the best validation ---- */

/* "2.6147 ± 0.0090" in a cell. */
static void put_estimate(ttn_builder *b, const char *kind, double value, double error)
{
    ttn_build(b, "<td class=\"number %s\">", kind);
    if (isfinite(value)) ttn_build(b, "%.3f", value);
    if (isfinite(value) && isfinite(error)) ttn_build(b, " \u00b1 %.3f", error);
    ttn_build(b, "</td>");
}

static void put_perplexity(ttn_builder *b, double loss)
{
    char text[TTN_SHOW_NUMBER];
    ttn_build(b, "<td class=\"number\">%s</td>", ttn_show_perplexity(loss, 2, text));
}

static void row_of_baseline(ttn_builder *b, const char *name, const ttn_beside *beside)
{
    ttn_build(b, "<tr><td>%s</td>", name);
    put_perplexity(b, beside->loss);
    put_estimate(b, "", beside->loss, (double)NAN);
    put_estimate(b, ttn_best_beats(beside) ? "good" : "bad", beside->gain, beside->error);
    ttn_build(b, "</tr>\n");
}

static void put_best(ttn_builder *b, const ttn_history *h)
{
    const ttn_best best = ttn_best_of(h);
    char step[TTN_SHOW_NUMBER], sequences[TTN_SHOW_NUMBER], targets[TTN_SHOW_NUMBER];
    heading(b, "Best validation");
    if (!best.is_there) {
        ttn_build(b, "<p>Nothing has been validated yet.</p>\n");
        return;
    }
    ttn_build(b, "<div class=\"wide\"><table>\n<tr class=\"line\"><th></th><th class=\"number\">perplexity</th>"
                 "<th class=\"number\">nats</th><th class=\"number\">better by</th></tr>\n");
    ttn_build(b, "<tr><th>this model</th>");
    put_perplexity(b, best.loss);
    put_estimate(b, "", best.loss, best.error);
    ttn_build(b, "<td></td></tr>\n");
    row_of_baseline(b, "residue frequencies", &best.frequency);
    row_of_baseline(b, "own composition", &best.composition);
    ttn_build(b, "</table></div>\n<p class=\"soft\">At step %s", ttn_show_count((int64_t)best.step, step));
    if (isfinite(best.sequences) && isfinite(best.targets))
        ttn_build(b, ", at %s residues of %s held-out proteins, each hidden behind &lt;mask&gt;",
                  ttn_show_count((int64_t)best.targets, targets), ttn_show_count((int64_t)best.sequences, sequences));
    if (isfinite(best.accuracy)) ttn_build(b, "; %.1f %% of them are right", 100 * best.accuracy);
    ttn_build(
        b, ". Beside it: guessing by what training proteins are made of, and by what can be seen of the same protein. "
           "Errors are standard errors over proteins.</p>\n");
}

/* ---- curves ---- */

static ttn_status put_curves(ttn_builder *b, const ttn_history *h, ttn_error *err)
{
    static const char *const prefix[TTN_N_CURVES] = {"l-", "a-", "r-", "g-", "s-"};
    heading(b, "Curves");
    for (int i = 0; i < TTN_N_CURVES; i++) {
        char *svg;
        if (!ttn_curve_is_there(h, (ttn_curve)i)) continue;
        ttn_status status = ttn_curve_svg(h, (ttn_curve)i, "", prefix[i], &svg, err);
        if (status != TTN_OK) return status;
        ttn_build(b, "<figure>\n%s</figure>\n", svg);
        free(svg);
    }
    if (h->n_record == 0) ttn_build(b, "<p>Nothing has been measured yet.</p>\n");
    return TTN_OK;
}

/* ---- facts ---- */

static void put_members(ttn_builder *b, const ttn_fact *f, int64_t at, int64_t end);

static void put_cell(ttn_builder *b, const ttn_fact *f)
{
    char text[TTN_SHOW_NUMBER];
    ttn_build(b, ttn_show_is_number(f) ? "<td class=\"number\">" : "<td>");
    escape(b, ttn_show_value(f, text));
    ttn_build(b, "</td>");
}

static void put_table(ttn_builder *b, const ttn_fact *f, int64_t at, int n)
{
    char key[TTN_SHOW_KEY];
    const int64_t first = at + 1;
    ttn_build(b, "<div class=\"wide\"><table>\n<tr class=\"line\">");
    for (int c = 0; c < n; c++) {
        ttn_build(b, ttn_show_is_number(&f[first + 1 + c]) ? "<th class=\"number\">" : "<th>");
        escape(b, ttn_show_key(f[first + 1 + c].key, key));
        ttn_build(b, "</th>");
    }
    ttn_build(b, "</tr>\n");
    for (int64_t entry = first; f[entry].kind == TTN_FACT_OPEN; entry += n + 2) {
        ttn_build(b, "<tr>");
        for (int c = 0; c < n; c++)
            put_cell(b, &f[entry + 1 + c]);
        ttn_build(b, "</tr>\n");
    }
    ttn_build(b, "</table></div>\n");
}

static void put_plain_list(ttn_builder *b, const ttn_fact *f, int64_t at)
{
    char text[TTN_SHOW_NUMBER];
    for (int64_t i = at + 1; f[i].kind != TTN_FACT_CLOSE; i++) {
        if (i > at + 1) ttn_build(b, ", ");
        escape(b, ttn_show_value(&f[i], text));
    }
    if (f[at + 1].kind == TTN_FACT_CLOSE) ttn_build(b, "none");
}

/* The value of a fact, whatever it is. */
static void put_value(ttn_builder *b, const ttn_fact *f, int64_t at)
{
    char text[TTN_SHOW_NUMBER];
    const int n = ttn_show_table_columns(f, at);
    if (ttn_show_is_plain_list(f, at))
        put_plain_list(b, f, at);
    else if (n > 0)
        put_table(b, f, at, n);
    else if (ttn_show_opens(&f[at]))
        put_members(b, f, at + 1, ttn_show_skip(f, at) - 1);
    else
        escape(b, ttn_show_value(&f[at], text));
}

static void put_members(ttn_builder *b, const ttn_fact *f, int64_t at, int64_t end)
{
    char key[TTN_SHOW_KEY];
    ttn_build(b, "<table>\n");
    for (; at < end; at = ttn_show_skip(f, at)) {
        ttn_build(b, "<tr><th>");
        escape(b, ttn_show_key(f[at].key, key));
        ttn_build(b, "</th><td>");
        put_value(b, f, at);
        ttn_build(b, "</td></tr>\n");
    }
    ttn_build(b, "</table>\n");
}

static void put_facts(ttn_builder *b, const char *title, const ttn_facts *f)
{
    if (!f) return;
    heading(b, title);
    ttn_build(b, "<div class=\"wide\">");
    put_members(b, ttn_facts_at(f), 0, ttn_facts_count(f));
    ttn_build(b, "</div>\n");
    for (int64_t i = 0; i < ttn_facts_warning_count(f); i++) {
        ttn_build(b, "<p class=\"bad\">");
        escape(b, ttn_facts_warning(f, i));
        ttn_build(b, "</p>\n");
    }
}

/* ---- the whole ---- */

static void put_advice(ttn_builder *b, const ttn_advice *a)
{
    if (!a || a->n == 0) return;
    heading(b, "What to try next");
    ttn_build(b, "<ul>\n");
    for (int i = 0; i < a->n; i++) {
        element(b, "li", a->text[i]);
        ttn_build(b, "\n");
    }
    ttn_build(b, "</ul>\n");
}

static ttn_status build(ttn_builder *b, const ttn_report *r, ttn_error *err)
{
    begin_page(b, r);
    put_best(b, r->history);
    put_advice(b, r->advice);
    ttn_status status = put_curves(b, r->history, err);
    put_facts(b, "Data", r->data);
    put_facts(b, "Environment", r->environment);
    if (r->config) {
        heading(b, "Configuration");
        ttn_build(b, "<details open><summary>every value, and where it comes from</summary>\n");
        element(b, "pre", r->config);
        ttn_build(b, "</details>\n");
    }
    if (r->resume) {
        heading(b, "To go on");
        element(b, "pre", r->resume);
        ttn_build(b, "\n");
    }
    ttn_build(b, "</body>\n</html>\n");
    return status;
}

ttn_status ttn_report_save(const ttn_report *r, const char *path, ttn_error *err)
{
    char *page;
    ttn_builder b = {0};
    ttn_status status = build(&b, r, err);
    if (status == TTN_OK) status = ttn_builder_finish(&b, "the report", &page, err);
    ttn_builder_drop(&b);
    if (status != TTN_OK) return status;
    status = ttn_atomic_save(path, page, strlen(page), err);
    free(page);
    return status;
}
