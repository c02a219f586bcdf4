/* Inner loops that NumPy has no ufunc for, with a ufunc's signature: copies, casts, where. */
#include "core/call_plan.h"
#include "runtime/cpu_level.h"
#include "runtime/levels.h"
#include <string.h>

/* Loops over elements side by side; the result may lie where an operand of its size does. */
#define SIDE_BY_SIDE(name, params, args) \
    BY_LEVEL_WITH(optimize("O3", "no-trapping-math"), static void, name, params, args)

#define LOOP(NAME) static void NAME(char **args, const npy_intp *dims, const npy_intp *steps, void *data)

enum { FILLED = 64 }; /* elements that are written one by one */

/* What is at `to` again up to `size` bytes, of which `done` are there: a block that stays in the first-level
 * cache, and copies of it. */
static void repeat(char *to, size_t done, size_t size) {
    for (; done < size && done < 4096; done *= 2)
        memcpy(to + done, to, done < size - done ? done : size - done);
    for (size_t block = done; done < size; done += block)
        memcpy(to + done, to, block < size - done ? block : size - done);
}

#define COPY(T, NAME)                                                                                       \
    LOOP(copy_##NAME) {                                                                                     \
        npy_intp n = dims[0], s = steps[0], d = steps[1];                                                   \
        char *a = args[0], *b = args[1];                                                                    \
        if (s == (npy_intp)sizeof(T) && d == (npy_intp)sizeof(T)) {                                         \
            memmove(b, a, n * sizeof(T));                                                                   \
            return;                                                                                         \
        }                                                                                                   \
        if (!s && d == (npy_intp)sizeof(T) && n) {                                                          \
            T value = *(T *)a, *to = (T *)b;                                                                \
            for (npy_intp i = 0; i < n && i < FILLED; i++) to[i] = value;                                   \
            if (n > FILLED) repeat(b, FILLED * sizeof(T), (size_t)n * sizeof(T));                           \
            return;                                                                                         \
        }                                                                                                   \
        for (npy_intp i = 0; i < n; i++, a += s, b += d) *(T *)b = *(T *)a;                                 \
    }                                                                                                       \
    /* One of two lines; a value that is the same for all is a line of its own stride 0. */                 \
    SIDE_BY_SIDE(select_lines_##NAME,                                                                       \
                 (const npy_bool *c, const T *a, const T *b, T *o, npy_intp n, int way),                    \
                 (c, a, b, o, n, way)) {                                                                    \
        T x = *a, y = *b;                                                                                   \
        if (way == 0) _Pragma("GCC ivdep") for (npy_intp i = 0; i < n; i++) o[i] = c[i] ? x : y;            \
        else if (way == 1) _Pragma("GCC ivdep") for (npy_intp i = 0; i < n; i++) {                          \
                T v = a[i];                                                                                 \
                o[i] = c[i] ? v : y;                                                                        \
            }                                                                                               \
        else if (way == 2) _Pragma("GCC ivdep") for (npy_intp i = 0; i < n; i++) {                          \
                T v = b[i];                                                                                 \
                o[i] = c[i] ? x : v;                                                                        \
            }                                                                                               \
        else _Pragma("GCC ivdep") for (npy_intp i = 0; i < n; i++) {                                        \
                T v = a[i], w = b[i];                                                                       \
                o[i] = c[i] ? v : w;                                                                        \
            }                                                                                               \
    }                                                                                                       \
    LOOP(select_##NAME) {                                                                                   \
        npy_intp n = dims[0], item = (npy_intp)sizeof(T);                                                   \
        char *c = args[0], *a = args[1], *b = args[2], *o = args[3];                                        \
        int each_a = steps[1] == item, each_b = steps[2] == item;                                           \
        if (n > 3 && steps[0] == 1 && steps[3] == item && (each_a || !steps[1]) && (each_b || !steps[2])) { \
            select_lines_##NAME((npy_bool *)c, (T *)a, (T *)b, (T *)o, n, each_a + 2 * each_b);             \
            return;                                                                                         \
        }                                                                                                   \
        for (npy_intp i = 0; i < n; i++, c += steps[0], a += steps[1], b += steps[2], o += steps[3])        \
            *(T *)o = *(npy_bool *)c ? *(T *)a : *(T *)b;                                                   \
    }
typedef struct {
    uint64_t a, b;
} bytes16;
COPY(uint8_t, 1)
COPY(uint16_t, 2)
COPY(uint32_t, 4)
COPY(uint64_t, 8)
COPY(bytes16, 16)
PyUFuncGenericFunction flb_copy_loop(int itemsize) {
    return itemsize == 1 ? copy_1
        : itemsize == 2  ? copy_2
        : itemsize == 4  ? copy_4
        : itemsize == 8  ? copy_8
        : itemsize == 16 ? copy_16
                         : NULL;
}
PyUFuncGenericFunction flb_select_loop(int itemsize) {
    return itemsize == 1 ? select_1
        : itemsize == 2  ? select_2
        : itemsize == 4  ? select_4
        : itemsize == 8  ? select_8
        : itemsize == 16 ? select_16
                         : NULL;
}

/* Casts as C does them, to bool: != 0. Floating values go to integers by way of int32, to int64 directly; out
   of range and nan become the least number of that type. So does x86 in NumPy's and PyTorch's loops and in
   compiled code; in C it has to be said. */
#define TO_SAME(v, T) (T)(v)
#define TO_INT(v, T) (T)((v) >= -0x1p31 && (v) < 0x1p31 ? (int32_t)(v) : INT32_MIN)
#define TO_LONG(v, T) (T)((v) >= -0x1p63 && (v) < 0x1p63 ? (int64_t)(v) : INT64_MIN)
#define TO_BOOL(v, T) (v) != 0
#define CAST(F, FROM, T, TO, CONVERT)                                                   \
    SIDE_BY_SIDE(line_##FROM##_##TO, (const F *x, T *y, npy_intp n), (x, y, n)) {       \
        _Pragma("GCC ivdep") for (npy_intp i = 0; i < n; i++) y[i] = CONVERT(x[i], T);  \
    }                                                                                   \
    LOOP(cast_##FROM##_##TO) {                                                          \
        npy_intp n = dims[0], s = steps[0], d = steps[1];                               \
        char *a = args[0], *b = args[1];                                                \
        if (s == (npy_intp)sizeof(F) && d == (npy_intp)sizeof(T)) {                     \
            line_##FROM##_##TO((const F *)a, (T *)b, n);                                \
            return;                                                                     \
        }                                                                               \
        for (npy_intp i = 0; i < n; i++, a += s, b += d) *(T *)b = CONVERT(*(F *)a, T); \
    }
#define CASTS(F, FROM, NARROW, LONG)    \
    CAST(F, FROM, npy_bool, b, TO_BOOL) \
    CAST(F, FROM, int8_t, i1, NARROW)   \
    CAST(F, FROM, uint8_t, u1, NARROW)  \
    CAST(F, FROM, int16_t, i2, NARROW)  \
    CAST(F, FROM, int32_t, i4, NARROW)  \
    CAST(F, FROM, int64_t, i8, LONG) CAST(F, FROM, float, f4, TO_SAME) CAST(F, FROM, double, f8, TO_SAME)
CASTS(npy_bool, b, TO_SAME, TO_SAME)
CASTS(int8_t, i1, TO_SAME, TO_SAME)
CASTS(uint8_t, u1, TO_SAME, TO_SAME)
CASTS(int16_t, i2, TO_SAME, TO_SAME)
CASTS(int32_t, i4, TO_SAME, TO_SAME)
CASTS(int64_t, i8, TO_SAME, TO_SAME)
CASTS(float, f4, TO_INT, TO_LONG)
CASTS(double, f8, TO_INT, TO_LONG)
#define ROW(FROM)                                                            \
    {cast_##FROM##_b,  cast_##FROM##_i1, cast_##FROM##_u1, cast_##FROM##_i2, \
     cast_##FROM##_i4, cast_##FROM##_i8, cast_##FROM##_f4, cast_##FROM##_f8}
static const PyUFuncGenericFunction casts[8][8] = {ROW(b),  ROW(i1), ROW(u1), ROW(i2),
                                                   ROW(i4), ROW(i8), ROW(f4), ROW(f8)};

/* 16-bit floating point to and from float32, rounding to the nearest, ties to even. NaN stays NaN. */
static inline float from_half(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, bits = (uint32_t)(h & 0x7fff) << 13,
             exponent = bits & 0x0f800000;
    float v;
    if (exponent == 0x0f800000) bits += (uint32_t)(255 - 31) << 23; /* infinite or NaN */
    else if (exponent) bits += (uint32_t)(127 - 15) << 23;
    else { /* zero or subnormal: normalize by a subtraction */ bits += (uint32_t)(127 - 14) << 23;
        memcpy(&v, &bits, 4);
        v -= 0x1p-14f;
        memcpy(&bits, &v, 4);
    }
    bits |= sign;
    memcpy(&v, &bits, 4);
    return v;
}
/* All three cases are computed: without jumps it is vector code. */
static inline uint16_t to_half(float v) {
    uint32_t bits, sign, small;
    memcpy(&bits, &v, 4);
    sign = bits >> 16 & 0x8000;
    bits &= 0x7fffffff;
    float x; /* subnormal: a sum rounds it */
    memcpy(&x, &bits, 4);
    x += 0x1p-1f;
    memcpy(&small, &x, 4);
    small -= 0x3f000000;
    uint32_t usual = (bits + 0xfff + (bits >> 13 & 1) - ((uint32_t)(127 - 15) << 23)) >> 13;
    uint32_t large = bits > 0x7f800000 ? 0x7e00 : 0x7c00; /* NaN; from 65536 on infinite */
    return (uint16_t)(sign | (bits >= 0x47800000 ? large : bits < 0x38800000 ? small : usual));
}
static inline uint16_t to_bfloat16(float v) {
    uint32_t bits;
    memcpy(&bits, &v, 4);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)(v != v ? (bits >> 16 & 0x8000) | 0x7fc0 : rounded);
}
#define NARROW(NAME, F, T, CONVERT)                                                  \
    SIDE_BY_SIDE(line_##NAME, (const F *x, T *y, npy_intp n), (x, y, n)) {           \
        _Pragma("GCC ivdep") for (npy_intp i = 0; i < n; i++) y[i] = CONVERT(x[i]);  \
    }                                                                                \
    LOOP(NAME) {                                                                     \
        npy_intp n = dims[0], s = steps[0], d = steps[1];                            \
        char *a = args[0], *b = args[1];                                             \
        if (s == (npy_intp)sizeof(F) && d == (npy_intp)sizeof(T)) {                  \
            line_##NAME((const F *)a, (T *)b, n);                                    \
            return;                                                                  \
        }                                                                            \
        for (npy_intp i = 0; i < n; i++, a += s, b += d) *(T *)b = CONVERT(*(F *)a); \
    }
NARROW(cast_half_f4, uint16_t, float, from_half)
NARROW(cast_f4_half, float, uint16_t, to_half)
NARROW(cast_bfloat16_f4, uint16_t, float, flb_bfloat16_value)
NARROW(cast_f4_bfloat16, float, uint16_t, to_bfloat16)

static int cast_index(int num) {
    switch (num) {
    case NPY_BOOL: return 0;
    case NPY_INT8: return 1;
    case NPY_UINT8: return 2;
    case NPY_INT16: return 3;
    case NPY_INT32: return 4;
    case NPY_INT64: return 5;
    case NPY_FLOAT: return 6;
    case NPY_DOUBLE: return 7;
    }
    return -1;
}
PyUFuncGenericFunction flb_cast_loop(int from, int to) {
    if (from == NPY_FLOAT && to == NPY_HALF) return cast_f4_half;
    if (from == NPY_HALF && to == NPY_FLOAT) return cast_half_f4;
    if (from == NPY_FLOAT && to == flb_bfloat16_num) return cast_f4_bfloat16;
    if (from == flb_bfloat16_num && to == NPY_FLOAT) return cast_bfloat16_f4;
    int f = cast_index(from), t = cast_index(to);
    return f < 0 || t < 0 ? NULL : casts[f][t];
}

/* The larger or smaller of each element of a line and a number, which NumPy hasn't vectorised: with its bits,
 * nan where either is one, the number at a tie (of zeros). */
#define LIMIT(T, NAME, WAY, BEYOND)                                                      \
    SIDE_BY_SIDE(WAY##_line_##NAME, (const T *a, T b, T *o, npy_intp n), (a, b, o, n)) { \
        _Pragma("GCC ivdep") for (npy_intp i = 0; i < n; i++) {                          \
            T v = a[i];                                                                  \
            o[i] = v BEYOND b ? b : v;                                                   \
        }                                                                                \
    }                                                                                    \
    LOOP(WAY##_number_##NAME) {                                                          \
        const T *a = (const T *)args[0];                                                 \
        T b = *(const T *)args[1], *o = (T *)args[2];                                    \
        if (b == b) {                                                                    \
            WAY##_line_##NAME(a, b, o, dims[0]);                                         \
            return;                                                                      \
        }                                                                                \
        for (npy_intp i = 0; i < dims[0]; i++) o[i] = a[i] != a[i] ? a[i] : b;           \
    }
#define BOTH(T, NAME, TYPE) LIMIT(T, NAME, maximum, <=) LIMIT(T, NAME, minimum, >=)
#define FOR_LIMITS(DO)             \
    DO(npy_float, f4, NPY_FLOAT)   \
    DO(npy_double, f8, NPY_DOUBLE) \
    DO(npy_int8, i1, NPY_BYTE)     \
    DO(npy_uint8, u1, NPY_UBYTE)   \
    DO(npy_int16, i2, NPY_SHORT)   \
    DO(npy_int32, i4, NPY_INT)     \
    DO(npy_int64, i8, NPY_LONG)
FOR_LIMITS(BOTH)

/* Greatest common divisors of some numbers at a time by halves and differences (Stein's algorithm), where
 * NumPy's loop divides: a step is the same for all of them, and the odd part of those that are done stays in
 * `a`. */
enum { DIVISORS = 16 };
#define DIVISORS_OF(U, BITS)                                                                  \
    SIDE_BY_SIDE(halve_##BITS, (U *restrict a, U *restrict b), (a, b)) {                      \
        U rest;                                                                               \
        do {                                                                                  \
            rest = 0;                                                                         \
            _Pragma("GCC ivdep") _Pragma("GCC unroll 1") for (int i = 0; i < DIVISORS; i++) { \
                U x = a[i], y = b[i], less = x < y ? x : y, apart = x < y ? y - x : x - y;    \
                U odd = (U)0 - (y & 1);                                                       \
                a[i] = (less & odd) | (x & ~odd);                                             \
                b[i] = ((apart & odd) | (y & ~odd)) >> 1;                                     \
                rest |= b[i];                                                                 \
            }                                                                                 \
        } while (rest);                                                                       \
    }                                                                                         \
    static void common_divisors_##BITS(const U *a, const U *b, U *to) {                       \
        U odd[DIVISORS], other[DIVISORS];                                                     \
        unsigned char twos[DIVISORS];                                                         \
        for (int i = 0; i < DIVISORS; i++) {                                                  \
            uint64_t x = a[i], y = b[i];                                                      \
            twos[i] = x && y ? (unsigned char)__builtin_ctzll(x | y) : 0;                     \
            odd[i] = x && y ? (U)(x >> __builtin_ctzll(x)) : (U)(x | y);                      \
            other[i] = x ? (U)y : 0;                                                          \
        }                                                                                     \
        halve_##BITS(odd, other);                                                             \
        for (int i = 0; i < DIVISORS; i++) to[i] = odd[i] << twos[i];                         \
    }                                                                                         \
    static void common_multiples_##BITS(const U *a, const U *b, U *to) {                      \
        common_divisors_##BITS(a, b, to);                                                     \
        for (int i = 0; i < DIVISORS; i++) to[i] = to[i] ? a[i] / to[i] * b[i] : 0;           \
    }
DIVISORS_OF(uint32_t, 32)
DIVISORS_OF(uint64_t, 64)
#define OF_TWO(T, NAME, U, FN, OF_SOME)                                               \
    LOOP(FN##_##NAME) {                                                               \
        char *x = args[0], *y = args[1], *o = args[2];                                \
        U a[DIVISORS] = {0}, b[DIVISORS] = {0}, to[DIVISORS];                         \
        for (npy_intp at = 0; at < dims[0]; at += DIVISORS) {                         \
            int n = dims[0] - at < DIVISORS ? (int)(dims[0] - at) : DIVISORS;         \
            for (int i = 0; i < n; i++, x += steps[0], y += steps[1]) {               \
                T v = *(T *)x, w = *(T *)y;                                           \
                a[i] = v < 0 ? (U)0 - (U)v : (U)v, b[i] = w < 0 ? (U)0 - (U)w : (U)w; \
            }                                                                         \
            OF_SOME(a, b, to);                                                        \
            for (int i = 0; i < n; i++, o += steps[2]) *(T *)o = (T)to[i];            \
        }                                                                             \
    }
#define DIVISORS_AND_MULTIPLES(T, NAME, TYPE, BITS)                         \
    OF_TWO(T, NAME, uint##BITS##_t, common_divisor, common_divisors_##BITS) \
    OF_TWO(T, NAME, uint##BITS##_t, common_multiple, common_multiples_##BITS)
#define FOR_INTEGERS(DO)             \
    DO(npy_int8, i1, NPY_BYTE, 32)   \
    DO(npy_uint8, u1, NPY_UBYTE, 32) \
    DO(npy_int16, i2, NPY_SHORT, 32) \
    DO(npy_int32, i4, NPY_INT, 32)   \
    DO(npy_int64, i8, NPY_LONG, 64)
FOR_INTEGERS(DIVISORS_AND_MULTIPLES)

PyUFuncGenericFunction flb_own_loop(const char *ufunc, int type, const npy_intp *steps) {
    int beside;
#define CHOOSE(T, NAME, TYPE)                                                                 \
    beside = steps[0] == (npy_intp)sizeof(T) && !steps[1] && steps[2] == (npy_intp)sizeof(T); \
    if (type == TYPE && beside && !strcmp(ufunc, "maximum")) return maximum_number_##NAME;    \
    if (type == TYPE && beside && !strcmp(ufunc, "minimum")) return minimum_number_##NAME;
    FOR_LIMITS(CHOOSE)
#define CHOOSE_DIVISORS(T, NAME, TYPE, BITS)                                 \
    if (type == TYPE && !strcmp(ufunc, "gcd")) return common_divisor_##NAME; \
    if (type == TYPE && !strcmp(ufunc, "lcm")) return common_multiple_##NAME;
    FOR_INTEGERS(CHOOSE_DIVISORS)
    return NULL;
}
