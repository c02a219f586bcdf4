/* The module's functions about nodes, edges and leaves. */
#include "autograd/node.h"

static PyObject *py_gradient_edge(PyObject *m, PyObject *t) {
    FlbEdge e;
    if (!PyObject_TypeCheck(t, &FlbTensor_Type))
        return PyErr_SetString(PyExc_TypeError, "a tensor is needed"), NULL;
    if (flb_edge_of((FlbTensor *)t, &e) < 0) return NULL;
    if (!e.node) Py_RETURN_NONE;
    if (flb_node_named((PyObject *)e.node) < 0) return Py_DECREF(e.node), NULL;
    return Py_BuildValue("(Ni)", e.node, e.nr);
}
/* set_history(tensor, node, nr): the tensor is result `nr` of `node`. */
static PyObject *py_set_history(PyObject *m, PyObject *args) {
    PyObject *t, *node;
    int nr;
    if (!PyArg_ParseTuple(args, "O!O!i", &FlbTensor_Type, &t, &FlbNode_Type, &node, &nr)) return NULL;
    if (nr < 0 || nr >= ((FlbNode *)node)->n_outputs)
        return PyErr_SetString(PyExc_ValueError, "the node has no such result"), NULL;
    flb_set_history((FlbTensor *)t, (FlbNode *)node, nr);
    Py_RETURN_NONE;
}
/* leaf_hooks(tensor, post, hooks=None): the dict of hooks of a leaf, which becomes `hooks`. */
static PyObject *py_leaf_hooks(PyObject *m, PyObject *args) {
    PyObject *t, *hooks = NULL;
    int post;
    if (!PyArg_ParseTuple(args, "O!p|O!", &FlbTensor_Type, &t, &post, &PyDict_Type, &hooks)) return NULL;
    FlbLeaf *leaf = flb_leaf_of((FlbTensor *)t);
    if (!leaf) return NULL;
    PyObject **slot = post ? &leaf->post_hooks : &leaf->hooks;
    if (hooks) Py_XSETREF(*slot, Py_NewRef(hooks));
    if (!*slot) *slot = PyDict_New();
    return Py_XNewRef(*slot);
}
/* part_leaf(tensor): the node by which graphs reach a leaf, or None. Graphs to come make another. */
static PyObject *py_part_leaf(PyObject *m, PyObject *arg) {
    FlbTensor *t = (FlbTensor *)arg;
    if (!PyObject_TypeCheck(arg, &FlbTensor_Type))
        return PyErr_SetString(PyExc_TypeError, "part_leaf(tensor): a tensor is needed"), NULL;
    if (!t->autograd || Py_TYPE(t->autograd) != &FlbLeaf_Type) Py_RETURN_NONE;
    FlbNode *node = ((FlbLeaf *)t->autograd)->accumulator;
    if (!node) Py_RETURN_NONE;
    ((FlbLeaf *)t->autograd)->accumulator = NULL;
    return Py_NewRef(node);
}
/* outdate(a, b): whoever saved one of the tensors finds that it was written to, whichever of the memories it
 * has. */
static PyObject *py_outdate(PyObject *m, PyObject *args) {
    PyObject *a, *b;
    if (!PyArg_ParseTuple(args, "O!O!", &FlbTensor_Type, &a, &FlbTensor_Type, &b)) return NULL;
    FlbStorage *s = flb_storage((FlbTensor *)a), *t = s ? flb_storage((FlbTensor *)b) : NULL;
    if (!t) return NULL;
    flb_recorder_spoil();
    s->version = t->version = s->version > t->version ? s->version : t->version;
    flb_count_write(s);
    if (t != s) flb_count_write(t);
    Py_RETURN_NONE;
}

PyMethodDef flb_node_functions[] = {
    {"node_count", flb_node_count, METH_NOARGS,
     "node_count(): the number that the next node of a backward graph gets."},
    {"gradient_edge", py_gradient_edge, METH_O,
     "gradient_edge(tensor): (node, number) a cotangent of it goes to, or None."},
    {"set_history", py_set_history, METH_VARARGS,
     "set_history(tensor, node, nr): the tensor is result nr of node."},
    {"leaf_hooks", py_leaf_hooks, METH_VARARGS,
     "leaf_hooks(tensor, post, hooks=None): the dict of hooks of a leaf, which becomes `hooks`."},
    {"part_leaf", py_part_leaf, METH_O,
     "part_leaf(tensor): the node by which graphs reach a leaf, or None; graphs to come make another."},
    {"outdate", py_outdate, METH_VARARGS,
     "outdate(a, b): who saved one of the tensors finds that it was written to, whichever of the two "
     "memories it has."},
    {"set_hook_handle", flb_set_hook_handle, METH_O,
     "set_hook_handle(fn): fn(hooks, hook) adds a hook to a dict and gives its handle."},
    {NULL}};
