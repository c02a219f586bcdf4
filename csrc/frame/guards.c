/* Walking a guard tree (guards.h).
 *
 * What is read from dicts and types is checked in bulk: DICT_FACTS and TYPE_FACTS hold everything assumed
 * about one dict or one class, and remember the version of the last success, so that an unchanged one costs
 * one comparison. A guard owns what it reads: checks may run Python. A tree of which none does (`quiet`) is
 * first walked without owning anything; what may run Python after all (a lookup in a dict that has changed)
 * ends that walk with AGAIN, and the owning walk decides.
 */
#include "frame/guards.h"

#define AGAIN 2
#define INLINED static inline __attribute__((always_inline))

PyObject *flb_absent;
int flb_strict_guards = 0;

/* Dict versions are unique: no two dicts, and no two states of one, share a number. CPython 3.13 has none. */
#if PY_VERSION_HEX < 0x030D0000
#define DICT_VERSION(d) (((PyDictObject *)(d))->ma_version_tag)
#else
#define DICT_VERSION(d) ((uint64_t)0)
#endif

PyObject *flb_instance_dict(PyObject *o) /* new reference, or NULL: without an exception when there is none */
{
#if PY_VERSION_HEX < 0x030D0000
    PyObject **place = Py_TYPE(o)->tp_dictoffset ? _PyObject_GetDictPtr(o) : NULL;
    if (place && *place) return Py_NewRef(*place);
#endif
    PyObject *d = PyObject_GenericGetDict(o, NULL);
    if (!d && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear(); /* it has none */
    return d;
}

static PyObject *closure_cell(PyFunctionObject *func, Py_ssize_t i) {
    PyObject *closure = func->func_closure;
    if (!closure || i >= PyTuple_GET_SIZE(closure)) return NULL;
    return PyTuple_GET_ITEM(closure, i);
}

static PyObject *dict_item(Node *n, PyObject *d) /* borrowed */
{
    if (!PyDict_Check(d)) return NULL;
    uint64_t version = DICT_VERSION(d);
    if (version && version == n->version) return n->cached;
    PyObject *v = PyDict_GetItemWithError(d, n->key);
    if (v && DICT_VERSION(d) == version) {
        n->version = version;
        n->cached = v;
    }
    return v;
}

/* What a class holds under a name, descriptors left alone ("(mro)", a name that no attribute has: the MRO
 * itself); behind the class `after` of the MRO, as super() looks. Borrowed. */
static PyObject *type_item(PyTypeObject *type, PyObject *name, PyObject *after) {
    if (!after && PyUnicode_CompareWithASCIIString(name, "(mro)") == 0)
        return type->tp_mro; /* which bases it has */
    if (!after) return _PyType_Lookup(type, name);
    PyObject *mro = type->tp_mro;
    Py_ssize_t i = 0, n = mro ? PyTuple_GET_SIZE(mro) : 0;
    while (i < n && PyTuple_GET_ITEM(mro, i) != after) i++;
    for (i++; i < n; i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
#if PY_VERSION_HEX >= 0x030C0000
        PyObject *dict = PyType_GetDict(base); /* a static type's is the interpreter's */
#else
        PyObject *dict = Py_XNewRef(base->tp_dict);
#endif
        PyObject *v = dict ? PyDict_GetItemWithError(dict, name) : NULL;
        Py_XDECREF(dict);
        if (v || PyErr_Occurred()) return v;
    }
    return NULL;
}

/* Sets *out to a new reference and returns 1; 0 when the value does not exist; -1 with an exception that must
 * not be lost. */
INLINED int access_node(Node *n, PyObject **slots, PyObject **out, PyFunctionObject *func,
                        PyObject *const *args, const int own) {
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
        if (!v && !PyErr_Occurred() && func->func_builtins && PyDict_Check(func->func_builtins))
            v = PyDict_GetItemWithError(func->func_builtins, n->key);
        break;
    case A_ATTR:
        v = PyObject_GenericGetAttr(parent, n->key);
        owned = 1;
        break;
    case A_GETATTR:
        v = PyObject_GetAttr(parent, n->key);
        owned = 1;
        break;
    case A_ITEM: {
        Py_ssize_t i = n->index;
        if (PyTuple_Check(parent)) {
            if (i < PyTuple_GET_SIZE(parent)) v = PyTuple_GET_ITEM(parent, i);
        } else if (PyList_Check(parent)) {
            if (i < PyList_GET_SIZE(parent)) v = PyList_GET_ITEM(parent, i);
        } else {
            v = PySequence_GetItem(parent, i);
            owned = 1;
        }
        break;
    }
    case A_KEY:
        if (!own && (!PyDict_Check(parent) || DICT_VERSION(parent) != n->version)) return AGAIN;
        v = own ? dict_item(n, parent) : n->cached;
        break;
    case A_INSTANCE_DICT:
        v = flb_instance_dict(parent);
        owned = 1;
        break;
    case A_TYPE_LOOKUP:
        v = PyType_Check(parent) ? type_item((PyTypeObject *)parent, n->key, NULL) : NULL;
        break;
    case A_TYPE: v = (PyObject *)Py_TYPE(parent); break;
    case A_CALL:
        v = PyObject_CallOneArg(n->key, parent);
        owned = 1;
        break;
    }
    if (!own) { /* the object owns its dict */
        if (!v || (owned && Py_REFCNT(v) < 2)) {
            if (owned) Py_XDECREF(v);
            PyErr_Clear();
            return AGAIN;
        }
        if (owned) Py_DECREF(v);
        *out = v;
        return 1;
    }
    if (!v) return failed();
    if (!owned) Py_INCREF(v);
    *out = v;
    return 1;
}

static int holds(const Fact *f, PyObject *item) {
    if (!item) return f->value == flb_absent;
    if (item == f->value) return 1;
    if (f->exact || f->value == flb_absent) return 0;
    Py_INCREF(item);
    int r = flb_equal_constants(item, f->value);
    Py_DECREF(item);
    return r;
}

static int check_dict_facts(Tree *t, Check *c, PyObject *v, int own) {
    if (!PyDict_Check(v)) return 0;
    uint64_t version = DICT_VERSION(v);
    if (version && version == c->version) return 1;
    if (!own) return AGAIN;
    const Fact *facts = c->data;
    for (Py_ssize_t i = 0; i < c->n; i++) {
        PyObject *item = PyDict_GetItemWithError(v, facts[i].key);
        int r = !item && PyErr_Occurred() ? failed() : holds(&facts[i], item);
        if (r <= 0) {
            t->failed_fact = (int)i;
            return r;
        }
    }
    c->version = DICT_VERSION(v) == version ? version : 0;
    return 1;
}

/* Each of these names in a dict (the hook tables of a module, for example) holds an empty dict. Their
 * addresses are remembered by version. */
static int check_empty(Check *c, PyObject *v, int own) {
    if (!PyDict_Check(v)) return 0;
    uint64_t version = DICT_VERSION(v);
    PyObject **found = c->data;
    if (version && version == c->version) {
        for (Py_ssize_t i = 0; i < c->n; i++)
            if (PyDict_GET_SIZE(found[i])) return 0;
        return 1;
    }
    if (!own) return AGAIN;
    c->version = 0;
    for (Py_ssize_t i = 0; i < c->n; i++) {
        found[i] = PyDict_GetItemWithError(v, PyTuple_GET_ITEM(c->payload, i));
        if (!found[i]) return failed();
        if (!PyDict_Check(found[i]) || PyDict_GET_SIZE(found[i])) return 0;
    }
    c->version = DICT_VERSION(v) == version ? version : 0;
    return 1;
}

static int check_type_facts(Tree *t, Check *c, PyObject *v, int own) {
    if (!PyType_Check(v)) return 0;
    PyTypeObject *type = (PyTypeObject *)v;
    if (type->tp_version_tag && type->tp_version_tag == c->version &&
        (type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG))
        return 1;
    if (!own) return AGAIN;
    const Fact *facts = c->data;
    for (Py_ssize_t i = 0; i < c->n; i++) {
        PyObject *item = type_item(type, facts[i].key, facts[i].after);
        int r = !item && PyErr_Occurred() ? failed() : holds(&facts[i], item);
        if (r <= 0) {
            t->failed_fact = (int)i;
            return r;
        }
    }
    c->version = type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG ? type->tp_version_tag : 0;
    return 1;
}

static int check_state(const Check *c) {
    const long *want = c->data;
    FlbTls *t = flb_guards_tls();
    if (!t) return 1;
    return t->grad_enabled == want[S_GRAD_ENABLED] && t->inference == want[S_INFERENCE] &&
        (long)t->function_modes == want[S_FUNCTION_MODES] &&
        (long)t->dispatch_modes == want[S_DISPATCH_MODES] && (long)t->transforms == want[S_TRANSFORMS] &&
        t->function_disabled == want[S_FUNCTION_DISABLED] && (long)t->devices == want[S_DEVICES];
}

/* Values of builtin types whose equality is what guards mean by it; objects of other classes may define their
 * own. */
static int is_plain(PyObject *k) {
    return PyUnicode_CheckExact(k) || PyLong_CheckExact(k) || PyFloat_CheckExact(k) ||
        PyBytes_CheckExact(k) || PyTuple_CheckExact(k) || PyComplex_CheckExact(k) ||
        PyFrozenSet_CheckExact(k) || PyArray_IsScalar(k, Generic);
}

static int check_keys(PyObject *v, PyObject *keys) {
    if (!PyDict_Check(v) || PyDict_GET_SIZE(v) != PyTuple_GET_SIZE(keys)) return 0;
    Py_ssize_t pos = 0, i = 0;
    PyObject *k, *item;
    while (PyDict_Next(v, &pos, &k, &item)) {
        if (i >= PyTuple_GET_SIZE(keys)) return 0;
        PyObject *want = PyTuple_GET_ITEM(keys, i++);
        if (k == want) continue;
        if (Py_TYPE(k) != Py_TYPE(want) || !is_plain(k)) return 0; /* other objects are themselves only */
        Py_INCREF(k);
        int r = flb_equal_constants(k, want);
        Py_DECREF(k);
        if (r <= 0) return r;
    }
    return i == PyTuple_GET_SIZE(keys);
}

static int same_keys(PyObject *v, PyObject *keys) {
    if (!PyDict_Check(v) || PyDict_GET_SIZE(v) != PyTuple_GET_SIZE(keys)) return 0;
    Py_ssize_t pos = 0, i = 0;
    PyObject *k, *item;
    while (PyDict_Next(v, &pos, &k, &item))
        if (k != PyTuple_GET_ITEM(keys, i++)) return 0;
    return 1;
}

/* Whether a walk that finds all remembered versions unchanged runs no Python. Dicts have versions before
 * CPython 3.13. */
int flb_guards_quiet(const Tree *t) {
    if (PY_VERSION_HEX >= 0x030D0000) return 0;
    for (Py_ssize_t i = 0; i < t->n; i++) {
        const Node *n = &t->nodes[i];
        if (n->access != A_ARG && n->access != A_FUNC && n->access != A_GLOBALS && n->access != A_CONST &&
            n->access != A_CLOSURE_CELL && n->access != A_CELL && n->access != A_KEY &&
            n->access != A_INSTANCE_DICT && n->access != A_TYPE)
            return 0;
        for (int j = 0; j < n->n_checks; j++) switch (n->checks[j].kind) {
            case C_TYPE:
            case C_ID:
            case C_TENSOR:
            case C_KEYS:
            case C_GLOBAL_STATE:
            case C_NOT_ALIASED:
            case C_SAME_AS:
            case C_NO_OVERLAP:
            case C_DICT_FACTS:
            case C_TYPE_FACTS:
            case C_CODE:
            case C_EMPTY:
            case C_CONTEXT:
            case C_NDARRAY:
            case C_NDARRAY_FEW: break;
            default: return 0;
            }
    }
    return 1;
}

static int is_glance(const Tree *t, const Node *n, const Check *c) {
    switch (c->kind) {
    case C_NDARRAY:
    case C_NDARRAY_FEW:
    case C_TYPE: return n->access == A_ARG;
    case C_DICT_FACTS: return n->access == A_GLOBALS || n->access == A_CONST;
    case C_CONTEXT: return n->access == A_CONST && PyContextVar_CheckExact(n->key);
    case C_GLOBAL_STATE: return 1;
    case C_NOT_ALIASED:
        for (Py_ssize_t i = 0; i < c->n; i++)
            if (t->nodes[((const long *)c->data)[i]].access != A_ARG) return 0;
        return 1;
    default: return 0;
    }
}

int flb_guards_glances(Tree *t) {
    Py_ssize_t total = 0;
    for (Py_ssize_t i = 0; i < t->n; i++) {
        const Node *n = &t->nodes[i];
        if (n->access != A_ARG && n->access != A_GLOBALS && n->access != A_CONST) return 0;
        for (int j = 0; j < n->n_checks; j++)
            if (!is_glance(t, n, &n->checks[j])) return 0;
        total += n->n_checks;
    }
    if (!(t->glances = PyMem_Calloc(total + 1, sizeof *t->glances))) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < t->n; i++)
        for (int j = 0; j < t->nodes[i].n_checks; j++) {
            const Node *n = &t->nodes[i];
            const Check *c = &n->checks[j];
            FlbGlance *g = &t->glances[t->n_glances++];
            g->kind = c->kind, g->argument = n->index, g->check = c;
            if (c->kind == C_NDARRAY || c->kind == C_NDARRAY_FEW)
                g->array = c->data, g->type = g->array->type;
            if (c->kind == C_TYPE) g->type = (PyTypeObject *)c->payload;
            if (n->access == A_CONST) g->value = n->key;
        }
    return 0;
}

/* Whether arguments are different objects: `c` has the nodes that they are. */
static int are_distinct(const Tree *t, const Check *c, PyObject *const *args) {
    const long *nodes = c->data;
    for (Py_ssize_t i = 0; i < c->n; i++)
        for (Py_ssize_t j = 0; j < i; j++)
            if (args[t->nodes[nodes[i]].index] == args[t->nodes[nodes[j]].index]) return 0;
    return 1;
}

/* As flb_ndarray_fits does, of a dtype that is the same object. */
INLINED int fits_at_a_glance(PyArrayObject *a, const ArrayFacts *f) {
    if (PyArray_NDIM(a) != f->ndim) return 0;
    if ((PyObject *)PyArray_DESCR(a) != f->dtype) return AGAIN;
    if (((PyArray_FLAGS(a) & NPY_ARRAY_WRITEABLE) != 0) != f->requires_grad) return 0;
    const npy_intp *sizes = PyArray_DIMS(a), *strides = PyArray_STRIDES(a);
    for (int i = 0; i < f->ndim; i++) {
        if (sizes[i] != f->dims[i] && f->dims[i] != ANY) return 0;
        if (strides[i] != f->dims[f->ndim + i] && f->dims[f->ndim + i] != ANY) return AGAIN;
    }
    return 1;
}

/* As flb_ndarray_fits_few does. */
INLINED int few_at_a_glance(PyArrayObject *a, const ArrayFacts *f) {
    if (PyArray_NDIM(a) != f->ndim) return 0;
    if ((PyObject *)PyArray_DESCR(a) != f->dtype) return AGAIN;
    const npy_intp *sizes = PyArray_DIMS(a);
    npy_intp elements = 1;
    for (int i = 0; i < f->ndim; i++) {
        if (sizes[i] < f->dims[i]) return 0;
        elements *= sizes[i];
    }
    return !f->keys || elements <= (npy_intp)f->keys;
}

/* A context variable, the payload says in Python whether it is right; a value that was right stays so. */
static int check_context(Check *c, PyObject *v, const int own) {
    PyObject *now = NULL;
    if (!PyContextVar_CheckExact(v)) return 0;
    if (PyContextVar_Get(v, NULL, &now) < 0) return failed();
    int same = now && now == (PyObject *)c->data;
    if (same || !own) {
        Py_XDECREF(now); /* the variable holds it: nothing dies here */
        return same ? 1 : AGAIN;
    }
    PyObject *r = PyObject_CallOneArg(c->payload, v);
    int ok = r ? PyObject_IsTrue(r) : -1;
    Py_XDECREF(r);
    if (ok < 0) {
        Py_XDECREF(now);
        return failed();
    }
    if (ok) {
        PyObject *before = c->data;
        c->data = now;
        Py_XDECREF(before);
    } else Py_XDECREF(now);
    return ok;
}

int flb_guards_glance(PyObject *tree, PyFunctionObject *func, PyObject *const *args) {
    const Tree *t = (Tree *)tree;
    if (!t->glances || flb_strict_guards) return AGAIN;
    for (Py_ssize_t i = 0; i < t->n_glances; i++) {
        const FlbGlance *g = &t->glances[i];
        int r = 1;
        switch (g->kind) {
        case C_TYPE: r = Py_TYPE(args[g->argument]) == g->type; break;
        case C_NDARRAY:
        case C_NDARRAY_FEW: {
            PyObject *v = args[g->argument];
            if (Py_TYPE(v) != g->type) return 0;
            r = g->kind == C_NDARRAY ? fits_at_a_glance((PyArrayObject *)v, g->array)
                                     : few_at_a_glance((PyArrayObject *)v, g->array);
            break;
        }
        case C_DICT_FACTS: {
            PyObject *dict = g->value ? g->value : func->func_globals;
            uint64_t known = g->check->version;
            if (!PyDict_Check(dict) || !known || DICT_VERSION(dict) != known) return AGAIN;
            break;
        }
        case C_CONTEXT: r = check_context((Check *)g->check, g->value, 0); break;
        case C_GLOBAL_STATE: r = check_state(g->check) ? 1 : AGAIN; break;
        case C_NOT_ALIASED: r = are_distinct(t, g->check, args); break;
        }
        if (r != 1) return r;
    }
    return 1;
}

/* 1 holds, 0 does not, -1 an exception that must not be lost; AGAIN: only without owning */
INLINED int run_check(Tree *t, Check *c, PyObject *v, PyObject **slots, const int own) {
    switch (c->kind) {
    case C_TYPE: return (PyObject *)Py_TYPE(v) == c->payload;
    case C_ID: return v == c->payload;
    case C_EQUALS: return flb_equal_constants(v, c->payload);
    case C_TENSOR: {
        const ArrayFacts *f = c->data; /* devices that aren't the same object, and sizes of tensors without
                                          data, may be compared by Python */
        if (!own && Py_TYPE(v) == f->type &&
            (((FlbTensor *)v)->device != f->device || !((FlbTensor *)v)->array))
            return AGAIN;
        return flb_tensor_fits(v, f);
    }
    case C_NDARRAY: {
        const ArrayFacts *f = c->data; /* dtypes that aren't the same object may be compared by Python */
        if (!own && Py_TYPE(v) == f->type && (PyObject *)PyArray_DESCR((PyArrayObject *)v) != f->dtype)
            return AGAIN;
        return flb_ndarray_fits(v, f);
    }
    case C_NDARRAY_FEW: {
        const ArrayFacts *f = c->data;
        if (!own && Py_TYPE(v) == f->type && (PyObject *)PyArray_DESCR((PyArrayObject *)v) != f->dtype)
            return AGAIN;
        return flb_ndarray_fits_few(v, f);
    }
    case C_LENGTH: {
        Py_ssize_t n = PyTuple_Check(v) ? PyTuple_GET_SIZE(v)
            : PyList_Check(v)           ? PyList_GET_SIZE(v)
            : PyDict_Check(v)           ? PyDict_GET_SIZE(v)
                                        : PyObject_Size(v);
        return n < 0 ? failed() : n == c->n;
    }
    case C_KEYS: return own ? check_keys(v, c->payload) : same_keys(v, c->payload) ? 1 : AGAIN;
    case C_HAS_KEY:
    case C_NO_KEY: {
        int r = PyDict_Check(v) ? PyDict_Contains(v, c->payload) : PySequence_Contains(v, c->payload);
        return r < 0 ? failed() : r == (c->kind == C_HAS_KEY);
    }
    case C_NO_INSTANCE_KEY: {
        PyObject *d = flb_instance_dict(v);
        if (!d) return PyErr_Occurred() ? failed() : 1;
        int r = PyDict_Contains(d, c->payload);
        Py_DECREF(d);
        return r < 0 ? failed() : r == 0;
    }
    case C_GLOBAL_STATE: return check_state(c);
    case C_NOT_ALIASED: return flb_all_distinct(slots, c->data, c->n);
    case C_NO_OVERLAP: return flb_no_overlap(slots, c->data, c->n);
    case C_SAME_AS: return v == slots[c->n];
    case C_CALL: {
        PyObject *r = PyObject_CallOneArg(c->payload, v);
        int ok = r ? PyObject_IsTrue(r) : -1;
        Py_XDECREF(r);
        return ok < 0 ? failed() : ok;
    }
    case C_DICT_FACTS: return check_dict_facts(t, c, v, own);
    case C_TYPE_FACTS: return check_type_facts(t, c, v, own);
    case C_EMPTY: return check_empty(c, v, own);
    case C_CONTEXT: return check_context(c, v, own);
    case C_SIZES: return flb_sizes_hold(c->data, slots, &t->failed_fact);
    case C_CODE: {
        PyFunctionObject *f = (PyFunctionObject *)v;
        return PyFunction_Check(v) && f->func_code == PyTuple_GET_ITEM(c->payload, 0) &&
            f->func_globals == PyTuple_GET_ITEM(c->payload, 1);
    }
    }
    return 0;
}

#define INLINE_SLOTS 192

INLINED int walk(Tree *t, PyFunctionObject *func, PyObject *const *args, PyObject **slots, const int own) {
    Py_ssize_t total = t->n, done = 0;
    int ok = 1, check = -1;
    t->failed_fact = -1;
    for (; done < total; done++) {
        Node *n = &t->nodes[done];
        check = -1;
        if ((ok = access_node(n, slots, &slots[done], func, args, own)) != 1) break;
        for (int j = 0; j < n->n_checks; j++)
            if ((ok = run_check(t, &n->checks[j], slots[done], slots, own)) != 1) {
                check = j;
                break;
            }
        if (ok != 1) {
            done++;
            break;
        }
    }
    if (ok <= 0) {
        t->failed_node = check >= 0 ? (int)done - 1 : (int)done;
        t->failed_check = check;
    }
    if (!own) return ok;
    if (ok >= 0)
        for (Py_ssize_t i = 0; i < done; i++) Py_DECREF(slots[i]);
    else { /* with an exception set, which what dies here must not disturb */ PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        for (Py_ssize_t i = 0; i < done; i++) Py_DECREF(slots[i]);
        PyErr_Restore(type, value, trace);
    }
    return ok;
}

static int check_native(Tree *t, PyFunctionObject *func, PyObject *const *args) {
    PyObject *inline_slots[INLINE_SLOTS], **slots = inline_slots;
    if (t->n > INLINE_SLOTS && !(slots = PyMem_Malloc(t->n * sizeof(PyObject *)))) {
        PyErr_NoMemory();
        return -1;
    }
    int ok = t->quiet ? walk(t, func, args, slots, 0) : AGAIN;
    if (ok == AGAIN) ok = walk(t, func, args, slots, 1);
    if (slots != inline_slots) PyMem_Free(slots);
    return ok;
}

static int check_strictly(Tree *t, PyFunctionObject *func, PyObject *const *args);

int flb_guards_check(PyObject *self, PyFunctionObject *func, PyObject *const *args) {
    Py_INCREF(self); /* a check that runs Python may empty the cache that this tree is in */
    int ok = check_strictly((Tree *)self, func, args);
    Py_DECREF(self);
    return ok;
}

static int check_strictly(Tree *t, PyFunctionObject *func, PyObject *const *args) {
    int ok = check_native(t, func, args);
    if (ok < 0 || !flb_strict_guards || !t->mirror || t->mirror == Py_None) return ok;
    PyCodeObject *code = (PyCodeObject *)func->func_code;
    int n = code->co_argcount + code->co_kwonlyargcount + !!(code->co_flags & CO_VARARGS) +
        !!(code->co_flags & CO_VARKEYWORDS);
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
        PyErr_Format(PyExc_RuntimeError,
                     "strict guards: native check says %d and its Python mirror %d (node %d, check %d)", ok,
                     want, t->failed_node, t->failed_check);
        return -1;
    }
    return ok;
}
