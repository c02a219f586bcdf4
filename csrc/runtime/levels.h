/* A function in three versions, for AVX-512, for AVX2 and for what every x86-64 has, of one body:
 *
 *     BY_LEVEL(static void, twist, (uint32_t *key), (key)) { ... }
 *
 * The call goes by flb_cpu_level(), so that FLAMBEAU_CPU chooses here too (GCC's target_clones ask the CPU
 * alone). BY_LEVEL_WITH adds attributes to the versions. */
#ifndef FLAMBEAU_LEVELS_H
#define FLAMBEAU_LEVELS_H

#define BY_LEVEL(type, name, params, args) BY_LEVEL_WITH(optimize("O3"), type, name, params, args)
#define BY_LEVEL_WITH(attributes, type, name, params, args) \
    BY_LEVEL_EXPANDED(attributes, type, name, params, args)

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__)
#define BY_LEVEL_EXPANDED(attributes, type, name, params, args)                                           \
    static inline __attribute__((always_inline)) void name##_body params;                                 \
    __attribute__((target("avx512f,avx512vl,avx512dq,fma"), attributes)) static void name##_wide params { \
        name##_body args;                                                                                 \
    }                                                                                                     \
    __attribute__((target("avx2,fma"), attributes)) static void name##_half params { name##_body args; }  \
    __attribute__((attributes)) static void name##_plain params { name##_body args; }                     \
    type name params {                                                                                    \
        int level = flb_cpu_level();                                                                      \
        (level == 2 ? name##_wide : level == 1 ? name##_half : name##_plain) args;                        \
    }                                                                                                     \
    static inline __attribute__((always_inline)) void name##_body params
#else
#define BY_LEVEL_EXPANDED(attributes, type, name, params, args) type name params
#endif
#endif
