/* The Exchange object: one rank's side of a group.
 *
 * Every operation is a number of steps. In a step each rank writes a piece of what it gives into one of its
 * two slots, all ranks meet at a barrier, and each reads what it needs from the slots of the others. The
 * slots take turns, so one barrier a step is enough: who writes a slot again has met everybody since it was
 * read. An all_reduce of memory that all ranks can read needs no slots: each rank reduces its part of the
 * elements and writes the result to all. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

#include "distributed/exchange.h"
#include "distributed/watch.h"

enum { BARRIER, ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER, GATHER, SCATTER, ALL_TO_ALL, REDUCE_SCATTER };
enum { DONE, TIMED_OUT, MISMATCH, BROKEN, UNSUPPORTED, GONE, LENGTHS, INTERRUPTED };
enum { MOST_RANKS = 1024, SPINS = 400, SLICE_MS = 50 };
#define ANYWHERE UINT64_MAX /* region: all memory, by address */

typedef struct {
    char *at;
    size_t bytes;
} Piece;

typedef struct {
    char *bases[MOST_RANKS];
    size_t bytes;
} Region;

/* A piece that isn't as long as its receiver expects. */
typedef struct {
    int from, to;
    uint64_t sent, expected;
} Wrong;

typedef struct {
    PyObject_HEAD
    int rank, n, one_process;
    size_t slot;
    uint64_t arrived, operations, turn;
    FlbPart **parts;
    FlbHeader *seen; /* of the last operation that ranks didn't agree about */
    int *global;     /* ranks of the whole job; who left is known by these */
    Region **regions;
    int n_regions, busy;
    int other; /* whom an error is about */
    Wrong wrong;
    PyThreadState *state;
} Exchange;

/* ---- waiting ------------------------------------------------------------------------------------------- */

#if defined(__linux__)
static long futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *limit) {
    return syscall(SYS_futex, (uint32_t *)word, op, value, limit, NULL, 0);
}
#else
/* Without futexes a rank that waits looks again every 50 microseconds, and nobody needs to be woken. */
enum { FUTEX_WAIT, FUTEX_WAKE };
static long futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *limit) {
    struct timespec pause = {0, 50000};
    for (long left = op == FUTEX_WAIT ? limit->tv_nsec : 0; left > 0; left -= pause.tv_nsec) {
        if (atomic_load(word) != value) return 0;
        if (nanosleep(&pause, NULL)) return -1; /* EINTR */
    }
    errno = ETIMEDOUT;
    return op == FUTEX_WAIT ? -1 : 0;
}
#endif
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static inline void rest(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}
static void announce(Exchange *x) {
    FlbPart *first = x->parts[0];
    atomic_fetch_add(&first->epoch, 1);
    if (atomic_load(&first->sleepers)) futex(&first->epoch, FUTEX_WAKE, INT_MAX, NULL);
}
/* The first rank that hasn't come, -1. */
static int missing(Exchange *x) {
    for (int k = 0; k < x->n; k++)
        if (k != x->rank && atomic_load_explicit(&x->parts[k]->arrived, memory_order_acquire) < x->arrived)
            return k;
    return -1;
}
static int give_up(Exchange *x, int status) {
    uint32_t none = 0;
    atomic_compare_exchange_strong(&x->parts[0]->broken, &none, (uint32_t)x->rank + 1);
    announce(x);
    return status;
}
/* All ranks have come here when it returns DONE. */
static int barrier(Exchange *x, double deadline) {
    FlbPart *first = x->parts[0];
    atomic_store(&x->parts[x->rank]->arrived, ++x->arrived);
    announce(x);
    for (int i = 0; i < SPINS; i++) {
        if (missing(x) < 0) return DONE;
        rest();
    }
    for (;;) {
        atomic_fetch_add(&first->sleepers, 1);
        uint32_t epoch = atomic_load(&first->epoch);
        int who = missing(x);
        uint32_t broken = atomic_load(&first->broken);
        if (who >= 0 && !broken) {
            struct timespec slice = {0, SLICE_MS * 1000000L};
            long r = futex(&first->epoch, FUTEX_WAIT, epoch, &slice);
            if (r && (errno == ETIMEDOUT || errno == EINTR)) {
                who = missing(x);
                if (who >= 0) {
                    PyEval_RestoreThread(x->state);
                    int bad = PyErr_CheckSignals();
                    x->state = PyEval_SaveThread();
                    if (bad) {
                        atomic_fetch_sub(&first->sleepers, 1);
                        return give_up(x, INTERRUPTED);
                    }
                }
            }
        }
        atomic_fetch_sub(&first->sleepers, 1);
        if ((who = missing(x)) < 0) return DONE;
        if (broken) return x->other = (int)broken - 1, BROKEN;
        if (flb_has_left(x->global[who])) return x->other = who, give_up(x, GONE);
        if (now() > deadline) return x->other = who, give_up(x, TIMED_OUT);
    }
}

/* ---- one operation ------------------------------------------------------------------------------------- */

typedef struct {
    int kind, type, op, root;
    int n_sends, n_receives; /* pieces: none, one, or one for each rank */
    Piece sends[MOST_RANKS], receives[MOST_RANKS];
    size_t count; /* elements of a reduction; else bytes of a piece that all agree on */
    double deadline;
} Call;

static FlbHeader *header(Exchange *x, int rank) { return &x->parts[rank]->headers[x->operations & 1]; }
static char *slot(Exchange *x, int rank) {
    return (char *)x->parts[rank] + FLB_SLOTS + (x->turn & 1) * x->slot;
}
static int personal(int kind) { return kind == SCATTER || kind == ALL_TO_ALL || kind == REDUCE_SCATTER; }
static int gives(Exchange *x, Call *c) {
    return c->kind == BROADCAST || c->kind == SCATTER ? x->rank == c->root : c->kind != BARRIER;
}
/* Pieces of personal operations share a slot: 64 bytes apart at least, whole elements. */
static size_t piece_room(Exchange *x, int kind) {
    size_t bytes = kind == ALL_TO_ALL ? x->slot - 2 * x->n * sizeof(uint64_t) : x->slot;
    return personal(kind) ? (bytes / x->n) & ~(size_t)63 : x->slot;
}
/* At the end of the first slot of an ALL_TO_ALL: the bytes of the rank's pieces to each rank, and then from
 * each. */
static uint64_t *lengths(Exchange *x, int rank) { return (uint64_t *)(slot(x, rank) + x->slot) - 2 * x->n; }
static void write_lengths(Exchange *x, Call *c) {
    uint64_t *own = lengths(x, x->rank);
    for (int k = 0; k < x->n; k++) own[k] = c->sends[k].bytes, own[x->n + k] = c->receives[k].bytes;
}
/* Whether each piece is as long as its receiver expects; all ranks find the same first one that isn't. */
static int lengths_agree(Exchange *x) {
    for (int from = 0; from < x->n; from++)
        for (int to = 0; to < x->n; to++) {
            uint64_t sent = lengths(x, from)[to], expected = lengths(x, to)[x->n + from];
            if (sent == expected) continue;
            x->wrong = (Wrong){from, to, sent, expected};
            return 0;
        }
    return 1;
}
static void write_step(Exchange *x, Call *c, size_t at) {
    size_t room = piece_room(x, c->kind);
    char *to = slot(x, x->rank);
    if (!gives(x, c)) return;
    for (int d = 0; d < c->n_sends; d++) {
        Piece *p = &c->sends[d];
        if (at >= p->bytes || (c->kind == ALL_TO_ALL && d == x->rank)) continue;
        size_t len = p->bytes - at < room ? p->bytes - at : room;
        memcpy(to + (c->n_sends > 1 ? d * room : 0), p->at + at, len);
    }
}
static int read_step(Exchange *x, Call *c, size_t at) {
    size_t room = piece_room(x, c->kind), part = personal(c->kind) ? x->rank * room : 0;
    if (c->kind == ALL_REDUCE || c->kind == REDUCE || c->kind == REDUCE_SCATTER) {
        if (!c->n_receives || at >= c->receives[0].bytes) return 0;
        const void *from[MOST_RANKS];
        for (int k = 0; k < x->n; k++) from[k] = slot(x, k) + part;
        size_t len = c->receives[0].bytes - at < room ? c->receives[0].bytes - at : room;
        return flb_reduce(c->type, c->op, c->receives[0].at + at, from, x->n, len / flb_type_size(c->type));
    }
    for (int s = 0; s < c->n_receives; s++) {
        Piece *p = &c->receives[s];
        int from = c->n_receives == 1 ? c->root : s;
        if (at >= p->bytes) continue;
        size_t len = p->bytes - at < room ? p->bytes - at : room;
        if (from == x->rank) { /* one's own piece needs no slot */
            char *own = c->sends[personal(c->kind) && c->n_sends > 1 ? x->rank : 0].at + at;
            if (own != p->at + at) memmove(p->at + at, own, len);
        } else {
            memcpy(p->at + at, slot(x, from) + part, len);
        }
    }
    return 0;
}
/* Each rank reduces a part of the elements in everybody's memory. */
static int reduce_in_place(Exchange *x, Call *c, char **at) {
    size_t size = flb_type_size(c->type), line = 64 / size, share = (c->count / x->n + line) / line * line;
    size_t begin = x->rank * share, end = begin + share;
    if (begin > c->count) begin = c->count;
    if (end > c->count) end = c->count;
    size_t step = 32768 / size;
    for (size_t i = begin; i < end; i += step) {
        size_t len = end - i < step ? end - i : step;
        const void *from[MOST_RANKS];
        for (int k = 0; k < x->n; k++) from[k] = at[k] + i * size;
        char *own = at[x->rank] + i * size;
        if (flb_reduce(c->type, c->op, own, from, x->n, len) < 0) return -1;
        for (int k = 0; k < x->n; k++)
            if (k != x->rank) memcpy(at[k] + i * size, own, len * size);
    }
    return 0;
}
static void find_place(Exchange *x, Call *c, FlbHeader *h) {
    h->region = h->place = 0;
    if (c->kind != ALL_REDUCE || c->sends[0].at != c->receives[0].at) return;
    char *p = c->sends[0].at;
    if (x->one_process) {
        h->region = ANYWHERE, h->place = (uint64_t)(uintptr_t)p;
        return;
    }
    for (int i = 0; i < x->n_regions; i++) {
        Region *r = x->regions[i];
        if (r && p >= r->bases[x->rank] && p + c->sends[0].bytes <= r->bases[x->rank] + r->bytes) {
            h->region = i + 1, h->place = (uint64_t)(p - r->bases[x->rank]);
            return;
        }
    }
}
/* Where the elements lie in the memory of each rank; 0 unless all gave the same place of a common region. */
static int common_place(Exchange *x, char **at) {
    FlbHeader *own = header(x, x->rank);
    for (int k = 0; k < x->n; k++) {
        FlbHeader *h = header(x, k);
        if (!h->region || h->region != own->region) return 0;
        if (h->region == ANYWHERE) at[k] = (char *)(uintptr_t)h->place;
        else if (h->place != own->place) return 0;
        else at[k] = x->regions[h->region - 1]->bases[k] + h->place;
    }
    return 1;
}
static int agree(const FlbHeader *a, const FlbHeader *b) {
    return a->sequence == b->sequence && a->kind == b->kind && a->type == b->type && a->op == b->op &&
        a->root == b->root && (a->kind == ALL_TO_ALL || a->count == b->count);
}
static int operate(Exchange *x, Call *c) {
    FlbPart *own = x->parts[x->rank];
    uint32_t broken = atomic_load(&x->parts[0]->broken);
    if (broken) return x->other = (int)broken - 1, BROKEN;
    FlbHeader *h = header(x, x->rank);
    size_t most = 0;
    for (int d = 0; d < c->n_sends; d++)
        if (gives(x, c) && c->sends[d].bytes > most) most = c->sends[d].bytes;
    *h = (FlbHeader){.sequence = x->operations,
                     .kind = c->kind,
                     .type = c->type,
                     .op = c->op,
                     .root = c->root,
                     .count = c->count,
                     .most = most};
    find_place(x, c, h);
    atomic_store(&own->started, x->operations + 1);
    if (!h->region) write_step(x, c, 0);
    if (c->kind == ALL_TO_ALL) write_lengths(x, c);
    int status = barrier(x, c->deadline);
    if (status) return status;
    char *at[MOST_RANKS];
    size_t longest = 0;
    status = DONE;
    for (int k = 0; k < x->n; k++) {
        if (!agree(header(x, 0), header(x, k))) status = MISMATCH;
        if (header(x, k)->most > longest) longest = header(x, k)->most;
    }
    if (status) { /* nothing was read; all ranks see the same */
        for (int k = 0; k < x->n; k++) x->seen[k] = *header(x, k);
    } else if (c->kind == ALL_TO_ALL && !lengths_agree(x)) {
        status = LENGTHS;
        x->turn++; /* others may still read this slot */
    } else if (common_place(x, at)) {
        if (reduce_in_place(x, c, at) < 0) status = UNSUPPORTED;
        int met = barrier(x, c->deadline);
        if (met) return met;
    } else {
        if (h->region) { /* others have theirs elsewhere */
            write_step(x, c, 0);
            if ((status = barrier(x, c->deadline))) return status;
        } else if (c->kind == ALL_REDUCE) {
            int any = 0;
            for (int k = 0; k < x->n; k++) any |= header(x, k)->region != 0;
            if (any && (status = barrier(x, c->deadline))) return status;
        }
        size_t room = piece_room(x, c->kind);
        for (size_t done = 0;;) {
            if (read_step(x, c, done) < 0) status = UNSUPPORTED;
            x->turn++;
            done += room;
            if (done >= longest) break;
            write_step(x, c, done);
            int met = barrier(x, c->deadline);
            if (met) return met;
        }
    }
    atomic_store(&own->finished, ++x->operations);
    return status;
}

/* ---- Python -------------------------------------------------------------------------------------------- */

/* Pieces of (address, bytes, address, bytes, ...). -1: an exception. */
static int take_pieces(PyObject *given, int n, Piece *pieces) {
    Py_ssize_t len = PyTuple_GET_SIZE(given);
    if (len % 2 || (len != 0 && len != 2 && len != 2 * n))
        return PyErr_SetString(PyExc_ValueError, "expected no piece, one, or one for each rank"), -1;
    for (Py_ssize_t i = 0; i < len / 2; i++) {
        pieces[i].at = PyLong_AsVoidPtr(PyTuple_GET_ITEM(given, 2 * i));
        pieces[i].bytes = PyLong_AsSize_t(PyTuple_GET_ITEM(given, 2 * i + 1));
        if (PyErr_Occurred()) return -1;
    }
    return (int)(len / 2);
}
static PyObject *exchange_run(Exchange *x, PyObject *args) {
    PyObject *sends, *receives;
    double timeout;
    Py_ssize_t count;
    Call *c = PyMem_Calloc(1, sizeof(Call));
    if (!c) return PyErr_NoMemory();
    PyObject *out = NULL;
    if (!PyArg_ParseTuple(args, "iO!O!iiind", &c->kind, &PyTuple_Type, &sends, &PyTuple_Type, &receives,
                          &c->type, &c->op, &c->root, &count, &timeout))
        goto done;
    c->count = (size_t)count;
    if ((c->n_sends = take_pieces(sends, x->n, c->sends)) < 0 ||
        (c->n_receives = take_pieces(receives, x->n, c->receives)) < 0)
        goto done;
    if (c->kind < BARRIER || c->kind > REDUCE_SCATTER || c->root < 0 || c->root >= x->n ||
        c->count != (size_t)count || c->type < 0 || c->type >= N_TYPES) {
        PyErr_SetString(PyExc_ValueError, "no such operation");
        goto done;
    }
    if (c->kind == ALL_TO_ALL && (c->n_sends != x->n || c->n_receives != x->n)) {
        PyErr_SetString(PyExc_ValueError, "all_to_all takes and gives a piece for each rank");
        goto done;
    }
    if (c->kind == ALL_REDUCE && (c->n_sends != 1 || c->n_receives != 1)) {
        PyErr_SetString(PyExc_ValueError, "all_reduce takes one piece and gives one");
        goto done;
    }
    if (x->busy) {
        PyErr_SetString(PyExc_RuntimeError, "an exchange runs one operation at a time");
        goto done;
    }
    x->busy = 1;
    x->other = -1;
    c->deadline = now() + timeout;
    x->state = PyEval_SaveThread();
    int status = operate(x, c);
    PyEval_RestoreThread(x->state);
    x->busy = 0;
    if (status != INTERRUPTED) out = Py_BuildValue("(ii)", status, x->other);
done:
    PyMem_Free(c);
    return out;
}
static PyObject *exchange_states(Exchange *x, PyObject *disagreed) {
    int seen = PyObject_IsTrue(disagreed);
    PyObject *list = seen < 0 ? NULL : PyList_New(x->n);
    for (int k = 0; list && k < x->n; k++) {
        FlbPart *p = x->parts[k];
        uint64_t started = atomic_load(&p->started), finished = atomic_load(&p->finished);
        FlbHeader h = seen ? x->seen[k] : p->headers[started ? (started - 1) & 1 : 0];
        if (seen) started = h.sequence + 1, finished = h.sequence;
        PyObject *row = Py_BuildValue("(KKIIIIK)", (unsigned long long)started, (unsigned long long)finished,
                                      h.kind, h.type, h.op, h.root, (unsigned long long)h.count);
        if (!row) Py_CLEAR(list);
        else PyList_SET_ITEM(list, k, row);
    }
    return list;
}
static PyObject *exchange_wrong_lengths(Exchange *x, PyObject *Py_UNUSED(ignored)) {
    Wrong *w = &x->wrong;
    return Py_BuildValue("(iiKK)", w->from, w->to, (unsigned long long)w->sent,
                         (unsigned long long)w->expected);
}
static PyObject *exchange_give_up(Exchange *x, PyObject *Py_UNUSED(ignored)) {
    give_up(x, 0);
    Py_RETURN_NONE;
}
static PyObject *exchange_add_region(Exchange *x, PyObject *args) {
    PyObject *bases;
    Py_ssize_t bytes;
    if (!PyArg_ParseTuple(args, "O!n", &PyTuple_Type, &bases, &bytes)) return NULL;
    if (PyTuple_GET_SIZE(bases) != x->n) return PyErr_Format(PyExc_ValueError, "expected %d addresses", x->n);
    Region **more = PyMem_Realloc(x->regions, (x->n_regions + 1) * sizeof(Region *));
    if (!more) return PyErr_NoMemory();
    x->regions = more;
    Region *r = PyMem_Calloc(1, sizeof(Region));
    if (!r) return PyErr_NoMemory();
    r->bytes = (size_t)bytes;
    for (int k = 0; k < x->n; k++) r->bases[k] = PyLong_AsVoidPtr(PyTuple_GET_ITEM(bases, k));
    if (PyErr_Occurred()) return PyMem_Free(r), NULL;
    x->regions[x->n_regions++] = r;
    return PyLong_FromLong(x->n_regions);
}
static PyObject *exchange_remove_region(Exchange *x, PyObject *number) {
    long k = PyLong_AsLong(number);
    if (k == -1 && PyErr_Occurred()) return NULL;
    if (k < 1 || k > x->n_regions) return PyErr_Format(PyExc_ValueError, "no region %ld", k);
    PyMem_Free(x->regions[k - 1]);
    x->regions[k - 1] = NULL;
    Py_RETURN_NONE;
}
static PyObject *exchange_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"rank", "parts", "ranks", "slot", "one_process", NULL};
    int rank, one_process;
    PyObject *parts, *ranks;
    Py_ssize_t slot;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "iO!O!np", names, &rank, &PyTuple_Type, &parts,
                                     &PyTuple_Type, &ranks, &slot, &one_process))
        return NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(parts);
    if (n < 1 || n > MOST_RANKS || rank < 0 || rank >= n || PyTuple_GET_SIZE(ranks) != n || slot % 64 ||
        slot < 128 * n)
        return PyErr_Format(PyExc_ValueError,
                            "an exchange of %zd ranks with slots of %zd bytes can't be made", n, slot);
    Exchange *x = (Exchange *)type->tp_alloc(type, 0);
    if (!x) return NULL;
    x->rank = rank, x->n = (int)n, x->slot = (size_t)slot, x->one_process = one_process;
    x->parts = PyMem_Calloc(n, sizeof(FlbPart *));
    x->global = PyMem_Calloc(n, sizeof(int));
    x->seen = PyMem_Calloc(n, sizeof(FlbHeader));
    if (!x->seen || !x->parts || !x->global) return Py_DECREF(x), PyErr_NoMemory();
    for (Py_ssize_t k = 0; k < n; k++) {
        x->parts[k] = PyLong_AsVoidPtr(PyTuple_GET_ITEM(parts, k));
        x->global[k] = (int)PyLong_AsLong(PyTuple_GET_ITEM(ranks, k));
    }
    if (PyErr_Occurred()) return Py_DECREF(x), NULL;
    return (PyObject *)x;
}
static void exchange_dealloc(Exchange *x) {
    for (int i = 0; i < x->n_regions; i++) PyMem_Free(x->regions[i]);
    PyMem_Free(x->regions);
    PyMem_Free(x->parts);
    PyMem_Free(x->seen);
    PyMem_Free(x->global);
    Py_TYPE(x)->tp_free((PyObject *)x);
}
static PyMethodDef exchange_methods[] = {
    {"run", (PyCFunction)exchange_run, METH_VARARGS,
     "run(kind, sends, receives, type, op, root, count, timeout) -> (status, rank it is about): one "
     "operation, "
     "with the GIL free. Pieces are (address, bytes, ...). KeyboardInterrupt while waiting."},
    {"states", (PyCFunction)exchange_states, METH_O,
     "states(disagreed) -> a row for each rank: (operations started, finished, kind, type, op, root, count "
     "of the "
     "last), now or when ranks last disagreed"},
    {"wrong_lengths", (PyCFunction)exchange_wrong_lengths, METH_NOARGS,
     "wrong_lengths() -> (from, to, bytes sent, bytes expected): the piece of the last all_to_all whose two "
     "ranks disagree"},
    {"give_up", (PyCFunction)exchange_give_up, METH_NOARGS,
     "give_up(): every rank that waits, or will, is told to stop"},
    {"add_region", (PyCFunction)exchange_add_region, METH_VARARGS,
     "add_region(addresses, bytes) -> number: memory that all ranks have mapped, by rank"},
    {"remove_region", (PyCFunction)exchange_remove_region, METH_O, "remove_region(number)"},
    {NULL},
};
static PyTypeObject Exchange_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._exchange.Exchange",
    .tp_doc = "Exchange(rank, parts, ranks, slot, one_process): collectives over shared memory; parts are "
              "addresses, zeroed "
              "before, of part_bytes(slot) each.",
    .tp_basicsize = sizeof(Exchange),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = exchange_new,
    .tp_dealloc = (destructor)exchange_dealloc,
    .tp_methods = exchange_methods,
};

static PyObject *part_bytes(PyObject *Py_UNUSED(module), PyObject *slot) {
    Py_ssize_t n = PyLong_AsSsize_t(slot);
    return n == -1 && PyErr_Occurred() ? NULL : PyLong_FromSsize_t(FLB_SLOTS + 2 * n);
}
/* reduce(type, op, out address, part addresses, count) -> whether there is such an operation */
static PyObject *reduce(PyObject *Py_UNUSED(module), PyObject *args) {
    int type, op;
    PyObject *out, *parts;
    Py_ssize_t count;
    if (!PyArg_ParseTuple(args, "iiOO!n", &type, &op, &out, &PyTuple_Type, &parts, &count)) return NULL;
    const void *from[MOST_RANKS];
    Py_ssize_t n = PyTuple_GET_SIZE(parts);
    if (n < 1 || n > MOST_RANKS || count < 0)
        return PyErr_Format(PyExc_ValueError, "can't reduce %zd parts", n);
    void *to = PyLong_AsVoidPtr(out);
    for (Py_ssize_t k = 0; k < n; k++) from[k] = PyLong_AsVoidPtr(PyTuple_GET_ITEM(parts, k));
    if (PyErr_Occurred()) return NULL;
    int r;
    Py_BEGIN_ALLOW_THREADS;
    r = flb_reduce(type, op, to, from, (int)n, (size_t)count);
    Py_END_ALLOW_THREADS;
    return PyBool_FromLong(r == 0);
}
static PyMethodDef functions[] = {
    {"part_bytes", part_bytes, METH_O, "part_bytes(slot) -> bytes of a rank's part of the shared memory"},
    {"reduce", reduce, METH_VARARGS,
     "reduce(type, op, out, parts, count) -> bool: out = parts[0] op parts[1] ..., by address; False where "
     "the type has "
     "no such operation"},
    {"watch", flb_watch, METH_VARARGS,
     "watch(descriptor, rank): tell the other end each second that this process lives, from a thread that "
     "never "
     "waits for the GIL; end the process when the other end says that a rank died"},
    {"unwatch", flb_unwatch, METH_NOARGS, "unwatch(): say goodbye, and end the thread"},
    {"left", flb_left, METH_NOARGS, "left() -> list of the ranks that have left the job"},
    {NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "flambeau._exchange", .m_size = -1,
                                        .m_doc = "Collectives over shared memory, and the watch over ranks.",
                                        .m_methods = functions};
PyMODINIT_FUNC PyInit__exchange(void) {
    if (PyType_Ready(&Exchange_Type) < 0) return NULL;
    PyObject *m = PyModule_Create(&definition);
    if (m && PyModule_AddObjectRef(m, "Exchange", (PyObject *)&Exchange_Type) < 0) Py_CLEAR(m);
    return m;
}
