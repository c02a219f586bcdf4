/* A pooling over windows of two dimensions, as pool.c (planes) and pool_last.c (channels side by side) make it. */
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

/* Over images with their channels last; `p->bad` is set for a place outside of its plane. */
void flb_pool_last(FlbPool *p, int f64, int64_t images);
void flb_pool_last_backward(FlbPool *p, int f64, int64_t images);
#endif
