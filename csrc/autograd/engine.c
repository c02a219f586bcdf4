/* The engine: nodes in the order of their creation reversed, each once all cotangents for it have come.
 *
 * A run keeps all of its state on its own stack and heap, so runs nest (checkpointing, backward inside
 * backward) and several threads run at once; whatever way it is left, the dispatch state is put back.
 * Recording is off by grad mode, not by excluding the key: a hook or a custom backward may switch it on
 * again. */
#include "autograd/engine.h"

Engine flb_engine;

static __thread Run *current; /* the innermost run of this thread */
static uint64_t next_id = 1;

/* ---- one node ------------------------------------------------------------------------------------------ */

static int seen_before_apply(Run *r, Task *t, PyObject **cts, int n) {
    FlbNode *node = t->node;
    if (Py_TYPE(node) == &FlbAccumulate_Type) {
        FlbTensor *leaf = (FlbTensor *)((FlbAccumulate *)node)->variable;
        if (leaf && leaf->autograd && Py_TYPE(leaf->autograd) == &FlbLeaf_Type) {
            PyObject *hooks = Py_XNewRef(((FlbLeaf *)leaf->autograd)->hooks);
            int bad = flb_tensor_hooks(hooks, &cts[0]);
            Py_XDECREF(hooks);
            if (bad < 0) return -1;
        }
    }
    if (node->extra) {
        if (node->extra->tensor_hooks) {
            for (int i = 0; i < n; i++) {
                PyObject *k = PyLong_FromLong(i),
                         *hooks = k && node->extra->tensor_hooks
                    ? PyDict_GetItemWithError(node->extra->tensor_hooks, k)
                    : NULL;
                Py_XDECREF(k);
                Py_XINCREF(hooks);
                int bad = PyErr_Occurred() ? -1 : flb_tensor_hooks(hooks, &cts[i]);
                Py_XDECREF(hooks);
                if (bad < 0) return -1;
            }
        }
        if (node->extra->retained && flb_keep_retained(node->extra->retained, cts, n) < 0) return -1;
    }
    for (int k = t->capture; k >= 0; k = r->next_capture[k])
        if (cts[r->wanted_nr[k]]) Py_XSETREF(r->captured[k], Py_NewRef(cts[r->wanted_nr[k]]));
    return 0;
}
static int begin_event(FlbOpen *event, FlbNode *node) {
    int leaf = Py_TYPE(node) == &FlbAccumulate_Type;
    PyObject *name = leaf ? PyUnicode_FromString("torch::autograd::AccumulateGrad") : flb_node_name(node);
    if (!name) {
        PyErr_Clear();
        return 0;
    }
    flb_event_begin(event, EVENT_NODE, name);
    Py_DECREF(name);
    if (!leaf) flb_event_number(event, (int64_t)node->sequence_nr);
    return 1;
}
static int step(Run *r, Py_ssize_t index) {
    Task *t = &r->tasks[index];
    FlbNode *node = t->node;
    int n = node->n_outputs ? node->n_outputs : 1, ne = node->n_edges, bad = 0;
    int recording = 0;
    FlbOpen event;
    PyObject *grads_inline[4], **grads = grads_inline, *one[1] = {NULL}, **cts = one;
    if (ne > 4 && !(grads = PyMem_Malloc(sizeof(PyObject *) * ne))) return PyErr_NoMemory(), -1;
    for (int i = 0; i < ne; i++) grads[i] = NULL;
    if (t->cts) {
        cts = t->cts;
        t->cts = NULL;
    } else {
        one[0] = t->one;
        t->one = NULL;
    }
    int any = 0;
    if (n == 1 || cts != one) {
        bad = seen_before_apply(r, t, cts, n);
        for (int i = 0; i < n; i++) any |= cts[i] != NULL;
    }
    if (bad < 0 || !any || !t->needed) goto send;
    recording = flb_events && begin_event(&event, node);
    if (Py_TYPE(node) == &FlbAccumulate_Type) {
        if (node->extra && node->extra->pre_hooks && PyDict_GET_SIZE(node->extra->pre_hooks))
            bad = flb_node_pre_hooks(node->extra->pre_hooks, cts, n);
        PyObject *held = node->extra && node->extra->post_hooks && PyDict_GET_SIZE(node->extra->post_hooks)
            ? Py_XNewRef(cts[0])
            : NULL;
        if (bad == 0) bad = flb_accumulate(r, (FlbAccumulate *)node, &cts[0]);
        if (bad == 0 && held) bad = flb_node_post_hooks(node->extra->post_hooks, grads, 0, &held, 1);
        Py_XDECREF(held);
        goto send;
    }
    if (node->extra && node->extra->pre_hooks && PyDict_GET_SIZE(node->extra->pre_hooks))
        bad = flb_node_pre_hooks(node->extra->pre_hooks, cts, n);
    for (int i = any = 0; i < n; i++) any |= cts[i] != NULL;
    if (bad == 0 && !any) { /* the hooks left nothing: no gradient goes on from here */
        if (!r->keep) bad = flb_node_release(node);
        goto send;
    }
    if (bad == 0 && n > 1 && node->materialize) bad = flb_fill_zeros(node, cts);
    r->running = node;
    if (bad == 0) bad = flb_anomaly ? flb_anomaly_apply(node, cts, grads) : node->apply(node, cts, grads);
    if (bad == 0 && node->extra && node->extra->post_hooks && PyDict_GET_SIZE(node->extra->post_hooks))
        bad = flb_node_post_hooks(node->extra->post_hooks, grads, ne, cts, n);
    for (int i = 0; bad == 0 && i < ne; i++)
        if (grads[i] && node->edges[i].node) bad = flb_fit(node, i, &node->edges[i], &grads[i]);
    if (bad == 0 && !r->keep) bad = flb_node_release(node);
send:
    r->running = NULL;
    if (recording) flb_event_end(&event);
    for (int i = 0; i < n; i++)
        if (i == 0 || cts != one) Py_CLEAR(cts[i]);
    if (cts != one) PyMem_Free(cts);
    for (int i = 0; i < ne; i++) {
        FlbNode *to = node->edges[i].node;
        if (bad == 0 && to) {
            Py_ssize_t k = flb_find_task(r, to);
            Task *target = &r->tasks[k];
            if (grads[i] && (target->needed || target->capture >= 0)) {
                PyObject *g = grads[i];
                grads[i] = NULL;
                bad = flb_add_cotangent(r, k, node->edges[i].nr, g);
            }
            if (--target->deps == 0 && (target->needed || target->capture >= 0)) flb_heap_push(r, k);
        }
        Py_XDECREF(grads[i]);
    }
    if (grads != grads_inline) PyMem_Free(grads);
    return bad;
}

/* ---- a run --------------------------------------------------------------------------------------------- */

static int seed(Run *r, PyObject *outputs, PyObject *grads) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(outputs); i++) {
        PyObject *out = PyTuple_GET_ITEM(outputs, i);
        FlbEdge e = {NULL, 0};
        int fresh;
        if (!PyObject_TypeCheck(out, &FlbTensor_Type)) {
            if (!PyTuple_Check(out) || !PyArg_ParseTuple(out, "O!i", &FlbNode_Type, &e.node, &e.nr)) {
                PyErr_Format(PyExc_TypeError, "backward() takes tensors or gradient edges, not %s",
                             Py_TYPE(out)->tp_name);
                return -1;
            }
            Py_INCREF(e.node);
        } else if (flb_edge_of((FlbTensor *)out, &e) < 0) {
            return -1;
        }
        if (!e.node)
            return PyErr_Format(PyExc_RuntimeError,
                                "element %zd of tensors does not require grad and does not have a grad_fn",
                                i),
                   -1;
        Py_ssize_t k = flb_task_of(r, e.node, &fresh);
        PyObject *g = PyTuple_GET_ITEM(grads, i);
        if (k >= 0)
            g = PyObject_TypeCheck(out, &FlbTensor_Type) ? flb_root_cotangent((FlbTensor *)out, g, i)
                                                         : Py_NewRef(g);
        Py_DECREF(e.node);
        if (k < 0 || !g) return -1;
        if (!PyObject_TypeCheck(g, &FlbTensor_Type)) {
            Py_DECREF(g);
            return PyErr_SetString(PyExc_RuntimeError, "a gradient is needed for a gradient edge"), -1;
        }
        if (flb_add_cotangent(r, k, e.nr, g) < 0) return -1;
    }
    return 0;
}
static int want(Run *r, PyObject *edges) {
    Py_ssize_t n = PyTuple_GET_SIZE(edges);
    r->next_capture = PyMem_Calloc(n + 1, sizeof(int));
    r->wanted_nr = PyMem_Calloc(n + 1, sizeof(int));
    r->captured = PyMem_Calloc(n + 1, sizeof(PyObject *));
    if (!r->next_capture || !r->wanted_nr || !r->captured) return PyErr_NoMemory(), -1;
    r->n_wanted = (int)n;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *row = PyTuple_GET_ITEM(edges, i), *node;
        if (!PyTuple_Check(row) || !PyArg_ParseTuple(row, "O!i", &FlbNode_Type, &node, &r->wanted_nr[i]))
            return -1;
        Py_ssize_t k = r->n ? flb_find_task(r, (FlbNode *)node) : -1;
        int outs = ((FlbNode *)node)->n_outputs;
        if (k < 0 || r->wanted_nr[i] < 0 || r->wanted_nr[i] >= (outs ? outs : 1)) continue;
        r->next_capture[i] = r->tasks[k].capture;
        r->tasks[k].capture = (int)i;
    }
    return 0;
}
/* run_backward(outputs, grads, edges or None, keep_graph, create_graph, accumulate): outputs are tensors or
 * (node, nr). Without edges leaves accumulate; with edges and accumulate only those. Returns the cotangents
 * of the edges, None where nothing came. */
static PyObject *py_run(PyObject *m, PyObject *const *args, Py_ssize_t n) {
    if (n != 6 || !PyTuple_Check(args[0]) || !PyTuple_Check(args[1]) ||
        PyTuple_GET_SIZE(args[0]) != PyTuple_GET_SIZE(args[1]) ||
        !(args[2] == Py_None || PyTuple_Check(args[2])))
        return PyErr_SetString(
                   PyExc_TypeError,
                   "run_backward(outputs, grads, edges or None, keep_graph, create_graph, accumulate)"),
               NULL;
    Run r = {.n_wanted = -1,
             .keep = args[3] == Py_True,
             .create = args[4] == Py_True,
             .accumulate = args[5] == Py_True,
             .id = next_id++,
             .outer = current};
    if (Py_EnterRecursiveCall(" in a backward pass")) return NULL;
    FlbTls *s = flb_tls();
    current = &r;
    uint8_t grad = s->grad_enabled;
    uint32_t excluded = s->excluded;
    s->grad_enabled = (uint8_t)r.create;
    s->excluded &= ~FLB_AUTOGRAD;
    s->epoch++;
    int bad = seed(&r, args[0], args[1]);
    Py_ssize_t roots = r.n;
    if (bad == 0) bad = flb_explore(&r);
    if (bad == 0 && !(r.heap = PyMem_Malloc(sizeof(int32_t) * (r.n + 1)))) bad = (PyErr_NoMemory(), -1);
    if (bad == 0 && args[2] != Py_None) bad = want(&r, args[2]) < 0 ? -1 : flb_mark_needed(&r);
    else
        for (Py_ssize_t i = 0; bad == 0 && i < r.n; i++) r.tasks[i].needed = 1;
    for (Py_ssize_t i = 0; bad == 0 && i < roots; i++)
        if (!r.tasks[i].deps) flb_heap_push(&r, i);
    for (int count = 0; bad == 0 && r.n_heap; count++) {
        if (!(count & 15) && PyErr_CheckSignals() < 0) bad = -1;
        else bad = step(&r, flb_heap_pop(&r));
    }
    PyObject *out = NULL;
    if (bad == 0) {
        out = r.n_wanted < 0 ? Py_NewRef(Py_None) : PyTuple_New(r.n_wanted);
        for (int i = 0; out && i < r.n_wanted; i++)
            PyTuple_SET_ITEM(out, i, Py_NewRef(r.captured[i] ? r.captured[i] : Py_None));
    }
    current = r.outer;
    s->grad_enabled = grad;
    s->excluded = excluded;
    s->epoch++;
    Py_LeaveRecursiveCall();
    if (out) {
        flb_run_free(&r);
    } else { /* what is freed may run Python: keep the exception out of its way */
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        flb_run_free(&r);
        PyErr_Restore(type, value, traceback);
    }
    return out;
}
/* backward_sequence(): the number of the node that runs in this thread, -1 outside of a backward pass and in
 * a leaf. */
static PyObject *py_sequence(PyObject *m, PyObject *unused) {
    return PyLong_FromLongLong(current && current->running ? (long long)current->running->sequence_nr : -1);
}
/* backward_id(): a number of the pass that is running in this thread, -1 without one. */
static PyObject *py_id(PyObject *m, PyObject *unused) {
    return current ? PyLong_FromUnsignedLongLong(current->id) : PyLong_FromLong(-1);
}
/* backward_reaches(node): whether a gradient may come to this node in the pass that is running. */
static PyObject *py_reaches(PyObject *m, PyObject *node) {
    Py_ssize_t i = current && current->n && PyObject_TypeCheck(node, &FlbNode_Type)
        ? flb_find_task(current, (FlbNode *)node)
        : -1;
    return PyBool_FromLong(i >= 0 && (current->tasks[i].needed || current->tasks[i].capture >= 0));
}
static PyObject *py_configure(PyObject *m, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"add",   "add_inplace", "clone",        "detach",      "ones_like",
                            "zeros", "copy_for",    "check_result", "check_count", NULL};
    Engine *e = &flb_engine;
    PyObject **to[] = {&e->add,   &e->add_inplace, &e->clone,        &e->detach,     &e->ones_like,
                       &e->zeros, &e->copy_for,    &e->check_result, &e->check_count};
    enum { COUNT = sizeof to / sizeof *to };
    PyObject *v[COUNT];
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOOOOO", names, &v[0], &v[1], &v[2], &v[3], &v[4],
                                     &v[5], &v[6], &v[7], &v[8]))
        return NULL;
    for (int i = 0; i < COUNT; i++) Py_XSETREF(*to[i], Py_NewRef(v[i]));
    Py_RETURN_NONE;
}
/* backward_keeps(): whether what nodes saved may be asked for again after the pass that is running; true
 * without one. */
static PyObject *py_keeps(PyObject *m, PyObject *unused) {
    return PyBool_FromLong(!current || current->keep || current->create);
}
/* Whether the node waits for one more cotangent and none has come: what comes next is all that it gets. */
static PyObject *py_waits_for_one(PyObject *m, PyObject *node) {
    Py_ssize_t k = current && current->n && PyObject_TypeCheck(node, &FlbNode_Type)
        ? flb_find_task(current, (FlbNode *)node)
        : -1;
    if (k < 0) Py_RETURN_FALSE;
    Task *t = &current->tasks[k];
    return PyBool_FromLong(t->deps == 1 && !t->cts && !t->one);
}

PyMethodDef flb_engine_functions[] = {
    {"run_backward", (PyCFunction)(void (*)(void))py_run, METH_FASTCALL,
     "run_backward(outputs, grads, edges or None, keep_graph, create_graph, accumulate)"},
    {"backward_sequence", py_sequence, METH_NOARGS,
     "backward_sequence(): the number of the node that runs in this thread, -1 without one."},
    {"backward_id", py_id, METH_NOARGS,
     "backward_id(): a number of the pass that is running in this thread, -1 without one."},
    {"backward_reaches", py_reaches, METH_O,
     "backward_reaches(node): whether a gradient may come to the node in the pass that is running."},
    {"backward_waits_for_one", py_waits_for_one, METH_O,
     "backward_waits_for_one(node): whether the node gets one cotangent in the pass that is running, and it "
     "hasn't "
     "come."},
    {"backward_keeps", py_keeps, METH_NOARGS,
     "backward_keeps(): whether saved values may be asked for after the pass that is running in this thread; "
     "True without one."},
    {"configure_engine", (PyCFunction)(void (*)(void))py_configure, METH_VARARGS | METH_KEYWORDS,
     "The operators the engine calls."},
    {NULL}};
