/* A kernel of the simulated device: how its text (src/flambeau/inductor/codegen/targets.py) is called, and
 * how blocks of threads run it. */
#ifndef FLB_THREADS_H
#define FLB_THREADS_H
#include <stddef.h>
#include <stdint.h>

#include "device/watch.h"

enum { FLB_WARP = 32, FLB_MOST_THREADS = 1024 };

/* What a thread knows. The text reads it by place: eight bytes each, in this order. */
typedef struct FlbThread {
    int64_t thread, block, threads, blocks;
    char *shared;           /* the block's */
    const int64_t *extents; /* bytes that lie behind each address among the arguments */
    void (*barrier)(struct FlbThread *);
    uint32_t (*shuffle)(struct FlbThread *, uint32_t value,
                        int32_t mask); /* the value of the thread whose number differs in `mask` */
    void (*fault)(struct FlbThread *, int64_t argument, int64_t position); /* doesn't return */
    void (*access)(struct FlbThread *, int64_t argument, int64_t position,
                   int64_t bytes); /* before an element is read; written: bytes < 0 */
    struct FlbRun *run;
} FlbThread;

typedef void (*FlbKernel)(const uint64_t *arguments, FlbThread *here);

typedef struct {
    FlbKernel kernel;
    int64_t blocks;
    int threads, cooperative; /* whether threads wait for one another */
    size_t shared;            /* bytes */
    int order;                /* of blocks and threads: 0 ascending, 1 descending, from 2 on mixed */
    const uint64_t *arguments;
    const int64_t *extents;
} FlbLaunch;

/* Run all threads, as the work of a stream. A status; `text` gets a line about what went wrong. */
int flb_run_threads(const FlbLaunch *launch, FlbShadow *shadow, const FlbWork *work, char *text, size_t room);
/* A thread of the host that ran some ends. */
void flb_threads_end(void);
#endif
