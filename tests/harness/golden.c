#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/memory.h"
#include "tests/harness/golden.h"
#include "tests/harness/test.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "golden files are little-endian");

enum { MOST_TENSORS = 256 };

/* ---- reading ---- */

static FILE *open_part(const golden *g, const char *suffix)
{
    char path[256];
    snprintf(path, sizeof path, "tests/reference/golden/%s.%s", g->name, suffix);
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s cannot be opened; tests run from the top of the tree", path);
    return f;
}

/* "0.q f32 14 32" */
static golden_tensor read_line(const golden *g, char *line)
{
    golden_tensor t = {.n = 1};
    char *rest;
    const char *name = strtok_r(line, " \n", &rest);
    const char *type = strtok_r(NULL, " \n", &rest);
    if (!name || !type || strlen(name) >= sizeof t.name || strlen(type) >= sizeof t.type)
        fail_msg("%s.txt: line of tensor %d", g->name, g->n_tensor);
    snprintf(t.name, sizeof t.name, "%s", name);
    snprintf(t.type, sizeof t.type, "%s", type);
    for (const char *dim; (dim = strtok_r(NULL, " \n", &rest)) != NULL;) {
        if (t.ndim == 4) fail_msg("%s.txt: %s has more than 4 dimensions", g->name, t.name);
        t.dim[t.ndim] = strtoll(dim, NULL, 10);
        t.n *= t.dim[t.ndim++];
    }
    return t;
}

static void read_index(golden *g)
{
    FILE *txt = open_part(g, "txt");
    char line[512];
    while (fgets(line, sizeof line, txt)) {
        if (line[0] == '#') continue;
        if (g->n_tensor == MOST_TENSORS) fail_msg("%s.txt: more than %d tensors", g->name, MOST_TENSORS);
        g->tensor[g->n_tensor] = read_line(g, line);
        g->n_tensor++;
    }
    fclose(txt);
}

/* value: where t's numbers go. */
static void read_numbers(const golden *g, FILE *bin, golden_tensor *t, double *value)
{
    t->value = value;
    const int is_float = strcmp(t->type, "f32") == 0;
    const int is_integer = strcmp(t->type, "i64") == 0;
    for (int64_t i = 0; i < t->n; i++) {
        union {
            float f32;
            double f64;
            int64_t i64;
        } x;
        if (fread(&x, is_float ? sizeof x.f32 : sizeof x.f64, 1, bin) != 1)
            fail_msg("%s.bin: ends in %s", g->name, t->name);
        value[i] = is_float ? (double)x.f32 : is_integer ? (double)x.i64 : x.f64;
    }
}

static void *allocate(int64_t n, size_t size)
{
    void *p = ttn_alloc_array(n, size);
    if (!p) {
        fail_msg("no memory for %" PRId64 " things of %zu bytes", n, size);
        abort(); /* fail_msg does not return */
    }
    return p;
}

golden *golden_open(const char *name)
{
    golden *g = allocate(1, sizeof *g);
    snprintf(g->name, sizeof g->name, "%s", name);
    g->tensor = allocate(MOST_TENSORS, sizeof *g->tensor);
    read_index(g);
    int64_t n = 0;
    for (int i = 0; i < g->n_tensor; i++)
        n += g->tensor[i].n;
    g->value = allocate(n, sizeof *g->value);
    double *next = g->value;
    FILE *bin = open_part(g, "bin");
    for (int i = 0; i < g->n_tensor; i++) {
        read_numbers(g, bin, &g->tensor[i], next);
        next += g->tensor[i].n;
    }
    if (fgetc(bin) != EOF) fail_msg("%s.bin: goes on after the last tensor of the index", g->name);
    fclose(bin);
    return g;
}

void golden_close(golden *g)
{
    if (!g) return;
    ttn_free(g->value);
    ttn_free(g->tensor);
    ttn_free(g);
}

/* ---- looking ---- */

static const golden_tensor *find(const golden *g, const char *format, va_list args)
{
    char name[sizeof g->tensor->name];
    vsnprintf(name, sizeof name, format, args);
    for (int i = 0; i < g->n_tensor; i++)
        if (strcmp(g->tensor[i].name, name) == 0) return &g->tensor[i];
    fail_msg("golden file %s has no tensor %s", g->name, name);
    return NULL;
}

const golden_tensor *golden_find(const golden *g, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const golden_tensor *t = find(g, format, args);
    va_end(args);
    return t;
}

double golden_number(const golden *g, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const golden_tensor *t = find(g, format, args);
    va_end(args);
    if (t->ndim != 0) fail_msg("golden file %s: %s is not one number", g->name, t->name);
    return t->value[0];
}

double golden_range(const golden_tensor *t)
{
    double most = 0;
    for (int64_t i = 0; i < t->n; i++)
        most = fmax(most, fabs(t->value[i]));
    return most;
}

static int64_t row_width(const golden_tensor *t)
{
    return t->ndim == 0 ? 1 : t->n / t->dim[0];
}

void golden_rows(const golden_tensor *t, int64_t from, int64_t rows, real *x)
{
    const int64_t width = row_width(t);
    assert_true(from >= 0 && (from + rows) * width <= t->n);
    for (int64_t i = 0; i < rows * width; i++)
        x[i] = (real)t->value[from * width + i];
}

double golden_difference(const golden_tensor *t, int64_t from, int64_t rows, const real *x, double range)
{
    const int64_t width = row_width(t);
    assert_true(from >= 0 && (from + rows) * width <= t->n);
    double worst = 0;
    for (int64_t i = 0; i < rows * width; i++) {
        double difference = fabs((double)x[i] - t->value[from * width + i]);
        worst = isnan(worst) || difference <= worst ? worst : difference; /* a NaN stays */
    }
    return worst / range;
}
