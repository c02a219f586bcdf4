/* Runs of equal rows, counts of numbers, repetitions, histograms by edges: results whose
 * sizes depend on data. A first kernel counts, a graph's bind step makes a size of that (launch_step.c), a
 * second one writes. Arrays are in C order where nothing else is said. */
#include "runtime/graph.h"
#include "core/counts.h"
#include "kernels/order_keys.h"
#include <math.h>
#include <string.h>

static int64_t elements(const View *v) {
    int64_t n = 1;
    for (int d = 0; d < v->ndim; d++) n *= v->shape[d];
    return n;
}

FLB_KERNEL(expect) {
    int given = flb_given(&v->told);
    int64_t told = given ? *(const int64_t *)v->told.ptr : 0, x = given ? told - n->number : n->number;
    int holds = n->sign == SIGN_EQUAL ? x == 0 : n->sign == SIGN_UNEQUAL ? x != 0 : x >= 0;
    if (!holds && !status[0]) status[1] = told, status[2] = n->number, status[0] = n->failure + 1;
    return 0;
}

/* ---- rows: their order, and runs of equal ones. Equal as numbers: zeros of both signs are, nan is not -- */

typedef uint64_t (*KeyOf)(const char *x, int64_t i);
#define KEY(name, T) \
    static uint64_t key_##name(const char *x, int64_t i) { return of_##name(((const T *)x)[i]); }
KEY(f32, uint32_t)
KEY(f64, uint64_t)
KEY(i64, uint64_t)
KEY(i32, uint32_t)
KEY(i16, uint16_t)
KEY(i8, uint8_t)
KEY(u8, uint8_t)
KEY(f16, uint16_t)
KEY(bf16, uint16_t)
static const KeyOf key_of[ELEMENT_COUNT] = {
    [ELEMENT_F32] = key_f32,   [ELEMENT_F64] = key_f64, [ELEMENT_F16] = key_f16,
    [ELEMENT_BF16] = key_bf16, [ELEMENT_I64] = key_i64, [ELEMENT_I32] = key_i32,
    [ELEMENT_I16] = key_i16,   [ELEMENT_I8] = key_i8,   [ELEMENT_U8] = key_u8,
};

/* Whether a key is that of nan. */
static int is_nan(int kind, uint64_t key) {
    return flb_is_floating(kind) && key == (kind == ELEMENT_F64 ? ~(uint64_t)0 : 0xffffffffu);
}

static int compare_rows(int kind, const char *x, int64_t m, int64_t a, int64_t b) {
    KeyOf key = key_of[kind];
    for (int64_t j = 0; j < m; j++) {
        uint64_t p = key(x, a * m + j), q = key(x, b * m + j);
        if (p != q) return p < q ? -1 : 1;
    }
    return 0;
}

FLB_KERNEL(order_rows) {
    int64_t rows = v->rows.shape[0], m = v->rows.shape[1], *to = (int64_t *)v->places.ptr, *from;
    int kind = (int)n->element;
    for (int64_t i = 0; i < rows; i++) to[i] = i;
    if (rows < 2 || !flb_is_ordered(kind)) return 0;
    if (!(from = flb_api->malloc((size_t)rows * sizeof *from))) return -1;
    for (int64_t wide = 1; wide < rows; wide *= 2) {
        memcpy(from, to, (size_t)rows * sizeof *from);
        for (int64_t begin = 0; begin < rows; begin += 2 * wide) {
            int64_t a = begin, middle = begin + wide < rows ? begin + wide : rows, b = middle,
                    end = middle + wide < rows ? middle + wide : rows;
            for (int64_t k = begin; k < end; k++)
                to[k] = b >= end || (a < middle && compare_rows(kind, v->rows.ptr, m, from[a], from[b]) <= 0)
                    ? from[a++]
                    : from[b++];
        }
    }
    flb_api->free(from);
    return 0;
}

FLB_KERNEL(runs) {
    int64_t rows = v->rows.shape[0], m = v->rows.shape[1], found = 0, *begins = (int64_t *)v->begins.ptr;
    int64_t *inverse = n->wanted ? (int64_t *)v->runs.ptr : NULL;
    const int64_t *order = (const int64_t *)v->order.ptr;
    int kind = (int)n->element;
    const char *x = v->rows.ptr;
    if (!flb_is_ordered(kind)) return 0;
    KeyOf key = key_of[kind];
    for (int64_t i = 0; i < rows; i++) {
        int64_t row = order ? order[i] : i, before = !i ? 0 : order ? order[i - 1] : i - 1;
        int differs = !i;
        for (int64_t j = 0; j < m && !differs; j++) {
            uint64_t p = key(x, row * m + j);
            differs = p != key(x, before * m + j) || is_nan(kind, p);
        }
        if (differs) begins[found++] = i;
        if (inverse) inverse[order ? order[i] : i] = found - 1;
    }
    begins[found] = rows;
    *(int64_t *)v->count.ptr = found;
    return 0;
}

/* ---- distinct numbers ---------------------------------------------------------------------------------- */

#define INTEGER_AT(x, kind, i)                               \
    ((kind) == ELEMENT_I64       ? ((const int64_t *)(x))[i] \
         : (kind) == ELEMENT_I32 ? ((const int32_t *)(x))[i] \
         : (kind) == ELEMENT_I16 ? ((const int16_t *)(x))[i] \
         : (kind) == ELEMENT_I8  ? ((const int8_t *)(x))[i]  \
                                 : ((const uint8_t *)(x))[i])
#define STORE(to, kind, i, y)                                                \
    do {                                                                     \
        if ((kind) == ELEMENT_I64) ((int64_t *)(to))[i] = (y);               \
        else if ((kind) == ELEMENT_I32) ((int32_t *)(to))[i] = (int32_t)(y); \
        else if ((kind) == ELEMENT_I16) ((int16_t *)(to))[i] = (int16_t)(y); \
        else ((uint8_t *)(to))[i] = (uint8_t)(y);                            \
    } while (0)

/* Integers of a short range, counted. How many are distinct; -1 where the range is long, -2 without memory.
 */
static int64_t counted(const char *x, int kind, int64_t n, char *values, int64_t *counts, int64_t *places) {
    int64_t low = INT64_MAX, high = INT64_MIN, found = 0, *all;
    for (int64_t i = 0; i < n; i++) {
        int64_t k = INTEGER_AT(x, kind, i);
        low = k < low ? k : low, high = k > high ? k : high;
    }
    uint64_t range = (uint64_t)high - (uint64_t)low;
    if (range >= 4 * (uint64_t)n + 1024) return -1;
    if (!(all = flb_api->malloc((size_t)(range + 1) * sizeof *all))) return -2;
    memset(all, 0, (size_t)(range + 1) * sizeof *all);
    for (int64_t i = 0; i < n; i++) all[(uint64_t)INTEGER_AT(x, kind, i) - (uint64_t)low]++;
    for (uint64_t k = 0; k <= range; k++) {
        if (!all[k]) continue;
        STORE(values, kind, found, (int64_t)((uint64_t)low + k));
        counts[found] = all[k];
        all[k] = found++;
    }
    for (int64_t i = 0; places && i < n; i++)
        places[i] = all[(uint64_t)INTEGER_AT(x, kind, i) - (uint64_t)low];
    flb_api->free(all);
    return found;
}

FLB_KERNEL(distinct) {
    int64_t count = v->line.shape[0], *counts = (int64_t *)v->counts.ptr, *found = (int64_t *)v->count.ptr;
    int64_t *places = n->wanted ? (int64_t *)v->places.ptr : NULL;
    int kind = (int)n->element;
    *found = 0;
    if (!count || !flb_is_ordered(kind)) return 0;
    if (!flb_is_floating(kind)) {
        *found = counted(v->line.ptr, kind, count, v->values.ptr, counts, places);
        if (*found >= 0) return 0;
        if (*found == -2) return -1;
    }
    int64_t item = item_of[kind], step = item, wide = 8, runs = 0, begin = 0;
    char *line = flb_api->malloc((size_t)(count * item));
    int64_t *at = flb_api->malloc((size_t)count * sizeof *at);
    const int64_t *shape = v->line.shape;
    flb_order_views views = {.source = {v->line.ptr, 1, shape, &step},
                             .values = {line, 1, shape, &step},
                             .places = {(char *)at, 1, shape, &wide}};
    flb_order_numbers whole = {.part = ORDER_WHOLE, .element = kind, .sorted = 1};
    int failed = !line || !at || flb_kernel_order(&views, &whole, status) < 0;
    KeyOf key = key_of[kind];
    for (int64_t i = 0; i < count && !failed; i++) {
        uint64_t k = key(line, i);
        if (!i || k != key(line, i - 1) || is_nan(kind, k)) {
            if (i) counts[runs - 1] = i - begin;
            memcpy(v->values.ptr + runs++ * item, line + i * item, (size_t)item);
            begin = i;
        }
        if (places) places[at[i]] = runs - 1;
    }
    if (runs) counts[runs - 1] = count - begin;
    *found = runs;
    flb_api->free(line);
    flb_api->free(at);
    return failed ? -1 : 0;
}

/* Where the longest run of equal elements of a line in order ends. */
#define LONGEST(name, T, of)                                       \
    static int64_t longest_##name(const char *line, int64_t m) {   \
        const T *x = (const T *)line;                              \
        int64_t best = 0, begin = 0, found = 0;                    \
        for (int64_t i = 1; i <= m; i++) {                         \
            if (i < m && of(x[i]) == of(x[i - 1])) continue;       \
            if (i - begin > best) best = i - begin, found = i - 1; \
            begin = i;                                             \
        }                                                          \
        return found;                                              \
    }
LONGEST(f32, uint32_t, of_f32)
LONGEST(f64, uint64_t, of_f64)
LONGEST(f16, uint16_t, of_f16)
LONGEST(bf16, uint16_t, of_bf16)
LONGEST(i64, uint64_t, )
LONGEST(i32, uint32_t, )
LONGEST(i16, uint16_t, )
LONGEST(i8, uint8_t, )

FLB_KERNEL(mode) {
    static int64_t (*const longest[ELEMENT_COUNT])(const char *, int64_t) = {
        [ELEMENT_F32] = longest_f32,   [ELEMENT_F64] = longest_f64, [ELEMENT_F16] = longest_f16,
        [ELEMENT_BF16] = longest_bf16, [ELEMENT_I64] = longest_i64, [ELEMENT_I32] = longest_i32,
        [ELEMENT_I16] = longest_i16,   [ELEMENT_I8] = longest_i8,   [ELEMENT_U8] = longest_i8,
    };
    int64_t lines = v->lines.shape[0], m = v->lines.shape[1];
    int kind = (int)n->element;
    if (!flb_is_ordered(kind) || !m) return 0;
    for (int64_t l = 0; l < lines; l++) {
        const int64_t *at = (const int64_t *)v->places.ptr + l * m;
        const char *line = v->lines.ptr + l * m * item_of[kind];
        int64_t end = longest[kind](line, m);
        ((int64_t *)v->made.ptr)[l] = at[end];
        if (flb_given(&v->values))
            memcpy(v->values.ptr + l * item_of[kind], line + end * item_of[kind], (size_t)item_of[kind]);
    }
    return 0;
}

/* ---- counts and repetitions ---------------------------------------------------------------------------- */

FLB_KERNEL(bincount_size) {
    int64_t total = elements(&v->line), most = n->least - 1, least = 0;
    flb_range_of((const int64_t *)v->line.ptr, total, &least, &most);
    if (least < 0 && !status[0]) status[1] = least, status[2] = total, status[0] = n->negative + 1;
    /* Of counts up to the largest number there can't be memory, with or without the last of them. */
    *(int64_t *)v->size.ptr = least < 0 ? 0 : most == INT64_MAX ? most : most + 1;
    return 0;
}

FLB_KERNEL(bincount) {
    const int64_t *x = (const int64_t *)v->line.ptr;
    int64_t total = elements(&v->line), bins = v->counts.shape[0];
    if (!flb_given(&v->weights)) {
        flb_count(x, total, (int64_t *)v->counts.ptr, bins);
        return 0;
    }
    double *to = (double *)v->counts.ptr;
    memset(to, 0, (size_t)bins * sizeof *to);
    for (int64_t i = 0; i < total; i++)
        if ((uint64_t)x[i] < (uint64_t)bins) to[x[i]] += ((const double *)v->weights.ptr)[i];
    return 0;
}

FLB_KERNEL(repeat_size) {
    const int64_t *x = (const int64_t *)v->repeats.ptr;
    int64_t total = elements(&v->repeats), sum = 0, bad = 0;
    for (int64_t i = 0; i < total && !bad; i++) bad = x[i] < 0 || __builtin_add_overflow(sum, x[i], &sum);
    if (bad && !status[0]) status[0] = n->negative + 1;
    *(int64_t *)v->size.ptr = bad ? 0 : sum;
    return 0;
}

FLB_KERNEL(repeat) {
    const int64_t *x = (const int64_t *)v->repeats.ptr;
    int64_t total = elements(&v->repeats), room = v->places.shape[0], *to = (int64_t *)v->places.ptr;
    for (int64_t i = 0; i < total; i++)
        for (int64_t k = x[i]; k > 0 && room > 0; k--, room--) *to++ = i;
    return 0;
}

/* ---- histograms by edges ------------------------------------------------------------------------------- */

#define NUMBER(v, i) (f64 ? ((const double *)(v).ptr)[i] : (double)((const float *)(v).ptr)[i])

FLB_KERNEL(edges) {
    int f64 = n->f64 != 0;
    int64_t total = elements(&v->source), bins = v->edges.shape[0] - 1;
    double low = n->low, high = n->high;
    if (!n->given) {
        low = total ? INFINITY : 0, high = total ? -INFINITY : 1;
        for (int64_t i = 0; i < total; i++) {
            double x = NUMBER(v->source, i);
            low = x < low || x != x ? x : low, high = x > high || x != x ? x : high;
        }
    }
    if (!(isfinite(low) && isfinite(high))) {
        if (!status[0]) status[0] = n->not_finite + 1;
        low = 0, high = 1;
    }
    if (low == high) low -= 0.5, high += 0.5;
    double step = (high - low) / (double)bins;
    for (int64_t k = 0; k <= bins; k++) {
        double e = k == bins ? high : (double)k * step + low;
        if (f64) ((double *)v->edges.ptr)[k] = e;
        else ((float *)v->edges.ptr)[k] = (float)e;
    }
    return 0;
}

FLB_KERNEL(cells) {
    int f64 = n->f64 != 0, weighted = flb_given(&v->weights);
    int64_t total = elements(&v->source), edges = v->edges.shape[0];
    double *sums = (double *)v->sums.ptr;
    if (edges < 2) return 0;
    memset(sums, 0, (size_t)(edges - 1) * 8);
    double first = NUMBER(v->edges, 0), last = NUMBER(v->edges, edges - 1),
           scale = (double)(edges - 1) / (last - first);
    for (int64_t i = 0; i < total; i++) {
        double x = NUMBER(v->source, i);
        if (!(x >= first && x <= last)) continue;
        if (n->equal) {                      /* equal intervals: a guess is at most a few off */
            double at = (x - first) * scale; /* nan where all edges are one number */
            int64_t k = at > 0 ? at < (double)(edges - 2) ? (int64_t)at : edges - 2 : 0;
            while (k > 0 && NUMBER(v->edges, k) > x) k--;
            while (k < edges - 2 && NUMBER(v->edges, k + 1) <= x) k++;
            sums[k] += weighted ? NUMBER(v->weights, i) : 1;
            continue;
        }
        int64_t base = 0, left = edges; /* the first edge beyond x, without branches on data */
        while (left > 0) {
            int64_t half = left / 2;
            int further = NUMBER(v->edges, base + half) <= x;
            base = further ? base + half + 1 : base;
            left = further ? left - half - 1 : half;
        }
        sums[base - 1 < edges - 2 ? base - 1 : edges - 2] += weighted ? NUMBER(v->weights, i) : 1;
    }
    return 0;
}
