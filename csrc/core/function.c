/* Function: what users call (torch.sum, Tensor.view). Overrides first, then the overload whose schema the
 * arguments fit. */
#include "core/calls.h"
#include "core/stack.h"

typedef struct {
    PyObject_HEAD
    PyObject *impl;      /* called when there are no overloads, or native code can't tell which */
    PyObject *list;      /* list() -> the overloads in order of declaration; or NULL */
    PyObject *overloads; /* tuple of Operators, or NULL: not asked for yet */
    PyObject *outs;      /* for each of them the one that writes a result into `out`, or None; or NULL */
    PyObject *name, *module, *dict; /* module: where users find it, "torch" or one below; NULL is "torch" */
    vectorcallfunc vectorcall;
    PyObject
        *packet; /* of what a packet of operators does: the packet, which overrides are handed; or NULL */
    PyObject *handed; /* what overrides are handed in its place; or NULL */
    char binds; /* read from an instance of a class that holds it, it is a method, as functions in Python are
                 */
} FlbFunction;

/* A tuple of operators, and of None where `gaps`, that list(written) gives. */
static PyObject *ask_for_overloads(FlbFunction *f, PyObject *written, int gaps) {
    PyObject *all = PyObject_CallOneArg(f->list, written);
    if (!all) return NULL;
    int good = PyTuple_CheckExact(all);
    for (Py_ssize_t i = 0; good && i < PyTuple_GET_SIZE(all); i++) {
        PyObject *o = PyTuple_GET_ITEM(all, i);
        good = PyObject_TypeCheck(o, &FlbOperator_Type) || (gaps && o == Py_None);
    }
    if (good) return all;
    Py_DECREF(all);
    return PyErr_SetString(PyExc_TypeError, "overloads are a tuple of operators"), NULL;
}
static int learn_overloads(FlbFunction *f) {
    PyObject *all = ask_for_overloads(f, Py_False, 0);
    if (!all) return -1;
    Py_XSETREF(f->overloads, all);
    return 0;
}
static int learn_outs(FlbFunction *f) {
    PyObject *all = ask_for_overloads(f, Py_True, 1);
    if (!all) return -1;
    Py_XSETREF(f->outs, all);
    return 0;
}
static int any_zero_dim(PyObject *const *args, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; i++) {
        if (!PyObject_TypeCheck(args[i], &FlbTensor_Type)) continue;
        FlbTensor *t = (FlbTensor *)args[i];
        if (t->array ? PyArray_NDIM((PyArrayObject *)t->array) == 0
                     : t->shape && PyTuple_GET_SIZE(t->shape) == 0)
            return 1;
    }
    return 0;
}
/* What a user gets of an operator's results: named tuples, and tuples where operators and modes give and see
 * lists. What a mode returns instead is left as it is. */
static PyObject *for_user(FlbOperator *op, PyObject *result) {
    if (!result) return NULL;
    PyObject *plain = result;
    if (op->named && PyTuple_CheckExact(result)) result = PyObject_CallObject(op->named, plain);
    else if (PyList_CheckExact(result)) result = PyList_AsTuple(plain);
    else return result;
    Py_DECREF(plain);
    return result;
}
/* 1: done. 0: ask Python. -1: exception. `out`: the tensor that the result goes to, or NULL; args don't have
 * it. */
static int call_overload(FlbFunction *f, PyObject *const *args, Py_ssize_t n, PyObject *kwnames,
                         PyObject *out, PyObject **result) {
    if (!f->overloads && learn_overloads(f) < 0) return -1;
    if (out && !f->outs && learn_outs(f) < 0) return -1;
    PyObject *overloads = Py_NewRef(f->overloads); /* the call may define others */
    PyObject *outs = out ? Py_NewRef(f->outs) : NULL;
    /* A tensor without dimensions is a tensor before it is a number: overloads that would read it are passed
     * over. */
    int pass_over = PyTuple_GET_SIZE(overloads) > 1 && any_zero_dim(args, n);
    PyObject *values[MAX_ARGUMENTS];
    int status = 0;
    if (outs && PyTuple_GET_SIZE(outs) != PyTuple_GET_SIZE(overloads)) goto done;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(overloads) && !status; i++) {
        FlbOperator *op = (FlbOperator *)PyTuple_GET_ITEM(overloads, i), *called = op;
        if (outs) {
            called = (FlbOperator *)PyTuple_GET_ITEM(outs, i);
            if ((PyObject *)called == Py_None) break;
            if (!called->ready && flb_prepare(called) < 0) {
                status = -1;
                break;
            }
        }
        if (!op->ready && flb_prepare(op) < 0) {
            status = -1;
            break;
        }
        if (outs && called->n_parameters != op->n_parameters + 1) break;
        int fits = flb_bind_user(op, args, n, kwnames, values);
        if (fits == 0 || (fits == -1 && pass_over)) continue;
        if (fits == 1) {
            int n_values = op->n_parameters;
            if (outs) values[n_values++] = Py_NewRef(out);
            uint32_t keys = flb_scan(values, n_values);
            *result = for_user(called, keys ? flb_call(called, keys, values) : NULL);
            for (int k = 0; k < n_values; k++) Py_DECREF(values[k]);
            status = *result ? 1 : -1;
        } else if (fits == -2) {
            status = -1;
        }
        break;
    }
done:
    Py_DECREF(overloads);
    Py_XDECREF(outs);
    return status;
}
/* As call_overload, for a call that names one tensor `out`. */
static int call_with_out(FlbFunction *f, PyObject *const *args, Py_ssize_t n, PyObject *kwnames,
                         Py_ssize_t at, PyObject **result) {
    PyObject *rest[MAX_ARGUMENTS], *names = NULL, *out = args[n + at];
    Py_ssize_t more = PyTuple_GET_SIZE(kwnames) - 1;
    if (n + more > MAX_ARGUMENTS) return 0;
    for (Py_ssize_t i = 0; i < n; i++) rest[i] = args[i];
    if (more && !(names = PyTuple_New(more))) return -1;
    for (Py_ssize_t i = 0, k = 0; i <= more; i++) {
        if (i == at) continue;
        PyTuple_SET_ITEM(names, k, Py_NewRef(PyTuple_GET_ITEM(kwnames, i)));
        rest[n + k++] = args[n + i];
    }
    int status = call_overload(f, rest, n, names, out, result);
    Py_XDECREF(names);
    return status;
}
/* The place of `out` among the keywords where it is a tensor; -1: it isn't there, -2: Python knows what it
 * is. */
static Py_ssize_t find_out(PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++)
        if (flb_is_out(PyTuple_GET_ITEM(kwnames, i)))
            return PyObject_TypeCheck(args[n + i], &FlbTensor_Type) ? i : -2;
    return -1;
}

static PyObject *function_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf,
                                     PyObject *kwnames) {
    FlbFunction *f = (FlbFunction *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf), total = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    if (flb_stack_check(" in a call of a function of tensors") < 0) return NULL;
    int overridden = f->packet ? flb_packet_overridden(args, total) : flb_any_override(args, total);
    if (overridden < 0) return NULL;
    if (overridden) {
        PyObject *tuple, *dict, *made;
        int status = f->packet ? 0 : flb_autocast(self, args, nargsf, kwnames, &made);
        if (status) return status > 0 ? made : NULL;
        if (flb_unpack(args, n, kwnames, &tuple, &dict) < 0) return NULL;
        PyObject *shown = f->packet ? f->packet : f->handed && f->handed != Py_None ? f->handed : self;
        PyObject *r = PyObject_CallFunctionObjArgs(flb_override_handler, shown, tuple, dict, NULL);
        Py_DECREF(tuple);
        Py_DECREF(dict);
        return r;
    }
    if (f->packet &&
        flb_tls()->function_modes) { /* autocast is below torch functions, and casts for packets too */
        PyObject *made;
        int status = flb_autocast(self, args, nargsf, kwnames, &made);
        if (status) return status > 0 ? made : NULL;
    }
    if (f->list) {
        PyObject *result;
        Py_ssize_t at = find_out(args, n, kwnames);
        int status = at == -2 ? 0
            : at >= 0         ? call_with_out(f, args, n, kwnames, at, &result)
                              : call_overload(f, args, n, kwnames, NULL, &result);
        if (status) return status > 0 ? result : NULL;
    }
    return PyObject_Vectorcall(f->impl, args, nargsf, kwnames);
}
static PyObject *function_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"name", "impl", "overloads", "packet", NULL};
    PyObject *name, *impl, *list = NULL, *packet = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "UO|OO", names, &name, &impl, &list, &packet)) return NULL;
    if (!PyCallable_Check(impl) || (list && !PyCallable_Check(list)))
        return PyErr_SetString(PyExc_TypeError, "impl and overloads are callables"), NULL;
    FlbFunction *f = (FlbFunction *)type->tp_alloc(type, 0);
    if (!f) return NULL;
    f->name = Py_NewRef(name);
    f->impl = Py_NewRef(impl);
    f->list = Py_XNewRef(list);
    f->packet = Py_XNewRef(packet);
    f->vectorcall = function_vectorcall;
    f->binds = type != &FlbFunction_Type;
    return (PyObject *)f;
}
static int function_traverse(FlbFunction *f, visitproc visit, void *arg) {
    Py_VISIT(f->impl);
    Py_VISIT(f->list);
    Py_VISIT(f->overloads);
    Py_VISIT(f->outs);
    Py_VISIT(f->packet);
    Py_VISIT(f->handed);
    Py_VISIT(f->dict);
    return 0;
}
/* Breaks cycles through what may be missing; a function that can be reached keeps its impl. */
static int function_clear(FlbFunction *f) {
    Py_CLEAR(f->overloads);
    Py_CLEAR(f->outs);
    Py_CLEAR(f->handed);
    Py_CLEAR(f->dict);
    return 0;
}
static void function_dealloc(FlbFunction *f) {
    PyObject_GC_UnTrack(f);
    function_clear(f);
    Py_XDECREF(f->impl);
    Py_XDECREF(f->list);
    Py_XDECREF(f->name);
    Py_XDECREF(f->module);
    Py_TYPE(f)->tp_free(f);
}
static PyObject *function_forget(FlbFunction *f, PyObject *unused) {
    Py_CLEAR(f->overloads);
    Py_CLEAR(f->outs);
    Py_RETURN_NONE;
}
static PyObject *function_descr_get(PyObject *self, PyObject *obj, PyObject *type) {
    if (!obj || obj == Py_None || !((FlbFunction *)self)->binds) return Py_NewRef(self);
    return PyMethod_New(self, obj);
}
static PyObject *function_repr(FlbFunction *f) {
    return PyUnicode_FromFormat("<function %U of flambeau>", f->name);
}
static PyObject *function_get_name(FlbFunction *f, void *c) { return Py_NewRef(f->name); }
static PyObject *function_get_module(FlbFunction *f, void *c) {
    return f->module ? Py_NewRef(f->module) : PyUnicode_FromString("torch");
}
static int function_set_module(FlbFunction *f, PyObject *value, void *c) {
    if (value && !PyUnicode_Check(value))
        return PyErr_SetString(PyExc_TypeError, "__module__ of a function is a string"), -1;
    Py_XSETREF(f->module, Py_XNewRef(value));
    return 0;
}
/* Signature and documentation are worked out when they are asked for; what was assigned to `name` stands
 * before them. */
static PyObject *described(FlbFunction *f, const char *name, Py_ssize_t place) {
    PyObject *given = f->dict ? PyDict_GetItemString(f->dict, name) : NULL;
    if (given) return Py_NewRef(given);
    if (!flb_describe_handler) Py_RETURN_NONE;
    PyObject *both = PyObject_CallOneArg(flb_describe_handler, (PyObject *)f);
    if (!both) return NULL;
    PyObject *one = PyTuple_Check(both) && PyTuple_GET_SIZE(both) == 2
        ? Py_NewRef(PyTuple_GET_ITEM(both, place))
        : (PyErr_SetString(PyExc_TypeError, "describe returns (signature, text)"), NULL);
    Py_DECREF(both);
    return one;
}
static int assign(FlbFunction *f, const char *name, PyObject *value) {
    if (!f->dict && !(f->dict = PyDict_New())) return -1;
    if (value) return PyDict_SetItemString(f->dict, name, value);
    if (PyDict_GetItemString(f->dict, name)) return PyDict_DelItemString(f->dict, name);
    return PyErr_SetString(PyExc_AttributeError, name), -1;
}
static PyObject *function_get_signature(FlbFunction *f, void *c) { return described(f, "__signature__", 0); }
static int function_set_signature(FlbFunction *f, PyObject *value, void *c) {
    return assign(f, "__signature__", value);
}
static PyObject *function_get_qualname(FlbFunction *f, void *c) {
    PyObject *given = f->dict ? PyDict_GetItemString(f->dict, "__qualname__") : NULL;
    return Py_NewRef(given ? given : f->name);
}
static int function_set_qualname(FlbFunction *f, PyObject *value, void *c) {
    return assign(f, "__qualname__", value);
}
static PyObject *function_get_doc(FlbFunction *f, void *c) { return described(f, "__doc__", 1); }
static int function_set_doc(FlbFunction *f, PyObject *value, void *c) { return assign(f, "__doc__", value); }
static PyMethodDef function_methods[] = {{"forget", (PyCFunction)function_forget, METH_NOARGS,
                                          "Ask for the overloads again: one was added or changed."},
                                         {NULL}};
static PyMemberDef function_members[] = {
    {"impl", T_OBJECT, offsetof(FlbFunction, impl), READONLY,
     "called when native code doesn't choose the overload"},
    {"binds", T_BOOL, offsetof(FlbFunction, binds), 0,
     "whether it becomes a method when it is read from an instance of a class that holds it"},
    {"handed", T_OBJECT, offsetof(FlbFunction, handed), 0, "what overrides are handed in its place, or None"},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(FlbFunction, vectorcall), READONLY, NULL},
    {NULL}};
static PyGetSetDef function_getset[] = {
    {"__name__", (getter)function_get_name, NULL, NULL},
    {"__qualname__", (getter)function_get_qualname, (setter)function_set_qualname, NULL},
    {"__module__", (getter)function_get_module, (setter)function_set_module, NULL},
    {"__doc__", (getter)function_get_doc, (setter)function_set_doc, NULL},
    {"__signature__", (getter)function_get_signature, (setter)function_set_signature, NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict},
    {NULL}};
PyTypeObject FlbFunction_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._C.Function",
    .tp_basicsize = sizeof(FlbFunction),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "A public function: overrides first, then the overload of the operator.",
    .tp_new = function_new,
    .tp_dealloc = (destructor)function_dealloc,
    .tp_traverse = (traverseproc)function_traverse,
    .tp_clear = (inquiry)function_clear,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(FlbFunction, vectorcall),
    .tp_descr_get = function_descr_get,
    .tp_repr = (reprfunc)function_repr,
    .tp_methods = function_methods,
    .tp_members = function_members,
    .tp_getset = function_getset,
    .tp_dictoffset = offsetof(FlbFunction, dict),
};
/* The interpreter calls methods without making them first where their type says so. The rest is inherited. */
static PyTypeObject method_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._C.Method",
    .tp_base = &FlbFunction_Type,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_doc = "A public method of tensors: a Function that always binds.",
};
int flb_init_function(PyObject *module) {
    if (PyType_Ready(&FlbFunction_Type) < 0 || PyType_Ready(&method_type) < 0) return -1;
    if (PyModule_AddObjectRef(module, "Function", (PyObject *)&FlbFunction_Type) < 0) return -1;
    return PyModule_AddObjectRef(module, "Method", (PyObject *)&method_type);
}
