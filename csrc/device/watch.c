/* Clocks, and a shadow of the simulated device's memory. The shadow is touched by the threads of several
 * streams: its words are read and written as a whole, and where two of them race, one of the two is told. */
#define _GNU_SOURCE
#include "device/watch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int flb_watch_races = 1, flb_watch_unwritten = 0;
uint32_t flb_default_streams = 0;

/* ---- clocks -------------------------------------------------------------------------------------------- */

FlbClock *flb_clock_held(FlbClock *clock) {
    if (clock) clock->holders++;
    return clock;
}
void flb_clock_let_go(FlbClock *clock) {
    if (clock && !--clock->holders) free(clock);
}
static int comes_after(const FlbClock *clock, const FlbClock *other, uint32_t stream, uint32_t place) {
    int n = clock ? clock->n : 0;
    if (stream && place && ((int)stream >= n || clock->at[stream] < place)) return 0;
    for (int i = 0; other && i < other->n; i++)
        if (other->at[i] && (i >= n || clock->at[i] < other->at[i])) return 0;
    return 1;
}
int flb_clock_after(FlbClock **clock, const FlbClock *other, uint32_t stream, uint32_t place) {
    if (comes_after(*clock, other, stream, place)) return 0;
    int n = *clock ? (*clock)->n : 0;
    if (other && other->n > n) n = other->n;
    if ((int)stream >= n) n = (int)stream + 1;
    FlbClock *made = calloc(1, sizeof *made + (size_t)n * sizeof *made->at);
    if (!made) return -1;
    made->holders = 1, made->n = n;
    if (*clock) memcpy(made->at, (*clock)->at, (size_t)(*clock)->n * sizeof *made->at);
    for (int i = 0; other && i < other->n; i++)
        if (other->at[i] > made->at[i]) made->at[i] = other->at[i];
    if (stream && place > made->at[stream]) made->at[stream] = place;
    flb_clock_let_go(*clock);
    *clock = made;
    return 0;
}

/* ---- the shadow ---------------------------------------------------------------------------------------- */

int flb_shadow_begin(FlbShadow *m) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    m->written = mmap(NULL, m->room, PROT_READ | PROT_WRITE, flags, -1, 0);
    m->cells = mmap(NULL, m->room / 4 * sizeof *m->cells, PROT_READ | PROT_WRITE, flags, -1, 0);
    return m->written == MAP_FAILED || (void *)m->cells == MAP_FAILED ? -1 : 0;
}
static inline uint32_t get(const uint32_t *p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
static inline void put(uint32_t *p, uint32_t x) { __atomic_store_n(p, x, __ATOMIC_RELAXED); }
/* The stream of an epoch when the work doesn't come after it, else 0. */
static inline uint32_t racing(uint32_t epoch, const FlbWork *w) {
    uint32_t t = epoch >> 24;
    if (!t || t == w->stream) return 0;
    return w->clock && (int)t < w->clock->n && w->clock->at[t] >= (epoch & FLB_PLACES) ? 0 : t;
}
static inline uint32_t use(FlbCell *c, const FlbWork *w, int how) {
    uint32_t other = racing(get(&c->write), w), mine = w->stream << 24 | w->place;
    if (how == FLB_READS) {
        put(&c->reads[w->stream % 3], mine);
        return other;
    }
    for (int i = 0; i < 3 && !other; i++) other = racing(get(&c->reads[i]), w);
    put(&c->write, mine);
    return other;
}
uint32_t flb_use(FlbShadow *m, const FlbWork *w, const char *at, size_t bytes, int how) {
    if (!flb_watch_races || !w->stream || !bytes) return 0;
    size_t first = (size_t)(at - m->backing), last = (first + bytes - 1) / 4;
    uint32_t other = 0;
    for (size_t k = first / 4; k <= last; k++) {
        uint32_t found = use(&m->cells[k], w, how);
        if (found) other = found;
    }
    return other;
}
int flb_all_written(const FlbShadow *m, const char *at, size_t bytes) {
    for (const uint8_t *p = m->written + (at - m->backing); bytes--; p++)
        if (!*p) return 0;
    return 1;
}
void flb_set_written(FlbShadow *m, const char *at, size_t bytes, int written) {
    memset(m->written + (at - m->backing), written, bytes);
}
static void cleared(char *at, size_t bytes) {
    uintptr_t first = ((uintptr_t)at + 4095) & ~(uintptr_t)4095,
              end = (uintptr_t)(at + bytes) & ~(uintptr_t)4095;
    if (bytes < 1 << 16) {
        memset(at, 0, bytes);
        return;
    }
    memset(at, 0, first - (uintptr_t)at);
    memset((void *)end, 0, (uintptr_t)(at + bytes) - end);
    madvise((void *)first, end - first, MADV_DONTNEED);
}
void flb_forget(FlbShadow *m, const char *at, size_t bytes) {
    size_t first = (size_t)(at - m->backing);
    cleared((char *)m->written + first, bytes);
    cleared((char *)&m->cells[first / 4], (bytes + 3) / 4 * sizeof *m->cells);
}
