/* Arguments of an overload that a program calls by name (torch.ops.aten.add.Tensor). What surely fits its
 * schema is told here by its type; the rest core/overload_arguments.py judges, and words PyTorch's errors.
 * Calls of the package's own take what they take: its kernels know what they pass. */
#include "core/calls.h"

PyObject *flb_overload_checker = NULL;

static int fits_one(int type, PyObject *o) {
    PyTypeObject *t = Py_TYPE(o);
    int number = t == &PyLong_Type || t == &PyFloat_Type || t == &PyBool_Type;
    switch (type) {
    case P_TENSOR: return PyObject_TypeCheck(o, &FlbTensor_Type);
    case P_SCALAR: {
        int overflow = 0;
        if (t == &PyLong_Type) PyLong_AsLongLongAndOverflow(o, &overflow);
        return !overflow && (number || t == &PyComplex_Type);
    }
    case P_INT: {
        int overflow = 0;
        if (t == &PyLong_Type) PyLong_AsLongLongAndOverflow(o, &overflow);
        return !overflow && (t == &PyLong_Type || t == &PyBool_Type);
    }
    case P_FLOAT:
    case P_BOOL: return number;
    case P_STR: return t == &PyUnicode_Type;
    case P_DTYPE: return t == flb_dtype_class;
    case P_FORMAT: return t == flb_format_class;
    case P_DEVICE: return o == flb_cpu_device || t == Py_TYPE(flb_cpu_device);
    }
    return 0;
}
static int fits(const Parameter *p, PyObject *o) {
    if (o == Py_None) return p->optional;
    if (!p->list) return fits_one(p->type, o);
    if (!PyList_CheckExact(o) && !PyTuple_CheckExact(o) && Py_TYPE(o) != (PyTypeObject *)flb_size_class)
        return 0;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++) {
        PyObject *x = PySequence_Fast_GET_ITEM(o, i);
        if (!fits_one(p->type, x) && !(x == Py_None && p->elements_optional)) return 0;
    }
    return 1;
}
/* Whether the code that calls is the package's own. */
static int called_by_package(void) {
    PyObject *globals = PyEval_GetGlobals(),
             *name = globals ? PyDict_GetItemString(globals, "__name__") : NULL;
    if (!name || !PyUnicode_Check(name)) return 0;
    const char *text = PyUnicode_AsUTF8(name);
    if (!text) PyErr_Clear();
    return text && !strncmp(text, "flambeau", 8) && (text[8] == '.' || !text[8]);
}
static int ask(FlbOperator *op, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, PyObject *failure) {
    PyObject *tuple, *dict;
    if (flb_unpack(args, n, kwnames, &tuple, &dict) < 0) return -1;
    PyObject *r = PyObject_CallFunctionObjArgs(flb_overload_checker, op, tuple, dict, failure, NULL);
    Py_DECREF(tuple);
    Py_DECREF(dict);
    Py_XDECREF(r);
    return r ? 0 : -1;
}
int flb_check_overload(FlbOperator *op, PyObject *const *args, Py_ssize_t n, PyObject *kwnames,
                       PyObject *const *values) {
    int doubtful = !values;
    for (int i = 0; values && !doubtful && i < op->n_parameters; i++)
        doubtful = values[i] != op->parameters[i].fallback && !fits(&op->parameters[i], values[i]);
    if (!doubtful || !flb_overload_checker || called_by_package()) return 0;
    for (int i = 0; values && i < op->n_parameters; i++) {
        int type = op->parameters[i].type;
        if (type == P_SCALAR || (type == P_TENSOR && op->numbers))
            if (values[i] && !flb_scalar_fits(values[i])) return -1;
    }
    return ask(op, args, n, kwnames, Py_None) < 0 ? -1 : 1;
}
void flb_overload_failed(FlbOperator *op, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value && ask(op, args, n, kwnames, value) == 0) PyErr_Restore(type, value, traceback);
    else Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(traceback);
}
