#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/adamw.h"
#include "core/fp.h"
#include "core/memory.h"
#include "train/optim.h"

/* ---- rows ---- */

static const ttn_option options[] = {
    {.name = "optim.beta1",
     .type = TTN_OPTION_REAL,
     .fallback = "0.9",
     .least = 0,
     .most = 0.999999,
     .help = "how much of the mean of gradients is kept from step to step",
     .since = "0.1"},
    {.name = "optim.beta2",
     .type = TTN_OPTION_REAL,
     .fallback = "0.98",
     .least = 0,
     .most = 0.999999,
     .help = "the same for the mean of their squares",
     .since = "0.1"},
    {.name = "optim.eps",
     .type = TTN_OPTION_REAL,
     .fallback = "1e-8",
     .least = 1e-30,
     .most = 1,
     .help = "added to the root of the mean square, which steps are divided by",
     .since = "0.1"},
    {.name = "optim.decay",
     .type = TTN_OPTION_REAL,
     .fallback = "0.01",
     .least = 0,
     .most = 10,
     .help = "weights shrink by the learning rate times this at each step; norms, biases and embeddings do not",
     .since = "0.1"},
    {.name = "optim.clip",
     .type = TTN_OPTION_REAL,
     .fallback = "1",
     .least = 0,
     .most = 1e6,
     .help = "gradients are scaled down to this norm, all of them together; 0: never",
     .since = "0.1"},
};

static const ttn_option_field fields[] = {
    TTN_FIELD(ttn_optim_spec, beta1, "optim.beta1"), TTN_FIELD(ttn_optim_spec, beta2, "optim.beta2"),
    TTN_FIELD(ttn_optim_spec, eps, "optim.eps"),     TTN_FIELD(ttn_optim_spec, decay, "optim.decay"),
    TTN_FIELD(ttn_optim_spec, clip, "optim.clip"),
};

ttn_status ttn_optim_spec_of(const ttn_values *values, ttn_optim_spec *ret, ttn_error *err)
{
    *ret = (ttn_optim_spec){0};
    return ttn_values_fill(values, fields, sizeof fields / sizeof *fields, ret, err);
}

static ttn_status read_module(const void *self, const ttn_values *values, ttn_error *err)
{
    (void)self;
    ttn_optim_spec s;
    return ttn_optim_spec_of(values, &s, err);
}

const ttn_config_module ttn_optim_module = {
    .name = "optimizer",
    .row = options,
    .n_row = sizeof options / sizeof *options,
    .read = read_module,
};

/* ---- blocks of the slabs ---- */

struct ttn_optim {
    ttn_optim_spec spec;
    ttn_weights *weights;
    ttn_stream on;
    const ttn_adamw_kernels *kernels;
    ttn_memory *block, *sum; /* of the device: (n_block) */
    int64_t n_block;
    double *sum_on_host; /* (n_block) */
    uint64_t *fp_saved;  /* (on.n_thread) */
};

/* Which elements of the slabs one entry of the weights has. */
typedef struct {
    int64_t first, end;
    int decays, is_trained;
} part;

static int stands_in(const char *name, const char *const *list, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(name, list[i]) == 0) return 1;
    return 0;
}

static part part_of(const ttn_weight *w, const char *const *untrained, int n_untrained)
{
    const int64_t first = (int64_t)(w->offset / sizeof(real));
    return (part){
        .first = first,
        .end = first + ttn_desc_numel(&w->desc),
        .decays = !(w->flags & TTN_NO_DECAY),
        .is_trained = !w->is_state && !(w->flags & TTN_FROZEN) && !stands_in(w->name, untrained, n_untrained),
    };
}

/* Entry by entry; block NULL: only counts. Returns how many blocks there are. */
static int64_t cut(const ttn_weights *w, const char *const *untrained, int n_untrained, ttn_adamw_block *block)
{
    int64_t n = 0;
    for (int i = 0; i < ttn_weights_count(w); i++) {
        const part p = part_of(ttn_weights_at(w, i), untrained, n_untrained);
        for (int64_t at = p.first; p.is_trained && at < p.end; at += TTN_ADAMW_BLOCK) {
            const int64_t left = p.end - at;
            const int64_t length = left < TTN_ADAMW_BLOCK ? left : TTN_ADAMW_BLOCK;
            if (block) block[n] = (ttn_adamw_block){.first = at, .n = length, .decays = p.decays};
            n++;
        }
    }
    return n;
}

static ttn_status check_untrained(const ttn_weights *w, const char *const *untrained, int n_untrained, ttn_error *err)
{
    for (int i = 0; i < n_untrained; i++)
        if (ttn_weights_find(w, untrained[i]) < 0)
            return TTN_FAIL(err, TTN_EINVAL, "optimizer: there is no weight '%s' to leave untrained", untrained[i]);
    return TTN_OK;
}

static ttn_status no_memory(ttn_error *err)
{
    return TTN_FAIL(err, TTN_ENOMEM, "out of memory for the optimizer");
}

/* The list of blocks, where the kernels are. */
static ttn_status place_blocks(ttn_optim *o, const char *const *untrained, int n_untrained, ttn_error *err)
{
    const ttn_device_ops *ops = o->on.device->ops;
    o->n_block = cut(o->weights, untrained, n_untrained, NULL);
    const size_t bytes = (size_t)o->n_block * sizeof(ttn_adamw_block);
    const size_t sum_bytes = (size_t)o->n_block * sizeof *o->sum_on_host;
    o->sum_on_host = ttn_alloc_array(o->n_block + 1, sizeof *o->sum_on_host);
    o->fp_saved = ttn_alloc_array(o->on.n_thread, sizeof *o->fp_saved);
    ttn_adamw_block *block = ttn_alloc_array(o->n_block + 1, sizeof *block);
    ttn_status status = block && o->sum_on_host && o->fp_saved ? TTN_OK : no_memory(err);
    if (status == TTN_OK) status = ops->memory_create(o->on.device, bytes, bytes, &o->block, err);
    if (status == TTN_OK) status = ops->memory_create(o->on.device, sum_bytes, sum_bytes, &o->sum, err);
    if (status == TTN_OK) {
        cut(o->weights, untrained, n_untrained, block);
        status = ops->put(&o->on, ops->memory_base(o->block), block, bytes, err);
    }
    ttn_free(block);
    return status;
}

ttn_status ttn_optim_create(const ttn_optim_spec *spec, ttn_weights *w, const ttn_stream *on,
                            const char *const *untrained, int n_untrained, ttn_optim **ret, ttn_error *err)
{
    *ret = NULL;
    const ttn_adamw_kernels *kernels = ttn_adamw_kernels_of(on->device->ops->kernels);
    if (!kernels)
        return TTN_FAIL(err, TTN_EDEVICE, "the optimizer has no kernel for a device of kind %s", on->device->ops->name);
    ttn_status status = check_untrained(w, untrained, n_untrained, err);
    if (status == TTN_OK) status = ttn_weights_require(w, TTN_SLAB_V, err);
    if (status != TTN_OK) return status;
    ttn_optim *o = calloc(1, sizeof *o);
    if (!o) return no_memory(err);
    o->spec = *spec;
    o->weights = w;
    o->on = *on;
    o->kernels = kernels;
    status = place_blocks(o, untrained, n_untrained, err);
    if (status == TTN_OK)
        *ret = o;
    else
        ttn_optim_destroy(o);
    return status;
}

void ttn_optim_destroy(ttn_optim *o)
{
    if (!o) return;
    const ttn_device_ops *ops = o->on.device->ops;
    if (o->block) ops->memory_destroy(o->block);
    if (o->sum) ops->memory_destroy(o->sum);
    ttn_free(o->sum_on_host);
    ttn_free(o->fp_saved);
    free(o);
}

/* ---- a step ---- */

static ttn_adamw_slabs slabs_of(const ttn_optim *o)
{
    return (ttn_adamw_slabs){
        .n_block = o->n_block,
        .block = o->on.device->ops->memory_base(o->block),
        .gradient = ttn_weights_slab(o->weights, TTN_SLAB_GRADIENT),
        .value = ttn_weights_slab(o->weights, TTN_SLAB_VALUE),
        .m = ttn_weights_slab(o->weights, TTN_SLAB_M),
        .v = ttn_weights_slab(o->weights, TTN_SLAB_V),
    };
}

/* The sum of squares of all gradients, blocks in their order. */
static ttn_status add_squares(ttn_optim *o, const ttn_adamw_slabs *s, double *ret, ttn_error *err)
{
    const ttn_device_ops *ops = o->on.device->ops;
    double *sum = ops->memory_base(o->sum);
    ttn_status status = o->kernels->squares(&o->on, s, sum, err);
    if (status == TTN_OK)
        status = ops->get(&o->on, o->sum_on_host, sum, (size_t)o->n_block * sizeof *o->sum_on_host, err);
    *ret = 0;
    for (int64_t b = 0; b < o->n_block && status == TTN_OK; b++)
        *ret += o->sum_on_host[b];
    return status;
}

/* torch.nn.utils.clip_grad_norm_ adds this to the norm. */
#define CLIP_EPS 1e-6

static double clip_factor(const ttn_optim_spec *s, double norm)
{
    if (s->clip <= 0) return 1;
    return fmin(1, s->clip / (norm + CLIP_EPS));
}

static ttn_adamw_rule rule_of(const ttn_optim_spec *s, const ttn_optim_when *when, double factor)
{
    const double t = (double)when->step + 1;
    return (ttn_adamw_rule){
        .scale = (real)(factor / when->count),
        .keep = (real)(1 - when->lr * s->decay),
        .rate = (real)(when->lr / (1 - pow(s->beta1, t))),
        .new_m = (real)(1 - s->beta1),
        .old_v = (real)s->beta2,
        .new_v = (real)(1 - s->beta2),
        .v_correction = (real)(1 / sqrt(1 - pow(s->beta2, t))),
        .eps = (real)s->eps,
    };
}

static ttn_status step(ttn_optim *o, const ttn_optim_when *when, ttn_optim_result *ret, ttn_error *err)
{
    const ttn_adamw_slabs s = slabs_of(o);
    double squares = 0;
    ttn_status status = add_squares(o, &s, &squares, err);
    if (status != TTN_OK) return status;
    ret->norm = sqrt(squares) / when->count;
    ret->is_finite = isfinite(ret->norm);
    ret->factor = ret->is_finite ? clip_factor(&o->spec, ret->norm) : 0;
    if (!ret->is_finite) return TTN_OK;
    const ttn_adamw_rule r = rule_of(&o->spec, when, ret->factor);
    return o->kernels->update(&o->on, &s, &r, err);
}

ttn_status ttn_optim_step(ttn_optim *o, const ttn_optim_when *when, ttn_optim_result *ret, ttn_error *err)
{
    *ret = (ttn_optim_result){0};
    if (!(when->count > 0))
        return TTN_FAIL(err, TTN_EINVAL, "optimizer: step %" PRId64 " has %g targets, expected more than 0", when->step,
                        when->count);
    ttn_fp_begin_threads(o->on.n_thread, o->fp_saved);
    ttn_status status = step(o, when, ret, err);
    ttn_fp_end_threads(o->on.n_thread, o->fp_saved);
    return status;
}
