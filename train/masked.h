/* Proteins in which residues are to be filled in, as people write them: letters, and "_" or "<mask>" where something is
 * hidden. From a text, or from files in FASTA: headers begin with '>', and what stands before the first one is a sequence
 * without a name.
 *
 * Blanks and line ends between residues mean nothing, letters may be small, and a '*' at the end is passed over. A letter that
 * the vocabulary lacks becomes X, or unknown, and is counted. Everything else is an error with its position.
 */
#ifndef TTN_MASKED_H
#define TTN_MASKED_H

#include <stdint.h>
#include "core/status.h"
#include "data/alphabet.h"
#include "data/source.h"

typedef struct {
    const char *name;     /* the first word of its header, as UTF-8 without control characters; where that has none
                             "FILE:LINE"; "": there is no header */
    const uint8_t *token; /* (n) the mask where something is hidden */
    int64_t n, n_mask;
    int64_t n_replaced;        /* letters that the vocabulary lacks */
    char replaced;             /* the first of them, a capital */
    int64_t replaced_position; /* where it stands, from 1 */
} ttn_masked;

typedef struct ttn_masked_reader ttn_masked_reader;

/* The source is taken over, also on failure. The alphabet outlives it and has a mask. *ret is the caller's. TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_masked_open(ttn_source *source, const ttn_alphabet *alphabet, ttn_masked_reader **ret,
                                        ttn_error *err);
void ttn_masked_close(ttn_masked_reader *r); /* NULL is fine */

/* *ret is borrowed until the next call. TTN_EOF behind the last one; TTN_EFORMAT with file, line, column and the position in
 * the sequence, counted from 1; TTN_EIO, TTN_ENOMEM. After a failure the same again. */
TTN_MUST_USE ttn_status ttn_masked_next(ttn_masked_reader *r, const ttn_masked **ret, ttn_error *err);

#endif
