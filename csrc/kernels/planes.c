/* A convolution and the kernels that read its result plane by plane as one launch: the thread that has
 * finished some planes takes them through the kernels while they are in its cache.
 *
 * A way that finishes other blocks than the kernels have iterations for doesn't hand any over; then the
 * kernels run when the result is whole. The same where a result turns out not to be finite and is made again:
 * what was handed over is overwritten, and handed over again (no kernel writes what the convolution or a
 * kernel before it reads). How planes are handed over depends on threads, results don't. */
#include "kernels/conv.h"

typedef struct {
    const Rows *r;
    const Frame *f;
    char *pointers[MOST_ROW_STEPS][MOST_ROW_ARGS + 2];
} Taker;

static void take(void *context, int64_t p0, int64_t p1) {
    Taker *t = context;
    const Rows *r = t->r;
    for (int i = 0; i < r->nsteps; i++) {
        const Step *s = &r->steps[i];
        s->fn(t->pointers[i], p0 * r->den[i] / r->num[i],
              p1 == r->rows ? t->f[s->total] : p1 * r->den[i] / r->num[i]);
    }
}

typedef struct {
    KernelFn fn;
    char **args;
} Whole;

static void whole_range(void *context, int64_t begin, int64_t end) {
    Whole *w = context;
    w->fn(w->args, begin, end);
}

int flb_run_planes(const Step *step, const Place *places, const Frame *f, const View *views,
                   const int64_t *numbers, int64_t *status) {
    const Rows *r = step->rows;
    Taker t = {.r = r, .f = f};
    Planes planes = {.take = take, .context = &t, .unit = r->unit};
    for (int i = 0; i < r->nsteps; i++) {
        const Step *s = &r->steps[i];
        for (int k = 0; k < s->nargs; k++) t.pointers[i][k] = places[s->args[k]].ptr;
        t.pointers[i][s->nargs] = (char *)status;
        t.pointers[i][s->nargs + 1] = (char *)(f + s->params);
    }
    if (step->kernel->planes(views, numbers, &planes) < 0) return -1;
    for (int i = 0; i < r->nsteps && !planes.taken; i++) {
        Whole w = {r->steps[i].fn, t.pointers[i]};
        flb_parallel(whole_range, &w, f[r->steps[i].total], f[r->steps[i].grain]);
    }
    return 0;
}
