#include <assert.h>
#include <stdio.h>
#include <string.h>
#include "core/hdf5.h"

/* ---- HDF5's own reasons: taken from its stack and never printed ---- */

ttn_hdf5_quiet ttn_hdf5_be_quiet(void)
{
    ttn_hdf5_quiet before = {0};
    (void)H5Eget_auto2(H5E_DEFAULT, &before.print, &before.data);
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return before;
}

void ttn_hdf5_end_quiet(ttn_hdf5_quiet before)
{
    (void)H5Eset_auto2(H5E_DEFAULT, before.print, before.data);
}

/* The innermost entry of the stack is the cause. */
static herr_t take_reason(unsigned n, const H5E_error2_t *entry, void *data)
{
    (void)n;
    char *reason = data;
    if (!*reason && entry->desc) snprintf(reason, TTN_HDF5_REASON, "%s", entry->desc);
    return 0;
}

char *ttn_hdf5_reason(char *text)
{
    *text = 0;
    (void)H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_reason, text);
    if (!*text) snprintf(text, TTN_HDF5_REASON, "it gives no reason");
    return text;
}

/* ---- versions and formats ---- */

ttn_status ttn_hdf5_check_version(const char *name, ttn_error *err)
{
    unsigned major = 0, minor = 0, release = 0;
    if (H5get_libversion(&major, &minor, &release) < 0)
        return TTN_FAIL(err, TTN_EIO, "%s: HDF5 cannot tell its version", name);
    if (major == H5_VERS_MAJOR && minor == H5_VERS_MINOR) return TTN_OK;
    return TTN_FAIL(err, TTN_EIO, "%s: titin was built for HDF5 %d.%d and runs with %u.%u; build it again", name,
                    H5_VERS_MAJOR, H5_VERS_MINOR, major, minor);
}

/* V110 to the newest: everything since 2016 reads it, and its headers have checksums. STRONG: closing the file closes all that
 * is open in it. */
hid_t ttn_hdf5_access(void)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (access < 0) return access;
    if (H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_LATEST) < 0 ||
        H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) < 0) {
        (void)H5Pclose(access);
        return TTN_HDF5_NONE;
    }
    return access;
}

/* ---- types ---- */

hid_t ttn_hdf5_text_type(size_t n)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    if (type < 0) return type;
    if (H5Tset_size(type, n > 0 ? n : 1) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0 ||
        H5Tset_strpad(type, H5T_STR_NULLPAD) < 0) {
        (void)H5Tclose(type);
        return TTN_HDF5_NONE;
    }
    return type;
}

hid_t ttn_hdf5_number_type(ttn_dtype type)
{
    switch (ttn_dtype_stored(type)) {
    case TTN_F32:
        return H5Tcopy(H5T_IEEE_F32LE);
    case TTN_F64:
        return H5Tcopy(H5T_IEEE_F64LE);
    case TTN_I32:
        return H5Tcopy(H5T_STD_I32LE);
    case TTN_I64:
        return H5Tcopy(H5T_STD_I64LE);
    case TTN_U8:
        return H5Tcopy(H5T_STD_U8LE);
    default:
        break;
    }
    assert(ttn_dtype_stored(type) == TTN_F16);
    hid_t half = H5Tcopy(H5T_IEEE_F32LE); /* IEEE binary16, as h5py makes it: fields, then size, then bias */
    if (half >= 0 &&
        (H5Tset_fields(half, 15, 10, 5, 0, 10) < 0 || H5Tset_size(half, 2) < 0 || H5Tset_ebias(half, 15) < 0)) {
        (void)H5Tclose(half);
        return TTN_HDF5_NONE;
    }
    return half;
}

/* ---- rows of a dataset ---- */

/* One selection for memory and one for the file. */
int ttn_hdf5_move_rows(hid_t dataset, const ttn_desc *desc, int64_t first, int64_t n, const void *from, void *to)
{
    hsize_t start[TTN_MAX_DIM] = {(hsize_t)first}, count[TTN_MAX_DIM] = {(hsize_t)n};
    for (int d = 1; d < desc->ndim; d++)
        count[d] = (hsize_t)desc->dim[d];
    hid_t type = ttn_hdf5_number_type(desc->type), file = H5Dget_space(dataset), memory = TTN_HDF5_NONE;
    int done = type >= 0 && file >= 0;
    if (done && desc->ndim > 0) {
        memory = H5Screate_simple(desc->ndim, count, NULL);
        done = memory >= 0 && H5Sselect_hyperslab(file, H5S_SELECT_SET, start, NULL, count, NULL) >= 0;
    }
    hid_t shape = desc->ndim > 0 ? memory : H5S_ALL, place = desc->ndim > 0 ? file : H5S_ALL;
    if (done && from) done = H5Dwrite(dataset, type, shape, place, H5P_DEFAULT, from) >= 0;
    if (done && to) done = H5Dread(dataset, type, shape, place, H5P_DEFAULT, to) >= 0;
    if (memory >= 0 && H5Sclose(memory) < 0) done = 0;
    if (file >= 0 && H5Sclose(file) < 0) done = 0;
    if (type >= 0 && H5Tclose(type) < 0) done = 0;
    return done;
}
