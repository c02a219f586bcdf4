/* Convolutions: the forward product and its adjoints with respect to the input and to the weight, over the
 * one thread pool.
 *
 * A convolution is a matrix product with a matrix that is never whole in memory: a block of its columns
 * (output positions, of all images in a row) is gathered into memory that stays in the second-level cache,
 * multiplied, and forgotten. Where a group has few channels (depthwise), each tap is a shifted read instead.
 * One to three spatial dimensions are handled as three. The cut into blocks depends on sizes only, so results
 * don't depend on the number of threads.
 *
 * Shapes, all in C order: input (N, C, *in), weight (O, C / groups, *kernel), output (N, O, *out). */
#include "kernels/conv.h"
#include "runtime/levels.h"
#include <string.h>

/* A convolution with few channels a group, see conv_kernels.h. */
typedef struct {
    const Conv *c;
    int what, f64;
    void *x, *w, *y;
    const void *bias;
    int64_t taps, phases, extent[3],
        plane;     /* phases of a padded plane, places of each along each dimension, and all of them */
    int64_t run;   /* from the first to behind the last output position, in places */
    int64_t front; /* the greatest shift */
    int64_t *shift, *phase; /* where each tap reads */
    const Planes *planes;
    int *failed;
} Few;

#if defined(__GNUC__) && !defined(__clang__)
#define FAST(...) __attribute__((optimize("O3", "fp-contract=fast"), ##__VA_ARGS__))
#else
#define FAST(...) __attribute__((unused, ##__VA_ARGS__))
#endif

#define JOIN(a, b) a##_##b
#define JOINED(a, b) JOIN(a, b)

/* Whether a depthwise convolution with 3 by 3 or 5 by 5 taps makes rows of a result in tiles (conv_taps.h),
 * which none may be shorter than. With AVX-512 conv_depthwise.c makes what matters. */
static int squares_fit(const Conv *c, const int64_t *rows, int64_t item) {
    int level = flb_cpu_level(), one = level < 2 && c->channels == c->groups && c->outputs == c->groups;
    for (int d = 0; d < 3; d++) one &= c->stride[d] == 1 && c->dilation[d] == 1;
    return one && c->in[0] == 1 && c->kernel[0] == 1 && !c->padding[0] && c->kernel[1] == c->kernel[2] &&
        (c->kernel[1] == 3 || c->kernel[1] == 5) && rows[1] >= 4 && rows[2] * item >= 16 << level;
}

#define KERNELS "kernels/conv_kernels.h"
#include "kernels/for_floats.h"

#define BLOCK 524288 /* bytes of gathered columns: half of a usual second-level cache */
#define FEW 64       /* output positions of an image below which several images share a block */

typedef struct {
    Conv *c;
    int what, f64;
    GemmFn gemm;
    char *x, *w, *y; /* input, weight, output; the one that `what` makes is written */
    const char *bias;
    int64_t positions, taps, per,
        made; /* output positions of an image, taps of a kernel, channels and outputs of a group */
    int64_t chunks, images, cuts,
        span; /* blocks of columns: `images` images each, or an image in `cuts` pieces of `span` positions */
    int64_t blocks, block; /* blocks of input channels of a group */
    int way;               /* WAY_GATHER ... */
    int64_t parts;         /* CONV_WEIGHT: sums over columns that are made apart and added */
    char *sums;
    Planes *planes;       /* CONV_FORWARD, CONV_INPUT: takes finished planes, or NULL */
    _Atomic int32_t *cut; /* CONV_FORWARD: pieces of each image's group that are made */
    int *failed;          /* set when there is no memory */
} Job;

/* C = A B + beta C in C order. */
static void multiply(const Job *j, char ta, char tb, int64_t m, int64_t n, int64_t k, const void *a,
                     int64_t lda, const void *b, int64_t ldb, int accumulate, void *c, int64_t ldc) {
    static const float one_f = 1, zero_f = 0;
    static const double one = 1, zero = 0;
    const void *alpha = j->f64 ? (const void *)&one : &one_f;
    const void *beta = accumulate ? alpha : j->f64 ? (const void *)&zero : &zero_f;
    j->gemm(&tb, &ta, &n, &m, &k, alpha, b, &ldb, a, &lda, beta, c, &ldc);
}

static void gather(const Job *j, int64_t c0, int64_t c1, int64_t q0, int64_t q1, char *cols) {
    if (j->f64) gather_f64(j->c, (double *)j->x, c0, c1, q0, q1, (double *)cols);
    else gather_f32(j->c, (float *)j->x, c0, c1, q0, q1, (float *)cols);
}

static void move_runs(const Job *j, char *to, int64_t tr, int64_t tk, const char *from, int64_t fr,
                      int64_t fk, int64_t rows, int64_t count, int64_t n, const char *bias) {
    if (j->f64)
        move_runs_f64((double *)to, tr, tk, (const double *)from, fr, fk, rows, count, n,
                      (const double *)bias);
    else move_runs_f32((float *)to, tr, tk, (const float *)from, fr, fk, rows, count, n, (const float *)bias);
}

/* Columns of chunk i: images [n, n + count), positions [p0, p1) of each. */
static void chunk_at(const Job *j, int64_t i, int64_t *n, int64_t *count, int64_t *p0, int64_t *p1) {
    if (j->cuts > 1) {
        *n = i / j->cuts, *count = 1;
        *p0 = i % j->cuts * j->span;
        *p1 = *p0 + j->span < j->positions ? *p0 + j->span : j->positions;
    } else {
        *n = i * j->images;
        *count = *n + j->images < j->c->images ? j->images : j->c->images - *n;
        *p0 = 0, *p1 = j->positions;
    }
}

/* Outputs of a group at a chunk, (made, columns): in place where one image is concerned, else copied
 * together. */
static const char *outputs_at(const Job *j, int64_t group, int64_t n, int64_t count, int64_t p0, char *room,
                              int64_t *ld) {
    int64_t item = j->f64 ? 8 : 4, row = j->positions * item;
    const char *from = j->y + ((n * j->c->groups + group) * j->made) * row;
    if (count == 1) {
        *ld = j->positions;
        return from + p0 * item;
    }
    *ld = count * j->positions;
    move_runs(j, room, *ld, j->positions, from, j->positions, j->c->outputs * j->positions, j->made, count,
              j->positions, NULL);
    return room;
}

/* Memory for `rows` of the columns of a chunk, and `beside` them for its outputs of a group. The job is told
 * where there is none: NULL. */
static char *room_for(const Job *j, int64_t rows, char **beside) {
    int64_t columns = j->cuts > 1 ? j->span : j->images * j->positions, row = columns * (j->f64 ? 8 : 4);
    char *room = flb_api->scratch((rows + j->made) * row);
    if (!room) *j->failed = 1;
    else *beside = room + rows * row;
    return room;
}

static void forward_range(void *context, int64_t begin, int64_t end) {
    const Job *j = context;
    const Conv *c = j->c;
    int64_t item = j->f64 ? 8 : 4, rows = j->per * j->taps;
    int in_place = j->taps == 1 && c->stride[0] == 1 && c->stride[1] == 1 && c->stride[2] == 1 &&
        !c->padding[0] && !c->padding[1] && !c->padding[2];
    char *beside, *room = room_for(j, rows, &beside);
    if (!room) return;
    for (int64_t i = begin; i < end; i++) {
        int64_t n, count, p0, p1, group = i % c->groups;
        chunk_at(j, i / c->groups, &n, &count, &p0, &p1);
        int64_t width = (count - 1) * j->positions + p1 - p0, ldb = width;
        const char *cols = room, *w = j->w + group * j->made * rows * item;
        const char *x = j->x + ((n * c->channels + group * j->per) * j->positions + p0) * item,
                   *bias = j->bias ? j->bias + group * j->made * item : NULL;
        if (in_place && count == 1) cols = x, ldb = j->positions;
        else if (in_place)
            move_runs(j, room, width, j->positions, x, j->positions, c->channels * j->positions, j->per,
                      count, j->positions, NULL);
        else
            gather(j, group * j->per, (group + 1) * j->per, n * j->positions + p0,
                   n * j->positions + p0 + width, room);
        char *y = j->y + ((n * c->outputs + group * j->made) * j->positions + p0) * item;
        char *to = count == 1 ? y : beside;
        int64_t ld = count == 1 ? j->positions : width;
        multiply(j, 'N', 'N', j->made, width, rows, w, rows, cols, ldb, 0, to, ld);
        if (count > 1)
            move_runs(j, y, j->positions, c->outputs * j->positions, to, ld, j->positions, j->made, count,
                      j->positions, bias);
        else if (bias) move_runs(j, y, ld, 0, y, ld, 0, j->made, 1, width, bias);
        if (j->planes && (j->cuts == 1 || flb_last_band(j->cut + n * c->groups + group, j->cuts)))
            flb_finished(j->planes, n, n + count, group * j->made, (group + 1) * j->made);
    }
    flb_api->free(room);
}

static void input_range(void *context, int64_t begin, int64_t end) {
    const Job *j = context;
    const Conv *c = j->c;
    /* A piece is a block of channels of an image (or some), whose chunks it does in order: they overlap in
     * the input. */
    int64_t item = j->f64 ? 8 : 4, rows = j->per * j->taps;
    char *beside, *room = room_for(j, j->block * j->taps, &beside);
    if (!room) return;
    for (int64_t i = begin; i < end; i++) {
        int64_t group = i % c->groups, block = i / c->groups % j->blocks, unit = i / c->groups / j->blocks;
        int64_t c0 = block * j->block, c1 = c0 + j->block < j->per ? c0 + j->block : j->per;
        for (int64_t k = 0; k < j->cuts; k++) {
            int64_t n, count, p0, p1, lda;
            chunk_at(j, unit * j->cuts + k, &n, &count, &p0, &p1);
            int64_t width = (count - 1) * j->positions + p1 - p0, q0 = n * j->positions + p0;
            const char *g = outputs_at(j, group, n, count, p0, beside, &lda);
            const char *w = j->w + (group * j->made * rows + c0 * j->taps) * item;
            multiply(j, 'T', 'N', (c1 - c0) * j->taps, width, j->made, w, rows, g, lda, 0, room, width);
            c0 += group * j->per, c1 += group * j->per;
            if (j->f64) scatter_f64(c, (double *)j->x, c0, c1, q0, q0 + width, (double *)room);
            else scatter_f32(c, (float *)j->x, c0, c1, q0, q0 + width, (float *)room);
            c0 -= group * j->per, c1 -= group * j->per;
        }
        int64_t n0 = j->cuts > 1 ? unit : unit * j->images,
                n1 = n0 + j->images < c->images ? n0 + j->images : c->images;
        flb_finished(j->planes, n0, n1, group * j->per + c0, group * j->per + c1);
    }
    flb_api->free(room);
}

static void weight_range(void *context, int64_t begin, int64_t end) {
    const Job *j = context;
    const Conv *c = j->c;
    int64_t item = j->f64 ? 8 : 4, rows = j->per * j->taps;
    char *beside, *room = room_for(j, j->block * j->taps, &beside);
    if (!room) return;
    for (int64_t i = begin; i < end; i++) {
        int64_t group = i % c->groups, block = i / c->groups % j->blocks, part = i / c->groups / j->blocks;
        int64_t c0 = block * j->block, c1 = c0 + j->block < j->per ? c0 + j->block : j->per;
        int64_t from = j->chunks * part / j->parts, to = j->chunks * (part + 1) / j->parts;
        char *sum = j->sums + (part * c->outputs * rows + group * j->made * rows + c0 * j->taps) * item;
        for (int64_t k = from; k < to; k++) {
            int64_t n, count, p0, p1, lda;
            chunk_at(j, k, &n, &count, &p0, &p1);
            int64_t width = (count - 1) * j->positions + p1 - p0, q0 = n * j->positions + p0;
            gather(j, group * j->per + c0, group * j->per + c1, q0, q0 + width, room);
            const char *g = outputs_at(j, group, n, count, p0, beside, &lda);
            multiply(j, 'N', 'T', j->made, (c1 - c0) * j->taps, width, g, lda, room, width, k > from, sum,
                     rows);
        }
    }
    flb_api->free(room);
}

static void add_parts(void *context, int64_t begin, int64_t end) {
    const Job *j = context;
    int64_t size = j->c->outputs * j->per * j->taps;
    if (j->f64) add_parts_f64((const double *)j->sums, j->parts, size, (double *)j->w, begin, end);
    else add_parts_f32((const float *)j->sums, j->parts, size, (float *)j->w, begin, end);
}

static void few_range(void *context, int64_t begin, int64_t end) {
    const Few *f = context;
    if (f->f64) few_range_f64(f, begin, end);
    else few_range_f32(f, begin, end);
}

/* Convolutions with few channels a group. */
static void run_few(Job *j) {
    const Conv *c = j->c;
    Few f = {.c = c,
             .what = j->what,
             .f64 = j->f64,
             .x = j->x,
             .w = j->w,
             .y = j->y,
             .bias = j->bias,
             .taps = j->taps,
             .failed = j->failed};
    f.planes = flb_planes_in(j->planes, j->what == CONV_FORWARD ? j->made : j->per);
    for (int d = 0; d < 3; d++)
        f.extent[d] =
            ((c->out[d] - 1) * c->stride[d] + (c->kernel[d] - 1) * c->dilation[d]) / c->stride[d] + 1;
    f.phases = c->stride[0] * c->stride[1] * c->stride[2];
    f.plane = f.extent[0] * f.extent[1] * f.extent[2];
    f.run = ((c->out[0] - 1) * f.extent[1] + c->out[1] - 1) * f.extent[2] + c->out[2];
    f.shift = flb_api->scratch(2 * j->taps * sizeof(int64_t));
    if (!f.shift) {
        *j->failed = 1;
        return;
    }
    f.phase = f.shift + j->taps;
    for (int64_t t = 0; t < j->taps; t++) {
        int64_t k[3] = {t / (c->kernel[1] * c->kernel[2]), t / c->kernel[2] % c->kernel[1], t % c->kernel[2]};
        f.shift[t] = f.phase[t] = 0;
        for (int d = 0; d < 3; d++) {
            f.shift[t] = f.shift[t] * f.extent[d] + k[d] * c->dilation[d] / c->stride[d];
            f.phase[t] = f.phase[t] * c->stride[d] + k[d] * c->dilation[d] % c->stride[d];
        }
        if (f.shift[t] > f.front) f.front = f.shift[t];
    }
    int64_t total = j->what == CONV_WEIGHT ? c->groups : c->images * c->groups;
    double flops = 2.0 * c->images * c->outputs * j->per * j->taps * f.plane;
    flb_parallel(few_range, &f, total, (int64_t)(2e5 * total / (flops + 1)) + 1);
    flb_api->free(f.shift);
}

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

#define MOST_TAPPED 64 /* channels times outputs of a group whose taps are read one by one */
#define LITTLE 65536   /* places that any padded image may have */
#define SPREAD 16      /* and how many for each place of an image and its result */

/* In floating point: the sizes below may be beyond what int64 holds. */
int flb_padded_fits(const Conv *c) {
    double padded = 1, in = 1, out = 1;
    for (int d = 0; d < 3; d++) {
        double reach = (double)(c->kernel[d] - 1) * (double)c->dilation[d];
        padded *= (double)c->out[d] * (double)c->stride[d] + reach;
        in *= (double)c->in[d], out *= (double)c->out[d];
    }
    return padded <= LITTLE + SPREAD * (in + out);
}

int flb_phases_fit(const Conv *c, int most) {
    return (double)c->stride[0] * (double)c->stride[1] * (double)c->stride[2] <= most;
}

/* Whether a way makes this. */
static int can(const Job *j, int way) {
    const Conv *c = j->c;
    switch (way) {
    case WAY_GATHER: return 1;
    case WAY_WINOGRAD:
        return !j->f64 &&
            (flb_winograd_can(c, j->what) || flb_volume_can(c, j->what) ||
             flb_winograd_halves_can(c, j->what) || flb_winograd_rows_can(c, j->what));
    case WAY_SHIFT: return !j->f64 && flb_shift_can(c, j->what);
    case WAY_TAPS: return j->per * j->made <= MOST_TAPPED && flb_padded_fits(c);
    case WAY_DEPTHWISE: return !j->f64 && flb_depthwise_fits(c);
    case WAY_POINT: return flb_point_can(c);
    case WAY_PIXELS: return !j->f64 && flb_pixels_can(c, j->what);
    }
    return 0;
}

/* The way that is expected to be the fastest, from sizes and the CPU. */
static int usual(const Job *j) {
    if (!j->f64 && flb_depthwise_fits(j->c)) return WAY_DEPTHWISE;
    if (j->per * j->made <= 4 && can(j, WAY_TAPS)) return WAY_TAPS;
    if (flb_point_can(j->c)) return WAY_POINT;
    if (!j->f64 &&
        (flb_winograd_fits(j->c, j->what) || flb_volume_fits(j->c, j->what) ||
         flb_winograd_halves_fits(j->c, j->what) || flb_winograd_rows_fits(j->c, j->what)))
        return WAY_WINOGRAD;
    if (!j->f64 && flb_pixels_fits(j->c, j->what)) return WAY_PIXELS;
    return !j->f64 && flb_shift_fits(j->c, j->what) ? WAY_SHIFT : WAY_GATHER;
}

/* By one of Winograd's ways. */
static int filter(const Job *j) {
    float *x = (float *)j->x, *w = (float *)j->w, *y = (float *)j->y;
    const float *bias = (const float *)j->bias;
    if (flb_winograd_can(j->c, j->what)) return flb_winograd(j->c, j->what, x, w, y, bias, j->planes);
    if (flb_volume_can(j->c, j->what)) return flb_volume(j->c, j->what, x, w, y, bias);
    if (flb_winograd_halves_can(j->c, j->what)) return flb_winograd_halves(j->c, j->what, x, w, y, bias);
    return flb_winograd_rows(j->c, x, w, y, bias, j->planes);
}

static void run_in_order(Job *j);

/* Everything is cut by sizes alone. */
static void run(Job *j) {
    const Conv *c = j->c;
    int64_t item = j->f64 ? 8 : 4, rows = j->per * j->taps;
    double flops = 2.0 * c->images * c->outputs * rows * j->positions;
    float *x = (float *)j->x, *w = (float *)j->w, *y = (float *)j->y;
    const float *bias = (const float *)j->bias;
    if (j->planes) j->planes->taken = 0;
    if (j->way == WAY_DEPTHWISE) {
        if (flb_depthwise(c, j->what, x, w, y, bias, j->planes) < 0) *j->failed = 1;
        return;
    }
    if (j->way == WAY_POINT) {
        if (flb_point(c, j->what, j->f64, j->x, j->w, j->y, j->bias, j->planes) < 0) *j->failed = 1;
        return;
    }
    if (j->way == WAY_TAPS) {
        run_few(j);
        return;
    }
    if (j->way == WAY_WINOGRAD || j->way == WAY_SHIFT || j->way == WAY_PIXELS) {
        int odd = j->way == WAY_WINOGRAD ? filter(j)
            : j->way == WAY_SHIFT        ? flb_shift(c, j->what, x, w, y, bias, j->planes)
                                         : flb_pixels(c, j->what, x, w, y, bias);
        if (odd < 0) *j->failed = 1;
        if (odd > 0) {
            if (j->planes) j->planes->taken = 0;
            j->way = WAY_GATHER;
            run_in_order(j);
        }
        return;
    }
    j->block = j->what == CONV_FORWARD    ? j->per
        : ceil_div(192, j->taps) < j->per ? ceil_div(192, j->taps)
                                          : j->per;
    j->blocks = ceil_div(j->per, j->block);
    int64_t width = BLOCK / ((j->what == CONV_FORWARD ? rows : j->block * j->taps) * item) / 16 * 16;
    if (width < 128) width = 128;
    if (width > 1024) width = 1024;
    j->images = j->cuts = 1;
    if (j->positions < FEW) {
        j->images = ceil_div(2 * FEW, j->positions);
        if (j->images > ceil_div(c->images, 2)) j->images = ceil_div(c->images, 2);
    } else {
        int64_t least = c->images < 8 ? ceil_div(8, c->images) : 1; /* some blocks for the threads */
        j->cuts = ceil_div(j->positions, width);
        if (j->cuts < least && j->what != CONV_INPUT)
            j->cuts = least < j->positions / FEW ? least : j->positions / FEW;
        j->span = ceil_div(ceil_div(j->positions, j->cuts), 16) * 16;
        j->cuts = ceil_div(j->positions, j->span);
    }
    int64_t units = j->images > 1 ? ceil_div(c->images, j->images) : c->images;
    j->chunks = units * j->cuts;
    j->planes = flb_planes_in(j->planes,
                              j->what == CONV_FORWARD                                           ? j->made
                                  : j->blocks > 1 && j->planes && j->per % j->planes->unit == 0 ? j->block
                                                                                                : j->per);
    if (j->what == CONV_FORWARD) {
        size_t counters = j->planes && j->cuts > 1 ? c->images * c->groups * sizeof(int32_t) : 0;
        if (counters && !(j->cut = flb_api->scratch(counters))) {
            *j->failed = 1;
            return;
        }
        if (counters) memset(j->cut, 0, counters);
        flb_parallel(forward_range, j, j->chunks * c->groups,
                     (int64_t)(2e5 * j->chunks * c->groups / flops) + 1);
        flb_api->free(j->cut);
    } else if (j->what == CONV_INPUT) {
        int64_t total = units * j->blocks * c->groups;
        flb_parallel(input_range, j, total, (int64_t)(2e5 * total / flops) + 1);
    } else {
        int64_t pieces = j->blocks * c->groups;
        j->parts = pieces >= 4 ? 1 : j->chunks < 8 ? j->chunks : 8;
        size_t size = c->outputs * rows * item;
        j->sums = j->parts == 1 ? j->w : flb_api->scratch(j->parts * size);
        if (!j->sums) {
            *j->failed = 1;
            return;
        }
        flb_parallel(weight_range, j, pieces * j->parts, (int64_t)(2e5 * pieces * j->parts / flops) + 1);
        if (j->parts > 1) {
            flb_parallel(add_parts, j, c->outputs * rows, 32768);
            flb_api->free(j->sums);
        }
    }
}

/* Whether zeros have to stand where the input's cotangent is made. */
static int wants_zeros(const Job *j) {
    return j->what == CONV_INPUT && j->way != WAY_WINOGRAD && j->way != WAY_SHIFT && j->way != WAY_POINT &&
        j->way != WAY_PIXELS;
}

/* Whether a view is in channels-last order and not in C order (lowering sees to it that it is in one of
 * them). */
static int is_last(const View *v, int64_t item) {
    if (v->ndim < 4 || v->shape[1] == 1) return 0;
    int64_t places = 1;
    for (int d = 2; d < v->ndim; d++) places *= v->shape[d];
    return places > 1 && v->strides[1] == item;
}

/* A convolution of kernels.def; a way that doesn't make it becomes the usual one. */
static void open_job(const flb_convolution_views *v, const flb_convolution_numbers *n, Conv *to, Job *job) {
    int what = (int)n->direction, f64 = n->f64 != 0;
    const View *x = what == CONV_FORWARD ? &v->a : what == CONV_INPUT ? &v->made : &v->b;
    const View *w = what == CONV_WEIGHT ? &v->made : &v->b, *y = what == CONV_FORWARD ? &v->made : &v->a;
    Conv c = {.groups = n->groups, .images = x->shape[0], .channels = x->shape[1], .outputs = y->shape[1]};
    for (int k = 0; k < 3; k++) {
        int d = k + x->ndim - 3;
        c.in[k] = d < 2 ? 1 : x->shape[d], c.kernel[k] = d < 2 ? 1 : w->shape[d],
        c.out[k] = d < 2 ? 1 : y->shape[d];
        c.dilation[k] = c.kernel[k] == 1 ? 1 : n->dilation[k];
        /* One place has no next one: its stride may be any number, and what is cut into phases is not. But
         * one tap with a stride of one reads all places. */
        c.stride[k] = c.out[k] != 1 || n->stride[k] == 1 ? n->stride[k]
            : c.kernel[k] > 1 || c.in[k] == 1            ? 1
                                                         : 2;
        c.padding[k] = n->padding[k];
    }
    *to = c;
    Job j = {.c = to,
             .what = what,
             .f64 = f64,
             .gemm = flb_blas_gemm(f64),
             .x = x->ptr,
             .w = w->ptr,
             .y = y->ptr,
             .bias = v->bias.ptr};
    j.positions = c.out[0] * c.out[1] * c.out[2], j.taps = c.kernel[0] * c.kernel[1] * c.kernel[2];
    j.per = c.channels / c.groups, j.made = c.outputs / c.groups;
    int64_t item = f64 ? 8 : 4;
    to->xlast = is_last(x, item), to->wlast = is_last(w, item), to->ylast = is_last(y, item);
    j.way = (int)n->way;
    if (j.way == WAY_USUAL || !can(&j, j.way)) j.way = usual(&j);
    *job = j;
}

/* Operands that the way doesn't read as they lie, in the other order in memory of their own. */
typedef struct {
    char **place, *own, *given; /* the pointer of the job; the copy; where the operand is */
    int64_t count, channels, places;
    int *last, made;
} Transposed;

static int transposed_operands(Job *j, Transposed *t) {
    Conv *c = j->c;
    int64_t in = c->in[0] * c->in[1] * c->in[2];
    int n = 0, pixels = j->way == WAY_PIXELS, /* which reads images of that order only */
        planes = pixels && flb_pixels_in_planes(c, j->what),
        reads_images = j->way == WAY_POINT || j->way == WAY_DEPTHWISE || j->way == WAY_WINOGRAD;
    if (c->xlast != pixels && !reads_images && !(planes && j->what == CONV_INPUT))
        t[n++] = (Transposed){.place = &j->x,
                              .count = c->images,
                              .channels = c->channels,
                              .places = in,
                              .last = &c->xlast,
                              .made = j->what == CONV_INPUT};
    if (c->ylast != pixels && !reads_images && !(planes && j->what != CONV_INPUT))
        t[n++] = (Transposed){.place = &j->y,
                              .count = c->images,
                              .channels = c->outputs,
                              .places = j->positions,
                              .last = &c->ylast,
                              .made = j->what == CONV_FORWARD};
    if (c->wlast && j->way != WAY_WINOGRAD && !pixels)
        t[n++] = (Transposed){.place = &j->w,
                              .count = c->outputs,
                              .channels = j->per,
                              .places = j->taps,
                              .last = &c->wlast,
                              .made = j->what == CONV_WEIGHT};
    return n;
}

/* `last`: to channels innermost. */
static void turn_operand(const Transposed *t, const char *from, char *to, int last, int64_t item) {
    flb_turn(from, to, t->count, last ? t->channels : t->places, last ? t->places : t->channels, item);
}

/* run() with operands in the order that its way reads, and with zeros where it adds. */
static void run_in_order(Job *j) {
    const Conv *c = j->c;
    int64_t item = j->f64 ? 8 : 4;
    Transposed t[3];
    int transposed = transposed_operands(j, t), lasts[3] = {0}; /* the order that the way works in */
    for (int i = 0; i < transposed; i++) {
        t[i].given = *t[i].place;
        if ((t[i].own = flb_api->scratch(t[i].count * t[i].channels * t[i].places * item))) {
            *t[i].place = t[i].own, lasts[i] = *t[i].last = !*t[i].last;
            if (!t[i].made) turn_operand(&t[i], t[i].given, t[i].own, *t[i].last, item);
        } else *j->failed = 1;
    }
    if (!*j->failed && wants_zeros(j))
        memset(j->x, 0, c->images * c->channels * c->in[0] * c->in[1] * c->in[2] * item);
    if (!*j->failed) run(j);
    for (int i = 0; i < transposed; i++) {
        if (t[i].made && !*j->failed) turn_operand(&t[i], t[i].own, t[i].given, !lasts[i], item);
        flb_api->free(t[i].own);
    }
}

static int convolve(const flb_convolution_views *v, const flb_convolution_numbers *n, Planes *planes) {
    int failed = 0;
    Conv c;
    Job j;
    open_job(v, n, &c, &j);
    j.failed = &failed;
    if (!j.gemm) return -1; /* lowering asks for a library first */
    j.planes =
        (j.what == CONV_FORWARD ? c.ylast : c.xlast) ? NULL : planes; /* channels last there are no planes */
    if (planes) planes->channels = j.what == CONV_FORWARD ? c.outputs : c.channels, planes->taken = 0;
    run_in_order(&j);
    return failed ? -1 : 0;
}

FLB_KERNEL(convolution) { return convolve(v, n, NULL); }

/* The kernel `convolution` with a consumer of finished planes of the result (CONV_FORWARD, CONV_INPUT)
 * while others are made. */
int flb_convolve_planes(const View *v, const int64_t *numbers, Planes *planes) {
    return convolve((const flb_convolution_views *)v, (const flb_convolution_numbers *)numbers, planes);
}

FLB_KERNEL(convolution_ways) {
    Conv c;
    Job j;
    flb_convolution_views views = {v->a, v->b, v->bias, v->made};
    _Static_assert(sizeof *n == sizeof(flb_convolution_numbers), "the numbers of a convolution");
    open_job(&views, (const flb_convolution_numbers *)n, &c, &j);
    int64_t found = (int64_t)1 << (16 + usual(&j));
    for (int way = WAY_GATHER; way < WAY_COUNT; way++) found |= (int64_t)can(&j, way) << way;
    *(int64_t *)v->ways.ptr = found;
    return 0;
}
