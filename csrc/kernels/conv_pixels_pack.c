/* The weight of a convolution by pixels in panels: (group, phase, panel, tap, channel of the source, lanes).
 */
#include "kernels/conv.h"

#if defined(__x86_64__)
#include "kernels/conv_pixels.h"

#define ASKED 64 /* weights between what is read and what is asked for */

float *SIZED(flb_pixels_panel)(const PixelJob *j, float *packed, int64_t group, const Phase *f,
                               int64_t panel) {
    int64_t wide = j->lanes * L;
    return packed + ((group * j->all + f->taps) * j->panels + f->known * panel) * j->depth * wide;
}

/* `alone`: where the panel goes when no other lies beside it. */
WIDE int SIZED(flb_pixels_pack_panel)(const PixelJob *j, int64_t group, int64_t panel, float *alone) {
    int64_t wide = j->lanes * L, first = panel * wide;
    int back = j->what == CONV_INPUT, odd = 0;
    const float *w = j->w + group * (back ? j->depth * j->down : j->high * j->across);
    for (int64_t v = 0; v < wide; v += L) {
        /* Vectors are channels, or one tap of a row after the other. */
        int64_t channel = j->folded ? 0 : first + v, tap = j->folded ? v / L : 0,
                lanes = least(L, j->high - channel);
        Mask none = first_lanes(0), in = lanes <= 0 ? none : first_lanes(lanes);
        for (int64_t p = 0; p < j->count; p++) {
            const Phase *f = &j->phases[p];
            float *to = v +
                (alone ? alone + f->taps * j->depth * wide
                       : SIZED(flb_pixels_panel)(j, j->packed, group, f, panel));
            if (!back) {
                /* Rows of depth times taps numbers: turned, L by L. */
                int64_t k = j->depth * j->all, turns = j->along == 1 ? j->all : j->depth, outer = 0,
                        inner = 0;
                for (int64_t i = 0; i < k && !tap; i += L) {
                    Mask there = first_lanes(least(L, k - i));
                    Lanes r[L];
                    for (int o = 0; o < L; o++) {
                        const float *at = w + (o < lanes ? channel + o : 0) * j->across + i;
                        /* So many rows at once are more than the processor foresees. */
                        if (k - i > ASKED) __builtin_prefetch(at + ASKED);
                        r[o] = load_masked(o < lanes ? there : none, at);
                    }
                    for (int o = 0; j->padded && o < L; o++) odd |= any_odd(r[o]);
                    turn(r);
                    for (int64_t q = 0; q < least(L, k - i); q++) {
                        int64_t t = j->along == 1 ? inner : outer, from = j->along == 1 ? outer : inner,
                                row = (j->folded ? t / j->folded : t) * j->depth + from;
                        *(V *)(to + row * wide + (j->folded ? t % j->folded * L : 0)) = (V)r[q];
                        if (++inner == turns) inner = 0, outer++;
                    }
                }
                continue;
            }
            for (int64_t t = 0; t < f->known; t++)
                for (int64_t o = 0; o < j->depth; o++, to += wide) {
                    const float *at = w + (j->taps[f->taps + t].at + tap) * j->along + o * j->down +
                        (lanes > 0 ? channel * j->across : 0);
                    Lanes r = j->across == 1 ? load_masked(in, at) : load_apart(in, at, j->across);
                    odd |= any_odd(r);
                    *(V *)to = (V)r;
                }
        }
    }
    return odd != 0;
}

void SIZED(flb_pixels_pack)(void *context, int64_t begin, int64_t end) {
    PixelJob *j = context;
    for (int64_t i = begin; i < end; i++)
        if (SIZED(flb_pixels_pack_panel)(j, i / j->panels, i % j->panels, NULL)) j->odd = 1;
}
#endif
