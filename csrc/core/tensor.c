/* The tensor object: a view over a NumPy array plus the fields that dispatch and autograd need.
 *
 * Everything a getter can derive from the ndarray is derived when asked for (shape, strides, offset) and
 * remembered; creating a tensor around an array is one allocation. Python sees TensorBase; flambeau.Tensor
 * subclasses it and adds the methods. */
#include "core/tensor_parts.h"

PyObject *flb_size_class = NULL; /* flambeau.base.shapes.Size */
PyObject *flb_cpu_device = NULL; /* flambeau.base.device.Device("cpu") */
PyTypeObject *flb_tensor_class = NULL;
PyTypeObject *flb_parameter_class = NULL;

/* ---- construction -------------------------------------------------------------------------------------- */

int flb_inference_used = 0;
FlbTensor *flb_alloc(PyTypeObject *type) {
    FlbTensor *t = (FlbTensor *)type->tp_alloc(type, 0); /* zeroed */
    if (!t) return NULL;
    if (type != flb_tensor_class && flb_class_keys(type, &t->keys) < 0) {
        Py_DECREF(t);
        return NULL;
    }
    if (t->keys & (1u << 30)) {
        t->keys &= ~(1u << 30);
        t->flags |= FLB_FUNCTION;
    }
    if (flb_parameter_class && type != flb_tensor_class && PyType_IsSubtype(type, flb_parameter_class))
        t->flags |= FLB_PARAMETER;
    if (flb_tls()->inference) t->flags |= FLB_INFERENCE, flb_inference_used = 1;
    return t;
}

/* A field of a structured array has strides that no number of elements is. */
int flb_whole_strides(PyArrayObject *a) {
    npy_intp item = PyArray_ITEMSIZE(a);
    for (int i = 0; item > 1 && i < PyArray_NDIM(a); i++)
        if (PyArray_STRIDE(a, i) % item) {
            PyErr_SetString(PyExc_ValueError,
                            "given numpy array strides not a multiple of the element byte size. Copy the "
                            "numpy array to reallocate the memory.");
            return -1;
        }
    return 0;
}
PyObject *flb_from_array_as(PyTypeObject *type, PyObject *array) {
    if (!PyArray_Check(array)) {
        if (PyArray_IsScalar(array, Generic)) {
            PyObject *a = PyArray_FromScalar(array, NULL);
            if (!a) return NULL;
            PyObject *r = flb_from_array_as(type, a);
            Py_DECREF(a);
            return r;
        }
        PyErr_Format(PyExc_TypeError, "expected np.ndarray (got %s)", Py_TYPE(array)->tp_name);
        return NULL;
    }
    PyObject *dtype = flb_dtype_of_array((PyArrayObject *)array);
    if (!dtype) return NULL;
    if (!PyArray_IS_C_CONTIGUOUS((PyArrayObject *)array) && flb_whole_strides((PyArrayObject *)array) < 0)
        return NULL;
    FlbTensor *t = flb_alloc(type);
    if (!t) return NULL;
    /* A subclass computes otherwise (masked arrays skip elements, a matrix keeps its dimensions): its memory
     * is what is wanted. */
    t->array = PyArray_CheckExact(array) ? Py_NewRef(array)
                                         : PyArray_View((PyArrayObject *)array, NULL, &PyArray_Type);
    if (!t->array) return Py_DECREF(t), NULL;
    t->dtype = Py_NewRef(dtype);
    t->device = Py_NewRef(flb_cpu_device);
    return (PyObject *)t;
}
PyObject *flb_from_array(PyObject *array) { return flb_from_array_as(flb_tensor_class, array); }

static int tensor_traverse(FlbTensor *self, visitproc visit, void *arg) {
    Py_VISIT(self->array);
    Py_VISIT((PyObject *)self->storage);
    Py_VISIT(self->grad);
    Py_VISIT(self->grad_fn);
    Py_VISIT(self->autograd);
    Py_VISIT(self->forward);
    Py_VISIT(self->payload);
    Py_VISIT(self->dict);
    return 0;
}
static int tensor_clear(FlbTensor *self) {
    Py_CLEAR(self->array);
    Py_CLEAR(self->storage);
    Py_CLEAR(self->grad);
    Py_CLEAR(self->grad_fn);
    Py_CLEAR(self->autograd);
    Py_CLEAR(self->forward);
    Py_CLEAR(self->payload);
    Py_CLEAR(self->dict);
    return 0;
}
static void tensor_dealloc(FlbTensor *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    /* A chain of grad_fn nodes can be as long as the program: the trashcan keeps its release off the C stack.
     */
    Py_TRASHCAN_BEGIN(self, tensor_dealloc) if (self->weakrefs) PyObject_ClearWeakRefs((PyObject *)self);
    tensor_clear(self);
    Py_XDECREF(self->dtype);
    Py_XDECREF(self->device);
    Py_XDECREF(self->shape);
    Py_XDECREF(self->strides);
    Py_XDECREF(self->offset);
    type->tp_free(self); /* NOTE: the type is released by subtype_dealloc, since this base is a static type */
    Py_TRASHCAN_END
}

static PyObject *tensor_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyErr_SetString(PyExc_TypeError, "TensorBase is not constructed directly");
    return NULL;
}

PyObject *flb_alias(FlbTensor *src, PyTypeObject *type) {
    FlbTensor *t = flb_alloc(type);
    if (!t) return NULL;
    t->array = Py_XNewRef(src->array);
    t->dtype = Py_NewRef(src->dtype);
    t->device = Py_NewRef(src->device);
    t->shape = Py_XNewRef(src->shape);
    t->strides = Py_XNewRef(src->strides);
    t->offset = Py_XNewRef(src->offset);
    t->payload = Py_XNewRef(src->payload);
    t->keys |= src->keys & (FLB_FUNCTIONALIZE | FLB_TRANSFORM);
    FlbStorage *s = flb_storage(src);
    if (!s) {
        Py_DECREF(t);
        return NULL;
    }
    t->storage = (FlbStorage *)Py_NewRef(s);
    return (PyObject *)t;
}

static Py_hash_t tensor_hash(PyObject *a) { return (Py_hash_t)a; } /* id(), as PyTorch's */
PyTypeObject FlbTensor_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._C.TensorBase",
    .tp_basicsize = sizeof(FlbTensor),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "The native part of a tensor; flambeau.Tensor is the class to use.",
    .tp_new = tensor_new,
    .tp_dealloc = (destructor)tensor_dealloc,
    .tp_traverse = (traverseproc)tensor_traverse,
    .tp_clear = (inquiry)tensor_clear,
    .tp_getset = flb_tensor_getset,
    .tp_members = flb_tensor_members,
    .tp_methods = flb_tensor_methods,
    .tp_as_number = &flb_tensor_number,
    .tp_richcompare = flb_tensor_richcompare,
    .tp_hash = tensor_hash,
    .tp_dictoffset = offsetof(FlbTensor, dict),
    .tp_weaklistoffset = offsetof(FlbTensor, weakrefs),
};
