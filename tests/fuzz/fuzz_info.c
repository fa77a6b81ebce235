/* Any bytes as a file for `titin info --verify`, whose name is one of those that it knows kinds by: facts, or a refusal with a
 * sentence, which the program could print as they are. */
#include <string.h>
#include "core/text.h"
#include "tests/fuzz/fuzz.h"
#include "train/info.h"

static const char *const names[] = {"it",      "it.yaml", "it.safetensors", "it.index.json",
                                    "it.json", "it.h5",   "it.fa",          "it.gz"};
enum { N_NAME = sizeof names / sizeof *names };

static void check_text(const char *text)
{
    const size_t n = strlen(text);
    for (size_t i = 0; i < n;) {
        const int length = ttn_text_character(text + i, n - i, NULL);
        check(length > 0 && (unsigned char)text[i] >= ' ');
        i += (size_t)length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    const char *name = names[data[0] % N_NAME];
    char path[FUZZ_PATH];
    ttn_facts *f;
    ttn_error err = {0}, why = {0};
    fuzz_write(name, data + 1, size - 1);
    check(ttn_facts_create(&f, &why) == TTN_OK);
    const ttn_status status = ttn_info_describe(fuzz_path(name, path), 1, f, &err);
    check((status == TTN_OK) == (err.text[0] == 0));
    check(status != TTN_EINTERNAL && status != TTN_ENOMEM && status != TTN_EIO);
    check_text(err.text);
    check(ttn_facts_status(f, &why) == TTN_OK);
    const ttn_fact *fact = ttn_facts_at(f);
    for (int64_t i = 0; i < ttn_facts_count(f); i++) {
        if (fact[i].text) check_text(fact[i].text);
        if (fact[i].key) check_text(fact[i].key);
    }
    for (int64_t i = 0; i < ttn_facts_warning_count(f); i++)
        check_text(ttn_facts_warning(f, i));
    ttn_facts_destroy(f);
    return 0;
}
