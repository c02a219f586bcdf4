/* LSTM, GRU and simple recurrent layers over all time steps, forward and backward: one launch.
 *
 * The product with the inputs is made outside, for all steps at once. A step here multiplies the state (batch, hidden) by the recurrent weight and
 * combines the gates while the sums are in the first-level cache. The weight is packed once a call in blocks of as many hidden units as a vector has
 * lanes, all gates of a unit block together; tiles of a few rows by a block are register kernels. Tiles of a step go over the pool; what a tile
 * computes doesn't depend on who computes it. Kept for the backward: the gates after their functions, the cells, and of the GRU the hidden product of the
 * new gate. Backward, a tile first multiplies the gates' cotangents of the step after by the weight, then differentiates its own units.
 *
 * Shapes: inner (T, B, G H), weight (G H, H), biases (G H), h and c (B, H), output and cells (T, B, H), gates (T, B, G H), for the GRU (T, B, 4 H); all in C
 * order. Gates in PyTorch's order: input, forget, cell, output; reset, update, new. */
#include "graph.h"
#include "elementary.h"
#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { LSTM, GRU, TANH, RELU };

typedef struct {
    int kind, backward;
    int64_t batch, hidden, gates;           /* gates: 4, 3 or 1 */
    int64_t t, before;                      /* the step, and the one that the state (backward: the cotangents of the gates) comes from; -1: none */
    int64_t back;                           /* backward: the step whose state this one began with; -1: none */
    const char *inner, *weight, *bias_in, *bias_hidden, *h0, *c0, *ct, *ct_c;
    char *out, *cn, *cells, *kept, *d_inner, *d_hidden, *dh, *dc, *packed, *bias;
} Recurrence;

#define CHUNK 24                            /* rows of a piece of a step */

#if defined(__GNUC__) && !defined(__clang__)
#define FAST optimize("O3", "fp-contract=fast", "no-math-errno", "no-trapping-math")
#else
#define FAST unused
#endif

typedef struct {
    FlbRangeFn pack, forward, backward;
    int lanes;
} Level;

#define T float
#define SIGMOID(x) sigmoid_f32(x)
#define TANHF(x) tanh_f32(x)
#define SINGLE 1
#if defined(__x86_64__)
#define NAME(x) x##_f32_wide
#define BYTES 64
#define TARGET target("avx512f,avx512vl,avx512dq,fma"), FAST
#include "recurrent_kernels.h"
#define NAME(x) x##_f32_half
#define BYTES 32
#define TARGET target("avx2,fma"), FAST
#include "recurrent_kernels.h"
#endif
#define NAME(x) x##_f32_plain
#define BYTES 16
#define TARGET FAST
#include "recurrent_kernels.h"
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
#include "recurrent_kernels.h"
#define NAME(x) x##_f64_half
#define BYTES 32
#define TARGET target("avx2,fma"), FAST
#include "recurrent_kernels.h"
#endif
#define NAME(x) x##_f64_plain
#define BYTES 16
#define TARGET FAST
#include "recurrent_kernels.h"

#if defined(__x86_64__)
#define LEVELS(t) {{pack_##t##_plain, forward_##t##_plain, backward_##t##_plain, 16}, {pack_##t##_half, forward_##t##_half, backward_##t##_half, 32}, {pack_##t##_wide, forward_##t##_wide, backward_##t##_wide, 64}}
#else
#define LEVELS(t) {{pack_##t##_plain, forward_##t##_plain, backward_##t##_plain, 16}}
#endif
static const Level levels[2][3] = {LEVELS(f32), LEVELS(f64)};

static int run(Recurrence *r, int f64, int reverse, int64_t steps) {
    int item = f64 ? 8 : 4;
    const Level *level = &levels[f64][flb_cpu_level()];
    int64_t lanes = level->lanes / item, unit = r->backward ? 2 * lanes : lanes, blocks = (r->hidden + unit - 1) / unit, all = r->gates * r->hidden;
    size_t weights = (size_t)(blocks * unit * all * item), biases = (size_t)((r->gates + 1) * r->hidden * item);
    char *room = flb_api->scratch(weights + biases + 128);
    if (!room) return -1;
    r->packed = (char *)(((uintptr_t)room + 63) & ~(uintptr_t)63);
    r->bias = r->packed + weights;
    /* The sum of both biases, and behind it the hidden one of the GRU's new gate, which stands inside of the reset. */
    memset(r->bias, 0, biases);
    if (r->bias_in)
        for (int64_t i = 0; i < all; i++) {
            int apart = r->kind == GRU && i >= 2 * r->hidden;
            if (f64) {
                double *to = (double *)r->bias, in = ((const double *)r->bias_in)[i], hidden = ((const double *)r->bias_hidden)[i];
                if (apart) to[i] = in, to[i + r->hidden] = hidden;
                else to[i] = in + hidden;
            } else {
                float *to = (float *)r->bias, in = ((const float *)r->bias_in)[i], hidden = ((const float *)r->bias_hidden)[i];
                if (apart) to[i] = in, to[i + r->hidden] = hidden;
                else to[i] = in + hidden;
            }
        }
    flb_parallel(level->pack, r, blocks, 1 + 40000 / (unit * all));
    int64_t total = blocks * ((r->batch + CHUNK - 1) / CHUNK), rows = r->batch < CHUNK ? r->batch : CHUNK;
    int64_t grain = 1 + (int64_t)(4e5 / (2. * (double)(unit * all * rows)));
    for (int64_t i = 0; i < steps; i++) {
        int64_t k = (reverse != 0) == (r->backward != 0) ? i : steps - 1 - i, ahead = reverse ? -1 : 1;
        r->t = k;
        /* Forward: the step before in the order of the layer; backward: the one after. */
        r->before = i ? (r->backward ? k + ahead : k - ahead) : -1;
        r->back = i + 1 < steps ? k - ahead : -1;
        flb_parallel(r->backward ? level->backward : level->forward, r, total, grain);
    }
    if (r->backward) {
        r->before = r->t, r->t = -1;
        flb_parallel(level->backward, r, total, grain);
    }
    flb_api->free(room);
    return 0;
}

/* Views: inner, weight, h; with biases those of inputs and state; for the LSTM c; then the output, for the LSTM the last cells; where the backward is to follow, for the LSTM
 * the cells, for LSTM and GRU the gates. Numbers: kind, reversed, float64, biases, whether the backward follows. */
int flb_recurrence_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    int kind = (int)numbers[0], biases = numbers[3] != 0, keep = numbers[4] != 0;
    static const int counts[] = {4, 3, 1, 1};
    if (kind < 0 || kind > 3 || n < 4 + 2 * biases + (kind == LSTM ? 2 + 2 * keep : kind == GRU && keep)) return 0;
    int64_t steps = v[0].shape[0];
    Recurrence r = {.kind = kind, .gates = counts[kind], .batch = v[2].shape[0], .hidden = v[2].shape[1]};
    r.inner = v[0].ptr, r.weight = v[1].ptr, r.h0 = v[2].ptr;
    v += 3;
    if (biases) r.bias_in = v[0].ptr, r.bias_hidden = v[1].ptr, v += 2;
    if (kind == LSTM) r.c0 = v++->ptr;
    r.out = v++->ptr;
    if (kind == LSTM) r.cn = v++->ptr;
    if (kind == LSTM && keep) r.cells = v++->ptr;
    if (kind <= GRU && keep) r.kept = v++->ptr;
    if (!steps || !r.batch || !r.hidden) return 0;
    return run(&r, numbers[2] != 0, numbers[1] != 0, steps);
}

/* Views: the cotangent of the output, weight, h, output; for the LSTM c and the cells; for LSTM and GRU the gates; perhaps the cotangent of the last cells; then the cotangents of
 * inner, for the GRU of the hidden product, of h, for the LSTM of c. Numbers: kind, reversed, float64, whether there is a cotangent of the cells. */
int flb_recurrence_backward_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    int kind = (int)numbers[0];
    static const int counts[] = {4, 3, 1, 1};
    if (kind < 0 || kind > 3 || n < 6 + (kind == LSTM ? 4 + (numbers[3] != 0) : kind == GRU ? 2 : 0)) return 0;
    int64_t steps = v[0].shape[0];
    Recurrence r = {.kind = kind, .gates = counts[kind], .batch = v[2].shape[0], .hidden = v[2].shape[1], .backward = 1};
    r.ct = v[0].ptr, r.weight = v[1].ptr, r.h0 = v[2].ptr, r.out = v[3].ptr;
    v += 4;
    if (kind == LSTM) r.c0 = v[0].ptr, r.cells = v[1].ptr, v += 2;
    if (kind <= GRU) r.kept = v++->ptr;
    if (kind == LSTM && numbers[3]) r.ct_c = v++->ptr;
    r.d_inner = v++->ptr;
    r.d_hidden = kind == GRU ? v++->ptr : r.d_inner;
    r.dh = v++->ptr;
    if (kind == LSTM) r.dc = v++->ptr;
    if (!steps || !r.batch || !r.hidden) return 0;
    return run(&r, numbers[2] != 0, numbers[1] != 0, steps);
}
