/* A step of a call plan that is a native kernel: its views are places of the call plan's with shapes and
 * strides.
 */
#include "core/call_plan.h"
#include "runtime/native.h"

struct PlanKernel {
    NativeFn fn;
    int n_views;
    uint8_t long_; /* it may take so long that other threads should run meanwhile */
    int slot[MOST_VIEWS];
    npy_intp offset[MOST_VIEWS];
    View views[MOST_VIEWS]; /* without their memory */
    int64_t numbers[MOST_NUMBERS];
    int64_t sizes[MOST_VIEWS][2 * R_DIMS];
};

/* (capsule, ((slot, offset, shape, strides) or None, ...), numbers, long) */
PlanKernel *flb_plan_kernel_read(PyObject *spec, int n_slots) {
    PyObject *capsule, *views, *numbers, *shape, *strides;
    int is_long;
    if (!PyArg_ParseTuple(spec, "OO!O!p", &capsule, &PyTuple_Type, &views, &PyTuple_Type, &numbers, &is_long))
        return NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(views), m = PyTuple_GET_SIZE(numbers);
    const NativeKernel *k = PyCapsule_GetPointer(capsule, KERNEL_CAPSULE);
    if (!k) return NULL;
    if (n != k->nviews || m != k->nnumbers)
        return PyErr_Format(PyExc_ValueError, "%s: other views or numbers than it takes", k->name), NULL;
    PlanKernel *s = PyMem_Calloc(1, sizeof *s);
    if (!s) return (PlanKernel *)PyErr_NoMemory();
    s->fn = k->run, s->n_views = (int)n, s->long_ = (uint8_t)is_long;
    for (Py_ssize_t i = 0; i < m; i++) s->numbers[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(numbers, i));
    for (Py_ssize_t i = 0; i < n && !PyErr_Occurred(); i++) {
        PyObject *view = PyTuple_GET_ITEM(views, i);
        s->views[i] = NO_VIEW;
        if (view == Py_None) continue;
        if (!PyTuple_Check(view)) {
            PyErr_SetString(PyExc_TypeError, "a native kernel's view is a tuple");
            break;
        }
        if (!PyArg_ParseTuple(view, "inO!O!", &s->slot[i], &s->offset[i], &PyTuple_Type, &shape,
                              &PyTuple_Type, &strides))
            break;
        Py_ssize_t nd = PyTuple_GET_SIZE(shape);
        if (s->slot[i] < 0 || s->slot[i] >= n_slots || nd > R_DIMS || PyTuple_GET_SIZE(strides) != nd) {
            PyErr_SetString(PyExc_ValueError,
                            "a native kernel's view names no slot, or has other strides than sizes");
            break;
        }
        int64_t *to = s->sizes[i];
        s->views[i] = (View){NULL, (int)nd, to, to + R_DIMS};
        for (Py_ssize_t d = 0; d < nd; d++) {
            to[d] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, d));
            to[R_DIMS + d] = PyLong_AsLongLong(PyTuple_GET_ITEM(strides, d));
        }
    }
    if (!PyErr_Occurred()) return s;
    PyMem_Free(s);
    return NULL;
}
int flb_plan_kernel_is_long(const PlanKernel *s) { return s->long_; }

/* 1 done; 0: an index in the arrays is out of bounds; -1: an exception. */
int flb_plan_kernel_run(const PlanKernel *s, char **slots) {
    View views[MOST_VIEWS];
    int64_t status[STATUS_WORDS] = {0};
    int failed;
    for (int i = 0; i < s->n_views; i++) {
        views[i] = s->views[i];
        if (flb_given(&views[i])) views[i].ptr = slots[s->slot[i]] + s->offset[i];
    }
    if (s->long_) {
        Py_BEGIN_ALLOW_THREADS failed = s->fn(views, s->numbers, status) < 0;
        Py_END_ALLOW_THREADS
    } else {
        failed = s->fn(views, s->numbers, status) < 0;
    }
    if (failed) return PyErr_NoMemory(), -1;
    return !status[0];
}
