/* attention by random features (FAVOR+), per sequence and head, in time and memory that grow with n:
 *
 *     out_i = Q'_i S / Dn_i,   Dn_i = Q'_i.z,   S = sum_t K'_t^T v_t (M, D),   z = sum_t K'_t (M)
 *
 * q, k, v, out (N, H D)   W (H, m, D), without a gradient; left out: features of q and k themselves
 * x = s q, y = s k, s = D^(-1/4), u = x W^T or y W^T. K' and Q' are phi(y) and phi(x) up to factors that leave the quotient
 * (a number for every row of queries, a number for every feature) and keep it in range: the families of favor_families.c.
 * Rows of no sequence: zeros. A run without sequences has no other rows.
 *
 * out_i = N_i / Dn_i, N_i = Q'_i S; plain: the estimate of sum_t exp(x_i.y_t) v_t; rms: o / sqrt(mean o^2 + 1e-6) of o = N / Dn
 * or, where a feature can be negative and Dn be 0, o = N / (M n).
 *
 * aux 0: what makes Q^ = factor Q', the weights of out, again (N, H)   1: S   2: z   3: the reference c of keys
 * aux 4: the root mean square (N, H), with rms
 *
 * Backward: g = dout (rms: the gradient of o), delta_i = g_i.out_i (rms: g_i.o_i)
 *
 *     R = sum_i Q^_i^T g_i (M, D)     rho = - sum_i delta_i Q^_i (M); 0 where out is not divided by Dn
 *     dQ^_i = g_i S^T - delta_i z     dK'_t = v_t R^T + rho     dv_t = K'_t R
 *
 * and through the map to du, dq = s (du W + own x), own being what is left of the map's h(x). References c and mu are maxima
 * that leave the quotient, so they have no gradient.
 *
 * Features are made by tiles and made again in backward: of one layer of 2^20 rows, 8 heads and 256 features they would be 8 GiB in
 * f32. A sequence is cut into tiles of equal height, filled up with zero rows, that depend on its length alone, and 28 tiles
 * are a chunk; all products have the shape of a whole tile. Tasks are chunks: each makes a state (S, z, c) of its own, and
 * the states of a sequence are joined in a binary tree over its chunks (to the larger c, then added). So the bits of a
 * sequence depend neither on threads nor on its place in the batch nor on what else is in it.
 *
 * Measured in f32 on Zen 3, one thread (H 8, D 64, m 256, forward + backward; make bench B=favor): 0.73 of the rate of its
 * own products issued bare at 8,192 rows (0.75 at 353), a row of 65,536 costs 1.02 of one of 4,096, and 8,192 rows take 1/17
 * of the time of our exact attention. What is not products is copies in and out of (N, H D), 8 %, and exp with its passes, 8 %.
 *
 * A causal form visits the chunks in order with the same maps on tiles; it is not there yet. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include "autograd/attention.h"
#include "autograd/ops/favor_draw.h"
#include "autograd/ops/favor_tasks.h"
#include "core/hash.h"
#include "core/memory.h"
#include "core/rng.h"

enum { Q = TTN_FAVOR_Q, K = TTN_FAVOR_K, V = TTN_FAVOR_V, W = TTN_FAVOR_W };
enum {
    ROW = TTN_FAVOR_AUX_ROW,
    S_ = TTN_FAVOR_AUX_S,
    Z = TTN_FAVOR_AUX_Z,
    C_ = TTN_FAVOR_AUX_C,
    RMS = TTN_FAVOR_AUX_RMS
};

typedef ttn_attn_favor_options attributes;

/* ---- shapes ---- */

static ttn_favor_job job_of(const ttn_sig *s)
{
    const attributes *a = s->attr;
    ttn_favor_job j = {
        .a = a,
        .N = s->in[Q].dim[0],
        .H = a->heads,
        .C = s->in[Q].dim[1],
        .D = s->in[Q].dim[1] / a->heads,
        .has_W = s->in[W].ndim >= 0,
        .ratio = 1,
        .epsilon = ttn_favor_epsilon(a->kernel),
    };
    j.m = j.has_W ? s->in[W].dim[1] : j.D;
    j.M = j.m * ttn_favor_sides(a->kernel);
    j.scale = (real)(1 / sqrt(sqrt((double)j.D)));
    j.kappa = (real)ttn_favor_kappa(a->kernel, j.m);
    j.divides =
        a->renormalize == TTN_FAVOR_DIVIDED || (a->renormalize == TTN_FAVOR_RMS && !ttn_favor_has_signs(a->kernel));
    switch (ttn_favor_family_of(a->kernel)) {
    case TTN_FAVOR_EXPONENTIAL:
        j.map = &ttn_favor_exponential;
        j.n_c = j.M;
        break;
    case TTN_FAVOR_TRIGONOMETRIC:
        j.map = &ttn_favor_trigonometric;
        j.n_c = 1;
        break;
    case TTN_FAVOR_GENERALIZED:
        j.map = &ttn_favor_generalized;
        break;
    }
    if (a->compat != TTN_FAVOR_OURS) ttn_favor_compat_job(&j);
    return j;
}

ttn_favor_job ttn_favor_job_of(const ttn_call *c)
{
    ttn_favor_job j = job_of(c->sig);
    j.c = c;
    return j;
}

/* Which maps a published implementation has. */
static ttn_status check_published(const attributes *a, ttn_error *err)
{
    const int generalized = ttn_favor_family_of(a->kernel) == TTN_FAVOR_GENERALIZED;
    int is_there = a->kernel == TTN_FAVOR_POSITIVE || generalized;
    const char *there = "google has the kernels positive, trig and those from relu on";
    if (a->compat == TTN_FAVOR_GOOGLE && a->kernel == TTN_FAVOR_TRIG) is_there = 1;
    if (a->compat == TTN_FAVOR_LUCIDRAINS) there = "lucidrains has the kernels positive and those from relu on";
    if (a->compat == TTN_FAVOR_GOOGLE_TF) {
        there = "google-tf has the kernels positive and relu";
        is_there = a->kernel == TTN_FAVOR_POSITIVE || a->kernel == TTN_FAVOR_RELU;
    }
    if (is_there) return TTN_OK;
    return TTN_FAIL(err, TTN_EINVAL,
                    "attn_favor: favor.compat: %s; take one of these as favor.kernel, or favor.compat: none", there);
}

static ttn_status check_kernel(const ttn_sig *s, ttn_error *err)
{
    const attributes *a = s->attr;
    const int left_out = s->in[W].ndim < 0;
    if (a->causal)
        return TTN_FAIL(
            err, TTN_EINVAL,
            "attn_favor: its causal form is not there yet: take attention.kind: exact, or predict masked residues "
            "(train.objective: mlm)");
    if (a->kernel < TTN_FAVOR_POSITIVE || a->kernel > TTN_FAVOR_IDENTITY)
        return TTN_FAIL(err, TTN_EINVAL, "attn_favor: there is no map of number %d", (int)a->kernel);
    if (left_out && ttn_favor_estimates(a->kernel))
        return TTN_FAIL(err, TTN_EINVAL,
                        "attn_favor: the maps positive, hyperbolic and trig need a projection; without one there are "
                        "exp and the generalized ones");
    if (a->renormalize == TTN_FAVOR_PLAIN && !ttn_favor_estimates(a->kernel))
        return TTN_FAIL(err, TTN_EINVAL,
                        "attn_favor: without a division by the sum of weights only maps that estimate exp(q.k) have a "
                        "scale: positive, hyperbolic and trig");
    if (a->renormalize == TTN_FAVOR_RMS && a->kernel == TTN_FAVOR_TRIG)
        return TTN_FAIL(err, TTN_EINVAL, "attn_favor: trig cannot be renormalized by root mean squares");
    if (a->compat == TTN_FAVOR_OURS) return TTN_OK;
    if (a->renormalize != TTN_FAVOR_DIVIDED)
        return TTN_FAIL(err, TTN_EINVAL,
                        "attn_favor: published implementations (favor.compat) divide by the sum of weights: take "
                        "favor.renormalize: yes");
    return check_published(a, err);
}

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    static const char *const name[] = {"q", "k", "v"};
    ttn_status status = ttn_want_rows(s, V + 1, "attn_favor", name, "(N, H D)", err);
    if (status != TTN_OK) return status;
    const attributes *a = s->attr;
    const int64_t C = s->in[Q].dim[1];
    status = ttn_want_heads(s, "attn_favor", a->heads, err);
    if (status != TTN_OK) return status;
    if (s->in[W].ndim >= 0) {
        char text[TTN_DESC_TEXT];
        status = ttn_want_shape(s, W, "attn_favor", "projection", "(H, m, D)", err);
        if (status != TTN_OK) return status;
        const ttn_desc *d = &s->in[W];
        if (d->axis != TTN_FIXED || d->dim[0] != a->heads || d->dim[1] < 1 || d->dim[2] != C / a->heads)
            return TTN_FAIL(err, TTN_EINVAL,
                            "attn_favor: projection is %s, expected (%d, m, %" PRId64 ") with at least one feature",
                            ttn_desc_print(d, text), a->heads, C / a->heads);
    }
    status = check_kernel(s, err);
    if (status != TTN_OK) return status;
    const ttn_favor_job j = job_of(s);
    const int64_t n_rms = a->renormalize == TTN_FAVOR_RMS ? j.H : 0;
    s->n_out = 1;
    s->out[0] = s->in[Q];
    s->n_aux = TTN_FAVOR_N_AUX;
    s->aux[ROW] = ttn_desc_of(TTN_REAL, TTN_ROWS, 2, j.N, j.H, 0);
    s->aux[S_] = ttn_desc_of(TTN_REAL, TTN_SEQS, 3, s->cap.seqs, j.H, j.M * j.D);
    s->aux[Z] = ttn_desc_of(TTN_REAL, TTN_SEQS, 3, s->cap.seqs, j.H, j.M);
    s->aux[C_] = ttn_desc_of(TTN_REAL, TTN_SEQS, 3, s->cap.seqs, j.H, j.n_c);
    s->aux[RMS] = ttn_desc_of(TTN_REAL, TTN_ROWS, 2, j.N, n_rms, 0);
    s->n_stat = TTN_FAVOR_N_STAT;
    for (int pass = TTN_FORWARD; pass <= TTN_BACKWARD; pass++) {
        ttn_favor_shared all;
        ttn_favor_scratch own;
        s->work[pass] = ttn_favor_lay_out(&j, s, (ttn_pass)pass, NULL, &all);
        s->work_thread[pass] = ttn_favor_lay_out_thread(&j, (ttn_pass)pass, NULL, &own);
    }
    return TTN_OK;
}

static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)aux_kept;
    const ttn_favor_job j = job_of(s);
    const double rows = (double)j.N * (double)j.H;
    const double project = j.has_W ? 2 * rows * (double)j.m * (double)j.D : 0;
    const double product = 2 * rows * (double)j.M * (double)j.D;
    const double features = 4 * rows * (double)j.M; /* of queries or keys: reference, map, sum */
    const double states = (double)s->cap.seqs * (double)j.H * (double)(j.M * (j.D + 2));
    const double values = (pass == TTN_FORWARD ? 4 : 8) * rows * (double)j.D + rows + states;
    ttn_cost cost = {.bytes = values * (double)sizeof(real)};
    if (pass == TTN_FORWARD) {
        cost.useful = 2 * (project + product + features); /* u; S, N */
        cost.done = cost.useful;
    } else {
        cost.useful = 2 * project + 4 * product + 2 * features; /* dx, dy; g S^T, R, v R^T, dv */
        cost.done = cost.useful + 2 * (project + features);
    }
    return cost;
}

/* ---- as an attention kind ---- */

static const char *const kernel_names[] = {
    [TTN_FAVOR_POSITIVE] = "positive",
    [TTN_FAVOR_HYPERBOLIC] = "hyperbolic",
    [TTN_FAVOR_TRIG] = "trig",
    [TTN_FAVOR_EXP] = "exp",
    [TTN_FAVOR_RELU] = "relu",
    [TTN_FAVOR_ELU1] = "elu1",
    [TTN_FAVOR_GELU] = "gelu",
    [TTN_FAVOR_SQUARE] = "square",
    [TTN_FAVOR_SIGMOID] = "sigmoid",
    [TTN_FAVOR_TANH] = "tanh",
    [TTN_FAVOR_SOFTPLUS] = "softplus",
    [TTN_FAVOR_IDENTITY] = "identity",
    NULL,
};
static const char *const renormalize_names[] = {
    [TTN_FAVOR_DIVIDED] = "yes", [TTN_FAVOR_PLAIN] = "no", [TTN_FAVOR_RMS] = "rms", NULL};
static const char *const compat_names[] = {[TTN_FAVOR_OURS] = "none",
                                           [TTN_FAVOR_GOOGLE] = "google",
                                           [TTN_FAVOR_GOOGLE_TF] = "google-tf",
                                           [TTN_FAVOR_LUCIDRAINS] = "lucidrains",
                                           NULL};
static const char *const length_names[] = {[TTN_FAVOR_CHI] = "chi", [TTN_FAVOR_SQRTD] = "sqrtd", NULL};

/* Of the papers that came after, what people may ask for. */
static const ttn_option_absent absent[] = {
    {"oprf", "hyperbolic estimates the same softmax, and with a lower variance than positive"},
    {"learned", "positive has random projections; with favor.redraw: 0 they stay as they are"},
    {"favor.window",
     "attention is estimated, however near residues are; attention.layers: [exact, favor] has layers of both kinds"},
    {0},
};

enum {
    OPTION_KERNEL,
    OPTION_FEATURES,
    OPTION_PROJECTION,
    OPTION_ORTHO,
    OPTION_LENGTHS,
    OPTION_REDRAW,
    OPTION_RENORMALIZE,
    OPTION_COMPAT,
    N_OPTION
};

static const ttn_option_condition in_use[] = {{"attention.kind", .is = "favor"}, {0}};
static const ttn_option_condition projects[] = {
    {"attention.kind", .is = "favor"}, {"favor.projection", .is = "yes"}, {0}};

static const ttn_option options[] = {
    [OPTION_KERNEL] = {.name = "favor.kernel",
                       .type = TTN_OPTION_CHOICE,
                       .fallback = "positive",
                       .choices = kernel_names,
                       .help =
                           "feature map: positive, hyperbolic and trig estimate the softmax, the others are kernels of "
                           "their own; sums of weights of trig, gelu, tanh and identity can be 0 (then renormalize: "
                           "rms, but for trig)",
                       .since = "0.1",
                       .when = in_use,
                       .absent = absent},
    [OPTION_FEATURES] = {.name = "favor.features",
                         .type = TTN_OPTION_INTEGER,
                         .fallback = "0",
                         .least = 0,
                         .most = 65536,
                         .help =
                             "random projections of a head; 0 stands for max(D, D ln D) in steps of 16, D being the "
                             "head width",
                         .since = "0.1",
                         .when = projects},
    [OPTION_PROJECTION] = {.name = "favor.projection",
                           .type = TTN_OPTION_BOOL,
                           .fallback = "yes",
                           .help = "no: features of queries and keys themselves (kernel exp and those after it)",
                           .since = "0.1",
                           .when = in_use},
    [OPTION_ORTHO] = {.name = "favor.ortho",
                      .type = TTN_OPTION_BOOL,
                      .fallback = "yes",
                      .help = "projections are orthogonal by blocks, which lowers the error",
                      .since = "0.1",
                      .when = projects},
    [OPTION_LENGTHS] = {.name = "favor.lengths",
                        .type = TTN_OPTION_CHOICE,
                        .fallback = "chi",
                        .choices = length_names,
                        .help = "lengths of projections: chi has no bias, sqrtd a bias and a lower variance",
                        .since = "0.1",
                        .when = projects},
    [OPTION_REDRAW] = {.name = "favor.redraw",
                       .type = TTN_OPTION_INTEGER,
                       .fallback = "1000",
                       .least = 0,
                       .most = 1e15,
                       .unit = "steps",
                       .help = "optimizer steps after which projections are drawn again; 0: never",
                       .since = "0.1",
                       .when = projects},
    [OPTION_RENORMALIZE] = {.name = "favor.renormalize",
                            .type = TTN_OPTION_CHOICE,
                            .fallback = "yes",
                            .choices = renormalize_names,
                            .help =
                                "divide by the sum of weights (yes), by nothing (no), or by the result's own root mean "
                                "square (rms)",
                            .since = "0.1",
                            .when = in_use},
    [OPTION_COMPAT] = {.name = "favor.compat",
                       .type = TTN_OPTION_CHOICE,
                       .fallback = "none",
                       .choices = compat_names,
                       .help = "compute as a published implementation does, with its eps, for weights trained with it",
                       .since = "0.1",
                       .when = in_use},
};

/* *ret: the number of the choice. */
static ttn_status get_choice(const ttn_option_reader *o, int option, int layer, int *ret, ttn_error *err)
{
    const char *text = NULL;
    ttn_status status = o->get_text(o->self, options[option].name, layer, &text, err);
    if (status != TTN_OK) return status;
    for (int i = 0; options[option].choices[i]; i++)
        if (strcmp(options[option].choices[i], text) == 0) {
            *ret = i;
            return TTN_OK;
        }
    return TTN_FAIL(err, TTN_EINTERNAL, "%s: '%s' is none of its choices", options[option].name, text);
}

static ttn_status attr_of_options(const ttn_option_reader *o, int layer, void *attr, ttn_error *err)
{
    attributes *a = attr;
    *a = (attributes){0};
    int kernel = 0;
    int renormalize = 0;
    int compat = 0;
    int lengths = 0;
    int projection = 0;
    int ortho = 0;
    ttn_status status = get_choice(o, OPTION_KERNEL, layer, &kernel, err);
    if (status == TTN_OK) status = get_choice(o, OPTION_RENORMALIZE, layer, &renormalize, err);
    if (status == TTN_OK) status = get_choice(o, OPTION_COMPAT, layer, &compat, err);
    if (status == TTN_OK) status = get_choice(o, OPTION_LENGTHS, layer, &lengths, err);
    if (status == TTN_OK) status = o->get_bool(o->self, options[OPTION_PROJECTION].name, layer, &projection, err);
    if (status == TTN_OK) status = o->get_bool(o->self, options[OPTION_ORTHO].name, layer, &ortho, err);
    if (status == TTN_OK) status = o->get_integer(o->self, options[OPTION_FEATURES].name, layer, &a->features, err);
    if (status == TTN_OK) status = o->get_integer(o->self, options[OPTION_REDRAW].name, layer, &a->redraw, err);
    a->kernel = (ttn_favor_kernel)kernel;
    a->renormalize = (ttn_favor_renormalize)renormalize;
    a->compat = (ttn_favor_compatible)compat;
    a->lengths = (ttn_favor_lengths)lengths;
    a->no_projection = !projection;
    a->independent = !ortho;
    return status;
}

/* The leaves of a node, in the scope of its name. */
static const char projection_name[] = "projection"; /* W */
static const char draw_name[] = "draw"; /* how often it was drawn, 0: not yet; below 0: it is not ours to draw */

static int build(ttn_graph *g, const ttn_attn_in *in, const void *attr)
{
    attributes a = *(const attributes *)attr;
    a.heads = in->heads;
    a.causal = in->causal;
    const char *name = in->name ? in->name : "attn_favor";
    int projection = TTN_NONE;
    const ttn_desc q = ttn_desc_of_value(g, in->q);
    if (!a.no_projection && q.ndim == 2 && a.heads > 0) { /* else the op says what is wrong */
        const int64_t D = q.dim[1] / a.heads;
        const int64_t m = a.features > 0 ? a.features : ttn_favor_default_features(D);
        ttn_scope_begin(g, "%s", name);
        projection = ttn_state(g, projection_name, ttn_desc_of(TTN_REAL, TTN_FIXED, 3, a.heads, m, D));
        ttn_state(g, draw_name, ttn_typed(ttn_vector(1), TTN_I64));
        ttn_scope_end(g);
    }
    return ttn_attn_favor(g, name, in->q, in->k, in->v, projection, &a);
}

/* Draw number 1 is the first, and there is another one every `redraw` steps: a function of the step, so that a run that was
 * resumed has the draw of one that was not. */
static int64_t draw_at(const attributes *a, int64_t step)
{
    return a->redraw > 0 ? 1 + step / a->redraw : 1;
}

/* All heads of W (H, m, D), to memory of the build's type. */
static ttn_status draw(uint64_t key, const attributes *a, const ttn_desc *d, real *weight, ttn_error *err)
{
    const int64_t n = d->dim[1] * d->dim[2];
    double *one = ttn_alloc_or_say(n, sizeof *one, "a random projection", err);
    if (!one) return TTN_ENOMEM;
    ttn_status status = TTN_OK;
    for (int64_t head = 0; head < d->dim[0] && status == TTN_OK; head++) {
        status = ttn_favor_draw(key, head, d->dim[1], d->dim[2], a, one, err);
        for (int64_t i = 0; i < n && status == TTN_OK; i++)
            weight[head * n + i] = (real)one[i];
    }
    ttn_free(one);
    return status;
}

static ttn_status renew(const ttn_state_set *s, const ttn_when *w, const double *stat, ttn_error *err)
{
    (void)stat;
    const attributes *a = s->attr;
    if (a->no_projection) return TTN_OK;
    int64_t drawn = 0;
    ttn_status status = ttn_state_read(s, draw_name, &drawn, err);
    const int64_t wanted = draw_at(a, w->step);
    if (status != TTN_OK || drawn < 0 || drawn == wanted) return status;
    const ttn_weight *entry = NULL;
    status = ttn_state_find(s, projection_name, &entry, err);
    if (status != TTN_OK) return status;
    real *weight = ttn_alloc_or_say((int64_t)entry->bytes, 1, "a random projection", err);
    if (!weight) return TTN_ENOMEM;
    const uint64_t key = ttn_rng_key(w->seed, ttn_hash_text(entry->name), (uint64_t)wanted);
    status = draw(key, a, &entry->desc, weight, err);
    if (status == TTN_OK) status = ttn_state_write(s, projection_name, weight, err);
    if (status == TTN_OK) status = ttn_state_write(s, draw_name, &wanted, err);
    ttn_free(weight);
    return status;
}

/* Queries and keys of mean square 1 would have |x|^2 = sqrt(D), where no map estimates well: here |x|^2 begins as 1. */
static double qk_gain(int64_t D)
{
    return 1 / sqrt(sqrt((double)D));
}

/* Sums of weights that can be 0 by their sign alone. (Those of trig and gelu can, too, but seldom are: rows_given_up and
 * denominator_not_positive count them.) */
static const char *note(const void *attr)
{
    const attributes *a = attr;
    if (a->renormalize != TTN_FAVOR_DIVIDED) return NULL;
    if (a->compat != TTN_FAVOR_OURS) return NULL; /* it is to be as published, and there is no other choice */
    if (a->kernel != TTN_FAVOR_TANH && a->kernel != TTN_FAVOR_IDENTITY) return NULL;
    return "favor.kernel: features of tanh and of identity have either sign, and so have the sums of weights that "
           "outputs are divided by, which come near 0: with favor.renormalize: rms they are not divided by them";
}

static const ttn_attention attention = {
    .options = options,
    .n_options = N_OPTION,
    .attr = attr_of_options,
    .build = build,
    .renew = renew,
    .note = note,
    .map_rows = ttn_favor_map_rows,
    .map_pool = ttn_favor_map_pool,
    .qk_gain = qk_gain,
};

/* ---- cases ---- */

#define FOUR(rows, ...)               \
    {                                 \
        rows, rows, rows, __VA_ARGS__ \
    }
#define PROJECTION(heads, m, D)                \
    {                                          \
        .ndim = 3, .dim = {(heads), (m), (D) } \
    }
#define CASES_OF(map, ...)                                                                                      \
    {                                                                                                           \
        .about = "two sequences, rows of none between them: " map, .used = {.rows = 24, .seqs = 2},             \
        .span = {{0, 5}, {12, 7}}, .in = FOUR(TTN_ROWS_OF(6), PROJECTION(2, 7, 3)), .attr = &(const attributes) \
        {                                                                                                       \
            .heads = 2, __VA_ARGS__                                                                             \
        }                                                                                                       \
    }
#define REFUSED(what, words, ...)                                                            \
    {                                                                                        \
        .about = what, .used = {.rows = 6}, .in = FOUR(TTN_ROWS_OF(6), PROJECTION(2, 5, 3)), \
        .attr = &(const attributes){.heads = 2, __VA_ARGS__}, .refused = words               \
    }

static const attributes two_positive = {.heads = 2};
static const attributes one_positive = {.heads = 1};

static const ttn_case cases[] = {
    CASES_OF("positive", .kernel = TTN_FAVOR_POSITIVE),
    CASES_OF("hyperbolic", .kernel = TTN_FAVOR_HYPERBOLIC),
    CASES_OF("trig", .kernel = TTN_FAVOR_TRIG),
    CASES_OF("exp", .kernel = TTN_FAVOR_EXP),
    CASES_OF("relu", .kernel = TTN_FAVOR_RELU),
    CASES_OF("elu1", .kernel = TTN_FAVOR_ELU1),
    CASES_OF("gelu", .kernel = TTN_FAVOR_GELU, .renormalize = TTN_FAVOR_RMS),
    CASES_OF("square", .kernel = TTN_FAVOR_SQUARE),
    CASES_OF("sigmoid", .kernel = TTN_FAVOR_SIGMOID),
    CASES_OF("tanh", .kernel = TTN_FAVOR_TANH, .renormalize = TTN_FAVOR_RMS),
    CASES_OF("softplus", .kernel = TTN_FAVOR_SOFTPLUS),
    CASES_OF("identity", .kernel = TTN_FAVOR_IDENTITY, .renormalize = TTN_FAVOR_RMS),
    CASES_OF("positive, undivided", .kernel = TTN_FAVOR_POSITIVE, .renormalize = TTN_FAVOR_PLAIN),
    CASES_OF("hyperbolic, undivided", .kernel = TTN_FAVOR_HYPERBOLIC, .renormalize = TTN_FAVOR_PLAIN),
    CASES_OF("trig, undivided", .kernel = TTN_FAVOR_TRIG, .renormalize = TTN_FAVOR_PLAIN),
    CASES_OF("positive, by root mean squares", .kernel = TTN_FAVOR_POSITIVE, .renormalize = TTN_FAVOR_RMS),
    CASES_OF("relu, by root mean squares", .kernel = TTN_FAVOR_RELU, .renormalize = TTN_FAVOR_RMS),
    CASES_OF("google's positive", .kernel = TTN_FAVOR_POSITIVE, .compat = TTN_FAVOR_GOOGLE),
    CASES_OF("google's relu", .kernel = TTN_FAVOR_RELU, .compat = TTN_FAVOR_GOOGLE),
    CASES_OF("google's trig", .kernel = TTN_FAVOR_TRIG, .compat = TTN_FAVOR_GOOGLE),
    CASES_OF("google-tf's positive", .kernel = TTN_FAVOR_POSITIVE, .compat = TTN_FAVOR_GOOGLE_TF),
    CASES_OF("google-tf's relu", .kernel = TTN_FAVOR_RELU, .compat = TTN_FAVOR_GOOGLE_TF),
    {.about = "two sequences, rows of none between them: lucidrains' positive",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = FOUR(TTN_ROWS_OF(6), PROJECTION(2, 7, 3)),
     .attr = &(const attributes){.heads = 2, .kernel = TTN_FAVOR_POSITIVE, .compat = TTN_FAVOR_LUCIDRAINS},
     .detached = "the maxima, as published: its gradients are not the derivative of out"},
    CASES_OF("lucidrains' relu", .kernel = TTN_FAVOR_RELU, .compat = TTN_FAVOR_LUCIDRAINS),
    {.about = "softplus without a projection",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = FOUR(TTN_ROWS_OF(6), TTN_LEFT_OUT),
     .attr = &(const attributes){.heads = 2, .kernel = TTN_FAVOR_SOFTPLUS}},
    {.about = "exp without a projection",
     .used = {.rows = 24, .seqs = 2},
     .span = {{0, 5}, {12, 7}},
     .in = FOUR(TTN_ROWS_OF(6), TTN_LEFT_OUT),
     .attr = &(const attributes){.heads = 2, .kernel = TTN_FAVOR_EXP}},
    {.about = "three heads, sequences of 1, 24, 25 and 3 rows that touch, features that fill no vector",
     .used = {.rows = 60, .seqs = 4},
     .span = {{2, 1}, {3, 24}, {27, 25}, {55, 3}},
     .in = FOUR(TTN_ROWS_OF(15), PROJECTION(3, 19, 5)),
     .attr = &(const attributes){.heads = 3, .kernel = TTN_FAVOR_HYPERBOLIC}},
    {.about = "one row, width 1",
     .used = {.rows = 1, .seqs = 1},
     .span = {{0, 1}},
     .in = FOUR(TTN_ROWS_OF(1), PROJECTION(1, 1, 1)),
     .attr = &one_positive},
    {.about = "three tiles and a sequence of one",
     .used = {.rows = 320, .seqs = 2},
     .span = {{0, 1}, {12, 2 * TTN_FAVOR_TILE + 3}},
     .in = FOUR(TTN_ROWS_OF(4), PROJECTION(2, 5, 2)),
     .attr = &two_positive},
    {.about = "rows that differ by orders of magnitude in their weights",
     .used = {.rows = 40, .seqs = 1},
     .span = {{0, 40}},
     .in = FOUR(TTN_ROWS_OF(8), PROJECTION(2, 16, 4)),
     .range = {{-2, 2}, {-2, 2}, {0, 0}, {-2, 2}},
     .attr = &two_positive},
    {.about = "no sequences: zeros",
     .used = {.rows = 7},
     .in = FOUR(TTN_ROWS_OF(3), PROJECTION(1, 4, 3)),
     .attr = &one_positive},
    {.about = "no rows",
     .cap = {.rows = 480, .seqs = 2},
     .in = FOUR(TTN_ROWS_OF(3), PROJECTION(1, 4, 3)),
     .attr = &one_positive},
    {.about = "v of another width",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(4), TTN_ROWS_OF(4), TTN_ROWS_OF(8), PROJECTION(2, 5, 2)},
     .attr = &two_positive,
     .refused = "v is " TTN_REAL_NAME " (N 480, 8), but q is " TTN_REAL_NAME " (N 480, 4); expected one shape"},
    {.about = "picks",
     .used = {.picks = 6},
     .in = FOUR(TTN_PICKS_OF(4), PROJECTION(2, 5, 2)),
     .attr = &two_positive,
     .refused = "q is " TTN_REAL_NAME " (R 480, 4), expected rows of a batch, (N, H D)"},
    {.about = "four heads in a width of 6",
     .used = {.rows = 6},
     .in = FOUR(TTN_ROWS_OF(6), PROJECTION(4, 5, 2)),
     .attr = &(const attributes){.heads = 4},
     .refused = "a width of 6 cannot be divided among 4 heads"},
    {.about = "one projection for all heads",
     .used = {.rows = 6},
     .in = FOUR(TTN_ROWS_OF(6), TTN_MATRIX(5, 3)),
     .attr = &two_positive,
     .refused = "which has 2 dimensions; expected 3, (H, m, D)"},
    {.about = "a projection of another head width",
     .used = {.rows = 6},
     .in = FOUR(TTN_ROWS_OF(6), PROJECTION(2, 5, 4)),
     .attr = &two_positive,
     .refused = "projection is " TTN_REAL_NAME " (2, 5, 4), expected (2, m, 3) with at least one feature"},
    {.about = "positive without a projection",
     .used = {.rows = 6},
     .in = FOUR(TTN_ROWS_OF(6), TTN_LEFT_OUT),
     .attr = &two_positive,
     .refused = "the maps positive, hyperbolic and trig need a projection"},
    REFUSED("causal", "its causal form is not there yet", .causal = 1),
    REFUSED("a map that is none", "there is no map of number 99", .kernel = (ttn_favor_kernel)99),
    REFUSED("relu, undivided", "only maps that estimate exp(q.k) have a scale", .kernel = TTN_FAVOR_RELU,
            .renormalize = TTN_FAVOR_PLAIN),
    REFUSED("trig, by root mean squares", "trig cannot be renormalized by root mean squares", .kernel = TTN_FAVOR_TRIG,
            .renormalize = TTN_FAVOR_RMS),
    REFUSED("google's, undivided", "divide by the sum of weights: take favor.renormalize: yes",
            .renormalize = TTN_FAVOR_PLAIN, .compat = TTN_FAVOR_GOOGLE),
    REFUSED("google's hyperbolic", "google has the kernels positive, trig and those from relu on; take one of these",
            .kernel = TTN_FAVOR_HYPERBOLIC, .compat = TTN_FAVOR_GOOGLE),
    REFUSED("google-tf's sigmoid", "google-tf has the kernels positive and relu; take one of these",
            .kernel = TTN_FAVOR_SIGMOID, .compat = TTN_FAVOR_GOOGLE_TF),
    REFUSED("google-tf's trig", "google-tf has the kernels positive and relu; take one of these",
            .kernel = TTN_FAVOR_TRIG, .compat = TTN_FAVOR_GOOGLE_TF),
    REFUSED("lucidrains' trig", "lucidrains has the kernels positive and those from relu on; take one of these",
            .kernel = TTN_FAVOR_TRIG, .compat = TTN_FAVOR_LUCIDRAINS),
};

const ttn_op ttn_op_attn_favor = {
    .name = "attn_favor",
    .n_in = 4,
    .n_out = 1,
    .optional = TTN_BIT(W),
    .differentiable = TTN_BIT(Q) | TTN_BIT(K) | TTN_BIT(V),
    /* dv looks at out with rms only: delta is no part of it */
    .reads = {[Q] = {.in = TTN_BIT(Q) | TTN_BIT(W),
                     .out = TTN_BIT(0),
                     .aux = TTN_BIT(ROW) | TTN_BIT(S_) | TTN_BIT(Z) | TTN_BIT(C_) | TTN_BIT(RMS)},
              [K] = {.in = TTN_BIT(Q) | TTN_BIT(K) | TTN_BIT(V) | TTN_BIT(W),
                     .out = TTN_BIT(0),
                     .aux = TTN_BIT(ROW) | TTN_BIT(C_) | TTN_BIT(RMS)},
              [V] = {.in = TTN_BIT(Q) | TTN_BIT(K) | TTN_BIT(W),
                     .out = TTN_BIT(0),
                     .aux = TTN_BIT(ROW) | TTN_BIT(C_) | TTN_BIT(RMS)}},
    .takes = {TTN_SHARES(Q)},
    .passes = {TTN_SHARES(0), TTN_SHARES(0), TTN_SHARES(0)},
    .attr_bytes = sizeof(attributes),
    .stats = ttn_favor_stats,
    .n_stats = TTN_FAVOR_N_STAT,
    .shape = shape,
    .cost = cost,
    .cpu = {.forward = ttn_favor_forward, .backward = ttn_favor_backward},
    .attention = &attention,
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
};

int ttn_attn_favor(ttn_graph *g, const char *name, int q, int k, int v, int projection, const ttn_attn_favor_options *o)
{
    return ttn_apply(g, "attn_favor", name, o, (const int[]){q, k, v, projection});
}
