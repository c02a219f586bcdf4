/* What a kernel of a native loop asks of the process: whether a signal came, and calls of NumPy. */
#include "runtime/loop.h"

_Thread_local FlbLoopThread flb_loop_thread;

/* Kernels ask this now and then: nonzero when a signal's handler raised, which ends the kernel. */
int64_t flb_loop_interrupted(void) {
    FlbLoopThread *in = &flb_loop_thread;
    if (!in->waiting && !in->holding) return 0;
    if (!in->holding) PyEval_RestoreThread(in->waiting);
    in->holding = 0; /* who asks isn't short */
    int stop = PyErr_CheckSignals() < 0;
    if (stop) PyErr_Fetch(&in->caught[0], &in->caught[1], &in->caught[2]);
    in->waiting = PyEval_SaveThread();
    return stop;
}

/* The arrays that `table` describes, each by the number of its type, the number of dimensions, its address,
 * sizes and strides. */
static PyObject *described(int64_t n, const int64_t *table) {
    PyObject *arrays = PyTuple_New(n);
    for (int64_t k = 0; arrays && k < n; k++) {
        int ndim = (int)table[1];
        npy_intp sizes[NPY_MAXDIMS], strides[NPY_MAXDIMS];
        for (int d = 0; d < ndim; d++) sizes[d] = table[3 + d], strides[d] = table[3 + ndim + d];
        PyObject *a = PyArray_New(&PyArray_Type, ndim, sizes, (int)table[0], strides,
                                  (void *)(uintptr_t)table[2], 0, NPY_ARRAY_WRITEABLE, NULL);
        if (!a) Py_CLEAR(arrays);
        else PyTuple_SET_ITEM(arrays, k, a);
        table += 3 + 2 * ndim;
    }
    return arrays;
}

/* A kernel has NumPy compute something: `text` says what, the arrays are operands and results. 0; 1 where
 * that raised and all may be done again plainly; -1 where what it raised ends the loop. */
int64_t flb_loop_python(const char *text, int64_t again, int64_t n, const int64_t *table) {
    FlbLoopThread *in = &flb_loop_thread;
    if (!in->waiting && !in->holding) return 1;
    if (!in->holding) PyEval_RestoreThread(in->waiting);
    in->holding = 0;
    flb_floating_note(flb_api->floating()); /* NumPy clears the flags */
    PyObject *arrays = described(n, table), *flags = NULL;
    if (arrays) flags = PyObject_CallFunction(in->python, "sN", text, arrays);
    long raised = flags ? PyLong_AsLong(flags) : -1;
    Py_XDECREF(flags);
    int64_t code = 0;
    if (raised < 0) {
        code = again && PyErr_ExceptionMatches(PyExc_Exception) ? 1 : -1;
        if (code > 0) PyErr_Clear();
        else PyErr_Fetch(&in->caught[0], &in->caught[1], &in->caught[2]);
    }
    in->waiting = PyEval_SaveThread();
    if (raised > 0) flb_floating_raise((unsigned)raised);
    return code;
}
