/* Winograd's convolutions of one and of three dimensions (winograd_volume.c): what the files of their parts
 * share. */
#ifndef FLAMBEAU_WINOGRAD_VOLUME_H
#define FLAMBEAU_WINOGRAD_VOLUME_H
#include "kernels/winograd_lines.h"

#define MOST_SUMS 8 /* planes that one of the result is a sum over */
#define MOST_PLACES 36

/* Planes of the source, or of the result, in memory: `deep` of each of L channels of an image. */
typedef struct {
    int64_t channels, deep, h, w;
    int last; /* channels lie innermost */
} Planar;

typedef struct {
    int what;
    const float *x, *bias;
    float *weight, *y;
    Planar in, out;     /* of the convolution that is made: for CONV_INPUT, of the transposed one */
    int64_t ph, pw, pd; /* padding */
    int64_t sums, taps; /* planes that one of the result is a sum over; taps of a kernel */
    int64_t images, from,
        to;               /* images, or all of them as one; planes of each, of the source and the result */
    int64_t tall, places; /* rows of a tile of results, 4 or 1; places of its products, 36 or 6 */
    int64_t th, tw;       /* tiles of a plane */
    int64_t depth, rows, columns; /* of a strip: planes of the result, rows and columns of tiles of each */
    int64_t depths, bands, spans, strips; /* strips of an image along these, and of all images */
    int64_t vrows, mrows;                 /* tiles of a strip, of the source and of the result */
    int64_t vstep, mstep;                 /* floats from one place to the next */
    int transposed, wlast;                /* the weight: (in, out) with transposed taps; channels innermost */
    float *u, *all, *kept; /* the weight's places; CONV_WEIGHT: all tiles of a round, sums between rounds */
    int64_t first, last;   /* CONV_WEIGHT: strips of this round */
    int failed, odd;       /* no memory; a result isn't finite */
} Volume;

typedef struct {
    int64_t image, d0, d1, r0, r1, c0, c1, area; /* planes of the result, tiles of each, and how many */
} Strip;

static inline Strip strip_at(const Volume *w, int64_t s) {
    int64_t c = s % w->spans, r = s / w->spans % w->bands, d = s / w->spans / w->bands % w->depths;
    Strip t = {.image = s / w->spans / w->bands / w->depths,
               .d0 = d * w->depth,
               .r0 = r * w->rows,
               .c0 = c * w->columns};
    t.d1 = smaller(t.d0 + w->depth, w->to), t.r1 = smaller(t.r0 + w->rows, w->th),
    t.c1 = smaller(t.c0 + w->columns, w->tw), t.area = (t.r1 - t.r0) * (t.c1 - t.c0);
    return t;
}

/* Where L channels of plane d of an image begin, which may lie in an image behind it; numbers from a channel
 * to the next, or where these lie innermost from a pixel to the next. */
static inline int64_t plane_at(const Planar *p, int64_t image, int64_t d, int64_t block) {
    int64_t n = image + d / p->deep, area = p->h * p->w;
    d %= p->deep;
    return p->last ? (n * p->deep + d) * area * p->channels + block * L
                   : ((n * p->channels + block * L) * p->deep + d) * area;
}

static inline int64_t apart_in(const Planar *p) { return p->last ? p->channels : p->deep * p->h * p->w; }

/* Floats of the planes that a strip's tiles are read from, or written to. */
static inline int64_t plane_room(const Volume *w) {
    return (w->tall * w->rows + 2) * (4 * w->columns + 2) * L;
}

/* `none`: zero times what was made. */
LINE look(Volume *w, V none) {
    if (any_undefined((Lanes)none)) w->odd = 1;
}

/* Taps of L input channels from c on for outputs [L ob, L ob + L): (channel, tap, output). */
static WIDE void volume_taps(const Volume *w, int64_t ob, int64_t c, float *taps) {
    int64_t cin = w->in.channels, cout = w->out.channels, n = w->taps, k = L;
    if (w->wlast && w->transposed)
        for (int64_t i = 0; i < k; i++)
            load_lanes(w->weight + (c + i) * n * cout + ob * L, cout, n, L, taps + i * n * L);
    else if (w->wlast)
        for (int64_t t = 0; t < n; t++) {
            float lines[L * L];
            gather_lanes(w->weight + (ob * L * n + t) * cin + c, n * cin, k, L, lines);
            store_lanes(lines, k, L, taps + t * L, n * L);
        }
    else if (w->transposed)
        for (int64_t i = 0; i < k; i++)
            gather_lanes(w->weight + ((c + i) * cout + ob * L) * n, n, n, L, taps + i * n * L);
    else gather_lanes(w->weight + (ob * L * cin + c) * n, cin * n, k * n, L, taps);
}

/* Tiles of the source that strip s reads, channels [L block, L block + L), to to[place * vstep + tile *
 * L], plane after plane. */
void SIZED(flb_volume_sources)(const Volume *w, const Strip *s, int64_t block, float *plane, float *to);
/* winograd_volume_weight.c: the gradient of the weight; -1: no memory. */
int SIZED(flb_volume_gradient)(Volume *w);
#endif
