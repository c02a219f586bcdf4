/* The thread pool's interface, for launch.c. */
#ifndef FLAMBEAU_RUNTIME_H
#define FLAMBEAU_RUNTIME_H
#include <stdint.h>

/* Work on [begin, end) of the parallel range; must not touch Python. */
typedef void (*FlbRangeFn)(void *context, int64_t begin, int64_t end);

/* Run fn over [0, total) in pieces of at least `grain`, on the pool when there are two pieces or more.
 * Returns when all is done. */
void flb_parallel(FlbRangeFn fn, void *context, int64_t total, int64_t grain);
int flb_get_num_threads(void);
void flb_set_num_threads(int n);
#endif
