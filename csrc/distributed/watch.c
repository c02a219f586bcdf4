/* One connection of each rank to the job's server (distributed/server.py), kept by a thread that never waits
 * for the GIL: a rank in a long native call still answers.
 *
 * It sends 'h' each half second and 'b' before it goes. It is told 'L' and a rank that has left, or 'D', a
 * rank, a length and a text: that rank died, and this process ends with the text and status 1. So does it
 * when the server is gone. Numbers are four bytes, big-endian. */
#include "distributed/watch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST_WATCHED = 1 << 16, BEAT_MS = 500 };
static _Atomic uint8_t left[MOST_WATCHED];
static _Atomic int stopping;
static int connection = -1, own_rank, prepared;
static pthread_t thread;

int flb_has_left(int rank) { return rank >= 0 && rank < MOST_WATCHED && atomic_load(&left[rank]); }

static void end_process(const char *text) {
    char line[2300];
    int n = snprintf(line, sizeof line, "[rank %d] ended: %s\n", own_rank, text);
    if (n > (int)sizeof line - 1) n = sizeof line - 1;
    ssize_t ignored = write(2, line, n);
    (void)ignored;
    _exit(1);
}
/* All of n bytes; 0 when the other end is gone. */
static int read_all(void *to, size_t n) {
    for (size_t got = 0; got < n;) {
        ssize_t r = recv(connection, (char *)to + got, n - got, 0);
        if (r < 0 && errno == EINTR) continue;
        if (r <= 0) return 0;
        got += r;
    }
    return 1;
}
static int take_message(void) {
    char code, text[2048];
    uint32_t rank, length;
    if (!read_all(&code, 1) || !read_all(&rank, 4)) return 0;
    rank = ntohl(rank);
    if (rank < MOST_WATCHED) atomic_store(&left[rank], 1);
    if (code != 'D') return 1;
    if (!read_all(&length, 4)) return 0;
    length = ntohl(length);
    if (length >= sizeof text || !read_all(text, length)) return 0;
    text[length] = 0;
    end_process(text);
    return 1;
}
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static void *keep(void *ignored) {
    double beat = 0;
    while (!atomic_load(&stopping)) {
        if (now() - beat >= 1e-3 * BEAT_MS) {
            send(connection, "h", 1, MSG_NOSIGNAL);
            beat = now();
        }
        struct pollfd p = {.fd = connection, .events = POLLIN};
        int r = poll(&p, 1, BEAT_MS);
        if (atomic_load(&stopping)) break;
        if (r > 0 && !take_message() && !atomic_load(&stopping))
            end_process("the server of the job is gone: the launcher, or the process of rank 0's host that "
                        "kept the store");
    }
    return ignored;
}
/* A forked process isn't the rank: it must not keep the connection open when the rank dies. */
static void in_child(void) {
    if (connection >= 0) close(connection);
    connection = -1;
}
PyObject *flb_watch(PyObject *Py_UNUSED(module), PyObject *args) {
    int descriptor;
    if (!PyArg_ParseTuple(args, "ii", &descriptor, &own_rank)) return NULL;
    if (connection >= 0) return PyErr_SetString(PyExc_RuntimeError, "this process is watched already"), NULL;
    if (!prepared) pthread_atfork(NULL, NULL, in_child);
    prepared = 1;
    connection = descriptor;
    memset((void *)left, 0, sizeof left);
    atomic_store(&stopping, 0);
    int r = pthread_create(&thread, NULL, keep, NULL);
    if (r) {
        connection = -1;
        errno = r;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    Py_RETURN_NONE;
}
PyObject *flb_unwatch(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored)) {
    if (connection < 0) Py_RETURN_NONE;
    atomic_store(&stopping, 1);
    Py_BEGIN_ALLOW_THREADS;
    send(connection, "b", 1, MSG_NOSIGNAL);
    shutdown(connection, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(connection);
    Py_END_ALLOW_THREADS;
    connection = -1;
    Py_RETURN_NONE;
}
PyObject *flb_left(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored)) {
    PyObject *list = PyList_New(0);
    for (int k = 0; list && k < MOST_WATCHED; k++) {
        if (!flb_has_left(k)) continue;
        PyObject *rank = PyLong_FromLong(k);
        if (!rank || PyList_Append(list, rank) < 0) Py_CLEAR(list);
        Py_XDECREF(rank);
    }
    return list;
}
