/* A plan from the inside: what scheduling makes, packing places and running walks.
 *
 *   schedule.c   which nodes run, in which order, which buffer each step reads and writes, who shares a buffer
 *   pack.c       lives to offsets
 *   choose.c     which nodes are made again to fit a budget
 *   plan.c       create, report
 *   exchange.c   what goes to the device and comes back once a run
 *   run.c        attach, bind, run, read
 */
#ifndef TTN_PLAN_IMPL_H
#define TTN_PLAN_IMPL_H

#include "autograd/graph_impl.h"
#include "autograd/on_device.h"
#include "autograd/plan.h"
#include "core/device.h"

/* ---- buffers ---- */

typedef enum { BUFFER_INPUT, BUFFER_VALUE, BUFFER_AUX, BUFFER_GRADIENT, BUFFER_WORK } buffer_kind;

/* A buffer is alive from step `first` to step `last`. Two buffers that share memory (an output written over an input) are
 * one: `shares` names the one that holds the offset and both lives. */
typedef struct {
    buffer_kind kind;
    int owner; /* a value (input, value, gradient) or a node (aux, work) */
    int life;  /* 0: as first computed; 1: as made again */
    size_t bytes;
    int first, last;
    int shares; /* itself, or another buffer */
    size_t offset;
} buffer;

/* Where a step finds a pointer: a buffer's number, a leaf in the weights, or nowhere. */
enum { PLACE_NONE = -1 };
#define PLACE_OF_LEAF(v)     (-2 - (v))
#define PLACE_IS_LEAF(place) ((place) <= -2)
#define LEAF_OF_PLACE(place) (-2 - (place))

/* ---- steps ---- */

/* A step owns all that was decided when it was scheduled, the life of what it reads above all: nothing is looked up when
 * memory is bound. */
typedef struct {
    ttn_step_kind kind;
    int node;
    int in[TTN_MAX_IN], out[TTN_MAX_OUT], aux[TTN_MAX_AUX];
    int dout[TTN_MAX_OUT], din[TTN_MAX_IN];
    int work;
    uint32_t first_writer;    /* backward, bit i: no earlier step wrote that gradient */
    int final_first, n_final; /* parameters whose gradients are final after this step: a range of schedule.final */
} step;

/* What recomputation was chosen, one flag a node. */
typedef struct {
    char *drop; /* outputs and aux are not kept for backward; forward runs again */
    char *lean; /* spare aux are left out */
} choice;

/* ---- a schedule: what planning makes again and again until it fits ---- */

typedef struct {
    step *step;
    int n_step;
    int first_backward; /* n_step: none */
    buffer *buffer;
    int n_buffer;
    int *value_buffer[2]; /* [life][value]: PLACE_NONE: it has no such life */
    int *gradient_buffer; /* [value] */
    int *aux_buffer[2];   /* [life][node * TTN_MAX_AUX + j] */
    int *final;           /* parameters in the order in which their gradients become final */
    int n_final;
    char *mark;       /* [node] scratch, all 0 between uses */
    int *last_writer; /* [value] scratch: the last step that wrote its gradient */
    size_t *alive;    /* [step] bytes */
    size_t peak, sum;
    int peak_step;
    size_t bytes; /* packed */
} schedule;

/* What does not change while schedules are tried. */
typedef struct {
    const ttn_graph *g;
    ttn_plan_options options; /* with arrays of its own */
    char *needed;             /* [node] something asked for needs its forward */
    char *leads;              /* [value] a gradient comes back to it from a loss */
    char *trains;             /* [node] has a backward step */
    char *kept;               /* [value] readable after a run */
    char *inside; /* [node] stands in a marked block and nothing outside the block reads it: may be dropped */
    char *tapped; /* [node] */
} request;

/* ---- what goes to and fro once a run, beside inputs ---- */

/* One region of the device and its image on the host: statistics (doubles), then what stands below, by offsets in bytes.
 * Everything up to the fault comes back after the last step, in one transfer; everything from the fault on (none so far)
 * goes there before the first, in one. */
typedef struct {
    ttn_memory *memory;
    char *host;
    size_t loss;  /* (n_loss) reals */
    size_t fault; /* one uint64_t */
    size_t seed;  /* (n_loss) reals */
    size_t feed;  /* of this layout; for CPU kernels it is not there */
    ttn_feed_layout layout;
    size_t bytes;
} exchange;

/* ---- the plan ---- */

struct ttn_plan {
    request want;
    choice choice;
    schedule s;
    ttn_device *device;
    ttn_device *own_device;
    ttn_memory *memory;
    ttn_memory *own_memory;
    const ttn_kernels **kernels; /* [node] those of the device; NULL: the node does not run */
    void *base;                  /* that the calls are bound to; NULL: not bound */
    ttn_call *call;              /* [step] */
    ttn_weights *weights;
    int *weight_of;     /* [value] its number in the weights, -1 */
    const void **bound; /* [value] an input's data on the host */
    exchange exchange;
    int *stat_first; /* [node] where its statistics begin */
    int n_stat;
    uint64_t *fp_saved; /* [thread] control words of the caller during a run */
    int ran;            /* the last run ended well: its results can be read */
    int trap;
    double (*now)(void *ctx);
    void *now_ctx;
    ttn_plan_report report;
    ttn_plan_step *report_step;
};

/* ---- schedule.c ---- */

/* Reachability: fills everything in want but g and options. TTN_ENOMEM. */
ttn_status ttn_request_fill(request *want, ttn_error *err);
void ttn_request_free(request *want);

/* Room for any schedule of this graph. */
ttn_status ttn_schedule_create(const request *want, schedule *s, ttn_error *err);
void ttn_schedule_free(schedule *s);

/* Steps, lives, sharing, bytes alive. No packing. TTN_EINVAL: all buffers together do not fit in 64 bits. */
ttn_status ttn_schedule_make(const request *want, const choice *c, schedule *s, ttn_error *err);

/* The cost of one pass of a node, with or without its spare aux. */
ttn_cost ttn_node_cost(const ttn_node *n, ttn_pass pass, int lean);

static inline int ttn_root_buffer(const schedule *s, int b)
{
    while (s->buffer[b].shares != b)
        b = s->buffer[b].shares;
    return b;
}

/* ---- pack.c ---- */

/* Offsets for all buffers; s->bytes. TTN_ENOMEM. */
ttn_status ttn_schedule_pack(schedule *s, ttn_error *err);

/* ---- exchange.c ---- */

/* Room on the host; n_stat and the options are there. TTN_ENOMEM. Destroy also after a failure. */
ttn_status ttn_exchange_create(ttn_plan *p, ttn_error *err);
void ttn_exchange_destroy(ttn_plan *p);

/* Room on the device, once. */
ttn_status ttn_exchange_bind(ttn_plan *p, ttn_error *err);

/* Where the statistic number `first` of the plan is written; an address of the device. */
void *ttn_exchange_stat(const ttn_plan *p, int first);

/* Before the first step: seeds, no fault so far, and the feed for kernels that do not have it. */
ttn_status ttn_exchange_send(const ttn_plan *p, const ttn_stream *on, const ttn_feed *f, const double *loss_weight,
                             ttn_error *err);

/* What the calls of step `at` get. */
ttn_on_device ttn_exchange_for_step(const ttn_plan *p, int at);

/* The seed of loss number `loss` to where backward begins; its value from where forward left it. On the device. */
ttn_status ttn_exchange_seed(const ttn_plan *p, const ttn_stream *on, int loss, void *to, ttn_error *err);
ttn_status ttn_exchange_keep_loss(const ttn_plan *p, const ttn_stream *on, int loss, const void *from, ttn_error *err);

/* After the last step. Waits. Fails with the sentence of the first fault that a kernel has raised. */
ttn_status ttn_exchange_receive(const ttn_plan *p, const ttn_stream *on, const ttn_feed *f, ttn_error *err);

/* What came back last. */
const double *ttn_exchange_stats(const ttn_plan *p);
const real *ttn_exchange_losses(const ttn_plan *p);

/* ---- choose.c ---- */

/* Fill c so that the packed schedule fits the budget, and leave that schedule in s. */
ttn_status ttn_choose(const request *want, choice *c, schedule *s, ttn_error *err);

#endif
