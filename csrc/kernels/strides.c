/* Views given by strides, and their transposes: elements go to places of one line of memory and are read at
 * others. The line exists during the call only; both sides count their places from its element 0. */
#include "runtime/graph.h"
#include <string.h>

typedef struct {
    int ndim;
    const int64_t *shape, *strides; /* in elements */
    int64_t offset;
} Side;

/* Calls that follow one another visit the elements of a side in C order; `at` has the coordinates. */
static int64_t next_place(const Side *s, int64_t *at, int64_t place) {
    for (int d = s->ndim - 1; d >= 0; d--) {
        place += s->strides[d];
        if (++at[d] < s->shape[d]) return place;
        place -= s->shape[d] * s->strides[d], at[d] = 0;
    }
    return place;
}

/* Widens [*low, *high] to the places of a side; 0: it has no elements. */
static int reaches(const Side *s, int64_t *low, int64_t *high) {
    int64_t first = s->offset, last = s->offset;
    for (int d = 0; d < s->ndim; d++) {
        if (!s->shape[d]) return 0;
        int64_t end = (s->shape[d] - 1) * s->strides[d];
        if (end < 0) first += end;
        else last += end;
    }
    if (first < *low) *low = first;
    if (last > *high) *high = last;
    return 1;
}

static int64_t elements(const Side *s) {
    int64_t n = 1;
    for (int d = 0; d < s->ndim; d++) n *= s->shape[d];
    return n;
}

#define MOST_DIMS 8

#define PASS(name, T)                                                                                     \
    static void name(const Side *from, const Side *to, const View *source, const View *made, char *line,  \
                     int64_t *visits, int sharing, int64_t low) {                                         \
        T *memory = (T *)line, *out = (T *)made->ptr;                                                     \
        const T *x = (const T *)source->ptr;                                                              \
        int64_t a[MOST_DIMS] = {0}, b[MOST_DIMS] = {0}, c[MOST_DIMS] = {0};                               \
        int64_t place = from->offset - low, n = elements(from), wanted = elements(to);                    \
        for (int64_t i = 0; i < n; i++, place = next_place(from, a, place)) {                             \
            memory[place] += x[i];                                                                        \
            if (sharing == SHARING_SOURCE) visits[place]++;                                               \
        }                                                                                                 \
        place = to->offset - low;                                                                         \
        for (int64_t i = 0; sharing == SHARING_MADE && i < wanted; i++, place = next_place(to, b, place)) \
            visits[place]++;                                                                              \
        place = to->offset - low;                                                                         \
        for (int64_t i = 0; i < wanted; i++, place = next_place(to, c, place))                            \
            out[i] = visits && visits[place] > 1 ? memory[place] / (T)visits[place] : memory[place];      \
    }
PASS(pass_f32, float)
PASS(pass_f64, double)

FLB_KERNEL(restride) {
    Side from = {v->source.ndim, v->source.shape, n->source_strides, n->source_offset},
         to = {v->made.ndim, v->made.shape, n->made_strides, n->made_offset};
    int64_t low = INT64_MAX, high = INT64_MIN, item = n->f64 ? 8 : 4;
    if (n->source_strides_count != from.ndim || n->made_strides_count != to.ndim) return 0;
    if (!reaches(&to, &low, &high)) return 0;
    if (!reaches(&from, &low, &high)) return memset(v->made.ptr, 0, (size_t)(elements(&to) * item)), 0;
    char *line = flb_api->malloc((size_t)((high - low + 1) * item));
    int counts = n->sharing != SHARING_NONE;
    int64_t *visits = counts ? flb_api->malloc((size_t)(high - low + 1) * sizeof *visits) : NULL;
    int failed = line && (visits || !counts) ? 0 : -1;
    if (!failed) {
        memset(line, 0, (size_t)((high - low + 1) * item));
        if (visits) memset(visits, 0, (size_t)(high - low + 1) * sizeof *visits);
        (n->f64 ? pass_f64 : pass_f32)(&from, &to, &v->source, &v->made, line, visits, (int)n->sharing, low);
    }
    flb_api->free(line);
    flb_api->free(visits);
    return failed;
}
