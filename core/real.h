/* The one numeric type of a build: float to train, double to judge gradients.
 *
 * The library builds twice from one source (make REAL=f32, REAL=f64). <tgmath.h> picks expf or exp by the
 * argument, so a formula is written once.
 */
#ifndef TTN_REAL_H
#define TTN_REAL_H

#include <float.h>

#if defined(TTN_REAL64)
typedef double real;
#define TTN_REAL_NAME "f64"
#define TTN_REAL_EPS  DBL_EPSILON
#else
typedef float real;
#define TTN_REAL_NAME "f32"
#define TTN_REAL_EPS  FLT_EPSILON
#endif

/* TTN_HD: a formula that a CPU kernel and a GPU kernel share. */
#if defined(__CUDACC__)
#define TTN_HD static __host__ __device__ inline
#elif defined(__cplusplus) /* a .cu file built as plain C++: <math.h> overloads exp(float), exp(double) */
#include <math.h>
#define TTN_HD static inline
#else
#include <tgmath.h>
#undef I /* complex.h comes with it and takes the name of an axis */
#define TTN_HD static inline
#endif

/* a b + c, rounded once where the CPU can (x86-64-v3, aarch64, GPUs), twice elsewhere.
 *
 * The build says -ffp-contract=off: the compiler fuses nothing by itself, so the bits of a formula do not
 * depend on where it was inlined, nor on whether an element fell into the vector loop or its remainder.
 * Where the fused form is wanted, it is written. */
#if defined(__FMA__) || defined(__aarch64__) || defined(__CUDACC__)
TTN_HD float ttn_fmaf(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}
TTN_HD double ttn_fmad(double a, double b, double c)
{
    return __builtin_fma(a, b, c);
}
#else
TTN_HD float ttn_fmaf(float a, float b, float c)
{
    return a * b + c;
}
TTN_HD double ttn_fmad(double a, double b, double c)
{
    return a * b + c;
}
#endif

TTN_HD real ttn_fma(real a, real b, real c)
{
#if defined(TTN_REAL64)
    return ttn_fmad(a, b, c);
#else
    return ttn_fmaf(a, b, c);
#endif
}

#endif
