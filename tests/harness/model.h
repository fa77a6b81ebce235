/* Encoders without attention, in the shapes that planning must get right. */
#ifndef TTN_MODEL_H
#define TTN_MODEL_H

#include "autograd/graph.h"

typedef enum {
    MODEL_PRE_NORM,
    MODEL_POST_NORM,
    MODEL_SKIP,      /* pre-norm, and every second block also adds what went into the block before */
    MODEL_TIED,      /* all blocks share their first weight */
    MODEL_TWO_HEADS, /* a second head that no loss reaches */
    MODEL_FROZEN,    /* the first half of the blocks, and of the others gains but not biases, are frozen */
    MODEL_N_SHAPES,
} model_shape;

extern const char *const model_shape_name[MODEL_N_SHAPES];

typedef struct {
    model_shape shape;
    int layers;
    int64_t width, hidden;
    ttn_extent capacity;
    int marked; /* blocks are marked */
} model_config;

typedef struct {
    ttn_graph *g;  /* the caller's */
    int x, target; /* inputs "x" and "target" (N, width) */
    int out;       /* (N, width) */
    int loss;      /* mse of out and target */
} model;

model model_record(const model_config *c);

#endif
