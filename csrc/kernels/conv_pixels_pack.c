/* The weight of a convolution by pixels in panels: (group, phase, panel, tap, channel of the source, lanes).
 */
#include "kernels/conv.h"

#if defined(__x86_64__)
#include "kernels/conv_pixels.h"

float *flb_pixels_panel(const PixelJob *j, float *packed, int64_t group, const Phase *f, int64_t panel) {
    int64_t wide = j->lanes * L;
    return packed + ((group * j->all + f->taps) * j->panels + f->known * panel) * j->depth * wide;
}

/* `alone`: where the panel goes when no other lies beside it. */
WIDE int flb_pixels_pack_panel(const PixelJob *j, int64_t group, int64_t panel, float *alone) {
    int64_t wide = j->lanes * L, first = panel * wide;
    int back = j->what == CONV_INPUT, odd = 0;
    const float *w = j->w + group * (back ? j->depth * j->down : j->high * j->across);
    for (int64_t v = 0; v < wide; v += L) {
        /* Vectors are channels, or one tap of a row after the other. */
        int64_t channel = j->folded ? 0 : first + v, tap = j->folded ? v / L : 0,
                lanes = least(L, j->high - channel);
        __mmask16 in = lanes <= 0 ? 0 : (__mmask16)((1u << lanes) - 1);
        for (int64_t p = 0; p < j->count; p++) {
            const Phase *f = &j->phases[p];
            float *to = v +
                (alone ? alone + f->taps * j->depth * wide : flb_pixels_panel(j, j->packed, group, f, panel));
            if (!back) {
                /* Rows of depth times taps numbers: turned, sixteen by sixteen. */
                int64_t k = j->depth * j->all;
                for (int64_t i = 0; i < k && !tap; i += L) {
                    __mmask16 there = (__mmask16)((1u << least(L, k - i)) - 1);
                    __m512 r[L];
                    for (int o = 0; o < L; o++)
                        r[o] = _mm512_maskz_loadu_ps(o < lanes ? there : 0,
                                                     w + (o < lanes ? channel + o : 0) * j->across + i);
                    for (int o = 0; j->padded && o < L; o++) odd |= _mm512_fpclass_ps_mask(r[o], 0x99);
                    turn(r);
                    for (int64_t q = i; q < i + L && q < k; q++) {
                        int64_t t = j->along == 1 ? q % j->all : q / j->depth,
                                from = j->along == 1 ? q / j->all : q % j->depth,
                                row = (j->folded ? t / j->folded : t) * j->depth + from;
                        _mm512_storeu_ps(to + row * wide + (j->folded ? t % j->folded * L : 0), r[q - i]);
                    }
                }
                continue;
            }
            __m512i places =
                _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                                   _mm512_set1_epi32((int)j->across));
            for (int64_t t = 0; t < f->known; t++)
                for (int64_t o = 0; o < j->depth; o++, to += wide) {
                    const float *at = w + (j->taps[f->taps + t].at + tap) * j->along + o * j->down +
                        (in ? channel * j->across : 0);
                    __m512 r = j->across == 1
                        ? _mm512_maskz_loadu_ps(in, at)
                        : _mm512_mask_i32gather_ps(_mm512_setzero_ps(), in, places, at, 4);
                    odd |= _mm512_fpclass_ps_mask(r, 0x99); /* NaN and infinity */
                    _mm512_storeu_ps(to, r);
                }
        }
    }
    return odd != 0;
}

void flb_pixels_pack(void *context, int64_t begin, int64_t end) {
    PixelJob *j = context;
    for (int64_t i = begin; i < end; i++)
        if (flb_pixels_pack_panel(j, i / j->panels, i % j->panels, NULL)) j->odd = 1;
}
#endif
