/* One process at a time: a lock that outlives no crash.
 *
 * A lock is a small file. Whoever holds it has it locked (flock) and says in it, in one line, who that is:
 *
 *     pid 4711 start 8472911 boot 3c1e…-… host node7 since 2147483648 alive 2147484000 (2038-01-19T03:14:08Z)
 *
 * flock ends with the process, so on one machine a holder that was killed leaves a line and no lock, and the next one
 * takes it. Where flock does not reach (some network file systems keep it to one machine, some have none) the line
 * decides:
 *   - written under the same start of the same kernel: held while a process of that number and start time lives (a number
 *     is used again by other processes, a number with its start time is not);
 *   - by the same host under another start of it: left by a machine that went down;
 *   - by another host: held until it has given no sign of life (ttn_lock_alive) for TTN_LOCK_SILENCE seconds, by the
 *     clocks of both; with a clock that is ahead that may be never, and the message says so.
 * On a file system without any flock two processes that start within the same millisecond could both take it.
 *
 * Something else of that name, a link, also a hard one, is refused and left as it is.
 * The file stays, empty, when the lock is given back: removing it would let two processes lock two files of one name.
 */
#ifndef TTN_LOCK_H
#define TTN_LOCK_H

#include "core/clock.h"
#include "core/log.h"
#include "core/status.h"

typedef struct ttn_lock ttn_lock;

enum { TTN_LOCK_SILENCE = 600, TTN_LOCK_SIGN = 60 };

/* Take the lock that is the file `path`, which is made when it is not there; what is said of a stale one goes to log.
 * *ret is the caller's, and of the process that took it: a forked child does not hold it. clock NULL: the system's.
 * TTN_EINVAL when somebody else holds it: the message says who, where, since when, and what to do. TTN_EIO when the file
 * cannot be written, TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_lock_take(const char *path, const ttn_clock *clock, const ttn_log *log, ttn_lock **ret,
                                      ttn_error *err);

/* A sign of life for other hosts. Call it as often as you like: it writes once in TTN_LOCK_SIGN seconds. TTN_EIO: it
 * could not be written; TTN_EINVAL: the file is not the one that was locked any more (somebody removed it), so that
 * another process may hold a lock of this name. */
TTN_MUST_USE ttn_status ttn_lock_alive(ttn_lock *l, ttn_error *err);

/* Give it back. NULL is fine. */
void ttn_lock_release(ttn_lock *l);

#endif
