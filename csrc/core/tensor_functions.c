/* The module's functions about tensors: made over arrays, put elsewhere, aliased; and the classes that the
 * native core makes. */
#include "core/tensor_parts.h"

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
    FlbStorage *own = flb_storage_new(s->owner, s->nbytes);
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
    FlbStorage *s = flb_storage_new(NULL, nbytes);
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
    flb_use_setters(requires_grad, grad);
    if (size) Py_XSETREF(flb_size_class, Py_NewRef(size));
    if (cpu) Py_XSETREF(flb_cpu_device, Py_NewRef(cpu));
    if (tensor) Py_XSETREF(flb_tensor_class, (PyTypeObject *)Py_NewRef(tensor));
    if (parameter) Py_XSETREF(flb_parameter_class, (PyTypeObject *)Py_NewRef(parameter));
    if (dtypes) flb_use_dtypes(dtypes, bfloat16);
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
