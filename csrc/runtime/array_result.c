/* The call of a graph that gives one of its outputs alone: an array, without a tensor of it and without the
 * list. */
#include "runtime/graph.h"

typedef struct {
    PyObject_HEAD
    PyObject *graph; /* a Graph, whose output `output` is an OUT_SLOT */
    int output, scalar;
    vectorcallfunc call;
} ArrayResult;

static PyObject *array_result_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    ArrayResult *r = (ArrayResult *)self;
    Graph *g = (Graph *)r->graph;
    if (PyVectorcall_NARGS(nargsf) != g->ninputs || (kwnames && PyTuple_GET_SIZE(kwnames)))
        return flb_graph_call(r->graph, args, nargsf, kwnames); /* the error */
    PyObject *array = flb_graph_array(g, args, r->output);
    return array && r->scalar ? PyArray_Return((PyArrayObject *)array) : array;
}

PyObject *flb_array_result(PyObject *graph, PyObject *args) {
    Graph *g = (Graph *)graph;
    int output, scalar;
    if (!PyArg_ParseTuple(args, "ip", &output, &scalar)) return NULL;
    if (output < 0 || output >= g->noutputs)
        return PyErr_SetString(PyExc_ValueError, "array_result: no such output"), NULL;
    if (g->outputs[output].kind != OUT_SLOT) Py_RETURN_NONE;
    ArrayResult *r = PyObject_GC_New(ArrayResult, &FlbArrayResult_Type);
    if (!r) return NULL;
    r->graph = Py_NewRef(graph), r->output = output, r->scalar = scalar;
    r->call = array_result_call;
    PyObject_GC_Track(r);
    return (PyObject *)r;
}

/* A cycle goes through the graph's dictionary: the graph stays, for calls read it. */
static int array_result_traverse(ArrayResult *r, visitproc visit, void *arg) {
    Py_VISIT(r->graph);
    return 0;
}
static void array_result_dealloc(ArrayResult *r) {
    PyObject_GC_UnTrack(r);
    Py_DECREF(r->graph);
    PyObject_GC_Del(r);
}
static PyMemberDef members[] = {
    {"graph", T_OBJECT, offsetof(ArrayResult, graph), READONLY, "the graph that is called"},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(ArrayResult, call), READONLY},
    {NULL},
};
PyTypeObject FlbArrayResult_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._runtime.ArrayResult",
    .tp_doc =
        "What Graph.array_result gives: called with the graph's inputs it returns one output as an array.",
    .tp_basicsize = sizeof(ArrayResult),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_dealloc = (destructor)array_result_dealloc,
    .tp_traverse = (traverseproc)array_result_traverse,
    .tp_call = PyVectorcall_Call,
    .tp_members = members,
    .tp_vectorcall_offset = offsetof(ArrayResult, call),
};
