/* flambeau._C: puts the parts together and exports FlbApi to the sibling extensions. */
#define FLB_IMPORT_ARRAY
#include "core/calls.h"
#include "core/tensor_internal.h"

int flb_init_dispatch(PyObject *module);
int flb_init_allocator(PyObject *module), flb_init_places(PyObject *module),
    flb_init_events(PyObject *module), flb_init_masked(PyObject *module), flb_init_compare(PyObject *module),
    flb_init_replaced(PyObject *module);

int flb_init_node(PyObject *module), flb_init_saved(PyObject *module), flb_init_record(PyObject *module);
extern PyMethodDef flb_node_functions[], flb_saved_functions[], flb_record_functions[], flb_apply_functions[],
    flb_engine_functions[], flb_mapping_functions[];

static PyTypeObject *tensor_class(void) { return flb_tensor_class; }

/* Of a tensor, or the array that captured code passes in its place. */
static PyArrayObject *array_of(PyObject *x) {
    return PyArray_Check(x) ? (PyArrayObject *)x : (PyArrayObject *)((FlbTensor *)x)->array;
}

static Py_ssize_t nbytes(PyObject *tensor) { return PyArray_NBYTES(array_of(tensor)); }

static int keep_contents(PyObject *tensor, FlbContents *kept) {
    PyArrayObject *a = array_of(tensor);
    *kept = (FlbContents){.array = (PyObject *)a};
    if (PyArray_ISONESEGMENT(a)) {
        if (!(kept->memory = flb_malloc(PyArray_NBYTES(a) + 1))) return PyErr_NoMemory(), -1;
        memcpy(kept->memory, PyArray_DATA(a), PyArray_NBYTES(a));
    } else if (!(kept->copy = PyArray_NewCopy(a, NPY_KEEPORDER))) {
        return -1;
    }
    Py_INCREF(a);
    return 0;
}

static int put_back(FlbContents *kept, int write) {
    PyArrayObject *a = (PyArrayObject *)kept->array;
    int r = 0;
    if (write && kept->memory) memcpy(PyArray_DATA(a), kept->memory, PyArray_NBYTES(a));
    if (write && kept->copy) r = PyArray_CopyInto(a, (PyArrayObject *)kept->copy);
    if (kept->memory) flb_free(kept->memory);
    Py_CLEAR(kept->copy);
    Py_CLEAR(kept->array);
    return r;
}

static FlbApi api = {.version = 1,
                     .tensor_type = &FlbTensor_Type,
                     .storage_type = &FlbStorage_Type,
                     .tls = flb_tls,
                     .from_array = flb_from_array,
                     .tensor_class = tensor_class,
                     .malloc = flb_malloc,
                     .scratch = flb_scratch,
                     .free = flb_free,
                     .use_allocator = flb_use_allocator,
                     .floating = flb_floating,
                     .keep_contents = keep_contents,
                     .put_back = put_back,
                     .nbytes = nbytes,
                     .events = &flb_events,
                     .event_begin = flb_event_begin,
                     .event_end = flb_event_end,
                     .event_step = flb_event_step};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "flambeau._C", .m_size = -1,
    .m_doc = "Native core: tensor object, storage, dispatch state, call paths."};

PyMODINIT_FUNC PyInit__C(void) {
    import_array();
    if (PyType_Ready(&FlbStorage_Type) < 0 || PyType_Ready(&FlbTensor_Type) < 0) return NULL;
    if (flb_init_operators() < 0) return NULL;
    FlbStorage_Type.tp_flags &=
        ~Py_TPFLAGS_IMMUTABLETYPE; /* core/storage.py adds the methods that are Python */
    PyObject *m = PyModule_Create(&definition);
    if (!m) return NULL;
    if (PyModule_AddFunctions(m, flb_tensor_functions) < 0 ||
        PyModule_AddFunctions(m, flb_dispatch_functions) < 0 || flb_init_state(m) < 0 ||
        flb_init_binder() < 0 || flb_init_call_plan(m) < 0 || flb_init_dispatch(m) < 0 ||
        flb_init_interpose(m) < 0 || flb_init_function(m) < 0 || flb_init_autocast(m) < 0 ||
        flb_init_subscript(m) < 0 || flb_init_masked(m) < 0 || flb_init_compare(m) < 0 ||
        flb_init_replaced(m) < 0 || flb_init_fake(m) < 0 || flb_init_layout(m) < 0 ||
        flb_init_decomposed(m) < 0 || flb_init_kernel(m) < 0 || flb_init_allocator(m) < 0 ||
        flb_init_places(m) < 0 || flb_init_events(m) < 0 || flb_init_node(m) < 0 || flb_init_saved(m) < 0 ||
        flb_init_record(m) < 0 || PyModule_AddFunctions(m, flb_node_functions) < 0 ||
        PyModule_AddFunctions(m, flb_saved_functions) < 0 ||
        PyModule_AddFunctions(m, flb_record_functions) < 0 ||
        PyModule_AddFunctions(m, flb_apply_functions) < 0 ||
        PyModule_AddFunctions(m, flb_engine_functions) < 0 ||
        PyModule_AddFunctions(m, flb_mapping_functions) < 0 ||
        PyModule_AddObjectRef(m, "TensorBase", (PyObject *)&FlbTensor_Type) < 0 ||
        PyModule_AddObjectRef(m, "UntypedStorage", (PyObject *)&FlbStorage_Type) < 0) {
        Py_DECREF(m);
        return NULL;
    }
    PyObject *capsule = PyCapsule_New(&api, FLB_API_CAPSULE, NULL);
    if (!capsule || PyModule_AddObject(m, "_api", capsule) < 0) return NULL;
    return m;
}
