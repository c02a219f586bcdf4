/* Plans of Fourier transforms (fft_plan.c), as fft.c runs them. */
#ifndef FLAMBEAU_FFT_H
#define FLAMBEAU_FFT_H
#include "runtime/graph.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FFT_LEVELS 3 /* kernels for AVX-512, for AVX2 and for what every x86-64 has */
#else
#define FFT_LEVELS 1
#endif

typedef struct {
    int64_t n;
    int count;
    uint8_t radix[64];
    void *roots[64]; /* of each stage: (re, im) of w^(p k), w the root of order radix m, for p < m and 0 < k <
                        radix */
} Stages;

/* What transforms of one length need, in the type of their elements. */
typedef struct {
    int64_t n, used, bytes; /* the length; when it was last asked for; of its tables */
    int f64, real, users;
    Stages whole;   /* n points, n / 2 for real lines of even length */
    Stages inner;   /* of a line split over the lanes; inner.n 0: it doesn't split */
    void *crossing; /* what comes before: of blocks of `lanes` points b, for each output c, vectors (re, im)
                       of w^(b c) */
    void *halves;   /* exp(-2 pi i k / n), vectors of (re, im), for real lines of even length */
} Plan;

int flb_fft_lanes(int f64); /* of a vector */

/* The plan for lines of n complex or real points, kept; the caller releases it. NULL: no memory, or
 * (*fits is 0) n has a prime factor above 13. */
Plan *flb_take_plan(int64_t n, int f64, int real, int *fits);
void flb_release_plan(Plan *plan);
#endif
