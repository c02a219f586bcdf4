/* Sorting along one dimension: whole lines, their first k elements, one element by its rank.
 *
 * An element becomes a key, an unsigned integer of the same order: nan is the greatest, zeros of both signs are equal, descending order takes the
 * complement. The key with the place in the line behind it is unique, so whatever finds the right elements finds those of a stable sort, and results
 * depend neither on the method nor on the number of threads. Lines go over the pool. */
#include "graph.h"
#include "order_keys.h"
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__)
#define FAST __attribute__((optimize("O3")))
#else
#define FAST
#endif

#define MOST_DIMS 64
#define FEW 16                  /* first elements that are kept in order while the line is read */

enum { WHOLE, FIRST, RANK, MEDIAN, NANMEDIAN };

typedef struct {
    int what, kind, descending, ndim, sorted; /* ndim: dimensions apart from the line's */
    int64_t n, k, lines;
    const char *from;
    char *values, *places;
    int64_t shape[MOST_DIMS], strides[3][MOST_DIMS], step[3]; /* of what is read, the values and the places; step: along the line, in bytes */
    int failed;
} Order;

#define KEYS(T, of)                                                                                                                            \
    for (int64_t i = 0; i < n; i++) to[i] = (Pair)(Key)(of(((const T *)line)[i]) ^ flip) << BITS | (Pair)(from + i);                           \
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
#define Pair uint64_t
#define BITS 32
#define NAME(x) x##_32
#include "order_kernels.h"
#undef Key
#undef Pair
#undef BITS
#undef NAME
#define Key uint64_t
#define Pair unsigned __int128
#define BITS 64
#define NAME(x) x##_64
#define LONG
#include "order_kernels.h"

/* Views: what is read, the values, their places (int64); outputs have one element along the dimension for a rank, k for the first ones.
 * Numbers: the dimension, what, the type, descending, k (the rank counts from 0), whether the first ones are in order. */
int flb_order_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    int dim = (int)numbers[0];
    Order o = {.what = (int)numbers[1], .kind = (int)numbers[2], .descending = numbers[3] != 0, .k = numbers[4], .sorted = numbers[5] != 0, .lines = 1,
               .from = v[0].ptr, .values = v[1].ptr, .places = v[2].ptr};
    if (o.kind < 0 || o.kind >= KINDS || v[0].ndim > MOST_DIMS || dim < 0 || dim >= v[0].ndim) return 0;
    o.n = v[0].shape[dim];
    for (int i = 0; i < 3; i++) o.step[i] = v[i].strides[dim];
    for (int d = 0; d < v[0].ndim; d++) {
        if (d == dim) continue;
        o.shape[o.ndim] = v[0].shape[d], o.lines *= v[0].shape[d];
        for (int i = 0; i < 3; i++) o.strides[i][o.ndim] = v[i].strides[d];
        o.ndim++;
    }
    if (!o.lines || !o.n || (o.what == FIRST && !o.k)) return 0;
    flb_parallel(item_of[o.kind] == 8 ? lines_64 : lines_32, &o, o.lines, 1 + 4000 / o.n);
    return o.failed ? -1 : 0;
}
