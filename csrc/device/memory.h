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

/* module.c: the process' driver (NULL without one), this thread's stream of a device, and errors. */
extern const FlbDriver *flb_driver;
FlbStream *flb_stream_of(int device);
int flb_device_from(PyObject *o, int *device); /* -1 with an error */
PyObject *flb_status(int device, int status);  /* None, or NULL with an error */
PyObject *flb_no_memory(int device, Py_ssize_t nbytes);
PyObject *flb_memory_over(int device, uint64_t address, Py_ssize_t nbytes,
                          FlbStream *stream); /* takes the address */

/* plan.c */
extern PyTypeObject *flb_plan_type;

/* exchange.c: functions of the module. */
PyObject *flb_py_export(PyObject *m, PyObject *args);
PyObject *flb_py_imported(PyObject *m, PyObject *capsule);
PyObject *flb_py_borrow(PyObject *m, PyObject *args);
#endif
