/* Node: one step of the backward graph. */
#include "autograd/node.h"

static uint64_t next_sequence = 0;
static PyObject *hook_handle = NULL; /* (dict of hooks, hook) -> handle */
static PyObject *str_apply, *str_release;

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

FlbNodeExtra *flb_node_extra(FlbNode *node) {
    if (!node->extra && !(node->extra = PyMem_Calloc(1, sizeof(FlbNodeExtra)))) PyErr_NoMemory();
    return node->extra;
}
PyObject *flb_node_name(FlbNode *node) {
    if (PyObject_TypeCheck(node, &FlbOpNode_Type)) return Py_NewRef(((FlbOpNode *)node)->rule->name);
    if (Py_TYPE(node) == &FlbAccumulate_Type) return PyUnicode_FromString("torch::autograd::AccumulateGrad");
    return node->name ? Py_NewRef(node->name) : PyUnicode_FromString(Py_TYPE(node)->tp_name);
}

int flb_node_traverse(FlbNode *n, visitproc visit, void *arg) {
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
int flb_node_clear(FlbNode *n) {
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
void flb_node_free(FlbNode *n) {
    flb_node_clear(n);
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
    flb_node_free(n);
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
/* flb_node_count(): the number that the next node gets. */
PyObject *flb_node_count(PyObject *m, PyObject *unused) { return PyLong_FromUnsignedLongLong(next_sequence); }
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
static PyObject *node_release(FlbNode *n, PyObject *unused) {
    if (PyObject_TypeCheck(n, &FlbOpNode_Type)) flb_op_node_drop((FlbOpNode *)n);
    Py_RETURN_NONE;
}
static PyObject *node_register_dict(FlbNode *n, PyObject *hooks) {
    FlbNodeExtra *x = flb_node_extra(n);
    if (!x || !PyDict_Check(hooks))
        return x ? (PyErr_SetString(PyExc_TypeError, "a dict of hooks is needed"), NULL) : NULL;
    Py_XSETREF(x->post_hooks, Py_NewRef(hooks));
    Py_RETURN_NONE;
}
PyObject *flb_node_counters(FlbNode *n, PyObject *unused) {
    PyObject *list = PyList_New(0);
    if (!list || !PyObject_TypeCheck((PyObject *)n, &FlbOpNode_Type)) return list;
    FlbOpNode *o = (FlbOpNode *)n;
    for (int i = 0; list && o->saved && i < o->plan->n_saves; i++)
        if (flb_saved_counters(&o->saved[i], list) < 0) Py_CLEAR(list);
    return list;
}
static PyMethodDef node_methods[] = {
    {"_counters", (PyCFunction)flb_node_counters, METH_NOARGS,
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
    .tp_traverse = (traverseproc)flb_node_traverse,
    .tp_clear = (inquiry)flb_node_clear,
    .tp_repr = (reprfunc)node_repr,
    .tp_call = (ternaryfunc)node_call,
    .tp_methods = node_methods,
    .tp_members = node_members,
    .tp_getset = node_getset,
    .tp_dictoffset = offsetof(FlbNode, dict),
    .tp_weaklistoffset = offsetof(FlbNode, weakrefs),
};

/* Called by the engine for a node that has run when the graph isn't kept. */
int flb_node_release(FlbNode *node) {
    if (PyObject_TypeCheck(node, &FlbOpNode_Type)) return flb_op_node_drop((FlbOpNode *)node), 0;
    if (node->apply != python_apply) return 0;
    PyObject *r = PyObject_CallMethodNoArgs((PyObject *)node, str_release);
    Py_XDECREF(r);
    return r ? 0 : -1;
}
PyObject *flb_set_hook_handle(PyObject *m, PyObject *cls) {
    Py_XSETREF(hook_handle, Py_NewRef(cls));
    Py_RETURN_NONE;
}
int flb_init_node(PyObject *module) {
    if (!(str_apply = PyUnicode_InternFromString("apply")) ||
        !(str_release = PyUnicode_InternFromString("release")))
        return -1;
    PyTypeObject *types[] = {&FlbNode_Type, &FlbOpNode_Type, &FlbAccumulate_Type, &FlbLeaf_Type};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (PyModule_AddType(module, types[i]) < 0) return -1;
    return flb_init_raw_saved();
}
