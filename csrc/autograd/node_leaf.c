/* AccumulateGrad, the end of a backward graph at a leaf, and FlbLeaf, what a leaf keeps for autograd. */
#include "autograd/node.h"

FlbLeaf *flb_leaf_of(FlbTensor *t) {
    if (t->autograd && Py_TYPE(t->autograd) == &FlbLeaf_Type) return (FlbLeaf *)t->autograd;
    FlbLeaf *leaf = PyObject_GC_New(FlbLeaf, &FlbLeaf_Type);
    if (!leaf) return NULL;
    leaf->accumulator = NULL;
    leaf->hooks = leaf->post_hooks = NULL;
    PyObject_GC_Track(leaf);
    Py_XSETREF(t->autograd, (PyObject *)leaf);
    return leaf;
}
static int accumulate_apply(FlbNode *self, PyObject **cts, PyObject **grads) {
    return 0;
} /* the engine accumulates */
FlbNode *flb_accumulator_of(FlbTensor *t) {
    FlbLeaf *leaf = flb_leaf_of(t);
    if (!leaf) return NULL;
    if (leaf->accumulator) return (FlbNode *)Py_NewRef(leaf->accumulator);
    FlbAccumulate *acc = (FlbAccumulate *)FlbAccumulate_Type.tp_alloc(&FlbAccumulate_Type, 0);
    if (!acc) return NULL;
    acc->base.apply = accumulate_apply;
    acc->base.n_outputs = 1; /* its metadata is read off the leaf, which may have changed */
    acc->base.sequence_nr = UINT64_MAX;
    acc->variable = Py_NewRef(t);
    leaf->accumulator = &acc->base;
    return &acc->base;
}

static void accumulate_unlink(FlbAccumulate *a) {
    FlbTensor *t = (FlbTensor *)a->variable;
    if (!t || !t->autograd || Py_TYPE(t->autograd) != &FlbLeaf_Type) return;
    FlbLeaf *leaf = (FlbLeaf *)t->autograd;
    if (leaf->accumulator == &a->base) leaf->accumulator = NULL;
}
static int accumulate_traverse(FlbAccumulate *a, visitproc visit, void *arg) {
    Py_VISIT(a->variable);
    return flb_node_traverse(&a->base, visit, arg);
}
static int accumulate_clear(FlbAccumulate *a) {
    accumulate_unlink(a);
    Py_CLEAR(a->variable);
    return flb_node_clear(&a->base);
}
static void accumulate_dealloc(FlbAccumulate *a) {
    PyObject_GC_UnTrack(a);
    accumulate_unlink(a); /* before anything may run that asks the leaf for it */
    if (a->base.weakrefs) PyObject_ClearWeakRefs((PyObject *)a);
    Py_CLEAR(a->variable);
    flb_node_free(&a->base);
}
static PyObject *accumulate_variable(FlbAccumulate *a, void *c) {
    return Py_NewRef(a->variable ? a->variable : Py_None);
}
static PyObject *leaf_dict(FlbAccumulate *a, size_t offset) {
    FlbLeaf *leaf = a->variable ? flb_leaf_of((FlbTensor *)a->variable) : NULL;
    if (!leaf) return PyErr_Occurred() ? NULL : PyDict_New();
    PyObject **slot = (PyObject **)((char *)leaf + offset);
    if (!*slot) *slot = PyDict_New();
    return Py_XNewRef(*slot);
}
static PyObject *accumulate_post_hooks(FlbAccumulate *a, void *c) {
    return leaf_dict(a, offsetof(FlbLeaf, post_hooks));
}
static PyObject *accumulate_pre_hooks(FlbAccumulate *a, void *c) {
    PyObject *d = PyDict_New(), *hooks = leaf_dict(a, offsetof(FlbLeaf, hooks)), *zero = PyLong_FromLong(0);
    if (!d || !hooks || !zero || PyDict_SetItem(d, zero, hooks) < 0) Py_CLEAR(d);
    Py_XDECREF(hooks);
    Py_XDECREF(zero);
    return d;
}
static PyGetSetDef accumulate_getset[] = {
    {"variable", (getter)accumulate_variable, NULL, "The leaf."},
    {"post_hooks", (getter)accumulate_post_hooks, NULL, "Hooks after the gradient was added."},
    {"pre_hooks", (getter)accumulate_pre_hooks, NULL,
     "{0: hooks on the gradient of the leaf}; they belong to the leaf."},
    {NULL}};
PyTypeObject FlbAccumulate_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._C.AccumulateGrad",
    .tp_basicsize = sizeof(FlbAccumulate),
    .tp_base = &FlbNode_Type,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "The end of the graph at a leaf: adds to leaf.grad.",
    .tp_dealloc = (destructor)accumulate_dealloc,
    .tp_traverse = (traverseproc)accumulate_traverse,
    .tp_clear = (inquiry)accumulate_clear,
    .tp_getset = accumulate_getset,
};

static int leaf_traverse(FlbLeaf *l, visitproc visit, void *arg) {
    Py_VISIT(l->hooks);
    Py_VISIT(l->post_hooks);
    return 0;
}
static int leaf_clear(FlbLeaf *l) {
    Py_CLEAR(l->hooks);
    Py_CLEAR(l->post_hooks);
    return 0;
}
static void leaf_dealloc(FlbLeaf *l) {
    PyObject_GC_UnTrack(l);
    leaf_clear(l);
    PyObject_GC_Del(l);
}
static PyMemberDef leaf_members[] = {
    {"hooks", T_OBJECT, offsetof(FlbLeaf, hooks), READONLY, "hooks on its gradient, or None"}, {NULL}};
PyTypeObject FlbLeaf_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._C.Leaf",
    .tp_basicsize = sizeof(FlbLeaf),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "What autograd keeps on a leaf.",
    .tp_dealloc = (destructor)leaf_dealloc,
    .tp_traverse = (traverseproc)leaf_traverse,
    .tp_clear = (inquiry)leaf_clear,
    .tp_members = leaf_members,
};
