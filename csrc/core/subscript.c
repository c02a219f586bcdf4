/* x[key] for keys of ints, slices, None, ..., integer index tensors and masks, as calls of the view and index
 * operators; other keys (lists, arrays, masks without dimensions, symbolic integers) are core/subscript.py's.
 * Which operators those are is told by set_subscript(): there is no name here. */
#include "core/calls.h"
#include <float.h>
#include <math.h>

static FlbOperator *select_op = NULL, *slice_op = NULL, *unsqueeze_op = NULL, *alias_op = NULL,
                   *index_op = NULL, *index_put_op = NULL, *copy_op = NULL, *fill_masked_op = NULL;
static PyObject *general = NULL, *general_write = NULL, *far_end = NULL;

static PyObject *call(FlbOperator *op, PyObject *const *given, Py_ssize_t n) {
    if (!op->ready && flb_prepare(op) < 0) return NULL;
    PyObject *values[MAX_ARGUMENTS];
    uint32_t keys = flb_scan(given, n);
    if (!keys) return NULL;
    if (!flb_bind_exact(op, given, n, NULL, values))
        return PyErr_SetString(PyExc_SystemError, "subscript: an operator of another signature"), NULL;
    return flb_call(op, keys, values);
}
/* The size of a dimension; -1: not a plain integer. */
static Py_ssize_t size_of(FlbTensor *t, Py_ssize_t d) {
    if (t->array) return PyArray_DIM((PyArrayObject *)t->array, (int)d);
    PyObject *n = PyTuple_GET_ITEM(t->shape, d);
    return PyLong_CheckExact(n) ? PyLong_AsSsize_t(n) : -1;
}
static Py_ssize_t n_dims(FlbTensor *t) {
    return t->array ? PyArray_NDIM((PyArrayObject *)t->array) : t->shape ? PyTuple_GET_SIZE(t->shape) : -1;
}
static int plain_index(PyObject *o) { return o == Py_None || PyLong_CheckExact(o); }
static int is_index_tensor(PyObject *o) {
    if (!PyObject_TypeCheck(o, &FlbTensor_Type)) return 0;
    FlbTensor *t = (FlbTensor *)o;
    if (!t->array || PyArray_NDIM((PyArrayObject *)t->array) == 0) return 0;
    int num = PyArray_DESCR((PyArrayObject *)t->array)->type_num;
    return num == NPY_INT64 || num == NPY_INT32 || num == NPY_BOOL;
}
/* The dimensions that an index tensor stands for: a mask's own. */
static Py_ssize_t spans(PyObject *o) {
    PyArrayObject *a = (PyArrayObject *)((FlbTensor *)o)->array;
    return PyArray_DESCR(a)->type_num == NPY_BOOL ? PyArray_NDIM(a) : 1;
}
/* How many dimensions an element of the key uses; -1: not one of ours. */
static int uses(PyObject *k) {
    if (k == Py_None || k == Py_Ellipsis) return 0;
    if (PyLong_CheckExact(k)) return 1;
    if (PySlice_Check(k)) {
        PySliceObject *s = (PySliceObject *)k;
        if (!plain_index(s->start) || !plain_index(s->stop) || !plain_index(s->step)) return -1;
        if (s->step != Py_None) {
            int overflow;
            if (PyLong_AsLongAndOverflow(s->step, &overflow) < 1 || overflow)
                return -1; /* words its own error */
        }
        return 1;
    }
    return is_index_tensor(k) ? (int)spans(k) : -1;
}

/* Steals x. */
static PyObject *apply(PyObject *x, PyObject *k, Py_ssize_t dim, int *unchanged) {
    PyObject *d = PyLong_FromSsize_t(dim), *r = NULL;
    if (!d) return Py_DECREF(x), NULL;
    if (k == Py_None) {
        PyObject *given[2] = {x, d};
        r = call(unsqueeze_op, given, 2);
    } else if (PySlice_Check(k)) {
        PySliceObject *s = (PySliceObject *)k;
        PyObject *start = s->start == Py_None ? PyLong_FromLong(0) : Py_NewRef(s->start);
        int from_start =
            s->start == Py_None || (PyLong_CheckExact(s->start) && PyObject_IsTrue(s->start) == 0);
        int one = s->step == Py_None || PyLong_AsLong(s->step) == 1;
        if (from_start && s->stop == Py_None && one) {
            Py_DECREF(start);
            Py_DECREF(d);
            return x;
        }
        PyObject *given[5] = {x, d, start, s->stop == Py_None ? far_end : s->stop, s->step};
        r = call(slice_op, given, one ? 4 : 5);
        Py_DECREF(start);
    } else {
        PyObject *given[3] = {x, d, k};
        r = call(select_op, given, 3);
    }
    *unchanged = 0;
    Py_DECREF(d);
    Py_DECREF(x);
    return r;
}

static PyObject *getitem(PyObject *m, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 2)
        return PyErr_Format(PyExc_TypeError, "__getitem__() takes a tensor and a key (%zd given)", nargs),
               NULL;
    PyObject *x = args[0], *key = args[1], *single[1] = {key}, **keys = single;
    if (!PyObject_TypeCheck(x, &FlbTensor_Type) || !index_op) goto other;
    Py_ssize_t n = 1, dims = n_dims((FlbTensor *)x), used = 0, dots = -1;
    if (PyTuple_CheckExact(key)) {
        n = PyTuple_GET_SIZE(key);
        keys = &PyTuple_GET_ITEM(key, 0);
    }
    if (dims < 0) goto other;
    for (Py_ssize_t i = 0; i < n; i++) {
        int u = uses(keys[i]);
        if (u < 0 || (keys[i] == Py_Ellipsis && dots >= 0)) goto other;
        if (keys[i] == Py_Ellipsis) dots = i;
        used += u;
    }
    if (used > dims) goto other;
    /* Every index is looked at before anything is made: an error is worded by Python. */
    for (Py_ssize_t i = 0, d = 0; i < n; i++) {
        if (i == dots) d += dims - used;
        else if (PyLong_CheckExact(keys[i])) {
            Py_ssize_t size = size_of((FlbTensor *)x, d++);
            int overflow;
            long long v = PyLong_AsLongLongAndOverflow(keys[i], &overflow);
            if (size < 0 || overflow || v < -size || v >= size) goto other;
        } else if (keys[i] != Py_None) d += uses(keys[i]);
    }
    PyObject *view = Py_NewRef(x), *indices = NULL;
    Py_ssize_t dim = 0, next = 0;
    int unchanged = 1;
    Py_INCREF(key);
    for (Py_ssize_t i = 0; i < n && view; i++) {
        PyObject *k = keys[i];
        if (i == dots) {
            dim += dims - used;
        } else if (is_index_tensor(k)) {
            if (!indices && !(indices = PyList_New(0))) Py_CLEAR(view);
            for (; view && next < dim; next++)
                if (PyList_Append(indices, Py_None) < 0) Py_CLEAR(view);
            if (view && PyList_Append(indices, k) < 0) Py_CLEAR(view);
            next += spans(k), dim += spans(k);
        } else {
            view = apply(view, k, dim, &unchanged);
            if (k == Py_None || PySlice_Check(k)) dim++;
        }
    }
    if (view && (indices || unchanged)) {
        PyObject *given[2] = {view, indices};
        PyObject *r = indices ? call(index_op, given, 2) : call(alias_op, given, 1);
        Py_SETREF(view, r);
    }
    Py_XDECREF(indices);
    Py_DECREF(key);
    return view;
other:
    return PyObject_CallFunctionObjArgs(general, x, key, NULL);
}

/* The operator that writes a tensor under a key of one integer, index tensor or mask, and what it is given.
 * Dimensions of size 1 that a value has in front, another dtype, and what is wrong are the general way's. */
static int written_by(FlbTensor *x, PyObject *key, FlbTensor *value, PyObject **result) {
    if (!x->array || !value->array || value->dtype != x->dtype) return 0;
    int nd = PyArray_NDIM((PyArrayObject *)x->array), given = PyArray_NDIM((PyArrayObject *)value->array);
    if (given > 1 && PyArray_DIM((PyArrayObject *)value->array, 0) == 1) return 0;
    if (PyLong_CheckExact(key)) {
        Py_ssize_t size = nd ? size_of(x, 0) : 0;
        int overflow, unchanged;
        long long at = PyLong_AsLongLongAndOverflow(key, &overflow);
        if (overflow || at < -size || at >= size || !given || given > nd - 1) return 0;
        PyObject *view = apply(Py_NewRef(x), key, 0, &unchanged), *parts[2] = {view, (PyObject *)value};
        *result = view ? call(copy_op, parts, 2) : NULL;
        Py_XDECREF(view);
        return 1;
    }
    if (!is_index_tensor(key) || spans(key) > nd) return 0;
    PyArrayObject *index = (PyArrayObject *)((FlbTensor *)key)->array;
    if (PyArray_DESCR(index)->type_num == NPY_INT32 || PyArray_NDIM(index) > nd) return 0;
    PyObject *list = PyList_New(1), *parts[3] = {(PyObject *)x, list, (PyObject *)value};
    if (!list) return *result = NULL, 1;
    PyList_SET_ITEM(list, 0, Py_NewRef(key));
    *result = call(index_put_op, parts, 3);
    Py_DECREF(list);
    return 1;
}
/* A number under a mask of all elements: a fill, where nothing looks on that would see another operator. */
static int filled_by(FlbTensor *x, PyObject *key, PyObject *value, PyObject **result) {
    if (!x->array || !is_index_tensor(key) || !PyFloat_CheckExact(value)) return 0;
    PyArrayObject *a = (PyArrayObject *)x->array, *mask = (PyArrayObject *)((FlbTensor *)key)->array;
    int num = PyArray_DESCR(a)->type_num;
    double number = PyFloat_AS_DOUBLE(value);
    if (PyArray_DESCR(mask)->type_num != NPY_BOOL || (num != NPY_FLOAT && num != NPY_DOUBLE) ||
        (num == NPY_FLOAT && isfinite(number) && fabs(number) > FLT_MAX) ||
        PyArray_NDIM(mask) != PyArray_NDIM(a) ||
        !PyArray_CompareLists(PyArray_DIMS(mask), PyArray_DIMS(a), PyArray_NDIM(a)))
        return 0;
    PyObject *parts[3] = {(PyObject *)x, key, value};
    uint32_t keys = flb_scan(parts, 3);
    if (keys && keys != FLB_BACKEND) return 0;
    *result = keys ? call(fill_masked_op, parts, 3) : NULL;
    return 1;
}
static PyObject *setitem(PyObject *m, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 3)
        return PyErr_Format(PyExc_TypeError, "__setitem__() takes a tensor, a key and a value (%zd given)",
                            nargs),
               NULL;
    PyObject *made;
    if (!PyObject_TypeCheck(args[0], &FlbTensor_Type) || !index_put_op) goto other;
    FlbTensor *x = (FlbTensor *)args[0];
    if (PyObject_TypeCheck(args[2], &FlbTensor_Type) ? !written_by(x, args[1], (FlbTensor *)args[2], &made)
                                                     : !filled_by(x, args[1], args[2], &made))
        goto other;
    if (!made) return NULL;
    Py_DECREF(made);
    Py_RETURN_NONE;
other:
    return PyObject_CallFunctionObjArgs(general_write, args[0], args[1], args[2], NULL);
}

static PyObject *set_subscript(PyObject *m, PyObject *args) {
    enum { OPERATORS = 8 };
    PyObject *o[OPERATORS], *reads, *writes;
    FlbOperator **to[OPERATORS] = {&select_op, &slice_op,     &unsqueeze_op, &alias_op,
                                   &index_op,  &index_put_op, &copy_op,      &fill_masked_op};
    if (!PyArg_ParseTuple(args, "(O!O!O!O!O!O!O!O!)OO", &FlbOperator_Type, &o[0], &FlbOperator_Type, &o[1],
                          &FlbOperator_Type, &o[2], &FlbOperator_Type, &o[3], &FlbOperator_Type, &o[4],
                          &FlbOperator_Type, &o[5], &FlbOperator_Type, &o[6], &FlbOperator_Type, &o[7],
                          &reads, &writes))
        return NULL;
    for (int i = 0; i < OPERATORS; i++) Py_XSETREF(*to[i], (FlbOperator *)Py_NewRef(o[i]));
    select_op->by_numbers = BY_INDEX, slice_op->by_numbers = BY_SLICE;
    Py_XSETREF(general, Py_NewRef(reads));
    Py_XSETREF(general_write, Py_NewRef(writes));
    Py_RETURN_NONE;
}
static PyMethodDef functions[] = {
    {"getitem", (PyCFunction)(void (*)(void))getitem, METH_FASTCALL, "getitem(x, key): x[key]."},
    {"setitem", (PyCFunction)(void (*)(void))setitem, METH_FASTCALL,
     "setitem(x, key, value): x[key] = value."},
    {"set_subscript", set_subscript, METH_VARARGS,
     "set_subscript((select, slice, unsqueeze, alias, index, index_put_, copy_, masked_fill_), general, "
     "general_write): operators; "
     "general(x, key) does other keys, general_write(x, key, value) other writes."},
    {NULL}};
int flb_init_subscript(PyObject *module) {
    if (!(far_end = PyLong_FromLongLong(9223372036854775807ll))) return -1;
    return PyModule_AddFunctions(module, functions);
}
