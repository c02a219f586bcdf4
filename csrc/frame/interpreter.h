/* What depends on the CPython version: frames, the evaluator hook. One file a version (interpreter_311.c ...)
 * defines it; nothing else of flambeau reads a frame or an interpreter-private structure. */
#ifndef FLB_INTERPRETER_H
#define FLB_INTERPRETER_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#ifdef Py_GIL_DISABLED
#error \
    "flambeau can't be built for the free-threaded build of CPython: its native state is guarded by the GIL"
#endif

typedef struct _PyInterpreterFrame FlbFrame;
/* A hook: evaluates the frame as it likes, flb_default_eval() being the interpreter's way. */
typedef PyObject *(*FlbEval)(PyThreadState *ts, FlbFrame *frame, int throwflag);

int flb_interpreter_init(void);

/* Puts `hook` in front of the evaluator that is installed (another PEP 523 evaluator, or the interpreter's);
 * NULL takes it away. */
void flb_set_eval(FlbEval hook);
PyObject *flb_default_eval(PyThreadState *ts, FlbFrame *frame, int throwflag);

PyCodeObject *flb_frame_code(FlbFrame *frame);     /* borrowed */
PyFunctionObject *flb_frame_func(FlbFrame *frame); /* borrowed */
int flb_frame_is_fresh(FlbFrame *frame);           /* no instruction ran yet */
/* The `n` values it starts with, in the order of the code's first local variables. Since 3.14 a frame holds
 * tagged references: the values are then written to `room`, FLB_FRAME_ROOM(n) long. */
PyObject **flb_frame_locals(FlbFrame *frame, PyObject **room, Py_ssize_t n);
#if PY_VERSION_HEX >= 0x030E0000
#define FLB_FRAME_ROOM(n) ((n) + 1)
#else
#define FLB_FRAME_ROOM(n) 1
#endif
/* What a hook returns for a fresh frame that it did not evaluate: gives the frame back to the interpreter.
 * Steals `result`; NULL: an exception is set. */
PyObject *flb_frame_end(PyThreadState *ts, FlbFrame *frame, PyObject *result);
/* One more entry in front of the traceback `next` (or None): `line` and the instruction at byte `lasti` of
 * `code`, in a frame that never ran. */
PyObject *flb_traceback_entry(PyObject *next, PyCodeObject *code, PyObject *globals, int lasti, int line);
#endif
