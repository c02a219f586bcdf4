/* Depthwise convolutions of one or two dimensions (a channel of the output is made from the same channel of
 * the input), float32 with AVX-512 or AVX2.
 *
 * L channels (16 or 8) lie together in a vector: their planes are transposed, so that neither the size of a
 * plane nor the stride matters to the kernels below, and places outside of the input are left out instead of
 * multiplied by zero. A piece is L channels of an image; sums for the weight are made for some images each
 * and added. Cuts depend on sizes only. */
#include "kernels/conv.h"
#include <string.h>

#if !defined(__x86_64__)
int SIZED(flb_depthwise_fits)(const Conv *c) { return 0; }
int SIZED(flb_depthwise)(const Conv *c, int what, float *x, float *w, float *y, const float *bias,
                         Planes *planes) {
    return -1;
}
#else
#include "kernels/conv_lanes.h"

#define ROOM    \
    ((int64_t)3 \
     << 19)      /* bytes of L channels' planes, input and output: they stay in the second-level cache */
#define LEAST 16 /* pieces that sums for the weight are made in, where there are images for it */

/* Along a dimension: places of the input and of the output, taps. Tap k of output o reads place o * stride -
 * padding + k * dilation. */
typedef struct {
    int64_t in, out, taps, stride, padding, dilation;
} Axis;

typedef struct {
    const Conv *c;
    int what;
    float *x, *w, *y;
    const float *bias;
    const Planes *planes;
    Axis h, v; /* rows, and places of a row */
    int64_t groups, parts;
    V *sums; /* CONV_WEIGHT: of each part and group, taps vectors */
    int failed;
} Job;

/* Taps [*k0, *k1) of output o that read a place of the input; where tap 0 reads. */
static inline int64_t reached(const Axis *a, int64_t o, int64_t *k0, int64_t *k1) {
    int64_t at = o * a->stride - a->padding, end = at + (a->taps - 1) * a->dilation;
    *k0 = at < 0 ? (a->dilation - 1 - at) / a->dilation : 0;
    *k1 = end < a->in ? a->taps : at < a->in ? (a->in - 1 - at) / a->dilation + 1 : 0;
    return at;
}

/* Outputs [*lo, *hi) all of whose taps read the input. */
static void inside(const Axis *a, int64_t *lo, int64_t *hi) {
    int64_t last = a->in - 1 - (a->taps - 1) * a->dilation + a->padding;
    *lo = a->padding > 0 ? (a->padding + a->stride - 1) / a->stride : 0;
    *hi = last < 0 ? 0 : last / a->stride + 1;
    if (*hi > a->out) *hi = a->out;
    if (*lo > *hi) *lo = *hi;
}

/* n outputs of a row, from o on: each is `start` and the taps [k0, k1) of rows [r0, r1). */
static inline __attribute__((always_inline)) WIDE void some(const Axis *h, const Axis *v, const V *x,
                                                            const V *w, V start, V *y, int64_t o, int64_t top,
                                                            int64_t r0, int64_t r1, int64_t at, int64_t k0,
                                                            int64_t k1, const int n) {
    V a[8];
    for (int i = 0; i < n; i++) a[i] = start;
    for (int64_t r = r0; r < r1; r++) {
        const V *row = x + (top + r * h->dilation) * v->in + at, *taps = w + r * v->taps;
        for (int64_t k = k0; k < k1; k++)
            for (int i = 0; i < n; i++) a[i] += taps[k] * row[k * v->dilation + i * v->stride];
    }
    for (int i = 0; i < n; i++) y[o + i] = a[i];
}

static WIDE void correlate(const Axis *h, const Axis *v, const V *x, const V *w, V start, V *y) {
    int64_t lo, hi, r0, r1, k0, k1;
    inside(v, &lo, &hi);
    for (int64_t p = 0; p < h->out; p++, y += v->out) {
        int64_t top = reached(h, p, &r0, &r1);
        for (int64_t o = 0; o < v->out;) {
            int64_t at = reached(v, o, &k0, &k1);
            if (o >= lo && o + 8 <= hi) {
                some(h, v, x, w, start, y, o, top, r0, r1, at, 0, v->taps, 8);
                o += 8;
            } else if (o >= lo && o + 4 <= hi) {
                some(h, v, x, w, start, y, o, top, r0, r1, at, 0, v->taps, 4);
                o += 4;
            } else some(h, v, x, w, start, y, o++, top, r0, r1, at, k0, k1, 1);
        }
    }
}

/* The adjoint of correlate: x is written. */
static WIDE void scatter(const Axis *h, const Axis *v, V *x, const V *w, const V *y) {
    int64_t r0, r1, k0, k1;
    memset(x, 0, h->in * v->in * sizeof(V));
    for (int64_t p = 0; p < h->out; p++) {
        int64_t top = reached(h, p, &r0, &r1);
        for (int64_t o = 0; o < v->out; o++, y++) {
            int64_t at = reached(v, o, &k0, &k1);
            for (int64_t r = r0; r < r1; r++) {
                V *row = x + (top + r * h->dilation) * v->in + at;
                for (int64_t k = k0; k < k1; k++) row[k * v->dilation] += *y * w[r * v->taps + k];
            }
        }
    }
}

/* Adds the products of the outputs [o, end) of all rows to the sums of n taps of row r, k and those after it.
 */
static inline __attribute__((always_inline)) WIDE void
weigh_some(const Axis *h, const Axis *v, const V *x, const V *y, V *sums, int64_t r, int64_t k, const int n) {
    V a[8];
    int64_t lo, hi, r0, r1, k0, k1;
    inside(v, &lo, &hi);
    for (int i = 0; i < n; i++) a[i] = sums[r * v->taps + k + i];
    for (int64_t p = 0; p < h->out; p++) {
        int64_t top = reached(h, p, &r0, &r1) + r * h->dilation;
        if (r < r0 || r >= r1) continue;
        const V *row = x + top * v->in, *g = y + p * v->out;
        for (int64_t o = 0; o < v->out; o++) {
            int64_t at = o * v->stride - v->padding;
            if (o >= lo && o < hi) {
                for (int i = 0; i < n; i++) a[i] += g[o] * row[at + (k + i) * v->dilation];
            } else {
                reached(v, o, &k0, &k1);
                for (int i = 0; i < n; i++)
                    if (k + i >= k0 && k + i < k1) a[i] += g[o] * row[at + (k + i) * v->dilation];
            }
        }
    }
    for (int i = 0; i < n; i++) sums[r * v->taps + k + i] = a[i];
}

static WIDE void weigh(const Axis *h, const Axis *v, const V *x, const V *y, V *sums) {
    for (int64_t r = 0; r < h->taps; r++)
        for (int64_t k = 0; k < v->taps;) {
            if (k + 5 <= v->taps) weigh_some(h, v, x, y, sums, r, k, 5), k += 5;
            else if (k + 3 <= v->taps) weigh_some(h, v, x, y, sums, r, k, 3), k += 3;
            else weigh_some(h, v, x, y, sums, r, k++, 1);
        }
}

/* Planes of up to L channels, of `places` each, one after the other or, where the channels lie innermost,
 * `channels` apart. */
static void read_lanes(const float *from, int last, int64_t channels, int64_t places, int lanes, float *to) {
    if (last) load_lanes(from, channels, places, lanes, to);
    else gather_lanes(from, places, places, lanes, to);
}

static void write_lanes(const float *from, int64_t places, int lanes, float *to, int last, int64_t channels) {
    if (last) store_lanes(from, places, lanes, to, channels);
    else spread_lanes(from, places, lanes, to, places);
}

/* The first plane of piece i. */
static int64_t plane_of(const Job *j, int64_t i) {
    return i / j->groups * j->c->channels + i % j->groups * L;
}

/* Pieces [begin, end): a group of channels of an image (CONV_FORWARD, CONV_INPUT) or of a part of the images
 * (CONV_WEIGHT). */
static WIDE void range(void *context, int64_t begin, int64_t end) {
    Job *j = context;
    const Conv *c = j->c;
    int64_t in = j->h.in * j->v.in, out = j->h.out * j->v.out, taps = j->h.taps * j->v.taps;
    V *room = flb_api->scratch((in + out + 2 * taps) * sizeof(V)), *x = room, *y = x + in, *w = y + out,
      *transposed = w + taps;
    if (!room) {
        j->failed = 1;
        return;
    }
    /* With stride one the input's cotangent is correlated with the transposed taps. */
    Axis h = {j->h.out, j->h.in, j->h.taps, 1, (j->h.taps - 1) * j->h.dilation - j->h.padding, j->h.dilation};
    Axis v = {j->v.out, j->v.in, j->v.taps, 1, (j->v.taps - 1) * j->v.dilation - j->v.padding, j->v.dilation};
    V zero = {0};
    int64_t ready = begin, plane = (j->what == CONV_FORWARD ? out : in) * (int64_t)sizeof(V);
    for (int64_t i = begin; i < end; i++) {
        int64_t g = i % j->groups, n = i / j->groups, last = n + 1, c0 = g * L;
        int lanes = c->channels - c0 < L ? (int)(c->channels - c0) : L;
        if (j->what != CONV_WEIGHT) gather_lanes(j->w + c0 * taps, taps, taps, lanes, (float *)w);
        else {
            last = c->images * (n + 1) / j->parts, n = c->images * n / j->parts;
            memset(j->sums + i * taps, 0, taps * sizeof(V));
        }
        for (; n < last; n++) {
            float *xs = j->x + (c->xlast ? n * in * c->channels + c0 : (n * c->channels + c0) * in);
            float *ys = j->y + (c->ylast ? n * out * c->channels + c0 : (n * c->channels + c0) * out);
            if (j->what != CONV_INPUT) read_lanes(xs, c->xlast, c->channels, in, lanes, (float *)x);
            if (j->what != CONV_FORWARD) read_lanes(ys, c->ylast, c->channels, out, lanes, (float *)y);
            if (j->what == CONV_FORWARD) {
                V start = j->bias ? (V)load_masked(first_lanes(lanes), j->bias + c0) : zero;
                correlate(&j->h, &j->v, x, w, start, y);
                write_lanes((float *)y, out, lanes, ys, c->ylast, c->channels);
            } else if (j->what == CONV_INPUT) {
                if (j->h.stride == 1 && j->v.stride == 1) {
                    for (int64_t t = 0; t < taps; t++) transposed[t] = w[taps - 1 - t];
                    correlate(&h, &v, y, transposed, zero, x);
                } else scatter(&j->h, &j->v, x, w, y);
                write_lanes((float *)x, in, lanes, xs, c->xlast, c->channels);
            } else weigh(&j->h, &j->v, x, y, j->sums + i * taps);
        }
        if (j->planes && (i + 1 == end || (i + 1 - ready) * plane >= TOGETHER)) {
            j->planes->take(j->planes->context, plane_of(j, ready), plane_of(j, i + 1));
            ready = i + 1;
        }
    }
    flb_api->free(room);
}

static WIDE void add_parts(void *context, int64_t begin, int64_t end) {
    Job *j = context;
    int64_t taps = j->h.taps * j->v.taps;
    for (int64_t g = begin; g < end; g++) {
        V *sum = j->sums + g * taps;
        for (int64_t part = 1; part < j->parts; part++)
            for (int64_t t = 0; t < taps; t++) sum[t] += j->sums[(part * j->groups + g) * taps + t];
        int64_t left = j->c->channels - g * L;
        spread_lanes((float *)sum, taps, left < L ? (int)left : L, j->w + g * L * taps, taps);
    }
}

/* With AVX2 planes are read shifted by taps in less time than it takes to transpose them, where nothing is
 * strided (conv_taps.h). */
int SIZED(flb_depthwise_fits)(const Conv *c) {
    int64_t places = c->in[1] * c->in[2] + c->out[1] * c->out[2];
    return flb_cpu_level() >= LEVEL && c->groups == c->channels && c->groups == c->outputs &&
        c->channels >= L / 2 && c->in[0] * c->out[0] * c->kernel[0] == 1 && c->padding[0] == 0 &&
        places * (int64_t)sizeof(V) <= ROOM &&
        (VECTOR == 64 || c->stride[1] > 1 || c->stride[2] > 1 || c->xlast);
}

/* -1: no memory. */
int SIZED(flb_depthwise)(const Conv *c, int what, float *x, float *w, float *y, const float *bias,
                         Planes *planes) {
    Job j = {.c = c,
             .what = what,
             .x = x,
             .w = w,
             .y = y,
             .bias = bias,
             .groups = (c->channels + L - 1) / L,
             .parts = 1};
    j.h = (Axis){c->in[1], c->out[1], c->kernel[1], c->stride[1], c->padding[1], c->dilation[1]};
    j.v = (Axis){c->in[2], c->out[2], c->kernel[2], c->stride[2], c->padding[2], c->dilation[2]};
    int64_t taps = j.h.taps * j.v.taps, total = c->images * j.groups;
    j.planes = flb_planes_in(planes, c->channels > L ? L : c->channels);
    double work =
        2.0 * L * total * (j.h.out * j.v.out * (double)taps + 4.0 * (j.h.in * j.v.in + j.h.out * j.v.out)) +
        1;
    if (what == CONV_WEIGHT) {
        j.parts = (LEAST + j.groups - 1) / j.groups;
        if (j.parts > c->images) j.parts = c->images > 1 ? c->images : 1;
        total = j.parts * j.groups;
        if (!(j.sums = flb_api->scratch(total * taps * sizeof(V)))) return -1;
    }
    flb_parallel(range, &j, total, (int64_t)(2e5 * total / work) + 1);
    if (what == CONV_WEIGHT) {
        flb_parallel(add_parts, &j, j.groups, j.groups);
        flb_api->free(j.sums);
    }
    return j.failed ? -1 : 0;
}
#endif
