/* Scratch memory of an op, laid out: one function that carves every part says how many bytes there must be (nothing to
 * carve from: the base is NULL) and where the parts are.
 *
 *     static size_t lay_out(const ttn_sig *s, void *work, parts *ret)
 *     {
 *         ttn_carving c = {.base = work};
 *         ret->sum = ttn_carve(&c, n, sizeof *ret->sum);
 *         …
 *         return c.at;
 *     }
 */
#ifndef TTN_CARVE_H
#define TTN_CARVE_H

#include "autograd/op.h"

typedef struct {
    char *base; /* NULL: only counting */
    size_t at;
} ttn_carving;

/* n elements of `size` bytes, from a cache line's start on. NULL while counting. */
static inline void *ttn_carve(ttn_carving *c, int64_t n, size_t size)
{
    void *p = c->base ? c->base + c->at : NULL;
    c->at += ttn_work_align((size_t)n * size);
    return p;
}

#endif
