/* The evaluator hook, the same for all versions: included by each interpreter_3xx.c behind the declarations
 * of its version. */
#include <frameobject.h>
extern PyObject *_PyEval_EvalFrameDefault(PyThreadState *, struct _PyInterpreterFrame *, int);

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
PyObject *flb_default_eval(PyThreadState *ts, FlbFrame *frame, int throwflag) {
    return before(ts, frame, throwflag);
}
#if PY_VERSION_HEX < 0x030E0000
PyObject **flb_frame_locals(FlbFrame *frame, PyObject **room, Py_ssize_t n) { return frame->localsplus; }
#endif

PyObject *flb_traceback_entry(PyObject *next, PyCodeObject *code, PyObject *globals, int lasti, int line) {
    PyFrameObject *frame = PyFrame_New(PyThreadState_Get(), code, globals, NULL);
    if (!frame) return NULL;
    frame->f_lineno = line;
    PyObject *r = PyObject_CallFunction((PyObject *)&PyTraceBack_Type, "OOii", next, frame, lasti, line);
    Py_DECREF(frame);
    return r;
}
