/* Views: those that a call plan describes, and those by numbers that are others at every call, for which
 * there is no plan each: one index, or a slice, along a dimension of a plain tensor, and sizes with strides.
 */
#include "core/calls.h"

PyObject *flb_make_views(FlbCallPlan *r, FlbTensor *base, PyObject *op, PyObject *const *values,
                         Py_ssize_t n) {
    PyArrayObject *a = (PyArrayObject *)base->array;
    FlbStorage *storage = flb_storage(base);
    if (!storage) return NULL;
    PyObject *list = r->many ? PyList_New(r->n_results) : NULL, *rest = NULL, *out = NULL;
    if (r->many && !list) return NULL;
    if (r->tracked && (!flb_view_is_strided(base) || r->results->descr)) {
        if (!(rest = PyTuple_New(n - 1))) goto fail;
        for (Py_ssize_t i = 1; i < n; i++) PyTuple_SET_ITEM(rest, i - 1, Py_NewRef(values[i]));
    }
    for (int i = 0; i < r->n_results; i++) {
        Result *x = &r->results[i];
        PyArray_Descr *descr = x->descr ? x->descr : PyArray_DESCR(a);
        Py_INCREF(descr);
        PyObject *array =
            PyArray_NewFromDescr(&PyArray_Type, descr, x->n_dims, x->dims, x->strides,
                                 PyArray_BYTES(a) + x->offset, PyArray_FLAGS(a) & NPY_ARRAY_WRITEABLE, NULL);
        if (!array) goto fail;
        if (PyArray_SetBaseObject((PyArrayObject *)array, Py_NewRef((PyObject *)a)) < 0) {
            Py_DECREF(array);
            goto fail;
        }
        FlbTensor *t = (FlbTensor *)flb_from_array(array);
        Py_DECREF(array);
        if (!t) goto fail;
        t->storage = (FlbStorage *)Py_NewRef(storage);
        if (list) PyList_SET_ITEM(list, i, (PyObject *)t);
        else out = (PyObject *)t;
        if (r->tracked) {
            PyObject *which = rest && list ? PyLong_FromLong(i) : Py_NewRef(Py_None);
            int bad = !which || flb_note_view(t, base, op, rest, which) < 0;
            Py_XDECREF(which);
            if (bad) goto fail;
        }
    }
    Py_XDECREF(rest);
    return list ? list : out;
fail:
    Py_XDECREF(rest);
    Py_XDECREF(list);
    Py_XDECREF(out);
    return NULL;
}

/* Bytes from the start of its storage's memory, and how many there are; 0: it has none of its own. */
static int place_of(FlbTensor *t, npy_intp *at, npy_intp *size) {
    FlbStorage *s = flb_storage(t);
    if (!s || !s->owner) return 0;
    *at = PyArray_BYTES((PyArrayObject *)t->array) - PyArray_BYTES((PyArrayObject *)s->owner);
    *size = PyArray_NBYTES((PyArrayObject *)s->owner);
    return 1;
}
/* Whether a view with elements of that size would begin at one of them. */
int flb_begins_whole(FlbTensor *t, npy_intp item) {
    npy_intp at, size;
    return place_of(t, &at, &size) && at % item == 0;
}

/* A number of a call; 0: another value, or none. */
static int number(PyObject *o, npy_intp otherwise, npy_intp *to) {
    int overflow;
    if (o == Py_None) return *to = otherwise, 1;
    if (!PyLong_CheckExact(o)) return 0;
    *to = (npy_intp)PyLong_AsLongLongAndOverflow(o, &overflow);
    return !overflow;
}
static npy_intp within(npy_intp at, npy_intp n) {
    at = at < 0 ? at + n : at;
    return at < 0 ? 0 : at > n ? n : at;
}
/* The integers of a list or tuple; -1: others, or too many. */
static int numbers_of(PyObject *o, npy_intp *to) {
    if (!PyList_CheckExact(o) && !PyTuple_Check(o)) return -1;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    for (Py_ssize_t i = 0; i < n && n <= R_DIMS; i++)
        if (PySequence_Fast_GET_ITEM(o, i) == Py_None || !number(PySequence_Fast_GET_ITEM(o, i), 0, to + i))
            return -1;
    return n <= R_DIMS ? (int)n : -1;
}
/* Sizes, strides and a first element, all inside the memory. 0: what is wrong with them is told elsewhere. */
static int view_by_strides(FlbOperator *op, FlbTensor *base, PyObject *const *values, PyObject **result) {
    npy_intp item = PyArray_ITEMSIZE((PyArrayObject *)base->array), offset, at, size;
    Result view = {.n_dims = numbers_of(values[1], view.dims)};
    if (view.n_dims < 0 || numbers_of(values[2], view.strides) != view.n_dims || values[3] == Py_None ||
        !number(values[3], 0, &offset) || !place_of(base, &at, &size))
        return 0;
    npy_intp room = size / item, low = at / item, high;
    if (offset < -room || offset > room) return 0;
    low += offset, high = low;
    for (int i = 0; i < view.n_dims; i++) {
        npy_intp reach;
        if (view.dims[i] < 1 || __builtin_mul_overflow(view.dims[i] - 1, view.strides[i], &reach) ||
            reach < -room || reach > room)
            return 0;
        if (reach < 0) low += reach;
        else high += reach;
        view.strides[i] *= item;
    }
    if (low < 0 || high >= room) return 0;
    view.offset = offset * item;
    FlbCallPlan plan = {.results = &view, .n_results = 1, .n_tensors = 1, .view = 1, .tracked = 1};
    *result = flb_make_views(&plan, base, (PyObject *)op, values, op->n_parameters);
    return *result ? 1 : -1;
}
/* One index, or a slice, along one dimension of a plain tensor: the numbers are others at every call, so
 * there is no plan for each. 0: what is wrong with them is told elsewhere. */
int flb_view_by_numbers(FlbOperator *op, Description *d, PyObject *const *values, PyObject **result) {
    FlbTensor *base = d->tensors[0];
    PyArrayObject *a = (PyArrayObject *)base->array;
    npy_intp dim, first, last, step = 1;
    int nd = PyArray_NDIM(a), slice = op->by_numbers == BY_SLICE;
    /* NumPy doesn't keep the strides of an array without elements: the tensor knows them. */
    if (!PyArray_SIZE(a)) return 0;
    if (op->by_numbers == BY_STRIDES) return view_by_strides(op, base, values, result);
    if (!number(values[1], 0, &dim) || dim < -nd || dim >= nd || !number(values[2], 0, &first)) return 0;
    dim = dim < 0 ? dim + nd : dim;
    npy_intp size = PyArray_DIM(a, (int)dim), stride = PyArray_STRIDE(a, (int)dim);
    Result view = {.n_dims = slice ? nd : nd - 1};
    for (int i = 0, k = 0; i < nd; i++) {
        if (i == dim && !slice) continue;
        view.dims[k] = PyArray_DIM(a, i), view.strides[k++] = PyArray_STRIDE(a, i);
    }
    if (slice) {
        if (!number(values[3], size, &last) || !number(values[4], 1, &step) || step < 1) return 0;
        first = within(first, size), last = within(last, size);
        last = last < first ? first : last;
        view.dims[dim] = last == first ? 0 : (last - first - 1) / step + 1;
        view.strides[dim] = stride * step;
    } else {
        if (values[2] == Py_None || first < -size || first >= size) return 0;
        first = first < 0 ? first + size : first;
    }
    view.offset = first * stride;
    FlbCallPlan plan = {.results = &view, .n_results = 1, .n_tensors = 1, .view = 1, .tracked = 1};
    *result = flb_make_views(&plan, base, (PyObject *)op, values, op->n_parameters);
    return *result ? 1 : -1;
}
