/* NVIDIA's devices: a driver whose functions are those of libcuda, at addresses that are handed over
 * (base/accelerator.py asks cuda-bindings for them). Written from the published interface; it has never run
 * on a device.
 *
 * Memory comes from the devices' default pools, in the order of streams. A thread's context is that of the
 * device it last asked for something. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/driver.h"

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUcontext_ *CUcontext;
typedef struct CUmemPool_ *CUmemPool;
typedef struct CUmodule_ *CUmodule;
typedef struct CUgraph_ *CUgraph;
typedef struct CUgraphExec_ *CUgraphExec;

/* Results, attributes of devices and of pools, by their published numbers. */
enum {
    SUCCESS = 0,
    OUT_OF_MEMORY = 2,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    NO_BINARY = 209,
    INVALID_PTX = 218,
    UNSUPPORTED_PTX = 222,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_FAILED = 719,
    CAPTURE_UNSUPPORTED = 900
};
enum {
    MAX_THREADS_PER_BLOCK = 1,
    SHARED_MEMORY_PER_BLOCK = 8,
    WARP_SIZE = 10,
    MULTIPROCESSORS = 16,
    THREADS_PER_MULTIPROCESSOR = 39,
    CAPABILITY_MAJOR = 75,
    CAPABILITY_MINOR = 76
};
enum { POOL_THRESHOLD = 4, POOL_RESERVED = 5, POOL_RESERVED_PEAK = 6, POOL_USED = 7, POOL_USED_PEAK = 8 };

/* The functions that are called, by the names that cuGetProcAddress knows. */
#define FUNCTIONS(F)                                                                                     \
    F(cuInit, (unsigned))                                                                                \
    F(cuGetErrorString, (CUresult, const char **))                                                       \
    F(cuDeviceGetCount, (int *))                                                                         \
    F(cuDeviceGet, (CUdevice *, int))                                                                    \
    F(cuDeviceGetName, (char *, int, CUdevice))                                                          \
    F(cuDeviceGetAttribute, (int *, int, CUdevice))                                                      \
    F(cuDeviceTotalMem, (size_t *, CUdevice))                                                            \
    F(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                                                 \
    F(cuCtxSetCurrent, (CUcontext))                                                                      \
    F(cuCtxSynchronize, (void))                                                                          \
    F(cuMemGetInfo, (size_t *, size_t *))                                                                \
    F(cuDeviceGetDefaultMemPool, (CUmemPool *, CUdevice))                                                \
    F(cuMemPoolGetAttribute, (CUmemPool, int, void *))                                                   \
    F(cuMemPoolSetAttribute, (CUmemPool, int, void *))                                                   \
    F(cuMemPoolTrimTo, (CUmemPool, size_t))                                                              \
    F(cuMemAllocAsync, (CUdeviceptr *, size_t, FlbStream *))                                             \
    F(cuMemAlloc, (CUdeviceptr *, size_t))                                                               \
    F(cuMemFree, (CUdeviceptr))                                                                          \
    F(cuMemFreeAsync, (CUdeviceptr, FlbStream *))                                                        \
    F(cuMemcpyHtoDAsync, (CUdeviceptr, const void *, size_t, FlbStream *))                               \
    F(cuMemcpyDtoHAsync, (void *, CUdeviceptr, size_t, FlbStream *))                                     \
    F(cuMemcpyDtoDAsync, (CUdeviceptr, CUdeviceptr, size_t, FlbStream *))                                \
    F(cuMemcpyPeerAsync, (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, FlbStream *))          \
    F(cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, FlbStream *))                                \
    F(cuMemHostRegister, (void *, size_t, unsigned))                                                     \
    F(cuMemHostUnregister, (void *))                                                                     \
    F(cuStreamCreate, (FlbStream **, unsigned))                                                          \
    F(cuStreamQuery, (FlbStream *))                                                                      \
    F(cuStreamSynchronize, (FlbStream *))                                                                \
    F(cuStreamWaitEvent, (FlbStream *, FlbEvent *, unsigned))                                            \
    F(cuEventCreate, (FlbEvent **, unsigned))                                                            \
    F(cuEventDestroy, (FlbEvent *))                                                                      \
    F(cuEventRecord, (FlbEvent *, FlbStream *))                                                          \
    F(cuEventQuery, (FlbEvent *))                                                                        \
    F(cuEventSynchronize, (FlbEvent *))                                                                  \
    F(cuEventElapsedTime, (float *, FlbEvent *, FlbEvent *))                                             \
    F(cuModuleLoadData, (CUmodule *, const void *))                                                      \
    F(cuModuleGetFunction, (FlbFunction **, CUmodule, const char *))                                     \
    F(cuLaunchKernel,                                                                                    \
      (FlbFunction *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, FlbStream *, \
       void **, void **))                                                                                \
    F(cuStreamBeginCapture, (FlbStream *, int))                                                          \
    F(cuStreamEndCapture, (FlbStream *, CUgraph *))                                                      \
    F(cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long))                         \
    F(cuGraphLaunch, (CUgraphExec, FlbStream *))                                                         \
    F(cuGraphExecDestroy, (CUgraphExec))                                                                 \
    F(cuGraphDestroy, (CUgraph))

#define POINTER(NAME, PARAMETERS) CUresult(*NAME) PARAMETERS;
static union {
    struct {
        FUNCTIONS(POINTER)
    };
    uintptr_t addresses[64];
} cu;
#define NAMED(NAME, PARAMETERS) #NAME,
const char *const flb_nvidia_functions[] = {FUNCTIONS(NAMED) NULL};

static int n_devices;
static CUcontext contexts[FLB_MOST_DEVICES];
static CUmemPool pools[FLB_MOST_DEVICES];
static int64_t blocks[FLB_MOST_DEVICES], allocations[FLB_MOST_DEVICES], frees[FLB_MOST_DEVICES],
    refusals[FLB_MOST_DEVICES];
static __thread CUresult last;
static __thread char said[64]; /* what went wrong last, where it wasn't libcuda */

static int status_of(CUresult r) {
    if (r == SUCCESS) return FLB_DONE;
    if (r != NOT_READY) last = r, said[0] = 0;
    switch (r) {
    case OUT_OF_MEMORY: return FLB_OUT_OF_MEMORY;
    case INVALID_DEVICE: return FLB_INVALID_DEVICE;
    case INVALID_IMAGE:
    case NO_BINARY:
    case INVALID_PTX:
    case UNSUPPORTED_PTX:
    case NOT_FOUND: return FLB_NO_IMAGE;
    case NOT_READY: return FLB_NOT_READY;
    case ILLEGAL_ADDRESS: return FLB_ILLEGAL_ACCESS;
    case INVALID_HANDLE: return FLB_INVALID_HANDLE;
    case CAPTURE_UNSUPPORTED: return FLB_CAPTURING;
    default: return FLB_DIVERGED; /* "unspecified launch failure"; `failure` says which */
    }
}
#define TRY(CALL)                                          \
    do {                                                   \
        CUresult result_ = (CALL);                         \
        if (result_ != SUCCESS) return status_of(result_); \
    } while (0)
/* The thread's context becomes the device's, whose pool keeps what is freed. */
static int enter(int device) {
    if (device < 0 || device >= n_devices) return FLB_INVALID_DEVICE;
    if (!contexts[device]) {
        CUdevice d;
        uint64_t all = UINT64_MAX;
        TRY(cu.cuDeviceGet(&d, device));
        TRY(cu.cuDevicePrimaryCtxRetain(&contexts[device], d));
        /* Some systems have no pools: memory is then taken and given back at once, and the device is waited
         * for. */
        if (cu.cuDeviceGetDefaultMemPool(&pools[device], d) ||
            cu.cuMemPoolSetAttribute(pools[device], POOL_THRESHOLD, &all))
            pools[device] = NULL;
    }
    return status_of(cu.cuCtxSetCurrent(contexts[device]));
}
#define ENTER(DEVICE)                \
    do {                             \
        int status_ = enter(DEVICE); \
        if (status_) return status_; \
    } while (0)

static int count(void) { return n_devices; }
static int properties(int device, FlbDeviceProperties *out) {
    ENTER(device);
    CUdevice d;
    memset(out, 0, sizeof *out);
    TRY(cu.cuDeviceGet(&d, device));
    TRY(cu.cuDeviceGetName(out->name, sizeof out->name, d));
    TRY(cu.cuDeviceTotalMem(&out->total_memory, d));
    int shared = 0;
    const struct {
        int attribute, *to;
    } wanted[] = {{CAPABILITY_MAJOR, &out->major},
                  {CAPABILITY_MINOR, &out->minor},
                  {MULTIPROCESSORS, &out->multiprocessors},
                  {WARP_SIZE, &out->warp_size},
                  {MAX_THREADS_PER_BLOCK, &out->threads_per_block},
                  {THREADS_PER_MULTIPROCESSOR, &out->threads_per_multiprocessor},
                  {SHARED_MEMORY_PER_BLOCK, &shared}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        TRY(cu.cuDeviceGetAttribute(wanted[i].to, wanted[i].attribute, d));
    out->shared_memory_per_block = (size_t)shared;
    return FLB_DONE;
}
static int memory(int device, size_t *available, size_t *total) {
    ENTER(device);
    return status_of(cu.cuMemGetInfo(available, total));
}
static int counters(int device, FlbMemoryCounters *out, int reset) {
    ENTER(device);
    uint64_t values[4] = {0}, zero = 0; /* without a pool nobody counts bytes */
    static const int attributes[] = {POOL_USED, POOL_USED_PEAK, POOL_RESERVED, POOL_RESERVED_PEAK};
    if (reset && pools[device]) {
        TRY(cu.cuMemPoolSetAttribute(pools[device], POOL_USED_PEAK, &zero));
        TRY(cu.cuMemPoolSetAttribute(pools[device], POOL_RESERVED_PEAK, &zero));
    }
    for (int i = 0; i < 4 && pools[device]; i++)
        TRY(cu.cuMemPoolGetAttribute(pools[device], attributes[i], &values[i]));
    *out =
        (FlbMemoryCounters){(int64_t)values[0], (int64_t)values[1],  (int64_t)values[2], (int64_t)values[3],
                            blocks[device],     allocations[device], frees[device],      refusals[device]};
    return FLB_DONE;
}
static int trim(int device) {
    ENTER(device);
    TRY(cu.cuCtxSynchronize());
    return pools[device] ? status_of(cu.cuMemPoolTrimTo(pools[device], 0)) : FLB_DONE;
}
static int allocate(int device, size_t bytes, FlbStream *s, uint64_t *address) {
    ENTER(device);
    CUresult r = pools[device] ? cu.cuMemAllocAsync(address, bytes, s) : cu.cuMemAlloc(address, bytes);
    if (r == SUCCESS)
        __atomic_fetch_add(&blocks[device], 1, __ATOMIC_RELAXED),
            __atomic_fetch_add(&allocations[device], 1, __ATOMIC_RELAXED);
    if (r == OUT_OF_MEMORY) __atomic_fetch_add(&refusals[device], 1, __ATOMIC_RELAXED);
    return status_of(r);
}
static int release(int device, uint64_t address, FlbStream *s) {
    ENTER(device);
    __atomic_fetch_sub(&blocks[device], 1, __ATOMIC_RELAXED),
        __atomic_fetch_add(&frees[device], 1, __ATOMIC_RELAXED);
    if (pools[device]) return status_of(cu.cuMemFreeAsync(address, s));
    TRY(cu.cuCtxSynchronize()); /* work of any stream may use it */
    return status_of(cu.cuMemFree(address));
}
static __thread FlbStream *recording; /* this thread's stream that records its work */
static int64_t pinned;                /* how many pieces of the host's memory are */
static int pin(void *at, size_t bytes) {
    ENTER(0);
    TRY(cu.cuMemHostRegister(at, bytes, 1)); /* for all devices */
    __atomic_fetch_add(&pinned, 1, __ATOMIC_RELAXED);
    return FLB_DONE;
}
static int unpin(void *at) {
    ENTER(0);
    __atomic_fetch_sub(&pinned, 1, __ATOMIC_RELAXED);
    return status_of(cu.cuMemHostUnregister(at));
}
/* What is copied from pageable memory has been read when the call returns. From pinned memory it is read
 * later, while the program may write there: it is waited for. (A recording can't wait: the program has to
 * leave it alone.) */
static int copy_in(int device, uint64_t to, const void *from, size_t bytes, FlbStream *s) {
    ENTER(device);
    TRY(cu.cuMemcpyHtoDAsync(to, from, bytes, s));
    if (!__atomic_load_n(&pinned, __ATOMIC_RELAXED) || (s && s == recording)) return FLB_DONE;
    return status_of(cu.cuStreamSynchronize(s));
}
static int copy_out(int device, void *to, uint64_t from, size_t bytes, FlbStream *s) {
    ENTER(device);
    TRY(cu.cuMemcpyDtoHAsync(to, from, bytes, s));
    return status_of(cu.cuStreamSynchronize(s));
}
static int copy(int device, uint64_t to, int from_device, uint64_t from, size_t bytes, FlbStream *s) {
    if (from_device == device) {
        ENTER(device);
        return status_of(cu.cuMemcpyDtoDAsync(to, from, bytes, s));
    }
    ENTER(from_device);
    ENTER(device);
    return status_of(cu.cuMemcpyPeerAsync(to, contexts[device], from, contexts[from_device], bytes, s));
}
static int fill(int device, uint64_t to, int byte, size_t bytes, FlbStream *s) {
    ENTER(device);
    return status_of(cu.cuMemsetD8Async(to, (unsigned char)byte, bytes, s));
}

static int stream_create(int device, FlbStream **out) {
    ENTER(device);
    return status_of(cu.cuStreamCreate(out, 1)); /* it doesn't wait for the default stream */
}
static int stream_done(int device, FlbStream *s) {
    ENTER(device);
    return status_of(cu.cuStreamQuery(s));
}
static int stream_synchronize(int device, FlbStream *s) {
    ENTER(device);
    return status_of(cu.cuStreamSynchronize(s));
}
static int stream_wait_event(int device, FlbStream *s, FlbEvent *e) {
    ENTER(device);
    return status_of(cu.cuStreamWaitEvent(s, e, 0));
}
static int synchronize(int device) {
    ENTER(device);
    return status_of(cu.cuCtxSynchronize());
}
static int event_create(int device, FlbEvent **out) {
    ENTER(device);
    return status_of(cu.cuEventCreate(out, 0));
}
static int event_destroy(FlbEvent *e) { return status_of(cu.cuEventDestroy(e)); }
static int event_record(FlbEvent *e, int device, FlbStream *s) {
    ENTER(device);
    return status_of(cu.cuEventRecord(e, s));
}
static int event_done(FlbEvent *e) { return status_of(cu.cuEventQuery(e)); }
static int event_synchronize(FlbEvent *e) { return status_of(cu.cuEventSynchronize(e)); }
static int event_elapsed(FlbEvent *a, FlbEvent *b, double *milliseconds) {
    float found = 0;
    TRY(cu.cuEventElapsedTime(&found, a, b));
    *milliseconds = found;
    return FLB_DONE;
}

static int load(int device, const void *image, size_t bytes, const char *name, FlbFunction **out) {
    ENTER(device);
    (void)bytes; /* PTX ends with a zero, a cubin says how long it is */
    CUmodule module;
    TRY(cu.cuModuleLoadData(&module, image));
    return status_of(cu.cuModuleGetFunction(out, module, name));
}
static int launch(int device, const FlbGrid *g, FlbStream *s) {
    ENTER(device);
    void *parameters[] = {(void *)g->arguments}; /* one structure */
    if (g->blocks > INT32_MAX) {
        snprintf(said, sizeof said, "a grid of %lld blocks", (long long)g->blocks);
        return FLB_DIVERGED;
    }
    /* Shared memory is the module's own. */
    return status_of(cu.cuLaunchKernel(g->function, (unsigned)g->blocks, 1, 1, (unsigned)g->threads, 1, 1, 0,
                                       s, parameters, NULL));
}
static int product(int device, const FlbProduct *p, uint64_t a, uint64_t b, uint64_t c, FlbStream *s) {
    static const FlbWorkspaces workspaces = {allocate, release};
    ENTER(device);
    int status = flb_cublas(device, p, (uint64_t[]){a, b, c}, s, &workspaces);
    if (!status) return FLB_DONE;
    snprintf(said, sizeof said, "cuBLASLt's status %d", status);
    return FLB_DIVERGED;
}
static const char *failure(int device) {
    const char *text = NULL;
    (void)device;
    if (said[0]) return said;
    return cu.cuGetErrorString(last, &text) == SUCCESS && text ? text : "no description";
}
static int choose(int what, int value) { return value ? FLB_INVALID_HANDLE : FLB_DONE; }

static int capture_begin(int device, FlbStream *s) {
    ENTER(device);
    TRY(cu.cuStreamBeginCapture(s, 1)); /* unsafe calls of this thread are errors */
    recording = s;
    return FLB_DONE;
}
static int capture_end(int device, FlbStream *s, FlbGraph **out) {
    ENTER(device);
    CUgraph graph;
    CUgraphExec made;
    recording = NULL;
    TRY(cu.cuStreamEndCapture(s, &graph));
    CUresult r = cu.cuGraphInstantiateWithFlags(&made, graph, 0);
    cu.cuGraphDestroy(graph);
    *out = (FlbGraph *)made;
    return status_of(r);
}
static int graph_launch(int device, FlbGraph *g, FlbStream *s) {
    ENTER(device);
    return status_of(cu.cuGraphLaunch((CUgraphExec)g, s));
}
static int graph_destroy(int device, FlbGraph *g) {
    ENTER(device);
    return status_of(cu.cuGraphExecDestroy((CUgraphExec)g));
}

static const FlbDriver driver = {.name = "nvidia",
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
                                 .products = flb_cublas_ready,
                                 .product = product,
                                 .failure = failure,
                                 .choose = choose,
                                 .capture_begin = capture_begin,
                                 .capture_end = capture_end,
                                 .graph_launch = graph_launch,
                                 .graph_destroy = graph_destroy};

const FlbDriver *flb_nvidia_driver(const uintptr_t *addresses, int n, int *status) {
    int wanted = 0;
    while (flb_nvidia_functions[wanted]) wanted++;
    *status = FLB_INVALID_HANDLE;
    if (n != wanted) return NULL;
    memcpy(cu.addresses, addresses, (size_t)n * sizeof *addresses);
    if ((*status = status_of(cu.cuInit(0)))) return NULL;
    if ((*status = status_of(cu.cuDeviceGetCount(&n_devices)))) return NULL;
    if (n_devices > FLB_MOST_DEVICES) n_devices = FLB_MOST_DEVICES;
    return &driver;
}
