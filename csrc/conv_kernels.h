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

static inline __attribute__((always_inline)) void NAME(add_row)(T *restrict to, const T *restrict from, int64_t n) {
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

/* Rows (channel, tap) of channels [c0, c1) and columns [q0, q1) of (image, output position): what each tap reads, in `cols`, rows of q1 - q0. */
CLONES static void NAME(gather)(const Conv *c, const T *x, int64_t c0, int64_t c1, int64_t q0, int64_t q1, T *cols) {
    int64_t positions = c->out[0] * c->out[1] * c->out[2], plane = c->in[0] * c->in[1] * c->in[2], width = q1 - q0, sw = c->stride[2];
    int64_t n0 = q0 / positions, rest = q0 % positions, ow0 = rest % c->out[2], oh0 = rest / c->out[2] % c->out[1];
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
                            const T *row = x + (n * c->channels + ch) * plane + (id * c->in[1] + ih) * c->in[2] + first;
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
                            const T *row = x + (n * c->channels + ch) * plane + (id * c->in[1] + ih) * c->in[2] + first;
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
CLONES static void NAME(scatter)(const Conv *c, T *x, int64_t c0, int64_t c1, int64_t q0, int64_t q1, const T *cols) {
    int64_t positions = c->out[0] * c->out[1] * c->out[2], plane = c->in[0] * c->in[1] * c->in[2], width = q1 - q0, sw = c->stride[2];
    int64_t n0 = q0 / positions, rest = q0 % positions, ow0 = rest % c->out[2], oh0 = rest / c->out[2] % c->out[1];
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
                            T *row = x + (n * c->channels + ch) * plane + (id * c->in[1] + ih) * c->in[2] + first;
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
                            T *row = x + (n * c->channels + ch) * plane + (id * c->in[1] + ih) * c->in[2] + first;
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

/* One output channel of one image from one input channel: for few channels a group, where a matrix product has nothing to share. */
CLONES static void NAME(slide)(const Conv *c, const T *x, const T *w, T *y) {
    int64_t sw = c->stride[2];
    for (int64_t kd = 0; kd < c->kernel[0]; kd++)
        for (int64_t kh = 0; kh < c->kernel[1]; kh++)
            for (int64_t kw = 0; kw < c->kernel[2]; kw++) {
                T f = *w++;
                int64_t dlo, dhi, hlo, hhi, lo, hi;
                NAME(inside)(c, 0, kd, &dlo, &dhi);
                NAME(inside)(c, 1, kh, &hlo, &hhi);
                NAME(inside)(c, 2, kw, &lo, &hi);
                for (int64_t od = dlo; od < dhi; od++)
                    for (int64_t oh = hlo; oh < hhi; oh++) {
                        int64_t id = od * c->stride[0] - c->padding[0] + kd * c->dilation[0];
                        int64_t ih = oh * c->stride[1] - c->padding[1] + kh * c->dilation[1];
                        const T *row = x + (id * c->in[1] + ih) * c->in[2] + kw * c->dilation[2] - c->padding[2];
                        T *to = y + (od * c->out[1] + oh) * c->out[2];
                        if (sw == 1)
                            for (int64_t i = lo; i < hi; i++) to[i] += f * row[i];
                        else
                            for (int64_t i = lo; i < hi; i++) to[i] += f * row[i * sw];
                    }
            }
}

/* Its adjoints: with respect to the input (adds to x), and to the weight (adds to w). */
CLONES static void NAME(slide_input)(const Conv *c, T *x, const T *w, const T *y) {
    int64_t sw = c->stride[2];
    for (int64_t kd = 0; kd < c->kernel[0]; kd++)
        for (int64_t kh = 0; kh < c->kernel[1]; kh++)
            for (int64_t kw = 0; kw < c->kernel[2]; kw++) {
                T f = *w++;
                int64_t dlo, dhi, hlo, hhi, lo, hi;
                NAME(inside)(c, 0, kd, &dlo, &dhi);
                NAME(inside)(c, 1, kh, &hlo, &hhi);
                NAME(inside)(c, 2, kw, &lo, &hi);
                for (int64_t od = dlo; od < dhi; od++)
                    for (int64_t oh = hlo; oh < hhi; oh++) {
                        int64_t id = od * c->stride[0] - c->padding[0] + kd * c->dilation[0];
                        int64_t ih = oh * c->stride[1] - c->padding[1] + kh * c->dilation[1];
                        T *row = x + (id * c->in[1] + ih) * c->in[2] + kw * c->dilation[2] - c->padding[2];
                        const T *from = y + (od * c->out[1] + oh) * c->out[2];
                        if (sw == 1)
                            for (int64_t i = lo; i < hi; i++) row[i] += f * from[i];
                        else
                            for (int64_t i = lo; i < hi; i++) row[i * sw] += f * from[i];
                    }
            }
}

CLONES static void NAME(slide_weight)(const Conv *c, const T *x, T *w, const T *y) {
    int64_t sw = c->stride[2];
    for (int64_t kd = 0; kd < c->kernel[0]; kd++)
        for (int64_t kh = 0; kh < c->kernel[1]; kh++)
            for (int64_t kw = 0; kw < c->kernel[2]; kw++) {
                int64_t dlo, dhi, hlo, hhi, lo, hi;
                NAME(inside)(c, 0, kd, &dlo, &dhi);
                NAME(inside)(c, 1, kh, &hlo, &hhi);
                NAME(inside)(c, 2, kw, &lo, &hi);
                T part[8] = {0};  /* eight sums side by side: vector code, and a smaller error */
                for (int64_t od = dlo; od < dhi; od++)
                    for (int64_t oh = hlo; oh < hhi; oh++) {
                        int64_t id = od * c->stride[0] - c->padding[0] + kd * c->dilation[0];
                        int64_t ih = oh * c->stride[1] - c->padding[1] + kh * c->dilation[1];
                        const T *row = x + (id * c->in[1] + ih) * c->in[2] + kw * c->dilation[2] - c->padding[2];
                        const T *from = y + (od * c->out[1] + oh) * c->out[2];
                        int64_t i = lo;
                        if (sw == 1)
                            for (; i + 8 <= hi; i += 8)
                                for (int j = 0; j < 8; j++) part[j] += from[i + j] * row[i + j];
                        for (; i < hi; i++) part[i & 7] += from[i] * row[i * sw];
                    }
                *w++ += ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
            }
}
