/* Which nodes run, in which order, and from when to when each buffer is needed.
 *
 *   1. reachability  forward only of what a loss, a kept value, a statistic or a tap needs; backward only of nodes on a
 *                    path from a trainable parameter to a loss
 *   2. steps         forward in order of recording; then backward in reverse. Before a backward step, whatever it reads
 *                    that was dropped is made again, with what that needs, in order of recording
 *   3. lives         first and last step that touches each buffer
 *   4. sharing       an output over an input, a gradient over another, where one life ends as the other begins
 *
 * A dropped value has two lives, before and after it is made again, and so two buffers. Which one a step reads is decided
 * here, when the step is scheduled, and stored in it.
 */
#include <stdlib.h>
#include <string.h>
#include "autograd/plan_impl.h"
#include "core/memory.h"

enum { BUFFER_ALIGN = 256 }; /* bytes; what GPUs want, and four cache lines */

/* ---- 1. reachability ---- */

static int root_of(const request *want, int v)
{
    return want->g->value[v].root;
}

static void need_value(request *want, int v)
{
    int producer = want->g->value[v].node;
    if (producer != TTN_NO_NODE) want->needed[producer] = 1;
}

/* Forward steps: from what is asked for, backwards through all inputs. */
static void find_needed(request *want)
{
    const ttn_graph *g = want->g;
    const ttn_plan_options *o = &want->options;
    for (int i = 0; i < o->n_loss; i++)
        need_value(want, o->loss[i]);
    for (int i = 0; i < o->n_keep; i++)
        need_value(want, o->keep[i]);
    for (int i = 0; i < o->n_stat; i++)
        need_value(want, o->stat[i]);
    for (int i = 0; i < o->n_tap; i++)
        need_value(want, o->tap[i].value);
    for (int k = g->n_node - 1; k >= 0; k--) {
        if (!want->needed[k]) continue;
        const ttn_node *n = &g->node[k];
        for (int i = 0; i < n->op->n_in; i++)
            if (n->in[i] != TTN_NONE) need_value(want, n->in[i]);
    }
}

/* Backward steps: a gradient comes back to an output, and is wanted for an input. */
static void find_trained(request *want)
{
    const ttn_graph *g = want->g;
    for (int i = 0; i < want->options.n_loss; i++)
        want->leads[want->options.loss[i]] = 1;
    for (int k = g->n_node - 1; k >= 0; k--) {
        const ttn_node *n = &g->node[k];
        int comes_back = 0;
        for (int j = 0; j < n->sig.n_out; j++)
            comes_back |= want->leads[n->out + j];
        uint32_t wanted = ttn_node_wanted(g, n);
        want->trains[k] = comes_back && wanted;
        if (!want->trains[k]) continue;
        for (int i = 0; i < n->op->n_in; i++)
            if (wanted & TTN_BIT(i)) want->leads[n->in[i]] = 1;
    }
}

/* Nodes whose values only their own marked block reads. */
static void find_inside(request *want)
{
    const ttn_graph *g = want->g;
    for (int k = 0; k < g->n_node; k++)
        want->inside[k] = g->node[k].block != TTN_NO_BLOCK;
    for (int k = 0; k < g->n_node; k++) {
        const ttn_node *n = &g->node[k];
        if (!want->needed[k]) continue;
        for (int i = 0; i < n->op->n_in; i++) {
            int producer = n->in[i] == TTN_NONE ? TTN_NO_NODE : g->value[n->in[i]].node;
            if (producer != TTN_NO_NODE && g->node[producer].block != n->block) want->inside[producer] = 0;
        }
    }
    for (int v = 0; v < g->n_value; v++)
        if (want->kept[v] && g->value[v].node != TTN_NO_NODE) want->inside[g->value[v].node] = 0;
}

ttn_status ttn_request_fill(request *want, ttn_error *err)
{
    const ttn_graph *g = want->g;
    const ttn_plan_options *o = &want->options;
    want->needed = ttn_alloc_array(g->n_node, 1);
    want->trains = ttn_alloc_array(g->n_node, 1);
    want->inside = ttn_alloc_array(g->n_node, 1);
    want->tapped = ttn_alloc_array(g->n_node, 1);
    want->leads = ttn_alloc_array(g->n_value, 1);
    want->kept = ttn_alloc_array(g->n_value, 1);
    if (!want->needed || !want->trains || !want->inside || !want->tapped || !want->leads || !want->kept)
        return TTN_FAIL(err, TTN_ENOMEM, "plan: out of memory for %d nodes", g->n_node);
    for (int i = 0; i < o->n_loss; i++)
        want->kept[root_of(want, o->loss[i])] = 1;
    for (int i = 0; i < o->n_keep; i++)
        want->kept[root_of(want, o->keep[i])] = 1;
    for (int i = 0; i < o->n_tap; i++)
        want->tapped[g->value[o->tap[i].value].node] = 1;
    find_needed(want);
    find_trained(want);
    find_inside(want);
    return TTN_OK;
}

void ttn_request_free(request *want)
{
    ttn_free(want->needed);
    ttn_free(want->trains);
    ttn_free(want->inside);
    ttn_free(want->tapped);
    ttn_free(want->leads);
    ttn_free(want->kept);
}

/* ---- room ---- */

ttn_status ttn_schedule_create(const request *want, schedule *s, ttn_error *err)
{
    const int64_t n_node = want->g->n_node;
    const int64_t n_value = want->g->n_value;
    int64_t steps = 3 * n_node + 1; /* forward, again, backward */
    int64_t buffers = 3 * n_value + 2 * TTN_MAX_AUX * n_node + steps;
    *s = (schedule){0};
    s->step = ttn_alloc_array(steps, sizeof *s->step);
    s->buffer = ttn_alloc_array(buffers, sizeof *s->buffer);
    s->gradient_buffer = ttn_alloc_array(n_value, sizeof(int));
    s->final = ttn_alloc_array(n_value, sizeof(int));
    s->alive = ttn_alloc_array(steps + 2, sizeof *s->alive);
    s->mark = ttn_alloc_array(n_node, 1);
    s->last_writer = ttn_alloc_array(n_value, sizeof(int));
    int missing =
        !s->step || !s->buffer || !s->gradient_buffer || !s->final || !s->alive || !s->mark || !s->last_writer;
    for (int life = 0; life < 2; life++) {
        s->value_buffer[life] = ttn_alloc_array(n_value, sizeof(int));
        s->aux_buffer[life] = ttn_alloc_array(n_node * TTN_MAX_AUX, sizeof(int));
        missing |= !s->value_buffer[life] || !s->aux_buffer[life];
    }
    if (missing) return TTN_FAIL(err, TTN_ENOMEM, "plan: out of memory for a schedule of %d nodes", want->g->n_node);
    return TTN_OK;
}

void ttn_schedule_free(schedule *s)
{
    ttn_free(s->step);
    ttn_free(s->buffer);
    ttn_free(s->gradient_buffer);
    ttn_free(s->final);
    ttn_free(s->alive);
    ttn_free(s->mark);
    ttn_free(s->last_writer);
    for (int life = 0; life < 2; life++) {
        ttn_free(s->value_buffer[life]);
        ttn_free(s->aux_buffer[life]);
    }
}

/* ---- 2. steps and 3. lives ---- */

/* What the scheduler knows while it works. */
typedef struct {
    const request *want;
    const ttn_graph *g;
    const choice *choice;
    schedule *s;
} scheduler;

static size_t rounded(size_t bytes)
{
    return (bytes + BUFFER_ALIGN - 1) / BUFFER_ALIGN * BUFFER_ALIGN;
}

/* Buffer *number is needed at step `at`; made when this is the first time. Returns its number. */
static int touch(scheduler *w, int *number, buffer_kind kind, int owner, int life, size_t bytes, int at)
{
    schedule *s = w->s;
    if (*number == PLACE_NONE) {
        *number = s->n_buffer++;
        s->buffer[*number] = (buffer){
            .kind = kind,
            .owner = owner,
            .life = life,
            .bytes = rounded(bytes),
            .first = at,
            .shares = *number,
        };
    }
    s->buffer[*number].last = at;
    return *number;
}

/* The life of v that a step scheduled now reads. */
static int current_life(const scheduler *w, int v)
{
    return w->s->value_buffer[1][v] != PLACE_NONE;
}

/* Where a step scheduled now finds value v (a root). */
static int place_of_value(scheduler *w, int v, int life, int at)
{
    const ttn_value *x = &w->g->value[v];
    if (x->leaf == TTN_LEAF_PARAM || x->leaf == TTN_LEAF_STATE) return PLACE_OF_LEAF(v);
    buffer_kind kind = x->leaf == TTN_LEAF_INPUT ? BUFFER_INPUT : BUFFER_VALUE;
    return touch(w, &w->s->value_buffer[life][v], kind, v, life, ttn_desc_bytes(&x->desc), at);
}

static int place_of_aux(scheduler *w, int k, int j, int life, int at)
{
    const ttn_node *n = &w->g->node[k];
    if (w->choice->lean[k] && n->op->spare & TTN_BIT(j)) return PLACE_NONE;
    int *number = &w->s->aux_buffer[life][k * TTN_MAX_AUX + j];
    return touch(w, number, BUFFER_AUX, k, life, ttn_desc_bytes(&n->sig.aux[j]), at);
}

static int place_of_gradient(scheduler *w, int v, int at)
{
    const ttn_value *x = &w->g->value[v];
    if (x->leaf == TTN_LEAF_PARAM) return PLACE_OF_LEAF(v);
    return touch(w, &w->s->gradient_buffer[v], BUFFER_GRADIENT, v, 0, ttn_desc_bytes(&x->desc), at);
}

static size_t work_bytes(const scheduler *w, const ttn_node *n, ttn_pass pass)
{
    const ttn_plan_options *o = &w->want->options;
    const ttn_kernel_kind kind = o->device ? o->device->ops->kernels : TTN_KERNELS_CPU;
    return ttn_work_bytes(ttn_op_kernels(n->op, kind), &n->sig, pass, o->n_thread);
}

static step *new_step(scheduler *w, ttn_step_kind kind, int k)
{
    schedule *s = w->s;
    step *st = &s->step[s->n_step];
    *st = (step){.kind = kind, .node = k, .work = PLACE_NONE};
    for (int i = 0; i < TTN_MAX_IN; i++)
        st->in[i] = st->din[i] = PLACE_NONE;
    for (int j = 0; j < TTN_MAX_OUT; j++)
        st->out[j] = st->dout[j] = PLACE_NONE;
    for (int j = 0; j < TTN_MAX_AUX; j++)
        st->aux[j] = PLACE_NONE;
    size_t work = work_bytes(w, &w->g->node[k], kind == TTN_STEP_BACKWARD ? TTN_BACKWARD : TTN_FORWARD);
    if (work > 0) touch(w, &st->work, BUFFER_WORK, k, 0, work, s->n_step);
    s->n_step++;
    return st;
}

/* Forward of node k, the first time (life 0) or again (life 1). */
static void add_forward(scheduler *w, int k, int life)
{
    const ttn_node *n = &w->g->node[k];
    int at = w->s->n_step;
    step *st = new_step(w, life == 0 ? TTN_STEP_FORWARD : TTN_STEP_AGAIN, k);
    for (int i = 0; i < n->op->n_in; i++) {
        if (n->in[i] == TTN_NONE) continue;
        int v = w->g->value[n->in[i]].root;
        st->in[i] = place_of_value(w, v, current_life(w, v), at);
    }
    for (int j = 0; j < n->sig.n_out; j++)
        st->out[j] = place_of_value(w, n->out + j, life, at);
    for (int j = 0; j < n->sig.n_aux; j++)
        st->aux[j] = place_of_aux(w, k, j, life, at);
}

static int was_made_again(const scheduler *w, int k)
{
    return current_life(w, w->g->node[k].out);
}

/* Producer of input i of node n if it was dropped and is not back yet, else TTN_NO_NODE. */
static int missing_producer(const scheduler *w, const ttn_node *n, int i)
{
    if (n->in[i] == TTN_NONE) return TTN_NO_NODE;
    int producer = w->g->value[n->in[i]].node;
    if (producer == TTN_NO_NODE || !w->choice->drop[producer] || was_made_again(w, producer)) return TTN_NO_NODE;
    return producer;
}

/* Make node k's outputs and aux again, and before it whatever it needs that was dropped: all of it in k's own block,
 * since what other blocks read is never dropped. */
static void make_again(scheduler *w, int k)
{
    char *again = w->s->mark;
    again[k] = 1;
    int lowest = k;
    for (int n = k; n >= lowest; n--) {
        if (!again[n]) continue;
        for (int i = 0; i < w->g->node[n].op->n_in; i++) {
            int producer = missing_producer(w, &w->g->node[n], i);
            if (producer == TTN_NO_NODE) continue;
            again[producer] = 1;
            if (producer < lowest) lowest = producer;
        }
    }
    for (int n = lowest; n <= k; n++) {
        if (!again[n]) continue;
        again[n] = 0;
        add_forward(w, n, 1);
    }
}

/* Everything that backward of node k reads is there, dropped or not. */
static void bring_back(scheduler *w, int k, ttn_reads reads)
{
    const ttn_node *n = &w->g->node[k];
    for (int i = 0; i < n->op->n_in; i++) {
        if (!(reads.in & TTN_BIT(i))) continue;
        int producer = missing_producer(w, n, i);
        if (producer != TTN_NO_NODE) make_again(w, producer);
    }
    int own = reads.out != 0;
    for (int j = 0; j < n->sig.n_aux; j++)
        if (reads.aux & TTN_BIT(j) && !(w->choice->lean[k] && n->op->spare & TTN_BIT(j))) own = 1;
    if (own && w->choice->drop[k] && !was_made_again(w, k)) make_again(w, k);
}

static void add_backward(scheduler *w, int k)
{
    const ttn_node *n = &w->g->node[k];
    schedule *s = w->s;
    const uint32_t wanted = ttn_node_wanted(w->g, n);
    const ttn_reads reads = ttn_op_reads(n->op, wanted);
    bring_back(w, k, reads);

    int at = s->n_step;
    step *st = new_step(w, TTN_STEP_BACKWARD, k);
    const int life = was_made_again(w, k);
    for (int i = 0; i < n->op->n_in; i++) {
        if (n->in[i] == TTN_NONE) continue;
        int v = w->g->value[n->in[i]].root;
        if (reads.in & TTN_BIT(i)) st->in[i] = place_of_value(w, v, current_life(w, v), at);
        if (!(wanted & TTN_BIT(i))) continue;
        st->din[i] = place_of_gradient(w, v, at);
        if (s->last_writer[v] == PLACE_NONE) st->first_writer |= TTN_BIT(i);
        s->last_writer[v] = at;
    }
    for (int j = 0; j < n->sig.n_out; j++) {
        if (reads.out & TTN_BIT(j)) st->out[j] = place_of_value(w, n->out + j, life, at);
        if (w->want->leads[n->out + j]) st->dout[j] = place_of_gradient(w, n->out + j, at);
    }
    for (int j = 0; j < n->sig.n_aux; j++)
        if (reads.aux & TTN_BIT(j)) st->aux[j] = place_of_aux(w, k, j, life, at);
}

/* The caller's weights are written before the first backward step, so they count as a loss's first writer. */
static void add_seeds(scheduler *w)
{
    schedule *s = w->s;
    for (int i = 0; i < w->want->options.n_loss; i++) {
        int v = w->want->options.loss[i];
        int producer = w->g->value[v].node;
        if (!w->want->trains[producer]) continue;
        s->last_writer[v] = s->n_step;
        place_of_gradient(w, v, s->n_step);
    }
}

static void set_numbers(int *array, int64_t n, int number)
{
    for (int64_t i = 0; i < n; i++)
        array[i] = number;
}

static void add_steps(scheduler *w)
{
    const ttn_graph *g = w->g;
    schedule *s = w->s;
    s->n_step = 0;
    s->n_buffer = 0;
    for (int life = 0; life < 2; life++) {
        set_numbers(s->value_buffer[life], g->n_value, PLACE_NONE);
        set_numbers(s->aux_buffer[life], (int64_t)g->n_node * TTN_MAX_AUX, PLACE_NONE);
    }
    set_numbers(s->gradient_buffer, g->n_value, PLACE_NONE);
    set_numbers(s->last_writer, g->n_value, PLACE_NONE);

    for (int k = 0; k < g->n_node; k++)
        if (w->want->needed[k]) add_forward(w, k, 0);
    s->first_backward = s->n_step;
    add_seeds(w);
    for (int k = g->n_node - 1; k >= 0; k--)
        if (w->want->trains[k]) add_backward(w, k);
}

/* Inputs are put before the first step; what the caller reads after a run stays to the end. */
static void stretch_lives(scheduler *w)
{
    schedule *s = w->s;
    for (int v = 0; v < w->g->n_value; v++) {
        if (!w->want->kept[v] || w->g->value[v].leaf == TTN_LEAF_PARAM || w->g->value[v].leaf == TTN_LEAF_STATE)
            continue;
        place_of_value(w, v, 0, s->n_step); /* past the last step, which so cannot write over it */
    }
    for (int b = 0; b < s->n_buffer; b++)
        if (s->buffer[b].kind == BUFFER_INPUT) s->buffer[b].first = 0;
}

/* After which step each parameter's gradient is final. */
static void find_final(scheduler *w)
{
    schedule *s = w->s;
    s->n_final = 0;
    for (int at = s->first_backward; at < s->n_step; at++) {
        step *st = &s->step[at];
        st->final_first = s->n_final;
        if (st->kind != TTN_STEP_BACKWARD) continue;
        for (int i = 0; i < TTN_MAX_IN; i++) {
            int v = PLACE_IS_LEAF(st->din[i]) ? LEAF_OF_PLACE(st->din[i]) : TTN_NONE;
            if (v == TTN_NONE || s->last_writer[v] != at) continue;
            s->final[s->n_final++] = v;
            s->last_writer[v] = PLACE_NONE; /* one parameter in two inputs is final once */
        }
        st->n_final = s->n_final - st->final_first;
    }
}

/* ---- 4. sharing ---- */

/* Buffer `later` begins in step `at` where `earlier` ends: they become one. */
static void share(schedule *s, int earlier, int later, int at)
{
    int root = ttn_root_buffer(s, earlier);
    buffer *e = &s->buffer[root];
    buffer *l = &s->buffer[later];
    if (l->shares != later || root == later) return;
    if (e->last != at || l->first != at || e->bytes != l->bytes) return;
    l->shares = root;
    e->last = l->last;
}

static int stands_once(const schedule *s, const int *place, int n, int i)
{
    int root = ttn_root_buffer(s, place[i]);
    for (int m = 0; m < n; m++)
        if (m != i && place[m] >= 0 && ttn_root_buffer(s, place[m]) == root) return 0;
    return 1;
}

/* out[j] over in[i], unless another input is the same value or a tap is to see the input. */
static void share_forward(scheduler *w, int at)
{
    schedule *s = w->s;
    const step *st = &s->step[at];
    const ttn_op *op = w->g->node[st->node].op;
    if (w->want->tapped[st->node]) return;
    for (int j = 0; j < op->n_out; j++) {
        int i = op->takes[j] - 1;
        if (i < 0 || st->in[i] < 0 || s->buffer[st->in[i]].kind != BUFFER_VALUE) continue;
        if (stands_once(s, st->in, TTN_MAX_IN, i)) share(s, st->in[i], st->out[j], at);
    }
}

/* din[i] over dout[j], for the last gradient that the step writes: those before it still read dout. */
static void share_backward(scheduler *w, int at)
{
    schedule *s = w->s;
    const step *st = &s->step[at];
    const ttn_op *op = w->g->node[st->node].op;
    int i = op->n_in - 1;
    while (i >= 0 && st->din[i] == PLACE_NONE)
        i--;
    if (i < 0) return;
    int j = op->passes[i] - 1;
    if (j < 0 || st->din[i] < 0 || st->dout[j] < 0 || !(st->first_writer & TTN_BIT(i))) return;
    if (stands_once(s, st->dout, TTN_MAX_OUT, j)) share(s, st->dout[j], st->din[i], at);
}

/* ---- bytes ---- */

static ttn_status count_bytes(schedule *s, ttn_error *err)
{
    const int n_time = s->n_step + 1; /* the steps, and after them */
    s->sum = 0;
    s->peak = 0;
    s->peak_step = 0;
    memset(s->alive, 0, ((size_t)n_time + 1) * sizeof *s->alive);
    for (int b = 0; b < s->n_buffer; b++) {
        const buffer *x = &s->buffer[b];
        if (!ttn_size_add(s->sum, x->bytes, &s->sum)) /* then neither the peak nor the block can wrap */
            return TTN_FAIL(err, TTN_EINVAL, "plan: all values together do not fit in 64 bits");
        if (x->shares != b) continue;
        s->alive[x->first] += x->bytes;
        s->alive[x->last + 1] -= x->bytes; /* wraps, and wraps back in the sum */
    }
    size_t alive = 0;
    for (int at = 0; at < n_time; at++) {
        alive += s->alive[at];
        s->alive[at] = alive;
        if (alive <= s->peak) continue;
        s->peak = alive;
        s->peak_step = at;
    }
    return TTN_OK;
}

ttn_status ttn_schedule_make(const request *want, const choice *c, schedule *s, ttn_error *err)
{
    scheduler w = {.want = want, .g = want->g, .choice = c, .s = s};
    add_steps(&w);
    stretch_lives(&w);
    find_final(&w);
    if (!(want->options.debug & TTN_PLAN_NO_SHARE))
        for (int at = 0; at < s->n_step; at++) {
            if (s->step[at].kind == TTN_STEP_BACKWARD)
                share_backward(&w, at);
            else
                share_forward(&w, at);
        }
    return count_bytes(s, err);
}

ttn_cost ttn_node_cost(const ttn_node *n, ttn_pass pass, int lean)
{
    uint32_t all = (uint32_t)((1u << n->sig.n_aux) - 1);
    return n->op->cost(&n->sig, pass, lean ? all & ~n->op->spare : all);
}
