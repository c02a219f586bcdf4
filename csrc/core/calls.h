/* Operators and functions: what binder.c, dispatch.c, function.c and interpose.c share.
 *
 * A call's arguments are bound once, to an array with one value for each argument of the schema (missing ones
 * are the default objects); from there every path works on that array. */
#ifndef FLB_CALLS_H
#define FLB_CALLS_H
#include "core/call_plan.h"
#include "core/state.h"

#define NO_DATA (1u << 8)  /* scan: some tensor has no array */
#define SUBCLASS (1u << 9) /* scan: some tensor is of a class with __torch_dispatch__ */

enum { MAX_ARGUMENTS = 64 };

enum { P_OTHER, P_TENSOR, P_SCALAR, P_INT, P_FLOAT, P_BOOL, P_STR, P_DTYPE, P_DEVICE, P_FORMAT };
typedef struct {
    PyObject *name, *fallback; /* fallback: the default, or NULL when there is none */
    uint8_t type, list, optional, keyword_only, elements_optional, sized, null_false;
} Parameter;

typedef struct FlbOperator {
    PyObject_HEAD
    PyObject *kernel; /* kernel(*args, **kwargs) behind the operator's own signature, for tensors with data;
                         or NULL */
    PyObject *impl;   /* the same, taking all arguments by position in schema order; or NULL */
    PyObject *named;  /* class of its named results, or NULL */
    PyObject *body; /* of an implicit composite: body(*all arguments), decomposed before anything looks at the
                       operator; or NULL */
    Parameter *parameters;
    int n_parameters, n_positional;
    int varargs;         /* position of the list of ints that may come as separate arguments, or -1 */
    PyObject *inner;     /* of an explicit composite: inner(*all arguments), what its kernel is; or NULL */
    PyObject *each;      /* of an operator on lists: the operator on their rows (foreach.c), or NULL */
    uint64_t written;    /* bit i: it writes into parameter i */
    uint8_t each_writes; /* it writes into the first list and returns nothing */
    uint8_t ready;       /* prepare() ran */
    uint8_t numbers;     /* Python numbers may stand for tensors when there is one tensor: 1 not for the first
                            argument, 2 for any */
    uint8_t by_numbers;  /* BY_INDEX, BY_SLICE, BY_STRIDES: a view by numbers, made without a call plan;
                            BY_ORDER: the tensor itself where its elements lie in C order */
    uint8_t factory;     /* makes a tensor on the current device, takes requires_grad */
    uint8_t call_plans_on, programs, is_view, one_tensor, pure,
        loud;           /* pure: no effects;  loud: NumPy's warnings stay on (an operator of the user's) */
    uint8_t rule_first; /* its shape rule is asked about a call plan's description before its kernel first
                           sees such arguments */
    uint64_t by_type, factors;                   /* for call plans */
    FlbCallPlans call_plans, shapes, decomposed; /* shapes: what fake tensors become; decomposed: what the
                                                    body does (decomposed.c), if `programs` */
    PyObject *rule; /* how autograd records it (csrc/autograd/record.c), or NULL until it is first recorded */
    PyObject *dict, *weakrefs;
    vectorcallfunc vectorcall;
} FlbOperator;
enum { BY_INDEX = 1, BY_SLICE, BY_STRIDES, BY_ORDER };
extern PyTypeObject FlbOperator_Type;

extern PyObject
    *flb_describe_handler; /* describe(function) -> (signature or None, text or None); core/describe.py */
extern PyObject *flb_override_handler; /* override(function, args, kwargs) -> result; core/overrides.py */
extern PyObject *flb_dispatch_handler; /* dispatch(op, keys, args, kwargs) -> result; core/dispatch.py */
extern PyObject *flb_prepare_handler;  /* prepare(op): gives op its parameters; core/bindings.py */
extern PyObject
    *flb_call_compiler; /* compile_plan(op, values, plan) -> Kernel, None or NotImplemented; eager/often.py */
extern PyObject *flb_shape_checker;  /* check_shapes(op, values): raises; eager/shape_checks.py */
extern PyObject *flb_call_planner;   /* make_plan(op, values) -> CallPlan or None; eager/plans/plan.py */
extern PyObject *flb_device_handler; /* as_device(str or int); core/bindings.py */
extern PyObject
    *flb_python_handler; /* python_key(op, keys, args, kwargs): the general way; core/dispatch.py */
extern PyObject *flb_check_handler; /* checked(op, result, mode, args, kwargs); core/dispatch.py */
extern PyTypeObject *flb_dtype_class, *flb_format_class;

/* Where calls with the AUTOGRAD key on top go: 1 done (*result), 0 not mine, -1 exception. Set by autograd's
 * native part. */
extern int64_t (*flb_sequence)(PyObject *node); /* the number of a node of the backward graph, -1 */
extern int (*flb_autograd_call)(FlbOperator *op, uint32_t keys, PyObject *const *values, PyObject **result);

/* Calls while a gradient formula is recorded (autograd/program.c): keys without RECORD. */
PyObject *flb_program_note(FlbOperator *op, uint32_t keys, PyObject *const *values);

/* Data or state was looked at, or changed, that a program would not look at or change again. */
void flb_recorder_spoil(void);
/* The body of a composite as a program; inside: it is the operator's kernel. 1 done, 0 not applicable, -1
 * exception. */
int flb_decomposed_call(FlbOperator *op, PyObject *body, int inside, PyObject *const *values,
                        PyObject **result);
int flb_init_decomposed(PyObject *module);

int flb_check_each(FlbOperator *op, PyObject *each);
int flb_foreach_call(FlbOperator *op, PyObject *const *values, PyObject **result);

int flb_prepare(FlbOperator *op);
void flb_operator_reset(FlbOperator *op); /* but for its parameters */
void flb_free_parameters(FlbOperator *op);
PyObject *flb_set_signature(FlbOperator *op, PyObject *args, PyObject *kwargs);

/* Arguments as given to an operator, to values[n_parameters] (borrowed). 0: they don't fit. */
int flb_bind_exact(FlbOperator *op, PyObject *const *args, Py_ssize_t n, PyObject *kwnames,
                   PyObject **values);
/* Arguments that a program gave to an overload; values as bound, NULL where they couldn't be. -1 with
 * PyTorch's error for what its schema doesn't take; 0 for what surely fits and for the package's own calls, 1
 * for what may fit. */
int flb_check_overload(FlbOperator *op, PyObject *const *args, Py_ssize_t n, PyObject *kwnames,
                       PyObject *const *values);
/* Such a call of what may fit has failed: its error becomes PyTorch's where an argument is at fault. */
void flb_overload_failed(FlbOperator *op, PyObject *const *args, Py_ssize_t n, PyObject *kwnames);
extern PyObject *flb_overload_checker;
/* Arguments as users write them. 1: fits; values are new references. 0: doesn't. -1: can't tell, ask Python.
 * -2: exception. */
int flb_bind_user(FlbOperator *op, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, PyObject **values);
/* (args, kwargs) that call op with these values: defaults are left out. */
int flb_is_out(PyObject *name); /* a keyword's name: the tensor that a result goes to */
int flb_unbind(FlbOperator *op, PyObject *const *values, PyObject **args, PyObject **kwargs);
int flb_unpack(PyObject *const *args, Py_ssize_t n, PyObject *kwnames, PyObject **tuple, PyObject **dict);

/* Keys of a call: 0 with an exception set when one can't be told. */
uint32_t flb_scan(PyObject *const *args, Py_ssize_t n);
/* Calls the operator, from the highest of `keys` down. */
PyObject *flb_call(FlbOperator *op, uint32_t keys, PyObject *const *values);
/* The backend: call_plan, else kernel. */
PyObject *flb_backend(FlbOperator *op, PyObject *const *values);
PyObject *flb_python_key(FlbOperator *op, uint32_t keys, PyObject *args, PyObject *kwargs);
FlbFloating *flb_floating(void); /* of this thread */
PyObject *flb_quietly(PyObject *fn, PyObject *const *args, size_t nargsf, PyObject *kwnames);

int flb_any_override(PyObject *const *args, Py_ssize_t n); /* -1: exception */
int flb_packet_overridden(PyObject *const *args,
                          Py_ssize_t n); /* the same of a call of a packet; -1: exception */
int flb_operators_seen(
    void); /* whether a function mode is on that sees operators called by name: any but an autocast */
int flb_arguments_override(PyObject *const *args, Py_ssize_t n); /* modes aside */
/* The library's own calls of operators, as a formula of autograd makes them: no class of an argument is asked
 * from here to leave(). */
int flb_enter_library(void);
void flb_leave_library(int before);
PyObject *flb_library_call(PyObject *op, PyObject *const *args, Py_ssize_t n); /* op(*args) between the two */
int flb_classes_asked(void); /* whether calls of operators by name ask the classes of their arguments */
/* autocast.c: a call of a public function while an autocast is the innermost function mode. 1: *result is
 * set; 0: a case for Python; -1: an exception. */
enum { AUTOCAST_ARGUMENTS = 24 };
int flb_autocast(PyObject *func, PyObject *const *args, size_t nargsf, PyObject *kwnames, PyObject **result);
int flb_autocast_alone(
    void); /* it is the only function mode: what isn't a call of a function is as without it */
int flb_init_autocast(PyObject *module);
int flb_init_binder(void);
int flb_init_function(PyObject *module);
int flb_init_interpose(PyObject *module);
int flb_init_subscript(PyObject *module);
int flb_init_fake(PyObject *module), flb_init_layout(PyObject *module);
/* A call on fake tensors whose shapes are known already, or are after it: 1 done, 0 not mine, -1 exception.
 */
int flb_fake_call(FlbOperator *op, uint32_t keys, PyObject *const *values, PyObject **result);
/* Whether a number can be a Scalar: an int of at most 64 bits, one without a sign too. Else the error is
 * PyTorch's. */
static inline int flb_scalar_fits(PyObject *o) {
    int overflow;
    if (!PyLong_Check(o)) return 1;
    PyLong_AsLongLongAndOverflow(o, &overflow);
    if (!overflow) return 1;
    if (overflow > 0) {
        PyLong_AsUnsignedLongLong(o);
        if (!PyErr_Occurred()) return 1;
        PyErr_Clear();
    }
    PyErr_SetString(PyExc_OverflowError,
                    overflow > 0 ? "int too big to convert" : "can't convert negative int to unsigned");
    return 0;
}
#endif
