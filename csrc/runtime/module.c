/* flambeau._runtime: the module, its functions, and those of them that are nobody else's: one kernel by
 * itself, the number of threads, the clock of steps. */
#define FLB_IMPORT_ARRAY
#include "runtime/launch.h"
#include <time.h>

FlbApi *flb_api;

/* launch(address, arrays, total, grain=..., params=()): one kernel over ndarrays, for tests and tools;
 * returns the status words. */
static PyObject *launch(PyObject *self, PyObject *args) {
    unsigned long long address;
    PyObject *arrays, *params = NULL;
    long long total, grain = 1LL << 62;
    if (!PyArg_ParseTuple(args, "KO!L|LO!", &address, &PyList_Type, &arrays, &total, &grain, &PyTuple_Type,
                          &params))
        return NULL;
    if (!(arrays = PyList_AsTuple(arrays)))
        return NULL; /* another thread may change the list while the kernel runs */
    Py_ssize_t n = PyTuple_GET_SIZE(arrays), m = params ? PyTuple_GET_SIZE(params) : 0;
    char **pointers = PyMem_Calloc(n + 2, sizeof(char *));
    int64_t status[STATUS_WORDS] = {0}, *numbers = PyMem_Calloc(m + 1, sizeof(int64_t));
    PyObject *result = NULL;
    if (!pointers || !numbers) {
        PyErr_NoMemory();
        goto done;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *a = PyTuple_GET_ITEM(arrays, i);
        if (!PyArray_Check(a)) {
            PyErr_SetString(PyExc_TypeError, "launch: ndarrays are expected");
            goto done;
        }
        pointers[i] = PyArray_DATA((PyArrayObject *)a);
    }
    for (Py_ssize_t i = 0; i < m; i++) numbers[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(params, i));
    if (PyErr_Occurred()) goto done;
    pointers[n] = (char *)status;
    pointers[n + 1] = (char *)numbers;
    Py_BEGIN_ALLOW_THREADS flb_run_kernel((KernelFn)(uintptr_t)address, pointers, total, grain);
    Py_END_ALLOW_THREADS result =
        Py_BuildValue("LLL", (long long)status[0], (long long)status[1], (long long)status[2]);
done:
    PyMem_Free(numbers);
    PyMem_Free(pointers);
    Py_DECREF(arrays);
    return result;
}

static PyObject *get_num_threads(PyObject *self, PyObject *unused) {
    return PyLong_FromLong(flb_get_num_threads());
}

static PyObject *set_num_threads(PyObject *self, PyObject *arg) {
    if (!PyLong_Check(arg) || PyBool_Check(arg))
        return PyErr_Format(PyExc_RuntimeError, "set_num_threads expects an int, but got %s",
                            Py_TYPE(arg)->tp_name);
    long n = PyLong_AsLong(arg);
    if (n == -1 && PyErr_Occurred()) return NULL;
    if (n < 1) {
        PyErr_SetString(PyExc_RuntimeError, "set_num_threads expects a positive integer");
        return NULL;
    }
    flb_set_num_threads((int)(n > 1 << 16 ? 1 << 16 : n));
    Py_RETURN_NONE;
}

static PyObject *time_steps(PyObject *self, PyObject *arg) {
    int before = flb_timing;
    long clock = arg == Py_None ? 0 : PyLong_AsLong(arg);
    if (clock == -1 && PyErr_Occurred()) return NULL;
    struct timespec t;
    if (clock < 0 || clock > INT_MAX || (clock && clock_gettime((clockid_t)clock, &t)))
        return PyErr_SetString(PyExc_ValueError, "no such clock"), NULL;
    flb_timing = (int)clock;
    return before ? PyLong_FromLong(before) : Py_NewRef(Py_None);
}

PyObject *flb_arrays_at(PyObject *self, PyObject *args); /* containers.c */

static PyMethodDef functions[] = {
    {"arrays_at", flb_arrays_at, METH_VARARGS,
     "arrays_at(words, dtype) -> list: new arrays of the elements that lie at each row (address, owner, "
     "sizes, "
     "strides)"},
    {"operation_names", flb_operation_names, METH_NOARGS,
     "operation_names() -> names of the operations of lists, by number"},
    {"sweep_operations", flb_sweep_operations, METH_VARARGS,
     "sweep_operations(list, base, parts, values, cotangents, steps, programs, makes, constants): hyper-dual "
     "numbers of a list of operations"},
    {"loops_worth", flb_loops_worth, METH_O,
     "loops_worth(nanoseconds) -> the number before: how long what is left of a native loop has to take to "
     "be given to other threads"},
    {"time_steps", time_steps, METH_O,
     "time_steps(clock or None) -> what it was: the clock (a number of the time module's) by which launches "
     "add to their graph's step_seconds"},
    {"use_blas", flb_use_blas, METH_VARARGS,
     "use_blas(sgemm, dgemm, get_num_threads, set_num_threads): addresses in the BLAS library; it is set to "
     "one thread"},
    {"gemm_address", flb_gemm_address, METH_O,
     "gemm_address(f64): the function that makes products of float64 or float32, with Fortran's convention"},
    {"matmul", (PyCFunction)(void (*)(void))flb_matmul, METH_FASTCALL,
     "matmul(a, b) -> ndarray, split over the pool; None unless both are float32 or float64 matrices (or "
     "stacks) that BLAS reads in place"},
    {"packed_elements", flb_packed_elements, METH_VARARGS,
     "packed_elements(type, turned, m, n, k) -> (elements, way): of the right operand of products (m, k) (k, "
     "n) of float32 (0), float64 or bfloat16, packed once"},
    {"bf16_products", flb_bf16_products, METH_NOARGS,
     "bf16_products() -> int: how products of bfloat16 are made: 0 in float32, 1 by AVX512_BF16, 2 by AMX"},
    {"default_engine", flb_default_engine, METH_NOARGS,
     "default_engine() -> ndarray: the state of the default generator, see random.c"},
    {"use_lapack", flb_use_lapack, METH_VARARGS,
     "use_lapack(type, wide, addresses): LAPACK's routines for an element type, as of lapack.h"},
    {"element_functions", flb_element_functions, METH_NOARGS,
     "element_functions(): the names that element_function knows"},
    {"element_function", flb_element_function, METH_VARARGS,
     "element_function(name, ufunc): a ufunc of float32 and float64 with the bits of compiled graphs; "
     "complex numbers go to ufunc, if given"},
    {"pair_function", flb_pair_function, METH_VARARGS,
     "pair_function(name, ufunc): a ufunc of two operands of float32 and float64 (csrc/kernels/pairs.c); "
     "some call the loop of ufunc"},
    {"use_ufunc", flb_use_ufunc, METH_VARARGS,
     "use_ufunc(slot, ufunc, types): the loop of a ufunc that the kernel \"ufunc\" runs for a slot"},
    {"launch", launch, METH_VARARGS,
     "launch(address, arrays, total, grain, params) -> (code, value, size): run one kernel over ndarrays"},
    {"emit_configure", flb_emit_configure, METH_VARARGS,
     "emit_configure(functions, machines, triple, layout): addresses in LLVM's library, see emit.c"},
    {"emit_start", flb_emit_start, METH_O, "emit_start(text) -> job: generate code on another thread"},
    {"turn_blocks", flb_turn_blocks, METH_NOARGS,
     "turn_blocks() -> how many times products of several turns of a loop were made at once"},
    {"emit_load", flb_emit_load, METH_NOARGS, "emit_load() -> (jobs that wait or run, threads at most)"},
    {"emit_finish", flb_emit_finish, METH_O,
     "emit_finish(job) -> object code, None when no thread can be had; RuntimeError in LLVM's words"},
    {"emit_drain", flb_emit_drain, METH_NOARGS, "wait until no thread generates code"},
    {"emit_forked", flb_emit_forked, METH_NOARGS, "begin anew in the child of a fork"},
    {"load_objects", flb_load_objects, METH_VARARGS,
     "load_objects(objects, names) -> addresses: link relocatable object code, each object for a tuple of "
     "its functions; None for what only LLVM can link"},
    {"get_num_threads", get_num_threads, METH_NOARGS,
     "get_num_threads($module, /)\n--\n\nThreads that kernels are split over."},
    {"set_num_threads", set_num_threads, METH_O,
     "set_num_threads($module, n, /)\n--\n\nSet the number of threads that kernels are split over."},
    {NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "flambeau._runtime", .m_size = -1,
                                        .m_doc = "Thread pool and the launch of compiled graphs.",
                                        .m_methods = functions};

PyMODINIT_FUNC PyInit__runtime(void) {
    import_array();
    PyObject *core = PyImport_ImportModule("flambeau._C");
    if (!core) return NULL;
    Py_DECREF(core);
    flb_api = PyCapsule_Import(FLB_API_CAPSULE, 0);
    if (!flb_api) return NULL;
    if (PyType_Ready(&FlbGraph_Type) < 0 || PyType_Ready(&FlbLoop_Type) < 0 ||
        PyType_Ready(&FlbLoopWith_Type) < 0 || PyType_Ready(&FlbNumpyCall_Type) < 0 ||
        PyType_Ready(&FlbArrayView_Type) < 0)
        return NULL;
    PyObject *m = PyModule_Create(&definition);
    if (!m) return NULL;
    if (flb_init_writing(m) < 0 || PyType_Ready(&FlbArrayResult_Type) < 0 ||
        PyModule_AddObjectRef(m, "Graph", (PyObject *)&FlbGraph_Type) < 0 ||
        PyModule_AddObjectRef(m, "Loop", (PyObject *)&FlbLoop_Type) < 0 ||
        PyModule_AddObjectRef(m, "NumpyCall", (PyObject *)&FlbNumpyCall_Type) < 0 ||
        PyModule_AddObjectRef(m, "ArrayView", (PyObject *)&FlbArrayView_Type) < 0 || flb_add_kernels(m) < 0) {
        Py_DECREF(m);
        return NULL;
    }
    return m;
}
