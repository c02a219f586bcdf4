/* A pool of threads for loops that are split by range.
 *
 * One region runs at a time; a caller that finds the pool taken runs alone, so nesting and concurrent callers
 * are safe. All state of a region is in one word: generation, an open bit, and the number of workers inside.
 * A worker joins by adding one while the bit is set; the caller takes its share of the pieces, clears the bit
 * and waits for the count to fall to zero. A worker that wakes late finds the region closed and never delays
 * anybody. After a fork the child starts with no workers and makes its own.
 *
 * Where a region has few pieces, each thread begins with a share of its own, which is the same one in a later
 * region of this size: what it has written lies in its cache. It goes on with those that others have left. */
#define _GNU_SOURCE
#include "runtime/floating.h"
#include "runtime/runtime.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_THREADS 256
#define OPEN ((uint64_t)1 << 16)
#define COUNT (OPEN - 1)
#define GENERATION(w) ((w) >> 17)
#define SPINS 1500 /* some tens of microseconds: the gap between two kernels of a graph */

static pthread_mutex_t region = PTHREAD_MUTEX_INITIALIZER; /* held by the caller whose region runs */
static pthread_mutex_t sleep_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static _Atomic uint64_t word;
static _Atomic int sleepers;
static _Atomic int wanted; /* threads asked for, 0: not decided */
static int started;        /* workers that exist */
static pthread_once_t at_fork = PTHREAD_ONCE_INIT;

static FlbRangeFn job_fn;
static void *job_context;
static int64_t job_piece;
static int job_shares;
static struct {
    _Alignas(64) _Atomic int64_t next; /* a cache line each */
    int64_t end;
} shares[MAX_THREADS];
static _Atomic unsigned
    job_flags; /* of floating-point arithmetic, raised by workers: the caller's in the end */

static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

/* The pieces that are left, those of share ``own`` first. */
static void take_pieces(int own) {
    for (int k = 0; k < job_shares; k++) {
        int share = own + k < job_shares ? own + k : own + k - job_shares;
        int64_t stop = shares[share].end;
        for (;;) {
            int64_t begin = atomic_fetch_add_explicit(&shares[share].next, job_piece, memory_order_relaxed);
            if (begin >= stop) break;
            int64_t end = begin + job_piece;
            job_fn(job_context, begin, end < stop ? end : stop);
        }
    }
}

/* Cut a region into pieces of at least the grain. Where there are many, all threads take them from one queue,
 * so that a late or slow worker, and pieces that take longer than others, cost little. Few of them make equal
 * shares, one a thread: in a queue one thread would take more than the others. */
static void cut(int64_t total, int64_t grain, int threads) {
    int64_t most = total / grain, share = total; /* most: at least 2 */
    if (most < 2 * threads) {
        job_shares = most < threads ? (int)most : threads;
        job_piece = share = (total + job_shares - 1) / job_shares;
    } else {
        int64_t piece = (total + 4 * threads - 1) / (4 * threads);
        job_shares = 1;
        job_piece = piece < grain ? grain : piece;
    }
    for (int k = 0; k < job_shares; k++) {
        int64_t begin = k * share < total ? k * share : total;
        atomic_store_explicit(&shares[k].next, begin, memory_order_relaxed);
        shares[k].end = total - begin < share ? total : begin + share;
    }
}

static void *worker(void *arg) {
    uint64_t seen = (uint64_t)(uintptr_t)arg;
    int index = (int)(seen >> 48);
    seen &= ((uint64_t)1 << 48) - 1;
    for (;;) {
        uint64_t w;
        for (int spin = 0;; spin++) {
            w = atomic_load_explicit(&word, memory_order_acquire);
            if ((w & OPEN) && GENERATION(w) != seen) break;
            if (spin < SPINS) {
                relax();
                continue;
            }
            pthread_mutex_lock(&sleep_lock);
            atomic_fetch_add(&sleepers, 1);
            while (w = atomic_load(&word), !((w & OPEN) && GENERATION(w) != seen))
                pthread_cond_wait(&wake, &sleep_lock);
            atomic_fetch_sub(&sleepers, 1);
            pthread_mutex_unlock(&sleep_lock);
            spin = 0;
        }
        seen = GENERATION(w);
        if (index >= atomic_load(&wanted) - 1) continue; /* the number of threads was lowered */
        if (!atomic_compare_exchange_strong(&word, &w, w + 1)) {
            seen = GENERATION(w) - 1; /* another worker moved the count, or the region closed: look again */
            continue;
        }
        flb_floating_clear();
        take_pieces(index + 1 < job_shares ? index + 1 : 0);
        unsigned flags = flb_floating_flags();
        if (flags) atomic_fetch_or_explicit(&job_flags, flags, memory_order_relaxed);
        atomic_fetch_sub_explicit(&word, 1, memory_order_release);
    }
    return NULL;
}

static void in_child(void) {
    pthread_mutex_init(&region, NULL);
    pthread_mutex_init(&sleep_lock, NULL);
    pthread_cond_init(&wake, NULL);
    atomic_store(&word, 0);
    atomic_store(&sleepers, 0);
    started = 0;
}

static void before_fork(void) { pthread_mutex_lock(&region); }
static void in_parent(void) { pthread_mutex_unlock(&region); }
static void register_fork(void) { pthread_atfork(before_fork, in_parent, in_child); }

/* Processors that this process may run on; all of them on a system that doesn't tell. */
static int usable_processors(void) {
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

int flb_get_num_threads(void) {
    int n = atomic_load(&wanted);
    if (n) return n;
    const char *text = getenv("OMP_NUM_THREADS");
    n = text ? atoi(text) : 0;
    if (n < 1) n = usable_processors();
    flb_set_num_threads(n);
    return atomic_load(&wanted);
}

void flb_set_num_threads(int n) { atomic_store(&wanted, n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : n); }

static void start_workers(int n) {
    pthread_once(&at_fork, register_fork);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 8 << 20);
    while (started < n) {
        pthread_t thread;
        uint64_t seen = GENERATION(atomic_load(&word)) | ((uint64_t)started << 48);
        if (pthread_create(&thread, &attributes, worker, (void *)(uintptr_t)seen))
            break; /* fewer threads, same result */
        started++;
    }
    pthread_attr_destroy(&attributes);
}

void flb_parallel(FlbRangeFn fn, void *context, int64_t total, int64_t grain) {
    if (grain < 1) grain = 1;
    int threads =
        total - grain >= grain ? flb_get_num_threads() : 1; /* total >= 2 grain, which may overflow */
    if (threads == 1 || pthread_mutex_trylock(&region)) {
        if (total > 0) fn(context, 0, total);
        return;
    }
    if (started < threads - 1) start_workers(threads - 1);
    cut(total, grain, threads);
    job_fn = fn, job_context = context;
    atomic_store_explicit(&job_flags, 0, memory_order_relaxed);
    uint64_t generation = GENERATION(atomic_load(&word)) + 1;
    atomic_store(&word, (generation & (((uint64_t)1 << 47) - 1)) << 17 | OPEN);
    if (atomic_load(&sleepers)) {
        pthread_mutex_lock(&sleep_lock);
        pthread_cond_broadcast(&wake);
        pthread_mutex_unlock(&sleep_lock);
    }
    take_pieces(0);
    atomic_fetch_and(&word, ~OPEN);
    for (int spin = 0; atomic_load_explicit(&word, memory_order_acquire) & COUNT; spin++) {
        if (spin < 20000) relax();
        else sched_yield();
    }
    flb_floating_raise(atomic_load_explicit(&job_flags, memory_order_relaxed));
    pthread_mutex_unlock(&region);
}
