/* titin info FILE: what a file is, by the table of train/info.h. */
#include "train/cli/command.h"
#include "train/cli/show.h"
#include "train/info.h"

static ttn_status run(const ttn_cli_call *call, ttn_error *err)
{
    ttn_facts *f;
    ttn_status status = ttn_facts_create(&f, err);
    if (status != TTN_OK) return status;
    ttn_error found_err = {0};
    ttn_status found = ttn_info_describe(call->argument[0], ttn_cli_given(call, "verify"), f, &found_err);
    status = ttn_facts_status(f, err);
    /* Nothing at all is known of a file that is not there. */
    if (status == TTN_OK && ttn_facts_count(f) > 0) {
        if (ttn_cli_given(call, "json"))
            status = ttn_show_json(call->out.out, f, err);
        else
            ttn_show_text(&call->out, f);
    }
    ttn_facts_destroy(f);
    if (status != TTN_OK || found == TTN_OK) return status;
    *err = found_err;
    return found;
}

static const ttn_cli_argument arguments[] = {
    {.name = "FILE",
     .least = 1,
     .most = 1,
     .word = TTN_WORD_FILE,
     .help = "a file, or the folder of a checkpoint or run"},
    {0},
};

static const ttn_cli_option options[] = {
    {.name = "json", .help = "the facts as JSON"},
    {.name = "verify", .help = "read all of it, and check what can be checked"},
    {0},
};

static const ttn_cli_example examples[] = {
    {"titin info run.yaml", "is this configuration valid, and what does it set?"},
    {"titin info --verify run/ckpt/latest", "is this checkpoint whole?"},
    {0},
};

static const ttn_exit exits[] = {TTN_EXIT_CHECKPOINT, TTN_EXIT_OK};

const ttn_command ttn_cmd_info = {
    .name = "info",
    .group = "files",
    .purpose = "say what a file is, what is in it, and whether it is whole",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .exits = exits,
    .run = run,
};
