/* Products of sparse matrices by rows (CSR), sorting of coordinates, sums of what stands at one place.
 *
 * Ranges and columns are int64 in C order and are checked before anything is read by them. Rows go over the
 * pool; the terms of an element are added up in the order in which they are stored, so results don't depend
 * on the number of threads. */
#include "runtime/graph.h"
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__)
#define CLONES \
    __attribute__((target_clones("avx512f", "avx2,fma", "default"), optimize("O3", "fp-contract=fast")))
#define WITH(...) __attribute__((optimize("O3", "fp-contract=fast"), ##__VA_ARGS__))
#else
#define CLONES
#define WITH(...)
#endif

#define KINDS (ELEMENT_I64 + 1) /* of ELEMENT, the first ones */
#define WIDE 64                 /* columns that are made together */
#define DIGIT 11                /* bits of a coordinate that one pass sorts by */
#define FEW 48                  /* coordinates that are sorted by insertion */

typedef struct {
    const int64_t *ranges, *columns;
    const void *values;
} Rowwise;

typedef struct {
    Rowwise a, b;
    const void *dense;
    void *out;
    const int64_t *out_ranges;
    int64_t *out_columns, *counts, rows, n,
        first; /* n: columns of the product, first: the first one to be made */
    int failed;
} Product;

typedef struct {
    const char *values;
    char *out;
    const int64_t *order, *starts;
    int64_t width;
} Runs;

typedef struct {
    float re, im;
} Complex64;
typedef struct {
    double re, im;
} Complex128;

static int by_number(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

#define ADD(to, b) (to) += (b)
#define ADD_PRODUCT(to, a, b) (to) += (a) * (b)
#define KERNELS "kernels/sparse_kernels.h"
#include "kernels/for_floats.h"
#define T uint64_t /* which wraps around */
#define NAME(x) x##_i64
#include "kernels/sparse_kernels.h"
#undef T
#undef NAME
#undef ADD
#undef ADD_PRODUCT
#define ADD(to, b) (to).re += (b).re, (to).im += (b).im
#define ADD_PRODUCT(to, a, b) \
    (to).re += (a).re * (b).re - (a).im * (b).im, (to).im += (a).re * (b).im + (a).im * (b).re
#define T Complex64
#define NAME(x) x##_c64
#include "kernels/sparse_kernels.h"
#undef T
#undef NAME
#define T Complex128
#define NAME(x) x##_c128
#include "kernels/sparse_kernels.h"
#undef T
#undef NAME

/* Whole blocks of float32 and float64 with their sums in registers; the rest of a row is sparse_dense's. */
#define BLOCKS(name, target_text, T, BYTES)                                                       \
    WITH(target_text) static void name(void *context, int64_t begin, int64_t end) {               \
        typedef T V __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));           \
        enum {                                                                                    \
            VECTORS = WIDE * sizeof(T) / BYTES,                                                   \
            SLICES = VECTORS > 4 ? VECTORS / 4 : 1,                                               \
            EACH = VECTORS / SLICES                                                               \
        };                                                                                        \
        const Product *p = context;                                                               \
        for (int64_t u = begin; u < end; u++) {                                                   \
            int64_t r = u % p->rows, j0 = u / p->rows * WIDE, first = p->a.ranges[r],             \
                    last = p->a.ranges[r + 1];                                                    \
            for (int s = 0; s < SLICES; s++) {                                                    \
                V sum[EACH];                                                                      \
                const T *from = (const T *)p->dense + j0 + s * (WIDE / SLICES);                   \
                V *to = (V *)((T *)p->out + r * p->n + j0 + s * (WIDE / SLICES));                 \
                _Pragma("GCC unroll 16") for (int i = 0; i < EACH; i++) sum[i] = (V){0};          \
                for (int64_t k = first; k < last; k++) {                                          \
                    const V *row = (const V *)(from + p->a.columns[k] * p->n);                    \
                    T v = ((const T *)p->a.values)[k];                                            \
                    _Pragma("GCC unroll 16") for (int i = 0; i < EACH; i++) sum[i] += v * row[i]; \
                }                                                                                 \
                _Pragma("GCC unroll 16") for (int i = 0; i < EACH; i++) to[i] = sum[i];           \
            }                                                                                     \
        }                                                                                         \
    }
BLOCKS(blocks_f32_16, unused, float, 16)
BLOCKS(blocks_f64_16, unused, double, 16)
#if defined(__x86_64__)
BLOCKS(blocks_f32_32, target("avx2,fma"), float, 32)
BLOCKS(blocks_f64_32, target("avx2,fma"), double, 32)
BLOCKS(blocks_f32_64, target("avx512f,fma"), float, 64)
BLOCKS(blocks_f64_64, target("avx512f,fma"), double, 64)
#define LEVELS(name) {name##_16, name##_32, name##_64}
#else
#define LEVELS(name) {name##_16, name##_16, name##_16}
#endif

/* Whether the matrix can be read: ranges that grow from 0 to the number of columns stored, columns below n;
 * else the status says what isn't. */
static int readable(const View *ranges, const View *columns, int64_t n, int64_t *status) {
    const int64_t *r = (const int64_t *)ranges->ptr, *c = (const int64_t *)columns->ptr;
    int64_t rows = ranges->shape[0] - 1, stored = columns->shape[0], bad = 0;
    for (int64_t i = 0, last = 0; i <= rows; last = r[i++])
        if (r[i] < last || r[i] > stored) return status[0] = 1, status[1] = r[i], status[2] = stored, 0;
    for (int64_t i = 0; i < stored; i++) bad |= (uint64_t)c[i] >= (uint64_t)n;
    for (int64_t i = 0; bad && i < stored; i++)
        if ((uint64_t)c[i] >= (uint64_t)n) return status[0] = 1, status[1] = c[i], status[2] = n, 0;
    return rows >= 0;
}

FLB_KERNEL(sparse_dense) {
    static const FlbRangeFn blocks[2][3] = {LEVELS(blocks_f32), LEVELS(blocks_f64)};
    static const FlbRangeFn rest[KINDS] = {sparse_dense_f32, sparse_dense_f64, sparse_dense_c64,
                                           sparse_dense_c128, sparse_dense_i64};
    Product p = {.a = {(const int64_t *)v->ranges.ptr, (const int64_t *)v->columns.ptr, v->values.ptr},
                 .dense = v->dense.ptr,
                 .out = v->made.ptr,
                 .rows = v->made.shape[0],
                 .n = v->made.shape[1]};
    int kind = (int)n->element;
    if (kind >= KINDS || !p.rows || !p.n || v->ranges.shape[0] != p.rows + 1 ||
        !readable(&v->ranges, &v->columns, v->dense.shape[0], status))
        return 0;
    int64_t each = 1 + v->columns.shape[0] / p.rows, width = p.n < WIDE ? p.n : WIDE,
            grain = 1 + 30000 / (each * width);
    if (kind <= ELEMENT_F64) {
        p.first = p.n / WIDE * WIDE;
        flb_parallel(blocks[kind][flb_cpu_level()], &p, p.n / WIDE * p.rows, grain);
    }
    flb_parallel(rest[kind], &p, (p.n - p.first + WIDE - 1) / WIDE * p.rows, grain);
    return 0;
}

/* Columns that a row of a product of sparse matrices stores. */
static void count_rows(void *context, int64_t begin, int64_t end) {
    Product *p = context;
    int64_t *met = calloc((size_t)p->n + 1, 8); /* the last row, counted from 1, that has stored the column */
    if (!met) p->failed = 1;
    for (int64_t r = begin; r < end && !p->failed; r++) {
        int64_t count = 0;
        for (int64_t i = p->a.ranges[r]; i < p->a.ranges[r + 1]; i++) {
            int64_t k = p->a.columns[i];
            for (int64_t j = p->b.ranges[k]; j < p->b.ranges[k + 1]; j++) {
                int64_t c = p->b.columns[j];
                count += met[c] != r + 1, met[c] = r + 1;
            }
        }
        p->counts[r] = count;
    }
    free(met);
}

FLB_KERNEL(sparse_count) {
    Product p = {.a = {(const int64_t *)v->a_ranges.ptr, (const int64_t *)v->a_columns.ptr},
                 .b = {(const int64_t *)v->b_ranges.ptr, (const int64_t *)v->b_columns.ptr},
                 .counts = (int64_t *)v->counts.ptr,
                 .rows = v->counts.shape[0],
                 .n = n->n};
    if (p.n < 0 || v->a_ranges.shape[0] != p.rows + 1 ||
        !readable(&v->a_ranges, &v->a_columns, v->b_ranges.shape[0] - 1, status) ||
        !readable(&v->b_ranges, &v->b_columns, p.n, status))
        return 0;
    flb_parallel(
        count_rows, &p, p.rows,
        1 +
            20000 /
                (1 +
                 v->a_columns.shape[0] / (p.rows + 1) * (1 + v->b_columns.shape[0] / v->b_ranges.shape[0])));
    return p.failed ? -1 : 0;
}

FLB_KERNEL(sparse_sparse) {
    static const FlbRangeFn of[KINDS] = {sparse_sparse_f32, sparse_sparse_f64, sparse_sparse_c64,
                                         sparse_sparse_c128, sparse_sparse_i64};
    Product p = {.a = {(const int64_t *)v->a_ranges.ptr, (const int64_t *)v->a_columns.ptr, v->a_values.ptr},
                 .b = {(const int64_t *)v->b_ranges.ptr, (const int64_t *)v->b_columns.ptr, v->b_values.ptr},
                 .out_ranges = (const int64_t *)v->ranges.ptr,
                 .out_columns = (int64_t *)v->columns.ptr,
                 .out = v->values.ptr,
                 .rows = v->ranges.shape[0] - 1,
                 .n = n->n};
    if (n->element >= KINDS || p.rows < 1) return 0;
    flb_parallel(
        of[n->element], &p, p.rows,
        1 +
            20000 /
                (1 + v->a_columns.shape[0] / p.rows * (1 + v->b_columns.shape[0] / v->b_ranges.shape[0])));
    return p.failed ? -1 : 0;
}

/* ---- coordinates --------------------------------------------------------------------------------------- */

FLB_KERNEL(sparse_group) {
    const int64_t *keys = (const int64_t *)v->keys.ptr;
    int64_t *ranges = (int64_t *)v->ranges.ptr, *order = (int64_t *)v->order.ptr, stored = v->keys.shape[0],
            count = v->ranges.shape[0] - 1;
    memset(ranges, 0, (size_t)(count + 1) * 8);
    for (int64_t i = 0; i < stored; i++) {
        if ((uint64_t)keys[i] >= (uint64_t)count)
            return status[0] = 1, status[1] = keys[i], status[2] = count, 0;
        ranges[keys[i] + 1]++;
    }
    for (int64_t k = 0; k < count; k++) ranges[k + 1] += ranges[k];
    if (!v->order.shape[0]) return 0;
    for (int64_t i = 0; i < stored; i++) order[ranges[keys[i]]++] = i;
    memmove(ranges + 1, ranges, (size_t)count * 8);
    ranges[0] = 0;
    return 0;
}

/* -1, 0, 1: how coordinates i and j compare, the first dimension first. */
static int compare(const int64_t *at, int64_t dims, int64_t stored, int64_t i, int64_t j) {
    for (int64_t d = 0; d < dims; d++, at += stored)
        if (at[i] != at[j]) return at[i] < at[j] ? -1 : 1;
    return 0;
}

FLB_KERNEL(sparse_order) {
    const int64_t *at = (const int64_t *)v->coordinates.ptr;
    int64_t *order = (int64_t *)v->order.ptr, *starts = (int64_t *)v->starts.ptr,
            dims = v->coordinates.shape[0], stored = v->coordinates.shape[1], runs = 0;
    int sorted = 1;
    for (int64_t i = 0; i < stored; i++) order[i] = i;
    for (int64_t i = 1; i < stored && sorted; i++) sorted = compare(at, dims, stored, i - 1, i) <= 0;
    if (!sorted && stored <= FEW) {
        for (int64_t i = 1; i < stored; i++) {
            int64_t j = i;
            for (; j && compare(at, dims, stored, order[j - 1], i) > 0; j--) order[j] = order[j - 1];
            order[j] = i;
        }
    } else if (!sorted) { /* by digits, the last ones first */
        int64_t *spare = malloc((size_t)stored * 8), *from = order, *to = spare;
        if (!spare) return -1;
        for (int64_t d = dims; d-- > 0;) {
            const uint64_t *key = (const uint64_t *)at + d * stored;
            uint64_t bits = 0;
            for (int64_t i = 0; i < stored; i++) bits |= key[i];
            for (int shift = 0; shift < 64 && bits >> shift; shift += DIGIT) {
                int64_t ends[1 << DIGIT] = {0}, total = 0;
                for (int64_t i = 0; i < stored; i++) ends[key[i] >> shift & ((1 << DIGIT) - 1)]++;
                for (int64_t k = 0; k < 1 << DIGIT; k++) {
                    int64_t count = ends[k];
                    ends[k] = total, total += count;
                }
                for (int64_t i = 0; i < stored; i++)
                    to[ends[key[from[i]] >> shift & ((1 << DIGIT) - 1)]++] = from[i];
                int64_t *swap = from;
                from = to, to = swap;
            }
        }
        if (from != order) memcpy(order, from, (size_t)stored * 8);
        free(spare);
    }
    for (int64_t i = 0; i < stored; i++)
        if (!i || compare(at, dims, stored, order[i - 1], order[i])) starts[runs++] = i;
    starts[runs] = stored;
    *(int64_t *)v->count.ptr = runs;
    return 0;
}

FLB_KERNEL(sparse_sums) {
    static const FlbRangeFn of[KINDS] = {sum_runs_f32, sum_runs_f64, sum_runs_c64, sum_runs_c128,
                                         sum_runs_i64};
    Runs r = {.values = v->values.ptr,
              .out = v->sums.ptr,
              .order = (const int64_t *)v->order.ptr,
              .starts = (const int64_t *)v->starts.ptr,
              .width = v->values.shape[1]};
    int64_t stored = v->coordinates.shape[1], runs = v->places.shape[1], *to = (int64_t *)v->places.ptr;
    if (n->element >= KINDS || !runs) return 0;
    for (int64_t d = 0; d < v->coordinates.shape[0]; d++)
        for (int64_t k = 0; k < runs; k++)
            *to++ = ((const int64_t *)v->coordinates.ptr)[d * stored + r.order[r.starts[k]]];
    flb_parallel(of[n->element], &r, runs, 1 + 10000 / (1 + r.width));
    return 0;
}
