#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "core/text.h"
#include "train/cli/layout.h"
#include "train/cli/screen_train.h"
#include "train/pace.h"
#include "train/show_fact.h"

/* ---- pairs of a term and what it is ---- */

enum { MEANING = 2048, INDENT = 2, MOST_TERM = 12 };

/* A meaning that grows. */
typedef struct {
    char text[MEANING];
} meaning;

/* What a terminal would obey, line ends too, becomes '?': names and paths are other people's. */
static void add(meaning *m, const char *format, ...) TTN_PRINTF(2, 3);
static void add(meaning *m, const char *format, ...)
{
    const size_t used = strlen(m->text);
    va_list args;
    va_start(args, format);
    ttn_text_append(m->text, sizeof m->text, format, args);
    va_end(args);
    ttn_text_disarm(m->text + used);
}

/* The next line of a meaning that has some already. */
static void next_line(meaning *m)
{
    const size_t used = strlen(m->text);
    if (used > 0 && used + 1 < sizeof m->text) memcpy(m->text + used, "\n", 2);
}

static void print(const ttn_terminal *t, const char *term, meaning *m)
{
    if (!m->text[0]) return;
    const ttn_pair pair = {term, m->text};
    const ttn_pair_layout layout = {.out = t->out,
                                    .width = ttn_terminal_prose_width(t),
                                    .indent = INDENT,
                                    .most = MOST_TERM,
                                    .column = INDENT + MOST_TERM,
                                    .before = ttn_terminal_style(t, TTN_STYLE_BOLD),
                                    .after = ttn_terminal_plain(t)};
    ttn_print_pairs(&layout, &pair, 1);
}

/* A heading over the whole width. The text may hold any bytes. */
static void print_title(const ttn_terminal *t, const char *format, ...) TTN_PRINTF(2, 3);
static void print_title(const ttn_terminal *t, const char *format, ...)
{
    char text[MEANING] = "";
    va_list args;
    va_start(args, format);
    ttn_text_append(text, sizeof text, format, args);
    va_end(args);
    ttn_text_disarm(text);
    fputs(ttn_terminal_style(t, TTN_STYLE_BOLD), t->out);
    ttn_wrap(t->out, ttn_terminal_prose_width(t), 0, INDENT, text);
    fputs(ttn_terminal_plain(t), t->out);
}

/* ---- the first screen ---- */

/* Room for the numbers of one sentence. */
typedef struct {
    char a[TTN_SHOW_NUMBER], b[TTN_SHOW_NUMBER], c[TTN_SHOW_NUMBER];
} numbers;

static void print_device(const ttn_terminal *t, const ttn_run_start *s)
{
    meaning m = {""};
    if (s->device) add(&m, "%s", s->device);
    if (s->threads > 0) add(&m, ", %d thread%s", s->threads, ttn_text_plural(s->threads));
    if (s->blas) add(&m, "; %s", s->blas);
    if (s->real) add(&m, "; %s precision", strcmp(s->real, "f64") == 0 ? "double" : "single");
    print(t, "device", &m);
}

/* At most five lines. */
static void print_data(const ttn_terminal *t, const ttn_run_start *s)
{
    meaning m = {""};
    numbers n;
    if (s->data.sequences > 0)
        add(&m, "%s protein%s, %s residue%s", ttn_show_count(s->data.sequences, n.a),
            ttn_text_plural(s->data.sequences), ttn_show_count(s->data.residues, n.b),
            ttn_text_plural(s->data.residues));
    if (s->data.source) add(&m, " in %s", s->data.source);
    if (s->data.files > 1) add(&m, " and %s more", ttn_show_count(s->data.files - 1, n.a));
    if (s->data.longest > 0) {
        next_line(&m);
        add(&m, "%s to %s residues long, half of them up to %s", ttn_show_count(s->data.shortest, n.a),
            ttn_show_count(s->data.longest, n.b), ttn_show_count(s->data.median, n.c));
    }
    if (s->data.train > 0) {
        next_line(&m);
        add(&m, "%s to train on, %s held out", ttn_show_count(s->data.train, n.a), ttn_show_count(s->data.valid, n.b));
        if (s->data.split && strcmp(s->data.split, "cluster") == 0)
            add(&m, " (by clusters of similar ones)");
        else if (s->data.split)
            add(&m, " (by %s)", s->data.split);
    }
    if (s->data.cropped > 0) {
        next_line(&m);
        add(&m, "%s %s longer than %s: cropped, to another part every time", ttn_show_count(s->data.cropped, n.a),
            s->data.cropped == 1 ? "is" : "are", ttn_show_count(s->data.max_len, n.b));
    }
    print(t, "data", &m);
}

/* How much of what is held out is trained on, too. */
static void print_overlap(const ttn_terminal *t, const ttn_dataset_overlap *o)
{
    meaning m = {""};
    numbers n;
    if (!o->is_counted) return;
    /* Of very many held-out proteins some are looked at for nearly equal ones: shares are compared. */
    const double equal = 100 * (double)o->equal / (double)o->held_out, noticeable = 0.5;
    const double near = o->near.looked_at > 0 ? 100 * (double)o->near.over_50 / (double)o->near.looked_at : 0;
    if (o->equal > 0)
        add(&m, "%s of %s held-out protein%s (%.3g %%) %s also in the training set, with the same sequence",
            ttn_show_count(o->equal, n.a), ttn_show_count(o->held_out, n.b), ttn_text_plural(o->held_out), equal,
            o->equal == 1 ? "is" : "are");
    if (near > equal + noticeable) {
        next_line(&m);
        add(&m, "%.3g %% of held-out proteins share more than half of their 10-mers with the training set", near);
    }
    if (m.text[0]) {
        next_line(&m);
        add(&m, "there validation measures memorisation: take them out of data.train, or set data.split=cluster");
    }
    if (!o->is_near_counted) {
        next_line(&m);
        add(&m, "nearly equal proteins are not looked for in a set of this size; titin data info STORE --overlap does");
    }
    print(t, "overlap", &m);
}

/* What packing left out and repaired: nothing where there is nothing to be said. */
static void print_findings(const ttn_terminal *t, const ttn_run_start *s)
{
    const ttn_findings *found = s->data.found;
    meaning left_out = {""}, repaired = {""}, unusual = {""}, repeated = {""}, details = {""};
    numbers n;
    if (!found) return;
    if (!found->is_known) {
        add(&details, "packed by an early titin, which did not keep what it left out and repaired; pack it again");
        print(t, "details", &details);
        return;
    }
    if (found->left_out > 0)
        add(&left_out, "%s of %s records: %s", ttn_show_count(found->left_out, n.a),
            ttn_show_count(found->records, n.b), found->left_out_for);
    if (found->dropped > 0) {
        next_line(&left_out);
        add(&left_out, "%s of %s records with the sequence of an earlier one (data.dedup)",
            ttn_show_count(found->dropped, n.a), ttn_show_count(found->records, n.b));
    }
    add(&repaired, "%s", found->repaired);
    add(&unusual, "%s", found->unusual);
    if (found->duplicates > 0)
        add(&repeated, "%s protein%s with the sequence of an earlier one (data.dedup=exact keeps the first)",
            ttn_show_count(found->duplicates, n.a), ttn_text_plural(found->duplicates));
    if (left_out.text[0] || repaired.text[0] || unusual.text[0] || repeated.text[0]) {
        if (s->data.info) add(&details, "%s", s->data.info);
        next_line(&details);
        if (s->data.check) add(&details, "%s", s->data.check);
    }
    print(t, "left out", &left_out);
    print(t, "repaired", &repaired);
    print(t, "unusual", &unusual);
    print(t, "repeated", &repeated);
    print(t, "details", &details);
}

static void print_model(const ttn_terminal *t, const ttn_run_start *s)
{
    meaning m = {""};
    numbers n;
    if (s->model.layers > 0)
        add(&m, "%" PRId64 " layer%s of width %" PRId64 ", %" PRId64 " head%s", s->model.layers,
            ttn_text_plural(s->model.layers), s->model.width, s->model.heads, ttn_text_plural(s->model.heads));
    if (s->model.attention) add(&m, "; attention %s", s->model.attention);
    if (s->model.parameters > 0) add(&m, "; %s parameters", ttn_show_count(s->model.parameters, n.a));
    print(t, "model", &m);
}

static void print_memory(const ttn_terminal *t, const ttn_run_start *s)
{
    meaning m = {""};
    numbers n;
    if (s->memory.values > 0) add(&m, "%s", ttn_show_bytes(s->memory.values, n.a));
    if (s->memory.budget > 0) add(&m, " of %s", ttn_show_bytes(s->memory.budget, n.b));
    if (s->memory.held > 0) add(&m, ", beside %s for weights and moments", ttn_show_bytes(s->memory.held, n.c));
    if (s->memory.recomputed > 0)
        add(&m, "; %" PRId64 " of %" PRId64 " blocks computed twice, for %.0f %% more work", s->memory.recomputed,
            s->memory.blocks, 100 * s->memory.more);
    else if (s->memory.blocks > 0)
        add(&m, "; nothing is computed twice");
    print(t, "memory", &m);
}

static void print_batch(const ttn_terminal *t, const ttn_run_start *s)
{
    meaning m = {""};
    numbers n;
    if (s->batch.rows > 0)
        add(&m, "%s rows and up to %s protein%s", ttn_show_count(s->batch.rows, n.a),
            ttn_show_count(s->batch.seqs, n.b), ttn_text_plural(s->batch.seqs));
    if (s->batch.fill > 0) add(&m, ", %.1f %% filled", 100 * s->batch.fill);
    if (s->batch.shards > 1) add(&m, "; %s of them a step", ttn_show_count(s->batch.shards, n.c));
    print(t, "batch", &m);
}

static void print_steps(const ttn_terminal *t, const ttn_run_start *s)
{
    meaning m = {""};
    numbers n;
    if (s->steps > 0) add(&m, "%s", ttn_show_count(s->steps, n.a));
    if (s->epochs > 0) add(&m, ", which are %.3g passes over the data", s->epochs);
    if (s->eval_every > 0) add(&m, "; validation every %s", ttn_show_count(s->eval_every, n.b));
    if (s->save_every > 0) add(&m, "; saved every %s", ttn_show_count(s->save_every, n.c));
    print(t, "steps", &m);
}

static void print_files(const ttn_terminal *t, const char *run)
{
    meaning m = {""};
    add(&m, "%s: report.html, loss.svg, metrics.jsonl, tb/, ckpt/", run);
    print(t, "files", &m);
}

void ttn_screen_start(const ttn_terminal *t, const ttn_run_start *s)
{
    char step[TTN_SHOW_NUMBER];
    if (s->resumed > 0)
        print_title(t, "titin goes on with %s after step %s", s->run, ttn_show_count(s->resumed, step));
    else
        print_title(t, "titin trains %s", s->run);
    print_device(t, s);
    print_data(t, s);
    print_findings(t, s);
    print_overlap(t, &s->data.overlap);
    print_model(t, s);
    print_memory(t, s);
    print_batch(t, s);
    print_steps(t, s);
    print_files(t, s->run);
    fflush(t->out);
}

void ttn_screen_first_loss(const ttn_terminal *t, double loss, int64_t vocabulary)
{
    meaning m = {""};
    add(&m, "%.4f; knowing nothing is %.4f, ln %" PRId64, loss, log((double)vocabulary), vocabulary);
    print(t, "first loss", &m);
    fflush(t->out);
}

/* ---- progress ---- */

enum { NUMBER = 32, FIELD = 64 /* with its name */ };

/* value with a unit of thousands, three digits of it: "41.2k", "950", "1.23M". */
static void short_number(double value, double thousand, char *text)
{
    static const char *const letters[] = {"", "k", "M", "G", "T", "P", "E"};
    int u = 0;
    if (!(value >= 0 && value < 1e18)) {
        snprintf(text, NUMBER, "?");
        return;
    }
    while (value >= 999.5 && u < 6) {
        value /= thousand;
        u++;
    }
    snprintf(text, NUMBER, "%.*f%s", value >= 99.95 || u == 0 ? 0 : value >= 9.995 ? 1 : 2, value, letters[u]);
}

/* "6.1G" of bytes. */
static void short_bytes(double bytes, char *text)
{
    static const char *const letters[] = {"K", "M", "G", "T", "P"};
    double value = bytes / 1024;
    int u = 0;
    if (!(bytes >= 0 && bytes < 1e18)) {
        snprintf(text, NUMBER, "?");
        return;
    }
    while (value >= 999.5 && u < 4) {
        value /= 1024;
        u++;
    }
    snprintf(text, NUMBER, value >= 99.95 ? "%.0f%s" : "%.1f%s", value, letters[u]);
}

/* "3.0e-4": the exponent without zeros in front. */
static void short_power(double value, char *text)
{
    if (!isfinite(value)) {
        snprintf(text, NUMBER, "?");
        return;
    }
    snprintf(text, NUMBER, "%.1e", value);
    char *digit = strchr(text, 'e') + 2;
    while (digit[0] == '0' && digit[1])
        memmove(digit, digit + 1, strlen(digit));
}

/* In so many columns at least; what is not finite by name. */
static void fixed(double value, int columns, int digits, char *text)
{
    const double most = 1e7; /* beyond, a power */
    if (fabs(value) < most)
        snprintf(text, NUMBER, "%*.*f", columns, digits, value);
    else if (isfinite(value))
        snprintf(text, NUMBER, "%.1e", value);
    else
        snprintf(text, NUMBER, "%*s", columns, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

static int digits_of(int64_t n)
{
    return snprintf(NULL, 0, "%" PRId64, n);
}

enum { STEP, PART, LOSS, EMA, PPL, ACC, GNORM, LR, SPEED, PEAK, MEM, ETA, N_FIELD };

/* The least important first; STEP and LOSS always stay. */
static const int left_out_first[] = {PEAK, MEM, EMA, LR, GNORM, ACC, PART, SPEED, PPL, ETA};

static void make_fields(const ttn_progress *p, char (*field)[FIELD])
{
    char a[NUMBER];
    snprintf(field[STEP], FIELD, "step %*" PRId64 "/%" PRId64, digits_of(p->steps), p->step, p->steps);
    snprintf(field[PART], FIELD, "  %5.1f%%", p->steps > 0 ? 100 * (double)p->step / (double)p->steps : 0);
    fixed(p->loss, 6, 4, a);
    snprintf(field[LOSS], FIELD, "  loss %s", a);
    fixed(p->ema, 6, 4, a);
    snprintf(field[EMA], FIELD, " (ema %s)", a);
    fixed(exp(p->loss), 5, p->loss < 6.9 ? 1 : 0, a); /* 1000 and more without a fraction */
    snprintf(field[PPL], FIELD, "  ppl %s", a);
    fixed(p->accuracy, 5, 3, a);
    snprintf(field[ACC], FIELD, "  acc %s", a);
    fixed(p->grad_norm, 5, p->grad_norm < 99.995 ? 2 : 0, a);
    snprintf(field[GNORM], FIELD, "  gnorm %s", a);
    short_power(p->lr, a);
    snprintf(field[LR], FIELD, "  lr %7s", a);
    short_number(p->residues_per_s, 1000, a);
    snprintf(field[SPEED], FIELD, "  %5s res/s", a);
    if (isfinite(p->peak))
        snprintf(field[PEAK], FIELD, "  %3.0f %% peak", 100 * p->peak);
    else
        snprintf(field[PEAK], FIELD, "    ? %% peak");
    short_bytes(p->memory, a);
    snprintf(field[MEM], FIELD, "  mem %5s", a);
    snprintf(field[ETA], FIELD, "  eta %6s", ttn_pace_text(p->left, a));
}

char *ttn_progress_text(const ttn_progress *p, int width, char *text)
{
    char field[N_FIELD][FIELD];
    size_t n = 0, at = 0;
    make_fields(p, field);
    for (int i = 0; i < N_FIELD; i++)
        n += strlen(field[i]);
    for (size_t i = 0; width > 0 && n > (size_t)width && i < sizeof left_out_first / sizeof *left_out_first; i++) {
        char *left_out = field[left_out_first[i]];
        n -= strlen(left_out);
        left_out[0] = 0;
    }
    text[0] = 0;
    for (int i = 0; i < N_FIELD; i++)
        at += (size_t)snprintf(text + at, TTN_PROGRESS_TEXT - at, "%s", field[i]);
    return text;
}

/* ---- the last screen ---- */

static void print_best(const ttn_terminal *t, const ttn_best *b)
{
    meaning m = {""};
    numbers n;
    if (!b->is_there) {
        add(&m, "none: nothing was validated");
        print(t, "best", &m);
        return;
    }
    const double error = exp(b->loss) * b->error, most = 1e5;
    add(&m, "perplexity %s", ttn_show_perplexity(b->loss, 2, n.a));
    if (isfinite(error) && error < most) add(&m, " \u00b1 %.2f", error);
    add(&m, " at step %s", ttn_show_count((int64_t)b->step, n.a));
    if (isfinite(b->accuracy)) add(&m, ", %.1f %% right", 100 * b->accuracy);
    if (isfinite(b->targets) && isfinite(b->sequences))
        add(&m, "; %s hidden residue%s of %s protein%s that %s held out", ttn_show_count((int64_t)b->targets, n.b),
            ttn_text_plural((int64_t)b->targets), ttn_show_count((int64_t)b->sequences, n.c),
            ttn_text_plural((int64_t)b->sequences), (int64_t)b->sequences == 1 ? "was" : "were");
    print(t, "best", &m);
}

static void add_beside(meaning *m, const ttn_beside *b, const char *what)
{
    char number[TTN_SHOW_NUMBER];
    if (!isfinite(b->loss)) return;
    next_line(m);
    add(m, "%s for %s: ", ttn_show_perplexity(b->loss, 2, number), what);
    if (ttn_best_beats(b))
        add(m, "beaten by %.3f \u00b1 %.3f nats", b->gain, b->error);
    else if (isfinite(b->error))
        add(m, "not beaten (%+.3f \u00b1 %.3f nats)", b->gain, b->error);
    else
        add(m, "not known to be beaten (%+.3f nats)", b->gain);
}

static void print_baselines(const ttn_terminal *t, const ttn_best *b)
{
    meaning m = {""};
    if (!b->is_there) return;
    add_beside(&m, &b->frequency, "the residues' frequencies");
    add_beside(&m, &b->composition, "each protein's composition");
    print(t, "baselines", &m);
}

static void print_advice(const ttn_terminal *t, const ttn_advice *a)
{
    meaning m = {""};
    for (int i = 0; a && i < a->n; i++) {
        next_line(&m);
        add(&m, "- %s", a->text[i]);
    }
    print(t, "next", &m);
}

static void print_command(const ttn_terminal *t, const char *term, const char *command)
{
    meaning m = {""};
    if (command) add(&m, "%s", command);
    print(t, term, &m);
}

void ttn_screen_end(const ttn_terminal *t, const ttn_run_end *e)
{
    numbers n;
    char time[TTN_SHOW_NUMBER];
    ttn_show_seconds(e->seconds, time);
    if (e->has_diverged)
        print_title(t, "diverged: step %s of %s, after %s and %s residues", ttn_show_count(e->step, n.a),
                    ttn_show_count(e->steps, n.b), time, ttn_show_count(e->residues, n.c));
    else if (e->step >= e->steps)
        print_title(t, "done: %s step%s in %s, %s residues", ttn_show_count(e->step, n.a), ttn_text_plural(e->step),
                    time, ttn_show_count(e->residues, n.b));
    else
        print_title(t, "stopped after step %s of %s, after %s and %s residues", ttn_show_count(e->step, n.a),
                    ttn_show_count(e->steps, n.b), time, ttn_show_count(e->residues, n.c));
    print_best(t, e->best);
    print_baselines(t, e->best);
    print_files(t, e->run);
    print_command(t, "to go on", e->resume);
    print_command(t, "to try it", e->fill);
    print_advice(t, e->advice);
    fflush(t->out);
}
