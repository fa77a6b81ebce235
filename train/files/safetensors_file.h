/* The header of one safetensors file: what safetensors.c puts together to one or many. Private to train/files. */
#ifndef TTN_SAFETENSORS_FILE_H
#define TTN_SAFETENSORS_FILE_H

#include "core/memory.h"
#include "train/files/reader.h"
#include "train/files/safetensors.h"

/* A list that grows. */
typedef struct {
    ttn_stored_tensor *tensor;
    int64_t n_tensor, room_tensor;
    ttn_stored_note *note;
    int64_t n_note, room_note;
    ttn_arena *dims; /* of all tensors */
} ttn_stored_list;

enum { TTN_HEADER_LENGTH = 8, TTN_HEADER_CAP = 25000000, TTN_HEADER_HARD_CAP = 100000000 };

/* Append what the header says: `text` (n bytes, and room for one more) is that of file number `file` called `name`, which
 * has `size` bytes. Names and notes are decoded in place and point into text, which is to stay. The tensors are appended in
 * the order in which they lie in the file, and tile it. */
TTN_MUST_USE ttn_status ttn_header_take(ttn_stored_list *list, const char *name, int file, char *text, int64_t n,
                                        int64_t size, ttn_error *err);

/* Read the header's length and text from a file; *text is the caller's (ttn_free). */
TTN_MUST_USE ttn_status ttn_header_read(const ttn_reader *r, int64_t most, char **text, int64_t *n, ttn_error *err);

/* May a tensor be called that? NULL, or why not. */
const char *ttn_header_name_fault(const char *name, size_t n);

#endif
