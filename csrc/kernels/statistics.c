/* Medians and histograms as NumPy computes them, to the last bit. Arrays are float64 in C order. */
#include "runtime/graph.h"
#include <math.h>
#include <string.h>

static int64_t elements(const View *v) {
    int64_t n = 1;
    for (int d = 0; d < v->ndim; d++) n *= v->shape[d];
    return n;
}

/* ---- medians ------------------------------------------------------------------------------------------- */

#define FEW 24 /* elements that are put in order one by one */

static void in_order(double *x, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        double moved = x[i];
        int64_t k = i;
        for (; k > 0 && x[k - 1] > moved; k--) x[k] = x[k - 1];
        x[k] = moved;
    }
}

/* Element k of the n elements of x in order; what is before it is not greater, what is behind it not less.
 * `room` has n elements. A part that consists of one number ends the search. */
static double ranked(double *x, double *room, int64_t n, int64_t k) {
    double *base = x;
    while (n > FEW) {
        double some[FEW - 1];
        for (int i = 0; i < FEW - 1; i++) some[i] = base[(n - 1) * i / (FEW - 2)];
        in_order(some, FEW - 1);
        /* A little to the side of where k lies, so that the smaller part is nearly always kept. */
        int64_t at = k * (FEW - 1) / n;
        at += at<(FEW - 1) / 2 ? 1 : at>(FEW - 1) / 2 ? -1 : 0;
        double pivot = some[at], least = INFINITY;
        int64_t less = 0, others = 0;
        for (int64_t i = 0; i < n; i++) { /* without branches on data */
            double v = base[i];
            int below = v < pivot;
            base[less] = v;
            room[others] = v;
            less += below, others += !below;
        }
        memcpy(base + less, room, (size_t)others * sizeof *base);
        if (k < less) {
            n = less;
            continue;
        }
        base += less, n = others, k -= less;
        if (less) continue;
        /* The pivot is the least: numbers equal to it go to the front. */
        int64_t equal = 0;
        others = 0;
        for (int64_t i = 0; i < n; i++) {
            double v = base[i];
            int same = v == pivot;
            base[equal] = v;
            room[others] = v;
            equal += same, others += !same;
            least = v < least ? v : least;
        }
        memcpy(base + equal, room, (size_t)others * sizeof *base);
        if (k < equal) return base[k];
        base += equal, n = others, k -= equal;
    }
    in_order(base, n);
    return base[k];
}

typedef struct {
    const double *from;
    double *to;
    int64_t n;
    int failed;
} Middles;

static void middles(void *context, int64_t begin, int64_t end) {
    Middles *m = context;
    int64_t n = m->n;
    double few[4 * FEW], *x = n <= 2 * FEW ? few : flb_api->malloc((size_t)n * 2 * sizeof *x);
    if (!x) {
        m->failed = 1;
        return;
    }
    for (int64_t line = begin; line < end; line++) {
        const double *from = m->from + line * n;
        double high, low, sum = 0.0;
        for (int64_t i = 0; i < n; i++)
            sum += from[i] - from[i]; /* nan where there is a nan or an infinity */
        if (sum != sum) {
            double nan = 0.0;
            for (int64_t i = 0; i < n && nan == nan; i++) nan = from[i] != from[i] ? from[i] : 0.0;
            if (nan != nan) {
                m->to[line] = nan;
                continue;
            }
        }
        memcpy(x, from, (size_t)n * sizeof *x);
        high = ranked(x, x + n, n, n / 2);
        if (n % 2 == 0) {
            low = x[0];
            for (int64_t i = 1; i < n / 2; i++) low = x[i] > low ? x[i] : low;
            high = (low + high) / 2.0;
        }
        m->to[line] = high;
    }
    if (x != few) flb_api->free(x);
}

FLB_KERNEL(middles) {
    Middles m = {
        .from = (const double *)v->lines.ptr, .to = (double *)v->middles.ptr, .n = v->lines.shape[1]};
    if (v->lines.shape[0] && m.n) flb_parallel(middles, &m, v->lines.shape[0], 1 + 4000 / m.n);
    return m.failed ? -1 : 0;
}

/* ---- histograms ---------------------------------------------------------------------------------------- */

#define BLOCK 65536 /* NumPy adds weights up in blocks of what lies within the range */

FLB_KERNEL(uniform_histogram) {
    const double *x = (const double *)v->source.ptr, *edges = (const double *)v->edges.ptr,
                 *weights = flb_given(&v->weights) ? (const double *)v->weights.ptr : NULL;
    int64_t total = elements(&v->source), bins = v->edges.shape[0] - 1;
    double first = edges[0], last = edges[bins], extent = last - first, count = (double)bins;
    int64_t *numbers = (int64_t *)v->counts.ptr;
    double *sums = (double *)v->counts.ptr, *part = NULL;
    memset(v->counts.ptr, 0, (size_t)bins * 8);
    if (weights && !(part = flb_api->malloc((size_t)bins * sizeof *part))) return -1;
    for (int64_t begin = 0; begin < total; begin += BLOCK) {
        int64_t end = total - begin < BLOCK ? total : begin + BLOCK;
        if (part) memset(part, 0, (size_t)bins * sizeof *part);
        for (int64_t i = begin; i < end; i++) {
            double value = x[i];
            if (!(value >= first && value <= last)) continue;
            int64_t k = (int64_t)((value - first) / extent * count);
            k -= k == bins;
            k -= value < edges[k];
            k += value >= edges[k + 1] && k != bins - 1;
            if (part) part[k] += weights[i];
            else numbers[k]++;
        }
        for (int64_t k = 0; part && k < bins; k++) sums[k] += part[k];
    }
    if (part) flb_api->free(part);
    return 0;
}
