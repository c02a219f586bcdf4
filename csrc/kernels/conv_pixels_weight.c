/* Convolutions by pixels, the gradient of the weight: sums over places of an output's cotangent times the
 * pixel that a tap reads. */
#include "kernels/conv.h"
#include <string.h>

#if defined(__x86_64__)
#include "kernels/conv_pixels.h"

#define SKIPPED 16 /* places beside the image that are left out of a sum, at least */

/* ---- the register kernels ------------------------------------------------------------------------------ */

#define EACH _Pragma("GCC unroll 16") for

/* For each of TAPS taps, sum (HIGH, NV vectors) += over n places of y[p * HIGH + r] times the NV vectors at
 * from[p] + at; of the last one the lanes in `last`. A tap's pointers are PLACES, its sums are `apart` behind
 * those of the one before. */
#define WEIGH(HIGH, TAPS, NV)                                                                            \
    WIDE static void weigh##HIGH##x##TAPS##x##NV(int64_t n, const float *const *from, int64_t at,        \
                                                 const float *y, float *sum, int64_t apart, Mask last) { \
        V s[HIGH][TAPS][NV];                                                                             \
        EACH(int r = 0; r < HIGH; r++)                                                                   \
        EACH(int t = 0; t < TAPS; t++)                                                                   \
        EACH(int v = 0; v < NV; v++) s[r][t][v] = (V){0};                                                \
        for (int64_t p = 0; p < n; p++, y += HIGH) {                                                     \
            V x[TAPS][NV];                                                                               \
            EACH(int t = 0; t < TAPS; t++) {                                                             \
                const float *pixel = from[t * PLACES + p] + at;                                          \
                EACH(int v = 0; v < NV - 1; v++) x[t][v] = *(const V *)(pixel + v * L);                  \
                x[t][NV - 1] = (V)load_masked(last, pixel + (NV - 1) * L);                               \
            }                                                                                            \
            EACH(int r = 0; r < HIGH; r++)                                                               \
            EACH(int t = 0; t < TAPS; t++)                                                               \
            EACH(int v = 0; v < NV; v++) s[r][t][v] += y[r] * x[t][v];                                   \
        }                                                                                                \
        EACH(int r = 0; r < HIGH; r++)                                                                   \
        EACH(int t = 0; t < TAPS; t++)                                                                   \
        EACH(int v = 0; v < NV; v++)((V *)(sum + t * apart))[r * NV + v] += s[r][t][v];                  \
    }
#if VECTOR == 32
WEIGH(8, 1, 1)
WEIGH(6, 1, 1)
WEIGH(6, 1, 2)
WEIGH(4, 1, 1)
WEIGH(4, 1, 2)
WEIGH(4, 1, 3)
WEIGH(6, 2, 1)
#else
WEIGH(16, 1, 1)
WEIGH(12, 1, 1)
WEIGH(12, 1, 2)
WEIGH(8, 1, 1)
WEIGH(8, 1, 2)
WEIGH(8, 1, 3)
WEIGH(6, 1, 1)
WEIGH(6, 1, 2)
WEIGH(6, 1, 3)
WEIGH(6, 1, 4)
WEIGH(8, 3, 1)
WEIGH(6, 2, 2)
#endif
typedef void (*Weigh)(int64_t, const float *const *, int64_t, const float *, float *, int64_t, Mask);
/* By the vectors of a whole tile, and those that are there; of one tap, and of as many as go together. */
#if VECTOR == 32
static const Weigh weighers[MOST_LANES][MOST_LANES] = {
    {weigh8x1x1}, {weigh6x1x1, weigh6x1x2}, {weigh4x1x1, weigh4x1x2, weigh4x1x3}};
static const Weigh together[] = {NULL, weigh6x2x1};
#else
static const Weigh weighers[MOST_LANES][MOST_LANES] = {{weigh16x1x1},
                                                       {weigh12x1x1, weigh12x1x2},
                                                       {weigh8x1x1, weigh8x1x2, weigh8x1x3},
                                                       {weigh6x1x1, weigh6x1x2, weigh6x1x3, weigh6x1x4}};
static const Weigh together[] = {NULL, weigh8x3x1, weigh6x2x2};
#endif
#undef EACH

/* ---- sums -----------------------------------------------------------------------------------------------
 */

/* Numbers from one place of `rows` to the next. */
static int64_t row_of_outputs(int64_t outputs) { return (ceil_div(outputs, L) | 1) * L; }

/* Cotangents of places [p0, p1) and `outputs` outputs of a group from o0 on in tiles of outputs: (tile,
 * place, high), zero behind the last output. `rows` is memory for L places. */
WIDE static void tile_outputs(const PixelJob *j, const Phase *f, int64_t group, int64_t p0, int64_t p1,
                              int64_t o0, int64_t outputs, float *rows, float *to) {
    const Conv *c = j->c;
    Mask tile = first_lanes(j->tile);
    int64_t first = group * (c->outputs / c->groups) + o0, wide = row_of_outputs(outputs);
    for (int64_t p = p0, run; p < p1; p += run) {
        int64_t n = p / f->places, at = p % f->places, ld = c->outputs;
        const float *y = j->made + p * ld + first;
        run = least(L, p1 - p);
        if (j->planar) {
            run = least(run, f->places - at);
            Mask there = first_lanes(run);
            const float *plane = j->made + (n * c->outputs + first) * f->places + at;
            for (int64_t o = 0; o < outputs; o += L) {
                Lanes r[L];
                for (int64_t i = 0; i < L; i++) {
                    const float *from = plane + least(o + i, outputs - 1) * f->places;
                    r[i] = load_masked(there, from);
                    __builtin_prefetch(from + 2 * L);
                }
                turn(r);
                for (int64_t q = 0; q < run; q++) *(V *)(rows + q * wide + o) = (V)r[q];
            }
            y = rows, ld = wide;
        }
        for (int64_t o = 0; o < outputs; o += j->tile) {
            Mask in = first_lanes(least(j->tile, outputs - o));
            float *at = to + o * (p1 - p0) + (p - p0) * j->tile;
            for (int64_t q = 0; q < run; q++, at += j->tile)
                store_masked(at, tile, load_masked(in, y + q * ld + o));
        }
    }
}

/* Spans of n places, [span[0], span[1]) and so on, that leave out runs of SKIPPED places and more where all
 * of these taps read beside the image: how many. */
WIDE static int64_t find_spans(const PixelJob *j, const float *const *from, int64_t taps, int64_t n,
                               uint8_t *span) {
    uint8_t beside[PLACES / 8], some = 0;
    for (int64_t i = 0; i < n; i += 8) {
        beside[i / 8] = 0xff;
        for (int64_t t = 0; t < taps; t++)
            beside[i / 8] &= (uint8_t)which_are(j->zeros, from + t * PLACES + i);
        some |= beside[i / 8];
    }
    span[0] = 0, span[1] = (uint8_t)n;
    if (!some) return 1;
    int64_t count = 0, begin = 0, run = 0; /* of the span, and places beside the image behind it */
    for (int64_t p = 0; p <= n; p++) {
        int out = p < n && beside[p / 8] >> p % 8 & 1;
        if (!out && (run >= SKIPPED || p == n)) {
            if (p - run > begin) span[2 * count] = (uint8_t)begin, span[2 * count++ + 1] = (uint8_t)(p - run);
            begin = p;
        }
        run = out ? run + 1 : 0;
    }
    return count;
}

/* Piece i: a set of taps and panels, for a cut of the outputs of a group. */
WIDE void SIZED(flb_pixels_weigh)(void *context, int64_t begin, int64_t end) {
    PixelJob *j = context;
    const Conv *c = j->c;
    const Phase *f = j->phases;
    int64_t wide = j->lanes * L, outputs = c->outputs / c->groups, all = f->places * c->images,
            units = ceil_div(j->pairs, j->shared), most = ceil_div(units, j->sets) * j->shared,
            known = least(most / j->panels + 2, j->all);
    const float **from = flb_api->scratch(
        known * PLACES * sizeof *from +
        ((most * wide + PLACES) * j->high_cut + L * row_of_outputs(j->high_cut)) * sizeof(float) + 64);
    if (!from) {
        j->failed = 1;
        return;
    }
    float *rows = (float *)(((uintptr_t)(from + known * PLACES) + 63) & ~(uintptr_t)63),
          *tiles = rows + L * row_of_outputs(j->high_cut), *sums = tiles + PLACES * j->high_cut;
    for (int64_t i = begin; i < end; i++) {
        int64_t cut = i % j->high_cuts, set = i / j->high_cuts % j->sets, group = i / j->high_cuts / j->sets;
        int64_t o0 = cut * j->high_cut, o1 = least(o0 + j->high_cut, outputs),
                first = set * units / j->sets * j->shared,
                last = least((set + 1) * units / j->sets * j->shared, j->pairs), t0 = first / j->panels;
        memset(sums, 0, (last - first) * j->high_cut * wide * sizeof(float));
        for (int64_t p0 = 0; p0 < all; p0 += PLACES) {
            int64_t n = least(PLACES, all - p0);
            tile_outputs(j, f, group, p0, p0 + n, o0, o1 - o0, rows, tiles);
            SIZED(flb_pixels_fill)(j, f, group, t0, ceil_div(last, j->panels), p0, p0 + n, from, PLACES,
                                   NULL);
            for (int64_t pair = first, taps; pair < last; pair += taps) {
                int64_t k = pair % j->panels * wide, left = j->depth - k, apart = j->high_cut * wide;
                int64_t nv = left < wide ? ceil_div(left, L) : j->lanes;
                Mask in = first_lanes(least(L, left - (nv - 1) * L));
                taps = last - pair < j->shared ? 1 : j->shared;
                const float *const *here = from + (pair / j->panels - t0) * PLACES, *const *next = here;
                uint8_t span[PLACES];
                int64_t spans = find_spans(j, here, taps, n, span), ahead = pair + taps < last ? n : 0;
                if (ahead) next = from + ((pair + taps) / j->panels - t0) * PLACES;
                Weigh fn = taps > 1 ? together[j->lanes] : weighers[j->lanes * j->shared - 1][nv - 1];
                float *to = sums + (pair - first) * apart;
                for (int64_t o = 0; o < o1 - o0; o += j->tile, to += j->tile * nv * L) {
                    /* The next pair's pixels are brought into the cache meanwhile. */
                    for (int64_t q = o * ahead / (o1 - o0),
                                 to = least(o + j->tile, o1 - o0) * ahead / (o1 - o0);
                         q < to; q++)
                        for (int64_t v = 0; v < wide; v += L)
                            __builtin_prefetch(next[q] + (pair + taps) % j->panels * wide + v);
                    for (int64_t s = 0; s < spans; s++)
                        fn(span[2 * s + 1] - span[2 * s], here + span[2 * s], k,
                           tiles + o * n + span[2 * s] * j->tile, to, apart, in);
                }
            }
        }
        for (int64_t pair = first; pair < last; pair++) {
            int64_t k = pair % j->panels * wide, left = least(wide, j->depth - k),
                    row = ceil_div(left, L) * L;
            const float *sum = sums + (pair - first) * j->high_cut * wide;
            for (int64_t o = o0; o < o1; o++, sum += row) {
                float *to = (float *)j->w + (group * outputs + o) * j->across + k * j->down +
                    j->taps[pair / j->panels].at * j->along;
                for (int64_t e = 0; e < left; e++) to[e * j->down] = sum[e];
            }
        }
    }
    flb_api->free(from);
}
#endif
