/* Gradients of leaves: a leaf takes a cotangent that nobody else has, or a copy of it, or adds it to what it
 * has. */
#include "autograd/engine.h"

static Py_ssize_t held_by_storage(FlbTensor *t, PyObject *array) {
    return t->storage && t->storage->owner == array;
}
/* Whether a view is all that is left of its root: nobody but the view has the root, and both have all of one
 * array. The product that is a weight's gradient comes as such, transposed twice. */
static int is_rest_of_root(FlbTensor *t) {
    FlbView *v = flb_view(t);
    if (!v || Py_REFCNT(v) != 1 || v->steps || Py_REFCNT(v->root) != 1 || !flb_plain((PyObject *)v->root))
        return 0;
    return !v->root->autograd && !(v->root->flags & FLB_REQUIRES_GRAD) && t->storage &&
        t->storage == v->root->storage && Py_REFCNT(t->storage) == 2 &&
        PyArray_BASE((PyArrayObject *)t->array) == v->root->array &&
        Py_REFCNT(v->root->array) == 2 + held_by_storage(t, v->root->array);
}
/* Whether the leaf may keep this very tensor as its gradient: nobody else has it or its memory, and it is
 * laid out like the leaf. Such a view becomes a tensor of its own. */
static int may_take(FlbTensor *leaf, PyObject *g) {
    FlbTensor *t = (FlbTensor *)g;
    if (Py_REFCNT(g) != 1 || !flb_plain(g) || !leaf->array || (t->flags & FLB_REQUIRES_GRAD)) return 0;
    int rest = t->autograd && is_rest_of_root(t);
    if (t->autograd && !rest) return 0;
    PyArrayObject *a = (PyArrayObject *)t->array, *l = (PyArrayObject *)leaf->array;
    if (Py_REFCNT(a) != 1 || (t->storage && Py_REFCNT(t->storage) != 1 + rest) || !PyArray_ISWRITEABLE(a) ||
        !PyArray_ISALIGNED(a))
        return 0;
    if (t->dtype != leaf->dtype || PyArray_NDIM(a) != PyArray_NDIM(l)) return 0;
    if (PyArray_BASE(a)) {
        PyObject *base = PyArray_BASE(a);
        if (!PyArray_Check(base) || Py_REFCNT(base) != 1 + rest + (rest ? held_by_storage(t, base) : 0) ||
            !PyArray_CHKFLAGS((PyArrayObject *)base, NPY_ARRAY_OWNDATA) ||
            PyArray_NBYTES((PyArrayObject *)base) != PyArray_NBYTES(a))
            return 0;
    } else if (!PyArray_CHKFLAGS(a, NPY_ARRAY_OWNDATA)) {
        return 0;
    }
    for (int i = 0; i < PyArray_NDIM(a); i++)
        if (PyArray_DIM(a, i) != PyArray_DIM(l, i) ||
            (PyArray_DIM(a, i) > 1 && PyArray_STRIDE(a, i) != PyArray_STRIDE(l, i)))
            return 0;
    if (rest) Py_CLEAR(t->autograd);
    return 1;
}
/* A copy of a gradient in the leaf's layout. */
static PyObject *copied(FlbTensor *leaf, PyObject *g) {
    PyObject *a = ((FlbTensor *)g)->array, *l = leaf->array;
    if (!flb_plain(g) || !a || !l ||
        (PyArray_IS_C_CONTIGUOUS((PyArrayObject *)a) && PyArray_IS_C_CONTIGUOUS((PyArrayObject *)l)))
        return flb_library_call(flb_engine.clone, (PyObject *[]){g}, 1);
    return flb_library_call(flb_engine.copy_for, (PyObject *[]){(PyObject *)leaf, g}, 2);
}
int flb_accumulate(Run *r, FlbAccumulate *node, PyObject **slot) {
    FlbTensor *leaf = (FlbTensor *)node->variable;
    PyObject *g = *slot;
    if (!leaf || !g) return 0;
    Py_INCREF(leaf);
    int bad = -1, same = flb_same_size(leaf, (FlbTensor *)g);
    if (same < 0) goto done;
    if (!same) {
        PyObject *have = flb_shape((FlbTensor *)g), *want = flb_shape(leaf);
        if (have && want)
            PyErr_Format(PyExc_RuntimeError, "a gradient of shape %R was computed for a leaf of shape %R",
                         have, want);
        goto done;
    }
    PyObject *v = NULL;
    if (!leaf->grad) {
        if (may_take(leaf, g)) {
            v = g;
            *slot = NULL;
        } else if (r->create && flb_requires_grad((FlbTensor *)g) > 0) {
            v = Py_NewRef(g);
        } else {
            v = copied(leaf, g);
            if (v && !r->create && PyObject_TypeCheck(v, &FlbTensor_Type) &&
                (((FlbTensor *)v)->flags & FLB_REQUIRES_GRAD))
                Py_SETREF(v, flb_library_call(flb_engine.detach, (PyObject *[]){v}, 1));
        }
    } else {
        PyObject *have = Py_NewRef(leaf->grad), *args[3] = {NULL, have, g};
        int replaced = flb_sparse_first(have, g);
        if (replaced) args[1] = g, args[2] = have;
        v = flb_library_call(r->create || replaced ? flb_engine.add : flb_engine.add_inplace, args + 1, 2);
        Py_DECREF(have);
    }
    if (!v) goto done;
    Py_XSETREF(leaf->grad, v);
    bad = 0;
    FlbLeaf *info =
        leaf->autograd && Py_TYPE(leaf->autograd) == &FlbLeaf_Type ? (FlbLeaf *)leaf->autograd : NULL;
    if (info && info->post_hooks && PyDict_GET_SIZE(info->post_hooks)) {
        PyObject *list = PyDict_Values(info->post_hooks);
        bad = list ? 0 : -1;
        for (Py_ssize_t i = 0; !bad && i < PyList_GET_SIZE(list); i++) {
            PyObject *got = PyObject_CallOneArg(PyList_GET_ITEM(list, i), (PyObject *)leaf);
            bad = got ? 0 : -1;
            if (got && got != Py_None &&
                (bad = flb_check_hook(PyList_GET_ITEM(list, i), (PyObject *)leaf, got)) == 0)
                bad = (PyErr_SetString(PyExc_RuntimeError,
                                       "Tensor post accumulate grad hooks should return None."),
                       -1);
            Py_XDECREF(got);
        }
        Py_XDECREF(list);
    }
done:
    Py_DECREF(leaf);
    return bad;
}
