#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "core/hdf5_read.h"
#include "train/cli/command.h"
#include "train/cli/program.h"

int ttn_program_fail(ttn_status status, const ttn_error *err)
{
    const ttn_terminal t = ttn_terminal_of(stderr);
    fflush(stdout); /* what was found out comes before what went wrong */
    fprintf(stderr, "titin: %serror:%s %s\n", ttn_terminal_style(&t, TTN_STYLE_RED), ttn_terminal_plain(&t), err->text);
    return ttn_status_exit(status);
}

/* What was printed has arrived? A disk that is full, and a standard output that is closed, show only here. */
static int finish(int exit_code)
{
    ttn_error err = {0};
    int refused = fflush(stdout) != 0;
    int error = errno;
    if ((!refused && !ferror(stdout)) || exit_code != TTN_EXIT_OK) return exit_code;
    /* ferror alone: an earlier part was refused, and its errno is gone */
    ttn_status status = TTN_FAIL(&err, TTN_EIO, "the standard output takes no more: %s",
                                 refused ? strerror(error) : "an earlier part was refused");
    return ttn_program_fail(status, &err);
}

static void print_help(const ttn_cli_call *call, const char *family)
{
    const int width = ttn_terminal_prose_width(&call->out);
    if (call->command)
        ttn_help_command(&call->out, width, call->command);
    else if (family)
        ttn_help_family(&call->out, width, family);
    else
        ttn_help_program(&call->out, width);
}

static int run(int argc, char **argv, int reexec)
{
    ttn_error err = {0};
    ttn_exit code = TTN_EXIT_OK;
    ttn_cli_call call = {
        .out = ttn_terminal_of(stdout), .err = ttn_terminal_of(stderr), .exit = &code, .reexec = reexec};
    ttn_asked asked;
    const char *family;
    ttn_status status = ttn_cli_parse(argc, argv, &asked, &call, &family, &err);
    if (status == TTN_OK && asked == TTN_ASKED_HELP) print_help(&call, family);
    if (status == TTN_OK && asked == TTN_ASKED_VERSION) call.command = &ttn_cmd_version;
    if (status == TTN_OK && asked != TTN_ASKED_HELP) status = call.command->run(&call, &err);
    ttn_arena_destroy(call.memory);
    return status == TTN_OK ? (int)code : ttn_program_fail(status, &err);
}

int ttn_program_run(int argc, char **argv, int reexec)
{
    ttn_hdf5_be_quiet_at_exit();
    return finish(run(argc, argv, reexec));
}
