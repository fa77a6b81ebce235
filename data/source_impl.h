/* The sources that ttn_source_open stacks on each other. Private to data/source*.c. */
#ifndef TTN_SOURCE_IMPL_H
#define TTN_SOURCE_IMPL_H

#include "data/source.h"

/* A file or standard input as it is. */
TTN_MUST_USE ttn_status ttn_source_of_file(const char *path, ttn_source **ret, ttn_error *err);

/* Memory as it is. */
TTN_MUST_USE ttn_status ttn_source_of_memory(const char *name, const void *bytes, size_t n, size_t most,
                                             ttn_source **ret, ttn_error *err);

#endif
