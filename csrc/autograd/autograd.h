/* The backward graph: nodes, edges, saved values, the rules by which operators are recorded. Shared by
 * csrc/autograd_*.c.
 *
 * Ownership, so that nothing but a user's own cycle needs the collector:
 *   tensor -> grad_fn -> edges -> ... -> AccumulateGrad -> leaf; a leaf only borrows its accumulator
 * (FlbLeaf); a saved result is kept as a detached alias and gets its history back when it is unpacked; a view
 * owns its root (FlbView), a CopySlices node keeps only the geometry of what it wrote. */
#ifndef FLB_AUTOGRAD_H
#define FLB_AUTOGRAD_H
#include "core/calls.h"

typedef struct FlbNode FlbNode;
typedef struct FlbPlan FlbPlan;

typedef struct {
    FlbNode *node; /* owned; NULL: nothing flows */
    int nr;        /* which result of node */
} FlbEdge;

/* Shape, dtype and device of a tensor. */
typedef struct {
    PyObject *dtype, *device; /* owned; dtype NULL: not a tensor */
    PyObject *shape;          /* owned Size; NULL: dims hold it */
    Py_ssize_t *dims;         /* in the node's block, when shape is NULL */
    int ndim;
} FlbMeta;

enum { SAVED_NOTHING, SAVED_TENSOR, SAVED_LIKE, SAVED_OTHER, SAVED_LIST, SAVED_LIKE_LIST };
/* One value kept for the backward pass. */
typedef struct {
    PyObject *value;    /* tensor; Size of a LIKE; list of SavedTensor; any object */
    PyObject *aux;      /* LIKE: device; TENSOR with hooks: the unpack hook (value is what pack returned) */
    PyObject *dtype;    /* LIKE */
    PyObject *forward;  /* TENSOR with hooks: what holds its tangent, or NULL; else the tensor has it */
    Py_ssize_t version; /* of the tensor when it was saved */
    int nr;             /* number of the node's result it is, -1 for another tensor */
    uint8_t kind;
    uint8_t released;
} FlbSaved;

/* What few nodes have. */
typedef struct {
    PyObject *tensor_hooks; /* dict: result number -> dict of hooks */
    PyObject *pre_hooks;    /* dict of hooks on all cotangents */
    PyObject *post_hooks;   /* dict of hooks after the node ran */
    PyObject *retained;     /* dict: result number -> weakref of the tensor whose .grad is kept */
    PyObject *metadata;     /* dict of the user's */
} FlbNodeExtra;

/* apply(self, cts, grads): cts[n_outputs] borrowed, NULL where nothing came; writes new references or NULL to
 * grads[n_edges]. */
typedef int (*FlbApply)(FlbNode *self, PyObject **cts, PyObject **grads);

struct FlbNode {
    PyObject_HEAD
    FlbApply apply;
    FlbEdge *edges;
    FlbMeta *outputs;
    void *block; /* memory of edges, outputs and, for OpNode, saved */
    FlbNodeExtra *extra;
    PyObject *name;
    PyObject *dict, *weakrefs;
    uint64_t sequence_nr;
    int n_edges, n_outputs;
    uint8_t materialize; /* zeros are made for cotangents that never came */
};

enum { SAVE_ARGUMENT, SAVE_LIKE, SAVE_RESULT, SAVE_BY_COLUMNS };
typedef struct {
    int what, index;
    PyObject *name; /* owned */
} FlbSave;

enum { FLB_MISSED = 8 };
/* A formula chosen for a set of arguments: what it reads, the function, and the programs recorded of it
 * (autograd/program.c). */
struct FlbPlan {
    PyObject_HEAD
    uint64_t needs;      /* bit i: argument i asks for a gradient */
    PyObject *signature; /* tuple with the non-tensor arguments that selected this plan, or NULL when they
                            don't matter */
    PyObject *run;       /* run(cts, values) -> a cotangent (or a list of them) for each needed argument */
    FlbSave *saves;
    int n_saves;
    struct FlbProgram *programs; /* most recently used first */
    int n_programs, failures;
    uint64_t missed[FLB_MISSED]; /* hashes of descriptions met once */
    unsigned next_missed;
};

/* How calls of one operator are recorded. */
typedef struct FlbRule {
    PyObject_HEAD
    PyObject *op;        /* owned (a cycle with the operator, which lives for ever) */
    PyObject *name;      /* of the node: "AddBackward0" */
    PyObject *node_type; /* class of that name, made when Python first looks at a node; or NULL */
    PyObject *plans;     /* list of FlbPlan */
    uint64_t outputs;    /* bit i: result i is differentiable when it is floating */
    uint64_t inputs; /* bit i: argument i has a derivative; it has an edge even when no gradient is asked for,
                        as in PyTorch */
    int n_args;
    uint8_t native;  /* a functional operator that C code records */
    uint8_t nothing; /* never records */
    uint8_t is_view;
    uint8_t by_value;           /* the plan depends on the non-tensor arguments */
    uint8_t bare;               /* cotangents that never came stay NULL */
    struct FlbRule *functional; /* of an in-place operator: the rule of the operator it is made from */
} FlbRule;

typedef struct {
    FlbNode base;
    FlbRule *rule;
    FlbPlan *plan;
    FlbSaved *saved; /* plan->n_saves of them */
    uint64_t needs;
    PyObject *lists; /* tuple: for each argument with edges how many when it is a list, else -1; NULL: no
                        lists, one edge each */
} FlbOpNode;

/* Of a leaf. */
typedef struct {
    PyObject_HEAD
    FlbNode *accumulator;         /* borrowed; it takes itself out when it goes */
    PyObject *hooks, *post_hooks; /* dicts or NULL */
} FlbLeaf;

typedef struct {
    FlbNode base;
    PyObject *variable; /* the leaf */
} FlbAccumulate;

/* How a view was made: recorded, with recording off, or as the result of a custom Function, in whose history
 * it is. */
enum { VIEW_PLAIN, VIEW_NO_GRAD, VIEW_INFERENCE, VIEW_FUNCTION };
/* Of a view: what it is a view of, at the end of any chain. */
typedef struct {
    PyObject_HEAD
    FlbTensor *root;
    PyObject *steps; /* NULL: root and view are strided over one memory, which is the whole map. Else (steps
                        before, op, rest, which) */
    Py_ssize_t generation; /* storage->recorded when its history was right */
    uint8_t creation;
} FlbView;

typedef struct {
    PyObject_HEAD
    FlbSaved slot;
    PyObject *what; /* for the error text */
} FlbSavedTensor;

extern PyTypeObject FlbNode_Type, FlbOpNode_Type, FlbAccumulate_Type, FlbLeaf_Type, FlbView_Type,
    FlbSavedTensor_Type, FlbPlan_Type, FlbRule_Type;
extern PyObject *flb_like_class; /* Like(shape, dtype, device) */

/* autograd/node.c, node_edges.c, node_op.c */
int flb_node_setup(FlbNode *node, int n_edges, int n_outputs, Py_ssize_t n_dims, size_t extra_bytes,
                   void **extra);
int flb_meta_of(FlbMeta *m, PyObject *tensor, Py_ssize_t **dims);
int flb_meta_dims(PyObject *tensor); /* how many dims flb_meta_of takes */
PyObject *flb_meta_shape(const FlbMeta *m);
int flb_edge_of(FlbTensor *t, FlbEdge *edge); /* owned; node NULL without history */
FlbNodeExtra *flb_node_extra(FlbNode *node);
PyObject *flb_node_name(FlbNode *node);
int flb_node_named(PyObject *node); /* -1 with an exception */
int flb_node_release(FlbNode *node);
void flb_node_number(FlbNode *node);
void flb_set_history(FlbTensor *t, FlbNode *node, int nr);
/* autograd/saved.c */
int flb_save(FlbSaved *s, PyObject *tensor, int nr);
PyObject *flb_saved_value(FlbSaved *s, FlbNode *node, PyObject *what, int history);
int flb_saved_counters(
    FlbSaved *s,
    PyObject *list); /* appends what counts the writes to the tensors that are kept as they are */
void flb_saved_share(FlbSaved *s, int nr,
                     PyObject *forward); /* result `nr`, if that is what it is, has a tangent now */
void flb_saved_clear(FlbSaved *s);       /* tensors go, numbers and shapes stay readable */
void flb_saved_free(FlbSaved *s);
PyObject *flb_saved_list(PyObject *list);
int flb_saved_register(FlbSaved *s, PyObject *pack, PyObject *unpack); /* hooks for this value alone */
/* autograd/raw_saved.c */
PyObject *flb_raw_saved(FlbOpNode *node, int at);
int flb_saved_names(FlbOpNode *node, PyObject *list);
int flb_init_raw_saved(void);
static inline FlbView *flb_view(FlbTensor *t) {
    return t->autograd && Py_TYPE(t->autograd) == &FlbView_Type ? (FlbView *)t->autograd : NULL;
}
/* autograd/view_refusals.c: RuntimeError for a view that isn't plain, which is to be written or whose root
 * was. */
int flb_refuse_written_view(const FlbTensor *t, const FlbView *v);
int flb_refuse_view_of_written(const FlbTensor *t, const FlbView *v);
/* autograd/record.c, rules.c */
int flb_record(FlbRule *rule, PyObject *const *full, PyObject *result);
FlbRule *flb_rule_of(PyObject *op);
int flb_same_value(PyObject *a, PyObject *b);
/* autograd/apply.c */
extern int flb_anomaly;
int flb_op_apply(FlbNode *node, PyObject **cts, PyObject **grads);
int flb_formula_apply(FlbOpNode *node, PyObject **cts, PyObject **grads);
PyObject *flb_call_formula(FlbOpNode *node, PyObject *cts, PyObject **values);
int flb_spread(FlbOpNode *node, PyObject *got, PyObject **grads);
int flb_fit(FlbNode *from, int i, FlbEdge *edge, PyObject **grad);
int flb_anomaly_note(FlbNode *node);
int flb_anomaly_apply(FlbNode *node, PyObject **cts, PyObject **grads);
/* autograd/program.c: 1 done, 0 not applicable, -1 exception */
int flb_program_apply(FlbOpNode *node, PyObject **cts, PyObject **grads);
void flb_programs_free(FlbPlan *plan);

static inline int flb_plain(PyObject *o) {
    FlbTensor *t = (FlbTensor *)o;
    return (Py_TYPE(o) == flb_tensor_class || Py_TYPE(o) == flb_parameter_class) && t->array && !t->keys;
}
#endif
