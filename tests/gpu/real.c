/* In the place of the emulation where tests of tests/cuda run on a GPU: it has one order and
 * grids of one size, and forgets nothing. */
#include "tests/cuda/emulation.h"

void emulation_set_order(emulation_order order, uint64_t seed)
{
    (void)order;
    (void)seed;
}

void emulation_get_order(emulation_order *order, uint64_t *seed)
{
    *order = EMULATION_FORWARD;
    *seed = 1;
}

void emulation_set_most_blocks(int blocks)
{
    (void)blocks;
}

void emulation_reset(void)
{
}
