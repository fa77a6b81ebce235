/* Files of a test. */
#ifndef TTN_TEST_FILES_H
#define TTN_TEST_FILES_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "tests/harness/test.h"

/* Good for the next 8 calls. */
static inline const char *path_in(const char *folder, const char *name)
{
    static char paths[8][5000];
    static int next;
    char *path = paths[next++ % 8];
    assert_true(snprintf(path, sizeof paths[0], "%s/%s", folder, name) < (int)sizeof paths[0]);
    return path;
}

static inline const char *in_folder(const char *name)
{
    return path_in(ttn_test_folder(), name);
}

static inline int is_there(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0;
}

/* With a 0 behind it; the caller's to free. */
static inline char *get_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "r");
    if (!f) fail_msg("%s: %s", path, strerror(errno));
    char *bytes = calloc(1 << 20, 1);
    assert_non_null(bytes);
    *n = fread(bytes, 1, (1 << 20) - 1, f);
    fclose(f);
    return bytes;
}

#endif
