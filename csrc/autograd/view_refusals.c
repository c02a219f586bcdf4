/* Views whose history can't be told once their memory is written: those made with recording off, and results
 * of custom Functions, whose backward the history of the base would replace. */
#include "autograd/autograd.h"

static int refuse_result_of_function(const FlbTensor *t, const char *happened) {
    static const char text[] =
        "Output %d of %U is a view and %s. This view was created inside a custom Function (or "
        "because an input was returned as-is) and the autograd logic to handle view+inplace would"
        " override the custom backward associated with the custom Function, leading to incorrect "
        "gradients. This behavior is forbidden. You can fix this by cloning the output of the "
        "custom Function.";
    PyObject *name = t->grad_fn ? flb_node_name((FlbNode *)t->grad_fn) : PyUnicode_FromString("a Function");
    if (name) PyErr_Format(PyExc_RuntimeError, text, t->output_nr, name, happened);
    Py_XDECREF(name);
    return -1;
}

static int refuse(const FlbTensor *t, const FlbView *v, const char *happened) {
    static const char text[] =
        "A view was created in %s mode and %s %s. Given that this use case is ambiguous and "
        "error-prone, it is forbidden. You can clarify your code by moving both the view and the "
        "inplace either both inside the %s block (if you don't want the inplace to be tracked) or"
        " both outside (if you want the inplace to be tracked).";
    if (v->creation == VIEW_FUNCTION) return refuse_result_of_function(t, happened);
    int inference = v->creation == VIEW_INFERENCE;
    PyErr_Format(PyExc_RuntimeError, text, inference ? "inference" : "no_grad", happened,
                 inference ? "in normal mode" : "with grad mode enabled",
                 inference ? "inference_mode" : "no_grad");
    return -1;
}

int flb_refuse_written_view(const FlbTensor *t, const FlbView *v) {
    return refuse(t, v, "is being modified inplace");
}

int flb_refuse_view_of_written(const FlbTensor *t, const FlbView *v) {
    return refuse(t, v, "its base or another view of its base has been modified inplace");
}

int flb_check_view_written(FlbTensor *t) {
    FlbView *v = flb_view(t);
    if (!v || v->creation == VIEW_PLAIN) return 0;
    int asks = flb_requires_grad(v->root);
    if (!asks && v->creation == VIEW_FUNCTION) asks = flb_requires_grad(t);
    return asks > 0 ? flb_refuse_written_view(t, v) : asks;
}
