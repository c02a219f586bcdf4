/* Convolutions of codes: sums of products (x - x_zero) (w - w_zero) in int32, exact; x (N, C, d, h, w) of
 * bytes, signed or not, w (O, C / groups, kernel) of signed ones. x_zero is a number, w_zero a number or one
 * for each output channel.
 *
 * Images are copied once, with their padding (the code of zero) and, where the stride isn't one, with the
 * places of each phase of it side by side. What a tap reads for places one behind the other then lies one
 * behind the other, too, rows included: the places between the end of a row and the next one are computed and
 * left out. With VNNI the bytes of four channels of a place lie together and a vector has sixteen places,
 * which meet four bytes of a weight; in groups of one channel four taps are interleaved in registers instead.
 * Elsewhere planes are of single bytes and vectors those that the compiler makes. Blocks of 64 places and of
 * rows of the weight go over the pool. Sums wrap around as int32 does. */
#include "runtime/graph.h"
#include "runtime/levels.h"
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define PLACES 64                             /* of a block */
#define ROWS 6                                /* output channels whose sums are in registers */
#define CHUNK 48                              /* output channels of a unit of work */
#define MOST_BYTES (double)((int64_t)1 << 60) /* of copied images: no memory has so many */
#define EACH _Pragma("GCC unroll 16") for

typedef struct {
    int64_t images, channels, outputs, groups; /* channels and outputs of a group */
    int64_t in[3], kernel[3], out[3], stride[3], padding[3], dilation[3];
    int64_t length[3], plane, phases; /* places of one phase by dimension and in all; the number of phases */
    int64_t held;                     /* channels of a group as they are copied: whole fours where `fours` */
    int64_t quads;                    /* fours of products of a sum */
    int fours, turn;                  /* bytes of four channels lie together; 128: codes are signed */
    uint8_t x_zero;
    const View *x;
    uint8_t *copied;
    const int64_t *offsets; /* where a product's place lies in a group: of each quad, or of each product */
    const int32_t *weights; /* (groups, outputs, quads) of four bytes */
    const int32_t *all;     /* the same of ones: (quads) */
    const int32_t *less;    /* (groups, outputs): x_zero times the sum of the weights */
    const uint32_t *w_zero; /* (groups, outputs); NULL: none has one */
    int64_t chunks, blocks, places;
    int32_t *made;
} Conv;

/* --- copies of images --------------------------------------------------------------------------------------
 */

BY_LEVEL(static void, copy_line, (const uint8_t *x, int64_t step, int64_t n, uint8_t turn, uint8_t *to),
         (x, step, n, turn, to)) {
    if (step == 1)
        for (int64_t i = 0; i < n; i++) to[i] = x[i] ^ turn;
    else
        for (int64_t i = 0; i < n; i++) to[i] = x[i * step] ^ turn;
}

/* Lines of up to four channels; those of the ones that aren't there are the first one's, which meet weights
 * of 0. */
BY_LEVEL(static void, weave,
         (const uint8_t *x, const int64_t *channels, int64_t step, int64_t n, uint32_t turn, uint32_t *to),
         (x, channels, step, n, turn, to)) {
    const uint8_t *b = x + channels[1], *c = x + channels[2], *d = x + channels[3];
    if (step == 1)
        for (int64_t i = 0; i < n; i++)
            to[i] = (x[i] | (uint32_t)b[i] << 8 | (uint32_t)c[i] << 16 | (uint32_t)d[i] << 24) ^ turn;
    else
        for (int64_t i = 0; i < n; i++) {
            int64_t q = i * step;
            to[i] = (x[q] | (uint32_t)b[q] << 8 | (uint32_t)c[q] << 16 | (uint32_t)d[q] << 24) ^ turn;
        }
}

/* Line (d, h) of `n` channels from `channel` on into the phases of one of the copied planes. */
static void copy_lines(const Conv *c, const uint8_t *x, int64_t n, int64_t d, int64_t h, uint8_t *to) {
    const int64_t at[2] = {d + c->padding[0], h + c->padding[1]}, each = c->fours ? 4 : 1, s = c->stride[2];
    int64_t phase = 0, line = 0;
    for (int k = 0; k < 2; k++) {
        if (at[k] / c->stride[k] >= c->length[k]) return;
        phase = phase * c->stride[k] + at[k] % c->stride[k];
        line = line * c->length[k] + at[k] / c->stride[k];
    }
    const int64_t *steps = c->x->strides;
    for (int64_t r = 0; r < s; r++) {
        /* The first place of the line in this phase. */
        int64_t w = ((r - c->padding[2]) % s + s) % s, place = (w + c->padding[2]) / s;
        int64_t count = w < c->in[2] ? (c->in[2] - w + s - 1) / s : 0;
        if (count > c->length[2] - place) count = c->length[2] - place;
        if (count <= 0) continue;
        uint8_t *here = to + ((phase * s + r) * c->plane + line * c->length[2] + place) * each;
        const uint8_t *from = x + w * steps[4];
        int64_t channels[4] = {0};
        for (int k = 1; k < n; k++) channels[k] = k * steps[1];
        if (c->fours) weave(from, channels, s * steps[4], count, c->turn * 0x01010101u, (uint32_t *)here);
        else copy_line(from, s * steps[4], count, (uint8_t)c->turn, here);
    }
}

static void copy_planes(void *context, int64_t begin, int64_t end) {
    const Conv *c = context;
    const int64_t each = c->fours ? 4 : 1, planes = c->groups * c->held / each;
    for (int64_t t = begin; t < end; t++) {
        int64_t image = t / planes, group = t % planes / (c->held / each),
                first = t % (c->held / each) * each;
        int64_t n = c->channels - first < each ? c->channels - first : each;
        uint8_t *to = c->copied + t * c->phases * c->plane * each;
        const int64_t *steps = c->x->strides;
        const uint8_t *x =
            (const uint8_t *)c->x->ptr + image * steps[0] + (group * c->channels + first) * steps[1];
        memset(to, c->x_zero, c->phases * c->plane * each);
        for (int64_t d = 0; d < c->in[0]; d++)
            for (int64_t h = 0; h < c->in[1]; h++)
                copy_lines(c, x + d * steps[2] + h * steps[3], n, d, h, to);
    }
}

/* --- sums of `rows` output channels at 64 places
 * ------------------------------------------------------------ */

/* Where the products of a group lie. */
static void find_offsets(const Conv *c, int64_t *offsets) {
    int64_t taps = c->kernel[0] * c->kernel[1] * c->kernel[2], e = 0;
    int64_t planes = c->fours ? c->held / 4 : c->channels;
    for (int64_t k = 0; k < planes; k++)
        for (int64_t t = 0; t < taps; t++) {
            int64_t tap[3] = {t / (c->kernel[1] * c->kernel[2]), t / c->kernel[2] % c->kernel[1],
                              t % c->kernel[2]};
            int64_t phase = 0, place = 0;
            for (int i = 0; i < 3; i++) {
                int64_t at = tap[i] * c->dilation[i];
                phase = phase * c->stride[i] + at % c->stride[i];
                place = place * c->length[i] + at / c->stride[i];
            }
            offsets[e++] = (k * c->phases + phase) * c->plane + place;
        }
    for (; !c->fours && e < 4 * c->quads; e++) offsets[e] = 0; /* their weights are 0 */
}

BY_LEVEL(static void, plain_row,
         (const uint8_t *x, const int64_t *offsets, int64_t quads, const int32_t *weights, int32_t *made),
         (x, offsets, quads, weights, made)) {
    int32_t sums[PLACES] = {0};
    for (int64_t q = 0; q < quads; q++) {
        const int8_t *w = (const int8_t *)(weights + q);
        const uint8_t *a = x + offsets[4 * q], *b = x + offsets[4 * q + 1], *e = x + offsets[4 * q + 2],
                      *f = x + offsets[4 * q + 3];
        for (int i = 0; i < PLACES; i++) sums[i] += a[i] * w[0] + b[i] * w[1] + e[i] * w[2] + f[i] * w[3];
    }
    memcpy(made, sums, sizeof sums);
}

#if defined(__x86_64__)
#define VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))
#define INLINE static inline __attribute__((always_inline))

/* Sixteen places of each of four vectors, or fewer vectors where not all places are wanted. */
VNNI INLINE void fours_tile(const Conv *c, const uint8_t *x, const int32_t *w, int rows, int vectors,
                            int32_t *made) {
    __m512i sums[ROWS][4];
    EACH(int r = 0; r < rows; r++) EACH(int v = 0; v < vectors; v++) sums[r][v] = _mm512_setzero_si512();
    for (int64_t q = 0; q < c->quads; q++) {
        __m512i y[4];
        EACH(int v = 0; v < vectors; v++) y[v] = _mm512_loadu_si512(x + 4 * c->offsets[q] + 64 * v);
        EACH(int r = 0; r < rows; r++) {
            __m512i four = _mm512_set1_epi32(w[r * c->quads + q]);
            EACH(int v = 0; v < vectors; v++) sums[r][v] = _mm512_dpbusd_epi32(sums[r][v], y[v], four);
        }
    }
    EACH(int r = 0; r < rows; r++)
    EACH(int v = 0; v < vectors; v++) _mm512_storeu_si512(made + r * PLACES + 16 * v, sums[r][v]);
}

/* Of four planes: the bytes of a place come together within lanes of sixteen places, which are put in order
 * at the end. */
VNNI INLINE void planes_tile(const Conv *c, const uint8_t *x, const int32_t *w, int rows, int32_t *made) {
    __m512i sums[ROWS][4];
    EACH(int r = 0; r < rows; r++) EACH(int v = 0; v < 4; v++) sums[r][v] = _mm512_setzero_si512();
    for (int64_t q = 0; q < c->quads; q++) {
        const int64_t *at = c->offsets + 4 * q;
        __m512i a = _mm512_loadu_si512(x + at[0]), b = _mm512_loadu_si512(x + at[1]);
        __m512i e = _mm512_loadu_si512(x + at[2]), f = _mm512_loadu_si512(x + at[3]);
        __m512i low = _mm512_unpacklo_epi8(a, b), low_more = _mm512_unpacklo_epi8(e, f);
        __m512i high = _mm512_unpackhi_epi8(a, b), high_more = _mm512_unpackhi_epi8(e, f);
        __m512i y[4] = {_mm512_unpacklo_epi16(low, low_more), _mm512_unpackhi_epi16(low, low_more),
                        _mm512_unpacklo_epi16(high, high_more), _mm512_unpackhi_epi16(high, high_more)};
        EACH(int r = 0; r < rows; r++) {
            __m512i four = _mm512_set1_epi32(w[r * c->quads + q]);
            EACH(int v = 0; v < 4; v++) sums[r][v] = _mm512_dpbusd_epi32(sums[r][v], y[v], four);
        }
    }
    EACH(int r = 0; r < rows; r++) EACH(int v = 0; v < 4; v++) {
        int32_t *to = made + r * PLACES + 4 * v;
        _mm_storeu_si128((__m128i *)to, _mm512_extracti32x4_epi32(sums[r][v], 0));
        _mm_storeu_si128((__m128i *)(to + 16), _mm512_extracti32x4_epi32(sums[r][v], 1));
        _mm_storeu_si128((__m128i *)(to + 32), _mm512_extracti32x4_epi32(sums[r][v], 2));
        _mm_storeu_si128((__m128i *)(to + 48), _mm512_extracti32x4_epi32(sums[r][v], 3));
    }
}

VNNI static void wide_rows(const Conv *c, const uint8_t *x, const int32_t *w, int rows, int64_t places,
                           int32_t *made) {
    if (!c->fours) {
        if (rows == ROWS) planes_tile(c, x, w, ROWS, made);
        else
            for (int r = 0; r < rows; r++) planes_tile(c, x, w + r * c->quads, 1, made + r * PLACES);
    } else if (places > 48 && rows == ROWS) {
        fours_tile(c, x, w, ROWS, 4, made);
    } else {
        for (int64_t p = 0; p < places; p += 16) {
            if (rows == ROWS) fours_tile(c, x + 4 * p, w, ROWS, 1, made + p);
            else
                for (int r = 0; r < rows; r++)
                    fours_tile(c, x + 4 * p, w + r * c->quads, 1, 1, made + r * PLACES + p);
        }
    }
}
#endif

static int has_vnni(void) {
#if defined(__x86_64__)
    return flb_cpu_level() == 2 && __builtin_cpu_supports("avx512vnni");
#else
    return 0;
#endif
}

static void sum_rows(const Conv *c, const uint8_t *x, const int32_t *w, int rows, int64_t places,
                     int32_t *made) {
#if defined(__x86_64__)
    if (has_vnni()) {
        wide_rows(c, x, w, rows, places, made);
        return;
    }
#endif
    for (int r = 0; r < rows; r++) plain_row(x, c->offsets, c->quads, w + r * c->quads, made + r * PLACES);
}

/* --- the whole convolution
 * ---------------------------------------------------------------------------------- */

typedef struct {
    int64_t to, from, count; /* places of a line of the output that a block has */
} Run;

static int runs_of(const Conv *c, int64_t first, int64_t places, Run *runs) {
    int64_t row = c->length[2], level = c->length[1] * row;
    int found = 0;
    for (int64_t line = first / row; line * row < first + places; line++) {
        int64_t d = line / c->length[1], h = line % c->length[1], begin = d * level + h * row,
                end = begin + c->out[2];
        if (d >= c->out[0] || h >= c->out[1]) continue;
        int64_t a = begin > first ? begin : first, b = end < first + places ? end : first + places;
        if (a < b) runs[found++] = (Run){(d * c->out[1] + h) * c->out[2] + a - begin, a - first, b - a};
    }
    return found;
}

BY_LEVEL(static void, hand_over,
         (const int32_t *sums, const int32_t *ones, int64_t n, uint32_t less, uint32_t zero, int32_t *to),
         (sums, ones, n, less, zero, to)) {
    if (zero)
        for (int64_t i = 0; i < n; i++)
            to[i] = (int32_t)((uint32_t)sums[i] - less - zero * (uint32_t)ones[i]);
    else
        for (int64_t i = 0; i < n; i++) to[i] = (int32_t)((uint32_t)sums[i] - less);
}

static void run_units(void *context, int64_t begin, int64_t end) {
    const Conv *c = context;
    const int64_t each = c->fours ? 4 : 1, size = c->out[0] * c->out[1] * c->out[2];
    int32_t sums[ROWS * PLACES], ones[PLACES];
    Run runs[PLACES];
    for (int64_t t = begin; t < end; t++) {
        int64_t chunk = t % c->chunks, block = t / c->chunks % c->blocks, place = t / c->chunks / c->blocks;
        int64_t group = place % c->groups, first = block * PLACES, last = (chunk + 1) * CHUNK;
        int64_t places = c->places - first < PLACES ? c->places - first : PLACES;
        if (last > c->outputs) last = c->outputs;
        const uint8_t *x = c->copied + (place * c->held * c->phases * c->plane) + first * each;
        int count = runs_of(c, first, places, runs);
        if (c->w_zero) sum_rows(c, x, c->all, 1, places, ones);
        for (int64_t o = chunk * CHUNK; o < last; o += ROWS) {
            int rows = last - o < ROWS ? (int)(last - o) : ROWS;
            sum_rows(c, x, c->weights + (group * c->outputs + o) * c->quads, rows, places, sums);
            for (int r = 0; r < rows; r++) {
                uint32_t less = (uint32_t)c->less[group * c->outputs + o + r], zero = 0;
                if (c->w_zero) {
                    zero = c->w_zero[group * c->outputs + o + r];
                    less -= zero * (uint32_t)c->x_zero *
                        (uint32_t)(c->channels * c->kernel[0] * c->kernel[1] * c->kernel[2]);
                }
                int32_t *made = c->made + (place * c->outputs + o + r) * size;
                for (int k = 0; k < count; k++)
                    hand_over(sums + r * PLACES + runs[k].from, ones + runs[k].from, runs[k].count, less,
                              zero, made + runs[k].to);
            }
        }
    }
}

BY_LEVEL(static void, sum_bytes, (const int8_t *w, int64_t n, int32_t *sum), (w, n, sum)) {
    int32_t made = 0;
    for (int64_t i = 0; i < n; i++) made += w[i];
    *sum = made;
}

/* `sets` times four lines of `taps` bytes, the bytes of a tap together. */
static void weave_taps(const uint8_t *w, int64_t taps, int64_t sets, uint32_t *made) {
    const int64_t channels[4] = {0, taps, 2 * taps, 3 * taps};
    int64_t k = 0;
#if defined(__x86_64__)
    /* Sixteen bytes of a line at a time: what is read and written too much belongs to the next set. */
    for (; taps >= 4 && taps <= 16 && k + 1 < sets; k++) {
        const uint8_t *from = w + 4 * k * taps;
        __m128i x[4], made_of[4];
        for (int i = 0; i < 4; i++) x[i] = _mm_loadu_si128((const __m128i *)(from + channels[i]));
        __m128i low = _mm_unpacklo_epi8(x[0], x[1]), low_more = _mm_unpacklo_epi8(x[2], x[3]);
        __m128i high = _mm_unpackhi_epi8(x[0], x[1]), high_more = _mm_unpackhi_epi8(x[2], x[3]);
        made_of[0] = _mm_unpacklo_epi16(low, low_more), made_of[1] = _mm_unpackhi_epi16(low, low_more);
        made_of[2] = _mm_unpacklo_epi16(high, high_more), made_of[3] = _mm_unpackhi_epi16(high, high_more);
        for (int64_t i = 0; 4 * i < taps; i++)
            _mm_storeu_si128((__m128i *)(made + k * taps + 4 * i), made_of[i]);
    }
#endif
    for (; k < sets; k++) weave(w + 4 * k * taps, channels, 1, taps, 0, made + k * taps);
}

/* The bytes `w` of one output channel, or ones, in the order of the offsets. */
static void order_weights(const Conv *c, const int8_t *w, int8_t *made) {
    int64_t taps = c->kernel[0] * c->kernel[1] * c->kernel[2], whole = 0;
    if (w && c->fours && taps == 1) {
        whole = c->channels;
        memcpy(made, w, c->channels);
        memset(made + c->channels, 0, 4 * c->quads - c->channels);
    } else if (w && c->fours) {
        whole = c->channels / 4 * 4;
        weave_taps((const uint8_t *)w, taps, whole / 4, (uint32_t *)made);
        memset(made + whole * taps, 0, 4 * c->quads - whole * taps);
    } else {
        memset(made, 0, 4 * c->quads);
    }
    for (int64_t k = whole; k < c->channels; k++)
        for (int64_t t = 0; t < taps; t++)
            made[c->fours ? ((k / 4 * taps) + t) * 4 + k % 4 : k * taps + t] = w ? w[k * taps + t] : 1;
}

typedef struct {
    Conv *conv;
    const View *weight;
    int32_t *weights, *less;
} Ordering;

static void order_range(void *context, int64_t begin, int64_t end) {
    const Ordering *all = context;
    const Conv *c = all->conv;
    int64_t terms = c->channels * c->kernel[0] * c->kernel[1] * c->kernel[2];
    for (int64_t o = begin; o < end; o++) {
        const int8_t *w = (const int8_t *)all->weight->ptr + o * terms;
        int32_t sum;
        sum_bytes(w, terms, &sum);
        all->less[o] = (int32_t)((uint32_t)sum * c->x_zero);
        order_weights(c, w, (int8_t *)(all->weights + o * c->quads));
    }
}

static void read_weights(Conv *c, const View *weight, const View *w_zero, int32_t *weights, int32_t *ones,
                         int32_t *less, uint32_t *zeros) {
    int64_t outputs = c->groups * c->outputs;
    uint32_t any = 0;
    Ordering all = {c, weight, weights, less};
    flb_parallel(order_range, &all, outputs, 1 + 100000 / (4 * c->quads));
    if (flb_given(w_zero))
        for (int64_t o = 0; o < outputs; o++)
            any |= zeros[o] =
                (uint32_t)*(const int64_t *)(w_zero->ptr + (w_zero->ndim ? o * w_zero->strides[0] : 0));
    order_weights(c, NULL, (int8_t *)ones);
    c->weights = weights, c->all = ones, c->less = less;
    c->w_zero = any ? zeros : NULL;
}

FLB_KERNEL(conv_bytes) {
    const int64_t *shape = v->x.shape, *kernel = v->weight.shape + 2, *out = v->made.shape + 2;
    Conv c = {.images = shape[0],
              .channels = v->weight.shape[1],
              .outputs = v->weight.shape[0] / n->groups,
              .groups = n->groups,
              .turn = n->x_signed ? 128 : 0,
              .x = &v->x,
              .made = (int32_t *)v->made.ptr};
    int64_t taps = kernel[0] * kernel[1] * kernel[2];
    c.plane = c.phases = 1;
    /* Strides and dilations may be any numbers where there is padding enough. */
    double bytes = (double)c.images * (double)c.groups * (double)(c.channels + 3);
    for (int i = 0; i < 3; i++) {
        c.in[i] = shape[2 + i], c.kernel[i] = kernel[i], c.out[i] = out[i];
        c.stride[i] = out[i] == 1 ? 1 : n->stride[i]; /* one place has no next one */
        c.padding[i] = n->padding[i], c.dilation[i] = kernel[i] == 1 ? 1 : n->dilation[i];
        if (!out[i]) return 0;
        bytes *= (double)out[i] * (double)c.stride[i] + (double)(kernel[i] - 1) * (double)c.dilation[i];
        if (bytes > MOST_BYTES) return -1;
        c.length[i] = out[i] + (kernel[i] - 1) * c.dilation[i] / c.stride[i];
        c.plane *= c.length[i], c.phases *= c.stride[i];
    }
    if (!c.images || !c.outputs) return 0;
    c.fours = c.channels > 1 && has_vnni();
    c.held = c.fours ? (c.channels + 3) / 4 * 4 : c.channels;
    c.quads = c.fours ? c.held / 4 * taps : (c.channels * taps + 3) / 4;
    c.places = (c.out[0] - 1) * c.length[1] * c.length[2] + (c.out[1] - 1) * c.length[2] + c.out[2];
    c.blocks = (c.places + PLACES - 1) / PLACES, c.chunks = (c.outputs + CHUNK - 1) / CHUNK;
    c.x_zero = (uint8_t)((flb_given(&v->x_zero) ? *(const int64_t *)v->x_zero.ptr : 0) + c.turn);

    int64_t outputs = c.groups * c.outputs, offsets = 4 * c.quads * 8, ordered = (outputs + 1) * c.quads * 4;
    int64_t copied = c.images * c.groups * c.held * c.phases * c.plane;
    char *memory = flb_api->scratch(offsets + ordered + 8 * outputs + copied + 4 * PLACES);
    if (!memory) return -1;
    int32_t *weights = (int32_t *)(memory + offsets), *all = weights + outputs * c.quads,
            *less = all + c.quads;
    uint32_t *zeros = (uint32_t *)less + outputs;
    c.offsets = (int64_t *)memory;
    c.copied = (uint8_t *)(zeros + outputs);
    memset(c.copied + copied, 0, 4 * PLACES); /* read behind the last place, for places that are left out */
    find_offsets(&c, (int64_t *)memory);
    read_weights(&c, &v->weight, &v->w_zero, weights, all, less, zeros);
    int64_t size = c.phases * c.plane * (c.fours ? 4 : 1);
    flb_parallel(copy_planes, &c, copied / size, 1 + 200000 / size);
    flb_parallel(run_units, &c, c.images * c.groups * c.blocks * c.chunks,
                 1 + 2000000 / (PLACES * c.quads * 4 * (c.outputs < CHUNK ? c.outputs : CHUNK)));
    flb_api->free(memory);
    return 0;
}
