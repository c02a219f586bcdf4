/* Reading the records of inductor/runtime/records.py, from which a compiled graph is built. Every place, slot
 * and count is checked here, so that a launch need not. All of these give -1, or NULL, with an exception. */
#ifndef FLAMBEAU_READING_H
#define FLAMBEAU_READING_H
#include "runtime/graph.h"

#define FAIL(...) return PyErr_Format(PyExc_ValueError, __VA_ARGS__), -1

/* n entries and one to spare. */
void *flb_zeroed(Py_ssize_t n, size_t size);
int flb_read_ints(PyObject *o, int **out, int *n);

/* `count` places of the frame from `at` on, or slots, have to exist. */
int flb_check_place(Graph *g, int at, int count);
int flb_check_slots(Graph *g, const int *slots, int n);

/* The attributes of a record that are named, up to NULL, as a tuple. It keeps them: reading a number may run
 * Python, which may change the record. */
PyObject *flb_fields_of(PyObject *o, ...);

/* The kind of a record, below `count`. */
int flb_kind_of(PyObject *o, int count);

/* A Layout, or None. */
int flb_read_layout(PyObject *o, Layout *l, Graph *g);

/* A step (graph_steps.c). */
int flb_read_step(PyObject *o, Step *s, Graph *g);

/* The tables of a graph (graph_tables.c), and the steps that run side by side, a list or NULL. */
enum { FRAME, STAGES, SLOTS, STEPS, OUTPUTS, TABLES };
int flb_read_tables(PyObject *const *tables, PyObject *together, Graph *g);
#endif
