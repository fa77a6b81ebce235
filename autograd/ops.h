/* Builders of the ops: each records one node and returns its output (TTN_FAILED after a failure). `name` is the node's, in
 * the current scope; NULL lets the graph choose. The maths stands on top of autograd/ops/NAME.c. */
#ifndef TTN_OPS_H
#define TTN_OPS_H

#include "autograd/graph.h"

TTN_API_BEGIN

/* The nonlinear functions that stand between the two linear layers of a feed-forward block. */
typedef enum { TTN_ACT_GELU_ERF, TTN_ACT_GELU_TANH, TTN_ACT_RELU, TTN_ACT_SILU } ttn_activation;

/* a + b, the same shape. */
int ttn_add(ttn_graph *g, const char *name, int a, int b);

/* Attention within each sequence; q, k, v (N, H D), and so the output. */
typedef struct {
    int heads;      /* H, which divides the width */
    int causal;     /* row i sees rows up to i of its sequence */
    double scale;   /* of q k before the softmax, above 0; 0: D^(-1/2) */
    double dropout; /* of weights while training, in [0, 1) */
} ttn_attn_exact_options;

/* softmax(scale q k^T) v, in memory that grows with N and not with its square. */
int ttn_attn_exact(ttn_graph *g, const char *name, int q, int k, int v, const ttn_attn_exact_options *o);

/* Random-feature attention (FAVOR+), in time and memory that grow with N: phi(q) (sum phi(k)^T v) / phi(q).sum phi(k). What
 * phi is: autograd/ops/favor_features.h; what the rest is: autograd/ops/attn_favor.c. */
typedef enum {
    TTN_FAVOR_POSITIVE,
    TTN_FAVOR_HYPERBOLIC,
    TTN_FAVOR_TRIG,
    TTN_FAVOR_EXP,
    TTN_FAVOR_RELU,
    TTN_FAVOR_ELU1,
    TTN_FAVOR_GELU,
    TTN_FAVOR_SQUARE,
    TTN_FAVOR_SIGMOID,
    TTN_FAVOR_TANH,
    TTN_FAVOR_SOFTPLUS,
    TTN_FAVOR_IDENTITY,
} ttn_favor_kernel;

typedef enum {
    TTN_FAVOR_DIVIDED, /* by the sum of weights */
    TTN_FAVOR_PLAIN,   /* by nothing: the estimate of sum exp(q.k) v, for maps that estimate */
    TTN_FAVOR_RMS,     /* and then by its own root mean square */
} ttn_favor_renormalize;

/* As published implementations compute it, with the eps that they add to features, for their weights and numbers. */
typedef enum { TTN_FAVOR_OURS, TTN_FAVOR_GOOGLE, TTN_FAVOR_GOOGLE_TF, TTN_FAVOR_LUCIDRAINS } ttn_favor_compatible;

typedef enum { TTN_FAVOR_CHI, TTN_FAVOR_SQRTD } ttn_favor_lengths;

typedef struct {
    int heads;  /* H, which divides the width */
    int causal; /* not there yet: refused */
    ttn_favor_kernel kernel;
    ttn_favor_renormalize renormalize;
    ttn_favor_compatible compat;

    /* of the projection, for whoever draws it (autograd/ops/favor_draw.c); the op takes any */
    int64_t features;  /* m; 0: max(D, D ln D), rounded up to a multiple of 16 */
    int no_projection; /* features of q and k themselves */
    int independent;   /* rows that are not orthogonal by blocks */
    ttn_favor_lengths lengths;
    int64_t redraw; /* optimizer steps; 0: never */
} ttn_attn_favor_options;

/* projection (H, m, D), without a gradient; TTN_NONE with a map that needs none: features of q and k themselves. */
int ttn_attn_favor(ttn_graph *g, const char *name, int q, int k, int v, int projection,
                   const ttn_attn_favor_options *o);

typedef struct {
    int values_alone; /* for whoever records it: a model has no q and k */
} ttn_attn_none_options;

/* v, as if it were attention that sees only itself: gradients of zeros reach q and k. Both TTN_NONE: there are none. */
int ttn_attn_none(ttn_graph *g, const char *name, int q, int k, int v);

/* What stands for the inverse of the landmarks' matrix: autograd/nystrom_inverse.h. */
typedef enum { TTN_PINV_CHEB, TTN_PINV_RAZAVI, TTN_PINV_EXACT } ttn_pinv;

typedef struct {
    int heads;  /* H, which divides the width */
    int causal; /* refused: landmarks are means over residues on both sides */
    int64_t
        landmarks; /* M; a sequence of at most so many rows gets exact attention. 0, for whoever records it: all do */
    ttn_pinv pinv;
    int iterations; /* of cheb and razavi, at most 12; 0: 8 and 6 */
    double lambda;  /* of exact, at least 0 */
    int conv; /* width of the convolution of v that a model adds (ttn_dwconv), for whoever records both; the op has add */
    int shared; /* all heads of a sequence start from the largest column sum among them, as in published models */
} ttn_attn_nystrom_options;

/* Nystrom attention: softmax through M landmarks a head, means of M segments of the sequence, in time and memory that grow
 * with N. add: (N, H D), added to the result (the convolution of v in Nystromformer), or TTN_NONE. */
int ttn_attn_nystrom(ttn_graph *g, const char *name, int q, int k, int v, int add, const ttn_attn_nystrom_options *o);

/* Inverted dropout: x / (1 - p), or 0 with probability p, in training runs; x itself in others. x (N, C) or (S, C). The
 * mask is a function of the node's name, seed, step, the sequence's sample number, position and channel. p in [0, 1). */
int ttn_dropout(ttn_graph *g, const char *name, int x, double p);

enum { TTN_DWCONV_MOST_WIDTH = 1023 };

/* Along each sequence, every channel of a head with the head's own kernel: y_t = sum over j of kernel_j x at t + j - (w - 1) / 2,
 * terms outside of the sequence absent. x (N, H D), kernel (H, w) with w odd. */
int ttn_dwconv(ttn_graph *g, const char *name, int x, int kernel);

/* ESM's token dropout: rows of masks are 0, and all rows of a sequence are multiplied by (1 - share) / (1 - its own share
 * of masks); specials count. */
typedef struct {
    int64_t mask; /* the token; -1: no token dropout */
    double share; /* 0.12 in the published models */
} ttn_token_dropout;

/* Rows of table (V, C) by tokens (N), u8, i32 or i64: (N, C), zeros in rows of no sequence. A run fails on a token outside
 * the vocabulary, and with token dropout on a sequence of nothing but masks. dropout: copied; NULL: none. */
int ttn_embedding(ttn_graph *g, const char *name, int tokens, int table, const ttn_token_dropout *dropout);

/* act(x W1^T + b1) W2^T + b2, with w3 gated: (act(x W1^T + b1) (x W3^T + b3)) W2^T + b2 (SwiGLU, GeGLU). x (N, C), w1 and w3
 * (F, C), w2 (C, F), b1 and b3 (F), b2 (C); w3 and each bias may be TTN_NONE. A plan that must save memory leaves the hidden
 * layer (N, F) out and makes it again by tiles, with the same bits. */
int ttn_ffn(ttn_graph *g, const char *name, int x, int w1, int b1, int w2, int b2, int w3, int b3, ttn_activation act);

/* x Phi(x): exact (TTN_ACT_GELU_ERF), or the tanh fit that some published models use (TTN_ACT_GELU_TANH). */
int ttn_gelu(ttn_graph *g, const char *name, int x, ttn_activation form);

/* Every head of every row by itself: x / sqrt(mean x^2 + eps) over the D channels of a head, times the head's gain. x
 * (N, H D), gain (H). */
int ttn_headnorm(ttn_graph *g, const char *name, int x, int gain, int64_t heads, double eps);

/* Over the last axis of x (N, C); gain (C), bias (C) or TTN_NONE. */
int ttn_layernorm(ttn_graph *g, const char *name, int x, int gain, int bias, double eps);

/* x W^T + b: x (N, I), weight (O, I), bias (O) or TTN_NONE. */
int ttn_linear(ttn_graph *g, const char *name, int x, int weight, int bias);

/* The sum of (x - target)^2, a scalar: over the rows of sequences (every used row in a run without sequences, and on other
 * axes). Its statistics are the sum and how many elements are in it, in double. */
int ttn_mse(ttn_graph *g, const char *name, int x, int target);

/* The mean of each sequence's rows in x (N, C), without the first skip_first and the last skip_last of them (ESM means leave
 * out cls and eos: 1 and 1). (S, C). A run in which a sequence has nothing left fails. Every span has to begin and end with
 * the rows that are left out: whole sequences, not crops of them. */
int ttn_pool_mean(ttn_graph *g, const char *name, int x, int64_t skip_first, int64_t skip_last);

/* Each sequence's first row in x (N, C). (S, C). */
int ttn_pool_first(ttn_graph *g, const char *name, int x);

/* x (N, C) plus the table's row (L, C) of each row's position in its sequence (the feed's start included) + offset: 0 in
 * BERT, 2 in ESM-1b and Nystromformer checkpoints. A run fails on a position past the table. */
int ttn_positions(ttn_graph *g, const char *name, int x, int table, int64_t offset);

/* max(x, 0). */
int ttn_relu(ttn_graph *g, const char *name, int x);

/* a + dropout of b (ttn_dropout) in one pass, the same shape; p 0: their sum. */
int ttn_residual(ttn_graph *g, const char *name, int a, int b, double p);

/* x / sqrt(mean x^2 + eps) over the last axis of x (N, C), times gain (C), or TTN_NONE. */
int ttn_rmsnorm(ttn_graph *g, const char *name, int x, int gain, double eps);

typedef enum {
    TTN_ROTARY_HALVES,      /* pairs (j, j + D/2): NeoX, ESM-2 */
    TTN_ROTARY_INTERLEAVED, /* pairs (2j, 2j + 1): AMPLIFY */
} ttn_rotary_form;

/* Each pair of x's channels turned by its row's position times the pair's frequency, in every one of `heads` heads: x
 * (N, H D), queries or keys. frequencies: a state (D/2), or TTN_NONE: base^(-2j/D). Positions count from each sequence's
 * start, the feed's start included. */
int ttn_rotary(ttn_graph *g, const char *name, int x, int frequencies, int64_t heads, double base,
               ttn_rotary_form form);

/* factor x. */
int ttn_scale(ttn_graph *g, const char *name, int x, double factor);

/* Rows of x (N, C) by index (R), i64, -1: a row of zeros. (R, C). */
int ttn_select(ttn_graph *g, const char *name, int x, int index);

/* x / (1 + e^-x). */
int ttn_silu(ttn_graph *g, const char *name, int x);

typedef enum {
    TTN_SINUSOID_INTERLEAVED, /* sines in even channels, cosines in odd ones: Vaswani et al. 2017 */
    TTN_SINUSOID_HALVES,      /* sines, then cosines: tensor2tensor, fairseq, the first ESM-1 */
} ttn_sinusoid_form;

/* x (N, C) plus sines and cosines of each row's position in its sequence + offset, computed for any length. */
int ttn_sinusoid(ttn_graph *g, const char *name, int x, int64_t offset, ttn_sinusoid_form form);

/* Softmax cross-entropy of logits (R, V) with target (R), u8, i32 or i64, on any axis of rows: the sum over rows of
 * weight (R) (TTN_NONE: 1) times loss, a scalar. Rows whose target is `ignore` (it may be a class, too) and, on axis N, rows
 * of no sequence add nothing; elsewhere a target that is no class fails the run. smoothing: label smoothing, 0 to 1:
 *
 *     loss = (1 - smoothing) (- log p[target]) + smoothing mean over classes of (- log p)
 *
 * Output 1 is each row's loss (R), without its weight, 0 in rows that add nothing; gradients pass through it as well.
 * Weights have none. -inf is a logit like others (an impossible class; loss inf if it is the target); NaN gives NaN.
 * Statistics, in double: sum, count (the weights of the rows that count) and correct (of those among them whose target has
 * the largest logit; of several equal ones the first class is meant). */
int ttn_xent(ttn_graph *g, const char *name, int logits, int target, int weight, int64_t ignore, double smoothing);

TTN_API_END
#endif
