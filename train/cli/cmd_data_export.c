/* titin data export STORE -o FASTA: the sequences of a store as FASTA. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "core/text.h"
#include "data/export.h"
#include "train/cli/command.h"
#include "train/cli/signals.h"

static ttn_status check_output(const ttn_cli_call *call, const char *store, const char *to, ttn_error *err)
{
    struct stat out, in;
    char shown[TTN_TAIL_ROOM];
    if (stat(to, &out) != 0) return TTN_OK; /* what is wrong with the path is said when it is made */
    ttn_text_tail(to, shown);
    if (stat(store, &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
        return TTN_FAIL(err, TTN_EINVAL, "%s: is to be read and written; give the export another name", shown);
    if (S_ISDIR(out.st_mode))
        return TTN_FAIL(err, TTN_EINVAL, "%s: is a folder; name a file in it: -o %s/NAME.fasta", shown, shown);
    if (!ttn_cli_given(call, "force"))
        return TTN_FAIL(err, TTN_EINVAL, "%s: is there already; give another name, or --force to replace it", shown);
    return TTN_OK;
}

static ttn_status write_out(void *out, const void *bytes, size_t n, ttn_error *err)
{
    if (ttn_signals_wants_stop()) return TTN_FAIL(err, TTN_ESTOPPED, "stopped; what was written is not all of it");
    if (fwrite(bytes, 1, n, out) == n) return TTN_OK;
    return TTN_FAIL(err, TTN_EIO, "standard output cannot be written to");
}

static ttn_status run(const ttn_cli_call *call, ttn_error *err)
{
    const char *path = call->argument[0], *to = ttn_cli_value(call, "output");
    ttn_store *s = NULL;
    if (!to)
        return TTN_FAIL(err, TTN_EINVAL,
                        "no file is named; titin data export STORE -o FASTA, or -o - for standard output");
    const int is_stdout = strcmp(to, "-") == 0;
    ttn_status status = is_stdout ? TTN_OK : check_output(call, path, to, err);
    if (status == TTN_OK) status = ttn_store_open(path, 1, &s, err); /* it goes from front to end, past the cache */
    ttn_signals_take_to_stop();                                      /* so that no temporary file stays */
    if (status == TTN_OK && is_stdout)
        status = ttn_export_fasta(s, write_out, call->out.out, err);
    else if (status == TTN_OK)
        status = ttn_export_fasta_file(s, to, ttn_signals_wants_stop, err);
    ttn_signals_give_back();
    ttn_store_close(s);
    return status;
}

static const ttn_cli_argument arguments[] = {
    {.name = "STORE", .least = 1, .most = 1, .word = TTN_WORD_FILE, .help = "what titin data pack made"},
    {0},
};

static const ttn_cli_option options[] = {
    {.name = "output",
     .letter = 'o',
     .value = "FASTA",
     .word = TTN_WORD_FILE,
     .help = "the file to be made; \"-\" is standard output"},
    {.name = "force", .letter = 'f', .help = "replace a file that is there already"},
    {0},
};

static const ttn_cli_example examples[] = {
    {"titin data export uniref50.h5 -o uniref50.fasta", "the sequences as they are trained on"},
    {"titin data export store.h5 -o - | gzip > clean.fa.gz", "compressed"},
    {0},
};

static const ttn_exit exits[] = {TTN_EXIT_DATA, TTN_EXIT_STOPPED, TTN_EXIT_OK};

const ttn_command ttn_cmd_data_export = {
    .name = "data export",
    .group = "data",
    .purpose = "write the sequences of a store as FASTA",
    .description =
        "Headers as they were, each sequence on one line in capital letters; residues that are not to have a loss are "
        "in lower case. Packing it again gives the same sequences. An id that is no longer the first word of its "
        "header "
        "(another one of its kind was there, or data.id_regex cut it out) stands before it.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .exits = exits,
    .run = run,
};
