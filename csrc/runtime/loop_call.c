/* The call of a native loop (loops/): operands, copies and results around one kernel. */
#include "runtime/loop.h"
#include <string.h>

static void extent(PyArrayObject *a, char **lo, char **hi) {
    *lo = *hi = PyArray_BYTES(a);
    for (int d = 0; d < PyArray_NDIM(a); d++) {
        npy_intp reach = (PyArray_DIM(a, d) - 1) * PyArray_STRIDE(a, d);
        if (reach < 0) *lo += reach;
        else *hi += reach;
    }
    *hi += PyArray_ITEMSIZE(a);
}

/* Whether two elements may share memory: each dimension, from the innermost on, has to step over all that is
 * within. */
static int overlaps_itself(PyArrayObject *a) {
    npy_intp strides[NPY_MAXDIMS], sizes[NPY_MAXDIMS], reach = PyArray_ITEMSIZE(a);
    int n = 0;
    for (int d = 0; d < PyArray_NDIM(a); d++) {
        npy_intp s = PyArray_STRIDE(a, d) < 0 ? -PyArray_STRIDE(a, d) : PyArray_STRIDE(a, d),
                 size = PyArray_DIM(a, d);
        if (size <= 1) continue;
        int k = n++;
        for (; k > 0 && strides[k - 1] > s; k--) strides[k] = strides[k - 1], sizes[k] = sizes[k - 1];
        strides[k] = s, sizes[k] = size;
    }
    for (int k = 0; k < n; k++) {
        if (strides[k] < reach) return 1;
        reach += (sizes[k] - 1) * strides[k];
    }
    return 0;
}

/* Whether the loop may write into operand n itself: nothing else that it is given lies there. */
static int apart(PyArrayObject **arrays, int count, int n) {
    if (PyArray_SIZE(arrays[n]) == 0) return 1;
    if (overlaps_itself(arrays[n])) return 0;
    char *lo, *hi, *other, *end;
    extent(arrays[n], &lo, &hi);
    for (int k = 0; k < count; k++) {
        if (k == n || PyArray_SIZE(arrays[k]) == 0) continue;
        extent(arrays[k], &other, &end);
        if (other < hi && lo < end) return 0;
    }
    return 1;
}

typedef struct {
    int count, total;       /* operands; with the fresh arrays */
    PyArrayObject **arrays; /* operands or their copies, then fresh arrays; owned */
    PyArrayObject **before; /* what written operands held, or NULL; owned */
    PyObject *const *given; /* operands, borrowed */
    int64_t *numbers;       /* addresses, sizes and strides, integers, floats, results */
    void *few[16];          /* of `arrays` and `before`, where they are few */
    int64_t short_[64];     /* of `numbers` */
} Frame_;

enum { BRIEF_NS = 5000, BRIEF_CALLS = 200 };

/* Runs the kernel. Giving the GIL back and taking it again costs as much as a short kernel does: after one
 * that took a few microseconds the next calls that are no larger keep it, until they are timed again. A
 * kernel that asks for signals meanwhile, or leaves something to NumPy, goes on without it. */
static int64_t run_kernel(Loop *l, const Frame_ *f, int64_t *data, int64_t *meta, int64_t *i64, int64_t *f64,
                          int64_t *out) {
    int64_t size = 0, sum = 0;
    for (int k = 0; k < f->total; k++) size += PyArray_SIZE(f->arrays[k]);
    for (Py_ssize_t k = 0; k < l->nints; k++)
        if (__builtin_add_overflow(sum, i64[k] < 0 ? ~i64[k] : i64[k], &sum)) sum = INT64_MAX - 1;
    int brief = l->brief_calls > 0 && size <= l->brief_size && sum <= l->brief_sum;
    FlbLoopThread *in = &flb_loop_thread;
    PyThreadState *outer = in->waiting;
    PyObject *around = in->python;
    int held = in->holding;
    int64_t began = 0;
    in->python = l->python;
    if (brief) l->brief_calls--, in->holding = 1, in->waiting = NULL;
    else in->holding = 0, in->waiting = PyEval_SaveThread(), began = flb_loop_nanoseconds();
    int64_t code = l->fn(data, meta, i64, f64, out);
    int64_t took = brief ? 0 : flb_loop_nanoseconds() - began;
    PyThreadState *state = in->waiting;
    int released = !in->holding;
    in->waiting = outer, in->holding = held, in->python = around;
    if (released) PyEval_RestoreThread(state);
    if (brief && released) l->brief_calls = 0;
    if (!brief && took < BRIEF_NS) l->brief_calls = BRIEF_CALLS, l->brief_size = size, l->brief_sum = sum;
    return code;
}

/* The table of a kernel's arguments, which is one allocation where it is long. */
static int64_t run(Loop *l, Frame_ *f, PyObject *ints, PyObject *floats) {
    Py_ssize_t nints = PyTuple_GET_SIZE(ints), nfloats = PyTuple_GET_SIZE(floats);
    Py_ssize_t nmeta = 0;
    for (int k = 0; k < f->total; k++) nmeta += 2 * PyArray_NDIM(f->arrays[k]);
    const int nfunctions = 18;
    Py_ssize_t size = nfunctions + f->total + nmeta + nints + nfloats + l->nresults + 3 + 2;
    int64_t *data = f->short_, *at;
    if (size > (Py_ssize_t)(sizeof f->short_ / sizeof(int64_t)) &&
        !(data = PyMem_Malloc(size * sizeof(int64_t))))
        return PyErr_NoMemory(), -2;
    at = f->numbers = data;
    *at++ = (int64_t)(uintptr_t)flb_api->malloc;
    *at++ = (int64_t)(uintptr_t)flb_api->free;
    *at++ = (int64_t)(uintptr_t)flb_parallel;
    *at++ = (int64_t)(uintptr_t)flb_loop_interrupted;
    *at++ = (int64_t)(uintptr_t)flb_strided_product;
    *at++ = (int64_t)(uintptr_t)flb_turn_product;
    *at++ = (int64_t)(uintptr_t)flb_loop_python;
    *at++ = (int64_t)(uintptr_t)flb_loop_spread;
    *at++ = (int64_t)(uintptr_t)flb_loop_spread_within;
    *at++ = (int64_t)(uintptr_t)flb_container_new;
    *at++ = (int64_t)(uintptr_t)flb_container_end;
    *at++ = (int64_t)(uintptr_t)flb_container_clear;
    *at++ = (int64_t)(uintptr_t)flb_list_append;
    *at++ = (int64_t)(uintptr_t)flb_list_shift;
    *at++ = (int64_t)(uintptr_t)flb_list_prepend;
    *at++ = (int64_t)(uintptr_t)flb_table_find;
    *at++ = (int64_t)(uintptr_t)flb_table_put;
    *at++ = (int64_t)(uintptr_t)flb_table_remove;
    for (int k = 0; k < f->total; k++) *at++ = (int64_t)(uintptr_t)PyArray_DATA(f->arrays[k]);
    int64_t *meta = at;
    for (int k = 0; k < f->total; k++) {
        for (int d = 0; d < PyArray_NDIM(f->arrays[k]); d++) *at++ = PyArray_DIM(f->arrays[k], d);
        for (int d = 0; d < PyArray_NDIM(f->arrays[k]); d++) *at++ = PyArray_STRIDE(f->arrays[k], d);
    }
    int64_t *i64 = at;
    for (Py_ssize_t k = 0; k < nints; k++)
        if ((*at++ = PyLong_AsLongLong(PyTuple_GET_ITEM(ints, k))) == -1 && PyErr_Occurred()) return -2;
    int64_t *f64 = at;
    for (Py_ssize_t k = 0; k < nfloats; k++) {
        double v = PyFloat_AsDouble(PyTuple_GET_ITEM(floats, k));
        if (v == -1 && PyErr_Occurred()) return -2;
        memcpy(at++, &v, sizeof v);
    }
    memset(at, 0, (l->nresults + 3) * sizeof(int64_t));
    int64_t code = run_kernel(l, f, data, meta, i64, f64, at);
    flb_floating_note(flb_api->floating()); /* the caller may clear the flags */
    memmove(data, at,
            (l->nresults + 3) * sizeof(int64_t)); /* what is looked at from here on stands at the front */
    return code;
}

static int prepare(Loop *l, Frame_ *f) {
    for (int k = 0; k < f->count; k++) {
        PyObject *a = f->given[k];
        if (PyObject_TypeCheck(a, flb_api->tensor_type)) a = ((FlbTensor *)a)->array;
        if (!a || !PyArray_Check(a))
            return PyErr_SetString(PyExc_TypeError, "a compiled loop takes arrays"), -1;
        PyArray_Descr *d = PyArray_DESCR((PyArrayObject *)a);
        if (d != l->dtypes[k] && !PyArray_EquivTypes(d, l->dtypes[k]))
            return PyErr_Format(
                       PyExc_TypeError,
                       "a compiled loop is called with another dtype of operand %d than it was made for", k),
                   -1;
        f->arrays[k] = (PyArrayObject *)Py_NewRef(a);
    }
    f->total = f->count;
    for (int k = 0, at = 0; k < f->count; k++) {
        int ndim = PyArray_NDIM(f->arrays[k]),
            wrong = at + ndim > l->nsizes || (k == f->count - 1 && at + ndim < l->nsizes);
        for (int d = 0; !wrong && d < ndim; d++)
            wrong = l->sizes[at + d] >= 0 && l->sizes[at + d] != PyArray_DIM(f->arrays[k], d);
        if (wrong)
            return PyErr_Format(
                       PyExc_ValueError,
                       "a compiled loop is called with other sizes of operand %d than it was made for", k),
                   -1;
        at += ndim;
    }
    char itself[l->nwritten + 1];
    for (int k = 0; k < l->nwritten; k++)
        itself[k] = l->over[k] && PyArray_ISWRITEABLE(f->arrays[l->written[k]]) &&
            apart(f->arrays, f->count, l->written[k]);
    for (int k = 0; k < l->nwritten; k++) {
        int n = l->written[k];
        PyArrayObject *a = f->arrays[n];
        if (!itself[k]) {
            PyObject *copy = PyArray_NewCopy(a, NPY_CORDER);
            if (!copy) return -1;
            f->arrays[n] = (PyArrayObject *)copy;
            Py_DECREF(a);
        } else if (l->restores && l->over[k] == 1 &&
                   !(f->before[k] = (PyArrayObject *)PyArray_NewCopy(a, NPY_KEEPORDER)))
            return -1;
    }
    for (int k = 0; k < l->nfresh; k++) {
        PyArrayObject *like = f->arrays[l->fresh[k]];
        Py_INCREF(PyArray_DESCR(like));
        PyObject *made = PyArray_Empty(PyArray_NDIM(like), PyArray_DIMS(like), PyArray_DESCR(like), 0);
        if (!made) return -1;
        f->arrays[f->total++] = (PyArrayObject *)made;
    }
    return 0;
}

/* Whether two arrays are the same elements of the same memory. */
static int same_elements(PyArrayObject *a, PyArrayObject *b) {
    int n = PyArray_NDIM(a);
    return PyArray_DATA(a) == PyArray_DATA(b) && PyArray_DESCR(a) == PyArray_DESCR(b) &&
        n == PyArray_NDIM(b) && !memcmp(PyArray_DIMS(a), PyArray_DIMS(b), n * sizeof(npy_intp)) &&
        !memcmp(PyArray_STRIDES(a), PyArray_STRIDES(b), n * sizeof(npy_intp));
}

/* An array as a result, which is a tensor unless they are `plain`. Takes over the reference. */
static PyObject *given_back(PyObject *array, int plain) {
    if (plain) return array;
    PyObject *t = flb_api->from_array(array);
    Py_DECREF(array);
    return t;
}

/* An array without dimensions for result k: the last call's, where nobody has it any more. */
static PyArrayObject *number_array(Loop *l, int k) {
    PyArrayObject *a = l->kept[k];
    if (a && Py_REFCNT(a) == 1 && PyArray_NDIM(a) == 0 && PyArray_DESCR(a) == l->results[k] &&
        !PyArray_BASE(a) && (PyArray_FLAGS(a) & NPY_ARRAY_WRITEABLE) &&
        !((PyArrayObject_fields *)a)->weakreflist)
        return (PyArrayObject *)Py_NewRef((PyObject *)a);
    Py_INCREF(l->results[k]);
    a = (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, l->results[k], 0, NULL, NULL, NULL, 0, NULL);
    if (a) Py_XSETREF(l->kept[k], (PyArrayObject *)Py_NewRef((PyObject *)a));
    return a;
}

static PyObject *gather(Loop *l, Frame_ *f, int plain) {
    int n = 0;
    for (int k = 0; k < l->nwritten; k++) n += l->over[k] != 1;
    PyObject *out = PyTuple_New(n + l->nfresh + l->nresults);
    if (!out) return NULL;
    n = 0;
    for (int k = 0; k < l->nwritten; k++) {
        int w = l->written[k];
        PyObject *given = f->given[w];
        if (l->over[k] != 1) {
            PyObject *a = (PyObject *)f->arrays[w], *base = PyArray_BASE(f->arrays[w]);
            if (base && PyArray_CheckExact(base) && same_elements(f->arrays[w], (PyArrayObject *)base))
                a = base;
            PyTuple_SET_ITEM(out, n++, given_back(Py_NewRef(a), plain));
            continue;
        }
        if (PyObject_TypeCheck(given, flb_api->tensor_type)) given = ((FlbTensor *)given)->array;
        if ((PyObject *)f->arrays[w] != given && PyArray_CopyInto((PyArrayObject *)given, f->arrays[w]) < 0)
            return Py_DECREF(out), NULL;
    }
    for (int k = 0; k < l->nfresh; k++)
        PyTuple_SET_ITEM(out, n++, given_back(Py_NewRef(f->arrays[f->count + k]), plain));
    for (int k = 0; k < l->nresults; k++) {
        PyArrayObject *a = number_array(l, k);
        if (!a) return Py_DECREF(out), NULL;
        memcpy(PyArray_DATA(a), f->numbers + k, PyArray_ITEMSIZE(a));
        PyTuple_SET_ITEM(out, n++, given_back((PyObject *)a, plain));
    }
    for (int k = 0; k < n; k++)
        if (!PyTuple_GET_ITEM(out, k)) return Py_DECREF(out), NULL;
    return out;
}

PyObject *flb_loop_called(Loop *l, PyObject *const *arrays, Py_ssize_t count, PyObject *ints,
                          PyObject *floats, int plain) {
    if (!l->fn) return PyErr_SetString(PyExc_RuntimeError, "a compiled loop that has been collected"), NULL;
    if (count != l->narrays || PyTuple_GET_SIZE(ints) != l->nints || PyTuple_GET_SIZE(floats) != l->nfloats)
        return PyErr_Format(
                   PyExc_ValueError,
                   "a compiled loop takes %d arrays, %zd integers and %zd floats, not %zd, %zd and %zd",
                   l->narrays, l->nints, l->nfloats, count, PyTuple_GET_SIZE(ints), PyTuple_GET_SIZE(floats)),
               NULL;
    Frame_ f;
    f.count = (int)count, f.total = 0, f.given = arrays, f.numbers = NULL;
    int room = f.count + l->nfresh + l->nwritten;
    f.arrays = (PyArrayObject **)f.few;
    if (room > (int)(sizeof f.few / sizeof(void *)) && !(f.arrays = PyMem_Malloc(room * sizeof(void *))))
        return PyErr_NoMemory();
    memset(f.arrays, 0, room * sizeof(void *));
    f.before = f.arrays + f.count + l->nfresh;
    flb_api->use_allocator();
    PyObject *out = NULL;
    int64_t code = prepare(l, &f) < 0 ? -2 : run(l, &f, ints, floats);
    if (code == 0) out = gather(l, &f, plain);
    else if (code == -1) {
        PyObject **caught = flb_loop_thread.caught;
        PyErr_Restore(caught[0], caught[1], caught[2]);
        caught[0] = caught[1] = caught[2] = NULL;
    } else if (code > 0) {
        int bad = 0;
        for (int k = 0; k < l->nwritten && !bad; k++)
            if (f.before[k]) bad = PyArray_CopyInto(f.arrays[l->written[k]], f.before[k]) < 0;
        int64_t *e = f.numbers + l->nresults;
        PyObject *r = bad ? NULL
                          : PyObject_CallFunction(l->fail, "LLLL", (long long)code, (long long)e[0],
                                                  (long long)e[1], (long long)e[2]);
        Py_XDECREF(r);
        if (r) PyErr_SetString(PyExc_RuntimeError, "a compiled loop failed without an error");
    }
    for (int k = 0; k < room; k++) Py_XDECREF(f.arrays[k]);
    if ((void *)f.arrays != (void *)f.few) PyMem_Free(f.arrays);
    if (f.numbers != f.short_) PyMem_Free(f.numbers);
    return out;
}
