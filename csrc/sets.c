/* Places of what isn't zero, runs of equal rows, counts, repetitions, histograms by edges: results whose sizes depend on data. A first template counts, a
 * graph's "tell" step makes a size of that (launch.c), a second one writes. Arrays are in C order where nothing else is said. */
#include "graph.h"
#include "order_keys.h"
#include <math.h>
#include <string.h>

static int64_t elements(const View *v) {
    int64_t n = 1;
    for (int d = 0; d < v->ndim; d++) n *= v->shape[d];
    return n;
}

/* A condition on a number. Views: none, or an int64 that the number is taken from. Numbers: the sign (0: == 0, 1: != 0, 2: >= 0), the number, the message. */
int flb_expect_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    int64_t told = n ? *(const int64_t *)v[0].ptr : 0, x = n ? told - numbers[1] : numbers[1];
    int holds = numbers[0] == 0 ? x == 0 : numbers[0] == 1 ? x != 0 : x >= 0;
    if (!holds && !status[0]) status[1] = told, status[2] = numbers[1], status[0] = numbers[2] + 1;
    return 0;
}

/* Views: truth values, the number of those that hold. */
int flb_count_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    const uint8_t *x = (const uint8_t *)v[0].ptr;
    int64_t total = elements(&v[0]), found = 0, i = 0;
    while (i < total) { /* sums of bytes that can't overflow */
        int64_t end = total - i < 1 << 15 ? total : i + (1 << 15);
        uint32_t part = 0;
        for (; i < end; i++) part += x[i] != 0;
        found += part;
    }
    *(int64_t *)v[1].ptr = found;
    return 0;
}

/* Views: truth values, coordinates (count, dimensions) of those that hold, int64, of any strides. The count is the caller's: no more are written, rows
 * that are left get the number. */
int flb_nonzero_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    const uint8_t *x = (const uint8_t *)v[0].ptr;
    int64_t room = v[1].shape[0], total = elements(&v[0]), found = 0;
    int ndim = v[0].ndim;
    if (ndim > 64 || v[1].ndim != 2) return 0;
    int64_t at[64] = {0}, last = ndim ? v[0].shape[ndim - 1] : 1, row_step = v[1].strides[0], step = v[1].strides[1];
    char *to = v[1].ptr;
    for (int64_t row = 0; last && row < total && found < room; row += last) {
        for (int64_t k = 0; k < last && found < room; k++) {
            if (k + 8 <= last) {
                uint64_t eight;
                memcpy(&eight, x + row + k, 8);
                if (!eight) {
                    k += 7;
                    continue;
                }
            }
            if (!x[row + k]) continue;
            for (int d = 0; d < ndim - 1; d++) *(int64_t *)(to + d * step) = at[d];
            if (ndim) *(int64_t *)(to + (ndim - 1) * step) = k;
            to += row_step, found++;
        }
        for (int d = ndim - 2; d >= 0 && ++at[d] == v[0].shape[d]; d--) at[d] = 0;
    }
    for (; found < room; found++, to += row_step)
        for (int d = 0; d < ndim; d++) *(int64_t *)(to + d * step) = numbers[0];
    return 0;
}

/* --- rows: their order, and runs of equal ones. Equal as numbers: zeros of both signs are, nan is not ----------------------------------------------------- */

typedef uint64_t (*KeyOf)(const char *x, int64_t i);
#define KEY(name, T) static uint64_t key_##name(const char *x, int64_t i) { return of_##name(((const T *)x)[i]); }
KEY(f32, uint32_t)
KEY(f64, uint64_t)
KEY(i64, uint64_t)
KEY(i32, uint32_t)
KEY(i16, uint16_t)
KEY(i8, uint8_t)
KEY(u8, uint8_t)
KEY(f16, uint16_t)
KEY(bf16, uint16_t)
static const KeyOf key_of[KINDS] = {key_f32, key_f64, key_i64, key_i32, key_i16, key_i8, key_u8, key_f16, key_bf16};

/* Whether a key is that of nan. */
static int is_nan(int kind, uint64_t key) {
    return kind == F64 ? key == ~(uint64_t)0 : kind == F32 || kind == F16 || kind == BF16 ? key == 0xffffffffu : 0;
}

static int compare_rows(int kind, const char *x, int64_t m, int64_t a, int64_t b) {
    KeyOf key = key_of[kind];
    for (int64_t j = 0; j < m; j++) {
        uint64_t p = key(x, a * m + j), q = key(x, b * m + j);
        if (p != q) return p < q ? -1 : 1;
    }
    return 0;
}

/* Views: rows (count, elements), their numbers in ascending order, int64. Numbers: the kind of element. By merging, so equal rows keep their order. */
int flb_order_rows_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    int64_t rows = v[0].shape[0], m = v[0].shape[1], *to = (int64_t *)v[1].ptr, *from;
    int kind = (int)numbers[0];
    for (int64_t i = 0; i < rows; i++) to[i] = i;
    if (rows < 2 || kind < 0 || kind >= KINDS) return 0;
    if (!(from = flb_api->malloc((size_t)rows * sizeof *from))) return -1;
    for (int64_t wide = 1; wide < rows; wide *= 2) {
        memcpy(from, to, (size_t)rows * sizeof *from);
        for (int64_t begin = 0; begin < rows; begin += 2 * wide) {
            int64_t a = begin, middle = begin + wide < rows ? begin + wide : rows, b = middle, end = middle + wide < rows ? middle + wide : rows;
            for (int64_t k = begin; k < end; k++)
                to[k] = b >= end || (a < middle && compare_rows(kind, v[0].ptr, m, from[a], from[b]) <= 0) ? from[a++] : from[b++];
        }
    }
    flb_api->free(from);
    return 0;
}

/* Views: rows (count, elements), maybe an order (int64); where runs of equal rows begin and the last one ends (room for one more than rows), the run of each
 * row (int64, room for all), how many runs there are. Numbers: the kind of element, whether runs of rows are wanted, of the order: 1: where each of the
 * rows, which are in order, was before, 2: the order to take the rows in. */
int flb_runs_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    int64_t rows = v[0].shape[0], m = v[0].shape[1], found = 0, *begins = (int64_t *)v[n - 3].ptr, *inverse = numbers[1] ? (int64_t *)v[n - 2].ptr : NULL;
    const int64_t *order = n > 4 ? (const int64_t *)v[1].ptr : NULL;
    int kind = (int)numbers[0];
    const char *x = v[0].ptr;
    if (kind < 0 || kind >= KINDS) return 0;
    KeyOf key = key_of[kind];
    for (int64_t i = 0; i < rows; i++) {
        int64_t row = order && numbers[2] == 2 ? order[i] : i, before = i ? order && numbers[2] == 2 ? order[i - 1] : i - 1 : 0;
        int differs = !i;
        for (int64_t j = 0; j < m && !differs; j++) {
            uint64_t p = key(x, row * m + j);
            differs = p != key(x, before * m + j) || is_nan(kind, p);
        }
        if (differs) begins[found++] = i;
        if (inverse) inverse[order ? order[i] : i] = found - 1;
    }
    begins[found] = rows;
    *(int64_t *)v[n - 1].ptr = found;
    return 0;
}

/* --- distinct numbers ------------------------------------------------------------------------------------------------------- */

#define INTEGER(x, kind, i) ((kind) == I64 ? ((const int64_t *)(x))[i] : (kind) == I32 ? ((const int32_t *)(x))[i] : (kind) == I16 ? ((const int16_t *)(x))[i] : \
                             (kind) == I8 ? ((const int8_t *)(x))[i] : ((const uint8_t *)(x))[i])
#define STORE(to, kind, i, y)                                                                                                                  \
    do {                                                                                                                                       \
        if ((kind) == I64) ((int64_t *)(to))[i] = (y);                                                                                         \
        else if ((kind) == I32) ((int32_t *)(to))[i] = (int32_t)(y);                                                                           \
        else if ((kind) == I16) ((int16_t *)(to))[i] = (int16_t)(y);                                                                           \
        else ((uint8_t *)(to))[i] = (uint8_t)(y);                                                                                              \
    } while (0)

/* Integers of a short range, counted. How many are distinct; -1 where the range is long, -2 without memory. */
static int64_t counted(const char *x, int kind, int64_t n, char *values, int64_t *counts, int64_t *places) {
    int64_t low = INT64_MAX, high = INT64_MIN, found = 0, *all;
    for (int64_t i = 0; i < n; i++) {
        int64_t k = INTEGER(x, kind, i);
        low = k < low ? k : low, high = k > high ? k : high;
    }
    uint64_t range = (uint64_t)high - (uint64_t)low;
    if (range >= 4 * (uint64_t)n + 1024) return -1;
    if (!(all = flb_api->malloc((size_t)(range + 1) * sizeof *all))) return -2;
    memset(all, 0, (size_t)(range + 1) * sizeof *all);
    for (int64_t i = 0; i < n; i++) all[(uint64_t)INTEGER(x, kind, i) - (uint64_t)low]++;
    for (uint64_t k = 0; k <= range; k++) {
        if (!all[k]) continue;
        STORE(values, kind, found, (int64_t)((uint64_t)low + k));
        counts[found] = all[k];
        all[k] = found++;
    }
    for (int64_t i = 0; places && i < n; i++) places[i] = all[(uint64_t)INTEGER(x, kind, i) - (uint64_t)low];
    flb_api->free(all);
    return found;
}

/* Views: a line of numbers, the distinct ones in order, how often each occurs (both with room for all), the place among them of each element (int64),
 * how many they are. Numbers: the kind of element, whether places are wanted. */
int flb_distinct_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    int64_t count = v[0].shape[0], *counts = (int64_t *)v[2].ptr, *places = numbers[1] ? (int64_t *)v[3].ptr : NULL, *found = (int64_t *)v[4].ptr;
    int kind = (int)numbers[0];
    *found = 0;
    if (!count || kind < 0 || kind >= KINDS) return 0;
    if (kind >= I64 && kind <= U8) {
        *found = counted(v[0].ptr, kind, count, v[1].ptr, counts, places);
        if (*found >= 0) return 0;
        if (*found == -2) return -1;
    }
    int64_t item = item_of[kind], step = item, wide = 8, order[6] = {0, 0, kind, 0, 0, 1}, runs = 0, begin = 0; /* order.c: a whole line */
    char *line = flb_api->malloc((size_t)(count * item));
    int64_t *at = flb_api->malloc((size_t)count * sizeof *at);
    View views[3] = {{v[0].ptr, 1, v[0].shape, &step}, {line, 1, v[0].shape, &step}, {(char *)at, 1, v[0].shape, &wide}};
    int failed = !line || !at || flb_order_step(views, 3, order, status) < 0;
    KeyOf key = key_of[kind];
    for (int64_t i = 0; i < count && !failed; i++) {
        uint64_t k = key(line, i);
        if (!i || k != key(line, i - 1) || is_nan(kind, k)) {
            if (i) counts[runs - 1] = i - begin;
            memcpy(v[1].ptr + runs++ * item, line + i * item, (size_t)item);
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

/* Views: sorted lines and where their elements were (lines, n), the place (int64) of the last of the most frequent element of each, of several the least.
 * Numbers: the kind of element. nan is one value here. */
int flb_mode_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    int64_t lines = v[0].shape[0], m = v[0].shape[1];
    int kind = (int)numbers[0];
    if (kind < 0 || kind >= KINDS) return 0;
    KeyOf key = key_of[kind];
    for (int64_t l = 0; l < lines; l++) {
        const char *x = v[0].ptr + l * m * item_of[kind];
        const int64_t *at = (const int64_t *)v[1].ptr + l * m;
        int64_t best = 0, begin = 0;
        for (int64_t i = 1; i <= m; i++) {
            if (i < m && key(x, i) == key(x, i - 1)) continue;
            if (i - begin > best) best = i - begin, ((int64_t *)v[2].ptr)[l] = at[i - 1];
            begin = i;
        }
    }
    return 0;
}

/* --- counts and repetitions ------------------------------------------------------------------------------------------------ */

/* Views: int64 numbers, one more than the greatest of them. Numbers: the least result, the message for a negative number. */
int flb_bincount_size_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    const int64_t *x = (const int64_t *)v[0].ptr;
    int64_t total = elements(&v[0]), most = numbers[0] - 1, least = 0;
    for (int64_t i = 0; i < total; i++) {
        most = x[i] > most ? x[i] : most;
        least = x[i] < least ? x[i] : least;
    }
    if (least < 0 && !status[0]) status[1] = least, status[2] = total, status[0] = numbers[1] + 1;
    *(int64_t *)v[1].ptr = least < 0 || most == INT64_MAX ? 0 : most + 1;
    return 0;
}

/* Views: int64 numbers, maybe weights (float64), and for each number below the length of the result its count (int64) or the sum of its weights (float64). */
int flb_bincount_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    const int64_t *x = (const int64_t *)v[0].ptr;
    int64_t total = elements(&v[0]), bins = v[n - 1].shape[0];
    char *to = v[n - 1].ptr;
    memset(to, 0, (size_t)bins * 8);
    for (int64_t i = 0; i < total; i++) {
        if ((uint64_t)x[i] >= (uint64_t)bins) continue;
        if (n > 2) ((double *)to)[x[i]] += ((const double *)v[1].ptr)[i];
        else ((int64_t *)to)[x[i]]++;
    }
    return 0;
}

/* Views: how often each place is wanted (int64), how many that are in all. Numbers: the message for a negative one. */
int flb_repeat_size_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    const int64_t *x = (const int64_t *)v[0].ptr;
    int64_t total = elements(&v[0]), sum = 0, bad = 0;
    for (int64_t i = 0; i < total && !bad; i++) bad = x[i] < 0 || __builtin_add_overflow(sum, x[i], &sum);
    if (bad && !status[0]) status[0] = numbers[0] + 1;
    *(int64_t *)v[1].ptr = bad ? 0 : sum;
    return 0;
}

/* Views: how often each place is wanted (int64), the places (int64), as many as there is room for. */
int flb_repeat_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    const int64_t *x = (const int64_t *)v[0].ptr;
    int64_t total = elements(&v[0]), room = v[1].shape[0], *to = (int64_t *)v[1].ptr;
    for (int64_t i = 0; i < total; i++)
        for (int64_t k = x[i]; k > 0 && room > 0; k--, room--) *to++ = i;
    return 0;
}

/* --- histograms by edges ----------------------------------------------------------------------------------------------------- */

#define NUMBER(v, i) (f64 ? ((const double *)(v).ptr)[i] : (double)((const float *)(v).ptr)[i])

/* Views: numbers, edges of equal intervals, both float32 or float64. Numbers: whether float64, whether the range is given, it as bits of doubles (else it is that of
 * the numbers), the message of one that isn't finite. A range of no width is widened by one half. */
int flb_edges_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    int f64 = numbers[0] != 0;
    int64_t total = elements(&v[0]), bins = v[1].shape[0] - 1;
    double low, high;
    memcpy(&low, &numbers[2], 8), memcpy(&high, &numbers[3], 8);
    if (!numbers[1]) {
        low = total ? INFINITY : 0, high = total ? -INFINITY : 1;
        for (int64_t i = 0; i < total; i++) {
            double x = NUMBER(v[0], i);
            low = x < low || x != x ? x : low, high = x > high || x != x ? x : high;
        }
    }
    if (!(isfinite(low) && isfinite(high))) {
        if (!status[0]) status[0] = numbers[4] + 1;
        low = 0, high = 1;
    }
    if (low == high) low -= 0.5, high += 0.5;
    double step = (high - low) / (double)bins;
    for (int64_t k = 0; k <= bins; k++) {
        double e = k == bins ? high : (double)k * step + low;
        if (f64) ((double *)v[1].ptr)[k] = e;
        else ((float *)v[1].ptr)[k] = (float)e;
    }
    return 0;
}

/* Views: numbers, edges in ascending order, maybe the numbers' weights, all float32 or float64; sums of weights between edges (float64, the last interval is closed).
 * Numbers: whether float64, whether intervals are equal. */
int flb_cells_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    int f64 = numbers[0] != 0;
    int64_t total = elements(&v[0]), edges = v[1].shape[0];
    double *sums = (double *)v[n - 1].ptr;
    if (edges < 2) return 0;
    memset(sums, 0, (size_t)(edges - 1) * 8);
    double first = NUMBER(v[1], 0), last = NUMBER(v[1], edges - 1), scale = (double)(edges - 1) / (last - first);
    for (int64_t i = 0; i < total; i++) {
        double x = NUMBER(v[0], i);
        if (!(x >= first && x <= last)) continue;
        if (numbers[1]) { /* equal intervals: a guess is at most a few off */
            int64_t k = (int64_t)((x - first) * scale);
            k = k < edges - 2 ? k : edges - 2;
            while (k > 0 && NUMBER(v[1], k) > x) k--;
            while (k < edges - 2 && NUMBER(v[1], k + 1) <= x) k++;
            sums[k] += n > 3 ? NUMBER(v[2], i) : 1;
            continue;
        }
        int64_t base = 0, left = edges; /* the first edge beyond x, without branches on data */
        while (left > 0) {
            int64_t half = left / 2;
            int further = NUMBER(v[1], base + half) <= x;
            base = further ? base + half + 1 : base;
            left = further ? left - half - 1 : half;
        }
        sums[base - 1 < edges - 2 ? base - 1 : edges - 2] += n > 3 ? NUMBER(v[2], i) : 1;
    }
    return 0;
}
