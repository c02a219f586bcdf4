/* Composites without Python: the body of a composite that has no call plan is recorded at the second call of
 * one description (program.h), and run as a program of operators at the ones after. Each operator of it is
 * called as the body would call it, so autograd records what it should.
 *
 * Invariant: a body may look at everything its description tells: kinds, dtypes, shapes, strides, values of
 * the other arguments, which tensors are the same, which ask for gradients, whether they are recorded. What
 * else Python reads of a tensor (csrc/core/tensor_attributes.c: its data, its place) spoils the recording. */
#include "autograd/autograd.h"
#include "core/program.h"

enum { RETURNS_ONE, RETURNS_TUPLE, RETURNS_LIST, RETURNS_NONE, MOST_OUTPUTS = 32 };
enum { ABOVE_BACKEND = FLB_PYTHON | FLB_FUNCTIONALIZE | FLB_AUTOGRAD | FLB_FORWARD | FLB_TRANSFORM };

typedef struct {
    PyObject_HEAD
    FlbCode code;
    int form;
} DecomposedCall;

static void decomposed_dealloc(DecomposedCall *o) {
    flb_code_free(&o->code);
    PyObject_Free(o);
}
/* NOTE: not collected: it refers to operators and constants, which live for ever or refer to nothing. */
static PyTypeObject DecomposedCall_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._C.DecomposedCall",
    .tp_basicsize = sizeof(DecomposedCall),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "What the body of a composite does for calls of one description.",
    .tp_dealloc = (destructor)decomposed_dealloc,
};

static int put(Description *d, int64_t w) { return d->n < R_KEY ? (d->words[d->n++] = w, 1) : 0; }
/* 1 described, 0 not, -1 exception. */
static int describe(Description *d, PyObject *const *values, Py_ssize_t n) {
    if (!flb_describe(d, NULL, 0, 0, values, n) || d->n_tensors > 24) return 0;
    int64_t asks = 0;
    for (int i = 0; i < d->n_tensors; i++) {
        FlbTensor *t = d->tensors[i];
        if (!flb_plain((PyObject *)t)) return 0;
        Py_INCREF(t);
        int r = flb_requires_grad(
            t); /* NOTE: a view that looks for its history may run Python, which may change a list */
        Py_DECREF(t);
        if (r < 0) return -1;
        asks |= (int64_t)r << i;
        for (int k = 0; k < i; k++)
            if (d->tensors[k] == t && !put(d, i << 8 | k)) return 0;
    }
    FlbTls *s = flb_tls();
    return put(d, asks << 16 | s->inference << 9 | s->grad_enabled << 8 | (s->excluded & FLB_ALL_KEYS));
}

static PyObject *results_of(DecomposedCall *o, PyObject **outputs) {
    if (o->form == RETURNS_NONE) return Py_NewRef(Py_None);
    if (o->form == RETURNS_ONE) return Py_NewRef(outputs[0] ? outputs[0] : Py_None);
    PyObject *all = o->form == RETURNS_LIST ? PyList_New(o->code.n_outputs) : PyTuple_New(o->code.n_outputs);
    for (int i = 0; all && i < o->code.n_outputs; i++) {
        PyObject *x = Py_NewRef(outputs[i] ? outputs[i] : Py_None);
        if (o->form == RETURNS_LIST) PyList_SET_ITEM(all, i, x);
        else PyTuple_SET_ITEM(all, i, x);
    }
    return all;
}
/* The program of a recording whose body returned `got`; None when there is none. */
static PyObject *keep(FlbRecorder *r, PyObject *got) {
    int outputs[MOST_OUTPUTS], n = 0, form = RETURNS_ONE;
    PyObject **items = &got;
    if (got == Py_None) form = RETURNS_NONE;
    else if (PyObject_TypeCheck(got, &FlbTensor_Type)) n = 1;
    else if (PyTuple_CheckExact(got) || PyList_CheckExact(got)) {
        form = PyList_CheckExact(got) ? RETURNS_LIST : RETURNS_TUPLE;
        items = PySequence_Fast_ITEMS(got);
        if (PySequence_Fast_GET_SIZE(got) > MOST_OUTPUTS) return Py_NewRef(Py_None);
        n = (int)PySequence_Fast_GET_SIZE(got);
    } else {
        return Py_NewRef(Py_None);
    }
    if (r->unsound) return Py_NewRef(Py_None);
    for (int i = 0; i < n; i++) {
        outputs[i] = items[i] == Py_None                    ? -1
            : PyObject_TypeCheck(items[i], &FlbTensor_Type) ? flb_recorder_slot(r, items[i])
                                                            : -2;
        if (PyErr_Occurred()) return NULL;
        if (outputs[i] < 0 && items[i] != Py_None) return Py_NewRef(Py_None); /* it came from elsewhere */
    }
    DecomposedCall *o = PyObject_New(DecomposedCall, &DecomposedCall_Type);
    if (!o) return NULL;
    memset(&o->code, 0, sizeof o->code);
    o->form = form;
    if (flb_code_take(&o->code, r, outputs, n) < 0) Py_CLEAR(o);
    return (PyObject *)o;
}
/* Runs the body and keeps what it does. */
static PyObject *record(FlbOperator *op, PyObject *body, Description *d, uint64_t hash,
                        PyObject *const *values) {
    PyObject *held = flb_description_hold(d), *got = NULL, *made = NULL;
    FlbRecorder r;
    int ready = held && flb_recorder_init(&r, FLB_BACKEND | FLB_AUTOGRAD) == 0;
    for (int i = 0; ready && i < d->n_tensors; i++)
        ready = flb_recorder_input(&r, (PyObject *)d->tensors[i]) == 0;
    if (ready) {
        flb_recorder_start(&r);
        got = PyObject_Vectorcall(body, values, op->n_parameters, NULL);
        flb_recorder_stop(&r);
        made = got ? keep(&r, got) : NULL;
        if (got && (!made || (op->ready && flb_call_plan_insert(&op->decomposed, d, hash, made) < 0)))
            Py_CLEAR(got);
    }
    if (held) flb_recorder_free(&r);
    Py_XDECREF(made);
    Py_XDECREF(held);
    return got;
}
static PyObject *run(DecomposedCall *o, const Description *d) {
    PyObject *outputs[MOST_OUTPUTS], *result = NULL;
    if (flb_code_run(&o->code, (PyObject *const *)d->tensors, outputs, 0) == 0)
        result = results_of(o, outputs);
    for (int i = 0; i < o->code.n_outputs; i++) Py_XDECREF(outputs[i]);
    return result;
}
static void forget_view(PyObject *o) {
    if (PyObject_TypeCheck(o, &FlbTensor_Type) && flb_view((FlbTensor *)o))
        Py_CLEAR(((FlbTensor *)o)->autograd);
}

int flb_decomposed_call(FlbOperator *op, PyObject *body, int inside, PyObject *const *values,
                        PyObject **result) {
    FlbTls *s = flb_tls();
    if (s->function_modes | s->dispatch_modes | s->transforms | (s->included & ~FLB_RECORD)) return 0;
    Description d;
    uint64_t hash;
    uint32_t excluded = s->excluded;
    if (inside) s->excluded |= ABOVE_BACKEND;
    int status = describe(&d, values, op->n_parameters);
    if (status == 1) {
        CallPlanEntry *found = flb_call_plan_find(&op->decomposed, &d, &hash);
        PyObject *known = found ? found->call_plan : NULL;
        if (!found) {
            status = flb_call_plan_insert(&op->decomposed, &d, hash, NULL);
        } else if (known == Py_None) {
            status = 0;
        } else {
            Py_XINCREF(known);
            Py_INCREF(body);
            *result = known ? run((DecomposedCall *)known, &d) : record(op, body, &d, hash, values);
            Py_XDECREF(known);
            Py_DECREF(body);
            status = *result ? 1 : -1;
        }
    }
    s->excluded = excluded;
    if (status == 1 && inside) {
        /* The view operators of a body leave their relation on the tensors that they return; above,
         * the operator's result is a tensor of its own. */
        if (PyTuple_Check(*result) || PyList_Check(*result))
            for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(*result); i++)
                forget_view(PySequence_Fast_GET_ITEM(*result, i));
        else forget_view(*result);
    }
    return status;
}
int flb_init_decomposed(PyObject *module) { return PyType_Ready(&DecomposedCall_Type); }
