/* Matrix products: BLAS calls split over the one thread pool.
 *
 * BLAS runs each piece on one thread. Two pools would fight for the cores: the threads of OpenBLAS spin for
 * tens of milliseconds after a product, which costs every kernel that follows one core. So BLAS is set to one
 * thread when it is found (use_blas), for good. */
#include "runtime/graph.h"
#include <stdlib.h>
#include <string.h>

static int (*blas_get_threads)(void);
static void (*blas_set_threads)(int);
static GemmFn blas_gemm[2], library[2]; /* float32, float64; the library's own */

GemmFn flb_blas_gemm(int f64) { return blas_gemm[f64]; }

typedef struct {
    GemmFn fn;
    int f64, nbatch;
    char ta, tb;
    const GemmSizes *s;
    char *a, *b, *c;
    int64_t rows, columns; /* pieces of one product along m and n */
    int packed;            /* how b is packed, 0: it isn't */
} GemmCall;

#define GEMM_PIECE 1e6 /* flops that are worth a thread: some ten microseconds */
#define GEMM_SHARE \
    1.6e7 /* flops of a piece when there are more pieces than threads, so that a late thread costs little */

/* C = A B in the row-major sense, or C + A B where there is `more`, on this thread. */
void flb_blas_call(GemmFn fn, int f64, char ta, char tb, int64_t m, int64_t n, int64_t k, const void *a,
                   int64_t lda, const void *b, int64_t ldb, int more, void *c, int64_t ldc) {
    static const float one_f = 1, zero_f = 0;
    static const double one = 1, zero = 0;
    /* BLAS is column-major: C^T = B^T A^T */
    const void *alpha = f64 ? (const void *)&one : &one_f,
               *beta = more ? alpha
        : f64               ? (const void *)&zero
                            : &zero_f;
    fn(&tb, &ta, &n, &m, &k, alpha, b, &ldb, a, &lda, beta, c, &ldc);
}

/* Piece `part` of `parts` of a side, cut at multiples of `unit`: [from, to). */
static void cut(int64_t side, int64_t parts, int64_t part, int64_t unit, int64_t *from, int64_t *to) {
    int64_t step = ((side + parts - 1) / parts + unit - 1) / unit * unit;
    *from = part * step;
    *to = *from + step < side ? *from + step : side;
}

static void gemm_range(void *context, int64_t begin, int64_t end) {
    GemmCall *call = context;
    const GemmSizes *s = call->s;
    int64_t item = call->f64 ? 8 : 4, parts = call->rows * call->columns;
    for (int64_t i = begin; i < end; i++) {
        char *a = call->a, *b = call->b, *c = call->c;
        int64_t rest = i / parts, m0, m1, n0, n1;
        cut(s->m, call->rows, i % parts / call->columns, 16, &m0, &m1);
        cut(s->n, call->columns, i % call->columns, call->packed ? PACKED_CUT : 16, &n0, &n1);
        if (m0 >= m1 || n0 >= n1) continue;
        for (int d = call->nbatch - 1; d >= 0; d--) {
            const int64_t *row = s->batch + 4 * d;
            int64_t at = rest % row[0];
            rest /= row[0];
            a += at * row[1], b += at * row[2], c += at * row[3];
        }
        a += m0 * (call->ta == 'N' ? s->lda : 1) * item;
        const char *whole = call->packed ? b : NULL;
        b += n0 * (call->tb == 'N' ? 1 : s->ldb) * item;
        c += (m0 * s->ldc + n0) * item;
        if (flb_is_own(call->fn))
            flb_product_piece(call->f64, call->ta != 'N', call->tb != 'N', m1 - m0, n1 - n0, s->k, a, s->lda,
                              b, s->ldb, c, s->ldc, s->m, s->n, whole, n0, call->packed);
        else
            flb_blas_call(call->fn, call->f64, call->ta, call->tb, m1 - m0, n1 - n0, s->k, a, s->lda, b,
                          s->ldb, 0, c, s->ldc);
    }
}

/* A product with one row or one column. */
static void matrix_vector(const GemmCall *g) {
    const GemmSizes *s = g->s;
    if (s->n == 1)
        flb_gemv(g->f64, g->ta == 'N', s->m, s->k, g->a, s->lda, g->b, g->tb == 'N' ? s->ldb : 1, g->c,
                 s->ldc);
    else flb_gemv(g->f64, g->tb != 'N', s->n, s->k, g->b, s->ldb, g->a, g->ta == 'N' ? 1 : s->lda, g->c, 1);
}

/* What makes a product by a way that was chosen; the usual one where this process has no library. */
GemmFn flb_chosen(GemmFn usual, int f64, int choice) {
    int way = choice & 15;
    if (way == PRODUCT_OWN || way >= PRODUCT_PANELS) return flb_own_gemm(f64);
    return way == PRODUCT_LIBRARY && library[f64] ? library[f64] : usual;
}

static GemmFn by_choice(GemmFn fn, int f64, char tb, const GemmSizes *s, int choice) {
    return flb_chosen(flb_for_sizes(fn, f64, tb, s->m, s->n, s->k), f64, choice);
}

/* All products of a batch; a, b, c are where the buffers begin. */
void flb_gemm(GemmFn fn, int f64, char ta, char tb, const GemmSizes *s, int nbatch, int choice, char *a,
              char *b, char *c) {
    GemmCall call = {by_choice(fn, f64, tb, s, choice),
                     f64,
                     nbatch,
                     ta,
                     tb,
                     s,
                     a + s->offset[0],
                     b + s->offset[1],
                     c + s->offset[2],
                     1,
                     1,
                     (choice & 15) >= PRODUCT_PANELS ? choice & 15 : 0};
    int64_t count = 1, threads = flb_get_num_threads();
    if (choice == BY_SIZES) threads = flb_is_own(call.fn) ? threads : 4, choice = PRODUCT_USUAL;
    for (int d = 0; d < nbatch; d++) count *= s->batch[4 * d];
    if (!count || !s->m || !s->n) return;
    double flops = 2.0 * s->m * s->n * s->k;
    if (count == 1 && (s->m == 1 || s->n == 1) && s->k && !call.packed) {
        matrix_vector(&call);
        return;
    }
    if (threads == 1 || flops * count < 2 * GEMM_PIECE) {
        gemm_range(&call, 0, count);
        return;
    }
    int64_t parts = 1;
    if (choice >= BY_ROWS) {
        *(choice & BY_ROWS ? &call.rows : &call.columns) = threads;
        flb_parallel(gemm_range, &call, count * threads, 1);
        return;
    }
    if (count < 4 * threads && flops >= 2 * GEMM_PIECE) {
        parts = (int64_t)(flops / GEMM_SHARE);
        if (parts * count > 4 * threads) parts = 4 * threads / count;
        if (parts * count < threads) parts = (threads + count - 1) / count;
        double most = flops / GEMM_PIECE;
        if (parts > most) parts = (int64_t)most;
    }
    /* Each piece packs its rows of A and its columns of B: the grid with the least of both. */
    double least = 0;
    for (int64_t rows = 1; rows <= parts; rows++) {
        if (parts % rows) continue;
        double packed = (double)s->m * (parts / rows) + (double)s->n * rows;
        if (rows == 1 || packed < least) least = packed, call.rows = rows, call.columns = parts / rows;
    }
    int64_t grain = flops / parts < GEMM_PIECE ? (int64_t)(GEMM_PIECE * parts / flops) + 1 : 1;
    flb_parallel(gemm_range, &call, count * parts, grain);
}

/* use_blas(sgemm, dgemm, get_num_threads, set_num_threads): addresses in the BLAS library that products are
 * made with; 0: it has none. */
PyObject *flb_use_blas(PyObject *self, PyObject *args) {
    unsigned long long single, twice, get, set;
    if (!PyArg_ParseTuple(args, "KKKK", &single, &twice, &get, &set)) return NULL;
    library[0] = (GemmFn)(uintptr_t)single, library[1] = (GemmFn)(uintptr_t)twice;
    blas_gemm[0] = flb_best_gemm(0, (GemmFn)(uintptr_t)single);
    blas_gemm[1] = flb_best_gemm(1, (GemmFn)(uintptr_t)twice);
    blas_get_threads = (int (*)(void))(uintptr_t)get;
    blas_set_threads = (void (*)(int))(uintptr_t)set;
    if (blas_get_threads && blas_set_threads && blas_get_threads() > 1) blas_set_threads(1);
    Py_RETURN_NONE;
}

/* gemm_address(f64): the function that makes products; 0 before use_blas. */
PyObject *flb_gemm_address(PyObject *self, PyObject *arg) {
    int f64 = PyObject_IsTrue(arg);
    return f64 < 0 ? NULL : PyLong_FromUnsignedLongLong((uintptr_t)blas_gemm[f64]);
}

/* ---- products that native loops ask for ---------------------------------------------------------------- */

/* How BLAS reads a matrix that lies so, strides in bytes: the letter and the leading dimension; 0 when it
 * can't. */
static char letter(int64_t item, int64_t rows, int64_t columns, int64_t r, int64_t c, int64_t *ld) {
    if (r % item || c % item) return 0;
    r /= item, c /= item;
    if ((c == 1 || columns == 1) && (r >= columns || rows == 1)) return *ld = rows == 1 ? columns : r, 'N';
    if ((r == 1 || rows == 1) && (c >= rows || columns == 1)) return *ld = columns == 1 ? rows : c, 'T';
    return 0;
}

#define SUM(T)                                                                                \
    for (int64_t i = 0; i < m; i++)                                                           \
        for (int64_t j = 0; j < n; j++) {                                                     \
            T sum = 0;                                                                        \
            for (int64_t p = 0; p < k; p++)                                                   \
                sum += *(const T *)(a + i * ar + p * ac) * *(const T *)(b + p * br + j * bc); \
            ((T *)c)[i * n + j] = sum;                                                        \
        }

/* The rows of a matrix one after the other; NULL: no memory. */
static char *gathered(int64_t item, int64_t rows, int64_t columns, const char *from, int64_t r, int64_t c) {
    char *room = malloc(rows * columns * item), *to = room;
    for (int64_t i = 0; room && i < rows; i++)
        for (int64_t j = 0; j < columns; j++, to += item) memcpy(to, from + i * r + j * c, item);
    return room;
}

/* C (m, n), in C order, = A (m, k) B (k, n) with any strides, in bytes. */
void flb_strided_product(int64_t f64, int64_t m, int64_t n, int64_t k, const char *a, int64_t ar, int64_t ac,
                         const char *b, int64_t br, int64_t bc, char *c) {
    int64_t item = f64 ? 8 : 4;
    if (m <= 0 || n <= 0) return;
    if (n == 1 || m == 1) { /* a matrix of `out` by k */
        int64_t out = n == 1 ? m : n, row = n == 1 ? ar : bc, column = n == 1 ? ac : br,
                step = n == 1 ? br : ac;
        int by_dots = column == item || k == 1;
        if ((by_dots || row == item || out == 1) && !(row % item || column % item || step % item)) {
            flb_gemv(f64, by_dots, out, k, n == 1 ? a : b, (by_dots ? row : column) / item, n == 1 ? b : a,
                     step / item, c, 1);
            return;
        }
    }
    GemmSizes s = {.m = m, .n = n, .k = k, .ldc = n};
    char ta = letter(item, m, k, ar, ac, &s.lda), tb = letter(item, k, n, br, bc, &s.ldb), *own_a = NULL,
         *own_b = NULL;
    if (!ta && (own_a = gathered(item, m, k, a, ar, ac))) ta = 'N', s.lda = k, a = own_a;
    if (!tb && (own_b = gathered(item, k, n, b, br, bc))) tb = 'N', s.ldb = n, b = own_b;
    if (ta && tb && k) flb_gemm(blas_gemm[f64], f64, ta, tb, &s, 0, PRODUCT_USUAL, (char *)a, (char *)b, c);
    else if (f64) SUM(double)
    else SUM(float)
    free(own_a);
    free(own_b);
}
#undef SUM

/* matmul(a, b[, choice]) -> ndarray, or None when this is not for us: two float32 or float64 matrices, or
 * stacks of as many, that BLAS reads in place. */
PyObject *flb_matmul(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    if (n < 2 || n > 3 || !PyArray_Check(args[0]) || !PyArray_Check(args[1]))
        return PyErr_SetString(PyExc_TypeError, "matmul(ndarray, ndarray[, choice])"), NULL;
    long choice = n == 3 ? PyLong_AsLong(args[2]) : PRODUCT_USUAL;
    if (choice == -1 && PyErr_Occurred()) return NULL;
    if (choice < 0 || choice >= MOST_CHOICE || (choice & 15) >= PRODUCT_PANELS)
        return PyErr_Format(PyExc_ValueError, "matmul: there is no choice %ld", choice), NULL;
    PyArrayObject *a = (PyArrayObject *)args[0], *b = (PyArrayObject *)args[1];
    int nd = PyArray_NDIM(a), type = PyArray_TYPE(a), f64 = type == NPY_DOUBLE;
    if ((nd != 2 && nd != 3) || PyArray_NDIM(b) != nd || PyArray_TYPE(b) != type ||
        (type != NPY_FLOAT && type != NPY_DOUBLE))
        Py_RETURN_NONE;
    union {
        GemmSizes s;
        int64_t words[13];
    } u = {.words = {0}};
    GemmSizes *s = &u.s;
    s->m = PyArray_DIM(a, nd - 2), s->k = PyArray_DIM(a, nd - 1), s->n = PyArray_DIM(b, nd - 1);
    if (!blas_gemm[f64] || PyArray_DIM(b, nd - 2) != s->k || !s->m || !s->n || !s->k ||
        !PyArray_ISALIGNED(a) || !PyArray_ISALIGNED(b) || PyArray_ISBYTESWAPPED(a) ||
        PyArray_ISBYTESWAPPED(b))
        Py_RETURN_NONE;
    npy_intp *sa = PyArray_STRIDES(a) + nd - 2, *sb = PyArray_STRIDES(b) + nd - 2;
    char ta = letter(f64 ? 8 : 4, s->m, s->k, sa[0], sa[1], &s->lda),
         tb = letter(f64 ? 8 : 4, s->k, s->n, sb[0], sb[1], &s->ldb);
    if (!ta || !tb) Py_RETURN_NONE;
    s->ldc = s->n;
    npy_intp shape[3] = {nd == 3 ? PyArray_DIM(a, 0) : s->m, nd == 3 ? s->m : s->n, s->n};
    if (nd == 3) {
        if (PyArray_DIM(b, 0) != shape[0] || !shape[0]) Py_RETURN_NONE;
        u.words[9] = shape[0], u.words[10] = PyArray_STRIDE(a, 0), u.words[11] = PyArray_STRIDE(b, 0);
        u.words[12] = s->m * s->n * (f64 ? 8 : 4);
    }
    PyObject *out = PyArray_SimpleNew(nd, shape, type);
    if (!out) return NULL;
    Py_BEGIN_ALLOW_THREADS flb_gemm(blas_gemm[f64], f64, ta, tb, s, nd - 2, (int)choice, PyArray_DATA(a),
                                    PyArray_DATA(b), PyArray_DATA((PyArrayObject *)out));
    Py_END_ALLOW_THREADS return out;
}
