/* The callables that compile(), disable() and run() return, and the calls that captured code leaves to them.
 */
#include "frame/frame_eval.h"
#include "core/stack.h"

/* ---- tail calls ---------------------------------------------------------------------------------------- */

static PyObject *compiled_call_raw(Callable *self, PyObject *const *args, size_t nargsf, PyObject *kwnames);

FLB_PER_THREAD TailCall *flb_handed, *flb_running;

PyObject *flb_settle(PyObject *r) /* steals r */
{
    while (r && Py_IS_TYPE(r, &FlbTailCallType)) {
        TailCall *t = (TailCall *)r;
        Py_ssize_t n = Py_SIZE(t) - 1;
        if (Py_IS_TYPE(t->items[0], &FlbCompiledType)) flb_handed = t;
        PyObject *next = Py_IS_TYPE(t->items[0], &FlbCompiledType)
            ? compiled_call_raw((Callable *)t->items[0], t->items + 1, n, NULL)
            : PyObject_Vectorcall(t->items[0], t->items + 1, n, NULL);
        flb_handed = NULL;
        Py_DECREF(r);
        r = next;
    }
    return r;
}

PyObject *flb_tail_call(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    if (n < 1) {
        PyErr_SetString(PyExc_TypeError, "tail_call expects a callable");
        return NULL;
    }
    TailCall *t = PyObject_GC_NewVar(TailCall, &FlbTailCallType, n);
    if (!t) return NULL;
    t->released = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_INCREF(args[i]);
        t->items[i] = args[i];
    }
    PyObject_GC_Track(t);
    return (PyObject *)t;
}

void flb_release(TailCall *t) {
    for (Py_ssize_t i = 1; t && i < Py_SIZE(t);
         i++) { /* the frame has references of its own; nobody runs the call a second time */
        PyObject *old = t->items[i];
        t->items[i] = Py_NewRef(Py_None);
        Py_DECREF(old);
    }
    if (t) t->released = 1;
}

PyObject *flb_release_arguments(PyObject *module, PyObject *unused) {
    flb_release(flb_running);
    Py_RETURN_NONE;
}

static int tail_call_traverse(TailCall *t, visitproc visit, void *arg) {
    for (Py_ssize_t i = 0; i < Py_SIZE(t); i++) Py_VISIT(t->items[i]);
    return 0;
}

static void tail_call_dealloc(TailCall *t) {
    PyObject_GC_UnTrack(t);
    for (Py_ssize_t i = 0; i < Py_SIZE(t); i++) Py_XDECREF(t->items[i]);
    PyObject_GC_Del(t);
}

/* The drivers of generators make such calls, with what is sent: once, and the arguments are the called
 * frame's alone from then on. */
static PyObject *tail_call_made(TailCall *t, PyObject *args, PyObject *kwargs) {
    Py_ssize_t n = Py_SIZE(t), more = PyTuple_GET_SIZE(args);
    if (kwargs || !t->items[0]) {
        PyErr_SetString(PyExc_TypeError, "a tail call is made once, without keyword arguments");
        return NULL;
    }
    TailCall *call = PyObject_GC_NewVar(TailCall, &FlbTailCallType, n + more);
    if (!call) return NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        call->items[i] = t->items[i];
        t->items[i] = NULL;
    }
    for (Py_ssize_t i = 0; i < more; i++) call->items[n + i] = Py_NewRef(PyTuple_GET_ITEM(args, i));
    PyObject_GC_Track(call);
    return flb_settle((PyObject *)call);
}

PyTypeObject FlbTailCallType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._frame.TailCall",
    .tp_basicsize = offsetof(TailCall, items),
    .tp_itemsize = sizeof(PyObject *),
    .tp_call = (ternaryfunc)tail_call_made,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "A call that captured code leaves to its caller",
    .tp_traverse = (traverseproc)tail_call_traverse,
    .tp_dealloc = (destructor)tail_call_dealloc,
};

/* ---- callables ----------------------------------------------------------------------------------------- */

/* The arguments as the frame would see them. 1: *out holds n values (new references when *owned), 0: not
 * bindable here, -1: exception. */
static int bind(PyFunctionObject *f, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                PyObject **out, Py_ssize_t n) {
    PyCodeObject *code = (PyCodeObject *)f->func_code;
    Py_ssize_t ac = code->co_argcount, kc = code->co_kwonlyargcount, total = ac + kc;
    int var = !!(code->co_flags & CO_VARARGS), kw = !!(code->co_flags & CO_VARKEYWORDS), status = 0;
    PyObject *names = code->co_localsplusnames;
    for (Py_ssize_t i = 0; i < n; i++) out[i] = NULL;
    if (nargs > ac && !var) return 0;
    for (Py_ssize_t i = 0; i < nargs && i < ac; i++) {
        Py_INCREF(args[i]);
        out[i] = args[i];
    }
    if (var) {
        Py_ssize_t m = nargs > ac ? nargs - ac : 0;
        PyObject *t = PyTuple_New(m);
        if (!t) {
            status = -1;
            goto fail;
        }
        for (Py_ssize_t i = 0; i < m; i++) {
            Py_INCREF(args[ac + i]);
            PyTuple_SET_ITEM(t, i, args[ac + i]);
        }
        out[total] = t;
    }
    if (kw && !(out[total + var] = PyDict_New())) {
        status = -1;
        goto fail;
    }
    Py_ssize_t nk = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    for (Py_ssize_t k = 0; k < nk; k++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, k), *value = args[nargs + k];
        Py_ssize_t i = code->co_posonlyargcount;
        for (; i < total; i++)
            if (PyTuple_GET_ITEM(names, i) == name) break;
        if (i == total)
            for (i = code->co_posonlyargcount; i < total; i++)
                if (PyUnicode_Compare(PyTuple_GET_ITEM(names, i), name) == 0) break;
        if (i < total) {
            if (out[i]) goto fail;
            Py_INCREF(value);
            out[i] = value;
        } else if (!kw) goto fail;
        else if (PyDict_SetItem(out[total + var], name, value) < 0) {
            status = -1;
            goto fail;
        }
    }
    PyObject *defaults = f->func_defaults;
    Py_ssize_t nd = defaults ? PyTuple_GET_SIZE(defaults) : 0;
    for (Py_ssize_t i = 0; i < ac; i++)
        if (!out[i]) {
            if (i < ac - nd) goto fail;
            out[i] = PyTuple_GET_ITEM(defaults, i - (ac - nd));
            Py_INCREF(out[i]);
        }
    for (Py_ssize_t i = ac; i < total; i++)
        if (!out[i]) {
            PyObject *d = f->func_kwdefaults
                ? PyDict_GetItemWithError(f->func_kwdefaults, PyTuple_GET_ITEM(names, i))
                : NULL;
            if (!d) {
                if (PyErr_Occurred()) status = -1;
                goto fail;
            }
            Py_INCREF(d);
            out[i] = d;
        }
    return 1;
fail:
    for (Py_ssize_t i = 0; i < n; i++) Py_CLEAR(out[i]);
    return status;
}

static PyObject *call_plainly(Context *ctx, PyObject *fn, PyObject *const *args, size_t nargsf,
                              PyObject *kwnames) {
    Context *prev = flb_enter(ctx);
    PyObject *r = PyObject_Vectorcall(fn, args, nargsf, kwnames);
    flb_enter(prev);
    return r;
}

static PyObject *compiled_call_raw(Callable *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    PyFunctionObject *f = (PyFunctionObject *)self->fn;
    PyCodeObject *code = (PyCodeObject *)f->func_code;
    if (flb_stack_check(" in a compiled function") < 0) return NULL;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf), n = flb_flat_count(code);
    if (self->mode == MODE_RUN && !self->context) return call_plainly(NULL, self->fn, args, nargsf, kwnames);
    Context *ctx = self->context;
    Cache *cache = self->cache;
    if (!cache || self->cache_code != (PyObject *)code) {
        cache = flb_cache_for((PyObject *)code, ctx, 0);
        if (!cache) return NULL;
        Py_XSETREF(self->cache, cache);
        Py_INCREF(code);
        Py_XSETREF(self->cache_code, (PyObject *)code);
    }
    TailCall *mine = flb_handed;
    PyObject *served;
    if (!kwnames && nargs == code->co_argcount && n == nargs && !(code->co_flags & FLB_SUSPENDS) &&
        flb_serve_at_a_glance(cache, f, args, &served)) {
        if (served || (mine && mine->released) || !flb_to_run_plainly()) return served;
        return call_plainly(NULL, self->fn, args, nargsf, NULL);
    }
    PyObject *small[16], **flat = small, *const *use = args;
    int owned = 0, ran;
    if (kwnames || nargs != code->co_argcount || n != nargs) {
        if (n > 16 && !(flat = PyMem_Malloc(n * sizeof(PyObject *)))) return PyErr_NoMemory();
        int b = bind(f, args, nargs, kwnames, flat, n);
        if (b <= 0) {
            if (flat != small) PyMem_Free(flat);
            return b < 0 ? NULL
                         : PyObject_Vectorcall(self->fn, args, nargsf,
                                               kwnames); /* raises the TypeError a call raises */
        }
        owned = 1;
        use = flat;
    }
    Py_INCREF(self);
    Py_INCREF(cache);
    PyObject *r = flb_dispatch(ctx, cache, f, use, n, self->mode == MODE_RUN, &ran);
    if (ran == FLB_PLAINLY) r = call_plainly(NULL, self->fn, args, nargsf, kwnames);
    else if (!ran) {
        flb_plain_once(code, mine);
        r = call_plainly(self->mode == MODE_RUN ? NULL : ctx, self->fn, args, nargsf, kwnames);
        flb_plain_once(NULL, NULL);
    }
    Py_DECREF(cache);
    Py_DECREF(self);
    if (owned)
        for (Py_ssize_t i = 0; i < n; i++) Py_DECREF(flat[i]);
    if (flat != small) PyMem_Free(flat);
    return r;
}

/* ---- calls under watch --------------------------------------------------------------------------------- */

static PyObject *watcher; /* watcher(callable, *args, **kwargs) is called in the place of outermost compiled
                             calls, or NULL */
static FLB_PER_THREAD int watching; /* WATCH_: what compiled calls of this thread do meanwhile */
enum { WATCH_ASK, WATCH_RUN, WATCH_PLAINLY };

static int plainly; /* compiled calls of all threads run plainly: what is captured isn't used */

static PyObject *compiled_call(Callable *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    if (plainly) return call_plainly(NULL, self->fn, args, nargsf, kwnames);
    if (watcher) {
        if (watching == WATCH_PLAINLY) return call_plainly(NULL, self->fn, args, nargsf, kwnames);
        if (watching == WATCH_ASK) {
            Py_ssize_t n = PyVectorcall_NARGS(nargsf), total = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
            PyObject **all = PyMem_Malloc((total + 1) * sizeof(PyObject *)), *hook = watcher;
            if (!all) return PyErr_NoMemory();
            all[0] = (PyObject *)self;
            for (Py_ssize_t i = 0; i < total; i++) all[i + 1] = args[i];
            Py_INCREF(hook);
            PyObject *r = PyObject_Vectorcall(hook, all, n + 1, kwnames);
            Py_DECREF(hook);
            PyMem_Free(all);
            return r;
        }
    }
    return flb_settle(compiled_call_raw(self, args, nargsf, kwnames));
}

PyObject *flb_set_watcher(PyObject *module, PyObject *arg) {
    PyObject *old = watcher ? watcher : Py_NewRef(Py_None);
    watcher = arg == Py_None ? NULL : Py_NewRef(arg);
    return old;
}

PyObject *flb_set_watching(PyObject *module, PyObject *arg) {
    long v = PyLong_AsLong(arg);
    if (v == -1 && PyErr_Occurred()) return NULL;
    if (v < WATCH_ASK || v > WATCH_PLAINLY) {
        PyErr_SetString(PyExc_ValueError, "0 asks the watcher, 1 runs compiled calls, 2 runs them plainly");
        return NULL;
    }
    PyObject *old = PyLong_FromLong(watching);
    watching = (int)v;
    return old;
}

PyObject *flb_set_plainly(PyObject *module, PyObject *arg) {
    int on = PyObject_IsTrue(arg);
    if (on < 0) return NULL;
    PyObject *old = PyBool_FromLong(plainly);
    plainly = on;
    return old;
}

/* The call of a graph whose floating-point errors are NumPy's to tell: before it writes to what it was given
 * (flb_tell_floating_errors), else at its end. What it writes as it goes is kept, and put back when the frame
 * is to be run plainly; where keeping it costs too much, errors aren't told. */
static FLB_PER_THREAD struct {
    Callable *graph;
    int told;
} watched;

static int tell_flags(Callable *graph, unsigned flags) {
    if (!(flags & graph->watch) || !graph->flagged) return 0;
    PyObject *done = PyObject_CallFunction(graph->flagged, "I", flags);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

PyObject *flb_tell_floating_errors(PyObject *module, PyObject *unused) {
    Callable *graph = watched.graph;
    if (graph && !watched.told) {
        watched.told = 1;
        if (tell_flags(graph, flb_frame_api()->floating()->noted | flb_floating_flags()) < 0) return NULL;
    }
    Py_RETURN_NONE;
}

enum { KEPT_HERE = 4 };
typedef struct {
    Py_ssize_t n;
    FlbContents *items, here[KEPT_HERE];
} Kept;

static int let_go(Kept *kept, int put_back) {
    FlbApi *api = flb_frame_api();
    int r = 0;
    while (kept->n) r |= api->put_back(&kept->items[--kept->n], put_back);
    if (kept->items != kept->here) PyMem_Free(kept->items);
    kept->items = kept->here;
    return r;
}

/* Keeps the contents of the arguments that the graph writes to. 1: they are kept, 0: they are too large for
 * what it would tell, -1: error. */
static int keep_written(Callable *self, PyObject *const *args, Kept *kept) {
    FlbApi *api = flb_frame_api();
    Py_ssize_t n = PyTuple_GET_SIZE(self->written), bytes = 0;
    for (Py_ssize_t i = 0; i < n; i++)
        bytes += api->nbytes(args[PyLong_AsSsize_t(PyTuple_GET_ITEM(self->written, i))]);
    if (bytes > self->keeps) {
        PyObject *worth = PyObject_CallMethod(self->flagged, "keeps", NULL);
        int r = worth ? PyObject_IsTrue(worth) : -1;
        Py_XDECREF(worth);
        if (r <= 0) return r;
    }
    if (n > KEPT_HERE && !(kept->items = PyMem_Malloc(n * sizeof(FlbContents))))
        return kept->items = kept->here, PyErr_NoMemory(), -1;
    for (; kept->n < n; kept->n++)
        if (api->keep_contents(args[PyLong_AsSsize_t(PyTuple_GET_ITEM(self->written, kept->n))],
                               &kept->items[kept->n]) < 0)
            return -1;
    return 1;
}

static int runs_plainly_now(void) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    int r = value && PyObject_HasAttrString(value, "run_plainly");
    PyErr_Restore(type, value, traceback);
    return r;
}

static PyObject *watched_call(Callable *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Kept kept = {.items = kept.here};
    int keeps = self->written && self->written != Py_None ? keep_written(self, args, &kept) : 1;
    if (keeps < 0) return let_go(&kept, 0), NULL;
    FlbApi *api = flb_frame_api();
    FlbFloating *f = api->floating(), outer = *f;
    if (outer.watching) outer.noted |= flb_floating_flags();
    flb_floating_clear();
    *f = (FlbFloating){.watching = 1};
    __typeof__(watched) around = watched;
    watched.graph = self;
    watched.told = !keeps;
    PyObject *r = call_plainly(NULL, self->fn, args, nargsf, kwnames);
    unsigned flags = f->noted | flb_floating_flags();
    int told = watched.told;
    watched = around;
    *f = outer;
    if (r && !told && tell_flags(self, flags) < 0) Py_CLEAR(r);
    if (r && !keeps && flags & self->watch) {
        PyObject *done = PyObject_CallMethod(self->flagged, "missed", NULL);
        if (!done) Py_CLEAR(r);
        Py_XDECREF(done);
    }
    if (kept.n) {
        int back = !r && runs_plainly_now();
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        if (let_go(&kept, back) < 0) PyErr_Clear();
        PyErr_Restore(type, value, traceback);
    }
    return r;
}

static FLB_PER_THREAD Callable *calling; /* the graph whose call runs, borrowed */

/* Whether the frame is run plainly when the graph that is being called raises an error that says so. */
PyObject *flb_runs_again(PyObject *module, PyObject *unused) {
    Callable *c = calling;
    int again = c && c->again && c->again != Py_None,
        kept = c && c->watch && watched.graph == c && !watched.told;
    return PyBool_FromLong(again || kept);
}

static PyObject *call_disabled(Callable *self, PyObject *const *args, size_t nargsf, PyObject *kwnames);

static PyObject *disabled_call(Callable *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Callable *around = calling;
    calling = self;
    PyObject *r = call_disabled(self, args, nargsf, kwnames);
    calling = around;
    return r;
}

static PyObject *call_disabled(Callable *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    PyObject *r = self->watch ? watched_call(self, args, nargsf, kwnames)
                              : call_plainly(NULL, self->fn, args, nargsf, kwnames);
    if (!r && self->again && self->again != Py_None && PyErr_ExceptionMatches(PyExc_Exception)) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        PyErr_NormalizeException(&type, &value, &traceback);
        if (traceback) PyException_SetTraceback(value, traceback);
        PyObject *again = PyObject_CallOneArg(self->again, value);
        if (again != Py_True || PyObject_SetAttrString(value, "run_plainly", Py_True) < 0)
            PyErr_Clear(); /* the error as it is */
        Py_XDECREF(again);
        PyErr_Restore(type, value, traceback);
    }
    return r;
}

static PyObject *callable_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *fn, *ctx = Py_None;
    if (!PyArg_ParseTuple(args, "O|O", &fn, &ctx)) return NULL;
    int mode = PyType_IsSubtype(type, &FlbCompiledType) ? MODE_COMPILED
        : PyType_IsSubtype(type, &FlbRunType)           ? MODE_RUN
                                                        : MODE_DISABLED;
    if (mode != MODE_DISABLED && !PyFunction_Check(fn)) {
        PyErr_Format(PyExc_TypeError, "%s expects a Python function, got %.100s", type->tp_name,
                     Py_TYPE(fn)->tp_name);
        return NULL;
    }
    if (ctx != Py_None && !PyObject_TypeCheck(ctx, &FlbContextType)) {
        PyErr_SetString(PyExc_TypeError, "a Context is expected");
        return NULL;
    }
    if (mode == MODE_COMPILED && ctx == Py_None) {
        PyErr_SetString(PyExc_TypeError, "a Context is expected");
        return NULL;
    }
    Callable *self = (Callable *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->mode = mode;
    self->vectorcall = (vectorcallfunc)(mode == MODE_DISABLED ? disabled_call : compiled_call);
    Py_INCREF(fn);
    self->fn = fn;
    if (ctx != Py_None) {
        Py_INCREF(ctx);
        self->context = (Context *)ctx;
    }
    if (mode == MODE_COMPILED) { /* variants that a callable like it has captured live on with this one */
        PyObject *code = ((PyFunctionObject *)fn)->func_code;
        self->cache = flb_cache_known(code, self->context);
        if (self->cache) self->cache_code = Py_NewRef(code);
        if (PyErr_Occurred()) Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static int callable_traverse(Callable *self, visitproc visit, void *arg) {
    Py_VISIT(self->fn);
    Py_VISIT(self->context);
    Py_VISIT(self->cache);
    Py_VISIT(self->again);
    Py_VISIT(self->flagged);
    Py_VISIT(self->written);
    Py_VISIT(self->dict);
    return 0;
}

static int callable_clear(Callable *self) {
    Py_CLEAR(self->fn);
    Py_CLEAR(self->context);
    Py_CLEAR(self->cache);
    Py_CLEAR(self->cache_code);
    Py_CLEAR(self->again);
    Py_CLEAR(self->flagged);
    Py_CLEAR(self->written);
    Py_CLEAR(self->dict);
    return 0;
}

static void callable_dealloc(Callable *self) {
    PyObject_GC_UnTrack(self);
    if (self->weakrefs) PyObject_ClearWeakRefs((PyObject *)self);
    callable_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *callable_get(PyObject *self, PyObject *obj, PyObject *type) {
    if (!obj || obj == Py_None) {
        Py_INCREF(self);
        return self;
    }
    return PyMethod_New(self, obj);
}

static PyObject *callable_repr(Callable *self) {
    return PyUnicode_FromFormat("<%s of %R>",
                                self->mode == MODE_COMPILED  ? "compiled function"
                                    : self->mode == MODE_RUN ? "frozen function"
                                                             : "function with capture disabled",
                                self->fn);
}

static PyObject *callable_get_context(Callable *self, void *closure) {
    PyObject *c = self->context ? (PyObject *)self->context : Py_None;
    Py_INCREF(c);
    return c;
}

static PyMemberDef callable_members[] = {
    {"fn", T_OBJECT, offsetof(Callable, fn), READONLY,
     "the function that is called when nothing captured fits"},
    {"again", T_OBJECT, offsetof(Callable, again), 0,
     "of a DisabledFunction: again(error) tells whether the frame is run plainly after it"},
    {"watch", T_UINT, offsetof(Callable, watch), 0,
     "of a DisabledFunction: floating-point flags after which flagged(flags) is called"},
    {"flagged", T_OBJECT, offsetof(Callable, flagged), 0,
     "of a DisabledFunction: flagged(flags) may raise in the place of the call's result"},
    {"written", T_OBJECT, offsetof(Callable, written), 0,
     "of a DisabledFunction that is watched: positions of tensors that it writes to as it goes, a tuple, or "
     "None"},
    {"keeps", T_PYSSIZET, offsetof(Callable, keeps), 0,
     "of these: up to how many bytes their contents are always kept; of more where flagged.keeps() says so"},
    {"__dictoffset__", T_PYSSIZET, offsetof(Callable, dict), READONLY},
    {NULL},
};
static PyGetSetDef callable_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict},
    {"context", (getter)callable_get_context, NULL, "the compile() configuration"},
    {NULL},
};

#define CALLABLE_TYPE(var, name, docs)                                                                  \
    PyTypeObject var = {                                                                                \
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = name,                                                  \
        .tp_basicsize = sizeof(Callable),                                                               \
        .tp_doc = docs,                                                                                 \
        .tp_flags =                                                                                     \
            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL, \
        .tp_new = callable_new,                                                                         \
        .tp_dealloc = (destructor)callable_dealloc,                                                     \
        .tp_traverse = (traverseproc)callable_traverse,                                                 \
        .tp_clear = (inquiry)callable_clear,                                                            \
        .tp_call = PyVectorcall_Call,                                                                   \
        .tp_vectorcall_offset = offsetof(Callable, vectorcall),                                         \
        .tp_descr_get = callable_get,                                                                   \
        .tp_repr = (reprfunc)callable_repr,                                                             \
        .tp_members = callable_members,                                                                 \
        .tp_getset = callable_getset,                                                                   \
        .tp_dictoffset = offsetof(Callable, dict),                                                      \
        .tp_weaklistoffset = offsetof(Callable, weakrefs),                                              \
    }
CALLABLE_TYPE(FlbCompiledType, "flambeau._frame.CompiledFunction",
              "CompiledFunction(function, context): guards first, then captured code");
CALLABLE_TYPE(FlbDisabledType, "flambeau._frame.DisabledFunction",
              "DisabledFunction(callable): calls it with capture off");
CALLABLE_TYPE(FlbRunType, "flambeau._frame.FrozenFunction",
              "FrozenFunction(function, context): uses captured code, never compiles");
