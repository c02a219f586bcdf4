/* What a convolution is, shared by conv.c (any), and for float32 conv_shift.c (one or two dimensions),
 * conv_depthwise.c and winograd.c (3 by 3 with stride one). */
#ifndef FLAMBEAU_CONV_H
#define FLAMBEAU_CONV_H
#include "kernels/conv_planes.h"
#include "runtime/cpu_level.h"
#include "runtime/graph.h"

typedef struct {
    int64_t images, channels, outputs, groups;
    int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
    int xlast, wlast,
        ylast; /* operands whose channels lie innermost (channels last), instead of in C order */
} Conv;

/* What the files of register kernels share. They are for vectors of 64 bytes (AVX-512); a file that defines
 * VECTOR as 32 and includes one of them makes it for AVX2 as well. */
#ifndef VECTOR
#define VECTOR 64
#endif
#if VECTOR == 64
#define LEVEL 2 /* of the CPU, at least */
#define INSTRUCTIONS target("avx512f,avx512vl,avx512dq,fma")
#define SIZED(name) name##_64
#else
#define LEVEL 1
#define INSTRUCTIONS target("avx2,fma")
#define SIZED(name) name##_32
#endif
#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((INSTRUCTIONS, optimize("O3", "fp-contract=fast")))
#else
#define WIDE __attribute__((INSTRUCTIONS))
#endif
typedef float V __attribute__((vector_size(VECTOR), aligned(4), may_alias));
#endif
/* A function of a file that is made for both sizes, as SIZED(name): the one that the CPU has. */
#define BY_VECTOR(name, params, args) \
    int name##_64 params;             \
    int name##_32 params;             \
    static inline int name params { return flb_cpu_level() == 2 ? name##_64 args : name##_32 args; }

/* Whether an image, padded, has not many more places than there are to read and to make: a stride or a
 * dilation may be any number where there is padding enough. Ways that lay padded images out are for these. */
int flb_padded_fits(const Conv *c);
/* Whether the strides cut an image into `most` phases or fewer. */
int flb_phases_fit(const Conv *c, int most);
/* Whether winograd() makes this, and faster. Depends on sizes and the CPU only. */
BY_VECTOR(flb_winograd_fits, (const Conv *c, int what), (c, what))
BY_VECTOR(flb_winograd_can, (const Conv *c, int what), (c, what)) /* whether it makes this at all */
/* x, w, y: input, weight, output, float32, in either order; the one that `what` makes is written. bias
 * (CONV_FORWARD) may be NULL. planes (CONV_FORWARD and CONV_INPUT) may be NULL. -1: no memory; 1: some result
 * isn't finite, so none of them counts. */
BY_VECTOR(flb_winograd,
          (const Conv *c, int what, float *x, float *w, float *y, const float *bias, Planes *planes),
          (c, what, x, w, y, bias, planes))
/* Winograd for one and three dimensions (winograd_volume.c). */
BY_VECTOR(flb_volume_fits, (const Conv *c, int what), (c, what))
BY_VECTOR(flb_volume_can, (const Conv *c, int what), (c, what))
BY_VECTOR(flb_volume, (const Conv *c, int what, float *x, float *w, float *y, const float *bias),
          (c, what, x, w, y, bias))
/* Winograd for two dimensions of 3 or 4 taps with stride two (winograd_halves.c). */
BY_VECTOR(flb_winograd_halves_fits, (const Conv *c, int what), (c, what))
BY_VECTOR(flb_winograd_halves_can, (const Conv *c, int what), (c, what))
BY_VECTOR(flb_winograd_halves, (const Conv *c, int what, float *x, float *w, float *y, const float *bias),
          (c, what, x, w, y, bias))
/* Winograd along rows alone (winograd_rows.c), forward: what neither of the others makes. */
BY_VECTOR(flb_winograd_rows_fits, (const Conv *c, int what), (c, what))
BY_VECTOR(flb_winograd_rows_can, (const Conv *c, int what), (c, what))
BY_VECTOR(flb_winograd_rows, (const Conv *c, float *x, float *w, float *y, const float *bias, Planes *planes),
          (c, x, w, y, bias, planes))
/* As flb_winograd, for one or two dimensions in C order as products of shifted rows (conv_shift.c). */
int flb_shift_fits(const Conv *c, int what);
int flb_shift_can(const Conv *c, int what);
/* Its time beside that of the same multiplications in whole tiles; infinity where it can't make this. */
double flb_shift_waste(const Conv *c, int what);
int flb_shift(const Conv *c, int what, float *x, float *w, float *y, const float *bias, Planes *planes);
/* Where each channel is convolved by itself (conv_depthwise.c), images in either order; any result counts. */
BY_VECTOR(flb_depthwise_fits, (const Conv *c), (c))
BY_VECTOR(flb_depthwise,
          (const Conv *c, int what, float *x, float *w, float *y, const float *bias, Planes *planes),
          (c, what, x, w, y, bias, planes))
/* One tap, stride one, one group (conv_last.c), float32 or float64, images in either order. -1: no memory. */
int flb_point_can(const Conv *c);
int flb_point(const Conv *c, int what, int f64, char *x, char *w, char *y, const char *bias, Planes *planes);
/* float32 of images whose channels lie innermost, by pointers to pixels (conv_pixels.c), the weight in either
 * order. 1: a weight isn't finite, and nothing was made. */
BY_VECTOR(flb_pixels_can, (const Conv *c, int what), (c, what))
BY_VECTOR(flb_pixels_fits, (const Conv *c, int what), (c, what))
/* Whether the result, or the cotangents of the weight's gradient, may be in C order too. */
int flb_pixels_in_planes(const Conv *c, int what);
BY_VECTOR(flb_pixels, (const Conv *c, int what, float *x, float *w, float *y, const float *bias),
          (c, what, x, w, y, bias))
/* conv_turn.c: to[b * rows + a] = from[a * columns + b] for rows [r0, r1) of a matrix of rows by columns,
 * where the CPU has vectors. */
BY_VECTOR(flb_turn_floats,
          (const float *from, float *to, int64_t rows, int64_t columns, int64_t r0, int64_t r1),
          (from, to, rows, columns, r0, r1))
/* to[i][b][a] = from[i][a][b] for `count` matrices of rows by columns of elements of 4 or 8 bytes. */
void flb_turn(const void *from, void *to, int64_t count, int64_t rows, int64_t columns, int64_t item);
#endif
