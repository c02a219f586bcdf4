/* What kernels.def declares, for C: enumerations, and for a kernel `scan` the structs flb_scan_views and
 * flb_scan_numbers and the prototype of its function, which is defined as FLB_KERNEL(scan) { ... } over `v`,
 * `n` and `status` (native.h). */
#ifndef FLAMBEAU_KERNELS_H
#define FLAMBEAU_KERNELS_H
#include "runtime/enums.h"
#include "runtime/native.h"

int flb_convolve_planes(const View *v, const int64_t *numbers, struct Planes *planes); /* conv.c */

#define KERNEL(name, ...) typedef struct {
#define OPERANDS(name, n) View name[n];
#define RESULTS(name, n) View name[n];
#define OPERAND(name) View name;
#define RESULT(name) View name;
#define OPTIONAL_OPERAND(name) View name;
#define OPTIONAL_RESULT(name) View name;
#define END_KERNEL(name) \
    }                    \
    flb_##name##_views;
#include "runtime/kernels.def"

typedef double FlbReal __attribute__((may_alias)); /* numbers come as an array of int64_t */
#define KERNEL(name, ...) typedef struct {
#define INTEGER(name) int64_t name;
#define FLAG(name) int64_t name;
#define REAL(name) FlbReal name;
#define CHOICE(e, name) int64_t name;
#define ARRAY(name, n) int64_t name[n];
#define LIST(name, n) int64_t name##_count, name[n];
#define MESSAGE(name) int64_t name;
#define END_KERNEL(name) \
    }                    \
    flb_##name##_numbers;
#include "runtime/kernels.def"

#define FLB_KERNEL(name) \
    int flb_kernel_##name(const flb_##name##_views *v, const flb_##name##_numbers *n, int64_t *status)
#define KERNEL(name, ...) FLB_KERNEL(name);
#include "runtime/kernels.def"
#endif
