#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/memory.h"
#include "core/real.h"
#include "train/forecast_facts.h"

/* To four places, which is what anybody reads of a share. */
static void tell_share(ttn_facts *f, const char *key, double share)
{
    ttn_facts_real(f, key, round(share * 1e4) / 1e4);
}

/* A duration, or none where the rate of the machine is not known. */
static void tell_seconds(ttn_facts *f, const char *key, double seconds)
{
    if (isfinite(seconds))
        ttn_facts_seconds(f, key, seconds);
    else
        ttn_facts_none(f, key);
}

/* ---- the model ---- */

static int is_first_of_its_kind(const ttn_model_spec *m, int64_t layer)
{
    for (int64_t l = 0; l < layer; l++)
        if (strcmp(m->attention[l].kind, m->attention[layer].kind) == 0) return 0;
    return 1;
}

/* Of each layer, or each kind once. */
static void tell_kinds(const ttn_model_spec *m, int all, ttn_facts *f)
{
    ttn_facts_open_list(f, "attention");
    for (int64_t l = 0; l < m->layers; l++)
        if (all || is_first_of_its_kind(m, l)) ttn_facts_text(f, NULL, "%s", m->attention[l].kind);
    ttn_facts_close(f);
}

static void tell_model(const ttn_forecast_facts *p, int most, ttn_facts *f)
{
    const ttn_model_spec *m = p->model;
    ttn_facts_open(f, "model");
    ttn_facts_integer(f, "layers", m->layers);
    ttn_facts_integer(f, "width", m->layer.width);
    ttn_facts_integer(f, "heads", m->layer.heads);
    ttn_facts_integer(f, "ffn", m->layer.hidden);
    ttn_facts_text(f, "alphabet", "%s", p->alphabet->name);
    tell_kinds(m, most == 0, f);
    ttn_facts_text(f, "real", "%s", TTN_REAL_NAME);
    ttn_facts_integer(f, "parameters", p->parameters);
    ttn_facts_close(f);

    ttn_facts_open_list(f, "parameters");
    for (int i = 0; i < p->n_group; i++) {
        const ttn_parameter_group *g = &p->group[i];
        ttn_facts_open(f, NULL);
        ttn_facts_text(f, "of", "%s", g->name);
        ttn_facts_integer(f, "tensors", g->tensors);
        ttn_facts_integer(f, "numbers", g->parameters);
        tell_share(f, "share", (double)g->parameters / (double)p->parameters);
        ttn_facts_close(f);
    }
    ttn_facts_close(f);
}

/* ---- the batch ---- */

static void tell_batch(const ttn_forecast_facts *p, ttn_facts *f)
{
    ttn_facts_open(f, "batch");
    ttn_facts_integer(f, "rows", p->capacity.extent.rows);
    ttn_facts_integer(f, "sequences", p->capacity.extent.seqs);
    if (p->length > 0)
        ttn_facts_integer(f, "assumed_length", p->length);
    else
        ttn_facts_none(f, "assumed_length");
    ttn_facts_integer(f, "picks", p->capacity.extent.picks);
    ttn_facts_integer(f, "shards", p->train.shards);
    ttn_facts_close(f);
}

/* ---- memory ---- */

static void tell_memory(const ttn_forecast_facts *p, ttn_facts *f)
{
    const ttn_plan_report *r = p->plan;
    const ttn_plan_step *peak = &r->step[r->peak_step];
    static const char *const kinds[] = {"forward", "again", "backward"};
    ttn_facts_open(f, "memory");
    ttn_facts_bytes(f, "run", (int64_t)r->bytes + p->held);
    ttn_facts_bytes(f, "values", (int64_t)r->bytes);
    ttn_facts_bytes(f, "weights", p->held);
    ttn_facts_bytes(f, "budget", p->budget);
    ttn_facts_bytes(f, "nothing_twice", p->everything);
    ttn_facts_bytes(f, "without_reuse", (int64_t)r->sum);
    ttn_facts_text(f, "peak_at", "%s, %s", peak->node, kinds[peak->kind]);
    ttn_facts_close(f);
}

static void tell_alive(const ttn_plan_report *r, int most, ttn_facts *f)
{
    const int n = most > 0 && r->n_alive > most ? most : r->n_alive;
    size_t rest = 0;
    ttn_facts_open_list(f, "alive");
    for (int i = 0; i < r->n_alive; i++) {
        const ttn_plan_alive *a = &r->alive[i];
        if (i >= n) {
            rest += a->bytes;
            continue;
        }
        ttn_facts_open(f, NULL);
        ttn_facts_text(f, "name", "%s", a->name);
        ttn_facts_text(f, "what", "%s", a->what);
        ttn_facts_bytes(f, "bytes", (int64_t)a->bytes);
        ttn_facts_close(f);
    }
    if (n < r->n_alive) {
        ttn_facts_open(f, NULL);
        ttn_facts_text(f, "name", "%d more", r->n_alive - n);
        ttn_facts_text(f, "what", "%s", "");
        ttn_facts_bytes(f, "bytes", (int64_t)rest);
        ttn_facts_close(f);
    }
    ttn_facts_close(f);
}

static int by_flops(const void *a, const void *b)
{
    const ttn_plan_again *x = a, *y = b;
    if (x->flops != y->flops) return x->flops < y->flops ? 1 : -1;
    return x < y ? -1 : x > y;
}

static void tell_one_again(const char *node, const char *how, size_t bytes, double share, ttn_facts *f)
{
    ttn_facts_open(f, NULL);
    ttn_facts_text(f, "node", "%s", node);
    ttn_facts_text(f, "how", "%s", how);
    ttn_facts_bytes(f, "not_kept", (int64_t)bytes);
    tell_share(f, "work", share);
    ttn_facts_close(f);
}

/* The dearest first. */
static void tell_again(const ttn_plan_report *r, int most, ttn_facts *f)
{
    ttn_plan_again *again = ttn_alloc_array(r->n_again, sizeof *again);
    for (int i = 0; again && i < r->n_again; i++)
        again[i] = r->again[i];
    if (again) qsort(again, (size_t)r->n_again, sizeof *again, by_flops);
    const ttn_plan_again *list = again ? again : r->again; /* without memory, in the order of the plan */
    const int n = most > 0 && r->n_again > most ? most : r->n_again;
    size_t bytes = 0;
    double flops = 0;
    ttn_facts_open_list(f, "computed_twice");
    for (int i = 0; i < r->n_again; i++) {
        if (i < n)
            tell_one_again(list[i].node, list[i].lean ? "by parts" : "again", list[i].bytes, list[i].flops / r->done,
                           f);
        bytes += i < n ? 0 : list[i].bytes;
        flops += i < n ? 0 : list[i].flops;
    }
    if (n < r->n_again) {
        char more[40];
        snprintf(more, sizeof more, "%d more", r->n_again - n);
        tell_one_again(more, "", bytes, flops / r->done, f);
    }
    ttn_facts_close(f);
    ttn_free(again);
}

/* ---- work ---- */

static void tell_work(const ttn_forecast_facts *p, double rate, ttn_facts *f)
{
    ttn_facts_open(f, "step");
    ttn_facts_real(f, "flops", p->done);
    tell_share(f, "work_twice", p->more);
    if (rate > 0)
        ttn_facts_real(f, "flops_per_second", rate);
    else
        ttn_facts_none(f, "flops_per_second");
    tell_seconds(f, "seconds", p->seconds);
    ttn_facts_integer(f, "parts", p->plan->n_step);
    if (p->train.steps > 0) ttn_facts_integer(f, "steps", p->train.steps);
    if (p->train.steps > 0) tell_seconds(f, "all_steps", p->seconds * (double)p->train.steps);
    ttn_facts_close(f);

    ttn_facts_open_list(f, "op");
    for (int i = 0; i < p->n_op; i++) {
        ttn_facts_open(f, NULL);
        ttn_facts_text(f, "op", "%s", p->op[i].op);
        ttn_facts_integer(f, "parts", p->op[i].steps);
        ttn_facts_real(f, "flops", p->op[i].done);
        ttn_facts_bytes(f, "moved", (int64_t)p->op[i].bytes);
        tell_seconds(f, "seconds", p->op[i].seconds);
        ttn_facts_close(f);
    }
    ttn_facts_close(f);
}

static void tell_fit(const ttn_fit *t, ttn_facts *f)
{
    ttn_facts_open(f, "fit");
    ttn_facts_bytes(f, "memory", t->memory);
    ttn_facts_integer(f, "longest", t->residues);
    ttn_facts_integer(f, "rows", t->rows);
    ttn_facts_bytes(f, "run", t->bytes);
    ttn_facts_integer(f, "nodes_twice", t->again);
    tell_share(f, "work_twice", t->more);
    tell_seconds(f, "seconds", t->seconds);
    ttn_facts_close(f);
}

/* ---- all of it ---- */

void ttn_forecast_tell(const ttn_forecast_facts *p, int most, ttn_facts *f)
{
    tell_model(p, most, f);
    tell_batch(p, f);
    tell_memory(p, f);
    tell_alive(p->plan, most, f);
    tell_again(p->plan, most, f);
    tell_work(p, p->rate, f);
    if (p->fit.memory > 0) tell_fit(&p->fit, f);
    if (p->plan->n_untrained > 0)
        ttn_facts_warn(f, "%d parameters take no part in the loss and are not trained, the first is %s",
                       p->plan->n_untrained, p->plan->untrained[0]);
    for (int64_t l = 0; l < p->model->layers; l++) {
        const char *note = ttn_model_note(p->model, l);
        if (note) ttn_facts_warn(f, "%s", note);
    }
    if (p->fit.memory > 0 && p->fit.residues == 0)
        ttn_facts_warn(f, "not even the shortest sequence fits: lower model.width or model.layers");
}
