/* Sums, means and maxima of rows of a table by bags, as `embedding_bag` makes them of gathers and sums: the
 * bits are the same. */
#include "runtime/graph.h"
#include "runtime/levels.h"
#include <math.h>
#include <string.h>

/* A product is rounded before it is added. */
#define EXACTLY optimize("O3", "fp-contract=off", "no-trapping-math")

typedef struct {
    const char *table, *weights;
    const int64_t *indices;
    int64_t begin, end, width, padding;
} Bag;

#define BAGS(T, NAME)                                                                                     \
    BY_LEVEL_WITH(EXACTLY, static void, sum_##NAME, (const Bag *b, T *to), (b, to)) {                     \
        int64_t width = b->width;                                                                         \
        memset(to, 0, (size_t)width * sizeof(T));                                                         \
        for (int64_t k = b->begin; k < b->end; k++) {                                                     \
            if (b->indices[k] == b->padding) continue;                                                    \
            const T *row = (const T *)b->table + b->indices[k] * width;                                   \
            if (b->weights) {                                                                             \
                T w = ((const T *)b->weights)[k];                                                         \
                _Pragma("GCC ivdep") for (int64_t i = 0; i < width; i++) to[i] += row[i] * w;             \
            } else {                                                                                      \
                _Pragma("GCC ivdep") for (int64_t i = 0; i < width; i++) to[i] += row[i];                 \
            }                                                                                             \
        }                                                                                                 \
    }                                                                                                     \
    static void most_##NAME(const Bag *b, T *to, int64_t *where, int64_t counted) {                       \
        for (int64_t i = 0; i < b->width; i++) to[i] = counted ? -INFINITY : 0, where[i] = 0;             \
        for (int64_t k = b->begin; k < b->end; k++) {                                                     \
            if (b->indices[k] == b->padding) continue;                                                    \
            const T *row = (const T *)b->table + b->indices[k] * b->width;                                \
            for (int64_t i = 0; i < b->width; i++)                                                        \
                if (row[i] > to[i] || (row[i] != row[i] && to[i] == to[i])) to[i] = row[i], where[i] = k; \
        }                                                                                                 \
    }                                                                                                     \
    static void bag_##NAME(const Bag *b, char *made, int64_t *where, int64_t counted, int mean) {         \
        T *to = (T *)made;                                                                                \
        if (where) {                                                                                      \
            most_##NAME(b, to, where, counted);                                                           \
            return;                                                                                       \
        }                                                                                                 \
        sum_##NAME(b, to);                                                                                \
        if (mean)                                                                                         \
            for (int64_t i = 0; i < b->width; i++) to[i] /= (T)(counted > 1 ? counted : 1);               \
    }
BAGS(float, f32)
BAGS(double, f64)

FLB_KERNEL(embedding_bag) {
    int64_t bags = v->starts.shape[0], total = v->indices.shape[0], rows = v->table.shape[0],
            width = v->table.shape[1];
    const int64_t *starts = (const int64_t *)v->starts.ptr, *indices = (const int64_t *)v->indices.ptr;
    int64_t *members = (int64_t *)v->bags.ptr, *sizes = (int64_t *)v->sizes.ptr;
    int most = flb_given(&v->places), item = n->f64 ? 8 : 4;
    for (int64_t k = 0; k < total; k++)
        if ((uint64_t)indices[k] >= (uint64_t)rows)
            return status[1] = indices[k], status[2] = rows, status[0] = 1, 0;
    for (int64_t b = 0; b < bags; b++) /* in order from the first index on */
        if (starts[b] > total || (b ? starts[b] < starts[b - 1] : starts[b] != 0))
            return status[1] = starts[b], status[2] = total, status[0] = 1, 0;
    for (int64_t b = 0; b < bags; b++) {
        Bag bag = {v->table.ptr, flb_given(&v->weights) ? v->weights.ptr : NULL, indices,
                   starts[b],    b + 1 < bags ? starts[b + 1] : total,           width,
                   n->padding};
        int64_t counted = 0;
        for (int64_t k = bag.begin; k < bag.end; k++) members[k] = b, counted += indices[k] != n->padding;
        sizes[b] = counted;
        char *to = v->made.ptr + b * width * item;
        int64_t *where = most ? (int64_t *)v->places.ptr + b * width : NULL;
        (n->f64 ? bag_f64 : bag_f32)(&bag, to, where, counted, n->mean != 0);
    }
    return 0;
}
