/* The watch over the ranks of a job: see watch.c. */
#ifndef FLAMBEAU_WATCH_H
#define FLAMBEAU_WATCH_H
#include <Python.h>

/* Whether a rank of the job has ended. */
int flb_has_left(int rank);
PyObject *flb_watch(PyObject *module, PyObject *args);
PyObject *flb_unwatch(PyObject *module, PyObject *ignored);
PyObject *flb_left(PyObject *module, PyObject *ignored);
#endif
