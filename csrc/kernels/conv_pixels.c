/* Convolutions of images whose channels lie innermost as products whose left operand is never gathered:
 * float32 with AVX-512, one to three dimensions, any stride, dilation and groups.
 *
 * A row of the left operand is what a tap reads for a place: the channels of one pixel, which lie together.
 * So a register kernel takes a pointer for each of its rows and each tap, and where a tap reads beside the
 * image the pointer is that of a row of zeros. Tiles whose rows are all zeros are left out, and places at the
 * same edge are brought into the same tiles. The weight is packed into panels once for all places. The
 * gradient of the input is the same over the cotangents' pixels, one product a phase of the stride with the
 * taps that reach it; that of the weight is, for each tap, sums over places of an output's cotangent times
 * the pixel that the tap reads, with nothing packed.
 *
 * All cuts of a sum depend on sizes only. A tap beside the image multiplies a zero with a weight or is left
 * out, so weights that aren't finite are left to the caller's other way. */
#include "kernels/conv.h"
#include "runtime/cpu_level.h"
#include <string.h>

#if !defined(__x86_64__)
int flb_pixels_can(const Conv *c, int what) { return 0; }
int flb_pixels_fits(const Conv *c, int what) { return 0; }
int flb_pixels_in_planes(const Conv *c, int what) { return 0; }
int flb_pixels(const Conv *c, int what, float *x, float *w, float *y, const float *bias) { return -1; }
#else
#include "kernels/conv_lanes.h"

#define MOST_LANES 4  /* vectors of a tile */
#define ROWS 384      /* places whose sums stay in cache: twice a multiple of all tiles' rows */
#define DEEP 480      /* vectors of a panel in a slice of the sum: a slice stays in the first-level cache */
#define PLACES 128    /* places of a sum of the weight's gradient */
#define SKIPPED 16    /* places beside the image that are left out of it, at least */
#define PIECES 8      /* at least, where there is so much to do */
#define SUMS 262144   /* bytes of a piece's sums of the weight's gradient */
#define MOST_TAPS 343 /* a kernel of 7 by 7 by 7 */
#define WORTH 350
#define SINGLE 1.15 /* time of a tile of single vectors, beside that of others */
/* Where loads are plentiful: the time of turning an element, in multiplications; that of the other ways,
 * beside these tiles: shifted rows, the same with a stride, their gradient of the weight, gathered columns.
 */
#define TURNED 20
#define SHIFTED 1.05
#define STRIDED 1.15
#define SHIFTED_WEIGHT 1.2
#define GATHERED 1.5
#define FEW 96 /* places of all images */
/* Places are sorted from this share of what taps read on that lies beside the image. */
#define BESIDE 0.05
/* A panel is packed when it is used where there are at most so many places, and at least so many weights. */
#define IN_TURN 1024
#define LARGE 200000

/* ---- the register kernels ------------------------------------------------------------------------------ */

#define EACH _Pragma("GCC unroll 16") for

/* Rows of a tile by its vectors, of places and of the weight's outputs: so many sums that their latency is
 * hidden, and as few loads as there are registers for. */
static const int rows_of[MOST_LANES + 1] = {0, 8, 12, 8, 6}, outputs_of[MOST_LANES + 1] = {0, 16, 12, 8, 6};

/* Whether one of so many pointers isn't this one; up to eight or sixteen are read. */
WIDE static inline int any_but(const float *zeros, const float *const *from, int many) {
    __m512i none = _mm512_set1_epi64((long long)(intptr_t)zeros);
    int found = _mm512_cmpneq_epi64_mask(_mm512_loadu_si512(from), none) & ((1 << (many < 8 ? many : 8)) - 1);
    if (many > 8)
        found |= _mm512_cmpneq_epi64_mask(_mm512_loadu_si512(from + 8), none) & ((1 << (many - 8)) - 1);
    return found;
}

/* sum (HIGH, NV vectors) = (+) rows of taps [t0, t1), channels [c0, c1) times rows of b. Tap t of row r
 * begins at from[t * ROWS + r]; a tap whose rows are all `zeros` is left out. `ahead`: the next tile's rows
 * of each tap are brought into the cache. */
#define PRODUCT(HIGH, NV)                                                                                   \
    WIDE static void product##NV(const float *const *from, const float *zeros, int64_t t0, int64_t t1,      \
                                 int64_t c0, int64_t c1, const float *b, float *sum, int more, int ahead) { \
        V s[HIGH][NV];                                                                                      \
        EACH(int r = 0; r < HIGH; r++)                                                                      \
        EACH(int v = 0; v < NV; v++) s[r][v] = more ? ((const V *)sum)[r * NV + v] : (V){0};                \
        for (int64_t t = t0; t < t1; t++) {                                                                 \
            if (!any_but(zeros, from + t * ROWS, HIGH)) {                                                   \
                b += (c1 - c0) * NV * L;                                                                    \
                continue;                                                                                   \
            }                                                                                               \
            const float *row[HIGH];                                                                         \
            EACH(int r = 0; r < HIGH; r++) row[r] = from[t * ROWS + r];                                     \
            if (ahead) EACH(int r = 0; r < HIGH; r++)                                                       \
            for (int64_t c = c0; c < c1; c += L) __builtin_prefetch(from[t * ROWS + HIGH + r] + c);         \
            for (int64_t c = c0; c < c1; c++, b += NV * L) {                                                \
                V x[NV];                                                                                    \
                EACH(int v = 0; v < NV; v++) x[v] = ((const V *)b)[v];                                      \
                EACH(int r = 0; r < HIGH; r++)                                                              \
                EACH(int v = 0; v < NV; v++) s[r][v] += row[r][c] * x[v];                                   \
            }                                                                                               \
        }                                                                                                   \
        EACH(int r = 0; r < HIGH; r++)                                                                      \
        EACH(int v = 0; v < NV; v++)((V *)sum)[r * NV + v] = s[r][v];                                       \
    }
PRODUCT(8, 1)
PRODUCT(12, 2)
PRODUCT(8, 3)
PRODUCT(6, 4)
typedef void (*Product)(const float *const *, const float *, int64_t, int64_t, int64_t, int64_t,
                        const float *, float *, int, int);
static const Product products[MOST_LANES] = {product1, product2, product3, product4};

/* For each of TAPS taps, sum (HIGH, NV vectors) += over n places of y[p * HIGH + r] times the NV vectors at
 * from[p] + at; of the last one the lanes in `last`. A tap's pointers are PLACES, its sums are `apart` behind
 * those of the one before. */
#define WEIGH(HIGH, TAPS, NV)                                                                     \
    WIDE static void weigh##HIGH##x##TAPS##x##NV(int64_t n, const float *const *from, int64_t at, \
                                                 const float *y, float *sum, int64_t apart,       \
                                                 __mmask16 last) {                                \
        V s[HIGH][TAPS][NV];                                                                      \
        EACH(int r = 0; r < HIGH; r++)                                                            \
        EACH(int t = 0; t < TAPS; t++)                                                            \
        EACH(int v = 0; v < NV; v++) s[r][t][v] = (V){0};                                         \
        for (int64_t p = 0; p < n; p++, y += HIGH) {                                              \
            V x[TAPS][NV];                                                                        \
            EACH(int t = 0; t < TAPS; t++) {                                                      \
                const float *pixel = from[t * PLACES + p] + at;                                   \
                EACH(int v = 0; v < NV - 1; v++) x[t][v] = *(const V *)(pixel + v * L);           \
                x[t][NV - 1] = (V)_mm512_maskz_loadu_ps(last, pixel + (NV - 1) * L);              \
            }                                                                                     \
            EACH(int r = 0; r < HIGH; r++)                                                        \
            EACH(int t = 0; t < TAPS; t++)                                                        \
            EACH(int v = 0; v < NV; v++) s[r][t][v] += y[r] * x[t][v];                            \
        }                                                                                         \
        EACH(int r = 0; r < HIGH; r++)                                                            \
        EACH(int t = 0; t < TAPS; t++)                                                            \
        EACH(int v = 0; v < NV; v++)((V *)(sum + t * apart))[r * NV + v] += s[r][t][v];           \
    }
WEIGH(16, 1, 1)
WEIGH(12, 1, 1)
WEIGH(12, 1, 2)
WEIGH(8, 1, 1)
WEIGH(8, 1, 2)
WEIGH(8, 1, 3)
WEIGH(6, 1, 1)
WEIGH(6, 1, 2)
WEIGH(6, 1, 3)
WEIGH(6, 1, 4)
WEIGH(8, 3, 1)
WEIGH(6, 2, 2)
typedef void (*Weigh)(int64_t, const float *const *, int64_t, const float *, float *, int64_t, __mmask16);
/* By the vectors of a whole tile, and those that are there; of one tap, and of as many as go together. */
static const Weigh weighers[MOST_LANES][MOST_LANES] = {{weigh16x1x1},
                                                       {weigh12x1x1, weigh12x1x2},
                                                       {weigh8x1x1, weigh8x1x2, weigh8x1x3},
                                                       {weigh6x1x1, weigh6x1x2, weigh6x1x3, weigh6x1x4}};
/* Taps that share the loads of cotangents, by the vectors of a pixel. */
static const int taps_of[MOST_LANES + 1] = {1, 3, 2, 1, 1};
static const Weigh together[] = {NULL, weigh8x3x1, weigh6x2x2};
#undef EACH

/* ---- what is to be done -------------------------------------------------------------------------------- */

/* Results whose places have the same remainder by the stride, and the taps that reach them: place j of a
 * dimension lies at first + j * by of the result, and a tap reads the source at j * step + its start. */
typedef struct {
    int64_t first[3], count[3], taps, places; /* the first of its taps in the job's; places of an image */
    int64_t known;                            /* its number of taps */
    int64_t low[3], high[3];                  /* where the first and the last of them read */
} Phase;

typedef struct {
    int64_t start[3], at; /* where it reads, and its place in the kernel */
} Tap;

typedef struct {
    const Conv *c;
    int what;
    const float *source, *w, *bias, *zeros;
    float *to, *made, *packed;
    int64_t depth, high, groups;                /* channels of the source and of the result, a group */
    int64_t size[3], result[3], step[3], by[3]; /* places of both */
    int64_t across, down, along; /* strides of the weight: a channel of the result, of the source, a tap */
    int64_t lanes, panels, all;  /* vectors of a panel, panels of a group, taps */
    int tile;                    /* rows of a tile, or outputs */
    int planar;                  /* the result, or the cotangents of the weight's gradient, is in C order */
    int64_t blocks, cut, cuts;   /* blocks of places (of one phase after the other); panels of a piece */
    Phase *phases;
    int64_t count; /* of phases */
    Tap *taps;
    int64_t pairs, sets, high_cut, high_cuts; /* the weight: taps times panels, in sets; outputs of a piece */
    int64_t shared;                           /* taps of a tile */
    int in_turn;                              /* a panel is packed when it is used */
    int sorted;                               /* places of the same edge come together */
    int64_t folded;                           /* taps of a row whose sums are made side by side, or 0 */
    int64_t block;                            /* places of one, at most */
    int padded;                               /* taps read beside the image */
    int failed, odd;
} Job;

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Phases of the result and their taps. */
static void find_phases(Job *j) {
    const Conv *c = j->c;
    int back = j->what == CONV_INPUT;
    int64_t n = 0;
    for (int64_t p = 0; p < j->count; p++) {
        Phase *f = &j->phases[p];
        int64_t rest[3] = {p / (j->by[1] * j->by[2]), p / j->by[2] % j->by[1], p % j->by[2]};
        f->places = 1;
        memset(f->low, 0, sizeof f->low), memset(f->high, 0, sizeof f->high);
        for (int d = 0; d < 3; d++) {
            int64_t s = j->by[d];
            f->first[d] = back ? ((rest[d] - c->padding[d]) % s + s) % s : 0;
            f->count[d] = f->first[d] < j->result[d] ? (j->result[d] - 1 - f->first[d]) / s + 1 : 0;
            if (d == 2 && j->folded) f->count[d] = j->size[d];
            f->places *= f->count[d];
        }
        f->taps = n;
        for (int64_t t = 0; t < j->all; t++) {
            int64_t k[3] = {t / (c->kernel[1] * c->kernel[2]), t / c->kernel[2] % c->kernel[1],
                            t % c->kernel[2]};
            Tap tap = {.at = t};
            int here = !j->folded || !k[2];
            for (int d = 0; d < 3; d++) {
                int64_t reach = k[d] * c->dilation[d];
                if (back) {
                    if (reach % c->stride[d] != rest[d]) here = 0;
                    tap.start[d] = (f->first[d] + c->padding[d] - reach) / c->stride[d];
                } else tap.start[d] = reach - c->padding[d];
            }
            if (j->folded) tap.start[2] = 0;
            for (int d = 0; here && d < 3; d++) {
                if (n == f->taps || tap.start[d] < f->low[d]) f->low[d] = tap.start[d];
                if (n == f->taps || tap.start[d] > f->high[d]) f->high[d] = tap.start[d];
            }
            if (here) j->taps[n++] = tap;
        }
        f->known = n - f->taps;
    }
}

/* How far the taps of a phase reach beside the image from place i of a dimension. */
static uint64_t beside(const Job *j, const Phase *f, int d, int64_t i) {
    int64_t low = -(i * j->step[d] + f->low[d]), high = i * j->step[d] + f->high[d] - j->size[d] + 1;
    return (uint64_t)(low > 0 ? least(low, 255) : 0) << 8 | (uint64_t)(high > 0 ? least(high, 255) : 0);
}

/* slot[p - p0]: the row of place p among those of a block. Places from which the same taps reach beside the
 * image come together, so that tiles leave these taps out. */
static void sort_places(const Job *j, const Phase *f, int64_t p0, int64_t p1, int16_t *slot) {
    enum { MOST = 32 };
    uint64_t kinds[MOST];
    int16_t ends[MOST], first = 0;
    uint8_t kind[ROWS];
    int64_t known = 0, k = 0, rest = p0 % f->places;
    int64_t i[3] = {rest / (f->count[1] * f->count[2]), rest / f->count[2] % f->count[1], rest % f->count[2]};
    uint64_t outer = 0;
    for (int64_t p = p0; j->sorted && p < p1; p++) {
        if (p == p0 || !i[2]) outer = beside(j, f, 0, i[0]) << 32 | beside(j, f, 1, i[1]) << 16;
        uint64_t key = outer | beside(j, f, 2, i[2]);
        if (!known || kinds[k] != key)
            for (k = 0; k < known && kinds[k] != key;) k++;
        if (k == known) {
            if (known == MOST) break;
            kinds[known] = key, ends[known++] = 0;
        }
        kind[p - p0] = (uint8_t)k, ends[k]++;
        if (++i[2] == f->count[2]) {
            i[2] = 0;
            if (++i[1] == f->count[1]) {
                i[1] = 0;
                if (++i[0] == f->count[0]) i[0] = 0;
            }
        }
        if (p + 1 == p1 && known > 1) {
            for (k = 0; k < known; k++) first += ends[k], ends[k] = (int16_t)(first - ends[k]);
            for (int64_t q = 0; q < p1 - p0; q++) slot[q] = ends[kind[q]]++;
            return;
        }
    }
    for (int64_t q = 0; q < p1 - p0; q++) slot[q] = (int16_t)q;
}

/* Where taps [t0, t1) read for places [p0, p1) of a phase in all images: from[(t - t0) * ld + slot[p - p0]],
 * where there are no slots p - p0. Row after row of places: within [inner, outer) no tap reads to the left or
 * right of the image, and slots follow each other. */
WIDE static void fill(const Job *j, const Phase *f, int64_t group, int64_t t0, int64_t t1, int64_t p0,
                      int64_t p1, const float **from, int64_t ld, const int16_t *slot) {
    int64_t n = p0 / f->places, rest = p0 % f->places, step = j->step[2], channels = j->depth * j->groups;
    int64_t i[3] = {rest / (f->count[1] * f->count[2]), rest / f->count[2] % f->count[1], rest % f->count[2]};
    const int64_t *size = j->size;
    const float *source = j->source + group * j->depth;
    int64_t low = f->low[2] < 0 ? ceil_div(-f->low[2], step) : 0,
            high = size[2] > f->high[2] ? (size[2] - 1 - f->high[2]) / step + 1 : 0;
    for (int64_t p = p0, run; p < p1; p += run) {
        run = least(f->count[2] - i[2], p1 - p);
        int64_t inner = least(low > i[2] ? low - i[2] : 0, run),
                outer = least(high > i[2] ? high - i[2] : 0, run);
        if (outer < inner) outer = inner;
        for (int64_t t = t0; t < t1; t++) {
            const Tap *tap = &j->taps[f->taps + t];
            const float **to = from + (t - t0) * ld;
            int64_t a = i[0] * j->step[0] + tap->start[0], b = i[1] * j->step[1] + tap->start[1],
                    e = i[2] * step + tap->start[2], line = ((n * size[0] + a) * size[1] + b) * size[2];
            int in = a >= 0 && a < size[0] && b >= 0 && b < size[1];
            for (int64_t q = inner ? 0 : outer; q < run; q = q + 1 == inner ? outer : q + 1) {
                int64_t at = e + q * step;
                to[slot ? slot[p - p0 + q] : p - p0 + q] =
                    in && at >= 0 && at < size[2] ? source + (line + at) * channels : j->zeros;
            }
            if (inner == outer) continue;
            const float **middle = to + (slot ? slot[p - p0 + inner] : p - p0 + inner),
                        *first = in ? source + (line + e + inner * step) * channels : j->zeros;
            int64_t apart = in ? step * channels : 0;
            for (int64_t q = 0; q < outer - inner; q++) middle[q] = first + q * apart;
        }
        i[2] = 0;
        if (++i[1] == f->count[1]) {
            i[1] = 0;
            if (++i[0] == f->count[0]) i[0] = 0, n++;
        }
    }
}

/* ---- the weight in panels: (group, phase, panel, tap, channel of the source, lanes) -----------------------
 */

static float *panel_of(const Job *j, float *packed, int64_t group, const Phase *f, int64_t panel) {
    int64_t wide = j->lanes * L;
    return packed + ((group * j->all + f->taps) * j->panels + f->known * panel) * j->depth * wide;
}

/* `alone`: where the panel goes when no other lies beside it. */
WIDE static int pack_panel(const Job *j, int64_t group, int64_t panel, float *alone) {
    int64_t wide = j->lanes * L, first = panel * wide;
    int back = j->what == CONV_INPUT, odd = 0;
    const float *w = j->w + group * (back ? j->depth * j->down : j->high * j->across);
    for (int64_t v = 0; v < wide; v += L) {
        /* Vectors are channels, or one tap of a row after the other. */
        int64_t channel = j->folded ? 0 : first + v, tap = j->folded ? v / L : 0,
                lanes = least(L, j->high - channel);
        __mmask16 in = lanes <= 0 ? 0 : (__mmask16)((1u << lanes) - 1);
        for (int64_t p = 0; p < j->count; p++) {
            const Phase *f = &j->phases[p];
            float *to =
                v + (alone ? alone + f->taps * j->depth * wide : panel_of(j, j->packed, group, f, panel));
            if (!back) {
                /* Rows of depth times taps numbers: turned, sixteen by sixteen. */
                int64_t k = j->depth * j->all;
                for (int64_t i = 0; i < k && !tap; i += L) {
                    __mmask16 there = (__mmask16)((1u << least(L, k - i)) - 1);
                    __m512 r[L];
                    for (int o = 0; o < L; o++)
                        r[o] = _mm512_maskz_loadu_ps(o < lanes ? there : 0,
                                                     w + (o < lanes ? channel + o : 0) * j->across + i);
                    for (int o = 0; j->padded && o < L; o++) odd |= _mm512_fpclass_ps_mask(r[o], 0x99);
                    turn(r);
                    for (int64_t q = i; q < i + L && q < k; q++) {
                        int64_t t = j->along == 1 ? q % j->all : q / j->depth,
                                from = j->along == 1 ? q / j->all : q % j->depth,
                                row = (j->folded ? t / j->folded : t) * j->depth + from;
                        _mm512_storeu_ps(to + row * wide + (j->folded ? t % j->folded * L : 0), r[q - i]);
                    }
                }
                continue;
            }
            __m512i places =
                _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                                   _mm512_set1_epi32((int)j->across));
            for (int64_t t = 0; t < f->known; t++)
                for (int64_t o = 0; o < j->depth; o++, to += wide) {
                    const float *at = w + (j->taps[f->taps + t].at + tap) * j->along + o * j->down +
                        (in ? channel * j->across : 0);
                    __m512 r = j->across == 1
                        ? _mm512_maskz_loadu_ps(in, at)
                        : _mm512_mask_i32gather_ps(_mm512_setzero_ps(), in, places, at, 4);
                    odd |= _mm512_fpclass_ps_mask(r, 0x99); /* NaN and infinity */
                    _mm512_storeu_ps(to, r);
                }
        }
    }
    return odd != 0;
}

static void pack_range(void *context, int64_t begin, int64_t end) {
    Job *j = context;
    for (int64_t i = begin; i < end; i++)
        if (pack_panel(j, i / j->panels, i % j->panels, NULL)) j->odd = 1;
}

/* ---- forward, and the gradient of the input ---------------------------------------------------------------
 */

/* Where the channels of a group lie in a result whose channels lie innermost: to[slot[p - p0]] for places
 * [p0, p1) of a phase. */
static void find_results(const Job *j, const Phase *f, int64_t group, int64_t p0, int64_t p1,
                         const int16_t *slot, float **to) {
    int64_t channels = j->high * j->groups, n = p0 / f->places, rest = p0 % f->places;
    int64_t i[3] = {rest / (f->count[1] * f->count[2]), rest / f->count[2] % f->count[1], rest % f->count[2]};
    for (int64_t p = p0, run; p < p1; p += run, slot += run) {
        int64_t at = n, apart = j->by[2] * channels;
        for (int d = 0; d < 3; d++) at = at * j->result[d] + f->first[d] + i[d] * j->by[d];
        float *first = j->to + at * channels + group * j->high;
        run = least(f->count[2] - i[2], p1 - p);
        for (int64_t q = 0; q < run; q++) to[slot[q]] = first + q * apart;
        i[2] = 0;
        if (++i[1] == f->count[1]) {
            i[1] = 0;
            if (++i[0] == f->count[0]) i[0] = 0, n++;
        }
    }
}

/* Sums (rows, lanes) and channels from o0 on to the result. */
WIDE static void store(const Job *j, int64_t group, int64_t rows, int64_t o0, const float *sums, int64_t wide,
                       float *const *to) {
    int64_t left = least(wide, j->high - o0);
    const float *bias = j->bias ? j->bias + group * j->high + o0 : NULL;
    for (int64_t p = 0; p < rows; p++, sums += wide)
        for (int64_t v = 0; v < left; v += L) {
            __mmask16 in = (__mmask16)((1u << least(L, left - v)) - 1);
            __m512 r = _mm512_loadu_ps(sums + v);
            if (bias) r = _mm512_add_ps(r, _mm512_maskz_loadu_ps(in, bias + v));
            _mm512_mask_storeu_ps(to[p] + o0 + v, in, r);
        }
}

/* Has the lines on their way that `store` writes for rows [r0, r1). */
static void expect(const Job *j, int64_t r0, int64_t r1, int64_t o0, float *const *to) {
    int64_t left = least(j->lanes * L, j->high - o0);
    for (int64_t r = r0; r < r1; r++)
        for (int64_t v = 0; v < left; v += L) __builtin_prefetch(to[r] + o0 + v, 1);
}

/* Sums of places [p0, p1) of the only phase, which has all places, to a result in C order: turned, sixteen by
 * sixteen. */
WIDE static void store_planes(const Job *j, const Phase *f, int64_t group, int64_t p0, int64_t p1, int64_t o0,
                              const float *sums, int64_t wide, const int16_t *slot) {
    int64_t channels = j->high * j->groups, left = least(wide, j->high - o0);
    const float *bias = j->bias ? j->bias + group * j->high + o0 : NULL;
    for (int64_t p = p0, run; p < p1; p += run, slot += run) {
        int64_t n = p / f->places, at = p % f->places;
        run = least(least(L, f->places - at), p1 - p);
        __mmask16 there = (__mmask16)((1u << run) - 1);
        for (int64_t v = 0; v < left; v += L) {
            int64_t lanes = least(L, left - v);
            __mmask16 in = (__mmask16)((1u << lanes) - 1);
            __m512 add = bias ? _mm512_maskz_loadu_ps(in, bias + v) : _mm512_setzero_ps(), r[L];
            for (int i = 0; i < L; i++)
                r[i] = i < run ? _mm512_loadu_ps(sums + slot[i] * wide + v) : _mm512_setzero_ps();
            if (bias)
                for (int i = 0; i < L; i++) r[i] = _mm512_add_ps(r[i], add);
            turn(r);
            float *to = j->to + (n * channels + group * j->high + o0 + v) * f->places + at;
            for (int64_t o = 0; o < lanes; o++) _mm512_mask_storeu_ps(to + o * f->places, there, r[o]);
        }
    }
}

/* Rows of folded sums to rows of results: of each, the sums of its taps where these read. */
WIDE static void unfold(const Job *j, int64_t rows, const float *sums, const int16_t *slot, float *to) {
    const Conv *c = j->c;
    int64_t width = j->size[2], wide = j->folded * L;
    for (int64_t row = 0; row < rows; row += width)
        for (int64_t i = 0; i < width; i++) {
            __m512 all = _mm512_setzero_ps();
            for (int64_t t = 0; t < j->folded; t++) {
                int64_t reach = t * c->dilation[2] - c->padding[2],
                        at = j->what == CONV_INPUT ? i - reach : i + reach;
                if (at >= 0 && at < width)
                    all = _mm512_add_ps(all, _mm512_loadu_ps(sums + slot[row + at] * wide + t * L));
            }
            _mm512_storeu_ps(to + slot[row + i] * L, all);
        }
}

/* Memory of a thread: pointers of a block, its sums, and of a panel, where each is packed when it is used. */
typedef struct {
    const float **from;
    float *sums, *panel;
} Room;

static int take_room(Job *j, Room *room) {
    int64_t wide = j->lanes * L, most = 0;
    for (int64_t p = 0; p < j->count; p++) most = j->phases[p].known > most ? j->phases[p].known : most;
    size_t pointers = most * ROWS * sizeof *room->from;
    room->from = flb_api->scratch(
        pointers + (ROWS * (wide + L) + L + (j->in_turn ? j->all * j->depth * wide : 0)) * sizeof(float));
    if (!room->from) return j->failed = 1, -1;
    room->sums = (float *)(((uintptr_t)(room->from + most * ROWS) + 63) & ~(uintptr_t)63);
    room->panel = room->sums + ROWS * (wide + L);
    return 0;
}

/* A block of places, of one phase after the other, for panels [panel, end) of a group. */
static void make_block(const Job *j, const Room *room, int64_t group, int64_t block, int64_t panel,
                       int64_t end) {
    const Conv *c = j->c;
    const float **from = room->from;
    float *sums = room->sums;
    /* Channels of a tap in a slice, or several taps whole. */
    int64_t wide = j->lanes * L, deep = DEEP / j->lanes,
            channels = ceil_div(j->depth, ceil_div(j->depth, deep)),
            taps = channels < j->depth ? 1 : deep / (j->depth ? j->depth : 1);
    if (taps < 1) taps = 1;
    const Phase *f = j->phases;
    for (int64_t here; block >= (here = ceil_div(f->places * c->images, j->block)); f++) block -= here;
    int64_t p0 = block * j->block, p1 = least(p0 + j->block, f->places * c->images),
            rows = ceil_div(p1 - p0, j->tile) * j->tile;
    int16_t slot[ROWS];
    sort_places(j, f, p0, p1, slot);
    fill(j, f, group, 0, f->known, p0, p1, from, ROWS, slot);
    float *to[ROWS];
    if (!j->planar) find_results(j, f, group, p0, p1, slot, to);
    /* The first panel finds the pixels in whatever memory they are in. A pixel of one line is read in less
     * time than it takes to ask for it. */
    int ahead = !j->in_turn && j->depth >= 2 * L;
    for (int64_t t = 0; t < f->known; t++)
        for (int64_t r = p1 - p0; r < rows; r++) from[t * ROWS + r] = j->zeros;
    for (; panel < end; panel++, ahead = 0) {
        const float *b =
            j->in_turn ? room->panel + f->taps * j->depth * wide : panel_of(j, j->packed, group, f, panel);
        if (!f->known || !j->depth) memset(sums, 0, rows * wide * sizeof(float));
        for (int64_t t = 0; t < f->known; t += taps)
            for (int64_t k = 0; k < j->depth; k += channels) {
                int64_t t1 = least(t + taps, f->known), k1 = least(k + channels, j->depth);
                int first = !j->planar && !t && !k;
                for (int64_t r = 0; r < rows; r += j->tile) {
                    if (first) expect(j, r, least(r + j->tile, p1 - p0), panel * wide, to);
                    products[j->lanes - 1](from + r, j->zeros, t, t1, k, k1, b, sums + r * wide, t || k,
                                           ahead && r + 2 * j->tile <= rows);
                }
                b += (t1 - t) * (k1 - k) * wide;
            }
        const float *made = sums;
        int64_t row = j->folded ? L : wide; /* numbers of a place */
        if (j->folded) made = sums + ROWS * wide, unfold(j, p1 - p0, sums, slot, sums + ROWS * wide);
        if (j->planar) store_planes(j, f, group, p0, p1, panel * wide, made, row, slot);
        else store(j, group, p1 - p0, panel * wide, made, row, to);
    }
}

/* Piece i: a block of places of a phase, for a cut of the panels of a group. */
static void product_range(void *context, int64_t begin, int64_t end) {
    Job *j = context;
    Room room;
    if (take_room(j, &room)) return;
    for (int64_t i = begin; i < end; i++) {
        int64_t panel = i % j->cuts * j->cut;
        make_block(j, &room, i / j->cuts / j->blocks, i / j->cuts % j->blocks, panel,
                   least(panel + j->cut, j->panels));
    }
    flb_api->free(room.from);
}

/* Piece i: a panel of a group, packed where the one before it was, for all blocks. */
static void panel_range(void *context, int64_t begin, int64_t end) {
    Job *j = context;
    Room room;
    if (take_room(j, &room)) return;
    for (int64_t i = begin; i < end; i++) {
        int64_t group = i / j->panels, panel = i % j->panels;
        if (pack_panel(j, group, panel, room.panel)) j->odd = 1;
        for (int64_t block = 0; block < j->blocks; block++)
            make_block(j, &room, group, block, panel, panel + 1);
    }
    flb_api->free(room.from);
}

/* ---- the gradient of the weight ---------------------------------------------------------------------------
 */

/* Numbers from one place of `rows` to the next. */
static int64_t row_of_outputs(int64_t outputs) { return (ceil_div(outputs, L) | 1) * L; }

/* Cotangents of places [p0, p1) and `outputs` outputs of a group from o0 on in tiles of outputs: (tile,
 * place, high), zero behind the last output. `rows` is memory for L places. */
WIDE static void tile_outputs(const Job *j, const Phase *f, int64_t group, int64_t p0, int64_t p1, int64_t o0,
                              int64_t outputs, float *rows, float *to) {
    const Conv *c = j->c;
    __mmask16 tile = (__mmask16)((1u << j->tile) - 1);
    int64_t first = group * (c->outputs / c->groups) + o0, wide = row_of_outputs(outputs);
    for (int64_t p = p0, run; p < p1; p += run) {
        int64_t n = p / f->places, at = p % f->places, ld = c->outputs;
        const float *y = j->made + p * ld + first;
        run = least(L, p1 - p);
        if (j->planar) {
            run = least(run, f->places - at);
            __mmask16 there = (__mmask16)((1u << run) - 1);
            const float *plane = j->made + (n * c->outputs + first) * f->places + at;
            for (int64_t o = 0; o < outputs; o += L) {
                __m512 r[L];
                for (int64_t i = 0; i < L; i++) {
                    const float *from = plane + least(o + i, outputs - 1) * f->places;
                    r[i] = _mm512_maskz_loadu_ps(there, from);
                    __builtin_prefetch(from + 2 * L);
                }
                turn(r);
                for (int64_t q = 0; q < run; q++) _mm512_storeu_ps(rows + q * wide + o, r[q]);
            }
            y = rows, ld = wide;
        }
        for (int64_t o = 0; o < outputs; o += j->tile) {
            __mmask16 in = (__mmask16)((1u << least(j->tile, outputs - o)) - 1);
            float *at = to + o * (p1 - p0) + (p - p0) * j->tile;
            for (int64_t q = 0; q < run; q++, at += j->tile)
                _mm512_mask_storeu_ps(at, tile, _mm512_maskz_loadu_ps(in, y + q * ld + o));
        }
    }
}

/* Spans of n places, [span[0], span[1]) and so on, that leave out runs of SKIPPED places and more where all
 * of these taps read beside the image: how many. */
WIDE static int64_t find_spans(const Job *j, const float *const *from, int64_t taps, int64_t n,
                               uint8_t *span) {
    __m512i zeros = _mm512_set1_epi64((long long)(intptr_t)j->zeros);
    uint8_t beside[PLACES / 8], some = 0;
    for (int64_t i = 0; i < n; i += 8) {
        beside[i / 8] = 0xff;
        for (int64_t t = 0; t < taps; t++)
            beside[i / 8] &= _mm512_cmpeq_epi64_mask(_mm512_loadu_si512(from + t * PLACES + i), zeros);
        some |= beside[i / 8];
    }
    span[0] = 0, span[1] = (uint8_t)n;
    if (!some) return 1;
    int64_t count = 0, begin = 0, run = 0; /* of the span, and places beside the image behind it */
    for (int64_t p = 0; p <= n; p++) {
        int out = p < n && beside[p / 8] >> p % 8 & 1;
        if (!out && (run >= SKIPPED || p == n)) {
            if (p - run > begin) span[2 * count] = (uint8_t)begin, span[2 * count++ + 1] = (uint8_t)(p - run);
            begin = p;
        }
        run = out ? run + 1 : 0;
    }
    return count;
}

/* Piece i: a set of taps and panels, for a cut of the outputs of a group. */
WIDE static void weight_range(void *context, int64_t begin, int64_t end) {
    Job *j = context;
    const Conv *c = j->c;
    const Phase *f = j->phases;
    int64_t wide = j->lanes * L, outputs = c->outputs / c->groups, all = f->places * c->images,
            units = ceil_div(j->pairs, j->shared), most = ceil_div(units, j->sets) * j->shared,
            known = least(most / j->panels + 2, j->all);
    const float **from = flb_api->scratch(
        known * PLACES * sizeof *from +
        ((most * wide + PLACES) * j->high_cut + L * row_of_outputs(j->high_cut) + L) * sizeof(float));
    if (!from) {
        j->failed = 1;
        return;
    }
    float *rows = (float *)(((uintptr_t)(from + known * PLACES) + 63) & ~(uintptr_t)63),
          *tiles = rows + L * row_of_outputs(j->high_cut), *sums = tiles + PLACES * j->high_cut;
    for (int64_t i = begin; i < end; i++) {
        int64_t cut = i % j->high_cuts, set = i / j->high_cuts % j->sets, group = i / j->high_cuts / j->sets;
        int64_t o0 = cut * j->high_cut, o1 = least(o0 + j->high_cut, outputs),
                first = set * units / j->sets * j->shared,
                last = least((set + 1) * units / j->sets * j->shared, j->pairs), t0 = first / j->panels;
        memset(sums, 0, (last - first) * j->high_cut * wide * sizeof(float));
        for (int64_t p0 = 0; p0 < all; p0 += PLACES) {
            int64_t n = least(PLACES, all - p0);
            tile_outputs(j, f, group, p0, p0 + n, o0, o1 - o0, rows, tiles);
            fill(j, f, group, t0, ceil_div(last, j->panels), p0, p0 + n, from, PLACES, NULL);
            for (int64_t pair = first, taps; pair < last; pair += taps) {
                int64_t k = pair % j->panels * wide, left = j->depth - k, apart = j->high_cut * wide;
                int64_t nv = left < wide ? ceil_div(left, L) : j->lanes;
                __mmask16 in = (__mmask16)((1u << least(L, left - (nv - 1) * L)) - 1);
                taps = last - pair < j->shared ? 1 : j->shared;
                const float *const *here = from + (pair / j->panels - t0) * PLACES, *const *next = here;
                uint8_t span[PLACES];
                int64_t spans = find_spans(j, here, taps, n, span), ahead = pair + taps < last ? n : 0;
                if (ahead) next = from + ((pair + taps) / j->panels - t0) * PLACES;
                Weigh fn = taps > 1 ? together[j->lanes] : weighers[j->lanes * j->shared - 1][nv - 1];
                float *to = sums + (pair - first) * apart;
                for (int64_t o = 0; o < o1 - o0; o += j->tile, to += j->tile * nv * L) {
                    /* The next pair's pixels are brought into the cache meanwhile. */
                    for (int64_t q = o * ahead / (o1 - o0),
                                 to = least(o + j->tile, o1 - o0) * ahead / (o1 - o0);
                         q < to; q++)
                        for (int64_t v = 0; v < wide; v += L)
                            __builtin_prefetch(next[q] + (pair + taps) % j->panels * wide + v);
                    for (int64_t s = 0; s < spans; s++)
                        fn(span[2 * s + 1] - span[2 * s], here + span[2 * s], k,
                           tiles + o * n + span[2 * s] * j->tile, to, apart, in);
                }
            }
        }
        for (int64_t pair = first; pair < last; pair++) {
            int64_t k = pair % j->panels * wide, left = least(wide, j->depth - k),
                    row = ceil_div(left, L) * L;
            const float *sum = sums + (pair - first) * j->high_cut * wide;
            for (int64_t o = o0; o < o1; o++, sum += row) {
                float *to = (float *)j->w + (group * outputs + o) * j->across + k * j->down +
                    j->taps[pair / j->panels].at * j->along;
                for (int64_t e = 0; e < left; e++) to[e * j->down] = sum[e];
            }
        }
    }
    flb_api->free(from);
}

/* ---- calls ------------------------------------------------------------------------------------------------
 */

int flb_pixels_can(const Conv *c, int what) {
    int64_t taps = c->kernel[0] * c->kernel[1] * c->kernel[2];
    return flb_cpu_level() == 2 && taps <= MOST_TAPS && c->stride[0] * c->stride[1] * c->stride[2] <= 64 &&
        c->channels / c->groups * taps < 1 << 26;
}

int flb_pixels_in_planes(const Conv *c, int what) {
    return what == CONV_INPUT ? !c->xlast && c->stride[0] * c->stride[1] * c->stride[2] == 1 : !c->ylast;
}

/* The vectors of a panel that leave the fewest unused; single ones load as many rows for a product each. */
static int lanes_for(int64_t vectors) {
    int best = MOST_LANES;
    for (int n = MOST_LANES; n > 1; n--)
        if (ceil_div(vectors, n) * n < ceil_div(vectors, best) * best) best = n;
    return vectors * SINGLE < ceil_div(vectors, best) * best ? 1 : best;
}

/* Of images in C order: the time of all, turned images among it, beside that of the multiplications in whole
 * tiles. */
static double waste(const Conv *c, int what) {
    int64_t per = c->channels / c->groups, made = c->outputs / c->groups,
            high = what == CONV_FORWARD ? made : per, vectors = ceil_div(high, L), lanes = lanes_for(vectors);
    double in = (double)c->channels * c->in[0] * c->in[1] * c->in[2],
           out = (double)c->outputs * c->out[0] * c->out[1] * c->out[2],
           products = out * per * c->kernel[0] * c->kernel[1] * c->kernel[2],
           turned = what == CONV_FORWARD ? in
        : flb_pixels_in_planes(c, what)  ? out
                                         : in + out;
    return (double)(ceil_div(vectors, lanes) * lanes * L) / high * (lanes > 1 ? 1 : SINGLE * SINGLE) +
        TURNED * turned / products;
}

/* Images in C order are turned, which costs as much as WORTH multiplications and additions an element; with
 * few places the weight is what costs. Where loads are scarce, shifted rows are as fast without a stride: in
 * three dimensions the other way is to gather. Elsewhere loads of vectors that begin anywhere, which shifted
 * rows are made of, cost more than these of single numbers. */
int flb_pixels_fits(const Conv *c, int what) {
    int64_t taps = c->kernel[0] * c->kernel[1] * c->kernel[2], per = c->channels / c->groups,
            out = c->out[0] * c->out[1] * c->out[2], in = c->in[0] * c->in[1] * c->in[2];
    if (!flb_pixels_can(c, what) || per < L || c->outputs / c->groups < L) return 0;
    if (c->xlast && c->ylast) return 1;
    if (c->kernel[0] > 1 && taps >= 8) return 1;
    if (c->images * out < FEW) return 0;
    if (!flb_few_loads() && taps > 1) {
        double shifted = what == CONV_WEIGHT  ? SHIFTED_WEIGHT
            : c->stride[1] * c->stride[2] > 1 ? STRIDED
                                              : SHIFTED;
        return waste(c, what) < (flb_shift_fits(c, what) ? shifted * flb_shift_waste(c, what) : GATHERED);
    }
    return taps >= 8 && c->stride[1] * c->stride[2] > 1 &&
        out * c->outputs * per * taps >= WORTH * (c->channels * in + c->outputs * out);
}

/* Whether the taps of a row are made side by side, as vectors of a tile: a pixel times what each tap has for
 * it, added where these taps read it. A result with one vector of channels loads one number for all taps of a
 * row then, and not one for each product. */
static int folds(const Conv *c, int what) {
    int64_t high = (what == CONV_INPUT ? c->channels : c->outputs) / c->groups;
    return what != CONV_WEIGHT && high <= L && c->kernel[2] > 1 && c->kernel[2] <= MOST_LANES &&
        c->stride[2] == 1 && c->in[2] == c->out[2] && c->in[2] <= ROWS / 2;
}

/* The share of what all taps read for all places that lies beside the image; the input's gradient leaves out
 * as much beside the cotangents. */
static double share_beside(const Conv *c) {
    double within = 1;
    for (int d = 0; d < 3; d++) {
        int64_t read = 0;
        for (int64_t k = 0; k < c->kernel[d]; k++) {
            int64_t start = k * c->dilation[d] - c->padding[d], step = c->stride[d],
                    low = start < 0 ? ceil_div(-start, step) : 0,
                    high = start < c->in[d] ? (c->in[d] - 1 - start) / step + 1 : 0;
            read += least(high, c->out[d]) > low ? least(high, c->out[d]) - low : 0;
        }
        within *= (double)read / (double)(c->kernel[d] * (c->out[d] > 0 ? c->out[d] : 1));
    }
    return 1 - within;
}

/* Whether a panel is packed right before it multiplies all places, and is then in the second-level cache: the
 * weight is large, and so few places are read again for each panel. */
static int is_in_turn(const Job *j) {
    int64_t places = j->c->images * j->result[0] * j->result[1] * j->result[2];
    return places <= IN_TURN && j->all * j->depth * j->panels * j->lanes * L >= LARGE &&
        j->c->groups * j->panels >= flb_get_num_threads();
}

int flb_pixels(const Conv *c, int what, float *x, float *w, float *y, const float *bias) {
    int64_t per = c->channels / c->groups, made = c->outputs / c->groups,
            taps = c->kernel[0] * c->kernel[1] * c->kernel[2];
    int back = what == CONV_INPUT;
    Job j = {.c = c,
             .what = what,
             .source = back ? y : x,
             .w = w,
             .bias = bias,
             .to = back ? x : y,
             .made = y,
             .depth = back ? made : per,
             .high = back ? per : made,
             .groups = c->groups,
             .all = taps,
             .count = 1};
    for (int d = 0; d < 3; d++) {
        j.size[d] = back ? c->out[d] : c->in[d], j.result[d] = back ? c->in[d] : c->out[d];
        j.step[d] = back ? 1 : c->stride[d], j.by[d] = back ? c->stride[d] : 1, j.count *= j.by[d];
    }
    int64_t out = per * taps, in = c->wlast ? 1 : taps;
    j.along = c->wlast ? per : 1, j.across = back ? in : out, j.down = back ? out : in;
    /* Panels are as wide as it takes to share the vectors out evenly. Sums of the weight run over channels of
     * the input. */
    int64_t vectors = ceil_div(what == CONV_WEIGHT ? per : j.high, L);
    j.folded = folds(c, what) ? c->kernel[2] : 0;
    j.lanes = j.folded ? j.folded : lanes_for(vectors), j.panels = ceil_div(vectors, j.lanes);
    j.shared = what == CONV_WEIGHT && j.panels == 1 && taps > 1 ? taps_of[j.lanes] : 1;
    j.tile = what == CONV_WEIGHT ? outputs_of[j.lanes * j.shared] : rows_of[j.lanes];
    j.planar = flb_pixels_in_planes(c, what);
    j.padded = c->padding[0] || c->padding[1] || c->padding[2];
    j.sorted = what != CONV_WEIGHT && share_beside(c) >= BESIDE;
    j.block = j.sorted ? ROWS : ROWS / 2;
    if (j.folded) j.block = j.block / j.size[2] * j.size[2]; /* whole rows */
    j.in_turn = what != CONV_WEIGHT && is_in_turn(&j);
    size_t tables = ceil_div(j.count * sizeof(Phase) + taps * sizeof(Tap), 64) * 64,
           zeros = ceil_div(j.depth + L, L) * L * sizeof(float),
           panels = what == CONV_WEIGHT || j.in_turn
        ? 0
        : c->groups * j.panels * j.lanes * L * taps * j.depth * sizeof(float);
    char *memory = flb_api->scratch(tables + zeros + panels);
    if (!memory) return -1;
    j.phases = (Phase *)memory, j.taps = (Tap *)(j.phases + j.count), j.zeros = (float *)(memory + tables);
    j.packed = (float *)(memory + tables + zeros);
    memset(memory + tables, 0, zeros);
    find_phases(&j);
    double flops = 2.0 * c->images * c->outputs * per * taps * c->out[0] * c->out[1] * c->out[2] + 1;
    if (what == CONV_WEIGHT) {
        /* As many pieces as threads need, or as it takes that a piece's sums stay in the second-level cache:
         * each reads all pixels. Sums don't depend on them. Outputs are cut first: a set of taps copies its
         * outputs' cotangents. */
        int64_t pieces = flb_get_num_threads() > 1
            ? PIECES
            : least(PIECES, ceil_div(taps * per * made * c->groups * (int64_t)sizeof(float), SUMS));
        int64_t cuts = least(ceil_div(pieces, c->groups), ceil_div(made, 32));
        j.high_cut = ceil_div(ceil_div(made, cuts), j.tile) * j.tile,
        j.high_cuts = ceil_div(made, j.high_cut);
        j.pairs = taps * j.panels,
        j.sets = least(ceil_div(j.pairs, j.shared), ceil_div(pieces, c->groups * j.high_cuts));
        int64_t total = c->groups * j.sets * j.high_cuts;
        flb_parallel(weight_range, &j, total, (int64_t)(2e5 * total / flops) + 1);
    } else {
        for (int64_t p = 0; p < j.count; p++) j.blocks += ceil_div(j.phases[p].places * c->images, j.block);
        j.cuts = least(j.panels, j.blocks * c->groups >= PIECES ? 1 : ceil_div(PIECES, j.blocks * c->groups));
        j.cut = ceil_div(j.panels, j.cuts), j.cuts = ceil_div(j.panels, j.cut);
        int64_t total = c->groups * j.blocks * j.cuts;
        if (!j.in_turn)
            flb_parallel(pack_range, &j, c->groups * j.panels,
                         1 + 100000 / (j.lanes * L * j.depth * taps + 1));
        if (j.in_turn) flb_parallel(panel_range, &j, c->groups * j.panels, 1);
        else if (!j.odd) flb_parallel(product_range, &j, total, (int64_t)(2e5 * total / flops) + 1);
    }
    flb_api->free(memory);
    return j.failed ? -1 : j.odd;
}
#endif
