/* The simulated device: a driver whose devices are memory and threads of this process.
 *
 * Addresses of device memory lie in a range of PROT_NONE, so that a host that reads or writes there ends with
 * a fault as it would beside a real device. Copies go to a second range, the backing, at a constant distance.
 * Fresh memory is all ones: what reads before it writes gets nan, or -1.
 *
 * Kernels are functions of this process, run block by block (threads.c) by the threads of streams (queues.c).
 * Every use of memory is compared with what else uses it (watch.c). What fails is told by the next call that
 * waits for the device. */
#define _GNU_SOURCE
#include "device/simulated.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GRANULE = 512, CLASSES = 256, GIVEN_BACK = 1 << 20 };

Device flb_devices[FLB_MOST_DEVICES];
int flb_n_devices;
int flb_library;
static int order;
#define devices flb_devices
#define n_devices flb_n_devices

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
    uint64_t next; /* free blocks: the next one of the size, as an offset + 1. Not in the block, which work
                      that races may still write */
} Header;

/* What a block of so many bytes counts as. */
static int64_t rounded(size_t bytes) { return (int64_t)((bytes + GRANULE - 1) / GRANULE * GRANULE); }
static Header *header_of(Device *d, uint64_t offset) {
    return (Header *)(d->shadow.backing + offset - GRANULE);
}

/* The backing of a range of device memory; NULL when it isn't inside the block that begins at or before it.
 */
static char *backing_of(Device *d, uint64_t address, size_t bytes) {
    uint64_t offset = address - (uint64_t)(uintptr_t)d->space;
    if (address < (uint64_t)(uintptr_t)d->space || offset > d->used || bytes > d->used - offset) return NULL;
    return d->shadow.backing + offset;
}

#define FOR_DEVICE(D)                                           \
    if ((D) < 0 || (D) >= n_devices) return FLB_INVALID_DEVICE; \
    pthread_mutex_lock(&flb_lock)
#define RETURN(STATUS)                   \
    do {                                 \
        int status_ = (STATUS);          \
        pthread_mutex_unlock(&flb_lock); \
        return status_;                  \
    } while (0)

static FlbStream *stream_of(int device, FlbStream *s) { return s ? s : &devices[device].stream; }

/* ---- streams and events ----------------------------------------------------------------------------------
 */

static int stream_create(int device, FlbStream **out) {
    FOR_DEVICE(device);
    Device *d = &devices[device];
    FlbStream **more = realloc(d->streams, sizeof *more * (size_t)(d->n_streams + 1));
    if (!more) RETURN(FLB_OUT_OF_MEMORY);
    d->streams = more;
    *out = calloc(1, sizeof **out);
    if (!*out) RETURN(FLB_OUT_OF_MEMORY);
    more[d->n_streams++] = *out;
    RETURN(flb_stream_begin(*out));
}
static int stream_done(int device, FlbStream *s) {
    FOR_DEVICE(device);
    s = stream_of(device, s);
    if (s->done < s->given) RETURN(FLB_NOT_READY);
    flb_finish(s);
    RETURN(FLB_DONE);
}
static int stream_synchronize(int device, FlbStream *s) {
    FOR_DEVICE(device);
    if (stream_of(device, s)->capture) RETURN(FLB_CAPTURING);
    flb_finish(stream_of(device, s));
    RETURN(flb_told(device));
}
static int stream_wait_event(int device, FlbStream *s, FlbEvent *e) {
    FOR_DEVICE(device);
    s = stream_of(device, s);
    if (!e->stream) RETURN(FLB_DONE); /* an event that was never recorded is waited for by nobody */
    if (e->stream != s && !s->capture &&
        flb_clock_after(&s->clock, e->clock, e->stream->number, (uint32_t)e->place))
        RETURN(FLB_OUT_OF_MEMORY);
    RETURN(flb_give(s, (Work){.kind = WAIT, .device = device, .awaited = e->stream, .place = e->place}));
}
static int synchronize(int device) {
    FOR_DEVICE(device);
    for (int i = 0; i < devices[device].n_streams; i++)
        if (devices[device].streams[i]->capture) RETURN(FLB_CAPTURING);
    flb_finish_all(device);
    RETURN(flb_told(device));
}
static int event_create(int device, FlbEvent **out) {
    if (device < 0 || device >= n_devices) return FLB_INVALID_DEVICE;
    *out = calloc(1, sizeof **out);
    if (!*out) return FLB_OUT_OF_MEMORY;
    (*out)->holders = 1;
    return FLB_DONE;
}
static int event_destroy(FlbEvent *e) {
    pthread_mutex_lock(&flb_lock);
    flb_let_go(e);
    RETURN(FLB_DONE);
}
static int event_record(FlbEvent *e, int device, FlbStream *s) {
    FOR_DEVICE(device);
    s = stream_of(device, s);
    flb_clock_let_go(e->clock);
    e->clock = flb_clock_held(s->clock);
    e->stream = s;
    e->place = s->given + 1;
    e->holders++;
    int status = flb_give(s, (Work){.kind = RECORD, .device = device, .event = e, .place = e->place});
    if (status) e->stream = NULL, e->holders--;
    RETURN(status);
}
static int event_done(FlbEvent *e) {
    pthread_mutex_lock(&flb_lock);
    if (!e->stream) RETURN(FLB_DONE);
    if (e->stream->done < e->place) RETURN(FLB_NOT_READY);
    flb_wait_for(e->stream, e->place, e->clock);
    RETURN(FLB_DONE);
}
static int event_synchronize(FlbEvent *e) {
    pthread_mutex_lock(&flb_lock);
    if (e->stream) flb_wait_for(e->stream, e->place, e->clock);
    RETURN(FLB_DONE);
}
static int event_elapsed(FlbEvent *a, FlbEvent *b, double *milliseconds) {
    pthread_mutex_lock(&flb_lock);
    if (!a->stream || !b->stream) RETURN(FLB_INVALID_HANDLE);
    if (a->stream->done < a->place || b->stream->done < b->place) RETURN(FLB_NOT_READY);
    *milliseconds = 1e3 * (b->time - a->time);
    RETURN(FLB_DONE);
}

/* ---- memory -------------------------------------------------------------------------------------------- */

void flb_give_back(int device, uint64_t address, const FlbWork *work) {
    Device *d = &devices[device];
    uint64_t offset = address - (uint64_t)(uintptr_t)d->space;
    Header *h = header_of(d, offset);
    int class = h->class;
    char *at = d->shadow.backing + offset, text[160];
    uint32_t other = work ? flb_use(&d->shadow, work, at, h->bytes, FLB_WRITES) : 0;
    snprintf(text, sizeof text,
             "memory is released on stream %u: work of stream %u that isn't waited for uses it",
             work ? flb_stream_id(work->stream) : 0, flb_stream_id(other));
    if (other) flb_failed(device, FLB_RACE, text);
    d->counters.allocated -= rounded(h->bytes);
    d->counters.blocks--;
    d->counters.frees++;
    if (!work) flb_forget(&d->shadow, at, h->bytes);
    if (size_of_class(class) >= GIVEN_BACK) /* but for the pages at the ends, which others may share */
        madvise((void *)(((uintptr_t)at + 4095) & ~(uintptr_t)4095),
                (size_of_class(class) - 4096) & ~(size_t)4095, MADV_DONTNEED);
    h->next = d->free[class];
    d->free[class] = offset + 1;
}
static int counters(int device, FlbMemoryCounters *out, int reset) {
    FOR_DEVICE(device);
    FlbMemoryCounters *c = &devices[device].counters;
    if (reset) c->peak_allocated = c->allocated, c->peak_reserved = c->reserved;
    *out = *c;
    RETURN(FLB_DONE);
}
static int trim(int device) {
    FOR_DEVICE(device);
    flb_finish_all(device);
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
#define REFUSE                     \
    do {                           \
        d->counters.refusals++;    \
        RETURN(FLB_OUT_OF_MEMORY); \
    } while (0)
static int allocate(int device, size_t bytes, FlbStream *s, uint64_t *address) {
    FOR_DEVICE(device);
    Device *d = &devices[device];
    if (bytes > d->total) REFUSE;
    int class = class_of(bytes ? bytes : 1);
    size_t size = size_of_class(class);
    if (!d->free[class] && d->used + GRANULE + size > d->shadow.room)
        flb_finish_all(device); /* memory that is to be released */
    uint64_t offset;
    if (d->counters.allocated + rounded(bytes) > (int64_t)d->total) flb_finish_all(device);
    if (d->counters.allocated + rounded(bytes) > (int64_t)d->total) REFUSE;
    if (d->free[class]) {
        offset = d->free[class] - 1;
        d->free[class] = header_of(d, offset)->next;
        flb_forget(&d->shadow, d->shadow.backing + offset, size);
    } else {
        if (d->used + GRANULE + size > d->shadow.room) REFUSE;
        offset = d->used + GRANULE;
        d->used += GRANULE + size;
    }
    FlbGraph *g = stream_of(device, s)->capture;
    *header_of(d, offset) = (Header){class, bytes, g, 0, 0};
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
    RETURN(flb_give(stream_of(device, s),
                    (Work){.kind = FRESH,
                           .device = device,
                           .to = d->shadow.backing + offset,
                           .byte = 0xff,
                           .bytes = bytes}));
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
    RETURN(flb_give(s, (Work){.kind = RELEASE, .device = device, .address = address}));
}
static int copy_in(int device, uint64_t to, const void *from, size_t bytes, FlbStream *s) {
    FOR_DEVICE(device);
    char *at = backing_of(&devices[device], to, bytes), *own = at ? malloc(bytes ? bytes : 1) : NULL;
    if (!at) RETURN(FLB_INVALID_ADDRESS);
    if (!own) RETURN(FLB_OUT_OF_MEMORY);
    memcpy(own, from, bytes);
    int status = flb_give(stream_of(device, s),
                          (Work){.kind = COPY_IN, .device = device, .to = at, .from = own, .bytes = bytes});
    if (status) free(own);
    RETURN(status);
}
static int copy_out(int device, void *to, uint64_t from, size_t bytes, FlbStream *s) {
    FOR_DEVICE(device);
    char *at = backing_of(&devices[device], from, bytes);
    if (!at) RETURN(FLB_INVALID_ADDRESS);
    if (stream_of(device, s)->capture) RETURN(FLB_CAPTURING);
    s = stream_of(device, s);
    flb_finish(s);
    FlbWork work = flb_next_work(s); /* done at once */
    s->given++, s->done++;
    flb_finish(s);
    uint32_t other = flb_use(&devices[device].shadow, &work, at, bytes, FLB_READS);
    char text[160];
    snprintf(text, sizeof text,
             "a copy to the host: work of stream %u that isn't waited for uses the memory, too",
             flb_stream_id(other));
    if (other) flb_failed(device, FLB_RACE, text);
    memcpy(to, at, bytes);
    RETURN(flb_told(device));
}
static int copy(int device, uint64_t to, int from_device, uint64_t from, size_t bytes, FlbStream *s) {
    if (from_device < 0 || from_device >= n_devices) return FLB_INVALID_DEVICE;
    FOR_DEVICE(device);
    char *a = backing_of(&devices[device], to, bytes), *b = backing_of(&devices[from_device], from, bytes);
    if (!a || !b) RETURN(FLB_INVALID_ADDRESS);
    RETURN(flb_give(
        stream_of(device, s),
        (Work){
            .kind = COPY, .device = device, .from_device = from_device, .to = a, .from = b, .bytes = bytes}));
}
static int fill(int device, uint64_t to, int byte, size_t bytes, FlbStream *s) {
    FOR_DEVICE(device);
    char *at = backing_of(&devices[device], to, bytes);
    if (!at) RETURN(FLB_INVALID_ADDRESS);
    RETURN(flb_give(stream_of(device, s),
                    (Work){.kind = FILL, .device = device, .to = at, .byte = byte, .bytes = bytes}));
}
/* Copies go from any memory; what is pinned is only counted, so that a test sees that it is let go. */
static int64_t pinned;
static int pin(void *at, size_t bytes) {
    return at && bytes ? __atomic_fetch_add(&pinned, 1, __ATOMIC_RELAXED), FLB_DONE : FLB_INVALID_ADDRESS;
}
static int unpin(void *at) {
    return at && __atomic_fetch_sub(&pinned, 1, __ATOMIC_RELAXED) > 0 ? FLB_DONE : FLB_INVALID_ADDRESS;
}

/* ---- kernels ------------------------------------------------------------------------------------------- */

static int load(int device, const void *image, size_t bytes, const char *name, FlbFunction **out) {
    if (device < 0 || device >= n_devices) return FLB_INVALID_DEVICE;
    (void)name;
    if (bytes != sizeof(void *)) {
        snprintf(devices[device].failure, sizeof devices[device].failure,
                 "the address of a function is needed");
        return FLB_NO_IMAGE;
    }
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
    *l = (FlbLaunch){
        (FlbKernel)g->function, g->blocks, g->threads, g->cooperative, g->shared, order, arguments, extents};
    int status = flb_give(stream_of(device, s), (Work){.kind = LAUNCH, .device = device, .launch = l});
    if (status) free(l);
    RETURN(status);
}
static int products(void) { return flb_library; }
static int product(int device, const FlbProduct *what, uint64_t a, uint64_t b, uint64_t c, FlbStream *s) {
    FOR_DEVICE(device);
    Product *p = malloc(sizeof *p);
    if (!p) RETURN(FLB_OUT_OF_MEMORY);
    p->what = *what;
    int status = FLB_DONE;
    for (int i = 0; i < 3; i++) {
        p->operands[i] =
            backing_of(&devices[device], (uint64_t[]){a, b, c}[i], (size_t)flb_product_bytes(what, i));
        if (!p->operands[i]) status = FLB_INVALID_ADDRESS;
    }
    if (!status)
        status = flb_give(stream_of(device, s), (Work){.kind = PRODUCT, .device = device, .product = p});
    if (status) free(p);
    RETURN(status);
}
static const char *failure(int device) { return devices[device].failure; }
static int choose(int what, int value) {
    int *switches[] = {[FLB_ORDER] = &order,
                       [FLB_LATE] = &flb_late,
                       [FLB_WATCH_RACES] = &flb_watch_races,
                       [FLB_WATCH_UNWRITTEN] = &flb_watch_unwritten,
                       [FLB_LIBRARY] = &flb_library};
    if (what < 0 || what > FLB_LIBRARY) return FLB_INVALID_HANDLE;
    pthread_mutex_lock(&flb_lock);
    *switches[what] = value;
    RETURN(FLB_DONE);
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
        int status = flb_give(s, *w);
        if (status) RETURN(status);
    }
    RETURN(FLB_DONE);
}
static int graph_destroy(int device, FlbGraph *g) {
    FOR_DEVICE(device);
    flb_finish_all(device); /* it may be under way */
    for (Work *w = g->first, *next; w; w = next) {
        next = w->next;
        if (w->kind == COPY_IN) free(w->from);
        if (w->kind == LAUNCH) free(w->launch);
        if (w->kind == PRODUCT) free(w->product);
        free(w);
    }
    for (int i = 0; i < g->n_taken; i++) {
        Header *h = header_of(&devices[device], g->taken[i] - (uint64_t)(uintptr_t)devices[device].space);
        h->owner = NULL;
        if (h->released) flb_give_back(device, g->taken[i], NULL);
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
    out->threads_per_block = 1024, out->threads_per_multiprocessor = 2048,
    out->shared_memory_per_block = 48 << 10;
    out->total_memory = devices[device].total;
    return FLB_DONE;
}

static const FlbDriver driver = {.name = "simulated",
                                 .count = count,
                                 .properties = properties,
                                 .memory = memory,
                                 .counters = counters,
                                 .trim = trim,
                                 .allocate = allocate,
                                 .release = release,
                                 .copy_in = copy_in,
                                 .copy_out = copy_out,
                                 .copy = copy,
                                 .fill = fill,
                                 .pin = pin,
                                 .unpin = unpin,
                                 .stream_create = stream_create,
                                 .stream_done = stream_done,
                                 .stream_synchronize = stream_synchronize,
                                 .stream_wait_event = stream_wait_event,
                                 .synchronize = synchronize,
                                 .event_create = event_create,
                                 .event_destroy = event_destroy,
                                 .event_record = event_record,
                                 .event_done = event_done,
                                 .event_synchronize = event_synchronize,
                                 .event_elapsed = event_elapsed,
                                 .load = load,
                                 .launch = launch,
                                 .products = products,
                                 .product = product,
                                 .failure = failure,
                                 .choose = choose,
                                 .capture_begin = capture_begin,
                                 .capture_end = capture_end,
                                 .graph_launch = graph_launch,
                                 .graph_destroy = graph_destroy};

const FlbDriver *flb_simulated_driver(int wanted) {
    size_t memory = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE) / 2 & ~(size_t)0xfffff;
    for (n_devices = 0; n_devices < wanted; n_devices++) {
        Device *d = &devices[n_devices];
        d->total = memory;
        d->shadow.room = 4 * memory;
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        d->space = mmap(NULL, d->shadow.room, PROT_NONE, flags, -1, 0);
        d->shadow.backing = mmap(NULL, d->shadow.room, PROT_READ | PROT_WRITE, flags, -1, 0);
        d->free = calloc(CLASSES, sizeof *d->free);
        if (d->space == MAP_FAILED || d->shadow.backing == MAP_FAILED || !d->free ||
            flb_shadow_begin(&d->shadow))
            return NULL;
        flb_stream_begin(&d->stream);
        flb_default_streams++;
    }
    pthread_atfork(flb_before_fork, flb_after_fork, flb_after_fork_in_child);
    return &driver;
}
