#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/fuzz/fuzz.h"

static char folder[FUZZ_PATH / 2];

void check(int holds)
{
    if (!holds) __builtin_trap();
}

/* Leaks of libraries that titin does not own: HDF5 when it refuses a damaged file, fontconfig when it reads its files. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5\nleak:libfontconfig\n";
}

/* ---- files ---- */

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    (void)about;
    (void)kind;
    (void)where;
    return remove(path);
}

static void remove_folder(void)
{
    (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

char *fuzz_path(const char *name, char *path)
{
    if (!folder[0]) {
        const char *parent = getenv("TMPDIR");
        if (!parent) parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
        snprintf(folder, sizeof folder, "%s/titin-fuzz-XXXXXX", parent);
        check(mkdtemp(folder) != NULL);
        atexit(remove_folder);
    }
    check(snprintf(path, FUZZ_PATH, "%s/%s", folder, name) < FUZZ_PATH);
    return path;
}

void fuzz_write(const char *name, const void *bytes, size_t n)
{
    char path[FUZZ_PATH];
    int fd = open(fuzz_path(name, path), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    check(fd >= 0 && write(fd, bytes, n) == (ssize_t)n && close(fd) == 0);
}

/* ---- inputs ---- */

const uint8_t *fuzz_bytes(fuzz_input *in, size_t n, size_t *ret_n)
{
    const uint8_t *at = in->at;
    *ret_n = n < in->n ? n : in->n;
    in->at += *ret_n;
    in->n -= *ret_n;
    return at;
}

uint64_t fuzz_number(fuzz_input *in, int n)
{
    uint64_t value = 0;
    size_t got;
    const uint8_t *at = fuzz_bytes(in, (size_t)n, &got);
    if (got > 0) memcpy(&value, at, got);
    return value;
}

char *fuzz_text(const uint8_t *bytes, size_t n)
{
    char *text = malloc(n + 1);
    check(text != NULL);
    if (n > 0) memcpy(text, bytes, n);
    text[n] = 0;
    return text;
}
