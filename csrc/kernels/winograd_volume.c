/* Convolutions of one dimension with 3 taps, and of three with 3 by 3 taps in any number of planes, by
 * Winograd's minimal filtering: stride one, float32 with AVX-512 or AVX2, and both adjoints.
 *
 * Each plane is filtered as in winograd.c: F(4x4, 3x3) with 36 places, or where the kernel has one row F(4,
 * 3) with 6 of them. A plane of the result is a sum over planes of the source, and that sum is made at the
 * places: the matrix product of a place runs over the channels of all these planes, whose tiles are
 * transformed once. Tiles of one plane lie behind those of the one before it, so those of the next plane of
 * the source are the same rows of the product's left operand from a later start.
 *
 * A strip is some planes of the result of an image and some tiles of each. Where no sum runs over planes,
 * those of all images are one run. All cuts depend on sizes only. What isn't finite spoils whole tiles and is
 * reported, as there. */
#include "kernels/conv.h"
#include "runtime/cpu_level.h"

#if !defined(__x86_64__)
int SIZED(flb_volume_can)(const Conv *c, int what) { return 0; }
int SIZED(flb_volume_fits)(const Conv *c, int what) { return 0; }
int SIZED(flb_volume)(const Conv *c, int what, float *x, float *w, float *y, const float *bias) { return -1; }
#else
#include "kernels/winograd_volume.h"

/* Floats of a strip's tiles, about. */
#if VECTOR == 32
#define BUDGET 120000
#else
#define BUDGET 250000
#endif
#define DEEP 96      /* steps of a sum, at most, that are added to the others when they are whole */
#define LARGE 500000 /* numbers of a weight at its places, from which on it is written to slower memory */

/* ---- tiles --------------------------------------------------------------------------------------------- */

WIDE void SIZED(flb_volume_sources)(const Volume *w, const Strip *s, int64_t block, float *plane, float *to) {
    int64_t edge = w->tall > 1 ? 2 : 0, width = 4 * (s->c1 - s->c0) + 2, t = 0,
            planes = s->d1 - s->d0 + w->sums - 1;
    for (int64_t k = 0; k < planes; k++) {
        int64_t d = s->d0 + k - w->pd;
        if (d < 0 || d >= w->from) {
            for (int64_t p = 0; p < w->places; p++)
                memset(to + p * w->vstep + t * L, 0, s->area * L * sizeof(float));
            t += s->area;
            continue;
        }
        read_planes(w->x + plane_at(&w->in, s->image, d, block), w->in.last, apart_in(&w->in), w->in.h,
                    w->in.w, w->tall * s->r0 - w->ph, w->tall * (s->r1 - s->r0) + edge, 4 * s->c0 - w->pw,
                    width, plane);
        for (int64_t r = 0; r < s->r1 - s->r0; r++)
            for (int64_t c = 0; c < s->c1 - s->c0; c++, t++) {
                const V *from = (const V *)(plane + (w->tall * r * width + 4 * c) * L);
                V half[36], whole[MOST_PLACES];
                if (w->tall > 1) {
                    for (int i = 0; i < 6; i++) input_line(from + i, width, half + i, 6);
                    for (int i = 0; i < 6; i++) input_line(half + 6 * i, 1, whole + 6 * i, 1);
                    for (int i = 0; i < 36; i++) *(V *)(to + i * w->vstep + t * L) = whole[i];
                } else {
                    input_line(from, 1, whole, 1);
                    for (int i = 0; i < 6; i++) *(V *)(to + i * w->vstep + t * L) = whole[i];
                }
            }
    }
    for (int64_t p = 0; p < w->places; p++) memset(to + p * w->vstep + t * L, 0, 3 * L * sizeof(float));
}

/* Outputs [L block, L block + L) of a strip from from[place * mstep + tile * L]. */
static WIDE void results(Volume *w, const Strip *s, int64_t block, const float *from, float *plane) {
    int64_t columns = s->c1 - s->c0, width = 4 * columns, t = 0, apart = apart_in(&w->out);
    int64_t top = w->tall * s->r0, rows = smaller(w->tall * s->r1, w->out.h) - top,
            wide = smaller(4 * s->c1, w->out.w) - 4 * s->c0;
    V bias = w->bias ? *(const V *)(w->bias + block * L) : (V){0}, none = {0};
    for (int64_t d = s->d0; d < s->d1; d++) {
        for (int64_t r = 0; r < s->r1 - s->r0; r++)
            for (int64_t c = 0; c < columns; c++, t++) {
                V m[MOST_PLACES], half[24];
                V *to = (V *)(plane + (w->tall * r * width + 4 * c) * L);
                for (int i = 0; i < 6; i++) m[i] = *(const V *)(from + i * w->mstep + t * L);
                if (w->tall > 1) {
                    for (int i = 6; i < 36; i++) m[i] = *(const V *)(from + i * w->mstep + t * L);
                    for (int i = 0; i < 6; i++) output_line(m + i, 6, half + i, 6);
                    for (int i = 0; i < 4; i++) output_line(half + 6 * i, 1, to + i * width, 1);
                } else output_line(m, 1, to, 1);
                for (int64_t i = 0; i < w->tall; i++)
                    for (int j = 0; j < 4; j++) to[i * width + j] += bias, none += 0.f * to[i * width + j];
            }
        float *y = w->y + plane_at(&w->out, s->image, d, block) +
            (top * w->out.w + 4 * s->c0) * (w->out.last ? w->out.channels : 1);
        /* Rows that follow each other there as here are one. */
        int64_t one = width == w->out.w ? rows : 1;
        for (int64_t r = 0; r < rows; r += one) {
            if (w->out.last)
                store_lanes(plane + r * width * L, one * wide, L, y + r * w->out.w * apart, apart);
            else spread_lanes(plane + r * width * L, one * wide, L, y + r * w->out.w, apart);
        }
    }
    look(w, none);
}

/* ---- the weight ---------------------------------------------------------------------------------------- */

/* Blocks of L outputs: u[place][output block][plane of the sum][input channel][L]. */
static WIDE void weight_range(void *context, int64_t begin, int64_t end) {
    const Volume *w = context;
    int64_t cin = w->in.channels, step = w->sums * cin * w->out.channels + L, each = w->taps / w->sums;
    float taps[L * MOST_SUMS * 9 * L];
    for (int64_t ob = begin; ob < end; ob++)
        for (int64_t c = 0; c < cin; c += L) {
            volume_taps(w, ob, c, taps);
            for (int64_t i = 0; i < L; i++)
                for (int64_t k = 0; k < w->sums; k++) {
                    float *to = w->u + ((ob * w->sums + k) * cin + c + i) * L;
                    const V *from = (const V *)(taps + i * w->taps * L);
                    V g[9], half[18], whole[MOST_PLACES];
                    for (int64_t j = 0; j < each; j++)
                        g[j] = from[w->transposed ? w->taps - 1 - k * each - j : k * each + j];
                    if (w->tall > 1) {
                        for (int j = 0; j < 3; j++) three_line(g + j, 3, half + j, 3);
                        for (int j = 0; j < 6; j++) three_line(half + 3 * j, 1, whole + 6 * j, 1);
                    } else three_line(g, 1, whole, 1);
                    for (int64_t j = 0; j < w->places; j++) *(V *)(to + j * step) = whole[j];
                }
        }
}

/* ---- products ------------------------------------------------------------------------------------------ */

/* The products at all places of a strip, in slices of the sum: some planes whole, or some channels of one. */
static void multiply(const Volume *w, const Strip *s, const float *v, float *m) {
    int64_t cin = w->in.channels, ob = w->out.channels / L, ustep = w->sums * cin * w->out.channels + L,
            tiles = around((s->d1 - s->d0) * s->area, 4) * 4, times = DEEP / cin > 1 ? DEEP / cin : 1,
            deep = around(cin / L, around(cin, DEEP)) * L;
    for (int64_t p = 0; p < w->places; p++)
        for (int64_t o = 0; o < ob; o += 2)
            for (int64_t k = 0; k < w->sums; k += times)
                for (int64_t c = 0; c < cin; c += deep) {
                    Sum sum = {.times = smaller(times, w->sums - k),
                               .apart = s->area * L,
                               .blocks = smaller(deep, cin - c) / L,
                               .ka = w->vrows * L,
                               .kb = w->sums * cin * L,
                               .ldc = L,
                               .cv = w->mrows * L,
                               .more = k || c};
                    tile_products(&sum, tiles, o + 1 < ob,
                                  v + p * w->vstep + (c / L * w->vrows + k * s->area) * L,
                                  w->u + p * ustep + ((o * w->sums + k) * cin + c) * L,
                                  m + p * w->mstep + o * w->mrows * L);
                }
}

static void strip_range(void *context, int64_t begin, int64_t end) {
    Volume *w = context;
    int64_t cb = w->in.channels / L, ob = w->out.channels / L;
    char *memory = flb_api->scratch((w->places * (w->vstep + w->mstep) + plane_room(w)) * sizeof(float) + 64);
    if (!memory) {
        w->failed = 1;
        return;
    }
    float *v = aligned(memory), *m = v + w->places * w->vstep, *plane = m + w->places * w->mstep;
    for (int64_t i = begin; i < end; i++) {
        Strip s = strip_at(w, i);
        for (int64_t b = 0; b < cb; b++) SIZED(flb_volume_sources)(w, &s, b, plane, v + b * w->vrows * L);
        multiply(w, &s, v, m);
        for (int64_t o = 0; o < ob; o++) results(w, &s, o, m + o * w->mrows * L, plane);
    }
    flb_api->free(memory);
}

static int forward(Volume *w) {
    int64_t all = w->sums * w->in.channels * w->out.channels;
    char *memory = flb_api->scratch(w->places * (all + L) * sizeof(float) + 64);
    if (!memory) return -1;
    w->u = aligned(memory);
    flb_parallel(weight_range, w, w->out.channels / L, 1 + (int64_t)(1e5 / (w->in.channels * 100.0)));
    if (!w->failed) flb_parallel(strip_range, w, w->strips, 1);
    flb_api->free(memory);
    return w->failed ? -1 : 0;
}

/* ---- what is to be done -------------------------------------------------------------------------------- */

static void cut(Volume *w) {
    int64_t cin = w->in.channels, cout = w->out.channels, halo = w->sums - 1, area = w->th * w->tw;
    w->depth = halo ? smaller(w->to, 8 * halo) : 1;
    int64_t tiles = BUDGET / (w->places * ((w->depth + halo) * cin + w->depth * cout));
    w->rows = w->th, w->columns = w->tw;
    if (tiles >= area) {
        int64_t depth = (BUDGET / (w->places * area) - halo * cin) / (cin + cout);
        w->depth = smaller(depth > w->depth ? depth : w->depth, w->to);
    } else if (tiles >= w->tw) w->rows = tiles / w->tw;
    else w->rows = 1, w->columns = tiles > 2 ? tiles : smaller(2, w->tw);
    w->depths = around(w->to, w->depth), w->bands = around(w->th, w->rows),
    w->spans = around(w->tw, w->columns); /* alike */
    w->depth = around(w->to, w->depths), w->rows = around(w->th, w->bands),
    w->columns = around(w->tw, w->spans);
    w->depths = around(w->to, w->depth), w->bands = around(w->th, w->rows),
    w->spans = around(w->tw, w->columns);
    w->strips = w->images * w->depths * w->bands * w->spans;
    area = w->rows * w->columns;
    w->mrows = around(w->depth * area, 4) * 4, w->vrows = (w->depth + halo) * area + 3;
    w->vstep = w->vrows * cin + L, w->mstep = w->mrows * cout + L;
}

int SIZED(flb_volume_can)(const Conv *c, int what) {
    if (flb_cpu_level() < LEVEL || c->groups != 1 || c->channels % L || c->outputs % L || !c->channels ||
        !c->outputs)
        return 0;
    if (c->kernel[0] > MOST_SUMS || (c->kernel[1] != 1 && c->kernel[1] != 3) || c->kernel[2] != 3) return 0;
    if (c->in[0] == 1 && c->kernel[0] == 1 && c->kernel[1] == 3) return 0; /* winograd.c */
    for (int d = 0; d < 3; d++)
        if (c->stride[d] != 1 || c->dilation[d] != 1 || c->padding[d] >= c->kernel[d] ||
            c->out[d] != c->in[d] + 2 * c->padding[d] - c->kernel[d] + 1)
            return 0;
    return 1;
}

/* Nanoseconds a pair of channels, as measured: products of the tiles, their transforms, shared by the
 * channels of the other side, and those of the weight, which leave the second-level cache where there are
 * many; against products of all taps and the weight's panels. */
int SIZED(flb_volume_fits)(const Conv *c, int what) {
    if (!SIZED(flb_volume_can)(c, what)) return 0;
    const int64_t *to = what == CONV_INPUT ? c->in : c->out;
    int64_t tall = c->kernel[1] == 3 ? 4 : 1;
    double places = tall > 1 ? 36 : 6, sums = (double)c->kernel[0], taps = sums * (tall > 1 ? 9 : 3),
           tiles = (double)(c->images * to[0] * around(to[1], tall) * around(to[2], 4)),
           pairs = (double)c->channels * (double)c->outputs,
           transforms = tiles / (double)c->channels + tiles / (double)c->outputs,
           weight = what != CONV_WEIGHT && places * sums * pairs > LARGE ? .65 : .2;
    return places * (.021 * tiles * sums + .18 * transforms + weight * sums) <
        taps * (.018 * (double)(c->images * to[0] * to[1] * to[2]) + .4);
}

int SIZED(flb_volume)(const Conv *c, int what, float *x, float *w, float *y, const float *bias) {
    int back = what == CONV_INPUT;
    Planar in = {.channels = c->channels, .deep = c->in[0], .h = c->in[1], .w = c->in[2], .last = c->xlast},
           out = {
               .channels = c->outputs, .deep = c->out[0], .h = c->out[1], .w = c->out[2], .last = c->ylast};
    Volume v = {.what = what,
                .x = back ? y : x,
                .y = back ? x : y,
                .weight = w,
                .bias = bias,
                .in = back ? out : in,
                .out = back ? in : out,
                .sums = c->kernel[0],
                .taps = c->kernel[0] * c->kernel[1] * c->kernel[2],
                .images = c->images,
                .transposed = back,
                .wlast = c->wlast,
                .tall = c->kernel[1] == 3 ? 4 : 1,
                .places = c->kernel[1] == 3 ? 36 : 6};
    v.pd = back ? c->kernel[0] - 1 - c->padding[0] : c->padding[0];
    v.ph = back ? c->kernel[1] - 1 - c->padding[1] : c->padding[1];
    v.pw = back ? c->kernel[2] - 1 - c->padding[2] : c->padding[2];
    v.from = v.in.deep, v.to = v.out.deep;
    if (v.sums == 1) v.from = v.to = v.to * v.images, v.images = 1;
    v.th = around(v.out.h, v.tall), v.tw = around(v.out.w, 4);
    cut(&v);
    int failed = what == CONV_WEIGHT ? SIZED(flb_volume_gradient)(&v) : forward(&v);
    return failed ? failed : v.odd;
}
#endif
