/* What ran and when, for the profiler: calls of operators, nodes of a backward pass, launches of compiled
 * graphs and their steps, and ranges that a program names. */
#ifndef FLB_EVENTS_H
#define FLB_EVENTS_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

enum { EVENTS_ON = 1, EVENTS_SHAPES = 2, EVENTS_STACKS = 4, EVENTS_MEMORY = 8 };
/* autograd's profiler reads these numbers: profiling/events.py. */
enum {
    EVENT_OPERATOR,
    EVENT_NODE,
    EVENT_GRAPH,
    EVENT_STEP,
    EVENT_RANGE,
    EVENT_LOOP,
    EVENT_COLLECTIVE,
    EVENT_DEVICE
};

extern int flb_events; /* EVENTS_ON and what is kept beside the times; 0: nothing is recorded */

/* An event that has begun. It lies on the C stack of who began it; index -1: it isn't recorded. */
typedef struct {
    int64_t index, outer;
    uint64_t run;
} FlbOpen;

void flb_event_begin(FlbOpen *open, int kind, PyObject *what);
/* Shapes and plain values of the arguments. Errors are swallowed: the event then has none. */
void flb_event_inputs(FlbOpen *open, PyObject *const *values, Py_ssize_t n);
void flb_event_result(FlbOpen *open, PyObject *result);
void flb_event_number(FlbOpen *open, int64_t sequence);
void flb_event_end(FlbOpen *open);
/* Steps [index, index + count) of the launch that is open, by the clock of flb_event_now. */
void flb_event_step(int64_t index, int64_t count, int64_t begin, int64_t end);
/* Whether the innermost open event of this thread is a call of this very operator. */
int flb_event_inside(PyObject *what);
int64_t flb_event_now(void);
/* Bytes that this thread has taken, or given back: negative. */
void flb_event_bytes(int64_t bytes);
int flb_init_events(PyObject *module);
#endif
