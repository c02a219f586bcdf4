/* Convolutions by pixels (conv_pixels.c): what the files of their parts share. */
#ifndef FLAMBEAU_CONV_PIXELS_H
#define FLAMBEAU_CONV_PIXELS_H
#include "kernels/conv_lanes.h"

#if VECTOR == 32
#define MOST_LANES 3 /* vectors of a tile */
#else
#define MOST_LANES 4
#endif
#define ROWS 384   /* places whose sums stay in cache: twice a multiple of all tiles' rows */
#define PLACES 128 /* places of a sum of the weight's gradient */

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
    int alike;                                /* as many of each phase */
    int padded;                               /* taps read beside the image */
    int failed, odd;
} PixelJob;

static inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* conv_pixels_places.c: the row of each place of a block, and where taps read for these. */
void SIZED(flb_pixels_sort)(const PixelJob *j, const Phase *f, int64_t p0, int64_t p1, int16_t *slot);
void SIZED(flb_pixels_fill)(const PixelJob *j, const Phase *f, int64_t group, int64_t t0, int64_t t1,
                            int64_t p0, int64_t p1, const float **from, int64_t ld, const int16_t *slot);
/* conv_pixels_pack.c: where a panel lies; a panel, packed there or, `alone`, where no other lies: whether a
 * weight isn't finite; pieces that are panels of groups. */
float *SIZED(flb_pixels_panel)(const PixelJob *j, float *packed, int64_t group, const Phase *f,
                               int64_t panel);
int SIZED(flb_pixels_pack_panel)(const PixelJob *j, int64_t group, int64_t panel, float *alone);
void SIZED(flb_pixels_pack)(void *context, int64_t begin, int64_t end);
/* conv_pixels_product.c, conv_pixels_weight.c: pieces of the job. */
void SIZED(flb_pixels_product)(void *context, int64_t begin, int64_t end);
void SIZED(flb_pixels_panels)(void *context, int64_t begin, int64_t end);
void SIZED(flb_pixels_weigh)(void *context, int64_t begin, int64_t end);
#endif
