/* Any configuration and any file of weights, as `titin fill FILE --config CONFIG` takes them: refused with a sentence and in
 * memory that the file bounds, or a model that fills in a sequence with probabilities, or says that its numbers are none.
 *
 * Input: bytes of the configuration (2), the configuration, and the file of weights. */
#include <math.h>
#include "core/start.h"
#include "tests/fuzz/fuzz.h"
#include "train/fill.h"

enum { MOST_PARAMETERS = 100000, MEMORY = 64 << 20, TOP = 3 };

static ttn_config_table *table;
static ttn_device *device;

/* libFuzzer's, before the first input. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    ttn_error err = {0};
    (void)argc;
    ttn_reexec(*argv);
    check(ttn_start(1, &err) == TTN_OK);
    check(ttn_device_cpu(&device, &err) == TTN_OK);
    check(ttn_config_table_of_titin(&table, &err) == TTN_OK);
    return 0;
}

static void check_answer(const ttn_filler *f, const ttn_masked *s)
{
    for (int64_t k = 0; k < s->n_mask; k++) {
        ttn_guess guess[TOP];
        int64_t position;
        const int n = ttn_filler_guesses(f, k, TOP, guess, &position);
        check(n > 0 && n <= TOP && position >= 1 && position <= s->n);
        for (int i = 0; i < n; i++)
            check(guess[i].p >= 0 && guess[i].p <= 1);
    }
}

static void try_model(const ttn_loaded *m)
{
    static const char text[] = "MKT_YIAK";
    const ttn_filler_options options = {.model = m, .device = device, .memory = MEMORY, .n_thread = 1};
    ttn_filler *f = NULL;
    ttn_source *source;
    ttn_masked_reader *reader = NULL;
    const ttn_masked *s;
    ttn_error err = {0};
    ttn_status status = ttn_filler_create(&options, &f, &err);
    if (status == TTN_OK) {
        check(ttn_source_open_memory("it", text, sizeof text - 1, 0, NULL, &source, &err) == TTN_OK);
        check(ttn_masked_open(source, m->alphabet, &reader, &err) == TTN_OK);
        check(ttn_masked_next(reader, &s, &err) == TTN_OK);
        status = ttn_filler_run(f, s, &err);
    }
    if (status == TTN_OK) check_answer(f, s);
    check((status == TTN_OK) == (err.text[0] == 0));
    check(status == TTN_OK || status == TTN_EINVAL || status == TTN_ENUMERIC || status == TTN_ENOMEM);
    ttn_masked_close(reader);
    ttn_filler_destroy(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size};
    char config[FUZZ_PATH], weights[FUZZ_PATH];
    size_t n;
    const uint8_t *text = fuzz_bytes(&in, fuzz_number(&in, 2), &n);
    fuzz_write("it.yaml", text, n);
    fuzz_write("it.safetensors", in.at, in.n);
    const ttn_loaded_options options = {.table = table, .device = device, .config = fuzz_path("it.yaml", config)};
    ttn_loaded *m;
    ttn_error err = {0};
    const ttn_status status = ttn_loaded_open(fuzz_path("it.safetensors", weights), &options, &m, &err);
    check((status == TTN_OK) == (m != NULL) && (status == TTN_OK) == (err.text[0] == 0));
    check(status == TTN_OK || status == TTN_EINVAL || status == TTN_ECHECKPOINT || status == TTN_ENUMERIC);
    if (m && m->parameters < MOST_PARAMETERS) try_model(m);
    ttn_loaded_close(m);
    return 0;
}
