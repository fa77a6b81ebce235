/* exact attention on CUDA: the online softmax of attn_exact.c, one block of threads for each tile of a sequence in a head.
 *
 *     forward   a tile of queries meets the sequence's keys tile by tile: running maximum m, sum l of exp(a - m), and the
 *               sum of exp(a - m) v, rescaled when m grows
 *     dq        a tile of queries meets the keys again, with p made from L
 *     dk, dv    a tile of keys meets the queries
 *
 * Each of dq, dk and dv is written by one block, which adds in the order of tiles: no atomics, the same bits every time.
 * Seven products a pair of tiles backward, where one sweep with atomics would have five.
 *
 * A block is 16 x 16 threads. Thread (x, y) owns MICRO x MICRO weights of a pair of tiles, rows y MICRO … and columns
 * x MICRO …; and of what a tile sums up, (TILE, D), the same rows and D / 16 columns. Operands come through shared memory
 * in slices, read 16 bytes at a time; in f32 a thread makes 16 multiply-adds of 32 bytes from there. A head wider than 128
 * is cut into pieces of 128 columns, one block each, which make the weights again. Static shared memory is 33 KiB (f32).
 *
 * No tensor cores: with TF32 or bf16 operands (mma m16n8k8, k16) slices would stay as they are in shared memory, a warp
 * would own 16 rows of weights, and the softmax would stay in registers between the two products; f32 keeps 24 bits, and
 * the tensor cores have no product that does.
 *
 * A sequence's tiles begin at its own first row, so its bits depend neither on its place in the batch nor on the rest of
 * it. Positions, dropout's words and the formulas are those of the CPU (attn_exact.h). */
#include <assert.h>
#include <limits.h>
#include "core/cuda.h"

#include "autograd/kernel_cuda.h"
#include "autograd/rows_cuda.h"
#include "autograd/ops/attn_exact.h"
#include "core/vecmath.h"

enum {
    Q,
    K,
    V,
    SIDE = 16, /* threads of a block each way */
    THREADS = SIDE * SIDE,
    VECTOR = 16 / sizeof(real), /* numbers of one access to memory */
    MICRO = VECTOR,             /* weights of a thread each way: 4 (f32), 2 (f64) */
    TILE = SIDE * MICRO,        /* rows of a tile: 64, 32 */
    SLICE = 32,                 /* columns of q and k at a time */
    STAGE = 2 * SLICE * TILE,   /* numbers of two slices: 16 KiB */
    WEIGHT_LD = TILE + VECTOR,  /* rows of weights begin in different banks */
    MOST_COLS = 128,            /* columns of a piece of a head at most */
};

/* 16 bytes, or less: what is read at once. */
template <int n> struct alignas(n * sizeof(real)) lanes {
    real at[n];
};
typedef lanes<VECTOR> vector;

/* Blocks that a multiprocessor should have room for, with 65,536 registers: two, when a thread's sums are `cols` columns or
 * fewer and need no more than 128 of them. Random words take too many. */
static constexpr int blocks_at_once(int cols, bool drops)
{
    return drops || cols > 128 ? 1 : 2;
}

/* ---- which tile ---- */

typedef struct {
    const real *q, *k, *v, *g; /* (N, C) */
    const real *lse, *delta;   /* (N, H); delta times s */
    const ttn_span *span;
    const int64_t *start;
    const uint64_t *sample;
    int64_t S, H, C;
    int D;
    int pieces; /* of a head */
    int causal;
    int aligned; /* rows of a head begin at multiples of 16 bytes */
    uint64_t key;
    ttn_attn_exact_rule rule;
} job;

/* Tiles have numbers that need no list: those of sequence s begin at first_s / TILE + s, since the sequences before it end
 * by row first_s. Some numbers are no tile. */
static inline int64_t tile_numbers(const ttn_feed *f)
{
    const ttn_span last = f->span[f->used.seqs - 1];
    return last.first / TILE + f->used.seqs - 1 + (last.n + TILE - 1) / TILE;
}

/* Positions in a sequence fit an int (TTN_MAX_POSITION). */
typedef struct {
    int64_t seq;
    int64_t first; /* its first row in the batch */
    int n;         /* its rows */
    int tile, T;   /* this tile, and how many there are */
    int head;
    int col, width; /* the piece's first column in the head, and how many it has */
} place;

/* False: this block has no tile. */
static __device__ bool find_place(const job &j, int64_t n_number, place *ret)
{
    const int b = (int)blockIdx.x / j.pieces;
    ret->head = (int)(b % j.H);
    ret->col = (int)blockIdx.x % j.pieces * MOST_COLS;
    ret->width = j.D - ret->col < MOST_COLS ? j.D - ret->col : MOST_COLS;
    /* the last tiles first: causal ones have the most to do */
    const int64_t number = n_number - 1 - b / j.H;
    int64_t before = 0; /* the last sequence whose numbers begin at or before this one */
    int64_t after = j.S;
    while (after - before > 1) {
        const int64_t middle = (before + after) / 2;
        if (j.span[middle].first / TILE + middle <= number)
            before = middle;
        else
            after = middle;
    }
    const ttn_span span = j.span[before];
    ret->seq = before;
    ret->first = span.first;
    ret->n = (int)span.n;
    ret->T = (ret->n + TILE - 1) / TILE;
    const int64_t tile = number - (span.first / TILE + before);
    ret->tile = (int)tile;
    return tile >= 0 && tile < ret->T;
}

/* ---- operands ---- */

/* Rows of a tile of x (N, C), one head's columns. */
typedef struct {
    const real *at;
    int live; /* rows; past them zeros are read */
} operand;

static __device__ operand rows_of(const job &j, const place &p, const real *x, int tile)
{
    const int rest = p.n - tile * TILE;
    operand o;
    o.at = x + (p.first + tile * TILE) * j.C + (int64_t)p.head * j.D;
    o.live = rest < TILE ? rest : TILE;
    return o;
}

/* Columns col, … col + VECTOR - 1 of row r; zeros where there is none. */
static __device__ vector read_vector(const job &j, const operand &o, int r, int col, int width)
{
    vector v;
    if (j.aligned && r < o.live && col + VECTOR <= width)
        return *reinterpret_cast<const vector *>(o.at + r * j.C + col);
    for (int i = 0; i < VECTOR; i++)
        v.at[i] = r < o.live && col + i < width ? o.at[r * j.C + col + i] : 0;
    return v;
}

/* Where element (row, column d) of a slice stands: columns are the long way, so that a thread's rows are one vector. The
 * rows of a column are exchanged by groups, else the threads that write a slice would all meet in four banks. */
static __device__ int spot(int d, int group)
{
    return d * TILE + (group ^ d / VECTOR % 8) * VECTOR;
}

/* Columns d0, … d0 + SLICE - 1. */
static __device__ void load_slice(const job &j, const operand &o, int d0, real *slice)
{
    enum { ACROSS = SLICE / VECTOR };
    for (int i = (int)threadIdx.x; i < TILE * ACROSS; i += THREADS) {
        const int r = i / ACROSS;
        const int d = i % ACROSS * VECTOR;
        const vector v = read_vector(j, o, r, d0 + d, j.D);
        for (int e = 0; e < VECTOR; e++)
            slice[spot(d + e, r / VECTOR) + r % VECTOR] = v.at[e];
    }
}

/* w[i][j] = sum over d of a[y MICRO + i, d] b[x MICRO + j, d]: rows and columns of this thread. stage is free afterwards
 * when all threads have come to the next barrier. */
static __device__ void weigh(const job &j, const operand &a, const operand &b, real *stage, real w[MICRO][MICRO])
{
    const int x = (int)threadIdx.x % SIDE;
    const int y = (int)threadIdx.x / SIDE;
#pragma unroll
    for (int i = 0; i < MICRO; i++)
#pragma unroll
        for (int e = 0; e < MICRO; e++)
            w[i][e] = 0;
    for (int d0 = 0; d0 < j.D; d0 += SLICE) {
        __syncthreads(); /* what was there has been read */
        load_slice(j, a, d0, stage);
        load_slice(j, b, d0, stage + SLICE * TILE);
        __syncthreads();
#pragma unroll 8
        for (int d = 0; d < SLICE; d++) {
            const vector of_a = *reinterpret_cast<const vector *>(stage + spot(d, y));
            const vector of_b = *reinterpret_cast<const vector *>(stage + SLICE * TILE + spot(d, x));
#pragma unroll
            for (int i = 0; i < MICRO; i++)
#pragma unroll
                for (int e = 0; e < MICRO; e++)
                    w[i][e] = ttn_fma(of_a.at[i], of_b.at[e], w[i][e]);
        }
    }
}

/* This thread's weights to where apply() finds them. Every thread must have read what was there. */
static __device__ void put_weights(const real w[MICRO][MICRO], real *weights)
{
    const int x = (int)threadIdx.x % SIDE;
    const int y = (int)threadIdx.x / SIDE;
    for (int i = 0; i < MICRO; i++) {
        vector v;
        for (int j = 0; j < MICRO; j++)
            v.at[j] = w[i][j];
        *reinterpret_cast<vector *>(weights + (y * MICRO + i) * WEIGHT_LD + x * MICRO) = v;
    }
}

/* COLS columns of a piece are PER to a thread, AT_ONCE beside one another. */
template <int COLS> struct columns {
    enum { PER = COLS / SIDE, AT_ONCE = PER < VECTOR ? PER : VECTOR };

    /* the first of the thread's columns number j, … j + AT_ONCE - 1; j is a multiple of AT_ONCE */
    static __device__ int at(int j)
    {
        return (j * SIDE + (int)threadIdx.x % SIDE * AT_ONCE);
    }
};

/* sum[i][j] += sum over t of weights[y MICRO + i, t] b[t, column j]. Begins with a barrier: the weights are there. The rows
 * on the stage are summed up by themselves first: in f32 the error of a sum over all rows of a long sequence, one after the
 * other, grows with their number. AT_ONCE columns at a time, so that these sums fit into registers beside the others. */
template <int COLS>
static __device__ void apply(const job &j, const real *weights, const operand &b, int col, int width, real *stage,
                             real sum[MICRO][COLS / SIDE])
{
    enum {
        PER = columns<COLS>::PER,
        AT_ONCE = columns<COLS>::AT_ONCE,
        ROWS = STAGE / COLS < TILE ? STAGE / COLS : TILE,
        ACROSS = COLS / VECTOR,
    };
    const int y = (int)threadIdx.x / SIDE;
    for (int t0 = 0; t0 < b.live; t0 += ROWS) {
        __syncthreads(); /* weights are there; what was on the stage has been read */
        for (int i = (int)threadIdx.x; i < ROWS * ACROSS; i += THREADS) {
            const int t = i / ACROSS;
            const int d = i % ACROSS * VECTOR;
            *reinterpret_cast<vector *>(stage + t * COLS + d) = read_vector(j, b, t0 + t, col + d, col + width);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < PER; k += AT_ONCE) {
            real part[MICRO][AT_ONCE];
#pragma unroll
            for (int i = 0; i < MICRO; i++)
#pragma unroll
                for (int e = 0; e < AT_ONCE; e++)
                    part[i][e] = 0;
#pragma unroll 1
            for (int t = 0; t < ROWS; t += VECTOR) {
                vector w[MICRO];
#pragma unroll
                for (int i = 0; i < MICRO; i++)
                    w[i] = *reinterpret_cast<const vector *>(weights + (y * MICRO + i) * WEIGHT_LD + t0 + t);
#pragma unroll
                for (int u = 0; u < VECTOR; u++) {
                    const lanes<AT_ONCE> of_b =
                        *reinterpret_cast<const lanes<AT_ONCE> *>(stage + (t + u) * COLS + columns<COLS>::at(k));
#pragma unroll
                    for (int i = 0; i < MICRO; i++)
#pragma unroll
                        for (int e = 0; e < AT_ONCE; e++)
                            part[i][e] = ttn_fma(w[i].at[u], of_b.at[e], part[i][e]);
                }
            }
#pragma unroll
            for (int i = 0; i < MICRO; i++)
#pragma unroll
                for (int e = 0; e < AT_ONCE; e++)
                    sum[i][k + e] += part[i][e];
        }
    }
}

/* x[row, column] = acc x + factor[row] sum, x (N, C). */
template <int COLS>
static __device__ void write_sums(const job &j, const place &p, const real sum[MICRO][COLS / SIDE],
                                  const real factor[MICRO], real acc, real *x)
{
    const int y = (int)threadIdx.x / SIDE;
    for (int i = 0; i < MICRO; i++) {
        const int r = p.tile * TILE + y * MICRO + i;
        if (r >= p.n) continue;
        real *row = x + (p.first + r) * j.C + (int64_t)p.head * j.D + p.col;
        for (int k = 0; k < columns<COLS>::PER; k++) {
            const int d = columns<COLS>::at(k - k % columns<COLS>::AT_ONCE) + k % columns<COLS>::AT_ONCE;
            if (d < p.width) row[d] = ttn_accumulate(acc, row[d], sum[i][k] * factor[i]);
        }
    }
}

template <int COLS> static __device__ void clear_sums(real sum[MICRO][COLS / SIDE])
{
    for (int i = 0; i < MICRO; i++)
        for (int k = 0; k < COLS / SIDE; k++)
            sum[i][k] = 0;
}

/* ---- weights ---- */

/* Row i of the sequence does not see its row t. */
static __device__ bool hidden(const job &j, const place &p, int i, int t)
{
    return t >= p.n || i >= p.n || (j.causal && t > i);
}

/* z of query i and keys t, t + 1, … t + MICRO - 1, counted from the sequence's first row. */
static __device__ void draw(const job &j, const place &p, uint64_t key_of_head, int i, int t, real z[MICRO])
{
    const int start = (int)j.start[p.seq];
    const uint64_t sample = j.sample[p.seq];
    int block = -1;
    uint32_t word[4] = {0, 0, 0, 0};
    for (int e = 0; e < MICRO; e++) {
        const int at = start + t + e;
        if (at / 4 != block) {
            block = at / 4;
            ttn_philox_at(key_of_head, sample, ttn_attn_exact_place(start + i, block), word);
        }
        const int which = at % 4;
        const uint32_t w = which < 2 ? (which == 0 ? word[0] : word[1]) : (which == 2 ? word[2] : word[3]);
        z[e] = ttn_attn_exact_kept(w, j.rule.threshold, j.rule.kept);
    }
}

/* Over the 16 threads of a row; each of them gets it. */
static __device__ real side_max(real x)
{
    for (int distance = SIDE / 2; distance > 0; distance /= 2) {
        const real other = __shfl_xor_sync(0xFFFFFFFFu, x, distance);
        x = other > x ? other : x;
    }
    return x;
}
static __device__ real side_sum(real x)
{
    for (int distance = SIDE / 2; distance > 0; distance /= 2)
        x += __shfl_xor_sync(0xFFFFFFFFu, x, distance);
    return x;
}

/* ---- forward ---- */

/* The softmax of a tile's rows so far, the same in the 16 threads of a row. */
typedef struct {
    real max[MICRO];
    double sum[MICRO]; /* in double, since it has up to 10^4 terms; its cost on a GPU is not measured */
} running;

/* a becomes exp(a - m) with the new m; factor: what sums so far are worth. */
static __device__ void soften(real a[MICRO][MICRO], running *s, real factor[MICRO])
{
    for (int i = 0; i < MICRO; i++) {
        real most = s->max[i];
        for (int j = 0; j < MICRO; j++)
            most = a[i][j] > most ? a[i][j] : most;
        most = side_max(most);
        real sum = 0;
        for (int j = 0; j < MICRO; j++) {
            a[i][j] = ttn_exp(a[i][j] - most);
            sum += a[i][j];
        }
        factor[i] = ttn_exp(s->max[i] - most);
        s->sum[i] = s->sum[i] * (double)factor[i] + (double)side_sum(sum);
        s->max[i] = most;
    }
}

template <int COLS, bool DROPS>
static __global__ void __launch_bounds__(THREADS, blocks_at_once(COLS, DROPS))
    forward_kernel(job j, int64_t n_number, real *lse, real *out)
{
    TTN_SMEM(vector, stage_memory, STAGE / VECTOR);
    TTN_SMEM(vector, weight_memory, TILE * WEIGHT_LD / VECTOR);
    real *stage = stage_memory[0].at;
    real *weights = weight_memory[0].at;
    place p;
    if (!find_place(j, n_number, &p)) return; /* the whole block */
    const int x = (int)threadIdx.x % SIDE;
    const int y = (int)threadIdx.x / SIDE;
    const uint64_t key_of_head = DROPS ? ttn_attn_exact_key(j.key, p.head) : 0;
    const operand q = rows_of(j, p, j.q, p.tile);
    const int row = p.tile * TILE + y * MICRO; /* this thread's first, in the sequence */
    running s;
    for (int i = 0; i < MICRO; i++) {
        s.max[i] = -(real)INFINITY;
        s.sum[i] = 0;
    }
    real sum[MICRO][COLS / SIDE];
    clear_sums<COLS>(sum);
    const int end = j.causal ? p.tile + 1 : p.T;
    for (int tile = 0; tile < end; tile++) {
        const int key = tile * TILE + x * MICRO;
        real a[MICRO][MICRO];
        real factor[MICRO];
        weigh(j, q, rows_of(j, p, j.k, tile), stage, a);
        for (int i = 0; i < MICRO; i++)
            for (int e = 0; e < MICRO; e++) {
                a[i][e] *= j.rule.scale;
                /* rows that only fill up a tile see what there is: nothing of theirs is kept, and m stays finite */
                if (key + e >= p.n || (j.causal && key + e > row + i)) a[i][e] = -(real)INFINITY;
            }
        soften(a, &s, factor);
        if (DROPS)
            for (int i = 0; i < MICRO; i++) {
                real z[MICRO];
                draw(j, p, key_of_head, row + i, key, z);
                for (int e = 0; e < MICRO; e++)
                    a[i][e] *= z[e];
            }
        for (int i = 0; i < MICRO; i++)
            for (int k = 0; k < COLS / SIDE; k++)
                sum[i][k] *= factor[i];
        put_weights(a, weights); /* weigh() had barriers since they were read */
        apply<COLS>(j, weights, rows_of(j, p, j.v, tile), p.col, p.width, stage, sum);
    }
    real inverse[MICRO];
    for (int i = 0; i < MICRO; i++) {
        inverse[i] = (real)(1 / s.sum[i]);
        if (x == 0 && p.col == 0 && row + i < p.n)
            lse[(p.first + row + i) * j.H + p.head] = (real)((double)s.max[i] + ttn_logd(s.sum[i]));
    }
    /* out may be q: this block alone reads these rows and columns of it, and has. (Of a head in pieces q is a copy.) */
    write_sums<COLS>(j, p, sum, inverse, 0, out);
}

/* ---- backward ---- */

/* s delta of each row and head: a warp for each row. */
static __global__ void delta_kernel(int64_t rows, int64_t H, int64_t D, real scale, const int64_t *seq_of_row,
                                    const real *out, const real *g, real *delta)
{
    for (int64_t r = ttn_warp_first(); r < rows; r += ttn_warp_stride()) {
        if (seq_of_row[r] < 0) continue; /* nobody looks there */
        for (int64_t h = 0; h < H; h++) {
            real sum = 0;
            for (int64_t i = (r * H + h) * D + ttn_lane(); i < (r * H + h + 1) * D; i += TTN_WARP)
                sum += g[i] * out[i];
            sum = ttn_warp_sum(sum);
            if (ttn_lane() == 0) delta[r * H + h] = scale * sum;
        }
    }
}

/* What backward knows of query number i of the sequence. */
static __device__ real of_query(const job &j, const place &p, const real *x, int i)
{
    return x && i < p.n ? x[(p.first + i) * j.H + p.head] : 0;
}

template <int COLS, bool DROPS>
static __global__ void __launch_bounds__(THREADS, blocks_at_once(COLS, DROPS))
    queries_kernel(job j, int64_t n_number, real acc, real *dq)
{
    TTN_SMEM(vector, stage_memory, STAGE / VECTOR);
    TTN_SMEM(vector, weight_memory, TILE * WEIGHT_LD / VECTOR);
    real *stage = stage_memory[0].at;
    real *weights = weight_memory[0].at;
    place p;
    if (!find_place(j, n_number, &p)) return;
    const int x = (int)threadIdx.x % SIDE;
    const int y = (int)threadIdx.x / SIDE;
    const uint64_t key_of_head = DROPS ? ttn_attn_exact_key(j.key, p.head) : 0;
    const operand q = rows_of(j, p, j.q, p.tile);
    const operand g = rows_of(j, p, j.g, p.tile);
    const int row = p.tile * TILE + y * MICRO;
    real lse[MICRO];
    real delta[MICRO];
    real one[MICRO];
    for (int i = 0; i < MICRO; i++) {
        lse[i] = of_query(j, p, j.lse, row + i);
        delta[i] = of_query(j, p, j.delta, row + i);
        one[i] = 1;
    }
    real sum[MICRO][COLS / SIDE];
    clear_sums<COLS>(sum);
    const int end = j.causal ? p.tile + 1 : p.T;
    for (int tile = 0; tile < end; tile++) {
        const int key = tile * TILE + x * MICRO;
        const operand k = rows_of(j, p, j.k, tile);
        real a[MICRO][MICRO];
        real b[MICRO][MICRO];
        weigh(j, q, k, stage, a);
        weigh(j, g, rows_of(j, p, j.v, tile), stage, b);
        for (int i = 0; i < MICRO; i++) {
            real z[MICRO];
            for (int e = 0; e < MICRO; e++)
                z[e] = 1;
            if (DROPS) draw(j, p, key_of_head, row + i, key, z);
            for (int e = 0; e < MICRO; e++) {
                const real weight = ttn_exp(j.rule.scale * a[i][e] - lse[i]);
                const real slope = ttn_attn_exact_slope(weight, z[e], b[i][e], j.rule.scale, delta[i]);
                a[i][e] = hidden(j, p, row + i, key + e) ? 0 : slope;
            }
        }
        put_weights(a, weights); /* weigh() had barriers since they were read */
        apply<COLS>(j, weights, k, p.col, p.width, stage, sum);
    }
    /* dq may be g, of which this block alone reads these rows and columns, or a copy is read */
    write_sums<COLS>(j, p, sum, one, acc, dq);
}

/* Weights are the other way round here: a thread's rows are keys, its columns queries. dk, dv: NULL: not wanted. */
template <int COLS, bool DROPS>
static __global__ void __launch_bounds__(THREADS, blocks_at_once(2 * COLS, DROPS))
    keys_kernel(job j, int64_t n_number, real acc_k, real *dk, real acc_v, real *dv)
{
    TTN_SMEM(vector, stage_memory, STAGE / VECTOR);
    TTN_SMEM(vector, weight_memory, TILE * WEIGHT_LD / VECTOR);
    real *stage = stage_memory[0].at;
    real *weights = weight_memory[0].at;
    place p;
    if (!find_place(j, n_number, &p)) return;
    const int x = (int)threadIdx.x % SIDE;
    const int y = (int)threadIdx.x / SIDE;
    const uint64_t key_of_head = DROPS ? ttn_attn_exact_key(j.key, p.head) : 0;
    const operand k = rows_of(j, p, j.k, p.tile);
    const int key = p.tile * TILE + y * MICRO;
    real one[MICRO];
    for (int i = 0; i < MICRO; i++)
        one[i] = 1;
    real sum_k[MICRO][COLS / SIDE];
    real sum_v[MICRO][COLS / SIDE];
    clear_sums<COLS>(sum_k);
    clear_sums<COLS>(sum_v);
    for (int tile = j.causal ? p.tile : 0; tile < p.T; tile++) {
        const int row = tile * TILE + x * MICRO;
        const operand q = rows_of(j, p, j.q, tile);
        const operand g = rows_of(j, p, j.g, tile);
        real a[MICRO][MICRO];
        real b[MICRO][MICRO];
        weigh(j, k, q, stage, a);
        if (dk) weigh(j, rows_of(j, p, j.v, p.tile), g, stage, b);
        for (int e = 0; e < MICRO; e++) {
            const real lse = of_query(j, p, j.lse, row + e);
            const real delta = of_query(j, p, j.delta, row + e);
            real z[MICRO];
            for (int i = 0; i < MICRO; i++)
                z[i] = 1;
            if (DROPS) draw(j, p, key_of_head, row + e, key, z);
            for (int i = 0; i < MICRO; i++) {
                const bool none = hidden(j, p, row + e, key + i);
                const real weight = none ? 0 : ttn_exp(j.rule.scale * a[i][e] - lse);
                a[i][e] = weight * z[i];
                if (dk) b[i][e] = none ? 0 : ttn_attn_exact_slope(weight, z[i], b[i][e], j.rule.scale, delta);
            }
        }
        if (dv) {
            put_weights(a, weights); /* weigh() had barriers since they were read */
            apply<COLS>(j, weights, g, p.col, p.width, stage, sum_v);
            __syncthreads(); /* they have been read again */
        }
        if (dk) {
            put_weights(b, weights);
            apply<COLS>(j, weights, q, p.col, p.width, stage, sum_k);
        }
    }
    /* in this order: both may be one buffer */
    if (dk) write_sums<COLS>(j, p, sum_k, one, acc_k, dk);
    if (dv) write_sums<COLS>(j, p, sum_v, one, acc_v, dv);
}

/* ---- the host's side ---- */

static int pieces_of(int64_t D)
{
    return (int)((D + MOST_COLS - 1) / MOST_COLS);
}

/* Scratch: a copy of q, or of g, where an output lies over it and other blocks still read there; backward: s delta. */
typedef struct {
    real *copy;  /* (N, C) */
    real *delta; /* (N, H) */
    size_t bytes;
} scratch;

static scratch lay_out(const ttn_sig *s, ttn_pass pass, void *work)
{
    const int64_t N = s->in[Q].dim[0];
    const int64_t C = s->in[Q].dim[1];
    const int64_t H = static_cast<const ttn_attn_exact_options *>(s->attr)->heads;
    char *base = static_cast<char *>(work);
    scratch t = {};
    if (pass == TTN_BACKWARD || pieces_of(C / H) > 1) {
        t.copy = reinterpret_cast<real *>(base);
        t.bytes = ttn_work_align((size_t)(N * C) * sizeof(real));
    }
    if (pass == TTN_BACKWARD) {
        t.delta = reinterpret_cast<real *>(base ? base + t.bytes : NULL);
        t.bytes += ttn_work_align((size_t)(N * H) * sizeof(real));
    }
    return t;
}

extern "C" size_t ttn_cuda_attn_exact_work(const ttn_sig *s, ttn_pass pass)
{
    return lay_out(s, pass, NULL).bytes;
}

static int is_aligned(const void *x)
{
    return !x || reinterpret_cast<uintptr_t>(x) % sizeof(vector) == 0;
}

static job start(const ttn_call *c)
{
    const ttn_attn_exact_options *a = static_cast<const ttn_attn_exact_options *>(c->sig->attr);
    job j = {};
    j.q = static_cast<const real *>(c->in[Q]);
    j.k = static_cast<const real *>(c->in[K]);
    j.v = static_cast<const real *>(c->in[V]);
    j.g = static_cast<const real *>(c->dout[0]);
    j.lse = static_cast<const real *>(c->aux[0]);
    j.span = c->on_device.span;
    j.start = c->on_device.start;
    j.sample = c->on_device.sample;
    j.S = c->feed->used.seqs;
    j.H = a->heads;
    j.C = c->sig->in[Q].dim[1];
    assert(j.C / j.H <= INT_MAX);
    j.D = (int)(j.C / j.H);
    j.pieces = pieces_of(j.D);
    j.causal = a->causal != 0;
    j.key = c->key;
    j.rule = ttn_attn_exact_rule_of(c);
    j.aligned = j.D % VECTOR == 0 && is_aligned(j.q) && is_aligned(j.k) && is_aligned(j.v) && is_aligned(j.g);
    return j;
}

/* How many blocks; 2^31 of them would be 2^37 numbers in q. */
static unsigned blocks_of(const job &j, int64_t n_number)
{
    const int64_t blocks = n_number * j.H * j.pieces;
    assert(blocks <= INT_MAX);
    return (unsigned)blocks;
}

static ttn_status copy_of(const ttn_call *c, const real *x, real *copy, ttn_error *err)
{
    return c->on->device->ops->copy(c->on, copy, x, ttn_desc_bytes(&c->sig->in[Q]), err);
}

/* The kernel for this width of a head. */
template <bool DROPS> static ttn_status attend(const ttn_call *c, const job &j, real *lse, real *out, ttn_error *err)
{
    const int64_t n_number = tile_numbers(c->feed);
    const unsigned blocks = blocks_of(j, n_number);
    if (j.D <= 32)
        return TTN_LAUNCH((forward_kernel<32, DROPS>), blocks, THREADS, 0, c->on, err, j, n_number, lse, out);
    if (j.D <= 64)
        return TTN_LAUNCH((forward_kernel<64, DROPS>), blocks, THREADS, 0, c->on, err, j, n_number, lse, out);
    return TTN_LAUNCH((forward_kernel<MOST_COLS, DROPS>), blocks, THREADS, 0, c->on, err, j, n_number, lse, out);
}

extern "C" ttn_status ttn_cuda_attn_exact_forward(const ttn_call *c, ttn_error *err)
{
    real *out = static_cast<real *>(c->out[0]);
    real *lse = static_cast<real *>(c->aux[0]);
    ttn_status status = TTN_OK;
    if (c->feed->used.seqs > 0) {
        job j = start(c);
        if (j.pieces > 1 && out == j.q) {
            real *copy = lay_out(c->sig, TTN_FORWARD, c->work).copy;
            status = copy_of(c, j.q, copy, err);
            j.q = copy;
        }
        if (status != TTN_OK) return status;
        status = j.rule.drops ? attend<true>(c, j, lse, out, err) : attend<false>(c, j, lse, out, err);
    }
    if (status == TTN_OK) status = ttn_cuda_zero_others(c, &c->sig->out[0], out, err);
    if (status == TTN_OK) status = ttn_cuda_zero_others(c, &c->sig->aux[0], lse, err);
    return status;
}

/* dq first: it may have one buffer with dk or dv, and gradients are written in the order of the inputs. */
template <int COLS, bool DROPS> static ttn_status sweep(const ttn_call *c, const job &j, ttn_error *err)
{
    const int64_t n_number = tile_numbers(c->feed);
    const unsigned blocks = blocks_of(j, n_number);
    real *dq = static_cast<real *>(c->din[Q]);
    real *dk = static_cast<real *>(c->din[K]);
    real *dv = static_cast<real *>(c->din[V]);
    ttn_status status = TTN_OK;
    if (dq)
        status = TTN_LAUNCH((queries_kernel<COLS, DROPS>), blocks, THREADS, 0, c->on, err, j, n_number, c->acc[Q], dq);
    if ((dk || dv) && status == TTN_OK)
        status = TTN_LAUNCH((keys_kernel<COLS, DROPS>), blocks, THREADS, 0, c->on, err, j, n_number, c->acc[K], dk,
                            c->acc[V], dv);
    return status;
}

template <bool DROPS> static ttn_status sweep_of_width(const ttn_call *c, const job &j, ttn_error *err)
{
    if (j.D <= 32) return sweep<32, DROPS>(c, j, err);
    if (j.D <= 64) return sweep<64, DROPS>(c, j, err);
    return sweep<MOST_COLS, DROPS>(c, j, err);
}

/* Some din lies over dout, and another block, or a later kernel, reads dout where it is written. */
static int copies_g(const ttn_call *c, const job &j)
{
    const void *g = c->dout[0];
    const int others = c->din[K] || c->din[V] || j.pieces > 1;
    return (c->din[Q] == g && others) || c->din[K] == g || c->din[V] == g;
}

static ttn_status gradients(const ttn_call *c, ttn_error *err)
{
    job j = start(c);
    const scratch work = lay_out(c->sig, TTN_BACKWARD, c->work);
    const int64_t N = c->sig->in[Q].dim[0];
    ttn_status status = TTN_OK;
    if (copies_g(c, j)) {
        status = copy_of(c, j.g, work.copy, err);
        j.g = work.copy;
    }
    if ((c->din[Q] || c->din[K]) && status == TTN_OK) {
        j.delta = work.delta;
        status = TTN_LAUNCH(delta_kernel, ttn_row_blocks(N), TTN_ROW_THREADS, 0, c->on, err, N, j.H, j.D, j.rule.scale,
                            c->on_device.seq_of_row, static_cast<const real *>(c->out[0]), j.g, work.delta);
    }
    if (status != TTN_OK) return status;
    return j.rule.drops ? sweep_of_width<true>(c, j, err) : sweep_of_width<false>(c, j, err);
}

extern "C" ttn_status ttn_cuda_attn_exact_backward(const ttn_call *c, ttn_error *err)
{
    if (!c->din[Q] && !c->din[K] && !c->din[V]) return TTN_OK;
    ttn_status status = c->feed->used.seqs > 0 ? gradients(c, err) : TTN_OK;
    for (int i = Q; i <= V && status == TTN_OK; i++)
        if (c->din[i] && c->acc[i] == 0)
            status = ttn_cuda_zero_others(c, &c->sig->in[i], static_cast<real *>(c->din[i]), err);
    return status;
}
