/* What signals ask a long run for. Handlers set a flag and do nothing else; who runs asks for it between two steps.
 *
 *     SIGINT, SIGTERM, SIGUSR1   save and stop; a second SIGINT ends the process at once
 *     SIGUSR2                    save and go on
 *     SIGHUP, SIGPIPE            nothing: a closed terminal or pager does not end a run
 */
#ifndef TTN_SIGNALS_H
#define TTN_SIGNALS_H

#include "train/training.h"

/* From now on, for this process. */
void ttn_signals_take(void);

/* What was asked for since the last call; a wish to stop stays. */
ttn_wish ttn_signals_wish(void);

/* Whether a wish to stop is among it, for who cannot fulfil another one: that is left for ttn_signals_wish. */
int ttn_signals_wants_stop(void);

#endif
