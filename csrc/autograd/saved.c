/* Values kept for the backward pass: version checks, hooks on saved tensors, and the relation of a view to
 * its root. */
#include "autograd/autograd.h"
#include "core/state.h"

PyObject *flb_like_class = NULL;
static PyObject *detach_python =
    NULL; /* detach(tensor) through the dispatcher, for classes with __torch_dispatch__ */
static PyObject *alias_op = NULL;     /* aten.alias.default */
static PyObject *replay_steps = NULL; /* replay(root, steps): the steps of a view on another root */

/* ---- saving -------------------------------------------------------------------------------------------- */

/* Says of the error that a hook raised that it is the program's: it is never taken for one of the graph that
 * was running. */
static void raised_by_program(void) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value && PyObject_SetAttrString(value, "raised_by_program", Py_True) < 0) PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}
static int pack_with(FlbSaved *s, PyObject *hooks) {
    FlbEdge e = {NULL, 0};
    if (s->nr < 0 && flb_edge_of((FlbTensor *)s->value, &e) < 0) return -1;
    PyObject *unpack = PyTuple_GET_ITEM(hooks, 1);
    s->forward = Py_XNewRef(((FlbTensor *)s->value)->forward);
    s->aux = e.node ? Py_BuildValue("(OOi)", unpack, e.node, e.nr) : PyTuple_Pack(1, unpack);
    Py_XDECREF(e.node);
    /* The hook may run a backward that drops the value. What it computes has no history: it would save values
     * of its own, and call the hook again. */
    PyObject *value = Py_NewRef(s->value);
    int enabled = flb_tls()->grad_enabled;
    flb_tls()->grad_enabled = 0;
    PyObject *packed = s->aux ? PyObject_CallOneArg(PyTuple_GET_ITEM(hooks, 0), value) : NULL;
    flb_tls()->grad_enabled = enabled;
    Py_DECREF(value);
    if (!packed) {
        raised_by_program();
        Py_CLEAR(s->aux);
        return -1;
    }
    if (!s->value) { /* it did */
        Py_DECREF(packed);
        return 0;
    }
    Py_SETREF(s->value, packed);
    return 0;
}
int flb_save(FlbSaved *s, PyObject *tensor, int nr) {
    FlbTensor *t = (FlbTensor *)tensor;
    if (flb_inference_used && flb_is_inference(t) && !flb_tls()->inference)
        return PyErr_SetString(
                   PyExc_RuntimeError,
                   "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
                   "inference mode in "
                   "computation tracked by autograd. To work around this, you can make a clone to get a "
                   "normal tensor and use "
                   "it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."),
               -1;
    /* A result refers to the node: it is kept without its history, or the node would own itself. */
    PyObject *v = nr < 0       ? Py_NewRef(tensor)
        : t->keys & FLB_PYTHON ? PyObject_CallOneArg(detach_python, tensor)
                               : flb_alias(t, Py_TYPE(t));
    if (!v) return -1;
    s->kind = SAVED_TENSOR;
    s->nr = nr;
    s->version = t->storage ? t->storage->version : 0;
    s->value = v;
    if (v != tensor) ((FlbTensor *)v)->forward = Py_XNewRef(t->forward);
    if (!flb_tls()->saved_hooks) return 0;
    PyObject *hooks = Py_NewRef(flb_stack(FLB_SAVED_HOOKS)->value);
    int r = PyTuple_Check(hooks) && PyTuple_GET_SIZE(hooks) == 2 ? pack_with(s, hooks) : 0;
    Py_DECREF(hooks);
    return r;
}
void flb_saved_share(FlbSaved *s, int nr, PyObject *forward) {
    if (s->kind != SAVED_TENSOR || s->nr != nr || s->released || !s->value) return;
    Py_XSETREF(*(s->aux ? &s->forward : &((FlbTensor *)s->value)->forward), Py_NewRef(forward));
}
void flb_saved_clear(FlbSaved *s) {
    s->released = 1;
    if (s->kind == SAVED_LIST && s->value && PyList_Check(s->value)) {
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(s->value); i++) {
            PyObject *x = PyList_GET_ITEM(s->value, i);
            if (Py_TYPE(x) == &FlbSavedTensor_Type) flb_saved_clear(&((FlbSavedTensor *)x)->slot);
        }
        return;
    }
    if (s->kind != SAVED_TENSOR) {
        return; /* numbers and shapes stay readable */
    }
    Py_CLEAR(s->value);
    Py_CLEAR(s->aux);
    Py_CLEAR(s->forward);
}
void flb_saved_free(FlbSaved *s) {
    Py_CLEAR(s->forward);
    Py_CLEAR(s->value);
    Py_CLEAR(s->aux);
    Py_CLEAR(s->dtype);
    s->released = 1;
}
static PyObject *unpack_with(FlbSaved *s, FlbNode *node, int history) {
    PyObject *aux = Py_NewRef(s->aux), *value = Py_NewRef(s->value);
    PyObject *t = PyObject_CallOneArg(PyTuple_GET_ITEM(aux, 0), value);
    if (!t) raised_by_program();
    Py_DECREF(value);
    if (t && !PyObject_TypeCheck(t, &FlbTensor_Type)) {
        PyErr_Format(PyExc_TypeError,
                     "Output of saved tensor unpack_hook expected to be a Tensor but got result of type %s",
                     Py_TYPE(t)->tp_name);
        Py_CLEAR(t);
    }
    FlbNode *from = s->nr >= 0       ? node
        : PyTuple_GET_SIZE(aux) == 3 ? (FlbNode *)PyTuple_GET_ITEM(aux, 1)
                                     : NULL;
    if (t && history && from && ((FlbTensor *)t)->grad_fn != (PyObject *)from) {
        int nr = s->nr >= 0 ? s->nr : (int)PyLong_AsLong(PyTuple_GET_ITEM(aux, 2));
        PyObject *variable = Py_TYPE(from) == &FlbAccumulate_Type ? ((FlbAccumulate *)from)->variable : NULL;
        if (variable == t) {
            /* the hook gave the leaf itself back */
        } else {
            Py_SETREF(t, flb_alias((FlbTensor *)t, Py_TYPE(t)));
            if (t && variable) { /* a leaf: leads on to it by way of an alias */
                FlbTls *tls = flb_tls();
                uint8_t before = tls->grad_enabled;
                tls->grad_enabled = 1;
                PyObject *alias = flb_library_call(alias_op, (PyObject *[]){variable}, 1);
                tls->grad_enabled = before;
                if (!alias) Py_CLEAR(t);
                else if (((FlbTensor *)alias)->grad_fn)
                    flb_set_history((FlbTensor *)t, (FlbNode *)((FlbTensor *)alias)->grad_fn,
                                    ((FlbTensor *)alias)->output_nr);
                Py_XDECREF(alias);
            } else if (t) {
                flb_set_history((FlbTensor *)t, from, nr);
            }
        }
    }
    if (t && s->forward && !((FlbTensor *)t)->forward) ((FlbTensor *)t)->forward = Py_NewRef(s->forward);
    Py_DECREF(aux);
    return t;
}
static PyObject *unpack_list(FlbSaved *s, FlbNode *node, PyObject *what, int history) {
    Py_ssize_t n = PyList_GET_SIZE(s->value);
    PyObject *out = PyList_New(n);
    for (Py_ssize_t i = 0; out && i < n; i++) {
        PyObject *x = PyList_GET_ITEM(s->value, i);
        x = Py_TYPE(x) == &FlbSavedTensor_Type
            ? flb_saved_value(&((FlbSavedTensor *)x)->slot, node, what, history)
            : Py_NewRef(x);
        if (!x) {
            Py_DECREF(out);
            return NULL;
        }
        PyList_SET_ITEM(out, i, x);
    }
    return out;
}
/* The value as a formula gets it. history: a result carries its node again (it may be differentiated). */
PyObject *flb_saved_value(FlbSaved *s, FlbNode *node, PyObject *what, int history) {
    if (s->kind == SAVED_LIST) return unpack_list(s, node, what, history);
    if (s->kind == SAVED_LIKE)
        return PyObject_CallFunctionObjArgs(flb_like_class, s->value, s->dtype, s->aux, NULL);
    if (s->kind != SAVED_TENSOR) return Py_NewRef(s->value ? s->value : Py_None);
    if (s->released || !s->value) {
        PyErr_SetString(PyExc_RuntimeError,
                        "Trying to backward through the graph a second time (or directly access saved "
                        "tensors after they have already been "
                        "freed). Saved intermediate values of the graph are freed when you call .backward() "
                        "or autograd.grad(). Specify "
                        "retain_graph=True if you need to backward through the graph a second time or if you "
                        "need to access saved tensors "
                        "after calling backward.");
        return NULL;
    }
    if (s->aux) return unpack_with(s, node, history);
    FlbTensor *t = (FlbTensor *)s->value;
    Py_ssize_t version = t->storage ? t->storage->version : 0;
    if (version != s->version) {
        PyObject *shape = flb_shape(t), *name = node ? flb_node_name(node) : PyUnicode_FromString("a node"),
                 *list = shape ? PySequence_List(shape) : NULL;
        if (list && name)
            PyErr_Format(PyExc_RuntimeError,
                         "one of the variables needed for gradient computation has been modified by an "
                         "inplace operation: [%S %S], which is '%U' "
                         "of %U, is at version %zd; expected version %zd instead. Hint: enable anomaly "
                         "detection to find the operation that failed "
                         "to compute its gradient, with torch.autograd.set_detect_anomaly(True).",
                         t->dtype, list, what, name, version, s->version);
        Py_XDECREF(list);
        Py_XDECREF(name);
        return NULL;
    }
    if (s->nr >= 0 && node && history) {
        /* A class with __torch_dispatch__ made a fresh object when it was detached. */
        PyObject *out = t->keys & FLB_PYTHON ? Py_NewRef(t) : flb_alias(t, Py_TYPE(t));
        if (out && out != (PyObject *)t) ((FlbTensor *)out)->forward = Py_XNewRef(t->forward);
        if (out) flb_set_history((FlbTensor *)out, node, s->nr);
        return out;
    }
    return Py_NewRef(t);
}

int flb_saved_counters(FlbSaved *s, PyObject *list) {
    if (s->kind == SAVED_LIST && s->value && PyList_Check(s->value)) {
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(s->value); i++) {
            PyObject *x = PyList_GET_ITEM(s->value, i);
            if (Py_TYPE(x) == &FlbSavedTensor_Type &&
                flb_saved_counters(&((FlbSavedTensor *)x)->slot, list) < 0)
                return -1;
        }
        return 0;
    }
    if (s->kind != SAVED_TENSOR || s->aux || !s->value || s->released) return 0;
    FlbStorage *counter = ((FlbTensor *)s->value)->storage;
    return counter ? PyList_Append(list, (PyObject *)counter) : 0;
}

/* ---- SavedTensor: the same for nodes written in Python ------------------------------------------------- */

static int saved_traverse(FlbSavedTensor *s, visitproc visit, void *arg) {
    Py_VISIT(s->slot.forward);
    Py_VISIT(s->slot.value);
    Py_VISIT(s->slot.aux);
    return 0;
}
static int saved_clear(FlbSavedTensor *s) {
    Py_CLEAR(s->slot.forward);
    Py_CLEAR(s->slot.value);
    Py_CLEAR(s->slot.aux);
    return 0;
}
static void saved_dealloc(FlbSavedTensor *s) {
    PyObject_GC_UnTrack(s);
    flb_saved_free(&s->slot);
    Py_XDECREF(s->what);
    PyObject_GC_Del(s);
}
static PyObject *saved_make(PyObject *tensor, int nr, PyObject *what) {
    FlbSavedTensor *s = PyObject_GC_New(FlbSavedTensor, &FlbSavedTensor_Type);
    if (!s) return NULL;
    memset(&s->slot, 0, sizeof s->slot);
    s->what = Py_NewRef(what);
    PyObject_GC_Track(s);
    if (flb_save(&s->slot, tensor, nr) < 0) Py_CLEAR(s);
    return (PyObject *)s;
}
static PyObject *saved_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *tensor, *nr, *what;
    if (!PyArg_ParseTuple(args, "O!OU", &FlbTensor_Type, &tensor, &nr, &what)) return NULL;
    long k = nr == Py_None ? -1 : PyLong_AsLong(nr);
    if (k == -1 && PyErr_Occurred()) return NULL;
    return saved_make(tensor, (int)k, what);
}
static PyObject *saved_unpack(FlbSavedTensor *s, PyObject *node) {
    if (node != Py_None && !PyObject_TypeCheck(node, &FlbNode_Type))
        return PyErr_SetString(PyExc_TypeError, "a Node or None is needed"), NULL;
    return flb_saved_value(&s->slot, node == Py_None ? NULL : (FlbNode *)node, s->what, 1);
}
static PyObject *saved_share(FlbSavedTensor *s, PyObject *args) {
    int nr;
    PyObject *forward;
    if (!PyArg_ParseTuple(args, "iO", &nr, &forward)) return NULL;
    flb_saved_share(&s->slot, nr, forward);
    Py_RETURN_NONE;
}
static PyObject *saved_written(FlbSavedTensor *s, PyObject *unused) {
    FlbSaved *slot = &s->slot;
    if (slot->kind == SAVED_TENSOR && !slot->aux && slot->value && ((FlbTensor *)slot->value)->storage)
        slot->version = ((FlbTensor *)slot->value)->storage->version;
    Py_RETURN_NONE;
}
static PyObject *saved_release(FlbSavedTensor *s, PyObject *unused) {
    flb_saved_clear(&s->slot);
    Py_RETURN_NONE;
}
int flb_saved_register(FlbSaved *s, PyObject *pack, PyObject *unpack) {
    if (s->kind != SAVED_TENSOR || s->released || !s->value)
        return PyErr_SetString(
                   PyExc_RuntimeError,
                   "Calling register_hooks on a saved tensor after it has been freed is forbidden"),
               -1;
    if (s->aux)
        return PyErr_SetString(PyExc_RuntimeError,
                               "Calling register_hooks on a saved tensor whose hooks have already been set"),
               -1;
    PyObject *hooks = PyTuple_Pack(2, pack, unpack);
    int r = hooks ? pack_with(s, hooks) : -1;
    Py_XDECREF(hooks);
    return r;
}
static PyObject *saved_register(FlbSavedTensor *s, PyObject *args) {
    PyObject *pack, *unpack;
    if (!PyArg_ParseTuple(args, "OO", &pack, &unpack)) return NULL;
    if (flb_saved_register(&s->slot, pack, unpack) < 0) return NULL;
    Py_RETURN_NONE;
}
static PyObject *saved_counters(FlbSavedTensor *s, PyObject *unused) {
    PyObject *list = PyList_New(0);
    if (list && flb_saved_counters(&s->slot, list) < 0) Py_CLEAR(list);
    return list;
}
static PyMethodDef saved_methods[] = {
    {"counters", (PyCFunction)saved_counters, METH_NOARGS,
     "A list of what counts the writes to the tensor; none when hooks have packed it."},
    {"unpack", (PyCFunction)saved_unpack, METH_O,
     "unpack(node): the tensor; RuntimeError when it was freed or written since."},
    {"share", (PyCFunction)saved_share, METH_VARARGS,
     "share(number, forward): that result of the node has a tangent now."},
    {"written", (PyCFunction)saved_written, METH_NOARGS,
     "The node itself has written to the tensor's memory, beside its elements."},
    {"release", (PyCFunction)saved_release, METH_NOARGS, "Drop the tensor."},
    {"register_hooks", (PyCFunction)saved_register, METH_VARARGS, "register_hooks(pack, unpack)"},
    {NULL}};
PyTypeObject FlbSavedTensor_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._C.SavedTensor",
    .tp_basicsize = sizeof(FlbSavedTensor),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "SavedTensor(tensor, number or None, what): a tensor kept for the backward pass; `number`: "
              "which result of the node it is.",
    .tp_new = saved_new,
    .tp_dealloc = (destructor)saved_dealloc,
    .tp_traverse = (traverseproc)saved_traverse,
    .tp_clear = (inquiry)saved_clear,
    .tp_methods = saved_methods,
};
/* A list of SavedTensor for the tensors in `list`, other items as they are. */
PyObject *flb_saved_list(PyObject *list) {
    PyObject *fast = PySequence_List(list),
             *what = PyUnicode_FromString("a list"); /* a list of our own: hooks may change the user's */
    for (Py_ssize_t i = 0; fast && what && i < PyList_GET_SIZE(fast); i++) {
        PyObject *x = PyList_GET_ITEM(fast, i);
        if (!PyObject_TypeCheck(x, &FlbTensor_Type)) continue;
        PyObject *s = saved_make(x, -1, what);
        if (!s) Py_CLEAR(fast);
        else PyList_SetItem(fast, i, s);
    }
    Py_XDECREF(what);
    return fast;
}

/* ---- views --------------------------------------------------------------------------------------------- */

static int view_traverse(FlbView *v, visitproc visit, void *arg) {
    Py_VISIT(v->root);
    Py_VISIT(v->steps);
    return 0;
}
static int view_clear(FlbView *v) {
    Py_CLEAR(v->root);
    Py_CLEAR(v->steps);
    return 0;
}
static void view_dealloc(FlbView *v) {
    PyObject_GC_UnTrack(v);
    view_clear(v);
    PyObject_GC_Del(v);
}
static PyObject *view_root(FlbView *v, void *c) { return Py_NewRef(v->root ? (PyObject *)v->root : Py_None); }
static PyGetSetDef view_getset[] = {{"root", (getter)view_root, NULL, "The tensor at the end of the chain."},
                                    {NULL}};
static PyMemberDef view_members[] = {
    {"steps", T_OBJECT, offsetof(FlbView, steps), READONLY,
     "None: root and view are strided over one memory; else (steps before, op, rest, which)"},
    {"made_without_grad", T_BOOL, offsetof(FlbView, creation), READONLY,
     "whether recording was off when it was made"},
    {NULL}};
PyTypeObject FlbView_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._C.View",
    .tp_basicsize = sizeof(FlbView),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "What a view is a view of.",
    .tp_dealloc = (destructor)view_dealloc,
    .tp_traverse = (traverseproc)view_traverse,
    .tp_clear = (inquiry)view_clear,
    .tp_members = view_members,
    .tp_getset = view_getset,
};
/* Whether root and view are strided tensors over one memory with one element type: their own geometry is the
 * map. */
static int strided_pair(FlbTensor *base, FlbTensor *out) {
    return base->array && out->array && !base->keys && !out->keys && base->dtype == out->dtype;
}
static PyObject *geometry_step(FlbTensor *root, FlbTensor *t);
int flb_view_is_strided(FlbTensor *base) {
    FlbView *above = flb_view(base);
    return base->array && !base->keys && !(above && above->steps);
}

/* `out` is the view op(base, *rest) (item `which` of it, or None); op and rest NULL when both are plain. */
int flb_note_view(FlbTensor *out, FlbTensor *base, PyObject *op, PyObject *rest, PyObject *which) {
    /* Nothing will ever be recorded of an inference tensor, so what is seen of it is no view, as in PyTorch.
     */
    if (flb_inference_used && flb_is_inference(base)) return 0;
    FlbView *above = flb_view(base);
    FlbTensor *root = above ? above->root : base;
    int plain = strided_pair(base, out) && !(above && above->steps);
    PyObject *steps = NULL;
    if (!plain) {
        if (!op || !rest)
            return PyErr_SetString(PyExc_RuntimeError,
                                   "a view of a tensor without plain data needs its operator"),
                   -1;
        PyObject *before =
            above ? (above->steps ? Py_NewRef(above->steps) : geometry_step(root, base)) : Py_NewRef(Py_None);
        steps = before ? PyTuple_Pack(4, before, op, rest, which ? which : Py_None) : NULL;
        Py_XDECREF(before);
        if (!steps) return -1;
    }
    FlbStorage *storage = flb_storage(root);
    FlbView *v = storage ? PyObject_GC_New(FlbView, &FlbView_Type) : NULL;
    if (!v) {
        Py_XDECREF(steps);
        return -1;
    }
    v->root = (FlbTensor *)Py_NewRef(root);
    v->steps = steps;
    v->generation = above && above->generation < storage->recorded ? above->generation : storage->recorded;
    const FlbTls *tls = flb_tls();
    v->creation = above && above->creation ? above->creation
        : tls->inference                   ? VIEW_INFERENCE
        : tls->grad_enabled                ? VIEW_PLAIN
                                           : VIEW_NO_GRAD;
    PyObject_GC_Track(v);
    Py_XSETREF(out->autograd, (PyObject *)v);
    return 0;
}
static PyObject *relative_geometry(FlbTensor *root, FlbTensor *t) {
    Py_ssize_t item = PyArray_ITEMSIZE((PyArrayObject *)root->array);
    PyObject *shape = flb_shape(t), *strides = shape ? flb_strides(t) : NULL;
    if (!strides) return NULL;
    Py_ssize_t bytes = PyArray_BYTES((PyArrayObject *)t->array) - PyArray_BYTES((PyArrayObject *)root->array);
    return Py_BuildValue("(OOn)", shape, strides, item ? bytes / item : 0);
}
/* (None, None, (shape, strides, offset from the root), None): the plain part of a chain that goes on
 * otherwise. */
static PyObject *geometry_step(FlbTensor *root, FlbTensor *t) {
    PyObject *g = relative_geometry(root, t);
    PyObject *step = g ? PyTuple_Pack(4, Py_None, Py_None, g, Py_None) : NULL;
    Py_XDECREF(g);
    return step;
}
/* The map of a view as a value: what replay_steps takes. */
static PyObject *view_map(FlbTensor *t, FlbView *v) {
    return v->steps ? Py_NewRef(v->steps) : geometry_step(v->root, t);
}

/* Whether the memory was written since the history was right. */
static int is_stale(FlbTensor *t, const FlbView *v) {
    return v && t->storage && t->storage->recorded != v->generation;
}
int flb_requires_grad_slow(FlbTensor *t) {
    FlbView *v = flb_view(t);
    /* Its history is an error, that it has one is none. */
    if (is_stale(t, v) && v->creation != VIEW_PLAIN && v->root->flags & FLB_REQUIRES_GRAD) return 1;
    return flb_refresh(t) < 0 ? -1 : (t->flags & FLB_REQUIRES_GRAD) != 0;
}
int flb_refresh(FlbTensor *t) {
    FlbView *v = flb_view(t);
    if (!is_stale(t, v)) return 0;
    if (v->creation != VIEW_PLAIN && v->root->flags & FLB_REQUIRES_GRAD)
        return flb_refuse_view_of_written(t, v);
    Py_ssize_t now = t->storage->recorded;
    FlbTensor *root = (FlbTensor *)Py_NewRef(v->root);
    PyObject *map = NULL, *fresh = NULL;
    int r = -1;
    if (!(root->flags & FLB_REQUIRES_GRAD)) {
        v->generation = now;
        r = 0;
    } else if ((map = view_map(t, v))) {
        /* The engine asks too, with recording off. */
        FlbTls *s = flb_tls();
        uint8_t grad = s->grad_enabled;
        uint32_t excluded = s->excluded;
        FlbLayer *modes = (FlbLayer *)Py_XNewRef((PyObject *)flb_stack(FLB_DISPATCH_MODES)),
                 *functions = (FlbLayer *)Py_XNewRef((PyObject *)flb_stack(FLB_FUNCTION_MODES));
        s->grad_enabled = 1;
        s->excluded &= ~FLB_AUTOGRAD;
        flb_set_stack(FLB_DISPATCH_MODES, NULL);
        flb_set_stack(FLB_FUNCTION_MODES, NULL);
        fresh = flb_library_call(replay_steps, (PyObject *[]){(PyObject *)root, map}, 2);
        s->grad_enabled = grad, s->excluded = excluded;
        flb_set_stack(FLB_DISPATCH_MODES, modes);
        flb_set_stack(FLB_FUNCTION_MODES, functions);
        s->epoch++;
        if (fresh && PyObject_TypeCheck(fresh, &FlbTensor_Type)) {
            FlbTensor *f = (FlbTensor *)fresh;
            if (f->grad_fn) flb_set_history(t, (FlbNode *)f->grad_fn, f->output_nr);
            if ((v = flb_view(t))) v->generation = now;
            r = 0;
        }
    }
    Py_XDECREF(map);
    Py_XDECREF(fresh);
    Py_DECREF(root);
    return r;
}

/* ---- the module's part --------------------------------------------------------------------------------- */

static PyObject *py_note_view(PyObject *m, PyObject *args) {
    PyObject *out, *base, *op, *rest, *which = Py_None;
    if (!PyArg_ParseTuple(args, "O!O!OO!|O", &FlbTensor_Type, &out, &FlbTensor_Type, &base, &op,
                          &PyTuple_Type, &rest, &which))
        return NULL;
    if (flb_note_view((FlbTensor *)out, (FlbTensor *)base, op, rest, which) < 0) return NULL;
    Py_RETURN_NONE;
}
static PyObject *py_note_function_view(PyObject *m, PyObject *t) {
    FlbView *v = PyObject_TypeCheck(t, &FlbTensor_Type) ? flb_view((FlbTensor *)t) : NULL;
    if (v) v->creation = VIEW_FUNCTION;
    if (v && ((FlbTensor *)t)->storage) v->generation = ((FlbTensor *)t)->storage->recorded;
    Py_RETURN_NONE;
}
static PyObject *py_forget_view(PyObject *m, PyObject *t) {
    FlbTensor *own = (FlbTensor *)t;
    if (PyObject_TypeCheck(t, &FlbTensor_Type) && flb_view(own)) Py_CLEAR(own->autograd);
    Py_RETURN_NONE;
}
static PyObject *py_view_map(PyObject *m, PyObject *t) {
    FlbView *v = PyObject_TypeCheck(t, &FlbTensor_Type) ? flb_view((FlbTensor *)t) : NULL;
    if (!v) Py_RETURN_NONE;
    return view_map((FlbTensor *)t, v);
}
static PyObject *py_configure_saved(PyObject *m, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"like", "detach", "alias", "replay", NULL};
    PyObject *like, *detach, *alias, *replay;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOO", names, &like, &detach, &alias, &replay))
        return NULL;
    Py_XSETREF(flb_like_class, Py_NewRef(like));
    Py_XSETREF(detach_python, Py_NewRef(detach));
    Py_XSETREF(alias_op, Py_NewRef(alias));
    Py_XSETREF(replay_steps, Py_NewRef(replay));
    Py_RETURN_NONE;
}
/* share_forward(node, number, forward): what an operator's node keeps of that result has a tangent now. False
 * for other nodes. */
static PyObject *py_share_forward(PyObject *m, PyObject *args) {
    PyObject *node, *forward;
    int nr;
    if (!PyArg_ParseTuple(args, "OiO", &node, &nr, &forward)) return NULL;
    if (!PyObject_TypeCheck(node, &FlbOpNode_Type)) Py_RETURN_FALSE;
    FlbOpNode *own = (FlbOpNode *)node;
    for (int i = 0; own->saved && i < own->plan->n_saves; i++) flb_saved_share(&own->saved[i], nr, forward);
    Py_RETURN_TRUE;
}
/* note_written_dual(tensor): views of its memory ask their root for a tangent. */
static PyObject *py_note_written_dual(PyObject *m, PyObject *t) {
    FlbStorage *s = PyObject_TypeCheck(t, &FlbTensor_Type) ? flb_storage((FlbTensor *)t) : NULL;
    if (!s) return PyErr_Occurred() ? NULL : (PyErr_SetString(PyExc_TypeError, "a tensor is needed"), NULL);
    s->written_dual = 1;
    Py_RETURN_NONE;
}
PyMethodDef flb_saved_functions[] = {
    {"share_forward", py_share_forward, METH_VARARGS,
     "share_forward(node, number, forward): what an operator's node keeps of that result has a tangent now."},
    {"note_written_dual", py_note_written_dual, METH_O,
     "note_written_dual(tensor): a write gave it a tangent, which its views have too."},
    {"note_view", py_note_view, METH_VARARGS,
     "note_view(out, base, op, rest, which=None): out is (item which of) op(base, *rest)."},
    {"note_function_view", py_note_function_view, METH_O,
     "note_function_view(result): if it is a view, its history is that of the custom Function that gave it."},
    {"forget_view", py_forget_view, METH_O,
     "forget_view(tensor): it is a tensor of its own, though made by a view operator inside a kernel."},
    {"view_map", py_view_map, METH_O,
     "view_map(tensor): how it follows from its root, or None: (steps before, op, rest, which); op None: "
     "rest is a geometry."},
    {"configure_saved", (PyCFunction)(void (*)(void))py_configure_saved, METH_VARARGS | METH_KEYWORDS,
     "Python's part of saved values and views."},
    {NULL}};
int flb_init_saved(PyObject *module) {
    return PyModule_AddType(module, &FlbSavedTensor_Type) < 0 || PyModule_AddType(module, &FlbView_Type) < 0
        ? -1
        : 0;
}
