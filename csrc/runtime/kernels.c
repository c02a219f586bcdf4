/* The table of native kernels (kernels.def), and the Python type of its rows: `kernel(operands, results,
 * **numbers)` runs one over ndarrays, `kernel.pack(**numbers)` gives its numbers in their order for a launch
 * by a graph or a call_plan. */
#include "runtime/graph.h"
#include <string.h>

#define KERNEL(name, ...)                                                                                 \
    _Static_assert(sizeof(flb_##name##_views) <= MOST_VIEWS * sizeof(View), #name);                       \
    _Static_assert(sizeof(flb_##name##_numbers) <= MOST_NUMBERS * sizeof(int64_t), #name);                \
    static int run_##name(const View *v, const int64_t *n, int64_t *status) {                             \
        return flb_kernel_##name((const flb_##name##_views *)v, (const flb_##name##_numbers *)n, status); \
    }                                                                                                     \
    static const KernelField fields_##name[] = {
#define OPERAND(name) {#name, FIELD_OPERAND, 0, 1},
#define RESULT(name) {#name, FIELD_RESULT, 0, 1},
#define OPTIONAL_OPERAND(name) {#name, FIELD_OPERAND, 1, 1},
#define OPTIONAL_RESULT(name) {#name, FIELD_RESULT, 1, 1},
#define OPERANDS(name, n) {#name, FIELD_OPERAND, 1, n},
#define RESULTS(name, n) {#name, FIELD_RESULT, 1, n},
#define INTEGER(name) {#name, FIELD_INTEGER, 0, 1},
#define FLAG(name) {#name, FIELD_FLAG, 0, 1},
#define REAL(name) {#name, FIELD_REAL, 0, 1},
#define CHOICE(e, name) {#name, FIELD_CHOICE, 0, 1, #e, e##_COUNT},
#define ARRAY(name, n) {#name, FIELD_ARRAY, 0, n},
#define LIST(name, n) {#name, FIELD_LIST, 0, n},
#define MESSAGE(name) {#name, FIELD_MESSAGE, 0, 1},
#define END_KERNEL(name) {0}} \
    ;
#include "runtime/kernels.def"

static const NativeKernel kernels[] = {
#define KERNEL(name_, ...)                                          \
    {.name = #name_,                                                \
     .run = run_##name_,                                            \
     .fields = fields_##name_,                                      \
     .nfields = sizeof fields_##name_ / sizeof *fields_##name_ - 1, \
     .nviews = sizeof(flb_##name_##_views) / sizeof(View),          \
     .nnumbers = sizeof(flb_##name_##_numbers) / sizeof(int64_t),   \
     __VA_ARGS__},
#include "runtime/kernels.def"
};
#define KERNELS ((int)(sizeof kernels / sizeof *kernels))

typedef struct {
    const char *name, *member;
} EnumMember;
static const EnumMember members[] = {
#define ENUM(name) {#name, NULL},
#define MEMBER(e, name) {#e, #name},
#include "runtime/kernels.def"
#define ENUM(name) {#name, NULL},
#define MEMBER(e, name) {#e, #name},
#include "runtime/graph.def"
};

const NativeKernel *flb_find_kernel(const char *name) {
    for (int i = 0; i < KERNELS; i++)
        if (!strcmp(kernels[i].name, name)) return &kernels[i];
    return NULL;
}

/* Whether numbers are what the kernel's fields say; choices alone have values that aren't. */
int flb_numbers_fit(const NativeKernel *k, const int64_t *numbers) {
    for (int i = 0, at = 0; i < k->nfields; i++) {
        const KernelField *f = &k->fields[i];
        if (f->kind <= FIELD_RESULT) continue;
        if (f->kind == FIELD_CHOICE && (numbers[at] < 0 || numbers[at] >= f->members)) return 0;
        if (f->kind == FIELD_LIST && (numbers[at] < 0 || numbers[at] > f->count)) return 0;
        at += f->count + (f->kind == FIELD_LIST);
    }
    return 1;
}

/* Whether all views are there that must be. `given[i]`: whether view i is. */
int flb_views_fit(const NativeKernel *k, const uint8_t *given) {
    for (int i = 0, at = 0; at < k->nviews; at += k->fields[i].count, i++)
        if (!k->fields[i].optional && !given[at]) return 0;
    return 1;
}

/* ---- the rows in Python -------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    const NativeKernel *kernel;
    int noperands;
    PyObject *names[MOST_VIEWS + MOST_NUMBERS]; /* of the fields, interned */
} KernelObject;

/* A number as a launch takes it, a new reference: an int, or what isn't known before the call (a size) as it
 * is. */
static PyObject *number_of(const NativeKernel *k, const KernelField *f, PyObject *x) {
    int known = PyLong_Check(x) || PyFloat_Check(x) || PyArray_CheckAnyScalar(x);
    if (f->kind == FIELD_REAL) {
        if (!known)
            return PyErr_Format(PyExc_NotImplementedError, "%s: the number %s is known at the call only",
                                k->name, f->name),
                   NULL;
        double real = PyFloat_AsDouble(x);
        int64_t bits;
        memcpy(&bits, &real, sizeof bits);
        return real == -1 && PyErr_Occurred() ? NULL : PyLong_FromLongLong(bits);
    }
    if (PyFloat_Check(x) || PyUnicode_Check(x) || x == Py_None || PyTuple_Check(x) || PyList_Check(x))
        return PyErr_Format(PyExc_TypeError, "%s: the number %s must be an integer, got %R", k->name, f->name,
                            x),
               NULL;
    if (!known)
        return f->kind == FIELD_INTEGER || f->kind >= FIELD_ARRAY
            ? Py_NewRef(x)
            : (PyErr_Format(PyExc_TypeError, "%s: %s must be known, got %R", k->name, f->name, x), NULL);
    if (f->kind == FIELD_FLAG) {
        int truth = PyObject_IsTrue(x);
        return truth < 0 ? NULL : PyLong_FromLong(truth);
    }
    PyObject *whole = PyNumber_Index(x);
    if (whole && f->kind == FIELD_CHOICE) {
        int overflow;
        long long member = PyLong_AsLongLongAndOverflow(whole, &overflow);
        if (overflow || member < 0 || member >= f->members) {
            Py_DECREF(whole);
            return PyErr_Format(PyExc_ValueError, "%s: %s is no member of %s: %R", k->name, f->name,
                                f->choices, x),
                   NULL;
        }
    }
    return whole;
}

/* A field's numbers from `at` on: how many, -1 with an exception. */
static int pack_field(const NativeKernel *k, const KernelField *f, PyObject *x, PyObject **to) {
    if (f->kind < FIELD_ARRAY || f->kind == FIELD_MESSAGE) return (*to = number_of(k, f, x)) ? 1 : -1;
    PyObject *given = PySequence_Tuple(x);
    if (!given) return -1;
    Py_ssize_t n = PyTuple_GET_SIZE(given);
    int at = 0, failed = f->kind == FIELD_ARRAY ? n != f->count : n > f->count;
    if (failed)
        PyErr_Format(PyExc_ValueError, "%s: %s has %zd numbers, %d are expected", k->name, f->name, n,
                     f->count);
    if (!failed && f->kind == FIELD_LIST && !(to[at++] = PyLong_FromSsize_t(n))) failed = 1;
    for (Py_ssize_t i = 0; i < f->count && !failed; i++)
        if (!(to[at++] = i < n ? number_of(k, f, PyTuple_GET_ITEM(given, i)) : PyLong_FromLong(0)))
            failed = 1;
    Py_DECREF(given);
    return failed ? -1 : at;
}

/* All numbers by name; what was packed so far is the caller's to release, after an exception (-1) too.
 * `messages`: they may be left out. */
static int pack(const KernelObject *self, PyObject *given, int messages, PyObject **numbers) {
    const NativeKernel *k = self->kernel;
    Py_ssize_t taken = 0;
    for (int i = 0, at = 0; i < k->nfields; i++) {
        const KernelField *f = &k->fields[i];
        if (f->kind <= FIELD_RESULT) continue;
        PyObject *x = given ? PyDict_GetItemWithError(given, self->names[i]) : NULL;
        if (!x && PyErr_Occurred()) return -1;
        if (!x && !(messages && f->kind == FIELD_MESSAGE))
            return PyErr_Format(PyExc_TypeError, "%s: the number %s is missing", k->name, f->name), -1;
        taken += x != NULL;
        int n = x ? pack_field(k, f, x, numbers + at) : (numbers[at] = PyLong_FromLong(0)) ? 1 : -1;
        if (n < 0) return -1;
        at += n;
    }
    if (given && taken != PyDict_GET_SIZE(given)) {
        PyObject *name, *value;
        for (Py_ssize_t at = 0; PyDict_Next(given, &at, &name, &value);) {
            int known = 0;
            for (int i = 0; i < k->nfields && !known; i++)
                known = k->fields[i].kind > FIELD_RESULT && PyUnicode_Compare(self->names[i], name) == 0;
            if (!known) return PyErr_Format(PyExc_TypeError, "%s: there is no number %U", k->name, name), -1;
        }
    }
    return 0;
}

static void release(PyObject **numbers) {
    for (int i = 0; i < MOST_NUMBERS; i++) Py_XDECREF(numbers[i]);
}

static PyObject *kernel_pack(KernelObject *self, PyObject *args, PyObject *given) {
    PyObject *numbers[MOST_NUMBERS] = {NULL}, *made = NULL;
    if (PyTuple_GET_SIZE(args))
        return PyErr_Format(PyExc_TypeError, "%s: numbers are given by name", self->kernel->name), NULL;
    if (pack(self, given, 0, numbers) == 0 && (made = PyTuple_New(self->kernel->nnumbers)))
        for (int i = 0; i < self->kernel->nnumbers; i++) PyTuple_SET_ITEM(made, i, Py_NewRef(numbers[i]));
    release(numbers);
    return made;
}

typedef struct {
    View views[MOST_VIEWS];
    uint8_t given[MOST_VIEWS];
    PyArrayObject *
        held[MOST_VIEWS]; /* owned; of an array that isn't aligned a copy, which is written back in the end */
    int n, nheld;
} Opened;

/* Arrays as the next `count` views. */
static int open_views(const NativeKernel *k, PyObject *arrays, int count, Opened *to) {
    PyObject *fast = PySequence_Tuple(arrays);
    if (!fast) return -1;
    int failed = PyTuple_GET_SIZE(fast) > count;
    if (failed)
        PyErr_Format(PyExc_TypeError, "%s: %zd arrays where at most %d are expected", k->name,
                     PyTuple_GET_SIZE(fast), count);
    for (int i = 0; i < count && !failed; i++, to->n++) {
        PyObject *x = i < PyTuple_GET_SIZE(fast) ? PyTuple_GET_ITEM(fast, i) : Py_None;
        PyArrayObject *a = (PyArrayObject *)x;
        to->views[to->n] = NO_VIEW;
        if (!(to->given[to->n] = x != Py_None)) continue;
        if (!PyArray_Check(x) || PyArray_ISBYTESWAPPED(a)) {
            PyErr_Format(PyExc_ValueError, "%s: ndarrays are expected", k->name);
            failed = 1;
            continue;
        }
        if (PyArray_ISALIGNED(a)) Py_INCREF(a);
        else {
            int back = PyArray_ISWRITEABLE(a) ? NPY_ARRAY_WRITEBACKIFCOPY : 0;
            if ((failed = !(a = (PyArrayObject *)PyArray_FromArray(a, NULL, NPY_ARRAY_ALIGNED | back))))
                continue;
        }
        to->held[to->nheld++] = a;
        to->views[to->n] = (View){PyArray_DATA(a), PyArray_NDIM(a), (const int64_t *)PyArray_DIMS(a),
                                  (const int64_t *)PyArray_STRIDES(a)};
    }
    Py_DECREF(fast);
    return failed ? -1 : 0;
}

/* What was made goes back into arrays that were copied, unless the kernel hasn't run. */
static int close_views(Opened *o, int ran) {
    int failed = 0;
    for (int i = 0; i < o->nheld; i++) {
        if (!ran) PyArray_DiscardWritebackIfCopy(o->held[i]);
        else failed |= PyArray_ResolveWritebackIfCopy(o->held[i]) < 0;
        Py_DECREF(o->held[i]);
    }
    return failed ? -1 : 0;
}

static PyObject *run_views(const NativeKernel *k, Opened *o, const int64_t *values) {
    int64_t status[STATUS_WORDS] = {0};
    int failed;
    Py_BEGIN_ALLOW_THREADS failed = k->run(o->views, values, status) < 0;
    Py_END_ALLOW_THREADS if (close_views(o, 1) < 0) return NULL;
    if (failed) return PyErr_NoMemory();
    if (!status[0]) Py_RETURN_NONE;
    return PyErr_Format(PyExc_IndexError, "%s: index %lld is out of bounds for size %lld", k->name,
                        (long long)status[1], (long long)status[2]);
}

static PyObject *kernel_call(KernelObject *self, PyObject *args, PyObject *given) {
    const NativeKernel *k = self->kernel;
    PyObject *operands, *results, *numbers[MOST_NUMBERS] = {NULL};
    if (!PyArg_UnpackTuple(args, k->name, 2, 2, &operands, &results)) return NULL;
    int64_t values[MOST_NUMBERS] = {0};
    int failed = pack(self, given, 1, numbers) < 0;
    for (int i = 0; i < k->nnumbers && !failed; i++) {
        values[i] = PyLong_AsLongLong(numbers[i]);
        failed = values[i] == -1 && PyErr_Occurred();
    }
    release(numbers);
    if (failed) return NULL;
    Opened o = {.n = 0};
    failed = open_views(k, operands, self->noperands, &o) < 0 ||
        open_views(k, results, k->nviews - self->noperands, &o) < 0;
    if (!failed && !flb_views_fit(k, o.given)) {
        PyErr_Format(PyExc_TypeError, "%s: an array is missing", k->name);
        failed = 1;
    }
    if (failed) return close_views(&o, 0), NULL;
    return run_views(k, &o, values);
}

/* ((name, kind, count, optional, enumeration or None), ...) */
static PyObject *get_fields(KernelObject *self, void *closure) {
    PyObject *made = PyTuple_New(self->kernel->nfields);
    for (int i = 0; made && i < self->kernel->nfields; i++) {
        const KernelField *f = &self->kernel->fields[i];
        PyObject *row =
            Py_BuildValue("siiOz", f->name, f->kind, f->count, f->optional ? Py_True : Py_False, f->choices);
        if (!row) Py_CLEAR(made);
        else PyTuple_SET_ITEM(made, i, row);
    }
    return made;
}

static PyObject *get_capsule(KernelObject *self, void *closure) {
    return PyCapsule_New((void *)self->kernel, KERNEL_CAPSULE, NULL);
}
static PyObject *get_name(KernelObject *self, void *closure) {
    return PyUnicode_FromString(self->kernel->name);
}
static PyObject *get_ways(KernelObject *self, void *closure) {
    return self->kernel->ways ? PyUnicode_FromString(self->kernel->ways) : Py_NewRef(Py_None);
}
static PyObject *get_empty(KernelObject *self, void *closure) { return PyBool_FromLong(self->kernel->empty); }
static PyObject *get_quiet(KernelObject *self, void *closure) { return PyBool_FromLong(self->kernel->quiet); }
static PyObject *get_draws(KernelObject *self, void *closure) { return PyBool_FromLong(self->kernel->draws); }
static PyObject *get_library(KernelObject *self, void *closure) {
    return PyLong_FromLong(self->kernel->library);
}
static PyObject *get_split(KernelObject *self, void *closure) {
    return PyFloat_FromDouble(self->kernel->split);
}
static PyObject *get_start(KernelObject *self, void *closure) {
    return PyFloat_FromDouble(self->kernel->start);
}
static PyObject *get_rate(KernelObject *self, void *closure) {
    return PyFloat_FromDouble(self->kernel->rate);
}
static PyObject *kernel_repr(KernelObject *self) {
    return PyUnicode_FromFormat("<native kernel %s>", self->kernel->name);
}

static PyGetSetDef kernel_getset[] = {
    {"name", (getter)get_name, NULL, "its name in kernels.def"},
    {"fields", (getter)get_fields, NULL,
     "what it takes: (name, kind, count, optional, enumeration) of each view and number"},
    {"capsule", (getter)get_capsule, NULL, "what a call plan's step is made of"},
    {"empty", (getter)get_empty, NULL, "whether operands may have no elements"},
    {"quiet", (getter)get_quiet, NULL, "whether it reports nothing but a lack of memory"},
    {"draws", (getter)get_draws, NULL, "whether it moves a generator on"},
    {"library", (getter)get_library, NULL, "the Library that it calls"},
    {"split", (getter)get_split, NULL, "operations from which it is split over threads; 0: nothing is known"},
    {"start", (getter)get_start, NULL, "microseconds, about, of a call on one thread"},
    {"rate", (getter)get_rate, NULL, "operations in each further microsecond"},
    {"ways", (getter)get_ways, NULL,
     "the name of the kernel that tells which ways make a result; None: it has no ways"},
    {NULL},
};

static PyMethodDef kernel_methods[] = {
    {"pack", (PyCFunction)(void (*)(void))kernel_pack, METH_VARARGS | METH_KEYWORDS,
     "pack(**numbers) -> tuple of the numbers in their order: doubles as their bits, sizes that aren't known "
     "yet as they are. TypeError for a number "
     "that is missing or unknown, ValueError for one that is out of its range, NotImplementedError for a "
     "real number that only the call knows."},
    {NULL},
};

static void kernel_dealloc(KernelObject *self) {
    for (int i = 0; i < self->kernel->nfields; i++) Py_XDECREF(self->names[i]);
    Py_TYPE(self)->tp_free(self);
}

static PyTypeObject Kernel_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._runtime.Kernel",
    .tp_doc = "A native kernel: kernel(operands, results, **numbers) runs it over ndarrays, of which None "
              "stands for one that isn't given. Messages of\n"
              "errors may be left out. MemoryError; IndexError for an index in the arrays that is out of "
              "bounds, or whatever else it reports.",
    .tp_basicsize = sizeof(KernelObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = (destructor)kernel_dealloc,
    .tp_call = (ternaryfunc)kernel_call,
    .tp_repr = (reprfunc)kernel_repr,
    .tp_getset = kernel_getset,
    .tp_methods = kernel_methods,
};

static PyObject *kernel_object(const NativeKernel *k) {
    KernelObject *made = PyObject_New(KernelObject, &Kernel_Type);
    if (!made) return NULL;
    made->kernel = k, made->noperands = 0;
    memset(made->names, 0, sizeof made->names);
    for (int i = 0; i < k->nfields; i++) {
        if (k->fields[i].kind == FIELD_OPERAND) made->noperands += k->fields[i].count;
        if (!(made->names[i] = PyUnicode_InternFromString(k->fields[i].name))) return Py_DECREF(made), NULL;
    }
    return (PyObject *)made;
}

/* KERNELS: {name: Kernel}; ENUMS: {name: [members]}. */
int flb_add_kernels(PyObject *module) {
    if (PyType_Ready(&Kernel_Type) < 0) return -1;
    PyObject *table = PyDict_New(), *enums = PyDict_New();
    int failed = !table || !enums;
    for (int i = 0; i < KERNELS && !failed; i++) {
        PyObject *row = kernel_object(&kernels[i]);
        failed = !row || PyDict_SetItemString(table, kernels[i].name, row) < 0;
        Py_XDECREF(row);
    }
    for (size_t i = 0; i < sizeof members / sizeof *members && !failed; i++) {
        PyObject *x = members[i].member ? PyUnicode_FromString(members[i].member) : PyList_New(0);
        failed = !x ||
            (members[i].member ? PyList_Append(PyDict_GetItemString(enums, members[i].name), x)
                               : PyDict_SetItemString(enums, members[i].name, x)) < 0;
        Py_XDECREF(x);
    }
    failed = failed || PyModule_AddObjectRef(module, "KERNELS", table) < 0 ||
        PyModule_AddObjectRef(module, "ENUMS", enums) < 0;
    Py_XDECREF(table);
    Py_XDECREF(enums);
    return failed ? -1 : 0;
}
