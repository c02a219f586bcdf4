/* Convolutions by pixels, forward and the gradient of the input: tiles of places times panels of the weight.
 */
#include "kernels/conv.h"
#include <string.h>

#if defined(__x86_64__)
#include "kernels/conv_pixels.h"

#define MOST_ROWS 12 /* of a tile */
/* Vectors of a panel in a slice of the sum. Between slices a tile's sums go through memory; within one the
 * panel is read again for each tile, where loads are scarce from the first-level cache. */
#define DEEP 1024
#define NEAR 480

/* ---- the register kernels ------------------------------------------------------------------------------ */

#define EACH _Pragma("GCC unroll 16") for

/* Whether one of so many pointers isn't this one; up to eight or sixteen are read. */
WIDE static inline int any_but(const float *zeros, const float *const *from, int many) {
    int found = ~which_are(zeros, from) & ((1 << (many < 8 ? many : 8)) - 1);
    if (many > 8) found |= ~which_are(zeros, from + 8) & ((1 << (many - 8)) - 1);
    return found;
}

/* Rows (NV vectors) at `to` = (sum (HIGH, NV vectors) +) rows of taps [t0, t1), channels [c0, c1) times rows
 * of b. Tap t of row r begins at from[t * ROWS + r]; a tap whose rows are all `zeros` is left out. `ahead`:
 * the next tile's rows of each tap are brought into the cache. */
#define PRODUCT(HIGH, NV)                                                                                    \
    WIDE static void product##NV(const float *const *from, const float *zeros, int64_t t0, int64_t t1,       \
                                 int64_t c0, int64_t c1, const float *b, const float *sum, float *const *to, \
                                 int more, int ahead) {                                                      \
        V s[HIGH][NV];                                                                                       \
        EACH(int r = 0; r < HIGH; r++)                                                                       \
        EACH(int v = 0; v < NV; v++) s[r][v] = more ? ((const V *)sum)[r * NV + v] : (V){0};                 \
        for (int64_t t = t0; t < t1; t++) {                                                                  \
            if (!any_but(zeros, from + t * ROWS, HIGH)) {                                                    \
                b += (c1 - c0) * NV * L;                                                                     \
                continue;                                                                                    \
            }                                                                                                \
            const float *row[HIGH];                                                                          \
            EACH(int r = 0; r < HIGH; r++) row[r] = from[t * ROWS + r];                                      \
            if (ahead) EACH(int r = 0; r < HIGH; r++)                                                        \
            for (int64_t c = c0; c < c1; c += L) __builtin_prefetch(from[t * ROWS + HIGH + r] + c);          \
            for (int64_t c = c0; c < c1; c++, b += NV * L) {                                                 \
                V x[NV];                                                                                     \
                EACH(int v = 0; v < NV; v++) x[v] = ((const V *)b)[v];                                       \
                EACH(int r = 0; r < HIGH; r++)                                                               \
                EACH(int v = 0; v < NV; v++) s[r][v] += row[r][c] * x[v];                                    \
            }                                                                                                \
        }                                                                                                    \
        EACH(int r = 0; r < HIGH; r++)                                                                       \
        EACH(int v = 0; v < NV; v++)((V *)to[r])[v] = s[r][v];                                               \
    }
#if VECTOR == 32
PRODUCT(8, 1)
PRODUCT(6, 2)
PRODUCT(4, 3)
#else
PRODUCT(8, 1)
PRODUCT(12, 2)
PRODUCT(8, 3)
PRODUCT(6, 4)
#endif
typedef void (*Product)(const float *const *, const float *, int64_t, int64_t, int64_t, int64_t,
                        const float *, const float *, float *const *, int, int);
#if VECTOR == 32
static const Product products[MOST_LANES] = {product1, product2, product3};
#else
static const Product products[MOST_LANES] = {product1, product2, product3, product4};
#endif
#undef EACH

/* ---- results --------------------------------------------------------------------------------------------
 */

/* Where the channels of a group lie in a result whose channels lie innermost: to[slot[p - p0]] for places
 * [p0, p1) of a phase. */
static void find_results(const PixelJob *j, const Phase *f, int64_t group, int64_t p0, int64_t p1,
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
WIDE static void store(const PixelJob *j, int64_t group, int64_t rows, int64_t o0, const float *sums,
                       int64_t wide, float *const *to) {
    int64_t left = least(wide, j->high - o0);
    const float *bias = j->bias ? j->bias + group * j->high + o0 : NULL;
    for (int64_t p = 0; p < rows; p++, sums += wide)
        for (int64_t v = 0; v < left; v += L) {
            Mask in = first_lanes(least(L, left - v));
            V r = *(const V *)(sums + v);
            if (bias) r += (V)load_masked(in, bias + v);
            store_masked(to[p] + o0 + v, in, (Lanes)r);
        }
}

/* Has the lines on their way that `store` writes for rows [r0, r1). */
static void expect(const PixelJob *j, int64_t r0, int64_t r1, int64_t o0, float *const *to) {
    int64_t left = least(j->lanes * L, j->high - o0);
    for (int64_t r = r0; r < r1; r++)
        for (int64_t v = 0; v < left; v += L) __builtin_prefetch(to[r] + o0 + v, 1);
}

/* Sums of places [p0, p1) of the only phase, which has all places, to a result in C order: turned, L by L. */
WIDE static void store_planes(const PixelJob *j, const Phase *f, int64_t group, int64_t p0, int64_t p1,
                              int64_t o0, const float *sums, int64_t wide, const int16_t *slot) {
    int64_t channels = j->high * j->groups, left = least(wide, j->high - o0);
    const float *bias = j->bias ? j->bias + group * j->high + o0 : NULL;
    for (int64_t p = p0, run; p < p1; p += run, slot += run) {
        int64_t n = p / f->places, at = p % f->places;
        run = least(least(L, f->places - at), p1 - p);
        Mask there = first_lanes(run);
        for (int64_t v = 0; v < left; v += L) {
            int64_t lanes = least(L, left - v);
            Lanes add = bias ? load_masked(first_lanes(lanes), bias + v) : (Lanes){0}, r[L];
            for (int i = 0; i < L; i++)
                r[i] = i < run ? (Lanes) * (const V *)(sums + slot[i] * wide + v) : (Lanes){0};
            if (bias)
                for (int i = 0; i < L; i++) r[i] += add;
            turn(r);
            float *to = j->to + (n * channels + group * j->high + o0 + v) * f->places + at;
            for (int64_t o = 0; o < lanes; o++) store_masked(to + o * f->places, there, r[o]);
        }
    }
}

/* Has a part of the lines on their way that `store_planes` writes: as large a part of the channels. */
static void expect_planes(const PixelJob *j, const Phase *f, int64_t group, int64_t p0, int64_t p1,
                          int64_t o0, int64_t part, int64_t parts) {
    int64_t left = least(j->lanes * L, j->high - o0), n = p0 / f->places, at = p0 % f->places,
            run = least(p1 - p0, f->places - at);
    for (int64_t o = o0 + left * part / parts; o < o0 + left * (part + 1) / parts; o++)
        for (int64_t i = 0; i < run; i += L)
            __builtin_prefetch(j->to + ((n * j->groups + group) * j->high + o) * f->places + at + i, 1);
}

/* Rows of folded sums to rows of results: of each, the sums of its taps where these read. */
WIDE static void unfold(const PixelJob *j, int64_t rows, const float *sums, const int16_t *slot, float *to) {
    const Conv *c = j->c;
    int64_t width = j->size[2], wide = j->folded * L;
    for (int64_t row = 0; row < rows; row += width)
        for (int64_t i = 0; i < width; i++) {
            V all = {0};
            for (int64_t t = 0; t < j->folded; t++) {
                int64_t reach = t * c->dilation[2] - c->padding[2],
                        at = j->what == CONV_INPUT ? i - reach : i + reach;
                if (at >= 0 && at < width) all += *(const V *)(sums + slot[row + at] * wide + t * L);
            }
            *(V *)(to + slot[row + i] * L) = all;
        }
}

/* Memory of a thread: pointers of a block, its sums, and of a panel, where each is packed when it is used. */
typedef struct {
    const float **from;
    float *sums, *panel;
} Room;

static int take_room(PixelJob *j, Room *room) {
    int64_t wide = j->lanes * L, most = 0;
    for (int64_t p = 0; p < j->count; p++) most = j->phases[p].known > most ? j->phases[p].known : most;
    size_t pointers = most * ROWS * sizeof *room->from;
    room->from = flb_api->scratch(
        pointers + (ROWS * (wide + L) + (j->in_turn ? j->all * j->depth * wide : 0)) * sizeof(float) + 64);
    if (!room->from) return j->failed = 1, -1;
    room->sums = (float *)(((uintptr_t)(room->from + most * ROWS) + 63) & ~(uintptr_t)63);
    room->panel = room->sums + ROWS * (wide + L);
    return 0;
}

/* A block of places, of one phase after the other, for panels [panel, end) of a group. */
static void make_block(const PixelJob *j, const Room *room, int64_t group, int64_t block, int64_t panel,
                       int64_t end) {
    const Conv *c = j->c;
    const float **from = room->from;
    float *sums = room->sums;
    /* Channels of a tap in a slice, or several taps whole. */
    int64_t wide = j->lanes * L, deep = (flb_few_loads() ? NEAR : DEEP) / j->lanes,
            channels = ceil_div(j->depth, ceil_div(j->depth, deep)),
            taps = channels < j->depth ? 1 : deep / (j->depth ? j->depth : 1);
    if (taps < 1) taps = 1;
    /* Blocks of all phases in turn where they have as many: what they read, and write side by side, is one.
     */
    const Phase *f = j->phases;
    if (j->alike) f += block % j->count, block /= j->count;
    else
        for (int64_t here; block >= (here = ceil_div(f->places * c->images, j->block)); f++) block -= here;
    int64_t p0 = block * j->block, p1 = least(p0 + j->block, f->places * c->images),
            rows = ceil_div(p1 - p0, j->tile) * j->tile;
    int16_t slot[ROWS];
    SIZED(flb_pixels_sort)(j, f, p0, p1, slot);
    SIZED(flb_pixels_fill)(j, f, group, 0, f->known, p0, p1, from, ROWS, slot);
    float *to[ROWS];
    if (!j->planar) find_results(j, f, group, p0, p1, slot, to);
    /* The first panel finds the pixels in whatever memory they are in. A pixel of one line is read in less
     * time than it takes to ask for it. */
    int ahead = !j->in_turn && j->depth >= 2 * L;
    for (int64_t t = 0; t < f->known; t++)
        for (int64_t r = p1 - p0; r < rows; r++) from[t * ROWS + r] = j->zeros;
    for (; panel < end; panel++, ahead = 0) {
        const float *b = j->in_turn ? room->panel + f->taps * j->depth * wide
                                    : SIZED(flb_pixels_panel)(j, j->packed, group, f, panel);
        if (!f->known || !j->depth) memset(sums, 0, rows * wide * sizeof(float));
        /* Whole vectors that nothing is added to go where they belong from the registers. */
        int straight =
            !j->planar && !j->folded && !j->bias && f->known && j->depth && (panel + 1) * wide <= j->high;
        for (int64_t t = 0; t < f->known; t += taps)
            for (int64_t k = 0; k < j->depth; k += channels) {
                int64_t t1 = least(t + taps, f->known), k1 = least(k + channels, j->depth);
                int first = !t && !k, last = straight && t1 == f->known && k1 == j->depth;
                for (int64_t r = 0; r < rows; r += j->tile) {
                    if (first && j->planar)
                        expect_planes(j, f, group, p0, p1, panel * wide, r / j->tile, rows / j->tile);
                    else if (first) expect(j, r, least(r + j->tile, p1 - p0), panel * wide, to);
                    float *made[MOST_ROWS];
                    for (int64_t q = r; q < r + j->tile; q++)
                        made[q - r] = last && q < p1 - p0 ? to[q] + panel * wide : sums + q * wide;
                    products[j->lanes - 1](from + r, j->zeros, t, t1, k, k1, b, sums + r * wide, made, t || k,
                                           ahead && r + 2 * j->tile <= rows);
                }
                b += (t1 - t) * (k1 - k) * wide;
            }
        if (straight) continue;
        const float *made = sums;
        int64_t row = j->folded ? L : wide; /* numbers of a place */
        if (j->folded) made = sums + ROWS * wide, unfold(j, p1 - p0, sums, slot, sums + ROWS * wide);
        if (j->planar) store_planes(j, f, group, p0, p1, panel * wide, made, row, slot);
        else store(j, group, p1 - p0, panel * wide, made, row, to);
    }
}

/* Piece i: a block of places of a phase, for a cut of the panels of a group. */
void SIZED(flb_pixels_product)(void *context, int64_t begin, int64_t end) {
    PixelJob *j = context;
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
void SIZED(flb_pixels_panels)(void *context, int64_t begin, int64_t end) {
    PixelJob *j = context;
    Room room;
    if (take_room(j, &room)) return;
    for (int64_t i = begin; i < end; i++) {
        int64_t group = i / j->panels, panel = i % j->panels;
        if (SIZED(flb_pixels_pack_panel)(j, group, panel, room.panel)) j->odd = 1;
        for (int64_t block = 0; block < j->blocks; block++)
            make_block(j, &room, group, block, panel, panel + 1);
    }
    flb_api->free(room.from);
}
#endif
