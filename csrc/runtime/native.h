/* Native kernels: written by hand over strided memory and numbers (kernels.def), launched by compiled graphs,
 * by call plans and by Python. */
#ifndef FLAMBEAU_NATIVE_H
#define FLAMBEAU_NATIVE_H
#include <stdint.h>

#define STATUS_WORDS 4
/* The most numbers and views of a kernel. */
#define MOST_NUMBERS 32
#define MOST_VIEWS 16
#define KERNEL_CAPSULE "flambeau._runtime.kernel" /* holds a const NativeKernel * */

/* Strided memory, as a kernel is handed it; strides in bytes. A view that isn't given has ndim -1 and no
 * memory. */
typedef struct {
    char *ptr;
    int ndim;
    const int64_t *shape, *strides;
} View;
#define NO_VIEW ((View){.ndim = -1})

static inline int flb_given(const View *v) { return v->ndim >= 0; }

/* -1: no memory. `status`: as kernels report a bad index. */
typedef int (*NativeFn)(const View *views, const int64_t *numbers, int64_t *status);

/* What a kernel takes: views, operands before results, then numbers. */
typedef struct {
    const char *name;
    int kind, optional;
    int count;           /* of views, or of numbers; of a list the most */
    const char *choices; /* the enum of a choice */
    int members;         /* of that enum */
} KernelField;

struct Planes; /* conv_planes.h */

/* One row of kernels.def. */
typedef struct {
    const char *name;
    NativeFn run;
    const KernelField *fields;
    int nfields, nviews, nnumbers;
    /* Properties, see kernels.def. */
    int empty, quiet, draws, decides, library;
    double split, start, rate;
    const char *ways;
    int (*planes)(const View *views, const int64_t *numbers, struct Planes *planes);
} NativeKernel;
#endif
