/* A pooling over windows of two dimensions, as pool.c (planes) and pool_last.c (channels side by side) make
 * it. */
#ifndef FLAMBEAU_POOL_H
#define FLAMBEAU_POOL_H
#include <stdint.h>

typedef struct {
    const char *from, *where; /* backward: the cotangent and the places */
    char *to, *places;
    int64_t in[2], out[2], kernel[2], stride[2], padding[2];
    int64_t channels;   /* of images whose channels lie side by side */
    int64_t bad, value; /* a place outside of its plane */
} FlbPool;

/* The taps [*lo, *hi) of window `o` along dimension `d` that lie in the plane; where the window begins. */
static inline int64_t flb_pool_taps(const FlbPool *p, int d, int64_t o, int64_t *lo, int64_t *hi) {
    int64_t first = o * p->stride[d] - p->padding[d], left = p->in[d] - first;
    *lo = first < 0 ? -first : 0;
    *hi = left < p->kernel[d] ? left : p->kernel[d];
    return first;
}

/* The windows [*lo, *hi) of `width` from c0 on whose tap `kw` lies in the row; where the first one's tap is.
 */
static inline int64_t flb_pool_columns(const FlbPool *p, int64_t c0, int64_t width, int64_t kw, int64_t *lo,
                                       int64_t *hi) {
    int64_t s = p->stride[1], first = c0 * s - p->padding[1] + kw, last = p->in[1] - 1 - first;
    *lo = first >= 0 ? 0 : (-first + s - 1) / s;
    *hi = last < 0 ? 0 : last / s + 1;
    if (*hi > width) *hi = width;
    return first;
}

/* Over images with their channels last; `p->bad` is set for a place outside of its plane. */
void flb_pool_last(FlbPool *p, int f64, int64_t images);
void flb_pool_last_backward(FlbPool *p, int f64, int64_t images);
#endif
