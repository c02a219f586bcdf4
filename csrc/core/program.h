/* Programs: what a Python function of tensors did, kept as operators and slots, and run again without Python
 * between its calls.
 *
 * A gradient formula and the body of a composite are pure functions of their arguments that call operators
 * and branch on everything but the elements of tensors. So what they did once they do again whenever their
 * arguments have the same description. The recorder holds the descriptions: autograd/program.c for formulas,
 * decomposed.c for composites. */
#ifndef FLB_PROGRAM_H
#define FLB_PROGRAM_H
#include "core/calls.h"

typedef struct {
    uint8_t kind;
    int slot; /* a slot */
    PyObject
        *object; /* a constant; or a tuple of constants and slots (an int in a 1-tuple) that becomes a list */
} FlbArgument;
typedef struct {
    FlbOperator *op;
    FlbArgument *args;
    int n_args;
    int first, n_results; /* slots of the results; n_results -1: one that isn't a list */
    int *dead;            /* slots that nothing reads afterwards */
    int n_dead;
} FlbInstruction;
typedef struct {
    FlbInstruction *code;
    int n_code, n_slots, n_inputs;
    int *outputs; /* slot of each output, -1 for none */
    int n_outputs;
} FlbCode;

/* While a function is recorded the key RECORD is in the thread's included keys, so that each operator call
 * comes to flb_program_note before anything else looks at it; composites are one step, whatever they open to.
 */
typedef struct FlbRecorder {
    PyObject *slots; /* dict: address -> slot, as ints */
    PyObject *alive; /* list of the tensors in it, whose addresses must not be used again */
    FlbInstruction *code;
    int n_code, room, n_slots, n_inputs;
    uint32_t keys; /* that calls may have; others can't be replayed */
    int unsound;   /* something happened that a replay would not repeat */
    struct FlbRecorder *outer;
} FlbRecorder;

int flb_recorder_init(FlbRecorder *r, uint32_t keys);
int flb_recorder_input(FlbRecorder *r, PyObject *tensor); /* the next input */
void flb_recorder_start(FlbRecorder *r);
void flb_recorder_stop(FlbRecorder *r);
int flb_recorder_slot(FlbRecorder *r, PyObject *tensor); /* -1: it came from elsewhere, or an exception */
void flb_recorder_free(FlbRecorder *r);

/* Move the recorded program to `code` with these outputs (slots, -1 for none). -1 with an exception. */
int flb_code_take(FlbCode *code, FlbRecorder *r, const int *outputs, int n_outputs);
/* Runs it on its inputs; outputs are new references or NULL. backend: its calls have the backend key alone;
 * else their arguments say. */
int flb_code_run(const FlbCode *code, PyObject *const *inputs, PyObject **outputs, int backend);
void flb_code_free(FlbCode *code);
#endif
