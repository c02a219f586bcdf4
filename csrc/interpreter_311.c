/* CPython 3.11: see interpreter.h. */
#define Py_BUILD_CORE 1
#include "interpreter.h"
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#include "internal/pycore_frame.h"
#include "internal/pycore_pystate.h"

extern PyObject *_PyEval_EvalFrameDefault(PyThreadState *, struct _PyInterpreterFrame *, int);

const int flb_captures = 1;
static _PyFrameEvalFunction before = _PyEval_EvalFrameDefault; /* what our hook stands in front of */

void flb_set_eval(FlbEval hook) {
    static FlbEval ours = NULL;
    PyInterpreterState *state = PyInterpreterState_Get();
    _PyFrameEvalFunction now = _PyInterpreterState_GetEvalFrameFunc(state);
    if (hook && !ours) {
        before = now;
        ours = hook;
        _PyInterpreterState_SetEvalFrameFunc(state, hook);
    } else if (!hook && ours && now == ours) {
        ours = NULL;
        _PyInterpreterState_SetEvalFrameFunc(state, before);
    } /* else: an evaluator that came after us calls ours, which is then transparent, and stays where it is */
}
PyObject *flb_default_eval(PyThreadState *ts, FlbFrame *frame, int throwflag) { return before(ts, frame, throwflag); }
PyCodeObject *flb_frame_code(FlbFrame *frame) { return frame->f_code; }
PyFunctionObject *flb_frame_func(FlbFrame *frame) { return frame->f_func; }
int flb_frame_is_fresh(FlbFrame *frame) { return frame->prev_instr == _PyCode_CODE(frame->f_code) - 1; }
PyObject **flb_frame_locals(FlbFrame *frame) { return frame->localsplus; }
void flb_frame_discard(PyThreadState *ts, FlbFrame *frame) {} /* the caller pops it */
#endif
