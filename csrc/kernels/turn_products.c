/* Products of a vector and a matrix that the turns of a loop ask for one by one, made several at once.
 *
 * A turn that multiplies a column by a matrix reads all of the matrix for one row of results. Where two turns
 * have shown how far the operands move from one to the next (`x[:, i] @ x[:, i:]`), the rows of the turns
 * that follow are made with theirs, as one product, and kept until they are asked for. What has been made is
 * used only where the operands are where they were expected, so a wrong guess costs time and nothing else. A
 * guess is never made of memory that the loop writes, nor outside of the arrays, and what raises a status
 * flag of floating-point arithmetic, which a turn that isn't run wouldn't, is thrown away. How many rows are
 * made at once depends on what has been asked for only: results don't depend on the threads. */
#include "runtime/floating.h"
#include "runtime/graph.h"
#include <stdlib.h>
#include <string.h>

enum { MOST = 16, SITES = 4 };
#define WORTH 4096               /* multiply-adds of a product of one turn */
#define ROOM (1 << 20)           /* bytes that are kept */
#define STAYS ((int64_t)1 << 62) /* turns that one result serves, where the operands stay */

typedef struct {
    const char *vector, *matrix;
    int64_t length, k;  /* elements of the result, and of a sum */
    int64_t vk, mk, mc; /* byte strides: of the vector, of the matrix along sums and along the result */
} Product;

/* What the kernel keeps of a product in its text: loops/turn_products.py has room for 16 words, zeros at
 * first. */
typedef struct {
    Product last;
    int64_t asked;                        /* products so far: none, one, or more */
    int64_t vector_on, matrix_on, longer; /* what a turn adds to the places, in bytes, and to the length */
    int64_t block;                        /* the number of what is kept; 0: nothing is */
    int64_t rows, row, width; /* turns that it is for, the next one of them, elements from row to row */
    int64_t most;             /* turns to try; negative: none, for good */
} Turns;
_Static_assert(sizeof(Turns) == 16 * sizeof(int64_t), "room in the kernel");

/* An array that nothing writes while the loop runs: its sizes, followed by its strides. ndim 0: something
 * may. */
typedef struct {
    const char *base;
    const int64_t *sizes;
    int64_t ndim;
} Array;

/* A thread's blocks, which products of the text share by their number. */
static __thread struct {
    int64_t number, bytes;
    char *data;
} kept[SITES];

static int64_t blocks; /* of all threads, so far */

static void reach(int64_t n, int64_t stride, int64_t *low, int64_t *high) {
    *(stride < 0 ? low : high) += (n - 1) * stride;
}

/* Whether n0 by n1 elements that begin at p lie between the first and the last one of the array. */
static int lies_in(const Array *x, const char *p, int64_t n0, int64_t s0, int64_t n1, int64_t s1) {
    int64_t low = 0, high = 0, at = (intptr_t)p - (intptr_t)x->base, first = at, last = at;
    for (int64_t d = 0; d < x->ndim; d++) {
        if (x->sizes[d] <= 0) return 0;
        reach(x->sizes[d], x->sizes[x->ndim + d], &low, &high);
    }
    reach(n0, s0, &first, &last);
    reach(n1, s1, &first, &last);
    return first >= low && last <= high;
}

static int lie_alike(const Product *a, const Product *b) {
    return a->k == b->k && a->vk == b->vk && a->mk == b->mk && a->mc == b->mc;
}

static int stays(const Turns *t) { return !t->vector_on && !t->matrix_on && !t->longer; }

/* By how many columns the matrix moves with a turn, where it moves by columns. */
static int64_t columns_on(const Turns *t) { return t->matrix_on ? t->matrix_on / t->last.mc : 0; }

static int moves_by_columns(const Turns *t) {
    return !t->matrix_on || (t->last.mc && t->matrix_on % t->last.mc == 0);
}

/* Columns of later turns that lie in front of those of the first one of `rows`. */
static int64_t in_front(const Turns *t, int64_t rows) {
    int64_t on = columns_on(t);
    return on < 0 ? (rows - 1) * -on : 0;
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* How many turns from this one on are worth one product, at most `rows`, and how wide that is. */
static int64_t together(Turns *t, int64_t rows, int64_t item, const Array *v, const Array *m) {
    const Product *p = &t->last;
    if (!moves_by_columns(t)) return 1;
    int64_t on = columns_on(t);
    if (on > p->length || -on > p->length) return 1;
    for (; rows > 1; rows /= 2) {
        int64_t last = rows - 1, front = in_front(t, rows), longer = last * t->longer,
                more = front + larger(last * on + longer, 0);
        t->width = p->length + more;
        /* A vector that moves is multiplied by all columns, and its turn wants some: by few others. */
        if ((t->vector_on && 2 * larger(more, more - longer) > p->length) || p->length + longer < 1) continue;
        if ((t->vector_on ? rows : 1) * t->width * item > ROOM) continue;
        if (lies_in(v, p->vector, rows, t->vector_on, p->k, p->vk) &&
            lies_in(m, p->matrix - front * p->mc, p->k, p->mk, t->width, p->mc))
            return rows;
    }
    return 1;
}

/* Memory for a block; NULL: there is none. */
static char *room_for(int site, int64_t bytes) {
    kept[site].number = 0;
    if (bytes > kept[site].bytes) {
        free(kept[site].data);
        kept[site].data = malloc(bytes);
        kept[site].bytes = kept[site].data ? bytes : 0;
    }
    return kept[site].data;
}

/* Make the products of `rows` turns. 0: there is no memory, or a flag was raised. */
static int make(Turns *t, int site, int64_t rows, int f64) {
    const Product *p = &t->last;
    int64_t lines = t->vector_on ? rows : 1;
    char *data = room_for(site, lines * t->width * (f64 ? 8 : 4));
    if (!data) return 0;
    unsigned before = flb_floating_flags();
    flb_floating_clear();
    flb_strided_product(f64, lines, t->width, p->k, p->vector, t->vector_on, p->vk,
                        p->matrix - in_front(t, rows) * p->mc, p->mk, p->mc, data);
    unsigned raised = flb_floating_flags();
    flb_floating_clear();
    flb_floating_raise(before);
    if (raised) {
        t->most = -1;
        return 0;
    }
    t->block = kept[site].number = __atomic_add_fetch(&blocks, 1, __ATOMIC_RELAXED);
    t->rows = stays(t) ? STAYS : rows;
    t->row = 0;
    return 1;
}

/* The next row of the block. */
static void give(Turns *t, int site, int64_t item, char *out) {
    int64_t at = in_front(t, t->rows) + t->row * columns_on(t) + (t->vector_on ? t->row * t->width : 0);
    memcpy(out, kept[site].data + at * item, t->last.length * item);
    if (!stays(t)) t->row++;
}

/* Whether the product moves on as the ones before it have, so that the next ones may be guessed. */
static int moves_on(Turns *t, const Product *p) {
    int64_t vector_on = p->vector - t->last.vector, matrix_on = p->matrix - t->last.matrix,
            longer = p->length - t->last.length;
    int as_before = t->asked == 1 ||
        (t->asked && vector_on == t->vector_on && matrix_on == t->matrix_on && longer == t->longer);
    as_before = as_before && lie_alike(&t->last, p);
    t->vector_on = vector_on, t->matrix_on = matrix_on, t->longer = longer;
    t->last = *p;
    t->asked = t->asked ? 2 : 1;
    return as_before;
}

/* C = A B as flb_strided_product makes it, of which one is a vector. `site`: the number of the product in the
 * text; `left`: turns that there will be at most, this one included. */
void flb_turn_product(int64_t *words, int64_t site, int64_t left, const char *a_base, const int64_t *a_sizes,
                      int64_t a_ndim, const char *b_base, const int64_t *b_sizes, int64_t b_ndim, int64_t f64,
                      int64_t m, int64_t n, int64_t k, const char *a, int64_t ar, int64_t ac, const char *b,
                      int64_t br, int64_t bc, char *c) {
    Turns *t = (Turns *)words;
    if ((m != 1 && n != 1) || !a_ndim || !b_ndim || m * n * k < WORTH || t->most < 0) {
        flb_strided_product(f64, m, n, k, a, ar, ac, b, br, bc, c);
        return;
    }
    int by_row = m == 1;
    int64_t item = f64 ? 8 : 4;
    Array left_array = {a_base, a_sizes, a_ndim}, right_array = {b_base, b_sizes, b_ndim};
    Product p = {by_row ? a : b,   by_row ? b : a,   by_row ? n : m,  k,
                 by_row ? ac : br, by_row ? br : ac, by_row ? bc : ar};
    site %= SITES;
    int made = t->block && t->block == kept[site].number && t->row < t->rows;
    if (made && lie_alike(&p, &t->last) && p.vector == t->last.vector + t->vector_on &&
        p.matrix == t->last.matrix + t->matrix_on && p.length == t->last.length + t->longer) {
        t->last = p;
        give(t, site, item, c);
        return;
    }
    if (!t->most) t->most = MOST;
    if (t->block) t->most = t->row < t->rows ? larger(t->most / 2, 1) : t->most < MOST ? 2 * t->most : MOST;
    else if (t->asked > 1 && t->most == 1) t->most = 2;
    t->block = 0;
    if (moves_on(t, &p)) {
        int64_t most = t->most < left ? t->most : left, rows = 1;
        if (stays(t) && left > 1) t->width = p.length, rows = most > 1 ? most : 1;
        else
            rows = together(t, most, item, by_row ? &left_array : &right_array,
                            by_row ? &right_array : &left_array);
        if (rows > 1 && make(t, site, rows, (int)f64)) {
            give(t, site, item, c);
            return;
        }
    }
    flb_strided_product(f64, m, n, k, a, ar, ac, b, br, bc, c);
}

PyObject *flb_turn_blocks(PyObject *self, PyObject *unused) {
    return PyLong_FromLongLong(__atomic_load_n(&blocks, __ATOMIC_RELAXED));
}
