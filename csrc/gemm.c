/* Matrix products: BLAS calls split over the one thread pool.
 *
 * BLAS runs each piece on one thread. Two pools would fight for the cores: the threads of OpenBLAS spin for tens of milliseconds after a
 * product, which costs every kernel that follows one core. So BLAS is set to one thread when it is found (use_blas), for good. */
#include "graph.h"

static int (*blas_get_threads)(void);
static void (*blas_set_threads)(int);
static GemmFn blas_gemm[2];     /* float32, float64 */
typedef void (*GemvFn)(const char *, const int64_t *, const int64_t *, const void *, const void *, const int64_t *, const void *, const int64_t *,
                       const void *, void *, const int64_t *);
static GemvFn blas_gemv[2];

GemmFn flb_blas_gemm(int f64) { return blas_gemm[f64]; }

typedef struct {
    GemmFn fn;
    int f64, nbatch;
    char ta, tb;
    const GemmSizes *s;
    char *a, *b, *c;
    int64_t rows, columns;      /* pieces of one product along m and n */
} GemmCall;

#define GEMM_PIECE 1e6          /* flops that are worth a thread: some ten microseconds */
#define GEMM_SHARE 1.6e7        /* flops of a piece when there are more pieces than threads, so that a late thread costs little */

/* C = A B in the row-major sense, on this thread. */
void flb_blas_call(GemmFn fn, int f64, char ta, char tb, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda, const void *b, int64_t ldb, void *c, int64_t ldc) {
    static const float one_f = 1, zero_f = 0;
    static const double one = 1, zero = 0;
    /* BLAS is column-major: C^T = B^T A^T */
    fn(&tb, &ta, &n, &m, &k, f64 ? (const void *)&one : &one_f, b, &ldb, a, &lda, f64 ? (const void *)&zero : &zero_f, c, &ldc);
}

/* Piece `part` of `parts` of a side, cut at multiples of 16: [from, to). */
static void cut(int64_t side, int64_t parts, int64_t part, int64_t *from, int64_t *to) {
    int64_t step = ((side + parts - 1) / parts + 15) / 16 * 16;
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
        cut(s->m, call->rows, i % parts / call->columns, &m0, &m1);
        cut(s->n, call->columns, i % call->columns, &n0, &n1);
        if (m0 >= m1 || n0 >= n1) continue;
        for (int d = call->nbatch - 1; d >= 0; d--) {
            const int64_t *row = s->batch + 4 * d;
            int64_t at = rest % row[0];
            rest /= row[0];
            a += at * row[1], b += at * row[2], c += at * row[3];
        }
        a += m0 * (call->ta == 'N' ? s->lda : 1) * item;
        b += n0 * (call->tb == 'N' ? 1 : s->ldb) * item;
        c += (m0 * s->ldc + n0) * item;
        flb_blas_call(call->fn, call->f64, call->ta, call->tb, m1 - m0, n1 - n0, s->k, a, s->lda, b, s->ldb, c, s->ldc);
    }
}

/* A matrix times a vector: `out` sums over k. Column-major, the matrix is k by out ("T") or out by k ("N"). */
typedef struct {
    GemvFn fn;
    int f64;
    char trans;
    int64_t out, k, ld, incx, incy, pieces;
    int by_sum;                 /* pieces of the sums, added up at the end, instead of pieces of the result */
    char *matrix, *x, *y;
    double *partial;
} GemvCall;

#define GEMV_PIECE 65536        /* elements of the matrix that are worth a thread */
#define GEMV_PARTIAL 2048       /* numbers in the partial sums, on the stack */

static void gemv_range(void *context, int64_t begin, int64_t end) {
    GemvCall *call = context;
    static const float one_f = 1, zero_f = 0;
    static const double one = 1, zero = 0;
    const void *alpha = call->f64 ? (const void *)&one : &one_f, *beta = call->f64 ? (const void *)&zero : &zero_f;
    int64_t item = call->f64 ? 8 : 4;
    for (int64_t i = begin; i < end; i++) {
        int64_t from, to, out = call->out, k = call->k, incy = call->incy;
        char *a = call->matrix, *x = call->x, *y = call->y;
        cut(call->by_sum ? k : out, call->pieces, i, &from, &to);
        if (from >= to) continue;
        /* One step along the result moves by ld in "T", by 1 in "N"; along the sum the other way round. */
        a += from * ((call->trans == 'T') == !call->by_sum ? call->ld : 1) * item;
        if (call->by_sum) {
            k = to - from, x += from * call->incx * item;
            y = (char *)call->partial + i * out * item, incy = 1;
        } else {
            out = to - from, y += from * incy * item;
        }
        call->fn(&call->trans, call->trans == 'T' ? &k : &out, call->trans == 'T' ? &out : &k, alpha, a, &call->ld, x, &call->incx, beta, y, &incy);
    }
}

static void gemv(GemvCall *call) {
    double partial[GEMV_PARTIAL];
    /* The number of pieces follows from the sizes alone: the result doesn't depend on the number of threads. */
    int64_t pieces = call->out * call->k / GEMV_PIECE;
    if (pieces > 64) pieces = 64;
    call->pieces = pieces < 1 ? 1 : pieces, call->by_sum = 0;
    if (call->out < 16 * call->pieces) {
        call->by_sum = call->pieces > 1 && call->k >= 16 * call->pieces && call->out * call->pieces <= GEMV_PARTIAL;
        if (!call->by_sum) call->pieces = 1;
    }
    call->partial = partial;
    flb_parallel(gemv_range, call, call->pieces, 1);
    if (!call->by_sum) return;
    int64_t step = ((call->k + call->pieces - 1) / call->pieces + 15) / 16 * 16, used = (call->k + step - 1) / step;
    for (int64_t j = 0; j < call->out; j++) {
        double sum = 0;
        for (int64_t i = 0; i < used; i++) sum += call->f64 ? partial[i * call->out + j] : ((float *)partial)[i * call->out + j];
        if (call->f64) *(double *)(call->y + j * call->incy * 8) = sum;
        else *(float *)(call->y + j * call->incy * 4) = (float)sum;
    }
}

/* A product with one row or one column. */
static void matrix_vector(const GemmCall *g) {
    const GemmSizes *s = g->s;
    GemvCall call = {.fn = blas_gemv[g->f64], .f64 = g->f64, .k = s->k, .y = g->c};
    if (s->n == 1) {
        call.trans = g->ta == 'N' ? 'T' : 'N', call.out = s->m, call.ld = s->lda, call.matrix = g->a;
        call.x = g->b, call.incx = g->tb == 'N' ? s->ldb : 1, call.incy = s->ldc;
    } else {
        call.trans = g->tb, call.out = s->n, call.ld = s->ldb, call.matrix = g->b;
        call.x = g->a, call.incx = g->ta == 'N' ? 1 : s->lda, call.incy = 1;
    }
    gemv(&call);
}

/* All products of a batch; a, b, c are where the buffers begin. */
void flb_gemm(GemmFn fn, int f64, char ta, char tb, const GemmSizes *s, int nbatch, char *a, char *b, char *c) {
    GemmCall call = {fn, f64, nbatch, ta, tb, s, a + s->offset[0], b + s->offset[1], c + s->offset[2], 1, 1};
    int64_t count = 1, threads = flb_get_num_threads();
    for (int d = 0; d < nbatch; d++) count *= s->batch[4 * d];
    if (!count || !s->m || !s->n) return;
    double flops = 2.0 * s->m * s->n * s->k;
    if (count == 1 && (s->m == 1 || s->n == 1) && s->k && blas_gemv[f64]) {
        matrix_vector(&call);
        return;
    }
    if (threads == 1 || flops * count < 2 * GEMM_PIECE) {
        gemm_range(&call, 0, count);
        return;
    }
    int64_t parts = 1;
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

/* use_blas(sgemm, dgemm, sgemv, dgemv, get_num_threads, set_num_threads): addresses in the BLAS library that products are made with; 0: it has none. */
PyObject *flb_use_blas(PyObject *self, PyObject *args) {
    unsigned long long single, twice, vector, vector_twice, get, set;
    if (!PyArg_ParseTuple(args, "KKKKKK", &single, &twice, &vector, &vector_twice, &get, &set)) return NULL;
    blas_gemm[0] = flb_best_gemm(0, (GemmFn)(uintptr_t)single);
    blas_gemm[1] = flb_best_gemm(1, (GemmFn)(uintptr_t)twice);
    blas_gemv[0] = (GemvFn)(uintptr_t)vector;
    blas_gemv[1] = (GemvFn)(uintptr_t)vector_twice;
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

/* How BLAS reads the last two dimensions of an array: the letter and the leading dimension; 0 when it can't. */
static char reading(PyArrayObject *a, int64_t *ld) {
    int nd = PyArray_NDIM(a);
    npy_intp item = PyArray_ITEMSIZE(a), rows = PyArray_DIM(a, nd - 2), columns = PyArray_DIM(a, nd - 1);
    npy_intp r = PyArray_STRIDE(a, nd - 2), c = PyArray_STRIDE(a, nd - 1);
    if (r % item || c % item) return 0;
    r /= item, c /= item;
    if ((c == 1 || columns == 1) && (r >= columns || rows == 1)) return *ld = rows == 1 ? columns : r, 'N';
    if ((r == 1 || rows == 1) && (c >= rows || columns == 1)) return *ld = columns == 1 ? rows : c, 'T';
    return 0;
}

/* matmul(a, b) -> ndarray, or None when this is not for us: two float32 or float64 matrices, or stacks of as many, that BLAS reads in place. */
PyObject *flb_matmul(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    if (n != 2 || !PyArray_Check(args[0]) || !PyArray_Check(args[1])) return PyErr_SetString(PyExc_TypeError, "matmul(ndarray, ndarray)"), NULL;
    PyArrayObject *a = (PyArrayObject *)args[0], *b = (PyArrayObject *)args[1];
    int nd = PyArray_NDIM(a), type = PyArray_TYPE(a), f64 = type == NPY_DOUBLE;
    if ((nd != 2 && nd != 3) || PyArray_NDIM(b) != nd || PyArray_TYPE(b) != type || (type != NPY_FLOAT && type != NPY_DOUBLE)) Py_RETURN_NONE;
    union {
        GemmSizes s;
        int64_t words[13];
    } u = {.words = {0}};
    GemmSizes *s = &u.s;
    s->m = PyArray_DIM(a, nd - 2), s->k = PyArray_DIM(a, nd - 1), s->n = PyArray_DIM(b, nd - 1);
    if (!blas_gemm[f64] || PyArray_DIM(b, nd - 2) != s->k || !s->m || !s->n || !s->k || !PyArray_ISALIGNED(a) || !PyArray_ISALIGNED(b) ||
        PyArray_ISBYTESWAPPED(a) || PyArray_ISBYTESWAPPED(b)) Py_RETURN_NONE;
    char ta = reading(a, &s->lda), tb = reading(b, &s->ldb);
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
    Py_BEGIN_ALLOW_THREADS
    flb_gemm(blas_gemm[f64], f64, ta, tb, s, nd - 2, PyArray_DATA(a), PyArray_DATA(b), PyArray_DATA((PyArrayObject *)out));
    Py_END_ALLOW_THREADS
    return out;
}
