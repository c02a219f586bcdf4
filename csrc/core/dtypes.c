/* Which DType an array has: by NumPy's number where it has one of its own, else by its np.dtype. */
#include "core/tensor_parts.h"

PyObject *flb_dtype_by_typenum[FLB_OWN_TYPES];
static PyObject *dtype_bfloat16;
int flb_bfloat16_num = -1;
static PyObject *dtype_by_descr = NULL; /* dict: np.dtype -> DType, for the extension dtypes of ml_dtypes */

PyObject *flb_dtype_of_other(PyArrayObject *a) {
    PyArray_Descr *d = PyArray_DESCR(a);
    if (d->type_num == flb_bfloat16_num) return dtype_bfloat16;
    if (!PyArray_ISNOTSWAPPED(a)) {
        PyErr_SetString(PyExc_ValueError,
                        "given numpy array has byte order different from the native byte order. Conversion "
                        "between byte orders is currently not supported.");
        return NULL;
    }
    PyObject *found = dtype_by_descr ? PyDict_GetItemWithError(dtype_by_descr, (PyObject *)d) : NULL;
    if (!found && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError,
                     "can't convert np.ndarray of type %R. The only supported types are: float64, float32, "
                     "float16, complex64, complex128, "
                     "int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool.",
                     d);
    return found;
}

int flb_typenum_of(PyObject *dtype) {
    for (int i = 0; i < FLB_OWN_TYPES; i++)
        if (flb_dtype_by_typenum[i] == dtype) return i;
    return dtype == dtype_bfloat16 ? flb_bfloat16_num : -1;
}

void flb_use_dtypes(PyObject *dtypes, PyObject *bfloat16) {
    PyObject *k, *v;
    Py_ssize_t pos = 0;
    Py_XSETREF(dtype_by_descr, Py_NewRef(dtypes));
    while (PyDict_Next(dtypes, &pos, &k, &v)) {
        int num = ((PyArray_Descr *)k)->type_num;
        if (num >= 0 && num < FLB_OWN_TYPES) Py_XSETREF(flb_dtype_by_typenum[num], Py_NewRef(v));
        if (v == bfloat16) {
            Py_XSETREF(dtype_bfloat16, Py_NewRef(v));
            flb_bfloat16_num = num;
        }
    }
}
