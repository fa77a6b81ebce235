#include <signal.h>
#include <stddef.h>
#include "train/cli/signals.h"

static volatile sig_atomic_t wants_stop, wants_save;

static void note_stop(int number)
{
    (void)number;
    wants_stop = 1;
}

static void note_save(int number)
{
    (void)number;
    wants_save = 1;
}

static void handle(int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_flags = flags};
    action.sa_handler = handler;
    sigemptyset(&action.sa_mask);
    (void)sigaction(number, &action, NULL); /* fails for numbers that are no signal alone */
}

void ttn_signals_take(void)
{
    /* The first SIGINT gives the second one its own meaning back. */
    handle(SIGINT, note_stop, SA_RESTART | (int)SA_RESETHAND);
    handle(SIGTERM, note_stop, SA_RESTART);
    handle(SIGUSR1, note_stop, SA_RESTART);
    handle(SIGUSR2, note_save, SA_RESTART);
    handle(SIGHUP, SIG_IGN, 0);
    handle(SIGPIPE, SIG_IGN, 0);
}

int ttn_signals_wants_stop(void)
{
    return wants_stop;
}

ttn_wish ttn_signals_wish(void)
{
    if (wants_stop) return TTN_WISH_STOP;
    if (!wants_save) return TTN_WISH_NONE;
    wants_save = 0;
    return TTN_WISH_SAVE;
}
