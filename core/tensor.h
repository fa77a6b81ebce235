/* Descriptors of dense row-major tensors, and the letters for their axes.
 *
 * N rows (residues of a packed batch)   S sequences   R picks (rows with a loss)   C channels   H heads   D = C / H
 * M features or landmarks   V vocabulary   I, O widths of a linear layer
 *
 * There is no batch axis: a batch is N rows, and spans say which of them belong to which sequence.
 */
#ifndef TTN_TENSOR_H
#define TTN_TENSOR_H

#include <stddef.h>
#include <stdint.h>
#include "core/status.h"

TTN_API_BEGIN

/* What is stored. TTN_REAL is what the build computes in: it stands for TTN_F32 or TTN_F64. */
typedef enum { TTN_REAL, TTN_F32, TTN_BF16, TTN_F16, TTN_F64, TTN_I64, TTN_I32, TTN_U8 } ttn_dtype;

/* What dim[0] counts. Axes stay distinct when their capacities happen to be equal. */
typedef enum { TTN_FIXED, TTN_ROWS, TTN_SEQS, TTN_PICKS } ttn_axis;

enum { TTN_MAX_DIM = 4 };

/* Outermost first, contiguous: (N, C) is {N, C}. ndim 0 is a scalar, one element; ndim < 0 is "left out". */
typedef struct {
    ttn_dtype type;
    ttn_axis axis;
    int ndim;
    int64_t dim[TTN_MAX_DIM];
} ttn_desc;

/* How many rows, sequences and picks: a capacity, or what of it a batch uses. */
typedef struct {
    int64_t rows, seqs, picks;
} ttn_extent;

/* The rows of one sequence: first, first + 1, … first + n - 1. */
typedef struct {
    int64_t first, n;
} ttn_span;

/* Bytes of one element; 0 for a number that is no type. TTN_REAL: of the build's own. */
size_t ttn_dtype_size(ttn_dtype type);

/* "f32", "bf16", …; "f32" or "f64" for TTN_REAL; "?" for a number that is no type. */
const char *ttn_dtype_name(ttn_dtype type);

/* TTN_REAL becomes TTN_F32 or TTN_F64; others stay. */
ttn_dtype ttn_dtype_stored(ttn_dtype type);

/* Type, axis and ndim are ones that exist, no dimension is negative, and the bytes fit in an int64_t. `name` stands in
 * the message. TTN_EINVAL otherwise. */
TTN_MUST_USE ttn_status ttn_desc_check(const ttn_desc *d, const char *name, ttn_error *err);

/* Elements and bytes of a descriptor that passed ttn_desc_check; 0 when it is left out. */
int64_t ttn_desc_numel(const ttn_desc *d);
size_t ttn_desc_bytes(const ttn_desc *d);

/* The same type (TTN_REAL equals what it stands for), axis and dimensions. */
int ttn_desc_same(const ttn_desc *a, const ttn_desc *b);

enum { TTN_DESC_TEXT = 128 };

/* "f32 (N 480, 512)"; text has TTN_DESC_TEXT bytes. Returns text. */
char *ttn_desc_print(const ttn_desc *d, char *text);

/* The descriptor of up to three dimensions; those past ndim are not looked at. For rows, sequences and picks d0 is the
 * capacity. With an ndim of 4 or more there is nothing for dim[3]: it is -1, and ttn_desc_check refuses the descriptor. */
ttn_desc ttn_desc_of(ttn_dtype type, ttn_axis axis, int ndim, int64_t d0, int64_t d1, int64_t d2);

/* *ret = a * b or a + b; 1 when it fits, 0 when it does not. */
static inline int ttn_size_mul(size_t a, size_t b, size_t *ret)
{
    return !__builtin_mul_overflow(a, b, ret);
}
static inline int ttn_size_add(size_t a, size_t b, size_t *ret)
{
    return !__builtin_add_overflow(a, b, ret);
}

TTN_API_END
#endif
