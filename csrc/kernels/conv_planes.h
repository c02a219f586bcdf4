/* Planes of a convolution's result that are handed on while they are in the cache of the thread that has made
 * them (planes.c). */
#ifndef FLAMBEAU_CONV_PLANES_H
#define FLAMBEAU_CONV_PLANES_H
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* `take` is handed planes [p0, p1) of images * channels, both multiples of `unit`, each plane once, by any
 * thread. A call that is made again another way hands over everything again. */
typedef struct Planes {
    void (*take)(void *context, int64_t p0, int64_t p1);
    void *context;
    int64_t unit, channels;
    int taken; /* whether the way that made the result has handed it over */
} Planes;

#define TOGETHER 65536 /* bytes of small planes that are handed over together */

/* `planes` for a way that finishes channels in multiples of `block`, NULL where they don't fit (then the
 * result is taken when it is whole). */
static inline Planes *flb_planes_in(Planes *planes, int64_t block) {
    if (!planes) return NULL;
    planes->taken = planes->channels % planes->unit == 0 && block % planes->unit == 0;
    return planes->taken ? planes : NULL;
}

/* Channels [c0, c1) of images [n0, n1) are finished. */
static inline void flb_finished(const Planes *p, int64_t n0, int64_t n1, int64_t c0, int64_t c1) {
    if (!p) return;
    if (c1 - c0 == p->channels) p->take(p->context, n0 * c1, n1 * c1);
    else
        for (; n0 < n1; n0++) p->take(p->context, n0 * p->channels + c0, n0 * p->channels + c1);
}

/* Whether a band of planes is the last of `bands`; `done` counts them. The thread that counts the last
 * band sees the writes of the others. */
static inline int flb_last_band(_Atomic int32_t *done, int64_t bands) {
    return atomic_fetch_add_explicit(done, 1, memory_order_acq_rel) == bands - 1;
}
#endif
