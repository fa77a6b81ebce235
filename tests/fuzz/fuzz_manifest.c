/* Manifests of any bytes: read or refused with a sentence; what is read keeps its promises. And a text whose closing
 * checksum is made right, so that what stands before it is reached. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/hash.h"
#include "tests/fuzz/fuzz.h"
#include "train/files/manifest.h"

static void try_manifest(const void *bytes, size_t n)
{
    ttn_error err = {0};
    ttn_manifest *m;
    int other = 0;
    ttn_status status = ttn_manifest_parse("fuzz", bytes, n, "titin checkpoint", 1, &m, &other, &err);
    assert((status == TTN_OK) == (m != NULL));
    assert((status == TTN_OK) == (err.text[0] == 0));
    assert(status == TTN_OK || status == TTN_ECHECKPOINT || status == TTN_ENOMEM);
    assert(status != TTN_OK || !other);
    for (int i = 0; m && i < ttn_manifest_file_count(m); i++) {
        const ttn_manifest_file *f = ttn_manifest_file_at(m, i);
        ttn_hash128 unused;
        assert(ttn_manifest_is_name(f->name) && f->bytes >= 0 && f->n_tensor >= 0);
        assert(ttn_manifest_find(m, f->name) == i);
        (void)ttn_manifest_tensor(m, i, "w", &unused);
    }
    assert(!m || ttn_manifest_titin(m));
    ttn_manifest_close(m);
}

/* {"format": …, "format_version": 1, … DATA … "xxh3_128": "right"}: DATA is what varies. */
static void try_within(const uint8_t *data, size_t size)
{
    static const char head[] = "{\n  \"format\": \"titin checkpoint\",\n  \"format_version\": 1,\n"
                               "  \"titin_version\": \"0.1.0\",\n  \"files\": {";
    static const char key[] = "\n  \"xxh3_128\": \"", end[] = "\"\n}\n";
    size_t room = sizeof head + size + sizeof key + 32 + sizeof end + 8;
    char *text = malloc(room);
    assert(text);
    memcpy(text, head, sizeof head - 1);
    size_t n = sizeof head - 1;
    if (size > 0) memcpy(text + n, data, size);
    n += size;
    text[n] = '}';
    text[n + 1] = ',';
    n += 2;
    char digits[TTN_HASH_TEXT];
    ttn_hash_print(ttn_hash128_of(text, n), digits);
    n += (size_t)snprintf(text + n, room - n, "%s%s%s", key, digits, end);
    try_manifest(text, n);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_manifest(data, size);
    try_within(data, size);
    return 0;
}
