/* Short lines that lie across, side by side: an element of ABREAST lines is a vector. A part of
 * order_kernels.h, with its names. */

/* The cases of a switch that order_kernels.h has too: what is read is a row of elements, one of each line. */
#define KEYS_ACROSS(T, of)                                                                    \
    for (int64_t i = 0; i < n; i++) {                                                         \
        T row[ABREAST] = {0};                                                                 \
        memcpy(row, from + i * step, lines * sizeof(T));                                      \
        for (int c = 0; c < ABREAST; c++)                                                     \
            key[i][c] = (Key)(of(row[c]) ^ flip), value[i][c] = row[c], place[i][c] = (Key)i; \
    }                                                                                         \
    break;

FAST static void NAME(keys_across)(const char *from, int64_t step, int kind, Key flip, int64_t n,
                                   int64_t lines, Key (*key)[ABREAST], Key (*value)[ABREAST],
                                   Key (*place)[ABREAST]) {
    switch (kind) { ELEMENTS_OF_WIDTH(KEYS_ACROSS) }
}
#undef KEYS_ACROSS

/* Each element in turn goes down past the greater ones before it: equal ones keep their order. */
BY_LEVEL(static void, NAME(insert_across),
         (int64_t n, Key (*restrict key)[ABREAST], Key (*restrict value)[ABREAST],
          Key (*restrict place)[ABREAST]),
         (n, key, value, place)) {
    for (int64_t i = 1; i < n; i++)
        for (int64_t j = i; j--;)
            for (int c = 0; c < ABREAST; c++) {
                Key a = key[j][c], b = key[j + 1][c], swapped = (Key) - (Key)(a > b);
                Key v = (value[j][c] ^ value[j + 1][c]) & swapped,
                    p = (place[j][c] ^ place[j + 1][c]) & swapped;
                key[j][c] = a < b ? a : b, key[j + 1][c] = a < b ? b : a;
                value[j][c] ^= v, value[j + 1][c] ^= v, place[j][c] ^= p, place[j + 1][c] ^= p;
            }
}

#define WRITE(T)                                                   \
    for (int64_t i = 0; i < many; i++) {                           \
        T row[ABREAST];                                            \
        for (int c = 0; c < ABREAST; c++) row[c] = (T)value[i][c]; \
        memcpy(values + i * o->step[1], row, lines * sizeof(T));   \
    }

FAST static void NAME(sorted_across)(const Order *o, const char *from, int64_t lines, char *values,
                                     char *places) {
    _Alignas(64) Key key[SHORT][ABREAST], value[SHORT][ABREAST], place[SHORT][ABREAST];
    int64_t many = o->what == ORDER_WHOLE ? o->n : o->k;
    NAME(keys_across)(from, o->step[0], o->kind, o->descending ? ~(Key)0 : 0, o->n, lines, key, value, place);
    NAME(insert_across)(o->n, key, value, place);
#ifdef LONG
    WRITE(uint64_t)
#else
    int item = item_of[o->kind];
    if (item == 4) WRITE(uint32_t)
    else if (item == 2) WRITE(uint16_t)
    else WRITE(uint8_t)
#endif
    for (int64_t i = 0; i < many; i++) {
        int64_t row[ABREAST];
        for (int c = 0; c < ABREAST; c++) row[c] = (int64_t)place[i][c];
        memcpy(places + i * o->step[2], row, lines * sizeof *row);
    }
}
#undef WRITE

/* Whether all lines of `o` can go this way. */
static int NAME(lies_across)(const Order *o) {
    int last = o->ndim - 1, item = item_of[o->kind];
    if ((o->what != ORDER_WHOLE && o->what != ORDER_FIRST) || o->n > SHORT || last < 0) return 0;
    return o->shape[last] >= ABREAST && o->strides[0][last] == item && o->strides[1][last] == item &&
        o->strides[2][last] == sizeof(int64_t);
}

static void NAME(across)(const Order *o, int64_t begin, int64_t end) {
    int last = o->ndim - 1;
    for (int64_t l = begin, many; l < end; l += many) {
        int64_t at[3];
        offsets(o, l, at);
        many = o->shape[last] - l % o->shape[last];
        many = many < end - l ? many : end - l;
        many = many < ABREAST ? many : ABREAST;
        NAME(sorted_across)(o, o->from + at[0], many, o->values + at[1], o->places + at[2]);
    }
}
