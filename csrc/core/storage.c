/* Storage: the memory that views of a tensor share, who owns it, and the counts of writes to it. */
#include "core/tensor_parts.h"

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

FlbStorage *flb_storage_new(PyObject *owner, Py_ssize_t nbytes) {
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
        return flb_storage_new(root, 0);
    if (!(root = PyArray_View((PyArrayObject *)root, NULL, NULL))) return NULL;
    PyArray_CLEARFLAGS((PyArrayObject *)root, NPY_ARRAY_WRITEABLE);
    FlbStorage *s = flb_storage_new(root, 0);
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
            t->storage = flb_storage_new(NULL, n * item);
        }
        if (t->storage) t->storage->inference = (t->flags & FLB_INFERENCE) != 0;
    }
    return t->storage;
}
