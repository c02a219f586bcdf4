/* The attributes of a tensor: those that dispatch and autograd set, and the public properties, which
 * __torch_function__ sees. */
#include "core/tensor_parts.h"

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
    PyObject *dtype = flb_dtype_of_array((PyArrayObject *)v);
    if (!dtype || flb_whole_strides((PyArrayObject *)v) < 0) return -1;
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

PyGetSetDef flb_tensor_getset[] = {
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
PyMemberDef flb_tensor_members[] = {
    {"_output_nr", T_INT, offsetof(FlbTensor, output_nr), READONLY, "which output of grad_fn this is"},
    {NULL}};
PyMethodDef flb_tensor_methods[] = {
    {"_bump_version", (PyCFunction)bump_version, METH_NOARGS, "Count an in-place write."},
    {"_check_written", (PyCFunction)check_written, METH_NOARGS,
     "RuntimeError for a view that may not be written in grad mode."},
    {"_check_writable", (PyCFunction)check_writable, METH_NOARGS,
     "RuntimeError for memory that is read-only."},
    {NULL}};

void flb_use_setters(PyObject *requires_grad, PyObject *grad) {
    if (requires_grad) Py_XSETREF(requires_grad_setter, Py_NewRef(requires_grad));
    if (grad) Py_XSETREF(grad_checker, Py_NewRef(grad));
}
