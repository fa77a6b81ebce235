#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/memory.h"
#include "core/text.h"
#include "train/facts.h"

struct ttn_facts {
    ttn_arena *arena; /* keys and texts */
    ttn_fact *fact;
    int64_t n, room;
    const char **warning;
    int64_t n_warning, warning_room;
    int open; /* objects and lists */
    int lost; /* something found no memory */
};

ttn_status ttn_facts_create(ttn_facts **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_facts *f = calloc(1, sizeof *f);
    if (!f) return TTN_FAIL(err, TTN_ENOMEM, "no memory for a list of facts");
    ttn_status status = ttn_arena_create(0, &f->arena, err);
    if (status != TTN_OK) {
        free(f);
        return status;
    }
    *ret = f;
    return TTN_OK;
}

void ttn_facts_destroy(ttn_facts *f)
{
    if (!f) return;
    ttn_arena_destroy(f->arena);
    free(f->fact);
    free(f->warning);
    free(f);
}

/* ---- texts ---- */

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

/* The arena's copy of text that may be shown and may stand in JSON. */
static const char *clean_copy(ttn_facts *f, const char *text)
{
    const char *end = text + strlen(text);
    size_t room = 1;
    for (const char *c = text; c < end;) {
        const size_t n = (size_t)ttn_text_character(c, (size_t)(end - c), NULL);
        room += n ? n : sizeof replacement - 1;
        c += n ? n : 1;
    }
    char *copy = ttn_arena_alloc_aligned(f->arena, room, 1);
    if (!copy) return NULL;
    char *to = copy;
    for (const char *c = text; c < end;) {
        const size_t n = (size_t)ttn_text_character(c, (size_t)(end - c), NULL);
        const size_t n_byte = n ? n : sizeof replacement - 1;
        memcpy(to, n ? c : replacement, n_byte);
        to += n_byte;
        c += n ? n : 1;
    }
    *to = 0;
    ttn_text_disarm(copy);
    return copy;
}

static const char *print_clean(ttn_facts *f, const char *format, va_list args)
{
    char small[512];
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(small, sizeof small, format, args);
    const char *copy = NULL;
    if (n >= 0 && (size_t)n < sizeof small) {
        copy = clean_copy(f, small);
    } else if (n >= 0) {
        char *large = malloc((size_t)n + 1);
        if (large) {
            vsnprintf(large, (size_t)n + 1, format, again);
            copy = clean_copy(f, large);
        }
        free(large);
    }
    va_end(again);
    if (!copy) f->lost = 1;
    return copy;
}

/* ---- facts ---- */

static void add(ttn_facts *f, const char *key, ttn_fact fact)
{
    if (f->n == f->room) {
        int64_t room = f->room ? 2 * f->room : 64;
        ttn_fact *more = realloc(f->fact, (size_t)room * sizeof *more);
        if (!more) {
            f->lost = 1;
            return;
        }
        f->fact = more;
        f->room = room;
    }
    if (key) {
        fact.key = clean_copy(f, key);
        if (!fact.key) {
            f->lost = 1;
            return;
        }
    }
    f->fact[f->n++] = fact;
}

void ttn_facts_text(ttn_facts *f, const char *key, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = print_clean(f, format, args);
    va_end(args);
    if (text) add(f, key, (ttn_fact){.kind = TTN_FACT_TEXT, .text = text});
}

void ttn_facts_integer(ttn_facts *f, const char *key, int64_t value)
{
    add(f, key, (ttn_fact){.kind = TTN_FACT_INTEGER, .integer = value});
}

void ttn_facts_real(ttn_facts *f, const char *key, double value)
{
    if (!isfinite(value)) { /* JSON has no such number */
        ttn_facts_none(f, key);
        return;
    }
    add(f, key, (ttn_fact){.kind = TTN_FACT_REAL, .real = value});
}

void ttn_facts_bytes(ttn_facts *f, const char *key, int64_t bytes)
{
    add(f, key, (ttn_fact){.kind = TTN_FACT_BYTES, .integer = bytes});
}

void ttn_facts_seconds(ttn_facts *f, const char *key, double seconds)
{
    if (!isfinite(seconds)) {
        ttn_facts_none(f, key);
        return;
    }
    add(f, key, (ttn_fact){.kind = TTN_FACT_SECONDS, .real = seconds});
}

void ttn_facts_flag(ttn_facts *f, const char *key, int value)
{
    add(f, key, (ttn_fact){.kind = TTN_FACT_FLAG, .integer = value != 0});
}

void ttn_facts_none(ttn_facts *f, const char *key)
{
    add(f, key, (ttn_fact){.kind = TTN_FACT_NONE});
}

void ttn_facts_open(ttn_facts *f, const char *key)
{
    f->open++;
    add(f, key, (ttn_fact){.kind = TTN_FACT_OPEN});
}

void ttn_facts_open_list(ttn_facts *f, const char *key)
{
    f->open++;
    add(f, key, (ttn_fact){.kind = TTN_FACT_OPEN_LIST});
}

void ttn_facts_close(ttn_facts *f)
{
    assert(f->open > 0 && "something is open");
    f->open--;
    add(f, NULL, (ttn_fact){.kind = TTN_FACT_CLOSE});
}

void ttn_facts_close_all(ttn_facts *f)
{
    while (f->open > 0)
        ttn_facts_close(f);
}

void ttn_facts_warn(ttn_facts *f, const char *format, ...)
{
    if (f->n_warning == f->warning_room) {
        int64_t room = f->warning_room ? 2 * f->warning_room : 8;
        const char **more = realloc(f->warning, (size_t)room * sizeof *more);
        if (!more) {
            f->lost = 1;
            return;
        }
        f->warning = more;
        f->warning_room = room;
    }
    va_list args;
    va_start(args, format);
    const char *text = print_clean(f, format, args);
    va_end(args);
    if (text) f->warning[f->n_warning++] = text;
}

/* ---- reading ---- */

ttn_status ttn_facts_status(const ttn_facts *f, ttn_error *err)
{
    assert(f->open == 0 && "what was opened is closed");
    if (f->lost) return TTN_FAIL(err, TTN_ENOMEM, "no memory for all that is to be said");
    return TTN_OK;
}

int64_t ttn_facts_count(const ttn_facts *f)
{
    return f->n;
}

const ttn_fact *ttn_facts_at(const ttn_facts *f)
{
    return f->fact;
}

int64_t ttn_facts_warning_count(const ttn_facts *f)
{
    return f->n_warning;
}

const char *ttn_facts_warning(const ttn_facts *f, int64_t i)
{
    return f->warning[i];
}
