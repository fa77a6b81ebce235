/* Reads the golden files in tests/reference/golden: numbers made by published implementations.
 *
 * NAME.txt is an index: comments (# how it was made), then one line a tensor, "TENSOR TYPE DIM DIM …", no DIM for one
 * number. NAME.bin holds the numbers: row-major, little-endian, f32, f64 or i64, tensor after tensor in the order of the
 * index with nothing between them. Inputs are f32, so that both builds start from the same numbers; results are f64.
 * tests/reference/golden.py writes them.
 *
 * What goes wrong here fails the test, with the file's name. Tests run from the top of the tree.
 */
#ifndef TTN_GOLDEN_H
#define TTN_GOLDEN_H

#include <stddef.h>
#include <stdint.h>
#include "core/api.h"
#include "core/real.h"

typedef struct {
    char name[80];
    char type[4]; /* "f32", "f64", "i64" */
    int ndim;
    int64_t dim[4];
    int64_t n;     /* numbers: the product of the dimensions */
    double *value; /* (n) */
} golden_tensor;

typedef struct {
    char name[40];
    int n_tensor;
    golden_tensor *tensor;
    double *value; /* of all */
} golden;

/* The caller's; NAME without ".txt". */
golden *golden_open(const char *name);
void golden_close(golden *g);

/* The tensor called by this printf format; the test fails when there is none. Borrowed. */
const golden_tensor *golden_find(const golden *g, const char *format, ...) TTN_PRINTF(2, 3);

/* The one number of a tensor without dimensions. */
double golden_number(const golden *g, const char *format, ...) TTN_PRINTF(2, 3);

/* Largest absolute value. */
double golden_range(const golden_tensor *t);

/* Copy `rows` rows of t, from its row `from`, into the build's real numbers. A row: what follows the first dimension. */
void golden_rows(const golden_tensor *t, int64_t from, int64_t rows, real *x);

/* The same rows against x: the largest difference, as a part of `range`. */
double golden_difference(const golden_tensor *t, int64_t from, int64_t rows, const real *x, double range);

#endif
