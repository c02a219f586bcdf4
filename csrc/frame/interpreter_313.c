/* CPython 3.13: see interpreter.h and interpreter_return.h. */
#define Py_BUILD_CORE 1
#include "frame/interpreter.h"
#if PY_VERSION_HEX >= 0x030D0000 && PY_VERSION_HEX < 0x030E0000
#include "internal/pycore_frame.h"
#include "internal/pycore_pystate.h"
#include "opcode.h"
#include "frame/interpreter_hook.h"
#include "frame/interpreter_return.h"

PyCodeObject *flb_frame_code(FlbFrame *frame) { return _PyFrame_GetCode(frame); }
PyFunctionObject *flb_frame_func(FlbFrame *frame) { return (PyFunctionObject *)frame->f_funcobj; }
int flb_frame_is_fresh(FlbFrame *frame) { return frame->instr_ptr == _PyCode_CODE(_PyFrame_GetCode(frame)); }

PyObject *flb_frame_end(PyThreadState *ts, FlbFrame *frame, PyObject *result) {
    if (!result) {
        frame->instr_ptr = _PyCode_CODE(_PyFrame_GetCode(frame)) -
            1; /* it did not begin: a frame at its RESUME gets a line */
        return _PyEval_EvalFrameDefault(ts, frame, 1);
    }
    frame->localsplus[frame->stacktop++] = result; /* a code object has room for one value at least */
    Py_SETREF(frame->f_executable, Py_NewRef(identity));
    frame->instr_ptr = _PyCode_CODE(identity) + returns;
    return _PyEval_EvalFrameDefault(ts, frame, 0);
}
#endif
