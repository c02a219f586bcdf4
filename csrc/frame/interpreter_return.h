/* CPython 3.12 and later, see interpreter.h: an evaluator clears and pops its frame. Only the interpreter's
 * own knows how: a frame that we served otherwise is given to it at the RETURN_VALUE of a function that
 * returns its argument, or, with an exception set, as one it was thrown into before it began, which adds no
 * line to the traceback. */
static PyCodeObject *identity; /* of `lambda x: x` */
static Py_ssize_t returns;     /* where its RETURN_VALUE is, in code units */

int flb_interpreter_init(void) {
    PyObject *names = PyDict_New(),
             *fn = names ? PyRun_String("lambda x: x", Py_eval_input, names, names) : NULL;
    Py_XDECREF(names);
    if (!fn) return -1;
    identity = (PyCodeObject *)Py_NewRef(PyFunction_GET_CODE(fn));
    Py_DECREF(fn);
    for (returns = 0; returns < Py_SIZE(identity); returns++)
        if (_PyCode_CODE(identity)[returns].op.code == RETURN_VALUE) return 0;
    PyErr_SetString(PyExc_SystemError,
                    "flambeau doesn't know this build of CPython: a function without RETURN_VALUE");
    return -1;
}
