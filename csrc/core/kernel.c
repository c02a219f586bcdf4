/* Kernel: a call plan that is a native callable, a compiled graph or a product of BLAS, handed the tensors of
 * the call. For arrays that are too large for steps (call_plan.h); the callable is found once for a
 * description, from then on no Python stands before it. */
#include "core/calls.h"

struct FlbKernel {
    PyObject_HEAD
    PyObject *fn; /* fn(*tensors) -> list of results; with `arrays` fn(*ndarrays) -> ndarray, or None: not for
                     these */
    PyObject *numbers; /* tuple: the numbers of the call it was made for, which the description only knows by
                          type */
    PyObject *otherwise;         /* a call plan for calls that it isn't for; or NULL */
    int target;                  /* the tensor that the result is written to, and that is returned; or -1 */
    uint8_t checked;             /* an error goes the general way, which words it */
    uint8_t many, arrays, quiet; /* quiet: as kernels run, NumPy's floating-point warnings off */
};
typedef struct FlbKernel Kernel;

int flb_same_value(PyObject *a, PyObject *b);

PyObject *flb_kernel_otherwise(PyObject *self) { return ((Kernel *)self)->otherwise; }

/* The target, written with the one result of the list `got`, whose reference is taken. */
static PyObject *written(Kernel *k, const Description *d, PyObject *got) {
    FlbTensor *target = d->tensors[k->target];
    FlbStorage *storage = flb_storage(target);
    PyObject *made = PyList_Check(got) && PyList_GET_SIZE(got) == 1 ? PyList_GET_ITEM(got, 0) : NULL;
    int bad = !storage || !made || !PyObject_TypeCheck(made, &FlbTensor_Type) ||
        PyArray_CopyInto((PyArrayObject *)target->array, (PyArrayObject *)((FlbTensor *)made)->array) < 0;
    Py_DECREF(got);
    if (bad) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "a compiled graph returns the list of its results");
        return NULL;
    }
    flb_count_write(storage);
    return Py_NewRef(target);
}
int flb_kernel_run(PyObject *self, const Description *d, PyObject **result) {
    Kernel *k = (Kernel *)self;
    if (PyTuple_GET_SIZE(k->numbers) != d->n_numbers || k->target >= d->n_tensors) return 0;
    for (int i = 0; i < d->n_numbers; i++)
        if (!flb_same_value(d->numbers[i], PyTuple_GET_ITEM(k->numbers, i))) return 0;
    PyObject *args[R_SLOTS + 1], **at = args + 1;
    for (int i = 0; i < d->n_tensors; i++)
        at[i] = Py_NewRef(k->arrays ? d->tensors[i]->array : (PyObject *)d->tensors[i]);
    PyObject *got = NULL;
    if (flb_use_allocator() == 0)
        got = k->quiet ? flb_quietly(k->fn, at, d->n_tensors, NULL)
                       : PyObject_Vectorcall(k->fn, at, d->n_tensors | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    if (got && k->target >= 0) got = written(k, d, got);
    for (int i = 0; i < d->n_tensors; i++) Py_DECREF(at[i]);
    if (!got && k->checked && PyErr_ExceptionMatches(PyExc_Exception)) return PyErr_Clear(), 0;
    if (!got) return -1;
    if (k->target >= 0) return *result = got, 1;
    if (k->arrays) {
        int other = got == Py_None;
        *result = other ? NULL : flb_from_array(got);
        Py_DECREF(got);
        return other ? 0 : *result ? 1 : -1;
    }
    if (!PyList_Check(got) || (!k->many && PyList_GET_SIZE(got) != 1)) {
        Py_DECREF(got);
        return PyErr_SetString(PyExc_TypeError, "a compiled graph returns the list of its results"), -1;
    }
    *result = k->many ? PyList_AsTuple(got) : Py_NewRef(PyList_GET_ITEM(got, 0));
    Py_DECREF(got);
    return *result ? 1 : -1;
}

static PyObject *kernel_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"fn",      "numbers", "many",      "arrays", "quiet",
                            "checked", "target",  "otherwise", NULL};
    PyObject *fn, *numbers, *otherwise = Py_None;
    int many = 0, arrays = 0, quiet = 0, checked = 0, target = -1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!|$ppppiO", names, &fn, &PyTuple_Type, &numbers, &many,
                                     &arrays, &quiet, &checked, &target, &otherwise))
        return NULL;
    if (otherwise != Py_None && Py_TYPE(otherwise) != &FlbCallPlan_Type)
        return PyErr_SetString(PyExc_TypeError, "Kernel: otherwise is a CallPlan or None"), NULL;
    if (!PyCallable_Check(fn))
        return PyErr_SetString(PyExc_TypeError,
                               "Kernel(fn, numbers, *, many, arrays, quiet): fn is a callable"),
               NULL;
    Kernel *k = PyObject_GC_New(Kernel, type);
    if (!k) return NULL;
    k->fn = Py_NewRef(fn), k->numbers = Py_NewRef(numbers);
    k->many = (uint8_t)many, k->arrays = (uint8_t)arrays, k->quiet = (uint8_t)quiet;
    k->checked = (uint8_t)checked, k->target = target;
    k->otherwise = otherwise == Py_None ? NULL : Py_NewRef(otherwise);
    PyObject_GC_Track(k);
    return (PyObject *)k;
}
static int kernel_traverse(Kernel *k, visitproc visit, void *arg) {
    Py_VISIT(k->fn);
    Py_VISIT(k->otherwise);
    return 0;
}
static void kernel_dealloc(Kernel *k) {
    PyObject_GC_UnTrack(k);
    Py_DECREF(k->fn);
    Py_DECREF(k->numbers);
    Py_XDECREF(k->otherwise);
    PyObject_GC_Del(k);
}
static PyMemberDef kernel_members[] = {
    {"fn", T_OBJECT, offsetof(Kernel, fn), READONLY, "what is called"},
    {"quiet", T_BOOL, offsetof(Kernel, quiet), READONLY, "NumPy's floating-point warnings are off"},
    {NULL}};
PyTypeObject FlbKernel_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._C.Kernel",
    .tp_basicsize = sizeof(Kernel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Kernel(fn, numbers, *, many, arrays, quiet, checked, target, otherwise): calls of one "
              "description are "
              "fn(*tensors) -> list of results; with arrays\n"
              "fn(*ndarrays) -> ndarray or None. numbers: those of the call it is for; others go to the "
              "operator's kernel.\n"
              "quiet: fn runs with NumPy's floating-point warnings off, as kernels do. checked: an error of "
              "fn goes "
              "the general way, which words it.\n"
              "target: the tensor (by number) that the one result is written to, and that is returned. "
              "otherwise: a CallPlan for calls it isn't for.",
    .tp_new = kernel_new,
    .tp_dealloc = (destructor)kernel_dealloc,
    .tp_traverse = (traverseproc)kernel_traverse,
    .tp_members = kernel_members,
};
int flb_init_kernel(PyObject *module) {
    if (PyType_Ready(&FlbKernel_Type) < 0) return -1;
    return PyModule_AddObjectRef(module, "Kernel", (PyObject *)&FlbKernel_Type);
}
