/* What the CPU has, lowered by FLAMBEAU_CPU=avx2 or FLAMBEAU_CPU=default: 2: AVX-512, 1: AVX2, 0: neither. */
#ifndef FLAMBEAU_CPU_LEVEL_H
#define FLAMBEAU_CPU_LEVEL_H
#include <stdlib.h>
#include <string.h>

static inline int flb_cpu_level(void) {
    static int level = -1;
    if (level >= 0) return level;
    int found = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found = 1;
    if (found && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq"))
        found = 2;
#endif
    const char *most = getenv("FLAMBEAU_CPU");
    if (most && !strcmp(most, "avx2") && found > 1) found = 1;
    if (most && !strcmp(most, "default")) found = 0;
    return level = found;
}

static inline int flb_is_amd(void) {
    static int known = -1;
#if defined(__x86_64__)
    if (known < 0) __builtin_cpu_init(), known = __builtin_cpu_is("amd") != 0;
#endif
    return known > 0;
}

/* Whether loads of 64 bytes keep multiply-adds waiting: Intel's processors make one a cycle beside two of
 * those, so a register kernel has as many multiply-adds a load as registers allow. */
static inline int flb_few_loads(void) { return flb_cpu_level() == 2 && !flb_is_amd(); }
#endif
