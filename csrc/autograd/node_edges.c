/* Shape, dtype and device of results, and edges: where the cotangent of a tensor goes. */
#include "autograd/node.h"

int flb_meta_dims(PyObject *o) {
    FlbTensor *t = (FlbTensor *)o;
    return t->array && !t->shape ? PyArray_NDIM((PyArrayObject *)t->array) : 0;
}
int flb_meta_of(FlbMeta *m, PyObject *o, Py_ssize_t **dims) {
    FlbTensor *t = (FlbTensor *)o;
    if (t->array && !t->shape) {
        m->ndim = PyArray_NDIM((PyArrayObject *)t->array);
        m->dims = *dims;
        *dims += m->ndim;
        for (int i = 0; i < m->ndim; i++) m->dims[i] = PyArray_DIM((PyArrayObject *)t->array, i);
    } else {
        if (!flb_shape(t)) return -1;
        m->shape = Py_NewRef(t->shape);
        m->ndim = (int)PyTuple_GET_SIZE(t->shape);
    }
    m->dtype = Py_NewRef(t->dtype);
    m->device = Py_NewRef(t->device);
    return 0;
}
PyObject *flb_meta_shape(const FlbMeta *m) {
    if (m->shape) return Py_NewRef(m->shape);
    PyObject *t = PyTuple_New(m->ndim);
    for (int i = 0; t && i < m->ndim; i++) {
        PyObject *n = PyLong_FromSsize_t(m->dims[i]);
        if (!n) {
            Py_DECREF(t);
            return NULL;
        }
        PyTuple_SET_ITEM(t, i, n);
    }
    return t;
}

int flb_edge_of(FlbTensor *t, FlbEdge *edge) {
    edge->node = NULL;
    edge->nr = 0;
    int asks = flb_requires_grad(t);
    if (asks <= 0) return asks;
    if (flb_refresh(t) < 0) return -1;
    if (t->grad_fn) {
        if (!PyObject_TypeCheck(t->grad_fn, &FlbNode_Type))
            return PyErr_SetString(PyExc_TypeError, "grad_fn is not a Node"), -1;
        edge->node = (FlbNode *)Py_NewRef(t->grad_fn);
        edge->nr = t->output_nr;
        return 0;
    }
    return (edge->node = flb_accumulator_of(t)) ? 0 : -1;
}
void flb_set_history(FlbTensor *t, FlbNode *node, int nr) {
    PyObject *old = t->grad_fn;
    t->grad_fn = Py_NewRef(node);
    t->output_nr = nr;
    t->flags |= FLB_REQUIRES_GRAD;
    Py_XDECREF(old);
}
