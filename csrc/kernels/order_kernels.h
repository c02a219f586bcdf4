/* The methods of order.c for one width of keys: included with Key, Pair (a key with a place of BITS bits
 * behind it), BITS, NAME(x), and LONG for keys of 64 bits. */

FAST static void NAME(pairs)(const char *line, int kind, Key flip, int64_t from, int64_t n, Pair *to) {
    switch (kind) {
#ifdef LONG
    case ELEMENT_F64: KEYS(uint64_t, of_f64)
    case ELEMENT_I64: KEYS(uint64_t, of_i64)
#else
    case ELEMENT_F32: KEYS(uint32_t, of_f32)
    case ELEMENT_I32: KEYS(uint32_t, of_i32)
    case ELEMENT_I16: KEYS(uint16_t, of_i16)
    case ELEMENT_I8: KEYS(uint8_t, of_i8)
    case ELEMENT_U8: KEYS(uint8_t, of_u8)
    case ELEMENT_F16: KEYS(uint16_t, of_f16)
    case ELEMENT_BF16: KEYS(uint16_t, of_bf16)
#endif
    }
}

static void NAME(insert)(Pair *a, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        Pair x = a[i];
        int64_t j = i;
        for (; j && a[j - 1] > x; j--) a[j] = a[j - 1];
        a[j] = x;
    }
}

#define DIGITS (int)sizeof(Key)

/* Sorted by their keys, stably, digit by digit; a digit that all have is left out. Where the result is: a or
 * b. */
FAST static Pair *NAME(radix)(Pair *a, Pair *b, int64_t n) {
    uint32_t count[sizeof(Key)][256];
    memset(count, 0, sizeof count);
    for (int64_t i = 0; i < n; i++) {
        Key key = (Key)(a[i] >> BITS);
        for (int d = 0; d < DIGITS; d++) count[d][key >> 8 * d & 255]++;
    }
    for (int d = 0; d < DIGITS; d++) {
        int shift = BITS + 8 * d;
        uint32_t *at = count[d], sum = 0;
        if (at[(int)(a[0] >> shift & 255)] == n) continue;
        for (int i = 0; i < 256; i++) {
            uint32_t here = at[i];
            at[i] = sum, sum += here;
        }
        for (int64_t i = 0; i < n; i++) b[at[(int)(a[i] >> shift & 255)]++] = a[i];
        Pair *other = a;
        a = b, b = other;
    }
    return a;
}

static Pair *NAME(sorted)(Pair *a, Pair *b, int64_t n) {
    if (n > 40) return NAME(radix)(a, b, n);
    NAME(insert)(a, n);
    return a;
}

/* The pair that stands at `rank` in order; a is left in disorder, b is as large. By digits from the highest:
 * those of the digit of the wanted one remain. */
FAST static Pair NAME(select)(Pair *a, Pair *b, int64_t n, int64_t rank) {
    for (int shift = BITS + 8 * DIGITS - 8; n > 40 && shift >= 0; shift -= 8) {
        uint32_t count[256] = {0};
        for (int64_t i = 0; i < n; i++) count[(int)(a[i] >> shift & 255)]++;
        int digit = 0;
        while (rank >= count[digit]) rank -= count[digit++];
        if (count[digit] == n) continue;
        int64_t m = 0;
        for (int64_t i = 0; i < n; i++) {
            b[m] = a[i];
            m += (int)(a[i] >> shift & 255) == digit;
        }
        Pair *other = a;
        a = b, b = other, n = m;
    }
    NAME(insert)(a, n);
    return a[rank];
}

#define BLOCK 512

/* The first k pairs of a line, in disorder, in a (room for 4 k + BLOCK + n / 8; b as well): those that are
 * smaller than the k-th of all so far are collected. */
FAST static void NAME(first)(const Order *o, const char *line, Key flip, Pair *a, Pair *b) {
    Pair part[BLOCK], limit = ~(Pair)0;
    int64_t have = 0, room = 4 * o->k;
    int item = item_of[o->kind];
    for (int64_t i = 0; i < o->n; i += BLOCK) {
        int64_t m = o->n - i < BLOCK ? o->n - i : BLOCK;
        NAME(pairs)(line + i * item, o->kind, flip, i, m, part);
        for (int64_t j = 0; j < m; j++) {
            a[have] = part[j];
            have += part[j] < limit;
        }
        if (have < room && i + m < o->n) continue;
        if (have <= o->k) continue;
        memcpy(b, a, have * sizeof *a);
        Pair *other = b + have, most = NAME(select)(b, other, have, o->k - 1);
        int64_t kept = 0;
        for (int64_t j = 0; j < have; j++) {
            a[kept] = a[j];
            kept += a[j] <= most;
        }
        have = kept, limit = most;
    }
}

/* The first k <= FEW pairs of a line in order, in a: each element that is smaller than the last of them finds
 * its place among them. */
FAST static void NAME(leading)(const Order *o, const char *line, Key flip, Pair *a) {
    Pair part[BLOCK], last = ~(Pair)0;
    int64_t have = 0;
    int item = item_of[o->kind];
    for (int64_t i = 0; i < o->n; i += BLOCK) {
        int64_t m = o->n - i < BLOCK ? o->n - i : BLOCK;
        NAME(pairs)(line + i * item, o->kind, flip, i, m, part);
        for (int64_t j = 0; j < m; j++) {
            Pair x = part[j];
            if (x >= last) continue;
            int64_t at = have < o->k ? have++ : o->k - 1;
            for (; at && a[at - 1] > x; at--) a[at] = a[at - 1];
            a[at] = x;
            if (have == o->k) last = a[have - 1];
        }
    }
}

FAST static void NAME(lines)(void *context, int64_t begin, int64_t end) {
    Order *o = context;
    int item = item_of[o->kind], floats = flb_is_floating(o->kind);
    int64_t n = o->n, pairs = n;
    Key flip = o->descending ? ~(Key)0 : 0;
    int few = o->what == ORDER_FIRST && o->k < n / 8;
    if (few) pairs = 4 * o->k + 2 * BLOCK;
    /* Two arrays of pairs (the second of two parts where few are wanted), then the line. */
    char *room = flb_api->scratch((few ? 3 : 2) * pairs * sizeof(Pair) + n * item + 16);
    if (!room) {
        __atomic_store_n(&o->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    Pair *a = (Pair *)(((uintptr_t)room + 15) & ~(uintptr_t)15), *b = a + pairs;
    char *side = (char *)(b + (few ? 2 : 1) * pairs);
    for (int64_t l = begin; l < end; l++) {
        int64_t at[3] = {0}, rest = l;
        for (int d = o->ndim - 1; d >= 0; d--) {
            int64_t here = rest % o->shape[d];
            rest /= o->shape[d];
            for (int i = 0; i < 3; i++) at[i] += here * o->strides[i][d];
        }
        const char *line = gather(o->from + at[0], o->step[0], item, n, side);
        char *values = o->values + at[1], *places = o->places + at[2];
        Pair *found = a, one;
        int64_t many = n;
        if (o->what == ORDER_FIRST && o->k <= FEW) {
            NAME(leading)(o, line, flip, a);
            many = o->k;
        } else if (few) {
            NAME(first)(o, line, flip, a, b);
            many = o->k;
            found = NAME(sorted)(a, b, many);
        } else {
            NAME(pairs)(line, o->kind, flip, 0, n, a);
            if (o->what == ORDER_WHOLE || o->what == ORDER_FIRST) {
                found = NAME(sorted)(a, b, n);
                many = o->what == ORDER_WHOLE ? n : o->k;
            } else {
                int64_t rank = o->k, nans = 0;
                if (o->what != ORDER_RANK && floats)
                    for (int64_t i = 0; i < n; i++) nans += (Key)(a[i] >> BITS) == (Key) ~(Key)0;
                if (o->what == ORDER_MEDIAN) rank = nans ? n - nans : (n - 1) / 2;
                if (o->what == ORDER_NANMEDIAN) rank = nans == n ? 0 : (n - nans - 1) / 2;
                one = NAME(select)(a, b, n, rank);
                found = &one, many = 1;
            }
        }
#define WRITE(T)                                                    \
    for (int64_t i = 0; i < many; i++) {                            \
        int64_t place = (int64_t)(found[i] & (Pair) ~(Key)0);       \
        *(T *)(values + i * o->step[1]) = ((const T *)line)[place]; \
        *(int64_t *)(places + i * o->step[2]) = place;              \
    }
#ifdef LONG
        WRITE(uint64_t)
#else
        if (item == 4) WRITE(uint32_t)
        else if (item == 2) WRITE(uint16_t)
        else WRITE(uint8_t)
#endif
    }
    flb_api->free(room);
}
#undef WRITE
#undef DIGITS
#undef BLOCK
