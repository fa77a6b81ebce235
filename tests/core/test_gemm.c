/* Products with many rows: right, with bits that depend on neither threads nor neighbours. */
#include <omp.h>
#include "core/fp.h"
#include "tests/core/blas_world.h"
#include "tests/core/neighbours.h"

static const int thread_counts[] = {2, 3, 5, 8}; /* against 1; three is below the number of lanes and hides nothing */
enum { N_COUNT = sizeof thread_counts / sizeof *thread_counts };

/* ---- right ---- */

static const int64_t heights[] = {0, 1, TTN_ROW_TILE - 1, TTN_ROW_TILE, TTN_ROW_TILE + 1, 2 * TTN_ROW_TILE};
enum { N_HEIGHT = sizeof heights / sizeof *heights };

/* rows of C past the tiles in use are 0 (beta 0) or untouched (beta 1), and A's rows there are not read. */
static void check_rows_product(ttn_trans tb, int64_t rows, int64_t used, double beta)
{
    enum { N = 37, K = 29, LDA = K + 3, LDC = N + 5 };
    real *a = numbers(rows * LDA, 1), *b = numbers(N * K, 2), *c = numbers(rows * LDC, 3), *c0 = numbers(rows * LDC, 3);
    int64_t live = (used + TTN_ROW_TILE - 1) / TTN_ROW_TILE * TTN_ROW_TILE;
    if (live > rows) live = rows;
    fill_with(a + live * LDA, (rows - live) * LDA, NAN);
    for (int64_t r = 0; r < rows; r++)
        if (beta == 0) fill_with(c + r * LDC, N, NAN);

    ttn_mat_in weight = ttn_in(b, tb == TTN_T ? K : N);
    ttn_gemm_rows(2, tb, rows, used, N, K, ttn_in(a, LDA), weight, beta, ttn_out(c, LDC));
    assert_at_most(error_of(TTN_N, tb, live, N, K, 1, ttn_in(a, LDA), weight, beta, ttn_in(c0, LDC), ttn_in(c, LDC)), 1,
                   "error of a row-wise product, in units of its bound");
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = r < live ? N : 0; j < LDC; j++) {
            real wanted = j < N && beta == 0 ? 0 : c0[r * LDC + j];
            assert_same_bits(&c[r * LDC + j], &wanted, sizeof wanted);
        }
    free(a);
    free(b);
    free(c);
    free(c0);
}

static void rows_product_equals_plain_loops(void **state)
{
    (void)state;
    for (int h = 0; h < N_HEIGHT; h++)
        for (int u = 0; u < N_HEIGHT; u++)
            for (int beta = 0; beta <= 1 && heights[u] <= heights[h]; beta++) {
                check_rows_product(TTN_N, heights[h], heights[u], beta);
                check_rows_product(TTN_T, heights[h], heights[u], beta);
            }
}

/* Wide enough for several pieces of columns, the last of them narrower. */
static void rows_product_is_right_at_the_borders_of_column_pieces(void **state)
{
    (void)state;
    enum { ROWS = TTN_ROW_TILE, N = 4200, K = 3 };
    real *a = numbers(ROWS * K, 1), *b = numbers(N * K, 2), *c = numbers((int64_t)ROWS * N, 3);
    for (int t = 0; t < 2; t++) {
        ttn_trans tb = t ? TTN_T : TTN_N;
        ttn_mat_in weight = ttn_in(b, t ? K : N);
        fill_with(c, (int64_t)ROWS * N, NAN);
        ttn_gemm_rows(2, tb, ROWS, ROWS, N, K, ttn_in(a, K), weight, 0, ttn_out(c, N));
        assert_at_most(error_of(TTN_N, tb, ROWS, N, K, 1, ttn_in(a, K), weight, 0, ttn_in(c, N), ttn_in(c, N)), 1,
                       "error of a wide row-wise product, in units of its bound");
    }
    free(a);
    free(b);
    free(c);
}

static void check_weight_gradient(int64_t rows, int64_t used, int64_t o, int64_t i, double acc)
{
    real *dy = numbers(rows * o, 1), *x = numbers(rows * i, 2), *dw = numbers(o * i, 3), *before = numbers(o * i, 3);
    int64_t live = (used + TTN_ROW_TILE - 1) / TTN_ROW_TILE * TTN_ROW_TILE;
    for (int64_t r = live; r < rows; r++)
        fill_with(x + r * i, i, NAN); /* not read */
    fill_with(dy + used * o, (rows - used) * o, 0);
    if (acc == 0) fill_with(dw, o * i, NAN);
    void *work = room((int64_t)ttn_gemm_wgrad_work(rows, o, i), 1);
    memset(work, 0xFF, ttn_gemm_wgrad_work(rows, o, i)); /* NaN */

    ttn_gemm_wgrad(2, rows, used, o, i, ttn_in(dy, o), ttn_in(x, i), acc, ttn_out(dw, i), work);
    assert_at_most(
        error_of(TTN_T, TTN_N, o, i, used, 1, ttn_in(dy, o), ttn_in(x, i), acc, ttn_in(before, i), ttn_in(dw, i)), 1,
        "error of a weight gradient, in units of its bound");
    free(dy);
    free(x);
    free(dw);
    free(before);
    free(work);
}

static void weight_gradient_equals_plain_loops(void **state)
{
    (void)state;
    for (int h = 0; h < N_HEIGHT; h++)
        for (int u = 0; u < N_HEIGHT; u++)
            for (int acc = 0; acc <= 1 && heights[u] <= heights[h]; acc++)
                check_weight_gradient(heights[h], heights[u], 33, 17, acc);
    check_weight_gradient(5 * TTN_LANE_ROWS, 5 * TTN_LANE_ROWS, 5, 7, 1);
    check_weight_gradient(5 * TTN_LANE_ROWS, 3 * TTN_LANE_ROWS - 100, 5, 7, 0);
    check_weight_gradient(TTN_ROW_TILE, TTN_ROW_TILE, 1030, 3, 0); /* several pieces of outputs */
    check_weight_gradient(TTN_ROW_TILE, TTN_ROW_TILE, 3, 2060, 1);
}

static void sum_over_rows_equals_plain_loops(void **state)
{
    (void)state;
    enum { COLS = 19, LD = COLS + 2, CAP = 70 * TTN_ROW_TILE }; /* above: the number of lanes is at its limit */
    const int64_t rows[] = {0, 1, TTN_ROW_TILE - 1, TTN_ROW_TILE, TTN_ROW_TILE + 1, 5000, CAP};
    real *x = numbers((int64_t)CAP * LD, 1);
    for (size_t h = 0; h < sizeof rows / sizeof *rows; h++)
        for (int acc = 0; acc <= 1; acc++) {
            int64_t used = rows[h] - rows[h] / 7;
            real sum[COLS], before[COLS];
            fill(before, COLS, 2);
            memcpy(sum, before, sizeof sum);
            if (acc == 0) fill_with(sum, COLS, NAN);
            void *work = room((int64_t)ttn_sum_rows_work(rows[h], COLS), 1);
            ttn_sum_rows(3, rows[h], used, COLS, ttn_in(x, LD), acc, sum, work);
            for (int j = 0; j < COLS; j++) {
                double wanted = acc ? (double)before[j] : 0;
                for (int64_t r = 0; r < used; r++)
                    wanted += (double)x[r * LD + j];
                /* a sum of about sqrt(used), rounded to real and once more when it is added; and each of two orders of
                 * adding doubles is off by about used eps */
                double bound = 2 * (double)TTN_REAL_EPS * (2 + sqrt((double)used)) + DBL_EPSILON * (double)used;
                assert_at_most(fabs((double)sum[j] - wanted), bound, "error of a sum over rows");
            }
            free(work);
        }
    free(x);
}

static void accumulating_adds_once_to_what_was_there(void **state)
{
    (void)state;
    enum { ROWS = 2 * TTN_LANE_ROWS, O = 20, I = 30 };
    real *dy = numbers(ROWS * O, 1), *x = numbers(ROWS * I, 2);
    real fresh[O * I], added[O * I];
    void *work = room((int64_t)ttn_gemm_wgrad_work(ROWS, O, I), 1);
    fill_with(fresh, O * I, NAN);
    fill_with(added, O * I, 1);
    ttn_gemm_wgrad(2, ROWS, ROWS, O, I, ttn_in(dy, O), ttn_in(x, I), 0, ttn_out(fresh, I), work);
    ttn_gemm_wgrad(2, ROWS, ROWS, O, I, ttn_in(dy, O), ttn_in(x, I), 1, ttn_out(added, I), work);
    for (int e = 0; e < O * I; e++)
        fresh[e] += 1;
    assert_same_bits(fresh, added, sizeof fresh);
    free(dy);
    free(x);
    free(work);
}

/* ---- lanes ---- */

static void lanes_and_work_keep_their_limits(void **state)
{
    (void)state;
    const int64_t mib = 1 << 20;
    const int64_t million = 1 << 20;
    assert_int_equal(ttn_gemm_wgrad_lanes(million, 512, 512), 64);
    assert_int_equal(ttn_gemm_wgrad_lanes(million, 2048, 512), 16);
    assert_int_equal(ttn_gemm_wgrad_lanes(million, 1280, 5120), 2);
    assert_int_equal(ttn_gemm_wgrad_lanes(million, 8192, 8192), 1);
    assert_int_equal(ttn_gemm_wgrad_lanes(9600, 512, 512), 5);
    assert_int_equal(ttn_gemm_wgrad_lanes(TTN_LANE_ROWS, 512, 512), 1);
    assert_int_equal(ttn_gemm_wgrad_lanes(0, 512, 512), 1);
    for (int64_t o = 1; o < 20000; o = o * 3 / 2 + 1)
        for (int64_t i = 1; i < 20000; i = i * 3 / 2 + 1)
            for (int64_t rows = 1; rows <= 4 * million; rows *= 8) {
                int64_t weight = o * i * (int64_t)sizeof(real);
                int64_t limit = (sizeof(real) == sizeof(float) ? 64 : 128) * mib;
                assert_true((int64_t)ttn_gemm_wgrad_work(rows, o, i) <= (weight > limit ? weight : limit));
                assert_true(ttn_gemm_wgrad_lanes(rows, o, i) <= (rows + TTN_ROW_TILE - 1) / TTN_ROW_TILE);
            }
}

/* ---- the same bits ---- */

typedef struct {
    ttn_trans tb;
    int64_t rows, n, k;
} rows_shape;

/* two pieces of columns; a head's width; an ordinary layer both ways */
static const rows_shape rows_shapes[] = {{TTN_T, 2 * TTN_ROW_TILE, 2112, 32},
                                         {TTN_N, 5 * TTN_ROW_TILE, 24, 64},
                                         {TTN_T, 5 * TTN_ROW_TILE, 256, 256},
                                         {TTN_N, 3 * TTN_ROW_TILE + 7, 128, 320}};

static real *rows_product(int n_thread, const rows_shape *s)
{
    real *a = numbers(s->rows * s->k, 1), *b = numbers(s->n * s->k, 2), *c = room(s->rows * s->n, sizeof *c);
    ttn_gemm_rows(n_thread, s->tb, s->rows, s->rows, s->n, s->k, ttn_in(a, s->k),
                  ttn_in(b, s->tb == TTN_T ? s->k : s->n), 0, ttn_out(c, s->n));
    free(a);
    free(b);
    return c;
}

static void rows_product_has_the_same_bits_for_any_number_of_threads(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows_shapes / sizeof *rows_shapes; i++) {
        const rows_shape *s = &rows_shapes[i];
        real *one = rows_product(1, s);
        for (int t = 0; t < N_COUNT; t++) {
            real *many = rows_product(thread_counts[t], s);
            assert_same_bits(one, many, (size_t)(s->rows * s->n) * sizeof *one);
            free(many);
        }
        free(one);
    }
}

typedef struct {
    int64_t rows, used, o, i;
} sum_shape;

/* 13 lanes; 5 lanes in two pieces each; pieces of columns; one lane; the last two lanes have nothing to add */
static const sum_shape sum_shapes[] = {{25000, 25000, 9, 40},
                                       {20 * TTN_ROW_TILE, 20 * TTN_ROW_TILE, 300, 24},
                                       {5000, 5000, 20, 1100},
                                       {1000, 1000, 64, 64},
                                       {20 * TTN_ROW_TILE, 11 * TTN_ROW_TILE + 1, 24, 64}};
enum { N_SUM = sizeof sum_shapes / sizeof *sum_shapes };

static real *weight_gradient(int n_thread, const sum_shape *s)
{
    real *dy = numbers(s->rows * s->o, 1), *x = numbers(s->rows * s->i, 2), *dw = room(s->o * s->i, sizeof *dw);
    void *work = room((int64_t)ttn_gemm_wgrad_work(s->rows, s->o, s->i), 1);
    fill_with(dy + s->used * s->o, (s->rows - s->used) * s->o, 0);
    ttn_gemm_wgrad(n_thread, s->rows, s->used, s->o, s->i, ttn_in(dy, s->o), ttn_in(x, s->i), 0, ttn_out(dw, s->i),
                   work);
    free(dy);
    free(x);
    free(work);
    return dw;
}

static real *sum_rows(int n_thread, const sum_shape *s)
{
    real *x = numbers(s->rows * s->i, 2), *sum = room(s->i, sizeof *sum);
    void *work = room((int64_t)ttn_sum_rows_work(s->rows, s->i), 1);
    ttn_sum_rows(n_thread, s->rows, s->used, s->i, ttn_in(x, s->i), 0, sum, work);
    free(x);
    free(work);
    return sum;
}

static void weight_gradient_has_the_same_bits_for_any_number_of_threads(void **state)
{
    (void)state;
    for (int i = 0; i < N_SUM; i++) {
        const sum_shape *s = &sum_shapes[i];
        real *one = weight_gradient(1, s);
        for (int t = 0; t < N_COUNT; t++) {
            real *many = weight_gradient(thread_counts[t], s);
            assert_same_bits(one, many, (size_t)(s->o * s->i) * sizeof *one);
            free(many);
        }
        free(one);
    }
}

/* As a caller does that has one tile of dY and X at a time, in buffers of its own. */
static real *added_by_tiles(const sum_shape *s)
{
    const int64_t ld_dy = s->o + 3;
    const int64_t ld_x = s->i + 5;
    real *dy = numbers(s->rows * s->o, 1), *x = numbers(s->rows * s->i, 2), *dw = room(s->o * s->i, sizeof *dw);
    real *dy_tile = room(TTN_ROW_TILE * ld_dy, sizeof *dy_tile), *x_tile = room(TTN_ROW_TILE * ld_x, sizeof *x_tile);
    void *work = room((int64_t)ttn_gemm_wgrad_work(s->rows, s->o, s->i), 1);
    const int64_t n_tile = (s->used + TTN_ROW_TILE - 1) / TTN_ROW_TILE;
    int64_t seen = 0;
    int64_t last[TTN_MAX_LANES];
    for (int lane = 0; lane < TTN_MAX_LANES; lane++)
        last[lane] = -1;

    const ttn_wgrad w = ttn_wgrad_begin(s->rows, s->used, s->o, s->i, work);
    ttn_wgrad_place at = {0};
    for (int64_t tile = ttn_wgrad_next(&w, &at); tile >= 0; tile = ttn_wgrad_next(&w, &at)) {
        const int64_t lane = ttn_wgrad_lane(&w, tile);
        assert_true(lane >= 0 && lane < w.live && tile > last[lane] && tile < n_tile);
        last[lane] = tile;
        seen++;
        for (int64_t r = 0; r < TTN_ROW_TILE && tile * TTN_ROW_TILE + r < s->rows; r++) {
            const int64_t row = tile * TTN_ROW_TILE + r;
            for (int64_t e = 0; e < s->o; e++)
                dy_tile[r * ld_dy + e] = row < s->used ? dy[row * s->o + e] : 0;
            memcpy(x_tile + r * ld_x, x + row * s->i, (size_t)s->i * sizeof *x);
        }
        for (int64_t piece = w.n_piece - 1; piece >= 0; piece--)
            ttn_wgrad_add(&w, tile, piece, ttn_in(dy_tile, ld_dy), ttn_in(x_tile, ld_x));
    }
    assert_int_equal(seen, n_tile);
    assert_int_equal(ttn_wgrad_next(&w, &at), -1);
    ttn_wgrad_end(&w, 2, 0, ttn_out(dw, s->i));
    free(dy);
    free(x);
    free(dy_tile);
    free(x_tile);
    free(work);
    return dw;
}

static void weight_gradient_added_tile_by_tile_has_the_bits_of_the_whole(void **state)
{
    (void)state;
    static const sum_shape more[] = {{.rows = 0, .used = 0, .o = 3, .i = 4},
                                     {.rows = 480, .used = 0, .o = 3, .i = 4},
                                     {.rows = 24000, .used = 11000, .o = 3, .i = 4},
                                     {.rows = 5000, .used = 5000, .o = 600, .i = 5}};
    enum { N_MORE = sizeof more / sizeof *more };
    for (int i = 0; i < N_SUM + N_MORE; i++) {
        const sum_shape *s = i < N_SUM ? &sum_shapes[i] : &more[i - N_SUM];
        real *whole = weight_gradient(1, s);
        real *by_tiles = added_by_tiles(s);
        assert_same_bits(whole, by_tiles, (size_t)(s->o * s->i) * sizeof *whole);
        free(whole);
        free(by_tiles);
    }
}

static void sum_over_rows_has_the_same_bits_for_any_number_of_threads(void **state)
{
    (void)state;
    for (int i = 0; i < N_SUM; i++) {
        const sum_shape *s = &sum_shapes[i];
        real *one = sum_rows(1, s);
        for (int t = 0; t < N_COUNT; t++) {
            real *many = sum_rows(thread_counts[t], s);
            assert_same_bits(one, many, (size_t)s->i * sizeof *one);
            free(many);
        }
        free(one);
    }
}

/* All of the above as one number. */
static uint64_t digest_of_everything(int n_thread)
{
    uint64_t d = 0xCBF29CE484222325u;
    for (size_t i = 0; i < sizeof rows_shapes / sizeof *rows_shapes; i++) {
        real *c = rows_product(n_thread, &rows_shapes[i]);
        d = digest(d, c, (size_t)(rows_shapes[i].rows * rows_shapes[i].n) * sizeof *c);
        free(c);
    }
    for (int i = 0; i < N_SUM; i++) {
        const sum_shape *s = &sum_shapes[i];
        real *dw = weight_gradient(n_thread, s);
        d = digest(d, dw, (size_t)(s->o * s->i) * sizeof *dw);
        free(dw);
        real *sum = sum_rows(n_thread, s);
        d = digest(d, sum, (size_t)s->i * sizeof *sum);
        free(sum);
    }
    return d;
}

/* argv[0]: the number of threads. Prints the digest, the flavour and the kernel. */
static int child_digest(int argc, char **argv)
{
    (void)argc;
    int n_thread = atoi(argv[0]);
    ttn_error err = {0};
    ttn_blas_info info;
    if (ttn_blas_start(n_thread, &info, &err) != TTN_OK) {
        printf("%s\n", err.text);
        return 1;
    }
    printf("%016llx %s %s\n", (unsigned long long)digest_of_everything(n_thread), info.flavour_name, info.kernel);
    return 0;
}

/* A child under these settings, and the child's words about itself, must agree with this process. */
static void assert_same_digest(const char *threads, const char *setting, const char *setting2, const char *flavour)
{
    ttn_error err = {0};
    ttn_blas_info info;
    assert_ok(ttn_blas_start(1, &info, &err), &err);
    char wanted[128];
    snprintf(wanted, sizeof wanted, "%016llx %s %s", (unsigned long long)digest_of_everything(atoi(threads)),
             flavour ? flavour : info.flavour_name, info.kernel);
    ttn_child c = run_again("digest", threads, setting, setting2);
    assert_child_is_content(&c);
    assert_contains(c.output, wanted);
}

static void dynamic_schedules_give_the_same_bits(void **state)
{
    (void)state;
    assert_same_digest("3", "OMP_SCHEDULE=dynamic", "OMP_DYNAMIC=true", NULL);
}

static void the_pthread_flavour_gives_the_same_bits(void **state)
{
    (void)state;
    assert_same_digest("3", flavour_path("pthread"), "OMP_NUM_THREADS=2", "pthread");
}

/* One thread of ours and more that OpenBLAS could take: the region around its calls is then not an active one. */
static void the_openmp_flavour_gives_the_same_bits(void **state)
{
    (void)state;
    assert_same_digest("3", flavour_path("openmp"), "OMP_NUM_THREADS=2", "openmp");
    assert_same_digest("1", flavour_path("openmp"), "OMP_NUM_THREADS=2", "openmp");
}

static void the_serial_flavour_gives_the_same_bits_to_one_thread(void **state)
{
    (void)state;
    assert_same_digest("1", flavour_path("serial"), NULL, "serial");
}

/* ---- neighbours ---- */

static void a_sequence_has_the_same_bits_wherever_it_stands(void **state)
{
    (void)state;
    for (int s = 0; s < N_START; s++)
        assert_int_equal(starts[s] % TTN_ROW_ALIGN, 0);
    assert_int_equal(layers_that_differ(), 0);
}

/* A batch that leaves tiles empty gives the gradient of the same batch in a plan without room to spare: tiles of zeros add
 * nothing, not even a sign. Flushed results are in it: -0 comes from them alone. */
static void empty_tiles_do_not_reach_a_weight_gradient(void **state)
{
    (void)state;
    enum { ROWS = 12 * TTN_ROW_TILE, USED_ROWS = 5 * TTN_ROW_TILE + 17, O = 24, I = 40 };
    real *dy = numbers(ROWS * O, 1), *x = numbers(ROWS * I, 2);
    real some[O * I], all[O * I];
    fill_with(dy + USED_ROWS * O, (ROWS - USED_ROWS) * O, 0);
    for (int64_t r = 0; r < ROWS; r++) {
        dy[r * O] = r < USED_ROWS ? -(sizeof(real) == 4 ? (real)1e-30 : (real)1e-300) : 0;
        x[r * I] = sizeof(real) == 4 ? (real)1e-30 : (real)1e-300;
    }
    void *work = room((int64_t)ttn_gemm_wgrad_work(ROWS, O, I), 1);
    uint64_t saved[2];
    ttn_fp_begin_threads(2, saved);
    ttn_gemm_wgrad(2, ROWS, USED_ROWS, O, I, ttn_in(dy, O), ttn_in(x, I), 0, ttn_out(some, I), work);
    ttn_gemm_wgrad(2, ROWS, ROWS, O, I, ttn_in(dy, O), ttn_in(x, I), 0, ttn_out(all, I), work);
    ttn_fp_end_threads(2, saved);
    assert_same_bits(some, all, sizeof some);
    free(dy);
    free(x);
    free(work);
}

/* Zeros have one sign, whether a tile of zeros was added or left out. BLAS gives no -0 itself; a difference that is
 * flushed does: of two lanes, and of what was there and what is added. */
static void a_flushed_weight_gradient_is_a_zero_without_sign(void **state)
{
    (void)state;
    enum { ROWS = 9 * TTN_ROW_TILE }; /* three lanes; the last row is the last one's */
    const real root = sizeof(real) == sizeof(float) ? (real)0x1p-63 : (real)0x1p-511;
    const real least = root * root, low = (real)-1.5 * least; /* the least normal number; their sum is below it */
    const real zero = 0;
    real *dy = room(ROWS, sizeof *dy), *x = room(ROWS, sizeof *x);
    void *work = room((int64_t)ttn_gemm_wgrad_work(ROWS, 1, 1), 1);
    assert_int_equal(ttn_gemm_wgrad_lanes(ROWS, 1, 1), 3);
    fill_with(x, ROWS, (double)root);
    dy[ROWS - 1] = root;
    for (int acc = 0; acc <= 1; acc++) {
        dy[0] = acc == 0 ? low / root : 0;
        real dw = acc == 0 ? (real)NAN : low;
        uint64_t saved[2];
        ttn_fp_begin_threads(2, saved);
        volatile real sum = low;
        sum += least;
        int flushes = sum == 0;
        ttn_gemm_wgrad(2, ROWS, ROWS, 1, 1, ttn_in(dy, 1), ttn_in(x, 1), acc, ttn_out(&dw, 1), work);
        ttn_fp_end_threads(2, saved);
        if (!flushes) skip_because("this processor does not flush denormals");
        assert_same_bits(&dw, &zero, sizeof dw);
    }
    free(dy);
    free(x);
    free(work);
}

int main(int argc, char **argv)
{
    ttn_test_child("digest", child_digest);
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_product_equals_plain_loops),
        cmocka_unit_test(rows_product_is_right_at_the_borders_of_column_pieces),
        cmocka_unit_test(weight_gradient_equals_plain_loops),
        cmocka_unit_test(sum_over_rows_equals_plain_loops),
        cmocka_unit_test(accumulating_adds_once_to_what_was_there),
        cmocka_unit_test(lanes_and_work_keep_their_limits),
        cmocka_unit_test(rows_product_has_the_same_bits_for_any_number_of_threads),
        cmocka_unit_test(weight_gradient_has_the_same_bits_for_any_number_of_threads),
        cmocka_unit_test(weight_gradient_added_tile_by_tile_has_the_bits_of_the_whole),
        cmocka_unit_test(sum_over_rows_has_the_same_bits_for_any_number_of_threads),
        cmocka_unit_test(dynamic_schedules_give_the_same_bits),
        cmocka_unit_test(the_pthread_flavour_gives_the_same_bits),
        cmocka_unit_test(the_openmp_flavour_gives_the_same_bits),
        cmocka_unit_test(the_serial_flavour_gives_the_same_bits_to_one_thread),
        cmocka_unit_test(a_sequence_has_the_same_bits_wherever_it_stands),
        cmocka_unit_test(empty_tiles_do_not_reach_a_weight_gradient),
        cmocka_unit_test(a_flushed_weight_gradient_is_a_zero_without_sign),
    };
    return ttn_test_run(tests);
}
