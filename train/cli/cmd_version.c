/* titin version: what was built, how, and which libraries run. */
#include <omp.h>
#include "core/blas.h"
#include "core/cpu.h"
#include "core/real.h"
#include "core/start.h"
#include "core/titin.h"
#include "train/cli/build.h"
#include "train/cli/command.h"
#include "train/cli/libraries.h"
#include "train/cli/show.h"

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

static void add_libraries(ttn_facts *f)
{
    ttn_facts_open_list(f, "libraries");
    for (const ttn_library *l = ttn_libraries; l->name; l++) {
        char room[TTN_LIBRARY_VERSION];
        ttn_facts_open(f, NULL);
        ttn_facts_text(f, "name", "%s", l->name);
        ttn_facts_text(f, "version", "%s", l->version(room));
        ttn_facts_text(f, "for", "%s", l->use);
        if (l->file)
            ttn_facts_text(f, "file", "%s", l->file);
        else
            ttn_facts_text(f, "file", "compiled in");
        ttn_facts_close(f);
    }
    ttn_facts_close(f);
}

static ttn_status gather(ttn_facts *f, ttn_error *err)
{
    char needs[400];
    ttn_blas_info blas;
    ttn_facts_text(f, "precision", "%s", TTN_REAL_NAME);
    ttn_facts_text(f, "compiler", "%s", COMPILER);
    ttn_facts_text(f, "flags", "%s", ttn_build_flags);
    ttn_facts_text(f, "processor_needs", "%s", ttn_cpu_names(ttn_cpu_built, needs, sizeof needs));
    ttn_facts_flag(f, "cuda", ttn_build_has_cuda);
    add_libraries(f);
    ttn_status status = ttn_blas_start(ttn_start_threads(omp_get_max_threads()), &blas, err);
    if (status != TTN_OK) return status;
    ttn_facts_text(f, "blas", "%s flavour, %s kernel, self-check passed", blas.flavour_name, blas.kernel);
    if (blas.warning[0]) ttn_facts_warn(f, "%s", blas.warning);
    return TTN_OK;
}

static ttn_status run(const ttn_cli_call *call, ttn_error *err)
{
    int is_json = ttn_cli_given(call, "json");
    ttn_facts *f;
    ttn_status status = ttn_facts_create(&f, err);
    if (status != TTN_OK) return status;
    if (is_json) ttn_facts_text(f, "version", "%s", ttn_version());
    ttn_status found = gather(f, err);
    status = ttn_facts_status(f, err);
    if (status == TTN_OK && is_json) status = ttn_show_json(call->out.out, f, err);
    if (status == TTN_OK && !is_json) {
        fprintf(call->out.out, "titin %s\n", ttn_version());
        ttn_show_text(&call->out, f);
    }
    ttn_facts_destroy(f);
    return status != TTN_OK ? status : found;
}

static const ttn_cli_option options[] = {
    {.name = "json", .help = "the same as JSON"},
    {0},
};

static const ttn_cli_example examples[] = {
    {"titin --version", "the same, as other programs have it"},
    {"titin version --json", "for programs and bug reports"},
    {0},
};

const ttn_command ttn_cmd_version = {
    .name = "version",
    .group = "help",
    .purpose = "version, build flags, and the libraries that run",
    .options = options,
    .examples = examples,
    .run = run,
};
