/* Templates: kernels written by hand over strided memory and integers (natives.c), launched by compiled graphs and by recipes. */
#ifndef FLAMBEAU_NATIVE_H
#define FLAMBEAU_NATIVE_H
#include <stdint.h>

#define STATUS_WORDS 4
#define MOST_NUMBERS 32          /* that a template takes */
#define MOST_VIEWS 16
#define TEMPLATE_CAPSULE "flambeau._runtime.template" /* its context: TEMPLATE_PARTS of what it may be handed */
#define TEMPLATE_PARTS(views, numbers) ((intptr_t)((views) * 1000 + (numbers) + 1))

/* Strided memory, as a template is handed it; strides in bytes. */
typedef struct {
    char *ptr;
    int ndim;
    const int64_t *shape, *strides;
} View;
typedef int (*NativeFn)(const View *views, int n, const int64_t *numbers, int64_t *status); /* -1: no memory; status: as kernels report a bad index */
#endif
