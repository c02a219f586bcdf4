/* Cotangents of a run: sums of those that come for one result, zeros for those that never came, those of the
 * roots. */
#include "autograd/engine.h"

int flb_add_cotangent(Run *r, Py_ssize_t task, int nr, PyObject *ct) {
    Task *t = &r->tasks[task];
    int n = t->node->n_outputs;
    if (nr < 0 || nr >= (n ? n : 1)) {
        Py_DECREF(ct);
        return PyErr_SetString(PyExc_RuntimeError, "an edge leads to a result that its node doesn't have"),
               -1;
    }
    if (!t->cts) {
        if (n > 1 && !(t->cts = PyMem_Calloc(n, sizeof(PyObject *)))) {
            Py_DECREF(ct);
            return PyErr_NoMemory(), -1;
        }
        t->seeded = 1;
    }
    PyObject **slot = n > 1 ? &t->cts[nr] : &t->one;
    if (!*slot) return *slot = ct, 0;
    PyObject *before = *slot;
    *slot = NULL;
    PyObject *args[3] = {NULL, before, ct};
    if (flb_sparse_first(before, ct)) args[1] = ct, args[2] = before;
    PyObject *sum = flb_library_call(flb_engine.add, args + 1, 2);
    Py_DECREF(before);
    Py_DECREF(ct);
    if (!sum) return -1;
    t = &r->tasks[task]; /* the call may have run Python, but tasks of this run don't move once they are
                            explored */
    *(n > 1 ? &t->cts[nr] : &t->one) = sum;
    return 0;
}
int flb_same_size(FlbTensor *a, FlbTensor *b) {
    if (a->array && b->array)
        return PyArray_NDIM((PyArrayObject *)a->array) == PyArray_NDIM((PyArrayObject *)b->array) &&
            PyArray_CompareLists(PyArray_DIMS((PyArrayObject *)a->array),
                                 PyArray_DIMS((PyArrayObject *)b->array),
                                 PyArray_NDIM((PyArrayObject *)a->array));
    PyObject *x = flb_shape(a), *y = x ? flb_shape(b) : NULL;
    return y ? PyObject_RichCompareBool(x, y, Py_EQ) : -1;
}
PyObject *flb_tuple_of(PyObject **items, int n) {
    PyObject *t = PyTuple_New(n);
    for (int i = 0; t && i < n; i++) PyTuple_SET_ITEM(t, i, Py_NewRef(items[i] ? items[i] : Py_None));
    return t;
}
/* Zeros like those of a plain tensor; NULL without an exception where others are needed. */
static PyObject *plain_zeros(const FlbMeta *m) {
    FlbTls *s = flb_tls();
    int num = m->shape || m->device != flb_cpu_device ? -1 : flb_typenum_of(m->dtype);
    if (num < 0 || (s->grad_enabled | s->dispatch_modes | s->function_modes | s->transforms | s->included))
        return NULL;
    PyObject *array = PyArray_ZEROS(m->ndim, (npy_intp *)m->dims, num, 0),
             *t = array ? flb_from_array(array) : NULL;
    Py_XDECREF(array);
    return t;
}
int flb_fill_zeros(FlbNode *node, PyObject **cts) {
    PyObject *seen = NULL;
    int plain = 1;
    for (int i = 0; i < node->n_outputs; i++) plain &= !cts[i] || flb_plain(cts[i]);
    for (int i = 0; i < node->n_outputs; i++) {
        FlbMeta *m = &node->outputs[i];
        if (cts[i] || !m->dtype) continue;
        if (plain && (cts[i] = plain_zeros(m))) continue;
        if (PyErr_Occurred()) break;
        PyObject *shape = flb_meta_shape(m);
        if (!seen) seen = flb_tuple_of(cts, node->n_outputs);
        cts[i] = shape && seen
            ? PyObject_CallFunctionObjArgs(flb_engine.zeros, shape, m->dtype, m->device, seen, NULL)
            : NULL;
        Py_XDECREF(shape);
        if (!cts[i]) break;
    }
    Py_XDECREF(seen);
    return PyErr_Occurred() ? -1 : 0;
}
PyObject *flb_root_cotangent(FlbTensor *out, PyObject *g, Py_ssize_t nr) {
    if (g == Py_None) {
        if (flb_plain((PyObject *)out) && PyArray_SIZE((PyArrayObject *)out->array) != 1) {
            PyErr_SetString(PyExc_RuntimeError, "grad can be implicitly created only for scalar outputs");
            return NULL;
        }
        return flb_library_call(flb_engine.ones_like, (PyObject *[]){(PyObject *)out}, 1);
    }
    if (!PyObject_TypeCheck(g, &FlbTensor_Type)) {
        PyErr_Format(PyExc_TypeError, "gradients can be either Tensors or None, but got %s",
                     Py_TYPE(g)->tp_name);
        return NULL;
    }
    int same = flb_same_size(out, (FlbTensor *)g);
    if (same < 0) return NULL;
    if (!same) {
        PyObject *a = flb_shape((FlbTensor *)g), *b = flb_shape(out);
        if (a && b)
            PyErr_Format(
                PyExc_RuntimeError,
                "Mismatch in shape: grad_output[%zd] has a shape of %S and output[%zd] has a shape of %S.",
                nr, a, nr, b);
        return NULL;
    }
    return Py_NewRef(g);
}
