/* Truth values: how many hold, where those are, and what lies there. A first kernel counts, a graph's bind
 * step makes a size of that (launch_step.c), a second one writes. A place is written before it is known
 * whether it stays: whether the next value holds can't be foreseen. */
#include "runtime/graph.h"
#include <string.h>

static int64_t elements(const View *v) {
    int64_t n = 1;
    for (int d = 0; d < v->ndim; d++) n *= v->shape[d];
    return n;
}

enum { BLOCK = 64, BLOCKS = 255 }; /* sums of so many truths fit into a byte */

FLB_KERNEL(count) {
    const uint8_t *x = (const uint8_t *)v->truths.ptr;
    int64_t total = elements(&v->truths), found = 0, i = 0;
    while (total - i >= BLOCK) {
        int64_t blocks = (total - i) / BLOCK < BLOCKS ? (total - i) / BLOCK : BLOCKS;
        uint8_t sums[BLOCK] = {0};
        for (int64_t end = i + blocks * BLOCK; i < end; i += BLOCK)
            for (int j = 0; j < BLOCK; j++) sums[j] = (uint8_t)(sums[j] + (x[i + j] != 0));
        for (int j = 0; j < BLOCK; j++) found += sums[j];
    }
    for (; i < total; i++) found += x[i] != 0;
    *(int64_t *)v->count.ptr = found;
    return 0;
}

/* Whether none of a block of values holds. */
static inline int none_of(const uint8_t *x) {
    uint64_t parts[BLOCK / 8], any = 0;
    memcpy(parts, x, BLOCK);
    for (int i = 0; i < BLOCK / 8; i++) any |= parts[i];
    return !any;
}

/* Calls WRITE for k from 0 to n, as long as less than `most` were found; what it writes for one that doesn't
 * hold is written over. */
#define EACH_FOUND(WRITE)                            \
    int64_t found = 0, k = 0;                        \
    while (k < n && found < most) {                  \
        int64_t end = k + BLOCK < n ? k + BLOCK : n; \
        if (end - k == BLOCK && none_of(x + k)) {    \
            k = end;                                 \
        } else if (most - found >= BLOCK) {          \
            for (; k < end; k++) {                   \
                WRITE;                               \
                found += x[k] != 0;                  \
            }                                        \
        }                                            \
        for (; k < end && found < most; k++) {       \
            if (!x[k]) continue;                     \
            WRITE;                                   \
            found++;                                 \
        }                                            \
    }                                                \
    return found;

static int64_t places_beside(const uint8_t *x, int64_t n, int64_t most, int64_t *to) {
    EACH_FOUND(to[found] = k)
}

static int64_t places_apart(const uint8_t *x, int64_t n, int64_t most, char *to,
                            int64_t step){EACH_FOUND(*(int64_t *)(to + found * step) = k)}

FLB_KERNEL(nonzero) {
    const uint8_t *x = (const uint8_t *)v->truths.ptr;
    int64_t room = v->coordinates.shape[0], total = elements(&v->truths), found = 0;
    int ndim = v->truths.ndim;
    if (ndim > 64 || v->coordinates.ndim != 2) return 0;
    int64_t at[64] = {0}, last = ndim ? v->truths.shape[ndim - 1] : 1, row_step = v->coordinates.strides[0],
            step = v->coordinates.strides[1];
    char *to = v->coordinates.ptr;
    for (int64_t row = 0; last && row < total && found < room; row += last) {
        const int64_t before = found, most = room - before < last ? room - before : last;
        char *line = to + before * row_step + (ndim ? ndim - 1 : 0) * step;
        found += !ndim      ? x[row] != 0
            : row_step == 8 ? places_beside(x + row, last, most, (int64_t *)line)
                            : places_apart(x + row, last, most, line, row_step);
        for (int d = 0; d < ndim - 1; d++)
            for (int64_t i = before; i < found; i++) *(int64_t *)(to + i * row_step + d * step) = at[d];
        for (int d = ndim - 2; d >= 0 && ++at[d] == v->truths.shape[d]; d--) at[d] = 0;
    }
    to += found * row_step;
    for (; found < room; found++, to += row_step)
        for (int d = 0; d < ndim; d++) *(int64_t *)(to + d * step) = n->fill;
    return 0;
}

#define CHOSEN(T)                                                                                      \
    static int64_t chosen_##T(const uint8_t *x, int64_t n, int64_t most, const char *from, char *to) { \
        EACH_FOUND(((T *)to)[found] = ((const T *)from)[k])                                            \
    }
CHOSEN(uint8_t)
CHOSEN(uint16_t)
CHOSEN(uint32_t)
CHOSEN(uint64_t)

FLB_KERNEL(chosen) {
    const uint8_t *x = (const uint8_t *)v->truths.ptr;
    int64_t total = elements(&v->truths), room = v->made.shape[0], item = n->bytes, found = 0;
    const char *from = v->source.ptr;
    char *to = v->made.ptr;
    if (!item) return 0;
    if (item == 1) found = chosen_uint8_t(x, total, room, from, to);
    else if (item == 2) found = chosen_uint16_t(x, total, room, from, to);
    else if (item == 4) found = chosen_uint32_t(x, total, room, from, to);
    else if (item == 8) found = chosen_uint64_t(x, total, room, from, to);
    else
        for (int64_t k = 0; k < total && found < room; k++)
            if (x[k]) memcpy(to + found++ * item, from + k * item, (size_t)item);
    if (found < room) memset(to + found * item, 0, (size_t)((room - found) * item));
    return 0;
}
