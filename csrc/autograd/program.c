/* Programs of gradient formulas (program.h), kept by the plan whose formula they are.
 *
 * The key of a program is the description of a node's inputs: shape, dtype and contiguity of each tensor, the
 * value of each other argument, what each edge asks for. A formula that can't be replayed leaves no program,
 * and is called. */
#include "autograd/autograd.h"
#include "core/program.h"
#include "core/state.h"

enum { KEY_WORDS = 192, MAX_PROGRAMS = 16, MAX_FAILURES = 24, MAX_VALUES = 64 };

typedef struct FlbProgram {
    struct FlbProgram *next;
    int64_t *key;
    int n_key;
    PyObject *objects; /* tuple: the arguments that are no tensors */
    FlbCode code;      /* its outputs are the edges' cotangents */
    int running;       /* it isn't freed while it does */
} FlbProgram;

static void program_free(FlbProgram *p) {
    flb_code_free(&p->code);
    PyMem_Free(p->key);
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

/* ---- the description ----------------------------------------------------------------------------------- */

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
    k->words[k->n++] =
        1 | nd << 8 | (PyArray_FLAGS(a) & (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS)) << 16;
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
    if (o == Py_None || PyLong_Check(o) || PyFloat_CheckExact(o) || PyUnicode_CheckExact(o) ||
        PyComplex_CheckExact(o) || Py_TYPE(o) == flb_dtype_class || Py_TYPE(o) == flb_format_class ||
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
                PyObject *v =
                    flb_saved_value(&((FlbSavedTensor *)x)->slot, &node->base, plan->saves[i].name, 0);
                if (!v) return -1;
                if (!(ok = put_tensor(k, v))) Py_DECREF(v);
            }
        } else if (s->kind == SAVED_LIKE_LIST) {
            Py_ssize_t n = PyList_GET_SIZE(s->value);
            ok = put(k, 7 | (int64_t)n << 8);
            for (Py_ssize_t j = 0; ok && j < n; j++) {
                PyObject *like = PyList_GET_ITEM(s->value, j);
                PyObject *shape = like == Py_None ? NULL : PyObject_GetAttrString(like, "shape"),
                         *dtype = shape ? PyObject_GetAttrString(like, "dtype") : NULL;
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
    if (p->n_key != k->n || memcmp(p->key, k->words, sizeof(int64_t) * k->n) ||
        PyTuple_GET_SIZE(p->objects) != k->n_objects)
        return 0;
    for (int i = 0; i < k->n_objects; i++)
        if (!flb_same_value(PyTuple_GET_ITEM(p->objects, i), k->objects[i])) return 0;
    return 1;
}

/* ---- recording ----------------------------------------------------------------------------------------- */

/* The values of the plan's saves with the saved tensors replaced by `tensors`, in the order in which
 * describe() met them. */
static int values_of(FlbOpNode *node, PyObject **tensors, PyObject **values) {
    int at = 0;
    for (int i = 0; i < node->plan->n_saves; i++) {
        FlbSaved *s = &node->saved[i];
        if (s->kind == SAVED_TENSOR) {
            values[i] = Py_NewRef(tensors[at++]);
        } else if (s->kind == SAVED_LIST) {
            values[i] = PyList_GetSlice(s->value, 0, PyList_GET_SIZE(s->value));
            for (Py_ssize_t j = 0; values[i] && j < PyList_GET_SIZE(values[i]); j++)
                if (Py_TYPE(PyList_GET_ITEM(values[i], j)) == &FlbSavedTensor_Type)
                    PyList_SetItem(values[i], j, Py_NewRef(tensors[at++]));
        } else {
            values[i] = flb_saved_value(s, &node->base, node->plan->saves[i].name, 0);
        }
        if (!values[i]) return -1;
    }
    return 0;
}
/* The program of what was recorded, put first in the plan. */
static int keep_program(FlbOpNode *node, Key *k, FlbRecorder *r, PyObject **grads) {
    FlbPlan *plan = node->plan;
    int ne = node->base.n_edges, *outputs = PyMem_Malloc(sizeof(int) * (ne + 1));
    FlbProgram *p = outputs ? PyMem_Calloc(1, sizeof *p) : NULL;
    if (!p) return PyMem_Free(outputs), PyErr_NoMemory(), -1;
    int bad = -1;
    for (int i = 0; i < ne; i++) {
        outputs[i] = grads[i] ? flb_recorder_slot(r, grads[i]) : -1;
        if (PyErr_Occurred()) goto fail;
        if (grads[i] && outputs[i] < 0) { /* it came from elsewhere */
            plan->failures++;
            bad = 0;
            goto fail;
        }
    }
    p->key = PyMem_Malloc(sizeof(int64_t) * (k->n + 1));
    p->objects = PyTuple_New(k->n_objects);
    if (!p->key || !p->objects) {
        if (!PyErr_Occurred()) PyErr_NoMemory();
        goto fail;
    }
    memcpy(p->key, k->words, sizeof(int64_t) * k->n);
    p->n_key = k->n;
    for (int i = 0; i < k->n_objects; i++) {
        PyObject *o = k->objects[i];
        o = PyList_Check(o) ? PyList_GetSlice(o, 0, PyList_GET_SIZE(o)) : Py_NewRef(o);
        if (!o) goto fail;
        PyTuple_SET_ITEM(p->objects, i, o);
    }
    if (flb_code_take(&p->code, r, outputs, ne) < 0) goto fail;
    PyMem_Free(outputs);
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
fail:
    PyMem_Free(outputs);
    program_free(p);
    return bad;
}
static int record_program(FlbOpNode *node, Key *k, PyObject **cts, PyObject **grads) {
    FlbPlan *plan = node->plan;
    PyObject *inputs[MAX_VALUES] = {NULL}, *values[MAX_VALUES] = {NULL}, *list = NULL, *got = NULL;
    FlbRecorder r;
    int bad = -1, at = 0;
    if (flb_recorder_init(&r, FLB_BACKEND) < 0) goto done;
    /* Objects of their own: one tensor in two places is two inputs. */
    for (int i = 0; i < k->n_tensors; i++) {
        if (!(inputs[i] = flb_alias((FlbTensor *)k->tensors[i], flb_tensor_class)) ||
            flb_recorder_input(&r, inputs[i]) < 0)
            goto done;
    }
    if (!(list = PyList_New(node->base.n_outputs))) goto done;
    for (int i = 0; i < node->base.n_outputs; i++)
        PyList_SET_ITEM(list, i, Py_NewRef(cts[i] ? inputs[at++] : Py_None));
    if (values_of(node, inputs + k->n_cts, values) < 0) goto done;
    flb_recorder_start(&r);
    got = flb_call_formula(node, list, values);
    bad = got ? flb_spread(node, got, grads) : -1;
    for (int i = 0; bad == 0 && i < node->base.n_edges; i++)
        if (grads[i] && node->base.edges[i].node)
            bad = flb_fit(&node->base, i, &node->base.edges[i], &grads[i]);
    flb_recorder_stop(&r);
    if (bad) goto done;
    if (r.unsound) plan->failures++;
    else bad = keep_program(node, k, &r, grads);
done:
    for (int i = 0; i < k->n_tensors; i++) Py_XDECREF(inputs[i]);
    for (int i = 0; i < plan->n_saves && i < MAX_VALUES; i++) Py_XDECREF(values[i]);
    Py_XDECREF(list);
    Py_XDECREF(got);
    flb_recorder_free(&r);
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
            status = flb_code_run(&p->code, k.tensors, grads, 1) < 0 ? -1 : 1;
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
