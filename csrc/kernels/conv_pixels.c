/* Convolutions of images whose channels lie innermost as products whose left operand is never gathered:
 * float32 with AVX-512 or AVX2, one to three dimensions, any stride, dilation and groups.
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
#if VECTOR == 64
int flb_pixels_in_planes(const Conv *c, int what) { return 0; }
#endif
int SIZED(flb_pixels_can)(const Conv *c, int what) { return 0; }
int SIZED(flb_pixels_fits)(const Conv *c, int what) { return 0; }
int SIZED(flb_pixels)(const Conv *c, int what, float *x, float *w, float *y, const float *bias) { return -1; }
#else
#include "kernels/conv_pixels.h"

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
#define FEW_TAPS 8
/* Places are sorted from this share of what taps read on that lies beside the image. */
#define BESIDE 0.05
/* A panel is packed when it is used where there are at most so many places, and at least so many weights. */
#define IN_TURN 1024
#define LARGE 200000

/* Rows of a tile by its vectors, of places and of the weight's outputs: so many sums that their latency is
 * hidden, and as few loads as there are registers for. */
#if VECTOR == 32
static const int rows_of[MOST_LANES + 1] = {0, 8, 6, 4}, outputs_of[MOST_LANES + 1] = {0, 8, 6, 4};
#else
static const int rows_of[MOST_LANES + 1] = {0, 8, 12, 8, 6}, outputs_of[MOST_LANES + 1] = {0, 16, 12, 8, 6};
#endif

/* Taps of a tile of the weight's gradient, which share the loads of cotangents, by the vectors of a pixel. */
#if VECTOR == 32
static const int taps_of[MOST_LANES + 1] = {1, 2, 1, 1};
#else
static const int taps_of[MOST_LANES + 1] = {1, 3, 2, 1, 1};
#endif

/* Phases of the result and their taps. */
static void find_phases(PixelJob *j) {
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

int SIZED(flb_pixels_can)(const Conv *c, int what) {
    int64_t taps = c->kernel[0] * c->kernel[1] * c->kernel[2];
    return flb_cpu_level() == LEVEL && taps <= MOST_TAPS && flb_phases_fit(c, 64) &&
        c->channels / c->groups * taps < 1 << 26;
}

#if VECTOR == 64
int flb_pixels_in_planes(const Conv *c, int what) {
    return what == CONV_INPUT ? !c->xlast && c->stride[0] * c->stride[1] * c->stride[2] == 1 : !c->ylast;
}
#endif

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
 * rows are made of, cost more than these of single numbers. With AVX2 there are no shifted rows: columns of
 * a few taps are gathered in less time than images are turned. */
int SIZED(flb_pixels_fits)(const Conv *c, int what) {
    int64_t taps = c->kernel[0] * c->kernel[1] * c->kernel[2], per = c->channels / c->groups,
            out = c->out[0] * c->out[1] * c->out[2], in = c->in[0] * c->in[1] * c->in[2];
    if (!SIZED(flb_pixels_can)(c, what) || per < L || c->outputs / c->groups < L) return 0;
    if (c->xlast && c->ylast) return 1;
    if (c->kernel[0] > 1 && taps >= 8) return 1;
    if (c->images * out < FEW || (VECTOR == 32 && taps < FEW_TAPS)) return 0;
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
static int is_in_turn(const PixelJob *j) {
    int64_t places = j->c->images * j->result[0] * j->result[1] * j->result[2];
    return places <= IN_TURN && j->all * j->depth * j->panels * j->lanes * L >= LARGE &&
        j->c->groups * j->panels >= flb_get_num_threads();
}

int SIZED(flb_pixels)(const Conv *c, int what, float *x, float *w, float *y, const float *bias) {
    int64_t per = c->channels / c->groups, made = c->outputs / c->groups,
            taps = c->kernel[0] * c->kernel[1] * c->kernel[2];
    int back = what == CONV_INPUT;
    PixelJob j = {.c = c,
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
        flb_parallel(SIZED(flb_pixels_weigh), &j, total, (int64_t)(2e5 * total / flops) + 1);
    } else {
        j.alike = 1;
        for (int64_t p = 0; p < j.count; p++) {
            int64_t here = ceil_div(j.phases[p].places * c->images, j.block);
            j.alike &= p == 0 || here * p == j.blocks;
            j.blocks += here;
        }
        j.cuts = least(j.panels, j.blocks * c->groups >= PIECES ? 1 : ceil_div(PIECES, j.blocks * c->groups));
        j.cut = ceil_div(j.panels, j.cuts), j.cuts = ceil_div(j.panels, j.cut);
        int64_t total = c->groups * j.blocks * j.cuts;
        if (!j.in_turn)
            flb_parallel(SIZED(flb_pixels_pack), &j, c->groups * j.panels,
                         1 + 100000 / (j.lanes * L * j.depth * taps + 1));
        if (j.in_turn) flb_parallel(SIZED(flb_pixels_panels), &j, c->groups * j.panels, 1);
        else if (!j.odd)
            flb_parallel(SIZED(flb_pixels_product), &j, total, (int64_t)(2e5 * total / flops) + 1);
    }
    flb_api->free(memory);
    return j.failed ? -1 : j.odd;
}
#endif
