/* The gradient of the weight of Winograd's convolutions of one and of three dimensions: F(3x3, 4x4), or F(3,
 * 4), summed over tiles before it is transformed back. Rounds of strips lie transformed in memory. */
#include "kernels/conv.h"

#if defined(__x86_64__)
#include "kernels/winograd_volume.h"

#define ROUND (4 << 20) /* floats of transformed tiles in a round */

/* Where the tiles of the source of a strip of the round lie, and those of the cotangents. */
static float *sources_of(const Volume *w, int64_t s) {
    return w->all + (s - w->first) * w->places * (w->vstep + w->mstep);
}

static float *cotangents_of(const Volume *w, int64_t s) { return sources_of(w, s) + w->places * w->vstep; }

/* Cotangents of outputs [L block, L block + L) of a strip to to[place * mstep + tile * L]. */
static WIDE void cotangents(const Volume *w, const Strip *s, int64_t block, float *plane, float *to) {
    int64_t width = 4 * (s->c1 - s->c0), t = 0;
    for (int64_t d = s->d0; d < s->d1; d++) {
        read_planes(w->y + plane_at(&w->out, s->image, d, block), w->out.last, apart_in(&w->out), w->out.h,
                    w->out.w, w->tall * s->r0, w->tall * (s->r1 - s->r0), 4 * s->c0, width, plane);
        for (int64_t r = 0; r < s->r1 - s->r0; r++)
            for (int64_t c = 0; c < s->c1 - s->c0; c++, t++) {
                const V *from = (const V *)(plane + (w->tall * r * width + 4 * c) * L);
                V half[24], whole[MOST_PLACES];
                if (w->tall > 1) {
                    for (int i = 0; i < 4; i++) four_line(from + i, width, half + i, 4);
                    for (int i = 0; i < 6; i++) four_line(half + 4 * i, 1, whole + 6 * i, 1);
                    for (int i = 0; i < 36; i++) *(V *)(to + i * w->mstep + t * L) = whole[i];
                } else {
                    four_line(from, 1, whole, 1);
                    for (int i = 0; i < 6; i++) *(V *)(to + i * w->mstep + t * L) = whole[i];
                }
            }
    }
}

/* Pieces: L channels of a strip, of the source or of the cotangents. */
static void tiles_range(void *context, int64_t begin, int64_t end) {
    Volume *w = context;
    int64_t cb = w->in.channels / L, blocks = cb + w->out.channels / L;
    char *memory = flb_api->scratch(plane_room(w) * sizeof(float) + 64);
    if (!memory) {
        w->failed = 1;
        return;
    }
    float *plane = aligned(memory);
    for (int64_t i = begin; i < end; i++) {
        int64_t at = w->first + i / blocks, b = i % blocks;
        Strip s = strip_at(w, at);
        if (b < cb) SIZED(flb_volume_sources)(w, &s, b, plane, sources_of(w, at) + b * w->vrows * L);
        else cotangents(w, &s, b - cb, plane, cotangents_of(w, at) + (b - cb) * w->mrows * L);
    }
    flb_api->free(memory);
}

/* Numbers of the sums of a piece: (place, plane of the sum, L channels, 2 L outputs). */
static int64_t size_of(const Volume *w) { return w->places * w->sums * L * 2 * L; }

/* The taps of L channels from L c on and L outputs, from sums of which `from` is the first vector. */
static WIDE void write_taps(Volume *w, int64_t c, int64_t o, const float *from) {
    int64_t cin = w->in.channels, n = w->taps, each = n / w->sums, next = w->sums * L * 2 * L;
    float taps[L * MOST_SUMS * 9 * L];
    V none = {0};
    for (int64_t k = 0; k < w->sums; k++)
        for (int64_t r = 0; r < L; r++) {
            V m[MOST_PLACES], half[18], *to = (V *)(taps + (r * n + k * each) * L);
            for (int64_t j = 0; j < w->places; j++)
                m[j] = *(const V *)(from + j * next + (k * L + r) * 2 * L);
            if (w->tall > 1) {
                for (int j = 0; j < 6; j++) taps_line(m + j, 6, half + j, 6);
                for (int j = 0; j < 3; j++) taps_line(half + 6 * j, 1, to + 3 * j, 1);
            } else taps_line(m, 1, to, 1);
            for (int64_t j = 0; j < each; j++) none += 0.f * to[j];
        }
    if (!w->wlast) spread_lanes(taps, L * n, L, w->weight + (o * L * cin + c * L) * n, cin * n);
    for (int64_t t = 0; t < n && w->wlast; t++) {
        float lines[L * L];
        load_lanes(taps + t * L, n * L, L, L, lines);
        spread_lanes(lines, L, L, w->weight + (o * L * n + t) * cin + c * L, n * cin);
    }
    look(w, none);
}

/* Pieces: L input channels times up to 2 L outputs. */
static void taps_range(void *context, int64_t begin, int64_t end) {
    Volume *w = context;
    int64_t ob = w->out.channels / L, pairs = (ob + 1) / 2;
    char *memory = w->kept ? NULL : flb_api->scratch(size_of(w) * sizeof(float) + 64);
    if (!w->kept && !memory) {
        w->failed = 1;
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        int64_t c = i / pairs, o = i % pairs * 2, two = o + 1 < ob;
        float *sums = w->kept ? w->kept + i * size_of(w) : aligned(memory);
        for (int64_t p = 0; p < w->places; p++)
            for (int64_t at = w->first; at < w->last; at++) {
                Strip s = strip_at(w, at);
                int64_t tiles = (s.d1 - s.d0) * s.area;
                Sum sum = {.times = 1,
                           .blocks = around(tiles, L),
                           .rest = tiles % L,
                           .ka = L * L,
                           .kb = w->mrows * L,
                           .ldc = 2 * L,
                           .cv = L,
                           .more = at > 0};
                const float *a = sources_of(w, at) + p * w->vstep + c * w->vrows * L,
                            *b = cotangents_of(w, at) + p * w->mstep + o * w->mrows * L;
                for (int64_t k = 0; k < w->sums; k++)
                    tap_products(&sum, two, a + k * s.area * L, b, sums + (p * w->sums + k) * L * 2 * L);
            }
        if (w->last < w->strips) continue;
        for (int64_t k = 0; k < 1 + two; k++) write_taps(w, c, o + k, sums + k * L);
    }
    flb_api->free(memory);
}

int SIZED(flb_volume_gradient)(Volume *w) {
    int64_t cb = w->in.channels / L, ob = w->out.channels / L, pieces = cb * ((ob + 1) / 2),
            each = w->places * (w->vstep + w->mstep), round = ROUND / each > 1 ? ROUND / each : 1;
    round = around(w->strips, around(w->strips, round)); /* alike */
    char *memory = flb_api->scratch(round * each * sizeof(float) + 64),
         *kept = round < w->strips ? flb_api->scratch(pieces * size_of(w) * sizeof(float) + 64) : NULL;
    if (!memory || (round < w->strips && !kept)) w->failed = 1;
    w->all = aligned(memory), w->kept = kept ? aligned(kept) : NULL;
    for (w->first = 0; w->first < w->strips && !w->failed; w->first = w->last) {
        w->last = smaller(w->first + round, w->strips);
        flb_parallel(tiles_range, w, (w->last - w->first) * (cb + ob),
                     1 + (int64_t)(2e5 / ((w->vrows + w->mrows) * 50.0)));
        if (!w->failed)
            flb_parallel(
                taps_range, w, pieces,
                1 + (int64_t)(1e6 / (w->places * 1024.0 * w->sums * w->mrows * (w->last - w->first))));
    }
    flb_api->free(memory);
    flb_api->free(kept);
    return w->failed ? -1 : 0;
}
#endif
