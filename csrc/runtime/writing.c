/* The call of a graph that makes new values of some of its inputs: they are put into place, or are there
 * already. */
#include "runtime/graph.h"

typedef struct {
    PyObject_HEAD
    PyObject *graph;   /* a Graph */
    PyObject *written; /* positions of the inputs whose new values are its first outputs; None: the graph
                          wrote it itself */
    PyObject *asked;   /* positions of inputs of which autograd is asked whether they may be written */
    PyObject *outputs; /* positions of results among its outputs; -1 - i: input i */
    PyObject *before;  /* before() is called when the graph has run and nothing is written yet */
    PyObject *copy;    /* copy(tensor, value) writes one */
    PyObject *dict;
    vectorcallfunc call;
} Writing;

static PyObject *str_bump, *str_check, *str_asked;

/* A new reference to input `x` as a tensor. */
static PyObject *as_tensor(PyObject *x) { return PyArray_Check(x) ? flb_api->from_array(x) : Py_NewRef(x); }

static int check(PyObject *x) {
    if (PyArray_Check(x) && PyArray_ISWRITEABLE((PyArrayObject *)x)) return 0;
    PyObject *tensor = as_tensor(x), *done = tensor ? PyObject_CallMethodNoArgs(tensor, str_check) : NULL;
    Py_XDECREF(tensor);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Whether a new value of an array can be copied past the operators: nobody would notice the call. */
static int is_plain(PyObject *value) {
    FlbTensor *t = (FlbTensor *)value;
    FlbTls *tls = flb_api->tls();
    return PyObject_TypeCheck(value, flb_api->tensor_type) && t->array && PyArray_Check(t->array) &&
        !t->keys && !(t->flags & FLB_REQUIRES_GRAD) && !tls->function_modes && !tls->dispatch_modes &&
        !*flb_api->events;
}

static int put(Writing *w, PyObject *x, PyObject *value) {
    if (PyArray_CheckExact(x) && value != Py_None && is_plain(value))
        return PyArray_CopyInto((PyArrayObject *)x, (PyArrayObject *)((FlbTensor *)value)->array);
    if (value == Py_None && PyArray_Check(x)) return 0; /* nobody counts writes to an array */
    PyObject *tensor = as_tensor(x), *done = NULL;
    if (tensor)
        done = value == Py_None ? PyObject_CallMethodNoArgs(tensor, str_bump)
                                : PyObject_CallFunctionObjArgs(w->copy, tensor, value, NULL);
    Py_XDECREF(tensor);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static PyObject *writing_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Writing *w = (Writing *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf), count = PyTuple_GET_SIZE(w->outputs);
    if (n != ((Graph *)w->graph)->ninputs || (kwnames && PyTuple_GET_SIZE(kwnames)))
        return flb_graph_call(w->graph, args, nargsf, kwnames); /* the error */
#define AT(tuple, k) PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, k))
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(w->asked); k++) {
        PyObject *x = args[AT(w->asked, k)],
                 *done = PyArray_Check(x) ? Py_NewRef(Py_None) : PyObject_CallMethodNoArgs(x, str_asked);
        if (!done) return NULL;
        Py_DECREF(done);
    }
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(w->written); k++)
        if (check(args[AT(w->written, k)]) < 0) return NULL;
    PyObject *outs = flb_graph_call(w->graph, args, (size_t)n, NULL), *told, *result = NULL;
    if (!outs) return NULL;
    if (!(told = PyObject_CallNoArgs(w->before))) goto done;
    Py_DECREF(told);
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(w->written); k++)
        if (put(w, args[AT(w->written, k)], PyList_GET_ITEM(outs, k)) < 0) goto done;
    if (!(result = PyTuple_New(count))) goto done;
    for (Py_ssize_t k = 0; k < count; k++) {
        Py_ssize_t at = AT(w->outputs, k);
        PyTuple_SET_ITEM(result, k, Py_NewRef(at < 0 ? args[-1 - at] : PyList_GET_ITEM(outs, at)));
    }
done:
    Py_DECREF(outs);
    return result;
}

/* Whether all of a tuple are integers from `least` to below `end`. */
static int positions(PyObject *tuple, Py_ssize_t least, Py_ssize_t end) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(tuple); k++) {
        Py_ssize_t at = AT(tuple, k);
        if (at == -1 && PyErr_Occurred()) return 0;
        if (at < least || at >= end)
            return PyErr_SetString(PyExc_ValueError, "Writing: no such input or output"), 0;
    }
    return 1;
}

static PyObject *writing_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *graph, *written, *asked, *outputs, *before, *copy;
    if (!PyArg_ParseTuple(args, "O!O!O!O!OO", &FlbGraph_Type, &graph, &PyTuple_Type, &written, &PyTuple_Type,
                          &asked, &PyTuple_Type, &outputs, &before, &copy))
        return NULL;
    Graph *g = (Graph *)graph;
    if (PyTuple_GET_SIZE(written) > g->noutputs)
        return PyErr_SetString(PyExc_ValueError,
                               "Writing: a graph has an output for each input that is written"),
               NULL;
    if (!positions(written, 0, g->ninputs) || !positions(asked, 0, g->ninputs) ||
        !positions(outputs, -(Py_ssize_t)g->ninputs, g->noutputs))
        return NULL;
    Writing *w = (Writing *)type->tp_alloc(type, 0);
    if (!w) return NULL;
    w->graph = Py_NewRef(graph), w->written = Py_NewRef(written), w->outputs = Py_NewRef(outputs),
    w->asked = Py_NewRef(asked);
    w->before = Py_NewRef(before), w->copy = Py_NewRef(copy);
    w->call = writing_call;
    return (PyObject *)w;
}
static int writing_traverse(Writing *w, visitproc visit, void *arg) {
    Py_VISIT(w->graph);
    Py_VISIT(w->before);
    Py_VISIT(w->copy);
    Py_VISIT(w->dict);
    return 0;
}
/* A cycle goes through the dictionary. The objects that a call reads stay. */
static int writing_clear(Writing *w) {
    Py_CLEAR(w->dict);
    return 0;
}
static void writing_dealloc(Writing *w) {
    PyObject_GC_UnTrack(w);
    writing_clear(w);
    Py_XDECREF(w->graph);
    Py_XDECREF(w->written);
    Py_XDECREF(w->asked);
    Py_XDECREF(w->outputs);
    Py_XDECREF(w->before);
    Py_XDECREF(w->copy);
    Py_TYPE(w)->tp_free((PyObject *)w);
}
/* Arrays are taken as tensors are where none of them is handed back. */
static PyObject *takes_arrays(Writing *w, void *unused) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(w->outputs); k++)
        if (AT(w->outputs, k) < 0) Py_RETURN_FALSE;
    return PyObject_GetAttrString(w->graph, "takes_arrays");
}
static PyObject *calls_python(Writing *w, void *unused) {
    return PyObject_GetAttrString(w->graph, "calls_python");
}
static PyObject *calls_quietly(Writing *w, void *unused) {
    return PyObject_GetAttrString(w->graph, "calls_quietly");
}
static PyGetSetDef getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict},
    {"takes_arrays", (getter)takes_arrays, NULL, "whether its inputs may be ndarrays"},
    {"calls_python", (getter)calls_python, NULL, "whether the graph may run Python"},
    {"calls_quietly", (getter)calls_quietly, NULL, "see Graph.calls_quietly"},
    {NULL},
};
static PyMemberDef members[] = {
    {"graph", T_OBJECT, offsetof(Writing, graph), READONLY, "the graph that is called"},
    {"__dictoffset__", T_PYSSIZET, offsetof(Writing, dict), READONLY},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Writing, call), READONLY},
    {NULL},
};
PyTypeObject FlbWriting_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._runtime.Writing",
    .tp_doc = "Writing(graph, written, asked, outputs, before, copy): calls a graph, and puts new values of "
              "inputs into place.",
    .tp_basicsize = sizeof(Writing),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = writing_new,
    .tp_dealloc = (destructor)writing_dealloc,
    .tp_traverse = (traverseproc)writing_traverse,
    .tp_clear = (inquiry)writing_clear,
    .tp_call = PyVectorcall_Call,
    .tp_members = members,
    .tp_getset = getset,
    .tp_vectorcall_offset = offsetof(Writing, call),
    .tp_dictoffset = offsetof(Writing, dict),
};
int flb_init_writing(PyObject *module) {
    str_bump = PyUnicode_InternFromString("_bump_version");
    str_check = PyUnicode_InternFromString("_check_writable");
    str_asked = PyUnicode_InternFromString("_check_written");
    if (!str_bump || !str_check || !str_asked || PyType_Ready(&FlbWriting_Type) < 0) return -1;
    return PyModule_AddObjectRef(module, "Writing", (PyObject *)&FlbWriting_Type);
}
