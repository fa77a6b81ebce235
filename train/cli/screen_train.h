/* What `titin train` shows: the first screen, the line of progress, the last screen. Made of plain numbers and texts. */
#ifndef TTN_SCREEN_TRAIN_H
#define TTN_SCREEN_TRAIN_H

#include <stdint.h>
#include "train/cli/terminal.h"
#include "train/dataset.h"
#include "train/findings.h"
#include "train/summary.h"

/* ---- the first screen ---- */

/* Texts are borrowed and may hold any bytes; NULL and 0: not known, and left out. */
typedef struct {
    const char *run;    /* its folder */
    int64_t resumed;    /* the step whose checkpoint it goes on from; 0: none */
    const char *device; /* "CPU", "NVIDIA H200" */
    int threads;
    const char *blas; /* "OpenBLAS 0.3.21, kernel Zen" */
    const char *real; /* "f32" */
    struct {
        const char *source; /* "uniref50.fasta.gz" */
        int64_t files, sequences, residues, shortest, median, longest;
        int64_t train, valid; /* sequences of either side */
        const char *split;    /* data.split: "cluster", "sequence", "file" */
        int64_t cropped, max_len;
        const ttn_findings *found; /* what packing left out and repaired; NULL: not known */
        const char *info, *check;  /* commands that show it by file and line */
        ttn_dataset_overlap overlap;
    } data;
    struct {
        int64_t layers, width, heads, vocabulary, parameters;
        const char *attention; /* "favor", "exact, favor" */
    } model;
    struct {
        int64_t values, budget;     /* bytes that the values of a step take, and may take (train.memory) */
        int64_t held;               /* beside them: weights, gradients, moments */
        int64_t blocks, recomputed; /* of the model's blocks, those that are computed twice */
        double more;                /* work that costs: 0.21 is 21 % of a step's */
    } memory;
    struct {
        int64_t rows, seqs, shards; /* N, S, batches of a step */
        double fill;                /* share of the rows that hold sequences */
    } batch;
    int64_t steps, eval_every, save_every;
    double epochs; /* passes over the training set that the steps are */
} ttn_run_start;

void ttn_screen_start(const ttn_terminal *t, const ttn_run_start *s);

/* The first step's loss, beside that of a model that knows nothing, ln V. */
void ttn_screen_first_loss(const ttn_terminal *t, double loss, int64_t vocabulary);

/* ---- progress ---- */

typedef struct {
    int64_t step, steps;
    double loss, ema; /* of the step, and averaged */
    double accuracy, grad_norm, lr;
    double residues_per_s;
    double peak;   /* share of what the machine's matrix products reach; NaN: unknown */
    double memory; /* bytes */
    double left;   /* seconds; NaN: unknown */
} ttn_progress;

/* "step  1200/50000    2.4%  loss 2.7134 (ema 2.7180)  ppl  15.1  acc 0.182  gnorm  0.84  lr  3.0e-4  41.2k res/s   61 %
 * peak  mem  6.1G  eta  3h12m": one line, always of the same fields in the same columns, for eyes and awk. width: fields
 * are left out, the least important first, until it fits; 0: all of them. text has TTN_PROGRESS_TEXT bytes. Returns text. */
enum { TTN_PROGRESS_TEXT = 320 };
char *ttn_progress_text(const ttn_progress *p, int width, char *text);

/* ---- the last screen ---- */

typedef struct {
    const char *run;
    int64_t step, steps;
    int has_diverged;
    double seconds;   /* of this start of the run */
    int64_t residues; /* seen since the first step */
    const ttn_best *best;
    const char *resume; /* the command that goes on; NULL: it is at its end */
    const char *fill;   /* a command to try the model with; NULL: left out */
    const ttn_advice *advice;
} ttn_run_end;

void ttn_screen_end(const ttn_terminal *t, const ttn_run_end *e);

#endif
