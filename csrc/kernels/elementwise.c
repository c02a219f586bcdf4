/* Functions of elements in one pass for which loops of NumPy take several, with the same bits. Arrays are
 * dense. */
#include "runtime/graph.h"
#include "runtime/levels.h"

/* Each operation is rounded for itself, as in loops. */
#define EXACTLY optimize("O3", "fp-contract=off", "no-trapping-math")

enum { BLOCK = 128, LANES = 16, GRAIN = 8192 };

static int64_t elements(const View *v) {
    int64_t n = 1;
    for (int d = 0; d < v->ndim; d++) n *= v->shape[d];
    return n;
}

/* ---- x or scale * x above 0, else a multiple of e^(inner x) - 1: elu, selu, celu ---- */

typedef struct {
    const char *x;
    char *made;
    double scale, below, inner;
    FlbElementBlock expm1;
} Units;

#define UNITS(T, I, NAME)                                                                                 \
    BY_LEVEL_WITH(EXACTLY, static void, scaled_##NAME, (const T *x, T *to, T inner, int64_t n, I *low),   \
                  (x, to, inner, n, low)) {                                                               \
        I found = 0;                                                                                      \
        for (int64_t i = 0; i < n; i++) to[i] = x[i] * inner, found |= !(x[i] > 0);                       \
        *low = found;                                                                                     \
    }                                                                                                     \
    BY_LEVEL_WITH(EXACTLY, static void, joined_##NAME,                                                    \
                  (const T *x, const T *low, T *to, T scale, T below, int64_t n),                         \
                  (x, low, to, scale, below, n)) {                                                        \
        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) {                                            \
            T above = x[i] * scale, other = low[i] * below;                                               \
            to[i] = x[i] > 0 ? above : other;                                                             \
        }                                                                                                 \
    }                                                                                                     \
    static void units_##NAME(void *context, int64_t begin, int64_t end) {                                 \
        const Units *u = context;                                                                         \
        _Alignas(64) T low[BLOCK];                                                                        \
        for (int64_t i = begin, n; i < end; i += n) {                                                     \
            n = end - i < BLOCK ? end - i : BLOCK;                                                        \
            int64_t whole = (n + LANES - 1) & -LANES;                                                     \
            I any; /* of a block above 0 the other side is nobody's */                                    \
            const T *x = (const T *)u->x + i;                                                             \
            char *at[] = {(char *)low, (char *)low};                                                      \
            scaled_##NAME(x, low, (T)u->inner, n, &any);                                                  \
            for (int64_t k = n; k < whole; k++) low[k] = 0;                                               \
            if (any) u->expm1(at, whole);                                                                 \
            joined_##NAME(x, low, (T *)u->made + i, (T)u->scale, (T)u->below, n);                         \
        }                                                                                                 \
    }                                                                                                     \
    BY_LEVEL_WITH(EXACTLY, static void, without_nan_##NAME, (const T *x, T *to, int64_t n), (x, to, n)) { \
        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) to[i] = x[i] == x[i] ? x[i] : 0;             \
    }
UNITS(float, int32_t, f32)
UNITS(double, int64_t, f64)

FLB_KERNEL(exponential_units) {
    Units u = {v->x.ptr, v->made.ptr, n->scale, n->below, n->inner, flb_element_block("expm1", n->f64 != 0)};
    flb_parallel(n->f64 ? units_f64 : units_f32, &u, elements(&v->x), GRAIN);
    return 0;
}

/* ---- 0 in place of nan ---- */

typedef struct {
    const flb_without_nan_views *v;
    int f64;
} Terms;

static void terms(void *context, int64_t begin, int64_t end) {
    const Terms *t = context;
    if (t->f64)
        without_nan_f64((const double *)t->v->x.ptr + begin, (double *)t->v->made.ptr + begin, end - begin);
    else without_nan_f32((const float *)t->v->x.ptr + begin, (float *)t->v->made.ptr + begin, end - begin);
}

FLB_KERNEL(without_nan) {
    Terms t = {v, n->f64 != 0};
    flb_parallel(terms, &t, elements(&v->x), 4 * GRAIN);
    return 0;
}
