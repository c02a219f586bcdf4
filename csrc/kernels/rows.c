/* A launch of products and kernels over the same rows: each thread takes a block of rows through all steps
 * while it is in its cache.
 *
 * Products may be batched: then `period` rows share a right operand, and blocks end there. The right operands
 * of the products are packed whole first, by all threads. Blocks of rows don't depend on each other: a step
 * needs of the earlier ones the rows of its own block only (lowering has seen to that). Buffers that live
 * inside the chain ("local" slots) are rows of a thread's scratch memory; a kernel is handed the address
 * where their row 0 would be. How many rows a block has depends on the number of threads, results don't.
 *
 * A product may also be a sum over the rows of a period (A^T B, where a block has some rows of A and of B).
 * Then blocks depend on sizes only, the blocks of a lane are added up in their order by the thread that makes
 * them, and the sums of further lanes, which have memory of their own, are added to those of the first one at
 * last. */
#include "kernels/product_split.h"
#include "runtime/graph.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
    const Rows *r;
    const Place *places;
    const Frame *f;
    int64_t *status;
    char *packed[MOST_ROW_STEPS];
    int64_t bytes[MOST_ROW_STEPS];      /* of one right operand packed */
    int tiles[MOST_ROW_STEPS];          /* whether it is packed for these */
    int64_t panels[MOST_ROW_STEPS + 1]; /* the first panel of each step, in the order of packing */
    char *partial[MOST_ROW_STEPS];      /* sums: what the lanes after the first one of each period make */
    /* Most rows of a block; where blocks begin, a multiple of this; blocks of a period, pieces of a period.
     */
    int64_t block, step, cuts, lanes, scratch;
} RowsCall;

#define FEWEST 24 /* rows of a block: fewer aren't worth more balance */
#define EVEN 8    /* blocks a thread from which it doesn't matter that one has one more */

static const GemmSizes *sizes_of(const RowsCall *c, const Step *s) {
    return (const GemmSizes *)(c->f + s->sizes);
}

/* Where element `at` of a batch of products has its operands. */
static void batch_at(const GemmSizes *z, int nbatch, int64_t at, int64_t offset[3]) {
    for (int i = 0; i < 3; i++) offset[i] = z->offset[i];
    for (int d = nbatch - 1; d >= 0; d--) {
        const int64_t *row = z->batch + 4 * d;
        for (int i = 0; i < 3; i++) offset[i] += at % row[0] * row[1 + i];
        at /= row[0];
    }
}

static void pack_range(void *context, int64_t begin, int64_t end) {
    RowsCall *c = context;
    for (int i = 0; i < c->r->nsteps; i++) {
        const Step *s = &c->r->steps[i];
        int64_t from = begin > c->panels[i] ? begin : c->panels[i],
                to = end < c->panels[i + 1] ? end : c->panels[i + 1];
        if (from >= to) continue;
        const GemmSizes *z = sizes_of(c, s);
        int64_t size, each, offset[3];
        if (c->tiles[i]) each = flb_split_packed(z->n, z->k, &size);
        else flb_packed_size(s->f64, z->n, z->k, &size, &each);
        for (from -= c->panels[i], to -= c->panels[i]; from < to;) {
            int64_t at = from / each, first = from % each,
                    last = to - at * each < each ? to - at * each : each;
            batch_at(z, s->nbatch, at, offset);
            const char *b = c->places[s->args[1]].ptr + offset[1];
            char *panels = c->packed[i] + at * c->bytes[i];
            if (c->tiles[i])
                flb_split_pack(s->tb == 'T', z->n, z->k, (const float *)b, z->ldb, panels, first, last);
            else flb_pack_panels(s->f64, s->tb == 'T', z->n, z->k, b, z->ldb, panels, first, last);
            from = at * each + last;
        }
    }
}

/* Scratch memory of a thread, kept by it. NULL: there is none. */
static char *scratch(size_t size) {
    static __thread char *kept;
    static __thread size_t room;
    if (size > room) {
        free(kept);
        room = 0;
        size = (size + 4095) & ~(size_t)4095;
        if ((kept = aligned_alloc(64, size))) room = size;
    }
    return kept;
}

/* Rows [from, from + m) of a period through all steps; `more`: sums have been begun. */
static void run_block(RowsCall *c, char *local, int64_t part, int64_t from, int64_t m, int64_t lane,
                      int more) {
    const Rows *r = c->r;
    char *pointers[MOST_ROW_ARGS + 2];
    int64_t r0 = part * r->period + from, r1 = r0 + m;
    for (int i = 0; i < r->nsteps; i++) {
        const Step *s = &r->steps[i];
        for (int k = 0; k < s->nargs; k++) {
            const Slot *slot = &r->slots[s->args[k]];
            /* Where row 0 of the buffer would be. */
            pointers[k] = slot->kind != SLOT_LOCAL
                ? c->places[s->args[k]].ptr
                : (char *)((uintptr_t)local + slot->index * c->block - r0 * slot->at);
        }
        if (s->kind == STEP_KERNEL) {
            pointers[s->nargs] = (char *)c->status;
            pointers[s->nargs + 1] = (char *)(c->f + s->params);
            s->fn(pointers, r0 * r->den[i] / r->num[i],
                  r1 == r->rows ? c->f[s->total] : r1 * r->den[i] / r->num[i]);
            continue;
        }
        const GemmSizes *z = sizes_of(c, s);
        int64_t item = s->f64 ? 8 : 4, row = s->nbatch ? from : r0, at = s->nbatch ? part : 0, offset[3];
        batch_at(z, s->nbatch, at, offset);
        if (!r->num[i]) {
            char *a = pointers[0] + offset[0] + row * (s->ta == 'N' ? 1 : z->lda) * item,
                 *b = pointers[1] + offset[1] + row * (s->tb == 'N' ? z->ldb : 1) * item;
            char *to = lane ? c->partial[i] + (part * (c->lanes - 1) + lane - 1) * z->m * z->n * item
                            : pointers[2] + offset[2];
            flb_blas_call(flb_chosen(s->gemm, s->f64, s->choice), s->f64, s->ta, s->tb, z->m, z->n, m, a,
                          z->lda, b, z->ldb, more, to, lane ? z->n : z->ldc);
            continue;
        }
        char *a = pointers[0] + offset[0] + row * (s->ta == 'N' ? z->lda : 1) * item,
             *to = pointers[2] + offset[2] + row * z->ldc * item;
        if (c->tiles[i]) {
            const char *b = pointers[1] + offset[1];
            if (flb_multiply_split(s->ta == 'T', s->tb == 'T', m, z->n, z->k, (const float *)a, z->lda,
                                   (const float *)b, z->ldb, c->packed[i] + at * c->bytes[i], (float *)to,
                                   z->ldc, z->m) < 0)
                c->status[0] = -1;
        } else if (c->packed[i]) {
            if (flb_multiply_packed(s->f64, s->ta == 'T', m, z->n, z->k, a, z->lda,
                                    c->packed[i] + at * c->bytes[i], to, z->ldc) < 0)
                c->status[0] = -1;
        } else
            flb_blas_call(flb_chosen(s->gemm, s->f64, s->choice), s->f64, s->ta, s->tb, m, z->n, z->k, a,
                          z->lda, pointers[1] + offset[1], z->ldb, 0, to, z->ldc);
    }
}

/* Bytes of what the further lanes of a sum make. */
static int64_t partial_bytes(const RowsCall *c, int i) {
    const GemmSizes *z = sizes_of(c, &c->r->steps[i]);
    return c->r->num[i]
        ? 0
        : c->r->rows / c->r->period * (c->lanes - 1) * z->m * z->n * (c->r->steps[i].f64 ? 8 : 4);
}

/* The first row of block i of a period, or where the last block ends: blocks are as equal as steps allow. */
static int64_t begin_of(const RowsCall *c, int64_t i) {
    return i < c->cuts ? (i * c->r->period / c->cuts + c->step / 2) / c->step * c->step : c->r->period;
}

/* Cuts a period into blocks: two a thread at least, where that leaves blocks worth packing for, and as many
 * for each thread. With sums, blocks depend on sizes only. */
static void cut(RowsCall *c, int64_t threads) {
    const Rows *r = c->r;
    int64_t want = (r->rows + 2 * threads - 1) / (2 * threads), parts = r->rows / r->period;
    want = want < 48 ? 48 : want;
    want = want < r->block && !r->lanes ? want : r->block;
    c->cuts = (r->period + want - 1) / want;
    if (!r->lanes && parts * c->cuts < EVEN * threads)
        for (int64_t more = c->cuts; more < 2 * c->cuts && r->period >= more * FEWEST; more++)
            if (parts * more % threads == 0) {
                c->cuts = more;
                break;
            }
    /* A block has a step at least. */
    if (c->cuts > r->period / c->step) c->cuts = r->period / c->step ? r->period / c->step : 1;
    c->block = 0;
    for (int64_t i = 0; i < c->cuts; i++) {
        int64_t rows = begin_of(c, i + 1) - begin_of(c, i);
        c->block = rows > c->block ? rows : c->block;
    }
}

static void rows_range(void *context, int64_t begin, int64_t end) {
    RowsCall *c = context;
    char *local = c->scratch ? scratch(c->scratch) : NULL;
    if (c->scratch && !local) {
        c->status[0] = -1;
        return;
    }
    for (int64_t piece = begin; piece < end; piece++) { /* the blocks of a lane */
        int64_t lane = piece % c->lanes, part = piece / c->lanes, first = lane * c->cuts / c->lanes;
        for (int64_t i = first; i < (lane + 1) * c->cuts / c->lanes; i++) {
            int64_t from = begin_of(c, i);
            run_block(c, local, part, from, begin_of(c, i + 1) - from, lane, i > first);
        }
    }
}

#define ADD(T)                                                                       \
    for (int64_t lane = 1; lane < c->lanes; lane++, from += z->m * z->n * sizeof(T)) \
        for (int64_t i = 0; i < z->m; i++)                                           \
            for (int64_t j = 0; j < z->n; j++) ((T *)to)[i * z->ldc + j] += ((const T *)from)[i * z->n + j];

/* Sums of further lanes to those of the first one. Pieces: periods. */
static void add_range(void *context, int64_t begin, int64_t end) {
    RowsCall *c = context;
    for (int64_t part = begin; part < end; part++)
        for (int k = 0; k < c->r->nsteps; k++) {
            const Step *s = &c->r->steps[k];
            if (c->r->num[k]) continue;
            const GemmSizes *z = sizes_of(c, s);
            int64_t offset[3];
            batch_at(z, s->nbatch, part, offset);
            char *to = c->places[s->args[2]].ptr + offset[2];
            const char *from = c->partial[k] + part * (c->lanes - 1) * z->m * z->n * (s->f64 ? 8 : 4);
            if (s->f64) {
                ADD(double)
            } else {
                ADD(float)
            }
        }
}

void flb_run_rows(const Rows *r, const Place *places, const Frame *f, int64_t *status) {
    RowsCall c = {.r = r, .places = places, .f = f, .status = status, .scratch = 0};
    int64_t count[MOST_ROW_STEPS], whole = 0, threads = flb_get_num_threads();
    for (int i = 0; i < r->nsteps; i++) {
        const Step *s = &r->steps[i];
        int64_t n = 0;
        if (s->kind == STEP_GEMM && r->num[i] && s->choice != PRODUCT_PANELS &&
            flb_is_own(flb_chosen(s->gemm, s->f64, s->choice))) {
            const GemmSizes *z = sizes_of(&c, s);
            c.tiles[i] = !s->f64 && flb_by_tiles(s->tb == 'T', z->m, z->n, z->k);
            if (c.tiles[i]) n = flb_split_packed(z->n, z->k, &c.bytes[i]);
            else flb_packed_size(s->f64, z->n, z->k, &c.bytes[i], &n);
        }
        c.bytes[i] = (c.bytes[i] + 63) & ~(int64_t)63;
        count[i] = s->kind == STEP_GEMM && s->nbatch ? r->rows / r->period : 1;
        whole += count[i] * c.bytes[i];
        c.panels[i + 1] = c.panels[i] + count[i] * n;
    }
    char *memory = whole ? flb_api->scratch(whole + 64) : NULL;
    if (whole && !memory) {
        status[0] = -1;
        return;
    }
    char *at = (char *)(((uintptr_t)memory + 63) & ~(uintptr_t)63);
    for (int i = 0; i < r->nsteps; i++)
        if (c.bytes[i]) c.packed[i] = at, at += count[i] * c.bytes[i];
        else if (r->steps[i].kind == STEP_GEMM && r->steps[i].choice == PRODUCT_PANELS)
            c.packed[i] = places[r->steps[i].args[1]].ptr + sizes_of(&c, &r->steps[i])->offset[1];
    int64_t npanels = c.panels[r->nsteps];
    if (npanels) flb_parallel(pack_range, &c, npanels, 1 + npanels * 50000 / whole);
    c.step = r->unit;
    for (int i = 0; i < r->nsteps; i++) /* tiles of 16 rows, others of 12 */
        if (c.tiles[i] && r->unit % 16 && (r->period == r->rows || r->period % (4 * r->unit) == 0))
            c.step = 4 * r->unit;
    cut(&c, threads);
    for (int i = 0; i < r->nlocals; i++) c.scratch += r->local[i] * c.block;
    c.scratch = (c.scratch + 63) & ~(int64_t)63;
    int64_t parts = r->rows / r->period, more = 0;
    c.lanes = !r->lanes || r->lanes > c.cuts ? c.cuts : r->lanes;
    char *sums = NULL;
    for (int i = 0; i < r->nsteps; i++)
        if (r->steps[i].kind == STEP_GEMM) more += partial_bytes(&c, i);
    if (more && !(sums = flb_api->scratch(more))) {
        status[0] = -1;
        flb_api->free(memory);
        return;
    }
    at = sums;
    for (int i = 0; i < r->nsteps && more; i++)
        if (!r->num[i]) c.partial[i] = at, at += partial_bytes(&c, i);
    flb_parallel(rows_range, &c, parts * c.lanes, 1);
    if (more) flb_parallel(add_range, &c, parts, 1);
    flb_api->free(sums);
    flb_api->free(memory);
}
