/* What is asked of a device besides the host: memory, copies, streams, events and kernels, as a table of
 * functions.
 *
 * All of it may be called without the GIL. Work that is given to a stream is done in the order in which it
 * was given, some time before the stream is next waited for; copies to the host have arrived when the call
 * returns. A status is 0 or says what failed. */
#ifndef FLB_DRIVER_H
#define FLB_DRIVER_H
#include <stddef.h>
#include <stdint.h>

#include "runtime/enums.h"

enum {
    FLB_DONE,
    FLB_NOT_READY,
    FLB_OUT_OF_MEMORY,
    FLB_INVALID_DEVICE,
    FLB_INVALID_ADDRESS,
    FLB_INVALID_HANDLE,
    FLB_ILLEGAL_ACCESS,
    FLB_DIVERGED,
    FLB_NO_IMAGE,
    FLB_CAPTURING,
    FLB_RACE,
    FLB_UNWRITTEN
};

/* What only the simulated device lets choose: the order of blocks and threads; whether work begins when
 * somebody waits for it; whether work of two streams on the same memory, of which neither waits for the
 * other, and kernels that read what was never written are errors; whether it has a library of products. */
enum { FLB_ORDER, FLB_LATE, FLB_WATCH_RACES, FLB_WATCH_UNWRITTEN, FLB_LIBRARY };

enum { FLB_MOST_DEVICES = 16 };

typedef struct {
    char name[96];
    int major, minor, multiprocessors, warp_size, threads_per_block, threads_per_multiprocessor;
    size_t total_memory, shared_memory_per_block;
} FlbDeviceProperties;

/* Bytes and blocks, now and the most so far. `reserved` is what was taken from the system. */
typedef struct {
    int64_t allocated, peak_allocated, reserved, peak_reserved, blocks, allocations, frees, refusals;
} FlbMemoryCounters;

typedef struct FlbStream FlbStream; /* NULL: the device's default stream */
typedef struct FlbEvent FlbEvent;
typedef struct FlbGraph FlbGraph;       /* work that was recorded */
typedef struct FlbFunction FlbFunction; /* a kernel of a loaded image; lasts as long as the process */

/* A grid of `blocks` times `threads`. The first `n_pointers` of `arguments` are addresses, `extents` the
 * bytes behind each of them; the kernel is handed one structure of all arguments. `cooperative`: its threads
 * wait for one another. */
typedef struct {
    FlbFunction *function;
    int64_t blocks;
    int threads, cooperative, n_pointers, n_arguments;
    size_t shared;
    const uint64_t *arguments;
    const int64_t *extents;
} FlbGrid;

/* C = A B for matrices in rows: (m, k), (k, n) and (m, n), where `ta` and `tb` say that A is kept as (k, m),
 * B as (n, k). There are `batch` of them, and their operands lie at these distances. `type` is an ELEMENT.
 * Leading dimensions and distances count elements. `fast`: factors of float32 may be rounded to ten bits. */
typedef struct {
    int32_t type, ta, tb, fast;
    int64_t m, n, k, lda, ldb, ldc, batch, a_distance, b_distance, c_distance;
} FlbProduct;
static inline int
flb_product_width(const FlbProduct *p) { /* bytes of an element, 0 of one that no product takes */
    switch (p->type) {
    case ELEMENT_F64: return 8;
    case ELEMENT_F32: return 4;
    case ELEMENT_F16:
    case ELEMENT_BF16: return 2;
    default: return 0;
    }
}
int64_t flb_product_bytes(const FlbProduct *p,
                          int operand); /* from an operand's first byte to its last; 2: C */

typedef struct {
    const char *name;
    int (*count)(void);
    int (*properties)(int device, FlbDeviceProperties *out);
    int (*memory)(int device, size_t *available, size_t *total);
    int (*counters)(int device, FlbMemoryCounters *out, int reset_peaks);
    int (*trim)(int device); /* free memory that is kept goes back to the system */

    int (*allocate)(int device, size_t bytes, FlbStream *stream, uint64_t *address);
    int (*release)(int device, uint64_t address, FlbStream *stream);
    int (*copy_in)(int device, uint64_t to, const void *from, size_t bytes, FlbStream *stream);
    int (*copy_out)(int device, void *to, uint64_t from, size_t bytes, FlbStream *stream);
    int (*copy)(int device, uint64_t to, int from_device, uint64_t from, size_t bytes, FlbStream *stream);
    int (*fill)(int device, uint64_t to, int byte, size_t bytes, FlbStream *stream);

    /* Memory of the host that copies go from and to without a detour; it stays where it is until it is let
     * go. */
    int (*pin)(void *at, size_t bytes);
    int (*unpin)(void *at);

    /* Streams last as long as the process. */
    int (*stream_create)(int device, FlbStream **out);
    int (*stream_done)(int device, FlbStream *stream);
    int (*stream_synchronize)(int device, FlbStream *stream);
    int (*stream_wait_event)(int device, FlbStream *stream, FlbEvent *event);
    int (*synchronize)(int device);

    int (*event_create)(int device, FlbEvent **out);
    int (*event_destroy)(FlbEvent *event);
    int (*event_record)(FlbEvent *event, int device, FlbStream *stream);
    int (*event_done)(FlbEvent *event);
    int (*event_synchronize)(FlbEvent *event);
    int (*event_elapsed)(FlbEvent *begin, FlbEvent *end, double *milliseconds);

    /* `image` is what the device's compiler made (src/flambeau/inductor/machine/): for the simulated device
     * the address of a function of this process. What goes wrong in a kernel is a status of what waits for
     * it; `failure` says more. */
    int (*load)(int device, const void *image, size_t bytes, const char *name, FlbFunction **out);
    int (*launch)(int device, const FlbGrid *grid, FlbStream *stream);
    /* Whether there is a library of products, and one of it. */
    int (*products)(void);
    int (*product)(int device, const FlbProduct *product, uint64_t a, uint64_t b, uint64_t c,
                   FlbStream *stream);
    const char *(*failure)(int device);
    int (*choose)(int what, int value); /* FLB_ORDER, ... A status */

    /* From begin to end, work that is given to the stream is kept in a graph and not done. Memory that is
     * taken meanwhile lasts as long as the graph, whoever releases it. */
    int (*capture_begin)(int device, FlbStream *stream);
    int (*capture_end)(int device, FlbStream *stream, FlbGraph **out);
    int (*graph_launch)(int device, FlbGraph *graph, FlbStream *stream);
    int (*graph_destroy)(int device, FlbGraph *graph);
} FlbDriver;

/* simulated.c: `count` devices in this process's memory. NULL when memory for them can't be had. */
const FlbDriver *flb_simulated_driver(int count);

/* nvidia.c: NVIDIA's devices, through functions of libcuda at the addresses of these names, in order. NULL
 * with a status when it can't be begun. */
extern const char *const flb_nvidia_functions[];
const FlbDriver *flb_nvidia_driver(const uintptr_t *addresses, int n, int *status);

/* cublas.c: products through functions of cuBLASLt at the addresses of these names, in order. `take` and
 * `give` have memory in a stream's order. The result of flb_cublas is cuBLASLt's status. */
extern const char *const flb_cublas_functions[];
int flb_cublas_begin(const uintptr_t *addresses, int n); /* 0, or -1 for another number of them */
int flb_cublas_ready(void);
typedef struct {
    int (*take)(int device, size_t bytes, FlbStream *stream, uint64_t *address);
    int (*give)(int device, uint64_t address, FlbStream *stream);
} FlbWorkspaces;
int flb_cublas(int device, const FlbProduct *product, const uint64_t operands[3], FlbStream *stream,
               const FlbWorkspaces *workspaces);
#endif
