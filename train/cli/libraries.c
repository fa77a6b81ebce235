#define XXH_INLINE_ALL
#include <cairo/cairo.h>
#include <hdf5.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>
#include <yaml.h>
#include <zlib.h>
#include "core/blas.h"
#include "train/cli/libraries.h"

/* "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH …": its second word. */
static const char *openblas_version(char *room)
{
    ttn_blas_info info;
    ttn_blas_describe(&info);
    const char *config = info.config;
    config += strcspn(config, " ");
    config += strspn(config, " ");
    snprintf(room, TTN_LIBRARY_VERSION, "%.*s", (int)strcspn(config, " "), config);
    return room;
}

#ifdef __clang__
#define OPENMP_FILE "libomp"
#else
#define OPENMP_FILE "libgomp"
#endif

/* The runtime tells no version: the date of the standard that the compiler follows. */
static const char *openmp_version(char *room)
{
    snprintf(room, TTN_LIBRARY_VERSION, "%d", _OPENMP);
    return room;
}

static const char *hdf5_version(char *room)
{
    unsigned major, minor, release;
    if (H5get_libversion(&major, &minor, &release) < 0) return "?";
    snprintf(room, TTN_LIBRARY_VERSION, "%u.%u.%u", major, minor, release);
    return room;
}

static const char *jansson_version(char *room)
{
    snprintf(room, TTN_LIBRARY_VERSION, "%s", jansson_version_str());
    return room;
}

static const char *yaml_version(char *room)
{
    snprintf(room, TTN_LIBRARY_VERSION, "%s", yaml_get_version_string());
    return room;
}

static const char *xxhash_version(char *room)
{
    unsigned n = XXH_versionNumber();
    snprintf(room, TTN_LIBRARY_VERSION, "%u.%u.%u", n / 10000, n / 100 % 100, n % 100);
    return room;
}

static const char *version_of_cairo(char *room)
{
    snprintf(room, TTN_LIBRARY_VERSION, "%s", cairo_version_string());
    return room;
}

static const char *version_of_zlib(char *room)
{
    snprintf(room, TTN_LIBRARY_VERSION, "%s", zlibVersion());
    return room;
}

const ttn_library ttn_libraries[] = {
    {"OpenBLAS", "libopenblas", "matrix products", openblas_version},
    {"OpenMP", OPENMP_FILE, "threads", openmp_version},
    {"HDF5", "libhdf5_serial", "data stores and exports", hdf5_version},
    {"jansson", "libjansson", "JSON", jansson_version},
    {"libyaml", "libyaml-0", "configuration files", yaml_version},
    {"cairo", "libcairo", "curves and maps", version_of_cairo},
    {"zlib", "libz", "sequence files that are compressed", version_of_zlib},
    {"xxHash", NULL, "checksums", xxhash_version},
    {0},
};
