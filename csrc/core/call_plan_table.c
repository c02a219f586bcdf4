/* The call plans of an operator, found by the description of a call. */
#include "core/calls.h"

uint32_t flb_plan_generation = 1;

void flb_call_plans_clear(FlbCallPlans *r) {
    CallPlanEntry *e = r->entries;
    r->entries = NULL;
    r->used = 0;
    if (!e) return;
    for (int i = 0; i < R_TABLE; i++) {
        PyMem_Free(e[i].words);
        Py_XDECREF(e[i].call_plan);
        Py_XDECREF(e[i].objects);
    }
    PyMem_Free(e);
}
int flb_call_plans_traverse(FlbCallPlans *r, visitproc visit, void *arg) {
    for (int i = 0; r->entries && i < R_TABLE; i++) Py_VISIT(r->entries[i].call_plan);
    return 0;
}
static uint64_t hash_words(const int64_t *w, int n) {
    uint64_t h = 0x9E3779B97F4A7C15ull ^ (uint64_t)n;
    for (int i = 0; i < n; i++) {
        h = (h ^ (uint64_t)w[i]) * 0xff51afd7ed558ccdull;
        h ^= h >> 32;
    }
    return h;
}

int flb_call_plan_insert(FlbCallPlans *table, const Description *d, uint64_t hash, PyObject *call_plan) {
    if (!table->entries && !(table->entries = PyMem_Calloc(R_TABLE, sizeof(CallPlanEntry))))
        return PyErr_NoMemory(), -1;
    CallPlanEntry *e = NULL;
    for (int i = 0; i < R_PROBES && !e; i++) {
        CallPlanEntry *x = &table->entries[(hash + i) % R_TABLE];
        if (!x->words || (x->hash == hash && x->n == d->n && !memcmp(x->words, d->words, d->n * 8))) e = x;
    }
    if (!e)
        e = &table->entries[(hash + (hash >> 40) % R_PROBES) %
                            R_TABLE]; /* one of the neighbourhood makes room */
    int64_t *words = PyMem_Malloc(d->n * 8);
    if (!words) return PyErr_NoMemory(), -1;
    memcpy(words, d->words, d->n * 8);
    PyObject *objects = PyTuple_New(d->n_objects);
    if (!objects) return PyMem_Free(words), -1;
    for (int i = 0; i < d->n_objects; i++) PyTuple_SET_ITEM(objects, i, Py_NewRef(d->objects[i]));
    CallPlanEntry old = *e;
    *e = (CallPlanEntry){hash, words, Py_XNewRef(call_plan), objects, d->n, 0};
    PyMem_Free(old.words);
    Py_XDECREF(old.call_plan);
    Py_XDECREF(old.objects);
    return 0;
}

CallPlanEntry *flb_call_plan_find(FlbCallPlans *table, const Description *d, uint64_t *hash) {
    if (table->generation != flb_plan_generation) {
        flb_call_plans_clear(table);
        table->generation = flb_plan_generation;
    }
    *hash = hash_words(d->words, d->n);
    for (int i = 0; table->entries && i < R_PROBES; i++) {
        CallPlanEntry *e = &table->entries[(*hash + i) % R_TABLE];
        if (!e->words) break;
        if (e->hash == *hash && e->n == d->n && !memcmp(e->words, d->words, d->n * 8)) return e;
    }
    return NULL;
}
