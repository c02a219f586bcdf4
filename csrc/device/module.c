/* flambeau._device: the driver interface for Python. Memory, streams and events are objects; what they name
 * is freed with them.
 *
 * A thread has a current device, and a current stream of each device; work goes to these. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include "device/memory.h"

const FlbDriver *flb_driver = NULL;
#define driver flb_driver
static PyObject *memory_error = NULL; /* the class of errors about memory; told by core/device_memory.py */

typedef struct {
    PyObject_HEAD
    int device;
    FlbStream *handle;
    unsigned long long id;
} Stream;
typedef struct {
    PyObject_HEAD
    FlbEvent *handle;
} Event;
typedef FlbMemory Memory;

static __thread int current_device;
static __thread Stream *current_streams[FLB_MOST_DEVICES]; /* a reference each */

#define stream_of flb_stream_of
FlbStream *flb_stream_of(int device) {
    Stream *s = current_streams[device];
    return s ? s->handle : NULL;
}
static __thread int failing; /* the device that the last call was about */
static PyObject *failed(int status) {
    static const char *const words[] = {"",
                                        "not ready",
                                        "out of memory",
                                        "invalid device ordinal",
                                        "invalid address",
                                        "an event that was not recorded",
                                        "an illegal memory access was encountered",
                                        "unspecified launch failure",
                                        "device kernel image is invalid",
                                        "operation not permitted when stream is capturing",
                                        "use before synchronisation",
                                        "a kernel reads memory that was never written"};
    if (status == FLB_ILLEGAL_ACCESS || status == FLB_DIVERGED || status == FLB_NO_IMAGE ||
        status >= FLB_RACE)
        return PyErr_Format(PyExc_RuntimeError, "CUDA error: %s (%s)", words[status],
                            driver->failure(failing));
    return PyErr_Format(PyExc_RuntimeError, "CUDA error: %s", words[status]);
}
#define device_from flb_device_from
int flb_device_from(PyObject *o, int *device) {
    long d = PyLong_AsLong(o);
    if (d == -1 && PyErr_Occurred()) return -1;
    if (!driver || d < 0 || d >= driver->count()) return failed(FLB_INVALID_DEVICE), -1;
    *device = failing = (int)d;
    return 0;
}
#define WITHOUT_GIL(CALL)                        \
    ({                                           \
        int status_;                             \
        Py_BEGIN_ALLOW_THREADS status_ = (CALL); \
        Py_END_ALLOW_THREADS status_;            \
    })
static PyObject *done(int status) {
    if (status) return failed(status);
    Py_RETURN_NONE;
}
PyObject *flb_status(int device, int status) {
    failing = device;
    return done(status);
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static PyTypeObject Memory_Type;
PyTypeObject *flb_memory_type = &Memory_Type;
PyObject *flb_no_memory(int device, Py_ssize_t nbytes) {
    if (!memory_error) return failed(FLB_OUT_OF_MEMORY);
    size_t available = 0, total = 0;
    driver->memory(device, &available, &total);
    return PyErr_Format(memory_error,
                        "CUDA out of memory. Tried to allocate %zd bytes. GPU %d has a total capacity of %zu "
                        "bytes of which %zu bytes is free.",
                        nbytes, device, total, available);
}
PyObject *flb_memory_over(int device, uint64_t address, Py_ssize_t nbytes, FlbStream *stream) {
    Memory *m = PyObject_New(Memory, &Memory_Type);
    if (!m) return address ? driver->release(device, address, stream) : 0, NULL;
    m->device = device, m->nbytes = nbytes, m->address = address, m->stream = stream, m->several = 0,
    m->owner = NULL;
    return (PyObject *)m;
}
static PyObject *memory_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *where;
    Py_ssize_t nbytes;
    int device;
    if (!PyArg_ParseTuple(args, "On", &where, &nbytes) || device_from(where, &device) < 0) return NULL;
    if (nbytes < 0) return PyErr_SetString(PyExc_ValueError, "a negative number of bytes"), NULL;
    uint64_t address = 0;
    if (nbytes) {
        int status = WITHOUT_GIL(driver->allocate(device, (size_t)nbytes, stream_of(device), &address));
        if (status == FLB_OUT_OF_MEMORY) return flb_no_memory(device, nbytes);
        if (status) return failed(status);
    }
    return flb_memory_over(device, address, nbytes, stream_of(device));
}
static void memory_dealloc(Memory *m) {
    if (m->owner) {
        Py_DECREF(m->owner);
        Py_TYPE(m)->tp_free(m);
        return;
    }
    if (m->address && m->several) driver->synchronize(m->device);
    if (m->address) driver->release(m->device, m->address, m->stream);
    Py_TYPE(m)->tp_free(m);
}
static int inside(Memory *m, Py_ssize_t at, Py_ssize_t n) {
    if (at >= 0 && n >= 0 && at <= m->nbytes && n <= m->nbytes - at) return 1;
    PyErr_Format(PyExc_IndexError, "%zd bytes at %zd of a device memory of %zd bytes", n, at, m->nbytes);
    return 0;
}
static PyObject *memory_write(Memory *m, PyObject *args) {
    Py_ssize_t at;
    Py_buffer host;
    if (!PyArg_ParseTuple(args, "ny*", &at, &host)) return NULL;
    int status = !inside(m, at, host.len) ? -1
        : host.len ? WITHOUT_GIL(driver->copy_in(m->device, m->address + (uint64_t)at, host.buf,
                                                 (size_t)host.len, stream_of(m->device)))
                   : 0;
    PyBuffer_Release(&host);
    return status < 0 ? NULL : done(status);
}
static PyObject *memory_read(Memory *m, PyObject *args) {
    Py_ssize_t at;
    Py_buffer host;
    if (!PyArg_ParseTuple(args, "nw*", &at, &host)) return NULL;
    int status = !inside(m, at, host.len) ? -1
        : host.len ? WITHOUT_GIL(driver->copy_out(m->device, host.buf, m->address + (uint64_t)at,
                                                  (size_t)host.len, stream_of(m->device)))
                   : 0;
    PyBuffer_Release(&host);
    return status < 0 ? NULL : done(status);
}
static PyObject *memory_copy(Memory *m, PyObject *args) {
    Memory *from;
    Py_ssize_t to_at, from_at, n;
    if (!PyArg_ParseTuple(args, "nO!nn", &to_at, &Memory_Type, &from, &from_at, &n)) return NULL;
    if (!inside(m, to_at, n) || !inside(from, from_at, n)) return NULL;
    if (!n) Py_RETURN_NONE;
    return done(
        WITHOUT_GIL(driver->copy(m->device, m->address + (uint64_t)to_at, from->device,
                                 from->address + (uint64_t)from_at, (size_t)n, stream_of(m->device))));
}
static PyObject *memory_fill(Memory *m, PyObject *args) {
    Py_ssize_t at, n;
    unsigned char byte;
    if (!PyArg_ParseTuple(args, "nnb", &at, &n, &byte) || !inside(m, at, n)) return NULL;
    if (!n) Py_RETURN_NONE;
    return done(WITHOUT_GIL(
        driver->fill(m->device, m->address + (uint64_t)at, byte, (size_t)n, stream_of(m->device))));
}
static PyObject *memory_used_by_others(Memory *m, PyObject *unused) {
    m->several = 1;
    Py_RETURN_NONE;
}
static PyMethodDef memory_methods[] = {
    {"used_by_others", (PyCFunction)memory_used_by_others, METH_NOARGS,
     "Work of other streams than the one it was made on uses it: that is waited for before it is freed."},
    {"write", (PyCFunction)memory_write, METH_VARARGS,
     "write(at, buffer): bytes of the host go to this place."},
    {"read", (PyCFunction)memory_read, METH_VARARGS,
     "read(at, buffer): a writable buffer of the host gets the bytes at this place."},
    {"copy", (PyCFunction)memory_copy, METH_VARARGS,
     "copy(at, memory, from, n): n bytes of another device memory."},
    {"fill", (PyCFunction)memory_fill, METH_VARARGS, "fill(at, n, byte)"},
    {NULL}};
static PyMemberDef memory_members[] = {
    {"device", T_INT, offsetof(Memory, device), READONLY, "index of the device"},
    {"nbytes", T_PYSSIZET, offsetof(Memory, nbytes), READONLY, "size"},
    {"address", T_ULONGLONG, offsetof(Memory, address), READONLY, "address on the device"},
    {NULL}};
static PyTypeObject Memory_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._device.Memory",
    .tp_basicsize = sizeof(Memory),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Memory(device, nbytes): memory of a device, freed with the object, in the order of the stream "
              "it was made on.",
    .tp_new = memory_new,
    .tp_dealloc = (destructor)memory_dealloc,
    .tp_methods = memory_methods,
    .tp_members = memory_members,
};

/* ---- streams and events -------------------------------------------------------------------------------- */

static PyTypeObject Stream_Type, Event_Type;
static unsigned long long stream_ids = 0;
static PyObject *stream_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *where;
    int device, is_default = 0;
    if (!PyArg_ParseTuple(args, "O|p", &where, &is_default) || device_from(where, &device) < 0) return NULL;
    Stream *s = (Stream *)type->tp_alloc(type, 0);
    if (!s) return NULL;
    s->device = device;
    if (is_default) return (PyObject *)s;
    int status = driver->stream_create(device, &s->handle);
    if (status) return Py_DECREF(s), failed(status);
    s->id = ++stream_ids;
    return (PyObject *)s;
}
static void stream_dealloc(Stream *s) { Py_TYPE(s)->tp_free(s); } /* the driver's streams last */
static PyObject *stream_query(Stream *s, PyObject *unused) {
    return PyBool_FromLong(driver->stream_done(s->device, s->handle) == FLB_DONE);
}
static PyObject *stream_synchronize(Stream *s, PyObject *unused) {
    return done(WITHOUT_GIL(driver->stream_synchronize(s->device, s->handle)));
}
static PyObject *stream_wait(Stream *s, PyObject *event) {
    if (!PyObject_TypeCheck(event, &Event_Type))
        return PyErr_SetString(PyExc_TypeError, "wait_event(): an event is needed"), NULL;
    return done(driver->stream_wait_event(s->device, s->handle, ((Event *)event)->handle));
}
static PyMethodDef stream_methods[] = {
    {"query", (PyCFunction)stream_query, METH_NOARGS, "Whether all work given to it is done."},
    {"synchronize", (PyCFunction)stream_synchronize, METH_NOARGS, "Wait for all work given to it."},
    {"wait_event", (PyCFunction)stream_wait, METH_O, "Work given from now on comes after the event."},
    {NULL}};
static PyMemberDef stream_members[] = {
    {"device_index", T_INT, offsetof(Stream, device), READONLY, "index of the device"},
    {"stream_id", T_ULONGLONG, offsetof(Stream, id), READONLY, "0 for the default stream"},
    {NULL}};
static PyTypeObject Stream_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._device.Stream",
    .tp_basicsize = sizeof(Stream),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Stream(device, default=False): a queue of work of a device.",
    .tp_new = stream_new,
    .tp_dealloc = (destructor)stream_dealloc,
    .tp_methods = stream_methods,
    .tp_members = stream_members,
};
static PyObject *event_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *where;
    int device;
    if (!PyArg_ParseTuple(args, "O", &where) || device_from(where, &device) < 0) return NULL;
    Event *e = (Event *)type->tp_alloc(type, 0);
    int status = e ? driver->event_create(device, &e->handle) : 0;
    if (status) return Py_DECREF(e), failed(status);
    return (PyObject *)e;
}
static void event_dealloc(Event *e) {
    if (e->handle) driver->event_destroy(e->handle);
    Py_TYPE(e)->tp_free(e);
}
static PyObject *event_record(Event *e, PyObject *stream) {
    if (!PyObject_TypeCheck(stream, &Stream_Type))
        return PyErr_SetString(PyExc_TypeError, "record(): a stream is needed"), NULL;
    Stream *s = (Stream *)stream;
    return done(driver->event_record(e->handle, s->device, s->handle));
}
static PyObject *event_query(Event *e, PyObject *unused) {
    return PyBool_FromLong(driver->event_done(e->handle) == FLB_DONE);
}
static PyObject *event_synchronize(Event *e, PyObject *unused) {
    return done(WITHOUT_GIL(driver->event_synchronize(e->handle)));
}
static PyObject *event_elapsed(Event *e, PyObject *end) {
    if (!PyObject_TypeCheck(end, &Event_Type))
        return PyErr_SetString(PyExc_TypeError, "elapsed(): an event is needed"), NULL;
    double ms = 0;
    int status = driver->event_elapsed(e->handle, ((Event *)end)->handle, &ms);
    return status ? failed(status) : PyFloat_FromDouble(ms);
}
static PyMethodDef event_methods[] = {
    {"record", (PyCFunction)event_record, METH_O,
     "record(stream): the event is after all that the stream was given so far."},
    {"query", (PyCFunction)event_query, METH_NOARGS, "Whether it has come."},
    {"synchronize", (PyCFunction)event_synchronize, METH_NOARGS, "Wait for it."},
    {"elapsed", (PyCFunction)event_elapsed, METH_O, "elapsed(end): milliseconds to another event."},
    {NULL}};
static PyTypeObject Event_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._device.Event",
    .tp_basicsize = sizeof(Event),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Event(device): a place in a stream.",
    .tp_new = event_new,
    .tp_dealloc = (destructor)event_dealloc,
    .tp_methods = event_methods,
};

/* ---- pinned memory ------------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    void *at;
} Pinned;
static PyObject *pinned_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    unsigned long long address;
    Py_ssize_t nbytes;
    if (!PyArg_ParseTuple(args, "Kn", &address, &nbytes)) return NULL;
    if (!driver) return failed(FLB_INVALID_DEVICE);
    Pinned *p = (Pinned *)type->tp_alloc(type, 0);
    if (!p || !nbytes) return (PyObject *)p;
    int status = WITHOUT_GIL(driver->pin((void *)(uintptr_t)address, (size_t)nbytes));
    if (status) return Py_DECREF(p), failed(status);
    p->at = (void *)(uintptr_t)address;
    return (PyObject *)p;
}
static void pinned_dealloc(Pinned *p) {
    if (p->at) driver->unpin(p->at);
    Py_TYPE(p)->tp_free(p);
}
static PyTypeObject Pinned_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._device.Pinned",
    .tp_basicsize = sizeof(Pinned),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Pinned(address, nbytes): this memory of the host is pinned as long as the object lives, which "
              "the memory has to outlive.",
    .tp_new = pinned_new,
    .tp_dealloc = (destructor)pinned_dealloc,
};

/* ---- graphs -------------------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    int device;
    FlbGraph *handle;
} Graph;
static __thread int capturing[FLB_MOST_DEVICES];
static PyObject *py_capture_begin(PyObject *m, PyObject *where) {
    int device;
    if (device_from(where, &device) < 0) return NULL;
    int status = driver->capture_begin(device, stream_of(device));
    if (!status) capturing[device] = 1;
    return done(status);
}
static PyObject *py_capturing(PyObject *m, PyObject *where) {
    int device;
    return device_from(where, &device) < 0 ? NULL : PyBool_FromLong(capturing[device]);
}
static PyObject *graph_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *where;
    int device;
    if (!PyArg_ParseTuple(args, "O", &where) || device_from(where, &device) < 0) return NULL;
    Graph *g = (Graph *)type->tp_alloc(type, 0);
    if (!g) return NULL;
    g->device = device;
    capturing[device] = 0;
    int status = driver->capture_end(device, stream_of(device), &g->handle);
    if (status) return Py_DECREF(g), failed(status);
    return (PyObject *)g;
}
static void graph_dealloc(Graph *g) {
    if (g->handle) driver->graph_destroy(g->device, g->handle);
    Py_TYPE(g)->tp_free(g);
}
static PyObject *graph_launch(Graph *g, PyObject *unused) {
    return done(WITHOUT_GIL(driver->graph_launch(g->device, g->handle, stream_of(g->device))));
}
static PyMethodDef graph_methods[] = {{"launch", (PyCFunction)graph_launch, METH_NOARGS,
                                       "Give the work to this thread's stream of the device."},
                                      {NULL}};
static PyTypeObject Graph_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._device.Graph",
    .tp_basicsize = sizeof(Graph),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Graph(device): the work that this thread's stream was given since capture_begin(device).",
    .tp_new = graph_new,
    .tp_dealloc = (destructor)graph_dealloc,
    .tp_methods = graph_methods,
};

/* ---- kernels ------------------------------------------------------------------------------------------- */

enum { MOST_ARGUMENTS = 480 }; /* a kernel is handed at most 4096 bytes */

static PyObject *py_load(PyObject *m, PyObject *args) {
    PyObject *where;
    Py_buffer image;
    const char *name;
    int device;
    if (!PyArg_ParseTuple(args, "Oy*s", &where, &image, &name)) return NULL;
    FlbFunction *function = NULL;
    int status = device_from(where, &device) < 0
        ? -1
        : driver->load(device, image.buf, (size_t)image.len, name, &function);
    PyBuffer_Release(&image);
    return status < 0 ? NULL : status ? failed(status) : PyLong_FromVoidPtr(function);
}
static PyObject *py_launch(PyObject *m, PyObject *args) {
    PyObject *where, *function, *memories, *offsets, *numbers;
    int device;
    FlbGrid g = {0};
    long long blocks;
    Py_ssize_t shared;
    if (!PyArg_ParseTuple(args, "OOLipnO!O!O!", &where, &function, &blocks, &g.threads, &g.cooperative,
                          &shared, &PyList_Type, &memories, &PyList_Type, &offsets, &PyList_Type, &numbers) ||
        device_from(where, &device) < 0)
        return NULL;
    Py_ssize_t p = PyList_GET_SIZE(memories), n = PyList_GET_SIZE(numbers);
    if (p != PyList_GET_SIZE(offsets) || p + n > MOST_ARGUMENTS)
        return PyErr_SetString(PyExc_ValueError, "launch(): arguments"), NULL;
    if (blocks == 0) Py_RETURN_NONE;
    uint64_t arguments[MOST_ARGUMENTS];
    int64_t extents[MOST_ARGUMENTS];
    for (Py_ssize_t i = 0; i < p; i++) {
        Memory *memory = (Memory *)PyList_GET_ITEM(memories, i);
        Py_ssize_t at = PyLong_AsSsize_t(PyList_GET_ITEM(offsets, i));
        if (at == -1 && PyErr_Occurred()) return NULL;
        if (!PyObject_TypeCheck(memory, &Memory_Type) || memory->device != device)
            return PyErr_SetString(PyExc_TypeError, "launch(): memory of the device is needed"), NULL;
        if (!inside(memory, at, 0)) return NULL;
        arguments[i] = memory->address ? memory->address + (uint64_t)at : 0;
        extents[i] = memory->nbytes - at;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        arguments[p + i] = (uint64_t)PyLong_AsLongLong(PyList_GET_ITEM(numbers, i));
        if (PyErr_Occurred()) return NULL;
    }
    g.function = PyLong_AsVoidPtr(function);
    if (!g.function && PyErr_Occurred()) return NULL;
    g.blocks = blocks, g.shared = (size_t)shared, g.n_pointers = (int)p, g.n_arguments = (int)(p + n);
    g.arguments = arguments, g.extents = extents;
    return done(WITHOUT_GIL(driver->launch(device, &g, stream_of(device))));
}
static PyObject *chosen(int what, PyObject *which) {
    int value = (int)PyLong_AsLong(which);
    if (value == -1 && PyErr_Occurred()) return NULL;
    if (!driver) return failed(FLB_INVALID_DEVICE);
    return done(driver->choose(what, value));
}
static PyObject *py_order(PyObject *m, PyObject *which) { return chosen(FLB_ORDER, which); }
static PyObject *py_late(PyObject *m, PyObject *which) { return chosen(FLB_LATE, which); }
static PyObject *py_watch_races(PyObject *m, PyObject *which) { return chosen(FLB_WATCH_RACES, which); }
static PyObject *py_watch_unwritten(PyObject *m, PyObject *which) {
    return chosen(FLB_WATCH_UNWRITTEN, which);
}
static PyObject *py_library(PyObject *m, PyObject *which) { return chosen(FLB_LIBRARY, which); }

/* ---- the module ---------------------------------------------------------------------------------------- */

static PyObject *py_simulate(PyObject *m, PyObject *n) {
    long count = PyLong_AsLong(n);
    if (count == -1 && PyErr_Occurred()) return NULL;
    if (count < 1 || count > FLB_MOST_DEVICES)
        return PyErr_Format(PyExc_ValueError, "simulate(): 1 to %d devices", FLB_MOST_DEVICES), NULL;
    if (driver) return PyErr_SetString(PyExc_RuntimeError, "there is a driver already"), NULL;
    driver = flb_simulated_driver((int)count);
    if (!driver) return PyErr_NoMemory();
    Py_RETURN_NONE;
}
static PyObject *listed(const char *const *all) {
    PyObject *names = PyList_New(0);
    for (int i = 0; names && all[i]; i++) {
        PyObject *name = PyUnicode_FromString(all[i]);
        if (!name || PyList_Append(names, name) < 0) Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}
static PyObject *py_nvidia_functions(PyObject *m, PyObject *unused) { return listed(flb_nvidia_functions); }
static PyObject *py_cublas_functions(PyObject *m, PyObject *unused) { return listed(flb_cublas_functions); }
enum { MOST_FUNCTIONS = 64 };
/* How many, -1 with an error for none where there should be one. */
static int addresses_from(PyObject *list, uintptr_t *out, const char *library, const char *const *names) {
    if (!PyList_Check(list) || PyList_GET_SIZE(list) > MOST_FUNCTIONS)
        return PyErr_SetString(PyExc_TypeError, "a list of addresses is needed"), -1;
    int n = (int)PyList_GET_SIZE(list);
    for (int i = 0; i < n; i++)
        if (!(out[i] = (uintptr_t)PyLong_AsVoidPtr(PyList_GET_ITEM(list, i)))) {
            if (!PyErr_Occurred()) PyErr_Format(PyExc_RuntimeError, "%s has no %s", library, names[i]);
            return -1;
        }
    return n;
}
static PyObject *py_cublas(PyObject *m, PyObject *list) {
    uintptr_t addresses[MOST_FUNCTIONS];
    int n = addresses_from(list, addresses, "cuBLASLt", flb_cublas_functions);
    if (n < 0) return NULL;
    if (flb_cublas_begin(addresses, n))
        return PyErr_SetString(PyExc_ValueError, "cublas(): an address for each of cublas_functions()"), NULL;
    Py_RETURN_NONE;
}
static PyObject *py_products(PyObject *m, PyObject *unused) {
    return PyBool_FromLong(driver && driver->products());
}
static PyObject *py_nvidia(PyObject *m, PyObject *list) {
    uintptr_t addresses[MOST_FUNCTIONS];
    if (driver) return PyErr_SetString(PyExc_RuntimeError, "there is a driver already"), NULL;
    int status, n = addresses_from(list, addresses, "libcuda", flb_nvidia_functions);
    if (n < 0) return NULL;
    const FlbDriver *found = flb_nvidia_driver(addresses, n, &status);
    if (!found)
        return failed(status == FLB_ILLEGAL_ACCESS || status == FLB_DIVERGED ? FLB_INVALID_DEVICE : status);
    driver = found;
    Py_RETURN_NONE;
}
static PyObject *py_configure(PyObject *m, PyObject *cls) {
    Py_XSETREF(memory_error, Py_NewRef(cls));
    Py_RETURN_NONE;
}
static PyObject *py_count(PyObject *m, PyObject *unused) {
    return PyLong_FromLong(driver ? driver->count() : 0);
}
static PyObject *py_name(PyObject *m, PyObject *unused) {
    return PyUnicode_FromString(driver ? driver->name : "");
}
static PyObject *py_properties(PyObject *m, PyObject *where) {
    int device;
    FlbDeviceProperties p;
    if (device_from(where, &device) < 0) return NULL;
    int status = driver->properties(device, &p);
    if (status) return failed(status);
    return Py_BuildValue("{s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:n,s:n}", "name", p.name, "major", p.major, "minor",
                         p.minor, "multi_processor_count", p.multiprocessors, "warp_size", p.warp_size,
                         "max_threads_per_block", p.threads_per_block, "max_threads_per_multi_processor",
                         p.threads_per_multiprocessor, "total_memory", (Py_ssize_t)p.total_memory,
                         "shared_memory_per_block", (Py_ssize_t)p.shared_memory_per_block);
}
static PyObject *py_memory(PyObject *m, PyObject *where) {
    int device;
    size_t available, total;
    if (device_from(where, &device) < 0) return NULL;
    int status = driver->memory(device, &available, &total);
    return status ? failed(status) : Py_BuildValue("nn", (Py_ssize_t)available, (Py_ssize_t)total);
}
static PyObject *py_counters(PyObject *m, PyObject *args) {
    PyObject *where;
    int device, reset = 0;
    FlbMemoryCounters c;
    if (!PyArg_ParseTuple(args, "O|p", &where, &reset) || device_from(where, &device) < 0) return NULL;
    int status = driver->counters(device, &c, reset);
    if (status) return failed(status);
    return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L}", "allocated", (long long)c.allocated,
                         "peak_allocated", (long long)c.peak_allocated, "reserved", (long long)c.reserved,
                         "peak_reserved", (long long)c.peak_reserved, "blocks", (long long)c.blocks,
                         "allocations", (long long)c.allocations, "frees", (long long)c.frees, "refusals",
                         (long long)c.refusals);
}
static PyObject *py_trim(PyObject *m, PyObject *where) {
    int device;
    return device_from(where, &device) < 0 ? NULL : done(WITHOUT_GIL(driver->trim(device)));
}
static PyObject *py_synchronize(PyObject *m, PyObject *where) {
    int device;
    return device_from(where, &device) < 0 ? NULL : done(WITHOUT_GIL(driver->synchronize(device)));
}
static PyObject *py_finish(PyObject *m, PyObject *unused) {
    for (int device = 0; driver && device < driver->count(); device++)
        (void)WITHOUT_GIL(driver->synchronize(device));
    Py_RETURN_NONE;
}
static PyObject *py_current_device(PyObject *m, PyObject *unused) { return PyLong_FromLong(current_device); }
static PyObject *py_set_device(PyObject *m, PyObject *where) {
    int device;
    if (device_from(where, &device) < 0) return NULL;
    current_device = device;
    Py_RETURN_NONE;
}
static PyObject *py_current_stream(PyObject *m, PyObject *where) {
    int device;
    if (device_from(where, &device) < 0) return NULL;
    return Py_NewRef(current_streams[device] ? (PyObject *)current_streams[device] : Py_None);
}
static PyObject *py_set_stream(PyObject *m, PyObject *stream) {
    if (!PyObject_TypeCheck(stream, &Stream_Type))
        return PyErr_SetString(PyExc_TypeError, "set_stream(): a stream is needed"), NULL;
    Stream *s = (Stream *)stream;
    /* The default stream is none: a caller gets a stream of its own class, whatever stream was set. */
    Py_XSETREF(current_streams[s->device], s->id ? (Stream *)Py_NewRef(stream) : NULL);
    Py_RETURN_NONE;
}
static PyMethodDef functions[] = {
    {"simulate", py_simulate, METH_O, "simulate(n): this process has n simulated devices."},
    {"nvidia_functions", py_nvidia_functions, METH_NOARGS,
     "The functions of libcuda that nvidia() wants the addresses of."},
    {"nvidia", py_nvidia, METH_O, "nvidia(addresses): this process drives NVIDIA's devices."},
    {"cublas_functions", py_cublas_functions, METH_NOARGS,
     "The functions of cuBLASLt that cublas() wants the addresses of."},
    {"cublas", py_cublas, METH_O, "cublas(addresses): NVIDIA's devices have a library of products."},
    {"products", py_products, METH_NOARGS, "Whether the device has a library of products."},
    {"library", py_library, METH_O, "library(flag): the simulated device has a library of products."},
    {"capture_begin", py_capture_begin, METH_O,
     "capture_begin(device): work given to this thread's stream is recorded from now on."},
    {"capturing", py_capturing, METH_O, "capturing(device): whether this thread records work."},
    {"configure", py_configure, METH_O, "configure(error): the class of errors about memory."},
    {"count", py_count, METH_NOARGS, "How many devices there are."},
    {"name", py_name, METH_NOARGS, "The driver's name, empty without one."},
    {"properties", py_properties, METH_O, "properties(device): a dict."},
    {"memory", py_memory, METH_O, "memory(device): bytes available, bytes in all."},
    {"counters", py_counters, METH_VARARGS,
     "counters(device, reset_peaks=False): a dict of bytes and blocks."},
    {"trim", py_trim, METH_O, "trim(device): memory that is kept for later goes back."},
    {"synchronize", py_synchronize, METH_O, "synchronize(device): wait for all of its streams."},
    {"load", py_load, METH_VARARGS, "load(device, image, name): a kernel of an image, as a number."},
    {"launch", py_launch, METH_VARARGS,
     "launch(device, function, blocks, threads, cooperative, shared, memories, offsets, numbers): the "
     "kernel's arguments are the addresses at "
     "these offsets, and the numbers."},
    {"export", flb_py_export, METH_VARARGS,
     "export(memory, at, sizes, strides, code, bits): a capsule of DLPack's."},
    {"imported", flb_py_imported, METH_O,
     "imported(capsule): (memory, at, sizes, strides, code, bits) of a DLPack capsule, which is taken; None, "
     "and "
     "it isn't, for one that isn't on a CUDA device."},
    {"borrow", flb_py_borrow, METH_VARARGS,
     "borrow(device, address, nbytes, owner): memory that `owner` holds; it is kept alive."},
    {"finish", py_finish, METH_NOARGS, "Wait for all work, and tell of no failure: the process ends."},
    {"late", py_late, METH_O,
     "late(flag): work of the simulated device begins when somebody waits for it, and not before."},
    {"watch_races", py_watch_races, METH_O,
     "watch_races(flag): the simulated device's work of two streams on the same memory is an error where "
     "neither waits for the other."},
    {"watch_unwritten", py_watch_unwritten, METH_O,
     "watch_unwritten(flag): kernels of the simulated device that read what was never written are "
     "an error."},
    {"order", py_order, METH_O,
     "order(n): in which order a simulated device runs blocks and threads; 0 ascending, 1 descending, else "
     "mixed."},
    {"current_device", py_current_device, METH_NOARGS, "Index of this thread's device."},
    {"set_device", py_set_device, METH_O, "set_device(index)"},
    {"current_stream", py_current_stream, METH_O, "This thread's stream of a device; None: the default one."},
    {"set_stream", py_set_stream, METH_O,
     "set_stream(stream): work of this thread on the stream's device goes there."},
    {NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "flambeau._device", "The devices of this process.",
                                    -1, functions};
PyMODINIT_FUNC PyInit__device(void) {
    if (PyType_Ready(&Memory_Type) < 0 || PyType_Ready(&Graph_Type) < 0 || PyType_Ready(&Pinned_Type) < 0 ||
        PyType_Ready(flb_plan_type) < 0)
        return NULL;
    Stream_Type.tp_flags |= Py_TPFLAGS_BASETYPE;
    Event_Type.tp_flags |= Py_TPFLAGS_BASETYPE;
    if (PyType_Ready(&Stream_Type) < 0 || PyType_Ready(&Event_Type) < 0) return NULL;
    PyObject *m = PyModule_Create(&module);
    if (!m || PyModule_AddObjectRef(m, "Memory", (PyObject *)&Memory_Type) < 0 ||
        PyModule_AddObjectRef(m, "Graph", (PyObject *)&Graph_Type) < 0 ||
        PyModule_AddObjectRef(m, "Pinned", (PyObject *)&Pinned_Type) < 0 ||
        PyModule_AddObjectRef(m, "Plan", (PyObject *)flb_plan_type) < 0 ||
        PyModule_AddObjectRef(m, "Stream", (PyObject *)&Stream_Type) < 0 ||
        PyModule_AddObjectRef(m, "Event", (PyObject *)&Event_Type) < 0)
        return Py_XDECREF(m), NULL;
    return m;
}
