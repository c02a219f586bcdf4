/* Rules of operators, and the plans that were chosen for their calls: which formula applies to these
 * arguments and what it keeps. Both come from Python (autograd/record.py) once and are kept. */
#include "autograd/rules.h"

static PyObject *describe_op = NULL; /* describe(op) -> Rule */
static PyObject *choose_plan = NULL; /* plan(op, all arguments, positions) -> Plan */
#define MAX_PLANS 64

static int rule_traverse(FlbRule *r, visitproc visit, void *arg) {
    Py_VISIT(r->op);
    Py_VISIT(r->plans);
    Py_VISIT(r->functional);
    return 0;
}
static int rule_clear(FlbRule *r) {
    Py_CLEAR(r->op);
    Py_CLEAR(r->plans);
    Py_CLEAR(r->functional);
    return 0;
}
static void rule_dealloc(FlbRule *r) {
    PyObject_GC_UnTrack(r);
    rule_clear(r);
    Py_XDECREF(r->name);
    Py_XDECREF(r->node_type);
    PyObject_GC_Del(r);
}
static PyObject *rule_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *kw[] = {"op",      "n_args",  "name",     "outputs",    "inputs", "native",
                         "nothing", "is_view", "by_value", "functional", "bare",   NULL};
    PyObject *op, *name, *functional = Py_None;
    unsigned long long outputs, inputs;
    int native, nothing, is_view, by_value, n_args, bare = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OiUKKpppp|Op", kw, &op, &n_args, &name, &outputs, &inputs,
                                     &native, &nothing, &is_view, &by_value, &functional, &bare))
        return NULL;
    if (n_args < 0 || n_args > MAX_ARGUMENTS)
        return PyErr_SetString(PyExc_ValueError, "an operator has at most 64 arguments"), NULL;
    if (is_view && !n_args) return PyErr_SetString(PyExc_ValueError, "a view has a base"), NULL;
    if (functional != Py_None &&
        (Py_TYPE(functional) != &FlbRule_Type || ((FlbRule *)functional)->n_args > n_args || !n_args))
        return PyErr_SetString(PyExc_TypeError,
                               "functional is the Rule of an operator with the same arguments"),
               NULL;
    if (functional != Py_None && Py_TYPE(functional) != &FlbRule_Type)
        return PyErr_SetString(PyExc_TypeError, "functional is a Rule"), NULL;
    FlbRule *r = PyObject_GC_New(FlbRule, &FlbRule_Type);
    if (!r) return NULL;
    r->op = Py_NewRef(op), r->name = Py_NewRef(name);
    r->node_type = NULL;
    r->functional = functional == Py_None ? NULL : (FlbRule *)Py_NewRef(functional);
    r->outputs = outputs;
    r->inputs = inputs;
    r->n_args = n_args;
    r->native = native, r->nothing = nothing, r->is_view = is_view, r->by_value = by_value, r->bare = bare;
    r->plans = PyList_New(0);
    PyObject_GC_Track(r);
    if (!r->plans) Py_CLEAR(r);
    return (PyObject *)r;
}
static PyObject *rule_plans(FlbRule *r, void *c) {
    return r->plans ? PyList_AsTuple(r->plans) : PyTuple_New(0);
}
static PyGetSetDef rule_getset[] = {{"plans", (getter)rule_plans, NULL, "the plans chosen so far, a tuple"},
                                    {NULL}};
static PyMemberDef rule_members[] = {{"op", T_OBJECT, offsetof(FlbRule, op), READONLY, "the operator"},
                                     {"name", T_OBJECT, offsetof(FlbRule, name), READONLY, "of its nodes"},
                                     {NULL}};
PyTypeObject FlbRule_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._C.Rule",
    .tp_basicsize = sizeof(FlbRule),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "How calls of one operator are recorded.",
    .tp_new = rule_new,
    .tp_dealloc = (destructor)rule_dealloc,
    .tp_traverse = (traverseproc)rule_traverse,
    .tp_clear = (inquiry)rule_clear,
    .tp_getset = rule_getset,
    .tp_members = rule_members,
};

static int plan_traverse(FlbPlan *p, visitproc visit, void *arg) {
    Py_VISIT(p->signature);
    Py_VISIT(p->run);
    return 0;
}
static int plan_clear(FlbPlan *p) {
    Py_CLEAR(p->signature);
    Py_CLEAR(p->run);
    return 0;
}
static void plan_dealloc(FlbPlan *p) {
    PyObject_GC_UnTrack(p);
    plan_clear(p);
    flb_programs_free(p);
    for (int i = 0; i < p->n_saves; i++) Py_XDECREF(p->saves[i].name);
    PyMem_Free(p->saves);
    PyObject_GC_Del(p);
}
/* Plan(saves, run): saves is a tuple of (what, index, name). */
static PyObject *plan_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *saves, *run;
    if (!PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &saves, &run)) return NULL;
    FlbPlan *p = PyObject_GC_New(FlbPlan, &FlbPlan_Type);
    if (!p) return NULL;
    memset((char *)p + sizeof(PyObject), 0, sizeof(FlbPlan) - sizeof(PyObject));
    p->run = Py_NewRef(run);
    PyObject_GC_Track(p);
    int n = (int)PyTuple_GET_SIZE(saves);
    if (!(p->saves = PyMem_Calloc(n + 1, sizeof(FlbSave)))) PyErr_NoMemory();
    for (int i = 0; p->saves && i < n; i++) {
        FlbSave *s = &p->saves[i];
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(saves, i), "iiU", &s->what, &s->index, &s->name)) {
            s->name = NULL;
            break;
        }
        Py_INCREF(s->name);
        p->n_saves++;
    }
    if (PyErr_Occurred()) Py_CLEAR(p);
    return (PyObject *)p;
}
static PyObject *plan_programs(FlbPlan *p, void *c) {
    return Py_BuildValue("(ii)", p->n_programs, p->failures);
}
static PyGetSetDef plan_getset[] = {
    {"programs", (getter)plan_programs, NULL, "(recorded programs, calls that could not be recorded)"},
    {NULL}};
static PyMemberDef plan_members[] = {{"run", T_OBJECT, offsetof(FlbPlan, run), READONLY, "the formula"},
                                     {NULL}};
PyTypeObject FlbPlan_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._C.Plan",
    .tp_basicsize = sizeof(FlbPlan),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Plan(saves, run): what is kept and run(cts, values) -> cotangents.",
    .tp_new = plan_new,
    .tp_dealloc = (destructor)plan_dealloc,
    .tp_traverse = (traverseproc)plan_traverse,
    .tp_clear = (inquiry)plan_clear,
    .tp_getset = plan_getset,
    .tp_members = plan_members,
};

FlbRule *flb_rule_of(PyObject *op) {
    if (!PyObject_TypeCheck(op, &FlbOperator_Type))
        return PyErr_SetString(PyExc_TypeError, "an operator is needed"), NULL;
    PyObject **slot = &((FlbOperator *)op)->rule;
    if (!*slot) {
        PyObject *made = PyObject_CallOneArg(describe_op, op);
        if (!made) return NULL;
        if (Py_TYPE(made) != &FlbRule_Type) {
            Py_DECREF(made);
            return PyErr_SetString(PyExc_TypeError, "describe() returns a Rule"), NULL;
        }
        Py_XSETREF(*slot, made);
    }
    return (FlbRule *)*slot;
}

int flb_same_value(PyObject *a, PyObject *b) {
    if (a == b) return 1;
    if (Py_TYPE(a) != Py_TYPE(b)) return 0;
    if (PyFloat_CheckExact(a)) {
        double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
        return memcmp(&x, &y, sizeof x) == 0;
    }
    if (PyLong_CheckExact(a) || PyUnicode_CheckExact(a) || PyComplex_CheckExact(a)) {
        int r = PyObject_RichCompareBool(a, b, Py_EQ);
        if (r < 0) PyErr_Clear();
        return r > 0;
    }
    if (PyTuple_Check(a) || PyList_Check(a)) {
        Py_ssize_t n = PySequence_Fast_GET_SIZE(a);
        if (n != PySequence_Fast_GET_SIZE(b)) return 0;
        for (Py_ssize_t i = 0; i < n; i++)
            if (!flb_same_value(PySequence_Fast_GET_ITEM(a, i), PySequence_Fast_GET_ITEM(b, i))) return 0;
        return 1;
    }
    return 0; /* other objects are compared by identity */
}
/* The non-tensor arguments; lists are copied, for the user may change them. */
static PyObject *signature_of(PyObject *const *full, int n) {
    PyObject *t = PyTuple_New(n);
    for (int i = 0; t && i < n; i++) {
        PyObject *x = full[i];
        x = PyObject_TypeCheck(x, &FlbTensor_Type) ? Py_NewRef(Py_Ellipsis)
            : PyList_Check(x)                      ? PyList_GetSlice(x, 0, PyList_GET_SIZE(x))
                                                   : Py_NewRef(x);
        if (!x) {
            Py_DECREF(t);
            return NULL;
        }
        PyTuple_SET_ITEM(t, i, x);
    }
    return t;
}
static int fits_signature(FlbPlan *p, PyObject *const *full, int n) {
    if (!p->signature) return 1;
    for (int i = 0; i < n; i++) {
        PyObject *want = PyTuple_GET_ITEM(p->signature, i);
        if (PyObject_TypeCheck(full[i], &FlbTensor_Type)) {
            if (want != Py_Ellipsis) return 0;
        } else if (!flb_same_value(full[i], want)) {
            return 0;
        }
    }
    return 1;
}
FlbPlan *flb_plan_of(FlbRule *rule, PyObject *const *full, uint64_t needs) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rule->plans); i++) {
        FlbPlan *p = (FlbPlan *)PyList_GET_ITEM(rule->plans, i);
        if (p->needs == needs && fits_signature(p, full, rule->n_args)) return (FlbPlan *)Py_NewRef(p);
    }
    PyObject *values = PyTuple_New(rule->n_args), *at = PyList_New(0);
    FlbPlan *p = NULL;
    if (!values || !at) goto done;
    for (int i = 0; i < rule->n_args; i++) {
        PyTuple_SET_ITEM(values, i, Py_NewRef(full[i]));
        if (needs >> i & 1) {
            PyObject *k = PyLong_FromLong(i);
            int bad = !k || PyList_Append(at, k) < 0;
            Py_XDECREF(k);
            if (bad) goto done;
        }
    }
    Py_SETREF(at, PyList_AsTuple(at));
    p = at ? (FlbPlan *)PyObject_CallFunctionObjArgs(choose_plan, rule->op, values, at, NULL) : NULL;
    if (p && Py_TYPE(p) != &FlbPlan_Type) {
        PyErr_SetString(PyExc_TypeError, "plan() returns a Plan");
        Py_CLEAR(p);
    }
    for (int i = 0; p && i < p->n_saves; i++) {
        FlbSave *s = &p->saves[i];
        if (s->index >= 0 && s->what >= SAVE_ARGUMENT && s->what <= SAVE_BY_COLUMNS &&
            (s->what == SAVE_RESULT || s->index < rule->n_args))
            continue;
        PyErr_SetString(PyExc_ValueError, "a Plan keeps an argument that the operator doesn't have");
        Py_CLEAR(p);
    }
    if (!p) goto done;
    p->needs = needs;
    int bad = rule->by_value && !(p->signature = signature_of(full, rule->n_args));
    if (!bad && PyList_GET_SIZE(rule->plans) >= MAX_PLANS)
        bad = PyList_SetSlice(rule->plans, 0, MAX_PLANS / 2, NULL) < 0;
    if (bad || PyList_Append(rule->plans, (PyObject *)p) < 0) Py_CLEAR(p);
done:
    Py_XDECREF(values);
    Py_XDECREF(at);
    return p;
}

void flb_use_rules(PyObject *describe, PyObject *plan) {
    Py_XSETREF(describe_op, Py_NewRef(describe));
    Py_XSETREF(choose_plan, Py_NewRef(plan));
}
