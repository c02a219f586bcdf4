/* Thread-local dispatch state, and the two call paths: public functions (Function) and operators (Operator).
 *
 * A call that nothing interposes on stays in this file: Function finds plain tensors and calls the NumPy ufunc; Operator finds that
 * only the backend key is set and calls the kernel. Everything else is handed to Python with the facts already collected. */
#include "state.h"
#include "tensor_internal.h"

#define NO_DATA (1u << 8)  /* scan(): some tensor has no array */
#define SUBCLASS (1u << 9) /* scan(): some tensor is of a class with __torch_dispatch__ */

#define tls_state (*flb_tls())

static PyObject *disabled_torch_function = NULL, *disabled_torch_dispatch = NULL;
static PyObject *override_handler = NULL; /* override(function, args, kwargs) -> result; core/overrides.py */
static PyObject *dispatch_handler = NULL; /* dispatch(op, keys, args, kwargs) -> result; core/dispatch.py */
static PyObject *quiet_context = NULL;    /* a contextvars.Context in which NumPy ignores floating-point errors */
static __thread PyObject *thread_quiet = NULL;
static __thread int quiet_depth = 0;
static PyObject *str_torch_function, *str_torch_dispatch;

/* ---- NumPy's floating-point warnings -------------------------------------------------------------------------------- */

/* Kernels run inside a copied context where np.errstate is "ignore": sqrt(-1) is nan without a warning, as in PyTorch, and the
 * user's own NumPy settings stay what they are. A context can be entered once at a time, so each thread has a copy. */
static PyObject *quiet_vectorcall(PyObject *fn, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    if (!quiet_context || quiet_depth) return PyObject_Vectorcall(fn, args, nargsf, kwnames);
    if (!thread_quiet && !(thread_quiet = PyContext_Copy(quiet_context))) return NULL;
    if (PyContext_Enter(thread_quiet) < 0) return NULL;
    quiet_depth = 1;
    PyObject *r = PyObject_Vectorcall(fn, args, nargsf, kwnames);
    quiet_depth = 0;
    if (PyContext_Exit(thread_quiet) < 0) {
        Py_XDECREF(r);
        return NULL;
    }
    return r;
}

/* ---- what the arguments say ----------------------------------------------------------------------------------------- */

uint32_t flb_class_keys(PyTypeObject *type) {
    if (type == flb_tensor_class || type == flb_parameter_class) return 0;
    uint32_t keys = 0;
    PyObject *d = PyObject_GetAttr((PyObject *)type, str_torch_dispatch);
    if (!d) PyErr_Clear();
    else if (d != disabled_torch_dispatch) keys |= FLB_PYTHON;
    Py_XDECREF(d);
    PyObject *f = PyObject_GetAttr((PyObject *)type, str_torch_function);
    if (!f) PyErr_Clear();
    else if (f != disabled_torch_function) keys |= 1u << 30;
    Py_XDECREF(f);
    return keys;
}

static inline uint32_t scan_one(PyObject *o, int depth) {
    if (PyObject_TypeCheck(o, &FlbTensor_Type)) {
        FlbTensor *t = (FlbTensor *)o;
        uint32_t k = t->keys;
        if (tls_state.grad_enabled && flb_requires_grad(t)) k |= FLB_AUTOGRAD;
        if (!t->array) k |= NO_DATA;
        if (k & FLB_PYTHON) k |= SUBCLASS;
        return k;
    }
    uint32_t k = 0;
    if (depth && PyList_Check(o)) {
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); i++) k |= scan_one(PyList_GET_ITEM(o, i), 0);
    } else if (depth && PyTuple_Check(o)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++) k |= scan_one(PyTuple_GET_ITEM(o, i), 0);
    }
    return k;
}
static uint32_t scan(PyObject *const *args, Py_ssize_t n) {
    FlbTls *s = &tls_state;
    uint32_t k = FLB_BACKEND | s->included;
    if (s->dispatch_modes) k |= FLB_PYTHON;
    if (s->transforms) k |= FLB_TRANSFORM;
    for (Py_ssize_t i = 0; i < n; i++) k |= scan_one(args[i], 1);
    return k & ~s->excluded;
}

static int has_override(PyObject *o, int depth) {
    PyTypeObject *type = Py_TYPE(o);
    if (PyObject_TypeCheck(o, &FlbTensor_Type)) return (((FlbTensor *)o)->flags & FLB_FUNCTION) != 0;
    if (type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type || o == Py_None || type == &PyUnicode_Type) return 0;
    if (type == &PyTuple_Type || type == &PyList_Type || type == (PyTypeObject *)flb_size_class) {
        if (!depth) return 0;
        Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
        for (Py_ssize_t i = 0; i < n; i++)
            if (has_override(PySequence_Fast_GET_ITEM(o, i), 0)) return 1;
        return 0;
    }
    PyObject *f = PyObject_GetAttr((PyObject *)type, str_torch_function);
    if (!f) return PyErr_Clear(), 0;
    int r = f != disabled_torch_function && !PyType_Check(o);
    Py_DECREF(f);
    return r;
}
static int any_override(PyObject *const *args, Py_ssize_t n) {
    FlbTls *s = &tls_state;
    if (s->function_modes && s->function_disabled < 2) return 1;
    if (s->function_disabled) return 0;
    for (Py_ssize_t i = 0; i < n; i++)
        if (has_override(args[i], 1)) return 1;
    return 0;
}

PyObject *flb_override(PyObject *func, int n, PyObject *a, PyObject *b) {
    PyObject *args = n == 1 ? PyTuple_Pack(1, a) : PyTuple_Pack(2, a, b), *kwargs = PyDict_New();
    PyObject *r = args && kwargs ? PyObject_CallFunctionObjArgs(override_handler, func, args, kwargs, NULL) : NULL;
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return r;
}

static int unpack(PyObject *const *args, Py_ssize_t n, PyObject *kwnames, PyObject **tuple, PyObject **dict) {
    *tuple = PyTuple_New(n);
    *dict = PyDict_New();
    if (!*tuple || !*dict) goto fail;
    for (Py_ssize_t i = 0; i < n; i++) PyTuple_SET_ITEM(*tuple, i, Py_NewRef(args[i]));
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++)
        if (PyDict_SetItem(*dict, PyTuple_GET_ITEM(kwnames, i), args[n + i]) < 0) goto fail;
    return 0;
fail:
    Py_CLEAR(*tuple);
    Py_CLEAR(*dict);
    return -1;
}

/* ---- Function: a public function or method -------------------------------------------------------------------------- */

/* NumPy function that computes the same as an operator on plain tensors. */
typedef struct {
    PyObject *fn;       /* or NULL */
    int arity;
    uint32_t typemask;  /* bit i: right for NumPy type number i */
} Ufunc;

typedef struct {
    PyObject_HEAD
    PyObject *impl;     /* resolves the overload and calls the operator */
    Ufunc ufunc;
    PyObject *name, *dict;
    PyObject *cache;    /* dict: types of the arguments -> callable of the overload they select; shared with the Binder */
    PyObject *choose;   /* choose(args, kwargs) -> such a callable, or None when values decide too */
    vectorcallfunc vectorcall;
} FlbFunction;

/* Plain tensors of one dtype, and Python numbers that don't change it: the ufunc's result is the operator's. */
/* recording: a gradient that is asked for is somebody else's business, the caller records. */
static PyObject *try_ufunc(const Ufunc *f, PyObject *const *args, int recording) {
    PyObject *arrays[4] = {NULL};
    PyObject *dtype = NULL;
    int typenum = -1, ndim = -1, has_float = 0;
    for (int i = 0; i < f->arity; i++) {
        PyObject *o = args[i];
        PyTypeObject *type = Py_TYPE(o);
        if (type == flb_tensor_class || type == flb_parameter_class) {
            FlbTensor *t = (FlbTensor *)o;
            if (t->keys || !t->array || (!recording && tls_state.grad_enabled && flb_requires_grad(t))) return NULL;
            if (dtype && dtype != t->dtype) return NULL;
            dtype = t->dtype;
            typenum = PyArray_DESCR((PyArrayObject *)t->array)->type_num;
            int nd = PyArray_NDIM((PyArrayObject *)t->array);
            if (nd > ndim) ndim = nd;
            /* Many elements: the kernel may be a compiled one (LARGE in eager/backend.py). */
            if (PyArray_SIZE((PyArrayObject *)t->array) >= 1 << 16) return NULL;
            arrays[i + 1] = t->array;
        } else if (type == &PyFloat_Type) {
            has_float = 1;
            arrays[i + 1] = o;
        } else if (type == &PyLong_Type) {
            arrays[i + 1] = o;
        } else {
            return NULL;
        }
    }
    if (typenum < 0 || typenum > 31 || !(f->typemask >> typenum & 1)) return NULL;
    if (has_float && !(typenum == NPY_FLOAT || typenum == NPY_DOUBLE)) return NULL;
    PyObject *r = quiet_vectorcall(f->fn, arrays + 1, f->arity | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    if (!r) {
        /* The operator words its own errors (shapes, overflow): let the long way raise them. */
        PyErr_Clear();
        return NULL;
    }
    PyObject *out = flb_from_array(r);
    Py_DECREF(r);
    return out;
}

/* Types of the arguments as a key: the type of each, and after it what else selects an overload (a tensor without dimensions, the type
 * of a list's first element). It begins with None, which keeps it apart from the Binder's own keys. */
#define MAX_KEY 24
static int key_of(PyObject *o, PyObject **key, int n) {
    if (n + 2 > MAX_KEY) return -1;
    key[n++] = (PyObject *)Py_TYPE(o);
    if (PyObject_TypeCheck(o, &FlbTensor_Type)) {
        FlbTensor *t = (FlbTensor *)o;
        if (t->array ? PyArray_NDIM((PyArrayObject *)t->array) == 0 : t->shape && PyTuple_GET_SIZE(t->shape) == 0) key[n++] = Py_True;
    } else if (PyList_Check(o) || PyTuple_Check(o)) {
        Py_ssize_t size = PySequence_Fast_GET_SIZE(o);
        key[n++] = size ? (PyObject *)Py_TYPE(PySequence_Fast_GET_ITEM(o, 0)) : Py_None;
    }
    return n;
}
static PyObject *call_overload(FlbFunction *f, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    PyObject *parts[MAX_KEY] = {Py_None};
    int n = 1;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf), total = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    for (Py_ssize_t i = 0; i < total; i++) {
        if (i == nargs) {
            if (n + 1 > MAX_KEY) return PyObject_Vectorcall(f->impl, args, nargsf, kwnames);
            parts[n++] = kwnames;
        }
        if ((n = key_of(args[i], parts, n)) < 0) return PyObject_Vectorcall(f->impl, args, nargsf, kwnames);
    }
    PyObject *key = PyTuple_New(n);
    if (!key) return NULL;
    for (int i = 0; i < n; i++) PyTuple_SET_ITEM(key, i, Py_NewRef(parts[i]));
    PyObject *chosen = PyDict_GetItemWithError(f->cache, key), *result;
    if (chosen) {
        Py_DECREF(key);
        Py_INCREF(chosen); /* the call may empty the cache */
        result = PyObject_Vectorcall(chosen, args, nargsf, kwnames);
        Py_DECREF(chosen);
        return result;
    }
    PyObject *tuple, *dict;
    if (PyErr_Occurred() || unpack(args, nargs, kwnames, &tuple, &dict) < 0) {
        Py_DECREF(key);
        return NULL;
    }
    chosen = PyObject_CallFunctionObjArgs(f->choose, tuple, dict, NULL);
    Py_DECREF(tuple);
    Py_DECREF(dict);
    if (!chosen || (chosen != Py_None && PyDict_SetItem(f->cache, key, chosen) < 0)) {
        Py_XDECREF(chosen);
        Py_DECREF(key);
        return NULL;
    }
    Py_DECREF(key);
    result = PyObject_Vectorcall(chosen != Py_None ? chosen : f->impl, args, nargsf, kwnames);
    Py_DECREF(chosen);
    return result;
}

static PyObject *function_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    FlbFunction *f = (FlbFunction *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    FlbTls *s = &tls_state;
    if (f->ufunc.fn && n == f->ufunc.arity && !kwnames && !(s->function_modes | s->dispatch_modes | s->transforms | s->included | s->inference)) {
        PyObject *r = try_ufunc(&f->ufunc, args, 0);
        if (r || PyErr_Occurred()) return r;
    }
    Py_ssize_t total = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    if (any_override(args, total)) {
        PyObject *tuple, *dict;
        if (unpack(args, n, kwnames, &tuple, &dict) < 0) return NULL;
        PyObject *r = PyObject_CallFunctionObjArgs(override_handler, self, tuple, dict, NULL);
        Py_DECREF(tuple);
        Py_DECREF(dict);
        return r;
    }
    if (f->choose) return call_overload(f, args, nargsf, kwnames);
    return PyObject_Vectorcall(f->impl, args, nargsf, kwnames);
}
static PyObject *function_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"name", "impl", "ufunc", "arity", "typemask", "cache", "choose", NULL};
    PyObject *name, *impl, *ufunc = Py_None, *cache = NULL, *choose = NULL;
    int arity = 0;
    unsigned int mask = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "UO|OiIO!O", names, &name, &impl, &ufunc, &arity, &mask, &PyDict_Type, &cache, &choose))
        return NULL;
    if (!cache != !choose) return PyErr_SetString(PyExc_TypeError, "cache and choose come together"), NULL;
    if (arity > 3) return PyErr_SetString(PyExc_ValueError, "arity of a ufunc is at most 3"), NULL;
    FlbFunction *f = (FlbFunction *)type->tp_alloc(type, 0);
    if (!f) return NULL;
    f->name = Py_NewRef(name);
    f->impl = Py_NewRef(impl);
    f->cache = Py_XNewRef(cache);
    f->choose = Py_XNewRef(choose);
    f->ufunc = (Ufunc){ufunc == Py_None ? NULL : Py_NewRef(ufunc), arity, mask};
    f->vectorcall = function_vectorcall;
    return (PyObject *)f;
}
static int function_traverse(FlbFunction *f, visitproc visit, void *arg) {
    Py_VISIT(f->impl);
    Py_VISIT(f->cache);
    Py_VISIT(f->choose);
    Py_VISIT(f->ufunc.fn);
    Py_VISIT(f->dict);
    return 0;
}
static int function_clear(FlbFunction *f) {
    Py_CLEAR(f->impl);
    Py_CLEAR(f->cache);
    Py_CLEAR(f->choose);
    Py_CLEAR(f->ufunc.fn);
    Py_CLEAR(f->dict);
    return 0;
}
static void function_dealloc(FlbFunction *f) {
    PyObject_GC_UnTrack(f);
    function_clear(f);
    Py_XDECREF(f->name);
    Py_TYPE(f)->tp_free(f);
}
static PyObject *function_descr_get(PyObject *self, PyObject *obj, PyObject *type) {
    if (!obj || obj == Py_None) return Py_NewRef(self);
    return PyMethod_New(self, obj);
}
static PyObject *function_repr(FlbFunction *f) { return PyUnicode_FromFormat("<function %U of flambeau>", f->name); }
static PyObject *function_get_name(FlbFunction *f, void *c) { return Py_NewRef(f->name); }
static PyMemberDef function_members[] = {{"impl", T_OBJECT, offsetof(FlbFunction, impl), 0, "resolves the overload and calls the operator"},
                                         {"ufunc", T_OBJECT, offsetof(FlbFunction, ufunc.fn), READONLY, "NumPy function for plain tensors, or None"},
                                         {"arity", T_INT, offsetof(FlbFunction, ufunc.arity), 0, "number of arguments of ufunc; -1: ufunc isn't used"},
                                         {"__vectorcalloffset__", T_PYSSIZET, offsetof(FlbFunction, vectorcall), READONLY, NULL},
                                         {NULL}};
static PyGetSetDef function_getset[] = {{"__name__", (getter)function_get_name, NULL, NULL},
                                        {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict},
                                        {NULL}};
PyTypeObject FlbFunction_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._C.Function",
    .tp_basicsize = sizeof(FlbFunction),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_doc = "A public function or method: overrides first, then the overload of the operator.",
    .tp_new = function_new,
    .tp_dealloc = (destructor)function_dealloc,
    .tp_traverse = (traverseproc)function_traverse,
    .tp_clear = (inquiry)function_clear,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(FlbFunction, vectorcall),
    .tp_descr_get = function_descr_get,
    .tp_repr = (reprfunc)function_repr,
    .tp_members = function_members,
    .tp_getset = function_getset,
    .tp_dictoffset = offsetof(FlbFunction, dict),
};

/* ---- Operator: one overload ----------------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    PyObject *kernel; /* backend kernel on tensors with data, or NULL */
    Ufunc ufunc;
    PyObject *dict, *weakrefs;
    vectorcallfunc vectorcall;
} FlbOperator;

/* A keyword argument names a device that isn't the CPU: its kernel is not ours. */
static int elsewhere(PyObject *const *values, PyObject *kwnames) {
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++)
        if (Py_TYPE(values[i]) == Py_TYPE(flb_cpu_device) && values[i] != flb_cpu_device) return 1;
    return 0;
}
static PyObject *operator_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    FlbOperator *op = (FlbOperator *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    uint32_t keys = scan(args, n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0));
    if (keys == FLB_BACKEND && op->ufunc.fn && n == op->ufunc.arity && !kwnames && !tls_state.inference) {
        PyObject *r = try_ufunc(&op->ufunc, args, 0);
        if (r || PyErr_Occurred()) return r;
    }
    if (keys == FLB_BACKEND && op->kernel && op->kernel != Py_None && !elsewhere(args + n, kwnames))
        return quiet_vectorcall(op->kernel, args, nargsf, kwnames);
    PyObject *tuple, *dict;
    if (unpack(args, n, kwnames, &tuple, &dict) < 0) return NULL;
    PyObject *k = PyLong_FromUnsignedLong(keys);
    PyObject *r = k ? PyObject_CallFunctionObjArgs(dispatch_handler, self, k, tuple, dict, NULL) : NULL;
    Py_XDECREF(k);
    Py_DECREF(tuple);
    Py_DECREF(dict);
    return r;
}
static PyObject *operator_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    FlbOperator *op = (FlbOperator *)type->tp_alloc(type, 0);
    if (op) op->vectorcall = operator_vectorcall;
    return (PyObject *)op;
}
static int operator_traverse(FlbOperator *op, visitproc visit, void *arg) {
    Py_VISIT(op->kernel);
    Py_VISIT(op->ufunc.fn);
    Py_VISIT(op->dict);
    return 0;
}
static int operator_clear(FlbOperator *op) {
    Py_CLEAR(op->kernel);
    Py_CLEAR(op->ufunc.fn);
    Py_CLEAR(op->dict);
    return 0;
}
static void operator_dealloc(FlbOperator *op) {
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    if (op->weakrefs) PyObject_ClearWeakRefs((PyObject *)op);
    operator_clear(op);
    type->tp_free(op);
}
/* set_ufunc(ufunc or None, arity, typemask): the NumPy function that plain calls may use in place of the kernel. */
static PyObject *operator_set_ufunc(FlbOperator *op, PyObject *args) {
    PyObject *fn;
    int arity;
    unsigned int mask;
    if (!PyArg_ParseTuple(args, "OiI", &fn, &arity, &mask)) return NULL;
    if (arity > 3) return PyErr_SetString(PyExc_ValueError, "arity of a ufunc is at most 3"), NULL;
    PyObject *old = op->ufunc.fn;
    op->ufunc = (Ufunc){fn == Py_None ? NULL : Py_NewRef(fn), arity, mask};
    Py_XDECREF(old);
    Py_RETURN_NONE;
}
/* run(*args, **kwargs): the NumPy function or the kernel, whatever the arguments say. */
static PyObject *operator_run(FlbOperator *op, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    if (op->ufunc.fn && n == op->ufunc.arity && !kwnames && !tls_state.inference) {
        PyObject *r = try_ufunc(&op->ufunc, args, 1);
        if (r || PyErr_Occurred()) return r;
    }
    if (!op->kernel || op->kernel == Py_None) return PyErr_SetString(PyExc_RuntimeError, "run() of an operator that has no kernel yet"), NULL;
    return quiet_vectorcall(op->kernel, args, n, kwnames);
}
static PyMethodDef operator_methods[] = {
    {"run", (PyCFunction)(void (*)(void))operator_run, METH_FASTCALL | METH_KEYWORDS, "run(*args, **kwargs): the kernel; nothing is dispatched."},
    {"set_ufunc", (PyCFunction)operator_set_ufunc, METH_VARARGS, "set_ufunc(ufunc or None, arity, typemask): NumPy function for plain tensors."}, {NULL}};
static PyMemberDef operator_members[] = {{"kernel", T_OBJECT, offsetof(FlbOperator, kernel), 0, "backend kernel on tensors with data"}, {NULL}};
static PyGetSetDef operator_getset[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict}, {NULL}};
static PyTypeObject FlbOperator_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._C.Operator",
    .tp_basicsize = sizeof(FlbOperator),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "The native part of an operator overload: its call path.",
    .tp_new = operator_new,
    .tp_dealloc = (destructor)operator_dealloc,
    .tp_traverse = (traverseproc)operator_traverse,
    .tp_clear = (inquiry)operator_clear,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(FlbOperator, vectorcall),
    .tp_members = operator_members,
    .tp_methods = operator_methods,
    .tp_getset = operator_getset,
    .tp_dictoffset = offsetof(FlbOperator, dict),
    .tp_weaklistoffset = offsetof(FlbOperator, weakrefs),
};

/* ---- module functions ----------------------------------------------------------------------------------------------- */

static PyObject *py_scan(PyObject *m, PyObject *const *args, Py_ssize_t n) {
    if (n != 2 || !PyTuple_Check(args[0]) || !PyDict_Check(args[1])) return PyErr_SetString(PyExc_TypeError, "scan(args, kwargs)"), NULL;
    uint32_t k = FLB_BACKEND | tls_state.included;
    if (tls_state.dispatch_modes) k |= FLB_PYTHON;
    if (tls_state.transforms) k |= FLB_TRANSFORM;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[0]); i++) k |= scan_one(PyTuple_GET_ITEM(args[0], i), 1);
    PyObject *key, *value;
    Py_ssize_t pos = 0;
    while (PyDict_Next(args[1], &pos, &key, &value)) k |= scan_one(value, 1);
    return PyLong_FromUnsignedLong(k & ~tls_state.excluded);
}
static PyObject *py_has_override(PyObject *m, PyObject *const *args, Py_ssize_t n) { return PyBool_FromLong(any_override(args, n)); }
static PyObject *py_quiet(PyObject *m, PyObject *const *args, size_t n, PyObject *kwnames) {
    if (n < 1) return PyErr_SetString(PyExc_TypeError, "quiet(fn, ...)"), NULL;
    return quiet_vectorcall(args[0], args + 1, n - 1, kwnames);
}
static PyObject *py_disabled_function(PyObject *m, PyObject *args) {
    /* (func, types, args=(), kwargs=None) called as __torch_function__: run func with overrides of subclasses off. */
    PyObject *func, *types, *a = NULL, *k = NULL;
    if (!PyArg_ParseTuple(args, "OO|OO", &func, &types, &a, &k)) return NULL;
    PyObject *empty = a ? Py_NewRef(a) : PyTuple_New(0);
    uint8_t before = tls_state.function_disabled;
    if (!before) tls_state.function_disabled = 1;
    PyObject *r = PyObject_Call(func, empty, k == Py_None ? NULL : k);
    tls_state.function_disabled = before;
    Py_DECREF(empty);
    return r;
}
static PyObject *py_disabled_dispatch(PyObject *m, PyObject *args) {
    PyErr_SetString(PyExc_RuntimeError, "this class has no __torch_dispatch__");
    return NULL;
}
static PyObject *py_set_handlers(PyObject *m, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"override", "dispatch", "quiet_context", NULL};
    PyObject *o = NULL, *d = NULL, *q = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOO", names, &o, &d, &q)) return NULL;
    if (o) Py_XSETREF(override_handler, Py_NewRef(o));
    if (d) Py_XSETREF(dispatch_handler, Py_NewRef(d));
    if (q) Py_XSETREF(quiet_context, Py_NewRef(q));
    Py_RETURN_NONE;
}
PyMethodDef flb_dispatch_functions[] = {
    {"scan", (PyCFunction)(void (*)(void))py_scan, METH_FASTCALL, "scan(args, kwargs): dispatch keys of a call, and NO_DATA."},
    {"has_override", (PyCFunction)(void (*)(void))py_has_override, METH_FASTCALL, "Whether a function mode or an argument overrides __torch_function__."},
    {"quiet", (PyCFunction)(void (*)(void))py_quiet, METH_FASTCALL | METH_KEYWORDS, "quiet(fn, ...): call with NumPy's floating-point warnings off."},
    {"_disabled_torch_function_impl", py_disabled_function, METH_VARARGS, "__torch_function__ that overrides nothing."},
    {"_disabled_torch_dispatch_impl", py_disabled_dispatch, METH_VARARGS, "__torch_dispatch__ of classes that have none."},
    {"set_handlers", (PyCFunction)(void (*)(void))py_set_handlers, METH_VARARGS | METH_KEYWORDS, "Install the Python continuations."},
    {NULL}};

int flb_init_dispatch(PyObject *module) {
    str_torch_function = PyUnicode_InternFromString("__torch_function__");
    str_torch_dispatch = PyUnicode_InternFromString("__torch_dispatch__");
    if (!str_torch_function || !str_torch_dispatch || PyType_Ready(&FlbFunction_Type) < 0 || PyType_Ready(&FlbOperator_Type) < 0) return -1;
    if (PyModule_AddObjectRef(module, "Function", (PyObject *)&FlbFunction_Type) < 0 ||
        PyModule_AddObjectRef(module, "Operator", (PyObject *)&FlbOperator_Type) < 0)
        return -1;
    disabled_torch_function = PyObject_GetAttrString(module, "_disabled_torch_function_impl");
    disabled_torch_dispatch = PyObject_GetAttrString(module, "_disabled_torch_dispatch_impl");
    return disabled_torch_function && disabled_torch_dispatch ? 0 : -1;
}
