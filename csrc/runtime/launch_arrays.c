/* Arrays of a launch: those of its inputs, of its outputs, and over the memory of slots for steps that want
 * arrays. */
#include "runtime/launch.h"

PyObject *flb_array_over(const Layout *l, const Frame *f, char *ptr, PyObject *owner) {
    int flags = NPY_ARRAY_WRITEABLE;
    if (owner && PyArray_Check(owner)) flags &= PyArray_FLAGS((PyArrayObject *)owner);
    Py_INCREF(l->descr);
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, l->descr, l->ndim, (npy_intp *)f + l->at,
                                           (npy_intp *)f + l->at + l->ndim, ptr, flags, NULL);
    if (array && owner && PyArray_SetBaseObject((PyArrayObject *)array, Py_NewRef(owner)) < 0)
        Py_CLEAR(array);
    return array;
}

static npy_intp elements(const Layout *l, const Frame *f) {
    npy_intp n = 1;
    for (int i = 0; i < l->ndim; i++) n *= f[l->at + i];
    return n;
}

int flb_array_matches(PyArrayObject *a, const Layout *l, const Frame *f) {
    if (PyArray_NDIM(a) != l->ndim) return 0;
    if (PyArray_DESCR(a) != l->descr && !PyArray_EquivTypes(PyArray_DESCR(a), l->descr)) return 0;
    const npy_intp *shape = PyArray_DIMS(a), *strides = PyArray_STRIDES(a);
    int empty = 0, strided = 1;
    for (int i = 0; i < l->ndim; i++) {
        if (shape[i] != f[l->at + i]) return 0;
        if (!shape[i]) empty = 1;
        if (strides[i] != f[l->at + l->ndim + i] && shape[i] > 1) strided = 0;
    }
    return strided || empty;
}

/* ---- outputs --------------------------------------------------------------------------------------------
 */

/* NumPy's complaint about memory that isn't there as users know it: a RuntimeError too. */
static void name_allocation(void) {
    if (!PyErr_ExceptionMatches(PyExc_MemoryError)) return;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *errors = PyImport_ImportModule("flambeau.base.errors"),
             *error = errors ? PyObject_GetAttrString(errors, "AllocationError") : NULL;
    if (error) PyErr_Format(error, "DefaultCPUAllocator: can't allocate memory: %S", value);
    Py_XDECREF(error);
    Py_XDECREF(errors);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

/* A fresh output array; `ptr` is its first element. */
static PyObject *output_memory(const Slot *s, const Frame *f, char **ptr) {
    const Layout *l = &s->layout;
    if (s->plain) {
        Py_INCREF(l->descr);
        PyObject *array = PyArray_NewFromDescr(&PyArray_Type, l->descr, l->ndim, (npy_intp *)f + l->at, NULL,
                                               NULL, 0, NULL);
        if (array) *ptr = PyArray_DATA((PyArrayObject *)array);
        return array;
    }
    npy_intp n = f[s->at] ? f[s->at] : 1;
    if (n ==
        elements(l, f) *
            PyDataType_ELSIZE(l->descr)) { /* in another order, without gaps: an array that owns its memory */
        Py_INCREF(l->descr);
        PyObject *array = PyArray_NewFromDescr(&PyArray_Type, l->descr, l->ndim, (npy_intp *)f + l->at,
                                               (npy_intp *)f + l->at + l->ndim, NULL, 0, NULL);
        if (array) *ptr = PyArray_DATA((PyArrayObject *)array);
        return array;
    }
    PyObject *memory = PyArray_SimpleNew(1, &n, NPY_UINT8);
    if (!memory) return NULL;
    *ptr = (char *)PyArray_DATA((PyArrayObject *)memory);
    PyObject *array = flb_array_over(l, f, *ptr, memory);
    Py_DECREF(memory);
    return array;
}

PyObject *flb_new_output(const Slot *s, const Frame *f, char **ptr) {
    PyObject *array = output_memory(s, f, ptr);
    if (!array) name_allocation();
    return array;
}

/* ---- inputs, and what is passed to steps ----------------------------------------------------------------
 */

PyArrayObject *flb_input_array(Call *c, int k, PyObject *tensor, PyObject **keep) {
    const Layout *l = &c->g->slots[c->g->input_slot[k]].layout;
    PyArrayObject *array = flb_array_of(tensor);
    if (array && flb_array_matches(array, l, c->f)) return array;
    if (PyFloat_CheckExact(tensor) && !l->ndim &&
        l->descr->type_num == NPY_DOUBLE) { /* a number of the program */
        *keep = PyArray_SimpleNew(0, NULL, NPY_DOUBLE);
        if (*keep) *(double *)PyArray_DATA((PyArrayObject *)*keep) = PyFloat_AS_DOUBLE(tensor);
        return (PyArrayObject *)*keep;
    }
    if (PyArray_Check(tensor)) {
        PyObject *wrapped = flb_api->from_array(tensor);
        PyArrayObject *found = wrapped ? flb_input_array(c, k, wrapped, keep) : NULL;
        if (found && !*keep) *keep = Py_NewRef((PyObject *)found);
        Py_XDECREF(wrapped);
        return found;
    }
    PyObject *shape = PyTuple_New(l->ndim), *strides = PyTuple_New(l->ndim), *made = NULL;
    for (int i = 0; shape && strides && i < l->ndim; i++) {
        PyTuple_SET_ITEM(shape, i, PyLong_FromLongLong(c->f[l->at + i]));
        PyTuple_SET_ITEM(strides, i, PyLong_FromLongLong(c->f[l->at + l->ndim + i]));
    }
    if (shape && strides && !PyErr_Occurred())
        made = PyObject_CallFunction(c->g->on_mismatch, "iOOO", k, tensor, shape,
                                     strides); /* an ndarray, or an exception */
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    if (!made) return NULL;
    if (!PyArray_Check(made) || !flb_array_matches((PyArrayObject *)made, l, c->f)) {
        PyErr_Format(PyExc_RuntimeError,
                     "compiled graph: input %d does not have the layout it was compiled for", k);
        Py_DECREF(made);
        return NULL;
    }
    *keep = made;
    return (PyArrayObject *)made;
}

PyObject *flb_array_for_native(const Layout *l, const Frame *f, char *ptr, PyObject *owner) {
    if (owner && PyArray_CheckExact(owner) && PyArray_DATA((PyArrayObject *)owner) == ptr &&
        flb_array_matches((PyArrayObject *)owner, l, f))
        return Py_NewRef(owner);
    return flb_array_over(l, f, ptr, owner);
}
