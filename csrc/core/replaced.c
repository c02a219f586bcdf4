/* Replaced: entries of dicts and attributes of classes that are others for the duration of a with block. In
 * native code throughout, since an interrupt arrives between Python's instructions: what a block in Python
 * changes and restores step by step stays half done. */
#include "core/flambeau.h"

typedef struct {
    PyObject_HEAD
    PyObject *rows;   /* tuple of (dict or class, name, value) */
    PyObject **found; /* while entered, what each row found: NULL where there was nothing */
} FlbReplaced;

enum { TARGET, NAME, VALUE, COLUMNS };

static PyObject *cell(FlbReplaced *r, Py_ssize_t row, int column) {
    return PyTuple_GET_ITEM(PyTuple_GET_ITEM(r->rows, row), column);
}

static int put(PyObject *target, PyObject *name, PyObject *value) {
    if (PyType_Check(target)) return PyType_Type.tp_setattro(target, name, value);
    if (value) return PyObject_SetItem(target, name, value);
    /* The block may have taken it away itself. */
    int there = PyDict_Contains(target, name);
    return there > 0 ? PyObject_DelItem(target, name) : there;
}

/* Puts back what the first n rows found. All are tried; the first error stays. */
static int put_back(FlbReplaced *r, Py_ssize_t n) {
    PyObject **found = r->found, *type = NULL, *value = NULL, *traceback = NULL;
    r->found = NULL;
    while (n--) {
        if (put(cell(r, n, TARGET), cell(r, n, NAME), found[n]) < 0) {
            if (type) PyErr_Clear();
            else PyErr_Fetch(&type, &value, &traceback);
        }
        Py_XDECREF(found[n]);
    }
    PyMem_Free(found);
    if (!type) return 0;
    PyErr_Restore(type, value, traceback);
    return -1;
}

static PyObject *replaced_enter(FlbReplaced *r, PyObject *unused) {
    if (!r->rows || r->found)
        return PyErr_SetString(PyExc_RuntimeError, "what is replaced already can't be entered again"), NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(r->rows), i = 0;
    if (!(r->found = PyMem_Calloc(n ? n : 1, sizeof *r->found))) return PyErr_NoMemory();
    for (; i < n; i++) {
        PyObject *target = cell(r, i, TARGET), *name = cell(r, i, NAME);
        /* CPython 3.12 and later keep the dicts of static types elsewhere; such types refuse the value. */
        PyObject *held = PyType_Check(target) ? ((PyTypeObject *)target)->tp_dict : target;
        PyObject *found = held ? PyDict_GetItemWithError(held, name) : NULL;
        if (!found && PyErr_Occurred()) break;
        r->found[i] = Py_XNewRef(found);
        if (put(target, name, cell(r, i, VALUE)) < 0) {
            Py_CLEAR(r->found[i]);
            break;
        }
    }
    if (i == n) return Py_NewRef(r);
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (put_back(r, i) < 0) PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    return NULL;
}

static PyObject *replaced_exit(FlbReplaced *r, PyObject *const *args, Py_ssize_t n) {
    if (!r->found) return PyErr_SetString(PyExc_RuntimeError, "nothing is replaced: it wasn't entered"), NULL;
    if (put_back(r, PyTuple_GET_SIZE(r->rows)) < 0) return NULL;
    Py_RETURN_FALSE;
}

static PyObject *replaced_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *given;
    if (!PyArg_ParseTuple(args, "O:Replaced", &given)) return NULL;
    PyObject *rows = PySequence_Tuple(given);
    if (!rows) return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(rows); i++) {
        PyObject *row = PyTuple_GET_ITEM(rows, i);
        if (PyTuple_Check(row) && PyTuple_GET_SIZE(row) == COLUMNS &&
            (PyDict_Check(PyTuple_GET_ITEM(row, TARGET)) ||
             (PyType_Check(PyTuple_GET_ITEM(row, TARGET)) && PyUnicode_Check(PyTuple_GET_ITEM(row, NAME)))))
            continue;
        Py_DECREF(rows);
        return PyErr_SetString(PyExc_TypeError, "Replaced() takes rows of (dict or class, name, value)"),
               NULL;
    }
    FlbReplaced *r = (FlbReplaced *)type->tp_alloc(type, 0);
    if (!r) return Py_DECREF(rows), NULL;
    r->rows = rows;
    return (PyObject *)r;
}

static int replaced_traverse(FlbReplaced *r, visitproc visit, void *arg) {
    Py_VISIT(r->rows);
    for (Py_ssize_t i = 0; r->found && i < PyTuple_GET_SIZE(r->rows); i++) Py_VISIT(r->found[i]);
    return 0;
}

static int replaced_clear(FlbReplaced *r) {
    PyObject **found = r->found;
    r->found = NULL;
    for (Py_ssize_t i = 0; found && i < PyTuple_GET_SIZE(r->rows); i++) Py_XDECREF(found[i]);
    PyMem_Free(found);
    Py_CLEAR(r->rows);
    return 0;
}

static void replaced_dealloc(FlbReplaced *r) {
    PyObject_GC_UnTrack(r);
    replaced_clear(r);
    Py_TYPE(r)->tp_free(r);
}

static PyMethodDef methods[] = {
    {"__enter__", (PyCFunction)replaced_enter, METH_NOARGS, "Put the values in place."},
    {"__exit__", (PyCFunction)(void (*)(void))replaced_exit, METH_FASTCALL, "Put back what was there."},
    {NULL}};
static PyTypeObject Replaced_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._C.Replaced",
    .tp_basicsize = sizeof(FlbReplaced),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc =
        "Replaced(rows): for the duration of a with block, each (dict, name, value) is an entry and each "
        "(class, name, value)\nan attribute. What was there is put back, last first, whatever happened in "
        "the block.",
    .tp_new = replaced_new,
    .tp_dealloc = (destructor)replaced_dealloc,
    .tp_traverse = (traverseproc)replaced_traverse,
    .tp_clear = (inquiry)replaced_clear,
    .tp_methods = methods,
};

int flb_init_replaced(PyObject *module) {
    if (PyType_Ready(&Replaced_Type) < 0) return -1;
    return PyModule_AddObjectRef(module, "Replaced", (PyObject *)&Replaced_Type);
}
