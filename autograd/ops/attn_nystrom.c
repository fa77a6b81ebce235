/* Nystrom attention (Xiong et al. 2021), per sequence and head, through M landmarks x_j, y_j: the means of q and of k over M
 * segments of the sequence (segment j has rows j n / M, rounded down, up to (j + 1) n / M). With s = D^(-1/2):
 *
 *     F = softmax(s q y^T) (n, M)     A = softmax(s x y^T) (M, M)     B = softmax(s x k^T) (M, n)     Z ~ A^+ (M, M)
 *     out = F (Z (B v)) + add         C = B v,   Y = Z C   (M, D)
 *
 * q, k, v, out (N, H D), add the same or left out. n <= M: out = softmax(s q k^T) v + add, which is exact attention
 * (autograd/attn_tiles.h) with its bits. Rows of no sequence: zeros. How Z is made: autograd/nystrom_inverse.h.
 *
 * aux 0: L (N, H), log-sum-exp of each row's logits of F (n <= M: of the softmax)
 * aux 1: log-sum-exp of the rows of B (slots, H, M)     aux 2: C (slots, H, M, D)
 * A slot is a sequence of more than M rows; there are at most min(S, N / (M + 1)) of them. A and every iterate of Z are made
 * again in backward: kept, they would be 0.58 GB a layer at M 256, 278 sequences and 8 heads.
 *
 * Backward, g = dout:
 *     dY = F^T g     dZ = dY C^T     dC = Z^T dY     dA from dZ
 *     dF = s F * (g Y^T - rowsum(F * g Y^T))     dB = s B * (dC v^T - dC . C)     dL_A = s A * (dA - rowsum(A * dA))
 *     dq = dF y         dk = dB^T x        dv = B^T dC        dadd = g        (* is elementwise)
 *     dx = dL_A y + dB k     dy = dL_A^T x + dF^T q:   each goes to the rows of its segment, divided by their number
 *
 * Neither F nor B is ever whole: they are made by tiles (those of autograd/attn_tiles.h), F a tile of rows at a time, B with
 * the running maximum of each landmark. A chunk of a sequence is a run of tiles; what is summed over its rows (B's maximum,
 * sum and B v; dY and dy; dx) is one chunk's alone until the chunks are added up in a tree that depends on n only: so many
 * threads work on one head, and bits do not depend on how many. Tiles are rows of keys or queries by columns of landmarks for
 * both factors: B's softmax then runs down the columns, with no sum across a vector. A tile is copied out of (N, H D) into
 * compact rows, zero behind the sequence's end, so that a sequence's bits depend on nothing but itself.
 *
 * Pairs of a sequence and a head are done in groups, as many as memory of a fixed size holds, each group phase by phase:
 * autograd/nystrom.h and the files beside it.
 *
 * Measured in f32 on Zen 3 (H 8, D 64, one sequence, forward + backward, cheb; make bench B=nystrom): against exact
 * attention by tiles 1.8, 4.6, 9.2 and 38 times as fast at n 512, 1,024, 2,048 and 8,192 with M 64; 0.10, 0.33, 1.0 and 8.8
 * times with M 256, whose inverses are 114 products of 256^3 a head whatever n is. 0.82 and 0.83 of the rate of its own products
 * issued bare at M 256 and n 8,192, 32,768 on one thread, 0.82 at 8,192 on two; 0.56 at M 64, where a product is small. Beyond
 * inputs and outputs it takes 4.7 % of theirs at n 65,536 and M 256, 0.9 % at M 64. An inverse is one thread's work: with more
 * threads than pairs of a sequence and a head, M 256 and short sequences leave some of them idle. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include "autograd/attention.h"
#include "autograd/nystrom.h"
#include "autograd/ops/attn_nystrom.h"

enum { Q, K, V, ADD };

typedef ttn_attn_nystrom_options attributes;

/* ---- shapes ---- */

static size_t greater(size_t a, size_t b)
{
    return a > b ? a : b;
}

static ttn_status check_attributes(const ttn_sig *s, ttn_error *err)
{
    const attributes *a = s->attr;
    ttn_status status = ttn_want_heads(s, "attn_nystrom", a->heads, err);
    if (status != TTN_OK) return status;
    if (a->causal)
        return TTN_FAIL(
            err, TTN_EINVAL,
            "attn_nystrom: causal attention does not go through landmarks, since each is a mean over a "
            "segment and would show residues that come later: take attention.kind: exact, or predict masked "
            "residues (train.objective: mlm)");
    if (a->landmarks < 1 || a->landmarks > TTN_NYSTROM_MOST_LANDMARKS)
        return TTN_FAIL(err, TTN_EINVAL, "attn_nystrom: landmarks is %" PRId64 ", expected 1 to %d", a->landmarks,
                        TTN_NYSTROM_MOST_LANDMARKS);
    if (a->iterations < 0 || a->iterations > TTN_INVERSE_MOST_STEPS)
        return TTN_FAIL(err, TTN_EINVAL,
                        "attn_nystrom: iterations is %d, expected 1 to %d, or 0 for %d (cheb) and %d (razavi)",
                        a->iterations, TTN_INVERSE_MOST_STEPS, TTN_INVERSE_CHEB_STEPS, TTN_INVERSE_RAZAVI_STEPS);
    if (!(a->lambda >= 0 && isfinite(a->lambda)))
        return TTN_FAIL(err, TTN_EINVAL, "attn_nystrom: lambda is %g, expected 0 or more", a->lambda);
    return TTN_OK;
}

static ttn_status shape(ttn_sig *s, ttn_error *err)
{
    static const char *const name[] = {"q", "k", "v", "add"};
    const int n = s->in[ADD].ndim < 0 ? ADD : ADD + 1;
    ttn_status status = ttn_want_rows(s, n, "attn_nystrom", name, "(N, H D)", err);
    if (status == TTN_OK) status = check_attributes(s, err);
    if (status != TTN_OK) return status;
    const attributes *a = s->attr;
    const int64_t slots = ttn_nystrom_slots(s);
    const int64_t D = s->in[Q].dim[1] / a->heads;
    s->n_out = 1;
    s->out[0] = s->in[Q];
    s->n_aux = TTN_NYSTROM_N_AUX;
    s->aux[TTN_NYSTROM_ROW_LSE] = ttn_desc_of(TTN_REAL, TTN_ROWS, 2, s->in[Q].dim[0], a->heads, 0);
    s->aux[TTN_NYSTROM_LANDMARK_LSE] = ttn_desc_of(TTN_REAL, TTN_FIXED, 3, slots, a->heads, a->landmarks);
    s->aux[TTN_NYSTROM_LANDMARK_VALUES] =
        (ttn_desc){.type = TTN_REAL, .axis = TTN_FIXED, .ndim = 4, .dim = {slots, a->heads, a->landmarks, D}};
    s->n_stat = TTN_NYSTROM_N_STATS * a->heads;
    for (int p = TTN_FORWARD; p <= TTN_BACKWARD; p++) {
        const ttn_pass pass = (ttn_pass)p;
        ttn_nystrom_group g;
        ttn_nystrom_tile t;
        /* short sequences and long ones are done one after the other, in the same memory */
        s->work[p] =
            greater(ttn_nystrom_lay_out(s, pass, NULL, &g), ttn_attn_tiles_work(s, a->heads, a->landmarks, pass));
        s->work_thread[p] =
            greater(ttn_nystrom_lay_out_thread(s, pass, NULL, &t), ttn_attn_tiles_work_thread(s, a->heads, 1, pass));
    }
    return TTN_OK;
}

/* Lengths are not known when a graph is recorded: as many sequences as it has room for, all of one length. */
static ttn_cost cost(const ttn_sig *s, ttn_pass pass, uint32_t aux_kept)
{
    (void)aux_kept;
    const ttn_nystrom_sizes z = ttn_nystrom_sizes_of(s);
    const double N = (double)s->in[Q].dim[0];
    const double C = (double)z.C;
    const double seqs = s->cap.seqs > 0 ? (double)s->cap.seqs : 1;
    const double n = N / seqs;
    const double m = (double)z.m;
    const int is_exact = n <= m;
    const double seen = is_exact ? n : m; /* keys or landmarks of a row */
    const double product = 2 * N * seen * C;
    const double weights = N * seen * (double)z.H;
    const double pairs = is_exact ? 0 : seqs * (double)z.H;
    const double of_landmarks = 2 * m * m * (double)z.D; /* A from x and y, and the like */
    const double measure = 2 * 2 * m * m * m;
    const ttn_inverse_flops inverse = ttn_inverse_cost(&z.inverse);
    const int adds = s->in[ADD].ndim >= 0;
    const double values = (pass == TTN_FORWARD ? 6 + adds : 12 + 2 * adds) * N * C + N * (double)z.H;
    ttn_cost cost = {.bytes = values * (double)sizeof(real)};
    if (pass == TTN_FORWARD) {
        /* exact: q k^T, p v. Else logits of F and B, B v, F Y; A, Z C, and A Z A for the residual */
        cost.done = (is_exact ? 2 : 4) * product + (is_exact ? 5 : 10) * weights;
        cost.done += pairs * (inverse.forward + 2 * of_landmarks + measure);
        cost.useful = cost.done - pairs * measure;
        return cost;
    }
    /* exact: four products, and q k^T, q k^T and p v made again. Else eight, and both logits made again; A and Z C, too, and
     * dZ, dC and A's logits' two */
    cost.useful = (is_exact ? 4 : 8) * product + (is_exact ? 4 : 8) * weights;
    cost.useful += pairs * (inverse.backward + 4 * of_landmarks);
    cost.done = cost.useful + (is_exact ? 3 : 2) * product + (is_exact ? 8 : 6) * weights;
    cost.done += pairs * (inverse.remake + 2 * of_landmarks);
    return cost;
}

/* ---- as an attention kind ---- */

static const char *const pinvs[] = {"cheb", "razavi", "exact", NULL}; /* in the order of ttn_pinv */
static const char *const compats[] = {"none", "hf", "mlpen", NULL};

static const ttn_option_condition in_use[] = {{"attention.kind", .is = "nystrom"}, {0}};
/* An inverse is computed: there are landmarks, and no published implementation that says which. */
#define INVERTS                                                                \
    {"attention.kind", .is = "nystrom"}, {"nystrom.landmarks", .is_not = "0"}, \
    {                                                                          \
        "nystrom.compat", .is = "none"                                         \
    }
static const ttn_option_condition is_chosen[] = {INVERTS, {0}};
static const ttn_option_condition iterates[] = {INVERTS, {"nystrom.pinv", .is = "cheb, razavi"}, {0}};
static const ttn_option_condition is_solved[] = {INVERTS, {"nystrom.pinv", .is = "exact"}, {0}};

static const ttn_option options[] = {
    {.name = "nystrom.landmarks",
     .type = TTN_OPTION_INTEGER,
     .fallback = "64",
     .least = 0,
     .most = TTN_NYSTROM_MOST_LANDMARKS,
     .help =
         "landmarks of a head; sequences of at most so many residues get exact attention; 0: all do, as in published "
         "models whose num_landmarks is their segment_means_seq_len",
     .since = "0.1",
     .when = in_use},
    {.name = "nystrom.pinv",
     .type = TTN_OPTION_CHOICE,
     .fallback = "cheb",
     .choices = pinvs,
     .help = "inverse of the landmarks' matrix: Chebyshev's iteration, the papers' by Razavi, or by Cholesky",
     .since = "0.1",
     .when = is_chosen},
    {.name = "nystrom.iterations",
     .type = TTN_OPTION_INTEGER,
     .fallback = "0",
     .least = 0,
     .most = TTN_INVERSE_MOST_STEPS,
     .help = "steps of cheb or razavi; 0 stands for 8 and 6, which cost the same",
     .since = "0.1",
     .when = iterates},
    {.name = "nystrom.lambda",
     .type = TTN_OPTION_REAL,
     .fallback = "1e-6",
     .least = 0,
     .most = 1,
     .help = "with the pinv exact: added to the diagonal; smaller is worse where the matrix is close to singular",
     .since = "0.1",
     .when = is_solved},
    {.name = "nystrom.conv",
     .type = TTN_OPTION_INTEGER,
     .fallback = "33",
     .least = 0,
     .most = TTN_DWCONV_MOST_WIDTH,
     .unit = "residues",
     .help = "width, odd, of the convolution of the values that is added, a kernel for each head; 0 leaves it out",
     .since = "0.1",
     .when = in_use},
    {.name = "nystrom.compat",
     .type = TTN_OPTION_CHOICE,
     .fallback = "none",
     .choices = compats,
     .help = "compute what published weights were trained with: razavi in 6 steps, all heads of a sequence starting "
             "together; pinv and iterations are not looked at",
     .since = "0.1",
     .when = in_use},
};

enum { LANDMARKS, PINV, ITERATIONS, LAMBDA, CONV, COMPAT };

static ttn_status integer_of(const ttn_option_reader *o, int row, int layer, int *ret, ttn_error *err)
{
    int64_t value;
    const ttn_status status = o->get_integer(o->self, options[row].name, layer, &value, err);
    if (status == TTN_OK) *ret = (int)value; /* the rows' ranges fit */
    return status;
}

static int place_in(const char *const *choices, const char *text)
{
    int i = 0;
    while (choices[i] && strcmp(choices[i], text) != 0)
        i++;
    return i;
}

static ttn_status attr_of_options(const ttn_option_reader *o, int layer, void *attr, ttn_error *err)
{
    attributes *a = attr;
    *a = (attributes){0};
    const char *pinv = NULL;
    const char *compat = NULL;
    ttn_status status = o->get_integer(o->self, options[LANDMARKS].name, layer, &a->landmarks, err);
    if (status == TTN_OK) status = o->get_text(o->self, options[PINV].name, layer, &pinv, err);
    if (status == TTN_OK) status = integer_of(o, ITERATIONS, layer, &a->iterations, err);
    if (status == TTN_OK) status = o->get_real(o->self, options[LAMBDA].name, layer, &a->lambda, err);
    if (status == TTN_OK) status = integer_of(o, CONV, layer, &a->conv, err);
    if (status == TTN_OK) status = o->get_text(o->self, options[COMPAT].name, layer, &compat, err);
    if (status != TTN_OK) return status;
    if (a->conv > 0 && a->conv % 2 == 0)
        return TTN_FAIL(err, TTN_EINVAL, "%s is %d, expected an odd width, so that it has a middle, or 0",
                        options[CONV].name, a->conv);
    a->pinv = (ttn_pinv)place_in(pinvs, pinv);
    if (place_in(compats, compat) > 0) {
        a->pinv = TTN_PINV_RAZAVI;
        a->iterations = TTN_INVERSE_RAZAVI_STEPS;
        a->shared = 1;
    }
    return TTN_OK;
}

static int build(ttn_graph *g, const ttn_attn_in *in, const void *attr)
{
    attributes a = *(const attributes *)attr;
    a.heads = in->heads;
    a.causal = in->causal;
    int add = TTN_NONE;
    if (a.conv > 0 && !a.causal) {
        const ttn_init init = {TTN_INIT_NORMAL, 0.02}; /* as the published models begin */
        add = ttn_dwconv(g, "conv", in->v, ttn_param(g, "conv.weight", ttn_matrix(in->heads, a.conv), init, 0));
    }
    if (a.landmarks > 0 || a.causal) /* causal: the op says why not */
        return ttn_attn_nystrom(g, in->name, in->q, in->k, in->v, add, &a);
    int out = ttn_attn_exact(g, in->name, in->q, in->k, in->v, &(ttn_attn_exact_options){.heads = in->heads});
    return add == TTN_NONE ? out : ttn_add(g, "conv.sum", out, add);
}

static const ttn_attention attention = {
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .attr = attr_of_options,
    .build = build,
    .map_rows = ttn_nystrom_map_rows,
    .map_pool = ttn_nystrom_map_pool,
};

/* ---- cases ---- */

#define THREE(...)                                          \
    {                                                       \
        __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, TTN_LEFT_OUT \
    }
#define FOUR(...)                                          \
    {                                                      \
        __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__ \
    }
/* A with a condition number that does not bury differences: queries and keys well apart */
#define APART             \
    {                     \
        {-3, 3}, {-3, 3}, \
        {                 \
            -1, 1         \
        }                 \
    }

static const attributes two_cheb = {.heads = 2, .landmarks = 4, .iterations = 3};
static const attributes one_cheb = {.heads = 1, .landmarks = 3};
static const attributes two_razavi = {.heads = 2, .landmarks = 5, .pinv = TTN_PINV_RAZAVI, .iterations = 3};
static const attributes two_exact = {.heads = 2, .landmarks = 4, .pinv = TTN_PINV_EXACT, .lambda = 1e-2};
static const attributes three_shared = {
    .heads = 3, .landmarks = 4, .pinv = TTN_PINV_RAZAVI, .iterations = 2, .shared = 1};
static const attributes one_wide = {.heads = 1, .landmarks = 17, .iterations = 2};

static const ttn_case cases[] = {
    {.about = "segments of unequal length, rows of no sequence between",
     .used = {.rows = 36, .seqs = 2},
     .span = {{0, 11}, {12, 21}},
     .in = FOUR(TTN_ROWS_OF(6)),
     .range = APART,
     .attr = &two_cheb},
    {.about = "short sequences beside long ones",
     .used = {.rows = 40, .seqs = 5},
     .span = {{1, 4}, {5, 1}, {8, 5}, {15, 3}, {19, 18}},
     .in = FOUR(TTN_ROWS_OF(6)),
     .range = APART,
     .attr = &two_cheb},
    {.about = "eight steps, nothing added",
     .used = {.rows = 20, .seqs = 1},
     .span = {{0, 20}},
     .in = THREE(TTN_ROWS_OF(5)),
     .range = APART,
     .attr = &one_cheb},
    {.about = "razavi",
     .used = {.rows = 30, .seqs = 2},
     .span = {{0, 6}, {6, 23}},
     .in = THREE(TTN_ROWS_OF(8)),
     .range = APART,
     .attr = &two_razavi},
    {.about = "by Cholesky",
     .used = {.rows = 30, .seqs = 2},
     .span = {{0, 17}, {18, 12}},
     .in = FOUR(TTN_ROWS_OF(8)),
     .range = APART,
     .attr = &two_exact},
    {.about = "heads that start together",
     .used = {.rows = 30, .seqs = 3},
     .span = {{0, 9}, {9, 4}, {13, 16}},
     .in = FOUR(TTN_ROWS_OF(12)),
     .range = APART,
     .attr = &three_shared},
    {.about = "more landmarks than fill up a vector, three tiles",
     .used = {.rows = 400, .seqs = 2},
     .span = {{0, 387}, {390, 5}},
     .in = THREE(TTN_ROWS_OF(3)),
     .attr = &one_wide},
    {.about = "one landmark",
     .used = {.rows = 9, .seqs = 2},
     .span = {{0, 7}, {7, 2}},
     .in = THREE(TTN_ROWS_OF(2)),
     .attr = &(const attributes){.heads = 1, .landmarks = 1}},
    {.about = "two chunks of a sequence",
     .used = {.rows = 4200, .seqs = 1},
     .span = {{0, 4100}},
     .in = THREE(TTN_ROWS_OF(2)),
     .range = APART,
     .attr = &(const attributes){.heads = 1, .landmarks = 2, .iterations = 2}},
    {.about = "only short sequences",
     .used = {.rows = 12, .seqs = 2},
     .span = {{0, 4}, {5, 3}},
     .in = FOUR(TTN_ROWS_OF(6)),
     .attr = &two_cheb},
    {.about = "no room for more rows than landmarks",
     .used = {.rows = 30, .seqs = 2},
     .span = {{0, 9}, {10, 20}},
     .in = FOUR(TTN_ROWS_OF(6)),
     .attr = &(const attributes){.heads = 2, .landmarks = 600}},
    {.about = "no sequences: zeros", .used = {.rows = 7}, .in = THREE(TTN_ROWS_OF(3)), .attr = &one_cheb},
    {.about = "no rows", .cap = {.rows = 480, .seqs = 2}, .in = FOUR(TTN_ROWS_OF(3)), .attr = &one_cheb},
    {.about = "causal",
     .used = {.rows = 6},
     .in = THREE(TTN_ROWS_OF(4)),
     .attr = &(const attributes){.heads = 1, .landmarks = 2, .causal = 1},
     .refused = "causal attention does not go through landmarks"},
    {.about = "v of another width",
     .used = {.rows = 6},
     .in = {TTN_ROWS_OF(4), TTN_ROWS_OF(4), TTN_ROWS_OF(8), TTN_LEFT_OUT},
     .attr = &two_cheb,
     .refused = "v is " TTN_REAL_NAME " (N 480, 8), but q is " TTN_REAL_NAME " (N 480, 4); expected one shape"},
    {.about = "picks",
     .used = {.picks = 6},
     .in = THREE(TTN_PICKS_OF(4)),
     .attr = &two_cheb,
     .refused = "q is " TTN_REAL_NAME " (R 480, 4), expected rows of a batch, (N, H D)"},
    {.about = "four dimensions",
     .used = {.rows = 6},
     .in = THREE({.axis = TTN_ROWS, .ndim = 3, .dim = {0, 2, 2}}),
     .attr = &two_cheb,
     .refused = "which has 3 dimensions; expected 2, (N, H D)"},
    {.about = "two heads in a width of 5",
     .used = {.rows = 6},
     .in = THREE(TTN_ROWS_OF(5)),
     .attr = &two_cheb,
     .refused = "a width of 5 cannot be divided among 2 heads"},
    {.about = "no landmarks",
     .used = {.rows = 6},
     .in = THREE(TTN_ROWS_OF(4)),
     .attr = &(const attributes){.heads = 1},
     .refused = "landmarks is 0, expected 1 to 4096"},
    {.about = "too many steps",
     .used = {.rows = 6},
     .in = THREE(TTN_ROWS_OF(4)),
     .attr = &(const attributes){.heads = 1, .landmarks = 2, .iterations = 13},
     .refused = "iterations is 13, expected 1 to 12, or 0 for 8 (cheb) and 6 (razavi)"},
    {.about = "lambda below 0",
     .used = {.rows = 6},
     .in = THREE(TTN_ROWS_OF(4)),
     .attr = &(const attributes){.heads = 1, .landmarks = 2, .lambda = -1},
     .refused = "lambda is -1, expected 0 or more"},
};

static const ttn_stat stats[] = {
    [TTN_NYSTROM_RESIDUAL] = {.name = "residual", .fold = TTN_MAX, .per_head = 1},
    [TTN_NYSTROM_ROW_SUM] = {.name = "row_sum", .fold = TTN_MAX, .per_head = 1},
    [TTN_NYSTROM_Z_NORM] = {.name = "z_norm", .fold = TTN_MAX, .per_head = 1},
};

/* Of dq and dk, aux and all; dv needs neither v nor C. */
#define READS_OF_SCORES                                                                                                \
    {                                                                                                                  \
        .in = TTN_BIT(Q) | TTN_BIT(K) | TTN_BIT(V),                                                                    \
        .aux = TTN_BIT(TTN_NYSTROM_ROW_LSE) | TTN_BIT(TTN_NYSTROM_LANDMARK_LSE) | TTN_BIT(TTN_NYSTROM_LANDMARK_VALUES) \
    }

const ttn_op ttn_op_attn_nystrom = {
    .name = "attn_nystrom",
    .n_in = 4,
    .n_out = 1,
    .optional = TTN_BIT(ADD),
    .differentiable = TTN_BIT(Q) | TTN_BIT(K) | TTN_BIT(V) | TTN_BIT(ADD),
    .reads = {[Q] = READS_OF_SCORES,
              [K] = READS_OF_SCORES,
              [V] = {.in = TTN_BIT(Q) | TTN_BIT(K),
                     .aux = TTN_BIT(TTN_NYSTROM_ROW_LSE) | TTN_BIT(TTN_NYSTROM_LANDMARK_LSE)}},
    .takes = {TTN_SHARES(ADD)},
    .passes = {[ADD] = TTN_SHARES(0)},
    .attr_bytes = sizeof(attributes),
    .stats = stats,
    .n_stats = TTN_NYSTROM_N_STATS,
    .shape = shape,
    .cost = cost,
    .cpu = {.forward = ttn_nystrom_forward, .backward = ttn_nystrom_backward},
    .attention = &attention,
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
};

int ttn_attn_nystrom(ttn_graph *g, const char *name, int q, int k, int v, int add, const ttn_attn_nystrom_options *o)
{
    return ttn_apply(g, "attn_nystrom", name, o, (const int[]){q, k, v, add});
}
