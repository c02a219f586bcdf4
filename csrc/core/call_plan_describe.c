/* The description of a call: a row of 64-bit words with kind, layout and dtype of each tensor and the values
 * of the other arguments. */
#include "core/calls.h"

enum { D_TENSOR = 1, D_NONE, D_BOOL, D_INT, D_FLOAT, D_OBJECT, D_LIST, D_NUMBER, D_FAKE, D_BFLOAT16 = 255 };
enum { N_FLOAT = 1, N_INT, N_BOOL }; /* of D_NUMBER: only the type counts */

static int put_ints(Description *d, PyObject *tuple) {
    Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    if (d->n + n > R_KEY) return 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *o = PyTuple_GET_ITEM(tuple, i);
        int overflow = 1;
        if (PyLong_CheckExact(o)) d->words[d->n++] = PyLong_AsLongLongAndOverflow(o, &overflow);
        if (overflow) return 0;
    }
    return 1;
}
static int put_object(Description *d, PyObject *o) {
    if (d->n_objects == R_OBJECTS || d->n + 1 > R_KEY) return 0;
    d->objects[d->n_objects++] = o;
    d->words[d->n++] = (int64_t)(intptr_t)o;
    return 1;
}
/* A fake tensor of the mode, with sizes that are plain integers. */
static int describe_fake(Description *d, FlbTensor *t) {
    if (t->payload != d->fake_mode || t->array || !t->shape || !t->strides || !t->offset ||
        d->n_tensors == R_SLOTS / 2)
        return 0;
    int overflow = 1;
    if (d->n + 2 > R_KEY) return 0;
    d->words[d->n++] = D_FAKE | PyTuple_GET_SIZE(t->shape) << 8;
    if (PyLong_CheckExact(t->offset)) d->words[d->n++] = PyLong_AsLongLongAndOverflow(t->offset, &overflow);
    if (overflow || !put_ints(d, t->shape) || !put_ints(d, t->strides) || !put_object(d, t->dtype) ||
        !put_object(d, t->device))
        return 0;
    d->tensors[d->n_tensors++] = t;
    return 1;
}
static inline int describe_tensor(Description *d, FlbTensor *t) {
    if (d->fake_mode) return describe_fake(d, t);
    PyArrayObject *a = (PyArrayObject *)t->array;
    if (!a || t->keys || d->n_tensors == R_SLOTS / 2) return 0;
    int num = PyArray_DESCR(a)->type_num, nd = PyArray_NDIM(a);
    if (num == flb_bfloat16_num) num = D_BFLOAT16;
    else if (num >= NPY_OBJECT && num != NPY_HALF) return 0;
    if (nd > R_DIMS || d->n + 1 + 2 * nd > R_KEY) return 0;
    int flags = PyArray_FLAGS(a);
    if (!(flags & NPY_ARRAY_ALIGNED)) return 0;
    int64_t *w = d->words + d->n;
    *w++ = D_TENSOR | num << 8 | nd << 16 | ((flags & NPY_ARRAY_WRITEABLE) != 0) << 24;
    const npy_intp *dims = PyArray_DIMS(a), *strides = PyArray_STRIDES(a);
    for (int i = 0; i < nd; i++) *w++ = dims[i];
    for (int i = 0; i < nd; i++) *w++ = strides[i];
    d->n += 1 + 2 * nd;
    d->tensors[d->n_tensors++] = t;
    return 1;
}
static int describe_one(Description *d, PyObject *o, int by_type, int depth) {
    if (d->n + 3 > R_KEY) return 0;
    PyTypeObject *type = Py_TYPE(o);
    int64_t *w = d->words + d->n;
    if (PyObject_TypeCheck(o, &FlbTensor_Type)) return describe_tensor(d, (FlbTensor *)o);
    if (o == Py_None) {
        w[0] = D_NONE;
        d->n++;
    } else if (by_type && (type == &PyFloat_Type || type == &PyLong_Type || type == &PyBool_Type)) {
        if (d->n_numbers == R_NUMBERS) return 0;
        w[0] = D_NUMBER | (type == &PyFloat_Type ? N_FLOAT : type == &PyLong_Type ? N_INT : N_BOOL) << 8;
        d->numbers[d->n_numbers++] = o;
        d->n++;
    } else if (type == &PyBool_Type) {
        w[0] = D_BOOL | (o == Py_True) << 8;
        d->n++;
    } else if (type == &PyLong_Type) {
        int overflow;
        w[0] = D_INT;
        w[1] = PyLong_AsLongLongAndOverflow(o, &overflow);
        if (overflow) return 0;
        d->n += 2;
    } else if (type == &PyFloat_Type) {
        double v = PyFloat_AS_DOUBLE(o);
        w[0] = D_FLOAT;
        memcpy(w + 1, &v, 8);
        d->n += 2;
    } else if (type == flb_dtype_class || type == flb_format_class || o == flb_cpu_device ||
               (type == &PyUnicode_Type && PyUnicode_CHECK_INTERNED(o))) {
        if (d->n_objects == R_OBJECTS) return 0;
        d->objects[d->n_objects++] = o;
        w[0] = D_OBJECT;
        w[1] = (int64_t)(intptr_t)o;
        d->n += 2;
    } else if (depth &&
               (type == &PyList_Type || type == &PyTuple_Type || type == (PyTypeObject *)flb_size_class)) {
        Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
        w[0] = D_LIST | n << 8;
        d->n++;
        for (Py_ssize_t i = 0; i < n; i++)
            if (!describe_one(d, PySequence_Fast_GET_ITEM(o, i), 0, 0)) return 0;
    } else {
        return 0;
    }
    return 1;
}

static int is_one(PyObject *o) {
    int overflow; /* of an integer beyond 64 bits */
    return PyFloat_CheckExact(o) ? PyFloat_AS_DOUBLE(o) == 1.0
                                 : PyLong_CheckExact(o) && PyLong_AsLongAndOverflow(o, &overflow) == 1;
}
int flb_describe(Description *d, PyObject *fake_mode, uint64_t by_type, uint64_t factors,
                 PyObject *const *values, Py_ssize_t n) {
    d->n = d->n_tensors = d->n_numbers = d->n_objects = 0;
    d->fake_mode = fake_mode;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!describe_one(d, values[i],
                          i < 64 && (by_type >> i & 1) && !((factors >> i & 1) && is_one(values[i])), 1))
            return 0;
    return 1;
}

/* Everything that a description knows by address, to be kept while Python runs: the elements of a list are
 * the user's to change. */
PyObject *flb_description_hold(const Description *d) {
    PyObject *held = PyTuple_New(d->n_tensors + d->n_numbers + d->n_objects);
    if (!held) return NULL;
    int at = 0;
    for (int i = 0; i < d->n_tensors; i++) PyTuple_SET_ITEM(held, at++, Py_NewRef(d->tensors[i]));
    for (int i = 0; i < d->n_numbers; i++) PyTuple_SET_ITEM(held, at++, Py_NewRef(d->numbers[i]));
    for (int i = 0; i < d->n_objects; i++) PyTuple_SET_ITEM(held, at++, Py_NewRef(d->objects[i]));
    return held;
}
