#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/memory.h"
#include "data/batch.h"
#include "data/fasta.h"
#include "train/budget.h"
#include "train/forecast.h"

struct ttn_forecast {
    ttn_forecast_request request;
    ttn_forecast_facts facts;
    ttn_own_alphabet own;
    ttn_fasta_rules fasta;
    ttn_model_spec *spec;
    ttn_graph *graph;
    ttn_plan *plan;
    ttn_parameter_group *group;
    ttn_op_share *op;
};

/* ---- sequences that nobody has read ---- */

/* One sequence of so many residues stands for all: a ttn_sequences of which nothing but the length is asked. */
static int64_t length_of(const void *self, int64_t i)
{
    (void)i;
    return *(const int64_t *)self;
}

static ttn_status capacity_for(const ttn_batch_rules *rules, const ttn_alphabet *alphabet, int64_t length,
                               ttn_capacity *ret, ttn_error *err)
{
    const ttn_sequences one = {.self = &length, .alphabet = alphabet, .n = 1, .length = length_of};
    return ttn_batch_capacity_of(rules, &one, NULL, ret, err);
}

/* Specials around a whole protein. */
static int64_t specials_of(const ttn_batch_rules *rules, const ttn_alphabet *alphabet)
{
    ttn_batch_rules whole = *rules;
    whole.max_len = 0;
    const ttn_piece p = ttn_piece_of(&whole, alphabet, 0, 0, 1);
    return ttn_piece_rows(&p) - p.n;
}

/* ---- a plan ---- */

/* A graph of the model with a loss, and its plan; both are the caller's. Nothing of the size of the model is allocated. */
typedef struct {
    ttn_graph *graph;
    ttn_plan *plan;
} planned;

static void drop_planned(planned *p)
{
    ttn_plan_destroy(p->plan);
    ttn_graph_destroy(p->graph);
    *p = (planned){0};
}

static ttn_status plan_for(const ttn_forecast *f, ttn_extent extent, size_t budget, planned *ret, ttn_error *err)
{
    ttn_model m;
    *ret = (planned){.graph = ttn_graph_create(extent)};
    ttn_model_build(ret->graph, f->spec, TTN_MODEL_LOSS, &m);
    ttn_status status = ttn_graph_check(ret->graph, err);
    const ttn_plan_options options = {
        .loss = &m.loss,
        .n_loss = 1,
        .stat = &m.loss,
        .n_stat = 1,
        .budget = budget,
        .n_thread = f->request.n_thread,
    };
    if (status == TTN_OK) status = ttn_plan_create(ret->graph, &options, &ret->plan, err);
    if (status != TTN_OK) drop_planned(ret);
    return status;
}

/* Seconds for so much work: as much as the planner takes a byte to be worth. */
static double seconds_of(const ttn_forecast *f, double flops, double bytes)
{
    if (f->request.rate <= 0) return (double)NAN;
    return (flops + TTN_FLOPS_PER_BYTE * bytes) / f->request.rate;
}

static double step_seconds(const ttn_forecast *f, const ttn_plan_report *r)
{
    double bytes = 0;
    for (int i = 0; i < r->n_step; i++)
        bytes += r->step[i].bytes;
    return seconds_of(f, r->done, bytes);
}

/* ---- parameters by what they belong to ---- */

/* "layer.*.attn" of "layer.3.attn.q.weight", "head" of "head.bias". */
static void group_name(const char *parameter, char *ret)
{
    static const char layer[] = "layer.";
    const size_t n = strlen(layer);
    const char *part = parameter;
    if (strncmp(parameter, layer, n) == 0) {
        part += n;
        part += strspn(part, "0123456789");
        part += *part == '.';
    }
    snprintf(ret, TTN_PARAMETER_GROUP, "%s%.*s", part == parameter ? "" : "layer.*.", (int)strcspn(part, "."), part);
}

static void count_parameter(ttn_forecast *f, const char *name, int64_t numbers)
{
    char group[TTN_PARAMETER_GROUP];
    ttn_forecast_facts *facts = &f->facts;
    group_name(name, group);
    int i = 0;
    while (i < facts->n_group && strcmp(f->group[i].name, group) != 0)
        i++;
    if (i == facts->n_group) {
        snprintf(f->group[i].name, sizeof f->group[i].name, "%s", group);
        facts->n_group++;
    }
    f->group[i].tensors++;
    f->group[i].parameters += numbers;
    facts->parameters += numbers;
}

static ttn_status count_parameters(ttn_forecast *f, ttn_error *err)
{
    ttn_model m;
    ttn_graph *g = ttn_graph_create((ttn_extent){TTN_GRAPH_TILE, 1, TTN_GRAPH_TILE});
    ttn_model_build(g, f->spec, TTN_MODEL_LOSS, &m);
    ttn_status status = ttn_graph_check(g, err);
    int64_t n = 0;
    if (status == TTN_OK) {
        for (int v = ttn_next_param(g, TTN_NONE); v != TTN_NONE; v = ttn_next_param(g, v))
            n++;
        f->group = ttn_alloc_or_say(n, sizeof *f->group, "a list of parameters", err);
        if (!f->group) status = TTN_ENOMEM;
    }
    for (int v = ttn_next_param(g, TTN_NONE); status == TTN_OK && v != TTN_NONE; v = ttn_next_param(g, v)) {
        const ttn_desc d = ttn_desc_of_value(g, v);
        count_parameter(f, ttn_name_of_value(g, v), ttn_desc_numel(&d));
    }
    f->facts.group = f->group;
    ttn_graph_destroy(g);
    return status;
}

/* ---- work by op ---- */

static int by_seconds(const void *a, const void *b)
{
    const ttn_op_share *x = a, *y = b;
    const double left = x->done + TTN_FLOPS_PER_BYTE * x->bytes, right = y->done + TTN_FLOPS_PER_BYTE * y->bytes;
    if (left != right) return left < right ? 1 : -1;
    return strcmp(x->op, y->op);
}

static ttn_status share_work(ttn_forecast *f, ttn_error *err)
{
    const ttn_plan_report *r = f->facts.plan;
    int n = 0;
    f->op = ttn_alloc_or_say(r->n_step, sizeof *f->op, "a list of ops", err);
    if (!f->op) return TTN_ENOMEM;
    for (int k = 0; k < r->n_step; k++) {
        const ttn_plan_step *s = &r->step[k];
        int i = 0;
        while (i < n && strcmp(f->op[i].op, s->op) != 0)
            i++;
        if (i == n) f->op[n++] = (ttn_op_share){.op = s->op};
        f->op[i].steps++;
        f->op[i].done += s->done;
        f->op[i].bytes += s->bytes;
    }
    qsort(f->op, (size_t)n, sizeof *f->op, by_seconds);
    for (int i = 0; i < n; i++)
        f->op[i].seconds = seconds_of(f, f->op[i].done, f->op[i].bytes);
    f->facts.op = f->op;
    f->facts.n_op = n;
    return TTN_OK;
}

/* ---- the step ---- */

static ttn_status read_rules(ttn_forecast *f, ttn_error *err)
{
    ttn_forecast_facts *facts = &f->facts;
    const ttn_option_reader reader = ttn_values_reader(f->request.values);
    ttn_status status = ttn_train_spec_read(f->request.values, &facts->train, err);
    if (status == TTN_OK) status = ttn_batch_rules_of(&reader, &facts->rules, err);
    if (status == TTN_OK) status = ttn_fasta_rules_of(&reader, &f->own, &f->fasta, err);
    if (status != TTN_OK) return status;
    facts->alphabet = f->fasta.alphabet;
    facts->rules.objective = facts->train.objective;
    return TTN_OK;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* N, S and R. Where data.max_seqs says what S is, sequences are as long as so many of them fill the batch. */
static ttn_status find_capacity(ttn_forecast *f, ttn_error *err)
{
    ttn_forecast_facts *facts = &f->facts;
    const ttn_batch_rules *rules = &facts->rules;
    const int64_t whole = (rules->rows + TTN_BATCH_TILE - 1) / TTN_BATCH_TILE * TTN_BATCH_TILE;
    const int64_t room = whole - specials_of(rules, facts->alphabet);
    int64_t length = smaller(TTN_FORECAST_LENGTH, room);
    if (rules->max_seqs > 0) length = room / smaller(rules->max_seqs, room);
    if (rules->max_len > 0) length = smaller(length, rules->max_len);
    if (rules->max_seqs == 0) facts->length = length;
    return capacity_for(rules, facts->alphabet, length, &facts->capacity, err);
}

static ttn_status make_spec(ttn_forecast *f, ttn_error *err)
{
    const ttn_forecast_facts *facts = &f->facts;
    const int64_t max_len = facts->rules.max_len;
    const ttn_model_use use = {
        .alphabet = facts->alphabet,
        .causal = facts->train.objective == TTN_OBJECTIVE_CLM,
        .longest = max_len > 0 ? max_len + specials_of(&facts->rules, facts->alphabet) : 0,
    };
    ttn_status status = ttn_model_spec_of(f->request.values, &use, &f->spec, err);
    f->facts.model = f->spec;
    return status;
}

static ttn_budget_request budget_request(const ttn_forecast *f)
{
    return (ttn_budget_request){
        .asked = f->facts.train.memory,
        .parameters = f->facts.parameters,
        .shards = f->facts.train.shards,
        .ram = f->request.ram,
    };
}

/* Bytes and flops of a plan that computes nothing twice. */
static ttn_status plan_everything(const ttn_forecast *f, ttn_extent extent, int64_t *ret_bytes, double *ret_done,
                                  ttn_error *err)
{
    planned p;
    ttn_status status = plan_for(f, extent, TTN_NO_BUDGET, &p, err);
    if (status != TTN_OK) return status;
    *ret_bytes = (int64_t)ttn_plan_report_of(p.plan)->bytes;
    *ret_done = ttn_plan_report_of(p.plan)->done;
    drop_planned(&p);
    return TTN_OK;
}

static ttn_status plan_step(ttn_forecast *f, ttn_error *err)
{
    ttn_forecast_facts *facts = &f->facts;
    const ttn_budget_request request = budget_request(f);
    size_t budget;
    double once = 0;
    facts->held = ttn_budget_held(&request);
    ttn_status status = plan_everything(f, facts->capacity.extent, &facts->everything, &once, err);
    if (status == TTN_OK) status = ttn_budget_of(&request, &budget, err);
    if (status != TTN_OK) return status;
    facts->budget = (int64_t)budget;
    planned p;
    ttn_error why = {0};
    status = plan_for(f, facts->capacity.extent, budget, &p, &why);
    if (status == TTN_ENOMEM) return ttn_budget_advise(&why, budget, &facts->rules, &facts->capacity, err);
    if (status != TTN_OK) return TTN_FAIL(err, status, "%s", why.text);
    f->graph = p.graph;
    f->plan = p.plan;
    facts->plan = ttn_plan_report_of(p.plan);
    const double shards = (double)facts->train.shards;
    facts->done = shards * facts->plan->done;
    facts->more = facts->plan->done / once - 1;
    facts->seconds = shards * step_seconds(f, facts->plan);
    return TTN_OK;
}

/* ---- the longest sequence ---- */

/* Rows of the longest batch: positions are below TTN_MAX_POSITION, and a learned table has its end. */
static int64_t most_rows(const ttn_forecast *f)
{
    int64_t most = TTN_MAX_POSITION;
    if (f->spec->places == TTN_PLACES_LEARNED) most = f->spec->max_positions;
    return most;
}

/* The batch of one sequence of so many residues. */
static ttn_status extent_of(const ttn_forecast *f, int64_t residues, ttn_extent *ret, ttn_error *err)
{
    ttn_batch_rules rules = f->facts.rules;
    rules.max_len = 0;
    rules.max_seqs = 1;
    rules.rows = residues + specials_of(&rules, f->facts.alphabet);
    ttn_capacity c;
    ttn_status status = capacity_for(&rules, f->facts.alphabet, residues, &c, err);
    if (status == TTN_OK) *ret = c.extent;
    return status;
}

/* Does a sequence of so many residues fit? TTN_OK with *ret_fits; on 1 *p is the plan. */
static ttn_status try_length(const ttn_forecast *f, int64_t residues, size_t budget, int *ret_fits, planned *p,
                             ttn_error *err)
{
    ttn_extent extent;
    ttn_error why = {0};
    *ret_fits = 0;
    *p = (planned){0};
    ttn_status status = extent_of(f, residues, &extent, err);
    if (status != TTN_OK) return status;
    status = plan_for(f, extent, budget, p, &why);
    if (status == TTN_OK) *ret_fits = 1;
    if (status == TTN_OK || status == TTN_ENOMEM) return TTN_OK;
    return TTN_FAIL(err, status, "%s", why.text);
}

/* Tiles of rows of the longest sequence that fits, between `fits` (0: none does) and `fails`; *best is its plan. */
static ttn_status search_length(const ttn_forecast *f, size_t budget, int64_t most, int64_t *ret, planned *best,
                                ttn_error *err)
{
    const int64_t specials = specials_of(&f->facts.rules, f->facts.alphabet);
    const int64_t tiles = (most + TTN_BATCH_TILE - 1) / TTN_BATCH_TILE;
    int64_t fits = 0, fails = tiles + 1, at = 1;
    while (fails - fits > 1) {
        int fine;
        planned p;
        const int64_t rows = at * TTN_BATCH_TILE < most ? at * TTN_BATCH_TILE : most;
        ttn_status status = try_length(f, rows - specials, budget, &fine, &p, err);
        if (status != TTN_OK) return status;
        if (fine) {
            drop_planned(best);
            *best = p;
            fits = at;
            *ret = rows - specials;
        } else {
            fails = at;
        }
        at = fails > tiles && 2 * fits < fails ? 2 * fits : fits + (fails - fits) / 2;
        if (at == 0) at = 1;
    }
    return TTN_OK;
}

static ttn_status find_longest(ttn_forecast *f, ttn_error *err)
{
    ttn_forecast_facts *facts = &f->facts;
    ttn_fit *fit = &facts->fit;
    *fit = (ttn_fit){.memory = f->request.fit, .seconds = (double)NAN};
    planned best = {0};
    ttn_status status = TTN_OK;
    if (f->request.fit > facts->held)
        status = search_length(f, (size_t)(f->request.fit - facts->held), most_rows(f), &fit->residues, &best, err);
    int64_t bytes;
    double once;
    if (status == TTN_OK && best.plan) status = plan_everything(f, ttn_graph_capacity(best.graph), &bytes, &once, err);
    if (status == TTN_OK && best.plan) {
        const ttn_plan_report *r = ttn_plan_report_of(best.plan);
        fit->rows = ttn_graph_capacity(best.graph).rows;
        fit->bytes = (int64_t)r->bytes + facts->held;
        fit->again = r->n_again;
        fit->more = r->done / once - 1;
        fit->seconds = step_seconds(f, r);
    }
    drop_planned(&best);
    return status;
}

/* ---- all of it ---- */

static ttn_status forecast(ttn_forecast *f, ttn_error *err)
{
    ttn_status status = read_rules(f, err);
    if (status == TTN_OK) status = find_capacity(f, err);
    if (status == TTN_OK) status = make_spec(f, err);
    if (status == TTN_OK) status = count_parameters(f, err);
    if (status == TTN_OK) status = plan_step(f, err);
    if (status == TTN_OK) status = share_work(f, err);
    if (status == TTN_OK && f->request.fit > 0) status = find_longest(f, err);
    return status;
}

ttn_status ttn_forecast_create(const ttn_forecast_request *r, ttn_forecast **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_forecast *f = ttn_alloc_or_say(1, sizeof *f, "a forecast", err);
    if (!f) return TTN_ENOMEM;
    f->request = *r;
    f->facts.rate = r->rate;
    ttn_status status = forecast(f, err);
    if (status == TTN_OK)
        *ret = f;
    else
        ttn_forecast_destroy(f);
    return status;
}

void ttn_forecast_destroy(ttn_forecast *f)
{
    if (!f) return;
    ttn_plan_destroy(f->plan);
    ttn_graph_destroy(f->graph);
    ttn_model_spec_destroy(f->spec);
    ttn_free(f->group);
    ttn_free(f->op);
    ttn_free(f);
}

const ttn_forecast_facts *ttn_forecast_of(const ttn_forecast *f)
{
    return &f->facts;
}
