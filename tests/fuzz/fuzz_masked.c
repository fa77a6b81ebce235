/* Any bytes as the text that `titin fill` takes, at once and in pieces: a sequence has tokens of the alphabet, as many masks
 * as it says and a name without blanks; a refusal has a place; and how the bytes come makes no difference. */
#include <string.h>
#include "core/hash.h"
#include "tests/fuzz/fuzz.h"
#include "train/masked.h"

typedef struct {
    ttn_status status;
    int64_t line, column, sequences;
    uint64_t hash;
} outcome;

static void check_sequence(const ttn_masked *s, const ttn_alphabet *a)
{
    int64_t n_mask = 0;
    check(s->n >= 0 && s->n_mask >= 0);
    for (int64_t i = 0; i < s->n; i++) {
        check(s->token[i] < a->n);
        n_mask += s->token[i] == a->mask;
    }
    check(n_mask == s->n_mask);
    check(strpbrk(s->name, " \t\r\n") == NULL);
}

static outcome read_all(const uint8_t *data, size_t size, size_t most, const ttn_alphabet *a)
{
    ttn_source *source;
    ttn_masked_reader *r = NULL;
    const ttn_masked *s;
    ttn_error err = {0};
    outcome o = {.status = ttn_source_open_memory("it", data, size, most, NULL, &source, &err)};
    if (o.status == TTN_OK) o.status = ttn_masked_open(source, a, &r, &err);
    while (o.status == TTN_OK) {
        o.status = ttn_masked_next(r, &s, &err);
        if (o.status != TTN_OK) break;
        check_sequence(s, a);
        o.sequences++;
        o.hash = ttn_hash64(s->token, (size_t)s->n, o.hash);
        o.hash = ttn_hash64(s->name, strlen(s->name), o.hash);
    }
    check(o.status == TTN_EOF || (o.status == TTN_EFORMAT && err.text[0]));
    if (o.status != TTN_EOF) {
        ttn_error again = {0};
        check(!r || (ttn_masked_next(r, &s, &again) == o.status && strcmp(again.text, err.text) == 0));
    }
    o.line = err.line;
    o.column = err.column;
    ttn_masked_close(r);
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    const ttn_alphabet *a = ttn_alphabet_find(data[0] & 1 ? "amplify" : "esm");
    const outcome whole = read_all(data + 1, size - 1, 0, a), parts = read_all(data + 1, size - 1, 3, a);
    check(whole.status == parts.status && whole.sequences == parts.sequences && whole.hash == parts.hash);
    check(whole.line == parts.line && whole.column == parts.column);
    return 0;
}
