/* Which processor may run this build. */
#include <string.h>
#include "core/cpu.h"
#include "tests/harness/test.h"

static void this_processor_runs_this_build(void **state)
{
    (void)state;
    ttn_error err = {0};
    assert_ok(ttn_cpu_check(&err), &err);
    assert_int_equal(ttn_cpu_built & ~ttn_cpu_present(), 0);
}

/* This file is compiled with ARCH, as core/cpu_built.c should be. */
static void what_is_built_is_what_the_compiler_may_use(void **state)
{
    (void)state;
#if defined(__x86_64__)
#define MAY(macro)  (sizeof TEXT(macro) == sizeof "1")
#define TEXT(macro) #macro
    assert_int_equal((ttn_cpu_built & TTN_CPU(AVX2)) != 0, MAY(__AVX2__));
    assert_int_equal((ttn_cpu_built & TTN_CPU(FMA)) != 0, MAY(__FMA__));
    assert_int_equal((ttn_cpu_built & TTN_CPU(POPCNT)) != 0, MAY(__POPCNT__));
    assert_int_equal((ttn_cpu_built & TTN_CPU(AVX512F)) != 0, MAY(__AVX512F__));
#else
    skip_because("no table of instruction sets to compare with");
#endif
}

/* gcc knows some of them by name: another reading of the same registers. */
static void present_agrees_with_the_compilers_own_reading(void **state)
{
    (void)state;
#if defined(__x86_64__)
    ttn_cpu_set present = ttn_cpu_present();
    __builtin_cpu_init();
#define SAME(name, text) assert_int_equal((present & TTN_CPU(name)) != 0, __builtin_cpu_supports(text) != 0)
    SAME(SSE3, "sse3");
    SAME(SSSE3, "ssse3");
    SAME(SSE4_1, "sse4.1");
    SAME(SSE4_2, "sse4.2");
    SAME(POPCNT, "popcnt");
    SAME(BMI, "bmi");
    SAME(BMI2, "bmi2");
    SAME(AVX, "avx");
    SAME(FMA, "fma");
    SAME(FMA4, "fma4");
    SAME(XOP, "xop");
    SAME(AVX2, "avx2");
    SAME(AVX512F, "avx512f");
    SAME(AVX512DQ, "avx512dq");
    SAME(AVX512CD, "avx512cd");
    SAME(AVX512BW, "avx512bw");
    SAME(AVX512VL, "avx512vl");
    SAME(AVX512IFMA, "avx512ifma");
    SAME(AVX512VBMI, "avx512vbmi");
    SAME(AVX512VBMI2, "avx512vbmi2");
    SAME(AVX512VNNI, "avx512vnni");
    SAME(AVX512BITALG, "avx512bitalg");
    SAME(AVX512VPOPCNTDQ, "avx512vpopcntdq");
#else
    skip_because("no other reading on this family");
#endif
}

static void a_feature_that_is_missing_is_named(void **state)
{
    (void)state;
#if defined(__x86_64__)
    const ttn_cpu_set needs = TTN_CPU(AVX2) | TTN_CPU(FMA) | TTN_CPU(AVX512F);
    ttn_error err = {0};
    assert_ok(ttn_cpu_compare(needs, needs | TTN_CPU(SSE3), &err), &err);
    assert_fails(ttn_cpu_compare(needs, TTN_CPU(AVX2) | TTN_CPU(FMA), &err), TTN_EDEVICE, &err,
                 "it needs fma, avx2, avx512f, this one lacks avx512f;");
    assert_contains(err.text, "`make clean && make`");
    assert_contains(err.text, "ARCH=x86-64");
    assert_null(strchr(err.text, '\n'));
#else
    skip_because("no names on this family");
#endif
}

/* The longest sentence is whole: nothing of the advice at its end is cut off. */
static void all_features_missing_fit_into_the_message(void **state)
{
    (void)state;
    ttn_error err = {0};
    assert_fails(ttn_cpu_compare(((ttn_cpu_set)1 << TTN_N_CPU) - 1, 0, &err), TTN_EDEVICE, &err, "for any of them");
}

static void names_are_cut_at_their_room(void **state)
{
    (void)state;
    char text[8];
    memset(text, 'x', sizeof text);
    assert_string_equal(ttn_cpu_names(0, text, sizeof text), "");
    ttn_cpu_names(((ttn_cpu_set)1 << TTN_N_CPU) - 1, text, sizeof text - 1);
    assert_int_equal(strlen(text), sizeof text - 2);
    assert_int_equal(text[sizeof text - 1], 'x');
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(this_processor_runs_this_build),
        cmocka_unit_test(what_is_built_is_what_the_compiler_may_use),
        cmocka_unit_test(present_agrees_with_the_compilers_own_reading),
        cmocka_unit_test(a_feature_that_is_missing_is_named),
        cmocka_unit_test(all_features_missing_fit_into_the_message),
        cmocka_unit_test(names_are_cut_at_their_room),
    };
    return ttn_test_run(tests);
}
