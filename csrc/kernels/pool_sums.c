/* Sums over windows of two dimensions, and the adjoint: rows of planes in C order, or images whose channels
 * lie side by side, where the channels of a pixel are the lanes. What lies outside of the plane adds nothing.
 * Terms are added tap by tap, so that the number of threads changes no bit. */
#include "pool.h"
#include "runtime/graph.h"
#include "runtime/levels.h"
#include <string.h>

#define WIDE 256 /* columns of a row that are made together */

#define SUMS(T, NAME)                                                                                       \
    BY_LEVEL(static void, plane_sums_##NAME, (const FlbPool *p, const T *plane, T *to), (p, plane, to)) {   \
        int64_t s = p->stride[1], top, bottom, lo, hi;                                                      \
        for (int64_t r = 0; r < p->out[0]; r++)                                                             \
            for (int64_t c0 = 0; c0 < p->out[1]; c0 += WIDE) {                                              \
                T sums[WIDE];                                                                               \
                int64_t width = p->out[1] - c0 < WIDE ? p->out[1] - c0 : WIDE;                              \
                for (int64_t i = 0; i < width; i++) sums[i] = 0;                                            \
                int64_t r0 = flb_pool_taps(p, 0, r, &top, &bottom);                                         \
                for (int64_t kh = top; kh < bottom; kh++)                                                   \
                    for (int64_t kw = 0; kw < p->kernel[1]; kw++) {                                         \
                        const T *row = plane + (r0 + kh) * p->in[1];                                        \
                        row += flb_pool_columns(p, c0, width, kw, &lo, &hi);                                \
                        if (s == 1)                                                                         \
                            for (int64_t i = lo; i < hi; i++) sums[i] += row[i];                            \
                        else if (s == 2)                                                                    \
                            for (int64_t i = lo; i < hi; i++) sums[i] += row[2 * i];                        \
                        else                                                                                \
                            for (int64_t i = lo; i < hi; i++) sums[i] += row[s * i];                        \
                    }                                                                                       \
                memcpy(to + r * p->out[1] + c0, sums, width * sizeof(T));                                   \
            }                                                                                               \
    }                                                                                                       \
    BY_LEVEL(static void, plane_adjoint_##NAME, (const FlbPool *p, const T *from, T *plane),                \
             (p, from, plane)) {                                                                            \
        int64_t s = p->stride[1], top, bottom, lo, hi;                                                      \
        memset(plane, 0, p->in[0] * p->in[1] * sizeof(T));                                                  \
        for (int64_t r = 0; r < p->out[0]; r++, from += p->out[1]) {                                        \
            int64_t r0 = flb_pool_taps(p, 0, r, &top, &bottom);                                             \
            for (int64_t kh = top; kh < bottom; kh++)                                                       \
                for (int64_t kw = p->kernel[1]; kw-- > 0;) { /* windows in turn, as below */                \
                    T *row = plane + (r0 + kh) * p->in[1];                                                  \
                    row += flb_pool_columns(p, 0, p->out[1], kw, &lo, &hi);                                 \
                    if (s == 1)                                                                             \
                        for (int64_t i = lo; i < hi; i++) row[i] += from[i];                                \
                    else                                                                                    \
                        for (int64_t i = lo; i < hi; i++) row[s * i] += from[i];                            \
                }                                                                                           \
        }                                                                                                   \
    }                                                                                                       \
    /* One row of pixels of an image: `adjoint` adds them to the windows' pixels, else those to them. */    \
    BY_LEVEL(static void, pixels_##NAME,                                                                    \
             (const FlbPool *p, T *image, T *row, int64_t r, int64_t c0, int64_t width, int adjoint),       \
             (p, image, row, r, c0, width, adjoint)) {                                                      \
        int64_t top, bottom, left, right, r0 = flb_pool_taps(p, 0, r, &top, &bottom);                       \
        for (int64_t c = 0; c < p->out[1]; c++) {                                                           \
            int64_t w0 = flb_pool_taps(p, 1, c, &left, &right);                                             \
            T *at = row + c * p->channels + c0;                                                             \
            if (!adjoint)                                                                                   \
                for (int64_t i = 0; i < width; i++) at[i] = 0;                                              \
            for (int64_t kh = top; kh < bottom; kh++)                                                       \
                for (int64_t kw = left; kw < right; kw++) {                                                 \
                    int64_t place = (r0 + kh) * p->in[1] + w0 + kw;                                         \
                    T *restrict x = image + place * p->channels + c0, *restrict y = at;                     \
                    if (adjoint)                                                                            \
                        for (int64_t i = 0; i < width; i++) x[i] += y[i];                                   \
                    else                                                                                    \
                        for (int64_t i = 0; i < width; i++) y[i] += x[i];                                   \
                }                                                                                           \
        }                                                                                                   \
    }                                                                                                       \
    static void planes_##NAME(void *context, int64_t begin, int64_t end) {                                  \
        const FlbPool *p = context;                                                                         \
        int64_t in = p->in[0] * p->in[1], out = p->out[0] * p->out[1];                                      \
        for (int64_t n = begin; n < end; n++)                                                               \
            plane_sums_##NAME(p, (const T *)p->from + n * in, (T *)p->to + n * out);                        \
    }                                                                                                       \
    static void planes_back_##NAME(void *context, int64_t begin, int64_t end) {                             \
        const FlbPool *p = context;                                                                         \
        int64_t in = p->in[0] * p->in[1], out = p->out[0] * p->out[1];                                      \
        for (int64_t n = begin; n < end; n++)                                                               \
            plane_adjoint_##NAME(p, (const T *)p->from + n * out, (T *)p->to + n * in);                     \
    }                                                                                                       \
    static void last_##NAME(void *context, int64_t begin, int64_t end) {                                    \
        const FlbPool *p = context;                                                                         \
        for (int64_t k = begin; k < end; k++)                                                               \
            pixels_##NAME(p, (T *)p->from + k / p->out[0] * p->in[0] * p->in[1] * p->channels,              \
                          (T *)p->to + k * p->out[1] * p->channels, k % p->out[0], 0, p->channels, 0);      \
    }                                                                                                       \
    static void last_back_##NAME(void *context, int64_t begin, int64_t end) {                               \
        const FlbPool *p = context;                                                                         \
        int64_t blocks = (p->channels + WIDE - 1) / WIDE, in = p->in[0] * p->in[1], channels = p->channels; \
        for (int64_t k = begin; k < end; k++) {                                                             \
            int64_t c0 = k % blocks * WIDE, left = channels - c0, width = left < WIDE ? left : WIDE;        \
            T *image = (T *)p->to + k / blocks * in * channels;                                             \
            T *from = (T *)p->from + k / blocks * p->out[0] * p->out[1] * channels;                         \
            for (int64_t i = 0; i < in; i++) memset(image + i * channels + c0, 0, width * sizeof(T));       \
            for (int64_t r = 0; r < p->out[0]; r++)                                                         \
                pixels_##NAME(p, image, from + r * p->out[1] * channels, r, c0, width, 1);                  \
        }                                                                                                   \
    }
SUMS(float, f32)
SUMS(double, f64)

static FlbPool described(const View *in, const View *out, const int64_t *kernel, const int64_t *stride,
                         const int64_t *padding) {
    FlbPool p = {.channels = in->ndim > 2 ? in->shape[in->ndim - 3] : 1};
    for (int d = 0; d < 2; d++) {
        p.in[d] = in->shape[in->ndim - 2 + d], p.out[d] = out->shape[out->ndim - 2 + d];
        p.kernel[d] = kernel[d], p.stride[d] = stride[d], p.padding[d] = padding[d];
    }
    return p;
}

static int64_t planes_of(const View *v) {
    int64_t planes = 1;
    for (int d = 0; d < v->ndim - 2; d++) planes *= v->shape[d];
    return planes;
}

FLB_KERNEL(window_sums) {
    FlbPool p = described(&v->source, &v->made, n->kernel, n->stride, n->padding);
    p.from = v->source.ptr, p.to = v->made.ptr;
    int64_t work = p.out[1] * p.kernel[0] * p.kernel[1];
    if (n->last)
        flb_parallel(n->f64 ? last_f64 : last_f32, &p, v->source.shape[0] * p.out[0],
                     1 + 40000 / (work * p.channels + 1));
    else
        flb_parallel(n->f64 ? planes_f64 : planes_f32, &p, planes_of(&v->source),
                     1 + 20000 / (work * p.out[0] + 1));
    return 0;
}

FLB_KERNEL(window_sums_backward) {
    FlbPool p = described(&v->made, &v->cotangent, n->kernel, n->stride, n->padding);
    p.from = v->cotangent.ptr, p.to = v->made.ptr;
    int64_t work = p.out[0] * p.out[1] * p.kernel[0] * p.kernel[1] + p.in[0] * p.in[1];
    if (n->last)
        flb_parallel(n->f64 ? last_back_f64 : last_back_f32, &p,
                     v->made.shape[0] * ((p.channels + WIDE - 1) / WIDE), 1 + 20000 / (work * WIDE + 1));
    else
        flb_parallel(n->f64 ? planes_back_f64 : planes_back_f32, &p, planes_of(&v->made),
                     1 + 20000 / (work + 1));
    return 0;
}
