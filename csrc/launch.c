/* flambeau._runtime: the launch of a compiled graph as one call.
 *
 * A Graph is a table of slots (places where data lives) and a list of steps over them. Slots: an input, a piece of the arena, an output
 * allocated at each call, a constant, an object that a Python step returned. Steps: a kernel over a parallel range, a batch of matrix
 * products, a Python callable on tensors. The arena is taken from the caching
 * allocator for the time of a call, so graphs that run one after the other share memory, and concurrent calls don't.
 *
 * Invariants: slot numbers and shapes are checked when the Graph is made, inputs (dtype, shape, strides) at each call, so that
 * kernels need no checks. A kernel reports a bad index in the status words; the call then raises through `on_error`. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <numpy/arrayobject.h>
#include <stdatomic.h>
#include "flambeau.h"
#include "runtime.h"

static FlbApi *api;

enum { SLOT_INPUT, SLOT_ARENA, SLOT_OUTPUT, SLOT_CONSTANT, SLOT_OBJECT };
enum { STEP_KERNEL, STEP_GEMM, STEP_CALL };
enum { OUT_SLOT, OUT_INPUT, OUT_CONSTANT };
#define STATUS_WORDS 4

typedef struct {
    int ndim;
    npy_intp *shape, *strides;  /* strides in bytes */
    PyArray_Descr *descr;
} Layout;

typedef struct {
    Py_ssize_t offset;          /* bytes */
    Layout layout;
} Part;

typedef struct {
    int kind;
    Py_ssize_t index;           /* input number */
    Py_ssize_t offset;          /* bytes: into the arena; of the first element in an output's memory */
    Py_ssize_t nbytes;
    PyObject *constant;
    Layout layout;              /* inputs, outputs, and whatever a Python step is shown */
    int plain;                  /* an output in C order */
} Slot;

typedef void (*KernelFn)(char **args, int64_t begin, int64_t end);
typedef void (*GemmFn)(const char *, const char *, const int64_t *, const int64_t *, const int64_t *, const void *, const void *,
                       const int64_t *, const void *, const int64_t *, const void *, void *, const int64_t *);

typedef struct {
    int kind;
    int nargs;
    int *args;                  /* slots */
    KernelFn fn;
    int64_t total, grain;
    /* gemm: args are A, B, C in row-major sense; offsets in bytes; batch strides in bytes, one loop a batch dimension */
    GemmFn gemm;
    int f64, nbatch;
    char ta, tb;
    int64_t m, n, k, lda, ldb, ldc, offset[3];
    int64_t *batch;             /* nbatch x (count, A stride, B stride, C stride) */
    double alpha, beta;
    /* call: `callable` gets a tensor over a part of each of args; results go to the slots `results` */
    PyObject *callable;
    Part *parts;
    int nresults, *results;
} Step;

typedef struct {
    int kind;
    int slot;
    Layout layout;
    Py_ssize_t offset;
    int whole;                  /* the slot's own array */
    PyObject *constant;
} Output;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    int ninputs, nslots, nsteps, noutputs, has_call, light;
    int *input_slot;            /* the slot of each input, -1: not read */
    Slot *slots;
    Step *steps;
    Output *outputs;
    Py_ssize_t arena_size;
    PyObject *on_error, *on_mismatch, *info, *dict, *weakrefs;
} Graph;

/* --- building ------------------------------------------------------------------------------------------------------ */

static int parse_longs(PyObject *o, npy_intp **out, int *n) {
    PyObject *fast = PySequence_Fast(o, "a sequence of integers is expected");
    if (!fast) return -1;
    *n = (int)PySequence_Fast_GET_SIZE(fast);
    *out = PyMem_Calloc(*n + 1, sizeof(npy_intp));
    for (int i = 0; i < *n; i++) (*out)[i] = PyLong_AsSsize_t(PySequence_Fast_GET_ITEM(fast, i));
    Py_DECREF(fast);
    return PyErr_Occurred() ? -1 : 0;
}

static int parse_ints(PyObject *o, int **out, int *n) {
    npy_intp *longs;
    if (parse_longs(o, &longs, n) < 0) return -1;
    *out = PyMem_Calloc(*n + 1, sizeof(int));
    for (int i = 0; i < *n; i++) (*out)[i] = (int)longs[i];
    PyMem_Free(longs);
    return 0;
}

/* (shape, byte strides, numpy dtype) or None */
static int parse_layout(PyObject *o, Layout *l) {
    if (o == Py_None) return 0;
    PyObject *shape, *strides, *dtype;
    int n;
    if (!PyArg_ParseTuple(o, "OOO", &shape, &strides, &dtype)) return -1;
    if (parse_longs(shape, &l->shape, &l->ndim) < 0 || parse_longs(strides, &l->strides, &n) < 0) return -1;
    if (n != l->ndim) {
        PyErr_SetString(PyExc_ValueError, "shape and strides differ in length");
        return -1;
    }
    return PyArray_DescrConverter(dtype, &l->descr) == NPY_SUCCEED ? 0 : -1;
}

static void free_layout(Layout *l) {
    PyMem_Free(l->shape);
    PyMem_Free(l->strides);
    Py_XDECREF(l->descr);
}

static void graph_dealloc(Graph *g) {
    PyObject_GC_UnTrack(g);
    if (g->weakrefs) PyObject_ClearWeakRefs((PyObject *)g);
    for (int i = 0; i < g->nslots; i++) {
        Py_XDECREF(g->slots[i].constant);
        free_layout(&g->slots[i].layout);
    }
    for (int i = 0; i < g->nsteps; i++) {
        PyMem_Free(g->steps[i].args);
        PyMem_Free(g->steps[i].batch);
        PyMem_Free(g->steps[i].results);
        for (int j = 0; g->steps[i].parts && j < g->steps[i].nargs; j++) free_layout(&g->steps[i].parts[j].layout);
        PyMem_Free(g->steps[i].parts);
        Py_XDECREF(g->steps[i].callable);
    }
    for (int i = 0; i < g->noutputs; i++) {
        free_layout(&g->outputs[i].layout);
        Py_XDECREF(g->outputs[i].constant);
    }
    PyMem_Free(g->slots);
    PyMem_Free(g->steps);
    PyMem_Free(g->outputs);
    PyMem_Free(g->input_slot);
    Py_XDECREF(g->on_error);
    Py_XDECREF(g->on_mismatch);
    Py_XDECREF(g->info);
    Py_XDECREF(g->dict);
    Py_TYPE(g)->tp_free(g);
}

static int graph_traverse(Graph *g, visitproc visit, void *arg) {
    for (int i = 0; i < g->nsteps; i++) Py_VISIT(g->steps[i].callable);
    Py_VISIT(g->on_error);
    Py_VISIT(g->on_mismatch);
    Py_VISIT(g->info);
    Py_VISIT(g->dict);
    return 0;
}

static int graph_clear(Graph *g) {
    for (int i = 0; i < g->nsteps; i++) Py_CLEAR(g->steps[i].callable);
    Py_CLEAR(g->on_mismatch);
    Py_CLEAR(g->info);
    Py_CLEAR(g->dict);
    return 0;
}

/* ("input", k, layout) ("arena", offset, layout) ("output", offset, nbytes, plain, layout) ("constant", ndarray) ("object", layout) */
static int parse_slot(PyObject *o, Slot *s, Graph *g) {
    const char *kind = PyTuple_Check(o) && PyTuple_GET_SIZE(o) ? PyUnicode_AsUTF8(PyTuple_GET_ITEM(o, 0)) : NULL;
    PyObject *layout = Py_None;
    if (!kind) {
        PyErr_SetString(PyExc_TypeError, "a slot is a tuple that starts with its kind");
        return -1;
    }
    switch (kind[0]) {
    case 'i':
        s->kind = SLOT_INPUT;
        if (!PyArg_ParseTuple(o, "snO", &kind, &s->index, &layout)) return -1;
        if (s->index < 0 || s->index >= g->ninputs) {
            PyErr_SetString(PyExc_ValueError, "input number out of range");
            return -1;
        }
        g->input_slot[s->index] = (int)(s - g->slots);
        break;
    case 'a':
        s->kind = SLOT_ARENA;
        if (!PyArg_ParseTuple(o, "snO", &kind, &s->offset, &layout)) return -1;
        break;
    case 'c': {
        PyObject *array;
        s->kind = SLOT_CONSTANT;
        if (!PyArg_ParseTuple(o, "sO!", &kind, &PyArray_Type, &array)) return -1;
        s->constant = Py_NewRef(array);
        return 0;
    }
    default:
        s->kind = kind[1] == 'u' ? SLOT_OUTPUT : SLOT_OBJECT;
        if (s->kind == SLOT_OUTPUT) {
            if (!PyArg_ParseTuple(o, "snnpO", &kind, &s->offset, &s->nbytes, &s->plain, &layout)) return -1;
        } else if (!PyArg_ParseTuple(o, "sO", &kind, &layout)) return -1;
    }
    return parse_layout(layout, &s->layout);
}

static int check_slots(Graph *g, const int *slots, int n) {
    for (int i = 0; i < n; i++)
        if (slots[i] < 0 || slots[i] >= g->nslots) {
            PyErr_Format(PyExc_ValueError, "slot %d does not exist", slots[i]);
            return -1;
        }
    return 0;
}

/* ("kernel", address, slots, total, grain)
 * ("gemm", address, is_f64, (A, B, C), (offsets), ta, tb, m, n, k, lda, ldb, ldc, alpha, beta, ((count, sa, sb, sc), ...))
 * ("call", callable, slots, ((offset, layout) within each slot, ...), result slots) */
static int parse_step(PyObject *o, Step *s, Graph *g) {
    const char *kind = PyTuple_Check(o) && PyTuple_GET_SIZE(o) ? PyUnicode_AsUTF8(PyTuple_GET_ITEM(o, 0)) : NULL;
    PyObject *args, *more, *parts = NULL;
    unsigned long long address;
    if (!kind) {
        PyErr_SetString(PyExc_TypeError, "a step is a tuple that starts with its kind");
        return -1;
    }
    if (kind[0] == 'k') {
        s->kind = STEP_KERNEL;
        if (!PyArg_ParseTuple(o, "sKOLL", &kind, &address, &args, &s->total, &s->grain)) return -1;
        s->fn = (KernelFn)(uintptr_t)address;
    } else if (kind[0] == 'g') {
        PyObject *offsets, *batch;
        npy_intp *longs;
        int n, ta, tb;
        s->kind = STEP_GEMM;
        if (!PyArg_ParseTuple(o, "sKpOOCCLLLLLLddO", &kind, &address, &s->f64, &args, &offsets, &ta, &tb, &s->m, &s->n,
                              &s->k, &s->lda, &s->ldb, &s->ldc, &s->alpha, &s->beta, &batch)) return -1;
        s->gemm = (GemmFn)(uintptr_t)address;
        s->ta = (char)ta, s->tb = (char)tb;
        if (parse_longs(offsets, &longs, &n) < 0) return -1;
        for (int i = 0; i < 3 && i < n; i++) s->offset[i] = longs[i];
        PyMem_Free(longs);
        s->nbatch = (int)PySequence_Size(batch);
        s->batch = PyMem_Calloc(s->nbatch * 4 + 1, sizeof(int64_t));
        for (int i = 0; i < s->nbatch; i++) {
            PyObject *row = PySequence_GetItem(batch, i);
            if (!row || parse_longs(row, &longs, &n) < 0) return -1;
            for (int j = 0; j < 4 && j < n; j++) s->batch[i * 4 + j] = longs[j];
            PyMem_Free(longs);
            Py_DECREF(row);
        }
    } else {
        s->kind = STEP_CALL;
        if (!PyArg_ParseTuple(o, "sOOO!O", &kind, &s->callable, &args, &PyList_Type, &parts, &more)) return -1;
        Py_INCREF(s->callable);
        if (parse_ints(more, &s->results, &s->nresults) < 0 || check_slots(g, s->results, s->nresults) < 0) return -1;
        g->has_call = 1;
    }
    if (parse_ints(args, &s->args, &s->nargs) < 0) return -1;
    if (parts) {
        if (PyList_GET_SIZE(parts) != s->nargs) {
            PyErr_SetString(PyExc_ValueError, "a call step takes one part for each slot");
            return -1;
        }
        s->parts = PyMem_Calloc(s->nargs + 1, sizeof(Part));
        for (int i = 0; i < s->nargs; i++) {
            PyObject *layout;
            if (!PyArg_ParseTuple(PyList_GET_ITEM(parts, i), "nO", &s->parts[i].offset, &layout) || parse_layout(layout, &s->parts[i].layout) < 0)
                return -1;
        }
    }
    if (s->kind == STEP_GEMM && s->nargs != 3) {
        PyErr_SetString(PyExc_ValueError, "a gemm step takes three slots");
        return -1;
    }
    return check_slots(g, s->args, s->nargs);
}

/* ("slot", slot, offset, layout or None for the whole array) ("input", k) ("constant", object) */
static int parse_output(PyObject *o, Output *out, Graph *g) {
    const char *kind = PyTuple_Check(o) && PyTuple_GET_SIZE(o) ? PyUnicode_AsUTF8(PyTuple_GET_ITEM(o, 0)) : NULL;
    PyObject *x;
    if (!kind) {
        PyErr_SetString(PyExc_TypeError, "an output is a tuple that starts with its kind");
        return -1;
    }
    if (kind[0] == 's') {
        out->kind = OUT_SLOT;
        if (!PyArg_ParseTuple(o, "sinO", &kind, &out->slot, &out->offset, &x)) return -1;
        out->whole = x == Py_None;
        return check_slots(g, &out->slot, 1) < 0 ? -1 : parse_layout(x, &out->layout);
    }
    if (kind[0] == 'i') {
        out->kind = OUT_INPUT;
        if (!PyArg_ParseTuple(o, "si", &kind, &out->slot)) return -1;
        if (out->slot < 0 || out->slot >= g->ninputs) {
            PyErr_SetString(PyExc_ValueError, "input number out of range");
            return -1;
        }
        return 0;
    }
    out->kind = OUT_CONSTANT;
    if (!PyArg_ParseTuple(o, "sO", &kind, &x)) return -1;
    out->constant = Py_NewRef(x);
    return 0;
}

static PyObject *graph_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames);

static PyObject *graph_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"ninputs", "slots", "steps", "outputs", "arena_size", "on_error", "on_mismatch", "info", "light", NULL};
    PyObject *slots, *steps, *outputs, *on_error, *on_mismatch, *info = Py_None;
    int ninputs, light = 0;
    Py_ssize_t arena;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "iO!O!O!nOO|Op", names, &ninputs, &PyList_Type, &slots, &PyList_Type, &steps,
                                     &PyList_Type, &outputs, &arena, &on_error, &on_mismatch, &info, &light)) return NULL;
    Graph *g = (Graph *)type->tp_alloc(type, 0);
    if (!g) return NULL;
    g->call = graph_vectorcall;
    g->ninputs = ninputs, g->arena_size = arena, g->light = light;
    g->on_error = Py_NewRef(on_error), g->on_mismatch = Py_NewRef(on_mismatch), g->info = Py_NewRef(info);
    g->slots = PyMem_Calloc(PyList_GET_SIZE(slots) + 1, sizeof(Slot));
    g->steps = PyMem_Calloc(PyList_GET_SIZE(steps) + 1, sizeof(Step));
    g->outputs = PyMem_Calloc(PyList_GET_SIZE(outputs) + 1, sizeof(Output));
    g->input_slot = PyMem_Calloc(ninputs + 1, sizeof(int));
    for (int i = 0; i < ninputs; i++) g->input_slot[i] = -1;
    g->nslots = (int)PyList_GET_SIZE(slots);
    for (int i = 0; i < g->nslots; i++)
        if (parse_slot(PyList_GET_ITEM(slots, i), &g->slots[i], g) < 0) goto fail;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(steps); i++) {
        g->nsteps++;
        if (parse_step(PyList_GET_ITEM(steps, i), &g->steps[i], g) < 0) goto fail;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(outputs); i++) {
        g->noutputs++;
        if (parse_output(PyList_GET_ITEM(outputs, i), &g->outputs[i], g) < 0) goto fail;
    }
    return (PyObject *)g;
fail:
    Py_DECREF(g);
    return NULL;
}

/* --- running ------------------------------------------------------------------------------------------------------- */

typedef struct {
    char *ptr;
    PyObject *owner;            /* the ndarray that holds the memory; borrowed for inputs, owned for outputs and objects */
} Place;

typedef struct { KernelFn fn; char **args; } KernelCall;

static void kernel_range(void *context, int64_t begin, int64_t end) {
    KernelCall *c = context;
    c->fn(c->args, begin, end);
}

/* Matrix products are split over our own pool and BLAS runs each piece on one thread. Two pools would fight for the cores: the threads of
 * OpenBLAS spin for tens of milliseconds after a product, which costs every kernel that follows one core. So BLAS is set to one thread
 * when it is found (use_blas), for good. */
static int (*blas_get_threads)(void);
static void (*blas_set_threads)(int);
static GemmFn blas_gemm[2];     /* float32, float64 */

typedef struct {
    const Step *s;
    char *a, *b, *c;
    int64_t rows, columns;      /* pieces of one product along m and n */
} GemmCall;

#define GEMM_PIECE 1e6          /* flops that are worth a thread: some ten microseconds */
#define GEMM_SHARE 1.6e7        /* flops of a piece when there are more pieces than threads, so that a late thread costs little */

/* Piece `part` of `parts` of a side, cut at multiples of 16: [from, to). */
static void cut(int64_t side, int64_t parts, int64_t part, int64_t *from, int64_t *to) {
    int64_t step = ((side + parts - 1) / parts + 15) / 16 * 16;
    *from = part * step;
    *to = *from + step < side ? *from + step : side;
}

static void gemm_range(void *context, int64_t begin, int64_t end) {
    GemmCall *call = context;
    const Step *s = call->s;
    float alpha_f = (float)s->alpha, beta_f = (float)s->beta;
    const void *alpha = s->f64 ? (const void *)&s->alpha : &alpha_f, *beta = s->f64 ? (const void *)&s->beta : &beta_f;
    int64_t item = s->f64 ? 8 : 4, parts = call->rows * call->columns;
    for (int64_t i = begin; i < end; i++) {
        char *a = call->a, *b = call->b, *c = call->c;
        int64_t rest = i / parts, m0, m1, n0, n1;
        cut(s->m, call->rows, i % parts / call->columns, &m0, &m1);
        cut(s->n, call->columns, i % call->columns, &n0, &n1);
        if (m0 >= m1 || n0 >= n1) continue;
        for (int d = s->nbatch - 1; d >= 0; d--) {
            const int64_t *row = s->batch + 4 * d;
            int64_t at = rest % row[0];
            rest /= row[0];
            a += at * row[1], b += at * row[2], c += at * row[3];
        }
        a += m0 * (s->ta == 'N' ? s->lda : 1) * item;
        b += n0 * (s->tb == 'N' ? 1 : s->ldb) * item;
        c += (m0 * s->ldc + n0) * item;
        int64_t m = m1 - m0, n = n1 - n0;
        /* BLAS is column-major: C^T = B^T A^T */
        s->gemm(&s->tb, &s->ta, &n, &m, &s->k, alpha, b, &s->ldb, a, &s->lda, beta, c, &s->ldc);
    }
}

static void run_gemm(const Step *s, char *a, char *b, char *c) {
    GemmCall call = {s, a + s->offset[0], b + s->offset[1], c + s->offset[2], 1, 1};
    int64_t count = 1, threads = flb_get_num_threads();
    for (int d = 0; d < s->nbatch; d++) count *= s->batch[4 * d];
    double flops = 2.0 * s->m * s->n * s->k;
    if (threads == 1 || flops * count < 2 * GEMM_PIECE) {
        gemm_range(&call, 0, count);
        return;
    }
    int64_t parts = 1;
    if (count < 4 * threads && flops >= 2 * GEMM_PIECE) {
        parts = (int64_t)(flops / GEMM_SHARE);
        if (parts * count > 4 * threads) parts = 4 * threads / count;
        if (parts * count < threads) parts = (threads + count - 1) / count;
        double most = flops / GEMM_PIECE;
        if (parts > most) parts = (int64_t)most;
    }
    /* Each piece packs its rows of A and its columns of B: the grid with the least of both. */
    double least = 0;
    for (int64_t rows = 1; rows <= parts; rows++) {
        if (parts % rows) continue;
        double packed = (double)s->m * (parts / rows) + (double)s->n * rows;
        if (rows == 1 || packed < least) least = packed, call.rows = rows, call.columns = parts / rows;
    }
    int64_t grain = flops / parts < GEMM_PIECE ? (int64_t)(GEMM_PIECE * parts / flops) + 1 : 1;
    flb_parallel(gemm_range, &call, count * parts, grain);
}

static PyObject *array_over(const Layout *l, char *ptr, PyObject *owner) {
    Py_INCREF(l->descr);
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, l->descr, l->ndim, l->shape, l->strides, ptr, NPY_ARRAY_WRITEABLE, NULL);
    if (array && owner && PyArray_SetBaseObject((PyArrayObject *)array, Py_NewRef(owner)) < 0) Py_CLEAR(array);
    return array;
}

/* A fresh output array; `ptr` is its first element. */
static PyObject *new_output(const Slot *s, char **ptr) {
    const Layout *l = &s->layout;
    Py_INCREF(l->descr);
    if (s->plain) {
        PyObject *array = PyArray_NewFromDescr(&PyArray_Type, l->descr, l->ndim, l->shape, NULL, NULL, 0, NULL);
        if (array) *ptr = PyArray_DATA((PyArrayObject *)array);
        return array;
    }
    Py_DECREF(l->descr);
    npy_intp n = s->nbytes ? s->nbytes : 1;
    PyObject *memory = PyArray_SimpleNew(1, &n, NPY_UINT8);
    if (!memory) return NULL;
    *ptr = (char *)PyArray_DATA((PyArrayObject *)memory) + s->offset;
    PyObject *array = array_over(l, *ptr, memory);
    Py_DECREF(memory);
    return array;
}

static int matches(PyArrayObject *a, const Layout *l) {
    if (PyArray_NDIM(a) != l->ndim) return 0;
    if (PyArray_DESCR(a) != l->descr && !PyArray_EquivTypes(PyArray_DESCR(a), l->descr)) return 0;
    const npy_intp *shape = PyArray_DIMS(a), *strides = PyArray_STRIDES(a);
    int empty = 0, strided = 1;
    for (int i = 0; i < l->ndim; i++) {
        if (shape[i] != l->shape[i]) return 0;
        if (!shape[i]) empty = 1;
        if (strides[i] != l->strides[i] && shape[i] > 1) strided = 0;
    }
    return strided || empty;
}

/* The input's array in the layout the kernels were made for; `keep` gets a reference when it had to be made. */
static PyArrayObject *input_array(Graph *g, int k, PyObject *tensor, PyObject **keep) {
    const Layout *l = &g->slots[g->input_slot[k]].layout;
    if (PyObject_TypeCheck(tensor, api->tensor_type)) {
        PyArrayObject *array = (PyArrayObject *)((FlbTensor *)tensor)->array;
        if (array && matches(array, l)) return array;
    }
    PyObject *made = PyObject_CallFunction(g->on_mismatch, "iO", k, tensor);  /* an ndarray, or an exception */
    if (!made) return NULL;
    if (!PyArray_Check(made) || !matches((PyArrayObject *)made, l)) {
        PyErr_Format(PyExc_RuntimeError, "compiled graph: input %d does not have the layout it was compiled for", k);
        Py_DECREF(made);
        return NULL;
    }
    *keep = made;
    return (PyArrayObject *)made;
}

static int run_call(Graph *g, const Step *s, Place *places) {
    PyObject *stack[64], **tensors = s->nargs <= 64 ? stack : PyMem_Malloc(s->nargs * sizeof(PyObject *));
    int n = 0, status = -1;
    PyObject *result = NULL, *fast = NULL;
    for (; n < s->nargs; n++) {
        Place *p = &places[s->args[n]];
        PyObject *array = array_over(&s->parts[n].layout, p->ptr + s->parts[n].offset, p->owner);
        tensors[n] = array ? api->from_array(array) : NULL;
        Py_XDECREF(array);
        if (!tensors[n]) goto done;
    }
    result = PyObject_Vectorcall(s->callable, tensors, n, NULL);
    if (!result) goto done;
    fast = PySequence_Fast(result, "a graph step returns a sequence of tensors");
    if (!fast) goto done;
    if (PySequence_Fast_GET_SIZE(fast) != s->nresults) {
        PyErr_Format(PyExc_RuntimeError, "a graph step returned %zd tensors, %d expected", PySequence_Fast_GET_SIZE(fast), s->nresults);
        goto done;
    }
    for (int i = 0; i < s->nresults; i++) {
        PyObject *t = PySequence_Fast_GET_ITEM(fast, i);
        PyObject *array = PyObject_TypeCheck(t, api->tensor_type) ? ((FlbTensor *)t)->array : NULL;
        const Layout *l = &g->slots[s->results[i]].layout;
        if (!array || !matches((PyArrayObject *)array, l)) {
            PyErr_Format(PyExc_RuntimeError, "a graph step returned %R, which does not have the layout its shape rule gave", t);
            goto done;
        }
        Place *p = &places[s->results[i]];
        Py_XSETREF(p->owner, Py_NewRef(array));
        p->ptr = PyArray_DATA((PyArrayObject *)array);
    }
    status = 0;
done:
    for (int i = 0; i < n; i++) Py_DECREF(tensors[i]);
    if (tensors != stack) PyMem_Free(tensors);
    Py_XDECREF(result);
    Py_XDECREF(fast);
    return status;
}

static void run_native(const Step *s, Place *places, int64_t *status) {
    if (s->kind == STEP_GEMM) {
        run_gemm(s, places[s->args[0]].ptr, places[s->args[1]].ptr, places[s->args[2]].ptr);
        return;
    }
    char *stack[64], **pointers = s->nargs < 64 ? stack : malloc((s->nargs + 1) * sizeof(char *));
    for (int i = 0; i < s->nargs; i++) pointers[i] = places[s->args[i]].ptr;
    pointers[s->nargs] = (char *)status;
    KernelCall call = {s->fn, pointers};
    flb_parallel(kernel_range, &call, s->total, s->grain);
    if (pointers != stack) free(pointers);
}

static PyObject *graph_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Graph *g = (Graph *)self;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    if (nargs != g->ninputs || (kwnames && PyTuple_GET_SIZE(kwnames))) {
        PyErr_Format(PyExc_TypeError, "compiled graph takes %d positional tensors, got %zd", g->ninputs, nargs);
        return NULL;
    }
    Place small[48], *places = small;
    if (g->nslots > 48) places = PyMem_Malloc(g->nslots * sizeof(Place));
    memset(places, 0, g->nslots * sizeof(Place));
    int64_t status[STATUS_WORDS] = {0};
    PyObject *result = NULL, *keep_list = NULL;
    char *arena = NULL;
    int failed = 0;

    if (api->use_allocator() < 0) goto done;
    for (int k = 0; k < g->ninputs; k++) {
        if (g->input_slot[k] < 0) continue;
        PyObject *keep = NULL;
        PyArrayObject *array = input_array(g, k, args[k], &keep);
        if (!array) goto done;
        if (keep) {
            if (!keep_list && !(keep_list = PyList_New(0))) goto done;
            int bad = PyList_Append(keep_list, keep);
            Py_DECREF(keep);
            if (bad) goto done;
        }
        places[g->input_slot[k]].ptr = PyArray_DATA(array);
        places[g->input_slot[k]].owner = Py_NewRef((PyObject *)array);
    }
    if (g->arena_size && !(arena = api->malloc(g->arena_size))) {
        PyErr_NoMemory();
        goto done;
    }
    for (int i = 0; i < g->nslots; i++) {
        const Slot *s = &g->slots[i];
        if (s->kind == SLOT_ARENA) places[i].ptr = arena + s->offset;
        else if (s->kind == SLOT_CONSTANT) places[i].ptr = PyArray_DATA((PyArrayObject *)s->constant), places[i].owner = Py_NewRef(s->constant);
        else if (s->kind == SLOT_OUTPUT && !(places[i].owner = new_output(s, &places[i].ptr))) goto done;
    }
    if (g->has_call) {
        for (int i = 0; i < g->nsteps; i++) {
            if (g->steps[i].kind == STEP_CALL) {
                if (status[0]) break;
                if (run_call(g, &g->steps[i], places) < 0) {
                    failed = 1;
                    break;
                }
            } else if (g->light) {
                run_native(&g->steps[i], places, status);
            } else {
                Py_BEGIN_ALLOW_THREADS
                run_native(&g->steps[i], places, status);
                Py_END_ALLOW_THREADS
            }
        }
    } else if (g->light) {
        for (int i = 0; i < g->nsteps; i++) run_native(&g->steps[i], places, status);
    } else {
        Py_BEGIN_ALLOW_THREADS
        for (int i = 0; i < g->nsteps; i++) run_native(&g->steps[i], places, status);
        Py_END_ALLOW_THREADS
    }
    if (failed) goto done;
    if (status[0]) {
        PyObject *r = PyObject_CallFunction(g->on_error, "LLL", (long long)status[0], (long long)status[1], (long long)status[2]);
        if (r) {
            Py_DECREF(r);
            PyErr_SetString(PyExc_IndexError, "index out of range in a compiled graph");
        }
        goto done;
    }
    result = PyList_New(g->noutputs);
    if (!result) goto done;
    for (int i = 0; i < g->noutputs; i++) {
        const Output *o = &g->outputs[i];
        PyObject *value;
        if (o->kind == OUT_INPUT) value = Py_NewRef(args[o->slot]);
        else if (o->kind == OUT_CONSTANT) value = Py_NewRef(o->constant);
        else {
            Place *p = &places[o->slot];
            PyObject *array = o->whole ? Py_NewRef(p->owner) : array_over(&o->layout, p->ptr + o->offset, p->owner);
            value = array ? api->from_array(array) : NULL;
            Py_XDECREF(array);
        }
        if (!value) {
            Py_CLEAR(result);
            goto done;
        }
        PyList_SET_ITEM(result, i, value);
    }
done:
    for (int i = 0; i < g->nslots; i++) Py_XDECREF(places[i].owner);
    if (places != small) PyMem_Free(places);
    api->free(arena);
    Py_XDECREF(keep_list);
    return result;
}

static PyMemberDef graph_members[] = {
    {"info", T_OBJECT, offsetof(Graph, info), READONLY, "what the compiler keeps with the graph"},
    {"arena_size", T_PYSSIZET, offsetof(Graph, arena_size), READONLY, "bytes of intermediate results"},
    {"nsteps", T_INT, offsetof(Graph, nsteps), READONLY, "kernels, matrix products and Python calls a launch makes"},
    {"__dictoffset__", T_PYSSIZET, offsetof(Graph, dict), READONLY},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Graph, call), READONLY},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Graph, weakrefs), READONLY},
    {NULL},
};

static PyTypeObject Graph_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "flambeau._runtime.Graph",
    .tp_doc = "A compiled graph: called with its input tensors, returns the list of its outputs.",
    .tp_basicsize = sizeof(Graph),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_BASETYPE,
    .tp_new = graph_new,
    .tp_dealloc = (destructor)graph_dealloc,
    .tp_traverse = (traverseproc)graph_traverse,
    .tp_clear = (inquiry)graph_clear,
    .tp_call = PyVectorcall_Call,
    .tp_members = graph_members,
    .tp_vectorcall_offset = offsetof(Graph, call),
    .tp_dictoffset = offsetof(Graph, dict),
    .tp_weaklistoffset = offsetof(Graph, weakrefs),
};

/* launch(address, arrays, total, grain=...): one kernel over ndarrays, for tests and tools; returns the status words. */
static PyObject *launch(PyObject *self, PyObject *args) {
    unsigned long long address;
    PyObject *arrays;
    long long total, grain = 1LL << 62;
    if (!PyArg_ParseTuple(args, "KO!L|L", &address, &PyList_Type, &arrays, &total, &grain)) return NULL;
    Py_ssize_t n = PyList_GET_SIZE(arrays);
    char **pointers = PyMem_Calloc(n + 1, sizeof(char *));
    int64_t status[STATUS_WORDS] = {0};
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *a = PyList_GET_ITEM(arrays, i);
        if (!PyArray_Check(a)) {
            PyErr_SetString(PyExc_TypeError, "launch: ndarrays are expected");
            PyMem_Free(pointers);
            return NULL;
        }
        pointers[i] = PyArray_DATA((PyArrayObject *)a);
    }
    pointers[n] = (char *)status;
    KernelCall call = {(KernelFn)(uintptr_t)address, pointers};
    Py_BEGIN_ALLOW_THREADS
    flb_parallel(kernel_range, &call, total, grain);
    Py_END_ALLOW_THREADS
    PyMem_Free(pointers);
    return Py_BuildValue("LLL", (long long)status[0], (long long)status[1], (long long)status[2]);
}

static PyObject *get_num_threads(PyObject *self, PyObject *unused) { return PyLong_FromLong(flb_get_num_threads()); }

static PyObject *set_num_threads(PyObject *self, PyObject *arg) {
    long n = PyLong_AsLong(arg);
    if (n == -1 && PyErr_Occurred()) return NULL;
    if (n < 1) {
        PyErr_SetString(PyExc_RuntimeError, "set_num_threads expects a positive integer");
        return NULL;
    }
    flb_set_num_threads((int)(n > 1 << 16 ? 1 << 16 : n));
    Py_RETURN_NONE;
}

/* use_blas(sgemm, dgemm, get_num_threads, set_num_threads): addresses in the BLAS library that products are made with; 0: it has none. */
static PyObject *use_blas(PyObject *self, PyObject *args) {
    unsigned long long single, twice, get, set;
    if (!PyArg_ParseTuple(args, "KKKK", &single, &twice, &get, &set)) return NULL;
    blas_gemm[0] = (GemmFn)(uintptr_t)single;
    blas_gemm[1] = (GemmFn)(uintptr_t)twice;
    blas_get_threads = (int (*)(void))(uintptr_t)get;
    blas_set_threads = (void (*)(int))(uintptr_t)set;
    if (blas_get_threads && blas_set_threads && blas_get_threads() > 1) blas_set_threads(1);
    Py_RETURN_NONE;
}

/* How BLAS reads the last two dimensions of an array: the letter and the leading dimension; 0 when it can't. */
static char reading(PyArrayObject *a, int64_t *ld) {
    int nd = PyArray_NDIM(a);
    npy_intp item = PyArray_ITEMSIZE(a), rows = PyArray_DIM(a, nd - 2), columns = PyArray_DIM(a, nd - 1);
    npy_intp r = PyArray_STRIDE(a, nd - 2), c = PyArray_STRIDE(a, nd - 1);
    if (r % item || c % item) return 0;
    r /= item, c /= item;
    if ((c == 1 || columns == 1) && (r >= columns || rows == 1)) return *ld = rows == 1 ? columns : r, 'N';
    if ((r == 1 || rows == 1) && (c >= rows || columns == 1)) return *ld = columns == 1 ? rows : c, 'T';
    return 0;
}

/* matmul(a, b) -> ndarray, or None when this is not for us: two float32 or float64 matrices, or stacks of as many, that BLAS reads in place. */
static PyObject *matmul(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    if (n != 2 || !PyArray_Check(args[0]) || !PyArray_Check(args[1])) return PyErr_SetString(PyExc_TypeError, "matmul(ndarray, ndarray)"), NULL;
    PyArrayObject *a = (PyArrayObject *)args[0], *b = (PyArrayObject *)args[1];
    int nd = PyArray_NDIM(a), type = PyArray_TYPE(a);
    if ((nd != 2 && nd != 3) || PyArray_NDIM(b) != nd || PyArray_TYPE(b) != type || (type != NPY_FLOAT && type != NPY_DOUBLE)) Py_RETURN_NONE;
    Step s = {.kind = STEP_GEMM, .f64 = type == NPY_DOUBLE, .alpha = 1.0};
    s.gemm = blas_gemm[s.f64];
    s.m = PyArray_DIM(a, nd - 2), s.k = PyArray_DIM(a, nd - 1), s.n = PyArray_DIM(b, nd - 1);
    if (!s.gemm || PyArray_DIM(b, nd - 2) != s.k || !s.m || !s.n || !s.k || !PyArray_ISALIGNED(a) || !PyArray_ISALIGNED(b) ||
        PyArray_ISBYTESWAPPED(a) || PyArray_ISBYTESWAPPED(b)) Py_RETURN_NONE;
    s.ta = reading(a, &s.lda), s.tb = reading(b, &s.ldb), s.ldc = s.n;
    if (!s.ta || !s.tb) Py_RETURN_NONE;
    npy_intp shape[3] = {nd == 3 ? PyArray_DIM(a, 0) : s.m, nd == 3 ? s.m : s.n, s.n};
    int64_t item = s.f64 ? 8 : 4, batch[4] = {shape[0], 0, 0, s.m * s.n * item};
    if (nd == 3) {
        if (PyArray_DIM(b, 0) != shape[0] || !shape[0]) Py_RETURN_NONE;
        batch[1] = PyArray_STRIDE(a, 0), batch[2] = PyArray_STRIDE(b, 0);
        s.nbatch = 1, s.batch = batch;
    }
    PyObject *out = PyArray_SimpleNew(nd, shape, type);
    if (!out) return NULL;
    Py_BEGIN_ALLOW_THREADS
    run_gemm(&s, PyArray_DATA(a), PyArray_DATA(b), PyArray_DATA((PyArrayObject *)out));
    Py_END_ALLOW_THREADS
    return out;
}

static PyMethodDef functions[] = {
    {"use_blas", use_blas, METH_VARARGS, "use_blas(sgemm, dgemm, get_num_threads, set_num_threads): addresses in the BLAS library; it is set to one thread"},
    {"matmul", (PyCFunction)(void (*)(void))matmul, METH_FASTCALL,
     "matmul(a, b) -> ndarray, split over the pool; None unless both are float32 or float64 matrices (or stacks) that BLAS reads in place"},
    {"launch", launch, METH_VARARGS, "launch(address, arrays, total, grain) -> (code, value, size): run one kernel over ndarrays"},
    {"get_num_threads", get_num_threads, METH_NOARGS, "threads that kernels are split over"},
    {"set_num_threads", set_num_threads, METH_O, "set the number of threads that kernels are split over"},
    {NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "flambeau._runtime", .m_size = -1,
                                        .m_doc = "Thread pool and the launch of compiled graphs.", .m_methods = functions};

PyMODINIT_FUNC PyInit__runtime(void) {
    import_array();
    PyObject *core = PyImport_ImportModule("flambeau._C");
    if (!core) return NULL;
    Py_DECREF(core);
    api = PyCapsule_Import(FLB_API_CAPSULE, 0);
    if (!api) return NULL;
    if (PyType_Ready(&Graph_Type) < 0) return NULL;
    PyObject *m = PyModule_Create(&definition);
    if (!m) return NULL;
    if (PyModule_AddObjectRef(m, "Graph", (PyObject *)&Graph_Type) < 0) {
        Py_DECREF(m);
        return NULL;
    }
    return m;
}
