/* Which pixels the taps of a block of places read. */
#include "kernels/conv.h"
#include <string.h>

#if defined(__x86_64__)
#include "kernels/conv_pixels.h"

/* How far the taps of a phase reach beside the image from place i of a dimension. */
static uint64_t beside(const PixelJob *j, const Phase *f, int d, int64_t i) {
    int64_t low = -(i * j->step[d] + f->low[d]), high = i * j->step[d] + f->high[d] - j->size[d] + 1;
    return (uint64_t)(low > 0 ? least(low, 255) : 0) << 8 | (uint64_t)(high > 0 ? least(high, 255) : 0);
}

/* slot[p - p0]: the row of place p among those of a block. Places from which the same taps reach beside the
 * image come together, so that tiles leave these taps out. */
void SIZED(flb_pixels_sort)(const PixelJob *j, const Phase *f, int64_t p0, int64_t p1, int16_t *slot) {
    enum { MOST = 32 };
    uint64_t kinds[MOST];
    int16_t ends[MOST], first = 0;
    uint8_t kind[ROWS];
    int64_t known = 0, k = 0, rest = p0 % f->places;
    int64_t i[3] = {rest / (f->count[1] * f->count[2]), rest / f->count[2] % f->count[1], rest % f->count[2]};
    uint64_t outer = 0;
    for (int64_t p = p0; j->sorted && p < p1; p++) {
        if (p == p0 || !i[2]) outer = beside(j, f, 0, i[0]) << 32 | beside(j, f, 1, i[1]) << 16;
        uint64_t key = outer | beside(j, f, 2, i[2]);
        if (!known || kinds[k] != key)
            for (k = 0; k < known && kinds[k] != key;) k++;
        if (k == known) {
            if (known == MOST) break;
            kinds[known] = key, ends[known++] = 0;
        }
        kind[p - p0] = (uint8_t)k, ends[k]++;
        if (++i[2] == f->count[2]) {
            i[2] = 0;
            if (++i[1] == f->count[1]) {
                i[1] = 0;
                if (++i[0] == f->count[0]) i[0] = 0;
            }
        }
        if (p + 1 == p1 && known > 1) {
            for (k = 0; k < known; k++) first += ends[k], ends[k] = (int16_t)(first - ends[k]);
            for (int64_t q = 0; q < p1 - p0; q++) slot[q] = ends[kind[q]]++;
            return;
        }
    }
    for (int64_t q = 0; q < p1 - p0; q++) slot[q] = (int16_t)q;
}

/* Where taps [t0, t1) read for places [p0, p1) of a phase in all images: from[(t - t0) * ld + slot[p - p0]],
 * where there are no slots p - p0. Row after row of places: within [inner, outer) no tap reads to the left or
 * right of the image, and slots follow each other. */
WIDE void SIZED(flb_pixels_fill)(const PixelJob *j, const Phase *f, int64_t group, int64_t t0, int64_t t1,
                                 int64_t p0, int64_t p1, const float **from, int64_t ld,
                                 const int16_t *slot) {
    int64_t n = p0 / f->places, rest = p0 % f->places, step = j->step[2], channels = j->depth * j->groups;
    int64_t i[3] = {rest / (f->count[1] * f->count[2]), rest / f->count[2] % f->count[1], rest % f->count[2]};
    const int64_t *size = j->size;
    const float *source = j->source + group * j->depth;
    int64_t low = f->low[2] < 0 ? ceil_div(-f->low[2], step) : 0,
            high = size[2] > f->high[2] ? (size[2] - 1 - f->high[2]) / step + 1 : 0;
    for (int64_t p = p0, run; p < p1; p += run) {
        run = least(f->count[2] - i[2], p1 - p);
        int64_t inner = least(low > i[2] ? low - i[2] : 0, run),
                outer = least(high > i[2] ? high - i[2] : 0, run);
        if (outer < inner) outer = inner;
        for (int64_t t = t0; t < t1; t++) {
            const Tap *tap = &j->taps[f->taps + t];
            const float **to = from + (t - t0) * ld;
            int64_t a = i[0] * j->step[0] + tap->start[0], b = i[1] * j->step[1] + tap->start[1],
                    e = i[2] * step + tap->start[2], line = ((n * size[0] + a) * size[1] + b) * size[2];
            int in = a >= 0 && a < size[0] && b >= 0 && b < size[1];
            for (int64_t q = inner ? 0 : outer; q < run; q = q + 1 == inner ? outer : q + 1) {
                int64_t at = e + q * step;
                to[slot ? slot[p - p0 + q] : p - p0 + q] =
                    in && at >= 0 && at < size[2] ? source + (line + at) * channels : j->zeros;
            }
            if (inner == outer) continue;
            const float **middle = to + (slot ? slot[p - p0 + inner] : p - p0 + inner),
                        *first = in ? source + (line + e + inner * step) * channels : j->zeros;
            int64_t apart = in ? step * channels : 0;
            for (int64_t q = 0; q < outer - inner; q++) middle[q] = first + q * apart;
        }
        i[2] = 0;
        if (++i[1] == f->count[1]) {
            i[1] = 0;
            if (++i[0] == f->count[0]) i[0] = 0, n++;
        }
    }
}
#endif
