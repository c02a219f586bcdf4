/* Maxima over windows of images whose channels lie side by side: the channels of a pixel are the lanes, and
 * nothing is turned. The winners are those of pool.c: of equal elements the first, the first nan over all. */
#include "pool.h"
#include "runtime/graph.h"
#include "runtime/levels.h"
#include <math.h>
#include <string.h>

#define WIDE 64 /* channels that are made together */

#define LAST(T, I, NAME)                                                                                \
    BY_LEVEL(static void, window_##NAME,                                                                \
             (const FlbPool *p, const T *image, int64_t r, int64_t c, int64_t c0, int64_t width, T *to, \
              int64_t *places),                                                                         \
             (p, image, r, c, c0, width, to, places)) {                                                 \
        T best[WIDE];                                                                                   \
        I at[WIDE];                                                                                     \
        int any = 0;                                                                                    \
        int64_t top, bottom, left, right, r0 = flb_pool_taps(p, 0, r, &top, &bottom),                   \
                                          w0 = flb_pool_taps(p, 1, c, &left, &right);                   \
        for (int64_t kh = top; kh < bottom; kh++)                                                       \
            for (int64_t kw = left; kw < right; kw++) {                                                 \
                I place = (I)((r0 + kh) * p->in[1] + w0 + kw);                                          \
                const T *x = image + place * p->channels + c0;                                          \
                if (!any) {                                                                             \
                    for (int64_t i = 0; i < width; i++) best[i] = x[i], at[i] = place;                  \
                    any = 1;                                                                            \
                    continue;                                                                           \
                }                                                                                       \
                for (int64_t i = 0; i < width; i++) {                                                   \
                    T v = x[i], b = best[i];                                                            \
                    int take = (v > b) | ((v != v) & (b == b));                                         \
                    best[i] = take ? v : b;                                                             \
                    at[i] = take ? place : at[i];                                                       \
                }                                                                                       \
            }                                                                                           \
        for (int64_t i = 0; i < width; i++) {                                                           \
            to[i] = any ? best[i] : -(T)INFINITY;                                                       \
            places[i] = any ? at[i] : -1;                                                               \
        }                                                                                               \
    }                                                                                                   \
    static void rows_##NAME(void *context, int64_t begin, int64_t end) {                                \
        const FlbPool *p = context;                                                                     \
        for (int64_t k = begin; k < end; k++) {                                                         \
            const T *image = (const T *)p->from + k / p->out[0] * p->in[0] * p->in[1] * p->channels;    \
            int64_t row = k * p->out[1] * p->channels;                                                  \
            for (int64_t c = 0; c < p->out[1]; c++)                                                     \
                for (int64_t c0 = 0; c0 < p->channels; c0 += WIDE) {                                    \
                    int64_t left = p->channels - c0, at = row + c * p->channels + c0;                   \
                    window_##NAME(p, image, k % p->out[0], c, c0, left < WIDE ? left : WIDE,            \
                                  (T *)p->to + at, (int64_t *)p->places + at);                          \
                }                                                                                       \
        }                                                                                               \
    }                                                                                                   \
    static void adjoint_##NAME(void *context, int64_t begin, int64_t end) {                             \
        FlbPool *p = context;                                                                           \
        int64_t blocks = (p->channels + WIDE - 1) / WIDE, count = p->out[0] * p->out[1],                \
                plane = p->in[0] * p->in[1], channels = p->channels;                                    \
        for (int64_t k = begin; k < end; k++) {                                                         \
            int64_t n = k / blocks, c0 = k % blocks * WIDE, left = channels - c0;                       \
            int64_t width = left < WIDE ? left : WIDE;                                                  \
            const T *from = (const T *)p->from + n * count * channels + c0;                             \
            const int64_t *where = (const int64_t *)p->where + n * count * channels + c0;               \
            T *to = (T *)p->to + n * plane * channels + c0;                                             \
            for (int64_t i = 0; i < plane; i++) memset(to + i * channels, 0, width * sizeof(T));        \
            for (int64_t o = 0; o < count; o++, from += channels, where += channels)                    \
                for (int64_t i = 0; i < width; i++) {                                                   \
                    if (where[i] < 0 || where[i] >= plane) {                                            \
                        p->value = where[i], p->bad = 1;                                                \
                        return;                                                                         \
                    }                                                                                   \
                    to[where[i] * channels + i] += from[i];                                             \
                }                                                                                       \
        }                                                                                               \
    }
LAST(float, int32_t, f32)
LAST(double, int64_t, f64)

void flb_pool_last(FlbPool *p, int f64, int64_t images) {
    int64_t work = p->out[1] * p->channels * p->kernel[0] * p->kernel[1];
    flb_parallel(f64 ? rows_f64 : rows_f32, p, images * p->out[0], 1 + 40000 / (work + 1));
}

void flb_pool_last_backward(FlbPool *p, int f64, int64_t images) {
    int64_t blocks = (p->channels + WIDE - 1) / WIDE;
    flb_parallel(f64 ? adjoint_f64 : adjoint_f32, p, images * blocks,
                 1 + 20000 / (p->in[0] * p->in[1] * WIDE + 1));
}
