/* Images sampled at the points of a grid, between their pixels or at the nearest one: what eager calls run
 * where compiled graphs have loops of their own. The operations are those of the body of `_grid_sample`, in
 * its order: the bits are the same. */
#include "runtime/graph.h"
#include "runtime/levels.h"
#include <math.h>

/* Each operation is rounded for itself, on every processor. */
#define EXACTLY optimize("O3", "fp-contract=off", "no-trapping-math", "no-math-errno")

enum { POINTS = 64, CORNERS = 4 }; /* points that are made together */

typedef struct {
    const char *input, *grid;
    char *made;
    int64_t images, channels, height, width, points;
    int nearest, border, corners;
} Sampled;

/* Outside of the image the first pixel is read and counts for nothing. */
#define CORNER(T, k, row, column, weight)                                                      \
    {                                                                                          \
        int ok = (row >= 0) & (row < high) & (column >= 0) & (column < wide);                  \
        T r = ok ? row : 0, c = ok ? column : 0;                                               \
        inside[k][i] = ok, places[k][i] = (int32_t)r * w + (int32_t)c, weights[k][i] = weight; \
    }

#define SAMPLER(T, NAME, FLOOR, RINT)                                                                       \
    BY_LEVEL_WITH(EXACTLY, static void, points_##NAME,                                                      \
                  (const Sampled *s, const T *grid, int64_t n, T(*weights)[POINTS],                         \
                   int32_t (*places)[POINTS], int32_t (*inside)[POINTS]),                                   \
                  (s, grid, n, weights, places, inside)) {                                                  \
        int nearest = s->nearest, border = s->border, corners = s->corners;                                 \
        T high = (T)s->height, wide = (T)s->width;                                                          \
        int32_t w = (int32_t)s->width;                                                                      \
        T at[2][POINTS], low[2][POINTS];                                                                    \
        for (int64_t i = 0; i < n; i++) at[0][i] = grid[2 * i + 1], at[1][i] = grid[2 * i];                 \
        for (int d = 0; d < 2; d++) {                                                                       \
            T size = d ? wide : high, last = size - 1, half = last / 2;                                     \
            if (corners)                                                                                    \
                for (int64_t i = 0; i < n; i++) at[d][i] = (at[d][i] + 1) * half;                           \
            else                                                                                            \
                for (int64_t i = 0; i < n; i++) at[d][i] = ((at[d][i] + 1) * size - 1) / 2;                 \
            if (border) /* nan is 0 */                                                                      \
                for (int64_t i = 0; i < n; i++)                                                             \
                    at[d][i] = at[d][i] > 0 ? (at[d][i] < last ? at[d][i] : last) : 0;                      \
            if (nearest)                                                                                    \
                for (int64_t i = 0; i < n; i++) low[d][i] = RINT(at[d][i]);                                 \
            else                                                                                            \
                for (int64_t i = 0; i < n; i++) low[d][i] = FLOOR(at[d][i]);                                \
        }                                                                                                   \
        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) {                                              \
            T y = at[0][i], x = at[1][i], top = low[0][i], left = low[1][i], bottom = top + 1,              \
              right = left + 1;                                                                             \
            CORNER(T, 0, top, left, (bottom - y) * (right - x))                                             \
            CORNER(T, 1, bottom, left, (y - top) * (right - x))                                             \
            CORNER(T, 2, top, right, (bottom - y) * (x - left))                                             \
            CORNER(T, 3, bottom, right, (y - top) * (x - left))                                             \
        }                                                                                                   \
    }                                                                                                       \
    BY_LEVEL_WITH(EXACTLY, static void, planes_##NAME,                                                      \
                  (const Sampled *s, const T *image, T *to, int64_t n, T(*weights)[POINTS],                 \
                   int32_t (*places)[POINTS], int32_t (*inside)[POINTS]),                                   \
                  (s, image, to, n, weights, places, inside)) {                                             \
        for (int64_t c = 0; c < s->channels; c++, image += s->height * s->width, to += s->points) {         \
            if (s->nearest) {                                                                               \
                _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) {                                      \
                    T v = image[places[0][i]];                                                              \
                    to[i] = inside[0][i] ? v : 0;                                                           \
                }                                                                                           \
                continue;                                                                                   \
            }                                                                                               \
            _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) {                                          \
                T a = image[places[0][i]], b = image[places[1][i]], p = image[places[2][i]],                \
                  q = image[places[3][i]];                                                                  \
                a = (inside[0][i] ? a : 0) * weights[0][i], b = (inside[1][i] ? b : 0) * weights[1][i];     \
                p = (inside[2][i] ? p : 0) * weights[2][i], q = (inside[3][i] ? q : 0) * weights[3][i];     \
                to[i] = a + b + p + q;                                                                      \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
    static void sampled_##NAME(const Sampled *s) {                                                          \
        T weights[CORNERS][POINTS];                                                                         \
        int32_t places[CORNERS][POINTS], inside[CORNERS][POINTS];                                           \
        for (int64_t m = 0; m < s->images; m++)                                                             \
            for (int64_t i = 0; i < s->points; i += POINTS) {                                               \
                int64_t n = s->points - i < POINTS ? s->points - i : POINTS;                                \
                points_##NAME(s, (const T *)s->grid + 2 * (m * s->points + i), n, weights, places, inside); \
                planes_##NAME(s, (const T *)s->input + m * s->channels * s->height * s->width,              \
                              (T *)s->made + m * s->channels * s->points + i, n, weights, places, inside);  \
            }                                                                                               \
    }
SAMPLER(float, f32, floorf, rintf)
SAMPLER(double, f64, floor, rint)

FLB_KERNEL(grid_sample) {
    const int64_t *shape = v->input.shape;
    Sampled s = {.input = v->input.ptr,
                 .grid = v->grid.ptr,
                 .made = v->made.ptr,
                 .images = shape[0],
                 .channels = shape[1],
                 .height = shape[2],
                 .width = shape[3],
                 .points = v->grid.shape[1],
                 .nearest = n->nearest != 0,
                 .border = n->border != 0,
                 .corners = n->corners != 0};
    (n->f64 ? sampled_f64 : sampled_f32)(&s);
    return 0;
}
