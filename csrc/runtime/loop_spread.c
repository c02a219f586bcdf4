/* Blocks of a native loop's turns: on the pool where that is worth it. */
#include "runtime/loop.h"
#include <stdatomic.h>
#include <time.h>

int64_t flb_loop_nanoseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

enum {
    ENDED = 5, /* field of the context (spreading.py): the number of an error, or -1, which ends all turns */
    PIECE_NS = 10000, /* what is run between two looks at the clock on the pool, about */
    LOOK_NS = 2000,   /* and before */
    ASKED_NS = 5000000
};
static _Atomic int64_t worth_ns = 30000;
static _Thread_local int64_t asked; /* when it was last asked for signals */

PyObject *flb_loops_worth(PyObject *self, PyObject *arg) {
    (void)self;
    int64_t ns = PyLong_AsLongLong(arg);
    if (ns == -1 && PyErr_Occurred()) return NULL;
    return PyLong_FromLongLong(atomic_exchange(&worth_ns, ns));
}

/* Whether other turns have ended the loop, or a signal does. */
static int ended(void *context, int64_t now) {
    _Atomic int64_t *code = (_Atomic int64_t *)context + ENDED;
    if (atomic_load_explicit(code, memory_order_relaxed)) return 1;
    if ((!flb_loop_thread.waiting && !flb_loop_thread.holding) || now - asked < ASKED_NS) return 0;
    asked = now;
    if (!flb_loop_interrupted()) return 0;
    atomic_store(code, -1);
    return 1;
}

typedef struct {
    FlbRangeFn fn;
    void *context;
    int64_t done, chunk;
} Rest;

static void run_rest(void *context, int64_t begin, int64_t end) {
    Rest *r = context;
    for (int64_t at = begin, n; at < end && !ended(r->context, flb_loop_nanoseconds()); at += n) {
        n = end - at < r->chunk ? end - at : r->chunk;
        r->fn(r->context, r->done + at, r->done + at + n);
    }
}

/* Blocks of a loop's turns. They are run here, some at a time, until those that are left are seen to be worth
 * the pool (their turns may be uneven: it is looked at again and again). Which thread runs a block doesn't
 * matter to the result. Nonzero where some went to the pool. */
static int spread(FlbRangeFn fn, void *context, int64_t blocks) {
    if (blocks == 1) return fn(context, 0, 1), 0;
    int alone = flb_get_num_threads() == 1;
    int64_t n = 1, before = flb_loop_nanoseconds();
    for (int64_t done = 0, chunk = 1; done < blocks; done += n) {
        n = blocks - done < chunk ? blocks - done : chunk;
        fn(context, done, done + n);
        int64_t left = blocks - done - n, now = left ? flb_loop_nanoseconds() : before;
        double each = (double)(now - before) / n;
        before = now;
        if (ended(context, now)) return 0;
        /* A look costs as much as a short block, and turns to come may be longer: at most three times as many
         * as were run. */
        int64_t next = (int64_t)(LOOK_NS / (each + 1));
        chunk = next < 1 ? 1 : next > 3 * (done + n) ? 3 * (done + n) : next;
        if (alone || !left || each * left < atomic_load(&worth_ns)) continue;
        int64_t grain = each < PIECE_NS ? (int64_t)(PIECE_NS / (each + 1)) : 1;
        Rest rest = {fn, context, done + n, grain};
        flb_parallel(run_rest, &rest, left, grain);
        return 1;
    }
    return 0;
}

void flb_loop_spread(FlbRangeFn fn, void *context, int64_t blocks) { spread(fn, context, blocks); }

/* `count` turns take about so many nanoseconds: as many as are worth the pool twice have to come, or as many
 * as were. */
static void not_worth(FlbLoopSeen *seen, int64_t count, int64_t took) {
    double more = 2.0 * (double)atomic_load(&worth_ns) * (double)count / ((double)took + 1);
    if (more > 1e15) more = 1e15;
    if (more < (double)seen->turns) more = (double)seen->turns;
    seen->since = 0, seen->again = seen->turns + (int64_t)more;
}

/* Such a loop of `count` turns, unless they are better run in their place: 0 then. What lies between two
 * times that a kernel comes to it takes at least as long as the loop, so that a look at the clock each tells
 * of a short one. With more turns than `much` its blocks are tried the first time, which tells how long they
 * take. */
int64_t flb_loop_spread_within(FlbRangeFn fn, void *context, int64_t blocks, FlbLoopSeen *seen, int64_t count,
                               int64_t much) {
    if (flb_get_num_threads() == 1) return seen->again = INT64_MAX, 0;
    int64_t now = flb_loop_nanoseconds(), since = seen->since;
    if (!since && count <= much) return seen->since = now, 0;
    if (since > 0 && now - since < atomic_load(&worth_ns)) return not_worth(seen, count, now - since), 0;
    if (spread(fn, context, blocks)) seen->since = -1, seen->again = 0;
    else not_worth(seen, count, flb_loop_nanoseconds() - now);
    return 1;
}
