/* A small model whose numbers are functions of a step, for tests of what is saved: what was loaded tells its step. */
#ifndef TTN_SAVED_H
#define TTN_SAVED_H

#include "autograd/weights.h"
#include "train/files/run_folder.h"
#include "train/files/snapshot.h"

/* Weights with moments (trainable, frozen, a scalar and an empty one), a state of an attention kind, and two tensors of
 * the optimizer's own. */
enum { SAVED_N_MORE = 2, SAVED_MORE = 7 };
typedef struct {
    ttn_weights *w; /* the caller's: saved_destroy */
    ttn_named_tensor more[SAVED_N_MORE];
    double average[SAVED_MORE];
    int64_t count[SAVED_MORE];
} saved_model;

/* About 4 * width^2 numbers, three times. */
void saved_create(saved_model *m, int64_t width);
void saved_destroy(saved_model *m);

/* All numbers become those of this step. */
void saved_fill(saved_model *m, int64_t step);

/* All numbers are those of this step, to the bit. */
void saved_check(const saved_model *m, int64_t step);

/* The state of that step; static texts, and lists that the next call with another step changes. */
ttn_run_state saved_state(int64_t step);
void saved_check_state(const ttn_run_state *s, int64_t step);

/* Fill, copy, write as a folder (not through a saver). */
ttn_status saved_write(saved_model *m, const char *path, int64_t step, int *in_place, ttn_error *err);

/* Load everything of c into m, which then must be what saved_check says. */
ttn_status saved_load(saved_model *m, const ttn_checkpoint *c, ttn_error *err);

/* What a log was told: lines, kept until saved_forget. */
extern const ttn_log saved_log;
extern char saved_said[16384];
void saved_forget(void);

#endif
