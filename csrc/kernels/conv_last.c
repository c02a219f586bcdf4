/* Convolutions of images whose channels lie innermost, (N, *in, C): operands that a way doesn't read so are
 * transposed, and those of one tap are products of matrices in either order.
 *
 * A convolution of one tap and stride one is Y = X W^T where rows are places and columns channels. With
 * channels last all images are one product. With channels first each image is a product of its own, of
 * transposed matrices; where images have few places, they are transposed, and are one product again.
 * Everything is cut by sizes alone. */
#include "kernels/conv.h"
#include "runtime/levels.h"
#include <string.h>

#define SMALL 64      /* places of an image below which images are transposed */
#define CACHED 262144 /* bytes of the result that a thread makes before it goes on with them */

/* ---- turning ------------------------------------------------------------------------------------------- */

typedef struct {
    const char *from;
    char *to;
    int64_t rows, columns, bands, item;
} Turn;

#define BAND 64 /* rows of a piece */

#define TURN(T)                                                    \
    for (int64_t i = r0; i < r1; i += 16)                          \
        for (int64_t j = 0; j < t->columns; j += 16)               \
            for (int64_t b = j; b < j + 16 && b < t->columns; b++) \
                for (int64_t a = i; a < i + 16 && a < r1; a++)     \
                    ((T *)to)[b * t->rows + a] = ((const T *)from)[a * t->columns + b];

static void turn_range(void *context, int64_t begin, int64_t end) {
    const Turn *t = context;
    for (int64_t i = begin; i < end; i++) {
        int64_t at = i / t->bands * t->rows * t->columns * t->item, r0 = i % t->bands * BAND,
                r1 = r0 + BAND < t->rows ? r0 + BAND : t->rows;
        const char *from = t->from + at;
        char *to = t->to + at;
        if (t->item == 8) {
            TURN(double)
        } else if (flb_cpu_level())
            flb_turn_floats((const float *)from, (float *)to, t->rows, t->columns, r0, r1);
        else {
            TURN(float)
        }
    }
}

void flb_turn(const void *from, void *to, int64_t count, int64_t rows, int64_t columns, int64_t item) {
    if (rows == 1 || columns == 1) {
        memcpy(to, from, count * rows * columns * item);
        return;
    }
    Turn t = {.from = from,
              .to = to,
              .rows = rows,
              .columns = columns,
              .bands = (rows + BAND - 1) / BAND,
              .item = item};
    flb_parallel(turn_range, &t, count * t.bands, 1 + 65536 / (BAND * columns));
}

/* ---- one tap ------------------------------------------------------------------------------------------- */

typedef struct {
    char *y;
    const char *bias;
    int64_t lines, width,
        outputs; /* lines of `width` places of a channel, or, where width is 0, places of all channels */
    int f64;
} Bias;

#define ADD(T)                                                                                 \
    for (int64_t i = begin; i < end; i++) {                                                    \
        const T *bias = (const T *)b->bias;                                                    \
        T *y = (T *)b->y + i * (b->width ? b->width : b->outputs), one = bias[i % b->outputs]; \
        if (b->width)                                                                          \
            for (int64_t k = 0; k < b->width; k++) y[k] += one;                                \
        else                                                                                   \
            for (int64_t k = 0; k < b->outputs; k++) y[k] += bias[k];                          \
    }

BY_LEVEL(static void, bias_range, (void *context, int64_t begin, int64_t end), (context, begin, end)) {
    const Bias *b = context;
    if (b->f64) {
        ADD(double)
    } else {
        ADD(float)
    }
}

/* Nothing where there is no bias. */
static void add_bias(char *y, const char *bias, int64_t width, int64_t outputs, int64_t lines, int f64) {
    Bias b = {.y = y, .bias = bias, .lines = lines, .width = width, .outputs = outputs, .f64 = f64};
    if (bias) flb_parallel(bias_range, &b, lines, 1 + 32768 / (width ? width : outputs));
}

typedef struct {
    const Planes *planes;
    int64_t first; /* in units */
} Some;

static void take_range(void *context, int64_t begin, int64_t end) {
    const Some *s = context;
    s->planes->take(s->planes->context, (s->first + begin) * s->planes->unit,
                    (s->first + end) * s->planes->unit);
}

/* One image after the other onto the same sum, a piece of `high` rows and `wide` columns of it. */
typedef struct {
    const Conv *c;
    int64_t places, high, wide, across;
    int f64, xlast, ylast;
    char *x, *w, *y;
    GemmFn gemm;
} Sum;

static void sum_range(void *context, int64_t begin, int64_t end) {
    const Sum *s = context;
    const Conv *c = s->c;
    static const float one_f = 1, zero_f = 0;
    static const double one = 1, zero = 0;
    int64_t item = s->f64 ? 8 : 4, k = s->places;
    char tx = s->xlast ? 'N' : 'T', ty = s->ylast ? 'T' : 'N';
    int64_t ldx = s->xlast ? c->channels : k, ldy = s->ylast ? c->outputs : k;
    const void *alpha = s->f64 ? (const void *)&one : &one_f;
    for (int64_t i = begin; i < end; i++) {
        int64_t o = i / s->across * s->high, p = i % s->across * s->wide;
        int64_t m = o + s->high < c->outputs ? s->high : c->outputs - o,
                n = p + s->wide < c->channels ? s->wide : c->channels - p;
        for (int64_t at = 0; at < c->images && m > 0 && n > 0; at++) {
            const void *beta = at ? alpha : s->f64 ? (const void *)&zero : &zero_f;
            const char *y = s->y + (at * c->outputs * k + o * (s->ylast ? 1 : k)) * item,
                       *x = s->x + (at * c->channels * k + p * (s->xlast ? 1 : k)) * item;
            s->gemm(&tx, &ty, &n, &m, &k, alpha, x, &ldx, y, &ldy, beta, s->w + (o * c->channels + p) * item,
                    &c->channels);
        }
    }
}

/* Pieces of at least `least`, up to `most` of them, in multiples of 16. */
static int64_t piece(int64_t side, int64_t least, int64_t most) {
    int64_t parts = side / least < 1 ? 1 : side / least < most ? side / least : most;
    return ((side + parts - 1) / parts + 15) / 16 * 16;
}

int flb_point_can(const Conv *c) {
    int64_t all = c->groups;
    for (int d = 0; d < 3; d++) all *= c->kernel[d] * c->stride[d] * (c->padding[d] + 1);
    return all == 1 && c->in[0] * c->in[1] * c->in[2] == c->out[0] * c->out[1] * c->out[2];
}

int flb_point(const Conv *c, int what, int f64, char *x, char *w, char *y, const char *bias, Planes *planes) {
    int xlast = c->xlast, ylast = c->ylast;
    int64_t item = f64 ? 8 : 4, places = c->out[0] * c->out[1] * c->out[2], rows = c->images * places;
    int64_t made = what == CONV_INPUT ? c->channels : c->outputs,
            deep = what == CONV_INPUT ? c->outputs : c->channels;
    GemmFn gemm = flb_blas_gemm(f64);
    if (planes && planes->channels % planes->unit) planes = NULL;
    if (what == CONV_WEIGHT && places >= SMALL && !(xlast && ylast)) {
        Sum s = {.c = c,
                 .places = places,
                 .f64 = f64,
                 .xlast = xlast,
                 .ylast = ylast,
                 .x = x,
                 .w = w,
                 .y = y,
                 .gemm = gemm};
        s.high = piece(c->outputs, 48, 4), s.wide = piece(c->channels, 64, s.high * 3 < c->outputs ? 1 : 4);
        s.across = (c->channels + s.wide - 1) / s.wide;
        int64_t pieces = (c->outputs + s.high - 1) / s.high * s.across;
        flb_parallel(sum_range, &s, pieces, 1 + (int64_t)(1e6 / (2.0 * s.high * s.wide * rows)));
        return 0;
    }
    /* What isn't in rows of places, and has to be. */
    char *room = NULL, *to = y;
    int whole = places < SMALL || what == CONV_WEIGHT || (xlast && ylast);
    size_t transposed_x = whole && !xlast ? (size_t)rows * c->channels * item : 0,
           transposed_y = whole && !ylast ? (size_t)rows * c->outputs * item : 0;
    if (transposed_x + transposed_y && !(room = flb_api->scratch(transposed_x + transposed_y))) return -1;
    char *own_x = transposed_x ? room : x, *own_y = transposed_y ? room + transposed_x : y;
    if (transposed_x && what != CONV_INPUT) flb_turn(x, own_x, c->images, c->channels, places, item);
    if (transposed_y && what != CONV_FORWARD) flb_turn(y, own_y, c->images, c->outputs, places, item);
    if (whole) xlast = ylast = 1;
    if (what == CONV_WEIGHT) {
        GemmSizes s = {.m = c->outputs,
                       .n = c->channels,
                       .k = rows,
                       .lda = c->outputs,
                       .ldb = c->channels,
                       .ldc = c->channels};
        flb_gemm(gemm, f64, 'T', 'N', &s, 0, BY_SIZES, own_y, own_x, w);
        flb_api->free(room);
        return 0;
    }
    to = what == CONV_INPUT ? own_x : own_y;
    char *from = what == CONV_INPUT ? own_y : own_x;
    int from_last = what == CONV_INPUT ? ylast : xlast, to_last = what == CONV_INPUT ? xlast : ylast;
    union {
        GemmSizes s;
        int64_t words[13];
    } u = {.words = {0}};
    GemmSizes *s = &u.s;
    int batch = !(from_last && to_last);
    u.words[9] = c->images, u.words[10] = to_last ? deep * places * item : 0,
    u.words[11] = to_last ? 0 : deep * places * item, u.words[12] = made * places * item;
    s->k = deep;
    if (to_last) {
        s->m = batch ? places : rows, s->n = made, s->lda = from_last ? deep : places,
        s->ldb = what == CONV_INPUT ? made : deep, s->ldc = made;
        flb_gemm(gemm, f64, from_last ? 'N' : 'T', what == CONV_INPUT ? 'N' : 'T', s, batch, BY_SIZES, from,
                 w, to);
    } else {
        s->m = made, s->n = places, s->lda = what == CONV_INPUT ? made : deep,
        s->ldb = from_last ? deep : places, s->ldc = places;
        /* Some images at a time, where something more is to be done with them. */
        int64_t image = made * places * item,
                some = bias || planes ? 1 + flb_get_num_threads() * CACHED / image : c->images;
        for (int64_t n = 0; n < c->images; n += some) {
            int64_t count = n + some < c->images ? some : c->images - n;
            u.words[9] = count;
            flb_gemm(gemm, f64, what == CONV_INPUT ? 'T' : 'N', from_last ? 'T' : 'N', s, batch, BY_SIZES, w,
                     from + n * deep * places * item, to + n * image);
            add_bias(to + n * image, bias, places, c->outputs, count * c->outputs, f64);
            if (!whole && planes) {
                planes->taken = 1;
                Some p = {planes, n * made / planes->unit};
                flb_parallel(take_range, &p, count * made / planes->unit,
                             1 + 32768 / (planes->unit * places));
            }
        }
    }
    if (to_last) add_bias(to, bias, 0, c->outputs, rows, f64);
    if (what == CONV_INPUT && transposed_x) flb_turn(own_x, x, c->images, places, c->channels, item);
    if (what == CONV_FORWARD && transposed_y) flb_turn(own_y, y, c->images, places, c->outputs, item);
    flb_api->free(room);
    return 0;
}
