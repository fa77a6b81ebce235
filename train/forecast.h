/* What a step of training will take, from a configuration alone: memory, work, time, and the longest sequence that fits.
 * Nothing large is allocated and no data is read, so a model of any size can be looked at on any machine.
 *
 *     ttn_forecast_create(&request, &f, err);
 *     ttn_forecast_of(f)->plan …
 *     ttn_forecast_destroy(f);
 *
 * How many sequences a batch has room for (S) depends on their lengths, which nobody has looked at here: data.max_seqs says
 * it, or all are taken to be of TTN_FORECAST_LENGTH residues, the mean of TrEMBL, or of data.max_len where that is less.
 */
#ifndef TTN_FORECAST_H
#define TTN_FORECAST_H

#include <stdint.h>
#include "autograd/plan.h"
#include "core/machine.h"
#include "core/values.h"
#include "data/batch_rules.h"
#include "train/model.h"
#include "train/train_spec.h"

enum { TTN_FORECAST_LENGTH = 353 };

typedef struct {
    const ttn_values *values; /* outlive the forecast */
    ttn_ram ram;              /* for train.memory=auto */
    double rate;              /* flop/s of products on this machine; 0: unknown */
    int n_thread;
    int64_t fit; /* bytes of a whole run: how long may a sequence be? 0: not asked */
} ttn_forecast_request;

/* Parameters of one kind of block: "embed", "layer.*.attn", "head". */
enum { TTN_PARAMETER_GROUP = 64 };
typedef struct {
    char name[TTN_PARAMETER_GROUP];
    int64_t tensors, parameters;
} ttn_parameter_group;

/* What the nodes of one op do in a run of the plan, forward, again and backward together. */
typedef struct {
    const char *op;
    int64_t steps;
    double done, bytes; /* flops; moved */
    double seconds;     /* NaN: unknown */
} ttn_op_share;

/* The longest sequence: a batch of it alone. */
typedef struct {
    int64_t memory;   /* as asked for */
    int64_t residues; /* 0: not even one fits */
    int64_t rows;     /* N */
    int64_t bytes;    /* of a run with it */
    int64_t again;    /* nodes that are computed twice, or without a buffer of theirs */
    double more;      /* work that costs, as a part of what a step takes without it */
    double seconds;   /* a step of one batch; NaN: unknown */
} ttn_fit;

typedef struct {
    const ttn_model_spec *model;
    const ttn_alphabet *alphabet;
    ttn_train_spec train; /* its length may be missing */
    ttn_batch_rules rules;
    ttn_capacity capacity;
    int64_t length; /* residues that every sequence is taken to have; 0: data.max_seqs says what S is */

    int64_t parameters;
    const ttn_parameter_group *group; /* (n_group), in the order of the model */
    int n_group;

    const ttn_plan_report *plan; /* of one micro-batch */
    int64_t held;                /* bytes beside the values of a step (train/budget.h) */
    int64_t budget;              /* bytes that the values of a step may take */
    int64_t everything;          /* bytes of the values of a step in which nothing is computed twice */
    const ttn_op_share *op;      /* (n_op), the one that takes longest first */
    int n_op;
    double done;    /* flops of a step, all shards together */
    double more;    /* of them, what is computed twice for the budget, as a part of a step without it */
    double rate;    /* flop/s of products, as asked with */
    double seconds; /* of a step; NaN: unknown */
    ttn_fit fit;    /* zeros: not asked */
} ttn_forecast_facts;

typedef struct ttn_forecast ttn_forecast;

/* *ret is the caller's. TTN_EINVAL: what does not fit together in the configuration; TTN_ENOMEM: train.memory is too small,
 * with what would do. */
TTN_MUST_USE ttn_status ttn_forecast_create(const ttn_forecast_request *r, ttn_forecast **ret, ttn_error *err);
void ttn_forecast_destroy(ttn_forecast *f); /* NULL is fine */

const ttn_forecast_facts *ttn_forecast_of(const ttn_forecast *f); /* borrowed */

#endif
