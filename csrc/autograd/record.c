/* Recording: what a call of an operator leaves on its results. The rule of an operator says how its arguments
 * are found, its plans which formula applies and what is kept for it: see rules.c. */
#include "autograd/rules.h"

static PyObject *copy_slices = NULL; /* copy_slices(root, view, node) -> CopySlices node */
static PyObject *clone_op = NULL;    /* aten.clone.default */

/* ---- nodes --------------------------------------------------------------------------------------------- */

/* Whether gradients flow to elements of this type. */
static int floating(FlbTensor *t) {
    if (t->array) {
        int num = PyArray_DESCR((PyArrayObject *)t->array)->type_num;
        if (num <= NPY_ULONGLONG) return 0;
        if (num <= NPY_CLONGDOUBLE || num == NPY_HALF || num == flb_bfloat16_num) return 1;
    }
    PyObject *c = PyObject_GetAttrString(t->dtype, "category");
    long k = c ? PyLong_AsLong(c) : -1;
    Py_XDECREF(c);
    return k == -1 && PyErr_Occurred() ? -1 : k >= 2;
}
/* NOTE: a view that looks for its history may run Python, which may change a list. */
static int asks(PyObject *o) {
    if (!PyObject_TypeCheck(o, &FlbTensor_Type)) return 0;
    Py_INCREF(o);
    int r = flb_requires_grad((FlbTensor *)o);
    Py_DECREF(o);
    return r;
}
/* Bit i: argument i, or a tensor in the list that it is, asks for a gradient. */
static int needs_of(PyObject *const *full, int n, uint64_t *needs) {
    *needs = 0;
    for (int i = 0; i < n; i++) {
        PyObject *o = full[i];
        int r = 0;
        if (PyObject_TypeCheck(o, &FlbTensor_Type)) r = flb_requires_grad((FlbTensor *)o);
        else if (PyList_Check(o) || PyTuple_Check(o))
            for (Py_ssize_t k = 0; !r && k < PySequence_Fast_GET_SIZE(o); k++)
                r = asks(PySequence_Fast_GET_ITEM(o, k));
        if (r < 0) return -1;
        *needs |= (uint64_t)r << i;
    }
    return 0;
}
static int is_list(PyObject *o) { return PyList_Check(o) || PyTuple_Check(o); }

static int is_number(PyObject *x, long number) { return PyLong_Check(x) && PyLong_AsLong(x) == number; }
/* Whether a matrix lies by columns, or one that stands for each of a batch (a weight under vmap): its
 * gradient is then made so. */
static int save_by_columns(FlbSaved *s, PyObject *x) {
    int is = 0;
    if (PyObject_TypeCheck(x, &FlbTensor_Type)) {
        PyObject *shape = flb_shape((FlbTensor *)x), *strides = shape ? flb_strides((FlbTensor *)x) : NULL;
        if (!strides) return -1;
        Py_ssize_t n = PyTuple_GET_SIZE(shape);
        if ((n == 2 || n == 3) && PyTuple_GET_SIZE(strides) == n) {
            is = n == 2 || is_number(PyTuple_GET_ITEM(strides, 0), 0);
            is = is && is_number(PyTuple_GET_ITEM(strides, n - 2), 1);
            if (is)
                is = PyObject_RichCompareBool(PyTuple_GET_ITEM(strides, n - 1),
                                              PyTuple_GET_ITEM(shape, n - 2), Py_EQ);
            if (is < 0) return -1;
        }
    }
    s->kind = SAVED_OTHER, s->value = Py_NewRef(is ? Py_True : Py_False);
    return 0;
}
static int save_like(FlbSaved *s, PyObject *x) {
    if (PyObject_TypeCheck(x, &FlbTensor_Type)) {
        FlbTensor *t = (FlbTensor *)x;
        PyObject *shape = flb_shape(t);
        if (!shape) return -1;
        s->kind = SAVED_LIKE;
        s->value = Py_NewRef(shape), s->dtype = Py_NewRef(t->dtype), s->aux = Py_NewRef(t->device);
        return 0;
    }
    s->kind = is_list(x) ? SAVED_LIKE_LIST : SAVED_OTHER;
    if (!is_list(x)) return s->value = Py_NewRef(x), 0;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(x);
    PyObject *out = PyList_New(0);
    for (Py_ssize_t i = 0; out && i < n; i++) {
        PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(x, i)), *like; /* the list is the user's */
        if (PyObject_TypeCheck(item, &FlbTensor_Type)) {
            FlbTensor *t = (FlbTensor *)item;
            PyObject *shape = flb_shape(t);
            like =
                shape ? PyObject_CallFunctionObjArgs(flb_like_class, shape, t->dtype, t->device, NULL) : NULL;
        } else {
            like = Py_NewRef(Py_None);
        }
        if (!like || PyList_Append(out, like) < 0) Py_CLEAR(out);
        Py_XDECREF(like);
        Py_DECREF(item);
        n = PySequence_Fast_GET_SIZE(x);
    }
    return (s->value = out) ? 0 : -1;
}
static int save_value(FlbSaved *s, PyObject *x, int nr) {
    if (PyObject_TypeCheck(x, &FlbTensor_Type)) return flb_save(s, x, nr);
    s->kind = SAVED_OTHER;
    if (is_list(x)) {
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(x); i++)
            if (PyObject_TypeCheck(PySequence_Fast_GET_ITEM(x, i), &FlbTensor_Type)) {
                s->kind = SAVED_LIST;
                return (s->value = flb_saved_list(x)) ? 0 : -1;
            }
        return (s->value = PyList_Check(x) ? PyList_GetSlice(x, 0, PyList_GET_SIZE(x)) : Py_NewRef(x)) ? 0
                                                                                                       : -1;
    }
    s->value = Py_NewRef(x);
    return 0;
}

typedef struct {
    PyObject **items; /* borrowed results */
    Py_ssize_t n;
    PyObject *one;
} Results;
static Results results_of(PyObject **result) {
    if (is_list(*result))
        return (Results){PySequence_Fast_ITEMS(*result), PySequence_Fast_GET_SIZE(*result), NULL};
    return (Results){result, 1, NULL};
}
static int carries(FlbRule *rule, Py_ssize_t nr, PyObject *o) {
    if (!PyObject_TypeCheck(o, &FlbTensor_Type) || !(rule->outputs >> (nr < 63 ? nr : 63) & 1)) return 0;
    return floating((FlbTensor *)o);
}

/* A node with its edges and what it keeps of the arguments. */
static FlbOpNode *make_node(FlbRule *rule, FlbPlan *plan, PyObject *const *full, uint64_t needs,
                            Results outs) {
    int n_edges = 0, lists = 0, count = 0;
    Py_ssize_t n_dims = 0;
    uint64_t edged = rule->inputs | needs;
    for (int i = 0; i < rule->n_args; i++)
        if (edged >> i & 1) {
            count++;
            if (is_list(full[i])) lists = 1, n_edges += (int)PySequence_Fast_GET_SIZE(full[i]);
            else n_edges++;
        }
    for (Py_ssize_t k = 0; k < outs.n; k++)
        if (PyObject_TypeCheck(outs.items[k], &FlbTensor_Type)) n_dims += flb_meta_dims(outs.items[k]);
    FlbOpNode *node = (FlbOpNode *)FlbOpNode_Type.tp_alloc(&FlbOpNode_Type, 0);
    if (!node) return NULL;
    node->base.apply = flb_op_apply;
    node->rule = (FlbRule *)Py_NewRef(rule);
    node->plan = (FlbPlan *)Py_NewRef(plan);
    node->needs = needs;
    void *extra;
    if (flb_node_setup(&node->base, n_edges, (int)outs.n, n_dims, sizeof(FlbSaved) * plan->n_saves, &extra) <
        0)
        goto fail;
    node->base.materialize = !rule->bare;
    node->saved = extra;
    Py_ssize_t *dims = (Py_ssize_t *)((char *)node->base.outputs + sizeof(FlbMeta) * outs.n);
    for (Py_ssize_t k = 0; k < outs.n; k++)
        if (PyObject_TypeCheck(outs.items[k], &FlbTensor_Type) &&
            flb_meta_of(&node->base.outputs[k], outs.items[k], &dims) < 0)
            goto fail;
    if (lists && !(node->lists = PyTuple_New(count))) goto fail;
    int e = 0, at = 0;
    for (int i = 0; i < rule->n_args; i++) {
        if (!(edged >> i & 1)) continue;
        PyObject *x = full[i];
        if (is_list(x)) {
            PyObject *held = PySequence_Tuple(x),
                     *count = held ? PyLong_FromSsize_t(PyTuple_GET_SIZE(held)) : NULL;
            int bad = !count;
            if (count) PyTuple_SET_ITEM(node->lists, at++, count);
            for (Py_ssize_t k = 0; !bad && k < PyTuple_GET_SIZE(held) && e < n_edges; k++, e++) {
                PyObject *item = PyTuple_GET_ITEM(held, k);
                if (needs >> i & 1 && PyObject_TypeCheck(item, &FlbTensor_Type))
                    bad = flb_edge_of((FlbTensor *)item, &node->base.edges[e]) < 0;
            }
            Py_XDECREF(held);
            if (bad) goto fail;
        } else {
            PyObject *one = lists ? PyLong_FromLong(-1) : NULL;
            if (lists && !one) goto fail;
            if (lists) PyTuple_SET_ITEM(node->lists, at++, one);
            if (needs >> i & 1 && flb_edge_of((FlbTensor *)x, &node->base.edges[e]) < 0) goto fail;
            e++;
        }
    }
    flb_node_number(&node->base);
    for (int i = 0; i < plan->n_saves; i++) {
        FlbSave *s = &plan->saves[i];
        if (s->what == SAVE_ARGUMENT && save_value(&node->saved[i], full[s->index], -1) < 0) goto fail;
        if (s->what == SAVE_LIKE && save_like(&node->saved[i], full[s->index]) < 0) goto fail;
        if (s->what == SAVE_BY_COLUMNS && save_by_columns(&node->saved[i], full[s->index]) < 0) goto fail;
    }
    return node;
fail:
    Py_DECREF(node);
    return NULL;
}
static int save_results(FlbOpNode *node, Results outs) {
    FlbPlan *plan = node->plan;
    for (int i = 0; i < plan->n_saves; i++) {
        FlbSave *s = &plan->saves[i];
        if (s->what != SAVE_RESULT) continue;
        if (s->index >= outs.n)
            return PyErr_SetString(PyExc_RuntimeError,
                                   "a formula reads a result that the operator doesn't have"),
                   -1;
        PyObject *o = outs.items[s->index];
        int own = carries(node->rule, s->index, o);
        if (own < 0 || save_value(&node->saved[i], o, own ? s->index : -1) < 0) return -1;
    }
    return 0;
}

static int annotate(FlbNode *node) { return flb_anomaly ? flb_anomaly_note(node) : 0; }

static int record_on(FlbRule *rule, PyObject *const *full, PyObject *result);
/* Leaves a node on the differentiable results. full: all arguments in schema order. */
int flb_record(FlbRule *rule, PyObject *const *full, PyObject *result) {
    if (rule->nothing) return 0;
    if (!PyList_Check(result)) return record_on(rule, full, result);
    PyObject *held = PyList_AsTuple(result); /* a kernel of the user's may keep the list and change it */
    int r = held ? record_on(rule, full, held) : -1;
    Py_XDECREF(held);
    return r;
}
static int record_on(FlbRule *rule, PyObject *const *full, PyObject *result) {
    Results outs = results_of(&result);
    int any = 0;
    for (Py_ssize_t k = 0; k < outs.n; k++) {
        int r = PyObject_TypeCheck(outs.items[k], &FlbTensor_Type) ? floating((FlbTensor *)outs.items[k]) : 0;
        if (r < 0) return -1;
        any |= r;
    }
    if (!any) return 0;
    uint64_t needs;
    if (needs_of(full, rule->n_args, &needs) < 0) return -1;
    if (!needs) return 0;
    FlbPlan *plan = flb_plan_of(rule, full, needs);
    if (!plan) return -1;
    FlbOpNode *node = make_node(rule, plan, full, needs, outs);
    Py_DECREF(plan);
    if (!node) return -1;
    int r = -1;
    if (save_results(node, outs) < 0 || annotate(&node->base) < 0) goto done;
    for (Py_ssize_t k = 0; k < outs.n; k++) {
        int own = carries(rule, k, outs.items[k]);
        if (own < 0) goto done;
        if (own) flb_set_history((FlbTensor *)outs.items[k], &node->base, (int)k);
    }
    if (rule->is_view && PyObject_TypeCheck(full[0], &FlbTensor_Type)) {
        PyObject *rest = NULL;
        for (Py_ssize_t k = 0; k < outs.n; k++) {
            FlbTensor *o = (FlbTensor *)outs.items[k];
            if (!PyObject_TypeCheck((PyObject *)o, &FlbTensor_Type) || o->autograd) continue;
            if (!rest) {
                if (!(rest = PyTuple_New(rule->n_args - 1))) goto done;
                for (int i = 1; i < rule->n_args; i++) PyTuple_SET_ITEM(rest, i - 1, Py_NewRef(full[i]));
            }
            PyObject *which = is_list(result) ? PyLong_FromSsize_t(k) : Py_NewRef(Py_None);
            int bad = !which || flb_note_view(o, (FlbTensor *)full[0], rule->op, rest, which) < 0;
            Py_XDECREF(which);
            if (bad) {
                Py_DECREF(rest);
                goto done;
            }
        }
        Py_XDECREF(rest);
    }
    r = 0;
done:
    Py_DECREF(node);
    return r;
}

/* ---- in-place ------------------------------------------------------------------------------------------ */

/* Before the write: the node with what the formula reads of the arguments as they are now. *node NULL:
 * nothing is to be recorded. */
int flb_inplace_begin(FlbRule *rule, PyObject *const *full, FlbOpNode **node) {
    *node = NULL;
    FlbTensor *target = (FlbTensor *)full[0];
    FlbRule *functional = rule->functional;
    if (!functional || !PyObject_TypeCheck((PyObject *)target, &FlbTensor_Type))
        return PyErr_SetString(PyExc_TypeError, "an in-place operator writes its first argument"), -1;
    int asks_now = flb_requires_grad(target);
    if (asks_now < 0) return -1;
    if (asks_now && !target->grad_fn)
        return PyErr_SetString(PyExc_RuntimeError,
                               "a leaf Variable that requires grad is being used in an in-place operation."),
               -1;
    FlbView *view = flb_view(target);
    if (view && (view->root->flags & FLB_REQUIRES_GRAD) && !view->root->grad_fn)
        return PyErr_SetString(
                   PyExc_RuntimeError,
                   "a view of a leaf Variable that requires grad is being used in an in-place operation."),
               -1;
    int real = floating(target);
    if (real <= 0) return real; /* integers have no gradient, whatever is written into them */
    uint64_t needs;
    if (needs_of(full, functional->n_args, &needs) < 0) return -1;
    if (!needs) return 0;
    if (view && view->creation != VIEW_PLAIN) return flb_refuse_written_view(target, view);
    FlbPlan *plan = flb_plan_of(functional, full, needs);
    if (!plan) return -1;
    PyObject *before[MAX_ARGUMENTS];
    memcpy(before, full, sizeof(PyObject *) * functional->n_args);
    PyObject *clone = NULL;
    int r = -1;
    for (int i = 0; i < plan->n_saves && !clone; i++)
        if (plan->saves[i].what == SAVE_ARGUMENT && plan->saves[i].index == 0) {
            /* The formula reads what is about to be overwritten. */
            FlbTls *s = flb_tls();
            uint32_t excluded = s->excluded;
            if (s->forward_open)
                s->excluded &= ~(FLB_AUTOGRAD | FLB_FORWARD); /* the tangent is overwritten too */
            else s->excluded |= FLB_AUTOGRAD;
            clone = flb_library_call(clone_op, (PyObject *[]){(PyObject *)target}, 1);
            s->excluded = excluded;
            if (!clone) goto done;
            if (target->grad_fn)
                flb_set_history((FlbTensor *)clone, (FlbNode *)target->grad_fn, target->output_nr);
            before[0] = clone;
        }
    PyObject *one = (PyObject *)target;
    *node = make_node(functional, plan, before, needs, (Results){&one, 1, NULL});
    r = *node ? annotate(&(*node)->base) : -1;
    if (r < 0) Py_CLEAR(*node);
done:
    Py_XDECREF(clone);
    Py_DECREF(plan);
    return r;
}
/* Tensors whose .grad is kept move to the node that makes them now. */
/* Whether `t.grad` will be filled though `t` is no leaf. */
int flb_keeps_grad(FlbTensor *t) {
    FlbNode *n = (FlbNode *)t->grad_fn;
    return n && n->extra && n->extra->retained && PyDict_Size(n->extra->retained) > 0;
}

static int move_retained(FlbTensor *t, FlbNode *to, int nr) {
    FlbNode *from = (FlbNode *)t->grad_fn;
    if (!from || !from->extra || !from->extra->retained) return 0;
    PyObject *old = PyLong_FromLong(t->output_nr), *now = PyLong_FromLong(nr);
    PyObject *ref = old ? Py_XNewRef(PyDict_GetItemWithError(from->extra->retained, old)) : NULL;
    int r = now ? 0 : -1;
    if (ref && now) {
        FlbNodeExtra *x = flb_node_extra(to);
        if (!x || (!x->retained && !(x->retained = PyDict_New())) ||
            PyDict_SetItem(x->retained, now, ref) < 0 || PyDict_DelItem(from->extra->retained, old) < 0)
            r = -1;
    }
    Py_XDECREF(ref);
    Py_XDECREF(old);
    Py_XDECREF(now);
    return r < 0 || PyErr_Occurred() ? -1 : 0;
}
/* After the write. */
int flb_inplace_end(FlbTensor *target, FlbOpNode *node) {
    PyObject *one = (PyObject *)target;
    if (save_results(node, (Results){&one, 1, NULL}) < 0) return -1;
    FlbStorage *storage = flb_storage(target);
    if (!storage) return -1;
    FlbView *view = flb_view(target);
    if (!view) {
        if (move_retained(target, &node->base, 0) < 0) return -1;
        flb_set_history(target, &node->base, 0);
        storage->recorded++; /* views of this memory look again */
        return 0;
    }
    FlbTensor *root = (FlbTensor *)Py_NewRef(view->root);
    FlbNode *slices = (FlbNode *)PyObject_CallFunctionObjArgs(copy_slices, root, target, node, NULL);
    int r = -1;
    if (slices && PyObject_TypeCheck((PyObject *)slices, &FlbNode_Type) &&
        move_retained(root, slices, 0) == 0) {
        flb_set_history(root, slices, 0);
        storage->recorded++;
        r = flb_refresh(target);
    }
    Py_XDECREF(slices);
    Py_DECREF(root);
    return r;
}

/* ---- the way of a call --------------------------------------------------------------------------------- */

/* Where calls with the AUTOGRAD key on top go (calls.h): 1 done, 0 a case for Python, -1 exception. */
static int autograd_call(FlbOperator *op, uint32_t keys, PyObject *const *values, PyObject **result) {
    FlbRule *rule = flb_rule_of((PyObject *)op);
    if (!rule) return -1;
    if (!rule->native) return 0;
    Py_INCREF(rule);
    FlbOpNode *node = NULL;
    PyObject *made = NULL;
    if (rule->functional && flb_inplace_begin(rule, values, &node) < 0) goto done;
    FlbTls *s = flb_tls();
    uint32_t excluded = s->excluded;
    s->excluded |= FLB_AUTOGRAD;
    made = keys == (FLB_BACKEND | FLB_AUTOGRAD) ? flb_backend(op, values)
                                                : flb_call(op, keys & ~(uint32_t)FLB_AUTOGRAD, values);
    s->excluded = excluded;
    if (!made) goto done;
    if (rule->functional ? node && flb_inplace_end((FlbTensor *)values[0], node) < 0
                         : flb_record(rule, values, made) < 0)
        Py_CLEAR(made);
done:
    Py_XDECREF(node);
    Py_DECREF(rule);
    *result = made;
    return made ? 1 : -1;
}

/* ---- the module's part --------------------------------------------------------------------------------- */

/* record(op, all arguments, result) */
static PyObject *py_record(PyObject *m, PyObject *args) {
    PyObject *op, *full, *result;
    if (!PyArg_ParseTuple(args, "OO!O", &op, &PyTuple_Type, &full, &result)) return NULL;
    FlbRule *rule = flb_rule_of(op);
    if (!rule) return NULL;
    if (PyTuple_GET_SIZE(full) != rule->n_args || rule->n_args > MAX_ARGUMENTS)
        return PyErr_SetString(PyExc_TypeError, "record() takes all arguments"), NULL;
    Py_INCREF(rule); /* the operator may be changed meanwhile */
    int r = flb_record(rule, PySequence_Fast_ITEMS(full), result);
    Py_DECREF(rule);
    if (r < 0) return NULL;
    Py_RETURN_NONE;
}
/* inplace_begin(op, all arguments) -> node or None; inplace_end(target, node) */
static PyObject *py_inplace_begin(PyObject *m, PyObject *args) {
    PyObject *op, *full;
    if (!PyArg_ParseTuple(args, "OO!", &op, &PyTuple_Type, &full)) return NULL;
    FlbRule *rule = flb_rule_of(op);
    FlbOpNode *node;
    if (!rule) return NULL;
    if (!rule->functional || PyTuple_GET_SIZE(full) < rule->functional->n_args ||
        rule->n_args > MAX_ARGUMENTS)
        return PyErr_SetString(PyExc_TypeError,
                               "inplace_begin() takes all arguments of an in-place operator"),
               NULL;
    Py_INCREF(rule);
    int r = flb_inplace_begin(rule, PySequence_Fast_ITEMS(full), &node);
    Py_DECREF(rule);
    if (r < 0) return NULL;
    return node ? (PyObject *)node : Py_NewRef(Py_None);
}
static PyObject *py_inplace_end(PyObject *m, PyObject *args) {
    PyObject *target, *node;
    if (!PyArg_ParseTuple(args, "O!O!", &FlbTensor_Type, &target, &FlbOpNode_Type, &node)) return NULL;
    if (flb_inplace_end((FlbTensor *)target, (FlbOpNode *)node) < 0) return NULL;
    Py_RETURN_NONE;
}
static PyObject *py_configure(PyObject *m, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"describe", "plan", "copy_slices", "clone", NULL};
    PyObject *d, *p, *c, *k;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOO", names, &d, &p, &c, &k)) return NULL;
    flb_use_rules(d, p);
    Py_XSETREF(copy_slices, Py_NewRef(c));
    Py_XSETREF(clone_op, Py_NewRef(k));
    Py_RETURN_NONE;
}
PyMethodDef flb_record_functions[] = {
    {"record", py_record, METH_VARARGS, "record(op, all arguments, result): leave a node on the result."},
    {"inplace_begin", py_inplace_begin, METH_VARARGS,
     "inplace_begin(op, all arguments): the node of a write that is about to happen, or None."},
    {"inplace_end", py_inplace_end, METH_VARARGS, "inplace_end(target, node): the write has happened."},
    {"configure_record", (PyCFunction)(void (*)(void))py_configure, METH_VARARGS | METH_KEYWORDS,
     "Python's part of recording."},
    {NULL}};
static int64_t sequence_of(PyObject *node) {
    return PyObject_TypeCheck(node, &FlbNode_Type) ? (int64_t)((FlbNode *)node)->sequence_nr : -1;
}

int flb_init_record(PyObject *module) {
    flb_autograd_call = autograd_call;
    flb_sequence = sequence_of;
    return PyModule_AddType(module, &FlbRule_Type) < 0 || PyModule_AddType(module, &FlbPlan_Type) < 0 ? -1
                                                                                                      : 0;
}
