/* What an op says of itself: the shapes and the data that it refuses, what it makes, its costs, its descriptor. */
#include <string.h>
#include "autograd/gradcheck_impl.h"

/* ---- shapes, data, costs ---- */

int ttn_case_is_refused(const ttn_op *op, const ttn_case *k)
{
    (void)op;
    return k->refused != NULL;
}

int ttn_case_is_failing(const ttn_op *op, const ttn_case *k)
{
    (void)op;
    return k->fails != NULL;
}

/* A sentence that begins with the op's name and contains `words`. */
static ttn_status check_sentence(const ttn_op *op, const char *what, ttn_status got, const ttn_error *why,
                                 const char *words, ttn_error *err)
{
    if (got == TTN_OK) return FAULT(err, "%s: %s accepts this; expected a refusal with '%s'", op->name, what, words);
    const size_t name = strlen(op->name);
    if (strncmp(why->text, op->name, name) != 0 || why->text[name] != ':')
        return FAULT(err, "%s: %s refuses this with '%s', which does not begin with the op's name", op->name, what,
                     why->text);
    if (!strstr(why->text, words))
        return FAULT(err, "%s: %s refuses this with '%s', expected '%s' in it", op->name, what, why->text, words);
    return TTN_OK;
}

ttn_status ttn_check_refused_shapes(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err)
{
    (void)o;
    ttn_sig s = ttn_gradcheck_signature(op, k, 0);
    ttn_error why = {0};
    const ttn_status status = op->shape(&s, &why);
    return check_sentence(op, "shape", status, &why, k->refused, err);
}

ttn_status ttn_check_refused_data(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err)
{
    instance t;
    ttn_status status = ttn_gradcheck_create(&t, op, k, &(setup){.o = o}, err);
    if (status == TTN_OK) {
        ttn_error why = {0};
        const variation v = {0};
        ttn_call c = ttn_gradcheck_forward_call(&t, &v);
        const ttn_status failed = ttn_gradcheck_call(&t, &c, TTN_FORWARD, &why);
        status = check_sentence(op, "forward", failed, &why, k->fails, err);
    }
    if (status == TTN_OK) status = ttn_gradcheck_guards(&t, "forward", err);
    ttn_gradcheck_destroy(&t);
    return status;
}

ttn_status ttn_check_shape(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err)
{
    (void)o;
    ttn_sig s = ttn_gradcheck_signature(op, k, 0);
    const ttn_sig given = s;
    ttn_status status = op->shape(&s, err);
    if (status != TTN_OK) return status;
    int changed = s.attr != given.attr || s.n_in != given.n_in;
    for (int i = 0; i < op->n_in; i++)
        changed |= !ttn_desc_same(&s.in[i], &given.in[i]);
    if (changed) return FAULT(err, "%s: shape changes what it was given", op->name);
    if (s.n_out != op->n_out) return FAULT(err, "%s: shape makes %d outputs of %d", op->name, s.n_out, op->n_out);
    if (s.n_aux < 0 || s.n_aux > TTN_MAX_AUX) return FAULT(err, "%s: shape declares %d aux", op->name, s.n_aux);
    if (s.n_stat < op->n_stats) return FAULT(err, "%s: %d statistics, %d numbers", op->name, op->n_stats, s.n_stat);
    for (int j = 0; j < s.n_out; j++) {
        status = ttn_desc_check(&s.out[j], op->name, err);
        if (status != TTN_OK) return status;
        const int i = op->takes[j] - 1;
        if (i >= 0 && s.in[i].ndim >= 0 && !ttn_desc_same(&s.out[j], &s.in[i]))
            return FAULT(err, "%s: takes: out %d has not the shape of in %d", op->name, j, i);
    }
    for (int a = 0; a < s.n_aux; a++) {
        status = ttn_desc_check(&s.aux[a], op->name, err);
        if (status != TTN_OK) return status;
    }
    for (int i = 0; i < op->n_in; i++) {
        if (op->reads[i].aux >= TTN_BIT(s.n_aux))
            return FAULT(err, "%s: reads[%d] lists more than %d aux", op->name, i, s.n_aux);
        const int j = op->passes[i] - 1;
        if (j >= 0 && s.in[i].ndim >= 0 && !ttn_desc_same(&s.out[j], &s.in[i]))
            return FAULT(err, "%s: passes: din %d has not the shape of dout %d", op->name, i, j);
    }
    return TTN_OK;
}

ttn_status ttn_check_cost(const ttn_op *op, const ttn_case *k, const ttn_gradcheck_options *o, ttn_error *err)
{
    (void)o;
    ttn_sig s = ttn_gradcheck_signature(op, k, 0);
    ttn_status status = op->shape(&s, err);
    if (status != TTN_OK) return status;
    for (int pass = TTN_FORWARD; pass <= TTN_BACKWARD; pass++) {
        const ttn_cost c = op->cost(&s, (ttn_pass)pass, TTN_BIT(s.n_aux) - 1);
        const char *name = pass == TTN_FORWARD ? "forward" : "backward";
        if (!(c.done >= 0 && c.useful >= 0 && c.bytes >= 0 && isfinite(c.done) && isfinite(c.bytes)))
            return FAULT(err, "%s: cost of %s is %g done, %g useful, %g bytes", op->name, name, c.done, c.useful,
                         c.bytes);
        if (c.useful > c.done)
            return FAULT(err, "%s: cost of %s: %g useful flops of %g done", op->name, name, c.useful, c.done);
        if (ttn_desc_numel(&s.in[0]) > 0 && !(c.bytes > 0))
            return FAULT(err, "%s: cost of %s moves no bytes", op->name, name);
    }
    return TTN_OK;
}

/* ---- the descriptor ---- */

static ttn_status check_coverage(const ttn_op *op, ttn_error *err)
{
    int good = 0;
    int refused = 0;
    uint32_t present = 0;
    uint32_t left_out = 0;
    for (int k = 0; k < op->n_cases; k++) {
        const ttn_case *c = &op->cases[k];
        if (!c->about) return FAULT(err, "%s: case %d does not say what it is about", op->name, k);
        if (op->attr_bytes > 0 && !c->attr)
            return FAULT(err, "%s: case %d (%s) has no attributes", op->name, k, c->about);
        refused += c->refused != NULL;
        if (!ttn_case_is_good(op, c)) continue;
        good++;
        for (int i = 0; i < op->n_in; i++) {
            if (c->in[i].ndim < 0)
                left_out |= TTN_BIT(i);
            else
                present |= TTN_BIT(i);
        }
    }
    if (good == 0 || refused == 0)
        return FAULT(err, "%s: %d good cases and %d refused ones, expected some of each", op->name, good, refused);
    for (int i = 0; i < op->n_in; i++) {
        if (!(present & TTN_BIT(i))) return FAULT(err, "%s: no case has input %d", op->name, i);
        if (op->optional & TTN_BIT(i) && !(left_out & TTN_BIT(i)))
            return FAULT(err, "%s: no case leaves out input %d, which is optional", op->name, i);
        if (!(op->optional & TTN_BIT(i)) && left_out & TTN_BIT(i))
            return FAULT(err, "%s: a case leaves out input %d, which is not optional", op->name, i);
    }
    return TTN_OK;
}

static int is_sum(const ttn_op *op, const char *name)
{
    for (int s = 0; s < op->n_stats; s++)
        if (strcmp(op->stats[s].name, name) == 0) return op->stats[s].fold == TTN_SUM && !op->stats[s].over;
    return 0;
}

/* As it is, or as a mean that can be made. */
static int is_told(const ttn_op *op, const ttn_stat *stat)
{
    if (!stat->over) return !stat->mean;
    return stat->mean && stat->fold == TTN_SUM && is_sum(op, stat->over);
}

ttn_status ttn_gradcheck_descriptor(const ttn_op *op, ttn_error *err)
{
    if (!op->name || !op->name[0]) return FAULT(err, "an op has no name");
    if (!op->shape || !op->cost || !op->cpu.forward || !op->cpu.backward)
        return FAULT(err, "%s: a function is missing", op->name);
    if (op->n_in < 0 || op->n_in > TTN_MAX_IN || op->n_out < 1 || op->n_out > TTN_MAX_OUT)
        return FAULT(err, "%s: %d inputs and %d outputs, at most %d and %d are possible", op->name, op->n_in, op->n_out,
                     TTN_MAX_IN, TTN_MAX_OUT);
    const uint32_t ins = TTN_BIT(op->n_in) - 1;
    const uint32_t outs = TTN_BIT(op->n_out) - 1;
    if (op->optional & ~ins || op->differentiable & ~ins)
        return FAULT(err, "%s: optional or differentiable names an input that does not exist", op->name);
    if (op->spare >= TTN_BIT(TTN_MAX_AUX)) return FAULT(err, "%s: spare names an aux that does not exist", op->name);
    for (int j = 0; j < TTN_MAX_OUT; j++)
        if (op->takes[j] < 0 || op->takes[j] > op->n_in || (j >= op->n_out && op->takes[j]))
            return FAULT(err, "%s: takes[%d] is %d; see TTN_SHARES", op->name, j, op->takes[j]);
    for (int i = 0; i < TTN_MAX_IN; i++) {
        const ttn_reads r = op->reads[i];
        const int can = i < op->n_in && op->differentiable & TTN_BIT(i);
        if (op->passes[i] < 0 || op->passes[i] > op->n_out || (!can && op->passes[i]))
            return FAULT(err, "%s: passes[%d] is %d; see TTN_SHARES", op->name, i, op->passes[i]);
        if (r.in & ~ins || r.out & ~outs)
            return FAULT(err, "%s: reads[%d] names a value that does not exist", op->name, i);
        if (!can && (r.in || r.out || r.aux))
            return FAULT(err, "%s: reads[%d] of an input without a gradient", op->name, i);
    }
    for (int s = 0; s < op->n_stats; s++)
        if (!op->stats[s].name) return FAULT(err, "%s: statistic %d has no name", op->name, s);
    for (int s = 0; s < op->n_stats; s++)
        if (!is_told(op, &op->stats[s]))
            return FAULT(err, "%s: statistic '%s' is told as a mean: it is a sum, over another sum, with a name",
                         op->name, op->stats[s].name);
    return check_coverage(op, err);
}
