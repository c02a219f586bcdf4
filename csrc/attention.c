/* softmax(scale Q K^T + mask) V and its derivative, without the matrix of scores in memory (Dao et al. 2022, arXiv:2205.14135).
 *
 * Forward: a block of rows of one head against block after block of keys; scores live in the second-level cache for the time of a block, sums and
 * maxima of the rows are carried on. Kept for the backward: the output and each row's logarithm of the sum of exponentials, from which
 * the weights are made again. A causal mask skips the keys that no row of a block sees. Products are those of product.c, on one thread
 * each; heads and blocks of rows (backward: heads of keys) go over the pool. Cuts depend on sizes only.
 *
 * Shapes: queries (B, H, T, E), keys and values (B, H / group, S, E), mask any strides over (B, H, T, S). */
#include "graph.h"
#include <math.h>
#include <string.h>

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("avx512f", "avx2,fma", "default"), optimize("O3", "no-math-errno", "associative-math", "no-signed-zeros", "no-trapping-math")))
#else
#define CLONES
#endif

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__)
#define TURNED __attribute__((target_clones("avx512f", "avx2,fma", "default"), optimize("O3", "no-math-errno", "fp-contract=fast")))
#else
#define TURNED
#endif

#define BLOCK (20 * TALL)       /* keys of a block of turned scores */
#define FEW 8                   /* rows up to which products of matrices aren't worth their packing */

typedef struct {
    char *data;
    int64_t stride[4];          /* bytes */
} Operand;

typedef struct {
    int64_t batch, heads, group, queries, keys, width;
    int64_t high, wide, cuts;   /* rows and keys of a block; blocks of rows of a head */
    int causal, f64, backward;
    double scale;
    GemmFn gemm;
    Operand q, k, v, o, lse, g, gq, gk, gv;
    const char *mask;
    int64_t mask_stride[4];
    char *packed;               /* keys and values of all heads, for turned scores */
    int *failed;
} Attention;

static void multiply(const Attention *a, char ta, char tb, int64_t m, int64_t n, int64_t k, const void *x, int64_t ldx, const void *y, int64_t ldy,
                     int accumulate, void *z, int64_t ldz) {
    static const float one_f = 1, zero_f = 0;
    static const double one = 1, zero = 0;
    const void *alpha = a->f64 ? (const void *)&one : &one_f, *beta = accumulate ? alpha : a->f64 ? (const void *)&zero : &zero_f;
    a->gemm(&tb, &ta, &n, &m, &k, alpha, y, &ldy, x, &ldx, beta, z, &ldz);
}

/* exp(x) within 2 ulp, 0 below -87.3: straight-line code for vectors. nan stays. */
static inline __attribute__((always_inline)) float exp_f32(float x) {
    float y = x < -87.3f ? -87.3f : x, n = __builtin_rintf(y * 1.44269504f);
    float r = y - n * 0.693145752f - n * 1.42860677e-6f;
    float p = 1.f + r * (1.f + r * (.5f + r * (.166666672f + r * (.0416664667f + r * (.00833345205f + r * .00138891447f)))));
    union { int32_t i; float f; } power = {.i = ((int32_t)n + 127) << 23};
    p *= power.f;
    return x < -87.3f ? 0.f : p;
}

/* The same for a vector of numbers that aren't above 0: the rounded power of two stands in the low bits of a sum with 1.5 * 2^23. */
#define EXP_LANES(x)                                                                                                                              \
    {                                                                                                                                             \
        B little = x < -87.3f;                                                                                                                    \
        V y = EITHER(little, (V){0} - 87.3f, x), sum_ = y * 1.44269504f + 12582912.f, n_ = sum_ - 12582912.f;                                       \
        V r_ = y - n_ * 0.693145752f - n_ * 1.42860677e-6f;                                                                                        \
        V p_ = 1.f + r_ * (1.f + r_ * (.5f + r_ * (.166666672f + r_ * (.0416666667f + r_ * (.00833345205f + r_ * .00138891447f)))));               \
        p_ *= (V)(((B)sum_ - (0x4b400000 - 127)) << 23);                                                                                          \
        x = (V)((B)p_ & ~little);                                                                                                                 \
    }
#define EACH_LANE(x) \
    for (int i_ = 0; i_ < LANES; i_++) x[i_] = exp(x[i_]);

#define T float
#define TI int32_t
#define EXPV EXP_LANES
#define NAME(x) x##_f32
#define EXP(x) exp_f32(x)
#define LOG(x) logf(x)
#include "attention_kernels.h"
#undef T
#undef TI
#undef EXPV
#undef NAME
#undef EXP
#undef LOG
#define T double
#define TI int64_t
#define EXPV EACH_LANE
#define NAME(x) x##_f64
#define EXP(x) exp(x)
#define LOG(x) log(x)
#include "attention_kernels.h"

static void attention_range(void *context, int64_t begin, int64_t end) {
    const Attention *a = context;
    if (a->packed) (a->f64 ? forward_turned_f64 : forward_turned_f32)(a, begin, end);
    else if (a->backward) (a->f64 ? backward_f64 : backward_f32)(a, begin, end);
    else (a->f64 ? forward_f64 : forward_f32)(a, begin, end);
}

static void pack_range(void *context, int64_t begin, int64_t end) {
    const Attention *a = context;
    (a->f64 ? pack_heads_f64 : pack_heads_f32)(a, begin, end);
}

static void run(Attention *a) {
    int turned = !a->backward && !a->mask && a->queries > FEW && flb_is_own(a->gemm);
    a->high = a->causal && a->queries <= 512 ? 32 : 64;
    a->wide = a->keys < 512 ? a->keys : 512;
    if (turned) {
        int64_t held = a->batch * (a->heads / a->group), keys = (a->keys + TALL - 1) / TALL * TALL, width = (a->width + TALL - 1) / TALL * TALL;
        if (a->queries <= 32) a->high = 32;
        a->wide = a->keys < BLOCK ? a->keys : BLOCK;
        if (!(a->packed = flb_api->scratch(held * (keys * a->width + width * a->keys) * (a->f64 ? 8 : 4)))) {
            *a->failed = 1;
            return;
        }
        flb_parallel(pack_range, a, 2 * held, 1 + 100000 / (a->keys * a->width));
    }
    a->cuts = (a->queries + a->high - 1) / a->high;
    int64_t total = a->backward ? a->batch * (a->heads / a->group) : a->batch * a->heads * a->cuts;
    double flops = (a->backward ? 10. : 4.) * a->batch * a->heads * a->queries * a->keys * a->width;
    flb_parallel(attention_range, a, total, 1 + (int64_t)(5e5 * (double)total / flops));
    flb_api->free(a->packed);
}

/* Views: q, k, v, perhaps a mask, then out and lse; or the cotangent, out, lse and the cotangents of q, k and v.
 * Numbers: causal, the bits of the scale, whether there is a mask, whether float64. */
int flb_attention_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    int masked = numbers[2] != 0, failed = 0, item = numbers[3] ? 8 : 4;
    const int64_t *s = v[0].shape;
    Attention a = {.batch = s[0], .heads = s[1], .group = s[1] / v[1].shape[1], .queries = s[2], .keys = v[1].shape[2], .width = s[3], .causal = numbers[0] != 0,
                   .f64 = numbers[3] != 0, .backward = n - masked > 5, .gemm = flb_blas_gemm(numbers[3] != 0), .failed = &failed};
    if (!a.gemm) return -1; /* lowering asks for a library first */
    memcpy(&a.scale, &numbers[1], sizeof a.scale);
    Operand *forward[] = {&a.q, &a.k, &a.v, &a.o, &a.lse}, *backward[] = {&a.q, &a.k, &a.v, &a.g, &a.o, &a.lse, &a.gq, &a.gk, &a.gv};
    Operand **to = a.backward ? backward : forward;
    for (int i = 0; i < n - masked; i++) {
        const View *x = &v[i < 3 ? i : i + masked];
        to[i]->data = x->ptr;
        for (int d = 0; d < x->ndim; d++) to[i]->stride[d] = x->strides[d];
        if (x->ndim == 4 && x->shape[2] == 1) to[i]->stride[2] = x->shape[3] * item;
    }
    if (masked) {
        a.mask = v[3].ptr;
        for (int d = 0; d < 4; d++) a.mask_stride[d] = v[3].strides[d];
    }
    run(&a);
    return failed ? -1 : 0;
}

/* A (B, H, N, E) operand whose rows a product can read. */
static int operand(Operand *o, PyObject *x, int type, int nd, const npy_intp *shape, const char *name) {
    PyArrayObject *a = (PyArrayObject *)x;
    npy_intp item = type == NPY_DOUBLE ? 8 : 4;
    int ok = PyArray_Check(x) && PyArray_TYPE(a) == type && PyArray_NDIM(a) == nd && PyArray_ISALIGNED(a) && !PyArray_ISBYTESWAPPED(a);
    for (int d = 0; ok && d < nd; d++) ok = PyArray_DIM(a, d) == shape[d] && PyArray_STRIDE(a, d) % item == 0;
    if (ok && nd == 4) ok = (PyArray_STRIDE(a, 3) == item || shape[3] == 1) && (PyArray_STRIDE(a, 2) >= shape[3] * item || shape[2] == 1);
    if (!ok) return PyErr_Format(PyExc_ValueError, "attention: %s has not the shape, dtype or strides that are expected", name), -1;
    o->data = PyArray_DATA(a);
    for (int d = 0; d < nd; d++) o->stride[d] = PyArray_STRIDE(a, d);
    if (nd == 4 && shape[2] == 1) o->stride[2] = shape[3] * item;
    return 0;
}

/* A fresh (B, H, N, E) array that lies as (B, N, H, E), or (B, H, N) as (B, N, H). */
static PyObject *fresh(Operand *o, int type, int nd, const npy_intp *shape) {
    npy_intp dims[4] = {shape[0], shape[2], shape[1], shape[3]};
    PyArray_Dims order = {(npy_intp[]){0, 2, 1, 3}, nd};
    PyObject *a = PyArray_SimpleNew(nd, dims, type), *b = a ? PyArray_Transpose((PyArrayObject *)a, &order) : NULL;
    Py_XDECREF(a);
    if (b) {
        o->data = PyArray_DATA((PyArrayObject *)b);
        for (int d = 0; d < nd; d++) o->stride[d] = PyArray_STRIDE((PyArrayObject *)b, d);
    }
    return b;
}

/* attention(q, k, v, mask, causal, scale[, g, out, lse]) -> (out, lse), or the cotangents of (q, k, v) where g, the cotangent of out, is given.
 * None without a BLAS library. float32 or float64; rows in C order; H a multiple of the heads of keys; mask None or (B, H, T, S). */
PyObject *flb_attention(PyObject *self, PyObject *args) {
    PyObject *q, *k, *v, *mask, *g = NULL, *out = NULL, *lse = NULL, *made[3] = {NULL, NULL, NULL};
    int causal, failed = 0;
    double scale;
    if (!PyArg_ParseTuple(args, "O!O!O!Opd|O!O!O!", &PyArray_Type, &q, &PyArray_Type, &k, &PyArray_Type, &v, &mask, &causal, &scale, &PyArray_Type, &g,
                          &PyArray_Type, &out, &PyArray_Type, &lse)) return NULL;
    PyArrayObject *qa = (PyArrayObject *)q, *ka = (PyArrayObject *)k;
    int type = PyArray_TYPE(qa);
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || PyArray_NDIM(qa) != 4 || PyArray_NDIM(ka) != 4 || (g && !lse))
        return PyErr_SetString(PyExc_ValueError, "attention: float32 or float64 arrays of 4 dimensions are expected"), NULL;
    npy_intp *s = PyArray_DIMS(qa), *t = PyArray_DIMS(ka), qs[4] = {s[0], s[1], s[2], s[3]}, ks[4] = {s[0], t[1], t[2], s[3]};
    if (!PyArray_SIZE(qa) || !PyArray_SIZE(ka) || qs[1] % ks[1]) return PyErr_SetString(PyExc_ValueError, "attention: empty, or heads that don't divide"), NULL;
    Attention a = {.batch = qs[0], .heads = qs[1], .group = qs[1] / ks[1], .queries = qs[2], .keys = ks[2], .width = qs[3], .causal = causal,
                   .f64 = type == NPY_DOUBLE, .backward = g != NULL, .scale = scale, .gemm = flb_blas_gemm(type == NPY_DOUBLE), .failed = &failed};
    if (!a.gemm) Py_RETURN_NONE;
    if (operand(&a.q, q, type, 4, qs, "query") < 0 || operand(&a.k, k, type, 4, ks, "key") < 0 || operand(&a.v, v, type, 4, ks, "value") < 0) return NULL;
    if (mask != Py_None) {
        npy_intp ms[4] = {qs[0], qs[1], qs[2], ks[2]};
        PyArrayObject *x = (PyArrayObject *)mask;
        int ok = PyArray_Check(mask) && PyArray_TYPE(x) == type && PyArray_NDIM(x) == 4 && PyArray_ISALIGNED(x) && !PyArray_ISBYTESWAPPED(x);
        for (int d = 0; ok && d < 4; d++) ok = PyArray_DIM(x, d) == ms[d] && PyArray_STRIDE(x, d) % (type == NPY_DOUBLE ? 8 : 4) == 0;
        if (!ok) return PyErr_SetString(PyExc_ValueError, "attention: the mask has not the shape or dtype that is expected"), NULL;
        a.mask = PyArray_DATA(x);
        for (int d = 0; d < 4; d++) a.mask_stride[d] = PyArray_STRIDE(x, d);
    }
    if (g && (operand(&a.g, g, type, 4, qs, "the cotangent") < 0 || operand(&a.o, out, type, 4, qs, "the output") < 0 ||
              operand(&a.lse, lse, type, 3, qs, "the logarithmic sums") < 0)) return NULL;
    if (g) made[0] = fresh(&a.gq, type, 4, qs), made[1] = fresh(&a.gk, type, 4, ks), made[2] = fresh(&a.gv, type, 4, ks);
    else made[0] = fresh(&a.o, type, 4, qs), made[1] = fresh(&a.lse, type, 3, qs);
    if (!made[0] || !made[1] || (g && !made[2])) goto fail;
    Py_BEGIN_ALLOW_THREADS
    run(&a);
    Py_END_ALLOW_THREADS
    if (failed) {
        PyErr_NoMemory();
        goto fail;
    }
    return g ? Py_BuildValue("NNN", made[0], made[1], made[2]) : Py_BuildValue("NN", made[0], made[1]);
fail:
    for (int i = 0; i < 3; i++) Py_XDECREF(made[i]);
    return NULL;
}
