/* The call of a graph that gives some of its outputs as programs of NumPy's have them, without tensors of
 * them and without the list. */
#include "runtime/graph.h"

typedef struct {
    PyObject_HEAD
    PyObject *graph; /* a Graph, of which each output that is wanted is an OUT_SLOT */
    Wanted wanted;
    vectorcallfunc call;
} ArrayResult;

static PyObject *array_result_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    ArrayResult *r = (ArrayResult *)self;
    Graph *g = (Graph *)r->graph;
    if (PyVectorcall_NARGS(nargsf) != g->ninputs || (kwnames && PyTuple_GET_SIZE(kwnames)))
        return flb_graph_call(r->graph, args, nargsf, kwnames); /* the error */
    return flb_graph_given(g, args, &r->wanted);
}

/* Python's number of an array without dimensions. */
static PyObject *number_of(PyArrayObject *array) { return PyArray_GETITEM(array, PyArray_BYTES(array)); }

/* The integer that a float, or a complex number, stands for. Steals the number. */
static PyObject *integer_of(PyObject *number) {
    if (PyComplex_Check(number)) {
        Py_SETREF(number, PyFloat_FromDouble(PyComplex_RealAsDouble(number)));
        if (!number) return NULL;
    }
    PyObject *integer = PyNumber_Long(number);
    Py_DECREF(number);
    return integer;
}

/* An output as it is wanted. `flag`: the one that tells whose number it is, or NULL. */
PyObject *flb_as_given(const Given *given, PyArrayObject *array, PyArrayObject *flag) {
    long whose = -1;
    if (flag) {
        PyObject *told = number_of(flag);
        whose = told ? PyLong_AsLong(told) : -1;
        Py_XDECREF(told);
        if (PyErr_Occurred()) return NULL;
    }
    if (given->form == FORM_ARRAY) return Py_NewRef((PyObject *)array);
    if (given->form == FORM_SCALAR || whose == 0)
        return PyArray_Return((PyArrayObject *)Py_NewRef((PyObject *)array));
    PyObject *number = number_of(array);
    return number && whose > 1 ? integer_of(number) : number;
}

PyObject *flb_array_result(PyObject *graph, PyObject *args) {
    Graph *g = (Graph *)graph;
    PyObject *outputs, *forms, *flags;
    Wanted wanted = {0};
    if (!PyArg_ParseTuple(args, "O!O!O!p", &PyTuple_Type, &outputs, &PyTuple_Type, &forms, &PyTuple_Type,
                          &flags, &wanted.packed))
        return NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(outputs);
    if (n > MOST_WANTED) Py_RETURN_NONE;
    if (PyTuple_GET_SIZE(forms) != n || PyTuple_GET_SIZE(flags) != n || (!wanted.packed && n != 1))
        return PyErr_SetString(PyExc_ValueError, "array_result: a form and a flag for each output"), NULL;
    int whole = 1;
    for (; wanted.n < n; wanted.n++) {
#define AT(tuple) (int)PyLong_AsLong(PyTuple_GET_ITEM(tuple, wanted.n))
        Given item = {AT(outputs), AT(forms), AT(flags)};
        if (PyErr_Occurred()) return NULL;
        if (item.output < 0 || item.output >= g->noutputs || item.form < 0 || item.form >= FORM_COUNT ||
            item.flag < -1 || item.flag >= g->noutputs)
            return PyErr_SetString(PyExc_ValueError, "array_result: no such output or form"), NULL;
        whole &= g->outputs[item.output].kind == OUT_SLOT &&
            (item.flag < 0 || g->outputs[item.flag].kind == OUT_SLOT);
        wanted.items[wanted.n] = item;
    }
    if (!whole) Py_RETURN_NONE;
    ArrayResult *r = PyObject_GC_New(ArrayResult, &FlbArrayResult_Type);
    if (!r) return NULL;
    r->graph = Py_NewRef(graph), r->wanted = wanted;
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
        "What Graph.array_result gives: called with the graph's inputs it returns outputs as NumPy has them.",
    .tp_basicsize = sizeof(ArrayResult),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_dealloc = (destructor)array_result_dealloc,
    .tp_traverse = (traverseproc)array_result_traverse,
    .tp_call = PyVectorcall_Call,
    .tp_members = members,
    .tp_vectorcall_offset = offsetof(ArrayResult, call),
};
