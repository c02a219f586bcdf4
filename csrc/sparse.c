/* Products of sparse matrices by rows (CSR), sorting of coordinates, sums of what stands at one place.
 *
 * Ranges and columns are int64 in C order and are checked before anything is read by them. Rows go over the pool; the terms of an element are added up in
 * the order in which they are stored, so results don't depend on the number of threads. */
#include "graph.h"
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("avx512f", "avx2,fma", "default"), optimize("O3", "fp-contract=fast")))
#define WITH(...) __attribute__((optimize("O3", "fp-contract=fast"), ##__VA_ARGS__))
#else
#define CLONES
#define WITH(...)
#endif

enum { F32, F64, C64, C128, I64, KINDS }; /* base/sparse.py's KINDS */
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
    int64_t *out_columns, *counts, rows, n, first; /* n: columns of the product, first: the first one to be made */
    int failed;
} Product;

typedef struct {
    const char *values;
    char *out;
    const int64_t *order, *starts;
    int64_t width;
} Runs;

typedef struct { float re, im; } Complex64;
typedef struct { double re, im; } Complex128;

static int by_number(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

#define ADD(to, b) (to) += (b)
#define ADD_PRODUCT(to, a, b) (to) += (a) * (b)
#define T float
#define NAME(x) x##_f32
#include "sparse_kernels.h"
#undef T
#undef NAME
#define T double
#define NAME(x) x##_f64
#include "sparse_kernels.h"
#undef T
#undef NAME
#define T uint64_t              /* which wraps around */
#define NAME(x) x##_i64
#include "sparse_kernels.h"
#undef T
#undef NAME
#undef ADD
#undef ADD_PRODUCT
#define ADD(to, b) (to).re += (b).re, (to).im += (b).im
#define ADD_PRODUCT(to, a, b) (to).re += (a).re * (b).re - (a).im * (b).im, (to).im += (a).re * (b).im + (a).im * (b).re
#define T Complex64
#define NAME(x) x##_c64
#include "sparse_kernels.h"
#undef T
#undef NAME
#define T Complex128
#define NAME(x) x##_c128
#include "sparse_kernels.h"
#undef T
#undef NAME

/* Whole blocks of float32 and float64 with their sums in registers; the rest of a row is sparse_dense's. */
#define BLOCKS(name, target_text, T, BYTES)                                                                                                    \
    WITH(target_text) static void name(void *context, int64_t begin, int64_t end) {                                                            \
        typedef T V __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));                                                       \
        enum { VECTORS = WIDE * sizeof(T) / BYTES, SLICES = VECTORS > 4 ? VECTORS / 4 : 1, EACH = VECTORS / SLICES };                          \
        const Product *p = context;                                                                                                            \
        for (int64_t u = begin; u < end; u++) {                                                                                                \
            int64_t r = u % p->rows, j0 = u / p->rows * WIDE, first = p->a.ranges[r], last = p->a.ranges[r + 1];                               \
            for (int s = 0; s < SLICES; s++) {                                                                                                 \
                V sum[EACH];                                                                                                                   \
                const T *from = (const T *)p->dense + j0 + s * (WIDE / SLICES);                                                                \
                V *to = (V *)((T *)p->out + r * p->n + j0 + s * (WIDE / SLICES));                                                              \
                _Pragma("GCC unroll 16") for (int i = 0; i < EACH; i++) sum[i] = (V){0};                                                       \
                for (int64_t k = first; k < last; k++) {                                                                                       \
                    const V *row = (const V *)(from + p->a.columns[k] * p->n);                                                                 \
                    T v = ((const T *)p->a.values)[k];                                                                                         \
                    _Pragma("GCC unroll 16") for (int i = 0; i < EACH; i++) sum[i] += v * row[i];                                              \
                }                                                                                                                              \
                _Pragma("GCC unroll 16") for (int i = 0; i < EACH; i++) to[i] = sum[i];                                                        \
            }                                                                                                                                  \
        }                                                                                                                                      \
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

/* Whether the matrix can be read: ranges that grow from 0 to the number of columns stored, columns below n; else the status says what isn't. */
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

/* Views: ranges (rows + 1), columns and values of the sparse operand, the dense one (k, n), the product (rows, n), all in C order. Numbers: the kind. */
int flb_sparse_dense_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    static const FlbRangeFn blocks[2][3] = {LEVELS(blocks_f32), LEVELS(blocks_f64)};
    static const FlbRangeFn rest[KINDS] = {sparse_dense_f32, sparse_dense_f64, sparse_dense_c64, sparse_dense_c128, sparse_dense_i64};
    Product p = {.a = {(const int64_t *)v[0].ptr, (const int64_t *)v[1].ptr, v[2].ptr}, .dense = v[3].ptr, .out = v[4].ptr, .rows = v[4].shape[0], .n = v[4].shape[1]};
    int kind = (int)numbers[0];
    if (kind < 0 || kind >= KINDS || !p.rows || !p.n || v[0].shape[0] != p.rows + 1 || !readable(&v[0], &v[1], v[3].shape[0], status)) return 0;
    int64_t each = 1 + v[1].shape[0] / p.rows, width = p.n < WIDE ? p.n : WIDE, grain = 1 + 30000 / (each * width);
    if (kind <= F64) {
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

/* Views: ranges and columns of both operands, the number of columns that each row of the product stores. Numbers: the columns of the product. */
int flb_sparse_count_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    Product p = {.a = {(const int64_t *)v[0].ptr, (const int64_t *)v[1].ptr}, .b = {(const int64_t *)v[2].ptr, (const int64_t *)v[3].ptr},
                 .counts = (int64_t *)v[4].ptr, .rows = v[4].shape[0], .n = numbers[0]};
    if (p.n < 0 || v[0].shape[0] != p.rows + 1 || !readable(&v[0], &v[1], v[2].shape[0] - 1, status) || !readable(&v[2], &v[3], p.n, status)) return 0;
    flb_parallel(count_rows, &p, p.rows, 1 + 20000 / (1 + v[1].shape[0] / (p.rows + 1) * (1 + v[3].shape[0] / v[2].shape[0])));
    return p.failed ? -1 : 0;
}

/* Views: ranges, columns and values of both operands (which have been counted), ranges, columns and values of the product. Numbers: the kind, columns. */
int flb_sparse_sparse_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    static const FlbRangeFn of[KINDS] = {sparse_sparse_f32, sparse_sparse_f64, sparse_sparse_c64, sparse_sparse_c128, sparse_sparse_i64};
    Product p = {.a = {(const int64_t *)v[0].ptr, (const int64_t *)v[1].ptr, v[2].ptr}, .b = {(const int64_t *)v[3].ptr, (const int64_t *)v[4].ptr, v[5].ptr},
                 .out_ranges = (const int64_t *)v[6].ptr, .out_columns = (int64_t *)v[7].ptr, .out = v[8].ptr, .rows = v[6].shape[0] - 1, .n = numbers[1]};
    if (numbers[0] < 0 || numbers[0] >= KINDS || p.rows < 1) return 0;
    flb_parallel(of[numbers[0]], &p, p.rows, 1 + 20000 / (1 + v[1].shape[0] / p.rows * (1 + v[4].shape[0] / v[3].shape[0])));
    return p.failed ? -1 : 0;
}

/* --- coordinates -------------------------------------------------------------------------------------------------------- */

/* Views: keys, ranges (count + 1) of equal keys, their places in the order of keys, equal ones as they stand (or nothing, where keys are in order). */
int flb_sparse_group_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    const int64_t *keys = (const int64_t *)v[0].ptr;
    int64_t *ranges = (int64_t *)v[1].ptr, *order = (int64_t *)v[2].ptr, stored = v[0].shape[0], count = v[1].shape[0] - 1;
    memset(ranges, 0, (size_t)(count + 1) * 8);
    for (int64_t i = 0; i < stored; i++) {
        if ((uint64_t)keys[i] >= (uint64_t)count) return status[0] = 1, status[1] = keys[i], status[2] = count, 0;
        ranges[keys[i] + 1]++;
    }
    for (int64_t k = 0; k < count; k++) ranges[k + 1] += ranges[k];
    if (!v[2].shape[0]) return 0;
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

/* Views: coordinates (dims, stored), their order (equal ones as they stand), starts (stored + 1) of the runs of equal ones, the number of runs. */
int flb_sparse_order_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    const int64_t *at = (const int64_t *)v[0].ptr;
    int64_t *order = (int64_t *)v[1].ptr, *starts = (int64_t *)v[2].ptr, dims = v[0].shape[0], stored = v[0].shape[1], runs = 0;
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
                for (int64_t i = 0; i < stored; i++) to[ends[key[from[i]] >> shift & ((1 << DIGIT) - 1)]++] = from[i];
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
    *(int64_t *)v[3].ptr = runs;
    return 0;
}

/* Views: coordinates (dims, stored), values (stored, width), order and starts as above, coordinates and sums of the runs. Numbers: the kind. */
int flb_sparse_sums_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    static const FlbRangeFn of[KINDS] = {sum_runs_f32, sum_runs_f64, sum_runs_c64, sum_runs_c128, sum_runs_i64};
    Runs r = {.values = v[1].ptr, .out = v[5].ptr, .order = (const int64_t *)v[2].ptr, .starts = (const int64_t *)v[3].ptr, .width = v[1].shape[1]};
    int64_t stored = v[0].shape[1], runs = v[4].shape[1], *to = (int64_t *)v[4].ptr;
    if (numbers[0] < 0 || numbers[0] >= KINDS || !runs) return 0;
    for (int64_t d = 0; d < v[0].shape[0]; d++)
        for (int64_t k = 0; k < runs; k++) *to++ = ((const int64_t *)v[0].ptr)[d * stored + r.order[r.starts[k]]];
    flb_parallel(of[numbers[0]], &r, runs, 1 + 10000 / (1 + r.width));
    return 0;
}
