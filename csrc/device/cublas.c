/* Products through cuBLASLt, whose functions are called at addresses that are handed over
 * (base/accelerator.py asks for them). Written from the published interface; it has never run on a device.
 *
 * cuBLASLt knows matrices in columns, and a matrix in rows is the transposed one in columns: it is asked for
 * the transposed product, with the operands exchanged. Which algorithm a product has is asked once for its
 * sizes and for how its operands are aligned, and kept. */
#include <pthread.h>
#include <string.h>

#include "device/driver.h"

typedef struct {
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} Heuristic;

/* Numbers of the interface. */
enum {
    R_32F = 0,
    R_64F = 1,
    R_16F = 2,
    R_16BF = 14,
    COMPUTE_32F = 68,
    COMPUTE_64F = 70,
    COMPUTE_32F_FAST_TF32 = 77,
    TRANSPOSED = 1
};
enum {
    TRANSA = 3,
    TRANSB = 4,
    BATCH_COUNT = 5,
    BATCH_DISTANCE = 6,
    MOST_WORKSPACE = 1,
    ALIGNED_A = 5,
    NOT_INITIALIZED = 1,
    ALLOC_FAILED = 3,
    NOT_SUPPORTED = 15
};

#define FUNCTIONS(F)                                                                                         \
    F(cublasLtCreate, (void **))                                                                             \
    F(cublasLtMatmulDescCreate, (void **, int, int))                                                         \
    F(cublasLtMatmulDescSetAttribute, (void *, int, const void *, size_t))                                   \
    F(cublasLtMatmulDescDestroy, (void *))                                                                   \
    F(cublasLtMatrixLayoutCreate, (void **, int, uint64_t, uint64_t, int64_t))                               \
    F(cublasLtMatrixLayoutSetAttribute, (void *, int, const void *, size_t))                                 \
    F(cublasLtMatrixLayoutDestroy, (void *))                                                                 \
    F(cublasLtMatmulPreferenceCreate, (void **))                                                             \
    F(cublasLtMatmulPreferenceSetAttribute, (void *, int, const void *, size_t))                             \
    F(cublasLtMatmulPreferenceDestroy, (void *))                                                             \
    F(cublasLtMatmulAlgoGetHeuristic,                                                                        \
      (void *, void *, void *, void *, void *, void *, void *, int, Heuristic *, int *))                     \
    F(cublasLtMatmul,                                                                                        \
      (void *, void *, const void *, const void *, void *, const void *, void *, const void *, const void *, \
       void *, void *, void *, const uint64_t *, void *, size_t, FlbStream *))

#define POINTER(NAME, PARAMETERS) int(*NAME) PARAMETERS;
static union {
    struct {
        FUNCTIONS(POINTER)
    };
    uintptr_t addresses[32];
} lt;
#define NAMED(NAME, PARAMETERS) #NAME,
const char *const flb_cublas_functions[] = {FUNCTIONS(NAMED) NULL};

static int ready;
int flb_cublas_ready(void) { return ready; }
int flb_cublas_begin(const uintptr_t *addresses, int n) {
    int wanted = 0;
    while (flb_cublas_functions[wanted]) wanted++;
    if (n != wanted) return -1;
    memcpy(lt.addresses, addresses, (size_t)n * sizeof *addresses);
    ready = 1;
    return 0;
}

/* ---- what is known of a product -------------------------------------------------------------------------
 */

typedef struct {
    FlbProduct product;
    int32_t device, aligned[3];
} Question;
typedef struct {
    Question question;
    void *operation, *left, *right, *out; /* left: the second operand */
    Heuristic found;
} Known;

enum { KEPT = 1024 };
static Known known[KEPT]; /* by a hash of the question; one that is asked first keeps its place, others are
                             asked anew */
static uint8_t taken[KEPT];
static void *handles[FLB_MOST_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t hash(const Question *q) {
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < sizeof *q; i++) h = (h ^ ((const unsigned char *)q)[i]) * 1099511628211u;
    return h ^ h >> 29;
}
static int32_t alignment(uint64_t address) {
    uint64_t low = address & -address;
    return !low || low > 256 ? 256 : (int32_t)low;
}
#define TRY(CALL)                    \
    do {                             \
        int status_ = (CALL);        \
        if (status_) return status_; \
    } while (0)
static void forget(Known *k) {
    if (k->operation) lt.cublasLtMatmulDescDestroy(k->operation);
    void *layouts[] = {k->left, k->right, k->out};
    for (int i = 0; i < 3; i++)
        if (layouts[i]) lt.cublasLtMatrixLayoutDestroy(layouts[i]);
}
/* A matrix of `rows` in rows: as many columns. */
static int describe(void **out, int type, int64_t rows, int64_t columns, int64_t leading, const FlbProduct *p,
                    int64_t distance) {
    TRY(lt.cublasLtMatrixLayoutCreate(out, type, (uint64_t)columns, (uint64_t)rows, leading));
    int32_t batch = (int32_t)p->batch;
    if (batch == 1) return 0;
    TRY(lt.cublasLtMatrixLayoutSetAttribute(*out, BATCH_COUNT, &batch, sizeof batch));
    return lt.cublasLtMatrixLayoutSetAttribute(*out, BATCH_DISTANCE, &distance, sizeof distance);
}
static int prepare(Known *k, size_t room) {
    const FlbProduct *p = &k->question.product;
    const int types[] = {[ELEMENT_F16] = R_16F,
                         [ELEMENT_BF16] = R_16BF,
                         [ELEMENT_F32] = R_32F,
                         [ELEMENT_F64] = R_64F},
              type = types[p->type], transposed = TRANSPOSED;
    int compute = p->type == ELEMENT_F64 ? COMPUTE_64F : p->fast ? COMPUTE_32F_FAST_TF32 : COMPUTE_32F, n = 0;
    TRY(lt.cublasLtMatmulDescCreate(&k->operation, compute, p->type == ELEMENT_F64 ? R_64F : R_32F));
    if (p->tb) TRY(lt.cublasLtMatmulDescSetAttribute(k->operation, TRANSA, &transposed, sizeof transposed));
    if (p->ta) TRY(lt.cublasLtMatmulDescSetAttribute(k->operation, TRANSB, &transposed, sizeof transposed));
    TRY(describe(&k->left, type, p->tb ? p->n : p->k, p->tb ? p->k : p->n, p->ldb, p, p->b_distance));
    TRY(describe(&k->right, type, p->ta ? p->k : p->m, p->ta ? p->m : p->k, p->lda, p, p->a_distance));
    TRY(describe(&k->out, type, p->m, p->n, p->ldc, p, p->c_distance));
    void *wishes;
    TRY(lt.cublasLtMatmulPreferenceCreate(&wishes));
    const int order[] = {1, 0, 2, 2}; /* which operand cuBLASLt's A, B, C and D are */
    int status = lt.cublasLtMatmulPreferenceSetAttribute(wishes, MOST_WORKSPACE, &room, sizeof room);
    for (int i = 0; !status && i < 4; i++)
        status = lt.cublasLtMatmulPreferenceSetAttribute(wishes, ALIGNED_A + i,
                                                         &k->question.aligned[order[i]], sizeof(int32_t));
    if (!status)
        status = lt.cublasLtMatmulAlgoGetHeuristic(handles[k->question.device], k->operation, k->left,
                                                   k->right, k->out, k->out, wishes, 1, &k->found, &n);
    lt.cublasLtMatmulPreferenceDestroy(wishes);
    return status ? status : n && !k->found.state ? 0 : NOT_SUPPORTED;
}
/* With the lock. `*keep`: whether the table has it. */
static int find(const Question *q, Known *out, int *keep) {
    if (!handles[q->device]) TRY(lt.cublasLtCreate(&handles[q->device]));
    uint64_t at = hash(q) % KEPT;
    *keep = taken[at] && !memcmp(&known[at].question, q, sizeof *q);
    if (*keep) return *out = known[at], 0;
    memset(out, 0, sizeof *out);
    out->question = *q;
    int status = prepare(out, 32u << 20);
    if (status) return forget(out), status;
    if (!taken[at]) known[at] = *out, *keep = taken[at] = 1;
    return 0;
}

int flb_cublas(int device, const FlbProduct *p, const uint64_t operands[3], FlbStream *stream,
               const FlbWorkspaces *workspaces) {
    if (!ready) return NOT_INITIALIZED;
    Question q;
    Known k;
    int keep;
    memset(&q, 0, sizeof q);
    q.product = *p, q.device = device;
    for (int i = 0; i < 3; i++) q.aligned[i] = alignment(operands[i]);
    pthread_mutex_lock(&lock);
    int status = find(&q, &k, &keep);
    pthread_mutex_unlock(&lock);
    if (status) return status;
    uint64_t workspace = 0;
    if (k.found.workspace && workspaces->take(device, k.found.workspace, stream, &workspace))
        status = ALLOC_FAILED;
    const float one[] = {1, 0};
    const double wide[] = {1, 0};
    const void *scales[] = {p->type == ELEMENT_F64 ? (const void *)wide : one,
                            p->type == ELEMENT_F64 ? (const void *)(wide + 1) : one + 1};
    void *a = (void *)(uintptr_t)operands[0], *b = (void *)(uintptr_t)operands[1],
         *c = (void *)(uintptr_t)operands[2];
    if (!status)
        status = lt.cublasLtMatmul(handles[device], k.operation, scales[0], b, k.left, a, k.right, scales[1],
                                   c, k.out, c, k.out, k.found.algorithm, (void *)(uintptr_t)workspace,
                                   k.found.workspace, stream);
    if (workspace) workspaces->give(device, workspace, stream);
    if (!keep) forget(&k);
    return status;
}
