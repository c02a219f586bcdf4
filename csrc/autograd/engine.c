/* The engine: nodes in the order of their creation reversed, each once all cotangents for it have come.
 *
 * A run keeps all of its state on its own stack and heap, so runs nest (checkpointing, backward inside
 * backward) and several threads run at once; whatever way it is left, the dispatch state is put back.
 * Recording is off by grad mode, not by excluding the key: a hook or a custom backward may switch it on
 * again. */
#include "autograd/autograd.h"

static PyObject *add_op = NULL;                                          /* aten.add.Tensor */
static PyObject *add_inplace_op = NULL;                                  /* aten.add_.Tensor */
static PyObject *hook_result_checker = NULL, *hook_count_checker = NULL; /* autograd/hook_results.py */
static PyObject *copy_for = NULL; /* autograd/record.py: a copy of a gradient in the layout of its leaf */
static PyObject *clone_op = NULL, *detach_op = NULL, *ones_like_op = NULL;
static PyObject *make_zeros = NULL; /* zeros(shape, dtype, device, cotangents) */

typedef struct {
    FlbNode *node;  /* owned */
    PyObject **cts; /* n_outputs of them; &one when there is one */
    PyObject *one;
    Py_ssize_t deps; /* cotangents still to come */
    int capture;     /* first of the wanted edges that end here, -1 */
    uint8_t needed;  /* runs */
    uint8_t seeded;
} Task;

typedef struct Run {
    Task *tasks;
    Py_ssize_t n, capacity;
    int32_t *table; /* node -> index + 1, open addressing */
    size_t mask;
    int32_t *heap;
    Py_ssize_t n_heap;
    int *next_capture; /* chains of wanted edges by node */
    int *wanted_nr;
    PyObject **captured;
    int n_wanted; /* -1: leaves accumulate */
    int accumulate, keep, create;
    uint64_t id;
    FlbNode *running; /* the node that is applied, borrowed from its task */
    struct Run *outer;
} Run;

static __thread Run *current; /* the innermost run of this thread */
static uint64_t next_id = 1;

static inline size_t hash_of(FlbNode *n) { return ((size_t)n >> 4) * 0x9E3779B97F4A7C15ull >> 20; }
static Py_ssize_t find(Run *r, FlbNode *node) {
    for (size_t h = hash_of(node) & r->mask;; h = (h + 1) & r->mask) {
        int32_t i = r->table[h];
        if (!i) return -1;
        if (r->tasks[i - 1].node == node) return i - 1;
    }
}
static int grow(Run *r) {
    Py_ssize_t capacity = r->capacity ? r->capacity * 2 : 32;
    size_t size = (size_t)capacity * 2;
    Task *tasks = PyMem_Realloc(r->tasks, capacity * sizeof(Task));
    if (!tasks) return PyErr_NoMemory(), -1;
    r->tasks = tasks;
    int32_t *table = PyMem_Calloc(size, sizeof(int32_t));
    if (!table) return PyErr_NoMemory(), -1;
    PyMem_Free(r->table);
    r->table = table;
    r->mask = size - 1;
    r->capacity = capacity;
    for (Py_ssize_t i = 0; i < r->n; i++) {
        size_t h = hash_of(tasks[i].node) & r->mask;
        while (table[h]) h = (h + 1) & r->mask;
        table[h] = (int32_t)i + 1;
    }
    return 0;
}
/* Index of the node's task; *fresh when it was made. */
static Py_ssize_t task_of(Run *r, FlbNode *node, int *fresh) {
    Py_ssize_t i = r->n ? find(r, node) : -1;
    *fresh = i < 0;
    if (i >= 0) return i;
    if (r->n == r->capacity && grow(r) < 0) return -1;
    i = r->n++;
    r->tasks[i] = (Task){.node = (FlbNode *)Py_NewRef(node), .capture = -1};
    size_t h = hash_of(node) & r->mask;
    while (r->table[h]) h = (h + 1) & r->mask;
    r->table[h] = (int32_t)i + 1;
    return i;
}
static void run_free(Run *r) {
    for (Py_ssize_t i = 0; i < r->n; i++) {
        Task *t = &r->tasks[i];
        if (t->cts && t->cts != &t->one)
            for (int k = 0; k < t->node->n_outputs; k++) Py_XDECREF(t->cts[k]);
        if (t->cts && t->cts != &t->one) PyMem_Free(t->cts);
        Py_XDECREF(t->one);
    }
    for (Py_ssize_t i = 0; i < r->n; i++) Py_DECREF(r->tasks[i].node);
    for (int i = 0; r->captured && i < r->n_wanted; i++) Py_XDECREF(r->captured[i]);
    PyMem_Free(r->tasks);
    PyMem_Free(r->table);
    PyMem_Free(r->heap);
    PyMem_Free(r->next_capture);
    PyMem_Free(r->wanted_nr);
    PyMem_Free(r->captured);
}

/* ---- the order ----------------------------------------------------------------------------------------- */

static inline int before(Run *r, int32_t a, int32_t b) {
    return r->tasks[a].node->sequence_nr > r->tasks[b].node->sequence_nr;
}
static void heap_push(Run *r, Py_ssize_t task) {
    Py_ssize_t i = r->n_heap++;
    while (i && before(r, (int32_t)task, r->heap[(i - 1) / 2]))
        r->heap[i] = r->heap[(i - 1) / 2], i = (i - 1) / 2;
    r->heap[i] = (int32_t)task;
}
static Py_ssize_t heap_pop(Run *r) {
    int32_t top = r->heap[0], last = r->heap[--r->n_heap];
    Py_ssize_t i = 0;
    for (;;) {
        Py_ssize_t c = 2 * i + 1;
        if (c >= r->n_heap) break;
        if (c + 1 < r->n_heap && before(r, r->heap[c + 1], r->heap[c])) c++;
        if (!before(r, r->heap[c], last)) break;
        r->heap[i] = r->heap[c];
        i = c;
    }
    r->heap[i] = last;
    return top;
}
/* All nodes below the roots (which are tasks already), with the number of cotangents each waits for. */
static int explore(Run *r) {
    for (Py_ssize_t i = 0; i < r->n; i++) { /* tasks are the queue */
        FlbNode *node = r->tasks[i].node;
        for (int e = 0; e < node->n_edges; e++) {
            if (!node->edges[e].node) continue;
            int fresh;
            Py_ssize_t k = task_of(r, node->edges[e].node, &fresh);
            if (k < 0) return -1;
            if (r->n >= INT32_MAX)
                return PyErr_SetString(PyExc_OverflowError, "a graph of more than 2**31 nodes"), -1;
            r->tasks[k].deps++;
        }
    }
    return 0;
}
static __thread Run *sorting;
static int by_age(const void *a, const void *b) {
    uint64_t x = sorting->tasks[*(const int32_t *)a].node->sequence_nr,
             y = sorting->tasks[*(const int32_t *)b].node->sequence_nr;
    return x < y ? -1 : x > y;
}
/* Only nodes from which a wanted edge can be reached run: a node is younger than those its edges lead to
 * (leaves apart). */
static int mark_needed(Run *r) {
    int32_t *order = PyMem_Malloc(sizeof(int32_t) * (r->n + 1));
    if (!order) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < r->n; i++) order[i] = (int32_t)i;
    Run *outer = sorting;
    sorting = r;
    qsort(order, r->n, sizeof(int32_t), by_age);
    sorting = outer;
    for (Py_ssize_t i = 0; i < r->n; i++) {
        Task *t = &r->tasks[order[i]];
        if (t->capture >= 0 && r->accumulate) t->needed = 1;
        for (int e = 0; !t->needed && e < t->node->n_edges; e++) {
            if (!t->node->edges[e].node) continue;
            Task *to = &r->tasks[find(r, t->node->edges[e].node)];
            t->needed = to->needed || to->capture >= 0;
        }
    }
    PyMem_Free(order);
    return 0;
}

/* ---- cotangents ---------------------------------------------------------------------------------------- */

/* Adds ct (stolen) to what has come for result nr. */
/* A sum that has a dense term is dense: only the dense one can take the sparse one up. */
static int sparse_first(PyObject *a, PyObject *b) {
    return !((FlbTensor *)a)->array && ((FlbTensor *)b)->array;
}
static int add(Run *r, Py_ssize_t task, int nr, PyObject *ct) {
    Task *t = &r->tasks[task];
    int n = t->node->n_outputs;
    if (nr < 0 || nr >= (n ? n : 1)) {
        Py_DECREF(ct);
        return PyErr_SetString(PyExc_RuntimeError, "an edge leads to a result that its node doesn't have"),
               -1;
    }
    if (!t->cts) {
        if (n > 1 && !(t->cts = PyMem_Calloc(n, sizeof(PyObject *)))) {
            Py_DECREF(ct);
            return PyErr_NoMemory(), -1;
        }
        t->seeded = 1;
    }
    PyObject **slot = n > 1 ? &t->cts[nr] : &t->one;
    if (!*slot) return *slot = ct, 0;
    PyObject *before = *slot;
    *slot = NULL;
    PyObject *args[3] = {NULL, before, ct};
    if (sparse_first(before, ct)) args[1] = ct, args[2] = before;
    PyObject *sum = flb_library_call(add_op, args + 1, 2);
    Py_DECREF(before);
    Py_DECREF(ct);
    if (!sum) return -1;
    t = &r->tasks[task]; /* the call may have run Python, but tasks of this run don't move once they are
                            explored */
    *(n > 1 ? &t->cts[nr] : &t->one) = sum;
    return 0;
}
static int same_size(FlbTensor *a, FlbTensor *b) {
    if (a->array && b->array)
        return PyArray_NDIM((PyArrayObject *)a->array) == PyArray_NDIM((PyArrayObject *)b->array) &&
            PyArray_CompareLists(PyArray_DIMS((PyArrayObject *)a->array),
                                 PyArray_DIMS((PyArrayObject *)b->array),
                                 PyArray_NDIM((PyArrayObject *)a->array));
    PyObject *x = flb_shape(a), *y = x ? flb_shape(b) : NULL;
    return y ? PyObject_RichCompareBool(x, y, Py_EQ) : -1;
}
/* Whether what a hook returned may replace the gradient `before`, NULL for none that came. */
static int check_result(PyObject *hook, PyObject *before, PyObject *got) {
    if (before == got) return 0;
    if (before && flb_plain(before) && flb_plain(got) &&
        ((FlbTensor *)before)->dtype == ((FlbTensor *)got)->dtype &&
        ((FlbTensor *)before)->device == ((FlbTensor *)got)->device &&
        same_size((FlbTensor *)before, (FlbTensor *)got) == 1)
        return 0;
    PyObject *r =
        PyObject_CallFunctionObjArgs(hook_result_checker, hook, before ? before : Py_None, got, NULL);
    Py_XDECREF(r);
    return r ? 0 : -1;
}
/* Hooks on single cotangents: hook(ct) may return another. */
static int tensor_hooks(PyObject *hooks, PyObject **slot) {
    if (!hooks || !*slot || !PyDict_Check(hooks) || !PyDict_GET_SIZE(hooks)) return 0;
    PyObject *list = PyDict_Values(hooks), *before = Py_NewRef(*slot);
    int r = list ? 0 : -1;
    for (Py_ssize_t i = 0; !r && i < PyList_GET_SIZE(list); i++) {
        PyObject *hook = PyList_GET_ITEM(list, i), *got = PyObject_CallOneArg(hook, *slot);
        if (!got) r = -1;
        else if (got == Py_None) Py_DECREF(got);
        else if ((r = check_result(hook, before, got)) < 0) Py_DECREF(got);
        else Py_SETREF(*slot, got);
    }
    Py_XDECREF(list);
    Py_DECREF(before);
    return r;
}
static PyObject *tuple_of(PyObject **items, int n) {
    PyObject *t = PyTuple_New(n);
    for (int i = 0; t && i < n; i++) PyTuple_SET_ITEM(t, i, Py_NewRef(items[i] ? items[i] : Py_None));
    return t;
}
/* Takes what a hook returned for the items. */
static int replace(PyObject **items, int n, PyObject *hook, PyObject *got) {
    if (got == Py_None) return 0;
    if (!PyTuple_Check(got) || PyTuple_GET_SIZE(got) != n) {
        PyObject *count = PyLong_FromLong(n),
                 *r = count ? PyObject_CallFunctionObjArgs(hook_count_checker, hook, got, count, NULL) : NULL;
        Py_XDECREF(count);
        Py_XDECREF(r);
        if (r) PyErr_SetString(PyExc_TypeError, "a hook of a node returns a tuple of gradients");
        return -1;
    }
    for (int i = 0; i < n; i++) {
        PyObject *x = PyTuple_GET_ITEM(got, i);
        if (x != Py_None && check_result(hook, items[i], x) < 0) return -1;
    }
    for (int i = 0; i < n; i++) {
        PyObject *x = PyTuple_GET_ITEM(got, i);
        Py_XSETREF(items[i], x == Py_None ? NULL : Py_NewRef(x));
    }
    return 0;
}
/* Call the hooks of a node, each of which may replace the n `values`. `results`: their second argument, or
 * NULL for none. */
static int node_hooks(PyObject *hooks, PyObject **values, int n, PyObject *results) {
    PyObject *list = PyDict_Values(hooks);
    int r = list ? 0 : -1;
    for (Py_ssize_t i = 0; !r && i < PyList_GET_SIZE(list); i++) {
        PyObject *given = tuple_of(values, n), *hook = PyList_GET_ITEM(list, i);
        PyObject *got = given ? PyObject_CallFunctionObjArgs(hook, given, results, NULL) : NULL;
        Py_XDECREF(given);
        r = got ? replace(values, n, hook, got) : -1;
        Py_XDECREF(got);
    }
    Py_XDECREF(list);
    return r;
}
static int node_pre_hooks(PyObject *hooks, PyObject **cts, int n) { return node_hooks(hooks, cts, n, NULL); }
static int node_post_hooks(PyObject *hooks, PyObject **grads, int n, PyObject **cts, int n_cts) {
    PyObject *results = tuple_of(cts, n_cts);
    int r = results ? node_hooks(hooks, grads, n, results) : -1;
    Py_XDECREF(results);
    return r;
}
static int sum_into(PyObject **grad, PyObject *ct) {
    PyObject *v;
    if (!*grad) {
        v = Py_NewRef(ct);
    } else {
        PyObject *have = Py_NewRef(*grad), *args[3] = {NULL, have, ct};
        v = flb_library_call(add_op, args + 1, 2);
        Py_DECREF(have);
    }
    if (!v) return -1;
    Py_XSETREF(*grad, v);
    return 0;
}
static int keep_retained(PyObject *retained, PyObject **cts, int n) {
    PyObject *k, *ref;
    Py_ssize_t pos = 0;
    PyObject *copy = PyDict_Copy(retained);
    int r = copy ? 0 : -1;
    while (!r && PyDict_Next(copy, &pos, &k, &ref)) {
        long nr = PyLong_AsLong(k);
        if (nr == -1 && PyErr_Occurred()) r = -1;
        else if (!PyWeakref_Check(ref))
            r = (PyErr_SetString(PyExc_TypeError, "what keeps its gradient is a weak reference"), -1);
        PyObject *t = r ? NULL : PyObject_CallNoArgs(ref);
        if (!t) r = -1;
        else if (PyObject_TypeCheck(t, &FlbTensor_Type) && nr >= 0 && nr < n && cts[nr])
            r = sum_into(&((FlbTensor *)t)->grad, cts[nr]);
        Py_XDECREF(t);
    }
    Py_XDECREF(copy);
    return r;
}
/* Zeros like those of a plain tensor; NULL without an exception where others are needed. */
static PyObject *plain_zeros(const FlbMeta *m) {
    FlbTls *s = flb_tls();
    int num = m->shape || m->device != flb_cpu_device ? -1 : flb_typenum_of(m->dtype);
    if (num < 0 || (s->grad_enabled | s->dispatch_modes | s->function_modes | s->transforms | s->included))
        return NULL;
    PyObject *array = PyArray_ZEROS(m->ndim, (npy_intp *)m->dims, num, 0),
             *t = array ? flb_from_array(array) : NULL;
    Py_XDECREF(array);
    return t;
}
static int fill_zeros(FlbNode *node, PyObject **cts) {
    PyObject *seen = NULL;
    int plain = 1;
    for (int i = 0; i < node->n_outputs; i++) plain &= !cts[i] || flb_plain(cts[i]);
    for (int i = 0; i < node->n_outputs; i++) {
        FlbMeta *m = &node->outputs[i];
        if (cts[i] || !m->dtype) continue;
        if (plain && (cts[i] = plain_zeros(m))) continue;
        if (PyErr_Occurred()) break;
        PyObject *shape = flb_meta_shape(m);
        if (!seen) seen = tuple_of(cts, node->n_outputs);
        cts[i] = shape && seen
            ? PyObject_CallFunctionObjArgs(make_zeros, shape, m->dtype, m->device, seen, NULL)
            : NULL;
        Py_XDECREF(shape);
        if (!cts[i]) break;
    }
    Py_XDECREF(seen);
    return PyErr_Occurred() ? -1 : 0;
}

/* ---- leaves -------------------------------------------------------------------------------------------- */

static Py_ssize_t held_by_storage(FlbTensor *t, PyObject *array) {
    return t->storage && t->storage->owner == array;
}
/* Whether a view is all that is left of its root: nobody but the view has the root, and both have all of one
 * array. The product that is a weight's gradient comes as such, transposed twice. */
static int is_rest_of_root(FlbTensor *t) {
    FlbView *v = flb_view(t);
    if (!v || Py_REFCNT(v) != 1 || v->steps || Py_REFCNT(v->root) != 1 || !flb_plain((PyObject *)v->root))
        return 0;
    return !v->root->autograd && !(v->root->flags & FLB_REQUIRES_GRAD) && t->storage &&
        t->storage == v->root->storage && Py_REFCNT(t->storage) == 2 &&
        PyArray_BASE((PyArrayObject *)t->array) == v->root->array &&
        Py_REFCNT(v->root->array) == 2 + held_by_storage(t, v->root->array);
}
/* Whether the leaf may keep this very tensor as its gradient: nobody else has it or its memory, and it is
 * laid out like the leaf. Such a view becomes a tensor of its own. */
static int may_take(FlbTensor *leaf, PyObject *g) {
    FlbTensor *t = (FlbTensor *)g;
    if (Py_REFCNT(g) != 1 || !flb_plain(g) || !leaf->array || (t->flags & FLB_REQUIRES_GRAD)) return 0;
    int rest = t->autograd && is_rest_of_root(t);
    if (t->autograd && !rest) return 0;
    PyArrayObject *a = (PyArrayObject *)t->array, *l = (PyArrayObject *)leaf->array;
    if (Py_REFCNT(a) != 1 || (t->storage && Py_REFCNT(t->storage) != 1 + rest) || !PyArray_ISWRITEABLE(a) ||
        !PyArray_ISALIGNED(a))
        return 0;
    if (t->dtype != leaf->dtype || PyArray_NDIM(a) != PyArray_NDIM(l)) return 0;
    if (PyArray_BASE(a)) {
        PyObject *base = PyArray_BASE(a);
        if (!PyArray_Check(base) || Py_REFCNT(base) != 1 + rest + (rest ? held_by_storage(t, base) : 0) ||
            !PyArray_CHKFLAGS((PyArrayObject *)base, NPY_ARRAY_OWNDATA) ||
            PyArray_NBYTES((PyArrayObject *)base) != PyArray_NBYTES(a))
            return 0;
    } else if (!PyArray_CHKFLAGS(a, NPY_ARRAY_OWNDATA)) {
        return 0;
    }
    for (int i = 0; i < PyArray_NDIM(a); i++)
        if (PyArray_DIM(a, i) != PyArray_DIM(l, i) ||
            (PyArray_DIM(a, i) > 1 && PyArray_STRIDE(a, i) != PyArray_STRIDE(l, i)))
            return 0;
    if (rest) Py_CLEAR(t->autograd);
    return 1;
}
/* A copy of a gradient in the leaf's layout. */
static PyObject *copied(FlbTensor *leaf, PyObject *g) {
    PyObject *a = ((FlbTensor *)g)->array, *l = leaf->array;
    if (!flb_plain(g) || !a || !l ||
        (PyArray_IS_C_CONTIGUOUS((PyArrayObject *)a) && PyArray_IS_C_CONTIGUOUS((PyArrayObject *)l)))
        return flb_library_call(clone_op, (PyObject *[]){g}, 1);
    return flb_library_call(copy_for, (PyObject *[]){(PyObject *)leaf, g}, 2);
}
static int accumulate(Run *r, FlbAccumulate *node, PyObject **slot) {
    FlbTensor *leaf = (FlbTensor *)node->variable;
    PyObject *g = *slot;
    if (!leaf || !g) return 0;
    Py_INCREF(leaf);
    int bad = -1, same = same_size(leaf, (FlbTensor *)g);
    if (same < 0) goto done;
    if (!same) {
        PyObject *have = flb_shape((FlbTensor *)g), *want = flb_shape(leaf);
        if (have && want)
            PyErr_Format(PyExc_RuntimeError, "a gradient of shape %R was computed for a leaf of shape %R",
                         have, want);
        goto done;
    }
    PyObject *v = NULL;
    if (!leaf->grad) {
        if (may_take(leaf, g)) {
            v = g;
            *slot = NULL;
        } else if (r->create && flb_requires_grad((FlbTensor *)g) > 0) {
            v = Py_NewRef(g);
        } else {
            v = copied(leaf, g);
            if (v && !r->create && PyObject_TypeCheck(v, &FlbTensor_Type) &&
                (((FlbTensor *)v)->flags & FLB_REQUIRES_GRAD))
                Py_SETREF(v, flb_library_call(detach_op, (PyObject *[]){v}, 1));
        }
    } else {
        PyObject *have = Py_NewRef(leaf->grad), *args[3] = {NULL, have, g};
        int replaced = sparse_first(have, g);
        if (replaced) args[1] = g, args[2] = have;
        v = flb_library_call(r->create || replaced ? add_op : add_inplace_op, args + 1, 2);
        Py_DECREF(have);
    }
    if (!v) goto done;
    Py_XSETREF(leaf->grad, v);
    bad = 0;
    FlbLeaf *info =
        leaf->autograd && Py_TYPE(leaf->autograd) == &FlbLeaf_Type ? (FlbLeaf *)leaf->autograd : NULL;
    if (info && info->post_hooks && PyDict_GET_SIZE(info->post_hooks)) {
        PyObject *list = PyDict_Values(info->post_hooks);
        bad = list ? 0 : -1;
        for (Py_ssize_t i = 0; !bad && i < PyList_GET_SIZE(list); i++) {
            PyObject *got = PyObject_CallOneArg(PyList_GET_ITEM(list, i), (PyObject *)leaf);
            bad = got ? 0 : -1;
            if (got && got != Py_None &&
                (bad = check_result(PyList_GET_ITEM(list, i), (PyObject *)leaf, got)) == 0)
                bad = (PyErr_SetString(PyExc_RuntimeError,
                                       "Tensor post accumulate grad hooks should return None."),
                       -1);
            Py_XDECREF(got);
        }
        Py_XDECREF(list);
    }
done:
    Py_DECREF(leaf);
    return bad;
}

/* ---- one node ------------------------------------------------------------------------------------------ */

static int seen_before_apply(Run *r, Task *t, PyObject **cts, int n) {
    FlbNode *node = t->node;
    if (Py_TYPE(node) == &FlbAccumulate_Type) {
        FlbTensor *leaf = (FlbTensor *)((FlbAccumulate *)node)->variable;
        if (leaf && leaf->autograd && Py_TYPE(leaf->autograd) == &FlbLeaf_Type) {
            PyObject *hooks = Py_XNewRef(((FlbLeaf *)leaf->autograd)->hooks);
            int bad = tensor_hooks(hooks, &cts[0]);
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
                int bad = PyErr_Occurred() ? -1 : tensor_hooks(hooks, &cts[i]);
                Py_XDECREF(hooks);
                if (bad < 0) return -1;
            }
        }
        if (node->extra->retained && keep_retained(node->extra->retained, cts, n) < 0) return -1;
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
            bad = node_pre_hooks(node->extra->pre_hooks, cts, n);
        PyObject *held = node->extra && node->extra->post_hooks && PyDict_GET_SIZE(node->extra->post_hooks)
            ? Py_XNewRef(cts[0])
            : NULL;
        if (bad == 0) bad = accumulate(r, (FlbAccumulate *)node, &cts[0]);
        if (bad == 0 && held) bad = node_post_hooks(node->extra->post_hooks, grads, 0, &held, 1);
        Py_XDECREF(held);
        goto send;
    }
    if (node->extra && node->extra->pre_hooks && PyDict_GET_SIZE(node->extra->pre_hooks))
        bad = node_pre_hooks(node->extra->pre_hooks, cts, n);
    for (int i = any = 0; i < n; i++) any |= cts[i] != NULL;
    if (bad == 0 && !any) { /* the hooks left nothing: no gradient goes on from here */
        if (!r->keep) bad = flb_node_release(node);
        goto send;
    }
    if (bad == 0 && n > 1 && node->materialize) bad = fill_zeros(node, cts);
    r->running = node;
    if (bad == 0) bad = flb_anomaly ? flb_anomaly_apply(node, cts, grads) : node->apply(node, cts, grads);
    if (bad == 0 && node->extra && node->extra->post_hooks && PyDict_GET_SIZE(node->extra->post_hooks))
        bad = node_post_hooks(node->extra->post_hooks, grads, ne, cts, n);
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
            Py_ssize_t k = find(r, to);
            Task *target = &r->tasks[k];
            if (grads[i] && (target->needed || target->capture >= 0)) {
                PyObject *g = grads[i];
                grads[i] = NULL;
                bad = add(r, k, node->edges[i].nr, g);
            }
            if (--target->deps == 0 && (target->needed || target->capture >= 0)) heap_push(r, k);
        }
        Py_XDECREF(grads[i]);
    }
    if (grads != grads_inline) PyMem_Free(grads);
    return bad;
}

/* ---- a run --------------------------------------------------------------------------------------------- */

static PyObject *root_cotangent(FlbTensor *out, PyObject *g, Py_ssize_t nr) {
    if (g == Py_None) {
        if (flb_plain((PyObject *)out) && PyArray_SIZE((PyArrayObject *)out->array) != 1) {
            PyErr_SetString(PyExc_RuntimeError, "grad can be implicitly created only for scalar outputs");
            return NULL;
        }
        return flb_library_call(ones_like_op, (PyObject *[]){(PyObject *)out}, 1);
    }
    if (!PyObject_TypeCheck(g, &FlbTensor_Type)) {
        PyErr_Format(PyExc_TypeError, "gradients can be either Tensors or None, but got %s",
                     Py_TYPE(g)->tp_name);
        return NULL;
    }
    int same = same_size(out, (FlbTensor *)g);
    if (same < 0) return NULL;
    if (!same) {
        PyObject *a = flb_shape((FlbTensor *)g), *b = flb_shape(out);
        if (a && b)
            PyErr_Format(
                PyExc_RuntimeError,
                "Mismatch in shape: grad_output[%zd] has a shape of %S and output[%zd] has a shape of %S.",
                nr, a, nr, b);
        return NULL;
    }
    return Py_NewRef(g);
}
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
        Py_ssize_t k = task_of(r, e.node, &fresh);
        PyObject *g = PyTuple_GET_ITEM(grads, i);
        if (k >= 0)
            g = PyObject_TypeCheck(out, &FlbTensor_Type) ? root_cotangent((FlbTensor *)out, g, i)
                                                         : Py_NewRef(g);
        Py_DECREF(e.node);
        if (k < 0 || !g) return -1;
        if (!PyObject_TypeCheck(g, &FlbTensor_Type)) {
            Py_DECREF(g);
            return PyErr_SetString(PyExc_RuntimeError, "a gradient is needed for a gradient edge"), -1;
        }
        if (add(r, k, e.nr, g) < 0) return -1;
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
        Py_ssize_t k = r->n ? find(r, (FlbNode *)node) : -1;
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
    if (bad == 0) bad = explore(&r);
    if (bad == 0 && !(r.heap = PyMem_Malloc(sizeof(int32_t) * (r.n + 1)))) bad = (PyErr_NoMemory(), -1);
    if (bad == 0 && args[2] != Py_None) bad = want(&r, args[2]) < 0 ? -1 : mark_needed(&r);
    else
        for (Py_ssize_t i = 0; bad == 0 && i < r.n; i++) r.tasks[i].needed = 1;
    for (Py_ssize_t i = 0; bad == 0 && i < roots; i++)
        if (!r.tasks[i].deps) heap_push(&r, i);
    for (int count = 0; bad == 0 && r.n_heap; count++) {
        if (!(count & 15) && PyErr_CheckSignals() < 0) bad = -1;
        else bad = step(&r, heap_pop(&r));
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
        run_free(&r);
    } else { /* what is freed may run Python: keep the exception out of its way */
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        run_free(&r);
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
        ? find(current, (FlbNode *)node)
        : -1;
    return PyBool_FromLong(i >= 0 && (current->tasks[i].needed || current->tasks[i].capture >= 0));
}
static PyObject *py_configure(PyObject *m, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"add",   "add_inplace", "clone",        "detach",      "ones_like",
                            "zeros", "copy_for",    "check_result", "check_count", NULL};
    PyObject *v[9], **to[9] = {&add_op,    &add_inplace_op,      &clone_op,
                               &detach_op, &ones_like_op,        &make_zeros,
                               &copy_for,  &hook_result_checker, &hook_count_checker};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOOOOO", names, &v[0], &v[1], &v[2], &v[3], &v[4],
                                     &v[5], &v[6], &v[7], &v[8]))
        return NULL;
    for (int i = 0; i < 9; i++) Py_XSETREF(*to[i], Py_NewRef(v[i]));
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
        ? find(current, (FlbNode *)node)
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
