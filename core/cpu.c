#include <stdio.h>
#include <string.h>
#include "core/cpu.h"

static const char *const names[] = {
#define NAME(name, text, ...) text,
    TTN_CPU_FEATURES(NAME)
#undef NAME
};

#if defined(__x86_64__)

#include <cpuid.h>

/* Registers of cpuid, in the order in which they are stored below. */
enum { TTN_EAX, TTN_EBX, TTN_ECX, TTN_EDX, N_REGISTER };

/* Bits of XCR0: registers that the operating system saves. Without them the instructions are there and trap. */
enum {
    TTN_SAVES_SSE = 0,
    TTN_SAVES_AVX = 0x06,    /* xmm, ymm */
    TTN_SAVES_AVX512 = 0xE6, /* and masks, upper halves of zmm0-15, zmm16-31 */
};

static uint32_t saved_registers(void)
{
    enum { OSXSAVE = 1 << 27 };
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE)) return 0;
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static int has(uint32_t leaf, int where, int bit, uint32_t needs, uint32_t saved)
{
    uint32_t r[N_REGISTER];
    if (!__get_cpuid_count(leaf, 0, &r[TTN_EAX], &r[TTN_EBX], &r[TTN_ECX], &r[TTN_EDX])) return 0;
    return (r[where] >> bit & 1) && (saved & needs) == needs;
}

ttn_cpu_set ttn_cpu_present(void)
{
    ttn_cpu_set set = 0;
    uint32_t saved = saved_registers();
#define ADD(name, text, macro, leaf, where, bit, needs) \
    if (has(leaf, where, bit, needs, saved)) set |= TTN_CPU(name);
    TTN_CPU_FEATURES(ADD)
#undef ADD
    return set;
}

#elif defined(__aarch64__)

#include <sys/auxv.h>

ttn_cpu_set ttn_cpu_present(void)
{
    ttn_cpu_set set = 0;
    const unsigned long word[] = {getauxval(AT_HWCAP), getauxval(AT_HWCAP2)};
#define ADD(name, text, macro, which, bit) \
    if (word[which] >> bit & 1) set |= TTN_CPU(name);
    TTN_CPU_FEATURES(ADD)
#undef ADD
    return set;
}

#else

ttn_cpu_set ttn_cpu_present(void)
{
    return 0;
}

#endif

char *ttn_cpu_names(ttn_cpu_set set, char *text, size_t room)
{
    size_t used = 0;
    if (room > 0) text[0] = 0;
    for (int i = 0; i < TTN_N_CPU; i++) {
        if (!(set >> i & 1) || used >= room) continue;
        int n = snprintf(text + used, room - used, "%s%s", used > 0 ? ", " : "", names[i]);
        if (n > 0) used += (size_t)n;
    }
    return text;
}

ttn_status ttn_cpu_compare(ttn_cpu_set needed, ttn_cpu_set present, ttn_error *err)
{
    if ((needed & ~present) == 0) return TTN_OK;
    char needs[400], lacks[400];
    return TTN_FAIL(err, TTN_EDEVICE,
                    "this build is for a newer processor: it needs %s, this one lacks %s; build again on this machine "
                    "with `make clean && make`, or with ARCH=x86-64 for any of them",
                    ttn_cpu_names(needed, needs, sizeof needs), ttn_cpu_names(needed & ~present, lacks, sizeof lacks));
}

ttn_status ttn_cpu_check(ttn_error *err)
{
    return ttn_cpu_compare(ttn_cpu_built, ttn_cpu_present(), err);
}
