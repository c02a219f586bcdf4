/* Kernels written by hand that a compiled graph launches without Python: templates over views (memory, shape, strides in bytes) and integers.
 *
 * A template trusts the shapes that lowering gave it; what it can't trust (a size that isn't what the other operands say) lowering doesn't hand it. */
#include "graph.h"
#include <string.h>

static const struct {
    const char *name;
    NativeFn fn;
    int views, numbers;         /* the fewest it takes */
} templates[] = {
    {"attention", flb_attention_step, 5, 6},
    {"attention_backward", flb_attention_step, 9, 6},
    {"convolution", flb_convolve_step, 3, 14},
    {"convolution_ways", flb_convolution_ways_step, 4, 14},
    {"scan", flb_scan_step, 2, 3},
    {"order", flb_order_step, 3, 6},
    {"extreme", flb_extreme_step, 2, 3},
    {"draw", flb_draw_step, 1, 4},
    {"draw_from", flb_draw_from_step, 2, 4},
    {"lapack", flb_lapack_step, 2, 7},
    {"infos", flb_infos_step, 1, 2},
    {"row_order", flb_row_order_step, 2, 1},
    {"fft", flb_fft_step, 2, 5},
    {"running", flb_running_step, 3, 3},
    {"logcumsumexp", flb_logcumsumexp_step, 2, 2},
    {"expect", flb_expect_step, 0, 3},
    {"count", flb_count_step, 2, 0},
    {"nonzero", flb_nonzero_step, 2, 1},
    {"order_rows", flb_order_rows_step, 2, 1},
    {"runs", flb_runs_step, 4, 3},
    {"bincount_size", flb_bincount_size_step, 2, 2},
    {"bincount", flb_bincount_step, 2, 0},
    {"repeat_size", flb_repeat_size_step, 2, 1},
    {"repeat", flb_repeat_step, 2, 0},
    {"edges", flb_edges_step, 2, 5},
    {"cells", flb_cells_step, 3, 2},
    {"mode", flb_mode_step, 3, 1},
    {"sample", flb_sample_step, 2, 2},
    {"sample_from", flb_sample_from_step, 3, 2},
    {"distinct", flb_distinct_step, 5, 2},
    {"ufunc", flb_ufunc_step, 2, 3},
    {"polynomial", flb_polynomial_step, 3, 2},
    {"distances", flb_distances_step, 3, 2},
    {"categories", flb_categories_step, 3, 4},
    {"search", flb_search_step, 3, 3},
    {"histogram", flb_histogram_step, 2, 4},
    {"recurrence", flb_recurrence_step, 4, 5},
    {"recurrence_backward", flb_recurrence_backward_step, 6, 4},
    {"sparse_dense", flb_sparse_dense_step, 5, 1},
    {"sparse_count", flb_sparse_count_step, 5, 1},
    {"sparse_sparse", flb_sparse_sparse_step, 9, 2},
    {"sparse_group", flb_sparse_group_step, 3, 0},
    {"sparse_order", flb_sparse_order_step, 4, 0},
    {"sparse_sums", flb_sparse_sums_step, 6, 1},
    {"product_bf16", flb_product_bf16_step, 3, 0},
    {"product_bf16_packed", flb_product_bf16_packed_step, 3, 0},
    {"prepack", flb_prepack_step, 2, 3},
    {"prepack_bf16", flb_prepack_bf16_step, 2, 0},
    {"product_packed", flb_product_packed_step, 3, 3},
    {"weight_only", flb_weight_only_step, 4, 1},
    {"max_pool", flb_max_pool_step, 3, 7},
    {"max_pool_backward", flb_max_pool_backward_step, 3, 2},
};

NativeFn flb_native(const char *name, int views, int numbers) {
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++)
        if (!strcmp(templates[i].name, name)) return views >= templates[i].views && views <= MOST_VIEWS && numbers >= templates[i].numbers ? templates[i].fn : NULL;
    return NULL;
}

/* Lay out views of arrays; one that isn't aligned is copied, and written back in the end. How many of `held` were taken, -1 with an exception. */
static int open_views(PyObject *arrays, View *views, PyArrayObject **held) {
    int n = (int)PyTuple_GET_SIZE(arrays), taken = 0;
    for (int i = 0; i < n; i++) {
        PyArrayObject *a = (PyArrayObject *)PyTuple_GET_ITEM(arrays, i);
        int failed = !PyArray_Check(a) || PyArray_ISBYTESWAPPED(a);
        if (failed) PyErr_SetString(PyExc_ValueError, "native: ndarrays are expected");
        else if (!PyArray_ISALIGNED(a)) {
            int back = PyArray_ISWRITEABLE(a) ? NPY_ARRAY_WRITEBACKIFCOPY : 0;
            failed = !(a = (PyArrayObject *)PyArray_FromArray(a, NULL, NPY_ARRAY_ALIGNED | back));
            if (!failed) held[taken++] = a;
        }
        if (failed) {
            while (taken) PyArray_DiscardWritebackIfCopy(held[--taken]), Py_DECREF(held[taken]);
            return -1;
        }
        views[i] = (View){PyArray_DATA(a), PyArray_NDIM(a), (const int64_t *)PyArray_DIMS(a), (const int64_t *)PyArray_STRIDES(a)};
    }
    return taken;
}

/* native(name, arrays, numbers): run a template over ndarrays. MemoryError; IndexError for an index in them that is out of bounds; ValueError for a name or a count that isn't. */
PyObject *flb_run_native(PyObject *self, PyObject *args) {
    const char *name;
    PyObject *arrays, *numbers;
    if (!PyArg_ParseTuple(args, "sO!O!", &name, &PyTuple_Type, &arrays, &PyTuple_Type, &numbers)) return NULL;
    int n = (int)PyTuple_GET_SIZE(arrays), m = (int)PyTuple_GET_SIZE(numbers);
    NativeFn fn = flb_native(name, n, m);
    int64_t values[MOST_NUMBERS];
    if (!fn || m > MOST_NUMBERS) return PyErr_Format(PyExc_ValueError, "native: there is no template %s of %d arrays and %d numbers", name, n, m), NULL;
    for (int i = 0; i < m; i++) values[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(numbers, i));
    if (PyErr_Occurred()) return NULL;
    View views[MOST_VIEWS];
    PyArrayObject *held[MOST_VIEWS];
    int taken = open_views(arrays, views, held);
    if (taken < 0) return NULL;
    int failed;
    int64_t status[STATUS_WORDS] = {0};
    Py_BEGIN_ALLOW_THREADS
    failed = fn(views, n, values, status) < 0;
    Py_END_ALLOW_THREADS
    int lost = 0;
    for (int i = 0; i < taken; i++) {
        lost |= PyArray_ResolveWritebackIfCopy(held[i]) < 0;
        Py_DECREF(held[i]);
    }
    if (lost) return NULL;
    if (failed) return PyErr_NoMemory();
    if (status[0]) return PyErr_Format(PyExc_IndexError, "native: index %lld is out of bounds for size %lld", (long long)status[1], (long long)status[2]), NULL;
    Py_RETURN_NONE;
}

/* template(name, views, numbers): what a recipe runs (recipe_template.c). ValueError as native() raises it. */
PyObject *flb_get_template(PyObject *self, PyObject *args) {
    const char *name;
    int views, numbers;
    if (!PyArg_ParseTuple(args, "sii", &name, &views, &numbers)) return NULL;
    NativeFn fn = flb_native(name, views, numbers);
    if (!fn) return PyErr_Format(PyExc_ValueError, "template: there is no template %s of %d arrays and %d numbers", name, views, numbers), NULL;
    PyObject *capsule = PyCapsule_New((void *)fn, TEMPLATE_CAPSULE, NULL);
    if (capsule && PyCapsule_SetContext(capsule, (void *)TEMPLATE_PARTS(views, numbers)) < 0) Py_CLEAR(capsule);
    return capsule;
}
