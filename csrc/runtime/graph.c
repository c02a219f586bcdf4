/* The type of a compiled graph. */
#include "runtime/reading.h"

static PyObject *graph_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"ninputs",  "frame",       "stages", "slots", "steps",    "outputs", "arena",
                            "on_error", "on_mismatch", "info",   "light", "together", NULL};
    PyObject *lists[TABLES], *tables[TABLES] = {NULL}, *on_error, *on_mismatch, *info = Py_None,
                             *together = NULL;
    int ninputs, arena, light = 0, failed = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "iO!O!O!O!O!iOO|OpO!", names, &ninputs, &PyList_Type,
                                     &lists[FRAME], &PyList_Type, &lists[STAGES], &PyList_Type, &lists[SLOTS],
                                     &PyList_Type, &lists[STEPS], &PyList_Type, &lists[OUTPUTS], &arena,
                                     &on_error, &on_mismatch, &info, &light, &PyList_Type, &together))
        return NULL;
    Graph *g = (Graph *)type->tp_alloc(type, 0);
    if (!g) return NULL;
    g->call = flb_graph_call;
    g->ninputs = ninputs, g->arena = arena, g->light = light;
    g->on_error = Py_NewRef(on_error), g->on_mismatch = Py_NewRef(on_mismatch), g->info = Py_NewRef(info);
    for (int i = 0; i < TABLES && !failed; i++)
        failed = !(tables[i] = PySequence_Tuple(lists[i])); /* reading them may run Python */
    failed = failed || flb_read_tables(tables, together, g) < 0;
    for (int i = 0; i < TABLES; i++) Py_XDECREF(tables[i]);
    if (failed) Py_CLEAR(g);
    return (PyObject *)g;
}

static void free_step(Step *s) {
    for (int j = 0; s->parts && j < s->nargs; j++) Py_XDECREF(s->parts[j].layout.descr);
    for (int j = 0; s->rows && j < s->rows->nsteps; j++) free_step(&s->rows->steps[j]);
    PyMem_Free(s->rows);
    PyMem_Free(s->parts);
    PyMem_Free(s->args);
    PyMem_Free(s->results);
    PyMem_Free(s->numbers);
    Py_XDECREF(s->callable);
    Py_XDECREF(s->native);
}

static void graph_dealloc(Graph *g) {
    PyObject_GC_UnTrack(g);
    if (g->weakrefs) PyObject_ClearWeakRefs((PyObject *)g);
    for (int i = 0; i < g->nstages; i++) {
        PyMem_Free(g->stages[i].binds);
        PyMem_Free(g->stages[i].code);
    }
    for (int i = 0; i < g->nslots; i++) {
        Py_XDECREF(g->slots[i].constant);
        Py_XDECREF(g->slots[i].layout.descr);
    }
    for (int i = 0; i < g->nsteps; i++) free_step(&g->steps[i]);
    for (int i = 0; i < g->noutputs; i++) {
        Py_XDECREF(g->outputs[i].layout.descr);
        Py_XDECREF(g->outputs[i].constant);
    }
    PyMem_Free(g->lives);
    PyMem_Free(g->stops);
    PyMem_Free(g->together);
    PyMem_Free(g->takes);
    PyMem_Free(g->gives);
    PyMem_Free(g->seconds);
    PyMem_Free(g->frame);
    PyMem_Free(g->stages);
    PyMem_Free(g->slots);
    PyMem_Free(g->steps);
    PyMem_Free(g->outputs);
    PyMem_Free(g->input_slot);
    Py_XDECREF(g->on_error);
    Py_XDECREF(g->on_mismatch);
    Py_XDECREF(g->info);
    Py_XDECREF(g->dict);
    Py_TYPE(g)->tp_free(g);
}

static int graph_traverse(Graph *g, visitproc visit, void *arg) {
    for (int i = 0; i < g->nsteps; i++) {
        Py_VISIT(g->steps[i].callable);
        Py_VISIT(g->steps[i].native);
    }
    Py_VISIT(g->on_error);
    Py_VISIT(g->on_mismatch);
    Py_VISIT(g->info);
    Py_VISIT(g->dict);
    return 0;
}

static int graph_clear(Graph *g) {
    for (int i = 0; i < g->nsteps; i++) {
        Py_CLEAR(g->steps[i].callable);
        Py_CLEAR(g->steps[i].native);
    }
    Py_CLEAR(g->on_mismatch);
    Py_CLEAR(g->info);
    Py_CLEAR(g->dict);
    return 0;
}

static PyObject *get_arena(Graph *g, void *closure) { return PyLong_FromLongLong(g->frame[g->arena]); }

static PyObject *get_seconds(Graph *g, void *closure) {
    PyObject *list = PyList_New(g->nsteps);
    for (int i = 0; list && i < g->nsteps; i++) {
        PyObject *x = PyFloat_FromDouble(g->seconds ? g->seconds[i] : 0);
        if (!x) Py_CLEAR(list);
        else PyList_SET_ITEM(list, i, x);
    }
    return list;
}

static PyObject *takes_arrays(Graph *g, void *unused) {
    int whole = 1;
    for (int i = 0; i < g->noutputs; i++) whole &= g->outputs[i].kind != OUT_INPUT;
    return PyBool_FromLong(whole);
}

static PyObject *calls_python(Graph *g, void *unused) { return PyBool_FromLong(g->has_call); }
static PyObject *calls_quietly(Graph *g, void *unused) { return PyBool_FromLong(!g->has_telling_call); }

static PyGetSetDef graph_getset[] = {
    {"takes_arrays", (getter)takes_arrays, NULL,
     "whether its inputs may be ndarrays: none of them is among its outputs"},
    {"calls_python", (getter)calls_python, NULL, "whether a call of it may run Python besides its errors"},
    {"calls_quietly", (getter)calls_quietly, NULL,
     "whether all that it calls in Python has nothing to tell at a line of the program's, where that can run "
     "again"},
    {"step_seconds", (getter)get_seconds, NULL,
     "seconds that each step has taken while time_steps was on, over all calls"},
    {"arena_size", (getter)get_arena, NULL,
     "bytes of the intermediate results that don't live by themselves; 0 where sizes are symbolic"},
    {NULL},
};

static PyMethodDef graph_methods[] = {
    {"consume", flb_graph_consume, METH_O,
     "consume(list of the inputs) -> list of the outputs. The list is emptied; what nobody else holds is "
     "freed after its last use, and outputs get memory when "
     "they are made."},
    {"array_result", flb_array_result, METH_VARARGS,
     "array_result(outputs, forms, flags, packed) -> a call of the graph that gives these outputs in these "
     "forms "
     "(enums.Form), as a tuple if packed; flags: of each the output that tells whose number it is, or -1. "
     "None "
     "where an output isn't memory that the call fills"},
    {NULL},
};

static PyMemberDef graph_members[] = {
    {"info", T_OBJECT, offsetof(Graph, info), READONLY, "what the compiler keeps with the graph"},
    {"nsteps", T_INT, offsetof(Graph, nsteps), READONLY,
     "kernels, matrix products and Python calls a launch makes"},
    {"dynamic", T_INT, offsetof(Graph, dynamic), READONLY, "whether sizes are computed at each call"},
    {"__dictoffset__", T_PYSSIZET, offsetof(Graph, dict), READONLY},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Graph, call), READONLY},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Graph, weakrefs), READONLY},
    {NULL},
};

PyTypeObject FlbGraph_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._runtime.Graph",
    .tp_doc = "A compiled graph: called with its input tensors, returns the list of its outputs.",
    .tp_basicsize = sizeof(Graph),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_BASETYPE,
    .tp_new = graph_new,
    .tp_dealloc = (destructor)graph_dealloc,
    .tp_traverse = (traverseproc)graph_traverse,
    .tp_clear = (inquiry)graph_clear,
    .tp_call = PyVectorcall_Call,
    .tp_members = graph_members,
    .tp_methods = graph_methods,
    .tp_getset = graph_getset,
    .tp_vectorcall_offset = offsetof(Graph, call),
    .tp_dictoffset = offsetof(Graph, dict),
    .tp_weaklistoffset = offsetof(Graph, weakrefs),
};
