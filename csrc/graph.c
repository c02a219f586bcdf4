/* Building a compiled graph: from the tuples of inductor/program.py to tables. Every place, slot and count is checked here, so that a launch need not. */
#include "graph.h"

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
    if (at < 0 || count < 0 || count > g->nframe || at > g->nframe - count) FAIL("place %d is outside the frame of %d", at, g->nframe);
    return 0;
}

/* (ndim, place, numpy dtype) or None */
static int parse_layout(PyObject *o, Layout *l, Graph *g) {
    if (o == Py_None) return 0;
    PyObject *dtype;
    if (!PyArg_ParseTuple(o, "iiO", &l->ndim, &l->at, &dtype)) return -1;
    if (l->ndim < 0 || l->ndim > NPY_MAXDIMS) FAIL("a tensor of %d dimensions", l->ndim);
    if (check_place(g, l->at, 2 * l->ndim) < 0) return -1;
    return PyArray_DescrConverter(dtype, &l->descr) == NPY_SUCCEED ? 0 : -1;
}

static int check_slots(Graph *g, const int *slots, int n) {
    for (int i = 0; i < n; i++)
        if (slots[i] < 0 || slots[i] >= g->nslots) FAIL("slot %d does not exist", slots[i]);
    return 0;
}

static const char *kind_of(PyObject *o) {
    const char *kind = PyTuple_Check(o) && PyTuple_GET_SIZE(o) ? PyUnicode_AsUTF8(PyTuple_GET_ITEM(o, 0)) : NULL;
    if (!kind && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "an entry is a tuple that starts with its kind");
    return kind;
}

/* ([(source, what, index, place, lo, hi, divisor, itemsize)], [(op, dst, a, b)]) */
static int parse_stage(PyObject *o, Stage *s, Graph *g) {
    PyObject *binds, *code;
    if (!PyArg_ParseTuple(o, "O!O!", &PyList_Type, &binds, &PyList_Type, &code)) return -1;
    if (!(s->binds = zeroed(PyList_GET_SIZE(binds), sizeof(Bind))) || !(s->code = zeroed(PyList_GET_SIZE(code), sizeof(Instruction)))) return -1;
    s->nbinds = (int)PyList_GET_SIZE(binds), s->ncode = (int)PyList_GET_SIZE(code);
    for (int i = 0; i < s->nbinds; i++) {
        Bind *b = &s->binds[i];
        long long lo, hi, divisor, item;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(binds, i), "iiiiLLLL", &b->source, &b->what, &b->index, &b->dst, &lo, &hi, &divisor, &item) ||
            check_place(g, b->dst, 1) < 0) return -1;
        b->lo = lo, b->hi = hi, b->divisor = divisor, b->item = item;
        if (b->what < BIND_SIZE || b->what > BIND_VALUE || b->index < 0 || b->source < 0 || divisor < 1 || item < 1) FAIL("a wrong binding");
    }
    for (int i = 0; i < s->ncode; i++) {
        Instruction *c = &s->code[i];
        int op;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(code, i), "iiii", &op, &c->dst, &c->a, &c->b) || check_place(g, c->dst, 1) < 0 ||
            check_place(g, c->a, 1) < 0 || check_place(g, c->b, 1) < 0) return -1;
        if (op < 0 || op >= OP_COUNT) FAIL("instruction %d does not exist", op);
        c->op = (uint8_t)op;
    }
    return 0;
}

/* ("input", k, layout) ("arena", place of the offset, layout) ("output", place of the bytes, plain, stage, layout) ("constant", ndarray) ("own", place of the bytes, layout)
 * ("local", bytes of the locals before it, bytes of a row): rows in a thread's scratch memory ("object", layout): what a Python step returns; ("value",): any object it returns, for an output only */
static int parse_slot(PyObject *o, Slot *s, Graph *g) {
    const char *kind = kind_of(o);
    PyObject *layout = Py_None;
    if (!kind) return -1;
    switch (kind[0]) {
    case 'i':
        s->kind = SLOT_INPUT;
        if (!PyArg_ParseTuple(o, "snO", &kind, &s->index, &layout)) return -1;
        if (s->index < 0 || s->index >= g->ninputs) FAIL("input %zd does not exist", s->index);
        g->input_slot[s->index] = (int)(s - g->slots);
        break;
    case 'a':
        s->kind = SLOT_ARENA;
        if (!PyArg_ParseTuple(o, "siO", &kind, &s->at, &layout) || check_place(g, s->at, 1) < 0) return -1;
        break;
    case 'c': {
        PyObject *array;
        s->kind = SLOT_CONSTANT;
        if (!PyArg_ParseTuple(o, "sO!", &kind, &PyArray_Type, &array)) return -1;
        s->constant = Py_NewRef(array);
        return 0;
    }
    case 'v':
        s->kind = SLOT_VALUE;
        return 0;
    case 'l':
        s->kind = SLOT_LOCAL;
        return PyArg_ParseTuple(o, "sni", &kind, &s->index, &s->at) ? 0 : -1;
    default:
        s->kind = kind[1] == 'u' ? SLOT_OUTPUT : kind[1] == 'w' ? SLOT_OWN : SLOT_OBJECT;
        if (s->kind == SLOT_OWN) {
            if (!PyArg_ParseTuple(o, "siO", &kind, &s->at, &layout) || check_place(g, s->at, 1) < 0) return -1;
        } else
        if (s->kind == SLOT_OUTPUT) {
            if (!PyArg_ParseTuple(o, "sipiO", &kind, &s->at, &s->plain, &s->stage, &layout) || check_place(g, s->at, 1) < 0) return -1;
            if (s->stage < 0 || s->stage >= g->nstages) FAIL("stage %d does not exist", s->stage);
        } else if (!PyArg_ParseTuple(o, "sO", &kind, &layout)) return -1;
    }
    return parse_layout(layout, &s->layout, g);
}

static int parse_parts(PyObject *parts, Step *s, Graph *g) {
    if (PyList_GET_SIZE(parts) != s->nargs) FAIL("a call step takes one part for each slot");
    if (!(s->parts = zeroed(s->nargs, sizeof(Part)))) return -1;
    for (int i = 0; i < s->nargs; i++) {
        PyObject *layout;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(parts, i), "iO", &s->parts[i].at, &layout) || check_place(g, s->parts[i].at, 1) < 0 ||
            parse_layout(layout, &s->parts[i].layout, g) < 0) return -1;
    }
    return 0;
}

static int parse_step(PyObject *o, Step *s, Graph *g);

/* The steps of a launch over rows, and what each has to an iteration. */
static int parse_members(Rows *r, PyObject *steps, PyObject *ratios, Graph *g) {
    Py_ssize_t n = PyList_GET_SIZE(steps);
    if (n > MOST_ROW_STEPS || n != PyList_GET_SIZE(ratios)) FAIL("a wrong launch over rows");
    for (Py_ssize_t i = 0; i < n; i++) {
        long long num, den;
        r->nsteps++;
        if (parse_step(PyList_GET_ITEM(steps, i), &r->steps[i], g) < 0 || !PyArg_ParseTuple(PyList_GET_ITEM(ratios, i), "LL", &num, &den)) return -1;
        r->num[i] = num, r->den[i] = den;
        const Step *t = &r->steps[i];
        if (num < 0 || den < 1 || (num ? r->unit * den % num != 0 : t->kind != STEP_GEMM || !t->nbatch || !r->lanes) || (t->kind != STEP_KERNEL && t->kind != STEP_GEMM) || t->nargs > MOST_ROW_ARGS)
            FAIL("a wrong step of a launch over rows");
    }
    return 0;
}

/* ("rows", rows, period, unit, block, [bytes of a row of each local], [step], [(rows, iterations) that go together; (0, 1): a sum over rows], lanes) */
static int parse_rows(PyObject *o, Step *s, Graph *g) {
    const char *kind;
    long long rows, period, unit, block, lanes;
    PyObject *locals, *steps, *ratios;
    Rows *r = s->rows = zeroed(1, sizeof(Rows));
    s->kind = STEP_ROWS;
    if (!r || !PyArg_ParseTuple(o, "sLLLLO!O!O!L", &kind, &rows, &period, &unit, &block, &PyList_Type, &locals, &PyList_Type, &steps, &PyList_Type, &ratios, &lanes)) return -1;
    r->rows = rows, r->period = period, r->unit = unit, r->block = block, r->lanes = lanes, r->slots = g->slots;
    Py_ssize_t nlocals = PyList_GET_SIZE(locals);
    if (rows < 1 || period < 1 || rows % period || (period != rows && period % unit) || unit < 1 || block < unit || block % unit || lanes < 0 || lanes > period || nlocals > MOST_VIEWS * 4) FAIL("a wrong launch over rows");
    for (Py_ssize_t i = 0; i < nlocals; i++) {
        r->local[r->nlocals++] = PyLong_AsLongLong(PyList_GET_ITEM(locals, i));
        if (PyErr_Occurred()) return -1;
    }
    return parse_members(r, steps, ratios, g);
}

/* (planes, unit, [kernel step], [(planes, iterations) that go together]): who takes the result of a convolution */
static int parse_planes(PyObject *o, Step *s, Graph *g) {
    long long planes, unit;
    PyObject *steps, *ratios;
    Rows *r = s->rows = zeroed(1, sizeof(Rows));
    if (!r || !PyArg_ParseTuple(o, "LLO!O!", &planes, &unit, &PyList_Type, &steps, &PyList_Type, &ratios)) return -1;
    r->rows = r->period = planes, r->unit = r->block = unit, r->slots = g->slots;
    if (planes < 1 || unit < 1 || planes % unit || s->native != flb_convolve_step) FAIL("a wrong launch over planes");
    if (parse_members(r, steps, ratios, g) < 0) return -1;
    for (int i = 0; i < r->nsteps; i++)
        if (r->steps[i].kind != STEP_KERNEL) FAIL("planes are taken by kernels");
    return 0;
}

/* ("kernel", address, slots, total, grain, params, number of params)
 * ("gemm", address, is_f64, (A, B, C), ta, tb, sizes, number of batch dimensions[, choice])
 * ("native", name, slots, [(place of the offset, layout) within each slot], [place of each integer][, who takes the planes of its result])
 * ("tell", slots, [(place of the offset, layout) within each slot], stage)
 * ("call", callable, slots, [(place of the offset, layout) within each slot], result slots (-1: a number), stage, [place of each integer]) */
static int parse_step(PyObject *o, Step *s, Graph *g) {
    const char *kind = kind_of(o);
    PyObject *args, *more = NULL, *numbers, *parts = NULL;
    unsigned long long address;
    if (!kind) return -1;
    if (kind[0] == 'r') return parse_rows(o, s, g);
    if (kind[0] == 'k') {
        int nparams;
        s->kind = STEP_KERNEL;
        if (!PyArg_ParseTuple(o, "sKOiiii", &kind, &address, &args, &s->total, &s->grain, &s->params, &nparams) ||
            check_place(g, s->total, 1) < 0 || check_place(g, s->grain, 1) < 0 || check_place(g, s->params, nparams) < 0) return -1;
        s->fn = (KernelFn)(uintptr_t)address;
    } else if (kind[0] == 'g') {
        int ta, tb;
        s->kind = STEP_GEMM;
        if (!PyArg_ParseTuple(o, "sKpOCCii|i", &kind, &address, &s->f64, &args, &ta, &tb, &s->sizes, &s->nbatch, &s->choice)) return -1;
        if (s->choice < 0 || s->choice >= MOST_CHOICE || (s->choice & 15) >= PRODUCT_WAYS) FAIL("there is no choice %d for a product", s->choice);
        if (s->nbatch < 0 || s->nbatch > NPY_MAXDIMS || check_place(g, s->sizes, 9 + 4 * s->nbatch) < 0) return -1;
        s->gemm = (GemmFn)(uintptr_t)address;
        s->ta = (char)ta, s->tb = (char)tb;
    } else if (kind[0] == 'n') {
        const char *name;
        s->kind = STEP_NATIVE;
        if (!PyArg_ParseTuple(o, "ssOO!O|O", &kind, &name, &args, &PyList_Type, &parts, &numbers, &more)) return -1;
        if (parse_ints(numbers, &s->numbers, &s->nnumbers) < 0) return -1;
        for (int i = 0; i < s->nnumbers; i++)
            if (check_place(g, s->numbers[i], 1) < 0) return -1;
        s->native = flb_native(name, (int)PyList_GET_SIZE(parts), s->nnumbers);
        if (s->native == flb_expect_step) g->has_call = 1; /* what follows relies on it */
        if (!s->native || s->nnumbers > MOST_NUMBERS) FAIL("there is no template %s of %d views", name, (int)PyList_GET_SIZE(parts));
        if (more && parse_planes(more, s, g) < 0) return -1;
    } else if (kind[0] == 't') {
        s->kind = STEP_TELL;
        if (!PyArg_ParseTuple(o, "sOO!i", &kind, &args, &PyList_Type, &parts, &s->stage)) return -1;
        if (s->stage < 1 || s->stage >= g->nstages) FAIL("stage %d does not exist", s->stage);
        for (int i = 0; i < g->stages[s->stage].nbinds; i++) {
            const Bind *b = &g->stages[s->stage].binds[i];
            if (b->source >= PyList_GET_SIZE(parts) || b->what != BIND_VALUE) FAIL("number %d is not told", b->source);
        }
        g->has_call = 1;
    } else {
        s->kind = STEP_CALL;
        if (!PyArg_ParseTuple(o, "sOOO!OiO", &kind, &s->callable, &args, &PyList_Type, &parts, &more, &s->stage, &numbers)) return -1;
        Py_INCREF(s->callable);
        if (s->stage < 0 || s->stage >= g->nstages) FAIL("stage %d does not exist", s->stage);
        if (parse_ints(numbers, &s->numbers, &s->nnumbers) < 0) return -1;
        for (int i = 0; i < s->nnumbers; i++)
            if (check_place(g, s->numbers[i], 1) < 0) return -1;
        if (parse_ints(more, &s->results, &s->nresults) < 0) return -1;
        for (int i = 0; i < s->nresults; i++)
            if (s->results[i] != -1 && check_slots(g, s->results + i, 1) < 0) return -1;
        for (int i = 0; s->stage && i < g->stages[s->stage].nbinds; i++)
            if (g->stages[s->stage].binds[i].source >= s->nresults) FAIL("result %d does not exist", g->stages[s->stage].binds[i].source);
        g->has_call = 1;
    }
    if (parse_ints(args, &s->args, &s->nargs) < 0 || (parts && parse_parts(parts, s, g) < 0)) return -1;
    if (s->kind == STEP_KERNEL && s->nargs + 2 > g->widest) g->widest = s->nargs + 2;
    if (s->kind == STEP_GEMM && s->nargs != 3) FAIL("a gemm step takes three slots");
    for (int i = 0; s->kind == STEP_TELL && i < s->nargs; i++)
        if (s->parts[i].layout.ndim || !s->parts[i].layout.descr || s->parts[i].layout.descr->type_num != NPY_INT64) FAIL("what is told is int64");
    return check_slots(g, s->args, s->nargs);
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
        if (begin < done || count < 2 || count > MOST_TOGETHER || count > g->nsteps - begin) FAIL("steps from %d on, %d, can't run side by side", begin, count);
        done = begin + count;
        for (int k = begin; k < done; k++) {
            const Step *s = &g->steps[k];
            if ((s->kind != STEP_KERNEL && s->kind != STEP_GEMM && s->kind != STEP_NATIVE) || s->nargs + 2 > MOST_POINTERS) FAIL("step %d can't run beside others", k);
            g->together[k] = k == begin ? (uint8_t)count : 0;
        }
    }
    return 0;
}

/* ("slot", slot, place of the offset, layout or None for the whole array) ("input", k) ("constant", object) ("number", place)
 * ("value", slot) */
static int parse_output(PyObject *o, Output *out, Graph *g) {
    const char *kind = kind_of(o);
    PyObject *x;
    if (!kind) return -1;
    switch (kind[0]) {
    case 's':
        out->kind = OUT_SLOT;
        if (!PyArg_ParseTuple(o, "siiO", &kind, &out->slot, &out->at, &x) || check_place(g, out->at, 1) < 0) return -1;
        out->whole = x == Py_None;
        if (check_slots(g, &out->slot, 1) < 0) return -1;
        if (g->slots[out->slot].kind == SLOT_ARENA || g->slots[out->slot].kind == SLOT_OWN) FAIL("slot %d is gone when the call ends", out->slot);
        return parse_layout(x, &out->layout, g);
    case 'i':
        out->kind = OUT_INPUT;
        if (!PyArg_ParseTuple(o, "si", &kind, &out->slot)) return -1;
        if (out->slot < 0 || out->slot >= g->ninputs) FAIL("input %d does not exist", out->slot);
        return 0;
    case 'v':
        out->kind = OUT_VALUE;
        return PyArg_ParseTuple(o, "si", &kind, &out->slot) ? check_slots(g, &out->slot, 1) : -1;
    case 'n':
        out->kind = OUT_NUMBER;
        return PyArg_ParseTuple(o, "si", &kind, &out->at) ? check_place(g, out->at, 1) : -1;
    }
    out->kind = OUT_CONSTANT;
    if (!PyArg_ParseTuple(o, "sO", &kind, &x)) return -1;
    out->constant = Py_NewRef(x);
    return 0;
}

static PyObject *graph_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"ninputs", "frame", "stages", "slots", "steps", "outputs", "arena", "on_error", "on_mismatch", "info", "light", "together", NULL};
    PyObject *frame, *stages, *slots, *steps, *outputs, *on_error, *on_mismatch, *info = Py_None, *together = NULL;
    int ninputs, arena, light = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "iO!O!O!O!O!iOO|OpO!", names, &ninputs, &PyList_Type, &frame, &PyList_Type, &stages, &PyList_Type,
                                     &slots, &PyList_Type, &steps, &PyList_Type, &outputs, &arena, &on_error, &on_mismatch, &info, &light, &PyList_Type, &together))
        return NULL;
    Graph *g = (Graph *)type->tp_alloc(type, 0);
    if (!g) return NULL;
    g->call = flb_graph_call;
    g->ninputs = ninputs, g->arena = arena, g->light = light;
    g->on_error = Py_NewRef(on_error), g->on_mismatch = Py_NewRef(on_mismatch), g->info = Py_NewRef(info);
    if (!(g->frame = zeroed(PyList_GET_SIZE(frame), sizeof(Frame))) || !(g->stages = zeroed(PyList_GET_SIZE(stages), sizeof(Stage))) ||
        !(g->slots = zeroed(PyList_GET_SIZE(slots), sizeof(Slot))) || !(g->steps = zeroed(PyList_GET_SIZE(steps), sizeof(Step))) ||
        !(g->outputs = zeroed(PyList_GET_SIZE(outputs), sizeof(Output))) || !(g->input_slot = zeroed(ninputs, sizeof(int)))) goto fail;
    g->nframe = (int)PyList_GET_SIZE(frame);
    for (int i = 0; i < ninputs; i++) g->input_slot[i] = -1;
    for (int i = 0; i < g->nframe; i++) g->frame[i] = PyLong_AsLongLong(PyList_GET_ITEM(frame, i));
    if (PyErr_Occurred() || check_place(g, arena, 1) < 0) goto fail;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(stages); i++) {
        g->nstages++;
        if (parse_stage(PyList_GET_ITEM(stages, i), &g->stages[i], g) < 0) goto fail;
        if (g->stages[i].nbinds || g->stages[i].ncode) g->dynamic = 1;
    }
    if (!g->nstages) {
        PyErr_SetString(PyExc_ValueError, "a graph has a stage at least");
        goto fail;
    }
    for (int i = 0; i < g->stages[0].nbinds; i++)
        if (g->stages[0].binds[i].source >= ninputs) {
            PyErr_SetString(PyExc_ValueError, "a binding of an input that does not exist");
            goto fail;
        }
    g->nslots = (int)PyList_GET_SIZE(slots);
    for (int i = 0; i < g->nslots; i++)
        if (parse_slot(PyList_GET_ITEM(slots, i), &g->slots[i], g) < 0) goto fail;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(steps); i++) {
        g->nsteps++;
        if (parse_step(PyList_GET_ITEM(steps, i), &g->steps[i], g) < 0) goto fail;
    }
    if (parse_together(together, g) < 0) goto fail;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(outputs); i++) {
        g->noutputs++;
        if (parse_output(PyList_GET_ITEM(outputs, i), &g->outputs[i], g) < 0) goto fail;
    }
    if (flb_graph_turns(g) < 0) goto fail;
    return (PyObject *)g;
fail:
    Py_DECREF(g);
    return NULL;
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

static PyGetSetDef graph_getset[] = {
    {"step_seconds", (getter)get_seconds, NULL, "seconds that each step has taken while time_steps was on, over all calls"},
    {"arena_size", (getter)get_arena, NULL, "bytes of the intermediate results that don't live by themselves; 0 where sizes are symbolic"},
    {NULL},
};

static PyMethodDef graph_methods[] = {
    {"consume", flb_graph_consume, METH_O,
     "consume(list of the inputs) -> list of the outputs. The list is emptied; what nobody else holds is freed after its last use, and outputs get memory when "
     "they are made."},
    {NULL},
};

static PyMemberDef graph_members[] = {
    {"info", T_OBJECT, offsetof(Graph, info), READONLY, "what the compiler keeps with the graph"},
    {"nsteps", T_INT, offsetof(Graph, nsteps), READONLY, "kernels, matrix products and Python calls a launch makes"},
    {"dynamic", T_INT, offsetof(Graph, dynamic), READONLY, "whether sizes are computed at each call"},
    {"__dictoffset__", T_PYSSIZET, offsetof(Graph, dict), READONLY},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Graph, call), READONLY},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Graph, weakrefs), READONLY},
    {NULL},
};

PyTypeObject FlbGraph_Type = {
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
    .tp_methods = graph_methods,
    .tp_getset = graph_getset,
    .tp_vectorcall_offset = offsetof(Graph, call),
    .tp_dictoffset = offsetof(Graph, dict),
    .tp_weaklistoffset = offsetof(Graph, weakrefs),
};
