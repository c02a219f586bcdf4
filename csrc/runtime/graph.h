/* The compiled graph's tables, shared by graph.c (building), launch.c (running) and gemm.c (matrix products).
 */
#ifndef FLAMBEAU_GRAPH_H
#define FLAMBEAU_GRAPH_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#define PY_ARRAY_UNIQUE_SYMBOL flambeau_runtime_ARRAY_API
#ifndef FLB_IMPORT_ARRAY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
#include "core/flambeau.h"
#include "runtime/cpu_level.h"
#include "runtime/kernels.h"
#include "runtime/runtime.h"

#define ENUM(name) enum {
#define MEMBER(e, name) e##_##name,
#define END_ENUM(name) \
    name##_COUNT       \
    }                  \
    ;
#include "runtime/graph.def"

#define MOST_ROW_STEPS 16 /* of a launch over rows, and the buffers that one of them takes */
#define MOST_ROW_ARGS 60
#define MOST_TOGETHER 16 /* steps side by side, and the pointers that one of them is handed */
#define MOST_POINTERS 64

/* All integers of a graph live in its frame, an array of int64; the tables hold places in it. A graph of
 * constant sizes has one frame, a graph of symbolic sizes makes a copy at each call, reads its symbols from
 * the inputs and computes the rest by its code. */
typedef int64_t Frame;

typedef struct {
    int ndim, at; /* F[at ..]: shape; F[at + ndim ..]: strides in bytes */
    PyArray_Descr *descr;
} Layout;

typedef struct {
    uint8_t op;
    int dst, a, b; /* F[dst] = F[a] op F[b] */
} Instruction;

typedef struct {
    int source, what, index; /* of input `source` (stage 0) or result `source` of the stage's call: size or
                                stride `index`, or its value */
    int dst;
    int64_t lo, hi, divisor; /* what the kernels rely on */
    int64_t item;            /* bytes of an element, for a stride */
} Bind;

/* What becomes known at one time: at the start, when a step has bound numbers that kernels computed (sizes
 * that depend on data), or when a Python step has returned tensors of such sizes. */
typedef struct {
    int nbinds, ncode;
    Bind *binds;
    Instruction *code;
} Stage;

typedef struct {
    int kind, stage;
    Py_ssize_t index; /* input number; local: bytes of the locals before it, in a row of all */
    int at;    /* arena: F[at] is the offset in bytes; output, own: F[at] its bytes; local: bytes of a row */
    int plain; /* an output in C order */
    PyObject *constant;
    Layout layout; /* inputs, outputs, and whatever a Python step returns */
} Slot;

typedef void (*KernelFn)(char **args, int64_t begin, int64_t end);
typedef void (*GemmFn)(const char *, const char *, const int64_t *, const int64_t *, const int64_t *,
                       const void *, const void *, const int64_t *, const void *, const int64_t *,
                       const void *, void *, const int64_t *);

/* A batch of products C = A B in the row-major sense: strides and offsets in bytes, one (count, A stride, B
 * stride, C stride) a batch dimension. */
typedef struct {
    int64_t m, n, k, lda, ldb, ldc, offset[3];
    int64_t batch[];
} GemmSizes;

typedef struct {
    int at; /* F[at]: bytes */
    Layout layout;
} Part;

typedef struct Rows Rows;

typedef struct Step {
    int kind, nargs;
    int *args; /* slots */
    /* kernel over F[total] iterations in pieces of at least F[grain]; F[params ..]: the sizes it reads */
    KernelFn fn;
    int total, grain, params;
    /* table: the kernel on nrows rows of nargs / nrows of the slots each; row i over F[total + i] iterations,
     * its sizes are F[params + i * nparams ..] */
    int nrows, nparams;
    /* gemm: args are A, B, C; F[sizes ..] is a GemmSizes */
    GemmFn gemm;
    int f64, nbatch, sizes, choice;
    char ta, tb;
    /* native: `kernel` on a view of a part of each of args (-1: not given), results among them, and the
     * integers F[numbers[i]] */
    const NativeKernel *kernel;
    /* call: `callable` gets a tensor over a part of each of args; results go to the slots `results`; then
     * `stage` begins, if not 0 */
    PyObject *callable;
    PyObject *native; /* the native loop, or the call of NumPy's, that `callable` turned out to be, None for
                         others, NULL: not known yet */
    Part *parts;
    int nresults, *results, stage, nnumbers, *numbers; /* the integers F[numbers[i]] follow the tensors */
    /* bind: the parts of args are int64 numbers, the sources of `stage`, which then begins: its symbols are
     * bound and its memory is taken. No Python runs. */
    Rows *rows; /* rows: see rows.c; native: the kernels that take the planes of its result, or NULL, see
                   planes.c */
} Step;

/* Products and kernels over the same rows, in blocks that are multiples of `unit` or end with a `period`,
 * best of `block`; num[i] / den[i]: rows to an iteration of kernel i, num[i] = 0: a product that is a sum
 * over the rows. Where there are such, the rows of a period go in `lanes` parts, whose sums are added in
 * their order; otherwise lanes is 0. */
struct Rows {
    int64_t rows, period, unit, block, lanes, num[MOST_ROW_STEPS], den[MOST_ROW_STEPS];
    int nsteps, nlocals;
    Step steps[MOST_ROW_STEPS];
    int64_t local[MOST_VIEWS * 4]; /* bytes of a row of each local buffer */
    const Slot *slots;             /* the graph's */
};

typedef struct {
    char *ptr;
    PyObject *owner; /* the ndarray that holds the memory, owned */
} Place;

typedef struct {
    int kind, slot, at; /* F[at]: offset in bytes, or the number */
    int whole;          /* the slot's own array */
    Layout layout;
    PyObject *constant;
} Output;

/* The first and the last step that touches a slot (0, -1: none does), and whether it is there when the call
 * ends. */
typedef struct {
    int first, last, kept;
} Life;

/* A slot with memory of its own and the step before which it is taken, or after which it is given back. */
typedef struct {
    int step, slot;
} Owned;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    int ninputs, nslots, nsteps, noutputs, nframe, nstages, has_call, has_telling_call, light,
        dynamic;     /* has_call: some steps want the GIL */
    int widest;      /* the most pointers that a kernel is handed */
    int *input_slot; /* the slot of each input, -1: not read */
    Frame *frame;
    Stage *stages;
    Slot *slots;
    Step *steps;
    Output *outputs;
    int arena;         /* F[arena]: its bytes */
    Life *lives;       /* of each slot; NULL before the first call of `consume` */
    uint8_t *stops;    /* of each step: whether memory is taken and given back before it */
    uint8_t *together; /* of each step: how many run side by side from it on; 0 for those that follow it among
                          them */
    int nowned;        /* slots with memory of their own, */
    Owned *takes, *gives; /* in the order in which they are taken, and given back */
    double *seconds;      /* that each step took since time_steps(True), NULL: not asked for */
    PyObject *on_error, *on_mismatch, *info, *dict, *weakrefs;
} Graph;

extern int flb_timing; /* the clock by which launches add up the time of each step, 0: they don't */

extern FlbApi *flb_api;
extern PyTypeObject FlbGraph_Type, FlbLoop_Type, FlbLoopWith_Type, FlbArrayResult_Type, FlbNumpyCall_Type,
    FlbArrayView_Type;

int flb_init_writing(PyObject *module);
PyObject *flb_graph_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames);
PyObject *flb_graph_consume(PyObject *self, PyObject *list);
PyObject *flb_native_call_of(PyObject *callable);
PyObject *flb_loop_arrays(PyObject *loop, PyObject *const *arrays, Py_ssize_t n);
PyObject *flb_numpy_call(PyObject *call, PyObject *const *given, Py_ssize_t n, int plain);
/* A result as a program of NumPy's has it: a FORM of an output. `flag`: the output that tells whether a
 * number is NumPy's (0), Python's (1), or Python's integer in a float (2); -1: it has the form always. */
typedef struct {
    int output, form, flag;
} Given;
enum { MOST_WANTED = 8 };
typedef struct {
    int n, packed; /* packed: they are a tuple; else there is one */
    Given items[MOST_WANTED];
} Wanted;
PyObject *flb_graph_given(Graph *g, PyObject *const *args,
                          const Wanted *wanted); /* of as many inputs as it has */
PyObject *flb_as_given(const Given *given, PyArrayObject *array, PyArrayObject *flag);
PyObject *flb_array_result(PyObject *graph, PyObject *args);
/* How a product is made where somebody has measured: a PRODUCT of kernels.def, plus BY_ROWS or BY_COLUMNS for
 * a piece a thread along that side. BY_SIZES: the pieces too, where it isn't ours, whose elements have the
 * same bits in any piece. */
enum { BY_ROWS = 16, BY_COLUMNS = 32, MOST_CHOICE = 48, BY_SIZES = 64 };
void flb_gemm(GemmFn fn, int f64, char ta, char tb, const GemmSizes *s, int nbatch, int choice, char *a,
              char *b, char *c);
GemmFn flb_own_gemm(int f64);
GemmFn flb_chosen(GemmFn usual, int f64,
                  int choice); /* what makes a product by a way, where sizes don't decide */
PyObject *flb_matmul(PyObject *self, PyObject *const *args, Py_ssize_t n);
const NativeKernel *flb_find_kernel(const char *name); /* NULL: there is none */
int flb_numbers_fit(const NativeKernel *k, const int64_t *numbers);
int flb_views_fit(const NativeKernel *k, const uint8_t *given);
int flb_add_kernels(PyObject *module);
PyObject *flb_default_engine(PyObject *self, PyObject *unused);
PyObject *flb_use_ufunc(PyObject *self, PyObject *args);
PyObject *flb_element_function(PyObject *self, PyObject *args);
PyObject *flb_element_functions(PyObject *self, PyObject *unused);
typedef void (*FlbElementBlock)(char **at, int64_t n);
FlbElementBlock flb_element_block(const char *name, int wide);
PyObject *flb_pair_function(PyObject *self, PyObject *args);
PyObject *flb_bf16_products(PyObject *self, PyObject *unused);
PyObject *flb_use_lapack(PyObject *self, PyObject *args);
PyObject *flb_load_objects(PyObject *self, PyObject *args);
PyObject *flb_emit_configure(PyObject *self, PyObject *args);
PyObject *flb_emit_start(PyObject *self, PyObject *text);
PyObject *flb_emit_finish(PyObject *self, PyObject *job);
PyObject *flb_emit_load(PyObject *self, PyObject *unused);
PyObject *flb_turn_blocks(PyObject *self, PyObject *unused);
PyObject *flb_emit_drain(PyObject *self, PyObject *unused);
PyObject *flb_emit_forked(PyObject *self, PyObject *unused);
void flb_gemv(int f64, int by_dots, int64_t out, int64_t k, const void *matrix, int64_t ld, const void *x,
              int64_t incx, void *y, int64_t incy); /* gemv.c */
void flb_strided_product(int64_t f64, int64_t m, int64_t n, int64_t k, const char *a, int64_t ar, int64_t ac,
                         const char *b, int64_t br, int64_t bc, char *c);
void flb_turn_product(int64_t *words, int64_t site, int64_t left, const char *a_base, const int64_t *a_sizes,
                      int64_t a_ndim, const char *b_base, const int64_t *b_sizes, int64_t b_ndim, int64_t f64,
                      int64_t m, int64_t n, int64_t k, const char *a, int64_t ar, int64_t ac, const char *b,
                      int64_t br, int64_t bc, char *c); /* turn_products.c */
GemmFn flb_blas_gemm(int f64);                          /* NULL before use_blas */
void flb_run_rows(const Rows *r, const Place *places, const Frame *f, int64_t *status);
int flb_run_planes(const Step *s, const Place *places, const Frame *f, const View *views,
                   const int64_t *numbers, int64_t *status); /* -1: no memory */
void flb_blas_call(GemmFn fn, int f64, char ta, char tb, int64_t m, int64_t n, int64_t k, const void *a,
                   int64_t lda, const void *b, int64_t ldb, int more, void *c, int64_t ldc);
GemmFn flb_for_sizes(GemmFn fn, int f64, char tb, int64_t m, int64_t n, int64_t k);
void flb_product_piece(int f64, int at, int bt, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda,
                       const void *b, int64_t ldb, void *c, int64_t ldc, int64_t rows, int64_t columns,
                       const void *packed, int64_t n0, int way);
#define PACKED_CUT                                                                                          \
    96 /* columns where a piece may begin that reads a packed operand: whole panels and lines of every kind \
          of CPU */
int flb_packed_way(int f64, int bt, int64_t m, int64_t n, int64_t k);
int64_t flb_packed_panels(int f64, int way, int64_t n, int64_t k, int64_t *size);
void flb_pack_few(int f64, int bt, int64_t n, int64_t k, const void *b, int64_t ldb, void *to, int64_t from,
                  int64_t end);
int flb_has_tiles(void); /* of bfloat16 numbers: AMX */
int64_t flb_bf16_packed_size(int turned, int64_t m, int64_t n, int64_t k);
PyObject *flb_packed_elements(PyObject *self, PyObject *args);
int flb_is_own(GemmFn fn); /* whether product.c makes it */
void flb_packed_size(int f64, int64_t n, int64_t k, int64_t *bytes, int64_t *npanels);
void flb_pack_panels(int f64, int bt, int64_t n, int64_t k, const void *b, int64_t ldb, void *to,
                     int64_t from, int64_t end);
int flb_multiply_packed(int f64, int at, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda,
                        const void *b, void *c, int64_t ldc);
int flb_by_tiles(int bt, int64_t m, int64_t n, int64_t k);
int flb_multiply_split(int at, int bt, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
                       const float *b, int64_t ldb, const void *packed, float *c, int64_t ldc, int64_t all);
#define TALL 12 /* a multiple of the height of every kind of CPU's tiles */
void flb_pack_rows(int f64, int along, int64_t m, int64_t k, const void *a, int64_t lda, void *to);
void flb_transpose(int f64, int64_t rows, int64_t columns, const void *from, int64_t ld, void *to,
                   int64_t step);
void flb_multiply_panels(int f64, int64_t m, int64_t r0, int64_t r1, int64_t n, int64_t k, int64_t p0,
                         int64_t deep, const void *a, const void *b, int64_t ldb, void *c, int64_t ldc,
                         int more);
GemmFn flb_best_gemm(int f64, GemmFn theirs); /* ours, or the library's where that is the better one */
int flb_graph_lifetimes(Graph *g);            /* fill `lives` and `stops`, see lives.c, */
int flb_graph_turns(Graph *g);                /* `takes` and `gives` */
PyObject *flb_loops_worth(PyObject *self, PyObject *arg);
PyObject *flb_operation_names(PyObject *self, PyObject *unused);
PyObject *flb_sweep_operations(PyObject *self, PyObject *args);
PyObject *flb_use_blas(PyObject *self, PyObject *args);
PyObject *flb_gemm_address(PyObject *self, PyObject *arg);
#endif
