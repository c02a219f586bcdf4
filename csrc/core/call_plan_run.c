/* Running a call plan: memory of its results and temporaries, its numbers, its steps. What the description of
 * a call doesn't tell is checked before anything is written. */
#include "core/calls.h"
#include <math.h>

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

int flb_run_call_plan(FlbCallPlan *r, PyObject *op, Description *d, PyObject *const *values, Py_ssize_t n,
                      PyObject **result) {
    if (r->view) {
        if (r->results->descr && !flb_begins_whole(d->tensors[0], PyDataType_ELSIZE(r->results->descr)))
            return 0;
        *result = flb_make_views(r, d->tensors[0], op, values, n);
        return *result ? 1 : -1;
    }
    char *slots[R_SLOTS], numbers[R_NUMBERS][8], local[512], *memory = NULL;
    int at = 0, status = -1, made = 0;
    PyObject *arrays[R_RESULTS] = {NULL}, *held[R_SLOTS];
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
