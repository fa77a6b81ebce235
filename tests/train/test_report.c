/* report.html: one file that needs nothing else, whatever stands in its texts. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/rng.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"
#include "train/look/report.h"

static const char *in_folder(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", ttn_test_folder(), name);
    return path;
}

/* The caller's. */
static char *get(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = fopen(path, "r"), *to = open_memstream(&text, &size);
    if (!f || !to) fail_msg("%s: %s", path, strerror(errno));
    for (int c = getc(f); c != EOF; c = getc(f))
        putc(c, to);
    fclose(f);
    fclose(to);
    return text;
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
        ttn_metrics_add(&r, ttn_metric_train_grad_norm, 0.8 + 0.1 * (double)ttn_rng_next_normal(&rng));
        ttn_metrics_add(&r, ttn_metric_perf_residues_per_s, 41000 + 500 * (double)ttn_rng_next_normal(&rng));
        if (i % (n / 20) == 0) {
            ttn_metrics_add(&r, ttn_metric_val_loss, loss + 0.05);
            ttn_metrics_add(&r, ttn_metric_val_loss_error, 0.009);
            ttn_metrics_add(&r, ttn_metric_val_accuracy, 0.06 + 0.2 * (3.4 - loss));
            ttn_metrics_add(&r, ttn_metric_val_targets, 53120);
            ttn_metrics_add(&r, ttn_metric_val_sequences, 1009);
            ttn_metrics_add(&r, ttn_metric_val_loss_frequency, 2.892);
            ttn_metrics_add(&r, ttn_metric_val_gain_frequency, 2.892 - loss - 0.05);
            ttn_metrics_add(&r, ttn_metric_val_gain_frequency_error, 0.007);
            ttn_metrics_add(&r, ttn_metric_val_loss_composition, 2.861);
            ttn_metrics_add(&r, ttn_metric_val_gain_composition, 2.861 - loss - 0.05);
            ttn_metrics_add(&r, ttn_metric_val_gain_composition_error, 0.006);
        }
        assert_ok(ttn_history_add(&h, &r, &err), &err);
        ttn_metrics_drop(&r);
    }
    return h;
}

/* What somebody may have written into an id, a path, a configuration. */
static const char hostile[] = "</pre><script>alert(1)</script><img src=x onerror=\"x\">&amp;\x01\x1b[2J\xff\xc3(";

/* Facts of every kind: a table, a list, an object in an object. */
static ttn_facts *made_up_facts(void)
{
    ttn_facts *f;
    ttn_error err = {0};
    assert_ok(ttn_facts_create(&f, &err), &err);
    ttn_facts_integer(f, "records", 20000);
    ttn_facts_real(f, "mean", 352.9);
    ttn_facts_bytes(f, "bytes", 1 << 20);
    ttn_facts_flag(f, "is_good", 1);
    ttn_facts_none(f, "nothing");
    ttn_facts_text(f, "id", "%s", hostile);
    ttn_facts_open_list(f, "file");
    for (int i = 0; i < 2; i++) {
        ttn_facts_open(f, NULL);
        ttn_facts_text(f, "name", "file%d%s", i, hostile);
        ttn_facts_integer(f, "residues_in_it", 3500000 + i);
        ttn_facts_close(f);
    }
    ttn_facts_close(f);
    ttn_facts_open_list(f, "names");
    ttn_facts_text(f, NULL, "one");
    ttn_facts_text(f, NULL, "two");
    ttn_facts_close(f);
    ttn_facts_open(f, "inner");
    ttn_facts_seconds(f, "time_taken", 12);
    ttn_facts_close(f);
    ttn_facts_open_list(f, "empty");
    ttn_facts_close(f);
    ttn_facts_warn(f, "look at %s", hostile);
    assert_ok(ttn_facts_status(f, &err), &err);
    return f;
}

static ttn_status save(const ttn_history *h, const ttn_facts *f, const char *path, ttn_error *err)
{
    ttn_advice advice = {.n = 1};
    snprintf(advice.text[0], sizeof advice.text[0], "try <more> steps");
    const ttn_report r = {.run = hostile,
                          .state = "done: 4,000 steps in 3 h 12 min",
                          .date = 1767225600,
                          .history = h,
                          .data = f,
                          .environment = f,
                          .config = hostile,
                          .resume = "titin train a&b.yaml --resume",
                          .advice = &advice};
    return ttn_report_save(&r, path, err);
}

/* Tags open and close in order, attributes stand in quotes. Elements without an end are meta alone. */
static void assert_well_formed(const char *html)
{
    static const char doctype[] = "<!DOCTYPE html>\n";
    char open[64][16];
    int depth = 0;
    assert_int_equal(strncmp(html, doctype, strlen(doctype)), 0);
    for (const char *at = strchr(html + strlen(doctype), '<'); at; at = strchr(at, '<')) {
        char name[16];
        const int closes = at[1] == '/';
        at += 1 + closes;
        const size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
        if (n == 0 || n >= sizeof name) fail_msg("no tag: %.40s", at);
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        for (at += n; *at && *at != '>'; at++) {
            if (*at != '"') continue;
            at = strchr(at + 1, '"');
            assert_non_null(at);
        }
        assert_int_equal(*at, '>');
        if (closes) {
            assert_true(depth > 0);
            depth--;
            assert_string_equal(open[depth], name);
        } else if (at[-1] != '/' && strcmp(name, "meta") != 0) {
            assert_true(depth < 64);
            memcpy(open[depth], name, sizeof name);
            depth++;
        }
    }
    assert_int_equal(depth, 0);
}

static void texts_of_others_stay_texts(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_history h = made_up(400);
    ttn_facts *f = made_up_facts();
    assert_ok(save(&h, f, in_folder("report.html"), &err), &err);
    char *html = get(in_folder("report.html"));
    assert_well_formed(html);
    assert_null(strstr(html, "<script"));
    assert_null(strstr(html, "<img"));
    assert_null(strstr(html, "\x1b"));
    assert_null(strstr(html, "\xff"));
    assert_contains(html,
                    "&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=&quot;x&quot;&gt;&amp;amp;"
                    "\uFFFD\uFFFD[2J\uFFFD\uFFFD(");
    assert_contains(html, "<pre>titin train a&amp;b.yaml --resume</pre>");
    assert_contains(html, "<li>try &lt;more&gt; steps</li>");
    free(html);
    ttn_facts_destroy(f);
    ttn_history_drop(&h);
}

static void nothing_is_loaded_from_elsewhere(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_history h = made_up(400);
    ttn_facts *f = made_up_facts();
    assert_ok(save(&h, f, in_folder("report.html"), &err), &err);
    char *html = get(in_folder("report.html"));
    assert_contains(html, "content=\"default-src 'none'; style-src 'unsafe-inline'\"");
    assert_null(strstr(html, "@import"));
    assert_null(strstr(html, " src=\""));
    for (const char *at = strstr(html, "://"); at; at = strstr(at + 1, "://"))
        assert_int_equal(strncmp(at, "://www.w3.org/", 14), 0); /* names of SVG's vocabularies, not places */
    for (const char *at = strstr(html, "url("); at; at = strstr(at + 1, "url("))
        assert_int_equal(at[4], '#');
    free(html);
    ttn_facts_destroy(f);
    ttn_history_drop(&h);
}

static void what_is_known_is_shown(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_history h = made_up(400);
    ttn_facts *f = made_up_facts();
    assert_ok(save(&h, f, in_folder("report.html"), &err), &err);
    char *html = get(in_folder("report.html"));
    static const char *const words[] = {
        "done: 4,000 steps in 3 h 12 min",
        "2026-01-01T00:00:00Z",
        "<tr><td>residue frequencies</td><td class=\"number\">18.03</td><td class=\"number \">2.892</td>",
        "<td class=\"number good\">0.277 \u00b1 0.007</td></tr>",
        "At step 4,000, at 53,120 residues of 1,009 held-out proteins",
        "<th class=\"number\">residues in it</th>",
        "<td class=\"number\">3,500,001</td>",
        "<th>names</th><td>one, two</td>",
        "<th>time taken</th><td>12.0 s</td>",
        "<th>empty</th><td>none</td>",
        "<th>is good</th><td>yes</td>",
        "<p class=\"bad\">look at ",
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_contains(html, words[i]);
    int n_chart = 0;
    for (const char *at = strstr(html, "<svg "); at; at = strstr(at + 1, "<svg "))
        n_chart++;
    assert_int_equal(n_chart, 5);
    free(html);
    ttn_facts_destroy(f);
    ttn_history_drop(&h);
}

/* An id that two charts share would make one show the other's letters. */
static void no_two_elements_share_an_id(void **state)
{
    (void)state;
    enum { MOST = 4096 };
    static const char *id[MOST];
    ttn_error err = {0};
    ttn_history h = made_up(400);
    int n = 0;
    assert_ok(save(&h, NULL, in_folder("report.html"), &err), &err);
    char *html = get(in_folder("report.html"));
    for (char *at = strstr(html, " id=\""); at; at = strstr(at + 1, " id=\"")) {
        assert_true(n < MOST);
        id[n] = at + 5;
        for (int i = 0; i < n; i++)
            if (strncmp(id[i], id[n], strcspn(id[n], "\"") + 1) == 0) fail_msg("twice: %.20s", id[n]);
        n++;
    }
    assert_true(n > 100);
    free(html);
    ttn_history_drop(&h);
}

static void a_run_of_nothing_has_a_report(void **state)
{
    (void)state;
    ttn_error err = {0};
    const ttn_history h = {0};
    const ttn_report r = {.history = &h, .date = 0};
    assert_ok(ttn_report_save(&r, in_folder("empty.html"), &err), &err);
    char *html = get(in_folder("empty.html"));
    assert_well_formed(html);
    assert_contains(html, "Nothing has been measured yet.");
    assert_contains(html, "Nothing has been validated yet.");
    free(html);
}

static void a_fault_is_a_status_and_leaves_the_last_report(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_history h = {0}; /* one chart, since it is drawn for each of a hundred faults */
    ttn_facts *f = made_up_facts();
    ttn_metrics r = {.step = 1};
    ttn_metrics_add(&r, ttn_metric_train_lr, 1e-3);
    assert_ok(ttn_history_add(&h, &r, &err), &err);
    ttn_metrics_drop(&r);
    assert_ok(save(&h, f, in_folder("old.html"), &err), &err);
    char *before = get(in_folder("old.html"));
    static const struct {
        unsigned calls;
        int error;
        ttn_status status;
    } faults[] = {{SHIM_ALLOC, ENOMEM, TTN_ENOMEM}, {SHIM_WRITE | SHIM_FSYNC, ENOSPC, TTN_EIO}};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        int hit = 1, n_failed = 0;
        for (int nth = 1; hit; nth++) {
            err = (ttn_error){0};
            shim_arm(faults[i].calls, nth, SHIM_FAIL, faults[i].error, 0);
            ttn_status status = save(&h, f, in_folder("old.html"), &err);
            shim_disarm();
            hit = shim_was_hit();
            if (!hit) assert_int_equal(status, TTN_OK);
            if (status == TTN_OK) continue;
            n_failed++;
            assert_int_equal(status, faults[i].status);
            char *after = get(in_folder("old.html"));
            assert_string_equal(after, before);
            free(after);
        }
        assert_true(n_failed >= 2);
    }
    free(before);
    ttn_facts_destroy(f);
    ttn_history_drop(&h);
}

/* To look at: --child report FOLDER. */
static int write_one(int argc, char **argv)
{
    char path[PATH_MAX];
    ttn_error err = {0};
    if (argc != 1) return 2;
    ttn_history h = made_up(400);
    ttn_facts *f = made_up_facts();
    snprintf(path, sizeof path, "%s/report.html", argv[0]);
    assert_ok(save(&h, f, path, &err), &err);
    ttn_facts_destroy(f);
    ttn_history_drop(&h);
    return 0;
}

int main(int argc, char **argv)
{
    ttn_test_child("report", write_one);
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_others_stay_texts),
        cmocka_unit_test(nothing_is_loaded_from_elsewhere),
        cmocka_unit_test(what_is_known_is_shown),
        cmocka_unit_test(no_two_elements_share_an_id),
        cmocka_unit_test(a_run_of_nothing_has_a_report),
        cmocka_unit_test(a_fault_is_a_status_and_leaves_the_last_report),
    };
    return ttn_test_run(tests);
}
