/* What the library tells while it works. It never prints: each line goes to a function of the caller's.
 *
 * A ttn_log is the caller's; nothing is kept between two calls, so any number of threads may share one. `say` is
 * then called from several threads at once: where that matters it takes a lock.
 */
#ifndef TTN_LOG_H
#define TTN_LOG_H

#include "core/api.h"

TTN_API_BEGIN

/* In rising order. */
typedef enum {
    TTN_LOG_DEBUG,   /* for who works on titin */
    TTN_LOG_INFO,    /* progress */
    TTN_LOG_WARNING, /* goes on, but somebody should look */
    TTN_LOG_ERROR,   /* something was given up */
} ttn_log_level;

/* Room for an error's whole text and a few words around it. */
enum { TTN_LOG_TEXT = 2048 };

typedef struct {
    /* text: one line without its end, borrowed until say returns. NULL: silence. */
    void (*say)(void *ctx, ttn_log_level level, const char *text);
    void *ctx;
    ttn_log_level from; /* what is below is not said */
} ttn_log;

/* Say one line, if log is not NULL and its `from` lets it through. Control characters (line ends too) become '?'; a
 * text of more than TTN_LOG_TEXT - 1 bytes is cut, not inside a UTF-8 character, and ends in "...". Leaves errno as
 * it was. Allocates nothing. */
void ttn_log_say(const ttn_log *log, ttn_log_level level, const char *format, ...) TTN_PRINTF(3, 4);

/* Would a line of this level be said? For texts that are costly to make. */
int ttn_log_says(const ttn_log *log, ttn_log_level level);

/* "debug", "info", "warning", "error"; "?" for a number that is no level. */
const char *ttn_log_level_name(ttn_log_level level);

TTN_API_END
#endif
