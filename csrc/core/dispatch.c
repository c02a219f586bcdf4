/* Operators: what the arguments of a call say, and the way from there to the kernel.
 *
 * A call that nothing interposes on stays in C: its arguments are bound (binder.c), only the backend key is
 * set, and a call plan (call_plan.c) or the kernel runs. Calls that a mode sees go through interpose.c, calls
 * that record a gradient through autograd's native part; all others are handed to Python (core/dispatch.py)
 * with the keys already collected. */
#include "core/calls.h"
#include "core/events.h"
#include "core/stack.h"

PyObject *flb_override_handler = NULL, *flb_describe_handler = NULL, *flb_dispatch_handler = NULL,
         *flb_prepare_handler = NULL, *flb_call_planner = NULL, *flb_call_compiler = NULL,
         *flb_device_handler = NULL, *flb_python_handler = NULL, *flb_check_handler = NULL,
         *flb_shape_checker = NULL;
PyTypeObject *flb_dtype_class = NULL, *flb_format_class = NULL;
int64_t (*flb_sequence)(PyObject *node) = NULL;
int (*flb_autograd_call)(FlbOperator *op, uint32_t keys, PyObject *const *values, PyObject **result) = NULL;

/* ---- NumPy's floating-point warnings ------------------------------------------------------------------- */

/* Kernels run with np.errstate "ignore": sqrt(-1) is nan without a warning, as in PyTorch. The setting is one
 * context variable of NumPy's, set in a copy of the caller's context that is left afterwards: leaving needs
 * no memory, so nothing can keep it from being undone. */
static PyObject *quiet_variable = NULL, *quiet_value = NULL, *noting_value = NULL;
static __thread int quiet_depth = 0;
static __thread FlbFloating floating = {0};

FlbFloating *flb_floating(void) { return &floating; }

/* note(what, flags): called by NumPy in place of a warning while a graph's call is watched. */
static PyObject *py_note(PyObject *m, PyObject *const *args, Py_ssize_t n) {
    long flags = n == 2 ? PyLong_AsLong(args[1]) : -1;
    if (flags < 0)
        return PyErr_Occurred() ? NULL : (PyErr_SetString(PyExc_TypeError, "note(what, flags)"), NULL);
    floating.noted |= (unsigned)flags;
    Py_RETURN_NONE;
}

/* The call of a kernel that goes on in NumPy: its ufuncs clear the flags, and what else it does with numbers
 * is its own matter. */
static PyObject *call_noted(PyObject *fn, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    flb_floating_note(&floating);
    PyObject *r = PyObject_Vectorcall(fn, args, nargsf, kwnames);
    if (floating.watching) flb_floating_clear();
    return r;
}

PyObject *flb_quietly(PyObject *fn, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    if (!quiet_variable || quiet_depth) return call_noted(fn, args, nargsf, kwnames);
    /* Until CPython 3.12 the collector may run Python in the middle of a copy or a change of a map of
     * variables, which that Python may replace and free. */
    int collecting = PyGC_Disable();
    PyObject *context = PyContext_CopyCurrent(), *token = NULL, *r = NULL;
    int entered = context && !PyContext_Enter(context);
    if (entered) token = PyContextVar_Set(quiet_variable, floating.watching ? noting_value : quiet_value);
    if (collecting) PyGC_Enable();
    if (!entered) return Py_XDECREF(context), NULL;
    if (token) {
        Py_DECREF(token);
        quiet_depth = 1;
        r = call_noted(fn, args, nargsf, kwnames);
        quiet_depth = 0;
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (PyContext_Exit(context) < 0) { /* the kernel entered a context and didn't leave it */
        Py_CLEAR(r);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
    } else {
        PyErr_Restore(type, value, traceback);
    }
    Py_DECREF(context);
    return r;
}

/* Counted, since what is called may let other threads run. */
static PyObject *py_without_collector(PyObject *m, PyObject *fn) {
    static int holders = 0, collecting = 0;
    if (!holders++) collecting = PyGC_Disable();
    PyObject *r = PyObject_CallNoArgs(fn);
    if (!--holders && collecting) PyGC_Enable();
    return r;
}

/* ---- what the arguments say ---------------------------------------------------------------------------- */

enum { FAILED_SCAN = 0 };
/* Some argument is of a class with __torch_function__: for calls of operators by name only, flb_scan() leaves
 * it out. */
#define OVERRIDES (1u << 10)
static inline int scan_tensor(FlbTensor *t, uint32_t *keys) {
    uint32_t k = t->keys;
    if (flb_tls()->grad_enabled && !flb_tls()->inference) {
        int r = flb_requires_grad(t);
        if (r < 0) return -1;
        if (r) k |= FLB_AUTOGRAD;
    }
    if (flb_tls()->forward_open && (t->forward || (t->storage && t->storage->written_dual))) k |= FLB_FORWARD;
    if (!t->array) k |= NO_DATA;
    if (k & FLB_PYTHON) k |= SUBCLASS;
    if (t->flags & FLB_FUNCTION) k |= OVERRIDES;
    *keys |= k;
    return 0;
}
static inline int cannot_be_tensor(PyObject *o) {
    PyTypeObject *t = Py_TYPE(o);
    return o == Py_None || t == &PyLong_Type || t == &PyFloat_Type || t == &PyBool_Type ||
        t == &PyUnicode_Type;
}
/* by_name: what isn't a tensor is asked whether it overrides, too. */
static inline int scan_one(PyObject *o, uint32_t *keys, int by_name) {
    if (cannot_be_tensor(o)) return 0;
    if (PyObject_TypeCheck(o, &FlbTensor_Type)) return scan_tensor((FlbTensor *)o, keys);
    int list = PyList_Check(o);
    if (!list && !PyTuple_Check(o)) {
        int r = by_name ? flb_arguments_override(&o, 1) : 0;
        if (r > 0) *keys |= OVERRIDES;
        return r < 0 ? -1 : 0;
    }
    /* NOTE: asking a view for its history may run Python, which may change the list. */
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++) {
        PyObject *x = PySequence_Fast_GET_ITEM(o, i);
        if (cannot_be_tensor(x)) continue;
        Py_INCREF(x);
        int r = 0;
        if (PyObject_TypeCheck(x, &FlbTensor_Type)) r = scan_tensor((FlbTensor *)x, keys);
        else if (by_name && (r = flb_arguments_override(&x, 1)) > 0) *keys |= OVERRIDES;
        Py_DECREF(x);
        if (r < 0) return -1;
    }
    return 0;
}
static inline uint32_t state_keys(void) {
    FlbTls *s = flb_tls();
    uint32_t k = FLB_BACKEND | s->included;
    if (s->dispatch_modes) k |= FLB_PYTHON;
    if (s->transforms) k |= FLB_TRANSFORM;
    return k;
}
static inline uint32_t not_excluded(uint32_t keys) {
    uint32_t excluded = flb_tls()->excluded;
    if (excluded & FLB_AUTOGRAD) excluded |= FLB_FORWARD;
    return keys & ~(excluded & ~FLB_BACKEND);
}
static inline uint32_t scan(PyObject *const *args, Py_ssize_t n, int by_name) {
    uint32_t k = state_keys();
    for (Py_ssize_t i = 0; i < n; i++)
        if (scan_one(args[i], &k, by_name) < 0) return FAILED_SCAN;
    return not_excluded(k);
}
uint32_t flb_scan(PyObject *const *args, Py_ssize_t n) { return scan(args, n, 0) & ~OVERRIDES; }

/* ---- the way of a call --------------------------------------------------------------------------------- */

static PyObject *dispatch(FlbOperator *op, uint32_t keys, PyObject *args, PyObject *kwargs) {
    PyObject *k = PyLong_FromUnsignedLong(keys);
    PyObject *r =
        k ? PyObject_CallFunctionObjArgs(flb_dispatch_handler, (PyObject *)op, k, args, kwargs, NULL) : NULL;
    Py_XDECREF(k);
    return r;
}
/* NumPy's complaint about an array that can't be: a MemoryError of its own class, or a ValueError. Users
 * catch RuntimeError, as PyTorch's allocator raises. */
static PyObject *allocation_error = NULL;
/* RuntimeError for the sizes among the arguments that hold a negative number. */
static void refuse_negative(FlbOperator *op, PyObject *const *values) {
    for (Py_ssize_t k = 0; k < op->n_parameters; k++) {
        if (!PyList_Check(values[k]) && !PyTuple_Check(values[k])) continue;
        long long least = 0;
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(values[k]); i++) {
            PyObject *n = PySequence_Fast_GET_ITEM(values[k], i);
            int overflow = 0;
            long long v = PyLong_Check(n) ? PyLong_AsLongLongAndOverflow(n, &overflow) : 0;
            if (!overflow && v < least) least = v;
        }
        if (least == 0) continue;
        PyObject *sizes = PySequence_List(values[k]);
        if (!sizes) return;
        PyErr_Format(PyExc_RuntimeError, "Trying to create tensor with negative dimension %lld: %S", least,
                     sizes);
        Py_DECREF(sizes);
        return;
    }
    PyErr_SetString(PyExc_RuntimeError, "Trying to create tensor with negative dimension");
}
static void translate_error(FlbOperator *op, PyObject *const *values) {
    int memory = PyErr_ExceptionMatches(PyExc_MemoryError);
    if (PyErr_ExceptionMatches(PyExc_SystemError)) { /* some of NumPy's functions fail without an exception,
                                                        when memory runs out */
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        PyObject *text = value ? PyObject_Str(value) : NULL;
        const char *s = text ? PyUnicode_AsUTF8(text) : NULL;
        int silent = !s || strstr(s, "without exception set") || strstr(s, "without setting an exception");
        Py_XDECREF(text);
        PyErr_Restore(type, value, traceback);
        if (silent) PyErr_NoMemory();
        return;
    }
    if (!allocation_error || (!memory && !PyErr_ExceptionMatches(PyExc_ValueError))) return;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    int ours = memory && type != PyExc_MemoryError && type != allocation_error;
    if (!memory && type == PyExc_ValueError) {
        PyObject *text = PyObject_Str(value);
        const char *s = text ? PyUnicode_AsUTF8(text) : NULL;
        ours = s &&
            (!strncmp(s, "array is too big", 16) || !strncmp(s, "Maximum allowed dimension", 25) ||
             !strncmp(s, "maximum supported dimension", 27) || !strncmp(s, "Maximum allowed size", 20));
        if (s && !strcmp(s, "negative dimensions are not allowed")) {
            Py_DECREF(type);
            Py_XDECREF(value);
            Py_XDECREF(traceback);
            Py_DECREF(text);
            refuse_negative(op, values);
            return;
        }
        Py_XDECREF(text);
        if (!s) PyErr_Clear();
    }
    if (ours) {
        PyErr_Format(allocation_error,
                     memory ? "DefaultCPUAllocator: can't allocate memory: %S"
                            : "Storage size calculation overflowed: %S",
                     value);
        Py_DECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
    } else {
        PyErr_Restore(type, value, traceback);
    }
}
static PyObject *run_kernel(FlbOperator *op, PyObject *const *values) {
    PyObject *impl = Py_NewRef(op->impl); /* the kernel may be replaced while it runs */
    PyObject *r = op->loud && !floating.watching ? PyObject_Vectorcall(impl, values, op->n_parameters, NULL)
                                                 : flb_quietly(impl, values, op->n_parameters, NULL);
    Py_DECREF(impl);
    if (!r) translate_error(op, values);
    return r;
}
static int run_call_plan(FlbOperator *op, PyObject *const *values, PyObject **result) {
    int done = flb_call_plan_call(op, values, result);
    if (done < 0) translate_error(op, values);
    return done;
}
static int run_decomposed(FlbOperator *op, PyObject *body, int inside, PyObject *const *values,
                          PyObject **result) {
    int status = flb_decomposed_call(op, body, inside, values, result);
    if (status < 0) translate_error(op, values);
    return status;
}
PyObject *flb_backend(FlbOperator *op, PyObject *const *values) {
    PyObject *result;
    int status = op->call_plans_on ? run_call_plan(op, values, &result) : 0;
    if (!status && op->inner && op->programs) status = run_decomposed(op, op->inner, 1, values, &result);
    if (status) return status > 0 ? result : NULL;
    if (op->impl && op->impl != Py_None) return run_kernel(op, values);
    PyObject *args, *kwargs;
    if (flb_unbind(op, values, &args, &kwargs) < 0) return NULL;
    PyObject *r = dispatch(op, FLB_BACKEND, args, kwargs);
    Py_DECREF(args);
    Py_DECREF(kwargs);
    return r;
}
/* Writes that no history would tell of: into inference tensors outside of their mode, and in grad mode
 * through views made in no_grad. */
static int check_writes(FlbOperator *op, PyObject *const *values) {
    FlbTls *s = flb_tls();
    for (uint64_t left = op->written; left; left &= left - 1) {
        FlbTensor *t = (FlbTensor *)values[__builtin_ctzll(left)];
        if (!PyObject_TypeCheck((PyObject *)t, &FlbTensor_Type)) continue;
        if (flb_inference_used && !s->inference && flb_is_inference(t))
            return PyErr_SetString(
                       PyExc_RuntimeError,
                       "Inplace update to inference tensor outside InferenceMode is not allowed."
                       "You can make a clone to get a normal tensor before doing inplace update."),
                   -1;
        if (s->grad_enabled && t->autograd && flb_check_view_written(t) < 0) return -1;
    }
    return 0;
}
/* Whether a dispatch mode may want a composite as one call: core/dispatch.py decides. */
static int watched(uint32_t keys) {
    return (keys & (FLB_PYTHON | FLB_TRANSFORM | FLB_FORWARD | FLB_FUNCTIONALIZE)) == FLB_PYTHON &&
        flb_stack(FLB_DISPATCH_MODES);
}
/* Whether a plain tensor lies in C order and no other order is asked for. */
static int in_order_already(FlbOperator *op, PyObject *const *values) {
    FlbTensor *t = (FlbTensor *)values[0];
    return PyObject_TypeCheck(values[0], &FlbTensor_Type) && t->array && !t->keys &&
        PyArray_IS_C_CONTIGUOUS((PyArrayObject *)t->array) && values[1] == op->parameters[1].fallback;
}
static PyObject *call(FlbOperator *op, uint32_t keys, PyObject *const *values) {
    if (flb_stack_check(" in a call of an operator") < 0) return NULL;
    if (op->written && check_writes(op, values) < 0) return NULL;
    if (keys & FLB_RECORD) return flb_program_note(op, keys & ~FLB_RECORD, values);
    if (op->body && !watched(keys)) {
        PyObject *result;
        if (op->by_numbers == BY_ORDER && in_order_already(op, values)) return Py_NewRef(values[0]);
        int status = op->each ? flb_foreach_call(op, values, &result) : 0;
        if (status) return status > 0 ? result : NULL;
        status = keys == FLB_BACKEND && op->call_plans_on ? run_call_plan(op, values, &result) : 0;
        if (!status && op->programs && !(keys & ~(FLB_BACKEND | FLB_AUTOGRAD)))
            status = run_decomposed(op, op->body, 0, values, &result);
        if (status) return status > 0 ? result : NULL;
        PyObject *body = Py_NewRef(op->body);
        PyObject *r = PyObject_Vectorcall(body, values, op->n_parameters, NULL);
        Py_DECREF(body);
        if (!r) translate_error(op, values);
        return r;
    }
    if (keys == FLB_BACKEND) return flb_backend(op, values);
    if (flb_autograd_call && !op->body &&
        (keys & (FLB_AUTOGRAD | FLB_FORWARD | FLB_TRANSFORM)) == FLB_AUTOGRAD) {
        PyObject *result = NULL;
        int status = flb_autograd_call(op, keys, values, &result);
        if (status) return status > 0 ? result : NULL;
    }
    if (op->pure && !op->body &&
        (keys & (FLB_AUTOGRAD | FLB_FORWARD | FLB_TRANSFORM | FLB_FUNCTIONALIZE | FLB_PYTHON | NO_DATA)) ==
            (FLB_PYTHON | NO_DATA)) {
        PyObject *result = NULL;
        int status = flb_fake_call(op, keys, values, &result);
        if (status) return status > 0 ? result : NULL;
    }
    PyObject *args, *kwargs;
    if (flb_unbind(op, values, &args, &kwargs) < 0) return NULL;
    PyObject *r = !op->body &&
            (keys & (FLB_AUTOGRAD | FLB_FORWARD | FLB_TRANSFORM | FLB_FUNCTIONALIZE | FLB_PYTHON)) ==
                FLB_PYTHON
        ? flb_python_key(op, keys, args, kwargs)
        : dispatch(op, keys, args, kwargs);
    Py_DECREF(args);
    Py_DECREF(kwargs);
    return r;
}
static int in_device_memory(PyObject *o) {
    if (PyObject_TypeCheck(o, &FlbTensor_Type))
        return ((FlbTensor *)o)->storage && ((FlbTensor *)o)->storage->device_memory;
    if (!PyList_Check(o) && !PyTuple_Check(o)) return 0;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    for (Py_ssize_t i = 0; i < n; i++)
        if (in_device_memory(PySequence_Fast_GET_ITEM(o, i))) return 1;
    return 0;
}
static int on_device(const FlbOperator *op, PyObject *const *values) {
    for (Py_ssize_t i = 0; i < op->n_parameters; i++)
        if (values[i] && in_device_memory(values[i])) return 1;
    return 0;
}
/* Calls on tensors without elements are a compiler's, and on the way down from one key to the next a call is
 * met again: neither is an event. */
static PyObject *recorded_call(FlbOperator *op, uint32_t keys, PyObject *const *values) {
    if ((keys & FLB_FUNCTIONALIZE) || ((keys & NO_DATA) && !on_device(op, values)) ||
        flb_event_inside((PyObject *)op))
        return call(op, keys, values);
    FlbOpen open;
    flb_event_begin(&open, EVENT_OPERATOR, (PyObject *)op);
    if (flb_events & EVENTS_SHAPES) flb_event_inputs(&open, values, op->n_parameters);
    PyObject *r = call(op, keys, values);
    if (r) {
        flb_event_result(&open, r);
        if (PyObject_TypeCheck(r, &FlbTensor_Type) && ((FlbTensor *)r)->grad_fn && flb_sequence)
            flb_event_number(&open, flb_sequence(((FlbTensor *)r)->grad_fn));
    }
    flb_event_end(&open);
    return r;
}
PyObject *flb_call(FlbOperator *op, uint32_t keys, PyObject *const *values) {
    return __builtin_expect(flb_events, 0) ? recorded_call(op, keys, values) : call(op, keys, values);
}
/* A call of a program's, which function modes and arguments' classes see under the overload's own name. */
static PyObject *overridden(PyObject *op, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    PyObject *tuple, *dict;
    if (flb_unpack(args, n, kwnames, &tuple, &dict) < 0) return NULL;
    PyObject *r = PyObject_CallFunctionObjArgs(flb_override_handler, op, tuple, dict, NULL);
    Py_DECREF(tuple);
    Py_DECREF(dict);
    return r;
}
static PyObject *operator_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf,
                                     PyObject *kwnames) {
    FlbOperator *op = (FlbOperator *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (flb_operators_seen()) return overridden(self, args, n, kwnames);
    if (!op->ready && flb_prepare(op) < 0) return NULL;
    Py_ssize_t total = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    uint32_t keys = scan(args, total, 1);
    if (keys == FAILED_SCAN) return NULL;
    if (keys & OVERRIDES) {
        if (flb_classes_asked()) return overridden(self, args, n, kwnames);
        keys &= ~OVERRIDES;
    }
    PyObject *values[MAX_ARGUMENTS];
    int bound = flb_bind_exact(op, args, n, kwnames, values);
    int checked = flb_check_overload(op, args, n, kwnames, bound ? values : NULL);
    if (checked < 0) return NULL;
    if (bound) {
        PyObject *device = NULL; /* one that was given by its name */
        for (int i = 0; checked && i < op->n_parameters; i++)
            if (op->parameters[i].type == P_DEVICE && PyUnicode_Check(values[i])) {
                Py_XSETREF(device, PyObject_CallOneArg(flb_device_handler, values[i]));
                if (!(values[i] = device)) return NULL;
            }
        PyObject *r = flb_call(op, keys, values);
        Py_XDECREF(device);
        if (!r && checked) flb_overload_failed(op, args, n, kwnames);
        return r;
    }
    /* Words its own errors. */
    PyObject *tuple, *dict;
    if (flb_unpack(args, n, kwnames, &tuple, &dict) < 0) return NULL;
    PyObject *r = dispatch(op, keys, tuple, dict);
    Py_DECREF(tuple);
    Py_DECREF(dict);
    return r;
}

/* ---- the type ------------------------------------------------------------------------------------------ */

static PyObject *operator_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    FlbOperator *op = (FlbOperator *)type->tp_alloc(type, 0);
    if (op) op->vectorcall = operator_vectorcall;
    return (PyObject *)op;
}
static int operator_traverse(FlbOperator *op, visitproc visit, void *arg) {
    Py_VISIT(op->kernel);
    Py_VISIT(op->impl);
    Py_VISIT(op->named);
    Py_VISIT(op->body);
    Py_VISIT(op->inner);
    Py_VISIT(op->each);
    Py_VISIT(op->rule);
    for (int i = 0; i < op->n_parameters; i++) Py_VISIT(op->parameters[i].fallback);
    Py_VISIT(op->dict);
    int r = flb_call_plans_traverse(&op->call_plans, visit, arg);
    return r ? r : flb_call_plans_traverse(&op->shapes, visit, arg);
}
static int operator_clear(FlbOperator *op) {
    flb_operator_reset(op);
    Py_CLEAR(op->dict);
    return 0;
}
static void operator_dealloc(FlbOperator *op) {
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    if (op->weakrefs) PyObject_ClearWeakRefs((PyObject *)op);
    operator_clear(op);
    flb_free_parameters(op);
    type->tp_free(op);
}
/* run(*args, **kwargs): call plan or kernel, whatever the arguments say. */
static PyObject *operator_run(FlbOperator *op, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    if (!op->ready && flb_prepare(op) < 0) return NULL;
    PyObject *values[MAX_ARGUMENTS];
    if (flb_bind_exact(op, args, n, kwnames, values) && op->impl && op->impl != Py_None)
        return flb_backend(op, values);
    if (!op->kernel)
        return PyErr_SetString(PyExc_RuntimeError, "run() of an operator that has no kernel yet"), NULL;
    PyObject *kernel = Py_NewRef(op->kernel);
    PyObject *r = op->loud && !floating.watching ? PyObject_Vectorcall(kernel, args, n, kwnames)
                                                 : flb_quietly(kernel, args, n, kwnames);
    Py_DECREF(kernel);
    if (!r) translate_error(op, values);
    return r;
}
/* set_kernel(kernel, impl): impl takes all arguments by position. Both None: none yet. */
static PyObject *operator_set_kernel(FlbOperator *op, PyObject *const *args, Py_ssize_t n) {
    if (n != 2 || (args[0] == Py_None) != (args[1] == Py_None))
        return PyErr_SetString(PyExc_TypeError, "set_kernel(kernel, impl)"), NULL;
    for (int i = 0; i < 2; i++)
        if (args[i] != Py_None && !PyCallable_Check(args[i]))
            return PyErr_SetString(PyExc_TypeError, "a kernel is callable"), NULL;
    Py_XSETREF(op->kernel, args[0] == Py_None ? NULL : Py_NewRef(args[0]));
    Py_XSETREF(op->impl, args[1] == Py_None ? NULL : Py_NewRef(args[1]));
    Py_RETURN_NONE;
}
static PyObject *operator_forget(FlbOperator *op, PyObject *unused) {
    flb_operator_reset(op);
    Py_RETURN_NONE;
}
static PyObject *operator_get_kernel(FlbOperator *op, void *c) {
    return Py_NewRef(op->kernel ? op->kernel : Py_None);
}
static PyMethodDef operator_methods[] = {
    {"run", (PyCFunction)(void (*)(void))operator_run, METH_FASTCALL | METH_KEYWORDS,
     "run(*args, **kwargs): the kernel; nothing is dispatched."},
    {"set_kernel", (PyCFunction)(void (*)(void))operator_set_kernel, METH_FASTCALL,
     "set_kernel(kernel, impl): what runs on tensors with data."},
    {"set_signature", (PyCFunction)(void (*)(void))flb_set_signature, METH_VARARGS | METH_KEYWORDS,
     "Tell native code the parameters."},
    {"forget", (PyCFunction)operator_forget, METH_NOARGS,
     "Drop kernel, parameters and call plans: the operator was changed."},
    {NULL}};
static PyGetSetDef operator_getset[] = {
    {"kernel", (getter)operator_get_kernel, NULL, "Backend kernel on tensors with data, or None."},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict},
    {NULL}};
PyTypeObject FlbOperator_Type = {
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
    .tp_methods = operator_methods,
    .tp_getset = operator_getset,
    .tp_dictoffset = offsetof(FlbOperator, dict),
    .tp_weaklistoffset = offsetof(FlbOperator, weakrefs),
};

/* ---- module functions ---------------------------------------------------------------------------------- */

static PyObject *py_scan(PyObject *m, PyObject *const *args, Py_ssize_t n) {
    if (n != 2 || !PyTuple_Check(args[0]) || !PyDict_Check(args[1]))
        return PyErr_SetString(PyExc_TypeError, "scan(args, kwargs)"), NULL;
    uint32_t k = state_keys();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[0]); i++)
        if (scan_one(PyTuple_GET_ITEM(args[0], i), &k, 0) < 0) return NULL;
    PyObject *values = PyDict_Values(args[1]);
    if (!values) return NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values); i++)
        if (scan_one(PyList_GET_ITEM(values, i), &k, 0) < 0) return Py_DECREF(values), NULL;
    Py_DECREF(values);
    return PyLong_FromUnsignedLong(not_excluded(k) & ~OVERRIDES);
}
static PyObject *py_quiet(PyObject *m, PyObject *const *args, size_t n, PyObject *kwnames) {
    if (n < 1) return PyErr_SetString(PyExc_TypeError, "quiet(fn, ...)"), NULL;
    return flb_quietly(args[0], args + 1, n - 1, kwnames);
}
static PyObject *py_set_handlers(PyObject *m, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"override", "dispatch",     "quiet",    "prepare",      "make_plan",  "device",
                            "python",   "checked",      "dtype",    "format",       "allocation", "noting",
                            "describe", "compile_plan", "overload", "check_shapes", NULL};
    PyObject *o = NULL, *d = NULL, *variable = NULL, *value = NULL, *p = NULL, *c = NULL, *v = NULL,
             *y = NULL, *k = NULL, *t = NULL, *f = NULL, *e = NULL, *noting = NULL, *describe = NULL,
             *often = NULL, *overload = NULL, *shapes = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OO(OO)OOOOOO!O!OOOOOO", names, &o, &d, &variable,
                                     &value, &p, &c, &v, &y, &k, &PyType_Type, &t, &PyType_Type, &f, &e,
                                     &noting, &describe, &often, &overload, &shapes))
        return NULL;
    if (variable && !PyContextVar_CheckExact(variable))
        return PyErr_SetString(PyExc_TypeError, "quiet is (context variable, value)"), NULL;
    if (o) Py_XSETREF(flb_override_handler, Py_NewRef(o));
    if (overload) Py_XSETREF(flb_overload_checker, Py_NewRef(overload));
    if (d) Py_XSETREF(flb_dispatch_handler, Py_NewRef(d));
    if (p) Py_XSETREF(flb_prepare_handler, Py_NewRef(p));
    if (c) Py_XSETREF(flb_call_planner, Py_NewRef(c));
    if (often) Py_XSETREF(flb_call_compiler, Py_NewRef(often));
    if (shapes) Py_XSETREF(flb_shape_checker, Py_NewRef(shapes));
    if (v) Py_XSETREF(flb_device_handler, Py_NewRef(v));
    if (y) Py_XSETREF(flb_python_handler, Py_NewRef(y));
    if (k) Py_XSETREF(flb_check_handler, Py_NewRef(k));
    if (t) Py_XSETREF(flb_dtype_class, (PyTypeObject *)Py_NewRef(t));
    if (f) Py_XSETREF(flb_format_class, (PyTypeObject *)Py_NewRef(f));
    if (e) Py_XSETREF(allocation_error, Py_NewRef(e));
    if (noting) Py_XSETREF(noting_value, Py_NewRef(noting));
    if (describe) Py_XSETREF(flb_describe_handler, Py_NewRef(describe));
    if (variable) {
        Py_XSETREF(quiet_variable, Py_NewRef(variable));
        Py_XSETREF(quiet_value, Py_NewRef(value));
    }
    Py_RETURN_NONE;
}
PyMethodDef flb_dispatch_functions[] = {
    {"scan", (PyCFunction)(void (*)(void))py_scan, METH_FASTCALL,
     "scan(args, kwargs): dispatch keys of a call, and NO_DATA."},
    {"quiet", (PyCFunction)(void (*)(void))py_quiet, METH_FASTCALL | METH_KEYWORDS,
     "quiet(fn, ...): call with NumPy's floating-point warnings off."},
    {"note", (PyCFunction)(void (*)(void))py_note, METH_FASTCALL,
     "note(what, flags): NumPy's handler of floating-point errors while a graph's call is watched."},
    {"without_collector", py_without_collector, METH_O,
     "without_collector(callable): what it returns, called while no automatic collection runs"},
    {"set_handlers", (PyCFunction)(void (*)(void))py_set_handlers, METH_VARARGS | METH_KEYWORDS,
     "Install the Python continuations."},
    {NULL}};

int flb_init_dispatch(PyObject *module) {
    if (PyType_Ready(&FlbOperator_Type) < 0 ||
        PyModule_AddObjectRef(module, "Operator", (PyObject *)&FlbOperator_Type) < 0)
        return -1;
    return 0;
}
