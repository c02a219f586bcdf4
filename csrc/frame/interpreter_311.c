/* CPython 3.11: see interpreter.h. */
#define Py_BUILD_CORE 1
#include "frame/interpreter.h"
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#include "internal/pycore_frame.h"
#include "internal/pycore_pystate.h"
#include "frame/interpreter_hook.h"

int flb_interpreter_init(void) { return 0; }
PyCodeObject *flb_frame_code(FlbFrame *frame) { return frame->f_code; }
PyFunctionObject *flb_frame_func(FlbFrame *frame) { return frame->f_func; }
int flb_frame_is_fresh(FlbFrame *frame) { return frame->prev_instr == _PyCode_CODE(frame->f_code) - 1; }
PyObject *flb_frame_end(PyThreadState *ts, FlbFrame *frame, PyObject *result) {
    return result;
} /* the caller pops it */
#endif
