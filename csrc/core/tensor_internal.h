/* Shared by the files of flambeau._C. */
#ifndef FLB_TENSOR_INTERNAL_H
#define FLB_TENSOR_INTERNAL_H
#include "core/flambeau.h"
#include <structmember.h>
#define PY_ARRAY_UNIQUE_SYMBOL flambeau_ARRAY_API
#ifndef FLB_IMPORT_ARRAY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>

extern PyTypeObject FlbTensor_Type, FlbStorage_Type, FlbFunction_Type;
extern PyTypeObject *flb_tensor_class, *flb_parameter_class;
extern PyObject *flb_size_class, *flb_cpu_device;
extern PyMethodDef flb_tensor_functions[], flb_dispatch_functions[];

/* operators.c: the number slots and comparisons of a tensor, and the module's set_operators(). */
extern PyNumberMethods flb_tensor_number;
PyObject *flb_tensor_richcompare(PyObject *a, PyObject *b, int cmp);
int flb_init_operators(void); /* once the type is ready */
PyObject *flb_set_operators(PyObject *module, PyObject *args);

PyObject *flb_from_array(PyObject *array);
PyObject *flb_from_array_as(PyTypeObject *type, PyObject *array);
FlbTensor *flb_alloc(PyTypeObject *type);
FlbStorage *flb_storage(FlbTensor *t);
/* Whether the memory was made in inference mode (views of a normal tensor are normal there). */
static inline int flb_is_inference(FlbTensor *t) {
    return t->storage ? t->storage->inference : (t->flags & FLB_INFERENCE) != 0;
}
extern int flb_inference_used; /* some tensor was: until then nobody has to look */
PyObject *flb_shape(FlbTensor *t);
/* Whether a gradient is asked for, -1 with an exception; a view whose root got a history after it was made
 * takes that history over first, if it may: see flb_refresh. */
int flb_requires_grad_slow(FlbTensor *t);
static inline int flb_requires_grad(FlbTensor *t) {
    if (t->flags & FLB_REQUIRES_GRAD) return 1;
    return t->autograd && t->storage && t->storage->recorded ? flb_requires_grad_slow(t) : 0;
}
/* A new tensor object on the same data and storage, without autograd history. */
PyObject *flb_alias(FlbTensor *t, PyTypeObject *type);
/* A view whose root was written takes over its history; -1 with an exception, as for one made in no_grad or
 * by a custom Function. */
int flb_refresh(FlbTensor *t);
/* -1 with an exception for a view that was made in no_grad of something with a history, where what is written
 * through it would be missing, and for one that a custom Function made. */
int flb_check_view_written(FlbTensor *t);
/* Whether a view of `base` (which has data) is described by its own geometry: op and rest may be NULL in
 * flb_note_view. */
int flb_view_is_strided(FlbTensor *base);
/* `out` is the view op(base, *rest) (item `which` of it, or None). */
int flb_note_view(FlbTensor *out, FlbTensor *base, PyObject *op, PyObject *rest, PyObject *which);
PyObject *flb_strides(FlbTensor *t);
int flb_typenum_of(PyObject *dtype); /* NumPy's number of a dtype, -1 when it has none of its own */
extern int
    flb_bfloat16_num; /* the number that NumPy gave to bfloat16, which isn't its own; -1 before configure() */
static inline float flb_bfloat16_value(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float v;
    memcpy(&v, &wide, sizeof v);
    return v;
}
FlbTls *flb_tls(void);
/* The caching allocator (allocator.c); flb_use_allocator makes it NumPy's in the present context, -1 with an
 * exception on failure. */
void *flb_malloc(size_t size);
void *flb_scratch(size_t size);
void flb_free(void *data);
int flb_use_allocator(void);
/* Calls the __torch_function__ machinery for func with n (1 or 2) arguments. */
PyObject *flb_override(PyObject *func, int n, PyObject *a, PyObject *b);
/* Keys that every instance of a class has: FLB_PYTHON if it defines __torch_dispatch__, bit 30 if it
 * overrides __torch_function__. */
int flb_class_keys(PyTypeObject *type, uint32_t *keys);
/* Whether the class has an attribute; -1: its lookup raised something else than AttributeError. */
int flb_class_has(PyTypeObject *type, const char *name);
#endif
