/* Lists of scalar operations, as loops/listing.py records them and loops/operations.py differentiates them:
 * each operation is computed from at most two earlier ones, or constants. */
#define NO_IMPORT_ARRAY
#include "runtime/graph.h"
#include <math.h>

typedef struct {
    uint32_t op, a, b, unused; /* a, b: numbers of operations; 0 for the constants x, y */
    double x, y;
} Operation;

/* A row is an operation, not a declaration. */
/* clang-format off */
#define OPERATIONS(X)                                                                                        \
    X(ADD, x + y) X(SUB, x - y) X(MUL, x * y) X(DIV, x / y) X(NEG, -x) X(FREM, fmod(x, y))                   \
    X(SCALED, y == 0 ? 0 : x * y) X(EQ, x == y) X(GT, x > y) X(WHEN, x != 0 ? y : 0)                         \
    X(UNLESS, x != 0 ? 0 : y) X(SQRT, sqrt(x)) X(EXP, exp(x)) X(EXP2, exp2(x)) X(EXPM1, expm1(x))            \
    X(LOG, log(x)) X(LOG2, log2(x)) X(LOG10, log10(x)) X(LOG1P, log1p(x)) X(SIN, sin(x)) X(COS, cos(x))      \
    X(TAN, tan(x)) X(SINH, sinh(x)) X(COSH, cosh(x)) X(TANH, tanh(x)) X(ASIN, asin(x)) X(ACOS, acos(x))      \
    X(ATAN, atan(x)) X(ASINH, asinh(x)) X(ACOSH, acosh(x)) X(ATANH, atanh(x)) X(ERF, erf(x))                 \
    X(ERFC, erfc(x)) X(FABS, fabs(x)) X(CBRT, cbrt(x)) X(TRUNC, trunc(x)) X(POW, pow(x, y))                  \
    X(ATAN2, atan2(x, y)) X(HYPOT, hypot(x, y)) X(FMOD, fmod(x, y)) X(COPYSIGN, copysign(x, y))
/* clang-format on */

#define NUMBER(name, value) LIST_##name,
enum { LIST_LEAF, OPERATIONS(NUMBER) LIST_COUNT };
#define TEXT(name, value) #name,
static const char *const names[] = {"LEAF", OPERATIONS(TEXT)};

/* operation_names() -> tuple, by number */
PyObject *flb_operation_names(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    PyObject *out = PyTuple_New(LIST_COUNT);
    for (int k = 0; out && k < LIST_COUNT; k++) {
        PyObject *name = PyUnicode_FromString(names[k]);
        if (!name) Py_CLEAR(out);
        else PyTuple_SET_ITEM(out, k, name);
    }
    return out;
}

static int taken(PyObject *args, Py_buffer *list, Py_buffer *values, Py_ssize_t width) {
    if (!PyArg_ParseTuple(args, "y*w*", list, values)) return -1;
    Py_ssize_t n = list->len / (Py_ssize_t)sizeof(Operation), bad = values->len < n * width;
    const Operation *o = list->buf;
    for (Py_ssize_t k = 0; k < n && !bad; k++)
        bad = o[k].op >= LIST_COUNT || (o[k].op && (o[k].a >= k || o[k].b >= k));
    if (!bad) return 0;
    PyBuffer_Release(list);
    PyBuffer_Release(values);
    PyErr_SetString(PyExc_ValueError, "no list of operations, or too little room for their values");
    return -1;
}

#define VALUE(name, value) \
    case LIST_##name: v[k] = (value); break;

/* compute_operations(list, values): the values of leaves are given. */
PyObject *flb_compute_operations(PyObject *self, PyObject *args) {
    (void)self;
    Py_buffer list, values;
    if (taken(args, &list, &values, sizeof(double)) < 0) return NULL;
    Py_ssize_t n = list.len / (Py_ssize_t)sizeof(Operation);
    const Operation *o = list.buf;
    double *v = values.buf;
    Py_BEGIN_ALLOW_THREADS for (Py_ssize_t k = 0; k < n; k++) {
        double x = o[k].a ? v[o[k].a] : o[k].x, y = o[k].b ? v[o[k].b] : o[k].y;
        switch (o[k].op) {
        case LIST_LEAF:
            break; /* given */
            OPERATIONS(VALUE)
        }
    }
    Py_END_ALLOW_THREADS PyBuffer_Release(&list);
    PyBuffer_Release(&values);
    Py_RETURN_NONE;
}

/* wanted_operations(list, wanted): mark what the marked ones are computed from. */
PyObject *flb_wanted_operations(PyObject *self, PyObject *args) {
    (void)self;
    Py_buffer list, wanted;
    if (taken(args, &list, &wanted, 1) < 0) return NULL;
    const Operation *o = list.buf;
    char *w = wanted.buf;
    for (Py_ssize_t k = list.len / (Py_ssize_t)sizeof(Operation) - 1; k > 0; k--)
        if (w[k] && o[k].op) w[o[k].a] = w[o[k].b] = 1;
    PyBuffer_Release(&list);
    PyBuffer_Release(&wanted);
    Py_RETURN_NONE;
}
