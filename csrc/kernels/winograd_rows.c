/* Convolutions of one and two dimensions, forward, whose rows are filtered by Winograd's F(3, 4) or F(4, 3)
 * and summed over the rows of taps: float32 with AVX-512 or AVX2, any number of channels, stride one or two
 * along rows.
 *
 * A stride of two parts a row into two, of which each meets every second tap: kernels of 7 or 8 taps are two
 * of four, 5 or 6 two of three. Three results of four taps, or four of three, take 6 products a pair of
 * channels, at the points of winograd.c, and the parts, the channels and the rows of taps are one sum at each
 * of these 6 places. So 7 by 7 taps with stride two take 84 products where there were 147.
 *
 * A row of the image is transformed once for all rows of results that read it, L tiles side by side; results
 * are made L channels side by side, row by row, while their places are in cache. A piece is a band of rows
 * of an image. All cuts depend on sizes only. What isn't finite is reported, as there. */
#include "kernels/conv.h"

#if !defined(__x86_64__)
int SIZED(flb_winograd_rows_can)(const Conv *c, int what) { return 0; }
int SIZED(flb_winograd_rows_fits)(const Conv *c, int what) { return 0; }
int SIZED(flb_winograd_rows)(const Conv *c, float *x, float *w, float *y, const float *bias, Planes *planes) {
    return -1;
}
#else
#include "kernels/winograd_lines.h"

#define PLACES 6
#define BAND 65536  /* floats of a band's transformed rows */
#define LONGEST 256 /* steps of a sum, which is made at once */
/* In products: what storing and transforming a result takes, and transforming L tiles of a row and of each
 * of its parts; the share of all products that has to be left for this to be worth it. */
#define RESULT 10
#define ROW 80
#define PART 25
#if VECTOR == 64
#define WORTH .9
#define FEW 256 /* results of a channel */
#else
/* Gathered columns, the other way, take longer. */
#define WORTH 1.4
#define FEW 64
#endif

typedef struct {
    const Conv *c;
    const float *x, *w, *bias;
    float *y, *u;
    int64_t parts, taps, made;  /* of a row; taps of a part; results of a tile, 3 or 4 */
    int64_t tiles, room, depth; /* of a row of results; the same in whole vectors; steps of a row of taps */
    int64_t band, bands,
        source; /* rows of results of a piece; pieces of an image; rows of the image they read */
    const Planes *planes;
    _Atomic int32_t *done; /* of each image: bands that are made */
    int failed, odd;       /* no memory; a result isn't finite */
} RowJob;

/* ---- products ------------------------------------------------------------------------------------------ */

/* to (HIGH, NV vectors) = the sum over `runs` times k steps of from[step * room + tile] b[step]; a run begins
 * `apart` behind the one before. */
#define ROWS(HIGH, NV)                                                                             \
    static WIDE void rows##HIGH##x##NV(int64_t runs, int64_t apart, int64_t k, const float *from,  \
                                       int64_t room, const float *b, float *to) {                  \
        V sum[HIGH][NV];                                                                           \
        _Pragma("GCC unroll 16") for (int r = 0; r < HIGH; r++)                                    \
            _Pragma("GCC unroll 2") for (int v = 0; v < NV; v++) sum[r][v] = (V){0};               \
        for (int64_t run = 0; run < runs; run++, from += apart) {                                  \
            const float *a = from;                                                                 \
            for (int64_t i = 0; i < k; i++, a += room, b += NV * L) {                              \
                V x[NV];                                                                           \
                _Pragma("GCC unroll 2") for (int v = 0; v < NV; v++) x[v] = ((const V *)b)[v];     \
                _Pragma("GCC unroll 16") for (int r = 0; r < HIGH; r++)                            \
                    _Pragma("GCC unroll 2") for (int v = 0; v < NV; v++) sum[r][v] += a[r] * x[v]; \
            }                                                                                      \
        }                                                                                          \
        _Pragma("GCC unroll 16") for (int r = 0; r < HIGH; r++)                                    \
            _Pragma("GCC unroll 2") for (int v = 0; v < NV; v++)((V *)to)[r * NV + v] = sum[r][v]; \
    }
#if VECTOR == 64
ROWS(12, 2)
ROWS(8, 2)
#else
ROWS(6, 2)
#endif
ROWS(4, 2)
ROWS(12, 1)
ROWS(8, 1)
ROWS(4, 1)

/* The kernel for `left` rows or the first of them, and how many it makes: at most three beyond the last. */
typedef void (*RowProduct)(int64_t, int64_t, int64_t, const float *, int64_t, const float *, float *);

static inline RowProduct rows_of(int64_t vectors, int64_t left, int64_t *high) {
#if VECTOR != 64 /* 16 registers */
    if (vectors == 2) {
        *high = left > 8 || left == 5 || left == 6 ? 6 : 4;
        return *high == 6 ? rows6x2 : rows4x2;
    }
#endif
    *high = left > 8 && (left < 13 || left > 16) ? 12 : left > 4 ? 8 : 4;
#if VECTOR == 64
    if (vectors == 2) return *high == 12 ? rows12x2 : *high == 8 ? rows8x2 : rows4x2;
#endif
    return *high == 12 ? rows12x1 : *high == 8 ? rows8x1 : rows4x1;
}

/* ---- the weight ---------------------------------------------------------------------------------------- */

/* Pairs of L outputs: u[pair][place][row of taps][channel][part][one or two vectors]. */
static WIDE void weight_range(void *context, int64_t begin, int64_t end) {
    RowJob *j = context;
    const Conv *c = j->c;
    int64_t high = c->kernel[1], wide = c->kernel[2], all = c->channels * high * wide,
            steps = high * j->depth;
    float *taps = flb_api->scratch(all * L * sizeof(float) + 64);
    if (!taps) {
        j->failed = 1;
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        int64_t left = c->outputs - i * 2 * L, vectors = left > L ? 2 : 1;
        for (int64_t v = 0; v < vectors; v++) {
            int64_t o = i * 2 * L + v * L;
            gather_lanes(j->w + o * all, all, all, (int)smaller(L, c->outputs - o), taps);
            for (int64_t h = 0; h < high; h++)
                for (int64_t k = 0; k < j->depth; k++) {
                    int64_t channel = k / j->parts, part = k % j->parts;
                    V g[4], at[PLACES];
                    for (int64_t t = 0; t < 4; t++) {
                        int64_t s = t * j->parts + part;
                        g[t] = s < wide ? ((const V *)taps)[c->wlast ? (h * wide + s) * c->channels + channel
                                                                     : (channel * high + h) * wide + s]
                                        : (V){0};
                    }
                    if (j->taps == 4) four_line(g, 1, at, 1);
                    else three_line(g, 1, at, 1);
                    float *to = j->u + i * PLACES * steps * 2 * L + ((h * j->depth + k) * vectors + v) * L;
                    for (int p = 0; p < PLACES; p++) *(V *)(to + p * steps * vectors * L) = at[p];
                }
        }
    }
    flb_api->free(taps);
}

/* ---- a band -------------------------------------------------------------------------------------------- */

/* Row h of an image's channel, with zeros around it, in `line`: what part f of place q of a tile reads begins
 * at (tile * made + q) * parts + f. */
static WIDE void read_row(const RowJob *j, int64_t n, int64_t channel, int64_t h, float *line, int64_t size) {
    const Conv *c = j->c;
    int64_t wide = c->in[2], lo = smaller(c->padding[2], size), count = smaller(wide, size - lo);
    if (h < 0 || h >= c->in[1]) count = 0;
    memset(line, 0, lo * sizeof(float));
    if (c->xlast) {
        const float *from = j->x + (n * c->in[1] + h) * wide * c->channels + channel;
        for (int64_t i = 0; i < count; i++) line[lo + i] = from[i * c->channels];
    } else if (count)
        memcpy(line + lo, j->x + ((n * c->channels + channel) * c->in[1] + h) * wide, count * sizeof(float));
    memset(line + lo + count, 0, (size - lo - count) * sizeof(float));
}

/* Transformed rows [h0, h0 + count) of an image: v[place][row][channel][part][tile]. */
static WIDE void transform(const RowJob *j, int64_t n, int64_t h0, int64_t count, float *line, float *v) {
    int64_t by = j->made * j->parts, size = j->room * by + L, step = j->source * j->depth * j->room;
    for (int64_t r = 0; r < count; r++)
        for (int64_t channel = 0; channel < j->c->channels; channel++) {
            read_row(j, n, channel, h0 + r, line, size);
            float *to = v + (r * j->depth + channel * j->parts) * j->room;
            for (int64_t t = 0; t < j->room; t += L) {
                V from[2 * PLACES], at[PLACES];
                gather_lanes(line + t * by, by, PLACES * j->parts, L, (float *)from);
                for (int64_t f = 0; f < j->parts; f++) {
                    input_line(from + f, j->parts, at, 1);
                    for (int p = 0; p < PLACES; p++) *(V *)(to + p * step + f * j->room + t) = at[p];
                }
            }
        }
}

/* Outputs [L o, ...) of a row, which are `vectors` of one of the places m[place][tile][vector], to y. */
static WIDE void results(RowJob *j, int64_t n, int64_t row, int64_t o, int64_t vectors, const float *m,
                         float *line) {
    const Conv *c = j->c;
    int64_t step = (j->tiles + 3) * vectors * L, places = c->out[1] * c->out[2];
    V none = {0};
    for (int64_t v = 0; v < vectors; v++) {
        int64_t first = (o + v) * L;
        int lanes = (int)smaller(L, c->outputs - first);
        V bias = j->bias ? (V)load_masked(first_lanes(lanes), j->bias + first) : (V){0};
        for (int64_t t = 0; t < j->tiles; t++) {
            const V *from = (const V *)(m + (t * vectors + v) * L);
            V *to = (V *)(line + t * j->made * L);
            if (j->made == 3) taps_line(from, step / L, to, 1);
            else output_line(from, step / L, to, 1);
            for (int64_t i = 0; i < j->made; i++) to[i] += bias, none += 0.f * to[i];
        }
        if (c->ylast)
            store_lanes(line, c->out[2], lanes, j->y + (n * places + row * c->out[2]) * c->outputs + first,
                        c->outputs);
        else
            spread_lanes(line, c->out[2], lanes, j->y + (n * c->outputs + first) * places + row * c->out[2],
                         places);
    }
    if (any_undefined((Lanes)none)) j->odd = 1;
}

static void band_range(void *context, int64_t begin, int64_t end) {
    RowJob *j = context;
    const Conv *c = j->c;
    int64_t steps = c->kernel[1] * j->depth, vstep = j->source * j->depth * j->room, most = j->tiles + 3,
            line = j->room * 4 * L;
    float *memory = flb_api->scratch((PLACES * (vstep + most * 2 * L) + line) * sizeof(float) + 64);
    if (!memory) {
        j->failed = 1;
        return;
    }
    float *v = aligned((char *)memory), *m = v + PLACES * vstep, *room = m + PLACES * most * 2 * L;
    int64_t runs = c->dilation[1] == 1 ? 1 : c->kernel[1], k = steps / runs,
            apart = c->dilation[1] * j->depth * j->room;
    for (int64_t i = begin; i < end; i++) {
        int64_t n = i / j->bands, r0 = i % j->bands * j->band, r1 = smaller(r0 + j->band, c->out[1]);
        int64_t h0 = r0 * c->stride[1] - c->padding[1];
        transform(j, n, h0, (r1 - r0 - 1) * c->stride[1] + (c->kernel[1] - 1) * c->dilation[1] + 1, room, v);
        for (int64_t row = r0; row < r1; row++)
            for (int64_t o = 0; o * L < c->outputs; o += 2) {
                int64_t vectors = c->outputs > (o + 1) * L ? 2 : 1;
                const float *from = v + (row - r0) * c->stride[1] * j->depth * j->room,
                            *b = j->u + o / 2 * PLACES * steps * 2 * L;
                for (int64_t p = 0; p < PLACES; p++)
                    for (int64_t t = 0, high; t < j->tiles; t += high)
                        rows_of(vectors, j->tiles - t, &high)(runs, apart, k, from + p * vstep + t, j->room,
                                                              b + p * steps * vectors * L,
                                                              m + (p * most + t) * vectors * L);
                results(j, n, row, o, vectors, m, room);
            }
        if (j->planes && flb_last_band(j->done + n, j->bands))
            flb_finished(j->planes, n, n + 1, 0, c->outputs);
    }
    flb_api->free(memory);
}

/* ---- what is to be done -------------------------------------------------------------------------------- */

int SIZED(flb_winograd_rows_can)(const Conv *c, int what) {
    int64_t parts = c->stride[2], taps = parts > 0 ? around(c->kernel[2], parts) : 0;
    return what == CONV_FORWARD && flb_cpu_level() >= LEVEL && c->groups == 1 && c->in[0] == 1 &&
        c->out[0] == 1 && c->kernel[0] == 1 && !c->padding[0] && parts <= 2 && (taps == 3 || taps == 4) &&
        c->dilation[2] == 1 && c->channels * parts * c->kernel[1] <= LONGEST && c->channels &&
        flb_padded_fits(c) && !flb_winograd_can(c, what) && !flb_volume_can(c, what);
}

static void measure(RowJob *j, const Conv *c) {
    j->c = c, j->parts = c->stride[2], j->taps = around(c->kernel[2], j->parts), j->made = 7 - j->taps;
    j->tiles = around(c->out[2], j->made), j->room = around(j->tiles + 3, L) * L,
    j->depth = c->channels * j->parts;
}

int SIZED(flb_winograd_rows_fits)(const Conv *c, int what) {
    if (!flb_winograd_rows_can(c, what) || c->images * c->out[1] * c->out[2] < FEW) return 0;
    RowJob j = {0};
    measure(&j, c);
    double vectors = (double)around(c->outputs, L) * L / (double)c->outputs,
           places = (double)(PLACES * around(j.tiles, 4) * 4) / (double)c->out[2],
           steps = (double)(c->kernel[1] * j.depth),
           rows = (double)(c->stride[1] * c->channels * (j.room / L)) * (double)(ROW + PART * j.parts) * L /
        (double)(c->out[2] * c->outputs);
    return vectors * (places * steps + RESULT) + rows <
        WORTH * (double)(c->channels * c->kernel[1] * c->kernel[2]);
}

int SIZED(flb_winograd_rows)(const Conv *c, float *x, float *w, float *y, const float *bias, Planes *planes) {
    RowJob j = {.x = x, .w = w, .y = y, .bias = bias};
    measure(&j, c);
    int64_t reach = (c->kernel[1] - 1) * c->dilation[1] + 1,
            rows = BAND / (PLACES * j.depth * j.room) - reach; /* beyond the first one's */
    j.band = smaller(rows < 0 ? 1 : rows / c->stride[1] + 1, c->out[1]);
    j.bands = around(c->out[1], j.band), j.band = around(c->out[1], j.bands),
    j.bands = around(c->out[1], j.band);
    j.source = (j.band - 1) * c->stride[1] + reach;
    j.planes = flb_planes_in(planes, c->outputs);
    int64_t pairs = around(c->outputs, 2 * L), counters = j.planes ? around(c->images * 4, 64) * 64 : 0;
    char *memory =
        flb_api->scratch(counters + pairs * PLACES * c->kernel[1] * j.depth * 2 * L * sizeof(float) + 64);
    if (!memory) return -1;
    if (counters) j.done = memset(memory, 0, counters);
    j.u = aligned(memory + counters);
    flb_parallel(weight_range, &j, pairs, 1 + (int64_t)(1e5 / ((double)(c->kernel[1] * j.depth) * 60)));
    double flops = 2.0 * (double)c->images * c->outputs * c->channels * c->kernel[1] * c->kernel[2] *
        c->out[1] * c->out[2];
    int64_t total = c->images * j.bands;
    if (!j.failed) flb_parallel(band_range, &j, total, (int64_t)(2e5 * (double)total / (flops + 1)) + 1);
    flb_api->free(memory);
    return j.failed ? -1 : j.odd;
}
#endif
