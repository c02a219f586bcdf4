/* The memory of a file as an array: how processes share the storages of tensors (core/shared.py). */
#include "core/calls.h"
#include <sys/mman.h>

typedef struct {
    void *start;
    size_t nbytes;
} Mapping;

static void unmap(PyObject *capsule) {
    Mapping *mapping = PyCapsule_GetPointer(capsule, NULL);
    munmap(mapping->start, mapping->nbytes);
    free(mapping);
}

/* map_shared(descriptor, nbytes): the first bytes of a file as an array of uint8 that writes to it. It needs
 * no descriptor to stay open. */
static PyObject *map_shared(PyObject *m, PyObject *args) {
    int descriptor;
    Py_ssize_t nbytes;
    if (!PyArg_ParseTuple(args, "in", &descriptor, &nbytes)) return NULL;
    if (nbytes <= 0)
        return PyErr_SetString(PyExc_ValueError, "map_shared(): a mapping has one byte at least"), NULL;
    Mapping *mapping = malloc(sizeof *mapping);
    if (!mapping) return PyErr_NoMemory();
    mapping->nbytes = (size_t)nbytes;
    mapping->start = mmap(NULL, mapping->nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (mapping->start == MAP_FAILED) {
        free(mapping);
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    PyObject *owner = PyCapsule_New(mapping, NULL, unmap);
    if (!owner) {
        munmap(mapping->start, mapping->nbytes);
        free(mapping);
        return NULL;
    }
    PyObject *array = PyArray_SimpleNewFromData(1, &nbytes, NPY_UINT8, mapping->start);
    if (!array) return Py_DECREF(owner), NULL;
    if (PyArray_SetBaseObject((PyArrayObject *)array, owner) < 0)
        return Py_DECREF(array), NULL; /* takes the owner in any case */
    return array;
}

PyMethodDef flb_mapping_functions[] = {{"map_shared", map_shared, METH_VARARGS,
                                        "map_shared(descriptor, nbytes): the beginning of a file as an array "
                                        "of bytes, shared with other processes."},
                                       {NULL}};
