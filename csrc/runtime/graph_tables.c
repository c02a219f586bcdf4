/* The tables of a compiled graph, from its records: frame, stages, slots, steps, outputs. */
#include "runtime/reading.h"

static int read_stage(PyObject *binds, PyObject *code, Stage *s, Graph *g) {
    if (!(s->binds = flb_zeroed(PyTuple_GET_SIZE(binds), sizeof(Bind))) ||
        !(s->code = flb_zeroed(PyTuple_GET_SIZE(code), sizeof(Instruction))))
        return -1;
    s->nbinds = (int)PyTuple_GET_SIZE(binds), s->ncode = (int)PyTuple_GET_SIZE(code);
    for (int i = 0; i < s->nbinds; i++) {
        Bind *b = &s->binds[i];
        long long lo, hi, divisor, item;
        PyObject *held = flb_fields_of(PyTuple_GET_ITEM(binds, i), "source", "what", "index", "place", "lo",
                                       "hi", "divisor", "itemsize", NULL);
        int read = held &&
            PyArg_ParseTuple(held, "iiiiLLLL", &b->source, &b->what, &b->index, &b->dst, &lo, &hi, &divisor,
                             &item);
        Py_XDECREF(held);
        if (!read || flb_check_place(g, b->dst, 1) < 0) return -1;
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
        if (!PyArg_ParseTuple(row, "iiii", &op, &c->dst, &c->a, &c->b) || flb_check_place(g, c->dst, 1) < 0 ||
            flb_check_place(g, c->a, 1) < 0 || flb_check_place(g, c->b, 1) < 0)
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
    case SLOT_OWN: return PyArg_ParseTuple(held, "i", &s->at) ? flb_check_place(g, s->at, 1) : -1;
    case SLOT_OUTPUT:
        if (!PyArg_ParseTuple(held, "ipi", &s->at, &s->plain, &s->stage) || flb_check_place(g, s->at, 1) < 0)
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
    case SLOT_INPUT: return flb_fields_of(o, "input", NULL);
    case SLOT_ARENA: return flb_fields_of(o, "at", NULL);
    case SLOT_OWN: return flb_fields_of(o, "bytes", NULL);
    case SLOT_OUTPUT: return flb_fields_of(o, "bytes", "plain", "stage", NULL);
    case SLOT_CONSTANT: return flb_fields_of(o, "array", NULL);
    case SLOT_LOCAL: return flb_fields_of(o, "before", "row", NULL);
    }
    return flb_fields_of(o, NULL);
}

static int parse_slot(PyObject *o, Slot *s, Graph *g) {
    int kind = flb_kind_of(o, SLOT_COUNT);
    if (kind < 0) return -1;
    PyObject *held = fields_of_slot(o, s->kind = kind), *layout = NULL;
    int failed = !held || read_slot(held, s, g) < 0;
    Py_XDECREF(held);
    if (failed || kind == SLOT_CONSTANT || kind == SLOT_VALUE || kind == SLOT_LOCAL) return failed ? -1 : 0;
    if (!(layout = PyObject_GetAttrString(o, "layout"))) return -1;
    failed = flb_read_layout(layout, &s->layout, g) < 0;
    Py_DECREF(layout);
    return failed ? -1 : 0;
}

/* [(the first, how many)] of steps that run side by side, in order; or NULL */
static int parse_together(PyObject *o, Graph *g) {
    if (!(g->together = flb_zeroed(g->nsteps, 1))) return -1;
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
        if (!PyArg_ParseTuple(held, "iiO", &out->slot, &out->at, &x) || flb_check_place(g, out->at, 1) < 0 ||
            flb_check_slots(g, &out->slot, 1) < 0)
            return -1;
        out->whole = x == Py_None;
        if (g->slots[out->slot].kind == SLOT_ARENA || g->slots[out->slot].kind == SLOT_OWN)
            FAIL("slot %d is gone when the call ends", out->slot);
        return flb_read_layout(x, &out->layout, g);
    case OUT_INPUT:
        if (!PyArg_ParseTuple(held, "i", &out->slot)) return -1;
        if (out->slot < 0 || out->slot >= g->ninputs) FAIL("input %d does not exist", out->slot);
        return 0;
    case OUT_VALUE: return PyArg_ParseTuple(held, "i", &out->slot) ? flb_check_slots(g, &out->slot, 1) : -1;
    case OUT_NUMBER: return PyArg_ParseTuple(held, "i", &out->at) ? flb_check_place(g, out->at, 1) : -1;
    }
    out->constant = Py_NewRef(PyTuple_GET_ITEM(held, 0));
    return 0;
}

static PyObject *fields_of_output(PyObject *o, int kind) {
    switch (kind) {
    case OUT_SLOT: return flb_fields_of(o, "slot", "at", "layout", NULL);
    case OUT_INPUT: return flb_fields_of(o, "input", NULL);
    case OUT_VALUE: return flb_fields_of(o, "slot", NULL);
    case OUT_NUMBER: return flb_fields_of(o, "at", NULL);
    }
    return flb_fields_of(o, "value", NULL);
}

/* An output of inductor/runtime/records.py. */
static int parse_output(PyObject *o, Output *out, Graph *g) {
    int kind = flb_kind_of(o, OUT_COUNT);
    if (kind < 0) return -1;
    PyObject *held = fields_of_output(o, out->kind = kind);
    int failed = !held || read_output(held, out, g) < 0;
    Py_XDECREF(held);
    return failed ? -1 : 0;
}

static int read_frame(PyObject *frame, Graph *g) {
    g->nframe = (int)PyTuple_GET_SIZE(frame);
    for (int i = 0; i < g->nframe; i++) g->frame[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(frame, i));
    return PyErr_Occurred() ? -1 : flb_check_place(g, g->arena, 1);
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

int flb_read_tables(PyObject *const *tables, PyObject *together, Graph *g) {
    Py_ssize_t n[TABLES];
    for (int i = 0; i < TABLES; i++) n[i] = PyTuple_GET_SIZE(tables[i]);
    if (!(g->frame = flb_zeroed(n[FRAME], sizeof(Frame))) ||
        !(g->stages = flb_zeroed(n[STAGES], sizeof(Stage))))
        return -1;
    if (!(g->slots = flb_zeroed(n[SLOTS], sizeof(Slot))) || !(g->steps = flb_zeroed(n[STEPS], sizeof(Step))))
        return -1;
    if (!(g->outputs = flb_zeroed(n[OUTPUTS], sizeof(Output))) ||
        !(g->input_slot = flb_zeroed(g->ninputs, sizeof(int))))
        return -1;
    for (int i = 0; i < g->ninputs; i++) g->input_slot[i] = -1;
    if (read_frame(tables[FRAME], g) < 0 || read_stages(tables[STAGES], g) < 0) return -1;
    g->nslots = (int)n[SLOTS];
    for (int i = 0; i < g->nslots; i++)
        if (parse_slot(PyTuple_GET_ITEM(tables[SLOTS], i), &g->slots[i], g) < 0) return -1;
    for (Py_ssize_t i = 0; i < n[STEPS]; i++) {
        g->nsteps++;
        if (flb_read_step(PyTuple_GET_ITEM(tables[STEPS], i), &g->steps[i], g) < 0) return -1;
    }
    if (parse_together(together, g) < 0) return -1;
    for (Py_ssize_t i = 0; i < n[OUTPUTS]; i++) {
        g->noutputs++;
        if (parse_output(PyTuple_GET_ITEM(tables[OUTPUTS], i), &g->outputs[i], g) < 0) return -1;
    }
    return flb_graph_turns(g);
}
