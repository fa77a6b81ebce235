/* Failures that a caller handles: a code, and one sentence that says what was there and what was expected.
 *
 * The user's fault or the system's is a ttn_status with a message; ours is an assertion. The library never
 * exits and never prints: the program turns a status into a message and an exit code (ttn_status_exit).
 */
#ifndef TTN_STATUS_H
#define TTN_STATUS_H

#include <stdint.h>
#include "core/api.h"

TTN_API_BEGIN

/* How the program ends. The one list: `titin --help` prints it, and every status below names one of these. */
#define TTN_EXITS(X)                                                                               \
    X(OK, 0, "done")                                                                               \
    X(FAILURE, 1, "anything that has no code of its own")                                          \
    X(USAGE, 2, "usage or configuration: what was asked for does not fit together")                \
    X(DATA, 3, "data: a sequence file or store is damaged or not what it should be")               \
    X(CHECKPOINT, 4, "checkpoint or model file: damaged, foreign or of another shape")             \
    X(NUMERIC, 5, "numeric: values that are not finite, or a check of the arithmetic that failed") \
    X(RESOURCE, 6, "resource: memory, disk, processor, BLAS or GPU")                               \
    X(STOPPED, 75, "stopped by a signal with its state saved; start it again to go on")

typedef enum {
#define TTN_EXIT(name, code, help) TTN_EXIT_##name = code,
    TTN_EXITS(TTN_EXIT)
#undef TTN_EXIT
} ttn_exit;

/* name, the exit code it leads to, what it means */
#define TTN_STATUSES(X)                                                         \
    X(OK, OK, "ok")                                                             \
    X(EOF, OK, "after the last record")                                         \
    X(EINTERNAL, FAILURE, "internal error")                                     \
    X(EINVAL, USAGE, "what was asked for does not fit together")                \
    X(EFORMAT, DATA, "not in the format it should be")                          \
    X(ECHECKPOINT, CHECKPOINT, "checkpoint or model file cannot be used")       \
    X(ENUMERIC, NUMERIC, "numbers that are not finite or not right")            \
    X(ENOMEM, RESOURCE, "out of memory")                                        \
    X(EIO, RESOURCE, "reading or writing failed")                               \
    X(EDEVICE, RESOURCE, "processor, BLAS or GPU cannot do what was asked for") \
    X(ESTOPPED, STOPPED, "stopped by a signal")

typedef enum {
#define TTN_STATUS(name, exit, help) TTN_##name,
    TTN_STATUSES(TTN_STATUS)
#undef TTN_STATUS
} ttn_status;

enum { TTN_ERROR_TEXT = 1024, TTN_ERROR_FILE = 304 };

/* Start with {0}. The first failure is kept: an error that already holds one is left alone. */
typedef struct {
    ttn_status status;
    int64_t line;              /* of file, from 1; 0: none */
    int64_t column;            /* in bytes, from 1; 0: none */
    char file[TTN_ERROR_FILE]; /* to be shown, not opened (see below); "": no file is to blame */
    char text[TTN_ERROR_TEXT]; /* the whole sentence, "FILE:LINE:COLUMN: " included; no line end */
} ttn_error;

/* Fill *err (which may be NULL) and return status, so that a check reads
 *     return TTN_FAIL(err, TTN_EINVAL, "linear: x has width %d, W takes %d", …);
 * Control characters in the result (a hostile file's bytes) become '?'; a text that does not fit ends in "...". */
ttn_status ttn_error_set(ttn_error *err, ttn_status status, const char *format, ...) TTN_PRINTF(3, 4);

/* The same for a place in a file; line or column 0: none. A path of more than 300 bytes is shown as "..." and its last
 * 300 (or a little less: whole UTF-8 characters), so that place and sentence have room; this and the control characters
 * that become '?' concern err->file as well as err->text. */
ttn_status ttn_error_set_at(ttn_error *err, ttn_status status, const char *file, int64_t line, int64_t column,
                            const char *format, ...) TTN_PRINTF(6, 7);

#define TTN_FAIL(err, status, ...) ttn_error_set((err), (status), __VA_ARGS__)
#define TTN_FAIL_AT(err, status, file, line, column, ...) \
    ttn_error_set_at((err), (status), (file), (line), (column), __VA_ARGS__)

/* "EINVAL", "what was asked for does not fit together", and the exit code. Never NULL; for a number that is
 * no status: "?", "unknown status", TTN_EXIT_FAILURE. */
const char *ttn_status_name(ttn_status status);
const char *ttn_status_help(ttn_status status);
ttn_exit ttn_status_exit(ttn_status status);

/* The exit codes one by one, for help texts: entry i, or 0 after the last. */
int ttn_exit_entry(int i, int *code, const char **help);

TTN_API_END
#endif
