#include <errno.h>
#include <math.h>
#include <omp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "core/blas.h"
#include "core/memory.h"
#include "core/start.h"
#include "tests/bench/bench.h"

enum { MIN_ROUNDS = 10, MAX_ROUNDS = 40, MAX_ROWS = 32, MAX_REPEATS = 100000 };

static const double shortest_sample = 2e-3; /* s: a hundred times what an interrupt costs */
static const double wanted_total = 1.0;     /* s a comparison, as far as the limits on rounds allow */

static const char *bench_name;
static const char *filter = "";
static FILE *json;
static int n_compared, n_missed;

static void die(const char *what)
{
    fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
    exit(2);
}

/* ---- statistics ---- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts value. */
static double median(double *value, int n)
{
    qsort(value, (size_t)n, sizeof *value, ascending);
    return 0.5 * (value[(n - 1) / 2] + value[n / 2]);
}

/* Median absolute deviation from center; overwrites value. */
static double deviation(double *value, int n, double center)
{
    for (int i = 0; i < n; i++)
        value[i] = fabs(value[i] - center);
    return median(value, n);
}

/* ---- one comparison ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of one run. */
static double sample(const bench_row *row, int repeats)
{
    double start = now();
    for (int i = 0; i < repeats; i++)
        row->run(row->arg);
    return (now() - start) / repeats;
}

typedef struct {
    int n_round;
    double seconds[MAX_ROWS][MAX_ROUNDS];
} samples;

static void measure(const bench_row *row, int n_row, samples *ret)
{
    int repeats[MAX_ROWS];
    double round = 0;
    for (int r = 0; r < n_row; r++) {
        sample(&row[r], 1); /* cold */
        double once = sample(&row[r], 1);
        repeats[r] = once > shortest_sample ? 1 : (int)fmin(MAX_REPEATS, ceil(shortest_sample / fmax(once, 1e-9)));
        round += sample(&row[r], repeats[r]) * repeats[r]; /* warm */
    }
    ret->n_round = (int)fmin(MAX_ROUNDS, fmax(MIN_ROUNDS, wanted_total / round));
    for (int i = 0; i < ret->n_round; i++)
        for (int k = 0; k < n_row; k++) {
            int r = i % 2 ? n_row - 1 - k : k;
            ret->seconds[r][i] = sample(&row[r], repeats[r]);
        }
}

typedef struct {
    double value, spread, ratio; /* in unit; in unit; of rates to row 0 */
} result;

static result evaluate(const bench_row *row, const samples *s, int r)
{
    double value[MAX_ROUNDS] = {0}, ratio[MAX_ROUNDS] = {0};
    for (int i = 0; i < s->n_round; i++) {
        double t = s->seconds[r][i];
        value[i] = row[r].unit ? row[r].work / t : 1e3 * t;
        ratio[i] = s->seconds[0][i] / t;
        if (row[r].unit && row[0].unit) ratio[i] *= row[r].work / row[0].work;
    }
    result ret = {.ratio = median(ratio, s->n_round)};
    ret.value = median(value, s->n_round);
    ret.spread = deviation(value, s->n_round, ret.value);
    return ret;
}

static int misses(const bench_row *row, const samples *s, int r)
{
    return row[r].goal > 0 && evaluate(row, s, r).ratio < row[r].goal;
}

/* ---- what is written ---- */

static void put_json(const char *key, const char *text)
{
    fprintf(json, "\"%s\": \"", key);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(json, "\\%c", *c);
        else if (*c < ' ')
            fprintf(json, "\\u%04x", *c);
        else
            fputc(*c, json);
    }
    fputs("\", ", json);
}

static void report(const char *what, const bench_row *row, const samples *s, int r, int width)
{
    const char *unit = row[r].unit ? row[r].unit : "ms";
    result got = evaluate(row, s, r);
    int missed = misses(row, s, r);
    n_missed += missed;

    double percent = got.value > 0 ? 100 * got.spread / got.value : 0;
    printf("    %-*s %10.4g %-5s +- %4.1f %%  %6.3f", width, row[r].name, got.value, unit, percent, got.ratio);
    if (row[r].goal > 0) printf("  (goal %.3g%s)", row[r].goal, missed ? ": MISSED" : "");
    printf("\n");

    char name[512];
    snprintf(name, sizeof name, "%s: %s", what, row[r].name);
    fputs("{", json);
    put_json("bench", bench_name);
    put_json("case", name);
    fprintf(json, "\"value\": %.6g, ", got.value);
    put_json("unit", unit);
    fprintf(json, "\"spread\": %.3g, ", got.spread);
    put_json("against", row[0].name);
    fprintf(json, "\"ratio\": %.5g", got.ratio);
    if (row[r].goal > 0) fprintf(json, ", \"goal\": %.5g", row[r].goal);
    fputs("}\n", json);
}

/* ---- the interface ---- */

void bench_start(int argc, char **argv, const char *name)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    ttn_reexec(argv);
    bench_name = name;
    if (argc > 1) filter = argv[1];

    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof ".jsonl");
    if (n <= 0) die("/proc/self/exe");
    memcpy(path + n, ".jsonl", sizeof ".jsonl");
    json = fopen(path, "w");
    if (!json) die(path);
    printf("%s\n", name);

    ttn_blas_info blas;
    ttn_error err = {0};
    omp_set_num_threads(ttn_start_threads(omp_get_max_threads())); /* benches ask OpenMP, and OpenBLAS serves no more */
    if (ttn_blas_start(omp_get_max_threads(), &blas, &err) != TTN_OK) {
        fprintf(stderr, "bench: %s\n", err.text);
        exit(ttn_status_exit(err.status));
    }
    if (blas.warning[0]) {
        fprintf(stderr, "bench: no ratio means anything here: %s\n", blas.warning);
        exit(TTN_EXIT_RESOURCE);
    }
    bench_note("%s, kernel %s, %s", blas.flavour_name, blas.kernel, TTN_REAL_NAME);
}

void bench_compare(const char *what, const bench_row *row, int n_row)
{
    if (n_row < 1 || n_row > MAX_ROWS) {
        errno = EINVAL;
        die("number of rows");
    }
    if (!strstr(what, filter)) return;
    static samples s;
    measure(row, n_row, &s);
    for (int r = 1; r < n_row; r++)
        if (misses(row, &s, r)) {
            measure(row, n_row, &s);
            break;
        }
    int width = 24;
    for (int r = 0; r < n_row; r++)
        if ((int)strlen(row[r].name) > width) width = (int)strlen(row[r].name);
    printf("  %s\n", what);
    for (int r = 0; r < n_row; r++)
        report(what, row, &s, r, width);
    n_compared++;
}

int bench_end(void)
{
    if (fclose(json) != 0) die("writing the results");
    printf("%s: %d compared, %d below its goal\n", bench_name, n_compared, n_missed);
    const int found_none = n_compared == 0 && *filter;
    if (found_none) fprintf(stderr, "bench: no comparison contains '%s'\n", filter);
    return n_missed > 0 || found_none;
}

void *bench_memory(size_t bytes)
{
    void *p = ttn_alloc(bytes);
    if (p) return p;
    fprintf(stderr, "out of memory\n");
    exit(1);
}

real *bench_values(int64_t n, double size)
{
    real *x = bench_memory((size_t)n * sizeof *x);
    uint64_t state = 1;
    for (int64_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u; /* D. Knuth's */
        x[i] = (real)(size * ((double)(state >> 11) * 0x1p-52 - 1));
    }
    return x;
}

void bench_note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("  ");
    vprintf(format, args);
    printf("\n");
    va_end(args);
}
