/* Discrete Fourier transforms along dimensions of an array of float32 or float64 numbers, of lengths without
 * a prime factor above 13.
 *
 * A line of n points is transformed by the stages of Stockham's algorithm, which leave the result in order
 * (W. T. Cochran et al., "What is the fast Fourier transform?", 1967; C. Van Loan, "Computational frameworks
 * for the fast Fourier transform", 1992, 1.7), of radix 8 and 4 and of the odd primes. Vectors hold a point
 * of as many lines as they have lanes, so that no stage shuffles; lines that lie along memory are transposed
 * on the way in and out. Where a line is long enough it is split over the lanes itself (D. H. Bailey, "FFTs
 * in external or hierarchical memory", 1990) and stays in the first-level cache. Real lines of even length
 * are complex ones of half the length (J. W. Cooley et al., "The fast Fourier transform algorithm", 1970).
 * Inverse transforms exchange real and imaginary parts on the way in and out. Roots of unity are computed in
 * long double. Blocks of lines go over the pool. */
#include "kernels/fft.h"
#include <stdlib.h>
#include <string.h>

#define MOST_DIMS 64
#define MOST_LANES 16
#define GRAIN 10000 /* points that are worth a thread */
#define FEW 128     /* points of a block that are worked on in memory of the stack */

typedef struct {
    const Plan *plan;
    int kind, single, ndim; /* single: a line at a time; ndim: dimensions of the lines, the innermost first */
    double scale;
    int64_t lines, shape[MOST_DIMS], strides[2][MOST_DIMS], step[2];
    char *ptr[2];
    int failed;
} Job;

/* The lines of a block, as they are read or written. A block that isn't full repeats its first line. */
typedef struct {
    char *lines[MOST_LANES];
    int64_t step; /* bytes between points */
    int pairs, packed,
        adjacent; /* pairs: the points are complex; packed: they lie side by side; adjacent: lines do */
} Side;

typedef struct {
    int64_t at[MOST_DIMS];
    char *ptr[2];
} Cursor;

static void go_to(const Job *job, int64_t line, Cursor *c) {
    c->ptr[0] = job->ptr[0], c->ptr[1] = job->ptr[1];
    for (int d = 0; d < job->ndim; d++) {
        c->at[d] = line % job->shape[d], line /= job->shape[d];
        for (int s = 0; s < 2; s++) c->ptr[s] += c->at[d] * job->strides[s][d];
    }
}

static inline void advance(const Job *job, Cursor *c) {
    for (int d = 0; d < job->ndim; d++) {
        for (int s = 0; s < 2; s++) c->ptr[s] += job->strides[s][d];
        if (++c->at[d] < job->shape[d]) return;
        for (int s = 0; s < 2; s++) c->ptr[s] -= job->shape[d] * job->strides[s][d];
        c->at[d] = 0;
    }
}

static void open_sides(const Job *job, Side *sides, int64_t item) {
    for (int s = 0; s < 2; s++) {
        sides[s].pairs = s ? job->kind != TRANSFORM_TO_REAL
                           : job->kind != TRANSFORM_FROM_REAL && job->kind != TRANSFORM_FROM_REAL_WHOLE;
        sides[s].step = job->step[s];
        sides[s].packed = job->step[s] == item << sides[s].pairs;
    }
}

/* The next lines of at most `lanes`, of which `left` remain. */
static inline void next_lines(const Job *job, Cursor *c, int64_t left, int lanes, Side *sides, int64_t item) {
    for (int l = 0; l < lanes; l++) {
        for (int s = 0; s < 2; s++) sides[s].lines[l] = l < left ? c->ptr[s] : sides[s].lines[0];
        if (l < left) advance(job, c);
    }
    for (int s = 0; s < 2; s++) {
        sides[s].adjacent = 1;
        for (int l = 1; l < lanes; l++)
            sides[s].adjacent &= sides[s].lines[l] - sides[s].lines[0] == (l * item) << sides[s].pairs;
    }
}

/* cos and sin of 2 pi k / R, in the order of k. */
static const long double cosines3[] = {1, -0.5L, -0.5L};
static const long double sines3[] = {0, 0.866025403784438646764L, -0.866025403784438646764L};
static const long double cosines5[] = {1, 0.309016994374947424102L, -0.809016994374947424102L,
                                       -0.809016994374947424102L, 0.309016994374947424102L};
static const long double sines5[] = {0, 0.951056516295153572116L, 0.587785252292473129169L,
                                     -0.587785252292473129169L, -0.951056516295153572116L};
static const long double cosines7[] = {1,
                                       0.623489801858733530525L,
                                       -0.222520933956314404289L,
                                       -0.900968867902419126236L,
                                       -0.900968867902419126236L,
                                       -0.222520933956314404289L,
                                       0.623489801858733530525L};
static const long double sines7[] = {0,
                                     0.781831482468029808708L,
                                     0.974927912181823607018L,
                                     0.433883739117558120476L,
                                     -0.433883739117558120476L,
                                     -0.974927912181823607018L,
                                     -0.781831482468029808708L};
static const long double cosines11[] = {1,
                                        0.841253532831181168862L,
                                        0.415415013001886425529L,
                                        -0.142314838273285140444L,
                                        -0.654860733945285064057L,
                                        -0.959492973614497389890L,
                                        -0.959492973614497389890L,
                                        -0.654860733945285064057L,
                                        -0.142314838273285140444L,
                                        0.415415013001886425529L,
                                        0.841253532831181168862L};
static const long double sines11[] = {0,
                                      0.540640817455597582108L,
                                      0.909631995354518371412L,
                                      0.989821441880932732376L,
                                      0.755749574354258283774L,
                                      0.281732556841429697711L,
                                      -0.281732556841429697711L,
                                      -0.755749574354258283774L,
                                      -0.989821441880932732376L,
                                      -0.909631995354518371412L,
                                      -0.540640817455597582108L};
static const long double cosines13[] = {1,
                                        0.885456025653209895900L,
                                        0.568064746731155802512L,
                                        0.120536680255323053349L,
                                        -0.354604887042535625970L,
                                        -0.748510748171101098635L,
                                        -0.970941817426052027157L,
                                        -0.970941817426052027157L,
                                        -0.748510748171101098635L,
                                        -0.354604887042535625970L,
                                        0.120536680255323053349L,
                                        0.568064746731155802512L,
                                        0.885456025653209895900L};
static const long double sines13[] = {0,
                                      0.464723172043768545656L,
                                      0.822983865893656394580L,
                                      0.992708874098053992801L,
                                      0.935016242685414823440L,
                                      0.663122658240795202377L,
                                      0.239315664287557767149L,
                                      -0.239315664287557767149L,
                                      -0.663122658240795202377L,
                                      -0.935016242685414823440L,
                                      -0.992708874098053992801L,
                                      -0.822983865893656394580L,
                                      -0.464723172043768545656L};
/* The first of radix 16. */
static const long double cosines16[] = {1,
                                        0.923879532511286756128L,
                                        0.707106781186547524401L,
                                        0.382683432365089771728L,
                                        0,
                                        0,
                                        -0.707106781186547524401L,
                                        0,
                                        0,
                                        -0.923879532511286756128L};
static const long double sines16[] = {0,
                                      0.382683432365089771728L,
                                      0.707106781186547524401L,
                                      0.923879532511286756128L,
                                      1,
                                      0,
                                      0.707106781186547524401L,
                                      0,
                                      0,
                                      -0.382683432365089771728L};

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3", "fp-contract=fast")
#endif
#define T float
#define LONG_T int32_t
#define LANES 4
#define NAME(x) x##_f32
#include "kernels/fft_kernels.h"
#define T double
#define LONG_T int64_t
#define LANES 2
#define NAME(x) x##_f64
#include "kernels/fft_kernels.h"
#if FFT_LEVELS == 3
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define T float
#define LONG_T int32_t
#define LANES 8
#define NAME(x) x##_f32_avx2
#include "kernels/fft_kernels.h"
#define T double
#define LONG_T int64_t
#define LANES 4
#define NAME(x) x##_f64_avx2
#include "kernels/fft_kernels.h"
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,fma")
#define T float
#define LONG_T int32_t
#define LANES 16
#define NAME(x) x##_f32_avx512
#include "kernels/fft_kernels.h"
#define T double
#define LONG_T int64_t
#define LANES 8
#define NAME(x) x##_f64_avx512
#include "kernels/fft_kernels.h"
#pragma GCC pop_options
static FlbRangeFn range_of(int f64) {
    static const FlbRangeFn ranges[2][3] = {{range_f32, range_f32_avx2, range_f32_avx512},
                                            {range_f64, range_f64_avx2, range_f64_avx512}};
    return ranges[f64][flb_cpu_level()];
}
#else
static FlbRangeFn range_of(int f64) { return f64 ? range_f64 : range_f32; }
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

/* Dimension `dim` of `from` into `to`. */
static int along(const View *from, const View *to, int64_t dim, int kind, int f64, double scale) {
    Job job = {.kind = kind,
               .scale = scale,
               .lines = 1,
               .ptr = {from->ptr, to->ptr},
               .step = {from->strides[dim], to->strides[dim]}};
    for (int d = 0; d < from->ndim; d++) { /* in the order of the result's strides */
        if (d == dim || from->shape[d] == 1) continue;
        int at = job.ndim++;
        for (; at && llabs(job.strides[1][at - 1]) > llabs(to->strides[d]); at--) {
            job.shape[at] = job.shape[at - 1];
            for (int s = 0; s < 2; s++) job.strides[s][at] = job.strides[s][at - 1];
        }
        job.shape[at] = from->shape[d], job.strides[0][at] = from->strides[d],
        job.strides[1][at] = to->strides[d];
        job.lines *= from->shape[d];
    }
    int64_t n = kind == TRANSFORM_TO_REAL ? to->shape[dim] : from->shape[dim], lanes = flb_fft_lanes(f64);
    int fits;
    Plan *plan = flb_take_plan(n, f64, kind >= TRANSFORM_FROM_REAL, &fits);
    if (!plan) return -1;
    job.plan = plan;
    Side sides[2];
    open_sides(&job, sides, f64 ? 8 : 4);
    job.single = plan->inner.n && sides[0].packed && sides[1].packed;
    int64_t points = plan->whole.n * (job.single ? 1 : lanes),
            blocks = job.single ? job.lines : (job.lines + lanes - 1) / lanes;
    flb_parallel(range_of(f64), &job, blocks, 1 + GRAIN / points);
    flb_release_plan(plan);
    return job.failed ? -1 : 0;
}

FLB_KERNEL(fft) {
    int kind = (int)n->kind, others = kind == TRANSFORM_INVERSE ? TRANSFORM_INVERSE : TRANSFORM_FORWARD,
        f64 = n->f64 != 0;
    if (v->source.ndim > MOST_DIMS || v->made.ndim != v->source.ndim) return 0;
    for (int i = 0; i < n->dims_count; i++)
        if (along(i ? &v->made : &v->source, &v->made, n->dims[i], i ? others : kind, f64, i ? 1 : n->scale))
            return -1;
    return 0;
}
