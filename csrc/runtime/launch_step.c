/* One step of a launch: a kernel over a range or over the rows of a table, a product, a native kernel, a call
 * of Python's, numbers that become sizes. */
#include "runtime/launch.h"
#include <string.h>

typedef struct {
    KernelFn fn;
    char **args;
} KernelCall;

static void kernel_range(void *context, int64_t begin, int64_t end) {
    KernelCall *c = context;
    c->fn(c->args, begin, end);
}

/* A kernel on the rows of a table, whose iterations are counted through: row i has those from starts[i] on.
 */
typedef struct {
    KernelFn fn;
    char **args; /* of one row behind the other */
    const int64_t *starts;
    int width, nrows;
} TableCall;

static void table_range(void *context, int64_t begin, int64_t end) {
    const TableCall *c = context;
    int row = 0, after = c->nrows; /* the last one that starts at `begin` or before it */
    while (after - row > 1) {
        int middle = row + (after - row) / 2;
        if (c->starts[middle] <= begin) row = middle;
        else after = middle;
    }
    for (; begin < end; row++) {
        int64_t start = c->starts[row], stop = c->starts[row + 1] < end ? c->starts[row + 1] : end;
        if (begin < stop) c->fn(c->args + (int64_t)row * c->width, begin - start, stop - start);
        begin = stop;
    }
}

void flb_run_kernel(KernelFn fn, char **args, int64_t total, int64_t grain) {
    KernelCall call = {fn, args};
    flb_parallel(kernel_range, &call, total, grain);
}

int flb_run_call(Call *c, Step *s) {
    int n = 0, status = -1, count = s->nargs + s->nnumbers;
    PyObject *stack[64], **tensors = count <= 64 ? stack : PyMem_Malloc(count * sizeof(PyObject *));
    PyObject *result = NULL, *fast = NULL;
    PyObject *callable = Py_XNewRef(s->callable); /* a collected graph has none */
    PyObject *native = s->native && s->native != Py_None ? Py_NewRef(s->native) : NULL;
    flb_floating_note(flb_api->floating()); /* what is called may clear the flags */
    if (!tensors || !callable) {
        if (callable) PyErr_NoMemory();
        else PyErr_SetString(PyExc_RuntimeError, "compiled graph: it has been collected");
        goto done;
    }
    for (; n < s->nargs; n++) {
        Place *p = &c->places[s->args[n]];
        const Layout *layout = &s->parts[n].layout;
        char *ptr = p->ptr + c->f[s->parts[n].at];
        if (native) {
            if (!(tensors[n] = flb_array_for_native(layout, c->f, ptr, p->owner))) goto done;
            continue;
        }
        PyObject *array = flb_array_over(layout, c->f, ptr, p->owner);
        tensors[n] = array ? flb_api->from_array(array) : NULL;
        Py_XDECREF(array);
        if (!tensors[n]) goto done;
    }
    for (; n < count; n++)
        if (!(tensors[n] = PyLong_FromLongLong(c->f[s->numbers[n - s->nargs]]))) goto done;
    result = !native                             ? PyObject_Vectorcall(callable, tensors, n, NULL)
        : Py_IS_TYPE(native, &FlbNumpyCall_Type) ? flb_numpy_call(native, tensors, n, 1)
                                                 : flb_loop_arrays(native, tensors, n);
    if (!result) goto done;
    if (!s->native && !(s->native = flb_native_call_of(callable))) goto done;
    fast = PySequence_Tuple(result); /* owned: reading a number may run Python, which may change a list */
    if (!fast) goto done;
    if (PyTuple_GET_SIZE(fast) != s->nresults) {
        PyErr_Format(PyExc_RuntimeError, "a graph step returned %zd tensors, %d expected",
                     PyTuple_GET_SIZE(fast), s->nresults);
        goto done;
    }
    if (s->stage &&
        flb_bind_symbols(&c->g->stages[s->stage], c->f, &PyTuple_GET_ITEM(fast, 0), "result",
                         c->g->on_error) < 0)
        goto done;
    for (int i = 0; i < s->nresults; i++) {
        PyObject *t = PyTuple_GET_ITEM(fast, i);
        if (s->results[i] < 0) continue;
        if (c->g->slots[s->results[i]].kind == SLOT_VALUE) {
            Py_XSETREF(c->places[s->results[i]].owner, Py_NewRef(t));
            continue;
        }
        PyArrayObject *array = flb_array_of(t);
        if (!array || !flb_array_matches(array, &c->g->slots[s->results[i]].layout, c->f)) {
            PyErr_Format(PyExc_RuntimeError,
                         "a graph step returned %R, which does not have the layout its shape rule gave", t);
            goto done;
        }
        Place *p = &c->places[s->results[i]];
        Py_XSETREF(p->owner, Py_NewRef((PyObject *)array));
        p->ptr = PyArray_DATA(array);
    }
    status = s->stage ? flb_place_slots(c, s->stage) : 0;
done:
    for (int i = 0; i < n; i++) Py_DECREF(tensors[i]);
    if (tensors != stack) PyMem_Free(tensors);
    Py_XDECREF(callable);
    Py_XDECREF(native);
    Py_XDECREF(result);
    Py_XDECREF(fast);
    return status;
}

int flb_run_bind(Call *c, const Step *s) {
    const Stage *stage = &c->g->stages[s->stage];
    for (int i = 0; i < stage->nbinds; i++) {
        const Bind *b = &stage->binds[i];
        int64_t v;
        memcpy(&v, c->places[s->args[b->source]].ptr + c->f[s->parts[b->source].at], sizeof v);
        if (flb_out_of_range(b, v, "number", c->g->on_error)) return -1;
        c->f[b->dst] = v;
    }
    return flb_run_code(stage, c->f) < 0 ? -1 : flb_place_slots(c, s->stage);
}

/* The kernel on all rows as one launch: the threads share the iterations of all of them. */
static void run_table(Call *c, const Step *s) {
    const Frame *f = c->f;
    int own = s->nargs / s->nrows, width = own + 2;
    int64_t *starts = (int64_t *)(c->pointers + (int64_t)s->nrows * width);
    starts[0] = 0;
    for (int i = 0; i < s->nrows; i++) {
        char **pointers = c->pointers + (int64_t)i * width;
        for (int k = 0; k < own; k++) pointers[k] = c->places[s->args[i * own + k]].ptr;
        pointers[own] = (char *)c->status;
        pointers[own + 1] = (char *)(f + s->params + i * s->nparams);
        starts[i + 1] = starts[i] + f[s->total + i];
    }
    TableCall call = {s->fn, c->pointers, starts, width, s->nrows};
    flb_parallel(table_range, &call, starts[s->nrows], f[s->grain]);
}

void flb_run_native(Call *c, const Step *s) {
    const Frame *f = c->f;
    if (s->kind == STEP_GEMM) {
        flb_gemm(s->gemm, s->f64, s->ta, s->tb, (const GemmSizes *)(f + s->sizes), s->nbatch, s->choice,
                 c->places[s->args[0]].ptr, c->places[s->args[1]].ptr, c->places[s->args[2]].ptr);
        return;
    }
    if (s->kind == STEP_ROWS) {
        flb_run_rows(s->rows, c->places, f, c->status);
        return;
    }
    if (s->kind == STEP_NATIVE) {
        View views[MOST_VIEWS];
        int64_t numbers[MOST_NUMBERS];
        for (int i = 0; i < s->nargs; i++) {
            const Layout *l = &s->parts[i].layout;
            if (s->args[i] < 0) views[i] = NO_VIEW;
            else
                views[i] = (View){c->places[s->args[i]].ptr + f[s->parts[i].at], l->ndim, f + l->at,
                                  f + l->at + l->ndim};
        }
        for (int i = 0; i < s->nnumbers; i++) numbers[i] = f[s->numbers[i]];
        int failed = s->rows ? flb_run_planes(s, c->places, f, views, numbers, c->status)
                             : s->kernel->run(views, numbers, c->status);
        if (failed < 0) c->status[0] = -1;
        return;
    }
    if (s->kind == STEP_TABLE) {
        run_table(c, s);
        return;
    }
    char **pointers = c->pointers;
    for (int i = 0; i < s->nargs; i++) pointers[i] = c->places[s->args[i]].ptr;
    pointers[s->nargs] = (char *)c->status;
    pointers[s->nargs + 1] = (char *)(f + s->params);
    flb_run_kernel(s->fn, pointers, f[s->total], f[s->grain]);
}
