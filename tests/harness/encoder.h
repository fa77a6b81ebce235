/* A small encoder of ESM-2's shape with everything that training uses, and batches for it: token dropout, rotary, dropout,
 * exact attention with dropout of its own, marked blocks, picks, a head, cross-entropy.
 */
#ifndef TTN_TEST_ENCODER_H
#define TTN_TEST_ENCODER_H

#include "autograd/plan.h"
#include "core/real.h"

enum { ENCODER_VOCABULARY = 33, ENCODER_MASK = 32, ENCODER_WIDTH = 24, ENCODER_HEADS = 2, ENCODER_ROWS = 480 };

typedef struct {
    ttn_graph *g;  /* the caller's; inputs "tokens" (N) u8, "picks" (R) i64, "targets" (R) u8 */
    int hidden;    /* (N, WIDTH), after the last norm */
    int logits;    /* (R, VOCABULARY) */
    int loss;      /* a scalar */
    int attention; /* of the first layer, (N, WIDTH) */
} encoder;

encoder encoder_record(int layers);

/* Sequences between which some rows are of none, a few masks and picks in each: number `seed` of many. */
typedef struct {
    uint8_t token[ENCODER_ROWS], target[ENCODER_ROWS];
    int64_t pick[ENCODER_ROWS];
    ttn_span span[3];
    int64_t start[3];
    uint64_t sample[3];
    ttn_feed feed; /* points at the above */
} encoder_batch;

void encoder_fill(encoder_batch *b, uint64_t seed);

void encoder_bind(ttn_plan *p, const encoder_batch *b);

/* Some batches on a device (NULL: the host) from the weights of one seed, what they leave on the host. Gradients are added
 * up where they are, as micro-batches of one step are. */
typedef struct {
    double loss[4]; /* of each batch */
    double stat[3]; /* of the last batch, as the two that follow */
    real *logits;   /* (R, VOCABULARY) */
    real *hidden;   /* (N, WIDTH) */
    real *gradient; /* (n_gradient), of all parameters, in slab order */
    int64_t n_gradient;
    int again; /* nodes that the plan computes twice */
} encoder_result;

typedef struct {
    int batches; /* 1 to 4 */
    size_t budget;
    unsigned debug;
    const ttn_tap *tap; /* one, or NULL */
} encoder_way;

void encoder_train(const encoder *e, ttn_device *d, const encoder_way *way, encoder_result *ret);
void encoder_free(encoder_result *r);

#endif
