/* What frame_eval.c and guards.c share: a guard tree is an opaque Python object that is asked about one call.
 *
 * A call is seen as a *flat argument vector*: the values a frame starts with, in the order of the code's
 * first local variables (positional, keyword-only, then the *args tuple and the **kwargs dict), beside the
 * function object (globals, closure). */
#ifndef FLB_FRAME_H
#define FLB_FRAME_H
#include "core/flambeau.h"

/* 1: every guard holds, 0: one failed (kept for the report), -1: an exception is set. */
int flb_guards_check(PyObject *tree, PyFunctionObject *func, PyObject *const *args);
/* The same for a tree that asks for the types and descriptions of arguments, and for dicts that have not
 * changed since they were last looked at: it runs nothing and keeps no report. 2: the other check decides. */
int flb_guards_glance(PyObject *tree, PyFunctionObject *func, PyObject *const *args);
/* How many arguments the tree reads; -1 with an exception when it is none. */
Py_ssize_t flb_guards_arguments(PyObject *tree);
int flb_guards_init(PyObject *module);
/* The dispatch state of this thread, or NULL while flambeau._C isn't loaded. */
FlbTls *flb_guards_tls(void);
FlbApi *flb_frame_api(void); /* NULL while flambeau._C isn't loaded */
extern int flb_strict_guards;

#endif
