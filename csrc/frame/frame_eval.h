/* What the files of the frame evaluator share: the objects behind a compiled function, and who looks after
 * each.
 *
 * frame_cache.c: captured variants by code object and Context. frame_call.c: the callables that compile()
 * returns. frame_eval.c: which variant serves a call, the PEP 523 evaluator, the module. */
#ifndef FLB_FRAME_EVAL_H
#define FLB_FRAME_EVAL_H
#include "frame/frame.h"
#include "frame/interpreter.h"
#include <structmember.h>

/* A variable of each thread. Each call reads several of them; of a library that is loaded later, glibc has
 * room for a few that are found without a call. */
#ifdef __GLIBC__
#define FLB_PER_THREAD _Thread_local __attribute__((tls_model("initial-exec")))
#else
#define FLB_PER_THREAD _Thread_local
#endif

typedef struct {
    PyObject_HEAD
    PyObject *miss;       /* callable(func, flat_args, cache) -> bool: an entry was added at the front */
    struct Cache *caches; /* all that belong to it, a list of borrowed pointers */
    PyObject *dict, *weakrefs;
} Context;

/* Captured code that makes one call, with arguments of its own, or none, and returns: the call is made
 * without a frame. Where something traces frames, and where an entry has none, the code runs. */
enum { RETURNS_RESULT, RETURNS_ITEM, RETURNS_ARGUMENT, RETURNS_CONSTANT, RETURNS_LIST, RETURNS_COUNT };
enum { DIRECT_ARGUMENTS = 16 };
typedef struct {
    PyObject *call;                  /* NULL: the code isn't such; None: it makes no call */
    PyObject *constant;              /* what RETURNS_CONSTANT returns */
    PyObject *given;                 /* a tuple of arguments that are known */
    int returns, item;               /* the item of the result, or the argument */
    int lasti;                       /* of the call, in bytes; -1: what is called has a frame of its own */
    int n, in_order;                 /* whether its arguments are the frame's first n */
    int arguments[DIRECT_ARGUMENTS]; /* of the frame; -1 - k: the k-th of `given` */
} Direct;

typedef struct {
    PyObject *tree, *code, *fn;
    void
        *globals; /* of the function it was captured from: others of the same code have variants of their own.
                     An address, borrowed; captured code that looks at the globals holds them. NULL: any */
    int needs_eval;
    uint64_t hits;
    Direct direct;
} Entry;

/* The owners of a cache: the callables that compile() made of the function; for frames that only the
 * evaluator reaches, the code object (`of_code`), until the Context goes. Cache, code and Context find each
 * other by borrowed pointers, which the first of them to die clears. */
typedef struct Cache {
    PyObject_HEAD
    Py_ssize_t n;
    Entry **entries;  /* the latest first */
    char skip;        /* no entry fits: run the frame plainly without asking again */
    char once;        /* what an entry is made for never comes again: it is dropped behind its call */
    int of_code;      /* its code object holds a reference */
    PyObject *code;   /* borrowed, NULL when it is gone */
    Context *context; /* borrowed, NULL when it is gone */
    struct Cache *next, *prev; /* in the Context's list */
    struct Cache *sibling;     /* in the code's list */
    PyObject *dict;            /* what the Compiler keeps with it */
} Cache;

#define FLB_SUSPENDS (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)

enum { SKIP = 1, SKIP_RECURSIVE = 2 };
typedef struct {
    int flags;
    Cache *caches;
} Extra;

enum { MODE_COMPILED, MODE_DISABLED, MODE_RUN };
typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    int mode;
    PyObject *fn;
    Context *context;
    Cache *cache;
    PyObject *cache_code; /* the code object that cache belongs to */
    PyObject *dict, *weakrefs;
    PyObject *again; /* of DisabledFunction: again(error) tells whether the frame is to be run plainly after
                        it (see to_run_plainly) */
    unsigned watch;  /* of DisabledFunction: floating-point flags (floating.h) after which flagged(flags) is
                        called, which may raise in the call's place */
    PyObject *flagged;
    PyObject *written; /* of a watched one: positions of the arguments that it writes to as it goes, or NULL;
                          their contents are kept for */
    Py_ssize_t keeps;  /* the plain call, always up to so many bytes, above where flagged.keeps() says so */
} Callable;

/* Returned by captured code at a graph break: the call that gives its result. Made by the native caller, so
 * that a chain of resume functions does not grow the stack. */
typedef struct {
    PyObject_VAR_HEAD
    int released;       /* the arguments are gone: see flb_release_arguments */
    PyObject *items[1]; /* callable, then its arguments */
} TailCall;

extern PyTypeObject FlbContextType, FlbCacheType, FlbCompiledType, FlbDisabledType, FlbRunType,
    FlbTailCallType;

/* frame_cache.c */
int flb_extra_init(void);
Extra *flb_extra_get(PyObject *code); /* NULL: nothing is kept with this code object */
Extra *flb_extra_make(PyObject *code);
/* A new reference. `of_code`: a cache that is made now belongs to the code object. */
Cache *flb_cache_for(PyObject *code, Context *ctx, int of_code);
/* A new reference, or NULL; without an error where there is none. */
Cache *flb_cache_known(PyObject *code, Context *ctx);
int flb_cache_empty(Cache *c);   /* of entries */
void flb_cache_forget(Cache *c); /* every entry */

/* frame_eval.c */
/* New frames of this thread are captured with `next` (NULL: not). Steals nothing; returns the previous
 * context, which the caller gives back. */
Context *flb_enter(Context *next);
/* Serves a call from the cache. *ran is 0 when the frame has to be run plainly (NULL is returned without an
 * exception then), FLB_PLAINLY when the frames that it calls have to be too. */
#define FLB_PLAINLY (-1)
PyObject *flb_dispatch(Context *ctx, Cache *cache, PyFunctionObject *func, PyObject *const *args,
                       Py_ssize_t n, int run_only, int *ran);
/* The next frame of this code, if any, has just been found to run plainly. What `by` holds is the frame's
 * alone once that has begun. */
void flb_plain_once(PyCodeObject *code, TailCall *by);

/* frame_direct.c */
int flb_frames_are_traced(void);
PyObject *flb_run_direct(Entry *e, PyFunctionObject *func, PyObject *const *args);
int flb_serve_at_a_glance(Cache *cache, PyFunctionObject *func, PyObject *const *args, PyObject **result);
int flb_to_run_plainly(void);

/* frame_call.c */
PyObject *flb_settle(PyObject *r); /* makes the calls that captured code left to its caller; steals r */
PyObject *flb_tail_call(PyObject *module, PyObject *const *args, Py_ssize_t n);
void flb_release(TailCall *t); /* of its arguments; of NULL nothing */
/* Captured code that a tail call started says that it alone holds the call's arguments from here on. */
PyObject *flb_release_arguments(PyObject *module, PyObject *unused);
/* The tail call whose code is about to run, and the one whose code runs: borrowed, NULL for others. */
extern FLB_PER_THREAD TailCall *flb_handed, *flb_running;
/* A graph is about to write to its arguments, or to end: where it is watched for floating-point errors, they
 * are told now or not at all. */
PyObject *flb_tell_floating_errors(PyObject *module, PyObject *unused);
PyObject *flb_runs_again(PyObject *module, PyObject *unused);
PyObject *flb_set_watcher(PyObject *module, PyObject *arg);
PyObject *flb_set_watching(PyObject *module, PyObject *arg);
PyObject *flb_set_plainly(PyObject *module, PyObject *arg);

/* The dict of an object's own attributes, a new reference; NULL, without an exception, when it has none
 * (guards.c). */
PyObject *flb_instance_dict(PyObject *o);

static inline Py_ssize_t flb_flat_count(PyCodeObject *code) {
    return code->co_argcount + code->co_kwonlyargcount + !!(code->co_flags & CO_VARARGS) +
        !!(code->co_flags & CO_VARKEYWORDS);
}
#endif
