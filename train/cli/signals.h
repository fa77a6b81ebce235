/* What signals ask a long run for. Handlers set a flag and do nothing else; who runs asks for it between two steps.
 *
 *     SIGINT, SIGTERM, SIGUSR1   save and stop; a second SIGINT ends the process at once
 *     SIGUSR2                    save and go on
 *     SIGHUP, SIGPIPE            nothing: a closed terminal or pager does not end a run
 *
 * A command that has nothing to save, and must not leave half a file (ttn_signals_take_to_stop):
 *
 *     SIGINT, SIGTERM, SIGUSR1, SIGHUP   clean up and stop; a second SIGINT or SIGTERM ends the process at once
 *     SIGUSR2                            nothing: there is nothing to save
 */
#ifndef TTN_SIGNALS_H
#define TTN_SIGNALS_H

#include "train/training.h"

/* First of all, for every command: SIGUSR1 and SIGUSR2, by which schedulers tell that a job's time is nearly over, end nothing
 * that has nothing to save. What was ignored before stays ignored. Commands that take signals do so afterwards. */
void ttn_signals_begin(void);

/* What signals do, for help texts: entry i, or 0 after the last. */
int ttn_signals_entry(int i, const char **name, const char **help);

/* From now on, for this process. */
void ttn_signals_take(void);

/* The same for a command that ends when it is asked to stop, until ttn_signals_give_back. What was ignored before (nohup
 * does that with SIGHUP) is ignored still. */
void ttn_signals_take_to_stop(void);
void ttn_signals_give_back(void);

/* What was asked for since the last call; a wish to stop stays. */
ttn_wish ttn_signals_wish(void);

/* Whether a wish to stop is among it, for who cannot fulfil another one: that is left for ttn_signals_wish. */
int ttn_signals_wants_stop(void);

#endif
