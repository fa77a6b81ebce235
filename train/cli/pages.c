/* The man page and the completion of bash, from the rows of commands. */
#include <stdio.h>
#include <string.h>
#include "core/titin.h"
#include "train/cli/command.h"
#include "train/cli/signals.h"

/* ---- man page: the macros of man(7) ---- */

/* Text as roff takes it for itself: '\', '-' where it is typed and not read, and a '.' or ''' that begins a line. */
static void put_roff(FILE *out, const char *text, int is_typed)
{
    int is_line_start = 1;
    for (const char *c = text; *c; c++) {
        if (is_line_start && (*c == '.' || *c == '\'')) fputs("\\&", out);
        is_line_start = *c == '\n';
        if (*c == '\\')
            fputs("\\e", out);
        else if (*c == '-' && is_typed)
            fputs("\\-", out);
        else if (*c == '\'' && is_typed)
            fputs("\\(aq", out);
        else if (*c == '`')
            fputs("\\(ga", out);
        else if (*c == '~')
            fputs("\\(ti", out);
        else if (*c == '^')
            fputs("\\(ha", out);
        else
            putc(*c, out);
    }
}

static void put_bold(FILE *out, const char *text)
{
    fputs("\\fB", out);
    put_roff(out, text, 1);
    fputs("\\fR", out);
}

/* A term, bold, and a paragraph behind it. */
static void put_item(FILE *out, const char *term, const char *value, const char *meaning)
{
    fputs(".TP\n", out);
    put_bold(out, term);
    if (value) {
        fputs(" \\fI", out);
        put_roff(out, value, 1);
        fputs("\\fR", out);
    }
    putc('\n', out);
    put_roff(out, meaning, 0);
    putc('\n', out);
}

static void put_paragraphs(FILE *out, const char *text)
{
    for (const char *end; *text; text = end) {
        end = strstr(text, "\n\n");
        if (!end) end = text + strlen(text);
        fputs(".PP\n", out);
        char part[2048];
        snprintf(part, sizeof part, "%.*s", (int)(end - text), text);
        put_roff(out, part, 0);
        putc('\n', out);
        end += strspn(end, "\n");
    }
}

static void man_options(FILE *out, const ttn_cli_option *o)
{
    for (int is_last = 0; !is_last; o++) {
        char term[80];
        is_last = !o || !o->name;
        const ttn_cli_option *now = is_last ? &ttn_help_option : o;
        if (now->letter)
            snprintf(term, sizeof term, "-%c, --%s", now->letter, now->name);
        else
            snprintf(term, sizeof term, "--%s", now->name);
        put_item(out, term, now->value, now->help);
        if (is_last) break;
    }
}

static void man_command(FILE *out, const ttn_command *c)
{
    char usage[TTN_USAGE_TEXT];
    fputs(".SS \"titin ", out);
    put_roff(out, ttn_usage(c, usage), 1);
    fputs("\"\n", out);
    put_roff(out, c->purpose, 0);
    fputs(c->purpose[strlen(c->purpose) - 1] == '?' ? "\n" : ".\n", out);
    if (c->description) put_paragraphs(out, c->description);
    for (const ttn_cli_argument *a = c->arguments; a && a->name; a++)
        put_item(out, a->name, NULL, a->help);
    man_options(out, c->options);
    fputs(".PP\nExamples:\n", out);
    for (const ttn_cli_example *e = c->examples; e->line; e++)
        put_item(out, e->line, NULL, e->what);
}

static void man_keys(FILE *out, const ttn_option *row, int n)
{
    fputs(".SH CONFIGURATION\nKeys of a configuration file (YAML), which may also be given as\n"
          ".IR section.key = value\non the command line and as TITIN__SECTION__KEY in the environment.\n",
          out);
    for (int i = 0; i < n; i++) {
        char kind[TTN_OPTION_KIND], text[1024];
        snprintf(text, sizeof text, "%s. Default: %s.", row[i].help, row[i].fallback ? row[i].fallback : "none");
        put_item(out, row[i].name, ttn_option_kind(&row[i], kind), text);
    }
}

void ttn_page_man(FILE *out, const ttn_option *row, int n)
{
    fprintf(out, ".TH TITIN 1 \"\" \"titin %s\" \"User Commands\"\n", ttn_version());
    fputs(".SH NAME\ntitin \\- train protein language models on very long sequences\n"
          ".SH SYNOPSIS\n.B titin\n.I COMMAND\n[\\fIOPTION\\fR...] [\\fIARGUMENT\\fR...]\n"
          ".SH DESCRIPTION\n"
          "titin trains protein language models on sequences as long as proteins get, with attention whose cost is\n"
          "linear in length.\n"
          "An option may stand before or after arguments; what stands behind\n.B \\-\\-\nis an argument.\n"
          ".SH COMMANDS\n",
          out);
    for (const ttn_command *const *c = ttn_commands; *c; c++)
        man_command(out, *c);
    man_keys(out, row, n);
    fputs(".SH \"EXIT STATUS\"\n", out);
    int code;
    const char *help;
    for (int i = 0; ttn_exit_entry(i, &code, &help); i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", code);
        put_item(out, number, NULL, help);
    }
    fputs(".SH SIGNALS\n", out);
    const char *name;
    for (int i = 0; ttn_signals_entry(i, &name, &help); i++)
        put_item(out, name, NULL, help);
    fputs(".SH ENVIRONMENT\n", out);
    static const char *const variables[][2] = {
        {"OMP_NUM_THREADS", "How many threads compute, where train.threads is 0; unset: as many as there are cores to "
                            "run on and OpenBLAS serves."},
        {"GOMP_SPINCOUNT", "How often a waiting thread looks again before it sleeps; unset, and OMP_WAIT_POLICY too: "
                           "1000, so that programs "
                           "beside titin can use the cores. More is a little faster on an idle machine, and several "
                           "times slower on a busy "
                           "one."},
        {"OPENBLAS_CORETYPE", "The kernel of OpenBLAS; unset: the one that fits the processor."},
        {"NO_COLOR", "Set, and not empty: no colours."},
        {"COLUMNS", "The width of the text; unset: that of the terminal, or 80."},
    };
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        put_item(out, variables[i][0], NULL, variables[i][1]);
}

/* ---- completion of bash ---- */

static void bash_words_of_family(FILE *out, const char *family, size_t n)
{
    const char *before = "";
    for (const ttn_command *const *c = ttn_commands; *c; c++) {
        if (strncmp((*c)->name, family, n) != 0 || (*c)->name[n] != ' ') continue;
        fprintf(out, "%s%s", before, (*c)->name + n + 1);
        before = " ";
    }
}

/* The first words of all commands, each once. */
static void bash_first_words(FILE *out)
{
    const char *last = "";
    size_t last_n = 0;
    for (const ttn_command *const *c = ttn_commands; *c; c++) {
        size_t n = strcspn((*c)->name, " ");
        if (n == last_n && strncmp((*c)->name, last, n) == 0) continue;
        fprintf(out, "%.*s ", (int)n, (*c)->name);
        last = (*c)->name;
        last_n = n;
    }
    fputs("--help --version", out);
}

/* What compgen is asked for. */
static const char *bash_action(ttn_word word)
{
    switch (word) {
    case TTN_WORD_ANY:
        return "";
    case TTN_WORD_FILE:
        return "-f";
    case TTN_WORD_FOLDER:
        return "-d";
    case TTN_WORD_COMMAND:
        return "-W \"$commands\"";
    case TTN_WORD_KEY:
        return "-W \"$keys\"";
    }
    return "";
}

static void bash_command(FILE *out, const ttn_command *c)
{
    fprintf(out, "    '%s')\n        options='", c->name);
    for (const ttn_cli_option *o = c->options; o && o->name; o++)
        fprintf(out, "--%s ", o->name);
    fputs("--help'\n", out);
    int any_value = 0;
    for (const ttn_cli_option *o = c->options; o && o->name; o++) {
        if (!o->value) continue;
        if (!any_value) fputs("        case \"$before\" in\n", out);
        any_value = 1;
        if (o->letter)
            fprintf(out, "        --%s | -%c) values=(%s) is_value=1 ;;\n", o->name, o->letter, bash_action(o->word));
        else
            fprintf(out, "        --%s) values=(%s) is_value=1 ;;\n", o->name, bash_action(o->word));
    }
    if (any_value) fputs("        esac\n", out);
    const ttn_cli_argument *a = c->arguments;
    if (a && a->name) fprintf(out, "        [ \"$is_value\" ] || values=(%s)\n", bash_action(a->word));
    fputs("        ;;\n", out);
}

void ttn_page_bash(FILE *out, const ttn_option *row, int n)
{
    fputs("# bash completion for titin: made by `titin help --bash`\n"
          "_titin()\n"
          "{\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    local command=${COMP_WORDS[1]-} options='' values=() is_value=''\n"
          "    : \"$before\" # only options with a value look at it\n"
          "    local commands='",
          out);
    bash_first_words(out);
    fputs("'\n    local keys='", out);
    for (int i = 0; i < n; i++)
        fprintf(out, "%s%s", i > 0 ? " " : "", row[i].name);
    fputs("'\n    : \"$keys\"\n"
          "    COMPREPLY=()\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$commands\" -- \"$word\")\n"
          "        return\n"
          "    fi\n"
          "    case \"$command\" in\n",
          out);
    const char *last = "";
    for (const ttn_command *const *c = ttn_commands; *c; c++) {
        size_t length = strcspn((*c)->name, " ");
        if (!(*c)->name[length] || strncmp((*c)->name, last, length + 1) == 0) continue;
        last = (*c)->name;
        fprintf(
            out,
            "    %.*s)\n        if [ \"$COMP_CWORD\" -eq 2 ]; then\n            mapfile -t COMPREPLY < <(compgen -W '",
            (int)length, last);
        bash_words_of_family(out, last, length);
        fputs("' -- \"$word\")\n            return\n        fi\n        command=\"$command ${COMP_WORDS[2]}\"\n        "
              ";;\n",
              out);
    }
    fputs("    esac\n    case \"$command\" in\n", out);
    for (const ttn_command *const *c = ttn_commands; *c; c++)
        bash_command(out, *c);
    fputs("    esac\n"
          "    if [ \"${word:0:1}\" = - ] && [ -z \"$is_value\" ]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
          "    elif [ \"${#values[@]}\" -gt 0 ]; then\n"
          "        case \"${values[0]}\" in -f | -d) compopt -o filenames 2> /dev/null ;; esac\n"
          "        mapfile -t COMPREPLY < <(compgen \"${values[@]}\" -- \"$word\")\n"
          "    fi\n"
          "}\n"
          "complete -F _titin titin\n",
          out);
}
