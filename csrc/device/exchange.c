/* Memory of a device that other libraries made, or are handed: DLPack's capsules (its published structures,
 * version 0), and plain addresses. */
#include <stdlib.h>

#include "device/memory.h"

typedef struct {
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides; /* in elements; no strides: row-major */
    uint64_t byte_offset;
} Described;
typedef struct Managed {
    Described tensor;
    void *context;
    void (*deleter)(struct Managed *);
} Managed;

enum { MOST_DIMENSIONS = 64, DL_CUDA = 2 };
static const char NAME[] = "dltensor", USED[] = "used_dltensor";

/* ---- export ----------------------------------------------------------------------------------------------
 */

/* Whoever took the capsule may call this without the GIL. */
static void let_go(Managed *m) {
    PyGILState_STATE state = PyGILState_Ensure();
    Py_XDECREF((PyObject *)m->context);
    PyGILState_Release(state);
    free(m);
}
static void unused(PyObject *capsule) {
    if (!PyCapsule_IsValid(capsule, NAME)) return; /* it was taken */
    Managed *m = PyCapsule_GetPointer(capsule, NAME);
    if (m->deleter) m->deleter(m);
}
static int numbers(PyObject *tuple, int64_t *to) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
        to[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
        if (to[i] == -1 && PyErr_Occurred()) return -1;
    }
    return 0;
}
PyObject *flb_py_export(PyObject *module, PyObject *args) {
    FlbMemory *memory;
    Py_ssize_t at;
    PyObject *shape, *strides;
    int code, bits;
    if (!PyArg_ParseTuple(args, "O!nO!O!ii", flb_memory_type, &memory, &at, &PyTuple_Type, &shape,
                          &PyTuple_Type, &strides, &code, &bits))
        return NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(shape);
    if (n != PyTuple_GET_SIZE(strides) || n > MOST_DIMENSIONS)
        return PyErr_SetString(PyExc_ValueError, "export(): sizes and strides"), NULL;
    Managed *m = calloc(1, sizeof *m + 2 * (size_t)n * sizeof(int64_t));
    if (!m) return PyErr_NoMemory();
    int64_t *room = (int64_t *)(m + 1);
    m->tensor = (Described){(void *)(uintptr_t)(memory->address + (uint64_t)at),
                            DL_CUDA,
                            memory->device,
                            (int32_t)n,
                            (uint8_t)code,
                            (uint8_t)bits,
                            1,
                            room,
                            room + n,
                            0};
    m->context = Py_NewRef(memory), m->deleter = let_go;
    PyObject *capsule =
        numbers(shape, room) || numbers(strides, room + n) ? NULL : PyCapsule_New(m, NAME, unused);
    if (!capsule) let_go(m);
    return capsule;
}

/* ---- import ----------------------------------------------------------------------------------------------
 */

static void taken_ends(PyObject *capsule) {
    Managed *m = PyCapsule_GetPointer(capsule, USED);
    if (m && m->deleter) m->deleter(m);
}
static PyObject *borrowed(int device, uint64_t address, Py_ssize_t nbytes, PyObject *owner) {
    FlbMemory *memory = (FlbMemory *)flb_memory_type->tp_alloc(flb_memory_type, 0);
    if (!memory) return NULL;
    memory->device = device, memory->nbytes = nbytes, memory->address = nbytes ? address : 0,
    memory->owner = Py_NewRef(owner);
    return (PyObject *)memory;
}
PyObject *flb_py_borrow(PyObject *module, PyObject *args) {
    int device;
    unsigned long long address;
    Py_ssize_t nbytes;
    PyObject *owner;
    if (!PyArg_ParseTuple(args, "iKnO", &device, &address, &nbytes, &owner)) return NULL;
    return borrowed(device, address, nbytes, owner);
}
static PyObject *tuple_of(const int64_t *x, int n) {
    PyObject *made = PyTuple_New(n);
    for (int i = 0; made && i < n; i++) {
        PyObject *one = PyLong_FromLongLong(x[i]);
        if (!one) Py_CLEAR(made);
        else PyTuple_SET_ITEM(made, i, one);
    }
    return made;
}
/* (memory, byte it begins at, sizes, strides, code, bits); None for a tensor that isn't on a CUDA device. The
 * capsule is taken. */
PyObject *flb_py_imported(PyObject *module, PyObject *capsule) {
    if (!PyCapsule_IsValid(capsule, NAME))
        return PyErr_SetString(
                   PyExc_ValueError,
                   "from_dlpack(): a capsule named \"dltensor\" is needed, and each is taken once"),
               NULL;
    Managed *m = PyCapsule_GetPointer(capsule, NAME);
    const Described t = m->tensor;
    if (t.device_type != DL_CUDA) Py_RETURN_NONE;
    if (t.lanes != 1 || t.ndim < 0 || t.ndim > MOST_DIMENSIONS)
        return PyErr_SetString(PyExc_BufferError, "from_dlpack(): vectors of elements"), NULL;
    int64_t dense[MOST_DIMENSIONS], size = t.bits / 8, last = 0;
    int64_t step = 1;
    for (int i = t.ndim - 1; i >= 0; step *= t.shape[i--]) dense[i] = step;
    const int64_t *strides = t.strides ? t.strides : dense;
    for (int i = 0; i < t.ndim; i++) {
        if (strides[i] < 0)
            return PyErr_SetString(PyExc_BufferError, "from_dlpack(): negative strides"), NULL;
        if (t.shape[i] == 0) size = 0;
        last += (t.shape[i] - 1) * strides[i];
    }
    PyObject *shape = tuple_of(t.shape, t.ndim), *steps = tuple_of(strides, t.ndim);
    PyObject *owner = shape && steps ? PyCapsule_New(m, USED, taken_ends) : NULL;
    PyObject *memory = NULL;
    if (owner) {
        PyCapsule_SetName(capsule, USED), PyCapsule_SetDestructor(capsule, NULL);
        memory = borrowed(t.device_id, (uint64_t)(uintptr_t)t.data + t.byte_offset,
                          size ? (Py_ssize_t)((last + 1) * size) : 0, owner);
        Py_DECREF(owner);
    }
    PyObject *made = memory
        ? Py_BuildValue("NnNNii", memory, (Py_ssize_t)0, shape, steps, (int)t.code, (int)t.bits)
        : NULL;
    if (!memory) Py_XDECREF(shape), Py_XDECREF(steps);
    return made;
}
