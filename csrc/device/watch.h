/* What the simulated device knows of its memory: which bytes were written, and which work last wrote and read
 * each four of them.
 *
 * Work of two streams is ordered by events, and by a host that waited. A clock says of each stream up to
 * which place its work comes before; two pieces of work of which one writes what the other uses, and of which
 * neither comes before the other, are a race, however they ran this time. */
#ifndef FLB_WATCH_H
#define FLB_WATCH_H
#include <stddef.h>
#include <stdint.h>

/* Streams have numbers from 1 on; 0 is one that isn't watched: beyond the last number, or after so much work.
 */
enum { FLB_STREAMS = 255, FLB_PLACES = (1 << 24) - 1 };

typedef struct {
    int holders, n;
    uint32_t at[]; /* by number of the stream */
} FlbClock;

/* A piece of work: its stream, its place there, what comes before it. */
typedef struct {
    FlbClock *clock; /* NULL: nothing */
    uint32_t stream, place;
} FlbWork;

typedef struct {
    uint32_t write, reads[3]; /* stream << 24 | place; the reads of three streams by turns */
} FlbCell;

typedef struct {
    char *backing; /* where the device's memory begins */
    size_t room;
    uint8_t *written; /* of each byte */
    FlbCell *cells;   /* of each four bytes */
} FlbShadow;

enum { FLB_READS = 0, FLB_WRITES = 1 };
extern int flb_watch_races, flb_watch_unwritten; /* switches */
extern uint32_t flb_default_streams;             /* the first numbers are theirs */
/* The number that a program knows a stream by. */
static inline uint32_t flb_stream_id(uint32_t stream) {
    return stream > flb_default_streams ? stream - flb_default_streams : 0;
}

int flb_shadow_begin(FlbShadow *shadow); /* 0, or -1 without memory */
/* Work uses bytes. 0, or the number of the stream whose work it races with. */
uint32_t flb_use(FlbShadow *shadow, const FlbWork *work, const char *at, size_t bytes, int how);
/* Whether all bytes were written. */
int flb_all_written(const FlbShadow *shadow, const char *at, size_t bytes);
void flb_set_written(FlbShadow *shadow, const char *at, size_t bytes, int written);
/* Memory of which nobody knows anything any more. */
void flb_forget(FlbShadow *shadow, const char *at, size_t bytes);

/* Clocks are shared and don't change while another one holds them. */
FlbClock *flb_clock_held(FlbClock *clock);
void flb_clock_let_go(FlbClock *clock);
/* `*clock` comes after `other`, and after a place of a stream (0: of none). -1 without memory. */
int flb_clock_after(FlbClock **clock, const FlbClock *other, uint32_t stream, uint32_t place);
#endif
