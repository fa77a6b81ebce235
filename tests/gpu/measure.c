/* What a GPU makes of it: products, exact attention, an encoder's step; and whether the same step has the same bits twice.
 *
 *     measure cuda|cpu [small]       one JSON object on stdout
 *
 * `cpu` and `small` are for trying the program where there is no GPU. What cannot run (an op without a kernel) is an entry
 * "error" with the sentence, and the exit code is 1. Times are of the fastest of three runs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/nn.h"
#include "autograd/plan.h"
#include "autograd/weights.h"
#include "core/clock.h"
#include "core/device.h"
#include "core/start.h"

enum { TRIES = 3, MOST_SEQS = 64 };

static ttn_device *device;
static ttn_stream stream;
static int small;
static int failed;

static double now(void *ctx)
{
    (void)ctx;
    return ttn_clock_now(NULL);
}

/* A sentence as a JSON text. */
static void print_text(const char *text)
{
    putchar('"');
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\') putchar('\\');
        putchar(*c);
    }
    putchar('"');
}

static void print_error(const ttn_error *err)
{
    failed = 1;
    printf("\"error\": ");
    print_text(err->text);
}

static real *noise(int64_t n)
{
    real *x = malloc((size_t)n * sizeof *x);
    if (!x) {
        fprintf(stderr, "out of memory for %" PRId64 " numbers\n", n);
        exit(1);
    }
    uint64_t state = 1;
    for (int64_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        x[i] = (real)((double)(state >> 11) * 0x1p-52 - 1);
    }
    return x;
}

static void print_device(void)
{
    ttn_device_report r;
    ttn_error err = {0};
    printf("\"device\": {");
    if (device->ops->report(device, &r, &err) != TTN_OK) {
        print_error(&err);
    } else {
        printf("\"kind\": \"%s\", \"index\": %d, \"name\": ", r.kind, r.index);
        print_text(r.name);
        printf(", \"memory\": %zu, \"memory_free\": %zu, \"multiprocessors\": %d, \"capability\": \"%d.%d\", ",
               r.memory, r.memory_free, r.multiprocessors, r.capability[0], r.capability[1]);
        printf("\"driver\": \"%s\", \"runtime\": \"%s\", \"blas\": \"%s\", \"real\": \"%s\"", r.driver, r.runtime,
               r.blas, TTN_REAL_NAME);
    }
    printf("},\n");
}

/* ---- products ---- */

/* Seconds of one product (m, k) (n, k)^T; below 0: it failed. */
static double time_product(int64_t m, int64_t n, int64_t k, ttn_error *err)
{
    enum { REPEATS = 10 };
    const ttn_device_ops *d = device->ops;
    ttn_memory *memory;
    const size_t bytes = (size_t)(m * k + n * k + m * n) * sizeof(real);
    if (d->memory_create(device, bytes, bytes, &memory, err) != TTN_OK) return -1;
    real *a = d->memory_base(memory);
    real *host = noise(m * k + n * k);
    double best = -1;
    ttn_status status = d->put(&stream, a, host, (size_t)(m * k + n * k) * sizeof(real), err);
    for (int t = 0; t < TRIES && status == TTN_OK; t++) {
        status = d->sync(&stream, err);
        const double from = now(NULL);
        for (int r = 0; r < REPEATS && status == TTN_OK; r++)
            status = d->gemm(&stream, TTN_N, TTN_T, m, n, k, 1, ttn_in(a, k), ttn_in(a + m * k, k), 0,
                             ttn_out(a + m * k + n * k, n), err);
        if (status == TTN_OK) status = d->sync(&stream, err);
        const double seconds = (now(NULL) - from) / REPEATS;
        if (best < 0 || seconds < best) best = seconds;
    }
    free(host);
    d->memory_destroy(memory);
    return status == TTN_OK ? best : -1;
}

static void measure_products(void)
{
    const int64_t rows = small ? 480 : 7680;
    const int64_t widths[][2] = {{512, 512}, {1280, 1280}, {5120, 1280}, {1280, 5120}};
    printf("\"products\": [");
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        const int64_t n = widths[i][0] / (small ? 8 : 1);
        const int64_t k = widths[i][1] / (small ? 8 : 1);
        ttn_error err = {0};
        const double seconds = time_product(rows, n, k, &err);
        printf("%s{\"m\": %" PRId64 ", \"n\": %" PRId64 ", \"k\": %" PRId64 ", ", i ? ", " : "", rows, n, k);
        if (seconds < 0)
            print_error(&err);
        else
            printf("\"ms\": %.4f, \"tflops\": %.3f", 1e3 * seconds, 2e-12 * (double)(rows * n * k) / seconds);
        printf("}");
    }
    printf("],\n");
}

/* ---- plans ---- */

typedef struct {
    ttn_graph *g;
    ttn_plan *plan;
    ttn_weights *weights;
    real *x, *target;
    ttn_span span[MOST_SEQS];
    ttn_feed feed;
    int loss;
} job;

static void destroy(job *j)
{
    ttn_plan_destroy(j->plan);
    ttn_weights_destroy(j->weights);
    ttn_graph_destroy(j->g);
    free(j->x);
    free(j->target);
}

/* n_seq sequences of `length` rows, of this width. */
static void begin(job *j, int64_t n_seq, int64_t length, int64_t width)
{
    const int64_t step = (length + 11) / 12 * 12;
    const int64_t rows = (step * n_seq + 479) / 480 * 480;
    *j = (job){.g = ttn_graph_create((ttn_extent){.rows = rows, .seqs = n_seq}),
               .x = noise(rows * width),
               .target = noise(rows * width)};
    for (int64_t s = 0; s < n_seq; s++)
        j->span[s] = (ttn_span){.first = s * step, .n = length};
    j->feed = (ttn_feed){.used = {.rows = rows, .seqs = n_seq}, .span = j->span, .training = 1};
}

static ttn_status finish(job *j, int out, int64_t width, ttn_error *err)
{
    j->loss = ttn_mse(j->g, "loss", out, ttn_input(j->g, "target", ttn_rows(j->g, width)));
    const ttn_plan_options options = {.loss = &j->loss, .n_loss = 1, .device = device, .n_thread = stream.n_thread};
    ttn_status status = ttn_plan_create(j->g, &options, &j->plan, err);
    if (status == TTN_OK) status = ttn_weights_create(j->g, device, &j->weights, err);
    if (status == TTN_OK) status = ttn_weights_init(j->weights, 1, err);
    if (status == TTN_OK) status = ttn_plan_attach(j->plan, j->weights, err);
    if (status == TTN_OK) status = ttn_plan_bind(j->plan, "x", j->x, err);
    if (status == TTN_OK) status = ttn_plan_bind(j->plan, "target", j->target, err);
    return status;
}

/* The fastest of some runs, in seconds. */
static ttn_status time_runs(job *j, double *ret, ttn_error *err)
{
    ttn_status status = ttn_plan_run(j->plan, &j->feed, NULL, err); /* memory, and the first use of each kernel */
    *ret = -1;
    for (int t = 0; t < TRIES && status == TTN_OK; t++) {
        const double from = now(NULL);
        status = ttn_plan_run(j->plan, &j->feed, NULL, err);
        const double seconds = now(NULL) - from;
        if (*ret < 0 || seconds < *ret) *ret = seconds;
    }
    return status;
}

/* Every gradient of the last run, one after the other. *ret is the caller's. */
static ttn_status read_gradients(const job *j, unsigned char **ret, size_t *ret_bytes, ttn_error *err)
{
    size_t bytes = 0;
    for (int i = 0; i < ttn_weights_count(j->weights); i++)
        bytes += ttn_weights_at(j->weights, i)->bytes;
    *ret = malloc(bytes > 0 ? bytes : 1);
    *ret_bytes = bytes;
    if (!*ret) return TTN_FAIL(err, TTN_ENOMEM, "out of memory for %zu bytes of gradients", bytes);
    size_t at = 0;
    for (int i = 0; i < ttn_weights_count(j->weights); i++) {
        const ttn_status status = ttn_weights_read(j->weights, i, TTN_SLAB_GRADIENT, *ret + at, err);
        if (status != TTN_OK) return status;
        at += ttn_weights_at(j->weights, i)->bytes;
    }
    return TTN_OK;
}

static ttn_status same_twice(job *j, int *ret, ttn_error *err)
{
    unsigned char *gradients[2] = {NULL, NULL};
    size_t bytes = 0;
    ttn_status status = TTN_OK;
    for (int i = 0; i < 2 && status == TTN_OK; i++) {
        status = ttn_plan_run(j->plan, &j->feed, NULL, err);
        if (status == TTN_OK) status = read_gradients(j, &gradients[i], &bytes, err);
    }
    if (status == TTN_OK) *ret = memcmp(gradients[0], gradients[1], bytes) == 0;
    free(gradients[0]);
    free(gradients[1]);
    return status;
}

/* Seconds of the ops of which products are most, beside all: each step waited for, so the sum is more than a run's time. */
static void print_shares(const job *j)
{
    const ttn_plan_report *r = ttn_plan_report_of(j->plan);
    double all = 0;
    double products = 0;
    double attention = 0;
    for (int i = 0; i < r->n_step; i++) {
        const ttn_plan_step *s = &r->step[i];
        all += s->seconds;
        if (strcmp(s->op, "linear") == 0 || strcmp(s->op, "ffn") == 0) products += s->seconds;
        if (strcmp(s->op, "attn_exact") == 0) attention += s->seconds;
    }
    printf(", \"share_of_linear_and_ffn\": %.3f, \"share_of_attention\": %.3f", products / all, attention / all);
}

static void measure_encoder(void)
{
    const int64_t width = small ? 64 : 1280;
    const int64_t layers = small ? 1 : 2;
    ttn_error err = {0};
    double seconds = 0;
    int same = 0;
    job j;
    begin(&j, small ? 2 : 8, small ? 100 : 960, width);
    ttn_layer_spec spec = ttn_layer_default(width, width / 64, 4 * width);
    spec.rotary = 1;
    int x = ttn_input(j.g, "x", ttn_rows(j.g, width));
    for (int l = 0; l < layers; l++)
        x = ttn_nn_layer(j.g, x, &spec, l);
    ttn_status status = finish(&j, x, width, &err);
    if (status == TTN_OK) status = time_runs(&j, &seconds, &err);
    if (status == TTN_OK) status = same_twice(&j, &same, &err);
    if (status == TTN_OK) {
        ttn_plan_time(j.plan, now, NULL);
        status = ttn_plan_run(j.plan, &j.feed, NULL, &err);
    }
    printf("\"encoder\": {\"layers\": %" PRId64 ", \"width\": %" PRId64 ", \"rows\": %" PRId64 ", ", layers, width,
           j.feed.used.rows);
    if (status == TTN_OK) {
        printf("\"ms\": %.3f, \"tflops\": %.3f, \"same_bits_twice\": %s", 1e3 * seconds,
               1e-12 * ttn_plan_report_of(j.plan)->useful / seconds, same ? "true" : "false");
        print_shares(&j);
        failed |= !same;
    } else {
        print_error(&err);
    }
    printf("},\n");
    destroy(&j);
}

/* Attention of one sequence, forward and backward; q, k, v are scaled copies of a parameter, so that all three have gradients. */
static void measure_attention(void)
{
    const int64_t lengths[] = {1024, 4096, 16384};
    const int64_t width = small ? 64 : 512;
    printf("\"attention\": [");
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const int64_t n = lengths[i] / (small ? 16 : 1);
        ttn_error err = {0};
        double seconds = 0;
        job j;
        begin(&j, 1, n, width);
        const int x = ttn_input(j.g, "x", ttn_rows(j.g, width));
        ttn_layer_spec spec = ttn_layer_default(width, width / 64, width);
        const int out = ttn_nn_attention(j.g, x, &spec);
        ttn_status status = finish(&j, out, width, &err);
        if (status == TTN_OK) status = time_runs(&j, &seconds, &err);
        double core = 0;
        if (status == TTN_OK) {
            ttn_plan_time(j.plan, now, NULL);
            status = ttn_plan_run(j.plan, &j.feed, NULL, &err);
            const ttn_plan_report *r = ttn_plan_report_of(j.plan);
            for (int s = 0; s < r->n_step; s++)
                if (strcmp(r->step[s].op, "attn_exact") == 0) core += r->step[s].seconds;
        }
        printf("%s{\"rows\": %" PRId64 ", \"width\": %" PRId64 ", ", i ? ", " : "", n, width);
        if (status == TTN_OK)
            printf("\"block_ms\": %.3f, \"core_ms\": %.3f", 1e3 * seconds, 1e3 * core);
        else
            print_error(&err);
        printf("}");
        destroy(&j);
    }
    printf("]\n");
}

int main(int argc, char **argv)
{
    const int on_cpu = argc > 1 && strcmp(argv[1], "cpu") == 0;
    small = argc > 2 && strcmp(argv[2], "small") == 0;
    if (argc < 2 || argc > 3 || (!on_cpu && strcmp(argv[1], "cuda") != 0) || (argc == 3 && !small)) {
        fprintf(stderr, "usage: measure cuda|cpu [small]\n");
        return 2;
    }
    ttn_error err = {0};
    ttn_status status = ttn_start(1, &err);
    if (status == TTN_OK) status = on_cpu ? ttn_device_cpu(&device, &err) : ttn_device_cuda(0, &device, &err);
    printf("{");
    if (status == TTN_OK) {
        stream = (ttn_stream){.device = device, .n_thread = 1};
        print_device();
        measure_products();
        measure_encoder();
        measure_attention();
    } else {
        print_error(&err);
    }
    printf("}\n");
    ttn_device_destroy(device);
    return failed;
}
