/* Convolutions of one and two dimensions as matrix products whose right operand is never gathered: float32
 * with AVX-512.
 *
 * A window of padded planes lies in the second-level cache, cut into phases by the stride. Then what a tap
 * reads for the positions of the window, row after row, is one run of memory, and the taps' runs are the rows
 * of the right operand: a register kernel takes them by their offsets. The price is some positions at the end
 * of each row that belong to no output. The weight is packed into panels once for all windows. The gradient
 * of the input is the same with transposed taps, one product a phase of the input; that of the weight is sums
 * of products along two runs, in vectors, with nothing packed.
 *
 * A window is a band of rows of an image (of columns where there is one row), or several small images. All
 * cuts depend on sizes only. A position outside multiplies a zero with something that may be infinite: a
 * result that isn't finite is reported, and the caller makes them all again as it does without this file. */
#include "kernels/conv.h"
#include <math.h>
#include <string.h>

#if !defined(__x86_64__)
int flb_shift_fits(const Conv *c, int what) { return 0; }
int flb_shift_can(const Conv *c, int what) { return 0; }
double flb_shift_waste(const Conv *c, int what) { return INFINITY; }
int flb_shift(const Conv *c, int what, float *x, float *w, float *y, const float *bias, Planes *planes) {
    return -1;
}
#else
#include <immintrin.h>

#define LANES 16
#define SLACK \
    64 /* floats that a kernel may read behind a run, and write behind a row of sums: the widest tile */
#define DEEP 160       /* rows of the right operand in a slice of the sum */
#define BLOCK 96       /* rows of the result whose panels stay in cache for a slice */
#define WASTE 1.6      /* of the time, up to which this is the faster way */
#define WASTE_BACK 1.4 /* the same for the gradient of the input, whose rows are stored apart */
#define CHUNK 192      /* positions whose sums stay in cache */
#define WINDOW 98304   /* floats of a window's planes: less than half of a second-level cache */

/* ---- the register kernels ------------------------------------------------------------------------------ */

#define EACH _Pragma("GCC unroll 16") for
#define KERNEL(MR, NV)                                                                                     \
    WIDE static void k##MR##x##NV(int64_t k, const float *a, const float *b, const int64_t *off, float *c, \
                                  int64_t ldc, int more) {                                                 \
        V sum[MR][NV];                                                                                     \
        EACH(int r = 0; r < MR; r++)                                                                       \
        EACH(int v = 0; v < NV; v++) sum[r][v] = more ? ((const V *)(c + r * ldc))[v] : (V){0};            \
        for (int64_t p = 0; p < k; p++, a += MR) {                                                         \
            const V *row = (const V *)(b + off[p]);                                                        \
            V x[NV];                                                                                       \
            EACH(int v = 0; v < NV; v++) x[v] = row[v];                                                    \
            EACH(int r = 0; r < MR; r++)                                                                   \
            EACH(int v = 0; v < NV; v++) sum[r][v] += a[r] * x[v];                                         \
        }                                                                                                  \
        EACH(int r = 0; r < MR; r++)                                                                       \
        EACH(int v = 0; v < NV; v++)((V *)(c + r * ldc))[v] = sum[r][v];                                   \
    }
KERNEL(12, 2)
KERNEL(8, 3)
KERNEL(6, 4)
KERNEL(4, 4)
KERNEL(2, 4)

typedef void (*Kernel)(int64_t, const float *, const float *, const int64_t *, float *, int64_t, int);
static const struct {
    int high, wide; /* rows, floats of a row */
    double cost[2]; /* time of a row beside that of the best; where flb_few_loads() */
    Kernel fn;
} tiles[] = {{12, 32, {1.0, 1.12}, k12x2},
             {8, 48, {1.02, 1.0}, k8x3},
             {6, 64, {1.05, 1.01}, k6x4},
             {4, 64, {1.15, 1.1}, k4x4},
             {2, 64, {1.6, 1.6}, k2x4}};

#define OUTS 4 /* the weight's kernel: outputs and taps of a tile */
#define TAPS 6
#define NEAR 16 /* outputs whose rows stay in the first-level cache */

/* The sums of the lanes of four vectors. */
static inline __attribute__((always_inline)) WIDE __m128 lanes(V a, V b, V c, V d) {
    __m512 ab =
        _mm512_add_ps(_mm512_unpacklo_ps((__m512)a, (__m512)b), _mm512_unpackhi_ps((__m512)a, (__m512)b));
    __m512 cd =
        _mm512_add_ps(_mm512_unpacklo_ps((__m512)c, (__m512)d), _mm512_unpackhi_ps((__m512)c, (__m512)d));
    __m512 all = _mm512_add_ps(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee));
    __m256 half = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
    return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

/* to[t][o] += sum over i < n of y[o][i] * x[off[t] + i]; n in whole vectors, with zeros in y at the end. */
WIDE static void weigh(int64_t n, const float *y, int64_t ldy, const float *x, const int64_t *off,
                       float *to) {
    V sum[OUTS][TAPS];
    EACH(int o = 0; o < OUTS; o++)
    EACH(int t = 0; t < TAPS; t++) sum[o][t] = (V){0};
    const float *row[TAPS];
    for (int t = 0; t < TAPS; t++) row[t] = x + off[t];
    for (int64_t i = 0; i < n; i += LANES) {
        V g[OUTS];
        EACH(int o = 0; o < OUTS; o++) g[o] = *(const V *)(y + o * ldy + i);
        EACH(int t = 0; t < TAPS; t++) {
            V a = *(const V *)(row[t] + i);
            EACH(int o = 0; o < OUTS; o++) sum[o][t] += g[o] * a;
        }
    }
    EACH(int t = 0; t < TAPS; t++) {
        float *at = to + t * OUTS;
        _mm_storeu_ps(at, _mm_add_ps(_mm_loadu_ps(at), lanes(sum[0][t], sum[1][t], sum[2][t], sum[3][t])));
    }
}

/* ---- what is to be done -------------------------------------------------------------------------------- */

/* One dimension: the position q of a result reads the source at q * step + start + (of a tap) phase + step *
 * shift. */
typedef struct {
    int64_t step, start, size, first, count,
        reach; /* source: step, start and size; results: first position and how many; greatest shift */
} Axis;

typedef struct {
    int64_t phase, shift[2], at; /* of the source (a slot), by which it moves; place in the kernel */
} Tap;

typedef struct {
    const Conv *c;
    int what;
    const float *source; /* (images, groups * depth, size[0], size[1]) */
    float *x, *w, *y;
    const float *bias;
    Axis axis[2];
    Tap *taps; /* those of the first phase of the result, then those of the second, ... */
    int64_t count, phases, used,
        results; /* taps; phases of a result; phases of the source that are read; of the result */
    int64_t first[64], slot[64]; /* first tap of each phase of the result (and one behind the last); slot ->
                                    phase of the source */
    int64_t depth, high;         /* channels of the source and of the result, a group */
    int64_t images, band, across, blocks, bands, strips, cuts,
        cut; /* a window: images, rows, columns; how many of each; pieces of the result's channels */
    int tile;
    const Planes *planes;
    _Atomic int32_t *windows; /* of each group, block of images and cut: windows that are made */
    float *packed;
    int64_t panels, per_phase[64]; /* panels of a phase; where its first one lies */
    int failed, odd;
} Job;

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static void axes(Job *j) {
    const Conv *c = j->c;
    for (int d = 0; d < 2; d++) {
        Axis *a = &j->axis[d];
        int64_t s = c->stride[d + 1], pad = c->padding[d + 1],
                last = (c->kernel[d + 1] - 1) * c->dilation[d + 1];
        if (j->what == CONV_INPUT) {
            a->step = 1, a->reach = last / s, a->start = -a->reach, a->size = c->out[d + 1];
            a->first = pad / s, a->count = (c->in[d + 1] - 1 + pad) / s - a->first + 1;
        } else {
            a->step = s, a->reach = last / s, a->start = -pad, a->size = c->in[d + 1], a->first = 0,
            a->count = c->out[d + 1];
        }
    }
}

/* Taps by the phase of the result that they belong to. */
static void find_taps(Job *j) {
    const Conv *c = j->c;
    int64_t sh = c->stride[1], sw = c->stride[2], n = 0;
    j->used = 0, j->results = j->what == CONV_INPUT ? sh * sw : 1;
    for (int64_t r = 0; r < j->results; r++) {
        j->first[r] = n;
        for (int64_t kh = 0; kh < c->kernel[1]; kh++)
            for (int64_t kw = 0; kw < c->kernel[2]; kw++) {
                int64_t h = kh * c->dilation[1], w = kw * c->dilation[2], phase = h % sh * sw + w % sw;
                Tap t = {.at = kh * c->kernel[2] + kw, .shift = {h / sh, w / sw}};
                if (j->what == CONV_INPUT) {
                    if (phase != r) continue;
                    for (int d = 0; d < 2; d++) t.shift[d] = j->axis[d].reach - t.shift[d];
                    j->slot[0] = 0, j->used = 1;
                } else {
                    for (t.phase = 0; t.phase < j->used && j->slot[t.phase] != phase; t.phase++) {
                    }
                    if (t.phase == j->used) j->slot[j->used++] = phase;
                }
                j->taps[n++] = t;
            }
    }
    j->first[j->results] = j->count = n;
}

/* Places of a window's plane along a dimension. */
static int64_t extent(const Axis *a, int64_t count) { return count + a->reach; }

/* From one plane to the next: an odd number of lines, so that their places differ in the first-level cache.
 */
static int64_t stride(int64_t plane) { return (ceil_div(plane, LANES) | 1) * LANES; }

/* ---- windows ------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t group, n0, n1, r0, r1, q0, q1, o0, o1; /* images, rows, columns, channels of the result */
    int64_t row, plane,
        run; /* places of a row and of an image's plane; from the first to behind the last position */
} Window;

static Window window(const Job *j, int64_t i) {
    Window w;
    int64_t cut = i % j->cuts, strip = i / j->cuts % j->strips, band = i / j->cuts / j->strips % j->bands,
            block = i / j->cuts / j->strips / j->bands % j->blocks;
    w.group = i / j->cuts / j->strips / j->bands / j->blocks;
    w.n0 = block * j->images, w.n1 = w.n0 + j->images < j->c->images ? w.n0 + j->images : j->c->images;
    w.r0 = band * j->band, w.r1 = w.r0 + j->band < j->axis[0].count ? w.r0 + j->band : j->axis[0].count;
    w.q0 = strip * j->across,
    w.q1 = w.q0 + j->across < j->axis[1].count ? w.q0 + j->across : j->axis[1].count;
    w.o0 = cut * j->cut, w.o1 = w.o0 + j->cut < j->high ? w.o0 + j->cut : j->high;
    w.row = extent(&j->axis[1], w.q1 - w.q0), w.plane = extent(&j->axis[0], w.r1 - w.r0) * w.row;
    w.run = (w.n1 - w.n0 - 1) * w.plane + (w.r1 - w.r0 - 1) * w.row + (w.q1 - w.q0);
    return w;
}

WIDE static inline void copy(float *to, const float *from, int64_t n) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) *(V *)(to + i) = *(const V *)(from + i);
    __mmask16 in = (1u << (n - i)) - 1;
    _mm512_mask_storeu_ps(to + i, in, _mm512_maskz_loadu_ps(in, from + i));
}

/* Planes of the source as the window's taps read them: (channel, slot, image, row, column), zero outside. */
WIDE static void fill(const Job *j, const Window *w, float *to) {
    const Axis *h = &j->axis[0], *v = &j->axis[1];
    int64_t rows = w->plane / w->row, channels = j->depth * j->c->groups, whole = (w->n1 - w->n0) * w->plane,
            by = stride(whole), area = h->size * v->size;
    float *start = to;
    for (int64_t s = 0; s < j->used; s++) {
        int64_t ph = j->slot[s] / v->step, pw = j->slot[s] % v->step;
        int64_t c0 = (v->first + w->q0) * v->step + v->start + pw,
                first = (h->first + w->r0) * h->step + h->start + ph;
        /* places [lo, hi) of a row are inside: 0 <= c0 + i * step < size; rows [top, bottom) are */
        int64_t lo = c0 >= 0 ? 0 : ceil_div(-c0, v->step),
                hi = c0 >= v->size ? 0 : (v->size - 1 - c0) / v->step + 1;
        int64_t top = first >= 0 ? 0 : ceil_div(-first, h->step),
                bottom = first >= h->size ? 0 : (h->size - 1 - first) / h->step + 1;
        lo = lo > w->row ? w->row : lo, hi = hi > w->row ? w->row : hi < lo ? lo : hi;
        top = top > rows ? rows : top, bottom = bottom > rows ? rows : bottom < top ? top : bottom;
        int joined = v->step == 1 && h->step == 1 && w->row == v->size &&
            !c0; /* rows follow each other there as here */
        for (int64_t ch = 0; ch < j->depth; ch++) {
            /* Taps read on behind the last plane, against zeros; what the memory held before might not be
             * finite. */
            memset(start + (ch * j->used + s) * by + whole, 0, (by - whole) * sizeof(float));
            for (int64_t n = w->n0; n < w->n1; n++) {
                const float *from = j->source + (n * channels + w->group * j->depth + ch) * area +
                    (first + top * h->step) * v->size + c0;
                to = start + (ch * j->used + s) * by + (n - w->n0) * w->plane;
                memset(to, 0, top * w->row * sizeof(float));
                to += top * w->row;
                if (joined) {
                    copy(to, from, (bottom - top) * w->row);
                    to += (bottom - top) * w->row;
                } else
                    for (int64_t r = top; r < bottom; r++, to += w->row, from += h->step * v->size) {
                        for (int64_t i = 0; i < lo; i++) to[i] = 0;
                        int64_t i = lo;
                        if (v->step == 1) copy(to + i, from + i, hi - i);
                        else if (v->step == 2) {
                            const __m512i even =
                                _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
                            for (; i < hi; i += LANES) {
                                int64_t left =
                                    2 * (hi - i) - 1; /* numbers from the first to the last that is read */
                                uint32_t in = left >= 32 ? 0xffffffff : (1u << left) - 1;
                                __m512 a = _mm512_maskz_loadu_ps((__mmask16)in, from + 2 * i),
                                       b = _mm512_maskz_loadu_ps((__mmask16)(in >> 16), from + 2 * i + LANES);
                                _mm512_mask_storeu_ps(to + i, hi - i < LANES ? (1u << (hi - i)) - 1 : 0xffff,
                                                      _mm512_permutex2var_ps(a, even, b));
                            }
                        } else
                            for (; i < hi; i++) to[i] = from[i * v->step];
                        for (i = hi; i < w->row; i++) to[i] = 0;
                    }
                memset(to, 0, (rows - bottom) * w->row * sizeof(float));
            }
        }
    }
    memset(start + j->depth * j->used * by, 0, SLACK * sizeof(float));
}

/* Where each row of the right operand begins, for taps [t0, t1): (channel, tap). */
static void offsets(const Job *j, const Window *w, int64_t t0, int64_t t1, int64_t *off) {
    int64_t slot = stride((w->n1 - w->n0) * w->plane);
    for (int64_t ch = 0; ch < j->depth; ch++)
        for (int64_t t = t0; t < t1; t++) {
            const Tap *tap = &j->taps[t];
            *off++ = (ch * j->used + tap->phase) * slot + tap->shift[0] * w->row + tap->shift[1];
        }
}

/* ---- forward, and the gradient of the input ------------------------------------------------------------ */

/* Panels of the weight, (panel, channel, tap, row), the last one filled up with zeros; `i` counts panels of
 * all groups and phases. */
static void pack_range(void *context, int64_t begin, int64_t end) {
    Job *j = context;
    int64_t high = tiles[j->tile].high, taps = j->count, whole = j->depth * taps * high;
    for (int64_t i = begin; i < end; i++) {
        int64_t group = i / j->panels, o0 = i % j->panels * high,
                rows = j->high - o0 < high ? j->high - o0 : high;
        for (int64_t r = 0; r < j->results; r++) {
            int64_t t0 = j->first[r], t1 = j->first[r + 1];
            float *to = j->packed + group * j->panels * whole + j->panels * j->depth * t0 * high +
                i % j->panels * j->depth * (t1 - t0) * high;
            for (int64_t ch = 0; ch < j->depth; ch++)
                for (int64_t t = t0; t < t1; t++, to += high) {
                    int64_t at = j->taps[t].at;
                    const float *w = j->what == CONV_INPUT
                        ? j->w + ((group * j->depth + ch) * j->high + o0) * taps + at
                        : j->w + ((group * j->high + o0) * j->depth + ch) * taps + at;
                    int64_t step = j->what == CONV_INPUT ? taps : j->depth * taps;
                    for (int64_t o = 0; o < rows; o++) to[o] = w[o * step];
                    for (int64_t o = rows; o < high; o++) to[o] = 0;
                }
        }
    }
}

/* Whether something among n numbers isn't finite. */
WIDE static int not_finite(const float *x, int64_t n) {
    int odd = 0;
    for (int64_t i = 0; i < n; i++) {
        union {
            float f;
            uint32_t u;
        } v = {.f = x[i]};
        odd |= (v.u & 0x7f800000) == 0x7f800000;
    }
    return odd;
}

/* Sums of positions [p0, p1) of an image, (channel, position), to the output. */
WIDE static void store_outputs(Job *j, const Window *w, int64_t n, int64_t p0, int64_t p1, int64_t o0,
                               int64_t o1, const float *sums, int64_t ld) {
    const Conv *c = j->c;
    int64_t out = c->out[1] * c->out[2], width = w->q1 - w->q0;
    for (int64_t o = o0; o < o1; o++, sums += ld) {
        __m512 add = _mm512_set1_ps(j->bias ? j->bias[w->group * j->high + o] : 0);
        float *y = j->y + (n * c->outputs + w->group * j->high + o) * out + w->r0 * c->out[2] + w->q0;
        for (int64_t p = p0, r = p0 / w->row; p < p1; r++, p = r * w->row) {
            int64_t i = p - r * w->row, last = p1 - r * w->row < width ? p1 - r * w->row : width;
            const float *from = sums + r * w->row - p0;
            for (; i < last; i += LANES) {
                __mmask16 in = last - i < LANES ? (1u << (last - i)) - 1 : 0xffff;
                _mm512_mask_storeu_ps(y + r * c->out[2] + i, in,
                                      _mm512_add_ps(_mm512_maskz_loadu_ps(in, from + i), add));
            }
        }
    }
}

/* Has the lines on their way that store_outputs writes for `wide` positions from p on and channels [o0, o1).
 */
static void expect_outputs(const Job *j, const Window *w, int64_t n, int64_t p, int64_t wide, int64_t o0,
                           int64_t o1) {
    const Conv *c = j->c;
    int64_t out = c->out[1] * c->out[2];
    const float *y = j->y + (n * c->outputs + w->group * j->high + o0) * out +
        (w->r0 + p / w->row) * c->out[2] + w->q0 + p % w->row;
    for (int64_t o = o0; o < o1; o++, y += out)
        for (int64_t i = 0; i < wide; i += LANES) __builtin_prefetch(y + i, 1);
}

/* The same for one phase of the input's cotangent. */
WIDE static void store_inputs(Job *j, const Window *w, int64_t phase, int64_t n, int64_t p0, int64_t p1,
                              int64_t o0, int64_t o1, const float *sums, int64_t ld) {
    const Conv *c = j->c;
    const Axis *h = &j->axis[0], *v = &j->axis[1];
    int64_t sh = c->stride[1], sw = c->stride[2], ph = phase / sw, pw = phase % sw, in = c->in[1] * c->in[2];
    /* columns i of the window with 0 <= (first + q0 + i) * sw + pw - padding < in */
    int64_t c0 = (v->first + w->q0) * sw + pw - c->padding[2], width = w->q1 - w->q0;
    int64_t lo = c0 >= 0 ? 0 : ceil_div(-c0, sw), hi = c0 >= c->in[2] ? 0 : (c->in[2] - 1 - c0) / sw + 1;
    hi = hi > width ? width : hi;
    for (int64_t o = o0; o < o1; o++, sums += ld) {
        float *x = j->x + (n * c->channels + w->group * j->high + o) * in + c0;
        for (int64_t p = p0, r = p0 / w->row; p < p1; r++, p = r * w->row) {
            int64_t ih = (h->first + w->r0 + r) * sh + ph - c->padding[1], i = p - r * w->row,
                    last = p1 - r * w->row < hi ? p1 - r * w->row : hi;
            if (ih < 0 || ih >= c->in[1]) continue;
            const float *from = sums + r * w->row - p0;
            float *to = x + ih * c->in[2];
            i = i < lo ? lo : i;
            if (sw == 1 && i < last) memcpy(to + i, from + i, (last - i) * sizeof(float));
            else
                for (; i < last; i++) to[i * sw] = from[i];
        }
    }
}

static void product_range(void *context, int64_t begin, int64_t end) {
    Job *j = context;
    int64_t high = tiles[j->tile].high, wide = tiles[j->tile].wide, ld = CHUNK / wide * wide,
            block = ceil_div(BLOCK, high) * high;
    int64_t plane = extent(&j->axis[0], j->band) * extent(&j->axis[1], j->across),
            planes = j->depth * j->used * stride(j->images * plane) + SLACK;
    int64_t *off = flb_api->scratch(j->depth * j->count * sizeof(int64_t) +
                                    (planes + block * ld + LANES) * sizeof(float));
    if (!off) {
        j->failed = 1;
        return;
    }
    float *sums = (float *)(((uintptr_t)(off + j->depth * j->count) + 63) & ~(uintptr_t)63),
          *room = sums + block * ld;
    int64_t last = -1;
    for (int64_t i = begin; i < end; i++) {
        Window w = window(j, i);
        if (last != i / j->cuts)
            fill(j, &w, room), last = i / j->cuts; /* another cut of the same window keeps its planes */
        int64_t run = (w.r1 - w.r0 - 1) * w.row + w.q1 - w.q0;
        for (int64_t r = 0; r < j->results; r++) {
            int64_t t0 = j->first[r], t1 = j->first[r + 1], k = j->depth * (t1 - t0);
            const float *a = j->packed + (w.group * j->panels * j->count + j->panels * t0) * j->depth * high;
            offsets(j, &w, t0, t1, off);
            if (!k) memset(sums, 0, block * ld * sizeof(float));
            for (int64_t n = w.n0; n < w.n1; n++)
                for (int64_t p0 = 0; p0 < run; p0 += ld) {
                    int64_t p1 = p0 + ld < run ? p0 + ld : run;
                    const float *b = room + (n - w.n0) * w.plane;
                    for (int64_t o0 = w.o0; o0 < w.o1; o0 += block) {
                        int64_t o1 = o0 + block < w.o1 ? o0 + block : w.o1;
                        for (int64_t s = 0; s < k; s += DEEP) {
                            int64_t deep = k - s < DEEP ? k - s : DEEP;
                            for (int64_t p = p0; p < p1; p += wide)
                                for (int64_t o = o0; o < o1; o += high) {
                                    if (!s && j->what == CONV_FORWARD)
                                        expect_outputs(j, &w, n, p, wide, o, o + high < o1 ? o + high : o1);
                                    tiles[j->tile].fn(deep, a + o * k + s * high, b + p, off + s,
                                                      sums + (o - o0) * ld + p - p0, ld, s > 0);
                                }
                        }
                        for (int64_t o = 0; o < o1 - o0; o++)
                            if (not_finite(sums + o * ld, p1 - p0)) j->odd = 1;
                        if (j->what == CONV_INPUT) store_inputs(j, &w, r, n, p0, p1, o0, o1, sums, ld);
                        else store_outputs(j, &w, n, p0, p1, o0, o1, sums, ld);
                    }
                }
        }
        int64_t bands = j->bands * j->strips;
        if (j->planes && flb_last_band(j->windows + i / j->cuts / bands * j->cuts + i % j->cuts, bands))
            flb_finished(j->planes, w.n0, w.n1, w.group * j->high + w.o0, w.group * j->high + w.o1);
    }
    flb_api->free(off);
}

/* ---- the gradient of the weight ------------------------------------------------------------------------ */

/* Piece i: a part of the windows, for a block of outputs of a group; its sums go to packed + part * all. */
static void weight_range(void *context, int64_t begin, int64_t end) {
    Job *j = context;
    const Conv *c = j->c;
    Window most = {0};
    most.row = extent(&j->axis[1], j->across), most.plane = extent(&j->axis[0], j->band) * most.row;
    int64_t ld = ceil_div(j->images * most.plane, LANES) * LANES, k = j->depth * j->count,
            rows = ceil_div(j->cut, OUTS) * OUTS;
    int64_t wide = ceil_div(k, TAPS) * TAPS,
            planes = j->depth * j->used * stride(j->images * most.plane) + SLACK, out = c->out[1] * c->out[2];
    int64_t *off = flb_api->scratch(wide * sizeof(int64_t) +
                                    (planes + rows * ld + rows * wide + 2 * LANES) * sizeof(float));
    if (!off) {
        j->failed = 1;
        return;
    }
    float *g = (float *)(((uintptr_t)(off + wide) + 63) & ~(uintptr_t)63), *sums = g + rows * ld,
          *room = sums + rows * wide;
    int64_t windows = j->blocks * j->bands * j->strips, parts = j->panels;
    for (int64_t i = begin; i < end; i++) {
        int64_t cut = i % j->cuts, part = i / j->cuts % parts, group = i / j->cuts / parts;
        memset(sums, 0, rows * wide * sizeof(float));
        Window w = {0};
        for (int64_t at = windows * part / parts; at < windows * (part + 1) / parts; at++) {
            w = window(j, (group * windows + at) * j->cuts + cut);
            fill(j, &w, room);
            offsets(j, &w, 0, j->count, off);
            for (int64_t p = k; p < wide; p++) off[p] = 0;
            memset(g, 0, rows * ld * sizeof(float));
            for (int64_t o = w.o0; o < w.o1; o++)
                for (int64_t n = w.n0; n < w.n1; n++) {
                    const float *y =
                        j->y + (n * c->outputs + group * j->high + o) * out + w.r0 * c->out[2] + w.q0;
                    float *to = g + (o - w.o0) * ld + (n - w.n0) * w.plane;
                    for (int64_t r = w.r0; r < w.r1; r++, y += c->out[2], to += w.row)
                        memcpy(to, y, (w.q1 - w.q0) * sizeof(float));
                }
            for (int64_t o0 = 0; o0 < w.o1 - w.o0; o0 += NEAR)
                for (int64_t p = 0; p < wide; p += TAPS)
                    for (int64_t o = o0; o < o0 + NEAR && o < w.o1 - w.o0; o += OUTS)
                        weigh(w.run, g + o * ld, ld, room, off + p, sums + o * wide + p * OUTS);
        }
        float *to = j->packed + part * c->outputs * k + (group * j->high + cut * j->cut) * k;
        for (int64_t o = 0; o < w.o1 - w.o0; o++) {
            for (int64_t p = 0; p < k; p++)
                to[o * k + p] = sums[o / OUTS * OUTS * wide + p * OUTS + o % OUTS];
            if (not_finite(to + o * k, k)) j->odd = 1;
        }
    }
    flb_api->free(off);
}

/* ---- the cut into windows ------------------------------------------------------------------------------ */

static void cut_windows(Job *j) {
    const Conv *c = j->c;
    int64_t rows = j->axis[0].count, columns = j->axis[1].count;
    int64_t row = extent(&j->axis[1], columns), each = j->depth * j->used, halo = j->axis[0].reach;
    j->images = 1, j->band = rows, j->across = columns;
    if (each * row * (rows + halo) > WINDOW) {
        j->band = WINDOW / (each * row) - halo;
        if (j->band < 1 + halo) j->band = 1 + halo;
        if (j->band > rows) j->band = rows;
        if (rows == 1) {
            j->across = (WINDOW / each - j->axis[1].reach) / SLACK * SLACK;
            if (j->across < 2 * SLACK) j->across = 2 * SLACK;
            if (j->across > columns) j->across = columns;
        }
    } else {
        int64_t enough = j->what == CONV_WEIGHT ? 2048 : 512; /* positions */
        while (j->images < c->images && (j->images + 1) * each * row * (rows + halo) <= WINDOW &&
               j->images * rows * columns < enough)
            j->images++;
    }
    if (j->images > 1 && c->images < 2 * j->images) j->images = ceil_div(c->images, 2);
    j->band = ceil_div(rows, ceil_div(rows, j->band)),
    j->images = ceil_div(c->images, ceil_div(c->images, j->images));
    j->blocks = ceil_div(c->images, j->images), j->bands = ceil_div(rows, j->band),
    j->strips = ceil_div(columns, j->across);
}

/* Whether this is for products of shifted rows, and the cut. */
static int prepare(Job *j, const Conv *c, int what) {
    memset(j, 0, sizeof *j);
    j->c = c, j->what = what;
    int64_t per = c->channels / c->groups, made = c->outputs / c->groups;
    if (flb_cpu_level() < 2 || c->in[0] > 1 || c->out[0] > 1 || c->kernel[0] > 1 || c->padding[0] ||
        !flb_phases_fit(c, 16) || !flb_padded_fits(c))
        return 0;
    if (c->kernel[1] * c->kernel[2] > 1024 || per * made < 6) return 0;
    j->depth = what == CONV_INPUT ? made : per, j->high = what == CONV_INPUT ? per : made;
    axes(j);
    return 1;
}

/* The tile with the least of rows and positions that belong to no output; their time beside that of what is
 * asked for. */
static double choose(Job *j) {
    double least = 0, run = (j->axis[0].count - 1) * extent(&j->axis[1], j->axis[1].count) + j->axis[1].count;
    for (int t = 0; t < (int)(sizeof tiles / sizeof *tiles); t++) {
        double cost = ceil_div(j->high, tiles[t].high) * tiles[t].high * tiles[t].cost[flb_few_loads()] *
            ceil_div((int64_t)run, tiles[t].wide) * tiles[t].wide;
        if (!t || cost < least) least = cost, j->tile = t;
    }
    return least / ((double)j->high * j->axis[0].count * j->axis[1].count);
}

int flb_shift_can(const Conv *c, int what) {
    Job j;
    return prepare(&j, c, what);
}

int flb_shift_fits(const Conv *c, int what) {
    Job j;
    if (!prepare(&j, c, what)) return 0;
    int64_t taps = c->kernel[1] * c->kernel[2];
    /* Without taps that share what they read there is little to gain; short sums of many outputs are mostly
     * stores. */
    if (what != CONV_WEIGHT && c->kernel[1] <= c->stride[1] && c->kernel[2] <= c->stride[2] &&
        (what == CONV_FORWARD || taps > 1))
        return 0;
    if (what == CONV_FORWARD && j.high >= 32 && j.depth * taps < 48) return 0;
    return choose(&j) < (what == CONV_INPUT ? WASTE_BACK : WASTE) &&
        j.axis[0].count * j.axis[1].count * c->images >= 64;
}

double flb_shift_waste(const Conv *c, int what) {
    Job j;
    return prepare(&j, c, what) ? choose(&j) : INFINITY;
}

int flb_shift(const Conv *c, int what, float *x, float *w, float *y, const float *bias, Planes *planes) {
    Job j;
    if (!prepare(&j, c, what)) return 1;
    int64_t taps = c->kernel[1] * c->kernel[2];
    if (!(j.taps = flb_api->scratch(taps * sizeof(Tap)))) return -1;
    find_taps(&j);
    j.x = x, j.w = w, j.y = y, j.bias = bias, j.source = what == CONV_INPUT ? y : x;
    cut_windows(&j);
    double flops = 2.0 * c->images * c->outputs * (c->channels / c->groups) * taps * c->out[1] * c->out[2];
    int64_t windows = c->groups * j.blocks * j.bands * j.strips;
    if (what == CONV_WEIGHT) {
        /* Parts of the windows are summed apart, so that there is something for all threads. */
        int64_t here = j.blocks * j.bands * j.strips;
        j.cut = ceil_div(j.high, OUTS) * OUTS, j.cuts = 1;
        if (j.cut > 64) j.cut = 64, j.cuts = ceil_div(j.high, j.cut);
        j.panels = j.cuts * c->groups >= 8 ? 1 : here < 8 ? here : 8;
        size_t size = (size_t)c->outputs * j.depth * taps;
        j.packed = j.panels == 1 ? w : flb_api->scratch(j.panels * size * sizeof(float));
        if (j.packed) {
            int64_t total = c->groups * j.panels * j.cuts;
            flb_parallel(weight_range, &j, total, (int64_t)(2e5 * total / (flops + 1)) + 1);
            for (size_t i = 0; j.panels > 1 && i < size && !j.failed; i++) {
                double d = 0;
                for (int64_t p = 0; p < j.panels; p++) d += j.packed[p * size + i];
                w[i] = (float)d;
            }
            if (j.panels > 1) flb_api->free(j.packed);
        } else j.failed = 1;
    } else {
        choose(&j);
        int64_t high = tiles[j.tile].high;
        j.panels = ceil_div(j.high, high);
        /* Pieces of the result's channels where windows alone are too few for the threads. */
        int64_t pieces = windows >= 8 ? 1 : ceil_div(8, windows), block = ceil_div(BLOCK, high) * high;
        j.cut = ceil_div(ceil_div(j.high, pieces), high) * high;
        if (j.cut < block) j.cut = block;
        j.cuts = ceil_div(j.high, j.cut);
        j.planes = flb_planes_in(planes,
                                 j.cuts > 1 && planes && j.high % planes->unit == 0
                                     ? j.cut
                                     : j.high); /* a piece ends with its group, or at a `cut` */
        size_t counters = j.planes ? ceil_div(c->groups * j.blocks * j.cuts * sizeof(int32_t), 64) * 64 : 0;
        char *memory =
            flb_api->scratch(counters + (size_t)c->groups * j.panels * high * j.depth * taps * sizeof(float));
        if (memory) {
            j.packed = (float *)(memory + counters),
            j.windows = counters ? memset(memory, 0, counters) : NULL;
            flb_parallel(pack_range, &j, c->groups * j.panels, 1 + 100000 / (high * j.depth * taps));
            flb_parallel(product_range, &j, windows * j.cuts,
                         (int64_t)(2e5 * windows * j.cuts / (flops + 1)) + 1);
            flb_api->free(memory);
        } else j.failed = 1;
    }
    flb_api->free(j.taps);
    return j.failed ? -1 : j.odd;
}
#endif
