/* Attention kinds beyond what the driver of all ops sees: exact attention against the dense softmax in double, where a
 * sequence may stand, what is masked, dropout, maps, and how a kind is reached by name. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/attention.h"
#include "autograd/ops.h"
#include "autograd/plan.h"
#include "core/blas.h"
#include "core/memory.h"
#include "core/rng.h"
#include "tests/harness/test.h"

enum { TILE = 192, MOST_THREADS = 24 }; /* the largest tile of attn_exact.c */

/* Of 1 + a value's largest element. Sums over up to 400 rows of weights that add up to 1. */
static const double bound = sizeof(real) == 4 ? 3e-6 : 1e-14;

/* ---- one call, set up ---- */

typedef struct {
    ttn_attn_exact_options attr;
    int64_t C, rows; /* rows: the capacity */
    ttn_sig sig;
    ttn_feed feed;
    ttn_stream on;
    real *in[3], *out, *lse, *dout, *din[3];
    void *work;
} run;

static real *values(int64_t n)
{
    real *x = ttn_alloc_array(n, sizeof *x);
    assert_non_null(x);
    return x;
}

static void make(run *r, ttn_attn_exact_options attr, int64_t D, const ttn_span *span, int64_t seqs)
{
    int64_t used = 0;
    if (seqs > 0) used = span[seqs - 1].first + span[seqs - 1].n;
    const int64_t rows = (used + 479) / 480 * 480;
    *r = (run){.attr = attr, .C = attr.heads * D, .rows = rows, .on = {.n_thread = 2}};
    r->sig = (ttn_sig){.attr = &r->attr, .cap = {.rows = rows, .seqs = seqs}, .n_in = 3};
    for (int i = 0; i < 3; i++)
        r->sig.in[i] = ttn_desc_of(TTN_REAL, TTN_ROWS, 2, rows, r->C, 0);
    ttn_error err = {0};
    assert_ok(ttn_op_attn_exact.shape(&r->sig, &err), &err);
    r->feed = (ttn_feed){.used = {.rows = used, .seqs = seqs}, .span = span, .training = 1};
    size_t bytes = 0;
    for (int pass = 0; pass < 2; pass++) {
        const size_t each = ttn_work_align(r->sig.work[pass]) + MOST_THREADS * ttn_work_align(r->sig.work_thread[pass]);
        bytes = each > bytes ? each : bytes;
    }
    r->work = ttn_alloc(bytes);
    assert_non_null(r->work);
    for (int i = 0; i < 3; i++) {
        r->in[i] = values(rows * r->C);
        r->din[i] = values(rows * r->C);
    }
    r->out = values(rows * r->C);
    r->dout = values(rows * r->C);
    r->lse = values(rows * attr.heads);
}

static void release(run *r)
{
    for (int i = 0; i < 3; i++) {
        ttn_free(r->in[i]);
        ttn_free(r->din[i]);
    }
    ttn_free(r->out);
    ttn_free(r->dout);
    ttn_free(r->lse);
    ttn_free(r->work);
}

/* Numbers in (-1, 1) with all their bits: products of short ones would be exact. */
static void fill(real *x, int64_t n, uint64_t stream)
{
    ttn_rng r = {.key = ttn_test_seed() + 1000 * stream};
    for (int64_t i = 0; i < n; i++)
        x[i] = 2 * ttn_rng_next_uniform(&r) - 1;
}

static void fill_all(run *r, uint64_t stream)
{
    for (int i = 0; i < 3; i++)
        fill(r->in[i], r->feed.used.rows * r->C, stream + (uint64_t)i);
    fill(r->dout, r->feed.used.rows * r->C, stream + 3);
}

static ttn_call call_of(run *r)
{
    return (ttn_call){.sig = &r->sig,
                      .feed = &r->feed,
                      .on = &r->on,
                      .key = 12345,
                      .in = {r->in[0], r->in[1], r->in[2]},
                      .out = {r->out},
                      .aux = {r->lse},
                      .work = r->work};
}

static void forward(run *r)
{
    ttn_error err = {0};
    const ttn_call c = call_of(r);
    assert_ok(ttn_op_attn_exact.cpu.forward(&c, &err), &err);
}

static void backward(run *r)
{
    ttn_error err = {0};
    ttn_call c = call_of(r);
    c.dout[0] = r->dout;
    for (int i = 0; i < 3; i++)
        c.din[i] = r->din[i];
    assert_ok(ttn_op_attn_exact.cpu.backward(&c, &err), &err);
}

/* ---- the dense softmax, in double ---- */

typedef struct {
    const run *r;
    int64_t seq, head, n, D;
    double scale;
    double *p; /* (n, n) */
} dense;

static double at(const dense *d, const real *x, int64_t i, int64_t c)
{
    return (double)x[(d->r->feed.span[d->seq].first + i) * d->r->C + d->head * d->D + c];
}

static double dot(const dense *d, const real *x, int64_t i, const real *y, int64_t t)
{
    double sum = 0;
    for (int64_t c = 0; c < d->D; c++)
        sum += at(d, x, i, c) * at(d, y, t, c);
    return sum;
}

/* Row i of the weights. */
static void weights_of_row(const dense *d, int64_t i, double *p)
{
    const int64_t seen = d->r->attr.causal ? i + 1 : d->n;
    double most = -(double)INFINITY;
    double sum = 0;
    for (int64_t t = 0; t < seen; t++) {
        p[t] = d->scale * dot(d, d->r->in[0], i, d->r->in[1], t);
        most = p[t] > most ? p[t] : most;
    }
    for (int64_t t = 0; t < seen; t++) {
        p[t] = exp(p[t] - most);
        sum += p[t];
    }
    for (int64_t t = 0; t < d->n; t++)
        p[t] = t < seen ? p[t] / sum : 0;
}

static dense dense_of(const run *r, int64_t seq, int64_t head)
{
    dense d = {.r = r, .seq = seq, .head = head, .n = r->feed.span[seq].n, .D = r->C / r->attr.heads};
    d.scale = r->attr.scale > 0 ? r->attr.scale : 1 / sqrt((double)d.D);
    d.p = ttn_alloc_array(d.n * d.n, sizeof *d.p);
    assert_non_null(d.p);
    for (int64_t i = 0; i < d.n; i++)
        weights_of_row(&d, i, d.p + i * d.n);
    return d;
}

static void assert_near(double got, double wanted, const char *what)
{
    assert_at_most(fabs(got - wanted) / (1 + fabs(wanted)), bound, what);
}

/* Outputs and gradients of one sequence and head. */
static void compare(const run *r, int64_t seq, int64_t head)
{
    dense d = dense_of(r, seq, head);
    double *e = ttn_alloc_array(d.n * d.n, sizeof *e); /* scale p (g v^T - delta) */
    assert_non_null(e);
    for (int64_t i = 0; i < d.n; i++) {
        double delta = 0;
        for (int64_t t = 0; t < d.n; t++) {
            e[i * d.n + t] = d.p[i * d.n + t] > 0 ? dot(&d, r->dout, i, r->in[2], t) : 0;
            delta += d.p[i * d.n + t] * e[i * d.n + t];
        }
        for (int64_t t = 0; t < d.n; t++)
            e[i * d.n + t] = d.scale * d.p[i * d.n + t] * (e[i * d.n + t] - delta);
    }
    for (int64_t i = 0; i < d.n; i++)
        for (int64_t c = 0; c < d.D; c++) {
            double out = 0;
            double dq = 0;
            double dk = 0;
            double dv = 0;
            for (int64_t t = 0; t < d.n; t++) {
                out += d.p[i * d.n + t] * at(&d, r->in[2], t, c);
                dq += e[i * d.n + t] * at(&d, r->in[1], t, c);
                dk += e[t * d.n + i] * at(&d, r->in[0], t, c);
                dv += d.p[t * d.n + i] * at(&d, r->dout, t, c);
            }
            assert_near(at(&d, r->out, i, c), out, "out");
            assert_near(at(&d, r->din[0], i, c), dq, "dq");
            assert_near(at(&d, r->din[1], i, c), dk, "dk");
            assert_near(at(&d, r->din[2], i, c), dv, "dv");
        }
    ttn_free(e);
    ttn_free(d.p);
}

static void exact_attention_is_the_dense_softmax_for_every_head_width(void **state)
{
    (void)state;
    static const int64_t width[] = {8, 16, 20, 24, 64, 80, 128};
    static const ttn_span span[] = {{0, 1}, {12, 30}, {42, TILE + 1}, {240, 24}};
    enum { SEQS = sizeof span / sizeof *span };
    for (int causal = 0; causal < 2; causal++)
        for (size_t w = 0; w < sizeof width / sizeof *width; w++) {
            run r;
            make(&r, (ttn_attn_exact_options){.heads = 2, .causal = causal}, width[w], span, SEQS);
            fill_all(&r, w);
            forward(&r);
            backward(&r);
            for (int64_t s = 0; s < SEQS; s++)
                compare(&r, s, s % 2);
            release(&r);
        }
}

static void exact_attention_is_the_dense_softmax_at_every_edge_of_a_tile(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 2, 23, 24, 25, TILE - 1, TILE, TILE + 1, 2 * TILE, 2 * TILE + 3, 3 * TILE + 1};
    for (int causal = 0; causal < 2; causal++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
            const ttn_span span = {5, lengths[l]};
            run r;
            make(&r, (ttn_attn_exact_options){.heads = 1, .causal = causal, .scale = 1.25}, 8, &span, 1);
            fill_all(&r, 50 + l);
            forward(&r);
            backward(&r);
            compare(&r, 0, 0);
            release(&r);
        }
}

/* Logits of up to 1,600, growing along the keys: the running maximum moves in every tile, by more than exp can hold. */
static void exact_attention_stands_logits_far_beyond_the_range_of_exp(void **state)
{
    (void)state;
    enum { D = 8, N = 3 * TILE + 5 };
    const ttn_span span = {0, N};
    run r;
    make(&r, (ttn_attn_exact_options){.heads = 1, .scale = 1}, D, &span, 1);
    fill_all(&r, 90);
    for (int64_t i = 0; i < N; i++)
        for (int64_t c = 0; c < D; c++) {
            r.in[0][i * D + c] = (real)10 + r.in[0][i * D + c];
            r.in[1][i * D + c] = (real)(20.0 * (double)(i + 1) / N) + r.in[1][i * D + c] / 10;
        }
    forward(&r);
    backward(&r);
    dense d = dense_of(&r, 0, 0);
    for (int64_t i = 0; i < N; i++)
        for (int64_t c = 0; c < D; c++) {
            double out = 0;
            for (int64_t t = 0; t < N; t++)
                out += d.p[i * N + t] * (double)r.in[2][t * D + c];
            /* a logit of 1,600 is rounded by 1e-4 in f32 */
            assert_at_most(fabs((double)r.out[i * D + c] - out), sizeof(real) == 4 ? 2e-3 : 1e-11, "out");
            for (int input = 0; input < 3; input++)
                assert_true(isfinite(r.din[input][i * D + c]));
        }
    ttn_free(d.p);
    release(&r);
}

/* ---- what holds without a reference ---- */

static void constant_values_give_a_constant_output(void **state)
{
    (void)state;
    static const ttn_span span[] = {{0, 387}, {396, 1}, {408, 50}};
    run r;
    make(&r, (ttn_attn_exact_options){.heads = 3, .scale = 4}, 5, span, 3);
    fill_all(&r, 100);
    for (int64_t i = 0; i < r.feed.used.rows; i++)
        for (int64_t c = 0; c < r.C; c++)
            r.in[2][i * r.C + c] = (real)(c + 1) / 3;
    forward(&r);
    for (int s = 0; s < 3; s++)
        for (int64_t i = span[s].first; i < span[s].first + span[s].n; i++)
            for (int64_t c = 0; c < r.C; c++)
                assert_near((double)r.out[i * r.C + c], (double)(real)((real)(c + 1) / 3), "a weighted mean of equals");
    release(&r);
}

static void permuting_rows_permutes_outputs_and_gradients(void **state)
{
    (void)state;
    enum { N = 2 * TILE + 7 };
    const ttn_span span = {0, N};
    run a;
    run b;
    make(&a, (ttn_attn_exact_options){.heads = 2}, 12, &span, 1);
    make(&b, (ttn_attn_exact_options){.heads = 2}, 12, &span, 1);
    fill_all(&a, 110);
    for (int64_t i = 0; i < N; i++) { /* row i becomes row 5 i mod N: N is prime to 5 */
        const int64_t to = 5 * i % N;
        for (int input = 0; input < 3; input++)
            memcpy(b.in[input] + to * a.C, a.in[input] + i * a.C, (size_t)a.C * sizeof(real));
        memcpy(b.dout + to * a.C, a.dout + i * a.C, (size_t)a.C * sizeof(real));
    }
    forward(&a);
    forward(&b);
    backward(&a);
    backward(&b);
    for (int64_t i = 0; i < N; i++)
        for (int64_t c = 0; c < a.C; c++) {
            const int64_t to = 5 * i % N * a.C + c;
            assert_near((double)b.out[to], (double)a.out[i * a.C + c], "out");
            for (int input = 0; input < 3; input++)
                assert_near((double)b.din[input][to], (double)a.din[input][i * a.C + c], "gradient");
        }
    release(&a);
    release(&b);
}

/* ---- the same bits ---- */

/* Sequence `seq` of b has the bits of sequence 0 of a. */
static void assert_same_sequence(const run *a, const run *b, int64_t seq)
{
    const ttn_span from = a->feed.span[0];
    const ttn_span to = b->feed.span[seq];
    assert_int_equal(from.n, to.n);
    const size_t bytes = (size_t)(from.n * a->C) * sizeof(real);
    assert_same_bits(a->out + from.first * a->C, b->out + to.first * a->C, bytes);
    assert_same_bits(a->lse + from.first * a->attr.heads, b->lse + to.first * a->attr.heads,
                     (size_t)(from.n * a->attr.heads) * sizeof(real));
    for (int i = 0; i < 3; i++)
        assert_same_bits(a->din[i] + from.first * a->C, b->din[i] + to.first * a->C, bytes);
}

/* Sequence 0 of a, in its inputs and dout, at sequence `seq` of b. */
static void put_sequence(const run *a, run *b, int64_t seq)
{
    const ttn_span from = a->feed.span[0];
    const ttn_span to = b->feed.span[seq];
    const size_t bytes = (size_t)(from.n * a->C) * sizeof(real);
    for (int i = 0; i < 3; i++)
        memcpy(b->in[i] + to.first * a->C, a->in[i] + from.first * a->C, bytes);
    memcpy(b->dout + to.first * a->C, a->dout + from.first * a->C, bytes);
}

static void a_sequence_has_the_same_bits_alone_first_in_the_middle_and_last(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 37, 353, 2 * TILE + 3};
    for (int causal = 0; causal < 2; causal++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
            const int64_t n = lengths[l];
            const ttn_attn_exact_options attr = {.heads = 4, .causal = causal};
            const ttn_span alone = {0, n};
            const int64_t step = (n + 11) / 12 * 12;
            const ttn_span first[] = {{0, n}, {step, 100}, {step + 108, 7}};
            const ttn_span middle[] = {{0, 29}, {36, n}, {36 + step, 350}};
            const ttn_span last[] = {{0, 500}, {504, 1}, {516, n}};
            const ttn_span *const place[] = {first, middle, last};
            run a;
            make(&a, attr, 16, &alone, 1);
            fill_all(&a, 120);
            forward(&a);
            backward(&a);
            for (int p = 0; p < 3; p++)
                for (int mates = 0; mates < 2; mates++) {
                    run b;
                    make(&b, attr, 16, place[p], 3);
                    fill_all(&b, 130 + 10 * (uint64_t)mates);
                    put_sequence(&a, &b, p);
                    b.on.n_thread = 1 + mates;
                    forward(&b);
                    backward(&b);
                    assert_same_sequence(&a, &b, p);
                    release(&b);
                }
            release(&a);
        }
}

/* More heads than fit into a group of copies, on one thread and on eight. */
static void bits_do_not_depend_on_threads_and_groups(void **state)
{
    (void)state;
    static const ttn_span span[] = {{0, 1500}, {1500, 353}, {1860, 900}, {2760, 1}, {2772, 2000}, {4780, 20}};
    run a;
    run b;
    make(&a, (ttn_attn_exact_options){.heads = 8}, 4, span, 6);
    make(&b, (ttn_attn_exact_options){.heads = 8}, 4, span, 6);
    fill_all(&a, 150);
    fill_all(&b, 150);
    a.on.n_thread = 1;
    b.on.n_thread = MOST_THREADS;
    forward(&a);
    forward(&b);
    backward(&a);
    backward(&b);
    const size_t bytes = (size_t)(a.rows * a.C) * sizeof(real);
    assert_same_bits(a.out, b.out, bytes);
    for (int i = 0; i < 3; i++)
        assert_same_bits(a.din[i], b.din[i], bytes);
    release(&a);
    release(&b);
}

static void causal_outputs_do_not_see_later_rows(void **state)
{
    (void)state;
    enum { N = 2 * TILE + 3 };
    static const int64_t from[] = {1, 50, 143, 144, 145, N - 1}; /* tiles of 144 rows */
    const ttn_span span = {0, N};
    run a;
    make(&a, (ttn_attn_exact_options){.heads = 2, .causal = 1}, 8, &span, 1);
    fill_all(&a, 160);
    forward(&a);
    for (size_t f = 0; f < sizeof from / sizeof *from; f++) {
        run b;
        make(&b, (ttn_attn_exact_options){.heads = 2, .causal = 1}, 8, &span, 1);
        fill_all(&b, 160);
        for (int64_t e = from[f] * b.C; e < N * b.C; e++)
            for (int i = 0; i < 3; i++)
                b.in[i][e] *= (real)(-0.3 - 2.7 * (double)(e % 7) / 6);
        forward(&b);
        assert_same_bits(a.out, b.out, (size_t)(from[f] * a.C) * sizeof(real));
        assert_true(memcmp(a.out + from[f] * a.C, b.out + from[f] * a.C, (size_t)a.C * sizeof(real)) != 0);
        release(&b);
    }
    release(&a);
}

/* ---- dropout ---- */

enum { SHOWN = 96 }; /* a head width that holds a sequence: with v the unit matrix, out is p z itself */

static void show_weights(run *r, int64_t seq)
{
    const ttn_span span = r->feed.span[seq];
    for (int64_t i = 0; i < span.n; i++)
        for (int64_t c = 0; c < r->C; c++)
            r->in[2][(span.first + i) * r->C + c] = c % SHOWN == i;
}

/* Is weight (i, t) of this head there? */
static int is_kept(const run *r, int64_t seq, int64_t head, int64_t i, int64_t t)
{
    return r->out[(r->feed.span[seq].first + i) * r->C + head * SHOWN + t] != 0;
}

static void dropout_keeps_weights_at_its_rate_and_divides_by_it(void **state)
{
    (void)state;
    const ttn_span span = {0, SHOWN};
    run r;
    make(&r, (ttn_attn_exact_options){.heads = 4, .dropout = 0.3}, SHOWN, &span, 1);
    fill_all(&r, 170);
    show_weights(&r, 0);
    forward(&r);
    int64_t kept = 0;
    for (int64_t head = 0; head < 4; head++) {
        dense d = dense_of(&r, 0, head);
        for (int64_t i = 0; i < SHOWN; i++)
            for (int64_t t = 0; t < SHOWN; t++) {
                if (!is_kept(&r, 0, head, i, t)) continue;
                kept++;
                assert_near(at(&d, r.out, i, t), d.p[i * SHOWN + t] / 0.7, "a kept weight");
            }
        ttn_free(d.p);
    }
    const double n = 4.0 * SHOWN * SHOWN;
    assert_at_most(fabs((double)kept / n - 0.7), 5 * sqrt(0.7 * 0.3 / n), "share that is kept, 5 sigma");
    /* not in evaluation */
    r.feed.training = 0;
    forward(&r);
    for (int64_t e = 0; e < SHOWN * r.C; e++)
        assert_true(r.out[e] > 0);
    release(&r);
}

/* Share of equal decisions in two families of weights: p^2 + (1 - p)^2 when they are independent. */
static void assert_independent(int64_t equal, int64_t n, double p)
{
    const double wanted = p * p + (1 - p) * (1 - p);
    assert_at_most(fabs((double)equal / (double)n - wanted), 5 * sqrt(wanted * (1 - wanted) / (double)n), "5 sigma");
}

static void dropout_draws_once_for_each_head_query_and_key(void **state)
{
    (void)state;
    const ttn_span span = {0, SHOWN};
    run r;
    make(&r, (ttn_attn_exact_options){.heads = 3, .dropout = 0.5}, SHOWN, &span, 1);
    fill_all(&r, 180);
    show_weights(&r, 0);
    forward(&r);
    /* against all near relatives: another head, row, column, the transposed place */
    int64_t heads = 0;
    int64_t next_row = 0;
    int64_t next_key = 0;
    int64_t fourth_key = 0;
    int64_t transposed = 0;
    int64_t n = 0;
    for (int64_t i = 0; i + 4 < SHOWN; i++)
        for (int64_t t = 0; t + 4 < i; t++) {
            const int z = is_kept(&r, 0, 0, i, t);
            heads += z == is_kept(&r, 0, 1, i, t);
            next_row += z == is_kept(&r, 0, 0, i + 1, t);
            next_key += z == is_kept(&r, 0, 0, i, t + 1);
            fourth_key += z == is_kept(&r, 0, 0, i, t + 4);
            transposed += z == is_kept(&r, 0, 0, t, i);
            n++;
        }
    assert_independent(heads, n, 0.5);
    assert_independent(next_row, n, 0.5);
    assert_independent(next_key, n, 0.5);
    assert_independent(fourth_key, n, 0.5);
    assert_independent(transposed, n, 0.5);
    release(&r);
}

static void dropout_is_keyed_by_the_place_in_the_sequence(void **state)
{
    (void)state;
    static const ttn_span alone[] = {{0, SHOWN}};
    static const ttn_span packed[] = {{0, 40}, {48, SHOWN}, {156, 70}};
    static const uint64_t alone_sample[] = {77};
    static const uint64_t packed_sample[] = {3, 77, 77};
    static const int64_t packed_start[] = {0, 0, 9}; /* the third is a crop of the same sequence: residues 9 to 78 */
    const ttn_attn_exact_options attr = {.heads = 2, .dropout = 0.4};
    run a;
    run b;
    make(&a, attr, SHOWN, alone, 1);
    make(&b, attr, SHOWN, packed, 3);
    a.feed.sample = alone_sample;
    b.feed.sample = packed_sample;
    b.feed.start = packed_start;
    fill_all(&a, 190);
    fill_all(&b, 200);
    put_sequence(&a, &b, 1);
    show_weights(&a, 0);
    for (int64_t s = 0; s < 3; s++)
        show_weights(&b, s);
    forward(&a);
    forward(&b);
    int64_t other = 0;
    for (int64_t head = 0; head < 2; head++)
        for (int64_t i = 0; i < SHOWN; i++)
            for (int64_t t = 0; t < SHOWN; t++) {
                const int z = is_kept(&a, 0, head, i, t);
                assert_int_equal(z, is_kept(&b, 1, head, i, t));
                if (i >= 9 && t >= 9 && i < 79 && t < 79) assert_int_equal(z, is_kept(&b, 2, head, i - 9, t - 9));
                if (i < 40 && t < 40) other += z == is_kept(&b, 0, head, i, t);
            }
    assert_independent(other, 2 * 40 * 40, 0.4);
    release(&a);
    release(&b);
}

/* In which case gradients with dropout are right: the driver's differences say so; here that packing does not matter. */
static void a_sequence_with_dropout_has_the_same_bits_in_another_batch(void **state)
{
    (void)state;
    static const ttn_span alone[] = {{0, 353}};
    static const ttn_span packed[] = {{0, 40}, {48, 353}, {408, 70}};
    static const uint64_t alone_sample[] = {77};
    static const uint64_t packed_sample[] = {3, 77, 1};
    const ttn_attn_exact_options attr = {.heads = 2, .causal = 1, .dropout = 0.2};
    run a;
    run b;
    make(&a, attr, 10, alone, 1);
    make(&b, attr, 10, packed, 3);
    a.feed.sample = alone_sample;
    b.feed.sample = packed_sample;
    fill_all(&a, 210);
    fill_all(&b, 220);
    put_sequence(&a, &b, 1);
    forward(&a);
    forward(&b);
    backward(&a);
    backward(&b);
    assert_same_sequence(&a, &b, 1);
    release(&a);
    release(&b);
}

/* ---- long ---- */

/* Some rows and columns against the definition; L of the other rows is taken from the op. */
static void check_some(const run *r, int64_t n_check, int gradients)
{
    dense d = {.r = r, .n = r->feed.span[0].n, .D = r->C};
    d.scale = 1 / sqrt((double)d.D);
    double *p = ttn_alloc_array(d.n, sizeof *p);
    assert_non_null(p);
    const double tolerance = sizeof(real) == 4 ? 3e-5 : 1e-13; /* sums of 10^4 and more terms */
    for (int64_t check = 0; check < n_check; check++) {
        const int64_t i = check * (d.n - 1) / (n_check - 1);
        weights_of_row(&d, i, p);
        double delta = 0;
        for (int64_t t = 0; t < d.n && gradients; t++)
            delta += p[t] * dot(&d, r->dout, i, r->in[2], t);
        for (int64_t c = 0; c < d.D; c++) {
            double out = 0;
            double dq = 0;
            double dv = 0;
            for (int64_t t = 0; t < d.n; t++) {
                out += p[t] * at(&d, r->in[2], t, c);
                if (!gradients) continue;
                dq += d.scale * p[t] * (dot(&d, r->dout, i, r->in[2], t) - delta) * at(&d, r->in[1], t, c);
                const double back = exp(d.scale * dot(&d, r->in[0], t, r->in[1], i) - (double)r->lse[t]);
                dv += back * at(&d, r->dout, t, c);
            }
            assert_at_most(fabs(at(&d, r->out, i, c) - out) / (1 + fabs(out)), tolerance, "out");
            if (!gradients) continue;
            assert_at_most(fabs(at(&d, r->din[0], i, c) - dq) / (1 + fabs(dq)), tolerance, "dq");
            assert_at_most(fabs(at(&d, r->din[2], i, c) - dv) / (1 + fabs(dv)), tolerance, "dv");
        }
    }
    ttn_free(p);
}

static void eight_thousand_residues_and_three(void **state)
{
    (void)state;
    const ttn_span span = {0, ttn_scaled(2 * 4096 + 3, 1003)};
    run r;
    make(&r, (ttn_attn_exact_options){.heads = 1}, 8, &span, 1);
    fill_all(&r, 230);
    forward(&r);
    backward(&r);
    check_some(&r, 5, 1);
    release(&r);
}

static void a_hundred_thousand_residues(void **state)
{
    (void)state;
    if (!ttn_test_long()) skip_because("10^5 residues: make test-long");
    const ttn_span span = {0, 100000};
    run r;
    make(&r, (ttn_attn_exact_options){.heads = 1}, 8, &span, 1);
    fill_all(&r, 240);
    forward(&r);
    check_some(&r, 7, 0);
    release(&r);
}

/* ---- maps ---- */

static void map_rows_are_rows_of_the_softmax(void **state)
{
    (void)state;
    static const ttn_span span[] = {{0, 30}, {36, 2 * TILE + 3}};
    static const int64_t row[] = {0, 2 * TILE + 2, 77, 77};
    enum { ROWS = sizeof row / sizeof *row, N = 2 * TILE + 3 };
    const ttn_attention *a = ttn_op_attn_exact.attention;
    static real map[ROWS * N];
    static double p[N];
    for (int causal = 0; causal < 2; causal++) {
        run r;
        make(&r, (ttn_attn_exact_options){.heads = 3, .causal = causal, .scale = 1.5, .dropout = 0.3}, 7, span, 2);
        fill_all(&r, 250);
        forward(&r);
        const ttn_call c = call_of(&r);
        ttn_error err = {0};
        assert_ok(a->map_rows(&c, 1, 2, ROWS, row, map, &err), &err);
        const dense d = {.r = &r, .seq = 1, .head = 2, .n = N, .D = 7, .scale = 1.5};
        for (int k = 0; k < ROWS; k++) {
            weights_of_row(&d, row[k], p);
            for (int64_t t = 0; t < N; t++)
                assert_near((double)map[k * N + t], p[t], "a weight");
        }
        const int64_t bad = N;
        err = (ttn_error){0};
        assert_fails(a->map_rows(&c, 2, 0, 0, NULL, map, &err), TTN_EINVAL, &err, "no sequence 2 in a batch of 2");
        err = (ttn_error){0};
        assert_fails(a->map_rows(&c, 0, 3, 0, NULL, map, &err), TTN_EINVAL, &err, "no head 3 of 3");
        err = (ttn_error){0};
        assert_fails(a->map_rows(&c, 1, 0, 1, &bad, map, &err), TTN_EINVAL, &err, "no row 387 in a sequence of 387");
        release(&r);
    }
}

static void map_pool_is_the_mean_over_blocks_of_the_softmax(void **state)
{
    (void)state;
    static const ttn_span span[] = {{0, 2 * TILE + 3}, {396, 10}};
    static const int64_t blocks[] = {1, 7, 50, 2 * TILE + 3};
    const ttn_attention *a = ttn_op_attn_exact.attention;
    for (int causal = 0; causal < 2; causal++) {
        run r;
        make(&r, (ttn_attn_exact_options){.heads = 2, .causal = causal, .scale = 2}, 6, span, 2);
        fill_all(&r, 260);
        forward(&r);
        const ttn_call c = call_of(&r);
        ttn_error err = {0};
        for (int64_t seq = 0; seq < 2; seq++) {
            dense d = dense_of(&r, seq, 1);
            for (int b = 0; b < 4; b++) {
                const int64_t P = blocks[b];
                double *map = ttn_alloc_array(P * P, sizeof *map);
                assert_non_null(map);
                if (P > d.n) {
                    assert_fails(a->map_pool(&c, seq, 1, P, map, &err), TTN_EINVAL, &err,
                                 "a sequence of 10 rows has no");
                } else {
                    assert_ok(a->map_pool(&c, seq, 1, P, map, &err), &err);
                    for (int64_t p = 0; p < P; p++)
                        for (int64_t k = 0; k < P; k++) {
                            const int64_t i_end = (p + 1) * d.n / P;
                            const int64_t t_end = (k + 1) * d.n / P;
                            int64_t n = 0;
                            double sum = 0;
                            for (int64_t i = p * d.n / P; i < i_end; i++)
                                for (int64_t t = k * d.n / P; t < t_end; t++) {
                                    sum += d.p[i * d.n + t];
                                    n++;
                                }
                            assert_near(map[p * P + k], sum / (double)n, "a cell");
                        }
                }
                ttn_free(map);
            }
            ttn_free(d.p);
        }
        release(&r);
    }
}

static void attention_of_the_kind_none_looks_at_itself(void **state)
{
    (void)state;
    static const ttn_span span[] = {{0, 5}};
    static const int64_t row[] = {4, 1};
    const ttn_attention *a = ttn_op_attn_none.attention;
    run r;
    make(&r, (ttn_attn_exact_options){.heads = 1}, 2, span, 1);
    const ttn_call c = call_of(&r);
    ttn_error err = {0};
    real rows[2 * 5];
    double cells[2 * 2];
    assert_ok(a->map_rows(&c, 0, 0, 2, row, rows, &err), &err);
    for (int k = 0; k < 2; k++)
        for (int t = 0; t < 5; t++)
            assert_true(rows[k * 5 + t] == (t == row[k]));
    assert_ok(a->map_pool(&c, 0, 0, 2, cells, &err), &err);
    const double wanted[] = {1.0 / 2, 0, 0, 1.0 / 3}; /* blocks of 2 and 3 rows */
    for (int k = 0; k < 4; k++)
        assert_near(cells[k], wanted[k], "a cell");
    release(&r);
}

/* ---- a kind by its name ---- */

typedef struct {
    const char *name;
    double value;
} literal;

static ttn_status literal_real(const void *self, const char *name, int layer, double *ret, ttn_error *err)
{
    for (const literal *l = self; l->name; l++)
        if (strcmp(l->name, name) == 0) {
            *ret = l->value + layer;
            return TTN_OK;
        }
    return TTN_FAIL(err, TTN_EINTERNAL, "no option is called '%s'", name);
}

static ttn_status look(const ttn_call *c, void *ctx, ttn_error *err)
{
    const int64_t row[] = {2};
    return ttn_op_attn_exact.attention->map_rows(c, 1, 0, 1, row, ctx, err);
}

static void a_kind_is_found_by_name_read_from_options_recorded_and_tapped(void **state)
{
    (void)state;
    assert_ptr_equal(ttn_attention_find("exact"), &ttn_op_attn_exact);
    assert_ptr_equal(ttn_attention_find("none"), &ttn_op_attn_none);
    assert_null(ttn_attention_find("linear"));
    assert_null(ttn_attention_find("attn_exact"));
    ttn_error err = {0};
    for (int i = 0; ttn_ops[i]; i++) {
        const ttn_attention *a = ttn_ops[i]->attention;
        assert_int_equal(a != NULL, strncmp(ttn_ops[i]->name, "attn_", 5) == 0);
        if (!a) continue;
        assert_non_null(a->attr);
        assert_non_null(a->build);
        assert_non_null(a->map_rows);
        assert_non_null(a->map_pool);
        assert_ok(ttn_options_check(a->options, a->n_options, &err), &err);
        for (int o = 0; o < a->n_options; o++) { /* "KIND.…" */
            const size_t length = strlen(ttn_ops[i]->name + 5);
            assert_memory_equal(a->options[o].name, ttn_ops[i]->name + 5, length);
            assert_true(a->options[o].name[length] == '.');
        }
    }

    static const literal with[] = {{"exact.scale", 0.25}, {NULL, 0}};
    static const literal without[] = {{NULL, 0}};
    const ttn_option_reader reader = {.self = with, .get_real = literal_real};
    const ttn_option_reader empty = {.self = without, .get_real = literal_real};
    ttn_attn_exact_options attr;
    const ttn_op *op = ttn_attention_find("exact");
    assert_int_equal(op->attr_bytes, sizeof attr);
    assert_fails(op->attention->attr(&empty, 0, &attr, &err), TTN_EINTERNAL, &err, "no option is called 'exact.scale'");
    assert_ok(op->attention->attr(&reader, 1, &attr, &err), &err);
    assert_true(attr.scale == 1.25);

    ttn_graph *g = ttn_graph_create((ttn_extent){.rows = 480, .seqs = 2});
    int in[3];
    static const char *const name[] = {"q", "k", "v"};
    for (int i = 0; i < 3; i++)
        in[i] = ttn_input(g, name[i], ttn_rows(g, 6));
    const ttn_attn_in what = {.q = in[0], .k = in[1], .v = in[2], .heads = 2, .causal = 1, .name = "attn"};
    const int exact = op->attention->build(g, &what, &attr);
    const int none = ttn_op_attn_none.attention->build(
        g, &(ttn_attn_in){.q = in[0], .k = in[1], .v = in[2], .heads = 2}, &(ttn_attn_none_options){0});
    assert_ok(ttn_graph_check(g, &err), &err);
    assert_string_equal(ttn_name_of_value(g, exact), "attn");
    assert_string_equal(ttn_name_of_value(g, none), "attn_none");

    real map[7];
    const int keep[] = {exact, none};
    const ttn_tap tap = {.value = exact, .fn = look, .ctx = map};
    ttn_plan *p;
    assert_ok(ttn_plan_create(g, &(ttn_plan_options){.keep = keep, .n_keep = 2, .tap = &tap, .n_tap = 1}, &p, &err),
              &err);
    static const ttn_span span[] = {{0, 5}, {12, 7}};
    run r;
    make(&r, (ttn_attn_exact_options){.heads = 2, .causal = 1, .scale = 1.25}, 3, span, 2);
    fill_all(&r, 270);
    for (int i = 0; i < 3; i++)
        assert_ok(ttn_plan_bind(p, name[i], r.in[i], &err), &err);
    assert_ok(ttn_plan_run(p, &r.feed, NULL, &err), &err);
    forward(&r);
    real got[480 * 6];
    assert_ok(ttn_plan_read(p, exact, got, &err), &err);
    assert_same_bits(got, r.out, sizeof got);
    const dense d = {.r = &r, .seq = 1, .n = 7, .D = 3, .scale = 1.25};
    double wanted[7];
    weights_of_row(&d, 2, wanted);
    for (int t = 0; t < 7; t++)
        assert_near((double)map[t], wanted[t], "a weight that a tap sees");
    ttn_plan_destroy(p);
    ttn_graph_destroy(g);
    release(&r);
}

static void backward_costs_five_products_of_which_four_are_useful(void **state)
{
    (void)state;
    static const ttn_span span[] = {{0, 480}};
    run r;
    make(&r, (ttn_attn_exact_options){.heads = 2}, 64, span, 1);
    const double product = 2.0 * 480 * 480 * 128;
    const ttn_cost f = ttn_op_attn_exact.cost(&r.sig, TTN_FORWARD, 0);
    const ttn_cost b = ttn_op_attn_exact.cost(&r.sig, TTN_BACKWARD, 0);
    assert_true(f.done >= 2 * product && f.done <= 2.2 * product && f.useful == f.done);
    assert_true(b.done >= 5 * product && b.done <= 5.3 * product);
    assert_true(b.useful >= 4 * product && b.useful <= 4.2 * product);
    r.attr.causal = 1;
    assert_true(ttn_op_attn_exact.cost(&r.sig, TTN_FORWARD, 0).done < 0.51 * f.done);
    /* linear in rows: aux and copies */
    const ttn_desc *lse = &r.sig.aux[0];
    assert_true(r.sig.n_aux == 1 && lse->dim[0] == 480 && lse->dim[1] == 2);
    release(&r);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    ttn_test_threads(MOST_THREADS);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_attention_is_the_dense_softmax_for_every_head_width),
        cmocka_unit_test(exact_attention_is_the_dense_softmax_at_every_edge_of_a_tile),
        cmocka_unit_test(exact_attention_stands_logits_far_beyond_the_range_of_exp),
        cmocka_unit_test(constant_values_give_a_constant_output),
        cmocka_unit_test(permuting_rows_permutes_outputs_and_gradients),
        cmocka_unit_test(a_sequence_has_the_same_bits_alone_first_in_the_middle_and_last),
        cmocka_unit_test(bits_do_not_depend_on_threads_and_groups),
        cmocka_unit_test(causal_outputs_do_not_see_later_rows),
        cmocka_unit_test(dropout_keeps_weights_at_its_rate_and_divides_by_it),
        cmocka_unit_test(dropout_draws_once_for_each_head_query_and_key),
        cmocka_unit_test(dropout_is_keyed_by_the_place_in_the_sequence),
        cmocka_unit_test(a_sequence_with_dropout_has_the_same_bits_in_another_batch),
        cmocka_unit_test(eight_thousand_residues_and_three),
        cmocka_unit_test(a_hundred_thousand_residues),
        cmocka_unit_test(map_rows_are_rows_of_the_softmax),
        cmocka_unit_test(map_pool_is_the_mean_over_blocks_of_the_softmax),
        cmocka_unit_test(attention_of_the_kind_none_looks_at_itself),
        cmocka_unit_test(a_kind_is_found_by_name_read_from_options_recorded_and_tapped),
        cmocka_unit_test(backward_costs_five_products_of_which_four_are_useful),
    };
    return ttn_test_run(tests);
}
