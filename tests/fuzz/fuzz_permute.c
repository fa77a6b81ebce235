/* Any n, seed, epoch and place: the place is found again, and its element is below n. */
#include <string.h>
#include "core/permute.h"
#include "tests/fuzz/fuzz.h"

typedef struct {
    uint64_t n, seed, epoch, place;
    uint8_t shift; /* so that small n are as likely as large ones */
} input;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    input in = {0};
    memcpy(&in, data, bytes < sizeof in ? bytes : sizeof in);
    int64_t n = (int64_t)(in.n >> (1 + in.shift % 63));
    ttn_permute p;
    ttn_permute_init(&p, n, in.seed, in.epoch);
    if (n == 0) return 0;
    int64_t i = (int64_t)(in.place % (uint64_t)n);
    int64_t x = ttn_permute_at(&p, i);
    check(x >= 0 && x < n);
    check(ttn_permute_find(&p, x) == i);
    check(ttn_permute_at(&p, ttn_permute_find(&p, i)) == i);
    return 0;
}
