/* Between planes of channels and vectors of 16 channels; float32 with AVX-512. */
#ifndef FLAMBEAU_CONV_LANES_H
#define FLAMBEAU_CONV_LANES_H
#include "kernels/conv.h"
#include <immintrin.h>

#define L 16 /* channels of a vector */
#define LINE static inline __attribute__((always_inline)) WIDE void

LINE turn(__m512 *r) {
    __m512 t[16];
    for (int i = 0; i < 16; i += 2)
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]), t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    for (int i = 0; i < 16; i += 4) {
        for (int h = 0; h < 2; h++) {
            __m512d a = _mm512_castps_pd(t[i + h]), b = _mm512_castps_pd(t[i + h + 2]);
            r[i + 2 * h] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b)),
                      r[i + 2 * h + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
        }
    }
    for (int i = 0; i < 4; i++) { /* r[4k + i]: rows 4k .. 4k+3 at columns i, i+4, i+8, i+12 */
        __m512 a = _mm512_shuffle_f32x4(r[i], r[4 + i], 0x88),
               b = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0x88);
        __m512 c = _mm512_shuffle_f32x4(r[i], r[4 + i], 0xdd),
               d = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0xdd);
        t[i] = _mm512_shuffle_f32x4(a, b, 0x88), t[8 + i] = _mm512_shuffle_f32x4(a, b, 0xdd);
        t[4 + i] = _mm512_shuffle_f32x4(c, d, 0x88), t[12 + i] = _mm512_shuffle_f32x4(c, d, 0xdd);
    }
    for (int i = 0; i < 16; i++) r[i] = t[i];
}

/* n vectors: element c of vector i is from[i * ld + c]; those from `lanes` on are 0. */
static inline WIDE void load_lanes(const float *from, int64_t ld, int64_t n, int lanes, float *to) {
    __mmask16 m = (__mmask16)((1u << lanes) - 1);
    for (int64_t i = 0; i < n; i++, from += ld, to += L) _mm512_storeu_ps(to, _mm512_maskz_loadu_ps(m, from));
}

/* The inverse of load_lanes. */
static inline WIDE void store_lanes(const float *from, int64_t n, int lanes, float *to, int64_t ld) {
    __mmask16 m = (__mmask16)((1u << lanes) - 1);
    for (int64_t i = 0; i < n; i++, from += L, to += ld) _mm512_mask_storeu_ps(to, m, _mm512_loadu_ps(from));
}

/* n vectors: element c of vector i is from[c * ld + i]; those from `lanes` on are 0. */
static WIDE void gather_lanes(const float *from, int64_t ld, int64_t n, int lanes, float *to) {
    for (int64_t i = 0; i < n; i += 16, to += 256) {
        int64_t k = n - i < 16 ? n - i : 16;
        __mmask16 m = (__mmask16)((1u << k) - 1);
        __m512 r[16];
        for (int c = 0; c < 16; c++)
            r[c] = _mm512_maskz_loadu_ps(c < lanes ? m : 0, from + (c < lanes ? c : 0) * ld + i);
        turn(r);
        for (int64_t j = 0; j < k; j++) _mm512_storeu_ps(to + 16 * j, r[j]);
    }
}

/* The inverse of gather_lanes. */
static WIDE void spread_lanes(const float *from, int64_t n, int lanes, float *to, int64_t ld) {
    for (int64_t i = 0; i < n; i += 16, from += 256) {
        int64_t k = n - i < 16 ? n - i : 16;
        __mmask16 m = (__mmask16)((1u << k) - 1);
        __m512 r[16];
        for (int j = 0; j < 16; j++) r[j] = j < k ? _mm512_loadu_ps(from + 16 * j) : _mm512_setzero_ps();
        turn(r);
        for (int c = 0; c < lanes; c++) _mm512_mask_storeu_ps(to + c * ld + i, m, r[c]);
    }
}
#endif
