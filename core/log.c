#include <errno.h>
#include <stdarg.h>
#include "core/log.h"
#include "core/text.h"

int ttn_log_says(const ttn_log *log, ttn_log_level level)
{
    return log && log->say && (int)level >= (int)log->from;
}

void ttn_log_say(const ttn_log *log, ttn_log_level level, const char *format, ...)
{
    if (!ttn_log_says(log, level)) return;
    int before = errno;
    char text[TTN_LOG_TEXT];
    text[0] = 0;
    va_list args;
    va_start(args, format);
    ttn_text_append(text, sizeof text, format, args);
    va_end(args);
    ttn_text_disarm(text);
    log->say(log->ctx, level, text);
    errno = before;
}

const char *ttn_log_level_name(ttn_log_level level)
{
    static const char *const name[] = {
        [TTN_LOG_DEBUG] = "debug",
        [TTN_LOG_INFO] = "info",
        [TTN_LOG_WARNING] = "warning",
        [TTN_LOG_ERROR] = "error",
    };
    return (int)level >= 0 && (int)level < (int)(sizeof name / sizeof *name) ? name[level] : "?";
}
