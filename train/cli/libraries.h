/* The libraries that this program is linked with, and which version of each runs. */
#ifndef TTN_LIBRARIES_H
#define TTN_LIBRARIES_H

/* A module that brings a library adds a row (libraries.c); a test compares the rows with what the program is linked with. */
typedef struct {
    const char *name; /* "jansson" */
    const char *file; /* "libjansson": its shared library's name up to ".so"; NULL: it is compiled in */
    const char *use;  /* "JSON" */
    const char *(*version)(char *room); /* of what runs; written to room, which has TTN_LIBRARY_VERSION bytes */
} ttn_library;

enum { TTN_LIBRARY_VERSION = 64 };

/* A name that is NULL at the end. */
extern const ttn_library ttn_libraries[];

#endif
