/* The place of the greatest or the least element of each line: the first of equal ones, the first nan over
 * all. */
#include "runtime/graph.h"
#include "kernels/order_keys.h"
#include "runtime/cpu_level.h"
#include "runtime/levels.h"

#define MOST_DIMS 64

typedef struct {
    int kind, least, ndim; /* ndim: dimensions apart from the line's */
    int64_t n, step;
    const char *from;
    int64_t *places;
    int64_t shape[MOST_DIMS], strides[MOST_DIMS];
} Extreme;

/* What is wanted becomes the greatest key; nan, whose key has all bits, stays that. */
#define WANTED(Key, key, floating, least) (!(least) ? (key) : (floating) ? (Key)(~(key) - 1) : (Key) ~(key))

/* Of elements side by side: the greatest key of each block, then the first that has it. */
enum { BLOCK = 256 };
#define GREATEST(Key, of, floating, least)                                 \
    for (int64_t i = 0; i < n; i++) {                                      \
        Key key = of(line[i]), wanted = WANTED(Key, key, floating, least); \
        best = wanted > best ? wanted : best;                              \
    }
#define BESIDE(NAME, T, Key, of, floating)                                                   \
    BY_LEVEL(static void, greatest_##NAME, (const T *line, int64_t n, int least, Key *to),   \
             (line, n, least, to)) {                                                         \
        Key best = 0;                                                                        \
        if (least) GREATEST(Key, of, floating, 1)                                            \
        else GREATEST(Key, of, floating, 0)                                                  \
        *to = best;                                                                          \
    }                                                                                        \
    static int64_t find_##NAME(const T *line, int64_t n, int least) {                        \
        Key best = 0;                                                                        \
        int64_t at = 0;                                                                      \
        for (int64_t from = 0; from < n; from += BLOCK) {                                    \
            Key here;                                                                        \
            greatest_##NAME(line + from, n - from < BLOCK ? n - from : BLOCK, least, &here); \
            if (here > best) best = here, at = from;                                         \
        }                                                                                    \
        for (; at < n; at++) {                                                               \
            Key key = of(line[at]);                                                          \
            if (WANTED(Key, key, floating, least) == best) return at;                        \
        }                                                                                    \
        return 0;                                                                            \
    }
BESIDE(f32, uint32_t, uint32_t, of_f32, 1)
BESIDE(f64, uint64_t, uint64_t, of_f64, 1)
BESIDE(i32, uint32_t, uint32_t, of_i32, 0)
BESIDE(i64, uint64_t, uint64_t, of_i64, 0)
#define FIND_BESIDE(NAME, T)                               \
    if (e->step == (int64_t)sizeof(T)) {                   \
        at = find_##NAME((const T *)line, e->n, e->least); \
        break;                                             \
    }

#define FIND(T, Key, of, floating)                          \
    {                                                       \
        Key best = 0;                                       \
        for (int64_t i = 0; i < e->n; i++) {                \
            Key key = of(*(const T *)(line + i * e->step)); \
            key = WANTED(Key, key, floating, e->least);     \
            if (key > best) best = key, at = i;             \
        }                                                   \
        break;                                              \
    }

static void lines(void *context, int64_t begin, int64_t end) {
    const Extreme *e = context;
    for (int64_t l = begin; l < end; l++) {
        const char *line = e->from;
        int64_t rest = l, at = 0;
        for (int d = e->ndim - 1; d >= 0; d--) {
            line += rest % e->shape[d] * e->strides[d];
            rest /= e->shape[d];
        }
        switch (e->kind) {
        case ELEMENT_F32:
        FIND_BESIDE(f32, uint32_t) FIND(uint32_t, uint32_t, of_f32, 1) case ELEMENT_F64:
        FIND_BESIDE(f64, uint64_t) FIND(uint64_t, uint64_t, of_f64, 1) case ELEMENT_F16:
            FIND(uint16_t, uint32_t, of_f16, 1)
        case ELEMENT_BF16: FIND(uint16_t, uint32_t, of_bf16, 1)
        case ELEMENT_I64:
        FIND_BESIDE(i64, uint64_t) FIND(uint64_t, uint64_t, of_i64, 0) case ELEMENT_I32:
        FIND_BESIDE(i32, uint32_t) FIND(uint32_t, uint32_t, of_i32, 0) case ELEMENT_I16:
            FIND(uint16_t, uint32_t, of_i16, 0)
        case ELEMENT_I8: FIND(uint8_t, uint32_t, of_i8, 0)
        case ELEMENT_U8: FIND(uint8_t, uint32_t, of_u8, 0)
        }
        e->places[l] = at;
    }
}

FLB_KERNEL(extreme) {
    const View *x = &v->source;
    Extreme e = {
        .kind = (int)n->element, .least = n->least != 0, .from = x->ptr, .places = (int64_t *)v->places.ptr};
    if (x->ndim > MOST_DIMS || n->dim < 0 || n->dim >= x->ndim) return 0;
    int64_t all = 1;
    for (int d = 0; d < x->ndim; d++) {
        if (d == n->dim) continue;
        e.shape[e.ndim] = x->shape[d], e.strides[e.ndim++] = x->strides[d];
        all *= x->shape[d];
    }
    e.n = x->shape[n->dim], e.step = x->strides[n->dim];
    flb_parallel(lines, &e, all, 1 + 20000 / (e.n + 1));
    return 0;
}
