/* Ops for tests: small, written out by hand, and not in the registry.
 *
 * They stand for what the registry's ops do not have yet: several outputs, an optional input, spare aux, statistics with
 * every fold, a kernel that fails.
 */
#ifndef TTN_TOY_H
#define TTN_TOY_H

#include "autograd/graph_impl.h"

/* y0 = 2 x, y1 = 3 x, any shape.   dx = 2 dy0 + 3 dy1, either of which may be missing */
extern const ttn_op toy_pair;
int toy_pair_of(ttn_graph *g, const char *name, int x);

/* y = x + b where b (the same shape) is there, y = x where it is not.   dx = dy   db = dy */
extern const ttn_op toy_maybe;
int toy_maybe_of(ttn_graph *g, const char *name, int x, int b);

/* y = 2 a + 3 b.   da = 2 dy   db = 3 dy, either of which may be written over dy when it is the last one wanted */
extern const ttn_op toy_blend;
int toy_blend_of(ttn_graph *g, const char *name, int a, int b);

/* y = x where the first word of the node's random stream at (sample, position) is even, else 0. Keeps no mask. */
extern const ttn_op toy_mask;
int toy_mask_of(ttn_graph *g, const char *name, int x);

/* y = h^2, h = x + 1, elementwise; h is a spare aux: kept, or made again in backward.   dx = 2 h dy.
 * Statistics: the sum, least and largest of the used part of y. */
extern const ttn_op toy_square;
int toy_square_of(ttn_graph *g, const char *name, int x);

/* y = x, but the kernel fails with TTN_EFORMAT, "toy: row 3 is odd", when feed.step is `step` (in the pass `pass`). */
typedef struct {
    int64_t step;
    ttn_pass pass;
} toy_failing_attr;
extern const ttn_op toy_failing;
int toy_failing_of(ttn_graph *g, const char *name, int x, toy_failing_attr attr);

/* y = the sum over the used rows of x, a scalar.   dx = dy */
extern const ttn_op toy_sum;
int toy_sum_of(ttn_graph *g, const char *name, int x);

/* y = sum over the used rows of x w, the same shape, a scalar.   dx = dy w: a loss with a given gradient; w has none */
extern const ttn_op toy_dot;
int toy_dot_of(ttn_graph *g, const char *name, int x, int w);

/* y (N, C) = x, a parameter (N, C) of fixed shape.   dx = dy: so that a gradient by rows can be read as a weight's */
extern const ttn_op toy_rows;
int toy_rows_of(ttn_graph *g, const char *name, int x);

#endif
