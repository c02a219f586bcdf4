/* The types of a native loop (loops/) and of its call with numbers that are known before. */
#include "runtime/loop.h"
#include <string.h>

static int *numbers_of(PyObject *list, int *n) {
    PyObject *fast = PySequence_Tuple(list);
    if (!fast) return NULL;
    *n = (int)PyTuple_GET_SIZE(fast);
    int *out = PyMem_Calloc(*n + 1, sizeof(int));
    for (int k = 0; out && k < *n; k++) {
        long v = PyLong_AsLong(PyTuple_GET_ITEM(fast, k));
        if (v < 0 || v > INT32_MAX) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a loop's operands are numbered from 0");
            PyMem_Free(out);
            out = NULL;
            break;
        }
        out[k] = (int)v;
    }
    if (!out && !PyErr_Occurred()) PyErr_NoMemory();
    Py_DECREF(fast);
    return out;
}

static int loop_clear(Loop *l) {
    Py_CLEAR(l->fail);
    Py_CLEAR(l->python);
    return 0;
}

static int loop_traverse(Loop *l, visitproc visit, void *arg) {
    Py_VISIT(l->fail);
    Py_VISIT(l->python);
    return 0;
}

static void loop_dealloc(Loop *l) {
    PyObject_GC_UnTrack(l);
    loop_clear(l);
    for (int k = 0; l->results && k < l->nresults; k++) Py_XDECREF(l->results[k]);
    for (int k = 0; l->kept && k < l->nresults; k++) Py_XDECREF(l->kept[k]);
    PyMem_Free(l->kept);
    for (int k = 0; l->dtypes && k < l->narrays; k++) Py_XDECREF(l->dtypes[k]);
    PyMem_Free(l->results);
    PyMem_Free(l->dtypes);
    PyMem_Free(l->written);
    PyMem_Free(l->over);
    PyMem_Free(l->fresh);
    PyMem_Free(l->sizes);
    PyObject_GC_Del(l);
}

static PyObject *call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names);

/* The dtypes of a tuple as an array of them, whose references are the caller's: numbers of at most `largest`
 * bytes. */
static PyArray_Descr **dtypes_of(PyObject *tuple, int *n, int largest) {
    Py_ssize_t size = PyTuple_GET_SIZE(tuple);
    PyArray_Descr **out = PyMem_Calloc(size + 1, sizeof(void *));
    if (!out) return (PyArray_Descr **)PyErr_NoMemory();
    for (*n = 0; *n < size; ++*n) {
        PyArray_Descr *d = (PyArray_Descr *)PyTuple_GET_ITEM(tuple, *n);
        if (!PyArray_DescrCheck(d) || d->type_num >= NPY_NTYPES_LEGACY || PyDataType_ELSIZE(d) > largest ||
            PyTypeNum_ISOBJECT(d->type_num)) {
            PyErr_Format(PyExc_TypeError, "a loop's numbers have at most %d bytes", largest);
            for (int k = 0; k < *n; k++) Py_DECREF(out[k]);
            PyMem_Free(out);
            return NULL;
        }
        out[*n] = (PyArray_Descr *)Py_NewRef((PyObject *)d);
    }
    return out;
}

static int in_order(const int *numbers, int n, int count) {
    for (int k = 0; k < n; k++)
        if (numbers[k] >= count) return 0;
    return 1;
}

static PyObject *loop_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    unsigned long long address;
    PyObject *written, *over, *sizes, *fresh, *results, *fail, *numpy, *dtypes;
    int restores, nover;
    Py_ssize_t nints, nfloats;
    if (!PyArg_ParseTuple(args, "KOOO!OO!pOOO!nn", &address, &written, &over, &PyList_Type, &sizes, &fresh,
                          &PyTuple_Type, &results, &restores, &fail, &numpy, &PyTuple_Type, &dtypes, &nints,
                          &nfloats))
        return NULL;
    Loop *l = PyObject_GC_New(Loop, type);
    if (!l) return NULL;
    memset((char *)l + sizeof(PyObject), 0, sizeof(Loop) - sizeof(PyObject));
    PyObject_GC_Track(l);
    l->vectorcall = call;
    l->fn = (LoopFn)(uintptr_t)address;
    l->restores = restores;
    l->nints = nints, l->nfloats = nfloats;
    l->fail = Py_NewRef(fail);
    l->python = Py_NewRef(numpy);
    if (!(l->written = numbers_of(written, &l->nwritten)) || !(l->over = numbers_of(over, &nover)) ||
        !(l->fresh = numbers_of(fresh, &l->nfresh)))
        goto fail;
    if (nover != l->nwritten) {
        PyErr_SetString(PyExc_ValueError, "a loop has a flag for each operand that is written");
        goto fail;
    }
    l->nsizes = (int)PyList_GET_SIZE(sizes);
    if (!(l->sizes = PyMem_Calloc(l->nsizes + 1, sizeof(int64_t)))) {
        PyErr_NoMemory();
        goto fail;
    }
    for (int k = 0; k < l->nsizes; k++)
        if ((l->sizes[k] = PyLong_AsLongLong(PyList_GET_ITEM(sizes, k))) == -1 && PyErr_Occurred()) goto fail;
    if (!(l->results = dtypes_of(results, &l->nresults, 8)) ||
        !(l->dtypes = dtypes_of(dtypes, &l->narrays, 16)))
        goto fail;
    if (!(l->kept = PyMem_Calloc(l->nresults + 1, sizeof *l->kept))) {
        PyErr_NoMemory();
        goto fail;
    }
    if (!in_order(l->written, l->nwritten, l->narrays) || !in_order(l->fresh, l->nfresh, l->narrays)) {
        PyErr_SetString(PyExc_ValueError, "a loop writes, and makes arrays like, operands that it has");
        goto fail;
    }
    return (PyObject *)l;
fail:
    Py_DECREF(l);
    return NULL;
}

static PyObject *noted(Loop *l, PyObject *const *arrays, Py_ssize_t count, PyObject *ints, PyObject *floats,
                       int plain) {
    if (!*flb_api->events) return flb_loop_called(l, arrays, count, ints, floats, plain);
    FlbOpen open;
    flb_api->event_begin(&open, EVENT_LOOP, l->fail);
    PyObject *result = flb_loop_called(l, arrays, count, ints, floats, plain);
    flb_api->event_end(&open);
    return result;
}

static PyObject *call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    if (PyVectorcall_NARGS(nargsf) != 3 || (names && PyTuple_GET_SIZE(names)) || !PyTuple_Check(args[0]) ||
        !PyTuple_Check(args[1]) || !PyTuple_Check(args[2]))
        return PyErr_SetString(PyExc_TypeError, "a loop takes tuples of arrays, integers and floats"), NULL;
    return noted((Loop *)self, &PyTuple_GET_ITEM(args[0], 0), PyTuple_GET_SIZE(args[0]), args[1], args[2], 0);
}

/* ---- the call with numbers that are known before
 * ----------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    Loop *loop;
    PyObject *ints, *floats;
} LoopWith;

static PyObject *called_with(LoopWith *w, PyObject *const *arrays, Py_ssize_t n, int plain) {
    if (!w->loop) return PyErr_SetString(PyExc_RuntimeError, "a compiled loop that has been collected"), NULL;
    return noted(w->loop, arrays, n, w->ints, w->floats, plain);
}

static PyObject *call_with(PyObject *self, PyObject *const *arrays, size_t nargsf, PyObject *names) {
    if (names && PyTuple_GET_SIZE(names))
        return PyErr_SetString(PyExc_TypeError, "a loop takes no keyword arguments"), NULL;
    return called_with((LoopWith *)self, arrays, PyVectorcall_NARGS(nargsf), 0);
}

/* The same with arrays as results. */
PyObject *flb_loop_arrays(PyObject *loop, PyObject *const *arrays, Py_ssize_t n) {
    return called_with((LoopWith *)loop, arrays, n, 1);
}

static int with_clear(LoopWith *w) {
    Py_CLEAR(w->loop);
    return 0;
}

static int with_traverse(LoopWith *w, visitproc visit, void *arg) {
    Py_VISIT(w->loop);
    return 0;
}

static void with_dealloc(LoopWith *w) {
    PyObject_GC_UnTrack(w);
    with_clear(w);
    Py_XDECREF(w->ints);
    Py_XDECREF(w->floats);
    PyObject_GC_Del(w);
}

PyTypeObject FlbLoopWith_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._runtime.LoopWith",
    .tp_doc = "What Loop.with_numbers() gives: called with the arrays.",
    .tp_basicsize = sizeof(LoopWith),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_dealloc = (destructor)with_dealloc,
    .tp_traverse = (traverseproc)with_traverse,
    .tp_clear = (inquiry)with_clear,
    .tp_vectorcall_offset = offsetof(LoopWith, vectorcall),
    .tp_call = PyVectorcall_Call,
};

/* The loop, or the call of NumPy's, that a callable of a graph turned out to be when it was first called
 * (inductor/lowering/eager_call.py), or None. */
PyObject *flb_native_call_of(PyObject *callable) {
    PyObject *run = PyObject_GetAttrString(callable, "run");
    if (!run && !PyErr_ExceptionMatches(PyExc_AttributeError)) return NULL;
    if (!run) PyErr_Clear();
    if (run && (Py_IS_TYPE(run, &FlbLoopWith_Type) || Py_IS_TYPE(run, &FlbNumpyCall_Type))) return run;
    Py_XDECREF(run);
    return Py_NewRef(Py_None);
}

static PyObject *with_numbers(PyObject *self, PyObject *args) {
    PyObject *ints, *floats;
    if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &ints, &PyTuple_Type, &floats)) return NULL;
    LoopWith *w = PyObject_GC_New(LoopWith, &FlbLoopWith_Type);
    if (!w) return NULL;
    w->vectorcall = call_with;
    w->loop = (Loop *)Py_NewRef(self);
    w->ints = Py_NewRef(ints), w->floats = Py_NewRef(floats);
    PyObject_GC_Track(w);
    return (PyObject *)w;
}

static PyMethodDef methods[] = {
    {"with_numbers", with_numbers, METH_VARARGS,
     "with_numbers(ints, floats): the call as a function of the arrays alone, each an argument."},
    {0},
};

PyTypeObject FlbLoop_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._runtime.Loop",
    .tp_doc =
        "Loop(address, written, over, sizes, fresh, results, restores, fail, numpy, dtypes, nints, nfloats): "
        "the "
        "call of a native loop, which takes arrays of these dtypes, nints integers and nfloats floats.\n\n"
        "Called with tuples (arrays or tensors, ints, floats); gives the tuple of its results as tensors: "
        "written operands whose flag in `over` is\n"
        "not 1 (those with 1 are written themselves; with 2 the result may lie in the operand's memory), new "
        "arrays of the shapes of the operands `fresh`, numbers of the dtypes `results`. An error ends\n"
        "in fail(number, a, b, c), which raises; operands are as they were then if `restores`. "
        "`numpy(text, arrays)` computes what the kernel has no code for into the last of the arrays, and "
        "gives "
        "the floating-point flags that it raised. Signals are served while it runs.",
    .tp_basicsize = sizeof(Loop),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = loop_new,
    .tp_methods = methods,
    .tp_dealloc = (destructor)loop_dealloc,
    .tp_traverse = (traverseproc)loop_traverse,
    .tp_clear = (inquiry)loop_clear,
    .tp_vectorcall_offset = offsetof(Loop, vectorcall),
    .tp_call = PyVectorcall_Call,
};
