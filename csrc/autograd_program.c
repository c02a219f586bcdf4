/* Programs. */
#include "autograd.h"
int flb_program_apply(FlbOpNode *node, PyObject **cts, PyObject **grads) { return 0; }
void flb_programs_free(FlbPlan *plan) {}
