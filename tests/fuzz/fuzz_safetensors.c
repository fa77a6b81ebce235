/* Any header: refused with a sentence, or its tensors have the bytes of their shapes and tile the data. The first two
 * bytes say how many bytes of data there are. */
#include <string.h>
#include "tests/fuzz/fuzz.h"
#include "train/files/safetensors.h"

static void check_tensors(const ttn_safetensors *s, int64_t begin, int64_t size)
{
    int64_t at = begin;
    for (int64_t i = 0; i < ttn_safetensors_count(s); i++) {
        const ttn_stored_tensor *t = ttn_safetensors_at(s, i);
        char text[TTN_STORED_TEXT];
        check(strlen(ttn_stored_print(t, text)) < sizeof text);
        check(t->begin == at && t->bytes >= 0 && t->n >= 0 && t->ndim <= TTN_STORED_MAX_DIM);
        check(ttn_safetensors_find(s, t->name) == t);
        int64_t n = 1;
        for (int d = 0; d < t->ndim; d++)
            n *= t->dim[d];
        check(n == t->n);
        at += t->bytes;
    }
    check(at == size);
    for (int64_t i = 0; i < ttn_safetensors_note_count(s); i++)
        check(strlen(ttn_safetensors_note(s, i)->key) + strlen(ttn_safetensors_note(s, i)->value) < (size_t)begin);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 2) return 0;
    int64_t n = (int64_t)bytes - 2, size = 8 + n + (data[0] | data[1] << 8);
    ttn_safetensors *s;
    ttn_error err = {0};
    ttn_status status = ttn_safetensors_parse("it", data + 2, n, size, NULL, &s, &err);
    if (status == TTN_OK)
        check_tensors(s, 8 + n, size);
    else
        check(status == TTN_ECHECKPOINT && err.status == status && err.text[0] && !s);
    ttn_safetensors_close(s);
    return 0;
}
