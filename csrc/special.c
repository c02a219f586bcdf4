/* Functions that NumPy and SciPy have as loops over elements, run on the pool without Python; orthogonal polynomials by their recurrences; distances of points; draws by
 * cumulative probabilities. Arrays are in C order. */
#include "graph.h"
#include <math.h>
#include <numpy/ufuncobject.h>
#include <string.h>

static int64_t elements(const View *v) {
    int64_t n = 1;
    for (int d = 0; d < v->ndim; d++) n *= v->shape[d];
    return n;
}

/* --- loops of ufuncs --------------------------------------------------------------------------------------------------------- */

#define SLOTS 256
#define CHUNK 512
#define OPERANDS 8
static struct {
    PyUFuncGenericFunction fn;
    void *data;
    int nin, nout;
    PyObject *owner;            /* the ufunc, kept for good */
} loops[SLOTS];

/* use_ufunc(slot, ufunc, types): its loop for these types ("dd->d"), kept for templates. ValueError where it has none. */
PyObject *flb_use_ufunc(PyObject *self, PyObject *args) {
    int slot;
    PyObject *o;
    const char *types;
    if (!PyArg_ParseTuple(args, "iOs", &slot, &o, &types)) return NULL;
    const char *arrow = strstr(types, "->");
    if (slot < 0 || slot >= SLOTS || strcmp(Py_TYPE(o)->tp_name, "numpy.ufunc") || !arrow) return PyErr_SetString(PyExc_ValueError, "use_ufunc(slot, ufunc, types)"), NULL;
    PyUFuncObject *u = (PyUFuncObject *)o;
    int nin = (int)(arrow - types), nout = (int)strlen(arrow + 2);
    if (u->nin != nin || u->nout != nout || nin + nout > OPERANDS) return PyErr_Format(PyExc_ValueError, "use_ufunc: %s takes %d and gives %d", u->name, u->nin, u->nout), NULL;
    for (int i = 0; i < u->ntypes; i++) {
        const char *own = u->types + i * u->nargs;
        int same = 1;
        for (int k = 0; k < u->nargs; k++) {
            PyArray_Descr *d = PyArray_DescrFromType(k < nin ? types[k] : arrow[2 + k - nin]);
            if (!d) return NULL;
            same &= own[k] == d->type_num;
            Py_DECREF(d);
        }
        if (!same) continue;
        loops[slot].fn = u->functions[i], loops[slot].data = u->data ? u->data[i] : NULL, loops[slot].nin = nin, loops[slot].nout = nout;
        Py_XSETREF(loops[slot].owner, Py_NewRef(o));
        Py_RETURN_NONE;
    }
    return PyErr_Format(PyExc_ValueError, "use_ufunc: %s has no loop %s", u->name, types), NULL;
}

typedef struct {
    const View *v;
    int n, slot, item[OPERANDS];
} Calls;

static void calls(void *context, int64_t begin, int64_t end) {
    const Calls *c = context;
    char spare[OPERANDS][CHUNK * 8], *args[OPERANDS];
    npy_intp steps[OPERANDS];
    int all = loops[c->slot].nin + loops[c->slot].nout;
    for (int64_t i = begin; i < end; i += CHUNK) {
        npy_intp count = end - i < CHUNK ? end - i : CHUNK;
        for (int k = 0; k < all; k++) {
            steps[k] = k < c->n ? c->item[k] : 8;
            args[k] = k < c->n ? c->v[k].ptr + i * c->item[k] : spare[k];
        }
        loops[c->slot].fn(args, &count, steps, loops[c->slot].data);
    }
}

/* Views: the operands and the first results of a ufunc, of equal shapes. Numbers: the slot, then the bytes of an element of each view. */
int flb_ufunc_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    Calls c = {.v = v, .n = n, .slot = (int)numbers[0]};
    if (c.slot < 0 || c.slot >= SLOTS || !loops[c.slot].fn || n > loops[c.slot].nin + loops[c.slot].nout || n <= loops[c.slot].nin) return -1;
    for (int k = 0; k < n; k++) c.item[k] = (int)numbers[1 + k];
    flb_parallel(calls, &c, elements(&v[0]), 500);
    return 0;
}

/* --- orthogonal polynomials ---------------------------------------------------------------------------------------------------- */

enum { CHEBYSHEV_T, CHEBYSHEV_U, CHEBYSHEV_V, CHEBYSHEV_W, SHIFTED_T, SHIFTED_U, SHIFTED_V, SHIFTED_W, HERMITE_H, HERMITE_HE, LAGUERRE, LEGENDRE };

typedef struct {
    const View *v;
    int kind, f64;
} Polynomials;

static double polynomial(int kind, double x, double degree) {
    double n = trunc(degree), before = 1, now, next;
    if (n != n) return 1;
    if (x != x && n > 0) return x;
    if (n < 0) return 0;
    if (n < 1 || isinf(n)) return 1;
    switch (kind) {
        case CHEBYSHEV_T: case HERMITE_HE: case LEGENDRE: now = x; break;
        case CHEBYSHEV_U: case HERMITE_H: now = 2 * x; break;
        case CHEBYSHEV_V: case SHIFTED_T: now = 2 * x - 1; break;
        case CHEBYSHEV_W: now = 2 * x + 1; break;
        case SHIFTED_U: now = 4 * x - 2; break;
        case SHIFTED_V: now = 4 * x - 3; break;
        case SHIFTED_W: now = 4 * x - 1; break;
        default: now = 1 - x;
    }
    for (double k = 1; k < n; k++, before = now, now = next) {
        if (kind < SHIFTED_T) next = 2 * x * now - before;
        else if (kind < HERMITE_H) next = (4 * x - 2) * now - before;
        else if (kind == HERMITE_H) next = 2 * x * now - 2 * k * before;
        else if (kind == HERMITE_HE) next = x * now - k * before;
        else if (kind == LAGUERRE) next = ((2 * k + 1 - x) * now - k * before) / (k + 1);
        else next = ((2 * k + 1) * x * now - k * before) / (k + 1);
    }
    return now;
}

static void polynomials(void *context, int64_t begin, int64_t end) {
    const Polynomials *p = context;
    for (int64_t i = begin; i < end; i++) {
        if (p->f64) ((double *)p->v[2].ptr)[i] = polynomial(p->kind, ((const double *)p->v[0].ptr)[i], ((const double *)p->v[1].ptr)[i]);
        else ((float *)p->v[2].ptr)[i] = (float)polynomial(p->kind, ((const float *)p->v[0].ptr)[i], ((const float *)p->v[1].ptr)[i]);
    }
}

/* Views: points, degrees (truncated), values, all float32 or float64. Numbers: the family, whether float64. */
int flb_polynomial_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    Polynomials p = {v, (int)numbers[0], numbers[1] != 0};
    flb_parallel(polynomials, &p, elements(&v[0]), 200);
    return 0;
}

/* --- distances ------------------------------------------------------------------------------------------------------------------ */

typedef struct {
    const View *v;
    int f64;
    double p;
    int64_t rows, others, m;
} Distances;

#define POINT(view, i) (d->f64 ? ((const double *)(view).ptr)[i] : (double)((const float *)(view).ptr)[i])

static void distances(void *context, int64_t begin, int64_t end) {
    const Distances *d = context;
    for (int64_t i = begin; i < end; i++)
        for (int64_t k = 0; k < d->others; k++) {
            int64_t a = i * d->m, b = (i / d->rows * d->others + k) * d->m;
            double sum = 0;
            for (int64_t j = 0; j < d->m; j++) {
                double apart = fabs(POINT(d->v[0], a + j) - POINT(d->v[1], b + j));
                if (d->p == 2) sum += apart * apart;
                else if (d->p == 1) sum += apart;
                else if (d->p == 0) sum += apart != 0;
                else if (isinf(d->p)) sum = apart > sum || apart != apart ? apart : sum;
                else sum += pow(apart, d->p);
            }
            double y = d->p == 2 ? sqrt(sum) : d->p == 1 || d->p == 0 || isinf(d->p) ? sum : pow(sum, 1 / d->p);
            if (d->f64) ((double *)d->v[2].ptr)[i * d->others + k] = y;
            else ((float *)d->v[2].ptr)[i * d->others + k] = (float)y;
        }
}

/* Views: points (batch, rows, m), others (batch, others, m), their distances (batch, rows, others), float32 or float64, summed in float64. Numbers: whether float64, the
 * norm's p as bits of a double. */
int flb_distances_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    Distances d = {.v = v, .f64 = numbers[0] != 0, .rows = v[0].shape[1], .others = v[1].shape[1], .m = v[0].shape[2]};
    memcpy(&d.p, &numbers[1], 8);
    if (d.others && d.rows) flb_parallel(distances, &d, v[0].shape[0] * d.rows, 1 + 20000 / (d.others * (d.m + 1)));
    return 0;
}

/* --- draws by cumulative probabilities --------------------------------------------------------------------------------------------- */

/* Views: probabilities (rows, categories), float32 or float64, uniform draws (rows, samples), float64, the categories drawn (int64). Numbers: whether float64, the messages
 * for a negative number, one that isn't finite, and no mass. The sums are made in the probabilities' type, in order. */
int flb_categories_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    int64_t rows = v[0].shape[0], m = v[0].shape[1], samples = v[1].shape[1];
    double *reach = flb_api->malloc((size_t)(m + 1) * sizeof *reach);
    if (!reach) return -1;
    for (int64_t i = 0; i < rows && !status[0]; i++) {
        float narrow = 0;
        double sum = 0;
        for (int64_t j = 0; j < m; j++) {
            double p = numbers[0] ? ((const double *)v[0].ptr)[i * m + j] : ((const float *)v[0].ptr)[i * m + j];
            if (!status[0] && !(p >= 0 && p <= 1.7976931348623157e308)) status[0] = 1 + (p < 0 ? numbers[1] : numbers[2]);
            if (numbers[0]) sum += p;
            else narrow += (float)p, sum = narrow;
            reach[j] = sum;
        }
        if (!status[0] && !(sum > 0)) status[0] = 1 + numbers[3];
        for (int64_t j = 0; j < m; j++) reach[j] = numbers[0] ? reach[j] / sum : (double)((float)reach[j] / narrow);
        reach[m - 1] = 1;
        for (int64_t k = 0; k < samples; k++) {
            double u = ((const double *)v[1].ptr)[i * samples + k];
            int64_t base = 0, left = m;
            while (left > 0) {
                int64_t half = left / 2;
                int further = reach[base + half] < u;
                base = further ? base + half + 1 : base;
                left = further ? left - half - 1 : half;
            }
            ((int64_t *)v[2].ptr)[i * samples + k] = base < m ? base : m - 1;
        }
    }
    flb_api->free(reach);
    return 0;
}
