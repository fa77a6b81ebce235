/* Any index beside two shards ("a", which holds tensor x, and "b", which holds y): refused with a sentence, or every tensor
 * that it names is found. */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "train/files/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static char folder[64], index_path[96];

static void check(int holds)
{
    if (!holds) __builtin_trap();
}

static void put(const char *path, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    check(fd >= 0 && write(fd, bytes, n) == (ssize_t)n && close(fd) == 0);
}

static void put_shard(const char *file, const char *tensor)
{
    char path[96], header[100], bytes[200] = {0};
    snprintf(path, sizeof path, "%s/%s", folder, file);
    int n =
        snprintf(header, sizeof header, "{\"%s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", tensor);
    bytes[0] = (char)n;
    memcpy(bytes + 8, header, (size_t)n);
    put(path, bytes, 8 + (size_t)n + 4);
}

static void remove_folder(void)
{
    char path[96];
    static const char *const names[] = {"a", "b", "i.json"};
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void make_folder(void)
{
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(folder, sizeof folder, "%s/titin-fuzz-XXXXXX", base);
    check(mkdtemp(folder) != NULL);
    atexit(remove_folder);
    put_shard("a", "x");
    put_shard("b", "y");
    snprintf(index_path, sizeof index_path, "%s/i.json", folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (!folder[0]) make_folder();
    put(index_path, data, bytes);
    ttn_safetensors *s;
    ttn_error err = {0};
    ttn_status status = ttn_safetensors_open(index_path, NULL, &s, &err);
    if (status == TTN_OK) {
        int n = ttn_safetensors_file_count(s);
        check(n >= 1 && n <= 2 && ttn_safetensors_count(s) == n);
    } else {
        check(status == TTN_ECHECKPOINT && err.status == status && err.text[0] && !s);
    }
    ttn_safetensors_close(s);
    return 0;
}
