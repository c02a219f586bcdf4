/* Sorting along one dimension: whole lines, their first k elements, one element by its rank.
 *
 * An element becomes a key, an unsigned integer of the same order: nan is the greatest, zeros of both signs
 * are equal, descending order takes the complement. The key with the place in the line behind it is unique,
 * so whatever finds the right elements finds those of a stable sort, and results depend neither on the method
 * nor on the number of threads. Lines go over the pool. */
#include "runtime/graph.h"
#include "runtime/levels.h"
#include "kernels/order_keys.h"
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__)
#define FAST __attribute__((optimize("O3")))
#else
#define FAST
#endif

#define MOST_DIMS 64
#define RANKED 128 /* elements of a line that is sorted by comparing all pairs */
#define FEW 16     /* first elements that are kept in order while the line is read */
#define SHORT 16   /* elements of a line that is sorted beside others that lie side by side, */
#define ABREAST 32 /* so many at a time */

typedef struct {
    int what, kind, descending, ndim, sorted; /* ndim: dimensions apart from the line's */
    int64_t n, k, lines;
    const char *from;
    char *values, *places;
    int64_t shape[MOST_DIMS], strides[3][MOST_DIMS],
        step[3]; /* of what is read, the values and the places; step: along the line, in bytes */
    int failed;
} Order;

/* Where a line begins: in what is read, the values and the places. */
static void offsets(const Order *o, int64_t line, int64_t *at) {
    at[0] = at[1] = at[2] = 0;
    for (int d = o->ndim - 1; d >= 0; d--) {
        int64_t here = line % o->shape[d];
        line /= o->shape[d];
        for (int i = 0; i < 3; i++) at[i] += here * o->strides[i][d];
    }
}

#define KEYS(T, of)                                                                      \
    for (int64_t i = 0; i < n; i++)                                                      \
        to[i] = (Pair)(Key)(of(((const T *)line)[i]) ^ flip) << BITS | (Pair)(from + i); \
    break;

/* A line with its elements side by side, in `room` where it isn't in place. */
static const char *gather(const char *from, int64_t step, int item, int64_t n, char *room) {
    if (step == item || n < 2) return from;
#define COPY(T) \
    for (int64_t i = 0; i < n; i++) ((T *)room)[i] = *(const T *)(from + i * step)
    if (item == 8) COPY(uint64_t);
    else if (item == 4) COPY(uint32_t);
    else if (item == 2) COPY(uint16_t);
    else COPY(uint8_t);
    return room;
}

#define Key uint32_t
#define Signed int32_t
#define Pair uint64_t
#define BITS 32
#define NAME(x) x##_32
#include "kernels/order_kernels.h"
#undef Key
#undef Signed
#undef Pair
#undef BITS
#undef NAME
#define Key uint64_t
#define Signed int64_t
#define Pair unsigned __int128
#define BITS 64
#define NAME(x) x##_64
#define LONG
#include "kernels/order_kernels.h"

FLB_KERNEL(order) {
    const View *x = &v->source, *views[] = {x, &v->values, &v->places};
    Order o = {.what = (int)n->part,
               .kind = (int)n->element,
               .descending = n->descending != 0,
               .k = n->k,
               .sorted = n->sorted != 0,
               .lines = 1,
               .from = x->ptr,
               .values = v->values.ptr,
               .places = v->places.ptr};
    if (!flb_is_ordered(o.kind) || x->ndim > MOST_DIMS || n->dim < 0 || n->dim >= x->ndim) return 0;
    o.n = x->shape[n->dim];
    for (int i = 0; i < 3; i++) o.step[i] = views[i]->strides[n->dim];
    for (int d = 0; d < x->ndim; d++) {
        if (d == n->dim) continue;
        o.shape[o.ndim] = x->shape[d], o.lines *= x->shape[d];
        for (int i = 0; i < 3; i++) o.strides[i][o.ndim] = views[i]->strides[d];
        o.ndim++;
    }
    if (!o.lines || !o.n || (o.what == ORDER_FIRST && !o.k)) return 0;
    flb_parallel(item_of[o.kind] == 8 ? lines_64 : lines_32, &o, o.lines, 1 + 4000 / o.n);
    return o.failed ? -1 : 0;
}
