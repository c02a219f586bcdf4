/* Captured variants: a Cache for each code object and Context (a Context is a compile() configuration), found
 * through a slot on the code object. */
#include "frame/frame_eval.h"
#include <structmember.h>
#if PY_VERSION_HEX < 0x030C0000
#define REQUEST_EXTRA _PyEval_RequestCodeExtraIndex
#define GET_EXTRA _PyCode_GetExtra
#define SET_EXTRA _PyCode_SetExtra
#else
#define REQUEST_EXTRA PyUnstable_Eval_RequestCodeExtraIndex
#define GET_EXTRA PyUnstable_Code_GetExtra
#define SET_EXTRA PyUnstable_Code_SetExtra
#endif

static Py_ssize_t extra_index = -1;

/* ---- per-code data ------------------------------------------------------------------------------------- */

static void cache_unlink(Cache *c) /* from its Context */
{
    if (!c->context) return;
    if (c->prev) c->prev->next = c->next;
    else c->context->caches = c->next;
    if (c->next) c->next->prev = c->prev;
    c->context = NULL;
    c->next = c->prev = NULL;
}

static void extra_free(void *p) {
    Extra *e = p;
    if (!e) return;
    while (e->caches) {
        Cache *c = e->caches;
        e->caches = c->sibling;
        c->sibling = NULL;
        c->code = NULL;
        cache_unlink(c);
        if (c->of_code) {
            c->of_code = 0;
            Py_DECREF(c);
        }
    }
    PyMem_Free(e);
}

int flb_extra_init(void) {
    extra_index = REQUEST_EXTRA(extra_free);
    if (extra_index >= 0) return 0;
    PyErr_SetString(PyExc_RuntimeError, "no free slot for data on code objects");
    return -1;
}

Extra *flb_extra_get(PyObject *code) {
    void *p = NULL;
    if (GET_EXTRA(code, extra_index, &p) < 0) {
        PyErr_Clear();
        return NULL;
    }
    return p;
}

Extra *flb_extra_make(PyObject *code) {
    Extra *e = flb_extra_get(code);
    if (e) return e;
    e = PyMem_Calloc(1, sizeof(Extra));
    if (!e) {
        PyErr_NoMemory();
        return NULL;
    }
    if (SET_EXTRA(code, extra_index, e) < 0) {
        PyMem_Free(e);
        return NULL;
    }
    return e;
}

static void cache_leave_code(Cache *c) /* may free it */
{
    Extra *e = c->code ? flb_extra_get(c->code) : NULL;
    if (!e) return;
    Cache **at = &e->caches;
    while (*at && *at != c) at = &(*at)->sibling;
    if (*at) *at = c->sibling;
    c->sibling = NULL;
    c->code = NULL;
    if (c->of_code) {
        c->of_code = 0;
        Py_DECREF(c);
    }
}

Cache *flb_cache_known(PyObject *code, Context *ctx) {
    Extra *e = flb_extra_make(code);
    if (!e) return NULL;
    for (Cache *c = e->caches; c; c = c->sibling)
        if (c->context == ctx) {
            Py_INCREF(c);
            return c;
        }
    return NULL;
}

Cache *flb_cache_for(PyObject *code, Context *ctx, int of_code) {
    Extra *e = flb_extra_make(code);
    if (!e) return NULL;
    Cache *known = flb_cache_known(code, ctx);
    if (known) return known;
    Cache *cache = PyObject_GC_New(Cache, &FlbCacheType);
    if (!cache) return NULL;
    memset((char *)cache + offsetof(Cache, n), 0, sizeof(Cache) - offsetof(Cache, n));
    cache->code = code;
    cache->context = ctx;
    cache->sibling = e->caches;
    e->caches = cache;
    cache->next = ctx->caches;
    if (ctx->caches) ctx->caches->prev = cache;
    ctx->caches = cache;
    if (of_code) {
        cache->of_code = 1;
        Py_INCREF(cache);
    }
    PyObject_GC_Track(cache);
    return cache;
}

/* ---- Context and Cache types --------------------------------------------------------------------------- */

static int context_init(Context *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"miss", NULL};
    PyObject *miss = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", names, &miss)) return -1;
    Py_XINCREF(miss);
    Py_XSETREF(self->miss, miss);
    return 0;
}
static int context_traverse(Context *self, visitproc visit, void *arg) {
    Py_VISIT(self->miss);
    Py_VISIT(self->dict);
    return 0;
}
static int context_clear(Context *self) {
    Py_CLEAR(self->miss);
    Py_CLEAR(self->dict);
    return 0;
}
static void context_dealloc(Context *self) {
    PyObject_GC_UnTrack(self);
    if (self->weakrefs) PyObject_ClearWeakRefs((PyObject *)self);
    while (self->caches) {
        Cache *c = self->caches;
        Py_INCREF(c);
        cache_unlink(c);
        cache_leave_code(c);
        Py_DECREF(c);
    }
    context_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}
static PyGetSetDef context_getset[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict},
                                       {NULL}};
PyTypeObject FlbContextType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._frame.Context",
    .tp_basicsize = sizeof(Context),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .tp_doc = "Context(miss=self.miss): one compile() configuration. miss(func, flat_args, cache) -> bool is "
              "called when no entry fits",
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)context_init,
    .tp_dealloc = (destructor)context_dealloc,
    .tp_traverse = (traverseproc)context_traverse,
    .tp_clear = (inquiry)context_clear,
    .tp_getset = context_getset,
    .tp_dictoffset = offsetof(Context, dict),
    .tp_weaklistoffset = offsetof(Context, weakrefs),
};

static void entry_free(Entry *e) {
    Py_XDECREF(e->tree);
    Py_XDECREF(e->code);
    Py_XDECREF(e->fn);
    Py_XDECREF(e->direct.call);
    Py_XDECREF(e->direct.constant);
    Py_XDECREF(e->direct.given);
    PyMem_Free(e);
}
static int cache_traverse(Cache *c, visitproc visit, void *arg) {
    for (Py_ssize_t i = 0; i < c->n; i++) {
        Py_VISIT(c->entries[i]->tree);
        Py_VISIT(c->entries[i]->code);
        Py_VISIT(c->entries[i]->fn);
        Py_VISIT(c->entries[i]->direct.call);
        Py_VISIT(c->entries[i]->direct.constant);
        Py_VISIT(c->entries[i]->direct.given);
    }
    Py_VISIT(c->dict);
    return 0;
}
int flb_cache_empty(Cache *c) {
    Py_ssize_t n = c->n;
    Entry **entries = c->entries;
    c->n = 0;
    c->entries = NULL;
    for (Py_ssize_t i = 0; i < n; i++) entry_free(entries[i]);
    PyMem_Free(entries);
    return 0;
}
static int cache_clear(Cache *c) {
    Py_CLEAR(c->dict);
    return flb_cache_empty(c);
}
static void cache_dealloc(Cache *c) {
    PyObject_GC_UnTrack(c);
    cache_unlink(c);
    cache_leave_code(c);
    cache_clear(c);
    PyObject_GC_Del(c);
}
/* The call that stands for captured code, from a DirectCall of dynamo/bytecode/direct.py. */
static int read_direct(PyObject *o, PyCodeObject *code, Direct *d) {
    static const char *const names[] = {"returns", "item", "lasti"};
    int *numbers[] = {&d->returns, &d->item, &d->lasti}, held = flb_flat_count(code);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        PyObject *x = PyObject_GetAttrString(o, names[i]);
        *numbers[i] = x ? (int)PyLong_AsLong(x) : -1;
        Py_XDECREF(x);
        if (PyErr_Occurred()) return -1;
    }
    if (!(d->given = PyObject_GetAttrString(o, "given"))) return -1;
    PyObject *arguments = PyObject_GetAttrString(o, "arguments");
    int fits = PyTuple_Check(d->given) && arguments && PyTuple_Check(arguments) &&
        PyTuple_GET_SIZE(arguments) <= DIRECT_ARGUMENTS;
    d->n = fits ? (int)PyTuple_GET_SIZE(arguments) : 0;
    d->in_order = 1;
    for (int i = 0; i < d->n; i++) {
        d->arguments[i] = (int)PyLong_AsLong(PyTuple_GET_ITEM(arguments, i));
        d->in_order &= d->arguments[i] == i;
        fits &= d->arguments[i] < held && -1 - d->arguments[i] < PyTuple_GET_SIZE(d->given);
    }
    Py_XDECREF(arguments);
    if (PyErr_Occurred()) return -1;
    fits &= d->returns >= 0 && d->returns < RETURNS_COUNT && d->item >= 0 && d->lasti >= -1 &&
        (d->returns != RETURNS_ARGUMENT || d->item < held);
    if (!fits) return PyErr_SetString(PyExc_ValueError, "a call that doesn't fit the captured code"), -1;
    if (!(d->constant = PyObject_GetAttrString(o, "constant")) ||
        !(d->call = PyObject_GetAttrString(o, "call")))
        return -1;
    if (d->call == Py_None && d->returns != RETURNS_ARGUMENT && d->returns != RETURNS_CONSTANT)
        return PyErr_SetString(PyExc_ValueError, "no call has no result"), -1;
    return 0;
}

static PyObject *cache_add(Cache *c, PyObject *args) {
    PyObject *tree, *code, *direct = Py_None, *globals = NULL;
    int needs_eval = 0;
    if (!PyArg_ParseTuple(args, "OO!|pOO!", &tree, &PyCode_Type, &code, &needs_eval, &direct, &PyDict_Type,
                          &globals))
        return NULL;
    Py_ssize_t reads = flb_guards_arguments(tree);
    if (reads < 0) return NULL;
    if (c->code && reads > flb_flat_count((PyCodeObject *)c->code)) {
        PyErr_SetString(PyExc_ValueError, "the guards read more arguments than there are");
        return NULL;
    }
    Extra *x = flb_extra_make(code);
    if (!x) return NULL;
    x->flags |= SKIP; /* captured code is never captured again */
    Entry *e = PyMem_Calloc(1, sizeof(Entry));
    if (!e) return PyErr_NoMemory();
    if (direct != Py_None && read_direct(direct, (PyCodeObject *)code, &e->direct) < 0)
        return entry_free(e), NULL;
    Entry **entries = PyMem_Realloc(c->entries, (c->n + 1) * sizeof(Entry *));
    if (!entries) {
        entry_free(e);
        return PyErr_NoMemory();
    }
    Py_INCREF(tree);
    Py_INCREF(code);
    e->tree = tree;
    e->code = code;
    e->needs_eval = needs_eval;
    e->globals = globals;
    memmove(entries + 1, entries, c->n * sizeof(Entry *));
    entries[0] = e;
    c->entries = entries;
    c->n++;
    Py_RETURN_NONE;
}
static PyObject *cache_list(Cache *c, void *closure) {
    PyObject *out = PyList_New(0);
    for (Py_ssize_t i = 0; out && i < c->n;
         i++) { /* building a tuple may run the collector, and that anything */
        PyObject *t = Py_BuildValue("(OOK)", c->entries[i]->tree, c->entries[i]->code,
                                    (unsigned long long)c->entries[i]->hits);
        if (!t || PyList_Append(out, t) < 0) Py_CLEAR(out);
        Py_XDECREF(t);
    }
    return out;
}
void flb_cache_forget(Cache *c) {
    Py_INCREF(c);
    cache_clear(c);
    c->skip = 0;
    Py_DECREF(c);
}
static PyObject *cache_reset(Cache *c, PyObject *unused) {
    flb_cache_forget(c);
    Py_RETURN_NONE;
}
static PyMethodDef cache_methods[] = {
    {"add", (PyCFunction)cache_add, METH_VARARGS,
     "add(tree, code, needs_eval=False, direct=None, globals=...): put an entry in front. direct: a "
     "DirectCall that does what the "
     "code does; globals: those of the functions that it is for, else it is for all"},
    {"clear", (PyCFunction)cache_reset, METH_NOARGS, "forget every entry"},
    {NULL},
};
static PyMemberDef cache_members[] = {
    {"skip", T_BOOL, offsetof(Cache, skip), 0, "run plainly when no entry fits"},
    {"once", T_BOOL, offsetof(Cache, once), 0, "drop each entry behind the call that it was made for"},
    {NULL}};
static PyGetSetDef cache_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict},
    {"entries", (getter)cache_list, NULL, "list of (tree, code, hits), the latest first"},
    {NULL}};
PyTypeObject FlbCacheType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._frame.Cache",
    .tp_basicsize = sizeof(Cache),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Captured variants of one code object under one Context",
    .tp_dealloc = (destructor)cache_dealloc,
    .tp_traverse = (traverseproc)cache_traverse,
    .tp_clear = (inquiry)cache_clear,
    .tp_methods = cache_methods,
    .tp_members = cache_members,
    .tp_getset = cache_getset,
    .tp_dictoffset = offsetof(Cache, dict),
};
