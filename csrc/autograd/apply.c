/* Running the formula of one node in Python, fitting cotangents to what they are for, and anomaly mode. */
#include "autograd/autograd.h"

int flb_anomaly = 0;
static PyObject *fit_slow = NULL;     /* fit(cotangent, shape, dtype, device, node name, number) */
static PyObject *anomaly_note = NULL; /* note(node) */
static PyObject *anomaly_run = NULL;  /* run(node, cotangents): applies and checks */

/* grads[] from what the formula returned: a cotangent or None for each needed argument, a list of them for
 * one that is a list. */
int flb_spread(FlbOpNode *node, PyObject *got, PyObject **grads) {
    PyObject *fast = PySequence_Fast(got, "a formula returns a sequence of cotangents");
    if (!fast) return -1;
    FlbRule *rule = node->rule;
    uint64_t edged = rule->inputs | node->needs;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast), r = 0, at = 0;
    int e = 0, bad = 0;
    for (int i = 0; !bad && i < rule->n_args; i++) {
        if (!(edged >> i & 1)) continue;
        long count = node->lists ? PyLong_AsLong(PyTuple_GET_ITEM(node->lists, at++)) : -1;
        int first = e;
        e += count < 0 ? 1 : (int)count;
        if (!(node->needs >> i & 1)) continue;
        PyObject *g = r < n ? PySequence_Fast_GET_ITEM(fast, r) : Py_None;
        r++;
        if (g == Py_None) continue;
        if (count < 0) {
            bad = !PyObject_TypeCheck(g, &FlbTensor_Type);
            if (!bad) grads[first] = Py_NewRef(g);
            continue;
        }
        PyObject *list = PySequence_Fast(g, "the cotangent of a list is a list");
        bad = !list || PySequence_Fast_GET_SIZE(list) != count;
        for (long k = 0; !bad && k < count; k++) {
            PyObject *x = PySequence_Fast_GET_ITEM(list, k);
            if (x == Py_None || !node->base.edges[first + k].node) continue;
            if (!PyObject_TypeCheck(x, &FlbTensor_Type)) bad = 1;
            else grads[first + k] = Py_NewRef(x);
        }
        Py_XDECREF(list);
    }
    Py_DECREF(fast);
    if (bad && !PyErr_Occurred())
        PyErr_Format(PyExc_RuntimeError, "the formula of %U returned something else than its cotangents",
                     node->rule->name);
    return bad ? -1 : 0;
}
/* Calls run(cts, values). values: what was unpacked, in the order of plan->saves. */
PyObject *flb_call_formula(FlbOpNode *node, PyObject *cts, PyObject **values) {
    FlbPlan *plan = node->plan;
    PyObject *dict = PyDict_New(), *got = NULL;
    for (int i = 0; dict && i < plan->n_saves; i++)
        if (PyDict_SetItem(dict, plan->saves[i].name, values[i]) < 0) Py_CLEAR(dict);
    if (dict) {
        /* The formula of an operator of a program's is the program's. */
        int own = !((FlbOperator *)node->rule->op)->loud, before = own ? flb_enter_library() : 0;
        got = PyObject_CallFunctionObjArgs(plan->run, cts, dict, NULL);
        if (own) flb_leave_library(before);
    }
    Py_XDECREF(dict);
    return got;
}
int flb_formula_apply(FlbOpNode *node, PyObject **cts, PyObject **grads) {
    FlbPlan *plan = node->plan;
    int history = flb_tls()->grad_enabled, bad = -1, n = 0;
    PyObject *list = PyList_New(node->base.n_outputs), *got = NULL;
    PyObject **values = PyMem_Calloc(plan->n_saves + 1, sizeof(PyObject *));
    if (!values) PyErr_NoMemory();
    if (!list || !values) goto done;
    for (int i = 0; i < node->base.n_outputs; i++)
        PyList_SET_ITEM(list, i, Py_NewRef(cts[i] ? cts[i] : Py_None));
    for (; n < plan->n_saves; n++)
        if (!(values[n] = flb_saved_value(&node->saved[n], &node->base, plan->saves[n].name, history)))
            goto done;
    got = flb_call_formula(node, list, values);
    bad = got ? flb_spread(node, got, grads) : -1;
done:
    for (int i = 0; values && i < n; i++) Py_DECREF(values[i]);
    PyMem_Free(values);
    Py_XDECREF(list);
    Py_XDECREF(got);
    return bad;
}
int flb_op_apply(FlbNode *base, PyObject **cts, PyObject **grads) {
    FlbOpNode *node = (FlbOpNode *)base;
    FlbTls *s = flb_tls();
    if (!(s->grad_enabled | s->dispatch_modes | s->function_modes | s->transforms | s->included |
          s->forward_open)) {
        int r = flb_program_apply(node, cts, grads);
        if (r) return r < 0 ? -1 : 0;
    }
    return flb_formula_apply(node, cts, grads);
}

/* Whether the library's own formulas gave a node's cotangents. NOTE: a node whose name was asked for has a
 * class of that name, below the one it was made with. */
static int has_formulas(FlbNode *node) { return PyObject_TypeCheck((PyObject *)node, &FlbOpNode_Type); }

/* Give a cotangent the shape and dtype of the tensor that the edge leads to: sum over broadcast dimensions,
 * cast. Replaces *grad. */
int flb_fit(FlbNode *from, int i, FlbEdge *edge, PyObject **grad) {
    FlbNode *to = edge->node;
    FlbTensor *g = (FlbTensor *)*grad, *leaf = NULL;
    FlbMeta *m = NULL;
    PyObject *dtype, *device, *shape;
    if (Py_TYPE(to) == &FlbAccumulate_Type) {
        leaf = (FlbTensor *)((FlbAccumulate *)to)->variable;
        if (!leaf) return 0;
        dtype = leaf->dtype, device = leaf->device;
        if (g->array && leaf->array && g->dtype == dtype) {
            PyArrayObject *a = (PyArrayObject *)g->array, *b = (PyArrayObject *)leaf->array;
            if (PyArray_NDIM(a) == PyArray_NDIM(b) &&
                PyArray_CompareLists(PyArray_DIMS(a), PyArray_DIMS(b), PyArray_NDIM(a)))
                return 0;
        }
    } else {
        if (edge->nr >= to->n_outputs || !to->outputs[edge->nr].dtype) return 0;
        m = &to->outputs[edge->nr];
        dtype = m->dtype, device = m->device;
        if (g->array && !m->shape && g->dtype == dtype) {
            PyArrayObject *a = (PyArrayObject *)g->array;
            int same = PyArray_NDIM(a) == m->ndim;
            for (int k = 0; same && k < m->ndim; k++) same = PyArray_DIM(a, k) == m->dims[k];
            if (same) return 0;
        }
    }
    if (!(shape = leaf ? Py_XNewRef(flb_shape(leaf)) : flb_meta_shape(m))) return -1;
    if (g->dtype == dtype) {
        PyObject *have = flb_shape(g);
        /* NOTE: tuples compare elements before lengths, which asks more of symbolic sizes than is needed. */
        int same = !have ? -1
            : PyTuple_GET_SIZE(have) != PyTuple_GET_SIZE(shape)
            ? 0
            : PyObject_RichCompareBool(have, shape, Py_EQ);
        if (same > 0 && !has_formulas(from) && g->device != device)
            same = PyObject_RichCompareBool(g->device, device,
                                            Py_EQ); /* a program's own backward may have moved it */
        if (same) {
            Py_DECREF(shape);
            return same < 0 ? -1 : 0;
        }
    }
    PyObject *name = flb_node_name(from), *nr = PyLong_FromLong(i);
    PyObject *made = name && nr ? flb_library_call(fit_slow,
                                                   (PyObject *[]){*grad, shape, dtype, device, name, nr,
                                                                  has_formulas(from) ? Py_False : Py_True},
                                                   7)
                                : NULL;
    Py_DECREF(shape);
    Py_XDECREF(name);
    Py_XDECREF(nr);
    if (!made) return -1;
    if (!PyObject_TypeCheck(made, &FlbTensor_Type)) {
        Py_DECREF(made);
        return PyErr_SetString(PyExc_TypeError, "fit() returns a tensor"), -1;
    }
    Py_SETREF(*grad, made);
    return 0;
}

/* ---- anomaly mode -------------------------------------------------------------------------------------- */

int flb_anomaly_note(FlbNode *node) {
    PyObject *r = PyObject_CallOneArg(anomaly_note, (PyObject *)node);
    Py_XDECREF(r);
    return r ? 0 : -1;
}
int flb_anomaly_apply(FlbNode *node, PyObject **cts, PyObject **grads) {
    PyObject *args = PyTuple_New(node->n_outputs);
    for (int i = 0; args && i < node->n_outputs; i++)
        PyTuple_SET_ITEM(args, i, Py_NewRef(cts[i] ? cts[i] : Py_None));
    PyObject *got = args ? PyObject_CallFunctionObjArgs(anomaly_run, (PyObject *)node, args, NULL) : NULL;
    Py_XDECREF(args);
    if (!got) return -1;
    PyObject *fast = PySequence_Fast(got, "apply() returns a sequence");
    Py_DECREF(got);
    if (!fast) return -1;
    int bad = 0;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast) && i < node->n_edges; i++) {
        PyObject *g = PySequence_Fast_GET_ITEM(fast, i);
        if (g == Py_None) continue;
        if (!PyObject_TypeCheck(g, &FlbTensor_Type)) {
            PyErr_SetString(PyExc_TypeError, "a gradient is a tensor or None");
            bad = -1;
            break;
        }
        grads[i] = Py_NewRef(g);
    }
    Py_DECREF(fast);
    return bad;
}
static PyObject *py_anomaly(PyObject *m, PyObject *value) {
    int now = PyObject_IsTrue(value);
    if (now < 0) return NULL;
    flb_anomaly = now;
    Py_RETURN_NONE;
}
static PyObject *py_configure(PyObject *m, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"fit", "note", "run", NULL};
    PyObject *f, *n, *r;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO", names, &f, &n, &r)) return NULL;
    Py_XSETREF(fit_slow, Py_NewRef(f));
    Py_XSETREF(anomaly_note, Py_NewRef(n));
    Py_XSETREF(anomaly_run, Py_NewRef(r));
    Py_RETURN_NONE;
}
PyMethodDef flb_apply_functions[] = {
    {"set_anomaly", py_anomaly, METH_O,
     "set_anomaly(on): whether nodes remember where they were made (called by autograd/anomaly.py)."},
    {"configure_apply", (PyCFunction)(void (*)(void))py_configure, METH_VARARGS | METH_KEYWORDS,
     "Python's part of running a node."},
    {NULL}};
