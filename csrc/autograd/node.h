/* Nodes of the backward graph: what the files of their kinds share. node.c: Node itself; node_edges.c: where
 * the cotangent of a tensor goes; node_leaf.c: leaves and AccumulateGrad; node_op.c: the node of an
 * operator's call; node_functions.c: the module's functions about them. */
#ifndef FLB_NODE_H
#define FLB_NODE_H
#include "autograd/autograd.h"

/* node.c: the parts of a Node's type that those of other nodes call. */
int flb_node_traverse(FlbNode *n, visitproc visit, void *arg);
int flb_node_clear(FlbNode *n);
void flb_node_free(FlbNode *n);
PyObject *flb_node_count(PyObject *module, PyObject *unused);
PyObject *flb_set_hook_handle(PyObject *module, PyObject *fn);

/* node_leaf.c. What autograd keeps on a leaf, borrowed, and the node at which graphs end there, owned; both
 * are made when they are first asked for. */
FlbLeaf *flb_leaf_of(FlbTensor *t);
FlbNode *flb_accumulator_of(FlbTensor *t);

/* node_op.c: saved tensors go. */
void flb_op_node_drop(FlbOpNode *n);
#endif
