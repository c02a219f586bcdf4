/* Hooks of tensors and of nodes, and gradients that tensors in the middle of a graph keep. */
#include "autograd/engine.h"

int flb_check_hook(PyObject *hook, PyObject *before, PyObject *got) {
    if (before == got) return 0;
    if (before && flb_plain(before) && flb_plain(got) &&
        ((FlbTensor *)before)->dtype == ((FlbTensor *)got)->dtype &&
        ((FlbTensor *)before)->device == ((FlbTensor *)got)->device &&
        flb_same_size((FlbTensor *)before, (FlbTensor *)got) == 1)
        return 0;
    PyObject *r =
        PyObject_CallFunctionObjArgs(flb_engine.check_result, hook, before ? before : Py_None, got, NULL);
    Py_XDECREF(r);
    return r ? 0 : -1;
}
int flb_tensor_hooks(PyObject *hooks, PyObject **slot) {
    if (!hooks || !*slot || !PyDict_Check(hooks) || !PyDict_GET_SIZE(hooks)) return 0;
    PyObject *list = PyDict_Values(hooks), *before = Py_NewRef(*slot);
    int r = list ? 0 : -1;
    for (Py_ssize_t i = 0; !r && i < PyList_GET_SIZE(list); i++) {
        PyObject *hook = PyList_GET_ITEM(list, i), *got = PyObject_CallOneArg(hook, *slot);
        if (!got) r = -1;
        else if (got == Py_None) Py_DECREF(got);
        else if ((r = flb_check_hook(hook, before, got)) < 0) Py_DECREF(got);
        else Py_SETREF(*slot, got);
    }
    Py_XDECREF(list);
    Py_DECREF(before);
    return r;
}
/* Takes what a hook returned for the items. */
static int replace(PyObject **items, int n, PyObject *hook, PyObject *got) {
    if (got == Py_None) return 0;
    if (!PyTuple_Check(got) || PyTuple_GET_SIZE(got) != n) {
        PyObject *count = PyLong_FromLong(n),
                 *r = count ? PyObject_CallFunctionObjArgs(flb_engine.check_count, hook, got, count, NULL)
                            : NULL;
        Py_XDECREF(count);
        Py_XDECREF(r);
        if (r) PyErr_SetString(PyExc_TypeError, "a hook of a node returns a tuple of gradients");
        return -1;
    }
    for (int i = 0; i < n; i++) {
        PyObject *x = PyTuple_GET_ITEM(got, i);
        if (x != Py_None && flb_check_hook(hook, items[i], x) < 0) return -1;
    }
    for (int i = 0; i < n; i++) {
        PyObject *x = PyTuple_GET_ITEM(got, i);
        Py_XSETREF(items[i], x == Py_None ? NULL : Py_NewRef(x));
    }
    return 0;
}
/* Call the hooks of a node, each of which may replace the n `values`. `results`: their second argument, or
 * NULL for none. */
static int node_hooks(PyObject *hooks, PyObject **values, int n, PyObject *results) {
    PyObject *list = PyDict_Values(hooks);
    int r = list ? 0 : -1;
    for (Py_ssize_t i = 0; !r && i < PyList_GET_SIZE(list); i++) {
        PyObject *given = flb_tuple_of(values, n), *hook = PyList_GET_ITEM(list, i);
        PyObject *got = given ? PyObject_CallFunctionObjArgs(hook, given, results, NULL) : NULL;
        Py_XDECREF(given);
        r = got ? replace(values, n, hook, got) : -1;
        Py_XDECREF(got);
    }
    Py_XDECREF(list);
    return r;
}
int flb_node_pre_hooks(PyObject *hooks, PyObject **cts, int n) { return node_hooks(hooks, cts, n, NULL); }
int flb_node_post_hooks(PyObject *hooks, PyObject **grads, int n, PyObject **cts, int n_cts) {
    PyObject *results = flb_tuple_of(cts, n_cts);
    int r = results ? node_hooks(hooks, grads, n, results) : -1;
    Py_XDECREF(results);
    return r;
}
/* The gradient of a result has memory of its own: `ct` may be the caller's, another result's, or expanded. */
static int sum_into(PyObject **grad, PyObject *ct) {
    PyObject *v;
    if (!*grad) {
        v = flb_library_call(flb_engine.clone, (PyObject *[]){ct}, 1);
    } else {
        PyObject *have = Py_NewRef(*grad), *args[3] = {NULL, have, ct};
        v = flb_library_call(flb_engine.add, args + 1, 2);
        Py_DECREF(have);
    }
    if (!v) return -1;
    Py_XSETREF(*grad, v);
    return 0;
}
int flb_keep_retained(PyObject *retained, PyObject **cts, int n) {
    PyObject *k, *ref;
    Py_ssize_t pos = 0;
    PyObject *copy = PyDict_Copy(retained);
    int r = copy ? 0 : -1;
    while (!r && PyDict_Next(copy, &pos, &k, &ref)) {
        long nr = PyLong_AsLong(k);
        if (nr == -1 && PyErr_Occurred()) r = -1;
        else if (!PyWeakref_Check(ref))
            r = (PyErr_SetString(PyExc_TypeError, "what keeps its gradient is a weak reference"), -1);
        PyObject *t = r ? NULL : PyObject_CallNoArgs(ref);
        if (!t) r = -1;
        else if (PyObject_TypeCheck(t, &FlbTensor_Type) && nr >= 0 && nr < n && cts[nr])
            r = sum_into(&((FlbTensor *)t)->grad, cts[nr]);
        Py_XDECREF(t);
    }
    Py_XDECREF(copy);
    return r;
}
