/* Streams of the simulated device. Each has a thread of the host while there is something to do: it does the
 * work in order, beside the program and the threads of other streams, and ends when nothing has come for a
 * while. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/simulated.h"

enum { LONGEST_QUEUE = 256, IDLE = 20 }; /* pieces of work; milliseconds */

int flb_late;
pthread_mutex_t flb_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER; /* a piece of work is done */
static int busy, forking; /* how many pieces are being done; a fork waits for them */
static FlbClock *host;    /* what the program has waited for */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
void flb_let_go(FlbEvent *e) {
    if (--e->holders) return;
    flb_clock_let_go(e->clock);
    free(e);
}
void flb_failed(int device, int status, const char *text) {
    Device *d = &flb_devices[device];
    if (d->failed || !status) return;
    d->failed = status;
    snprintf(d->failure, sizeof d->failure, "%s", text);
}
int flb_told(int device) {
    int status = flb_devices[device].failed;
    flb_devices[device].failed = 0;
    return status;
}

/* ---- what a piece of work does ---------------------------------------------------------------------------
 */

static void note_use(const Work *w, int device, const char *at, int how, const char *what) {
    uint32_t other = flb_use(&flb_devices[device].shadow, &w->who, at, w->bytes, how);
    char text[160];
    if (!other) return;
    snprintf(text, sizeof text,
             "%s on stream %u: work of stream %u that isn't waited for uses the memory, too", what,
             flb_stream_id(w->who.stream), flb_stream_id(other));
    pthread_mutex_lock(&flb_lock);
    flb_failed(device, FLB_RACE, text);
    pthread_mutex_unlock(&flb_lock);
}
static void launch(const Work *w) {
    char text[200] = "";
    int status = flb_run_threads(w->launch, &flb_devices[w->device].shadow, &w->who, text, sizeof text);
    if (!status) return;
    pthread_mutex_lock(&flb_lock);
    flb_failed(w->device, status, text);
    pthread_mutex_unlock(&flb_lock);
}
static int row_used(void *about, char *at, size_t bytes, int how) {
    const Work *w = about;
    FlbShadow *shadow = &flb_devices[w->device].shadow;
    Work row = *w;
    row.bytes = bytes;
    note_use(&row, w->device, at, how, "a product");
    if (how == FLB_WRITES) flb_set_written(shadow, at, bytes, 1);
    return how == FLB_READS && flb_watch_unwritten && !flb_all_written(shadow, at, bytes);
}
static void product(const Work *w) {
    if (!flb_product(w->product, row_used, (void *)w)) return;
    pthread_mutex_lock(&flb_lock);
    flb_failed(w->device, FLB_UNWRITTEN, "a product");
    pthread_mutex_unlock(&flb_lock);
}
/* Without the lock. */
static void perform(const Work *w) {
    FlbShadow *to = &flb_devices[w->device].shadow;
    if (w->kind == LAUNCH) {
        launch(w);
        return;
    }
    if (w->kind == PRODUCT) {
        product(w);
        return;
    }
    if (w->kind != COPY_IN && w->kind != COPY && w->kind != FILL && w->kind != FRESH) return;
    note_use(w, w->device, w->to, FLB_WRITES,
             w->kind == FRESH      ? "memory is taken"
                 : w->kind == FILL ? "memory is filled"
                                   : "a copy");
    if (w->kind == COPY_IN) memcpy(w->to, w->from, w->bytes);
    if (w->kind == FILL || w->kind == FRESH) memset(w->to, w->byte, w->bytes);
    if (w->kind != COPY) {
        flb_set_written(to, w->to, w->bytes, w->kind != FRESH);
        return;
    }
    FlbShadow *from = &flb_devices[w->from_device].shadow;
    note_use(w, w->from_device, w->from, FLB_READS, "a copy");
    memmove(w->to, w->from, w->bytes);
    memmove(to->written + (w->to - to->backing), from->written + (w->from - from->backing), w->bytes);
}
/* With it: what has to be seen by others at once. */
static void conclude(FlbStream *s, Work *w) {
    if (w->kind == COPY_IN && !w->kept) free(w->from);
    if (w->kind == LAUNCH && !w->kept) free(w->launch);
    if (w->kind == PRODUCT && !w->kept) free(w->product);
    if (w->kind == RECORD) {
        if (w->event->stream == s && w->event->place == w->place) w->event->time = now();
        flb_let_go(w->event);
    }
    if (w->kind == RELEASE) flb_give_back(w->device, w->address, &w->who);
    flb_clock_let_go(w->who.clock);
    free(w);
}

/* ---- threads ---------------------------------------------------------------------------------------------
 */

static void want(FlbStream *s, uint64_t place);
static void next(FlbStream *s) {
    Work *w = s->first;
    if (w->kind == WAIT) {
        want(w->awaited, w->place);
        while (w->awaited->done < w->place) pthread_cond_wait(&progress, &flb_lock);
    }
    while (forking) pthread_cond_wait(&progress, &flb_lock);
    if (!(s->first = w->next)) s->last = NULL;
    busy++;
    pthread_mutex_unlock(&flb_lock);
    perform(w);
    pthread_mutex_lock(&flb_lock);
    conclude(s, w);
    busy--, s->length--, s->done++;
    pthread_cond_broadcast(&progress);
}
static void *work(void *given) {
    FlbStream *s = given;
    pthread_mutex_lock(&flb_lock);
    for (;;) {
        while (s->first && s->done < s->wanted) next(s);
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += IDLE * 1000000;
        until.tv_sec += until.tv_nsec / 1000000000, until.tv_nsec %= 1000000000;
        int waited = pthread_cond_timedwait(&s->called, &flb_lock, &until);
        if (waited && !(s->first && s->done < s->wanted)) break;
    }
    s->running = 0;
    pthread_mutex_unlock(&flb_lock);
    flb_threads_end();
    return NULL;
}
/* Signals are the program's. Where there can be no thread, the one that asks does the work. */
static void begin(FlbStream *s) {
    pthread_t thread;
    pthread_attr_t detached;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    s->running = !pthread_create(&thread, &detached, work, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&detached);
    while (!s->running && s->first && s->done < s->wanted) next(s);
}
static void want(FlbStream *s, uint64_t place) {
    if (place > s->wanted) s->wanted = place;
    if (s->done >= s->wanted || !s->first) return;
    if (s->running) pthread_cond_signal(&s->called);
    else begin(s);
}
static void reach(FlbStream *s, uint64_t place) {
    want(s, place);
    while (s->done < place) pthread_cond_wait(&progress, &flb_lock);
}
void flb_wait_for(FlbStream *s, uint64_t place, FlbClock *clock) {
    flb_clock_held(clock);
    reach(s, place);
    flb_clock_after(&host, clock, s->number, s->number ? (uint32_t)place : 0);
    flb_clock_let_go(clock);
}
void flb_finish(FlbStream *s) { flb_wait_for(s, s->given, s->clock); }
void flb_finish_all(int device) {
    flb_finish(&flb_devices[device].stream);
    for (int i = 0; i < flb_devices[device].n_streams; i++) flb_finish(flb_devices[device].streams[i]);
}

/* ---- giving ----------------------------------------------------------------------------------------------
 */

int flb_stream_begin(FlbStream *s) {
    static uint32_t numbers;
    if (numbers < FLB_STREAMS) s->number = ++numbers;
    pthread_cond_init(&s->called, NULL);
    return FLB_DONE;
}
static int recorded(FlbStream *s, Work *own) {
    FlbGraph *g = s->capture;
    if (own->kind == RECORD) flb_let_go(own->event);
    if (own->kind == RECORD || own->kind == WAIT)
        return free(own), FLB_DONE; /* of one stream, its own order is enough */
    own->kept = 1;
    if (g->last) g->last->next = own;
    else g->first = own;
    g->last = own;
    return FLB_DONE;
}
FlbWork flb_next_work(FlbStream *s) {
    flb_clock_after(&s->clock, host, 0, 0);
    return (FlbWork){s->clock, s->number, (uint32_t)s->given + 1};
}
int flb_give(FlbStream *s, Work w) {
    Work *own = malloc(sizeof w);
    if (!own) return FLB_OUT_OF_MEMORY;
    *own = w;
    own->next = NULL;
    if (s->capture) return recorded(s, own);
    if (s->given >= FLB_PLACES) s->number = 0;
    own->who = flb_next_work(s);
    flb_clock_held(own->who.clock);
    if (s->last) s->last->next = own;
    else s->first = own;
    s->last = own;
    s->given++, s->length++;
    if (!flb_late) want(s, s->given);
    if (s->length > LONGEST_QUEUE) reach(s, s->given - LONGEST_QUEUE / 2);
    return FLB_DONE;
}

/* ---- forks -----------------------------------------------------------------------------------------------
 */

/* A child of a fork has the memory and the work that wasn't begun, and no threads. */
void flb_before_fork(void) {
    pthread_mutex_lock(&flb_lock);
    forking = 1;
    while (busy) pthread_cond_wait(&progress, &flb_lock);
}
void flb_after_fork(void) {
    forking = 0;
    pthread_cond_broadcast(&progress);
    pthread_mutex_unlock(&flb_lock);
}
static void alone(FlbStream *s) {
    s->running = 0;
    pthread_cond_init(&s->called, NULL);
    if (!flb_late) want(s, s->given);
}
void flb_after_fork_in_child(void) {
    forking = 0;
    pthread_cond_init(&progress, NULL);
    pthread_mutex_init(&flb_lock, NULL);
    pthread_mutex_lock(&flb_lock);
    for (int d = 0; d < flb_n_devices; d++) {
        alone(&flb_devices[d].stream);
        for (int i = 0; i < flb_devices[d].n_streams; i++) alone(flb_devices[d].streams[i]);
    }
    pthread_mutex_unlock(&flb_lock);
}
