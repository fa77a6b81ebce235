/* Where bytes come from: a file, standard input, memory, or what unpacks another source. Readers see one function.
 *
 *     ttn_source *s;
 *     ttn_status status = ttn_source_open("uniref.fa.gz", NULL, &s, err);
 *     while (status == TTN_OK && (status = s->read(s, bytes, sizeof bytes, &n, err)) == TTN_OK && n > 0) …
 *     ttn_source_close(s);
 *
 * What is compressed by gzip is unpacked, by its first bytes and whatever its name; see source_gzip.c for what is checked.
 */
#ifndef TTN_SOURCE_H
#define TTN_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include "core/status.h"

/* What a source tells of itself; complete when it has been read to its end. */
typedef struct {
    char *link;           /* the path is a symbolic link, which leads to this file; NULL: it is none */
    int64_t bytes;        /* bytes read from the file, memory or stream */
    int is_gzip, is_bgzf; /* it is compressed; in blocks, as bgzip makes it */
    int64_t members;      /* gzip: parts that were unpacked and verified */
    int64_t unpacked;     /* gzip: bytes in them */
    int64_t zeros;        /* gzip: zero bytes behind the last of them */
} ttn_source_facts;

typedef struct ttn_source ttn_source;

struct ttn_source {
    const char *name; /* as messages show it: a path, "standard input" */

    /* Up to `room` bytes (at least 1): *ret_n of them are there, 0 at the end and only there; fewer than room means
     * nothing. At the end a file is asked whether it is still the one that was opened. TTN_EIO: the system refused, or
     * the file changed; TTN_EFORMAT: what is compressed is damaged; TTN_ENOMEM. After a failure: the same again. */
    ttn_status (*read)(ttn_source *s, void *bytes, size_t room, size_t *ret_n, ttn_error *err);

    void (*close)(ttn_source *s);
    ttn_source_facts facts;

    /* The last read began with a '>' that is the first byte of a gzip member, and the member before it did not end its
     * line: two files were joined, of which the first lacked its last line end. */
    int is_fused;
    int failed_rule; /* of data/fasta.h: what the failure is counted under; 0: none */
};

typedef struct {
    int allow_no_bgzf_eof; /* a BGZF file may lack the empty block that marks its end */
} ttn_source_rules;

/* The file at `path`, "-" for standard input; pipes are read once, from front to end. rules: NULL: zeros. *ret is the
 * caller's, NULL after a failure. TTN_EINVAL: it is a folder, or it is not there; TTN_EIO: the system refuses;
 * TTN_ENOMEM; and what the first read may say. */
TTN_MUST_USE ttn_status ttn_source_open(const char *path, const ttn_source_rules *rules, ttn_source **ret,
                                        ttn_error *err);

/* The same from n bytes of memory, which are borrowed until it is closed (the name is copied). Every read gives at most
 * `most` bytes (0: no limit), as a slow pipe would. */
TTN_MUST_USE ttn_status ttn_source_open_memory(const char *name, const void *bytes, size_t n, size_t most,
                                               const ttn_source_rules *rules, ttn_source **ret, ttn_error *err);

/* What s gives, unpacked where it begins as gzip does. s is taken over, and closed on failure, too. */
TTN_MUST_USE ttn_status ttn_source_unpack(ttn_source *s, const ttn_source_rules *rules, ttn_source **ret,
                                          ttn_error *err);

void ttn_source_close(ttn_source *s); /* NULL is fine */

#endif
