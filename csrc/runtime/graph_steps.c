/* The steps of a compiled graph, from their records. */
#include "runtime/reading.h"

/* A View: the place of its offset and its layout; None for one that isn't given. */
static int parse_view(PyObject *o, Part *p, Graph *g) {
    if (o == Py_None) return 0;
    PyObject *held = flb_fields_of(o, "at", "layout", NULL), *layout;
    int failed = !held || !PyArg_ParseTuple(held, "iO", &p->at, &layout) ||
        flb_check_place(g, p->at, 1) < 0 || flb_read_layout(layout, &p->layout, g) < 0;
    Py_XDECREF(held);
    return failed ? -1 : 0;
}

/* The slots of a step and what it sees of each. */
static int parse_views(PyObject *slots, PyObject *views, Step *s, Graph *g) {
    if (flb_read_ints(slots, &s->args, &s->nargs) < 0) return -1;
    PyObject *list = PySequence_Tuple(views);
    if (!list) return -1;
    int failed = PyTuple_GET_SIZE(list) != s->nargs;
    if (failed) PyErr_SetString(PyExc_ValueError, "a step takes one view for each slot");
    failed = failed || !(s->parts = flb_zeroed(s->nargs, sizeof(Part)));
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
    if (flb_read_ints(o, &s->numbers, &s->nnumbers) < 0) return -1;
    for (int i = 0; i < s->nnumbers; i++)
        if (flb_check_place(g, s->numbers[i], 1) < 0) return -1;
    return 0;
}

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
        if (!read || flb_read_step(PyTuple_GET_ITEM(steps, i), &r->steps[i], g) < 0) return -1;
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
    Rows *r = s->rows = flb_zeroed(1, sizeof(Rows));
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
    PyObject *held = flb_fields_of(o, "rows", "unit", "steps", "ratios", NULL), *steps, *ratios;
    Rows *r = s->rows = flb_zeroed(1, sizeof(Rows));
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
    if (flb_check_place(g, s->total, 1) < 0 || flb_check_place(g, s->grain, 1) < 0 ||
        flb_check_place(g, s->params, nparams) < 0)
        return -1;
    if (flb_read_ints(slots, &s->args, &s->nargs) < 0) return -1;
    s->fn = (KernelFn)(uintptr_t)address;
    if (s->nargs + 2 > g->widest) g->widest = s->nargs + 2;
    return flb_check_slots(g, s->args, s->nargs);
}

static int parse_table(PyObject *held, Step *s, Graph *g) {
    PyObject *slots;
    unsigned long long address;
    if (!PyArg_ParseTuple(held, "KOiiiii", &address, &slots, &s->nrows, &s->total, &s->grain, &s->params,
                          &s->nparams))
        return -1;
    if (s->nrows < 1 || s->nparams < 0 || s->nparams > MOST_ROW_ARGS) FAIL("a table of %d rows", s->nrows);
    if (flb_check_place(g, s->total, s->nrows) < 0 || flb_check_place(g, s->grain, 1) < 0) return -1;
    for (int i = 0; i < s->nrows; i++)
        if (flb_check_place(g, s->params + i * s->nparams, s->nparams) < 0) return -1;
    if (flb_read_ints(slots, &s->args, &s->nargs) < 0) return -1;
    if (s->nargs % s->nrows) FAIL("rows of a table take as many slots each");
    s->fn = (KernelFn)(uintptr_t)address;
    int room =
        s->nargs + 3 * s->nrows + 1; /* with the status words and sizes of each, and where rows begin */
    if (room > g->widest) g->widest = room;
    return flb_check_slots(g, s->args, s->nargs);
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
    if (flb_check_place(g, s->sizes, 9 + 4 * s->nbatch) < 0) return -1;
    if (flb_read_ints(slots, &s->args, &s->nargs) < 0) return -1;
    if (s->nargs != 3) FAIL("a gemm step takes three slots");
    s->gemm = (GemmFn)(uintptr_t)address;
    s->ta = (char)ta, s->tb = (char)tb;
    return flb_check_slots(g, s->args, s->nargs);
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
        if (given[i] && flb_check_slots(g, &s->args[i], 1) < 0) return -1;
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
    return flb_check_slots(g, s->args, s->nargs);
}

static int parse_call(PyObject *held, Step *s, Graph *g) {
    PyObject *slots, *views, *results, *numbers;
    if (!PyArg_ParseTuple(held, "OOOOiO", &s->callable, &slots, &views, &results, &s->stage, &numbers))
        return s->callable = NULL, -1;
    Py_INCREF(s->callable);
    if (parse_views(slots, views, s, g) < 0 || parse_numbers(numbers, s, g) < 0 ||
        flb_read_ints(results, &s->results, &s->nresults) < 0)
        return -1;
    if (s->stage < 0 || s->stage >= g->nstages) FAIL("stage %d does not exist", s->stage);
    for (int i = 0; i < s->nresults; i++)
        if (s->results[i] != -1 && flb_check_slots(g, s->results + i, 1) < 0) return -1;
    for (int i = 0; s->stage && i < g->stages[s->stage].nbinds; i++)
        if (g->stages[s->stage].binds[i].source >= s->nresults)
            FAIL("result %d does not exist", g->stages[s->stage].binds[i].source);
    PyObject *quiet = PyObject_GetAttrString(s->callable, "quiet");
    if (!quiet && !PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
    if (!quiet) PyErr_Clear();
    if (quiet != Py_True) g->has_telling_call = 1;
    Py_XDECREF(quiet);
    g->has_call = 1;
    return flb_check_slots(g, s->args, s->nargs);
}

static PyObject *fields_of_step(PyObject *o, int kind) {
    switch (kind) {
    case STEP_KERNEL:
        return flb_fields_of(o, "address", "slots", "total", "grain", "params", "nparams", NULL);
    case STEP_TABLE:
        return flb_fields_of(o, "address", "slots", "rows", "totals", "grain", "params", "nparams", NULL);
    case STEP_GEMM:
        return flb_fields_of(o, "address", "f64", "slots", "ta", "tb", "sizes", "nbatch", "choice", NULL);
    case STEP_NATIVE: return flb_fields_of(o, "kernel", "slots", "views", "numbers", "planes", NULL);
    case STEP_CALL: return flb_fields_of(o, "call", "slots", "views", "results", "stage", "numbers", NULL);
    case STEP_ROWS:
        return flb_fields_of(o, "rows", "period", "unit", "block", "locals", "steps", "ratios", "lanes",
                             NULL);
    }
    return flb_fields_of(o, "slots", "views", "stage", NULL);
}

/* A step of inductor/runtime/records.py. */
int flb_read_step(PyObject *o, Step *s, Graph *g) {
    static int (*const parsers[STEP_COUNT])(PyObject *, Step *, Graph *) = {
        [STEP_KERNEL] = parse_kernel, [STEP_GEMM] = parse_gemm, [STEP_NATIVE] = parse_native,
        [STEP_CALL] = parse_call,     [STEP_ROWS] = parse_rows, [STEP_BIND] = parse_bind,
        [STEP_TABLE] = parse_table,
    };
    int kind = flb_kind_of(o, STEP_COUNT);
    if (kind < 0) return -1;
    PyObject *held = fields_of_step(o, s->kind = kind);
    int failed = !held || parsers[kind](held, s, g) < 0;
    Py_XDECREF(held);
    return failed ? -1 : 0;
}
