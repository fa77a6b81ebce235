#include <string.h>
#include "core/text.h"
#include "train/cli/layout.h"
#include "train/cli/status_line.h"

#define CLEAR_LINE "\r\033[K"

void ttn_status_line_begin(ttn_status_line *l, FILE *out, const ttn_clock *clock)
{
    *l = (ttn_status_line){.terminal = ttn_terminal_of(out), .clock = clock};
    pthread_mutex_init(&l->lock, NULL);
}

/* What is drawn has gone, and the cursor stands where it began.
 *
 * When the window has become narrower than the line, some terminals have folded it over several rows and some have cut
 * it off; going up by the rows of the former would wipe log lines of the latter. The line is left where it is then. */
static void wipe(ttn_status_line *l)
{
    if (!l->is_drawn) return;
    fputs(l->columns < ttn_terminal_line_width(&l->terminal) ? CLEAR_LINE : "\n", l->terminal.out);
    l->is_drawn = 0;
}

/* One column stays free: a character in the last one makes some terminals go to the next line. */
static void draw(ttn_status_line *l)
{
    if (!l->text[0]) return;
    size_t n = ttn_columns_fit(l->text, ttn_terminal_line_width(&l->terminal) - 1, &l->columns);
    fwrite(l->text, 1, n, l->terminal.out);
    l->is_drawn = 1;
}

void ttn_status_line_show(ttn_status_line *l, const char *text)
{
    pthread_mutex_lock(&l->lock);
    snprintf(l->text, sizeof l->text, "%s", text);
    ttn_text_disarm(l->text);
    if (l->terminal.redraws) {
        wipe(l);
        draw(l);
        fflush(l->terminal.out);
    } else {
        double now = ttn_clock_now(l->clock);
        if (l->n_plain == 0 || now - l->last >= TTN_STATUS_EVERY) {
            fprintf(l->terminal.out, "%s\n", l->text);
            fflush(l->terminal.out);
            l->last = now;
            l->n_plain++;
        }
    }
    pthread_mutex_unlock(&l->lock);
}

static const char *style_of(const ttn_terminal *t, ttn_log_level level)
{
    switch (level) {
    case TTN_LOG_DEBUG:
        return ttn_terminal_style(t, TTN_STYLE_DIM);
    case TTN_LOG_INFO:
        return "";
    case TTN_LOG_WARNING:
        return ttn_terminal_style(t, TTN_STYLE_YELLOW);
    case TTN_LOG_ERROR:
        return ttn_terminal_style(t, TTN_STYLE_RED);
    }
    return "";
}

void ttn_status_line_say(void *line, ttn_log_level level, const char *text)
{
    ttn_status_line *l = line;
    const ttn_terminal *t = &l->terminal;
    pthread_mutex_lock(&l->lock);
    if (t->redraws) wipe(l);
    const char *style = style_of(t, level);
    if (level >= TTN_LOG_WARNING)
        fprintf(t->out, "%s%s:%s ", style, ttn_log_level_name(level), ttn_terminal_plain(t));
    else if (*style)
        fputs(style, t->out);
    fputs(text, t->out);
    if (level < TTN_LOG_WARNING && *style) fputs(ttn_terminal_plain(t), t->out);
    putc('\n', t->out);
    if (t->redraws) draw(l);
    fflush(t->out);
    pthread_mutex_unlock(&l->lock);
}

void ttn_status_line_end(ttn_status_line *l)
{
    if (l->terminal.redraws) {
        wipe(l);
        fflush(l->terminal.out);
    }
    pthread_mutex_destroy(&l->lock);
}
