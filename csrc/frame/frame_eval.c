/* Where calls are caught: the callable that compile() returns, and the PEP 523 frame evaluator.
 *
 * Both look up a Cache (one per code object and Context, where a Context is a compile() configuration), check
 * the guards of its entries against the flat argument vector, and call the entry's code as a plain function
 * of that vector: captured code has no *args, no keyword-only arguments, no defaults. The evaluator is
 * installed only while some thread runs code that may contain graph breaks, so a wholly captured function
 * never pays for it.
 *
 * Thread state is one pointer: the Context that new frames are captured with, or NULL.
 */
#include "frame/frame_eval.h"
#include "core/stack.h"

static FLB_PER_THREAD Context *current; /* strong */
static FLB_PER_THREAD PyCodeObject
    *plain_once;                          /* the next frame of this code has just been found to run plainly */
static FLB_PER_THREAD TailCall *plain_by; /* by this call */
static int active_threads;                /* threads whose current is set; guarded by the GIL */

static PyObject *custom_eval(PyThreadState *ts, FlbFrame *frame, int throwflag);

Context *flb_enter(Context *next) {
    Context *prev = current;
    if (prev == next) return prev;
    if (!prev && next && active_threads++ == 0) flb_set_eval(custom_eval);
    if (prev && !next && --active_threads == 0) flb_set_eval(NULL);
    current = next;
    return prev;
}

void flb_plain_once(PyCodeObject *code, TailCall *by) {
    plain_once = code;
    plain_by = by;
}

/* ---- running an entry ---------------------------------------------------------------------------------- */

static Entry *find_entry(Cache *cache, PyFunctionObject *func, PyObject *const *args, int *error) {
    *error = 0;
    for (Py_ssize_t i = 0; i < cache->n; i++) {
        Entry *e = cache->entries[i];
        if (e->globals && e->globals != func->func_globals) continue;
        int r = flb_guards_check(e->tree, func, args);
        if (r < 0) {
            *error = 1;
            return NULL;
        }
        if (i >= cache->n || cache->entries[i] != e)
            return NULL; /* the check ran Python that emptied the cache */
        if (r) return e;
    }
    return NULL;
}

static PyObject *run_entry(Entry *e, Context *ctx, PyFunctionObject *func, PyObject *const *args,
                           Py_ssize_t n) {
    if (e->direct.call && !flb_frames_are_traced()) return flb_run_direct(e, func, args);
    PyObject *fn = e->fn;
    if (fn && !func->func_closure && ((PyFunctionObject *)fn)->func_globals == func->func_globals)
        Py_INCREF(fn);
    else {
        fn = PyFunction_New(e->code, func->func_globals);
        if (!fn) return NULL;
        if (func->func_closure && ((PyCodeObject *)e->code)->co_nfreevars) {
            if (PyFunction_SetClosure(fn, func->func_closure) < 0) {
                Py_DECREF(fn);
                return NULL;
            }
        } else if (!e->fn) {
            Py_INCREF(fn);
            e->fn = fn;
        }
    }
    e->hits++;
    Context *prev = flb_enter(e->needs_eval ? ctx : NULL);
    _PyErr_StackItem *handling = PyThreadState_Get()->exc_info;
    PyObject *handled = Py_XNewRef(handling->exc_value);
    PyObject *r = PyObject_Vectorcall(fn, args, n, NULL);
    /* Captured code makes an exception of the program's the handled one, and what it does meanwhile may fail
     * where the program has no handler that would take that back. */
    if (!r && handling->exc_value != handled) Py_XSETREF(handling->exc_value, handled);
    else Py_XDECREF(handled);
    flb_enter(prev);
    Py_DECREF(fn);
    return r;
}

/* Calls ctx->miss with capture off. 1: an entry was added, 0: run plainly, -1: exception. */
static int call_miss(Context *ctx, PyFunctionObject *func, PyObject *const *args, Py_ssize_t n,
                     Cache *cache) {
    PyObject *tuple = PyTuple_New(n);
    if (!tuple) return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_INCREF(args[i]);
        PyTuple_SET_ITEM(tuple, i, args[i]);
    }
    Context *prev = flb_enter(NULL);
    Py_INCREF(ctx);
    Py_INCREF(cache);
    PyObject *r = ctx->miss
        ? PyObject_CallFunctionObjArgs(ctx->miss, (PyObject *)func, tuple, (PyObject *)cache, NULL)
        : PyObject_CallMethod((PyObject *)ctx, "miss", "OOO", (PyObject *)func, tuple, (PyObject *)cache);
    Py_DECREF(cache);
    Py_DECREF(ctx);
    flb_enter(prev);
    Py_DECREF(tuple);
    if (!r &&
        PyErr_ExceptionMatches(
            PyExc_RecursionError)) { /* no room to capture it: the frame itself may have enough */
        PyErr_Clear();
        return 0;
    }
    if (!r) return -1;
    int added = PyObject_IsTrue(r);
    Py_DECREF(r);
    return added;
}

/* A generator's function is not captured as a whole: the Compiler makes a generator that captures its pieces.
 * NULL without *error: run plainly. */
static PyObject *make_suspended(Context *ctx, PyFunctionObject *func, PyObject *const *args, Py_ssize_t n,
                                Cache *cache, int *error) {
    PyObject *tuple = PyTuple_New(n);
    *error = 1;
    if (!tuple) return NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_INCREF(args[i]);
        PyTuple_SET_ITEM(tuple, i, args[i]);
    }
    Context *prev = flb_enter(NULL);
    PyObject *r = PyObject_CallMethod((PyObject *)ctx, "suspendable", "OOO", (PyObject *)func, tuple,
                                      (PyObject *)cache);
    flb_enter(prev);
    Py_DECREF(tuple);
    if (r == Py_None) {
        *error = 0;
        Py_CLEAR(r);
    }
    return r;
}

PyObject *flb_dispatch(Context *ctx, Cache *cache, PyFunctionObject *func, PyObject *const *args,
                       Py_ssize_t n, int run_only, int *ran) {
    int error;
    TailCall *mine = flb_handed;
    flb_handed = NULL;
    FlbTls *tls = flb_guards_tls();
    if (tls && tls->forward_open) { /* tensors may carry tangents, which captured code knows nothing of */
        *ran = 0;
        return NULL;
    }
    *ran = 1;
    if (((PyCodeObject *)func->func_code)->co_flags & FLB_SUSPENDS) {
        error = 0;
        PyObject *r = cache->skip || run_only ? NULL : make_suspended(ctx, func, args, n, cache, &error);
        if (!r) *ran = error;
        return r;
    }
    Entry *e = find_entry(cache, func, args, &error);
    if (error) return NULL;
    if (!e) {
        if (cache->skip || run_only) {
            *ran = 0;
            return NULL;
        }
        int r = call_miss(ctx, func, args, n, cache);
        if (r < 0) return NULL;
        if (!r || !cache->n) {
            *ran = 0;
            return NULL;
        }
        /* Another thread may have put its entry before the new one. */
        e = find_entry(cache, func, args, &error);
        if (error) return NULL;
        if (!e && !cache->n) {
            *ran = 0;
            return NULL;
        }
        if (!e) {
            PyObject *tree = cache->entries[0]->tree; /* a check may run Python, which may empty the cache */
            Py_INCREF(tree);
            int r = flb_guards_check(tree, func, args);
            PyObject *what = r ? NULL : PyObject_CallMethod(tree, "describe_failure", NULL);
            Py_DECREF(tree);
            if (r < 0) return NULL;
            if (r) { /* the entries moved meanwhile */
                *ran = 0;
                return NULL;
            }
            if (!what) return NULL;
            /* A value that is another one each time it is looked at. The plain function is right in any case.
             */
            int raised = PyErr_WarnFormat(
                PyExc_RuntimeWarning, 1,
                "a guard failed on the very call it was made for (%S); %R runs plainly", what, func);
            Py_DECREF(what);
            *ran = 0;
            if (raised < 0) *ran = 1;
            return NULL;
        }
    }
    PyObject *tree =
        e->tree; /* the entry's tree and code outlive a reset() during the call through these references */
    Py_INCREF(tree);
    PyObject *code = e->code;
    Py_INCREF(code);
    PyObject *held = cache->dict; /* the resume functions, which captured code knows weakly */
    Py_XINCREF(held);
    TailCall *outside = flb_running;
    flb_running = mine;
    PyObject *r = run_entry(e, ctx, func, args, n);
    flb_running = outside;
    if (!r && !(mine && mine->released) && flb_to_run_plainly()) *ran = FLB_PLAINLY;
    Py_XDECREF(held);
    Py_DECREF(code);
    Py_DECREF(tree);
    if (cache->once) {
        PyObject *kind, *value, *trace; /* finalizers may run */
        PyErr_Fetch(&kind, &value, &trace);
        flb_cache_empty(cache);
        PyErr_Restore(kind, value, trace);
    }
    return r;
}

/* ---- the frame evaluator ------------------------------------------------------------------------------- */

static PyObject *eval_uncaptured(PyThreadState *ts, FlbFrame *frame) {
    Context *prev = flb_enter(NULL);
    PyObject *r = flb_default_eval(ts, frame, 0);
    flb_enter(prev);
    return r;
}

static PyObject *custom_eval(PyThreadState *ts, FlbFrame *frame, int throwflag) {
    Context *ctx = current;
    PyCodeObject *code = flb_frame_code(frame);
    if (!throwflag && flb_frame_is_fresh(frame) && flb_stack_check(" in code under the frame evaluator") < 0)
        return flb_frame_end(ts, frame, NULL);
    if (!ctx || throwflag || !flb_frame_is_fresh(frame) || !(code->co_flags & CO_OPTIMIZED) ||
        (code->co_flags & CO_ITERABLE_COROUTINE))
        return flb_default_eval(ts, frame, throwflag);
    if (code == plain_once) {
        TailCall *by = plain_by;
        flb_plain_once(NULL, NULL);
        flb_release(by);
        return flb_default_eval(ts, frame, 0);
    }
    Extra *e = flb_extra_get((PyObject *)code);
    if (e && e->flags & SKIP_RECURSIVE) return eval_uncaptured(ts, frame);
    if (e && e->flags & SKIP) return flb_default_eval(ts, frame, 0);
    Cache *cache = flb_cache_for((PyObject *)code, ctx, 1);
    if (!cache) return flb_frame_end(ts, frame, NULL);
    if (cache->skip && !cache->n) {
        Py_DECREF(cache);
        return flb_default_eval(ts, frame, 0);
    }
    int ran;
    Py_INCREF(ctx);
    Py_ssize_t n = flb_flat_count(code);
    PyObject *room[FLB_FRAME_ROOM(n)];
    PyObject *r =
        flb_dispatch(ctx, cache, flb_frame_func(frame), flb_frame_locals(frame, room, n), n, 0, &ran);
    Py_DECREF(cache);
    Py_DECREF(ctx);
    if (ran == FLB_PLAINLY) return eval_uncaptured(ts, frame);
    if (ran) return flb_frame_end(ts, frame, flb_settle(r));
    e = flb_extra_get((PyObject *)code); /* the miss may have marked it */
    return e && e->flags & SKIP_RECURSIVE ? eval_uncaptured(ts, frame) : flb_default_eval(ts, frame, 0);
}

/* ---- module -------------------------------------------------------------------------------------------- */

static PyObject *m_set_context(PyObject *module, PyObject *arg) {
    if (arg != Py_None && !PyObject_TypeCheck(arg, &FlbContextType)) {
        PyErr_SetString(PyExc_TypeError, "a Context or None is expected");
        return NULL;
    }
    Context *next = arg == Py_None ? NULL : (Context *)arg;
    Py_XINCREF(next); /* a context set from Python is kept for good: contexts are few */
    Context *prev = flb_enter(next);
    PyObject *r = prev ? (PyObject *)prev : Py_None;
    Py_INCREF(r);
    return r;
}
static PyObject *m_get_context(PyObject *module, PyObject *unused) {
    PyObject *r = current ? (PyObject *)current : Py_None;
    Py_INCREF(r);
    return r;
}
static PyObject *m_mark(PyObject *module, PyObject *args) {
    PyObject *code;
    int flags;
    if (!PyArg_ParseTuple(args, "O!i", &PyCode_Type, &code, &flags)) return NULL;
    Extra *e = flb_extra_make(code);
    if (!e) return NULL;
    e->flags = flags;
    Py_RETURN_NONE;
}
static PyObject *m_flags(PyObject *module, PyObject *code) {
    if (!PyCode_Check(code)) {
        PyErr_SetString(PyExc_TypeError, "a code object is expected");
        return NULL;
    }
    Extra *e = flb_extra_get(code);
    return PyLong_FromLong(e ? e->flags : 0);
}
static PyObject *m_cache_for(PyObject *module, PyObject *args) {
    PyObject *code, *ctx;
    if (!PyArg_ParseTuple(args, "O!O!", &PyCode_Type, &code, &FlbContextType, &ctx)) return NULL;
    return (PyObject *)flb_cache_for(code, (Context *)ctx, 1);
}
static PyObject *m_caches(PyObject *module, PyObject *code) {
    if (!PyCode_Check(code)) {
        PyErr_SetString(PyExc_TypeError, "a code object is expected");
        return NULL;
    }
    Extra *e = flb_extra_get(code);
    PyObject *out = PyDict_New();
    for (Cache *c = e ? e->caches : NULL; out && c; c = c->sibling)
        if (c->context && PyDict_SetItem(out, (PyObject *)c->context, (PyObject *)c) < 0) Py_CLEAR(out);
    return out;
}
static PyObject *m_forget(PyObject *module, PyObject *code) {
    if (!PyCode_Check(code)) {
        PyErr_SetString(PyExc_TypeError, "a code object is expected");
        return NULL;
    }
    PyObject *all = m_caches(module, code); /* emptying one may free others */
    if (!all) return NULL;
    PyObject *k, *v;
    Py_ssize_t pos = 0;
    while (PyDict_Next(all, &pos, &k, &v)) flb_cache_forget((Cache *)v);
    Py_DECREF(all);
    Py_RETURN_NONE;
}
static PyObject *m_traceback_entry(PyObject *module, PyObject *args) {
    PyObject *next, *code, *globals;
    int lasti, line;
    if (!PyArg_ParseTuple(args, "OO!O!ii", &next, &PyCode_Type, &code, &PyDict_Type, &globals, &lasti, &line))
        return NULL;
    return flb_traceback_entry(next, (PyCodeObject *)code, globals, lasti, line);
}
static PyObject *m_instance_dict(PyObject *module, PyObject *o) {
    PyObject *d = PyType_Check(o) ? NULL : flb_instance_dict(o);
    if (d && PyDict_Check(d)) return d;
    Py_XDECREF(d);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}
static PyObject *m_strict(PyObject *module, PyObject *arg) {
    int v = PyObject_IsTrue(arg);
    if (v < 0) return NULL;
    PyObject *old = PyBool_FromLong(flb_strict_guards);
    flb_strict_guards = v;
    return old;
}

static PyMethodDef methods[] = {
    {"set_context", m_set_context, METH_O,
     "set_context(context or None) -> previous: how new frames of this thread are captured"},
    {"get_context", m_get_context, METH_NOARGS,
     "the Context new frames of this thread are captured with, or None"},
    {"mark_code", m_mark, METH_VARARGS, "mark_code(code, flags): SKIP or SKIP_RECURSIVE or 0"},
    {"instance_dict", m_instance_dict, METH_O,
     "instance_dict(object) -> the dict of its own attributes, whatever its class says __dict__ is; None "
     "when it has none"},
    {"code_flags", m_flags, METH_O, "flags set by mark_code"},
    {"cache_for", m_cache_for, METH_VARARGS, "cache_for(code, context) -> Cache, made when missing"},
    {"caches", m_caches, METH_O, "caches(code) -> {context: cache}"},
    {"forget", m_forget, METH_O, "forget(code): empty all its caches"},
    {"tail_call", (PyCFunction)(void (*)(void))flb_tail_call, METH_FASTCALL,
     "tail_call(callable, *args): returned by captured code, whose native caller then makes the call"},
    {"release_arguments", flb_release_arguments, METH_NOARGS,
     "called by captured code that a tail call started: the code alone holds its arguments from here on"},
    {"traceback_entry", m_traceback_entry, METH_VARARGS,
     "traceback_entry(next or None, code, globals, lasti, line) -> traceback with one more entry in front, "
     "of a frame that never ran"},
    {"tell_floating_errors", flb_tell_floating_errors, METH_NOARGS,
     "tell_floating_errors(): a graph is about to write to its arguments, or to end: its floating-point "
     "errors are told now, or not at all"},
    {"runs_again", flb_runs_again, METH_NOARGS,
     "runs_again(): whether the frame is run plainly when the graph that is being called raises an error "
     "whose run_plainly is true"},
    {"set_watcher", flb_set_watcher, METH_O,
     "set_watcher(callable or None) -> previous: watcher(compiled, *args, **kwargs) is called in the place "
     "of outermost compiled calls"},
    {"set_plainly", flb_set_plainly, METH_O,
     "set_plainly(bool) -> previous: compiled calls run plainly, what is captured isn't used"},
    {"set_watching", flb_set_watching, METH_O,
     "set_watching(how) -> previous: under a watcher compiled calls of this thread ask it (0), run (1), or "
     "run plainly (2)"},
    {"set_strict_guards", m_strict, METH_O,
     "run each guard's Python mirror too and compare; returns the old setting"},
    {NULL},
};
static struct PyModuleDef module_def = {PyModuleDef_HEAD_INIT, "_frame", "Frame evaluator and guards.", -1,
                                        methods};

PyMODINIT_FUNC PyInit__frame(void) {
    if (flb_extra_init() < 0) return NULL;
    PyObject *m = PyModule_Create(&module_def);
    if (!m) return NULL;
    if (PyType_Ready(&FlbTailCallType) < 0) return NULL;
    struct {
        const char *name;
        PyTypeObject *type;
    } types[] = {{"Context", &FlbContextType},
                 {"Cache", &FlbCacheType},
                 {"CompiledFunction", &FlbCompiledType},
                 {"DisabledFunction", &FlbDisabledType},
                 {"FrozenFunction", &FlbRunType}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (PyType_Ready(types[i].type) < 0) return NULL;
        Py_INCREF(types[i].type);
        if (PyModule_AddObject(m, types[i].name, (PyObject *)types[i].type) < 0) return NULL;
    }
    if (PyModule_AddIntConstant(m, "SKIP", SKIP) < 0 ||
        PyModule_AddIntConstant(m, "SKIP_RECURSIVE", SKIP_RECURSIVE) < 0)
        return NULL;
    if (flb_interpreter_init() < 0 || flb_guards_init(m) < 0) return NULL;
    return m;
}
