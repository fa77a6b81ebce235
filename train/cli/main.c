/* The program. Everything that can fail is in the library; here a status becomes a message and an exit code.
 *
 * This file is compiled for any processor of its family, and asks before anything else whether this one will do.
 */
#include <fcntl.h>
#include <signal.h>
#include "core/cpu.h"
#include "core/fp.h"
#include "core/start.h"
#include "train/cli/program.h"
#include "train/cli/signals.h"

/* A stream that whoever started us has closed would be the first file that we open, and a message would go into it. In its
 * place: something that takes no bytes, so that a lost message is still an error. Numbers are given in rising order. */
static void fill_closed_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) < 0) return;
}

int main(int argc, char **argv)
{
    ttn_error err = {0};
    /* `titin … | head` ends us without a word, also where whoever started us ignores the signal, as some do by mistake. */
    signal(SIGPIPE, SIG_DFL);
    /* A limit on file sizes (ulimit -f) is a write that fails, with a sentence, and not the end of us. */
    signal(SIGXFSZ, SIG_IGN);
    fill_closed_streams();
    ttn_status status = ttn_cpu_check(&err);
    if (status != TTN_OK) return ttn_program_fail(status, &err);
    int reexec = ttn_reexec(argv);
    ttn_signals_begin();
    ttn_fp_begin(); /* before the first parallel region: OpenMP's workers inherit it */
    return ttn_program_run(argc, argv, reexec);
}
