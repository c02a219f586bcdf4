/* The call of a native loop (loops/): operands, copies and results around one kernel, and what a kernel asks
 * while it runs. */
#define NO_IMPORT_ARRAY
#include "runtime/graph.h"
#include <stdatomic.h>
#include <string.h>
#include <time.h>

typedef int64_t (*LoopFn)(void *data, void *meta, void *ints, void *floats, void *out);

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    LoopFn fn;
    int nwritten, nfresh, nresults,
        restores; /* restores: the loop may end with an error, which is to leave its operands as they were */
    int nsizes, narrays;
    Py_ssize_t nints, nfloats;   /* numbers that the kernel reads */
    int *written, *over, *fresh; /* operands; over: 1 for written ones that get their new contents themselves,
                                    2 for those that results may use up */
    int64_t *sizes;              /* of all operands in turn, -1 for those that differ between calls */
    PyArray_Descr **results, **dtypes; /* dtypes: of the operands */
    PyObject *fail;                    /* called with (number of the error, three integers), raises */
    PyObject *python; /* called with (text, arrays) for the calls that the kernel leaves to NumPy; None
                         where there are none */
} Loop;

struct Container; /* containers.c */
void *flb_container_new(struct Container **chain, int64_t nkey, int64_t nvalue);
void flb_container_end(struct Container *chain);
void flb_container_clear(struct Container *c);
int64_t *flb_list_append(struct Container *c);
void flb_list_shift(struct Container *c, int64_t *out);
int64_t *flb_list_prepend(struct Container *c);
int64_t *flb_table_find(struct Container *c, const int64_t *key);
int64_t *flb_table_put(struct Container *c, const int64_t *key);
void flb_table_remove(struct Container *c, int64_t *e);

/* ---- interrupts ---------------------------------------------------------------------------------------- */

static _Thread_local PyThreadState *waiting; /* of the thread whose kernel runs without the GIL */
static _Thread_local PyObject *caught[3];    /* what a signal's handler raised meanwhile */
static _Thread_local PyObject *python;       /* of the loop that runs, borrowed */

/* Kernels ask this now and then: nonzero when a signal's handler raised, which ends the kernel. */
int64_t flb_loop_interrupted(void) {
    if (!waiting) return 0;
    PyEval_RestoreThread(waiting);
    int stop = PyErr_CheckSignals() < 0;
    if (stop) PyErr_Fetch(&caught[0], &caught[1], &caught[2]);
    waiting = PyEval_SaveThread();
    return stop;
}

/* ---- what is left to NumPy
 * --------------------------------------------------------------------------------- */

/* The arrays that `table` describes, each by the number of its type, the number of dimensions, its address,
 * sizes and strides. */
static PyObject *described(int64_t n, const int64_t *table) {
    PyObject *arrays = PyTuple_New(n);
    for (int64_t k = 0; arrays && k < n; k++) {
        int ndim = (int)table[1];
        npy_intp sizes[NPY_MAXDIMS], strides[NPY_MAXDIMS];
        for (int d = 0; d < ndim; d++) sizes[d] = table[3 + d], strides[d] = table[3 + ndim + d];
        PyObject *a = PyArray_New(&PyArray_Type, ndim, sizes, (int)table[0], strides,
                                  (void *)(uintptr_t)table[2], 0, NPY_ARRAY_WRITEABLE, NULL);
        if (!a) Py_CLEAR(arrays);
        else PyTuple_SET_ITEM(arrays, k, a);
        table += 3 + 2 * ndim;
    }
    return arrays;
}

/* A kernel has NumPy compute something: `text` says what, the arrays are operands and results. 0; 1 where
 * that raised and all may be done again plainly; -1 where what it raised ends the loop. */
int64_t flb_loop_python(const char *text, int64_t again, int64_t n, const int64_t *table) {
    if (!waiting) return 1;
    PyEval_RestoreThread(waiting);
    flb_floating_note(flb_api->floating()); /* NumPy clears the flags */
    PyObject *arrays = described(n, table), *flags = NULL;
    if (arrays) flags = PyObject_CallFunction(python, "sN", text, arrays);
    long raised = flags ? PyLong_AsLong(flags) : -1;
    Py_XDECREF(flags);
    int64_t code = 0;
    if (raised < 0) {
        code = again && PyErr_ExceptionMatches(PyExc_Exception) ? 1 : -1;
        if (code > 0) PyErr_Clear();
        else PyErr_Fetch(&caught[0], &caught[1], &caught[2]);
    }
    waiting = PyEval_SaveThread();
    if (raised > 0) flb_floating_raise((unsigned)raised);
    return code;
}

/* ---- blocks of turns --------------------------------------------------------------------------------------
 */

static int64_t nanoseconds(void) {
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
    if (!waiting || now - asked < ASKED_NS) return 0;
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
    for (int64_t at = begin, n; at < end && !ended(r->context, nanoseconds()); at += n) {
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
    int64_t n = 1, before = nanoseconds();
    for (int64_t done = 0, chunk = 1; done < blocks; done += n) {
        n = blocks - done < chunk ? blocks - done : chunk;
        fn(context, done, done + n);
        int64_t left = blocks - done - n, now = left ? nanoseconds() : before;
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

/* What a kernel keeps of a loop within that it may have spread: its turns so far, how many there are when it
 * asks again, and when it asked last (0: not yet, -1: the pool was worth it). */
typedef struct {
    int64_t turns, again, since;
} Seen;

/* `count` turns take about so many nanoseconds: as many as are worth the pool twice have to come, or as many
 * as were. */
static void not_worth(Seen *seen, int64_t count, int64_t took) {
    double more = 2.0 * (double)atomic_load(&worth_ns) * (double)count / ((double)took + 1);
    if (more > 1e15) more = 1e15;
    if (more < (double)seen->turns) more = (double)seen->turns;
    seen->since = 0, seen->again = seen->turns + (int64_t)more;
}

/* Such a loop of `count` turns, unless they are better run in their place: 0 then. What lies between two
 * times that a kernel comes to it takes at least as long as the loop, so that a look at the clock each tells
 * of a short one. With more turns than `much` its blocks are tried the first time, which tells how long they
 * take. */
int64_t flb_loop_spread_within(FlbRangeFn fn, void *context, int64_t blocks, Seen *seen, int64_t count,
                               int64_t much) {
    if (flb_get_num_threads() == 1) return seen->again = INT64_MAX, 0;
    int64_t now = nanoseconds(), since = seen->since;
    if (!since && count <= much) return seen->since = now, 0;
    if (since > 0 && now - since < atomic_load(&worth_ns)) return not_worth(seen, count, now - since), 0;
    if (spread(fn, context, blocks)) seen->since = -1, seen->again = 0;
    else not_worth(seen, count, nanoseconds() - now);
    return 1;
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static void extent(PyArrayObject *a, char **lo, char **hi) {
    *lo = *hi = PyArray_BYTES(a);
    for (int d = 0; d < PyArray_NDIM(a); d++) {
        npy_intp reach = (PyArray_DIM(a, d) - 1) * PyArray_STRIDE(a, d);
        if (reach < 0) *lo += reach;
        else *hi += reach;
    }
    *hi += PyArray_ITEMSIZE(a);
}

/* Whether two elements may share memory: each dimension, from the innermost on, has to step over all that is
 * within. */
static int overlaps_itself(PyArrayObject *a) {
    npy_intp strides[NPY_MAXDIMS], sizes[NPY_MAXDIMS], reach = PyArray_ITEMSIZE(a);
    int n = 0;
    for (int d = 0; d < PyArray_NDIM(a); d++) {
        npy_intp s = PyArray_STRIDE(a, d) < 0 ? -PyArray_STRIDE(a, d) : PyArray_STRIDE(a, d),
                 size = PyArray_DIM(a, d);
        if (size <= 1) continue;
        int k = n++;
        for (; k > 0 && strides[k - 1] > s; k--) strides[k] = strides[k - 1], sizes[k] = sizes[k - 1];
        strides[k] = s, sizes[k] = size;
    }
    for (int k = 0; k < n; k++) {
        if (strides[k] < reach) return 1;
        reach += (sizes[k] - 1) * strides[k];
    }
    return 0;
}

/* Whether the loop may write into operand n itself: nothing else that it is given lies there. */
static int apart(PyArrayObject **arrays, int count, int n) {
    if (PyArray_SIZE(arrays[n]) == 0) return 1;
    if (overlaps_itself(arrays[n])) return 0;
    char *lo, *hi, *other, *end;
    extent(arrays[n], &lo, &hi);
    for (int k = 0; k < count; k++) {
        if (k == n || PyArray_SIZE(arrays[k]) == 0) continue;
        extent(arrays[k], &other, &end);
        if (other < hi && lo < end) return 0;
    }
    return 1;
}

/* ---- the call ------------------------------------------------------------------------------------------ */

typedef struct {
    int count, total;       /* operands; with the fresh arrays */
    PyArrayObject **arrays; /* operands or their copies, then fresh arrays; owned */
    PyArrayObject **before; /* what written operands held, or NULL; owned */
    PyObject *const *given; /* operands, borrowed */
    int64_t *numbers;       /* addresses, sizes and strides, integers, floats, results */
    void *few[16];          /* of `arrays` and `before`, where they are few */
    int64_t short_[64];     /* of `numbers` */
} Frame_;

/* The table of a kernel's arguments, which is one allocation where it is long. */
static int64_t run(Loop *l, Frame_ *f, PyObject *ints, PyObject *floats) {
    Py_ssize_t nints = PyTuple_GET_SIZE(ints), nfloats = PyTuple_GET_SIZE(floats);
    Py_ssize_t nmeta = 0;
    for (int k = 0; k < f->total; k++) nmeta += 2 * PyArray_NDIM(f->arrays[k]);
    const int nfunctions = 17;
    Py_ssize_t size = nfunctions + f->total + nmeta + nints + nfloats + l->nresults + 3 + 2;
    int64_t *data = f->short_, *at;
    if (size > (Py_ssize_t)(sizeof f->short_ / sizeof(int64_t)) &&
        !(data = PyMem_Malloc(size * sizeof(int64_t))))
        return PyErr_NoMemory(), -2;
    at = f->numbers = data;
    *at++ = (int64_t)(uintptr_t)flb_api->malloc;
    *at++ = (int64_t)(uintptr_t)flb_api->free;
    *at++ = (int64_t)(uintptr_t)flb_parallel;
    *at++ = (int64_t)(uintptr_t)flb_loop_interrupted;
    *at++ = (int64_t)(uintptr_t)flb_strided_product;
    *at++ = (int64_t)(uintptr_t)flb_loop_python;
    *at++ = (int64_t)(uintptr_t)flb_loop_spread;
    *at++ = (int64_t)(uintptr_t)flb_loop_spread_within;
    *at++ = (int64_t)(uintptr_t)flb_container_new;
    *at++ = (int64_t)(uintptr_t)flb_container_end;
    *at++ = (int64_t)(uintptr_t)flb_container_clear;
    *at++ = (int64_t)(uintptr_t)flb_list_append;
    *at++ = (int64_t)(uintptr_t)flb_list_shift;
    *at++ = (int64_t)(uintptr_t)flb_list_prepend;
    *at++ = (int64_t)(uintptr_t)flb_table_find;
    *at++ = (int64_t)(uintptr_t)flb_table_put;
    *at++ = (int64_t)(uintptr_t)flb_table_remove;
    for (int k = 0; k < f->total; k++) *at++ = (int64_t)(uintptr_t)PyArray_DATA(f->arrays[k]);
    int64_t *meta = at;
    for (int k = 0; k < f->total; k++) {
        for (int d = 0; d < PyArray_NDIM(f->arrays[k]); d++) *at++ = PyArray_DIM(f->arrays[k], d);
        for (int d = 0; d < PyArray_NDIM(f->arrays[k]); d++) *at++ = PyArray_STRIDE(f->arrays[k], d);
    }
    int64_t *i64 = at;
    for (Py_ssize_t k = 0; k < nints; k++)
        if ((*at++ = PyLong_AsLongLong(PyTuple_GET_ITEM(ints, k))) == -1 && PyErr_Occurred()) return -2;
    int64_t *f64 = at;
    for (Py_ssize_t k = 0; k < nfloats; k++) {
        double v = PyFloat_AsDouble(PyTuple_GET_ITEM(floats, k));
        if (v == -1 && PyErr_Occurred()) return -2;
        memcpy(at++, &v, sizeof v);
    }
    memset(at, 0, (l->nresults + 3) * sizeof(int64_t));
    PyThreadState *outer = waiting;
    PyObject *around = python;
    python = l->python;
    waiting = PyEval_SaveThread();
    int64_t code = l->fn(data, meta, i64, f64, at);
    PyThreadState *state = waiting;
    waiting = outer;
    python = around;
    PyEval_RestoreThread(state);
    flb_floating_note(flb_api->floating()); /* the caller may clear the flags */
    memmove(data, at,
            (l->nresults + 3) * sizeof(int64_t)); /* what is looked at from here on stands at the front */
    return code;
}

static int prepare(Loop *l, Frame_ *f) {
    for (int k = 0; k < f->count; k++) {
        PyObject *a = f->given[k];
        if (PyObject_TypeCheck(a, flb_api->tensor_type)) a = ((FlbTensor *)a)->array;
        if (!a || !PyArray_Check(a))
            return PyErr_SetString(PyExc_TypeError, "a compiled loop takes arrays"), -1;
        PyArray_Descr *d = PyArray_DESCR((PyArrayObject *)a);
        if (d != l->dtypes[k] && !PyArray_EquivTypes(d, l->dtypes[k]))
            return PyErr_Format(
                       PyExc_TypeError,
                       "a compiled loop is called with another dtype of operand %d than it was made for", k),
                   -1;
        f->arrays[k] = (PyArrayObject *)Py_NewRef(a);
    }
    f->total = f->count;
    for (int k = 0, at = 0; k < f->count; k++) {
        int ndim = PyArray_NDIM(f->arrays[k]),
            wrong = at + ndim > l->nsizes || (k == f->count - 1 && at + ndim < l->nsizes);
        for (int d = 0; !wrong && d < ndim; d++)
            wrong = l->sizes[at + d] >= 0 && l->sizes[at + d] != PyArray_DIM(f->arrays[k], d);
        if (wrong)
            return PyErr_Format(
                       PyExc_ValueError,
                       "a compiled loop is called with other sizes of operand %d than it was made for", k),
                   -1;
        at += ndim;
    }
    char itself[l->nwritten + 1];
    for (int k = 0; k < l->nwritten; k++)
        itself[k] = l->over[k] && PyArray_ISWRITEABLE(f->arrays[l->written[k]]) &&
            apart(f->arrays, f->count, l->written[k]);
    for (int k = 0; k < l->nwritten; k++) {
        int n = l->written[k];
        PyArrayObject *a = f->arrays[n];
        if (!itself[k]) {
            PyObject *copy = PyArray_NewCopy(a, NPY_CORDER);
            if (!copy) return -1;
            f->arrays[n] = (PyArrayObject *)copy;
            Py_DECREF(a);
        } else if (l->restores && l->over[k] == 1 &&
                   !(f->before[k] = (PyArrayObject *)PyArray_NewCopy(a, NPY_KEEPORDER)))
            return -1;
    }
    for (int k = 0; k < l->nfresh; k++) {
        PyArrayObject *like = f->arrays[l->fresh[k]];
        Py_INCREF(PyArray_DESCR(like));
        PyObject *made = PyArray_Empty(PyArray_NDIM(like), PyArray_DIMS(like), PyArray_DESCR(like), 0);
        if (!made) return -1;
        f->arrays[f->total++] = (PyArrayObject *)made;
    }
    return 0;
}

/* Whether two arrays are the same elements of the same memory. */
static int same_elements(PyArrayObject *a, PyArrayObject *b) {
    int n = PyArray_NDIM(a);
    return PyArray_DATA(a) == PyArray_DATA(b) && PyArray_DESCR(a) == PyArray_DESCR(b) &&
        n == PyArray_NDIM(b) && !memcmp(PyArray_DIMS(a), PyArray_DIMS(b), n * sizeof(npy_intp)) &&
        !memcmp(PyArray_STRIDES(a), PyArray_STRIDES(b), n * sizeof(npy_intp));
}

/* An array as a result, which is a tensor unless they are `plain`. Takes over the reference. */
static PyObject *given_back(PyObject *array, int plain) {
    if (plain) return array;
    PyObject *t = flb_api->from_array(array);
    Py_DECREF(array);
    return t;
}

static PyObject *gather(Loop *l, Frame_ *f, int plain) {
    int n = 0;
    for (int k = 0; k < l->nwritten; k++) n += l->over[k] != 1;
    PyObject *out = PyTuple_New(n + l->nfresh + l->nresults);
    if (!out) return NULL;
    n = 0;
    for (int k = 0; k < l->nwritten; k++) {
        int w = l->written[k];
        PyObject *given = f->given[w];
        if (l->over[k] != 1) {
            PyObject *a = (PyObject *)f->arrays[w], *base = PyArray_BASE(f->arrays[w]);
            if (base && PyArray_CheckExact(base) && same_elements(f->arrays[w], (PyArrayObject *)base))
                a = base;
            PyTuple_SET_ITEM(out, n++, given_back(Py_NewRef(a), plain));
            continue;
        }
        if (PyObject_TypeCheck(given, flb_api->tensor_type)) given = ((FlbTensor *)given)->array;
        if ((PyObject *)f->arrays[w] != given && PyArray_CopyInto((PyArrayObject *)given, f->arrays[w]) < 0)
            return Py_DECREF(out), NULL;
    }
    for (int k = 0; k < l->nfresh; k++)
        PyTuple_SET_ITEM(out, n++, given_back(Py_NewRef(f->arrays[f->count + k]), plain));
    for (int k = 0; k < l->nresults; k++) {
        Py_INCREF(l->results[k]);
        PyObject *a = PyArray_NewFromDescr(&PyArray_Type, l->results[k], 0, NULL, NULL, NULL, 0, NULL);
        if (!a) return Py_DECREF(out), NULL;
        memcpy(PyArray_DATA((PyArrayObject *)a), f->numbers + k, PyArray_ITEMSIZE((PyArrayObject *)a));
        PyTuple_SET_ITEM(out, n++, given_back(a, plain));
    }
    for (int k = 0; k < n; k++)
        if (!PyTuple_GET_ITEM(out, k)) return Py_DECREF(out), NULL;
    return out;
}

/* The results: written arrays that aren't `over`, fresh ones, numbers. */
static PyObject *called(Loop *l, PyObject *const *arrays, Py_ssize_t count, PyObject *ints, PyObject *floats,
                        int plain) {
    if (!l->fn) return PyErr_SetString(PyExc_RuntimeError, "a compiled loop that has been collected"), NULL;
    if (count != l->narrays || PyTuple_GET_SIZE(ints) != l->nints || PyTuple_GET_SIZE(floats) != l->nfloats)
        return PyErr_Format(
                   PyExc_ValueError,
                   "a compiled loop takes %d arrays, %zd integers and %zd floats, not %zd, %zd and %zd",
                   l->narrays, l->nints, l->nfloats, count, PyTuple_GET_SIZE(ints), PyTuple_GET_SIZE(floats)),
               NULL;
    Frame_ f;
    f.count = (int)count, f.total = 0, f.given = arrays, f.numbers = NULL;
    int room = f.count + l->nfresh + l->nwritten;
    f.arrays = (PyArrayObject **)f.few;
    if (room > (int)(sizeof f.few / sizeof(void *)) && !(f.arrays = PyMem_Malloc(room * sizeof(void *))))
        return PyErr_NoMemory();
    memset(f.arrays, 0, room * sizeof(void *));
    f.before = f.arrays + f.count + l->nfresh;
    flb_api->use_allocator();
    PyObject *out = NULL;
    int64_t code = prepare(l, &f) < 0 ? -2 : run(l, &f, ints, floats);
    if (code == 0) out = gather(l, &f, plain);
    else if (code == -1) {
        PyErr_Restore(caught[0], caught[1], caught[2]);
        caught[0] = caught[1] = caught[2] = NULL;
    } else if (code > 0) {
        int bad = 0;
        for (int k = 0; k < l->nwritten && !bad; k++)
            if (f.before[k]) bad = PyArray_CopyInto(f.arrays[l->written[k]], f.before[k]) < 0;
        int64_t *e = f.numbers + l->nresults;
        PyObject *r = bad ? NULL
                          : PyObject_CallFunction(l->fail, "LLLL", (long long)code, (long long)e[0],
                                                  (long long)e[1], (long long)e[2]);
        Py_XDECREF(r);
        if (r) PyErr_SetString(PyExc_RuntimeError, "a compiled loop failed without an error");
    }
    for (int k = 0; k < room; k++) Py_XDECREF(f.arrays[k]);
    if ((void *)f.arrays != (void *)f.few) PyMem_Free(f.arrays);
    if (f.numbers != f.short_) PyMem_Free(f.numbers);
    return out;
}

/* ---- the object ---------------------------------------------------------------------------------------- */

static int *numbers_of(PyObject *list, int *n) {
    PyObject *fast = PySequence_Tuple(list);
    if (!fast) return NULL;
    *n = (int)PyTuple_GET_SIZE(fast);
    int *out = PyMem_Calloc(*n + 1, sizeof(int));
    for (int k = 0; out && k < *n; k++) {
        long v = PyLong_AsLong(PyTuple_GET_ITEM(fast, k));
        if (v < 0 || v > INT32_MAX) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a loop's operands are numbered from 0");
            PyMem_Free(out);
            out = NULL;
            break;
        }
        out[k] = (int)v;
    }
    if (!out && !PyErr_Occurred()) PyErr_NoMemory();
    Py_DECREF(fast);
    return out;
}

static int loop_clear(Loop *l) {
    Py_CLEAR(l->fail);
    Py_CLEAR(l->python);
    return 0;
}

static int loop_traverse(Loop *l, visitproc visit, void *arg) {
    Py_VISIT(l->fail);
    Py_VISIT(l->python);
    return 0;
}

static void loop_dealloc(Loop *l) {
    PyObject_GC_UnTrack(l);
    loop_clear(l);
    for (int k = 0; l->results && k < l->nresults; k++) Py_XDECREF(l->results[k]);
    for (int k = 0; l->dtypes && k < l->narrays; k++) Py_XDECREF(l->dtypes[k]);
    PyMem_Free(l->results);
    PyMem_Free(l->dtypes);
    PyMem_Free(l->written);
    PyMem_Free(l->over);
    PyMem_Free(l->fresh);
    PyMem_Free(l->sizes);
    PyObject_GC_Del(l);
}

static PyObject *call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names);

/* The dtypes of a tuple as an array of them, whose references are the caller's: numbers of at most `largest`
 * bytes. */
static PyArray_Descr **dtypes_of(PyObject *tuple, int *n, int largest) {
    Py_ssize_t size = PyTuple_GET_SIZE(tuple);
    PyArray_Descr **out = PyMem_Calloc(size + 1, sizeof(void *));
    if (!out) return (PyArray_Descr **)PyErr_NoMemory();
    for (*n = 0; *n < size; ++*n) {
        PyArray_Descr *d = (PyArray_Descr *)PyTuple_GET_ITEM(tuple, *n);
        if (!PyArray_DescrCheck(d) || d->type_num >= NPY_NTYPES_LEGACY || PyDataType_ELSIZE(d) > largest ||
            PyTypeNum_ISOBJECT(d->type_num)) {
            PyErr_Format(PyExc_TypeError, "a loop's numbers have at most %d bytes", largest);
            for (int k = 0; k < *n; k++) Py_DECREF(out[k]);
            PyMem_Free(out);
            return NULL;
        }
        out[*n] = (PyArray_Descr *)Py_NewRef((PyObject *)d);
    }
    return out;
}

static int in_order(const int *numbers, int n, int count) {
    for (int k = 0; k < n; k++)
        if (numbers[k] >= count) return 0;
    return 1;
}

static PyObject *loop_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    unsigned long long address;
    PyObject *written, *over, *sizes, *fresh, *results, *fail, *numpy, *dtypes;
    int restores, nover;
    Py_ssize_t nints, nfloats;
    if (!PyArg_ParseTuple(args, "KOOO!OO!pOOO!nn", &address, &written, &over, &PyList_Type, &sizes, &fresh,
                          &PyTuple_Type, &results, &restores, &fail, &numpy, &PyTuple_Type, &dtypes, &nints,
                          &nfloats))
        return NULL;
    Loop *l = PyObject_GC_New(Loop, type);
    if (!l) return NULL;
    memset((char *)l + sizeof(PyObject), 0, sizeof(Loop) - sizeof(PyObject));
    PyObject_GC_Track(l);
    l->vectorcall = call;
    l->fn = (LoopFn)(uintptr_t)address;
    l->restores = restores;
    l->nints = nints, l->nfloats = nfloats;
    l->fail = Py_NewRef(fail);
    l->python = Py_NewRef(numpy);
    if (!(l->written = numbers_of(written, &l->nwritten)) || !(l->over = numbers_of(over, &nover)) ||
        !(l->fresh = numbers_of(fresh, &l->nfresh)))
        goto fail;
    if (nover != l->nwritten) {
        PyErr_SetString(PyExc_ValueError, "a loop has a flag for each operand that is written");
        goto fail;
    }
    l->nsizes = (int)PyList_GET_SIZE(sizes);
    if (!(l->sizes = PyMem_Calloc(l->nsizes + 1, sizeof(int64_t)))) {
        PyErr_NoMemory();
        goto fail;
    }
    for (int k = 0; k < l->nsizes; k++)
        if ((l->sizes[k] = PyLong_AsLongLong(PyList_GET_ITEM(sizes, k))) == -1 && PyErr_Occurred()) goto fail;
    if (!(l->results = dtypes_of(results, &l->nresults, 8)) ||
        !(l->dtypes = dtypes_of(dtypes, &l->narrays, 16)))
        goto fail;
    if (!in_order(l->written, l->nwritten, l->narrays) || !in_order(l->fresh, l->nfresh, l->narrays)) {
        PyErr_SetString(PyExc_ValueError, "a loop writes, and makes arrays like, operands that it has");
        goto fail;
    }
    return (PyObject *)l;
fail:
    Py_DECREF(l);
    return NULL;
}

static PyObject *noted(Loop *l, PyObject *const *arrays, Py_ssize_t count, PyObject *ints, PyObject *floats,
                       int plain) {
    if (!*flb_api->events) return called(l, arrays, count, ints, floats, plain);
    FlbOpen open;
    flb_api->event_begin(&open, EVENT_LOOP, l->fail);
    PyObject *result = called(l, arrays, count, ints, floats, plain);
    flb_api->event_end(&open);
    return result;
}

static PyObject *call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    if (PyVectorcall_NARGS(nargsf) != 3 || (names && PyTuple_GET_SIZE(names)) || !PyTuple_Check(args[0]) ||
        !PyTuple_Check(args[1]) || !PyTuple_Check(args[2]))
        return PyErr_SetString(PyExc_TypeError, "a loop takes tuples of arrays, integers and floats"), NULL;
    return noted((Loop *)self, &PyTuple_GET_ITEM(args[0], 0), PyTuple_GET_SIZE(args[0]), args[1], args[2], 0);
}

/* ---- the call with numbers that are known before
 * ----------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    Loop *loop;
    PyObject *ints, *floats;
} LoopWith;

static PyObject *called_with(LoopWith *w, PyObject *const *arrays, Py_ssize_t n, int plain) {
    if (!w->loop) return PyErr_SetString(PyExc_RuntimeError, "a compiled loop that has been collected"), NULL;
    return noted(w->loop, arrays, n, w->ints, w->floats, plain);
}

static PyObject *call_with(PyObject *self, PyObject *const *arrays, size_t nargsf, PyObject *names) {
    if (names && PyTuple_GET_SIZE(names))
        return PyErr_SetString(PyExc_TypeError, "a loop takes no keyword arguments"), NULL;
    return called_with((LoopWith *)self, arrays, PyVectorcall_NARGS(nargsf), 0);
}

/* The same with arrays as results. */
PyObject *flb_loop_arrays(PyObject *loop, PyObject *const *arrays, Py_ssize_t n) {
    return called_with((LoopWith *)loop, arrays, n, 1);
}

static int with_clear(LoopWith *w) {
    Py_CLEAR(w->loop);
    return 0;
}

static int with_traverse(LoopWith *w, visitproc visit, void *arg) {
    Py_VISIT(w->loop);
    return 0;
}

static void with_dealloc(LoopWith *w) {
    PyObject_GC_UnTrack(w);
    with_clear(w);
    Py_XDECREF(w->ints);
    Py_XDECREF(w->floats);
    PyObject_GC_Del(w);
}

PyTypeObject FlbLoopWith_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._runtime.LoopWith",
    .tp_doc = "What Loop.with_numbers() gives: called with the arrays.",
    .tp_basicsize = sizeof(LoopWith),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_dealloc = (destructor)with_dealloc,
    .tp_traverse = (traverseproc)with_traverse,
    .tp_clear = (inquiry)with_clear,
    .tp_vectorcall_offset = offsetof(LoopWith, vectorcall),
    .tp_call = PyVectorcall_Call,
};

/* The loop, or the call of NumPy's, that a callable of a graph turned out to be when it was first called
 * (inductor/lowering/eager_call.py), or None. */
PyObject *flb_native_call_of(PyObject *callable) {
    PyObject *run = PyObject_GetAttrString(callable, "run");
    if (!run && !PyErr_ExceptionMatches(PyExc_AttributeError)) return NULL;
    if (!run) PyErr_Clear();
    if (run && (Py_IS_TYPE(run, &FlbLoopWith_Type) || Py_IS_TYPE(run, &FlbNumpyCall_Type))) return run;
    Py_XDECREF(run);
    return Py_NewRef(Py_None);
}

static PyObject *with_numbers(PyObject *self, PyObject *args) {
    PyObject *ints, *floats;
    if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &ints, &PyTuple_Type, &floats)) return NULL;
    LoopWith *w = PyObject_GC_New(LoopWith, &FlbLoopWith_Type);
    if (!w) return NULL;
    w->vectorcall = call_with;
    w->loop = (Loop *)Py_NewRef(self);
    w->ints = Py_NewRef(ints), w->floats = Py_NewRef(floats);
    PyObject_GC_Track(w);
    return (PyObject *)w;
}

static PyMethodDef methods[] = {
    {"with_numbers", with_numbers, METH_VARARGS,
     "with_numbers(ints, floats): the call as a function of the arrays alone, each an argument."},
    {0},
};

PyTypeObject FlbLoop_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._runtime.Loop",
    .tp_doc =
        "Loop(address, written, over, sizes, fresh, results, restores, fail, numpy, dtypes, nints, nfloats): "
        "the "
        "call of a native loop, which takes arrays of these dtypes, nints integers and nfloats floats.\n\n"
        "Called with tuples (arrays or tensors, ints, floats); gives the tuple of its results as tensors: "
        "written operands whose flag in `over` is\n"
        "not 1 (those with 1 are written themselves; with 2 the result may lie in the operand's memory), new "
        "arrays of the shapes of the operands `fresh`, numbers of the dtypes `results`. An error ends\n"
        "in fail(number, a, b, c), which raises; operands are as they were then if `restores`. "
        "`numpy(text, arrays)` computes what the kernel has no code for into the last of the arrays, and "
        "gives "
        "the floating-point flags that it raised. Signals are served while it runs.",
    .tp_basicsize = sizeof(Loop),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = loop_new,
    .tp_methods = methods,
    .tp_dealloc = (destructor)loop_dealloc,
    .tp_traverse = (traverseproc)loop_traverse,
    .tp_clear = (inquiry)loop_clear,
    .tp_vectorcall_offset = offsetof(Loop, vectorcall),
    .tp_call = PyVectorcall_Call,
};
