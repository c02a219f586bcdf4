/* What tests hand to csrc/device/nvidia.c as libcuda: memory of the host, and a record of what was asked for. Kernels aren't run. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char log_[1 << 16];
static size_t used;
static uint64_t pool[9];
const char *fake_log(void) { return log_; }
/* What a system may lack, by name in FAKE_LACKS. */
static int lacks(const char *what) {
    const char *all = getenv("FAKE_LACKS");
    return all && strstr(all, what) != NULL;
}
#define LOG(...) used += (size_t)snprintf(log_ + used, sizeof log_ - used, __VA_ARGS__)

int cuInit(unsigned flags) { return (int)flags; }
int cuGetErrorString(int r, const char **text) {
    return *text = r == 700 ? "an illegal address" : r == 222 ? "the provided PTX was compiled with an unsupported toolchain" : "another error", 0;
}
int cuDeviceGetCount(int *n) { return *n = 1, 0; }
int cuDeviceGet(int *d, int i) { return *d = i, 0; }
int cuDeviceGetName(char *name, int room, int d) { return snprintf(name, (size_t)room, "fake %d", d), 0; }
int cuDeviceGetAttribute(int *out, int what, int d) {
    (void)d;
    return *out = what == 75 ? 9 : what == 76 ? 0 : what == 10 ? 32 : what == 16 ? 132 : 1024, 0;
}
int cuDeviceTotalMem(size_t *n, int d) { return (void)d, *n = (size_t)1 << 34, 0; }
int cuDevicePrimaryCtxRetain(void **c, int d) { return (void)d, *c = &pool, lacks("context") ? 2 : 0; }
int cuCtxSetCurrent(void *c) { return c != &pool; }
int cuCtxSynchronize(void) { return LOG("synchronize\n"), 0; }
int cuMemGetInfo(size_t *free_, size_t *total) { return *free_ = 1 << 20, *total = 1 << 21, 0; }
int cuDeviceGetDefaultMemPool(void **p, int d) { return (void)d, *p = pool, lacks("pool") ? 801 : 0; }
int cuMemPoolGetAttribute(void *p, int what, void *out) { return (void)p, *(uint64_t *)out = pool[what], 0; }
int cuMemPoolSetAttribute(void *p, int what, void *in) { return (void)p, pool[what] = *(uint64_t *)in, 0; }
int cuMemPoolTrimTo(void *p, size_t n) { return (void)p, LOG("trim %zu\n", n), 0; }
int cuMemAllocAsync(uint64_t *out, size_t n, void *s) {
    (void)s;
    if (n > (size_t)1 << 30) return 2;
    uint64_t *block = aligned_alloc(256, (n + 511) / 256 * 256);
    block[0] = n;
    pool[7] += n;
    return *out = (uint64_t)(uintptr_t)(block + 32), 0;
}
int cuMemFreeAsync(uint64_t at, void *s);
int cuMemAlloc(uint64_t *out, size_t n) { return LOG("taken\n"), cuMemAllocAsync(out, n, NULL); }
int cuMemFree(uint64_t at) { return LOG("given back\n"), cuMemFreeAsync(at, NULL); }
int cuMemFreeAsync(uint64_t at, void *s) {
    (void)s;
    uint64_t *block = (uint64_t *)(uintptr_t)at - 32;
    pool[7] -= block[0];
    return free(block), 0;
}
static int copied(uint64_t to, uint64_t from, size_t n) { return memmove((void *)(uintptr_t)to, (void *)(uintptr_t)from, n), 0; }
int cuMemcpyHtoDAsync(uint64_t to, const void *from, size_t n, void *s) { return (void)s, copied(to, (uint64_t)(uintptr_t)from, n); }
int cuMemcpyDtoHAsync(void *to, uint64_t from, size_t n, void *s) { return (void)s, copied((uint64_t)(uintptr_t)to, from, n); }
int cuMemcpyDtoDAsync(uint64_t to, uint64_t from, size_t n, void *s) { return (void)s, copied(to, from, n); }
int cuMemcpyPeerAsync(uint64_t to, void *a, uint64_t from, void *b, size_t n, void *s) { return (void)a, (void)b, (void)s, copied(to, from, n); }
int cuMemsetD8Async(uint64_t to, unsigned char x, size_t n, void *s) { return (void)s, memset((void *)(uintptr_t)to, x, n), 0; }
int cuMemHostRegister(void *at, size_t n, unsigned flags) { return LOG("pinned %zu\n", n), !at || flags != 1; }
int cuMemHostUnregister(void *at) { return LOG("let go\n"), !at; }
int cuStreamCreate(void **s, unsigned flags) { return *s = malloc(1), flags != 1; }
int cuStreamQuery(void *s) { return s ? 600 : 0; }
int cuStreamSynchronize(void *s) { return (void)s, LOG("stream waited for\n"), 0; }
int cuStreamWaitEvent(void *s, void *e, unsigned flags) { return (void)s, LOG("wait\n"), !e || flags; }
int cuEventCreate(void **e, unsigned flags) { return (void)flags, *e = malloc(1), 0; }
int cuEventDestroy(void *e) { return free(e), 0; }
int cuEventRecord(void *e, void *s) { return (void)s, LOG("record\n"), !e; }
int cuEventQuery(void *e) { return (void)e, 0; }
int cuEventSynchronize(void *e) { return (void)e, 0; }
int cuEventElapsedTime(float *out, void *a, void *b) { return (void)a, (void)b, *out = 1.5f, 0; }
int cuModuleLoadData(void **m, const void *image) {
    if (!strncmp(image, "cubin", 5)) return lacks("cubin") ? 209 : (LOG("cubin\n"), *m = malloc(1), 0);
    if (lacks("ptx")) return 222;
    if (strncmp(image, "//", 2)) return 200;
    return LOG("module of %s\n", strstr(image, ".target sm_90") ? "sm_90" : "another architecture"), *m = malloc(1), 0;
}
int cuModuleGetFunction(void **f, void *m, const char *name) { return (void)m, LOG("function %c\n", name[0]), *f = malloc(1), 0; }
int cuLaunchKernel(void *f, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz, unsigned shared, void *s, void **p, void **e) {
    (void)f, (void)s;
    const uint64_t *arguments = p[0];
    LOG("launch %u %u %u of %u %u %u, %u, %d, first element %g\n", x, y, z, tx, ty, tz, shared, e != NULL, *(float *)(uintptr_t)arguments[0]);
    return x == 7 ? 700 : 0;
}
int cuStreamBeginCapture(void *s, int mode) { return LOG("begin %d\n", mode), !s; }
int cuStreamEndCapture(void *s, void **g) { return *g = malloc(1), !s; }
int cuGraphInstantiateWithFlags(void **out, void *g, unsigned long long flags) { return (void)g, *out = malloc(1), flags != 0; }
int cuGraphLaunch(void *g, void *s) { return (void)s, LOG("replay\n"), !g; }
int cuGraphExecDestroy(void *g) { return free(g), LOG("destroyed\n"), 0; }
int cuGraphDestroy(void *g) { return free(g), 0; }
