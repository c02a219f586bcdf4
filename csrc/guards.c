/* The guard tree: what a captured graph assumed about its call, checked without running Python code.
 *
 * A tree is a flat program. Each node takes its value from an earlier node by one access (argument, global, attribute, item ...) and
 * has leaf checks. Parents come before children, so one pass evaluates everything and each shared path once. The Python mirror of
 * the same program is dynamo/guards.py; in strict mode both run and must agree.
 *
 * What is read from dicts and types is checked in bulk: DICT_FACTS and TYPE_FACTS hold everything assumed about one dict or one class, and
 * remember the version of the last success, so that an unchanged one costs one comparison. A guard owns what it reads: checks may run Python.
 */
#include "frame.h"
#include <structmember.h>
#include <numpy/arrayobject.h>

enum { A_ARG, A_FUNC, A_GLOBALS, A_CONST, A_CELL, A_ATTR, A_GETATTR, A_ITEM, A_KEY, A_INSTANCE_DICT, A_TYPE_LOOKUP, A_TYPE, A_GLOBAL, A_CALL,
       A_CLOSURE_CELL, A_COUNT };
static const char *const access_names[A_COUNT] = {"arg", "func", "globals", "const", "cell", "attr", "getattr", "item", "key",
    "instance_dict", "type_lookup", "type", "global", "call", "closure_cell"};
enum { C_TYPE, C_ID, C_EQUALS, C_TENSOR, C_NDARRAY, C_LENGTH, C_KEYS, C_HAS_KEY, C_NO_KEY, C_GLOBAL_STATE, C_NOT_ALIASED, C_SAME_AS, C_CALL,
       C_NO_INSTANCE_KEY, C_NO_OVERLAP, C_DICT_FACTS, C_TYPE_FACTS, C_CODE, C_EMPTY, C_SIZES, C_COUNT };
static const char *const check_names[C_COUNT] = {"TYPE_MATCH", "ID_MATCH", "EQUALS_MATCH", "TENSOR_MATCH", "NDARRAY_MATCH", "LENGTH",
    "DICT_KEYS", "HAS_KEY", "NO_KEY", "GLOBAL_STATE", "NO_TENSOR_ALIASING", "DUPLICATE_INPUT", "CALL", "NO_INSTANCE_KEY", "NO_MEMORY_OVERLAP",
    "DICT_FACTS", "TYPE_FACTS", "CODE_MATCH", "EMPTY_DICTS", "SIZES"};

typedef struct {
    PyTypeObject *type;
    PyObject *dtype, *device;
    int ndim, requires_grad;
    uint32_t keys;
    Py_ssize_t dims[];               /* shape, then strides (tensor: elements, ndarray: bytes); ANY: a symbol, SIZES says more */
} ArrayFacts;
#define ANY PY_SSIZE_T_MIN

/* SIZES: relations between numbers of the call, as one postfix program. An operand is a size or stride of a tensor or array, or a number. */
enum { V_SIZE, V_STRIDE, V_INT, V_FLOAT };
enum { P_CONST, P_OPERAND, P_ADD, P_MUL, P_FLOORDIV, P_MOD, P_MIN, P_MAX, P_EQ, P_NE, P_GE, P_AND, P_OR, P_NOT, P_FLOAT, P_FCONST, P_FADD, P_FSUB,
       P_FMUL, P_FDIV, P_FLT, P_FLE, P_FEQ, P_FNE, P_FGT, P_FGE, P_CALL, P_CHECK };
static const char *const size_ops[] = {"const", "operand", "add", "mul", "floordiv", "mod", "min", "max", "==", "!=", ">=", "and", "or", "not",
    "float", "fconst", "fadd", "fsub", "fmul", "ftruediv", "flt", "fle", "feq", "fne", "fgt", "fge", "call", "check"};
#define MAX_SIZES 64
typedef struct {
    Py_ssize_t n_operands, n_code;
    long *operands;                  /* triples: slot, what, dimension */
    long *code;                      /* operations; const, operand, fconst and call take the next number */
    PyObject *constants;             /* tuple: ints, floats, callables of all operands */
} Sizes;

/* One thing assumed of a dict or a class: what is found under a name, or that nothing is (value is ABSENT). */
typedef struct {
    PyObject *key;
    PyObject *after;                 /* types: the lookup starts behind this class of the MRO; NULL: at the front */
    PyObject *value;
    int exact;                       /* this very object, rather than an equal constant */
} Fact;

typedef struct {
    int kind;
    PyObject *payload;
    void *data;                      /* ArrayFacts, Facts, int array of node numbers, or NULL */
    Py_ssize_t n;
    uint64_t version;                /* facts: of the dict or type when they were last found to hold */
} Check;

typedef struct {
    int access, parent;
    Py_ssize_t index;
    PyObject *key;
    int n_checks;
    Check *checks;
    uint64_t version;                /* key access: of the dict when `cached` (borrowed) was its value */
    PyObject *cached;
} Node;

typedef struct {
    PyObject_HEAD
    Py_ssize_t n;
    Node *nodes;
    PyObject *mirror;                /* callable(func, args) -> bool, for strict mode */
    int failed_node, failed_check, failed_fact;
} Tree;

static PyTypeObject TreeType;
static FlbApi *api;
static PyObject *absent;             /* the object that stands for "nothing is found there" */
int flb_strict_guards = 0;

/* Dict versions are unique: no two dicts, and no two states of one, share a number. CPython 3.13 has none. */
#if PY_VERSION_HEX < 0x030D0000
#define DICT_VERSION(d) (((PyDictObject *)(d))->ma_version_tag)
#else
#define DICT_VERSION(d) ((uint64_t)0)
#endif

/* After a call into Python failed: 0 for an ordinary exception, which means that the guard doesn't hold; -1 for one that must not be lost. */
static int failed(void)
{
    if (!PyErr_Occurred()) return 0;
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;
    PyErr_Clear();
    return 0;
}

static FlbApi *get_api(void)
{
    if (!api) {
        api = (FlbApi *)PyCapsule_Import(FLB_API_CAPSULE, 0);
        if (!api) PyErr_Clear();
    }
    return api;
}

FlbTls *flb_guards_tls(void)
{
    FlbApi *a = get_api();
    return a && a->tls ? a->tls() : NULL;
}

static PyObject *instance_dict(PyObject *o)      /* new reference or NULL without an exception */
{
    PyObject *d = PyObject_GenericGetDict(o, NULL);
    if (!d) PyErr_Clear();
    return d;
}

static PyObject *closure_cell(PyFunctionObject *func, Py_ssize_t i)
{
    PyObject *closure = func->func_closure;
    if (!closure || i >= PyTuple_GET_SIZE(closure)) return NULL;
    return PyTuple_GET_ITEM(closure, i);
}

static PyObject *dict_item(Node *n, PyObject *d)    /* borrowed */
{
    if (!PyDict_Check(d)) return NULL;
    uint64_t version = DICT_VERSION(d);
    if (version && version == n->version) return n->cached;
    PyObject *v = PyDict_GetItemWithError(d, n->key);
    if (v && DICT_VERSION(d) == version) { n->version = version; n->cached = v; }
    return v;
}

/* What a class holds under a name, descriptors left alone; behind the class `after` of the MRO, as super() looks. Borrowed. */
static PyObject *type_item(PyTypeObject *type, PyObject *name, PyObject *after)
{
    if (!after) return _PyType_Lookup(type, name);
    PyObject *mro = type->tp_mro;
    Py_ssize_t i = 0, n = mro ? PyTuple_GET_SIZE(mro) : 0;
    while (i < n && PyTuple_GET_ITEM(mro, i) != after) i++;
    for (i++; i < n; i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
#if PY_VERSION_HEX >= 0x030C0000
        PyObject *dict = PyType_GetDict(base);  /* a builtin class has its dict with the interpreter */
        Py_XDECREF(dict);                       /* which keeps it */
#else
        PyObject *dict = base->tp_dict;
#endif
        PyObject *v = dict ? PyDict_GetItemWithError(dict, name) : NULL;
        if (v || PyErr_Occurred()) return v;
    }
    return NULL;
}

/* Sets *out to a new reference and returns 1; 0 when the value does not exist; -1 with an exception that must not be lost. */
static int access_node(Node *n, PyObject **slots, PyObject **out, PyFunctionObject *func, PyObject *const *args)
{
    PyObject *parent = n->parent >= 0 ? slots[n->parent] : NULL, *v = NULL;
    int owned = 0;
    switch (n->access) {
    case A_ARG: v = args[n->index]; break;
    case A_FUNC: v = (PyObject *)func; break;
    case A_GLOBALS: v = func->func_globals; break;
    case A_CONST: v = n->key; break;
    case A_CLOSURE_CELL: v = closure_cell(func, n->index); break;
    case A_CELL: v = parent && PyCell_Check(parent) ? PyCell_GET(parent) : NULL; break;
    case A_GLOBAL:
        v = PyDict_GetItemWithError(func->func_globals, n->key);
        if (!v && func->func_builtins && PyDict_Check(func->func_builtins)) v = PyDict_GetItemWithError(func->func_builtins, n->key);
        break;
    case A_ATTR: v = PyObject_GenericGetAttr(parent, n->key); owned = 1; break;
    case A_GETATTR: v = PyObject_GetAttr(parent, n->key); owned = 1; break;
    case A_ITEM: {
        Py_ssize_t i = n->index;
        if (PyTuple_Check(parent)) { if (i < PyTuple_GET_SIZE(parent)) v = PyTuple_GET_ITEM(parent, i); }
        else if (PyList_Check(parent)) { if (i < PyList_GET_SIZE(parent)) v = PyList_GET_ITEM(parent, i); }
        else { v = PySequence_GetItem(parent, i); owned = 1; }
        break;
    }
    case A_KEY: v = dict_item(n, parent); break;
    case A_INSTANCE_DICT: v = instance_dict(parent); owned = 1; break;
    case A_TYPE_LOOKUP: v = PyType_Check(parent) ? type_item((PyTypeObject *)parent, n->key, NULL) : NULL; break;
    case A_TYPE: v = (PyObject *)Py_TYPE(parent); break;
    case A_CALL: v = PyObject_CallOneArg(n->key, parent); owned = 1; break;
    }
    if (!v) return failed();
    if (!owned) Py_INCREF(v);
    *out = v;
    return 1;
}

static int is_zero_sign_equal(double a, double b) { return memcmp(&a, &b, sizeof a) == 0; }

/* Constants as guards compare them: type and value, inside containers too; floats by bits (-0.0 is not 0.0, NaN is itself), sets in the order
 * in which they are iterated over. -1: an exception that must not be lost. */
static int equals(PyObject *a, PyObject *b)
{
    if (a == b) return 1;
    if (Py_TYPE(a) != Py_TYPE(b)) return 0;
    if (PyUnicode_CheckExact(a) || PyLong_CheckExact(a)) return PyObject_RichCompareBool(a, b, Py_EQ);
    if (PyFloat_Check(a)) return is_zero_sign_equal(PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b));
    if (Py_TYPE(a) == &PyBool_Type) return 0;
    if (PyComplex_CheckExact(a))
        return is_zero_sign_equal(PyComplex_RealAsDouble(a), PyComplex_RealAsDouble(b)) && is_zero_sign_equal(PyComplex_ImagAsDouble(a), PyComplex_ImagAsDouble(b));
    if (PyTuple_CheckExact(a)) {
        Py_ssize_t n = PyTuple_GET_SIZE(a);
        if (n != PyTuple_GET_SIZE(b)) return 0;
        for (Py_ssize_t i = 0; i < n; i++) {
            int r = equals(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i));
            if (r <= 0) return r;
        }
        return 1;
    }
    if (PyFrozenSet_CheckExact(a) || PySet_CheckExact(a)) {
        if (PySet_GET_SIZE(a) != PySet_GET_SIZE(b)) return 0;
        PyObject *x = PySequence_Tuple(a), *y = x ? PySequence_Tuple(b) : NULL;
        int r = y ? equals(x, y) : failed();
        Py_XDECREF(x);
        Py_XDECREF(y);
        return r;
    }
    if (PyRange_Check(a)) {          /* equal ranges may have different bounds */
        static const char *const parts[] = {"start", "stop", "step"};
        for (int i = 0; i < 3; i++) {
            PyObject *x = PyObject_GetAttrString(a, parts[i]), *y = x ? PyObject_GetAttrString(b, parts[i]) : NULL;
            int r = y ? equals(x, y) : failed();
            Py_XDECREF(x);
            Py_XDECREF(y);
            if (r <= 0) return r;
        }
        return 1;
    }
    if (PyArray_IsScalar(a, Generic)) {
        PyObject *x = PyObject_CallMethod(a, "tobytes", NULL), *y = x ? PyObject_CallMethod(b, "tobytes", NULL) : NULL;
        int r = y ? PyObject_RichCompareBool(x, y, Py_EQ) : failed();
        Py_XDECREF(x);
        Py_XDECREF(y);
        return r;
    }
    int r = PyObject_RichCompareBool(a, b, Py_EQ);
    return r < 0 ? failed() : r;
}

static int holds(const Fact *f, PyObject *item)
{
    if (!item) return f->value == absent;
    if (item == f->value) return 1;
    if (f->exact || f->value == absent) return 0;
    Py_INCREF(item);
    int r = equals(item, f->value);
    Py_DECREF(item);
    return r;
}

static int check_dict_facts(Tree *t, Check *c, PyObject *v)
{
    if (!PyDict_Check(v)) return 0;
    uint64_t version = DICT_VERSION(v);
    if (version && version == c->version) return 1;
    const Fact *facts = c->data;
    for (Py_ssize_t i = 0; i < c->n; i++) {
        PyObject *item = PyDict_GetItemWithError(v, facts[i].key);
        int r = !item && PyErr_Occurred() ? failed() : holds(&facts[i], item);
        if (r <= 0) { t->failed_fact = (int)i; return r; }
    }
    c->version = DICT_VERSION(v) == version ? version : 0;
    return 1;
}

/* Each of these names in a dict (the hook tables of a module, for example) holds an empty dict. Their addresses are remembered by version. */
static int check_empty(Check *c, PyObject *v)
{
    if (!PyDict_Check(v)) return 0;
    uint64_t version = DICT_VERSION(v);
    PyObject **found = c->data;
    if (!version || version != c->version) {
        for (Py_ssize_t i = 0; i < c->n; i++) {
            found[i] = PyDict_GetItemWithError(v, PyTuple_GET_ITEM(c->payload, i));
            if (!found[i]) { c->version = 0; return failed(); }
            if (!PyDict_Check(found[i])) { c->version = 0; return 0; }
        }
        c->version = DICT_VERSION(v) == version ? version : 0;
    }
    for (Py_ssize_t i = 0; i < c->n; i++) if (PyDict_GET_SIZE(found[i])) return 0;
    return 1;
}

static int check_type_facts(Tree *t, Check *c, PyObject *v)
{
    if (!PyType_Check(v)) return 0;
    PyTypeObject *type = (PyTypeObject *)v;
    if (type->tp_version_tag && type->tp_version_tag == c->version && (type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG)) return 1;
    const Fact *facts = c->data;
    for (Py_ssize_t i = 0; i < c->n; i++) {
        PyObject *item = type_item(type, facts[i].key, facts[i].after);
        int r = !item && PyErr_Occurred() ? failed() : holds(&facts[i], item);
        if (r <= 0) { t->failed_fact = (int)i; return r; }
    }
    c->version = type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG ? type->tp_version_tag : 0;
    return 1;
}

static int tuple_equals(PyObject *t, const Py_ssize_t *dims, int n)
{
    if (!t || !PyTuple_Check(t) || PyTuple_GET_SIZE(t) != n) return 0;
    for (int i = 0; i < n; i++) {
        if (dims[i] == ANY) continue;
        if (!PyLong_Check(PyTuple_GET_ITEM(t, i))) return 0;
        Py_ssize_t d = PyLong_AsSsize_t(PyTuple_GET_ITEM(t, i));
        if (d == -1 && PyErr_Occurred()) { PyErr_Clear(); return 0; }
        if (d != dims[i]) return 0;
    }
    return 1;
}

static int check_tensor(PyObject *v, const ArrayFacts *f)
{
    if (Py_TYPE(v) != f->type) return 0;
    FlbTensor *t = (FlbTensor *)v;
    if (t->dtype != f->dtype || t->keys != f->keys) return 0;
    if (t->device != f->device && equals(t->device, f->device) <= 0) return 0;
    if (((t->flags & FLB_REQUIRES_GRAD) != 0) != f->requires_grad) return 0;
    /* A view that may have to take over a history: the slow way finds out. */
    if (!f->requires_grad && t->autograd && t->storage && t->storage->recorded) return 0;
    if (t->array && PyArray_Check(t->array)) {
        PyArrayObject *a = (PyArrayObject *)t->array;
        if (PyArray_NDIM(a) != f->ndim) return 0;
        Py_ssize_t item = PyArray_ITEMSIZE(a);
        for (int i = 0; i < f->ndim; i++)
            if ((PyArray_DIM(a, i) != f->dims[i] && f->dims[i] != ANY) ||
                (f->dims[f->ndim + i] != ANY && PyArray_STRIDE(a, i) != f->dims[f->ndim + i] * item)) return 0;
        return 1;
    }
    return tuple_equals(t->shape, f->dims, f->ndim) && tuple_equals(t->strides, f->dims + f->ndim, f->ndim);
}

static int check_ndarray(PyObject *v, const ArrayFacts *f)
{
    if (Py_TYPE(v) != f->type) return 0;
    PyArrayObject *a = (PyArrayObject *)v;
    if (PyArray_NDIM(a) != f->ndim) return 0;
    if ((PyObject *)PyArray_DESCR(a) != f->dtype && !PyArray_EquivTypes(PyArray_DESCR(a), (PyArray_Descr *)f->dtype)) return 0;
    if (((PyArray_FLAGS(a) & NPY_ARRAY_WRITEABLE) != 0) != f->requires_grad) return 0;
    for (int i = 0; i < f->ndim; i++)
        if ((PyArray_DIM(a, i) != f->dims[i] && f->dims[i] != ANY) ||
            (f->dims[f->ndim + i] != ANY && PyArray_STRIDE(a, i) != f->dims[f->ndim + i])) return 0;
    return 1;
}

typedef union { int64_t i; double f; } Number;

static int size_operand(PyObject *v, long what, long d, Number *out)
{
    if (what == V_INT) {
        int overflow = 0;
        if (!PyLong_Check(v)) return 0;
        out->i = PyLong_AsLongLongAndOverflow(v, &overflow);
        return !overflow;
    }
    if (what == V_FLOAT) {
        if (!PyFloat_Check(v)) return 0;
        out->f = PyFloat_AS_DOUBLE(v);
        return 1;
    }
    FlbApi *a = get_api();
    Py_ssize_t unit = 1;
    if (a && PyObject_TypeCheck(v, a->tensor_type)) {
        FlbTensor *t = (FlbTensor *)v;
        if (!t->array) {
            PyObject *numbers = what == V_SIZE ? t->shape : t->strides;
            if (!numbers || d >= PyTuple_GET_SIZE(numbers) || !PyLong_Check(PyTuple_GET_ITEM(numbers, d))) return 0;
            out->i = PyLong_AsLongLong(PyTuple_GET_ITEM(numbers, d));
            return 1;
        }
        v = t->array;
    }
    if (!PyArray_Check(v) || d >= PyArray_NDIM((PyArrayObject *)v)) return 0;
    if (what == V_STRIDE && !(unit = PyArray_ITEMSIZE((PyArrayObject *)v))) return 0;
    out->i = what == V_SIZE ? PyArray_DIM((PyArrayObject *)v, d) : PyArray_STRIDE((PyArrayObject *)v, d) / unit;
    return 1;
}

static int call_relation(PyObject *fn, const Sizes *p, const Number *values)
{
    PyObject *args = PyTuple_New(p->n_operands), *r = NULL;
    for (Py_ssize_t i = 0; args && i < p->n_operands; i++) {
        PyObject *v = p->operands[3 * i + 1] == V_FLOAT ? PyFloat_FromDouble(values[i].f) : PyLong_FromLongLong(values[i].i);
        if (!v) Py_CLEAR(args);
        else PyTuple_SET_ITEM(args, i, v);
    }
    if (args) r = PyObject_CallOneArg(fn, args);
    int ok = r ? PyObject_IsTrue(r) : -1;
    Py_XDECREF(args);
    Py_XDECREF(r);
    return ok < 0 ? failed() : ok;
}

/* An overflow, and a division by zero, make the guard fail: the numbers are no sizes then. */
static int check_sizes(Tree *t, const Check *c, PyObject **slots)
{
    const Sizes *p = c->data;
    Number values[MAX_SIZES], stack[MAX_SIZES];
    int top = -1, relation = 0;
    t->failed_fact = -1;
    for (Py_ssize_t i = 0; i < p->n_operands; i++)
        if (!size_operand(slots[p->operands[3 * i]], p->operands[3 * i + 1], p->operands[3 * i + 2], &values[i])) return 0;
    for (Py_ssize_t i = 0; i < p->n_code; i++) {
        Number *a = &stack[top > 0 ? top - 1 : 0], *b = &stack[top > 0 ? top : 0];
        switch (p->code[i]) {
        case P_CONST: stack[++top].i = PyLong_AsLongLong(PyTuple_GET_ITEM(p->constants, p->code[++i])); continue;
        case P_FCONST: stack[++top].f = PyFloat_AS_DOUBLE(PyTuple_GET_ITEM(p->constants, p->code[++i])); continue;
        case P_OPERAND: stack[++top] = values[p->code[++i]]; continue;
        case P_CALL: {
            int ok = call_relation(PyTuple_GET_ITEM(p->constants, p->code[++i]), p, values);
            if (ok < 0) return ok;
            stack[++top].i = ok;
            continue;
        }
        case P_CHECK:
            if (!stack[top--].i) { t->failed_fact = relation; return 0; }
            relation++;
            continue;
        case P_NOT: stack[top].i = !stack[top].i; continue;
        case P_FLOAT: stack[top].f = (double)stack[top].i; continue;
        case P_ADD: if (__builtin_add_overflow(a->i, b->i, &a->i)) { t->failed_fact = relation; return 0; } break;
        case P_MUL: if (__builtin_mul_overflow(a->i, b->i, &a->i)) { t->failed_fact = relation; return 0; } break;
        case P_FLOORDIV: case P_MOD: {
            if (!b->i || b->i == -1) { t->failed_fact = relation; return 0; }
            int64_t q = a->i / b->i, r = a->i % b->i;
            if (r && ((r < 0) != (b->i < 0))) { q--; r += b->i; }
            a->i = p->code[i] == P_MOD ? r : q;
            break;
        }
        case P_MIN: a->i = a->i < b->i ? a->i : b->i; break;
        case P_MAX: a->i = a->i > b->i ? a->i : b->i; break;
        case P_EQ: a->i = a->i == b->i; break;
        case P_NE: a->i = a->i != b->i; break;
        case P_GE: a->i = a->i >= b->i; break;
        case P_AND: a->i = a->i && b->i; break;
        case P_OR: a->i = a->i || b->i; break;
        case P_FADD: a->f = a->f + b->f; break;
        case P_FSUB: a->f = a->f - b->f; break;
        case P_FMUL: a->f = a->f * b->f; break;
        case P_FDIV: a->f = a->f / b->f; break;
        case P_FLT: a->i = a->f < b->f; break;
        case P_FLE: a->i = a->f <= b->f; break;
        case P_FEQ: a->i = a->f == b->f; break;
        case P_FNE: a->i = a->f != b->f; break;
        case P_FGT: a->i = a->f > b->f; break;
        case P_FGE: a->i = a->f >= b->f; break;
        }
        top--;
    }
    return 1;
}

static int check_state(const Check *c)
{
    const long *want = c->data;
    FlbTls *t = flb_guards_tls();
    if (!t) return 1;
    return t->grad_enabled == want[0] && t->inference == want[1] && (long)t->function_modes == want[2] &&
           (long)t->dispatch_modes == want[3] && (long)t->transforms == want[4] && t->function_disabled == want[5] &&
           (long)t->devices == want[6];
}

/* Values of builtin types whose equality is what guards mean by it; objects of other classes may define their own. */
static int is_plain(PyObject *k)
{
    return PyUnicode_CheckExact(k) || PyLong_CheckExact(k) || PyFloat_CheckExact(k) || PyBytes_CheckExact(k) || PyTuple_CheckExact(k)
           || PyComplex_CheckExact(k) || PyFrozenSet_CheckExact(k) || PyArray_IsScalar(k, Generic);
}

static int check_keys(PyObject *v, PyObject *keys)
{
    if (!PyDict_Check(v) || PyDict_GET_SIZE(v) != PyTuple_GET_SIZE(keys)) return 0;
    Py_ssize_t pos = 0, i = 0;
    PyObject *k, *item;
    while (PyDict_Next(v, &pos, &k, &item)) {
        if (i >= PyTuple_GET_SIZE(keys)) return 0;
        PyObject *want = PyTuple_GET_ITEM(keys, i++);
        if (k == want) continue;
        if (Py_TYPE(k) != Py_TYPE(want) || !is_plain(k)) return 0;       /* other objects are themselves only */
        Py_INCREF(k);
        int r = equals(k, want);
        Py_DECREF(k);
        if (r <= 0) return r;
    }
    return i == PyTuple_GET_SIZE(keys);
}

static int extent(PyObject *v, char **lo, char **hi)
{
    FlbApi *a = get_api();
    if (a && PyObject_TypeCheck(v, a->tensor_type)) v = ((FlbTensor *)v)->array;
    if (!v || !PyArray_Check(v)) return 0;
    PyArrayObject *x = (PyArrayObject *)v;
    if (PyArray_SIZE(x) == 0) return 0;
    *lo = *hi = PyArray_BYTES(x);
    for (int i = 0; i < PyArray_NDIM(x); i++) {
        npy_intp reach = (PyArray_DIM(x, i) - 1) * PyArray_STRIDE(x, i);
        if (reach < 0) *lo += reach; else *hi += reach;
    }
    *hi += PyArray_ITEMSIZE(x);
    return 1;
}

typedef struct { char *lo, *hi; } Extent;
static int by_start(const void *a, const void *b)
{
    const char *x = ((const Extent *)a)->lo, *y = ((const Extent *)b)->lo;
    return x < y ? -1 : x > y;
}
/* First and last byte of each, in order; those that are not tensors or arrays with memory don't take part. */
static int check_no_overlap(const Check *c, PyObject **slots)
{
    Extent small[64], *all = small;
    const long *idx = c->data;
    Py_ssize_t n = 0;
    if (c->n > 64 && !(all = PyMem_Malloc(c->n * sizeof(Extent)))) { PyErr_NoMemory(); return -1; }
    for (Py_ssize_t i = 0; i < c->n; i++)
        if (extent(slots[idx[i]], &all[n].lo, &all[n].hi)) n++;
    qsort(all, n, sizeof(Extent), by_start);
    int apart = 1;
    for (Py_ssize_t i = 1; i < n && apart; i++) apart = all[i - 1].hi <= all[i].lo;
    if (all != small) PyMem_Free(all);
    return apart;
}

/* 1 holds, 0 does not, -1 an exception that must not be lost */
static int run_check(Tree *t, Check *c, PyObject *v, PyObject **slots)
{
    switch (c->kind) {
    case C_TYPE: return (PyObject *)Py_TYPE(v) == c->payload;
    case C_ID: return v == c->payload;
    case C_EQUALS: return equals(v, c->payload);
    case C_TENSOR: return check_tensor(v, c->data);
    case C_NDARRAY: return check_ndarray(v, c->data);
    case C_LENGTH: {
        Py_ssize_t n = PyTuple_Check(v) ? PyTuple_GET_SIZE(v) : PyList_Check(v) ? PyList_GET_SIZE(v)
                       : PyDict_Check(v) ? PyDict_GET_SIZE(v) : PyObject_Size(v);
        return n < 0 ? failed() : n == c->n;
    }
    case C_KEYS: return check_keys(v, c->payload);
    case C_HAS_KEY: case C_NO_KEY: {
        int r = PyDict_Check(v) ? PyDict_Contains(v, c->payload) : PySequence_Contains(v, c->payload);
        return r < 0 ? failed() : r == (c->kind == C_HAS_KEY);
    }
    case C_NO_INSTANCE_KEY: {
        PyObject *d = instance_dict(v);
        if (!d) return 1;
        int r = PyDict_Contains(d, c->payload);
        Py_DECREF(d);
        return r < 0 ? failed() : r == 0;
    }
    case C_GLOBAL_STATE: return check_state(c);
    case C_NOT_ALIASED: {
        /* Pairwise distinct objects. Quadratic up to 16 inputs, beyond that through an open-addressed set of pointers. */
        const long *idx = c->data;
        if (c->n <= 16) {
            for (Py_ssize_t i = 0; i < c->n; i++)
                for (Py_ssize_t j = 0; j < i; j++)
                    if (slots[idx[i]] == slots[idx[j]]) return 0;
            return 1;
        }
        size_t size = 64;
        while (size < (size_t)c->n * 2) size *= 2;
        PyObject **set = PyMem_Calloc(size, sizeof(PyObject *));
        if (!set) return 0;
        int ok = 1;
        for (Py_ssize_t i = 0; i < c->n && ok; i++) {
            PyObject *p = slots[idx[i]];
            size_t h = ((size_t)p >> 4) * 0x9E3779B97F4A7C15ull & (size - 1);
            while (set[h] && set[h] != p) h = (h + 1) & (size - 1);
            if (set[h] == p) ok = 0;
            set[h] = p;
        }
        PyMem_Free(set);
        return ok;
    }
    case C_NO_OVERLAP: return check_no_overlap(c, slots);
    case C_SAME_AS: return v == slots[c->n];
    case C_CALL: {
        PyObject *r = PyObject_CallOneArg(c->payload, v);
        int ok = r ? PyObject_IsTrue(r) : -1;
        Py_XDECREF(r);
        return ok < 0 ? failed() : ok;
    }
    case C_DICT_FACTS: return check_dict_facts(t, c, v);
    case C_TYPE_FACTS: return check_type_facts(t, c, v);
    case C_EMPTY: return check_empty(c, v);
    case C_SIZES: return check_sizes(t, c, slots);
    case C_CODE: {
        PyFunctionObject *f = (PyFunctionObject *)v;
        return PyFunction_Check(v) && f->func_code == PyTuple_GET_ITEM(c->payload, 0) && f->func_globals == PyTuple_GET_ITEM(c->payload, 1);
    }
    }
    return 0;
}

#define INLINE_SLOTS 192

static int check_native(Tree *t, PyFunctionObject *func, PyObject *const *args)
{
    PyObject *inline_slots[INLINE_SLOTS], **slots = inline_slots;
    Py_ssize_t total = t->n, done = 0;
    if (total > INLINE_SLOTS && !(slots = PyMem_Malloc(total * sizeof(PyObject *)))) { PyErr_NoMemory(); return -1; }
    int ok = 1, check = -1;
    t->failed_fact = -1;
    for (; done < total; done++) {
        Node *n = &t->nodes[done];
        check = -1;
        if ((ok = access_node(n, slots, &slots[done], func, args)) <= 0) break;
        for (int j = 0; j < n->n_checks; j++)
            if ((ok = run_check(t, &n->checks[j], slots[done], slots)) <= 0) { check = j; break; }
        if (ok <= 0) { done++; break; }
    }
    if (ok <= 0) { t->failed_node = check >= 0 ? (int)done - 1 : (int)done; t->failed_check = check; }
    if (ok >= 0)
        for (Py_ssize_t i = 0; i < done; i++) Py_DECREF(slots[i]);
    else {                           /* with an exception set, which what dies here must not disturb */
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        for (Py_ssize_t i = 0; i < done; i++) Py_DECREF(slots[i]);
        PyErr_Restore(type, value, trace);
    }
    if (slots != inline_slots) PyMem_Free(slots);
    return ok;
}

static int check_strictly(Tree *t, PyFunctionObject *func, PyObject *const *args);

int flb_guards_check(PyObject *self, PyFunctionObject *func, PyObject *const *args)
{
    Py_INCREF(self);                 /* a check that runs Python may empty the cache that this tree is in */
    int ok = check_strictly((Tree *)self, func, args);
    Py_DECREF(self);
    return ok;
}

static int check_strictly(Tree *t, PyFunctionObject *func, PyObject *const *args)
{
    int ok = check_native(t, func, args);
    if (ok < 0 || !flb_strict_guards || !t->mirror || t->mirror == Py_None) return ok;
    PyCodeObject *code = (PyCodeObject *)func->func_code;
    int n = code->co_argcount + code->co_kwonlyargcount + !!(code->co_flags & CO_VARARGS) + !!(code->co_flags & CO_VARKEYWORDS);
    PyObject *tuple = PyTuple_New(n);
    if (!tuple) return -1;
    for (int i = 0; i < n; i++) {
        PyObject *a = args[i] ? args[i] : Py_None;
        Py_INCREF(a);
        PyTuple_SET_ITEM(tuple, i, a);
    }
    PyObject *r = PyObject_CallFunctionObjArgs(t->mirror, (PyObject *)func, tuple, NULL);
    Py_DECREF(tuple);
    if (!r) return -1;
    int want = PyObject_IsTrue(r);
    Py_DECREF(r);
    if (want < 0) return -1;
    if (want != ok) {
        PyErr_Format(PyExc_RuntimeError, "strict guards: native check says %d and its Python mirror %d (node %d, check %d)", ok, want,
                     t->failed_node, t->failed_check);
        return -1;
    }
    return ok;
}

static void tree_dealloc(Tree *t)
{
    PyObject_GC_UnTrack(t);
    for (Py_ssize_t i = 0; i < t->n; i++) {
        Node *n = &t->nodes[i];
        Py_XDECREF(n->key);
        for (int j = 0; j < n->n_checks; j++) {
            Check *c = &n->checks[j];
            if (c->kind == C_SIZES && c->data) { PyMem_Free(((Sizes *)c->data)->operands); PyMem_Free(((Sizes *)c->data)->code); }
            Py_XDECREF(c->payload);
            PyMem_Free(c->data);
        }
        PyMem_Free(n->checks);
    }
    PyMem_Free(t->nodes);
    Py_XDECREF(t->mirror);
    PyObject_GC_Del(t);
}

static int tree_traverse(Tree *t, visitproc visit, void *arg)
{
    for (Py_ssize_t i = 0; i < t->n; i++) {
        Py_VISIT(t->nodes[i].key);
        for (int j = 0; j < t->nodes[i].n_checks; j++) Py_VISIT(t->nodes[i].checks[j].payload);
    }
    Py_VISIT(t->mirror);
    return 0;
}

static int tree_clear(Tree *t)
{
    Py_CLEAR(t->mirror);             /* the nodes stay: a tree that is being collected is never asked again */
    return 0;
}

static long *longs(PyObject *seq, Py_ssize_t *n)
{
    PyObject *fast = PySequence_Fast(seq, "guard: a sequence of ints is expected");
    if (!fast) return NULL;
    *n = PySequence_Fast_GET_SIZE(fast);
    long *out = PyMem_Malloc((*n ? *n : 1) * sizeof(long));
    for (Py_ssize_t i = 0; out && i < *n; i++) out[i] = PyLong_AsLong(PySequence_Fast_GET_ITEM(fast, i));
    Py_DECREF(fast);
    if (!out) PyErr_NoMemory();
    else if (PyErr_Occurred()) { PyMem_Free(out); out = NULL; }
    return out;
}

/* payload: (type, dtype, device, shape, strides, requires_grad or writeable, keys) */
static void *array_facts(PyObject *p)
{
    PyObject *type, *dtype, *device, *shape, *strides;
    int flag;
    unsigned int keys;
    if (!PyTuple_Check(p) || !PyArg_ParseTuple(p, "OOOO!O!pI", &type, &dtype, &device, &PyTuple_Type, &shape, &PyTuple_Type, &strides, &flag,
                                               &keys)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "guard: array facts must be a tuple");
        return NULL;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(shape);
    if (PyTuple_GET_SIZE(strides) != n) { PyErr_SetString(PyExc_ValueError, "guard: shape and strides differ in length"); return NULL; }
    ArrayFacts *f = PyMem_Malloc(sizeof(ArrayFacts) + 2 * n * sizeof(Py_ssize_t));
    if (!f) { PyErr_NoMemory(); return NULL; }
    f->type = (PyTypeObject *)type;
    f->dtype = dtype;                /* all kept alive by the payload tuple */
    f->device = device;
    f->ndim = (int)n;
    f->requires_grad = flag;
    f->keys = keys;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *size = PyTuple_GET_ITEM(shape, i), *stride = PyTuple_GET_ITEM(strides, i);
        f->dims[i] = size == Py_None ? ANY : PyLong_AsSsize_t(size);
        f->dims[n + i] = stride == Py_None ? ANY : PyLong_AsSsize_t(stride);
    }
    if (PyErr_Occurred()) { PyMem_Free(f); return NULL; }
    return f;
}

/* payload: a tuple of (key, value, exact), for types of (key, value, exact, after or None); all kept alive by the payload */
static Fact *build_facts(PyObject *p, Py_ssize_t *n)
{
    if (!PyTuple_Check(p)) { PyErr_SetString(PyExc_TypeError, "guard: facts are a tuple"); return NULL; }
    *n = PyTuple_GET_SIZE(p);
    Fact *out = PyMem_Calloc(*n ? *n : 1, sizeof(Fact));
    if (!out) { PyErr_NoMemory(); return NULL; }
    for (Py_ssize_t i = 0; i < *n; i++) {
        PyObject *one = PyTuple_GET_ITEM(p, i);
        if (!PyTuple_Check(one) || !PyArg_ParseTuple(one, "OOp|O", &out[i].key, &out[i].value, &out[i].exact, &out[i].after)) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "guard: a fact is a tuple (key, value, exact[, after])");
            PyMem_Free(out);
            return NULL;
        }
        if (out[i].after == Py_None) out[i].after = NULL;
    }
    return out;
}

/* payload: (operands: slot, what, dimension of each in one tuple; code; constants) */
static Sizes *build_sizes(PyObject *payload)
{
    PyObject *operands, *code, *constants;
    if (!PyTuple_Check(payload) || !PyArg_ParseTuple(payload, "O!O!O!", &PyTuple_Type, &operands, &PyTuple_Type, &code, &PyTuple_Type, &constants)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "guard: SIZES takes (operands, code, constants)");
        return NULL;
    }
    Sizes *p = PyMem_Calloc(1, sizeof(Sizes));
    if (!p) { PyErr_NoMemory(); return NULL; }
    Py_ssize_t n = 0;
    p->constants = constants;        /* kept alive by the payload */
    if (!(p->operands = longs(operands, &n)) || !(p->code = longs(code, &p->n_code))) goto fail;
    p->n_operands = n / 3;
    int depth = 0;
    for (Py_ssize_t i = 0; i < p->n_code; i++) {
        long op = p->code[i];
        int takes = op == P_CONST || op == P_FCONST || op == P_OPERAND || op == P_CALL;
        if (takes) {
            long k = ++i < p->n_code ? p->code[i] : -1;
            if (k < 0 || k >= (op == P_OPERAND ? p->n_operands : PyTuple_GET_SIZE(constants))) goto bad;
            PyObject *v = op == P_OPERAND ? NULL : PyTuple_GET_ITEM(constants, k);
            if (op == P_CONST && (!PyLong_Check(v) || (PyLong_AsLongLong(v) == -1 && PyErr_Occurred()))) goto bad;
            if (op == P_FCONST && !PyFloat_Check(v)) goto bad;
            depth++;
        } else if (op != P_NOT && op != P_FLOAT) {
            if (op < 0 || op > P_CHECK || depth < (op == P_CHECK ? 1 : 2)) goto bad;
            depth--;
        } else if (!depth) goto bad;
        if (depth > MAX_SIZES) goto bad;
    }
    if (n % 3 || p->n_operands > MAX_SIZES || depth) goto bad;
    return p;
bad:
    PyErr_Clear();
    PyErr_SetString(PyExc_ValueError, "guard: a program over sizes that is not one");
fail:
    PyMem_Free(p->operands);
    PyMem_Free(p->code);
    PyMem_Free(p);
    return NULL;
}

static int build_check(Check *c, PyObject *spec)
{
    PyObject *payload;
    if (!PyTuple_Check(spec) || !PyArg_ParseTuple(spec, "iO", &c->kind, &payload)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "guard: a check is a tuple (kind, payload)");
        return -1;
    }
    Py_INCREF(payload);
    c->payload = payload;
    switch (c->kind) {
    case C_TENSOR:
        if (!get_api()) { PyErr_SetString(PyExc_RuntimeError, "guard: TENSOR_MATCH needs flambeau._C"); return -1; }
        return (c->data = array_facts(payload)) ? 0 : -1;
    case C_NDARRAY: return (c->data = array_facts(payload)) ? 0 : -1;
    case C_LENGTH: case C_SAME_AS:
        c->n = PyLong_AsSsize_t(payload);
        return c->n == -1 && PyErr_Occurred() ? -1 : 0;
    case C_GLOBAL_STATE:
        if (!(c->data = longs(payload, &c->n))) return -1;
        if (c->n != 7) { PyErr_SetString(PyExc_ValueError, "guard: GLOBAL_STATE takes seven values"); return -1; }
        return 0;
    case C_DICT_FACTS: case C_TYPE_FACTS: return (c->data = build_facts(payload, &c->n)) ? 0 : -1;
    case C_EMPTY:
        if (!PyTuple_Check(payload)) { PyErr_SetString(PyExc_TypeError, "guard: EMPTY_DICTS takes a tuple"); return -1; }
        c->n = PyTuple_GET_SIZE(payload);
        if (!(c->data = PyMem_Calloc(c->n ? c->n : 1, sizeof(PyObject *)))) { PyErr_NoMemory(); return -1; }
        return 0;
    case C_CODE:
        if (!PyTuple_Check(payload) || PyTuple_GET_SIZE(payload) != 2) { PyErr_SetString(PyExc_TypeError, "guard: CODE_MATCH takes (code, globals)"); return -1; }
        return 0;
    case C_SIZES: return (c->data = build_sizes(payload)) ? 0 : -1;
    case C_NOT_ALIASED: case C_NO_OVERLAP: return (c->data = longs(payload, &c->n)) ? 0 : -1;
    case C_KEYS:
        if (!PyTuple_Check(payload)) { PyErr_SetString(PyExc_TypeError, "guard: DICT_KEYS takes a tuple"); return -1; }
        return 0;
    }
    if (c->kind < 0 || c->kind >= C_COUNT) { PyErr_Format(PyExc_ValueError, "guard: unknown check %d", c->kind); return -1; }
    return 0;
}

static PyObject *tree_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"nodes", "mirror", NULL};
    PyObject *list, *mirror = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|O", names, &PyList_Type, &list, &mirror)) return NULL;
    Tree *t = PyObject_GC_New(Tree, type);
    if (!t) return NULL;
    t->n = 0;
    t->failed_node = t->failed_check = t->failed_fact = -1;
    Py_INCREF(mirror);
    t->mirror = mirror;
    Py_ssize_t total = PyList_GET_SIZE(list);
    t->nodes = PyMem_Calloc(total ? total : 1, sizeof(Node));
    PyObject_GC_Track(t);
    if (!t->nodes) { Py_DECREF(t); return PyErr_NoMemory(); }
    for (Py_ssize_t i = 0; i < total; i++) {
        Node *n = &t->nodes[i];
        PyObject *key, *checks, *item = PyList_GET_ITEM(list, i);
        if (!PyTuple_Check(item) || !PyArg_ParseTuple(item, "iiOO!", &n->parent, &n->access, &key, &PyTuple_Type, &checks)) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "guard: a node is a tuple (parent, access, key, checks)");
            goto fail;
        }
        t->n = i + 1;
        Py_INCREF(key);
        n->key = key;
        if (n->access < 0 || n->access >= A_COUNT || n->parent >= i) {
            PyErr_Format(PyExc_ValueError, "guard: node %zd has access %d and parent %d", i, n->access, n->parent);
            goto fail;
        }
        int roots = n->access == A_ARG || n->access == A_FUNC || n->access == A_GLOBALS || n->access == A_CONST || n->access == A_GLOBAL
                    || n->access == A_CLOSURE_CELL;
        if (!roots && n->parent < 0) { PyErr_Format(PyExc_ValueError, "guard: node %zd needs a parent", i); goto fail; }
        if (n->access == A_ARG || n->access == A_ITEM || n->access == A_CLOSURE_CELL) {
            n->index = PyLong_AsSsize_t(key);
            if (n->index < 0) {
                if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "guard: node %zd has a negative index", i);
                goto fail;
            }
        }
        Py_ssize_t m = PyTuple_GET_SIZE(checks);
        n->checks = PyMem_Calloc(m ? m : 1, sizeof(Check));
        if (!n->checks) { PyErr_NoMemory(); goto fail; }
        for (Py_ssize_t j = 0; j < m; j++) {
            n->n_checks = (int)j + 1;
            if (build_check(&n->checks[j], PyTuple_GET_ITEM(checks, j)) < 0) goto fail;
        }
    }
    return (PyObject *)t;
fail:
    Py_DECREF(t);
    return NULL;
}

static PyObject *tree_check(Tree *t, PyObject *args)
{
    PyObject *func, *tuple;
    if (!PyArg_ParseTuple(args, "O!O!", &PyFunction_Type, &func, &PyTuple_Type, &tuple)) return NULL;
    int r = flb_guards_check((PyObject *)t, (PyFunctionObject *)func, ((PyTupleObject *)tuple)->ob_item);
    return r < 0 ? NULL : PyBool_FromLong(r);
}

static PyObject *tree_failed(Tree *t, void *closure) { return Py_BuildValue("(ii)", t->failed_node, t->failed_check); }

static PyObject *tree_describe(Tree *t, PyObject *unused)
{
    if (!t->mirror || t->mirror == Py_None) return PyUnicode_FromFormat("node %d, check %d", t->failed_node, t->failed_check);
    return PyObject_CallMethod(t->mirror, "describe", "iii", t->failed_node, t->failed_check, t->failed_fact);
}

static PyMethodDef tree_methods[] = {
    {"describe_failure", (PyCFunction)tree_describe, METH_NOARGS, "the last failure as text"},
    {"check", (PyCFunction)tree_check, METH_VARARGS, "check(func, flat_args) -> bool"},
    {NULL},
};
static PyGetSetDef tree_getset[] = {
    {"failed", (getter)tree_failed, NULL, "(node, check) of the last failure; check is -1 when the value didn't exist"},
    {NULL},
};
static PyMemberDef tree_members[] = {
    {"mirror", T_OBJECT, offsetof(Tree, mirror), 0, "callable(func, flat_args) -> bool used in strict mode"},
    {NULL},
};

static PyTypeObject TreeType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "flambeau._frame.GuardTree",
    .tp_basicsize = sizeof(Tree),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "GuardTree(nodes, mirror=None): nodes are (parent, access, key, ((check, payload), ...))",
    .tp_new = tree_new,
    .tp_dealloc = (destructor)tree_dealloc,
    .tp_traverse = (traverseproc)tree_traverse,
    .tp_clear = (inquiry)tree_clear,
    .tp_methods = tree_methods,
    .tp_getset = tree_getset,
    .tp_members = tree_members,
};

static int add_names(PyObject *module, const char *name, const char *const *names, int n)
{
    PyObject *d = PyDict_New();
    if (!d) return -1;
    for (int i = 0; i < n; i++) {
        PyObject *v = PyLong_FromLong(i);
        if (!v || PyDict_SetItemString(d, names[i], v) < 0) { Py_XDECREF(v); Py_DECREF(d); return -1; }
        Py_DECREF(v);
    }
    int r = PyModule_AddObject(module, name, d);
    if (r < 0) Py_DECREF(d);
    return r;
}

int flb_guards_init(PyObject *module)
{
    import_array1(-1);
    if (PyType_Ready(&TreeType) < 0) return -1;
    if (!absent && !(absent = PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type))) return -1;
    Py_INCREF(absent);
    if (PyModule_AddObject(module, "ABSENT", absent) < 0) return -1;
    Py_INCREF(&TreeType);
    if (PyModule_AddObject(module, "GuardTree", (PyObject *)&TreeType) < 0) return -1;
    if (add_names(module, "ACCESS", access_names, A_COUNT) < 0) return -1;
    if (add_names(module, "SIZE_OPS", size_ops, P_CHECK + 1) < 0) return -1;
    return add_names(module, "CHECK", check_names, C_COUNT);
}
