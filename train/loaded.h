/* A model that was trained, ready to be asked: from a run, a checkpoint, or a file of weights and its configuration.
 *
 *     ttn_loaded_open("run/quickstart", &options, &m, err);
 *     … m->model, m->weights, m->alphabet …
 *     ttn_loaded_close(m);
 *
 * What a path may be:
 *     the folder of a run      ckpt/best; the newest checkpoint that is whole where there is none, or it is damaged (which is
 *                              said to the log)
 *     that of a checkpoint     every byte of it is read and compared with its checksums first
 *     FILE.safetensors         weights by the names of train/model.h, of the model in `config`
 */
#ifndef TTN_LOADED_H
#define TTN_LOADED_H

#include <limits.h>
#include <stdint.h>
#include "autograd/weights.h"
#include "core/device.h"
#include "core/log.h"
#include "data/batch_rules.h"
#include "train/config.h"
#include "train/model.h"

typedef struct {
    const ttn_config_table *table; /* outlives what is loaded, as the device */
    ttn_device *device;
    const char *config;         /* a configuration for a file of weights; NULL: the checkpoint's own is the one */
    const char *const *setting; /* (n_setting) "section.key=value", over that configuration */
    int n_setting;
    const ttn_log *log;
} ttn_loaded_options;

/* Everything is its own, and ends with it. */
typedef struct {
    char path[PATH_MAX]; /* what was loaded: the checkpoint that was taken of a run, or the file */
    int64_t step;        /* optimizer steps that it has seen; -1: not known, of a file of weights */
    ttn_config *config;
    const ttn_alphabet *alphabet;
    ttn_own_alphabet own;  /* of data.tokens */
    ttn_batch_rules rules; /* of the configuration, with the objective it was trained for */
    uint64_t seed;         /* train.seed */
    ttn_model_spec *model;
    int64_t parameters;
    ttn_weights *weights;
} ttn_loaded;

/* *ret is the caller's. TTN_ECHECKPOINT: it is damaged, is none, has a configuration that this titin does not know, or
 * tensors that are missing, too many, of another shape or precision; TTN_EINVAL: there is nothing, or a file of weights
 * comes without a configuration; TTN_EIO, TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_loaded_open(const char *path, const ttn_loaded_options *o, ttn_loaded **ret,
                                        ttn_error *err);
void ttn_loaded_close(ttn_loaded *m); /* NULL is fine */

#endif
