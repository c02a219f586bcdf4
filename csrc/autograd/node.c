/* Node: one step of the backward graph; AccumulateGrad, its end at a leaf; FlbLeaf, what a leaf keeps for
 * autograd. */
#include "autograd/autograd.h"

static uint64_t next_sequence = 0;
static PyObject *hook_handle = NULL; /* (dict of hooks, hook) -> handle */
static PyObject *str_apply, *str_release;

/* ---- metadata and edges -------------------------------------------------------------------------------- */

int flb_meta_dims(PyObject *o) {
    FlbTensor *t = (FlbTensor *)o;
    return t->array && !t->shape ? PyArray_NDIM((PyArrayObject *)t->array) : 0;
}
int flb_meta_of(FlbMeta *m, PyObject *o, Py_ssize_t **dims) {
    FlbTensor *t = (FlbTensor *)o;
    if (t->array && !t->shape) {
        m->ndim = PyArray_NDIM((PyArrayObject *)t->array);
        m->dims = *dims;
        *dims += m->ndim;
        for (int i = 0; i < m->ndim; i++) m->dims[i] = PyArray_DIM((PyArrayObject *)t->array, i);
    } else {
        if (!flb_shape(t)) return -1;
        m->shape = Py_NewRef(t->shape);
        m->ndim = (int)PyTuple_GET_SIZE(t->shape);
    }
    m->dtype = Py_NewRef(t->dtype);
    m->device = Py_NewRef(t->device);
    return 0;
}
PyObject *flb_meta_shape(const FlbMeta *m) {
    if (m->shape) return Py_NewRef(m->shape);
    PyObject *t = PyTuple_New(m->ndim);
    for (int i = 0; t && i < m->ndim; i++) {
        PyObject *n = PyLong_FromSsize_t(m->dims[i]);
        if (!n) {
            Py_DECREF(t);
            return NULL;
        }
        PyTuple_SET_ITEM(t, i, n);
    }
    return t;
}

/* Room for edges, outputs, dims and `extra_bytes` (at *extra), all zero. */
int flb_node_setup(FlbNode *node, int n_edges, int n_outputs, Py_ssize_t n_dims, size_t extra_bytes,
                   void **extra) {
    size_t a = sizeof(FlbEdge) * n_edges, b = sizeof(FlbMeta) * n_outputs, c = sizeof(Py_ssize_t) * n_dims;
    char *block = PyMem_Calloc(1, a + b + c + extra_bytes + 1);
    if (!block) return PyErr_NoMemory(), -1;
    node->block = block;
    node->edges = (FlbEdge *)block;
    node->outputs = (FlbMeta *)(block + a);
    node->n_edges = n_edges;
    node->n_outputs = n_outputs;
    node->materialize = 1;
    if (extra) *extra = block + a + b + c;
    return 0;
}

/* Numbers the node. After its edges are there: looking for one may make nodes, and a node is younger than
 * those its edges lead to. */
void flb_node_number(FlbNode *node) { node->sequence_nr = next_sequence++; }

static FlbLeaf *leaf_of(FlbTensor *t) {
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
static FlbNode *accumulator_of(FlbTensor *t) {
    FlbLeaf *leaf = leaf_of(t);
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
int flb_edge_of(FlbTensor *t, FlbEdge *edge) {
    edge->node = NULL;
    edge->nr = 0;
    int asks = flb_requires_grad(t);
    if (asks <= 0) return asks;
    if (flb_refresh(t) < 0) return -1;
    if (t->grad_fn) {
        if (!PyObject_TypeCheck(t->grad_fn, &FlbNode_Type))
            return PyErr_SetString(PyExc_TypeError, "grad_fn is not a Node"), -1;
        edge->node = (FlbNode *)Py_NewRef(t->grad_fn);
        edge->nr = t->output_nr;
        return 0;
    }
    return (edge->node = accumulator_of(t)) ? 0 : -1;
}
void flb_set_history(FlbTensor *t, FlbNode *node, int nr) {
    PyObject *old = t->grad_fn;
    t->grad_fn = Py_NewRef(node);
    t->output_nr = nr;
    t->flags |= FLB_REQUIRES_GRAD;
    Py_XDECREF(old);
}

/* ---- Node ---------------------------------------------------------------------------------------------- */

FlbNodeExtra *flb_node_extra(FlbNode *node) {
    if (!node->extra && !(node->extra = PyMem_Calloc(1, sizeof(FlbNodeExtra)))) PyErr_NoMemory();
    return node->extra;
}
PyObject *flb_node_name(FlbNode *node) {
    if (PyObject_TypeCheck(node, &FlbOpNode_Type)) return Py_NewRef(((FlbOpNode *)node)->rule->name);
    if (Py_TYPE(node) == &FlbAccumulate_Type) return PyUnicode_FromString("torch::autograd::AccumulateGrad");
    return node->name ? Py_NewRef(node->name) : PyUnicode_FromString(Py_TYPE(node)->tp_name);
}

static int node_traverse(FlbNode *n, visitproc visit, void *arg) {
    if (n->block)
        for (int i = 0; i < n->n_edges; i++) Py_VISIT(n->edges[i].node);
    if (n->extra) {
        Py_VISIT(n->extra->tensor_hooks);
        Py_VISIT(n->extra->pre_hooks);
        Py_VISIT(n->extra->post_hooks);
        Py_VISIT(n->extra->retained);
        Py_VISIT(n->extra->metadata);
    }
    Py_VISIT(n->dict);
    return 0;
}
static int node_clear(FlbNode *n) {
    if (n->block)
        for (int i = 0; i < n->n_edges; i++) Py_CLEAR(n->edges[i].node);
    if (n->extra) {
        Py_CLEAR(n->extra->tensor_hooks);
        Py_CLEAR(n->extra->pre_hooks);
        Py_CLEAR(n->extra->post_hooks);
        Py_CLEAR(n->extra->retained);
        Py_CLEAR(n->extra->metadata);
    }
    Py_CLEAR(n->dict);
    return 0;
}
static void node_free(FlbNode *n) {
    node_clear(n);
    for (int i = 0; n->block && i < n->n_outputs; i++) {
        Py_XDECREF(n->outputs[i].dtype);
        Py_XDECREF(n->outputs[i].device);
        Py_XDECREF(n->outputs[i].shape);
    }
    PyMem_Free(n->block);
    PyMem_Free(n->extra);
    Py_XDECREF(n->name);
    Py_TYPE(n)->tp_free(n);
}
static void node_dealloc(FlbNode *n) {
    PyObject_GC_UnTrack(n);
    /* The graph may be as deep as the program is long. */
    Py_TRASHCAN_BEGIN(n, node_dealloc) if (n->weakrefs) PyObject_ClearWeakRefs((PyObject *)n);
    node_free(n);
    Py_TRASHCAN_END
}

static int python_apply(FlbNode *self, PyObject **cts, PyObject **grads) {
    PyObject *args = PyTuple_New(self->n_outputs);
    int n_edges = self->n_edges; /* as many as grads has */
    if (!args) return -1;
    for (int i = 0; i < self->n_outputs; i++) PyTuple_SET_ITEM(args, i, Py_NewRef(cts[i] ? cts[i] : Py_None));
    PyObject *fn = PyObject_GetAttr((PyObject *)self, str_apply),
             *got = fn ? PyObject_CallObject(fn, args) : NULL;
    Py_XDECREF(fn);
    Py_DECREF(args);
    if (!got) return -1;
    PyObject *fast = PySequence_Fast(got, "apply() of a Node returns a sequence");
    Py_DECREF(got);
    if (!fast) return -1;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
    if (n != n_edges && n) {
        PyObject *name = flb_node_name(self);
        PyErr_Format(PyExc_RuntimeError,
                     "function %U returned an incorrect number of gradients (expected %d, got %zd)", name,
                     n_edges, n);
        Py_XDECREF(name);
        Py_DECREF(fast);
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *g = PySequence_Fast_GET_ITEM(fast, i);
        if (g == Py_None) continue;
        if (!PyObject_TypeCheck(g, &FlbTensor_Type)) {
            PyObject *name = flb_node_name(self);
            PyErr_Format(PyExc_RuntimeError,
                         "expected Variable or None (got %s) as gradient %zd of function %U",
                         Py_TYPE(g)->tp_name, i, name);
            Py_XDECREF(name);
            Py_DECREF(fast);
            return -1;
        }
        grads[i] = Py_NewRef(g);
    }
    Py_DECREF(fast);
    return 0;
}
static PyObject *node_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    FlbNode *n = (FlbNode *)type->tp_alloc(type, 0);
    if (n) n->apply = python_apply;
    return (PyObject *)n;
}
static int meta_from_row(FlbMeta *m, PyObject *row) {
    PyObject *shape, *dtype, *device;
    if (row == Py_None) return 0;
    if (PyObject_TypeCheck(row, &FlbTensor_Type)) {
        PyObject *s = flb_shape((FlbTensor *)row);
        if (!s) return -1;
        shape = s, dtype = ((FlbTensor *)row)->dtype, device = ((FlbTensor *)row)->device;
    } else if (!PyArg_ParseTuple(row, "O!OO", &PyTuple_Type, &shape, &dtype, &device)) {
        return -1;
    }
    m->shape = Py_NewRef(shape), m->dtype = Py_NewRef(dtype), m->device = Py_NewRef(device);
    m->ndim = (int)PyTuple_GET_SIZE(shape);
    return 0;
}
/* Node(name, next_edges, outputs): edges are tensors, (node, number) or None; outputs tensors, (shape, dtype,
 * device) or None. */
static int node_init(FlbNode *self, PyObject *args, PyObject *kwargs) {
    PyObject *name, *edges, *outputs;
    if (!PyArg_ParseTuple(args, "UOO", &name, &edges, &outputs)) return -1;
    if (self->block) return PyErr_SetString(PyExc_RuntimeError, "a Node is made once"), -1;
    if (!(edges = PySequence_Tuple(edges))) return -1;
    if (!(outputs = PySequence_Tuple(outputs))) {
        Py_DECREF(edges);
        return -1;
    }
    int bad =
        flb_node_setup(self, (int)PyTuple_GET_SIZE(edges), (int)PyTuple_GET_SIZE(outputs), 0, 0, NULL) < 0;
    if (!bad) Py_XSETREF(self->name, Py_NewRef(name));
    for (int i = 0; !bad && i < self->n_outputs; i++)
        bad = meta_from_row(&self->outputs[i], PyTuple_GET_ITEM(outputs, i)) < 0;
    for (int i = 0; !bad && i < self->n_edges; i++) {
        PyObject *e = PyTuple_GET_ITEM(edges, i), *node;
        if (e == Py_None) continue;
        if (PyObject_TypeCheck(e, &FlbTensor_Type)) {
            bad = flb_edge_of((FlbTensor *)e, &self->edges[i]) < 0;
        } else if (!(bad = !PyArg_ParseTuple(e, "O!i", &FlbNode_Type, &node, &self->edges[i].nr))) {
            self->edges[i].node = (FlbNode *)Py_NewRef(node);
        }
    }
    flb_node_number(self);
    Py_DECREF(edges);
    Py_DECREF(outputs);
    return bad ? -1 : 0;
}
static PyObject *node_repr(FlbNode *n) {
    PyObject *name = Py_TYPE(n) == &FlbAccumulate_Type ? PyUnicode_FromString("AccumulateGrad")
                                                       : flb_node_name(n),
             *r = name ? PyUnicode_FromFormat("<%U object at %p>", name, n) : NULL;
    Py_XDECREF(name);
    return r;
}
static PyObject *node_name(FlbNode *n, PyObject *unused) { return flb_node_name(n); }
/* node_count(): the number that the next node gets. */
static PyObject *node_count(PyObject *m, PyObject *unused) {
    return PyLong_FromUnsignedLongLong(next_sequence);
}
static PyObject *node_sequence(FlbNode *n, PyObject *unused) {
    return PyLong_FromUnsignedLongLong(n->sequence_nr);
}
static PyObject *edges_as(FlbNode *n, int none_pairs) {
    PyObject *t = PyTuple_New(n->n_edges);
    for (int i = 0; t && i < n->n_edges; i++) {
        PyObject *node = n->edges[i].node ? (PyObject *)n->edges[i].node : Py_None;
        PyObject *e = flb_node_named(node) < 0 ? NULL
            : node == Py_None && !none_pairs   ? Py_NewRef(Py_None)
                                               : Py_BuildValue("(Oi)", node, n->edges[i].nr);
        if (!e) {
            Py_DECREF(t);
            return NULL;
        }
        PyTuple_SET_ITEM(t, i, e);
    }
    return t;
}
static PyObject *node_next_functions(FlbNode *n, void *c) { return edges_as(n, 1); }
static PyObject *node_next_edges(FlbNode *n, void *c) { return edges_as(n, 0); }
static PyObject *node_outputs(FlbNode *n, void *c) {
    PyObject *t = PyTuple_New(n->n_outputs);
    for (int i = 0; t && i < n->n_outputs; i++) {
        FlbMeta *m = &n->outputs[i];
        PyObject *row = NULL;
        if (Py_TYPE(n) == &FlbAccumulate_Type) {
            FlbTensor *leaf = (FlbTensor *)((FlbAccumulate *)n)->variable;
            PyObject *shape = leaf ? flb_shape(leaf) : NULL;
            row = leaf ? (shape ? PyTuple_Pack(3, shape, leaf->dtype, leaf->device) : NULL)
                       : Py_NewRef(Py_None);
        } else if (!m->dtype) {
            row = Py_NewRef(Py_None);
        } else {
            PyObject *shape = flb_meta_shape(m);
            row = shape ? PyTuple_Pack(3, shape, m->dtype, m->device) : NULL;
            Py_XDECREF(shape);
        }
        if (!row) {
            Py_DECREF(t);
            return NULL;
        }
        PyTuple_SET_ITEM(t, i, row);
    }
    return t;
}
static PyObject *hooks_at(FlbNode *n, size_t offset) {
    FlbNodeExtra *x = flb_node_extra(n);
    if (!x) return NULL;
    PyObject **slot = (PyObject **)((char *)x + offset);
    if (!*slot) *slot = PyDict_New();
    return Py_XNewRef(*slot);
}
static PyObject *node_dict_of(FlbNode *n, void *offset) { return hooks_at(n, (size_t)offset); }
static PyObject *node_register(FlbNode *n, PyObject *fn, size_t offset) {
    PyObject *hooks = hooks_at(n, offset);
    PyObject *r = hooks ? PyObject_CallFunctionObjArgs(hook_handle, hooks, fn, NULL) : NULL;
    Py_XDECREF(hooks);
    return r;
}
static PyObject *node_register_hook(FlbNode *n, PyObject *fn) {
    return node_register(n, fn, offsetof(FlbNodeExtra, post_hooks));
}
static PyObject *node_register_prehook(FlbNode *n, PyObject *fn) {
    return node_register(n, fn, offsetof(FlbNodeExtra, pre_hooks));
}
static PyObject *node_apply(FlbNode *n, PyObject *const *args, Py_ssize_t nargs) {
    if (n->apply == python_apply) {
        PyErr_Format(PyExc_NotImplementedError, "%s must define apply", Py_TYPE(n)->tp_name);
        return NULL;
    }
    if (nargs != n->n_outputs)
        return PyErr_Format(PyExc_TypeError, "expected %d gradients, got %zd", n->n_outputs, nargs), NULL;
    PyObject **cts = PyMem_Calloc(n->n_outputs + n->n_edges + 1, sizeof(PyObject *)),
             **grads = cts + n->n_outputs;
    if (!cts) return PyErr_NoMemory();
    int bad = 0;
    for (Py_ssize_t i = 0; !bad && i < nargs; i++) {
        bad = args[i] != Py_None && !PyObject_TypeCheck(args[i], &FlbTensor_Type);
        cts[i] = args[i] == Py_None ? NULL : args[i];
    }
    if (bad) PyErr_SetString(PyExc_TypeError, "gradients are tensors or None");
    PyObject *out = NULL;
    if (!bad && n->apply(n, cts, grads) == 0 && (out = PyTuple_New(n->n_edges)))
        for (int i = 0; i < n->n_edges; i++)
            PyTuple_SET_ITEM(out, i, Py_NewRef(grads[i] ? grads[i] : Py_None));
    for (int i = 0; i < n->n_edges; i++) Py_XDECREF(grads[i]);
    PyMem_Free(cts);
    return out;
}
/* As apply, but the only gradient alone. No hooks: the engine calls those. */
static PyObject *node_call(FlbNode *n, PyObject *args, PyObject *kwargs) {
    if (kwargs && PyDict_GET_SIZE(kwargs))
        return PyErr_SetString(PyExc_TypeError, "a node takes no keyword arguments"), NULL;
    PyObject *apply = PyObject_GetAttr((PyObject *)n, str_apply),
             *out = apply ? PyObject_CallObject(apply, args) : NULL;
    Py_XDECREF(apply);
    if (out && PyTuple_Check(out) && PyTuple_GET_SIZE(out) == 1)
        Py_SETREF(out, Py_NewRef(PyTuple_GET_ITEM(out, 0)));
    return out;
}
static void op_node_drop(FlbOpNode *n);
static PyObject *node_release(FlbNode *n, PyObject *unused) {
    if (PyObject_TypeCheck(n, &FlbOpNode_Type)) op_node_drop((FlbOpNode *)n);
    Py_RETURN_NONE;
}
static PyObject *node_register_dict(FlbNode *n, PyObject *hooks) {
    FlbNodeExtra *x = flb_node_extra(n);
    if (!x || !PyDict_Check(hooks))
        return x ? (PyErr_SetString(PyExc_TypeError, "a dict of hooks is needed"), NULL) : NULL;
    Py_XSETREF(x->post_hooks, Py_NewRef(hooks));
    Py_RETURN_NONE;
}
static PyObject *node_counters(FlbNode *n, PyObject *unused) {
    PyObject *list = PyList_New(0);
    if (!list || !PyObject_TypeCheck((PyObject *)n, &FlbOpNode_Type)) return list;
    FlbOpNode *o = (FlbOpNode *)n;
    for (int i = 0; list && o->saved && i < o->plan->n_saves; i++)
        if (flb_saved_counters(&o->saved[i], list) < 0) Py_CLEAR(list);
    return list;
}
static PyMethodDef node_methods[] = {
    {"_counters", (PyCFunction)node_counters, METH_NOARGS,
     "What counts the writes to the tensors that are saved; not of those that hooks have packed."},
    {"name", (PyCFunction)node_name, METH_NOARGS, "Name of the operation, for example AddBackward0."},
    {"apply", (PyCFunction)(void (*)(void))node_apply, METH_FASTCALL,
     "apply(*cotangents): one cotangent or None for each of next_edges."},
    {"release", (PyCFunction)node_release, METH_NOARGS,
     "Drop what was saved; a second backward then raises."},
    {"register_hook", (PyCFunction)node_register_hook, METH_O,
     "fn(grad_inputs, grad_outputs) after this node ran; may return replacements of grad_inputs. Returns a "
     "handle."},
    {"register_prehook", (PyCFunction)node_register_prehook, METH_O,
     "fn(grad_outputs) before this node runs; may return replacements. Returns a handle."},
    {"_register_hook_dict", (PyCFunction)node_register_dict, METH_O,
     "Use this dict for the hooks that run after the node."},
    {"_sequence_nr", (PyCFunction)node_sequence, METH_NOARGS,
     "Nodes are numbered in the order in which they were made."},
    {NULL}};
static PyObject *node_get_materialize(FlbNode *self, void *closure) {
    return PyBool_FromLong(self->materialize);
}
static int node_set_materialize(FlbNode *self, PyObject *value, void *closure) {
    if (!value || !PyBool_Check(value))
        return PyErr_SetString(PyExc_TypeError, "materialize is True or False"), -1;
    self->materialize = value == Py_True;
    return 0;
}
#define HOOKS(FIELD) (void *)offsetof(FlbNodeExtra, FIELD)
static PyGetSetDef node_getset[] = {
    {"next_functions", (getter)node_next_functions, NULL, "((node or None, number of its result), ...)"},
    {"next_edges", (getter)node_next_edges, NULL, "As next_functions, None where nothing flows."},
    {"outputs", (getter)node_outputs, NULL, "(shape, dtype, device) of each forward result."},
    {"metadata", (getter)node_dict_of, NULL, "A dict of the user's.", HOOKS(metadata)},
    {"pre_hooks", (getter)node_dict_of, NULL, "Hooks on the cotangents of single results: number -> dict.",
     HOOKS(tensor_hooks)},
    {"node_pre_hooks", (getter)node_dict_of, NULL, "Hooks before the node runs.", HOOKS(pre_hooks)},
    {"node_hooks", (getter)node_dict_of, NULL, "Hooks after the node ran.", HOOKS(post_hooks)},
    {"retained", (getter)node_dict_of, NULL, "Results whose .grad is kept: number -> weakref.",
     HOOKS(retained)},
    {"materialize", (getter)node_get_materialize, (setter)node_set_materialize,
     "Whether cotangents that never came are zeros."},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict},
    {NULL}};
static PyMemberDef node_members[] = {
    {"sequence_nr", T_ULONGLONG, offsetof(FlbNode, sequence_nr), READONLY, "order of creation"}, {NULL}};
PyTypeObject FlbNode_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau.autograd.graph.Node",
    .tp_basicsize = sizeof(FlbNode),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Node(name=None, next_edges=(), outputs=1)\n--\n\n"
              "One step of the backward pass. A subclass defines "
              "apply(*cotangents) and release().",
    .tp_new = node_new,
    .tp_init = (initproc)node_init,
    .tp_dealloc = (destructor)node_dealloc,
    .tp_traverse = (traverseproc)node_traverse,
    .tp_clear = (inquiry)node_clear,
    .tp_repr = (reprfunc)node_repr,
    .tp_call = (ternaryfunc)node_call,
    .tp_methods = node_methods,
    .tp_members = node_members,
    .tp_getset = node_getset,
    .tp_dictoffset = offsetof(FlbNode, dict),
    .tp_weaklistoffset = offsetof(FlbNode, weakrefs),
};

/* ---- AccumulateGrad and FlbLeaf ------------------------------------------------------------------------ */

static void accumulate_unlink(FlbAccumulate *a) {
    FlbTensor *t = (FlbTensor *)a->variable;
    if (!t || !t->autograd || Py_TYPE(t->autograd) != &FlbLeaf_Type) return;
    FlbLeaf *leaf = (FlbLeaf *)t->autograd;
    if (leaf->accumulator == &a->base) leaf->accumulator = NULL;
}
static int accumulate_traverse(FlbAccumulate *a, visitproc visit, void *arg) {
    Py_VISIT(a->variable);
    return node_traverse(&a->base, visit, arg);
}
static int accumulate_clear(FlbAccumulate *a) {
    accumulate_unlink(a);
    Py_CLEAR(a->variable);
    return node_clear(&a->base);
}
static void accumulate_dealloc(FlbAccumulate *a) {
    PyObject_GC_UnTrack(a);
    accumulate_unlink(a); /* before anything may run that asks the leaf for it */
    if (a->base.weakrefs) PyObject_ClearWeakRefs((PyObject *)a);
    Py_CLEAR(a->variable);
    node_free(&a->base);
}
static PyObject *accumulate_variable(FlbAccumulate *a, void *c) {
    return Py_NewRef(a->variable ? a->variable : Py_None);
}
static PyObject *leaf_dict(FlbAccumulate *a, size_t offset) {
    FlbLeaf *leaf = a->variable ? leaf_of((FlbTensor *)a->variable) : NULL;
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

/* ---- OpNode: the backward of one operator call --------------------------------------------------------- */

static int op_node_traverse(FlbOpNode *n, visitproc visit, void *arg) {
    for (int i = 0; n->saved && i < n->plan->n_saves; i++) {
        Py_VISIT(n->saved[i].value);
        Py_VISIT(n->saved[i].aux);
        Py_VISIT(n->saved[i].forward);
    }
    return node_traverse(&n->base, visit, arg);
}
static void op_node_drop(FlbOpNode *n) {
    for (int i = 0; n->saved && i < n->plan->n_saves; i++) flb_saved_clear(&n->saved[i]);
}
static int op_node_clear(FlbOpNode *n) {
    for (int i = 0; n->saved && i < n->plan->n_saves; i++) flb_saved_free(&n->saved[i]);
    return node_clear(&n->base);
}
static void op_node_dealloc(FlbOpNode *n) {
    PyObject_GC_UnTrack(n);
    Py_TRASHCAN_BEGIN(n, op_node_dealloc) if (n->base.weakrefs) PyObject_ClearWeakRefs((PyObject *)n);
    for (int i = 0; n->saved && i < n->plan->n_saves; i++) flb_saved_free(&n->saved[i]);
    Py_CLEAR(n->lists);
    Py_CLEAR(n->rule);
    Py_CLEAR(n->plan);
    node_free(&n->base); /* NOTE: a class given by flb_node_named is released by subtype_dealloc */
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
/* Called by the engine for a node that has run when the graph isn't kept. */
int flb_node_release(FlbNode *node) {
    if (PyObject_TypeCheck(node, &FlbOpNode_Type)) return op_node_drop((FlbOpNode *)node), 0;
    if (node->apply != python_apply) return 0;
    PyObject *r = PyObject_CallMethodNoArgs((PyObject *)node, str_release);
    Py_XDECREF(r);
    return r ? 0 : -1;
}
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

/* ---- the module's part --------------------------------------------------------------------------------- */

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
    FlbLeaf *leaf = leaf_of((FlbTensor *)t);
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
static PyObject *py_set_handle(PyObject *m, PyObject *cls) {
    Py_XSETREF(hook_handle, Py_NewRef(cls));
    Py_RETURN_NONE;
}
PyMethodDef flb_node_functions[] = {
    {"node_count", node_count, METH_NOARGS,
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
    {"set_hook_handle", py_set_handle, METH_O,
     "set_hook_handle(fn): fn(hooks, hook) adds a hook to a dict and gives its handle."},
    {NULL}};
int flb_init_node(PyObject *module) {
    if (!(str_apply = PyUnicode_InternFromString("apply")) ||
        !(str_release = PyUnicode_InternFromString("release")))
        return -1;
    PyTypeObject *types[] = {&FlbNode_Type, &FlbOpNode_Type, &FlbAccumulate_Type, &FlbLeaf_Type};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (PyModule_AddType(module, types[i]) < 0) return -1;
    return flb_init_raw_saved();
}
