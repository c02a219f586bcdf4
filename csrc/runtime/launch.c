/* The launch of a compiled graph as one call.
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
#include "runtime/launch.h"
#include <string.h>

static PyObject *output_array(Call *c, const Output *o) {
    Place *p = &c->places[o->slot];
    return o->whole ? Py_NewRef(p->owner) : flb_array_over(&o->layout, c->f, p->ptr + c->f[o->at], p->owner);
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
        if (flb_bind_symbols(&g->stages[0], c.f, args, "input", NULL) < 0) goto done;
    }
    for (int k = 0; k < g->ninputs; k++) {
        if (g->input_slot[k] < 0) continue;
        PyObject *keep = NULL;
        PyArrayObject *array = flb_input_array(&c, k, args[k], &keep);
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
    int ran = flb_place_slots(&c, 0) < 0 ? -1 : flb_run_steps(&c);
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
    flb_give_slots(&c, INT_MAX);
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
