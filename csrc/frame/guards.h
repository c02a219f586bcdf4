/* The guard tree: what a captured graph assumed about its call, checked without running Python code.
 *
 * A tree is a flat program. Each node takes its value from an earlier node by one access (argument, global,
 * attribute, item ...) and has leaf checks. Parents come before children, so one pass evaluates everything
 * and each shared path once. The Python mirror of the same program is dynamo/guards/tree.py; in strict mode
 * both run and must agree.
 *
 * guards.c walks the tree, guards_values.c compares constants, tensors and arrays, guards_sizes.c the
 * relations between numbers, guards_build.c makes a tree from Python's tuples; all its indices are checked
 * there. */
#ifndef FLB_GUARDS_H
#define FLB_GUARDS_H
#include "frame/frame.h"
#include <structmember.h>
#define PY_ARRAY_UNIQUE_SYMBOL flambeau_frame_ARRAY_API
#ifndef FLB_IMPORT_ARRAY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

enum {
    A_ARG,
    A_FUNC,
    A_GLOBALS,
    A_CONST,
    A_CELL,
    A_ATTR,
    A_GETATTR,
    A_ITEM,
    A_KEY,
    A_INSTANCE_DICT,
    A_TYPE_LOOKUP,
    A_TYPE,
    A_GLOBAL,
    A_CALL,
    A_CLOSURE_CELL,
    A_COUNT
};
/* What a GLOBAL_STATE check compares, in the order of its payload. */
enum {
    S_GRAD_ENABLED,
    S_INFERENCE,
    S_FUNCTION_DISABLED,
    S_FUNCTION_MODES,
    S_DISPATCH_MODES,
    S_TRANSFORMS,
    S_DEVICES,
    S_COUNT
};
enum {
    C_TYPE,
    C_ID,
    C_EQUALS,
    C_TENSOR,
    C_NDARRAY,
    C_NDARRAY_FEW,
    C_LENGTH,
    C_KEYS,
    C_HAS_KEY,
    C_NO_KEY,
    C_GLOBAL_STATE,
    C_NOT_ALIASED,
    C_SAME_AS,
    C_CALL,
    C_NO_INSTANCE_KEY,
    C_NO_OVERLAP,
    C_DICT_FACTS,
    C_TYPE_FACTS,
    C_CODE,
    C_EMPTY,
    C_SIZES,
    C_CONTEXT,
    C_COUNT
};

typedef struct {
    PyTypeObject *type;
    PyObject *dtype, *device;
    int ndim, requires_grad, inference;
    int filled; /* tensor: all sizes are known and none is zero */
    uint32_t keys;
    Py_ssize_t
        dims[]; /* shape, then strides (tensor: elements, ndarray: bytes); ANY: a symbol, SIZES says more */
} ArrayFacts;
#define ANY PY_SSIZE_T_MIN

/* SIZES: relations between numbers of the call, as one postfix program. An operand is a size or stride of a
 * tensor or array, or a number. */
enum { V_SIZE, V_STRIDE, V_INT, V_FLOAT };
enum {
    P_CONST,
    P_OPERAND,
    P_ADD,
    P_MUL,
    P_FLOORDIV,
    P_MOD,
    P_MIN,
    P_MAX,
    P_EQ,
    P_NE,
    P_GE,
    P_AND,
    P_OR,
    P_NOT,
    P_FLOAT,
    P_FCONST,
    P_FADD,
    P_FSUB,
    P_FMUL,
    P_FDIV,
    P_FLT,
    P_FLE,
    P_FEQ,
    P_FNE,
    P_FGT,
    P_FGE,
    P_CALL,
    P_CHECK
};
#define FEW_SIZES 64 /* operands that are read without asking for memory */
#define MAX_DEPTH 64 /* of the stack that relations are evaluated on */
typedef struct {
    Py_ssize_t n_operands, n_code;
    long *operands;      /* triples: slot, what, dimension */
    long *code;          /* operations; const, operand, fconst and call take the next number */
    PyObject *constants; /* tuple: ints, floats, callables of all operands */
} Sizes;

/* One thing assumed of a dict or a class: what is found under a name, or that nothing is (value is ABSENT).
 */
typedef struct {
    PyObject *key;
    PyObject *after; /* types: the lookup starts behind this class of the MRO; NULL: at the front */
    PyObject *value;
    int exact; /* this very object, rather than an equal constant */
} Fact;

typedef struct {
    int kind;
    PyObject *payload;
    void *data; /* ArrayFacts, Facts, int array of node numbers, an object (CONTEXT_VAR: last value that
                   held), or NULL */
    Py_ssize_t n;
    uint64_t version; /* facts: of the dict or type when they were last found to hold */
} Check;

typedef struct {
    int access, parent;
    Py_ssize_t index;
    PyObject *key;
    int n_checks;
    Check *checks;
    uint64_t version; /* key access: of the dict when `cached` (borrowed) was its value */
    PyObject *cached;
} Node;

typedef struct {
    int kind;            /* of the check */
    Py_ssize_t argument; /* of NDARRAY_MATCH, NDARRAY_FEW and TYPE_MATCH */
    PyTypeObject *type;
    const ArrayFacts *array;
    const Check *check; /* the others */
    PyObject *value;    /* the dict or variable that it is of; NULL: the function's globals */
} FlbGlance;

typedef struct {
    PyObject_HEAD
    Py_ssize_t n;
    Node *nodes;
    PyObject *mirror; /* callable(func, args) -> bool, for strict mode */
    int failed_node, failed_check, failed_fact;
    Py_ssize_t n_args;  /* how many arguments it reads */
    int quiet;          /* nothing in it runs Python while all remembered versions hold */
    FlbGlance *glances; /* all of its checks, where they are the types of arguments, what arrays among them
                           are like, and what globals and other dicts hold; else NULL */
    Py_ssize_t n_glances;
} Tree;

extern PyTypeObject FlbTree_Type;
extern PyObject *flb_absent; /* the object that stands for "nothing is found there" */

/* After a call into Python failed: 0 for an ordinary exception, which means that the guard doesn't hold; -1
 * for one that must not be lost: an interrupt, and memory that ran out. */
static inline int failed(void) {
    if (!PyErr_Occurred()) return 0;
    if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError)) return -1;
    PyErr_Clear();
    return 0;
}

/* guards_values.c. 1: holds, 0: doesn't, -1: an exception that must not be lost. */
int flb_equal_constants(PyObject *a, PyObject *b);
int flb_tensor_fits(PyObject *v, const ArrayFacts *f);
int flb_ndarray_fits(PyObject *v, const ArrayFacts *f);
/* Whether its sizes are the facts' at least, and its elements `keys` at most (0: any number). */
int flb_ndarray_fits_few(PyObject *v, const ArrayFacts *f);
int flb_all_distinct(PyObject **slots, const long *idx, Py_ssize_t n);
int flb_no_overlap(PyObject **slots, const long *idx, Py_ssize_t n);
/* guards_sizes.c; *relation: the number of the one that failed, -1 when an operand is none. */
int flb_sizes_hold(const Sizes *p, PyObject **slots, int *relation);
Sizes *flb_sizes_build(PyObject *payload, int n_slots);
void flb_sizes_free(Sizes *p);
int flb_sizes_names(PyObject *module);
/* guards.c */
int flb_guards_quiet(const Tree *t);
/* Makes `glances`; -1 with an exception when there is no memory. */
int flb_guards_glances(Tree *t);
/* guards_build.c */
long *flb_longs(PyObject *seq, Py_ssize_t *n);
int flb_add_names(PyObject *module, const char *name, const char *const *names, int n);
#endif
