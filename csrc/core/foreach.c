/* Operators on lists (`_foreach_*`): one operator on each row of their arguments, called here row by row.
 * Every such call goes the way it would go alone, so gradients, modes and errors are those of the single
 * operator. */
#include "core/calls.h"

/* op->each: (operator, places): for each of its arguments the position of ours (of a list: its k-th element),
 * or a 1-tuple with a constant. */
int flb_check_each(FlbOperator *op, PyObject *each) {
    PyObject *target, *places;
    if (!PyTuple_Check(each) ||
        !PyArg_ParseTuple(each, "O!O!", &FlbOperator_Type, &target, &PyTuple_Type, &places))
        return -1;
    if (PyTuple_GET_SIZE(places) > MAX_ARGUMENTS)
        return PyErr_SetString(PyExc_ValueError, "each: too many places"), -1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(places); i++) {
        PyObject *p = PyTuple_GET_ITEM(places, i);
        long at = PyLong_CheckExact(p)                     ? PyLong_AsLong(p)
            : PyTuple_Check(p) && PyTuple_GET_SIZE(p) == 1 ? 0
                                                           : -1;
        if (at < 0 || at >= op->n_parameters)
            return PyErr_SetString(PyExc_ValueError, "each: a place is an argument or a constant in a tuple"),
                   -1;
    }
    return 0;
}

static int run_rows(FlbOperator *op, PyObject *each, PyObject **own, Py_ssize_t n, PyObject *results) {
    FlbOperator *target = (FlbOperator *)PyTuple_GET_ITEM(each, 0);
    PyObject *places = PyTuple_GET_ITEM(each, 1), *values[MAX_ARGUMENTS];
    Py_ssize_t m = PyTuple_GET_SIZE(places);
    for (Py_ssize_t k = 0; k < n; k++) {
        if (!target->ready && flb_prepare(target) < 0) return -1;
        if (target->n_parameters != m)
            return PyErr_SetString(PyExc_SystemError, "each: an operator with other arguments"), -1;
        for (Py_ssize_t i = 0; i < m; i++) {
            PyObject *p = PyTuple_GET_ITEM(places, i);
            if (PyTuple_Check(p)) {
                values[i] = PyTuple_GET_ITEM(p, 0);
                continue;
            }
            long at = PyLong_AsLong(p);
            values[i] = op->parameters[at].list ? PyTuple_GET_ITEM(own[at], k) : own[at];
        }
        uint32_t keys = flb_scan(values, m);
        PyObject *r = keys ? flb_call(target, keys, values) : NULL;
        if (!r) return -1;
        if (results) PyList_SET_ITEM(results, k, r);
        else Py_DECREF(r);
        if (!(k & 63) && PyErr_CheckSignals() < 0) return -1;
    }
    return 0;
}
/* 1 done, 0 a case for the body, which words the errors about lists, -1 exception. */
int flb_foreach_call(FlbOperator *op, PyObject *const *values, PyObject **result) {
    PyObject *own[MAX_ARGUMENTS] = {NULL}, *results = NULL;
    Py_ssize_t n = -1;
    int status = 0;
    for (int i = 0; i < op->n_parameters; i++) {
        PyObject *x = values[i];
        if (!op->parameters[i].list) {
            own[i] = Py_NewRef(x);
            continue;
        }
        if (!PyList_Check(x) && !PyTuple_Check(x)) goto done;
        if (!(own[i] = PySequence_Tuple(x))) { /* the user may change the list meanwhile */
            status = -1;
            goto done;
        }
        if (n >= 0 && PyTuple_GET_SIZE(own[i]) != n) goto done;
        n = PyTuple_GET_SIZE(own[i]);
        for (Py_ssize_t k = 0; op->parameters[i].type == P_TENSOR && k < n; k++)
            if (!PyObject_TypeCheck(PyTuple_GET_ITEM(own[i], k), &FlbTensor_Type)) goto done;
    }
    if (n < 1) goto done;
    PyObject *each = Py_NewRef(op->each);
    if (op->each_writes || (results = PyList_New(n)))
        status = run_rows(op, each, own, n, results) < 0 ? -1 : 1;
    else status = -1;
    Py_DECREF(each);
    if (status > 0) *result = op->each_writes ? Py_NewRef(Py_None) : Py_NewRef(results);
done:
    Py_XDECREF(results);
    for (int i = 0; i < op->n_parameters; i++) Py_XDECREF(own[i]);
    return status;
}
