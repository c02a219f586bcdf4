/* Code generation on threads that hold no GIL: LLVM assembly in, object code out, while Python lowers the
 * next loop nest.
 *
 * LLVM is called through the C functions of llvmlite's library, whose Python layer has one lock around all
 * calls; each job has a context of its own and each thread a target machine of its own, which is all that
 * LLVM asks for. A thread leaves when there is nothing to do. Python drains the queue before a fork and at
 * exit. */
#define _GNU_SOURCE
#include "runtime/graph.h"
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

/* The order of the addresses that configure() takes. */
typedef struct {
    void *(*create_context)(void);
    void (*dispose_context)(void *);
    void *(*parse)(void *context, const char *text, char **error);
    void (*dispose_module)(void *);
    void (*set_target)(void *module, const char *triple);
    void (*set_layout)(void *module, const char *layout);
    bool (*verify)(void *module, char **error);
    void *(*create_options)(void);
    void (*dispose_options)(void *);
    void *(*create_builder)(void *machine, void *options);
    void (*dispose_builder)(void *);
    void *(*create_passes)(void);
    void (*dispose_passes)(void *);
    void (*add[4])(void *passes);
    void (*run)(void *passes, void *module, void *builder);
    void *(*emit)(void *machine, void *module, int object, char **error);
    const void *(*start)(void *buffer);
    size_t (*size)(void *buffer);
    void (*dispose_buffer)(void *);
    void (*dispose_text)(char *);
} Llvm;
#define N_FUNCTIONS (sizeof(Llvm) / sizeof(void *))

enum { WAITING, RUNNING, DONE };
typedef struct Job {
    char *text, *code, *error;
    size_t size;
    int state, abandoned;
    struct Job *next;
} Job;

#define MAX_MACHINES 64
static Llvm llvm;
static void *machines[MAX_MACHINES];
static int busy[MAX_MACHINES], n_machines = 0, active = 0;
static char *triple = NULL, *layout = NULL;
static Job *first = NULL, **last = &first;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void fail(Job *job, char *message) {
    job->error = strdup(message && *message ? message : "LLVM failed");
    if (message) llvm.dispose_text(message);
}
static void compile(Job *job, void *machine) {
    char *error = NULL;
    void *context = llvm.create_context();
    void *module = llvm.parse(context, job->text, &error);
    if (!module) {
        fail(job, error);
        llvm.dispose_context(context);
        return;
    }
    llvm.set_target(module, triple);
    llvm.set_layout(module, layout);
    if (llvm.verify(module, &error)) fail(job, error);
    else {
        void *options = llvm.create_options(), *builder = llvm.create_builder(machine, options),
             *passes = llvm.create_passes();
        for (int i = 0; i < 4; i++) llvm.add[i](passes);
        llvm.run(passes, module, builder);
        llvm.dispose_passes(passes);
        llvm.dispose_builder(builder);
        llvm.dispose_options(options);
        error = NULL;
        void *buffer = llvm.emit(machine, module, 1, &error);
        if (!buffer) fail(job, error);
        else {
            job->size = llvm.size(buffer);
            job->code = malloc(job->size ? job->size : 1);
            if (job->code) memcpy(job->code, llvm.start(buffer), job->size);
            llvm.dispose_buffer(buffer);
        }
    }
    llvm.dispose_module(module);
    llvm.dispose_context(context);
}
static void free_job(Job *job) {
    free(job->text);
    free(job->code);
    free(job->error);
    free(job);
}
static void *work(void *number) {
    int k = (int)(intptr_t)number;
    pthread_mutex_lock(&mutex);
    while (first) {
        Job *job = first;
        first = job->next;
        if (!first) last = &first;
        job->state = RUNNING;
        pthread_mutex_unlock(&mutex);
        compile(job, machines[k]);
        pthread_mutex_lock(&mutex);
        job->state = DONE;
        if (job->abandoned) free_job(job);
        pthread_cond_broadcast(&changed);
    }
    busy[k] = 0;
    active--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    return NULL;
}
/* One thread more, when a machine is free; called with the mutex. */
static void hire(void) {
    int k = 0;
    while (k < n_machines && busy[k]) k++;
    if (k == n_machines) return;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes)) return;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, (size_t)16 << 20);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* signals are for Python's threads */
    pthread_t thread;
    if (!pthread_create(&thread, &attributes, work, (void *)(intptr_t)k)) busy[k] = 1, active++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

static const char JOB[] = "flambeau job of code generation";

static void destroy(PyObject *capsule) {
    Job *job = PyCapsule_GetPointer(capsule, JOB);
    if (!job) return PyErr_Clear();
    pthread_mutex_lock(&mutex);
    if (job->state == WAITING) {
        Job **at = &first;
        while (*at && *at != job) at = &(*at)->next;
        if (*at) *at = job->next;
        if (last == &job->next) last = at;
    }
    if (job->state == RUNNING) job->abandoned = 1;
    else free_job(job);
    pthread_mutex_unlock(&mutex);
}
PyObject *flb_emit_configure(PyObject *m, PyObject *args) {
    PyObject *functions, *targets;
    const char *t, *l;
    if (!PyArg_ParseTuple(args, "O!O!ss", &PyTuple_Type, &functions, &PyTuple_Type, &targets, &t, &l))
        return NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(targets);
    if (PyTuple_GET_SIZE(functions) != (Py_ssize_t)N_FUNCTIONS || n < 1 || n > MAX_MACHINES)
        return PyErr_Format(PyExc_ValueError, "emit_configure() takes %zu functions and 1 to %d machines",
                            N_FUNCTIONS, MAX_MACHINES);
    if (n_machines) return PyErr_SetString(PyExc_RuntimeError, "code generation is configured already"), NULL;
    void *addresses[N_FUNCTIONS], *made[MAX_MACHINES];
    for (Py_ssize_t i = 0; i < (Py_ssize_t)N_FUNCTIONS + n; i++) {
        PyObject *o = i < (Py_ssize_t)N_FUNCTIONS ? PyTuple_GET_ITEM(functions, i)
                                                  : PyTuple_GET_ITEM(targets, i - (Py_ssize_t)N_FUNCTIONS);
        void *p = PyLong_AsVoidPtr(o);
        if (!p)
            return PyErr_Occurred() ? NULL : (PyErr_SetString(PyExc_ValueError, "an address is zero"), NULL);
        if (i < (Py_ssize_t)N_FUNCTIONS) addresses[i] = p;
        else made[i - (Py_ssize_t)N_FUNCTIONS] = p;
    }
    triple = strdup(t), layout = strdup(l);
    if (!triple || !layout) return PyErr_NoMemory();
    memcpy(&llvm, addresses, sizeof llvm);
    memcpy(machines, made, n * sizeof(void *));
    n_machines = (int)n;
    Py_RETURN_NONE;
}
PyObject *flb_emit_start(PyObject *m, PyObject *text) {
    if (!PyBytes_Check(text)) return PyErr_SetString(PyExc_TypeError, "emit_start() takes bytes"), NULL;
    if (!n_machines) return PyErr_SetString(PyExc_RuntimeError, "code generation isn't configured"), NULL;
    Job *job = calloc(1, sizeof(Job));
    if (!job || !(job->text = strdup(PyBytes_AS_STRING(text)))) return free(job), PyErr_NoMemory();
    PyObject *capsule = PyCapsule_New(job, JOB, destroy);
    if (!capsule) return free_job(job), NULL;
    pthread_mutex_lock(&mutex);
    *last = job;
    last = &job->next;
    hire();
    pthread_mutex_unlock(&mutex);
    return capsule;
}
PyObject *flb_emit_finish(PyObject *m, PyObject *capsule) {
    Job *job = PyCapsule_GetPointer(capsule, JOB);
    if (!job) return NULL;
    Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&mutex);
    while (job->state != DONE) {
        if (!active) hire();
        if (!active) break; /* no thread can be had */
        pthread_cond_wait(&changed, &mutex);
    }
    pthread_mutex_unlock(&mutex);
    Py_END_ALLOW_THREADS if (job->state != DONE) Py_RETURN_NONE;
    if (job->error) return PyErr_SetString(PyExc_RuntimeError, job->error), NULL;
    return job->code ? PyBytes_FromStringAndSize(job->code, job->size) : PyErr_NoMemory();
}
PyObject *flb_emit_drain(PyObject *m, PyObject *unused) {
    Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&mutex);
    while (active) pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}
/* Jobs that wait or run, and machines. */
PyObject *flb_emit_load(PyObject *m, PyObject *unused) {
    pthread_mutex_lock(&mutex);
    int jobs = active;
    for (Job *job = first; job; job = job->next) jobs++;
    int all = n_machines;
    pthread_mutex_unlock(&mutex);
    return Py_BuildValue("ii", jobs, all);
}
/* In the child of a fork, which has none of the threads. */
PyObject *flb_emit_forked(PyObject *m, PyObject *unused) {
    pthread_mutex_init(&mutex, NULL);
    pthread_cond_init(&changed, NULL);
    active = 0;
    memset(busy, 0, sizeof busy);
    Py_RETURN_NONE;
}
