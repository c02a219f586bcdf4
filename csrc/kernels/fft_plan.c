/* What the transforms of fft.c need for each length: radices of the stages and tables of roots of unity,
 * computed in long double, and kept. */
#include "kernels/fft.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#define PLANS 24 /* that are kept, and the most bytes of them all unless it is one */
#define KEPT ((int64_t)128 << 20)

int flb_fft_lanes(int f64) { return (16 << (FFT_LEVELS == 3 ? flb_cpu_level() : 0)) / (f64 ? 8 : 4); }

/* Roots of unity of order n: root k is high[k / step] low[k % step], each of an angle that was computed
 * exactly. */
typedef struct {
    int64_t n, step;
    long double *high, *low;
} Roots;

static void unit(int64_t k, int64_t n, long double *to) {
    const long double pi = 3.14159265358979323846264338327950288L;
    /* The angle 2 pi k / n from the nearest multiple of pi / 4. */
    int64_t eighth = (8 * k + n / 2) / n, rest = 8 * k - eighth * n;
    long double x = pi / 4 * rest / n, c = cosl(x), s = sinl(x),
                half = 0.707106781186547524400844362104849039L, t;
    if (eighth & 1) t = (c - s) * half, s = (c + s) * half, c = t;
    if (eighth & 2) t = -s, s = c, c = t;
    if (eighth & 4) c = -c, s = -s;
    to[0] = c, to[1] = -s;
}

static int open_roots(Roots *r, int64_t n) {
    r->n = n, r->step = 1;
    while (r->step * r->step < n) r->step *= 2;
    int64_t count = n / r->step + 1;
    if (!(r->high = malloc((size_t)(2 * (count + r->step)) * sizeof(long double)))) return -1;
    r->low = r->high + 2 * count;
    for (int64_t k = 0; k < count; k++) unit(k * r->step % n, n, r->high + 2 * k);
    for (int64_t k = 0; k < r->step; k++) unit(k % n, n, r->low + 2 * k);
    return 0;
}

/* Root k (k < n) as two numbers `apart` from each other. */
static void put_root(const Roots *r, int64_t k, int f64, void *to, int64_t at, int64_t apart) {
    const long double *a = r->high + 2 * (k / r->step), *b = r->low + 2 * (k % r->step);
    long double re = a[0] * b[0] - a[1] * b[1], im = a[0] * b[1] + a[1] * b[0];
    if (f64) ((double *)to)[at] = (double)re, ((double *)to)[at + apart] = (double)im;
    else ((float *)to)[at] = (float)re, ((float *)to)[at + apart] = (float)im;
}

static const uint8_t odd_radices[] = {3, 5, 7, 11, 13};

/* Stages for n points; 0: n has another prime factor. */
static int choose_radices(Stages *s, int64_t n) {
    s->n = n, s->count = 0;
    for (size_t i = 0; i < sizeof odd_radices; i++)
        for (; n % odd_radices[i] == 0; n /= odd_radices[i]) s->radix[s->count++] = odd_radices[i];
    while (n % 8 == 0 && n != 16) s->radix[s->count++] = 8, n /= 8;
    for (; n % 4 == 0; n /= 4) s->radix[s->count++] = 4;
    if (n % 2 == 0) s->radix[s->count++] = 2, n /= 2;
    return n == 1;
}

static void *fill_stages(Stages *s, const Roots *r, int f64, char *to) {
    int64_t m = s->n, item = f64 ? 8 : 4, every = r->n / s->n; /* between roots of order n */
    for (int i = 0; i < s->count; i++) {
        int64_t radix = s->radix[i], order = m;
        m /= radix;
        s->roots[i] = to;
        for (int64_t p = 0; p < m; p++)
            for (int64_t k = 1; k < radix; k++)
                put_root(r, p * k % order * (s->n / order) * every, f64, to, 2 * ((radix - 1) * p + k - 1),
                         1);
        to += 2 * (radix - 1) * m * item;
    }
    return (char *)(((uintptr_t)to + 63) & ~(uintptr_t)63);
}

static int64_t bytes_of_stages(const Stages *s, int64_t item) {
    int64_t m = s->n, sum = 64;
    for (int i = 0; i < s->count; i++) m /= s->radix[i], sum += 2 * (s->radix[i] - 1) * m * item;
    return sum;
}

/* A plan, its tables in the memory behind it. NULL: no memory, or (*fits is 0) a length that there are no
 * stages for. */
static Plan *make_plan(int64_t n, int f64, int real, int *fits) {
    int64_t item = f64 ? 8 : 4, lanes = flb_fft_lanes(f64), points = real && n % 2 == 0 ? n / 2 : n;
    Plan p = {.n = n, .f64 = f64, .real = real};
    if (!(*fits = choose_radices(&p.whole, points))) return NULL;
    int split = points % (lanes * lanes) == 0;
    if (split) choose_radices(&p.inner, points / lanes);
    int64_t halves = points < n ? (points / lanes + 1) * 2 * lanes * item : 0;
    int64_t size = bytes_of_stages(&p.whole, item) +
        (split ? bytes_of_stages(&p.inner, item) + 2 * points * item : 0) + halves;
    p.bytes = size;
    Plan *plan = malloc(sizeof p + 64 + (size_t)size);
    Roots roots;
    if (!plan || open_roots(&roots, n) < 0) {
        free(plan);
        return NULL;
    }
    *plan = p;
    char *to = (char *)(((uintptr_t)(plan + 1) + 63) & ~(uintptr_t)63);
    int64_t every = n / points;
    to = fill_stages(&plan->whole, &roots, f64, to);
    if (split) {
        to = fill_stages(&plan->inner, &roots, f64, to);
        plan->crossing = to;
        for (int64_t b = 0; b < points / lanes; b++) /* of point b, output c*/
            for (int64_t c = 0; c < lanes; c++)
                put_root(&roots, b * c * every, f64, to, (b / lanes * lanes + c) * 2 * lanes + b % lanes,
                         lanes);
        to += 2 * points * item;
    }
    plan->halves = to;
    for (int64_t k = 0; halves && k <= points; k++)
        put_root(&roots, k, f64, to, k / lanes * 2 * lanes + k % lanes, lanes);
    free(roots.high);
    return plan;
}

static pthread_mutex_t plans_lock = PTHREAD_MUTEX_INITIALIZER;
static Plan *plans[PLANS];

static void lock_plans(void) { pthread_mutex_lock(&plans_lock); }
static void unlock_plans(void) { pthread_mutex_unlock(&plans_lock); }
static void register_fork(void) {
    pthread_atfork(lock_plans, unlock_plans, unlock_plans);
} /* a child mustn't find them locked */

void flb_release_plan(Plan *plan) {
    pthread_mutex_lock(&plans_lock);
    int kept = 0;
    for (int i = 0; i < PLANS; i++) kept |= plans[i] == plan;
    if (!--plan->users && !kept) free(plan);
    pthread_mutex_unlock(&plans_lock);
}

/* Keep a plan in place of those that haven't been asked for longest. */
static void keep_plan(Plan *plan) {
    for (;;) {
        int oldest = -1, empty = -1;
        int64_t bytes = plan->bytes;
        for (int i = 0; i < PLANS; i++) {
            if (plans[i]) bytes += plans[i]->bytes;
            if (!plans[i]) empty = i;
            else if (oldest < 0 || plans[i]->used < plans[oldest]->used) oldest = i;
        }
        if (empty >= 0 && (bytes <= KEPT || oldest < 0)) {
            plans[empty] = plan;
            return;
        }
        if (!plans[oldest]->users) free(plans[oldest]); /* else its last user releases it */
        plans[oldest] = NULL;
    }
}

Plan *flb_take_plan(int64_t n, int f64, int real, int *fits) {
    static int64_t clock;
    Plan *found = NULL;
    static pthread_once_t at_fork = PTHREAD_ONCE_INIT;
    pthread_once(&at_fork, register_fork);
    *fits = 1;
    pthread_mutex_lock(&plans_lock);
    for (int i = 0; i < PLANS && !found; i++)
        if (plans[i] && plans[i]->n == n && plans[i]->f64 == f64 && plans[i]->real == real) found = plans[i];
    if (!found && (found = make_plan(n, f64, real, fits))) keep_plan(found);
    if (found) found->users++, found->used = ++clock;
    pthread_mutex_unlock(&plans_lock);
    return found;
}
