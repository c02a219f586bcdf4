/* Fields, places and layouts of the records from which a compiled graph is built. */
#include "runtime/reading.h"
#include <stdarg.h>

void *flb_zeroed(Py_ssize_t n, size_t size) {
    void *p = n < 0 || n >= INT_MAX ? NULL : PyMem_Calloc(n + 1, size);
    if (!p) PyErr_NoMemory();
    return p;
}

int flb_read_ints(PyObject *o, int **out, int *n) {
    PyObject *fast = PySequence_Tuple(o); /* owned: an element's __index__ may change a list */
    if (!fast) return -1;
    if (!(*out = flb_zeroed(PyTuple_GET_SIZE(fast), sizeof(int)))) return Py_DECREF(fast), -1;
    *n = (int)PyTuple_GET_SIZE(fast);
    for (int i = 0; i < *n; i++) {
        long v = PyLong_AsLong(PyTuple_GET_ITEM(fast, i));
        (*out)[i] = v < INT_MIN || v > INT_MAX ? INT_MAX : (int)v; /* no place and no slot */
    }
    Py_DECREF(fast);
    return PyErr_Occurred() ? -1 : 0;
}

int flb_check_place(Graph *g, int at, int count) {
    if (at < 0 || count < 0 || count > g->nframe || at > g->nframe - count)
        FAIL("place %d is outside the frame of %d", at, g->nframe);
    return 0;
}

PyObject *flb_fields_of(PyObject *o, ...) {
    const char *names[16], *name;
    int n = 0;
    va_list list;
    va_start(list, o);
    while ((name = va_arg(list, const char *))) names[n++] = name;
    va_end(list);
    PyObject *made = PyTuple_New(n);
    for (int i = 0; made && i < n; i++) {
        PyObject *x = PyObject_GetAttrString(o, names[i]);
        if (!x) Py_CLEAR(made);
        else PyTuple_SET_ITEM(made, i, x);
    }
    return made;
}

int flb_kind_of(PyObject *o, int count) {
    PyObject *kind = PyObject_GetAttrString(o, "kind");
    if (!kind) return -1;
    long k = PyLong_AsLong(kind);
    Py_DECREF(kind);
    if (k == -1 && PyErr_Occurred()) return -1;
    if (k < 0 || k >= count) FAIL("there is no kind %ld of record", k);
    return (int)k;
}

int flb_read_layout(PyObject *o, Layout *l, Graph *g) {
    if (o == Py_None) return 0;
    PyObject *held = flb_fields_of(o, "ndim", "at", "dtype", NULL), *dtype;
    int failed = !held || !PyArg_ParseTuple(held, "iiO", &l->ndim, &l->at, &dtype);
    if (!failed && (l->ndim < 0 || l->ndim > NPY_MAXDIMS)) {
        PyErr_Format(PyExc_ValueError, "a tensor of %d dimensions", l->ndim);
        failed = 1;
    }
    failed = failed || flb_check_place(g, l->at, 2 * l->ndim) < 0 ||
        PyArray_DescrConverter(dtype, &l->descr) != NPY_SUCCEED;
    Py_XDECREF(held);
    return failed ? -1 : 0;
}

int flb_check_slots(Graph *g, const int *slots, int n) {
    for (int i = 0; i < n; i++)
        if (slots[i] < 0 || slots[i] >= g->nslots) FAIL("slot %d does not exist", slots[i]);
    return 0;
}
