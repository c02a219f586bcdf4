/* Fake tensors: what an operator makes of shapes is remembered by the description of its arguments, so that
 * the shape rule (Python) runs once for each. Only for operators without effects, on tensors of one
 * FakeTensorMode that has no symbolic sizes: the result then follows from the description alone. */
#include "core/calls.h"
#include "autograd/autograd.h"

static PyTypeObject *fake_class = NULL, *fake_mode_class = NULL;
static PyObject *str_shape_env = NULL;

/* The mode whose tensors the call is about, borrowed; NULL: not a call for this file. */
static PyObject *mode_of(FlbOperator *op, PyObject *const *values) {
    PyObject *mode = NULL;
    for (int i = 0; i < op->n_parameters && !mode; i++) {
        PyObject *o = values[i];
        if (PyList_CheckExact(o) && PyList_GET_SIZE(o)) o = PyList_GET_ITEM(o, 0);
        if (Py_TYPE(o) == fake_class) mode = ((FlbTensor *)o)->payload;
    }
    if (!mode || Py_TYPE(mode) != fake_mode_class) return NULL;
    FlbLayer *top = flb_stack(FLB_DISPATCH_MODES);
    return !top || top->value == mode ? mode : NULL;
}
/* Every tensor of the description is of the very class: a subclass may dispatch otherwise. */
static int all_fake(const Description *d) {
    for (int i = 0; i < d->n_tensors; i++)
        if (Py_TYPE(d->tensors[i]) != fake_class) return 0;
    return 1;
}
static int plain_ints(PyObject *tuple) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
        if (!PyLong_CheckExact(PyTuple_GET_ITEM(tuple, i))) return 0;
    return 1;
}
/* A view is told what it is a view of: the base may come to require a gradient. */
static int note_view(FlbOperator *op, FlbTensor *t, PyObject *const *values, Py_ssize_t which) {
    PyObject *item = which < 0 ? Py_NewRef(Py_None) : PyLong_FromSsize_t(which);
    PyObject *rest = item ? PyTuple_New(op->n_parameters - 1) : NULL;
    int r = -1;
    if (rest) {
        for (int i = 1; i < op->n_parameters; i++) PyTuple_SET_ITEM(rest, i - 1, Py_NewRef(values[i]));
        r = flb_note_view(t, (FlbTensor *)values[0], (PyObject *)op, rest, item);
    }
    Py_XDECREF(rest);
    Py_XDECREF(item);
    return r;
}
/* facts: (shape, strides, dtype, device, offset, shares the first tensor's storage, is a view of it). which:
 * its place in a list of results, or -1. */
static PyObject *make(FlbOperator *op, PyObject *facts, PyObject *mode, FlbTensor *first,
                      PyObject *const *values, Py_ssize_t which) {
    FlbTensor *t = flb_alloc(fake_class);
    if (!t) return NULL;
    t->shape = Py_NewRef(PyTuple_GET_ITEM(facts, 0));
    t->strides = Py_NewRef(PyTuple_GET_ITEM(facts, 1));
    t->dtype = Py_NewRef(PyTuple_GET_ITEM(facts, 2));
    t->device = Py_NewRef(PyTuple_GET_ITEM(facts, 3));
    t->offset = Py_NewRef(PyTuple_GET_ITEM(facts, 4));
    t->payload = Py_NewRef(mode);
    if (PyTuple_GET_ITEM(facts, 5) == Py_True) {
        FlbStorage *s = flb_storage(first);
        if (!s) {
            Py_DECREF(t);
            return NULL;
        }
        t->storage = (FlbStorage *)Py_NewRef(s);
    }
    if (PyTuple_GET_ITEM(facts, 6) == Py_True && note_view(op, t, values, which) < 0) Py_CLEAR(t);
    return (PyObject *)t;
}
/* The remembered result for these arguments: one tensor, or a tuple or list of tensors and None. */
static PyObject *make_all(FlbOperator *op, PyObject *facts, PyObject *mode, FlbTensor *first,
                          PyObject *const *values) {
    if (PyTuple_GET_SIZE(facts) != 2) return make(op, facts, mode, first, values, -1);
    PyObject *each = PyTuple_GET_ITEM(facts, 0);
    Py_ssize_t n = PyTuple_GET_SIZE(each);
    PyObject *out = PyTuple_New(n);
    for (Py_ssize_t i = 0; out && i < n; i++) {
        PyObject *f = PyTuple_GET_ITEM(each, i);
        PyObject *o = f == Py_None ? Py_NewRef(f) : make(op, f, mode, first, values, i);
        if (!o) Py_CLEAR(out);
        else PyTuple_SET_ITEM(out, i, o);
    }
    if (out && PyTuple_GET_ITEM(facts, 1) == Py_True) Py_SETREF(out, PySequence_List(out));
    return out;
}
/* The facts of a result that follows from the description; NULL without an exception: it doesn't. */
static PyObject *facts_of(PyObject *r, const Description *d, PyObject *mode, PyObject *const *values) {
    FlbTensor *t = (FlbTensor *)r;
    if (Py_TYPE(r) != fake_class) return NULL;
    for (int i = 0; i < d->n_tensors; i++)
        if (d->tensors[i] == t) return NULL;
    if (t->payload != mode || !t->shape || !t->strides || !t->offset || !plain_ints(t->shape) ||
        !plain_ints(t->strides) || !PyLong_CheckExact(t->offset))
        return NULL;
    int viewed = flb_view(t) != NULL && values[0] == (PyObject *)d->tensors[0];
    int shared = t->storage && t->storage == d->tensors[0]->storage;
    return PyTuple_Pack(7, t->shape, t->strides, t->dtype, t->device, t->offset, shared ? Py_True : Py_False,
                        viewed ? Py_True : Py_False);
}
static PyObject *all_facts(PyObject *r, const Description *d, PyObject *mode, PyObject *const *values) {
    int list = PyList_CheckExact(r);
    if (!list && !PyTuple_CheckExact(r)) return facts_of(r, d, mode, values);
    Py_ssize_t n = PySequence_Fast_GET_SIZE(r);
    PyObject *each = PyTuple_New(n), *out = NULL;
    for (Py_ssize_t i = 0; each && i < n; i++) {
        PyObject *o = PySequence_Fast_GET_ITEM(r, i),
                 *f = o == Py_None ? Py_NewRef(o) : facts_of(o, d, mode, values);
        for (Py_ssize_t k = 0; f && o != Py_None && k < i; k++)
            if (PySequence_Fast_GET_ITEM(r, k) == o) Py_CLEAR(f); /* one tensor twice */
        if (!f) Py_CLEAR(each);
        else PyTuple_SET_ITEM(each, i, f);
    }
    if (each) out = PyTuple_Pack(2, each, list ? Py_True : Py_False);
    Py_XDECREF(each);
    return out;
}
int flb_fake_call(FlbOperator *op, uint32_t keys, PyObject *const *values, PyObject **result) {
    PyObject *mode = fake_class ? mode_of(op, values) : NULL;
    if (!mode) return 0;
    PyObject *env = PyObject_GetAttr(mode, str_shape_env);
    if (!env) return -1;
    Py_DECREF(env);
    Description d;
    uint64_t hash;
    if (env != Py_None || !flb_describe(&d, mode, 0, 0, values, op->n_parameters) || !all_fake(&d)) return 0;
    CallPlanEntry *found = flb_call_plan_find(&op->shapes, &d, &hash);
    if (found && found->call_plan) {
        PyObject *facts = Py_NewRef(found->call_plan);
        *result = make_all(op, facts, mode, d.tensors[0], values);
        Py_DECREF(facts);
        return *result ? 1 : -1;
    }
    PyObject *args, *kwargs, *held = flb_description_hold(&d);
    if (!held) return -1;
    if (flb_unbind(op, values, &args, &kwargs) < 0) return Py_DECREF(held), -1;
    Py_INCREF(mode);
    PyObject *r = flb_python_key(op, keys, args, kwargs);
    Py_DECREF(args);
    Py_DECREF(kwargs);
    int status = r ? 1 : -1;
    if (r) {
        PyObject *facts = all_facts(r, &d, mode, values);
        if (facts ? flb_call_plan_insert(&op->shapes, &d, hash, facts) < 0 : PyErr_Occurred() != NULL) {
            Py_CLEAR(r);
            status = -1;
        }
        Py_XDECREF(facts);
    }
    Py_DECREF(mode);
    Py_DECREF(held);
    *result = r;
    return status;
}
static PyObject *set_fake(PyObject *m, PyObject *args) {
    PyObject *tensor, *mode;
    if (!PyArg_ParseTuple(args, "O!O!", &PyType_Type, &tensor, &PyType_Type, &mode)) return NULL;
    if (!PyType_IsSubtype((PyTypeObject *)tensor, &FlbTensor_Type))
        return PyErr_SetString(PyExc_TypeError, "a Tensor class is needed"), NULL;
    Py_XSETREF(fake_class, (PyTypeObject *)Py_NewRef(tensor));
    Py_XSETREF(fake_mode_class, (PyTypeObject *)Py_NewRef(mode));
    Py_RETURN_NONE;
}
static PyMethodDef functions[] = {{"set_fake", set_fake, METH_VARARGS,
                                   "set_fake(FakeTensor, FakeTensorMode): the classes whose calls are "
                                   "remembered; a tensor's _payload is its mode."},
                                  {NULL}};
int flb_init_fake(PyObject *module) {
    if (!(str_shape_env = PyUnicode_InternFromString("shape_env"))) return -1;
    return PyModule_AddFunctions(module, functions);
}
