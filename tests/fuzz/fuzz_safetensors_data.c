/* Tensors behind any header, in one file or in two shards with their index: what can be read is the same number by number
 * whatever the pieces and the precision, and the bytes are those of the file; and a list of wanted tensors that is made from
 * what is there, with some of it changed, is matched as it should be.
 *
 * Input: choices (1 byte); bytes of the first header (2), the header; the same of the second, when there are two; then the
 * numbers of both. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/fuzz/fuzz.h"
#include "train/files/safetensors.h"

enum { TWO_FILES = 1, NONFINITE = 2, PIECE = 3, MOST_NUMBERS = 1 << 16, MOST_WANTED = 64 };

/* ---- files ---- */

static void write_file(const char *name, const uint8_t *header, size_t n_header, const uint8_t *numbers, size_t n)
{
    uint8_t *bytes = malloc(8 + n_header + n);
    check(bytes != NULL);
    const uint64_t length = n_header;
    memcpy(bytes, &length, sizeof length);
    if (n_header > 0) memcpy(bytes + 8, header, n_header);
    if (n > 0) memcpy(bytes + 8 + n_header, numbers, n);
    fuzz_write(name, bytes, 8 + n_header + n);
    free(bytes);
}

/* An index of both files: each tensor that a file alone can be opened with, where it is. */
static void write_index(void)
{
    static const char *const names[] = {"a.safetensors", "b.safetensors"};
    char path[FUZZ_PATH], text[8192] = "{\"weight_map\": {";
    size_t used = strlen(text), n_tensor = 0;
    for (int i = 0; i < 2; i++) {
        ttn_safetensors *s;
        ttn_error err = {0};
        if (ttn_safetensors_open(fuzz_path(names[i], path), NULL, &s, &err) != TTN_OK) continue;
        for (int64_t k = 0; k < ttn_safetensors_count(s); k++) {
            const char *name = ttn_safetensors_at(s, k)->name;
            if (strpbrk(name, "\"\\") || used + strlen(name) + 64 > sizeof text) continue;
            used += (size_t)snprintf(text + used, sizeof text - used, "%s\"%s\": \"%s\"", n_tensor > 0 ? ", " : "",
                                     name, names[i]);
            n_tensor++;
        }
        ttn_safetensors_close(s);
    }
    used += (size_t)snprintf(text + used, sizeof text - used, "}}");
    fuzz_write("it.safetensors.index.json", text, used);
}

/* ---- numbers ---- */

static int is_real(const ttn_stored_tensor *t)
{
    return t->type == TTN_STORED_F16 || t->type == TTN_STORED_BF16 || t->type == TTN_STORED_F32 ||
           t->type == TTN_STORED_F64;
}

static double number_of(const ttn_stored_tensor *t, const uint8_t *at)
{
    float f;
    double d;
    uint16_t h = 0;
    uint32_t bits;
    if (t->type == TTN_STORED_F64) {
        memcpy(&d, at, sizeof d);
        return d;
    }
    if (t->type == TTN_STORED_F32) {
        memcpy(&f, at, sizeof f);
        return (double)f;
    }
    memcpy(&h, at, sizeof h);
    if (t->type == TTN_STORED_BF16) {
        bits = (uint32_t)h << 16;
        memcpy(&f, &bits, sizeof f);
        return (double)f;
    }
    const double sign = h & 0x8000 ? -1 : 1;
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    if (exponent == 31) return fraction ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0) return sign * ldexp(fraction, -24);
    return sign * ldexp(fraction + 1024, exponent - 25);
}

static int same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void check_numbers(const ttn_safetensors *s, const ttn_stored_tensor *t, const uint8_t *bytes, int may_be_any)
{
    double *wide = malloc((size_t)t->n * sizeof *wide + 1);
    float *narrow = malloc((size_t)t->n * sizeof *narrow + 1);
    const size_t size = t->n > 0 ? (size_t)(t->bytes / t->n) : 0;
    int all_finite = 1;
    ttn_error err = {0};
    check(wide && narrow);
    for (int64_t i = 0; i < t->n; i++)
        all_finite = all_finite && isfinite(number_of(t, bytes + (size_t)i * size));
    const ttn_status status = ttn_safetensors_read(s, t, 0, t->n, TTN_F64, wide, NULL, &err);
    check(status == (all_finite || may_be_any ? TTN_OK : TTN_ENUMERIC));
    for (int64_t i = 0; status == TTN_OK && i < t->n; i++)
        check(same(wide[i], number_of(t, bytes + (size_t)i * size)));
    if (status == TTN_OK) {
        ttn_converted sum = {0};
        for (int64_t i = 0; i < t->n; i += PIECE) {
            const int64_t n = t->n - i < PIECE ? t->n - i : PIECE;
            check(ttn_safetensors_read(s, t, i, n, TTN_F32, narrow + i, &sum, &err) == TTN_OK);
        }
        for (int64_t i = 0; i < t->n; i++)
            check(same((double)narrow[i], (double)(float)wide[i]));
    }
    free(wide);
    free(narrow);
}

static void check_tensor(const ttn_safetensors *s, const ttn_stored_tensor *t, int may_be_any)
{
    char path[FUZZ_PATH];
    ttn_error err = {0};
    check(t->n >= 0 && t->bytes >= 0);
    if (t->n > MOST_NUMBERS) return; /* of type F4, say: there are more numbers than bytes */
    uint8_t *bytes = malloc((size_t)t->bytes + 1), *lying = malloc((size_t)t->bytes + 1);
    check(bytes && lying);
    const char *shown = strrchr(ttn_safetensors_file(s, t->file), '/');
    FILE *f = fopen(fuzz_path(shown + 1, path), "rb");
    check(f && fseek(f, t->begin, SEEK_SET) == 0 && fread(lying, 1, (size_t)t->bytes, f) == (size_t)t->bytes);
    fclose(f);
    for (int64_t at = 0; at < t->bytes; at += PIECE) {
        const int64_t n = t->bytes - at < PIECE ? t->bytes - at : PIECE;
        check(ttn_safetensors_read_bytes(s, t, at, n, bytes + at, &err) == TTN_OK);
    }
    check(memcmp(bytes, lying, (size_t)t->bytes) == 0);
    double number;
    if (is_real(t))
        check_numbers(s, t, bytes, may_be_any);
    else if (t->n > 0)
        check(ttn_safetensors_read(s, t, 0, 1, TTN_F64, &number, NULL, &err) == TTN_ECHECKPOINT);
    free(bytes);
    free(lying);
}

/* ---- matching ---- */

/* How the list of what is wanted differs from what is there: a bit pair of `choices` for each tensor. */
enum { AS_IT_IS, OTHER_NAME, OTHER_SHAPE, INSTEAD };

static void check_match(const ttn_safetensors *s, uint64_t choices)
{
    static char name[MOST_WANTED][TTN_STORED_MAX_NAME + 8];
    ttn_wanted_tensor wanted[MOST_WANTED] = {0};
    const ttn_stored_tensor *found[MOST_WANTED];
    int64_t n = 0, missing = 0, misshapen = 0, replaced = 0;
    int unreadable = 0;
    for (int64_t i = 0; i < ttn_safetensors_count(s) && n < MOST_WANTED; i++) {
        const ttn_stored_tensor *t = ttn_safetensors_at(s, i);
        if (t->ndim > TTN_MAX_DIM) continue;
        const int how = (int)(choices >> 2 * (i % 32) & 3);
        ttn_wanted_tensor *w = &wanted[n];
        *w = (ttn_wanted_tensor){.name = t->name, .ndim = t->ndim};
        for (int d = 0; d < t->ndim; d++)
            w->dim[d] = t->dim[d];
        if (how == OTHER_SHAPE && t->ndim > 0) {
            w->dim[0] = t->dim[0] ^ 1;
            misshapen++;
        } else if (how == OTHER_NAME || how == INSTEAD) {
            snprintf(name[n], sizeof name[n], "%s.other", t->name);
            if (ttn_safetensors_find(s, name[n])) continue;
            w->name = name[n];
            w->instead = how == INSTEAD ? t->name : NULL;
            replaced += how == INSTEAD;
            missing += how == OTHER_NAME;
        }
        unreadable |= how != OTHER_NAME && !is_real(t);
        n++;
    }
    ttn_match match;
    ttn_error err = {0};
    const ttn_status status = ttn_safetensors_match(s, wanted, n, found, &match, &err);
    check(status == (missing > 0 || misshapen > 0 || unreadable ? TTN_ECHECKPOINT : TTN_OK));
    check((status == TTN_OK) == (err.text[0] == 0));
    check(match.missing == missing && match.misshapen == misshapen && match.replaced == replaced);
    for (int64_t i = 0; i < n; i++)
        check(!found[i] || strcmp(found[i]->name, wanted[i].instead ? wanted[i].instead : wanted[i].name) == 0);
}

static void hear(void *ctx, ttn_log_level level, const char *text)
{
    (void)ctx;
    (void)level;
    check(text[0] != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size};
    const int choices = (int)fuzz_number(&in, 1), two = choices & TWO_FILES;
    const uint64_t match = fuzz_number(&in, 4);
    size_t n_first, n_second = 0;
    const uint8_t *first = fuzz_bytes(&in, fuzz_number(&in, 2), &n_first), *second = NULL;
    if (two) second = fuzz_bytes(&in, fuzz_number(&in, 2), &n_second);
    const size_t n = two ? in.n / 2 : in.n;
    write_file("a.safetensors", first, n_first, in.at, n);
    if (two) {
        write_file("b.safetensors", second, n_second, in.at + n, in.n - n);
        write_index();
    }
    char path[FUZZ_PATH];
    const ttn_log log = {.say = hear};
    const ttn_safetensors_options options = {.allow_nonfinite = choices & NONFINITE, .log = &log};
    ttn_safetensors *s;
    ttn_error err = {0};
    const ttn_status status =
        ttn_safetensors_open(fuzz_path(two ? "it.safetensors.index.json" : "a.safetensors", path), &options, &s, &err);
    check(status == TTN_OK || (status == TTN_ECHECKPOINT && err.text[0] && !s));
    for (int64_t i = 0; s && i < ttn_safetensors_count(s); i++)
        check_tensor(s, ttn_safetensors_at(s, i), options.allow_nonfinite);
    if (s) check_match(s, match | match << 32);
    ttn_safetensors_close(s);
    return 0;
}
