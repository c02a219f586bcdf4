/* Functions that NumPy and SciPy have as loops over elements, run on the pool without Python; orthogonal
 * polynomials by their recurrences; distances of points; draws by cumulative probabilities. Arrays are in C
 * order. */
#include "runtime/graph.h"
#include "runtime/levels.h"
#include <math.h>
#include <numpy/ufuncobject.h>
#include <string.h>

static int64_t elements(const View *v) {
    int64_t n = 1;
    for (int d = 0; d < v->ndim; d++) n *= v->shape[d];
    return n;
}

/* ---- loops of ufuncs ----------------------------------------------------------------------------------- */

#define SLOTS 256
#define CHUNK 512
#define OPERANDS 8
static struct {
    PyUFuncGenericFunction fn;
    void *data;
    int nin, nout, item[OPERANDS]; /* item: bytes of an element of each */
    PyObject *owner;               /* the ufunc, kept for good */
} loops[SLOTS];

/* use_ufunc(slot, ufunc, types): its loop for these types ("dd->d"), kept for the kernel `ufunc`. ValueError
 * where it has none. */
PyObject *flb_use_ufunc(PyObject *self, PyObject *args) {
    int slot;
    PyObject *o;
    const char *types;
    if (!PyArg_ParseTuple(args, "iOs", &slot, &o, &types)) return NULL;
    const char *arrow = strstr(types, "->");
    if (slot < 0 || slot >= SLOTS || strcmp(Py_TYPE(o)->tp_name, "numpy.ufunc") || !arrow)
        return PyErr_SetString(PyExc_ValueError, "use_ufunc(slot, ufunc, types)"), NULL;
    PyUFuncObject *u = (PyUFuncObject *)o;
    int nin = (int)(arrow - types), nout = (int)strlen(arrow + 2), item[OPERANDS];
    if (u->nin != nin || u->nout != nout || nin + nout > OPERANDS)
        return PyErr_Format(PyExc_ValueError, "use_ufunc: %s takes %d and gives %d", u->name, u->nin,
                            u->nout),
               NULL;
    for (int i = 0; i < u->ntypes; i++) {
        const char *own = u->types + i * u->nargs;
        int same = 1;
        for (int k = 0; k < u->nargs; k++) {
            PyArray_Descr *d = PyArray_DescrFromType(k < nin ? types[k] : arrow[2 + k - nin]);
            if (!d) return NULL;
            same &= own[k] == d->type_num;
            item[k] = (int)PyDataType_ELSIZE(d);
            Py_DECREF(d);
        }
        if (!same) continue;
        loops[slot].fn = u->functions[i], loops[slot].data = u->data ? u->data[i] : NULL,
        loops[slot].nin = nin, loops[slot].nout = nout;
        memcpy(loops[slot].item, item, sizeof item);
        Py_XSETREF(loops[slot].owner, Py_NewRef(o));
        Py_RETURN_NONE;
    }
    return PyErr_Format(PyExc_ValueError, "use_ufunc: %s has no loop %s", u->name, types), NULL;
}

typedef struct {
    char *at[OPERANDS]; /* NULL: nobody wants it */
    int slot;
} Calls;

static void calls(void *context, int64_t begin, int64_t end) {
    const Calls *c = context;
    char spare[OPERANDS][CHUNK * 8], *args[OPERANDS];
    npy_intp steps[OPERANDS];
    int all = loops[c->slot].nin + loops[c->slot].nout;
    for (int64_t i = begin; i < end; i += CHUNK) {
        npy_intp count = end - i < CHUNK ? end - i : CHUNK;
        for (int k = 0; k < all; k++) {
            steps[k] = loops[c->slot].item[k];
            args[k] = c->at[k] ? c->at[k] + i * steps[k] : spare[k];
        }
        loops[c->slot].fn(args, &count, steps, loops[c->slot].data);
    }
}

FLB_KERNEL(ufunc) {
    if (n->slot < 0 || n->slot >= SLOTS || !loops[n->slot].fn) return -1;
    Calls c = {.slot = (int)n->slot};
    int nin = loops[c.slot].nin, given = 0, made = 0;
    for (int k = 0; k < 2 && flb_given(&v->given[k]); k++) c.at[given++] = v->given[k].ptr;
    for (int k = 0; k < 4 && flb_given(&v->made[k]); k++) c.at[nin + made++] = v->made[k].ptr;
    if (given != nin || !made || made > loops[c.slot].nout) return -1;
    flb_parallel(calls, &c, elements(&v->given[0]), 500);
    return 0;
}

/* ---- orthogonal polynomials ---------------------------------------------------------------------------- */

typedef struct {
    const flb_polynomial_views *v;
    int kind, f64;
} Polynomials;

/* Closed forms in t of |x| = cos t, beyond 1 cosh t (ops/pointwise/orthogonal_polynomials.py). */
static double chebyshev(int kind, double x, double n) {
    if (kind >= POLYNOMIAL_SHIFTED_T) {
        kind += POLYNOMIAL_CHEBYSHEV_T - POLYNOMIAL_SHIFTED_T;
        x = 2 * x - 1;
    }
    int halves = kind == POLYNOMIAL_CHEBYSHEV_V || kind == POLYNOMIAL_CHEBYSHEV_W;
    int odd = halves ? (x < 0) == (kind == POLYNOMIAL_CHEBYSHEV_V) : kind == POLYNOMIAL_CHEBYSHEV_U;
    double part = halves ? 0.5 : odd, sign = x < 0 && fmod(n, 2) == 1 ? -1 : 1;
    x = fabs(x);
    if (x == 1) return sign * (odd ? (n + part) / part : 1);
    double t = x < 1 ? acos(x) : acosh(x), whole = (n + part) * t;
    part *= t;
    if (odd) return sign * (x < 1 ? sin(whole) / sin(part) : sinh(whole) / sinh(part));
    return sign * (x < 1 ? cos(whole) / cos(part) : cosh(whole) / cosh(part));
}

static double polynomial(int kind, double x, double degree, int f64) {
    double n = trunc(degree), before = 1, now, next;
    if (!isfinite(n) || n < 0) return 0;
    if (n < 1) return 1;
    if (x != x) return x;
    if (kind < POLYNOMIAL_HERMITE_H && n > 10000) return chebyshev(kind, x, n);
    if (kind == POLYNOMIAL_HERMITE_H || kind == POLYNOMIAL_HERMITE_HE) {
        if (n > (f64 ? 512 : 128)) return NAN;
    } else if (n > 1000000) return NAN;
    switch (kind) {
    case POLYNOMIAL_CHEBYSHEV_T:
    case POLYNOMIAL_HERMITE_HE:
    case POLYNOMIAL_LEGENDRE: now = x; break;
    case POLYNOMIAL_CHEBYSHEV_U:
    case POLYNOMIAL_HERMITE_H: now = 2 * x; break;
    case POLYNOMIAL_CHEBYSHEV_V:
    case POLYNOMIAL_SHIFTED_T: now = 2 * x - 1; break;
    case POLYNOMIAL_CHEBYSHEV_W: now = 2 * x + 1; break;
    case POLYNOMIAL_SHIFTED_U: now = 4 * x - 2; break;
    case POLYNOMIAL_SHIFTED_V: now = 4 * x - 3; break;
    case POLYNOMIAL_SHIFTED_W: now = 4 * x - 1; break;
    default: now = 1 - x;
    }
    for (double k = 1; k < n; k++, before = now, now = next) {
        if (kind < POLYNOMIAL_SHIFTED_T) next = 2 * x * now - before;
        else if (kind < POLYNOMIAL_HERMITE_H) next = (4 * x - 2) * now - before;
        else if (kind == POLYNOMIAL_HERMITE_H) next = 2 * x * now - 2 * k * before;
        else if (kind == POLYNOMIAL_HERMITE_HE) next = x * now - k * before;
        else if (kind == POLYNOMIAL_LAGUERRE) next = ((2 * k + 1 - x) * now - k * before) / (k + 1);
        else next = ((2 * k + 1) * x * now - k * before) / (k + 1);
    }
    return now;
}

static void polynomials(void *context, int64_t begin, int64_t end) {
    const Polynomials *p = context;
    for (int64_t i = begin; i < end; i++) {
        const char *x = p->v->points.ptr, *degree = p->v->degrees.ptr;
        if (p->f64)
            ((double *)p->v->values.ptr)[i] =
                polynomial(p->kind, ((const double *)x)[i], ((const double *)degree)[i], 1);
        else
            ((float *)p->v->values.ptr)[i] =
                (float)polynomial(p->kind, ((const float *)x)[i], ((const float *)degree)[i], 0);
    }
}

FLB_KERNEL(polynomial) {
    Polynomials p = {v, (int)n->family, n->f64 != 0};
    flb_parallel(polynomials, &p, elements(&v->points), 200);
    return 0;
}

/* ---- distances ----------------------------------------------------------------------------------------- */

typedef struct {
    const flb_distances_views *v;
    int f64, pairs; /* pairs: each point to those behind it, one row after another */
    double p;
    int64_t rows, others, m;
} Distances;

/* Where the distance of point `i` to another lies; pairs only: k > i. */
static int64_t place_of(const Distances *d, int64_t i, int64_t k) {
    return d->pairs ? i * (2 * d->others - i - 1) / 2 + k - i - 1 : i * d->others + k;
}
/* The first of the others from `first` on that is wanted of point `i`. */
static int64_t wanted(const Distances *d, int64_t i, int64_t first) {
    return d->pairs && first <= i ? i + 1 : first;
}

#define POINT(view, i) (d->f64 ? ((const double *)(view).ptr)[i] : (double)((const float *)(view).ptr)[i])

static void put_distance(const Distances *d, int64_t at, double y) {
    if (d->f64) ((double *)d->v->distances.ptr)[at] = y;
    else ((float *)d->v->distances.ptr)[at] = (float)y;
}

/* Blocks of points times tiles of others, whose coordinates are turned so that a vector holds one coordinate
 * of several points: each sum is taken in the order of the coordinates. */
enum { BLOCK = 16, TILE = 64, DEPTH = 32 };
#define TERMS(NAME, TERM)                                                                             \
    BY_LEVEL(static void, NAME, (const double *a, const double *b, int64_t m, double *restrict sums), \
             (a, b, m, sums)) {                                                                       \
        for (int64_t j = 0; j < m; j++)                                                               \
            for (int k = 0; k < TILE; k++) {                                                          \
                double apart = fabs(a[j] - b[j * TILE + k]), sum = sums[k];                           \
                sums[k] = TERM;                                                                       \
            }                                                                                         \
    }
TERMS(absolutes, sum + apart)
TERMS(unequal, sum + (apart > 0 ? 1.0 : apart)) /* apart: 0 or nan */
TERMS(greatest, apart > sum ? apart : sum)      /* as in PyTorch, nan is passed over */

static void block(const Distances *d, int64_t begin, int64_t count, int64_t first) {
    double sums[BLOCK][TILE] = {{0}}, turned[DEPTH * TILE], line[DEPTH];
    int64_t from = begin / d->rows * d->others + first,
            wide = d->others - first < TILE ? d->others - first : TILE;
    for (int64_t j = 0; j < d->m; j += DEPTH) {
        int64_t deep = d->m - j < DEPTH ? d->m - j : DEPTH;
        for (int64_t k = 0; k < TILE; k++)
            for (int64_t i = 0; i < deep; i++)
                turned[i * TILE + k] = k < wide ? POINT(d->v->others, (from + k) * d->m + j + i) : 0;
        for (int64_t r = 0; r < count; r++) {
            for (int64_t i = 0; i < deep; i++) line[i] = POINT(d->v->points, (begin + r) * d->m + j + i);
            (d->p == 1 ? absolutes : d->p == 0 ? unequal : greatest)(line, turned, deep, sums[r]);
        }
    }
    for (int64_t r = 0; r < count; r++)
        for (int64_t k = wanted(d, begin + r, first); k < first + wide; k++)
            put_distance(d, place_of(d, begin + r, k), sums[r][k - first]);
}

/* Euclidean ones in vectors of the type: tiles of four vectors of points, or one, DEPTH coordinates in one
 * go, whose sums go on in doubles. */
enum { VECTOR = 64, POINTS = 64 };
#define EUCLIDEAN(T, root)                                                                             \
    typedef T T##_vector __attribute__((vector_size(VECTOR)));                                         \
    enum { T##_lanes = VECTOR / sizeof(T), T##_tile = 4 * T##_lanes };                                 \
    BY_LEVEL(static void, squares_##T, (const T *a, const T *b, int64_t m, double *restrict sums),     \
             (a, b, m, sums)) {                                                                        \
        const T##_vector *row = (const T##_vector *)b;                                                 \
        T##_vector s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};                                             \
        for (int64_t j = 0; j < m; j++, row += 4) {                                                    \
            T##_vector x = row[0] - a[j], y = row[1] - a[j], z = row[2] - a[j], w = row[3] - a[j];     \
            s0 += x * x, s1 += y * y, s2 += z * z, s3 += w * w;                                        \
        }                                                                                              \
        T##_vector all[4] = {s0, s1, s2, s3};                                                          \
        for (int k = 0; k < T##_tile; k++) sums[k] += ((const T *)all)[k];                             \
    }                                                                                                  \
    BY_LEVEL(static void, few_squares_##T, (const T *a, const T *b, int64_t m, double *restrict sums), \
             (a, b, m, sums)) {                                                                        \
        const T##_vector *row = (const T##_vector *)b;                                                 \
        T##_vector s = {0};                                                                            \
        for (int64_t j = 0; j < m; j++) {                                                              \
            T##_vector x = row[j] - a[j];                                                              \
            s += x * x;                                                                                \
        }                                                                                              \
        for (int k = 0; k < T##_lanes; k++) sums[k] += ((const T *)&s)[k];                             \
    }                                                                                                  \
    BY_LEVEL(static void, roots_##T, (const double *restrict sums, T *restrict to), (sums, to)) {      \
        for (int k = 0; k < T##_tile; k++) to[k] = root((T)sums[k]);                                   \
    }                                                                                                  \
    BY_LEVEL(static void, few_roots_##T, (const double *restrict sums, T *restrict to), (sums, to)) {  \
        for (int k = 0; k < T##_lanes; k++) to[k] = root((T)sums[k]);                                  \
    }                                                                                                  \
    static void euclidean_##T(const Distances *d, int64_t begin, int64_t count, int64_t first) {       \
        double sums[POINTS][T##_tile];                                                                 \
        _Alignas(VECTOR) T turned[DEPTH * T##_tile], made[T##_tile];                                   \
        int64_t left = d->others - first, wide = left < T##_tile ? left : T##_tile;                    \
        int few = wide <= T##_lanes, tile = few ? T##_lanes : T##_tile;                                \
        const T *from = (const T *)d->v->others.ptr + (begin / d->rows * d->others + first) * d->m;    \
        const T *points = (const T *)d->v->points.ptr + begin * d->m;                                  \
        T *to = (T *)d->v->distances.ptr;                                                              \
        if (d->pairs && begin + count > first + wide - 1) count = first + wide - 1 - begin;            \
        for (int64_t r = 0; r < count; r++)                                                            \
            for (int k = 0; k < tile; k++) sums[r][k] = 0;                                             \
        for (int64_t j = 0; j < d->m; j += DEPTH) {                                                    \
            int64_t deep = d->m - j < DEPTH ? d->m - j : DEPTH;                                        \
            for (int64_t k = 0; k < tile; k++)                                                         \
                for (int64_t i = 0; i < deep; i++)                                                     \
                    turned[i * tile + k] = k < wide ? from[k * d->m + j + i] : 0;                      \
            for (int64_t r = 0; r < count; r++)                                                        \
                (few ? few_squares_##T : squares_##T)(points + r * d->m + j, turned, deep, sums[r]);   \
        }                                                                                              \
        for (int64_t r = 0; r < count; r++) {                                                          \
            int64_t start = wanted(d, begin + r, first);                                               \
            (few ? few_roots_##T : roots_##T)(sums[r], made);                                          \
            memcpy(to + place_of(d, begin + r, start), made + (start - first),                         \
                   (size_t)(first + wide - start) * sizeof(T));                                        \
        }                                                                                              \
    }
EUCLIDEAN(float, sqrtf)
EUCLIDEAN(double, sqrt)

static void distances(void *context, int64_t begin, int64_t end) {
    const Distances *d = context;
    if (d->p == 2) {
        int tile = d->f64 ? double_tile : float_tile;
        for (int64_t i = begin, count; i < end; i += count) {
            int64_t left = d->rows - i % d->rows; /* of the points of a batch */
            count = end - i < left ? end - i : left;
            count = count < POINTS ? count : POINTS;
            for (int64_t k = 0; k < d->others; k += tile)
                (d->f64 ? euclidean_double : euclidean_float)(d, i, count, k);
        }
        return;
    }
    if (d->p == 1 || d->p == 0 || isinf(d->p)) {
        for (int64_t i = begin, count; i < end; i += count) {
            int64_t left = d->rows - i % d->rows; /* of the points of a batch */
            count = end - i < left ? end - i : left;
            count = count < BLOCK ? count : BLOCK;
            for (int64_t k = 0; k < d->others; k += TILE) block(d, i, count, k);
        }
        return;
    }
    for (int64_t i = begin; i < end; i++)
        for (int64_t k = wanted(d, i, 0); k < d->others; k++) {
            int64_t a = i * d->m, b = (i / d->rows * d->others + k) * d->m;
            double sum = 0;
            for (int64_t j = 0; j < d->m; j++)
                sum += pow(fabs(POINT(d->v->points, a + j) - POINT(d->v->others, b + j)), d->p);
            put_distance(d, place_of(d, i, k), pow(sum, 1 / d->p));
        }
}

FLB_KERNEL(distances) {
    Distances d = {.v = v,
                   .f64 = n->f64 != 0,
                   .pairs = n->pairs != 0,
                   .p = n->p,
                   .rows = v->points.shape[1],
                   .others = v->others.shape[1],
                   .m = v->points.shape[2]};
    if (d.others && d.rows)
        flb_parallel(distances, &d, v->points.shape[0] * d.rows, BLOCK + 100000 / (d.others * (d.m + 1)));
    return 0;
}

/* ---- draws by cumulative probabilities ----------------------------------------------------------------- */

FLB_KERNEL(categories) {
    int64_t rows = v->p.shape[0], m = v->p.shape[1], samples = v->draws.shape[1];
    double *reach = flb_api->malloc((size_t)(m + 1) * sizeof *reach);
    if (!reach) return -1;
    for (int64_t i = 0; i < rows && !status[0]; i++) {
        float narrow = 0;
        double sum = 0;
        for (int64_t j = 0; j < m; j++) {
            double p = n->f64 ? ((const double *)v->p.ptr)[i * m + j] : ((const float *)v->p.ptr)[i * m + j];
            if (!status[0] && !(p >= 0 && p <= 1.7976931348623157e308))
                status[0] = 1 + (p < 0 ? n->negative : n->not_finite);
            if (n->f64) sum += p;
            else narrow += (float)p, sum = narrow;
            reach[j] = sum;
        }
        if (!status[0] && !(sum > 0)) status[0] = 1 + n->no_mass;
        for (int64_t j = 0; j < m; j++)
            reach[j] = n->f64 ? reach[j] / sum : (double)((float)reach[j] / narrow);
        reach[m - 1] = 1;
        for (int64_t k = 0; k < samples; k++) {
            double u = ((const double *)v->draws.ptr)[i * samples + k];
            int64_t base = 0, left = m;
            while (left > 0) {
                int64_t half = left / 2;
                int further = reach[base + half] < u;
                base = further ? base + half + 1 : base;
                left = further ? left - half - 1 : half;
            }
            ((int64_t *)v->places.ptr)[i * samples + k] = base < m ? base : m - 1;
        }
    }
    flb_api->free(reach);
    return 0;
}
