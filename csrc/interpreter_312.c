/* CPython 3.12: eager, autograd and modes work; frames are not captured yet, and torch.compile says so. See interpreter.h. */
#include "interpreter.h"
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030D0000
const int flb_captures = 0;
void flb_set_eval(FlbEval hook) {}
PyObject *flb_default_eval(PyThreadState *ts, FlbFrame *frame, int throwflag) {
    PyErr_SetString(PyExc_SystemError, "frames are not captured with this version of CPython");
    return NULL;
}
PyCodeObject *flb_frame_code(FlbFrame *frame) { return NULL; }
PyFunctionObject *flb_frame_func(FlbFrame *frame) { return NULL; }
int flb_frame_is_fresh(FlbFrame *frame) { return 0; }
PyObject **flb_frame_locals(FlbFrame *frame) { return NULL; }
void flb_frame_discard(PyThreadState *ts, FlbFrame *frame) {}
#endif
