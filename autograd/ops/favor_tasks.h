/* How a call of random-feature attention is cut into tasks, and the memory that they work in: for its forward and backward
 * passes. A task is a chunk of one sequence, in one head. Its state (backward: R and rho) is its own, and those of a
 * sequence are joined into that of its first chunk. */
#ifndef TTN_FAVOR_TASKS_H
#define TTN_FAVOR_TASKS_H

#include "autograd/ops/favor.h"

/* ---- memory ---- */

/* What the threads of a call share. Slots of chunks are numbered through all sequences. */
typedef struct {
    int64_t *first_chunk; /* (S + 1) chunks of the sequences before s */
    /* forward: of chunks but the first of each sequence, whose state is aux. backward: R and rho of all */
    real *S, *z, *c;
    real *sum_v;          /* forward: of all chunks, (D) each */
    real *most;           /* forward: of all sequences and heads */
    double *stat;         /* forward: of all chunks and heads, TTN_FAVOR_N_STAT each */
    double *reference[2]; /* backward: of all chunks and heads: what query_slopes and key_slopes returned */
} ttn_favor_shared;

/* A thread's own. */
typedef struct {
    ttn_favor_tile tile;
    real *out;  /* backward (tile, D): out */
    real *room; /* (2 M + 3 D) */
} ttn_favor_scratch;

/* Bytes, and where the parts are. work NULL: only the bytes. */
size_t ttn_favor_lay_out(const ttn_favor_job *j, const ttn_sig *s, ttn_pass pass, void *work, ttn_favor_shared *ret);
size_t ttn_favor_lay_out_thread(const ttn_favor_job *j, ttn_pass pass, void *work, ttn_favor_scratch *ret);

/* ---- tasks ---- */

/* All that is the same for the whole call. */
typedef struct {
    ttn_favor_job j;
    ttn_favor_shared w;
    int64_t seqs, n_chunk, n_task; /* n_task: chunks times heads */
} ttn_favor_tasks;

/* A chunk of one sequence, in one head. */
typedef struct {
    int64_t seq, head, chunk;
    int64_t tile, end; /* its tiles */
    int64_t slot;      /* number among chunks and heads */
} ttn_favor_task;

/* With c->work laid out. */
ttn_favor_tasks ttn_favor_start(const ttn_call *c, ttn_pass pass);

/* Task `number` of n_task. */
ttn_favor_task ttn_favor_find_task(const ttn_favor_tasks *all, int64_t number);

/* The task that is `chunk` of the same sequence and head. */
ttn_favor_task ttn_favor_chunk_of(const ttn_favor_tasks *all, const ttn_favor_task *t, int64_t chunk);

/* Forward: the state of a chunk; of the first one of a sequence it is what is kept. */
ttn_favor_state ttn_favor_state_of(const ttn_favor_tasks *all, const ttn_favor_task *t);

/* Backward: R and rho of a chunk. */
ttn_favor_state ttn_favor_gradient_of(const ttn_favor_tasks *all, const ttn_favor_task *t);

/* What is done for a task. */
typedef void (*ttn_favor_work)(const ttn_favor_tasks *all, const ttn_favor_task *t, ttn_favor_scratch *own);

/* All tasks, by the threads of the parallel region that this is called in, each with a scratch of its own. They leave it
 * together. */
void ttn_favor_each(const ttn_favor_tasks *all, ttn_favor_scratch *own, ttn_favor_work work);

/* The states of a sequence's chunks, to that of its first: a binary tree over the chunks. room: (2 M). */
void ttn_favor_join_chunks(const ttn_favor_tasks *all, const ttn_favor_task *first, ttn_pass pass, real *room);

#endif
