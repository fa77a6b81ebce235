/* Nystrom attention beyond what the driver of all ops and the golden data see: against the definition in double, at every kind
 * of length; exact attention's bits for short sequences; where a sequence may stand; landmarks; maps; how it is recorded. */
#include "autograd/attention.h"
#include "core/values.h"
#include "tests/autograd/nystrom_run.h"

enum { MOST_SEQS = 80 };

/* ---- the definition at every length ---- */

static void nystrom_attention_is_the_definition_at_every_length(void **state)
{
    (void)state;
    enum { M = 12 };
    static const int64_t lengths[] = {1, 2, M - 1, M, M + 1, 2 * M, 2 * M + 7, 191, 192, 193, 387, 20 * 192 + 5};
    static const ttn_attn_nystrom_options attr = {.heads = 2, .landmarks = M};
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        const ttn_span span = {5, lengths[l]};
        run r;
        make_nystrom(&r, &attr, 20, 0, &span, 1);
        fill_all(&r, 10 * l, 1);
        set_apart(&r, M, 300 + l);
        forward(&r);
        for (int64_t h = 0; h < 2; h++) {
            dense d = dense_of(&r, 0, h, M);
            if (lengths[l] <= M)
                dense_exact(&d);
            else
                dense_nystrom(&d, TTN_INVERSE_CHEB_STEPS, 0, NULL);
            /* f32: rounding times the norm of Z, which is about 10 */
            assert_at_most(difference(&r, &d, 0, h), IS_F32 ? 2e-5 : 1e-12, "out");
            dense_free(&d);
        }
        release(&r);
    }
}

/* A segment's mean is made of 64 columns at a time. */
static void nystrom_attention_is_the_definition_at_every_width_of_a_head(void **state)
{
    (void)state;
    enum { M = 12, N = 203 };
    static const int64_t widths[] = {1, 16, 24, 64, 65, 130};
    static const ttn_attn_nystrom_options attr = {.heads = 2, .landmarks = M};
    const ttn_span span = {5, N};
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        run r;
        make_nystrom(&r, &attr, widths[w], 0, &span, 1);
        fill_all(&r, 400 + 10 * w, 1);
        set_apart(&r, M, 500 + w);
        forward(&r);
        for (int64_t h = 0; h < 2; h++) {
            dense d = dense_of(&r, 0, h, M);
            dense_nystrom(&d, TTN_INVERSE_CHEB_STEPS, 0, NULL);
            assert_at_most(difference(&r, &d, 0, h), IS_F32 ? 1e-4 : 1e-12, "out");
            dense_free(&d);
        }
        release(&r);
    }
}

static double dot(int64_t n, const real *x, const real *y, double *ret_size)
{
    double sum = 0;
    for (int64_t e = 0; e < n; e++) {
        sum += (double)x[e] * (double)y[e];
        *ret_size += fabs((double)x[e] * (double)y[e]);
    }
    return sum;
}

/* Five chunks, whose sums are added up in a tree. out is linear in v: g . out = v . dv. It is the same for 2 q and k / 2:
 * q . dq = k . dk. And for k + u, whatever u is: the rows of dk add up to zero. */
static void gradients_of_many_chunks_respect_what_makes_no_difference(void **state)
{
    (void)state;
    enum { M = 4, N = 4 * 20 * 192 + 77, D = 3 };
    const ttn_span span = {0, N};
    static const ttn_attn_nystrom_options attr = {.heads = 1, .landmarks = M, .iterations = 3};
    run r;
    make_nystrom(&r, &attr, D, 0, &span, 1);
    fill_all(&r, 620, 1);
    set_apart(&r, M, 630);
    for (int64_t e = 0; e < (int64_t)N * D; e++)
        r.dout[e] += r.in[0][e]; /* so that sums are no sums of noise */
    forward(&r);
    backward(&r);
    const double bound = IS_F32 ? 1e-4 : 1e-12;
    double size = 0;
    const double values_differ =
        dot((int64_t)N * D, r.dout, r.out, &size) - dot((int64_t)N * D, r.in[2], r.din[2], &size);
    assert_at_most(fabs(values_differ), bound * size, "g . out - v . dv");
    size = 0;
    const double scores_differ =
        dot((int64_t)N * D, r.in[0], r.din[0], &size) - dot((int64_t)N * D, r.in[1], r.din[1], &size);
    assert_at_most(fabs(scores_differ), bound * size, "q . dq - k . dk");
    for (int d = 0; d < D; d++) {
        double sum = 0;
        size = 0;
        for (int64_t t = 0; t < N; t++) {
            sum += (double)r.din[1][t * D + d];
            size += fabs((double)r.din[1][t * D + d]);
        }
        assert_at_most(fabs(sum), bound * size, "sum of dk");
    }
    release(&r);
}

/* Heads that start together are one group, also where there are more of them than a group otherwise has room for. All of them
 * see the same here, so that it makes no difference to out and dv who gives the start. */
static void more_heads_than_a_group_start_together(void **state)
{
    (void)state;
    enum { M = 2, H = 70, D = 2 };
    static const ttn_span span[] = {{0, 9}, {12, 2}, {24, 14}};
    ttn_attn_nystrom_options attr = {.heads = H, .landmarks = M, .pinv = TTN_PINV_RAZAVI, .iterations = 3};
    run r[2];
    for (int shared = 0; shared < 2; shared++) {
        run *one = &r[shared];
        attr.shared = shared;
        make_nystrom(one, &attr, D, 0, span, 3);
        fill_all(one, 600, 1.5);
        real *const same[] = {one->in[0], one->in[1], one->in[2], one->dout};
        for (int i = 0; i < 4; i++)
            for (int64_t e = 0; e < one->rows * one->C; e++)
                same[i][e] = same[i][e - e % one->C + e % D];
        forward(one);
        backward(one);
    }
    const size_t bytes = (size_t)(r[0].rows * r[0].C) * sizeof(real);
    assert_same_bits(r[0].out, r[1].out, bytes);
    assert_same_bits(r[0].din[2], r[1].din[2], bytes);
    release(&r[0]);
    release(&r[1]);
}

/* Products of hundreds, of which exp is infinite in f32 or 0: weights are those of differences to the largest. A is close to I,
 * and out is as accurate as the products are. */
static void products_of_hundreds_leave_out_and_gradients_accurate(void **state)
{
    (void)state;
    enum { M = 12, N = 20 * 192 + 77, D = 20 };
    static const ttn_attn_nystrom_options attr = {.heads = 2, .landmarks = M};
    const ttn_span span = {5, N};
    run r;
    make_nystrom(&r, &attr, D, 0, &span, 1);
    fill_all(&r, 640, 1);
    set_apart(&r, M, 650);
    double least = HUGE_VAL;
    double most = 0;
    for (int64_t e = 5 * r.C; e < r.feed.used.rows * r.C; e++) {
        r.in[0][e] *= 6;
        r.in[1][e] *= 6;
    }
    for (int64_t t = 0; t < N; t++) {
        double sum = 0;
        for (int64_t d = 0; d < D; d++)
            sum += (double)row_of(&r, r.in[0], 0, 0, t)[d] * (double)row_of(&r, r.in[1], 0, 0, (t + N / 2) % N)[d];
        least = fmin(least, sum / sqrt((double)D));
        most = fmax(most, sum / sqrt((double)D));
    }
    print_message("# products from %.0f to %.0f\n", least, most);
    assert_true(least < -100 && most > 200);
    forward(&r);
    backward(&r);
    for (int64_t h = 0; h < 2; h++) {
        dense d = dense_of(&r, 0, h, M);
        dense_nystrom(&d, TTN_INVERSE_CHEB_STEPS, 0, NULL);
        /* f32: eps of a product of 1,000 is 6e-5, and of a softmax's weight, relatively, as much */
        assert_at_most(difference(&r, &d, 0, h), IS_F32 ? 1e-3 : 1e-11, "out");
        dense_free(&d);
    }
    double size = 0;
    const int64_t at = span.first * r.C;
    const double values_differ =
        dot(N * r.C, r.dout + at, r.out + at, &size) - dot(N * r.C, r.in[2] + at, r.din[2] + at, &size);
    assert_at_most(fabs(values_differ), (IS_F32 ? 1e-4 : 1e-12) * size, "g . out - v . dv");
    for (int i = 0; i < 3; i++)
        for (int64_t e = 0; e < N * r.C; e++)
            assert_true(isfinite(r.din[i][at + e]));
    release(&r);
}

static void a_hundred_thousand_residues(void **state)
{
    (void)state;
    enum { M = 16 };
    const ttn_span span = {0, ttn_scaled(100003, 10007)};
    static const ttn_attn_nystrom_options attr = {.heads = 1, .landmarks = M};
    run r;
    make_nystrom(&r, &attr, 8, 0, &span, 1);
    fill_all(&r, 20, 1);
    set_apart(&r, M, 30);
    forward(&r);
    backward(&r);
    dense d = dense_of(&r, 0, 0, M);
    dense_nystrom(&d, TTN_INVERSE_CHEB_STEPS, 0, NULL);
    assert_at_most(difference(&r, &d, 0, 0), IS_F32 ? 2e-5 : 1e-12, "out");
    for (int i = 0; i < 3; i++)
        for (int64_t e = 0; e < span.n * r.C; e++)
            assert_true(isfinite(r.din[i][e]));
    dense_free(&d);
    release(&r);
}

/* Added up in f32, the same two numbers a hundred thousand times lose digits in one direction. (Of rows that are all equal
 * nothing would be seen: where q and k are the landmarks themselves, what the means are off by leaves out, to first order.) */
static void means_of_many_rows_keep_their_digits(void **state)
{
    (void)state;
    enum { M = 3, N = 300001, D = 4 };
    static const ttn_attn_nystrom_options attr = {.heads = 1, .landmarks = M};
    const ttn_span span = {0, N};
    run r;
    make_nystrom(&r, &attr, D, 0, &span, 1);
    fill_all(&r, 690, 1);
    for (int i = 0; i < 2; i++) {
        real row[2 * M * D];
        fill(row, (int64_t)2 * M * D, 695, 1.5);
        for (int64_t t = 0; t < N; t++)
            memcpy(r.in[i] + t * D, row + (2 * ttn_nystrom_segment_of(t, N, M) + t % 2) * D, D * sizeof(real));
    }
    forward(&r);
    dense d = dense_of(&r, 0, 0, M);
    dense_nystrom(&d, TTN_INVERSE_CHEB_STEPS, 0, NULL);
    const double apart = difference(&r, &d, 0, 0);
    print_message("# means of %d rows: out is off by %.2g\n", N / M, apart);
    assert_at_most(apart, IS_F32 ? 2e-5 : 1e-11, "out");
    dense_free(&d);
    release(&r);
}

/* ---- the same bits ---- */

/* Sequences of at most M rows: forward, L, and all gradients, with something added and without, beside long ones. */
static void short_sequences_have_the_bits_of_exact_attention(void **state)
{
    (void)state;
    enum { M = 200, SEQS = 6 };
    static const ttn_span span[SEQS] = {{0, 1}, {12, M}, {216, 2}, {240, 700}, {948, M - 1}, {1152, 193}};
    static const ttn_attn_nystrom_options attr = {.heads = 3, .landmarks = M};
    static const ttn_attn_exact_options exact_attr = {.heads = 3};
    for (int adds = 0; adds < 2; adds++) {
        run r;
        run e;
        make_nystrom(&r, &attr, 10, adds, span, SEQS);
        make(&e, &ttn_op_attn_exact, &exact_attr, 3, 10, 0, span, SEQS);
        fill_all(&r, 40, 1.5);
        for (int i = 0; i < 3; i++)
            memcpy(e.in[i], r.in[i], (size_t)(r.rows * r.C) * sizeof(real));
        memcpy(e.dout, r.dout, (size_t)(r.rows * r.C) * sizeof(real));
        forward(&r);
        backward(&r);
        forward(&e);
        backward(&e);
        for (int s = 0; s < SEQS; s++) {
            if (span[s].n > M) continue;
            const int64_t at = span[s].first * r.C;
            const size_t bytes = (size_t)(span[s].n * r.C) * sizeof(real);
            for (int64_t c = 0; c < span[s].n * r.C && adds; c++)
                e.out[at + c] += r.in[3][at + c];
            assert_same_bits(r.out + at, e.out + at, bytes);
            assert_same_bits(r.aux[0] + span[s].first * 3, e.aux[0] + span[s].first * 3,
                             (size_t)(span[s].n * 3) * sizeof(real));
            for (int i = 0; i < 3; i++)
                assert_same_bits(r.din[i] + at, e.din[i] + at, bytes);
        }
        release(&r);
        release(&e);
    }
}

/* With its convolution: y = dwconv(v), out = nystrom(q, k, v) + y. */
typedef struct {
    run attention, convolution;
} both;

enum { CONV = 7 };

static void make_both(both *b, const ttn_attn_nystrom_options *attr, int64_t D, const ttn_span *span, int64_t seqs)
{
    make_nystrom(&b->attention, attr, D, 1, span, seqs);
    run *c = &b->convolution;
    const int64_t rows = b->attention.rows;
    *c = (run){.op = &ttn_op_dwconv, .heads = attr->heads, .C = attr->heads * D, .rows = rows, .on = {.n_thread = 2}};
    c->sig = (ttn_sig){.cap = {.rows = rows, .seqs = seqs}, .n_in = 2};
    c->sig.in[0] = b->attention.sig.in[0];
    c->sig.in[1] = ttn_desc_of(TTN_REAL, TTN_FIXED, 2, attr->heads, CONV, 0);
    ttn_error err = {0};
    assert_ok(c->op->shape(&c->sig, &err), &err);
    c->feed = b->attention.feed;
    c->work = memory(c->sig.work[TTN_BACKWARD]);
    c->in[1] = values(attr->heads * CONV);
    fill(c->in[1], attr->heads * CONV, 900, 0.3);
    c->in[0] = values(rows * c->C);
    c->din[0] = values(rows * c->C);
    c->din[1] = values(attr->heads * CONV);
    c->out = values(rows * c->C);
    c->dout = values(rows * c->C);
}

static void run_both(both *b, int n_thread)
{
    run *a = &b->attention;
    run *c = &b->convolution;
    const size_t bytes = (size_t)(a->rows * a->C) * sizeof(real);
    a->on.n_thread = n_thread;
    c->on.n_thread = n_thread;
    memcpy(c->in[0], a->in[2], bytes);
    forward(c);
    memcpy(a->in[3], c->out, bytes);
    forward(a);
    backward(a);
    memcpy(c->dout, a->din[3], bytes);
    backward(c);
}

static void release_both(both *b)
{
    release(&b->attention);
    release(&b->convolution);
}

static void put_sequence(const run *from, run *to, int64_t s)
{
    const ttn_span a = from->feed.span[0];
    const ttn_span b = to->feed.span[s];
    const size_t bytes = (size_t)(a.n * from->C) * sizeof(real);
    for (int i = 0; i < 3; i++)
        memcpy(to->in[i] + b.first * from->C, from->in[i] + a.first * from->C, bytes);
    memcpy(to->dout + b.first * from->C, from->dout + a.first * from->C, bytes);
}

static void assert_same_sequence(const both *a, const both *b, int64_t s)
{
    const run *x = &a->attention;
    const run *y = &b->attention;
    const ttn_span from = x->feed.span[0];
    const ttn_span to = y->feed.span[s];
    const size_t bytes = (size_t)(from.n * x->C) * sizeof(real);
    assert_same_bits(x->out + from.first * x->C, y->out + to.first * x->C, bytes);
    for (int i = 0; i < 4; i++)
        assert_same_bits(x->din[i] + from.first * x->C, y->din[i] + to.first * x->C, bytes);
    assert_same_bits(a->convolution.din[0] + from.first * x->C, b->convolution.din[0] + to.first * x->C, bytes);
}

static void a_sequence_has_the_same_bits_alone_first_in_the_middle_and_last(void **state)
{
    (void)state;
    enum { M = 20 };
    static const int64_t lengths[] = {1, M, M + 1, 353, 1000};
    for (int shared = 0; shared < 2; shared++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
            const int64_t n = lengths[l];
            const ttn_attn_nystrom_options attr = {
                .heads = 3, .landmarks = M, .pinv = shared ? TTN_PINV_RAZAVI : TTN_PINV_CHEB, .shared = shared};
            const ttn_span alone = {0, n};
            const int64_t step = (n + 11) / 12 * 12;
            const ttn_span first[] = {{0, n}, {step, 100}, {step + 108, 7}};
            const ttn_span middle[] = {{0, 36}, {36, n}, {36 + step, 350}}; /* touching in front */
            const ttn_span last[] = {{0, 500}, {504, 1}, {516, n}};
            const ttn_span *const place[] = {first, middle, last};
            both a;
            make_both(&a, &attr, 16, &alone, 1);
            fill_all(&a.attention, 50, 1.5);
            run_both(&a, 2);
            for (int p = 0; p < 3; p++) {
                both b;
                make_both(&b, &attr, 16, place[p], 3);
                fill_all(&b.attention, 60 + (uint64_t)p, 4); /* neighbours of another kind */
                put_sequence(&a.attention, &b.attention, p);
                run_both(&b, 1);
                assert_same_sequence(&a, &b, p);
                release_both(&b);
            }
            release_both(&a);
        }
}

/* One long sequence of several chunks, and more pairs of a sequence and a head than a group has room for; that
 * room is no multiple of the heads, which have to be in one group where they start together. */
static void bits_do_not_depend_on_threads_and_groups(void **state)
{
    (void)state;
    enum { M = 16, SHORT = 60 };
    static ttn_span span[SHORT + 2];
    span[0] = (ttn_span){0, 20 * 192 + 77};
    for (int s = 1; s <= SHORT; s++)
        span[s] = (ttn_span){span[s - 1].first + (span[s - 1].n + 11) / 12 * 12, s % 7 == 0 ? 9 : 20 + s};
    span[SHORT + 1] = (ttn_span){span[SHORT].first + 96, 8000};
    for (int shared = 0; shared < 2; shared++) {
        const ttn_attn_nystrom_options attr = {
            .heads = 3, .landmarks = M, .pinv = shared ? TTN_PINV_RAZAVI : TTN_PINV_CHEB, .shared = shared};
        both a;
        make_both(&a, &attr, 4, span, SHORT + 2);
        fill_all(&a.attention, 70, 1.5);
        run_both(&a, 1);
        for (int threads = 2; threads <= MOST_THREADS; threads += threads == 3 ? 2 : threads == 5 ? 3 : 1) {
            both b;
            make_both(&b, &attr, 4, span, SHORT + 2);
            fill_all(&b.attention, 70, 1.5);
            run_both(&b, threads);
            const size_t bytes = (size_t)(a.attention.rows * a.attention.C) * sizeof(real);
            assert_same_bits(a.attention.out, b.attention.out, bytes);
            for (int i = 0; i < 4; i++)
                assert_same_bits(a.attention.din[i], b.attention.din[i], bytes);
            for (int i = 0; i < 2; i++)
                assert_same_bits(a.convolution.din[i], b.convolution.din[i], i == 0 ? bytes : 3 * CONV * sizeof(real));
            assert_same_bits(a.attention.stat, b.attention.stat, sizeof a.attention.stat);
            release_both(&b);
        }
        release_both(&a);
    }
}

/* Published f32 code is off by several per cent here on some processors. */
static void a_kernels_gradient_over_many_rows_keeps_its_digits(void **state)
{
    (void)state;
    enum { N = 200003, D = 4 };
    static const ttn_attn_nystrom_options attr = {.heads = 1, .landmarks = 2};
    const ttn_span span = {0, N};
    both b;
    make_both(&b, &attr, D, &span, 1);
    fill_all(&b.attention, 710, 0.1);
    real *v = b.attention.in[2];
    real *g = b.attention.dout;
    for (int64_t e = 0; e < (int64_t)N * D; e++) { /* so that sums grow with the rows */
        v[e] = (real)0.7 + v[e] / 8;
        g[e] = (real)1.3 + g[e] / 8;
    }
    run_both(&b, 2);
    for (int64_t j = 0; j < CONV; j++) {
        double wanted = 0;
        for (int64_t t = 0; t < N; t++) {
            const int64_t u = t + j - (CONV - 1) / 2;
            for (int64_t d = 0; d < D && u >= 0 && u < N; d++)
                wanted += (double)g[t * D + d] * (double)v[u * D + d];
        }
        /* f32: the last rounding, 6e-8; lanes added up in f32 were off by 1.4e-7 */
        assert_at_most(fabs((double)b.convolution.din[1][j] / wanted - 1), IS_F32 ? 8e-8 : 1e-12, "dkernel");
    }
    release_both(&b);
}

/* ---- landmarks ---- */

/* 200 residues of a smooth random walk, in 512 places of which published code fills the rest with padding. */
static void balanced_landmarks_have_half_the_error_of_fixed_segments(void **state)
{
    (void)state;
    enum { N = 200, PADDED = 512, M = 64, D = 16 };
    static const ttn_attn_nystrom_options attr = {.heads = 1, .landmarks = M};
    const ttn_span span = {0, N};
    run r;
    make_nystrom(&r, &attr, D, 0, &span, 1);
    fill_all(&r, 80, 1);
    for (int i = 0; i < 2; i++)
        for (int64_t e = D; e < N * D; e++)
            r.in[i][e] = (real)0.9 * r.in[i][e - D] + (real)0.436 * r.in[i][e];
    forward(&r);
    dense exact = dense_of(&r, 0, 0, M);
    dense fixed = dense_of(&r, 0, 0, M);
    dense_exact(&exact);
    dense_nystrom(&fixed, TTN_INVERSE_CHEB_STEPS, PADDED, NULL);
    double ours = 0;
    double theirs = 0;
    double size = 0;
    for (int64_t e = 0; e < (int64_t)N * D; e++) {
        ours += ((double)r.out[e] - exact.out[e]) * ((double)r.out[e] - exact.out[e]);
        theirs += (fixed.out[e] - exact.out[e]) * (fixed.out[e] - exact.out[e]);
        size += exact.out[e] * exact.out[e];
    }
    print_message("# relative error: balanced landmarks %.3f, fixed segments %.3f\n", sqrt(ours / size),
                  sqrt(theirs / size));
    assert_at_most(sqrt(ours), 0.5 * sqrt(theirs), "error, balanced against fixed");
    dense_free(&exact);
    dense_free(&fixed);
    release(&r);
}

/* ---- maps ---- */

static void maps_are_rows_of_f_z_b_and_their_means(void **state)
{
    (void)state;
    enum { M = 10, LONG = 430 };
    static const ttn_span span[] = {{0, M}, {12, LONG}};
    static const int64_t blocks[] = {1, 7, 60};
    for (int shared = 0; shared < 2; shared++) {
        const ttn_attn_nystrom_options attr = {.heads = 3, .landmarks = M, .iterations = 4, .shared = shared};
        run r;
        make_nystrom(&r, &attr, 6, 1, span, 2);
        fill_all(&r, 130, 1.5);
        fill(r.in[3], r.rows * r.C, 135, 0);
        forward(&r);
        const ttn_call c = call_of(&r);
        ttn_error err = {0};
        for (int64_t s = 0; s < 2; s++) {
            const int64_t n = span[s].n;
            real *map = values(n * n);
            int64_t *row = memory((size_t)n * sizeof *row);
            for (int64_t i = 0; i < n; i++)
                row[i] = n - 1 - i;
            assert_ok(ttn_op_attn_nystrom.attention->map_rows(&c, s, 2, n, row, map, &err), &err);
            for (int64_t i = 0; i < n; i++) /* the map times v is out */
                for (int64_t d = 0; d < 6; d++) {
                    double sum = 0;
                    for (int64_t t = 0; t < n; t++)
                        sum += (double)map[i * n + t] * (double)row_of(&r, r.in[2], s, 2, t)[d];
                    const double wanted = (double)row_of(&r, r.out, s, 2, n - 1 - i)[d];
                    assert_at_most(fabs(sum - wanted), IS_F32 ? 2e-5 : 1e-12, "a row of the map, times v");
                }
            for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
                const int64_t P = blocks[b];
                if (P > n) continue;
                double *pool = memory((size_t)(P * P) * sizeof *pool);
                assert_ok(ttn_op_attn_nystrom.attention->map_pool(&c, s, 2, P, pool, &err), &err);
                for (int64_t p = 0; p < P; p++)
                    for (int64_t k = 0; k < P; k++) {
                        double sum = 0;
                        int64_t cells = 0;
                        for (int64_t i = p * n / P; i < (p + 1) * n / P; i++)
                            for (int64_t t = k * n / P; t < (k + 1) * n / P; t++) {
                                sum += (double)map[(n - 1 - i) * n + t];
                                cells++;
                            }
                        assert_at_most(fabs(pool[p * P + k] - sum / (double)cells), IS_F32 ? 1e-6 : 1e-14, "a cell");
                    }
                ttn_free(pool);
            }
            ttn_free(map);
            ttn_free(row);
        }
        const int64_t bad = LONG;
        assert_fails(ttn_op_attn_nystrom.attention->map_rows(&c, 1, 0, 1, &bad, NULL, &err), TTN_EINVAL, &err,
                     "no row 430 in a sequence of 430");
        release(&r);
    }
}

/* What all keys have in common moves all logits of a row alike, and changes no weight; columns that fill landmarks up to a
 * whole vector do not move with them. */
static void maps_of_rows_whose_logits_are_far_below_zero_are_right(void **state)
{
    (void)state;
    enum { M = 10, N = 430, D = 6 };
    static const ttn_span span = {0, N};
    static const ttn_attn_nystrom_options attr = {.heads = 1, .landmarks = M, .iterations = 4};
    run r;
    make_nystrom(&r, &attr, D, 0, &span, 1);
    fill_all(&r, 145, 1.5);
    for (int64_t e = 0; e < (int64_t)N * D; e++)
        r.in[1][e] += 40;
    forward(&r);
    int64_t row = 0; /* that of the least L */
    for (int64_t t = 1; t < N; t++)
        if (r.aux[0][t] < r.aux[0][row]) row = t;
    assert_true(r.aux[0][row] < -100); /* e^100 is infinite in f32 */
    const ttn_call c = call_of(&r);
    real map[N];
    ttn_error err = {0};
    assert_ok(ttn_op_attn_nystrom.attention->map_rows(&c, 0, 0, 1, &row, map, &err), &err);
    for (int64_t d = 0; d < D; d++) {
        double sum = 0;
        for (int64_t t = 0; t < N; t++)
            sum += (double)map[t] * (double)r.in[2][t * D + d];
        /* f32: eps of a logit of 100 is 1e-5 */
        assert_at_most(fabs(sum - (double)r.out[row * D + d]), IS_F32 ? 2e-4 : 1e-11, "a row of the map, times v");
    }
    double pool[4];
    assert_ok(ttn_op_attn_nystrom.attention->map_pool(&c, 0, 0, 2, pool, &err), &err);
    for (int i = 0; i < 4; i++)
        assert_true(isfinite(pool[i]));
    release(&r);
}

/* Where forward had found an inverse: with lambda 0 there is none for the equal queries of head 1. */
static void a_map_whose_inverse_fails_says_which(void **state)
{
    (void)state;
    enum { M = 64, N = 300 };
    static const ttn_span span[] = {{0, 3}, {12, N}};
    ttn_attn_nystrom_options attr = {.heads = 2, .landmarks = M, .pinv = TTN_PINV_EXACT, .lambda = 1e-3};
    run r;
    make_nystrom(&r, &attr, 4, 0, span, 2);
    fill_all(&r, 140, 1.5);
    for (int64_t t = 0; t < 12 + N; t++)
        memset(r.in[0] + t * r.C + 4, 0, 4 * sizeof(real));
    forward(&r);
    attr.lambda = 0;
    const ttn_call c = call_of(&r);
    const int64_t row = 5;
    real map[N];
    double pool[4];
    ttn_error err = {0};
    assert_fails(ttn_op_attn_nystrom.attention->map_rows(&c, 1, 1, 1, &row, map, &err), TTN_ENUMERIC, &err,
                 "in sequence 1, head 1, A'A + 0 I is too close to singular");
    assert_fails(ttn_op_attn_nystrom.attention->map_pool(&c, 1, 1, 2, pool, &err), TTN_ENUMERIC, &err,
                 "in sequence 1, head 1, A'A + 0 I is too close to singular");
    release(&r);
}

/* ---- recording ---- */

static ttn_status attr_with(const char *const *set, ttn_attn_nystrom_options *ret, ttn_error *err)
{
    const ttn_attention *a = ttn_op_attn_nystrom.attention;
    ttn_values *v = NULL;
    assert_ok(ttn_values_create(a->options, a->n_options, &v, err), err);
    for (; *set; set += 2)
        for (int i = 0; i < a->n_options; i++) {
            ttn_scalar value;
            if (strcmp(a->options[i].name, set[0]) != 0) continue;
            assert_ok(ttn_option_read(&a->options[i], set[1], &value, err), err);
            assert_ok(ttn_values_set(v, i, &value, 1, (ttn_origin){TTN_FROM_FILE, "a test"}, err), err);
        }
    const ttn_option_reader reader = ttn_values_reader(v);
    const ttn_status status = a->attr(&reader, 0, ret, err);
    ttn_values_destroy(v);
    return status;
}

static void options_become_attributes(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_attn_nystrom_options a;
    assert_ok(attr_with((const char *const[]){NULL}, &a, &err), &err);
    assert_true(a.landmarks == 64 && a.pinv == TTN_PINV_CHEB && a.iterations == 0 && a.lambda == 1e-6 && a.conv == 33 &&
                !a.shared);
    assert_ok(attr_with((const char *const[]){"nystrom.pinv", "exact", "nystrom.lambda", "0.5", "nystrom.conv", "0",
                                              "nystrom.landmarks", "8", "nystrom.iterations", "3", NULL},
                        &a, &err),
              &err);
    assert_true(a.landmarks == 8 && a.pinv == TTN_PINV_EXACT && a.iterations == 3 && a.lambda == 0.5 && a.conv == 0);
    static const char *const compats[] = {"hf", "mlpen"};
    for (int i = 0; i < 2; i++) {
        assert_ok(
            attr_with((const char *const[]){"nystrom.compat", compats[i], "nystrom.pinv", "exact", NULL}, &a, &err),
            &err);
        assert_true(a.pinv == TTN_PINV_RAZAVI && a.iterations == 6 && a.shared);
    }
    assert_fails(attr_with((const char *const[]){"nystrom.conv", "4", NULL}, &a, &err), TTN_EINVAL, &err,
                 "nystrom.conv is 4, expected an odd width");
}

static void a_kind_records_its_convolution_and_refuses_to_be_causal(void **state)
{
    (void)state;
    ttn_error err = {0};
    const ttn_op *op = ttn_attention_find("nystrom");
    assert_ptr_equal(op, &ttn_op_attn_nystrom);
    for (int form = 0; form < 4; form++)
        for (int causal = 0; causal < 2; causal++) {
            const int conv = form % 2;
            const ttn_attn_nystrom_options a = {.landmarks = form < 2 ? 4 : 0, .conv = conv ? 5 : 0};
            ttn_graph *g = ttn_graph_create((ttn_extent){.rows = 480, .seqs = 2});
            const int x = ttn_input(g, "x", ttn_rows(g, 6));
            const ttn_attn_in in = {
                .q = x, .k = x, .v = x, .heads = 2, .causal = causal, .dropout = 0.1, .name = "core"};
            const int y = op->attention->build(g, &in, &a);
            err = (ttn_error){0};
            if (causal) {
                assert_int_equal(y, TTN_FAILED);
                assert_fails(ttn_graph_check(g, &err), TTN_EINVAL, &err, "would show residues that come later");
            } else {
                assert_ok(ttn_graph_check(g, &err), &err);
                /* the node whose maps can be looked at, but for the sum behind exact attention */
                assert_string_equal(ttn_name_of_value(g, y), a.landmarks == 0 && conv ? "conv.sum" : "core");
                assert_int_equal(ttn_desc_of_value(g, y).dim[1], 6);
            }
            ttn_graph_destroy(g);
        }
}

static void costs_count_the_inverse_and_memory_does_not_grow_with_sequences_beyond_slots(void **state)
{
    (void)state;
    static ttn_span span[MOST_SEQS];
    for (int s = 0; s < MOST_SEQS; s++)
        span[s] = (ttn_span){12 * s, 12};
    span[0].n = 1;
    span[MOST_SEQS - 1] = (ttn_span){12 * (MOST_SEQS - 1), 2048 - 12 * (MOST_SEQS - 1)};
    ttn_attn_nystrom_options attr = {.heads = 8, .landmarks = 256};
    run r;
    make_nystrom(&r, &attr, 64, 0, span, 1); /* a capacity of 480 rows */
    assert_int_equal(r.sig.aux[1].dim[0], 1);
    release(&r);
    make_nystrom(&r, &attr, 64, 0, span, MOST_SEQS); /* 2,400 rows: at most 9 sequences of more than 256 */
    assert_int_equal(r.sig.aux[1].dim[0], 9);
    assert_int_equal(r.sig.aux[2].dim[0], 9);
    release(&r);

    /* no room for a sequence of more residues than landmarks: no inverse is made */
    attr.landmarks = 4096;
    make_nystrom(&r, &attr, 64, 0, span, MOST_SEQS);
    assert_int_equal(r.sig.aux[2].dim[0], 0);
    for (int pass = TTN_FORWARD; pass <= TTN_BACKWARD; pass++)
        assert_true(r.sig.work_thread[pass] < (size_t)4096 * 4096 * sizeof(real)); /* one matrix of landmarks */
    release(&r);
    attr.landmarks = 256;

    /* one sequence of 512 rows: 24 products of 256^3 a head are more than the rest */
    ttn_sig s = {.attr = &attr, .cap = {.rows = 512, .seqs = 1}, .n_in = 4};
    for (int i = 0; i < 3; i++)
        s.in[i] = ttn_desc_of(TTN_REAL, TTN_ROWS, 2, 512, 512, 0);
    s.in[3].ndim = -1;
    const double inverse = 8 * 24 * 2 * 256.0 * 256 * 256;
    const ttn_cost f = ttn_op_attn_nystrom.cost(&s, TTN_FORWARD, 0);
    const ttn_cost b = ttn_op_attn_nystrom.cost(&s, TTN_BACKWARD, 0);
    const double products = 4 * 2 * 512.0 * 256 * 512;
    assert_true(f.useful > inverse + products && f.useful < 1.1 * (inverse + products));
    assert_true(inverse > products);
    /* iterates made again: 5 products a step; 6 of them back; 10 products of rows, of which 8 are useful */
    const double back = inverse * 11 / 3 + products * 10 / 4;
    assert_true(b.done > back && b.done < 1.1 * back);
    assert_true(b.useful < 0.6 * b.done);
    /* linear in the length: twice as long, as many more products again */
    s.cap.rows = 1024;
    for (int i = 0; i < 3; i++)
        s.in[i].dim[0] = 1024;
    const double growth = ttn_op_attn_nystrom.cost(&s, TTN_FORWARD, 0).useful - f.useful;
    assert_true(growth > products && growth < 1.1 * products);
}

/* Every row is one of a sequence that is one row longer than there are landmarks: there is a slot for each, and no other. */
static void there_are_slots_for_as_many_sequences_as_fit(void **state)
{
    (void)state;
    enum { M = 11, SEQS = 40, D = 4 };
    static ttn_span span[SEQS];
    for (int s = 0; s < SEQS; s++)
        span[s] = (ttn_span){(M + 1) * s, M + 1};
    static const ttn_attn_nystrom_options attr = {.heads = 2, .landmarks = M};
    run r;
    make_nystrom(&r, &attr, D, 0, span, SEQS);
    assert_int_equal(r.rows, (M + 1) * SEQS);
    assert_int_equal(r.sig.aux[1].dim[0], SEQS);
    assert_int_equal(r.sig.aux[2].dim[0], SEQS);
    fill_all(&r, 660, 1.5);
    set_apart(&r, M, 670);
    forward(&r);
    backward(&r);
    for (int64_t s = 0; s < SEQS; s++) {
        dense d = dense_of(&r, s, 1, M);
        dense_nystrom(&d, TTN_INVERSE_CHEB_STEPS, 0, NULL);
        assert_at_most(difference(&r, &d, s, 1), IS_F32 ? 1e-4 : 1e-11, "out");
        dense_free(&d);
    }
    release(&r);
}

/* One long sequence: what is kept, and the scratch of either pass with two threads, beside q, k, v, out and their gradients. */
static void a_long_sequence_takes_a_twentieth_of_its_inputs_and_outputs(void **state)
{
    (void)state;
    enum { ROWS = 65760, WIDTH = 512 };
    for (int m = 64; m <= 256; m += 192) {
        const ttn_attn_nystrom_options attr = {.heads = 8, .landmarks = m};
        ttn_sig s = {.attr = &attr, .cap = {.rows = ROWS, .seqs = 1}, .n_in = 4};
        for (int i = 0; i < 3; i++)
            s.in[i] = ttn_desc_of(TTN_REAL, TTN_ROWS, 2, ROWS, WIDTH, 0);
        s.in[3].ndim = -1;
        ttn_error err = {0};
        assert_ok(ttn_op_attn_nystrom.shape(&s, &err), &err);
        double more = 0;
        for (int pass = TTN_FORWARD; pass <= TTN_BACKWARD; pass++)
            more = fmax(more, (double)(ttn_work_align(s.work[pass]) + 2 * ttn_work_align(s.work_thread[pass])));
        for (int a = 0; a < s.n_aux; a++)
            more += (double)ttn_desc_bytes(&s.aux[a]);
        assert_at_most(more / (8.0 * (double)ttn_desc_bytes(&s.out[0])), 0.05, "beyond inputs and outputs");
    }
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    ttn_test_threads(MOST_THREADS);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nystrom_attention_is_the_definition_at_every_length),
        cmocka_unit_test(nystrom_attention_is_the_definition_at_every_width_of_a_head),
        cmocka_unit_test(more_heads_than_a_group_start_together),
        cmocka_unit_test(gradients_of_many_chunks_respect_what_makes_no_difference),
        cmocka_unit_test(products_of_hundreds_leave_out_and_gradients_accurate),
        cmocka_unit_test(a_hundred_thousand_residues),
        cmocka_unit_test(means_of_many_rows_keep_their_digits),
        cmocka_unit_test(short_sequences_have_the_bits_of_exact_attention),
        cmocka_unit_test(a_sequence_has_the_same_bits_alone_first_in_the_middle_and_last),
        cmocka_unit_test(bits_do_not_depend_on_threads_and_groups),
        cmocka_unit_test(a_kernels_gradient_over_many_rows_keeps_its_digits),
        cmocka_unit_test(balanced_landmarks_have_half_the_error_of_fixed_segments),
        cmocka_unit_test(maps_are_rows_of_f_z_b_and_their_means),
        cmocka_unit_test(maps_of_rows_whose_logits_are_far_below_zero_are_right),
        cmocka_unit_test(a_map_whose_inverse_fails_says_which),
        cmocka_unit_test(options_become_attributes),
        cmocka_unit_test(a_kind_records_its_convolution_and_refuses_to_be_causal),
        cmocka_unit_test(costs_count_the_inverse_and_memory_does_not_grow_with_sequences_beyond_slots),
        cmocka_unit_test(there_are_slots_for_as_many_sequences_as_fit),
        cmocka_unit_test(a_long_sequence_takes_a_twentieth_of_its_inputs_and_outputs),
    };
    return ttn_test_run(tests);
}
