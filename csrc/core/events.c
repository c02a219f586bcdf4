/* The recorder (events.h). Events are rows of one array, in the order in which they began; a row knows the
 * row that was open around it on its thread. All of it is used with the GIL held, but for the count of bytes,
 * which is the thread's own.
 *
 * A run ends while events are open on other threads, or on this one: an open event knows the run it belongs
 * to, and what comes after that run is dropped. */
#define _GNU_SOURCE
#include "core/events.h"
#include "core/tensor_internal.h"
#include <time.h>

typedef struct {
    PyObject *what, *inputs, *result, *stack;
    int64_t begin, end, parent, sequence, bytes, index, count;
    unsigned long thread;
    int kind;
} Event;

enum { DEEPEST = 64 }; /* frames that a stack keeps */

int flb_events = 0;
static Event *events = NULL;
static int64_t n_events = 0, room = 0, lost = 0;
static uint64_t run = 0;
static __thread int64_t innermost = -1, thread_bytes = 0;
static __thread uint64_t innermost_run = 0;
static __thread unsigned long thread_number = 0;

int64_t flb_event_now(void) {
    struct timespec t = {0};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
void flb_event_bytes(int64_t bytes) { thread_bytes += bytes; }

static int64_t open_now(void) { return innermost_run == run ? innermost : -1; }

int flb_event_inside(PyObject *what) {
    int64_t i = open_now();
    return i >= 0 && events[i].what == what;
}

/* (code, line, code, line, ...) from the innermost frame on. */
static PyObject *stack_now(void) {
    PyObject *list = PyList_New(0);
    PyFrameObject *frame = (PyFrameObject *)Py_XNewRef((PyObject *)PyEval_GetFrame());
    for (int n = 0; list && frame && n < DEEPEST; n++) {
        PyObject *code = (PyObject *)PyFrame_GetCode(frame);
        PyObject *line = PyLong_FromLong(PyFrame_GetLineNumber(frame));
        if (!line || PyList_Append(list, code) < 0 || PyList_Append(list, line) < 0) Py_CLEAR(list);
        Py_DECREF(code);
        Py_XDECREF(line);
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF((PyObject *)frame);
    PyErr_Clear();
    return list;
}

static Event *new_event(int kind, PyObject *what) {
    if (n_events == room) {
        int64_t more = room ? 2 * room : 1024;
        Event *grown = PyMem_Realloc(events, (size_t)more * sizeof(Event));
        if (!grown) return lost++, NULL;
        events = grown, room = more;
    }
    if (!thread_number) thread_number = PyThread_get_thread_native_id();
    Event *e = &events[n_events++];
    *e = (Event){
        .what = Py_NewRef(what), .kind = kind, .parent = open_now(), .sequence = -1, .thread = thread_number};
    return e;
}

void flb_event_begin(FlbOpen *open, int kind, PyObject *what) {
    open->outer = open_now();
    open->run = run;
    Event *e = new_event(kind, what);
    open->index = e ? e - events : -1;
    if (!e) return;
    if (flb_events & EVENTS_STACKS) {
        PyObject *stack =
            stack_now(); /* NOTE: may run the collector, and that anything: `e` may have moved */
        if (open->run == run && open->index < n_events) events[open->index].stack = stack;
        else Py_XDECREF(stack);
        if (open->run != run) return;
        e = &events[open->index];
    }
    innermost = open->index;
    innermost_run = run;
    e->bytes = thread_bytes;
    e->begin = flb_event_now();
}

static Event *opened(FlbOpen *open) {
    return open->index >= 0 && open->run == run ? &events[open->index] : NULL;
}

/* A value that can be kept: numbers, texts, shapes of tensors (with their dtype), and lists of these. */
static PyObject *kept(PyObject *o, int depth) {
    if (PyObject_TypeCheck(o, &FlbTensor_Type)) {
        PyObject *shape = flb_shape((FlbTensor *)o), *pair;
        if (!shape) return NULL;
        pair = PyTuple_Pack(2, shape, ((FlbTensor *)o)->dtype);
        return pair;
    }
    if ((PyList_Check(o) || PyTuple_Check(o)) && depth < 3) {
        PyObject *list = PyList_New(0);
        for (Py_ssize_t i = 0; list && i < PySequence_Fast_GET_SIZE(o); i++) {
            PyObject *x = Py_NewRef(PySequence_Fast_GET_ITEM(o, i)), *k = kept(x, depth + 1);
            Py_DECREF(x);
            if (!k || PyList_Append(list, k) < 0) Py_CLEAR(list);
            Py_XDECREF(k);
        }
        return list;
    }
    if (PyLong_Check(o) || PyFloat_Check(o) || PyUnicode_Check(o) || PyComplex_Check(o)) return Py_NewRef(o);
    return Py_NewRef(Py_None);
}
void flb_event_inputs(FlbOpen *open, PyObject *const *values, Py_ssize_t n) {
    if (!opened(open)) return;
    PyObject *all = PyTuple_New(n);
    for (Py_ssize_t i = 0; all && i < n; i++) {
        PyObject *k = kept(values[i], 0);
        if (k) PyTuple_SET_ITEM(all, i, k);
        else Py_CLEAR(all);
    }
    PyErr_Clear();
    Event *e = opened(open);
    if (e) {
        e->inputs = all;
        e->begin = flb_event_now();
    } else Py_XDECREF(all);
}
void flb_event_result(FlbOpen *open, PyObject *result) {
    if (!opened(open) || !(flb_events & EVENTS_SHAPES)) return;
    PyObject *k = kept(result, 0);
    PyErr_Clear();
    Event *e = opened(open);
    if (e) e->result = k;
    else Py_XDECREF(k);
}
void flb_event_number(FlbOpen *open, int64_t sequence) {
    Event *e = opened(open);
    if (e) e->sequence = sequence;
}
void flb_event_end(FlbOpen *open) {
    Event *e = opened(open);
    if (e) {
        e->end = flb_event_now();
        e->bytes = thread_bytes - e->bytes;
    }
    if (innermost_run == open->run) innermost = open->outer;
}
void flb_event_step(int64_t index, int64_t count, int64_t begin, int64_t end) {
    int64_t parent = open_now();
    if (parent < 0) return;
    Event *e = new_event(EVENT_STEP, events[parent].what);
    if (!e) return;
    e->index = index, e->count = count, e->begin = begin, e->end = end;
}

/* ---- Python -------------------------------------------------------------------------------------------- */

static void forget(Event *old, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        Py_XDECREF(old[i].what);
        Py_XDECREF(old[i].inputs);
        Py_XDECREF(old[i].result);
        Py_XDECREF(old[i].stack);
    }
    PyMem_Free(old);
}
static PyObject *events_start(PyObject *m, PyObject *arg) {
    long flags = PyLong_AsLong(arg);
    if (flags == -1 && PyErr_Occurred()) return NULL;
    if (flb_events) return PyErr_SetString(PyExc_RuntimeError, "events are being recorded already"), NULL;
    if (flags < 0 || flags > 15)
        return PyErr_SetString(PyExc_ValueError, "flags are a number from 0 to 15"), NULL;
    run++;
    flb_events = (int)flags | EVENTS_ON;
    Py_RETURN_NONE;
}
static PyObject *or_none(PyObject *o) { return o ? o : Py_None; }

/* What Python sees of an event; profiling/recorded.py makes a tree of them. */
static PyStructSequence_Field row_fields[] = {{"kind", "a Kind of profiling/recorded.py"},
                                              {"what", "the operator, node, graph or name"},
                                              {"begin", "nanoseconds"},
                                              {"end", "nanoseconds"},
                                              {"parent", "the place of the event that it began in, or -1"},
                                              {"thread", "the thread's number"},
                                              {"sequence", "the number that a call and its node share"},
                                              {"bytes", "bytes taken less bytes given back"},
                                              {"index", "of a step: its place in the graph"},
                                              {"count", "of a step: how many places it stands for"},
                                              {"inputs", "shapes and values of arguments, or None"},
                                              {"result", "shape of the result, or None"},
                                              {"stack", "frames of Python, or None"},
                                              {NULL}};
static PyStructSequence_Desc row_description = {"flambeau._C.EventRow", "One event of the native recorder.",
                                                row_fields, 13};
static PyTypeObject *row_type;

/* The row with these values; takes the tuple. */
static PyObject *row_of(PyObject *values) {
    PyObject *row = values ? PyStructSequence_New(row_type) : NULL;
    for (Py_ssize_t i = 0; row && i < PyTuple_GET_SIZE(values); i++)
        PyStructSequence_SetItem(row, i, Py_NewRef(PyTuple_GET_ITEM(values, i)));
    Py_XDECREF(values);
    return row;
}
static PyObject *events_stop(PyObject *m, PyObject *unused) {
    int64_t n = n_events, end = flb_event_now(), missing = lost;
    Event *old = events;
    events = NULL, n_events = room = lost = 0;
    flb_events = 0;
    run++;
    PyObject *rows = PyList_New(n);
    for (int64_t i = 0; rows && i < n; i++) {
        Event *e = &old[i];
        int open = !e->end;
        PyObject *row = row_of(Py_BuildValue("iOLLLkLLLLOOO", e->kind, e->what, e->begin ? e->begin : end,
                                             open ? end : e->end, e->parent, e->thread, e->sequence,
                                             open ? 0 : e->bytes, e->index, e->count, or_none(e->inputs),
                                             or_none(e->result), or_none(e->stack)));
        if (row) PyList_SET_ITEM(rows, i, row);
        else Py_CLEAR(rows);
    }
    forget(old, n);
    return rows ? Py_BuildValue("NL", rows, missing) : NULL;
}
static PyObject *event_begin(PyObject *m, PyObject *args) {
    PyObject *name, *inputs = NULL;
    int kind;
    if (!PyArg_ParseTuple(args, "iU|O!", &kind, &name, &PyTuple_Type, &inputs)) return NULL;
    if (!flb_events) Py_RETURN_NONE;
    FlbOpen open;
    flb_event_begin(&open, kind, name);
    if (inputs) flb_event_inputs(&open, &PyTuple_GET_ITEM(inputs, 0), PyTuple_GET_SIZE(inputs));
    return Py_BuildValue("LLK", open.index, open.outer, open.run);
}
static PyObject *event_end(PyObject *m, PyObject *handle) {
    FlbOpen open;
    if (handle == Py_None) Py_RETURN_NONE;
    if (!PyTuple_Check(handle) || !PyArg_ParseTuple(handle, "LLK", &open.index, &open.outer, &open.run)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "event_end(what event_begin gave)");
        return NULL;
    }
    if (open.run == run && (open.index >= n_events || open.outer >= n_events))
        return PyErr_SetString(PyExc_ValueError, "no such event"), NULL;
    flb_event_end(&open);
    Py_RETURN_NONE;
}
static PyMethodDef functions[] = {
    {"events_start", events_start, METH_O,
     "events_start(flags): record what runs; 2: shapes of arguments, 4: Python's stacks, 8: memory."},
    {"events_stop", events_stop, METH_NOARGS, "events_stop() -> (rows, how many were lost); see EventRow."},
    {"event_begin", event_begin, METH_VARARGS,
     "event_begin(kind, name, inputs=()) -> handle, None while nothing is recorded."},
    {"event_end", event_end, METH_O, "event_end(handle): the event has ended."},
    {NULL}};

int flb_init_events(PyObject *module) {
    if (!row_type && !(row_type = PyStructSequence_NewType(&row_description))) return -1;
    if (PyModule_AddObjectRef(module, "EventRow", (PyObject *)row_type) < 0) return -1;
    return PyModule_AddFunctions(module, functions);
}
