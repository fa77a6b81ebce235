/* The program behind main: from its words to an exit code. */
#ifndef TTN_PROGRAM_H
#define TTN_PROGRAM_H

#include "core/status.h"

/* A failure becomes a sentence on stderr. Returns the exit code. */
int ttn_program_fail(ttn_status status, const ttn_error *err);

/* reexec: what ttn_reexec returned. */
int ttn_program_run(int argc, char **argv, int reexec);

#endif
