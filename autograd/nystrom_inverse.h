/* Z, close to the pseudo-inverse of a small matrix A, and its gradient: what Nystrom attention puts between its two factors.
 * One matrix a call, on the calling thread.
 *
 * A (M, M) is square, its rows add up to 1 and have no element below 0 (a softmax). In memory it and every other matrix here
 * has `ld` rows and columns, of which those past M hold zeros, going in and coming out.
 *
 *     cheb     Z <- Z (3 I - P (3 I - P)),                        P = A Z     residuals r of I - P become r^3
 *     razavi   Z <- Z (13 I - P (15 I - P (7 I - P))) / 4         (3 r^3 + r^4) / 4: the papers' and the published models'
 *     exact    Z = (A^T A + lambda I)^-1 A^T, by Cholesky, in double in both builds
 *
 * The first two start from Z_0 = A^T / c. c is the largest column sum of A, ||A||_1, and ||A||_inf is 1, so that no eigenvalue
 * of A Z_0 is above 1. (The published code takes the largest c of all heads of all sequences of a batch: then a sequence's
 * result depends on its neighbours, and heads with a smaller c converge more slowly.) */
#ifndef TTN_NYSTROM_INVERSE_H
#define TTN_NYSTROM_INVERSE_H

#include <stddef.h>
#include <stdint.h>
#include "autograd/op.h"
#include "autograd/ops.h"
#include "core/real.h"

typedef struct {
    int64_t m, ld;
    ttn_pinv kind;
    int iterations; /* of cheb and razavi */
    double lambda;  /* of exact; at least 0 */
} ttn_inverse;

/* Rounding in directions that A does not have grows by 3 a step: in f32, 12 steps are as many as leave digits. */
enum { TTN_INVERSE_CHEB_STEPS = 8, TTN_INVERSE_RAZAVI_STEPS = 6, TTN_INVERSE_MOST_STEPS = 12 };

/* Where the iteration starts: the first column of the largest sum. */
typedef struct {
    real sum;
    int64_t column;
} ttn_inverse_start;
ttn_inverse_start ttn_inverse_start_of(const ttn_inverse *v, const real *a);

/* How many matrices (ld, ld) backward wants to have been kept: every iterate, of which the last is Z. */
int64_t ttn_inverse_kept(const ttn_inverse *v);

/* Bytes of scratch. */
size_t ttn_inverse_work(const ttn_inverse *v, ttn_pass pass);

/* z: Z; with `keep` (ttn_inverse_kept, ld, ld), of which the last is Z. c: the start's sum. An A that is not finite gives a Z
 * that is not. Returns 0; or, in the kind exact, the number of the pivot (from 1) that is not above 0, when A^T A + lambda I
 * is too close to singular, and z is not defined. */
int ttn_inverse_forward(const ttn_inverse *v, const real *a, real c, int keep, real *z, void *work);

/* da = the gradient of A through every step, given dz, which is lost, and z as kept, of which the last is not looked at (da may
 * lie there); but not through c:
 * *ret_start = sum of dZ_0 * A^T, elementwise, and the gradient of c, -*ret_start / c^2, belongs to A's column that gave it. */
void ttn_inverse_backward(const ttn_inverse *v, const real *a, real c, const real *z, real *dz, real *da,
                          double *ret_start, void *work);

/* ||A - A Z A||_F / ||A||_F, which is 0 for the pseudo-inverse even where there is no inverse; and the largest sum of a row's
 * absolute values in Z: how far an element of C may be amplified in Z C. work: as of forward. */
void ttn_inverse_measure(const ttn_inverse *v, const real *a, const real *z, double *ret_residual, double *ret_norm,
                         void *work);

/* Arithmetic of forward, of making the iterates again, and of backward itself. */
typedef struct {
    double forward, remake, backward;
} ttn_inverse_flops;
ttn_inverse_flops ttn_inverse_cost(const ttn_inverse *v);

#endif
