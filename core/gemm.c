#include <assert.h>
#include <string.h>
#include "core/gemm.h"

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t div_up(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

/* Tiles of a matrix with so many rows, and how many rows one of them has: all of TTN_ROW_TILE but perhaps the last. */
static int64_t n_tiles(int64_t rows)
{
    return div_up(rows, TTN_ROW_TILE);
}

static int64_t tile_rows(int64_t rows, int64_t tile)
{
    return smaller(TTN_ROW_TILE, rows - tile * TTN_ROW_TILE);
}

/* ---- row by row ---- */

/* A call packs its rows of A again for each piece of columns: pieces of 512 cost 5 to 14 % of the rate, of 1,024 3 to 8,
 * of 2,048 nothing that could be seen. They are there for many cores: with few row tiles a core each would wait. */
enum { COL_PIECE = 2048 };

static int64_t n_pieces(int64_t n)
{
    return div_up(n, COL_PIECE);
}

/* Where piece p begins: pieces of nearly the same width, in whole steps of what kernels compute at once. */
static int64_t piece_at(int64_t n, int64_t p)
{
    enum { STEP = 64 };
    return smaller(n, div_up(div_up(n, n_pieces(n)), STEP) * STEP * p);
}

static void zero_rows(int64_t n_row, int64_t n, ttn_mat_out c)
{
    for (int64_t r = 0; r < n_row; r++)
        memset(ttn_out_from(c, r, 0).at, 0, (size_t)n * ttn_dtype_size(c.type));
}

void ttn_gemm_rows(int n_thread, ttn_trans tb, int64_t rows, int64_t used, int64_t n, int64_t k, ttn_mat_in a,
                   ttn_mat_in b, double beta, ttn_mat_out c)
{
    assert(n_thread >= 1 && used >= 0 && used <= rows && (beta == 0 || beta == 1));
    if (n == 0) return;
    const int64_t tiles = n_tiles(rows);
    const int64_t live = n_tiles(used);
    const int64_t pieces = n_pieces(n);

#pragma omp parallel num_threads(n_thread)
    {
        /* static: a thread computes the rows that it, or its neighbour in an elementwise loop, has touched before */
#pragma omp for schedule(static) nowait
        for (int64_t task = 0; task < live * pieces; task++) {
            int64_t tile = task / pieces;
            int64_t from = piece_at(n, task % pieces);
            int64_t to = piece_at(n, task % pieces + 1);
            ttn_mat_in columns = tb == TTN_T ? ttn_in_from(b, from, 0) : ttn_in_from(b, 0, from);
            ttn_gemm(TTN_N, tb, tile_rows(rows, tile), to - from, k, 1, ttn_in_from(a, tile * TTN_ROW_TILE, 0), columns,
                     beta, ttn_out_from(c, tile * TTN_ROW_TILE, from));
        }
#pragma omp for schedule(static)
        for (int64_t tile = live; tile < tiles; tile++)
            if (beta == 0) zero_rows(tile_rows(rows, tile), n, ttn_out_from(c, tile * TTN_ROW_TILE, 0));
    }
}

/* ---- sums over rows: weights ---- */

enum { OUT_TILE = 512 }; /* of a weight, for the count of lanes */

int64_t ttn_gemm_wgrad_lanes(int64_t rows, int64_t o, int64_t i)
{
    int64_t out_tiles = larger(1, div_up(o, OUT_TILE) * div_up(i, OUT_TILE));
    return larger(1, smaller(TTN_MAX_LANES / out_tiles, div_up(rows, TTN_LANE_ROWS)));
}

size_t ttn_gemm_wgrad_work(int64_t rows, int64_t o, int64_t i)
{
    return (size_t)(ttn_gemm_wgrad_lanes(rows, o, i) * o * i) * sizeof(real);
}

/* 512 x 1,024 outputs a call: with 512 x 512 X or dY is packed more often than it must be, 5 to 10 % slower. Where that
 * makes few tasks (a small weight, few rows) 256 x 1,024: 3 % slower on one thread, but five tasks keep two threads busy
 * for only five sixths of the time. 128 x 1,024 would be 10 to 20 % slower. */
static void cut_weight(ttn_wgrad *w)
{
    enum { WIDTH = 1024, TASKS = 8, SMALLEST = 256 };
    const int64_t n_i = div_up(w->i, WIDTH);
    w->piece_i = WIDTH;
    w->piece_o = OUT_TILE;
    w->n_piece = div_up(w->o, w->piece_o) * n_i;
    while (w->piece_o > SMALLEST && w->lanes * w->n_piece < TASKS) {
        w->piece_o /= 2;
        w->n_piece = div_up(w->o, w->piece_o) * n_i;
    }
}

/* Lane's tiles: from its first to before the next one's. */
static int64_t lane_first(int64_t tiles, int64_t lanes, int64_t lane)
{
    return tiles * lane / lanes;
}

ttn_wgrad ttn_wgrad_begin(int64_t rows, int64_t used, int64_t o, int64_t i, void *work)
{
    assert(used >= 0 && used <= rows);
    ttn_wgrad w = {.rows = rows, .used = used, .o = o, .i = i, .part = work};
    w.lanes = ttn_gemm_wgrad_lanes(rows, o, i);
    /* Lanes with nothing to add are the last ones: the tree over those before them is the whole tree with zeros left out. */
    while (w.live < w.lanes && lane_first(n_tiles(rows), w.lanes, w.live) < n_tiles(used))
        w.live++;
    cut_weight(&w);
    return w;
}

/* The largest lane whose first tile, floor(tiles lane / lanes), is not past this one. */
int64_t ttn_wgrad_lane(const ttn_wgrad *w, int64_t tile)
{
    return ((tile + 1) * w->lanes - 1) / n_tiles(w->rows);
}

static int64_t lane_end(const ttn_wgrad *w, int64_t lane)
{
    return smaller(n_tiles(w->used), lane_first(n_tiles(w->rows), w->lanes, lane + 1));
}

int64_t ttn_wgrad_next(const ttn_wgrad *w, ttn_wgrad_place *at)
{
    const int64_t rounds = div_up(n_tiles(w->rows), w->lanes);
    for (; at->round < rounds; at->round++) {
        while (at->lane < w->live) {
            const int64_t lane = at->lane++;
            const int64_t tile = lane_first(n_tiles(w->rows), w->lanes, lane) + at->round;
            if (tile < lane_end(w, lane)) return tile;
        }
        at->lane = 0;
    }
    return -1;
}

void ttn_wgrad_add(const ttn_wgrad *w, int64_t tile, int64_t piece, ttn_mat_in dy, ttn_mat_in x)
{
    const int64_t across = div_up(w->i, w->piece_i);
    const int64_t at_o = piece / across * w->piece_o;
    const int64_t at_i = piece % across * w->piece_i;
    const int64_t lane = ttn_wgrad_lane(w, tile);
    const int begins = tile == lane_first(n_tiles(w->rows), w->lanes, lane);
    ttn_gemm(TTN_T, TTN_N, smaller(w->piece_o, w->o - at_o), smaller(w->piece_i, w->i - at_i), tile_rows(w->rows, tile),
             1, ttn_in_from(dy, 0, at_o), ttn_in_from(x, 0, at_i), begins ? 0 : 1,
             ttn_out(w->part + (lane * w->o + at_o) * w->i + at_i, w->i));
}

/* n numbers of each lane, `apart` from lane to lane: the sum ends in lane 0. */
static void add_lanes(int64_t lanes, int64_t apart, int64_t n, real *part)
{
    for (int64_t step = 1; step < lanes; step *= 2)
        for (int64_t lane = 0; lane + step < lanes; lane += 2 * step) {
            real *to = part + lane * apart;
            const real *from = part + (lane + step) * apart;
            for (int64_t e = 0; e < n; e++)
                to[e] += from[e];
        }
}

/* A tile past `used` would add zeros, and so is left out with the same bits, but for one case: -0 + 0 is 0, and a result
 * that was flushed to -0 stays so without the tile. The closing + 0 makes both 0. */
static void put_row(int64_t n, double acc, const real *part, real *dw)
{
    if (acc == 0)
        for (int64_t e = 0; e < n; e++)
            dw[e] = part[e] + (real)0;
    else
        for (int64_t e = 0; e < n; e++)
            dw[e] = (dw[e] + part[e]) + (real)0;
}

void ttn_wgrad_end(const ttn_wgrad *w, int n_thread, double acc, ttn_mat_out dw)
{
    assert(n_thread >= 1 && (acc == 0 || acc == 1));
    assert(ttn_dtype_stored(dw.type) == ttn_dtype_stored(TTN_REAL));
    const int64_t i = w->i;
    /* a row of the weight at a time: small enough to stay in the first cache through all lanes */
#pragma omp parallel for num_threads(n_thread) schedule(static)
    for (int64_t row = 0; row < w->o; row++) {
        real *part = w->part + row * i;
        if (w->live == 0) memset(part, 0, (size_t)i * sizeof *part);
        add_lanes(w->live, w->o * i, i, part);
        put_row(i, acc, part, ttn_out_from(dw, row, 0).at);
    }
}

void ttn_gemm_wgrad(int n_thread, int64_t rows, int64_t used, int64_t o, int64_t i, ttn_mat_in dy, ttn_mat_in x,
                    double acc, ttn_mat_out dw, void *work)
{
    const ttn_wgrad w = ttn_wgrad_begin(rows, used, o, i, work);
#pragma omp parallel for collapse(2) num_threads(n_thread) schedule(static)
    for (int64_t lane = 0; lane < w.live; lane++)
        for (int64_t piece = 0; piece < w.n_piece; piece++)
            for (int64_t tile = lane_first(n_tiles(rows), w.lanes, lane); tile < lane_end(&w, lane); tile++)
                ttn_wgrad_add(&w, tile, piece, ttn_in_from(dy, tile * TTN_ROW_TILE, 0),
                              ttn_in_from(x, tile * TTN_ROW_TILE, 0));
    ttn_wgrad_end(&w, n_thread, acc, dw);
}

/* ---- sums over rows: biases ---- */

static int64_t sum_lanes(int64_t rows)
{
    return larger(1, smaller(TTN_MAX_LANES, n_tiles(rows)));
}

size_t ttn_sum_rows_work(int64_t rows, int64_t cols)
{
    return (size_t)(sum_lanes(rows) * cols) * sizeof(double);
}

static void add_row(int64_t n, const real *x, double *sum)
{
    for (int64_t e = 0; e < n; e++)
        sum[e] += (double)x[e];
}

void ttn_sum_rows(int n_thread, int64_t rows, int64_t used, int64_t cols, ttn_mat_in x, double acc, real *sum,
                  void *work)
{
    assert(n_thread >= 1 && used >= 0 && used <= rows && (acc == 0 || acc == 1));
    assert(ttn_dtype_stored(x.type) == ttn_dtype_stored(TTN_REAL));
    const int64_t lanes = sum_lanes(rows);
    double *part = work; /* (lanes, cols) */

#pragma omp parallel for num_threads(n_thread) schedule(static)
    for (int64_t lane = 0; lane < lanes; lane++) {
        memset(part + lane * cols, 0, (size_t)cols * sizeof *part);
        int64_t first = lane_first(n_tiles(rows), lanes, lane) * TTN_ROW_TILE;
        int64_t end = smaller(used, lane_first(n_tiles(rows), lanes, lane + 1) * TTN_ROW_TILE);
        for (int64_t r = first; r < end; r++)
            add_row(cols, ttn_in_from(x, r, 0).at, part + lane * cols);
    }

    for (int64_t lane = 1; lane < lanes; lane++)
        for (int64_t e = 0; e < cols; e++)
            part[e] += part[lane * cols + e];
    for (int64_t e = 0; e < cols; e++)
        sum[e] = acc == 0 ? (real)part[e] : sum[e] + (real)part[e];
}
