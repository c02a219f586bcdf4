/* How long a graph's slots live. Large intermediate results have memory of their own from their first step to
 * their last. For calls that consume their inputs: saved values are freed after their last use, gradients get
 * memory when they are made.
 *
 * Memory of intermediate results needs no GIL. Arrays are made and freed with the GIL held, so it happens at
 * few stops, not at every step: another thread may have to be waited for at each. */
#include "runtime/graph.h"
#include <stdlib.h>

#define STOPS 24 /* about as many in a graph */

static void touch(Life *lives, const Step *s, int i) {
    for (int j = 0; j < s->nargs + s->nresults; j++) {
        int slot = j < s->nargs ? s->args[j] : s->results[j - s->nargs];
        if (slot < 0) continue;
        if (lives[slot].last < 0) lives[slot].first = i;
        lives[slot].last = i;
    }
    for (int j = 0; s->rows && j < s->rows->nsteps; j++) touch(lives, &s->rows->steps[j], i);
}

static int by_step(const void *a, const void *b) {
    const Owned *x = a, *y = b;
    return x->step != y->step ? (x->step > y->step) - (x->step < y->step)
                              : (x->slot > y->slot) - (x->slot < y->slot);
}

/* 0, or -1 with an exception. */
int flb_graph_turns(Graph *g) {
    int n = 0;
    for (int i = 0; i < g->nslots; i++) n += g->slots[i].kind == SLOT_OWN;
    if (!n) return 0;
    Life *lives = PyMem_Calloc(g->nslots, sizeof(Life));
    g->takes = PyMem_Calloc(n, sizeof(Owned)), g->gives = PyMem_Calloc(n, sizeof(Owned));
    if (!lives || !g->takes || !g->gives) {
        PyMem_Free(lives);
        return PyErr_NoMemory(), -1;
    }
    for (int i = 0; i < g->nslots; i++) lives[i].last = -1;
    for (int i = 0; i < g->nsteps; i++) touch(lives, &g->steps[i], i);
    for (int i = 0; i < g->nslots; i++) {
        if (g->slots[i].kind != SLOT_OWN || lives[i].last < 0) continue;
        g->takes[g->nowned] = (Owned){lives[i].first, i};
        g->gives[g->nowned++] = (Owned){lives[i].last, i};
    }
    PyMem_Free(lives);
    qsort(g->takes, g->nowned, sizeof(Owned), by_step);
    qsort(g->gives, g->nowned, sizeof(Owned), by_step);
    return 0;
}

/* Bytes of an input or output; where sizes are symbols, each counts as one. */
static double weight(const Graph *g, const Slot *s) {
    if (s->kind != SLOT_INPUT && s->kind != SLOT_OUTPUT) return 0;
    if (g->dynamic) return 1;
    double bytes = (double)PyDataType_ELSIZE(s->layout.descr);
    for (int d = 0; d < s->layout.ndim; d++) bytes *= (double)g->frame[s->layout.at + d];
    return bytes;
}

/* 0, or -1 with an exception. */
int flb_graph_lifetimes(Graph *g) {
    if (g->lives) return 0;
    Life *lives = PyMem_Calloc(g->nslots + 1, sizeof(Life));
    double *turned = PyMem_Calloc(g->nsteps + 2, sizeof(double)), all = 0,
           since = 0; /* bytes that change hands before each step */
    g->stops = PyMem_Calloc(g->nsteps + 1, 1);
    if (!lives || !turned || !g->stops) {
        PyMem_Free(lives);
        PyMem_Free(turned);
        PyMem_Free(g->stops);
        g->stops = NULL;
        return PyErr_NoMemory(), -1;
    }
    for (int i = 0; i < g->nslots; i++) lives[i].last = -1;
    for (int i = 0; i < g->nsteps; i++) touch(lives, &g->steps[i], i);
    for (int i = 0; i < g->noutputs; i++)
        if (g->outputs[i].kind == OUT_SLOT || g->outputs[i].kind == OUT_VALUE)
            lives[g->outputs[i].slot].kept = 1;
    for (int i = 0; i < g->nslots; i++) {
        const Slot *s = &g->slots[i];
        if (s->kind == SLOT_CONSTANT) lives[i].kept = 1;
        double w = weight(g, s);
        all += w;
        turned[s->kind == SLOT_OUTPUT ? lives[i].first : lives[i].last + 1] += w;
    }
    for (int i = 0; i < g->nsteps; i++) {
        since += turned[i];
        if (!i || (g->together[i] && since * STOPS >= all)) g->stops[i] = 1, since = 0;
    }
    PyMem_Free(turned);
    g->lives = lives;
    return 0;
}
