/* The model that a command line names, as its first argument: loaded, and the machine ready to compute with it. */
#ifndef TTN_MODEL_ARGUMENT_H
#define TTN_MODEL_ARGUMENT_H

#include "train/cli/command.h"
#include "train/facts.h"
#include "train/loaded.h"

/* The rows of a command that takes a model. */
#define TTN_MODEL_ARGUMENT                                                                                         \
    {                                                                                                              \
        .name = "MODEL", .least = 1, .most = 1, .word = TTN_WORD_FILE,                                             \
        .help = "the folder of a run (its best checkpoint) or of a checkpoint, or with --config a file of weights" \
    }
#define TTN_MODEL_CONFIG_OPTION                                                                                    \
    {                                                                                                              \
        .name = "config", .value = "FILE", .word = TTN_WORD_FILE, .help = "the configuration of a file of weights" \
    }

typedef struct {
    ttn_config_table *table;
    ttn_device *device;
    int n_thread;
    ttn_loaded *model;
} ttn_model_argument;

/* Nothing is there yet. */
void ttn_model_argument_begin(ttn_model_argument *a);

/* Argument 0, with the settings (KEY=VALUE) among the others over the model's configuration. What is odd about it is said on
 * stderr. End it with ttn_model_argument_close, also after a failure. */
TTN_MUST_USE ttn_status ttn_model_argument_open(const ttn_cli_call *call, ttn_model_argument *a, ttn_error *err);
void ttn_model_argument_close(ttn_model_argument *a);

/* An object "model": which it is. */
void ttn_model_argument_tell(const ttn_model_argument *a, ttn_facts *f);

#endif
