/* Random projections: uniform directions, orthogonal by blocks of D, and their lengths.
 *
 * A block is the Q of a Gaussian matrix A = Q R, each column of Q multiplied by the sign of R's diagonal element. Q is then
 * uniform among orthogonal matrices (F. Mezzadri: How to generate random matrices from the classical compact groups. Notices
 * AMS 54, 2007). Without the signs it is not: an algorithm's R has signs of its own, a column's direction leans to one side,
 * and along (1, …, 1) the estimate of exp(x.y) at |x + y| = 2 is 0.65 (D 8) to 0.86 (D 64) of the truth, which the
 * published implementations have.
 *
 * Householder's reflections in plain loops and in double, not LAPACK: the numbers do not depend on the BLAS that is loaded
 * (0.5 ms for a block at D 64). */
#include <math.h>
#include <string.h>
#include "autograd/ops/favor_draw.h"
#include "core/memory.h"
#include "core/rng.h"

int64_t ttn_favor_default_features(int64_t D)
{
    const double wanted = fmax((double)D, (double)D * log((double)D));
    return ((int64_t)ceil(wanted) + 15) / 16 * 16;
}

/* Elements first, first + 1, … of a stream of normal numbers, in double in both builds. first and n may be odd. */
static void normals(uint64_t key, int64_t first, int64_t n, double *x)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t word[4];
        double z[2];
        ttn_philox_at(key, 0, (uint64_t)(first + i) / 2, word);
        ttn_philox_normal(word, z);
        x[i] = z[(first + i) % 2];
    }
}

static double dot(const double *x, const double *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* x (I - 2 v v^T / v.v) */
static void reflect(const double *v, double vv, int64_t n, double *x)
{
    if (vv == 0) return;
    const double factor = 2 * dot(v, x, n) / vv;
    for (int64_t i = 0; i < n; i++)
        x[i] -= factor * v[i];
}

/* Q (D, D), column after column, of a Gaussian A (D, D), column after column, which is lost; room: (2 D). */
static void orthogonal(int64_t D, double *A, double *Q, double *room)
{
    double *diagonal = room; /* of R */
    double *vv = room + D;
    for (int64_t k = 0; k < D; k++) { /* column k of A becomes the vector of reflection k, from element k on */
        double *v = A + k * D + k;
        const int64_t n = D - k;
        const double norm = sqrt(dot(v, v, n));
        diagonal[k] = v[0] > 0 ? -norm : norm; /* the sign that cancels nothing */
        v[0] -= diagonal[k];
        vv[k] = dot(v, v, n);
        for (int64_t c = k + 1; c < D; c++)
            reflect(v, vv[k], n, A + c * D + k);
    }
    for (int64_t c = 0; c < D; c++) {
        double *q = Q + c * D;
        memset(q, 0, (size_t)D * sizeof *q);
        q[c] = 1;
        for (int64_t k = c; k >= 0; k--)
            reflect(A + k * D + k, vv[k], D - k, q + k);
        const double sign = diagonal[c] < 0 ? -1 : 1;
        for (int64_t i = 0; i < D; i++)
            q[i] *= sign;
    }
}

ttn_status ttn_favor_draw(uint64_t key, int64_t head, int64_t m, int64_t D, const ttn_attn_favor_options *o, double *W,
                          ttn_error *err)
{
    const uint64_t directions = ttn_rng_key(key, (uint64_t)head, 0);
    const uint64_t lengths = ttn_rng_key(key, (uint64_t)head, 1);
    double *room = ttn_alloc_or_say(2 * D * D + 3 * D, sizeof *room, "a random projection", err);
    if (!room) return TTN_ENOMEM;
    double *Q = room + D * D;
    double *spare = Q + D * D;
    for (int64_t first = 0; first < m; first += D) {
        const int64_t rows = m - first < D ? m - first : D;
        normals(directions, first * D, D * D, o->independent ? Q : room);
        if (!o->independent) orthogonal(D, room, Q, spare);
        memcpy(W + first * D, Q, (size_t)(rows * D) * sizeof *W);
    }
    for (int64_t row = 0; row < m; row++) {
        double *w = W + row * D;
        const int fresh = o->lengths == TTN_FAVOR_CHI;
        if (fresh && o->independent) continue; /* they have their lengths */
        double length = sqrt((double)D);
        if (fresh) {
            normals(lengths, row * D, D, spare);
            length = sqrt(dot(spare, spare, D));
        }
        const double factor = length / sqrt(dot(w, w, D));
        for (int64_t i = 0; i < D; i++)
            w[i] *= factor;
    }
    ttn_free(room);
    return TTN_OK;
}
