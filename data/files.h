/* Files of sequences by the names that people give: files, patterns (*.fa), folders. */
#ifndef TTN_FILES_H
#define TTN_FILES_H

#include "core/memory.h"
#include "core/status.h"

/* Start with {0}; ttn_files_drop frees it. */
typedef struct {
    const char **file; /* (n); "-" is standard input */
    int n, room;
    int passed_over; /* entries of folders whose names do not end as FASTA, and links to folders; not those that begin with a dot */
    const char *first_passed_over;
    ttn_arena *texts;
} ttn_files;

/* Add what a name stands for. What is there under that name is that file, whatever letters are in it; else a name with '*', '?'
 * or '[' stands for all that match it, in the order of bytes. A folder stands for what ends as FASTA does in it and the folders
 * in it, where reads_folders is set; else it is added as it is, and so is a folder that cannot be read: reading it says what to
 * do. A name that is not there is added too. The text of `name` is borrowed. TTN_EINVAL: nothing matches, or there is no FASTA
 * in a folder; TTN_EIO: the disk fails; TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_files_add(ttn_files *f, const char *name, int reads_folders, ttn_error *err);
void ttn_files_drop(ttn_files *f);

/* Are these two names of one file? A file that is not there is none. */
int ttn_files_are_same(const char *a, const char *b);

#endif
