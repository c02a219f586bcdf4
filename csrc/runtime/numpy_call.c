/* The call of a function of NumPy's within a graph (numpy/graph_calls.py): arguments, what NumPy warns of,
 * and whether the results are what the graph was compiled for. */
#define NO_IMPORT_ARRAY
#include "runtime/graph.h"
#include <string.h>

enum { MOST_LEAVES = 16, MOST_GIVEN = 16, MOST_TAKEN = 32 };
/* Where an argument comes from: an array from 0 on, or */
enum { KNOWN = -1, MADE = -2, COPY = -3 };

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *function, *names; /* names: of keyword arguments, or NULL */
    PyObject *arguments; /* values; where the argument is MADE, value(arrays) gives it; a COPY is one of the
                            first array, which the function writes into, and all that the call gives */
    PyObject *caught;    /* the filter under which a warning is an error */
    PyObject *expect;    /* expect(arrays): a tuple of (dtype, shape, strides) of the results, a tuple each */
    PyObject *plainly; /* plainly(*given): the same call in Python, where something is out of the ordinary */
    int nplaces, *places; /* which of those that are given the arrays are */
    int nargs, *from;
    /* The arrays of the latest call as rows of dtype, dimensions, sizes, strides, and what it gives. */
    Py_ssize_t nseen, room;
    int64_t *seen;
    PyObject *expected;
} NumpyCall;

/* Of an array: 2 + 2 ndim numbers. */
static Py_ssize_t describe(PyArrayObject *a, int64_t *to) {
    int n = PyArray_NDIM(a);
    to[0] = (int64_t)(uintptr_t)PyArray_DESCR(a), to[1] = n;
    memcpy(to + 2, PyArray_DIMS(a), n * sizeof(npy_intp));
    memcpy(to + 2 + n, PyArray_STRIDES(a), n * sizeof(npy_intp));
    return 2 + 2 * n;
}

/* The results that arrays of this description give, borrowed. */
static PyObject *expected_of(NumpyCall *c, PyArrayObject **arrays) {
    Py_ssize_t n = 0, at = 0;
    for (int k = 0; k < c->nplaces; k++) n += 2 + 2 * PyArray_NDIM(arrays[k]);
    int64_t few[128], *now = n <= 128 ? few : PyMem_Malloc(n * sizeof(int64_t));
    if (!now) return PyErr_NoMemory();
    for (int k = 0; k < c->nplaces; k++) at += describe(arrays[k], now + at);
    PyObject *found = NULL, *given = NULL;
    if (c->expected && n == c->nseen && !memcmp(now, c->seen, n * sizeof(int64_t))) {
        found = c->expected;
        goto done;
    }
    if (!(given = PyTuple_New(c->nplaces))) goto done;
    for (int k = 0; k < c->nplaces; k++) PyTuple_SET_ITEM(given, k, Py_NewRef((PyObject *)arrays[k]));
    found = PyObject_CallOneArg(c->expect, given);
    if (found && !PyTuple_Check(found)) {
        PyErr_SetString(PyExc_TypeError, "what is expected is a tuple");
        Py_CLEAR(found);
    }
    if (!found) goto done;
    if (n > c->room) {
        int64_t *more = PyMem_Realloc(c->seen, n * sizeof(int64_t));
        if (!more) {
            PyErr_NoMemory();
            Py_CLEAR(found);
            goto done;
        }
        c->seen = more, c->room = n;
    }
    memcpy(c->seen, now, n * sizeof(int64_t));
    c->nseen = n;
    Py_XSETREF(c->expected, found);
done:
    Py_XDECREF(given);
    if (now != few) PyMem_Free(now);
    return found;
}

/* Whether all is let pass already, so that nothing has to be caught: the filter ("ignore", None, Warning,
 * None, 0) in front. */
static int ignores_all(PyObject *filters) {
    PyObject *f = PyList_GET_SIZE(filters) ? PyList_GET_ITEM(filters, 0) : NULL;
    if (!f || !PyTuple_CheckExact(f) || PyTuple_GET_SIZE(f) != 5) return 0;
    PyObject *action = PyTuple_GET_ITEM(f, 0), *line = PyTuple_GET_ITEM(f, 4);
    return PyUnicode_Check(action) && PyUnicode_CompareWithASCIIString(action, "ignore") == 0 &&
        PyTuple_GET_ITEM(f, 1) == Py_None && PyTuple_GET_ITEM(f, 2) == PyExc_Warning &&
        PyTuple_GET_ITEM(f, 3) == Py_None && PyLong_CheckExact(line) && PyLong_AsLong(line) == 0;
}

static PyObject *warnings, *str_filters; /* the namespace of the module, and a name in it */

/* The filters of warnings, a new reference. */
static PyObject *filters_now(void) {
    if (!warnings) {
        PyObject *module = PyImport_ImportModule("warnings");
        if (!module) return NULL;
        str_filters = PyUnicode_InternFromString("filters");
        if (str_filters) warnings = Py_NewRef(PyModule_GetDict(module));
        Py_DECREF(module);
        if (!str_filters) return NULL;
    }
    PyObject *filters = PyDict_GetItemWithError(warnings, str_filters);
    if (filters && PyList_Check(filters)) return Py_NewRef(filters);
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "warnings.filters is not a list");
    return NULL;
}

/* Takes the filter out again: nearly always it still stands in front. */
static void without(PyObject *filters, PyObject *filter) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(filters); k++)
        if (PyList_GET_ITEM(filters, k) == filter) {
            if (PyList_SetSlice(filters, k, k + 1, NULL) < 0) PyErr_Clear();
            break;
        }
    PyErr_Restore(type, value, trace);
}

static PyObject *under_filter(NumpyCall *c, PyObject **args) {
    Py_ssize_t named = c->names ? PyTuple_GET_SIZE(c->names) : 0;
    PyObject *filters = filters_now();
    if (!filters) return NULL;
    PyObject *r = NULL;
    int catches = !ignores_all(filters);
    if (!catches || PyList_Insert(filters, 0, c->caught) == 0) {
        r = PyObject_Vectorcall(c->function, args, c->nargs - named, c->names);
        if (catches) without(filters, c->caught);
    }
    Py_DECREF(filters);
    return r;
}

/* The arrays of a result in turn, as new references behind the `*n` that are there. -1: there is something
 * else in it. */
static int leaves(PyObject *r, PyObject **to, int *n) {
    if (PyArray_CheckExact(r) || PyArray_IsScalar(r, Generic)) {
        if (*n == MOST_LEAVES) return -1;
        to[*n] = PyArray_CheckExact(r) ? Py_NewRef(r) : PyArray_FromScalar(r, NULL);
        return to[*n] ? (++*n, 0) : -1;
    }
    if (!PyTuple_Check(r) && !PyList_CheckExact(r)) return -1;
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(r); k++)
        if (leaves(PySequence_Fast_GET_ITEM(r, k), to, n) < 0) return -1;
    return 0;
}

static void extent(PyArrayObject *a, char **lo, char **hi) {
    *lo = *hi = PyArray_BYTES(a);
    for (int d = 0; d < PyArray_NDIM(a); d++) {
        npy_intp reach = (PyArray_DIM(a, d) - 1) * PyArray_STRIDE(a, d);
        if (reach < 0) *lo += reach;
        else *hi += reach;
    }
    *hi += PyArray_ITEMSIZE(a);
}

static int meet(PyArrayObject *a, PyArrayObject *b) {
    char *lo, *hi, *other, *end;
    if (!PyArray_SIZE(a) || !PyArray_SIZE(b)) return 0;
    extent(a, &lo, &hi), extent(b, &other, &end);
    return other < hi && lo < end;
}

/* Sizes or strides as a tuple has them. */
static int same_numbers(PyObject *tuple, const npy_intp *numbers, int n) {
    if (PyTuple_GET_SIZE(tuple) != n) return 0;
    for (int d = 0; d < n; d++)
        if (PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, d)) != numbers[d]) return 0;
    return 1;
}

/* Result k in memory of its own with the strides that the graph has for it. 1; 0: it isn't what is expected,
 * or there is an exception. */
static int settle(PyObject **found, int k, PyObject *row, PyArrayObject **arrays, int n) {
    PyArrayObject *a = (PyArrayObject *)found[k];
    PyArray_Descr *dtype = (PyArray_Descr *)PyTuple_GET_ITEM(row, 0);
    PyObject *shape = PyTuple_GET_ITEM(row, 1), *strides = PyTuple_GET_ITEM(row, 2);
    int ndim = PyArray_NDIM(a), shared = 0;
    if (PyArray_DESCR(a) != dtype && !PyArray_EquivTypes(PyArray_DESCR(a), dtype)) return 0;
    if (!same_numbers(shape, PyArray_DIMS(a), ndim)) return 0;
    for (int i = 0; i < n; i++) shared |= meet(a, arrays[i]);
    for (int i = 0; i < k; i++) shared |= meet(a, (PyArrayObject *)found[i]);
    if (!shared && same_numbers(strides, PyArray_STRIDES(a), ndim)) return 1;
    npy_intp steps[NPY_MAXDIMS];
    for (int d = 0; d < ndim; d++) steps[d] = PyLong_AsSsize_t(PyTuple_GET_ITEM(strides, d));
    Py_INCREF(dtype);
    PyObject *made = PyArray_NewFromDescr(&PyArray_Type, dtype, ndim, PyArray_DIMS(a), steps, NULL, 0, NULL);
    if (!made || PyArray_CopyInto((PyArrayObject *)made, a) < 0) return Py_XDECREF(made), 0;
    Py_SETREF(found[k], made);
    return 1;
}

/* What is given are tensors or arrays; a tuple of the like. */
PyObject *flb_numpy_call(PyObject *self, PyObject *const *given, Py_ssize_t n, int plain) {
    NumpyCall *c = (NumpyCall *)self;
    PyArrayObject *arrays[MOST_GIVEN];
    PyObject *args[MOST_TAKEN], *found[MOST_LEAVES] = {0}, *tuple = NULL, *result = NULL, *r = NULL;
    int taken = 0, count = 0, writes = c->nargs && c->from[0] == COPY;
    if (!c->function) return PyErr_SetString(PyExc_RuntimeError, "a call that has been collected"), NULL;
    for (int k = 0; k < c->nplaces; k++) {
        PyObject *x = c->places[k] < n ? given[c->places[k]] : NULL;
        if (x && PyObject_TypeCheck(x, flb_api->tensor_type)) x = ((FlbTensor *)x)->array;
        if (!x || !PyArray_Check(x))
            return PyErr_SetString(PyExc_TypeError, "a function of NumPy's in a graph takes arrays"), NULL;
        arrays[k] = (PyArrayObject *)x;
    }
    PyObject *expected = writes ? NULL : expected_of(c, arrays);
    if (!writes && !expected) return NULL;
    Py_XINCREF(expected); /* the function may be called again within */
    for (; taken < c->nargs; taken++) {
        PyObject *value = PyTuple_GET_ITEM(c->arguments, taken);
        if (c->from[taken] == MADE) {
            if (!tuple && (tuple = PyTuple_New(c->nplaces)))
                for (int k = 0; k < c->nplaces; k++)
                    PyTuple_SET_ITEM(tuple, k, Py_NewRef((PyObject *)arrays[k]));
            args[taken] = tuple ? PyObject_CallOneArg(value, tuple) : NULL;
            if (!args[taken]) goto done;
        } else if (c->from[taken] == COPY) {
            if (!(args[taken] = PyArray_NewCopy(arrays[0], NPY_CORDER))) goto done;
        } else args[taken] = Py_NewRef(c->from[taken] == KNOWN ? value : (PyObject *)arrays[c->from[taken]]);
    }
    r = under_filter(c, args);
    if (!r && !PyErr_ExceptionMatches(PyExc_Warning)) goto done;
    if (r && writes) found[count++] = Py_NewRef(args[0]);
    int fits = r && (writes || (leaves(r, found, &count) == 0 && count == PyTuple_GET_SIZE(expected)));
    for (int k = 0; fits && !writes && k < count; k++)
        fits = settle(found, k, PyTuple_GET_ITEM(expected, k), arrays, c->nplaces);
    if (!fits) { /* the function has no effects: Python says what is wrong, or who is warned */
        PyErr_Clear();
        result = PyObject_Vectorcall(c->plainly, given, n, NULL);
        goto done;
    }
    if (!(result = PyTuple_New(count))) goto done;
    for (int k = 0; k < count; k++) {
        PyObject *x = plain ? Py_NewRef(found[k]) : flb_api->from_array(found[k]);
        if (!x) Py_CLEAR(result);
        if (!result) break;
        PyTuple_SET_ITEM(result, k, x);
    }
done:
    for (int k = 0; k < taken; k++) Py_DECREF(args[k]);
    for (int k = 0; k < count; k++) Py_XDECREF(found[k]);
    Py_XDECREF(r);
    Py_XDECREF(tuple);
    Py_XDECREF(expected);
    return result;
}

static PyObject *call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    if (names && PyTuple_GET_SIZE(names))
        return PyErr_SetString(PyExc_TypeError, "a call in a graph takes no keyword arguments"), NULL;
    return flb_numpy_call(self, args, PyVectorcall_NARGS(nargsf), 0);
}

/* ---- the object ---------------------------------------------------------------------------------------- */

static int numbers_of(PyObject *tuple, int *n, int **out, int least, int end) {
    *n = (int)PyTuple_GET_SIZE(tuple);
    if (!(*out = PyMem_Calloc(*n + 1, sizeof(int)))) return PyErr_NoMemory(), -1;
    for (int k = 0; k < *n; k++) {
        long v = PyLong_AsLong(PyTuple_GET_ITEM(tuple, k));
        if (v == -1 && PyErr_Occurred()) return -1;
        if (v < least || v >= end) return PyErr_SetString(PyExc_ValueError, "NumpyCall: no such array"), -1;
        (*out)[k] = (int)v;
    }
    return 0;
}

static PyObject *numpy_call_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *function, *arguments, *from, *names, *places, *caught, *expect, *plainly;
    if (!PyArg_ParseTuple(args, "OO!O!O!O!OOO", &function, &PyTuple_Type, &arguments, &PyTuple_Type, &from,
                          &PyTuple_Type, &names, &PyTuple_Type, &places, &caught, &expect, &plainly))
        return NULL;
    if (PyTuple_GET_SIZE(arguments) != PyTuple_GET_SIZE(from) || PyTuple_GET_SIZE(from) > MOST_TAKEN ||
        PyTuple_GET_SIZE(names) > PyTuple_GET_SIZE(from) || PyTuple_GET_SIZE(places) > MOST_GIVEN)
        return PyErr_SetString(PyExc_ValueError, "NumpyCall: too many arguments, or places for others"), NULL;
    NumpyCall *c = (NumpyCall *)type->tp_alloc(type, 0);
    if (!c) return NULL;
    if (numbers_of(places, &c->nplaces, &c->places, 0, 1 << 16) < 0 ||
        numbers_of(from, &c->nargs, &c->from, COPY, c->nplaces) < 0)
        return Py_DECREF(c), NULL;
    for (int k = 0; k < c->nargs; k++)
        if (c->from[k] == COPY && (k || !c->nplaces || k >= c->nargs - PyTuple_GET_SIZE(names)))
            return Py_DECREF(c),
                   PyErr_SetString(PyExc_ValueError, "NumpyCall: the first argument is written"), NULL;
    c->function = Py_NewRef(function), c->arguments = Py_NewRef(arguments);
    c->names = PyTuple_GET_SIZE(names) ? Py_NewRef(names) : NULL;
    c->caught = Py_NewRef(caught), c->expect = Py_NewRef(expect), c->plainly = Py_NewRef(plainly);
    c->call = call;
    return (PyObject *)c;
}

static int numpy_call_traverse(NumpyCall *c, visitproc visit, void *arg) {
    Py_VISIT(c->function);
    Py_VISIT(c->arguments);
    Py_VISIT(c->expect);
    Py_VISIT(c->plainly);
    return 0;
}

static int numpy_call_clear(NumpyCall *c) {
    Py_CLEAR(c->function);
    Py_CLEAR(c->expect);
    Py_CLEAR(c->plainly);
    return 0;
}

static void numpy_call_dealloc(NumpyCall *c) {
    PyObject_GC_UnTrack(c);
    numpy_call_clear(c);
    Py_XDECREF(c->arguments);
    Py_XDECREF(c->names);
    Py_XDECREF(c->caught);
    Py_XDECREF(c->expected);
    PyMem_Free(c->places);
    PyMem_Free(c->from);
    PyMem_Free(c->seen);
    Py_TYPE(c)->tp_free((PyObject *)c);
}

PyTypeObject FlbNumpyCall_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._runtime.NumpyCall",
    .tp_doc =
        "NumpyCall(function, arguments, from, names, places, caught, expect, plainly): a function of NumPy's "
        "as a graph calls it.\n\n"
        "arguments: one for each of `from`, which says where it comes from: the array of this number, -1: it "
        "is known, -2: it is called with the tuple of arrays and gives it, -3, of the first one: it is a "
        "copy of "
        "the first array, which the function writes into, and the result; the last ones go by `names`. "
        "places: which of what is given the arrays are. caught: the filter under which a warning is an "
        "error. "
        "expect(arrays): a tuple of (dtype, shape, strides) for each result. plainly(*given): the same call, "
        "for what is out of the ordinary.",
    .tp_basicsize = sizeof(NumpyCall),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = numpy_call_new,
    .tp_dealloc = (destructor)numpy_call_dealloc,
    .tp_traverse = (traverseproc)numpy_call_traverse,
    .tp_clear = (inquiry)numpy_call_clear,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(NumpyCall, call),
};
