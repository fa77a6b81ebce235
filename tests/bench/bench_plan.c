/* How long recording and planning take. Planning again for another length is meant to be free: 48 layers in 50 ms. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/plan.h"
#include "tests/bench/bench.h"
#include "tests/harness/model.h"

enum { COPY_BYTES = 64 << 20 };

typedef struct {
    int layers;
    size_t budget; /* of the plan */
    size_t bytes;  /* what came out: of the block */
    size_t peak;
    int n_again;
} plan_case;

static void must(ttn_status status, const ttn_error *err)
{
    if (status == TTN_OK) return;
    fprintf(stderr, "%s\n", err->text);
    exit(1);
}

static void record_and_plan(void *arg)
{
    plan_case *c = arg;
    model_config config = {
        .layers = c->layers, .width = 512, .hidden = 2048, .capacity = {.rows = 480 * 34}, .marked = 1};
    model m = model_record(&config);
    ttn_error err = {0};
    ttn_plan *p;
    must(ttn_plan_create(m.g, &(ttn_plan_options){.loss = &m.loss, .n_loss = 1, .budget = c->budget}, &p, &err), &err);
    const ttn_plan_report *r = ttn_plan_report_of(p);
    c->bytes = r->bytes;
    c->peak = r->peak;
    c->n_again = r->n_again;
    ttn_plan_destroy(p);
    ttn_graph_destroy(m.g);
}

static void copy(void *arg)
{
    char *buffer = arg;
    memcpy(buffer, buffer + COPY_BYTES, COPY_BYTES);
}

static void note(const char *what, const plan_case *c)
{
    bench_note("%s: %.2f GiB, packed / peak %.4f, %d nodes made again", what, (double)c->bytes / (1 << 30),
               (double)c->bytes / (double)c->peak, c->n_again);
}

int main(int argc, char **argv)
{
    bench_start(argc, argv, "plan");
    char *buffer = calloc(2, COPY_BYTES);
    if (!buffer) return 1;
    plan_case small = {.layers = 12};
    plan_case large = {.layers = 48};
    plan_case kept = {.layers = 48, .budget = TTN_NO_BUDGET};
    record_and_plan(&large);
    record_and_plan(&kept);
    plan_case half = {.layers = 48, .budget = large.bytes + (kept.bytes - large.bytes) / 2};
    const bench_row rows[] = {
        {.name = "memcpy of 64 MiB", .run = copy, .arg = buffer},
        {.name = "12 layers, blocks recomputed", .run = record_and_plan, .arg = &small},
        {.name = "48 layers, blocks recomputed", .run = record_and_plan, .arg = &large},
        {.name = "48 layers, everything kept", .run = record_and_plan, .arg = &kept},
        {.name = "48 layers, a budget half-way", .run = record_and_plan, .arg = &half},
    };
    bench_compare("record and plan, width 512, 16,320 rows", rows, sizeof rows / sizeof *rows);
    note("48 layers, blocks recomputed", &large);
    note("48 layers, everything kept", &kept);
    note("48 layers, a budget half-way", &half);
    free(buffer);
    return bench_end();
}
