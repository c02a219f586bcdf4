/* Right operands of products that are packed once for many calls (weights of a frozen graph), as templates. Which are, and how, follows from sizes and CPU, so what is
 * packed belongs to a process and is never written to a file. */
#include "graph.h"

/* Leading dimension of a matrix (k, n) whose columns (`turned`) or rows are contiguous; 0: neither is. */
static int64_t leading(const View *v, int64_t item, int turned) {
    int64_t across = v->strides[turned ? 0 : 1], along = v->strides[turned ? 1 : 0], wide = v->shape[turned ? 0 : 1], high = v->shape[turned ? 1 : 0];
    if ((wide > 1 && across != item) || (high > 1 && (along % item || along < wide * item))) return 0;
    return high > 1 ? along / item : wide;
}

typedef struct {
    int f64, turned, way;
    int64_t n, k, ld;
    const View *v;
} Packing;

static void pack(void *context, int64_t begin, int64_t end) {
    const Packing *p = context;
    (p->way == PRODUCT_FEW ? flb_pack_few : flb_pack_panels)(p->f64, p->turned, p->n, p->k, p->v[0].ptr, p->ld, p->v[1].ptr, begin, end);
}

static int is_way(int64_t way) { return way == PRODUCT_PANELS || (way == PRODUCT_FEW && flb_cpu_level() == 2); }

/* Views: B (k, n), what it is packed to. Numbers: whether columns of B are contiguous, whether it is float64, the way. -1: that is another size, or other strides. */
int flb_prepack_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    Packing p = {numbers[1] != 0, numbers[0] != 0, (int)numbers[2], v[0].shape[1], v[0].shape[0], leading(&v[0], numbers[1] ? 8 : 4, numbers[0] != 0), v};
    int64_t size, npanels = flb_packed_panels(p.f64, p.way, p.n, p.k, &size);
    if (!p.ld || !is_way(numbers[2]) || v[1].shape[0] != size) return -1;
    flb_parallel(pack, &p, npanels, 1 + 50000 / (32 * p.k));
    return 0;
}

/* Views: A (m, k) in C order, packed B, C (m, n) in C order. Numbers as above. */
int flb_product_packed_step(const View *v, int n, const int64_t *numbers, int64_t *status) {
    int64_t m = v[0].shape[0], k = v[0].shape[1], columns = v[2].shape[1], size;
    int f64 = numbers[1] != 0;
    flb_packed_panels(f64, (int)numbers[2], columns, k, &size);
    if (!is_way(numbers[2]) || v[1].shape[0] != size) return -1;
    GemmSizes sizes = {.m = m, .n = columns, .k = k, .lda = k, .ldb = 0, .ldc = columns};
    flb_gemm(flb_own_gemm(f64), f64, 'N', numbers[0] ? 'T' : 'N', &sizes, 0, (int)numbers[2], (char *)v[0].ptr, (char *)v[1].ptr, (char *)v[2].ptr);
    return 0;
}

/* packed_elements(type, turned, m, n, k) -> (elements, way) of the right operand (k, n) of products with m rows, packed; (0, 0): it isn't. type: 0 float32, 1 float64,
 * 2 bfloat16, which has one way; turned: columns are contiguous. */
PyObject *flb_packed_elements(PyObject *self, PyObject *args) {
    int type, turned;
    long long m, n, k;
    int64_t size = 0;
    if (!PyArg_ParseTuple(args, "ipLLL", &type, &turned, &m, &n, &k)) return NULL;
    if (type < 0 || type > 2) return PyErr_Format(PyExc_ValueError, "packed_elements: there is no type %d", type), NULL;
    if (type == 2) return size = flb_bf16_packed_size(turned, m, n, k), Py_BuildValue("Li", (long long)size, size ? PRODUCT_PANELS : 0);
    int way = flb_packed_way(type, turned, m, n, k);
    if (way) flb_packed_panels(type, way, n, k, &size);
    return Py_BuildValue("Li", (long long)size, way);
}
