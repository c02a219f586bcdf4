/* What the files of the tensor object share: storage.c (memory and who counts its writes), dtypes.c (which
 * dtype an array has), tensor.c (the object), tensor_attributes.c (what Python reads and sets of it) and
 * tensor_functions.c (the module's functions about tensors). */
#ifndef FLB_TENSOR_PARTS_H
#define FLB_TENSOR_PARTS_H
#include "core/calls.h"

/* storage.c. `owner`: the ndarray that holds the memory, or NULL. */
FlbStorage *flb_storage_new(PyObject *owner, Py_ssize_t nbytes);

/* dtypes.c. The DType of an array, borrowed; NULL with an exception for one that no tensor is over. */
enum { FLB_OWN_TYPES = 32 }; /* NumPy's numbers below this one are those of its own dtypes */
extern PyObject *flb_dtype_by_typenum[FLB_OWN_TYPES];
PyObject *flb_dtype_of_other(PyArrayObject *a);
static inline PyObject *flb_dtype_of_array(PyArrayObject *a) {
    int num = PyArray_DESCR(a)->type_num;
    if (num >= 0 && num < FLB_OWN_TYPES && flb_dtype_by_typenum[num] && PyArray_ISNOTSWAPPED(a))
        return flb_dtype_by_typenum[num];
    return flb_dtype_of_other(a);
}
/* {np.dtype: DType}, and which of them is bfloat16. */
void flb_use_dtypes(PyObject *dtypes, PyObject *bfloat16);

/* tensor.c. -1 with an exception for strides that no number of elements is. */
int flb_whole_strides(PyArrayObject *a);

/* tensor_attributes.c. */
extern PyGetSetDef flb_tensor_getset[];
extern PyMemberDef flb_tensor_members[];
extern PyMethodDef flb_tensor_methods[];
/* Python's setter of requires_grad and its check of an assigned gradient; NULL: as it was. */
void flb_use_setters(PyObject *requires_grad, PyObject *grad);
#endif
