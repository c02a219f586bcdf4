/* Where calls are caught: the callable that compile() returns, and the PEP 523 frame evaluator.
 *
 * Both look up a Cache (one per code object and Context, where a Context is a compile() configuration), check the guards of its entries
 * against the flat argument vector, and call the entry's code as a plain function of that vector: captured code has no *args, no
 * keyword-only arguments, no defaults. The evaluator is installed only while some thread runs code that may contain graph breaks, so a
 * wholly captured function never pays for it.
 *
 * Thread state is one pointer: the Context that new frames are captured with, or NULL.
 */
#include "frame.h"
#include "interpreter.h"
#include "stack.h"
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

/* ---- objects ---- */

typedef struct {
    PyObject_HEAD
    PyObject *miss;                  /* callable(func, flat_args, cache) -> bool: an entry was added at the front */
    int run_only;                    /* prior entries are used, nothing new is compiled */
    struct Cache *caches;            /* all that belong to it, a list of borrowed pointers */
    PyObject *dict, *weakrefs;
} Context;

typedef struct { PyObject *tree, *code, *fn; int needs_eval; uint64_t hits; } Entry;

/* Who owns a cache: the callables that compile() made of the function; for frames that only the evaluator reaches, the code object
 * (`of_code`), until the Context goes. Cache, code and Context find each other by borrowed pointers, which whoever dies first clears. */
typedef struct Cache {
    PyObject_HEAD
    Py_ssize_t n;
    Entry **entries;                 /* the latest first */
    int skip;                        /* no entry fits: run the frame plainly without asking again */
    int attempts, warned;            /* for the Compiler: captures that led to nothing; the limit was reported */
    int of_code;                     /* its code object holds a reference */
    PyObject *code;                  /* borrowed, NULL when it is gone */
    Context *context;                /* borrowed, NULL when it is gone */
    struct Cache *next, *prev;       /* in the Context's list */
    struct Cache *sibling;           /* in the code's list */
    PyObject *dict;                  /* what the Compiler keeps with it */
} Cache;

enum { SKIP = 1, SKIP_RECURSIVE = 2 };
typedef struct { int flags; Cache *caches; } Extra;

enum { MODE_COMPILED, MODE_DISABLED, MODE_RUN };
typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    int mode;
    PyObject *fn;
    Context *context;
    Cache *cache;
    PyObject *cache_code;            /* the code object that cache belongs to */
    PyObject *dict, *weakrefs;
} Callable;

/* What captured code returns at a graph break: the call that gives its result. Made by the native caller, so that a chain of resume
 * functions does not grow the stack. */
typedef struct {
    PyObject_VAR_HEAD
    PyObject *items[1];              /* callable, then its arguments */
} TailCall;

static PyTypeObject ContextType, CacheType, CompiledType, DisabledType, RunType, TailCallType;
static Py_ssize_t extra_index = -1;
static _Thread_local Context *current;   /* strong */
static _Thread_local PyCodeObject *plain_once;   /* the next frame of this code has just been found to run plainly */
static int active_threads;               /* threads whose current is set; guarded by the GIL */

static PyObject *custom_eval(PyThreadState *ts, FlbFrame *frame, int throwflag);

/* Steals nothing; returns the previous context, which the caller gives back to leave(). */
static Context *enter(Context *next)
{
    Context *prev = current;
    if (prev == next) return prev;
    if (!prev && next && active_threads++ == 0) flb_set_eval(custom_eval);
    if (prev && !next && --active_threads == 0) flb_set_eval(NULL);
    current = next;
    return prev;
}

/* ---- per-code data ---- */

static void cache_unlink(Cache *c)          /* from its Context */
{
    if (!c->context) return;
    if (c->prev) c->prev->next = c->next; else c->context->caches = c->next;
    if (c->next) c->next->prev = c->prev;
    c->context = NULL;
    c->next = c->prev = NULL;
}

static void extra_free(void *p)
{
    Extra *e = p;
    if (!e) return;
    while (e->caches) {
        Cache *c = e->caches;
        e->caches = c->sibling;
        c->sibling = NULL;
        c->code = NULL;
        cache_unlink(c);
        if (c->of_code) { c->of_code = 0; Py_DECREF(c); }
    }
    PyMem_Free(e);
}

static Extra *extra_get(PyObject *code)
{
    void *p = NULL;
    if (GET_EXTRA(code, extra_index, &p) < 0) { PyErr_Clear(); return NULL; }
    return p;
}

static Extra *extra_make(PyObject *code)
{
    Extra *e = extra_get(code);
    if (e) return e;
    e = PyMem_Calloc(1, sizeof(Extra));
    if (!e) { PyErr_NoMemory(); return NULL; }
    if (SET_EXTRA(code, extra_index, e) < 0) { PyMem_Free(e); return NULL; }
    return e;
}

static void cache_leave_code(Cache *c)      /* may free it */
{
    Extra *e = c->code ? extra_get(c->code) : NULL;
    if (!e) return;
    Cache **at = &e->caches;
    while (*at && *at != c) at = &(*at)->sibling;
    if (*at) *at = c->sibling;
    c->sibling = NULL;
    c->code = NULL;
    if (c->of_code) { c->of_code = 0; Py_DECREF(c); }
}

/* A new reference. `of_code`: a cache that is made now belongs to the code object. */
static Cache *cache_for(PyObject *code, Context *ctx, int of_code)
{
    Extra *e = extra_make(code);
    if (!e) return NULL;
    for (Cache *c = e->caches; c; c = c->sibling)
        if (c->context == ctx) { Py_INCREF(c); return c; }
    Cache *cache = PyObject_GC_New(Cache, &CacheType);
    if (!cache) return NULL;
    memset((char *)cache + offsetof(Cache, n), 0, sizeof(Cache) - offsetof(Cache, n));
    cache->code = code;
    cache->context = ctx;
    cache->sibling = e->caches;
    e->caches = cache;
    cache->next = ctx->caches;
    if (ctx->caches) ctx->caches->prev = cache;
    ctx->caches = cache;
    if (of_code) { cache->of_code = 1; Py_INCREF(cache); }
    PyObject_GC_Track(cache);
    return cache;
}

static Py_ssize_t flat_count(PyCodeObject *code)
{
    return code->co_argcount + code->co_kwonlyargcount + !!(code->co_flags & CO_VARARGS) + !!(code->co_flags & CO_VARKEYWORDS);
}

/* ---- running an entry ---- */

static Entry *find_entry(Cache *cache, PyFunctionObject *func, PyObject *const *args, int *error)
{
    *error = 0;
    for (Py_ssize_t i = 0; i < cache->n; i++) {
        Entry *e = cache->entries[i];
        int r = flb_guards_check(e->tree, func, args);
        if (r < 0) { *error = 1; return NULL; }
        if (i >= cache->n || cache->entries[i] != e) return NULL;    /* the check ran Python that emptied the cache */
        if (r) return e;
    }
    return NULL;
}

static PyObject *run_entry(Entry *e, Context *ctx, PyFunctionObject *func, PyObject *const *args, Py_ssize_t n)
{
    PyObject *fn = e->fn;
    if (fn && !func->func_closure && ((PyFunctionObject *)fn)->func_globals == func->func_globals) Py_INCREF(fn);
    else {
        fn = PyFunction_New(e->code, func->func_globals);
        if (!fn) return NULL;
        if (func->func_closure && ((PyCodeObject *)e->code)->co_nfreevars) {
            if (PyFunction_SetClosure(fn, func->func_closure) < 0) { Py_DECREF(fn); return NULL; }
        } else if (!e->fn) {
            Py_INCREF(fn);
            e->fn = fn;
        }
    }
    e->hits++;
    Context *prev = enter(e->needs_eval ? ctx : NULL);
    PyObject *r = PyObject_Vectorcall(fn, args, n, NULL);
    enter(prev);
    Py_DECREF(fn);
    return r;
}

/* Calls ctx->miss with capture off. 1: an entry was added, 0: run plainly, -1: exception. */
static int call_miss(Context *ctx, PyFunctionObject *func, PyObject *const *args, Py_ssize_t n, Cache *cache)
{
    PyObject *tuple = PyTuple_New(n);
    if (!tuple) return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_INCREF(args[i]);
        PyTuple_SET_ITEM(tuple, i, args[i]);
    }
    Context *prev = enter(NULL);
    Py_INCREF(ctx);
    Py_INCREF(cache);
    PyObject *r = ctx->miss ? PyObject_CallFunctionObjArgs(ctx->miss, (PyObject *)func, tuple, (PyObject *)cache, NULL)
                            : PyObject_CallMethod((PyObject *)ctx, "miss", "OOO", (PyObject *)func, tuple, (PyObject *)cache);
    Py_DECREF(cache);
    Py_DECREF(ctx);
    enter(prev);
    Py_DECREF(tuple);
    if (!r) return -1;
    int added = PyObject_IsTrue(r);
    Py_DECREF(r);
    return added;
}

/* *ran is 0 when the frame has to be run plainly (NULL is returned without an exception then). */
static PyObject *dispatch(Context *ctx, Cache *cache, PyFunctionObject *func, PyObject *const *args, Py_ssize_t n, int run_only, int *ran)
{
    int error;
    *ran = 1;
    Entry *e = find_entry(cache, func, args, &error);
    if (error) return NULL;
    if (!e) {
        if (cache->skip || run_only || ctx->run_only) { *ran = 0; return NULL; }
        int r = call_miss(ctx, func, args, n, cache);
        if (r < 0) return NULL;
        if (!r || !cache->n) { *ran = 0; return NULL; }
        e = cache->entries[0];
        r = flb_guards_check(e->tree, func, args);
        if (r < 0) return NULL;
        if (!r) {
            PyObject *what = PyObject_CallMethod(e->tree, "describe_failure", NULL);
            if (!what) return NULL;
            /* A value that is another one each time it is looked at. The plain function is right in any case. */
            int raised = PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "a guard failed on the very call it was made for (%U); %R runs plainly",
                                          what, func);
            Py_DECREF(what);
            *ran = 0;
            if (raised < 0) *ran = 1;
            return NULL;
        }
    }
    PyObject *tree = e->tree;        /* the entry's tree and code outlive a reset() during the call through these references */
    Py_INCREF(tree);
    PyObject *code = e->code;
    Py_INCREF(code);
    PyObject *held = cache->dict;    /* the resume functions, which captured code knows weakly */
    Py_XINCREF(held);
    PyObject *r = run_entry(e, ctx, func, args, n);
    Py_XDECREF(held);
    Py_DECREF(code);
    Py_DECREF(tree);
    return r;
}

/* ---- the frame evaluator ---- */

static PyObject *eval_uncaptured(PyThreadState *ts, FlbFrame *frame)
{
    Context *prev = enter(NULL);
    PyObject *r = flb_default_eval(ts, frame, 0);
    enter(prev);
    return r;
}

/* ---- tail calls ---- */

static PyObject *compiled_call_raw(Callable *self, PyObject *const *args, size_t nargsf, PyObject *kwnames);

static PyObject *settle(PyObject *r)   /* steals r */
{
    while (r && Py_IS_TYPE(r, &TailCallType)) {
        TailCall *t = (TailCall *)r;
        Py_ssize_t n = Py_SIZE(t) - 1;
        PyObject *next = Py_IS_TYPE(t->items[0], &CompiledType) ? compiled_call_raw((Callable *)t->items[0], t->items + 1, n, NULL)
                                                                : PyObject_Vectorcall(t->items[0], t->items + 1, n, NULL);
        Py_DECREF(r);
        r = next;
    }
    return r;
}

static PyObject *m_tail_call(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n < 1) { PyErr_SetString(PyExc_TypeError, "tail_call expects a callable"); return NULL; }
    TailCall *t = PyObject_GC_NewVar(TailCall, &TailCallType, n);
    if (!t) return NULL;
    for (Py_ssize_t i = 0; i < n; i++) { Py_INCREF(args[i]); t->items[i] = args[i]; }
    PyObject_GC_Track(t);
    return (PyObject *)t;
}

static int tail_call_traverse(TailCall *t, visitproc visit, void *arg)
{
    for (Py_ssize_t i = 0; i < Py_SIZE(t); i++) Py_VISIT(t->items[i]);
    return 0;
}

static void tail_call_dealloc(TailCall *t)
{
    PyObject_GC_UnTrack(t);
    for (Py_ssize_t i = 0; i < Py_SIZE(t); i++) Py_XDECREF(t->items[i]);
    PyObject_GC_Del(t);
}

static PyTypeObject TailCallType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "flambeau._frame.TailCall", .tp_basicsize = offsetof(TailCall, items), .tp_itemsize = sizeof(PyObject *),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, .tp_doc = "A call that captured code leaves to its caller",
    .tp_traverse = (traverseproc)tail_call_traverse, .tp_dealloc = (destructor)tail_call_dealloc,
};

static PyObject *custom_eval(PyThreadState *ts, FlbFrame *frame, int throwflag)
{
    Context *ctx = current;
    PyCodeObject *code = flb_frame_code(frame);
    /* NOTE: a generator's frame that ends without being run is cleared by the generator before 3.12, by the evaluator since. */
    if (!throwflag && (PY_VERSION_HEX < 0x030C0000 || !(code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)))
        && flb_stack_check(" in code under the frame evaluator") < 0) {
        flb_frame_discard(ts, frame);
        return NULL;
    }
    if (!ctx || throwflag || !flb_frame_is_fresh(frame) || !(code->co_flags & CO_OPTIMIZED)
        || (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE)))
        return flb_default_eval(ts, frame, throwflag);
    if (code == plain_once) {
        plain_once = NULL;
        return flb_default_eval(ts, frame, 0);
    }
    Extra *e = extra_get((PyObject *)code);
    if (e && e->flags & SKIP_RECURSIVE) return eval_uncaptured(ts, frame);
    if (e && e->flags & SKIP) return flb_default_eval(ts, frame, 0);
    Cache *cache = cache_for((PyObject *)code, ctx, 1);
    if (!cache) return NULL;
    if (cache->skip && !cache->n) {
        Py_DECREF(cache);
        return flb_default_eval(ts, frame, 0);
    }
    int ran;
    Py_INCREF(ctx);
    PyObject *r = dispatch(ctx, cache, flb_frame_func(frame), flb_frame_locals(frame), flat_count(code), 0, &ran);
    Py_DECREF(cache);
    Py_DECREF(ctx);
    if (ran) {
        flb_frame_discard(ts, frame);
        return settle(r);
    }
    e = extra_get((PyObject *)code);     /* the miss may have marked it */
    return e && e->flags & SKIP_RECURSIVE ? eval_uncaptured(ts, frame) : flb_default_eval(ts, frame, 0);
}

/* ---- callables ---- */

/* The arguments as the frame would see them. 1: *out holds n values (new references when *owned), 0: not bindable here, -1: exception. */
static int bind(PyFunctionObject *f, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **out, Py_ssize_t n)
{
    PyCodeObject *code = (PyCodeObject *)f->func_code;
    Py_ssize_t ac = code->co_argcount, kc = code->co_kwonlyargcount, total = ac + kc;
    int var = !!(code->co_flags & CO_VARARGS), kw = !!(code->co_flags & CO_VARKEYWORDS), status = 0;
    PyObject *names = code->co_localsplusnames;
    for (Py_ssize_t i = 0; i < n; i++) out[i] = NULL;
    if (nargs > ac && !var) return 0;
    for (Py_ssize_t i = 0; i < nargs && i < ac; i++) { Py_INCREF(args[i]); out[i] = args[i]; }
    if (var) {
        Py_ssize_t m = nargs > ac ? nargs - ac : 0;
        PyObject *t = PyTuple_New(m);
        if (!t) { status = -1; goto fail; }
        for (Py_ssize_t i = 0; i < m; i++) { Py_INCREF(args[ac + i]); PyTuple_SET_ITEM(t, i, args[ac + i]); }
        out[total] = t;
    }
    if (kw && !(out[total + var] = PyDict_New())) { status = -1; goto fail; }
    Py_ssize_t nk = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    for (Py_ssize_t k = 0; k < nk; k++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, k), *value = args[nargs + k];
        Py_ssize_t i = code->co_posonlyargcount;
        for (; i < total; i++) if (PyTuple_GET_ITEM(names, i) == name) break;
        if (i == total)
            for (i = code->co_posonlyargcount; i < total; i++) if (PyUnicode_Compare(PyTuple_GET_ITEM(names, i), name) == 0) break;
        if (i < total) {
            if (out[i]) goto fail;
            Py_INCREF(value);
            out[i] = value;
        } else if (!kw) goto fail;
        else if (PyDict_SetItem(out[total + var], name, value) < 0) { status = -1; goto fail; }
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
            PyObject *d = f->func_kwdefaults ? PyDict_GetItemWithError(f->func_kwdefaults, PyTuple_GET_ITEM(names, i)) : NULL;
            if (!d) { if (PyErr_Occurred()) status = -1; goto fail; }
            Py_INCREF(d);
            out[i] = d;
        }
    return 1;
fail:
    for (Py_ssize_t i = 0; i < n; i++) Py_CLEAR(out[i]);
    return status;
}

static PyObject *call_plainly(Context *ctx, PyObject *fn, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Context *prev = enter(ctx);
    PyObject *r = PyObject_Vectorcall(fn, args, nargsf, kwnames);
    enter(prev);
    return r;
}

static PyObject *compiled_call_raw(Callable *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    PyFunctionObject *f = (PyFunctionObject *)self->fn;
    PyCodeObject *code = (PyCodeObject *)f->func_code;
    if (flb_stack_check(" in a compiled function") < 0) return NULL;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf), n = flat_count(code);
    FlbTls *tls = flb_guards_tls();
    if (self->mode == MODE_RUN && !self->context)
        return call_plainly(NULL, self->fn, args, nargsf, kwnames);
    Context *ctx = self->context;
    Cache *cache = self->cache;
    if (!cache || self->cache_code != (PyObject *)code) {
        cache = cache_for((PyObject *)code, ctx, 0);
        if (!cache) return NULL;
        Py_XSETREF(self->cache, cache);
        Py_INCREF(code);
        Py_XSETREF(self->cache_code, (PyObject *)code);
    }
    PyObject *small[16], **flat = small, *const *use = args;
    int owned = 0, ran;
    if (kwnames || nargs != code->co_argcount || n != nargs) {
        if (n > 16 && !(flat = PyMem_Malloc(n * sizeof(PyObject *)))) return PyErr_NoMemory();
        int b = bind(f, args, nargs, kwnames, flat, n);
        if (b <= 0) {
            if (flat != small) PyMem_Free(flat);
            return b < 0 ? NULL : PyObject_Vectorcall(self->fn, args, nargsf, kwnames);   /* raises the TypeError a call raises */
        }
        owned = 1;
        use = flat;
    }
    Py_INCREF(self);
    Py_INCREF(cache);
    /* Under a function transform the values are its own: what runs there is not captured, and leaves no trace in the cache. */
    int plain = tls && tls->transforms;
    PyObject *r = NULL;
    if (plain) r = call_plainly(NULL, self->fn, args, nargsf, kwnames);
    else {
        r = dispatch(ctx, cache, f, use, n, self->mode == MODE_RUN, &ran);
        if (!ran) {
            plain_once = code;
            r = call_plainly(self->mode == MODE_RUN ? NULL : ctx, self->fn, args, nargsf, kwnames);
            plain_once = NULL;
        }
    }
    Py_DECREF(cache);
    Py_DECREF(self);
    if (owned) for (Py_ssize_t i = 0; i < n; i++) Py_DECREF(flat[i]);
    if (flat != small) PyMem_Free(flat);
    return r;
}

static PyObject *compiled_call(Callable *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    return settle(compiled_call_raw(self, args, nargsf, kwnames));
}

static PyObject *disabled_call(Callable *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    return call_plainly(NULL, self->fn, args, nargsf, kwnames);
}

static PyObject *callable_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *fn, *ctx = Py_None;
    if (!PyArg_ParseTuple(args, "O|O", &fn, &ctx)) return NULL;
    int mode = PyType_IsSubtype(type, &CompiledType) ? MODE_COMPILED : PyType_IsSubtype(type, &RunType) ? MODE_RUN : MODE_DISABLED;
    if (mode != MODE_DISABLED && !PyFunction_Check(fn)) {
        PyErr_Format(PyExc_TypeError, "%s expects a Python function, got %.100s", type->tp_name, Py_TYPE(fn)->tp_name);
        return NULL;
    }
    if (ctx != Py_None && !PyObject_TypeCheck(ctx, &ContextType)) { PyErr_SetString(PyExc_TypeError, "a Context is expected"); return NULL; }
    if (mode == MODE_COMPILED && ctx == Py_None) { PyErr_SetString(PyExc_TypeError, "a Context is expected"); return NULL; }
    Callable *self = (Callable *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->mode = mode;
    self->vectorcall = (vectorcallfunc)(mode == MODE_DISABLED ? disabled_call : compiled_call);
    Py_INCREF(fn);
    self->fn = fn;
    if (ctx != Py_None) { Py_INCREF(ctx); self->context = (Context *)ctx; }
    return (PyObject *)self;
}

static int callable_traverse(Callable *self, visitproc visit, void *arg)
{
    Py_VISIT(self->fn);
    Py_VISIT(self->context);
    Py_VISIT(self->cache);
    Py_VISIT(self->dict);
    return 0;
}

static int callable_clear(Callable *self)
{
    Py_CLEAR(self->fn);
    Py_CLEAR(self->context);
    Py_CLEAR(self->cache);
    Py_CLEAR(self->cache_code);
    Py_CLEAR(self->dict);
    return 0;
}

static void callable_dealloc(Callable *self)
{
    PyObject_GC_UnTrack(self);
    if (self->weakrefs) PyObject_ClearWeakRefs((PyObject *)self);
    callable_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *callable_get(PyObject *self, PyObject *obj, PyObject *type)
{
    if (!obj || obj == Py_None) { Py_INCREF(self); return self; }
    return PyMethod_New(self, obj);
}

static PyObject *callable_repr(Callable *self)
{
    return PyUnicode_FromFormat("<%s of %R>", self->mode == MODE_COMPILED ? "compiled function" : self->mode == MODE_RUN ? "frozen function"
                                : "function with capture disabled", self->fn);
}

static PyObject *callable_get_context(Callable *self, void *closure)
{
    PyObject *c = self->context ? (PyObject *)self->context : Py_None;
    Py_INCREF(c);
    return c;
}

static PyMemberDef callable_members[] = {
    {"fn", T_OBJECT, offsetof(Callable, fn), READONLY, "the function that is called when nothing captured fits"},
    {"__dictoffset__", T_PYSSIZET, offsetof(Callable, dict), READONLY},
    {NULL},
};
static PyGetSetDef callable_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict},
    {"context", (getter)callable_get_context, NULL, "the compile() configuration"},
    {NULL},
};

#define CALLABLE_TYPE(var, name, docs) \
    static PyTypeObject var = { \
        PyVarObject_HEAD_INIT(NULL, 0) \
        .tp_name = name, .tp_basicsize = sizeof(Callable), .tp_doc = docs, \
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL, \
        .tp_new = callable_new, .tp_dealloc = (destructor)callable_dealloc, \
        .tp_traverse = (traverseproc)callable_traverse, .tp_clear = (inquiry)callable_clear, \
        .tp_call = PyVectorcall_Call, .tp_vectorcall_offset = offsetof(Callable, vectorcall), \
        .tp_descr_get = callable_get, .tp_repr = (reprfunc)callable_repr, .tp_members = callable_members, .tp_getset = callable_getset, \
        .tp_dictoffset = offsetof(Callable, dict), .tp_weaklistoffset = offsetof(Callable, weakrefs), \
    }
CALLABLE_TYPE(CompiledType, "flambeau._frame.CompiledFunction", "CompiledFunction(function, context): guards first, then captured code");
CALLABLE_TYPE(DisabledType, "flambeau._frame.DisabledFunction", "DisabledFunction(callable): calls it with capture off");
CALLABLE_TYPE(RunType, "flambeau._frame.FrozenFunction", "FrozenFunction(function, context): uses captured code, never compiles");

/* ---- Context and Cache types ---- */

static int context_init(Context *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"miss", NULL};
    PyObject *miss = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", names, &miss)) return -1;
    Py_XINCREF(miss);
    Py_XSETREF(self->miss, miss);
    return 0;
}
static int context_traverse(Context *self, visitproc visit, void *arg) { Py_VISIT(self->miss); Py_VISIT(self->dict); return 0; }
static int context_clear(Context *self) { Py_CLEAR(self->miss); Py_CLEAR(self->dict); return 0; }
static void context_dealloc(Context *self)
{
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
static PyMemberDef context_members[] = {
    {"run_only", T_INT, offsetof(Context, run_only), 0, "use prior entries, compile nothing new"},
    {NULL},
};
static PyGetSetDef context_getset[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict}, {NULL}};
static PyTypeObject ContextType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "flambeau._frame.Context", .tp_basicsize = sizeof(Context),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .tp_doc = "Context(miss=self.miss): one compile() configuration. miss(func, flat_args, cache) -> bool is called when no entry fits",
    .tp_new = PyType_GenericNew, .tp_init = (initproc)context_init, .tp_dealloc = (destructor)context_dealloc,
    .tp_traverse = (traverseproc)context_traverse, .tp_clear = (inquiry)context_clear,
    .tp_members = context_members, .tp_getset = context_getset, .tp_dictoffset = offsetof(Context, dict),
    .tp_weaklistoffset = offsetof(Context, weakrefs),
};

static void entry_free(Entry *e)
{
    Py_XDECREF(e->tree);
    Py_XDECREF(e->code);
    Py_XDECREF(e->fn);
    PyMem_Free(e);
}
static int cache_traverse(Cache *c, visitproc visit, void *arg)
{
    for (Py_ssize_t i = 0; i < c->n; i++) { Py_VISIT(c->entries[i]->tree); Py_VISIT(c->entries[i]->code); Py_VISIT(c->entries[i]->fn); }
    Py_VISIT(c->dict);
    return 0;
}
static int cache_empty(Cache *c)
{
    Py_ssize_t n = c->n;
    Entry **entries = c->entries;
    c->n = 0;
    c->entries = NULL;
    for (Py_ssize_t i = 0; i < n; i++) entry_free(entries[i]);
    PyMem_Free(entries);
    return 0;
}
static int cache_clear(Cache *c)
{
    Py_CLEAR(c->dict);
    return cache_empty(c);
}
static void cache_dealloc(Cache *c)
{
    PyObject_GC_UnTrack(c);
    cache_unlink(c);
    cache_leave_code(c);
    cache_clear(c);
    PyObject_GC_Del(c);
}
static PyObject *cache_add(Cache *c, PyObject *args)
{
    PyObject *tree, *code;
    int needs_eval = 0;
    if (!PyArg_ParseTuple(args, "OO!|p", &tree, &PyCode_Type, &code, &needs_eval)) return NULL;
    if (strcmp(Py_TYPE(tree)->tp_name, "flambeau._frame.GuardTree")) { PyErr_SetString(PyExc_TypeError, "a GuardTree is expected"); return NULL; }
    Extra *x = extra_make(code);
    if (!x) return NULL;
    x->flags |= SKIP;                /* captured code is never captured again */
    Entry *e = PyMem_Calloc(1, sizeof(Entry));
    Entry **entries = e ? PyMem_Realloc(c->entries, (c->n + 1) * sizeof(Entry *)) : NULL;
    if (!entries) { PyMem_Free(e); return PyErr_NoMemory(); }
    Py_INCREF(tree);
    Py_INCREF(code);
    e->tree = tree;
    e->code = code;
    e->needs_eval = needs_eval;
    memmove(entries + 1, entries, c->n * sizeof(Entry *));
    entries[0] = e;
    c->entries = entries;
    c->n++;
    Py_RETURN_NONE;
}
static PyObject *cache_list(Cache *c, void *closure)
{
    PyObject *out = PyList_New(c->n);
    for (Py_ssize_t i = 0; out && i < c->n; i++) {
        PyObject *t = Py_BuildValue("(OOK)", c->entries[i]->tree, c->entries[i]->code, (unsigned long long)c->entries[i]->hits);
        if (!t) { Py_DECREF(out); return NULL; }
        PyList_SET_ITEM(out, i, t);
    }
    return out;
}
static void forget(Cache *c)
{
    Py_INCREF(c);
    cache_clear(c);
    c->skip = c->attempts = c->warned = 0;
    Py_DECREF(c);
}
static PyObject *cache_reset(Cache *c, PyObject *unused) { forget(c); Py_RETURN_NONE; }
static PyMethodDef cache_methods[] = {
    {"add", (PyCFunction)cache_add, METH_VARARGS, "add(tree, code, needs_eval=False): put an entry in front"},
    {"clear", (PyCFunction)cache_reset, METH_NOARGS, "forget every entry"},
    {NULL},
};
static PyMemberDef cache_members[] = {
    {"skip", T_INT, offsetof(Cache, skip), 0, "run plainly when no entry fits"},
    {"attempts", T_INT, offsetof(Cache, attempts), 0, "captures that led to nothing"},
    {"warned", T_INT, offsetof(Cache, warned), 0, "the limit was reported"},
    {NULL},
};
static PyGetSetDef cache_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict},
    {"entries", (getter)cache_list, NULL, "list of (tree, code, hits), the latest first"}, {NULL}};
static PyTypeObject CacheType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "flambeau._frame.Cache", .tp_basicsize = sizeof(Cache), .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Captured variants of one code object under one Context",
    .tp_dealloc = (destructor)cache_dealloc, .tp_traverse = (traverseproc)cache_traverse, .tp_clear = (inquiry)cache_clear,
    .tp_methods = cache_methods, .tp_members = cache_members, .tp_getset = cache_getset,
    .tp_dictoffset = offsetof(Cache, dict),
};

/* ---- module ---- */

static PyObject *m_set_context(PyObject *module, PyObject *arg)
{
    if (arg != Py_None && !PyObject_TypeCheck(arg, &ContextType)) { PyErr_SetString(PyExc_TypeError, "a Context or None is expected"); return NULL; }
    Context *next = arg == Py_None ? NULL : (Context *)arg;
    Py_XINCREF(next);                /* a context set from Python is kept for good: contexts are few */
    Context *prev = enter(next);
    PyObject *r = prev ? (PyObject *)prev : Py_None;
    Py_INCREF(r);
    return r;
}
static PyObject *m_get_context(PyObject *module, PyObject *unused)
{
    PyObject *r = current ? (PyObject *)current : Py_None;
    Py_INCREF(r);
    return r;
}
static PyObject *m_mark(PyObject *module, PyObject *args)
{
    PyObject *code;
    int flags;
    if (!PyArg_ParseTuple(args, "O!i", &PyCode_Type, &code, &flags)) return NULL;
    Extra *e = extra_make(code);
    if (!e) return NULL;
    e->flags = flags;
    Py_RETURN_NONE;
}
static PyObject *m_flags(PyObject *module, PyObject *code)
{
    if (!PyCode_Check(code)) { PyErr_SetString(PyExc_TypeError, "a code object is expected"); return NULL; }
    Extra *e = extra_get(code);
    return PyLong_FromLong(e ? e->flags : 0);
}
static PyObject *m_cache_for(PyObject *module, PyObject *args)
{
    PyObject *code, *ctx;
    if (!PyArg_ParseTuple(args, "O!O!", &PyCode_Type, &code, &ContextType, &ctx)) return NULL;
    return (PyObject *)cache_for(code, (Context *)ctx, 1);
}
static PyObject *m_caches(PyObject *module, PyObject *code)
{
    if (!PyCode_Check(code)) { PyErr_SetString(PyExc_TypeError, "a code object is expected"); return NULL; }
    Extra *e = extra_get(code);
    PyObject *out = PyDict_New();
    for (Cache *c = e ? e->caches : NULL; out && c; c = c->sibling)
        if (c->context && PyDict_SetItem(out, (PyObject *)c->context, (PyObject *)c) < 0) Py_CLEAR(out);
    return out;
}
static PyObject *m_forget(PyObject *module, PyObject *code)
{
    if (!PyCode_Check(code)) { PyErr_SetString(PyExc_TypeError, "a code object is expected"); return NULL; }
    PyObject *all = m_caches(module, code);  /* emptying one may free others */
    if (!all) return NULL;
    PyObject *k, *v;
    Py_ssize_t pos = 0;
    while (PyDict_Next(all, &pos, &k, &v)) forget((Cache *)v);
    Py_DECREF(all);
    Py_RETURN_NONE;
}
static PyObject *m_strict(PyObject *module, PyObject *arg)
{
    int v = PyObject_IsTrue(arg);
    if (v < 0) return NULL;
    PyObject *old = PyBool_FromLong(flb_strict_guards);
    flb_strict_guards = v;
    return old;
}

static PyMethodDef methods[] = {
    {"set_context", m_set_context, METH_O, "set_context(context or None) -> previous: how new frames of this thread are captured"},
    {"get_context", m_get_context, METH_NOARGS, "the Context new frames of this thread are captured with, or None"},
    {"mark_code", m_mark, METH_VARARGS, "mark_code(code, flags): SKIP or SKIP_RECURSIVE or 0"},
    {"code_flags", m_flags, METH_O, "flags set by mark_code"},
    {"cache_for", m_cache_for, METH_VARARGS, "cache_for(code, context) -> Cache, made when missing"},
    {"caches", m_caches, METH_O, "caches(code) -> {context: cache}"},
    {"forget", m_forget, METH_O, "forget(code): empty all its caches"},
    {"tail_call", (PyCFunction)(void (*)(void))m_tail_call, METH_FASTCALL,
     "tail_call(callable, *args): returned by captured code, whose native caller then makes the call"},
    {"set_strict_guards", m_strict, METH_O, "run each guard's Python mirror too and compare; returns the old setting"},
    {NULL},
};
static struct PyModuleDef module_def = {PyModuleDef_HEAD_INIT, "_frame", "Frame evaluator and guards.", -1, methods};

PyMODINIT_FUNC PyInit__frame(void)
{
    extra_index = REQUEST_EXTRA(extra_free);
    if (extra_index < 0) { PyErr_SetString(PyExc_RuntimeError, "no free slot for data on code objects"); return NULL; }
    PyObject *m = PyModule_Create(&module_def);
    if (!m) return NULL;
    if (PyType_Ready(&TailCallType) < 0) return NULL;
    struct { const char *name; PyTypeObject *type; } types[] = {{"Context", &ContextType}, {"Cache", &CacheType},
        {"CompiledFunction", &CompiledType}, {"DisabledFunction", &DisabledType}, {"FrozenFunction", &RunType}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (PyType_Ready(types[i].type) < 0) return NULL;
        Py_INCREF(types[i].type);
        if (PyModule_AddObject(m, types[i].name, (PyObject *)types[i].type) < 0) return NULL;
    }
    if (PyModule_AddIntConstant(m, "SKIP", SKIP) < 0 || PyModule_AddIntConstant(m, "SKIP_RECURSIVE", SKIP_RECURSIVE) < 0) return NULL;
    if (PyModule_AddIntConstant(m, "captures", flb_captures) < 0 || flb_guards_init(m) < 0) return NULL;
    return m;
}
