/* Native loops (loops/): the object that calls a kernel, and what the kernel asks for while it runs. */
#ifndef FLAMBEAU_LOOP_H
#define FLAMBEAU_LOOP_H
#include "runtime/graph.h"

typedef int64_t (*LoopFn)(void *data, void *meta, void *ints, void *floats, void *out);

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    LoopFn fn;
    int nwritten, nfresh, nresults,
        restores; /* restores: the loop may end with an error, which is to leave its operands as they were */
    int nsizes, narrays;
    Py_ssize_t nints, nfloats;   /* numbers that the kernel reads */
    int *written, *over, *fresh; /* operands; over: 1 for written ones that get their new contents themselves,
                                    2 for those that results may use up */
    int64_t *sizes;              /* of all operands in turn, -1 for those that differ between calls */
    PyArray_Descr **results, **dtypes; /* dtypes: of the operands */
    PyArrayObject **kept;              /* the arrays of the last call's numbers, or NULL */
    PyObject *fail;                    /* called with (number of the error, three integers), raises */
    PyObject *python; /* called with (text, arrays) for the calls that the kernel leaves to NumPy; None
                         where there are none */
    int brief_calls;  /* of the next calls so many keep the GIL, if their operands have at most */
    int64_t brief_size,
        brief_sum; /* so many elements, and their integers this sum: one like them was short */
} Loop;

/* Calls the loop (loop_call.c). The results: written arrays that aren't `over`, fresh ones, numbers; arrays
 * where they are `plain`, else tensors. */
PyObject *flb_loop_called(Loop *l, PyObject *const *arrays, Py_ssize_t count, PyObject *ints,
                          PyObject *floats, int plain);

/* What a thread's kernel, the innermost of them, is in (loop_process.c). */
typedef struct {
    PyThreadState *waiting; /* of the thread, where its kernel runs without the GIL */
    int holding;            /* whether the kernel runs with the GIL */
    PyObject *python;       /* what computes by NumPy for the loop, borrowed */
    PyObject *caught[3];    /* what a signal's handler or NumPy raised meanwhile */
} FlbLoopThread;

extern _Thread_local FlbLoopThread flb_loop_thread;

/* What kernels call: the process (loop_process.c), the pool (loop_spread.c), containers (containers.c). */
int64_t flb_loop_interrupted(void);
int64_t flb_loop_python(const char *text, int64_t again, int64_t n, const int64_t *table);

/* What a kernel keeps of a loop within that it may have spread: its turns so far, how many there are when it
 * asks again, and when it asked last (0: not yet, -1: the pool was worth it). */
typedef struct {
    int64_t turns, again, since;
} FlbLoopSeen;

void flb_loop_spread(FlbRangeFn fn, void *context, int64_t blocks);
int64_t flb_loop_spread_within(FlbRangeFn fn, void *context, int64_t blocks, FlbLoopSeen *seen, int64_t count,
                               int64_t much);
int64_t flb_loop_nanoseconds(void);

struct Container; /* containers.c */
void *flb_container_new(struct Container **chain, int64_t nkey, int64_t nvalue);
void flb_container_end(struct Container *chain);
void flb_container_clear(struct Container *c);
int64_t *flb_list_append(struct Container *c);
void flb_list_shift(struct Container *c, int64_t *out);
int64_t *flb_list_prepend(struct Container *c);
int64_t *flb_table_find(struct Container *c, const int64_t *key);
int64_t *flb_table_put(struct Container *c, const int64_t *key);
void flb_table_remove(struct Container *c, int64_t *e);
#endif
