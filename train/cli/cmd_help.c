/* titin help [COMMAND...]: the help texts, the man page, the completion of bash. */
#include <stdio.h>
#include <string.h>
#include "train/cli/command.h"
#include "train/config.h"

static ttn_status print_about(const ttn_cli_call *call, ttn_error *err)
{
    const int width = ttn_terminal_prose_width(&call->out);
    char name[80];
    snprintf(name, sizeof name, "%s%s%s", call->argument[0], call->n_argument > 1 ? " " : "",
             call->n_argument > 1 ? call->argument[1] : "");
    const ttn_command *c = ttn_command_find(name);
    if (c)
        ttn_help_command(&call->out, width, c);
    else if (ttn_command_is_family(name))
        ttn_help_family(&call->out, width, name);
    else
        return ttn_cli_no_command(name, err);
    return TTN_OK;
}

static ttn_status print_page(const ttn_cli_call *call, ttn_error *err)
{
    ttn_config_table *table;
    ttn_status status = ttn_config_table_of_titin(&table, err);
    if (status != TTN_OK) return status;
    int n;
    const ttn_option *row = ttn_config_rows(table, &n);
    if (ttn_cli_given(call, "man"))
        ttn_page_man(call->out.out, row, n);
    else
        ttn_page_bash(call->out.out, row, n);
    ttn_config_table_destroy(table);
    return TTN_OK;
}

static ttn_status run(const ttn_cli_call *call, ttn_error *err)
{
    if (ttn_cli_given(call, "man") || ttn_cli_given(call, "bash")) return print_page(call, err);
    if (call->n_argument > 0) return print_about(call, err);
    ttn_help_program(&call->out, ttn_terminal_prose_width(&call->out));
    return TTN_OK;
}

static const ttn_cli_argument arguments[] = {
    {.name = "COMMAND",
     .least = 0,
     .most = 2,
     .word = TTN_WORD_COMMAND,
     .help = "one word, or the two of `config show`"},
    {0},
};

static const ttn_cli_option options[] = {
    {.name = "man", .help = "print the man page, as `man -l` reads it"},
    {.name = "bash", .help = "print the completion for bash, for ~/.bashrc or bash-completion's folder"},
    {0},
};

static const ttn_cli_example examples[] = {
    {"titin help doctor", "what `titin doctor` does, with examples"},
    {"titin help --man | man -l -", "read the man page"},
    {"source <(titin help --bash)", "complete commands and options in this shell"},
    {0},
};

const ttn_command ttn_cmd_help = {
    .name = "help",
    .group = "help",
    .purpose = "tell more of a command; make the man page",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .run = run,
};
