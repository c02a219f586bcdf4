/* CallPlans: what a call of an operator on plain tensors does, worked out once for a description of its
 * arguments and then run in C. */
#ifndef FLB_CALL_PLAN_H
#define FLB_CALL_PLAN_H
#include "core/tensor_internal.h"
#include <numpy/ufuncobject.h>

/* The most of each: dimensions, operands and loads of a step, slots, results and numbers of a call, words and
 * objects of its description. */
enum {
    R_DIMS = 8,
    R_OPERANDS = 4,
    R_LOADS = 3,
    R_SLOTS = 48,
    R_RESULTS = 4,
    R_NUMBERS = 8,
    R_KEY = 160,
    R_OBJECTS = 24
};

/* Where a value lies while a call plan runs: the tensors of the call in order, then its numbers, results,
 * temporaries, constants. */
typedef struct {
    int slot;
    npy_intp offset, strides[R_DIMS]; /* bytes */
} Operand;

/* An index that is loaded: its value times `stride` is added to the place that is read. */
typedef struct {
    Operand at;
    npy_intp size, stride;
    int item, wrap;
} Load;

typedef struct PlanKernel PlanKernel; /* call_plan_kernel.c */
typedef void (*CombineFn)(char *to, const char *from);

/* Loops around one inner loop of NumPy's signature, or around a read or a write by index, or a native kernel.
 */
typedef struct {
    enum { S_LOOPS, S_GATHER, S_SCATTER, S_KERNEL } kind;
    PyUFuncGenericFunction fn;
    void *data;
    PlanKernel *native;
    CombineFn combine; /* a write that combines; NULL: the last one stays */
    int n_operands, n_dims, n_inner, n_loads;
    npy_intp dims[R_DIMS], inner[4], steps[12];
    npy_intp block; /* read or written by index: bytes moved at a time */
    Operand operand[R_OPERANDS];
    Load load[R_LOADS];
} Step;

typedef struct {
    PyArray_Descr *descr; /* NULL: the result is None */
    int n_dims, dense;    /* dense: row-major, strides needn't be given */
    npy_intp dims[R_DIMS], strides[R_DIMS];
    npy_intp offset; /* views: bytes from the first element of the base */
} Result;

typedef struct {
    PyObject_HEAD
    PyObject *keep; /* what the rest borrows: ufuncs, constants */
    Result *results;
    Step *steps;
    npy_intp *temporaries; /* sizes in bytes */
    char **constants;
    int *numbers;      /* type number of each number of the call */
    npy_intp *extents; /* with a target: first and last byte of each tensor relative to its data, and whether
                          it may be the target itself */
    int n_results, n_steps, n_temporaries, n_constants, n_numbers, n_tensors;
    int target; /* slot of the tensor that is written and returned, or -1 */
    uint8_t view, many,
        tracked; /* results are views of tensor 0; they come as a list; autograd wants to know their origin */
    uint8_t released; /* other threads may run meanwhile */
} FlbCallPlan;

extern PyTypeObject FlbCallPlan_Type, FlbKernel_Type;

/* The call plans of one operator, by the description of their arguments. */
typedef struct {
    struct CallPlanEntry *entries; /* R_TABLE of them, or NULL */
    int used;
    uint32_t generation;
} FlbCallPlans;
void flb_call_plans_clear(FlbCallPlans *r);
int flb_call_plans_traverse(FlbCallPlans *r, visitproc visit, void *arg);

enum { R_TABLE = 64, R_PROBES = 8 };
/* Calls of one description after which its call plan is compiled, where that gains something; a call of many
 * elements counts for more. */
enum { R_OFTEN = 32 };

typedef struct CallPlanEntry {
    uint64_t hash;
    int64_t *words;
    PyObject *call_plan; /* NULL: described once; None: there is none */
    PyObject *objects;   /* tuple: what `words` knows by address */
    int n, calls;        /* calls: how often it was found, up to about R_OFTEN */
} CallPlanEntry;

/* A call as a row of words. */
typedef struct {
    int64_t words[R_KEY];
    FlbTensor *tensors[R_SLOTS];
    PyObject *numbers[R_NUMBERS];
    PyObject *objects[R_OBJECTS];
    PyObject *fake_mode; /* tensors are fake ones of this mode; NULL: tensors with data */
    int n, n_tensors, n_numbers, n_objects;
} Description;

/* Describes the values of a call; 0: they can't be described. */
PyObject *flb_description_hold(const Description *d);
int flb_describe(Description *d, PyObject *fake_mode, uint64_t by_type, uint64_t factors,
                 PyObject *const *values, Py_ssize_t n);
CallPlanEntry *flb_call_plan_find(FlbCallPlans *table, const Description *d, uint64_t *hash);
int flb_call_plan_insert(FlbCallPlans *table, const Description *d, uint64_t hash, PyObject *call_plan);

/* Runs the call plan of op for `values` (all its arguments, in schema order; bit i of by_type: of a number
 * only its type selects the call_plan; of factors: the same unless it is 1). Where there is none yet,
 * make_plan(op, values) is asked for it at the second such call (views: at the first). At the first call the
 * shape rule of an operator with a kernel of ours is asked about the arguments. 1: *result is set; 0: go
 * another way; -1: an exception. */
struct FlbOperator;
int flb_call_plan_call(struct FlbOperator *op, PyObject *const *values, PyObject **result);
/* call_plan_table.c. Bumped when something that call plans depend on changes: the default dtype. */
extern uint32_t flb_plan_generation;
/* call_plan_run.c. As flb_call_plan_call. */
int flb_run_call_plan(FlbCallPlan *r, PyObject *op, Description *d, PyObject *const *values, Py_ssize_t n,
                      PyObject **result);
/* call_plan_views.c. The views of `base` that a plan describes; NULL with an exception. */
PyObject *flb_make_views(FlbCallPlan *r, FlbTensor *base, PyObject *op, PyObject *const *values,
                         Py_ssize_t n);
/* Whether a view of `t` with elements of that size would begin at one of its memory's. */
int flb_begins_whole(FlbTensor *t, npy_intp item);
/* The view of a plain tensor by numbers. 1, -1; 0: what is wrong with them is told elsewhere. */
int flb_view_by_numbers(struct FlbOperator *op, Description *d, PyObject *const *values, PyObject **result);
PyUFuncGenericFunction flb_cast_loop(int from, int to);
PyUFuncGenericFunction flb_select_loop(int itemsize);
PyUFuncGenericFunction flb_copy_loop(int itemsize);
/* In place of the ufunc's: of "maximum" and "minimum" where the steps are those of elements side by side and
 * a number, of "gcd" and "lcm"; NULL: there is none. */
PyUFuncGenericFunction flb_own_loop(const char *ufunc, int type, const npy_intp *steps);
/* call_plan_index.c: 0: an index is out of bounds. */
int flb_call_plan_gather(const Step *s, char **slots);
int flb_call_plan_scatter(const Step *s, char **slots);
CombineFn flb_call_plan_combine(const char *name, int type); /* NULL: there is none */
/* call_plan_kernel.c */
PlanKernel *flb_plan_kernel_read(PyObject *spec, int n_slots);
int flb_plan_kernel_run(const PlanKernel *s, char **slots);
int flb_plan_kernel_is_long(const PlanKernel *s);
int flb_init_call_plan(PyObject *module);
/* kernel.c: runs a Kernel; 1 done, 0 not for this call, -1 exception. */
int flb_kernel_run(PyObject *kernel, const Description *d, PyObject **result);
/* What stands in for a Kernel that was not for a call: a call plan, or NULL. */
PyObject *flb_kernel_otherwise(PyObject *kernel);
int flb_init_kernel(PyObject *module);
#endif
