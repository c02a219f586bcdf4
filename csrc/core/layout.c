/* Where elements lie: views by shape and strides, and results of kernels with exactly the strides they are to
 * have. */
#include "core/calls.h"

/* `array` with other strides (in elements) of the dimensions that no element's place depends on: those of
 * size 1, all of an empty one. The array itself where it has them already. */
static PyObject *relaid(PyArrayObject *a, const npy_intp *strides) {
    npy_intp own[NPY_MAXDIMS], item = PyArray_ITEMSIZE(a);
    int nd = PyArray_NDIM(a), same = 1;
    for (int d = 0; d < nd; d++) {
        own[d] = strides[d] * item;
        if (own[d] == PyArray_STRIDE(a, d)) continue;
        same = 0;
        if (PyArray_DIM(a, d) > 1 && PyArray_SIZE(a))
            return PyErr_SetString(PyExc_ValueError, "the elements lie otherwise"), NULL;
    }
    if (same) return Py_NewRef((PyObject *)a);
    PyArray_Descr *descr = PyArray_DESCR(a);
    Py_INCREF(descr);
    PyObject *view = PyArray_NewFromDescr(&PyArray_Type, descr, nd, PyArray_DIMS(a), own, PyArray_BYTES(a),
                                          PyArray_FLAGS(a) & NPY_ARRAY_WRITEABLE, NULL);
    if (view && PyArray_SetBaseObject((PyArrayObject *)view, Py_NewRef((PyObject *)a)) < 0) Py_CLEAR(view);
    return view;
}
/* laid(array, strides): see relaid(). */
static PyObject *py_laid(PyObject *m, PyObject *const *args, Py_ssize_t n) {
    npy_intp strides[NPY_MAXDIMS];
    if (n != 2 || !PyArray_Check(args[0]) || !PyTuple_Check(args[1]) ||
        PyTuple_GET_SIZE(args[1]) != PyArray_NDIM((PyArrayObject *)args[0]))
        return PyErr_SetString(PyExc_TypeError, "laid(array, strides)"), NULL;
    for (Py_ssize_t d = 0; d < PyTuple_GET_SIZE(args[1]); d++)
        strides[d] = PyLong_AsSsize_t(PyTuple_GET_ITEM(args[1], d));
    return PyErr_Occurred() ? NULL : relaid((PyArrayObject *)args[0], strides);
}
/* computed(array): a tensor over what a kernel has computed. Where the elements are in row-major order the
 * strides are exactly that, whatever NumPy makes of dimensions of size 1 and of empty arrays. */
static PyObject *py_computed(PyObject *m, PyObject *o) {
    if (!PyArray_Check(o) || !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)o)) return flb_from_array(o);
    PyArrayObject *a = (PyArrayObject *)o;
    npy_intp strides[NPY_MAXDIMS], step = 1;
    for (int d = PyArray_NDIM(a); d-- > 0; step *= PyArray_DIM(a, d) > 1 ? PyArray_DIM(a, d) : 1)
        strides[d] = step;
    PyObject *made = relaid(a, strides);
    if (!made) return NULL;
    PyObject *t = flb_from_array(made);
    Py_DECREF(made);
    return t;
}
/* strided(tensor, shape, strides, offset): the view of the tensor's memory with these strides, offset from
 * its first element; all in elements. The caller has checked that it stays inside the memory. */
static PyObject *py_strided(PyObject *m, PyObject *const *args, Py_ssize_t n) {
    if (n != 4 || !PyObject_TypeCheck(args[0], &FlbTensor_Type) || !PyTuple_Check(args[1]) ||
        !PyTuple_Check(args[2]))
        return PyErr_SetString(PyExc_TypeError, "strided(tensor, shape, strides, offset)"), NULL;
    FlbTensor *src = (FlbTensor *)args[0];
    if (!src->array) return PyErr_SetString(PyExc_RuntimeError, "strided() needs a tensor with data"), NULL;
    PyArrayObject *a = (PyArrayObject *)src->array;
    npy_intp dims[NPY_MAXDIMS], strides[NPY_MAXDIMS], item = PyArray_ITEMSIZE(a);
    Py_ssize_t nd = PyTuple_GET_SIZE(args[1]);
    if (nd > NPY_MAXDIMS || nd != PyTuple_GET_SIZE(args[2]))
        return PyErr_SetString(PyExc_ValueError, "bad number of dimensions"), NULL;
    for (Py_ssize_t i = 0; i < nd; i++) {
        dims[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(args[1], i));
        strides[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(args[2], i)) * item;
    }
    Py_ssize_t offset = PyLong_AsSsize_t(args[3]);
    if (PyErr_Occurred()) return NULL;
    FlbStorage *s = flb_storage(src);
    if (!s) return NULL;
    PyArray_Descr *descr = PyArray_DESCR(a);
    Py_INCREF(descr);
    PyObject *view =
        PyArray_NewFromDescr(&PyArray_Type, descr, (int)nd, dims, strides, PyArray_BYTES(a) + offset * item,
                             PyArray_FLAGS(a) & NPY_ARRAY_WRITEABLE, NULL);
    if (!view) return NULL;
    if (PyArray_SetBaseObject((PyArrayObject *)view, Py_NewRef(src->array)) < 0) {
        Py_DECREF(view);
        return NULL;
    }
    FlbTensor *t = (FlbTensor *)flb_from_array(view);
    Py_DECREF(view);
    if (!t) return NULL;
    t->storage = (FlbStorage *)Py_NewRef(s);
    return (PyObject *)t;
}
static PyMethodDef functions[] = {
    {"laid", (PyCFunction)(void (*)(void))py_laid, METH_FASTCALL,
     "laid(array, strides): the array with these strides, in elements, of dimensions of size 1 (all of them "
     "when it is empty)."},
    {"computed", py_computed, METH_O,
     "computed(array): tensor over a kernel's result; exactly row-major strides where the elements lie so."},
    {"strided", (PyCFunction)(void (*)(void))py_strided, METH_FASTCALL,
     "strided(tensor, shape, strides, offset): view, all in elements."},
    {NULL}};
int flb_init_layout(PyObject *module) { return PyModule_AddFunctions(module, functions); }
