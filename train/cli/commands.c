#include <assert.h>
#include <string.h>
#include "train/cli/command.h"

const ttn_command *const ttn_commands[] = {
    &ttn_cmd_train,          &ttn_cmd_replay,      &ttn_cmd_plan,
    &ttn_cmd_eval,           &ttn_cmd_fill,        &ttn_cmd_config_show,
    &ttn_cmd_config_explain, &ttn_cmd_config_diff, &ttn_cmd_config_schema,
    &ttn_cmd_data_check,     &ttn_cmd_data_pack,   &ttn_cmd_data_info,
    &ttn_cmd_data_export,    &ttn_cmd_info,        &ttn_cmd_doctor,
    &ttn_cmd_help,           &ttn_cmd_version,     NULL,
};

const ttn_cli_option ttn_help_option = {.name = "help", .letter = 'h', .help = "this text"};

int ttn_exit_is_common(int code)
{
    /* Nobody can rule out the last: memory, or the disk that standard output goes to */
    return code == TTN_EXIT_OK || code == TTN_EXIT_FAILURE || code == TTN_EXIT_USAGE || code == TTN_EXIT_RESOURCE;
}

const ttn_command *ttn_command_find(const char *name)
{
    for (const ttn_command *const *c = ttn_commands; *c; c++)
        if (strcmp((*c)->name, name) == 0) return *c;
    return NULL;
}

int ttn_command_is_family(const char *word)
{
    size_t n = strlen(word);
    if (n == 0 || strchr(word, ' ')) return 0;
    for (const ttn_command *const *c = ttn_commands; *c; c++)
        if (strncmp((*c)->name, word, n) == 0 && (*c)->name[n] == ' ') return 1;
    return 0;
}

/* The row's option of that name. */
static int option_index(const ttn_command *c, const char *name)
{
    for (int i = 0; c->options && c->options[i].name; i++)
        if (strcmp(c->options[i].name, name) == 0) return i;
    assert(0 && "the command's row has this option");
    return 0;
}

int ttn_cli_given(const ttn_cli_call *call, const char *name)
{
    return call->value[option_index(call->command, name)] != NULL;
}

const char *ttn_cli_value(const ttn_cli_call *call, const char *name)
{
    return call->value[option_index(call->command, name)];
}
