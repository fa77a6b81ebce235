/* Tasks of attention by random features, and their memory (favor_tasks.h). */
#include "autograd/ops/favor_tasks.h"
#include "autograd/carve.h"

typedef ttn_favor_shared shared;
typedef ttn_favor_scratch scratch;
typedef ttn_favor_tasks tasks;
typedef ttn_favor_task task;

/* ---- memory ---- */

static int64_t most_extra_chunks(const ttn_sig *s)
{
    return s->in[TTN_FAVOR_Q].dim[0] / (TTN_FAVOR_CHUNK * TTN_FAVOR_TILE);
}

size_t ttn_favor_lay_out(const ttn_favor_job *j, const ttn_sig *s, ttn_pass pass, void *work, shared *ret)
{
    *ret = (shared){0};
    ttn_carving c = {.base = work};
    const int64_t extra = most_extra_chunks(s) * j->H;
    const int64_t all = (s->cap.seqs + most_extra_chunks(s)) * j->H;
    ret->first_chunk = ttn_carve(&c, s->cap.seqs + 1, sizeof *ret->first_chunk);
    const int64_t slots = pass == TTN_FORWARD ? extra : all;
    ret->S = ttn_carve(&c, slots * j->M * j->D, sizeof(real));
    ret->z = ttn_carve(&c, slots * j->M, sizeof(real));
    if (pass == TTN_FORWARD) {
        ret->c = ttn_carve(&c, slots * j->n_c, sizeof(real));
        ret->sum_v = ttn_carve(&c, all * j->D, sizeof(real));
        ret->most = ttn_carve(&c, s->cap.seqs * j->H, sizeof(real));
        ret->stat = ttn_carve(&c, all * TTN_FAVOR_N_STAT, sizeof(double));
    } else {
        for (int i = 0; i < 2; i++)
            ret->reference[i] = ttn_carve(&c, all, sizeof(double));
    }
    return c.at;
}

size_t ttn_favor_lay_out_thread(const ttn_favor_job *j, ttn_pass pass, void *work, scratch *ret)
{
    *ret = (scratch){0};
    ttn_carving c = {.base = work};
    ttn_favor_tile *t = &ret->tile;
    t->x = ttn_carve(&c, TTN_FAVOR_TILE * j->D, sizeof(real));
    t->v = ttn_carve(&c, TTN_FAVOR_TILE * j->D, sizeof(real));
    t->y = ttn_carve(&c, TTN_FAVOR_TILE * j->D, sizeof(real));
    t->u = ttn_carve(&c, TTN_FAVOR_TILE * j->M, sizeof(real));
    real **const column[] = {&t->half, &t->shift, &t->delta, &t->own};
    for (int i = 0; i < 4; i++)
        *column[i] = ttn_carve(&c, TTN_FAVOR_TILE, sizeof(real));
    ret->room = ttn_carve(&c, 2 * j->M + 3 * j->D, sizeof(real));
    if (pass == TTN_FORWARD) return c.at;
    t->b = ttn_carve(&c, TTN_FAVOR_TILE * j->M, sizeof(real));
    ret->out = ttn_carve(&c, TTN_FAVOR_TILE * j->D, sizeof(real));
    return c.at;
}

/* ---- tasks ---- */

int64_t ttn_favor_tiles(int64_t n)
{
    return (n + TTN_FAVOR_TILE - 1) / TTN_FAVOR_TILE;
}

int64_t ttn_favor_height(int64_t n)
{
    const int64_t T = ttn_favor_tiles(n);
    const int64_t rows = (n + T - 1) / T;
    return (rows + TTN_FAVOR_TILE_STEP - 1) / TTN_FAVOR_TILE_STEP * TTN_FAVOR_TILE_STEP;
}

int64_t ttn_favor_chunks(int64_t n)
{
    return (ttn_favor_tiles(n) + TTN_FAVOR_CHUNK - 1) / TTN_FAVOR_CHUNK;
}

tasks ttn_favor_start(const ttn_call *c, ttn_pass pass)
{
    tasks all = {.j = ttn_favor_job_of(c), .seqs = c->feed->used.seqs};
    ttn_favor_lay_out(&all.j, c->sig, pass, c->work, &all.w);
    all.w.first_chunk[0] = 0;
    for (int64_t s = 0; s < all.seqs; s++)
        all.w.first_chunk[s + 1] = all.w.first_chunk[s] + ttn_favor_chunks(c->feed->span[s].n);
    all.n_chunk = all.w.first_chunk[all.seqs];
    all.n_task = all.n_chunk * all.j.H;
    return all;
}

task ttn_favor_find_task(const tasks *all, int64_t number)
{
    const int64_t chunk = number / all->j.H;
    int64_t s = 0; /* the last sequence that begins at or before it */
    for (int64_t end = all->seqs; end - s > 1;) {
        const int64_t middle = s + (end - s) / 2;
        if (all->w.first_chunk[middle] <= chunk)
            s = middle;
        else
            end = middle;
    }
    task t = {.seq = s, .head = number % all->j.H, .chunk = chunk - all->w.first_chunk[s], .slot = number};
    t.tile = t.chunk * TTN_FAVOR_CHUNK;
    t.end = ttn_smaller(t.tile + TTN_FAVOR_CHUNK, ttn_favor_tiles(all->j.c->feed->span[s].n));
    return t;
}

void ttn_favor_each(const tasks *all, scratch *own, ttn_favor_work work)
{
#pragma omp for schedule(dynamic)
    for (int64_t number = 0; number < all->n_task; number++) {
        const task t = ttn_favor_find_task(all, number);
        work(all, &t, own);
    }
}

ttn_favor_state ttn_favor_kept_state(const ttn_favor_job *j, int64_t seq, int64_t head)
{
    const int64_t at = seq * j->H + head;
    void *const *aux = j->c->aux;
    return (ttn_favor_state){
        .S = aux[TTN_FAVOR_AUX_S] ? (real *)aux[TTN_FAVOR_AUX_S] + at * j->M * j->D : NULL,
        .z = aux[TTN_FAVOR_AUX_Z] ? (real *)aux[TTN_FAVOR_AUX_Z] + at * j->M : NULL,
        .c = aux[TTN_FAVOR_AUX_C] ? (real *)aux[TTN_FAVOR_AUX_C] + at * j->n_c : NULL,
    };
}

ttn_favor_state ttn_favor_state_of(const tasks *all, const task *t)
{
    const ttn_favor_job *f = &all->j;
    ttn_favor_state s = ttn_favor_kept_state(f, t->seq, t->head);
    if (t->chunk > 0) {
        const int64_t extra = (all->w.first_chunk[t->seq] + t->chunk - 1 - t->seq) * f->H + t->head;
        s.S = all->w.S + extra * f->M * f->D;
        s.z = all->w.z + extra * f->M;
        s.c = all->w.c + extra * f->n_c;
    }
    s.sum_v = all->w.sum_v + t->slot * f->D;
    s.most = all->w.most + t->seq * f->H + t->head;
    return s;
}

ttn_favor_state ttn_favor_gradient_of(const tasks *all, const task *t)
{
    return (ttn_favor_state){.S = all->w.S + t->slot * all->j.M * all->j.D, .z = all->w.z + t->slot * all->j.M};
}

task ttn_favor_chunk_of(const tasks *all, const task *t, int64_t chunk)
{
    return ttn_favor_find_task(all, (all->w.first_chunk[t->seq] + chunk) * all->j.H + t->head);
}

void ttn_favor_join_chunks(const tasks *all, const task *first, ttn_pass pass, real *room)
{
    const int64_t n = all->w.first_chunk[first->seq + 1] - all->w.first_chunk[first->seq];
    for (int64_t apart = 1; apart < n; apart *= 2)
        for (int64_t chunk = 0; chunk + apart < n; chunk += 2 * apart) {
            const task a = ttn_favor_chunk_of(all, first, chunk);
            const task b = ttn_favor_chunk_of(all, first, chunk + apart);
            if (pass == TTN_BACKWARD) {
                const ttn_favor_state to = ttn_favor_gradient_of(all, &a);
                const ttn_favor_state from = ttn_favor_gradient_of(all, &b);
                ttn_favor_add(&all->j, &to, &from);
                continue;
            }
            const ttn_favor_state to = ttn_favor_state_of(all, &a);
            const ttn_favor_state from = ttn_favor_state_of(all, &b);
            ttn_favor_join(&all->j, &to, &from, room);
            for (int64_t d = 0; d < all->j.D; d++)
                to.sum_v[d] += from.sum_v[d];
        }
}
