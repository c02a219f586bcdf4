/* The place of the greatest or the least element of each line: the first of equal ones, the first nan over all. */
#include "graph.h"
#include "order_keys.h"

#define MOST_DIMS 64

typedef struct {
    int kind, least, ndim;      /* ndim: dimensions apart from the line's */
    int64_t n, step;
    const char *from;
    int64_t *places;
    int64_t shape[MOST_DIMS], strides[MOST_DIMS];
} Extreme;

/* What is wanted becomes the greatest key; nan, whose key is the greatest, stays that. */
#define FIND(T, Key, of, floating)                                                                                                             \
    {                                                                                                                                          \
        Key best = 0;                                                                                                                          \
        for (int64_t i = 0; i < e->n; i++) {                                                                                                   \
            Key key = of(*(const T *)(line + i * e->step));                                                                                    \
            if (e->least) key = !(floating) ? (Key)~key : key == (Key)~(Key)0 ? key : (Key)(~key - 1);                                         \
            if (key > best) best = key, at = i;                                                                                                \
        }                                                                                                                                      \
        break;                                                                                                                                 \
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
        case F32: FIND(uint32_t, uint32_t, of_f32, 1)
        case F64: FIND(uint64_t, uint64_t, of_f64, 1)
        case F16: FIND(uint16_t, uint32_t, of_f16, 1)
        case BF16: FIND(uint16_t, uint32_t, of_bf16, 1)
        case I64: FIND(uint64_t, uint64_t, of_i64, 0)
        case I32: FIND(uint32_t, uint32_t, of_i32, 0)
        case I16: FIND(uint16_t, uint32_t, of_i16, 0)
        case I8: FIND(uint8_t, uint32_t, of_i8, 0)
        case U8: FIND(uint8_t, uint32_t, of_u8, 0)
        }
        e->places[l] = at;
    }
}

/* Views: what is read, the places in C order (int64, as many as there are lines). Numbers: the dimension, the kind (base/order.py), whether the least. */
int flb_extreme_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    int dim = (int)numbers[0];
    Extreme e = {.kind = (int)numbers[1], .least = numbers[2] != 0, .from = v[0].ptr, .places = (int64_t *)v[1].ptr};
    if (v[0].ndim > MOST_DIMS || dim < 0 || dim >= v[0].ndim) return 0;
    int64_t all = 1;
    for (int d = 0; d < v[0].ndim; d++) {
        if (d == dim) continue;
        e.shape[e.ndim] = v[0].shape[d], e.strides[e.ndim++] = v[0].strides[d];
        all *= v[0].shape[d];
    }
    e.n = v[0].shape[dim], e.step = v[0].strides[dim];
    flb_parallel(lines, &e, all, 1 + 20000 / (e.n + 1));
    return 0;
}
