/* A backward pass: what the files of the engine share.
 *
 *   engine.c             a run, and one node of it
 *   engine_tasks.c       the nodes of a run and their order
 *   engine_cotangents.c  cotangents: sums, zeros, those of the roots
 *   engine_leaf.c        gradients of leaves
 *   engine_hooks.c       hooks, and gradients that are kept */
#ifndef FLB_ENGINE_H
#define FLB_ENGINE_H
#include "autograd/autograd.h"

typedef struct {
    FlbNode *node;  /* owned */
    PyObject **cts; /* n_outputs of them; &one when there is one */
    PyObject *one;
    Py_ssize_t deps; /* cotangents still to come */
    int capture;     /* first of the wanted edges that end here, -1 */
    uint8_t needed;  /* runs */
    uint8_t seeded;
} Task;

typedef struct Run {
    Task *tasks;
    Py_ssize_t n, capacity;
    int32_t *table; /* node -> index + 1, open addressing */
    size_t mask;
    int32_t *heap;
    Py_ssize_t n_heap;
    int *next_capture; /* chains of wanted edges by node */
    int *wanted_nr;
    PyObject **captured;
    int n_wanted; /* -1: leaves accumulate */
    int accumulate, keep, create;
    uint64_t id;
    FlbNode *running; /* the node that is applied, borrowed from its task */
    struct Run *outer;
} Run;

/* What the engine calls: operators, zeros(shape, dtype, device, cotangents), a copy of a gradient in the
 * layout of its leaf (autograd/record.py), checks of what hooks return (autograd/hook_results.py). */
typedef struct {
    PyObject *add, *add_inplace, *clone, *detach, *ones_like, *zeros, *copy_for, *check_result, *check_count;
} Engine;
extern Engine flb_engine;

/* ---- engine_tasks.c ------------------------------------------------------------------------------------ */

static inline size_t hash_of(FlbNode *n) { return ((size_t)n >> 4) * 0x9E3779B97F4A7C15ull >> 20; }
/* Index of the node's task, -1: it has none. */
static inline Py_ssize_t flb_find_task(Run *r, FlbNode *node) {
    for (size_t h = hash_of(node) & r->mask;; h = (h + 1) & r->mask) {
        int32_t i = r->table[h];
        if (!i) return -1;
        if (r->tasks[i - 1].node == node) return i - 1;
    }
}
/* Index of the node's task; *fresh when it was made. -1 with an exception. */
Py_ssize_t flb_task_of(Run *r, FlbNode *node, int *fresh);
/* All nodes below the roots (which are tasks already), with the number of cotangents each waits for. */
int flb_explore(Run *r);
/* Only nodes from which a wanted edge can be reached run. */
int flb_mark_needed(Run *r);
void flb_heap_push(Run *r, Py_ssize_t task);
Py_ssize_t flb_heap_pop(Run *r); /* the youngest node's */
void flb_run_free(Run *r);

/* ---- engine_cotangents.c ------------------------------------------------------------------------------- */

/* Adds ct (stolen) to what has come for result nr. */
int flb_add_cotangent(Run *r, Py_ssize_t task, int nr, PyObject *ct);
/* A sum that has a dense term is dense: only the dense one can take the sparse one up. */
static inline int flb_sparse_first(PyObject *a, PyObject *b) {
    return !((FlbTensor *)a)->array && ((FlbTensor *)b)->array;
}
int flb_same_size(FlbTensor *a, FlbTensor *b); /* -1 with an exception */
/* Zeros for the cotangents of a node that never came. */
int flb_fill_zeros(FlbNode *node, PyObject **cts);
/* The cotangent of root `nr` as a program gave it; None stands for ones. */
PyObject *flb_root_cotangent(FlbTensor *out, PyObject *g, Py_ssize_t nr);
PyObject *flb_tuple_of(PyObject **items, int n); /* None for NULL */

/* ---- engine_hooks.c ------------------------------------------------------------------------------------ */

/* Whether what a hook returned may replace the gradient `before`, NULL for none that came. */
int flb_check_hook(PyObject *hook, PyObject *before, PyObject *got);
/* Hooks on single cotangents: hook(ct) may return another. */
int flb_tensor_hooks(PyObject *hooks, PyObject **slot);
int flb_node_pre_hooks(PyObject *hooks, PyObject **cts, int n);
int flb_node_post_hooks(PyObject *hooks, PyObject **grads, int n, PyObject **cts, int n_cts);
/* Cotangents of results whose tensors keep their gradient. */
int flb_keep_retained(PyObject *retained, PyObject **cts, int n);

/* ---- engine_leaf.c ------------------------------------------------------------------------------------- */

/* Adds the cotangent to the gradient of the node's leaf, which may take it: *slot is NULL then. */
int flb_accumulate(Run *r, FlbAccumulate *node, PyObject **slot);
#endif
