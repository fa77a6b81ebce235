/* The sequences of a store as FASTA: what is packed again from it is the same. */
#ifndef TTN_EXPORT_H
#define TTN_EXPORT_H

#include "data/store.h"

/* Where it goes: n bytes, all of them or a failure. */
typedef ttn_status (*ttn_export_write)(void *ctx, const void *bytes, size_t n, ttn_error *err);

/* '>' and the header, then the residues on one line: capital letters, those without a loss in lower case, X for what has no
 * letter. Where the id is not the first word of the header, it stands before it. TTN_EFORMAT: an id or a header holds a line
 * end or another control character, which titin packs none of: the FASTA would have other records. What the store and
 * `write` may say. */
TTN_MUST_USE ttn_status ttn_export_fasta(ttn_store *s, ttn_export_write write, void *ctx, ttn_error *err);

/* To a file that appears whole (core/atomic.h). stops is asked after every MiB: anything but 0 ends it with TTN_ESTOPPED;
 * NULL: nobody asks. */
TTN_MUST_USE ttn_status ttn_export_fasta_file(ttn_store *s, const char *path, int (*stops)(void), ttn_error *err);

#endif
