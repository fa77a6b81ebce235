/* Checks of ops in children: an op that reads what it did not declare, or where the host cannot, crashes.
 *
 * The checks of one op run together in a child process, which notes its results in shared memory; the check during which it
 * died is the one that failed, and the rest go on in another child. The parent runs no parallel region: the threads of
 * libgomp do not survive a fork.
 */
#ifndef TTN_OP_CHECKS_H
#define TTN_OP_CHECKS_H

#include "autograd/gradcheck.h"

typedef struct op_check op_check;
typedef ttn_status (*op_check_run)(const op_check *c, double *ret_worst, ttn_error *err);

struct op_check {
    char name[160];
    const ttn_op *op;
    int k;                        /* the case; -1: the op as a whole */
    op_check_run run;             /* *ret_worst: a difference to be reported, or 0 */
    const ttn_property *property; /* for run, may be NULL */
};

/* One more; all of an op follow one another. `what` ends its name. */
void op_check_add(const ttn_op *op, int k, const char *what, op_check_run run, const ttn_property *property);

/* All of them, as tests of `file` (cmocka's answer). begin: called first in every child. *ret_worst: the largest difference
 * reported. */
int op_checks_run(const char *file, ttn_status (*begin)(ttn_error *err), double *ret_worst);

#endif
