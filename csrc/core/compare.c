/* Whether two arrays have equal elements, looked at until two differ. */
#include "core/calls.h"

enum { CHUNK = 128 };
#define SAME(T)                                                          \
    static int same_##T(const char *a, const char *b, npy_intp n) {      \
        const T *x = (const T *)a, *y = (const T *)b;                    \
        for (npy_intp i = 0; i < n; i += CHUNK) {                        \
            int apart = 0;                                               \
            npy_intp end = n - i < CHUNK ? n : i + CHUNK;                \
            for (npy_intp k = i; k < end; k++) apart |= !(x[k] == y[k]); \
            if (apart) return 0;                                         \
        }                                                                \
        return 1;                                                        \
    }
SAME(float)
SAME(double)
SAME(int64_t)
SAME(int32_t)
SAME(int8_t)

/* same_elements(a, b) of one dtype and shape; None: not for these arrays. */
static PyObject *same_elements(PyObject *m, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 2 || !PyArray_Check(args[0]) || !PyArray_Check(args[1])) Py_RETURN_NONE;
    PyArrayObject *a = (PyArrayObject *)args[0], *b = (PyArrayObject *)args[1];
    int num = PyArray_DESCR(a)->type_num, nd = PyArray_NDIM(a);
    if (PyArray_DESCR(b)->type_num != num || !PyArray_IS_C_CONTIGUOUS(a) || !PyArray_IS_C_CONTIGUOUS(b))
        Py_RETURN_NONE;
    if (nd != PyArray_NDIM(b) ||
        (nd && memcmp(PyArray_DIMS(a), PyArray_DIMS(b), (size_t)nd * sizeof(npy_intp))))
        Py_RETURN_FALSE;
    const char *x = PyArray_BYTES(a), *y = PyArray_BYTES(b);
    npy_intp n = PyArray_SIZE(a);
    switch (num) {
    case NPY_FLOAT: return PyBool_FromLong(same_float(x, y, n));
    case NPY_DOUBLE: return PyBool_FromLong(same_double(x, y, n));
    case NPY_INT64: return PyBool_FromLong(same_int64_t(x, y, n));
    case NPY_INT32: return PyBool_FromLong(same_int32_t(x, y, n));
    case NPY_INT8:
    case NPY_UINT8: return PyBool_FromLong(same_int8_t(x, y, n));
    default: Py_RETURN_NONE;
    }
}
static PyMethodDef functions[] = {
    {"same_elements", (PyCFunction)(void (*)(void))same_elements, METH_FASTCALL,
     "same_elements(a, b): whether arrays are equal; None: not for these arrays."},
    {NULL}};
int flb_init_compare(PyObject *module) { return PyModule_AddFunctions(module, functions); }
