/* A line that tells how far something is, and log lines above it.
 *
 * On a terminal the line stays at the bottom and is drawn again in its place. Elsewhere (a file, a pipe, TERM=dumb) it
 * is printed as a plain line, at most one in TTN_STATUS_EVERY seconds; log lines are printed all.
 *
 *     ttn_status_line line;
 *     ttn_status_line_begin(&line, stderr, NULL);
 *     ttn_log log = {.say = ttn_status_line_say, .ctx = &line, .from = TTN_LOG_INFO};
 *     ttn_status_line_show(&line, "step 12/500  loss 2.71");
 *     ttn_status_line_end(&line);
 *
 * Any number of threads may use one.
 */
#ifndef TTN_STATUS_LINE_H
#define TTN_STATUS_LINE_H

#include <pthread.h>
#include "core/clock.h"
#include "core/log.h"
#include "train/cli/terminal.h"

enum { TTN_STATUS_TEXT = 1024 };
#define TTN_STATUS_EVERY 10.0 /* seconds */

/* Private. */
typedef struct {
    pthread_mutex_t lock;
    ttn_terminal terminal;
    const ttn_clock *clock;
    double last;                /* when a plain line was printed */
    int n_plain;                /* of them */
    char text[TTN_STATUS_TEXT]; /* the line that stands, or should; "": none */
    int is_drawn;
    int columns; /* of what is drawn */
} ttn_status_line;

/* Nothing is printed yet. clock: NULL is the system's. End it with ttn_status_line_end. */
void ttn_status_line_begin(ttn_status_line *l, FILE *out, const ttn_clock *clock);

/* Let this be the line: one line, cut to the width of the terminal. Control characters become '?'. */
void ttn_status_line_show(ttn_status_line *l, const char *text);

/* A line above it that stays: the `say` of a ttn_log, with the ttn_status_line as its ctx. */
void ttn_status_line_say(void *line, ttn_log_level level, const char *text);

/* Take it away: the cursor stands at the beginning of an empty line. */
void ttn_status_line_end(ttn_status_line *l);

#endif
