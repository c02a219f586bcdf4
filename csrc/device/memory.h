/* Memory of a device as a Python object. */
#ifndef FLB_DEVICE_MEMORY_H
#define FLB_DEVICE_MEMORY_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "device/driver.h"

typedef struct {
    PyObject_HEAD
    int device;
    Py_ssize_t nbytes;
    uint64_t address; /* 0 without bytes */
    FlbStream *stream;
    int several;     /* other streams use it too */
    PyObject *owner; /* whose memory it is, NULL: its own */
} FlbMemory;
extern PyTypeObject *flb_memory_type;

/* exchange.c: functions of the module. */
PyObject *flb_py_export(PyObject *m, PyObject *args);
PyObject *flb_py_imported(PyObject *m, PyObject *capsule);
PyObject *flb_py_borrow(PyObject *m, PyObject *args);
#endif
