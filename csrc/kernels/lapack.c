/* Linear algebra of batches of matrices by LAPACK, the library's that products are made with: each matrix is
 * copied into column-major order (where its result lies, if it has the same size), worked on there by one
 * thread, and batches go over the pool; one large matrix goes over it in blocks (lapack_blocks.c), many
 * right-hand sides in columns.
 *
 * The caller (base/lapack.py) has checked sizes and dtypes, and made the results: matrices among them are
 * column-major, leading dimension their rows, unless it says otherwise. */
#include "kernels/lapack.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static Fortran routines[4][ROUTINES];
static int wide;

const int flb_lapack_item[4] = {4, 8, 8, 16}, flb_lapack_real[4] = {4, 8, 4, 8};

Fortran flb_lapack_routine(int type, int routine) { return routines[type][routine]; }
int flb_lapack_wide(void) { return wide; }

const void *flb_lapack_one(int type, int minus) {
    static const float single[2][2] = {{1, 0}, {-1, 0}};
    static const double twice[2][2] = {{1, 0}, {-1, 0}};
    return flb_lapack_real[type] == 4 ? (const void *)single[minus] : twice[minus];
}

/* use_lapack(type, wide, addresses): the routines of an element type in the order of lapack.h; wide: integers
 * of 64 bits. */
PyObject *flb_use_lapack(PyObject *self, PyObject *args) {
    int type, bits;
    PyObject *found;
    if (!PyArg_ParseTuple(args, "ipO!", &type, &bits, &PyTuple_Type, &found)) return NULL;
    if (type < 0 || type > 3 || PyTuple_GET_SIZE(found) != ROUTINES)
        return PyErr_SetString(PyExc_ValueError, "use_lapack(type, wide, addresses)"), NULL;
    for (int i = 0; i < ROUTINES; i++) {
        routines[type][i] = (Fortran)(uintptr_t)PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(found, i));
        if (PyErr_Occurred()) return NULL;
    }
    wide = bits;
    Py_RETURN_NONE;
}

/* Dimensions of each view that belong to one matrix. */
static const uint8_t tails[LAPACK_COUNT][7] = {
    [LAPACK_LU] = {2, 2, 1, 0},            /* a; lu, pivots, info */
    [LAPACK_SOLVE] = {2, 2, 2, 2, 1, 0},   /* a, b; x, lu, pivots, info */
    [LAPACK_LU_SOLVE] = {2, 1, 2, 2},      /* lu, pivots, b; x */
    [LAPACK_CHOLESKY] = {2, 2, 0},         /* a; l, info */
    [LAPACK_CHOLESKY_INVERSE] = {2, 2, 0}, /* l; inverse, info */
    [LAPACK_TRIANGULAR] = {2, 2, 2},       /* a, b; x */
    [LAPACK_QR] = {2, 2, 2},               /* a; r, q */
    [LAPACK_EIGH] = {2, 1, 0, 2},          /* a; values, info, vectors */
    [LAPACK_SVD] = {2, 1, 0, 2, 2},        /* a; s, info, u, vh */
    [LAPACK_EIG] = {2, 1, 0, 2},           /* a; values, info, vectors */
    [LAPACK_LSTSQ] = {2, 2, 2, 0, 0},      /* a, b; x, rank, info */
    [LAPACK_REFLECTORS] = {2, 2, 1},       /* a; vectors below R, tau */
    [LAPACK_REFLECTED] = {2, 1, 2},        /* vectors, tau; q */
};

typedef struct {
    int kind, type, nviews, nbatch;
    char trans, side, uplo, diag, want;
    double cut;
    View v[7];
    int64_t count;
    int failed;
} Job;

static inline int64_t size_of(const Job *job, int view, int from_end) {
    return job->v[view].shape[job->v[view].ndim - from_end];
}

/* Where the matrices number i begin. */
static void places(const Job *job, int64_t i, char **p) {
    for (int k = 0; k < job->nviews; k++) p[k] = job->v[k].ptr;
    for (int d = job->nbatch - 1; d >= 0; d--) {
        int64_t n = job->v[0].shape[d], at = i % n;
        i /= n;
        for (int k = 0; k < job->nviews; k++) p[k] += at * job->v[k].strides[d];
    }
}

#define TILE 16
#define COPY(T)                                                                                      \
    for (int64_t j0 = 0; j0 < columns; j0 += TILE)                                                   \
        for (int64_t i0 = 0; i0 < rows; i0 += TILE)                                                  \
            for (int64_t j = j0; j < columns && j < j0 + TILE; j++)                                  \
                for (int64_t i = i0; i < rows && i < i0 + TILE; i++)                                 \
                    *(T *)(to + i * to_i + j * to_j) = *(const T *)(from + i * from_i + j * from_j); \
    break

static void move(int item, int64_t rows, int64_t columns, const char *from, int64_t from_i, int64_t from_j,
                 char *to, int64_t to_i, int64_t to_j) {
    typedef struct {
        double re, im;
    } Pair;
    if (from_i == item && to_i == item) {
        if (from_j == to_j && from_j == rows * item) memcpy(to, from, (size_t)(rows * columns * item));
        else
            for (int64_t j = 0; j < columns; j++)
                memcpy(to + j * to_j, from + j * from_j, (size_t)(rows * item));
        return;
    }
    if (item == 4 && from_j == item && to_i == item && from_i % item == 0) {
        flb_transpose(0, rows, columns, from, from_i / item, to, to_j / item);
        return;
    }
    switch (item) {
    case 4: COPY(uint32_t);
    case 8: COPY(uint64_t);
    default: COPY(Pair);
    }
}

/* The matrix of a view in column-major order. */
static void load(const Job *job, int view, const char *from, char *to) {
    const View *v = &job->v[view];
    int item = flb_lapack_item[job->type];
    int64_t rows = size_of(job, view, 2), columns = size_of(job, view, 1);
    move(item, rows, columns, from, v->strides[v->ndim - 2], v->strides[v->ndim - 1], to, item, rows * item);
}

/* Zeros above (upper) or below the diagonal of a column-major matrix. */
static void clear(int item, char *a, int64_t rows, int64_t columns, int upper) {
    for (int64_t j = 0; j < columns; j++) {
        int64_t from = upper ? 0 : j + 1, to = upper ? (j < rows ? j : rows) : rows;
        if (to > from) memset(a + (j * rows + from) * item, 0, (size_t)((to - from) * item));
    }
}

#define NOT_FINITE (-100)
static int all_finite(int type, const char *a, int64_t count) {
    if (flb_lapack_item[type] != flb_lapack_real[type]) count *= 2;
    uint32_t bad = 0;
    if (flb_lapack_real[type] == 4) {
        const uint32_t *x = (const uint32_t *)a;
        for (int64_t i = 0; i < count; i++) bad |= (x[i] & 0x7f800000u) == 0x7f800000u;
        return !bad;
    }
    const uint64_t *x = (const uint64_t *)a, exponent = (uint64_t)0x7ff << 52;
    for (int64_t i = 0; i < count; i++) bad |= (x[i] & exponent) == exponent;
    return !bad;
}

static int any_nan(int type, const char *a, int64_t count) {
    if (flb_lapack_item[type] != flb_lapack_real[type]) count *= 2;
    uint32_t bad = 0;
    if (flb_lapack_real[type] == 4)
        for (int64_t i = 0; i < count; i++) bad |= ((const float *)a)[i] != ((const float *)a)[i];
    else
        for (int64_t i = 0; i < count; i++) bad |= ((const double *)a)[i] != ((const double *)a)[i];
    return bad != 0;
}

/* The room that a routine asked for; in single precision the number is rounded. */
static int64_t asked(int type, const char *work) {
    return 1 +
        (int64_t)(flb_lapack_real[type] == 4 ? *(const float *)work * 1.000001 : *(const double *)work);
}

static inline char *aligned(char *p) { return (char *)(((uintptr_t)p + 15) & ~(uintptr_t)15); }

static void store_pivots(const Job *job, int view, const int64_t *pivots, char *to) {
    int64_t n = size_of(job, view, 1), step = job->v[view].strides[job->v[view].ndim - 1];
    for (int64_t k = 0; k < n; k++) *(int32_t *)(to + k * step) = (int32_t)flb_fortran_int(pivots, k);
}

/* Columns [c0, c1) of the column-major right-hand sides, from a factorised matrix, or from its factors
 * transposed. `trans`: N, T or C. */
static void getrs(const Job *job, const char *lu, const char *transposed, const int64_t *pivots, char *x,
                  int64_t n, int64_t c0, int64_t c1) {
    int64_t count = c1 - c0, info = 0, first = 1, step = job->trans == 'N' ? 1 : -1;
    char *part = x + c0 * n * flb_lapack_item[job->type];
    if (count <= 0) return;
    if (step == 1 && flb_triangular_fits(job->type)) {
        routines[job->type][LASWP](&count, part, &n, &first, &n, pivots, &step);
        flb_solve_left(job->type, 0, 1, n, count, lu, n, part, n);
        flb_solve_left(job->type, 1, 0, n, count, lu, n, part, n);
    } else if (transposed) {
        flb_solve_left(job->type, 0, 0, n, count, transposed, n, part, n);
        flb_solve_left(job->type, 1, 1, n, count, transposed, n, part, n);
        routines[job->type][LASWP](&count, part, &n, &first, &n, pivots, &step);
    } else routines[job->type][GETRS](&job->trans, &n, &count, lu, &n, pivots, part, &n, &info, 1L);
}

typedef struct {
    const Job *job;
    const char *a, *transposed;
    const int64_t *pivots;
    char *x;
    int64_t n, columns, lda;
    char side, uplo, trans;
} Columns;
#define SHARE 128
#define FEW 8 /* right-hand sides up to which factors aren't transposed */

static void solve_columns(void *context, int64_t begin, int64_t end) {
    Columns *c = context;
    for (int64_t from = begin * SHARE; from < c->columns && from < end * SHARE; from += SHARE)
        getrs(c->job, c->a, c->transposed, c->pivots, c->x, c->n, from,
              from + SHARE < c->columns ? from + SHARE : c->columns);
}

/* x solves op(A) x = x (side L, columns of it) or x op(A) = x (side R, rows of it), A triangular. */
static void triangular_part(void *context, int64_t begin, int64_t end) {
    Columns *c = context;
    const Job *job = c->job;
    int item = flb_lapack_item[job->type];
    int left = c->side == 'L';
    int64_t ldx = left ? c->n : c->columns;
    for (int64_t from = begin * SHARE; from < c->columns && from < end * SHARE; from += SHARE) {
        int64_t count = from + SHARE < c->columns ? SHARE : c->columns - from, rows = left ? c->n : count,
                columns = left ? count : c->n;
        if (left && c->trans == 'N' && flb_triangular_fits(job->type)) {
            flb_solve_left(job->type, c->uplo == 'U', job->diag == 'U', rows, columns, c->a, c->lda,
                           c->x + from * c->n * item, ldx);
            continue;
        }
        routines[job->type][TRSM](&c->side, &c->uplo, &c->trans, &job->diag, &rows, &columns,
                                  flb_lapack_one(job->type, 0), c->a, &c->lda,
                                  c->x + from * (left ? c->n * item : item), &ldx, 1L, 1L, 1L, 1L);
    }
}

/* A is read in place where its rows or columns are. */
static int triangular(Job *job, char **p) {
    const View *a = &job->v[0];
    int item = flb_lapack_item[job->type];
    int64_t n = size_of(job, 0, 1), step_i = a->strides[a->ndim - 2], step_j = a->strides[a->ndim - 1];
    int left = job->side == 'L', upper = job->uplo == 'U';
    char *room = NULL;
    Columns c = {job, p[0],      NULL,      NULL, p[2], n, left ? size_of(job, 2, 1) : size_of(job, 2, 2),
                 n,   job->side, job->uplo, 'N'};
    load(job, 1, p[1], p[2]);
    if (n > 1) {
        int turn = left && c.columns >= FEW &&
            flb_triangular_fits(job->type); /* there are kernels for columns only */
        if (step_i == item && step_j >= n * item && step_j % item == 0) c.lda = step_j / item;
        else if (!turn && step_j == item && step_i >= n * item && step_i % item == 0)
            c.lda = step_i / item, c.trans = 'T', c.uplo = upper ? 'L' : 'U';
        else {
            if (!(room = malloc((size_t)(n * n * item)))) return -1;
            load(job, 0, p[0], room);
            c.a = room;
        }
    }
    int64_t parts = (c.columns + SHARE - 1) / SHARE, worth = (int64_t)(1e6 / ((double)n * n * SHARE)) + 1;
    if (job->count > 1) triangular_part(&c, 0, parts);
    else flb_parallel(triangular_part, &c, parts, worth);
    free(room);
    return 0;
}

/* Right-hand sides by the factors, beside each other on the pool for one matrix. */
static void substitute(Job *job, const char *lu, const int64_t *pivots, char *x, int64_t n, int64_t columns) {
    int item = flb_lapack_item[job->type],
        turn = job->trans != 'N' && columns >= FEW && flb_triangular_fits(job->type);
    char *transposed = turn ? malloc((size_t)(n * n * item)) : NULL;
    if (transposed) move(item, n, n, lu, n * item, item, transposed, item, n * item);
    Columns c = {job, lu, transposed, pivots, x, n, columns};
    int64_t parts = (columns + SHARE - 1) / SHARE, worth = (int64_t)(1e6 / (2.0 * n * n * SHARE)) + 1;
    if (job->count > 1) getrs(job, lu, transposed, pivots, x, n, 0, columns);
    else flb_parallel(solve_columns, &c, parts, worth);
    free(transposed);
}

/* Room for the pivots of a matrix, on the stack where they are few. */
#define PIVOTS(n)                                                        \
    int64_t few[64], *pivots = (n) > 64 ? malloc((size_t)(n) * 8) : few; \
    if (!pivots) return -1
#define DONE \
    if (pivots != few) free(pivots)

static void factorise(Job *job, char *a, int64_t m, int64_t n, int64_t *pivots, char *to) {
    int64_t info = 0;
    if (job->count == 1) info = flb_lu(job->type, a, m, n, pivots);
    else routines[job->type][GETRF](&m, &n, a, &m, pivots, &info);
    *(int32_t *)to = (int32_t)info;
}

static int solve(Job *job, char **p) {
    int64_t n = size_of(job, 0, 1);
    PIVOTS(n);
    load(job, 0, p[0], p[3]);
    load(job, 1, p[1], p[2]);
    factorise(job, p[3], n, n, pivots, p[5]);
    store_pivots(job, 4, pivots, p[4]);
    substitute(job, p[3], pivots, p[2], n, size_of(job, 2, 1));
    DONE;
    return 0;
}

/* The pivots are known to be rows of the matrix. */
static int solve_by_factors(Job *job, char **p) {
    const View *v = &job->v[0];
    int item = flb_lapack_item[job->type];
    int64_t n = size_of(job, 0, 1), step = job->v[1].strides[job->v[1].ndim - 1];
    char *room = NULL;
    PIVOTS(n);
    if (n > 1 && (v->strides[v->ndim - 2] != item || v->strides[v->ndim - 1] != n * item)) {
        if (!(room = malloc((size_t)(n * n * item)))) {
            DONE;
            return -1;
        }
        load(job, 0, p[0], room);
    }
    for (int64_t k = 0; k < n; k++) flb_set_fortran_int(pivots, k, *(int32_t *)(p[1] + k * step));
    load(job, 2, p[2], p[3]);
    substitute(job, room ? room : p[0], pivots, p[3], n, size_of(job, 3, 1));
    free(room);
    DONE;
    return 0;
}

static int factors(Job *job, char **p) {
    int64_t m = size_of(job, 0, 2), n = size_of(job, 0, 1);
    PIVOTS(m < n ? m : n);
    load(job, 0, p[0], p[1]);
    factorise(job, p[1], m, n, pivots, p[3]);
    store_pivots(job, 2, pivots, p[2]);
    DONE;
    return 0;
}

static int cholesky(Job *job, char **p) {
    int64_t n = size_of(job, 0, 1), info = 0;
    load(job, 0, p[0], p[1]);
    if (job->count == 1) info = flb_cholesky(job->type, p[1], n);
    else routines[job->type][POTRF]("L", &n, p[1], &n, &info, 1L);
    int item = flb_lapack_item[job->type];
    clear(item, p[1], n, n, 1);
    for (int64_t k = 0; !info && k < n; k++) { /* the library takes nan for positive */
        const char *d = p[1] + k * (n + 1) * item;
        double x = flb_lapack_real[job->type] == 4 ? *(const float *)d : *(const double *)d;
        if (!(x > 0 && x <= 1.7976931348623157e308)) info = k + 1;
    }
    *(int32_t *)p[2] = (int32_t)info;
    return 0;
}

/* The inverse of L L^H, from L, or of U^H U; both triangles of it. */
static int cholesky_inverse(Job *job, char **p) {
    int64_t n = size_of(job, 0, 1), info = 0;
    int item = flb_lapack_item[job->type], real = flb_lapack_real[job->type], lower = job->uplo == 'L';
    load(job, 0, p[0], p[1]);
    routines[job->type][POTRI](&job->uplo, &n, p[1], &n, &info, 1L);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < j; i++) { /* the element above the diagonal and its mirror */
            char *above = p[1] + (j * n + i) * item, *below = p[1] + (i * n + j) * item;
            char *from = lower ? below : above, *to = lower ? above : below;
            memcpy(to, from, (size_t)item);
            if (item == real) continue;
            if (real == 4) ((float *)to)[1] = -((float *)from)[1];
            else ((double *)to)[1] = -((double *)from)[1];
        }
    *(int32_t *)p[2] = (int32_t)info;
    return 0;
}

/* `want` V: Q is wanted. R: (min(m, n), n), or (m, n) of a complete Q, (m, m). */
static int orthogonal(Job *job, char **p, char **work, int64_t *room) {
    int type = job->type, item = flb_lapack_item[type];
    int64_t m = size_of(job, 0, 2), n = size_of(job, 0, 1), least = m < n ? m : n, info = 0, ask = -1,
            k = size_of(job, 1, 2);
    int64_t q = job->want == 'V' ? size_of(job, 2, 1) : 0, need;
    if (!*work) {
        char most[2][16];
        memset(most, 0, sizeof most);
        routines[type][GEQRF](&m, &n, NULL, &m, NULL, most[0], &ask, &info);
        if (q) routines[type][ORGQR](&m, &q, &least, NULL, &m, NULL, most[1], &ask, &info);
        *room = asked(type, most[0]) > asked(type, most[1]) ? asked(type, most[0]) : asked(type, most[1]);
        if (!(*work = malloc((size_t)((*room + m * n + least + 1) * item)))) return -1;
    }
    need = *room;
    char *a = *work + need * item, *tau = a + m * n * item;
    load(job, 0, p[0], a);
    routines[type][GEQRF](&m, &n, a, &m, tau, *work, &need, &info);
    for (int64_t j = 0; j < n; j++) {
        int64_t full = j + 1 < k ? j + 1 : k;
        memcpy(p[1] + j * k * item, a + j * m * item, (size_t)(full * item));
        memset(p[1] + (j * k + full) * item, 0, (size_t)((k - full) * item));
    }
    if (!q) return 0;
    memcpy(p[2], a, (size_t)(m * (q < n ? q : n) * item));
    routines[type][ORGQR](&m, &q, &least, p[2], &m, tau, *work, &need, &info);
    return 0;
}

/* Memory for a routine that has said what it needs. */
static int reserve(char **work, int64_t *room, int type, const char *said, int64_t more) {
    *room = asked(type, said);
    return (*work = malloc((size_t)((*room + more + 1) * flb_lapack_item[type]))) ? 0 : -1;
}

/* A QR factorisation as LAPACK keeps it. */
static int reflectors(Job *job, char **p, char **work, int64_t *room) {
    int64_t m = size_of(job, 0, 2), n = size_of(job, 0, 1), info = 0, ask = -1, need;
    char most[16] = {0};
    Fortran geqrf = routines[job->type][GEQRF];
    if (!*work) {
        geqrf(&m, &n, NULL, &m, NULL, most, &ask, &info);
        if (reserve(work, room, job->type, most, 0)) return -1;
    }
    need = *room;
    load(job, 0, p[0], p[1]);
    geqrf(&m, &n, p[1], &m, p[2], *work, &need, &info);
    return 0;
}

/* The first n columns of the product of reflections. */
static int reflected(Job *job, char **p, char **work, int64_t *room) {
    int64_t m = size_of(job, 0, 2), n = size_of(job, 0, 1), k = size_of(job, 1, 1), info = 0, ask = -1, need;
    int item = flb_lapack_item[job->type];
    char most[16] = {0};
    Fortran orgqr = routines[job->type][ORGQR];
    if (!*work) {
        orgqr(&m, &n, &k, NULL, &m, NULL, most, &ask, &info);
        if (reserve(work, room, job->type, most, k)) return -1;
    }
    need = *room;
    char *tau = *work + need * item;
    move(item, k, 1, p[1], job->v[1].strides[job->v[1].ndim - 1], 0, tau, item, 0);
    load(job, 0, p[0], p[2]);
    orgqr(&m, &n, &k, p[2], &m, tau, *work, &need, &info);
    return 0;
}

/* `want`: N or V. */
static int hermitian(Job *job, char **p, char **work, int64_t *room) {
    int type = job->type, item = flb_lapack_item[type], real = flb_lapack_real[type],
        vectors = job->want == 'V';
    int64_t n = size_of(job, 0, 1), info = 0, ask = -1;
    Fortran syevd = routines[type][SYEVD];
    if (!*work) {
        char size[16] = {0}, reals[16] = {0};
        int64_t ints = 0;
        if (item == real)
            syevd(&job->want, &job->uplo, &n, NULL, &n, NULL, size, &ask, &ints, &ask, &info, 1L, 1L);
        else
            syevd(&job->want, &job->uplo, &n, NULL, &n, NULL, size, &ask, reals, &ask, &ints, &ask, &info, 1L,
                  1L);
        room[0] = asked(type, size), room[1] = item == real ? 0 : asked(type, reals),
        room[2] = (wide ? ints : (int32_t)ints) + 1;
        if (!(*work = malloc((size_t)(room[0] * item + room[1] * real + room[2] * 8 + n * n * item + 64))))
            return -1;
    }
    char *reals = aligned(*work + room[0] * item), *ints = aligned(reals + room[1] * real),
         *a = vectors ? p[3] : aligned(ints + room[2] * 8);
    load(job, 0, p[0], a);
    if (!all_finite(type, a, n * n)) info = NOT_FINITE;
    else if (item == real)
        syevd(&job->want, &job->uplo, &n, a, &n, p[1], *work, room, ints, room + 2, &info, 1L, 1L);
    else
        syevd(&job->want, &job->uplo, &n, a, &n, p[1], *work, room, reals, room + 1, ints, room + 2, &info,
              1L, 1L);
    *(int32_t *)p[2] = (int32_t)info;
    return 0;
}

/* `want`: N, S or A. */
static int singular(Job *job, char **p, char **work, int64_t *room) {
    int type = job->type, item = flb_lapack_item[type], real = flb_lapack_real[type];
    int64_t m = size_of(job, 0, 2), n = size_of(job, 0, 1), least = m < n ? m : n, most = m < n ? n : m,
            info = 0, ask = -1;
    int vectors = job->want != 'N';
    int64_t ldv = job->want == 'S' ? least : vectors ? n : 1;
    Fortran gesdd = routines[type][GESDD];
    if (!*work) {
        char size[16] = {0}, spare[16];
        if (item == real)
            gesdd(&job->want, &m, &n, NULL, &m, NULL, NULL, &m, NULL, &ldv, size, &ask, spare, &info, 1L);
        else
            gesdd(&job->want, &m, &n, NULL, &m, NULL, NULL, &m, NULL, &ldv, size, &ask, spare, spare, &info,
                  1L);
        int64_t one = 5 * least + 7, two = 2 * most + 2 * least + 1;
        room[0] = asked(type, size);
        room[1] = item == real
            ? 0
            : least * (vectors && one < two ? two : one) + 8; /* as zgesdd's documentation asks */
        if (!(*work = malloc((size_t)(room[0] * item + room[1] * real + 8 * least * 8 + m * n * item + 64))))
            return -1;
    }
    char *reals = aligned(*work + room[0] * item), *ints = aligned(reals + room[1] * real),
         *a = aligned(ints + 8 * least * 8);
    load(job, 0, p[0], a);
    char *u = vectors ? p[3] : NULL, *vh = vectors ? p[4] : NULL;
    if (!all_finite(type, a, m * n)) info = NOT_FINITE;
    else if (item == real)
        gesdd(&job->want, &m, &n, a, &m, p[1], u, &m, vh, &ldv, *work, room, ints, &info, 1L);
    else gesdd(&job->want, &m, &n, a, &m, p[1], u, &m, vh, &ldv, *work, room, reals, ints, &info, 1L);
    *(int32_t *)p[2] = (int32_t)info;
    return 0;
}

/* Real matrices have eigenvalues in pairs: the vectors of a pair lie as real and imaginary part in two
 * columns. */
#define EXPAND(T)                                                                      \
    for (int64_t j = 0; j < n; j++) {                                                  \
        const T *re = (const T *)wr, *im = (const T *)wi, *v = (const T *)vr;          \
        T *value = (T *)p[1] + 2 * j, *to = vectors ? (T *)p[3] + 2 * n * j : NULL;    \
        value[0] = re[j], value[1] = im[j];                                            \
        int pair = im[j] > 0 ? 1 : im[j] < 0 ? -1 : 0;                                 \
        for (int64_t i = 0; vectors && i < n; i++) {                                   \
            to[2 * i] = v[(pair < 0 ? j - 1 : j) * n + i];                             \
            to[2 * i + 1] = !pair ? 0 : pair > 0 ? v[(j + 1) * n + i] : -v[j * n + i]; \
        }                                                                              \
    }

/* `want` V: vectors are wanted. */
static int general(Job *job, char **p, char **work, int64_t *room) {
    int type = job->type, item = flb_lapack_item[type], real = flb_lapack_real[type],
        vectors = job->want == 'V';
    int64_t n = size_of(job, 0, 1), info = 0, ask = -1, one = 1;
    Fortran geev = routines[type][GEEV];
    if (!*work) {
        char size[16] = {0}, spare[16];
        if (item == real)
            geev("N", &job->want, &n, NULL, &n, NULL, NULL, NULL, &one, NULL, &n, size, &ask, &info, 1L, 1L);
        else
            geev("N", &job->want, &n, NULL, &n, NULL, NULL, &one, NULL, &n, size, &ask, spare, &info, 1L, 1L);
        room[0] = asked(type, size);
        if (!(*work = malloc((size_t)((room[0] + 2 * n * n + 2 * n + 2) * item)))) return -1;
    }
    char *a = *work + room[0] * item, *vr = a + n * n * item, *wr = vr + n * n * item, *wi = wr + n * item;
    load(job, 0, p[0], a);
    if (item == real) {
        geev("N", &job->want, &n, a, &n, wr, wi, NULL, &one, vr, &n, *work, room, &info, 1L, 1L);
        if (real == 4) EXPAND(float) else EXPAND(double)
    } else
        geev("N", &job->want, &n, a, &n, p[1], NULL, &one, vectors ? p[3] : vr, &n, *work, room, wr, &info,
             1L, 1L);
    *(int32_t *)p[2] = (int32_t)info;
    return 0;
}

/* Least squares by a QR factorisation with pivots; `cut` is the condition from which columns count. x has n
 * rows, the routine's max(m, n). */
static int least_squares(Job *job, char **p, char **work, int64_t *room) {
    int type = job->type, item = flb_lapack_item[type], real = flb_lapack_real[type];
    int64_t m = size_of(job, 0, 2), n = size_of(job, 0, 1), columns = size_of(job, 1, 1),
            most = m > n ? m : n, info = 0, rank = 0, ask = -1;
    float cut = (float)job->cut;
    const void *rcond = real == 4 ? (const void *)&cut : &job->cut;
    Fortran gelsy = routines[type][GELSY];
    if (!*work) {
        char size[16] = {0}, spare[16];
        if (item == real)
            gelsy(&m, &n, &columns, NULL, &m, NULL, &most, NULL, rcond, &rank, size, &ask, &info);
        else gelsy(&m, &n, &columns, NULL, &m, NULL, &most, NULL, rcond, &rank, size, &ask, spare, &info);
        room[0] = asked(type, size);
        if (!(*work = malloc((size_t)((room[0] + m * n + most * columns + 2 * n + 2) * item + n * 8 + 16))))
            return -1;
    }
    char *a = *work + room[0] * item, *b = a + m * n * item, *reals = b + most * columns * item;
    char *order = aligned(reals + 2 * n * item);
    const View *v = &job->v[1], *x = &job->v[2];
    load(job, 0, p[0], a);
    memset(b, 0, (size_t)(most * columns * item));
    move(item, m, columns, p[1], v->strides[v->ndim - 2], v->strides[v->ndim - 1], b, item, most * item);
    memset(order, 0, (size_t)n * 8);
    if (any_nan(type, a, m * n) || any_nan(type, b, most * columns)) info = NOT_FINITE;
    else if (item == real) gelsy(&m, &n, &columns, a, &m, b, &most, order, rcond, &rank, *work, room, &info);
    else gelsy(&m, &n, &columns, a, &m, b, &most, order, rcond, &rank, *work, room, reals, &info);
    move(item, n, columns, b, item, most * item, p[2], x->strides[x->ndim - 2], x->strides[x->ndim - 1]);
    *(int64_t *)p[3] = (int32_t)rank;
    *(int32_t *)p[4] = (int32_t)info;
    return 0;
}

static void range(void *context, int64_t begin, int64_t end) {
    Job *job = context;
    char *p[7] = {NULL}, *work = NULL;
    int64_t room[3] = {0};
    int failed = 0;
    for (int64_t i = begin; i < end && !failed; i++) {
        places(job, i, p);
        switch (job->kind) {
        case LAPACK_LU: failed = factors(job, p); break;
        case LAPACK_SOLVE: failed = solve(job, p); break;
        case LAPACK_LU_SOLVE: failed = solve_by_factors(job, p); break;
        case LAPACK_CHOLESKY: failed = cholesky(job, p); break;
        case LAPACK_CHOLESKY_INVERSE: failed = cholesky_inverse(job, p); break;
        case LAPACK_TRIANGULAR: failed = triangular(job, p); break;
        case LAPACK_QR: failed = orthogonal(job, p, &work, room); break;
        case LAPACK_EIGH: failed = hermitian(job, p, &work, room); break;
        case LAPACK_SVD: failed = singular(job, p, &work, room); break;
        case LAPACK_REFLECTORS: failed = reflectors(job, p, &work, room); break;
        case LAPACK_REFLECTED: failed = reflected(job, p, &work, room); break;
        case LAPACK_EIG: failed = general(job, p, &work, room); break;
        default: failed = least_squares(job, p, &work, room); break;
        }
    }
    free(work);
    if (failed) job->failed = 1;
}

FLB_KERNEL(lapack) {
    Job job = {.kind = (int)n->routine,
               .type = (int)n->element,
               .trans = (char)n->trans,
               .side = (char)n->side,
               .uplo = (char)n->uplo,
               .diag = (char)n->diag,
               .want = (char)n->job,
               .cut = n->cut,
               .count = 1};
    if (job.type > ELEMENT_C128 || !routines[job.type][0]) return 0;
    for (int k = 0; k < 3; k++)
        if (flb_given(&v->given[k])) job.v[job.nviews++] = v->given[k];
    for (int k = 0; k < 4; k++)
        if (flb_given(&v->made[k])) job.v[job.nviews++] = v->made[k];
    if (!job.nviews) return 0;
    job.nbatch = job.v[0].ndim - tails[job.kind][0];
    for (int k = 0; k < job.nviews; k++)
        if (job.v[k].ndim - tails[job.kind][k] != job.nbatch) return 0;
    for (int d = 0; d < job.nbatch; d++) job.count *= job.v[0].shape[d];
    int64_t rows = size_of(&job, 0, 2), columns = size_of(&job, 0, 1);
    if (!job.count) return 0;
    if (job.count == 1) range(&job, 0, 1); /* may use the pool inside */
    else flb_parallel(range, &job, job.count, 1 + (int64_t)(1e5 / ((double)rows * rows * columns + 2000)));
    return job.failed ? -1 : 0;
}

FLB_KERNEL(infos) {
    const int32_t *info = (const int32_t *)v->infos.ptr;
    int64_t count = 1;
    for (int d = 0; d < v->infos.ndim; d++) count *= v->infos.shape[d];
    for (int64_t i = 0; i < count && !status[0]; i++)
        if (info[i])
            status[1] = info[i], status[2] = i,
            status[0] = 1 + (info[i] == NOT_FINITE && n->not_finite >= 0 ? n->not_finite : n->refused);
    return 0;
}

FLB_KERNEL(row_order) {
    int64_t k = v->pivots.shape[v->pivots.ndim - 1], m = v->rows.shape[v->rows.ndim - 1], count = 1;
    for (int d = 0; d + 1 < v->pivots.ndim; d++) count *= v->pivots.shape[d];
    for (int64_t i = 0; i < count; i++) {
        const int32_t *pivots = (const int32_t *)v->pivots.ptr + i * k;
        int64_t *order = (int64_t *)v->rows.ptr + i * m;
        for (int64_t j = 0; j < m; j++) order[j] = j;
        for (int64_t j = 0; j < k; j++) {
            if (pivots[j] < 1 || pivots[j] > m || j >= m) {
                if (!status[0]) status[0] = n->no_row + 1;
                continue;
            }
            int64_t row = order[j];
            order[j] = order[pivots[j] - 1], order[pivots[j] - 1] = row;
        }
    }
    return 0;
}
