/* A view of an array, or one of its elements, at a place that is known before: what captured code makes of an
 * argument without a graph. */
#define NO_IMPORT_ARRAY
#include "runtime/graph.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyArray_Descr *dtype, *part; /* of the array, and of the view */
    npy_intp offset, lo,
        hi; /* of its first element, its first byte and behind its last, from the array's first */
    int ndim, scalar, read_only;
    npy_intp dims[NPY_MAXDIMS], strides[NPY_MAXDIMS];
} ArrayView;

static int holds(const ArrayView *v, PyArrayObject *a) {
    npy_intp lo = 0, hi = PyArray_ITEMSIZE(a);
    if (v->lo == v->hi) return 1;
    for (int d = 0; d < PyArray_NDIM(a); d++) {
        npy_intp reach = (PyArray_DIM(a, d) - 1) * PyArray_STRIDE(a, d);
        if (PyArray_DIM(a, d) == 0) return 0;
        if (reach < 0) lo += reach;
        else hi += reach;
    }
    return v->lo >= lo && v->hi <= hi;
}

static PyObject *array_view_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    ArrayView *v = (ArrayView *)self;
    if (PyVectorcall_NARGS(nargsf) != 1 || (kwnames && PyTuple_GET_SIZE(kwnames)) || !PyArray_Check(args[0]))
        return PyErr_SetString(PyExc_TypeError, "a view is made of one array"), NULL;
    PyArrayObject *a = (PyArrayObject *)args[0];
    if ((PyArray_DESCR(a) != v->dtype && !PyArray_EquivTypes(PyArray_DESCR(a), v->dtype)) || !holds(v, a))
        return PyErr_SetString(PyExc_ValueError, "a view of an array of another description"), NULL;
    char *at = PyArray_BYTES(a) + v->offset;
    if (v->scalar) return PyArray_ToScalar(at, a);
    PyArray_Descr *dtype = v->part == v->dtype ? PyArray_DESCR(a) : v->part;
    int flags = v->read_only ? 0 : PyArray_FLAGS(a) & NPY_ARRAY_WRITEABLE;
    Py_INCREF(dtype);
    PyObject *made =
        PyArray_NewFromDescr(&PyArray_Type, dtype, v->ndim, v->dims, v->strides, at, flags, NULL);
    if (made && PyArray_SetBaseObject((PyArrayObject *)made, Py_NewRef(args[0])) < 0) Py_CLEAR(made);
    return made;
}

static PyObject *array_view_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyArray_Descr *dtype, *part = NULL;
    PyObject *shape, *strides;
    Py_ssize_t offset;
    int scalar, read_only = 0;
    if (!PyArg_ParseTuple(args, "O!O!O!np|pO!", &PyArrayDescr_Type, &dtype, &PyTuple_Type, &shape,
                          &PyTuple_Type, &strides, &offset, &scalar, &read_only, &PyArrayDescr_Type, &part))
        return NULL;
    if (!part) part = dtype;
    Py_ssize_t n = PyTuple_GET_SIZE(shape);
    if (PyDataType_REFCHK(dtype) || PyDataType_REFCHK(part) || (scalar && part != dtype))
        return PyErr_SetString(PyExc_TypeError, "ArrayView: no views of such elements"), NULL;
    if (n > NPY_MAXDIMS || n != PyTuple_GET_SIZE(strides) || (scalar && n))
        return PyErr_SetString(PyExc_ValueError, "ArrayView: a size and a stride for each dimension"), NULL;
    ArrayView *v = (ArrayView *)type->tp_alloc(type, 0);
    if (!v) return NULL;
    v->call = array_view_call;
    v->dtype = (PyArray_Descr *)Py_NewRef((PyObject *)dtype);
    v->part = (PyArray_Descr *)Py_NewRef((PyObject *)part);
    v->offset = v->lo = v->hi = offset;
    v->ndim = (int)n, v->scalar = scalar, v->read_only = read_only;
    int empty = 0;
    for (int d = 0; d < v->ndim; d++) {
        v->dims[d] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, d));
        v->strides[d] = PyLong_AsSsize_t(PyTuple_GET_ITEM(strides, d));
        if (PyErr_Occurred()) return Py_DECREF(v), NULL;
        npy_intp reach = (v->dims[d] - 1) * v->strides[d];
        empty |= v->dims[d] <= 0;
        if (reach < 0) v->lo += reach;
        else v->hi += reach;
    }
    v->hi += PyDataType_ELSIZE(part);
    if (empty) v->offset = v->lo = v->hi = 0;
    return (PyObject *)v;
}

static void array_view_dealloc(ArrayView *v) {
    Py_XDECREF(v->dtype);
    Py_XDECREF(v->part);
    Py_TYPE(v)->tp_free((PyObject *)v);
}

PyTypeObject FlbArrayView_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._runtime.ArrayView",
    .tp_doc =
        "ArrayView(dtype, shape, strides, offset, scalar, read_only=False, part=dtype): called with an array "
        "of this dtype it gives the view whose first element lies `offset` bytes behind the array's, with "
        "strides in bytes; with `scalar` the element as NumPy's scalar. read_only: nobody may write into the "
        "view, whatever the array allows. part: the view's own dtype, of what lies within an element.",
    .tp_basicsize = sizeof(ArrayView),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = array_view_new,
    .tp_dealloc = (destructor)array_view_dealloc,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(ArrayView, call),
};
