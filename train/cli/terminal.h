/* What stands at the other end of a stream: a terminal that obeys, or a file, a pipe, a dumb terminal that does not.
 *
 * Colours need a terminal, a TERM that is not "dumb", and an environment without NO_COLOR (https://no-color.org: set and
 * not empty). Drawing over a line needs the first two. Everything else is plain lines.
 */
#ifndef TTN_TERMINAL_H
#define TTN_TERMINAL_H

#include <stdio.h>

typedef struct {
    FILE *out;
    int is_terminal;
    int has_colours;
    int redraws; /* a line can be drawn again in its place */
} ttn_terminal;

ttn_terminal ttn_terminal_of(FILE *out);

/* Columns, asked anew at each call, so that a window that has been resized needs no signal handler: COLUMNS when it is
 * set to a number, else the terminal's own width, else 80. Between TTN_NARROWEST and TTN_WIDEST. */
enum { TTN_NARROWEST = 20, TTN_WIDEST = 1000, TTN_USUAL_WIDTH = 80 };
int ttn_terminal_width(const ttn_terminal *t);

/* The same for a line that is drawn again: never more than the terminal itself has, whatever COLUMNS says. */
int ttn_terminal_line_width(const ttn_terminal *t);

/* Lines of prose are hard to read beyond this, however wide the window is. */
enum { TTN_PROSE_WIDTH = 100 };
int ttn_terminal_prose_width(const ttn_terminal *t);

typedef enum { TTN_STYLE_BOLD, TTN_STYLE_DIM, TTN_STYLE_RED, TTN_STYLE_GREEN, TTN_STYLE_YELLOW } ttn_style;

/* What turns a style on, and what turns all of them off; "" without colours. Never freed. */
const char *ttn_terminal_style(const ttn_terminal *t, ttn_style style);
const char *ttn_terminal_plain(const ttn_terminal *t);

#endif
