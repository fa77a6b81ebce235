#include <stdio.h>
#include <stdlib.h>
#include "core/machine.h"
#include "core/start.h"
#include "train/cli/configured.h"
#include "train/cli/model_argument.h"
#include "train/cli/status_line.h"

void ttn_model_argument_begin(ttn_model_argument *a)
{
    *a = (ttn_model_argument){0};
}

static ttn_status load(const ttn_cli_call *call, ttn_model_argument *a, ttn_error *err)
{
    const char **setting = calloc((size_t)call->n_argument + 1, sizeof *setting);
    if (!setting) return TTN_FAIL(err, TTN_ENOMEM, "no memory for the arguments");
    int n = 0;
    for (int i = 1; i < call->n_argument; i++)
        if (ttn_is_setting(call->argument[i])) setting[n++] = call->argument[i];
    ttn_status_line line;
    ttn_status_line_begin(&line, call->err.out, NULL);
    const ttn_log log = {.say = ttn_status_line_say, .ctx = &line, .from = TTN_LOG_WARNING};
    const ttn_loaded_options options = {
        .table = a->table,
        .device = a->device,
        .config = ttn_cli_value(call, "config"),
        .setting = setting,
        .n_setting = n,
        .log = &log,
    };
    ttn_status status = ttn_loaded_open(call->argument[0], &options, &a->model, err);
    ttn_status_line_end(&line);
    free(setting);
    return status;
}

ttn_status ttn_model_argument_open(const ttn_cli_call *call, ttn_model_argument *a, ttn_error *err)
{
    ttn_machine machine;
    ttn_machine_look("", &machine);
    a->n_thread = ttn_start_threads(machine.cores.usable);
    ttn_status status = ttn_config_table_of_titin(&a->table, err);
    if (status == TTN_OK) status = ttn_device_cpu(&a->device, err);
    if (status == TTN_OK) status = load(call, a, err);
    return status == TTN_OK ? ttn_start(a->n_thread, err) : status;
}

void ttn_model_argument_close(ttn_model_argument *a)
{
    ttn_loaded_close(a->model);
    ttn_device_destroy(a->device);
    ttn_config_table_destroy(a->table);
    ttn_model_argument_begin(a);
}

void ttn_model_argument_tell(const ttn_model_argument *a, ttn_facts *f)
{
    const ttn_loaded *m = a->model;
    ttn_facts_open(f, "model");
    ttn_facts_text(f, "path", "%s", m->path);
    if (m->step >= 0)
        ttn_facts_integer(f, "step", m->step);
    else
        ttn_facts_none(f, "step");
    ttn_facts_integer(f, "layers", m->model->layers);
    ttn_facts_integer(f, "width", m->model->layer.width);
    ttn_facts_integer(f, "parameters", m->parameters);
    ttn_facts_text(f, "alphabet", "%s", m->alphabet->name);
    ttn_facts_close(f);
}
