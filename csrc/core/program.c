/* Recording programs and running them (program.h). Whatever can't be replayed (a tensor that came from
 * elsewhere, an element that was read) leaves the recorder unsound, and what it noted is thrown away. */
#include "core/program.h"

enum { A_CONSTANT, A_SLOT, A_LIST };

static void instructions_free(FlbInstruction *code, int n) {
    for (int i = 0; i < n; i++) {
        FlbInstruction *c = &code[i];
        for (int k = 0; k < c->n_args; k++) Py_XDECREF(c->args[k].object);
        PyMem_Free(c->args);
        PyMem_Free(c->dead);
        Py_XDECREF(c->op);
    }
    PyMem_Free(code);
}
void flb_code_free(FlbCode *code) {
    FlbCode old = *code;
    memset(code, 0, sizeof *code);
    instructions_free(old.code, old.n_code);
    PyMem_Free(old.outputs);
}

/* ---- running ------------------------------------------------------------------------------------------- */

static PyObject *fill_list(PyObject *pattern, PyObject **slots) {
    Py_ssize_t n = PyTuple_GET_SIZE(pattern);
    PyObject *list = PyList_New(n);
    for (Py_ssize_t i = 0; list && i < n; i++) {
        PyObject *x = PyTuple_GET_ITEM(pattern, i);
        if (PyTuple_CheckExact(x)) x = slots[PyLong_AsLong(PyTuple_GET_ITEM(x, 0))];
        PyList_SET_ITEM(list, i, Py_NewRef(x ? x : Py_None));
    }
    return list;
}
static int run_one(const FlbInstruction *c, PyObject **slots, int backend) {
    PyObject *values[MAX_ARGUMENTS], *lists[4], *got = NULL;
    int n_lists = 0, bad = 0;
    for (int i = 0; i < c->n_args; i++) {
        FlbArgument *a = &c->args[i];
        if (a->kind == A_CONSTANT) values[i] = a->object;
        else if (a->kind == A_SLOT) values[i] = slots[a->slot];
        else if (!(values[i] = lists[n_lists] = fill_list(a->object, slots))) {
            bad = 1;
            break;
        } else n_lists++;
    }
    if (!bad && (c->op->ready || flb_prepare(c->op) == 0)) {
        uint32_t keys = backend ? FLB_BACKEND : flb_scan(values, c->n_args);
        got = keys ? flb_call(c->op, keys, values) : NULL;
    }
    while (n_lists) Py_DECREF(lists[--n_lists]);
    if (!got) return -1;
    if (c->n_results < 0) {
        slots[c->first] = got;
        return 0;
    }
    int ok = (PyTuple_Check(got) || PyList_Check(got)) && PySequence_Fast_GET_SIZE(got) == c->n_results;
    for (int i = 0; ok && i < c->n_results; i++)
        slots[c->first + i] = Py_NewRef(PySequence_Fast_GET_ITEM(got, i));
    Py_DECREF(got);
    if (!ok)
        return PyErr_SetString(
                   PyExc_RuntimeError,
                   "an operator returned another number of results than when its caller was recorded"),
               -1;
    return 0;
}
int flb_code_run(const FlbCode *p, PyObject *const *inputs, PyObject **outputs, int backend) {
    PyObject *local[32], **slots = local;
    if (p->n_slots > 32 && !(slots = PyMem_Malloc(sizeof(PyObject *) * p->n_slots)))
        return PyErr_NoMemory(), -1;
    for (int i = 0; i < p->n_slots; i++) slots[i] = i < p->n_inputs ? Py_NewRef(inputs[i]) : NULL;
    int bad = 0;
    for (int i = 0; !bad && i < p->n_code; i++) {
        const FlbInstruction *c = &p->code[i];
        bad = run_one(c, slots, backend);
        for (int d = 0; d < c->n_dead; d++) Py_CLEAR(slots[c->dead[d]]);
    }
    for (int i = 0; i < p->n_outputs; i++) {
        PyObject *x = !bad && p->outputs[i] >= 0 ? slots[p->outputs[i]] : NULL;
        outputs[i] = x && x != Py_None ? Py_NewRef(x) : NULL;
    }
    for (int i = 0; i < p->n_slots; i++) Py_XDECREF(slots[i]);
    if (slots != local) PyMem_Free(slots);
    return bad;
}

/* ---- recording ----------------------------------------------------------------------------------------- */

static __thread FlbRecorder *recorder = NULL;

void flb_recorder_spoil(void) {
    if (recorder) recorder->unsound = 1;
}
int flb_recorder_slot(FlbRecorder *r, PyObject *t) {
    PyObject *key = PyLong_FromVoidPtr(t), *v = key ? PyDict_GetItemWithError(r->slots, key) : NULL;
    Py_XDECREF(key);
    return v ? (int)PyLong_AsLong(v) : -1;
}
static int new_slot(FlbRecorder *r, PyObject *t) {
    int slot = r->n_slots++;
    if (!PyObject_TypeCheck(t, &FlbTensor_Type)) return slot;
    PyObject *key = PyLong_FromVoidPtr(t), *v = PyLong_FromLong(slot);
    if (!key || !v || PyDict_SetItem(r->slots, key, v) < 0 || PyList_Append(r->alive, t) < 0) slot = -1;
    Py_XDECREF(key);
    Py_XDECREF(v);
    return slot;
}
int flb_recorder_init(FlbRecorder *r, uint32_t keys) {
    *r = (FlbRecorder){.slots = PyDict_New(), .alive = PyList_New(0), .keys = keys};
    return r->slots && r->alive ? 0 : -1;
}
int flb_recorder_input(FlbRecorder *r, PyObject *tensor) {
    r->n_inputs++;
    return new_slot(r, tensor) < 0 ? -1 : 0;
}
void flb_recorder_start(FlbRecorder *r) {
    r->outer = recorder;
    recorder = r;
    flb_tls()->included |= FLB_RECORD;
}
void flb_recorder_stop(FlbRecorder *r) {
    recorder = r->outer;
    if (!recorder) flb_tls()->included &= ~FLB_RECORD;
}
void flb_recorder_free(FlbRecorder *r) {
    Py_CLEAR(r->slots);
    Py_CLEAR(r->alive);
    instructions_free(r->code, r->n_code);
    r->code = NULL;
    r->n_code = 0;
}

/* A list as a pattern; NULL without an exception when it holds no tensors. */
static PyObject *pattern_of(FlbRecorder *r, PyObject *list) {
    Py_ssize_t n = PySequence_Fast_GET_SIZE(list);
    int any = 0;
    for (Py_ssize_t i = 0; i < n; i++)
        any |= PyObject_TypeCheck(PySequence_Fast_GET_ITEM(list, i), &FlbTensor_Type);
    if (!any) return NULL;
    PyObject *t = PyTuple_New(n);
    for (Py_ssize_t i = 0; t && i < n; i++) {
        PyObject *x = PySequence_Fast_GET_ITEM(list, i), *item;
        if (PyObject_TypeCheck(x, &FlbTensor_Type)) {
            int slot = flb_recorder_slot(r, x);
            if (slot < 0) r->unsound = 1;
            item = slot < 0 && PyErr_Occurred() ? NULL : Py_BuildValue("(i)", slot < 0 ? 0 : slot);
        } else {
            if (PyTuple_CheckExact(x)) r->unsound = 1;
            item = Py_NewRef(x);
        }
        if (!item) Py_CLEAR(t);
        else PyTuple_SET_ITEM(t, i, item);
    }
    return t;
}
static int note(FlbRecorder *r, FlbOperator *op, PyObject *const *values, PyObject *got) {
    if (r->n_code == r->room) {
        int room = r->room ? 2 * r->room : 8;
        FlbInstruction *code = PyMem_Realloc(r->code, room * sizeof *code);
        if (!code) return PyErr_NoMemory(), -1;
        r->code = code, r->room = room;
    }
    FlbInstruction *c = &r->code[r->n_code];
    memset(c, 0, sizeof *c);
    if (!(c->args = PyMem_Calloc(op->n_parameters + 1, sizeof(FlbArgument)))) return PyErr_NoMemory(), -1;
    c->op = (FlbOperator *)Py_NewRef(op);
    r->n_code++;
    int lists = 0;
    for (int i = 0; i < op->n_parameters; i++) {
        FlbArgument *a = &c->args[i];
        PyObject *x = values[i];
        c->n_args = i + 1;
        if (PyObject_TypeCheck(x, &FlbTensor_Type)) {
            a->kind = A_SLOT;
            if ((a->slot = flb_recorder_slot(r, x)) < 0) r->unsound = 1, a->slot = 0;
            if (PyErr_Occurred()) return -1;
        } else if (PyList_Check(x) || PyTuple_Check(x)) {
            PyObject *p = pattern_of(r, x);
            if (!p && PyErr_Occurred()) return -1;
            if (p) a->kind = A_LIST, a->object = p, lists++;
            else if (!(a->object =
                           PyList_Check(x) ? PyList_GetSlice(x, 0, PyList_GET_SIZE(x)) : Py_NewRef(x)))
                return -1;
        } else {
            a->object = Py_NewRef(x);
        }
    }
    if (lists > 4) r->unsound = 1;
    if (PyTuple_Check(got) || PyList_Check(got)) {
        c->n_results = (int)PySequence_Fast_GET_SIZE(got);
        c->first = r->n_slots;
        for (int i = 0; i < c->n_results; i++) {
            PyObject *x = PySequence_Fast_GET_ITEM(got, i);
            if (x != Py_None && !PyObject_TypeCheck(x, &FlbTensor_Type)) r->unsound = 1;
            if (new_slot(r, x) < 0) return -1;
        }
        return 0;
    }
    if (got != Py_None && !PyObject_TypeCheck(got, &FlbTensor_Type))
        r->unsound = 1; /* an element was read: the function may branch on it */
    c->n_results = -1;
    return (c->first = new_slot(r, got)) < 0 ? -1 : 0;
}
/* A call under a recorder: made as it would be, and noted. Calls inside it are its own affair. */
PyObject *flb_program_note(FlbOperator *op, uint32_t keys, PyObject *const *values) {
    FlbTls *s = flb_tls();
    FlbRecorder *r = recorder;
    uint32_t included = s->included;
    s->included &= ~FLB_RECORD;
    recorder = NULL;
    PyObject *got = flb_call(op, keys, values);
    s->included = included;
    recorder = r;
    if (!got || !r) return got;
    if (keys & ~r->keys) r->unsound = 1;
    if (note(r, op, values, got) < 0) Py_CLEAR(got);
    return got;
}

/* ---- from one to the other ----------------------------------------------------------------------------- */

/* Slots that nothing reads after an instruction. */
static int find_dead(FlbCode *p) {
    int *last = PyMem_Malloc(sizeof(int) * (p->n_slots + 1));
    if (!last) return PyErr_NoMemory(), -1;
    for (int i = 0; i < p->n_slots; i++) last[i] = -1;
    for (int i = 0; i < p->n_code; i++) {
        FlbInstruction *c = &p->code[i];
        int results = c->n_results < 0 ? 1 : c->n_results;
        for (int k = 0; k < results; k++) last[c->first + k] = i;
        for (int k = 0; k < c->n_args; k++) {
            FlbArgument *a = &c->args[k];
            if (a->kind == A_SLOT) last[a->slot] = i;
            for (Py_ssize_t j = 0; a->kind == A_LIST && j < PyTuple_GET_SIZE(a->object); j++) {
                PyObject *x = PyTuple_GET_ITEM(a->object, j);
                if (PyTuple_CheckExact(x)) last[PyLong_AsLong(PyTuple_GET_ITEM(x, 0))] = i;
            }
        }
    }
    for (int i = 0; i < p->n_outputs; i++)
        if (p->outputs[i] >= 0) last[p->outputs[i]] = -1;
    for (int i = 0; i < p->n_code; i++) {
        FlbInstruction *c = &p->code[i];
        int n = 0;
        for (int k = 0; k < p->n_slots; k++) n += last[k] == i;
        if (!(c->dead = PyMem_Malloc(sizeof(int) * (n + 1)))) {
            PyMem_Free(last);
            return PyErr_NoMemory(), -1;
        }
        for (int k = 0; k < p->n_slots; k++)
            if (last[k] == i) c->dead[c->n_dead++] = k;
    }
    PyMem_Free(last);
    return 0;
}
int flb_code_take(FlbCode *p, FlbRecorder *r, const int *outputs, int n_outputs) {
    *p = (FlbCode){.code = r->code, .n_code = r->n_code, .n_slots = r->n_slots, .n_inputs = r->n_inputs};
    r->code = NULL, r->n_code = r->room = 0;
    if (!(p->outputs = PyMem_Malloc(sizeof(int) * (n_outputs + 1)))) {
        PyErr_NoMemory();
    } else {
        memcpy(p->outputs, outputs, sizeof(int) * n_outputs);
        p->n_outputs = n_outputs;
        if (find_dead(p) == 0) return 0;
    }
    flb_code_free(p);
    return -1;
}
