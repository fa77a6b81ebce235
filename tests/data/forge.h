/* Stores that were changed by another program, or made up: written with HDF5 itself, so that all of its own checksums are
 * right. Included by one test. */
#ifndef TTN_TESTS_FORGE_H
#define TTN_TESTS_FORGE_H

#include <hdf5.h>
#include <stdlib.h>
#include <string.h>
#include "tests/harness/test.h"

typedef enum {
    FORGE_LONGER,      /* 2^28 entries, of which none was written */
    FORGE_NOT_WRITTEN, /* its length, and no chunk */
    FORGE_LARGE_CHUNK, /* one of 256 MiB */
    FORGE_SMALL_CHUNKS,
    FORGE_CHANGED, /* the last entry */
    N_FORGERY,
} forgery;

enum { FORGED_LENGTH = 1 << 28, FORGED_CHUNK = 256 << 20, FORGE_MAX_LISTS = 64 };

static hid_t forge_open(const char *path)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    assert_true(H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_LATEST) >= 0);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, access);
    assert_true(file >= 0);
    H5Pclose(access);
    return file;
}

/* The names of the lists of a store, to be freed one by one; how many. */
static int forge_lists(const char *path, char **ret)
{
    hid_t file = forge_open(path);
    H5G_info_t info;
    assert_true(H5Gget_info(file, &info) >= 0 && info.nlinks <= FORGE_MAX_LISTS);
    for (hsize_t i = 0; i < info.nlinks; i++) {
        char name[100];
        assert_true(H5Lget_name_by_idx(file, ".", H5_INDEX_NAME, H5_ITER_INC, i, name, sizeof name, H5P_DEFAULT) > 0);
        ret[i] = strdup(name);
        assert_non_null(ret[i]);
    }
    assert_true(H5Fclose(file) >= 0);
    return (int)info.nlinks;
}

/* In place of the list `name`: one of n entries, which says that it has `length`, in chunks of `chunk`. bytes: its n entries;
 * NULL: nothing is written. */
static void forge_list(hid_t file, const char *name, hid_t type, hsize_t length, hsize_t chunk, const void *bytes)
{
    const hsize_t most = H5S_UNLIMITED;
    assert_true(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
    hid_t layout = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &length, &most);
    assert_true(H5Pset_chunk(layout, 1, &chunk) >= 0 && H5Pset_fletcher32(layout) >= 0);
    hid_t list = H5Dcreate2(file, name, type, space, H5P_DEFAULT, layout, H5P_DEFAULT);
    assert_true(list >= 0);
    if (bytes) assert_true(H5Dwrite(list, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes) >= 0);
    H5Dclose(list);
    H5Sclose(space);
    H5Pclose(layout);
}

/* 0: this cannot be done to the list. */
static int forge(const char *path, const char *name, forgery how)
{
    hid_t file = forge_open(path), list = H5Dopen2(file, name, H5P_DEFAULT);
    hid_t type = H5Dget_type(list), space = H5Dget_space(list);
    const hsize_t n = (hsize_t)H5Sget_simple_extent_npoints(space);
    const size_t size = H5Tget_size(type);
    assert_true(list >= 0 && n > 0 && size > 0);
    unsigned char *bytes = malloc(n * size);
    assert_non_null(bytes);
    assert_true(H5Dread(list, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes) >= 0);
    if (how == FORGE_CHANGED) {
        bytes[n * size - 1] ^= 1;
        assert_true(H5Dwrite(list, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes) >= 0);
    }
    H5Dclose(list);
    H5Sclose(space);
    if (how == FORGE_LONGER) forge_list(file, name, type, FORGED_LENGTH, (1 << 20) / size, NULL);
    if (how == FORGE_NOT_WRITTEN) forge_list(file, name, type, n, n, NULL);
    if (how == FORGE_LARGE_CHUNK) forge_list(file, name, type, n, FORGED_CHUNK / size, NULL);
    if (how == FORGE_SMALL_CHUNKS && n > 1) forge_list(file, name, type, n, 1, bytes);
    free(bytes);
    H5Tclose(type);
    assert_true(H5Fclose(file) >= 0);
    return how != FORGE_SMALL_CHUNKS || n > 1;
}

/* The attribute is another number, as it is written for the first time. */
static void forge_integer(const char *path, const char *key, int64_t value)
{
    hid_t file = forge_open(path), note = H5Aopen(file, key, H5P_DEFAULT);
    assert_true(note >= 0 && H5Awrite(note, H5T_NATIVE_INT64, &value) >= 0);
    H5Aclose(note);
    assert_true(H5Fclose(file) >= 0);
}

#endif
