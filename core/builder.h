/* A text that grows while it is written, for texts whose length nobody knows beforehand.
 *
 *     ttn_builder b = {0};
 *     ttn_build(&b, "%s: %d\n", name, n);
 *     return ttn_builder_finish(&b, "the list of names", ret, err);
 */
#ifndef TTN_BUILDER_H
#define TTN_BUILDER_H

#include <stddef.h>
#include "core/status.h"

/* Start with {0}. */
typedef struct {
    char *text; /* n bytes and a closing 0; NULL before the first */
    size_t n, room;
    int failed; /* there was no memory: nothing more is written, and finish says so */
} ttn_builder;

void ttn_build(ttn_builder *b, const char *format, ...) TTN_PRINTF(2, 3);
void ttn_build_bytes(ttn_builder *b, const void *bytes, size_t n);

/* A word of a command that a shell is to read as it is: in quotes where it needs them. */
void ttn_build_word(ttn_builder *b, const char *word);

/* Spaces until the line that is being written has at least `column` characters. */
void ttn_build_pad(ttn_builder *b, size_t column);

/* *ret: the text, never NULL, which the caller frees with free. TTN_ENOMEM names `what`. The builder is empty afterwards. */
TTN_MUST_USE ttn_status ttn_builder_finish(ttn_builder *b, const char *what, char **ret, ttn_error *err);

/* Give it up. */
void ttn_builder_drop(ttn_builder *b);

#endif
