/* Recording a computation.
 *
 *     ttn_graph *g = ttn_graph_create((ttn_extent){.rows = 480, .seqs = 8, .picks = 480});
 *     int x = ttn_input(g, "x", ttn_rows(g, 20));
 *     ttn_scope_begin(g, "layer.%d", 0);
 *     int w = ttn_param(g, "q.weight", ttn_matrix(64, 20), (ttn_init){TTN_INIT_NORMAL, 0.02}, 0);
 *     int y = ttn_linear(g, "q", x, w, TTN_NONE);             node "layer.0.q", parameter "layer.0.q.weight"
 *     ttn_scope_end(g);
 *
 * Nothing is computed: a call appends a node and infers shapes. Builders return a value's number, or TTN_FAILED once
 * anything has failed; TTN_FAILED in gives TTN_FAILED out and the first message stays, so a model is written straight
 * down and checked once (ttn_graph_check, or when a plan is made). A graph of which a plan was made cannot grow any more.
 */
#ifndef TTN_GRAPH_H
#define TTN_GRAPH_H

#include <stddef.h>
#include "core/status.h"
#include "core/tensor.h"

TTN_API_BEGIN

typedef struct ttn_graph ttn_graph;

enum {
    TTN_FAILED = -1, /* what a builder returns after a failure */
    TTN_NONE = -2,   /* an optional input left out */
};

/* Rows and picks come in whole tiles of this many, so that a row's bits do not depend on what else is in the batch. */
enum { TTN_GRAPH_TILE = 480 };

/* A graph for batches of at most so many rows, sequences and picks: rows and picks are multiples of TTN_GRAPH_TILE, any
 * may be 0. NULL: out of memory; everything below takes it and says so. */
ttn_graph *ttn_graph_create(ttn_extent capacity);
void ttn_graph_destroy(ttn_graph *g);

/* The first failure, or TTN_OK. */
ttn_status ttn_graph_check(const ttn_graph *g, ttn_error *err);

ttn_extent ttn_graph_capacity(const ttn_graph *g);

/* ---- shapes of the build's real type ---- */

ttn_desc ttn_rows(const ttn_graph *g, int64_t channels);  /* (N, channels) */
ttn_desc ttn_picks(const ttn_graph *g, int64_t channels); /* (R, channels) */
ttn_desc ttn_seqs(const ttn_graph *g, int64_t channels);  /* (S, channels) */
ttn_desc ttn_matrix(int64_t a, int64_t b);
ttn_desc ttn_vector(int64_t a);
/* The same shape, holding another type. */
ttn_desc ttn_typed(ttn_desc d, ttn_dtype type);

/* ---- names ---- */

/* Names of leaves and nodes recorded until the matching end get "NAME." in front. */
void ttn_scope_begin(ttn_graph *g, const char *format, ...) TTN_PRINTF(2, 3);
void ttn_scope_end(ttn_graph *g);

/* ---- leaves: a name each, unique among leaves; names are letters, digits, '_', '-', and '.' between parts ---- */

/* Data of a run, bound by name (ttn_plan_bind). */
int ttn_input(ttn_graph *g, const char *name, ttn_desc d);

typedef enum {
    TTN_INIT_CONSTANT, /* a everywhere */
    TTN_INIT_NORMAL,   /* mean 0, standard deviation a */
    TTN_INIT_UNIFORM,  /* in (-a, a) */
} ttn_init_kind;

typedef struct {
    ttn_init_kind kind;
    double a;
} ttn_init;

enum {
    TTN_FROZEN = 1,   /* no gradient */
    TTN_NO_DECAY = 2, /* no weight decay: norms, biases, embeddings */
};

/* A parameter, and how it begins. */
int ttn_param(ttn_graph *g, const char *name, ttn_desc d, ttn_init init, unsigned flags);

/* Saved with the model and read by ops, but without a gradient: random projections, running statistics. */
int ttn_state(ttn_graph *g, const char *name, ttn_desc d);

/* Freeze (or train again, freeze 0) every parameter whose full name matches the shell pattern ("layer.*.attn.*"; '*'
 * also matches dots). Returns how many matched; none is a failure of the graph. For plans and weights made afterwards. */
int ttn_graph_freeze(ttn_graph *g, const char *pattern, int freeze);

/* ---- nodes ---- */

/* Record one op by its name in the registry (builders of the ops: autograd/ops.h). node: its name in the scope, unique
 * among nodes; NULL: the op's name, with a number when that is taken. attr: copied. in: the op's n_in values. Returns the
 * first output; output j is ttn_output(g, that, j). */
int ttn_apply(ttn_graph *g, const char *op, const char *node, const void *attr, const int *in);

/* Output j of the node that made `first`. */
int ttn_output(ttn_graph *g, int first, int j);

/* The same values, behind which no gradient passes. Costs nothing. */
int ttn_detach(ttn_graph *g, int x);

/* Between begin and end: values that no node outside reads may be dropped after forward and made again in backward. */
void ttn_block_begin(ttn_graph *g);
void ttn_block_end(ttn_graph *g);

/* ---- questions ---- */

/* {.ndim = -1} for a number that is no value. */
ttn_desc ttn_desc_of_value(const ttn_graph *g, int x);

/* "layer.0.q" (its node; with ".1" for output 1) or the leaf's name; "?" for a number that is no value. Borrowed until the
 * graph is destroyed. */
const char *ttn_name_of_value(const ttn_graph *g, int x);

/* The parameter recorded next after value x (TTN_NONE: the first one); TTN_NONE: there is none. */
int ttn_next_param(const ttn_graph *g, int x);

TTN_API_END
#endif
