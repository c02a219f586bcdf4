/* The methods of order.c for one width of keys: included with Key, Signed (as wide), Pair (a key with a place
 * of BITS bits behind it), BITS, NAME(x), and LONG for keys of 64 bits. */

/* The elements whose keys are of this width, as cases of a switch: their memory's type, and what makes a key
 * of one. */
#ifdef LONG
#define ELEMENTS_OF_WIDTH(LOOP)              \
    case ELEMENT_F64: LOOP(uint64_t, of_f64) \
    case ELEMENT_I64: LOOP(uint64_t, of_i64)
#else
#define ELEMENTS_OF_WIDTH(LOOP)              \
    case ELEMENT_F32: LOOP(uint32_t, of_f32) \
    case ELEMENT_I32: LOOP(uint32_t, of_i32) \
    case ELEMENT_I16: LOOP(uint16_t, of_i16) \
    case ELEMENT_I8: LOOP(uint8_t, of_i8)    \
    case ELEMENT_U8: LOOP(uint8_t, of_u8)    \
    case ELEMENT_F16: LOOP(uint16_t, of_f16) \
    case ELEMENT_BF16: LOOP(uint16_t, of_bf16)
#endif

FAST static void NAME(pairs)(const char *line, int kind, Key flip, int64_t from, int64_t n, Pair *to) {
    switch (kind) { ELEMENTS_OF_WIDTH(KEYS) }
}

#define KEYS_ONLY(T, of)                                                            \
    for (int64_t i = 0; i < n; i++) to[i] = (Key)(of(((const T *)line)[i]) ^ flip); \
    break;

BY_LEVEL(static void, NAME(keys), (const char *line, int kind, Key flip, int64_t n, Key *to),
         (line, kind, flip, n, to)) {
    switch (kind) { ELEMENTS_OF_WIDTH(KEYS_ONLY) }
}
#undef KEYS_ONLY

/* How many keys are smaller than one, and equal to it. */
BY_LEVEL(static void, NAME(beside), (const Key *keys, int64_t n, Key key, int64_t *smaller, int64_t *equal),
         (keys, n, key, smaller, equal)) {
    *smaller = *equal = 0;
    for (int64_t from = 0; from < n; from += 1 << 30) {
        int64_t to = n - from < 1 << 30 ? n : from + (1 << 30);
        Key less = 0, same = 0; /* as wide as a key, so that a vector counts */
        for (int64_t i = from; i < to; i++) less += keys[i] < key, same += keys[i] == key;
        *smaller += (int64_t)less, *equal += (int64_t)same;
    }
}
/* The bits that all keys have, and that any has. */
BY_LEVEL(static void, NAME(bits), (const Key *keys, int64_t n, Key *in_all, Key *in_any),
         (keys, n, in_all, in_any)) {
    Key all = keys[0], any = keys[0];
    for (int64_t i = 0; i < n; i++) all &= keys[i], any |= keys[i];
    *in_all = all, *in_any = any;
}

/* How many of up to RANKED keys are smaller than each: all pairs are compared, a vector at a time. `key` and
 * `rank` have room for `whole`, a multiple of 16; behind the keys stands the greatest one. Their highest bit
 * is turned, so that signed comparisons order them. */
BY_LEVEL(static void, NAME(ranks), (const Signed *key, int64_t whole, Signed *rank), (key, whole, rank)) {
    for (int64_t i = 0; i < whole; i++) rank[i] = 0;
    for (int64_t j = 0; j < whole; j += 4) {
        Signed x0 = key[j], x1 = key[j + 1], x2 = key[j + 2], x3 = key[j + 3];
        for (int64_t i = 0; i < whole; i++) {
            Signed y = key[i];
            rank[i] += (x0 < y) + (x1 < y) + (x2 < y) + (x3 < y);
        }
    }
}

/* The rank that a median has in a line with nans, which are the greatest. */
static int64_t NAME(middle)(const Order *o, const Key *keys, int64_t n) {
    int64_t nans = 0, others;
    if (o->what == ORDER_RANK) return o->k;
    if (flb_is_floating(o->kind)) NAME(beside)(keys, n, (Key) ~(Key)0, &others, &nans);
    if (o->what == ORDER_MEDIAN) return nans ? n - nans : (n - 1) / 2;
    return nans == n ? 0 : (n - nans - 1) / 2;
}

#define PUT(T, at, i) *(T *)(values + (at) * o->step[1]) = ((const T *)line)[i]
#ifdef LONG
#define PUT_ANY(at, i) PUT(uint64_t, at, i)
#else
#define PUT_ANY(at, i)                        \
    if (item == 4) PUT(uint32_t, at, i);      \
    else if (item == 2) PUT(uint16_t, at, i); \
    else PUT(uint8_t, at, i)
#endif

/* All of a line of up to RANKED elements, or the first ones. */
FAST static void NAME(by_ranks)(const Order *o, const char *line, Key flip, char *values, char *places) {
    _Alignas(64) Key keys[RANKED];
    _Alignas(64) Signed key[RANKED], rank[RANKED];
    uint8_t equal[RANKED] = {0}; /* how many of that rank there were: equal ones keep their order */
    int64_t n = o->n, whole = (n + 15) & -16, many = o->what == ORDER_WHOLE ? n : o->k;
#ifndef LONG
    int item = item_of[o->kind];
#endif
    NAME(keys)(line, o->kind, flip, n, keys);
    for (int64_t i = n; i < whole; i++) keys[i] = ~(Key)0;
    for (int64_t i = 0; i < whole; i++) key[i] = (Signed)(keys[i] ^ (Key)1 << (8 * sizeof(Key) - 1));
    NAME(ranks)(key, whole, rank);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = rank[i] + equal[rank[i]]++;
        if (at >= many) continue;
        PUT_ANY(at, i);
        *(int64_t *)(places + at * o->step[2]) = i;
    }
}

static Key NAME(key_of_few)(const Key *keys, int64_t n, int64_t rank) {
    Key few[40];
    for (int64_t i = 0; i < n; i++) {
        int64_t j = i;
        for (; j && few[j - 1] > keys[i]; j--) few[j] = few[j - 1];
        few[j] = keys[i];
    }
    return few[rank];
}

/* The key that stands at `rank` in order, of up to RANKED: those on its side of one among them remain. */
FAST static Key NAME(key_of_some)(const Key *keys, int64_t n, int64_t rank) {
    Key room[3][RANKED], *less = room[0], *greater = room[1], *spare = room[2];
    while (n > 16) {
        Key x = keys[0], y = keys[n / 2], z = keys[n - 1], low = x < y ? x : y, high = x < y ? y : x,
            pivot = z < low ? low
            : z > high      ? high
                            : z;
        int64_t below = 0, above = 0;
        for (int64_t i = 0; i < n; i++) {
            Key key = keys[i];
            less[below] = key, greater[above] = key;
            below += key<pivot, above += key> pivot;
        }
        if (rank >= below && rank < n - above) return pivot;
        Key *kept = rank < below ? less : greater; /* read while both others are written */
        if (rank < below) n = below, less = spare;
        else rank -= n - above, n = above, greater = spare;
        keys = spare = kept;
    }
    return NAME(key_of_few)(keys, n, rank);
}

/* The key that stands at `rank` in order; b is as large. The digit below what all have in common is counted,
 * and those of the wanted one remain. */
FAST static Key NAME(key_at)(const Key *keys, Key *b, int64_t n, int64_t rank) {
    uint32_t count[2048];
    while (n > RANKED) {
        Key all, any;
        NAME(bits)(keys, n, &all, &any);
        if (all == any) return keys[0];
        int bits = n < 2048 ? 8 : 11, top = 63 - __builtin_clzll((unsigned long long)(all ^ any)),
            shift = top < bits ? 0 : top + 1 - bits;
        Key mask = ((Key)1 << bits) - 1;
        memset(count, 0, sizeof *count << bits);
        for (int64_t i = 0; i < n; i++) count[keys[i] >> shift & mask]++;
        Key digit = 0;
        while (rank >= count[digit]) rank -= count[digit++];
        int64_t m = 0;
        for (int64_t i = 0; i < n; i++) {
            Key key = keys[i];
            b[m] = key;
            m += (key >> shift & mask) == digit;
        }
        keys = b, n = m;
    }
    return NAME(key_of_some)(keys, n, rank);
}

/* One element of a line; `a` and `b` have room for its keys. */
FAST static void NAME(one)(const Order *o, const char *line, Key flip, Key *a, Key *b, char *values,
                           char *places) {
    int64_t n = o->n, less, equal, i = 0;
#ifndef LONG
    int item = item_of[o->kind];
#endif
    NAME(keys)(line, o->kind, flip, n, a);
    int64_t wanted = NAME(middle)(o, a, n);
    Key key = NAME(key_at)(a, b, n, wanted);
    NAME(beside)(a, n, key, &less, &equal);
    for (wanted -= less; a[i] != key || wanted--; i++);
    PUT_ANY(0, i);
    *(int64_t *)places = i;
}
#undef PUT
#undef PUT_ANY

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

#include "kernels/order_across.h"

FAST static void NAME(lines)(void *context, int64_t begin, int64_t end) {
    Order *o = context;
    if (NAME(lies_across)(o)) {
        NAME(across)(o, begin, end);
        return;
    }
    int item = item_of[o->kind];
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
        int64_t at[3];
        offsets(o, l, at);
        const char *line = gather(o->from + at[0], o->step[0], item, n, side);
        char *values = o->values + at[1], *places = o->places + at[2];
        Pair *found = a;
        int64_t many = n;
        int some = o->what == ORDER_WHOLE || o->what == ORDER_FIRST;
        if (o->what == ORDER_FIRST && o->k <= FEW) {
            NAME(leading)(o, line, flip, a);
            many = o->k;
        } else if (!some) {
            NAME(one)(o, line, flip, (Key *)a, (Key *)b, values, places);
            continue;
        } else if (n <= RANKED) {
            NAME(by_ranks)(o, line, flip, values, places);
            continue;
        } else if (few) {
            NAME(first)(o, line, flip, a, b);
            many = o->k;
            found = NAME(sorted)(a, b, many);
        } else {
            NAME(pairs)(line, o->kind, flip, 0, n, a);
            found = NAME(sorted)(a, b, n);
            many = o->what == ORDER_WHOLE ? n : o->k;
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
#undef ELEMENTS_OF_WIDTH
