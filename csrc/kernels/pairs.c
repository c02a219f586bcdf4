/* Ufuncs by hand: incomplete gamma functions where SciPy's take long, the zeta function with PyTorch's
 * answers at its ends, complex numbers of their parts. */
#include "runtime/floating.h"
#include "runtime/graph.h"
#include "runtime/levels.h"
#include <math.h>
#include <numpy/ufuncobject.h>
#include <string.h>

/* Each operation is rounded for itself, on every processor. */
#define EXACTLY optimize("O3", "fp-contract=off", "no-trapping-math")

enum { BLOCK = 256, TERMS = 22, COEFFICIENTS = 26 };

typedef struct {
    PyUFuncGenericFunction loop; /* SciPy's, of float64 */
    void *data;
    int upper;
} Other;

/* (-1)^n (zeta(n) - 1) / n from n = 2 on. */
static const double gamma_series[COEFFICIENTS] = {
    0x1.4a34cc4a60fa6p-2,  -0x1.13e001a557607p-4,  0x1.51322ac7d8483p-6,  -0x1.e404fc218f5f2p-8,
    0x1.7add6eadb6c30p-9,  -0x1.38ac5c2bf8e08p-10, 0x1.0b36af86396e9p-11, -0x1.d3fd4c76d2fc7p-13,
    0x1.a127b0f17d65ap-14, -0x1.78de5bd7c81efp-15, 0x1.580dcee66eb03p-16, -0x1.3cbc963ce2242p-17,
    0x1.2597a39f34aabp-18, -0x1.11b2eb7679541p-19, 0x1.0064cdeb22f0fp-20, -0x1.e2600d93cfd2fp-22,
    0x1.c76bbb3f07a4ep-23, -0x1.af5a6cbbf8a98p-24, 0x1.99b93c2070b10p-25, -0x1.862c734df3eacp-26,
    0x1.7469daccfadcdp-27, -0x1.6434a8447aeadp-28, 0x1.555a877ffd2c3p-29, -0x1.47b1679258d0ep-30,
    0x1.3b15d2b2fc10cp-31, -0x1.2f69a9fabe3e0p-32};

/* `n` elements of float64 by the loop of a function of the scalar table. */
static void by_loop(const char *name, const double *x, double *out, int64_t n) {
    char *at[] = {(char *)x, (char *)out};
    flb_element_block(name, 1)(at, (n + 15) & -16);
}

/* For 0 < a <= 1.5, 0 < x <= 1.1: x^a e^-x / gamma(a + 1) times the sum of x^n / ((a + 1) ... (a + n)) is the
 * lower function. Where it is more than about a half, the upper one is what two small numbers leave of 1 and
 * a series. `p` and `q` hold the exponents. */
BY_LEVEL_WITH(EXACTLY, static void, incomplete,
              (const double *a, const double *x, const double *front, const double *rest, const double *power,
               double *p, double *q, int64_t n),
              (a, x, front, rest, power, p, q, n)) {
    double term[BLOCK], part[BLOCK];
    for (int64_t i = 0; i < n; i++) term[i] = part[i] = p[i] = 1, q[i] = 0;
    for (int k = 1; k <= TERMS; k++) {
        double one = -1.0 / k;
        for (int64_t i = 0; i < n; i++) {
            double r = 1 / (a[i] + k);
            term[i] *= x[i] * r, p[i] += term[i];
            part[i] *= x[i] * one, q[i] += part[i] * r;
        }
    }
    for (int64_t i = 0; i < n; i++) p[i] *= front[i], q[i] = -rest[i] - power[i] * q[i];
}

BY_LEVEL_WITH(EXACTLY, static void, logarithms,
              (const double *a, const double *log1p_b, const double *log_a, double *out, int64_t n),
              (a, log1p_b, log_a, out, n)) {
    /* log(gamma(1 + a)), of b = a or a - 1 by its series */
    for (int64_t i = 0; i < n; i++) {
        double b = a[i] > 0.5 ? a[i] - 1 : a[i], s = 0;
        for (int k = COEFFICIENTS - 1; k >= 0; k--) s = s * b + gamma_series[k];
        s = (s * b + 0x1.b0ee6072093cep-2) * b - log1p_b[i];
        out[i] = a[i] > 0.5 ? s + log_a[i] : s;
    }
}

/* Whether the upper function has its series there. */
static inline int by_series(double a, double x, double log_x) {
    return x <= 0.5 ? !(-0.4 / log_x < a) : !(x * 1.1 < a);
}

static void near(const double *a, const double *x, double *out, int64_t n, int upper) {
    double log_a[BLOCK], log_x[BLOCK], b[BLOCK], gamma[BLOCK], power[BLOCK], front[BLOCK], rest[BLOCK],
        q[BLOCK];
    by_loop("log", a, log_a, n), by_loop("log", x, log_x, n);
    for (int64_t i = 0; i < n; i++) b[i] = a[i] > 0.5 ? a[i] - 1 : a[i];
    for (int64_t i = n; i < ((n + 15) & -16); i++) b[i] = b[0];
    by_loop("log1p", b, b, n);
    logarithms(a, b, log_a, gamma, n);
    for (int64_t i = 0; i < n; i++) {
        rest[i] = a[i] * log_x[i] - gamma[i]; /* log of x^a / gamma(a + 1) */
        power[i] = rest[i] + log_a[i];        /* log of x^a / gamma(a) */
        front[i] = rest[i] - x[i];
    }
    for (int64_t i = n; i < ((n + 15) & -16); i++) rest[i] = power[i] = front[i] = 0;
    by_loop("exp", front, front, n);
    if (upper) by_loop("exp", power, power, n), by_loop("expm1", rest, rest, n);
    incomplete(a, x, front, rest, power, out, q, n);
    for (int64_t i = 0; upper && i < n; i++) out[i] = by_series(a[i], x[i], log_x[i]) ? q[i] : 1 - out[i];
}

typedef struct {
    double a[BLOCK], x[BLOCK], out[BLOCK];
    int64_t places[BLOCK], n;
} Elements;

static void gamma_loop(char **args, npy_intp const *count, npy_intp const *steps, const Other *other,
                       int item) {
    unsigned raised = flb_floating_flags();
    Elements own = {.n = 0}, others = {.n = 0};
    for (int64_t i = 0; i < *count; i += BLOCK) {
        int64_t n = *count - i < BLOCK ? *count - i : BLOCK;
        own.n = others.n = 0;
        for (int64_t j = i; j < i + n; j++) {
            const char *pa = args[0] + j * steps[0], *px = args[1] + j * steps[1];
            double a = item == 8 ? *(const double *)pa : *(const float *)pa,
                   x = item == 8 ? *(const double *)px : *(const float *)px;
            Elements *part = a > 0 && a <= 1.5 && x > 0 && x <= 1.1 ? &own : &others;
            part->a[part->n] = a, part->x[part->n] = x, part->places[part->n++] = j;
        }
        for (int64_t j = own.n; own.n && j < ((own.n + 15) & -16); j++)
            own.a[j] = own.a[0], own.x[j] = own.x[0];
        if (own.n) near(own.a, own.x, own.out, own.n, other->upper);
        if (others.n) {
            char *at[] = {(char *)others.a, (char *)others.x, (char *)others.out};
            npy_intp dense[] = {8, 8, 8}, m = others.n;
            other->loop(at, &m, dense, other->data);
        }
        for (const Elements *part = &own;; part = &others) {
            for (int64_t j = 0; j < part->n; j++) {
                char *to = args[2] + part->places[j] * steps[2];
                if (item == 8) *(double *)to = part->out[j];
                else *(float *)to = (float)part->out[j];
            }
            if (part == &others) break;
        }
    }
    flb_floating_clear(), flb_floating_raise(raised);
}

/* A pole at integers that aren't positive, undefined for other negative q unless x is an integer: as Cephes
 * has it. */
static double zeta_corrected(double x, double q, double found) {
    if (x == 1) return INFINITY;
    if (x < 1) return NAN;
    int whole = q == floor(q);
    if (q < 0 && !whole && x != floor(x)) return NAN;
    return q <= 0 && whole ? INFINITY : found;
}

static void zeta_loop(char **args, npy_intp const *count, npy_intp const *steps, const Other *other,
                      int item) {
    unsigned raised = flb_floating_flags();
    double x[BLOCK], q[BLOCK], out[BLOCK];
    for (int64_t i = 0; i < *count; i += BLOCK) {
        npy_intp n = *count - i < BLOCK ? *count - i : BLOCK, dense[] = {8, 8, 8};
        for (int64_t j = 0; j < n; j++) {
            const char *px = args[0] + (i + j) * steps[0], *pq = args[1] + (i + j) * steps[1];
            x[j] = item == 8 ? *(const double *)px : *(const float *)px,
            q[j] = item == 8 ? *(const double *)pq : *(const float *)pq;
        }
        char *at[] = {(char *)x, (char *)q, (char *)out};
        other->loop(at, &n, dense, other->data);
        for (int64_t j = 0; j < n; j++) {
            char *to = args[2] + (i + j) * steps[2];
            double found = zeta_corrected(x[j], q[j], out[j]);
            if (item == 8) *(double *)to = found;
            else *(float *)to = (float)found;
        }
    }
    flb_floating_clear(), flb_floating_raise(raised);
}

/* A complex number of its parts. */
static void complex_loop(char **args, npy_intp const *count, npy_intp const *steps, const Other *other,
                         int item) {
    const char *x = args[0], *y = args[1];
    char *to = args[2];
#define PARTS(T)                                                                     \
    if (steps[0] == item && steps[1] == item && steps[2] == 2 * item) {              \
        for (int64_t i = 0; i < *count; i++) {                                       \
            T real = ((const T *)x)[i], imaginary = ((const T *)y)[i];               \
            ((T *)to)[2 * i] = real, ((T *)to)[2 * i + 1] = imaginary;               \
        }                                                                            \
        return;                                                                      \
    }                                                                                \
    for (int64_t i = 0; i < *count; i++) {                                           \
        T pair[] = {*(const T *)(x + i * steps[0]), *(const T *)(y + i * steps[1])}; \
        memcpy(to + i * steps[2], pair, sizeof pair);                                \
    }
    if (item == 8) {
        PARTS(double)
        return;
    }
    PARTS(float)
#undef PARTS
}

#define LOOPS(name)                                                                                 \
    static void name##_f32(char **args, npy_intp const *count, npy_intp const *steps, void *data) { \
        name##_loop(args, count, steps, data, 4);                                                   \
    }                                                                                               \
    static void name##_f64(char **args, npy_intp const *count, npy_intp const *steps, void *data) { \
        name##_loop(args, count, steps, data, 8);                                                   \
    }
LOOPS(gamma)
LOOPS(zeta)
LOOPS(complex)

static const struct {
    const char *name;
    PyUFuncGenericFunction loops[2];
    int pairs, upper;
} made[] = {
    {"gammainc", {gamma_f32, gamma_f64}, 0, 0},
    {"gammaincc", {gamma_f32, gamma_f64}, 0, 1},
    {"zeta", {zeta_f32, zeta_f64}, 0, 0},
    {"complex", {complex_f32, complex_f64}, 1, 0},
};

typedef struct {
    PyUFuncGenericFunction loops[2];
    void *data[2];
    char types[6];
    Other other;
} Kept; /* NumPy keeps the pointers for good */

/* The loop dd->d of `u`, which lives for good. */
static int find(Other *to, PyObject *u) {
    PyUFuncObject *f = (PyUFuncObject *)u;
    for (int i = 0; f->nargs == 3 && i < f->ntypes; i++) {
        const char *t = f->types + 3 * i;
        if (t[0] != NPY_DOUBLE || t[1] != NPY_DOUBLE || t[2] != NPY_DOUBLE) continue;
        to->loop = f->functions[i], to->data = f->data ? f->data[i] : NULL;
        Py_INCREF(u);
        return 0;
    }
    PyErr_Format(PyExc_ValueError, "%s has no loop dd->d", f->name);
    return -1;
}

/* pair_function(name, other): a ufunc of two operands; `other` is SciPy's that it calls, or None. */
PyObject *flb_pair_function(PyObject *self, PyObject *args) {
    const char *name;
    PyObject *other;
    if (!PyArg_ParseTuple(args, "sO", &name, &other)) return NULL;
    if (other != Py_None && strcmp(Py_TYPE(other)->tp_name, "numpy.ufunc"))
        return PyErr_SetString(PyExc_TypeError, "pair_function(name, ufunc or None)"), NULL;
    if (!PyUFunc_API && _import_umath() < 0) return NULL;
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        if (strcmp(made[i].name, name)) continue;
        if ((other == Py_None) != made[i].pairs)
            return PyErr_Format(PyExc_TypeError, "%s takes %s", name, made[i].pairs ? "no ufunc" : "a ufunc"),
                   NULL;
        Kept *k = PyMem_RawCalloc(1, sizeof *k);
        if (!k) return PyErr_NoMemory();
        if (other != Py_None && find(&k->other, other) < 0) return PyMem_RawFree(k), NULL;
        k->other.upper = made[i].upper;
        for (int w = 0; w < 2; w++) {
            k->loops[w] = made[i].loops[w], k->data[w] = &k->other;
            char real = w ? NPY_DOUBLE : NPY_FLOAT, out = made[i].pairs ? w ? NPY_CDOUBLE : NPY_CFLOAT : real;
            memcpy(k->types + 3 * w, (char[]){real, real, out}, 3);
        }
        return PyUFunc_FromFuncAndData(k->loops, k->data, k->types, 2, 2, 1, PyUFunc_None, made[i].name,
                                       "Of two operands, as eager calls and compiled graphs compute it.", 0);
    }
    return PyErr_Format(PyExc_LookupError, "no function of two operands is called %s", name), NULL;
}
