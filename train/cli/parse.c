#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "core/nearest.h"
#include "core/path.h"
#include "core/text.h"
#include "train/cli/configured.h"

/* "; did you mean `--json`?" for messages; "" without one. */
enum { HINT = 160 };

static const char *hint(char *text, const char *before, const char *word)
{
    text[0] = 0;
    if (word) snprintf(text, HINT, "; did you mean `%s%s`?", before, word);
    return text;
}

enum { MAX_NAMES = 200 };

/* The nearest of n names, or the first that begins with the word: `ver` for version, `data` for `data pack`. */
static const char *near_name(const char *word, const char *const *name, int n)
{
    const char *near = ttn_nearest(word, name, n);
    size_t length = strlen(word);
    for (int i = 0; i < n && !near && length >= 2; i++)
        if (strncmp(name[i], word, length) == 0) near = name[i];
    return near;
}

/* ---- which command ---- */

/* All names of commands, and first words of those of two. */
static int all_names(const char **ret)
{
    static const char *const own[] = {"--help", "--version"};
    int n = 0;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        ret[n++] = own[i];
    for (const ttn_command *const *c = ttn_commands; *c && n < MAX_NAMES; c++)
        ret[n++] = (*c)->name;
    return n;
}

/* Second words of "config …". */
static int names_of_family(const char *family, const char **ret)
{
    int n = 0;
    size_t length = strlen(family);
    for (const ttn_command *const *c = ttn_commands; *c && n < MAX_NAMES; c++)
        if (strncmp((*c)->name, family, length) == 0 && (*c)->name[length] == ' ') ret[n++] = (*c)->name + length + 1;
    return n;
}

ttn_status ttn_cli_no_command(const char *word, ttn_error *err)
{
    const char *names[MAX_NAMES];
    char text[HINT];
    /* Somebody who leaves out the first word of two finds it this way. */
    const char *near = NULL;
    for (const ttn_command *const *c = ttn_commands; *c && !near; c++) {
        const char *blank = strchr((*c)->name, ' ');
        if (blank && strcmp(blank + 1, word) == 0) near = (*c)->name;
    }
    if (!near) near = near_name(word, names, all_names(names));
    return TTN_FAIL(err, TTN_EINVAL, "there is no command '%s'%s `titin --help` lists what there is", word,
                    near ? hint(text, "titin ", near) : ";");
}

static ttn_status no_member(const char *family, const char *word, ttn_error *err)
{
    const char *names[MAX_NAMES];
    char text[HINT], before[64];
    int n = names_of_family(family, names);
    snprintf(before, sizeof before, "titin %s ", family);
    const char *near = word ? near_name(word, names, n) : NULL;
    if (!word)
        return TTN_FAIL(err, TTN_EINVAL, "titin %s: what of it? `titin %s --help` lists what there is", family, family);
    return TTN_FAIL(err, TTN_EINVAL, "there is no command '%s %s'%s `titin %s --help` lists what there is", family,
                    word, near ? hint(text, before, near) : ";", family);
}

/* ---- options ---- */

static int count_options(const ttn_command *c)
{
    int n = 0;
    while (c->options && c->options[n].name)
        n++;
    return n;
}

enum {
    LONG_ONLY = 1000, /* what getopt_long returns for option i of the row: LONG_ONLY + i */
    HELP = 999,
};

typedef struct {
    struct option longs[TTN_MAX_OPTIONS + 2];
    char shorts[2 * TTN_MAX_OPTIONS + 8];
} getopt_tables;

static void fill_tables(const ttn_command *c, getopt_tables *ret)
{
    int n = count_options(c), at = 0, at_short = 0;
    *ret = (getopt_tables){0};
    ret->shorts[at_short++] = ':'; /* a value that is missing is told from an option that is unknown */
    for (int i = 0; i < n; i++) {
        const ttn_cli_option *o = &c->options[i];
        ret->longs[at++] = (struct option){
            .name = o->name, .has_arg = o->value ? required_argument : no_argument, .val = LONG_ONLY + i};
        if (!o->letter) continue;
        ret->shorts[at_short++] = o->letter;
        if (o->value) ret->shorts[at_short++] = ':';
    }
    ret->longs[at] = (struct option){.name = ttn_help_option.name, .has_arg = no_argument, .val = HELP};
    ret->shorts[at_short] = ttn_help_option.letter;
}

static int option_of_code(const ttn_command *c, int code)
{
    if (code >= LONG_ONLY) return code - LONG_ONLY;
    for (int i = 0; c->options && c->options[i].name; i++)
        if (c->options[i].letter == code) return i;
    return -1;
}

/* The word that getopt_long did not like: as the user wrote it, and what may have been meant. */
static ttn_status no_option(const ttn_command *c, char **argv, ttn_error *err)
{
    const char *names[TTN_MAX_OPTIONS + 1];
    char given[80], text[HINT];
    int n = 0;
    for (; c->options && c->options[n].name; n++)
        names[n] = c->options[n].name;
    names[n++] = ttn_help_option.name;
    const char *near = NULL;
    int letter = optopt > 0 && optopt < LONG_ONLY && optopt != HELP;
    /* In the middle of "-abc", optind has not moved on yet. */
    int is_unfinished = letter && argv[optind] && argv[optind][0] == '-' && strchr(argv[optind], optopt);
    const char *word = argv[is_unfinished ? optind : optind - 1];
    if (letter) {
        snprintf(given, sizeof given, "-%c", optopt);
        if (word[0] == '-' && word[1] != '-' && word[1] && word[2]) near = near_name(word + 1, names, n); /* -json */
    } else {
        snprintf(given, sizeof given, "%.*s", (int)strcspn(word, "="), word);
        if (strchr(word, '=') && optopt != 0)
            return TTN_FAIL(err, TTN_EINVAL, "titin %s: %s takes no value", c->name, given);
        near = strncmp(given, "--", 2) == 0 ? near_name(given + 2, names, n) : NULL;
    }
    return TTN_FAIL(err, TTN_EINVAL, "titin %s has no option %s%s `titin %s --help` lists those it has", c->name, given,
                    near ? hint(text, "--", near) : ";", c->name);
}

static ttn_status no_value(const ttn_command *c, ttn_error *err)
{
    int i = option_of_code(c, optopt);
    return TTN_FAIL(err, TTN_EINVAL, "titin %s: --%s needs a value (%s)", c->name, c->options[i].name,
                    c->options[i].value);
}

/* A value that is given twice: nobody knows which one is meant. */
static ttn_status set_option(ttn_cli_call *call, int i, ttn_error *err)
{
    const char *before = call->value[i], *now = optarg ? optarg : "";
    if (before && strcmp(before, now) != 0)
        return TTN_FAIL(err, TTN_EINVAL, "titin %s: --%s is given twice, as '%s' and as '%s': give it once",
                        call->command->name, call->command->options[i].name, before, now);
    call->value[i] = now;
    return TTN_OK;
}

/* ---- arguments ---- */

static ttn_status check_arguments(const ttn_cli_call *call, ttn_error *err)
{
    const ttn_command *c = call->command;
    int least = 0, most = 0;
    const ttn_cli_argument *missing = NULL;
    for (const ttn_cli_argument *a = c->arguments; a && a->name; a++) {
        least += a->least;
        if (!missing && call->n_argument < least) missing = a;
        most = a->most == TTN_ANY_NUMBER || most == TTN_ANY_NUMBER ? TTN_ANY_NUMBER : most + a->most;
    }
    if (missing)
        return TTN_FAIL(err, TTN_EINVAL, "titin %s: %s is missing (%s); `titin %s --help` tells more", c->name,
                        missing->name, missing->help, c->name);
    if (most == TTN_ANY_NUMBER || call->n_argument <= most) return TTN_OK;
    if (most == 0)
        return TTN_FAIL(err, TTN_EINVAL, "titin %s takes no arguments, and this is one: '%s'", c->name,
                        call->argument[0]);
    return TTN_FAIL(err, TTN_EINVAL, "titin %s takes at most %d argument%s, and this is one more: '%s'", c->name, most,
                    ttn_text_plural(most), call->argument[most]);
}

/* ---- paths that no shell has read: '~/x', --output=~/x ---- */

/* *path: as it was, or the call's memory. */
static ttn_status expand_path(ttn_cli_call *call, const char **path, ttn_error *err)
{
    char expanded[PATH_MAX];
    if (strlen(*path) >= PATH_MAX) return TTN_OK; /* no path; whoever reads it says what is wrong */
    ttn_status status = ttn_path_expand(*path, expanded, err);
    if (status != TTN_OK || strcmp(expanded, *path) == 0) return status;
    if (!call->memory) status = ttn_arena_create(0, &call->memory, err);
    if (status != TTN_OK) return status;
    *path = ttn_arena_text(call->memory, "%s", expanded);
    return *path ? TTN_OK : TTN_FAIL(err, TTN_ENOMEM, "no memory for the arguments");
}

static int is_path(ttn_word word)
{
    return word == TTN_WORD_FILE || word == TTN_WORD_FOLDER;
}

/* The row's argument number i; NULL: there is none. */
static const ttn_cli_argument *argument_at(const ttn_command *c, int i)
{
    const ttn_cli_argument *a = c->arguments;
    for (; a && a->name && a->most != TTN_ANY_NUMBER && i >= a->most; a++)
        i -= a->most;
    return a && a->name ? a : NULL;
}

static ttn_status expand_paths(ttn_cli_call *call, ttn_error *err)
{
    const ttn_command *c = call->command;
    ttn_status status = TTN_OK;
    for (int i = 0; c->options && c->options[i].name && status == TTN_OK; i++)
        if (call->value[i] && is_path(c->options[i].word)) status = expand_path(call, &call->value[i], err);
    for (int i = 0; i < call->n_argument && status == TTN_OK; i++) {
        const ttn_cli_argument *a = argument_at(c, i);
        const char *path = call->argument[i];
        if (!a || !is_path(a->word) || ttn_is_setting(path)) continue;
        status = expand_path(call, &path, err);
        call->argument[i] = (char *)path;
    }
    return status;
}

/* ---- settings ---- */

static int is_same_key(const char *a, const char *b)
{
    return strncmp(a, b, strcspn(a, "=") + 1) == 0;
}

/* On one command line the later value would win without a word: of two data.train= half the data would be gone. */
static ttn_status check_settings(const ttn_cli_call *call, ttn_error *err)
{
    char *const *word = call->argument;
    for (int i = 1; i < call->n_argument; i++) {
        int first = 0;
        if (!ttn_is_setting(word[i])) continue;
        while (!is_same_key(word[i], word[first]))
            first++;
        if (first == i) continue;
        const int n = (int)strcspn(word[i], "=");
        const char *before = word[first] + n + 1, *now = word[i] + n + 1;
        return TTN_FAIL(
            err, TTN_EINVAL,
            "%.*s is given twice, as %.100s and as %.100s: give it once (a list as '%.*s=[%.100s, %.100s]')", n,
            word[i], before, now, n, word[i], before, now);
    }
    return TTN_OK;
}

/* argv[0] is the (last word of the) command. */
static ttn_status parse_words(int argc, char **argv, ttn_asked *ret_asked, ttn_cli_call *call, ttn_error *err)
{
    const ttn_command *c = call->command;
    getopt_tables tables;
    fill_tables(c, &tables);
    opterr = 0; /* the messages are ours */
    optind = 0; /* glibc: begin anew */
    ttn_status status = TTN_OK;
    for (int code; (code = getopt_long(argc, argv, tables.shorts, tables.longs, NULL)) != -1;) {
        if (code == HELP || code == ttn_help_option.letter) {
            *ret_asked = TTN_ASKED_HELP;
            return TTN_OK;
        }
        if (status != TTN_OK) continue; /* only a -h could still change anything */
        if (code == '?')
            status = no_option(c, argv, err);
        else if (code == ':')
            status = no_value(c, err);
        else
            status = set_option(call, option_of_code(c, code), err);
    }
    if (status != TTN_OK) return status;
    call->argument = argv + optind;
    call->n_argument = argc - optind;
    *ret_asked = TTN_ASKED_RUN;
    status = check_arguments(call, err);
    if (status == TTN_OK) status = check_settings(call, err);
    return status == TTN_OK ? expand_paths(call, err) : status;
}

/* ---- the whole line ---- */

static int is_help(const char *word)
{
    return strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0;
}

/* Is there a -h or --help among these words, before a "--"? */
static int asks_for_help(int n, char **word)
{
    for (int i = 0; i < n && strcmp(word[i], "--") != 0; i++)
        if (is_help(word[i])) return 1;
    return 0;
}

/* The command that word[0] and perhaps word[1] name; *ret_n: how many words that took. Of a family alone, asked for help,
 * *ret_family and no command. */
static ttn_status find_command(int n, char **word, int help, const ttn_command **ret, const char **ret_family,
                               int *ret_n, ttn_error *err)
{
    *ret_n = 1;
    *ret = ttn_command_find(word[0]);
    if (*ret) return TTN_OK;
    if (!ttn_command_is_family(word[0])) return ttn_cli_no_command(word[0], err);
    const char *second = n > 1 ? word[1] : NULL;
    help |= second && is_help(second);
    if (!second || is_help(second)) {
        *ret_family = word[0];
        return help ? TTN_OK : no_member(word[0], NULL, err);
    }
    char name[64]; /* a name that is cut is no command's */
    snprintf(name, sizeof name, "%s %s", word[0], second);
    *ret_n = 2;
    *ret = ttn_command_find(name);
    return *ret ? TTN_OK : no_member(word[0], second, err);
}

static ttn_status parse_version(int n, char **word, int help, ttn_asked *ret_asked, ttn_error *err)
{
    if (help || asks_for_help(n, word)) return TTN_OK;
    *ret_asked = TTN_ASKED_VERSION;
    if (n == 1) return TTN_OK;
    return TTN_FAIL(err, TTN_EINVAL, "nothing is expected after --version, and this stands there: '%s'", word[1]);
}

ttn_status ttn_cli_parse(int argc, char **argv, ttn_asked *ret_asked, ttn_cli_call *call, const char **ret_family,
                         ttn_error *err)
{
    *ret_family = NULL;
    call->command = NULL;
    *ret_asked = TTN_ASKED_HELP;
    int at = argc > 0;                         /* behind the program's name */
    int help = at < argc && is_help(argv[at]); /* titin -h info */
    at += help;
    if (at >= argc && help) return TTN_OK;
    if (at >= argc) return TTN_FAIL(err, TTN_EINVAL, "what is to be done? `titin --help` lists what there is");
    if (strcmp(argv[at], "--version") == 0) return parse_version(argc - at, argv + at, help, ret_asked, err);
    int n;
    ttn_status status = find_command(argc - at, argv + at, help, &call->command, ret_family, &n, err);
    if (status != TTN_OK || *ret_family || help) return status;
    at += n - 1; /* the last word of the name stands where getopt expects the program's */
    return parse_words(argc - at, argv + at, ret_asked, call, err);
}
