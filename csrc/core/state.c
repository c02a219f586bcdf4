/* The thread's dispatch state: gradient mode, excluded keys, and the stacks of modes, transform levels and
 * devices.
 *
 * Numbers live in thread-local memory that a call path reads without a function call. Stacks are chains of
 * immutable layers, so what a Guard saves is a pointer, and restoring can't fail. `with Guard(...)` is
 * atomic: entering and leaving are single C calls made by the interpreter itself, between which and the block
 * no signal handler runs. Python code keeps no copy of any of this. */
#include "core/state.h"
#include <structmember.h>

static __thread FlbTls tls_state = {.grad_enabled = 1};
FlbTls *flb_tls(void) { return &tls_state; }

/* ---- stacks -------------------------------------------------------------------------------------------- */

typedef struct FlbStacks {
    FlbLayer *top[FLB_N_STACKS];
} FlbStacks;

static const char *const stack_names[FLB_N_STACKS] = {"function_modes", "dispatch_modes", "transforms",
                                                      "devices",        "saved_hooks",    "compilations"};
#define STACKS_KEY "flambeau._C.stacks"

static int layer_traverse(FlbLayer *self, visitproc visit, void *arg) {
    Py_VISIT(self->value);
    Py_VISIT((PyObject *)self->below);
    return 0;
}
static void layer_dealloc(FlbLayer *self) {
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, layer_dealloc) Py_CLEAR(self->value);
    Py_CLEAR(self->below);
    PyObject_GC_Del(self);
    Py_TRASHCAN_END
}
static PyTypeObject Layer_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._C.Layer",
    .tp_basicsize = sizeof(FlbLayer),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "One layer of a stack of the dispatch state.",
    .tp_dealloc = (destructor)layer_dealloc,
    .tp_traverse = (traverseproc)layer_traverse,
};
FlbLayer *flb_layer(PyObject *value, FlbLayer *below) {
    FlbLayer *l = PyObject_GC_New(FlbLayer, &Layer_Type);
    if (!l) return NULL;
    l->value = Py_NewRef(value);
    l->below = (FlbLayer *)Py_XNewRef(below);
    l->depth = below ? below->depth + 1 : 1;
    PyObject_GC_Track(l);
    return l;
}

/* The thread's stacks are released with its Python thread state: the capsule that owns them lies in its dict.
 */
static void stacks_free(PyObject *capsule) {
    FlbStacks *s = PyCapsule_GetPointer(capsule, STACKS_KEY);
    if (!s) return;
    if (tls_state.stacks == s) {
        tls_state.stacks = NULL;
        memset(tls_state.depth, 0, sizeof tls_state.depth);
        tls_state.epoch++;
    }
    for (int i = 0; i < FLB_N_STACKS; i++) Py_CLEAR(s->top[i]);
    PyMem_Free(s);
}
static int own_stacks(void) {
    if (tls_state.stacks) return 0;
    PyObject *dict = PyThreadState_GetDict();
    if (!dict) return PyErr_SetString(PyExc_RuntimeError, "this thread has no Python state"), -1;
    FlbStacks *s = PyMem_Calloc(1, sizeof *s);
    if (!s) return PyErr_NoMemory(), -1;
    PyObject *capsule = PyCapsule_New(s, STACKS_KEY, stacks_free);
    if (!capsule) return PyMem_Free(s), -1;
    int r = PyDict_SetItemString(dict, STACKS_KEY, capsule);
    if (r == 0) tls_state.stacks = s;
    Py_DECREF(capsule);
    return r;
}
FlbLayer *flb_stack(int which) { return tls_state.stacks ? tls_state.stacks->top[which] : NULL; }
void flb_set_stack(int which, FlbLayer *layer) {
    if (!tls_state.stacks) return; /* nothing was ever pushed, so `layer` is NULL */
    FlbLayer *old = tls_state.stacks->top[which];
    tls_state.stacks->top[which] = layer;
    tls_state.depth[which] = layer ? layer->depth : 0;
    tls_state.epoch++;
    Py_XDECREF(old);
}
static int which_stack(PyObject *name) {
    if (PyUnicode_Check(name))
        for (int i = 0; i < FLB_N_STACKS; i++)
            if (PyUnicode_CompareWithASCIIString(name, stack_names[i]) == 0) return i;
    PyErr_Format(PyExc_ValueError, "no stack %R in the dispatch state", name);
    return -1;
}
static PyObject *stack_values(FlbLayer *top, int as_list) {
    Py_ssize_t n = top ? top->depth : 0;
    PyObject *out = as_list ? PyList_New(n) : PyTuple_New(n);
    if (!out) return NULL;
    for (FlbLayer *l = top; l; l = l->below) {
        if (as_list) PyList_SET_ITEM(out, --n, Py_NewRef(l->value));
        else PyTuple_SET_ITEM(out, --n, Py_NewRef(l->value));
    }
    return out;
}

/* ---- Guard --------------------------------------------------------------------------------------------- */

enum { GRAD = 1, INFERENCE = 2, EXCLUDED = 4, INCLUDED = 8, FUNCTION_DISABLED = 16, STACK0 = 32 };
#define ALL_FIELDS (STACK0 * (1 << FLB_N_STACKS) - 1)
enum { KEEP, PUSH, POP, CLEAR, REPLACE };

typedef struct {
    uint32_t excluded, included;
    uint8_t grad_enabled, inference, function_disabled;
    FlbLayer *top[FLB_N_STACKS];
} Saved;

typedef struct {
    PyObject_HEAD
    uint32_t fields; /* what it restores */
    uint32_t sets;   /* the flags among them that it sets */
    uint32_t exclude, readmit, include;
    uint8_t grad_enabled, inference, function_disabled;
    int8_t grad_before; /* what leaving restores, when it isn't what entering finds: -1, 0, 1 */
    int which, action;  /* of the one stack that it changes */
    PyObject *value;    /* PUSH: what; REPLACE: the innermost layer, or None */
    PyObject *result;   /* what __enter__ returns; NULL: the guard itself, or what the action found */
    Saved *saved;       /* one for each time it is entered now */
    Py_ssize_t entered, room;
} FlbGuard;

static void save(Saved *s, uint32_t fields) {
    FlbTls *t = &tls_state;
    *s = (Saved){.excluded = t->excluded,
                 .included = t->included,
                 .grad_enabled = t->grad_enabled,
                 .inference = t->inference,
                 .function_disabled = t->function_disabled};
    for (int i = 0; i < FLB_N_STACKS; i++)
        if (fields & (STACK0 << i)) s->top[i] = (FlbLayer *)Py_XNewRef(flb_stack(i));
}
static void restore(Saved *s, uint32_t fields) {
    FlbTls *t = &tls_state;
    if (fields & GRAD) t->grad_enabled = s->grad_enabled;
    if (fields & INFERENCE) t->inference = s->inference;
    if (fields & EXCLUDED) t->excluded = s->excluded;
    if (fields & INCLUDED) t->included = s->included;
    if (fields & FUNCTION_DISABLED) t->function_disabled = s->function_disabled;
    t->epoch++;
    for (int i = 0; i < FLB_N_STACKS; i++) {
        if (!(fields & (STACK0 << i))) continue;
        FlbLayer *top = s->top[i];
        s->top[i] = NULL;
        if (tls_state.stacks) flb_set_stack(i, top);
        else Py_XDECREF(top); /* the thread's Python state went meanwhile */
    }
}
static PyObject *guard_enter(FlbGuard *g, PyObject *unused) {
    if (g->action != KEEP && own_stacks() < 0) return NULL;
    if (g->entered == g->room) {
        Py_ssize_t room = g->room ? 2 * g->room : 1;
        Saved *grown = PyMem_Realloc(g->saved, room * sizeof *grown);
        if (!grown) return PyErr_NoMemory();
        g->saved = grown;
        g->room = room;
    }
    FlbTls *t = &tls_state;
    FlbLayer *top = flb_stack(g->which), *next = NULL;
    PyObject *result = NULL;
    switch (g->action) {
    case PUSH:
        if (!(next = flb_layer(g->value, top))) return NULL;
        break;
    case POP:
        if (!top) return PyErr_Format(PyExc_IndexError, "the stack %s is empty", stack_names[g->which]), NULL;
        next = (FlbLayer *)Py_XNewRef(top->below);
        result = Py_NewRef(top->value);
        break;
    case CLEAR:
        if (!(result = stack_values(top, 1))) return NULL;
        break;
    case REPLACE: next = g->value == Py_None ? NULL : (FlbLayer *)Py_NewRef(g->value); break;
    }
    /* Nothing fails from here on. */
    save(&g->saved[g->entered++], g->fields);
    if (g->grad_before >= 0) g->saved[g->entered - 1].grad_enabled = (uint8_t)g->grad_before;
    if (g->sets & GRAD) t->grad_enabled = g->grad_enabled;
    if (g->sets & INFERENCE) t->inference = g->inference;
    if (g->sets & FUNCTION_DISABLED && (t->function_disabled < g->function_disabled || !g->function_disabled))
        t->function_disabled = g->function_disabled;
    t->excluded = (t->excluded | g->exclude) & ~g->readmit;
    t->included |= g->include;
    t->epoch++;
    if (g->action != KEEP) flb_set_stack(g->which, next);
    if (g->result) {
        Py_XDECREF(result);
        return Py_NewRef(g->result);
    }
    return result ? result : Py_NewRef(g);
}
static PyObject *guard_exit(FlbGuard *g, PyObject *const *args, Py_ssize_t n) {
    if (!g->entered)
        return PyErr_SetString(PyExc_RuntimeError,
                               "a guard of the dispatch state is left that wasn't entered"),
               NULL;
    Saved s = g->saved[--g->entered];
    restore(&s, g->fields);
    Py_RETURN_FALSE;
}
static int guard_init(FlbGuard *g, PyObject *args, PyObject *kwargs) {
    static char *names[] = {
        "grad_enabled", "inference", "exclude", "readmit", "include",    "function_disabled", "push", "pop",
        "clear",        "replace",   "value",   "result",  "everything", "grad_before",       NULL};
    PyObject *grad = NULL, *inference = NULL, *disabled = NULL, *push = NULL, *pop = NULL, *clear = NULL,
             *replace = NULL, *value = NULL, *result = NULL;
    unsigned int exclude = 0, readmit = 0, include = 0;
    int everything = 0, grad_before = -1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOIIIOOOOOOOpi", names, &grad, &inference, &exclude,
                                     &readmit, &include, &disabled, &push, &pop, &clear, &replace, &value,
                                     &result, &everything, &grad_before))
        return -1;
    if (g->entered) return PyErr_SetString(PyExc_RuntimeError, "a guard that is entered can't change"), -1;
    uint32_t fields = everything ? ALL_FIELDS : 0, sets = 0;
    int flags[3] = {0, 0, 0};
    PyObject *given[3] = {grad, inference, disabled};
    for (int i = 0; i < 3; i++) {
        if (!given[i] || given[i] == Py_None) continue;
        long v = PyLong_AsLong(given[i]);
        if (v == -1 && PyErr_Occurred()) return -1;
        if (v < 0 || v > 2)
            return PyErr_SetString(PyExc_ValueError, "a flag of the dispatch state is 0, 1 or 2"), -1;
        flags[i] = (int)v;
        sets |= i == 0 ? GRAD : i == 1 ? INFERENCE : FUNCTION_DISABLED;
    }
    fields |= sets;
    if (exclude | readmit) fields |= EXCLUDED;
    if (include) fields |= INCLUDED;
    PyObject *stack = push ? push : pop ? pop : clear ? clear : replace;
    if (!!push + !!pop + !!clear + !!replace > 1)
        return PyErr_SetString(PyExc_TypeError, "a guard changes one stack"), -1;
    int which = 0, action = KEEP;
    PyObject *keep = NULL;
    if (stack) {
        if ((which = which_stack(stack)) < 0) return -1;
        action = push ? PUSH : pop ? POP : clear ? CLEAR : REPLACE;
        fields |= STACK0 << which;
        if (action == PUSH) keep = Py_NewRef(value ? value : (PyObject *)g);
        if (action == REPLACE) {
            PyObject *values = PySequence_Tuple(value ? value : Py_None);
            if (!values) return -1;
            FlbLayer *top = NULL;
            for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values); i++) {
                FlbLayer *l = flb_layer(PyTuple_GET_ITEM(values, i), top);
                Py_XDECREF(top);
                if (!(top = l)) return Py_DECREF(values), -1;
            }
            Py_DECREF(values);
            keep = top ? (PyObject *)top : Py_NewRef(Py_None);
        }
    }
    g->fields = fields;
    g->sets = sets;
    g->grad_before = grad_before < 0 ? -1 : grad_before != 0;
    g->grad_enabled = flags[0] != 0;
    g->inference = flags[1] != 0;
    g->function_disabled = (uint8_t)flags[2];
    g->exclude = exclude;
    g->readmit = readmit;
    g->include = include;
    g->which = which;
    g->action = action;
    Py_XSETREF(g->value, keep);
    Py_XSETREF(g->result, Py_XNewRef(result));
    return 0;
}
static int guard_traverse(FlbGuard *g, visitproc visit, void *arg) {
    Py_VISIT(g->value);
    Py_VISIT(g->result);
    for (Py_ssize_t i = 0; i < g->entered; i++)
        for (int k = 0; k < FLB_N_STACKS; k++) Py_VISIT((PyObject *)g->saved[i].top[k]);
    return 0;
}
static int guard_clear(FlbGuard *g) {
    Py_CLEAR(g->value);
    Py_CLEAR(g->result);
    while (g->entered) {
        Saved s = g->saved[--g->entered];
        for (int k = 0; k < FLB_N_STACKS; k++) Py_XDECREF(s.top[k]);
    }
    return 0;
}
static void guard_dealloc(FlbGuard *g) {
    PyTypeObject *type = Py_TYPE(g);
    PyObject_GC_UnTrack(g);
    guard_clear(g);
    PyMem_Free(g->saved);
    type->tp_free(g); /* NOTE: a subclass made in Python is released by subtype_dealloc */
}
static PyObject *guard_entered(FlbGuard *g, void *c) { return PyBool_FromLong(g->entered > 0); }
static PyObject *guard_sets_grad(FlbGuard *g, void *c) {
    if (!(g->sets & GRAD)) Py_RETURN_NONE;
    return PyBool_FromLong(g->grad_enabled);
}
static PyObject *guard_restores_grad(FlbGuard *g, void *c) {
    if (!g->entered || !(g->fields & GRAD)) Py_RETURN_NONE;
    return PyBool_FromLong(g->saved[g->entered - 1].grad_enabled);
}
static PyMethodDef guard_methods[] = {
    {"__enter__", (PyCFunction)guard_enter, METH_NOARGS, "Make the changes."},
    {"__exit__", (PyCFunction)(void (*)(void))guard_exit, METH_FASTCALL, "Restore what was changed."},
    {NULL}};
static PyGetSetDef guard_getset[] = {
    {"entered", (getter)guard_entered, NULL, "Whether a block under this guard is running."},
    {"sets_grad", (getter)guard_sets_grad, NULL, "The grad mode that entering sets, or None."},
    {"restores_grad", (getter)guard_restores_grad, NULL, "The grad mode that leaving sets, or None."},
    {NULL}};
PyTypeObject FlbGuard_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._C.Guard",
    .tp_basicsize = sizeof(FlbGuard),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Guard(*, grad_enabled, inference, exclude=0, readmit=0, include=0, function_disabled, push | "
              "pop | clear | replace=STACK, value,\n"
              "result, everything=False): for the duration of a with block, changes of the thread's dispatch "
              "state. Any number of flags and masks,\n"
              "and one stack (function_modes, dispatch_modes, transforms, devices, saved_hooks): a value "
              "pushed, the innermost taken off (__enter__ returns it),\n"
              "all taken off (returned as a list), or other values put in place. What was changed is "
              "restored, whatever happened in the block;\n"
              "everything=True restores the whole state. grad_before: what leaving sets grad_enabled to. May "
              "be entered again while it is entered.",
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)guard_init,
    .tp_dealloc = (destructor)guard_dealloc,
    .tp_traverse = (traverseproc)guard_traverse,
    .tp_clear = (inquiry)guard_clear,
    .tp_methods = guard_methods,
    .tp_getset = guard_getset,
};

/* ---- modes --------------------------------------------------------------------------------------------- */

/* Enters and leaves by itself, so that a subclass which defines neither is atomic. Leaving takes off what an
 * interrupted inner mode left. */
static PyObject *mode_enter(PyObject *self, int which) {
    if (own_stacks() < 0) return NULL;
    FlbLayer *l = flb_layer(self, flb_stack(which));
    if (!l) return NULL;
    flb_set_stack(which, l);
    return Py_NewRef(self);
}
static PyObject *mode_exit(PyObject *self, int which) {
    FlbLayer *l = flb_stack(which);
    while (l && l->value != self) l = l->below;
    if (l) flb_set_stack(which, (FlbLayer *)Py_XNewRef(l->below));
    Py_RETURN_NONE;
}
#define MODE(NAME, WHICH, TEXT)                                                                         \
    static PyObject *NAME##_enter(PyObject *self, PyObject *unused) { return mode_enter(self, WHICH); } \
    static PyObject *NAME##_exit(PyObject *self, PyObject *const *args, Py_ssize_t n) {                 \
        return mode_exit(self, WHICH);                                                                  \
    }                                                                                                   \
    static PyMethodDef NAME##_methods[] = {                                                             \
        {"__enter__", NAME##_enter, METH_NOARGS, "Become the innermost mode."},                         \
        {"__exit__", (PyCFunction)(void (*)(void))NAME##_exit, METH_FASTCALL, "Leave the stack."},      \
        {NULL}};                                                                                        \
    static PyTypeObject NAME##_Type = {                                                                 \
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._C." TEXT,                                   \
        .tp_basicsize = sizeof(PyObject),                                                               \
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,                                           \
        .tp_doc = "Base of modes and devices: a context manager that puts itself on its stack.",        \
        .tp_new = mode_new,                                                                             \
        .tp_methods = NAME##_methods};
/* A mode's __init__ takes what its author likes. */
static PyObject *mode_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    return type->tp_alloc(type, 0);
}
MODE(dispatch_mode, FLB_DISPATCH_MODES, "DispatchModeBase")
MODE(function_mode, FLB_FUNCTION_MODES, "FunctionModeBase")
MODE(device, FLB_DEVICES, "DeviceBase")

/* ---- module functions ---------------------------------------------------------------------------------- */

static PyObject *py_stack(PyObject *m, PyObject *name) {
    int which = which_stack(name);
    return which < 0 ? NULL : stack_values(flb_stack(which), 0);
}
static PyObject *py_innermost(PyObject *m, PyObject *name) {
    int which = which_stack(name);
    if (which < 0) return NULL;
    FlbLayer *l = flb_stack(which);
    return Py_NewRef(l ? l->value : Py_None);
}
/* exclude(mask): the keys excluded before, which are returned; mask is added to them. restore(mask) sets
 * them. */
static PyObject *py_exclude(PyObject *m, PyObject *mask) {
    uint32_t before = tls_state.excluded;
    unsigned long value = PyLong_AsUnsignedLong(mask);
    if (value == (unsigned long)-1 && PyErr_Occurred()) return NULL;
    tls_state.excluded |= (uint32_t)value;
    tls_state.epoch++;
    return PyLong_FromUnsignedLong(before);
}
static PyObject *py_restore(PyObject *m, PyObject *mask) {
    unsigned long value = PyLong_AsUnsignedLong(mask);
    if (value == (unsigned long)-1 && PyErr_Occurred()) return NULL;
    tls_state.excluded = (uint32_t)value;
    tls_state.epoch++;
    Py_RETURN_NONE;
}
/* tls(name, value=-1): the old value of a field of the thread's dispatch state; sets it when value >= 0. The
 * depth of a stack can only be lowered. */
static PyObject *py_tls(PyObject *m, PyObject *const *args, Py_ssize_t n) {
    if (n < 1 || n > 2 || !PyUnicode_Check(args[0]))
        return PyErr_SetString(PyExc_TypeError, "tls(name, value=-1)"), NULL;
    PyObject *name = args[0];
    long value = n == 2 ? PyLong_AsLong(args[1]) : -1;
    if (n == 2 && value == -1 && PyErr_Occurred()) return NULL;
    FlbTls *s = &tls_state;
#define FIELD(N)                                           \
    if (PyUnicode_CompareWithASCIIString(name, #N) == 0) { \
        unsigned long old = s->N;                          \
        if (value >= 0) s->N = value, s->epoch++;          \
        return PyLong_FromUnsignedLong(old);               \
    }
    FIELD(forward_open)
    FIELD(grad_enabled)
    FIELD(excluded)
    FIELD(included)
    FIELD(inference)
    FIELD(function_disabled)
    FIELD(epoch)
#undef FIELD
    int which = which_stack(name);
    if (which < 0) {
        PyErr_Format(PyExc_AttributeError, "no field %U in the dispatch state", name);
        return NULL;
    }
    long old = s->depth[which];
    if (value > old)
        return PyErr_Format(PyExc_ValueError, "the stack %U has %ld layers, not %ld", name, old, value), NULL;
    if (value >= 0) {
        FlbLayer *l = flb_stack(which);
        while (l && l->depth > value) l = l->below;
        flb_set_stack(which, (FlbLayer *)Py_XNewRef(l));
    }
    return PyLong_FromLong(old);
}
PyMethodDef flb_state_functions[] = {
    {"tls", (PyCFunction)(void (*)(void))py_tls, METH_FASTCALL,
     "tls(name, value=-1): read, and with a value set, the dispatch state."},
    {"stack", py_stack, METH_O,
     "stack(name): the values of a stack of the dispatch state, outermost first, as a tuple."},
    {"innermost", py_innermost, METH_O, "innermost(name): the value on top of a stack, or None."},
    {"exclude", py_exclude, METH_O,
     "exclude(keys): add to the keys that no call has; returns what they were."},
    {"restore", py_restore, METH_O, "restore(keys): set the keys that no call has."},
    {NULL}};

int flb_init_state(PyObject *m) {
    if (PyType_Ready(&Layer_Type) < 0 || PyType_Ready(&FlbGuard_Type) < 0 ||
        PyType_Ready(&dispatch_mode_Type) < 0 || PyType_Ready(&function_mode_Type) < 0 ||
        PyType_Ready(&device_Type) < 0)
        return -1;
    if (PyModule_AddFunctions(m, flb_state_functions) < 0 ||
        PyModule_AddObjectRef(m, "Guard", (PyObject *)&FlbGuard_Type) < 0 ||
        PyModule_AddObjectRef(m, "DispatchModeBase", (PyObject *)&dispatch_mode_Type) < 0 ||
        PyModule_AddObjectRef(m, "FunctionModeBase", (PyObject *)&function_mode_Type) < 0 ||
        PyModule_AddObjectRef(m, "DeviceBase", (PyObject *)&device_Type) < 0)
        return -1;
    return 0;
}
