/* LU and Cholesky factors of one large matrix over the thread pool: panels of columns by the library's
 * routine on one thread, the rest by its triangular solutions and products in pieces (right-looking; J.
 * Dongarra et al., "Numerical linear algebra for high-performance computers", 1998). The panel that comes
 * next is updated and factorised first, beside the other pieces, so that no thread waits for it. */
#include "kernels/lapack.h"

#define LARGE 192 /* order from which a factorisation is split */
#define PANEL 64
#define PIECE 96 /* columns of a piece */

typedef struct {
    int type;
    int64_t m, n, from, wide, next; /* the panel's first column, its width, the next one's */
    int64_t *pivots, *coming;       /* of all panels; of the next one, counted from its own first row */
    char *a;
    int64_t info;
} Blocks;

static inline char *at(const Blocks *b, int64_t i, int64_t j) {
    return b->a + (j * b->m + i) * flb_lapack_item[b->type];
}

static int64_t lu_panel(Blocks *b, int64_t from, int64_t wide, int64_t *pivots) {
    int64_t rows = b->m - from, info = 0;
    flb_lapack_routine(b->type, GETRF)(&rows, &wide, at(b, from, from), &b->m, pivots, &info);
    return (int32_t)info;
}

/* Columns [c0, c1) after the panel at `from`: its row swaps, and to the right of it the row of U and the rest
 * of the product. */
static void lu_columns(Blocks *b, int64_t c0, int64_t c1) {
    int64_t first = b->from + 1, last = b->from + b->wide, step = 1, count = c1 - c0, below = b->m - last;
    if (c0 >= c1) return;
    flb_lapack_routine(b->type, LASWP)(&count, at(b, 0, c0), &b->m, &first, &last, b->pivots, &step);
    if (c0 < last) return;
    const void *one = flb_lapack_one(b->type, 0), *minus = flb_lapack_one(b->type, 1);
    if (flb_triangular_fits(b->type))
        flb_solve_left(b->type, 0, 1, b->wide, count, at(b, b->from, b->from), b->m, at(b, b->from, c0),
                       b->m);
    else
        flb_lapack_routine(b->type, TRSM)("L", "L", "N", "U", &b->wide, &count, one, at(b, b->from, b->from),
                                          &b->m, at(b, b->from, c0), &b->m, 1L, 1L, 1L, 1L);
    if (below > 0)
        flb_lapack_routine(b->type, GEMM)("N", "N", &below, &count, &b->wide, minus, at(b, last, b->from),
                                          &b->m, at(b, b->from, c0), &b->m, one, at(b, last, c0), &b->m, 1L,
                                          1L);
}

/* Piece 0 is the next panel, then come the columns to the right of it, then those to the left of this one. */
static void lu_pieces(void *context, int64_t begin, int64_t end) {
    Blocks *b = context;
    int64_t after = b->from + b->wide + b->next, right = (b->n - after + PIECE - 1) / PIECE;
    for (int64_t i = begin; i < end; i++) {
        if (!i) {
            lu_columns(b, b->from + b->wide, after);
            if (b->next && b->from + b->wide < b->m)
                b->info = lu_panel(b, b->from + b->wide, b->next, b->coming);
        } else if (i <= right) {
            int64_t c0 = after + (i - 1) * PIECE;
            lu_columns(b, c0, c0 + PIECE < b->n ? c0 + PIECE : b->n);
        } else {
            int64_t c0 = (i - 1 - right) * 4 * PIECE;
            lu_columns(b, c0, c0 + 4 * PIECE < b->from ? c0 + 4 * PIECE : b->from);
        }
    }
}

int64_t flb_lu(int type, char *a, int64_t m, int64_t n, int64_t *pivots) {
    Blocks b = {.type = type, .m = m, .n = n, .a = a, .pivots = pivots};
    int64_t least = m < n ? m : n, found = 0, coming[PANEL];
    if (least < LARGE) {
        Fortran getrf = flb_lapack_routine(type, GETRF);
        getrf(&m, &n, a, &m, pivots, &found);
        return (int32_t)found;
    }
    b.coming = coming, b.wide = PANEL;
    b.info = lu_panel(&b, 0, b.wide, coming);
    for (;;) {
        if (b.info && !found) found = b.from + b.info;
        for (int64_t k = 0; k < b.wide; k++)
            flb_set_fortran_int(pivots, b.from + k, flb_fortran_int(coming, k) + b.from);
        int64_t done = b.from + b.wide;
        b.info = 0, b.next = least - done < PANEL ? least - done : PANEL;
        int64_t after = done + b.next, right = (n - after + PIECE - 1) / PIECE,
                left = (b.from + 4 * PIECE - 1) / (4 * PIECE);
        flb_parallel(lu_pieces, &b, 1 + right + left, 1);
        if (!b.next) return found;
        b.from = done, b.wide = b.next;
    }
}

/* Rows of the panel of L below its diagonal block. */
static void cholesky_panel(void *context, int64_t begin, int64_t end) {
    Blocks *b = context;
    int64_t from = b->from + b->wide + begin * PIECE, to = b->from + b->wide + end * PIECE;
    int64_t rows = (to < b->n ? to : b->n) - from;
    flb_lapack_routine(b->type, TRSM)("R", "L", "C", "N", &rows, &b->wide, flb_lapack_one(b->type, 0),
                                      at(b, b->from, b->from), &b->m, at(b, from, b->from), &b->m, 1L, 1L, 1L,
                                      1L);
}

/* Columns of the rest, from their diagonal block on; piece 0 is the next panel's. */
static void cholesky_rest(void *context, int64_t begin, int64_t end) {
    Blocks *b = context;
    for (int64_t i = begin; i < end; i++) {
        int64_t c0 = b->from + b->wide + i * PANEL, c1 = c0 + PANEL < b->n ? c0 + PANEL : b->n,
                columns = c1 - c0, rows = b->n - c0;
        flb_lapack_routine(b->type, GEMM)("N", "C", &rows, &columns, &b->wide, flb_lapack_one(b->type, 1),
                                          at(b, c0, b->from), &b->m, at(b, c0, b->from), &b->m,
                                          flb_lapack_one(b->type, 0), at(b, c0, c0), &b->m, 1L, 1L);
    }
}

int64_t flb_cholesky(int type, char *a, int64_t n) {
    Blocks b = {.type = type, .m = n, .n = n, .a = a};
    Fortran potrf = flb_lapack_routine(type, POTRF);
    int64_t info = 0, all = n < LARGE;
    for (; b.from < n; b.from += b.wide) {
        b.wide = all ? n : n - b.from < PANEL ? n - b.from : PANEL;
        potrf("L", &b.wide, at(&b, b.from, b.from), &n, &info, 1L);
        if ((int32_t)info) return (int32_t)info > 0 ? b.from + (int32_t)info : (int32_t)info;
        int64_t rest = n - b.from - b.wide;
        if (rest <= 0) break;
        flb_parallel(cholesky_panel, &b, (rest + PIECE - 1) / PIECE, 1);
        flb_parallel(cholesky_rest, &b, (rest + PANEL - 1) / PANEL, 1);
    }
    return 0;
}
