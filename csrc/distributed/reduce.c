/* Sums and the other reductions of equal arrays, for every dtype. */
#include <math.h>
#include <string.h>

#include "distributed/exchange.h"
#pragma GCC optimize("O3")

static const size_t sizes[N_TYPES] = {1, 1, 2, 4, 8, 2, 4, 8, 2, 2, 4, 8, 8, 16, 1};
size_t flb_type_size(int type) { return type < 0 || type >= N_TYPES ? 0 : sizes[type]; }

/* `out` and `b` are distinct or the same array: no overlap at a distance. */
#define LOOP(T, expression)              \
    {                                    \
        T *o = out;                      \
        const T *p = a, *q = b;          \
        for (size_t i = 0; i < n; i++) { \
            T x = p[i], y = q[i];        \
            o[i] = (T)(expression);      \
        }                                \
        return 0;                        \
    }

/* out = a op b of integers: sums wrap, as in PyTorch. */
#define INTEGERS(T, U)                               \
    switch (op) {                                    \
    case SUM:                                        \
    case AVG: LOOP(T, (U)x + (U)y)                   \
    case PRODUCT: LOOP(T, (uint64_t)x * (uint64_t)y) \
    case MIN: LOOP(T, x < y ? x : y)                 \
    case MAX: LOOP(T, x > y ? x : y)                 \
    case BAND: LOOP(T, x & y)                        \
    case BOR: LOOP(T, x | y)                         \
    case BXOR: LOOP(T, x ^ y)                        \
    }                                                \
    return -1;

/* NaN wins in minima and maxima. */
#define FLOATS(T)                              \
    switch (op) {                              \
    case SUM:                                  \
    case AVG: LOOP(T, x + y)                   \
    case PRODUCT: LOOP(T, x * y)               \
    case MIN: LOOP(T, x < y || x != x ? x : y) \
    case MAX: LOOP(T, x > y || x != x ? x : y) \
    }                                          \
    return -1;

#define COMPLEX(T)                                                 \
    {                                                              \
        T *o = out;                                                \
        const T *p = a, *q = b;                                    \
        if (op == SUM || op == AVG) {                              \
            for (size_t i = 0; i < 2 * n; i++) o[i] = p[i] + q[i]; \
            return 0;                                              \
        }                                                          \
        if (op != PRODUCT) return -1;                              \
        for (size_t i = 0; i < 2 * n; i += 2) {                    \
            T re = p[i] * q[i] - p[i + 1] * q[i + 1];              \
            T im = p[i] * q[i + 1] + p[i + 1] * q[i];              \
            o[i] = re, o[i + 1] = im;                              \
        }                                                          \
        return 0;                                                  \
    }

static int truths(int op, uint8_t *out, const uint8_t *a, const uint8_t *b, size_t n) {
    switch (op) {
    case SUM:
    case AVG:
    case MAX:
    case BOR: LOOP(uint8_t, (x | y) != 0)
    case PRODUCT:
    case MIN:
    case BAND: LOOP(uint8_t, x &&y)
    case BXOR: LOOP(uint8_t, !x != !y)
    }
    return -1;
}

static int two(int type, int op, void *out, const void *a, const void *b, size_t n) {
    switch (type) {
    case U8: INTEGERS(uint8_t, uint8_t)
    case I8: INTEGERS(int8_t, uint8_t)
    case I16: INTEGERS(int16_t, uint16_t)
    case I32: INTEGERS(int32_t, uint32_t)
    case I64: INTEGERS(int64_t, uint64_t)
    case U16: INTEGERS(uint16_t, uint16_t)
    case U32: INTEGERS(uint32_t, uint32_t)
    case U64: INTEGERS(uint64_t, uint64_t)
    case F32: FLOATS(float)
    case F64: FLOATS(double)
    case C64: COMPLEX(float)
    case C128: COMPLEX(double)
    case BOOL: return truths(op, out, a, b, n);
    }
    return -1;
}

/* ---- 16-bit floats ------------------------------------------------------------------------------------- */

static inline float bits_float(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}
static inline uint32_t float_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}
static inline float from_bf16(uint16_t h) { return bits_float((uint32_t)h << 16); }
static inline uint16_t to_bf16(float f) {
    uint32_t u = float_bits(f);
    uint32_t even = u + 0x7fff + (u >> 16 & 1);
    return (uint16_t)(f != f ? (u >> 16) | 0x40 : even >> 16);
}
/* Exact: a half's exponent and mantissa, moved into a float's place, are off by 2**112. */
static inline float from_f16(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff;
    float f = bits_float(rest << 13) * 0x1p112f;
    uint32_t u = rest >= 0x7c00 ? (rest << 13) | 0x7f800000 : float_bits(f);
    return bits_float(u | sign);
}
/* To nearest, ties to even. */
static inline uint16_t to_f16(float f) {
    uint32_t u = float_bits(f), sign = u >> 16 & 0x8000, a = u & 0x7fffffff, r;
    if (a > 0x7f800000) r = 0x7e00;
    else if (a >= 0x477ff000) r = 0x7c00;
    else if (a >= 0x38800000) r = (a + 0xfff + (a >> 13 & 1) - 0x38000000) >> 13;
    else r = float_bits(bits_float(a) + 0.5f) - 0x3f000000; /* the sum rounds at a subnormal's last bit */
    return (uint16_t)(sign | r);
}

enum { BLOCK = 1024 };
static void widen(int type, float *to, const uint16_t *from, size_t n) {
    if (type == BF16)
        for (size_t i = 0; i < n; i++) to[i] = from_bf16(from[i]);
    else
        for (size_t i = 0; i < n; i++) to[i] = from_f16(from[i]);
}
static int halves(int type, int op, uint16_t *out, const void *const *parts, int n, size_t count) {
    float sum[BLOCK], part[BLOCK];
    for (size_t at = 0; at < count; at += BLOCK) {
        size_t len = count - at < BLOCK ? count - at : BLOCK;
        widen(type, sum, (const uint16_t *)parts[0] + at, len);
        for (int k = 1; k < n; k++) {
            widen(type, part, (const uint16_t *)parts[k] + at, len);
            if (two(F32, op, sum, sum, part, len) < 0) return -1;
        }
        if (op == AVG)
            for (size_t i = 0; i < len; i++) sum[i] /= (float)n;
        if (type == BF16)
            for (size_t i = 0; i < len; i++) out[at + i] = to_bf16(sum[i]);
        else
            for (size_t i = 0; i < len; i++) out[at + i] = to_f16(sum[i]);
    }
    return 0;
}

/* ---- any number of parts ------------------------------------------------------------------------------- */

#define DIVIDE(T)                                             \
    for (size_t i = 0; i < count; i++) ((T *)out)[i] /= (T)n; \
    break;

static void divide(int type, void *out, int n, size_t count) {
    switch (type) {
    case U8: DIVIDE(uint8_t)
    case I8: DIVIDE(int8_t)
    case I16: DIVIDE(int16_t)
    case I32: DIVIDE(int32_t)
    case I64: DIVIDE(int64_t)
    case U16: DIVIDE(uint16_t)
    case U32: DIVIDE(uint32_t)
    case U64: DIVIDE(uint64_t)
    case F32: DIVIDE(float)
    case F64: DIVIDE(double)
    case C64: count *= 2; DIVIDE(float)
    case C128: count *= 2; DIVIDE(double)
    }
}

/* Several parts go by blocks that stay in cache: `out` may be one of the parts, so sums are made beside it.
 */
int flb_reduce(int type, int op, void *out, const void *const *parts, int n, size_t count) {
    size_t size = flb_type_size(type);
    if (!size || op < 0 || op >= N_OPS) return -1;
    if (n == 1) {
        if (out != parts[0]) memmove(out, parts[0], count * size);
        return 0;
    }
    if (type == F16 || type == BF16) return halves(type, op, out, parts, n, count);
    if (n == 2) {
        if (two(type, op, out, parts[0], parts[1], count) < 0) return -1;
        if (op == AVG) divide(type, out, n, count);
        return 0;
    }
    _Alignas(16) char sum[8192];
    size_t step = sizeof sum / size;
    for (size_t at = 0; at < count; at += step) {
        size_t len = count - at < step ? count - at : step, byte = at * size;
        if (two(type, op, sum, (const char *)parts[0] + byte, (const char *)parts[1] + byte, len) < 0)
            return -1;
        for (int k = 2; k < n; k++) two(type, op, sum, sum, (const char *)parts[k] + byte, len);
        if (op == AVG) divide(type, sum, n, len);
        memcpy((char *)out + byte, sum, len * size);
    }
    return 0;
}
