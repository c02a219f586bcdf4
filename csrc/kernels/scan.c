/* Running sums and products along one dimension, in C order: float32 (carried on in float64 and rounded
 * once), float64 and int64.
 *
 * The array is (outer, n, inner). With inner elements side by side lines are carried on together, a vector of
 * them at a time; single lines are made four at a time, so that one waits for its addition while the others
 * go on. Few long lines are cut into pieces: totals first, then each piece from the total before it. The cut
 * depends on sizes only, so results don't depend on the number of threads. */
#include "runtime/graph.h"
#include "runtime/levels.h"
#include <string.h>

#define PIECE 16384 /* elements of a line that is cut */
#define ACROSS 64   /* lines that are carried on together */

typedef struct {
    const void *from;
    void *to,
        *totals; /* totals: of each piece of each line, in the type sums are made in; NULL: lines are whole */
    int64_t outer, n, inner, pieces;
    int product, type;
} Scan;

#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))

/* LINES(name, T, A, OP, ONE): lines [begin, end) of n elements one after the other; strips of lines that lie
 * side by side; pieces of lines. */
#define LINES(name, T, A, OP, FIRST)                                                                     \
    static void name##_lines(const Scan *s, int64_t begin, int64_t end) {                                \
        int64_t n = s->n, i = begin;                                                                     \
        for (; i + 4 <= end; i += 4) {                                                                   \
            const T *a = (const T *)s->from + i * n, *b = a + n, *c = b + n, *d = c + n;                 \
            T *p = (T *)s->to + i * n, *q = p + n, *r = q + n, *t = r + n;                               \
            A w = FIRST, x = FIRST, y = FIRST, z = FIRST;                                                \
            for (int64_t k = 0; k < n; k++) {                                                            \
                w = OP(w, a[k]), x = OP(x, b[k]), y = OP(y, c[k]), z = OP(z, d[k]);                      \
                p[k] = (T)w, q[k] = (T)x, r[k] = (T)y, t[k] = (T)z;                                      \
            }                                                                                            \
        }                                                                                                \
        for (; i < end; i++) {                                                                           \
            const T *a = (const T *)s->from + i * n;                                                     \
            T *p = (T *)s->to + i * n;                                                                   \
            A w = FIRST;                                                                                 \
            for (int64_t k = 0; k < n; k++) w = OP(w, a[k]), p[k] = (T)w;                                \
        }                                                                                                \
    }                                                                                                    \
    BY_LEVEL(static void, name##_strips, (const Scan *s, int64_t begin, int64_t end), (s, begin, end)) { \
        int64_t strips = (s->inner + ACROSS - 1) / ACROSS;                                               \
        for (int64_t i = begin; i < end; i++) {                                                          \
            int64_t j0 = i % strips * ACROSS, width = s->inner - j0 < ACROSS ? s->inner - j0 : ACROSS;   \
            const T *a = (const T *)s->from + i / strips * s->n * s->inner + j0;                         \
            T *p = (T *)s->to + i / strips * s->n * s->inner + j0;                                       \
            A sum[ACROSS];                                                                               \
            for (int j = 0; j < ACROSS; j++) sum[j] = FIRST;                                             \
            for (int64_t k = 0; k < s->n; k++, a += s->inner, p += s->inner) {                           \
                if (width == ACROSS)                                                                     \
                    for (int j = 0; j < ACROSS; j++) sum[j] = OP(sum[j], a[j]), p[j] = (T)sum[j];        \
                else                                                                                     \
                    for (int64_t j = 0; j < width; j++) sum[j] = OP(sum[j], a[j]), p[j] = (T)sum[j];     \
            }                                                                                            \
        }                                                                                                \
    }                                                                                                    \
    static void name##_totals(const Scan *s, int64_t begin, int64_t end) {                               \
        for (int64_t i = begin; i < end; i++) {                                                          \
            int64_t from = i % s->pieces * PIECE, to = from + PIECE < s->n ? from + PIECE : s->n;        \
            const T *a = (const T *)s->from + i / s->pieces * s->n;                                      \
            A w = FIRST;                                                                                 \
            for (int64_t k = from; k < to; k++) w = OP(w, a[k]);                                         \
            ((A *)s->totals)[i] = w;                                                                     \
        }                                                                                                \
    }                                                                                                    \
    static void name##_pieces(const Scan *s, int64_t begin, int64_t end) {                               \
        for (int64_t i = begin; i < end; i++) {                                                          \
            int64_t from = i % s->pieces * PIECE, to = from + PIECE < s->n ? from + PIECE : s->n;        \
            const T *a = (const T *)s->from + i / s->pieces * s->n;                                      \
            T *p = (T *)s->to + i / s->pieces * s->n;                                                    \
            A w = i % s->pieces ? ((A *)s->totals)[i - 1] : FIRST;                                       \
            for (int64_t k = from; k < to; k++) w = OP(w, a[k]), p[k] = (T)w;                            \
        }                                                                                                \
    }                                                                                                    \
    static void name##_carry(const Scan *s) {                                                            \
        A *t = s->totals;                                                                                \
        for (int64_t i = 0; i < s->outer; i++)                                                           \
            for (int64_t k = 1; k < s->pieces; k++)                                                      \
                t[i * s->pieces + k] = OP(t[i * s->pieces + k - 1], t[i * s->pieces + k]);               \
    }

LINES(sum_f32, float, double, PLUS, 0)
LINES(product_f32, float, double, TIMES, 1)
LINES(sum_f64, double, double, PLUS, 0)
LINES(product_f64, double, double, TIMES, 1)
LINES(sum_i64, uint64_t, uint64_t, PLUS, 0) /* they wrap */
LINES(product_i64, uint64_t, uint64_t, TIMES, 1)

typedef void (*Loop)(const Scan *, int64_t, int64_t);
#define PARTS(x) {sum_f32##x, product_f32##x, sum_f64##x, product_f64##x, sum_i64##x, product_i64##x}
static const Loop lines[] = PARTS(_lines), strips[] = PARTS(_strips), totals[] = PARTS(_totals),
                  pieces[] = PARTS(_pieces);
static void (*const carry[])(const Scan *) = PARTS(_carry);

typedef struct {
    const Scan *scan;
    const Loop *parts;
} Ranged;

static void range(void *context, int64_t begin, int64_t end) {
    const Ranged *r = context;
    r->parts[2 * r->scan->type + r->scan->product](r->scan, begin, end);
}

FLB_KERNEL(scan) {
    const View *x = &v->source;
    Scan s = {.from = x->ptr, .to = v->made.ptr, .outer = 1, .n = 1, .inner = 1, .product = n->product != 0};
    for (int d = 0; d < x->ndim; d++) {
        if (d < n->dim) s.outer *= x->shape[d];
        else if (d == n->dim) s.n = x->shape[d];
        else s.inner *= x->shape[d];
    }
    switch (n->element) {
    case ELEMENT_F32: s.type = 0; break;
    case ELEMENT_F64: s.type = 1; break;
    case ELEMENT_I64: s.type = 2; break;
    default: return 0;
    }
    if (!s.outer || !s.n || !s.inner) return 0;
    if (s.inner > 1) {
        int64_t all = s.outer * ((s.inner + ACROSS - 1) / ACROSS);
        flb_parallel(range, &(Ranged){&s, strips}, all,
                     1 + 20000 / (s.n * (s.inner < ACROSS ? s.inner : ACROSS)));
        return 0;
    }
    if (s.outer >= 16 || s.n < 4 * PIECE) {
        flb_parallel(range, &(Ranged){&s, lines}, s.outer, (1 + 20000 / s.n + 3) / 4 * 4);
        return 0;
    }
    s.pieces = (s.n + PIECE - 1) / PIECE;
    if (!(s.totals = flb_api->scratch(s.outer * s.pieces * 8))) return -1;
    flb_parallel(range, &(Ranged){&s, totals}, s.outer * s.pieces, 1);
    carry[2 * s.type + s.product](&s);
    flb_parallel(range, &(Ranged){&s, pieces}, s.outer * s.pieces, 1);
    flb_api->free(s.totals);
    return 0;
}
