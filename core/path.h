/* Paths as people write them, where no shell has read them: in a file of YAML, in the environment, behind a '='. */
#ifndef TTN_PATH_H
#define TTN_PATH_H

#include <limits.h>
#include "core/status.h"

/* ~, ~/x and ~user/x begin with a home folder ($HOME; else what the system's list of users says). $NAME and ${NAME} at the start
 * of a path or behind a '/' are variables of the environment: $HOME/x, /scratch/$USER/x. Anything else stays as it is; a file
 * called ~x is ./~x. ret has PATH_MAX bytes. TTN_EINVAL, with the path: there is no such user or variable, or it is too long. */
TTN_MUST_USE ttn_status ttn_path_expand(const char *path, char *ret, ttn_error *err);

#endif
