/* Right operands of products that are packed once for many calls (weights of a frozen graph), as kernels.
 * Which are, and how, follows from sizes and CPU, so what is packed belongs to a process and is never written
 * to a file. */
#include "runtime/graph.h"

/* Leading dimension of a matrix (k, n) whose columns (`transposed`) or rows are contiguous; 0: neither is. */
static int64_t leading(const View *v, int64_t item, int transposed) {
    int64_t across = v->strides[transposed ? 0 : 1], along = v->strides[transposed ? 1 : 0],
            wide = v->shape[transposed ? 0 : 1], high = v->shape[transposed ? 1 : 0];
    if ((wide > 1 && across != item) || (high > 1 && (along % item || along < wide * item))) return 0;
    return high > 1 ? along / item : wide;
}

typedef struct {
    int f64, transposed, way;
    int64_t n, k, ld;
    const flb_prepack_views *v;
} Packing;

static void pack(void *context, int64_t begin, int64_t end) {
    const Packing *p = context;
    (p->way == PRODUCT_FEW ? flb_pack_few : flb_pack_panels)(p->f64, p->transposed, p->n, p->k, p->v->b.ptr,
                                                             p->ld, p->v->packed.ptr, begin, end);
}

static int is_way(int64_t way) {
    return way == PRODUCT_PANELS || (way == PRODUCT_FEW && flb_cpu_level() == 2);
}

FLB_KERNEL(prepack) {
    Packing p = {n->f64 != 0,
                 n->transposed != 0,
                 (int)n->way,
                 v->b.shape[1],
                 v->b.shape[0],
                 leading(&v->b, n->f64 ? 8 : 4, n->transposed != 0),
                 v};
    int64_t size, npanels = flb_packed_panels(p.f64, p.way, p.n, p.k, &size);
    if (!p.ld || !is_way(n->way) || v->packed.shape[0] != size) return -1;
    flb_parallel(pack, &p, npanels, 1 + 50000 / (32 * p.k));
    return 0;
}

FLB_KERNEL(product_packed) {
    const View *a = &v->a, *c = &v->made;
    int64_t m = a->shape[0], k = a->shape[1], columns = c->shape[1], size;
    int f64 = n->f64 != 0;
    flb_packed_panels(f64, (int)n->way, columns, k, &size);
    if (!is_way(n->way) || v->packed.shape[0] != size) return -1;
    GemmSizes sizes = {.m = m, .n = columns, .k = k, .lda = k, .ldb = 0, .ldc = columns};
    flb_gemm(flb_own_gemm(f64), f64, 'N', n->transposed ? 'T' : 'N', &sizes, 0, (int)n->way, a->ptr,
             v->packed.ptr, c->ptr);
    return 0;
}

/* packed_elements(type, transposed, m, n, k) -> (elements, way) of the right operand (k, n) of products with
 * m rows, packed; (0, 0): it isn't. type: 0 float32, 1 float64, 2 bfloat16, which has one way; transposed:
 * columns are contiguous. */
PyObject *flb_packed_elements(PyObject *self, PyObject *args) {
    int type, transposed;
    long long m, n, k;
    int64_t size = 0;
    if (!PyArg_ParseTuple(args, "ipLLL", &type, &transposed, &m, &n, &k)) return NULL;
    if (type < 0 || type > 2)
        return PyErr_Format(PyExc_ValueError, "packed_elements: there is no type %d", type), NULL;
    if (type == 2)
        return size = flb_bf16_packed_size(transposed, m, n, k),
               Py_BuildValue("Li", (long long)size, size ? PRODUCT_PANELS : 0);
    int way = flb_packed_way(type, transposed, m, n, k);
    if (way) flb_packed_panels(type, way, n, k, &size);
    return Py_BuildValue("Li", (long long)size, way);
}
