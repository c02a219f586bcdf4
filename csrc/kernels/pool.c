/* Maxima over windows of two dimensions with the places of the winners, and the adjoint.
 *
 * Of equal elements the first one wins, and the first nan over all. What lies outside of the plane is in no
 * window. Planes go over the pool. */
#include "pool.h"
#include "runtime/graph.h"
#include "runtime/levels.h"
#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define WIDE 256 /* columns of a row that are made together */

#define ROW(T, I, step)                                           \
    for (int64_t i = lo; i < hi; i++) {                           \
        T v = row[i * (step)], b = best[i];                       \
        int take = (v > b) | (at[i] < 0) | ((v != v) & (b == b)); \
        best[i] = take ? v : b;                                   \
        at[i] = take ? (I)(place + i * (step)) : at[i];           \
    }

#define POOL(T, I, NAME)                                                                              \
    BY_LEVEL(static void, forward_##NAME, (void *context, int64_t begin, int64_t end),                \
             (context, begin, end)) {                                                                 \
        const FlbPool *p = context;                                                                   \
        int64_t s = p->stride[1], top, bottom, lo, hi;                                                \
        T best[WIDE];                                                                                 \
        I at[WIDE];                                                                                   \
        for (int64_t n = begin; n < end; n++) {                                                       \
            const T *plane = (const T *)p->from + n * p->in[0] * p->in[1];                            \
            T *to = (T *)p->to + n * p->out[0] * p->out[1];                                           \
            int64_t *places = (int64_t *)p->places + n * p->out[0] * p->out[1];                       \
            for (int64_t r = 0; r < p->out[0]; r++)                                                   \
                for (int64_t c0 = 0; c0 < p->out[1]; c0 += WIDE) {                                    \
                    int64_t width = p->out[1] - c0 < WIDE ? p->out[1] - c0 : WIDE;                    \
                    for (int64_t i = 0; i < width; i++) best[i] = -(T)INFINITY, at[i] = -1;           \
                    int64_t r0 = flb_pool_taps(p, 0, r, &top, &bottom);                               \
                    for (int64_t kh = top; kh < bottom; kh++)                                         \
                        for (int64_t kw = 0; kw < p->kernel[1]; kw++) {                               \
                            int64_t place =                                                           \
                                (r0 + kh) * p->in[1] + flb_pool_columns(p, c0, width, kw, &lo, &hi);  \
                            const T *row = plane + place;                                             \
                            if (s == 1) {                                                             \
                                ROW(T, I, 1)                                                          \
                            } else if (s == 2) {                                                      \
                                ROW(T, I, 2)                                                          \
                            } else {                                                                  \
                                ROW(T, I, s)                                                          \
                            }                                                                         \
                        }                                                                             \
                    for (int64_t i = 0; i < width; i++)                                               \
                        to[r * p->out[1] + c0 + i] = best[i], places[r * p->out[1] + c0 + i] = at[i]; \
                }                                                                                     \
        }                                                                                             \
    }                                                                                                 \
    static void backward_##NAME(void *context, int64_t begin, int64_t end) {                          \
        FlbPool *p = context;                                                                         \
        int64_t count = p->out[0] * p->out[1], plane = p->in[0] * p->in[1];                           \
        for (int64_t n = begin; n < end; n++) {                                                       \
            const T *from = (const T *)p->from + n * count;                                           \
            const int64_t *where = (const int64_t *)p->where + n * count;                             \
            T *to = (T *)p->to + n * plane;                                                           \
            memset(to, 0, plane * sizeof(T));                                                         \
            for (int64_t i = 0; i < count; i++) {                                                     \
                if (where[i] < 0 || where[i] >= plane) {                                              \
                    p->value = where[i], p->bad = 1;                                                  \
                    break;                                                                            \
                }                                                                                     \
                to[where[i]] += from[i];                                                              \
            }                                                                                         \
        }                                                                                             \
    }
POOL(float, int64_t, f32)
POOL(double, int64_t, f64)

#if defined(__x86_64__)
/* float32 with masked vectors of 16 columns: rows are short. */
__attribute__((target("avx512f,avx512vl,avx512dq,bmi2"))) static void
forward_wide(void *context, int64_t begin, int64_t end) {
    const FlbPool *p = context;
    int64_t s = p->stride[1];
    const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i count = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                  steps = _mm512_mullo_epi32(count, _mm512_set1_epi32((int)s));
    for (int64_t n = begin; n < end; n++) {
        const float *plane = (const float *)p->from + n * p->in[0] * p->in[1];
        float *to = (float *)p->to + n * p->out[0] * p->out[1];
        int64_t *places = (int64_t *)p->places + n * p->out[0] * p->out[1];
        for (int64_t r = 0; r < p->out[0]; r++)
            for (int64_t c = 0; c < p->out[1]; c += 16) {
                int64_t left = p->out[1] - c < 16 ? p->out[1] - c : 16;
                __m512 best = _mm512_set1_ps(-INFINITY);
                __m512i at = _mm512_set1_epi32(-1);
                for (int64_t kh = 0; kh < p->kernel[0]; kh++) {
                    int64_t ih = r * p->stride[0] - p->padding[0] + kh;
                    if (ih < 0 || ih >= p->in[0]) continue;
                    for (int64_t kw = 0; kw < p->kernel[1]; kw++) {
                        int64_t first = c * s - p->padding[1] + kw;
                        __m512i column = _mm512_add_epi32(_mm512_set1_epi32((int)first), steps);
                        __mmask16 in = _mm512_cmplt_epu32_mask(column, _mm512_set1_epi32((int)p->in[1])) &
                            ((1u << left) - 1);
                        if (!in) continue;
                        const float *row = plane + ih * p->in[1] + first;
                        __m512 v;
                        if (s == 1) v = _mm512_maskz_loadu_ps(in, row);
                        else if (s == 2) { /* every other one of 32, those before the last that is inside */
                            uint32_t both = _pdep_u32(in, 0x55555555u);
                            __m512 a = _mm512_maskz_loadu_ps((__mmask16)both, row),
                                   b = _mm512_maskz_loadu_ps((__mmask16)(both >> 16), row + 16);
                            v = _mm512_permutex2var_ps(a, even, b);
                        } else v = _mm512_mask_i32gather_ps(best, in, steps, row, 4);
                        __mmask16 take = _mm512_cmp_ps_mask(v, best, _CMP_GT_OQ) |
                            _mm512_cmplt_epi32_mask(at, _mm512_setzero_si512()) |
                            (_mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q) &
                             _mm512_cmp_ps_mask(best, best, _CMP_ORD_Q));
                        take &= in;
                        best = _mm512_mask_mov_ps(best, take, v);
                        at = _mm512_mask_add_epi32(at, take, column, _mm512_set1_epi32((int)(ih * p->in[1])));
                    }
                }
                __mmask16 out = (1u << left) - 1;
                _mm512_mask_storeu_ps(to + r * p->out[1] + c, out, best);
                _mm512_mask_storeu_epi64(places + r * p->out[1] + c, (__mmask8)out,
                                         _mm512_cvtepi32_epi64(_mm512_castsi512_si256(at)));
                _mm512_mask_storeu_epi64(places + r * p->out[1] + c + 8, (__mmask8)(out >> 8),
                                         _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(at, 1)));
            }
    }
}
#endif

/* Rows, columns and channels of images with their channels last. */
static int64_t of_images(FlbPool *p, const View *in, const View *out) {
    p->channels = in->shape[1];
    for (int d = 0; d < 2; d++) p->in[d] = in->shape[2 + d], p->out[d] = out->shape[2 + d];
    return in->shape[0];
}

static int64_t planes_of(const View *v) {
    int64_t planes = 1;
    for (int d = 0; d < v->ndim - 2; d++) planes *= v->shape[d];
    return planes;
}

FLB_KERNEL(max_pool) {
    const int64_t *in = v->source.shape + v->source.ndim - 2, *out = v->maxima.shape + v->maxima.ndim - 2;
    FlbPool p = {.from = v->source.ptr, .to = v->maxima.ptr, .places = v->places.ptr};
    for (int d = 0; d < 2; d++) {
        p.in[d] = in[d], p.out[d] = out[d];
        p.kernel[d] = n->kernel[d], p.stride[d] = n->stride[d], p.padding[d] = n->padding[d];
    }
    if (n->last) {
        flb_pool_last(&p, n->f64 != 0, of_images(&p, &v->source, &v->maxima));
        return 0;
    }
    int64_t work = p.out[0] * p.out[1] * p.kernel[0] * p.kernel[1];
    FlbRangeFn fn = n->f64 ? forward_f64 : forward_f32;
#if defined(__x86_64__)
    if (!n->f64 && flb_cpu_level() == 2) fn = forward_wide;
#endif
    flb_parallel(fn, &p, planes_of(&v->source), 1 + 20000 / (work + 1));
    return 0;
}

FLB_KERNEL(max_pool_backward) {
    const int64_t *out = v->cotangent.shape + v->cotangent.ndim - 2, *in = v->made.shape + v->made.ndim - 2;
    FlbPool p = {.from = v->cotangent.ptr, .where = v->places.ptr, .to = v->made.ptr};
    for (int d = 0; d < 2; d++) p.out[d] = out[d], p.in[d] = in[d];
    if (n->last) flb_pool_last_backward(&p, n->f64 != 0, of_images(&p, &v->made, &v->cotangent));
    else
        flb_parallel(n->f64 ? backward_f64 : backward_f32, &p, planes_of(&v->cotangent),
                     1 + 20000 / (p.in[0] * p.in[1] + 1));
    if (p.bad) status[0] = n->outside + 1, status[1] = p.value, status[2] = p.in[0] * p.in[1];
    return 0;
}
