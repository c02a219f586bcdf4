/* Between planes of channels and vectors of channels, 16 with AVX-512 or 8 with AVX2 (VECTOR); float32. */
#ifndef FLAMBEAU_CONV_LANES_H
#define FLAMBEAU_CONV_LANES_H
#include "kernels/conv.h"
#include <immintrin.h>

#define L ((int)(VECTOR / sizeof(float))) /* channels of a vector */
#define INLINE static inline __attribute__((always_inline)) WIDE
#define LINE INLINE void

/* ---- a vector, and a part of one: its first lanes ------------------------------------------------------ */

#if VECTOR == 32
typedef __m256 Lanes;
typedef __m256i Mask;

/* The first n lanes, n <= L. */
INLINE Mask first_lanes(int64_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* Lanes outside the mask are 0, and aren't read. */
INLINE Lanes load_masked(Mask m, const float *from) { return _mm256_maskload_ps(from, m); }

/* Whole vectors aren't masked: such a store takes many times as long. */
LINE store_masked(float *to, Mask m, Lanes r) {
    if (_mm256_movemask_ps(_mm256_castsi256_ps(m)) == 0xff) _mm256_storeu_ps(to, r);
    else _mm256_maskstore_ps(to, m, r);
}

/* Lane i is from[i * apart]. */
INLINE Lanes load_apart(Mask m, const float *from, int64_t apart) {
    __m256i places =
        _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32((int)apart));
    return _mm256_mask_i32gather_ps(_mm256_setzero_ps(), from, places, _mm256_castsi256_ps(m), 4);
}

/* Whether a lane isn't finite. */
INLINE int any_odd(Lanes r) {
    __m256i most = _mm256_set1_epi32(0x7f800000);
    return _mm256_movemask_epi8(_mm256_cmpeq_epi32(_mm256_and_si256(_mm256_castps_si256(r), most), most)) !=
        0;
}

INLINE int any_undefined(Lanes r) { return _mm256_movemask_ps(_mm256_cmp_ps(r, r, _CMP_UNORD_Q)) != 0; }

/* Bits of those of eight pointers that are this one. */
INLINE int which_are(const float *one, const float *const *from) {
    __m256i all = _mm256_set1_epi64x((long long)(intptr_t)one);
    __m256i low = _mm256_cmpeq_epi64(_mm256_loadu_si256((const __m256i *)from), all),
            high = _mm256_cmpeq_epi64(_mm256_loadu_si256((const __m256i *)(from + 4)), all);
    return _mm256_movemask_pd(_mm256_castsi256_pd(low)) | _mm256_movemask_pd(_mm256_castsi256_pd(high)) << 4;
}

/* Rows of an L by L matrix to its columns. */
LINE turn(Lanes *r) {
    __m256 t[8];
    for (int i = 0; i < 8; i += 2)
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]), t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    for (int i = 0; i < 8; i += 4) /* r[4k + i]: rows 4k .. 4k+3 at columns i, i+4 */
        for (int h = 0; h < 2; h++) {
            r[i + 2 * h] = _mm256_shuffle_ps(t[i + h], t[i + h + 2], 0x44),
                      r[i + 2 * h + 1] = _mm256_shuffle_ps(t[i + h], t[i + h + 2], 0xee);
        }
    for (int i = 0; i < 4; i++)
        t[i] = _mm256_permute2f128_ps(r[i], r[4 + i], 0x20),
        t[4 + i] = _mm256_permute2f128_ps(r[i], r[4 + i], 0x31);
    for (int i = 0; i < 8; i++) r[i] = t[i];
}
#else
typedef __m512 Lanes;
typedef __mmask16 Mask;

INLINE Mask first_lanes(int64_t n) { return (Mask)((1u << n) - 1); }

INLINE Lanes load_masked(Mask m, const float *from) { return _mm512_maskz_loadu_ps(m, from); }

LINE store_masked(float *to, Mask m, Lanes r) { _mm512_mask_storeu_ps(to, m, r); }

INLINE Lanes load_apart(Mask m, const float *from, int64_t apart) {
    __m512i places =
        _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                           _mm512_set1_epi32((int)apart));
    return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), m, places, from, 4);
}

INLINE int any_odd(Lanes r) { return _mm512_fpclass_ps_mask(r, 0x99); /* NaN and infinity */ }

INLINE int any_undefined(Lanes r) { return _mm512_cmp_ps_mask(r, r, _CMP_UNORD_Q) != 0; }

INLINE int which_are(const float *one, const float *const *from) {
    return _mm512_cmpeq_epi64_mask(_mm512_loadu_si512(from), _mm512_set1_epi64((long long)(intptr_t)one));
}

LINE turn(Lanes *r) {
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
#endif

/* ---- runs of vectors ----------------------------------------------------------------------------------- */

/* n vectors: element c of vector i is from[i * ld + c]; those from `lanes` on are 0. */
static inline WIDE void load_lanes(const float *from, int64_t ld, int64_t n, int lanes, float *to) {
    Mask m = first_lanes(lanes);
    for (int64_t i = 0; i < n; i++, from += ld, to += L) *(V *)to = (V)load_masked(m, from);
}

/* The inverse of load_lanes. */
static inline WIDE void store_lanes(const float *from, int64_t n, int lanes, float *to, int64_t ld) {
    Mask m = first_lanes(lanes);
    for (int64_t i = 0; i < n; i++, from += L, to += ld) store_masked(to, m, (Lanes) * (const V *)from);
}

/* n vectors: element c of vector i is from[c * ld + i]; those from `lanes` on are 0. */
static WIDE void gather_lanes(const float *from, int64_t ld, int64_t n, int lanes, float *to) {
    for (int64_t i = 0; i < n; i += L, to += L * L) {
        int64_t k = n - i < L ? n - i : L;
        Mask m = first_lanes(k), none = first_lanes(0);
        Lanes r[L];
        for (int c = 0; c < L; c++)
            r[c] = load_masked(c < lanes ? m : none, from + (c < lanes ? c : 0) * ld + i);
        turn(r);
        for (int64_t j = 0; j < k; j++) *(V *)(to + L * j) = (V)r[j];
    }
}

/* The inverse of gather_lanes. */
static WIDE void spread_lanes(const float *from, int64_t n, int lanes, float *to, int64_t ld) {
    for (int64_t i = 0; i < n; i += L, from += L * L) {
        int64_t k = n - i < L ? n - i : L;
        Mask m = first_lanes(k);
        Lanes r[L];
        for (int j = 0; j < L; j++) r[j] = j < k ? (Lanes) * (const V *)(from + L * j) : (Lanes){0};
        turn(r);
        for (int c = 0; c < lanes; c++) store_masked(to + c * ld + i, m, r[c]);
    }
}
#endif
