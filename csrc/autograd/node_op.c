/* OpNode: the backward of one operator call. */
#include "autograd/node.h"

static int op_node_traverse(FlbOpNode *n, visitproc visit, void *arg) {
    for (int i = 0; n->saved && i < n->plan->n_saves; i++) {
        Py_VISIT(n->saved[i].value);
        Py_VISIT(n->saved[i].aux);
        Py_VISIT(n->saved[i].forward);
    }
    return flb_node_traverse(&n->base, visit, arg);
}
void flb_op_node_drop(FlbOpNode *n) {
    for (int i = 0; n->saved && i < n->plan->n_saves; i++) flb_saved_clear(&n->saved[i]);
}
static int op_node_clear(FlbOpNode *n) {
    for (int i = 0; n->saved && i < n->plan->n_saves; i++) flb_saved_free(&n->saved[i]);
    return flb_node_clear(&n->base);
}
static void op_node_dealloc(FlbOpNode *n) {
    PyObject_GC_UnTrack(n);
    Py_TRASHCAN_BEGIN(n, op_node_dealloc) if (n->base.weakrefs) PyObject_ClearWeakRefs((PyObject *)n);
    for (int i = 0; n->saved && i < n->plan->n_saves; i++) flb_saved_free(&n->saved[i]);
    Py_CLEAR(n->lists);
    Py_CLEAR(n->rule);
    Py_CLEAR(n->plan);
    flb_node_free(&n->base); /* NOTE: a class given by flb_node_named is released by subtype_dealloc */
    Py_TRASHCAN_END
}
static int op_node_index(FlbOpNode *n, PyObject *name) {
    for (int i = 0; i < n->plan->n_saves; i++)
        if (PyUnicode_Compare(n->plan->saves[i].name, name) == 0) return i;
    return -1;
}
/* The place of the value that `name` behind `prefix` means; -1: none, -2 with an exception. */
static int op_node_named(FlbOpNode *n, PyObject *name, const char *prefix) {
    Py_ssize_t length = (Py_ssize_t)strlen(prefix), whole = PyUnicode_GET_LENGTH(name);
    PyObject *start = PyUnicode_FromString(prefix);
    int same = start ? (int)PyUnicode_Tailmatch(name, start, 0, PY_SSIZE_T_MAX, -1) : -1;
    Py_XDECREF(start);
    if (same <= 0) return same < 0 ? -2 : -1;
    PyObject *rest = PyUnicode_Substring(name, length, whole);
    int i = rest ? op_node_index(n, rest) : -2;
    Py_XDECREF(rest);
    return i;
}
static PyObject *op_node_getattro(FlbOpNode *n, PyObject *name) {
    PyObject *r = PyObject_GenericGetAttr((PyObject *)n, name);
    if (r || !PyErr_ExceptionMatches(PyExc_AttributeError) || !PyUnicode_Check(name)) return r;
    PyObject *kind, *error, *traceback;
    PyErr_Fetch(&kind, &error, &traceback);
    int i = op_node_named(n, name, "_saved_");
    if (i >= 0) r = flb_saved_value(&n->saved[i], &n->base, n->plan->saves[i].name, 1);
    else if (i == -1 && (i = op_node_named(n, name, "_raw_saved_")) >= 0) r = flb_raw_saved(n, i);
    if (r || PyErr_Occurred()) {
        Py_XDECREF(kind);
        Py_XDECREF(error);
        Py_XDECREF(traceback);
        return r;
    }
    PyErr_Restore(kind, error, traceback);
    return NULL;
}
static PyObject *op_node_dir(FlbOpNode *n, PyObject *unused) {
    PyObject *names = PyObject_CallMethod((PyObject *)&PyBaseObject_Type, "__dir__", "O", n),
             *list = names ? PySequence_List(names) : NULL;
    Py_XDECREF(names);
    if (list && flb_saved_names(n, list) < 0) Py_CLEAR(list);
    return list;
}
static PyMethodDef op_node_methods[] = {
    {"__dir__", (PyCFunction)op_node_dir, METH_NOARGS, "The attributes, those of saved values too."}, {NULL}};
static PyObject *op_node_op(FlbOpNode *n, void *c) { return Py_NewRef(n->rule->op); }
static PyObject *op_node_edged(FlbOpNode *n, void *c) {
    return PyLong_FromUnsignedLongLong(n->rule->inputs | n->needs);
}
static PyObject *op_node_saved(FlbOpNode *n, void *c) {
    PyObject *d = PyDict_New();
    for (int i = 0; d && i < n->plan->n_saves; i++) {
        PyObject *v = PyLong_FromLong(n->saved[i].kind);
        if (!v || PyDict_SetItem(d, n->plan->saves[i].name, v) < 0) Py_CLEAR(d);
        Py_XDECREF(v);
    }
    return d;
}
static PyMemberDef op_node_members[] = {
    {"needs", T_ULONGLONG, offsetof(FlbOpNode, needs), READONLY, "bit i: argument i asked for a gradient"},
    {NULL}};
static PyGetSetDef op_node_getset[] = {
    {"op", (getter)op_node_op, NULL, "The operator."},
    {"edged", (getter)op_node_edged, NULL, "bit i: argument i has an edge (one for each item of a list)"},
    {"saved", (getter)op_node_saved, NULL, "Names of what is kept, with the kind of each."},
    {NULL}};
PyTypeObject FlbOpNode_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._C.OpNode",
    .tp_basicsize = sizeof(FlbOpNode),
    .tp_base = &FlbNode_Type,
    .tp_flags =
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "The backward of one operator call. Saved values are attributes _saved_<name>, their places "
              "_raw_saved_<name>.",
    .tp_dealloc = (destructor)op_node_dealloc,
    .tp_traverse = (traverseproc)op_node_traverse,
    .tp_clear = (inquiry)op_node_clear,
    .tp_getattro = (getattrofunc)op_node_getattro,
    .tp_methods = op_node_methods,
    .tp_getset = op_node_getset,
    .tp_members = op_node_members,
};

/* Gives an OpNode, when Python first looks at it, the class named after its operator:
 * type(y.grad_fn).__name__ is AddBackward0. */
int flb_node_named(PyObject *node) {
    if (Py_TYPE(node) != &FlbOpNode_Type) return 0;
    FlbRule *rule = ((FlbOpNode *)node)->rule;
    if (!rule->node_type) {
        PyObject *ns = Py_BuildValue("{s:(),s:s}", "__slots__", "__module__", "flambeau.autograd");
        rule->node_type = ns
            ? PyObject_CallFunction((PyObject *)&PyType_Type, "O(O)O", rule->name, &FlbOpNode_Type, ns)
            : NULL;
        Py_XDECREF(ns);
    }
    if (!rule->node_type) return -1;
    Py_SET_TYPE(node, (PyTypeObject *)Py_NewRef(rule->node_type));
    return 0;
}
