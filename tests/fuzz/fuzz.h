/* What fuzz targets share: a claim that must hold, files in a folder of their own, and an input that is read piece by piece. */
#ifndef TTN_FUZZ_H
#define TTN_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* One input of libFuzzer's. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Stops the process, which libFuzzer reports with the input, when it does not hold. */
void check(int holds);

/* The path of `name` in this process's folder, which is in memory where that is possible and is removed at the end; path has
 * FUZZ_PATH bytes. Returns path. */
enum { FUZZ_PATH = 512 };
char *fuzz_path(const char *name, char *path);

/* The file `name` there holds these bytes, and no others. */
void fuzz_write(const char *name, const void *bytes, size_t n);

/* What is left of an input. */
typedef struct {
    const uint8_t *at;
    size_t n;
} fuzz_input;

/* The next n bytes (at most 8) as a number; beyond the end they are zeros. */
uint64_t fuzz_number(fuzz_input *in, int n);

/* The next n bytes, or as many as there are: *ret_n of them. */
const uint8_t *fuzz_bytes(fuzz_input *in, size_t n, size_t *ret_n);

/* A copy of n bytes with a 0 behind them, in a block of its own: AddressSanitizer sees one byte too many. The caller's. */
char *fuzz_text(const uint8_t *bytes, size_t n);

#endif
