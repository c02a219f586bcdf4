/* The Python operators of a tensor: number slots and comparisons call the functions that set_operators()
 * told; there is no name of ATen here. A foreign operand gives NotImplemented, so that Python goes on with
 * the operand's own method. */
#include "core/calls.h"
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
/* What computes an operator, and what overrides of the tensor are asked with whatever the other operand is,
 * or NULL. */
typedef struct {
    PyObject *function, *asked;
} Slot;
static Slot forward_ops[N_OPS], reflected_ops[N_OPS], inplace_ops[N_OPS];
static PyObject *array_operand, *override_own; /* ndarray -> tensor; (function, args) -> result */

/* An ndarray beside a tensor: comparisons take it as a tensor of its memory. Arithmetic leaves it to NumPy,
 * as in PyTorch: `tensor + array` has NumPy's dtype, `array + tensor` is a TypeError. Only `array / tensor`
 * is the tensor's, which multiplies by its reciprocal. */
static int compares(int op) { return op >= OP_LT && op <= OP_NE; }
/* -1: the class's own lookup raised something else than AttributeError. A number is no matrix. */
static int operand_ok(int op, PyObject *o) {
    if (PyObject_TypeCheck(o, &FlbTensor_Type)) return 1;
    int number = PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o) || PyArray_IsScalar(o, Generic);
    if (number) return op != OP_MATMUL;
    int r = flb_class_has(Py_TYPE(o), "__torch_function__");
    return r ? r : flb_class_has(Py_TYPE(o), "__sym__");
}
/* An operand that is no tensor and refuses the operator by a TypeError is a foreign one: Python asks its own
 * reflected method next. */
static PyObject *foreign_refuses(PyObject *result) {
    if (result || !PyErr_ExceptionMatches(PyExc_TypeError)) return result;
    PyErr_Clear();
    Py_RETURN_NOTIMPLEMENTED;
}
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
/* What the class of x, or a function mode, says to the operator: 1 and `result`, which is NULL with an
 * exception set. 0: neither is asked. */
static int own_override(const Slot *slot, PyObject *x, PyObject *y, PyObject **result) {
    if (!slot->asked) return 0;
    int asked = flb_any_override(&x, 1);
    if (!asked) return 0;
    PyObject *args = asked < 0 ? NULL : PyTuple_Pack(2, x, y);
    *result = args ? PyObject_CallFunctionObjArgs(override_own, slot->asked, args, NULL) : NULL;
    Py_XDECREF(args);
    return 1;
}
static PyObject *foreign(const Slot *slot, PyObject *x, PyObject *y) {
    PyObject *r;
    if (own_override(slot, x, y, &r)) return foreign_refuses(r);
    Py_RETURN_NOTIMPLEMENTED;
}
/* The operator of x and y, given as they stand in the program, was refused by the overrides that were asked:
 * they may take the reflected one, which the interpreter doesn't try between tensors, for both have one slot.
 */
static PyObject *or_reflected(PyObject *result, int op, PyObject *x, PyObject *y, int forward) {
    if (result || !PyErr_ExceptionMatches(PyExc_TypeError)) return result;
    PyObject *type, *value, *traceback, *r, *operands[2] = {x, y};
    PyErr_Fetch(&type, &value, &traceback);
    int asked = flb_any_override(operands, 2);
    if (asked == 0) return PyErr_Restore(type, value, traceback), NULL;
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    if (asked < 0) return NULL;
    if (forward && !compares(op) && PyObject_TypeCheck(y, &FlbTensor_Type) &&
        own_override(&reflected_ops[op], y, x, &r))
        return foreign_refuses(r);
    Py_RETURN_NOTIMPLEMENTED;
}
static PyObject *binary(int op, PyObject *a, PyObject *b) {
    const Slot *slot;
    PyObject *x, *y, *r;
    if (PyObject_TypeCheck(a, &FlbTensor_Type)) {
        slot = &forward_ops[op], x = a, y = b;
    } else {
        slot = &reflected_ops[op], x = b, y = a;
    }
    if (op == OP_EQ && own_override(slot, x, y, &r)) return foreign_refuses(r);
    int array = PyArray_Check(y);
    int ok = !slot->function ? 0 : array ? compares(op) || slot == &reflected_ops[OP_DIV] : operand_ok(op, y);
    if (ok < 0) return NULL;
    if (!ok) return foreign(slot, x, y);
    PyObject *made = array && compares(op) ? y = PyObject_CallOneArg(array_operand, y) : NULL;
    if (!y) return NULL;
    PyObject *args[3] = {NULL, x, y};
    r = PyObject_Vectorcall(slot->function, args + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    Py_XDECREF(made);
    return or_reflected(or_foreign(r, made ? x : y), op, x, y, slot == &forward_ops[op]);
}
/* NotImplemented for foreign operands: Python goes on with the operator that isn't in place, then with the
 * operand's own. */
static PyObject *inplace(int op, PyObject *a, PyObject *b) {
    const Slot *slot = &inplace_ops[op];
    int ok = slot->function && !PyArray_Check(b) ? operand_ok(op, b) : 0;
    if (ok < 0) return NULL;
    if (!ok) return foreign(slot, a, b);
    PyObject *args[3] = {NULL, a, b};
    return or_foreign(PyObject_Vectorcall(slot->function, args + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL),
                      b);
}
static PyObject *unary(int op, PyObject *a) { return PyObject_CallOneArg(forward_ops[op].function, a); }
#define BINARY(NAME, OP) \
    static PyObject *slot_##NAME(PyObject *a, PyObject *b) { return binary(OP, a, b); }
#define INPLACE(NAME, OP) \
    static PyObject *slot_i##NAME(PyObject *a, PyObject *b) { return inplace(OP, a, b); }
/* A class takes `__iadd__` for the concatenation of a sequence as well, whose result stands, NotImplemented
 * too: here is all that `+=` asks. */
static PyObject *slot_iadd(PyObject *a, PyObject *b) {
    PyObject *r = inplace(OP_ADD, a, b);
    if (r != Py_NotImplemented) return r;
    PyNumberMethods *own = Py_TYPE(b)->tp_as_number;
    binaryfunc add = own ? own->nb_add : NULL;
    if (add && add != Py_TYPE(a)->tp_as_number->nb_add) {
        Py_DECREF(r);
        if ((r = add(a, b)) != Py_NotImplemented) return r;
    }
    Py_DECREF(r);
    return PyErr_Format(PyExc_TypeError, "unsupported operand type(s) for +=: '%.100s' and '%.100s'",
                        Py_TYPE(a)->tp_name, Py_TYPE(b)->tp_name);
}
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

/* The method of TensorBase under its other name: it stays the slot that subclasses inherit. */
static int rename_method(const char *method, const char *shown) {
    PyObject *methods = FlbTensor_Type.tp_dict, *old = PyDict_GetItemString(methods, method);
    if (!old || !Py_IS_TYPE(old, &PyWrapperDescr_Type))
        return PyErr_Format(PyExc_SystemError, "%s is no slot of TensorBase", method), -1;
    const struct wrapperbase *given = ((PyWrapperDescrObject *)old)->d_base;
    const char *rest = strchr(given->doc, '('); /* its signature stands behind the name */
    size_t size = strlen(shown) + strlen(rest ? rest : "") + 1;
    struct wrapperbase *base = PyMem_Malloc(sizeof *base + size); /* for as long as the type lives */
    if (!base) return PyErr_NoMemory(), -1;
    *base = *given;
    char *doc = (char *)(base + 1);
    snprintf(doc, size, "%s%s", shown, rest ? rest : "");
    base->name = shown, base->doc = doc;
    PyObject *made = PyDescr_NewWrapper(&FlbTensor_Type, base, ((PyWrapperDescrObject *)old)->d_wrapped);
    int status = made ? PyDict_SetItemString(methods, method, made) : -1;
    Py_XDECREF(made);
    PyType_Modified(&FlbTensor_Type);
    return status;
}
int flb_init_operators(void) {
    return rename_method("__pow__", "pow") < 0 || rename_method("__ipow__", "pow_") < 0 ||
            rename_method("__rtruediv__", "__rdiv__") < 0
        ? -1
        : 0;
}
static int set_slots(Slot *slots, const char *prefix, PyObject *functions, PyObject *asked) {
    for (int i = 0; i < N_OPS; i++) {
        PyObject *name = PyUnicode_FromFormat("__%s%s__", prefix, op_names[i]);
        if (!name) return -1;
        PyObject *f = PyDict_GetItemWithError(functions, name), *a = PyDict_GetItemWithError(asked, name);
        if (f) Py_XSETREF(slots[i].function, Py_NewRef(f));
        if (a) Py_XSETREF(slots[i].asked, Py_NewRef(a));
        Py_DECREF(name);
        if (PyErr_Occurred()) return -1;
    }
    return 0;
}
PyObject *flb_set_operators(PyObject *m, PyObject *args) {
    PyObject *functions, *asked, *convert, *own;
    if (!PyArg_ParseTuple(args, "O!O!OO", &PyDict_Type, &functions, &PyDict_Type, &asked, &convert, &own))
        return NULL;
    Py_XSETREF(array_operand, Py_NewRef(convert));
    Py_XSETREF(override_own, Py_NewRef(own));
    if (set_slots(forward_ops, "", functions, asked) < 0 ||
        set_slots(reflected_ops, "r", functions, asked) < 0 ||
        set_slots(inplace_ops, "i", functions, asked) < 0)
        return NULL;
    Py_RETURN_NONE;
}
