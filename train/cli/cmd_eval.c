/* titin eval MODEL DATA...: how well a model predicts hidden residues, by train/evaluate.h. */
#include <inttypes.h>
#include <stdlib.h>
#include "core/number.h"
#include "train/cli/command.h"
#include "train/cli/configured.h"
#include "train/cli/model_argument.h"
#include "train/cli/screens_of_run.h"
#include "train/cli/show.h"
#include "train/cli/status_line.h"
#include "train/eval_data.h"
#include "train/eval_facts.h"
#include "train/evaluate.h"
#include "train/trained_on.h"

/* Of each sequence, when nothing else is said: standard errors are then half of what one gives. */
enum { MASKINGS = 4, MOST_MASKINGS = 1000 };

static ttn_status read_maskings(const ttn_cli_call *call, int is_causal, int64_t *ret, ttn_error *err)
{
    const char *text = ttn_cli_value(call, "maskings");
    ttn_error why = {0};
    *ret = is_causal ? 1 : MASKINGS;
    if (!text) return TTN_OK;
    if (is_causal)
        return TTN_FAIL(err, TTN_EINVAL, "--maskings: this model predicts next residues, and nothing is masked for it");
    ttn_status status = ttn_number_integer(text, TTN_UNIT_COUNT, ret, &why);
    if (status != TTN_OK) return TTN_FAIL(err, status, "--maskings: %s", why.text);
    if (*ret < 1 || *ret > MOST_MASKINGS)
        return TTN_FAIL(err, TTN_EINVAL, "--maskings: '%s' is not a number from 1 to %d", text, MOST_MASKINGS);
    return TTN_OK;
}

/* Whatever batch.rows the model was trained with, the longest sequence is to have room. */
static ttn_status find_capacity(const ttn_loaded *m, const ttn_eval_data_facts *d, ttn_batch_rules *rules,
                                ttn_capacity *ret, ttn_error *err)
{
    enum { SPECIALS = 2 };
    *rules = m->rules;
    const int64_t longest = rules->max_len > 0 && rules->max_len < d->longest ? rules->max_len : d->longest;
    if (rules->rows < longest + SPECIALS) rules->rows = longest + SPECIALS;
    ttn_status status = ttn_batch_capacity_of(rules, d->from, d->side, ret, err);
    return status == TTN_OK ? ttn_model_check_positions(m->model, ret->positions, err) : status;
}

/* A ttn_evaluator's goes_on. */
static int show_part(void *ctx, double part)
{
    char text[TTN_SCREENS_LINE];
    ttn_status_line_show(ctx, ttn_screens_evaluating(part, text));
    return 1;
}

static ttn_status evaluate(const ttn_cli_call *call, const ttn_model_argument *a, const ttn_eval_data_facts *d,
                           int64_t maskings, ttn_validation_result *ret, ttn_capacity *ret_capacity, ttn_error *err)
{
    const ttn_loaded *m = a->model;
    ttn_evaluator *e = NULL;
    ttn_status_line line;
    ttn_evaluator_options o = {
        .model = m->model,
        .weights = m->weights,
        .from = d->from,
        .side = d->side,
        .device = a->device,
        .frequencies = d->frequencies,
        .seed = m->seed,
        .maskings = maskings,
        .n_thread = a->n_thread,
        .goes_on = call->err.redraws ? show_part : NULL,
        .ctx = &line,
    };
    ttn_status_line_begin(&line, call->err.out, NULL);
    ttn_status status = find_capacity(m, d, &o.rules, &o.capacity, err);
    if (status == TTN_OK) status = ttn_evaluator_create(&o, &e, err);
    if (status == TTN_OK) status = ttn_evaluator_run(e, ret, err);
    ttn_error why = {0};
    if (status == TTN_OK && ttn_evaluator_check_finite(e, &why) != TTN_OK)
        status = TTN_FAIL(err, why.status, "%s: %s", m->path, why.text);
    ttn_evaluator_destroy(e);
    ttn_status_line_end(&line);
    *ret_capacity = o.capacity;
    return status;
}

static void tell_data(const ttn_eval_data_facts *d, const char *const *path, int n, int64_t maskings, int64_t cropped,
                      int64_t max_len, const ttn_trained_on *trained_on, ttn_facts *f)
{
    ttn_facts_open(f, "data");
    ttn_facts_open_list(f, "path");
    for (int i = 0; i < n; i++)
        ttn_facts_text(f, NULL, "%s", path[i]);
    ttn_facts_close(f);
    ttn_facts_text(f, "side", "%s", d->side ? "held out" : "all");
    ttn_facts_integer(f, "sequences", d->sequences);
    ttn_facts_integer(f, "residues", d->residues);
    ttn_facts_integer(f, "cropped", cropped);
    ttn_facts_integer(f, "maskings", maskings);
    ttn_facts_text(f, "frequencies_of", "%s", d->is_store ? "what is not held out" : "these sequences");
    if (!d->is_store) ttn_facts_integer(f, "left_out", d->left_out);
    if (!d->is_store) ttn_facts_integer(f, "repaired", d->repaired);
    ttn_trained_on_tell(trained_on, d->sequences, f);
    ttn_facts_close(f);
    if (d->left_out > 0)
        ttn_facts_warn(f, "%" PRId64 " of %" PRId64 " records were left out; titin data check shows which, and why",
                       d->left_out, d->records);
    if (cropped > 0)
        ttn_facts_warn(f,
                       "of sequences longer than data.max_len, %" PRId64
                       " residues, a piece was evaluated; data.max_len=0 takes them whole",
                       max_len);
}

static ttn_status show(const ttn_cli_call *call, ttn_facts *f, ttn_error *err)
{
    ttn_status status = ttn_facts_status(f, err);
    if (status != TTN_OK) return status;
    if (ttn_cli_given(call, "json")) return ttn_show_json(call->out.out, f, err);
    ttn_show_text(&call->out, f);
    return TTN_OK;
}

/* The data among the arguments: all that are no settings. */
static int find_paths(const ttn_cli_call *call, const char **ret)
{
    int n = 0;
    for (int i = 1; i < call->n_argument; i++)
        if (!ttn_is_setting(call->argument[i])) ret[n++] = call->argument[i];
    return n;
}

static ttn_status evaluate_on(const ttn_cli_call *call, const ttn_model_argument *a, const char *const *path, int n,
                              ttn_facts *f, ttn_error *err)
{
    const int is_causal = a->model->rules.objective == TTN_OBJECTIVE_CLM;
    const ttn_values *values = ttn_config_values(a->model->config);
    ttn_eval_data *data = NULL;
    ttn_validation_result result;
    ttn_capacity capacity;
    int64_t maskings;
    ttn_trained_on trained_on;
    if (n == 0) return TTN_FAIL(err, TTN_EINVAL, "no data is named; titin eval MODEL DATA...");
    ttn_status status = read_maskings(call, is_causal, &maskings, err);
    if (status == TTN_OK) status = ttn_eval_data_open(path, n, ttn_cli_given(call, "all"), values, &data, err);
    if (status == TTN_OK)
        status = ttn_trained_on_count(a->model->path, a->table, ttn_eval_data_of(data), &trained_on, err);
    if (status == TTN_OK) status = evaluate(call, a, ttn_eval_data_of(data), maskings, &result, &capacity, err);
    if (status == TTN_OK) {
        ttn_model_argument_tell(a, f);
        tell_data(ttn_eval_data_of(data), path, n, maskings, capacity.cropped, a->model->rules.max_len, &trained_on, f);
        ttn_eval_tell(&result, is_causal, f);
        status = show(call, f, err);
    }
    ttn_eval_data_close(data);
    return status;
}

static ttn_status run(const ttn_cli_call *call, ttn_error *err)
{
    ttn_model_argument a;
    ttn_facts *f = NULL;
    const char **path = calloc((size_t)call->n_argument + 1, sizeof *path);
    if (!path) return TTN_FAIL(err, TTN_ENOMEM, "no memory for the arguments");
    ttn_model_argument_begin(&a);
    ttn_status status = ttn_facts_create(&f, err);
    if (status == TTN_OK) status = ttn_model_argument_open(call, &a, err);
    if (status == TTN_OK) status = evaluate_on(call, &a, path, find_paths(call, path), f, err);
    ttn_model_argument_close(&a);
    ttn_facts_destroy(f);
    free(path);
    return status;
}

static const ttn_cli_argument arguments[] = {
    TTN_MODEL_ARGUMENT,
    {.name = "DATA|KEY=VALUE",
     .least = 1,
     .most = TTN_ANY_NUMBER,
     .word = TTN_WORD_FILE,
     .help = "a store, or files in FASTA (\"-\": standard input); and single values over the model's configuration"},
    {0},
};

static const ttn_cli_option options[] = {
    {.name = "all", .help = "all sequences of a store, also those that the model may have been trained on"},
    {.name = "maskings", .value = "N", .help = "in how many ways each sequence is masked; by default 4"},
    {.name = "json", .help = "the same as JSON, with all numbers"},
    TTN_MODEL_CONFIG_OPTION,
    {0},
};

static const ttn_cli_example examples[] = {
    {"titin eval run/quickstart proteins.h5", "the best checkpoint of a run, on what its store holds out"},
    {"titin eval run/a/ckpt/latest new.fasta.gz", "a checkpoint, on other proteins"},
    {"titin eval run/a proteins.h5 --json | jq .masked.ppl", "a number, for a script"},
    {0},
};

static const ttn_exit exits[] = {TTN_EXIT_DATA, TTN_EXIT_CHECKPOINT, TTN_EXIT_NUMERIC, TTN_EXIT_OK};
static const char *const sections[] = {"data", "batch", "mlm", NULL};

const ttn_command ttn_cmd_eval = {
    .name = "eval",
    .group = "models",
    .purpose = "how well a model predicts residues that it has not seen",
    .description =
        "Masks residues of sequences as in training, at places that are always the same, and says how well the model "
        "predicts them: perplexity and accuracy where a mask was shown (masked) and where a residue was (seen), beside "
        "two predictors that know nothing about proteins, at the same places: the frequencies of residues, and what "
        "the protein shows of its own composition. Errors are standard errors over sequences."
        "\n\n"
        "Of a store, the sequences are those that its split holds out. The frequencies are those of the others; of "
        "files in FASTA their own.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .exits = exits,
    .sections = sections,
    .run = run,
};
