/* The loops of conv.c for one element type: included with T (the type) and NAME(x) (its suffix). */

/* The part of an output row of tap offset `k` that lies inside the input row: [lo, hi). */
static inline void NAME(inside)(const Conv *c, int d, int64_t k, int64_t *lo, int64_t *hi) {
    int64_t first = k * c->dilation[d] - c->padding[d], s = c->stride[d];
    int64_t last = c->in[d] - 1 - first;
    *lo = first >= 0 ? 0 : s == 1 ? -first : (-first + s - 1) / s;
    *hi = last < 0 ? 0 : (s == 1 ? last : last / s) + 1;
    if (*hi > c->out[d]) *hi = c->out[d];
    if (*lo > *hi) *lo = *hi;
}

/* Short rows, mostly: whole vectors, the last one overlapping its neighbour. */
static inline __attribute__((always_inline)) void NAME(copy_row)(T *to, const T *from, int64_t n) {
    if (n >= 16) {
        for (int64_t i = 0; i + 16 <= n; i += 16) memcpy(to + i, from + i, 16 * sizeof(T));
        memcpy(to + n - 16, from + n - 16, 16 * sizeof(T));
    } else if (n >= 8) {
        memcpy(to, from, 8 * sizeof(T));
        memcpy(to + n - 8, from + n - 8, 8 * sizeof(T));
    } else if (n >= 4) {
        memcpy(to, from, 4 * sizeof(T));
        memcpy(to + n - 4, from + n - 4, 4 * sizeof(T));
    } else {
        if (n > 0) to[0] = from[0];
        if (n > 1) to[1] = from[1];
        if (n > 2) to[2] = from[2];
    }
}

static inline __attribute__((always_inline)) void NAME(add_row)(T *restrict to, const T *restrict from,
                                                                int64_t n) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++) to[i + j] += from[i + j];
    if (i + 8 <= n) {
        for (int j = 0; j < 8; j++) to[i + j] += from[i + j];
        i += 8;
    }
    if (i + 4 <= n) {
        for (int j = 0; j < 4; j++) to[i + j] += from[i + j];
        i += 4;
    }
    if (i < n) to[i] += from[i];
    if (i + 1 < n) to[i + 1] += from[i + 1];
    if (i + 2 < n) to[i + 2] += from[i + 2];
}

static inline __attribute__((always_inline)) void NAME(biased_row)(T *to, const T *from, T f, int64_t n) {
    typedef T Four __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias));
    typedef T Many __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));
    enum { MANY = 64 / sizeof(T) };
    int64_t i = 0;
    for (; i + MANY <= n; i += MANY) *(Many *)(to + i) = *(const Many *)(from + i) + f;
    for (; i + 4 <= n; i += 4) *(Four *)(to + i) = *(const Four *)(from + i) + f;
    for (; i < n; i++) to[i] = from[i] + f;
}

/* Runs of n, `count` of each of `rows`: to[r * tr + k * tk ...] = from[r * fr + k * fk ...] (+ bias[r]). They
 * may be the same ones. */
BY_LEVEL(static void, NAME(move_runs),
         (T * to, int64_t tr, int64_t tk, const T *from, int64_t fr, int64_t fk, int64_t rows, int64_t count,
          int64_t n, const T *bias),
         (to, tr, tk, from, fr, fk, rows, count, n, bias)) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < count; k++) {
            if (bias) NAME(biased_row)(to + r * tr + k * tk, from + r * fr + k * fk, bias[r], n);
            else NAME(copy_row)(to + r * tr + k * tk, from + r * fr + k * fk, n);
        }
}

/* Rows (channel, tap) of channels [c0, c1) and columns [q0, q1) of (image, output position): what each tap
 * reads, in `cols`, rows of q1 - q0. */
BY_LEVEL(static void, NAME(gather),
         (const Conv *c, const T *x, int64_t c0, int64_t c1, int64_t q0, int64_t q1, T *cols),
         (c, x, c0, c1, q0, q1, cols)) {
    int64_t positions = c->out[0] * c->out[1] * c->out[2], plane = c->in[0] * c->in[1] * c->in[2],
            width = q1 - q0, sw = c->stride[2];
    int64_t n0 = q0 / positions, rest = q0 % positions, ow0 = rest % c->out[2],
            oh0 = rest / c->out[2] % c->out[1];
    int64_t od0 = rest / c->out[2] / c->out[1];
    for (int64_t ch = c0; ch < c1; ch++)
        for (int64_t kd = 0; kd < c->kernel[0]; kd++)
            for (int64_t kh = 0; kh < c->kernel[1]; kh++)
                for (int64_t kw = 0; kw < c->kernel[2]; kw++, cols += width) {
                    int64_t lo, hi, first = kw * c->dilation[2] - c->padding[2];
                    NAME(inside)(c, 2, kw, &lo, &hi);
                    int64_t n = n0, od = od0, oh = oh0, ow = ow0;
                    T *to = cols;
                    for (int64_t left = width; left > 0;) {
                        int64_t len = c->out[2] - ow < left ? c->out[2] - ow : left;
                        int64_t id = od * c->stride[0] - c->padding[0] + kd * c->dilation[0];
                        int64_t ih = oh * c->stride[1] - c->padding[1] + kh * c->dilation[1];
                        if (sw == 1 && !ow && left >= c->out[2] && id >= 0 && id < c->in[0]) {
                            /* whole rows of one plane */
                            int64_t w = c->out[2], rows = c->out[1] - oh, step = c->stride[1];
                            if (rows * w > left) rows = left / w;
                            const T *row =
                                x + (n * c->channels + ch) * plane + (id * c->in[1] + ih) * c->in[2] + first;
                            for (int64_t r = 0; r < rows; r++, to += w, row += step * c->in[2], ih += step) {
                                if (ih < 0 || ih >= c->in[1]) {
                                    memset(to, 0, w * sizeof(T));
                                    continue;
                                }
                                for (int64_t i = 0; i < lo; i++) to[i] = 0;
                                NAME(copy_row)(to + lo, row + lo, hi - lo);
                                for (int64_t i = hi; i < w; i++) to[i] = 0;
                            }
                            left -= rows * w;
                            if ((oh += rows) == c->out[1]) {
                                oh = 0;
                                if (++od == c->out[0]) od = 0, n++;
                            }
                            continue;
                        }
                        if (id < 0 || id >= c->in[0] || ih < 0 || ih >= c->in[1]) {
                            for (int64_t i = 0; i < len; i++) to[i] = 0;
                        } else {
                            const T *row =
                                x + (n * c->channels + ch) * plane + (id * c->in[1] + ih) * c->in[2] + first;
                            int64_t a = lo > ow ? lo : ow, b = hi < ow + len ? hi : ow + len, i = ow;
                            for (; i < a && i < ow + len; i++) to[i - ow] = 0;
                            if (sw == 1) {
                                if (b > i) memcpy(to + (i - ow), row + i, (b - i) * sizeof(T)), i = b;
                            } else
                                for (; i < b; i++) to[i - ow] = row[i * sw];
                            for (; i < ow + len; i++) to[i - ow] = 0;
                        }
                        to += len, left -= len, ow = 0;
                        if (++oh == c->out[1]) {
                            oh = 0;
                            if (++od == c->out[0]) od = 0, n++;
                        }
                    }
                }
}

/* The adjoint of gather: adds `cols` to x. */
BY_LEVEL(static void, NAME(scatter),
         (const Conv *c, T *x, int64_t c0, int64_t c1, int64_t q0, int64_t q1, const T *cols),
         (c, x, c0, c1, q0, q1, cols)) {
    int64_t positions = c->out[0] * c->out[1] * c->out[2], plane = c->in[0] * c->in[1] * c->in[2],
            width = q1 - q0, sw = c->stride[2];
    int64_t n0 = q0 / positions, rest = q0 % positions, ow0 = rest % c->out[2],
            oh0 = rest / c->out[2] % c->out[1];
    int64_t od0 = rest / c->out[2] / c->out[1];
    for (int64_t ch = c0; ch < c1; ch++)
        for (int64_t kd = 0; kd < c->kernel[0]; kd++)
            for (int64_t kh = 0; kh < c->kernel[1]; kh++)
                for (int64_t kw = 0; kw < c->kernel[2]; kw++, cols += width) {
                    int64_t lo, hi, first = kw * c->dilation[2] - c->padding[2];
                    NAME(inside)(c, 2, kw, &lo, &hi);
                    int64_t n = n0, od = od0, oh = oh0, ow = ow0;
                    const T *from = cols;
                    for (int64_t left = width; left > 0;) {
                        int64_t len = c->out[2] - ow < left ? c->out[2] - ow : left;
                        int64_t id = od * c->stride[0] - c->padding[0] + kd * c->dilation[0];
                        int64_t ih = oh * c->stride[1] - c->padding[1] + kh * c->dilation[1];
                        if (sw == 1 && !ow && left >= c->out[2] && id >= 0 && id < c->in[0]) {
                            int64_t w = c->out[2], rows = c->out[1] - oh, step = c->stride[1];
                            if (rows * w > left) rows = left / w;
                            T *row =
                                x + (n * c->channels + ch) * plane + (id * c->in[1] + ih) * c->in[2] + first;
                            for (int64_t r = 0; r < rows; r++, from += w, row += step * c->in[2], ih += step)
                                if (ih >= 0 && ih < c->in[1]) NAME(add_row)(row + lo, from + lo, hi - lo);
                            left -= rows * w;
                            if ((oh += rows) == c->out[1]) {
                                oh = 0;
                                if (++od == c->out[0]) od = 0, n++;
                            }
                            continue;
                        }
                        if (id >= 0 && id < c->in[0] && ih >= 0 && ih < c->in[1]) {
                            T *row =
                                x + (n * c->channels + ch) * plane + (id * c->in[1] + ih) * c->in[2] + first;
                            int64_t a = lo > ow ? lo : ow, b = hi < ow + len ? hi : ow + len;
                            if (sw == 1)
                                for (int64_t i = a; i < b; i++) row[i] += from[i - ow];
                            else
                                for (int64_t i = a; i < b; i++) row[i * sw] += from[i - ow];
                        }
                        from += len, left -= len, ow = 0;
                        if (++oh == c->out[1]) {
                            oh = 0;
                            if (++od == c->out[0]) od = 0, n++;
                        }
                    }
                }
}

/* ---- few channels a group: each tap a shifted row
 * ------------------------------------------------------------------
 *
 * A padded plane is cut into phases, one for each remainder of the position by the stride: then the tap at
 * offset d = q * stride + r reads phase r at (position + q), whatever the stride, and positions of a whole
 * plane are one run of memory (a little longer than the plane: the places at the end of each row belong to no
 * position). */

#define MOST ((int64_t)(64 / sizeof(T))) /* room for a vector of any CPU */

/* Places of a padded plane. What falls outside is zero before, and stays so: they are the same for every
 * plane. */
static void NAME(fill_phases)(const Few *f, const T *x, T *to) {
    const Conv *c = f->c;
    if (f->phases == 1) { /* nothing to divide */
        int64_t most = f->extent[2] - c->padding[2], n = c->in[2] < most ? c->in[2] : most;
        for (int64_t id = 0; id < c->in[0] && id + c->padding[0] < f->extent[0]; id++)
            for (int64_t ih = 0; ih < c->in[1] && ih + c->padding[1] < f->extent[1]; ih++)
                NAME(copy_row)(to +
                                   ((id + c->padding[0]) * f->extent[1] + ih + c->padding[1]) * f->extent[2] +
                                   c->padding[2],
                               x + (id * c->in[1] + ih) * c->in[2], n);
        return;
    }
    for (int64_t id = 0; id < c->in[0]; id++) {
        int64_t pd = id + c->padding[0], jd = pd / c->stride[0];
        if (jd >= f->extent[0]) break;
        for (int64_t ih = 0; ih < c->in[1]; ih++) {
            int64_t ph = ih + c->padding[1], jh = ph / c->stride[1], sw = c->stride[2];
            if (jh >= f->extent[1]) break;
            T *base = to + (pd % c->stride[0] * c->stride[1] + ph % c->stride[1]) * sw * f->plane +
                (jd * f->extent[1] + jh) * f->extent[2];
            const T *row = x + (id * c->in[1] + ih) * c->in[2];
            int64_t most = f->extent[2] * sw - c->padding[2], n = c->in[2] < most ? c->in[2] : most;
            if (sw == 1) {
                NAME(copy_row)(base + c->padding[2], row, n);
                continue;
            }
            for (int64_t r = 0; r < sw; r++) { /* places i with (i + padding) % stride == r */
                int64_t i = (r - c->padding[2] % sw + sw) % sw;
                T *at = base + r * f->plane + (i + c->padding[2]) / sw;
                for (; i < n; i += sw) *at++ = row[i];
            }
        }
    }
}

/* The adjoint of fill_phases: reads the places that have an element. */
static void NAME(read_phases)(const Few *f, T *x, const T *from) {
    const Conv *c = f->c;
    int64_t sw = c->stride[2];
    for (int64_t id = 0; id < c->in[0]; id++)
        for (int64_t ih = 0; ih < c->in[1]; ih++) {
            int64_t pd = id + c->padding[0], jd = pd / c->stride[0], ph = ih + c->padding[1],
                    jh = ph / c->stride[1];
            T *row = x + (id * c->in[1] + ih) * c->in[2];
            if (jd >= f->extent[0] || jh >= f->extent[1]) {
                memset(row, 0, c->in[2] * sizeof(T));
                continue;
            }
            const T *base = from + (pd % c->stride[0] * c->stride[1] + ph % c->stride[1]) * sw * f->plane +
                (jd * f->extent[1] + jh) * f->extent[2];
            int64_t most = f->extent[2] * sw - c->padding[2],
                    n = c->in[2] < most ? c->in[2]
                : most > 0              ? most
                                        : 0;
            if (sw == 1) NAME(copy_row)(row, base + c->padding[2], n);
            else
                for (int64_t i = 0; i < n; i++)
                    row[i] = base[(i + c->padding[2]) % sw * f->plane + (i + c->padding[2]) / sw];
            for (int64_t i = n; i < c->in[2]; i++) row[i] = 0;
        }
}

static void NAME(spread_rows)(const Few *f, const T *y, T *to) {
    const int64_t *out = f->c->out;
    for (int64_t d = 0; d < out[0]; d++)
        for (int64_t h = 0; h < out[1]; h++)
            NAME(copy_row)(to + (d * f->extent[1] + h) * f->extent[2], y + (d * out[1] + h) * out[2], out[2]);
}

static void NAME(join_rows)(const Few *f, T *y, const T *from) {
    const int64_t *out = f->c->out;
    for (int64_t d = 0; d < out[0]; d++)
        for (int64_t h = 0; h < out[1]; h++)
            NAME(copy_row)(y + (d * out[1] + h) * out[2], from + (d * f->extent[1] + h) * f->extent[2],
                           out[2]);
}

#define BYTES 16
#define TARGET FAST()
#include "kernels/conv_taps.h"
#if defined(__x86_64__)
#define BYTES 32
#define TARGET FAST(target("avx2,fma"))
#include "kernels/conv_taps.h"
#define BYTES 64
#define TARGET FAST(target("avx512f,avx512vl,avx512dq,fma"))
#include "kernels/conv_taps.h"
#define VARIANTS(x) {JOINED(NAME(x), 16), JOINED(NAME(x), 32), JOINED(NAME(x), 64)}
#else
#define VARIANTS(x) {JOINED(NAME(x), 16)}
#endif
static void (*const NAME(by_level)[])(T *, int64_t, T, int64_t, const T *,
                                      const T *const *) = VARIANTS(correlate);
static void (*const NAME(weight_by_level)[])(T *, int64_t, int64_t, const T *, const T *const *,
                                             const T *) = VARIANTS(correlate_weight);
#if defined(__x86_64__)
#define VARIANTS_BELOW_64(x) {JOINED(NAME(x), 16), JOINED(NAME(x), 32)}
#else
#define VARIANTS_BELOW_64(x) {JOINED(NAME(x), 16)}
#endif
typedef void (*NAME(Square))(const T *, int64_t, int64_t, const T *, T, T *, int64_t, int64_t);
static const NAME(Square) NAME(squares_by_level)[] = VARIANTS_BELOW_64(squares);
#undef VARIANTS_BELOW_64
#undef VARIANTS

/* Pieces [begin, end): a group of an image (forward, input), or a group (weight). */
static void NAME(few_range)(const Few *f, int64_t begin, int64_t end) {
    const Conv *c = f->c;
    int64_t per = c->channels / c->groups, made = c->outputs / c->groups, taps = f->taps,
            ph = f->phases * f->plane, slack = 4 * MOST;
    int64_t in = c->in[0] * c->in[1] * c->in[2], out = c->out[0] * c->out[1] * c->out[2],
            row = f->front + f->plane + slack;
    int64_t count = taps * (per > made ? per : made), *shift = f->shift, *phase = f->phase;
    T *x = f->x, *w = f->w, *y = f->y;
    const T *bias = f->bias;
    int level = flb_cpu_level();
    char *room = flb_api->malloc((per * (ph + slack) + made * row + row + taps * per * made * MOST + count) *
                                     sizeof(T) +
                                 count * sizeof(T *) + 64);
    if (!room) {
        *f->failed = 1;
        return;
    }
    T *planes = (T *)room, *rows = planes + per * (ph + slack), *inside = rows + made * row,
      *sums = inside + row, *weights = sums + taps * per * made * MOST;
    const T **from = (const T **)(((uintptr_t)(weights + count) + 63) & ~(uintptr_t)63);
    memset(planes, 0, per * (ph + slack) * sizeof(T));
    memset(rows, 0, (made + 1) * row * sizeof(T));
    if (f->what == CONV_WEIGHT)
        for (int64_t d = 0; d < c->out[0]; d++)
            for (int64_t h = 0; h < c->out[1]; h++)
                memset(inside + f->front + (d * f->extent[1] + h) * f->extent[2], 255, c->out[2] * sizeof(T));
    int squares =
        f->what != CONV_WEIGHT && squares_fit(c, f->what == CONV_FORWARD ? c->out : c->in, sizeof(T));
    NAME(Square) square = squares ? NAME(squares_by_level)[level] : NULL;
    int64_t ready = begin, block = f->what == CONV_FORWARD ? made : per,
            plane = (f->what == CONV_FORWARD ? out : in) * block * (int64_t)sizeof(T);
    for (int64_t i = begin; i < end; i++) {
        int64_t g = f->what == CONV_WEIGHT ? i : i % c->groups,
                n = f->what == CONV_WEIGHT ? 0 : i / c->groups,
                last = f->what == CONV_WEIGHT ? c->images : n + 1;
        if (f->what == CONV_WEIGHT) memset(sums, 0, taps * per * made * MOST * sizeof(T));
        for (; n < last; n++) {
            T *xs = x + (n * c->channels + g * per) * in, *ys = y + (n * c->outputs + g * made) * out;
            if (f->what != CONV_INPUT)
                for (int64_t k = 0; k < per; k++)
                    NAME(fill_phases)(f, xs + k * in, planes + k * (ph + slack));
            if (f->what != CONV_FORWARD)
                for (int64_t o = 0; o < made; o++)
                    NAME(spread_rows)(f, ys + o * out, rows + o * row + f->front);
            if (squares) {
                const T *own = w + g * taps;
                for (int64_t t = 0; t < taps; t++)
                    weights[t] = f->what == CONV_FORWARD ? own[t] : own[taps - 1 - t];
                int forward = f->what == CONV_FORWARD;
                const T *source = forward ? planes : rows + c->padding[1] * f->extent[2] + c->padding[2];
                T start = forward && bias ? bias[g] : 0;
                const int64_t *to = forward ? c->out : c->in;
                square(source, f->extent[2], c->kernel[2], weights, start, forward ? ys : xs, to[1], to[2]);
            } else if (f->what == CONV_FORWARD) {
                for (int64_t o = 0; o < made; o++) {
                    for (int64_t k = 0, t = 0; k < per; k++)
                        for (int64_t j = 0; j < taps; j++, t++)
                            from[t] = planes + k * (ph + slack) + phase[j] * f->plane + shift[j];
                    NAME(by_level)
                    [level](rows, f->run, bias ? bias[g *made + o] : 0, per *taps,
                            w + (g *made + o) *per *taps, from);
                    NAME(join_rows)(f, ys + o * out, rows);
                }
            } else if (f->what == CONV_INPUT) {
                for (int64_t k = 0; k < per; k++) {
                    for (int64_t r = 0; r < f->phases; r++) {
                        int64_t t = 0;
                        for (int64_t o = 0; o < made; o++)
                            for (int64_t j = 0; j < taps; j++)
                                if (phase[j] == r)
                                    from[t] = rows + o * row + f->front - shift[j],
                                    weights[t++] = w[((g * made + o) * per + k) * taps + j];
                        NAME(by_level)[level](planes + r * f->plane, f->plane, 0, t, weights, from);
                    }
                    NAME(read_phases)(f, xs + k * in, planes);
                }
            } else {
                for (int64_t o = 0; o < made; o++)
                    for (int64_t k = 0; k < per; k++) {
                        for (int64_t j = 0; j < taps; j++)
                            from[j] = planes + k * (ph + slack) + phase[j] * f->plane + shift[j];
                        NAME(weight_by_level)
                        [level](sums + (o *per + k) *taps *MOST, f->run, taps, rows + o *row + f->front, from,
                                inside + f->front);
                    }
            }
        }
        if (f->what == CONV_WEIGHT)
            for (int64_t t = 0; t < taps * per * made; t++) {
                const T *s = sums + t * MOST;
                T half[MOST / 2];
                for (int k = 0; k < MOST / 2; k++) half[k] = s[k] + s[k + MOST / 2];
                for (int m = MOST / 4; m; m /= 2)
                    for (int k = 0; k < m; k++) half[k] += half[k + m];
                w[g * made * per * taps + t] = half[0];
            }
        if (f->planes && (i + 1 == end || (i + 1 - ready) * plane >= TOGETHER)) {
            f->planes->take(f->planes->context, ready * block, (i + 1) * block);
            ready = i + 1;
        }
    }
    flb_api->free(room);
}
#undef MOST

/* Elements [begin, end) of w: sums of `parts` arrays of `size`. */
BY_LEVEL(static void, NAME(add_parts),
         (const T *sums, int64_t parts, int64_t size, T *w, int64_t begin, int64_t end),
         (sums, parts, size, w, begin, end)) {
    for (int64_t i = begin; i < end; i += 256) {
        int64_t n = end - i < 256 ? end - i : 256;
        double d[256] = {0};
        for (int64_t p = 0; p < parts; p++)
            for (int64_t k = 0; k < n; k++) d[k] += sums[p * size + i + k];
        for (int64_t k = 0; k < n; k++) w[i + k] = (T)d[k];
    }
}
