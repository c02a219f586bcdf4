/* LSTM, GRU and simple recurrent layers over all time steps, forward and backward: one launch.
 *
 * The product with the inputs is made outside, for all steps at once. A step here multiplies the state
 * (batch, hidden) by the recurrent weight and combines the gates while the sums are in the first-level cache.
 * The weight is packed once a call in blocks of as many hidden units as a vector has lanes, all gates of a
 * unit block together; tiles of a few rows by a block are register kernels. A single step of few rows packs a
 * block and multiplies by it while it is in the second-level cache. Tiles of a step go over the pool;
 * the result of a tile doesn't depend on its thread. Kept for the backward: the gates after their
 * functions, the cells, and of the GRU the hidden product of the new gate. Backward, a tile first multiplies
 * the gates' cotangents of the step after by the weight, then differentiates its own units.
 *
 * Shapes: inner (T, B, G H), weight (G H, H), biases (G H), h and c (B, H), output and cells (T, B, H), gates
 * (T, B, G H), for the GRU (T, B, 4 H); all in C order. Gates in PyTorch's order: input, forget, cell,
 * output; reset, update, new. */
#include "runtime/graph.h"
#include "kernels/elementary.h"
#include <math.h>
#include <string.h>

typedef struct {
    FlbRangeFn pack, forward, backward;
    int lanes;
} Level;

typedef struct {
    int kind, backward;
    int64_t batch, hidden, gates; /* gates: 4, 3 or 1 */
    int64_t t, before; /* the step, and the one that the state (backward: the cotangents of the gates) comes
                          from; -1: none */
    int64_t back;      /* backward: the step whose state this one began with; -1: none */
    const char *inner, *weight, *bias_in, *bias_hidden, *h0, *c0, *ct, *ct_c;
    char *out, *cn, *cells, *kept, *d_inner, *d_hidden, *dh, *dc, *packed, *bias;
    const Level *level;
    int64_t held, blocks, pieces; /* the block of the weight that `packed` begins with; how many there are,
                                     and pieces of a step */
    size_t block;                 /* bytes of one */
    int *failed;
} Recurrence;

#define CHUNK 24 /* rows of a piece of a step */
/* A single step of more pieces than these has enough for the pool, and packing costs little beside it. */
#define FEW_CHUNKS 8

#if defined(__GNUC__) && !defined(__clang__)
#define FAST optimize("O3", "fp-contract=fast", "no-math-errno", "no-trapping-math")
#else
#define FAST unused
#endif

#define T float
#define SIGMOID(x) sigmoid_f32(x)
#define TANHF(x) tanh_f32(x)
#define SINGLE 1
#if defined(__x86_64__)
#define NAME(x) x##_f32_wide
#define BYTES 64
#define TARGET target("avx512f,avx512vl,avx512dq,fma"), FAST
#include "kernels/recurrent_kernels.h"
#define NAME(x) x##_f32_half
#define BYTES 32
#define TARGET target("avx2,fma"), FAST
#include "kernels/recurrent_kernels.h"
#endif
#define NAME(x) x##_f32_plain
#define BYTES 16
#define TARGET FAST
#include "kernels/recurrent_kernels.h"
#undef T
#undef SIGMOID
#undef TANHF
#undef SINGLE
#define T double
#define SIGMOID(x) (1 / (1 + exp(-(x))))
#define TANHF(x) tanh(x)
#define SINGLE 0
#if defined(__x86_64__)
#define NAME(x) x##_f64_wide
#define BYTES 64
#define TARGET target("avx512f,avx512vl,avx512dq,fma"), FAST
#include "kernels/recurrent_kernels.h"
#define NAME(x) x##_f64_half
#define BYTES 32
#define TARGET target("avx2,fma"), FAST
#include "kernels/recurrent_kernels.h"
#endif
#define NAME(x) x##_f64_plain
#define BYTES 16
#define TARGET FAST
#include "kernels/recurrent_kernels.h"

#if defined(__x86_64__)
#define LEVELS(t)                                                       \
    {{pack_##t##_plain, forward_##t##_plain, backward_##t##_plain, 16}, \
     {pack_##t##_half, forward_##t##_half, backward_##t##_half, 32},    \
     {pack_##t##_wide, forward_##t##_wide, backward_##t##_wide, 64}}
#else
#define LEVELS(t) {{pack_##t##_plain, forward_##t##_plain, backward_##t##_plain, 16}}
#endif
static const Level levels[2][3] = {LEVELS(f32), LEVELS(f64)};

/* Some blocks of a single step: each is packed where the one before it was, and all rows are multiplied by
 * it. */
static void in_turn(void *context, int64_t begin, int64_t end) {
    Recurrence r = *(const Recurrence *)context;
    char *room = flb_api->scratch(r.block + 64);
    if (!room) {
        *r.failed = 1;
        return;
    }
    r.packed = (char *)(((uintptr_t)room + 63) & ~(uintptr_t)63);
    for (r.held = begin; r.held < end; r.held++) {
        r.level->pack(&r, r.held, r.held + 1);
        for (int64_t i = r.held; i < r.pieces; i += r.blocks)
            (r.backward ? r.level->backward : r.level->forward)(&r, i, i + 1);
    }
    flb_api->free(room);
}

/* bias (G H): the sum of both biases, and behind it the hidden one of the GRU's new gate, which stands inside
 * of the reset. */
static void add_biases(Recurrence *r, int f64) {
    for (int64_t i = 0; i < r->gates * r->hidden; i++) {
        int apart = r->kind == RECURRENCE_GRU && i >= 2 * r->hidden;
        if (f64) {
            double *to = (double *)r->bias, in = ((const double *)r->bias_in)[i],
                   hidden = ((const double *)r->bias_hidden)[i];
            if (apart) to[i] = in, to[i + r->hidden] = hidden;
            else to[i] = in + hidden;
        } else {
            float *to = (float *)r->bias, in = ((const float *)r->bias_in)[i],
                  hidden = ((const float *)r->bias_hidden)[i];
            if (apart) to[i] = in, to[i + r->hidden] = hidden;
            else to[i] = in + hidden;
        }
    }
}

static int run(Recurrence *r, int f64, int reverse, int64_t steps) {
    int item = f64 ? 8 : 4, failed = 0;
    r->level = &levels[f64][flb_cpu_level()], r->failed = &failed;
    FlbRangeFn step = r->backward ? r->level->backward : r->level->forward;
    int64_t lanes = r->level->lanes / item, unit = r->backward ? 2 * lanes : lanes,
            all = r->gates * r->hidden, chunks = (r->batch + CHUNK - 1) / CHUNK;
    r->blocks = (r->hidden + unit - 1) / unit, r->pieces = r->blocks * chunks;
    r->block = (size_t)(unit * all * item);
    int alone = steps == 1 && chunks <= FEW_CHUNKS;
    size_t weights = alone ? 0 : (size_t)r->blocks * r->block,
           biases = (size_t)((r->gates + 1) * r->hidden * item);
    char *room = flb_api->scratch(weights + biases + 128);
    if (!room) return -1;
    r->packed = (char *)(((uintptr_t)room + 63) & ~(uintptr_t)63);
    r->bias = r->packed + weights;
    memset(r->bias, 0, biases);
    if (r->bias_in) add_biases(r, f64);
    if (!alone) flb_parallel(r->level->pack, r, r->blocks, 1 + 40000 / (unit * all));
    int64_t rows = r->batch < CHUNK ? r->batch : CHUNK,
            grain = 1 + (int64_t)(4e5 / (2. * (double)(unit * all * rows)));
    for (int64_t i = 0; i < steps; i++) {
        int64_t k = (reverse != 0) == (r->backward != 0) ? i : steps - 1 - i, ahead = reverse ? -1 : 1;
        r->t = k;
        /* Forward: the step before in the order of the layer; backward: the one after. */
        r->before = i ? (r->backward ? k + ahead : k - ahead) : -1;
        r->back = i + 1 < steps ? k - ahead : -1;
        if (alone && !r->backward) flb_parallel(in_turn, r, r->blocks, 1 + grain / chunks);
        else flb_parallel(step, r, r->pieces, grain);
    }
    if (r->backward) {
        r->before = r->t, r->t = -1;
        if (alone) flb_parallel(in_turn, r, r->blocks, 1 + grain / chunks);
        else flb_parallel(step, r, r->pieces, grain);
    }
    flb_api->free(room);
    return failed ? -1 : 0;
}

static const int gates_of[RECURRENCE_COUNT] = {
    [RECURRENCE_LSTM] = 4, [RECURRENCE_GRU] = 3, [RECURRENCE_TANH] = 1, [RECURRENCE_RELU] = 1};

FLB_KERNEL(recurrence) {
    Recurrence r = {
        .kind = (int)n->kind, .gates = gates_of[n->kind], .batch = v->h.shape[0], .hidden = v->h.shape[1]};
    if (n->kind == RECURRENCE_LSTM && !(flb_given(&v->c) && flb_given(&v->last))) return 0;
    r.inner = v->inner.ptr, r.weight = v->weight.ptr, r.h0 = v->h.ptr, r.bias_in = v->bias_in.ptr,
    r.bias_hidden = v->bias_hidden.ptr;
    r.c0 = v->c.ptr, r.out = v->out.ptr, r.cn = v->last.ptr, r.cells = v->cells.ptr, r.kept = v->gates.ptr;
    if (!v->inner.shape[0] || !r.batch || !r.hidden) return 0;
    return run(&r, n->f64 != 0, n->reversed != 0, v->inner.shape[0]);
}

FLB_KERNEL(recurrence_backward) {
    Recurrence r = {.kind = (int)n->kind,
                    .gates = gates_of[n->kind],
                    .batch = v->h.shape[0],
                    .hidden = v->h.shape[1],
                    .backward = 1};
    int lstm = n->kind == RECURRENCE_LSTM, gru = n->kind == RECURRENCE_GRU;
    if (lstm && !(flb_given(&v->c) && flb_given(&v->cells) && flb_given(&v->d_c))) return 0;
    if ((lstm || gru) && !flb_given(&v->gates)) return 0;
    if (gru && !flb_given(&v->d_hidden)) return 0;
    r.ct = v->cotangent.ptr, r.weight = v->weight.ptr, r.h0 = v->h.ptr, r.out = v->out.ptr, r.c0 = v->c.ptr,
    r.cells = v->cells.ptr;
    r.kept = v->gates.ptr, r.ct_c = v->d_last.ptr, r.d_inner = v->d_inner.ptr,
    r.d_hidden = gru ? v->d_hidden.ptr : r.d_inner;
    r.dh = v->d_h.ptr, r.dc = v->d_c.ptr;
    if (!v->cotangent.shape[0] || !r.batch || !r.hidden) return 0;
    return run(&r, n->f64 != 0, n->reversed != 0, v->cotangent.shape[0]);
}
