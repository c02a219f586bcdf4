/* Sizes of a launch: symbols are bound to the sizes, strides and values of inputs, and the graph's own code
 * computes from them what its steps read. */
#include "runtime/launch.h"
#include <math.h>
#include <string.h>

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

static double as_double(int64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static int64_t as_bits(double x) {
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The operations after OP_MAX. -1 when there is no result (an overflow, a shift by too much, a division by
 * zero). */
static int rare(int op, int64_t a, int64_t b, int64_t *r) {
    double x = as_double(a), y = as_double(b);
    switch (op) {
    case OP_AND: *r = a & b; return 0;
    case OP_OR: *r = a | b; return 0;
    case OP_XOR: *r = a ^ b; return 0;
    case OP_SHL: return b < 0 || b > 62 || __builtin_mul_overflow(a, (int64_t)1 << b, r) ? -1 : 0;
    case OP_SHR:
        if (b < 0) return -1;
        *r = a >> (b > 63 ? 63 : b);
        return 0;
    case OP_POW:
        if (b < 0) return -1;
        for (*r = 1; b; b >>= 1) {
            if (b & 1 && __builtin_mul_overflow(*r, a, r)) return -1;
            if (b > 1 && __builtin_mul_overflow(a, a, &a)) return -1;
        }
        return 0;
    case OP_FLOAT: *r = as_bits((double)a); return 0;
    case OP_FADD: *r = as_bits(x + y); return 0;
    case OP_FSUB: *r = as_bits(x - y); return 0;
    case OP_FMUL: *r = as_bits(x * y); return 0;
    case OP_FDIV:
        if (y == 0) return -1;
        *r = as_bits(x / y);
        return 0;
    case OP_FFLOOR: *r = as_bits(floor(x)); return 0;
    case OP_FSQRT:
        if (!(x >= 0)) return -1;
        *r = as_bits(sqrt(x));
        return 0;
    case OP_FNEG: *r = as_bits(-x); return 0;
    case OP_TRUNC:
        if (!(x > -9.2e18 && x < 9.2e18)) return -1;
        *r = (int64_t)x;
        return 0;
    }
    return -1;
}

int flb_run_code(const Stage *stage, Frame *f) {
    for (int i = 0; i < stage->ncode; i++) {
        const Instruction *c = &stage->code[i];
        int64_t a = f[c->a], b = f[c->b], r = a;
        int bad = 0;
        switch (c->op) {
        case OP_MOVE: break;
        case OP_ADD: bad = __builtin_add_overflow(a, b, &r); break;
        case OP_MUL: bad = __builtin_mul_overflow(a, b, &r); break;
        case OP_MIN: r = a < b ? a : b; break;
        case OP_MAX: r = a > b ? a : b; break;
        case OP_DIV:
        case OP_MOD:
            if (b == 0 || b == -1) {
                if (b == 0)
                    return PyErr_SetString(PyExc_ZeroDivisionError,
                                           "compiled graph: a size is divided by zero"),
                           -1;
                bad = c->op == OP_DIV ? __builtin_sub_overflow((int64_t)0, a, &r) : (r = 0);
            } else r = c->op == OP_DIV ? floor_div(a, b) : a - floor_div(a, b) * b;
            break;
        default: bad = rare(c->op, a, b, &r) < 0;
        }
        if (bad)
            return PyErr_SetString(PyExc_OverflowError,
                                   "compiled graph: what sizes are computed to does not fit into 64 bits"),
                   -1;
        f[c->dst] = r;
    }
    return 0;
}

int flb_out_of_range(const Bind *b, int64_t v, const char *what, PyObject *on_error) {
    if (v >= b->lo && v <= b->hi && v % b->divisor == 0) return 0;
    if (on_error) { /* a check of the program may have words for it */
        PyObject *said = PyObject_CallFunction(on_error, "iLi", -2, (long long)v, b->dst);
        if (!said) return 1;
        Py_DECREF(said);
    }
    PyErr_Format(PyExc_RuntimeError,
                 "compiled graph: %s %d has %s %lld, it was compiled for values from %lld to %lld that are "
                 "multiples of %lld",
                 what, b->source,
                 b->what == BIND_SIZE         ? "a size of"
                     : b->what == BIND_STRIDE ? "a stride of"
                                              : "the value",
                 (long long)v, (long long)b->lo, (long long)b->hi, (long long)b->divisor);
    return 1;
}

int flb_bind_symbols(const Stage *stage, Frame *f, PyObject *const *sources, const char *what,
                     PyObject *on_error) {
    for (int i = 0; i < stage->nbinds; i++) {
        const Bind *b = &stage->binds[i];
        PyObject *x = sources[b->source];
        PyArrayObject *a = flb_array_of(x);
        int64_t v;
        if (b->what == BIND_VALUE) {
            PyObject *number = PyNumber_Index(x);
            if (!number) return -1;
            v = PyLong_AsLongLong(number);
            Py_DECREF(number);
            if (v == -1 && PyErr_Occurred()) return -1;
        } else {
            if (!a || PyArray_NDIM(a) <= b->index) {
                PyErr_Format(PyExc_RuntimeError,
                             "compiled graph: %s %d must be a tensor of more than %d dimensions with data",
                             what, b->source, b->index);
                return -1;
            }
            v = b->what == BIND_SIZE ? PyArray_DIM(a, b->index) : PyArray_STRIDE(a, b->index) / b->item;
        }
        if (flb_out_of_range(b, v, what, on_error)) return -1;
        f[b->dst] = v;
    }
    return flb_run_code(stage, f);
}
