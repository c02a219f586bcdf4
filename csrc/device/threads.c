/* Blocks of threads on one thread of the host, that of a stream.
 *
 * A kernel whose threads don't wait for one another is a loop. Else each thread is a fiber: it runs until it
 * reaches a barrier or a shuffle, or its end. A warp goes on when all of its threads have reached the same
 * shuffle, a block when all have reached the barrier; where some wait and others have ended, or wait for
 * something else, the launch has failed. */
#define _GNU_SOURCE
#include "device/threads.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#include "device/driver.h"

enum { STACK = 64 << 10 };
enum { READY, AT_BARRIER, AT_SHUFFLE, ENDED };

/* ---- fibers -------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
typedef struct {
    void *sp;
} Context;
/* Saves the registers that a called function must keep, and the stack, and loads the other thread's. */
void flb_switch(Context *from, Context *to);
__asm__(
    ".text\n.globl flb_switch\n.hidden flb_switch\n.type flb_switch,@function\nflb_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp,(%rdi)\nmovq (%rsi),%rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n.size flb_switch,.-flb_switch\n");
static void prepare(Context *c, char *stack, void (*entry)(void)) {
    void **top = (void **)(stack + STACK) - 2; /* as after a call: the stack is 8 off a multiple of 16 */
    *--top = 0;
    *--top = (void *)entry;
    top -= 6;
    memset(top, 0, 6 * sizeof *top);
    c->sp = top;
}
#else
typedef struct {
    ucontext_t at;
} Context;
static void flb_switch(Context *from, Context *to) { swapcontext(&from->at, &to->at); }
static void prepare(Context *c, char *stack, void (*entry)(void)) {
    getcontext(&c->at);
    c->at.uc_stack.ss_sp = stack, c->at.uc_stack.ss_size = STACK, c->at.uc_link = NULL;
    makecontext(&c->at, entry, 0);
}
#endif

typedef struct {
    FlbThread known; /* first: the text has its address */
    Context context;
    int state;
    unsigned shuffles; /* so far */
    int32_t mask;
} Fiber;

/* What runs on this thread of the host. */
typedef struct FlbRun {
    const FlbLaunch *launch;
    FlbShadow *shadow;
    const FlbWork *work;
    Fiber *fibers;
    char *stacks;
    uint32_t (*values)[FLB_MOST_THREADS]; /* two rows, by turns: a warp may be read while its threads offer
                                             the next value */
    char *shared;
    size_t shared_room;
    Context scheduler;
    Fiber *running;
    jmp_buf failed;
    const char *wrong; /* what ended a thread, or was seen on the way */
    int64_t argument, position, block, thread;
    uint32_t other; /* a stream */
} Run;
static __thread Run run;

static void wait_as(Fiber *f, int state) {
    f->state = state;
    flb_switch(&f->context, &run.scheduler);
}
static void barrier(FlbThread *t) { wait_as((Fiber *)t, AT_BARRIER); }
static uint32_t shuffle(FlbThread *t, uint32_t value, int32_t mask) {
    Fiber *f = (Fiber *)t;
    uint32_t *row = run.values[f->shuffles++ & 1];
    row[t->thread] = value;
    f->mask = mask;
    wait_as(f, AT_SHUFFLE);
    return row[t->thread ^ mask];
}
static const char MEMORY[] = "memory", RACE[] = "race", UNWRITTEN[] = "unwritten";
static void seen(FlbThread *t, const char *wrong, int64_t argument, int64_t position) {
    if (t->run->wrong) return;
    t->run->wrong = wrong;
    t->run->argument = argument, t->run->position = position, t->run->block = t->block,
    t->run->thread = t->thread;
}
static void fault(FlbThread *t, int64_t argument, int64_t position) {
    run.wrong = NULL; /* the kernel ends here: this is told */
    seen(t, MEMORY, argument, position);
    if (run.launch->cooperative) {
        run.running = NULL;
        wait_as((Fiber *)t, ENDED);
    }
    longjmp(run.failed, 1);
}
/* What is seen here is told when the kernel has ended. */
static void access_to(FlbThread *t, int64_t argument, int64_t position, int64_t bytes) {
    Run *r = t->run;
    int how = bytes < 0 ? FLB_WRITES : FLB_READS;
    size_t n = (size_t)(how == FLB_WRITES ? -bytes : bytes);
    const char *at = (const char *)(uintptr_t)r->launch->arguments[argument] + (size_t)position * n;
    uint32_t other = flb_use(r->shadow, r->work, at, n, how);
    if (other && !r->wrong) r->other = other;
    if (other) seen(t, RACE, argument, position);
    if (how == FLB_WRITES) flb_set_written(r->shadow, at, n, 1);
    else if (flb_watch_unwritten && !flb_all_written(r->shadow, at, n))
        seen(t, UNWRITTEN, argument, position);
}
static void entry(void) {
    Fiber *f = run.running;
    run.launch->kernel(run.launch->arguments, &f->known);
    wait_as(f, ENDED);
}

/* ---- orders -------------------------------------------------------------------------------------------- */

/* The k-th of n numbers in an order; one from 2 on walks by a step that has no divisor in common with n. */
static int64_t nth(int64_t k, int64_t n, int order) {
    if (order == 1) return n - 1 - k;
    if (order < 2) return k;
    int64_t step = n / 2 + order, a, b, rest;
    for (;; step++) {
        for (a = step, b = n; b; rest = a % b, a = b, b = rest) {
        }
        if (a == 1) break;
    }
    return (int64_t)((__int128)k * step % n);
}

/* ---- a block ------------------------------------------------------------------------------------------- */

static const char *advance(Fiber *f) {
    run.running = f;
    flb_switch(&run.scheduler, &f->context);
    return run.running ? NULL : MEMORY;
}
/* Run the threads of a warp until none can go on alone. The error, or NULL. */
static const char *run_warp(int first, int n) {
    for (;;) {
        for (int k = 0; k < n; k++) {
            Fiber *f = &run.fibers[first + nth(k, n, run.launch->order)];
            const char *wrong = f->state == READY ? advance(f) : NULL;
            if (wrong) return wrong;
        }
        int shuffling = 0;
        for (int k = 0; k < n; k++) shuffling += run.fibers[first + k].state == AT_SHUFFLE;
        if (!shuffling) return NULL;
        const Fiber *one = &run.fibers[first];
        for (int k = 0; k < n; k++) {
            Fiber *f = &run.fibers[first + k];
            if (f->state != AT_SHUFFLE || f->shuffles != one->shuffles || f->mask != one->mask)
                return "a shuffle that a part of a warp reached";
        }
        for (int k = 0; k < n; k++) run.fibers[first + k].state = READY;
    }
}
static const char *run_block(void) {
    int n = run.launch->threads, warps = (n + FLB_WARP - 1) / FLB_WARP;
    for (;;) {
        for (int w = 0; w < warps; w++) {
            int first = (int)nth(w, warps, run.launch->order) * FLB_WARP;
            const char *wrong = run_warp(first, n - first < FLB_WARP ? n - first : FLB_WARP);
            if (wrong) return wrong;
        }
        int ended = 0;
        for (int k = 0; k < n; k++) ended += run.fibers[k].state == ENDED;
        if (ended == n) return NULL;
        if (ended) return "a barrier that a part of a block reached";
        for (int k = 0; k < n; k++) run.fibers[k].state = READY;
    }
}
static int ready(size_t shared) {
    if (!run.fibers) {
        run.fibers = calloc(FLB_MOST_THREADS, sizeof *run.fibers);
        run.values = calloc(2, sizeof *run.values);
        run.stacks = mmap(NULL, (size_t)FLB_MOST_THREADS * STACK, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (!run.fibers || !run.values || run.stacks == MAP_FAILED)
            return run.fibers = NULL, FLB_OUT_OF_MEMORY;
    }
    if (shared > run.shared_room) {
        free(run.shared);
        run.shared = malloc(shared);
        run.shared_room = run.shared ? shared : 0;
        if (!run.shared) return FLB_OUT_OF_MEMORY;
    }
    return FLB_DONE;
}
static FlbThread thread_of(const FlbLaunch *l, int64_t block, int64_t thread) {
    return (FlbThread){thread,  block,   l->threads, l->blocks, run.shared, l->extents,
                       barrier, shuffle, fault,      access_to, &run};
}
void flb_threads_end(void) {
    free(run.fibers);
    free(run.values);
    free(run.shared);
    if (run.fibers) munmap(run.stacks, (size_t)FLB_MOST_THREADS * STACK);
    run = (Run){0};
}
static int told(const char *wrong, char *text, size_t room) {
    long long block = run.block, thread = run.thread, position = run.position, argument = run.argument;
    if (wrong == MEMORY) {
        snprintf(text, room,
                 "block %lld, thread %lld: element %lld of argument %lld lies outside of its memory", block,
                 thread, position, argument);
        return FLB_ILLEGAL_ACCESS;
    }
    if (wrong == RACE) {
        snprintf(text, room,
                 "block %lld, thread %lld: work of stream %u that isn't waited for uses element %lld of "
                 "argument %lld, too",
                 block, thread, flb_stream_id(run.other), position, argument);
        return FLB_RACE;
    }
    if (wrong == UNWRITTEN) {
        snprintf(text, room, "block %lld, thread %lld: element %lld of argument %lld", block, thread,
                 position, argument);
        return FLB_UNWRITTEN;
    }
    snprintf(text, room, "block %lld: %s", block, wrong);
    return FLB_DIVERGED;
}
int flb_run_threads(const FlbLaunch *l, FlbShadow *shadow, const FlbWork *work, char *text, size_t room) {
    int status = ready(l->shared);
    if (status) return status;
    run.launch = l, run.shadow = shadow, run.work = work, run.wrong = NULL;
    const char *volatile wrong = NULL;
    if (!l->cooperative) {
        if (setjmp(run.failed)) wrong = MEMORY;
        else
            for (int64_t b = 0; b < l->blocks; b++)
                for (int t = 0; t < l->threads; t++) {
                    FlbThread here = thread_of(l, nth(b, l->blocks, l->order), nth(t, l->threads, l->order));
                    l->kernel(l->arguments, &here);
                }
    } else {
        for (int64_t b = 0; b < l->blocks && !wrong; b++) {
            run.block = nth(b, l->blocks, l->order);
            if (l->shared) memset(run.shared, 0xff, l->shared); /* nan, or -1 */
            for (int t = 0; t < l->threads; t++) {
                Fiber *f = &run.fibers[t];
                f->known = thread_of(l, run.block, t);
                f->state = READY, f->shuffles = 0;
                prepare(&f->context, run.stacks + (size_t)t * STACK, entry);
            }
            wrong = run_block();
        }
    }
    if (!wrong) wrong = run.wrong;
    return wrong ? told(wrong, text, room) : FLB_DONE;
}
