/* Places in sorted sequences: binary searches without branches on data, several at a time.
 *
 * A place is found bit by bit, the highest one first: a bit is set where the element before the place that it
 * would make is passed. Elements behind the sequence's end aren't passed; where nan is looked for from the
 * right they may be, which the last step puts right. All ways probe the same elements. */
#include "runtime/graph.h"
#include "runtime/levels.h"

#define TOGETHER 8 /* searches whose loads are on their way at once */

typedef struct {
    const char *sequence, *values;
    char *to;
    int64_t length, row; /* of a sequence; values for each of them, 0: one sequence for all */
    int64_t highest;     /* the bit that is tried first */
    int kind, right, narrow;
} Search;

static inline void put(const Search *s, int64_t i, int64_t place) {
    if (place > s->length) place = s->length;
    if (s->narrow) ((int32_t *)s->to)[i] = (int32_t)place;
    else ((int64_t *)s->to)[i] = place;
}

#define BEFORE_FLOAT(a, b) (((a) < (b)) | (((b) != (b)) & ((a) == (a))))
#define BEFORE(a, b) ((a) < (b))
#define SEARCH(name, T, BEFORE)                                                                             \
    static void name(const Search *s, int64_t begin, int64_t end) {                                         \
        const T *sequence = (const T *)s->sequence;                                                         \
        for (int64_t i = begin; i < end; i += TOGETHER) {                                                   \
            int64_t place[TOGETHER] = {0}, first[TOGETHER], many = end - i < TOGETHER ? end - i : TOGETHER; \
            T x[TOGETHER];                                                                                  \
            for (int64_t j = 0; j < TOGETHER; j++) {                                                        \
                int64_t at = i + (j < many ? j : 0);                                                        \
                x[j] = ((const T *)s->values)[at], first[j] = s->row ? at / s->row * s->length : 0;         \
            }                                                                                               \
            for (int64_t bit = s->highest; bit; bit /= 2)                                                   \
                for (int64_t j = 0; j < TOGETHER; j++) {                                                    \
                    int64_t next = place[j] + bit, there = next <= s->length;                               \
                    T y = sequence[first[j] + (there ? next : s->length) - 1];                              \
                    int64_t passed = s->right ? !BEFORE(x[j], y) : BEFORE(y, x[j]);                         \
                    place[j] += bit & -(there & passed);                                                    \
                }                                                                                           \
            for (int64_t j = 0; j < many; j++) put(s, i + j, place[j]);                                     \
        }                                                                                                   \
    }
SEARCH(search_f32, float, BEFORE_FLOAT)
SEARCH(search_f64, double, BEFORE_FLOAT)
SEARCH(search_i64, int64_t, BEFORE)

#if defined(__x86_64__)
#include <immintrin.h>

#define L 16
#define NEAR 5 /* bits that are found in two registers */

/* One sequence for all. The elements that the first five bits depend on lie in two registers, the others are
 * gathered. */
__attribute__((target("avx512f,avx512vl,avx512dq"))) static void search_wide(const Search *s, int64_t begin,
                                                                             int64_t end) {
    const float *sequence = (const float *)s->sequence, *values = (const float *)s->values;
    const __m512 behind = _mm512_set1_ps(NAN); /* is passed by nothing but nan from the right */
    int64_t apart = s->highest >> (NEAR - 1);  /* elements from one in the registers to the next */
    if (!apart) apart = 1;
    float near[2 * L];
    for (int64_t j = 0; j < 2 * L; j++)
        near[j] = (j + 1) * apart <= s->length ? sequence[(j + 1) * apart - 1] : NAN;
    const __m512 low = _mm512_loadu_ps(near), high = _mm512_loadu_ps(near + L);
    const __m512i length = _mm512_set1_epi32((int)s->length), one = _mm512_set1_epi32(1);
    const int right = s->right;
    for (int64_t i = begin; i < end; i += L) {
        __mmask16 in = (__mmask16)(end - i < L ? (1u << (end - i)) - 1 : 0xffff);
        __m512 x = _mm512_maskz_loadu_ps(in, values + i);
        __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
        __m512i place = _mm512_setzero_si512();
        int64_t bit = s->highest, step = bit / apart;
        for (; step; step /= 2, bit /= 2) { /* places count in `apart` */
            __m512i next = _mm512_add_epi32(place, _mm512_set1_epi32((int)step));
            __m512 y = _mm512_permutex2var_ps(low, _mm512_sub_epi32(next, one), high);
            __mmask16 passed = right
                ? _mm512_cmp_ps_mask(y, x, _CMP_LE_OQ) | nan
                : _mm512_cmp_ps_mask(y, x, _CMP_LT_OQ) | (nan & _mm512_cmp_ps_mask(y, y, _CMP_ORD_Q));
            place = _mm512_mask_mov_epi32(place, passed, next);
        }
        place = _mm512_mullo_epi32(place, _mm512_set1_epi32((int)apart));
        for (; bit; bit /= 2) {
            __m512i next = _mm512_add_epi32(place, _mm512_set1_epi32((int)bit));
            __mmask16 there = _mm512_cmple_epi32_mask(next, length);
            __m512 y = _mm512_mask_i32gather_ps(behind, there, _mm512_sub_epi32(next, one), sequence, 4);
            __mmask16 passed = right
                ? _mm512_cmp_ps_mask(y, x, _CMP_LE_OQ) | nan
                : _mm512_cmp_ps_mask(y, x, _CMP_LT_OQ) | (nan & _mm512_cmp_ps_mask(y, y, _CMP_ORD_Q));
            place = _mm512_mask_mov_epi32(place, passed, next);
        }
        place = _mm512_min_epi32(place, length);
        if (s->narrow) {
            _mm512_mask_storeu_epi32((int32_t *)s->to + i, in, place);
            continue;
        }
        int64_t *to = (int64_t *)s->to + i;
        _mm512_mask_storeu_epi64(to, (__mmask8)in, _mm512_cvtepi32_epi64(_mm512_castsi512_si256(place)));
        _mm512_mask_storeu_epi64(to + 8, (__mmask8)(in >> 8),
                                 _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(place, 1)));
    }
}

#define L64 8
#define NEAR64 4

/* The same for elements of eight bytes: half as many at once, and four bits in two registers. Behind the end
 * lies what is passed by nothing, or by what ends there all the same. */
#define SEARCH_WIDE(name, T, V, BEHIND, LOAD, ALL, KNOWN, PERMUTE, GATHER, PASSED)                        \
    __attribute__((target("avx512f,avx512vl,avx512dq"))) static void name(const Search *s, int64_t begin, \
                                                                          int64_t end) {                  \
        const T *sequence = (const T *)s->sequence, *values = (const T *)s->values;                       \
        const V behind = ALL(BEHIND);                                                                     \
        int64_t apart = s->highest >> (NEAR64 - 1);                                                       \
        if (!apart) apart = 1;                                                                            \
        T near[2 * L64];                                                                                  \
        for (int64_t j = 0; j < 2 * L64; j++)                                                             \
            near[j] = (j + 1) * apart <= s->length ? sequence[(j + 1) * apart - 1] : BEHIND;              \
        const V low = LOAD(0xff, near), high = LOAD(0xff, near + L64);                                    \
        const __m512i length = _mm512_set1_epi64(s->length), one = _mm512_set1_epi64(1);                  \
        const int right = s->right;                                                                       \
        for (int64_t i = begin; i < end; i += L64) {                                                      \
            __mmask8 in = (__mmask8)(end - i < L64 ? (1u << (end - i)) - 1 : 0xff);                       \
            V x = LOAD(in, values + i), y;                                                                \
            __mmask8 nan = KNOWN(x);                                                                      \
            __m512i place = _mm512_setzero_si512(), next;                                                 \
            int64_t bit = s->highest, step = bit / apart;                                                 \
            for (; step; step /= 2, bit /= 2) {                                                           \
                next = _mm512_add_epi64(place, _mm512_set1_epi64(step));                                  \
                y = PERMUTE(low, _mm512_sub_epi64(next, one), high);                                      \
                place = _mm512_mask_mov_epi64(place, PASSED(y, x), next);                                 \
            }                                                                                             \
            place = _mm512_mullo_epi64(place, _mm512_set1_epi64(apart));                                  \
            for (; bit; bit /= 2) {                                                                       \
                next = _mm512_add_epi64(place, _mm512_set1_epi64(bit));                                   \
                __mmask8 there = _mm512_cmple_epi64_mask(next, length);                                   \
                y = GATHER(behind, there, _mm512_sub_epi64(next, one), sequence, 8);                      \
                place = _mm512_mask_mov_epi64(place, PASSED(y, x), next);                                 \
            }                                                                                             \
            place = _mm512_min_epi64(place, length);                                                      \
            if (s->narrow) _mm512_mask_cvtepi64_storeu_epi32((int32_t *)s->to + i, in, place);            \
            else _mm512_mask_storeu_epi64((int64_t *)s->to + i, in, place);                               \
        }                                                                                                 \
    }
#define IS_NAN(x) _mm512_cmp_pd_mask(x, x, _CMP_UNORD_Q)
#define NO_NAN(x) 0
#define PASSED_F64(y, x)                                \
    (right ? _mm512_cmp_pd_mask(y, x, _CMP_LE_OQ) | nan \
           : _mm512_cmp_pd_mask(y, x, _CMP_LT_OQ) | (nan & _mm512_cmp_pd_mask(y, y, _CMP_ORD_Q)))
#define PASSED_I64(y, x) (right ? _mm512_cmple_epi64_mask(y, x) | nan : _mm512_cmplt_epi64_mask(y, x))
SEARCH_WIDE(search_wide_f64, double, __m512d, NAN, _mm512_maskz_loadu_pd, _mm512_set1_pd, IS_NAN,
            _mm512_permutex2var_pd, _mm512_mask_i64gather_pd, PASSED_F64)
SEARCH_WIDE(search_wide_i64, int64_t, __m512i, INT64_MAX, _mm512_maskz_loadu_epi64, _mm512_set1_epi64, NO_NAN,
            _mm512_permutex2var_epi64, _mm512_mask_i64gather_epi64, PASSED_I64)
#endif

static void search(void *context, int64_t begin, int64_t end) {
    const Search *s = context;
#if defined(__x86_64__)
    if (!s->row && s->length && s->length < 1 << 30 && flb_cpu_level() == 2) {
        (s->kind == ELEMENT_F32       ? search_wide
             : s->kind == ELEMENT_F64 ? search_wide_f64
                                      : search_wide_i64)(s, begin, end);
        return;
    }
#endif
    (s->kind == ELEMENT_F32 ? search_f32 : s->kind == ELEMENT_F64 ? search_f64 : search_i64)(s, begin, end);
}

FLB_KERNEL(search) {
    const View *x = &v->values;
    Search s = {.sequence = v->sequence.ptr,
                .values = x->ptr,
                .to = v->places.ptr,
                .kind = (int)n->element,
                .right = n->right != 0,
                .narrow = n->narrow != 0};
    int64_t total = 1;
    for (int d = 0; d < x->ndim; d++) total *= x->shape[d];
    s.length = v->sequence.shape[v->sequence.ndim - 1];
    s.row = v->sequence.ndim > 1 ? x->shape[x->ndim - 1] : 0;
    if (s.length)
        for (s.highest = 1; s.highest <= s.length / 2;) s.highest *= 2;
    if (total) flb_parallel(search, &s, total, 2000);
    return 0;
}
