#include <inttypes.h>
#include "core/disk.h"
#include "core/memory.h"
#include "core/real.h"
#include "data/batch.h"
#include "train/budget.h"

/* Slabs of the size of all parameters: values, gradients, two moments, each a block of its own; and of the save values and
 * moments once more. What the optimizer has beside them, its lists of pieces and of their sums, takes less than a block each. */
enum { SLABS = 4, SAVED_SLABS = 3, SMALL_BLOCKS = 2 };

static int64_t levels_of(int64_t shards)
{
    int64_t levels = 0;
    while (shards > 1) {
        shards /= 2;
        levels++;
    }
    return levels;
}

int64_t ttn_budget_held(const ttn_budget_request *r)
{
    const int64_t slab = r->parameters * (int64_t)sizeof(real);
    const int64_t block = (slab + TTN_BLOCK_STEP - 1) / TTN_BLOCK_STEP * TTN_BLOCK_STEP;
    return (SLABS + levels_of(r->shards)) * block + SAVED_SLABS * slab + SMALL_BLOCKS * TTN_BLOCK_STEP;
}

ttn_status ttn_budget_of(const ttn_budget_request *r, size_t *ret, ttn_error *err)
{
    *ret = (size_t)r->asked;
    if (r->asked > 0) return TTN_OK;
    const int64_t held = ttn_budget_held(r), left = r->ram.usable - held;
    char needed[TTN_DISK_AMOUNT], there[TTN_DISK_AMOUNT];
    if (left <= 0)
        return TTN_FAIL(err, TTN_ENOMEM,
                        "weights, gradients, moments and the copy that is saved take %s, and %s of memory can be had: "
                        "lower model.width or model.layers",
                        ttn_disk_amount((size_t)held, needed), ttn_disk_amount((size_t)r->ram.usable, there));
    *ret = (size_t)(TTN_BUDGET_SHARE * (double)left);
    return TTN_OK;
}

ttn_status ttn_budget_advise(const ttn_error *why, size_t budget, const ttn_batch_rules *rules,
                             const ttn_capacity *capacity, ttn_error *err)
{
    char amount[TTN_DISK_AMOUNT];
    const int64_t longest =
        rules->max_len > 0 && rules->max_len < capacity->longest ? rules->max_len : capacity->longest;
    /* Rows that the longest sequence needs, specials included. */
    const int64_t needed = (longest + 2 + TTN_BATCH_TILE - 1) / TTN_BATCH_TILE * TTN_BATCH_TILE;
    ttn_disk_amount(budget, amount);
    if (capacity->extent.rows > needed)
        return TTN_FAIL(err, TTN_ENOMEM,
                        "the values of a step do not fit into %s (train.memory): lower batch.rows, which is %" PRId64
                        " and must be %" PRId64 " at least, and raise train.shards for steps of the same size; %s",
                        amount, capacity->extent.rows, needed, why->text);
    return TTN_FAIL(err, TTN_ENOMEM,
                    "the values of a step do not fit into %s (train.memory), and the batch has no more rows than the "
                    "longest sequence, %" PRId64
                    " residues, needs: cut long sequences (data.max_len, with batch.rows), "
                    "or lower model.width; %s",
                    amount, longest, why->text);
}
