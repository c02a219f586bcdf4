/* Memory of all arrays: a caching allocator behind NumPy's memory-handler interface.
 *
 * A training step asks for the same sizes again and again. malloc gives large blocks back to the system each time, and the page faults
 * of getting them anew cost more than the kernels that fill them. Here a freed block of 32 KiB or more is kept, by size class (eight to
 * an octave), and given to the next request that fits; the newest first, while it is still in the processor's caches. A request that finds none of its
 * size takes the beginning of a larger one, up to eight times as large, and what is freed is joined with its free neighbours. Smaller blocks are malloc's.
 *
 * What is kept goes back to the system: the longest unused beyond `limit` bytes, what nobody wanted for DECAY seconds, all of it when the
 * system refuses memory or release() is called; of a mapping that is partly in use, the pages. A block that is in use is never touched: NumPy frees an array's memory with its last owner.
 *
 * The handler is a context variable, so it is set where it matters (flb_use_allocator: at import, at each launch of a compiled graph, before
 * large eager operators) and only over NumPy's own default: a handler that the user installed stays. An array remembers the handler that made it,
 * and this code stays loaded as long as the process, so arrays outlive whatever becomes of the module.
 *
 * Invariant: `lock` guards the lists and the counters; block headers in use belong to their owner. */
#define _GNU_SOURCE
#include "guarded.h"
#include "tensor_internal.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define SMALLEST ((size_t)1 << 15)
#define CLASSES 400
#define PAGE ((size_t)4096)          /* sizes are multiples of it */
#define DECAY 20                     /* seconds */
#define ZERO_BY_HAND ((size_t)1 << 26) /* above, calloc prefers fresh pages: many are never touched */
#define HUGE_FROM ((size_t)1 << 22)
#define SPREAD 8                     /* data starts at one of 8 cache lines, lest all arrays fall into the same sets */

typedef struct Block {
    size_t total;                    /* bytes, of a mapping or of a part of one */
    int class;                       /* the greatest that fits in */
    int scratch;                     /* made for memory of the moment */
    enum { USED, KEPT, DROPPED } state; /* dropped: a free part of a mapping whose pages went back */
    time_t since;                    /* when it was freed */
    struct Block *next, *prev;       /* kept blocks of the class, the newest first */
    struct Block *newer, *older;     /* all kept blocks by age */
    struct Block *left, *right;      /* its neighbours in the mapping */
} Block;

/* What stands right before the data. `block` is NULL for memory from malloc. */
typedef struct {
    Block *block;
    size_t size;                     /* bytes asked for */
} Tag;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Block *free_blocks[CLASSES], *newest, *oldest;
static size_t limit;
static struct { size_t in_use, peak, kept, hits, misses, released, blocks; } stats;

/* Class of a size, and its bytes: (8 + m) << e for m in 0..7. */
static int class_of(size_t size, size_t *total) {
    int e = 63 - __builtin_clzll(size) - 3;
    size_t step = (size_t)1 << e, units = (size + step - 1) >> e;  /* 8..16 */
    if (units == 16) units = 8, e++;
    *total = units << e;
    return (e - 12) * 8 + (int)units - 8;
}

static int class_within(size_t total) {
    size_t whole;
    int class = class_of(total, &whole);
    return whole > total ? class - 1 : class;
}

static void unlink_block(Block *b) {
    if (b->prev) b->prev->next = b->next;
    else free_blocks[b->class] = b->next;
    if (b->next) b->next->prev = b->prev;
    if (b->newer) b->newer->older = b->older;
    else newest = b->older;
    if (b->older) b->older->newer = b->newer;
    else oldest = b->newer;
    stats.kept -= b->total;
}

/* Keep a block, as the newest. */
static void link_block(Block *b) {
    b->state = KEPT;
    b->class = class_within(b->total);
    b->prev = NULL;
    b->next = free_blocks[b->class];
    if (b->next) b->next->prev = b;
    free_blocks[b->class] = b;
    b->newer = NULL;
    b->older = newest;
    if (newest) newest->newer = b;
    newest = b;
    if (!oldest) oldest = b;
    stats.kept += b->total;
}

/* One block of two neighbours; neither is in a list. */
static Block *joined(Block *b, Block *right) {
    b->total += right->total;
    b->right = right->right;
    if (b->right) b->right->left = b;
    b->scratch &= right->scratch;
    return b;
}

static Block *with_free_neighbours(Block *b) {
    Block *sides[2] = {b->left, b->right};
    for (int i = 0; i < 2; i++) {
        Block *other = sides[i];
        if (!other || other->state == USED) continue;
        if (other->state == KEPT) unlink_block(other);
        b = i ? joined(b, other) : joined(other, b);
    }
    return b;
}

/* Cut a block that is in no list after `total` bytes; the rest is kept. */
static void cut(Block *b, size_t total) {
    Block *rest = (Block *)((char *)b + total);
    *rest = (Block){.total = b->total - total, .scratch = b->scratch, .since = b->since, .left = b, .right = b->right};
    if (rest->right) rest->right->left = rest;
    b->right = rest;
    b->total = total;
    link_block(rest);
}

/* Give back what a kept block holds. */
static size_t release(Block *b) {
    size_t total = b->total;
    unlink_block(b);
    stats.released += total;
    if (!b->left && !b->right) munmap(b, total);
    else {
        b->state = DROPPED;
        madvise((char *)b + PAGE, total - PAGE, MADV_DONTNEED);
    }
    return total;
}

static size_t release_all(void) {
    size_t total = 0;
    while (oldest) total += release(oldest);
    return total;
}

static time_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return t.tv_sec;
}

static void *small_block(size_t size, int zero) {
    Tag *tag = zero ? calloc(1, size + sizeof(Tag)) : malloc(size + sizeof(Tag));
    if (!tag) return NULL;
    tag->block = NULL;
    tag->size = size;
    return tag + 1;
}

/* Free blocks that were made for memory of the moment and are smaller than one to be made leave: the new one will serve for them. So templates and
 * arenas of many sizes share a block. */
static void make_room(int class) {
    for (int c = class < 16 ? 0 : class - 16; c < class; c++)
        for (Block *b = free_blocks[c], *next; b; b = next) {
            next = b->next;
            if (b->scratch && !b->left && !b->right) release(b);
        }
}

/* A kept block of `total` bytes or little more, or the beginning of a larger one; NULL: there is none. */
static Block *kept_block(int class, size_t total) {
    for (int c = class; c < class + 24 && c < CLASSES; c++) {
        Block *b = free_blocks[c];
        if (!b) continue;
        unlink_block(b);
        if (c > class + 2 && b->total - total >= SMALLEST) cut(b, total);
        return b;
    }
    return NULL;
}

static void *large_block(size_t size, int zero, int scratch) {
    static unsigned place;
    size_t total;
    if (size > ((size_t)1 << 47)) return NULL;
    int class = class_of(size + sizeof(Block) + 64 * (SPREAD + 1), &total), fresh = 0;
    pthread_mutex_lock(&lock);
    Block *b = zero && total > ZERO_BY_HAND ? NULL : kept_block(class, total);
    if (b) {
        b->scratch &= scratch;
        stats.hits++;
    } else {
        if (scratch) make_room(class);
        stats.misses++;
        for (int attempt = 0; attempt < 2 && !b; attempt++) {
            void *p = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (p != MAP_FAILED) b = p;
            else if (!release_all()) break;
        }
        if (!b) {
            pthread_mutex_unlock(&lock);
            return NULL;
        }
        if (total >= HUGE_FROM) madvise(b, total, MADV_HUGEPAGE);
        *b = (Block){.total = total, .scratch = scratch};
        fresh = 1;
    }
    b->state = USED;
    stats.in_use += b->total;
    stats.blocks++;
    if (stats.in_use > stats.peak) stats.peak = stats.in_use;
    char *data = (char *)b + (sizeof(Block) + sizeof(Tag) + 63) / 64 * 64 + 64 * (place++ % SPREAD);
    pthread_mutex_unlock(&lock);
    Tag *tag = (Tag *)data - 1;
    tag->block = b;
    tag->size = size;
    if (zero && !fresh) memset(data, 0, size);
    return data;
}

#define ARRAYS 16                    /* bytes that guarded arrays are aligned to, as malloc's are */

void *flb_malloc(size_t size) {
    if (flb_guarded) return flb_guarded_malloc(size, ARRAYS, 0);
    return size < SMALLEST ? small_block(size, 0) : large_block(size, 0, 0);
}

/* Memory that goes back before the launch it belongs to ends. */
void *flb_scratch(size_t size) {
    if (flb_guarded) return flb_guarded_malloc(size, 64, 0);
    return size < SMALLEST ? small_block(size, 0) : large_block(size, 0, 1);
}

void flb_free(void *data) {
    if (!data) return;
    if (flb_guarded) {
        flb_guarded_free(data);
        return;
    }
    Tag *tag = (Tag *)data - 1;
    Block *b = tag->block;
    if (!b) {
        free(tag);
        return;
    }
    pthread_mutex_lock(&lock);
    stats.in_use -= b->total;
    stats.blocks--;
    b = with_free_neighbours(b);
    b->since = now();
    link_block(b);
    time_t present = newest->since;
    while (oldest && (stats.kept > limit || oldest->since + DECAY < present)) release(oldest);
    pthread_mutex_unlock(&lock);
}

/* --- NumPy's handler ----------------------------------------------------------------------------------------------- */

static void *handler_malloc(void *context, size_t size) { return flb_malloc(size); }

static void *handler_calloc(void *context, size_t count, size_t item) {
    size_t size;
    if (__builtin_mul_overflow(count, item, &size)) return NULL;
    if (flb_guarded) return flb_guarded_malloc(size, ARRAYS, 1);
    return size < SMALLEST ? small_block(size, 1) : large_block(size, 1, 0);
}

static void *handler_realloc(void *context, void *data, size_t size) {
    if (!data) return flb_malloc(size);
    if (flb_guarded) {
        void *made = flb_malloc(size);
        size_t had = flb_guarded_size(data);
        if (!made) return NULL;
        memcpy(made, data, had < size ? had : size);
        flb_free(data);
        return made;
    }
    Tag *tag = (Tag *)data - 1;
    if (!tag->block && size < SMALLEST) {
        Tag *moved = realloc(tag, size + sizeof(Tag));
        if (!moved) return NULL;
        moved->size = size;
        return moved + 1;
    }
    if (tag->block && size >= SMALLEST) {
        size_t room = tag->block->total - (size_t)((char *)data - (char *)tag->block);
        if (size <= room && size >= room / 2) {
            tag->size = size;
            return data;
        }
    }
    void *made = flb_malloc(size);
    if (!made) return NULL;
    memcpy(made, data, tag->size < size ? tag->size : size);
    flb_free(data);
    return made;
}

static void handler_free(void *context, void *data, size_t size) { flb_free(data); }

static PyDataMem_Handler handler = {"flambeau", 1, {NULL, handler_malloc, handler_calloc, handler_realloc, handler_free}};
static PyObject *capsule;  /* of the handler; NULL when the allocator is switched off */

int flb_use_allocator(void) {
    if (!capsule) return 0;
    PyObject *current = PyDataMem_GetHandler();
    if (!current) return -1;
    Py_DECREF(current);  /* the context holds it */
    if (current == capsule || current != PyDataMem_DefaultHandler) return 0;
    PyObject *old = PyDataMem_SetHandler(capsule);
    Py_XDECREF(old);
    return old ? 0 : -1;
}

/* --- Python -------------------------------------------------------------------------------------------------------- */

static PyObject *use_allocator(PyObject *self, PyObject *unused) {
    if (flb_use_allocator() < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *memory_release(PyObject *self, PyObject *unused) {
    pthread_mutex_lock(&lock);
    size_t total = release_all();
    pthread_mutex_unlock(&lock);
    return PyLong_FromSize_t(total);
}

static PyObject *memory_limit(PyObject *self, PyObject *arg) {
    size_t before = limit;
    if (arg != Py_None) {
        size_t value = PyLong_AsSize_t(arg);
        if (value == (size_t)-1 && PyErr_Occurred()) return NULL;
        pthread_mutex_lock(&lock);
        limit = value;
        while (oldest && stats.kept > limit) release(oldest);
        pthread_mutex_unlock(&lock);
    }
    return PyLong_FromSize_t(before);
}

static PyObject *memory_counters(PyObject *self, PyObject *arg) {
    pthread_mutex_lock(&lock);
    __typeof__(stats) s = stats;
    if (PyObject_IsTrue(arg)) stats.peak = stats.in_use;
    pthread_mutex_unlock(&lock);
    return Py_BuildValue("{s:n,s:n,s:n,s:n,s:n,s:n,s:n}", "in_use", s.in_use, "peak", s.peak, "kept", s.kept, "blocks", s.blocks, "hits", s.hits,
                         "misses", s.misses, "released", s.released);
}

PyMethodDef flb_allocator_functions[] = {
    {"use_allocator", use_allocator, METH_NOARGS, "Let NumPy take memory from the caching allocator in the present context."},
    {"memory_release", memory_release, METH_NOARGS, "memory_release() -> bytes of kept memory given back to the system."},
    {"memory_limit", memory_limit, METH_O, "memory_limit(bytes or None) -> bytes of free memory that may be kept, before the call."},
    {"memory_counters", memory_counters, METH_O, "memory_counters(reset peak?) -> dict of the counters, in bytes and blocks."},
    {NULL}};

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

/* A quarter of the machine's memory, or of what the process may have. */
static size_t default_limit(void) {
    size_t bytes = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGE_SIZE);
    struct rlimit r;
    if (getrlimit(RLIMIT_AS, &r) == 0 && r.rlim_cur != RLIM_INFINITY && r.rlim_cur < bytes) bytes = r.rlim_cur;
    FILE *f = fopen("/sys/fs/cgroup/memory.max", "r");
    if (f) {
        unsigned long long allowed;
        if (fscanf(f, "%llu", &allowed) == 1 && allowed < bytes) bytes = allowed;
        fclose(f);
    }
    return bytes / 4;
}

int flb_init_allocator(PyObject *module) {
    limit = default_limit();
    pthread_atfork(before_fork, after_fork, after_fork);
    const char *choice = getenv("FLAMBEAU_ALLOCATOR");
    if (!choice || strcmp(choice, "system")) {
        capsule = PyCapsule_New(&handler, "mem_handler", NULL);
        if (!capsule) return -1;
    }
    return PyModule_AddFunctions(module, flb_allocator_functions) < 0 ? -1 : flb_use_allocator();
}
