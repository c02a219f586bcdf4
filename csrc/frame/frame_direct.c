/* Captured code that is one call, or none: the call is made without a frame.
 *
 * Where such code asks for little but the types and descriptions of its arguments, the whole way from the
 * call of the compiled function to it is here.
 */
#include "frame/frame_eval.h"

/* Whether something wants to hear of each frame (a debugger, a profiler). */
int flb_frames_are_traced(void) {
    PyThreadState *ts = PyThreadState_Get();
    return ts->c_tracefunc || ts->c_profilefunc;
}

/* Captured code at the head of the traceback of the exception that is set, as if its frame had raised it. */
static void add_to_traceback(PyCodeObject *code, PyObject *globals, int lasti) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *longer = flb_traceback_entry(traceback ? traceback : Py_None, code, globals, lasti,
                                           PyCode_Addr2Line(code, lasti));
    if (longer) Py_XSETREF(traceback, longer);
    else PyErr_Clear(); /* the error counts, not its places */
    PyErr_Restore(type, value, traceback);
}

static PyObject *returned(const Direct *d, PyObject *result, PyObject *const *args) /* steals result */
{
    PyObject *r = result;
    switch (d->returns) {
    case RETURNS_RESULT: return result;
    case RETURNS_ITEM:
        r = PyList_CheckExact(result) && d->item < PyList_GET_SIZE(result)
            ? Py_NewRef(PyList_GET_ITEM(result, d->item))
            : PySequence_GetItem(result, d->item);
        break;
    case RETURNS_ARGUMENT: r = Py_NewRef(args[d->item]); break;
    case RETURNS_CONSTANT: r = Py_NewRef(d->constant); break;
    case RETURNS_LIST: r = PySequence_List(result); break;
    }
    Py_DECREF(result);
    return r;
}

/* The caller holds the entry's code; the entry itself may go during the call. */
PyObject *flb_run_direct(Entry *e, PyFunctionObject *func, PyObject *const *args) {
    const Direct d = e->direct;
    PyCodeObject *code = (PyCodeObject *)e->code;
    PyObject *given[DIRECT_ARGUMENTS];
    if (d.call == Py_None) {
        e->hits++;
        return Py_NewRef(d.returns == RETURNS_ARGUMENT ? args[d.item] : d.constant);
    }
    for (int i = 0; !d.in_order && i < d.n; i++)
        given[i] =
            d.arguments[i] >= 0 ? args[d.arguments[i]] : PyTuple_GET_ITEM(d.given, -1 - d.arguments[i]);
    e->hits++;
    Py_INCREF(d.call);
    Py_INCREF(d.given);
    Py_XINCREF(d.constant);
    Context *prev = flb_enter(NULL);
    PyObject *r = PyObject_Vectorcall(d.call, d.in_order ? args : given, d.n, NULL);
    flb_enter(prev);
    if (r) r = returned(&d, r, args);
    if (!r && d.lasti >= 0) add_to_traceback(code, func->func_globals, d.lasti);
    Py_DECREF(d.call);
    Py_DECREF(d.given);
    Py_XDECREF(d.constant);
    return r;
}

/* Whether the exception that captured code ended with says that nothing has happened yet and the function has
 * to be run plainly, which raises the error as Python has it, or does what captured code can't; it is cleared
 * then. */
int flb_to_run_plainly(void) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (value && PyExceptionInstance_Check(value) && PyObject_HasAttrString(value, "run_plainly")) {
        Py_XDECREF(type);
        Py_DECREF(value);
        Py_XDECREF(traceback);
        return 1;
    }
    PyErr_Restore(type, value, traceback);
    return 0;
}

/* Serves a call from the cache's entries that are such and are given no tensors: what else the dispatch looks
 * at (tangents) is of those. 0: none of them fits, or another entry has to be asked first. */
int flb_serve_at_a_glance(Cache *cache, PyFunctionObject *func, PyObject *const *args, PyObject **result) {
    Entry *e = NULL;
    if (cache->once) return 0;
    for (Py_ssize_t i = 0; i < cache->n; i++) {
        Entry *asked = cache->entries[i];
        if (asked->globals && asked->globals != func->func_globals) continue;
        int r = asked->direct.call ? flb_guards_glance(asked->tree, func, args) : 2;
        if (r == 2) return 0;
        if (r < 0) return *result = NULL, 1;
        if (r) {
            e = asked;
            break;
        }
    }
    if (!e || flb_frames_are_traced()) return 0;
    PyObject *code = Py_NewRef(e->code);
    flb_handed = NULL;
    *result = flb_run_direct(e, func, args);
    Py_DECREF(code);
    return 1;
}
