/* SIZES: relations between the sizes, strides and numbers of a call, as one postfix program. */
#include "frame/guards.h"

static const char *const size_ops[] = {"const", "operand", "add",  "mul",  "floordiv", "mod",      "min",
                                       "max",   "==",      "!=",   ">=",   "and",      "or",       "not",
                                       "float", "fconst",  "fadd", "fsub", "fmul",     "ftruediv", "flt",
                                       "fle",   "feq",     "fne",  "fgt",  "fge",      "call",     "check"};

__extension__ typedef __int128 Wide; /* a sum of numbers of 64 bits is compared with what 64 bits hold */

typedef union {
    Wide i;
    double f;
} Number;

static int size_operand(PyObject *v, long what, long d, Number *out) {
    if (what == V_INT) {
        int overflow = 0;
        if (!PyLong_Check(v)) return 0;
        out->i = PyLong_AsLongLongAndOverflow(v, &overflow);
        return !overflow;
    }
    if (what == V_FLOAT) {
        if (!PyFloat_Check(v)) return 0;
        out->f = PyFloat_AS_DOUBLE(v);
        return 1;
    }
    FlbApi *a = flb_frame_api();
    Py_ssize_t unit = 1;
    if (a && PyObject_TypeCheck(v, a->tensor_type)) {
        FlbTensor *t = (FlbTensor *)v;
        if (!t->array) {
            PyObject *numbers = what == V_SIZE ? t->shape : t->strides;
            if (!numbers || d >= PyTuple_GET_SIZE(numbers) || !PyLong_Check(PyTuple_GET_ITEM(numbers, d)))
                return 0;
            int overflow = 0;
            out->i = PyLong_AsLongLongAndOverflow(PyTuple_GET_ITEM(numbers, d), &overflow);
            return !overflow;
        }
        v = t->array;
    }
    if (!PyArray_Check(v) || d >= PyArray_NDIM((PyArrayObject *)v)) return 0;
    if (what == V_STRIDE && !(unit = PyArray_ITEMSIZE((PyArrayObject *)v))) return 0;
    out->i =
        what == V_SIZE ? PyArray_DIM((PyArrayObject *)v, d) : PyArray_STRIDE((PyArrayObject *)v, d) / unit;
    return 1;
}

static int call_relation(PyObject *fn, const Sizes *p, const Number *values) {
    PyObject *args = PyTuple_New(p->n_operands), *r = NULL;
    for (Py_ssize_t i = 0; args && i < p->n_operands; i++) {
        PyObject *v = p->operands[3 * i + 1] == V_FLOAT ? PyFloat_FromDouble(values[i].f)
                                                        : PyLong_FromLongLong((long long)values[i].i);
        if (!v) Py_CLEAR(args);
        else PyTuple_SET_ITEM(args, i, v);
    }
    if (args) r = PyObject_CallOneArg(fn, args);
    int ok = r ? PyObject_IsTrue(r) : -1;
    Py_XDECREF(args);
    Py_XDECREF(r);
    return ok < 0 ? failed() : ok;
}

/* An overflow, and a division by zero, make the guard fail: the numbers are no sizes then. */
static int relations_hold(const Sizes *p, PyObject **slots, Number *values, int *failing) {
    Number stack[MAX_DEPTH];
    int top = -1, relation = 0;
    for (Py_ssize_t i = 0; i < p->n_operands; i++)
        if (!size_operand(slots[p->operands[3 * i]], p->operands[3 * i + 1], p->operands[3 * i + 2],
                          &values[i]))
            return failed();
    for (Py_ssize_t i = 0; i < p->n_code; i++) {
        Number *a = &stack[top > 0 ? top - 1 : 0], *b = &stack[top > 0 ? top : 0];
        switch (p->code[i]) {
        case P_CONST:
            stack[++top].i = PyLong_AsLongLong(PyTuple_GET_ITEM(p->constants, p->code[++i]));
            continue;
        case P_FCONST:
            stack[++top].f = PyFloat_AS_DOUBLE(PyTuple_GET_ITEM(p->constants, p->code[++i]));
            continue;
        case P_OPERAND: stack[++top] = values[p->code[++i]]; continue;
        case P_CALL: {
            int ok = call_relation(PyTuple_GET_ITEM(p->constants, p->code[++i]), p, values);
            if (ok < 0) return ok;
            stack[++top].i = ok;
            continue;
        }
        case P_CHECK:
            if (!stack[top--].i) {
                *failing = relation;
                return 0;
            }
            relation++;
            continue;
        case P_NOT: stack[top].i = !stack[top].i; continue;
        case P_FLOAT: stack[top].f = (double)stack[top].i; continue;
        case P_ADD:
            if (__builtin_add_overflow(a->i, b->i, &a->i)) {
                *failing = relation;
                return 0;
            }
            break;
        case P_MUL:
            if (__builtin_mul_overflow(a->i, b->i, &a->i)) {
                *failing = relation;
                return 0;
            }
            break;
        case P_FLOORDIV:
        case P_MOD: {
            Wide q, r = 0;
            /* The least number has no negative: C's own division by -1 would trap. */
            if (!b->i || (b->i == -1 && __builtin_sub_overflow((Wide)0, a->i, &q))) {
                *failing = relation;
                return 0;
            }
            if (b->i != -1) {
                q = a->i / b->i;
                r = a->i % b->i;
            }
            if (r && ((r < 0) != (b->i < 0))) {
                q--;
                r += b->i;
            }
            a->i = p->code[i] == P_MOD ? r : q;
            break;
        }
        case P_MIN: a->i = a->i < b->i ? a->i : b->i; break;
        case P_MAX: a->i = a->i > b->i ? a->i : b->i; break;
        case P_EQ: a->i = a->i == b->i; break;
        case P_NE: a->i = a->i != b->i; break;
        case P_GE: a->i = a->i >= b->i; break;
        case P_AND: a->i = a->i && b->i; break;
        case P_OR: a->i = a->i || b->i; break;
        case P_FADD: a->f = a->f + b->f; break;
        case P_FSUB: a->f = a->f - b->f; break;
        case P_FMUL: a->f = a->f * b->f; break;
        case P_FDIV: a->f = a->f / b->f; break;
        case P_FLT: a->i = a->f < b->f; break;
        case P_FLE: a->i = a->f <= b->f; break;
        case P_FEQ: a->i = a->f == b->f; break;
        case P_FNE: a->i = a->f != b->f; break;
        case P_FGT: a->i = a->f > b->f; break;
        case P_FGE: a->i = a->f >= b->f; break;
        }
        top--;
    }
    return 1;
}

int flb_sizes_hold(const Sizes *p, PyObject **slots, int *failing) {
    Number few[FEW_SIZES], *values = few;
    *failing = -1;
    if (p->n_operands > FEW_SIZES && !(values = PyMem_Malloc(p->n_operands * sizeof(Number))))
        return PyErr_NoMemory(), -1;
    int ok = relations_hold(p, slots, values, failing);
    if (values != few) PyMem_Free(values);
    return ok;
}

/* payload: (operands: slot, what, dimension of each in one tuple; code; constants) */
Sizes *flb_sizes_build(PyObject *payload, int n_slots) {
    PyObject *operands, *code, *constants;
    if (!PyTuple_Check(payload) ||
        !PyArg_ParseTuple(payload, "O!O!O!", &PyTuple_Type, &operands, &PyTuple_Type, &code, &PyTuple_Type,
                          &constants)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "guard: SIZES takes (operands, code, constants)");
        return NULL;
    }
    Sizes *p = PyMem_Calloc(1, sizeof(Sizes));
    if (!p) {
        PyErr_NoMemory();
        return NULL;
    }
    Py_ssize_t n = 0;
    p->constants = constants; /* kept alive by the payload */
    if (!(p->operands = flb_longs(operands, &n)) || !(p->code = flb_longs(code, &p->n_code))) goto fail;
    p->n_operands = n / 3;
    int depth = 0;
    for (Py_ssize_t i = 0; i < p->n_code; i++) {
        long op = p->code[i];
        int takes = op == P_CONST || op == P_FCONST || op == P_OPERAND || op == P_CALL;
        if (takes) {
            long k = ++i < p->n_code ? p->code[i] : -1;
            if (k < 0 || k >= (op == P_OPERAND ? p->n_operands : PyTuple_GET_SIZE(constants))) goto bad;
            PyObject *v = op == P_OPERAND ? NULL : PyTuple_GET_ITEM(constants, k);
            if (op == P_CONST && (!PyLong_Check(v) || (PyLong_AsLongLong(v) == -1 && PyErr_Occurred())))
                goto bad;
            if (op == P_FCONST && !PyFloat_Check(v)) goto bad;
            depth++;
        } else if (op != P_NOT && op != P_FLOAT) {
            if (op < 0 || op > P_CHECK || depth < (op == P_CHECK ? 1 : 2)) goto bad;
            depth--;
        } else if (!depth) goto bad;
        if (depth > MAX_DEPTH) goto bad;
    }
    if (n % 3 || depth) goto bad;
    for (Py_ssize_t i = 0; i < n; i += 3)
        if (p->operands[i] < 0 || p->operands[i] >= n_slots || p->operands[i + 1] < V_SIZE ||
            p->operands[i + 1] > V_FLOAT || p->operands[i + 2] < 0)
            goto bad;
    return p;
bad:
    PyErr_Clear();
    PyErr_SetString(PyExc_ValueError, "guard: a program over sizes that is not one");
fail:
    flb_sizes_free(p);
    return NULL;
}

void flb_sizes_free(Sizes *p) {
    if (!p) return;
    PyMem_Free(p->operands);
    PyMem_Free(p->code);
    PyMem_Free(p);
}

int flb_sizes_names(PyObject *module) { return flb_add_names(module, "SIZE_OPS", size_ops, P_CHECK + 1); }
