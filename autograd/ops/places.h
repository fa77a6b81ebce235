/* Which sequence a row belongs to, and at which position of it the row stands. */
#ifndef TTN_PLACES_H
#define TTN_PLACES_H

#include <string.h>
#include "autograd/kernel.h"

/* Rows that follow one another in one sequence, or that are of none. */
typedef struct {
    int64_t n;
    int64_t seq;      /* -1: of no sequence */
    int64_t position; /* of the first of them in its sequence; 0 in rows of none */
} ttn_stretch;

/* The longest stretch that begins at `row` and ends before `end` (row < end <= used rows). A run without sequences is
 * plain data: its used rows count as sequence 0. */
static inline ttn_stretch ttn_stretch_at(const ttn_feed *f, int64_t row, int64_t end)
{
    if (f->used.seqs == 0) return (ttn_stretch){.n = end - row, .seq = 0, .position = row};
    int64_t before = 0; /* sequences that begin at `row` or before it: half of what is left at a time */
    int64_t after = f->used.seqs;
    while (before < after) {
        const int64_t middle = (before + after) / 2;
        if (f->span[middle].first <= row)
            before = middle + 1;
        else
            after = middle;
    }
    const int64_t next = before < f->used.seqs ? f->span[before].first : end;
    if (before > 0) {
        const int64_t seq = before - 1;
        const ttn_span s = f->span[seq];
        const int64_t last = s.first + s.n < end ? s.first + s.n : end;
        if (row < s.first + s.n)
            return (ttn_stretch){
                .n = last - row, .seq = seq, .position = row - s.first + (f->start ? f->start[seq] : 0)};
    }
    return (ttn_stretch){.n = (next < end ? next : end) - row, .seq = -1};
}

/* Sequences that ttn_stretch_at tells apart in a run, and at most. */
static inline int64_t ttn_stretch_seqs(const ttn_feed *f)
{
    return f->used.seqs > 0 ? f->used.seqs : 1;
}
static inline int64_t ttn_stretch_most_seqs(int64_t capacity)
{
    return capacity > 0 ? capacity : 1;
}

/* The rows of sequence `seq`. */
static inline ttn_span ttn_stretch_span(const ttn_feed *f, int64_t seq)
{
    return f->used.seqs > 0 ? f->span[seq] : (ttn_span){.first = 0, .n = f->used.rows};
}
static inline int64_t ttn_stretch_start(const ttn_feed *f, int64_t seq)
{
    return f->used.seqs > 0 && f->start ? f->start[seq] : 0;
}

/* Input 0's gradient where an op adds something to the rows of sequences: dx = acc dx + dy there, 0 in rows of none. dx
 * may be dy. */
static inline void ttn_stretch_pass(const ttn_call *c)
{
    enum { BLOCK_ROWS = 16 };
    const int64_t used = c->feed->used.rows;
    const int64_t C = ttn_row_width(&c->sig->in[0]);
    const real acc = c->acc[0];
    real *dx = c->din[0];
    const real *dy = c->dout[0];
#pragma omp parallel for num_threads(c->on->n_thread)
    for (int64_t first = 0; first < used; first += BLOCK_ROWS) {
        const int64_t end = first + BLOCK_ROWS < used ? first + BLOCK_ROWS : used;
        for (int64_t t = first; t < end;) {
            const ttn_stretch s = ttn_stretch_at(c->feed, t, end);
            const int64_t stop = (t + s.n) * C;
            if (s.seq < 0) {
                if (acc == 0) memset(dx + t * C, 0, (size_t)(s.n * C) * sizeof *dx);
            } else if (acc != 0 || dx != dy) {
#pragma omp simd
                for (int64_t i = t * C; i < stop; i++)
                    dx[i] = ttn_accumulate(acc, dx[i], dy[i]);
            }
            t += s.n;
        }
    }
    if (acc == 0) ttn_zero_rest(c, &c->sig->in[0], dx);
}

#endif
