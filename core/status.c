#include <inttypes.h>
#include <stdarg.h>
#include "core/status.h"
#include "core/text.h"

static const struct {
    const char *name;
    const char *help;
    ttn_exit exit;
} statuses[] = {
#define TTN_STATUS(name, exit, help) [TTN_##name] = {#name, help, TTN_EXIT_##exit},
    TTN_STATUSES(TTN_STATUS)
#undef TTN_STATUS
};

static const struct {
    int code;
    const char *help;
} exits[] = {
#define TTN_EXIT(name, code, help) {code, help},
    TTN_EXITS(TTN_EXIT)
#undef TTN_EXIT
};

enum {
    N_STATUS = sizeof statuses / sizeof *statuses,
    N_EXIT = sizeof exits / sizeof *exits,
};

static void append_text(char *text, size_t room, const char *format, ...) TTN_PRINTF(3, 4);
static void append_text(char *text, size_t room, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    ttn_text_append(text, room, format, args);
    va_end(args);
}

ttn_status ttn_error_set(ttn_error *err, ttn_status status, const char *format, ...)
{
    if (!err || err->status != TTN_OK) return status;
    *err = (ttn_error){.status = status};
    va_list args;
    va_start(args, format);
    ttn_text_append(err->text, sizeof err->text, format, args);
    va_end(args);
    ttn_text_disarm(err->text);
    return status;
}

ttn_status ttn_error_set_at(ttn_error *err, ttn_status status, const char *file, int64_t line, int64_t column,
                            const char *format, ...)
{
    if (!err || err->status != TTN_OK) return status;
    *err = (ttn_error){.status = status, .line = line, .column = column};
    _Static_assert(sizeof err->file >= TTN_TAIL_ROOM, "a file is named in both places as far as in messages");
    append_text(err->text, sizeof err->text, "%s:", ttn_text_tail(file, err->file));
    if (line > 0) append_text(err->text, sizeof err->text, "%" PRId64 ":", line);
    if (line > 0 && column > 0) append_text(err->text, sizeof err->text, "%" PRId64 ":", column);
    append_text(err->text, sizeof err->text, " ");
    va_list args;
    va_start(args, format);
    ttn_text_append(err->text, sizeof err->text, format, args);
    va_end(args);
    ttn_text_disarm(err->file);
    ttn_text_disarm(err->text);
    return status;
}

static int is_status(ttn_status status)
{
    return (int)status >= 0 && (int)status < N_STATUS;
}

const char *ttn_status_name(ttn_status status)
{
    return is_status(status) ? statuses[status].name : "?";
}

const char *ttn_status_help(ttn_status status)
{
    return is_status(status) ? statuses[status].help : "unknown status";
}

ttn_exit ttn_status_exit(ttn_status status)
{
    return is_status(status) ? statuses[status].exit : TTN_EXIT_FAILURE;
}

int ttn_exit_entry(int i, int *code, const char **help)
{
    if (i < 0 || i >= N_EXIT) return 0;
    *code = exits[i].code;
    *help = exits[i].help;
    return 1;
}
