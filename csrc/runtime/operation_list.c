/* Lists of scalar operations, as loops/gradients/listing.py records them: hyper-dual numbers are carried
 * through them, forwards, and cotangents of such numbers, backwards. What an operation does with the parts of
 * its operands is a straight program of scalar operations (loops/gradients/hyperdual.py). */
#define NO_IMPORT_ARRAY
#include "runtime/graph.h"
#include <math.h>

typedef struct {
    uint32_t op, a, b, unused; /* a, b: rows of the operands, 0 for constants */
    double x, y;               /* the operands' values */
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
enum { LIST_NONE, OPERATIONS(NUMBER) LIST_COUNT };
#define TEXT(name, value) #name,
static const char *const names[] = {"NONE", OPERATIONS(TEXT)};

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

typedef struct {
    uint32_t op, a, b; /* a, b: slots, below its own */
} ListStep;

/* Where the program of an operation lies: its steps, and what it makes (slots). begin < 0: there is none. */
typedef struct {
    int64_t begin, end, makes;
} ListProgram;

enum {
    PLACES = 4 * LIST_COUNT
}; /* of programs: 4 * operation + (1: the first operand is no constant) + (2: the second) */

typedef struct {
    const Operation *list;
    const ListStep *steps;
    const ListProgram *programs;
    const uint32_t *makes;
    const double *constants;
    double *values, *cotangents; /* rows of `parts` numbers */
    Py_ssize_t count, base, parts, constant_count;
} Sweep;

static inline Py_ssize_t place_of(const Operation *o) {
    return 4 * (Py_ssize_t)o->op + (o->a != 0) + 2 * (o->b != 0);
}

#define VALUE(name, value) \
    case LIST_##name: *slot = (value); break;

/* Slots: the parts of x, y, the result, its cotangent; constants; then one for each step. */
static void run(const Sweep *w, const ListProgram *p, double *slots) {
    double *slot = slots + 4 * w->parts + w->constant_count;
    for (const ListStep *s = w->steps + p->begin, *end = w->steps + p->end; s < end; s++, slot++) {
        double x = slots[s->a], y = slots[s->b];
        switch (s->op) { OPERATIONS(VALUE) }
    }
}

static void operands(const Sweep *w, const Operation *o, double *slots) {
    Py_ssize_t n = w->parts;
    slots[0] = o->x, slots[n] = o->y;
    for (Py_ssize_t k = 1; o->a && k < n; k++) slots[k] = w->values[o->a * n + k];
    for (Py_ssize_t k = 1; o->b && k < n; k++) slots[n + k] = w->values[o->b * n + k];
}

static void forwards(const Sweep *w, double *slots) {
    Py_ssize_t n = w->parts;
    for (Py_ssize_t k = 0; k < w->count; k++) {
        const Operation *o = &w->list[k];
        const ListProgram *p = &w->programs[place_of(o)];
        double *r = w->values + (w->base + k) * n;
        operands(w, o, slots);
        run(w, p, slots);
        for (Py_ssize_t j = 0; j < n; j++) r[j] = slots[w->makes[p->makes + j]];
    }
}

static void backwards(const Sweep *w, double *slots) {
    Py_ssize_t n = w->parts;
    for (Py_ssize_t k = w->count - 1; k >= 0; k--) {
        const Operation *o = &w->list[k];
        const ListProgram *p = &w->programs[PLACES + place_of(o)];
        const double *r = w->values + (w->base + k) * n, *g = w->cotangents + (w->base + k) * n;
        int any = 0;
        for (Py_ssize_t j = 0; j < n; j++) any |= g[j] != 0;
        if (!any) continue; /* what wasn't selected never meets an infinity */
        operands(w, o, slots);
        memcpy(slots + 2 * n, r, sizeof(double) * n);
        memcpy(slots + 3 * n, g, sizeof(double) * n);
        run(w, p, slots);
        const uint32_t *makes = w->makes + p->makes;
        for (Py_ssize_t j = 0; o->a && j < n; j++) w->cotangents[o->a * n + j] += slots[makes[j]];
        for (Py_ssize_t j = 0; o->b && j < n; j++) w->cotangents[o->b * n + j] += slots[makes[n + j]];
    }
}

/* Whether nothing lies outside of what it points into; *most: the most steps of a program. */
static int sound(const Sweep *w, const Py_buffer *steps, const Py_buffer *makes, const Py_buffer *values,
                 const Py_buffer *cotangents, Py_ssize_t *most) {
    Py_ssize_t n = w->parts, step_count = steps->len / (Py_ssize_t)sizeof(ListStep),
               make_count = makes->len / 4;
    Py_ssize_t rows = w->base + w->count, first = 4 * n + w->constant_count, back = cotangents->len > 0;
    if (n < 1 || n > 1 << 16 || w->base < 1 || values->len / (8 * n) < rows ||
        (back && cotangents->len / (8 * n) < rows))
        return 0;
    *most = 0;
    for (Py_ssize_t k = 0; k < 2 * PLACES; k++) {
        const ListProgram *p = &w->programs[k];
        if (p->begin < 0) continue;
        Py_ssize_t length = p->end - p->begin, made = k < PLACES ? n : 2 * n;
        if (length < 0 || p->end > step_count || p->makes < 0 || p->makes + made > make_count) return 0;
        for (Py_ssize_t j = 0; j < length; j++) {
            const ListStep *s = &w->steps[p->begin + j];
            if (!s->op || s->op >= LIST_COUNT || s->a >= first + j || s->b >= first + j) return 0;
        }
        for (Py_ssize_t j = 0; j < made; j++)
            if (w->makes[p->makes + j] >= first + length) return 0;
        if (length > *most) *most = length;
    }
    for (Py_ssize_t k = 0; k < w->count; k++) {
        const Operation *o = &w->list[k];
        if (!o->op || o->op >= LIST_COUNT || o->a >= w->base + k || o->b >= w->base + k) return 0;
        if (w->programs[place_of(o) + (back ? PLACES : 0)].begin < 0) return 0;
    }
    return 1;
}

/* sweep_operations(list, base, parts, values, cotangents, steps, programs, makes, constants): the operations'
 * rows of `values` from those of their operands, or, with cotangents, what goes from their rows to those of
 * their operands. The list's first operation has row `base`. */
PyObject *flb_sweep_operations(PyObject *self, PyObject *args) {
    (void)self;
    Py_buffer list, values, cotangents, steps, programs, makes, constants;
    Sweep w;
    if (!PyArg_ParseTuple(args, "y*nnw*w*y*y*y*y*", &list, &w.base, &w.parts, &values, &cotangents, &steps,
                          &programs, &makes, &constants))
        return NULL;
    w.list = list.buf, w.count = list.len / (Py_ssize_t)sizeof(Operation);
    w.values = values.buf, w.cotangents = cotangents.buf;
    w.steps = steps.buf, w.programs = programs.buf, w.makes = makes.buf, w.constants = constants.buf;
    w.constant_count = constants.len / (Py_ssize_t)sizeof(double);
    Py_ssize_t most = 0;
    double *slots = NULL;
    if (programs.len != 2 * PLACES * (Py_ssize_t)sizeof(ListProgram) ||
        !sound(&w, &steps, &makes, &values, &cotangents, &most))
        PyErr_SetString(PyExc_ValueError, "no list of operations, or too little room for their values");
    else if (!(slots = PyMem_Calloc(4 * w.parts + w.constant_count + most, sizeof(double)))) PyErr_NoMemory();
    else {
        memcpy(slots + 4 * w.parts, w.constants, constants.len);
        Py_BEGIN_ALLOW_THREADS;
        if (cotangents.len) backwards(&w, slots);
        else forwards(&w, slots);
        Py_END_ALLOW_THREADS;
    }
    PyMem_Free(slots);
    Py_buffer *given[] = {&list, &values, &cotangents, &steps, &programs, &makes, &constants};
    for (size_t k = 0; k < sizeof given / sizeof *given; k++) PyBuffer_Release(given[k]);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}
