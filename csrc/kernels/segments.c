/* Reductions of segments: rows of data that follow one another, of given lengths or between given offsets.
 * Elements are combined one after the other. */
#include "runtime/graph.h"
#include <math.h>

typedef struct {
    const flb_segment_reduce_views *v;
    const flb_segment_reduce_numbers *n;
    int64_t length, segments, inner; /* of rows of data; of a line of segments; elements of a row */
    const int64_t *begins;           /* of lengths, where each segment begins */
} Segments;

static int64_t clipped(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }

/* The rows [*first, return value) of a segment, none outside of the data; *count: how many it is said to
 * have. */
static int64_t rows_of(const Segments *s, int64_t line, int64_t k, int64_t *first, int64_t *count) {
    const int64_t *given = (const int64_t *)s->v->where.ptr + line * (s->segments + (s->n->offsets != 0)) + k;
    int64_t begin = s->n->offsets ? given[0] : s->begins[line * s->segments + k];
    *first = clipped(begin, 0, s->length);
    if (s->n->offsets) {
        if (__builtin_sub_overflow(given[1], given[0], count)) *count = 0;
        return clipped(given[1], *first, s->length);
    }
    *count = given[0];
    return *first + clipped(*count, 0, s->length - *first);
}

#define REDUCE(name, T)                                                                     \
    static void name(void *context, int64_t begin, int64_t end) {                           \
        const Segments *s = context;                                                        \
        static const double starts[SEGMENT_COUNT] = {                                       \
            [SEGMENT_MIN] = INFINITY, [SEGMENT_MAX] = -INFINITY, [SEGMENT_PROD] = 1};       \
        T start = (T)(s->n->started ? s->n->initial : starts[s->n->reduce]);                \
        for (int64_t i = begin; i < end; i++) {                                             \
            int64_t line = i / s->segments, first, count,                                   \
                    last = rows_of(s, line, i % s->segments, &first, &count);               \
            T *to = (T *)s->v->made.ptr + i * s->inner;                                     \
            for (int64_t j = 0; j < s->inner; j++) to[j] = start;                           \
            for (int64_t k = first; k < last; k++) {                                        \
                const T *x = (const T *)s->v->data.ptr + (line * s->length + k) * s->inner; \
                switch (s->n->reduce) {                                                     \
                case SEGMENT_MIN:                                                           \
                    for (int64_t j = 0; j < s->inner; j++)                                  \
                        to[j] = x[j] < to[j] || x[j] != x[j] ? x[j] : to[j];                \
                    break;                                                                  \
                case SEGMENT_MAX:                                                           \
                    for (int64_t j = 0; j < s->inner; j++)                                  \
                        to[j] = x[j] > to[j] || x[j] != x[j] ? x[j] : to[j];                \
                    break;                                                                  \
                case SEGMENT_PROD:                                                          \
                    for (int64_t j = 0; j < s->inner; j++) to[j] *= x[j];                   \
                    break;                                                                  \
                default:                                                                    \
                    for (int64_t j = 0; j < s->inner; j++) to[j] += x[j];                   \
                }                                                                           \
            }                                                                               \
            if (s->n->reduce != SEGMENT_MEAN) continue;                                     \
            for (int64_t j = 0; j < s->inner; j++)                                          \
                to[j] = count ? to[j] / (T)count : s->n->started ? to[j] : (T)NAN;          \
        }                                                                                   \
    }
REDUCE(reduce_f32, float)
REDUCE(reduce_f64, double)

/* Where segments of given lengths begin; whether they are the rows of the data, none too many or too few. */
static int lay_out(const Segments *s, const int64_t *lengths, int64_t lines, int64_t *begins) {
    int fits = 1;
    for (int64_t line = 0; line < lines; line++) {
        int64_t at = 0;
        for (int64_t k = line * s->segments; k < (line + 1) * s->segments; k++) {
            begins[k] = at;
            fits &= lengths[k] >= 0;
            if (__builtin_add_overflow(at, lengths[k], &at)) at = s->length, fits = 0;
        }
        fits &= at == s->length;
    }
    return fits;
}

static int are_ascending(const int64_t *offsets, int64_t lines, int64_t segments) {
    for (int64_t line = 0; line < lines; line++, offsets += segments + 1)
        for (int64_t k = 0; k < segments; k++)
            if (offsets[k + 1] < offsets[k]) return 0;
    return 1;
}

FLB_KERNEL(segment_reduce) {
    int64_t lines = v->made.shape[0];
    Segments s = {v, n, v->data.shape[1], v->made.shape[1], v->made.shape[2], NULL};
    int64_t *begins = NULL, total = lines * s.segments;
    if (v->where.shape[0] != lines || v->where.shape[1] != s.segments + (n->offsets != 0)) return -1;
    if (!n->offsets && !(s.begins = begins = flb_api->malloc((size_t)(total + 1) * sizeof *begins)))
        return -1;
    const int64_t *where = (const int64_t *)v->where.ptr;
    int fits = n->offsets ? are_ascending(where, lines, s.segments) : lay_out(&s, where, lines, begins);
    if (!fits && !n->unsafe) {
        if (!status[0]) status[0] = n->refused + 1;
    } else if (total) {
        flb_parallel(n->f64 ? reduce_f64 : reduce_f32, &s, total,
                     1 + 20000 / (1 + (s.length / s.segments + 1) * s.inner));
    }
    flb_api->free(begins);
    return 0;
}
