/* CPython 3.12: see interpreter.h and interpreter_return.h. */
#define Py_BUILD_CORE 1
#include "frame/interpreter.h"
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030D0000
#include "internal/pycore_frame.h"
#include "internal/pycore_pystate.h"
#include "opcode.h"
#include "frame/interpreter_hook.h"
#include "frame/interpreter_return.h"

PyCodeObject *flb_frame_code(FlbFrame *frame) { return frame->f_code; }
PyFunctionObject *flb_frame_func(FlbFrame *frame) { return (PyFunctionObject *)frame->f_funcobj; }
int flb_frame_is_fresh(FlbFrame *frame) { return frame->prev_instr == _PyCode_CODE(frame->f_code) - 1; }

PyObject *flb_frame_end(PyThreadState *ts, FlbFrame *frame, PyObject *result) {
    if (!result) return _PyEval_EvalFrameDefault(ts, frame, 1);
    frame->localsplus[frame->stacktop++] = result; /* a code object has room for one value at least */
    Py_SETREF(frame->f_code, (PyCodeObject *)Py_NewRef(identity));
    frame->prev_instr = _PyCode_CODE(identity) + returns - 1;
    return _PyEval_EvalFrameDefault(ts, frame, 0);
}
#endif
