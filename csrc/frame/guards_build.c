/* Making a guard tree: from the tuples of dynamo/guards/tree.py to tables. Every index is checked here, so
 * that a check need not. */
#define FLB_IMPORT_ARRAY
#include "frame/guards.h"

static const char *const access_names[A_COUNT] = {
    "arg", "func",          "globals",     "const", "cell",   "attr", "getattr",     "item",
    "key", "instance_dict", "type_lookup", "type",  "global", "call", "closure_cell"};
static const char *const check_names[C_COUNT] = {
    "TYPE_MATCH",      "ID_MATCH",    "EQUALS_MATCH",    "TENSOR_MATCH",
    "NDARRAY_MATCH",   "NDARRAY_FEW", "LENGTH",          "DICT_KEYS",
    "HAS_KEY",         "NO_KEY",      "GLOBAL_STATE",    "NO_TENSOR_ALIASING",
    "DUPLICATE_INPUT", "CALL",        "NO_INSTANCE_KEY", "NO_MEMORY_OVERLAP",
    "DICT_FACTS",      "TYPE_FACTS",  "CODE_MATCH",      "EMPTY_DICTS",
    "SIZES",           "CONTEXT_VAR"};
/* Fields of the dispatch state, by the names that _C.tls() knows. */
static const char *const state_names[S_COUNT] = {"grad_enabled",   "inference",      "function_disabled",
                                                 "function_modes", "dispatch_modes", "transforms",
                                                 "devices"};

static void tree_dealloc(Tree *t) {
    PyObject_GC_UnTrack(t);
    for (Py_ssize_t i = 0; i < t->n; i++) {
        Node *n = &t->nodes[i];
        Py_XDECREF(n->key);
        for (int j = 0; j < n->n_checks; j++) {
            Check *c = &n->checks[j];
            Py_XDECREF(c->payload);
            if (c->kind == C_SIZES) flb_sizes_free(c->data);
            else if (c->kind == C_CONTEXT) Py_XDECREF((PyObject *)c->data);
            else PyMem_Free(c->data);
        }
        PyMem_Free(n->checks);
    }
    PyMem_Free(t->nodes);
    PyMem_Free(t->glances);
    Py_XDECREF(t->mirror);
    PyObject_GC_Del(t);
}

static int tree_traverse(Tree *t, visitproc visit, void *arg) {
    for (Py_ssize_t i = 0; i < t->n; i++) {
        Py_VISIT(t->nodes[i].key);
        for (int j = 0; j < t->nodes[i].n_checks; j++) {
            Py_VISIT(t->nodes[i].checks[j].payload);
            if (t->nodes[i].checks[j].kind == C_CONTEXT) Py_VISIT((PyObject *)t->nodes[i].checks[j].data);
        }
    }
    Py_VISIT(t->mirror);
    return 0;
}

static int tree_clear(Tree *t) {
    Py_CLEAR(t->mirror); /* the nodes stay: a tree that is being collected is never asked again */
    return 0;
}

long *flb_longs(PyObject *seq, Py_ssize_t *n) {
    PyObject *fast = PySequence_Fast(seq, "guard: a sequence of ints is expected");
    if (!fast) return NULL;
    *n = PySequence_Fast_GET_SIZE(fast);
    long *out = PyMem_Malloc((*n ? *n : 1) * sizeof(long));
    for (Py_ssize_t i = 0; out && i < *n; i++) out[i] = PyLong_AsLong(PySequence_Fast_GET_ITEM(fast, i));
    Py_DECREF(fast);
    if (!out) PyErr_NoMemory();
    else if (PyErr_Occurred()) {
        PyMem_Free(out);
        out = NULL;
    }
    return out;
}

/* payload: (type, dtype, device, shape, strides, requires_grad or writeable, keys, whether made in inference
 * mode) */
static void *array_facts(PyObject *p, PyTypeObject *base) {
    PyObject *type, *dtype, *device, *shape, *strides;
    int flag, inference;
    unsigned int keys;
    if (!PyTuple_Check(p) ||
        !PyArg_ParseTuple(p, "OOOO!O!pIp", &type, &dtype, &device, &PyTuple_Type, &shape, &PyTuple_Type,
                          &strides, &flag, &keys, &inference)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "guard: array facts must be a tuple");
        return NULL;
    }
    if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, base) ||
        (base == &PyArray_Type && !PyArray_DescrCheck(dtype))) {
        PyErr_Format(PyExc_TypeError, "guard: facts about a %s", base->tp_name);
        return NULL;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(shape);
    if (PyTuple_GET_SIZE(strides) != n) {
        PyErr_SetString(PyExc_ValueError, "guard: shape and strides differ in length");
        return NULL;
    }
    ArrayFacts *f = PyMem_Malloc(sizeof(ArrayFacts) + 2 * n * sizeof(Py_ssize_t));
    if (!f) {
        PyErr_NoMemory();
        return NULL;
    }
    f->type = (PyTypeObject *)type;
    f->dtype = dtype; /* all kept alive by the payload tuple */
    f->device = device;
    f->ndim = (int)n;
    f->requires_grad = flag;
    f->keys = keys;
    f->inference = inference;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *size = PyTuple_GET_ITEM(shape, i), *stride = PyTuple_GET_ITEM(strides, i);
        f->dims[i] = size == Py_None ? ANY : PyLong_AsSsize_t(size);
        f->dims[n + i] = stride == Py_None ? ANY : PyLong_AsSsize_t(stride);
    }
    if (PyErr_Occurred()) {
        PyMem_Free(f);
        return NULL;
    }
    f->filled = 1;
    for (Py_ssize_t i = 0; i < n; i++) f->filled &= f->dims[i] > 0 && f->dims[n + i] != ANY;
    return f;
}

/* payload: a tuple of (key, value, exact), for types of (key, value, exact, after or None); all kept alive by
 * the payload */
static Fact *build_facts(PyObject *p, Py_ssize_t *n) {
    if (!PyTuple_Check(p)) {
        PyErr_SetString(PyExc_TypeError, "guard: facts are a tuple");
        return NULL;
    }
    *n = PyTuple_GET_SIZE(p);
    Fact *out = PyMem_Calloc(*n ? *n : 1, sizeof(Fact));
    if (!out) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < *n; i++) {
        PyObject *one = PyTuple_GET_ITEM(p, i);
        if (!PyTuple_Check(one) ||
            !PyArg_ParseTuple(one, "OOp|O", &out[i].key, &out[i].value, &out[i].exact, &out[i].after)) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "guard: a fact is a tuple (key, value, exact[, after])");
            PyMem_Free(out);
            return NULL;
        }
        if (out[i].after == Py_None) out[i].after = NULL;
    }
    return out;
}

/* Numbers of nodes that are known when a check of node `here` runs. */
static int slots_below(const long *idx, Py_ssize_t n, Py_ssize_t here) {
    for (Py_ssize_t i = 0; i < n; i++)
        if (idx[i] < 0 || idx[i] > here) {
            PyErr_Format(PyExc_ValueError, "guard: a check of node %zd reads node %ld", here, idx[i]);
            return -1;
        }
    return 0;
}

static int build_check(Check *c, PyObject *spec, Py_ssize_t here) {
    PyObject *payload;
    if (!PyTuple_Check(spec) || !PyArg_ParseTuple(spec, "iO", &c->kind, &payload)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "guard: a check is a tuple (kind, payload)");
        return -1;
    }
    Py_INCREF(payload);
    c->payload = payload;
    switch (c->kind) {
    case C_TENSOR:
        if (!flb_frame_api()) {
            PyErr_SetString(PyExc_RuntimeError, "guard: TENSOR_MATCH needs flambeau._C");
            return -1;
        }
        return (c->data = array_facts(payload, flb_frame_api()->tensor_type)) ? 0 : -1;
    case C_NDARRAY:
    case C_NDARRAY_FEW: return (c->data = array_facts(payload, &PyArray_Type)) ? 0 : -1;
    case C_LENGTH:
    case C_SAME_AS: {
        c->n = PyLong_AsSsize_t(payload);
        long slot = (long)c->n;
        if (c->n == -1 && PyErr_Occurred()) return -1;
        return c->kind == C_SAME_AS ? slots_below(&slot, 1, here) : 0;
    }
    case C_GLOBAL_STATE:
        if (!(c->data = flb_longs(payload, &c->n))) return -1;
        if (c->n != S_COUNT) {
            PyErr_SetString(PyExc_ValueError, "guard: GLOBAL_STATE takes a value for each row of STATE");
            return -1;
        }
        return 0;
    case C_DICT_FACTS:
    case C_TYPE_FACTS: return (c->data = build_facts(payload, &c->n)) ? 0 : -1;
    case C_EMPTY:
        if (!PyTuple_Check(payload)) {
            PyErr_SetString(PyExc_TypeError, "guard: EMPTY_DICTS takes a tuple");
            return -1;
        }
        c->n = PyTuple_GET_SIZE(payload);
        if (!(c->data = PyMem_Calloc(c->n ? c->n : 1, sizeof(PyObject *)))) {
            PyErr_NoMemory();
            return -1;
        }
        return 0;
    case C_CODE:
        if (!PyTuple_Check(payload) || PyTuple_GET_SIZE(payload) != 2) {
            PyErr_SetString(PyExc_TypeError, "guard: CODE_MATCH takes (code, globals)");
            return -1;
        }
        return 0;
    case C_SIZES: return (c->data = flb_sizes_build(payload, (int)here + 1)) ? 0 : -1;
    case C_NOT_ALIASED:
    case C_NO_OVERLAP: return (c->data = flb_longs(payload, &c->n)) ? slots_below(c->data, c->n, here) : -1;
    case C_KEYS:
        if (!PyTuple_Check(payload)) {
            PyErr_SetString(PyExc_TypeError, "guard: DICT_KEYS takes a tuple");
            return -1;
        }
        return 0;
    }
    if (c->kind < 0 || c->kind >= C_COUNT) {
        PyErr_Format(PyExc_ValueError, "guard: unknown check %d", c->kind);
        return -1;
    }
    return 0;
}

static PyObject *tree_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"nodes", "mirror", NULL};
    PyObject *list, *mirror = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|O", names, &PyList_Type, &list, &mirror)) return NULL;
    if (!(list = PyList_AsTuple(list))) return NULL; /* reading an index may run Python */
    Tree *t = PyObject_GC_New(Tree, type);
    if (!t) {
        Py_DECREF(list);
        return NULL;
    }
    t->n = 0;
    t->failed_node = t->failed_check = t->failed_fact = -1;
    Py_INCREF(mirror);
    t->mirror = mirror;
    t->n_args = t->n_glances = 0;
    t->glances = NULL;
    Py_ssize_t total = PyTuple_GET_SIZE(list);
    t->nodes = PyMem_Calloc(total ? total : 1, sizeof(Node));
    PyObject_GC_Track(t);
    if (!t->nodes) {
        PyErr_NoMemory();
        goto fail;
    }
    for (Py_ssize_t i = 0; i < total; i++) {
        Node *n = &t->nodes[i];
        PyObject *key, *checks, *item = PyTuple_GET_ITEM(list, i);
        if (!PyTuple_Check(item) ||
            !PyArg_ParseTuple(item, "iiOO!", &n->parent, &n->access, &key, &PyTuple_Type, &checks)) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "guard: a node is a tuple (parent, access, key, checks)");
            goto fail;
        }
        t->n = i + 1;
        Py_INCREF(key);
        n->key = key;
        if (n->access < 0 || n->access >= A_COUNT || n->parent >= i) {
            PyErr_Format(PyExc_ValueError, "guard: node %zd has access %d and parent %d", i, n->access,
                         n->parent);
            goto fail;
        }
        int roots = n->access == A_ARG || n->access == A_FUNC || n->access == A_GLOBALS ||
            n->access == A_CONST || n->access == A_GLOBAL || n->access == A_CLOSURE_CELL;
        if (!roots && n->parent < 0) {
            PyErr_Format(PyExc_ValueError, "guard: node %zd needs a parent", i);
            goto fail;
        }
        if (n->access == A_ARG || n->access == A_ITEM || n->access == A_CLOSURE_CELL) {
            n->index = PyLong_AsSsize_t(key);
            if (n->index < 0) {
                if (!PyErr_Occurred())
                    PyErr_Format(PyExc_ValueError, "guard: node %zd has a negative index", i);
                goto fail;
            }
            if (n->access == A_ARG && n->index >= t->n_args) t->n_args = n->index + 1;
        }
        Py_ssize_t m = PyTuple_GET_SIZE(checks);
        n->checks = PyMem_Calloc(m ? m : 1, sizeof(Check));
        if (!n->checks) {
            PyErr_NoMemory();
            goto fail;
        }
        for (Py_ssize_t j = 0; j < m; j++) {
            n->n_checks = (int)j + 1;
            if (build_check(&n->checks[j], PyTuple_GET_ITEM(checks, j), i) < 0) goto fail;
        }
    }
    if (flb_guards_glances(t) < 0) goto fail;
    Py_DECREF(list);
    t->quiet = flb_guards_quiet(t);
    return (PyObject *)t;
fail:
    Py_DECREF(list);
    Py_DECREF(t);
    return NULL;
}

static PyObject *tree_check(Tree *t, PyObject *args) {
    PyObject *func, *tuple;
    if (!PyArg_ParseTuple(args, "O!O!", &PyFunction_Type, &func, &PyTuple_Type, &tuple)) return NULL;
    if (PyTuple_GET_SIZE(tuple) < t->n_args) {
        PyErr_SetString(PyExc_ValueError, "guard: the tree reads more arguments");
        return NULL;
    }
    int r = flb_guards_check((PyObject *)t, (PyFunctionObject *)func, ((PyTupleObject *)tuple)->ob_item);
    return r < 0 ? NULL : PyBool_FromLong(r);
}

static PyObject *tree_failed(Tree *t, void *closure) {
    return Py_BuildValue("(ii)", t->failed_node, t->failed_check);
}

static PyObject *tree_describe(Tree *t, PyObject *unused) {
    if (!t->mirror || t->mirror == Py_None)
        return PyUnicode_FromFormat("node %d, check %d", t->failed_node, t->failed_check);
    return PyObject_CallMethod(t->mirror, "describe", "iii", t->failed_node, t->failed_check, t->failed_fact);
}

static PyMethodDef tree_methods[] = {
    {"describe_failure", (PyCFunction)tree_describe, METH_NOARGS,
     "the last failure: what the mirror says of it, without one a text"},
    {"check", (PyCFunction)tree_check, METH_VARARGS, "check(func, flat_args) -> bool"},
    {NULL},
};
static PyGetSetDef tree_getset[] = {
    {"failed", (getter)tree_failed, NULL,
     "(node, check) of the last failure; check is -1 when the value didn't exist"},
    {NULL},
};
static PyMemberDef tree_members[] = {
    {"mirror", T_OBJECT, offsetof(Tree, mirror), READONLY,
     "callable(func, flat_args) -> bool used in strict mode"},
    {NULL},
};

PyTypeObject FlbTree_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._frame.GuardTree",
    .tp_basicsize = sizeof(Tree),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "GuardTree(nodes, mirror=None): nodes are (parent, access, key, ((check, payload), ...))",
    .tp_new = tree_new,
    .tp_dealloc = (destructor)tree_dealloc,
    .tp_traverse = (traverseproc)tree_traverse,
    .tp_clear = (inquiry)tree_clear,
    .tp_methods = tree_methods,
    .tp_getset = tree_getset,
    .tp_members = tree_members,
};

int flb_add_names(PyObject *module, const char *name, const char *const *names, int n) {
    PyObject *d = PyDict_New();
    if (!d) return -1;
    for (int i = 0; i < n; i++) {
        PyObject *v = PyLong_FromLong(i);
        if (!v || PyDict_SetItemString(d, names[i], v) < 0) {
            Py_XDECREF(v);
            Py_DECREF(d);
            return -1;
        }
        Py_DECREF(v);
    }
    int r = PyModule_AddObject(module, name, d);
    if (r < 0) Py_DECREF(d);
    return r;
}

Py_ssize_t flb_guards_arguments(PyObject *tree) {
    if (Py_TYPE(tree) != &FlbTree_Type) {
        PyErr_SetString(PyExc_TypeError, "a GuardTree is expected");
        return -1;
    }
    return ((Tree *)tree)->n_args;
}

int flb_guards_init(PyObject *module) {
    import_array1(-1);
    if (PyType_Ready(&FlbTree_Type) < 0) return -1;
    if (!flb_absent && !(flb_absent = PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type))) return -1;
    Py_INCREF(flb_absent);
    if (PyModule_AddObject(module, "ABSENT", flb_absent) < 0) return -1;
    Py_INCREF(&FlbTree_Type);
    if (PyModule_AddObject(module, "GuardTree", (PyObject *)&FlbTree_Type) < 0) return -1;
    if (flb_add_names(module, "ACCESS", access_names, A_COUNT) < 0) return -1;
    if (flb_add_names(module, "STATE", state_names, S_COUNT) < 0) return -1;
    if (flb_sizes_names(module) < 0) return -1;
    return flb_add_names(module, "CHECK", check_names, C_COUNT);
}
