/* What a node of an operator keeps, seen from Python: `_saved_<name>` is the value, `_raw_saved_<name>` the
 * place where it is kept, which takes hooks of its own. */
#include "autograd/autograd.h"

typedef struct {
    PyObject_HEAD
    FlbOpNode *node;
    int at;
} RawSaved;

static int raw_traverse(RawSaved *r, visitproc visit, void *arg) {
    Py_VISIT(r->node);
    return 0;
}
static int raw_clear(RawSaved *r) {
    Py_CLEAR(r->node);
    return 0;
}
static void raw_dealloc(RawSaved *r) {
    PyObject_GC_UnTrack(r);
    raw_clear(r);
    PyObject_GC_Del(r);
}
static PyObject *raw_register(RawSaved *r, PyObject *args) {
    PyObject *pack, *unpack;
    if (!r->node) return PyErr_SetString(PyExc_RuntimeError, "the node is gone"), NULL;
    if (!PyArg_ParseTuple(args, "OO", &pack, &unpack)) return NULL;
    if (flb_saved_register(&r->node->saved[r->at], pack, unpack) < 0) return NULL;
    Py_RETURN_NONE;
}
static PyMethodDef raw_methods[] = {
    {"register_hooks", (PyCFunction)raw_register, METH_VARARGS,
     "register_hooks(pack, unpack): pack(tensor) is called now, unpack(packed) when the value is read."},
    {NULL}};
static PyTypeObject RawSaved_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._C.RawSaved",
    .tp_basicsize = sizeof(RawSaved),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "The place of a tensor that a node keeps.",
    .tp_dealloc = (destructor)raw_dealloc,
    .tp_traverse = (traverseproc)raw_traverse,
    .tp_clear = (inquiry)raw_clear,
    .tp_methods = raw_methods,
};

/* _raw_saved_<name>: a tuple for a list of tensors; new. NULL without an error for what is no tensor. */
PyObject *flb_raw_saved(FlbOpNode *node, int at) {
    FlbSaved *s = &node->saved[at];
    if (s->kind == SAVED_LIST && s->value) return PySequence_Tuple(s->value);
    if (s->kind != SAVED_TENSOR) return NULL;
    RawSaved *r = PyObject_GC_New(RawSaved, &RawSaved_Type);
    if (!r) return NULL;
    r->node = (FlbOpNode *)Py_NewRef(node);
    r->at = at;
    PyObject_GC_Track(r);
    return (PyObject *)r;
}
/* The names of the attributes, appended to a list of others. */
int flb_saved_names(FlbOpNode *node, PyObject *list) {
    for (int i = 0; node->saved && i < node->plan->n_saves; i++) {
        uint8_t kind = node->saved[i].kind;
        for (int raw = 0; raw <= (kind == SAVED_TENSOR || kind == SAVED_LIST); raw++) {
            PyObject *name =
                PyUnicode_FromFormat(raw ? "_raw_saved_%U" : "_saved_%U", node->plan->saves[i].name);
            int bad = !name || PyList_Append(list, name) < 0;
            Py_XDECREF(name);
            if (bad) return -1;
        }
    }
    return 0;
}
int flb_init_raw_saved(void) { return PyType_Ready(&RawSaved_Type); }
