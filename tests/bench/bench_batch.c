/* Making batches, against a small model that consumes them: it is to be 20 times as fast, so that one thread beside the
 * training does it and nobody waits. The model has two layers of width 64 without attention, less than any model worth
 * training; it sees rows of the same number. One
 * thread each. */
#include <stdio.h>
#include <stdlib.h>
#include "autograd/plan.h"
#include "core/real.h"
#include "core/rng.h"
#include "data/fasta.h"
#include "data/loader.h"
#include "tests/bench/bench.h"
#include "tests/harness/model.h"

enum { ROWS = 480 * 34, WIDTH = 64, LAYERS = 2, PROTEINS = 20000 };

static void must(ttn_status status, const ttn_error *err)
{
    if (status == TTN_OK) return;
    fprintf(stderr, "%s\n", err->text);
    exit(1);
}

/* ---- proteins: 20,000 drawn from the sample's 500 ---- */

static ttn_sequence_list *read_sample(void)
{
    ttn_error err = {0};
    ttn_sequence_list *l;
    ttn_fasta *f;
    const ttn_fasta_record *r;
    must(ttn_sequence_list_create(ttn_alphabet_find("esm"), &l, &err), &err);
    must(ttn_fasta_open_path("data/sample/proteins-500.fasta.gz", NULL, &f, &err), &err);
    ttn_status status;
    while ((status = ttn_fasta_next(f, &r, &err)) == TTN_OK)
        must(ttn_sequence_list_add(l, r->id, r->token, NULL, r->n, &err), &err);
    if (status != TTN_EOF) must(status, &err);
    ttn_fasta_close(f);
    return l;
}

static ttn_sequence_list *draw(ttn_sequence_list *from)
{
    const ttn_sequences s = ttn_sequence_list_view(from);
    ttn_error err = {0};
    ttn_sequence_list *l;
    uint8_t token[ROWS];
    must(ttn_sequence_list_create(s.alphabet, &l, &err), &err);
    for (int i = 0; i < PROTEINS; i++) {
        const int64_t k = (int64_t)ttn_rng_below(1, 0, (uint64_t)i, (uint64_t)s.n);
        const int64_t n = s.length(s.self, k);
        must(s.tokens(s.self, k, 0, n, token, &err), &err);
        must(ttn_sequence_list_add(l, "", token, NULL, n, &err), &err);
    }
    return l;
}

/* ---- rows of the comparison ---- */

typedef struct {
    ttn_plan *plan;
    ttn_batch *batch; /* whose spans the model is told */
} consumer;

static void consume(void *arg)
{
    const consumer *c = arg;
    const ttn_batch *b = c->batch;
    ttn_error err = {0};
    const ttn_feed feed = {.used = b->used, .span = b->span, .start = b->start, .sample = b->sample, .training = 1};
    must(ttn_plan_run(c->plan, &feed, NULL, &err), &err);
}

typedef struct {
    ttn_sampler *sampler;
    ttn_batch *batch;
    int64_t rows, filled; /* in all */
} maker;

static void make(void *arg)
{
    maker *m = arg;
    ttn_error err = {0};
    must(ttn_sampler_next(m->sampler, m->batch, &err), &err);
    m->rows += m->batch->capacity.rows;
    for (int64_t q = 0; q < m->batch->used.seqs; q++)
        m->filled += m->batch->span[q].n;
}

static void take(void *arg)
{
    ttn_error err = {0};
    const ttn_batch *b;
    must(ttn_loader_next(arg, &b, &err), &err);
}

static maker maker_of(const ttn_sequences *s, ttn_batch_rules rules)
{
    ttn_error err = {0};
    maker m = {0};
    ttn_sampler_options o = {.from = s, .rules = rules, .seed = 1};
    o.rules.mlm = (ttn_mlm_rules){.rate = 0.15, .mask = 0.8, .random = 0.1};
    must(ttn_batch_capacity_of(&o.rules, s, NULL, &o.capacity, &err), &err);
    must(ttn_sampler_create(&o, &m.sampler, &err), &err);
    must(ttn_batch_create(o.capacity.extent, &m.batch, &err), &err);
    return m;
}

static void end_maker(maker *m)
{
    ttn_batch_destroy(m->batch);
    ttn_sampler_destroy(m->sampler);
}

int main(int argc, char **argv)
{
    bench_start(argc, argv, "batch");
    ttn_error err = {0};
    ttn_sequence_list *sample = read_sample(), *list = draw(sample);
    const ttn_sequences s = ttn_sequence_list_view(list);
    ttn_loader *loader = NULL;
    maker masked = maker_of(&s, (ttn_batch_rules){.rows = ROWS});
    maker cropped = maker_of(&s, (ttn_batch_rules){.rows = ROWS, .max_len = 254});
    maker next = maker_of(&s, (ttn_batch_rules){.rows = ROWS, .objective = TTN_OBJECTIVE_CLM});
    maker loaded = maker_of(&s, (ttn_batch_rules){.rows = ROWS});
    must(ttn_loader_create(loaded.sampler, 2, &loader, &err), &err);

    const model_config config = {
        .layers = LAYERS, .width = WIDTH, .hidden = 4 * WIDTH, .capacity = masked.batch->capacity};
    model m = model_record(&config);
    real *x = calloc((size_t)ROWS * WIDTH, sizeof *x);
    ttn_weights *w;
    consumer c = {.batch = masked.batch};
    if (!x) return 6;
    must(ttn_plan_create(m.g, &(ttn_plan_options){.loss = &m.loss, .n_loss = 1}, &c.plan, &err), &err);
    must(ttn_weights_create(m.g, NULL, &w, &err), &err);
    must(ttn_weights_init(w, 1, &err), &err);
    must(ttn_plan_attach(c.plan, w, &err), &err);
    must(ttn_plan_bind(c.plan, "x", x, &err), &err);
    must(ttn_plan_bind(c.plan, "target", x, &err), &err);
    make(&masked);

    const double mega = (double)ROWS / 1e6;
    const bench_row rows[] = {
        {.name = "2 layers of width 64, both passes", .run = consume, .arg = &c, .work = mega, .unit = "Mrow/s"},
        {.name = "ttn_sampler_next, masked", .run = make, .arg = &masked, .work = mega, .unit = "Mrow/s", .goal = 20},
        {.name = "the same, pieces of 254", .run = make, .arg = &cropped, .work = mega, .unit = "Mrow/s", .goal = 20},
        {.name = "next residue", .run = make, .arg = &next, .work = mega, .unit = "Mrow/s", .goal = 20},
        {.name = "ttn_loader_next, masked", .run = take, .arg = loader, .work = mega, .unit = "Mrow/s", .goal = 20},
    };
    bench_compare("batches of 16,320 rows", rows, sizeof rows / sizeof *rows);
    bench_note("full: %.2f %% of the rows", 100 * (double)masked.filled / (double)masked.rows);

    ttn_loader_destroy(loader);
    end_maker(&masked);
    end_maker(&cropped);
    end_maker(&next);
    end_maker(&loaded);
    ttn_plan_destroy(c.plan);
    ttn_weights_destroy(w);
    ttn_graph_destroy(m.g);
    free(x);
    ttn_sequence_list_destroy(list);
    ttn_sequence_list_destroy(sample);
    return bench_end();
}
