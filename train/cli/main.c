/* The program. Everything that can fail is in the library; here a status becomes a message and an exit code.
 *
 * This file is compiled for any processor of its family, and asks before anything else whether this one will do.
 */
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

int main(int argc, char **argv)
{
    ttn_error err = {0};
    ttn_status status = ttn_cpu_check(&err);
    if (status != TTN_OK) return fail(status, &err);
    ttn_reexec_for_blas(argv);
    ttn_fp_begin(); /* before the first parallel region: OpenMP's workers inherit it */

    if (argc == 2 && strcmp(argv[1], "--version") == 0) return print_version();
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        print_help();
        return TTN_EXIT_OK;
    }
    if (argc < 2)
        fprintf(stderr, "titin: error: what is to be done? `titin --help` lists what there is\n");
    else
        fprintf(stderr, "titin: error: '%s' is not known here; `titin --help` lists what is\n", argv[1]);
    return TTN_EXIT_USAGE;
}
