/* Any bytes as the state.json of a checkpoint: refused with a sentence, or its numbers are ones that a run can have, and what was
 * read is written, read back and written again to the same bytes. Where the bytes are JSON that has a configuration, its
 * checksum is made right, so that what stands behind it is reached. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/clock.h"
#include "core/hash.h"
#include "tests/fuzz/fuzz.h"
#include "train/files/run_state.h"
#include "train/resume.h"

typedef struct {
    char *bytes;
    size_t n;
} text;

static ttn_status take(void *ctx, const char *bytes, size_t n, ttn_error *err)
{
    (void)err;
    text *t = ctx;
    t->bytes = realloc(t->bytes, t->n + n + 1);
    check(t->bytes != NULL);
    memcpy(t->bytes + t->n, bytes, n);
    t->n += n;
    return TTN_OK;
}

/* Everything but what writing sets anew: the version, the precision and the date. */
static text written(const ttn_run_state *s)
{
    text t = {0};
    ttn_error err = {0};
    check(ttn_run_state_write(s, take, &t, &err) == TTN_OK);
    t.bytes[t.n] = 0;
    const char *config = strstr(t.bytes, "\"step\":");
    check(config != NULL);
    t.n -= (size_t)(config - t.bytes);
    memmove(t.bytes, config, t.n + 1);
    return t;
}

static void check_state(const ttn_run_state *s)
{
    char date[TTN_DATE_TEXT];
    check(s->step >= 0 && s->cursor.epoch >= 0 && s->cursor.window >= 0 && s->cursor.batch >= 0);
    check(s->row_tile >= 0 && s->batch_align >= 0 && s->ranks >= 0 && s->shards >= 0);
    check(s->config && s->device && s->kernel && s->titin && s->real);
    check(strlen(ttn_date_print(s->date, date)) < sizeof date);
    for (int i = 0; i < s->n_series; i++)
        for (int64_t k = 0; k < s->series[i].n; k++)
            check(isfinite(s->series[i].value[k]));
    ttn_standing standing;
    ttn_error err = {0};
    const ttn_status status = ttn_standing_read(s, &standing, &err);
    check(status == TTN_OK || (status == TTN_ECHECKPOINT && err.text[0]));
    if (status != TTN_OK) return;
    check(standing.trainer.steps >= 0 && standing.trainer.skipped >= 0 && standing.trainer.skipped <= s->step);
    check(standing.trainer.residues >= 0 && standing.best_step <= s->step);
    check(ttn_standing_longest(s) >= 0);
}

static void check_round_trip(const ttn_run_state *s)
{
    ttn_run_state_file *copy, *back;
    ttn_error err = {0};
    text first = {0}, again;
    char path[FUZZ_PATH];
    check(ttn_run_state_copy(s, &copy, &err) == TTN_OK);
    check(ttn_run_state_is_exact(ttn_run_state_of(copy), s, NULL));
    check(ttn_run_state_write(ttn_run_state_of(copy), take, &first, &err) == TTN_OK);
    fuzz_write("back.json", first.bytes, first.n);
    free(first.bytes);
    check(ttn_run_state_read(fuzz_path("back.json", path), &back, &err) == TTN_OK);
    first = written(s);
    again = written(ttn_run_state_of(back));
    check(first.n == again.n);
    free(first.bytes);
    free(again.bytes);
    ttn_run_state_close(copy);
    ttn_run_state_close(back);
}

/* The text with the right checksum of its configuration; NULL: it is no such text. */
static char *mended(const uint8_t *data, size_t size)
{
    char digits[TTN_HASH_TEXT], *ret = NULL;
    json_t *root = json_loadb((const char *)data, size, 0, NULL);
    const char *config = json_string_value(json_object_get(root, "config"));
    if (config) {
        ttn_hash_print(ttn_hash128_of(config, strlen(config)), digits);
        if (json_object_set_new(root, "config_xxh3_128", json_string(digits)) == 0) ret = json_dumps(root, 0);
    }
    json_decref(root);
    return ret;
}

static void try_state(const void *bytes, size_t n)
{
    char path[FUZZ_PATH];
    ttn_run_state_file *f;
    ttn_error err = {0};
    fuzz_write("state.json", bytes, n);
    const ttn_status status = ttn_run_state_read(fuzz_path("state.json", path), &f, &err);
    check((status == TTN_OK) == (f != NULL));
    check(status == TTN_OK || (status == TTN_ECHECKPOINT && err.text[0]));
    if (f) {
        check_state(ttn_run_state_of(f));
        check_round_trip(ttn_run_state_of(f));
    }
    ttn_run_state_close(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mended(data, size);
    if (text)
        try_state(text, strlen(text));
    else
        try_state(data, size);
    free(text);
    return 0;
}
