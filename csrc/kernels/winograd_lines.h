/* What Winograd's convolutions share: the transforms of one dimension, products at a place, planes of a
 * vector of channels; float32. The points are told in winograd.c. */
#ifndef FLAMBEAU_WINOGRAD_LINES_H
#define FLAMBEAU_WINOGRAD_LINES_H
#include "kernels/conv_lanes.h"
#include <string.h>

#define A1 0.70710678118654752f /* the points: A1, A2 and their negatives, 0, infinity */
#define A2 1.41421356237309505f
#define NA (-1.f / 1.5f) /* one over the product of a point's distances to the others */
#define NB (1.f / 6.f)

/* ---- transforms of one dimension: n vectors at `from`, `step` vectors apart, to `to`, `by` apart ------- */

LINE input_line(const V *from, int64_t step, V *to, int64_t by) {
    V d0 = from[0], d1 = from[step], d2 = from[2 * step], d3 = from[3 * step], d4 = from[4 * step],
      d5 = from[5 * step];
    V u = d4 - 2.f * d2, v = A1 * (d3 - 2.f * d1), p = d4 - .5f * d2, q = A2 * (d3 - .5f * d1);
    to[0] = d0 - 2.5f * d2 + d4;
    to[by] = u + v, to[2 * by] = u - v, to[3 * by] = p + q, to[4 * by] = p - q;
    to[5 * by] = d1 - 2.5f * d3 + d5;
}

/* 3 taps, or a cotangent's 4 outputs, at the points. */
LINE three_line(const V *from, int64_t step, V *to, int64_t by) {
    V g0 = from[0], g1 = from[step], g2 = from[2 * step];
    V u = NA * (g0 + .5f * g2), v = NA * A1 * g1, p = NB * (g0 + 2.f * g2), q = NB * A2 * g1;
    to[0] = g0, to[by] = u + v, to[2 * by] = u - v, to[3 * by] = p + q, to[4 * by] = p - q, to[5 * by] = g2;
}

LINE four_line(const V *from, int64_t step, V *to, int64_t by) {
    V g0 = from[0], g1 = from[step], g2 = from[2 * step], g3 = from[3 * step];
    V u = NA * (g0 + .5f * g2), v = NA * A1 * (g1 + .5f * g3), p = NB * (g0 + 2.f * g2),
      q = NB * A2 * (g1 + 2.f * g3);
    to[0] = g0, to[by] = u + v, to[2 * by] = u - v, to[3 * by] = p + q, to[4 * by] = p - q, to[5 * by] = g3;
}

/* Back from the points: 4 outputs, or 3 taps. */
LINE output_line(const V *from, int64_t step, V *to, int64_t by) {
    V m1 = from[step], m2 = from[2 * step], m3 = from[3 * step], m4 = from[4 * step];
    V p = m1 + m2, q = A1 * (m1 - m2), r = m3 + m4, s = A2 * (m3 - m4);
    to[0] = from[0] + p + r, to[by] = q + s, to[2 * by] = .5f * p + 2.f * r,
    to[3 * by] = .5f * q + 2.f * s + from[5 * step];
}

LINE taps_line(const V *from, int64_t step, V *to, int64_t by) {
    V m1 = from[step], m2 = from[2 * step], m3 = from[3 * step], m4 = from[4 * step];
    V p = m1 + m2, r = m3 + m4;
    to[0] = from[0] + p + r, to[by] = A1 * (m1 - m2) + A2 * (m3 - m4),
    to[2 * by] = .5f * p + 2.f * r + from[5 * step];
}

/* ---- products at one place ----------------------------------------------------------------------------- */

/* A sum over `times` runs of blocks of L steps, `rest` of them in the last one of each (or 0): a's runs are
 * `apart`, its blocks `ka`, b's follow each other; b's vectors of columns are `kb` apart, those of c `cv`,
 * and its rows `ldc`. */
typedef struct {
    int64_t times, apart, blocks, rest, ka, kb, ldc, cv;
    int more; /* added to what is there, when the sum is whole: so errors of long sums stay small */
} Sum;

/* c[r * ldc + v * cv] (=, +=) the sum of a[...] b[v * kb + ...]: ROWS rows, NV vectors of columns. ALONG: L
 * steps of the sum lie beside each other in a and rows L apart; else rows lie beside each other and steps L
 * apart. */
#define PRODUCT(name, ROWS, NV, ALONG)                                                                \
    static WIDE void name(const Sum *s, const float *start, const float *b, float *c) {               \
        int64_t ka = s->ka, kb = s->kb, ldc = s->ldc, cv = s->cv, blocks = s->blocks;                 \
        V sum[ROWS][NV];                                                                              \
        _Pragma("GCC unroll 16") for (int r = 0; r < ROWS; r++)                                       \
            _Pragma("GCC unroll 4") for (int v = 0; v < NV; v++) sum[r][v] = (V){0};                  \
        for (int64_t run = 0; run < s->times; run++, start += s->apart) {                             \
            const float *a = start;                                                                   \
            for (int64_t k = 0; k < blocks; k++, a += ka, b += L * L) {                               \
                int steps = k + 1 < blocks || !s->rest ? L : (int)s->rest;                            \
                for (int i = 0; i < steps; i++) {                                                     \
                    V row[NV];                                                                        \
                    _Pragma("GCC unroll 4") for (int v = 0; v < NV; v++) row[v] =                     \
                        *(const V *)(b + v * kb + i * L);                                             \
                    _Pragma("GCC unroll 16") for (int r = 0; r < ROWS; r++) {                         \
                        float x = ALONG ? a[r * L + i] : a[i * L + r];                                \
                        _Pragma("GCC unroll 4") for (int v = 0; v < NV; v++) sum[r][v] += x * row[v]; \
                    }                                                                                 \
                }                                                                                     \
            }                                                                                         \
        }                                                                                             \
        _Pragma("GCC unroll 16") for (int r = 0; r < ROWS; r++)                                       \
            _Pragma("GCC unroll 4") for (int v = 0; v < NV; v++) {                                    \
            V *to = (V *)(c + r * ldc + v * cv);                                                      \
            if (s->more) sum[r][v] += *to;                                                            \
            *to = sum[r][v];                                                                          \
        }                                                                                             \
    }
/* As many rows as the registers hold, 32 or 16. */
#if VECTOR == 64
PRODUCT(tiles12x2, 12, 2, 1)
PRODUCT(tiles8x2, 8, 2, 1)
PRODUCT(tiles4x2, 4, 2, 1)
PRODUCT(tiles12x1, 12, 1, 1)
PRODUCT(tiles8x1, 8, 1, 1)
PRODUCT(tiles4x1, 4, 1, 1)
PRODUCT(taps8x2, 8, 2, 0)
PRODUCT(taps8x1, 8, 1, 0)
#else
PRODUCT(tiles6x2, 6, 2, 1)
PRODUCT(tiles4x2, 4, 2, 1)
PRODUCT(tiles12x1, 12, 1, 1)
PRODUCT(tiles8x1, 8, 1, 1)
PRODUCT(tiles4x1, 4, 1, 1)
PRODUCT(taps4x2, 4, 2, 0)
PRODUCT(taps8x1, 8, 1, 0)
#endif

static inline float *aligned(char *p) { return (float *)(((uintptr_t)p + 63) & ~(uintptr_t)63); }
static inline int64_t around(int64_t n, int64_t k) { return (n + k - 1) / k; }
static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Rows [y0, y0 + height) and columns [x0, x0 + width) of L planes of h by `wide` as vectors; zero outside.
 * From a channel to the next, or where these lie innermost from a pixel to the next, there are `ld` numbers.
 */
static inline void read_planes(const float *x, int last, int64_t ld, int64_t h, int64_t wide, int64_t y0,
                               int64_t height, int64_t x0, int64_t width, float *to) {
    int64_t lo = x0 < 0 ? -x0 : 0, hi = smaller(width, wide - x0);
    if (hi < lo) hi = lo;
    for (int64_t r = 0; r < height; r++, to += width * L) {
        int64_t y = y0 + r;
        if (y < 0 || y >= h || hi == lo) {
            memset(to, 0, width * L * sizeof(float));
            continue;
        }
        memset(to, 0, lo * L * sizeof(float));
        if (last) load_lanes(x + (y * wide + x0 + lo) * ld, ld, hi - lo, L, to + lo * L);
        else gather_lanes(x + y * wide + x0 + lo, ld, hi - lo, L, to + lo * L);
        memset(to + hi * L, 0, (width - hi) * L * sizeof(float));
    }
}

/* Of one place, `tiles` rows (a multiple of 4) and one or two vectors of columns. */
static inline void tile_products(const Sum *s, int64_t tiles, int two, const float *v, const float *b,
                                 float *m) {
    for (int64_t t = 0, n; t < tiles; t += n) {
        int64_t left = tiles - t;
#if VECTOR == 64
        n = left >= 12 && left != 16 ? 12 : left >= 8 ? 8 : 4;
        (two ? (n == 12      ? tiles12x2
                    : n == 8 ? tiles8x2
                             : tiles4x2)
#else
        n = two ? (left == 6 || left > 8 ? 6 : 4) : left >= 12 && left != 16 ? 12 : left >= 8 ? 8 : 4;
        (two ? (n == 6 ? tiles6x2 : tiles4x2)
#endif
             : (n == 12      ? tiles12x1
                    : n == 8 ? tiles8x1
                             : tiles4x1))(s, v + t * L, b, m + t * s->ldc);
    }
}

/* Of one place, L rows that lie beside each other, and one or two vectors of columns. */
static inline void tap_products(const Sum *s, int two, const float *v, const float *b, float *m) {
#if VECTOR == 64
    int64_t high = 8;
    void (*product)(const Sum *, const float *, const float *, float *) = two ? taps8x2 : taps8x1;
#else
    int64_t high = two ? 4 : 8;
    void (*product)(const Sum *, const float *, const float *, float *) = two ? taps4x2 : taps8x1;
#endif
    for (int64_t r = 0; r < L; r += high) product(s, v + r, b, m + r * s->ldc);
}
#endif
