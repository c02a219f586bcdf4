/* The steps of a launch in their order. Those that don't depend on one another run side by side, and the GIL
 * is released as long as no step wants it. Steps may be timed, or recorded as events. */
#include "runtime/launch.h"
#include <string.h>
#include <time.h>

int flb_timing;

/* Steps that don't depend on one another, each made by one thread; what they report is written down as if
 * they had run in turn. */
typedef struct {
    Call *c;
    int first;
    int64_t (*status)[STATUS_WORDS];
    double *seconds;
} Together;

static int64_t monotonic(void) {
    struct timespec t = {0};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static double now(void) {
    struct timespec t = {0};
    clock_gettime(flb_timing, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void run_member(void *context, int64_t begin, int64_t end) {
    Together *t = context;
    char *pointers[MOST_POINTERS];
    for (int64_t k = begin; k < end; k++) {
        Call own = *t->c;
        own.pointers = pointers;
        memset(own.status, 0, sizeof own.status);
        double start = t->seconds ? now() : 0;
        flb_run_native(&own, &t->c->g->steps[t->first + k]);
        memcpy(t->status[k], own.status, sizeof own.status);
        if (t->seconds) t->seconds[k] = now() - start;
    }
}

/* The step, or all that run beside it; how many that are, or all of the graph's when there is no memory.
 * NOTE: as run_native. */
static int run_next(Call *c, int i, double *seconds) {
    int n = c->g->together[i] > 1 ? c->g->together[i] : 1;
    if (flb_take_slots(c, i + n) < 0) return c->g->nsteps;
    if (n == 1) flb_run_native(c, &c->g->steps[i]);
    else {
        int64_t status[MOST_TOGETHER][STATUS_WORDS];
        Together t = {c, i, status, seconds};
        flb_parallel(run_member, &t, n, 1);
        for (int k = 0; k < n; k++)
            if (status[k][0]) memcpy(c->status, status[k], sizeof c->status);
    }
    flb_give_slots(c, i + n);
    return n;
}

#define WANTS_GIL(step) ((step).kind == STEP_CALL || (step).kind == STEP_BIND)

/* How many steps ran, -1 with an exception. */
static int run_step(Call *c, int i, double *seconds) {
    Step *s = &c->g->steps[i];
    int n;
    if (WANTS_GIL(*s)) {
        if (flb_take_slots(c, i + 1) < 0) return c->g->nsteps;
        int failed = (s->kind == STEP_CALL ? flb_run_call(c, s) : flb_run_bind(c, s)) < 0;
        flb_give_slots(c, i + 1);
        return failed ? -1 : 1;
    }
    if (c->g->light) return run_next(c, i, seconds);
    Py_BEGIN_ALLOW_THREADS n = run_next(c, i, seconds);
    Py_END_ALLOW_THREADS return n;
}

/* Steps side by side share the time that they took together in proportion to what each took on its thread. */
static int run_timed(Call *c, int begin, int end) {
    Graph *g = c->g;
    if (!g->seconds && !(g->seconds = PyMem_Calloc(g->nsteps + 1, sizeof(double))))
        return PyErr_NoMemory(), -1;
    for (int i = begin, n; i < end && !c->status[0]; i += n) {
        double each[MOST_TOGETHER] = {0}, sum = 0, start = now();
        if ((n = run_step(c, i, each)) < 0) return -1;
        if (c->starved) break;
        double whole = now() - start;
        for (int k = 0; k < n; k++) sum += each[k];
        for (int k = 0; k < n; k++) g->seconds[i + k] += sum > 0 ? whole * each[k] / sum : whole / n;
    }
    return 0;
}

/* As run_range, each step an event. Steps side by side are one. */
static int run_recorded(Call *c, int begin, int end) {
    for (int i = begin, n; i < end && !c->status[0]; i += n) {
        int64_t start = monotonic();
        if ((n = run_step(c, i, NULL)) < 0) return -1;
        if (c->starved) break;
        flb_api->event_step(i, n, start, monotonic());
    }
    return 0;
}

static int run_range(Call *c, int begin, int end) {
    Graph *g = c->g;
    if (*flb_api->events) return run_recorded(c, begin, end);
    if (flb_timing) return run_timed(c, begin, end);
    if (!g->has_call) {
        if (g->light) {
            for (int i = begin; i < end && !c->status[0];) i += run_next(c, i, NULL);
        } else {
            Py_BEGIN_ALLOW_THREADS for (int i = begin; i < end && !c->status[0];) i += run_next(c, i, NULL);
            Py_END_ALLOW_THREADS
        }
        return 0;
    }
    for (int i = begin; i < end && !c->status[0];) { /* after a failure sizes that follow would be wrong */
        if (WANTS_GIL(g->steps[i]) || g->light) {
            int n = run_step(c, i, NULL);
            if (n < 0) return -1;
            i += n;
            continue;
        }
        Py_BEGIN_ALLOW_THREADS while (i < end && !WANTS_GIL(g->steps[i]) && !c->status[0]) i +=
            run_next(c, i, NULL);
        Py_END_ALLOW_THREADS
    }
    return 0;
}

int flb_run_steps(Call *c) {
    Graph *g = c->g;
    if (!c->consumes) return run_range(c, 0, g->nsteps);
    for (int begin = 0, end; begin < g->nsteps || !begin; begin = end) {
        for (end = begin + 1; end < g->nsteps && !g->stops[end]; end++);
        if (flb_turn_over(c, begin, end) < 0) return -1;
        if (end > g->nsteps) break; /* there is none */
        if (run_range(c, begin, end) < 0) return -1;
        if (c->starved) break;
    }
    return 0;
}
