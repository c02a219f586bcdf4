/* flambeau._runtime: the launch of a compiled graph as one call.
 *
 * A Graph is a table of slots (places where data lives) and a list of steps over them. Slots: an input, a
 * piece of the arena, memory of its own, an output allocated at each call, a constant, an object that a
 * Python step returned. Steps: a kernel over a parallel range, a batch of matrix products, numbers in memory
 * that are sizes from here on, a Python callable on tensors. The arena is taken from the caching allocator
 * for the time of a call, so graphs that run one after the other share memory, and concurrent calls don't.
 * Sizes that are symbols are read from the inputs, and what depends on them is computed by the graph's own
 * code (graph.h).
 *
 * Invariants: slot numbers and places are checked when the Graph is made (graph.c), inputs (dtype, shape,
 * strides, range of each symbol) at each call, so that kernels need no checks. A kernel reports a bad index
 * in the status words; the call then raises through `on_error`. */
#define FLB_IMPORT_ARRAY
#include "runtime/graph.h"
#include <math.h>
#include <string.h>

#include <time.h>

FlbApi *flb_api;
int flb_timing;

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

/* Everything that belongs to one call. */
typedef struct {
    Graph *g;
    Frame *f;
    Place *places;
    char **pointers; /* room for a kernel's arguments */
    char *arena;
    int taken,
        given;    /* of the slots with memory of their own, in the order of the graph's `takes` and `gives` */
    int starved;  /* one got none: the rest of the call is left out */
    int consumes; /* whether inputs and results are dropped after their last use */
    int64_t status[STATUS_WORDS];
} Call;

/* An array over memory that `owner` holds; it may be written as far as an owner that is an ndarray may. */
static PyObject *array_over(const Layout *l, const Frame *f, char *ptr, PyObject *owner) {
    int flags = NPY_ARRAY_WRITEABLE;
    if (owner && PyArray_Check(owner)) flags &= PyArray_FLAGS((PyArrayObject *)owner);
    Py_INCREF(l->descr);
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, l->descr, l->ndim, (npy_intp *)f + l->at,
                                           (npy_intp *)f + l->at + l->ndim, ptr, flags, NULL);
    if (array && owner && PyArray_SetBaseObject((PyArrayObject *)array, Py_NewRef(owner)) < 0)
        Py_CLEAR(array);
    return array;
}

static npy_intp elements(const Layout *l, const Frame *f) {
    npy_intp n = 1;
    for (int i = 0; i < l->ndim; i++) n *= f[l->at + i];
    return n;
}

/* NumPy's complaint about memory that isn't there as users know it: a RuntimeError too. */
static void name_allocation(void) {
    if (!PyErr_ExceptionMatches(PyExc_MemoryError)) return;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *errors = PyImport_ImportModule("flambeau.base.errors"),
             *error = errors ? PyObject_GetAttrString(errors, "AllocationError") : NULL;
    if (error) PyErr_Format(error, "DefaultCPUAllocator: can't allocate memory: %S", value);
    Py_XDECREF(error);
    Py_XDECREF(errors);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

/* A fresh output array; `ptr` is its first element. */
static PyObject *output_memory(const Slot *s, const Frame *f, char **ptr) {
    const Layout *l = &s->layout;
    if (s->plain) {
        Py_INCREF(l->descr);
        PyObject *array = PyArray_NewFromDescr(&PyArray_Type, l->descr, l->ndim, (npy_intp *)f + l->at, NULL,
                                               NULL, 0, NULL);
        if (array) *ptr = PyArray_DATA((PyArrayObject *)array);
        return array;
    }
    npy_intp n = f[s->at] ? f[s->at] : 1;
    if (n ==
        elements(l, f) *
            PyDataType_ELSIZE(l->descr)) { /* in another order, without gaps: an array that owns its memory */
        Py_INCREF(l->descr);
        PyObject *array = PyArray_NewFromDescr(&PyArray_Type, l->descr, l->ndim, (npy_intp *)f + l->at,
                                               (npy_intp *)f + l->at + l->ndim, NULL, 0, NULL);
        if (array) *ptr = PyArray_DATA((PyArrayObject *)array);
        return array;
    }
    PyObject *memory = PyArray_SimpleNew(1, &n, NPY_UINT8);
    if (!memory) return NULL;
    *ptr = (char *)PyArray_DATA((PyArrayObject *)memory);
    PyObject *array = array_over(l, f, *ptr, memory);
    Py_DECREF(memory);
    return array;
}

static PyObject *new_output(const Slot *s, const Frame *f, char **ptr) {
    PyObject *array = output_memory(s, f, ptr);
    if (!array) name_allocation();
    return array;
}

static int matches(PyArrayObject *a, const Layout *l, const Frame *f) {
    if (PyArray_NDIM(a) != l->ndim) return 0;
    if (PyArray_DESCR(a) != l->descr && !PyArray_EquivTypes(PyArray_DESCR(a), l->descr)) return 0;
    const npy_intp *shape = PyArray_DIMS(a), *strides = PyArray_STRIDES(a);
    int empty = 0, strided = 1;
    for (int i = 0; i < l->ndim; i++) {
        if (shape[i] != f[l->at + i]) return 0;
        if (!shape[i]) empty = 1;
        if (strides[i] != f[l->at + l->ndim + i] && shape[i] > 1) strided = 0;
    }
    return strided || empty;
}

/* The array of an input: a tensor's, or captured code gives it as it is. */
static PyArrayObject *array_of(PyObject *x) {
    return PyObject_TypeCheck(x, flb_api->tensor_type) ? (PyArrayObject *)((FlbTensor *)x)->array
        : PyArray_CheckExact(x)                        ? (PyArrayObject *)x
                                                       : NULL;
}

/* ---- sizes --------------------------------------------------------------------------------------------- */

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

static double as_double(int64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static int64_t as_bits(double x) {
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The operations after OP_MAX. -1 when there is no result (an overflow, a shift by too much, a division by
 * zero). */
static int rare(int op, int64_t a, int64_t b, int64_t *r) {
    double x = as_double(a), y = as_double(b);
    switch (op) {
    case OP_AND: *r = a & b; return 0;
    case OP_OR: *r = a | b; return 0;
    case OP_XOR: *r = a ^ b; return 0;
    case OP_SHL: return b < 0 || b > 62 || __builtin_mul_overflow(a, (int64_t)1 << b, r) ? -1 : 0;
    case OP_SHR:
        if (b < 0) return -1;
        *r = a >> (b > 63 ? 63 : b);
        return 0;
    case OP_POW:
        if (b < 0) return -1;
        for (*r = 1; b; b >>= 1) {
            if (b & 1 && __builtin_mul_overflow(*r, a, r)) return -1;
            if (b > 1 && __builtin_mul_overflow(a, a, &a)) return -1;
        }
        return 0;
    case OP_FLOAT: *r = as_bits((double)a); return 0;
    case OP_FADD: *r = as_bits(x + y); return 0;
    case OP_FSUB: *r = as_bits(x - y); return 0;
    case OP_FMUL: *r = as_bits(x * y); return 0;
    case OP_FDIV:
        if (y == 0) return -1;
        *r = as_bits(x / y);
        return 0;
    case OP_FFLOOR: *r = as_bits(floor(x)); return 0;
    case OP_FSQRT:
        if (!(x >= 0)) return -1;
        *r = as_bits(sqrt(x));
        return 0;
    case OP_FNEG: *r = as_bits(-x); return 0;
    case OP_TRUNC:
        if (!(x > -9.2e18 && x < 9.2e18)) return -1;
        *r = (int64_t)x;
        return 0;
    }
    return -1;
}

static int run_code(const Stage *stage, Frame *f) {
    for (int i = 0; i < stage->ncode; i++) {
        const Instruction *c = &stage->code[i];
        int64_t a = f[c->a], b = f[c->b], r = a;
        int bad = 0;
        switch (c->op) {
        case OP_MOVE: break;
        case OP_ADD: bad = __builtin_add_overflow(a, b, &r); break;
        case OP_MUL: bad = __builtin_mul_overflow(a, b, &r); break;
        case OP_MIN: r = a < b ? a : b; break;
        case OP_MAX: r = a > b ? a : b; break;
        case OP_DIV:
        case OP_MOD:
            if (b == 0 || b == -1) {
                if (b == 0)
                    return PyErr_SetString(PyExc_ZeroDivisionError,
                                           "compiled graph: a size is divided by zero"),
                           -1;
                bad = c->op == OP_DIV ? __builtin_sub_overflow((int64_t)0, a, &r) : (r = 0);
            } else r = c->op == OP_DIV ? floor_div(a, b) : a - floor_div(a, b) * b;
            break;
        default: bad = rare(c->op, a, b, &r) < 0;
        }
        if (bad)
            return PyErr_SetString(PyExc_OverflowError,
                                   "compiled graph: what sizes are computed to does not fit into 64 bits"),
                   -1;
        f[c->dst] = r;
    }
    return 0;
}

/* 0 for a value that the kernels can rely on, else 1 with an exception. */
static int out_of_range(const Bind *b, int64_t v, const char *what, PyObject *on_error) {
    if (v >= b->lo && v <= b->hi && v % b->divisor == 0) return 0;
    if (on_error) { /* a check of the program may have words for it */
        PyObject *said = PyObject_CallFunction(on_error, "iLi", -2, (long long)v, b->dst);
        if (!said) return 1;
        Py_DECREF(said);
    }
    PyErr_Format(PyExc_RuntimeError,
                 "compiled graph: %s %d has %s %lld, it was compiled for values from %lld to %lld that are "
                 "multiples of %lld",
                 what, b->source,
                 b->what == BIND_SIZE         ? "a size of"
                     : b->what == BIND_STRIDE ? "a stride of"
                                              : "the value",
                 (long long)v, (long long)b->lo, (long long)b->hi, (long long)b->divisor);
    return 1;
}

/* Symbols of a stage from its sources; -1 with an exception. */
static int bind(const Stage *stage, Frame *f, PyObject *const *sources, const char *what,
                PyObject *on_error) {
    for (int i = 0; i < stage->nbinds; i++) {
        const Bind *b = &stage->binds[i];
        PyObject *x = sources[b->source];
        PyArrayObject *a = array_of(x);
        int64_t v;
        if (b->what == BIND_VALUE) {
            PyObject *number = PyNumber_Index(x);
            if (!number) return -1;
            v = PyLong_AsLongLong(number);
            Py_DECREF(number);
            if (v == -1 && PyErr_Occurred()) return -1;
        } else {
            if (!a || PyArray_NDIM(a) <= b->index) {
                PyErr_Format(PyExc_RuntimeError,
                             "compiled graph: %s %d must be a tensor of more than %d dimensions with data",
                             what, b->source, b->index);
                return -1;
            }
            v = b->what == BIND_SIZE ? PyArray_DIM(a, b->index) : PyArray_STRIDE(a, b->index) / b->item;
        }
        if (out_of_range(b, v, what, on_error)) return -1;
        f[b->dst] = v;
    }
    return run_code(stage, f);
}

/* The input's array in the layout the kernels were made for; `keep` gets a reference when it had to be made.
 */
static PyArrayObject *input_array(Call *c, int k, PyObject *tensor, PyObject **keep) {
    const Layout *l = &c->g->slots[c->g->input_slot[k]].layout;
    PyArrayObject *array = array_of(tensor);
    if (array && matches(array, l, c->f)) return array;
    if (PyFloat_CheckExact(tensor) && !l->ndim &&
        l->descr->type_num == NPY_DOUBLE) { /* a number of the program */
        *keep = PyArray_SimpleNew(0, NULL, NPY_DOUBLE);
        if (*keep) *(double *)PyArray_DATA((PyArrayObject *)*keep) = PyFloat_AS_DOUBLE(tensor);
        return (PyArrayObject *)*keep;
    }
    if (PyArray_Check(tensor)) {
        PyObject *wrapped = flb_api->from_array(tensor);
        PyArrayObject *found = wrapped ? input_array(c, k, wrapped, keep) : NULL;
        if (found && !*keep) *keep = Py_NewRef((PyObject *)found);
        Py_XDECREF(wrapped);
        return found;
    }
    PyObject *shape = PyTuple_New(l->ndim), *strides = PyTuple_New(l->ndim), *made = NULL;
    for (int i = 0; shape && strides && i < l->ndim; i++) {
        PyTuple_SET_ITEM(shape, i, PyLong_FromLongLong(c->f[l->at + i]));
        PyTuple_SET_ITEM(strides, i, PyLong_FromLongLong(c->f[l->at + l->ndim + i]));
    }
    if (shape && strides && !PyErr_Occurred())
        made = PyObject_CallFunction(c->g->on_mismatch, "iOOO", k, tensor, shape,
                                     strides); /* an ndarray, or an exception */
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    if (!made) return NULL;
    if (!PyArray_Check(made) || !matches((PyArrayObject *)made, l, c->f)) {
        PyErr_Format(PyExc_RuntimeError,
                     "compiled graph: input %d does not have the layout it was compiled for", k);
        Py_DECREF(made);
        return NULL;
    }
    *keep = made;
    return (PyArrayObject *)made;
}

/* ---- steps --------------------------------------------------------------------------------------------- */

/* Memory of the slots whose sizes are known from `stage` on. */
static int place_slots(Call *c, int stage) {
    Graph *g = c->g;
    for (int i = 0; i < g->nslots; i++) {
        const Slot *s = &g->slots[i];
        Place *p = &c->places[i];
        if (s->stage != stage) continue;
        if (s->kind == SLOT_ARENA) p->ptr = c->arena + c->f[s->at];
        else if (s->kind == SLOT_CONSTANT)
            p->ptr = PyArray_DATA((PyArrayObject *)s->constant), p->owner = Py_NewRef(s->constant);
        else if (s->kind == SLOT_OUTPUT && !(c->consumes && !stage) &&
                 !(p->owner = new_output(s, c->f, &p->ptr)))
            return -1;
    }
    return 0;
}

/* Before the steps from `begin` to `end`: drop what no step from here on touches, and make the outputs that
 * one of these touches first. */
static int turn_over(Call *c, int begin, int end) {
    Graph *g = c->g;
    for (int i = 0; i < g->nslots; i++)
        if (g->lives[i].last < begin && !g->lives[i].kept) Py_CLEAR(c->places[i].owner);
    for (int i = 0; i < g->nslots; i++) {
        const Slot *s = &g->slots[i];
        int first = g->lives[i].first;
        if (s->kind == SLOT_OUTPUT && !s->stage && first >= begin && first < end &&
            !(c->places[i].owner = new_output(s, c->f, &c->places[i].ptr)))
            return -1;
    }
    return 0;
}

/* What a native loop, or a function of NumPy's, is given: an input itself where it is all of it, since such
 * an array costs as much as a short loop. */
static PyObject *array_for_native(const Layout *l, const Frame *f, char *ptr, PyObject *owner) {
    if (owner && PyArray_CheckExact(owner) && PyArray_DATA((PyArrayObject *)owner) == ptr &&
        matches((PyArrayObject *)owner, l, f))
        return Py_NewRef(owner);
    return array_over(l, f, ptr, owner);
}

static int run_call(Call *c, Step *s) {
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
            if (!(tensors[n] = array_for_native(layout, c->f, ptr, p->owner))) goto done;
            continue;
        }
        PyObject *array = array_over(layout, c->f, ptr, p->owner);
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
        bind(&c->g->stages[s->stage], c->f, &PyTuple_GET_ITEM(fast, 0), "result", c->g->on_error) < 0)
        goto done;
    for (int i = 0; i < s->nresults; i++) {
        PyObject *t = PyTuple_GET_ITEM(fast, i);
        if (s->results[i] < 0) continue;
        if (c->g->slots[s->results[i]].kind == SLOT_VALUE) {
            Py_XSETREF(c->places[s->results[i]].owner, Py_NewRef(t));
            continue;
        }
        PyArrayObject *array = array_of(t);
        if (!array || !matches(array, &c->g->slots[s->results[i]].layout, c->f)) {
            PyErr_Format(PyExc_RuntimeError,
                         "a graph step returned %R, which does not have the layout its shape rule gave", t);
            goto done;
        }
        Place *p = &c->places[s->results[i]];
        Py_XSETREF(p->owner, Py_NewRef((PyObject *)array));
        p->ptr = PyArray_DATA(array);
    }
    status = s->stage ? place_slots(c, s->stage) : 0;
done:
    for (int i = 0; i < n; i++) Py_DECREF(tensors[i]);
    if (tensors != stack) PyMem_Free(tensors);
    Py_XDECREF(callable);
    Py_XDECREF(native);
    Py_XDECREF(result);
    Py_XDECREF(fast);
    return status;
}

/* Numbers that earlier steps computed become symbols: what depends on them is counted, and memory of these
 * sizes is taken. */
static int run_bind(Call *c, const Step *s) {
    const Stage *stage = &c->g->stages[s->stage];
    for (int i = 0; i < stage->nbinds; i++) {
        const Bind *b = &stage->binds[i];
        int64_t v;
        memcpy(&v, c->places[s->args[b->source]].ptr + c->f[s->parts[b->source].at], sizeof v);
        if (out_of_range(b, v, "number", c->g->on_error)) return -1;
        c->f[b->dst] = v;
    }
    return run_code(stage, c->f) < 0 ? -1 : place_slots(c, s->stage);
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

/* NOTE: runs without the GIL and can't fail: what it needs is allocated before. */
static void run_native(Call *c, const Step *s) {
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
    KernelCall call = {s->fn, pointers};
    flb_parallel(kernel_range, &call, f[s->total], f[s->grain]);
}

/* Memory of their own for slots that live from a step before `end` on. -1: there is none, which is reported
 * at the end of the call. Needs no GIL. */
static int take(Call *c, int end) {
    const Graph *g = c->g;
    for (; c->taken < g->nowned && g->takes[c->taken].step < end; c->taken++) {
        int slot = g->takes[c->taken].slot;
        if (!(c->places[slot].ptr = flb_api->scratch(c->f[g->slots[slot].at])))
            return c->starved = 1, c->status[0] = -1;
    }
    return 0;
}

/* Give back the memory of slots that no step from `end` on touches. */
static void give(Call *c, int end) {
    const Graph *g = c->g;
    for (; c->given < g->nowned && g->gives[c->given].step < end; c->given++) {
        Place *p = &c->places[g->gives[c->given].slot];
        flb_api->free(p->ptr);
        p->ptr = NULL;
    }
}

/* Steps that don't depend on one another, each made by one thread; what they report is written down as if
 * they had run in turn. */
typedef struct {
    Call *c;
    int first;
    int64_t (*status)[STATUS_WORDS];
    double *seconds;
} Together;

static int64_t monotonic(void) {
    struct timespec t = {0};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static double now(void) {
    struct timespec t = {0};
    clock_gettime(flb_timing, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void run_member(void *context, int64_t begin, int64_t end) {
    Together *t = context;
    char *pointers[MOST_POINTERS];
    for (int64_t k = begin; k < end; k++) {
        Call own = *t->c;
        own.pointers = pointers;
        memset(own.status, 0, sizeof own.status);
        double start = t->seconds ? now() : 0;
        run_native(&own, &t->c->g->steps[t->first + k]);
        memcpy(t->status[k], own.status, sizeof own.status);
        if (t->seconds) t->seconds[k] = now() - start;
    }
}

/* The step, or all that run beside it; how many that are, or all of the graph's when there is no memory.
 * NOTE: as run_native. */
static int run_next(Call *c, int i, double *seconds) {
    int n = c->g->together[i] > 1 ? c->g->together[i] : 1;
    if (take(c, i + n) < 0) return c->g->nsteps;
    if (n == 1) run_native(c, &c->g->steps[i]);
    else {
        int64_t status[MOST_TOGETHER][STATUS_WORDS];
        Together t = {c, i, status, seconds};
        flb_parallel(run_member, &t, n, 1);
        for (int k = 0; k < n; k++)
            if (status[k][0]) memcpy(c->status, status[k], sizeof c->status);
    }
    give(c, i + n);
    return n;
}

#define WANTS_GIL(step) ((step).kind == STEP_CALL || (step).kind == STEP_BIND)

/* How many steps ran, -1 with an exception. */
static int run_step(Call *c, int i, double *seconds) {
    Step *s = &c->g->steps[i];
    int n;
    if (WANTS_GIL(*s)) {
        if (take(c, i + 1) < 0) return c->g->nsteps;
        int failed = (s->kind == STEP_CALL ? run_call(c, s) : run_bind(c, s)) < 0;
        give(c, i + 1);
        return failed ? -1 : 1;
    }
    if (c->g->light) return run_next(c, i, seconds);
    Py_BEGIN_ALLOW_THREADS n = run_next(c, i, seconds);
    Py_END_ALLOW_THREADS return n;
}

/* Steps side by side share the time that they took together in proportion to what each took on its thread. */
static int run_timed(Call *c, int begin, int end) {
    Graph *g = c->g;
    if (!g->seconds && !(g->seconds = PyMem_Calloc(g->nsteps + 1, sizeof(double))))
        return PyErr_NoMemory(), -1;
    for (int i = begin, n; i < end && !c->status[0]; i += n) {
        double each[MOST_TOGETHER] = {0}, sum = 0, start = now();
        if ((n = run_step(c, i, each)) < 0) return -1;
        if (c->starved) break;
        double whole = now() - start;
        for (int k = 0; k < n; k++) sum += each[k];
        for (int k = 0; k < n; k++) g->seconds[i + k] += sum > 0 ? whole * each[k] / sum : whole / n;
    }
    return 0;
}

/* As run_range, each step an event. Steps side by side are one. */
static int run_recorded(Call *c, int begin, int end) {
    for (int i = begin, n; i < end && !c->status[0]; i += n) {
        int64_t start = monotonic();
        if ((n = run_step(c, i, NULL)) < 0) return -1;
        if (c->starved) break;
        flb_api->event_step(i, n, start, monotonic());
    }
    return 0;
}

static int run_range(Call *c, int begin, int end) {
    Graph *g = c->g;
    if (*flb_api->events) return run_recorded(c, begin, end);
    if (flb_timing) return run_timed(c, begin, end);
    if (!g->has_call) {
        if (g->light) {
            for (int i = begin; i < end && !c->status[0];) i += run_next(c, i, NULL);
        } else {
            Py_BEGIN_ALLOW_THREADS for (int i = begin; i < end && !c->status[0];) i += run_next(c, i, NULL);
            Py_END_ALLOW_THREADS
        }
        return 0;
    }
    for (int i = begin; i < end && !c->status[0];) { /* after a failure sizes that follow would be wrong */
        if (WANTS_GIL(g->steps[i]) || g->light) {
            int n = run_step(c, i, NULL);
            if (n < 0) return -1;
            i += n;
            continue;
        }
        Py_BEGIN_ALLOW_THREADS while (i < end && !WANTS_GIL(g->steps[i]) && !c->status[0]) i +=
            run_next(c, i, NULL);
        Py_END_ALLOW_THREADS
    }
    return 0;
}

static int run_steps(Call *c) {
    Graph *g = c->g;
    if (!c->consumes) return run_range(c, 0, g->nsteps);
    for (int begin = 0, end; begin < g->nsteps || !begin; begin = end) {
        for (end = begin + 1; end < g->nsteps && !g->stops[end]; end++);
        if (turn_over(c, begin, end) < 0) return -1;
        if (end > g->nsteps) break; /* there is none */
        if (run_range(c, begin, end) < 0) return -1;
        if (c->starved) break;
    }
    return 0;
}

static PyObject *output_array(Call *c, const Output *o) {
    Place *p = &c->places[o->slot];
    return o->whole ? Py_NewRef(p->owner) : array_over(&o->layout, c->f, p->ptr + c->f[o->at], p->owner);
}

static PyObject *make_output(Call *c, const Output *o, PyObject *const *args) {
    if (o->kind == OUT_INPUT) return Py_NewRef(args[o->slot]);
    if (o->kind == OUT_CONSTANT) return Py_NewRef(o->constant);
    if (o->kind == OUT_NUMBER) return PyLong_FromLongLong(c->f[o->at]);
    if (o->kind == OUT_VALUE) {
        PyObject *owner = c->places[o->slot].owner;
        return Py_NewRef(owner ? owner : Py_None);
    }
    PyObject *array = output_array(c, o), *value = array ? flb_api->from_array(array) : NULL;
    Py_XDECREF(array);
    return value;
}

static int is_returned(const Graph *g, int k) {
    for (int i = 0; i < g->noutputs; i++)
        if (g->outputs[i].kind == OUT_INPUT && g->outputs[i].slot == k) return 1;
    return 0;
}

static PyObject *given(Call *c, const Given *item) {
    const Output *outputs = c->g->outputs;
    PyObject *array = output_array(c, &outputs[item->output]), *flag = NULL, *value = NULL;
    if (array && (item->flag < 0 || (flag = output_array(c, &outputs[item->flag]))))
        value = flb_as_given(item, (PyArrayObject *)array, (PyArrayObject *)flag);
    Py_XDECREF(array);
    Py_XDECREF(flag);
    return value;
}

static PyObject *all_given(Call *c, const Wanted *wanted) {
    if (!wanted->packed) return given(c, &wanted->items[0]);
    PyObject *tuple = PyTuple_New(wanted->n);
    for (int i = 0; tuple && i < wanted->n; i++) {
        PyObject *value = given(c, &wanted->items[i]);
        if (value) PyTuple_SET_ITEM(tuple, i, value);
        else Py_CLEAR(tuple);
    }
    return tuple;
}

/* The list of the outputs, or what is wanted of them. */
static PyObject *outputs(Call *c, const Wanted *wanted, PyObject *const *args) {
    Graph *g = c->g;
    if (wanted) return all_given(c, wanted);
    PyObject *list = PyList_New(g->noutputs);
    for (int i = 0; list && i < g->noutputs; i++) {
        PyObject *value = make_output(c, &g->outputs[i], args);
        if (value) PyList_SET_ITEM(list, i, value);
        else Py_CLEAR(list);
    }
    return list;
}

/* The outputs. `own`: args, when the call may drop them. */
static PyObject *launched(Graph *g, PyObject *const *args, PyObject **own, const Wanted *wanted) {
    Place few_places[48];
    Frame few_numbers[192];
    char *few_pointers[64];
    Call c = {.g = g, .f = g->frame, .places = few_places, .pointers = few_pointers, .consumes = own != NULL};
    if (g->nslots > 48 && !(c.places = PyMem_Malloc(g->nslots * sizeof(Place)))) return PyErr_NoMemory();
    if (g->widest > 64 && !(c.pointers = PyMem_Malloc(g->widest * sizeof(char *)))) {
        if (c.places != few_places) PyMem_Free(c.places);
        return PyErr_NoMemory();
    }
    memset(c.places, 0, g->nslots * sizeof(Place));
    PyObject *result = NULL, *keep_list = NULL;

    if (flb_api->use_allocator() < 0) goto done;
    if (g->dynamic) {
        Frame *own = g->nframe > 192 ? PyMem_Malloc(g->nframe * sizeof(Frame)) : few_numbers;
        if (!own) {
            PyErr_NoMemory();
            goto done;
        }
        c.f = own;
        memcpy(c.f, g->frame, g->nframe * sizeof(Frame));
        if (bind(&g->stages[0], c.f, args, "input", NULL) < 0) goto done;
    }
    for (int k = 0; k < g->ninputs; k++) {
        if (g->input_slot[k] < 0) continue;
        PyObject *keep = NULL;
        PyArrayObject *array = input_array(&c, k, args[k], &keep);
        if (!array) goto done;
        if (keep) {
            if (!keep_list && !(keep_list = PyList_New(0))) goto done;
            int bad = PyList_Append(keep_list, keep);
            Py_DECREF(keep);
            if (bad) goto done;
        }
        c.places[g->input_slot[k]].ptr = PyArray_DATA(array);
        c.places[g->input_slot[k]].owner = Py_NewRef((PyObject *)array);
    }
    for (int k = 0; own && k < g->ninputs; k++)
        if (!is_returned(g, k)) Py_CLEAR(own[k]);
    if (c.f[g->arena] && !(c.arena = flb_api->scratch(c.f[g->arena]))) {
        PyErr_NoMemory();
        goto done;
    }
    int ran = place_slots(&c, 0) < 0 ? -1 : run_steps(&c);
    flb_floating_note(flb_api->floating()); /* the caller may clear the flags */
    if (ran < 0) goto done;
    if (c.status[0]) {
        PyObject *r = PyObject_CallFunction(g->on_error, "LLL", (long long)c.status[0],
                                            (long long)c.status[1], (long long)c.status[2]);
        if (r) {
            Py_DECREF(r);
            PyErr_SetString(PyExc_IndexError, "index out of range in a compiled graph");
        }
        goto done;
    }
    result = outputs(&c, wanted, args);
done:
    give(&c, INT_MAX);
    for (int i = 0; i < g->nslots; i++) Py_XDECREF(c.places[i].owner);
    if (c.places != few_places) PyMem_Free(c.places);
    if (c.pointers != few_pointers) PyMem_Free(c.pointers);
    if (c.f != g->frame && c.f != few_numbers) PyMem_Free(c.f);
    flb_api->free(c.arena);
    Py_XDECREF(keep_list);
    return result;
}

static PyObject *run(Graph *g, PyObject *const *args, PyObject **own, const Wanted *wanted) {
    if (!*flb_api->events) return launched(g, args, own, wanted);
    FlbOpen open;
    flb_api->event_begin(&open, EVENT_GRAPH, g->info ? g->info : (PyObject *)Py_TYPE(g));
    PyObject *result = launched(g, args, own, wanted);
    flb_api->event_end(&open);
    return result;
}

PyObject *flb_graph_given(Graph *g, PyObject *const *args, const Wanted *wanted) {
    return run(g, args, NULL, wanted);
}

PyObject *flb_graph_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Graph *g = (Graph *)self;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    if (nargs != g->ninputs || (kwnames && PyTuple_GET_SIZE(kwnames))) {
        PyErr_Format(PyExc_TypeError, "compiled graph takes %d positional tensors, got %zd", g->ninputs,
                     nargs);
        return NULL;
    }
    return run(g, args, NULL, NULL);
}

PyObject *flb_graph_consume(PyObject *self, PyObject *list) {
    Graph *g = (Graph *)self;
    if (!PyList_Check(list) || PyList_GET_SIZE(list) != g->ninputs)
        return PyErr_Format(PyExc_TypeError, "compiled graph consumes a list of %d tensors", g->ninputs),
               NULL;
    PyObject **own = PyMem_Calloc(g->ninputs + 1, sizeof(PyObject *)), *result = NULL;
    if (!own) return PyErr_NoMemory();
    for (int k = 0; k < g->ninputs; k++) own[k] = Py_NewRef(PyList_GET_ITEM(list, k));
    if (PyList_SetSlice(list, 0, g->ninputs, NULL) == 0 && (g->light || flb_graph_lifetimes(g) == 0))
        result = run(g, own, g->light ? NULL : own, NULL);
    for (int k = 0; k < g->ninputs; k++) Py_XDECREF(own[k]);
    PyMem_Free(own);
    return result;
}

/* ---- module -------------------------------------------------------------------------------------------- */

/* launch(address, arrays, total, grain=..., params=()): one kernel over ndarrays, for tests and tools;
 * returns the status words. */
static PyObject *launch(PyObject *self, PyObject *args) {
    unsigned long long address;
    PyObject *arrays, *params = NULL;
    long long total, grain = 1LL << 62;
    if (!PyArg_ParseTuple(args, "KO!L|LO!", &address, &PyList_Type, &arrays, &total, &grain, &PyTuple_Type,
                          &params))
        return NULL;
    if (!(arrays = PyList_AsTuple(arrays)))
        return NULL; /* another thread may change the list while the kernel runs */
    Py_ssize_t n = PyTuple_GET_SIZE(arrays), m = params ? PyTuple_GET_SIZE(params) : 0;
    char **pointers = PyMem_Calloc(n + 2, sizeof(char *));
    int64_t status[STATUS_WORDS] = {0}, *numbers = PyMem_Calloc(m + 1, sizeof(int64_t));
    PyObject *result = NULL;
    if (!pointers || !numbers) {
        PyErr_NoMemory();
        goto done;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *a = PyTuple_GET_ITEM(arrays, i);
        if (!PyArray_Check(a)) {
            PyErr_SetString(PyExc_TypeError, "launch: ndarrays are expected");
            goto done;
        }
        pointers[i] = PyArray_DATA((PyArrayObject *)a);
    }
    for (Py_ssize_t i = 0; i < m; i++) numbers[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(params, i));
    if (PyErr_Occurred()) goto done;
    pointers[n] = (char *)status;
    pointers[n + 1] = (char *)numbers;
    KernelCall call = {(KernelFn)(uintptr_t)address, pointers};
    Py_BEGIN_ALLOW_THREADS flb_parallel(kernel_range, &call, total, grain);
    Py_END_ALLOW_THREADS result =
        Py_BuildValue("LLL", (long long)status[0], (long long)status[1], (long long)status[2]);
done:
    PyMem_Free(numbers);
    PyMem_Free(pointers);
    Py_DECREF(arrays);
    return result;
}

static PyObject *get_num_threads(PyObject *self, PyObject *unused) {
    return PyLong_FromLong(flb_get_num_threads());
}

static PyObject *set_num_threads(PyObject *self, PyObject *arg) {
    if (!PyLong_Check(arg) || PyBool_Check(arg))
        return PyErr_Format(PyExc_RuntimeError, "set_num_threads expects an int, but got %s",
                            Py_TYPE(arg)->tp_name);
    long n = PyLong_AsLong(arg);
    if (n == -1 && PyErr_Occurred()) return NULL;
    if (n < 1) {
        PyErr_SetString(PyExc_RuntimeError, "set_num_threads expects a positive integer");
        return NULL;
    }
    flb_set_num_threads((int)(n > 1 << 16 ? 1 << 16 : n));
    Py_RETURN_NONE;
}

static PyObject *time_steps(PyObject *self, PyObject *arg) {
    int before = flb_timing;
    long clock = arg == Py_None ? 0 : PyLong_AsLong(arg);
    if (clock == -1 && PyErr_Occurred()) return NULL;
    struct timespec t;
    if (clock < 0 || clock > INT_MAX || (clock && clock_gettime((clockid_t)clock, &t)))
        return PyErr_SetString(PyExc_ValueError, "no such clock"), NULL;
    flb_timing = (int)clock;
    return before ? PyLong_FromLong(before) : Py_NewRef(Py_None);
}

PyObject *flb_arrays_at(PyObject *self, PyObject *args); /* containers.c */

static PyMethodDef functions[] = {
    {"arrays_at", flb_arrays_at, METH_VARARGS,
     "arrays_at(words, dtype) -> list: new arrays of the elements that lie at each row (address, owner, "
     "sizes, "
     "strides)"},
    {"operation_names", flb_operation_names, METH_NOARGS,
     "operation_names() -> names of the operations of lists, by number"},
    {"sweep_operations", flb_sweep_operations, METH_VARARGS,
     "sweep_operations(list, base, parts, values, cotangents, steps, programs, makes, constants): hyper-dual "
     "numbers of a list of operations"},
    {"loops_worth", flb_loops_worth, METH_O,
     "loops_worth(nanoseconds) -> the number before: how long what is left of a native loop has to take to "
     "be given to other threads"},
    {"time_steps", time_steps, METH_O,
     "time_steps(clock or None) -> what it was: the clock (a number of the time module's) by which launches "
     "add to their graph's step_seconds"},
    {"use_blas", flb_use_blas, METH_VARARGS,
     "use_blas(sgemm, dgemm, get_num_threads, set_num_threads): addresses in the BLAS library; it is set to "
     "one thread"},
    {"gemm_address", flb_gemm_address, METH_O,
     "gemm_address(f64): the function that makes products of float64 or float32, with Fortran's convention"},
    {"matmul", (PyCFunction)(void (*)(void))flb_matmul, METH_FASTCALL,
     "matmul(a, b) -> ndarray, split over the pool; None unless both are float32 or float64 matrices (or "
     "stacks) that BLAS reads in place"},
    {"packed_elements", flb_packed_elements, METH_VARARGS,
     "packed_elements(type, turned, m, n, k) -> (elements, way): of the right operand of products (m, k) (k, "
     "n) of float32 (0), float64 or bfloat16, packed once"},
    {"bf16_products", flb_bf16_products, METH_NOARGS,
     "bf16_products() -> int: how products of bfloat16 are made: 0 in float32, 1 by AVX512_BF16, 2 by AMX"},
    {"default_engine", flb_default_engine, METH_NOARGS,
     "default_engine() -> ndarray: the state of the default generator, see random.c"},
    {"use_lapack", flb_use_lapack, METH_VARARGS,
     "use_lapack(type, wide, addresses): LAPACK's routines for an element type, as of lapack.h"},
    {"element_functions", flb_element_functions, METH_NOARGS,
     "element_functions(): the names that element_function knows"},
    {"element_function", flb_element_function, METH_VARARGS,
     "element_function(name, ufunc): a ufunc of float32 and float64 with the bits of compiled graphs; "
     "complex numbers go to ufunc, if given"},
    {"pair_function", flb_pair_function, METH_VARARGS,
     "pair_function(name, ufunc): a ufunc of two operands of float32 and float64 (csrc/kernels/pairs.c); "
     "some call the loop of ufunc"},
    {"use_ufunc", flb_use_ufunc, METH_VARARGS,
     "use_ufunc(slot, ufunc, types): the loop of a ufunc that the kernel \"ufunc\" runs for a slot"},
    {"launch", launch, METH_VARARGS,
     "launch(address, arrays, total, grain, params) -> (code, value, size): run one kernel over ndarrays"},
    {"emit_configure", flb_emit_configure, METH_VARARGS,
     "emit_configure(functions, machines, triple, layout): addresses in LLVM's library, see emit.c"},
    {"emit_start", flb_emit_start, METH_O, "emit_start(text) -> job: generate code on another thread"},
    {"emit_load", flb_emit_load, METH_NOARGS, "emit_load() -> (jobs that wait or run, threads at most)"},
    {"emit_finish", flb_emit_finish, METH_O,
     "emit_finish(job) -> object code, None when no thread can be had; RuntimeError in LLVM's words"},
    {"emit_drain", flb_emit_drain, METH_NOARGS, "wait until no thread generates code"},
    {"emit_forked", flb_emit_forked, METH_NOARGS, "begin anew in the child of a fork"},
    {"load_objects", flb_load_objects, METH_VARARGS,
     "load_objects(objects, names) -> addresses: link relocatable object code, each object for a tuple of "
     "its functions; None for what only LLVM can link"},
    {"get_num_threads", get_num_threads, METH_NOARGS,
     "get_num_threads($module, /)\n--\n\nThreads that kernels are split over."},
    {"set_num_threads", set_num_threads, METH_O,
     "set_num_threads($module, n, /)\n--\n\nSet the number of threads that kernels are split over."},
    {NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "flambeau._runtime", .m_size = -1,
                                        .m_doc = "Thread pool and the launch of compiled graphs.",
                                        .m_methods = functions};

PyMODINIT_FUNC PyInit__runtime(void) {
    import_array();
    PyObject *core = PyImport_ImportModule("flambeau._C");
    if (!core) return NULL;
    Py_DECREF(core);
    flb_api = PyCapsule_Import(FLB_API_CAPSULE, 0);
    if (!flb_api) return NULL;
    if (PyType_Ready(&FlbGraph_Type) < 0 || PyType_Ready(&FlbLoop_Type) < 0 ||
        PyType_Ready(&FlbLoopWith_Type) < 0 || PyType_Ready(&FlbNumpyCall_Type) < 0 ||
        PyType_Ready(&FlbArrayView_Type) < 0)
        return NULL;
    PyObject *m = PyModule_Create(&definition);
    if (!m) return NULL;
    if (flb_init_writing(m) < 0 || PyType_Ready(&FlbArrayResult_Type) < 0 ||
        PyModule_AddObjectRef(m, "Graph", (PyObject *)&FlbGraph_Type) < 0 ||
        PyModule_AddObjectRef(m, "Loop", (PyObject *)&FlbLoop_Type) < 0 ||
        PyModule_AddObjectRef(m, "NumpyCall", (PyObject *)&FlbNumpyCall_Type) < 0 ||
        PyModule_AddObjectRef(m, "ArrayView", (PyObject *)&FlbArrayView_Type) < 0 || flb_add_kernels(m) < 0) {
        Py_DECREF(m);
        return NULL;
    }
    return m;
}
