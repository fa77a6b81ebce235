#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/clock.h"
#include "core/memory.h"
#include "core/real.h"
#include "core/text.h"
#include "core/titin.h"
#include "train/files/json.h"
#include "train/files/run_state.h"

struct ttn_run_state_file {
    ttn_arena *texts; /* all that state points to */
    ttn_run_state state;
};

enum { DIGITS = 16, MOST_BYTES = 256 << 20 /* a configuration, and series */ };

/* What any count may be: a double holds it exactly, and one more can be counted. */
static const int64_t MOST_COUNT = INT64_C(1) << 53;
static const int64_t LAST_DATE = INT64_C(253402300799); /* of the year 9999 */

/* ---- writing ---- */

/* Both calls: 0, or not 0 when there is no memory, or the text is no UTF-8. */
static int set(json_t *in, const char *key, json_t *value)
{
    return json_object_set_new(in, key, value);
}

static int set_text(json_t *in, const char *key, const char *text)
{
    return set(in, key, json_string(text ? text : ""));
}

static json_t *numbers_value(const ttn_named_number *list, int n)
{
    json_t *in = json_object();
    for (int i = 0; i < n && in; i++) {
        char digits[DIGITS + 1];
        snprintf(digits, sizeof digits, "%016" PRIx64, list[i].value);
        int twice = json_object_get(in, list[i].name) != NULL;
        if (!twice && set_text(in, list[i].name, digits) == 0) continue;
        json_decref(in);
        in = NULL;
    }
    return in;
}

static json_t *series_value(const ttn_named_series *list, int n)
{
    json_t *in = json_object();
    for (int i = 0; i < n && in; i++) {
        json_t *values = json_array();
        int failed = json_object_get(in, list[i].name) != NULL;
        for (int64_t k = 0; k < list[i].n && !failed; k++)
            failed = json_array_append_new(values, json_real(list[i].value[k]));
        failed |= set(in, list[i].name, values);
        if (!failed) continue;
        json_decref(in);
        in = NULL;
    }
    return in;
}

static ttn_status check_series(const ttn_run_state *s, ttn_error *err)
{
    for (int i = 0; i < s->n_series; i++)
        for (int64_t k = 0; k < s->series[i].n; k++)
            if (!isfinite(s->series[i].value[k]))
                return TTN_FAIL(err, TTN_EINVAL, "the state of the run: %s[%" PRId64 "] is not finite",
                                s->series[i].name, k);
    return TTN_OK;
}

static json_t *tree_of(const ttn_run_state *s)
{
    char date[TTN_DATE_TEXT], hash[TTN_HASH_TEXT];
    const char *config = s->config ? s->config : "";
    json_t *root = json_object();
    int failed = set_text(root, "titin_version", TTN_VERSION);
    int64_t now = ttn_clock_date(NULL);
    failed |= set_text(root, "date", ttn_date_print(now, date));
    failed |= set(root, "date_seconds", json_integer(now));
    failed |= set(root, "step", json_integer(s->step));
    json_t *cursor = json_object();
    failed |= set(cursor, "epoch", json_integer(s->cursor.epoch));
    failed |= set(cursor, "window", json_integer(s->cursor.window));
    failed |= set(cursor, "batch", json_integer(s->cursor.batch));
    failed |= set(root, "cursor", cursor);
    failed |= set(root, "seeds", numbers_value(s->seed, s->n_seed));
    failed |= set(root, "draws", numbers_value(s->draw, s->n_draw));
    failed |= set(root, "series", series_value(s->series, s->n_series));
    json_t *exact = json_object();
    failed |= set_text(exact, "real", TTN_REAL_NAME);
    failed |= set_text(exact, "device", s->device);
    failed |= set_text(exact, "blas_kernel", s->kernel);
    failed |= set(exact, "row_tile", json_integer(s->row_tile));
    failed |= set(exact, "batch_align", json_integer(s->batch_align));
    failed |= set(exact, "ranks", json_integer(s->ranks));
    failed |= set(exact, "shards", json_integer(s->shards));
    failed |= set(root, "bits_depend_on", exact);
    failed |= set_text(root, "config_xxh3_128", ttn_hash_print(ttn_hash128_of(config, strlen(config)), hash));
    failed |= set_text(root, "config", config);
    if (!failed) return root;
    json_decref(root);
    return NULL;
}

ttn_status ttn_run_state_write(const ttn_run_state *s,
                               ttn_status (*take)(void *ctx, const char *bytes, size_t n, ttn_error *err), void *ctx,
                               ttn_error *err)
{
    ttn_status status = check_series(s, err);
    if (status != TTN_OK) return status;
    json_t *root = tree_of(s);
    if (!root)
        return TTN_FAIL(err, TTN_EINVAL,
                        "the state of the run cannot be written: a name stands twice in a list, a text (the "
                        "configuration?) is no UTF-8, or there is no memory");
    status = ttn_json_dump(root, take, ctx, err);
    json_decref(root);
    return status;
}

/* ---- reading ---- */

static ttn_status no_memory(ttn_error *err)
{
    return TTN_FAIL(err, TTN_ENOMEM, "no memory for the state of a run; end other programs");
}

static ttn_status create(ttn_run_state_file **ret, ttn_error *err)
{
    *ret = ttn_alloc_or_say(1, sizeof **ret, "the state of a run", err);
    if (!*ret) return TTN_ENOMEM;
    ttn_status status = ttn_arena_create(0, &(*ret)->texts, err);
    if (status == TTN_OK) return TTN_OK;
    ttn_free(*ret);
    *ret = NULL;
    return status;
}

static ttn_status keep_text(ttn_run_state_file *f, const char *text, const char **ret, ttn_error *err)
{
    *ret = ttn_arena_copy(f->texts, text, strlen(text) + 1);
    return *ret ? TTN_OK : no_memory(err);
}

static ttn_status read_text(ttn_run_state_file *f, const ttn_json *j, const json_t *in, const char *key,
                            const char **ret, ttn_error *err)
{
    const char *text;
    ttn_status status = ttn_json_text(j, in, key, &text, err);
    return status == TTN_OK ? keep_text(f, text, ret, err) : status;
}

/* 16 small digits. */
static int parse_digits(const char *text, uint64_t *ret)
{
    *ret = 0;
    if (strlen(text) != DIGITS) return 0;
    for (const char *c = text; *c; c++) {
        const char *digit = strchr("0123456789abcdef", *c);
        if (!digit) return 0;
        *ret = *ret << 4 | (uint64_t)(digit - "0123456789abcdef");
    }
    return 1;
}

static ttn_status read_numbers(ttn_run_state_file *f, const ttn_json *j, const char *key, const ttn_named_number **ret,
                               int *n, ttn_error *err)
{
    const json_t *in;
    const char *name, *digits;
    json_t *unused;
    ttn_status status = ttn_json_object(j, ttn_json_root(j), key, &in, err);
    if (status != TTN_OK) return status;
    ttn_named_number *list = ttn_arena_array(f->texts, (int64_t)json_object_size(in), sizeof *list);
    if (!list) return no_memory(err);
    *n = 0;
    json_object_foreach((json_t *)in, name, unused)
    {
        status = keep_text(f, name, &list[*n].name, err);
        if (status == TTN_OK) status = ttn_json_text(j, in, name, &digits, err);
        if (status == TTN_OK && !parse_digits(digits, &list[*n].value))
            status = ttn_json_fail(j, in, name, err, "is no number of 16 digits 0-9, a-f");
        if (status != TTN_OK) return status;
        (*n)++;
    }
    *ret = list;
    return TTN_OK;
}

static ttn_status read_series(ttn_run_state_file *f, const ttn_json *j, ttn_error *err)
{
    const json_t *in, *values;
    const char *name;
    json_t *unused;
    ttn_status status = ttn_json_object(j, ttn_json_root(j), "series", &in, err);
    if (status != TTN_OK) return status;
    ttn_named_series *list = ttn_arena_array(f->texts, (int64_t)json_object_size(in), sizeof *list);
    if (!list) return no_memory(err);
    json_object_foreach((json_t *)in, name, unused)
    {
        ttn_named_series *s = &list[f->state.n_series];
        status = keep_text(f, name, &s->name, err);
        if (status == TTN_OK) status = ttn_json_array(j, in, name, &values, err);
        if (status != TTN_OK) return status;
        s->n = (int64_t)json_array_size(values);
        double *value = ttn_arena_array(f->texts, s->n, sizeof *value);
        if (!value) return no_memory(err);
        for (int64_t k = 0; k < s->n; k++) {
            const json_t *item;
            status = ttn_json_item(j, values, (size_t)k, JSON_REAL, &item, err);
            if (status != TTN_OK) return status;
            value[k] = json_real_value(item);
        }
        s->value = value;
        f->state.n_series++;
    }
    f->state.series = list;
    return TTN_OK;
}

static ttn_status read_cursor(ttn_run_state_file *f, const ttn_json *j, ttn_error *err)
{
    static const char *const keys[] = {"epoch", "window", "batch"};
    int64_t *const to[] = {&f->state.cursor.epoch, &f->state.cursor.window, &f->state.cursor.batch};
    const json_t *cursor;
    ttn_status status = ttn_json_object(j, ttn_json_root(j), "cursor", &cursor, err);
    if (status == TTN_OK) status = ttn_json_only(j, cursor, keys, sizeof keys / sizeof *keys, err);
    for (int i = 0; i < 3 && status == TTN_OK; i++)
        status = ttn_json_integer(j, cursor, keys[i], 0, MOST_COUNT, to[i], err);
    return status;
}

static ttn_status read_exactness(ttn_run_state_file *f, const ttn_json *j, ttn_error *err)
{
    static const char *const keys[] = {"real", "device", "blas_kernel", "row_tile", "batch_align", "ranks", "shards"};
    ttn_run_state *s = &f->state;
    const json_t *in;
    ttn_status status = ttn_json_object(j, ttn_json_root(j), "bits_depend_on", &in, err);
    if (status == TTN_OK) status = ttn_json_only(j, in, keys, sizeof keys / sizeof *keys, err);
    if (status == TTN_OK) status = read_text(f, j, in, "real", &s->real, err);
    if (status == TTN_OK) status = read_text(f, j, in, "device", &s->device, err);
    if (status == TTN_OK) status = read_text(f, j, in, "blas_kernel", &s->kernel, err);
    if (status == TTN_OK) status = ttn_json_integer(j, in, "row_tile", 0, MOST_COUNT, &s->row_tile, err);
    if (status == TTN_OK) status = ttn_json_integer(j, in, "batch_align", 0, MOST_COUNT, &s->batch_align, err);
    if (status == TTN_OK) status = ttn_json_integer(j, in, "ranks", 0, MOST_COUNT, &s->ranks, err);
    if (status == TTN_OK) status = ttn_json_integer(j, in, "shards", 0, MOST_COUNT, &s->shards, err);
    return status;
}

static ttn_status read_config(ttn_run_state_file *f, const ttn_json *j, ttn_error *err)
{
    const json_t *root = ttn_json_root(j);
    const char *wanted;
    char found[TTN_HASH_TEXT];
    ttn_status status = read_text(f, j, root, "config", &f->state.config, err);
    if (status == TTN_OK) status = ttn_json_text(j, root, "config_xxh3_128", &wanted, err);
    if (status != TTN_OK) return status;
    ttn_hash_print(ttn_hash128_of(f->state.config, strlen(f->state.config)), found);
    if (strcmp(found, wanted) == 0) return TTN_OK;
    return ttn_json_fail(j, root, "config_xxh3_128", err, "is not the checksum of the configuration, which is %s",
                         found);
}

/* Every batch moves the cursor by one, so that it is at most where all batches of all steps have led. */
static ttn_status check_cursor(const ttn_run_state_file *f, const ttn_json *j, ttn_error *err)
{
    const ttn_run_state *s = &f->state;
    int64_t taken;
    if (__builtin_mul_overflow(s->step, s->shards, &taken)) taken = INT64_MAX;
    if (s->cursor.epoch + s->cursor.window + s->cursor.batch <= taken) return TTN_OK; /* of three at most 2^53 */
    return ttn_json_fail(j, ttn_json_root(j), "cursor", err,
                         "is at epoch %" PRId64 ", window %" PRId64 ", batch %" PRId64 ", and %" PRId64
                         " step%s of %" PRId64 " batch%s cannot lead there",
                         s->cursor.epoch, s->cursor.window, s->cursor.batch, s->step, ttn_text_plural(s->step),
                         s->shards, s->shards == 1 ? "" : "es");
}

/* Number i of a series of n. */
typedef struct {
    const char *series;
    int64_t n, i;
    int is_whole;
    double least, most;
} limit;

static ttn_status check_number(const ttn_run_state *s, const ttn_json *j, const limit *l, ttn_error *err)
{
    const json_t *all = json_object_get(ttn_json_root(j), "series");
    for (int i = 0; i < s->n_series; i++) {
        const ttn_named_series *series = &s->series[i];
        if (strcmp(series->name, l->series) != 0) continue;
        if (series->n != l->n)
            return ttn_json_fail(j, all, l->series, err, "'%s' has %" PRId64 " numbers, and should have %" PRId64,
                                 l->series, series->n, l->n);
        const double value = series->value[l->i];
        if (value >= l->least && value <= l->most && (!l->is_whole || value == floor(value))) return TTN_OK;
        return ttn_json_fail(j, all, l->series, err,
                             "number %" PRId64 " of '%s' is %.17g, and should be a %snumber from %.17g to %.17g",
                             l->i + 1, l->series, value, l->is_whole ? "whole " : "", l->least, l->most);
    }
    return TTN_OK; /* whoever needs it says that it is missing */
}

/* What a training run goes on from. */
static ttn_status check_series_read(const ttn_run_state_file *f, const ttn_json *j, ttn_error *err)
{
    const ttn_run_state *s = &f->state;
    const double *skipped = ttn_run_state_series(s, TTN_SERIES_SKIPPED, 2);
    const double steps = (double)s->step, most = (double)MOST_COUNT;
    const limit limits[] = {
        {TTN_SERIES_SKIPPED, 2, 0, 1, 0, steps},
        {TTN_SERIES_SKIPPED, 2, 1, 1, 0, skipped ? skipped[0] : steps}, /* those in a row are among all */
        {TTN_SERIES_RESIDUES, 1, 0, 1, 0, most},
        {TTN_SERIES_BEST, 2, 0, 1, -1, steps},
        {TTN_SERIES_BEST, 2, 1, 0, 0, DBL_MAX},
        {TTN_SERIES_LONGEST, 1, 0, 1, 0, most},
    };
    ttn_status status = TTN_OK;
    for (size_t i = 0; i < sizeof limits / sizeof *limits && status == TTN_OK; i++)
        status = check_number(s, j, &limits[i], err);
    return status;
}

static ttn_status read_root(ttn_run_state_file *f, const ttn_json *j, ttn_error *err)
{
    static const char *const keys[] = {"titin_version", "date",  "date_seconds", "step",           "cursor",
                                       "seeds",         "draws", "series",       "bits_depend_on", "config_xxh3_128",
                                       "config"};
    const json_t *root = ttn_json_root(j);
    ttn_run_state *s = &f->state;
    ttn_status status = ttn_json_only(j, root, keys, sizeof keys / sizeof *keys, err);
    if (status == TTN_OK) status = read_text(f, j, root, "titin_version", &s->titin, err);
    if (status == TTN_OK) status = ttn_json_integer(j, root, "date_seconds", 0, LAST_DATE, &s->date, err);
    if (status == TTN_OK) status = ttn_json_integer(j, root, "step", 0, MOST_COUNT, &s->step, err);
    if (status == TTN_OK) status = read_cursor(f, j, err);
    if (status == TTN_OK) status = read_numbers(f, j, "seeds", &s->seed, &s->n_seed, err);
    if (status == TTN_OK) status = read_numbers(f, j, "draws", &s->draw, &s->n_draw, err);
    if (status == TTN_OK) status = read_series(f, j, err);
    if (status == TTN_OK) status = read_exactness(f, j, err);
    if (status == TTN_OK) status = read_config(f, j, err);
    if (status == TTN_OK) status = check_cursor(f, j, err);
    if (status == TTN_OK) status = check_series_read(f, j, err);
    return status;
}

ttn_status ttn_run_state_read(const char *path, ttn_run_state_file **ret, ttn_error *err)
{
    const ttn_json_rules rules = {.most_bytes = MOST_BYTES, .failure = TTN_ECHECKPOINT};
    ttn_json *j = NULL;
    ttn_run_state_file *f = NULL;
    *ret = NULL;
    ttn_status status = ttn_json_read(path, &rules, &j, err);
    if (status == TTN_OK) status = create(&f, err);
    if (status == TTN_OK) status = read_root(f, j, err);
    ttn_json_close(j);
    if (status == TTN_OK)
        *ret = f;
    else
        ttn_run_state_close(f);
    return status;
}

const double *ttn_run_state_series(const ttn_run_state *s, const char *name, int64_t n)
{
    for (int i = 0; i < s->n_series; i++)
        if (strcmp(s->series[i].name, name) == 0 && s->series[i].n == n) return s->series[i].value;
    return NULL;
}

const ttn_run_state *ttn_run_state_of(const ttn_run_state_file *f)
{
    return &f->state;
}

void ttn_run_state_close(ttn_run_state_file *f)
{
    if (!f) return;
    ttn_arena_destroy(f->texts);
    ttn_free(f);
}

/* ---- copying ---- */

static ttn_status copy_text(ttn_run_state_file *f, const char **text, ttn_error *err)
{
    return *text ? keep_text(f, *text, text, err) : TTN_OK;
}

static ttn_status copy_numbers(ttn_run_state_file *f, const ttn_named_number **list, int n, ttn_error *err)
{
    ttn_named_number *copy = ttn_arena_array(f->texts, n, sizeof *copy);
    if (!copy) return no_memory(err);
    ttn_status status = TTN_OK;
    for (int i = 0; i < n && status == TTN_OK; i++) {
        copy[i] = (*list)[i];
        status = copy_text(f, &copy[i].name, err);
    }
    *list = copy;
    return status;
}

static ttn_status copy_series(ttn_run_state_file *f, const ttn_named_series **list, int n, ttn_error *err)
{
    ttn_named_series *copy = ttn_arena_array(f->texts, n, sizeof *copy);
    if (!copy) return no_memory(err);
    ttn_status status = TTN_OK;
    for (int i = 0; i < n && status == TTN_OK; i++) {
        copy[i] = (*list)[i];
        copy[i].value = ttn_arena_copy(f->texts, copy[i].value, (size_t)copy[i].n * sizeof(double));
        status = copy[i].value ? copy_text(f, &copy[i].name, err) : no_memory(err);
    }
    *list = copy;
    return status;
}

ttn_status ttn_run_state_copy(const ttn_run_state *s, ttn_run_state_file **ret, ttn_error *err)
{
    ttn_run_state_file *f;
    *ret = NULL;
    ttn_status status = create(&f, err);
    if (status != TTN_OK) return status;
    f->state = *s;
    const char **const texts[] = {&f->state.config, &f->state.device, &f->state.kernel, &f->state.titin,
                                  &f->state.real};
    for (size_t i = 0; i < sizeof texts / sizeof *texts && status == TTN_OK; i++)
        status = copy_text(f, texts[i], err);
    if (status == TTN_OK) status = copy_numbers(f, &f->state.seed, s->n_seed, err);
    if (status == TTN_OK) status = copy_numbers(f, &f->state.draw, s->n_draw, err);
    if (status == TTN_OK) status = copy_series(f, &f->state.series, s->n_series, err);
    if (status == TTN_OK)
        *ret = f;
    else
        ttn_run_state_close(f);
    return status;
}

/* ---- is it exact? ---- */

static int same_text(const char *what, const char *then, const char *now, const ttn_log *log)
{
    then = then ? then : "";
    now = now ? now : "";
    if (strcmp(then, now) == 0) return 1;
    ttn_log_say(log, TTN_LOG_WARNING, "resume is exact only up to rounding: %s was %s, is now %s", what, then, now);
    return 0;
}

static int same_number(const char *what, int64_t then, int64_t now, const ttn_log *log)
{
    if (then == now) return 1;
    ttn_log_say(log, TTN_LOG_WARNING, "resume is exact only up to rounding: %s was %" PRId64 ", is now %" PRId64, what,
                then, now);
    return 0;
}

int ttn_run_state_is_exact(const ttn_run_state *then, const ttn_run_state *now, const ttn_log *log)
{
    int same = same_text("the precision", then->real, now->real ? now->real : TTN_REAL_NAME, log);
    same &= same_text("the device", then->device, now->device, log);
    same &= same_text("the kernel of the BLAS", then->kernel, now->kernel, log);
    same &= same_number("the row tile", then->row_tile, now->row_tile, log);
    same &= same_number("the alignment of sequences in a batch", then->batch_align, now->batch_align, log);
    same &= same_number("the number of shards", then->shards, now->shards, log);
    return same; /* ranks add shards in a tree of their number alone: as many as you like */
}
