/* What a run needs to go on, beside its tensors: state.json of a checkpoint.
 *
 * Masks, dropout and the order of the data are functions of (seed, epoch or step, sample), the learning rate is one of the
 * step; so this is short. What the bits of a result depend on besides (device, BLAS kernel, precision) is recorded, so
 * that a resumed run can say whether it is exact.
 */
#ifndef TTN_RUN_STATE_H
#define TTN_RUN_STATE_H

#include <stdint.h>
#include "core/hash.h"
#include "core/log.h"
#include "core/status.h"

/* All 64 bits: written as 16 hexadecimal digits. */
typedef struct {
    const char *name;
    uint64_t value;
} ttn_named_number;

/* Read back to the bit; finite. */
typedef struct {
    const char *name;
    const double *value; /* (n) */
    int64_t n;
} ttn_named_series;

/* Series that a training run writes (train/resume.h); their numbers are checked when they are read. */
#define TTN_SERIES_SKIPPED  "skipped"  /* steps that were not finite: all, and the last ones in a row */
#define TTN_SERIES_RESIDUES "residues" /* seen */
#define TTN_SERIES_BEST     "best"     /* the step of the lowest val/loss, -1: none was evaluated; that loss */
#define TTN_SERIES_LONGEST  "longest"  /* ttn_model_use's */

/* Texts and lists are the caller's, or the ttn_run_state_file's that they were read from. Names are unique in a list. */
typedef struct {
    int64_t step; /* optimizer steps done */
    struct {
        int64_t epoch, window, batch; /* of the batch that comes next */
    } cursor;
    const char *config; /* the configuration's text */
    const ttn_named_number *seed;
    int n_seed;
    const ttn_named_number *draw; /* how often the states of attention kinds were drawn: name of the kind or its leaf */
    int n_draw;
    const ttn_named_series *series; /* running numbers: the loss scale, the window of norms that spikes are told by */
    int n_series;
    /* what the bits depend on */
    const char *device; /* "cpu", "cuda" */
    const char *kernel; /* OpenBLAS's: "Zen" */
    int64_t row_tile;   /* rows of a product (TTN_ROW_TILE) */
    int64_t batch_align;
    int64_t ranks, shards;
    /* filled in by reading; writing sets its own */
    const char *titin; /* the version that wrote it */
    const char *real;  /* "f32", "f64": what it computed in */
    int64_t date;      /* of the writing */
} ttn_run_state;

/* The text of state.json, in pieces. TTN_EINVAL when a number is not finite, a name stands twice or a text is no UTF-8;
 * TTN_ENOMEM, and what `take` returns. */
TTN_MUST_USE ttn_status ttn_run_state_write(const ttn_run_state *s,
                                            ttn_status (*take)(void *ctx, const char *bytes, size_t n, ttn_error *err),
                                            void *ctx, ttn_error *err);

typedef struct ttn_run_state_file ttn_run_state_file;

/* *ret is the caller's. TTN_ECHECKPOINT when it is not what the function above writes, the configuration is not the one
 * whose checksum stands beside it, or a number cannot be: counts are from 0 to 2^53, the cursor is no further than the
 * steps lead, and the series above are within the steps. */
TTN_MUST_USE ttn_status ttn_run_state_read(const char *path, ttn_run_state_file **ret, ttn_error *err);
const ttn_run_state *ttn_run_state_of(const ttn_run_state_file *f); /* borrowed */
void ttn_run_state_close(ttn_run_state_file *f);                    /* NULL is fine */

/* The numbers of a series of that name and length; NULL: there is none. */
const double *ttn_run_state_series(const ttn_run_state *s, const char *name, int64_t n);

/* A deep copy; *ret is the caller's, ended by ttn_run_state_close. */
TTN_MUST_USE ttn_status ttn_run_state_copy(const ttn_run_state *s, ttn_run_state_file **ret, ttn_error *err);

/* Will a run under `now` that goes on from `then` have the bits that it would have had without a stop? 1; or 0, and
 * every reason is said to log (a warning each: "resume is exact only up to rounding: made with Zen, now SkylakeX"). */
int ttn_run_state_is_exact(const ttn_run_state *then, const ttn_run_state *now, const ttn_log *log);

#endif
