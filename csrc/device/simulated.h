/* The simulated device: its memory, and streams of work that threads of the host do (queues.c). One lock
 * serves all of it but the work itself. */
#ifndef FLB_SIMULATED_H
#define FLB_SIMULATED_H
#include <pthread.h>

#include "device/driver.h"
#include "device/threads.h"
#include "device/watch.h"

enum { COPY_IN, COPY, FILL, FRESH, RECORD, WAIT, RELEASE, LAUNCH, PRODUCT };

/* `operands`: in the backing. */
typedef struct {
    FlbProduct what;
    char *operands[3];
} Product;

typedef struct Work {
    struct Work *next;
    int kind, byte;
    char *to, *from; /* `from` of COPY_IN is memory of its own */
    size_t bytes;
    FlbEvent *event; /* RECORD: kept alive by it */
    FlbStream *awaited;
    uint64_t place;
    int device, from_device;
    uint64_t address;
    FlbLaunch *launch; /* with its arguments behind it, one block of memory */
    Product *product;
    int kept; /* by a graph: what it points to isn't freed when it is done */
    FlbWork who;
} Work;

struct FlbStream {
    Work *first, *last;
    uint64_t given, done, wanted; /* how many pieces of work; a thread does those that are wanted */
    int length, running;          /* `running`: it has a thread */
    uint32_t number;
    FlbClock *clock;   /* what comes before the work that it is given next */
    FlbGraph *capture; /* what records its work, NULL */
    pthread_cond_t called;
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
    FlbClock *clock; /* of the stream there */
    double time;     /* seconds; valid when the place has been reached */
    int holders;
};

typedef struct {
    char *space;
    FlbShadow shadow;
    size_t used, total;
    uint64_t *free; /* by size, the first free block as an offset + 1 */
    FlbStream stream, **streams;
    int n_streams; /* besides the default one */
    FlbMemoryCounters counters;
    int failed; /* status of the first work that failed, until somebody was told */
    char failure[200];
} Device;

extern Device flb_devices[FLB_MOST_DEVICES];
extern int flb_n_devices, flb_late, flb_library;
extern pthread_mutex_t flb_lock;

/* All of these functions are called with the lock. One that waits releases it meanwhile. */
int flb_stream_begin(FlbStream *s);
/* What the host's next work on it would be; the clock stays the stream's. */
FlbWork flb_next_work(FlbStream *s);
int flb_give(FlbStream *s, Work w);
/* The host waits until the stream is at a place, of which a clock says what comes before it. */
void flb_wait_for(FlbStream *s, uint64_t place, FlbClock *clock);
void flb_finish(FlbStream *s);
void flb_finish_all(int device);
void flb_let_go(FlbEvent *e);
int flb_told(int device); /* of work that failed, once */
void flb_failed(int device, int status, const char *text);
void flb_give_back(int device, uint64_t address, const FlbWork *work);
void flb_before_fork(void);
void flb_after_fork(void);
void flb_after_fork_in_child(void);
/* product.c: without the lock. `row` is told of each row of an operand before it is used; a status that isn't
 * 0 ends the product. */
int flb_product(const Product *p, int (*row)(void *about, char *at, size_t bytes, int how), void *about);
#endif
