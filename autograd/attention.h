/* What makes an op an attention kind: all that a model, a trainer and a tool need to know of it, reached through
 * ttn_op.attention. Nothing outside the op's file knows which kind it is: a configuration names kinds, a model looks
 * them up (ttn_attention_find) and calls attr and build.
 *
 * A kind called KIND is the op attn_KIND in autograd/ops/attn_KIND.c, and the line TTN_ATTENTION(KIND) in autograd/ops.def.
 *
 * N rows (residues of a packed batch)   S sequences   H heads   D head width   n rows of one sequence
 */
#ifndef TTN_ATTENTION_H
#define TTN_ATTENTION_H

#include <stdint.h>
#include "autograd/graph.h"
#include "autograd/op.h"
#include "autograd/weights.h"
#include "core/options.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- recording ---- */

/* What attention works on. q, k and v are projected already (and rotated, where a model does that): projections and
 * their biases are the same for all kinds and belong to the block. What only this kind needs (random projections, a
 * convolution) it declares itself, in the scope that is open when build is called. */
typedef struct {
    int q, k, v;      /* values (N, H D); q and k are TTN_NONE where the kind goes without them */
    int heads;        /* H */
    int causal;       /* row i sees rows up to i of its sequence */
    double dropout;   /* of attention weights while training, in [0, 1); a kind that does not drop leaves it aside */
    const char *name; /* the node's, in the current scope; NULL lets the graph choose */
} ttn_attn_in;

/* ---- looking at it ---- */

/* Maps are of one head of one sequence: seq is its number in c->feed. c: the node's forward call, as a tap gets it, with
 * inputs, outputs and aux alive and where the host can read them: ttn_tap_open (autograd/tap.h) where plans may run on a
 * device. Dropout plays no part. These are no kernels: they may allocate (TTN_ENOMEM). TTN_EINVAL
 * for a sequence, head or row that is not there. */

/* Row r of map (n_row, n): how output row[r] (counted from the sequence's first) weighs the n values. */
typedef ttn_status (*ttn_map_rows)(const ttn_call *c, int64_t seq, int64_t head, int64_t n_row, const int64_t *row,
                                   real *map, ttn_error *err);

/* The whole map in blocks: cell (a, b) of map (P, P) is the mean over rows i of block a and columns t of block b, where
 * block p holds ttn_map_block(p) up to ttn_map_block(p + 1) - 1; 1 <= P <= n. Masked weights count as the zeros they are. */
typedef ttn_status (*ttn_map_pool)(const ttn_call *c, int64_t seq, int64_t head, int64_t P, double *map,
                                   ttn_error *err);

/* The first row of block p of P: that of block p + 1 is its end. */
static inline int64_t ttn_map_block(int64_t p, int64_t n, int64_t P)
{
    return p * n / P;
}

/* ---- a kind ---- */

/* The states of one node. A kind declares them in build, in the scope of its node's name ("layer.0.attn.core.draw" of
 * the node "layer.0.attn.core"), and names them here without it. */
typedef struct {
    ttn_weights *weights; /* where they live */
    const char *node;     /* its full name */
    const void *attr;     /* the node's attributes */
} ttn_state_set;

/* After how many optimizer steps (0: before the first). */
typedef struct {
    uint64_t seed; /* of the run */
    int64_t step;
} ttn_when;

/* The state of that name, and copies of it to and from the host, all of it (autograd/weights.h). TTN_EINTERNAL: the node has
 * none of that name. */
TTN_MUST_USE ttn_status ttn_state_find(const ttn_state_set *s, const char *name, const ttn_weight **ret,
                                       ttn_error *err);
TTN_MUST_USE ttn_status ttn_state_read(const ttn_state_set *s, const char *name, void *data, ttn_error *err);
TTN_MUST_USE ttn_status ttn_state_write(const ttn_state_set *s, const char *name, const void *data, ttn_error *err);

typedef struct ttn_attention {
    /* Its rows of the table of options, named "KIND.…". */
    const ttn_option *options;
    int n_options;

    /* Options of one layer to `attr`, which has op->attr_bytes. What ttn_attn_in says is left for build. */
    ttn_status (*attr)(const ttn_option_reader *o, int layer, void *attr, ttn_error *err);

    /* Does it go without q and k? A model then has neither these nor their projections. NULL: it never does. A kind's
     * defaults never do. */
    int (*values_alone)(const void *attr);

    /* Records it and returns the output (N, H D), TTN_FAILED after a failure: an output of the kind's own op, so that a tap
     * on it can look at maps. attr: what attr() filled; NULL where op->attr_bytes is 0. */
    int (*build)(ttn_graph *g, const ttn_attn_in *in, const void *attr);

    /* Called after each optimizer step (and before the first) for kinds with state, through ttn_renew; NULL: there is
     * none. stat: the node's statistics of that step, NULL before the first. What it leaves depends on the states, w and stat
     * alone, and calling it again changes nothing: a run that is resumed begins with it. */
    ttn_status (*renew)(const ttn_state_set *s, const ttn_when *w, const double *stat, ttn_error *err);

    /* What whoever is about to train with these attributes should look at, in one sentence that names keys. Returns NULL where
     * there is nothing. No function: there never is. */
    const char *(*note)(const void *attr);

    ttn_map_rows map_rows;
    ttn_map_pool map_pool;

    /* It drops weights (ttn_attn_in.dropout); others never make them, and a model that drops in no layer is refused. */
    int drops;

    /* The op that computes one row from a state of constant size, for decoding; NULL: there is none. */
    const ttn_op *step;

    /* How the gains of normed queries and keys begin, for heads of D channels; NULL: as 1. */
    double (*qk_gain)(int64_t D);
} ttn_attention;

/* The op of the kind ("exact", "none"), with its attention set; NULL when there is none of that name. */
const ttn_op *ttn_attention_find(const char *kind);

/* The span of a sequence, after checking that `seq` is one of the run, head one of `heads`, and rows and P (0: not asked)
 * possible: what map functions begin with. `op` stands in messages. */
TTN_MUST_USE ttn_status ttn_map_span(const ttn_call *c, const char *op, int64_t seq, int64_t head, int64_t heads,
                                     int64_t n_row, const int64_t *row, int64_t P, ttn_span *ret, ttn_error *err);

#ifdef __cplusplus
}
#endif
#endif
