#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "train/cli/terminal.h"

static int is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

ttn_terminal ttn_terminal_of(FILE *out)
{
    const char *kind = getenv("TERM");
    ttn_terminal t = {.out = out, .is_terminal = isatty(fileno(out)) == 1};
    t.redraws = t.is_terminal && kind && *kind && strcmp(kind, "dumb") != 0;
    t.has_colours = t.redraws && !is_set("NO_COLOR");
    return t;
}

/* 0: it does not say. */
static int own_width(const ttn_terminal *t)
{
    struct winsize size;
    if (!t->is_terminal || ioctl(fileno(t->out), TIOCGWINSZ, &size) != 0) return 0;
    return size.ws_col;
}

/* 0: COLUMNS is not set, or to no number of columns. */
static int wanted_width(void)
{
    const char *text = getenv("COLUMNS");
    if (!text || *text < '1' || *text > '9') return 0;
    char *end;
    long n = strtol(text, &end, 10);
    return *end || n > TTN_WIDEST ? 0 : (int)n;
}

static int clamp(int n, int least, int most)
{
    return n < least ? least : n > most ? most : n;
}

int ttn_terminal_width(const ttn_terminal *t)
{
    int n = wanted_width();
    if (n == 0) n = own_width(t);
    if (n == 0) n = TTN_USUAL_WIDTH;
    return clamp(n, TTN_NARROWEST, TTN_WIDEST);
}

int ttn_terminal_line_width(const ttn_terminal *t)
{
    int n = ttn_terminal_width(t), own = own_width(t);
    return own > 0 && own < n ? own : n;
}

int ttn_terminal_prose_width(const ttn_terminal *t)
{
    return clamp(ttn_terminal_width(t), TTN_NARROWEST, TTN_PROSE_WIDTH);
}

const char *ttn_terminal_style(const ttn_terminal *t, ttn_style style)
{
    static const char *const on[] = {
        [TTN_STYLE_BOLD] = "\033[1m",   [TTN_STYLE_DIM] = "\033[2m",     [TTN_STYLE_RED] = "\033[31m",
        [TTN_STYLE_GREEN] = "\033[32m", [TTN_STYLE_YELLOW] = "\033[33m",
    };
    return t->has_colours ? on[style] : "";
}

const char *ttn_terminal_plain(const ttn_terminal *t)
{
    return t->has_colours ? "\033[0m" : "";
}
