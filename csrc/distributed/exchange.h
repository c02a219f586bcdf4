/* Collectives over memory that all ranks of a group can read: a window shared between processes, or the one
 * memory of threads. See docs/design/distributed.md. */
#ifndef FLAMBEAU_EXCHANGE_H
#define FLAMBEAU_EXCHANGE_H
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { U8, I8, I16, I32, I64, U16, U32, U64, F16, BF16, F32, F64, C64, C128, BOOL, N_TYPES };
enum { SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, N_OPS };

/* out[i] = parts[0][i] op ... op parts[n-1][i], in this order; 16-bit floats are reduced in float32 and
 * rounded once. `out` may be one of the parts. -1: the type has no such operation. */
int flb_reduce(int type, int op, void *out, const void *const *parts, int n, size_t count);
size_t flb_type_size(int type);

/* What a rank is about to do; compared by all before anything is read. */
typedef struct {
    uint64_t sequence;
    uint32_t kind, type, op, root;
    uint64_t count;  /* elements, or bytes of one piece */
    uint64_t most;   /* bytes of the rank's longest piece: not compared */
    uint64_t place;  /* where the elements lie in shared memory; of threads: their address, not compared */
    uint64_t region; /* which shared memory */
} FlbHeader;

/* The beginning of a rank's part of the shared memory; the two slots follow at FLB_SLOTS. */
typedef struct {
    _Atomic uint64_t arrived;           /* barriers that this rank has reached */
    _Atomic uint64_t started, finished; /* operations */
    _Atomic uint32_t epoch, sleepers;   /* rank 0's: changes at each arrival; who sleeps until it does */
    _Atomic uint32_t broken;            /* rank 0's: 1 + the rank that gave up */
    FlbHeader headers[2];
} FlbPart;
#define FLB_SLOTS 4096
#endif
