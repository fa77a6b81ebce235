/* Any index beside two shards ("a", which holds tensor x, and "b", which holds y): refused with a sentence, or every tensor
 * that it names is found. */
#include <stdio.h>
#include <string.h>
#include "tests/fuzz/fuzz.h"
#include "train/files/safetensors.h"

static void put_shard(const char *file, const char *tensor)
{
    char header[100], bytes[200] = {0};
    int n =
        snprintf(header, sizeof header, "{\"%s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", tensor);
    bytes[0] = (char)n;
    memcpy(bytes + 8, header, (size_t)n);
    fuzz_write(file, bytes, 8 + (size_t)n + 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static int are_there;
    char path[FUZZ_PATH];
    if (!are_there) {
        put_shard("a", "x");
        put_shard("b", "y");
        are_there = 1;
    }
    fuzz_write("i.json", data, bytes);
    ttn_safetensors *s;
    ttn_error err = {0};
    ttn_status status = ttn_safetensors_open(fuzz_path("i.json", path), NULL, &s, &err);
    if (status == TTN_OK) {
        int n = ttn_safetensors_file_count(s);
        check(n >= 1 && n <= 2 && ttn_safetensors_count(s) == n);
    } else {
        check(status == TTN_ECHECKPOINT && err.status == status && err.text[0] && !s);
    }
    ttn_safetensors_close(s);
    return 0;
}
