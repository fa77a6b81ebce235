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

/* A handler, and not SIG_IGN: programs that are started from here would inherit that. */
static void note_nothing(int number)
{
    (void)number;
}

void ttn_signals_begin(void)
{
    static const int numbers[] = {SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction before;
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            handle(numbers[i], note_nothing, SA_RESTART);
    }
}

int ttn_signals_entry(int i, const char **name, const char **help)
{
    static const char *const entries[][2] = {
        {"SIGINT, SIGTERM", "train saves, and ends with exit code 75; the others end"},
        {"SIGUSR1",
         "train saves, and ends with exit code 75; data check, data pack and data export end; the others go on"},
        {"SIGUSR2", "train saves, and goes on; the others go on"},
        {"SIGHUP", "train goes on; the others end"},
    };
    if (i >= (int)(sizeof entries / sizeof *entries)) return 0;
    *name = entries[i][0];
    *help = entries[i][1];
    return 1;
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

/* What asks a command to stop that has nothing to save, and how it was answered before. */
static const int stopping[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
enum { N_STOPPING = sizeof stopping / sizeof *stopping };
static struct sigaction before[N_STOPPING];

void ttn_signals_take_to_stop(void)
{
    for (int i = 0; i < N_STOPPING; i++) {
        const int number = stopping[i];
        if (sigaction(number, NULL, &before[i]) != 0 || before[i].sa_handler == SIG_IGN) continue;
        if (number == SIGUSR2)
            handle(number, SIG_IGN, 0);
        else /* a person who asks twice does not wait for a pipe that gives nothing */
            handle(number, note_stop, SA_RESTART | (number == SIGINT || number == SIGTERM ? (int)SA_RESETHAND : 0));
    }
}

void ttn_signals_give_back(void)
{
    for (int i = 0; i < N_STOPPING; i++)
        (void)sigaction(stopping[i], &before[i], NULL);
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
