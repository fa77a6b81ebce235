/* A small model with random weights, saved as a checkpoint: for tests of what loads one and asks it. */
#ifndef TTN_TEST_TINY_H
#define TTN_TEST_TINY_H

#include "core/device.h"
#include "train/config.h"
#include "train/loaded.h"

enum { TINY_STEP = 7, TINY_MOST_SETTINGS = 16 };

/* The checkpoint `path` of the model that these settings make of a small one ("model.layers=1"; NULL at the end; NULL:
 * none), its weights as a function of the seed. */
void tiny_save(const char *path, uint64_t seed, const char *const *setting);
void tiny_save_step(const char *path, int64_t step, uint64_t seed, const char *const *setting); /* of another step */
void tiny_save_best(const char *path, int64_t step, uint64_t seed,
                    int64_t best); /* whose state calls `best` the best */

/* Saved and loaded again, and what that needs. */
typedef struct {
    ttn_config_table *table;
    ttn_device *device;
    ttn_loaded *model;
} tiny;

void tiny_open(tiny *t, const char *path, uint64_t seed, const char *const *setting);
void tiny_close(tiny *t);

#endif
