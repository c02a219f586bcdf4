/* Softmax and layer normalization of small arrays in C order: what eager calls run where compiled graphs have
 * loops of their own.
 *
 * Sums along memory have 16 partial ones, which are added in a fixed order, whatever the processor. */
#include "runtime/graph.h"
#include "runtime/levels.h"
#include <math.h>
#include <string.h>

/* Each operation is rounded for itself, on every processor. */
#define EXACTLY optimize("O3", "fp-contract=off", "no-trapping-math", "no-math-errno")

enum { LANES = 16, HELD = 2048 };

/* The partial results of a line by `TERM` of x and the partial result p, then all of them by the same. */
#define FOLD(T, p, start, n, TERM)                                             \
    T p[LANES], x;                                                             \
    for (int k = 0; k < LANES; k++) p[k] = start;                              \
    for (; i + LANES <= n; i += LANES)                                         \
        for (int k = 0; k < LANES; k++) x = from[i + k], p[k] = TERM(p[k], x); \
    for (int k = 0; i < n; i++, k++) x = from[i], p[k] = TERM(p[k], x);        \
    for (int w = LANES / 2; w; w /= 2)                                         \
        for (int k = 0; k < w; k++) p[k] = TERM(p[k], p[k + w]);
#define GREATER(a, b) ((b) > (a) ? (b) : (a))
#define ADDED(a, b) ((a) + (b))
#define SQUARE_ADDED(a, b) ((a) + (b) * (b))

#define OF(T, f64)                                                                                         \
    static inline __attribute__((always_inline)) T top_##T(const T *from, int64_t n) {                     \
        int64_t i = 0;                                                                                     \
        FOLD(T, p, (T) - INFINITY, n, GREATER)                                                             \
        return p[0];                                                                                       \
    }                                                                                                      \
    static inline __attribute__((always_inline)) T sum_##T(const T *from, int64_t n) {                     \
        int64_t i = 0;                                                                                     \
        FOLD(T, p, 0, n, ADDED)                                                                            \
        return p[0];                                                                                       \
    }                                                                                                      \
    /* What is left of each (n, inner) by the greatest of each column, in `to` and `again`. */             \
    BY_LEVEL_WITH(EXACTLY, static void, lowered_##T,                                                       \
                  (const T *from, T *to, T *again, T *top, int64_t count, int64_t n, int64_t inner),       \
                  (from, to, again, top, count, n, inner)) {                                               \
        for (; count--; from += n * inner, to += n * inner, again += n * inner) {                          \
            if (inner == 1) {                                                                              \
                T most = top_##T(from, n);                                                                 \
                for (int64_t i = 0; i < n; i++) to[i] = again[i] = from[i] - most;                         \
                continue;                                                                                  \
            }                                                                                              \
            for (int64_t j = 0; j < inner; j++) top[j] = (T) - INFINITY;                                   \
            for (int64_t i = 0; i < n; i++)                                                                \
                for (int64_t j = 0; j < inner; j++) top[j] = GREATER(top[j], from[i * inner + j]);         \
            for (int64_t i = 0; i < n; i++)                                                                \
                for (int64_t j = 0; j < inner; j++)                                                        \
                    to[i * inner + j] = again[i * inner + j] = from[i * inner + j] - top[j];               \
        }                                                                                                  \
    }                                                                                                      \
    BY_LEVEL_WITH(EXACTLY, static void, sums_##T,                                                          \
                  (const T *from, T *sums, int64_t count, int64_t n, int64_t inner),                       \
                  (from, sums, count, n, inner)) {                                                         \
        for (; count--; from += n * inner, sums += inner) {                                                \
            if (inner == 1) {                                                                              \
                *sums = sum_##T(from, n);                                                                  \
                continue;                                                                                  \
            }                                                                                              \
            for (int64_t j = 0; j < inner; j++) sums[j] = 0;                                               \
            for (int64_t i = 0; i < n; i++)                                                                \
                for (int64_t j = 0; j < inner; j++) sums[j] += from[i * inner + j];                        \
        }                                                                                                  \
    }                                                                                                      \
    BY_LEVEL_WITH(                                                                                         \
        EXACTLY, static void, finished_##T,                                                                \
        (const T *from, T *to, const T *sums, int64_t count, int64_t n, int64_t inner, int logarithm),     \
        (from, to, sums, count, n, inner, logarithm)) {                                                    \
        for (; count--; from += n * inner, to += n * inner, sums += inner) {                               \
            if (inner == 1 && logarithm)                                                                   \
                for (int64_t i = 0; i < n; i++) to[i] -= *sums;                                            \
            else if (inner == 1)                                                                           \
                for (int64_t i = 0; i < n; i++) to[i] = from[i] / *sums;                                   \
            else if (logarithm)                                                                            \
                for (int64_t i = 0; i < n; i++)                                                            \
                    for (int64_t j = 0; j < inner; j++) to[i * inner + j] -= sums[j];                      \
            else                                                                                           \
                for (int64_t i = 0; i < n; i++)                                                            \
                    for (int64_t j = 0; j < inner; j++) to[i * inner + j] = from[i * inner + j] / sums[j]; \
        }                                                                                                  \
    }                                                                                                      \
    /* `count` blocks of (n, inner); `held` has room for them, their sums and the greatest of one, and 32  \
     * more. */                                                                                            \
    static void softmax_##T(const T *from, T *to, T *held, int64_t count, int64_t n, int64_t inner,        \
                            int logarithm) {                                                               \
        int64_t each = n * inner, all = count * each;                                                      \
        T *sums = held + ((all + 15) & -16), *top = sums + ((count * inner + 15) & -16);                   \
        lowered_##T(from, to, held, top, count, n, inner);                                                 \
        for (int64_t i = all; i < ((all + 15) & -16); i++) held[i] = 0;                                    \
        char *at[] = {(char *)held, (char *)held};                                                         \
        flb_element_block("exp", f64)(at, (all + 15) & -16);                                               \
        sums_##T(held, sums, count, n, inner);                                                             \
        if (logarithm) {                                                                                   \
            for (int64_t i = count * inner; i < ((count * inner + 15) & -16); i++) sums[i] = 1;            \
            at[0] = at[1] = (char *)sums;                                                                  \
            flb_element_block("log", f64)(at, (count * inner + 15) & -16);                                 \
        }                                                                                                  \
        finished_##T(held, to, sums, count, n, inner, logarithm);                                          \
    }                                                                                                      \
    BY_LEVEL_WITH(EXACTLY, static void, normal_##T,                                                        \
                  (const T *from, const T *weight, const T *bias, T *to, T *mean, T *rstd, int64_t rows,   \
                   int64_t n, T eps),                                                                      \
                  (from, weight, bias, to, mean, rstd, rows, n, eps)) {                                    \
        for (; rows--; from += n, to += n) {                                                               \
            T middle = sum_##T(from, n) / (T)n;                                                            \
            for (int64_t i = 0; i < n; i++) to[i] = from[i] - middle;                                      \
            T square = squares_##T(to, n) / (T)n, scale = 1 / (T)sqrt(square + eps);                       \
            *mean++ = middle, *rstd++ = scale;                                                             \
            for (int64_t i = 0; i < n; i++) to[i] = to[i] * scale;                                         \
            if (weight)                                                                                    \
                for (int64_t i = 0; i < n; i++) to[i] = to[i] * weight[i];                                 \
            if (bias)                                                                                      \
                for (int64_t i = 0; i < n; i++) to[i] = to[i] + bias[i];                                   \
        }                                                                                                  \
    }
#define SQUARES(T)                                                                         \
    static inline __attribute__((always_inline)) T squares_##T(const T *from, int64_t n) { \
        int64_t i = 0;                                                                     \
        T p[LANES] = {0};                                                                  \
        for (; i + LANES <= n; i += LANES)                                                 \
            for (int k = 0; k < LANES; k++) p[k] = SQUARE_ADDED(p[k], from[i + k]);        \
        for (int k = 0; i < n; i++, k++) p[k] = SQUARE_ADDED(p[k], from[i]);               \
        for (int w = LANES / 2; w; w /= 2)                                                 \
            for (int k = 0; k < w; k++) p[k] = p[k] + p[k + w];                            \
        return p[0];                                                                       \
    }
SQUARES(float)
SQUARES(double)
OF(float, 0)
OF(double, 1)

FLB_KERNEL(softmax) {
    int64_t outer = v->source.shape[0], width = v->source.shape[1], inner = v->source.shape[2],
            each = width * inner;
    if (outer < 1 || each < 1) return 0;
    int64_t count = each < HELD ? HELD / each : 1, item = n->f64 ? 8 : 4;
    if (count > outer) count = outer;
    /* As many blocks as go into the stack, else one. */
    _Alignas(64) char local[2 * (HELD + 64) * sizeof(double)];
    size_t room = (size_t)(count * each + (count + 1) * inner + 64) * (size_t)item;
    char *held = room <= sizeof local ? local : flb_api->malloc(room + 64);
    if (!held) return -1;
    char *start = (char *)(((uintptr_t)held + 63) & ~(uintptr_t)63);
    for (int64_t i = 0; i < outer; i += count) {
        int64_t now = outer - i < count ? outer - i : count, at = i * each * item;
        if (n->f64)
            softmax_double((const double *)(v->source.ptr + at), (double *)(v->made.ptr + at),
                           (double *)start, now, width, inner, n->logarithm != 0);
        else
            softmax_float((const float *)(v->source.ptr + at), (float *)(v->made.ptr + at), (float *)start,
                          now, width, inner, n->logarithm != 0);
    }
    if (held != local) flb_api->free(held);
    return 0;
}

FLB_KERNEL(layer_norm) {
    int64_t rows = v->source.shape[0], width = v->source.shape[1];
#define ALL(T)                                                                                       \
    normal_##T((const T *)v->source.ptr, v->weight.ndim < 0 ? NULL : (const T *)v->weight.ptr,       \
               v->bias.ndim < 0 ? NULL : (const T *)v->bias.ptr, (T *)v->made.ptr, (T *)v->mean.ptr, \
               (T *)v->rstd.ptr, rows, width, (T)n->eps)
    if (width < 1) return 0;
    if (n->f64) ALL(double);
    else ALL(float);
    return 0;
}
