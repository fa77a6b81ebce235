/* The values of a model's parameters and states, in flat slabs.
 *
 * Made from one graph and shared by every other graph of the same model: another length, evaluation. A slab holds all
 * trainable parameters first, in the reverse order of first use (in which backward finishes their gradients, but where a
 * first reader leads to no loss), then the frozen ones; value, gradient and the optimizer's two moments have the same layout, so an optimizer is one loop over a
 * slab. Every tensor begins at a multiple of 64 bytes; what lies between is 0 in all slabs.
 */
#ifndef TTN_WEIGHTS_H
#define TTN_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>
#include "autograd/graph.h"
#include "core/status.h"
#include "core/tensor.h"

TTN_API_BEGIN

typedef struct ttn_weights ttn_weights;
typedef struct ttn_device ttn_device;

typedef enum { TTN_SLAB_VALUE, TTN_SLAB_GRADIENT, TTN_SLAB_M, TTN_SLAB_V, TTN_N_SLABS } ttn_slab;

/* Memory for the values of g's parameters and states, all 0; the other slabs come with ttn_weights_require. device NULL:
 * the host. The device must outlive the weights; the graph need not. *ret is the caller's. */
TTN_MUST_USE ttn_status ttn_weights_create(const ttn_graph *g, ttn_device *device, ttn_weights **ret, ttn_error *err);

/* The same without memory for the values: names and shapes, to be compared with a file before anything is taken for them. The
 * values come with ttn_weights_require; until then nothing is read, written or filled. */
TTN_MUST_USE ttn_status ttn_weights_layout(const ttn_graph *g, ttn_device *device, ttn_weights **ret, ttn_error *err);
void ttn_weights_destroy(ttn_weights *w);

/* Fill every parameter by its rule. A number depends on the seed, the parameter's name and its place in the tensor; on no
 * order, layout or thread count. States become 0. */
TTN_MUST_USE ttn_status ttn_weights_init(ttn_weights *w, uint64_t seed, ttn_error *err);

/* All slabs up to `last`, and the states: allocated (0) unless there already. */
TTN_MUST_USE ttn_status ttn_weights_require(ttn_weights *w, ttn_slab last, ttn_error *err);

typedef struct {
    const char *name; /* borrowed from the weights */
    ttn_desc desc;
    unsigned flags; /* TTN_FROZEN, TTN_NO_DECAY */
    int is_state;
    size_t offset; /* bytes from the start of its slab (parameters) or of the states */
    size_t bytes;
} ttn_weight;

/* Parameters in slab order, then states. */
int ttn_weights_count(const ttn_weights *w);
const ttn_weight *ttn_weights_at(const ttn_weights *w, int i);

/* -1 when there is none of that name. */
int ttn_weights_find(const ttn_weights *w, const char *name);

/* Entry i in a slab (a state: TTN_SLAB_VALUE only); an address of the device. NULL: no such slab, or a frozen parameter's
 * gradient or moment. */
void *ttn_weights_address(const ttn_weights *w, int i, ttn_slab slab);

/* The trainable part of a slab as one array of the build's real type: an address of the device, or NULL while the slab is
 * not there. */
void *ttn_weights_slab(const ttn_weights *w, ttn_slab slab);
int64_t ttn_weights_slab_elements(const ttn_weights *w);

/* Copy entry i of a slab to or from the host; `data` has ttn_weights_at(w, i)->bytes. */
TTN_MUST_USE ttn_status ttn_weights_read(const ttn_weights *w, int i, ttn_slab slab, void *data, ttn_error *err);
TTN_MUST_USE ttn_status ttn_weights_write(ttn_weights *w, int i, ttn_slab slab, const void *data, ttn_error *err);

TTN_API_END
#endif
