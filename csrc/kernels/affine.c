/* Affine quantisation: the scale and the zero point for the values of a tensor, and codes of sums of
 * products. */
#include "runtime/graph.h"
#include "runtime/levels.h"
#include <math.h>
#include <string.h>

/* The least and the greatest of floats as integers of the same order, and whether one isn't finite. */
BY_LEVEL(static void, find_extremes, (const int32_t *x, int64_t n, int32_t *found), (x, n, found)) {
    int32_t low = INT32_MAX, high = INT32_MIN, odd = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t bits = x[i], key = bits ^ (bits >> 31 & INT32_MAX);
        odd |= (bits & 0x7f800000) == 0x7f800000;
        low = key < low ? key : low;
        high = key > high ? key : high;
    }
    found[0] = low, found[1] = high, found[2] = odd;
}

static double of_key(int32_t key) {
    int32_t bits = key ^ (key >> 31 & INT32_MAX);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

FLB_KERNEL(chosen_parameters) {
    int64_t count = 1;
    for (int i = 0; i < v->x.ndim; i++) count *= v->x.shape[i];
    int32_t found[3] = {0};
    if (count) find_extremes((const int32_t *)v->x.ptr, count, found);
    if (found[2]) return status[0] = n->not_finite + 1, 0;
    double least = of_key(found[0]), most = of_key(found[1]), low = (double)n->low, high = (double)n->high;
    least = least < 0 ? least : 0, most = most > 0 ? most : 0;
    double scale = (most - least) / (high - low);
    /* A scale that is 0, or whose reciprocal is infinite, stands for nothing. */
    if (scale == 0 || !isfinite(1.0f / (float)scale)) scale = 0.1;
    int nearer_low = fabs(low) + fabs(least / scale) < fabs(high) + fabs(most / scale);
    double exact = nearer_low ? low - least / scale : high - most / scale;
    exact = exact > low ? exact : low;
    *(double *)v->scale.ptr = scale;
    *(int64_t *)v->zero_point.ptr = (int64_t)rint(exact < high ? exact : high);
    return 0;
}

typedef struct {
    float zero, low, high;
} Codes;

static inline __attribute__((always_inline)) uint8_t code_of(int32_t sum, float shift, float ratio, Codes k) {
    float code = rintf(((float)sum + shift) * ratio) + k.zero;
    code = code < k.high ? code : k.high; /* nan, too, is the greatest */
    return (uint8_t)(int32_t)(code > k.low ? code : k.low);
}

BY_LEVEL(static void, code_plane,
         (const int32_t *sums, int64_t n, float shift, float ratio, Codes codes, uint8_t *to),
         (sums, n, shift, ratio, codes, to)) {
    for (int64_t i = 0; i < n; i++) to[i] = code_of(sums[i], shift, ratio, codes);
}

BY_LEVEL(static void, code_row,
         (const int32_t *sums, int64_t n, const float *shift, const float *ratio, Codes codes, uint8_t *to),
         (sums, n, shift, ratio, codes, to)) {
    if (shift)
        for (int64_t i = 0; i < n; i++) to[i] = code_of(sums[i], shift[i], ratio[i], codes);
    else
        for (int64_t i = 0; i < n; i++) to[i] = code_of(sums[i], 0, ratio[i], codes);
}

typedef struct {
    int64_t channels, inner;
    const int32_t *sums;
    const float *shift, *ratio;
    Codes codes;
    uint8_t *made;
} Requantized;

static void code_planes(void *context, int64_t begin, int64_t end) {
    const Requantized *r = context;
    for (int64_t t = begin; t < end; t++) {
        if (r->inner == 1) {
            int64_t at = t * r->channels;
            code_row(r->sums + at, r->channels, r->shift, r->ratio, r->codes, r->made + at);
        } else {
            int64_t c = t % r->channels, at = t * r->inner;
            code_plane(r->sums + at, r->inner, r->shift ? r->shift[c] : 0, r->ratio[c], r->codes,
                       r->made + at);
        }
    }
}

FLB_KERNEL(requantized) {
    const int64_t *shape = v->sums.shape;
    Requantized r = {.channels = shape[1],
                     .inner = shape[2],
                     .sums = (const int32_t *)v->sums.ptr,
                     .ratio = (const float *)v->ratio.ptr,
                     .shift = flb_given(&v->shift) ? (const float *)v->shift.ptr : NULL,
                     .codes = {(float)n->zero_point, (float)n->low, (float)n->high},
                     .made = (uint8_t *)v->made.ptr};
    int64_t lines = r.inner == 1 ? shape[0] : shape[0] * shape[1], each = r.inner == 1 ? r.channels : r.inner;
    if (lines && each) flb_parallel(code_planes, &r, lines, 1 + 200000 / each);
    return 0;
}
