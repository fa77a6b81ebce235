/* Compiled with ARCH, unlike core/cpu.c: here the compiler's macros say what the rest of the build may use. */
#include "core/cpu.h"

/* A macro that is defined is 1, and "1" has two bytes; one that is not stays its own, longer name. */
#define BIT(name, text, macro, ...) | (sizeof TEXT(macro) == sizeof "1" ? TTN_CPU(name) : 0)
#define TEXT(macro)                 #macro

const ttn_cpu_set ttn_cpu_built = 0 TTN_CPU_FEATURES(BIT);
