/* Help texts, from the rows of commands. */
#include <stdio.h>
#include <string.h>
#include "train/cli/command.h"
#include "train/cli/layout.h"
#include "train/cli/signals.h"

static const char tagline[] = "titin trains protein language models on sequences as long as proteins get.";

enum {
    INDENT = 2,
    MAX_PAIRS = 128,
    MAX_TERM = 30, /* columns: a longer one has a line for itself */
    MAX_EXAMPLE = 40,
};

/* ---- usage ---- */

static void append(char *text, size_t room, const char *before, const char *word, const char *after)
{
    size_t n = strlen(text);
    snprintf(text + n, room - n, "%s%s%s%s", n > 0 ? " " : "", before, word, after);
}

char *ttn_usage(const ttn_command *c, char *text)
{
    text[0] = 0;
    append(text, TTN_USAGE_TEXT, "", c->name, "");
    for (const ttn_cli_option *o = c->options; o && o->name; o++) {
        char word[80];
        snprintf(word, sizeof word, "--%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
        append(text, TTN_USAGE_TEXT, "[", word, "]");
    }
    for (const ttn_cli_argument *a = c->arguments; a && a->name; a++) {
        int is_optional = a->least == 0;
        append(text, TTN_USAGE_TEXT, is_optional ? "[" : "", a->name,
               a->most == TTN_ANY_NUMBER ? (is_optional ? "...]" : "...") : (is_optional ? "]" : ""));
    }
    return text;
}

/* ---- parts ---- */

static void heading(const ttn_terminal *t, const char *text)
{
    fprintf(t->out, "\n%s%s:%s\n", ttn_terminal_style(t, TTN_STYLE_BOLD), text, ttn_terminal_plain(t));
}

static ttn_pair_layout layout_of(const ttn_terminal *t, int width)
{
    return (ttn_pair_layout){.out = t->out,
                             .width = width,
                             .indent = INDENT,
                             .most = MAX_TERM,
                             .before = ttn_terminal_style(t, TTN_STYLE_BOLD),
                             .after = ttn_terminal_plain(t)};
}

static void print_pairs(const ttn_terminal *t, int width, const ttn_pair *pair, int n)
{
    ttn_pair_layout l = layout_of(t, width);
    ttn_print_pairs(&l, pair, n);
}

/* Each with its line, since a command line is to be copied. */
static void print_examples(const ttn_terminal *t, int width, const ttn_cli_example *example)
{
    heading(t, "examples");
    ttn_pair pair[MAX_PAIRS];
    int n = 0;
    for (; n < MAX_PAIRS && example[n].line; n++)
        pair[n] = (ttn_pair){example[n].line, example[n].what};
    ttn_pair_layout l = layout_of(t, width);
    l.most = MAX_EXAMPLE;
    ttn_print_pairs(&l, pair, n);
}

static void print_usage(const ttn_terminal *t, int width, const char *usage)
{
    static const char before[] = "usage: titin ";
    fprintf(t->out, "%susage:%s titin ", ttn_terminal_style(t, TTN_STYLE_BOLD), ttn_terminal_plain(t));
    ttn_wrap(t->out, width, sizeof before - 1, sizeof before - 1, usage);
}

/* Commands of one group, or of one family ("config"); the other is NULL. Both NULL: all. Returns how many. */
static int pairs_of(const char *group, const char *family, ttn_pair *ret)
{
    int n = 0;
    size_t length = family ? strlen(family) : 0;
    for (const ttn_command *const *c = ttn_commands; *c && n < MAX_PAIRS; c++) {
        if (group && strcmp((*c)->group, group) != 0) continue;
        if (family && (strncmp((*c)->name, family, length) != 0 || (*c)->name[length] != ' ')) continue;
        ret[n++] = (ttn_pair){(*c)->name, (*c)->purpose};
    }
    return n;
}

static void print_exits(const ttn_terminal *t, int width, const ttn_command *command)
{
    heading(t, "exit codes");
    int code;
    const char *help;
    char number[16][8];
    ttn_pair pair[16];
    int n = 0;
    for (int i = 0; ttn_exit_entry(i, &code, &help) && n < 16; i++) {
        int is_own = 0;
        for (const ttn_exit *e = command ? command->exits : NULL; e && *e != TTN_EXIT_OK; e++)
            is_own |= (int)*e == code;
        if (command && !is_own && !ttn_exit_is_common(code)) continue;
        snprintf(number[n], sizeof number[n], "%2d", code);
        pair[n] = (ttn_pair){number[n], help};
        n++;
    }
    print_pairs(t, width, pair, n);
}

static void print_signals(const ttn_terminal *t, int width)
{
    heading(t, "signals");
    ttn_pair pair[8];
    int n = 0;
    while (n < 8 && ttn_signals_entry(n, &pair[n].term, &pair[n].meaning))
        n++;
    print_pairs(t, width, pair, n);
}

/* ---- screens ---- */

void ttn_help_program(const ttn_terminal *t, int width)
{
    ttn_wrap(t->out, width, 0, 0, tagline);
    putc('\n', t->out);
    print_usage(t, width, "COMMAND [OPTION...] [ARGUMENT...]");
    ttn_pair pair[MAX_PAIRS];
    ttn_pair_layout l = layout_of(t, width);
    l.column = ttn_pair_column(&l, pair, pairs_of(NULL, NULL, pair));
    const char *group = NULL;
    for (const ttn_command *const *c = ttn_commands; *c; c++) {
        if (group && strcmp(group, (*c)->group) == 0) continue;
        group = (*c)->group;
        heading(t, group);
        ttn_print_pairs(&l, pair, pairs_of(group, NULL, pair));
    }
    print_exits(t, width, NULL);
    print_signals(t, width);
    putc('\n', t->out);
    ttn_wrap(t->out, width, 0, 0, "`titin COMMAND --help` tells more of one of them, with examples.");
}

void ttn_help_family(const ttn_terminal *t, int width, const char *family)
{
    char usage[TTN_USAGE_TEXT];
    snprintf(usage, sizeof usage, "%s COMMAND [OPTION...] [ARGUMENT...]", family);
    print_usage(t, width, usage);
    heading(t, "commands");
    ttn_pair pair[MAX_PAIRS];
    print_pairs(t, width, pair, pairs_of(NULL, family, pair));
    putc('\n', t->out);
    snprintf(usage, sizeof usage, "`titin %s COMMAND --help` tells more of one of them, with examples.", family);
    ttn_wrap(t->out, width, 0, 0, usage);
}

static void print_arguments(const ttn_terminal *t, int width, const ttn_cli_argument *a)
{
    ttn_pair pair[MAX_PAIRS];
    int n = 0;
    for (; a && n < MAX_PAIRS && a[n].name; n++)
        pair[n] = (ttn_pair){a[n].name, a[n].help};
    if (n == 0) return;
    heading(t, "arguments");
    print_pairs(t, width, pair, n);
}

static void print_options(const ttn_terminal *t, int width, const ttn_cli_option *options)
{
    ttn_pair pair[TTN_MAX_OPTIONS + 1];
    char term[TTN_MAX_OPTIONS + 1][80];
    int n = 0;
    for (int is_last = 0; !is_last; n++) {
        is_last = !options || !options[n].name || n == TTN_MAX_OPTIONS;
        const ttn_cli_option *o = is_last ? &ttn_help_option : &options[n];
        if (o->letter)
            snprintf(term[n], sizeof term[n], "-%c, --%s", o->letter, o->name);
        else
            snprintf(term[n], sizeof term[n], "    --%s", o->name); /* below the others' long names */
        if (o->value) append(term[n], sizeof term[n], "", o->value, "");
        pair[n] = (ttn_pair){term[n], o->help};
    }
    heading(t, "options");
    print_pairs(t, width, pair, n);
}

static void print_sections(const ttn_terminal *t, int width, const char *const *section)
{
    if (!section || !section[0]) return;
    char text[TTN_USAGE_TEXT] = "";
    for (; *section; section++)
        append(text, sizeof text, "", *section, section[1] ? "," : "");
    heading(t, "sections of the configuration that it reads");
    fprintf(t->out, "%*s", INDENT, "");
    ttn_wrap(t->out, width, INDENT, INDENT, text);
}

void ttn_help_command(const ttn_terminal *t, int width, const ttn_command *c)
{
    char usage[TTN_USAGE_TEXT];
    fprintf(t->out, "%stitin %s%s: ", ttn_terminal_style(t, TTN_STYLE_BOLD), c->name, ttn_terminal_plain(t));
    ttn_wrap(t->out, width, (int)strlen(c->name) + (int)strlen("titin : "), INDENT, c->purpose);
    putc('\n', t->out);
    print_usage(t, width, ttn_usage(c, usage));
    print_examples(t, width, c->examples);
    if (c->description) {
        putc('\n', t->out);
        ttn_wrap(t->out, width, 0, 0, c->description);
    }
    print_arguments(t, width, c->arguments);
    print_options(t, width, c->options);
    print_sections(t, width, c->sections);
    print_exits(t, width, c);
}
