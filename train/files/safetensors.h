/* safetensors: files of named tensors, and sets of such files with an index.
 *
 * A file is 8 bytes N (little-endian), N bytes of JSON, and the numbers, row-major and little-endian, which the JSON
 * says where to find: name -> {dtype, shape, data_offsets [begin, end) behind the JSON}, and "__metadata__" from text to
 * text. https://github.com/huggingface/safetensors is the definition. A set is shards model-0000I-of-0000N.safetensors
 * and model.safetensors.index.json, which says in which shard each tensor lies.
 *
 * Opening reads headers only; numbers are read tensor by tensor into the caller's memory, never the file as a whole.
 * A file is taken only if its tensors tile it: no byte belongs to two of them, or to none. Refused besides what
 * json_scan.h refuses: names that stand twice, that hold control characters or "..", or are longer than 512 bytes; more
 * than 16 dimensions; fields other than the three; headers of more than 25 MB unless asked for, or 100 MB at all.
 *
 * What a file does wrong is TTN_ECHECKPOINT; TTN_EINVAL: there is no such file; TTN_EIO, TTN_ENOMEM: the system.
 */
#ifndef TTN_SAFETENSORS_H
#define TTN_SAFETENSORS_H

#include <stdint.h>
#include "core/log.h"
#include "core/status.h"
#include "core/tensor.h"
#include "train/files/convert.h"

/* name, bits of an element. In the reference's order, which its writer sorts by. */
#define TTN_STORED_TYPES(X) \
    X(BOOL, 8)              \
    X(F4, 4)                \
    X(F6_E2M3, 6)           \
    X(F6_E3M2, 6)           \
    X(U8, 8)                \
    X(I8, 8)                \
    X(F8_E5M2, 8)           \
    X(F8_E4M3, 8)           \
    X(F8_E8M0, 8)           \
    X(F8_E4M3FNUZ, 8)       \
    X(F8_E5M2FNUZ, 8)       \
    X(I16, 16)              \
    X(U16, 16)              \
    X(F16, 16)              \
    X(BF16, 16)             \
    X(I32, 32)              \
    X(U32, 32)              \
    X(F32, 32)              \
    X(C64, 64)              \
    X(F64, 64)              \
    X(I64, 64)              \
    X(U64, 64)

typedef enum {
#define TTN_STORED(name, bits) TTN_STORED_##name,
    TTN_STORED_TYPES(TTN_STORED)
#undef TTN_STORED
        TTN_STORED_COUNT
} ttn_stored_type;

/* "F32"; "?" for a number that is none. */
const char *ttn_stored_name(ttn_stored_type type);

/* The type of core/tensor.h that holds the same numbers (F32, F16, BF16, F64, I64, I32, U8): 1; else 0. And back. */
int ttn_stored_dtype(ttn_stored_type type, ttn_dtype *ret);
ttn_stored_type ttn_stored_of(ttn_dtype type);

enum { TTN_STORED_MAX_DIM = 16, TTN_STORED_MAX_NAME = 512 };

typedef struct {
    const char *name;
    ttn_stored_type type;
    int ndim;
    const int64_t *dim; /* (ndim); none: one number */
    int64_t n;          /* numbers */
    int64_t bytes;
    int64_t begin; /* of the first, from the start of its file */
    int file;      /* which of ttn_safetensors_file */
} ttn_stored_tensor;

/* What "__metadata__" says. */
typedef struct {
    const char *key, *value;
} ttn_stored_note;

/* "F32 [2, 3]"; text has TTN_STORED_TEXT bytes. Returns text. */
enum { TTN_STORED_TEXT = 16 + 22 * TTN_STORED_MAX_DIM };
char *ttn_stored_print(const ttn_stored_tensor *t, char *text);

/* ---- reading ---- */

typedef struct ttn_safetensors ttn_safetensors;

typedef struct {
    int64_t most_header; /* bytes of a header; 0: 25,000,000. At most 100,000,000 */
    int allow_nonfinite; /* numbers that are NaN or infinite are read; else they are TTN_ENUMERIC */
    const ttn_log *log;  /* what is odd but no fault; NULL: nobody listens */
} ttn_safetensors_options;

/* path: a file, an index (its name ends in ".json"), or a folder that holds model.safetensors or else
 * model.safetensors.index.json. *ret is the caller's; what it gives out is borrowed until close. options: NULL: none.
 * One object may be read by several threads at once. */
TTN_MUST_USE ttn_status ttn_safetensors_open(const char *path, const ttn_safetensors_options *options,
                                             ttn_safetensors **ret, ttn_error *err);
void ttn_safetensors_close(ttn_safetensors *s); /* NULL is fine */

/* The same of a header alone, without a file behind it: n bytes from the 8 of its length on, of a file of `size`. Its
 * tensors cannot be read. For checks and for the fuzzer. */
TTN_MUST_USE ttn_status ttn_safetensors_parse(const char *name, const void *bytes, int64_t n, int64_t size,
                                              const ttn_safetensors_options *options, ttn_safetensors **ret,
                                              ttn_error *err);

/* All tensors: file after file, in the order in which they lie there. */
int64_t ttn_safetensors_count(const ttn_safetensors *s);
const ttn_stored_tensor *ttn_safetensors_at(const ttn_safetensors *s, int64_t i);

/* By name; NULL: there is none. */
const ttn_stored_tensor *ttn_safetensors_find(const ttn_safetensors *s, const char *name);

/* Notes of all files. */
int64_t ttn_safetensors_note_count(const ttn_safetensors *s);
const ttn_stored_note *ttn_safetensors_note(const ttn_safetensors *s, int64_t i);

/* Files, as messages show them. */
int ttn_safetensors_file_count(const ttn_safetensors *s);
const char *ttn_safetensors_file(const ttn_safetensors *s, int i);

/* The log that it was opened with; NULL: nobody listens. */
const ttn_log *ttn_safetensors_log(const ttn_safetensors *s);

/* n numbers from number `first` on, as numbers of type `as` (a real type: TTN_REAL, F32, …). The tensor is F32, F16,
 * BF16 or F64, else TTN_ECHECKPOINT. What a narrower type loses is added to *sum (NULL: nobody asks).
 * TTN_ENUMERIC: a number is not finite, unless that is allowed. */
TTN_MUST_USE ttn_status ttn_safetensors_read(const ttn_safetensors *s, const ttn_stored_tensor *t, int64_t first,
                                             int64_t n, ttn_dtype as, void *to, ttn_converted *sum, ttn_error *err);

/* n of its bytes from byte `at` on, of any type, as they are. */
TTN_MUST_USE ttn_status ttn_safetensors_read_bytes(const ttn_safetensors *s, const ttn_stored_tensor *t, int64_t at,
                                                   int64_t n, void *to, ttn_error *err);

/* ---- matching with what a model has ---- */

typedef struct {
    const char *name;
    int ndim;
    int64_t dim[TTN_MAX_DIM];
    const char *instead; /* taken when the name is missing: the embedding for a tied decoder's weight; NULL: none */
} ttn_wanted_tensor;

typedef struct {
    int64_t missing, misshapen; /* of what is wanted */
    int64_t unused;             /* tensors of real numbers that nobody wants; integers and BOOL (BERT's position_ids)
                                   are passed over */
    int64_t replaced;           /* found under `instead` */
} ttn_match;

/* found[i] = the tensor for wanted[i], or NULL. TTN_ECHECKPOINT when one is missing, of another shape, or of a type that
 * titin does not read; the sentence tells the first such, with what may have been meant and how many more there are.
 * Unused ones are told to the log, with what they may have been meant for. */
TTN_MUST_USE ttn_status ttn_safetensors_match(const ttn_safetensors *s, const ttn_wanted_tensor *wanted, int64_t n,
                                              const ttn_stored_tensor **found, ttn_match *ret, ttn_error *err);

/* ---- writing ---- */

typedef struct {
    const char *name;
    ttn_desc desc; /* type (F32, BF16, F16, F64, I64, I32, U8, TTN_REAL) and dimensions */
} ttn_tensor_to_write;

/* Bytes [at, at + n) of tensor i of the caller's list, its numbers row-major and little-endian. Asked for tensor after
 * tensor in the file's order, each from its start to its end, in pieces of at most 1 MiB. */
typedef ttn_status (*ttn_tensor_giver)(void *ctx, int64_t i, int64_t at, int64_t n, void *to, ttn_error *err);

typedef struct {
    const ttn_tensor_to_write *tensor;
    int64_t n_tensor;
    const ttn_stored_note *note; /* besides "format": "pt", which older readers ask for and which always stands there */
    int64_t n_note;
    ttn_tensor_giver give;
    void *ctx;
    int64_t most_shard; /* bytes of numbers in a file before another is begun; 0: one file */
} ttn_safetensors_content;

/* The file's bytes in order, in pieces: to a writer of the caller's, which may add them up or hash them on the way.
 * As the reference writes them: tensors by type, wide ones first, then by name; the header padded to 8 bytes with spaces.
 * One file whatever most_shard says. TTN_EINVAL: names that a reader would refuse. */
typedef ttn_status (*ttn_safetensors_taker)(void *ctx, const void *bytes, size_t n, ttn_error *err);
TTN_MUST_USE ttn_status ttn_safetensors_emit(const ttn_safetensors_content *c, ttn_safetensors_taker take, void *ctx,
                                             ttn_error *err);

/* Bytes that ttn_safetensors_emit gives, without asking for any number. */
TTN_MUST_USE ttn_status ttn_safetensors_size(const ttn_safetensors_content *c, int64_t *ret, ttn_error *err);

/* To a file that appears whole or not at all (core/atomic.h). With most_shard, and more than that to write: to shards
 * named after it and, when they are all there, the index: of m.safetensors m-00001-of-00002.safetensors, … and
 * m.safetensors.index.json. TTN_EINVAL when then m.safetensors is there too, which readers would take instead, or
 * an index of that name: a writer killed half-way would leave it over shards of two sets. */
TTN_MUST_USE ttn_status ttn_safetensors_write(const char *path, const ttn_safetensors_content *c, ttn_error *err);

#endif
