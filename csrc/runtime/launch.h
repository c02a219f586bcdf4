/* The launch of a compiled graph: what the files of its parts share.
 *
 *   launch.c         a call, from its inputs to its outputs
 *   launch_run.c     the steps in their order: side by side, with or without the GIL, timed
 *   launch_step.c    one step
 *   launch_slots.c   memory of slots: when it is taken, and given back
 *   launch_arrays.c  arrays over that memory, and those of inputs
 *   launch_sizes.c   symbols, and what is computed from them */
#ifndef FLAMBEAU_LAUNCH_H
#define FLAMBEAU_LAUNCH_H
#include "runtime/graph.h"

/* Everything that belongs to one call. */
typedef struct {
    Graph *g;
    Frame *f;
    Place *places;
    char **pointers; /* room for a kernel's arguments */
    char *arena;
    int taken,
        given;    /* of the slots with memory of their own, in the order of the graph's `takes` and `gives` */
    int starved;  /* one got none: the rest of the call is left out */
    int consumes; /* whether inputs and results are dropped after their last use */
    int64_t status[STATUS_WORDS];
} Call;

/* ---- arrays: launch_arrays.c --------------------------------------------------------------------------- */

/* The array of an input: a tensor's, or captured code gives it as it is. */
static inline PyArrayObject *flb_array_of(PyObject *x) {
    return PyObject_TypeCheck(x, flb_api->tensor_type) ? (PyArrayObject *)((FlbTensor *)x)->array
        : PyArray_CheckExact(x)                        ? (PyArrayObject *)x
                                                       : NULL;
}

/* An array over memory that `owner` holds; it may be written as far as an owner that is an ndarray may. */
PyObject *flb_array_over(const Layout *l, const Frame *f, char *ptr, PyObject *owner);
/* What a native loop, or a function of NumPy's, is given: an input itself where it is all of it, since such
 * an array costs as much as a short loop. */
PyObject *flb_array_for_native(const Layout *l, const Frame *f, char *ptr, PyObject *owner);
/* A fresh output array; `ptr` is its first element. */
PyObject *flb_new_output(const Slot *s, const Frame *f, char **ptr);
/* The array of input k in the layout the kernels were made for; `keep` gets a reference when it had to be
 * made.
 */
PyArrayObject *flb_input_array(Call *c, int k, PyObject *tensor, PyObject **keep);
int flb_array_matches(PyArrayObject *a, const Layout *l, const Frame *f);

/* ---- sizes: launch_sizes.c ----------------------------------------------------------------------------- */

/* Symbols of a stage from its sources, and its code; -1 with an exception. */
int flb_bind_symbols(const Stage *stage, Frame *f, PyObject *const *sources, const char *what,
                     PyObject *on_error);
/* 0 for a value that the kernels can rely on, else 1 with an exception. */
int flb_out_of_range(const Bind *b, int64_t v, const char *what, PyObject *on_error);
int flb_run_code(const Stage *stage, Frame *f);

/* ---- memory: launch_slots.c ---------------------------------------------------------------------------- */

/* Memory of the slots whose sizes are known from `stage` on. */
int flb_place_slots(Call *c, int stage);
/* Before the steps from `begin` to `end`: drop what no step from here on touches, and make the outputs that
 * one of these touches first. */
int flb_turn_over(Call *c, int begin, int end);
/* Memory of their own for slots that live from a step before `end` on. -1: there is none, which is reported
 * at the end of the call. Needs no GIL. */
int flb_take_slots(Call *c, int end);
/* Give back the memory of slots that no step from `end` on touches. */
void flb_give_slots(Call *c, int end);

/* ---- steps: launch_step.c, launch_run.c ---------------------------------------------------------------- */

/* A STEP_CALL; -1 with an exception. */
int flb_run_call(Call *c, Step *s);
/* A STEP_BIND: numbers that earlier steps computed become symbols; what depends on them is counted, and
 * memory of these sizes is taken. */
int flb_run_bind(Call *c, const Step *s);
/* Any other step. NOTE: runs without the GIL and can't fail: what it needs is allocated before. */
void flb_run_native(Call *c, const Step *s);
/* One kernel over a range, in pieces over the pool. */
void flb_run_kernel(KernelFn fn, char **args, int64_t total, int64_t grain);
/* All steps; -1 with an exception. What a kernel reports is in the status words. */
int flb_run_steps(Call *c);
#endif
