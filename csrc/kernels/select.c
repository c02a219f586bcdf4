/* Running extremes with their places, running logarithms of sums of exponentials, counts of equal intervals.
 * Arrays are in C order; nan is the greatest of all numbers, and a running extreme that has met it stays. */
#include "runtime/graph.h"
#include "runtime/levels.h"
#include "kernels/order_keys.h"
#include <math.h>
#include <string.h>

#define ACROSS 64   /* lines that lie side by side and are carried on together */
#define TOGETHER 32 /* elements of a line that are looked at together */

typedef struct {
    const char *from;
    char *to;
    int64_t *places;
    int64_t n, inner;
    int kind, least;
} Running;

/* Strips of lines of one kind of element. A key is compared by >=, so that the last of equal ones is kept;
 * for the least one keys count backwards, but nan stays the greatest. */
#define RUNNING(name, T, Key, of)                                                                      \
    BY_LEVEL(static void, name, (const Running *r, int64_t begin, int64_t end), (r, begin, end)) {     \
        int64_t strips = (r->inner + ACROSS - 1) / ACROSS, inner = r->inner;                           \
        Key best[ACROSS], flip = r->least ? (Key) ~(Key)0 : 0;                                         \
        const int floating = flb_is_floating(r->kind);                                                 \
        const Key stays = floating ? (Key) ~(Key)0 : 0;       /* nan is the greatest in both orders */ \
        for (int64_t s = begin; inner == 1 && s < end; s++) { /* lines one after the other */          \
            const int64_t n = r->n;                                                                    \
            const T *x = (const T *)r->from + s * n;                                                   \
            T *y = (T *)r->to + s * n, value = x[0];                                                   \
            int64_t *p = r->places + s * n, place = 0;                                                 \
            Key most = 0;                                                                              \
            int64_t k = 0;                                                                             \
            for (; k + TOGETHER <= n; k += TOGETHER) {                                                 \
                Key keys[TOGETHER];                                                                    \
                Key win = 0; /* most elements follow a greater one: whole vectors repeat it */         \
                for (int j = 0; j < TOGETHER; j++) {                                                   \
                    Key key = (Key)of(x[k + j]);                                                       \
                    keys[j] = key ^ (flip & ~(stays & -(Key)(key == (Key) ~(Key)0)));                  \
                    win |= (Key)(keys[j] >= most);                                                     \
                }                                                                                      \
                if (!win) {                                                                            \
                    for (int j = 0; j < TOGETHER; j++) y[k + j] = value;                               \
                    for (int j = 0; j < TOGETHER; j++) p[k + j] = place;                               \
                    continue;                                                                          \
                }                                                                                      \
                for (int j = 0; j < TOGETHER; j++) {                                                   \
                    if (keys[j] >= most) most = keys[j], value = x[k + j], place = k + j;              \
                    y[k + j] = value, p[k + j] = place;                                                \
                }                                                                                      \
            }                                                                                          \
            for (; k < n; k++) {                                                                       \
                Key key = (Key)of(x[k]);                                                               \
                if (!floating || key != (Key) ~(Key)0) key ^= flip;                                    \
                if (key >= most) most = key, value = x[k], place = k;                                  \
                y[k] = value, p[k] = place;                                                            \
            }                                                                                          \
        }                                                                                              \
        if (inner == 1) return;                                                                        \
        for (int64_t s = begin; s < end; s++) {                                                        \
            int64_t j0 = s % strips * ACROSS, width = inner - j0 < ACROSS ? inner - j0 : ACROSS,       \
                    at = s / strips * r->n * inner + j0;                                               \
            const T *x = (const T *)r->from + at;                                                      \
            T *y = (T *)r->to + at;                                                                    \
            int64_t *p = r->places + at;                                                               \
            for (int64_t j = 0; j < width; j++) best[j] = 0;                                           \
            for (int64_t k = 0; k < r->n; k++, x += inner, y += inner, p += inner)                     \
                for (int64_t j = 0; j < width; j++) {                                                  \
                    Key key = (Key)of(x[j]);                                                           \
                    if (!floating || key != (Key) ~(Key)0) key ^= flip;                                \
                    int wins = !k || key >= best[j];                                                   \
                    best[j] = wins ? key : best[j];                                                    \
                    y[j] = wins ? x[j] : y[j - inner];                                                 \
                    p[j] = wins ? k : p[j - inner];                                                    \
                }                                                                                      \
        }                                                                                              \
    }
RUNNING(running_f32, uint32_t, uint32_t, of_f32)
RUNNING(running_f64, uint64_t, uint64_t, of_f64)
RUNNING(running_i64, uint64_t, uint64_t, of_i64)
RUNNING(running_i32, uint32_t, uint32_t, of_i32)
RUNNING(running_i16, uint16_t, uint32_t, of_i16)
RUNNING(running_i8, uint8_t, uint32_t, of_i8)
RUNNING(running_u8, uint8_t, uint32_t, of_u8)
RUNNING(running_f16, uint16_t, uint32_t, of_f16)
RUNNING(running_bf16, uint16_t, uint32_t, of_bf16)

static void running(void *context, int64_t begin, int64_t end) {
    static void (*const of[ELEMENT_COUNT])(const Running *, int64_t, int64_t) = {
        [ELEMENT_F32] = running_f32,   [ELEMENT_F64] = running_f64, [ELEMENT_F16] = running_f16,
        [ELEMENT_BF16] = running_bf16, [ELEMENT_I64] = running_i64, [ELEMENT_I32] = running_i32,
        [ELEMENT_I16] = running_i16,   [ELEMENT_I8] = running_i8,   [ELEMENT_U8] = running_u8,
    };
    const Running *r = context;
    of[r->kind](r, begin, end);
}

/* (lines before the dimension, length, elements after it) of an array in C order. */
static int64_t cut(const View *v, int64_t dim, int64_t *n, int64_t *inner) {
    int64_t outer = 1;
    *n = *inner = 1;
    for (int d = 0; d < v->ndim; d++) {
        if (d < dim) outer *= v->shape[d];
        else if (d == dim) *n = v->shape[d];
        else *inner *= v->shape[d];
    }
    return outer;
}

FLB_KERNEL(running) {
    Running r = {.from = v->source.ptr,
                 .to = v->values.ptr,
                 .places = (int64_t *)v->places.ptr,
                 .kind = (int)n->element,
                 .least = n->least != 0};
    int64_t outer = cut(&v->source, n->dim, &r.n, &r.inner);
    if (!outer || !r.n || !r.inner || !flb_is_ordered(r.kind)) return 0;
    int64_t strips = (r.inner + ACROSS - 1) / ACROSS;
    flb_parallel(running, &r, outer * strips, 1 + 20000 / (r.n * (r.inner < ACROSS ? r.inner : ACROSS)));
    return 0;
}

/* ---- running logarithms of sums of exponentials: the greatest so far and the sum of exp(x - it), in double
 * precision  */

typedef struct {
    const char *from;
    char *to;
    int64_t n, inner;
    int f64;
} Exponentials;

static void exponentials(void *context, int64_t begin, int64_t end) {
    const Exponentials *e = context;
    for (int64_t l = begin; l < end; l++) {
        int64_t at = l / e->inner * e->n * e->inner + l % e->inner;
        double most = -INFINITY, sum = 0;
        for (int64_t k = 0; k < e->n; k++, at += e->inner) {
            double x = e->f64 ? ((const double *)e->from)[at] : ((const float *)e->from)[at], y;
            if (x > most) sum = sum * exp(most - x) + 1, most = x;
            else if (x == most) sum += most == -INFINITY ? 0 : 1;
            else sum += exp(x - most); /* nan stays in the sum */
            y = most == INFINITY ? (sum != sum ? sum : most) : sum == 1 ? most : most + log(sum);
            if (most == -INFINITY) y = sum != sum ? sum : most;
            if (e->f64) ((double *)e->to)[at] = y;
            else ((float *)e->to)[at] = (float)y;
        }
    }
}

FLB_KERNEL(logcumsumexp) {
    Exponentials e = {.from = v->source.ptr, .to = v->made.ptr, .f64 = n->f64 != 0};
    int64_t outer = cut(&v->source, n->dim, &e.n, &e.inner);
    if (outer && e.n && e.inner) flb_parallel(exponentials, &e, outer * e.inner, 1 + 1000 / e.n);
    return 0;
}

/* ---- counts of equal intervals ------------------------------------------------------------------------- */

FLB_KERNEL(histogram) {
    int64_t total = 1, bins = v->counts.shape[0], *counts;
    double low = n->low, high = n->high;
    int f64 = n->f64 != 0;
    for (int d = 0; d < v->source.ndim; d++) total *= v->source.shape[d];
#define AT(i) (f64 ? ((const double *)v->source.ptr)[i] : (double)((const float *)v->source.ptr)[i])
    if (low == high && total) {
        low = INFINITY, high = -INFINITY;
        for (int64_t i = 0; i < total; i++) {
            double x = AT(i);
            low = x < low || x != x ? x : low, high = x > high || x != x ? x : high;
        }
    }
    if (low == high) low -= 1, high += 1;
    if (!(isfinite(low) && isfinite(high))) return status[0] = n->not_finite + 1, 0;
    if (!(counts = flb_api->malloc(bins * sizeof *counts))) return -1;
    memset(counts, 0, bins * sizeof *counts);
    double width = high - low;
    for (int64_t i = 0; i < total; i++) {
        double x = AT(i);
        if (!(x >= low && x <= high)) continue;
        /* A number too large to have neighbours at a distance of 1 lies in the middle. */
        double at = width > 0 ? (x - low) / width * (double)bins : (double)(bins / 2);
        counts[at > 0 ? at < (double)bins ? (int64_t)at : bins - 1 : 0]++;
    }
    for (int64_t k = 0; k < bins; k++) {
        if (f64) ((double *)v->counts.ptr)[k] = (double)counts[k];
        else ((float *)v->counts.ptr)[k] = (float)counts[k];
    }
    flb_api->free(counts);
    return 0;
}
