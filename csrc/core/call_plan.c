/* Finding and running call_plans. The description of a call is a row of 64-bit words: kind, layout and dtype
 * of each tensor, values of the other arguments. Python works a call plan out (eager/call_plans.py) and never
 * sees the calls that follow.
 *
 * Invariant: a call plan holds for every call with its description; what the description doesn't tell
 * (overlap of memory, a number that doesn't fit, an index out of bounds) is checked while it runs, before
 * anything is written, and then the call goes the Python way. */
#include "core/calls.h"
#include <math.h>

static uint32_t generation =
    1; /* bumped when something that call plans depend on changes: the default dtype */

void flb_call_plans_clear(FlbCallPlans *r) {
    CallPlanEntry *e = r->entries;
    r->entries = NULL;
    r->used = 0;
    if (!e) return;
    for (int i = 0; i < R_TABLE; i++) {
        PyMem_Free(e[i].words);
        Py_XDECREF(e[i].call_plan);
        Py_XDECREF(e[i].objects);
    }
    PyMem_Free(e);
}
int flb_call_plans_traverse(FlbCallPlans *r, visitproc visit, void *arg) {
    for (int i = 0; r->entries && i < R_TABLE; i++) Py_VISIT(r->entries[i].call_plan);
    return 0;
}

/* ---- the description ----------------------------------------------------------------------------------- */

enum { D_TENSOR = 1, D_NONE, D_BOOL, D_INT, D_FLOAT, D_OBJECT, D_LIST, D_NUMBER, D_FAKE, D_BFLOAT16 = 255 };

static int put_ints(Description *d, PyObject *tuple) {
    Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    if (d->n + n > R_KEY) return 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *o = PyTuple_GET_ITEM(tuple, i);
        int overflow = 1;
        if (PyLong_CheckExact(o)) d->words[d->n++] = PyLong_AsLongLongAndOverflow(o, &overflow);
        if (overflow) return 0;
    }
    return 1;
}
static int put_object(Description *d, PyObject *o) {
    if (d->n_objects == R_OBJECTS || d->n + 1 > R_KEY) return 0;
    d->objects[d->n_objects++] = o;
    d->words[d->n++] = (int64_t)(intptr_t)o;
    return 1;
}
/* A fake tensor of the mode, with sizes that are plain integers. */
static int describe_fake(Description *d, FlbTensor *t) {
    if (t->payload != d->fake_mode || t->array || !t->shape || !t->strides || !t->offset ||
        d->n_tensors == R_SLOTS / 2)
        return 0;
    int overflow = 1;
    if (d->n + 2 > R_KEY) return 0;
    d->words[d->n++] = D_FAKE | PyTuple_GET_SIZE(t->shape) << 8;
    if (PyLong_CheckExact(t->offset)) d->words[d->n++] = PyLong_AsLongLongAndOverflow(t->offset, &overflow);
    if (overflow || !put_ints(d, t->shape) || !put_ints(d, t->strides) || !put_object(d, t->dtype) ||
        !put_object(d, t->device))
        return 0;
    d->tensors[d->n_tensors++] = t;
    return 1;
}
static inline int describe_tensor(Description *d, FlbTensor *t) {
    if (d->fake_mode) return describe_fake(d, t);
    PyArrayObject *a = (PyArrayObject *)t->array;
    if (!a || t->keys || d->n_tensors == R_SLOTS / 2) return 0;
    int num = PyArray_DESCR(a)->type_num, nd = PyArray_NDIM(a);
    if (num == flb_bfloat16_num) num = D_BFLOAT16;
    else if (num >= NPY_OBJECT && num != NPY_HALF) return 0;
    if (nd > R_DIMS || d->n + 1 + 2 * nd > R_KEY) return 0;
    int flags = PyArray_FLAGS(a);
    if (!(flags & NPY_ARRAY_ALIGNED)) return 0;
    int64_t *w = d->words + d->n;
    *w++ = D_TENSOR | num << 8 | nd << 16 | ((flags & NPY_ARRAY_WRITEABLE) != 0) << 24;
    const npy_intp *dims = PyArray_DIMS(a), *strides = PyArray_STRIDES(a);
    for (int i = 0; i < nd; i++) *w++ = dims[i];
    for (int i = 0; i < nd; i++) *w++ = strides[i];
    d->n += 1 + 2 * nd;
    d->tensors[d->n_tensors++] = t;
    return 1;
}
static int describe_one(Description *d, PyObject *o, int by_type, int depth) {
    if (d->n + 3 > R_KEY) return 0;
    PyTypeObject *type = Py_TYPE(o);
    int64_t *w = d->words + d->n;
    if (PyObject_TypeCheck(o, &FlbTensor_Type)) return describe_tensor(d, (FlbTensor *)o);
    if (o == Py_None) {
        w[0] = D_NONE;
        d->n++;
    } else if (by_type && (type == &PyFloat_Type || type == &PyLong_Type || type == &PyBool_Type)) {
        if (d->n_numbers == 8) return 0;
        w[0] = D_NUMBER | (type == &PyFloat_Type ? 1 : type == &PyLong_Type ? 2 : 3) << 8;
        d->numbers[d->n_numbers++] = o;
        d->n++;
    } else if (type == &PyBool_Type) {
        w[0] = D_BOOL | (o == Py_True) << 8;
        d->n++;
    } else if (type == &PyLong_Type) {
        int overflow;
        w[0] = D_INT;
        w[1] = PyLong_AsLongLongAndOverflow(o, &overflow);
        if (overflow) return 0;
        d->n += 2;
    } else if (type == &PyFloat_Type) {
        double v = PyFloat_AS_DOUBLE(o);
        w[0] = D_FLOAT;
        memcpy(w + 1, &v, 8);
        d->n += 2;
    } else if (type == flb_dtype_class || type == flb_format_class || o == flb_cpu_device ||
               (type == &PyUnicode_Type && PyUnicode_CHECK_INTERNED(o))) {
        if (d->n_objects == R_OBJECTS) return 0;
        d->objects[d->n_objects++] = o;
        w[0] = D_OBJECT;
        w[1] = (int64_t)(intptr_t)o;
        d->n += 2;
    } else if (depth &&
               (type == &PyList_Type || type == &PyTuple_Type || type == (PyTypeObject *)flb_size_class)) {
        Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
        w[0] = D_LIST | n << 8;
        d->n++;
        for (Py_ssize_t i = 0; i < n; i++)
            if (!describe_one(d, PySequence_Fast_GET_ITEM(o, i), 0, 0)) return 0;
    } else {
        return 0;
    }
    return 1;
}
static uint64_t hash_words(const int64_t *w, int n) {
    uint64_t h = 0x9E3779B97F4A7C15ull ^ (uint64_t)n;
    for (int i = 0; i < n; i++) {
        h = (h ^ (uint64_t)w[i]) * 0xff51afd7ed558ccdull;
        h ^= h >> 32;
    }
    return h;
}

/* ---- running ------------------------------------------------------------------------------------------- */

static PyObject *make_views(FlbCallPlan *r, FlbTensor *base, PyObject *op, PyObject *const *values,
                            Py_ssize_t n) {
    PyArrayObject *a = (PyArrayObject *)base->array;
    FlbStorage *storage = flb_storage(base);
    if (!storage) return NULL;
    PyObject *list = r->many ? PyList_New(r->n_results) : NULL, *rest = NULL, *out = NULL;
    if (r->many && !list) return NULL;
    if (r->tracked && (!flb_view_is_strided(base) || r->results->descr)) {
        if (!(rest = PyTuple_New(n - 1))) goto fail;
        for (Py_ssize_t i = 1; i < n; i++) PyTuple_SET_ITEM(rest, i - 1, Py_NewRef(values[i]));
    }
    for (int i = 0; i < r->n_results; i++) {
        Result *x = &r->results[i];
        PyArray_Descr *descr = x->descr ? x->descr : PyArray_DESCR(a);
        Py_INCREF(descr);
        PyObject *array =
            PyArray_NewFromDescr(&PyArray_Type, descr, x->n_dims, x->dims, x->strides,
                                 PyArray_BYTES(a) + x->offset, PyArray_FLAGS(a) & NPY_ARRAY_WRITEABLE, NULL);
        if (!array) goto fail;
        if (PyArray_SetBaseObject((PyArrayObject *)array, Py_NewRef((PyObject *)a)) < 0) {
            Py_DECREF(array);
            goto fail;
        }
        FlbTensor *t = (FlbTensor *)flb_from_array(array);
        Py_DECREF(array);
        if (!t) goto fail;
        t->storage = (FlbStorage *)Py_NewRef(storage);
        if (list) PyList_SET_ITEM(list, i, (PyObject *)t);
        else out = (PyObject *)t;
        if (r->tracked) {
            PyObject *which = rest && list ? PyLong_FromLong(i) : Py_NewRef(Py_None);
            int bad = !which || flb_note_view(t, base, op, rest, which) < 0;
            Py_XDECREF(which);
            if (bad) goto fail;
        }
    }
    Py_XDECREF(rest);
    return list ? list : out;
fail:
    Py_XDECREF(rest);
    Py_XDECREF(list);
    Py_XDECREF(out);
    return NULL;
}

/* Bytes from the start of its storage's memory, and how many there are; 0: it has none of its own. */
static int place_of(FlbTensor *t, npy_intp *at, npy_intp *size) {
    FlbStorage *s = flb_storage(t);
    if (!s || !s->owner) return 0;
    *at = PyArray_BYTES((PyArrayObject *)t->array) - PyArray_BYTES((PyArrayObject *)s->owner);
    *size = PyArray_NBYTES((PyArrayObject *)s->owner);
    return 1;
}
/* Whether a view with elements of that size would begin at one of them. */
static int begins_whole(FlbTensor *t, npy_intp item) {
    npy_intp at, size;
    return place_of(t, &at, &size) && at % item == 0;
}

/* A Python number as a value of a NumPy type; 0 when it doesn't fit. */
static int put_number(PyObject *o, int num, char *to) {
    if (num == NPY_FLOAT || num == NPY_DOUBLE) {
        double v;
        if (PyFloat_CheckExact(o)) {
            v = PyFloat_AS_DOUBLE(o);
        } else {
            int overflow;
            long long i = PyLong_AsLongLongAndOverflow(o, &overflow);
            if (overflow || i > (1ll << 53) || i < -(1ll << 53)) return 0;
            v = (double)i;
        }
        if (num == NPY_FLOAT && isinf((float)v) && !isinf(v))
            return 0; /* the kernel says whether that may be */
        if (num == NPY_FLOAT) *(float *)to = (float)v;
        else *(double *)to = v;
        return 1;
    }
    if (!PyLong_Check(o)) return 0;
    int overflow;
    long long i = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow) return 0;
#define INTEGER(NUM, T)                     \
    case NUM:                               \
        if ((long long)(T)i != i) return 0; \
        *(T *)to = (T)i;                    \
        return 1;
    switch (num) {
        INTEGER(NPY_INT64, int64_t)
        INTEGER(NPY_INT32, int32_t)
        INTEGER(NPY_INT16, int16_t)
        INTEGER(NPY_INT8, int8_t)
        INTEGER(NPY_UINT8, uint8_t)
    case NPY_BOOL:
        if (!PyBool_Check(o)) return 0;
        *(npy_bool *)to = o == Py_True;
        return 1;
    }
    return 0;
}

static inline char *place(const Operand *o, char **slots) { return slots[o->slot] + o->offset; }

static void run_loops(const Step *s, char **slots) {
    flb_floating_note(flb_floating()); /* NumPy's loops that compare clear the flags */
    char *at[R_OPERANDS];
    for (int k = 0; k < s->n_operands; k++) at[k] = place(&s->operand[k], slots);
    if (!s->n_dims) {
        char *args[R_OPERANDS] = {at[0], at[1], at[2], at[3]};
        s->fn(args, s->inner, s->steps, s->data);
        return;
    }
    npy_intp index[R_DIMS] = {0};
    for (;;) {
        char *args[R_OPERANDS] = {at[0], at[1], at[2], at[3]}; /* an inner loop may move them */
        s->fn(args, s->inner, s->steps, s->data);
        int d = s->n_dims - 1;
        for (; d >= 0; d--) {
            if (++index[d] < s->dims[d]) {
                for (int k = 0; k < s->n_operands; k++) at[k] += s->operand[k].strides[d];
                break;
            }
            for (int k = 0; k < s->n_operands; k++) at[k] -= s->operand[k].strides[d] * (s->dims[d] - 1);
            index[d] = 0;
        }
        if (d < 0) return;
    }
}
/* 1 done; 0: an index is out of bounds; -1: an exception. */
static int run_step(const Step *s, char **slots) {
    switch (s->kind) {
    case S_LOOPS: run_loops(s, slots); return 1;
    case S_GATHER: return flb_call_plan_gather(s, slots);
    case S_SCATTER: return flb_call_plan_scatter(s, slots);
    default: break;
    }
    FlbFloating *floating = flb_floating();
    flb_floating_note(floating);
    int status = flb_plan_kernel_run(s->native, slots);
    if (floating->watching)
        flb_floating_clear(); /* what a native kernel does with numbers is its own matter */
    return status;
}
/* Other threads may change the arguments of a call while it lets them run. */
static void hold(const Description *d, PyObject **held, int n) {
    for (int i = 0; i < n; i++) {
        held[2 * i] = Py_NewRef(d->tensors[i]);
        held[2 * i + 1] = Py_NewRef(d->tensors[i]->array);
    }
}

static int run_call_plan(FlbCallPlan *r, PyObject *op, Description *d, PyObject *const *values, Py_ssize_t n,
                         PyObject **result) {
    if (r->view) {
        if (r->results->descr && !begins_whole(d->tensors[0], PyDataType_ELSIZE(r->results->descr))) return 0;
        *result = make_views(r, d->tensors[0], op, values, n);
        return *result ? 1 : -1;
    }
    char *slots[R_SLOTS], numbers[8][8], local[512], *memory = NULL;
    int at = 0, status = -1, made = 0;
    PyObject *arrays[4] = {NULL}, *held[R_SLOTS];
    if (r->released) hold(d, held, r->n_tensors);
    for (; at < r->n_tensors; at++) slots[at] = PyArray_BYTES((PyArrayObject *)d->tensors[at]->array);
    if (r->target >= 0) {
        char *lo = slots[r->target] + r->extents[3 * r->target],
             *hi = slots[r->target] + r->extents[3 * r->target + 1];
        for (int i = 0; i < r->n_tensors; i++) {
            if (i == r->target || slots[i] + r->extents[3 * i] > hi || slots[i] + r->extents[3 * i + 1] < lo)
                continue;
            if (slots[i] == slots[r->target] && r->extents[3 * i + 2]) continue;
            status = 0; /* overlapping memory */
            goto done;
        }
    }
    for (int i = 0; i < r->n_numbers; i++) {
        if (!put_number(d->numbers[i], r->numbers[i], numbers[i])) {
            status = 0;
            goto done;
        }
        slots[at++] = numbers[i];
    }
    for (; made < r->n_results; made++) {
        Result *x = &r->results[made];
        if (!x->descr) {
            slots[at++] = NULL;
            continue;
        }
        Py_INCREF(x->descr);
        arrays[made] = PyArray_NewFromDescr(&PyArray_Type, x->descr, x->n_dims, x->dims,
                                            x->dense ? NULL : x->strides, NULL, 0, NULL);
        if (!arrays[made]) goto done;
        slots[at++] = PyArray_BYTES((PyArrayObject *)arrays[made]);
    }
    npy_intp need = 0;
    for (int i = 0; i < r->n_temporaries; i++) need += (r->temporaries[i] + 63) & ~(npy_intp)63;
    char *free_at = local;
    if (need > (npy_intp)sizeof local - 64) {
        if (!(memory = PyMem_Malloc(need + 64))) {
            PyErr_NoMemory();
            goto done;
        }
        free_at = memory;
    }
    free_at = (char *)(((uintptr_t)free_at + 63) & ~(uintptr_t)63);
    for (int i = 0; i < r->n_temporaries; i++) {
        slots[at++] = free_at;
        free_at += (r->temporaries[i] + 63) & ~(npy_intp)63;
    }
    for (int i = 0; i < r->n_constants; i++) slots[at++] = r->constants[i];
    for (int i = 0; i < r->n_steps; i++) {
        int ran = run_step(&r->steps[i], slots);
        if (ran == 1) continue;
        status = ran;
        goto done;
    }
    if (PyErr_Occurred())
        goto done; /* NumPy's loops tell of memory they couldn't have by an exception alone (matmul) */
    if (r->target >= 0) {
        FlbTensor *t = d->tensors[r->target];
        FlbStorage *storage = flb_storage(t);
        if (!storage) goto done;
        flb_count_write(storage);
        *result = Py_NewRef(t);
        status = 1;
    } else if (r->n_results == 1 && !r->many) {
        *result = flb_from_array(arrays[0]);
        status = *result ? 1 : -1;
    } else {
        PyObject *tuple = PyTuple_New(r->n_results);
        for (int i = 0; tuple && i < r->n_results; i++) {
            PyObject *t = arrays[i] ? flb_from_array(arrays[i]) : Py_NewRef(Py_None);
            if (!t) Py_CLEAR(tuple);
            else PyTuple_SET_ITEM(tuple, i, t);
        }
        *result = tuple;
        status = tuple ? 1 : -1;
    }
done:
    PyMem_Free(memory);
    for (int i = 0; i < r->n_results; i++) Py_XDECREF(arrays[i]);
    for (int i = 0; r->released && i < 2 * r->n_tensors; i++) Py_DECREF(held[i]);
    return status;
}

/* ---- the table ----------------------------------------------------------------------------------------- */

int flb_call_plan_insert(FlbCallPlans *table, const Description *d, uint64_t hash, PyObject *call_plan) {
    if (!table->entries && !(table->entries = PyMem_Calloc(R_TABLE, sizeof(CallPlanEntry))))
        return PyErr_NoMemory(), -1;
    CallPlanEntry *e = NULL;
    for (int i = 0; i < R_PROBES && !e; i++) {
        CallPlanEntry *x = &table->entries[(hash + i) % R_TABLE];
        if (!x->words || (x->hash == hash && x->n == d->n && !memcmp(x->words, d->words, d->n * 8))) e = x;
    }
    if (!e)
        e = &table->entries[(hash + (hash >> 40) % R_PROBES) %
                            R_TABLE]; /* one of the neighbourhood makes room */
    int64_t *words = PyMem_Malloc(d->n * 8);
    if (!words) return PyErr_NoMemory(), -1;
    memcpy(words, d->words, d->n * 8);
    PyObject *objects = PyTuple_New(d->n_objects);
    if (!objects) return PyMem_Free(words), -1;
    for (int i = 0; i < d->n_objects; i++) PyTuple_SET_ITEM(objects, i, Py_NewRef(d->objects[i]));
    CallPlanEntry old = *e;
    *e = (CallPlanEntry){hash, words, Py_XNewRef(call_plan), objects, d->n, 0};
    PyMem_Free(old.words);
    Py_XDECREF(old.call_plan);
    Py_XDECREF(old.objects);
    return 0;
}

static int is_one(PyObject *o) {
    int overflow; /* of an integer beyond 64 bits */
    return PyFloat_CheckExact(o) ? PyFloat_AS_DOUBLE(o) == 1.0
                                 : PyLong_CheckExact(o) && PyLong_AsLongAndOverflow(o, &overflow) == 1;
}
int flb_describe(Description *d, PyObject *fake_mode, uint64_t by_type, uint64_t factors,
                 PyObject *const *values, Py_ssize_t n) {
    d->n = d->n_tensors = d->n_numbers = d->n_objects = 0;
    d->fake_mode = fake_mode;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!describe_one(d, values[i],
                          i < 64 && (by_type >> i & 1) && !((factors >> i & 1) && is_one(values[i])), 1))
            return 0;
    return 1;
}
CallPlanEntry *flb_call_plan_find(FlbCallPlans *table, const Description *d, uint64_t *hash) {
    if (table->generation != generation) {
        flb_call_plans_clear(table);
        table->generation = generation;
    }
    *hash = hash_words(d->words, d->n);
    for (int i = 0; table->entries && i < R_PROBES; i++) {
        CallPlanEntry *e = &table->entries[(*hash + i) % R_TABLE];
        if (!e->words) break;
        if (e->hash == *hash && e->n == d->n && !memcmp(e->words, d->words, d->n * 8)) return e;
    }
    return NULL;
}

/* Everything that a description knows by address, to be kept while Python runs: the elements of a list are
 * the user's to change. */
PyObject *flb_description_hold(const Description *d) {
    PyObject *held = PyTuple_New(d->n_tensors + d->n_numbers + d->n_objects);
    if (!held) return NULL;
    int at = 0;
    for (int i = 0; i < d->n_tensors; i++) PyTuple_SET_ITEM(held, at++, Py_NewRef(d->tensors[i]));
    for (int i = 0; i < d->n_numbers; i++) PyTuple_SET_ITEM(held, at++, Py_NewRef(d->numbers[i]));
    for (int i = 0; i < d->n_objects; i++) PyTuple_SET_ITEM(held, at++, Py_NewRef(d->objects[i]));
    return held;
}
static int run(PyObject *call_plan, PyObject *op, Description *d, PyObject *const *values, Py_ssize_t n,
               PyObject **result) {
    if (Py_TYPE(call_plan) == &FlbKernel_Type) {
        int status = flb_kernel_run(call_plan, d, result);
        call_plan = flb_kernel_otherwise(call_plan);
        if (status || !call_plan) return status;
    }
    FlbCallPlan *r = (FlbCallPlan *)call_plan;
    return r->n_tensors == d->n_tensors && r->n_numbers == d->n_numbers
        ? run_call_plan(r, op, d, values, n, result)
        : 0;
}
/* As run, once Python ran since the arguments were described: they may have been written meanwhile. */
static int run_again(PyObject *call_plan, FlbOperator *op, const Description *d, PyObject *const *values,
                     PyObject **result) {
    Description now;
    Py_ssize_t n = op->n_parameters;
    if (call_plan == Py_None || !flb_describe(&now, NULL, op->by_type, op->factors, values, n) ||
        now.n != d->n || memcmp(now.words, d->words, d->n * 8))
        return 0;
    return run(call_plan, (PyObject *)op, &now, values, n, result);
}
static PyObject *tuple_of(PyObject *const *values, Py_ssize_t n) {
    PyObject *all = PyTuple_New(n);
    for (Py_ssize_t i = 0; all && i < n; i++) PyTuple_SET_ITEM(all, i, Py_NewRef(values[i]));
    return all;
}
/* What a call counts for: the more elements, the sooner a graph pays. */
static int worth(const Description *d) {
    npy_intp most = 0;
    for (int i = 0; i < d->n_tensors; i++) {
        npy_intp n = PyArray_SIZE((PyArrayObject *)d->tensors[i]->array);
        most = n > most ? n : most;
    }
    return 1 + (int)(most >> 10 < R_OFTEN ? most >> 10 : R_OFTEN);
}
/* A description has come up R_OFTEN times: Python may have a compiled graph for it. The next call finds it.
 * NotImplemented: not yet. */
static int compile_often(FlbOperator *self, PyObject *call_plan, Description *d, PyObject *const *values) {
    PyObject *handler = flb_call_compiler, *made = NULL;
    if (!handler || handler == Py_None) return 0;
    PyObject *all = tuple_of(values, self->n_parameters), *held = all ? flb_description_hold(d) : NULL;
    uint32_t before = generation;
    Py_INCREF(call_plan);
    if (held) made = PyObject_CallFunctionObjArgs(handler, self, all, call_plan, NULL);
    uint64_t hash;
    if (made && made != Py_None && before == generation) {
        CallPlanEntry *e = flb_call_plan_find(&self->call_plans, d, &hash);
        if (e && made == Py_NotImplemented) e->calls = 0;
        else if (e && e->call_plan == call_plan && Py_TYPE(made) == &FlbKernel_Type)
            Py_SETREF(e->call_plan, Py_NewRef(made));
    }
    int status = made ? 0 : -1;
    Py_XDECREF(made);
    Py_DECREF(call_plan);
    Py_XDECREF(held);
    Py_XDECREF(all);
    return status;
}
/* A number of a call; 0: another value, or none. */
static int number(PyObject *o, npy_intp otherwise, npy_intp *to) {
    int overflow;
    if (o == Py_None) return *to = otherwise, 1;
    if (!PyLong_CheckExact(o)) return 0;
    *to = (npy_intp)PyLong_AsLongLongAndOverflow(o, &overflow);
    return !overflow;
}
static npy_intp within(npy_intp at, npy_intp n) {
    at = at < 0 ? at + n : at;
    return at < 0 ? 0 : at > n ? n : at;
}
/* The integers of a list or tuple; -1: others, or too many. */
static int numbers_of(PyObject *o, npy_intp *to) {
    if (!PyList_CheckExact(o) && !PyTuple_Check(o)) return -1;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    for (Py_ssize_t i = 0; i < n && n <= R_DIMS; i++)
        if (PySequence_Fast_GET_ITEM(o, i) == Py_None || !number(PySequence_Fast_GET_ITEM(o, i), 0, to + i))
            return -1;
    return n <= R_DIMS ? (int)n : -1;
}
/* Sizes, strides and a first element, all inside the memory. 0: what is wrong with them is told elsewhere. */
static int view_by_strides(FlbOperator *op, FlbTensor *base, PyObject *const *values, PyObject **result) {
    npy_intp item = PyArray_ITEMSIZE((PyArrayObject *)base->array), offset, at, size;
    Result view = {.n_dims = numbers_of(values[1], view.dims)};
    if (view.n_dims < 0 || numbers_of(values[2], view.strides) != view.n_dims || values[3] == Py_None ||
        !number(values[3], 0, &offset) || !place_of(base, &at, &size))
        return 0;
    npy_intp room = size / item, low = at / item, high;
    if (offset < -room || offset > room) return 0;
    low += offset, high = low;
    for (int i = 0; i < view.n_dims; i++) {
        npy_intp reach;
        if (view.dims[i] < 1 || __builtin_mul_overflow(view.dims[i] - 1, view.strides[i], &reach) ||
            reach < -room || reach > room)
            return 0;
        if (reach < 0) low += reach;
        else high += reach;
        view.strides[i] *= item;
    }
    if (low < 0 || high >= room) return 0;
    view.offset = offset * item;
    FlbCallPlan plan = {.results = &view, .n_results = 1, .n_tensors = 1, .view = 1, .tracked = 1};
    *result = make_views(&plan, base, (PyObject *)op, values, op->n_parameters);
    return *result ? 1 : -1;
}
/* One index, or a slice, along one dimension of a plain tensor: the numbers are others at every call, so
 * there is no plan for each. 0: what is wrong with them is told elsewhere. */
static int view_by_numbers(FlbOperator *op, Description *d, PyObject *const *values, PyObject **result) {
    FlbTensor *base = d->tensors[0];
    PyArrayObject *a = (PyArrayObject *)base->array;
    npy_intp dim, first, last, step = 1;
    int nd = PyArray_NDIM(a), slice = op->by_numbers == BY_SLICE;
    /* NumPy doesn't keep the strides of an array without elements: the tensor knows them. */
    if (!PyArray_SIZE(a)) return 0;
    if (op->by_numbers == BY_STRIDES) return view_by_strides(op, base, values, result);
    if (!number(values[1], 0, &dim) || dim < -nd || dim >= nd || !number(values[2], 0, &first)) return 0;
    dim = dim < 0 ? dim + nd : dim;
    npy_intp size = PyArray_DIM(a, (int)dim), stride = PyArray_STRIDE(a, (int)dim);
    Result view = {.n_dims = slice ? nd : nd - 1};
    for (int i = 0, k = 0; i < nd; i++) {
        if (i == dim && !slice) continue;
        view.dims[k] = PyArray_DIM(a, i), view.strides[k++] = PyArray_STRIDE(a, i);
    }
    if (slice) {
        if (!number(values[3], size, &last) || !number(values[4], 1, &step) || step < 1) return 0;
        first = within(first, size), last = within(last, size);
        last = last < first ? first : last;
        view.dims[dim] = last == first ? 0 : (last - first - 1) / step + 1;
        view.strides[dim] = stride * step;
    } else {
        if (values[2] == Py_None || first < -size || first >= size) return 0;
        first = first < 0 ? first + size : first;
    }
    view.offset = first * stride;
    FlbCallPlan plan = {.results = &view, .n_results = 1, .n_tensors = 1, .view = 1, .tracked = 1};
    *result = make_views(&plan, base, (PyObject *)op, values, op->n_parameters);
    return *result ? 1 : -1;
}
int flb_call_plan_call(FlbOperator *self, PyObject *const *values, PyObject **result) {
    PyObject *op = (PyObject *)self, *make_plan = flb_call_planner;
    FlbCallPlans *table = &self->call_plans;
    uint64_t by_type = self->by_type, factors = self->factors;
    Py_ssize_t n = self->n_parameters;
    Description d;
    uint64_t hash;
    if (!flb_describe(&d, NULL, by_type, factors, values, n)) return 0;
    if (self->by_numbers && d.n_tensors == 1) {
        int status = view_by_numbers(self, &d, values, result);
        if (status) return status;
    }
    CallPlanEntry *found = flb_call_plan_find(table, &d, &hash);
    PyObject *call_plan;
    if (found && found->call_plan) {
        call_plan = Py_NewRef(found->call_plan);
        if (found->calls < R_OFTEN && (found->calls += worth(&d)) >= R_OFTEN && !self->is_view) {
            uint32_t before = generation;
            int status = compile_often(self, call_plan, &d, values);
            /* This call runs the same code as those before it: the general way may add in another order. */
            if (!status && before == generation) status = run_again(call_plan, self, &d, values, result);
            Py_DECREF(call_plan);
            return status;
        }
        if (call_plan == Py_None) return Py_DECREF(call_plan), 0;
    } else {
        if (!found && !self->is_view) return flb_call_plan_insert(table, &d, hash, NULL);
        PyObject *all = tuple_of(values, n);
        if (!all) return -1;
        uint32_t before = generation;
        PyObject *held = flb_description_hold(&d);
        call_plan = held ? PyObject_CallFunctionObjArgs(make_plan, op, all, NULL) : NULL;
        Py_DECREF(all);
        int status = !call_plan ? -1 : call_plan == Py_None ? 0 : 1;
        if (status > 0 && Py_TYPE(call_plan) != &FlbCallPlan_Type && Py_TYPE(call_plan) != &FlbKernel_Type)
            status = (PyErr_SetString(PyExc_TypeError, "a CallPlan, a Kernel or None is needed"), -1);
        if (status >= 0 && before == generation && table->generation == generation &&
            flb_call_plan_insert(table, &d, hash, call_plan) < 0)
            status = -1;
        if (status > 0) status = run_again(call_plan, self, &d, values, result);
        Py_XDECREF(held);
        Py_XDECREF(call_plan);
        return status;
    }
    int status = run(call_plan, op, &d, values, n, result);
    Py_DECREF(call_plan);
    return status;
}

/* ---- the object ---------------------------------------------------------------------------------------- */

static void call_plan_dealloc(FlbCallPlan *r) {
    PyObject_GC_UnTrack(r);
    for (int i = 0; r->results && i < r->n_results; i++) Py_XDECREF(r->results[i].descr);
    PyMem_Free(r->results);
    for (int i = 0; i < r->n_steps; i++) PyMem_Free(r->steps[i].native);
    PyMem_Free(r->steps);
    PyMem_Free(r->temporaries);
    PyMem_Free(r->constants);
    PyMem_Free(r->numbers);
    PyMem_Free(r->extents);
    Py_XDECREF(r->keep);
    PyObject_GC_Del(r);
}
static int call_plan_traverse(FlbCallPlan *r, visitproc visit, void *arg) {
    Py_VISIT(r->keep);
    return 0;
}
static int read_sizes(PyObject *tuple, npy_intp *to, int most) {
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) > most)
        return PyErr_SetString(PyExc_ValueError, "a call plan's sizes are a short tuple"), -1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
        to[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, i));
        if (to[i] == -1 && PyErr_Occurred()) return -1;
    }
    return (int)PyTuple_GET_SIZE(tuple);
}
static int read_operand(PyObject *t, Operand *o, int n_slots, int n_dims) {
    PyObject *strides;
    if (!PyArg_ParseTuple(t, "inO", &o->slot, &o->offset, &strides)) return -1;
    if (o->slot < 0 || o->slot >= n_slots || read_sizes(strides, o->strides, R_DIMS) != n_dims) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError,
                            "a call plan's operand names no slot, or its strides aren't those of the loops");
        return -1;
    }
    return 0;
}
/* The inner loop a step names: ("ufunc", ufunc, type numbers), ("cast", from, to), ("copy", itemsize),
 * ("select", itemsize);
 * ("gather",), ("scatter", how, type number): reads and writes by index. `ufunc` and `type` are told of a
 * ufunc of two operands that have the type of its result. */
static int read_loop(PyObject *spec, Step *s, const char **ufunc, int *type) {
    const char *what;
    PyObject *a = NULL, *b = NULL;
    if (!PyTuple_Check(spec)) return PyErr_SetString(PyExc_TypeError, "a call plan's loop is a tuple"), -1;
    if (!PyArg_ParseTuple(spec, "s|OO", &what, &a, &b)) return -1;
    if (!strcmp(what, "gather")) {
        s->kind = S_GATHER, s->n_operands = 2;
        return 0;
    }
    if (!a) return PyErr_Format(PyExc_LookupError, "no inner loop for %R", spec), -1;
    if (!strcmp(what, "scatter")) {
        long type = b ? PyLong_AsLong(b) : -1;
        const char *how = PyUnicode_AsUTF8(a);
        if (PyErr_Occurred()) return -1;
        s->kind = S_SCATTER, s->n_operands = 2;
        s->combine = flb_call_plan_combine(how, (int)type);
        if (!s->combine && strcmp(how, "assign"))
            return PyErr_Format(PyExc_ValueError, "no way to combine for %R", spec), -1;
        return 0;
    }
    if (!strcmp(what, "ufunc")) {
        PyUFuncObject *u = (PyUFuncObject *)a;
        npy_intp types[R_OPERANDS];
        if (!PyObject_TypeCheck(a, &PyUFunc_Type) || !b)
            return PyErr_SetString(PyExc_TypeError, "a ufunc and its types are needed"), -1;
        int n = read_sizes(b, types, R_OPERANDS);
        if (n < 0) return -1;
        s->n_operands = n; /* what it reads; read_step compares */
        for (int i = 0; n == u->nargs && i < u->ntypes; i++) {
            int same = 1;
            for (int k = 0; k < n; k++) same &= (unsigned char)u->types[i * n + k] == types[k];
            if (same && u->functions[i]) {
                s->fn = u->functions[i];
                s->data = u->data ? ((void *const *)u->data)[i] : NULL;
                if (n == 3 && types[0] == types[1] && types[1] == types[2])
                    *ufunc = u->name, *type = (int)types[0];
                return 0;
            }
        }
    } else {
        long x = PyLong_AsLong(a), y = b ? PyLong_AsLong(b) : 0;
        if (PyErr_Occurred()) return -1;
        s->n_operands = !strcmp(what, "select") ? 4 : 2;
        s->fn = !strcmp(what, "cast") ? flb_cast_loop((int)x, (int)y)
            : !strcmp(what, "copy")   ? flb_copy_loop((int)x)
                                      : flb_select_loop((int)x);
    }
    if (!s->fn) return PyErr_Format(PyExc_LookupError, "no inner loop for %R", spec), -1;
    return 0;
}
static int read_step(PyObject *t, Step *s, int n_slots) {
    PyObject *loop, *dims, *inner, *steps, *operands, *loads;
    if (PyTuple_Check(t) && PyTuple_GET_SIZE(t) == 4) {
        s->kind = S_KERNEL;
        s->native = flb_plan_kernel_read(t, n_slots);
        return s->native ? 0 : -1;
    }
    if (!PyArg_ParseTuple(t, "OOOOO!O!n", &loop, &dims, &inner, &steps, &PyTuple_Type, &operands,
                          &PyTuple_Type, &loads, &s->block))
        return -1;
    const char *ufunc = NULL;
    int type = -1;
    if (read_loop(loop, s, &ufunc, &type) < 0) return -1;
    if ((s->n_dims = read_sizes(dims, s->dims, R_DIMS)) < 0 ||
        (s->n_inner = read_sizes(inner, s->inner, 4)) < 0 || read_sizes(steps, s->steps, 12) < 0)
        return -1;
    int reads = s->n_operands;
    s->n_operands = (int)PyTuple_GET_SIZE(operands);
    s->n_loads = (int)PyTuple_GET_SIZE(loads);
    if (s->n_operands > R_OPERANDS || s->n_loads > R_LOADS || s->n_operands != reads)
        return PyErr_SetString(PyExc_ValueError, "a call plan's step has other operands than its loop"), -1;
    PyUFuncGenericFunction own = ufunc && s->n_inner == 1 ? flb_own_loop(ufunc, type, s->steps) : NULL;
    if (own) s->fn = own;
    if (s->kind != S_LOOPS && s->block < 1)
        return PyErr_SetString(PyExc_ValueError, "reads and writes by index move at least a byte"), -1;
    for (int i = 0; i < s->n_dims; i++)
        if (s->dims[i] < 1)
            return PyErr_SetString(PyExc_ValueError, "a call plan's loops run at least once"), -1;
    for (int i = 0; i < s->n_operands; i++)
        if (read_operand(PyTuple_GET_ITEM(operands, i), &s->operand[i], n_slots, s->n_dims) < 0) return -1;
    for (int i = 0; i < s->n_loads; i++) {
        Load *l = &s->load[i];
        PyObject *at;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(loads, i), "Onnii", &at, &l->size, &l->stride, &l->item,
                              &l->wrap) ||
            read_operand(at, &l->at, n_slots, s->n_dims) < 0)
            return -1;
        if (l->item != 4 && l->item != 8)
            return PyErr_SetString(PyExc_ValueError, "an index has 4 or 8 bytes"), -1;
    }
    return 0;
}
static PyObject *call_plan_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"tensors", "results", "steps", "temporaries", "constants", "numbers",
                            "target",  "extents", "view",  "many",        "tracked",   NULL};
    int n_tensors, target = -1, view = 0, many = 0, tracked = 0;
    PyObject *results, *steps = NULL, *temporaries = NULL, *constants = NULL, *numbers = NULL,
                       *extents = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "iO!|$O!O!O!O!iO!ppp", names, &n_tensors, &PyTuple_Type,
                                     &results, &PyTuple_Type, &steps, &PyTuple_Type, &temporaries,
                                     &PyTuple_Type, &constants, &PyTuple_Type, &numbers, &target,
                                     &PyTuple_Type, &extents, &view, &many, &tracked))
        return NULL;
    FlbCallPlan *r = PyObject_GC_New(FlbCallPlan, type);
    if (!r) return NULL;
    memset((char *)r + sizeof(PyObject), 0, sizeof *r - sizeof(PyObject));
    PyObject_GC_Track(r);
    r->n_tensors = n_tensors;
    r->target = target;
    r->view = (uint8_t)view, r->many = (uint8_t)many, r->tracked = (uint8_t)tracked;
    r->keep = PyTuple_Pack(2, steps ? steps : Py_None, constants ? constants : Py_None);
    if (!r->keep) goto fail;
#define SIZE(T) ((T) != NULL ? (int)PyTuple_GET_SIZE(T) : 0)
    int n_results = (int)PyTuple_GET_SIZE(results);
    int n_slots = n_tensors + SIZE(numbers) + (view ? 0 : n_results) + SIZE(temporaries) + SIZE(constants);
    if (n_tensors < 0 || n_slots > R_SLOTS || (!view && n_results > 4) || target >= n_tensors ||
        SIZE(numbers) > 8 || (target >= 0) != (extents != NULL) ||
        (extents && PyTuple_GET_SIZE(extents) != 3 * n_tensors) || (view && n_tensors < 1)) {
        PyErr_SetString(PyExc_ValueError, "a call plan with too many parts, or parts that don't fit");
        goto fail;
    }
#define ROOM(FIELD, N)                                                   \
    if (!(r->FIELD = PyMem_Calloc((size_t)(N) + 1, sizeof *r->FIELD))) { \
        PyErr_NoMemory();                                                \
        goto fail;                                                       \
    }
    ROOM(results, n_results)
    ROOM(steps, SIZE(steps))
    ROOM(temporaries, SIZE(temporaries))
    ROOM(constants, SIZE(constants))
    ROOM(numbers, SIZE(numbers))
    for (int i = 0; i < n_results; i++) {
        Result *x = &r->results[i];
        PyObject *descr, *dims, *strides;
        if (n_results > 1 && PyTuple_GET_ITEM(results, i) == Py_None) { /* one that wasn't asked for */
            r->n_results = i + 1;
            continue;
        }
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(results, i), "OOOn", &descr, &dims, &strides, &x->offset))
            goto fail;
        if (!(view && descr == Py_None) && !PyArray_DescrCheck(descr)) {
            PyErr_SetString(PyExc_TypeError, "a result's dtype is an np.dtype");
            goto fail;
        }
        x->n_dims = read_sizes(dims, x->dims, R_DIMS);
        if (x->n_dims < 0 || read_sizes(strides, x->strides, R_DIMS) != x->n_dims) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a result has as many strides as sizes");
            goto fail;
        }
        /* Of a view: the dtype where it is another than the base's. */
        x->descr = view && descr == Py_None ? NULL : (PyArray_Descr *)Py_NewRef(descr);
        r->n_results = i + 1;
        npy_intp step = view ? 0 : PyDataType_ELSIZE(x->descr);
        x->dense = 1;
        for (int k = x->n_dims - 1; k >= 0; k--) {
            if (x->strides[k] != step) x->dense = 0;
            step *= x->dims[k];
        }
    }
    for (int i = 0; i < SIZE(steps); i++) {
        if (read_step(PyTuple_GET_ITEM(steps, i), &r->steps[i], n_slots) < 0) goto fail;
        r->n_steps = i + 1;
        r->released |= r->steps[i].kind == S_KERNEL && flb_plan_kernel_is_long(r->steps[i].native);
    }
    if (temporaries && read_sizes(temporaries, r->temporaries, R_SLOTS) < 0) goto fail;
    r->n_temporaries = SIZE(temporaries);
    for (int i = 0; i < r->n_temporaries; i++)
        if (r->temporaries[i] < 0) {
            PyErr_SetString(PyExc_ValueError, "a temporary has a size");
            goto fail;
        }
    for (int i = 0; i < SIZE(constants); i++) {
        PyObject *c = PyTuple_GET_ITEM(constants, i);
        if (!PyArray_Check(c)) {
            PyErr_SetString(PyExc_TypeError, "a constant is an ndarray");
            goto fail;
        }
        r->constants[i] = PyArray_BYTES((PyArrayObject *)c);
    }
    r->n_constants = SIZE(constants);
    for (int i = 0; i < SIZE(numbers); i++) {
        r->numbers[i] = (int)PyLong_AsLong(PyTuple_GET_ITEM(numbers, i));
        if (PyErr_Occurred()) goto fail;
    }
    r->n_numbers = SIZE(numbers);
    if (extents) {
        ROOM(extents, 3 * n_tensors)
        if (read_sizes(extents, r->extents, 3 * n_tensors) < 0) goto fail;
    }
    return (PyObject *)r;
fail:
    Py_DECREF(r);
    return NULL;
}
static PyMemberDef call_plan_members[] = {
    {"kept", T_OBJECT, offsetof(FlbCallPlan, keep), READONLY, "(steps, constants), or None for either"},
    {NULL}};
PyTypeObject FlbCallPlan_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._C.CallPlan",
    .tp_basicsize = sizeof(FlbCallPlan),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc =
        "CallPlan(tensors, results, *, steps, temporaries, constants, numbers, target, extents, view, "
        "many, tracked): what calls of one\n"
        "description do. eager/call_plans.py makes them; csrc/core/call_plan.h says what the parts are.",
    .tp_new = call_plan_new,
    .tp_dealloc = (destructor)call_plan_dealloc,
    .tp_traverse = (traverseproc)call_plan_traverse,
    .tp_members = call_plan_members,
};

static PyObject *py_forget_call_plans(PyObject *m, PyObject *unused) {
    generation++;
    Py_RETURN_NONE;
}
static PyObject *py_made_by_numbers(PyObject *m, PyObject *args) {
    PyObject *op;
    const char *how;
    if (!PyArg_ParseTuple(args, "O!s", &FlbOperator_Type, &op, &how)) return NULL;
    ((FlbOperator *)op)->by_numbers = strcmp(how, "strides") ? BY_ORDER : BY_STRIDES;
    Py_RETURN_NONE;
}
static PyMethodDef functions[] = {
    {"made_by_numbers", py_made_by_numbers, METH_VARARGS,
     "made_by_numbers(op, how): \"strides\": op(tensor, sizes, strides, offset, ...) is a view inside the "
     "memory of a plain tensor.\n"
     "\"order\": op(tensor, format) of a plain tensor in that order is the tensor. Both are then made "
     "without a call plan."},
    {"forget_call_plans", py_forget_call_plans, METH_NOARGS,
     "Something that call plans depend on changed (the default dtype): none made so far is used again."},
    {NULL}};
int flb_init_call_plan(PyObject *m) {
    import_umath1(-1);
    if (PyType_Ready(&FlbCallPlan_Type) < 0 || PyModule_AddFunctions(m, functions) < 0) return -1;
    return PyModule_AddObjectRef(m, "CallPlan", (PyObject *)&FlbCallPlan_Type);
}
