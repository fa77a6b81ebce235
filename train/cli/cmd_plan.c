/* titin plan CONFIG [KEY=VALUE...]: what a step of training will take, by train/forecast.h. */
#include <string.h>
#include "core/machine.h"
#include "core/number.h"
#include "core/start.h"
#include "train/cli/command.h"
#include "train/cli/configured.h"
#include "train/cli/show.h"
#include "train/doctor.h"
#include "train/forecast.h"
#include "train/forecast_facts.h"

/* Seconds to measure how fast products are. */
#define RATE_SECONDS 0.05

/* Rows of a table on a screen. */
enum { SHOWN = 12 };

static ttn_status read_fit(const ttn_cli_call *call, int64_t *ret, ttn_error *err)
{
    const char *text = ttn_cli_value(call, "fit");
    ttn_error why = {0};
    *ret = 0;
    if (!text) return TTN_OK;
    ttn_status status = ttn_number_integer(text, TTN_UNIT_BYTES, ret, &why);
    if (status != TTN_OK) return TTN_FAIL(err, status, "--fit: %s; expected is a size, as 20GiB", why.text);
    if (*ret <= 0) return TTN_FAIL(err, TTN_EINVAL, "--fit: '%s' is nothing; expected is a size, as 20GiB", text);
    return TTN_OK;
}

/* Threads that training would have, and what they compute in a second. */
static ttn_status look_at_machine(ttn_forecast_request *r, ttn_error *err)
{
    ttn_machine machine;
    ttn_train_spec spec;
    ttn_status status = ttn_train_spec_read(r->values, &spec, err);
    if (status != TTN_OK) return status;
    ttn_machine_look("", &machine);
    r->ram = machine.ram;
    r->n_thread = ttn_train_spec_threads(&spec, machine.cores.usable);
    status = ttn_start(r->n_thread, err);
    if (status != TTN_OK) return status;
    ttn_doctor_rate(r->n_thread, 0); /* OpenMP's threads are there, and the clock of the processor has gone up */
    r->rate = ttn_doctor_rate(r->n_thread, RATE_SECONDS);
    return TTN_OK;
}

static ttn_status show(const ttn_cli_call *call, const ttn_forecast *forecast, ttn_error *err)
{
    ttn_facts *f;
    const int is_json = ttn_cli_given(call, "json");
    ttn_status status = ttn_facts_create(&f, err);
    if (status != TTN_OK) return status;
    ttn_forecast_tell(ttn_forecast_of(forecast), is_json ? 0 : SHOWN, f);
    status = ttn_facts_status(f, err);
    if (status == TTN_OK && is_json)
        status = ttn_show_json(call->out.out, f, err);
    else if (status == TTN_OK)
        ttn_show_text(&call->out, f);
    ttn_facts_destroy(f);
    return status;
}

static ttn_status run(const ttn_cli_call *call, ttn_error *err)
{
    ttn_config_table *table = NULL;
    ttn_config *config = NULL;
    ttn_forecast *forecast = NULL;
    ttn_forecast_request request = {0};
    ttn_status status = read_fit(call, &request.fit, err);
    const ttn_unread_about about = {.is_store = -1};
    if (status == TTN_OK) status = ttn_configured(call, 0, &table, &config, err);
    if (status == TTN_OK) status = ttn_configured_check_unread(call, config, &about, err);
    if (status == TTN_OK) {
        request.values = ttn_config_values(config);
        status = look_at_machine(&request, err);
    }
    if (status == TTN_OK) status = ttn_forecast_create(&request, &forecast, err);
    if (status == TTN_OK) status = show(call, forecast, err);
    ttn_forecast_destroy(forecast);
    ttn_config_destroy(config);
    ttn_config_table_destroy(table);
    return status;
}

static const ttn_cli_argument arguments[] = {TTN_FILES_ARGUMENT, {0}};

static const ttn_cli_option options[] = {
    {.name = "fit",
     .value = "SIZE",
     .help = "also find the longest sequence whose training takes no more memory than this"},
    {.name = "json", .help = "the same as JSON, with every value and every node"},
    TTN_PRESET_OPTION,
    {0},
};

static const ttn_cli_example examples[] = {
    {"titin plan --preset quickstart", "what this preset takes"},
    {"titin plan run.yaml train.memory=20GiB", "what is computed twice to stay below that"},
    {"titin plan run.yaml --fit 20GiB", "and how long a sequence could be"},
    {"titin plan batch.rows=1048576 data.max_seqs=1", "a single sequence of a million residues"},
    {0},
};

static const char *const sections[] = {"model", "attention", "batch", "data", "mlm", "train", NULL};

const ttn_command ttn_cmd_plan = {
    .name = "plan",
    .group = "models",
    .purpose = "what a step of training takes: memory, work, time",
    .description =
        "Plans a step of training of the configuration, and says what it takes: parameters, memory and what it is "
        "needed for at the peak, what is computed twice to stay within train.memory and what that costs, work, and the "
        "time of it at the speed that this machine has in large products of matrices. A real step takes about 1 to 1.4 "
        "times as long without attention, and with exact attention up to 3 times at width 64, less for wider models. "
        "Nothing of this size is allocated and no data is read, so any model can be planned on any machine. The number "
        "of sequences in a batch, which linear attention needs memory for, is data.max_seqs, or what it would be for "
        "proteins of 353 residues; "
        "titin train --dry-run looks at the data."
        "\n\n"
        "Ends with 6 when train.memory is too small, and says what would do.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .sections = sections,
    .run = run,
};
