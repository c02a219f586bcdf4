/* Products of lines: partial products side by side, then their product, the same on every processor. */
#include "runtime/graph.h"
#include "runtime/levels.h"

enum { LANES = 32 };

#define PRODUCTS(T, NAME)                                                                 \
    BY_LEVEL(static void, products_##NAME, (const T *x, T *to, int64_t lines, int64_t n), \
             (x, to, lines, n)) {                                                         \
        for (int64_t l = 0; l < lines; l++, x += n) {                                     \
            T part[LANES];                                                                \
            int64_t i = 0;                                                                \
            for (int k = 0; k < LANES; k++) part[k] = 1;                                  \
            for (; i + LANES <= n; i += LANES)                                            \
                for (int k = 0; k < LANES; k++) part[k] *= x[i + k];                      \
            for (int k = 0; i + k < n; k++) part[k] *= x[i + k];                          \
            for (int half = LANES / 2; half; half /= 2)                                   \
                for (int k = 0; k < half; k++) part[k] *= part[k + half];                 \
            to[l] = part[0];                                                              \
        }                                                                                 \
    }
PRODUCTS(float, f32)
PRODUCTS(double, f64)

FLB_KERNEL(line_products) {
    int64_t lines = v->source.shape[0], terms = v->source.shape[1];
    if (n->f64) products_f64((const double *)v->source.ptr, (double *)v->made.ptr, lines, terms);
    else products_f32((const float *)v->source.ptr, (float *)v->made.ptr, lines, terms);
    return 0;
}
