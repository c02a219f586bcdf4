/* The CallPlan object: what Python worked out, read and checked once, and the module's functions about plans.
 */
#include "core/calls.h"

static void call_plan_dealloc(FlbCallPlan *r) {
    PyObject_GC_UnTrack(r);
    for (int i = 0; r->results && i < r->n_results; i++) Py_XDECREF(r->results[i].descr);
    PyMem_Free(r->results);
    for (int i = 0; i < r->n_steps; i++) PyMem_Free(r->steps[i].native);
    PyMem_Free(r->steps);
    PyMem_Free(r->temporaries);
    PyMem_Free(r->constants);
    PyMem_Free(r->numbers);
    PyMem_Free(r->extents);
    Py_XDECREF(r->keep);
    PyObject_GC_Del(r);
}
static int call_plan_traverse(FlbCallPlan *r, visitproc visit, void *arg) {
    Py_VISIT(r->keep);
    return 0;
}
static int read_sizes(PyObject *tuple, npy_intp *to, int most) {
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) > most)
        return PyErr_SetString(PyExc_ValueError, "a call plan's sizes are a short tuple"), -1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
        to[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, i));
        if (to[i] == -1 && PyErr_Occurred()) return -1;
    }
    return (int)PyTuple_GET_SIZE(tuple);
}
static int read_operand(PyObject *t, Operand *o, int n_slots, int n_dims) {
    PyObject *strides;
    if (!PyArg_ParseTuple(t, "inO", &o->slot, &o->offset, &strides)) return -1;
    if (o->slot < 0 || o->slot >= n_slots || read_sizes(strides, o->strides, R_DIMS) != n_dims) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError,
                            "a call plan's operand names no slot, or its strides aren't those of the loops");
        return -1;
    }
    return 0;
}
/* The inner loop a step names: ("ufunc", ufunc, type numbers), ("cast", from, to), ("copy", itemsize),
 * ("select", itemsize);
 * ("gather",), ("scatter", how, type number): reads and writes by index. `ufunc` and `type` are told of a
 * ufunc of two operands that have the type of its result. */
static int read_loop(PyObject *spec, Step *s, const char **ufunc, int *type) {
    const char *what;
    PyObject *a = NULL, *b = NULL;
    if (!PyTuple_Check(spec)) return PyErr_SetString(PyExc_TypeError, "a call plan's loop is a tuple"), -1;
    if (!PyArg_ParseTuple(spec, "s|OO", &what, &a, &b)) return -1;
    if (!strcmp(what, "gather")) {
        s->kind = S_GATHER, s->n_operands = 2;
        return 0;
    }
    if (!a) return PyErr_Format(PyExc_LookupError, "no inner loop for %R", spec), -1;
    if (!strcmp(what, "scatter")) {
        long type = b ? PyLong_AsLong(b) : -1;
        const char *how = PyUnicode_AsUTF8(a);
        if (PyErr_Occurred()) return -1;
        s->kind = S_SCATTER, s->n_operands = 2;
        s->combine = flb_call_plan_combine(how, (int)type);
        if (!s->combine && strcmp(how, "assign"))
            return PyErr_Format(PyExc_ValueError, "no way to combine for %R", spec), -1;
        return 0;
    }
    if (!strcmp(what, "ufunc")) {
        PyUFuncObject *u = (PyUFuncObject *)a;
        npy_intp types[R_OPERANDS];
        if (!PyObject_TypeCheck(a, &PyUFunc_Type) || !b)
            return PyErr_SetString(PyExc_TypeError, "a ufunc and its types are needed"), -1;
        int n = read_sizes(b, types, R_OPERANDS);
        if (n < 0) return -1;
        s->n_operands = n; /* what it reads; read_step compares */
        for (int i = 0; n == u->nargs && i < u->ntypes; i++) {
            int same = 1;
            for (int k = 0; k < n; k++) same &= (unsigned char)u->types[i * n + k] == types[k];
            if (same && u->functions[i]) {
                s->fn = u->functions[i];
                s->data = u->data ? ((void *const *)u->data)[i] : NULL;
                if (n == 3 && types[0] == types[1] && types[1] == types[2])
                    *ufunc = u->name, *type = (int)types[0];
                return 0;
            }
        }
    } else {
        long x = PyLong_AsLong(a), y = b ? PyLong_AsLong(b) : 0;
        if (PyErr_Occurred()) return -1;
        s->n_operands = !strcmp(what, "select") ? 4 : 2;
        s->fn = !strcmp(what, "cast") ? flb_cast_loop((int)x, (int)y)
            : !strcmp(what, "copy")   ? flb_copy_loop((int)x)
                                      : flb_select_loop((int)x);
    }
    if (!s->fn) return PyErr_Format(PyExc_LookupError, "no inner loop for %R", spec), -1;
    return 0;
}
static int read_step(PyObject *t, Step *s, int n_slots) {
    PyObject *loop, *dims, *inner, *steps, *operands, *loads;
    if (PyTuple_Check(t) && PyTuple_GET_SIZE(t) == 4) {
        s->kind = S_KERNEL;
        s->native = flb_plan_kernel_read(t, n_slots);
        return s->native ? 0 : -1;
    }
    if (!PyArg_ParseTuple(t, "OOOOO!O!n", &loop, &dims, &inner, &steps, &PyTuple_Type, &operands,
                          &PyTuple_Type, &loads, &s->block))
        return -1;
    const char *ufunc = NULL;
    int type = -1;
    if (read_loop(loop, s, &ufunc, &type) < 0) return -1;
    if ((s->n_dims = read_sizes(dims, s->dims, R_DIMS)) < 0 ||
        (s->n_inner = read_sizes(inner, s->inner, 4)) < 0 || read_sizes(steps, s->steps, 12) < 0)
        return -1;
    int reads = s->n_operands;
    s->n_operands = (int)PyTuple_GET_SIZE(operands);
    s->n_loads = (int)PyTuple_GET_SIZE(loads);
    if (s->n_operands > R_OPERANDS || s->n_loads > R_LOADS || s->n_operands != reads)
        return PyErr_SetString(PyExc_ValueError, "a call plan's step has other operands than its loop"), -1;
    PyUFuncGenericFunction own = ufunc && s->n_inner == 1 ? flb_own_loop(ufunc, type, s->steps) : NULL;
    if (own) s->fn = own;
    if (s->kind != S_LOOPS && s->block < 1)
        return PyErr_SetString(PyExc_ValueError, "reads and writes by index move at least a byte"), -1;
    for (int i = 0; i < s->n_dims; i++)
        if (s->dims[i] < 1)
            return PyErr_SetString(PyExc_ValueError, "a call plan's loops run at least once"), -1;
    for (int i = 0; i < s->n_operands; i++)
        if (read_operand(PyTuple_GET_ITEM(operands, i), &s->operand[i], n_slots, s->n_dims) < 0) return -1;
    for (int i = 0; i < s->n_loads; i++) {
        Load *l = &s->load[i];
        PyObject *at;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(loads, i), "Onnii", &at, &l->size, &l->stride, &l->item,
                              &l->wrap) ||
            read_operand(at, &l->at, n_slots, s->n_dims) < 0)
            return -1;
        if (l->item != 4 && l->item != 8)
            return PyErr_SetString(PyExc_ValueError, "an index has 4 or 8 bytes"), -1;
    }
    return 0;
}
static PyObject *call_plan_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"tensors", "results", "steps", "temporaries", "constants", "numbers",
                            "target",  "extents", "view",  "many",        "tracked",   NULL};
    int n_tensors, target = -1, view = 0, many = 0, tracked = 0;
    PyObject *results, *steps = NULL, *temporaries = NULL, *constants = NULL, *numbers = NULL,
                       *extents = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "iO!|$O!O!O!O!iO!ppp", names, &n_tensors, &PyTuple_Type,
                                     &results, &PyTuple_Type, &steps, &PyTuple_Type, &temporaries,
                                     &PyTuple_Type, &constants, &PyTuple_Type, &numbers, &target,
                                     &PyTuple_Type, &extents, &view, &many, &tracked))
        return NULL;
    FlbCallPlan *r = PyObject_GC_New(FlbCallPlan, type);
    if (!r) return NULL;
    memset((char *)r + sizeof(PyObject), 0, sizeof *r - sizeof(PyObject));
    PyObject_GC_Track(r);
    r->n_tensors = n_tensors;
    r->target = target;
    r->view = (uint8_t)view, r->many = (uint8_t)many, r->tracked = (uint8_t)tracked;
    r->keep = PyTuple_Pack(2, steps ? steps : Py_None, constants ? constants : Py_None);
    if (!r->keep) goto fail;
#define SIZE(T) ((T) != NULL ? (int)PyTuple_GET_SIZE(T) : 0)
    int n_results = (int)PyTuple_GET_SIZE(results);
    int n_slots = n_tensors + SIZE(numbers) + (view ? 0 : n_results) + SIZE(temporaries) + SIZE(constants);
    if (n_tensors < 0 || n_slots > R_SLOTS || (!view && n_results > R_RESULTS) || target >= n_tensors ||
        SIZE(numbers) > R_NUMBERS || (target >= 0) != (extents != NULL) ||
        (extents && PyTuple_GET_SIZE(extents) != 3 * n_tensors) || (view && n_tensors < 1)) {
        PyErr_SetString(PyExc_ValueError, "a call plan with too many parts, or parts that don't fit");
        goto fail;
    }
#define ROOM(FIELD, N)                                                   \
    if (!(r->FIELD = PyMem_Calloc((size_t)(N) + 1, sizeof *r->FIELD))) { \
        PyErr_NoMemory();                                                \
        goto fail;                                                       \
    }
    ROOM(results, n_results)
    ROOM(steps, SIZE(steps))
    ROOM(temporaries, SIZE(temporaries))
    ROOM(constants, SIZE(constants))
    ROOM(numbers, SIZE(numbers))
    for (int i = 0; i < n_results; i++) {
        Result *x = &r->results[i];
        PyObject *descr, *dims, *strides;
        if (n_results > 1 && PyTuple_GET_ITEM(results, i) == Py_None) { /* one that wasn't asked for */
            r->n_results = i + 1;
            continue;
        }
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(results, i), "OOOn", &descr, &dims, &strides, &x->offset))
            goto fail;
        if (!(view && descr == Py_None) && !PyArray_DescrCheck(descr)) {
            PyErr_SetString(PyExc_TypeError, "a result's dtype is an np.dtype");
            goto fail;
        }
        x->n_dims = read_sizes(dims, x->dims, R_DIMS);
        if (x->n_dims < 0 || read_sizes(strides, x->strides, R_DIMS) != x->n_dims) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a result has as many strides as sizes");
            goto fail;
        }
        /* Of a view: the dtype where it is another than the base's. */
        x->descr = view && descr == Py_None ? NULL : (PyArray_Descr *)Py_NewRef(descr);
        r->n_results = i + 1;
        npy_intp step = view ? 0 : PyDataType_ELSIZE(x->descr);
        x->dense = 1;
        for (int k = x->n_dims - 1; k >= 0; k--) {
            if (x->strides[k] != step) x->dense = 0;
            step *= x->dims[k];
        }
    }
    for (int i = 0; i < SIZE(steps); i++) {
        if (read_step(PyTuple_GET_ITEM(steps, i), &r->steps[i], n_slots) < 0) goto fail;
        r->n_steps = i + 1;
        r->released |= r->steps[i].kind == S_KERNEL && flb_plan_kernel_is_long(r->steps[i].native);
    }
    if (temporaries && read_sizes(temporaries, r->temporaries, R_SLOTS) < 0) goto fail;
    r->n_temporaries = SIZE(temporaries);
    for (int i = 0; i < r->n_temporaries; i++)
        if (r->temporaries[i] < 0) {
            PyErr_SetString(PyExc_ValueError, "a temporary has a size");
            goto fail;
        }
    for (int i = 0; i < SIZE(constants); i++) {
        PyObject *c = PyTuple_GET_ITEM(constants, i);
        if (!PyArray_Check(c)) {
            PyErr_SetString(PyExc_TypeError, "a constant is an ndarray");
            goto fail;
        }
        r->constants[i] = PyArray_BYTES((PyArrayObject *)c);
    }
    r->n_constants = SIZE(constants);
    for (int i = 0; i < SIZE(numbers); i++) {
        r->numbers[i] = (int)PyLong_AsLong(PyTuple_GET_ITEM(numbers, i));
        if (PyErr_Occurred()) goto fail;
    }
    r->n_numbers = SIZE(numbers);
    if (extents) {
        ROOM(extents, 3 * n_tensors)
        if (read_sizes(extents, r->extents, 3 * n_tensors) < 0) goto fail;
    }
    return (PyObject *)r;
fail:
    Py_DECREF(r);
    return NULL;
}
static PyMemberDef call_plan_members[] = {
    {"kept", T_OBJECT, offsetof(FlbCallPlan, keep), READONLY, "(steps, constants), or None for either"},
    {NULL}};
PyTypeObject FlbCallPlan_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._C.CallPlan",
    .tp_basicsize = sizeof(FlbCallPlan),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "CallPlan(tensors, results, *, steps, temporaries, constants, numbers, target, extents, view, "
              "many, tracked): what calls of one\n"
              "description do. eager/plans makes them; csrc/core/call_plan.h says what the parts are.",
    .tp_new = call_plan_new,
    .tp_dealloc = (destructor)call_plan_dealloc,
    .tp_traverse = (traverseproc)call_plan_traverse,
    .tp_members = call_plan_members,
};

static PyObject *py_forget_call_plans(PyObject *m, PyObject *unused) {
    flb_plan_generation++;
    Py_RETURN_NONE;
}
static PyObject *py_made_by_numbers(PyObject *m, PyObject *args) {
    PyObject *op;
    const char *how;
    if (!PyArg_ParseTuple(args, "O!s", &FlbOperator_Type, &op, &how)) return NULL;
    ((FlbOperator *)op)->by_numbers = strcmp(how, "strides") ? BY_ORDER : BY_STRIDES;
    Py_RETURN_NONE;
}
static PyMethodDef functions[] = {
    {"made_by_numbers", py_made_by_numbers, METH_VARARGS,
     "made_by_numbers(op, how): \"strides\": op(tensor, sizes, strides, offset, ...) is a view inside the "
     "memory of a plain tensor.\n"
     "\"order\": op(tensor, format) of a plain tensor in that order is the tensor. Both are then made "
     "without a call plan."},
    {"forget_call_plans", py_forget_call_plans, METH_NOARGS,
     "Something that call plans depend on changed (the default dtype): none made so far is used again."},
    {NULL}};
int flb_init_call_plan(PyObject *m) {
    import_umath1(-1);
    if (PyType_Ready(&FlbCallPlan_Type) < 0 || PyModule_AddFunctions(m, functions) < 0) return -1;
    return PyModule_AddObjectRef(m, "CallPlan", (PyObject *)&FlbCallPlan_Type);
}
