/* autocast without Python: the innermost function mode, when it is amp's. What the arguments of a function
 * are cast to Python says once a function (amp/autocast_mode.py, policy()); what isn't plain tensors with
 * data is cast there, too. */
#include "core/calls.h"
#include "core/state.h"

static PyTypeObject *mode_class = NULL;
static PyObject *cast_op = NULL; /* aten._to_copy.default */
static PyObject *str_policies, *str_policy, *str_impl, *cast_names;

/* The layer of an autocast that is the innermost function mode. */
static FlbLayer *autocast_on_top(void) {
    if (!mode_class || flb_tls()->function_disabled) return NULL;
    FlbLayer *top = flb_stack(FLB_FUNCTION_MODES);
    return top && Py_TYPE(top->value) == mode_class ? top : NULL;
}
/* The layers that calls behind an autocast see: those below it that aren't of outer ones, of which it takes
 * the place. 0: Python sorts them out. */
static int layers_behind(FlbLayer *top, FlbLayer **behind) {
    FlbLayer *l = top->below;
    while (l && Py_TYPE(l->value) == mode_class) l = l->below;
    *behind = l;
    for (; l; l = l->below)
        if (Py_TYPE(l->value) == mode_class) return 0;
    return 1;
}
int flb_autocast_alone(void) {
    FlbLayer *top = autocast_on_top(), *behind;
    return top && layers_behind(top, &behind) && !behind;
}

int flb_operators_seen(void) {
    FlbTls *s = flb_tls();
    if (!s->function_modes || s->function_disabled > 1) return 0;
    for (FlbLayer *l = flb_stack(FLB_FUNCTION_MODES); l; l = l->below)
        if (Py_TYPE(l->value) != mode_class) return 1;
    return 0;
}

/* What calls of func do: a dtype (its arguments are cast), None (nothing), True (it runs with the mode on),
 * False (Python does it). A new reference. */
static PyObject *policy_of(PyObject *mode, PyObject *func) {
    PyObject *known = PyObject_GetAttr(mode, str_policies), *how = NULL;
    if (!known) return NULL;
    if (!PyDict_Check(known)) PyErr_SetString(PyExc_TypeError, "the policies of an autocast are a dict");
    else if ((how = PyDict_GetItemWithError(known, func))) Py_INCREF(how);
    else if (!PyErr_Occurred() && (how = PyObject_CallMethodOneArg(mode, str_policy, func)) &&
             PyDict_SetItem(known, func, how) < 0)
        Py_CLEAR(how);
    Py_DECREF(known);
    return how;
}
/* 1: is to be cast, 0: stays, -1: a case for Python. */
static int to_be_cast(PyObject *x, PyObject *dtype) {
    if (PyList_Check(x) || PyTuple_Check(x)) return -1;
    if (!PyObject_TypeCheck(x, &FlbTensor_Type)) return 0;
    FlbTensor *t = (FlbTensor *)x;
    if (!t->array || t->keys) return -1;
    int num = PyArray_TYPE((PyArrayObject *)t->array);
    if (num == NPY_FLOAT || num == NPY_HALF || num == flb_bfloat16_num) return t->dtype != dtype;
    return num < NPY_OBJECT ? 0 : -1;
}
/* The call with its arguments cast, and the mode off the stack. */
static PyObject *call_cast(PyObject *func, PyObject *const *args, Py_ssize_t n, PyObject *kwnames,
                           PyObject *dtype, const int *cast, Py_ssize_t total) {
    PyObject *values[AUTOCAST_ARGUMENTS], *result = NULL;
    Py_ssize_t made = 0;
    for (; made < total; made++) {
        PyObject *pair[2] = {args[made], dtype};
        if (!(values[made] =
                  cast[made] ? PyObject_Vectorcall(cast_op, pair, 1, cast_names) : Py_NewRef(args[made])))
            goto done;
    }
    FlbLayer *top = (FlbLayer *)Py_NewRef(flb_stack(FLB_FUNCTION_MODES)), *behind;
    layers_behind(top, &behind);
    flb_set_stack(FLB_FUNCTION_MODES, (FlbLayer *)Py_XNewRef(behind));
    result = PyObject_Vectorcall(func, values, n, kwnames);
    flb_set_stack(FLB_FUNCTION_MODES, top);
done:
    for (Py_ssize_t i = 0; i < made; i++) Py_DECREF(values[i]);
    return result;
}
int flb_autocast(PyObject *func, PyObject *const *args, size_t nargsf, PyObject *kwnames, PyObject **result) {
    FlbLayer *top = autocast_on_top(), *behind;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf), total = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    if (!top || total > AUTOCAST_ARGUMENTS || !layers_behind(top, &behind)) return 0;
    int overridden = flb_arguments_override(args, total), cast[AUTOCAST_ARGUMENTS] = {0}, status = 0;
    if (overridden) return overridden < 0 ? -1 : 0;
    PyObject *mode = Py_NewRef(top->value), *how = policy_of(mode, func);
    Py_DECREF(mode);
    if (!how) return -1;
    *result = NULL;
    if (how == Py_True) {
        PyObject *impl = PyObject_GetAttr(func, str_impl);
        *result = impl ? PyObject_Vectorcall(impl, args, n, kwnames) : NULL;
        Py_XDECREF(impl);
        status = *result ? 1 : -1;
    } else if (how != Py_False) {
        for (Py_ssize_t i = 0; how != Py_None && i < total && status == 0; i++)
            if ((cast[i] = to_be_cast(args[i], how)) < 0) status = 2; /* Python casts them */
        if (status == 0) {
            *result = call_cast(func, args, n, kwnames, how, cast, total);
            status = *result ? 1 : -1;
        } else {
            status = 0;
        }
    }
    Py_DECREF(how);
    return status;
}

/* set_autocast(mode class, cast): cast(tensor, dtype=...) -> tensor. */
static PyObject *py_set_autocast(PyObject *m, PyObject *args) {
    PyObject *type, *op;
    if (!PyArg_ParseTuple(args, "O!O", &PyType_Type, &type, &op)) return NULL;
    if (!PyCallable_Check(op))
        return PyErr_SetString(PyExc_TypeError, "the cast of an autocast is callable"), NULL;
    Py_XSETREF(mode_class, (PyTypeObject *)Py_NewRef(type));
    Py_XSETREF(cast_op, Py_NewRef(op));
    Py_RETURN_NONE;
}
static PyMethodDef functions[] = {
    {"set_autocast", py_set_autocast, METH_VARARGS,
     "set_autocast(mode class, cast): the function mode that native code runs."},
    {NULL}};
int flb_init_autocast(PyObject *module) {
    str_policies = PyUnicode_InternFromString("policies");
    str_policy = PyUnicode_InternFromString("policy");
    str_impl = PyUnicode_InternFromString("impl");
    cast_names = Py_BuildValue("(s)", "dtype");
    return str_policies && str_policy && str_impl && cast_names ? PyModule_AddFunctions(module, functions)
                                                                : -1;
}
