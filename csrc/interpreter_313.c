/* CPython 3.13: see interpreter.h. Here an evaluator clears and pops its frame. Only the interpreter's own knows how: a frame that we served
 * otherwise is given to it at the RETURN_VALUE of a function that returns its argument, or, with an exception set, as one it was thrown into
 * before it began, which adds no line to the traceback. */
#define Py_BUILD_CORE 1
#include "interpreter.h"
#if PY_VERSION_HEX >= 0x030D0000 && PY_VERSION_HEX < 0x030E0000
#include "internal/pycore_frame.h"
#include "internal/pycore_pystate.h"
#include "opcode.h"
#include "interpreter_hook.h"

static PyCodeObject *identity;      /* of `lambda x: x` */
static Py_ssize_t returns;          /* where its RETURN_VALUE is, in code units */

int flb_interpreter_init(void)
{
    PyObject *names = PyDict_New(), *fn = names ? PyRun_String("lambda x: x", Py_eval_input, names, names) : NULL;
    Py_XDECREF(names);
    if (!fn) return -1;
    identity = (PyCodeObject *)Py_NewRef(PyFunction_GET_CODE(fn));
    Py_DECREF(fn);
    for (returns = 0; returns < Py_SIZE(identity); returns++)
        if (_PyCode_CODE(identity)[returns].op.code == RETURN_VALUE) return 0;
    PyErr_SetString(PyExc_SystemError, "flambeau doesn't know this build of CPython: a function without RETURN_VALUE");
    return -1;
}
PyCodeObject *flb_frame_code(FlbFrame *frame) { return _PyFrame_GetCode(frame); }
PyFunctionObject *flb_frame_func(FlbFrame *frame) { return (PyFunctionObject *)frame->f_funcobj; }
int flb_frame_is_fresh(FlbFrame *frame) { return frame->instr_ptr == _PyCode_CODE(_PyFrame_GetCode(frame)); }

PyObject *flb_frame_end(PyThreadState *ts, FlbFrame *frame, PyObject *result)
{
    if (!result) {
        frame->instr_ptr = _PyCode_CODE(_PyFrame_GetCode(frame)) - 1;    /* it did not begin: a frame at its RESUME gets a line */
        return _PyEval_EvalFrameDefault(ts, frame, 1);
    }
    frame->localsplus[frame->stacktop++] = result;      /* a code object has room for one value at least */
    Py_SETREF(frame->f_executable, Py_NewRef(identity));
    frame->instr_ptr = _PyCode_CODE(identity) + returns;
    return _PyEval_EvalFrameDefault(ts, frame, 0);
}
#endif
