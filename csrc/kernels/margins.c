/* Margins of labelled classes over all others, and their gradients: what `multilabel_margin_loss` adds up. */
#include "runtime/graph.h"
#include "runtime/levels.h"
#include <math.h>

/* (x - own) + 1 is rounded twice, as its operators do. */
#define EXACTLY optimize("O3", "fp-contract=off", "no-trapping-math")

/* FOLD: terms of each of the partial sums before they go on in a double. */
enum { LANES = 16, FOLD = 64 };

typedef struct {
    const char *x, *cotangents;
    const int64_t *targets;
    char *made;
    int64_t classes, bad, label; /* a label that is no class */
    int f64, failed;             /* failed: out of memory */
} Margins;

/* How many labels count, which are those before the first negative one; what is below -1 or no class is
 * refused wherever it stands. */
static int64_t counted(Margins *m, const int64_t *labels) {
    int64_t count = m->classes;
    for (int64_t k = 0; k < m->classes; k++) {
        if (labels[k] < -1 || labels[k] >= m->classes) return m->label = labels[k], m->bad = 1, 0;
        if (labels[k] < 0 && k < count) count = k;
    }
    return count;
}

/* `rest` holds a multiple of LANES elements, at the end -inf, which is above no margin. */
#define MARGINS(T, I, NAME)                                                                                 \
    typedef struct {                                                                                        \
        T *rest;                                                                                            \
        I *hits;                                                                                            \
        int64_t *at, count, whole; /* `at`: which class */                                                  \
    } Others_##NAME;                                                                                        \
    BY_LEVEL_WITH(                                                                                          \
        EXACTLY, static void, add_##NAME,                                                                   \
        (const T *rest, int64_t whole, const T *x, const int64_t *labels, int64_t n, double *total),        \
        (rest, whole, x, labels, n, total)) {                                                               \
        T part[LANES] = {0};                                                                                \
        double sum = 0;                                                                                     \
        for (int64_t k = 0, terms = 0; k < n; k++) {                                                        \
            T own = x[labels[k]];                                                                           \
            for (int64_t i = 0; i < whole; i += LANES) {                                                    \
                for (int l = 0; l < LANES; l++) {                                                           \
                    T z = rest[i + l] - own + 1;                                                            \
                    part[l] += z < 0 ? 0 : z;                                                               \
                }                                                                                           \
                if (++terms % FOLD) continue;                                                               \
                for (int l = 0; l < LANES; l++) sum += part[l], part[l] = 0;                                \
            }                                                                                               \
        }                                                                                                   \
        for (int l = 0; l < LANES; l++) sum += part[l];                                                     \
        *total = sum;                                                                                       \
    }                                                                                                       \
    BY_LEVEL_WITH(EXACTLY, static void, count_##NAME,                                                       \
                  (const T *rest, int64_t whole, T own, I *hits, int64_t *total),                           \
                  (rest, whole, own, hits, total)) {                                                        \
        I part[LANES] = {0};                                                                                \
        for (int64_t i = 0; i < whole; i += LANES)                                                          \
            for (int l = 0; l < LANES; l++) {                                                               \
                I hit = rest[i + l] - own + 1 >= 0;                                                         \
                hits[i + l] += hit, part[l] += hit;                                                         \
            }                                                                                               \
        int64_t sum = 0;                                                                                    \
        for (int l = 0; l < LANES; l++) sum += part[l];                                                     \
        *total = sum;                                                                                       \
    }                                                                                                       \
    static int64_t others_##NAME(Margins *m, int64_t row, Others_##NAME *o) {                               \
        const int64_t *labels = m->targets + row * m->classes;                                              \
        const T *x = (const T *)m->x + row * m->classes;                                                    \
        int64_t n = counted(m, labels);                                                                     \
        for (int64_t i = 0; i < m->classes; i++) o->at[i] = 1;                                              \
        for (int64_t k = 0; k < n; k++) o->at[labels[k]] = 0;                                               \
        o->count = 0;                                                                                       \
        for (int64_t i = 0, other; i < m->classes; i++) {                                                   \
            other = o->at[i], o->rest[o->count] = x[i], o->at[o->count] = i, o->count += other;             \
        }                                                                                                   \
        o->whole = (o->count + LANES - 1) / LANES * LANES;                                                  \
        for (int64_t i = o->count; i < o->whole; i++) o->rest[i] = -INFINITY;                               \
        return n;                                                                                           \
    }                                                                                                       \
    static void loss_##NAME(Margins *m, int64_t row, Others_##NAME *o) {                                    \
        const int64_t *labels = m->targets + row * m->classes;                                              \
        const T *x = (const T *)m->x + row * m->classes;                                                    \
        int64_t n = others_##NAME(m, row, o), lowest = 0;                                                   \
        double sum = 0;                                                                                     \
        for (int64_t k = 0; k < n; k++) lowest |= x[labels[k]] == -INFINITY;                                \
        if (!lowest) add_##NAME(o->rest, o->whole, x, labels, n, &sum);                                     \
        for (int64_t k = 0; lowest && k < n; k++) /* -inf - -inf at the end would be nan */                 \
            for (int64_t i = 0; i < o->count; i++) {                                                        \
                T z = o->rest[i] - x[labels[k]] + 1;                                                        \
                sum += z < 0 ? 0 : z;                                                                       \
            }                                                                                               \
        ((T *)m->made)[row] = (T)sum / (T)m->classes;                                                       \
    }                                                                                                       \
    static void slopes_##NAME(Margins *m, int64_t row, Others_##NAME *o) {                                  \
        const int64_t *labels = m->targets + row * m->classes;                                              \
        const T *x = (const T *)m->x + row * m->classes;                                                    \
        T *made = (T *)m->made + row * m->classes, slope = ((const T *)m->cotangents)[row] / (T)m->classes; \
        int64_t n = others_##NAME(m, row, o);                                                               \
        for (int64_t i = 0; i < o->whole; i++) o->hits[i] = 0;                                              \
        for (int64_t i = 0; i < m->classes; i++) made[i] = 0;                                               \
        for (int64_t k = 0, total; k < n; k++) {                                                            \
            count_##NAME(o->rest, o->whole, x[labels[k]], o->hits, &total);                                 \
            if (total) made[labels[k]] -= (T)total * slope;                                                 \
        }                                                                                                   \
        for (int64_t i = 0; i < o->count; i++)                                                              \
            if (o->hits[i]) made[o->at[i]] = (T)o->hits[i] * slope;                                         \
    }                                                                                                       \
    static void rows_##NAME(Margins *m, int64_t begin, int64_t end) {                                       \
        size_t room = (size_t)m->classes + LANES;                                                           \
        char *memory = flb_api->malloc(room * (sizeof(T) + sizeof(I) + sizeof(int64_t)));                   \
        if (!memory) return (void)(m->failed = 1);                                                          \
        Others_##NAME o = {.at = (int64_t *)memory,                                                         \
                           .rest = (T *)(memory + room * sizeof(int64_t)),                                  \
                           .hits = (I *)(memory + room * (sizeof(int64_t) + sizeof(T)))};                   \
        for (int64_t r = begin; r < end && !m->bad; r++)                                                    \
            (m->cotangents ? slopes_##NAME : loss_##NAME)(m, r, &o);                                        \
        flb_api->free(memory);                                                                              \
    }
MARGINS(float, int32_t, f32)
MARGINS(double, int64_t, f64)

static void rows(void *context, int64_t begin, int64_t end) {
    Margins *m = context;
    (m->f64 ? rows_f64 : rows_f32)(m, begin, end);
}

static int run(Margins *m, int64_t count, int64_t *status) {
    flb_parallel(rows, m, count, 1 + 400000 / (m->classes * m->classes));
    if (m->bad) status[1] = m->label, status[2] = m->classes, status[0] = 1;
    return m->failed ? -1 : 0;
}

FLB_KERNEL(label_margins) {
    Margins m = {.x = v->x.ptr,
                 .targets = (const int64_t *)v->targets.ptr,
                 .made = v->made.ptr,
                 .classes = v->x.shape[1],
                 .f64 = n->f64 != 0};
    return run(&m, v->x.shape[0], status);
}

FLB_KERNEL(label_margins_backward) {
    Margins m = {.x = v->x.ptr,
                 .cotangents = v->cotangents.ptr,
                 .targets = (const int64_t *)v->targets.ptr,
                 .made = v->made.ptr,
                 .classes = v->x.shape[1],
                 .f64 = n->f64 != 0};
    return run(&m, v->x.shape[0], status);
}
