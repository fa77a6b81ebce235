/* What the compiler puts into kernels with -fsanitize=thread,alignment,bounds: calls before loads and stores, and where an
 * index or an alignment is wrong. The sanitizers' own libraries, which would answer them, are not linked; in a build with
 * AddressSanitizer they are, and this file is left out. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include "tests/cuda/engine.h"

using namespace emulation;

extern "C" {

#define TSAN_ACCESS(bytes)                       \
    void __tsan_read##bytes(void *at)            \
    {                                            \
        look(at, bytes, access::read);           \
    }                                            \
    void __tsan_write##bytes(void *at)           \
    {                                            \
        look(at, bytes, access::write);          \
    }                                            \
    void __tsan_volatile_read##bytes(void *at)   \
    {                                            \
        look(at, bytes, access::read);           \
    }                                            \
    void __tsan_volatile_write##bytes(void *at)  \
    {                                            \
        look(at, bytes, access::write);          \
    }                                            \
    void __tsan_unaligned_read##bytes(void *at)  \
    {                                            \
        look(at, bytes, access::read);           \
    }                                            \
    void __tsan_unaligned_write##bytes(void *at) \
    {                                            \
        look(at, bytes, access::write);          \
    }
#define TSAN_PROTOTYPES(bytes)                   \
    void __tsan_read##bytes(void *at);           \
    void __tsan_write##bytes(void *at);          \
    void __tsan_volatile_read##bytes(void *at);  \
    void __tsan_volatile_write##bytes(void *at); \
    void __tsan_unaligned_read##bytes(void *at); \
    void __tsan_unaligned_write##bytes(void *at);
TSAN_PROTOTYPES(1)
TSAN_PROTOTYPES(2)
TSAN_PROTOTYPES(4)
TSAN_PROTOTYPES(8)
TSAN_PROTOTYPES(16)
TSAN_ACCESS(1)
TSAN_ACCESS(2)
TSAN_ACCESS(4)
TSAN_ACCESS(8)
TSAN_ACCESS(16)

void __tsan_init(void);
void __tsan_func_entry(void *caller);
void __tsan_func_exit(void);
void __tsan_read_range(void *at, size_t bytes);
void __tsan_write_range(void *at, size_t bytes);
void __tsan_vptr_update(void **at, void *value);
void __tsan_vptr_read(void **at);

void __tsan_init(void)
{
}
void __tsan_func_entry(void *caller)
{
    (void)caller;
}
void __tsan_func_exit(void)
{
}
void __tsan_read_range(void *at, size_t bytes)
{
    look(at, bytes, access::read);
}
void __tsan_write_range(void *at, size_t bytes)
{
    look(at, bytes, access::write);
}
void __tsan_vptr_update(void **at, void *value)
{
    (void)at;
    (void)value;
}
void __tsan_vptr_read(void **at)
{
    (void)at;
}

/* The first member of what UndefinedBehaviorSanitizer's calls bring. */
struct place_in_source {
    const char *file;
    uint32_t line, column;
};

void __ubsan_handle_type_mismatch_v1(const place_in_source *at, void *pointer);
void __ubsan_handle_out_of_bounds(const place_in_source *at, void *index);

/* In a kernel this ends it; in host code nobody goes on. */
static void fail_at(const place_in_source *at, const char *what, void *value)
{
    fail("%s:%u: %s %p", at->file, at->line, what, value);
    fprintf(stderr, "%s\n", emulation_failure());
    std::abort();
}

void __ubsan_handle_type_mismatch_v1(const place_in_source *at, void *pointer)
{
    fail_at(at, "a number whose type must be aligned is at the misaligned address", pointer);
}

void __ubsan_handle_out_of_bounds(const place_in_source *at, void *index)
{
    fail_at(at, "the array does not have the index", index);
}

/* Copies of whole structures are calls of these; the Makefile gives them new names in the objects of kernels. */
void *emulation_memcpy(void *to, const void *from, size_t bytes);
void *emulation_memmove(void *to, const void *from, size_t bytes);
void *emulation_memset(void *to, int byte, size_t bytes);

void *emulation_memcpy(void *to, const void *from, size_t bytes)
{
    look(from, bytes, access::read);
    look(to, bytes, access::write);
    return memmove(to, from, bytes);
}

void *emulation_memmove(void *to, const void *from, size_t bytes)
{
    return emulation_memcpy(to, from, bytes);
}

void *emulation_memset(void *to, int byte, size_t bytes)
{
    look(to, bytes, access::write);
    return memset(to, byte, bytes);
}
}
