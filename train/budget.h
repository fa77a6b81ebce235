/* How much memory the values of a step may take, and what to lower when it is too little.
 *
 * Beside them a run holds, from its start to its end, weights, gradients and both moments, the gradients of micro-batches that
 * wait for others, and a copy of what is being saved; and the tokens of the data, which are there when this is asked.
 */
#ifndef TTN_BUDGET_H
#define TTN_BUDGET_H

#include <stdint.h>
#include "core/machine.h"
#include "core/status.h"
#include "data/batch_rules.h"

/* Of what is free beside all that, for auto: the rest is the system's, and its files'. */
#define TTN_BUDGET_SHARE 0.8

typedef struct {
    int64_t asked;      /* train.memory in bytes; 0: auto */
    int64_t parameters; /* numbers in all trainable parameters */
    int64_t shards;
    ttn_ram ram; /* as it is now; nothing of the above has been taken yet */
} ttn_budget_request;

/* Bytes that a run holds beside the values of a step. */
int64_t ttn_budget_held(const ttn_budget_request *r);

/* TTN_ENOMEM: not even what is held fits. */
TTN_MUST_USE ttn_status ttn_budget_of(const ttn_budget_request *r, size_t *ret, ttn_error *err);

/* After a plan for these batches was refused for its budget, with the reason in why (which says what would do): the same, and
 * which of batch, length or width to lower, and to what. Returns TTN_ENOMEM. */
ttn_status ttn_budget_advise(const ttn_error *why, size_t budget, const ttn_batch_rules *rules,
                             const ttn_capacity *capacity, ttn_error *err);

#endif
