/* How much of the thread's C stack is left. CPython 3.11 counts Python calls and not the stack, so with a
 * high recursion limit whatever makes C calls between Python calls (the frame evaluator, a backward in a
 * backward, a mode's handler) can reach its end, which kills the process. */
#ifndef FLB_STACK_H
#define FLB_STACK_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <Python.h>
#include <pthread.h>

/* Found without a call, as FLB_PER_THREAD of frame/frame_eval.h. */
#ifdef __GLIBC__
#define FLB_STACK_THREAD __thread __attribute__((tls_model("initial-exec")))
#else
#define FLB_STACK_THREAD __thread
#endif

/* The lowest address that a call may still be made at: an eighth of the stack, 64 KiB to 1 MiB, is kept for
 * what doesn't ask. */
static inline char *flb_stack_find_floor(void) {
    char *floor = (char *)1; /* unknown: no limit */
#if defined(__linux__)
    pthread_attr_t attr;
    void *lowest;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        if (pthread_attr_getstack(&attr, &lowest, &size) == 0) {
            size_t kept = size / 8 < 65536 ? 65536 : size / 8 > 1 << 20 ? 1 << 20 : size / 8;
            floor = (char *)lowest + kept;
        }
        pthread_attr_destroy(&attr);
    }
#elif defined(__APPLE__)
    size_t size = pthread_get_stacksize_np(pthread_self());
    floor = (char *)pthread_get_stackaddr_np(pthread_self()) - size +
        (size / 8 < 65536         ? 65536
             : size / 8 > 1 << 20 ? 1 << 20
                                  : size / 8);
#endif
    return floor;
}
/* 0, or -1 with a RecursionError. */
static inline int flb_stack_check(const char *where) {
    static FLB_STACK_THREAD char *floor;
    if (!floor) floor = flb_stack_find_floor();
    if ((char *)__builtin_frame_address(0) > floor) return 0;
    PyErr_Format(PyExc_RecursionError, "maximum recursion depth exceeded%s: the thread's stack is used up",
                 where);
    return -1;
}
#endif
