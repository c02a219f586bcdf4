/* The place of the greatest or the least element of each line: the first of equal ones, the first nan over
 * all. */
#include "runtime/graph.h"
#include "kernels/order_keys.h"

#define MOST_DIMS 64

typedef struct {
    int kind, least, ndim; /* ndim: dimensions apart from the line's */
    int64_t n, step;
    const char *from;
    int64_t *places;
    int64_t shape[MOST_DIMS], strides[MOST_DIMS];
} Extreme;

/* What is wanted becomes the greatest key; nan, whose key is the greatest, stays that. */
#define FIND(T, Key, of, floating)                                                                      \
    {                                                                                                   \
        Key best = 0;                                                                                   \
        for (int64_t i = 0; i < e->n; i++) {                                                            \
            Key key = of(*(const T *)(line + i * e->step));                                             \
            if (e->least) key = !(floating) ? (Key)~key : key == (Key) ~(Key)0 ? key : (Key)(~key - 1); \
            if (key > best) best = key, at = i;                                                         \
        }                                                                                               \
        break;                                                                                          \
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
        case ELEMENT_F32: FIND(uint32_t, uint32_t, of_f32, 1)
        case ELEMENT_F64: FIND(uint64_t, uint64_t, of_f64, 1)
        case ELEMENT_F16: FIND(uint16_t, uint32_t, of_f16, 1)
        case ELEMENT_BF16: FIND(uint16_t, uint32_t, of_bf16, 1)
        case ELEMENT_I64: FIND(uint64_t, uint64_t, of_i64, 0)
        case ELEMENT_I32: FIND(uint32_t, uint32_t, of_i32, 0)
        case ELEMENT_I16: FIND(uint16_t, uint32_t, of_i16, 0)
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
