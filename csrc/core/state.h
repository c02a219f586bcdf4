/* The thread's dispatch state: one owner, csrc/core/state.c. Everybody else reads fields and changes them
 * through these functions or Guard. */
#ifndef FLB_STATE_H
#define FLB_STATE_H
#include "core/flambeau.h"

/* One layer of a stack. Layers are immutable and shared: popping and restoring are a pointer, pushing is one
 * allocation. */
typedef struct FlbLayer {
    PyObject_HEAD
    PyObject *value;
    struct FlbLayer *below; /* or NULL */
    uint32_t depth;         /* from 1 */
} FlbLayer;

extern PyTypeObject FlbGuard_Type;

/* The innermost layer of a stack (FLB_DISPATCH_MODES ...), borrowed; NULL when it is empty. */
FlbLayer *flb_stack(int which);
/* Makes `layer` (stolen, NULL: empty) the innermost one. Never fails; other Python code may run when old
 * layers go. */
void flb_set_stack(int which, FlbLayer *layer);
/* A new layer on top of `below` (borrowed). */
FlbLayer *flb_layer(PyObject *value, FlbLayer *below);
int flb_init_state(PyObject *module);
extern PyMethodDef flb_state_functions[];
#endif
