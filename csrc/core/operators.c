/* The Python operators of a tensor: number slots and comparisons call the operators that set_operators()
 * told; there is no name of ATen here. A foreign operand gives NotImplemented, so that Python goes on with
 * the operand's own method. */
#include "core/tensor_internal.h"

enum {
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_FLOORDIV,
    OP_MOD,
    OP_POW,
    OP_MATMUL,
    OP_AND,
    OP_OR,
    OP_XOR,
    OP_LSHIFT,
    OP_RSHIFT,
    OP_LT,
    OP_LE,
    OP_EQ,
    OP_NE,
    OP_GT,
    OP_GE,
    OP_NEG,
    OP_ABS,
    OP_INVERT,
    N_OPS
};
static const char *op_names[N_OPS] = {"add", "sub", "mul", "truediv", "floordiv", "mod",   "pow", "matmul",
                                      "and", "or",  "xor", "lshift",  "rshift",   "lt",    "le",  "eq",
                                      "ne",  "gt",  "ge",  "neg",     "abs",      "invert"};
static PyObject *forward_ops[N_OPS], *reflected_ops[N_OPS], *inplace_ops[N_OPS],
    *array_operand; /* the last: ndarray -> tensor */

/* An ndarray beside a tensor: comparisons take it as a tensor of its memory. Arithmetic leaves it to NumPy,
 * as in PyTorch: `tensor + array` has NumPy's dtype, `array + tensor` is a TypeError. Only `array / tensor`
 * is the tensor's, which multiplies by its reciprocal. */
static int compares(int op) { return op >= OP_LT && op <= OP_NE; }
/* -1: the class's own lookup raised something else than AttributeError. */
static int operand_ok(PyObject *o) {
    if (PyObject_TypeCheck(o, &FlbTensor_Type) || PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o))
        return 1;
    if (PyArray_IsScalar(o, Generic)) return 1;
    int r = flb_class_has(Py_TYPE(o), "__torch_function__");
    return r ? r : flb_class_has(Py_TYPE(o), "__sym__");
}
/* An operand with __torch_function__ that is no tensor and refuses the operator by a TypeError is a foreign one:
 * Python asks its own reflected method next. */
static PyObject *or_foreign(PyObject *result, PyObject *operand) {
    if (result || PyObject_TypeCheck(operand, &FlbTensor_Type) || !PyErr_ExceptionMatches(PyExc_TypeError))
        return result;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    int overrides = flb_class_has(Py_TYPE(operand), "__torch_function__");
    if (overrides == 0) return PyErr_Restore(type, value, traceback), NULL;
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    if (overrides < 0) return NULL;
    Py_RETURN_NOTIMPLEMENTED;
}
static PyObject *binary(int op, PyObject *a, PyObject *b) {
    PyObject *fn, *x, *y;
    if (PyObject_TypeCheck(a, &FlbTensor_Type)) {
        fn = forward_ops[op], x = a, y = b;
    } else {
        fn = reflected_ops[op], x = b, y = a;
    }
    int ok = !fn ? 0 : PyArray_Check(y) ? compares(op) || fn == reflected_ops[OP_DIV] : operand_ok(y);
    if (ok < 0) return NULL;
    if (!ok) Py_RETURN_NOTIMPLEMENTED;
    PyObject *array = PyArray_Check(y) && compares(op) ? y = PyObject_CallOneArg(array_operand, y) : NULL;
    if (!y) return NULL;
    PyObject *args[3] = {NULL, x, y};
    PyObject *r = PyObject_Vectorcall(fn, args + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    Py_XDECREF(array);
    return or_foreign(r, array ? x : y);
}
/* NotImplemented for foreign operands: Python goes on with the operator that isn't in place, then with the
 * operand's own. */
static PyObject *inplace(int op, PyObject *a, PyObject *b) {
    PyObject *fn = inplace_ops[op];
    int ok = fn && !PyArray_Check(b) ? operand_ok(b) : 0;
    if (ok < 0) return NULL;
    if (!ok) Py_RETURN_NOTIMPLEMENTED;
    PyObject *args[3] = {NULL, a, b};
    return or_foreign(PyObject_Vectorcall(fn, args + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL), b);
}
static PyObject *unary(int op, PyObject *a) { return PyObject_CallOneArg(forward_ops[op], a); }
#define BINARY(NAME, OP) \
    static PyObject *slot_##NAME(PyObject *a, PyObject *b) { return binary(OP, a, b); }
#define INPLACE(NAME, OP) \
    static PyObject *slot_i##NAME(PyObject *a, PyObject *b) { return inplace(OP, a, b); }
INPLACE(add, OP_ADD)
INPLACE(sub, OP_SUB)
INPLACE(mul, OP_MUL)
INPLACE(div, OP_DIV)
INPLACE(floordiv, OP_FLOORDIV)
INPLACE(mod, OP_MOD)
INPLACE(and, OP_AND)
INPLACE(or, OP_OR)
INPLACE(xor, OP_XOR)
INPLACE(lshift, OP_LSHIFT)
INPLACE(rshift, OP_RSHIFT)
BINARY(add, OP_ADD)
BINARY(sub, OP_SUB)
BINARY(mul, OP_MUL)
BINARY(div, OP_DIV)
BINARY(floordiv, OP_FLOORDIV)
BINARY(mod, OP_MOD)
BINARY(matmul, OP_MATMUL)
BINARY(and, OP_AND)
BINARY(or, OP_OR)
BINARY(xor, OP_XOR)
BINARY(lshift, OP_LSHIFT)
BINARY(rshift, OP_RSHIFT)
static PyObject *slot_pow(PyObject *a, PyObject *b, PyObject *m) {
    if (m != Py_None) return PyErr_SetString(PyExc_TypeError, "pow() of a tensor takes no modulus"), NULL;
    return binary(OP_POW, a, b);
}
static PyObject *slot_ipow(PyObject *a, PyObject *b, PyObject *m) { return inplace(OP_POW, a, b); }
static PyObject *slot_neg(PyObject *a) { return unary(OP_NEG, a); }
static PyObject *slot_abs(PyObject *a) { return unary(OP_ABS, a); }
static PyObject *slot_invert(PyObject *a) { return unary(OP_INVERT, a); }
PyObject *flb_tensor_richcompare(PyObject *a, PyObject *b, int cmp) {
    static const int op[] = {[Py_LT] = OP_LT, [Py_LE] = OP_LE, [Py_EQ] = OP_EQ,
                             [Py_NE] = OP_NE, [Py_GT] = OP_GT, [Py_GE] = OP_GE};
    return binary(op[cmp], a, b);
}
PyNumberMethods flb_tensor_number = {.nb_add = slot_add,
                                     .nb_subtract = slot_sub,
                                     .nb_multiply = slot_mul,
                                     .nb_true_divide = slot_div,
                                     .nb_floor_divide = slot_floordiv,
                                     .nb_remainder = slot_mod,
                                     .nb_power = slot_pow,
                                     .nb_matrix_multiply = slot_matmul,
                                     .nb_and = slot_and,
                                     .nb_or = slot_or,
                                     .nb_xor = slot_xor,
                                     .nb_lshift = slot_lshift,
                                     .nb_rshift = slot_rshift,
                                     .nb_inplace_add = slot_iadd,
                                     .nb_inplace_subtract = slot_isub,
                                     .nb_inplace_multiply = slot_imul,
                                     .nb_inplace_true_divide = slot_idiv,
                                     .nb_inplace_floor_divide = slot_ifloordiv,
                                     .nb_inplace_remainder = slot_imod,
                                     .nb_inplace_power = slot_ipow,
                                     .nb_inplace_and = slot_iand,
                                     .nb_inplace_or = slot_ior,
                                     .nb_inplace_xor = slot_ixor,
                                     .nb_inplace_lshift = slot_ilshift,
                                     .nb_inplace_rshift = slot_irshift,
                                     .nb_negative = slot_neg,
                                     .nb_absolute = slot_abs,
                                     .nb_invert = slot_invert};

PyObject *flb_set_operators(PyObject *m, PyObject *args) {
    PyObject *fwd, *ref, *own, *convert;
    if (!PyArg_ParseTuple(args, "O!O!O!O", &PyDict_Type, &fwd, &PyDict_Type, &ref, &PyDict_Type, &own,
                          &convert))
        return NULL;
    Py_XSETREF(array_operand, Py_NewRef(convert));
    for (int i = 0; i < N_OPS; i++) {
        PyObject *f = PyDict_GetItemString(fwd, op_names[i]), *r = PyDict_GetItemString(ref, op_names[i]),
                 *w = PyDict_GetItemString(own, op_names[i]);
        if (f) Py_XSETREF(forward_ops[i], Py_NewRef(f));
        if (r) Py_XSETREF(reflected_ops[i], Py_NewRef(r));
        if (w) Py_XSETREF(inplace_ops[i], Py_NewRef(w));
    }
    Py_RETURN_NONE;
}
