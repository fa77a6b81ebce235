/* The sequence files that a command line names: its arguments but the settings, and with --recursive, for a folder, the files
 * in it.
 */
#ifndef TTN_INPUTS_H
#define TTN_INPUTS_H

#include "data/files.h"
#include "train/cli/command.h"
#include "train/facts.h"

/* The row of a command that takes folders. */
#define TTN_RECURSIVE_OPTION                                                                          \
    {                                                                                                 \
        .name = "recursive", .letter = 'r',                                                           \
        .help = "read folders, and the folders in them: what ends as FASTA does (.fa, .fasta, .faa, " \
                ".fas, .fsa, .mpfa, .pep, .a2m, .a3m; packed too), in the order of names"             \
    }

/* By ttn_files_add. *ret is the caller's, also after a failure (ttn_files_drop). TTN_EINVAL also where no file is named. */
TTN_MUST_USE ttn_status ttn_inputs_find(const ttn_cli_call *call, ttn_files *ret, ttn_error *err);

/* A warning, where something was passed over. */
void ttn_inputs_tell(const ttn_files *in, ttn_facts *f);

#endif
