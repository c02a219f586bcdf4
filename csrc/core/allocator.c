/* Memory of all arrays: a caching allocator behind NumPy's memory-handler interface.
 *
 * A training step asks for the same sizes again and again. malloc gives large blocks back to the system each
 * time, and the page faults of getting them anew cost more than the kernels that fill them. Here a freed
 * block of 32 KiB or more is kept: joined with its free neighbours, and given to a request that it fits best
 * (of equals the newest, while it is still in the processor's caches), which takes its beginning. Smaller
 * blocks are malloc's.
 *
 * Blocks are cut from mappings of SEGMENT bytes, far larger than most, so that nearly all that is free can be
 * joined and little is lost between blocks: what is resident is little more than what was in use at most.
 * Address space of a mapping without pages behind it is a bare block. It is asked when no kept block is large
 * enough, best where a kept one on its left needs the fewest new pages beside it.
 *
 * What is kept goes back to the system (becomes bare; a mapping that is all bare goes): the longest unused
 * beyond `limit` bytes, what nobody wanted for DECAY seconds, all of it when the system refuses memory or
 * release() is called. A block that is in use is never touched: NumPy frees an array's memory with its last
 * owner.
 *
 * The handler is a context variable, so it is set where it matters (flb_use_allocator: at import, at each
 * launch of a compiled graph, before large eager operators) and only over NumPy's own default: a handler that
 * the user installed stays. An array remembers the handler that made it, and this code stays loaded as long
 * as the process, so arrays outlive whatever becomes of the module.
 *
 * Invariants: `lock` guards the lists and the counters; block headers in use belong to their owner. The
 * blocks of a mapping are neighbours (left, right) without gaps; no two kept and no two bare ones lie side by
 * side. Of a bare block only the first page, with its header, may hold anything but zeros. */
#define _GNU_SOURCE
#include "core/events.h"
#include "core/guarded.h"
#include "core/places.h"
#include "core/tensor_internal.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define SMALLEST ((size_t)1 << 15)
#define CLASSES 400
#define LOOKED_AT 64 /* blocks of a class that a request compares */
#define SEGMENT ((size_t)1 << 28)
#define DECAY 20                       /* seconds */
#define ZERO_BY_HAND ((size_t)1 << 26) /* above, calloc prefers fresh pages: many are never touched */
#define HUGE ((size_t)1 << 21)
#define HUGE_FROM ((size_t)1 << 22)
/* Data starts at one of SPREAD places of the first page, lest all arrays fall into the same sets. These are
 * more than 448 bytes apart: where a result begins a few lines after an operand (modulo a page), loads wait
 * for the stores right before them, whose addresses look the same (up to a quarter of the time of a copy on
 * Zen 4). */
#define SPREAD 8
#define APART 512
#define LINE 64
#define HEAD \
    ((sizeof(Block) + sizeof(Tag) + LINE - 1) / LINE * LINE) /* of a block: what stands before its data */

typedef struct Block {
    size_t total; /* bytes of the mapping, this header among them */
    int class;    /* kept: the greatest whose size it has */
    enum { USED, KEPT, BARE } state;
    time_t since;                /* kept: when its greater part was freed */
    struct Block *next, *prev;   /* kept: blocks of the class, the newest first; bare: all */
    struct Block *newer, *older; /* all kept blocks by age */
    struct Block *left, *right;  /* its neighbours in the mapping */
} Block;

/* What stands right before the data. `block` is NULL for memory from malloc. */
typedef struct {
    Block *block;
    size_t size; /* bytes asked for */
} Tag;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Block *free_blocks[CLASSES], *bare_blocks, *newest, *oldest;
static time_t swept; /* when what nobody wanted was last given back */
static size_t limit;
static size_t page = 4096; /* bytes of the system's; sizes are multiples of it */
static struct {
    size_t in_use, peak, kept, hits, misses, released, blocks;
} stats;

/* Class of a size: the greatest (8 + m) << e, for m in 0..7, that is no larger. */
static int class_of(size_t size) {
    int e = 63 - __builtin_clzll(size) - 3;
    return (e - 9) * 8 + (int)(size >> e) - 8;
}

static void unlink_kept(Block *b) {
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
static void link_kept(Block *b) {
    b->state = KEPT;
    b->class = class_of(b->total);
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

static void unlink_bare(Block *b) {
    if (b->prev) b->prev->next = b->next;
    else bare_blocks = b->next;
    if (b->next) b->next->prev = b->prev;
}

static void link_bare(Block *b) {
    b->state = BARE;
    b->prev = NULL;
    b->next = bare_blocks;
    if (b->next) b->next->prev = b;
    bare_blocks = b;
}

/* Give pages back: they are zeros from here on, whatever the system says (it doesn't take locked ones). */
static void give_back(void *from, size_t bytes) {
    if (bytes && madvise(from, bytes, MADV_DONTNEED)) memset(from, 0, bytes);
}

/* One block of two neighbours; neither is in a list. */
static Block *joined(Block *b, Block *right) {
    if (right->total > b->total) b->since = right->since;
    b->total += right->total;
    b->right = right->right;
    if (b->right) b->right->left = b;
    return b;
}

/* A free block that is in no list, with its neighbours of the state. */
static Block *with_neighbours(Block *b, int state) {
    Block *pairs[2][2] = {{b, b->right}, {b->left, b}};
    for (int i = 0; i < 2; i++) {
        Block *other = pairs[i][!i];
        if (!other || (int)other->state != state) continue;
        (state == KEPT ? unlink_kept : unlink_bare)(other);
        b = joined(pairs[i][0], pairs[i][1]);
        if (state == BARE) give_back(pairs[i][1], page); /* what was a header */
    }
    return b;
}

/* Cut a block that is in no list after `total` bytes; the rest is kept, or bare. */
static void cut(Block *b, size_t total, int state) {
    Block *rest = (Block *)((char *)b + total);
    *rest = (Block){.total = b->total - total, .since = b->since, .left = b, .right = b->right};
    if (rest->right) rest->right->left = rest;
    b->right = rest;
    b->total = total;
    if (state == KEPT) link_kept(rest);
    else link_bare(rest);
}

/* Give back what a kept block holds. */
static size_t release(Block *b) {
    size_t total = b->total;
    unlink_kept(b);
    stats.released += total;
    give_back((char *)b + page, total - page);
    b = with_neighbours(b, BARE);
    if (b->left || b->right) link_bare(b);
    else munmap(b, b->total);
    return total;
}

static size_t release_all(void) {
    size_t total = 0;
    while (oldest) total += release(oldest);
    return total;
}

/* Give back address space, too. */
static void unmap_all(void) {
    release_all();
    while (bare_blocks) {
        Block *b = bare_blocks;
        unlink_bare(b);
        if (b->left) b->left->right = NULL; /* they are mappings of their own from here on */
        if (b->right) b->right->left = NULL;
        munmap(b, b->total);
    }
}

static time_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return t.tv_sec;
}

/* The profiler's count of what this thread takes and gives back. */
static void count(size_t taken) {
    if (flb_events & EVENTS_MEMORY) flb_event_bytes((int64_t)taken);
}
static void uncount(size_t given) {
    if (flb_events & EVENTS_MEMORY) flb_event_bytes(-(int64_t)given);
}

static void *small_block(size_t size, int zero) {
    Tag *tag = zero ? calloc(1, size + sizeof(Tag)) : malloc(size + sizeof(Tag));
    if (!tag) return NULL;
    tag->block = NULL;
    tag->size = size;
    count(size);
    return tag + 1;
}

/* The kept block that fits best, in no list; NULL: there is none. */
static Block *kept_block(size_t total) {
    Block *best = NULL;
    for (int c = class_of(total); c < CLASSES && !best; c++) {
        int n = 0;
        for (Block *b = free_blocks[c]; b && n < LOOKED_AT; b = b->next, n++)
            if (b->total >= total && (!best || b->total < best->total)) best = b;
    }
    if (!best) return NULL;
    unlink_kept(best);
    if (best->total - total >= SMALLEST) cut(best, total, KEPT);
    return best;
}

/* A block with new pages, in no list; NULL: the system refuses. `clean`: whether all of it is to be new, and
 * then whether it is, but for the first page. */
static Block *new_block(size_t total, int *clean) {
    Block *best = NULL;
    size_t least = 0;
    for (Block *b = bare_blocks; b; b = b->next) {
        size_t beside =
            !*clean && b->left && b->left->state == KEPT && b->left->total < total ? b->left->total : 0;
        if (beside + b->total < total) continue;
        size_t pages = total - beside;
        if (!best || pages < least || (pages == least && b->total < best->total)) best = b, least = pages;
    }
    int mapped = !best;
    size_t has = best ? best->total : 0;
    if (best) unlink_bare(best);
    else {
        void *p = MAP_FAILED;
        size_t sizes[2] = {total > SEGMENT ? total : SEGMENT, total};
        for (int attempt = 0; attempt < 3 && p == MAP_FAILED; attempt++) {
            if (attempt == 2) unmap_all();
            has = sizes[attempt > 0];
            p = mmap(NULL, has, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        }
        if (p == MAP_FAILED) return NULL;
        best = p, least = total;
    }
#if defined(MADV_HUGEPAGE)
    if (least >= HUGE_FROM) {
        /* To the end of the last huge page, and before anything is written: the system makes none where a
         * part of it isn't asked for, or has pages. */
        size_t left = (((uintptr_t)best + least + HUGE - 1) & ~(HUGE - 1)) - (uintptr_t)best;
        madvise(best, left < has ? left : has, MADV_HUGEPAGE);
    }
#endif
    if (mapped) *best = (Block){.total = has};
    if (least < total) {
        unlink_kept(best->left);
        best = joined(best->left, best);
    }
    if (best->total - total >= SMALLEST) cut(best, total, BARE);
    *clean = least == total;
    return best;
}

static void *large_block(size_t size, int zero) {
    static unsigned place;
    if (size > ((size_t)1 << 47)) return NULL;
    size_t total = (size + HEAD + APART * (SPREAD - 1) + page - 1) & ~(page - 1);
    pthread_mutex_lock(&lock);
    int clean = zero && total > ZERO_BY_HAND;
    Block *b = clean ? NULL : kept_block(total);
    if (b) stats.hits++;
    else {
        stats.misses++;
        b = new_block(total, &clean);
    }
    if (!b) {
        pthread_mutex_unlock(&lock);
        return NULL;
    }
    b->state = USED;
    stats.in_use += b->total;
    stats.blocks++;
    if (stats.in_use > stats.peak) stats.peak = stats.in_use;
    char *data = (char *)b + HEAD + APART * (place++ % SPREAD);
    pthread_mutex_unlock(&lock);
    Tag *tag = (Tag *)data - 1;
    tag->block = b;
    tag->size = size;
    count(size);
    if (zero) memset(data, 0, clean ? (size_t)((char *)b + page - data) : size);
    return data;
}

#define ARRAYS 16 /* bytes that guarded arrays are aligned to, as malloc's are */

void *flb_malloc(size_t size) {
    if (flb_guarded) return flb_guarded_malloc(size, ARRAYS, 0);
    if (size < SMALLEST) return small_block(size, 0);
    void *place = flb_open_places ? flb_place_take(size) : NULL;
    if (!place) return large_block(size, 0);
    count(size);
    return place;
}

/* Memory that goes back before the launch it belongs to ends. */
void *flb_scratch(size_t size) {
    if (flb_guarded) return flb_guarded_malloc(size, 64, 0);
    return size < SMALLEST ? small_block(size, 0) : large_block(size, 0);
}

void flb_free(void *data) {
    if (!data) return;
    if (flb_guarded) {
        flb_guarded_free(data);
        return;
    }
    if (flb_places) {
        size_t size = flb_place_return(data);
        if (size) {
            uncount(size);
            return;
        }
    }
    Tag *tag = (Tag *)data - 1;
    Block *b = tag->block;
    uncount(tag->size);
    if (!b) {
        free(tag);
        return;
    }
    pthread_mutex_lock(&lock);
    stats.in_use -= b->total;
    stats.blocks--;
    b->since = now();
    time_t present = b->since;
    link_kept(with_neighbours(b, KEPT));
    while (oldest && stats.kept > limit) release(oldest);
    for (Block *k = present != swept ? oldest : NULL, *next; k; k = next) {
        next = k->newer;
        if (k->since + DECAY < present) release(k);
    }
    swept = present;
    pthread_mutex_unlock(&lock);
}

/* ---- NumPy's handler ----------------------------------------------------------------------------------- */

static void *handler_malloc(void *context, size_t size) { return flb_malloc(size); }

static void *handler_calloc(void *context, size_t count, size_t item) {
    size_t size;
    if (__builtin_mul_overflow(count, item, &size)) return NULL;
    if (flb_guarded) return flb_guarded_malloc(size, ARRAYS, 1);
    return size < SMALLEST ? small_block(size, 1) : large_block(size, 1);
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
    size_t had = flb_places ? flb_place_size(data) : 0;
    if (had) {
        void *made = flb_malloc(size);
        if (!made) return NULL;
        memcpy(made, data, had < size ? had : size);
        flb_free(data);
        return made;
    }
    Tag *tag = (Tag *)data - 1;
    if (!tag->block && size < SMALLEST) {
        Tag *moved = realloc(tag, size + sizeof(Tag));
        if (!moved) return NULL;
        uncount(moved->size);
        count(size);
        moved->size = size;
        return moved + 1;
    }
    if (tag->block && size >= SMALLEST) {
        size_t room = tag->block->total - (size_t)((char *)data - (char *)tag->block);
        if (size <= room && size >= room / 2) {
            uncount(tag->size);
            count(size);
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

static PyDataMem_Handler handler = {
    "flambeau", 1, {NULL, handler_malloc, handler_calloc, handler_realloc, handler_free}};
static PyObject *capsule; /* of the handler; NULL when the allocator is switched off */

int flb_use_allocator(void) {
    if (!capsule) return 0;
    PyObject *current = PyDataMem_GetHandler();
    if (!current) return -1;
    Py_DECREF(current); /* the context holds it */
    if (current == capsule || current != PyDataMem_DefaultHandler) return 0;
    PyObject *old = PyDataMem_SetHandler(capsule);
    Py_XDECREF(old);
    return old ? 0 : -1;
}

/* ---- Python -------------------------------------------------------------------------------------------- */

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
    return Py_BuildValue("{s:n,s:n,s:n,s:n,s:n,s:n,s:n}", "in_use", s.in_use, "peak", s.peak, "kept", s.kept,
                         "blocks", s.blocks, "hits", s.hits, "misses", s.misses, "released", s.released);
}

PyMethodDef flb_allocator_functions[] = {
    {"use_allocator", use_allocator, METH_NOARGS,
     "Let NumPy take memory from the caching allocator in the present context."},
    {"memory_release", memory_release, METH_NOARGS,
     "memory_release() -> bytes of kept memory given back to the system."},
    {"memory_limit", memory_limit, METH_O,
     "memory_limit(bytes or None) -> bytes of free memory that may be kept, before the call."},
    {"memory_counters", memory_counters, METH_O,
     "memory_counters(reset peak?) -> dict of the counters, in bytes and blocks."},
    {NULL}};

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

/* A quarter of the machine's memory, or of what the process may have. */
static size_t default_limit(void) {
    size_t bytes = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGE_SIZE);
    struct rlimit r;
    if (getrlimit(RLIMIT_AS, &r) == 0 && r.rlim_cur != RLIM_INFINITY && r.rlim_cur < bytes)
        bytes = r.rlim_cur;
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
    page = (size_t)sysconf(_SC_PAGESIZE);
    pthread_atfork(before_fork, after_fork, after_fork);
    const char *choice = getenv("FLAMBEAU_ALLOCATOR");
    if (!choice || strcmp(choice, "system")) {
        capsule = PyCapsule_New(&handler, "mem_handler", NULL);
        if (!capsule) return -1;
    }
    return PyModule_AddFunctions(module, flb_allocator_functions) < 0 ? -1 : flb_use_allocator();
}
