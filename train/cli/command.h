/* The commands of the program: one row says everything about one.
 *
 * Parsing, `titin --help`, `titin COMMAND --help`, the man page and the completion of bash all come from the rows, so a new
 * command is a file cmd_NAME.c with a row in it, and a line in commands.c. Tests go through the rows: every help text fits
 * 80 columns, every row is well-formed.
 */
#ifndef TTN_COMMAND_H
#define TTN_COMMAND_H

#include <stdio.h>
#include "core/memory.h"
#include "core/options.h"
#include "core/status.h"
#include "train/cli/terminal.h"

/* What a word of the command line is: completion offers it. */
typedef enum {
    TTN_WORD_ANY, /* nothing can be offered */
    TTN_WORD_FILE,
    TTN_WORD_FOLDER,
    TTN_WORD_COMMAND, /* a command's name */
    TTN_WORD_KEY,     /* a key of the configuration: data.path */
} ttn_word;

typedef struct {
    const char *name;  /* "json", for --json */
    const char *value; /* "N", for --name N; NULL: the option takes none */
    const char *help;  /* a sentence without a dot at its end */
    ttn_word word;     /* what the value is */
    char letter;       /* 'j', for -j; 0: none */
} ttn_cli_option;

typedef struct {
    const char *name; /* "FILE" */
    int least, most;  /* how many of them; most TTN_ANY_NUMBER: no limit, and then it is the last argument */
    ttn_word word;
    const char *help;
} ttn_cli_argument;

enum { TTN_ANY_NUMBER = -1 };

typedef struct {
    const char *line; /* "titin doctor --json" */
    const char *what; /* what it does */
} ttn_cli_example;

/* Everything that has no last row of its own ends with a row of zeros. */
typedef struct ttn_command ttn_command;
typedef struct ttn_cli_call ttn_cli_call;

struct ttn_command {
    const char *name;                  /* "doctor"; "config show": the second of two words belongs to the first */
    const char *group;                 /* the heading it stands under */
    const char *purpose;               /* one line, a phrase without a dot at its end */
    const char *description;           /* paragraphs, "\n\n" between them; NULL: the purpose says it all */
    const ttn_cli_argument *arguments; /* in order; NULL: none */
    const ttn_cli_option *options;     /* beside -h and --help; NULL: none */
    const ttn_cli_example *examples;   /* at least one */
    const ttn_exit *exits;             /* beside those that every command has, TTN_EXIT_OK at the end; NULL: none */
    const char *const *sections;       /* of the configuration that it reads, NULL at the end; NULL: none */

    /* Do it. A failure is returned with its sentence in err. What ends otherwise than well and is no failure (files that
     * differ) is told through call->exit. */
    ttn_status (*run)(const ttn_cli_call *call, ttn_error *err);
};

enum { TTN_MAX_OPTIONS = 24 };

/* A command line that fits its row. */
struct ttn_cli_call {
    const ttn_command *command;
    const char *value[TTN_MAX_OPTIONS]; /* of the row's option i: NULL not given, "" a given one without a value */
    char **argument;                    /* (n_argument) */
    int n_argument;
    ttn_arena *memory; /* of paths that were expanded; NULL: none was */
    ttn_terminal out, err;
    ttn_exit *exit; /* the program's exit code when run has returned TTN_OK: TTN_EXIT_OK at first */
    int reexec;     /* TTN_REEXEC_…: variables of the environment that titin has set, and not the user */
};

/* Was --name given; its value (NULL: not given). The row has such an option, or it is an assertion. */
int ttn_cli_given(const ttn_cli_call *call, const char *name);
const char *ttn_cli_value(const ttn_cli_call *call, const char *name);

/* ---- the table (commands.c) ---- */

/* NULL at the end; commands of one group stand together, and those whose names share their first word. */
extern const ttn_command *const ttn_commands[];

/* Exit codes that every command can end with. TTN_EXIT_OK is the first, and also ends the list. */
int ttn_exit_is_common(int code);

/* The command of that name ("config show"), or NULL; and is it the first word of names of two ("config")? */
const ttn_command *ttn_command_find(const char *name);
int ttn_command_is_family(const char *word);

/* ---- parsing (parse.c) ---- */

typedef enum {
    TTN_ASKED_RUN,     /* call is filled in */
    TTN_ASKED_HELP,    /* of call->command; of `family` ("config"); of everything, where both are NULL */
    TTN_ASKED_VERSION, /* of the program: no command */
} ttn_asked;

/* What does the command line ask for? `-h` and `--help` are seen wherever they stand, but not after `--`, and win over
 * whatever else is wrong but the command itself. argv may be reordered: arguments behind options. TTN_EINVAL: a sentence that names the word and
 * the nearest that would do. */
TTN_MUST_USE ttn_status ttn_cli_parse(int argc, char **argv, ttn_asked *ret_asked, ttn_cli_call *call,
                                      const char **ret_family, ttn_error *err);

/* TTN_EINVAL, with a sentence: no command has this name, and which one may have been meant. */
ttn_status ttn_cli_no_command(const char *word, ttn_error *err);

/* ---- help (help.c, pages.c) ---- */

/* Lines of at most `width` columns. */
void ttn_help_program(const ttn_terminal *t, int width);
void ttn_help_family(const ttn_terminal *t, int width, const char *family);
void ttn_help_command(const ttn_terminal *t, int width, const ttn_command *c);

/* "config show [FILE...] [KEY=VALUE...]", "[--json]" included; text has TTN_USAGE_TEXT bytes. Returns text. */
enum { TTN_USAGE_TEXT = 512 };
char *ttn_usage(const ttn_command *c, char *text);

/* n rows of the configuration: they are told of, and completed. */
void ttn_page_man(FILE *out, const ttn_option *row, int n);
void ttn_page_bash(FILE *out, const ttn_option *row, int n);

/* The option that every command has. */
extern const ttn_cli_option ttn_help_option;

/* ---- commands: cmd_NAME.c ---- */

extern const ttn_command ttn_cmd_config_show, ttn_cmd_config_explain, ttn_cmd_config_diff, ttn_cmd_config_schema;
extern const ttn_command ttn_cmd_data_check, ttn_cmd_data_pack, ttn_cmd_data_info, ttn_cmd_data_export;
extern const ttn_command ttn_cmd_train, ttn_cmd_replay, ttn_cmd_plan, ttn_cmd_eval, ttn_cmd_fill;
extern const ttn_command ttn_cmd_doctor, ttn_cmd_info, ttn_cmd_help, ttn_cmd_version;

#endif
