/* The program. Everything that can fail is in the library; here a status becomes a message and an exit code.
 *
 * This file is compiled for any processor of its family, and asks before anything else whether this one will do.
 */
#include <errno.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include "core/blas.h"
#include "core/cpu.h"
#include "core/fp.h"
#include "core/real.h"
#include "core/titin.h"
#include "train/cli/reexec.h"

static int fail(ttn_status status, const ttn_error *err)
{
    fprintf(stderr, "titin: error: %s\n", err->text);
    return ttn_status_exit(status);
}

static void print_help(void)
{
    puts("titin trains protein language models on sequences as long as proteins get.\n"
         "\n"
         "usage: titin --version   version, build, and the BLAS that runs\n"
         "       titin --help\n"
         "\n"
         "exit codes:");
    int code;
    const char *help;
    for (int i = 0; ttn_exit_entry(i, &code, &help); i++)
        printf("  %2d  %s\n", code, help);
}

static int print_version(void)
{
    char needs[256];
    printf("titin %s\n", ttn_version());
    printf("built for %s (%s), %s\n", TTN_REAL_NAME, __VERSION__, ttn_cpu_names(ttn_cpu_built, needs, sizeof needs));
    ttn_blas_info blas;
    ttn_error err = {0};
    ttn_status status = ttn_blas_start(omp_get_max_threads(), &blas, &err);
    if (status != TTN_OK) return fail(status, &err);
    printf("%s\n%s flavour, %s kernel, self-check passed\n", blas.config, blas.flavour_name, blas.kernel);
    if (blas.warning[0]) printf("warning: %s\n", blas.warning);
    return TTN_EXIT_OK;
}

/* What was printed has arrived? A disk that is full, and a standard output that is closed, show only here. */
static int finish(int exit_code)
{
    ttn_error err = {0};
    int refused = fflush(stdout) != 0;
    int error = errno;
    if ((!refused && !ferror(stdout)) || exit_code != TTN_EXIT_OK) return exit_code;
    /* ferror alone: an earlier part was refused, and its errno is gone */
    ttn_status status = TTN_FAIL(&err, TTN_EIO, "the standard output takes no more: %s",
                                 refused ? strerror(error) : "an earlier part was refused");
    return fail(status, &err);
}

/* What the command line asks for. Arguments in messages pass through an error's text, which a terminal can be given. */
static int run(int argc, char **argv)
{
    ttn_error err = {0};
    if (argc < 2)
        return fail(TTN_FAIL(&err, TTN_EINVAL, "what is to be done? `titin --help` lists what there is"), &err);
    const char *command = argv[1];
    int is_version = strcmp(command, "--version") == 0;
    int is_help = strcmp(command, "--help") == 0 || strcmp(command, "-h") == 0;
    if (!is_version && !is_help)
        return fail(
            TTN_FAIL(&err, TTN_EINVAL, "`titin --help` lists what is known here, and this is not: '%s'", command),
            &err);
    if (argc > 2)
        return fail(
            TTN_FAIL(&err, TTN_EINVAL, "nothing is expected after %s, and this stands there: '%s'", command, argv[2]),
            &err);
    if (is_version) return print_version();
    print_help();
    return TTN_EXIT_OK;
}

int main(int argc, char **argv)
{
    ttn_error err = {0};
    ttn_status status = ttn_cpu_check(&err);
    if (status != TTN_OK) return fail(status, &err);
    ttn_reexec_for_blas(argv);
    ttn_fp_begin(); /* before the first parallel region: OpenMP's workers inherit it */
    return finish(run(argc, argv));
}
