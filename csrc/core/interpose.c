/* What interposes on calls: __torch_function__ (modes and classes) before an operator is chosen, dispatch
 * modes at the PYTHON key. */
#include "core/calls.h"

static PyObject *disabled_torch_function = NULL, *disabled_torch_dispatch = NULL;
static PyObject *str_torch_function, *str_torch_dispatch;

/* ---- __torch_function__ -------------------------------------------------------------------------------- */

/* The attribute of a class, NULL without an exception when it has none. -1: another exception than
 * AttributeError. */
static int class_attribute(PyTypeObject *type, PyObject *name, PyObject **found) {
    *found = PyObject_GetAttr((PyObject *)type, name);
    if (*found) return 1;
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
    PyErr_Clear();
    return 0;
}
int flb_class_has(PyTypeObject *type, const char *name) {
    PyObject *text = PyUnicode_FromString(name), *found = NULL;
    int r = text ? class_attribute(type, text, &found) : -1;
    Py_XDECREF(text);
    Py_XDECREF(found);
    return r;
}
int flb_class_keys(PyTypeObject *type, uint32_t *keys) {
    *keys = 0;
    if (type == flb_tensor_class || type == flb_parameter_class) return 0;
    PyObject *f;
    int r = class_attribute(type, str_torch_dispatch, &f);
    if (r < 0) return -1;
    if (r && f != disabled_torch_dispatch) *keys |= FLB_PYTHON;
    Py_XDECREF(f);
    if ((r = class_attribute(type, str_torch_function, &f)) < 0) return -1;
    if (r && f != disabled_torch_function) *keys |= 1u << 30;
    Py_XDECREF(f);
    return 0;
}

static int has_override(PyObject *o, int depth) {
    PyTypeObject *type = Py_TYPE(o);
    if (PyObject_TypeCheck(o, &FlbTensor_Type)) return (((FlbTensor *)o)->flags & FLB_FUNCTION) != 0;
    if (type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type || o == Py_None ||
        type == &PyUnicode_Type)
        return 0;
    if (type == &PyTuple_Type || type == &PyList_Type || type == (PyTypeObject *)flb_size_class) {
        if (!depth) return 0;
        /* NOTE: a class's attributes are looked up by Python code, which may change the list. */
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++) {
            PyObject *x = Py_NewRef(PySequence_Fast_GET_ITEM(o, i));
            int r = has_override(x, 0);
            Py_DECREF(x);
            if (r) return r;
        }
        return 0;
    }
    if (type == flb_dtype_class || type == flb_format_class || type == Py_TYPE(flb_cpu_device) ||
        PyType_Check(o))
        return 0;
    PyObject *f;
    int r = class_attribute(type, str_torch_function, &f);
    if (r <= 0) return r;
    r = f != disabled_torch_function;
    Py_DECREF(f);
    return r;
}
int flb_any_override(PyObject *const *args, Py_ssize_t n) {
    FlbTls *s = flb_tls();
    if (s->function_modes && s->function_disabled < 2) return 1;
    return s->function_disabled ? 0 : flb_arguments_override(args, n);
}
int flb_arguments_override(PyObject *const *args, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; i++) {
        int r = has_override(args[i], 1);
        if (r) return r;
    }
    return 0;
}
static __thread int in_library = 0;
int flb_enter_library(void) {
    int before = in_library;
    in_library = 1;
    return before;
}
void flb_leave_library(int before) { in_library = before; }
PyObject *flb_library_call(PyObject *op, PyObject *const *args, Py_ssize_t n) {
    int before = flb_enter_library();
    PyObject *r = PyObject_Vectorcall(op, args, n, NULL);
    flb_leave_library(before);
    return r;
}
int flb_classes_asked(void) { return !in_library && !flb_tls()->function_disabled; }
int flb_packet_overridden(PyObject *const *args, Py_ssize_t n) {
    if (flb_operators_seen()) return 1;
    return flb_classes_asked() ? flb_arguments_override(args, n) : 0;
}
PyObject *flb_override(PyObject *func, int n, PyObject *a, PyObject *b) {
    PyObject *args = n == 1 ? PyTuple_Pack(1, a) : PyTuple_Pack(2, a, b), *kwargs = PyDict_New();
    PyObject *r =
        args && kwargs ? PyObject_CallFunctionObjArgs(flb_override_handler, func, args, kwargs, NULL) : NULL;
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return r;
}

/* ---- dispatch modes ------------------------------------------------------------------------------------ */

/* Whether a value equals its default, as OpOverload._normalize() sees it. */
static int is_default(PyObject *v, PyObject *fallback) {
    if (v == fallback) return 1;
    if (!fallback || fallback == Py_None || PyObject_TypeCheck(v, &FlbTensor_Type)) return 0;
    if (PyList_Check(fallback)) {
        if (!PyList_Check(v) && !PyTuple_Check(v)) return 0;
        PyObject *list = PySequence_List(v);
        int r = list ? PyObject_RichCompareBool(list, fallback, Py_EQ) : -1;
        Py_XDECREF(list);
        return r;
    }
    if (PyBool_Check(v) || PyBool_Check(fallback) ||
        (!PyLong_CheckExact(v) && !PyFloat_CheckExact(v) && !PyUnicode_CheckExact(v)))
        return 0;
    return PyObject_RichCompareBool(v, fallback, Py_EQ);
}
/* The call as modes see it: without the arguments that equal their defaults. 0: the arguments are right as
 * they are. */
static int normalize(FlbOperator *op, PyObject *args, PyObject *kwargs, PyObject **new_args,
                     PyObject **new_kwargs) {
    Py_ssize_t n = PyTuple_GET_SIZE(args), keep = n;
    while (keep > 0) {
        int r = op->parameters[keep - 1].fallback
            ? is_default(PyTuple_GET_ITEM(args, keep - 1), op->parameters[keep - 1].fallback)
            : 0;
        if (r < 0) return -1;
        if (!r) break;
        keep--;
    }
    *new_args = keep == n ? Py_NewRef(args) : PyTuple_GetSlice(args, 0, keep);
    *new_kwargs = PyDict_New();
    if (!*new_args || !*new_kwargs) goto fail;
    for (int i = op->n_positional; PyDict_GET_SIZE(kwargs) && i < op->n_parameters; i++) {
        PyObject *v = PyDict_GetItemWithError(kwargs, op->parameters[i].name);
        if (!v && PyErr_Occurred()) goto fail;
        if (!v) continue;
        Py_INCREF(v);
        int r = is_default(v, op->parameters[i].fallback);
        if (r == 0) r = PyDict_SetItem(*new_kwargs, op->parameters[i].name, v);
        Py_DECREF(v);
        if (r < 0) goto fail;
    }
    return 0;
fail:
    Py_CLEAR(*new_args);
    Py_CLEAR(*new_kwargs);
    return -1;
}
/* args and kwargs come from flb_unbind(): positional arguments in place, the rest by name. */
PyObject *flb_python_key(FlbOperator *op, uint32_t keys, PyObject *args, PyObject *kwargs) {
    FlbLayer *top = flb_stack(FLB_DISPATCH_MODES);
    if (!top || keys & SUBCLASS || !op->one_tensor) {
        PyObject *k = PyLong_FromUnsignedLong(keys);
        PyObject *r = k
            ? PyObject_CallFunctionObjArgs(flb_python_handler, (PyObject *)op, k, args, kwargs, NULL)
            : NULL;
        Py_XDECREF(k);
        return r;
    }
    PyObject *new_args, *new_kwargs, *types, *result = NULL;
    if (normalize(op, args, kwargs, &new_args, &new_kwargs) < 0) return NULL;
    if ((types = PyTuple_New(0))) {
        PyObject *mode = Py_NewRef(top->value);
        Py_INCREF(top);
        flb_set_stack(FLB_DISPATCH_MODES, (FlbLayer *)Py_XNewRef(top->below));
        PyObject *call[6] = {NULL, mode, (PyObject *)op, types, new_args, new_kwargs};
        result =
            PyObject_VectorcallMethod(str_torch_dispatch, call + 1, 5 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
        if (result == Py_NotImplemented) { /* the next in turn; rare */
            Py_DECREF(result);
            flb_set_stack(FLB_DISPATCH_MODES, (FlbLayer *)Py_NewRef(top));
            PyObject *k = PyLong_FromUnsignedLong(keys);
            result = k
                ? PyObject_CallFunctionObjArgs(flb_python_handler, (PyObject *)op, k, args, kwargs, NULL)
                : NULL;
            Py_XDECREF(k);
            Py_DECREF(top);
        } else {
            flb_set_stack(FLB_DISPATCH_MODES, top);
            if (result && !PyObject_TypeCheck(result, &FlbTensor_Type)) {
                PyObject *checked = PyObject_CallFunctionObjArgs(flb_check_handler, (PyObject *)op, result,
                                                                 mode, new_args, new_kwargs, NULL);
                Py_SETREF(result, checked);
            }
        }
        Py_DECREF(mode);
        Py_DECREF(types);
    }
    Py_DECREF(new_args);
    Py_DECREF(new_kwargs);
    return result;
}

/* ---- module functions ---------------------------------------------------------------------------------- */

static PyObject *py_operators_seen(PyObject *m, PyObject *unused) {
    return PyBool_FromLong(flb_operators_seen());
}
static PyObject *py_has_override(PyObject *m, PyObject *const *args, Py_ssize_t n) {
    int r = flb_any_override(args, n);
    return r < 0 ? NULL : PyBool_FromLong(r);
}
static PyObject *py_past_overrides(PyObject *m, PyObject *const *args, Py_ssize_t n) {
    if (n < 1) return PyErr_SetString(PyExc_TypeError, "past_overrides(fn, ...)"), NULL;
    return flb_library_call(args[0], args + 1, n - 1);
}
/* What a handler (func, types, args=(), kwargs=None) is called with: the positional arguments, a new tuple,
 * or NULL with an error. `kwargs` is borrowed, NULL for none. */
static PyObject *handler_arguments(PyObject *args, const char *handler, PyObject **func, PyObject **kwargs) {
    PyObject *types, *positional = NULL, *named = Py_None;
    if (!PyArg_ParseTuple(args, "OO|OO", func, &types, &positional, &named)) return NULL;
    if (named != Py_None && !PyDict_Check(named))
        return PyErr_Format(PyExc_TypeError, "the kwargs of a %s are a dict", handler), NULL;
    *kwargs = named == Py_None ? NULL : named;
    return positional ? PySequence_Tuple(positional) : PyTuple_New(0);
}
/* __torch_function__ that runs func with overrides of subclasses off. */
static PyObject *py_disabled_function(PyObject *m, PyObject *args) {
    PyObject *func, *k, *tuple = handler_arguments(args, "__torch_function__", &func, &k);
    if (!tuple) return NULL;
    FlbTls *s = flb_tls();
    uint8_t before = s->function_disabled;
    if (!before) s->function_disabled = 1;
    s->epoch++;
    PyObject *r = PyObject_Call(func, tuple, k);
    s = flb_tls();
    s->function_disabled = before;
    s->epoch++;
    Py_DECREF(tuple);
    return r;
}
/* __torch_dispatch__ that runs func below autograd, without modes and classes being asked. */
static PyObject *py_disabled_dispatch(PyObject *m, PyObject *args) {
    PyObject *func, *k, *tuple = handler_arguments(args, "__torch_dispatch__", &func, &k);
    if (!tuple) return NULL;
    FlbTls *s = flb_tls();
    uint32_t before = s->excluded;
    s->excluded |= FLB_PYTHON | FLB_AUTOGRAD;
    s->epoch++;
    PyObject *r = PyObject_Call(func, tuple, k);
    s = flb_tls();
    s->excluded = before;
    s->epoch++;
    Py_DECREF(tuple);
    return r;
}
static PyMethodDef functions[] = {
    {"operators_seen", py_operators_seen, METH_NOARGS,
     "Whether a function mode is on that sees calls of operators by name."},
    {"has_override", (PyCFunction)(void (*)(void))py_has_override, METH_FASTCALL,
     "has_override($module, /, *arguments)\n--\n\n"
     "Whether a function mode or an argument overrides __torch_function__."},
    {"past_overrides", (PyCFunction)(void (*)(void))py_past_overrides, METH_FASTCALL,
     "past_overrides($module, fn, /, *arguments)\n--\n\n"
     "The library's own call of fn: operators that it calls by name ask no class "
     "of their arguments."},
    {"_disabled_torch_function_impl", py_disabled_function, METH_VARARGS,
     "__torch_function__ that overrides nothing."},
    {"_disabled_torch_dispatch_impl", py_disabled_dispatch, METH_VARARGS,
     "__torch_dispatch__ of classes that have none."},
    {NULL}};
int flb_init_interpose(PyObject *module) {
    str_torch_function = PyUnicode_InternFromString("__torch_function__");
    str_torch_dispatch = PyUnicode_InternFromString("__torch_dispatch__");
    if (!str_torch_function || !str_torch_dispatch || PyModule_AddFunctions(module, functions) < 0) return -1;
    disabled_torch_function = PyObject_GetAttrString(module, "_disabled_torch_function_impl");
    disabled_torch_dispatch = PyObject_GetAttrString(module, "_disabled_torch_dispatch_impl");
    return disabled_torch_function && disabled_torch_dispatch ? 0 : -1;
}
