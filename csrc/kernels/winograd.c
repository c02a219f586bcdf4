/* Convolutions of 3 by 3 taps with stride one by Winograd's minimal filtering, F(4x4, 3x3), and both
 * adjoints, float32 with AVX-512 or AVX2.
 *
 * A tile of 4 by 4 outputs is made from 6 by 6 inputs with 36 products a pair of channels instead of 144:
 * with B, G, A from polynomial interpolation, Y = A^T [(G g G^T) * (B^T d B)] A (Lavin and Gray 2016). The
 * products of all channels at one of the 36 places are a matrix product. The points are 0, +-sqrt(1/2),
 * +-sqrt(2) and infinity: errors are about twice those of summing the taps one by one (with the usual 0, +-1,
 * +-2: five times). The gradient of the weight is F(3x3, 4x4) with the same points, summed over tiles before
 * it is transformed back; that of the input is the forward one with transposed taps.
 *
 * Inside, L channels lie together (a vector, 16 or 8, conv_lanes.h): planes come in through transposes. A
 * strip is some rows of tiles of an image, or several images where one has few tiles. Either the weight is
 * transformed once and strips are made one by one (many tiles), or all tiles lie transformed in memory and
 * blocks of the weight are transformed as they are used (few tiles). All cuts depend on sizes only.
 *
 * An infinite or undefined input spoils the whole tile here (inf - inf), not only the outputs that it
 * reaches: results that aren't finite are reported, and the caller makes them tap by tap. */
#include "kernels/conv.h"
#include <string.h>

#define PLACES 36

#if !defined(__x86_64__)
int SIZED(flb_winograd_fits)(const Conv *c, int what) { return 0; }
int SIZED(flb_winograd_can)(const Conv *c, int what) { return 0; }
int SIZED(flb_winograd)(const Conv *c, int what, float *x, float *w, float *y, const float *bias,
                        Planes *planes) {
    return -1;
}
#else
#include "kernels/winograd_lines.h"

/* ---- a convolution ------------------------------------------------------------------------------------- */

typedef struct {
    int64_t images, cin, cout, h, w, oh, ow, ph,
        pw;                    /* of the convolution that is made: for CONV_INPUT, of the transposed one */
    int64_t th, tw;            /* tiles of an image */
    int64_t per, rows, strips; /* a strip: `per` images, or `rows` rows of tiles of one image */
    int64_t most;              /* tiles of a strip, a multiple of 4 */
    int xlast, wlast, ylast;   /* channels innermost: of x, of the weight, of y */
    int transposed; /* weight (cin, cout, 3, 3) with transposed taps, instead of (cout, cin, 3, 3) */
    const float *x, *bias;
    float *weight, *y;
    /* all strips together, where that is wanted */
    int64_t tiles, step, gstep; /* tiles of all strips; floats between places of `all`, of `gall` */
    float *u, *all, *gall, *sums;
    int64_t first, last; /* CONV_WEIGHT: strips of this round; whether it ends the sums */
    int more, ends;
    const Planes *planes;
    _Atomic int32_t
        *bands; /* where a strip is a part of an image: strips of each image and L channels that are made */
    int *failed, *odd; /* no memory; a result isn't finite */
} Wino;

static void strip_at(const Wino *w, int64_t s, int64_t *n0, int64_t *n1, int64_t *r0, int64_t *r1) {
    int64_t cuts = around(w->th, w->rows);
    *n0 = w->per > 1 ? s * w->per : s / cuts, *n1 = smaller(*n0 + w->per, w->images);
    *r0 = w->per > 1 ? 0 : s % cuts * w->rows, *r1 = smaller(*r0 + w->rows, w->th);
}

static int64_t tiles_of(const Wino *w, int64_t s) {
    int64_t n0, n1, r0, r1;
    strip_at(w, s, &n0, &n1, &r0, &r1);
    return around((n1 - n0) * (r1 - r0) * w->tw, 4) * 4;
}

/* Of channels [L block, L block + L) of image n, see read_planes. */
static void read_image(const float *x, int last, int64_t n, int64_t channels, int64_t block, int64_t h,
                       int64_t wide, int64_t y0, int64_t height, int64_t x0, int64_t width, float *to) {
    x += last ? n * h * wide * channels + block * L : (n * channels + block * L) * h * wide;
    read_planes(x, last, last ? channels : h * wide, h, wide, y0, height, x0, width, to);
}

static int64_t plane_room(const Wino *w) { return (4 * w->rows + 2) * (4 * w->tw + 2) * L; }

/* Tiles of strip s, channels [L cb, L cb + L), to to[place * step + tile * L]: of the input, or of an
 * output cotangent. */
static WIDE void input_tiles(const Wino *w, int64_t s, int64_t cb, float *plane, float *to, int64_t step) {
    int64_t n0, n1, r0, r1, width = 4 * w->tw + 2, t = 0;
    strip_at(w, s, &n0, &n1, &r0, &r1);
    for (int64_t n = n0; n < n1; n++) {
        read_image(w->x, w->xlast, n, w->cin, cb, w->h, w->w, 4 * r0 - w->ph, 4 * (r1 - r0) + 2, -w->pw,
                   width, plane);
        for (int64_t r = 0; r < r1 - r0; r++)
            for (int64_t c = 0; c < w->tw; c++, t++) {
                const V *d = (const V *)(plane + (4 * r * width + 4 * c) * L);
                V half[36], whole[36];
                for (int i = 0; i < 6; i++) input_line(d + i, width, half + i, 6);
                for (int i = 0; i < 6; i++) input_line(half + 6 * i, 1, whole + 6 * i, 1);
                for (int i = 0; i < PLACES; i++) *(V *)(to + i * step + t * L) = whole[i];
            }
    }
    for (; t % 4; t++)
        for (int i = 0; i < PLACES; i++) *(V *)(to + i * step + t * L) = (V){0};
}

static WIDE void cotangent_tiles(const Wino *w, int64_t s, int64_t ob, float *plane, float *to,
                                 int64_t step) {
    int64_t n0, n1, r0, r1, width = 4 * w->tw, t = 0;
    strip_at(w, s, &n0, &n1, &r0, &r1);
    for (int64_t n = n0; n < n1; n++) {
        read_image(w->y, w->ylast, n, w->cout, ob, w->oh, w->ow, 4 * r0, 4 * (r1 - r0), 0, width, plane);
        for (int64_t r = 0; r < r1 - r0; r++)
            for (int64_t c = 0; c < w->tw; c++, t++) {
                const V *d = (const V *)(plane + (4 * r * width + 4 * c) * L);
                V half[24], whole[36];
                for (int i = 0; i < 4; i++) four_line(d + i, width, half + i, 4);
                for (int i = 0; i < 6; i++) four_line(half + 4 * i, 1, whole + 6 * i, 1);
                for (int i = 0; i < PLACES; i++) *(V *)(to + i * step + t * L) = whole[i];
            }
    }
    for (; t % 4; t++)
        for (int i = 0; i < PLACES; i++) *(V *)(to + i * step + t * L) = (V){0};
}

/* The weight of outputs [L ob, L ob + L) and input channels [c0, c1): to[place * step + (c - c0) * L]. */
static WIDE void weight_places(const Wino *w, int64_t ob, int64_t c0, int64_t c1, float *to, int64_t step) {
    float taps[16 * 16 * 9];
    for (int64_t c = c0; c < c1; c += 16) {
        int64_t k = smaller(16, c1 - c);
        if (w->wlast && w->transposed)
            for (int64_t i = 0; i < k; i++)
                load_lanes(w->weight + (c + i) * 9 * w->cout + ob * L, w->cout, 9, L, taps + i * 9 * L);
        else if (w->wlast)
            for (int64_t t = 0; t < 9; t++) {
                float lines[16 * L];
                gather_lanes(w->weight + (ob * L * 9 + t) * w->cin + c, 9 * w->cin, k, L, lines);
                store_lanes(lines, k, L, taps + t * L, 9 * L);
                if (c + 16 < c1) /* the next lines lie far from one another */
                    for (int o = 0; o < L; o++)
                        __builtin_prefetch(w->weight + ((ob * L + o) * 9 + t) * w->cin + c + 16);
            }
        else if (w->transposed)
            for (int64_t i = 0; i < k; i++)
                gather_lanes(w->weight + ((c + i) * w->cout + ob * L) * 9, 9, 9, L, taps + i * 9 * L);
        else gather_lanes(w->weight + (ob * L * w->cin + c) * 9, w->cin * 9, k * 9, L, taps);
        for (int64_t i = 0; i < k; i++, to += L) {
            V half[18], whole[36];
            const V *g = (const V *)(taps + i * 9 * L);
            V back[9];
            if (w->transposed) {
                for (int j = 0; j < 9; j++) back[j] = g[8 - j];
                g = back;
            }
            for (int j = 0; j < 3; j++) three_line(g + j, 3, half + j, 3);
            for (int j = 0; j < 6; j++) three_line(half + 3 * j, 1, whole + 6 * j, 1);
            for (int j = 0; j < PLACES; j++) *(V *)(to + j * step) = whole[j];
        }
    }
}

/* `none`: zero times what was made. */
LINE look(const Wino *w, V none) {
    if (any_undefined((Lanes)none)) *w->odd = 1;
}

/* Outputs [L ob, L ob + L) of strip s from from[place * step + tile * L]. */
static WIDE void output_tiles(const Wino *w, int64_t s, int64_t ob, const float *from, int64_t step,
                              float *plane) {
    int64_t n0, n1, r0, r1, width = 4 * w->tw, t = 0;
    strip_at(w, s, &n0, &n1, &r0, &r1);
    V bias = w->bias ? *(const V *)(w->bias + ob * L) : (V){0}, none = {0};
    for (int64_t n = n0; n < n1; n++) {
        for (int64_t r = 0; r < r1 - r0; r++)
            for (int64_t c = 0; c < w->tw; c++, t++) {
                V m[36], half[24];
                for (int i = 0; i < PLACES; i++) m[i] = *(const V *)(from + i * step + t * L);
                for (int i = 0; i < 6; i++) output_line(m + i, 6, half + i, 6);
                V *to = (V *)(plane + (4 * r * width + 4 * c) * L);
                for (int i = 0; i < 4; i++) {
                    output_line(half + 6 * i, 1, to + i * width, 1);
                    for (int j = 0; j < 4; j++) to[i * width + j] += bias, none += 0.f * to[i * width + j];
                }
            }
        float *y =
            w->y + (w->ylast ? n * w->oh * w->ow * w->cout + ob * L : (n * w->cout + ob * L) * w->oh * w->ow);
        int64_t height = smaller(4 * r1, w->oh) - 4 * r0;
        for (int64_t r = 0; r < height; r++) {
            if (w->ylast)
                store_lanes(plane + r * width * L, w->ow, L, y + (4 * r0 + r) * w->ow * w->cout, w->cout);
            else spread_lanes(plane + r * width * L, w->ow, L, y + (4 * r0 + r) * w->ow, w->oh * w->ow);
        }
    }
    look(w, none);
}

/* ---- many tiles: the weight is transformed once -------------------------------------------------------- */

static void weight_range(void *context, int64_t begin, int64_t end) {
    const Wino *w = context;
    for (int64_t i = begin; i < end; i++)
        weight_places(w, i, 0, w->cin, w->u + i * w->cin * L, w->cin * w->cout + L);
}

static void strip_range(void *context, int64_t begin, int64_t end) {
    const Wino *w = context;
    int64_t cb = w->cin / L, ob = w->cout / L, vstep = w->most * w->cin + L, mstep = w->most * w->cout + L,
            ustep = w->cin * w->cout + L;
    char *memory = flb_api->scratch((PLACES * (vstep + mstep) + plane_room(w)) * sizeof(float) + 64);
    if (!memory) {
        *w->failed = 1;
        return;
    }
    float *v = aligned(memory), *m = v + PLACES * vstep, *plane = m + PLACES * mstep;
    for (int64_t s = begin; s < end; s++) {
        int64_t tiles = tiles_of(w, s);
        for (int64_t i = 0; i < cb; i++) input_tiles(w, s, i, plane, v + i * tiles * L, vstep);
        Sum sum = {.times = 1, .blocks = cb, .ka = tiles * L, .kb = w->cin * L, .ldc = L, .cv = tiles * L};
        for (int64_t p = 0; p < PLACES; p++)
            for (int64_t o = 0; o < ob; o += 2)
                tile_products(&sum, tiles, o + 1 < ob, v + p * vstep, w->u + p * ustep + o * w->cin * L,
                              m + p * mstep + o * tiles * L);
        int64_t n0, n1, r0, r1;
        strip_at(w, s, &n0, &n1, &r0, &r1);
        int together = !w->bands && (n1 - n0) * w->cout * w->oh * w->ow * (int64_t)sizeof(float) <= TOGETHER;
        for (int64_t o = 0; o < ob; o++) {
            output_tiles(w, s, o, m + o * tiles * L, mstep, plane);
            if (!together && (!w->bands || flb_last_band(w->bands + n0 * ob + o, around(w->th, w->rows))))
                flb_finished(w->planes, n0, n1, o * L, (o + 1) * L);
        }
        if (together) flb_finished(w->planes, n0, n1, 0, w->cout);
    }
    flb_api->free(memory);
}

/* ---- few tiles: all of them lie transformed in memory, one strip --------------------------------------- */

#define DEEP 64 /* input channels whose weight is transformed at a time */

static void all_range(void *context, int64_t begin, int64_t end) {
    const Wino *w = context;
    char *memory = flb_api->scratch(plane_room(w) * sizeof(float) + 64);
    if (!memory) {
        *w->failed = 1;
        return;
    }
    for (int64_t i = begin; i < end; i++)
        input_tiles(w, 0, i, aligned(memory), w->all + i * w->most * L, w->step);
    flb_api->free(memory);
}

static void column_range(void *context, int64_t begin, int64_t end) {
    const Wino *w = context;
    int64_t ustep = 2 * DEEP * L + L, mstep = 2 * w->most * L + L;
    char *memory = flb_api->scratch((PLACES * (ustep + mstep) + plane_room(w)) * sizeof(float) + 64);
    if (!memory) {
        *w->failed = 1;
        return;
    }
    float *u = aligned(memory), *m = u + PLACES * ustep, *plane = m + PLACES * mstep;
    for (int64_t i = begin; i < end; i++) {
        int64_t o = 2 * i, two = o + 1 < w->cout / L;
        for (int64_t c0 = 0; c0 < w->cin; c0 += DEEP) {
            int64_t c1 = smaller(c0 + DEEP, w->cin);
            for (int64_t k = 0; k < 1 + two; k++) weight_places(w, o + k, c0, c1, u + k * DEEP * L, ustep);
            Sum sum = {.times = 1,
                       .blocks = (c1 - c0) / L,
                       .ka = w->most * L,
                       .kb = DEEP * L,
                       .ldc = L,
                       .cv = w->most * L,
                       .more = c0 > 0};
            for (int64_t p = 0; p < PLACES; p++)
                tile_products(&sum, w->most, (int)two, w->all + p * w->step + c0 * w->most, u + p * ustep,
                              m + p * mstep);
        }
        for (int64_t k = 0; k < 1 + two; k++) output_tiles(w, 0, o + k, m + k * w->most * L, mstep, plane);
    }
    flb_api->free(memory);
}

/* ---- the weight's gradient: rounds of strips, whose transformed tiles lie in memory -------------------- */

static void tiles_range(void *context, int64_t begin, int64_t end) {
    const Wino *w = context;
    int64_t cb = w->cin / L, ob = w->cout / L;
    char *memory = flb_api->scratch(plane_room(w) * sizeof(float) + 64);
    if (!memory) {
        *w->failed = 1;
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        int64_t k = i % (cb + ob), s = w->first + i / (cb + ob), at = 0;
        for (int64_t q = w->first; q < s; q++) at += tiles_of(w, q);
        if (k < cb) input_tiles(w, s, k, aligned(memory), w->all + (k * w->tiles + at) * L, w->step);
        else
            cotangent_tiles(w, s, k - cb, aligned(memory), w->gall + ((k - cb) * w->tiles + at) * L,
                            w->gstep);
    }
    flb_api->free(memory);
}

/* Pieces: L input channels times up to 2 L outputs. sums[piece][place][L][2 L]. */
static WIDE void taps_range(void *context, int64_t begin, int64_t end) {
    const Wino *w = context;
    int64_t ob = w->cout / L, pairs = (ob + 1) / 2, size = PLACES * L * 2 * L;
    float own[PLACES * L * 2 * L + 16], *local = aligned((char *)own), taps[L * 9 * L];
    V none = {0};
    Sum many = {.times = 1,
                .blocks = around(w->tiles, L),
                .rest = w->tiles % L,
                .ka = L * L,
                .kb = w->tiles * L,
                .ldc = 2 * L,
                .cv = L,
                .more = w->more};
    for (int64_t i = begin; i < end; i++) {
        int64_t c = i / pairs, o = i % pairs * 2, two = o + 1 < ob;
        float *sum = w->sums ? w->sums + i * size : local;
        for (int64_t p = 0; p < PLACES; p++)
            tap_products(&many, (int)two, w->all + p * w->step + c * w->tiles * L,
                         w->gall + p * w->gstep + o * w->tiles * L, sum + p * L * 2 * L);
        if (!w->ends) continue;
        for (int64_t k = 0; k < 1 + two; k++) {
            for (int64_t r = 0; r < L; r++) {
                V m[36], half[18];
                for (int j = 0; j < PLACES; j++) m[j] = *(const V *)(sum + (j * L + r) * 2 * L + k * L);
                for (int j = 0; j < 6; j++) taps_line(m + j, 6, half + j, 6);
                for (int j = 0; j < 3; j++) taps_line(half + 6 * j, 1, (V *)(taps + (r * 9 + 3 * j) * L), 1);
                for (int j = 0; j < 9; j++) none += 0.f * *(V *)(taps + (r * 9 + j) * L);
            }
            if (!w->wlast)
                spread_lanes(taps, L * 9, L, w->weight + ((o + k) * L * w->cin + c * L) * 9, w->cin * 9);
            for (int64_t t = 0; t < 9 && w->wlast; t++) {
                float lines[L * L];
                load_lanes(taps + t * L, 9 * L, L, L, lines);
                spread_lanes(lines, L, L, w->weight + ((o + k) * L * 9 + t) * w->cin + c * L, 9 * w->cin);
            }
        }
    }
    look(w, none);
}

#define TILES 32        /* about as many in a strip */
#define ALL 96          /* up to so many tiles lie in memory together */
#define ROUND (1 << 20) /* floats of transformed tiles in a round of the weight's gradient, */
#define MOST_ROUND \
    (4 << 20) /* or so many, where the sums between rounds would take more than longer rounds do */

static int forward(Wino *w, int64_t tiles) {
    int failed = 0;
    w->failed = &failed;
    double work = 72.0 * w->cin * w->cout;
    if (tiles <= ALL) {
        w->per = w->images, w->rows = w->th, w->strips = 1;
        if (w->per == 1) w->per = 2; /* images are not cut */
        w->most = tiles_of(w, 0), w->step = w->most * w->cin + L;
        char *memory = flb_api->scratch(PLACES * w->step * sizeof(float) + 64);
        if (!memory) return -1;
        w->all = aligned(memory);
        flb_parallel(all_range, w, w->cin / L, 1 + (int64_t)(2e5 / (w->most * L * 100.0)));
        if (!failed)
            flb_parallel(column_range, w, (w->cout / L + 1) / 2,
                         1 + (int64_t)(1e6 / (work * tiles) * (w->cout / L)));
        flb_api->free(memory);
        return failed ? -1 : 0;
    }
    int64_t counters = w->planes && w->per == 1 && w->rows < w->th
        ? w->images * (w->cout / L) * (int64_t)sizeof(int32_t)
        : 0;
    char *memory = flb_api->scratch(PLACES * (w->cin * w->cout + L) * sizeof(float) + 64 + counters);
    if (!memory) return -1;
    w->u = aligned(memory + counters);
    if (counters) w->bands = memset(memory, 0, counters);
    flb_parallel(weight_range, w, w->cout / L, 1 + (int64_t)(1e5 / (w->cin * 100.0)));
    if (!failed) flb_parallel(strip_range, w, w->strips, 1);
    flb_api->free(memory);
    return failed ? -1 : 0;
}

static int gradient(Wino *w) {
    int failed = 0;
    w->failed = &failed;
    int64_t pieces = w->cin / L * ((w->cout / L + 1) / 2), size = PLACES * L * 2 * L,
            each = PLACES * (w->cin + w->cout), all = 0, longest = 0, rounds = 0;
    for (int64_t s = 0; s < w->strips; s++) all += tiles_of(w, s);
    int64_t round = 2 * ROUND + pieces * size < smaller(all * each, MOST_ROUND) ? ROUND : MOST_ROUND;
    round = around(all, around(all * each, round)); /* alike */
    round = around(round, w->most) * w->most;
    for (int64_t s = 0, n = 0; s < w->strips; s++) { /* a round: as many strips as fit */
        int64_t t = tiles_of(w, s);
        if (!s || n + t > round) n = 0, rounds++;
        n += t;
        if (n > longest) longest = n;
    }
    w->step = longest * w->cin + L, w->gstep = longest * w->cout + L;
    char *memory = flb_api->scratch(PLACES * (w->step + w->gstep) * sizeof(float) + 64);
    char *sums = rounds > 1 ? flb_api->scratch(pieces * size * sizeof(float) + 64) : NULL;
    if (!memory || (rounds > 1 && !sums)) failed = 1;
    w->all = aligned(memory), w->gall = w->all + PLACES * w->step, w->sums = sums ? aligned(sums) : NULL;
    for (w->first = 0; w->first < w->strips && !failed; w->first = w->last) {
        w->tiles = 0;
        for (w->last = w->first; w->last < w->strips; w->last++) {
            int64_t t = tiles_of(w, w->last);
            if (w->last > w->first && w->tiles + t > round) break;
            w->tiles += t;
        }
        w->more = w->first > 0, w->ends = w->last == w->strips;
        flb_parallel(tiles_range, w, (w->last - w->first) * (w->cin / L + w->cout / L),
                     1 + (int64_t)(2e5 / (w->most * L * 100.0)));
        if (!failed) flb_parallel(taps_range, w, pieces, 1 + (int64_t)(1e6 / (PLACES * 1024.0 * w->tiles)));
    }
    flb_api->free(memory);
    flb_api->free(sums);
    return failed ? -1 : 0;
}

static int64_t tiles_in(const Conv *c, int what) {
    const int64_t *to = what == CONV_INPUT ? c->in : c->out;
    return c->images * around(to[1], 4) * around(to[2], 4);
}

int SIZED(flb_winograd_can)(const Conv *c, int what) {
    if (flb_cpu_level() < LEVEL || c->groups != 1 || c->channels % L || c->outputs % L ||
        c->channels < 2 * L || c->outputs < 2 * L)
        return 0;
    if (c->in[0] != 1 || c->out[0] != 1 || c->kernel[0] != 1 || c->padding[0] || c->kernel[1] != 3 ||
        c->kernel[2] != 3)
        return 0;
    for (int d = 1; d < 3; d++)
        if (c->stride[d] != 1 || c->dilation[d] != 1 || c->padding[d] > 2 ||
            c->out[d] != c->in[d] + 2 * c->padding[d] - 2)
            return 0;
    return 1;
}

int SIZED(flb_winograd_fits)(const Conv *c, int what) {
    if (!flb_winograd_can(c, what)) return 0;
    /* Nanoseconds a pair of channels, as measured: products of the tiles and transforms of the weight,
     * against products of all taps. */
    double tiles = (double)tiles_in(c, what);
    return .8 * tiles + (tiles <= ALL || what == CONV_WEIGHT ? 12 : 30) <
        .27 * (double)(c->images * c->out[1] * c->out[2]);
}

int SIZED(flb_winograd)(const Conv *c, int what, float *x, float *w, float *y, const float *bias,
                        Planes *planes) {
    int odd = 0;
    Wino o = {.images = c->images, .weight = w, .bias = bias, .odd = &odd, .wlast = c->wlast};
    o.xlast = what == CONV_INPUT ? c->ylast : c->xlast, o.ylast = what == CONV_INPUT ? c->xlast : c->ylast;
    if (what == CONV_INPUT) {
        o.cin = c->outputs, o.cout = c->channels, o.h = c->out[1], o.w = c->out[2], o.oh = c->in[1],
        o.ow = c->in[2];
        o.ph = 2 - c->padding[1], o.pw = 2 - c->padding[2], o.transposed = 1, o.x = y, o.y = x;
    } else {
        o.cin = c->channels, o.cout = c->outputs, o.h = c->in[1], o.w = c->in[2], o.oh = c->out[1],
        o.ow = c->out[2];
        o.ph = c->padding[1], o.pw = c->padding[2], o.x = x, o.y = y;
    }
    o.th = around(o.oh, 4), o.tw = around(o.ow, 4);
    int64_t image = o.th * o.tw;
    if (2 * image <= TILES) o.per = TILES / image, o.rows = o.th, o.strips = around(o.images, o.per);
    else {
        o.per = 1, o.rows = TILES / o.tw > 1 ? smaller(TILES / o.tw, o.th) : 1;
        o.strips = o.images * around(o.th, o.rows);
    }
    o.most = around(o.per * o.rows * o.tw, 4) * 4;
    /* Few tiles, or a large weight: the second-level cache has them to hold, and what takes planes would be
     * in the way; large planes have left it. */
    int fits = tiles_in(c, what) > ALL && PLACES * o.cin * o.cout <= 400000 && o.oh * o.ow <= 2048;
    o.planes = fits ? flb_planes_in(planes, L) : NULL;
    int failed = what == CONV_WEIGHT ? gradient(&o) : forward(&o, tiles_in(c, what));
    return failed ? failed : odd;
}
#endif
