/* The sequence files that a command line names: its arguments but the settings, and with --recursive, for a folder, the files
 * in it.
 */
#ifndef TTN_INPUTS_H
#define TTN_INPUTS_H

#include "core/memory.h"
#include "train/cli/command.h"
#include "train/facts.h"

/* The row of a command that takes folders. */
#define TTN_RECURSIVE_OPTION                                                                          \
    {                                                                                                 \
        .name = "recursive", .letter = 'r',                                                           \
        .help = "read folders, and the folders in them: what ends as FASTA does (.fa, .fasta, .faa, " \
                ".fas, .fsa, .mpfa, .pep, .a2m, .a3m; packed too), in the order of names"             \
    }

/* Start with {0}. */
typedef struct {
    const char **file; /* (n); "-" is standard input */
    int n, room;
    int passed_over; /* entries of folders that do not end so, and links to folders; not those that begin with a dot */
    const char *first_passed_over;
    ttn_arena *texts;
} ttn_inputs;

/* A folder without --recursive stays among them, and so does one that cannot be read: reading it says what to do. *ret is the caller's, also after a failure.
 * TTN_EINVAL: there is none, or none in a folder; TTN_EIO: the disk fails; TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_inputs_find(const ttn_cli_call *call, ttn_inputs *ret, ttn_error *err);
void ttn_inputs_drop(ttn_inputs *in);

/* A warning, where something was passed over. */
void ttn_inputs_tell(const ttn_inputs *in, ttn_facts *f);

#endif
