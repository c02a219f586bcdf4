/* The tensor object and the thread-local dispatch state, shared by flambeau's extension modules.
 *
 * flambeau._C defines these; _frame and _runtime reach them through the capsule flambeau._C._api (FlbApi).
 * Invariant: a tensor with `array` set is a view over NumPy memory, and shape/strides/dtype are derived from
 * it; a tensor without (meta, fake, wrapper) stores them. */
#ifndef FLAMBEAU_H
#define FLAMBEAU_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* Dispatch keys, highest priority = highest bit. core/keys.py mirrors these values. */
enum {
    FLB_BACKEND = 1u,       /* NumPy (cpu) or shape-only (meta) kernel */
    FLB_PYTHON = 2u,        /* __torch_dispatch__: a mode on the stack, or a subclass among the arguments */
    FLB_FUNCTIONALIZE = 4u, /* functionalization wrapper */
    FLB_AUTOGRAD = 8u,
    FLB_FORWARD = 16u,   /* some argument carries a tangent (autograd/forward.py); a part of autograd: what
                            excludes that excludes this */
    FLB_TRANSFORM = 32u, /* vmap and the func transforms */
    FLB_RECORD = 64u, /* among the included keys while a gradient formula is recorded (autograd/program.c); no
                         tensor has it */
};
#define FLB_ALL_KEYS 63u

/* Tensor flags beside the keys. */
enum {
    FLB_REQUIRES_GRAD = 1u, /* a leaf that asks for a gradient, or a result with grad_fn */
    FLB_PARAMETER = 2u,
    FLB_INFERENCE = 4u, /* made in inference mode; counts until it has a storage, see flb_is_inference */
    FLB_FUNCTION = 8u,  /* the class overrides __torch_function__ (not the disabled implementation) */
};

/* Shared by all views of one memory: identity of the storage, version counter for saved-tensor checks. */
#include "core/events.h"
#include "runtime/floating.h"

typedef struct FlbStorage {
    PyObject_HEAD
    PyObject *owner; /* object that owns the memory (an ndarray), or NULL */
    PyObject
        *device_memory; /* memory of another device (flambeau._device.Memory), or NULL; owner is NULL then */
    Py_ssize_t nbytes;  /* only when owner is NULL */
    Py_ssize_t version;
    Py_ssize_t recorded; /* writes to this memory that autograd recorded: views made before have to take over
                            its history */
    PyObject *dict, *weakrefs;
    uint8_t written_dual; /* a write gave a tangent to a tensor on this memory: its views have one through
                             their root */
    uint8_t inference;    /* made in inference mode: for its tensors no history is ever recorded */
    struct FlbStorage
        *memory;    /* of what .data gives: the storage it is of; this one only counts writes. Else NULL */
    uint64_t stamp; /* of the last write to the memory, by whatever name; no two storages or states of one
                       share a number */
} FlbStorage;
extern uint64_t flb_stamps;
static inline void flb_count_write(FlbStorage *s) {
    s->version++;
    (s->memory ? s->memory : s)->stamp = ++flb_stamps;
}

typedef struct {
    PyObject_HEAD
    PyObject *array;     /* np.ndarray, or NULL for tensors without data */
    PyObject *dtype;     /* flambeau.base.dtypes.DType, never NULL */
    PyObject *device;    /* flambeau.base.device.Device, never NULL */
    PyObject *shape;     /* Size; NULL until asked for while array is set */
    PyObject *strides;   /* tuple of int, in elements; NULL until asked for while array is set */
    PyObject *offset;    /* int, in elements; only without array */
    FlbStorage *storage; /* NULL until asked for or shared */
    PyObject *grad;      /* Tensor or NULL */
    PyObject *grad_fn;   /* autograd node or NULL */
    PyObject *autograd;  /* hooks, view relation: an object of autograd/'s own, or NULL */
    PyObject
        *forward; /* its tangent, in an object that its saved aliases share (autograd/forward.py), or NULL */
    PyObject *payload; /* what a functionalization or transform wrapper carries, or NULL */
    uint32_t keys;     /* FLB_PYTHON | FLB_FUNCTIONALIZE | FLB_TRANSFORM bits of this very tensor */
    uint32_t flags;
    int output_nr; /* which output of grad_fn this is */
    PyObject *dict, *weakrefs;
} FlbTensor;

/* The stacks of the dispatch state (csrc/core/state.h), and their places in FlbTls.depth. */
enum {
    FLB_FUNCTION_MODES,
    FLB_DISPATCH_MODES,
    FLB_TRANSFORMS,
    FLB_DEVICES,
    FLB_SAVED_HOOKS,
    FLB_COMPILATIONS,
    FLB_N_STACKS
};

typedef struct {
    union {
        struct {
            uint32_t function_modes; /* depth of the __torch_function__ mode stack that is active now */
            uint32_t dispatch_modes; /* depth of the __torch_dispatch__ mode stack that is active now */
            uint32_t transforms;     /* depth of the vmap/grad interpreter stack */
            uint32_t devices;        /* depth of the stack of devices that factories use */
            uint32_t
                saved_hooks; /* depth of the stack of hooks on what is saved for backward: (pack, unpack) */
            uint32_t compilations; /* how many captures and calls of backends the thread is inside of */
        };
        uint32_t depth[FLB_N_STACKS];
    };
    uint32_t included; /* keys every call has */
    uint32_t excluded; /* keys no call has */
    uint8_t grad_enabled;
    uint8_t inference;
    uint8_t forward_open;      /* a level of dual numbers is open */
    uint8_t function_disabled; /* DisableTorchFunction(Subclass) is in force */
    uint32_t epoch;            /* bumped on every change above: guards compare one word */
    struct FlbStacks *stacks;  /* csrc/core/state.c's own */
} FlbTls;

/* A copy of an array's elements: of one without gaps as they lie in memory, else as an array. */
typedef struct {
    PyObject *array; /* whose they are */
    void *memory;
    PyObject *copy;
} FlbContents;

typedef struct {
    int version;               /* 1 */
    PyTypeObject *tensor_type; /* _C.TensorBase */
    PyTypeObject *storage_type;
    FlbTls *(*tls)(void);
    /* New tensor over an ndarray (steals nothing); its Python type is flambeau.Tensor. NULL with an exception
     * on failure. */
    PyObject *(*from_array)(PyObject *array);
    /* Borrowed flambeau.Tensor class (the Python subclass of TensorBase users see). */
    PyTypeObject *(*tensor_class)(void);
    /* The caching allocator: memory at 16 bytes' alignment (64 from 32 KiB on), NULL when there is none;
     * needs no GIL. */
    void *(*malloc)(size_t size);
    void *(*scratch)(size_t size); /* the same, for memory that goes back before the launch ends */
    void (*free)(void *data);
    /* Let NumPy allocate from it in the present context (a new thread or context starts with NumPy's own). */
    int (*use_allocator)(void);
    FlbFloating *(*floating)(void);
    /* The elements of a tensor's array as they are now: keep_contents() is 0, or -1 with an exception;
     * put_back() writes them into the array again when asked to, and lets go of the copy. */
    int (*keep_contents)(PyObject *tensor, FlbContents *kept);
    int (*put_back)(FlbContents *kept, int write);
    Py_ssize_t (*nbytes)(PyObject *tensor);
    const int *events; /* core/events.h */
    void (*event_begin)(FlbOpen *open, int kind, PyObject *what);
    void (*event_end)(FlbOpen *open);
    void (*event_step)(int64_t index, int64_t count, int64_t begin, int64_t end);
} FlbApi;

#define FLB_API_CAPSULE "flambeau._C._api"
#endif
