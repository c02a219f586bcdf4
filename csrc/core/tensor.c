/* The tensor object: a view over a NumPy array plus the fields that dispatch and autograd need.
 *
 * Everything a getter can derive from the ndarray is derived when asked for (shape, strides, offset) and
 * remembered; creating a tensor around an array is one allocation. Python sees TensorBase; flambeau.Tensor
 * subclasses it and adds the methods. */
#include "core/calls.h"

PyObject *flb_size_class = NULL; /* flambeau.base.shapes.Size */
PyObject *flb_cpu_device = NULL; /* flambeau.base.device.Device("cpu") */
PyTypeObject *flb_tensor_class = NULL;
PyTypeObject *flb_parameter_class = NULL;
static PyObject *dtype_by_typenum[32], *dtype_bfloat16;
int flb_bfloat16_num = -1;
static PyObject *dtype_by_descr = NULL; /* dict: np.dtype -> DType, for the extension dtypes of ml_dtypes */

/* ---- storage ------------------------------------------------------------------------------------------- */

static int storage_traverse(FlbStorage *self, visitproc visit, void *arg) {
    Py_VISIT((PyObject *)self->memory);
    Py_VISIT(self->owner);
    Py_VISIT(self->device_memory);
    Py_VISIT(self->dict);
    return 0;
}
static int storage_clear(FlbStorage *self) {
    Py_CLEAR(self->memory);
    Py_CLEAR(self->owner);
    Py_CLEAR(self->device_memory);
    Py_CLEAR(self->dict);
    return 0;
}
static void storage_dealloc(FlbStorage *self) {
    PyObject_GC_UnTrack(self);
    if (self->weakrefs) PyObject_ClearWeakRefs((PyObject *)self);
    storage_clear(self);
    PyObject_GC_Del(self);
}
static PyObject *storage_get_nbytes(FlbStorage *self, void *c) {
    if (self->owner) return PyLong_FromSsize_t(PyArray_NBYTES((PyArrayObject *)self->owner));
    return PyLong_FromSsize_t(self->nbytes);
}
static PyObject *storage_nbytes(FlbStorage *self, PyObject *unused) { return storage_get_nbytes(self, NULL); }
static PyObject *storage_data_ptr(FlbStorage *self, PyObject *unused) {
    if (self->device_memory) return PyObject_GetAttrString(self->device_memory, "address");
    if (!self->owner) return PyLong_FromLong(0);
    return PyLong_FromVoidPtr(PyArray_DATA((PyArrayObject *)self->owner));
}
/* Bytes by index are Python's matter (core/storage.py); a static type needs the slots. */
static PyObject *storage_item(PyObject *self, PyObject *key) {
    return PyObject_CallMethod(self, "_item", "O", key);
}
static int storage_set_item(PyObject *self, PyObject *key, PyObject *value) {
    if (!value) return PyErr_SetString(PyExc_TypeError, "bytes of a storage can't be deleted"), -1;
    PyObject *done = PyObject_CallMethod(self, "_set_item", "OO", key, value);
    Py_XDECREF(done);
    return done ? 0 : -1;
}
static Py_ssize_t storage_length(FlbStorage *self) {
    PyObject *n = storage_get_nbytes(self, NULL);
    Py_ssize_t length = n ? PyLong_AsSsize_t(n) : -1;
    Py_XDECREF(n);
    return length;
}
static PyMappingMethods storage_mapping = {
    .mp_length = (lenfunc)storage_length, .mp_subscript = storage_item, .mp_ass_subscript = storage_set_item};
uint64_t flb_stamps;
static PyObject *storage_note_recorded(FlbStorage *self, PyObject *unused) {
    self->recorded++;
    Py_RETURN_NONE;
}
static PyObject *storage_note_written(FlbStorage *self, PyObject *unused) {
    (self->memory ? self->memory : self)->stamp = ++flb_stamps;
    Py_RETURN_NONE;
}
static PyObject *storage_move(FlbStorage *self, PyObject *owner) {
    if (!PyArray_Check(owner) || !self->owner ||
        PyArray_NBYTES((PyArrayObject *)owner) != PyArray_NBYTES((PyArrayObject *)self->owner))
        return PyErr_SetString(PyExc_TypeError, "_move(): an array of as many bytes is needed"), NULL;
    Py_SETREF(self->owner, Py_NewRef(owner));
    return storage_note_written(self, NULL);
}
/* How a program makes one is core/storage.py's matter; a static type needs the slot. */
static PyObject *storage_make(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *make = PyObject_GetAttrString((PyObject *)type, "_make");
    PyObject *made = make ? PyObject_Call(make, args, kwargs) : NULL;
    Py_XDECREF(make);
    return made;
}
static PyMethodDef storage_methods[] = {
    {"_move", (PyCFunction)storage_move, METH_O,
     "The bytes lie in this array from now on; the tensors over them are the caller's to move."},
    {"_note_written", (PyCFunction)storage_note_written, METH_NOARGS,
     "Bytes were written that no version counts: marks() tells."},
    {"_note_recorded", (PyCFunction)storage_note_recorded, METH_NOARGS,
     "Autograd has recorded a write: views ask for their root's history again."},
    {"nbytes", (PyCFunction)storage_nbytes, METH_NOARGS, "Size of the memory in bytes."},
    {"size", (PyCFunction)storage_nbytes, METH_NOARGS, "Size of the memory in bytes (a storage is untyped)."},
    {"data_ptr", (PyCFunction)storage_data_ptr, METH_NOARGS, "Address of the first byte; 0 without data."},
    {NULL}};
static PyMemberDef storage_members[] = {
    {"owner", T_OBJECT, offsetof(FlbStorage, owner), READONLY, "ndarray owning the memory, or None"},
    {"device_memory", T_OBJECT, offsetof(FlbStorage, device_memory), READONLY,
     "memory of another device, or None"},
    {"version", T_PYSSIZET, offsetof(FlbStorage, version), READONLY, "number of in-place writes so far"},
    {"recorded", T_PYSSIZET, offsetof(FlbStorage, recorded), READONLY,
     "number of writes that autograd recorded"},
    {NULL}};
static PyGetSetDef storage_getset[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict},
                                       {NULL}};
PyTypeObject FlbStorage_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau.storage.UntypedStorage",
    .tp_basicsize = sizeof(FlbStorage),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "UntypedStorage(contents=0, /, *, device=\"cpu\")\n--\n\n"
              "Memory shared by all views of a tensor; made of a number of bytes, or of their values.",
    .tp_new = storage_make,
    .tp_dealloc = (destructor)storage_dealloc,
    .tp_traverse = (traverseproc)storage_traverse,
    .tp_clear = (inquiry)storage_clear,
    .tp_as_mapping = &storage_mapping,
    .tp_methods = storage_methods,
    .tp_members = storage_members,
    .tp_getset = storage_getset,
    .tp_dictoffset = offsetof(FlbStorage, dict),
    .tp_weaklistoffset = offsetof(FlbStorage, weakrefs),
};

static FlbStorage *storage_new(PyObject *owner, Py_ssize_t nbytes) {
    FlbStorage *s = PyObject_GC_New(FlbStorage, &FlbStorage_Type);
    if (!s) return NULL;
    s->owner = Py_XNewRef(owner);
    s->nbytes = nbytes, s->version = s->recorded = 0, s->inference = s->written_dual = 0;
    s->memory = NULL, s->device_memory = s->dict = s->weakrefs = NULL, s->stamp = ++flb_stamps;
    PyObject_GC_Track(s);
    return s;
}

/* The ndarray at the end of the chain of bases: NumPy keeps it one step long except for foreign buffers. */
static PyObject *array_root(PyObject *array) {
    for (PyObject *base; (base = PyArray_BASE((PyArrayObject *)array)) && PyArray_Check(base);) array = base;
    return array;
}

/* A new storage of the memory that the array is in. The storage of a read-only view lets nobody write to what
 * the view's owner may write to. */
static FlbStorage *storage_of(PyObject *array) {
    PyObject *root = array_root(array);
    if (PyArray_ISWRITEABLE((PyArrayObject *)array) || !PyArray_ISWRITEABLE((PyArrayObject *)root))
        return storage_new(root, 0);
    if (!(root = PyArray_View((PyArrayObject *)root, NULL, NULL))) return NULL;
    PyArray_CLEARFLAGS((PyArrayObject *)root, NPY_ARRAY_WRITEABLE);
    FlbStorage *s = storage_new(root, 0);
    Py_DECREF(root);
    return s;
}

FlbStorage *flb_storage(FlbTensor *t) {
    if (!t->storage) {
        if (t->array) {
            t->storage = storage_of(t->array);
        } else {
            Py_ssize_t n = 1, item = 1;
            PyObject *size = PyObject_GetAttrString(t->dtype, "itemsize");
            if (!size) return NULL;
            item = PyLong_AsSsize_t(size);
            Py_DECREF(size);
            for (Py_ssize_t i = 0; t->shape && i < PyTuple_GET_SIZE(t->shape); i++) {
                /* NOTE: a size may be symbolic; asking it for a number would make it constant. */
                PyObject *size = PyTuple_GET_ITEM(t->shape, i);
                Py_ssize_t d = PyLong_Check(size) ? PyLong_AsSsize_t(size) : 0;
                if (d == -1 && PyErr_Occurred()) PyErr_Clear(), d = 0;
                n *= d;
            }
            t->storage = storage_new(NULL, n * item);
        }
        if (t->storage) t->storage->inference = (t->flags & FLB_INFERENCE) != 0;
    }
    return t->storage;
}

/* ---- construction -------------------------------------------------------------------------------------- */

static PyObject *dtype_of_array(PyArrayObject *a) {
    PyArray_Descr *d = PyArray_DESCR(a);
    if (d->type_num >= 0 && d->type_num < 32 && dtype_by_typenum[d->type_num] && PyArray_ISNOTSWAPPED(a))
        return dtype_by_typenum[d->type_num];
    if (d->type_num == flb_bfloat16_num) return dtype_bfloat16;
    if (!PyArray_ISNOTSWAPPED(a)) {
        PyErr_SetString(PyExc_ValueError,
                        "given numpy array has byte order different from the native byte order. Conversion "
                        "between byte orders is currently not supported.");
        return NULL;
    }
    PyObject *found = dtype_by_descr ? PyDict_GetItemWithError(dtype_by_descr, (PyObject *)d) : NULL;
    if (!found && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError,
                     "can't convert np.ndarray of type %R. The only supported types are: float64, float32, "
                     "float16, complex64, complex128, "
                     "int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool.",
                     d);
    return found;
}

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
static int whole_strides(PyArrayObject *a) {
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
    PyObject *dtype = dtype_of_array((PyArrayObject *)array);
    if (!dtype) return NULL;
    if (!PyArray_IS_C_CONTIGUOUS((PyArrayObject *)array) && whole_strides((PyArrayObject *)array) < 0)
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

/* ---- getters ------------------------------------------------------------------------------------------- */

static PyObject *size_from(const npy_intp *dims, int n, Py_ssize_t divide, int as_size) {
    PyObject *t = PyTuple_New(n);
    if (!t) return NULL;
    for (int i = 0; i < n; i++) {
        PyObject *v = PyLong_FromSsize_t(divide > 1 ? dims[i] / divide : dims[i]);
        if (!v) {
            Py_DECREF(t);
            return NULL;
        }
        PyTuple_SET_ITEM(t, i, v);
    }
    if (!as_size) return t;
    PyObject *args = PyTuple_Pack(1, t);
    Py_DECREF(t);
    if (!args) return NULL;
    PyObject *r = PyTuple_Type.tp_new((PyTypeObject *)flb_size_class, args, NULL);
    Py_DECREF(args);
    return r;
}
PyObject *flb_shape(FlbTensor *t) {
    if (!t->shape) {
        PyArrayObject *a = (PyArrayObject *)t->array;
        if (!a) return PyErr_SetString(PyExc_RuntimeError, "tensor has neither data nor a shape"), NULL;
        t->shape = size_from(PyArray_DIMS(a), PyArray_NDIM(a), 1, 1);
    }
    return t->shape;
}
PyObject *flb_strides(FlbTensor *t) {
    if (!t->strides) {
        PyArrayObject *a = (PyArrayObject *)t->array;
        if (!a) return PyErr_SetString(PyExc_RuntimeError, "tensor has neither data nor strides"), NULL;
        npy_intp own[NPY_MAXDIMS], *strides = PyArray_STRIDES(a), step = PyArray_ITEMSIZE(a);
        if (PyArray_SIZE(a) == 0) {
            /* NOTE: new empty arrays have strides of zero in NumPy. Here they are row-major, where a
             * dimension of size 0 counts as 1. */
            int nd = PyArray_NDIM(a), none = PyArray_CHKFLAGS(a, NPY_ARRAY_OWNDATA);
            for (int d = 0; d < nd; d++) none &= strides[d] == 0;
            for (int d = nd; none && d-- > 0; step *= PyArray_DIM(a, d) > 1 ? PyArray_DIM(a, d) : 1)
                own[d] = step;
            if (none) strides = own;
        }
        t->strides = size_from(strides, PyArray_NDIM(a), PyArray_ITEMSIZE(a), 0);
    }
    return t->strides;
}
static PyObject *get_shape(FlbTensor *t, void *c) { return Py_XNewRef(flb_shape(t)); }
static PyObject *get_strides(FlbTensor *t, void *c) { return Py_XNewRef(flb_strides(t)); }
static PyObject *get_ndim(FlbTensor *t, void *c) {
    if (t->array) return PyLong_FromLong(PyArray_NDIM((PyArrayObject *)t->array));
    PyObject *s = flb_shape(t);
    return s ? PyLong_FromSsize_t(PyTuple_GET_SIZE(s)) : NULL;
}
static PyObject *get_offset(FlbTensor *t, void *c) {
    flb_recorder_spoil();
    if (!t->array) return t->offset ? Py_NewRef(t->offset) : PyLong_FromLong(0);
    FlbStorage *s = flb_storage(t);
    if (!s || !s->owner) return PyLong_FromLong(0);
    Py_ssize_t item = PyArray_ITEMSIZE((PyArrayObject *)t->array);
    Py_ssize_t bytes = PyArray_BYTES((PyArrayObject *)t->array) - PyArray_BYTES((PyArrayObject *)s->owner);
    return PyLong_FromSsize_t(item ? bytes / item : 0);
}
#define OBJECT_GETTER(NAME, FIELD)                                   \
    static PyObject *get_##NAME(FlbTensor *t, void *c) {             \
        return Py_NewRef(t->FIELD ? (PyObject *)t->FIELD : Py_None); \
    }
/* What a body of a composite may read or write past the operators spoils the recording of it: a program would
 * not do it again. */
#define SPOILING_GETTER(NAME, FIELD)                                 \
    static PyObject *get_##NAME(FlbTensor *t, void *c) {             \
        flb_recorder_spoil();                                        \
        return Py_NewRef(t->FIELD ? (PyObject *)t->FIELD : Py_None); \
    }
#define OBJECT_SETTER(NAME, FIELD)                                    \
    static int set_##NAME(FlbTensor *t, PyObject *v, void *c) {       \
        flb_recorder_spoil();                                         \
        PyObject *old = (PyObject *)t->FIELD;                         \
        t->FIELD = (v == NULL || v == Py_None) ? NULL : Py_NewRef(v); \
        Py_XDECREF(old);                                              \
        return 0;                                                     \
    }
SPOILING_GETTER(array, array)
OBJECT_GETTER(dtype, dtype)
OBJECT_GETTER(device, device)
SPOILING_GETTER(grad, grad)
OBJECT_SETTER(grad, grad)
extern PyTypeObject FlbNode_Type;
int flb_node_named(PyObject *node);
static PyObject *get_grad_fn(FlbTensor *t, void *c) {
    flb_recorder_spoil();
    if (flb_refresh(t) < 0) return NULL;
    if (t->grad_fn && flb_node_named(t->grad_fn) < 0) return NULL;
    return Py_NewRef(t->grad_fn ? t->grad_fn : Py_None);
}
static int set_grad_fn(FlbTensor *t, PyObject *v, void *c) {
    flb_recorder_spoil();
    if (!v)
        return PyErr_SetString(PyExc_RuntimeError,
                               "Deletion of _grad_fn not allowed. Detach tensor instead!"),
               -1;
    if (v != Py_None && !PyObject_TypeCheck(v, &FlbNode_Type))
        return PyErr_Format(PyExc_TypeError, "grad_fn is a Node or None, not %s", Py_TYPE(v)->tp_name), -1;
    Py_XSETREF(t->grad_fn, v == Py_None ? NULL : Py_XNewRef(v));
    return 0;
}
SPOILING_GETTER(autograd, autograd)
OBJECT_SETTER(autograd, autograd)
SPOILING_GETTER(payload, payload)
OBJECT_SETTER(payload, payload)

static int set_array(FlbTensor *t, PyObject *v, void *c) {
    flb_recorder_spoil();
    if (v == NULL || v == Py_None) {
        PyErr_SetString(PyExc_TypeError, "_array can't be removed");
        return -1;
    }
    if (!PyArray_Check(v)) {
        PyErr_SetString(PyExc_TypeError, "_array must be an ndarray");
        return -1;
    }
    PyObject *dtype = dtype_of_array((PyArrayObject *)v);
    if (!dtype || whole_strides((PyArrayObject *)v) < 0) return -1;
    Py_SETREF(t->dtype, Py_NewRef(dtype));
    PyObject *old = t->array;
    t->array = Py_NewRef(v);
    Py_XDECREF(old);
    Py_CLEAR(t->shape);
    Py_CLEAR(t->strides);
    Py_CLEAR(t->offset);
    Py_CLEAR(t->storage);
    return 0;
}
static PyObject *get_storage(FlbTensor *t, void *c) {
    flb_recorder_spoil();
    FlbStorage *s = flb_storage(t);
    return Py_XNewRef((PyObject *)(s && s->memory ? s->memory : s));
}
static PyObject *get_counter(FlbTensor *t, void *c) {
    flb_recorder_spoil();
    return Py_XNewRef((PyObject *)flb_storage(t));
}
static int set_storage(FlbTensor *t, PyObject *v, void *c) {
    flb_recorder_spoil();
    if (!v || !PyObject_TypeCheck(v, &FlbStorage_Type))
        return PyErr_SetString(PyExc_TypeError, "a storage is needed"), -1;
    Py_XSETREF(t->storage, (FlbStorage *)Py_NewRef(v));
    return 0;
}
static PyObject *get_forward(FlbTensor *t, void *c) { return Py_NewRef(t->forward ? t->forward : Py_None); }
static int set_forward(FlbTensor *t, PyObject *v, void *c) {
    flb_recorder_spoil();
    Py_XSETREF(t->forward, v && v != Py_None ? Py_NewRef(v) : NULL);
    return 0;
}
static PyObject *get_keys(FlbTensor *t, void *c) { return PyLong_FromUnsignedLong(t->keys); }
static int set_keys(FlbTensor *t, PyObject *v, void *c) {
    flb_recorder_spoil();
    unsigned long k = PyLong_AsUnsignedLong(v);
    if (k == (unsigned long)-1 && PyErr_Occurred()) return -1;
    t->keys = (uint32_t)k;
    return 0;
}
int flb_requires_grad_slow(FlbTensor *t) {
    return flb_refresh(t) < 0 ? -1 : (t->flags & FLB_REQUIRES_GRAD) != 0;
}
static PyObject *get_requires_grad(FlbTensor *t, void *c) {
    int r = flb_requires_grad(t);
    return r < 0 ? NULL : PyBool_FromLong(r);
}
int flb_keeps_grad(FlbTensor *t);
/* What a program reads: of a tensor in the middle of a graph None is most likely not what it wants. */
static PyObject *get_public_grad(FlbTensor *t, void *c) {
    PyObject *grad = get_grad(t, c);
    if (grad != Py_None || !t->grad_fn || flb_keeps_grad(t)) return grad;
    if (PyErr_WarnEx(
            PyExc_UserWarning,
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
            "attribute won't be populated during autograd.backward(). If you indeed want the .grad field to "
            "be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access "
            "the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead.",
            1) < 0)
        Py_CLEAR(grad);
    return grad;
}
static PyObject *get_is_leaf(FlbTensor *t, void *c) {
    flb_recorder_spoil();
    return flb_refresh(t) < 0 ? NULL : PyBool_FromLong(t->grad_fn == NULL);
}
static PyObject *get_flags(FlbTensor *t, void *c) { return PyLong_FromUnsignedLong(t->flags); }
static int set_flags(FlbTensor *t, PyObject *v, void *c) {
    flb_recorder_spoil();
    unsigned long k = PyLong_AsUnsignedLong(v);
    if (k == (unsigned long)-1 && PyErr_Occurred()) return -1;
    t->flags = (uint32_t)k;
    return 0;
}
static PyObject *get_version(FlbTensor *t, void *c) {
    flb_recorder_spoil();
    return PyLong_FromSsize_t(t->storage ? t->storage->version : 0);
}
/* What programs ask: nobody counts for them what inference mode makes. */
static PyObject *get_public_version(FlbTensor *t, void *c) {
    if (flb_inference_used && flb_is_inference(t))
        return PyErr_SetString(PyExc_RuntimeError, "Inference tensors do not track version counter."), NULL;
    return get_version(t, c);
}
static PyObject *get_inference(FlbTensor *t, void *c) { return PyBool_FromLong(flb_is_inference(t)); }
static PyObject *get_has_data(FlbTensor *t, void *c) { return PyBool_FromLong(t->array != NULL); }
static PyObject *get_is_python(FlbTensor *t, void *c) { return PyBool_FromLong((t->keys & FLB_PYTHON) != 0); }

/* Public properties: __torch_function__ sees them as Tensor.<name>.__get__ when a mode is active or the class
 * overrides it. */
typedef struct {
    const char *name;
    getter get;
    setter set;
    PyObject *descriptor; /* looked up once */
} Property;
static PyObject *requires_grad_setter = NULL; /* Python: checks dtype and leafness */
static int set_requires_grad(FlbTensor *t, PyObject *v, void *c) {
    PyObject *r = PyObject_CallFunctionObjArgs(requires_grad_setter, (PyObject *)t, v ? v : Py_None, NULL);
    Py_XDECREF(r);
    return r ? 0 : -1;
}
static PyObject *grad_checker = NULL; /* Python: checks shape and dtype of an assigned gradient */
static int assign_grad(FlbTensor *t, PyObject *v, void *c) {
    if (v && v != Py_None && grad_checker) {
        PyObject *r = PyObject_CallFunctionObjArgs(grad_checker, (PyObject *)t, v, NULL);
        if (!r) return -1;
        Py_DECREF(r);
    }
    return set_grad(t, v, NULL);
}
static Property properties[] = {{"shape", (getter)get_shape},
                                {"dtype", (getter)get_dtype},
                                {"device", (getter)get_device},
                                {"ndim", (getter)get_ndim},
                                {"grad", (getter)get_public_grad, (setter)assign_grad},
                                {"requires_grad", (getter)get_requires_grad, (setter)set_requires_grad},
                                {"grad_fn", (getter)get_grad_fn},
                                {"is_leaf", (getter)get_is_leaf}};
static PyObject *property_accessor(Property *p, const char *which) {
    if (!p->descriptor) {
        PyObject *name = PyUnicode_FromString(p->name);
        p->descriptor = name ? Py_XNewRef(_PyType_Lookup(&FlbTensor_Type, name)) : NULL;
        Py_XDECREF(name);
        if (!p->descriptor && !PyErr_Occurred())
            PyErr_NoMemory(); /* the only way in which the lookup fails, and it doesn't say so */
    }
    return p->descriptor ? PyObject_GetAttrString(p->descriptor, which) : NULL;
}
static PyObject *property_get(PyObject *self, void *closure) {
    Property *p = closure;
    FlbTls *s = flb_tls();
    if ((s->function_modes && s->function_disabled < 2 && !flb_autocast_alone()) ||
        ((((FlbTensor *)self)->flags & FLB_FUNCTION) && !s->function_disabled)) {
        PyObject *func = property_accessor(p, "__get__");
        if (!func) return NULL;
        PyObject *r = flb_override(func, 1, self, NULL);
        Py_DECREF(func);
        return r;
    }
    return p->get(self, NULL);
}
static int property_set(PyObject *self, PyObject *value, void *closure) {
    Property *p = closure;
    FlbTls *s = flb_tls();
    if (!p->set) {
        PyErr_Format(PyExc_AttributeError, "attribute '%s' of 'torch.Tensor' objects is not writable",
                     p->name);
        return -1;
    }
    if ((s->function_modes && s->function_disabled < 2) ||
        ((((FlbTensor *)self)->flags & FLB_FUNCTION) && !s->function_disabled)) {
        PyObject *func = property_accessor(p, "__set__");
        if (!func) return -1;
        PyObject *r = flb_override(func, 2, self, value ? value : Py_None);
        Py_DECREF(func);
        Py_XDECREF(r);
        return r ? 0 : -1;
    }
    return p->set(self, value, NULL);
}

static PyGetSetDef tensor_getset[] = {
    {"shape", property_get, property_set, "Size of each dimension.", &properties[0]},
    {"dtype", property_get, property_set, "Element type.", &properties[1]},
    {"device", property_get, property_set, "Device.", &properties[2]},
    {"ndim", property_get, property_set, "Number of dimensions.", &properties[3]},
    {"grad", property_get, property_set, "Accumulated gradient, or None.", &properties[4]},
    {"requires_grad", property_get, property_set, "Whether a gradient is asked for.", &properties[5]},
    {"grad_fn", property_get, property_set, "Autograd node that made this tensor, or None.", &properties[6]},
    {"is_leaf", property_get, property_set, "Whether no operation recorded by autograd made it.",
     &properties[7]},
    {"_array", (getter)get_array, (setter)set_array,
     "The ndarray this tensor is a view over; None without data."},
    {"_has_data", (getter)get_has_data, NULL,
     "Whether there is an array; unlike a look at `_array` this doesn't make a recording unsound."},
    {"_dtype", (getter)get_dtype, NULL, "Element type."},
    {"_device", (getter)get_device, NULL, "Device."},
    {"_shape", (getter)get_shape, NULL, "Size."},
    {"_strides", (getter)get_strides, NULL, "Strides in elements, a tuple."},
    {"_offset", (getter)get_offset, NULL, "Offset into the storage, in elements."},
    {"_ndim", (getter)get_ndim, NULL, "Number of dimensions."},
    {"_storage", (getter)get_storage, (setter)set_storage, "Storage shared by the views of this memory."},
    {"_counter", (getter)get_counter, NULL,
     "What counts the writes to this tensor: its storage, or what `.data` put in its place."},
    {"_grad", (getter)get_grad, (setter)set_grad, "Accumulated gradient or None."},
    {"_grad_fn", (getter)get_grad_fn, (setter)set_grad_fn, "Autograd node that made this tensor, or None."},
    {"_autograd", (getter)get_autograd, (setter)set_autograd,
     "Record of the autograd package: hooks, accumulator, view relation."},
    {"_forward", (getter)get_forward, (setter)set_forward, "What holds its tangent, or None."},
    {"_payload", (getter)get_payload, (setter)set_payload,
     "What a functionalization or transform wrapper carries."},
    {"_keys", (getter)get_keys, (setter)set_keys, "Dispatch keys of this very tensor, a bit set."},
    {"_flags", (getter)get_flags, (setter)set_flags, "Flag bits."},
    {"_requires_grad", (getter)get_requires_grad, NULL, "Whether a gradient is asked for."},
    {"_is_leaf", (getter)get_is_leaf, NULL, "Whether no operation recorded by autograd made it."},
    {"_inference", (getter)get_inference, NULL, "Whether its memory was made in inference mode."},
    {"_version", (getter)get_public_version, NULL,
     "How often its memory was written in place; RuntimeError for an inference tensor."},
    {"_writes", (getter)get_version, NULL, "How often its memory was written in place, of any tensor."},
    {"_is_python_dispatch", (getter)get_is_python, NULL, "Whether its class defines __torch_dispatch__."},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict},
    {NULL}};

static PyObject *bump_version(FlbTensor *t, PyObject *unused) {
    flb_recorder_spoil();
    FlbStorage *s = flb_storage(t);
    if (!s) return NULL;
    flb_count_write(s);
    Py_RETURN_NONE;
}
static PyObject *check_written(FlbTensor *t, PyObject *unused) {
    if (flb_tls()->grad_enabled && t->autograd && flb_check_view_written(t) < 0) return NULL;
    Py_RETURN_NONE;
}
static PyObject *check_writable(FlbTensor *t, PyObject *unused) {
    if (t->array && !PyArray_ISWRITEABLE((PyArrayObject *)t->array)) {
        PyErr_SetString(PyExc_RuntimeError,
                        "the tensor's memory is read-only (it comes from a read-only NumPy array)");
        return NULL;
    }
    Py_RETURN_NONE;
}
static PyMemberDef tensor_members[] = {
    {"_output_nr", T_INT, offsetof(FlbTensor, output_nr), READONLY, "which output of grad_fn this is"},
    {NULL}};
static PyMethodDef tensor_methods[] = {
    {"_bump_version", (PyCFunction)bump_version, METH_NOARGS, "Count an in-place write."},
    {"_check_written", (PyCFunction)check_written, METH_NOARGS,
     "RuntimeError for a view that may not be written in grad mode."},
    {"_check_writable", (PyCFunction)check_writable, METH_NOARGS,
     "RuntimeError for memory that is read-only."},
    {NULL}};

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
    .tp_getset = tensor_getset,
    .tp_members = tensor_members,
    .tp_methods = tensor_methods,
    .tp_as_number = &flb_tensor_number,
    .tp_richcompare = flb_tensor_richcompare,
    .tp_hash = tensor_hash,
    .tp_dictoffset = offsetof(FlbTensor, dict),
    .tp_weaklistoffset = offsetof(FlbTensor, weakrefs),
};

/* ---- module functions about tensors -------------------------------------------------------------------- */

static int is_tensor_class(PyObject *o) {
    return PyType_Check(o) && PyType_IsSubtype((PyTypeObject *)o, &FlbTensor_Type);
}
static PyObject *py_from_array(PyObject *m, PyObject *const *args, Py_ssize_t n) {
    if (n < 1 || n > 2 || (n == 2 && !is_tensor_class(args[1])))
        return PyErr_SetString(PyExc_TypeError, "from_array(array, cls=Tensor)"), NULL;
    return flb_from_array_as(n == 2 ? (PyTypeObject *)args[1] : flb_tensor_class, args[0]);
}
/* ndarray_of(tensor, general): the array of a plain tensor without history, else general(tensor). */
static PyObject *py_ndarray_of(PyObject *m, PyObject *const *args, Py_ssize_t n) {
    if (n != 2) return PyErr_SetString(PyExc_TypeError, "ndarray_of(tensor, general)"), NULL;
    if (Py_TYPE(args[0]) == flb_tensor_class) {
        FlbTensor *t = (FlbTensor *)args[0];
        if (t->array && !t->keys && !(t->flags & FLB_REQUIRES_GRAD) && !flb_tls()->function_modes)
            return Py_NewRef(t->array);
    }
    return PyObject_CallOneArg(args[1], args[0]);
}
/* view_of(source, array): a tensor over `array` sharing the storage (identity, version counter) of `source`.
 */
static PyObject *py_view_of(PyObject *m, PyObject *const *args, Py_ssize_t n) {
    if (n != 2 || !PyObject_TypeCheck(args[0], &FlbTensor_Type))
        return PyErr_SetString(PyExc_TypeError, "view_of(tensor, array)"), NULL;
    FlbStorage *s = flb_storage((FlbTensor *)args[0]);
    if (!s) return NULL;
    FlbTensor *t = (FlbTensor *)flb_from_array(args[1]);
    if (!t) return NULL;
    t->storage = (FlbStorage *)Py_NewRef(s);
    return (PyObject *)t;
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
/* element(tensor): the only element of a plain tensor as a Python number; None where a mode or the general
 * way must be asked. */
static PyObject *py_element(PyObject *m, PyObject *o) {
    FlbTls *s = flb_tls();
    FlbTensor *t = (FlbTensor *)o;
    if (s->function_modes | s->dispatch_modes | s->transforms | s->included ||
        (Py_TYPE(o) != flb_tensor_class && Py_TYPE(o) != flb_parameter_class) || !t->array || t->keys)
        Py_RETURN_NONE;
    PyArrayObject *a = (PyArrayObject *)t->array;
    int num = PyArray_TYPE(a);
    if (PyArray_SIZE(a) != 1 || !PyArray_ISBEHAVED_RO(a)) Py_RETURN_NONE;
    if (num == flb_bfloat16_num) return PyFloat_FromDouble(flb_bfloat16_value(*(uint16_t *)PyArray_BYTES(a)));
    if (num > NPY_CDOUBLE && num != NPY_HALF) Py_RETURN_NONE;
    return PyArray_GETITEM(a, PyArray_BYTES(a));
}
int flb_typenum_of(PyObject *dtype) {
    for (int i = 0; i < 32; i++)
        if (dtype_by_typenum[i] == dtype) return i;
    return dtype == dtype_bfloat16 ? flb_bfloat16_num : -1;
}
/* become(tensor, view): the tensor has the place in memory that the view of it has. */
static PyObject *py_become(PyObject *m, PyObject *const *args, Py_ssize_t n) {
    if (n != 2 || !PyObject_TypeCheck(args[0], &FlbTensor_Type) ||
        !PyObject_TypeCheck(args[1], &FlbTensor_Type))
        return PyErr_SetString(PyExc_TypeError, "become(tensor, view): two tensors are needed"), NULL;
    flb_recorder_spoil();
    FlbTensor *t = (FlbTensor *)args[0], *v = (FlbTensor *)args[1];
    FlbStorage *s = flb_storage(t);
    if (!s) return NULL;
    Py_INCREF(s);
    Py_XSETREF(t->array, Py_XNewRef(v->array));
    Py_XSETREF(t->shape, Py_XNewRef(v->shape));
    Py_XSETREF(t->strides, Py_XNewRef(v->strides));
    Py_XSETREF(t->offset, Py_XNewRef(v->offset));
    Py_XSETREF(t->payload, Py_XNewRef(v->payload));
    Py_XSETREF(t->storage, s);
    flb_count_write(s);
    Py_RETURN_NONE;
}
/* relocate(tensor, array): the tensor's elements lie in this array, which has its dtype and shape. All else
 * of the tensor stays. */
static PyObject *py_relocate(PyObject *m, PyObject *const *args, Py_ssize_t n) {
    if (n != 2 || !PyObject_TypeCheck(args[0], &FlbTensor_Type) || !PyArray_Check(args[1]) ||
        !((FlbTensor *)args[0])->array)
        return PyErr_SetString(PyExc_TypeError,
                               "relocate(tensor, array): a tensor with data and an array are needed"),
               NULL;
    FlbTensor *t = (FlbTensor *)args[0];
    PyArrayObject *old = (PyArrayObject *)t->array, *made = (PyArrayObject *)args[1];
    if (!PyArray_SAMESHAPE(old, made) || !PyArray_EquivTypes(PyArray_DESCR(old), PyArray_DESCR(made)))
        return PyErr_SetString(PyExc_TypeError, "relocate(): the array has another dtype or shape"), NULL;
    flb_recorder_spoil();
    Py_SETREF(t->array, Py_NewRef(args[1]));
    Py_RETURN_NONE;
}
/* From here on writes to the tensor are counted for it alone, and not for what else lies in its memory. */
static int count_alone(FlbTensor *t) {
    FlbStorage *s = flb_storage(t);
    if (!s) return -1;
    if (s->memory) s = s->memory;
    FlbStorage *own = storage_new(s->owner, s->nbytes);
    if (!own) return -1;
    own->memory = (FlbStorage *)Py_NewRef((PyObject *)s);
    own->device_memory = Py_XNewRef(s->device_memory);
    Py_XSETREF(t->storage, own);
    return 0;
}
/* data(tensor, cls): as alias, but writes to what this gives are not counted as writes to the tensor. */
static PyObject *py_data(PyObject *m, PyObject *const *args, Py_ssize_t n) {
    if (n != 2 || !PyObject_TypeCheck(args[0], &FlbTensor_Type) || !is_tensor_class(args[1]))
        return PyErr_SetString(PyExc_TypeError, "data(tensor, cls): a tensor and a Tensor class are needed"),
               NULL;
    PyObject *out = flb_alias((FlbTensor *)args[0], (PyTypeObject *)args[1]);
    if (out && count_alone((FlbTensor *)out) < 0) Py_CLEAR(out);
    return out;
}
/* counted_alone(tensor): the tensor itself; writes to it are not counted for what else lies in its memory. */
static PyObject *py_counted_alone(PyObject *m, PyObject *t) {
    if (!PyObject_TypeCheck(t, &FlbTensor_Type))
        return PyErr_SetString(PyExc_TypeError, "counted_alone(tensor): a tensor is needed"), NULL;
    flb_recorder_spoil();
    return count_alone((FlbTensor *)t) < 0 ? NULL : Py_NewRef(t);
}
/* marks(tensors, indices): bytes that stay the same as long as these of the tensors lie where they do and
 * nothing is written there. */
static PyObject *py_marks(PyObject *m, PyObject *const *args, Py_ssize_t n) {
    if (n != 2 || !PyTuple_Check(args[0]) || !PyTuple_Check(args[1]))
        return PyErr_SetString(PyExc_TypeError, "marks(tuple of tensors, tuple of indices)"), NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(args[1]);
    PyObject *out = PyBytes_FromStringAndSize(NULL, count * 2 * (Py_ssize_t)sizeof(uint64_t));
    if (!out) return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_ssize_t k = PyLong_AsSsize_t(PyTuple_GET_ITEM(args[1], i));
        if (k == -1 && PyErr_Occurred()) goto fail;
        PyObject *o = k >= 0 && k < PyTuple_GET_SIZE(args[0]) ? PyTuple_GET_ITEM(args[0], k) : NULL;
        if (!o || !PyObject_TypeCheck(o, &FlbTensor_Type)) {
            PyErr_SetString(PyExc_TypeError, "marks(): an index is of no tensor");
            goto fail;
        }
        FlbStorage *s = flb_storage((FlbTensor *)o);
        if (!s) goto fail;
        PyObject *array = ((FlbTensor *)o)->array;
        uint64_t mark[2] = {(s->memory ? s->memory : s)->stamp,
                            array ? (uint64_t)(uintptr_t)PyArray_DATA((PyArrayObject *)array) : 0};
        memcpy(PyBytes_AS_STRING(out) + i * sizeof mark, mark, sizeof mark);
    }
    return out;
fail:
    Py_DECREF(out);
    return NULL;
}
/* alias(tensor, cls): a new tensor object on the same data and storage, without autograd history. */
static PyObject *py_alias(PyObject *m, PyObject *const *args, Py_ssize_t n) {
    if (n != 2 || !PyObject_TypeCheck(args[0], &FlbTensor_Type) || !is_tensor_class(args[1]))
        return PyErr_SetString(PyExc_TypeError, "alias(tensor, cls): a tensor and a Tensor class are needed"),
               NULL;
    return flb_alias((FlbTensor *)args[0], (PyTypeObject *)args[1]);
}
/* without_data(cls, shape, strides, dtype, device, offset, storage or None): a tensor that has no array. */
static PyObject *py_without_data(PyObject *m, PyObject *const *args, Py_ssize_t n) {
    if (n != 7 || !is_tensor_class(args[0]) || !PyTuple_Check(args[1]) || !PyTuple_Check(args[2]) ||
        PyTuple_GET_SIZE(args[1]) != PyTuple_GET_SIZE(args[2]) ||
        (args[6] != Py_None && !PyObject_TypeCheck(args[6], &FlbStorage_Type)))
        return PyErr_SetString(PyExc_TypeError,
                               "without_data(cls, shape, strides, dtype, device, offset, storage)"),
               NULL;
    FlbTensor *t = flb_alloc((PyTypeObject *)args[0]);
    if (!t) return NULL;
    if (Py_TYPE(args[1]) == (PyTypeObject *)flb_size_class) {
        t->shape = Py_NewRef(args[1]);
    } else {
        PyObject *a = PyTuple_Pack(1, args[1]);
        t->shape = a ? PyTuple_Type.tp_new((PyTypeObject *)flb_size_class, a, NULL) : NULL;
        Py_XDECREF(a);
    }
    t->strides = Py_NewRef(args[2]);
    t->dtype = Py_NewRef(args[3]);
    t->device = Py_NewRef(args[4]);
    t->offset = Py_NewRef(args[5]);
    if (args[6] != Py_None) t->storage = (FlbStorage *)Py_NewRef(args[6]);
    if (!t->shape) {
        Py_DECREF(t);
        return NULL;
    }
    return (PyObject *)t;
}
/* device_storage(memory, nbytes): the storage of memory of another device. */
static PyObject *py_device_storage(PyObject *m, PyObject *const *args, Py_ssize_t n) {
    Py_ssize_t nbytes = n == 2 ? PyLong_AsSsize_t(args[1]) : -1;
    if (nbytes < 0)
        return PyErr_Occurred() ? NULL
                                : (PyErr_SetString(PyExc_TypeError, "device_storage(memory, nbytes)"), NULL);
    FlbStorage *s = storage_new(NULL, nbytes);
    if (!s) return NULL;
    s->device_memory = Py_NewRef(args[0]);
    s->inference = flb_tls()->inference;
    if (s->inference) flb_inference_used = 1;
    return (PyObject *)s;
}
/* take_place(tensor, other): the tensor's elements are those of the other, in its memory and on its device.
 */
static PyObject *py_take_place(PyObject *m, PyObject *const *args, Py_ssize_t n) {
    if (n != 2 || !PyObject_TypeCheck(args[0], &FlbTensor_Type) ||
        !PyObject_TypeCheck(args[1], &FlbTensor_Type))
        return PyErr_SetString(PyExc_TypeError, "take_place(tensor, other): two tensors are needed"), NULL;
    flb_recorder_spoil();
    FlbTensor *t = (FlbTensor *)args[0], *v = (FlbTensor *)args[1];
    FlbStorage *s = flb_storage(v);
    if (!s) return NULL;
    if (s->memory) s = s->memory;
    Py_INCREF(s);
    Py_XSETREF(t->array, Py_XNewRef(v->array));
    Py_SETREF(t->dtype, Py_NewRef(v->dtype));
    Py_SETREF(t->device, Py_NewRef(v->device));
    Py_XSETREF(t->shape, Py_XNewRef(v->shape));
    Py_XSETREF(t->strides, Py_XNewRef(v->strides));
    Py_XSETREF(t->offset, Py_XNewRef(v->offset));
    Py_XSETREF(t->storage, s);
    Py_RETURN_NONE;
}
static PyObject *py_configure(PyObject *m, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"size",     "cpu",           "tensor", "parameter", "dtypes",
                            "bfloat16", "requires_grad", "grad",   NULL};
    PyObject *size = NULL, *cpu = NULL, *tensor = NULL, *parameter = NULL, *dtypes = NULL, *bfloat16 = NULL,
             *requires_grad = NULL, *grad = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOOOOOOO", names, &size, &cpu, &tensor, &parameter,
                                     &dtypes, &bfloat16, &requires_grad, &grad))
        return NULL;
    if ((size && !(PyType_Check(size) && PyType_IsSubtype((PyTypeObject *)size, &PyTuple_Type))) ||
        (tensor && !is_tensor_class(tensor)) || (parameter && !is_tensor_class(parameter)) ||
        (dtypes && !PyDict_Check(dtypes)))
        return PyErr_SetString(PyExc_TypeError, "configure(): a class of another kind is needed"), NULL;
    PyObject *k, *v;
    Py_ssize_t pos = 0;
    while (dtypes && PyDict_Next(dtypes, &pos, &k, &v))
        if (!PyArray_DescrCheck(k))
            return PyErr_SetString(PyExc_TypeError, "configure(): dtypes are known by np.dtype"), NULL;
    if (requires_grad) Py_XSETREF(requires_grad_setter, Py_NewRef(requires_grad));
    if (grad) Py_XSETREF(grad_checker, Py_NewRef(grad));
    if (size) Py_XSETREF(flb_size_class, Py_NewRef(size));
    if (cpu) Py_XSETREF(flb_cpu_device, Py_NewRef(cpu));
    if (tensor) Py_XSETREF(flb_tensor_class, (PyTypeObject *)Py_NewRef(tensor));
    if (parameter) Py_XSETREF(flb_parameter_class, (PyTypeObject *)Py_NewRef(parameter));
    if (dtypes) {
        Py_XSETREF(dtype_by_descr, Py_NewRef(dtypes));
        pos = 0;
        while (PyDict_Next(dtypes, &pos, &k, &v)) {
            int num = ((PyArray_Descr *)k)->type_num;
            if (num >= 0 && num < 32) Py_XSETREF(dtype_by_typenum[num], Py_NewRef(v));
            if (v == bfloat16) {
                Py_XSETREF(dtype_bfloat16, Py_NewRef(v));
                flb_bfloat16_num = num;
            }
        }
    }
    Py_RETURN_NONE;
}
static PyObject *py_swap(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    if (n != 2 || !PyObject_TypeCheck(args[0], &FlbTensor_Type) ||
        !PyObject_TypeCheck(args[1], &FlbTensor_Type)) {
        PyErr_SetString(PyExc_TypeError, "swap expects two tensors");
        return NULL;
    }
    enum { FIRST = offsetof(FlbTensor, array), SIZE = offsetof(FlbTensor, dict) - FIRST };
    char keep[SIZE], *a = (char *)args[0] + FIRST, *b = (char *)args[1] + FIRST;
    memcpy(keep, a, SIZE);
    memcpy(a, b, SIZE);
    memcpy(b, keep, SIZE);
    Py_RETURN_NONE;
}
PyMethodDef flb_tensor_functions[] = {
    {"swap", (PyCFunction)(void (*)(void))py_swap, METH_FASTCALL,
     "swap(a, b): all that they are but class and attributes: data, storage, gradient, history."},
    {"from_array", (PyCFunction)(void (*)(void))py_from_array, METH_FASTCALL,
     "from_array(array, cls=Tensor): tensor over an ndarray, sharing memory."},
    {"ndarray_of", (PyCFunction)(void (*)(void))py_ndarray_of, METH_FASTCALL,
     "ndarray_of(tensor, general): the array of a plain tensor without history, else general(tensor)."},
    {"view_of", (PyCFunction)(void (*)(void))py_view_of, METH_FASTCALL,
     "view_of(tensor, array): tensor over array with the storage of tensor."},
    {"relocate", (PyCFunction)(void (*)(void))py_relocate, METH_FASTCALL,
     "relocate(tensor, array): the tensor's elements lie in this array now."},
    {"become", (PyCFunction)(void (*)(void))py_become, METH_FASTCALL,
     "become(tensor, view): the tensor has the view's place in its memory."},
    {"element", py_element, METH_O,
     "element(tensor): the only element of a plain tensor as a Python number, None where the general way "
     "must be asked."},
    {"counted_alone", py_counted_alone, METH_O,
     "The tensor, whose writes are from here on not counted for what else lies in its memory."},
    {"data", (PyCFunction)(void (*)(void))py_data, METH_FASTCALL,
     "data(tensor, cls): same data, writes counted apart, no autograd history."},
    {"marks", (PyCFunction)(void (*)(void))py_marks, METH_FASTCALL,
     "marks(tensors, indices): bytes that change when one of these tensors is written, by whatever name that "
     "is counted, or lies elsewhere."},
    {"alias", (PyCFunction)(void (*)(void))py_alias, METH_FASTCALL,
     "alias(tensor, cls): same data and storage, no autograd history."},
    {"without_data", (PyCFunction)(void (*)(void))py_without_data, METH_FASTCALL,
     "without_data(cls, shape, strides, dtype, device, offset, storage): tensor without an array."},
    {"device_storage", (PyCFunction)(void (*)(void))py_device_storage, METH_FASTCALL,
     "device_storage(memory, nbytes): the storage of memory of another device."},
    {"take_place", (PyCFunction)(void (*)(void))py_take_place, METH_FASTCALL,
     "take_place(tensor, other): the tensor's elements are the other's, in its memory and on its device."},
    {"configure", (PyCFunction)(void (*)(void))py_configure, METH_VARARGS | METH_KEYWORDS,
     "Tell the native core the Python classes it creates."},
    {"set_operators", flb_set_operators, METH_VARARGS,
     "set_operators(functions, asked, array, override_own): what computes each operator, by the name of "
     "Python's "
     "method, and what is handed to overrides of the tensor whatever the other operand is."},
    {NULL}};
