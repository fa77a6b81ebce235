/* The model: an encoder of proteins that predicts residues, from a configuration to a graph.
 *
 *     ttn_model_spec_of(values, &use, &spec, &err);           once
 *     ttn_model_build(g, spec, TTN_MODEL_LOSS, &m);           for every graph: another length, evaluation
 *     ttn_weights_create(g, device, &weights, &err);
 *     ttn_model_init(spec, weights, seed, &err);
 *
 *     tokens (N) -> embed -> layers -> norm -> picked rows (R) -> head -> logits (R, V) -> loss
 *
 * N rows of a packed batch   R picks   C width   F hidden   H heads   D = C / H   V vocabulary
 *
 * Parameters; tables of import and export are written against these names, so they stay.
 *
 *     embed.weight (V, C)
 *     positions.weight (L, C)                   learned positions: max_positions + position_offset rows. Of a published model
 *                                               with token types (BERT): row 0 of these added to each of its rows
 *     embed.norm.gain (C), embed.norm.bias (C)  with embed_norm
 *     layer.0.norm1.gain …                      autograd/nn.h has the list
 *     layer.0.attn.q.norm.gain (H), and k       with qk_norm
 *     norm.gain (C), norm.bias (C)              with final_norm
 *     head.dense.weight (C, C), head.dense.bias (C), head.norm.gain (C), head.norm.bias (C)    esm, bert
 *     head.decoder.weight (V, C)                when it is not tied to embed.weight
 *     head.bias (V)
 *
 * and one state, rotary.frequencies (D/2), of a model that stores them. Gains, biases, embed.weight and positions.weight
 * have TTN_NO_DECAY. A tied decoder is the embedding, and does not decay either.
 */
#ifndef TTN_TRAIN_MODEL_H
#define TTN_TRAIN_MODEL_H

#include <stdint.h>
#include "autograd/nn.h"
#include "autograd/weights.h"
#include "core/options.h"
#include "core/values.h"
#include "data/alphabet.h"
#include "data/batch.h"
#include "train/config.h"

/* ---- what a model is ---- */

typedef enum {
    TTN_PLACES_ROTARY,   /* queries and keys are turned, in every layer */
    TTN_PLACES_LEARNED,  /* a table is added to the embeddings */
    TTN_PLACES_SINUSOID, /* sines and cosines are */
    TTN_PLACES_NONE,
} ttn_model_places;

typedef enum {
    TTN_HEAD_ESM,    /* dense, gelu (erf), norm, decoder: ESM-1b, ESM-2 */
    TTN_HEAD_BERT,   /* the same with the model's own activation: BERT, Nystromformer */
    TTN_HEAD_LINEAR, /* decoder alone: AMPLIFY */
} ttn_model_head;

/* Attention of one layer. */
typedef struct {
    const char *kind; /* "exact", as in the registry */
    void *attr;       /* what the kind has made of its options; NULL: it has none */
    double qk_gain;   /* how norms of queries and keys begin */
} ttn_model_attention;

typedef struct {
    int64_t vocabulary; /* V */
    int64_t layers;
    ttn_layer_spec layer; /* what all layers have in common: width, heads, hidden, norms, activation, dropout … */
    ttn_model_attention *attention; /* (layers) */
    int asks_auto;                  /* some layer's kind was chosen: attention.kind auto */
    int qk_norm;

    int64_t mask;               /* the token; -1: the vocabulary has none */
    double token_dropout_share; /* share of masks in training; < 0: no token dropout */

    ttn_model_places places;
    int64_t max_positions;   /* of a learned table */
    int64_t position_offset; /* the first row is of position 0 + this: 2 in ESM-1b */
    ttn_sinusoid_form sinusoid_form;
    int stored_frequencies; /* rotary's are a state of the model, not a formula */

    int embed_norm, final_norm;
    ttn_model_head head;
    int tied; /* the decoder's matrix is the embedding */
} ttn_model_spec;

/* What else decides about a model: where its sequences come from and what it learns. */
typedef struct {
    const ttn_alphabet *alphabet;
    int causal;      /* next residues are predicted, not masked ones */
    int64_t longest; /* tokens of the longest piece that it is trained on, for attention.kind auto; 0: no limit */
    int64_t
        positions; /* the last position in any of them + 1: more than `longest` where pieces count from the protein's
                          start; for learned positions. 0: not known, and a run will say */
} ttn_model_use;

/* Rows model.* and attention.*, with their rules. */
extern const ttn_config_module ttn_model_module;

/* *ret is the caller's, and borrows from values. TTN_EINVAL: a model that cannot be, in a sentence that names the keys;
 * TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_model_spec_of(const ttn_values *values, const ttn_model_use *use, ttn_model_spec **ret,
                                          ttn_error *err);
void ttn_model_spec_destroy(ttn_model_spec *s); /* NULL is fine */

/* "exact, favor": which there are, in the order of layers; text has TTN_OPTION_EXPECTED bytes. Returns text. */
char *ttn_model_kinds(const ttn_model_spec *s, char *text);

/* What to look at in a layer's attention before it is trained (ttn_attention.note); NULL: nothing, or a layer before it has
 * said so. */
const char *ttn_model_note(const ttn_model_spec *s, int64_t layer);

/* Does the model know positions 0, … positions - 1? TTN_EINVAL: its learned table ends before them. */
TTN_MUST_USE ttn_status ttn_model_check_positions(const ttn_model_spec *s, int64_t positions, ttn_error *err);

/* ---- to a graph ---- */

/* How far a graph goes. */
typedef enum {
    TTN_MODEL_HIDDEN,        /* to the last layer */
    TTN_MODEL_LOGITS,        /* and through the head */
    TTN_MODEL_LOSS,          /* and to the loss of every pick and their sum */
    TTN_MODEL_WEIGHTED_LOSS, /* and each loss has a weight in the sum */
} ttn_model_mode;

/* Values of the graph; TTN_NONE where the mode does not go so far. */
typedef struct {
    int tokens;   /* input "tokens" (N), u8 */
    int index;    /* input "index" (R), i64: the row of each pick, -1: of none */
    int target;   /* input "target" (R), u8: a token or TTN_BATCH_NO_TARGET */
    int weight;   /* input "weight" (R), real */
    int hidden;   /* (N, C): after the last layer and the norm behind it */
    int logits;   /* (R, V) */
    int loss;     /* a scalar: the sum over picks; statistics as of xent (autograd/ops.h): sum, count, correct */
    int loss_row; /* (R): each pick's, without its weight */
} ttn_model;

/* Records the model. What fails, fails the graph: ttn_graph_check, or whoever makes a plan of it. */
void ttn_model_build(ttn_graph *g, const ttn_model_spec *s, ttn_model_mode mode, ttn_model *ret);

/* ttn_weights_init, and states that begin with a formula. Random projections of attention kinds are drawn by their renew. */
TTN_MUST_USE ttn_status ttn_model_init(const ttn_model_spec *s, ttn_weights *w, uint64_t seed, ttn_error *err);

#endif
