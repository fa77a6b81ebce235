/* What the processor can do, and what this build needs of it.
 *
 * A build with ARCH=native that is carried to an older machine dies with SIGILL at some later instruction; asked first,
 * it says what is missing. Everything here runs on any processor of the family: core/cpu.c, core/status.c and
 * core/text.c are compiled for the oldest (BASELINE in the Makefile), core/cpu_built.c for ARCH, but it holds only a constant.
 */
#ifndef TTN_CPU_H
#define TTN_CPU_H

#include <stddef.h>
#include <stdint.h>
#include "core/status.h"

/* The one list: instruction sets that a compiler uses by itself when -march allows it.
 * name, what people call it, the macro that a compiler defines as 1 when it may use it, where the processor says so */
#if defined(__x86_64__)

/* leaf of cpuid, register, bit, and what the operating system must save and restore for it */
#define TTN_CPU_FEATURES(X)                                                                      \
    X(SSE3, "sse3", __SSE3__, 1, TTN_ECX, 0, TTN_SAVES_SSE)                                      \
    X(SSSE3, "ssse3", __SSSE3__, 1, TTN_ECX, 9, TTN_SAVES_SSE)                                   \
    X(SSE4_1, "sse4.1", __SSE4_1__, 1, TTN_ECX, 19, TTN_SAVES_SSE)                               \
    X(SSE4_2, "sse4.2", __SSE4_2__, 1, TTN_ECX, 20, TTN_SAVES_SSE)                               \
    X(MOVBE, "movbe", __MOVBE__, 1, TTN_ECX, 22, TTN_SAVES_SSE)                                  \
    X(POPCNT, "popcnt", __POPCNT__, 1, TTN_ECX, 23, TTN_SAVES_SSE)                               \
    X(LZCNT, "lzcnt", __LZCNT__, 0x80000001, TTN_ECX, 5, TTN_SAVES_SSE)                          \
    X(BMI, "bmi", __BMI__, 7, TTN_EBX, 3, TTN_SAVES_SSE)                                         \
    X(BMI2, "bmi2", __BMI2__, 7, TTN_EBX, 8, TTN_SAVES_SSE)                                      \
    X(AVX, "avx", __AVX__, 1, TTN_ECX, 28, TTN_SAVES_AVX)                                        \
    X(F16C, "f16c", __F16C__, 1, TTN_ECX, 29, TTN_SAVES_AVX)                                     \
    X(FMA, "fma", __FMA__, 1, TTN_ECX, 12, TTN_SAVES_AVX)                                        \
    X(FMA4, "fma4", __FMA4__, 0x80000001, TTN_ECX, 16, TTN_SAVES_AVX)                            \
    X(XOP, "xop", __XOP__, 0x80000001, TTN_ECX, 11, TTN_SAVES_AVX)                               \
    X(AVX2, "avx2", __AVX2__, 7, TTN_EBX, 5, TTN_SAVES_AVX)                                      \
    X(AVX512F, "avx512f", __AVX512F__, 7, TTN_EBX, 16, TTN_SAVES_AVX512)                         \
    X(AVX512DQ, "avx512dq", __AVX512DQ__, 7, TTN_EBX, 17, TTN_SAVES_AVX512)                      \
    X(AVX512CD, "avx512cd", __AVX512CD__, 7, TTN_EBX, 28, TTN_SAVES_AVX512)                      \
    X(AVX512BW, "avx512bw", __AVX512BW__, 7, TTN_EBX, 30, TTN_SAVES_AVX512)                      \
    X(AVX512VL, "avx512vl", __AVX512VL__, 7, TTN_EBX, 31, TTN_SAVES_AVX512)                      \
    X(AVX512IFMA, "avx512ifma", __AVX512IFMA__, 7, TTN_EBX, 21, TTN_SAVES_AVX512)                \
    X(AVX512VBMI, "avx512vbmi", __AVX512VBMI__, 7, TTN_ECX, 1, TTN_SAVES_AVX512)                 \
    X(AVX512VBMI2, "avx512vbmi2", __AVX512VBMI2__, 7, TTN_ECX, 6, TTN_SAVES_AVX512)              \
    X(AVX512VNNI, "avx512vnni", __AVX512VNNI__, 7, TTN_ECX, 11, TTN_SAVES_AVX512)                \
    X(AVX512BITALG, "avx512bitalg", __AVX512BITALG__, 7, TTN_ECX, 12, TTN_SAVES_AVX512)          \
    X(AVX512VPOPCNTDQ, "avx512vpopcntdq", __AVX512VPOPCNTDQ__, 7, TTN_ECX, 14, TTN_SAVES_AVX512) \
    X(AVX512FP16, "avx512fp16", __AVX512FP16__, 7, TTN_EDX, 23, TTN_SAVES_AVX512)

#elif defined(__aarch64__)

/* getauxval's AT_HWCAP (0) or AT_HWCAP2 (1), and the bit */
#define TTN_CPU_FEATURES(X)                                      \
    X(CRC32, "crc32", __ARM_FEATURE_CRC32, 0, 7)                 \
    X(ATOMICS, "lse", __ARM_FEATURE_ATOMICS, 0, 8)               \
    X(FP16, "fp16", __ARM_FEATURE_FP16_VECTOR_ARITHMETIC, 0, 10) \
    X(RDM, "rdm", __ARM_FEATURE_QRDMX, 0, 12)                    \
    X(DOTPROD, "dotprod", __ARM_FEATURE_DOTPROD, 0, 20)          \
    X(SVE, "sve", __ARM_FEATURE_SVE, 0, 22)                      \
    X(SVE2, "sve2", __ARM_FEATURE_SVE2, 1, 1)                    \
    X(I8MM, "i8mm", __ARM_FEATURE_MATMUL_INT8, 1, 13)            \
    X(BF16, "bf16", __ARM_FEATURE_BF16_VECTOR_ARITHMETIC, 1, 14)

#else
#define TTN_CPU_FEATURES(X) X(NOTHING, "nothing known of this family", ttn_no_macro)
#endif

/* A set of features: bit TTN_CPU_AT_AVX2 is TTN_CPU(AVX2). */
typedef uint64_t ttn_cpu_set;

enum {
#define TTN_CPU_AT(name, ...) TTN_CPU_AT_##name,
    TTN_CPU_FEATURES(TTN_CPU_AT)
#undef TTN_CPU_AT
        TTN_N_CPU
};
#define TTN_CPU(name) ((ttn_cpu_set)1 << TTN_CPU_AT_##name)

/* What the compiler was allowed to use in this build. */
extern const ttn_cpu_set ttn_cpu_built;

/* What this processor has and the operating system lets it use. */
ttn_cpu_set ttn_cpu_present(void);

/* "avx2, fma"; "" for the empty set; cut at room. Returns text. */
char *ttn_cpu_names(ttn_cpu_set set, char *text, size_t room);

/* present holds all of needed; else TTN_EDEVICE with a sentence that says what is missing and how to build again. */
TTN_MUST_USE ttn_status ttn_cpu_compare(ttn_cpu_set needed, ttn_cpu_set present, ttn_error *err);

/* The same for this build on this processor: main's first call. */
TTN_MUST_USE ttn_status ttn_cpu_check(ttn_error *err);

#endif
