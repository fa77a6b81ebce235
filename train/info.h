/* What is this file? A table to which every module that has a format of its own adds a kind: `titin info FILE`. */
#ifndef TTN_INFO_H
#define TTN_INFO_H

#include <stddef.h>
#include <stdint.h>
#include "core/status.h"
#include "train/facts.h"

enum { TTN_INFO_HEAD = 4096 };

/* A file or a folder, looked at from outside. */
typedef struct {
    const char *path;
    int is_folder;
    int64_t bytes;             /* of a file */
    const unsigned char *head; /* its first bytes, at most TTN_INFO_HEAD; of a folder none */
    size_t n_head;
} ttn_info_subject;

typedef struct {
    const char *name; /* "safetensors": the fact "kind", so it stays as it is */
    const char *what; /* "a safetensors file": what it is, for people */

    /* Is it of this kind? From name and head alone, or of a folder by asking whether a file lies in it; a damaged one
     * should still be recognised, so that describe can say what is wrong with it. */
    int (*recognise)(const ttn_info_subject *s);

    /* Add the facts (kind, path and size are there). verify: read all of it and check what can be checked; then, too,
     * what is found goes into the facts ("verified"), and damage into the status. What was added before a failure is
     * shown. */
    ttn_status (*describe)(const ttn_info_subject *s, int verify, ttn_facts *f, ttn_error *err);
} ttn_info_kind;

/* The table (train/info.c), most particular first, NULL at its end: the first that recognises a subject has it. */
extern const ttn_info_kind *const ttn_info_kinds[];

/* Facts about the file or folder at `path`. TTN_EINVAL: there is none, or it is a device, a pipe or the like; TTN_EIO:
 * it cannot be read; TTN_ECHECKPOINT: it is of no kind titin knows (the facts then hold what it looks like, and the
 * sentence what to do); and whatever its kind finds. */
TTN_MUST_USE ttn_status ttn_info_describe(const char *path, int verify, ttn_facts *f, ttn_error *err);

/* The same with another table. */
TTN_MUST_USE ttn_status ttn_info_describe_by(const ttn_info_kind *const *kinds, const char *path, int verify,
                                             ttn_facts *f, ttn_error *err);

#endif
