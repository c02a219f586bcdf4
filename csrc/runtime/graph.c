/* Building a compiled graph: from the records of inductor/runtime/records.py to tables. Every place, slot and
 * count is checked here, so that a launch need not. */
#include "runtime/graph.h"
#include <stdarg.h>

#define FAIL(...) return PyErr_Format(PyExc_ValueError, __VA_ARGS__), -1

/* n entries and one to spare; NULL with an exception. */
static void *zeroed(Py_ssize_t n, size_t size) {
    void *p = n < 0 || n >= INT_MAX ? NULL : PyMem_Calloc(n + 1, size);
    if (!p) PyErr_NoMemory();
    return p;
}

static int parse_ints(PyObject *o, int **out, int *n) {
    PyObject *fast = PySequence_Tuple(o); /* owned: an element's __index__ may change a list */
    if (!fast) return -1;
    if (!(*out = zeroed(PyTuple_GET_SIZE(fast), sizeof(int)))) return Py_DECREF(fast), -1;
    *n = (int)PyTuple_GET_SIZE(fast);
    for (int i = 0; i < *n; i++) {
        long v = PyLong_AsLong(PyTuple_GET_ITEM(fast, i));
        (*out)[i] = v < INT_MIN || v > INT_MAX ? INT_MAX : (int)v; /* no place and no slot */
    }
    Py_DECREF(fast);
    return PyErr_Occurred() ? -1 : 0;
}

static int check_place(Graph *g, int at, int count) {
    if (at < 0 || count < 0 || count > g->nframe || at > g->nframe - count)
        FAIL("place %d is outside the frame of %d", at, g->nframe);
    return 0;
}

/* The attributes of a record that are named, up to NULL, as a tuple; NULL with an exception. It keeps them:
 * reading a number may run Python, which may change the record. */
static PyObject *fields(PyObject *o, ...) {
    const char *names[16], *name;
    int n = 0;
    va_list list;
    va_start(list, o);
    while ((name = va_arg(list, const char *))) names[n++] = name;
    va_end(list);
    PyObject *made = PyTuple_New(n);
    for (int i = 0; made && i < n; i++) {
        PyObject *x = PyObject_GetAttrString(o, names[i]);
        if (!x) Py_CLEAR(made);
        else PyTuple_SET_ITEM(made, i, x);
    }
    return made;
}

/* The kind of a record below `count`; -1 with an exception. */
static int kind_of(PyObject *o, int count) {
    PyObject *kind = PyObject_GetAttrString(o, "kind");
    if (!kind) return -1;
    long k = PyLong_AsLong(kind);
    Py_DECREF(kind);
    if (k == -1 && PyErr_Occurred()) return -1;
    if (k < 0 || k >= count) FAIL("there is no kind %ld of record", k);
    return (int)k;
}

/* A Layout, or None. */
static int parse_layout(PyObject *o, Layout *l, Graph *g) {
    if (o == Py_None) return 0;
    PyObject *held = fields(o, "ndim", "at", "dtype", NULL), *dtype;
    int failed = !held || !PyArg_ParseTuple(held, "iiO", &l->ndim, &l->at, &dtype);
    if (!failed && (l->ndim < 0 || l->ndim > NPY_MAXDIMS)) {
        PyErr_Format(PyExc_ValueError, "a tensor of %d dimensions", l->ndim);
        failed = 1;
    }
    failed = failed || check_place(g, l->at, 2 * l->ndim) < 0 ||
        PyArray_DescrConverter(dtype, &l->descr) != NPY_SUCCEED;
    Py_XDECREF(held);
    return failed ? -1 : 0;
}

static int check_slots(Graph *g, const int *slots, int n) {
    for (int i = 0; i < n; i++)
        if (slots[i] < 0 || slots[i] >= g->nslots) FAIL("slot %d does not exist", slots[i]);
    return 0;
}

static int read_stage(PyObject *binds, PyObject *code, Stage *s, Graph *g) {
    if (!(s->binds = zeroed(PyTuple_GET_SIZE(binds), sizeof(Bind))) ||
        !(s->code = zeroed(PyTuple_GET_SIZE(code), sizeof(Instruction))))
        return -1;
    s->nbinds = (int)PyTuple_GET_SIZE(binds), s->ncode = (int)PyTuple_GET_SIZE(code);
    for (int i = 0; i < s->nbinds; i++) {
        Bind *b = &s->binds[i];
        long long lo, hi, divisor, item;
        PyObject *held = fields(PyTuple_GET_ITEM(binds, i), "source", "what", "index", "place", "lo", "hi",
                                "divisor", "itemsize", NULL);
        int read = held &&
            PyArg_ParseTuple(held, "iiiiLLLL", &b->source, &b->what, &b->index, &b->dst, &lo, &hi, &divisor,
                             &item);
        Py_XDECREF(held);
        if (!read || check_place(g, b->dst, 1) < 0) return -1;
        b->lo = lo, b->hi = hi, b->divisor = divisor, b->item = item;
        if (b->what < BIND_SIZE || b->what > BIND_VALUE || b->index < 0 || b->source < 0 || divisor < 1 ||
            item < 1)
            FAIL("a wrong binding");
    }
    for (int i = 0; i < s->ncode; i++) {
        Instruction *c = &s->code[i];
        int op;
        PyObject *row = PyTuple_GET_ITEM(code, i);
        if (!PyTuple_Check(row)) FAIL("an instruction is a tuple");
        if (!PyArg_ParseTuple(row, "iiii", &op, &c->dst, &c->a, &c->b) || check_place(g, c->dst, 1) < 0 ||
            check_place(g, c->a, 1) < 0 || check_place(g, c->b, 1) < 0)
            return -1;
        if (op < 0 || op >= OP_COUNT) FAIL("instruction %d does not exist", op);
        c->op = (uint8_t)op;
    }
    return 0;
}

/* ([Binding], [(op, dst, a, b)]) */
static int parse_stage(PyObject *o, Stage *s, Graph *g) {
    PyObject *binds, *code;
    if (!PyTuple_Check(o)) FAIL("a stage is a tuple");
    if (!PyArg_ParseTuple(o, "OO", &binds, &code)) return -1;
    binds = PySequence_Tuple(binds), code = PySequence_Tuple(code);
    int failed = !binds || !code || read_stage(binds, code, s, g) < 0;
    Py_XDECREF(binds);
    Py_XDECREF(code);
    return failed ? -1 : 0;
}

/* A slot of inductor/runtime/records.py, from its fields. */
static int read_slot(PyObject *held, Slot *s, Graph *g) {
    PyObject *array;
    switch (s->kind) {
    case SLOT_INPUT:
        if (!PyArg_ParseTuple(held, "n", &s->index)) return -1;
        if (s->index < 0 || s->index >= g->ninputs) FAIL("input %zd does not exist", s->index);
        g->input_slot[s->index] = (int)(s - g->slots);
        return 0;
    case SLOT_ARENA:
    case SLOT_OWN: return PyArg_ParseTuple(held, "i", &s->at) ? check_place(g, s->at, 1) : -1;
    case SLOT_OUTPUT:
        if (!PyArg_ParseTuple(held, "ipi", &s->at, &s->plain, &s->stage) || check_place(g, s->at, 1) < 0)
            return -1;
        if (s->stage < 0 || s->stage >= g->nstages) FAIL("stage %d does not exist", s->stage);
        return 0;
    case SLOT_CONSTANT:
        if (!PyArg_ParseTuple(held, "O!", &PyArray_Type, &array)) return -1;
        s->constant = Py_NewRef(array);
        return 0;
    case SLOT_LOCAL: return PyArg_ParseTuple(held, "ni", &s->index, &s->at) ? 0 : -1;
    }
    return 0;
}

static PyObject *fields_of_slot(PyObject *o, int kind) {
    switch (kind) {
    case SLOT_INPUT: return fields(o, "input", NULL);
    case SLOT_ARENA: return fields(o, "at", NULL);
    case SLOT_OWN: return fields(o, "bytes", NULL);
    case SLOT_OUTPUT: return fields(o, "bytes", "plain", "stage", NULL);
    case SLOT_CONSTANT: return fields(o, "array", NULL);
    case SLOT_LOCAL: return fields(o, "before", "row", NULL);
    }
    return fields(o, NULL);
}

static int parse_slot(PyObject *o, Slot *s, Graph *g) {
    int kind = kind_of(o, SLOT_COUNT);
    if (kind < 0) return -1;
    PyObject *held = fields_of_slot(o, s->kind = kind), *layout = NULL;
    int failed = !held || read_slot(held, s, g) < 0;
    Py_XDECREF(held);
    if (failed || kind == SLOT_CONSTANT || kind == SLOT_VALUE || kind == SLOT_LOCAL) return failed ? -1 : 0;
    if (!(layout = PyObject_GetAttrString(o, "layout"))) return -1;
    failed = parse_layout(layout, &s->layout, g) < 0;
    Py_DECREF(layout);
    return failed ? -1 : 0;
}

/* A View: the place of its offset and its layout; None for one that isn't given. */
static int parse_view(PyObject *o, Part *p, Graph *g) {
    if (o == Py_None) return 0;
    PyObject *held = fields(o, "at", "layout", NULL), *layout;
    int failed = !held || !PyArg_ParseTuple(held, "iO", &p->at, &layout) || check_place(g, p->at, 1) < 0 ||
        parse_layout(layout, &p->layout, g) < 0;
    Py_XDECREF(held);
    return failed ? -1 : 0;
}

/* The slots of a step and what it sees of each. */
static int parse_views(PyObject *slots, PyObject *views, Step *s, Graph *g) {
    if (parse_ints(slots, &s->args, &s->nargs) < 0) return -1;
    PyObject *list = PySequence_Tuple(views);
    if (!list) return -1;
    int failed = PyTuple_GET_SIZE(list) != s->nargs;
    if (failed) PyErr_SetString(PyExc_ValueError, "a step takes one view for each slot");
    failed = failed || !(s->parts = zeroed(s->nargs, sizeof(Part)));
    for (int i = 0; i < s->nargs && !failed; i++) {
        PyObject *view = PyTuple_GET_ITEM(list, i);
        if ((failed = (view == Py_None) != (s->args[i] == -1)))
            PyErr_SetString(PyExc_ValueError, "a view of a slot is missing");
        failed = failed || parse_view(view, &s->parts[i], g) < 0;
    }
    Py_DECREF(list);
    return failed ? -1 : 0;
}

/* Integers of a step that are places in the frame. */
static int parse_numbers(PyObject *o, Step *s, Graph *g) {
    if (parse_ints(o, &s->numbers, &s->nnumbers) < 0) return -1;
    for (int i = 0; i < s->nnumbers; i++)
        if (check_place(g, s->numbers[i], 1) < 0) return -1;
    return 0;
}

static int parse_step(PyObject *o, Step *s, Graph *g);

/* The steps of a launch over rows, and what each has to an iteration: (rows, iterations) that go together,
 * (0, 1) for a sum over rows. */
static int read_members(Rows *r, PyObject *steps, PyObject *ratios, Graph *g) {
    Py_ssize_t n = PyTuple_GET_SIZE(steps);
    if (n > MOST_ROW_STEPS || n != PyTuple_GET_SIZE(ratios)) FAIL("a wrong launch over rows");
    for (Py_ssize_t i = 0; i < n; i++) {
        long long num, den;
        r->nsteps++;
        PyObject *ratio = PySequence_Tuple(PyTuple_GET_ITEM(ratios, i));
        int read = ratio && PyArg_ParseTuple(ratio, "LL", &num, &den);
        Py_XDECREF(ratio);
        if (!read || parse_step(PyTuple_GET_ITEM(steps, i), &r->steps[i], g) < 0) return -1;
        r->num[i] = num, r->den[i] = den;
        const Step *t = &r->steps[i];
        int plain = t->kind == STEP_KERNEL || t->kind == STEP_GEMM;
        int sums = !num && t->kind == STEP_GEMM && t->nbatch && r->lanes;
        if (num < 0 || den < 1 || !plain || t->nargs > MOST_ROW_ARGS ||
            (num ? r->unit * den % num != 0 : !sums))
            FAIL("a wrong step of a launch over rows");
    }
    return 0;
}

static int parse_members(Rows *r, PyObject *steps, PyObject *ratios, Graph *g) {
    steps = PySequence_Tuple(steps), ratios = steps ? PySequence_Tuple(ratios) : NULL;
    int failed = !ratios || read_members(r, steps, ratios, g) < 0;
    Py_XDECREF(steps);
    Py_XDECREF(ratios);
    return failed ? -1 : 0;
}

/* Bytes of a row of each local buffer. */
static int parse_locals(PyObject *o, Rows *r) {
    PyObject *bytes = PySequence_Tuple(o);
    if (!bytes) return -1;
    int failed = PyTuple_GET_SIZE(bytes) > MOST_VIEWS * 4;
    if (failed) PyErr_SetString(PyExc_ValueError, "too many local buffers");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(bytes) && !failed; i++) {
        r->local[r->nlocals++] = PyLong_AsLongLong(PyTuple_GET_ITEM(bytes, i));
        failed = PyErr_Occurred() != NULL;
    }
    Py_DECREF(bytes);
    return failed ? -1 : 0;
}

static int parse_rows(PyObject *held, Step *s, Graph *g) {
    long long rows, period, unit, block, lanes;
    PyObject *locals, *steps, *ratios;
    Rows *r = s->rows = zeroed(1, sizeof(Rows));
    if (!r ||
        !PyArg_ParseTuple(held, "LLLLOOOL", &rows, &period, &unit, &block, &locals, &steps, &ratios, &lanes))
        return -1;
    r->rows = rows, r->period = period, r->unit = unit, r->block = block, r->lanes = lanes,
    r->slots = g->slots;
    if (rows < 1 || period < 1 || unit < 1 || rows % period || (period != rows && period % unit))
        FAIL("a wrong launch over rows");
    if (block < unit || block % unit || lanes < 0 || lanes > period) FAIL("a wrong launch over rows");
    return parse_locals(locals, r) < 0 ? -1 : parse_members(r, steps, ratios, g);
}

/* Kernels that take the result of a native kernel as planes are finished. */
static int parse_planes(PyObject *o, Step *s, Graph *g) {
    long long planes, unit;
    PyObject *held = fields(o, "rows", "unit", "steps", "ratios", NULL), *steps, *ratios;
    Rows *r = s->rows = zeroed(1, sizeof(Rows));
    int failed = !r || !held || !PyArg_ParseTuple(held, "LLOO", &planes, &unit, &steps, &ratios);
    if (!failed && (planes < 1 || unit < 1 || planes % unit || !s->kernel->planes)) {
        PyErr_SetString(PyExc_ValueError, "a wrong launch over planes");
        failed = 1;
    }
    if (!failed) {
        r->rows = r->period = planes, r->unit = r->block = unit, r->slots = g->slots;
        failed = parse_members(r, steps, ratios, g) < 0;
    }
    Py_XDECREF(held);
    if (failed) return -1;
    for (int i = 0; i < r->nsteps; i++)
        if (r->steps[i].kind != STEP_KERNEL) FAIL("planes are taken by kernels");
    return 0;
}

static int parse_kernel(PyObject *held, Step *s, Graph *g) {
    PyObject *slots;
    unsigned long long address;
    int nparams;
    if (!PyArg_ParseTuple(held, "KOiiii", &address, &slots, &s->total, &s->grain, &s->params, &nparams))
        return -1;
    if (check_place(g, s->total, 1) < 0 || check_place(g, s->grain, 1) < 0 ||
        check_place(g, s->params, nparams) < 0)
        return -1;
    if (parse_ints(slots, &s->args, &s->nargs) < 0) return -1;
    s->fn = (KernelFn)(uintptr_t)address;
    if (s->nargs + 2 > g->widest) g->widest = s->nargs + 2;
    return check_slots(g, s->args, s->nargs);
}

static int parse_table(PyObject *held, Step *s, Graph *g) {
    PyObject *slots;
    unsigned long long address;
    if (!PyArg_ParseTuple(held, "KOiiiii", &address, &slots, &s->nrows, &s->total, &s->grain, &s->params,
                          &s->nparams))
        return -1;
    if (s->nrows < 1 || s->nparams < 0 || s->nparams > MOST_ROW_ARGS) FAIL("a table of %d rows", s->nrows);
    if (check_place(g, s->total, s->nrows) < 0 || check_place(g, s->grain, 1) < 0) return -1;
    for (int i = 0; i < s->nrows; i++)
        if (check_place(g, s->params + i * s->nparams, s->nparams) < 0) return -1;
    if (parse_ints(slots, &s->args, &s->nargs) < 0) return -1;
    if (s->nargs % s->nrows) FAIL("rows of a table take as many slots each");
    s->fn = (KernelFn)(uintptr_t)address;
    int room =
        s->nargs + 3 * s->nrows + 1; /* with the status words and sizes of each, and where rows begin */
    if (room > g->widest) g->widest = room;
    return check_slots(g, s->args, s->nargs);
}

static int parse_gemm(PyObject *held, Step *s, Graph *g) {
    PyObject *slots;
    unsigned long long address;
    int ta, tb;
    if (!PyArg_ParseTuple(held, "KpOCCiii", &address, &s->f64, &slots, &ta, &tb, &s->sizes, &s->nbatch,
                          &s->choice))
        return -1;
    if (s->choice < 0 || s->choice >= MOST_CHOICE || (s->choice & 15) >= PRODUCT_COUNT)
        FAIL("there is no choice %d for a product", s->choice);
    if (s->nbatch < 0 || s->nbatch > NPY_MAXDIMS) FAIL("a product of %d batch dimensions", s->nbatch);
    if (check_place(g, s->sizes, 9 + 4 * s->nbatch) < 0) return -1;
    if (parse_ints(slots, &s->args, &s->nargs) < 0) return -1;
    if (s->nargs != 3) FAIL("a gemm step takes three slots");
    s->gemm = (GemmFn)(uintptr_t)address;
    s->ta = (char)ta, s->tb = (char)tb;
    return check_slots(g, s->args, s->nargs);
}

/* Views and numbers against the kernel's declaration. */
static int parse_native(PyObject *held, Step *s, Graph *g) {
    const char *name;
    PyObject *slots, *views, *numbers, *planes;
    uint8_t given[MOST_VIEWS];
    int64_t values[MOST_NUMBERS];
    if (!PyArg_ParseTuple(held, "sOOOO", &name, &slots, &views, &numbers, &planes)) return -1;
    if (!(s->kernel = flb_find_kernel(name))) FAIL("there is no kernel %s", name);
    if (parse_views(slots, views, s, g) < 0 || parse_numbers(numbers, s, g) < 0) return -1;
    if (s->nargs != s->kernel->nviews || s->nnumbers != s->kernel->nnumbers)
        FAIL("the kernel %s takes %d views and %d numbers", name, s->kernel->nviews, s->kernel->nnumbers);
    for (int i = 0; i < s->nargs; i++) {
        given[i] = s->args[i] != -1;
        if (given[i] && check_slots(g, &s->args[i], 1) < 0) return -1;
    }
    for (int i = 0; i < s->nnumbers; i++) values[i] = g->frame[s->numbers[i]];
    if (!flb_views_fit(s->kernel, given) || !flb_numbers_fit(s->kernel, values))
        FAIL("the kernel %s is handed what it doesn't take", name);
    if (s->kernel->decides) g->has_call = 1; /* what follows relies on it */
    return planes == Py_None ? 0 : parse_planes(planes, s, g);
}

static int parse_bind(PyObject *held, Step *s, Graph *g) {
    PyObject *slots, *views;
    if (!PyArg_ParseTuple(held, "OOi", &slots, &views, &s->stage) || parse_views(slots, views, s, g) < 0)
        return -1;
    if (s->stage < 1 || s->stage >= g->nstages) FAIL("stage %d does not exist", s->stage);
    for (int i = 0; i < g->stages[s->stage].nbinds; i++) {
        const Bind *b = &g->stages[s->stage].binds[i];
        if (b->source >= s->nargs || b->what != BIND_VALUE) FAIL("number %d is not bound", b->source);
    }
    for (int i = 0; i < s->nargs; i++) {
        const Layout *l = &s->parts[i].layout;
        if (l->ndim || !l->descr || l->descr->type_num != NPY_INT64) FAIL("what is bound is int64");
    }
    g->has_call = 1;
    return check_slots(g, s->args, s->nargs);
}

static int parse_call(PyObject *held, Step *s, Graph *g) {
    PyObject *slots, *views, *results, *numbers;
    if (!PyArg_ParseTuple(held, "OOOOiO", &s->callable, &slots, &views, &results, &s->stage, &numbers))
        return s->callable = NULL, -1;
    Py_INCREF(s->callable);
    if (parse_views(slots, views, s, g) < 0 || parse_numbers(numbers, s, g) < 0 ||
        parse_ints(results, &s->results, &s->nresults) < 0)
        return -1;
    if (s->stage < 0 || s->stage >= g->nstages) FAIL("stage %d does not exist", s->stage);
    for (int i = 0; i < s->nresults; i++)
        if (s->results[i] != -1 && check_slots(g, s->results + i, 1) < 0) return -1;
    for (int i = 0; s->stage && i < g->stages[s->stage].nbinds; i++)
        if (g->stages[s->stage].binds[i].source >= s->nresults)
            FAIL("result %d does not exist", g->stages[s->stage].binds[i].source);
    PyObject *quiet = PyObject_GetAttrString(s->callable, "quiet");
    if (!quiet && !PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
    if (!quiet) PyErr_Clear();
    if (quiet != Py_True) g->has_telling_call = 1;
    Py_XDECREF(quiet);
    g->has_call = 1;
    return check_slots(g, s->args, s->nargs);
}

static PyObject *fields_of_step(PyObject *o, int kind) {
    switch (kind) {
    case STEP_KERNEL: return fields(o, "address", "slots", "total", "grain", "params", "nparams", NULL);
    case STEP_TABLE:
        return fields(o, "address", "slots", "rows", "totals", "grain", "params", "nparams", NULL);
    case STEP_GEMM:
        return fields(o, "address", "f64", "slots", "ta", "tb", "sizes", "nbatch", "choice", NULL);
    case STEP_NATIVE: return fields(o, "kernel", "slots", "views", "numbers", "planes", NULL);
    case STEP_CALL: return fields(o, "call", "slots", "views", "results", "stage", "numbers", NULL);
    case STEP_ROWS:
        return fields(o, "rows", "period", "unit", "block", "locals", "steps", "ratios", "lanes", NULL);
    }
    return fields(o, "slots", "views", "stage", NULL);
}

/* A step of inductor/runtime/records.py. */
static int parse_step(PyObject *o, Step *s, Graph *g) {
    static int (*const parsers[STEP_COUNT])(PyObject *, Step *, Graph *) = {
        [STEP_KERNEL] = parse_kernel, [STEP_GEMM] = parse_gemm, [STEP_NATIVE] = parse_native,
        [STEP_CALL] = parse_call,     [STEP_ROWS] = parse_rows, [STEP_BIND] = parse_bind,
        [STEP_TABLE] = parse_table,
    };
    int kind = kind_of(o, STEP_COUNT);
    if (kind < 0) return -1;
    PyObject *held = fields_of_step(o, s->kind = kind);
    int failed = !held || parsers[kind](held, s, g) < 0;
    Py_XDECREF(held);
    return failed ? -1 : 0;
}

/* [(the first, how many)] of steps that run side by side, in order; or NULL */
static int parse_together(PyObject *o, Graph *g) {
    if (!(g->together = zeroed(g->nsteps, 1))) return -1;
    memset(g->together, 1, g->nsteps);
    for (Py_ssize_t i = 0, done = 0; o && i < PyList_GET_SIZE(o); i++) {
        int begin, count;
        PyObject *pair = PyList_GET_ITEM(o, i);
        if (!PyTuple_Check(pair)) FAIL("steps that run side by side are given by the first and how many");
        if (!PyArg_ParseTuple(pair, "ii", &begin, &count)) return -1;
        if (begin < done || count < 2 || count > MOST_TOGETHER || count > g->nsteps - begin)
            FAIL("steps from %d on, %d, can't run side by side", begin, count);
        done = begin + count;
        for (int k = begin; k < done; k++) {
            const Step *s = &g->steps[k];
            if ((s->kind != STEP_KERNEL && s->kind != STEP_GEMM && s->kind != STEP_NATIVE) ||
                s->nargs + 2 > MOST_POINTERS)
                FAIL("step %d can't run beside others", k);
            g->together[k] = k == begin ? (uint8_t)count : 0;
        }
    }
    return 0;
}

static int read_output(PyObject *held, Output *out, Graph *g) {
    PyObject *x;
    switch (out->kind) {
    case OUT_SLOT:
        if (!PyArg_ParseTuple(held, "iiO", &out->slot, &out->at, &x) || check_place(g, out->at, 1) < 0 ||
            check_slots(g, &out->slot, 1) < 0)
            return -1;
        out->whole = x == Py_None;
        if (g->slots[out->slot].kind == SLOT_ARENA || g->slots[out->slot].kind == SLOT_OWN)
            FAIL("slot %d is gone when the call ends", out->slot);
        return parse_layout(x, &out->layout, g);
    case OUT_INPUT:
        if (!PyArg_ParseTuple(held, "i", &out->slot)) return -1;
        if (out->slot < 0 || out->slot >= g->ninputs) FAIL("input %d does not exist", out->slot);
        return 0;
    case OUT_VALUE: return PyArg_ParseTuple(held, "i", &out->slot) ? check_slots(g, &out->slot, 1) : -1;
    case OUT_NUMBER: return PyArg_ParseTuple(held, "i", &out->at) ? check_place(g, out->at, 1) : -1;
    }
    out->constant = Py_NewRef(PyTuple_GET_ITEM(held, 0));
    return 0;
}

static PyObject *fields_of_output(PyObject *o, int kind) {
    switch (kind) {
    case OUT_SLOT: return fields(o, "slot", "at", "layout", NULL);
    case OUT_INPUT: return fields(o, "input", NULL);
    case OUT_VALUE: return fields(o, "slot", NULL);
    case OUT_NUMBER: return fields(o, "at", NULL);
    }
    return fields(o, "value", NULL);
}

/* An output of inductor/runtime/records.py. */
static int parse_output(PyObject *o, Output *out, Graph *g) {
    int kind = kind_of(o, OUT_COUNT);
    if (kind < 0) return -1;
    PyObject *held = fields_of_output(o, out->kind = kind);
    int failed = !held || read_output(held, out, g) < 0;
    Py_XDECREF(held);
    return failed ? -1 : 0;
}

enum { FRAME, STAGES, SLOTS, STEPS, OUTPUTS, TABLES };

static int read_frame(PyObject *frame, Graph *g) {
    g->nframe = (int)PyTuple_GET_SIZE(frame);
    for (int i = 0; i < g->nframe; i++) g->frame[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(frame, i));
    return PyErr_Occurred() ? -1 : check_place(g, g->arena, 1);
}

static int read_stages(PyObject *stages, Graph *g) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(stages); i++) {
        g->nstages++;
        if (parse_stage(PyTuple_GET_ITEM(stages, i), &g->stages[i], g) < 0) return -1;
        if (g->stages[i].nbinds || g->stages[i].ncode) g->dynamic = 1;
    }
    if (!g->nstages) FAIL("a graph has a stage at least");
    for (int i = 0; i < g->stages[0].nbinds; i++)
        if (g->stages[0].binds[i].source >= g->ninputs) FAIL("a binding of an input that does not exist");
    return 0;
}

static int read_tables(PyObject *const *tables, PyObject *together, Graph *g) {
    Py_ssize_t n[TABLES];
    for (int i = 0; i < TABLES; i++) n[i] = PyTuple_GET_SIZE(tables[i]);
    if (!(g->frame = zeroed(n[FRAME], sizeof(Frame))) || !(g->stages = zeroed(n[STAGES], sizeof(Stage))))
        return -1;
    if (!(g->slots = zeroed(n[SLOTS], sizeof(Slot))) || !(g->steps = zeroed(n[STEPS], sizeof(Step))))
        return -1;
    if (!(g->outputs = zeroed(n[OUTPUTS], sizeof(Output))) ||
        !(g->input_slot = zeroed(g->ninputs, sizeof(int))))
        return -1;
    for (int i = 0; i < g->ninputs; i++) g->input_slot[i] = -1;
    if (read_frame(tables[FRAME], g) < 0 || read_stages(tables[STAGES], g) < 0) return -1;
    g->nslots = (int)n[SLOTS];
    for (int i = 0; i < g->nslots; i++)
        if (parse_slot(PyTuple_GET_ITEM(tables[SLOTS], i), &g->slots[i], g) < 0) return -1;
    for (Py_ssize_t i = 0; i < n[STEPS]; i++) {
        g->nsteps++;
        if (parse_step(PyTuple_GET_ITEM(tables[STEPS], i), &g->steps[i], g) < 0) return -1;
    }
    if (parse_together(together, g) < 0) return -1;
    for (Py_ssize_t i = 0; i < n[OUTPUTS]; i++) {
        g->noutputs++;
        if (parse_output(PyTuple_GET_ITEM(tables[OUTPUTS], i), &g->outputs[i], g) < 0) return -1;
    }
    return flb_graph_turns(g);
}

static PyObject *graph_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"ninputs",  "frame",       "stages", "slots", "steps",    "outputs", "arena",
                            "on_error", "on_mismatch", "info",   "light", "together", NULL};
    PyObject *lists[TABLES], *tables[TABLES] = {NULL}, *on_error, *on_mismatch, *info = Py_None,
                             *together = NULL;
    int ninputs, arena, light = 0, failed = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "iO!O!O!O!O!iOO|OpO!", names, &ninputs, &PyList_Type,
                                     &lists[FRAME], &PyList_Type, &lists[STAGES], &PyList_Type, &lists[SLOTS],
                                     &PyList_Type, &lists[STEPS], &PyList_Type, &lists[OUTPUTS], &arena,
                                     &on_error, &on_mismatch, &info, &light, &PyList_Type, &together))
        return NULL;
    Graph *g = (Graph *)type->tp_alloc(type, 0);
    if (!g) return NULL;
    g->call = flb_graph_call;
    g->ninputs = ninputs, g->arena = arena, g->light = light;
    g->on_error = Py_NewRef(on_error), g->on_mismatch = Py_NewRef(on_mismatch), g->info = Py_NewRef(info);
    for (int i = 0; i < TABLES && !failed; i++)
        failed = !(tables[i] = PySequence_Tuple(lists[i])); /* reading them may run Python */
    failed = failed || read_tables(tables, together, g) < 0;
    for (int i = 0; i < TABLES; i++) Py_XDECREF(tables[i]);
    if (failed) Py_CLEAR(g);
    return (PyObject *)g;
}

static void free_step(Step *s) {
    for (int j = 0; s->parts && j < s->nargs; j++) Py_XDECREF(s->parts[j].layout.descr);
    for (int j = 0; s->rows && j < s->rows->nsteps; j++) free_step(&s->rows->steps[j]);
    PyMem_Free(s->rows);
    PyMem_Free(s->parts);
    PyMem_Free(s->args);
    PyMem_Free(s->results);
    PyMem_Free(s->numbers);
    Py_XDECREF(s->callable);
    Py_XDECREF(s->native);
}

static void graph_dealloc(Graph *g) {
    PyObject_GC_UnTrack(g);
    if (g->weakrefs) PyObject_ClearWeakRefs((PyObject *)g);
    for (int i = 0; i < g->nstages; i++) {
        PyMem_Free(g->stages[i].binds);
        PyMem_Free(g->stages[i].code);
    }
    for (int i = 0; i < g->nslots; i++) {
        Py_XDECREF(g->slots[i].constant);
        Py_XDECREF(g->slots[i].layout.descr);
    }
    for (int i = 0; i < g->nsteps; i++) free_step(&g->steps[i]);
    for (int i = 0; i < g->noutputs; i++) {
        Py_XDECREF(g->outputs[i].layout.descr);
        Py_XDECREF(g->outputs[i].constant);
    }
    PyMem_Free(g->lives);
    PyMem_Free(g->stops);
    PyMem_Free(g->together);
    PyMem_Free(g->takes);
    PyMem_Free(g->gives);
    PyMem_Free(g->seconds);
    PyMem_Free(g->frame);
    PyMem_Free(g->stages);
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
    for (int i = 0; i < g->nsteps; i++) {
        Py_VISIT(g->steps[i].callable);
        Py_VISIT(g->steps[i].native);
    }
    Py_VISIT(g->on_error);
    Py_VISIT(g->on_mismatch);
    Py_VISIT(g->info);
    Py_VISIT(g->dict);
    return 0;
}

static int graph_clear(Graph *g) {
    for (int i = 0; i < g->nsteps; i++) {
        Py_CLEAR(g->steps[i].callable);
        Py_CLEAR(g->steps[i].native);
    }
    Py_CLEAR(g->on_mismatch);
    Py_CLEAR(g->info);
    Py_CLEAR(g->dict);
    return 0;
}

static PyObject *get_arena(Graph *g, void *closure) { return PyLong_FromLongLong(g->frame[g->arena]); }

static PyObject *get_seconds(Graph *g, void *closure) {
    PyObject *list = PyList_New(g->nsteps);
    for (int i = 0; list && i < g->nsteps; i++) {
        PyObject *x = PyFloat_FromDouble(g->seconds ? g->seconds[i] : 0);
        if (!x) Py_CLEAR(list);
        else PyList_SET_ITEM(list, i, x);
    }
    return list;
}

static PyObject *takes_arrays(Graph *g, void *unused) {
    int whole = 1;
    for (int i = 0; i < g->noutputs; i++) whole &= g->outputs[i].kind != OUT_INPUT;
    return PyBool_FromLong(whole);
}

static PyObject *calls_python(Graph *g, void *unused) { return PyBool_FromLong(g->has_call); }
static PyObject *calls_quietly(Graph *g, void *unused) { return PyBool_FromLong(!g->has_telling_call); }

static PyGetSetDef graph_getset[] = {
    {"takes_arrays", (getter)takes_arrays, NULL,
     "whether its inputs may be ndarrays: none of them is among its outputs"},
    {"calls_python", (getter)calls_python, NULL, "whether a call of it may run Python besides its errors"},
    {"calls_quietly", (getter)calls_quietly, NULL,
     "whether all that it calls in Python has nothing to tell at a line of the program's, where that can run "
     "again"},
    {"step_seconds", (getter)get_seconds, NULL,
     "seconds that each step has taken while time_steps was on, over all calls"},
    {"arena_size", (getter)get_arena, NULL,
     "bytes of the intermediate results that don't live by themselves; 0 where sizes are symbolic"},
    {NULL},
};

static PyMethodDef graph_methods[] = {
    {"consume", flb_graph_consume, METH_O,
     "consume(list of the inputs) -> list of the outputs. The list is emptied; what nobody else holds is "
     "freed after its last use, and outputs get memory when "
     "they are made."},
    {"array_result", flb_array_result, METH_VARARGS,
     "array_result(outputs, forms, flags, packed) -> a call of the graph that gives these outputs in these "
     "forms "
     "(enums.Form), as a tuple if packed; flags: of each the output that tells whose number it is, or -1. "
     "None "
     "where an output isn't memory that the call fills"},
    {NULL},
};

static PyMemberDef graph_members[] = {
    {"info", T_OBJECT, offsetof(Graph, info), READONLY, "what the compiler keeps with the graph"},
    {"nsteps", T_INT, offsetof(Graph, nsteps), READONLY,
     "kernels, matrix products and Python calls a launch makes"},
    {"dynamic", T_INT, offsetof(Graph, dynamic), READONLY, "whether sizes are computed at each call"},
    {"__dictoffset__", T_PYSSIZET, offsetof(Graph, dict), READONLY},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Graph, call), READONLY},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Graph, weakrefs), READONLY},
    {NULL},
};

PyTypeObject FlbGraph_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._runtime.Graph",
    .tp_doc = "A compiled graph: called with its input tensors, returns the list of its outputs.",
    .tp_basicsize = sizeof(Graph),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_BASETYPE,
    .tp_new = graph_new,
    .tp_dealloc = (destructor)graph_dealloc,
    .tp_traverse = (traverseproc)graph_traverse,
    .tp_clear = (inquiry)graph_clear,
    .tp_call = PyVectorcall_Call,
    .tp_members = graph_members,
    .tp_methods = graph_methods,
    .tp_getset = graph_getset,
    .tp_vectorcall_offset = offsetof(Graph, call),
    .tp_dictoffset = offsetof(Graph, dict),
    .tp_weaklistoffset = offsetof(Graph, weakrefs),
};
