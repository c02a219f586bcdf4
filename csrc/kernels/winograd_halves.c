/* Convolutions of two dimensions of 3 or 4 taps with stride two, and their gradients of the input (transposed
 * convolutions), by Winograd's F(4x4, 2x2): float32 with AVX-512 or AVX2.
 *
 * A stride of two parts an image into four, of which each meets 2 by 2 of the taps (a third and fifth that
 * isn't there is zero): their convolutions are added, at the places of the products. Of the gradient the
 * result is parted, and each part is such a convolution of the cotangents. A tile of 4 by 4 results is made
 * of 5 by 5 inputs with 25 products a pair of channels instead of 64. The points are 0, 1, -1/2, -2 and
 * infinity, whose errors are below those of the points in winograd.c.
 *
 * Strips, tiles and vectors of L channels are those of winograd_volume.c: planes of all images are one run.
 */
#include "kernels/conv.h"

#if !defined(__x86_64__)
int SIZED(flb_winograd_halves_can)(const Conv *c, int what) { return 0; }
int SIZED(flb_winograd_halves_fits)(const Conv *c, int what) { return 0; }
int SIZED(flb_winograd_halves)(const Conv *c, int what, float *x, float *w, float *y, const float *bias) {
    return -1;
}
#else
#include "kernels/winograd_volume.h"

#define EDGE 5
#define PLACES 25
#define PARTS 4
#define BUDGET 250000 /* floats of a strip's tiles, about */
#define LINE_FLOATS 16
/* Where tiles of all channels don't fit into the second-level cache (AVX2), results of all channels are made
 * at a place before the next one, so that its tiles are read once; a part of the weight is asked for while
 * the one before it is multiplied. The order of sums is the same. */
#define PLACES_FIRST (VECTOR == 32)
#define DEEP 96      /* steps of a sum, at most, that are added to the others when they are whole */
#define MANY 40      /* tiles of a strip, at least, where the weight is large */
#define LARGE 500000 /* numbers of a weight at its places, from which on it is written to slower memory */

typedef struct {
    Volume v;
    const Conv *c;
    int back;
    int64_t step, by;            /* of the source, and of the result, from one place of a part to the next */
    int64_t first[2][2], low[2]; /* by dimension: where each part reads, the lowest of these */
    int64_t tap[2][2][2];        /* by dimension, part and place: the tap */
} Halves;

/* ---- transforms of one dimension ----------------------------------------------------------------------- */

LINE five_line(const V *from, int64_t step, V *to, int64_t by) {
    V d0 = from[0], d1 = from[step], d2 = from[2 * step], d3 = from[3 * step], d4 = from[4 * step];
    V e = d2 - d1;
    to[0] = d0 - d3 - 1.5f * e, to[by] = d3 + d1 + 2.5f * d2, to[2 * by] = d3 + e - d1,
    to[3 * by] = d3 - .5f * (d2 + d1), to[4 * by] = d4 - d1 + 1.5f * (d3 - d2);
}

LINE two_line(const V *from, int64_t step, V *to, int64_t by) {
    V g0 = from[0], g1 = from[step];
    to[0] = g0, to[by] = (g0 + g1) * (1 / 4.5f), to[2 * by] = (g0 - .5f * g1) * (1 / 1.125f),
    to[3 * by] = (2.f * g1 - g0) * (1 / 9.f), to[4 * by] = g1;
}

LINE back_line(const V *from, int64_t step, V *to, int64_t by) {
    V m1 = from[step], m2 = from[2 * step], m3 = from[3 * step];
    to[0] = from[0] + m1 + m2 + m3, to[by] = m1 - .5f * m2 - 2.f * m3, to[2 * by] = m1 + .25f * m2 + 4.f * m3,
    to[3 * by] = m1 - .125f * m2 - 8.f * m3 + from[4 * step];
}

/* ---- tiles --------------------------------------------------------------------------------------------- */

/* Floats of the planes that a strip is read from, and of its results of 2 L channels. */
static int64_t source_room(const Halves *j) {
    return ((4 * j->v.rows + 1) * j->step + 2) * ((4 * j->v.columns + 1) * j->step + 2) * L;
}

static int64_t result_room(const Halves *j) {
    return j->v.depth * 4 * j->v.rows * j->by * 4 * j->v.columns * j->by * 2 * L;
}

/* Tiles of L channels of a strip: to[part * all + place * vstep + tile * L]. */
static WIDE void sources(const Halves *j, const Strip *s, int64_t block, float *plane, float *to) {
    const Volume *v = &j->v;
    int64_t height = (4 * (s->r1 - s->r0) + 1) * j->step + 2, width = (4 * (s->c1 - s->c0) + 1) * j->step + 2,
            t = 0;
    for (int64_t d = s->d0; d < s->d1; d++, t += s->area) {
        read_planes(v->x + plane_at(&v->in, 0, d, block), v->in.last, apart_in(&v->in), v->in.h, v->in.w,
                    4 * s->r0 * j->step + j->low[0], height, 4 * s->c0 * j->step + j->low[1], width, plane);
        for (int64_t part = 0; part < PARTS; part++) {
            float *at = to + part * PLACES * v->vstep + t * L;
            const float *start =
                plane + ((j->first[0][part / 2] - j->low[0]) * width + j->first[1][part % 2] - j->low[1]) * L;
            for (int64_t r = 0; r < s->r1 - s->r0; r++)
                for (int64_t c = 0; c < s->c1 - s->c0; c++, at += L) {
                    const V *from = (const V *)(start + (4 * r * width + 4 * c) * j->step * L);
                    V half[PLACES], whole[PLACES];
                    for (int i = 0; i < EDGE; i++)
                        five_line(from + i * j->step, j->step * width, half + i, EDGE);
                    for (int i = 0; i < EDGE; i++) five_line(half + EDGE * i, 1, whole + EDGE * i, 1);
                    for (int i = 0; i < PLACES; i++) *(V *)(at + i * v->vstep) = whole[i];
                }
        }
    }
    for (int64_t p = 0; p < PARTS * PLACES; p++) memset(to + p * v->vstep + t * L, 0, 3 * L * sizeof(float));
}

/* Places of L channels of a strip to planes of results, of which a part has each `by`-th place of each
 * `by`-th row. */
static WIDE void gather_results(Halves *j, const Strip *s, int64_t part, int64_t block, const float *from,
                                float *planes) {
    Volume *v = &j->v;
    int64_t width = 4 * (s->c1 - s->c0) * j->by, t = 0;
    V bias = v->bias ? *(const V *)(v->bias + block * L) : (V){0}, none = {0};
    for (int64_t d = s->d0; d < s->d1; d++, planes += 4 * (s->r1 - s->r0) * j->by * width * L) {
        float *start = planes + (part / 2 * width + part % 2) * L;
        for (int64_t r = 0; r < s->r1 - s->r0; r++)
            for (int64_t c = 0; c < s->c1 - s->c0; c++, t++) {
                V m[PLACES], half[4 * EDGE];
                for (int i = 0; i < PLACES; i++) m[i] = *(const V *)(from + i * v->mstep + t * L);
                for (int i = 0; i < EDGE; i++) back_line(m + i, EDGE, half + i, EDGE);
                for (int i = 0; i < 4; i++) {
                    V line[4], *to = (V *)(start + ((4 * r + i) * width + 4 * c) * j->by * L);
                    back_line(half + EDGE * i, 1, line, 1);
                    for (int k = 0; k < 4; k++) to[k * j->by] = line[k] + bias, none += 0.f * line[k];
                }
            }
    }
    look(v, none);
}

static WIDE void store_results(const Halves *j, const Strip *s, int64_t block, const float *planes) {
    const Planar *to = &j->v.out;
    int64_t by = 4 * j->by, width = (s->c1 - s->c0) * by, apart = apart_in(to), top = s->r0 * by,
            rows = smaller(s->r1 * by, to->h) - top, wide = smaller(s->c1 * by, to->w) - s->c0 * by,
            one = width == to->w ? rows : 1; /* rows that follow each other there as here */
    for (int64_t d = s->d0; d < s->d1; d++, planes += (s->r1 - s->r0) * by * width * L) {
        float *y = j->v.y + plane_at(to, 0, d, block) + (top * to->w + s->c0 * by) * (to->last ? apart : 1);
        for (int64_t r = 0; r < rows; r += one) {
            const float *from = planes + r * width * L;
            if (to->last) store_lanes(from, one * wide, L, y + r * to->w * apart, apart);
            else spread_lanes(from, one * wide, L, y + r * to->w, apart);
        }
    }
}

/* ---- the weight ---------------------------------------------------------------------------------------- */

/* Blocks of L outputs: u[part][place][output block][input channel][L]. */
static WIDE void weight_range(void *context, int64_t begin, int64_t end) {
    Halves *j = context;
    const Conv *k = j->c;
    int64_t cin = j->v.in.channels, ustep = cin * j->v.out.channels + L;
    float taps[L * 16 * L];
    for (int64_t ob = begin; ob < end; ob++)
        for (int64_t c = 0; c < cin; c += L) {
            volume_taps(&j->v, ob, c, taps);
            for (int64_t i = 0; i < L * PARTS; i++) {
                int64_t part = i % PARTS, py = part / 2, px = part % 2;
                V g[4], half[2 * EDGE], whole[PLACES];
                for (int t = 0; t < 4; t++) {
                    int64_t y = j->tap[0][py][t / 2], x = j->tap[1][px][t % 2];
                    g[t] = y < k->kernel[1] && x < k->kernel[2]
                        ? ((const V *)taps)[i / PARTS * j->v.taps + y * k->kernel[2] + x]
                        : (V){0};
                }
                for (int t = 0; t < 2; t++) two_line(g + t, 2, half + t, 2);
                for (int t = 0; t < EDGE; t++) two_line(half + 2 * t, 1, whole + EDGE * t, 1);
                float *to = j->v.u + part * PLACES * ustep + (ob * cin + c + i / PARTS) * L;
                for (int p = 0; p < PLACES; p++) *(V *)(to + p * ustep) = whole[p];
            }
        }
}

/* ---- products ------------------------------------------------------------------------------------------ */

/* Of a place of a part, `rows` tiles times the weight's places for one or two vectors of channels from `o`
 * on. */
static void place_products(const Halves *j, int64_t rows, int64_t part, int64_t p, int64_t o,
                           const float *tiles, float *sums) {
    const Volume *v = &j->v;
    int64_t cin = v->in.channels, ustep = cin * v->out.channels + L, at = part * PLACES + p,
            deep = around(cin / L, around(cin, DEEP)) * L;
    if (PLACES_FIRST) {
        /* The place, part and channels that come next: from slower memory, where no lines were asked for
         * before. */
        int64_t q = p, r = part, n = o;
        if (j->back) {
            if (++q == PLACES) q = 0, r++;
            if (r == PARTS) r = 0, n += 2;
        } else {
            if (++r == PARTS) r = 0, n += 2;
            if (n * L >= v->out.channels) n = 0, q++;
        }
        const float *next = v->u + (r * PLACES + q) * ustep + n * cin * L;
        for (int64_t i = 0; i < 2 * cin * L; i += LINE_FLOATS) __builtin_prefetch(next + i);
    }
    for (int64_t c = 0; c < cin; c += deep) {
        Sum sum = {.times = 1,
                   .blocks = smaller(deep, cin - c) / L,
                   .ka = v->vrows * L,
                   .kb = cin * L,
                   .ldc = L,
                   .cv = v->mrows * L,
                   .more = (part && !j->back) || c};
        tile_products(&sum, rows, o + 1 < v->out.channels / L, tiles + at * v->vstep + c * v->vrows,
                      v->u + at * ustep + (o * cin + c) * L, sums + p * v->mstep);
    }
}

static void strip_range(void *context, int64_t begin, int64_t end) {
    Halves *j = context;
    Volume *v = &j->v;
    int64_t cin = v->in.channels, ob = v->out.channels / L;
    char *memory = flb_api->scratch(
        (PLACES * (PARTS * v->vstep + v->mstep) + source_room(j) + result_room(j)) * sizeof(float) + 64);
    if (!memory) {
        v->failed = 1;
        return;
    }
    float *tiles = aligned(memory), *m = tiles + PARTS * PLACES * v->vstep, *plane = m + PLACES * v->mstep,
          *made = plane + source_room(j);
    for (int64_t i = begin; i < end; i++) {
        Strip s = strip_at(v, i);
        int64_t rows = around((s.d1 - s.d0) * s.area, 4) * 4;
        for (int64_t b = 0; b < cin / L; b++) sources(j, &s, b, plane, tiles + b * v->vrows * L);
        for (int64_t p = 0; PLACES_FIRST && !j->back && p < PLACES; p++)
            for (int64_t o = 0; o < ob; o += 2)
                for (int64_t part = 0; part < PARTS; part++)
                    place_products(j, rows, part, p, o, tiles, m + o * v->mrows * L);
        for (int64_t o = 0; o < ob; o += 2) {
            int64_t two = o + 1 < ob, ready = PLACES_FIRST && !j->back;
            float *sums = ready ? m + o * v->mrows * L : m;
            for (int64_t part = 0; part < PARTS; part++) {
                for (int64_t p = 0; !ready && p < PLACES; p++)
                    place_products(j, rows, part, p, o, tiles, sums);
                if (!j->back && part + 1 < PARTS) continue;
                for (int64_t k = 0; k < 1 + two; k++)
                    gather_results(j, &s, j->back ? part : 0, o + k, sums + k * v->mrows * L,
                                   made + k * (result_room(j) / 2));
            }
            for (int64_t k = 0; k < 1 + two; k++)
                store_results(j, &s, o + k, made + k * (result_room(j) / 2));
        }
    }
    flb_api->free(memory);
}

/* ---- what is to be done -------------------------------------------------------------------------------- */

int SIZED(flb_winograd_halves_can)(const Conv *c, int what) {
    if (flb_cpu_level() < LEVEL || what == CONV_WEIGHT || c->groups != 1 || c->channels % L ||
        c->outputs % L || !c->channels || !c->outputs)
        return 0;
    if (c->in[0] != 1 || c->out[0] != 1 || c->kernel[0] != 1 || c->padding[0]) return 0;
    for (int d = 1; d < 3; d++)
        if (c->stride[d] != 2 || c->dilation[d] != 1 || c->kernel[d] < 3 || c->kernel[d] > 4 ||
            c->padding[d] > 3)
            return 0;
    return 1;
}

/* Places of a part of the result. */
static int64_t part_of(const Conv *c, int what, int d) {
    return what == CONV_INPUT ? around(c->in[d], 2) : c->out[d];
}

/* Channels of the source, at most, with AVX2: tiles of more leave a second-level cache of 512 KiB before they
 * are multiplied. A result in four parts reads them once for each part: it takes as long as by pixels, unless
 * these are turned. */
#define MOST_CHANNELS 64

/* Nanoseconds of a product of a tile, as in flb_volume_fits. With AVX2 a strip's tiles leave a second-level
 * cache of half the size: 3 by 3 taps, 100 products for 144, take as long as all taps do. */
#define PRODUCT_TIME (VECTOR == 64 ? .021 : .026)

/* As flb_volume_fits; a weight that is large at its places is read from slower memory, too. */
int SIZED(flb_winograd_halves_fits)(const Conv *c, int what) {
    if (!flb_winograd_halves_can(c, what)) return 0;
    if (VECTOR == 32 &&
        (what == CONV_INPUT ? c->outputs > MOST_CHANNELS || c->xlast : c->channels > MOST_CHANNELS))
        return 0;
    double tiles = (double)(c->images * around(part_of(c, what, 1), 4) * around(part_of(c, what, 2), 4)),
           in = (double)(what == CONV_INPUT ? c->outputs : c->channels),
           pairs = (double)c->channels * (double)c->outputs,
           transforms = tiles * (PARTS / pairs * in + (what == CONV_INPUT ? PARTS : 1) / in),
           weight = PLACES * PARTS * pairs > LARGE ? 1.1 : .2;
    return PLACES * (PARTS * PRODUCT_TIME * tiles + .18 * transforms + PARTS * weight) <
        (double)(c->kernel[1] * c->kernel[2]) * (.018 * (double)(c->images * c->out[1] * c->out[2]) + .4);
}

/* A strip is planes of whole tiles where they fit, rows of one, or columns. */
static void cut(Halves *j) {
    Volume *v = &j->v;
    int64_t in = v->in.channels, out = v->out.channels,
            few = PLACES * PARTS * in * out > LARGE ? MANY : 2, /* each strip reads the weight */
        tiles = BUDGET / (PLACES * (PARTS * in + out));
    if (tiles < few) tiles = few;
    v->depth = smaller(tiles / (v->th * v->tw) > 1 ? tiles / (v->th * v->tw) : 1, v->to);
    v->rows = tiles >= v->tw ? smaller(tiles / v->tw, v->th) : 1, v->columns = smaller(tiles, v->tw);
    v->depth = around(v->to, around(v->to, v->depth)), v->rows = around(v->th, around(v->th, v->rows)),
    v->columns = around(v->tw, around(v->tw, v->columns)); /* alike */
    v->depths = around(v->to, v->depth), v->bands = around(v->th, v->rows),
    v->spans = around(v->tw, v->columns);
    v->strips = v->depths * v->bands * v->spans;
    tiles = v->depth * v->rows * v->columns;
    v->mrows = around(tiles, 4) * 4, v->vrows = tiles + 3;
    v->vstep = v->vrows * v->in.channels + L, v->mstep = v->mrows * v->out.channels + L;
}

int SIZED(flb_winograd_halves)(const Conv *c, int what, float *x, float *w, float *y, const float *bias) {
    int back = what == CONV_INPUT;
    Planar in = {.channels = c->channels, .deep = 1, .h = c->in[1], .w = c->in[2], .last = c->xlast},
           out = {.channels = c->outputs, .deep = 1, .h = c->out[1], .w = c->out[2], .last = c->ylast};
    Halves j = {.v = {.x = back ? y : x,
                      .y = back ? x : y,
                      .weight = w,
                      .bias = bias,
                      .in = back ? out : in,
                      .out = back ? in : out,
                      .taps = c->kernel[1] * c->kernel[2],
                      .images = 1,
                      .from = c->images,
                      .to = c->images,
                      .transposed = back,
                      .wlast = c->wlast,
                      .th = around(part_of(c, what, 1), 4),
                      .tw = around(part_of(c, what, 2), 4)},
                .c = c,
                .back = back,
                .step = back ? 1 : 2,
                .by = back ? 2 : 1};
    for (int d = 0; d < 2; d++) {
        int64_t pad = c->padding[d + 1];
        for (int p = 0; p < 2; p++) {
            /* Place u of a part of the gradient is 2 u + p, which tap k reaches from (2 u + p + pad - k) / 2.
             */
            int64_t least = back ? (p + pad) % 2 : p;
            j.first[d][p] = back ? (p + pad - least) / 2 - 1 : p - pad;
            for (int t = 0; t < 2; t++) j.tap[d][p][t] = least + 2 * (back ? 1 - t : t);
        }
        j.low[d] = smaller(j.first[d][0], j.first[d][1]);
    }
    cut(&j);
    char *memory = flb_api->scratch(PARTS * PLACES * (c->channels * c->outputs + L) * sizeof(float) + 64);
    if (!memory) return -1;
    j.v.u = aligned(memory);
    flb_parallel(weight_range, &j, j.v.out.channels / L,
                 1 + (int64_t)(1e5 / ((double)j.v.in.channels * 200.0)));
    if (!j.v.failed) flb_parallel(strip_range, &j, j.v.strips, 1);
    flb_api->free(memory);
    return j.v.failed ? -1 : j.v.odd;
}
#endif
