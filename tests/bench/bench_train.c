/* A step of training, from batch to changed weights: how much of what the machine's products reach does it make of the
 * model's flops? And are memory and time what was foretold?
 *
 * Two layers over the sample's proteins, of which pieces of up to 480 residues are taken, for four widths, with exact
 * attention and without any; all threads. Attention's recomputed probabilities, and all that is no product, count as lost.
 * And steps of one long protein with linear attention, beside the kind none, which projects queries and keys as well, and
 * beside a model that has neither. */
#include <inttypes.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/blas.h"
#include "core/clock.h"
#include "core/machine.h"
#include "core/memory.h"
#include "core/real.h"
#include "data/fasta.h"
#include "tests/bench/bench.h"
#include "train/budget.h"
#include "train/trainer.h"

enum { SIDE = 512, MOST_SETTINGS = 8 };

static void must(ttn_status status, const ttn_error *err)
{
    if (status == TTN_OK) return;
    fprintf(stderr, "%s\n", err->text);
    exit(1);
}

/* ---- products: each thread its own ---- */

typedef struct {
    real *in, *out; /* two operands; one result a thread */
    int n_thread;
} products;

static products make_products(void)
{
    const int64_t n = (int64_t)SIDE * SIDE;
    products p = {.n_thread = omp_get_max_threads()};
    p.in = ttn_alloc_array(2 * n, sizeof *p.in);
    p.out = ttn_alloc_array(p.n_thread * n, sizeof *p.out);
    if (!p.in || !p.out) exit(1);
    for (int64_t e = 0; e < 2 * n; e++)
        p.in[e] = (real)(e % 97) / 97;
    return p;
}

static void multiply(void *arg)
{
    const products *p = arg;
#pragma omp parallel num_threads(p->n_thread)
    {
        real *c = p->out + (int64_t)omp_get_thread_num() * SIDE * SIDE;
        ttn_gemm(TTN_N, TTN_N, SIDE, SIDE, SIDE, 1, ttn_in(p->in, SIDE), ttn_in(p->in + SIDE * SIDE, SIDE), 0,
                 ttn_out(c, SIDE));
    }
}

static double work_of_products(const products *p)
{
    return 2.0 * SIDE * SIDE * SIDE * p->n_thread / 1e9;
}

/* ---- proteins ---- */

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

/* ---- a model in training ---- */

typedef struct {
    ttn_config_table *table;
    ttn_config *config;
    ttn_device *device;
    ttn_sequences from;
    ttn_model_spec *model;
    ttn_trainer *trainer;
    int64_t before, held; /* bytes: in use before it was made; of weights, gradients, moments */
} training;

static void configure(training *t, const char *const *setting, int n)
{
    ttn_error err = {0};
    must(ttn_config_table_of_titin(&t->table, &err), &err);
    must(ttn_config_load(t->table, &(ttn_config_request){.argument = setting, .n_argument = n}, &t->config, &err),
         &err);
}

/* What a run holds beside the values of a step, less what is saved of it: nothing is saved here. */
static int64_t held_by(const ttn_weights *w)
{
    enum { SAVED_SLABS = 3 };
    int64_t n = 0;
    for (int i = 0; i < ttn_weights_count(w); i++)
        n += ttn_desc_numel(&ttn_weights_at(w, i)->desc);
    return ttn_budget_held(&(ttn_budget_request){.parameters = n, .shards = 1}) -
           SAVED_SLABS * n * (int64_t)sizeof(real);
}

static training *start(ttn_sequence_list *proteins, const char *const *setting, int n)
{
    ttn_error err = {0};
    training *t = calloc(1, sizeof *t);
    if (!t) exit(1);
    configure(t, setting, n);
    const ttn_values *v = ttn_config_values(t->config);
    const ttn_option_reader reader = ttn_values_reader(v);
    ttn_trainer_options o = {
        .from = &t->from, .seed = 1, .shards = 1, .budget = (size_t)8 << 30, .n_thread = omp_get_max_threads()};
    t->from = ttn_sequence_list_view(proteins);
    must(ttn_device_cpu(&t->device, &err), &err);
    must(ttn_model_spec_of(v, &(ttn_model_use){.alphabet = t->from.alphabet}, &t->model, &err), &err);
    must(ttn_optim_spec_of(v, &o.optim, &err), &err);
    must(ttn_schedule_of(v, 1000000, &o.schedule, &err), &err);
    must(ttn_batch_rules_of(&reader, &o.rules, &err), &err);
    must(ttn_batch_capacity_of(&o.rules, &t->from, NULL, &o.capacity, &err), &err);
    o.model = t->model;
    o.device = t->device;
    t->before = ttn_machine_resident();
    must(ttn_trainer_create(&o, &t->trainer, &err), &err);
    t->held = held_by(ttn_trainer_weights(t->trainer));
    return t;
}

static void stop(training *t)
{
    ttn_trainer_destroy(t->trainer);
    ttn_model_spec_destroy(t->model);
    ttn_device_destroy(t->device);
    ttn_config_destroy(t->config);
    ttn_config_table_destroy(t->table);
    free(t);
}

static void step(void *arg)
{
    training *t = arg;
    ttn_error err = {0};
    ttn_step s;
    must(ttn_trainer_step(t->trainer, &s, &err), &err);
}

/* ---- what was foretold ---- */

static double best_of(void (*run)(void *arg), void *arg)
{
    enum { TIMES = 5 };
    double best = 0;
    for (int i = 0; i < TIMES; i++) {
        const double begin = ttn_clock_now(NULL);
        run(arg);
        const double s = ttn_clock_now(NULL) - begin;
        if (i == 0 || s < best) best = s;
    }
    return best;
}

/* Memory behind the second step, as the system counts it, and the time of a step. */
static void compare_with_forecast(const char *what, training *t, products *p)
{
    step(t);
    step(t);
    const ttn_plan_report *r = ttn_trainer_plan(t->trainer);
    const double took = (double)(ttn_machine_resident() - t->before), foretold = (double)((int64_t)r->bytes + t->held);
    double bytes = 0;
    for (int i = 0; i < r->n_step; i++)
        bytes += r->step[i].bytes;
    const double rate = 1e9 * work_of_products(p) / best_of(multiply, p);
    const double seconds = best_of(step, t);
    bench_note("%s: %.0f MiB foretold, %.0f in use, ratio %.3f; a step takes %.2f times what was foretold", what,
               foretold / (1 << 20), took / (1 << 20), took / foretold,
               seconds / ((r->done + TTN_FLOPS_PER_BYTE * bytes) / rate));
}

static void compare(ttn_sequence_list *proteins, products *p, int width, int rows, const char *kind)
{
    char what[80], wide[40], tall[40], attention[40];
    snprintf(wide, sizeof wide, "model.width=%d", width);
    snprintf(tall, sizeof tall, "batch.rows=%d", rows);
    snprintf(attention, sizeof attention, "attention.kind=%s", kind);
    const char *setting[MOST_SETTINGS] = {wide, tall, attention, "model.layers=2", "data.max_len=480"};
    snprintf(what, sizeof what, "width %d, %s, %d rows, %d threads", width, kind, rows, p->n_thread);
    multiply(p); /* what the BLAS takes for itself is there before anything is counted */
    training *t = start(proteins, setting, 5);
    compare_with_forecast(what, t, p);
    const bench_row row[] = {
        {.name = "products", .run = multiply, .arg = p, .work = work_of_products(p), .unit = "GF/s"},
        {.name = "a step of training",
         .run = step,
         .arg = t,
         .work = ttn_trainer_plan(t->trainer)->useful / 1e9,
         .unit = "GF/s"},
    };
    bench_compare(what, row, 2);
    stop(t);
}

/* ---- linear attention in a step ---- */

enum { LONG = 4094, LONG_ROWS = 4096 }; /* with <cls> and <eos> */

/* One protein of LONG residues: the sample's, one behind the other. */
static ttn_sequence_list *join(ttn_sequence_list *proteins)
{
    static uint8_t token[LONG];
    ttn_error err = {0};
    ttn_sequence_list *l;
    const ttn_sequences from = ttn_sequence_list_view(proteins);
    int64_t n = 0;
    for (int64_t i = 0; n < LONG; i++) {
        const int64_t length = from.length(from.self, i);
        const int64_t taken = length < LONG - n ? length : LONG - n;
        must(from.tokens(from.self, i, 0, taken, token + n, &err), &err);
        n += taken;
    }
    must(ttn_sequence_list_create(from.alphabet, &l, &err), &err);
    must(ttn_sequence_list_add(l, "joined", token, NULL, LONG, &err), &err);
    return l;
}

/* What linear attention adds to a step. Kernels for AVX-512 are slow at products with an inner dimension of 64. */
static void beside_none(ttn_sequence_list *proteins)
{
    static const struct {
        const char *name, *kind, *qk;
    } kinds[] = {{"none", "attention.kind=none", "none.qk=yes"},
                 {"favor", "attention.kind=favor", "none.qk=yes"},
                 {"nystrom", "attention.kind=nystrom", "none.qk=yes"},
                 {"none, no q and k", "attention.kind=none", "none.qk=no"}};
    enum { KINDS = sizeof kinds / sizeof *kinds, FAVOR = 1 };
    ttn_blas_info blas;
    ttn_blas_describe(&blas);
    const int is_wide = strcmp(blas.kernel, "SkylakeX") == 0 || strcmp(blas.kernel, "Cooperlake") == 0 ||
                        strcmp(blas.kernel, "SapphireRapids") == 0;
    ttn_sequence_list *joined = join(proteins);
    training *t[KINDS];
    bench_row row[KINDS];
    for (int k = 0; k < KINDS; k++) {
        const char *setting[MOST_SETTINGS] = {kinds[k].kind,    kinds[k].qk,       "model.width=512",   "model.heads=8",
                                              "model.layers=2", "batch.rows=4096", "favor.features=256"};
        t[k] = start(joined, setting, 7);
        step(t[k]);
        row[k] =
            (bench_row){.name = kinds[k].name, .run = step, .arg = t[k], .work = 1e-6 * LONG_ROWS, .unit = "M rows/s"};
    }
    row[FAVOR].goal = is_wide ? 1 / 1.4 : 1 / 1.25;
    bench_compare("a step of one protein of 4,094, width 512, 8 heads, m 256 and 64", row, KINDS);
    for (int k = 0; k < KINDS; k++)
        stop(t[k]);
    ttn_sequence_list_destroy(joined);
}

int main(int argc, char **argv)
{
    static const struct {
        int width, rows;
    } sizes[] = {{64, 16320}, {128, 16320}, {256, 9600}, {512, 4800}};
    static const char *const kinds[] = {"exact", "none"};
    bench_start(argc, argv, "train");
    ttn_sequence_list *proteins = read_sample();
    products p = make_products();
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            compare(proteins, &p, sizes[i].width, sizes[i].rows, kinds[k]);
    beside_none(proteins);
    ttn_sequence_list_destroy(proteins);
    ttn_free(p.in);
    ttn_free(p.out);
    return bench_end();
}
