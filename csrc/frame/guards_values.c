/* Values as guards compare them: constants, tensors, arrays, and which of them are the same or share memory.
 */
#include "frame/guards.h"

static FlbApi *api;

FlbApi *flb_frame_api(void) {
    if (!api) {
        PyObject *type, *value, *trace; /* an exception of the caller's stays */
        PyErr_Fetch(&type, &value, &trace);
        if (!(api = (FlbApi *)PyCapsule_Import(FLB_API_CAPSULE, 0))) PyErr_Clear();
        PyErr_Restore(type, value, trace);
    }
    return api;
}

FlbTls *flb_guards_tls(void) {
    FlbApi *a = flb_frame_api();
    return a && a->tls ? a->tls() : NULL;
}

static int is_zero_sign_equal(double a, double b) { return memcmp(&a, &b, sizeof a) == 0; }

/* Constants as guards compare them: type and value, inside containers too; floats by bits (-0.0 is not 0.0,
 * NaN is itself), sets in the order in which they are iterated over. -1: an exception that must not be lost.
 */
int flb_equal_constants(PyObject *a, PyObject *b) {
    if (a == b) return 1;
    if (Py_TYPE(a) != Py_TYPE(b)) return 0;
    if (PyUnicode_CheckExact(a) || PyLong_CheckExact(a)) return PyObject_RichCompareBool(a, b, Py_EQ);
    if (PyFloat_Check(a)) return is_zero_sign_equal(PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b));
    if (Py_TYPE(a) == &PyBool_Type) return 0;
    if (PyComplex_CheckExact(a))
        return is_zero_sign_equal(PyComplex_RealAsDouble(a), PyComplex_RealAsDouble(b)) &&
            is_zero_sign_equal(PyComplex_ImagAsDouble(a), PyComplex_ImagAsDouble(b));
    if (PyTuple_CheckExact(a)) {
        Py_ssize_t n = PyTuple_GET_SIZE(a);
        if (n != PyTuple_GET_SIZE(b)) return 0;
        for (Py_ssize_t i = 0; i < n; i++) {
            int r = flb_equal_constants(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i));
            if (r <= 0) return r;
        }
        return 1;
    }
    if (PyFrozenSet_CheckExact(a) || PySet_CheckExact(a)) {
        if (PySet_GET_SIZE(a) != PySet_GET_SIZE(b)) return 0;
        PyObject *x = PySequence_Tuple(a), *y = x ? PySequence_Tuple(b) : NULL;
        int r = y ? flb_equal_constants(x, y) : failed();
        Py_XDECREF(x);
        Py_XDECREF(y);
        return r;
    }
    if (PyRange_Check(a)) { /* equal ranges may have different bounds */
        static const char *const parts[] = {"start", "stop", "step"};
        for (int i = 0; i < 3; i++) {
            PyObject *x = PyObject_GetAttrString(a, parts[i]),
                     *y = x ? PyObject_GetAttrString(b, parts[i]) : NULL;
            int r = y ? flb_equal_constants(x, y) : failed();
            Py_XDECREF(x);
            Py_XDECREF(y);
            if (r <= 0) return r;
        }
        return 1;
    }
    if (PyArray_IsScalar(a, Generic)) {
        PyObject *x = PyObject_CallMethod(a, "tobytes", NULL),
                 *y = x ? PyObject_CallMethod(b, "tobytes", NULL) : NULL;
        int r = y ? PyObject_RichCompareBool(x, y, Py_EQ) : failed();
        Py_XDECREF(x);
        Py_XDECREF(y);
        return r;
    }
    int r = PyObject_RichCompareBool(a, b, Py_EQ);
    return r < 0 ? failed() : r;
}

static int tuple_equals(PyObject *t, const Py_ssize_t *dims, int n) {
    if (!t || !PyTuple_Check(t) || PyTuple_GET_SIZE(t) != n) return 0;
    for (int i = 0; i < n; i++) {
        if (dims[i] == ANY) continue;
        if (!PyLong_Check(PyTuple_GET_ITEM(t, i))) return 0;
        Py_ssize_t d = PyLong_AsSsize_t(PyTuple_GET_ITEM(t, i));
        if (d == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
        if (d != dims[i]) return 0;
    }
    return 1;
}

int flb_tensor_fits(PyObject *v, const ArrayFacts *f) {
    if (Py_TYPE(v) != f->type) return 0;
    FlbTensor *t = (FlbTensor *)v;
    if (t->dtype != f->dtype || t->keys != f->keys) return 0;
    if (t->device != f->device) {
        int r = flb_equal_constants(t->device, f->device);
        if (r <= 0) return r;
    }
    if (((t->flags & FLB_REQUIRES_GRAD) != 0) != f->requires_grad) return 0;
    if ((t->storage ? t->storage->inference : (t->flags & FLB_INFERENCE) != 0) != f->inference) return 0;
    if (!t->array && t->payload && !t->keys)
        return 0; /* sparse, or a conjugated view: graphs are given plain memory */
    /* A view that may have to take over a history: the slow way finds out. */
    if (!f->requires_grad && t->autograd && t->storage && t->storage->recorded) return 0;
    if (t->array && PyArray_Check(t->array)) {
        PyArrayObject *a = (PyArrayObject *)t->array;
        if (PyArray_NDIM(a) != f->ndim) return 0;
        Py_ssize_t item = PyArray_ITEMSIZE(a);
        if (f->filled) {
            const npy_intp *dims = PyArray_DIMS(a), *strides = PyArray_STRIDES(a);
            for (int i = 0; i < f->ndim; i++)
                if (dims[i] != f->dims[i] || strides[i] != f->dims[f->ndim + i] * item) return 0;
            return 1;
        }
        /* A new empty array has strides of zero in NumPy; the tensor's are row-major then (flb_strides). */
        int zero = PyArray_SIZE(a) == 0;
        for (int i = 0; i < f->ndim; i++) zero &= PyArray_STRIDE(a, i) == 0;
        Py_ssize_t step = item;
        for (int i = f->ndim; i-- > 0;) {
            Py_ssize_t n = PyArray_DIM(a, i), stride = zero ? step : PyArray_STRIDE(a, i);
            if ((n != f->dims[i] && f->dims[i] != ANY) ||
                (f->dims[f->ndim + i] != ANY && stride != f->dims[f->ndim + i] * item))
                return 0;
            step *= n > 1 ? n : 1;
        }
        return 1;
    }
    return tuple_equals(t->shape, f->dims, f->ndim) && tuple_equals(t->strides, f->dims + f->ndim, f->ndim);
}

/* Whether it is an array of this class, dtype and number of dimensions. */
static inline int is_such_an_array(PyObject *v, const ArrayFacts *f) {
    if (Py_TYPE(v) != f->type) return 0;
    PyArrayObject *a = (PyArrayObject *)v;
    if (PyArray_NDIM(a) != f->ndim) return 0;
    return (PyObject *)PyArray_DESCR(a) == f->dtype ||
        PyArray_EquivTypes(PyArray_DESCR(a), (PyArray_Descr *)f->dtype);
}

int flb_ndarray_fits(PyObject *v, const ArrayFacts *f) {
    if (!is_such_an_array(v, f)) return 0;
    PyArrayObject *a = (PyArrayObject *)v;
    if (((PyArray_FLAGS(a) & NPY_ARRAY_WRITEABLE) != 0) != f->requires_grad) return 0;
    int strided = 1;
    for (int i = 0; i < f->ndim; i++) {
        if (PyArray_DIM(a, i) != f->dims[i] && f->dims[i] != ANY) return 0;
        strided &= f->dims[f->ndim + i] == ANY || PyArray_STRIDE(a, i) == f->dims[f->ndim + i];
    }
    return strided || PyArray_SIZE(a) == 0; /* nobody steps through an empty one */
}

int flb_ndarray_fits_few(PyObject *v, const ArrayFacts *f) {
    if (!is_such_an_array(v, f)) return 0;
    PyArrayObject *a = (PyArrayObject *)v;
    for (int i = 0; i < f->ndim; i++)
        if (PyArray_DIM(a, i) < f->dims[i]) return 0;
    return !f->keys || PyArray_SIZE(a) <= (npy_intp)f->keys;
}

static int extent(PyObject *v, char **lo, char **hi) {
    FlbApi *a = flb_frame_api();
    if (a && PyObject_TypeCheck(v, a->tensor_type)) v = ((FlbTensor *)v)->array;
    if (!v || !PyArray_Check(v)) return 0;
    PyArrayObject *x = (PyArrayObject *)v;
    if (PyArray_SIZE(x) == 0) return 0;
    *lo = *hi = PyArray_BYTES(x);
    for (int i = 0; i < PyArray_NDIM(x); i++) {
        npy_intp reach = (PyArray_DIM(x, i) - 1) * PyArray_STRIDE(x, i);
        if (reach < 0) *lo += reach;
        else *hi += reach;
    }
    *hi += PyArray_ITEMSIZE(x);
    return 1;
}

typedef struct {
    char *lo, *hi;
} Extent;
static int by_start(const void *a, const void *b) {
    const char *x = ((const Extent *)a)->lo, *y = ((const Extent *)b)->lo;
    return x < y ? -1 : x > y;
}
/* First and last byte of each, in order; those that are not tensors or arrays with memory don't take part. */
int flb_no_overlap(PyObject **slots, const long *idx, Py_ssize_t count) {
    Extent small[64], *all = small;
    Py_ssize_t n = 0;
    if (count == 2) { /* nothing to sort */
        int both = extent(slots[idx[0]], &small[0].lo, &small[0].hi) &&
            extent(slots[idx[1]], &small[1].lo, &small[1].hi);
        return !both || small[0].hi <= small[1].lo || small[1].hi <= small[0].lo;
    }
    if (count > 64 && !(all = PyMem_Malloc(count * sizeof(Extent)))) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (extent(slots[idx[i]], &all[n].lo, &all[n].hi)) n++;
    qsort(all, n, sizeof(Extent), by_start);
    int apart = 1;
    for (Py_ssize_t i = 1; i < n && apart; i++) apart = all[i - 1].hi <= all[i].lo;
    if (all != small) PyMem_Free(all);
    return apart;
}

/* Pairwise distinct objects. Quadratic up to 16 inputs, beyond that through an open-addressed set of
 * pointers. */
int flb_all_distinct(PyObject **slots, const long *idx, Py_ssize_t n) {
    if (n <= 16) {
        for (Py_ssize_t i = 0; i < n; i++)
            for (Py_ssize_t j = 0; j < i; j++)
                if (slots[idx[i]] == slots[idx[j]]) return 0;
        return 1;
    }
    size_t size = 64;
    while (size < (size_t)n * 2) size *= 2;
    PyObject **set = PyMem_Calloc(size, sizeof(PyObject *));
    if (!set) {
        PyErr_NoMemory();
        return -1;
    }
    int ok = 1;
    for (Py_ssize_t i = 0; i < n && ok; i++) {
        PyObject *p = slots[idx[i]];
        size_t h = ((size_t)p >> 4) * 0x9E3779B97F4A7C15ull & (size - 1);
        while (set[h] && set[h] != p) h = (h + 1) & (size - 1);
        if (set[h] == p) ok = 0;
        set[h] = p;
    }
    PyMem_Free(set);
    return ok;
}
