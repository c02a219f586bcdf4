/* Arrays with edges around them that repeat or mirror what is inside. */
#include "runtime/graph.h"
#include <string.h>

typedef struct {
    const int64_t *sizes, *made; /* of all dimensions */
    int ndim, mirror;
    int64_t before[64], item;
} Padding;

/* The place inside that stands at place i. */
static int64_t inside(const Padding *p, int d, int64_t i) {
    int64_t k = i - p->before[d], last = p->sizes[d] - 1;
    if (p->mirror) return k < 0 ? -k : k > last ? 2 * last - k : k;
    return k < 0 ? 0 : k > last ? last : k;
}

#define ROW(T)                                                                            \
    {                                                                                     \
        T *out = (T *)to;                                                                 \
        const T *x = (const T *)from;                                                     \
        for (int64_t i = 0; i < before; i++) out[i] = x[inside(p, d, i)];                 \
        memcpy(out + before, x, (size_t)size * sizeof(T));                                \
        for (int64_t i = before + size; i < p->made[d]; i++) out[i] = x[inside(p, d, i)]; \
    }
typedef struct {
    uint64_t low, high;
} wide_t;

static void pad(const Padding *p, int d, const char *from, char *to) {
    int64_t before = p->before[d], size = p->sizes[d], step = p->item, made = p->item;
    if (d == p->ndim - 1) {
        if (p->item == 1) ROW(uint8_t)
        else if (p->item == 2) ROW(uint16_t)
        else if (p->item == 4) ROW(uint32_t)
        else if (p->item == 8) ROW(uint64_t)
        else ROW(wide_t)
        return;
    }
    for (int e = d + 1; e < p->ndim; e++) step *= p->sizes[e], made *= p->made[e];
    for (int64_t i = 0; i < p->made[d]; i++) pad(p, d + 1, from + inside(p, d, i) * step, to + i * made);
}

FLB_KERNEL(pad_edges) {
    Padding p = {v->source.shape, v->made.shape, v->made.ndim, n->mirror != 0, {0}, n->item};
    int lead = p.ndim - (int)n->before_count;
    for (int k = 0; k < n->before_count; k++) p.before[lead + k] = n->before[k];
    pad(&p, 0, v->source.ptr, v->made.ptr);
    return 0;
}
