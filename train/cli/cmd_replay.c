/* titin replay RUN STEP: a step of a run once more. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "core/machine.h"
#include "core/number.h"
#include "core/start.h"
#include "train/cli/command.h"
#include "train/cli/configured.h"
#include "train/cli/show.h"
#include "train/files/checkpoint.h"
#include "train/replay.h"

/* ---- what is told ---- */

/* A ttn_batch_taker: the sequences of a micro-batch. */
typedef struct {
    ttn_facts *f;
    const ttn_sequences *from;
    int64_t shard;
} lister;

static ttn_status list_sequences(void *ctx, const ttn_batch *b, ttn_error *err)
{
    (void)err;
    lister *l = ctx;
    for (int64_t s = 0; s < b->used.seqs; s++) {
        char name[128] = "";
        const int64_t i = (int64_t)(b->sample[s] - l->from->first_sample);
        if (l->from->name) l->from->name(l->from->self, i, name, sizeof name);
        ttn_facts_open(l->f, NULL);
        ttn_facts_integer(l->f, "batch", l->shard);
        ttn_facts_integer(l->f, "sequence", i);
        ttn_facts_text(l->f, "id", "%s", name);
        ttn_facts_integer(l->f, "residues", l->from->length(l->from->self, i));
        ttn_facts_integer(l->f, "first_row", b->span[s].first);
        ttn_facts_integer(l->f, "rows", b->span[s].n);
        ttn_facts_close(l->f);
    }
    l->shard++;
    return TTN_OK;
}

static ttn_status tell(ttn_training *t, const char *checkpoint, const ttn_replayed *r, ttn_facts *f, ttn_error *err)
{
    lister l = {.f = f, .from = ttn_dataset_sequences(ttn_training_facts_of(t)->data)};
    ttn_facts_integer(f, "step", r->step.step);
    ttn_facts_text(f, "from", "%s", checkpoint);
    ttn_facts_flag(f, "finite", !r->step.is_skipped);
    ttn_facts_real(f, "loss", r->step.loss);
    ttn_facts_real(f, "grad_norm", r->step.norm);
    ttn_facts_real(f, "lr", r->step.lr);
    if (r->shard >= 0) {
        ttn_facts_integer(f, "batch", r->shard);
        ttn_facts_text(f, "first", "%s", r->why.text);
    }
    ttn_facts_open_list(f, "sequences");
    ttn_status status = ttn_trainer_batches_of(ttn_training_trainer(t), &r->step, list_sequences, &l, err);
    ttn_facts_close(f);
    return status == TTN_OK ? ttn_facts_status(f, err) : status;
}

static ttn_status show(const ttn_cli_call *call, ttn_training *t, const char *checkpoint, const ttn_replayed *r,
                       ttn_error *err)
{
    ttn_facts *f = NULL;
    ttn_status status = ttn_facts_create(&f, err);
    if (status == TTN_OK) status = tell(t, checkpoint, r, f, err);
    if (status == TTN_OK && ttn_cli_given(call, "json"))
        status = ttn_show_json(call->out.out, f, err);
    else if (status == TTN_OK)
        ttn_show_text(&call->out, f);
    ttn_facts_destroy(f);
    return status;
}

/* ---- the run as it was ---- */

/* The configuration that the checkpoint has. */
static ttn_status load_config(const ttn_config_table *table, const char *checkpoint, ttn_config **ret, ttn_error *err)
{
    ttn_checkpoint *c = NULL;
    ttn_status status = ttn_checkpoint_open(checkpoint, &c, NULL, err);
    if (status != TTN_OK) return status;
    const char *text = ttn_checkpoint_state(c)->config;
    const ttn_config_file file = {.path = checkpoint, .text = text, .n = strlen(text)};
    const ttn_config_request request = {.presets = ttn_config_presets, .file = &file, .n_file = 1};
    status = ttn_config_load(table, &request, ret, err);
    ttn_checkpoint_close(c);
    return status == TTN_EINVAL ? TTN_ECHECKPOINT : status;
}

static ttn_status replay(const ttn_cli_call *call, const ttn_config_table *table, const ttn_config *config,
                         const char *checkpoint, int64_t step, ttn_error *err)
{
    ttn_machine machine;
    char beside[PATH_MAX];
    ttn_training *t = NULL;
    ttn_replayed replayed;
    ttn_machine_look("", &machine);
    const int n_thread = ttn_start_threads(machine.cores.usable);
    if (snprintf(beside, sizeof beside, "%s/../data", call->argument[0]) >= (int)sizeof beside)
        return TTN_FAIL(err, TTN_EINVAL, "%s: the path is too long", call->argument[0]);
    ttn_status status = ttn_start(n_thread, err);
    const ttn_training_options o = {
        .table = table,
        .config = config,
        .beside = beside,
        .checkpoint = checkpoint,
        .n_thread = n_thread,
    };
    if (status == TTN_OK) status = ttn_training_create(&o, &t, err);
    if (status == TTN_OK) status = ttn_replay(t, step, &replayed, err);
    if (status == TTN_OK) status = show(call, t, checkpoint, &replayed, err);
    if (status == TTN_OK && replayed.step.is_skipped) *call->exit = TTN_EXIT_NUMERIC;
    ttn_training_destroy(t);
    return status;
}

static ttn_status run(const ttn_cli_call *call, ttn_error *err)
{
    ttn_config_table *table = NULL;
    ttn_config *config = NULL;
    char checkpoint[PATH_MAX];
    int64_t step;
    ttn_error why = {0};
    if (ttn_number_integer(call->argument[1], TTN_UNIT_COUNT, &step, &why) != TTN_OK || step < 0)
        return TTN_FAIL(err, TTN_EINVAL, "STEP: '%s' is not the number of a step", call->argument[1]);
    ttn_status status = ttn_replay_find(call->argument[0], step, checkpoint, err);
    if (status == TTN_OK) status = ttn_config_table_of_titin(&table, err);
    if (status == TTN_OK) status = load_config(table, checkpoint, &config, err);
    if (status == TTN_OK) status = replay(call, table, config, checkpoint, step, err);
    ttn_config_destroy(config);
    ttn_config_table_destroy(table);
    return status;
}

static const ttn_cli_argument arguments[] = {
    {.name = "RUN", .least = 1, .most = 1, .word = TTN_WORD_FOLDER, .help = "the folder of a run"},
    {.name = "STEP", .least = 1, .most = 1, .help = "which of its steps, counted from 0: N of nan-step-N"},
    {0},
};

static const ttn_cli_option options[] = {{.name = "json", .help = "what was found, as JSON"}, {0}};

static const ttn_cli_example examples[] = {
    {"titin replay run/a 412", "run/a/nan-step-00000412 is there: what happened?"},
    {0},
};

static const ttn_exit exits[] = {TTN_EXIT_DATA, TTN_EXIT_CHECKPOINT, TTN_EXIT_NUMERIC, TTN_EXIT_OK};

const ttn_command ttn_cmd_replay = {
    .name = "replay",
    .group = "models",
    .purpose = "make a step of a run again, and say what is not finite in it",
    .description = "Starts from the checkpoint in run/nan-step-STEP, or the newest one at or before the step, and "
                   "makes the steps up "
                   "to it again. Where its loss or gradient is not finite, every value and gradient is looked at, and "
                   "the first is "
                   "named that is not; the exit code is then 5. When it is finite this time, the cause was not in the "
                   "numbers, and "
                   "memory or processor of the machine may be at fault. Nothing of the run is changed.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .exits = exits,
    .run = run,
};
