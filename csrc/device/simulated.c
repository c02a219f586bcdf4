/* The simulated device: a driver whose devices are memory and queues of this process.
 *
 * Addresses of device memory lie in a range of PROT_NONE, so that a host that reads or writes there ends with a fault as it would
 * beside a real device. Copies go to a second range, the backing, at a constant distance. Fresh memory is all ones: what reads before
 * it writes gets nan, or -1.
 *
 * Kernels are functions of this process, run block by block (threads.c). One that fails is told of by the next call that waits for the device.
 *
 * A stream is a queue of work that is done when somebody waits for it, and not before: a program that forgets to wait for another
 * stream sees old contents, always. One lock serves all. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "device/driver.h"
#include "device/threads.h"

enum { GRANULE = 512, CLASSES = 256, LONGEST_QUEUE = 256, GIVEN_BACK = 1 << 20 };
enum { COPY_IN, COPY, FILL, RECORD, WAIT, RELEASE, LAUNCH };

typedef struct Work {
    struct Work *next;
    int kind, byte;
    char *to, *from; /* `from` of COPY_IN is memory of its own */
    size_t bytes;
    FlbEvent *event; /* RECORD: kept alive by it */
    FlbStream *awaited;
    uint64_t place;
    int device;
    uint64_t address;
    FlbLaunch *launch; /* with its arguments behind it, one block of memory */
    int kept;          /* by a graph: what it points to isn't freed when it is done */
} Work;

struct FlbStream {
    Work *first, *last;
    uint64_t given, done; /* how many pieces of work */
    int length;
    FlbGraph *capture; /* what records its work, NULL */
};

/* Work in order, and the memory that was taken while it was recorded. */
struct FlbGraph {
    Work *first, *last;
    uint64_t *taken;
    int n_taken;
};

/* An event is a place in a stream. */
struct FlbEvent {
    FlbStream *stream; /* NULL: not recorded */
    uint64_t place;
    double time; /* seconds; valid when the place has been reached */
    int holders;
};

typedef struct {
    char *space, *backing;
    size_t room, used, total;
    uint64_t free[CLASSES]; /* first free block of a size, as an offset + 1; the next one's stands in it */
    FlbStream stream;
    FlbMemoryCounters counters;
    int failed; /* status of the first launch that failed, until somebody was told */
    char failure[160];
} Device;

static Device devices[FLB_MOST_DEVICES];
static int n_devices;
static int order;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- sizes --------------------------------------------------------------------------------------------- */

/* Block sizes: four to a power of two, from a granule on. */
static size_t size_of_class(int c) { return (size_t)GRANULE * (4 + (size_t)(c & 3)) << (c >> 2) >> 2; }
static int class_of(size_t bytes) {
    int c = 0;
    while (c < CLASSES - 1 && size_of_class(c) < bytes) c++;
    return c;
}
/* The size stands before a block, in a granule of its own, so that what is released needn't be told. */
typedef struct {
    int class;
    size_t bytes;
    FlbGraph *owner; /* a graph that needs it, and whether its holder has released it */
    int released;
} Header;

/* What a block of so many bytes counts as. */
static int64_t rounded(size_t bytes) { return (int64_t)((bytes + GRANULE - 1) / GRANULE * GRANULE); }
static Header *header_of(Device *d, uint64_t offset) { return (Header *)(d->backing + offset - GRANULE); }

/* The backing of a range of device memory; NULL when it isn't inside the block that begins at or before it. */
static char *backing_of(Device *d, uint64_t address, size_t bytes) {
    uint64_t offset = address - (uint64_t)(uintptr_t)d->space;
    if (address < (uint64_t)(uintptr_t)d->space || offset > d->used || bytes > d->used - offset) return NULL;
    return d->backing + offset;
}

/* ---- streams ------------------------------------------------------------------------------------------- */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static void let_go(FlbEvent *e) {
    if (!--e->holders) free(e);
}
static void give_back(Device *d, uint64_t address) {
    uint64_t offset = address - (uint64_t)(uintptr_t)d->space;
    Header *h = header_of(d, offset);
    int class = h->class;
    d->counters.allocated -= rounded(h->bytes);
    d->counters.blocks--;
    d->counters.frees++;
    if (size_of_class(class) >= GIVEN_BACK) /* but for the pages at the ends, which others may share */
        madvise((void *)(((uintptr_t)d->backing + offset + 4095) & ~(uintptr_t)4095), (size_of_class(class) - 4096) & ~(size_t)4095,
                MADV_DONTNEED);
    *(uint64_t *)(d->backing + offset) = d->free[class];
    d->free[class] = offset + 1;
}
/* Do the work of a stream up to a place. */
static void advance(FlbStream *s, uint64_t place) {
    while (s->done < place && s->first) {
        Work *w = s->first;
        if (!(s->first = w->next)) s->last = NULL;
        s->length--;
        if (w->kind == COPY_IN) {
            memcpy(w->to, w->from, w->bytes);
            if (!w->kept) free(w->from);
        }
        if (w->kind == COPY) memmove(w->to, w->from, w->bytes);
        if (w->kind == FILL) memset(w->to, w->byte, w->bytes);
        if (w->kind == RECORD) {
            if (w->event->stream == s && w->event->place == w->place) w->event->time = now();
            let_go(w->event);
        }
        if (w->kind == WAIT) advance(w->awaited, w->place);
        if (w->kind == LAUNCH) {
            Device *d = &devices[w->device];
            if (!d->failed) d->failed = flb_run_threads(w->launch, d->failure, sizeof d->failure);
            if (!w->kept) free(w->launch);
        }
        if (w->kind == RELEASE) give_back(&devices[w->device], w->address);
        s->done++;
        free(w);
    }
}
static void finish(FlbStream *s) { advance(s, s->given); }
/* Tell of a launch that failed, once. */
static int told(int device) {
    int status = devices[device].failed;
    devices[device].failed = 0;
    return status;
}
static FlbStream *stream_of(int device, FlbStream *s) { return s ? s : &devices[device].stream; }
static int give(FlbStream *s, Work w) {
    Work *own = malloc(sizeof w);
    if (!own) return FLB_OUT_OF_MEMORY;
    *own = w;
    own->next = NULL;
    if (s->capture) {
        FlbGraph *g = s->capture;
        if (w.kind == RECORD) let_go(w.event);
        if (w.kind == RECORD || w.kind == WAIT) return free(own), FLB_DONE; /* of one stream, its own order is enough */
        own->kept = 1;
        if (g->last) g->last->next = own;
        else g->first = own;
        g->last = own;
        return FLB_DONE;
    }
    if (s->last) s->last->next = own;
    else s->first = own;
    s->last = own;
    s->given++;
    if (++s->length > LONGEST_QUEUE) finish(s);
    return FLB_DONE;
}

#define FOR_DEVICE(D)                                        \
    if ((D) < 0 || (D) >= n_devices) return FLB_INVALID_DEVICE; \
    pthread_mutex_lock(&lock)
#define RETURN(STATUS)                \
    do {                              \
        int status_ = (STATUS);       \
        pthread_mutex_unlock(&lock);  \
        return status_;               \
    } while (0)

static int stream_create(int device, FlbStream **out) {
    if (device < 0 || device >= n_devices) return FLB_INVALID_DEVICE;
    *out = calloc(1, sizeof **out);
    return *out ? FLB_DONE : FLB_OUT_OF_MEMORY;
}
static int stream_done(int device, FlbStream *s) {
    FOR_DEVICE(device);
    s = stream_of(device, s);
    RETURN(s->done == s->given ? FLB_DONE : FLB_NOT_READY);
}
static int stream_synchronize(int device, FlbStream *s) {
    FOR_DEVICE(device);
    if (stream_of(device, s)->capture) RETURN(FLB_CAPTURING);
    finish(stream_of(device, s));
    RETURN(told(device));
}
static int stream_wait_event(int device, FlbStream *s, FlbEvent *e) {
    FOR_DEVICE(device);
    if (!e->stream) RETURN(FLB_DONE); /* an event that was never recorded is waited for by nobody */
    RETURN(give(stream_of(device, s), (Work){.kind = WAIT, .awaited = e->stream, .place = e->place}));
}

/* Every stream that was made is known by the work it waits with: `synchronize` must reach them all. */
static FlbStream **streams[FLB_MOST_DEVICES];
static int n_streams[FLB_MOST_DEVICES];
static int known_stream_create(int device, FlbStream **out) {
    int status = stream_create(device, out);
    if (status) return status;
    FOR_DEVICE(device);
    FlbStream **more = realloc(streams[device], sizeof *more * (size_t)(n_streams[device] + 1));
    if (!more) {
        free(*out);
        RETURN(FLB_OUT_OF_MEMORY);
    }
    streams[device] = more;
    more[n_streams[device]++] = *out;
    RETURN(FLB_DONE);
}
static void finish_all(int device) {
    finish(&devices[device].stream);
    for (int i = 0; i < n_streams[device]; i++) finish(streams[device][i]);
}
static int synchronize(int device) {
    FOR_DEVICE(device);
    finish_all(device);
    RETURN(told(device));
}

/* ---- events -------------------------------------------------------------------------------------------- */

static int event_create(int device, FlbEvent **out) {
    if (device < 0 || device >= n_devices) return FLB_INVALID_DEVICE;
    *out = calloc(1, sizeof **out);
    if (!*out) return FLB_OUT_OF_MEMORY;
    (*out)->holders = 1;
    return FLB_DONE;
}
static int event_destroy(FlbEvent *e) {
    pthread_mutex_lock(&lock);
    let_go(e);
    RETURN(FLB_DONE);
}
static int event_record(FlbEvent *e, int device, FlbStream *s) {
    FOR_DEVICE(device);
    s = stream_of(device, s);
    e->stream = s;
    e->place = s->given + 1;
    e->holders++;
    int status = give(s, (Work){.kind = RECORD, .event = e, .place = e->place});
    if (status) e->stream = NULL, e->holders--;
    RETURN(status);
}
static int event_done(FlbEvent *e) {
    pthread_mutex_lock(&lock);
    RETURN(!e->stream || e->stream->done >= e->place ? FLB_DONE : FLB_NOT_READY);
}
static int event_synchronize(FlbEvent *e) {
    pthread_mutex_lock(&lock);
    if (e->stream) advance(e->stream, e->place);
    RETURN(FLB_DONE);
}
static int event_elapsed(FlbEvent *a, FlbEvent *b, double *milliseconds) {
    pthread_mutex_lock(&lock);
    if (!a->stream || !b->stream) RETURN(FLB_INVALID_HANDLE);
    if (a->stream->done < a->place || b->stream->done < b->place) RETURN(FLB_NOT_READY);
    *milliseconds = 1e3 * (b->time - a->time);
    RETURN(FLB_DONE);
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static int counters(int device, FlbMemoryCounters *out, int reset) {
    FOR_DEVICE(device);
    FlbMemoryCounters *c = &devices[device].counters;
    if (reset) c->peak_allocated = c->allocated, c->peak_reserved = c->reserved;
    *out = *c;
    RETURN(FLB_DONE);
}
static int trim(int device) {
    FOR_DEVICE(device);
    finish_all(device);
    devices[device].counters.reserved = devices[device].counters.allocated;
    RETURN(FLB_DONE);
}
static int memory(int device, size_t *available, size_t *total) {
    FOR_DEVICE(device);
    Device *d = &devices[device];
    *total = d->total;
    *available = d->total - (size_t)d->counters.reserved;
    RETURN(FLB_DONE);
}
#define REFUSE                       \
    do {                             \
        d->counters.refusals++;      \
        RETURN(FLB_OUT_OF_MEMORY);   \
    } while (0)
static int allocate(int device, size_t bytes, FlbStream *s, uint64_t *address) {
    FOR_DEVICE(device);
    Device *d = &devices[device];
    if (bytes > d->total) REFUSE;
    int class = class_of(bytes ? bytes : 1);
    size_t size = size_of_class(class);
    if (!d->free[class] && d->used + GRANULE + size > d->room) finish_all(device); /* memory that is to be released */
    uint64_t offset;
    if (d->counters.allocated + rounded(bytes) > (int64_t)d->total) finish_all(device);
    if (d->counters.allocated + rounded(bytes) > (int64_t)d->total) REFUSE;
    if (d->free[class]) {
        offset = d->free[class] - 1;
        d->free[class] = *(uint64_t *)(d->backing + offset);
    } else {
        if (d->used + GRANULE + size > d->room) REFUSE;
        offset = d->used + GRANULE;
        d->used += GRANULE + size;
    }
    FlbGraph *g = stream_of(device, s)->capture;
    *header_of(d, offset) = (Header){class, bytes, g, 0};
    if (g) {
        uint64_t *more = realloc(g->taken, sizeof *more * (size_t)(g->n_taken + 1));
        if (!more) REFUSE;
        g->taken = more;
        more[g->n_taken++] = (uint64_t)(uintptr_t)d->space + offset;
    }
    FlbMemoryCounters *c = &d->counters;
    c->allocated += rounded(bytes);
    c->blocks++;
    c->allocations++;
    if (c->allocated > c->peak_allocated) c->peak_allocated = c->allocated;
    if (c->allocated > c->reserved) c->reserved = c->allocated;
    if (c->reserved > c->peak_reserved) c->peak_reserved = c->reserved;
    *address = (uint64_t)(uintptr_t)d->space + offset;
    RETURN(give(stream_of(device, s), (Work){.kind = FILL, .to = d->backing + offset, .byte = 0xff, .bytes = bytes}));
}
static int release(int device, uint64_t address, FlbStream *s) {
    FOR_DEVICE(device);
    s = stream_of(device, s);
    Header *h = header_of(&devices[device], address - (uint64_t)(uintptr_t)devices[device].space);
    if (h->owner) {
        h->released = 1;
        RETURN(FLB_DONE);
    }
    if (s->capture) { /* memory from before, which the work so far reads */
        FlbGraph *g = s->capture;
        uint64_t *more = realloc(g->taken, sizeof *more * (size_t)(g->n_taken + 1));
        if (!more) RETURN(FLB_OUT_OF_MEMORY);
        g->taken = more;
        more[g->n_taken++] = address;
        h->owner = g, h->released = 1;
        RETURN(FLB_DONE);
    }
    if (!s->first) {
        give_back(&devices[device], address);
        RETURN(FLB_DONE);
    }
    RETURN(give(s, (Work){.kind = RELEASE, .device = device, .address = address}));
}
static int copy_in(int device, uint64_t to, const void *from, size_t bytes, FlbStream *s) {
    FOR_DEVICE(device);
    char *at = backing_of(&devices[device], to, bytes), *own = at ? malloc(bytes ? bytes : 1) : NULL;
    if (!at) RETURN(FLB_INVALID_ADDRESS);
    if (!own) RETURN(FLB_OUT_OF_MEMORY);
    memcpy(own, from, bytes);
    int status = give(stream_of(device, s), (Work){.kind = COPY_IN, .to = at, .from = own, .bytes = bytes});
    if (status) free(own);
    RETURN(status);
}
static int copy_out(int device, void *to, uint64_t from, size_t bytes, FlbStream *s) {
    FOR_DEVICE(device);
    char *at = backing_of(&devices[device], from, bytes);
    if (!at) RETURN(FLB_INVALID_ADDRESS);
    if (stream_of(device, s)->capture) RETURN(FLB_CAPTURING);
    finish(stream_of(device, s));
    memcpy(to, at, bytes);
    RETURN(told(device));
}
static int copy(int device, uint64_t to, int from_device, uint64_t from, size_t bytes, FlbStream *s) {
    if (from_device < 0 || from_device >= n_devices) return FLB_INVALID_DEVICE;
    FOR_DEVICE(device);
    char *a = backing_of(&devices[device], to, bytes), *b = backing_of(&devices[from_device], from, bytes);
    if (!a || !b) RETURN(FLB_INVALID_ADDRESS);
    RETURN(give(stream_of(device, s), (Work){.kind = COPY, .to = a, .from = b, .bytes = bytes}));
}
static int fill(int device, uint64_t to, int byte, size_t bytes, FlbStream *s) {
    FOR_DEVICE(device);
    char *at = backing_of(&devices[device], to, bytes);
    if (!at) RETURN(FLB_INVALID_ADDRESS);
    RETURN(give(stream_of(device, s), (Work){.kind = FILL, .to = at, .byte = byte, .bytes = bytes}));
}

/* ---- kernels ------------------------------------------------------------------------------------------- */

static int load(int device, const void *image, size_t bytes, const char *name, FlbFunction **out) {
    if (device < 0 || device >= n_devices) return FLB_INVALID_DEVICE;
    (void)name;
    if (bytes != sizeof(void *)) return FLB_NO_IMAGE;
    memcpy(out, image, sizeof(void *));
    return FLB_DONE;
}
static int launch(int device, const FlbGrid *g, FlbStream *s) {
    if (g->threads < 1 || g->threads > FLB_MOST_THREADS || g->blocks < 1) return FLB_INVALID_HANDLE;
    FOR_DEVICE(device);
    size_t n = (size_t)g->n_arguments, p = (size_t)g->n_pointers;
    FlbLaunch *l = malloc(sizeof *l + (n + p) * 8);
    if (!l) RETURN(FLB_OUT_OF_MEMORY);
    uint64_t *arguments = (uint64_t *)(l + 1);
    int64_t *extents = (int64_t *)(arguments + n);
    memcpy(arguments, g->arguments, n * 8);
    memcpy(extents, g->extents, p * 8);
    for (size_t i = 0; i < p; i++) {
        if (!arguments[i]) continue; /* without bytes */
        char *at = backing_of(&devices[device], arguments[i], (size_t)extents[i]);
        if (!at) {
            free(l);
            RETURN(FLB_INVALID_ADDRESS);
        }
        arguments[i] = (uint64_t)(uintptr_t)at;
    }
    *l = (FlbLaunch){(FlbKernel)g->function, g->blocks, g->threads, g->cooperative, g->shared, order, arguments, extents};
    int status = give(stream_of(device, s), (Work){.kind = LAUNCH, .device = device, .launch = l});
    if (status) free(l);
    RETURN(status);
}
static const char *failure(int device) { return devices[device].failure; }
static int set_order(int wanted) {
    order = wanted;
    return FLB_DONE;
}

/* ---- graphs -------------------------------------------------------------------------------------------- */

static int capture_begin(int device, FlbStream *s) {
    FOR_DEVICE(device);
    s = stream_of(device, s);
    if (s == &devices[device].stream || s->capture) RETURN(FLB_CAPTURING);
    s->capture = calloc(1, sizeof *s->capture);
    RETURN(s->capture ? FLB_DONE : FLB_OUT_OF_MEMORY);
}
static int capture_end(int device, FlbStream *s, FlbGraph **out) {
    FOR_DEVICE(device);
    s = stream_of(device, s);
    *out = s->capture;
    s->capture = NULL;
    RETURN(*out ? FLB_DONE : FLB_INVALID_HANDLE);
}
static int graph_launch(int device, FlbGraph *g, FlbStream *s) {
    FOR_DEVICE(device);
    s = stream_of(device, s);
    for (Work *w = g->first; w; w = w->next) {
        int status = give(s, *w);
        if (status) RETURN(status);
    }
    RETURN(FLB_DONE);
}
static int graph_destroy(int device, FlbGraph *g) {
    FOR_DEVICE(device);
    finish_all(device); /* it may be under way */
    for (Work *w = g->first, *next; w; w = next) {
        next = w->next;
        if (w->kind == COPY_IN) free(w->from);
        if (w->kind == LAUNCH) free(w->launch);
        free(w);
    }
    for (int i = 0; i < g->n_taken; i++) {
        Header *h = header_of(&devices[device], g->taken[i] - (uint64_t)(uintptr_t)devices[device].space);
        h->owner = NULL;
        if (h->released) give_back(&devices[device], g->taken[i]);
    }
    free(g->taken);
    free(g);
    RETURN(FLB_DONE);
}

/* ---- the driver ---------------------------------------------------------------------------------------- */

static int count(void) { return n_devices; }
static int properties(int device, FlbDeviceProperties *out) {
    if (device < 0 || device >= n_devices) return FLB_INVALID_DEVICE;
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "flambeau's simulated device");
    out->major = 9, out->minor = 0, out->multiprocessors = 1, out->warp_size = 32;
    out->threads_per_block = 1024, out->threads_per_multiprocessor = 2048, out->shared_memory_per_block = 48 << 10;
    out->total_memory = devices[device].total;
    return FLB_DONE;
}
/* A child of a fork has the memory, and no holder of the lock. */
static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

static const FlbDriver driver = {
    .name = "simulated", .count = count, .properties = properties, .memory = memory, .counters = counters, .trim = trim,
    .allocate = allocate, .release = release, .copy_in = copy_in, .copy_out = copy_out, .copy = copy, .fill = fill,
    .stream_create = known_stream_create, .stream_done = stream_done, .stream_synchronize = stream_synchronize,
    .stream_wait_event = stream_wait_event, .synchronize = synchronize, .event_create = event_create,
    .event_destroy = event_destroy, .event_record = event_record, .event_done = event_done,
    .event_synchronize = event_synchronize, .event_elapsed = event_elapsed,
    .load = load, .launch = launch, .failure = failure, .order = set_order,
    .capture_begin = capture_begin, .capture_end = capture_end, .graph_launch = graph_launch, .graph_destroy = graph_destroy};

const FlbDriver *flb_simulated_driver(int wanted) {
    size_t memory = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE) / 2 & ~(size_t)0xfffff;
    for (n_devices = 0; n_devices < wanted; n_devices++) {
        Device *d = &devices[n_devices];
        d->total = memory;
        d->room = 4 * memory;
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        d->space = mmap(NULL, d->room, PROT_NONE, flags, -1, 0);
        d->backing = mmap(NULL, d->room, PROT_READ | PROT_WRITE, flags, -1, 0);
        if (d->space == MAP_FAILED || d->backing == MAP_FAILED) return NULL;
    }
    pthread_atfork(before_fork, after_fork, after_fork);
    return &driver;
}
