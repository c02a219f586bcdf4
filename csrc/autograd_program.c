/* Programs: what a formula did, kept as operators and slots, and run again without Python between its calls.
 *
 * A formula is a pure function of its arguments that calls ATen operators and branches on everything but the elements of tensors. So what
 * it did once it does again whenever its inputs have the same description: shape, dtype and contiguity of each tensor, the value of each
 * other argument, what each edge asks for. The description is the key of a program. Whatever can't be replayed (a tensor that came from
 * elsewhere, an element that was read) leaves no program, and the formula is called.
 *
 * While a formula is recorded the key RECORD is in the thread's included keys, so that each operator call comes to flb_program_note before
 * anything else looks at it; composites are one step, whatever they open to. */
#include "autograd.h"
#include "state.h"

enum { KEY_WORDS = 192, MAX_PROGRAMS = 16, MAX_FAILURES = 24, MAX_VALUES = 64 };
enum { A_CONSTANT, A_SLOT, A_LIST };

typedef struct {
    uint8_t kind;
    int slot;          /* A_SLOT */
    PyObject *object;  /* A_CONSTANT; A_LIST: a tuple of constants and slots (PyLong in a 1-tuple) */
} Argument;
typedef struct {
    FlbOperator *op;
    Argument *args;
    int n_args;
    int first, n_results; /* slots of the results; n_results -1: one that isn't a list */
    int *dead;            /* slots that nothing reads afterwards */
    int n_dead;
} Instruction;

typedef struct FlbProgram {
    struct FlbProgram *next;
    int64_t *key;
    int n_key;
    PyObject *objects; /* tuple: the arguments that are no tensors */
    Instruction *code;
    int n_code, n_slots, n_inputs;
    int *outputs; /* slot of each edge's cotangent, -1 for none */
    int n_outputs;
    int running; /* it isn't freed while it does */
} FlbProgram;

static void program_free(FlbProgram *p) {
    for (int i = 0; i < p->n_code; i++) {
        Instruction *c = &p->code[i];
        for (int k = 0; k < c->n_args; k++) Py_XDECREF(c->args[k].object);
        PyMem_Free(c->args);
        PyMem_Free(c->dead);
        Py_XDECREF(c->op);
    }
    PyMem_Free(p->code);
    PyMem_Free(p->key);
    PyMem_Free(p->outputs);
    Py_XDECREF(p->objects);
    PyMem_Free(p);
}
void flb_programs_free(FlbPlan *plan) {
    while (plan->programs) {
        FlbProgram *p = plan->programs;
        plan->programs = p->next;
        program_free(p);
    }
    plan->n_programs = 0;
}

/* ---- the description ------------------------------------------------------------------------------------------------ */

typedef struct {
    int64_t words[KEY_WORDS];
    PyObject *objects[MAX_VALUES]; /* borrowed from the node */
    PyObject *tensors[MAX_VALUES]; /* inputs in slot order: borrowed cotangents, owned saved values */
    int n, n_objects, n_tensors, n_cts;
} Key;

static int put(Key *k, int64_t w) { return k->n < KEY_WORDS ? (k->words[k->n++] = w, 1) : 0; }
static int put_tensor(Key *k, PyObject *o) {
    if (!flb_plain(o) || k->n_tensors == MAX_VALUES) return 0;
    FlbTensor *t = (FlbTensor *)o;
    PyArrayObject *a = (PyArrayObject *)t->array;
    int nd = PyArray_NDIM(a);
    if (k->n + nd + 2 > KEY_WORDS) return 0;
    k->words[k->n++] = 1 | nd << 8 | (PyArray_FLAGS(a) & (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS)) << 16;
    k->words[k->n++] = (intptr_t)t->dtype;
    for (int i = 0; i < nd; i++) k->words[k->n++] = PyArray_DIM(a, i);
    k->tensors[k->n_tensors++] = o;
    return 1;
}
static int put_shape(Key *k, PyObject *shape, PyObject *dtype) {
    Py_ssize_t nd = PyTuple_GET_SIZE(shape);
    if (k->n + nd + 2 > KEY_WORDS) return 0;
    k->words[k->n++] = 2 | (int64_t)nd << 8;
    k->words[k->n++] = (intptr_t)dtype;
    for (Py_ssize_t i = 0; i < nd; i++) {
        PyObject *n = PyTuple_GET_ITEM(shape, i);
        if (!PyLong_CheckExact(n)) return 0;
        k->words[k->n++] = PyLong_AsSsize_t(n);
    }
    return 1;
}
/* Values that flb_same_value compares by what they are; others are not described. */
static int describable(PyObject *o, int depth) {
    if (o == Py_None || PyLong_Check(o) || PyFloat_CheckExact(o) || PyUnicode_CheckExact(o) || PyComplex_CheckExact(o) || Py_TYPE(o) == flb_dtype_class ||
        o == flb_cpu_device)
        return 1;
    if (depth && (PyTuple_Check(o) || PyList_Check(o))) {
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++)
            if (!describable(PySequence_Fast_GET_ITEM(o, i), depth - 1)) return 0;
        return 1;
    }
    return 0;
}
static int put_object(Key *k, PyObject *o) {
    if (k->n_objects == MAX_VALUES || !describable(o, 2)) return 0;
    k->objects[k->n_objects++] = o;
    return put(k, 3);
}
/* What an edge asks of its cotangent. */
static int put_edge(Key *k, FlbEdge *e) {
    if (!e->node) return put(k, 0);
    if (Py_TYPE(e->node) == &FlbAccumulate_Type) {
        FlbTensor *leaf = (FlbTensor *)((FlbAccumulate *)e->node)->variable;
        if (!leaf || !leaf->array) return 0;
        PyArrayObject *a = (PyArrayObject *)leaf->array;
        int nd = PyArray_NDIM(a);
        if (k->n + nd + 2 > KEY_WORDS) return 0;
        k->words[k->n++] = 4 | nd << 8;
        k->words[k->n++] = (intptr_t)leaf->dtype;
        for (int i = 0; i < nd; i++) k->words[k->n++] = PyArray_DIM(a, i);
        return 1;
    }
    if (e->nr >= e->node->n_outputs || !e->node->outputs[e->nr].dtype) return put(k, 5);
    FlbMeta *m = &e->node->outputs[e->nr];
    if (m->shape) {
        int at = k->n, ok = put_shape(k, m->shape, m->dtype);
        if (ok) k->words[at] = 4 | (int64_t)m->ndim << 8;
        return ok;
    }
    if (k->n + m->ndim + 2 > KEY_WORDS) return 0;
    k->words[k->n++] = 4 | m->ndim << 8;
    k->words[k->n++] = (intptr_t)m->dtype;
    for (int i = 0; i < m->ndim; i++) k->words[k->n++] = m->dims[i];
    return 1;
}
static void key_free(Key *k) {
    for (int i = k->n_cts; i < k->n_tensors; i++) Py_DECREF(k->tensors[i]);
}
/* 1 described, 0 not, -1 exception. Takes references to the saved values in k->tensors. */
static int describe(Key *k, FlbOpNode *node, PyObject **cts) {
    k->n = k->n_objects = k->n_tensors = k->n_cts = 0;
    for (int i = 0; i < node->base.n_outputs; i++) {
        if (!(cts[i] ? put_tensor(k, cts[i]) : put(k, 0))) return 0;
        k->n_cts = k->n_tensors; /* at each step: key_free releases what comes after the cotangents */
    }
    FlbPlan *plan = node->plan;
    for (int i = 0; i < plan->n_saves; i++) {
        FlbSaved *s = &node->saved[i];
        int ok = 0;
        if (s->kind == SAVED_TENSOR) {
            if (s->aux) return 0; /* hooks run Python */
            PyObject *v = flb_saved_value(s, &node->base, plan->saves[i].name, 0);
            if (!v) return -1;
            if (!(ok = put_tensor(k, v))) Py_DECREF(v);
        } else if (s->kind == SAVED_LIKE) {
            ok = put_shape(k, s->value, s->dtype) && s->aux == flb_cpu_device;
        } else if (s->kind == SAVED_OTHER) {
            ok = put_object(k, s->value ? s->value : Py_None);
        } else if (s->kind == SAVED_LIST) {
            Py_ssize_t n = PyList_GET_SIZE(s->value);
            ok = put(k, 6 | (int64_t)n << 8);
            for (Py_ssize_t j = 0; ok && j < n; j++) {
                PyObject *x = PyList_GET_ITEM(s->value, j);
                if (Py_TYPE(x) != &FlbSavedTensor_Type) {
                    ok = put_object(k, x);
                    continue;
                }
                if (((FlbSavedTensor *)x)->slot.aux) return 0;
                PyObject *v = flb_saved_value(&((FlbSavedTensor *)x)->slot, &node->base, plan->saves[i].name, 0);
                if (!v) return -1;
                if (!(ok = put_tensor(k, v))) Py_DECREF(v);
            }
        } else if (s->kind == SAVED_LIKE_LIST) {
            Py_ssize_t n = PyList_GET_SIZE(s->value);
            ok = put(k, 7 | (int64_t)n << 8);
            for (Py_ssize_t j = 0; ok && j < n; j++) {
                PyObject *like = PyList_GET_ITEM(s->value, j);
                PyObject *shape = like == Py_None ? NULL : PyObject_GetAttrString(like, "shape"), *dtype = shape ? PyObject_GetAttrString(like, "dtype") : NULL;
                if (like == Py_None) ok = put(k, 0);
                else if (!dtype) return Py_XDECREF(shape), -1;
                else ok = PyTuple_Check(shape) && put_shape(k, shape, dtype);
                Py_XDECREF(shape);
                Py_XDECREF(dtype);
            }
        }
        if (!ok) return 0;
    }
    for (int i = 0; i < node->base.n_edges; i++)
        if (!put_edge(k, &node->base.edges[i])) return 0;
    return 1;
}
static int matches(FlbProgram *p, Key *k) {
    if (p->n_key != k->n || memcmp(p->key, k->words, sizeof(int64_t) * k->n) || PyTuple_GET_SIZE(p->objects) != k->n_objects) return 0;
    for (int i = 0; i < k->n_objects; i++)
        if (!flb_same_value(PyTuple_GET_ITEM(p->objects, i), k->objects[i])) return 0;
    return 1;
}

/* ---- running -------------------------------------------------------------------------------------------------------- */

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
static int run_one(Instruction *c, PyObject **slots) {
    PyObject *values[MAX_ARGUMENTS], *lists[4], *got = NULL;
    int n_lists = 0, bad = 0;
    for (int i = 0; i < c->n_args; i++) {
        Argument *a = &c->args[i];
        if (a->kind == A_CONSTANT) values[i] = a->object;
        else if (a->kind == A_SLOT) values[i] = slots[a->slot];
        else if (!(values[i] = lists[n_lists] = fill_list(a->object, slots))) { bad = 1; break; }
        else n_lists++;
    }
    if (!bad) got = flb_call(c->op, FLB_BACKEND, values);
    while (n_lists) Py_DECREF(lists[--n_lists]);
    if (!got) return -1;
    if (c->n_results < 0) {
        slots[c->first] = got;
        return 0;
    }
    int ok = (PyTuple_Check(got) || PyList_Check(got)) && PySequence_Fast_GET_SIZE(got) == c->n_results;
    for (int i = 0; ok && i < c->n_results; i++) slots[c->first + i] = Py_NewRef(PySequence_Fast_GET_ITEM(got, i));
    Py_DECREF(got);
    if (!ok) return PyErr_SetString(PyExc_RuntimeError, "an operator returned another number of results than when its formula was recorded"), -1;
    return 0;
}
static int run_program(FlbProgram *p, Key *k, PyObject **grads) {
    PyObject *local[32], **slots = local;
    if (p->n_slots > 32 && !(slots = PyMem_Malloc(sizeof(PyObject *) * p->n_slots))) return PyErr_NoMemory(), -1;
    for (int i = 0; i < p->n_slots; i++) slots[i] = i < p->n_inputs ? Py_NewRef(k->tensors[i]) : NULL;
    int bad = 0;
    for (int i = 0; !bad && i < p->n_code; i++) {
        Instruction *c = &p->code[i];
        bad = run_one(c, slots);
        for (int d = 0; d < c->n_dead; d++) Py_CLEAR(slots[c->dead[d]]);
    }
    for (int i = 0; !bad && i < p->n_outputs; i++)
        if (p->outputs[i] >= 0 && slots[p->outputs[i]] && slots[p->outputs[i]] != Py_None) grads[i] = Py_NewRef(slots[p->outputs[i]]);
    for (int i = 0; i < p->n_slots; i++) Py_XDECREF(slots[i]);
    if (slots != local) PyMem_Free(slots);
    return bad;
}

/* ---- recording ------------------------------------------------------------------------------------------------------ */

typedef struct Recorder {
    PyObject *slots; /* dict: address -> slot, as ints */
    PyObject *alive; /* list of the tensors in it, whose addresses must not be used again */
    Instruction *code;
    int n_code, room, n_slots;
    int unsound;
} Recorder;
static __thread Recorder *recorder = NULL;

/* -1: none, and with an exception when that could not be found out. */
static int slot_of(Recorder *r, PyObject *t) {
    PyObject *key = PyLong_FromVoidPtr(t), *v = key ? PyDict_GetItemWithError(r->slots, key) : NULL;
    Py_XDECREF(key);
    return v ? (int)PyLong_AsLong(v) : -1;
}
static int new_slot(Recorder *r, PyObject *t) {
    int slot = r->n_slots++;
    if (!PyObject_TypeCheck(t, &FlbTensor_Type)) return slot;
    PyObject *key = PyLong_FromVoidPtr(t), *v = PyLong_FromLong(slot);
    if (!key || !v || PyDict_SetItem(r->slots, key, v) < 0 || PyList_Append(r->alive, t) < 0) slot = -1;
    Py_XDECREF(key);
    Py_XDECREF(v);
    return slot;
}
/* A list as a pattern; NULL without an exception when it holds no tensors. */
static PyObject *pattern_of(Recorder *r, PyObject *list) {
    Py_ssize_t n = PySequence_Fast_GET_SIZE(list);
    int any = 0;
    for (Py_ssize_t i = 0; i < n; i++) any |= PyObject_TypeCheck(PySequence_Fast_GET_ITEM(list, i), &FlbTensor_Type);
    if (!any) return NULL;
    PyObject *t = PyTuple_New(n);
    for (Py_ssize_t i = 0; t && i < n; i++) {
        PyObject *x = PySequence_Fast_GET_ITEM(list, i), *item;
        if (PyObject_TypeCheck(x, &FlbTensor_Type)) {
            int slot = slot_of(r, x);
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
static int note(Recorder *r, FlbOperator *op, PyObject *const *values, PyObject *got) {
    if (r->n_code == r->room) {
        int room = r->room ? 2 * r->room : 8;
        Instruction *code = PyMem_Realloc(r->code, room * sizeof *code);
        if (!code) return PyErr_NoMemory(), -1;
        r->code = code, r->room = room;
    }
    Instruction *c = &r->code[r->n_code];
    memset(c, 0, sizeof *c);
    if (!(c->args = PyMem_Calloc(op->n_parameters + 1, sizeof(Argument)))) return PyErr_NoMemory(), -1;
    c->op = (FlbOperator *)Py_NewRef(op);
    r->n_code++;
    int lists = 0;
    for (int i = 0; i < op->n_parameters; i++) {
        Argument *a = &c->args[i];
        PyObject *x = values[i];
        c->n_args = i + 1;
        if (PyObject_TypeCheck(x, &FlbTensor_Type)) {
            a->kind = A_SLOT;
            if ((a->slot = slot_of(r, x)) < 0) r->unsound = 1, a->slot = 0;
            if (PyErr_Occurred()) return -1;
        } else if (PyList_Check(x) || PyTuple_Check(x)) {
            PyObject *p = pattern_of(r, x);
            if (!p && PyErr_Occurred()) return -1;
            if (p) a->kind = A_LIST, a->object = p, lists++;
            else if (!(a->object = PyList_Check(x) ? PyList_GetSlice(x, 0, PyList_GET_SIZE(x)) : Py_NewRef(x))) return -1;
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
    if (!PyObject_TypeCheck(got, &FlbTensor_Type)) r->unsound = 1; /* an element was read: the formula may branch on it */
    c->n_results = -1;
    return (c->first = new_slot(r, got)) < 0 ? -1 : 0;
}
/* A call under a recorder: made as it would be, and noted. Calls inside it are its own affair. */
PyObject *flb_program_note(FlbOperator *op, uint32_t keys, PyObject *const *values) {
    FlbTls *s = flb_tls();
    Recorder *r = recorder;
    uint32_t included = s->included;
    s->included &= ~FLB_RECORD;
    recorder = NULL;
    PyObject *got = flb_call(op, keys, values);
    s->included = included;
    recorder = r;
    if (!got || !r) return got;
    if (keys != FLB_BACKEND) r->unsound = 1;
    if (note(r, op, values, got) < 0) Py_CLEAR(got);
    return got;
}
static void recorder_free(Recorder *r) {
    Py_XDECREF(r->slots);
    Py_XDECREF(r->alive);
    for (int i = 0; i < r->n_code; i++) {
        for (int k = 0; k < r->code[i].n_args; k++) Py_XDECREF(r->code[i].args[k].object);
        PyMem_Free(r->code[i].args);
        PyMem_Free(r->code[i].dead);
        Py_XDECREF(r->code[i].op);
    }
    PyMem_Free(r->code);
}

/* The values of the plan's saves with the saved tensors replaced by `tensors`, in the order in which describe() met them. */
static int values_of(FlbOpNode *node, PyObject **tensors, PyObject **values) {
    int at = 0;
    for (int i = 0; i < node->plan->n_saves; i++) {
        FlbSaved *s = &node->saved[i];
        if (s->kind == SAVED_TENSOR) {
            values[i] = Py_NewRef(tensors[at++]);
        } else if (s->kind == SAVED_LIST) {
            values[i] = PyList_GetSlice(s->value, 0, PyList_GET_SIZE(s->value));
            for (Py_ssize_t j = 0; values[i] && j < PyList_GET_SIZE(values[i]); j++)
                if (Py_TYPE(PyList_GET_ITEM(values[i], j)) == &FlbSavedTensor_Type) PyList_SetItem(values[i], j, Py_NewRef(tensors[at++]));
        } else {
            values[i] = flb_saved_value(s, &node->base, node->plan->saves[i].name, 0);
        }
        if (!values[i]) return -1;
    }
    return 0;
}
/* Slots that nothing reads after an instruction. */
static int find_dead(FlbProgram *p) {
    int *last = PyMem_Malloc(sizeof(int) * (p->n_slots + 1));
    if (!last) return PyErr_NoMemory(), -1;
    for (int i = 0; i < p->n_slots; i++) last[i] = -1;
    for (int i = 0; i < p->n_code; i++) {
        Instruction *c = &p->code[i];
        int results = c->n_results < 0 ? 1 : c->n_results;
        for (int k = 0; k < results; k++) last[c->first + k] = i;
        for (int k = 0; k < c->n_args; k++) {
            Argument *a = &c->args[k];
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
        Instruction *c = &p->code[i];
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
/* The program of what was recorded, put first in the plan. */
static int keep_program(FlbOpNode *node, Key *k, Recorder *r, PyObject **grads) {
    FlbPlan *plan = node->plan;
    FlbProgram *p = PyMem_Calloc(1, sizeof *p);
    if (!p) return PyErr_NoMemory(), -1;
    int ne = node->base.n_edges;
    p->code = r->code, p->n_code = r->n_code, p->n_slots = r->n_slots, p->n_inputs = k->n_tensors, p->n_outputs = ne;
    r->code = NULL, r->n_code = 0;
    p->key = PyMem_Malloc(sizeof(int64_t) * (k->n + 1));
    p->outputs = PyMem_Malloc(sizeof(int) * (ne + 1));
    p->objects = PyTuple_New(k->n_objects);
    if (!p->key || !p->outputs || !p->objects) {
        if (!PyErr_Occurred()) PyErr_NoMemory();
        return program_free(p), -1;
    }
    memcpy(p->key, k->words, sizeof(int64_t) * k->n);
    p->n_key = k->n;
    for (int i = 0; i < k->n_objects; i++) {
        PyObject *o = k->objects[i];
        o = PyList_Check(o) ? PyList_GetSlice(o, 0, PyList_GET_SIZE(o)) : Py_NewRef(o);
        if (!o) return program_free(p), -1;
        PyTuple_SET_ITEM(p->objects, i, o);
    }
    for (int i = 0; i < ne; i++) {
        p->outputs[i] = grads[i] ? slot_of(r, grads[i]) : -1;
        if (PyErr_Occurred()) return program_free(p), -1;
        if (grads[i] && p->outputs[i] < 0) return plan->failures++, program_free(p), 0; /* it came from elsewhere */
    }
    if (find_dead(p) < 0) return program_free(p), -1;
    p->next = plan->programs;
    plan->programs = p;
    plan->n_programs++;
    for (FlbProgram **last = &p->next, *x; plan->n_programs > MAX_PROGRAMS && (x = *last);) {
        if (x->next || x->running) {
            last = &x->next;
            continue;
        }
        *last = NULL;
        program_free(x);
        plan->n_programs--;
    }
    return 0;
}
static int record_program(FlbOpNode *node, Key *k, PyObject **cts, PyObject **grads) {
    FlbPlan *plan = node->plan;
    PyObject *inputs[MAX_VALUES] = {NULL}, *values[MAX_VALUES] = {NULL}, *list = NULL, *got = NULL;
    Recorder r = {.slots = PyDict_New(), .alive = PyList_New(0)};
    int bad = -1, at = 0;
    if (!r.slots || !r.alive) goto done;
    /* Objects of their own: one tensor in two places is two inputs. */
    for (int i = 0; i < k->n_tensors; i++) {
        if (!(inputs[i] = flb_alias((FlbTensor *)k->tensors[i], flb_tensor_class)) || new_slot(&r, inputs[i]) < 0) goto done;
    }
    if (!(list = PyList_New(node->base.n_outputs))) goto done;
    for (int i = 0; i < node->base.n_outputs; i++) PyList_SET_ITEM(list, i, Py_NewRef(cts[i] ? inputs[at++] : Py_None));
    if (values_of(node, inputs + k->n_cts, values) < 0) goto done;
    FlbTls *s = flb_tls();
    Recorder *outer = recorder;
    recorder = &r;
    s->included |= FLB_RECORD;
    got = flb_call_formula(node, list, values);
    bad = got ? flb_spread(node, got, grads) : -1;
    for (int i = 0; bad == 0 && i < node->base.n_edges; i++)
        if (grads[i] && node->base.edges[i].node) bad = flb_fit(&node->base, i, &node->base.edges[i], &grads[i]);
    s->included &= ~FLB_RECORD;
    recorder = outer;
    if (bad) goto done;
    if (r.unsound) plan->failures++;
    else bad = keep_program(node, k, &r, grads);
done:
    for (int i = 0; i < k->n_tensors; i++) Py_XDECREF(inputs[i]);
    for (int i = 0; i < plan->n_saves && i < MAX_VALUES; i++) Py_XDECREF(values[i]);
    Py_XDECREF(list);
    Py_XDECREF(got);
    recorder_free(&r);
    return bad;
}

static uint64_t hash_of(Key *k) {
    uint64_t h = 0x9E3779B97F4A7C15ull ^ (uint64_t)k->n;
    for (int i = 0; i < k->n; i++) h = ((h ^ (uint64_t)k->words[i]) * 0xff51afd7ed558ccdull) ^ (h >> 32);
    return h | 1;
}
/* 1 done, 0 the formula must be called, -1 exception. */
int flb_program_apply(FlbOpNode *node, PyObject **cts, PyObject **grads) {
    FlbPlan *plan = node->plan;
    if (plan->failures > MAX_FAILURES || plan->n_saves > MAX_VALUES) return 0;
    Key k;
    int status = describe(&k, node, cts);
    if (status == 1) {
        FlbProgram **at = &plan->programs, *p;
        while ((p = *at) && !matches(p, &k)) at = &p->next;
        if (p) {
            *at = p->next;
            p->next = plan->programs;
            plan->programs = p;
            Py_INCREF(plan);
            p->running++;
            status = run_program(p, &k, grads) < 0 ? -1 : 1;
            p->running--;
            Py_DECREF(plan);
        } else {
            /* Sizes that come once aren't worth a program: the second time makes one. */
            uint64_t hash = hash_of(&k);
            int seen = 0;
            for (int i = 0; i < FLB_MISSED; i++) seen |= plan->missed[i] == hash;
            if (seen) status = record_program(node, &k, cts, grads) < 0 ? -1 : 1;
            else plan->missed[plan->next_missed++ % FLB_MISSED] = hash, status = 0;
        }
    }
    key_free(&k);
    return status;
}
