/* How calls of operators are recorded: rules and plans (rules.c), which record.c reads. */
#ifndef FLB_RULES_H
#define FLB_RULES_H
#include "autograd/autograd.h"

/* The plan of a call whose arguments `needs` ask for gradients: one of the rule's, or what Python chooses and
 * the rule keeps. A new reference; NULL with an exception. */
FlbPlan *flb_plan_of(FlbRule *rule, PyObject *const *full, uint64_t needs);
/* describe(op) -> Rule; plan(op, all arguments, positions) -> Plan. */
void flb_use_rules(PyObject *describe, PyObject *plan);
#endif
