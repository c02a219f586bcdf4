/* Finding and running call_plans. The description of a call is a row of 64-bit words: kind, layout and dtype
 * of each tensor, values of the other arguments. Python works a call plan out (eager/plans) and never
 * sees the calls that follow.
 *
 * Invariant: a call plan holds for every call with its description; what the description doesn't tell
 * (overlap of memory, a number that doesn't fit, an index out of bounds) is checked while it runs, before
 * anything is written, and then the call goes the Python way. */
#include "core/calls.h"

static int run(PyObject *call_plan, PyObject *op, Description *d, PyObject *const *values, Py_ssize_t n,
               PyObject **result) {
    if (Py_TYPE(call_plan) == &FlbKernel_Type) {
        int status = flb_kernel_run(call_plan, d, result);
        call_plan = flb_kernel_otherwise(call_plan);
        if (status || !call_plan) return status;
    }
    FlbCallPlan *r = (FlbCallPlan *)call_plan;
    return r->n_tensors == d->n_tensors && r->n_numbers == d->n_numbers
        ? flb_run_call_plan(r, op, d, values, n, result)
        : 0;
}
/* As run, once Python ran since the arguments were described: they may have been written meanwhile. */
static int run_again(PyObject *call_plan, FlbOperator *op, const Description *d, PyObject *const *values,
                     PyObject **result) {
    Description now;
    Py_ssize_t n = op->n_parameters;
    if (call_plan == Py_None || !flb_describe(&now, NULL, op->by_type, op->factors, values, n) ||
        now.n != d->n || memcmp(now.words, d->words, d->n * 8))
        return 0;
    return run(call_plan, (PyObject *)op, &now, values, n, result);
}
static PyObject *tuple_of(PyObject *const *values, Py_ssize_t n) {
    PyObject *all = PyTuple_New(n);
    for (Py_ssize_t i = 0; all && i < n; i++) PyTuple_SET_ITEM(all, i, Py_NewRef(values[i]));
    return all;
}
/* What a call counts for: the more elements, the sooner a graph pays. */
static int worth(const Description *d) {
    npy_intp most = 0;
    for (int i = 0; i < d->n_tensors; i++) {
        npy_intp n = PyArray_SIZE((PyArrayObject *)d->tensors[i]->array);
        most = n > most ? n : most;
    }
    return 1 + (int)(most >> 10 < R_OFTEN ? most >> 10 : R_OFTEN);
}
/* A description has come up R_OFTEN times: Python may have a compiled graph for it. The next call finds it.
 * NotImplemented: not yet. */
static int compile_often(FlbOperator *self, PyObject *call_plan, Description *d, PyObject *const *values) {
    PyObject *handler = flb_call_compiler, *made = NULL;
    if (!handler || handler == Py_None) return 0;
    PyObject *all = tuple_of(values, self->n_parameters), *held = all ? flb_description_hold(d) : NULL;
    uint32_t before = flb_plan_generation;
    Py_INCREF(call_plan);
    if (held) made = PyObject_CallFunctionObjArgs(handler, self, all, call_plan, NULL);
    uint64_t hash;
    if (made && made != Py_None && before == flb_plan_generation) {
        CallPlanEntry *e = flb_call_plan_find(&self->call_plans, d, &hash);
        if (e && made == Py_NotImplemented) e->calls = 0;
        else if (e && e->call_plan == call_plan && Py_TYPE(made) == &FlbKernel_Type)
            Py_SETREF(e->call_plan, Py_NewRef(made));
    }
    int status = made ? 0 : -1;
    Py_XDECREF(made);
    Py_DECREF(call_plan);
    Py_XDECREF(held);
    Py_XDECREF(all);
    return status;
}
/* The shape rule of an operator whose kernel doesn't look at sizes itself: -1 with what it refuses. */
static int ask_rule(FlbOperator *self, PyObject *const *values) {
    PyObject *all = tuple_of(values, self->n_parameters);
    PyObject *r = all ? PyObject_CallFunctionObjArgs(flb_shape_checker, self, all, NULL) : NULL;
    Py_XDECREF(all);
    Py_XDECREF(r);
    return r ? 0 : -1;
}
/* A description that is met for the first time is noted, once the shape rule has taken the arguments. Python
 * ran meanwhile: what isn't noted, since they aren't what they were, is looked at again. */
static int note_first(FlbOperator *self, Description *d, uint64_t hash, PyObject *const *values,
                      PyObject **result) {
    FlbCallPlans *table = &self->call_plans;
    if (!self->rule_first) return flb_call_plan_insert(table, d, hash, NULL);
    uint32_t before = flb_plan_generation;
    PyObject *held = flb_description_hold(d);
    int status = held ? ask_rule(self, values) : -1;
    Description now;
    if (!status &&
        (!flb_describe(&now, NULL, self->by_type, self->factors, values, self->n_parameters) ||
         now.n != d->n || memcmp(now.words, d->words, d->n * 8)))
        status = flb_call_plan_call(self, values, result);
    else if (!status && before == flb_plan_generation && table->generation == flb_plan_generation)
        status = flb_call_plan_insert(table, d, hash, NULL);
    Py_XDECREF(held);
    return status;
}
int flb_call_plan_call(FlbOperator *self, PyObject *const *values, PyObject **result) {
    PyObject *op = (PyObject *)self, *make_plan = flb_call_planner;
    FlbCallPlans *table = &self->call_plans;
    uint64_t by_type = self->by_type, factors = self->factors;
    Py_ssize_t n = self->n_parameters;
    Description d;
    uint64_t hash;
    if (!flb_describe(&d, NULL, by_type, factors, values, n))
        return self->rule_first ? ask_rule(self, values) : 0;
    if (self->by_numbers && d.n_tensors == 1) {
        int status = flb_view_by_numbers(self, &d, values, result);
        if (status) return status;
    }
    CallPlanEntry *found = flb_call_plan_find(table, &d, &hash);
    PyObject *call_plan;
    if (found && found->call_plan) {
        call_plan = Py_NewRef(found->call_plan);
        if (found->calls < R_OFTEN && (found->calls += worth(&d)) >= R_OFTEN && !self->is_view) {
            uint32_t before = flb_plan_generation;
            int status = compile_often(self, call_plan, &d, values);
            /* This call runs the same code as those before it: the general way may add in another order. */
            if (!status && before == flb_plan_generation)
                status = run_again(call_plan, self, &d, values, result);
            Py_DECREF(call_plan);
            return status;
        }
        if (call_plan == Py_None) return Py_DECREF(call_plan), 0;
    } else {
        if (!found && !self->is_view) return note_first(self, &d, hash, values, result);
        PyObject *all = tuple_of(values, n);
        if (!all) return -1;
        uint32_t before = flb_plan_generation;
        PyObject *held = flb_description_hold(&d);
        call_plan = held ? PyObject_CallFunctionObjArgs(make_plan, op, all, NULL) : NULL;
        Py_DECREF(all);
        int status = !call_plan ? -1 : call_plan == Py_None ? 0 : 1;
        if (status > 0 && Py_TYPE(call_plan) != &FlbCallPlan_Type && Py_TYPE(call_plan) != &FlbKernel_Type)
            status = (PyErr_SetString(PyExc_TypeError, "a CallPlan, a Kernel or None is needed"), -1);
        if (status >= 0 && before == flb_plan_generation && table->generation == flb_plan_generation &&
            flb_call_plan_insert(table, &d, hash, call_plan) < 0)
            status = -1;
        if (status > 0) status = run_again(call_plan, self, &d, values, result);
        Py_XDECREF(held);
        Py_XDECREF(call_plan);
        return status;
    }
    int status = run(call_plan, op, &d, values, n, result);
    Py_DECREF(call_plan);
    return status;
}
