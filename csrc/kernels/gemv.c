/* A matrix times a vector: kernels of our own, in pieces over the thread pool.
 *
 * Each element of the matrix is used once, so what counts is that memory is read in long runs: rows along the
 * sum are four sums of products at a time; rows along the result are added up eight at a time, into a part of
 * the result that stays in the first-level cache. Cutting such rows across would read narrow strips (1024
 * columns of float32: 0.3 of the speed), so pieces are of rows there too, with sums of their own that are
 * added at the end. The pieces, and with them the order of every sum, follow from the sizes alone, not from
 * the number of threads. */
#include "runtime/graph.h"
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__)
#define FAST optimize("O3", "fp-contract=fast")
#else
#define FAST unused
#endif

#define HELD 2048     /* elements of the result that are summed at a time */
#define PIECE 65536   /* elements of the matrix that are worth a thread */
#define DEEP 128      /* rows of a piece with sums of its own, which cost two passes over as many columns */
#define WIDE 512      /* columns of a piece where the matrix is cut across */
#define MOST 64       /* pieces */
#define ON_STACK 4096 /* bytes of a vector that is copied */

typedef struct {
    int f64, by_dots; /* rows of the matrix lie along the sum, otherwise along the result */
    int64_t out, k, ld, incy, step;
    const char *matrix, *x;
    char *y, *sums; /* sums of the pieces but the first, where pieces are of the sum */
} Gemv;

#define KERNELS "kernels/gemv_kernels.h"
#include "kernels/for_floats.h"

static void range(void *context, int64_t begin, int64_t end) {
    const Gemv *g = context;
    int64_t item = g->f64 ? 8 : 4, all = g->by_dots || !g->sums ? g->out : g->k;
    for (int64_t i = begin; i < end; i++) {
        int64_t from = i * g->step, n = all - from < g->step ? all - from : g->step;
        if (n <= 0) continue;
        if (g->by_dots)
            (g->f64 ? by_dots_f64 : by_dots_f32)(n, g->k, g->matrix + from * g->ld * item, g->ld, g->x,
                                                 g->y + from * g->incy * item, g->incy);
        else if (!g->sums)
            (g->f64 ? by_rows_f64 : by_rows_f32)(n, g->k, g->matrix + from * item, g->ld, g->x,
                                                 g->y + from * item);
        else
            (g->f64 ? by_rows_f64 : by_rows_f32)(g->out, n, g->matrix + from * g->ld * item, g->ld,
                                                 g->x + from * item,
                                                 i ? g->sums + (i - 1) * g->out * item : g->y);
    }
}

/* y (out) = A x for A (out, k), whose rows lie `ld` elements apart, or, unless `by_dots`, for A stored as (k,
 * out) so. */
void flb_gemv(int f64, int by_dots, int64_t out, int64_t k, const void *matrix, int64_t ld, const void *x,
              int64_t incx, void *y, int64_t incy) {
    Gemv g = {.f64 = f64,
              .by_dots = by_dots,
              .out = out,
              .k = k,
              .ld = ld,
              .incy = incy,
              .matrix = matrix,
              .x = x,
              .y = y};
    int64_t item = f64 ? 8 : 4, pieces = out * k / PIECE;
    pieces = pieces < 1 ? 1 : pieces > MOST ? MOST : pieces;
    int summed = !by_dots && pieces > 1 && k >= 2 * DEEP;
    if (summed && pieces > k / DEEP) pieces = k / DEEP;
    if (!by_dots && !summed && pieces > out / WIDE) pieces = out / WIDE > 1 ? out / WIDE : 1;
    int64_t along = summed ? k : out;
    g.step = ((along + pieces - 1) / pieces + 15) / 16 * 16;
    pieces = (along + g.step - 1) / g.step;
    /* What is copied, one after the other: the vector, the result, the sums. */
    int64_t of_x = incx != 1 && k > 1 ? k : 0, of_y = !by_dots && incy != 1 && out > 1 ? out : 0,
            of_sums = summed ? (pieces - 1) * out : 0;
    char small[ON_STACK], *room = small, *taken = NULL;
    if ((of_x + of_y + of_sums) * item > ON_STACK &&
        !(room = taken = malloc((of_x + of_y + of_sums) * item))) {
        (f64 ? plainly_f64 : plainly_f32)(&g, incx);
        return;
    }
    void (*copy)(int64_t, const void *, int64_t, void *, int64_t) = f64 ? spread_f64 : spread_f32;
    if (of_x) copy(k, x, incx, room, 1), g.x = room;
    if (of_y) g.y = room + of_x * item;
    if (summed) g.sums = room + (of_x + of_y) * item;
    flb_parallel(range, &g, pieces, 1);
    if (summed)
        for (int64_t i = 0; i < pieces - 1; i++) (f64 ? add_f64 : add_f32)(out, g.sums + i * out * item, g.y);
    if (of_y) copy(out, g.y, 1, y, incy);
    free(taken);
}
