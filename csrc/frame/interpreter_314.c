/* CPython 3.14: see interpreter.h and interpreter_return.h. Written from its published headers; never run
 * (docs/design/cpython-3.14.md). */
#define Py_BUILD_CORE 1
#include "frame/interpreter.h"
#if PY_VERSION_HEX >= 0x030E0000 && PY_VERSION_HEX < 0x030F0000
#include "internal/pycore_interpframe.h"
#include "internal/pycore_pystate.h"
#include "internal/pycore_stackref.h"
#include "opcode.h"
#include "frame/interpreter_hook.h"
#include "frame/interpreter_return.h"

PyCodeObject *flb_frame_code(FlbFrame *frame) { return _PyFrame_GetCode(frame); }
PyFunctionObject *flb_frame_func(FlbFrame *frame) { return _PyFrame_GetFunction(frame); }
int flb_frame_is_fresh(FlbFrame *frame) { return frame->instr_ptr == _PyCode_CODE(_PyFrame_GetCode(frame)); }

PyObject **flb_frame_locals(FlbFrame *frame, PyObject **room, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; i++) room[i] = PyStackRef_AsPyObjectBorrow(frame->localsplus[i]);
    return room;
}

PyObject *flb_frame_end(PyThreadState *ts, FlbFrame *frame, PyObject *result) {
    if (!result) {
        frame->instr_ptr = _PyCode_CODE(_PyFrame_GetCode(frame)) -
            1; /* it did not begin: a frame at its RESUME gets a line */
        return _PyEval_EvalFrameDefault(ts, frame, 1);
    }
    *frame->stackpointer++ =
        PyStackRef_FromPyObjectSteal(result); /* a code object has room for one value at least */
    _PyStackRef own = frame->f_executable;
    frame->f_executable = PyStackRef_FromPyObjectNew((PyObject *)identity);
    PyStackRef_CLOSE(own);
    frame->instr_ptr = _PyCode_CODE(identity) + returns;
    return _PyEval_EvalFrameDefault(ts, frame, 0);
}
#endif
