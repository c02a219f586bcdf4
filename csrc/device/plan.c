/* Launches and products of a graph, planned once: a call binds memory and numbers to them, and no Python runs
 * between them.
 *
 * A plan knows memory by slots. What a call doesn't give is taken at its first use and given back after its
 * last, in the stream's order. The numbers of a call are the bytes of each slot that is taken, then what each
 * step asks: a launch its blocks and the kernel's numbers; a product where its operands begin (elements
 * behind the slot's), m, n, k, the leading dimensions, then a batch as (count, distances of the operands) a
 * dimension. */
#include "device/memory.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SLOTS = 4096, MOST_ARGUMENTS = 480 }; /* a kernel is handed at most 4096 bytes */

typedef struct {
    FlbFunction *function; /* NULL: a product */
    int threads, cooperative;
    size_t shared;
    FlbProduct product; /* what of it a call doesn't say */
    int n_slots, n_last, first, n_numbers;
    int *slots, *last; /* one block of memory */
} Step;
typedef struct {
    PyObject_HEAD
    int device, n_slots, n_steps, n_numbers;
    Step *steps;
} Plan;

/* What a call knows of a slot. */
typedef struct {
    uint64_t address;
    int64_t nbytes;
    int known, own;
} Slot;

/* ---- the numbers of a step -------------------------------------------------------------------------------
 */

/* What a call brings for each step, one behind the other (`numbers` of the steps in
 * src/flambeau/inductor/device/launches.py). */
typedef struct {
    int64_t blocks, arguments[];
} LaunchNumbers;
typedef struct {
    int64_t count, a_distance, b_distance, c_distance;
} BatchNumbers;
typedef struct {
    int64_t a_offset, b_offset, m, n, k, lda, ldb, ldc;
    BatchNumbers batch[];
} ProductNumbers;
enum {
    PER_LAUNCH = sizeof(LaunchNumbers) / 8,
    PER_PRODUCT = sizeof(ProductNumbers) / 8,
    PER_DIMENSION = sizeof(BatchNumbers) / 8
};

static PyObject *plan_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *where;
    int device, n;
    if (!PyArg_ParseTuple(args, "Oi", &where, &n) || flb_device_from(where, &device) < 0) return NULL;
    if (n < 0 || n > MOST_SLOTS)
        return PyErr_Format(PyExc_ValueError, "Plan(): at most %d slots", MOST_SLOTS);
    Plan *p = (Plan *)type->tp_alloc(type, 0);
    if (p) p->device = device, p->n_slots = p->n_numbers = n;
    return (PyObject *)p;
}
static void plan_dealloc(Plan *p) {
    for (int i = 0; i < p->n_steps; i++) free(p->steps[i].slots);
    free(p->steps);
    Py_TYPE(p)->tp_free(p);
}
/* Slots of a list, behind one another; -1 with an error. */
static int slots_from(const Plan *p, PyObject *list, int *out) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        out[i] = (int)PyLong_AsLong(PyList_GET_ITEM(list, i));
        if (out[i] == -1 && PyErr_Occurred()) return -1;
        if (out[i] < 0 || out[i] >= p->n_slots)
            return PyErr_SetString(PyExc_IndexError, "a slot of a plan"), -1;
    }
    return 0;
}
static PyObject *add(Plan *p, Step s, PyObject *slots, PyObject *last) {
    s.n_slots = (int)PyList_GET_SIZE(slots), s.n_last = (int)PyList_GET_SIZE(last), s.first = p->n_numbers;
    if (s.n_slots + s.n_numbers > MOST_ARGUMENTS || s.n_numbers < 0)
        return PyErr_SetString(PyExc_ValueError, "a step of a plan: too many arguments"), NULL;
    Step *more = realloc(p->steps, sizeof *more * (size_t)(p->n_steps + 1));
    if (!more) return PyErr_NoMemory();
    p->steps = more;
    s.slots = malloc(sizeof(int) * (size_t)(s.n_slots + s.n_last + 1));
    if (!s.slots) return PyErr_NoMemory();
    s.last = s.slots + s.n_slots;
    if (slots_from(p, slots, s.slots) < 0 || slots_from(p, last, s.last) < 0) return free(s.slots), NULL;
    more[p->n_steps++] = s;
    p->n_numbers += s.n_numbers;
    Py_RETURN_NONE;
}
static PyObject *plan_launch(Plan *p, PyObject *args) {
    PyObject *function, *slots, *last;
    Step s = {0};
    Py_ssize_t shared;
    if (!PyArg_ParseTuple(args, "OipnO!O!i", &function, &s.threads, &s.cooperative, &shared, &PyList_Type,
                          &slots, &PyList_Type, &last, &s.n_numbers))
        return NULL;
    s.function = PyLong_AsVoidPtr(function), s.shared = (size_t)shared, s.n_numbers += PER_LAUNCH;
    if (!s.function)
        return PyErr_Occurred() ? NULL
                                : (PyErr_SetString(PyExc_ValueError, "launch(): a function is needed"), NULL);
    return add(p, s, slots, last);
}
static PyObject *plan_product(Plan *p, PyObject *args) {
    PyObject *slots, *last;
    Step s = {0};
    int dimensions;
    if (!PyArg_ParseTuple(args, "ipppO!O!i", &s.product.type, &s.product.ta, &s.product.tb, &s.product.fast,
                          &PyList_Type, &slots, &PyList_Type, &last, &dimensions))
        return NULL;
    if (PyList_GET_SIZE(slots) != 3 || !flb_product_width(&s.product) || dimensions < 0)
        return PyErr_SetString(PyExc_ValueError, "product(): three slots, and a type of elements"), NULL;
    s.n_numbers = PER_PRODUCT + PER_DIMENSION * dimensions;
    return add(p, s, slots, last);
}

/* ---- a call ----------------------------------------------------------------------------------------------
 */

typedef struct {
    const Plan *plan;
    const int64_t *numbers;
    Slot *slots;
    FlbStream *stream;
    Py_ssize_t refused; /* bytes that couldn't be had */
    uint64_t ends[3];   /* of the memory of a product's operands */
} Call;

static int take(Call *c, int k) {
    Slot *s = &c->slots[k];
    if (s->known) return FLB_DONE;
    s->nbytes = c->numbers[k], s->address = 0;
    int status = s->nbytes > 0
        ? flb_driver->allocate(c->plan->device, (size_t)s->nbytes, c->stream, &s->address)
        : FLB_DONE;
    if (status) return c->refused = s->nbytes, status;
    s->known = s->own = 1;
    return FLB_DONE;
}
static int launch(Call *c, const Step *s) {
    const LaunchNumbers *numbers = (const LaunchNumbers *)(c->numbers + s->first);
    int n = s->n_numbers - PER_LAUNCH;
    uint64_t arguments[MOST_ARGUMENTS];
    int64_t extents[MOST_ARGUMENTS];
    if (numbers->blocks <= 0) return FLB_DONE;
    for (int i = 0; i < s->n_slots; i++)
        arguments[i] = c->slots[s->slots[i]].address, extents[i] = c->slots[s->slots[i]].nbytes;
    memcpy(arguments + s->n_slots, numbers->arguments, (size_t)n * 8);
    FlbGrid g = {s->function,    numbers->blocks, s->threads, s->cooperative, s->n_slots,
                 s->n_slots + n, s->shared,       arguments,  extents};
    return flb_driver->launch(c->plan->device, &g, c->stream);
}
/* All matrices but those along the last dimension of the batch, which are one call. */
static int products(Call *c, const FlbProduct *p, uint64_t at[3], const BatchNumbers *batch, int dimensions) {
    FlbProduct one = *p;
    one.batch = 1;
    if (dimensions <= 1) {
        if (dimensions)
            one.batch = batch->count, one.a_distance = batch->a_distance, one.b_distance = batch->b_distance,
            one.c_distance = batch->c_distance;
        for (int i = 0; i < 3 && one.batch > 0; i++)
            if ((int64_t)(c->ends[i] - at[i]) < flb_product_bytes(&one, i)) return FLB_INVALID_ADDRESS;
        return one.batch > 0 ? flb_driver->product(c->plan->device, &one, at[0], at[1], at[2], c->stream)
                             : FLB_DONE;
    }
    for (int64_t i = 0; i < batch->count; i++) {
        const int64_t distances[] = {batch->a_distance, batch->b_distance, batch->c_distance};
        uint64_t there[3];
        for (int k = 0; k < 3; k++) there[k] = at[k] + (uint64_t)(i * distances[k] * flb_product_width(p));
        int status = products(c, p, there, batch + 1, dimensions - 1);
        if (status) return status;
    }
    return FLB_DONE;
}
static int product(Call *c, const Step *s) {
    const ProductNumbers *n = (const ProductNumbers *)(c->numbers + s->first);
    const int64_t offsets[] = {n->a_offset, n->b_offset, 0};
    FlbProduct p = s->product;
    p.m = n->m, p.n = n->n, p.k = n->k, p.lda = n->lda, p.ldb = n->ldb, p.ldc = n->ldc;
    if (p.m <= 0 || p.n <= 0 || p.k <= 0) return FLB_INVALID_HANDLE;
    uint64_t at[3], width = (uint64_t)flb_product_width(&p);
    for (int i = 0; i < 3; i++) {
        const Slot *slot = &c->slots[s->slots[i]];
        at[i] = slot->address + (uint64_t)offsets[i] * width,
        c->ends[i] = slot->address + (uint64_t)slot->nbytes;
    }
    return products(c, &p, at, n->batch, (s->n_numbers - PER_PRODUCT) / PER_DIMENSION);
}
static int run(Call *c, int begin, int end) {
    for (int i = begin; i < end; i++) {
        const Step *s = &c->plan->steps[i];
        int status = FLB_DONE;
        for (int k = 0; k < s->n_slots && !status; k++) status = take(c, s->slots[k]);
        if (!status) status = s->function ? launch(c, s) : product(c, s);
        if (status) return status;
        for (int k = 0; k < s->n_last; k++) {
            Slot *gone = &c->slots[s->last[k]];
            if (gone->own && gone->address) flb_driver->release(c->plan->device, gone->address, c->stream);
            gone->own = gone->known = 0;
        }
    }
    return FLB_DONE;
}
/* What a call is given: memory and where in it a slot begins; -1 with an error. */
static int bind(const Plan *p, PyObject *memories, PyObject *offsets, Slot *out) {
    for (int i = 0; i < p->n_slots; i++) {
        PyObject *o = PyList_GET_ITEM(memories, i);
        out[i] = (Slot){0};
        if (o == Py_None) continue;
        FlbMemory *m = (FlbMemory *)o;
        Py_ssize_t at = PyLong_AsSsize_t(PyList_GET_ITEM(offsets, i));
        if (at == -1 && PyErr_Occurred()) return -1;
        if (!PyObject_TypeCheck(o, flb_memory_type) || m->device != p->device || at < 0 || at > m->nbytes)
            return PyErr_SetString(PyExc_TypeError, "run(): memory of the device is needed"), -1;
        out[i] = (Slot){m->address ? m->address + (uint64_t)at : 0, m->nbytes - at, 1, 0};
    }
    return 0;
}
/* What was taken and is still held becomes memory of the list's; what was given and has been used for the
 * last time leaves it. */
static int hand_over(const Plan *p, PyObject *memories, const Slot *slots, FlbStream *stream) {
    int result = 0;
    for (int i = 0; i < p->n_slots; i++) {
        PyObject *made = Py_None;
        if (slots[i].own)
            made = flb_memory_over(p->device, slots[i].address, (Py_ssize_t)slots[i].nbytes, stream);
        else if (slots[i].known || PyList_GET_ITEM(memories, i) == Py_None) continue;
        else Py_INCREF(made);
        if (!made) result = -1;
        else PyList_SetItem(memories, i, made);
    }
    return result;
}
static PyObject *plan_run(Plan *p, PyObject *args) {
    PyObject *memories, *offsets;
    Py_buffer numbers;
    int begin = 0, end = p->n_steps;
    if (!PyArg_ParseTuple(args, "O!O!y*|ii", &PyList_Type, &memories, &PyList_Type, &offsets, &numbers,
                          &begin, &end))
        return NULL;
    Slot own[64], *slots = p->n_slots <= 64 ? own : malloc(sizeof *slots * (size_t)p->n_slots);
    Call c = {p, numbers.buf, slots, flb_stream_of(p->device), 0, {0}};
    PyObject *result = NULL;
    if (!slots) PyErr_NoMemory();
    else if (PyList_GET_SIZE(memories) != p->n_slots || PyList_GET_SIZE(offsets) != p->n_slots ||
             numbers.len != 8 * (Py_ssize_t)p->n_numbers || begin < 0 || end > p->n_steps)
        PyErr_SetString(
            PyExc_ValueError,
            "run(): memory and an offset for each slot, eight bytes for each number, steps of the plan");
    else if (!bind(p, memories, offsets, slots)) {
        int status;
        Py_BEGIN_ALLOW_THREADS status = run(&c, begin, end);
        Py_END_ALLOW_THREADS int kept = hand_over(p, memories, slots, c.stream);
        result = kept < 0                 ? NULL
            : status == FLB_OUT_OF_MEMORY ? flb_no_memory(p->device, c.refused)
                                          : flb_status(p->device, status);
    }
    if (slots != own) free(slots);
    PyBuffer_Release(&numbers);
    return result;
}
static PyMethodDef methods[] = {
    {"launch", (PyCFunction)plan_launch, METH_VARARGS,
     "launch(function, threads, cooperative, shared, slots, last, n): a kernel on the memory of slots, with "
     "n numbers. last: slots that nothing uses later."},
    {"product", (PyCFunction)plan_product, METH_VARARGS,
     "product(type, ta, tb, fast, slots, last, dimensions): C = A B, with a batch of so many dimensions."},
    {"run", (PyCFunction)plan_run, METH_VARARGS,
     "run(memories, offsets, numbers, begin=0, end=all): the steps. Lists by slot; None is taken, and what "
     "is held at the end stands there then."},
    {NULL}};
static PyTypeObject Plan_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._device.Plan",
    .tp_basicsize = sizeof(Plan),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Plan(device, slots): steps that are launched without Python between them.",
    .tp_new = plan_new,
    .tp_dealloc = (destructor)plan_dealloc,
    .tp_methods = methods,
};
PyTypeObject *flb_plan_type = &Plan_Type;
