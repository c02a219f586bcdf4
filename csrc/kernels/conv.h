/* What a convolution is, shared by conv.c (any), and for float32 conv_shift.c (one or two dimensions),
 * conv_depthwise.c and winograd.c (3 by 3 with stride one). */
#ifndef FLAMBEAU_CONV_H
#define FLAMBEAU_CONV_H
#include "kernels/conv_planes.h"
#include "runtime/graph.h"

typedef struct {
    int64_t images, channels, outputs, groups;
    int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
    int xlast, wlast,
        ylast; /* operands whose channels lie innermost (channels last), instead of in C order */
} Conv;

/* What the files of register kernels share. */
#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((target("avx512f,avx512vl,avx512dq,fma"), optimize("O3", "fp-contract=fast")))
#else
#define WIDE __attribute__((target("avx512f,avx512vl,avx512dq,fma")))
#endif
typedef float V __attribute__((vector_size(64), aligned(4), may_alias));
#endif

/* Whether winograd() makes this, and faster. Depends on sizes and the CPU only. */
int flb_winograd_fits(const Conv *c, int what);
int flb_winograd_can(const Conv *c, int what); /* whether it makes this at all */
/* x, w, y: input, weight, output, float32, in either order; the one that `what` makes is written. bias
 * (CONV_FORWARD) may be NULL. planes (CONV_FORWARD and CONV_INPUT) may be NULL. -1: no memory; 1: some result
 * isn't finite, so none of them counts. */
int flb_winograd(const Conv *c, int what, float *x, float *w, float *y, const float *bias, Planes *planes);
/* The same for one or two dimensions in C order as products of shifted rows (conv_shift.c). */
int flb_shift_fits(const Conv *c, int what);
int flb_shift_can(const Conv *c, int what);
/* Its time beside that of the same multiplications in whole tiles; infinity where it can't make this. */
double flb_shift_waste(const Conv *c, int what);
int flb_shift(const Conv *c, int what, float *x, float *w, float *y, const float *bias, Planes *planes);
/* Where each channel is convolved by itself (conv_depthwise.c), images in either order; any result counts. */
int flb_depthwise_fits(const Conv *c);
int flb_depthwise(const Conv *c, int what, float *x, float *w, float *y, const float *bias, Planes *planes);
/* One tap, stride one, one group (conv_last.c), float32 or float64, images in either order. -1: no memory. */
int flb_point_can(const Conv *c);
int flb_point(const Conv *c, int what, int f64, char *x, char *w, char *y, const char *bias, Planes *planes);
/* float32 of images whose channels lie innermost, by pointers to pixels (conv_pixels.c), the weight in either
 * order. 1: a weight isn't finite, and nothing was made. */
int flb_pixels_can(const Conv *c, int what);
int flb_pixels_fits(const Conv *c, int what);
/* Whether the result, or the cotangents of the weight's gradient, may be in C order too. */
int flb_pixels_in_planes(const Conv *c, int what);
int flb_pixels(const Conv *c, int what, float *x, float *w, float *y, const float *bias);
/* to[i][b][a] = from[i][a][b] for `count` matrices of rows by columns of elements of 4 or 8 bytes. */
void flb_turn(const void *from, void *to, int64_t count, int64_t rows, int64_t columns, int64_t item);
#endif
