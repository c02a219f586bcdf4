/* Elements combined with others at the places that an index names: what eager calls run where compiled graphs
 * have loops of their own. They come in the order of the index, as NumPy's ufunc.at takes them: the bits are
 * the same. */
#include "runtime/graph.h"
#include <math.h>
#include <string.h>

enum { MOST_DIMS = 8 };

/* The elements along the last dimension; steps in bytes. */
typedef struct {
    const char *index, *source;
    char *to; /* where place 0 lies */
    int64_t n, index_step, source_step, to_step, place_step;
} Line;

/* Every a becomes EXPRESSION of itself and b, the element that comes to its place. A line whose elements all
 * go to one place of an index, side by side, is a loop of vectors. */
#define COMBINE(T, NAME, EXPRESSION)                                                    \
    static void NAME(const Line *l) {                                                   \
        if (!l->index_step && l->to_step == sizeof(T) && l->source_step == sizeof(T)) { \
            T *to = (T *)(l->to + *(const int64_t *)l->index * l->place_step);          \
            const T *from = (const T *)l->source;                                       \
            _Pragma("GCC ivdep") for (int64_t i = 0; i < l->n; i++) {                   \
                T a = to[i], b = from[i];                                               \
                to[i] = (EXPRESSION);                                                   \
            }                                                                           \
            return;                                                                     \
        }                                                                               \
        for (int64_t i = 0; i < l->n; i++) {                                            \
            int64_t place = *(const int64_t *)(l->index + i * l->index_step);           \
            T *to = (T *)(l->to + i * l->to_step + place * l->place_step), a = *to;     \
            T b = *(const T *)(l->source + i * l->source_step);                         \
            *to = (EXPRESSION);                                                         \
        }                                                                               \
    }
/* As np.maximum and np.minimum choose; of nan, the first. */
/* clang-format off */
#define COMBINATIONS(T, name)                        \
    COMBINE(T, sum_##name, a + b)                    \
    COMBINE(T, prod_##name, a * b)                   \
    COMBINE(T, max_##name, a >= b || a != a ? a : b) \
    COMBINE(T, min_##name, a <= b || a != a ? a : b) \
    COMBINE(T, set_##name, ((void)a, b))
/* clang-format on */
COMBINATIONS(float, f32)
COMBINATIONS(double, f64)
COMBINATIONS(int64_t, i64)

#define OF(name)                                                                           \
    {[SEGMENT_SUM] = sum_##name, [SEGMENT_MEAN] = sum_##name,  [SEGMENT_MIN] = min_##name, \
     [SEGMENT_MAX] = max_##name, [SEGMENT_PROD] = prod_##name, [SEGMENT_COUNT] = set_##name}
static void (*const combine[ELEMENT_COUNT][SEGMENT_COUNT + 1])(const Line *) = {
    [ELEMENT_F32] = OF(f32), [ELEMENT_F64] = OF(f64), [ELEMENT_I64] = OF(i64)};

/* Over all lines of the index: `source` with these strides into `to`. */
static void over_lines(const View *index, void (*fn)(const Line *), const char *source,
                       const int64_t *source_strides, char *to, const int64_t *to_strides, int dim) {
    int last = index->ndim - 1;
    int64_t at[MOST_DIMS] = {0}, lines = 1;
    Line l = {index->ptr,
              source,
              to,
              index->shape[last],
              index->strides[last],
              source_strides[last],
              dim == last ? 0 : to_strides[last],
              to_strides[dim]};
    for (int d = 0; d < last; d++) lines *= index->shape[d];
    while (lines-- > 0) {
        fn(&l);
        for (int d = last - 1; d >= 0; d--) {
            int64_t step = d == dim ? 0 : to_strides[d],
                    n = ++at[d] == index->shape[d] ? index->shape[d] - 1 : -1;
            /* One on, or back to the first. */
            l.index -= n * index->strides[d], l.source -= n * source_strides[d], l.to -= n * step;
            if (n < 0) break;
            at[d] = 0;
        }
    }
}

/* An index that is none of `limit` places: its value in status[1]. */
static int within(const View *index, int64_t limit, int64_t *status) {
    int64_t at[MOST_DIMS] = {0}, total = 1;
    int last = index->ndim - 1;
    const char *from = index->ptr;
    for (int d = 0; d < last; d++) total *= index->strides[d] ? index->shape[d] : 1;
    int64_t n = index->strides[last] ? index->shape[last] : 1, step = index->strides[last];
    while (total-- > 0) {
        for (int64_t i = 0; i < n; i++) {
            int64_t p = *(const int64_t *)(from + i * step);
            if ((uint64_t)p >= (uint64_t)limit) return status[1] = p, status[2] = limit, status[0] = 1, 0;
        }
        for (int d = last - 1; d >= 0; d--) {
            int64_t size = index->strides[d] ? index->shape[d] : 1;
            if (++at[d] < size) {
                from += index->strides[d];
                break;
            }
            from -= (size - 1) * index->strides[d], at[d] = 0;
        }
    }
    return 1;
}

FLB_KERNEL(combine) {
    static const int64_t none[MOST_DIMS] = {0};
    int dim = (int)n->dim, kind = (int)n->element, mean = n->reduce == SEGMENT_MEAN;
    int64_t total = 1, item = kind == ELEMENT_F32 ? 4 : 8;
    const View *to = &v->made;
    if (to->ndim > MOST_DIMS || !combine[kind][0]) return 0;
    for (int d = 0; d < to->ndim; d++) total *= to->shape[d];
    if (!within(&v->index, to->shape[dim], status)) return 0;
    memcpy(to->ptr, v->into.ptr, (size_t)(total * item));
    if (!n->included) {
        union {
            float f32;
            double f64;
            int64_t i64;
        } first;
        int least = n->reduce == SEGMENT_MAX, greatest = n->reduce == SEGMENT_MIN,
            one = n->reduce == SEGMENT_PROD;
        if (kind == ELEMENT_I64) first.i64 = least ? INT64_MIN : greatest ? INT64_MAX : one;
        else if (kind == ELEMENT_F64) first.f64 = least ? -INFINITY : greatest ? INFINITY : one;
        else first.f32 = least ? -INFINITY : greatest ? INFINITY : (float)one;
        over_lines(&v->index, combine[kind][SEGMENT_COUNT], (const char *)&first, none, to->ptr, to->strides,
                   dim);
    }
    over_lines(&v->index, combine[kind][n->reduce], v->source.ptr, v->source.strides, to->ptr, to->strides,
               dim);
    if (!mean) return 0;
    int64_t *counts = flb_api->malloc((size_t)(total ? total : 1) * sizeof *counts), strides[MOST_DIMS] = {0},
            one = 1;
    if (!counts) return -1;
    for (int64_t i = 0; i < total; i++) counts[i] = n->included != 0;
    for (int d = 0; d < to->ndim; d++) strides[d] = to->strides[d] / item * (int64_t)sizeof *counts;
    over_lines(&v->index, sum_i64, (const char *)&one, none, (char *)counts, strides, dim);
    for (int64_t i = 0; i < total; i++) {
        double count = (double)(counts[i] > 1 ? counts[i] : 1);
        if (kind == ELEMENT_F32) ((float *)to->ptr)[i] = (float)(((float *)to->ptr)[i] / count);
        else ((double *)to->ptr)[i] /= count;
    }
    flb_api->free(counts);
    return 0;
}
