/* Connectionist temporal classification (A. Graves et al., 2006): forward and backward sums over the states
 * of each sequence, which are its labels with blanks around them, in logarithms and in float64. Operands lie
 * in C order: log_probs (steps, batch, classes), labels (batch, longest), or those of all sequences one after
 * another; lengths are int64 and are cut to what there is. */
#include "runtime/graph.h"
#include <math.h>
#include <string.h>

typedef struct {
    View log_probs, labels, input_lengths, target_lengths, cotangents, made;
    int64_t blank, zero_infinity, f64;
    int64_t bad, label; /* a label that is no class */
    int failed;         /* out of memory */
} Ctc;

/* One sequence. */
typedef struct {
    const Ctc *c;
    int64_t index, steps, count, width; /* count: of labels; width: of states */
    const int64_t *labels;
} Sequence;

static int64_t cut(int64_t x, int64_t most) { return x < 0 ? 0 : x > most ? most : x; }
static int64_t length_of(const Ctc *c, int64_t i) {
    int64_t n = ((const int64_t *)c->target_lengths.ptr)[i];
    return c->labels.ndim == 2 ? cut(n, c->labels.shape[1]) : cut(n, c->labels.shape[0]);
}
static Sequence sequence(const Ctc *c, int64_t i) {
    Sequence q = {c,
                  i,
                  cut(((const int64_t *)c->input_lengths.ptr)[i], c->log_probs.shape[0]),
                  length_of(c, i),
                  0,
                  (const int64_t *)c->labels.ptr};
    if (c->labels.ndim == 2) {
        q.labels += i * c->labels.shape[1];
    } else {
        int64_t start = 0, all = c->labels.shape[0];
        for (int64_t k = 0; k < i; k++) start = cut(start + length_of(c, k), all);
        q.labels += start;
        q.count = cut(q.count, all - start);
    }
    q.width = 2 * q.count + 1;
    return q;
}
static inline int64_t label_of(const Sequence *q, int64_t s) {
    return s & 1 ? q->labels[s / 2] : q->c->blank;
}
static inline double emitted(const Sequence *q, int64_t t, int64_t s) {
    const int64_t *shape = q->c->log_probs.shape;
    int64_t at = (t * shape[1] + q->index) * shape[2] + label_of(q, s);
    return q->c->f64 ? ((const double *)q->c->log_probs.ptr)[at] : ((const float *)q->c->log_probs.ptr)[at];
}
/* Whether state s may follow s - 2: labels that differ need no blank between them. */
static inline int skips(const Sequence *q, int64_t s) {
    return s & 1 && s > 1 && q->labels[s / 2] != q->c->blank && q->labels[s / 2] != q->labels[s / 2 - 1];
}
static inline double sum(double a, double b, double c) {
    double top = a > b || a != a ? a : b;
    top = top > c || top != top ? top : c;
    if (top == -INFINITY || top != top) return top;
    return top +
        log((a == top ? 1 : exp(a - top)) + (b == top ? 1 : exp(b - top)) + (c == top ? 1 : exp(c - top)));
}
static int is_class(const Sequence *q, Ctc *c) {
    for (int64_t k = 0; k < q->count; k++)
        if (q->labels[k] < 0 || q->labels[k] >= c->log_probs.shape[2]) {
            c->label = q->labels[k], c->bad = 1;
            return 0;
        }
    return 1;
}

/* The logarithm of the probability of all paths. `rows`: room for two rows of states, or, with `all`, for as
 * many as there are steps, which are kept. */
static double forward(const Sequence *q, double *rows, int all) {
    int64_t w = q->width;
    if (!q->steps) return q->count ? -INFINITY : 0;
    for (int64_t s = 0; s < w; s++) rows[s] = s < 2 ? emitted(q, 0, s) : -INFINITY;
    double *last = rows;
    for (int64_t t = 1; t < q->steps; t++) {
        double *now = all ? last + w : rows + (t & 1) * w;
        for (int64_t s = 0; s < w; s++)
            now[s] = emitted(q, t, s) +
                sum(last[s], s ? last[s - 1] : -INFINITY, skips(q, s) ? last[s - 2] : -INFINITY);
        last = now;
    }
    return sum(last[w - 1], w > 1 ? last[w - 2] : -INFINITY, -INFINITY);
}

static void losses(void *context, int64_t begin, int64_t end) {
    Ctc *c = context;
    for (int64_t i = begin; i < end; i++) {
        Sequence q = sequence(c, i);
        double *rows = flb_api->malloc((size_t)q.width * 2 * sizeof *rows);
        if (!rows) {
            c->failed = 1;
            return;
        }
        double loss = is_class(&q, c) ? 0 - forward(&q, rows, 0) : 0;
        if (c->zero_infinity && loss == INFINITY) loss = 0;
        if (c->f64) ((double *)c->made.ptr)[i] = loss;
        else ((float *)c->made.ptr)[i] = (float)loss;
        flb_api->free(rows);
    }
}

/* Takes cotangent times the probability of being in a state at a step from its label's. */
static void take(const Sequence *q, int64_t t, int64_t s, double share) {
    const int64_t *shape = q->c->log_probs.shape;
    int64_t at = (t * shape[1] + q->index) * shape[2] + label_of(q, s);
    if (q->c->f64) ((double *)q->c->made.ptr)[at] -= share;
    else ((float *)q->c->made.ptr)[at] -= (float)share;
}
static void cotangents(void *context, int64_t begin, int64_t end) {
    Ctc *c = context;
    for (int64_t i = begin; i < end; i++) {
        Sequence q = sequence(c, i);
        double g = c->f64 ? ((const double *)c->cotangents.ptr)[i] : ((const float *)c->cotangents.ptr)[i];
        int64_t w = q.width;
        if (!q.steps || !is_class(&q, c)) continue;
        double *alpha = flb_api->malloc((size_t)w * (size_t)(q.steps + 2) * sizeof *alpha);
        if (!alpha) {
            c->failed = 1;
            return;
        }
        double *after = alpha + w * q.steps, *now = after + w, whole = forward(&q, alpha, 1);
        for (int64_t t = q.steps - 1; whole != -INFINITY && t >= 0; t--) {
            for (int64_t s = 0; s < w; s++) {
                if (t == q.steps - 1) now[s] = s >= w - 2 ? 0 : -INFINITY;
                else
                    now[s] = sum(after[s], s + 1 < w ? after[s + 1] : -INFINITY,
                                 s + 2 < w && skips(&q, s + 2) ? after[s + 2] : -INFINITY);
                double share = exp(alpha[t * w + s] + now[s] - whole);
                if (share != 0) take(&q, t, s, g * share);
            }
            for (int64_t s = 0; s < w; s++) after[s] = now[s] + emitted(&q, t, s);
        }
        flb_api->free(alpha);
    }
}

static int run(Ctc *c, FlbRangeFn fn, int64_t message, int64_t *status) {
    int64_t steps = c->log_probs.shape[0], batch = c->log_probs.shape[1];
    int64_t longest = c->labels.shape[c->labels.ndim - 1] + 1;
    if (batch) flb_parallel(fn, c, batch, 1 + 2000 / (1 + steps * longest));
    if (c->bad && !status[0])
        status[0] = message + 1, status[1] = c->label, status[2] = c->log_probs.shape[2];
    return c->failed ? -1 : 0;
}
FLB_KERNEL(ctc) {
    Ctc c = {.log_probs = v->log_probs,
             .labels = v->labels,
             .input_lengths = v->input_lengths,
             .target_lengths = v->target_lengths,
             .made = v->losses,
             .blank = n->blank,
             .zero_infinity = n->zero_infinity,
             .f64 = n->f64};
    return run(&c, losses, n->outside, status);
}
FLB_KERNEL(ctc_backward) {
    Ctc c = {.log_probs = v->log_probs,
             .labels = v->labels,
             .input_lengths = v->input_lengths,
             .target_lengths = v->target_lengths,
             .cotangents = v->cotangents,
             .made = v->made,
             .blank = n->blank,
             .f64 = n->f64};
    int64_t size = n->f64 ? 8 : 4;
    for (int d = 0; d < 3; d++) size *= c.made.shape[d];
    memset(c.made.ptr, 0, (size_t)size);
    return run(&c, cotangents, n->outside, status);
}
