/* From what a call was given to one value for each argument of a schema.
 *
 * flb_bind_user() knows the types that nearly all calls are made of and says "can't tell" for everything else
 * (NumPy scalars, symbolic integers, objects with __index__, tensors used as numbers): core/bindings.py,
 * which knows the whole language, then decides. Both must agree on what they both know: the first overload in
 * order of declaration that the arguments fit. */
#include "core/calls.h"

static PyObject *str_out, *str_input, *str_requires_grad;

void flb_free_parameters(FlbOperator *op) {
    Parameter *p = op->parameters;
    int n = op->n_parameters;
    op->parameters = NULL;
    op->n_parameters = 0;
    for (int i = 0; p && i < n; i++) {
        Py_DECREF(p[i].name);
        Py_XDECREF(p[i].fallback);
    }
    PyMem_Free(p);
}
void flb_operator_reset(FlbOperator *op) {
    op->ready = 0;
    flb_call_plans_clear(&op->call_plans);
    flb_call_plans_clear(&op->shapes);
    flb_call_plans_clear(&op->decomposed);
    Py_CLEAR(op->kernel);
    Py_CLEAR(op->impl);
    Py_CLEAR(op->named);
    Py_CLEAR(op->body);
    Py_CLEAR(op->inner);
    Py_CLEAR(op->each);
    Py_CLEAR(op->rule); /* parameters stay: a call that is under way reads them */
}
static int read_parameters(FlbOperator *op, PyObject *list) {
    Py_ssize_t n = PyTuple_GET_SIZE(list);
    Parameter *p = PyMem_Calloc(n ? n : 1, sizeof *p);
    if (!p) return PyErr_NoMemory(), -1;
    int positional = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *name, *fallback = NULL;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(list, i), "Ubbbbbbb|O", &name, &p[i].type, &p[i].list,
                              &p[i].optional, &p[i].keyword_only, &p[i].elements_optional, &p[i].sized,
                              &p[i].null_false, &fallback)) {
            op->parameters = p;
            op->n_parameters = (int)i;
            return flb_free_parameters(op), -1;
        }
        p[i].name = Py_NewRef(name);
        PyUnicode_InternInPlace(&p[i].name);
        p[i].fallback = Py_XNewRef(fallback);
        if (fallback && PyUnicode_CheckExact(fallback))
            PyUnicode_InternInPlace(&p[i].fallback); /* call plans know strings by address */
        if (!p[i].keyword_only) positional = (int)i + 1;
    }
    op->n_positional = positional;
    op->n_parameters = (int)n;
    op->parameters = p;
    return 0;
}
/* An operator's schema doesn't change, whatever else of it does: names and kinds are compared, the defaults
 * are those of the first time. */
static int same_parameters(FlbOperator *op, PyObject *list) {
    if (PyTuple_GET_SIZE(list) != op->n_parameters) return 0;
    for (int i = 0; i < op->n_parameters; i++) {
        PyObject *row = PyTuple_GET_ITEM(list, i);
        if (!PyTuple_Check(row) || PyTuple_GET_SIZE(row) < 8 || !PyUnicode_Check(PyTuple_GET_ITEM(row, 0)) ||
            PyUnicode_Compare(PyTuple_GET_ITEM(row, 0), op->parameters[i].name))
            return 0;
    }
    return 1;
}
/* set_signature(parameters, *, varargs, numbers, factory, body, inner, programs, call_plans, view,
 * one_tensor, loud, by_type, factors, named, each, written, rule_first): see FlbOperator. A parameter is
 * (name, type code, list, optional, keyword only, elements optional, sized, null_false, default...). */
PyObject *flb_set_signature(FlbOperator *op, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"parameters", "varargs", "numbers",    "factory",  "body",
                            "call_plans", "view",    "one_tensor", "loud",     "pure",
                            "by_type",    "named",   "inner",      "programs", "factors",
                            "each",       "written", "rule_first", NULL};
    PyObject *list, *named = Py_None, *body = Py_None, *inner = Py_None, *each = Py_None;
    int varargs = -1, numbers = 0, factory = 0, call_plans = 0, view = 0, one = 0, loud = 0, pure = 0,
        programs = 0, rule_first = 0;
    unsigned long long by_type = 0, factors = 0, written = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|$iipOpppppKOOpKOKp", names, &PyTuple_Type, &list,
                                     &varargs, &numbers, &factory, &body, &call_plans, &view, &one, &loud,
                                     &pure, &by_type, &named, &inner, &programs, &factors, &each, &written,
                                     &rule_first))
        return NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(list);
    if (n > MAX_ARGUMENTS)
        return PyErr_Format(PyExc_ValueError, "an operator has at most %d arguments", MAX_ARGUMENTS), NULL;
    if (varargs >= n || (named != Py_None && !PyType_Check(named)))
        return PyErr_SetString(PyExc_ValueError, "set_signature(): bad value"), NULL;
    if (op->parameters ? !same_parameters(op, list) : read_parameters(op, list) < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "set_signature(): an operator keeps its parameters");
        return NULL;
    }
    op->varargs = varargs;
    op->numbers = (uint8_t)numbers, op->factory = (uint8_t)factory, op->call_plans_on = (uint8_t)call_plans;
    op->is_view = (uint8_t)view, op->one_tensor = (uint8_t)one, op->loud = (uint8_t)loud,
    op->pure = (uint8_t)pure, op->rule_first = (uint8_t)rule_first;
    op->by_type = by_type, op->factors = factors, op->programs = (uint8_t)programs;
    if (each != Py_None && flb_check_each(op, each) < 0) return NULL;
    op->written = written, op->each_writes = written != 0;
    Py_XSETREF(op->each, each == Py_None ? NULL : Py_NewRef(each));
    Py_XSETREF(op->inner, inner == Py_None ? NULL : Py_NewRef(inner));
    Py_XSETREF(op->named, named == Py_None ? NULL : Py_NewRef(named));
    Py_XSETREF(op->body, body == Py_None ? NULL : Py_NewRef(body));
    op->ready = 1;
    Py_RETURN_NONE;
}
int flb_prepare(FlbOperator *op) {
    if (op->ready) return 0;
    if (!flb_prepare_handler) return PyErr_SetString(PyExc_RuntimeError, "flambeau is not imported"), -1;
    PyObject *r = PyObject_CallOneArg(flb_prepare_handler, (PyObject *)op);
    if (!r) return -1;
    Py_DECREF(r);
    if (!op->ready) return PyErr_SetString(PyExc_SystemError, "an operator was not prepared"), -1;
    return 0;
}

static int find(FlbOperator *op, PyObject *name) {
    for (int i = 0; i < op->n_parameters; i++)
        if (op->parameters[i].name == name) return i;
    for (int i = 0; i < op->n_parameters; i++)
        if (PyUnicode_Compare(op->parameters[i].name, name) == 0) return i;
    return -1;
}

int flb_bind_exact(FlbOperator *op, PyObject *const *args, Py_ssize_t n, PyObject *kwnames,
                   PyObject **values) {
    if (n > op->n_positional) return 0;
    for (Py_ssize_t i = 0; i < n; i++) values[i] = args[i];
    for (int i = (int)n; i < op->n_parameters; i++) values[i] = NULL;
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++) {
        int i = find(op, PyTuple_GET_ITEM(kwnames, k));
        if (i < 0 || values[i]) return 0;
        values[i] = args[n + k];
    }
    for (int i = (int)n; i < op->n_parameters; i++)
        if (!values[i] && !(values[i] = op->parameters[i].fallback)) return 0;
    return 1;
}

/* ---- what users write ---------------------------------------------------------------------------------- */

enum { NO = 0, YES = 1, UNSURE = -1, FAILED = -2 };

static inline int is_tensor(PyObject *o) { return PyObject_TypeCheck(o, &FlbTensor_Type); }
static inline int zero_dim(PyObject *o) {
    FlbTensor *t = (FlbTensor *)o;
    return t->array ? PyArray_NDIM((PyArrayObject *)t->array) == 0
                    : t->shape && PyTuple_GET_SIZE(t->shape) == 0;
}
/* Something that is certainly neither a number nor convertible to one. */
static inline int plain_other(PyObject *o) {
    PyTypeObject *t = Py_TYPE(o);
    return t == &PyUnicode_Type || t == &PyList_Type || t == &PyTuple_Type || t == &PyDict_Type ||
        t == flb_dtype_class || t == flb_format_class || t == Py_TYPE(flb_cpu_device) ||
        t == (PyTypeObject *)flb_size_class;
}
/* A tensor that may stand for an integer. */
static inline int one_element(PyObject *o) {
    FlbTensor *t = (FlbTensor *)o;
    return zero_dim(o) || (t->array && PyArray_SIZE((PyArrayObject *)t->array) == 1);
}
/* An int of 64 bits is one at once; Python says what is wrong with a longer one. */
static inline int fits(PyObject *o) {
    int overflow;
    PyLong_AsLongLongAndOverflow(o, &overflow);
    return overflow ? UNSURE : YES;
}
static inline int is_sequence(PyObject *o) {
    PyTypeObject *t = Py_TYPE(o);
    return t == &PyList_Type || t == &PyTuple_Type || t == (PyTypeObject *)flb_size_class;
}
static int bind_list(const Parameter *p, PyObject *o, PyObject **value) {
    int ints = p->type == P_INT;
    if (!is_sequence(o)) {
        if (is_tensor(o)) return p->sized && one_element(o) ? UNSURE : NO;
        if (!p->sized)
            return PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o) || plain_other(o)
                ? NO
                : UNSURE;
        if (ints && PyLong_CheckExact(o)) {
            if (fits(o) != YES) return UNSURE;
            if (!(*value = PyList_New(1))) return FAILED;
            PyList_SET_ITEM(*value, 0, Py_NewRef(o));
            return YES;
        }
        return plain_other(o) || (ints && PyFloat_CheckExact(o)) ? NO : UNSURE;
    }
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *x = PySequence_Fast_GET_ITEM(o, i);
        if (p->type == P_TENSOR) {
            if (!is_tensor(x) && !(x == Py_None && p->elements_optional)) return NO;
        } else if (ints) {
            if (PyLong_CheckExact(x) && fits(x) == YES) continue;
            if (PyBool_Check(x) && i) return UNSURE;
            return PyFloat_CheckExact(x) || PyBool_Check(x) || x == Py_None || plain_other(x) ? NO : UNSURE;
        } else if (!PyFloat_CheckExact(x) && !PyLong_CheckExact(x) &&
                   !(p->type == P_BOOL && PyBool_Check(x))) {
            return UNSURE;
        }
    }
    if (PyList_CheckExact(o)) *value = Py_NewRef(o);
    else if (ints || p->type == P_TENSOR) *value = PySequence_List(o);
    else *value = Py_NewRef(o);
    return *value ? YES : FAILED;
}
static int bind_value(FlbOperator *op, const Parameter *p, PyObject *o, PyObject **value) {
    if (o == Py_None) {
        int empty = p->list && !p->optional && p->fallback && PyList_CheckExact(p->fallback) &&
            !PyList_GET_SIZE(p->fallback); /* None stands for this default */
        if (!p->optional && p->fallback != Py_None && !empty) return NO;
        *value = Py_NewRef(empty ? p->fallback : o);
        return YES;
    }
    if (p->list) return bind_list(p, o, value);
    PyTypeObject *t = Py_TYPE(o);
    int ok = NO, number = t == &PyLong_Type || t == &PyFloat_Type || t == &PyBool_Type;
    switch (p->type) {
    case P_OTHER: /* a generator, a layout: not what is surely something else */
        ok = number || is_tensor(o) || plain_other(o) ? UNSURE : YES;
        break;
    case P_TENSOR:
        if (t == &PyLong_Type && op->numbers > (p == op->parameters) && !flb_scalar_fits(o)) return FAILED;
        ok = is_tensor(o)                    ? YES
            : number || t == &PyComplex_Type ? op->numbers > (p == op->parameters)
            : plain_other(o)                 ? NO
                                             : UNSURE;
        break;
    case P_SCALAR:
        if (t == &PyLong_Type && !flb_scalar_fits(o)) return FAILED;
        ok = number || t == &PyComplex_Type ? YES
            : is_tensor(o)                  ? (zero_dim(o) ? UNSURE : NO)
            : plain_other(o)                ? NO
                                            : UNSURE;
        break;
    case P_INT:
        ok = t == &PyLong_Type ? fits(o)
            : number           ? NO
            : is_tensor(o)     ? (one_element(o) ? UNSURE : NO)
            : plain_other(o)   ? NO
                               : UNSURE;
        break;
    case P_FLOAT:
        if (t == &PyLong_Type) {
            double v = PyLong_AsDouble(o);
            if (v == -1 && PyErr_Occurred()) return FAILED;
            *value = PyFloat_FromDouble(v);
            return *value ? YES : FAILED;
        }
        ok = t == &PyFloat_Type ? YES
            : is_tensor(o)      ? (zero_dim(o) ? UNSURE : NO)
            : plain_other(o)    ? NO
                                : UNSURE;
        break;
    case P_BOOL:
        if (o == Py_False && p->null_false) { /* asks for nothing: it is not what a mode should see */
            *value = Py_NewRef(Py_None);
            return YES;
        }
        ok = t == &PyBool_Type ? YES : number || is_tensor(o) || plain_other(o) ? NO : UNSURE;
        break;
    case P_STR:
        ok = t == &PyUnicode_Type ? YES : number || is_tensor(o) || plain_other(o) ? NO : UNSURE;
        break;
    case P_DTYPE: ok = t == flb_dtype_class ? YES : number || is_tensor(o) ? NO : UNSURE; break;
    case P_FORMAT: ok = t == flb_format_class ? YES : NO; break;
    case P_DEVICE:
        if (o != flb_cpu_device && (t == &PyUnicode_Type || t == Py_TYPE(flb_cpu_device))) {
            *value = PyObject_CallOneArg(flb_device_handler, o);
            return *value ? YES : FAILED;
        }
        ok = o == flb_cpu_device ? YES : UNSURE;
        break;
    }
    if (ok == YES) *value = Py_NewRef(o);
    return ok;
}

int flb_bind_user(FlbOperator *op, PyObject *const *args, Py_ssize_t n, PyObject *kwnames,
                  PyObject **values) {
    int total = op->n_parameters, status = NO, tensors = 0, unsure = 0;
    for (int i = 0; i < total; i++) values[i] = NULL;
    Py_ssize_t take = n;
    int va = op->varargs;
    PyObject *packed = NULL;
    if (va >= 0 && n > va && !is_sequence(args[va])) {
        if (args[va] != Py_None || n > va + 1) {
            for (Py_ssize_t i = va; i < n; i++)
                if (!PyLong_CheckExact(args[i]) || fits(args[i]) != YES) {
                    unsure = 1;
                    break;
                }
            take = va;
        }
    }
    if ((take == n && n > op->n_positional) || (take != n && va + 1 > op->n_positional)) return NO;
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, k);
        int i = find(op, name);
        if (i < 0) {
            if (PyUnicode_Compare(name, str_out) == 0 || PyUnicode_Compare(name, str_input) == 0 ||
                PyUnicode_Compare(name, str_requires_grad) == 0)
                return UNSURE;
            return NO;
        }
        if (i < take || (take != n && i == va)) return NO;
    }
    for (int i = 0; i < take; i++) {
        status = bind_value(op, &op->parameters[i], args[i], &values[i]);
        if (status == UNSURE) unsure = 1;
        else if (status != YES) goto out;
        tensors |= is_tensor(args[i]);
    }
    if (take != n && !unsure) {
        if (!(packed = PyList_New(n - va))) {
            status = FAILED;
            goto out;
        }
        for (Py_ssize_t i = va; i < n; i++) PyList_SET_ITEM(packed, i - va, Py_NewRef(args[i]));
        values[va] = packed;
    }
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++) {
        int i = find(op, PyTuple_GET_ITEM(kwnames, k));
        status = bind_value(op, &op->parameters[i], args[n + k], &values[i]);
        if (status == UNSURE) unsure = 1;
        else if (status != YES) goto out;
        tensors |= is_tensor(args[n + k]);
    }
    if (unsure) {
        status = UNSURE;
        goto out;
    }
    status = NO;
    if (op->numbers && !tensors) goto out;
    for (int i = 0; i < total; i++) {
        if (values[i]) {
            if (op->factory && values[i] == Py_None && op->parameters[i].type == P_DEVICE)
                Py_CLEAR(values[i]);
            else continue;
        }
        if (!op->parameters[i].fallback) goto out;
        if (op->factory && op->parameters[i].type == P_DEVICE) {
            FlbLayer *l = flb_stack(FLB_DEVICES);
            values[i] = l ? PyObject_CallOneArg(flb_device_handler, l->value) : Py_NewRef(flb_cpu_device);
            if (!values[i]) {
                status = FAILED;
                goto out;
            }
        } else {
            values[i] = Py_NewRef(op->parameters[i].fallback);
        }
    }
    return YES;
out:
    for (int i = 0; i < total; i++) Py_CLEAR(values[i]);
    return status;
}

/* ---- back to arguments --------------------------------------------------------------------------------- */

int flb_unbind(FlbOperator *op, PyObject *const *values, PyObject **args, PyObject **kwargs) {
    int n = op->n_positional;
    while (n > 0 && values[n - 1] == op->parameters[n - 1].fallback) n--;
    *args = PyTuple_New(n);
    *kwargs = PyDict_New();
    if (!*args || !*kwargs) goto fail;
    for (int i = 0; i < n; i++) PyTuple_SET_ITEM(*args, i, Py_NewRef(values[i]));
    for (int i = op->n_positional; i < op->n_parameters; i++)
        if (values[i] != op->parameters[i].fallback &&
            PyDict_SetItem(*kwargs, op->parameters[i].name, values[i]) < 0)
            goto fail;
    return 0;
fail:
    Py_CLEAR(*args);
    Py_CLEAR(*kwargs);
    return -1;
}
int flb_unpack(PyObject *const *args, Py_ssize_t n, PyObject *kwnames, PyObject **tuple, PyObject **dict) {
    *tuple = PyTuple_New(n);
    *dict = PyDict_New();
    if (!*tuple || !*dict) goto fail;
    for (Py_ssize_t i = 0; i < n; i++) PyTuple_SET_ITEM(*tuple, i, Py_NewRef(args[i]));
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++)
        if (PyDict_SetItem(*dict, PyTuple_GET_ITEM(kwnames, i), args[n + i]) < 0) goto fail;
    return 0;
fail:
    Py_CLEAR(*tuple);
    Py_CLEAR(*dict);
    return -1;
}
int flb_is_out(PyObject *name) { return name == str_out || PyUnicode_Compare(name, str_out) == 0; }
int flb_init_binder(void) {
    str_out = PyUnicode_InternFromString("out");
    str_input = PyUnicode_InternFromString("input");
    str_requires_grad = PyUnicode_InternFromString("requires_grad");
    return str_out && str_input && str_requires_grad ? 0 : -1;
}
