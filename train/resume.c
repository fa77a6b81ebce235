#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/builder.h"
#include "train/resume.h"

/* ---- where it stood ---- */

/* Names in state.json: they stay. */
static const char SEED[] = "train", ORDER[] = "order";

void ttn_standing_write(const ttn_standing *s, uint64_t seed, ttn_standing_room *room, ttn_run_state *into)
{
    const ttn_trainer_state *t = &s->trainer;
    room->seed[0] = (ttn_named_number){SEED, seed};
    room->seed[1] = (ttn_named_number){ORDER, t->next.order};
    room->skipped[0] = (double)t->skipped;
    room->skipped[1] = (double)t->in_a_row;
    room->residues[0] = (double)t->residues;
    room->best[0] = (double)s->best_step;
    room->best[1] = s->best_step < 0 ? 0 : s->best_loss;
    room->longest[0] = (double)s->longest;
    room->series[0] = (ttn_named_series){TTN_SERIES_SKIPPED, room->skipped, 2};
    room->series[1] = (ttn_named_series){TTN_SERIES_RESIDUES, room->residues, 1};
    room->series[2] = (ttn_named_series){TTN_SERIES_BEST, room->best, 2};
    room->series[3] = (ttn_named_series){TTN_SERIES_LONGEST, room->longest, 1};
    into->step = t->steps;
    into->cursor.epoch = t->next.epoch;
    into->cursor.window = t->next.window;
    into->cursor.batch = t->next.batch;
    into->seed = room->seed;
    into->n_seed = TTN_STANDING_SEEDS;
    into->series = room->series;
    into->n_series = TTN_STANDING_SERIES;
}

static int find_seed(const ttn_run_state *s, const char *name, uint64_t *ret)
{
    for (int i = 0; i < s->n_seed; i++)
        if (strcmp(s->seed[i].name, name) == 0) {
            *ret = s->seed[i].value;
            return 1;
        }
    return 0;
}

ttn_status ttn_standing_read(const ttn_run_state *from, ttn_standing *ret, ttn_error *err)
{
    const double *skipped = ttn_run_state_series(from, TTN_SERIES_SKIPPED, 2),
                 *residues = ttn_run_state_series(from, TTN_SERIES_RESIDUES, 1);
    const double *best = ttn_run_state_series(from, TTN_SERIES_BEST, 2);
    uint64_t order;
    if (!skipped || !residues || !best || !find_seed(from, ORDER, &order))
        return TTN_FAIL(err, TTN_ECHECKPOINT,
                        "the checkpoint of step %" PRId64 " is none of a training run of this titin: its state lacks "
                        "what training goes on from",
                        from->step);
    *ret = (ttn_standing){
        .trainer =
            {
                .steps = from->step,
                .skipped = (int64_t)skipped[0],
                .in_a_row = (int64_t)skipped[1],
                .residues = (int64_t)residues[0],
                .next =
                    {
                        .epoch = from->cursor.epoch,
                        .window = from->cursor.window,
                        .batch = from->cursor.batch,
                        .order = order,
                    },
            },
        .best_step = (int64_t)best[0],
        .best_loss = best[1],
        .longest = ttn_standing_longest(from),
    };
    return TTN_OK;
}

int64_t ttn_standing_longest(const ttn_run_state *from)
{
    const double *longest = ttn_run_state_series(from, TTN_SERIES_LONGEST, 1);
    return longest ? (int64_t)longest[0] : 0;
}

/* ---- the configuration ---- */

/* A key, or with a dot at its end a section. The first that fits. */
static const struct {
    const char *key;
    ttn_resume_key what;
} rules[] = {
    {"train.threads", TTN_KEY_FREE},
    {"train.memory", TTN_KEY_FREE},
    {"train.log_every", TTN_KEY_FREE},
    {"train.save_every", TTN_KEY_FREE},
    {"train.keep", TTN_KEY_FREE},
    {"train.out", TTN_KEY_FREE},
    {"data.cache", TTN_KEY_FREE},
    {"pack.memory", TTN_KEY_FREE},
    {"notes.", TTN_KEY_FREE},
    {"train.steps", TTN_KEY_ASKED},
    {"train.epochs", TTN_KEY_ASKED},
    {"train.tokens", TTN_KEY_ASKED},
    {"train.eval_every", TTN_KEY_ASKED},
    {"train.maskings", TTN_KEY_ASKED},
    {"optim.", TTN_KEY_ASKED},
    {"schedule.", TTN_KEY_ASKED},
    {"model.dropout", TTN_KEY_ASKED},
    {"attention.dropout", TTN_KEY_ASKED},
    {"data.train", TTN_KEY_ASKED},
    {"", TTN_KEY_FIXED},
};

ttn_resume_key ttn_resume_key_of(const char *key)
{
    size_t i = 0;
    for (;; i++) {
        const size_t n = strlen(rules[i].key);
        const int is_section = n == 0 || rules[i].key[n - 1] == '.';
        if (is_section ? strncmp(key, rules[i].key, n) == 0 : strcmp(key, rules[i].key) == 0) return rules[i].what;
    }
}

static ttn_status load_then(const ttn_config_table *table, const char *text, ttn_config **ret, ttn_error *err)
{
    const ttn_config_file file = {.path = "the checkpoint's configuration", .text = text, .n = strlen(text)};
    ttn_error why = {0};
    ttn_status status = ttn_config_load(
        table, &(ttn_config_request){.presets = ttn_config_presets, .file = &file, .n_file = 1}, ret, &why);
    if (status == TTN_OK) return TTN_OK;
    ttn_config_destroy(*ret);
    *ret = NULL;
    if (status == TTN_EINVAL) status = TTN_ECHECKPOINT;
    return TTN_FAIL(err, status, "%s", why.text);
}

/* Keys that differ and may not, by what they are. */
typedef struct {
    int n[TTN_KEY_FIXED + 1];
    ttn_builder name[TTN_KEY_FIXED + 1];
} changes;

/* One line of ttn_config_diff: "KEY: THEN -> NOW". */
static void note_line(changes *c, const char *line, size_t n, const ttn_log *log)
{
    char key[128];
    snprintf(key, sizeof key, "%.*s", (int)strcspn(line, ":"), line);
    const ttn_resume_key what = ttn_resume_key_of(key);
    ttn_log_say(log, what == TTN_KEY_FREE ? TTN_LOG_INFO : TTN_LOG_WARNING, "changed: %.*s", (int)n, line);
    ttn_build(&c->name[what], "%s%s", c->n[what] > 0 ? ", " : "", key);
    c->n[what]++;
}

static ttn_status judge(const changes *c, int may_change, ttn_error *err)
{
    enum { SHOWN = 300 };
    const char *fixed = c->name[TTN_KEY_FIXED].text, *asked = c->name[TTN_KEY_ASKED].text;
    if (c->n[TTN_KEY_FIXED] > 0)
        return TTN_FAIL(err, TTN_EINVAL,
                        "the run cannot go on with another value of %.*s: take it back, or start a new run with "
                        "train.out=FOLDER",
                        SHOWN, fixed);
    if (c->n[TTN_KEY_ASKED] > 0 && !may_change)
        return TTN_FAIL(
            err, TTN_EINVAL,
            "the configuration is not the run's: %.*s; add --allow-change to go on with the new value%s, or "
            "take %s back",
            SHOWN, asked, c->n[TTN_KEY_ASKED] > 1 ? "s" : "", c->n[TTN_KEY_ASKED] > 1 ? "them" : "it");
    return TTN_OK;
}

ttn_status ttn_resume_check(const ttn_config_table *table, const char *then, const ttn_config *now, int may_change,
                            const ttn_log *log, ttn_error *err)
{
    ttn_config *old = NULL;
    char *diff = NULL;
    changes c = {0};
    ttn_status status = load_then(table, then, &old, err);
    if (status == TTN_OK) status = ttn_config_diff(old, now, &diff, err);
    for (const char *line = diff; status == TTN_OK && line && *line;) {
        const size_t n = strcspn(line, "\n");
        note_line(&c, line, n, log);
        line += n + (line[n] == '\n');
    }
    int failed = 0;
    for (int i = 0; i <= TTN_KEY_FIXED; i++)
        failed |= c.name[i].failed;
    if (status == TTN_OK && failed) status = TTN_FAIL(err, TTN_ENOMEM, "out of memory for what has changed");
    if (status == TTN_OK) status = judge(&c, may_change, err);
    for (int i = 0; i <= TTN_KEY_FIXED; i++)
        ttn_builder_drop(&c.name[i]);
    free(diff);
    ttn_config_destroy(old);
    return status;
}
