/* Any bytes as the run.json of a run whose model is evaluated, and which goes on: the training set that it names is found, or
 * why not is told; one start is written behind those that it has, or a new list is begun, which the log is told; and what was
 * written names the training set, and keeps its starts when it is written again. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "data/pack.h"
#include "tests/fuzz/fuzz.h"
#include "train/files/json.h"
#include "train/run_json.h"
#include "train/trained_on.h"

/* Made once. */
static ttn_config_table *table;
static ttn_config *config;
static ttn_dataset *dataset;

static int n_warning;

static void hear(void *ctx, ttn_log_level level, const char *text)
{
    (void)ctx;
    check(level == TTN_LOG_WARNING && text[0]);
    n_warning++;
}

/* Data that a run could have: it stands in the file. */
static void make_dataset(void)
{
    static const char fasta[] = ">a\nMKTAYIAKQRQISFVKSHFSRQ\n>b\nMSDNGPQNQRNAPRITF\n";
    char file[FUZZ_PATH], store[FUZZ_PATH];
    const char *const files[] = {fuzz_path("it.fa", file)};
    const char *const arguments[] = {"data.split=sequence"};
    const ttn_config_request request = {.argument = arguments, .n_argument = 1};
    const ttn_pack_rules rules = {.fasta = {.alphabet = ttn_alphabet_find("esm")}, .titin_version = "0"};
    ttn_pack_facts facts;
    ttn_error err = {0};
    fuzz_write("it.fa", fasta, sizeof fasta - 1);
    check(ttn_pack(files, 1, fuzz_path("it.h5", store), &rules, NULL, NULL, &facts, &err) == TTN_OK);
    check(ttn_config_table_of_titin(&table, &err) == TTN_OK);
    check(ttn_config_load(table, &request, &config, &err) == TTN_OK);
    check(ttn_dataset_open_store(store, ttn_config_values(config), &dataset, &err) == TTN_OK);
}

/* How many starts the file has. */
static size_t starts_of(const char *path)
{
    ttn_json *j;
    const json_t *starts;
    ttn_error err = {0};
    check(ttn_json_read(path, NULL, &j, &err) == TTN_OK);
    check(ttn_json_array(j, ttn_json_root(j), "starts", &starts, &err) == TTN_OK);
    const size_t n = json_array_size(starts);
    ttn_json_close(j);
    return n;
}

static size_t add_start(const char *run, const char *path)
{
    static const char *const command[] = {"titin", "train"};
    const ttn_log log = {.say = hear};
    const ttn_dataset_overlap overlap = {0};
    const ttn_run_start_facts start = {
        .config = "",
        .data = dataset,
        .overlap = &overlap,
        .command = command,
        .n_command = 2,
        .titin = "0",
        .build = "",
        .real = "f32",
        .device = "cpu",
        .blas = "",
        .threads = 1,
    };
    ttn_error err = {0};
    n_warning = 0;
    check(ttn_run_json_write(run, &start, &log, &err) == TTN_OK);
    return starts_of(path);
}

/* Is the training set known? It is asked with the training set itself. */
static int finds_training_set(const char *run)
{
    char model[FUZZ_PATH + 32];
    const ttn_sequences *all = ttn_dataset_sequences(dataset);
    const ttn_store_facts *store = ttn_dataset_facts(dataset);
    const ttn_eval_data_facts asked = {.from = all, .sequences = all->n, .longest = store->longest};
    ttn_trained_on found;
    ttn_error err = {0};
    snprintf(model, sizeof model, "%s/ckpt/step-00000001", run);
    check(ttn_trained_on_count(model, table, &asked, &found, &err) == TTN_OK);
    check(found.is_known ? found.equal >= 0 && found.equal <= all->n : found.why[0] != 0);
    return found.is_known;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int has_config;
    char run[FUZZ_PATH], path[FUZZ_PATH];
    ttn_error err = {0};
    if (!dataset) make_dataset();
    (void)mkdir(fuzz_path("run", run), 0700);
    if (!has_config) check(ttn_config_save(config, fuzz_path("run/config.resolved.yaml", path), &err) == TTN_OK);
    has_config = 1;
    fuzz_path("run/run.json", path);
    fuzz_write("run/run.json", data, size);
    (void)finds_training_set(run);
    const size_t first = add_start(run, path);
    check(first >= 1 && (n_warning == 0 || first == 1));
    check(finds_training_set(run));
    check(add_start(run, path) == first + 1 && n_warning == 0);
    return 0;
}
